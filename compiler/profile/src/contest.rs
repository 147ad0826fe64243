//! Configurations of one kernel on the same arrays: each is checked, compiled and verified before it is launched, and
//! those that are raced together are launched in turns.

use crate::model::Model;
use crate::patience::Patience;
use crate::race::{Entrant, Laps, fastest_or_default, race};
use crate::sample::Rehearsal;
use crate::search::Choice;
use crate::setup::{Machine, Setup, first_error, tell};
use crate::verify::{Rejected, checked};
use ptoc_diagnostics::Diagnostic;
use ptoc_driver::backend::Timed;
use ptoc_driver::launch::{CompiledPlan, Plan};
use ptoc_driver::session::{Failed, Session};
use ptoc_tensor::Tensor;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Of the seconds of a measurement, what one configuration gets.
const SHARE: f64 = 0.25;

/// What is known of configurations so far.
pub(crate) struct Contest<'c> {
    setup: &'c Setup,
    on: &'c Machine,
    /// A configuration as definitions.
    definitions: &'c dyn Fn(&Choice) -> Vec<(String, String)>,
    model: Option<Model>,
    /// The arrays, which are the same for all.
    tensors: Vec<Tensor>,
    /// Those whose results are right.
    right: BTreeSet<Choice>,
    patience: Patience,
    /// Times of the last race of each.
    pub laps: BTreeMap<Choice, Laps>,
    /// Of a simulated device, its cycles in place of them.
    pub cycles: BTreeMap<Choice, u64>,
    /// Why others are not measured.
    pub refused: BTreeMap<Choice, Diagnostic>,
    /// How many of these failed in a launch, or were wrong.
    pub failed: usize,
    /// Why the first launch that failed did so, which may be no matter of configurations.
    pub stopped: Option<Diagnostic>,
}

/// A configuration of a race: its number there, and its compilation.
type Planned = (usize, Session, Plan);

impl<'c> Contest<'c> {
    /// Nothing is known yet.
    pub fn new(
        setup: &'c Setup,
        on: &'c Machine,
        definitions: &'c dyn Fn(&Choice) -> Vec<(String, String)>,
        model: Option<Model>,
    ) -> Contest<'c> {
        let (tensors, right, patience) = (Vec::new(), BTreeSet::new(), Patience::default());
        let (laps, refused) = (BTreeMap::new(), BTreeMap::new());
        Contest {
            setup,
            on,
            definitions,
            model,
            tensors,
            right,
            patience,
            laps,
            cycles: BTreeMap::new(),
            refused,
            failed: 0,
            stopped: None,
        }
    }

    /// Launches these in turns: the numbers of those that none is faster than. Those that are refused are left out. The
    /// default, if there is one among them, is left on stronger evidence alone.
    ///
    /// # Errors
    /// What is wrong with the arrays or the machine.
    pub fn race(
        &mut self,
        session: &mut Session,
        choices: &[Choice],
        default: Option<&Choice>,
    ) -> Result<Vec<usize>, Failed> {
        let mut planned = self.plans(session, choices)?;
        if self.on.timed == Timed::Simulated {
            return Ok(self.by_cycles(planned, choices));
        }
        self.leave_out_dominated(&mut planned, choices);
        let mut compiled = Vec::new();
        for (n, own, plan) in &mut planned {
            match CompiledPlan::new(own, plan, self.on.backend) {
                Ok(code) => compiled.push((*n, own, code)),
                Err(Failed) => {
                    self.refused.insert(choices[*n].clone(), first_error(own));
                }
            }
        }
        let mut ready = Vec::new();
        for (n, own, code) in &mut compiled {
            match self.rehearsed(&choices[*n], own, code) {
                Ok((rehearsal, took)) => ready.push((*n, Entrant { session: own, rehearsal, arrays: 0 }, took)),
                Err(rejected) => self.reject(&choices[*n], rejected),
            }
        }
        let (mut entrants, mut numbers) = (Vec::new(), Vec::new());
        for (n, entrant, took) in ready {
            // The best may have come behind it.
            match self.patience.judge(took, &(self.definitions)(&choices[n])) {
                Some(why) => self.reject(&choices[n], Rejected::Slow(why)),
                None => {
                    entrants.push(entrant);
                    numbers.push(n);
                }
            }
        }
        let length = Duration::from_secs_f64(self.setup.seconds * SHARE);
        let mut arrays = [std::mem::take(&mut self.tensors)];
        let default = default.and_then(|default| numbers.iter().position(|n| choices[*n] == *default));
        let raced = race(&mut entrants, &mut arrays, length, true).and_then(|laps| {
            let best = fastest_or_default(&mut entrants, &mut arrays, length, (&laps, default))?;
            Ok((laps, best))
        });
        [self.tensors] = arrays;
        let (laps, best) = raced.or_else(|(_, why)| session.fail(*why))?;
        let best = best.into_iter().map(|n| numbers[n]).collect();
        self.laps.extend(numbers.iter().map(|n| choices[*n].clone()).zip(laps));
        Ok(best)
    }

    /// Simulates those that were not yet, once, which is enough: the numbers of those that take the fewest cycles.
    fn by_cycles(&mut self, planned: Vec<Planned>, choices: &[Choice]) -> Vec<usize> {
        for (n, mut own, plan) in planned {
            let choice = &choices[n];
            let code = match CompiledPlan::new(&mut own, &plan, self.on.backend) {
                Ok(code) => code,
                Err(Failed) => {
                    self.refused.insert(choice.clone(), first_error(&mut own));
                    continue;
                }
            };
            match checked(&mut own, &code, &self.tensors, self.on.threads, (self.setup.verify, &[]), false) {
                Ok(checked) => {
                    let (cycles, ns) = (checked.cycles().unwrap_or(0), checked.outcome.stats["ns"].as_f64());
                    let seconds = ns.unwrap_or(0.0) * 1e-9;
                    let laps = Laps { times: vec![Duration::from_secs_f64(seconds)], rounds: vec![seconds] };
                    self.cycles.insert(choice.clone(), cycles);
                    self.laps.insert(choice.clone(), laps);
                }
                Err(rejected) => self.reject(choice, rejected),
            }
        }
        let least = choices.iter().filter_map(|choice| self.cycles.get(choice)).min().copied();
        (0..choices.len()).filter(|n| least.is_some() && self.cycles.get(&choices[*n]).copied() == least).collect()
    }

    /// The plans of those that the target's checks take.
    fn plans(&mut self, session: &mut Session, choices: &[Choice]) -> Result<Vec<Planned>, Failed> {
        let mut planned = Vec::new();
        let arrays = self.setup.given(session).or_else(|d| session.fail(*d))?;
        for (n, choice) in choices.iter().enumerate() {
            if self.refused.contains_key(choice) || self.cycles.contains_key(choice) {
                continue;
            }
            match self.setup.plan(&(self.definitions)(choice), &arrays) {
                Ok((mut own, plan)) => {
                    tell(&mut own, session);
                    planned.push((n, own, plan));
                }
                Err(why) => {
                    self.refused.insert(choice.clone(), *why);
                }
            }
        }
        if let (true, Some((_, _, plan))) = (self.tensors.is_empty(), planned.first()) {
            let mut arrays = self.setup.given(session).or_else(|d| session.fail(*d))?;
            self.tensors = self.setup.inputs(session, plan, &mut arrays)?;
        }
        Ok(planned)
    }

    /// Drops those that the model of time leaves no hope for.
    fn leave_out_dominated(&mut self, planned: &mut Vec<Planned>, choices: &[Choice]) {
        let Some(model) = &mut self.model else { return };
        for (n, own, plan) in planned.iter_mut() {
            model.ask(&(self.definitions)(&choices[*n]), own, (plan, &self.tensors));
        }
        planned.retain(|(n, ..)| match model.dominated(&(self.definitions)(&choices[*n])) {
            Some(why) => {
                self.refused.insert(choices[*n].clone(), why);
                false
            }
            None => true,
        });
    }

    /// A configuration that has run once, and whose results were compared if they had not been; with its better time.
    fn rehearsed<'k, 'p>(
        &mut self,
        choice: &Choice,
        own: &mut Session,
        code: &'k CompiledPlan<'p>,
    ) -> Result<(Rehearsal<'k, 'p>, Duration), Rejected> {
        let ended = |why: Option<Box<Diagnostic>>| why.map_or(Ok(()), |why| Err(Rejected::Slow(why)));
        let mut first = Duration::MAX;
        if !self.right.contains(choice) {
            let check = || checked(own, code, &self.tensors, self.on.threads, (self.setup.verify, &[]), false);
            let (done, why) = self.patience.watch(check);
            ended(why)?;
            first = done?.outcome.run_time;
            self.right.insert(choice.clone());
        }
        let (done, why) = self.patience.watch(|| Rehearsal::new(own, code, &self.tensors, self.on.threads));
        ended(why)?;
        let rehearsal = done.map_err(|Failed| Rejected::Failed(Box::new(first_error(own))))?;
        let took = rehearsal.took.min(first);
        match self.patience.judge(took, &(self.definitions)(choice)) {
            Some(why) => Err(Rejected::Slow(why)),
            None => Ok((rehearsal, took)),
        }
    }

    fn reject(&mut self, choice: &Choice, rejected: Rejected) {
        self.failed += usize::from(!matches!(rejected, Rejected::Slow(_)));
        let why = match rejected {
            Rejected::Wrong(why) | Rejected::Slow(why) => why,
            Rejected::Failed(why) => {
                self.stopped.get_or_insert_with(|| (*why).clone());
                why
            }
        };
        self.refused.insert(choice.clone(), *why);
    }
}

//! The configurations of a problem, measured: all of them, or those that a search chooses.

use crate::limits::Limits;
use crate::model::Model;
use crate::patience::Patience;
use crate::profile::{By, Definitions, Depth, Figures, Lists, Outcome, Problem, Request};
use crate::race::{Entrant, fastest_or_default, race};
use crate::sample::Rehearsal;
use crate::search::{ALL, Choice, descend};
use crate::setup::{Machine, Setup, first_error, operations, tell, work};
use crate::traffic::Traffic;
use crate::verify::{Rejected, checked};
use ptoc_diagnostics::{Diagnostic, codes};
use ptoc_driver::launch::{CompiledPlan, Plan};
use ptoc_driver::session::{Failed, Session};
use ptoc_tensor::Tensor;
use std::time::Duration;

/// A problem, with what became of its configurations so far.
pub(crate) struct Measure<'m> {
    setup: &'m Setup,
    on: &'m Machine,
    request: &'m Request,
    problem: &'m Problem,
    /// The number of the configuration that the source has.
    default: Option<usize>,
    arrays: ArraySets,
    /// What the target's model of time has said so far: each configuration is asked of it once.
    model: Option<Model>,
    /// The machine's limits, as far as they are measured.
    limits: Option<Limits>,
    /// Of a search by the clock: what takes too long is given up.
    patience: Option<Patience>,
    /// More races follow: the limits are measured again behind the last.
    more: bool,
    pub outcomes: Vec<Outcome>,
}

/// A configuration with its compilation.
type Planned = (usize, Session, Plan);
/// A configuration with its code.
type Coded<'p> = (usize, &'p mut Session, CompiledPlan<'p>);

fn refused(why: Box<Diagnostic>) -> Outcome {
    Outcome::Rejected { status: "refused", why }
}

impl<'m> Measure<'m> {
    /// Nothing is known yet.
    pub fn new(
        setup: &'m Setup,
        on: &'m Machine,
        request: &'m Request,
        (problem, default): (&'m Problem, Option<usize>),
    ) -> Measure<'m> {
        let outcomes = vec![Outcome::Listed; problem.configurations.len()];
        Measure {
            setup,
            on,
            request,
            problem,
            default,
            arrays: ArraySets::default(),
            model: None,
            limits: None,
            patience: None,
            more: false,
            outcomes,
        }
    }

    /// What becomes of each configuration; of many combinations of `tune` lists, of those that a search looks at.
    ///
    /// # Errors
    /// What has nothing to do with a case.
    pub fn all(&mut self, lists: Option<&Lists>, session: &mut Session) -> Result<(), Failed> {
        let all: Vec<usize> = (0..self.outcomes.len()).collect();
        self.model = Model::new(self.request.margin.filter(|_| self.request.by == By::Time), session);
        let product: Option<usize> = lists.map(|lists| lists.lengths.iter().product());
        match lists {
            Some(lists) if all.len() > ALL && product == Some(all.len()) && self.request.depth == Depth::Measure => {
                self.search(lists, session)
            }
            _ => self.some(&all, session).map(drop),
        }
    }

    /// Coordinate descent over the lists, whose combinations are in the order of their last values first.
    fn search(&mut self, lists: &Lists, session: &mut Session) -> Result<(), Failed> {
        let number = |choice: &Choice| lists.number(choice);
        self.more = true;
        self.patience = (self.request.by == By::Time).then(Patience::default);
        let found = descend(&lists.lengths, &lists.start, &mut |line| {
            let numbers: Vec<usize> = line.iter().map(number).collect();
            let best = self.some(&numbers, session)?;
            Ok((0..numbers.len()).filter(|n| best.contains(&numbers[*n])).collect())
        })?;
        self.more = false;
        let mut last: Vec<usize> = found.optima.iter().map(number).collect();
        let is_measured = |n: &usize| matches!(self.outcomes[*n], Outcome::Measured(_)) && !last.contains(n);
        last.extend(self.default.filter(is_measured));
        for outcome in &mut self.outcomes {
            match outcome {
                Outcome::Measured(figures) => figures.fastest = false,
                Outcome::Listed => *outcome = Outcome::Skipped("the search did not look at it"),
                _ => {}
            }
        }
        self.some(&last, session).map(drop)
    }

    /// What becomes of some configurations: the numbers of those that none of them is faster than.
    fn some(&mut self, which: &[usize], session: &mut Session) -> Result<Vec<usize>, Failed> {
        let mut planned = self.plans(which, session);
        self.leave_out_dominated(&mut planned);
        let mut compiled: Vec<Coded<'_>> = Vec::new();
        for (n, own, plan) in &mut planned {
            match CompiledPlan::new(own, plan, self.on.backend) {
                Ok(code) => {
                    self.outcomes[*n] = Outcome::Compiles;
                    compiled.push((*n, own, code));
                }
                Err(Failed) => self.outcomes[*n] = refused(Box::new(first_error(own))),
            }
        }
        if self.request.depth < Depth::Measure {
            return Ok(Vec::new());
        }
        let mut right: Vec<(usize, usize, Figures)> = Vec::new();
        for (at, (n, own, code)) in compiled.iter_mut().enumerate() {
            if let Some((of, figures)) = self.checked(*n, own, code, session)? {
                right.push((at, of, figures));
            }
        }
        match self.request.by {
            By::Cycles => {
                for (at, _, figures) in right {
                    self.outcomes[compiled[at].0] = Outcome::Measured(Box::new(figures));
                }
                Ok(self.fewest(which))
            }
            By::Time => self.by_clock(&mut compiled, right, session),
        }
    }

    /// The plans of those that the target's checks take.
    fn plans(&mut self, which: &[usize], session: &mut Session) -> Vec<Planned> {
        let mut planned = Vec::new();
        for &n in which {
            // Cycles are the same each time, and what is refused stays so.
            let is_known = match self.outcomes[n] {
                Outcome::Rejected { .. } => true,
                Outcome::Measured(_) => self.request.by == By::Cycles,
                _ => false,
            };
            if is_known {
                continue;
            }
            let definitions = self.definitions(n);
            match self.setup.given(session).and_then(|arrays| self.setup.plan(&definitions, &arrays)) {
                Ok((mut own, plan)) => {
                    tell(&mut own, session);
                    planned.push((n, own, plan));
                }
                Err(why) => self.outcomes[n] = refused(why),
            }
        }
        planned
    }

    fn definitions(&self, n: usize) -> Definitions {
        self.problem.sizes.iter().chain(&self.problem.configurations[n]).cloned().collect()
    }

    /// Drops those that the model of time leaves no hope for.
    fn leave_out_dominated(&mut self, planned: &mut Vec<Planned>) {
        let Some(model) = &mut self.model else { return };
        for (n, own, plan) in planned.iter_mut() {
            if let Ok(of) = self.arrays.of(self.setup, own, plan) {
                model.ask(&self.problem.configurations[*n], own, (plan, &self.arrays.sets[of]));
            }
        }
        planned.retain(|(n, ..)| match model.dominated(&self.problem.configurations[*n]) {
            Some(why) => {
                self.outcomes[*n] = refused(Box::new(why));
                false
            }
            None => true,
        });
    }

    /// The arrays of a configuration that has run once with results that are right, and its figures so far.
    fn checked(
        &mut self,
        n: usize,
        own: &mut Session,
        code: &CompiledPlan<'_>,
        session: &mut Session,
    ) -> Result<Option<(usize, Figures)>, Failed> {
        let of = match self.arrays.of(self.setup, own, code.plan()) {
            Ok(of) => of,
            Err(Failed) => {
                self.outcomes[n] = refused(Box::new(first_error(own)));
                return Ok(None);
            }
        };
        let expected = match self.setup.expected(own, code.plan()) {
            Ok(expected) => expected,
            Err(Failed) => {
                self.outcomes[n] = refused(Box::new(first_error(own)));
                return Ok(None);
            }
        };
        let (cycles, tensors) = (self.request.by == By::Cycles, &self.arrays.sets[of]);
        let mut check = || checked(own, code, tensors, self.on.threads, (self.setup.verify, &expected), cycles);
        let done = match &self.patience {
            None => check(),
            Some(patience) => match patience.watch(check) {
                (done, None) => done,
                (_, Some(why)) => Err(Rejected::Slow(why)),
            },
        };
        match done {
            Ok(checked) => {
                let work = (!cycles).then(|| work(code.plan(), tensors).ok()).flatten();
                let traffic = Traffic::of(code.plan(), work.as_deref());
                let mut figures = Figures {
                    cycles: checked.cycles().filter(|_| cycles),
                    right: checked.right,
                    bytes: traffic.moved,
                    least_bytes: traffic.least,
                    ..Figures::default()
                };
                if !cycles {
                    figures.work = work.as_deref().map(operations);
                }
                Ok(Some((of, figures)))
            }
            // It is no matter of cases that the machine is not there.
            Err(Rejected::Failed(why)) if why.code == codes::GPU_UNAVAILABLE => session.fail(*why),
            Err(rejected) => {
                let (status, why) = match rejected {
                    Rejected::Slow(why) => ("refused", why),
                    Rejected::Wrong(why) => ("wrong", why),
                    Rejected::Failed(why) => ("failed", why),
                };
                self.outcomes[n] = Outcome::Rejected { status, why };
                Ok(None)
            }
        }
    }

    /// Launches those that are right in turns.
    fn by_clock(
        &mut self,
        compiled: &mut [Coded<'_>],
        right: Vec<(usize, usize, Figures)>,
        session: &mut Session,
    ) -> Result<Vec<usize>, Failed> {
        let mut entrants: Vec<Entrant<'_, '_, '_>> = Vec::new();
        let mut ready: Vec<(usize, Figures)> = Vec::new();
        let mut right = right.into_iter().peekable();
        for (at, (n, own, code)) in compiled.iter_mut().enumerate() {
            let Some((_, of, figures)) = right.next_if(|(of, ..)| *of == at) else { continue };
            match Rehearsal::new(own, code, &self.arrays.sets[of], self.on.threads) {
                Ok(rehearsal) => {
                    let definitions = &self.problem.configurations[*n];
                    let slow = self.patience.as_mut().and_then(|patience| patience.judge(rehearsal.took, definitions));
                    if let Some(why) = slow {
                        self.outcomes[*n] = refused(why);
                        continue;
                    }
                    entrants.push(Entrant { session: own, rehearsal, arrays: of });
                    ready.push((*n, figures));
                }
                Err(Failed) => {
                    self.outcomes[*n] = Outcome::Rejected { status: "failed", why: Box::new(first_error(own)) };
                }
            }
        }
        let most = ready.iter().map(|(_, figures)| figures.bytes).max().unwrap_or(0) as usize;
        if self.limits.is_none() && !ready.is_empty() {
            self.limits = self.on.limits(most, self.setup.exact);
        }
        let length = Duration::from_secs_f64(self.setup.seconds);
        let laps = match race(&mut entrants, &mut self.arrays.sets, length, false) {
            Ok(laps) => laps,
            Err((_, why)) => return session.fail(*why),
        };
        if let Some(before) = self.limits.take() {
            let after = if self.more { None } else { self.on.limits(most, self.setup.exact) };
            self.limits = Some(after.map_or_else(|| before.clone(), |after| before.best(&after)));
        }
        let limits = self.limits.as_ref();
        // A search takes steps by the fastest alone; the default is in its last race.
        let default = self.default.filter(|_| !self.more).and_then(|own| ready.iter().position(|(n, _)| *n == own));
        let best = fastest_or_default(&mut entrants, &mut self.arrays.sets, length, (&laps, default));
        let best = best.or_else(|(_, why)| session.fail(*why))?;
        let numbers: Vec<usize> = best.iter().map(|at| ready[*at].0).collect();
        for (at, ((n, mut figures), laps)) in ready.into_iter().zip(laps).enumerate() {
            figures.fastest = best.contains(&at);
            if let Some((limits, work)) = limits.zip(figures.work) {
                figures.least = Some(limits.least(&work, figures.least_bytes));
                let memory = limits.is_bound_by_memory(&work, figures.bytes);
                figures.bound = Some(if memory { "memory" } else { "arithmetic" });
            }
            figures.laps = Some(laps);
            self.outcomes[n] = Outcome::Measured(Box::new(figures));
        }
        Ok(numbers)
    }

    /// Of some that were measured by cycles, those that take the fewest.
    fn fewest(&mut self, which: &[usize]) -> Vec<usize> {
        let cycles = |outcome: &Outcome| match outcome {
            Outcome::Measured(figures) => figures.cycles,
            _ => None,
        };
        let least = which.iter().filter_map(|n| cycles(&self.outcomes[*n])).min();
        let mut best = Vec::new();
        for &n in which {
            if let Outcome::Measured(figures) = &mut self.outcomes[n] {
                figures.fastest = figures.cycles.is_some() && figures.cycles == least;
                best.extend(figures.fastest.then_some(n));
            }
        }
        best
    }
}

/// Arrays of launches, shared by those whose arguments have the same types.
#[derive(Default)]
struct ArraySets {
    signatures: Vec<Vec<String>>,
    sets: Vec<Vec<Tensor>>,
}

impl ArraySets {
    /// The number of a plan's set.
    fn of(&mut self, setup: &Setup, session: &mut Session, plan: &Plan) -> Result<usize, Failed> {
        let signature: Vec<String> = plan.arguments.iter().map(|a| format!("{}{:?}", a.dtype, a.shape)).collect();
        if let Some(known) = self.signatures.iter().position(|s| *s == signature) {
            return Ok(known);
        }
        let mut arrays = setup.given(session).or_else(|d| session.fail(*d))?;
        let tensors = setup.inputs(session, plan, &mut arrays)?;
        self.signatures.push(signature);
        self.sets.push(tensors);
        Ok(self.sets.len() - 1)
    }
}

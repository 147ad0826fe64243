//! Configurations that the target's model of time leaves no hope for: they are not compiled.

use crate::format::flag;
use crate::setup::{operations, work};
use crate::verify::checked;
use ptoc_diagnostics::{Diagnostic, codes};
use ptoc_driver::backend;
use ptoc_driver::launch::{CompiledPlan, Plan};
use ptoc_driver::session::Session;
use ptoc_tensor::Tensor;
use std::collections::BTreeMap;

/// How many times the cycles of the best a configuration may have, where nobody says so.
pub const MARGIN: f64 = 2.0;

/// Operations of a launch at most: the interpreter, which has the model, takes seconds for more.
const MOST: u64 = 1 << 28;

/// The margin, and the cycles of what was asked so far.
pub(crate) struct Model {
    margin: f64,
    cycles: BTreeMap<Vec<(String, String)>, Option<u64>>,
}

impl Model {
    /// With a margin; `None` without one, or where the target has no model of time.
    pub fn new(margin: Option<f64>, session: &Session) -> Option<Model> {
        let there = session.target.pipes.time.is_some() && !session.target.has_units();
        Some(Model { margin: margin.filter(|_| there)?, cycles: BTreeMap::new() })
    }

    /// The cycles of a launch by the model; `None` where it cannot be carried out, or is too long.
    pub fn ask(
        &mut self,
        definitions: &[(String, String)],
        session: &mut Session,
        (plan, tensors): (&Plan, &[Tensor]),
    ) -> Option<u64> {
        if let Some(known) = self.cycles.get(definitions) {
            return *known;
        }
        let cycles = modelled(session, plan, tensors);
        self.cycles.insert(definitions.to_vec(), cycles);
        cycles
    }

    /// Why a configuration is left out, by the best of what was asked so far.
    pub fn dominated(&self, definitions: &[(String, String)]) -> Option<Diagnostic> {
        let own = self.cycles.get(definitions).copied().flatten()?;
        let asked = self.cycles.iter().filter_map(|(of, cycles)| Some((of, (*cycles)?)));
        let (best, least) = asked.min_by_key(|(_, cycles)| *cycles)?;
        if own as f64 <= least as f64 * self.margin {
            return None;
        }
        let flags: Vec<String> = best.iter().map(|(name, value)| flag(name, value)).collect();
        let message = format!(
            "{own} cycles by the target's model of time, {:.1} times the {least} of {}; the margin is {}",
            own as f64 / least.max(1) as f64,
            flags.join(" "),
            self.margin
        );
        let help = "`--prune off` measures it all the same, `--prune FACTOR` has another margin";
        Some(Diagnostic::global(codes::DOMINATED, message).with_help(help))
    }
}

/// A launch on the interpreter, whose pipes have the times of the model.
fn modelled(session: &mut Session, plan: &Plan, tensors: &[Tensor]) -> Option<u64> {
    if work(plan, tensors).is_ok_and(|work| operations(&work).total() > MOST) {
        return None;
    }
    let before = std::mem::take(&mut session.diagnostics);
    let ran = CompiledPlan::new(session, plan, backend::INTERP)
        .map(|code| checked(session, &code, tensors, 1, (None, &[]), true).ok().and_then(|checked| checked.cycles()));
    session.diagnostics = before;
    ran.unwrap_or(None)
}

//! A launch whose results are held to what the kernel ensures, before anything is measured.

use crate::setup::first_error;
use ptoc_diagnostics::Diagnostic;
use ptoc_driver::launch::{CompiledPlan, Expected, RunOptions, RunOutcome, Schedule, Tolerance, verify};
use ptoc_driver::session::{Failed, Session};
use ptoc_tensor::Tensor;

/// What came of it.
pub struct Checked {
    /// The launch's own account.
    pub outcome: RunOutcome,
    /// Elements that were compared, and the largest error; `None`: nothing says what is right.
    pub right: Option<(usize, f64)>,
}

impl Checked {
    /// Cycles of the simulated device, or of the cores by the target's model of time; `None`: nothing counts them.
    pub fn cycles(&self) -> Option<u64> {
        let device = self.outcome.stats.get("cycles").and_then(serde_json::Value::as_u64);
        let modelled = || self.outcome.timed.iter().map(|t| t.timing.makespan).sum();
        device.or_else(|| (!self.outcome.timed.is_empty()).then(modelled))
    }
}

/// Why a kernel is not measured.
pub enum Rejected {
    /// It failed.
    Failed(Box<Diagnostic>),
    /// Its results are wrong.
    Wrong(Box<Diagnostic>),
    /// It takes too long.
    Slow(Box<Diagnostic>),
}

/// Launches once, on copies of the arrays, and compares with `ensures` and expected arrays. `time`: the interpreter
/// times the pipes by the target's model.
pub fn checked(
    session: &mut Session,
    compiled: &CompiledPlan<'_>,
    tensors: &[Tensor],
    threads: usize,
    (tolerance, expected): (Option<Tolerance>, &[Expected]),
    time: bool,
) -> Result<Checked, Rejected> {
    let schedule = Schedule { order: None, insert: time, time };
    let options = RunOptions { threads, schedule, ..RunOptions::default() };
    let mut after = tensors.to_vec();
    let ran = compiled.run(session, &mut after, &options, &mut |_| {}, None);
    let outcome = match ran {
        Ok(outcome) => outcome,
        Err(Failed) => return Err(Rejected::Failed(Box::new(first_error(session)))),
    };
    let plan = compiled.plan();
    let Some(tolerance) = tolerance else { return Ok(Checked { outcome, right: None }) };
    let (mut all, mut result) = plan.compare(session, expected, &after, tolerance);
    if result.is_ok() && !plan.specification.ensures.is_empty() {
        match verify(session, plan, tensors, &after, tolerance) {
            Ok(more) => all.extend(more),
            Err(failed) => result = Err(failed),
        }
    }
    if let Err(Failed) = result {
        return Err(Rejected::Wrong(Box::new(first_error(session))));
    }
    let elements = all.iter().map(|v| v.stats.elements).sum();
    let right = (!all.is_empty()).then(|| (elements, all.iter().map(|v| v.stats.max_error).fold(0.0, f64::max)));
    Ok(Checked { outcome, right })
}

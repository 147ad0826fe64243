//! `// trap:` lines: a kernel that must stop on the interpreter, and why.

use super::{Failure, Session, count, errors, inputs_of};
use crate::launch::{Backend, CompiledPlan, Plan, RunOptions, Schedule, open_arrays};
use crate::session::{Failed, Unit};
use ptoc_diagnostics::{Code, Diagnostics};
use ptoc_ir::interp::Order;
use ptoc_syntax::directive::Trap;

/// What a pipe may do early does not depend on the order in which the interpreter runs them, so it must be found in each.
const ORDERS: [Order; 2] = [Order::Program, Order::Late];

/// The interpreter must stop, with this code and no other.
pub(super) fn trap_line(session: &mut Session, unit: &Unit, trap: &Trap) -> Result<(), Failure> {
    let entry = unit.entry(Some(&trap.kernel.name), "run").map_err(|d| d.message)?;
    session.check_definitions(&[entry], unit);
    let arrays = open_arrays(session, &entry, "", &inputs_of(unit, &trap.inputs));
    if session.diagnostics.has_errors() {
        return Err(errors(session, "does not compile"));
    }
    let Ok(mut arrays) = arrays else { return Err(errors(session, "inputs cannot be read")) };
    session.watched = true;
    let Ok(plan) = Plan::new(session, unit, &entry, &arrays, true) else {
        return Err(errors(session, "does not compile"));
    };
    let seed = trap.settings.seed.map_or(0, |(seed, _)| seed);
    let before = plan.tensors(session, &mut arrays, seed).map_err(|Failed| errors(session, "no inputs"))?;
    plan.check_inputs(session, &before).map_err(|Failed| errors(session, "inputs do not satisfy `where`"))?;
    let compiled = CompiledPlan::new(session, &plan, Backend::Interp).map_err(|Failed| errors(session, "not run"))?;
    for order in ORDERS {
        // What the compiler says is not the question.
        session.diagnostics = Diagnostics::new();
        let mut tensors = before.clone();
        let schedule = Schedule { order: Some(order), time: false, insert: false };
        let options = RunOptions { schedule, ..RunOptions::default() };
        if compiled.run(session, &mut tensors, &options, &mut |_| {}, None).is_ok() {
            return Err(format!("expected {}, but the run came to its end", trap.code.name).into());
        }
        let fits =
            |code: &Code| code.as_str().eq_ignore_ascii_case(&trap.code.name) || code.info().kind == trap.code.name;
        let got: Vec<Code> = session.diagnostics.iter().filter(|d| d.is_error()).map(|d| d.code).collect();
        if !matches!(&got[..], [code] if fits(code)) {
            let got: Vec<&str> = got.iter().map(|c| c.as_str()).collect();
            return Err(format!("expected {}, stopped with {}", trap.code.name, count(&got)).into());
        }
    }
    Ok(())
}

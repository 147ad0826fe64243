//! `// trap:` lines: a kernel that must stop on the interpreter, and why.

use super::{Failure, count, errors, inputs_of};
use crate::args::TestArgs;
use ptoc_diagnostics::{Code, Diagnostics, codes};
use ptoc_driver::backend::{self, INTERP};
use ptoc_driver::launch::{CompiledPlan, Plan, RunOptions, Schedule, open_arrays};
use ptoc_driver::session::{CompilationUnit, Failed, Session};
use ptoc_interp::Order;
use ptoc_syntax::directive::Trap;

/// What a pipe may do early does not depend on the order in which the interpreter runs them, so it must be found in
/// each.
const ORDERS: [Order; 2] = [Order::Program, Order::Late];

/// The interpreter must stop, with this code and no other.
pub(super) fn trap_line(
    session: &mut Session,
    unit: &CompilationUnit,
    trap: &Trap,
    args: &TestArgs,
) -> Result<(), Failure> {
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
    let compiled = CompiledPlan::new(session, &plan, INTERP).map_err(|Failed| errors(session, "not run"))?;
    for order in ORDERS {
        // What the compiler says is not the question.
        session.diagnostics = Diagnostics::new();
        let mut tensors = before.clone();
        let schedule = Schedule { order: Some(order), time: false, insert: false };
        let options = RunOptions { schedule, ..RunOptions::default() };
        let ended = compiled.run(session, &mut tensors, &options, &mut |_| {}, None);
        expect(session, trap, ended.is_ok(), "")?;
    }
    let own = backend::default_of(&session.target);
    let memory = own.capabilities().sanitizer && found(&session.diagnostics).iter().all(is_of_memory);
    if args.sanitize && memory {
        let compiled = CompiledPlan::sanitized(session, &plan, own).map_err(|Failed| errors(session, "not run"))?;
        session.diagnostics = Diagnostics::new();
        let mut tensors = before.clone();
        let options = RunOptions { threads: args.threads, ..RunOptions::default() };
        let ended = compiled.run(session, &mut tensors, &options, &mut |_| {}, None);
        expect(session, trap, ended.is_ok(), "with the sanitizer: ")?;
    }
    Ok(())
}

/// Checks that a run has ended as the line says.
fn expect(session: &Session, trap: &Trap, ended: bool, how: &str) -> Result<(), Failure> {
    let name = &trap.code.name;
    if ended {
        return Err(format!("{how}expected {name}, but the run came to its end").into());
    }
    let fits = |code: &Code| code.as_str().eq_ignore_ascii_case(name) || code.info().kind == *name;
    let got = found(&session.diagnostics);
    if !matches!(&got[..], [code] if fits(code)) {
        let got: Vec<&str> = got.iter().map(|c| c.as_str()).collect();
        return Err(format!("{how}expected {name}, stopped with {}", count(&got)).into());
    }
    Ok(())
}

/// The codes of the errors.
fn found(diagnostics: &Diagnostics) -> Vec<Code> {
    diagnostics.iter().filter(|d| d.is_error()).map(|d| d.code).collect()
}

/// Whether it is about memory. What pipes do at the same time (PA-112x and PA-1130) machine code does one after
/// another.
fn is_of_memory(code: &Code) -> bool {
    !code.as_str().starts_with("PA-112") && *code != codes::TRAP_RACE_ATOMIC
}

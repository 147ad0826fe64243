//! `// run:` lines: a kernel on several backends, whose results are held to `ensures`, to arrays, and to each other.

use super::{Failure, errors, inputs_of};
use crate::args::TestArgs;
use crate::io::Io;
use ptoc_diagnostics::{Diagnostic, Diagnostics, SourceMap, codes};
use ptoc_driver::backend::{self, BackendRef, INTERP};
use ptoc_driver::devices;
use ptoc_driver::files::ArrayFile;
use ptoc_driver::launch::{Arrays, CompiledPlan, Plan, RunOptions, Schedule, open_arrays, open_expected, verify};
use ptoc_driver::session::{CompilationUnit, EntryPoint, Failed, Session};
use ptoc_interp::Order;
use ptoc_ir::tile::{SyncMode, adds_floats};
use ptoc_passes::pipeline::Pipeline;
use ptoc_syntax::directive::RunLine;
use ptoc_tensor::{Tensor, compare, scalar};

/// What a line is for one target.
pub(super) struct Share {
    pub(super) session: Session,
    pub(super) unit: CompilationUnit,
    pub(super) backends: Vec<BackendRef>,
    /// The line names another target, which may take kernels that this one refuses.
    pub(super) foreign: bool,
}

/// A target, and the backends that run the kernel for it.
pub(super) type Wanted = (String, Vec<BackendRef>);

/// The targets of a line, each with the backends that run the kernel for it; `None`: the line is for other machines.
///
/// A backend that does not serve the target of a line that names none runs the kernel for its [home](
/// ptoc_driver::backend::Backend::home): kernels mean the same on every target that takes them. `only` is that of
/// `--backend`, beside which the interpreter runs; kernels for units in memory stay there.
pub(super) fn wanted(run: &RunLine, own: &str, only: Option<BackendRef>) -> Result<Option<Vec<Wanted>>, Failure> {
    let mut found = Diagnostics::new();
    let target = &devices::find(own, &mut SourceMap::new(), &mut found).map_err(|d| d.message)?;
    if let Some(mistake) = found.iter().find(|d| d.is_error()) {
        return Err(format!("`{own}`: {}", mistake.message).into());
    }
    if let Some(backend) = only {
        let home = backend.home().filter(|_| !target.has_units());
        let target = if backend.serves(target) { Some(own) } else { home };
        let backends = if backend == INTERP { vec![INTERP] } else { vec![INTERP, backend] };
        return Ok(target.map(|target| vec![(target.to_owned(), backends)]));
    }
    let named = run.backends.iter().filter_map(|(name, _)| backend::named(name));
    if let Some(part) = named.filter_map(|b| b.left_out()).next() {
        return Err(Failure { reason: format!("this ptoc was built without `{}`", part.feature), elsewhere: true });
    }
    let mut wanted: Vec<Wanted> = Vec::new();
    for (name, _) in &run.backends {
        let backend = backend::named(name).ok_or_else(|| format!("there is no backend `{name}`"))?;
        let home = backend.home().filter(|_| run.settings.target.is_none() && !backend.serves(target));
        let target = home.unwrap_or(own);
        match wanted.iter_mut().find(|(known, _)| known == target) {
            Some((_, backends)) => backends.push(backend),
            None => wanted.push((target.to_owned(), vec![backend])),
        }
    }
    Ok(Some(wanted))
}

/// The results of a line's first backend.
struct First {
    name: &'static str,
    results: Vec<Tensor>,
}

/// Every backend keeps to `ensures` and to the expected arrays, and all give the bits of the first.
pub(super) fn run_line(shares: &mut [Share], run: &RunLine, args: &TestArgs, io: &mut Io<'_>) -> Result<(), Failure> {
    let mut first = None;
    shares.iter_mut().try_for_each(|share| share.run(run, args, &mut first, io))
}

/// A backend with the number of the plan that it takes, and whether the sanitizer watches it.
struct Turn {
    backend: BackendRef,
    plan: usize,
    watched: bool,
}

impl Turn {
    fn name(&self) -> String {
        let name = self.backend.name();
        if self.watched { format!("{name} with the sanitizer") } else { name.to_owned() }
    }

    fn what(&self, what: &str) -> String {
        format!("{}: {what}", self.name())
    }
}

/// What results of a line are held to.
struct HeldTo<'l> {
    before: &'l [Tensor],
    expected: &'l [(String, Tensor)],
    rtol: f64,
    atol: f64,
}

impl Share {
    fn run(
        &mut self,
        run: &RunLine,
        args: &TestArgs,
        first: &mut Option<First>,
        io: &mut Io<'_>,
    ) -> Result<(), Failure> {
        let Share { session, unit, backends, foreign } = self;
        let entry = unit.entry(Some(&run.kernel.name), "run").map_err(|d| d.message)?;
        session.check_definitions(&[entry], unit);
        let mut none = Arrays::new();
        let mut inputs = open_arrays(session, &entry, "", &inputs_of(unit, &run.inputs));
        let expected_files = inputs_of(unit, &run.expects);
        let given = inputs.as_mut().unwrap_or(&mut none);
        let expected = open_expected(session, &entry, "", given, &expected_files);
        let (false, Ok(expected)) = (session.diagnostics.has_errors(), expected) else {
            return Err(errors(session, "does not compile"));
        };
        let Ok(mut arrays) = inputs else { return Err(errors(session, "inputs cannot be read")) };
        session.watched = backends.iter().all(|b| b.capabilities().watches);
        let (plans, turns) = plans(session, unit, &entry, &arrays, backends, args.sanitize).map_err(|failure| {
            let elsewhere = *foreign && refused_by_target(session);
            let reason =
                if elsewhere { format!("not for {}: {}", session.target.name, failure.reason) } else { failure.reason };
            Failure { reason, elsewhere }
        })?;
        let plan = &plans[0];
        let seed = run.settings.seed.map_or(0, |(seed, _)| seed);
        let before = plan.tensors(session, &mut arrays, seed).map_err(|Failed| errors(session, "no inputs"))?;
        let read = |(name, array): (String, ArrayFile)| Ok((name, array.into_tensor().map_err(|d| d.message)?));
        let expected: Vec<(String, Tensor)> = expected.into_iter().map(read).collect::<Result<_, String>>()?;
        plan.check_inputs(session, &before).map_err(|Failed| errors(session, "inputs do not satisfy `where`"))?;
        let (rtol, atol) = (run.settings.rtol.map_or(0.0, |x| x.0), run.settings.atol.map_or(0.0, |x| x.0));
        let wanted = HeldTo { before: &before, expected: &expected, rtol, atol };
        for turn in &turns {
            let plan = &plans[turn.plan];
            let after = execute(session, plan, turn, &wanted, args, io, first.is_none())?;
            match first {
                None => *first = Some(First { name: turn.backend.name(), results: after }),
                Some(first) => agree(session, plan, turn, (first, &after), &wanted)?,
            }
        }
        Ok(())
    }
}

/// Whether all errors are about what the target takes (E06xx).
fn refused_by_target(session: &Session) -> bool {
    session.diagnostics.iter().filter(|d| d.is_error()).all(|d| d.code.as_str().starts_with("E06"))
}

/// A plan for each pipeline that the backends want (it is mostly one), and who takes which. With the sanitizer machine
/// code runs once more.
fn plans(
    session: &mut Session,
    unit: &CompilationUnit,
    entry: &EntryPoint<'_>,
    arrays: &Arrays,
    backends: &[BackendRef],
    sanitize: bool,
) -> Result<(Vec<Plan>, Vec<Turn>), Failure> {
    let (mut plans, mut pipelines, mut turns): (Vec<Plan>, Vec<Pipeline>, Vec<Turn>) = Default::default();
    for &backend in backends {
        session.select(backend);
        let known = pipelines.iter().position(|pipeline| *pipeline == session.pipeline);
        if known.is_none() {
            let Ok(plan) = Plan::new(session, unit, entry, arrays, true) else {
                return Err(errors(session, "does not compile"));
            };
            plans.push(plan);
            pipelines.push(session.pipeline);
        }
        let plan = known.unwrap_or(plans.len() - 1);
        turns.push(Turn { backend, plan, watched: false });
        if sanitize && backend.capabilities().sanitizer {
            turns.push(Turn { backend, plan, watched: true });
        }
    }
    Ok((plans, turns))
}

/// Runs a plan, and holds the results to `ensures` and to arrays.
fn execute(
    session: &mut Session,
    plan: &Plan,
    turn: &Turn,
    wanted: &HeldTo<'_>,
    args: &TestArgs,
    io: &mut Io<'_>,
    is_first: bool,
) -> Result<Vec<Tensor>, Failure> {
    let HeldTo { before, expected, rtol, atol } = *wanted;
    let compiled = match turn.watched {
        true => CompiledPlan::sanitized(session, plan, turn.backend),
        false => CompiledPlan::new(session, plan, turn.backend),
    };
    let Ok(compiled) = compiled else {
        return Err(errors(session, &turn.what("does not compile")));
    };
    let mut after = before.to_vec();
    // Where units in memory ran, their DRAM's commands keep the rules too.
    let options = RunOptions { threads: args.threads, rules: true, ..RunOptions::default() };
    if compiled.run(session, &mut after, &options, &mut |line| io.note(line), None).is_err() {
        return Err(errors(session, &turn.what("stopped")));
    }
    let Ok(held) = verify(session, plan, before, &after, (rtol, atol).into()) else {
        return Err(errors(session, &turn.what("not what `ensures` says")));
    };
    // The sample is the same for every backend.
    for v in held.iter().filter(|v| v.left_out > 0 && is_first) {
        let (some, all) = (v.stats.elements, v.stats.elements + v.left_out);
        io.note(&format!("{}: `{}` was held to `ensures` at a sample of {some} of {all} elements", plan.name, v.name));
    }
    for (name, want) in expected {
        let Some(at) = plan.arguments.iter().position(|a| a.name == *name) else { continue };
        let a = &plan.arguments[at];
        let bits = a.dtype.has_bits_of(want.dtype()) && want.shape() == a.shape;
        let cast = bits.then(|| Tensor::from_bytes(a.dtype, &a.shape, want.bytes()).ok()).flatten();
        if let Err(mismatch) = compare(&after[at], cast.as_ref().unwrap_or(want), rtol, atol) {
            return Err(turn.what(&format!("`{name}` is not what was expected: {mismatch}")).into());
        }
    }
    if turn.backend.capabilities().pipes {
        other_orders(session, plan, &compiled, (before, &after), (rtol, atol)).map_err(|reason| {
            let stopped = || errors(session, &turn.what("stopped in another order of the pipes")).reason;
            Failure::from(reason.unwrap_or_else(stopped))
        })?;
    }
    Ok(after)
}

/// Two backends have the same bits. A machine that runs blocks in an order of its own rounds sums of floats that are
/// updated atomically as it comes, within what the line allows.
fn agree(
    session: &mut Session,
    plan: &Plan,
    turn: &Turn,
    (first, after): (&First, &[Tensor]),
    wanted: &HeldTo<'_>,
) -> Result<(), Failure> {
    let elsewhere = turn.backend.machine(session.stand_in).is_some();
    let rounds = elsewhere && plan.steps.iter().any(|s| adds_floats(&s.kernel));
    let outputs = plan.arguments.iter().zip(first.results.iter().zip(after)).filter(|(a, _)| a.is_output());
    for (a, (one, two)) in outputs {
        if rounds && compare(two, one, wanted.rtol, wanted.atol).is_ok() {
            continue;
        }
        if let Some(difference) = first_difference(one, two) {
            let message = format!("`{}` differs between {} and {}: {difference}", a.name, first.name, turn.name());
            session.diagnostics.push(Diagnostic::error(codes::BACKENDS_DIFFER, a.span, message.clone()));
            return Err(message.into());
        }
    }
    Ok(())
}

/// Orders beside the program's in which pipes are run.
const ORDERS: [Order; 4] = [Order::Late, Order::Random(1), Order::Random(2), Order::Random(3)];

/// A kernel that orders its pipes itself gives the same bits in every order that it allows; the same but for rounding,
/// as far as the line allows it, if it adds floats atomically. `Err(None)`: the diagnostics say what is wrong.
fn other_orders(
    session: &mut Session,
    plan: &Plan,
    compiled: &CompiledPlan<'_>,
    (before, after): (&[Tensor], &[Tensor]),
    (rtol, atol): (f64, f64),
) -> Result<(), Option<String>> {
    if plan.steps.iter().all(|s| s.kernel.sync == SyncMode::Auto) {
        return Ok(());
    }
    let rounds = plan.steps.iter().any(|s| adds_floats(&s.kernel));
    for order in ORDERS {
        let mut again = before.to_vec();
        let schedule = Schedule { order: Some(order), ..Schedule::default() };
        let options = RunOptions { schedule, ..RunOptions::default() };
        // What it prints has been seen.
        compiled.run(session, &mut again, &options, &mut |_| {}, None).map_err(|Failed| None)?;
        let outputs = plan.arguments.iter().zip(after.iter().zip(&again)).filter(|(a, _)| a.is_output());
        for (a, (one, two)) in outputs {
            if rounds && compare(two, one, rtol, atol).is_ok() {
                continue;
            }
            if let Some(difference) = first_difference(one, two) {
                let message = format!("`{}` differs between program order and {order:?}: {difference}", a.name);
                session.diagnostics.push(Diagnostic::error(codes::ORDERS_DIFFER, a.span, message.clone()));
                return Err(Some(message));
            }
        }
    }
    Ok(())
}

/// Where the bits of two tensors first differ; one NaN is as good as another.
fn first_difference(one: &Tensor, two: &Tensor) -> Option<String> {
    if one == two {
        return None;
    }
    if (one.dtype(), one.shape()) != (two.dtype(), two.shape()) {
        return Some(format!("{} and {}", one.signature(), two.signature()));
    }
    let nan = |t: &Tensor, i: usize| t.dtype().is_float() && scalar::is_nan(t.dtype(), t.get_bits(i));
    let differs = |&i: &usize| one.get_bits(i) != two.get_bits(i) && !(nan(one, i) && nan(two, i));
    let at = (0..one.len()).find(differs)?;
    let count = (0..one.len()).filter(differs).count();
    let show = |t: &Tensor| scalar::format_bits(t.dtype(), t.get_bits(at));
    Some(format!("{count} of {} elements, first {:?}: {} and {}", one.len(), one.unravel(at), show(one), show(two)))
}

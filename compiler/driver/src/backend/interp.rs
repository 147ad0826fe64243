//! The reference interpreter, which serves every target and defines what a kernel means.

use super::{Backend, Capabilities, Compiled, Ending, Launches};
use crate::launch::{BackendLaunch, Plan, RunOptions, Timed, Total, pipe_stats, unwritten};
use crate::session::{Failed, Session};
use ptoc_diagnostics::{Diagnostic, SourceMap};
use ptoc_interp::{End, TensorBytes, Trap};
use ptoc_ir::tile::{Kernel, SyncMode, TensorDir, TensorId};
use ptoc_isa::{Loc, Target};
use ptoc_opt::matrix_unit::{self, Numerics};
use ptoc_passes::pipeline::Pipeline;
use serde_json::{Map, Value, json};

/// The backend: tile IR, executed.
pub(super) struct Interp;

/// Bytes that the interpreter may hold.
const MEMORY: u64 = 4 << 30;

impl Backend for Interp {
    fn name(&self) -> &'static str {
        "interp"
    }

    fn about(&self) -> &'static str {
        "The reference interpreter"
    }

    fn serves(&self, _: &Target) -> bool {
        true
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { watches: true, observed: true, pipes: true, ..Capabilities::default() }
    }

    fn pipeline(&self) -> Option<Pipeline> {
        None
    }

    fn compile(&self, _: &mut Session, _: &Plan) -> Result<Compiled, Failed> {
        Ok(Compiled::Launches(Box::new(Interpreted)))
    }
}

/// A plan on the interpreter, for which nothing is compiled.
struct Interpreted;

impl Launches for Interpreted {
    /// It watches every access by itself.
    fn expect(&mut self, _: &mut Session, _: &Plan, _: &[Vec<TensorId>]) -> Result<(), Failed> {
        Ok(())
    }

    fn launch(&self, launch: &mut BackendLaunch<'_, '_>) -> Result<Ending, Box<Diagnostic>> {
        interpret(launch)
    }

    fn stats(&self, total: &Total, _: &RunOptions, sources: &SourceMap, stats: &mut Map<String, Value>) {
        let counts = &total.counts;
        stats.insert("steps".into(), json!(counts.steps));
        stats.insert("bytes_read".into(), json!(counts.bytes_read));
        stats.insert("bytes_written".into(), json!(counts.bytes_written));
        stats.insert("bytes_moved".into(), json!(counts.bytes_moved));
        if counts.clusters > 0 {
            stats.insert("clusters".into(), json!(counts.clusters));
        }
        let bytes = |b: &TensorBytes| json!({"read": b.read, "fetched": b.fetched, "written": b.written});
        let tensors: Map<String, Value> = counts.tensors.iter().map(|(name, b)| (name.clone(), bytes(b))).collect();
        stats.insert("tensors".into(), json!(tensors));
        stats.insert("instructions".into(), json!(counts.instructions));
        pipe_stats(&total.timed, sources, stats);
    }
}

/// Executes a launch on the interpreter.
pub(super) fn interpret(launch: &mut BackendLaunch<'_, '_>) -> Result<Ending, Box<Diagnostic>> {
    let BackendLaunch { session, step, used, buffers, options, print, observer, total, .. } = launch;
    let schedule = options.schedule;
    let mut silent = |_: &str| {};
    let print: &mut dyn FnMut(&str) = match print {
        Some(print) => &mut **print,
        None => &mut silent,
    };
    let mut args = Vec::new();
    for argument in 0..step.tensors.len() {
        let shape = buffers[argument].as_ref().map_or(&step.shapes[argument][..], |buffer| buffer.shape());
        let shape = shape.iter().map(|&n| n as u64).collect();
        let bytes = step.bytes(argument, used, buffers);
        // What exceeds the memory is refused before anyone looks at the data.
        let data = if bytes.len() as u64 > MEMORY { Vec::new() } else { bytes.to_vec() };
        args.push(ptoc_interp::TensorArg { dtype: step.dtype(argument), shape, data });
    }
    let target = ptoc_opt::fragments::seen_by(&step.kernel, &session.target).into_owned();
    let capacity = Loc::ALL.into_iter().map(|loc| (loc, target.memory(loc).capacity)).collect();
    // Whoever looks on knows the statements of the plan's kernel, and sees them one after another.
    let physical = if observer.is_some() { None } else { step.pipes(session, schedule) };
    let (physical, pipes) = physical.unzip();
    // Sums as the target's own backend has them.
    let numerics = match session.exact {
        true => Numerics::default(),
        false => matrix_unit::numerics(&step.kernel, &session.target),
    };
    // Whoever looks on sees the statements of the plan's kernel.
    let own = numerics.kernel.filter(|_| observer.is_none());
    let kernel = physical.as_ref().or(own.as_ref()).unwrap_or(&step.kernel);
    let mut call = ptoc_interp::InterpreterLaunch {
        tensors: args,
        dims: step.dims.clone(),
        scalars: step.scalars.iter().map(|&bits| Some(bits)).collect(),
        options: ptoc_interp::Options {
            memory: MEMORY,
            capacity,
            storage: step.storage.clone(),
            pipes,
            overlap: true,
            matrix_unit: numerics.sums,
            exponential: numerics.exponential,
            rewritten: own.is_some(),
            ..ptoc_interp::Options::default()
        },
        print,
    };
    let outcome = match observer {
        Some(observer) => ptoc_interp::run_observed(kernel, &mut call, &mut **observer),
        None => ptoc_interp::run(kernel, &mut call).map_err(End::Trap),
    };
    let outcome = match outcome {
        Ok(outcome) => outcome,
        Err(End::Stopped) => return Ok(Ending::Stopped),
        Err(End::Trap(trap)) => return Err(Box::new(step.trapped(blamed(kernel, &trap)))),
    };
    let written = step.kernel.tensors.values().map(|t| t.dir != TensorDir::In);
    for ((argument, arg), _) in call.tensors.iter().enumerate().zip(written).filter(|(_, written)| *written) {
        step.bytes(argument, used, buffers).copy_from_slice(&arg.data);
    }
    for u in &outcome.unwritten {
        session.diagnostics.push(unwritten(step, u));
    }
    total.timed.extend(outcome.timing.map(|timing| Timed::new(kernel, timing)));
    let (s, total) = (outcome.stats, &mut total.counts);
    total.steps += s.steps;
    total.bytes_read += s.bytes_read;
    total.bytes_written += s.bytes_written;
    total.bytes_moved += s.bytes_moved;
    total.clusters += s.clusters;
    for (name, bytes) in s.tensors {
        let of = total.tensors.entry(format!("{}.{name}", step.kernel.name)).or_default();
        of.read += bytes.read;
        of.fetched += bytes.fetched;
        of.written += bytes.written;
    }
    for (name, n) in s.instructions {
        *total.instructions.entry(name).or_default() += n;
    }
    Ok(Ending::Done)
}

/// A trap as a diagnostic. Where the compiler has ordered the pipes, what is wrong with that is not the author's
/// mistake.
fn blamed(kernel: &Kernel, trap: &Trap) -> Diagnostic {
    let d = trap.to_diagnostic();
    if kernel.sync == SyncMode::Inserted && trap.code.as_str().starts_with("PA-112") {
        let d = Diagnostic { fixes: Vec::new(), ..d };
        return d.with_note(
            "a bug of ptoc: the compiler has ordered these pipes, and the program is not at fault: please report it",
        );
    }
    d
}

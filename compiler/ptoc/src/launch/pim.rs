//! Launches on units in memory: a kernel becomes a command stream, and the simulator executes what the stream's bytes say.

use super::plan::Step;
use crate::commands::sim;
use crate::session::Session;
use ptoc_diagnostics::{Diagnostic, FileId, codes};
use ptoc_ir::interp;
use ptoc_ir::tile::Kernel;
use ptoc_pim_sim::dram::{Command, Config};
use ptoc_pim_sim::machine::report::Report;
use ptoc_pim_sim::machine::{self, Options, Stop, device};
use ptoc_pim_stream::Stream;
use ptoc_pim_stream::stream::{Place, Role};
use ptoc_tensor::Tensor;
use serde_json::{Map, Value, json};
use std::cell::RefCell;

/// A stream that was written and read back, and its device.
#[derive(Debug)]
pub struct Compiled {
    stream: Stream,
    config: Config,
}

/// What the simulator says of a launch.
#[derive(Clone, Debug)]
pub struct Simulated {
    /// The kernel.
    pub name: String,
    /// The numbers.
    pub report: Report,
    /// The timeline, empty if it was not wanted.
    pub timeline: Result<String, Diagnostic>,
}

/// A mistake of ours: the compiler's stream is not what the simulator takes.
fn ours(kernel: &Kernel, what: &str) -> Box<Diagnostic> {
    let message = format!("the command stream of `{}`: {what}", kernel.name);
    let help = "this is an error in ptoc; please report it with the program";
    Box::new(Diagnostic::error(codes::SIM_SELF_CHECK, kernel.span, message).with_help(help))
}

/// The stream of a kernel with its prologue's values.
fn stream(session: &Session, kernel: &Kernel, values: &[u64]) -> Result<Stream, Box<Diagnostic>> {
    let files: RefCell<Vec<FileId>> = RefCell::new(Vec::new());
    let lines = |span: ptoc_diagnostics::Span| {
        let mut files = files.borrow_mut();
        let known = files.iter().position(|f| *f == span.file);
        let n = known.unwrap_or_else(|| {
            files.push(span.file);
            files.len() - 1
        });
        Place { file: n as u32 + 1, line: session.sources.position(span.file, span.start).line }
    };
    let mut stream = ptoc_pim::compile(kernel, values, &session.target, &lines)?;
    stream.files = files.borrow().iter().map(|f| session.sources.name(*f).to_owned()).collect();
    Ok(stream)
}

/// Compiles a launch; the stream is encoded, decoded and checked, so that nothing but its bytes reaches the simulator.
pub fn compile(session: &Session, step: &Step) -> Result<Compiled, Box<Diagnostic>> {
    let kernel = &step.kernel;
    let scalars: Vec<Option<u64>> = step.scalars.iter().map(|bits| Some(*bits)).collect();
    let values = interp::prologue(kernel, &step.dims, &scalars).map_err(|t| Box::new(t.to_diagnostic()))?;
    let stream = stream(session, kernel, &values)?;
    checked(kernel, &stream)
}

fn checked(kernel: &Kernel, stream: &Stream) -> Result<Compiled, Box<Diagnostic>> {
    let bytes = stream.encode().map_err(|e| ours(kernel, &e.to_string()))?;
    let stream = Stream::decode(&bytes).map_err(|e| ours(kernel, &format!("byte {}: {}", e.offset, e.message)))?;
    let config = device::config(&stream.device).map_err(|e| ours(kernel, &e.message))?;
    match stream.check(&device::geometry(&config)).first() {
        Some(fault) => Err(ours(kernel, &format!("{:?}: {}", fault.site, fault.message))),
        None => Ok(Compiled { stream, config }),
    }
}

/// The text of a kernel's stream, for `emit --stage pim`.
pub fn emit(session: &Session, kernel: &Kernel) -> Result<String, Box<Diagnostic>> {
    if !session.target.is_pim() {
        return Err(Box::new(super::wrong_backend(&session.target, "pim")));
    }
    if kernel.host {
        let message = format!("kernel `{}` is the host's, and has no command stream", kernel.name);
        let help = "kernels of the units have one: those whose grid says `on`";
        return Err(Box::new(Diagnostic::error(codes::UNIT_CANNOT, kernel.span, message).with_help(help)));
    }
    let scalars = vec![None; kernel.scalars.len()];
    let values = interp::prologue(kernel, &[], &scalars).map_err(|t| Box::new(t.to_diagnostic()))?;
    let stream = stream(session, kernel, &values)?;
    Ok(checked(kernel, &stream)?.stream.to_text())
}

/// Runs a launch on arrays, in the order of its tensors; returns those that it gives, too.
pub fn run(
    kernel: &Kernel,
    compiled: &Compiled,
    arrays: Vec<Tensor>,
    trace: bool,
) -> Result<(Simulated, Vec<Option<Tensor>>), Box<Diagnostic>> {
    let Compiled { stream, config } = compiled;
    let given = stream.tensors.iter().zip(arrays);
    let given = given.map(|(t, a)| matches!(t.role, Role::In | Role::InOut).then_some(a)).collect();
    let outcome = machine::run(stream, config, given, Options { trace }).map_err(|stop| stopped(kernel, &stop))?;
    let timeline = if trace { sim::timeline(stream, config, &outcome) } else { Ok(String::new()) };
    let simulated = Simulated { name: kernel.name.to_string(), report: outcome.report, timeline };
    Ok((simulated, outcome.outputs))
}

fn stopped(kernel: &Kernel, stop: &Stop) -> Box<Diagnostic> {
    // What mends a stream is no help to who wrote the kernel.
    let (code, _) = sim::failure(stop.kind);
    Box::new(Diagnostic::error(code, kernel.span, format!("the launch of `{}`: {stop}", kernel.name)))
}

/// Counts of all launches together, and the whole report of each.
pub fn stats(simulated: &[Simulated], stats: &mut Map<String, Value>) {
    let sum = |f: &dyn Fn(&Report) -> u64| simulated.iter().map(|s| f(&s.report)).sum::<u64>();
    let total = |f: &dyn Fn(&Report) -> f64| simulated.iter().map(|s| f(&s.report)).sum::<f64>();
    stats.insert("cycles".into(), json!(sum(&|r| r.ticks)));
    stats.insert("ns".into(), json!(total(&Report::ns)));
    stats.insert("unit_cycles".into(), json!(total(&|r| r.unit_cycles().unwrap_or(0.0))));
    let commands: Map<String, Value> = Command::ALL
        .iter()
        .map(|c| (c.name().to_owned(), sum(&|r| r.commands[*c as usize])))
        .filter(|(_, n)| *n > 0)
        .map(|(name, n)| (name, json!(n)))
        .collect();
    stats.insert("commands".into(), commands.into());
    for (n, name) in ["row_hits", "row_misses", "row_conflicts"].into_iter().enumerate() {
        stats.insert(name.into(), json!(sum(&|r| r.rows[n])));
    }
    stats.insert("bytes_moved".into(), json!(sum(&|r| r.bytes.host_moved + r.bytes.unit_moved)));
    stats.insert("bytes_useful".into(), json!(sum(&|r| r.bytes.host_useful)));
    stats.insert("energy_pj".into(), json!(total(&Report::picojoules)));
    let reports: Vec<Value> = simulated
        .iter()
        .map(|s| {
            let mut report = s.report.json();
            report["kernel"] = json!(s.name);
            report
        })
        .collect();
    stats.insert("per_bank".into(), reports.first().map_or(json!([]), |r| r["per_bank"].clone()));
    stats.insert("launches".into(), reports.into());
}

//! Programs on units in memory: they become one command stream, and the simulator executes what the stream's bytes say.

use super::interp::interpret;
use super::pim_file;
use super::pim_usage;
use super::pim_windows::{self, StreamLaunch, WindowMove, window_moves};
use super::registry::targets_of;
use super::{Artefact, Backend, Capabilities, Compiled, PIM, ProgramRun, Refusal, Timed, wrong_stage};
use crate::devices;
use crate::launch::{BackendLaunch, Plan, PlannedLaunch, RunOptions, RunOutcome, Total, Used, counts, unwritten};
use crate::session::{CompilationUnit, Failed, Session};
use crate::simulator;
use crate::stages::BackendStage;
use ptoc_analysis::TensorSource;
use ptoc_diagnostics::{Diagnostic, FileId, Span, codes, list, suggest};
use ptoc_interp::Unwritten;
use ptoc_ir::tile::{Kernel, TensorDir, TensorId};
use ptoc_isa::{Loc, Preset, Target};
use ptoc_passes::pipeline::Pipeline;
use ptoc_pim::hbm::usage::Usage;
use ptoc_pim::program::{Array, LaunchWork, PimProgram};
use ptoc_pim::{movement, program};
use ptoc_pim_sim::dram::{Command, Config, Timing};
use ptoc_pim_sim::machine::report::Report;
use ptoc_pim_sim::machine::{self, Fail, MachineStop, Options, device};
use ptoc_pim_stream::Stream;
use ptoc_pim_stream::stream::{Device, Role, SourceLine};
use ptoc_tensor::Tensor;
use ptoc_trace::Trace;
use serde_json::{Map, Value, json};
use std::cell::RefCell;

/// A stream that was written and read back, and its device.
#[derive(Debug)]
struct Linked {
    stream: Stream,
    config: Config,
    /// The launches that the host carries out, in their order in the stream.
    hosted: Vec<StreamLaunch>,
    /// The source line of each step.
    lines: Vec<Span>,
    /// How much of the device launches use, by the step of the plan.
    usage: Vec<(usize, Usage)>,
}

/// What the simulator says of a program.
#[derive(Clone, Debug)]
pub struct Simulated {
    /// The program.
    pub name: String,
    /// The numbers.
    pub report: Report,
    /// The timeline, empty if it was not wanted.
    pub timeline: Result<Trace, Diagnostic>,
}

/// The backend: a plan becomes one command stream, which the simulator executes.
pub(super) struct Pim;

/// The command stream.
const STAGE: BackendStage = BackendStage {
    name: "pim",
    about: "Command stream for units in memory; into a file `.pim`, its binary form",
    plan: true,
    extension: Some("pim"),
};

impl Backend for Pim {
    fn name(&self) -> &'static str {
        "pim"
    }

    fn about(&self) -> &'static str {
        "Command streams on simulated units in memory"
    }

    fn serves(&self, target: &Target) -> bool {
        target.is_pim()
    }

    fn preset(&self, name: &str, at: Span) -> Result<Preset, Box<Diagnostic>> {
        let device = Device { preset: name.to_owned(), refresh: Default::default(), overrides: Vec::new() };
        let config = device::config(&device)
            .map_err(|e| Box::new(Diagnostic::error(codes::SETTING_VALUE, at, e.message).with_help(e.help)))?;
        Ok(preset(name.to_owned(), &config, Vec::new()))
    }

    fn memory(&self, file: FileId, text: &str, target: &Target) -> Result<Preset, Vec<Diagnostic>> {
        let named = target.device.as_ref().map(|d| d.preset.as_str()).unwrap_or_default();
        let place = |path: &[&str]| devices::place(file, text, path);
        if !named.is_empty() {
            return self.preset(named, place(&["device", "preset"])).map_err(|d| vec![*d]);
        }
        let config = pim_file::dram(file, text, &target.name)?;
        if config.org.channel != 1 {
            let message = "how many channels there are is said by `device.stacks` and `device.channels`";
            let d = Diagnostic::error(codes::DEVICE_FILE, place(&["dram", "org", "channel"]), message);
            return Err(vec![d.with_help("leave `channel` out of `[dram.org]`")]);
        }
        if let Some((name, clocks)) = longer_than_refresh(&config) {
            let interval = config.timing.refi;
            let message = format!("{name} is {clocks} clocks, longer than the {interval} between two refreshes");
            return Err(vec![Diagnostic::error(codes::DEVICE_FILE, place(&["dram", "timing_nCK", name]), message)]);
        }
        match device::describe(&config) {
            Ok(Device { preset: name, overrides, .. }) => Ok(preset(name, &config, overrides)),
            Err(e) => {
                let d = Diagnostic::error(codes::DEVICE_FILE, place(&["dram"]), e.message);
                Err(vec![if e.help.is_empty() { d } else { d.with_help(e.help) }])
            }
        }
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { units: true, limits: true, timed: Some(Timed::Simulated), ..Capabilities::default() }
    }

    fn pipeline(&self) -> Option<Pipeline> {
        Some(Pipeline::Placed)
    }

    fn stages(&self) -> &'static [BackendStage] {
        &[STAGE]
    }

    fn emit_plan(&self, session: &mut Session, plan: &Plan, _: &BackendStage) -> Result<Artefact, Failed> {
        let stream = emit(session, plan).or_else(|d| session.fail(*d))?;
        // It was encoded once, when it was checked.
        match stream.encode() {
            Ok(bytes) => Ok(Artefact { text: stream.to_text(), binary: Some(bytes) }),
            Err(e) => session.fail(Diagnostic::global(codes::SIM_SELF_CHECK, e.to_string())),
        }
    }

    fn check(
        &self,
        session: &mut Session,
        unit: &CompilationUnit,
        plan: &Plan,
    ) -> Result<Vec<Diagnostic>, Box<Diagnostic>> {
        // A kernel of the host alone has no stream.
        if plan.is_host() {
            return Ok(Vec::new());
        }
        let linked = compile(session, plan)?;
        Ok(pim_usage::advice(session, unit, plan, &linked.usage))
    }

    fn refuses_at_any_size(&self, target: &Target, kernel: &Kernel) -> Option<Box<Diagnostic>> {
        ptoc_pim::refused_at_any_size(kernel, target)
    }

    fn compile(&self, session: &mut Session, plan: &Plan) -> Result<Compiled, Failed> {
        let begin = session.clock.now();
        let compiled = compile(session, plan);
        session.clock.phase("command stream", begin);
        match compiled {
            Ok(linked) => Ok(Compiled::Program(Box::new(linked))),
            Err(d) => session.fail(*d),
        }
    }

    fn refusal(&self, target: &Target) -> Refusal {
        Refusal {
            why: format!("`{}` has no units in memory, which is what `pim` runs", target.name),
            instead: Some(format!("give {}, where `pim` is the default", targets_of(PIM))),
        }
    }

    fn other_stages(&self, target: &Target) -> Refusal {
        Refusal {
            why: format!(
                "`{}` has units in memory: its kernels become a command stream, and not machine code",
                target.name
            ),
            instead: Some("`--stage pim` shows the stream, `--stage placed` what it is made from".into()),
        }
    }
}

impl super::CompiledProgram for Linked {
    fn advice(&self, session: &mut Session, unit: &CompilationUnit, plan: &Plan) -> Vec<Diagnostic> {
        pim_usage::advice(session, unit, plan, &self.usage)
    }

    fn run(&self, session: &mut Session, run: ProgramRun<'_>) -> Result<RunOutcome, Failed> {
        let ProgramRun { plan, tensors, unfilled, options, print } = run;
        let begin = session.clock.now();
        let mut total = Total::default();
        let args = tensors.len();
        // Kernels of the host run where their numbers are defined, on the interpreter.
        let result = simulate(plan, self, tensors, options, &mut |launch, arrays| {
            let number = match launch {
                StreamLaunch::Kernel(number) => number,
                StreamLaunch::Window { step, argument, whole, part, fills } => {
                    pim_windows::carry_out(&plan.steps[step], argument, (whole, part), fills, arrays);
                    return Ok(());
                }
            };
            let step = &plan.steps[number];
            let mut used = Used::of_some(arrays, args);
            let mut buffers = step.buffers(&mut used)?;
            interpret(&mut BackendLaunch {
                session,
                number,
                step,
                program: plan.program,
                used: &mut used,
                buffers: &mut buffers,
                unfilled: &[],
                options,
                print: Some(&mut *print),
                observer: None,
                total: &mut total,
            })?;
            step.collect(&mut used, &buffers);
            Ok(())
        });
        let run_time = session.clock.phase(format!("run {}", plan.name), begin);
        let simulated = match result {
            Ok(simulated) => simulated,
            Err(d) => return session.fail(*d),
        };
        for (step, tensors) in plan.steps.iter().zip(unfilled).filter(|(step, _)| !step.kernel.host) {
            for hole in holes(step, tensors) {
                session.diagnostics.push(unwritten(step, &hole));
            }
        }
        let mut counted = Map::new();
        let blocks = plan.steps.iter().map(|s| s.blocks).fold(0, u64::saturating_add);
        counts(blocks, &mut counted, run_time);
        stats(&simulated, &mut counted);
        let simulated = Some(simulated);
        Ok(RunOutcome { run_time, stats: counted, timed: total.timed, simulated, stopped: false })
    }
}

/// A timing parameter beside those of refresh that is longer than the refresh interval: of such a delay eight or more
/// refreshes come due behind each other, which is more than may be postponed.
fn longer_than_refresh(config: &Config) -> Option<(&'static str, u32)> {
    // The rate and the length of a clock are no delays.
    let is_delay = |name: &&str| name.starts_with('n') && !name.starts_with("nREF") && !name.starts_with("nRFC");
    let own = Timing::PARAMETERS.iter().map(|p| p.name).filter(is_delay);
    let mut clocks = own.filter_map(|name| Some((name, config.timing.get(name)?)));
    clocks.find(|(_, clocks)| config.timing.refi != 0 && *clocks > config.timing.refi)
}

/// A device as targets see it.
fn preset(name: String, config: &Config, overrides: Vec<(String, u32)>) -> Preset {
    let g = device::geometry(config);
    Preset {
        name,
        pseudo_channels: g.pch,
        bank_groups: g.bg,
        banks: g.bank,
        rows: g.row,
        bursts: g.col,
        burst_bytes: g.burst,
        overrides,
    }
}

/// The stream of a plan, for `emit --stage pim`.
pub fn emit(session: &Session, plan: &Plan) -> Result<Stream, Box<Diagnostic>> {
    if !PIM.serves(&session.target) {
        return Err(Box::new(wrong_stage(&session.target, STAGE.name)));
    }
    match &plan.steps[..] {
        [step] if plan.is_host() => {
            let message = format!("kernel `{}` is the host's, and has no command stream", step.kernel.name);
            let help = "kernels of the units have one: those whose grid says `on`; and programs that launch some";
            Err(Box::new(Diagnostic::error(codes::UNIT_CANNOT, step.span, message).with_help(help)))
        }
        _ => compile(session, plan).map(|compiled| compiled.stream),
    }
}

/// A mistake of ours: the compiler's stream is not what the simulator takes.
fn ours(plan: &Plan, what: &str) -> Box<Diagnostic> {
    let message = format!("the command stream of `{}`: {what}", plan.name);
    let help = "this is an error in ptoc; please report it with the program";
    Box::new(Diagnostic::error(codes::SIM_SELF_CHECK, span(plan), message).with_help(help))
}

fn span(plan: &Plan) -> Span {
    plan.steps.first().map_or(Span::default(), |s| s.span)
}

/// Compiles a plan; the stream is encoded, decoded and checked, so that nothing but its bytes reaches the simulator.
fn compile(session: &Session, plan: &Plan) -> Result<Linked, Box<Diagnostic>> {
    let files: RefCell<Vec<FileId>> = RefCell::new(Vec::new());
    let lines = |span: Span| {
        let mut files = files.borrow_mut();
        let known = files.iter().position(|f| *f == span.file);
        let n = known.unwrap_or_else(|| {
            files.push(span.file);
            files.len() - 1
        });
        SourceLine { file: n as u32 + 1, line: session.sources.position(span.file, span.start).line }
    };
    let moves = window_moves(plan, &session.target.name);
    let (program, launched) = program(session, plan, &moves)?;
    let mut linked = program::compile(&program, &session.target, &lines)?;
    if let Some(d) = absent(plan, &linked.absent) {
        return Err(d);
    }
    linked.stream.files = files.borrow().iter().map(|f| session.sources.name(*f).to_owned()).collect();
    let bytes = linked.stream.encode().map_err(|e| ours(plan, &e.to_string()))?;
    let stream = Stream::decode(&bytes).map_err(|e| ours(plan, &format!("byte {}: {}", e.offset, e.message)))?;
    let mut config = device::config(&stream.device).map_err(|e| ours(plan, &e.message))?;
    if session.target.device.as_ref().is_some_and(|d| !d.overrides.is_empty()) {
        config.name = session.target.name.clone();
    }
    match stream.check(&device::geometry(&config)).first() {
        Some(fault) => Err(ours(plan, &format!("{:?}: {}", fault.site, fault.message))),
        None => {
            let files = files.into_inner();
            let of = |place: SourceLine| match files.get((place.file as usize).wrapping_sub(1)) {
                Some(&file) => line(session, file, place.line),
                None => span(plan),
            };
            let lines = stream.steps.iter().map(|s| of(s.place)).collect();
            let hosted = linked.hosted.iter().map(|n| launched[*n]).collect();
            let usage = linked.usage.into_iter().filter_map(|(n, usage)| match launched[n] {
                StreamLaunch::Kernel(step) => Some((step, usage)),
                StreamLaunch::Window { .. } => None,
            });
            Ok(Linked { stream, config, hosted, lines, usage: usage.collect() })
        }
    }
}

/// What stands in a line, counted from 1.
fn line(session: &Session, file: FileId, line: u32) -> Span {
    let text = session.sources.line(file, line.saturating_sub(1));
    let start = session.sources.line_start(file, line.saturating_sub(1)) + text.len() - text.trim_start().len();
    Span::new(file, start as u32, (start + text.trim().len()) as u32)
}

/// The plan with arrays by number: arguments, tensors of the program, scratch of its kernels and windows; and what its
/// launches are.
fn program<'p>(
    session: &Session,
    plan: &'p Plan,
    moves_of_windows: &'p [WindowMove],
) -> Result<(PimProgram<'p>, Vec<StreamLaunch>), Box<Diagnostic>> {
    let mut arrays = Vec::new();
    let mut launched = Vec::new();
    for a in &plan.arguments {
        let role = match a.dir {
            TensorDir::In => Role::In,
            TensorDir::Out => Role::Out,
            TensorDir::InOut | TensorDir::Scratch => Role::InOut,
        };
        let shape = extents(&a.shape).ok_or_else(|| too_large(&a.name, a.span))?;
        arrays.push(Array { name: a.name.to_string(), dtype: a.dtype, shape, role, fill: None, span: a.span });
    }
    for l in &plan.locals {
        let shape: Option<Vec<u32>> = l.shape.iter().map(|&n| u32::try_from(n).ok()).collect();
        let shape = shape.ok_or_else(|| too_large(&l.name, l.span))?;
        let name = l.name.to_string();
        arrays.push(Array { name, dtype: l.dtype, shape, role: Role::Temp, fill: l.fill, span: l.span });
    }
    let args = plan.arguments.len() as u32;
    let mut launches = Vec::new();
    for (number, step) in plan.steps.iter().enumerate() {
        let scalars: Vec<Option<u64>> = step.scalars.iter().map(|bits| Some(*bits)).collect();
        let values =
            ptoc_interp::prologue(&step.kernel, &step.dims, &scalars).map_err(|t| Box::new(t.to_diagnostic()))?;
        let extents: Vec<i64> = step.kernel.grid.iter().map(|d| values[d.extent.as_u32() as usize] as i64).collect();
        ptoc_interp::blocks(&step.kernel, &extents).map_err(|t| Box::new(t.to_diagnostic()))?;
        let mut sources = step.tensors.iter();
        let mut numbers = Vec::new();
        for t in step.kernel.tensors.values() {
            let source = if t.dir == TensorDir::Scratch { None } else { sources.next() };
            numbers.push(match source {
                Some(TensorSource::Arg(i)) => *i as u32,
                Some(TensorSource::Local(i)) => args + *i as u32,
                None => {
                    let extents: Option<Vec<u32>> =
                        t.shape.iter().map(|v| u32::try_from(values[v.as_u32() as usize]).ok()).collect();
                    let shape = extents.ok_or_else(|| too_large(&t.name, t.span))?;
                    let (name, dtype) = (t.name.to_string(), t.dtype);
                    arrays.push(Array { name, dtype, shape, role: Role::Temp, fill: None, span: t.span });
                    arrays.len() as u32 - 1
                }
            });
        }
        // An array for each window that units are given.
        let mut parts = vec![None; step.windows.len()];
        for (n, t) in step.kernel.tensors.values().enumerate().take(parts.len()) {
            if step.kernel.host || step.windows[n].is_none() {
                continue;
            }
            let shape = self::extents(&step.shapes[n]).ok_or_else(|| too_large(&t.name, t.span))?;
            let (name, dtype) = (format!("{}.window", arrays[numbers[n] as usize].name), t.dtype);
            arrays.push(Array { name, dtype, shape, role: Role::Temp, fill: None, span: t.span });
            parts[n] = Some((numbers[n], arrays.len() as u32 - 1));
            numbers[n] = arrays.len() as u32 - 1;
        }
        let moved = |fills: bool| moves_of_windows.iter().filter(move |m| m.step == number && m.fills == fills);
        let windows = |fills, launches: &mut Vec<_>, launched: &mut Vec<_>| -> Result<(), Box<Diagnostic>> {
            for m in moved(fills) {
                let Some((whole, part)) = parts[m.argument] else { continue };
                let nests = if fills { pim_windows::nests(step, m.argument) } else { None };
                launches.push(program::ProgramLaunch {
                    kernel: &m.kernel,
                    values: ptoc_interp::prologue(&m.kernel, &[], &[]).map_err(|t| Box::new(t.to_diagnostic()))?,
                    arrays: if fills { vec![whole, part] } else { vec![part, whole] },
                    elsewhere: Vec::new(),
                    work: nests.map_or(LaunchWork::Host, LaunchWork::Moves),
                    span: step.span,
                });
                launched.push(StreamLaunch::Window { step: number, argument: m.argument, whole, part, fills });
            }
            Ok(())
        };
        windows(true, &mut launches, &mut launched)?;
        let work = match (step.kernel.host, moves(step, &session.target)) {
            (false, _) if step.storage.iter().any(Option::is_some) => return Err(Box::new(laid_out(step))),
            (false, _) => LaunchWork::Units,
            (true, Some(nests)) => LaunchWork::Moves(nests),
            (true, None) => LaunchWork::Host,
        };
        let elsewhere = step.elsewhere.clone();
        launches.push(program::ProgramLaunch {
            kernel: &step.kernel,
            values,
            arrays: numbers,
            elsewhere,
            work,
            span: step.span,
        });
        launched.push(StreamLaunch::Kernel(number));
        windows(false, &mut launches, &mut launched)?;
    }
    for n in 0..arrays.len() {
        let taken = |name: &str, arrays: &[Array]| arrays[..n].iter().any(|a| a.name == name);
        let plain = arrays[n].name.clone();
        let mut k = 2;
        while taken(&arrays[n].name, &arrays) {
            arrays[n].name = format!("{plain}.{k}");
            k += 1;
        }
    }
    let resident = resident(session, plan)?;
    Ok((PimProgram { arrays, launches, whole: plan.program, resident }, launched))
}

/// The arguments that are said to be in the memory already, by number.
fn resident(session: &Session, plan: &Plan) -> Result<Vec<u32>, Box<Diagnostic>> {
    let number = |name: &String| {
        let Some(n) = plan.arguments.iter().position(|a| a.name.as_str() == name) else {
            let message = format!("`--resident {name}`: `{}` has no such argument", plan.name);
            let inputs: Vec<&str> = inputs(plan).collect();
            let d = Diagnostic::error(codes::RESIDENT, span(plan), message);
            return Err(Box::new(match suggest(name, inputs.iter().copied()) {
                Some(near) => d.with_help(format!("write `--resident {near}`")),
                None => d.with_help(format!("its inputs are {}", list(inputs))),
            }));
        };
        let a = &plan.arguments[n];
        match a.dir {
            TensorDir::In | TensorDir::InOut => Ok(n as u32),
            _ => {
                let message = format!("`{name}` is no input: it is not there before a run");
                let d = Diagnostic::error(codes::RESIDENT, a.span, message);
                Err(Box::new(d.with_help("declare it `inout` if a run goes on with what the one before has left")))
            }
        }
    };
    session.resident.iter().map(number).collect()
}

fn inputs(plan: &Plan) -> impl Iterator<Item = &str> {
    plan.arguments.iter().filter(|a| a.dir != TensorDir::Out).map(|a| a.name.as_str())
}

/// Resident arguments that no launch of the units has in its banks.
fn absent(plan: &Plan, absent: &[u32]) -> Option<Box<Diagnostic>> {
    let a = plan.arguments.get(*absent.first()? as usize)?;
    let message = format!("`{}` cannot be resident: no launch has it in the banks of the units", a.name);
    let d = Diagnostic::error(codes::RESIDENT, a.span, message)
        .with_label("the host has it")
        .with_note("the host brings it to the units' registers, or reads it itself, in each launch");
    Some(Box::new(d.with_help("leave it out of `--resident`")))
}

fn extents(shape: &[usize]) -> Option<Vec<u32>> {
    shape.iter().map(|&n| u32::try_from(n).ok()).collect()
}

fn too_large(name: &str, span: Span) -> Box<Diagnostic> {
    Box::new(Diagnostic::error(codes::UNIT_ROOM, span, format!("`{name}` is too large for the memory")))
}

/// A kernel of the units has tensors with strides of their own.
fn laid_out(step: &PlannedLaunch) -> Diagnostic {
    let tensors = step.kernel.tensors.values().zip(&step.storage);
    let t = tensors.filter(|(_, s)| s.is_some()).map(|(t, _)| t).next();
    let (name, span) = t.map_or((String::new(), step.span), |t| (t.name.to_string(), t.span));
    let message = format!("the units do not know the strides of `{name}`");
    Diagnostic::error(codes::UNIT_CANNOT, span, message)
        .with_label("a layout of its own")
        .with_note("where an array lies in their memory is said by `at`, or by the compiler")
        .with_help(
            "give the tensor extents alone, and its place with `at LAYOUT`; or let the host run the kernel: \
            `#[on(host)]`",
        )
}

/// Most elements of arrays whose movements are looked into.
const MOVED: usize = 1 << 24;

/// The loops by which a kernel of the host moves the elements of one array to another, if it does nothing else. It is
/// found out by letting it move numbers of elements.
fn moves(step: &PlannedLaunch, target: &Target) -> Option<Vec<movement::Nest>> {
    let kernel = &step.kernel;
    let as_it_is = step.storage.iter().all(Option::is_none) && step.windows.iter().all(Option::is_none);
    let (src, dst) = movement::ends(kernel).filter(|_| kernel.host && as_it_is)?;
    let scalars: Vec<Option<u64>> = step.scalars.iter().map(|bits| Some(*bits)).collect();
    let values = ptoc_interp::prologue(kernel, &step.dims, &scalars).ok()?;
    let shape = |id| kernel.tensors[id].shape.iter().map(|v| values[v.as_u32() as usize]).collect::<Vec<u64>>();
    let shapes = [shape(src), shape(dst)];
    let [from, to] = shapes.each_ref().map(|s| s.iter().try_fold(1u64, |n, e| n.checked_mul(*e)));
    let limit = |n: Option<u64>| n.and_then(|n| usize::try_from(n).ok()).filter(|n| (1..=MOVED).contains(n));
    let (from, to) = (limit(from)?, limit(to)?);
    let (dtype, size) = (kernel.tensors[src].dtype, kernel.tensors[src].dtype.size());
    // Elements of an `inout` array that nothing moves to stay 0, so numbers begin with 1 there.
    let partly = kernel.tensors[dst].dir == TensorDir::InOut;
    let one = usize::from(partly);
    let mut map = vec![0u32; to];
    // As many bits of the numbers at a time as an element has.
    let bits = (8 * size).min(32) as u32;
    let mut shift = 0;
    while shift == 0 || (from + one) >> shift > 0 {
        let part = |n: usize| ((n >> shift) as u64 & (u64::MAX >> (64 - bits))).to_le_bytes();
        let data: Vec<u8> = (0..from).flat_map(|n| part(n + one).into_iter().chain([0; 8]).take(size)).collect();
        let tensors = kernel.tensors.iter().map(|(id, _)| match id == src {
            true => ptoc_interp::TensorArg { dtype, shape: shapes[0].clone(), data: data.clone() },
            false => ptoc_interp::TensorArg { dtype, shape: shapes[1].clone(), data: vec![0; to * size] },
        });
        let seen = ptoc_placement::memories::seen_by(kernel, target);
        let capacity = Loc::ALL.into_iter().map(|loc| (loc, seen.memory(loc).capacity)).collect();
        let mut launch = ptoc_interp::InterpreterLaunch {
            tensors: tensors.collect(),
            dims: step.dims.clone(),
            scalars: scalars.clone(),
            options: ptoc_interp::Options { capacity, ..ptoc_interp::Options::default() },
            print: &mut |_| {},
        };
        let outcome = ptoc_interp::run(kernel, &mut launch).ok()?;
        if !outcome.unwritten.is_empty() {
            return None;
        }
        let moved = &launch.tensors[dst.as_u32() as usize].data;
        for (n, element) in map.iter_mut().zip(moved.chunks_exact(size)) {
            let mut bytes = [0; 8];
            bytes[..size].copy_from_slice(element);
            *n |= (u64::from_le_bytes(bytes) << shift) as u32;
        }
        shift += bits;
        if shift >= 32 {
            break;
        }
    }
    if partly {
        let own: Vec<Option<u32>> = map.iter().map(|n| n.checked_sub(1)).collect();
        return movement::part(&own);
    }
    let shape: Option<Vec<u32>> = shapes[1].iter().map(|e| u32::try_from(*e).ok()).collect();
    movement::nests(&map, &shape?)
}

/// Carries out the launch with this number on the host's arrays: arguments, then tensors of the program.
type HostLaunch<'h> = &'h mut dyn FnMut(StreamLaunch, &mut [Option<Tensor>]) -> Result<(), Box<Diagnostic>>;

/// Runs a program on its arguments, which hold the results afterwards. With `run.rules` the commands of its DRAM are
/// held to the rules by the independent checker.
fn simulate(
    plan: &Plan,
    compiled: &Linked,
    tensors: &mut [Tensor],
    run: &RunOptions,
    host: HostLaunch<'_>,
) -> Result<Simulated, Box<Diagnostic>> {
    let Linked { stream, config, hosted, .. } = compiled;
    let &RunOptions { keep, rules, threads, timing_only, .. } = run;
    let given = stream.tensors.iter().zip(tensors.iter());
    let wanted = |role| matches!(role, Role::In | Role::InOut) && !timing_only;
    let given = given.map(|(t, a)| wanted(t.role).then(|| a.clone())).collect();
    let options = Options { trace: keep.trace || rules, history: keep.history, threads, timing_only };
    let mut hosted = hosted.iter();
    let mut failed = None;
    let outcome = machine::run_with(stream, config, given, options, &mut |kernel, arrays| {
        let launch = *hosted.next().expect("one for each of the stream's");
        host(launch, arrays).map_err(|d| {
            let stop =
                MachineStop { kind: Fail::Host, step: None, op: None, tensor: None, message: kernel.kernel.clone() };
            failed = Some(d);
            stop
        })
    });
    let outcome = match (outcome, failed) {
        (Ok(outcome), _) => outcome,
        (Err(_), Some(d)) => return Err(d),
        (Err(stop), None) => return Err(stopped(plan, compiled, &stop)),
    };
    if rules && !keep.trace {
        simulator::rules_kept(stream, config, &outcome)?;
    }
    let timeline = if keep.trace { simulator::timeline(stream, config, &outcome) } else { Ok(Trace::default()) };
    for (tensor, output) in tensors.iter_mut().zip(outcome.outputs) {
        if let Some(output) = output {
            *tensor = output;
        }
    }
    Ok(Simulated { name: plan.name.to_string(), report: outcome.report, timeline })
}

/// What a launch on units leaves unwritten of its tensors `of`; nothing, where that is not found out.
fn holes(step: &PlannedLaunch, of: &[TensorId]) -> Vec<Unwritten> {
    let scalars: Vec<Option<u64>> = step.scalars.iter().map(|bits| Some(*bits)).collect();
    let values = ptoc_interp::prologue(&step.kernel, &step.dims, &scalars).ok();
    let found = values.filter(|_| !of.is_empty());
    found.and_then(|v| ptoc_pim::holes::unwritten(&step.kernel, &v, of, &step.storage)).unwrap_or_default()
}

fn stopped(plan: &Plan, compiled: &Linked, stop: &MachineStop) -> Box<Diagnostic> {
    // What mends a stream is no help to who wrote the kernel.
    let (code, _) = simulator::failure(stop.kind);
    let at = stop.step.and_then(|n| compiled.lines.get(n)).copied().unwrap_or(span(plan));
    let mut d = Diagnostic::error(code, at, stop.message.clone());
    if let Some(step) = stop.step.and_then(|n| compiled.stream.steps.get(n)) {
        d = d.with_label(format!("a `{}` of the command stream comes from here", step.action.name()));
    }
    Box::new(d)
}

/// The counts of a run, and the whole report.
fn stats(simulated: &Simulated, stats: &mut Map<String, Value>) {
    let r = &simulated.report;
    let report = r.json();
    stats.insert("cycles".into(), report["cycles"].clone());
    stats.insert("ns".into(), json!(r.ns()));
    stats.insert("unit_cycles".into(), json!(r.unit_cycles().unwrap_or(0.0)));
    let commands: Map<String, Value> = Command::ALL
        .iter()
        .map(|c| (c.name().to_owned(), r.commands[*c as usize]))
        .filter(|(_, n)| *n > 0)
        .map(|(name, n)| (name, json!(n)))
        .collect();
    stats.insert("commands".into(), commands.into());
    for (n, name) in ["row_hits", "row_misses", "row_conflicts"].into_iter().enumerate() {
        stats.insert(name.into(), json!(r.rows[n]));
    }
    // Both of the host's path; what units move in their banks is no part of it.
    stats.insert("bytes_moved".into(), json!(r.bytes.host_moved));
    stats.insert("bytes_useful".into(), json!(r.bytes.host_useful));
    stats.insert("unit_bytes_moved".into(), json!(r.bytes.unit_moved));
    stats.insert("energy_pj".into(), json!(r.picojoules()));
    for name in ["per_bank", "launches"] {
        stats.insert(name.into(), report[name].clone());
    }
    stats.insert("report".into(), report);
}

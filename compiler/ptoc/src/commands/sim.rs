//! `ptoc sim`

use super::dram::input::{Inputs, is_array};
use crate::args::SimArgs;
use crate::io::Io;
use crate::{DONE, ERRORS};
use ptoc_diagnostics::{Code, Diagnostic, FileId, Severity, Span, codes, list, plural, suggest};
use ptoc_driver::files::{ArrayFile, Outputs, numpy_name, read_bytes};
use ptoc_driver::simulator::{failure, timeline};
use ptoc_pim_sim::dram::Config;
use ptoc_pim_sim::machine::{self, Fail, MachineStop, Options, device};
use ptoc_pim_stream::binary::MAGIC;
use ptoc_pim_stream::stream::{Action, Refresh, Role, TensorDecl};
use ptoc_pim_stream::text::{HEADER, Parsed};
use ptoc_pim_stream::{FaultKind, Geometry, Site, Stream, StreamFault, Unordered, Unwritten};
use ptoc_tensor::{DType, Tensor, npy};
use ptoc_trace::Format;
use ptoc_views::sim::report;
use std::ops::Range;
use std::path::PathBuf;

/// A stream and, if it was read as text, where its parts stand.
struct StreamSource {
    name: String,
    stream: Stream,
    text: Option<(FileId, Parsed)>,
}

/// Executes a stream.
pub fn sim(args: &SimArgs, io: &mut Io<'_>) -> u8 {
    let mut inputs = Inputs::default();
    if let Err(d) = simulate(args, &mut inputs, io) {
        inputs.found.push(d);
    }
    match inputs.flush(args.message_format, io).errors {
        0 => DONE,
        _ => ERRORS,
    }
}

/// What is wrong with more than one thing is in `inputs.found` then.
fn simulate(args: &SimArgs, inputs: &mut Inputs, io: &mut Io<'_>) -> Result<(), Diagnostic> {
    let source = read(args, inputs)?;
    let Some(config) = config(args, &source, inputs)? else { return Ok(()) };
    if inputs.energy(&config).is_none() {
        return Ok(());
    }
    let faults = source.stream.check(&device::geometry(&config));
    if !faults.is_empty() {
        for fault in &faults {
            let d = source.fault(fault);
            inputs.found.push(d);
        }
        return Ok(());
    }
    if let Some(d) = source.hosted() {
        return Err(d);
    }
    for n in source.stream.unread() {
        let name = &source.stream.tensors[n].name;
        let message = format!("`{name}` is `out`, and no step reads it: the host would get zeros");
        let help = format!("add `read {name} at ..` behind the step that makes its values, or declare it `temp`");
        let d = source.at(codes::STREAM_ARRAY, Some(Site::Tensor(n)), message).with_help(help);
        inputs.found.push(d);
    }
    for u in source.stream.unordered(&device::geometry(&config)) {
        let d = source.unordered(&u);
        inputs.found.push(d);
    }
    for u in source.stream.unwritten(&device::geometry(&config)) {
        let d = source.unwritten(&u, &device::geometry(&config));
        inputs.found.push(d);
    }
    if inputs.found.has_errors() {
        return Ok(());
    }
    // Places are taken before the work, so that what cannot be written is told at once.
    let mut outputs = Outputs::new();
    let mut arrays = Vec::new();
    for (n, (name, path)) in args.output.iter().enumerate() {
        let number = array(&source.stream, "--out", &args.output[..n], name)?;
        arrays.push((number, outputs.plan(path)?));
    }
    let trace = args.trace.as_deref().map(|path| outputs.plan(path)).transpose()?;
    let page = args.html.as_deref().map(|path| outputs.plan(path)).transpose()?;
    outputs.keep(&args.stream, "the stream of this call")?;
    inputs.keep(&mut outputs)?;
    for (name, path) in &args.input {
        let in_place = |(at, (to, _)): (usize, &(String, PathBuf))| to == name && outputs.writes(arrays[at].1, path);
        if !args.output.iter().enumerate().any(in_place) {
            outputs.keep(path, format!("the array of `{name}`"))?;
        }
    }
    let given = given(args, &source)?;
    let options = Options {
        trace: trace.is_some(),
        history: page.as_ref().map(|_| args.html_from),
        threads: args.threads,
        ..Options::default()
    };
    let outcome =
        machine::run(&source.stream, &config, given, options).map_err(|stop| source.stop(&stop, args, inputs))?;
    for (number, place) in arrays {
        if let Some(tensor) = &outcome.outputs[number] {
            outputs.write(place, &npy::write(tensor))?;
        }
    }
    if let Some(place) = trace {
        let format = args.trace.as_deref().map_or(Format::Chrome, Format::of);
        outputs.write(place, &timeline(&source.stream, &config, &outcome)?.write(format))?;
    }
    if let Some(place) = page {
        outputs
            .write(place, ptoc_views::sim::page(&source.name, &[(&source.name, &outcome.report)], &[]).as_bytes())?;
    }
    outputs.commit()?;
    let text = match (args.json, args.stats) {
        (true, _) => format!("{}\n", outcome.report.json()),
        (_, true) => report::text(&source.name, &outcome.report),
        _ => report::summary(&source.name, &outcome.report),
    };
    io.print(&text);
    Ok(())
}

/// Bytes of the magic number that a damaged stream must still have to be taken for one.
const LEFT: usize = 4;

fn read(args: &SimArgs, inputs: &mut Inputs) -> Result<StreamSource, Diagnostic> {
    let name = args.stream.display().to_string();
    let bytes = read_bytes(&args.stream, "stream", ".pim")?;
    let refused = |message: String, help: &str| {
        Err(Diagnostic::global(codes::STREAM_BINARY, format!("stream `{name}`{message}")).with_help(help))
    };
    let like = MAGIC.iter().zip(&bytes).filter(|(wanted, byte)| wanted == byte).count();
    if bytes.first() == Some(&MAGIC[0]) || like >= LEFT {
        return match Stream::decode(&bytes) {
            Ok(stream) => Ok(StreamSource { name, stream, text: None }),
            Err(e) => refused(format!(", byte {}: {}", e.offset, e.message), "write the file again with what made it"),
        };
    }
    if is_array(&bytes) {
        return refused(
            " is an array (`.npy`), no stream".into(),
            "give the stream, and the array with `--in NAME=FILE.npy`",
        );
    }
    let is_text = std::str::from_utf8(&bytes).is_ok() || bytes.starts_with(HEADER.as_bytes());
    if !is_text {
        let first: Vec<String> = bytes.iter().take(MAGIC.len()).map(|b| format!("{b:02x}")).collect();
        let message = format!(
            " is no stream: it begins with {}, which is neither `{HEADER}` nor the magic number of binary streams",
            first.join(" ")
        );
        return refused(message, "`ptoc emit FILE.tile --stage pim -o FILE.pim` writes the stream of a program");
    }
    drop(bytes);
    let file = inputs.text(&args.stream, "stream", ".pim")?;
    match Stream::parse(inputs.sources.text(file)) {
        Ok(parsed) => Ok(StreamSource { name, stream: parsed.stream.clone(), text: Some((file, parsed)) }),
        Err(e) => {
            let d = Diagnostic::error(codes::STREAM_TEXT, span(file, &e.bytes), e.message);
            if args.stream.extension().is_some_and(|e| e == "tile") {
                return Err(d.with_note("the file's name says that it is a source of kernels").with_help(format!(
                    "`ptoc emit {name} --stage pim --target TARGET -o FILE.pim` writes its stream; \
                     `ptoc run {name} --target TARGET` executes it"
                )));
            }
            Err(if e.help.is_empty() { d } else { d.with_help(e.help) })
        }
    }
}

/// The device: that of `--config`, or the stream's. `None` if a file was refused.
fn config(args: &SimArgs, source: &StreamSource, inputs: &mut Inputs) -> Result<Option<Config>, Diagnostic> {
    let found = match &args.config {
        Some(name) => match inputs.config(name)? {
            Some(config) => device::fits(&config).map(|()| config),
            None => return Ok(None),
        },
        None => device::config(&source.stream.device),
    };
    found.map(Some).map_err(|e| {
        let place = match (&source.text, &args.config) {
            (Some((file, parsed)), None) => Some(span(*file, &parsed.device)),
            (_, Some(_)) => inputs.setting("org", &["channel_width", "dq"]),
            (None, None) => None,
        };
        let d = match place {
            Some(span) => Diagnostic::error(codes::STREAM_DEVICE, span, e.message),
            None => Diagnostic::global(codes::STREAM_DEVICE, e.message),
        };
        if e.help.is_empty() { d } else { d.with_help(e.help) }
    })
}

/// The number of the array that a flag names.
fn array(stream: &Stream, flag: &str, before: &[(String, PathBuf)], name: &str) -> Result<usize, Diagnostic> {
    let wanted = |t: &TensorDecl| match flag {
        "--in" => matches!(t.role, Role::In | Role::InOut),
        _ => matches!(t.role, Role::Out | Role::InOut),
    };
    let usable = || stream.tensors.iter().filter(|t| wanted(t)).map(|t| t.name.as_str());
    let wrong = |message: String| Diagnostic::global(codes::UNKNOWN_ARGUMENT, message);
    if before.iter().any(|(other, _)| other == name) {
        return Err(wrong(format!("{flag} {name}: given twice")).with_help("give it once"));
    }
    let number = stream.tensors.iter().position(|t| t.name == name);
    if let Some(n) = number.filter(|n| wanted(&stream.tensors[*n])) {
        return Ok(n);
    }
    let what = if flag == "--in" { "takes" } else { "gives" };
    let message = match number {
        None => format!("{flag} {name}: the stream has no array `{name}`"),
        Some(n) => {
            format!("{flag} {name}: `{name}` is {}, which the stream never {what}", stream.tensors[n].role.name())
        }
    };
    let d = wrong(message).with_note(format!("it {what} {}", list(usable())));
    Err(match suggest(name, usable()) {
        Some(near) if number.is_none() => d.with_help(format!("did you mean `{flag} {near}=..`?")),
        _ => d,
    })
}

/// The arrays of the call, by number.
fn given(args: &SimArgs, source: &StreamSource) -> Result<Vec<Option<Tensor>>, Diagnostic> {
    let stream = &source.stream;
    let mut out: Vec<Option<Tensor>> = vec![None; stream.tensors.len()];
    for (n, (name, path)) in args.input.iter().enumerate() {
        let number = array(stream, "--in", &args.input[..n], name)?;
        let decl = &stream.tensors[number];
        let tensor = ArrayFile::open(path, (decl.dtype != DType::BF16).then_some(decl.dtype))?;
        let shape: Vec<usize> = decl.shape.iter().map(|e| *e as usize).collect();
        if tensor.dtype() != decl.dtype || tensor.shape() != shape {
            let message = format!(
                "the stream takes `{name}` as {}{shape:?}, and `{}` holds {}{:?}",
                decl.dtype,
                path.display(),
                tensor.dtype(),
                tensor.shape()
            );
            let d = source.at(codes::SIM_ARRAY, Some(Site::Tensor(number)), message);
            return Err(match decl.dtype {
                _ if tensor.dtype() == decl.dtype => d.with_help("save an array of that shape"),
                DType::BF16 => d.with_help("save the bits of bf16 as `V2`"),
                want => d.with_help(format!(
                    "convert it: `np.save(\"{}\", x.astype(np.{}))`",
                    path.display(),
                    numpy_name(want)
                )),
            });
        }
        out[number] = Some(tensor.into_tensor()?);
    }
    let taken =
        stream.tensors.iter().zip(&out).filter(|(t, a)| matches!(t.role, Role::In | Role::InOut) && a.is_none());
    let missing: Vec<&str> = taken.map(|(t, _)| t.name.as_str()).collect();
    match missing.first() {
        None => Ok(out),
        Some(first) => {
            let message = format!(
                "the stream takes {}, and {} not given",
                list(missing.iter().copied()),
                if missing.len() == 1 { "it is" } else { "they are" }
            );
            Err(Diagnostic::global(codes::SIM_ARRAY, message).with_help(format!("add `--in {first}=FILE.npy`")))
        }
    }
}

impl StreamSource {
    /// A diagnostic about a part of the stream: with its line, or, of a binary one, with the number of the part.
    fn at(&self, code: Code, site: Option<Site>, message: String) -> Diagnostic {
        let Some((file, parsed)) = &self.text else {
            let place = match site {
                None => String::new(),
                Some(Site::Unit) => ", units".into(),
                Some(Site::Tensor(n)) => format!(", array `{}`", self.stream.tensors[n].name),
                Some(Site::Step(n)) => format!(", step {} ({})", n + 1, self.stream.steps[n].action.name()),
                Some(Site::Op(n, op)) => format!(", step {} (exec), operation {}", n + 1, op + 1),
            };
            return Diagnostic::global(code, format!("stream `{}`{place}: {message}", self.name));
        };
        let bytes = match site {
            None => None,
            Some(Site::Unit) => Some(&parsed.unit),
            Some(Site::Tensor(n)) => parsed.tensors.get(n),
            Some(Site::Step(n)) => parsed.steps.get(n),
            Some(Site::Op(n, op)) => parsed.ops.get(n).and_then(|ops| ops.get(op)),
        };
        match bytes {
            Some(bytes) => Diagnostic::error(code, span(*file, bytes), message),
            None => Diagnostic::global(code, format!("stream `{}`: {message}", self.name)),
        }
    }

    /// The host's kernels, of which a stream has nothing but the names.
    fn hosted(&self) -> Option<Diagnostic> {
        let hosted = self.stream.steps.iter().enumerate().filter_map(|(n, s)| match &s.action {
            Action::Host(h) => Some((n, h)),
            _ => None,
        });
        let hosted: Vec<_> = hosted.collect();
        let (step, first) = hosted.first()?;
        let message =
            format!("the host runs kernel `{}` here, and a stream does not say what it computes", first.kernel);
        let (code, help) = failure(Fail::Host);
        let mut d = self.at(code, Some(Site::Step(*step)), message);
        if hosted.len() > 1 {
            d = d.with_note(format!("the host runs {} in this stream", plural(hosted.len(), "kernel")));
        }
        if let Some(file) = (self.stream.steps[*step].place.file as usize).checked_sub(1) {
            let line = self.stream.steps[*step].place.line;
            d = d.with_note(format!("it is launched in {}:{line}", self.stream.files[file]));
        }
        Some(d.with_help(help))
    }

    /// Commands without a fence between them whose order counts.
    fn unordered(&self, u: &Unordered) -> Diagnostic {
        let message = "a controller may exchange this command and those before it: there is no fence between them";
        let mut d = self.at(codes::COMMAND_ORDER, Some(Site::Op(u.step, u.op)), message.into());
        d.severity = Severity::Warning;
        if u.count > 1 {
            d = d.with_note(format!("{} of this exec lack a fence", plural(u.count, "command")));
        }
        d.with_note(
            "between two fences the order is kept of reads, or of writes, of one row of one bank, and of writes to \
             reserved rows; the simulator issues all commands as they stand",
        )
        .with_help("put `fence` before it")
    }

    /// A step that reads rows which no step wrote.
    fn unwritten(&self, u: &Unwritten, g: &Geometry) -> Diagnostic {
        let rows = |r: &Range<u64>| match r.end - r.start {
            1 => format!("row {}", r.start),
            _ => format!("rows {} to {}", r.start, r.end - 1),
        };
        let what: Vec<String> = u.what.iter().map(|(what, r)| format!("{what} in {}", rows(r))).collect();
        let one = u.banks.len() == 1;
        let places = match (u.units.is_empty(), u.banks.len() == u.of) {
            (true, true) => String::new(),
            (true, false) if one => format!(" of {}", bank(u.banks[0], g)),
            (true, false) => format!(" of {} of {} banks", u.banks.len(), u.of),
            (false, _) => format!(" of {}", units(&u.units)),
        };
        let message = format!(
            "this step reads {}{places}, and no step before it writes there: it reads zeros",
            what.join(" and ")
        );
        let mut d = self.at(codes::UNWRITTEN_ROWS, Some(Site::Step(u.step)), message);
        d.severity = Severity::Warning;
        if u.units.is_empty() && u.banks.len() < u.of && !one {
            d = d.with_note(format!("the first is {}", bank(u.banks[0], g)));
        }
        d.with_help(match u.units.is_empty() {
            true => "write it before, or name the rows and banks where it is",
            false => {
                "write it before; or name in `descriptor` the units that have it (`first_unit`), and in `params` where \
                it is"
            }
        })
    }

    fn fault(&self, fault: &StreamFault) -> Diagnostic {
        let code = match fault.kind {
            FaultKind::Array => codes::STREAM_ARRAY,
            FaultKind::Place => codes::STREAM_PLACE,
            FaultKind::Command => codes::STREAM_COMMAND,
            FaultKind::Order => codes::STREAM_ORDER,
            FaultKind::Program => codes::STREAM_PROGRAM,
            FaultKind::Unit => codes::STREAM_UNIT,
        };
        let d = self.at(code, Some(fault.site), fault.message.clone());
        if fault.help.is_empty() { d } else { d.with_help(&fault.help) }
    }

    fn stop(&self, stop: &MachineStop, args: &SimArgs, inputs: &Inputs) -> Diagnostic {
        let (code, help) = failure(stop.kind);
        let site = match (stop.step, stop.op, stop.tensor) {
            (Some(step), Some(op), _) => Some(Site::Op(step, op)),
            (Some(step), None, _) => Some(Site::Step(step)),
            (None, _, tensor) => tensor.map(Site::Tensor),
        };
        let mut d = match (stop.kind, self.parameters(args, inputs)) {
            // The step is where it shows; what is wrong are the device's parameters.
            (Fail::Time, Some(span)) => {
                let d = Diagnostic::error(code, span, stop.message.clone());
                match (&self.text, stop.step) {
                    (Some((file, parsed)), Some(n)) => {
                        d.with_secondary(self::span(*file, &parsed.steps[n]), "this step cannot end")
                    }
                    (None, Some(n)) => {
                        let name = self.stream.steps[n].action.name();
                        d.with_note(format!("step {} ({name}) of stream `{}` cannot end", n + 1, self.name))
                    }
                    _ => d,
                }
            }
            _ => self.at(code, site, stop.message.clone()),
        };
        if let Some(place) = stop.step.map(|n| self.stream.steps[n].place).filter(|p| p.file != 0)
            && let Some(file) = self.stream.files.get(place.file as usize - 1)
        {
            d = d.with_note(format!("the step comes from {file}:{}", place.line));
        }
        if help.is_empty() { d } else { d.with_help(help) }
    }

    /// Where the device's refreshes are: in the configuration, or in the line of the stream that names the device.
    fn parameters(&self, args: &SimArgs, inputs: &Inputs) -> Option<Span> {
        let names: &[&str] = match self.stream.device.refresh {
            Refresh::Bank => &["nREFIpb", "nRFCpb", "nREFI"],
            _ => &["nREFI", "nRFC"],
        };
        let device = || self.text.as_ref().map(|(file, parsed)| span(*file, &parsed.device));
        if args.config.is_some() { inputs.setting("timing_nCK", names) } else { device() }
    }
}

/// A bank by its number in the device.
fn bank(n: u32, g: &Geometry) -> String {
    let (group, pch) = (n / g.bank % g.bg, n / g.bank / g.bg);
    format!("bank {} of bank group {group} of pseudo-channel {}.{}", n % g.bank, pch / g.pch, pch % g.pch)
}

/// Units by number; they ascend.
fn units(units: &[u32]) -> String {
    match units {
        [one] => format!("unit {one}"),
        [first, .., last] if last - first == units.len() as u32 - 1 => format!("units {first} to {last}"),
        [first, ..] => format!("{} units, the first of which is unit {first}", units.len()),
        [] => "no unit".into(),
    }
}

/// Texts are at most 4 GiB.
fn span(file: FileId, bytes: &Range<usize>) -> Span {
    Span::new(file, bytes.start as u32, bytes.end as u32)
}

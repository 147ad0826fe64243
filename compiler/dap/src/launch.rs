//! From `launch` to `terminated`: a program is compiled, configured, and run on the interpreter, again for each step
//! back.

use super::adapter::Adapter;
use super::connection::{Connection, Incoming, Request};
use ptoc_debugger::debugger::ResumeMode;
use ptoc_debugger::{DebuggedProgram, Debugger, Onlookers, Prints};
use ptoc_diagnostics::{DEFAULT_LIMIT, Diagnostic, Diagnostics, SourceMap, codes, render, suggest};
use ptoc_driver::backend;
use ptoc_driver::defs::Definition;
use ptoc_driver::files::Outputs;
use ptoc_driver::launch::{
    Arrays, CompiledPlan, Plan, RunOptions, RunOutcome, Schedule, check_outputs, open_arrays, parse_order,
};
use ptoc_driver::session::{CompilationUnit, EntryPoint, Failed, Session};
use ptoc_driver::{preview, project};
use ptoc_interp::Order;
use ptoc_tensor::{Tensor, npy};
use serde_json::{Map, Value, json};
use std::cell::Cell;
use std::path::{Path, PathBuf};

/// How a launch has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// It has not begun.
    Refused,
    /// The program has ended.
    Done,
    /// The client has disconnected.
    Disconnected,
    /// The client is gone without a word.
    Gone,
}

/// The arguments of a launch configuration that are ptoc's.
const KEYS: [&str; 11] = [
    "program",
    "kernel",
    "target",
    "define",
    "inputs",
    "outputs",
    "random",
    "schedule",
    "stopOnEntry",
    "cwd",
    "noDebug",
];

/// What is launched, and how.
struct Arguments {
    program: PathBuf,
    kernel: Option<String>,
    target: Option<String>,
    define: Vec<Definition>,
    inputs: Vec<(String, PathBuf)>,
    outputs: Vec<(String, PathBuf)>,
    random: Option<u64>,
    schedule: Option<Order>,
    stop_on_entry: bool,
    no_debug: bool,
}

impl Arguments {
    fn read(request: &Request) -> Result<Arguments, String> {
        let empty = Map::new();
        let given = request.arguments.as_object().unwrap_or(&empty);
        // Clients add keys of their own; one that is nearly ours is a mistake.
        for key in given.keys().filter(|key| !KEYS.contains(&key.as_str())) {
            if let Some(near) = suggest(key, KEYS) {
                return Err(format!("the launch configuration has `{key}`; did you mean `{near}`?"));
            }
        }
        let set = |key: &str| given.get(key).filter(|v| !v.is_null());
        let text = |key: &str| match set(key) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(other) => Err(format!("`{key}` of the launch configuration is a text, and not {other}")),
        };
        let flag = |key: &str| match set(key) {
            None => Ok(false),
            Some(Value::Bool(on)) => Ok(*on),
            Some(other) => Err(format!("`{key}` of the launch configuration is true or false, and not {other}")),
        };
        let cwd = text("cwd")?.map(PathBuf::from).unwrap_or_default();
        if !cwd.as_os_str().is_empty() && !cwd.is_dir() {
            return Err(format!("`cwd` of the launch configuration is a directory, and `{}` is none", cwd.display()));
        }
        let program = text("program")?.ok_or("the launch configuration needs `program`, the path of a .tile file")?;
        let random = match set("random") {
            None => None,
            Some(seed) => Some(seed.as_u64().ok_or("`random` of the launch configuration is a seed: 0, 1, 2, ..")?),
        };
        let schedule = match text("schedule")? {
            None => None,
            Some(word) => Some(parse_order(&word).map_err(|why| format!("`schedule` is \"{word}\": {why}"))?),
        };
        Ok(Arguments {
            program: cwd.join(program),
            kernel: text("kernel")?,
            target: text("target")?,
            define: definitions(set("define"))?,
            inputs: files(set("inputs"), "inputs", &cwd)?,
            outputs: files(set("outputs"), "outputs", &cwd)?,
            random,
            schedule,
            stop_on_entry: flag("stopOnEntry")?,
            no_debug: flag("noDebug")?,
        })
    }
}

/// `["M=64"]` or `{"M": 64}`
fn definitions(given: Option<&Value>) -> Result<Vec<Definition>, String> {
    let wrong = || "`define` of the launch configuration is a list of texts \"NAME=VALUE\", or an object".to_owned();
    let one = |(name, value): (&str, &str)| Definition { name: name.trim().to_owned(), value: value.to_owned() };
    match given {
        None => Ok(Vec::new()),
        Some(Value::Array(list)) => {
            let parts =
                list.iter().map(|word| word.as_str().and_then(|w| w.split_once('=')).map(one).ok_or_else(wrong));
            parts.collect()
        }
        Some(Value::Object(map)) => {
            let parts = map.iter().map(|(name, value)| match value {
                Value::String(text) => Ok(one((name, text))),
                Value::Number(_) | Value::Bool(_) => Ok(one((name, &value.to_string()))),
                _ => Err(wrong()),
            });
            parts.collect()
        }
        Some(_) => Err(wrong()),
    }
}

/// `{"x": "x.npy"}`
fn files(given: Option<&Value>, key: &str, cwd: &Path) -> Result<Vec<(String, PathBuf)>, String> {
    let wrong = || format!("`{key}` of the launch configuration is an object of names with paths of .npy files");
    let Some(given) = given else { return Ok(Vec::new()) };
    let all = given.as_object().ok_or_else(wrong)?;
    let one = |(name, path): (&String, &Value)| Ok((name.clone(), cwd.join(path.as_str().ok_or_else(wrong)?)));
    all.iter().map(one).collect()
}

/// Flags of the command line that diagnostics may propose.
const FLAGS: [&str; 3] = ["-D ", "--in ", "--random "];

/// Columns of diagnostics in a debug console.
const WIDTH: usize = 100;

/// Diagnostics as text; they are taken.
fn rendered(found: &mut Diagnostics, sources: &SourceMap) -> String {
    let found = std::mem::take(found).into_report(DEFAULT_LIMIT);
    found.iter().map(|d| render::terminal(d, sources, false, WIDTH) + "\n").collect()
}

/// Serves `launch`, and all that follows until the program has ended.
pub(crate) fn launch(connection: &Connection<'_>, request: &Request) -> Ended {
    let arguments = match Arguments::read(request) {
        Ok(arguments) => arguments,
        Err(why) => {
            connection.fail(request, &why);
            return Ended::Refused;
        }
    };
    let mut session =
        match Session::in_project(project::find(&arguments.program), arguments.target.as_deref(), &arguments.define) {
            Ok(session) => session,
            Err(d) => {
                connection.fail(request, &render::terminal(&d, &SourceMap::new(), false, WIDTH));
                return Ended::Refused;
            }
        };
    match debug(connection, request, &arguments, &mut session) {
        Ok(ended) => ended,
        Err(Failed) => {
            let mut text = rendered(&mut session.diagnostics, &session.sources);
            if FLAGS.iter().any(|flag| text.contains(flag)) {
                text.push_str(
                    "In a launch configuration, `define`, `inputs` and `random` are what `-D`, `--in` and `--random` \
                     are.",
                );
            }
            connection.output("stderr", &text);
            connection.fail(request, text.trim_end());
            Ended::Refused
        }
    }
}

/// What is wrong with the kernel's name, where it is not named on a command line.
fn in_configuration(mut d: Diagnostic, unit: &CompilationUnit) -> Diagnostic {
    let entries = unit.entries();
    if let Some(first) = entries.first().filter(|_| d.code == codes::WHICH_KERNEL) {
        d.fixes.clear();
        d = d.with_help(format!("name one in the launch configuration: `\"kernel\": \"{}\"`", first.item.name.name));
    }
    d
}

/// The files that results are written to, by argument.
struct Files {
    outputs: Outputs,
    arrays: Vec<(usize, String)>,
}

fn outputs(session: &mut Session, entry: &EntryPoint<'_>, arguments: &Arguments) -> Result<Files, Failed> {
    check_outputs(session, entry, "outputs", &arguments.outputs)?;
    let mut files = Files { outputs: Outputs::new(), arrays: Vec::new() };
    for (name, path) in &arguments.outputs {
        match files.outputs.plan(path) {
            Ok(n) => files.arrays.push((n, name.clone())),
            Err(d) => return session.fail(d),
        }
    }
    let read = std::mem::take(&mut session.read);
    let kept = files.outputs.keep_sources(&read);
    session.read = read;
    kept.or_else(|d| session.fail(d))?;
    Ok(files)
}

/// `Err` if the program cannot be run; then the client has no answer yet.
fn debug(
    connection: &Connection<'_>,
    request: &Request,
    arguments: &Arguments,
    session: &mut Session,
) -> Result<Ended, Failed> {
    session.select(backend::INTERP);
    session.watched = backend::INTERP.capabilities().watches;
    let unit = session.load_code(&arguments.program)?;
    let entry = match unit.entry(arguments.kernel.as_deref(), "run") {
        Ok(entry) => entry,
        Err(d) => return session.fail(in_configuration(*d, &unit)),
    };
    session.check_definitions(&[entry], &unit);
    let mut arrays: Arrays = open_arrays(session, &entry, "inputs", &arguments.inputs)?;
    let mut files = outputs(session, &entry, arguments)?;
    if session.diagnostics.has_errors() {
        return Err(Failed);
    }
    let plan = Plan::new(session, &unit, &entry, &arrays, arguments.random.is_some())?;
    let compiled = CompiledPlan::new(session, &plan, backend::INTERP)?;
    let initial = plan.tensors(session, &mut arrays, arguments.random.unwrap_or(0))?;
    plan.check_inputs(session, &initial)?;
    if session.diagnostics.has_errors() {
        return Err(Failed);
    }
    let remarks = rendered(&mut session.diagnostics, &session.sources);
    let program = DebuggedProgram::new(&plan, &unit.modules, unit.file, &session.sources, &session.target);
    connection.succeed(request, Value::Null);
    connection.output("console", &remarks);
    connection.event("process", json!({"name": plan.name.as_str(), "startMethod": "launch", "isLocalProcess": true}));
    connection.event("initialized", Value::Null);

    let replaying = Cell::new(false);
    let mut adapter = Adapter::new(connection, &program, &replaying);
    let mut debugger = Debugger::default();
    debugger.resume(if arguments.stop_on_entry { ResumeMode::Step(1) } else { ResumeMode::Continue(1) });
    if arguments.no_debug {
        debugger.detach();
    }
    if let Some(ended) = configure(connection, &mut adapter, &mut debugger) {
        return Ok(ended);
    }
    if let Some(order) = arguments.schedule {
        trial(connection, session, (&compiled, &initial), order);
    }
    let (outcome, tensors) = loop {
        let mut tensors = initial.clone();
        let mut prints = Prints::default();
        let mut onlookers =
            Onlookers { program: &program, debugger: Some(&mut debugger), front: &mut adapter, prints: &mut prints };
        let mut print = |line: &str| {
            if !replaying.get() {
                connection.output("stdout", line);
            }
        };
        let options = RunOptions { threads: 1, ..RunOptions::default() };
        let outcome = compiled.run(session, &mut tensors, &options, &mut print, Some(&mut onlookers));
        if adapter.ending.is_some() || !debugger.begins_anew() {
            break (outcome, tensors);
        }
        // What a run says that is taken back is said again.
        session.diagnostics = Diagnostics::new();
    };
    let ended = adapter.ending.unwrap_or(Ended::Done);
    if ended == Ended::Gone || ended == Ended::Disconnected {
        return Ok(ended);
    }
    let mut status = i32::from(outcome.is_err());
    if let Ok(RunOutcome { stopped: false, .. }) = &outcome {
        match results(connection, &plan, &tensors, &mut files).and_then(|()| files.outputs.commit()) {
            Ok(()) => {}
            Err(d) => {
                session.diagnostics.push(d);
                status = 1;
            }
        }
    }
    connection.output("stderr", &rendered(&mut session.diagnostics, &session.sources));
    connection.event("exited", json!({"exitCode": status}));
    connection.event("terminated", Value::Null);
    Ok(ended)
}

/// What comes before `configurationDone`. `Some` if the client does not want the program to run any more.
fn configure(connection: &Connection<'_>, adapter: &mut Adapter<'_, '_, '_>, debugger: &mut Debugger) -> Option<Ended> {
    loop {
        let Some(incoming) = connection.next() else { return Some(Ended::Gone) };
        match incoming {
            Incoming::Request(request) if request.command == "configurationDone" => {
                connection.succeed(&request, Value::Null);
                return None;
            }
            incoming => adapter.between(debugger, incoming),
        }
        if let Some(ended) = adapter.ending {
            if ended == Ended::Done {
                connection.event("terminated", Value::Null);
            }
            return Some(ended);
        }
    }
}

/// Runs the pipes in an order of their own, before anybody steps. The debugger goes statement after statement, and
/// would not see what another order shows.
fn trial(
    connection: &Connection<'_>,
    session: &mut Session,
    (compiled, initial): (&CompiledPlan<'_>, &[Tensor]),
    order: Order,
) {
    let mut tensors = initial.to_vec();
    let schedule = Schedule { order: Some(order), insert: true, time: false };
    let options = RunOptions { threads: 1, schedule, ..RunOptions::default() };
    let ran = compiled.run(session, &mut tensors, &options, &mut |_| {}, None);
    let text = rendered(&mut session.diagnostics, &session.sources);
    match ran {
        Ok(_) => connection.output("console", "With its pipes in that order the program has run without an error.\n"),
        Err(Failed) => connection.output("important", "With its pipes in that order the program fails:\n"),
    }
    connection.output("stderr", &text);
}

/// Shows and writes the results.
fn results(connection: &Connection<'_>, plan: &Plan, tensors: &[Tensor], files: &mut Files) -> Result<(), Diagnostic> {
    for (n, name) in &files.arrays {
        if let Some(at) = plan.arguments.iter().position(|a| a.name == *name) {
            files.outputs.write(*n, &npy::write(&tensors[at]))?;
        }
    }
    for (a, t) in plan.arguments.iter().zip(tensors).filter(|(a, _)| a.is_output()) {
        let written = files.arrays.iter().any(|(_, name)| a.name == *name);
        let what = if written { " is written".to_owned() } else { format!("\n{}", preview::corner(t)) };
        connection.output("stdout", &format!("{}: {}{what}\n", a.name, t.signature()));
    }
    Ok(())
}

//! `ptoc test`: the `// run:`, `// check:` and `// trap:` lines of source files.

mod trap;

use crate::args::TestArgs;
use crate::io::Io;
use crate::{DONE, ERRORS};
use ptoc_diagnostics::{Code, Diagnostic, Diagnostics, SourceMap, codes, plural};
use ptoc_driver::backend::{self, BackendRef};
use ptoc_driver::check::{Checked, check_entry};
use ptoc_driver::defs::Definition;
use ptoc_driver::files::{self, ArrayFile};
use ptoc_driver::launch::{Arrays, CompiledPlan, Plan, RunOptions, Schedule, open_arrays, open_expected, verify};
use ptoc_driver::session::{DEFAULT_TARGET, Failed, Session};
use ptoc_interp::Order;
use ptoc_ir::tile::{SyncMode, adds_floats};
use ptoc_passes::pipeline::Pipeline;
use ptoc_syntax::Directive;
use ptoc_syntax::ast::Ident;
use ptoc_syntax::directive::{Binding, Check, Run, Settings};
use ptoc_tensor::{Tensor, compare};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Runs all test lines, prints one line for each, and says how many passed.
pub fn test(args: &TestArgs, io: &mut Io<'_>) -> u8 {
    let mut found = Vec::new();
    let mut problems = Diagnostics::new();
    for path in &args.paths {
        if let Err(d) = files::collect(path, &mut found) {
            problems.push(d);
        }
    }
    let mut failed = io.report(problems, &SourceMap::new(), args.message_format).errors;
    let (mut passed, mut lines) = (0, 0);
    for path in &found {
        let tally = test_file(path, args, io);
        passed += tally.passed;
        failed += tally.failed;
        lines += tally.passed + tally.failed;
    }
    let files = plural(found.len(), "file");
    let remark = if lines == 0 && failed == 0 { " (there are no `// run:` or `// check:` lines)" } else { "" };
    io.print(&format!("{passed} passed, {failed} failed in {files}{remark}\n"));
    if failed > 0 { ERRORS } else { DONE }
}

#[derive(Default)]
struct Tally {
    passed: usize,
    failed: usize,
}

/// Why a test line failed, in one line; details are among the session's diagnostics.
struct Failure {
    reason: String,
}

impl From<String> for Failure {
    fn from(reason: String) -> Failure {
        Failure { reason }
    }
}

fn test_file(path: &Path, args: &TestArgs, io: &mut Io<'_>) -> Tally {
    let mut tally = Tally::default();
    let mut sources = SourceMap::new();
    let text = match files::read_source(path) {
        Ok(text) => text,
        Err(d) => {
            let mut found = Diagnostics::new();
            found.push(d);
            tally.failed += io.report(found, &sources, args.message_format).errors;
            return tally;
        }
    };
    let file = sources.add(path.display().to_string(), text.as_str());
    let parsed = ptoc_syntax::parse(file, &text);
    // Malformed test lines would be tests that never run.
    let mut malformed = Diagnostics::new();
    malformed.extend(
        parsed
            .diagnostics
            .into_iter()
            .filter(|d| matches!(d.code, codes::MALFORMED_DIRECTIVE | codes::UNKNOWN_BACKEND)),
    );
    tally.failed += io.report(malformed, &sources, args.message_format).errors;
    let mut told: Vec<(Code, String, Option<u32>)> = Vec::new();
    for directive in &parsed.directives {
        let line = sources.position(file, directive.span().start).line;
        let shown = sources.slice(directive.span()).split_whitespace().collect::<Vec<_>>().join(" ");
        let place = format!("{}:{line}: {shown}", path.display());
        let settings = directive.settings();
        let target = settings.target.as_ref().map_or(DEFAULT_TARGET, |t| t.name.as_str());
        let mut session = match Session::new(target, &definitions(settings)) {
            Ok(session) => session,
            Err(d) => {
                tally.failed += 1;
                io.print(&format!("FAILED {place}: {}\n", d.message));
                continue;
            }
        };
        session.vectors = args.vectors;
        let unit = session.load_text(path, text.clone());
        // Lines that are malformed have been told.
        let kept = std::mem::take(&mut session.diagnostics);
        session.diagnostics.extend(
            kept.iter().filter(|d| !matches!(d.code, codes::MALFORMED_DIRECTIVE | codes::UNKNOWN_BACKEND)).cloned(),
        );
        let result = match directive {
            Directive::Run(run) => run_line(&mut session, &unit, run, args, io),
            Directive::Check(check) => check_line(&mut session, &unit, check),
            Directive::Trap(trap) => trap::trap_line(&mut session, &unit, trap, args),
        };
        match result {
            Ok(()) => {
                tally.passed += 1;
                io.print(&format!("ok {place}\n"));
            }
            Err(Failure { reason }) => {
                tally.failed += 1;
                io.print(&format!("FAILED {place}: {reason}\n"));
                io.flush();
                // What is wrong with the file as such is wrong for every line; once is enough.
                let mut found = Diagnostics::new();
                for d in std::mem::take(&mut session.diagnostics).iter() {
                    let key = (d.code, d.message.clone(), d.span.map(|s| s.start));
                    if !told.contains(&key) {
                        told.push(key);
                        found.push(d.clone());
                    }
                }
                io.report(found, &session.sources, args.message_format);
            }
        }
    }
    tally
}

fn definitions(settings: &Settings) -> Vec<Definition> {
    let plain = settings.params.iter().map(|b| (b.name.name.to_string(), b));
    let capacities = settings.capacities.iter().map(|b| (format!("capacity.{}", b.name.name), b));
    let machine = settings.machine.iter().map(|b| (b.name.name.to_string(), b));
    plain.chain(capacities).chain(machine).map(|(name, b)| Definition { name, value: b.value.to_string() }).collect()
}

/// The errors of the kernel, and of the file as such, must be exactly those that the line expects. A warning counts
/// where the line names its code.
fn check_line(session: &mut Session, unit: &ptoc_driver::session::Unit, check: &Check) -> Result<(), Failure> {
    match unit.entry(Some(&check.kernel.name), "check") {
        Ok(entry) => {
            session.check_definitions(&[entry], unit);
            let checked = check_entry(session, unit, &entry);
            // A line that expects nothing wrong says something only if all was looked at.
            if matches!(checked, Checked::Partly) && check.expected.is_empty() && !session.diagnostics.has_errors() {
                return Err("not checked to the end: something that it depends on is not given".to_owned().into());
            }
        }
        Err(d) => {
            session.diagnostics.push(*d);
        }
    }
    let named = |code: Code| check.expected.iter().any(|w| code.as_str().eq_ignore_ascii_case(&w.name));
    let mut got: Vec<Code> =
        session.diagnostics.iter().filter(|d| d.is_error() || named(d.code)).map(|d| d.code).collect();
    let mut missing: Vec<&Ident> = Vec::new();
    // Codes first: a kind's word takes what they leave.
    let is_code = |word: &&Ident| Code::find(&word.name).is_some();
    let (exact, kinds): (Vec<&Ident>, Vec<&Ident>) = check.expected.iter().partition(is_code);
    for word in exact.into_iter().chain(kinds) {
        let fits = |code: &Code| code.as_str().eq_ignore_ascii_case(&word.name) || code.info().kind == word.name;
        match got.iter().position(fits) {
            Some(at) => {
                got.remove(at);
            }
            None => missing.push(word),
        }
    }
    if missing.is_empty() && got.is_empty() {
        return Ok(());
    }
    let mut reasons = Vec::new();
    if !missing.is_empty() {
        let missing: Vec<&str> = missing.iter().map(|w| w.name.as_str()).collect();
        reasons.push(format!("expected {}, not found", count(&missing)));
    }
    if !got.is_empty() {
        let got: Vec<&str> = got.iter().map(|c| c.as_str()).collect();
        reasons.push(format!("found {}, not expected", count(&got)));
    }
    Err(reasons.join("; ").into())
}

/// `2 x SA-0352, E0601`
fn count(words: &[&str]) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for word in words {
        *counts.entry(word).or_default() += 1;
    }
    let parts: Vec<String> =
        counts.into_iter().map(|(word, n)| if n == 1 { word.to_owned() } else { format!("{n} x {word}") }).collect();
    parts.join(", ")
}

/// `what`, and the codes of the errors.
fn errors(session: &Session, what: &str) -> Failure {
    let codes: Vec<&str> = session.diagnostics.iter().filter(|d| d.is_error()).map(|d| d.code.as_str()).collect();
    Failure { reason: if codes.is_empty() { what.to_owned() } else { format!("{what}: {}", count(&codes)) } }
}

/// Names and files, which lie beside the source. `NAME=text` is an array where NAME is a tensor, whatever the text
/// looks like; the parser has told them apart.
fn inputs_of(unit: &ptoc_driver::session::Unit, list: &[Binding]) -> Vec<(String, PathBuf)> {
    let directory = unit.path.parent().unwrap_or(Path::new(""));
    list.iter().map(|b| (b.name.name.to_string(), directory.join(b.value.as_str()))).collect()
}

/// Every backend keeps to `ensures` and to the expected arrays, and all give the bits of the first.
fn run_line(
    session: &mut Session,
    unit: &ptoc_driver::session::Unit,
    run: &Run,
    args: &TestArgs,
    io: &mut Io<'_>,
) -> Result<(), Failure> {
    let entry = match unit.entry(Some(&run.kernel.name), "run") {
        Ok(entry) => entry,
        Err(d) => return Err(d.message.into()),
    };
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
    let backends = run.backends.iter().map(|(name, _)| backend::named(name).ok_or_else(|| no_backend(name)));
    let backends: Vec<BackendRef> = backends.collect::<Result<_, _>>()?;
    session.watched = backends.iter().all(|b| b.capabilities().watches);
    // A plan for each pipeline that they want; it is mostly one.
    let mut plans: Vec<(Pipeline, Plan)> = Vec::new();
    let mut of: Vec<usize> = Vec::new();
    for backend in &backends {
        session.select(*backend);
        let known = plans.iter().position(|(pipeline, _)| *pipeline == session.pipeline);
        of.push(known.unwrap_or(plans.len()));
        if known.is_none() {
            let Ok(plan) = Plan::new(session, unit, &entry, &arrays, true) else {
                return Err(errors(session, "does not compile"));
            };
            plans.push((session.pipeline, plan));
        }
    }
    let plan = &plans[0].1;
    let seed = run.settings.seed.map_or(0, |(seed, _)| seed);
    let (rtol, atol) = (run.settings.rtol.map_or(0.0, |x| x.0), run.settings.atol.map_or(0.0, |x| x.0));
    let before = plan.tensors(session, &mut arrays, seed).map_err(|Failed| errors(session, "no inputs"))?;
    let read = |(name, array): (String, ArrayFile)| Ok((name, array.into_tensor().map_err(|d| d.message)?));
    let expected: Vec<(String, Tensor)> = expected.into_iter().map(read).collect::<Result<_, String>>()?;
    plan.check_inputs(session, &before).map_err(|Failed| errors(session, "inputs do not satisfy `where`"))?;
    let mut first: Option<(BackendRef, Vec<Tensor>)> = None;
    // With the sanitizer machine code runs once more.
    let runs = |backend: BackendRef| 1 + usize::from(args.sanitize && backend.capabilities().sanitizer);
    let twice = |(backend, plan): (BackendRef, usize)| (0..runs(backend)).map(move |n| (backend, plan, n > 0));
    for (backend, plan, watched) in backends.into_iter().zip(of).flat_map(twice) {
        let plan = &plans[plan].1;
        let name = if watched { format!("{} with the sanitizer", backend.name()) } else { backend.name().to_owned() };
        let what = |what: &str| format!("{name}: {what}");
        let compiled = match watched {
            true => CompiledPlan::sanitized(session, plan, backend),
            false => CompiledPlan::new(session, plan, backend),
        };
        let Ok(compiled) = compiled else {
            return Err(errors(session, &what("does not compile")));
        };
        let mut after = before.clone();
        // Where units in memory ran, their DRAM's commands keep the rules too.
        let options = RunOptions { threads: args.threads, rules: true, ..RunOptions::default() };
        if compiled.run(session, &mut after, &options, &mut |line| io.note(line), None).is_err() {
            return Err(errors(session, &what("stopped")));
        }
        if verify(session, plan, &before, &after, rtol, atol).is_err() {
            return Err(errors(session, &what("not what `ensures` says")));
        }
        for (name, want) in &expected {
            let Some(at) = plan.arguments.iter().position(|a| a.name == *name) else { continue };
            let a = &plan.arguments[at];
            let bits = a.dtype.has_bits_of(want.dtype()) && want.shape() == a.shape;
            let cast = bits.then(|| Tensor::from_bytes(a.dtype, &a.shape, want.bytes()).ok()).flatten();
            if let Err(mismatch) = compare(&after[at], cast.as_ref().unwrap_or(want), rtol, atol) {
                return Err(what(&format!("`{name}` is not what was expected: {mismatch}")).into());
            }
        }
        if backend.capabilities().pipes {
            other_orders(session, plan, &compiled, (&before, &after), (rtol, atol)).map_err(|reason| {
                let reason =
                    reason.unwrap_or_else(|| errors(session, &what("stopped in another order of the pipes")).reason);
                Failure { reason }
            })?;
        }
        match &first {
            None => first = Some((backend, after)),
            Some((other, results)) => {
                let outputs = plan.arguments.iter().zip(results.iter().zip(&after)).filter(|(a, _)| a.is_output());
                for (a, (one, two)) in outputs {
                    if let Some(difference) = first_difference(one, two) {
                        let (one, two) = (other.name(), &name);
                        let message = format!("`{}` differs between {one} and {two}: {difference}", a.name);
                        session.diagnostics.push(Diagnostic::error(codes::BACKENDS_DIFFER, a.span, message.clone()));
                        return Err(message.into());
                    }
                }
            }
        }
    }
    Ok(())
}

fn no_backend(name: &str) -> Failure {
    format!("there is no backend `{name}`").into()
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

/// Where the bits of two tensors of one type first differ.
fn first_difference(one: &Tensor, two: &Tensor) -> Option<String> {
    if one == two {
        return None;
    }
    let at = (0..one.len()).find(|&i| one.get_bits(i) != two.get_bits(i))?;
    let count = (0..one.len()).filter(|&i| one.get_bits(i) != two.get_bits(i)).count();
    let show = |t: &Tensor| ptoc_tensor::scalar::format_bits(t.dtype(), t.get_bits(at));
    Some(format!("{count} of {} elements, first {:?}: {} and {}", one.len(), one.unravel(at), show(one), show(two)))
}

//! `ptoc test`: the `// run:`, `// check:` and `// trap:` lines of source files.

mod check;
mod jobs;
mod run;
mod trap;

use crate::args::{MessageFormat, TestArgs};
use crate::io::Io;
use crate::{DONE, ERRORS, WRONG_CALL};
use ptoc_diagnostics::{Code, Diagnostic, Diagnostics, SourceMap, codes, plural};
use ptoc_driver::backend::Capabilities;
use ptoc_driver::defs::Definition;
use ptoc_driver::devices;
use ptoc_driver::files::{self, Outputs};
use ptoc_driver::project::{self, FoundProject, Project};
use ptoc_driver::session::{CompilationUnit, DEFAULT_TARGET, Session};
use ptoc_driver::signals;
use ptoc_syntax::Directive;
use ptoc_syntax::ast::{Ident, Name};
use ptoc_syntax::directive::{Binding, Settings};
use ptoc_views::junit::{self, Case, Verdict};
use run::Share;
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How a line went.
type Outcome = Result<(), Failure>;

/// Runs all test lines, prints one line for each, and says how many passed.
pub fn test(args: &TestArgs, io: &mut Io<'_>) -> u8 {
    let mut found = Vec::new();
    let mut problems = Diagnostics::new();
    if let Some(part) = args.backend.and_then(|b| b.left_out()) {
        problems.push(part.refused());
        io.report(problems, &SourceMap::new(), args.message_format);
        return WRONG_CALL;
    }
    if let Some(backend) = args.backend.filter(|_| args.sanitize) {
        let Capabilities { sanitizer, watches, .. } = backend.capabilities();
        if !sanitizer && !watches {
            problems.push(super::run::no_sanitizer(backend));
            io.report(problems, &SourceMap::new(), args.message_format);
            return WRONG_CALL;
        }
    }
    for path in &args.paths {
        if let Err(d) = files::collect(path, &mut found) {
            problems.push(d);
        }
    }
    // A file that is named twice, or that is in a folder that is named, is tested once.
    let mut seen = HashSet::new();
    found.retain(|path| seen.insert(path.canonicalize().unwrap_or_else(|_| path.clone())));
    let mut tally =
        Tally { failed: io.report(problems, &SourceMap::new(), args.message_format).errors, ..Tally::default() };
    let report = match &args.junit {
        None => None,
        Some(path) => {
            let mut outputs = Outputs::new();
            let planned = found.iter().try_for_each(|source| outputs.keep(source, "a file of tests"));
            match planned.and_then(|()| outputs.plan(path)) {
                Ok(n) => Some((outputs, n)),
                Err(d) => {
                    problem(d, args, io);
                    return ERRORS;
                }
            }
        }
    };
    jobs::test_files(&found, args, &mut tally, io);
    signals::say_at_the_end(String::new());
    if tally.matched == 0 && !args.filter.is_empty() && tally.failed == 0 {
        let d = Diagnostic::global(codes::NO_TEST_LINE, format!("no test line has {}", either(&args.filter)));
        problem(d.with_help("a filter is a part of a line's text, or of its file's name"), args, io);
        tally.failed += 1;
    }
    if let Some((mut outputs, n)) = report
        && let Err(d) = outputs.write(n, tally.junit().as_bytes()).and_then(|()| outputs.commit())
    {
        problem(d, args, io);
        tally.failed += 1;
    }
    let text = if args.json { tally.json(found.len()) } else { tally.text(found.len()) };
    io.print(&format!("{text}\n"));
    if tally.failed > 0 { ERRORS } else { DONE }
}

/// Shows what is wrong with the call.
fn problem(d: Diagnostic, args: &TestArgs, io: &mut Io<'_>) {
    let mut found = Diagnostics::new();
    found.push(d);
    io.report(found, &SourceMap::new(), args.message_format);
}

/// "`a` or `b`"
fn either(words: &[String]) -> String {
    words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(" or ")
}

/// What became of the lines.
#[derive(Default)]
struct Tally {
    passed: usize,
    failed: usize,
    /// They are for machines that `--backend` is not.
    skipped: usize,
    /// What the backends' kernels have run on, where that is not this host.
    machines: BTreeMap<&'static str, String>,
    /// Lines that the filters let pass.
    matched: usize,
    /// Each line.
    lines: Vec<TestLine>,
}

/// A line that was run.
struct TestLine {
    file: String,
    line: u32,
    text: String,
    /// `passed`, `failed`, `skipped`.
    result: &'static str,
    reason: Option<String>,
    time: Duration,
}

impl Tally {
    /// Sets what is printed if a signal ends the tests now, before their results are printed.
    fn interrupted(&self, args: &TestArgs) {
        let Tally { passed, failed, .. } = self;
        if args.message_format == MessageFormat::Human {
            signals::say_at_the_end(format!("interrupted: {passed} passed, {failed} failed; the rest was not tested"));
        }
    }

    /// The same, unless files are tested at the same time: then whoever gathers them knows how far they are.
    fn interrupted_here(&self, args: &TestArgs) {
        if args.jobs == 1 {
            self.interrupted(args);
        }
    }

    fn text(&self, files: usize) -> String {
        let Tally { passed, failed, skipped, machines, .. } = self;
        let mut text = format!("{passed} passed, {failed} failed in {}", plural(files, "file"));
        if passed + failed + skipped == 0 {
            text.push_str(" (there are no `// run:` or `// check:` lines)");
        }
        if *skipped > 0 {
            text.push_str(&format!("; {} for other machines", plural(*skipped, "line")));
        }
        for (backend, machine) in machines {
            text.push_str(&format!("; {backend}: {machine}"));
        }
        text
    }

    fn json(&self, files: usize) -> String {
        let Tally { passed, failed, skipped, machines, lines, .. } = self;
        let line = |l: &TestLine| {
            json!({"file": l.file, "line": l.line, "text": l.text, "result": l.result, "reason": l.reason,
                   "ms": l.time.as_micros() as f64 / 1e3})
        };
        let lines: Vec<Value> = lines.iter().map(line).collect();
        json!({
            "passed": passed, "failed": failed, "skipped": skipped, "files": files, "machines": machines,
            "lines": lines,
        })
        .to_string()
    }

    fn junit(&self) -> String {
        let case = |l: &TestLine| {
            let reason = || l.reason.clone().unwrap_or_default();
            let verdict = match l.result {
                "passed" => Verdict::Passed,
                "skipped" => Verdict::Skipped(reason()),
                _ => Verdict::Failed(reason()),
            };
            let name = format!("{}: {}", l.line, l.text);
            Case { group: l.file.clone(), name, seconds: l.time.as_secs_f64(), verdict }
        };
        junit::suite("ptoc test", &self.lines.iter().map(case).collect::<Vec<_>>())
    }

    /// Adds what became of another file.
    fn add(&mut self, other: Tally) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
        self.matched += other.matched;
        self.lines.extend(other.lines);
        for (backend, machine) in other.machines {
            self.machines.entry(backend).or_insert(machine);
        }
    }
}

impl TestLine {
    /// What is wrong with a file before its lines are run.
    fn of_file(path: &Path, line: u32, text: &str, reason: Option<String>) -> TestLine {
        let (file, text) = (path.display().to_string(), text.to_owned());
        TestLine { file, line, text, result: "failed", reason, time: Duration::ZERO }
    }
}

/// Why a test line failed, in one line; details are among the session's diagnostics.
struct Failure {
    reason: String,
    /// The line is for a machine that `--backend` is not, whose target refuses the kernel.
    elsewhere: bool,
}

impl From<String> for Failure {
    fn from(reason: String) -> Failure {
        Failure { reason, elsewhere: false }
    }
}

/// A file, and what of its mistakes was told.
struct File<'f> {
    path: &'f Path,
    text: &'f str,
    project: Project,
    args: &'f TestArgs,
    told: Vec<(Code, String, Option<u32>)>,
}

fn test_file(path: &Path, args: &TestArgs, tally: &mut Tally, io: &mut Io<'_>) {
    let mut sources = SourceMap::new();
    let text = match files::read_source(path) {
        Ok(text) => text,
        Err(d) => {
            let mut found = Diagnostics::new();
            found.push(d);
            let reason = found.iter().next().map(|d| format!("{}: {}", d.code, d.message));
            tally.failed += io.report(found, &sources, args.message_format).errors;
            tally.lines.push(TestLine::of_file(path, 0, "the file", reason));
            return;
        }
    };
    let id = sources.add(path.display().to_string(), text.as_str());
    let parsed = ptoc_syntax::parse(id, &text);
    // Malformed test lines would be tests that never run.
    let mut malformed = Diagnostics::new();
    malformed.extend(parsed.diagnostics.into_iter().filter(is_of_lines));
    for d in malformed.iter().filter(|d| d.is_error()) {
        let line = d.span.map_or(0, |span| sources.position(id, span.start).line);
        let text = if line > 0 { sources.line(id, line - 1).trim_matches(['/', ' ']).trim() } else { "a test line" };
        tally.lines.push(TestLine::of_file(path, line, text, Some(format!("{}: {}", d.code, d.message))));
    }
    tally.failed += io.report(malformed, &sources, args.message_format).errors;
    let FoundProject { project, sources: texts, diagnostics } = project::find(path);
    tally.failed += io.report(diagnostics, &texts, args.message_format).errors;
    let mut directives = parsed.directives;
    // A line that names no target is for the project's.
    if let Some(target) = &project.target {
        for directive in &mut directives {
            let span = directive.span();
            directive.settings_mut().target.get_or_insert_with(|| Ident { name: Name::new(target), span });
        }
    }
    let mut file = File { path, text: &text, project, args, told: Vec::new() };
    for directive in &directives {
        let line = sources.position(id, directive.span().start).line;
        let shown = sources.slice(directive.span()).split_whitespace().collect::<Vec<_>>().join(" ");
        let place = format!("{}:{line}: {shown}", path.display());
        if !args.filter.is_empty() && !args.filter.iter().any(|part| place.contains(part.as_str())) {
            continue;
        }
        tally.matched += 1;
        let begin = Instant::now();
        let (result, reason) = match file.line(directive, tally, io) {
            None => {
                // Only the interpreter looks for what `trap:` lines are about.
                if !matches!(directive, Directive::Run(_) | Directive::Trap(_)) {
                    continue;
                }
                tally.skipped += 1;
                ("skipped", Some("it is for other machines".to_owned()))
            }
            Some((Ok(()), _)) => {
                tally.passed += 1;
                tally.interrupted_here(args);
                file.say(&format!("ok {place}{}\n", time_of(args, begin)), io);
                ("passed", None)
            }
            Some((Err(Failure { reason, elsewhere: true }), _)) => {
                tally.skipped += 1;
                file.say(&format!("skipped {place}: {reason}\n"), io);
                ("skipped", Some(reason))
            }
            Some((Err(Failure { reason, .. }), sessions)) => {
                tally.failed += 1;
                tally.interrupted_here(args);
                file.say(&format!("FAILED {place}{}: {reason}\n", time_of(args, begin)), io);
                sessions.into_iter().for_each(|session| file.report(session, io));
                ("failed", Some(reason))
            }
        };
        let (file, text, time) = (path.display().to_string(), shown, begin.elapsed());
        tally.lines.push(TestLine { file, line, text, result, reason, time });
    }
}

/// `   12 ms`, if that is asked for.
fn time_of(args: &TestArgs, begin: Instant) -> String {
    match args.times {
        true => format!("   {:.0} ms", begin.elapsed().as_secs_f64() * 1e3),
        false => String::new(),
    }
}

/// Whether it is about a test line.
fn is_of_lines(d: &Diagnostic) -> bool {
    matches!(d.code, codes::MALFORMED_DIRECTIVE | codes::UNKNOWN_BACKEND)
}

impl File<'_> {
    /// Runs a line: how it went, with the sessions that have the details. `None`: it is not for this machine.
    fn line(&mut self, directive: &Directive, tally: &mut Tally, io: &mut Io<'_>) -> Option<(Outcome, Vec<Session>)> {
        let settings = directive.settings();
        if let Directive::Run(run) = directive {
            let own = self.target_of(settings);
            let wanted = match run::wanted(run, &own, self.args.backend) {
                Ok(wanted) => wanted?,
                Err(failure) => return Some((Err(failure), Vec::new())),
            };
            let mut shares = Vec::new();
            for (target, backends) in wanted {
                let foreign = self.args.backend.is_some() && settings.target.is_some() && target != own;
                for backend in &backends {
                    if let Some(machine) = backend.machine(true) {
                        tally.machines.entry(backend.name()).or_insert(machine);
                    }
                }
                match self.session(&target, settings) {
                    Ok((session, unit)) => shares.push(Share { session, unit, backends, foreign }),
                    Err(failure) => return Some((Err(failure), Vec::new())),
                }
            }
            let outcome = run::run_line(&mut shares, run, self.args, io);
            return Some((outcome, shares.into_iter().map(|share| share.session).collect()));
        }
        if self.args.backend.is_some() {
            return None;
        }
        let (mut session, unit) = match self.session(&self.target_of(settings), settings) {
            Ok(begun) => begun,
            Err(failure) => return Some((Err(failure), Vec::new())),
        };
        let outcome = match directive {
            Directive::Check(check) => check::check_line(&mut session, &unit, check),
            Directive::Trap(trap) => trap::trap_line(&mut session, &unit, trap, self.args),
            Directive::Run(_) => Ok(()),
        };
        Some((outcome, vec![session]))
    }

    /// A session for a line on a target, and the file in it.
    fn session(&self, target: &str, settings: &Settings) -> Result<(Session, CompilationUnit), Failure> {
        let found = FoundProject { project: self.project.clone(), ..FoundProject::default() };
        let mut session =
            Session::in_project(found, Some(target), &self.definitions(settings, target)).map_err(|d| d.message)?;
        session.vectors = self.args.vectors;
        session.stand_in = true;
        let unit = session.load_text(self.path, self.text.to_owned());
        // Lines that are malformed have been told.
        let kept = std::mem::take(&mut session.diagnostics);
        session.diagnostics.extend(kept.iter().filter(|d| !is_of_lines(d)).cloned());
        Ok((session, unit))
    }

    /// The target that a line names, or the default. The path of a device's file is from the folder of the source on.
    fn target_of(&self, settings: &Settings) -> String {
        let folder = self.path.parent().unwrap_or(Path::new(""));
        settings.target.as_ref().map_or(DEFAULT_TARGET.into(), |t| devices::named_in(&t.name, folder))
    }

    /// What a line sets. Capacities, and settings of units, are numbers of the line's own target.
    fn definitions(&self, settings: &Settings, target: &str) -> Vec<Definition> {
        let plain = settings.params.iter().map(|b| (b.name.name.to_string(), b));
        let capacities = settings.capacities.iter().map(|b| (format!("capacity.{}", b.name.name), b));
        let machine = settings.machine.iter().map(|b| (b.name.name.to_string(), b));
        let own = capacities.chain(machine).filter(|_| target == self.target_of(settings));
        plain.chain(own).map(|(name, b)| Definition { name, value: b.value.to_string() }).collect()
    }

    /// A line of text, where it is text that is wanted.
    fn say(&self, text: &str, io: &mut Io<'_>) {
        if !self.args.json {
            io.print(text);
        }
    }

    /// Tells what a session has found. What is wrong with the file as such is wrong for every line; once is enough.
    fn report(&mut self, mut session: Session, io: &mut Io<'_>) {
        io.flush();
        let mut found = Diagnostics::new();
        for d in std::mem::take(&mut session.diagnostics).iter() {
            let key = (d.code, d.message.clone(), d.span.map(|s| s.start));
            if !self.told.contains(&key) {
                self.told.push(key);
                found.push(d.clone());
            }
        }
        io.report(found, &session.sources, self.args.message_format);
    }
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
    if codes.is_empty() { what.to_owned().into() } else { format!("{what}: {}", count(&codes)).into() }
}

/// Names and files, which lie beside the source. `NAME=text` is an array where NAME is a tensor, whatever the text
/// looks like; the parser has told them apart.
fn inputs_of(unit: &CompilationUnit, list: &[Binding]) -> Vec<(String, PathBuf)> {
    let directory = unit.path.parent().unwrap_or(Path::new(""));
    list.iter().map(|b| (b.name.name.to_string(), directory.join(b.value.as_str()))).collect()
}

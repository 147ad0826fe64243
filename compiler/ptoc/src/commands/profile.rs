//! `ptoc profile`: a table of problems and configurations, each verified before it is measured.

use super::bench::{machine, refuse, tolerance};
use super::{Report, host_threads};
use crate::args::{CompileArgs, ProfileArgs};
use crate::io::Io;
use crate::{DONE, ERRORS};
use ptoc_diagnostics::{Diagnostic, codes, plural};
use ptoc_driver::backend::{self, Timed};
use ptoc_driver::files::{self, Outputs};
use ptoc_driver::session::{Failed, Session};
use ptoc_profile::Values;
use ptoc_profile::best::{rejected, summary, top};
use ptoc_profile::journal::{Existing, Journal};
use ptoc_profile::plot::{Peers, check, peers, svg};
use ptoc_profile::profile::{By, Cases, Definitions, Depth, Request, cases, digest, mistake, retried, rows};
use ptoc_profile::setup::{Machine, Setup};
use ptoc_profile::table::{Heading, Line, Text};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Enumerates, checks or measures all cases.
pub fn profile(args: &ProfileArgs, io: &mut Io<'_>) -> u8 {
    let configurations = match args.configurations.as_ref().map(read).transpose() {
        Ok(read) => read.unwrap_or_default(),
        Err(d) => return refuse(*d, io, args.compile.message_format),
    };
    let peers = match args.peers.as_ref().map(others).transpose() {
        Ok(peers) => peers,
        Err(d) => return refuse(*d, io, args.compile.message_format),
    };
    let values = |(name, text): &(String, String)| {
        let values = ptoc_profile::sizes(text).unwrap_or_else(|_| vec![text.clone()]);
        Values { name: name.clone(), values }
    };
    let (fixed, axes): (Vec<Values>, Vec<Values>) =
        args.compile.define.iter().map(values).partition(|v| v.values.len() == 1);
    let one = |v: &Values| (v.name.clone(), v.values[0].clone());
    let define: Definitions = fixed.iter().map(one).collect();
    // The session that reads the file has the definitions of the first case.
    let first = axes.iter().map(one).chain(configurations.first().into_iter().flatten().cloned());
    let compile = CompileArgs { define: define.iter().cloned().chain(first).collect(), ..args.compile.clone() };
    let (mut session, mut report) = match Report::begin(&compile, &args.file, io) {
        Ok(begun) => begun,
        Err(status) => return status,
    };
    session.vectors = args.launch.vectors;
    session.exact = args.launch.exact;
    let on = match measured_on(args, &session) {
        Ok(on) if !args.resident.is_empty() && !on.backend.capabilities().units => {
            return refuse(super::no_residents(on.backend, &session.target), io, args.compile.message_format);
        }
        Ok(on) => on,
        Err(d) => return refuse(*d, io, args.compile.message_format),
    };
    let setup = Setup {
        command: "profile",
        file: args.file.clone(),
        kernel: args.kernel.clone(),
        target: args.compile.target.clone(),
        define,
        input: args.launch.input.clone(),
        expect: args.expect.clone(),
        random: args.launch.random,
        vectors: args.launch.vectors,
        exact: args.launch.exact,
        resident: args.resident.clone(),
        seconds: args.seconds,
        verify: (!args.no_verify).then(|| tolerance(args.rtol, args.atol)),
    };
    let request = Request {
        axes,
        configurations,
        tune: args.tune,
        exhaustive: args.search.exhaustive,
        again: args.search.retune,
        margin: args.search.prune.and_then(|margin| margin.0),
        by: by(args, &session),
        depth: match (args.enumerate, args.dry_run) {
            (true, _) => Depth::Enumerate,
            (_, true) => Depth::Compile,
            _ => Depth::Measure,
        },
    };
    let run = Run { args, setup: &setup, request: &request, on: &on, peers: peers.as_ref() };
    let made = run.all(&mut session, &mut report, io);
    report.flush(&mut session, io);
    report.times(&session, io);
    match made {
        Ok(wrong) if report.status() == DONE && !wrong => DONE,
        _ => ERRORS,
    }
}

/// The configurations of a file.
fn read(path: &PathBuf) -> Result<Vec<Definitions>, Box<Diagnostic>> {
    let help = "the first line names parameters, each other line is a configuration: `BM,BN` and `64,128`";
    table(path, help, ptoc_profile::configurations)
}

/// The peers of a file.
fn others(path: &PathBuf) -> Result<Peers, Box<Diagnostic>> {
    table(
        path,
        "the first line names sizes and peers, the others have sizes and milliseconds: `M,peer` and `512,0.8`",
        peers,
    )
}

/// What a file of a table says.
fn table<T>(path: &PathBuf, help: &str, parse: fn(&str) -> Result<T, String>) -> Result<T, Box<Diagnostic>> {
    let cannot = |why: String| {
        let message = format!("cannot read `{}`: {why}", path.display());
        Box::new(Diagnostic::global(codes::CANNOT_READ, message))
    };
    let text = std::fs::read_to_string(path).map_err(|e| cannot(files::reason(&e)))?;
    parse(&text).map_err(|why| Box::new(cannot(why).with_help(help)))
}

/// What counts. A simulated device has no clock but its cycles.
fn by(args: &ProfileArgs, session: &Session) -> By {
    args.by.unwrap_or(if session.target.has_units() && args.launch.backend.is_none() { By::Cycles } else { By::Time })
}

/// What cases are measured on. By cycles: the simulated units, or the interpreter with the target's model of time.
fn measured_on(args: &ProfileArgs, session: &Session) -> Result<Machine, Box<Diagnostic>> {
    let (target, by) = (&session.target, by(args, session));
    if by == By::Time && !args.enumerate && !args.dry_run {
        let on = machine("profile", target, args.launch.backend, args.launch.threads)?;
        if on.timed == Timed::Simulated {
            let message = format!("`--by time`: {} is simulated, and its time is what the cycles say", target.name);
            let d = Diagnostic::global(codes::BACKEND_TARGET, message);
            return Err(Box::new(d.with_help("leave `--by` out: cycles are what counts there")));
        }
        return Ok(on);
    }
    let backend = match by {
        By::Cycles if args.launch.backend.is_none() && !target.has_units() => backend::INTERP,
        _ => backend::choose(target, args.launch.backend)?,
    };
    let counts =
        backend.capabilities().units || (backend.name() == backend::INTERP.name() && target.pipes.time.is_some());
    if by == By::Cycles && !counts {
        let message = format!("`--by cycles`: {} on {} counts no cycles", backend.name(), target.name);
        let d = Diagnostic::global(codes::BACKEND_TARGET, message);
        return Err(Box::new(match target.has_units() {
            true => d.with_help("leave `--backend` out: the simulated device counts them"),
            false => d.with_help("leave `--backend` out, or name a target with a model of time: a2a3, a5"),
        }));
    }
    Ok(Machine { backend, timed: Timed::Host, threads: host_threads(args.launch.threads) })
}

struct Run<'r> {
    args: &'r ProfileArgs,
    setup: &'r Setup,
    request: &'r Request,
    on: &'r Machine,
    peers: Option<&'r Peers>,
}

/// How many rows were skipped, by the reason.
fn left_out(all: &[Line]) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for row in all.iter().filter(|row| row.status() == "skipped") {
        *counts.entry(row.why()).or_default() += 1;
    }
    counts
}

fn nothing_to_plot(why: &str) -> Diagnostic {
    let d = Diagnostic::global(codes::CANNOT_WRITE, format!("there is nothing to plot: {why}"));
    d.with_help("a plot is of several sizes, `-D M=256:4096:*2`, and of peers with milliseconds of some of these")
}

/// Files that are written when all rows are there.
struct Written {
    outputs: Outputs,
    /// Number of each, with what it is.
    files: Vec<(usize, &'static str)>,
    /// The plot.
    plot: Option<(Outputs, usize)>,
}

impl Run<'_> {
    /// All problems; whether a case was wrong or failed.
    fn all(&self, session: &mut Session, report: &mut Report, io: &mut Io<'_>) -> Result<bool, Failed> {
        let args = self.args;
        let cases = cases(self.setup, self.request, session)?;
        if self.request.depth > Depth::Enumerate
            && let Some(why) = mistake(self.setup, &cases, session)
        {
            return session.fail(why);
        }
        let heading = Heading {
            of: [
                ("kernel", cases.kernel.clone()),
                ("backend", self.on.backend.name().to_owned()),
                ("target", session.target.name.clone()),
                ("source", digest(self.setup, self.on, session)),
            ],
            cases: &cases,
        };
        let (mut journal, mut written) = self.files(&heading, session)?;
        let text = Text::new(&cases, self.request.by);
        // Of what is only listed or compiled none is the best.
        let top = args.top.filter(|_| self.request.depth == Depth::Measure);
        let shown = !args.json && top.is_none();
        if shown {
            io.print(&format!("{}\n", text.header()));
        }
        // Beside rows that are measured there are no stored ones.
        let begun = journal.as_ref().is_some_and(Journal::is_begun);
        let request = Request { again: self.request.again || begun, ..self.request.clone() };
        let is_failed = |row: &Line| row.status() == "failed" && request.depth == Depth::Measure;
        let mut all: Vec<Line> = Vec::new();
        let mut skipped = 0;
        for number in 0..cases.problems.len() {
            let listed = cases.problems[number].listed(number, &cases.names);
            let listed: Vec<Line> = listed.iter().map(Line::from).collect();
            let rows = match journal.as_ref().and_then(|j| j.rows_of(&heading, &listed)) {
                Some(kept) => {
                    let settled = kept.iter().filter(|row| !is_failed(row)).count();
                    skipped += settled;
                    match &mut journal {
                        Some(journal) if settled < kept.len() => {
                            let rows = retried(self.setup, self.on, &request, (&cases, number), kept, session)?;
                            journal.replace(&heading, &rows).or_else(|d| session.fail(*d))?;
                            rows
                        }
                        _ => kept,
                    }
                }
                None => {
                    let rows = rows(self.setup, self.on, &request, &cases, number, session)?;
                    let rows: Vec<Line> = rows.iter().map(Line::from).collect();
                    if let Some(journal) = &mut journal {
                        journal.add(&heading, &rows).or_else(|d| session.fail(*d))?;
                    }
                    rows
                }
            };
            report.flush(session, io);
            for row in rows.iter().filter(|row| shown && row.status() != "skipped") {
                io.print(&format!("{}\n", text.row(row)));
            }
            all.extend(rows);
        }
        self.finish(&cases, &heading, &all, &mut written).or_else(|d| session.fail(*d))?;
        self.print(&cases, &heading, &all, (skipped, top), io);
        if cfg!(debug_assertions) && all.iter().any(|row| row.number("of_limit").is_some()) {
            io.note("a debug build of ptoc: `of limit` means nothing\n");
        }
        let wrong = |row: &Line| matches!(row.status(), "wrong" | "failed");
        Ok(all.iter().any(wrong) || all.iter().all(|row| row.status() == "refused"))
    }

    /// The places of all files.
    fn files(&self, heading: &Heading<'_>, session: &mut Session) -> Result<(Option<Journal>, Written), Failed> {
        let args = self.args;
        let (mut journal, mut written) = (None, Written { outputs: Outputs::new(), files: Vec::new(), plot: None });
        let existing = match (args.resume, args.append) {
            (true, _) => Existing::Resume,
            (_, true) => Existing::Append,
            _ => Existing::Refuse,
        };
        written.outputs.keep_sources(&session.read).or_else(|d| session.fail(d))?;
        let is_table = |path: &PathBuf| path.extension().is_some_and(|e| e == "csv");
        let tables: Vec<&PathBuf> = args.out.iter().filter(|path| is_table(path)).collect();
        if tables.len() > 1 || (tables.is_empty() && existing != Existing::Refuse) {
            let message = match tables.len() {
                0 => "`--resume` and `--append` go on with a .csv, and `--out` names none".to_owned(),
                n => format!("`--out` names {n} .csv files, and rows are kept in one"),
            };
            let d = Diagnostic::global(codes::CANNOT_WRITE, message);
            return session.fail(d.with_help("give `--out` with one name that ends in .csv"));
        }
        if let Some(path) = &args.plot {
            if path.extension().is_none_or(|e| e != "svg") {
                let message = format!("cannot write `{}`: a plot's name ends in .svg", path.display());
                return session.fail(Diagnostic::global(codes::CANNOT_WRITE, message));
            }
            check(heading.cases, self.request.by, self.peers).or_else(|why| session.fail(nothing_to_plot(&why)))?;
            let mut outputs = Outputs::new();
            outputs.keep_sources(&session.read).or_else(|d| session.fail(d))?;
            let n = outputs.plan(path).or_else(|d| session.fail(d))?;
            written.plot = Some((outputs, n));
        }
        for path in args.out.iter().filter(|path| !is_table(path)) {
            let form = match path.extension().and_then(|e| e.to_str()) {
                Some("json") => "json",
                Some("md") => "md",
                Some("xml") => "xml",
                _ => {
                    let message = format!("cannot write `{}`: its suffix names no form of table", path.display());
                    let d = Diagnostic::global(codes::CANNOT_WRITE, message);
                    return session.fail(d.with_help("it is .csv, .json, .md (Markdown), or .xml (JUnit)"));
                }
            };
            let n = written.outputs.plan(path).or_else(|d| session.fail(d))?;
            written.files.push((n, form));
        }
        // Last, so that nothing is left over if something else is wrong.
        for path in tables {
            let opened = Journal::open(path, existing, heading, &session.read);
            journal = Some(opened.or_else(|d| session.fail(*d))?);
        }
        Ok((journal, written))
    }

    /// Writes the files that hold all rows.
    fn finish(
        &self,
        cases: &Cases,
        heading: &Heading<'_>,
        all: &[Line],
        written: &mut Written,
    ) -> Result<(), Box<Diagnostic>> {
        for (n, form) in &written.files {
            let text = match *form {
                "json" => heading.json(all),
                "md" => Text::new(cases, self.request.by).markdown(all),
                _ => heading.junit(all),
            };
            written.outputs.write(*n, text.as_bytes())?;
        }
        std::mem::take(&mut written.outputs).commit()?;
        // Last: where there is nothing to plot, the table is there all the same.
        if let Some((mut outputs, n)) = written.plot.take() {
            outputs.write(n, self.plot(cases, heading, all)?.as_bytes())?;
            outputs.commit()?;
        }
        Ok(())
    }

    fn plot(&self, cases: &Cases, heading: &Heading<'_>, all: &[Line]) -> Result<String, Box<Diagnostic>> {
        let of = |name: &str| heading.of.iter().find(|(n, _)| *n == name).map_or("", |(_, value)| value.as_str());
        let title = format!("{} on {} ({})", cases.kernel, of("backend"), of("target"));
        svg(&title, cases, all, self.request.by, self.peers).map_err(|why| Box::new(nothing_to_plot(&why)))
    }

    fn print(
        &self,
        cases: &Cases,
        heading: &Heading<'_>,
        all: &[Line],
        (skipped, most): (usize, Option<u32>),
        io: &mut Io<'_>,
    ) {
        let args = self.args;
        if args.json {
            let best = most.map(|most| top(all, self.request.by, most as usize));
            io.print(&heading.json(best.as_deref().unwrap_or(all)));
            return;
        }
        if let Some(most) = most {
            let text = Text::new(cases, self.request.by);
            io.print(&format!("{}\n", text.header()));
            for row in top(all, self.request.by, most as usize) {
                io.print(&format!("{}\n", text.row(&row)));
            }
        }
        io.print(&summary(cases, all));
        if let (Some(_), Some(rejected)) = (most, rejected(all)) {
            io.note(&format!("{rejected}: without `--top` they are shown\n"));
        }
        for (why, count) in left_out(all) {
            io.note(&format!("{} not shown: {why}\n", plural(count, "row")));
        }
        if skipped > 0 {
            io.note(&format!("{skipped} rows were there already\n"));
        }
        if self.request.by == By::Cycles && !all.is_empty() && self.on.backend.name() == backend::INTERP.name() {
            io.note("cycles are a model of time, not measured\n");
        }
    }
}

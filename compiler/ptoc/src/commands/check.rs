//! `ptoc check`

mod fix;
mod watch;

use super::Report;
use crate::args::{CheckArgs, MessageFormat};
use crate::io::Io;
use crate::{DONE, ERRORS};
use ptoc_diagnostics::{Diagnostic, Diagnostics, SourceMap, codes, plural};
use ptoc_driver::check::{Checked, check_entry};
use ptoc_driver::files;
use ptoc_driver::pto;
use ptoc_driver::session::{CompilationUnit, EntryPoint, Failed, Session};
use ptoc_driver::signals;
use ptoc_placement::MemoryMap;
use ptoc_syntax::ast::Name;
use ptoc_views::memory::lines::Lines;
use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// Checks, once or again and again; mends files before, if that is asked for.
pub fn check(args: &CheckArgs, io: &mut Io<'_>) -> u8 {
    if args.watch {
        return watch::watch(args, io);
    }
    if args.fix {
        let mut files = Vec::new();
        for path in &args.files {
            // What cannot be read is told by the check.
            let _ = files::collect(path, &mut files);
        }
        if let Err(status) = fix::fix(args, &files, io) {
            return status;
        }
    }
    once(args, io).0
}

/// Checks each file on its own; only the definitions are for all of them. Gives the exit status, and the files that
/// were read.
fn once(args: &CheckArgs, io: &mut Io<'_>) -> (u8, Vec<PathBuf>) {
    let mut files = Vec::new();
    let mut problems = Diagnostics::new();
    for path in &args.files {
        if let Err(d) = files::collect(path, &mut files) {
            problems.push(d);
        }
    }
    let all = files.len();
    let interrupted = |good: usize, bad: usize| match args.compile.message_format {
        MessageFormat::Human => {
            let left = plural(all - good - bad, "file");
            format!("interrupted: {good} without errors, {bad} with; {left} not checked")
        }
        _ => String::new(),
    };
    signals::say_at_the_end(interrupted(0, 0));
    let mut status =
        if io.report(problems, &SourceMap::new(), args.compile.message_format).errors > 0 { ERRORS } else { DONE };
    let (mut loaded, mut told) = (Vec::new(), HashSet::new());
    for path in &files {
        // A wrong call is wrong for every file.
        let (mut session, report) = match Report::begin(&args.compile, path, io) {
            Ok(begun) => begun,
            Err(wrong) => return (wrong, Vec::new()),
        };
        // What is wrong with a definition, or with a project, is said with the first file that it is about.
        session.diagnostics.retain(|d| {
            let place = d.span.map(|s| (session.sources.name(s.file).to_owned(), s.start));
            told.insert((d.code, place, d.message.clone()))
        });
        let unit = if path.as_os_str() == "-" { piped(&mut session, io) } else { session.load(path) };
        loaded.push((session, report, unit));
    }
    let units = loaded.iter().filter_map(|(_, _, unit)| unit.as_ref().ok());
    let known: Vec<Name> = units.flat_map(|unit| unit.entries().into_iter().flat_map(|e| e.settable(unit))).collect();
    if let Some((session, _, Ok(unit))) = loaded.iter_mut().find(|(_, _, unit)| unit.is_ok()) {
        match files.len() {
            1 => session.check_definitions(&unit.entries(), unit),
            _ => session.check_known(&known, "no kernel has anything"),
        }
    }
    let mut read = files.clone();
    let (mut good, mut bad) = (0, 0);
    for (n, (mut session, mut report, unit)) in loaded.into_iter().enumerate() {
        io.advance(n, all, "files");
        report.notes = true;
        let unit = unit.ok();
        let found = unit.as_ref().map(|unit| (found(&mut session, unit), unit));
        signals::step(|said| {
            let one = match found {
                Some((found, unit)) => tell(args, found, &mut session, &mut report, unit, io),
                None => {
                    report.flush(&mut session, io);
                    ERRORS
                }
            };
            io.flush();
            status = status.max(one);
            *(if one == DONE { &mut good } else { &mut bad }) += 1;
            *said = interrupted(good, bad);
        });
        read.append(&mut session.read);
    }
    signals::say_at_the_end(String::new());
    if all == 0 && status == DONE && args.compile.message_format == MessageFormat::Human {
        io.print("0 files\n");
    }
    (status, read)
}

/// What is piped in. Imports are looked for in the working directory.
fn piped(session: &mut Session, io: &mut Io<'_>) -> Result<CompilationUnit, Failed> {
    match io.read_input() {
        Ok(text) => Ok(session.load_text(Path::new(&pto::piped("<stdin>", &text)), text)),
        Err(why) => session.fail(Diagnostic::global(codes::CANNOT_READ, format!("cannot read standard input: {why}"))),
    }
}

/// What the checks of a file's kernels and programs have left beside diagnostics.
struct Found<'u> {
    entries: Vec<EntryPoint<'u>>,
    /// How many were not checked to the end.
    partly: usize,
    maps: Vec<MemoryMap>,
}

fn found<'u>(session: &mut Session, unit: &'u CompilationUnit) -> Found<'u> {
    let (entries, mut partly, mut maps) = (unit.entries(), 0, Vec::new());
    for entry in &entries {
        match check_entry(session, unit, entry) {
            Checked::Partly => partly += 1,
            Checked::Whole(found) => maps.extend(found.maps),
        }
    }
    Found { entries, partly, maps }
}

/// Shows what was found in a file; gives its exit status.
fn tell(
    args: &CheckArgs,
    found: Found<'_>,
    session: &mut Session,
    report: &mut Report,
    unit: &CompilationUnit,
    io: &mut Io<'_>,
) -> u8 {
    let Found { entries, partly, maps } = found;
    let counts = report.flush(session, io);
    if args.compile.message_format == MessageFormat::Human {
        let programs = entries.iter().filter(|e| e.program).count();
        let mut what = plural(entries.len() - programs, "kernel");
        if programs > 0 {
            what = format!("{what}, {}", plural(programs, "program"));
        }
        if partly > 0 && counts.errors == 0 {
            what = format!("{what} ({partly} not checked to the end)");
        }
        let line = match counts.summary() {
            Some(summary) if counts.errors > 0 => summary,
            Some(summary) => format!("ok: {what}; {summary}"),
            None => format!("ok: {what}"),
        };
        io.print(&format!("{}: {line}\n", unit.path.display()));
        if counts.errors == 0 {
            io.print(&summary(&maps, &Lines::new(&session.sources, unit.file)));
        }
    }
    report.times(session, io);
    report.status()
}

/// A line for each memory of each kernel.
fn summary(maps: &[MemoryMap], lines: &Lines<'_>) -> String {
    let mut rows: Vec<[String; 6]> = Vec::new();
    for map in maps {
        let first = rows.len();
        for m in &map.memories {
            let name = if rows.len() == first { map.kernel.to_string() } else { String::new() };
            let hardware = m.title();
            let line = lines.show(lines.at(map, m.peak_point));
            let used = if m.open { format!("at least {}", m.used) } else { m.used.to_string() };
            let at = if m.peak > 0 { format!("at line {line}") } else { String::new() };
            rows.push([name, hardware, used, m.capacity.to_string(), m.peak.to_string(), at]);
        }
        // Launches of one kernel often have equal sizes.
        let equal = |a: usize| rows.get(a..first).is_some_and(|old| old == &rows[first..]);
        if first.checked_sub(rows.len() - first).is_some_and(equal) {
            rows.truncate(first);
        }
    }
    let width = |c: usize| rows.iter().map(|r| r[c].chars().count()).max().unwrap_or(0);
    let w: [usize; 6] = std::array::from_fn(width);
    let mut out = String::new();
    for [name, memory, used, capacity, peak, at] in &rows {
        let line = format!(
            "  {name:0$}  {memory:1$}  {used:>2$} of {capacity:>3$} bytes used, peak {peak:>4$} {at}",
            w[0], w[1], w[2], w[3], w[4]
        );
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}

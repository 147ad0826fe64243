//! `ptoc fmt`: source files in canonical form. What cannot be parsed is left alone.

use crate::args::FmtArgs;
use crate::io::Io;
use crate::{DONE, ERRORS};
use ptoc_diagnostics::{Diagnostic, Diagnostics, FileId, SourceMap, codes};
use ptoc_driver::files::{self, Outputs};
use ptoc_driver::pto;
use ptoc_syntax::format::Refused;
use std::path::Path;

/// What has become of the files.
#[derive(Default)]
struct Tally {
    changed: usize,
    same: usize,
    failed: usize,
}

/// Formats files in place, or standard input to standard output.
pub fn fmt(args: &FmtArgs, io: &mut Io<'_>) -> u8 {
    let mut found = Vec::new();
    let mut problems = Diagnostics::new();
    for path in &args.paths {
        if let Err(d) = files::collect(path, &mut found) {
            problems.push(d);
        }
    }
    let mut tally =
        Tally { failed: io.report(problems, &SourceMap::new(), args.message_format).errors, ..Tally::default() };
    let (mut piped, mut named) = (false, 0);
    for path in &found {
        if path.as_os_str() == "-" {
            piped = true;
            input(args, io, &mut tally);
        } else {
            named += 1;
            file(path, args, io, &mut tally);
        }
    }
    if !piped || named > 0 {
        let (done, verb) = if args.check { ("not formatted", "are") } else { ("formatted", "were") };
        let mut line = format!("{} {done}, {} {verb} already", tally.changed, tally.same);
        if tally.failed > 0 {
            line += &format!(", {} left alone", tally.failed);
        }
        io.print(&format!("{line}\n"));
    }
    if tally.failed > 0 || (args.check && tally.changed > 0) { ERRORS } else { DONE }
}

fn input(args: &FmtArgs, io: &mut Io<'_>, tally: &mut Tally) {
    match io.read_input() {
        Ok(text) => {
            let name = pto::piped("standard input", &text);
            if let Some(formatted) = formatted(&name, &text, args, io, tally) {
                let same = formatted == text;
                if same {
                    tally.same += 1
                } else {
                    tally.changed += 1
                }
                match args.check {
                    false => io.print(&formatted),
                    true if same => {}
                    true => io.print(&difference(&name, &text, &formatted)),
                }
            }
        }
        Err(why) => {
            let d = Diagnostic::global(codes::CANNOT_READ, format!("cannot read standard input: {why}"));
            fail(d, &SourceMap::new(), args, io, tally);
        }
    }
}

fn file(path: &Path, args: &FmtArgs, io: &mut Io<'_>, tally: &mut Tally) {
    let text = match files::read_source(path) {
        Ok(text) => text,
        Err(d) => return fail(d, &SourceMap::new(), args, io, tally),
    };
    let name = path.display().to_string();
    let Some(formatted) = formatted(&name, &text, args, io, tally) else { return };
    if formatted == text {
        tally.same += 1;
        return;
    }
    if args.check {
        tally.changed += 1;
        return io.print(&difference(&name, &text, &formatted));
    }
    match Outputs::replace(path, formatted.as_bytes()) {
        Ok(()) => {
            tally.changed += 1;
            io.print(&format!("formatted {name}\n"));
        }
        Err(d) => fail(d, &SourceMap::new(), args, io, tally),
    }
}

/// The canonical form; if there is none, says why.
fn formatted(name: &str, text: &str, args: &FmtArgs, io: &mut Io<'_>, tally: &mut Tally) -> Option<String> {
    let mut sources = SourceMap::new();
    let file: FileId = sources.add(name, text);
    match pto::format(name, file, text) {
        Ok(formatted) => Some(formatted),
        Err(Refused::Broken(errors)) => {
            let mut found = Diagnostics::new();
            let mut errors = errors.into_iter().filter(Diagnostic::is_error);
            found.extend(
                errors.next().map(|d| d.with_note("the file is left alone: only what can be parsed is formatted")),
            );
            found.extend(errors);
            io.report(found, &sources, args.message_format);
            tally.failed += 1;
            None
        }
        Err(Refused::Changed) => {
            let message = format!("a bug of ptoc: the formatted text of `{name}` would not mean the same");
            let d = Diagnostic::global(codes::FORMATTER_FAILED, message);
            fail(d.with_help("the file is left alone: please report it"), &sources, args, io, tally);
            None
        }
    }
}

fn fail(d: Diagnostic, sources: &SourceMap, args: &FmtArgs, io: &mut Io<'_>, tally: &mut Tally) {
    let mut found = Diagnostics::new();
    found.push(d);
    io.report(found, sources, args.message_format);
    tally.failed += 1;
}

/// The first line that is not as it should be.
fn difference(name: &str, text: &str, formatted: &str) -> String {
    let mut lines = text.split('\n').zip(formatted.split('\n')).enumerate();
    let last = text.matches('\n').count();
    // A last line that ends with nothing has only its end to come.
    let differs = |(n, (is, should)): &(usize, (&str, &str))| {
        is != should && !(*n == last && should.strip_suffix('\r') == Some(is))
    };
    let Some((n, (is, should))) = lines.find(differs) else {
        return format!("{name}: line breaks at the end\n");
    };
    // What both have at their ends is no difference.
    let (is, should) = match (is.strip_suffix('\r'), should.strip_suffix('\r')) {
        (Some(is), Some(should)) => (is, should),
        _ => (is, should),
    };
    let shown = |line: &str| line.replace('\r', "\\r");
    format!("{name}:{}\n- {}\n+ {}\n", n + 1, shown(is), shown(should))
}

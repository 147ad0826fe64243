//! `ptoc check`

use super::Report;
use crate::args::{CheckArgs, MessageFormat};
use crate::io::{Io, plural};
use crate::session::{Entry, Session, Unit, Waiting};
use crate::{DONE, ERRORS};
use ptoc_diagnostics::{Diagnostic, Severity, codes};
use std::path::Path;

/// Checks each file on its own.
pub fn check(args: &CheckArgs, io: &mut Io<'_>) -> u8 {
    let mut status = DONE;
    for path in &args.files {
        match check_one(args, path, io) {
            Ok(one) => status = status.max(one),
            // A wrong call is wrong for every file.
            Err(wrong) => return wrong,
        }
    }
    status
}

fn check_one(args: &CheckArgs, path: &Path, io: &mut Io<'_>) -> Result<u8, u8> {
    let (mut session, mut report) = Report::begin(&args.compile, io)?;
    let Ok(unit) = session.load(path) else {
        report.flush(&mut session, io);
        return Ok(ERRORS);
    };
    let entries = unit.entries();
    session.check_definitions(&entries, &unit);
    let mut partly = 0;
    for entry in &entries {
        partly += usize::from(check_entry(&mut session, &unit, entry) == Checked::Partly);
    }
    let counts = report.flush(&mut session, io);
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
        io.print(&format!("{}: {line}\n", path.display()));
    }
    Ok(report.status())
}

/// How far a check came.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Checked {
    /// To the end.
    Whole,
    /// It depends on something that is not known.
    Partly,
}

/// Checks a kernel or program with the session's definitions and its own defaults: types, placement, initialisation.
/// Everything that is wrong is among the session's diagnostics.
pub fn check_entry(session: &mut Session, unit: &Unit, entry: &Entry<'_>) -> Checked {
    if let Some(name) = entry.missing_static(&session.definitions) {
        let kernel = &entry.item.name.name;
        let mut d = Diagnostic::note(
            codes::MISSING_STATIC,
            name.span,
            format!("`{kernel}` was not checked: `{}` has no default", name.name),
        );
        d.severity = Severity::Note;
        session
            .diagnostics
            .push(d.with_label("needs a value").with_help(format!("give it one: `-D {}=..`", name.name)));
        return Checked::Partly;
    }
    let Ok(mut bindings) = session.bindings(entry, unit) else { return Checked::Partly };
    // A dimension that is given is the same for every launch that is meant.
    bindings.fixed = bindings.dims.clone();
    if entry.program {
        let Some(program) = session.instantiate_program(unit, entry.id, &bindings, Waiting::IsNote) else {
            return Checked::Partly;
        };
        for step in program.steps {
            session.prepare(step.instance);
        }
        return Checked::Whole;
    }
    match session.instantiate(unit, entry.id, &bindings, Waiting::IsNote) {
        Some(instance) => {
            session.prepare(instance);
            Checked::Whole
        }
        None => Checked::Partly,
    }
}

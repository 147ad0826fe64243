//! `ptoc check --fix`: fixes that are certain are written into the files.

use super::super::{Report, show};
use crate::ERRORS;
use crate::args::{CheckArgs, MessageFormat};
use crate::io::Io;
use ptoc_diagnostics::{Diagnostic, plural};
use ptoc_driver::check::check_entry;
use ptoc_driver::files::Outputs;
use ptoc_driver::fixes::{Mended, mend};
use ptoc_driver::pto::is_pto;
use ptoc_driver::signals;
use std::path::{Path, PathBuf};

/// Rounds for one file: what one fix shows, another mends.
const ROUNDS: usize = 16;

/// Mends all files. What is left is found by the check that follows. `Err` is the status of a wrong call, or of a file
/// that cannot be written. Fixes in `.pto` files may be words of the language, so these are left as they are, and so is
/// what is no file: pipes, modules of the standard library.
pub fn fix(args: &CheckArgs, files: &[PathBuf], io: &mut Io<'_>) -> Result<(), u8> {
    let mut done = Done { mended: 0, files: 0, told: args.compile.message_format == MessageFormat::Human };
    signals::step(|said| *said = done.said());
    for path in files.iter().filter(|path| path.is_file() && !is_pto(&path.to_string_lossy())) {
        let mut mended = 0;
        let mut left = 0;
        done.files += 1;
        for _ in 0..ROUNDS {
            let (now, guesses) = round(args, path, &mut done, io)?;
            mended += now;
            left = guesses;
            if now == 0 {
                break;
            }
        }
        if mended == 0 {
            done.files -= 1;
        }
        if (mended > 0 || left > 0) && args.compile.message_format == MessageFormat::Human {
            let guesses = match left {
                0 => String::new(),
                n => format!("; {n} left with a fix that is a guess, or one of several"),
            };
            io.print(&format!("{}: {} mended{guesses}\n", path.display(), plural(mended, "mistake")));
        }
    }
    Ok(())
}

/// What was written so far.
struct Done {
    mended: usize,
    /// Those that were changed, with the one that is being looked at.
    files: usize,
    /// A person reads it.
    told: bool,
}

impl Done {
    /// What is said if a signal ends the command now.
    fn said(&self) -> String {
        let (mistakes, files) = (plural(self.mended, "mistake"), plural(self.files, "file"));
        if self.told {
            format!("interrupted: {mistakes} mended in {files}; nothing was checked")
        } else {
            String::new()
        }
    }
}

/// The number of mistakes that one round has mended, and of those that it has left though they have fixes.
fn round(args: &CheckArgs, path: &Path, done: &mut Done, io: &mut Io<'_>) -> Result<(usize, usize), u8> {
    let (mut session, _) = Report::begin(&args.compile, path, io)?;
    let Ok(unit) = session.load(path) else { return Ok((0, 0)) };
    for entry in &unit.entries() {
        check_entry(&mut session, &unit, entry);
    }
    let mut found = std::mem::take(&mut session.diagnostics);
    session.lints.apply(&mut found);
    let found: Vec<Diagnostic> = found.iter().cloned().collect();
    let Mended { text, count: mended } = mend(session.sources.text(unit.file), unit.file, &found);
    let fixes = found.iter().filter(|d| d.fixes.iter().any(|fix| !fix.edits.is_empty())).count();
    if mended == 0 {
        return Ok((0, fixes));
    }
    let mut outputs = Outputs::new();
    let written = outputs.plan(path).and_then(|n| outputs.write(n, text.as_bytes()));
    let committed = |()| {
        signals::step(|said| {
            outputs.commit()?;
            done.mended += mended;
            *said = done.said();
            Ok(())
        })
    };
    match written.and_then(committed) {
        Ok(()) => Ok((mended, fixes - mended)),
        Err(d) => {
            show(d, io, args.compile.message_format);
            Err(ERRORS)
        }
    }
}

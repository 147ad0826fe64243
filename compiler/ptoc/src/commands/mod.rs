//! One file a subcommand.

#[cfg(feature = "profile")]
pub mod bench;
#[cfg(feature = "objects")]
pub mod build;
pub mod check;
pub mod complete;
#[cfg(feature = "debugger")]
mod debug;
#[cfg(feature = "pim")]
pub mod dram;
pub mod emit;
pub mod explain;
pub mod fmt;
pub mod import;
pub mod init;
pub mod layout;
pub mod man;
pub mod mem;
#[cfg(feature = "profile")]
pub mod profile;
pub mod run;
#[cfg(feature = "pim")]
pub mod sim;
pub mod targets;
pub mod test;
mod trace;
pub mod tune;
mod units;

use crate::args::{Cli, CompileArgs, MessageFormat};
use crate::io::{Counts, Io};
use crate::{DONE, ERRORS, WRONG_CALL};
use clap::CommandFactory;
use ptoc_diagnostics::{Code, Diagnostic, Diagnostics, Severity, SourceMap, codes, suggest};
use ptoc_driver::backend::BackendRef;
use ptoc_driver::defs::Definition;
use ptoc_driver::project::{self, Level, Lints};
use ptoc_driver::session::Session;
use ptoc_isa::Target;
use std::path::Path;

/// The variable of the environment by which a shell asks for completions.
pub const COMPLETE: &str = "COMPLETE";

/// Prints the completion script of a shell.
pub fn completions(shell: clap_complete::Shell, io: &mut Io<'_>) -> u8 {
    let (mut script, name) = (Vec::new(), shell.to_string());
    let shells = clap_complete::env::Shells::builtins();
    let written = match shells.completer(&name) {
        // It asks this program, which knows kernels, targets and codes.
        Some(completer) => completer.write_registration(COMPLETE, "ptoc", "ptoc", "ptoc", &mut script).is_ok(),
        None => false,
    };
    if !written {
        script.clear();
        clap_complete::generate(shell, &mut Cli::command(), "ptoc", &mut script);
    }
    let script = String::from_utf8_lossy(&script).into_owned();
    io.print(&if shell == clap_complete::Shell::Bash { complete::in_bash(&script) } else { script });
    DONE
}

/// Shows one diagnostic that needs no sources.
pub(crate) fn show(d: Diagnostic, io: &mut Io<'_>, format: MessageFormat) {
    let mut found = Diagnostics::new();
    found.push(d);
    io.report(found, &SourceMap::new(), format);
}

/// `--resident` where there is no memory with units.
fn no_residents(backend: BackendRef, target: &Target) -> Diagnostic {
    let message = format!("`--resident` is for units in memory, and the backend is `{}`", backend.name());
    Diagnostic::global(codes::BACKEND_TARGET, message).with_help(match target.has_units() {
        true => "leave `--backend` out, or write `--backend pim`",
        false => "give a target with units in memory, such as `--target hbm-pim`",
    })
}

/// Which warnings are errors by `--deny`.
fn denied(words: &[String]) -> Result<Lints, Box<Diagnostic>> {
    let mut lints = Lints::default();
    for word in words {
        let code = match (word.as_str(), Code::find(word)) {
            ("warnings", _) => None,
            (_, Some(info)) => Some(info.code),
            (_, None) => {
                let d = Diagnostic::global(codes::UNKNOWN_CODE, format!("--deny {word}: there is no such code"));
                let known = Code::all().iter().map(|c| c.code.as_str()).chain(["warnings"]);
                return Err(Box::new(match suggest(word, known) {
                    Some(near) => d.with_help(format!("did you mean `{near}`?")),
                    None => d.with_help("`ptoc explain --list` lists the codes; `--deny warnings` means all"),
                }));
            }
        };
        lints.set(code, Level::Deny);
    }
    Ok(lints)
}

/// Threads of this host that `--threads` means.
fn host_threads(asked: usize) -> usize {
    if asked == 0 { ptoc_exec::Pool::default_threads() } else { asked }
}

/// What a command that compiles does with its diagnostics.
struct Report {
    deny: Lints,
    format: MessageFormat,
    /// Remarks about how a target does things are shown. `check` is the place for them.
    notes: bool,
    counts: Counts,
    /// `--time-passes`
    time_passes: bool,
}

impl Report {
    /// Session and report for the flags of a call on a source file; `Err` is the exit status.
    fn begin(args: &CompileArgs, source: &Path, io: &mut Io<'_>) -> Result<(Session, Report), u8> {
        let definitions: Vec<Definition> =
            args.define.iter().map(|(name, value)| Definition { name: name.clone(), value: value.clone() }).collect();
        let session = || Session::in_project(project::find(source), args.target.as_deref(), &definitions);
        let made = denied(&args.deny).and_then(|deny| Ok((session()?, deny)));
        match made {
            Ok((mut session, deny)) => {
                let (format, counts, time_passes) = (args.message_format, Counts::default(), args.time_passes);
                session.verify_ir = args.verify_ir;
                Ok((session, Report { deny, format, notes: false, counts, time_passes }))
            }
            Err(d) => {
                show(*d, io, args.message_format);
                Err(WRONG_CALL)
            }
        }
    }

    /// Shows what the session found since the last time.
    fn flush(&mut self, session: &mut Session, io: &mut Io<'_>) -> Counts {
        let mut found = std::mem::take(&mut session.diagnostics);
        if !self.notes {
            found.retain(|d| d.severity != Severity::Note);
        }
        let mut lints = session.lints.clone();
        lints.overlay(self.deny.clone());
        lints.apply(&mut found);
        let counts = io.report(found, &session.sources, self.format);
        self.counts += counts;
        for note in std::mem::take(&mut session.notes) {
            if self.format == MessageFormat::Human {
                io.note(&format!("{note}\n"));
            }
        }
        counts
    }

    /// Shows where the time went, if that is asked for.
    fn times(&self, session: &Session, io: &mut Io<'_>) {
        if self.time_passes {
            io.note(&session.clock.table());
        }
    }

    /// The exit status for what was shown.
    fn status(&self) -> u8 {
        if self.counts.errors > 0 { ERRORS } else { DONE }
    }
}

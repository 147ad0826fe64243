//! `ptoc init`: a project file to begin with.

use super::show;
use crate::args::{InitArgs, MessageFormat};
use crate::io::Io;
use crate::{DONE, ERRORS};
use ptoc_diagnostics::{Diagnostic, codes};
use ptoc_driver::files::{self, Outputs};
use ptoc_driver::project::{FILE, TEMPLATE};
use std::path::PathBuf;

/// Writes `ptoc.toml` into a folder that has none.
pub fn init(args: &InitArgs, io: &mut Io<'_>) -> u8 {
    let here = args.folder.as_os_str() == ".";
    let path = if here { PathBuf::from(FILE) } else { args.folder.join(FILE) };
    // A link is there, wherever it points.
    let written = match path.symlink_metadata().map(|_| true).or_else(|_| path.try_exists()) {
        Ok(true) => {
            let d = Diagnostic::global(codes::CANNOT_WRITE, format!("`{}` is there already", path.display()));
            Err(d.with_help("it stays as it is; spec/project.md has its keys"))
        }
        Err(e) => {
            let why = files::reason(&e);
            Err(Diagnostic::global(codes::CANNOT_WRITE, format!("cannot write `{}`: {why}", path.display())))
        }
        Ok(false) => Outputs::replace(&path, TEMPLATE.as_bytes()),
    };
    match written {
        Ok(()) => {
            io.print(&format!("{} is written\n", path.display()));
            DONE
        }
        Err(d) => {
            show(d, io, MessageFormat::Human);
            ERRORS
        }
    }
}

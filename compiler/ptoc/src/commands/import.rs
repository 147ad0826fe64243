//! `ptoc import`: PTO text as source of the language.

use crate::args::ImportArgs;
use crate::io::Io;
use crate::{DONE, ERRORS};
use ptoc_diagnostics::{Diagnostic, Diagnostics, SourceMap, codes};
use ptoc_driver::files::{self, Outputs};
use ptoc_driver::pto;

/// Writes a `.pto` file as a `.tile` file, or to standard output. What has no words in the language leaves no file.
pub fn import(args: &ImportArgs, io: &mut Io<'_>) -> u8 {
    let mut sources = SourceMap::new();
    match imported(args, &mut sources, io) {
        Ok(()) => DONE,
        Err(found) => {
            let mut diagnostics = Diagnostics::new();
            diagnostics.extend(found);
            io.report(diagnostics, &sources, args.message_format);
            ERRORS
        }
    }
}

fn imported(args: &ImportArgs, sources: &mut SourceMap, io: &mut Io<'_>) -> Result<(), Vec<Diagnostic>> {
    let name = args.file.display().to_string();
    if !pto::is_pto(&name) {
        let d = Diagnostic::global(
            codes::PTO_IMPORT,
            format!("`{name}` is no PTO text: its name does not end with `.pto`"),
        );
        return Err(vec![d.with_help("PTO text is what PTOAS reads: spec/pto.md")]);
    }
    let one = |d: Diagnostic| vec![d];
    if let Some(output) = args.output.as_ref().map(|path| path.display().to_string()).filter(|path| pto::is_pto(path)) {
        let message = format!("what is imported is source of the language, and `{output}` is the name of PTO text");
        return Err(one(Diagnostic::global(codes::PTO_IMPORT, message).with_help("its name ends with `.tile`")));
    }
    let mut outputs = Outputs::new();
    let place = args.output.as_ref().map(|path| outputs.plan(path)).transpose().map_err(one)?;
    let text = files::read_source(&args.file).map_err(one)?;
    let file = sources.add(name, text.clone());
    let source = pto::import(file, &text, &files_name(args))?;
    match place {
        None => io.print(&source),
        Some(n) => {
            outputs.keep_sources(std::slice::from_ref(&args.file)).map_err(one)?;
            outputs.write(n, source.as_bytes()).and_then(|()| outputs.commit()).map_err(one)?;
        }
    }
    Ok(())
}

/// The last part of the file's name.
fn files_name(args: &ImportArgs) -> String {
    args.file.file_name().map_or_else(String::new, |n| n.to_string_lossy().into_owned())
}

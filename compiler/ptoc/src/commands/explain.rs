//! `ptoc explain`

use super::show;
use crate::args::{ExplainArgs, MessageFormat};
use crate::io::Io;
use crate::{DONE, WRONG_CALL};
use ptoc_diagnostics::Code;

/// Prints the page of a code, the entry of an instruction, or the list of codes.
pub fn explain(args: &ExplainArgs, io: &mut Io<'_>) -> u8 {
    let Some(word) = &args.code else {
        let width = Code::all().iter().map(|c| c.code.as_str().len()).max().unwrap_or(0);
        let lines = Code::all().iter().map(|c| format!("{:width$}  {}\n", c.code.as_str(), c.title));
        io.print(&lines.collect::<String>());
        return DONE;
    };
    match ptoc_views::explain::page(word) {
        Ok(page) => {
            io.print(&page);
            DONE
        }
        Err(d) => {
            show(*d, io, MessageFormat::Human);
            WRONG_CALL
        }
    }
}

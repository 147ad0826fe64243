//! `ptoc layout`

mod batch;

use super::show;
use crate::args::{LayoutArgs, MessageFormat};
use crate::io::Io;
use crate::{DONE, ERRORS};
use ptoc_diagnostics::{Diagnostic, Diagnostics};
use ptoc_driver::files::Outputs;
use ptoc_layout::picture::{Picture, TableStyle};
use ptoc_layout::{Cx, ExprError, Value, ops};
use ptoc_views::expression::Expressions;
use ptoc_views::layout::{describe, object};
use serde_json::json;
use std::fmt::Write as _;
use std::io::BufReader;
use std::path::Path;

/// Rows of a table.
const ROWS: usize = 32;

/// Evaluates an expression and shows the value, as text, as JSON or as a picture.
pub fn layout(args: &LayoutArgs, io: &mut Io<'_>) -> u8 {
    if args.list {
        io.print(&operations());
        return DONE;
    }
    let expressions = Expressions::default();
    let cx = &expressions.cx;
    let Some(text) = &args.expr else {
        return batch::batch(&expressions, &mut BufReader::with_capacity(1 << 16, std::io::stdin().lock()), io);
    };
    let value = match expressions.evaluate(text) {
        Ok(value) => value,
        Err(e) => {
            if args.json {
                io.print(&format!("{}\n", json!({"error": expressions.located(&e, text)})));
                io.flush();
            }
            report(&e, &expressions, text, io);
            return ERRORS;
        }
    };
    if args.json {
        io.print(&format!("{}\n", object(cx, &value, text)));
        return DONE;
    }
    if let Some(path) = &args.svg {
        return match draw(cx, &value, path, text) {
            Ok(()) => {
                io.print(&format!("{value}\nwritten to {}\n", path.display()));
                DONE
            }
            Err(failed) => {
                match failed {
                    NotDrawn::Picture(e) => report(&e, &expressions, text, io),
                    NotDrawn::File(d) => show(d, io, MessageFormat::Human),
                }
                ERRORS
            }
        };
    }
    let style = TableStyle { width: io.width, rows: ROWS, color: io.color_out };
    io.print(&describe(cx, &value, &style));
    DONE
}

/// Every operation with what it does.
fn operations() -> String {
    let mut out = String::new();
    for op in ops::all() {
        let _ = writeln!(out, "{}\n    {}", op.usage, op.doc);
    }
    out
}

enum NotDrawn {
    Picture(ExprError),
    File(Diagnostic),
}

/// Writes the picture of a value.
fn draw(cx: &Cx, value: &Value, path: &Path, text: &str) -> Result<(), NotDrawn> {
    let picture = Picture::of(cx, value).map_err(|e| NotDrawn::Picture(ExprError::whole(e, text)))?;
    let mut outputs = Outputs::new();
    let write = |outputs: &mut Outputs| {
        let n = outputs.plan(path)?;
        outputs.write(n, picture.svg().as_bytes())
    };
    write(&mut outputs).and_then(|()| outputs.commit()).map_err(NotDrawn::File)
}

/// The error with the expression as its source.
fn report(e: &ExprError, expressions: &Expressions, text: &str, io: &mut Io<'_>) {
    let (d, sources) = expressions.diagnostic(e, text);
    let mut found = Diagnostics::new();
    found.push(d);
    io.report(found, &sources, MessageFormat::Human);
}

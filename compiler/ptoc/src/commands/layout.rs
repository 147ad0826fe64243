//! `ptoc layout`

mod batch;

use super::show;
use crate::args::{LayoutArgs, MessageFormat};
use crate::io::Io;
use crate::{DONE, ERRORS};
use ptoc_diagnostics::{Code, Diagnostic, Diagnostics, SourceMap, Span, codes, list, suggest};
use ptoc_driver::files::Outputs;
use ptoc_layout::picture::{Picture, TableStyle};
use ptoc_layout::{Cx, Env, ExprError, ExprErrorKind, MmaAtom, TextSpan, Value, eval_expr, ops};
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
    let env = environment();
    let cx = Cx::default().with_families(ptoc_names::standard_families());
    let Some(text) = &args.expr else {
        return batch::batch(&cx, &env, &mut BufReader::with_capacity(1 << 16, std::io::stdin().lock()), io);
    };
    let value = match eval_expr(&cx, &env, text) {
        Ok(value) => value,
        Err(e) => {
            if args.json {
                io.print(&format!("{}\n", json!({"error": located(&e, &env, text)})));
                io.flush();
            }
            report(&e, &env, text, io);
            return ERRORS;
        }
    };
    if args.json {
        io.print(&format!("{}\n", object(&cx, &value, text)));
        return DONE;
    }
    if let Some(path) = &args.svg {
        return match draw(&cx, &value, path, text) {
            Ok(()) => {
                io.print(&format!("{value}\nwritten to {}\n", path.display()));
                DONE
            }
            Err(failed) => {
                match failed {
                    NotDrawn::Picture(e) => report(&e, &env, text, io),
                    NotDrawn::File(d) => show(d, io, MessageFormat::Human),
                }
                ERRORS
            }
        };
    }
    let style = TableStyle { width: io.width, rows: ROWS, color: io.color_out };
    io.print(&describe(&cx, &value, &style));
    DONE
}

/// The values that expressions may name: the library's atoms and their dtypes, and the operands of a matrix
/// instruction.
fn environment() -> Env {
    let mut env = Env::new();
    for value in ptoc_names::standard_atoms() {
        let types = match value {
            Value::Atom(atom) => &atom.types,
            Value::Family(family) => family.types(),
            _ => continue,
        };
        for name in types {
            env.insert(name.clone(), Value::DType(name.as_str().into()));
        }
        env.insert(value.to_string(), value.clone());
    }
    for (name, value) in MmaAtom::operands() {
        env.insert(name, value);
    }
    env
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

fn code(e: &ExprError) -> Code {
    match &e.kind {
        ExprErrorKind::Syntax => codes::LAYOUT_SYNTAX,
        ExprErrorKind::UnknownName(_) | ExprErrorKind::UnknownOperation(_) => codes::UNKNOWN_LAYOUT_NAME,
        ExprErrorKind::Arity => codes::LAYOUT_ARITY,
        ExprErrorKind::Layout(e) => ptoc_names::layout_code(e.kind),
    }
}

/// What would mend it: what the error says itself, or the nearest name.
fn help(e: &ExprError, env: &Env) -> Option<String> {
    let names = || ops::all().map(|op| op.name).chain(env.names());
    match &e.kind {
        ExprErrorKind::UnknownOperation(name) => Some(match suggest(name, names()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "`ptoc layout --list` lists the operations".into(),
        }),
        ExprErrorKind::UnknownName(name) => Some(match suggest(name, names()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("there are {}; `ptoc layout --list` lists the operations", list(env.names())),
        }),
        _ => e.help.clone(),
    }
}

/// One line with the column.
fn located(e: &ExprError, env: &Env, text: &str) -> String {
    ExprError { help: help(e, env), ..e.clone() }.located(text)
}

/// The error with the expression as its source.
fn report(e: &ExprError, env: &Env, text: &str, io: &mut Io<'_>) {
    let mut sources = SourceMap::new();
    let file = sources.add("expression", text);
    let span = |at: &TextSpan| Span::new(file, at.start as u32, at.end as u32);
    let mut d = Diagnostic::error(code(e), span(&e.span), &e.message).with_label(&e.label);
    for (at, label) in &e.labels {
        d = d.with_secondary(span(at), label);
    }
    if let Some(help) = help(e, env) {
        d = d.with_help(help);
    }
    let mut found = Diagnostics::new();
    found.push(d);
    io.report(found, &sources, MessageFormat::Human);
}

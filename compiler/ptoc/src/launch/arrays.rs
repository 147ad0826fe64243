//! The arrays of a call: which arguments they are for, and reading them.

use crate::files;
use crate::io::list;
use crate::session::{Entry, Failed, Session, type_span};
use indexmap::IndexMap;
use ptoc_diagnostics::{Diagnostic, codes, suggest};
use ptoc_syntax::ast::{Dir, Name};
use ptoc_tensor::{DType, Tensor};
use std::path::PathBuf;

/// An array and the file that it came from.
#[derive(Clone, Debug)]
pub struct Array {
    /// The elements.
    pub tensor: Tensor,
    /// The file.
    pub path: PathBuf,
}

/// Arrays by argument.
pub type Arrays = IndexMap<String, Array>;

/// How an array is used, for messages.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Use {
    Read,
    Write,
}

/// Checks that `name` is a tensor argument that can be used so.
fn check_name(entry: &Entry<'_>, flag: &str, name: &str, wanted: Use) -> Result<(), Box<Diagnostic>> {
    let fits = |dir: Dir| match wanted {
        Use::Read => dir != Dir::Out,
        Use::Write => dir != Dir::In,
    };
    let usable: Vec<&str> =
        entry.tensors().filter(|p| p.dir.is_none_or(|(dir, _)| fits(dir))).map(|p| p.name.name.as_str()).collect();
    let (word, kernel) = (entry.word(), &entry.item.name.name);
    let Some(param) = entry.item.params.iter().find(|p| p.name.name == name) else {
        let what = if wanted == Use::Read { "input" } else { "output" };
        let message = format!("{flag} {name}: {word} `{kernel}` has no argument `{name}`");
        let mut d = Diagnostic::global(codes::UNKNOWN_ARGUMENT, message)
            .with_note(format!("its {what}s are {}", list(usable.iter().copied())));
        if let Some(near) = suggest(name, usable) {
            d = d.with_help(format!("did you mean `{flag} {near}=..`?"));
        }
        return Err(Box::new(d));
    };
    let Some((dir, at)) = param.dir else {
        let message = format!("{flag} {name}: `{name}` is a scalar argument and no tensor");
        let mut d = Diagnostic::global(codes::UNKNOWN_ARGUMENT, message);
        if wanted == Use::Read {
            d = d.with_help(format!("set it with `-D {name}=VALUE`"));
        }
        d.span = Some(param.span);
        return Err(Box::new(d));
    };
    if fits(dir) {
        return Ok(());
    }
    let (is, use_instead) = match wanted {
        Use::Read => ("only written", "--out"),
        Use::Write => ("only read", "--in"),
    };
    let message = format!("{flag} {name}: `{name}` is {is}");
    Err(Box::new(
        Diagnostic::error(codes::UNKNOWN_ARGUMENT, at, message)
            .with_label("declared so here")
            .with_help(format!("use `{use_instead} {name}=..`, or declare it `inout`")),
    ))
}

/// The names of `--given`: tensor arguments that a launch may leave out.
pub fn check_given(session: &mut Session, entry: &Entry<'_>, names: &[String]) -> Result<Vec<Name>, Failed> {
    let optional: Vec<&str> = entry.tensors().filter(|p| p.default.is_some()).map(|p| p.name.name.as_str()).collect();
    let (word, kernel) = (entry.word(), &entry.item.name.name);
    for name in names {
        if optional.contains(&name.as_str()) {
            continue;
        }
        let message = format!("--given {name}: {word} `{kernel}` has no argument `{name}` that may be left out");
        let d = Diagnostic::global(codes::UNKNOWN_ARGUMENT, message);
        let d = match optional.is_empty() {
            true => d.with_note("all its tensors are given anyway").with_help(format!("leave `--given {name}` out")),
            false => d.with_note(format!("a launch may leave out {}", list(optional.iter().copied()))),
        };
        session.diagnostics.push(d);
    }
    match names.iter().all(|n| optional.contains(&n.as_str())) {
        true => Ok(names.iter().map(Name::new).collect()),
        false => Err(Failed),
    }
}

fn check_all(session: &mut Session, entry: &Entry<'_>, flag: &str, names: &[(String, PathBuf)], wanted: Use) -> bool {
    let mut ok = true;
    for (i, (name, _)) in names.iter().enumerate() {
        if names[..i].iter().any(|(other, _)| other == name) {
            let message = format!("{flag} {name}: given twice");
            session.diagnostics.push(Diagnostic::global(codes::UNKNOWN_ARGUMENT, message).with_help("give it once"));
            ok = false;
        } else if let Err(d) = check_name(entry, flag, name, wanted) {
            session.diagnostics.push(*d);
            ok = false;
        }
    }
    ok
}

/// Checks the names of outputs (`--out`, `--expect`).
pub fn check_outputs(
    session: &mut Session,
    entry: &Entry<'_>,
    flag: &str,
    names: &[(String, PathBuf)],
) -> Result<(), Failed> {
    if check_all(session, entry, flag, names, Use::Write) { Ok(()) } else { Err(Failed) }
}

/// Reads the arrays of inputs.
pub fn read_arrays(
    session: &mut Session,
    entry: &Entry<'_>,
    flag: &str,
    files: &[(String, PathBuf)],
) -> Result<Arrays, Failed> {
    let mut failed = !check_all(session, entry, flag, files, Use::Read);
    let begin = session.clock.now();
    let mut arrays = Arrays::new();
    for (name, path) in files {
        let param = entry.tensors().find(|p| p.name.name == *name);
        let declared = param.map_or("", |p| session.sources.slice(type_span(p)));
        let wanted = declared.split('[').next().and_then(|dtype| DType::from_name(dtype.trim()));
        match files::read_array(path, wanted) {
            Ok(tensor) => {
                arrays.insert(name.clone(), Array { tensor, path: path.clone() });
            }
            Err(mut d) => {
                if d.span.is_none() {
                    d.span = param.map(|p| p.span);
                    d.label = "for this argument".into();
                }
                session.diagnostics.push(d);
                failed = true;
            }
        }
    }
    session.clock.phase("read arrays", begin);
    if failed { Err(Failed) } else { Ok(arrays) }
}

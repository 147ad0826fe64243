//! The arrays of a call: which arguments they are for, and reading them.

use crate::files::{self, ArrayFile};
use crate::session::{EntryPoint, Failed, Session, type_span};
use indexmap::IndexMap;
use ptoc_diagnostics::{Diagnostic, Span, codes, list, suggest};
use ptoc_syntax::ast::{Dir, Name, Param};
use ptoc_tensor::DType;
use std::path::{Path, PathBuf};

/// Arrays by argument, of which as a rule only the headers were read.
pub type Arrays = IndexMap<String, ArrayFile>;

/// How an array is used, for messages.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Use {
    Read,
    Write,
}

/// Checks that `name` is a tensor argument that can be used so.
fn check_name(entry: &EntryPoint<'_>, flag: &str, name: &str, wanted: Use) -> Result<(), Box<Diagnostic>> {
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
pub fn check_given(session: &mut Session, entry: &EntryPoint<'_>, names: &[String]) -> Result<Vec<Name>, Failed> {
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

fn check_all(
    session: &mut Session,
    entry: &EntryPoint<'_>,
    flag: &str,
    names: &[(String, PathBuf)],
    wanted: Use,
) -> bool {
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
    entry: &EntryPoint<'_>,
    flag: &str,
    names: &[(String, PathBuf)],
) -> Result<(), Failed> {
    if check_all(session, entry, flag, names, Use::Write) { Ok(()) } else { Err(Failed) }
}

/// Opens the arrays of inputs and reads their headers.
pub fn open_arrays(
    session: &mut Session,
    entry: &EntryPoint<'_>,
    flag: &str,
    files: &[(String, PathBuf)],
) -> Result<Arrays, Failed> {
    let named = check_all(session, entry, flag, files, Use::Read);
    let opened = open_all(session, entry, &mut Arrays::new(), files);
    if named { opened } else { Err(Failed) }
}

/// Opens the arrays that outputs are compared with, after those of the inputs.
pub fn open_expected(
    session: &mut Session,
    entry: &EntryPoint<'_>,
    flag: &str,
    inputs: &mut Arrays,
    files: &[(String, PathBuf)],
) -> Result<Arrays, Failed> {
    let named = check_outputs(session, entry, flag, files);
    let opened = open_all(session, entry, inputs, files);
    named.and(opened)
}

fn open_all(
    session: &mut Session,
    entry: &EntryPoint<'_>,
    before: &mut Arrays,
    files: &[(String, PathBuf)],
) -> Result<Arrays, Failed> {
    let begin = session.clock.now();
    let (mut arrays, mut failed) = (Arrays::new(), false);
    for (name, path) in files {
        let param = |name: &str| entry.tensors().find(|p| p.name.name == *name);
        let declared = param(name).map_or("", |p| session.sources.slice(type_span(p)));
        let wanted = declared.split('[').next().and_then(|dtype| DType::from_name(dtype.trim()));
        match open_after([&mut *before, &mut arrays], name, path, wanted) {
            Ok(array) => {
                let batch = param(name).filter(|p| entry.has_batch(p, array.shape().len()));
                let array = match batch {
                    Some(p) => batch_of_one(session, p, array),
                    None => array,
                };
                arrays.insert(name.clone(), array);
            }
            Err((of, d)) => {
                session.diagnostics.push(for_argument(*d, param(&of).map(|p| p.span)));
                failed = true;
            }
        }
    }
    session.clock.phase("read arrays", begin);
    if failed { Err(Failed) } else { Ok(arrays) }
}

/// An array of one dimension less, as a batch of one. The first such array is worth a warning.
pub(crate) fn batch_of_one(session: &mut Session, param: &Param, array: ArrayFile) -> ArrayFile {
    let array = array.with_last_mode();
    if !session.diagnostics.iter().any(|d| d.code == codes::APPENDED_MODE) {
        session.diagnostics.push(appended(&param.name.name, &array, type_span(param)));
    }
    array
}

/// An array is taken as a batch of one.
fn appended(name: &Name, array: &ArrayFile, at: Span) -> Diagnostic {
    let rank = array.shape().len();
    let message =
        format!("`{name}` has {rank} dimensions, its array {}: it is taken as {}", rank - 1, array.signature());
    let mut d = Diagnostic::warning(codes::APPENDED_MODE, at, message).with_label("the last extent is 1");
    if !array.is_lent() {
        d = d.with_note(format!("the array is `{}`", array.path().display()));
    }
    d.with_note("so it is for each argument that has one dimension less")
        .with_help("to say it yourself: `x[..., None]`, or `x[None, ...]` if the first extent is meant")
}

/// A diagnostic about an array, with the argument that the array is for.
pub fn for_argument(mut d: Diagnostic, span: Option<Span>) -> Diagnostic {
    if d.span.is_none() && span.is_some() {
        d.span = span;
        d.label = "for this argument".into();
    }
    d
}

/// An error with the name of the array that it is about.
type Refused = (String, Box<Diagnostic>);

/// Opens an array after others.
fn open_after(before: [&mut Arrays; 2], name: &str, path: &Path, wanted: Option<DType>) -> Result<ArrayFile, Refused> {
    if let Some(stream) = files::stream(path) {
        let mut opened = before.iter().flat_map(|arrays| arrays.iter());
        if let Some((other, _)) = opened.find(|(_, array)| array.stream() == Some(stream)) {
            let message = format!("cannot read array `{}`: it is the pipe that `{other}` is read from", path.display());
            let d = Diagnostic::global(codes::CANNOT_READ, message);
            return Err((name.to_owned(), d.with_help("give each array a pipe or a file of its own").into()));
        }
        // Who writes one pipe after another would wait forever for the first to be emptied.
        for arrays in before {
            let drain = |(name, array): (String, ArrayFile)| match array.drain() {
                Ok(array) => Ok((name, array)),
                Err(d) => Err((name, Box::new(d))),
            };
            *arrays = std::mem::take(arrays).into_iter().map(drain).collect::<Result<Arrays, Refused>>()?;
        }
    }
    ArrayFile::open(path, wanted).map_err(|d| (name.to_owned(), Box::new(d)))
}

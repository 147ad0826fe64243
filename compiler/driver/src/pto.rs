//! `.pto` files as sources: PTO text becomes a syntax tree of the language, whose places are those of the `.pto` file.

use ptoc_diagnostics::{Diagnostic, FileId, Span};
use ptoc_isa::Loc;
use ptoc_names::{Tree, UsePlace, WORD_NAMES};
use ptoc_pto::read::Reading;
use ptoc_syntax::ast;
use ptoc_syntax::format::Refused;
use ptoc_tensor::DType;
use std::path::Path;
use std::sync::Arc;

/// Whether a file of this name holds PTO text.
pub fn is_pto(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|e| e == "pto")
}

/// The text in the language's words, and what is wrong with it or cannot be said in them.
pub fn translate(file: FileId, text: &str) -> (Option<Reading>, Vec<Diagnostic>) {
    ptoc_pto::translate(file, text, &is_known)
}

/// Names that mean something in the language.
fn is_known(name: &str) -> bool {
    WORD_NAMES.contains(&name)
        || DType::from_name(name).is_some()
        || Loc::from_name(name).is_some()
        || ptoc_isa::lookup(name).is_some()
}

/// A source text in its canonical form: of PTO text the white space of its lines, by `name`'s ending.
pub fn format(name: &str, file: FileId, text: &str) -> Result<String, Refused> {
    if !is_pto(name) {
        return ptoc_syntax::format::format(file, text);
    }
    match ptoc_pto::parse(file, text).diagnostics {
        errors if errors.is_empty() => Ok(ptoc_pto::format::format(text)),
        errors => Err(Refused::Broken(errors)),
    }
}

/// The tree of a text; an empty one if it is wrong.
pub fn tree(file: FileId, text: &str) -> Tree {
    let (reading, mut diagnostics) = translate(file, text);
    let mut ast = ast::File::default();
    if let Some(Reading { source, .. }) = reading {
        let parsed = ptoc_syntax::parse(file, &source.text);
        let origin = |span: Span| source.origin(span);
        diagnostics.extend(parsed.diagnostics.into_iter().map(|d| moved(d, &origin)));
        ast = parsed.file;
        ptoc_syntax::respan::respan(&mut ast, &origin);
    }
    let imports = UsePlace::of(&ast, "");
    Tree { ast: Arc::new(ast), diagnostics, directives: Vec::new(), imports }
}

/// A report about the translated text, at its places in the `.pto` file and without edits of what is not there.
fn moved(mut d: Diagnostic, origin: &dyn Fn(Span) -> Span) -> Diagnostic {
    d.span = d.span.map(origin);
    d.labels.iter_mut().for_each(|l| l.span = origin(l.span));
    d.fixes.clear();
    d
}

//! `.pto` files as sources: PTO text becomes a syntax tree of the language, whose places are those of the `.pto` file.

use ptoc_diagnostics::{Diagnostic, FileId, Span, codes};
use ptoc_isa::Loc;
use ptoc_names::{Tree, UsePlace, WORD_NAMES};
use ptoc_pto::attr::AttrValue;
pub use ptoc_pto::edit::{Proposal, Proposed, about, proposals};
pub use ptoc_pto::highlight::{Kind, listed, tokens};
pub use ptoc_pto::names::{Defined, NameIndex};
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

/// The name of a text that has none, which says what it holds: `name`, or with the ending of PTO text.
pub fn piped(name: &str, text: &str) -> String {
    if ptoc_pto::begins(text) { format!("{name}.pto") } else { name.to_owned() }
}

/// The text in the language's words, and what is wrong with it or cannot be said in them.
pub fn translate(file: FileId, text: &str) -> (Option<Reading>, Vec<Diagnostic>) {
    ptoc_pto::translate(file, text, &is_known, &[])
}

/// Names that mean something in the language, where it is written here: `block` is none of the words that are needed.
fn is_known(name: &str) -> bool {
    (WORD_NAMES.contains(&name) && name != "block")
        || DType::from_name(name).is_some()
        || Loc::from_name(name).is_some()
        || ptoc_isa::lookup(name).is_some()
}

/// A warning if the module says that it is for another target than the one it is compiled for.
pub fn other_target(file: FileId, text: &str, target: &str) -> Option<Diagnostic> {
    let parsed = ptoc_pto::parse(file, text);
    let attr = parsed.module.attrs.iter().find(|a| a.name == "pto.target_arch")?;
    let Some(AttrValue::Str(word)) = &attr.value else { return None };
    let named = match word.trim_matches('"') {
        "a2" | "a3" => "a2a3",
        name => name,
    };
    let message = format!("the module is for {named}, and is compiled for {target}");
    let d = Diagnostic::warning(codes::PTO_ARCH, attr.span, message);
    let known = ptoc_isa::Target::all().iter().any(|t| t.name == named);
    (named != target).then(|| match known {
        true => d.with_help(format!("`--target {named}` compiles it for the target that it names")),
        false => d.with_note(format!("there is no target `{named}`: `ptoc targets` lists them")),
    })
}

/// Says what was found in the translation of a text in words of the text: it declares no directions. Repairs of the
/// translation's words are left out; those of the text's own codes speak of the text.
pub fn in_words_of_the_text(d: &mut Diagnostic) {
    if !d.code.info().name.starts_with("pto_") {
        d.fixes.clear();
    }
    const DECLARED: &str = "declared `out`: it has no values before the launch";
    const GIVEN: &str = "where nothing is stored an array keeps its contents: `ptoc run --in NAME=F.npy` gives them";
    for label in d.labels.iter_mut().map(|l| &mut l.message).chain([&mut d.label]) {
        if label == DECLARED {
            *label = "only stored to: it has no values before the launch".into();
        }
    }
    if [codes::UNWRITTEN_ELEMENTS, codes::COVER_NOT_PROVED, codes::UNWRITTEN_OUTPUT].contains(&d.code) {
        *d = std::mem::replace(d, Diagnostic::global(d.code, "")).with_help(GIVEN);
    }
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

/// PTO text as source of the language, in its canonical form. `name` is the file's.
///
/// # Errors
/// It is wrong, or has no words in the language.
pub fn import(file: FileId, text: &str, name: &str) -> Result<String, Vec<Diagnostic>> {
    let (reading, diagnostics) = translate(file, text);
    let Some(Reading { source, .. }) = reading.filter(|_| diagnostics.is_empty()) else { return Err(diagnostics) };
    let text = format!("// PTO text of {name}, imported by ptoc.\n\n{}", source.text.trim_start());
    ptoc_syntax::format::format(file, &text).map_err(|refused| match refused {
        Refused::Broken(errors) => errors.into_iter().map(|d| moved(d, &|span| source.origin(span))).collect(),
        Refused::Changed => vec![Diagnostic::global(
            codes::FORMATTER_FAILED,
            "a bug of ptoc: the formatted text would not mean the same",
        )],
    })
}

/// The tree of a text; an empty one if it is wrong.
pub fn tree(file: FileId, text: &str) -> Tree {
    tree_given(file, text, &[])
}

/// [`tree`], where a launch gives the contents of these arguments.
pub fn tree_given(file: FileId, text: &str, given: &[String]) -> Tree {
    let (reading, mut diagnostics) = ptoc_pto::translate(file, text, &is_known, given);
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

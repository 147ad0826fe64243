//! A file of kernels, and what each of them takes.

use super::{Report, on_large_stack};
use crate::session::{CompilationUnit, DEFAULT_TARGET, EntryPoint, Session, extents};
use ptoc_diagnostics::{Diagnostic, SourceMap, Span, codes, list, suggest};
use ptoc_syntax::ast::{BinaryOp, Dir, ExprKind, Param, StaticKind, StaticParam};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A file of kernels and programs that has no mistakes of syntax or names.
#[derive(Debug)]
pub struct Library {
    path: PathBuf,
    text: String,
    signatures: Vec<Arc<Signature>>,
    sources: Arc<SourceMap>,
    /// What is worth a warning.
    pub warnings: Report,
}

/// What a kernel or program takes.
#[derive(Clone, Debug)]
pub struct Signature {
    /// The name.
    pub name: String,
    /// `kernel` or `program`.
    pub word: &'static str,
    /// Its documentation comment.
    pub docs: String,
    /// The declaration from the name to the last parenthesis, as it stands in the text.
    pub text: String,
    /// Static parameters.
    pub statics: Vec<Static>,
    /// Parameters, in order.
    pub parameters: Vec<Parameter>,
    /// Dimensions, which arrays bind.
    pub dimensions: Vec<String>,
    /// Dimensions that a `where` equates with something, and with what: `NB` with `ceil_div(N, B)`.
    pub equations: Vec<(String, String)>,
}

/// A parameter in `<..>`.
#[derive(Clone, Debug)]
pub struct Static {
    /// The name.
    pub name: String,
    /// It stands for a dtype.
    pub is_type: bool,
    /// As it is declared.
    pub declared: String,
    /// The values that its `tune` list names.
    pub tune: Vec<String>,
    /// The default of a number, as it is written.
    pub default: Option<String>,
}

/// A parameter in `(..)`.
#[derive(Clone, Debug)]
pub struct Parameter {
    /// The name.
    pub name: String,
    /// What it takes.
    pub kind: ParameterKind,
    /// Its type, as it is declared.
    pub declared: String,
    /// Where it is declared, in the text of the library.
    pub span: Span,
    /// Where its type is.
    pub declared_at: Span,
    /// A call may leave it out.
    pub optional: bool,
    /// What it is then, as it is declared.
    pub default: Option<String>,
    /// A `where` of the kernel names it, so what the kernel is compiled to may depend on its value.
    pub in_where: bool,
}

/// What a parameter takes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ParameterKind {
    /// An array.
    Tensor {
        /// Use.
        dir: Dir,
        /// The name before the brackets, which may be that of a static parameter.
        element: String,
        /// The extents of the array as they are declared; `None` where a layout's value says how many there are.
        extents: Option<Vec<String>>,
    },
    /// A number.
    Scalar,
}

impl Parameter {
    /// Whether a call gives it contents.
    pub fn is_input(&self) -> bool {
        !matches!(self.kind, ParameterKind::Tensor { dir: Dir::Out, .. })
    }

    /// Whether a call leaves contents in it.
    pub fn is_output(&self) -> bool {
        matches!(self.kind, ParameterKind::Tensor { dir: Dir::Out | Dir::InOut, .. })
    }

    /// Whether it takes an array.
    pub fn is_tensor(&self) -> bool {
        matches!(self.kind, ParameterKind::Tensor { .. })
    }
}

impl Library {
    /// Reads a file, or a module of the standard library (`std::scan`).
    ///
    /// # Errors
    /// A file that cannot be read, or has mistakes.
    pub fn open(path: &Path) -> Result<Library, Report> {
        Library::load(path, None)
    }

    /// A text; `path` is what it is called, and says where imports are looked for.
    ///
    /// # Errors
    /// Mistakes in it.
    pub fn of_text(path: &Path, text: String) -> Result<Library, Report> {
        Library::load(path, Some(text))
    }

    fn load(path: &Path, text: Option<String>) -> Result<Library, Report> {
        on_large_stack(|| {
            let mut session = Session::new(DEFAULT_TARGET, &[]).map_err(|d| Report::of(*d, Arc::default()))?;
            let unit = match &text {
                Some(text) => session.load_text(path, text.clone()),
                None => session.load_code(path).map_err(|_| Report::of_session(&mut session))?,
            };
            if session.diagnostics.has_errors() {
                return Err(Report::of_session(&mut session));
            }
            let entries = unit.entries();
            let signatures = entries.iter().map(|e| Arc::new(Signature::of(&session.sources, &unit, e))).collect();
            let text = session.sources.text(unit.file).to_owned();
            let sources = Arc::new(std::mem::take(&mut session.sources));
            let warnings = Report::new(std::mem::take(&mut session.diagnostics), Arc::clone(&sources));
            Ok(Library { path: path.to_owned(), text, signatures, sources, warnings })
        })
    }

    /// The path as it was given.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The texts that parameters point into.
    pub(super) fn sources(&self) -> &Arc<SourceMap> {
        &self.sources
    }

    /// Kernels and programs, in source order.
    pub fn signatures(&self) -> &[Arc<Signature>] {
        &self.signatures
    }

    /// The kernel or program of that name.
    ///
    /// # Errors
    /// There is none.
    pub fn signature(&self, name: &str) -> Result<&Arc<Signature>, Report> {
        if let Some(found) = self.signatures.iter().find(|s| s.name == name) {
            return Ok(found);
        }
        let path = self.path.display();
        let names: Vec<&str> = self.signatures.iter().map(|s| s.name.as_str()).collect();
        let mut d = Diagnostic::global(codes::UNKNOWN_KERNEL, format!("`{path}` has no kernel `{name}`"));
        d = match names.is_empty() {
            true => d.with_note("it has no kernel at all"),
            false => d.with_note(format!("it has {}", list(names.iter().copied()))),
        };
        if let Some(near) = suggest(name, names) {
            d = d.with_help(format!("did you mean `{near}`?"));
        }
        Err(Report::of(d, Arc::clone(&self.sources)))
    }
}

impl Signature {
    fn of(sources: &SourceMap, unit: &CompilationUnit, entry: &EntryPoint<'_>) -> Signature {
        let item = entry.item;
        let last = item.params.last().map_or(item.name.span, |p| p.span);
        let mut text = sources.slice(item.name.span.to(last)).split_whitespace().collect::<Vec<_>>().join(" ");
        text.push_str(if item.params.is_empty() { "()" } else { ")" });
        let dimensions: Vec<String> = entry.dimensions(unit).iter().map(|d| d.name.to_string()).collect();
        let mut equations = Vec::new();
        for e in &item.wheres {
            let ExprKind::Binary(BinaryOp::Eq, a, b) = &*e.kind else { continue };
            for (side, other) in [(a, b), (b, a)] {
                let ExprKind::Name(name) = &*side.kind else { continue };
                if dimensions.iter().any(|d| **d == **name) {
                    equations.push((name.to_string(), sources.slice(other.span).to_owned()));
                }
            }
        }
        Signature {
            name: item.name.name.to_string(),
            word: entry.word(),
            docs: unit.modules.item(entry.id).docs.clone(),
            text,
            statics: item.statics.iter().map(|s| Static::of(sources, s)).collect(),
            parameters: item.params.iter().map(|p| Parameter::of(sources, unit, entry, p)).collect(),
            dimensions,
            equations,
        }
    }

    /// The parameter of that name, and its number.
    pub fn parameter(&self, name: &str) -> Option<(usize, &Parameter)> {
        self.parameters.iter().enumerate().find(|(_, p)| p.name == name)
    }

    /// Whether a definition of this name means something: a static parameter or a dimension.
    pub fn is_constant(&self, name: &str) -> bool {
        self.statics.iter().any(|s| s.name == name) || self.dimensions.iter().any(|d| d == name)
    }
}

impl Static {
    fn of(sources: &SourceMap, s: &StaticParam) -> Static {
        let is_type = matches!(s.kind, StaticKind::Type { .. });
        let slice = |span: Span| sources.slice(span).to_owned();
        let (tune, default) = match &s.kind {
            StaticKind::Const { tune, default, .. } => {
                (tune.iter().map(|value| slice(value.span)).collect(), default.as_ref().map(|value| slice(value.span)))
            }
            _ => (Vec::new(), None),
        };
        Static { name: s.name.name.to_string(), is_type, declared: slice(s.span), tune, default }
    }
}

impl Parameter {
    fn of(sources: &SourceMap, unit: &CompilationUnit, entry: &EntryPoint<'_>, p: &Param) -> Parameter {
        let kind = match (&*p.ty.kind, p.dir) {
            (ExprKind::Index(element, _), dir) if extents(p).is_some() => ParameterKind::Tensor {
                dir: dir.map_or(Dir::In, |(dir, _)| dir),
                element: sources.slice(element.span).to_owned(),
                extents: entry
                    .axes(p, unit)
                    .map(|axes| axes.iter().map(|e| sources.slice(e.span).to_owned()).collect()),
            },
            _ => ParameterKind::Scalar,
        };
        Parameter {
            name: p.name.name.to_string(),
            kind,
            declared: sources.slice(p.ty.span).to_owned(),
            span: p.span,
            declared_at: p.ty.span,
            optional: p.default.is_some(),
            default: p.default.as_ref().map(|e| sources.slice(e.span).to_owned()),
            in_where: entry.item.wheres.iter().any(|e| names(sources.slice(e.span), &p.name.name)),
        }
    }
}

/// Whether a text of the language has this name in it.
pub(super) fn names(text: &str, name: &str) -> bool {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == name)
}

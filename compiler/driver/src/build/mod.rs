//! Kernels compiled ahead of time, to files that other programs link or load: what `ptoc build` writes.
//!
//! A backend says which forms it has ([`Backend::forms`](crate::backend::Backend::forms)) and makes one of a prepared
//! kernel. What is the same for all is here: which kernel, what is known of it, what C is told ([`header`]).

#[cfg(feature = "objects")]
pub mod archive;
#[cfg(feature = "cpu")]
mod c;
pub mod comment;
#[cfg(feature = "cpu")]
pub(crate) mod entry_codes;
#[cfg(feature = "cpu")]
pub mod header;
mod pto;

#[cfg(feature = "cpu")]
pub use c::{CFunction, Misnamed};
#[cfg(all(feature = "cpu", feature = "gpu"))]
pub(crate) use entry_codes::ENTRY_CODES;
#[cfg(feature = "cpu")]
pub use entry_codes::number;
pub use pto::SUFFIX as PTO_SUFFIX;

use crate::backend::{self, BackendRef, Part};
use crate::session::{CompilationUnit, EntryPoint, Failed, RepairOrigin, Session, Waiting, extents};
use ptoc_analysis::{ScalarArg, TensorArg};
use ptoc_diagnostics::{Diagnostic, codes, list};
use ptoc_passes::Prepared;
use ptoc_syntax::ast::Name;
use std::path::Path;

/// The name of the library of routines that machine code calls.
pub const RUNTIME: &str = "libptoc_native.a";

/// A kind of file that a backend makes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Form {
    /// What the names of such files end with, behind a dot.
    pub extension: &'static str,
    /// What it is, in some words.
    pub about: &'static str,
}

/// Files of machine code.
pub(crate) const CPU_FORMS: [Form; 3] = [
    Form { extension: "o", about: "an object of machine code, for a linker" },
    Form { extension: "a", about: "an archive of it and of what it needs of the runtime" },
    Form { extension: "so", about: "the same as a shared library (needs a C compiler's linker)" },
];

/// What is to be built.
#[derive(Clone, Debug)]
pub struct Request {
    /// What the name of the file ends with.
    pub extension: String,
    /// The name of the function, if it is not the kernel's.
    pub symbol: Option<String>,
    /// The name of the header, as programs will include it.
    pub header: Option<String>,
    /// The name of the launcher in C, if there is to be one.
    pub launcher: Option<String>,
    /// The file's own name.
    pub file: String,
    /// The command that was given.
    pub command: String,
}

impl Request {
    /// Refuses a launcher, where C calls what is built.
    pub(crate) fn without_launcher(&self) -> Result<(), Box<Diagnostic>> {
        let Some(launcher) = &self.launcher else { return Ok(()) };
        let message = format!("--launcher {launcher}: what is in `{}` needs none", self.file);
        let d = Diagnostic::global(codes::NOT_AHEAD_OF_TIME, message)
            .with_note("a launcher has a kernel of a GPU in it, and starts it by NVIDIA's driver")
            .with_help("leave it out, or write a `.ptx` or `.cubin` with `--target sm90`");
        Err(Box::new(d))
    }
}

/// What is written.
#[derive(Debug)]
pub struct Built {
    /// The file.
    pub bytes: Vec<u8>,
    /// Its header.
    pub header: String,
    /// Its launcher in C, if one was asked for.
    pub launcher: Option<String>,
    /// What it is: the kernel, and where it comes from.
    pub about: String,
    /// What has to be said of it: how it is linked.
    pub remarks: Vec<String>,
    /// Flags of a linker behind it.
    pub links: String,
}

/// A kernel that is ready to be built, with what its source says of it.
#[derive(Debug)]
pub struct BuildUnit {
    /// The kernel after all passes.
    pub prepared: Prepared,
    /// Its name in the source.
    pub name: String,
    /// The file of its source.
    pub source: String,
    /// Its documentation.
    pub docs: String,
    /// Its declaration, in one line.
    pub declaration: String,
    /// Parameters as they are declared, with their defaults.
    pub parameters: Vec<DeclaredParameter>,
    /// `where` conditions, and whether each is about contents of arrays, which the code does not look at.
    pub wheres: Vec<(String, bool)>,
    /// Definitions that it was compiled with.
    pub definitions: Vec<(String, String)>,
    /// Tensor arguments.
    pub tensors: Vec<TensorArg>,
    /// Scalar arguments.
    pub scalars: Vec<ScalarArg>,
}

/// A parameter as the source has it.
#[derive(Clone, Debug)]
pub struct DeclaredParameter {
    /// The name.
    pub name: String,
    /// The type.
    pub ty: String,
    /// The default.
    pub default: Option<String>,
}

impl BuildUnit {
    /// What it is, in a line.
    pub fn about(&self) -> String {
        format!("Kernel {} of {}", self.name, self.source)
    }
}

/// The forms that can be built for any target, each once.
pub fn forms() -> Vec<Form> {
    let mut all: Vec<Form> = Vec::new();
    for form in backend::all().into_iter().flat_map(|b| b.forms()) {
        if all.iter().all(|known| known.extension != form.extension) {
            all.push(*form);
        }
    }
    all
}

/// Builds a kernel; `given` are the optional arguments that its callers give.
///
/// # Errors
/// The kernel is refused, or cannot be compiled ahead of time.
pub fn build(
    session: &mut Session,
    unit: &CompilationUnit,
    entry: &EntryPoint<'_>,
    given: Vec<Name>,
    request: &Request,
) -> Result<Built, Failed> {
    if pto::is_meant(&request.file) {
        return pto::build(session, unit, entry, given, request);
    }
    let backend = match maker(session, &request.extension) {
        Ok(backend) => backend,
        Err(d) => return session.fail(*d),
    };
    session.select(backend);
    let unit = prepare(session, unit, entry, given)?;
    backend.build(session, &unit, request)
}

/// The backend that makes files of this form for the session's target.
fn maker(session: &Session, extension: &str) -> Result<BackendRef, Box<Diagnostic>> {
    let target = &session.target;
    let serving = backend::serving(target);
    let has = |b: &BackendRef| b.forms().iter().any(|f| f.extension == extension);
    if let Some(found) = serving.iter().copied().find(has) {
        return Ok(found);
    }
    if let Some(part) = left_out(extension) {
        return Err(Box::new(part.refused()));
    }
    let mut own: Vec<String> = serving.iter().flat_map(|b| b.forms()).map(|f| format!(".{}", f.extension)).collect();
    if target.gpu.is_none() && !target.is_pim() {
        own.push(pto::SUFFIX.to_owned());
    }
    let message = format!("kernels for {} are not built as `.{extension}`", target.name);
    let d = Diagnostic::global(codes::NOT_AHEAD_OF_TIME, message);
    let elsewhere = backend::all().into_iter().find(has).and_then(|b| b.home());
    let d = match own.is_empty() {
        true => d.with_note("nothing that runs them is loaded from a file"),
        false => d.with_help(format!("the name of the output ends with {}", list(own.iter().map(String::as_str)))),
    };
    Err(Box::new(match elsewhere {
        Some(home) => d.with_help(format!("`--target {home}` has it")),
        None => d,
    }))
}

/// The part of ptoc that makes files of this form, where this build leaves it out.
fn left_out(extension: &str) -> Option<Part> {
    if !cfg!(feature = "objects") && CPU_FORMS.iter().any(|f| f.extension == extension) {
        return Some(Part::OBJECTS);
    }
    let has = |b: &BackendRef| b.left_out().is_some() && b.forms().iter().any(|f| f.extension == extension);
    backend::with_left_out().into_iter().find(has).and_then(|b| b.left_out().copied())
}

/// Only kernels are compiled ahead of time.
fn refuse_program(session: &mut Session, entry: &EntryPoint<'_>) -> Result<(), Failed> {
    if !entry.program {
        return Ok(());
    }
    let name = &entry.item.name;
    let message = format!("`{}` is a program, and only kernels are compiled ahead of time", name.name);
    let d = Diagnostic::error(codes::NOT_AHEAD_OF_TIME, name.span, message);
    session.fail(d.with_help("build the kernels that it launches, and call them one after the other"))
}

/// Runs all passes, with what `-D` defines as constants.
fn prepare(
    session: &mut Session,
    unit: &CompilationUnit,
    entry: &EntryPoint<'_>,
    given: Vec<Name>,
) -> Result<BuildUnit, Failed> {
    refuse_program(session, entry)?;
    let item = entry.item;
    let mut bindings = session.bindings(entry, unit)?;
    bindings.given = given;
    bindings.fixed = bindings.dims.clone();
    let instance = session.instantiate(unit, entry.id, &bindings, Waiting::IsError).ok_or(Failed)?;
    if session.diagnostics.has_errors() {
        return Err(Failed);
    }
    let (tensors, scalars) = (instance.tensors, instance.scalars);
    for t in &tensors {
        if let Err(d) = laid_out(t) {
            return session.fail(*d);
        }
    }
    let origin = RepairOrigin { unit, kernel: entry.id, bindings: &bindings };
    let prepared = session.prepare(instance.kernel, &instance.debug, &origin).ok_or(Failed)?;
    if prepared.placed.watched {
        let message = format!("it is not proved that `{}` reads only what it has written", item.name.name);
        let d = Diagnostic::error(codes::NOT_AHEAD_OF_TIME, item.name.span, message)
            .with_label("a launch of it is watched")
            .with_note("what is built ahead of time runs without someone who looks on")
            .with_help("give the sizes that it is for with `-D`, with which more can be proved")
            .with_help("`ptoc check` says what is not proved");
        return session.fail(d);
    }
    let slice = |span| session.sources.slice(span).split_whitespace().collect::<Vec<_>>().join(" ");
    let last = item.params.last().map_or(item.name.span, |p| p.span);
    let parameters = item.params.iter().map(|p| DeclaredParameter {
        name: p.name.name.to_string(),
        ty: match (extents(p), p.dir) {
            (Some(_), Some((_, dir))) => format!("{} {}", slice(dir), slice(p.ty.span)),
            _ => slice(p.ty.span),
        },
        default: p.default.as_ref().map(|e| slice(e.span)),
    });
    let parameters = parameters.collect();
    let wheres = item.wheres.iter().map(|e| (slice(e.span), crate::launch::has_index(e))).collect();
    let definitions = session.definitions.values.iter().map(|(name, e)| (name.to_string(), slice(e.span))).collect();
    Ok(BuildUnit {
        name: item.name.name.to_string(),
        source: file_name(&unit.path),
        docs: unit.modules.item(entry.id).docs.clone(),
        declaration: format!("{})", slice(item.name.span.to(last))),
        parameters,
        wheres,
        definitions,
        tensors,
        scalars,
        prepared,
    })
}

/// Refuses an argument whose layout no memory has, and one whose layout only a launch knows: nobody would check it.
fn laid_out(t: &TensorArg) -> Result<(), Box<Diagnostic>> {
    let Some(layout) = &t.layout else { return Ok(()) };
    if layout.layout.is_static() && layout.offset.as_const().is_some() {
        return layout.storage((t.name.as_str(), t.dtype, t.dir, t.span), &mut |_| None).map(|_| ());
    }
    let message = format!("the layout of `{}` depends on sizes or scalars that are not known", t.name);
    let d = Diagnostic::error(codes::NOT_AHEAD_OF_TIME, t.span, message)
        .with_label("checked when it is launched: that no two elements share a place, and that all have one")
        .with_help("give what it depends on with `-D`");
    Err(Box::new(d))
}

/// A file for pkg-config, which will be at `path`, of a library at `library`.
pub fn pkg_config(path: &Path, library: &Path, built: &Built) -> String {
    let absolute = |of: &Path| std::path::absolute(of).unwrap_or_else(|_| of.to_owned());
    let (path, library) = (absolute(path), absolute(library));
    let folder = library.parent().unwrap_or(&library).display().to_string();
    // Spaces would end a flag.
    let quoted = |text: &str| text.replace('\\', "\\\\").replace(' ', "\\ ");
    let name = path.file_stem().map_or_else(|| "kernel".into(), |stem| stem.to_string_lossy().into_owned());
    format!(
        "folder={}\n\nName: {name}\nDescription: {}\nVersion: {}\nLibs: ${{folder}}/{}{}\nCflags: \
         -I${{folder}}\n",
        quoted(&folder),
        built.about,
        env!("CARGO_PKG_VERSION"),
        quoted(&file_name(&library)),
        built.links.replace(RUNTIME, "-lptoc_native"),
    )
}

/// The last part of a path.
pub fn file_name(path: &Path) -> String {
    path.file_name().map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into_owned())
}

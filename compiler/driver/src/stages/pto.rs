//! PTO text of a kernel, and C++ against the headers of pto-isa.

use crate::pto;
use crate::session::{Failed, Session};
use ptoc_diagnostics::{Diagnostic, Span, codes};
use ptoc_placement::PlacedKernel;
use ptoc_pto::attr::Source;
use ptoc_pto::cpp::{self, Unit};
use ptoc_pto::origins::Origins;
use ptoc_pto::tree::Module;
use ptoc_pto::write::{Form, Level};
use std::path::Path;

/// The kernel as PTO text of the session's level. Each operation has its place in the source.
pub fn text(session: &mut Session, placed: &PlacedKernel) -> Result<String, Failed> {
    let level = session.pto_level.unwrap_or(Level::Automatic);
    Ok(ptoc_pto::print(&tree(session, placed, Form::Text, level)?))
}

/// A kernel in C++.
pub struct Cpp {
    /// The translation unit.
    pub unit: String,
    /// A line about it.
    pub about: String,
    /// The declaration of its launcher, without the semicolon.
    pub launcher: String,
}

/// The kernel in C++, in the form of the session's level. `launcher` is the name of the function that runs it.
pub fn cpp(session: &mut Session, placed: &PlacedKernel, launcher: Option<&str>) -> Result<Cpp, Failed> {
    let level = session.pto_level.unwrap_or(Level::Explicit);
    let form = match level {
        Level::Explicit => "Manual form: tiles have the addresses of the plan, flags and barriers order the pipes.",
        Level::Automatic => "Automatic form: whoever compiles it places the tiles and orders the pipes.",
        Level::Placed => {
            let message = "C++ has two forms, with addresses and flags or without both: levels 3 and 2";
            return session.fail(Diagnostic::error(codes::PTO_CPP_UNSAID, placed.kernel.span, message));
        }
    };
    let module = tree(session, placed, Form::Cpp, level)?;
    let (name, source) = (&placed.kernel.name, session.sources.name(placed.kernel.span.file));
    let target = session.target.name.clone();
    let about = format!("Kernel {name} of {}, for {target}.", last_name(source));
    let made = format!("Made by ptoc {}.", env!("CARGO_PKG_VERSION"));
    let head = [about.clone(), form.to_owned(), made];
    let own = format!("launch_{name}");
    let unit = Unit { about: &head, launcher: launcher.unwrap_or(&own), target: &target, level };
    let made = cpp::print(&module, &unit).and_then(|text| Ok((text, cpp::declaration(&module, &unit)?)));
    match made {
        Ok((unit, launcher)) => Ok(Cpp { unit, about, launcher }),
        Err(d) => session.fail(*d),
    }
}

/// The kernel as a tree of the dialect.
fn tree(session: &mut Session, placed: &PlacedKernel, form: Form, level: Level) -> Result<Module, Failed> {
    let kernel = match level {
        Level::Automatic => placed.kernel.clone(),
        Level::Placed => ptoc_placement::physical(&placed.kernel, &placed.placement, &session.target),
        Level::Explicit => {
            let bytes = ptoc_placement::physical(&placed.kernel, &placed.placement, &session.target);
            ptoc_opt::sync::insert_and_report(bytes, &session.target).0
        }
    };
    let sources = &session.sources;
    // Operations of PTO text may say where they stem from.
    let file = placed.kernel.span.file;
    let said = match pto::is_pto(sources.name(file)) {
        true => Origins::of(file, sources.text(file)),
        false => Origins::default(),
    };
    let place = |span: Span| {
        if let Some(source) = said.at(span) {
            return Some(source.clone());
        }
        let position = sources.position(span.file, span.start);
        Some(Source::place(&last_name(sources.name(span.file)), position.line, position.column))
    };
    ptoc_pto::write::write(&kernel, form, level, &place).or_else(|d| session.fail(*d))
}

/// What is wrong with a target that is none of PTO's.
pub(super) fn foreign(session: &Session, span: Span) -> Option<Diagnostic> {
    let target = &session.target;
    let what = match () {
        () if target.gpu.is_some() => "a GPU, whose tiles are in registers and shared memory",
        () if target.is_pim() => "a memory with processing units in it, which have no tile buffers and no pipes",
        () => return None,
    };
    let message = format!("PTO text and PTO C++ are for PTO's targets, and `{}` is none of them", target.name);
    let d = Diagnostic::error(codes::PTO_FOREIGN_TARGET, span, message).with_note(format!("it is {what}"));
    Some(d.with_help("compile for one of PTO's: `--target a2a3`, `a5`, `kirin9030` or `kirinx90`"))
}

/// The last part of a file's name.
fn last_name(name: &str) -> String {
    Path::new(name).file_name().map_or_else(|| name.to_owned(), |n| n.to_string_lossy().into_owned())
}

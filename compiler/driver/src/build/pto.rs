//! `_pto.cpp`: a kernel as C++ against the headers of pto-isa, which a compiler for PTO's targets takes.

use super::{Built, Request};
use crate::session::{CompilationUnit, EntryPoint, Failed, Session};
use crate::stages;
use ptoc_syntax::ast::Name;

/// What the names of such files end with.
pub const SUFFIX: &str = "_pto.cpp";

/// Whether a file of this name is C++ against pto-isa.
pub(super) fn is_meant(file: &str) -> bool {
    file.ends_with(SUFFIX)
}

/// The translation unit, and a header with its launcher.
pub(super) fn build(
    session: &mut Session,
    unit: &CompilationUnit,
    entry: &EntryPoint<'_>,
    given: Vec<Name>,
    request: &Request,
) -> Result<Built, Failed> {
    super::refuse_program(session, entry)?;
    request.without_launcher().or_else(|d| session.fail(*d))?;
    let cpp = stages::cpp_of(session, unit, entry, given, request.symbol.as_deref())?;
    // Names of files may have any characters.
    let plain = |text: &str| text.replace(char::is_control, " ");
    let header = format!(
        "// {}\n// Made by `{}`.\n#pragma once\n#include <cstdint>\n\n/// Runs it on that many cores.\n{};\n",
        plain(&cpp.about),
        plain(&request.command),
        cpp.launcher
    );
    let remark = "it is compiled with the include folder of pto-isa: spec/pto.md".to_owned();
    Ok(Built {
        bytes: cpp.unit.into_bytes(),
        header,
        launcher: None,
        about: cpp.about,
        remarks: vec![remark],
        links: String::new(),
    })
}

//! What a shell completes: kernels and names of the file on the line, targets, codes, instructions.

use clap_complete::engine::CompletionCandidate;
use ptoc_diagnostics::Code;
use ptoc_driver::session::{CompilationUnit, DEFAULT_TARGET, Session};
use ptoc_isa::Target;
use std::ffi::OsStr;
use std::path::Path;

fn fitting(current: &OsStr, all: impl Iterator<Item = (String, Option<String>)>) -> Vec<CompletionCandidate> {
    let begun = current.to_string_lossy().to_lowercase();
    let fits = all.filter(|(word, _)| word.to_lowercase().starts_with(&begun));
    fits.map(|(word, about)| CompletionCandidate::new(word).help(about.map(Into::into))).collect()
}

/// The source file that the line names. What is completed stands behind `--`.
fn source() -> Option<CompilationUnit> {
    let words = std::env::args_os().skip_while(|word| word != "--");
    let mut files = words.filter(|word| Path::new(word).extension().is_some_and(|e| e == "tile" || e == "pto"));
    let file = files.find(|word| Path::new(word).is_file())?;
    Session::new(DEFAULT_TARGET, &[]).ok()?.load(Path::new(&file)).ok()
}

/// Kernels and programs.
pub fn kernels(current: &OsStr) -> Vec<CompletionCandidate> {
    let unit = source();
    let entries = unit.iter().flat_map(CompilationUnit::entries);
    fitting(current, entries.map(|e| (e.item.name.name.to_string(), Some(e.word().to_owned()))))
}

/// Names that `-D` sets, up to their `=`.
pub fn definitions(current: &OsStr) -> Vec<CompletionCandidate> {
    let unit = source();
    let names = unit.iter().flat_map(|unit| unit.entries().into_iter().flat_map(|e| e.settable(unit)));
    let mut names: Vec<String> = names.map(|name| format!("{name}=")).collect();
    names.sort();
    names.dedup();
    fitting(current, names.into_iter().map(|name| (name, None)))
}

/// Targets.
pub fn targets(current: &OsStr) -> Vec<CompletionCandidate> {
    fitting(current, Target::all().iter().chain(Target::devices()).map(|t| (t.name.clone(), None)))
}

/// Codes with their titles.
fn known_codes() -> impl Iterator<Item = (String, Option<String>)> {
    Code::all().iter().map(|info| (info.code.as_str().to_owned(), Some(info.title.to_owned())))
}

/// Codes of diagnostics.
pub fn codes(current: &OsStr) -> Vec<CompletionCandidate> {
    fitting(current, known_codes())
}

/// Codes, and instructions.
pub fn pages(current: &OsStr) -> Vec<CompletionCandidate> {
    let rows = ptoc_isa::TABLE.iter().filter(|row| row.written_name() == row.name);
    let instructions = rows.map(|row| (row.name.to_owned(), Some("instruction".to_owned())));
    fitting(current, known_codes().chain(instructions))
}

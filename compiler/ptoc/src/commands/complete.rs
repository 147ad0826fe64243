//! What a shell completes: kernels and names of the file on the line, targets, codes, instructions.

use crate::args::Cli;
use clap::CommandFactory;
use clap_complete::engine::CompletionCandidate;
use ptoc_diagnostics::Code;
use ptoc_driver::session::{CompilationUnit, DEFAULT_TARGET, EntryPoint, Session};
use ptoc_isa::Target;
use ptoc_syntax::ast::{Dir, Name, Param};
use std::ffi::OsStr;
use std::path::Path;

fn fitting(current: &OsStr, all: impl Iterator<Item = (String, Option<String>)>) -> Vec<CompletionCandidate> {
    let begun = current.to_string_lossy().to_lowercase();
    let fits = all.filter(|(word, _)| word.to_lowercase().starts_with(&begun));
    fits.map(|(word, about)| CompletionCandidate::new(word).help(about.map(Into::into))).collect()
}

/// The words of the line as the shell would give them to the program. What is completed stands behind `--`.
fn line() -> Vec<String> {
    std::env::args_os().skip_while(|word| word != "--").skip(1).map(|word| plain(&word.to_string_lossy())).collect()
}

/// A word without its quotes and backslashes, its `~` replaced by the user's folder.
fn plain(word: &str) -> String {
    let home = word.strip_prefix("~/").zip(std::env::var("HOME").ok());
    let (mut out, word) = match &home {
        Some((rest, home)) => (format!("{home}/"), *rest),
        None => (String::new(), word),
    };
    let (mut quote, mut letters) = (None, word.chars());
    while let Some(c) = letters.next() {
        match (c, quote) {
            ('\\', None | Some('"')) => out.extend(letters.next()),
            ('"' | '\'', None) => quote = Some(c),
            (c, Some(q)) if c == q => quote = None,
            (c, _) => out.push(c),
        }
    }
    out
}

/// The source file that the line names, and the name of a kernel of it that follows.
fn source() -> Option<(CompilationUnit, Option<String>)> {
    let line = line();
    let is_source = |word: &String| Path::new(word).extension().is_some_and(|e| e == "tile" || e == "pto");
    let at = line.iter().position(|word| is_source(word) && Path::new(word).is_file())?;
    let unit = Session::new(DEFAULT_TARGET, &[]).ok()?.load(Path::new(&line[at])).ok()?;
    let kernel = line.get(at + 1).filter(|word| unit.entries().iter().any(|e| e.item.name.name == word.as_str()));
    let kernel = kernel.cloned();
    Some((unit, kernel))
}

/// Kernels and programs.
pub fn kernels(current: &OsStr) -> Vec<CompletionCandidate> {
    let unit = source().map(|(unit, _)| unit);
    let entries = unit.iter().flat_map(CompilationUnit::entries);
    fitting(current, entries.map(|e| (e.item.name.name.to_string(), Some(e.word().to_owned()))))
}

/// What names `of` gives for the kernel that the line names, or for all of the file, up to their `=`.
fn named(current: &OsStr, of: impl Fn(&EntryPoint<'_>, &CompilationUnit) -> Vec<Name>) -> Vec<CompletionCandidate> {
    let Some((unit, kernel)) = source() else { return Vec::new() };
    let entries = unit.entries();
    let meant = entries.iter().filter(|e| kernel.as_deref().is_none_or(|name| e.item.name.name == name));
    let mut names: Vec<String> = meant.flat_map(|e| of(e, &unit)).map(|name| format!("{name}=")).collect();
    names.sort();
    names.dedup();
    fitting(current, names.into_iter().map(|name| (name, None)))
}

/// Names that `-D` sets.
pub fn definitions(current: &OsStr) -> Vec<CompletionCandidate> {
    named(current, |entry, unit| entry.settable(unit))
}

fn tensors(entry: &EntryPoint<'_>, wanted: impl Fn(Dir) -> bool) -> Vec<Name> {
    let dir = |p: &&Param| p.dir.is_some_and(|(dir, _)| wanted(dir));
    entry.item.params.iter().filter(dir).map(|p| p.name.name.clone()).collect()
}

/// Tensors that `--in` gives.
pub fn inputs(current: &OsStr) -> Vec<CompletionCandidate> {
    named(current, |entry, _| tensors(entry, |dir| dir != Dir::Out))
}

/// Tensors that `--out` writes.
pub fn outputs(current: &OsStr) -> Vec<CompletionCandidate> {
    named(current, |entry, _| tensors(entry, |dir| dir != Dir::In))
}

/// Orders of the pipes.
pub fn orders(current: &OsStr) -> Vec<CompletionCandidate> {
    fitting(current, ["program", "late", "random", "random:"].into_iter().map(|word| (word.to_owned(), None)))
}

/// Commands.
pub fn commands(current: &OsStr) -> Vec<CompletionCandidate> {
    let cli = Cli::command();
    let all = cli.get_subcommands().map(|c| (c.get_name().to_owned(), c.get_about().map(ToString::to_string)));
    fitting(current, all)
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

/// The script for bash, which cuts words at `=` and inserts what is found as it is: files are named behind
/// `--in NAME=`, and what has spaces is escaped.
pub fn in_bash(script: &str) -> String {
    const WORDS: &str = "    local words=(\"${COMP_WORDS[@]}\")\n";
    const CURRENT: &str = "        words[COMP_CWORD]=\"$2\"\n";
    const FAILED: &str = "    if [[ $? != 0 ]]; then\n        unset COMPREPLY\n";
    let value = r#"    local before="${COMP_WORDS[COMP_CWORD-1]}" at=$((COMP_CWORD - 3))
    [[ "${COMP_WORDS[COMP_CWORD]}" == "=" ]] && before="=" at=$((COMP_CWORD - 2))
    if [[ "$before" == "=" ]] && (( at > 0 )); then
        case "${COMP_WORDS[at]}" in
            --in|--out|--expect) compopt -o default +o nospace 2> /dev/null; COMPREPLY=(); return ;;
            -D) COMPREPLY=(); return ;;
        esac
    fi
"#;
    let escaped = r#"    local status=$? n
    if [[ "$2" != [\"\']* ]]; then
        for n in "${!COMPREPLY[@]}"; do
            [[ "${COMPREPLY[n]}" == *[[:space:]]* ]] && printf -v "COMPREPLY[n]" %q "${COMPREPLY[n]}"
        done
    fi
    if [[ $status != 0 ]]; then
        unset COMPREPLY
"#;
    let script = script.replacen(WORDS, &format!("{value}{WORDS}"), 1);
    script.replacen(CURRENT, "        words[COMP_CWORD]=\"${2//\\\\/}\"\n", 1).replacen(FAILED, escaped, 1)
}

#[cfg(test)]
mod tests {
    use super::plain;

    #[test]
    fn words_as_a_shell_reads_them() {
        for (typed, read) in [("a.tile", "a.tile"), (r"b\ c.tile", "b c.tile"), ("'b c'.tile", "b c.tile")] {
            assert_eq!(plain(typed), read);
        }
        assert_eq!(plain("\"b 'c"), "b 'c");
        assert_eq!(plain("~/x"), format!("{}/x", std::env::var("HOME").unwrap_or_else(|_| "~".into())));
    }
}

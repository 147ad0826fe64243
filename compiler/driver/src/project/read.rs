//! One `ptoc.toml`: its keys, each with its place.

use super::lints::Level;
use super::{FoundProject, Project};
use crate::defs::Definition;
use crate::devices;
use ptoc_diagnostics::{Code, Diagnostic, FileId, Span, codes, list, suggest};
use ptoc_isa::Target;
use std::path::Path;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// What `ptoc init` writes.
pub const TEMPLATE: &str = "\
# What holds for the kernels below this folder: spec/project.md of ptoc has all of it. Flags count more.

target = \"a2a3\"

# Constants, dimensions and capacities, as `-D` takes them, for kernels that have them.
[define]
# BM = 64
# \"capacity.Vec\" = 131072

# What becomes of warnings: allow, warn, deny.
[lints]
# warnings = \"deny\"
# W0620 = \"allow\"

# Some files.
# [[files]]
# match = [\"cube/*.tile\"]
# target = \"a5\"
";

const KEYS: [&str; 5] = ["root", "target", "define", "lints", "files"];
const FILE_KEYS: [&str; 4] = ["match", "target", "define", "lints"];

/// What one file says of a source file.
#[derive(Default)]
pub(super) struct Said {
    pub project: Project,
    /// Files in folders around it do not count.
    pub root: bool,
}

/// Reads a file; `place` is the source file, from its folder on.
pub(super) fn read(name: &str, text: &str, place: &Path, found: &mut FoundProject) -> Said {
    let file = found.sources.add(name, text);
    let mut reader = Reader { file, found };
    match DeTable::parse(text) {
        Ok(table) => reader.whole(table.get_ref(), place),
        Err(e) => {
            let at = e.span().unwrap_or(0..0);
            let span = reader.span(at.start..at.end.max(at.start));
            let what = e.message().trim_end_matches('\n').to_owned();
            reader.fail(Diagnostic::error(codes::PROJECT_VALUE, span, format!("this is no TOML: {what}")));
            Said::default()
        }
    }
}

struct Reader<'f> {
    file: FileId,
    found: &'f mut FoundProject,
}

impl Reader<'_> {
    fn span(&self, range: std::ops::Range<usize>) -> Span {
        Span::new(self.file, range.start as u32, range.end as u32)
    }

    fn fail(&mut self, d: Diagnostic) {
        self.found.diagnostics.push(d);
    }

    /// A value that is of another kind.
    fn wrong(&mut self, value: &Spanned<DeValue<'_>>, key: &str, wants: &str) {
        let kind = match value.get_ref() {
            DeValue::String(text) => format!("\"{text}\""),
            DeValue::Integer(_) | DeValue::Float(_) => "a number".into(),
            DeValue::Boolean(_) => "a truth value".into(),
            DeValue::Datetime(_) => "a date".into(),
            DeValue::Array(_) => "a list".into(),
            DeValue::Table(_) => "a table".into(),
        };
        let d = Diagnostic::error(codes::PROJECT_VALUE, self.span(value.span()), format!("`{key}` is {wants}"));
        self.fail(d.with_label(format!("this is {kind}")));
    }

    fn unknown(&mut self, key: &Spanned<std::borrow::Cow<'_, str>>, known: &[&str]) {
        let (name, span) = (key.get_ref().as_ref(), self.span(key.span()));
        let d = Diagnostic::error(codes::PROJECT_KEY, span, format!("there is no key `{name}` here"));
        let d = d.with_note(format!("there are {}", list(known.iter().copied())));
        self.fail(match suggest(name, known.iter().copied()) {
            Some(near) => d.with_fix(format!("write `{near}`"), span, near),
            None => d,
        });
    }

    fn whole(&mut self, table: &DeTable<'_>, place: &Path) -> Said {
        let mut said = Said::default();
        let mut tables = Vec::new();
        for (key, value) in table {
            match (key.get_ref().as_ref(), value.get_ref()) {
                ("root", DeValue::Boolean(root)) => said.root = *root,
                ("root", _) => self.wrong(value, "root", "true or false"),
                ("files", DeValue::Array(list)) => tables.extend(list.iter()),
                ("files", _) => self.wrong(value, "files", "a list of tables: write `[[files]]`"),
                (name, _) if KEYS.contains(&name) => self.common(name, value, &mut said.project),
                _ => self.unknown(key, &KEYS),
            }
        }
        for entry in tables {
            let DeValue::Table(table) = entry.get_ref() else {
                self.wrong(entry, "files", "a list of tables: write `[[files]]`");
                continue;
            };
            if let Some(own) = self.files(table, self.span(entry.span()), place) {
                said.project.overlay(own);
            }
        }
        said
    }

    /// A table of `[[files]]`, if it is about the source file.
    fn files(&mut self, table: &DeTable<'_>, span: Span, place: &Path) -> Option<Project> {
        let (mut project, mut fits, mut named) = (Project::default(), false, false);
        for (key, value) in table {
            match key.get_ref().as_ref() {
                "match" => {
                    named = true;
                    fits = self.fits(value, place);
                }
                name if FILE_KEYS.contains(&name) => self.common(name, value, &mut project),
                _ => self.unknown(key, &FILE_KEYS),
            }
        }
        if !named {
            let d = Diagnostic::error(codes::PROJECT_VALUE, span, "a table of `files` says which in `match`");
            self.fail(d.with_help("for example `match = [\"cube/*.tile\"]`"));
        }
        fits.then_some(project)
    }

    /// Whether one of the patterns fits.
    fn fits(&mut self, value: &Spanned<DeValue<'_>>, place: &Path) -> bool {
        const WANTS: &str = "a pattern of paths from this folder on, or a list of them";
        let patterns: Vec<&Spanned<DeValue<'_>>> = match value.get_ref() {
            DeValue::Array(list) => list.iter().collect(),
            _ => vec![value],
        };
        let mut fits = false;
        for pattern in patterns {
            let DeValue::String(text) = pattern.get_ref() else {
                self.wrong(pattern, "match", WANTS);
                continue;
            };
            // A star is a part of one name, two are folders.
            let options = glob::MatchOptions { require_literal_separator: true, ..glob::MatchOptions::new() };
            if let Some(d) = never(text, self.span(pattern.span())) {
                self.fail(d);
                continue;
            }
            match glob::Pattern::new(text) {
                Ok(glob) => fits |= glob.matches_path_with(place, options),
                Err(e) => {
                    let (character, why) = (text.chars().take(e.pos + 1).count(), in_words(e.msg));
                    let message = format!("`{text}` is no pattern of paths: {why}, at its character {character}");
                    let d = Diagnostic::error(codes::PROJECT_VALUE, self.span(pattern.span()), message);
                    self.fail(d.with_help("`*` is a part of one name, `**` any folders, `[a-z]` a character of these"));
                }
            }
        }
        fits
    }

    /// What both kinds of tables have.
    fn common(&mut self, key: &str, value: &Spanned<DeValue<'_>>, project: &mut Project) {
        match (key, value.get_ref()) {
            // What is wrong in a device's file is found where a session begins.
            ("target", DeValue::String(name)) if devices::is_path(name) => {
                let own = Path::new(self.found.sources.name(self.file));
                let folder = own.parent().unwrap_or(Path::new(""));
                project.target = Some(devices::named_in(name, folder));
            }
            ("target", DeValue::String(name)) => match Target::builtin(name) {
                Ok(target) => project.target = Some(target.name.clone()),
                Err(mut d) => {
                    d.span = Some(self.span(value.span()));
                    self.fail(d);
                }
            },
            ("target", _) => self.wrong(value, "target", "the name of a target, or the path of a device's file"),
            ("define", DeValue::Table(table)) => {
                for (name, value) in table {
                    self.definition(name.get_ref(), value, project);
                }
            }
            ("define", _) => self.wrong(value, "define", "a table of names with values: write `[define]`"),
            (_, DeValue::Table(table)) => {
                for (code, level) in table {
                    self.lint(code, level, project);
                }
            }
            _ => self.wrong(value, "lints", "a table of codes with levels: write `[lints]`"),
        }
    }

    fn definition(&mut self, name: &str, value: &Spanned<DeValue<'_>>, project: &mut Project) {
        let Some(text) = text(value) else {
            return match value.get_ref() {
                DeValue::Integer(_) => self.wrong(value, name, "a number of at most 64 bits"),
                _ => self.wrong(value, name, "a number, a truth value, or an expression as a string"),
            };
        };
        let at = self.found.sources.position(self.file, value.span().start as u32);
        let place = format!("line {} of `{}`", at.line, self.found.sources.name(self.file));
        project.places.insert(name.to_owned(), place);
        project.define.push(Definition { name: name.to_owned(), value: text });
    }

    fn lint(&mut self, key: &Spanned<std::borrow::Cow<'_, str>>, value: &Spanned<DeValue<'_>>, project: &mut Project) {
        let level = match value.get_ref() {
            DeValue::String(word) => Level::NAMES.iter().find(|(name, _)| name == word).map(|(_, level)| *level),
            _ => None,
        };
        let Some(level) = level else {
            return self.wrong(value, key.get_ref(), "\"allow\", \"warn\" or \"deny\"");
        };
        let name = key.get_ref().as_ref();
        let code = match name {
            "warnings" => None,
            name => match Code::find(name) {
                Some(info) => Some(info.code),
                None => {
                    let span = self.span(key.span());
                    let d = Diagnostic::error(codes::UNKNOWN_CODE, span, format!("there is no code `{name}`"));
                    let known = Code::all().iter().map(|c| c.code.as_str()).chain(["warnings"]);
                    return self.fail(match suggest(name, known) {
                        Some(near) => d.with_fix(format!("write `{near}`"), span, near),
                        None => d.with_help("`ptoc explain --list` lists the codes; `warnings` means all"),
                    });
                }
            },
        };
        if name.starts_with('E') && level != Level::Deny {
            let span = self.span(key.span());
            let d = Diagnostic::error(codes::PROJECT_VALUE, span, format!("`{name}` is an error, which has no level"));
            let d = d.with_help("levels are for warnings and notes, whose codes begin with `W`");
            return self.fail(d);
        }
        project.lints.set(code, level);
    }
}

/// What is wrong with a pattern that fits no path from the folder on.
fn never(pattern: &str, span: Span) -> Option<Diagnostic> {
    let error = |why: &str| {
        let message = format!("the pattern `{pattern}` never fits: {why}");
        Some(Diagnostic::error(codes::PROJECT_VALUE, span, message))
    };
    if pattern.is_empty() {
        return error("no path is empty").map(|d| d.with_help("`**` is every file below this folder"));
    }
    let parts = || pattern.split('/');
    if pattern.starts_with('/') || pattern.ends_with('/') || parts().any(|p| p == ".") {
        let short: Vec<&str> = parts().filter(|p| !p.is_empty() && *p != ".").collect();
        let why = match (pattern.starts_with('/'), pattern.ends_with('/')) {
            (true, _) => "it is matched with the path from this folder on, which does not begin with `/`",
            (_, true) => "it ends with `/`, and it is files that are matched",
            _ => "it is matched with the path from this folder on, which has no `.`",
        };
        let d = error(why)?;
        return Some(match (pattern.starts_with('/'), pattern.ends_with('/')) {
            (true, _) => d.with_help("write the path from the folder of this file on"),
            (_, true) => d.with_help(format!("for all files in it write `{}/**`", short.join("/"))),
            _ => d.with_help(format!("write `{}`", short.join("/"))),
        });
    }
    if parts().any(|p| p == "..") {
        let d = error("it is about files of this folder and those below")?;
        return Some(d.with_help(format!("a `{}` in the other folder is about its files", super::FILE)));
    }
    None
}

/// Why `glob` refuses a pattern.
fn in_words(why: &str) -> &str {
    match why {
        "invalid range pattern" => "a `[` without its `]`",
        "wildcards are either regular `*` or recursive `**`" => "there are more than two `*` in a row",
        "recursive wildcards must form a single path component" => "`**` stands alone between `/`",
        other => other,
    }
}

/// A value as `-D` has it.
fn text(value: &Spanned<DeValue<'_>>) -> Option<String> {
    match value.get_ref() {
        DeValue::String(text) => Some(text.to_string()),
        DeValue::Integer(n) => i64::from_str_radix(n.as_str(), n.radix()).ok().map(|n| n.to_string()),
        DeValue::Float(x) => Some(x.to_string()),
        DeValue::Boolean(b) => Some(b.to_string()),
        _ => None,
    }
}

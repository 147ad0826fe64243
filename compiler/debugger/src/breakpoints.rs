//! Breakpoints: which statements of the source they mean.

use super::command::is_name;
use super::condition;
use super::statements::StatementId;
use super::touches::{ALIASES, Stored, WORDS, stored};
use super::watcher::DebuggedProgram;
use ptoc_diagnostics::{FileId, suggest};
use ptoc_syntax::ast::Expr;

/// Where a breakpoint stops.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// Before this statement.
    Statement(StatementId),
    /// Before every instruction or operation on an event of this name.
    Operation(&'static str),
    /// Before the first statement in each block of the role.
    Role(String),
    /// Before everything that writes what has this name, or is about that event: by number of the launch.
    Name(String, Vec<(usize, Stored)>),
}

/// A breakpoint.
#[derive(Clone, Debug)]
pub struct Breakpoint {
    /// Its number.
    pub id: usize,
    /// Where.
    pub target: Target,
    /// `if EXPR`, as typed.
    pub condition: Option<(String, Expr)>,
    /// Of the times that it is hit those at which it stops the run; `None` is all of them.
    pub hit_count: Option<HitCount>,
    /// A log point: this is printed, with the values of what stands in braces, and the run does not stop.
    pub log: Option<String>,
    /// How often it was hit.
    pub hits: u64,
}

/// Some of the numbers from 1 on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HitCount {
    /// `3`, `= 3`, `== 3`
    Exactly(u64),
    /// `>= 3`, and `> 2`
    From(u64),
    /// `<= 3`, and `< 4`
    UpTo(u64),
    /// `% 3`
    Every(u64),
}

impl HitCount {
    /// What was typed.
    pub fn parse(text: &str) -> Result<HitCount, String> {
        let text = text.trim();
        let (op, number) = text.split_at(text.find(|c: char| c.is_ascii_digit()).unwrap_or(text.len()));
        let wrong = || format!("`{text}` is no hit count: those are `3`, `>= 3`, `> 3`, `<= 3`, `< 3` and `% 3`");
        let n: u64 = number.trim().parse().map_err(|_| wrong())?;
        match op.trim() {
            "" | "=" | "==" if n > 0 => Ok(HitCount::Exactly(n)),
            ">=" => Ok(HitCount::From(n)),
            ">" => Ok(HitCount::From(n.saturating_add(1))),
            "<=" if n > 0 => Ok(HitCount::UpTo(n)),
            "<" if n > 1 => Ok(HitCount::UpTo(n - 1)),
            "%" if n > 0 => Ok(HitCount::Every(n)),
            _ => Err(wrong()),
        }
    }

    /// Whether the hit of this number is one of them.
    pub fn holds(self, hits: u64) -> bool {
        match self {
            HitCount::Exactly(n) => hits == n,
            HitCount::From(n) => hits >= n,
            HitCount::UpTo(n) => hits <= n,
            HitCount::Every(n) => hits.is_multiple_of(n),
        }
    }
}

impl DebuggedProgram<'_> {
    /// Whether any of the launches has code of the statement.
    pub fn has_code(&self, id: StatementId) -> bool {
        self.launches.iter().any(|l| l.points.has(id))
    }

    /// The statements of a line that a stop there means: of those that begin on it, the first; else the one that
    /// continues on it. Empty if there is no code.
    pub fn on_line(&self, file: FileId, line: u32) -> Option<StatementId> {
        let of_file = |id: &StatementId| self.statements.list[*id].span.file == file && self.has_code(*id);
        let list = &self.statements.list;
        let begins = (0..list.len()).filter(|&id| list[id].line == line).filter(of_file);
        begins.min_by_key(|&id| (list[id].span.start, std::cmp::Reverse(list[id].span.end))).or_else(|| {
            let covers = |id: &StatementId| list[*id].line < line && line <= list[*id].last_line;
            (0..list.len()).filter(covers).filter(of_file).max_by_key(|&id| list[id].span.start)
        })
    }

    /// The last of the statements that begin on the line next to each other: when it is over, the line is.
    pub fn end_of_line(&self, file: FileId, line: u32) -> Option<StatementId> {
        let first = self.on_line(file, line)?;
        let list = &self.statements.list;
        let sibling = |id: &StatementId| {
            let s = &list[*id];
            (s.span.file, s.parent, s.item) == (file, list[first].parent, list[first].item)
                && s.line == list[first].line
        };
        (0..list.len()).filter(sibling).filter(|&id| self.has_code(id)).max_by_key(|&id| list[id].span.start)
    }

    /// Lines of the file on which a run can stop, in order.
    pub fn lines(&self, file: FileId) -> Vec<u32> {
        let list = self.statements.list.iter().enumerate();
        let mut lines: Vec<u32> =
            list.filter(|(id, s)| s.span.file == file && self.has_code(*id)).map(|(_, s)| s.line).collect();
        lines.sort_unstable();
        lines.dedup();
        lines
    }

    /// Lines with code before and after a line that has none, in words.
    pub fn near(&self, file: FileId, line: u32) -> String {
        let lines = self.lines(file);
        let before = lines.iter().rev().find(|&&l| l < line);
        let after = lines.iter().find(|&&l| l > line);
        match (before, after) {
            (Some(b), Some(a)) => format!("the nearest lines with code are {b} and {a}"),
            (Some(l), None) | (None, Some(l)) => format!("the nearest line with code is {l}"),
            (None, None) => "no line of this file has code".into(),
        }
    }

    /// The first statement of a function or kernel that has code.
    fn first_of(&self, item: usize) -> Option<StatementId> {
        let list = &self.statements.list;
        (0..list.len()).filter(|&id| list[id].item == item && self.has_code(id)).min_by_key(|&id| list[id].span.start)
    }

    /// A file that is named as it stands in messages, or by the end of its path.
    pub fn file_named(&self, name: &str) -> Result<FileId, String> {
        let mut files = self.sources.files().filter(|&f| {
            let full = self.sources.name(f);
            full == name || full.ends_with(&format!("/{name}"))
        });
        files.next().ok_or_else(|| format!("there is no file `{name}` in this run"))
    }

    /// Whether a file is the module of that path. All modules of the standard library go by `std`.
    fn is_of(&self, file: FileId, module: &str) -> bool {
        let name = self.sources.name(file);
        match module.split_once("::") {
            _ if module == "std" => name.starts_with("<std>/"),
            Some(("std", rest)) => name == format!("<std>/{}.tile", rest.replace("::", "/")),
            _ => name.ends_with(&format!("{}.tile", module.replace("::", "/"))),
        }
    }

    /// What the text after `break` means; `file` is where the run is. With it comes what there is to say of it.
    pub fn target(&self, text: &str, file: FileId) -> Result<(Target, Option<String>), String> {
        let (place, line) = match text.rsplit_once(':').filter(|(name, _)| !name.ends_with(':')) {
            Some((name, line)) => (self.file_named(name.trim())?, line.trim()),
            None => (file, text),
        };
        if let Ok(line) = line.parse::<u32>() {
            if let Some(id) = self.on_line(place, line) {
                return Ok((Target::Statement(id), None));
            }
            let after = self.lines(place).into_iter().find(|&l| l > line);
            let name = self.sources.name(place);
            return match after.and_then(|l| Some((l, self.on_line(place, l)?))) {
                Some((l, id)) => Ok((Target::Statement(id), Some(format!("line {line} has no code; the next is {l}")))),
                None => Err(format!("{name}:{line} has no code; {}", self.near(place, line))),
            };
        }
        // A role may be called like an instruction.
        let (text, role) = text.strip_prefix("role ").map_or((text, false), |name| (name.trim(), true));
        if role {
            if self.roles().any(|r| r == text) {
                return Ok((Target::Role(text.into()), None));
            }
            let near = suggest(text, self.roles());
            let near = near.map_or(String::new(), |n| format!("; did you mean `{n}`?"));
            return Err(format!("there is no role `{text}`{near}"));
        }
        if let Some((module, name)) = text.rsplit_once("::").filter(|(m, n)| is_name(n) && m.split("::").all(is_name)) {
            let items = self.statements.items_named(name);
            let of_module = |item: &&usize| self.is_of(self.statements.items[**item].span.file, module);
            let found = items.iter().find(of_module).and_then(|item| self.first_of(*item));
            return match found {
                Some(id) => Ok((Target::Statement(id), None)),
                None => Err(format!("no function `{text}` has code in this run")),
            };
        }
        if !is_name(text) {
            return Err(format!("`{text}` is no place; try `break 12`, `break FILE:12`, `break NAME`, `break TLOAD`"));
        }
        if let Some(id) = ptoc_isa::lookup(text) {
            return Ok((Target::Operation(id.get().name), None));
        }
        let items = self.statements.items_named(text);
        if let Some(id) = items.iter().find_map(|&item| self.first_of(item)) {
            return Ok((Target::Statement(id), None));
        }
        if !items.is_empty() {
            return Err(format!("`{text}` has no code in this run"));
        }
        if self.roles().any(|r| r == text) {
            return Ok((Target::Role(text.into()), None));
        }
        let stored: Vec<(usize, Stored)> = self.stored().filter(|s| s.0 == text).map(|s| s.1).collect();
        if !stored.is_empty() {
            return Ok((Target::Name(text.into(), stored), None));
        }
        if let Some(word) = WORDS.iter().chain(&ALIASES).find(|w| **w == text) {
            return Ok((Target::Operation(word), None));
        }
        let items = self.statements.items.iter().map(|i| i.name.as_str());
        let names = ptoc_isa::TABLE.iter().map(|i| i.name).chain(items).chain(self.roles());
        let names = names.chain(self.stored().map(|s| s.0)).chain(WORDS);
        let near = suggest(text, names).map_or(String::new(), |n| format!("; did you mean `{n}`?"));
        Err(format!("nothing that a run can stop at is called `{text}`{near}"))
    }

    /// The names that a breakpoint may have: instructions, functions with code, roles, and what statements write.
    pub fn places(&self) -> impl Iterator<Item = &str> {
        let items = self.statements.items.iter().enumerate();
        let items = items.filter(|(n, _)| self.first_of(*n).is_some()).map(|(_, item)| item.name.as_str());
        let instructions = ptoc_isa::TABLE.iter().map(|row| row.name);
        instructions.chain(items).chain(self.roles()).chain(self.stored().map(|s| s.0)).chain(WORDS)
    }

    fn roles(&self) -> impl Iterator<Item = &str> {
        self.launches.iter().flat_map(|l| l.step.kernel.roles.values()).map(|r| r.name.as_str())
    }

    /// All names for what statements write, wherever they are visible.
    fn stored(&self) -> impl Iterator<Item = (&str, (usize, Stored))> {
        let launches = self.launches.iter().enumerate();
        let named = launches.flat_map(|(n, l)| l.step.debug.scopes.iter().flat_map(|s| &s.names).map(move |s| (n, s)));
        named.flat_map(|(launch, named)| {
            let list = stored(&named.what);
            list.into_iter().map(move |stored| (named.name.as_str(), (launch, stored)))
        })
    }

    /// `PLACE [if EXPR]`
    pub fn breakpoint(&self, id: usize, text: &str, file: FileId) -> Result<(Breakpoint, Option<String>), String> {
        let (place, condition) = match text.split_once(" if ") {
            Some((place, c)) => (place.trim(), Some((c.trim().to_owned(), condition::parse(c.trim())?))),
            None => (text.trim(), None),
        };
        let (target, said) = self.target(place, file)?;
        Ok((Breakpoint { id, target, condition, hit_count: None, log: None, hits: 0 }, said))
    }
}

#[cfg(test)]
mod tests {
    use super::HitCount;

    #[test]
    fn hit_counts() {
        let hits = |text: &str| -> Vec<u64> {
            let count = HitCount::parse(text).unwrap();
            (1..=6).filter(|&n| count.holds(n)).collect()
        };
        assert_eq!(hits("3"), [3]);
        assert_eq!(hits(" == 3"), [3]);
        assert_eq!(hits("> 3"), [4, 5, 6]);
        assert_eq!(hits(">=3"), [3, 4, 5, 6]);
        assert_eq!(hits("< 3"), [1, 2]);
        assert_eq!(hits("<= 3"), [1, 2, 3]);
        assert_eq!(hits("% 3"), [3, 6]);
        for wrong in ["", "0", "< 1", "% 0", "three", "3 4", "!= 3", "-1"] {
            assert!(HitCount::parse(wrong).unwrap_err().contains("is no hit count"), "{wrong}");
        }
    }
}

//! Breakpoints: which statements of the source they mean.

use super::command::is_name;
use super::condition;
use super::statements::StatementId;
use super::touches::{ALIASES, Stored, WORDS};
use super::watcher::DebuggedProgram;
use ptoc_analysis::debug::NameMeaning;
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
    /// How often it has stopped the run.
    pub hits: u64,
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

    /// What the text after `break` means; `file` is where the run is. With it comes what there is to say of it.
    pub fn target(&self, text: &str, file: FileId) -> Result<(Target, Option<String>), String> {
        let (place, line) = match text.rsplit_once(':') {
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

    fn roles(&self) -> impl Iterator<Item = &str> {
        self.launches.iter().flat_map(|l| l.step.kernel.roles.values()).map(|r| r.name.as_str())
    }

    /// All names for what statements write, wherever they are visible.
    fn stored(&self) -> impl Iterator<Item = (&str, (usize, Stored))> {
        let launches = self.launches.iter().enumerate();
        let named = launches.flat_map(|(n, l)| l.step.debug.scopes.iter().flat_map(|s| &s.names).map(move |s| (n, s)));
        named.flat_map(|(launch, named)| {
            let list = match &named.what {
                NameMeaning::Tile(t) | NameMeaning::TileArray(t, _) => vec![Stored::Tile(t.tile)],
                NameMeaning::View(w) => vec![Stored::Tensor(w.tensor())],
                NameMeaning::Var(v) => vec![Stored::Var(*v)],
                NameMeaning::Event(e) => vec![Stored::Event(e.event)],
                NameMeaning::Ring(r) => vec![Stored::Event(r.events.0), Stored::Event(r.events.1)],
                _ => Vec::new(),
            };
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
        Ok((Breakpoint { id, target, condition, hits: 0 }, said))
    }
}

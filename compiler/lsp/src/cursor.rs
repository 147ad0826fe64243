//! Where the cursor is, from the tokens alone: it works in texts that have no tree yet.

use super::brackets::Brackets;
use ptoc_diagnostics::{FileId, Span};
use ptoc_syntax::Tok;
use std::ops::Range;

/// A place between tokens, or in a word.
pub struct Cursor<'a> {
    /// The item that is being written, and what stands up to the next one.
    text: &'a str,
    /// Where that begins in the file.
    base: usize,
    /// Places are those in `text`.
    tokens: Vec<(Tok, Span)>,
    /// Number of tokens, comments left out, that end before the word.
    before: usize,
    /// The word that is being written, up to the cursor, in the file; empty between tokens.
    pub word: Range<usize>,
    /// In a comment or a text.
    pub quoted: bool,
}

/// A call, or a list of static arguments, that is open at the cursor.
#[derive(Debug)]
pub struct Call {
    /// What is called.
    pub name: String,
    /// It stands behind a dot.
    pub method: bool,
    /// `<..>`, and no parentheses.
    pub statics: bool,
    /// The argument at the cursor, from 0.
    pub index: usize,
    /// The name before `=` in it.
    pub named: Option<String>,
    /// Arguments that are one name, by their numbers.
    pub names: Vec<Option<String>>,
    /// The cursor is in brackets of its own within the argument.
    pub nested: bool,
}

/// A place in the parameters of a declaration.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Declared {
    /// Where a parameter begins.
    Name,
    /// Where its type begins, or goes on behind `in`, `out`, `inout`.
    Type,
    /// In an extent, a default, a place.
    Else,
}

/// Something that is written while the kernel is compiled, and what of that can stand there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Static {
    /// A number, a layout, a dtype.
    Constant,
    /// A field of an atom.
    Field,
    /// A dtype.
    DType,
    /// A type.
    Type,
    /// A function.
    Function,
}

/// A bracket that is open.
struct Open {
    tok: Tok,
    /// Its token.
    at: usize,
    /// Where its arguments begin: the first token of each.
    arguments: Vec<usize>,
}

impl<'a> Cursor<'a> {
    /// The place of a byte. Only `part` of the file is looked at, which begins and ends with an item and has the byte
    /// in it: an edit in a long file costs no more than one in a short file.
    pub fn new(file: FileId, whole: &'a str, part: Range<usize>, offset: usize) -> Cursor<'a> {
        let (base, text) = (part.start, &whole[part]);
        let offset = offset - base;
        let tokens = ptoc_syntax::tokens(file, text);
        let inside = |(tok, s): &&(Tok, Span)| {
            let (start, end) = (s.start as usize, s.end as usize);
            // A comment goes to the end of its line, the cursor behind it is in it.
            start < offset && (offset < end || (offset == end && tok.is_comment()))
        };
        let quoted = tokens.iter().find(inside).is_some_and(|(tok, _)| tok.is_comment() || *tok == Tok::Str);
        let tokens: Vec<(Tok, Span)> = tokens.into_iter().filter(|(tok, _)| !tok.is_comment()).collect();
        let name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let start =
            text[..offset].rfind(|c| !name(c)).map_or(0, |n| n + text[n..].chars().next().map_or(1, char::len_utf8));
        let before = tokens.partition_point(|(_, s)| s.end as usize <= start);
        Cursor { text, base, tokens, before, word: base + start..base + offset, quoted }
    }

    /// The kind of the n-th token before the word, from 1.
    pub fn previous(&self, n: usize) -> Option<Tok> {
        Some(self.tokens[self.before.checked_sub(n)?].0)
    }

    /// The text of the n-th token before the word, from 1.
    pub fn previous_text(&self, n: usize) -> &'a str {
        self.before.checked_sub(n).map_or("", |at| self.of(at))
    }

    fn of(&self, at: usize) -> &'a str {
        self.tokens.get(at).map_or("", |(_, s)| &self.text[s.range()])
    }

    /// Brackets that are open, the innermost last.
    fn open(&self) -> Vec<Open> {
        let mut open: Brackets<Open> = Brackets::default();
        for (at, &(tok, _)) in self.tokens[..self.before].iter().enumerate() {
            if open.open(tok, Open { tok, at, arguments: vec![at + 1] }) || open.close(tok).is_some() {
                continue;
            }
            match tok {
                Tok::Comma => {
                    if let Some(o) = open.last_mut() {
                        o.arguments.push(at + 1);
                    }
                }
                // A statement or an item ends what was left open in the one before.
                Tok::Semi => open.truncate(open.block()),
                Tok::Kernel | Tok::Program => open.truncate(0),
                _ => {}
            }
        }
        open.into_all()
    }

    /// What can stand here, by the grammar; nothing if what stands before is wrong.
    pub fn next(&self, file: FileId) -> Option<ptoc_syntax::Next> {
        ptoc_syntax::next(file, &self.text[..self.word.start - self.base])
    }

    /// Whether the cursor is in a block.
    pub fn in_block(&self) -> bool {
        self.open().iter().any(|o| o.tok == Tok::LBrace)
    }

    /// The bracket around the cursor.
    pub fn bracket(&self) -> Option<Tok> {
        self.open().last().map(|o| o.tok)
    }

    /// The innermost call around the cursor.
    pub fn call(&self) -> Option<Call> {
        let open = self.open();
        for (depth, o) in open.iter().rev().enumerate() {
            if o.tok == Tok::LBrace {
                return None;
            }
            let Some(callee) = self.callee(o) else { continue };
            let argument = *o.arguments.last()?;
            let named = (self.tokens.get(argument + 1).is_some_and(|t| t.0 == Tok::Assign)
                && argument + 1 < self.before)
                .then(|| self.of(argument).to_owned());
            let names = o.arguments.windows(2).map(|w| match w[1] - w[0] {
                // The comma is one of its tokens.
                2 if self.tokens[w[0]].0 == Tok::Name => Some(self.of(w[0]).to_owned()),
                _ => None,
            });
            return Some(Call {
                name: self.of(callee).to_owned(),
                method: callee > 0 && self.tokens[callee - 1].0 == Tok::Dot,
                statics: o.tok == Tok::StaticOpen,
                index: o.arguments.len() - 1,
                named,
                names: names.collect(),
                nested: depth > 0,
            });
        }
        None
    }

    /// What can stand here, if it is a constant, a type or a function: behind `->`, `const B =`, `let x:`, in `<fn act
    /// =`, in an atom.
    pub fn constant(&self) -> Option<Static> {
        if self.previous(1) == Some(Tok::Arrow) {
            return Some(Static::Type);
        }
        let open = self.open();
        let atom = |o: &&Open| o.tok == Tok::LBrace && o.at > 1 && self.tokens[o.at - 2].0 == Tok::Atom;
        if let Some(atom) = open.iter().rfind(atom) {
            let start = open.last().is_some_and(|o| o.at == atom.at) && self.starts().last() == Some(&self.before);
            return Some(if start { Static::Field } else { Static::Constant });
        }
        let from = match open.last() {
            // The extents of a type are another matter.
            Some(o) if o.tok == Tok::StaticOpen && self.name_before(o).is_some_and(|at| self.declares(at)) => {
                *o.arguments.last()?
            }
            Some(o) if o.tok != Tok::LBrace => return None,
            _ => *self.starts().last()?,
        };
        let defined = &self.tokens[from.min(self.before)..self.before];
        let first = defined.first()?.0;
        if !matches!(first, Tok::Let | Tok::Var | Tok::Const | Tok::Type | Tok::Fn) || defined.get(1)?.0 != Tok::Name {
            return None;
        }
        match (defined.iter().any(|t| t.0 == Tok::Assign), first) {
            (true, Tok::Const) => Some(Static::Constant),
            (true, Tok::Type) => Some(Static::DType),
            (true, Tok::Fn) => Some(Static::Function),
            (false, _) if defined.len() == 3 && defined[2].0 == Tok::Colon => Some(Static::Type),
            _ => None,
        }
    }

    /// Of the file, and of every block that is open, the first token of the statement that is being written.
    fn starts(&self) -> Vec<usize> {
        let mut starts = vec![0];
        let defines = |at: usize| matches!(self.tokens[at].0, Tok::Let | Tok::Var | Tok::Const);
        for (at, (tok, _)) in self.tokens[..self.before].iter().enumerate() {
            match tok {
                Tok::LBrace => starts.push(at + 1),
                Tok::RBrace => {
                    if starts.len() > 1 {
                        starts.pop();
                    }
                    // What is defined goes on behind a block in it.
                    if let Some(top) = starts.last_mut().filter(|top| !defines(**top)) {
                        *top = at + 1;
                    }
                }
                Tok::Semi => starts.last_mut().into_iter().for_each(|top| *top = at + 1),
                _ => {}
            }
        }
        starts
    }

    /// Tokens of names that are being defined here: they can not be named yet.
    fn defining(&self) -> Vec<usize> {
        let statics = self.open().into_iter().filter(|o| o.tok == Tok::StaticOpen);
        let begins = self.starts().into_iter().chain(statics.filter_map(|o| o.arguments.last().copied()));
        let names = begins.map(|at| at + 1).filter(|&at| {
            at < self.before
                && self.tokens[at].0 == Tok::Name
                && matches!(self.tokens[at - 1].0, Tok::Let | Tok::Var | Tok::Const | Tok::Type | Tok::Fn)
        });
        // A function can be named in its own body.
        names
            .filter(|&at| self.tokens.get(at + 1).is_none_or(|t| !matches!(t.0, Tok::LParen | Tok::StaticOpen)))
            .collect()
    }

    /// Where in the file names stand that are being defined here.
    pub fn defined(&self) -> Vec<u32> {
        self.defining().into_iter().map(|at| self.base as u32 + self.tokens[at].1.start).collect()
    }

    /// Where the cursor is in the parameters of an item that is being declared; nothing elsewhere.
    pub fn declaration(&self) -> Option<Declared> {
        let open = self.open();
        let inner = open.last()?;
        let place = match (inner.tok, self.previous(1)?) {
            (Tok::LParen | Tok::StaticOpen, Tok::LParen | Tok::StaticOpen | Tok::Comma) => Declared::Name,
            (Tok::LParen | Tok::StaticOpen, Tok::Colon | Tok::In | Tok::Out | Tok::InOut) => Declared::Type,
            _ => Declared::Else,
        };
        let declares = |o: &Open| self.name_before(o).is_some_and(|at| self.declares(at));
        open.iter().any(declares).then_some(if declares(inner) { place } else { Declared::Else })
    }

    /// Whether the name is the one that a declaration gives.
    fn declares(&self, at: usize) -> bool {
        let before = at.checked_sub(1).map(|b| self.tokens[b].0);
        // `fn` among static parameters declares no parameters.
        matches!(before, Some(Tok::Kernel | Tok::Program | Tok::Fn))
    }

    /// The name of what is called with a bracket.
    fn callee(&self, o: &Open) -> Option<usize> {
        self.name_before(o).filter(|at| !self.declares(*at))
    }

    /// The name before a bracket, static arguments in between left out.
    fn name_before(&self, o: &Open) -> Option<usize> {
        let mut at = o.at.checked_sub(1)?;
        if o.tok == Tok::LParen && self.tokens[at].0 == Tok::AngleClose {
            let mut depth = 0;
            loop {
                match self.tokens[at].0 {
                    Tok::AngleClose => depth += 1,
                    Tok::StaticOpen | Tok::TilerOpen => depth -= 1,
                    _ => {}
                }
                at = at.checked_sub(1)?;
                if depth == 0 {
                    break;
                }
            }
        }
        (matches!(o.tok, Tok::LParen | Tok::StaticOpen) && matches!(self.tokens[at].0, Tok::Name | Tok::Tile))
            .then_some(at)
    }

    /// Names that statements of the item around define before the cursor, for texts whose tree has lost them.
    pub fn locals(&self) -> Vec<&'a str> {
        // `fn` among static parameters begins no item.
        let function = |at: usize| {
            let before = at.checked_sub(1).map(|b| self.tokens[b].0);
            self.tokens[at].0 == Tok::Fn && matches!(before, None | Some(Tok::Semi | Tok::RBrace | Tok::RBracket))
        };
        let item = |at: &usize| matches!(self.tokens[*at].0, Tok::Kernel | Tok::Program) || function(*at);
        let from = (0..self.before).rev().find(item).unwrap_or(0);
        // The statement that is being written defines nothing yet.
        let defining = self.defining();
        let ends = |t: &(Tok, Span)| matches!(t.0, Tok::Semi | Tok::LBrace | Tok::Let | Tok::Var | Tok::For);
        let mut found = Vec::new();
        for at in from..self.before {
            if matches!(self.tokens[at].0, Tok::Let | Tok::Var | Tok::Const | Tok::For)
                && self.tokens.get(at + 1).is_some_and(|t| t.0 == Tok::Name)
                && !defining.contains(&(at + 1))
                && self.tokens[(at + 2).min(self.before)..self.before].iter().any(ends)
            {
                found.push(self.of(at + 1));
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::load;
    use crate::position::Encoding;
    use std::path::Path;

    /// All that a cursor says, with so many tokens before it.
    fn said(cursor: &Cursor<'_>, tokens: usize, file: FileId) -> String {
        let previous: Vec<_> = (1..=tokens).map(|n| (cursor.previous(n), cursor.previous_text(n))).collect();
        let (call, next) = (cursor.call(), cursor.next(file));
        let (declared, bracket, block) = (cursor.declaration(), cursor.bracket(), cursor.in_block());
        let (word, quoted) = (&cursor.word, cursor.quoted);
        let locals = if block { cursor.locals() } else { Vec::new() };
        format!("{word:?} {quoted} {locals:?} {declared:?} {bracket:?} {block} {call:?}\n{next:?}\n{previous:?}")
    }

    /// Texts out of which something is missing: what is said of a place is what all of the text says, unless the
    /// mistake is in an item before, where it is out of the way.
    #[test]
    fn an_item_says_as_much_as_the_file() {
        let mut seed = 5u64;
        let mut draw = |n: usize| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) as usize % n.max(1)
        };
        let mut files = Vec::new();
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        for folder in ["examples", "stdlib", "tests/language"] {
            ptoc_driver::files::collect(&root.join(folder), &mut files).expect("it is there");
        }
        assert!(files.len() > 50, "{files:?}");
        let (mut shorter, mut asked) = (0, 0);
        for path in files {
            let whole = std::fs::read_to_string(&path).expect("it is a text");
            for _ in 0..6 {
                let mut text = whole.clone();
                let at = text.floor_char_boundary(draw(text.len()));
                let end = text.floor_char_boundary((at + draw(8)).min(text.len()));
                text.replace_range(at..end.max(at), "");
                let loaded = load(&path, &text, &Default::default());
                for offset in [at, text.floor_char_boundary(draw(text.len()))] {
                    let part = loaded.part(offset);
                    if at < part.start {
                        continue;
                    }
                    shorter += usize::from(part.len() < text.len());
                    asked += 1;
                    let file = loaded.file();
                    let [one, all] = [part, 0..text.len()].map(|part| Cursor::new(file, &text, part, offset));
                    let tokens = one.before.min(5);
                    let place =
                        format!("{}, {:?}", path.display(), loaded.lines[0].position(&text, offset, Encoding::Utf8));
                    assert_eq!(said(&one, tokens, file), said(&all, tokens, file), "{place}");
                }
            }
        }
        assert!(shorter * 2 > asked, "{shorter} of {asked}");
    }
}

//! Text to tree: recursive descent of bounded depth. The first error in a function ends that function; what comes
//! behind it is read.

mod attrs;
mod code;
mod ops;
mod types;
mod values;

use crate::attr::{AttrValue, Source};
use crate::lexer::{self, Tok, Token, Word};
use crate::tree::{BlockArg, Function, Item, MAX_DEPTH, Module, Region, Value};
use crate::types::{Type, Typed};
use ptoc_diagnostics::{Code, Diagnostic, FileId, Span, codes};
use rustc_hash::FxHashMap;

/// Longest text that is read: spans have 32 bits.
const MAX_BYTES: usize = 16 << 20;

/// A parsed file.
#[derive(Clone, Debug)]
pub struct Parsed {
    /// The tree of what could be read.
    pub module: Module,
    /// What is wrong with the text, in its order.
    pub diagnostics: Vec<Diagnostic>,
}

/// Parses a file.
pub fn parse(file: FileId, text: &str) -> Parsed {
    let whole = Span::new(file, 0, text.len().min(u32::MAX as usize) as u32);
    let empty = Module { attrs: Vec::new(), items: Vec::new(), written: false, span: whole };
    if text.len() > MAX_BYTES {
        let message = format!("this text has {} bytes, and {MAX_BYTES} are the most that are read", text.len());
        let at = Span::new(file, 0, 0);
        return Parsed { module: empty, diagnostics: vec![Diagnostic::error(codes::PTO_SYNTAX, at, message)] };
    }
    let mut parser = Parser::new(file, text);
    let module = parser.file(whole);
    Parsed { module, diagnostics: parser.diagnostics }
}

/// An error was reported, and the part that it is in cannot be read further.
pub(crate) struct Reported;

pub(crate) type Res<T> = Result<T, Reported>;

/// The state of the parser: the text, and the token that is next.
pub(crate) struct Parser<'t> {
    file: FileId,
    text: &'t str,
    token: Token,
    /// Where the last token that was taken ends.
    taken: usize,
    depth: u32,
    /// Names for types, and for attributes; `None` of one that is wrong.
    types: FxHashMap<Word, Option<Type>>,
    attributes: FxHashMap<Word, Option<AttrValue>>,
    diagnostics: Vec<Diagnostic>,
}

impl<'t> Parser<'t> {
    fn new(file: FileId, text: &'t str) -> Parser<'t> {
        Parser {
            file,
            text,
            token: lexer::next(text, 0),
            taken: 0,
            depth: 0,
            types: FxHashMap::default(),
            attributes: FxHashMap::default(),
            diagnostics: Vec::new(),
        }
    }

    // ---- tokens ----------------------------------------------------------------------------------------------------

    fn word(&self) -> &'t str {
        &self.text[self.token.start..self.token.end]
    }

    fn here(&self) -> Span {
        Span::new(self.file, self.token.start as u32, self.token.end as u32)
    }

    /// From byte `start` to the end of what was taken.
    fn since(&self, start: usize) -> Span {
        Span::new(self.file, start as u32, self.taken.max(start) as u32)
    }

    fn advance(&mut self) {
        self.taken = self.token.end;
        self.token = lexer::next(self.text, self.token.end);
    }

    /// Goes on at byte `at`, which is behind the last token or inside the next one.
    fn jump(&mut self, at: usize) {
        self.taken = at;
        self.token = lexer::next(self.text, at);
    }

    fn is(&self, word: &str) -> bool {
        matches!(self.token.tok, Tok::Mark | Tok::Name) && self.word() == word
    }

    fn eat(&mut self, word: &str) -> bool {
        let there = self.is(word);
        if there {
            self.advance();
        }
        there
    }

    fn expect(&mut self, word: &str, what: &str) -> Res<()> {
        if self.eat(word) {
            return Ok(());
        }
        self.fail(format!("expected `{word}` {what}"))
    }

    /// Takes a token of that kind.
    fn take(&mut self, tok: Tok, what: &str) -> Res<&'t str> {
        if self.token.tok != tok {
            return self.fail(format!("expected {what}"));
        }
        let word = self.word();
        self.advance();
        Ok(word)
    }

    // ---- errors ----------------------------------------------------------------------------------------------------

    /// An error at the next token, which is named behind the message.
    fn fail<T>(&mut self, message: String) -> Res<T> {
        let found = match self.token.tok {
            Tok::End => "the text ends here".to_string(),
            _ => format!("found `{}`", self.word().chars().take(40).collect::<String>().escape_debug()),
        };
        self.report(Diagnostic::error(codes::PTO_SYNTAX, self.here(), message).with_label(found))
    }

    fn wrong<T>(&mut self, code: Code, span: Span, message: impl Into<String>) -> Res<T> {
        self.report(Diagnostic::error(code, span, message))
    }

    fn report<T>(&mut self, diagnostic: Diagnostic) -> Res<T> {
        self.diagnostics.push(diagnostic);
        Err(Reported)
    }

    /// Runs `f` one level deeper, unless that is too deep.
    fn nested<T>(&mut self, f: impl FnOnce(&mut Self) -> Res<T>) -> Res<T> {
        if self.depth >= MAX_DEPTH {
            let message = format!("this is nested more than {MAX_DEPTH} levels deep");
            let span = self.here();
            // What is in there is not looked at.
            self.jump(self.text.len());
            return self.wrong(codes::PTO_SYNTAX, span, message);
        }
        self.depth += 1;
        let result = f(self);
        self.depth -= 1;
        result
    }

    /// Items with commas between them, up to `close`, which is taken.
    fn list<T>(&mut self, close: &str, mut item: impl FnMut(&mut Self) -> Res<T>) -> Res<Vec<T>> {
        let mut list = Vec::new();
        if self.eat(close) {
            return Ok(list);
        }
        loop {
            list.push(item(self)?);
            if !self.eat(",") {
                self.expect(close, "or `,` here")?;
                return Ok(list);
            }
        }
    }

    // ---- modules and functions -------------------------------------------------------------------------------------

    fn file(&mut self, span: Span) -> Module {
        let mut items = Vec::new();
        self.items(&mut items, "");
        // A file of one module is that module.
        match items.pop() {
            Some(Item::Module(only)) if items.is_empty() => only,
            last => {
                items.extend(last);
                Module { attrs: Vec::new(), items, written: false, span }
            }
        }
    }

    /// Items up to `close` (the end of the text if that is empty), which is not taken.
    fn items(&mut self, items: &mut Vec<Item>, close: &str) {
        while self.token.tok != Tok::End && (close.is_empty() || !self.is(close)) {
            let before = self.token.start;
            match self.item() {
                Ok(Some(item)) => items.push(item),
                Ok(None) => {}
                Err(Reported) => self.resume(before),
            }
        }
    }

    /// Behind an error: the next function or module.
    fn resume(&mut self, before: usize) {
        if self.token.start == before && self.token.tok != Tok::End {
            self.advance();
        }
        while self.token.tok != Tok::End && !(self.is("func.func") || self.is("module") || self.is_alias()) {
            self.advance();
        }
    }

    /// Whether a name for a type or an attribute is defined here.
    fn is_alias(&self) -> bool {
        let next = lexer::next(self.text, self.token.end);
        matches!(self.token.tok, Tok::Type | Tok::Attr) && &self.text[next.start..next.end] == "="
    }

    fn item(&mut self) -> Res<Option<Item>> {
        let start = self.token.start;
        if self.token.tok == Tok::Attr {
            return self.attribute_alias().map(|()| None);
        }
        if self.token.tok == Tok::Type {
            return self.type_alias().map(|()| None);
        }
        if self.is("}") && !self.diagnostics.is_empty() {
            // It ends what could not be read.
            self.advance();
            return Ok(None);
        }
        if self.eat("module") {
            return self.nested(|p| p.module(start)).map(|m| Some(Item::Module(m)));
        }
        if self.eat("func.func") {
            return self.function(start).map(|f| Some(Item::Function(f)));
        }
        self.fail("expected `module` or `func.func`".into())
    }

    fn module(&mut self, start: usize) -> Res<Module> {
        if self.token.tok == Tok::Symbol {
            self.advance();
        }
        let attrs = if self.eat("attributes") { self.dict()? } else { Vec::new() };
        self.expect("{", "to begin the module")?;
        let mut items = Vec::new();
        self.items(&mut items, "}");
        // What ends too early was reported where it ends, unless nothing else was.
        if !self.eat("}") && self.diagnostics.is_empty() {
            return self.fail("expected `}` to end the module".into());
        }
        self.source()?;
        Ok(Module { attrs, items, written: true, span: self.since(start) })
    }

    fn function(&mut self, start: usize) -> Res<Function> {
        let visibility = ["private", "public", "nested"].into_iter().find(|w| self.eat(w)).map(Word::new);
        let name_span = self.here();
        let name = Word::new(&self.take(Tok::Symbol, "the function's name, as in `@add`")?[1..]);
        self.expect("(", "to begin the arguments")?;
        let params = self.list(")", |p| {
            let (name, span) = p.value_name("an argument, as in `%x: !pto.ptr<f32>`")?;
            p.expect(":", "and the argument's type")?;
            let ty = Some(p.ty()?);
            let attrs = if p.is("{") { p.dict()? } else { Vec::new() };
            Ok(BlockArg { name, span, ty, attrs })
        })?;
        let results = if self.eat("->") { self.types()? } else { Vec::new() };
        let attrs = if self.eat("attributes") { self.dict()? } else { Vec::new() };
        let body = match self.is("{") {
            true => Some(self.region()?),
            false => None,
        };
        let source = self.source()?;
        let span = self.since(start);
        Ok(Function { visibility, name, name_span, params, results, attrs, body, span, source })
    }

    // ---- values and regions ----------------------------------------------------------------------------------------

    fn value_name(&mut self, what: &str) -> Res<(Word, Span)> {
        let span = self.here();
        let name = self.take(Tok::Value, what)?;
        Ok((Word::new(&name[1..]), span))
    }

    fn value(&mut self) -> Res<Value> {
        let start = self.token.start;
        let (name, _) = self.value_name("a value, as in `%x`")?;
        let mut index = None;
        if self.token.tok == Tok::Number && self.token.start == self.taken {
            index = self.word()[1..].parse().ok();
            self.advance();
        }
        Ok(Value { name, index, span: self.since(start) })
    }

    /// `{ .. }`
    fn region(&mut self) -> Res<Region> {
        self.nested(|p| {
            p.expect("{", "to begin a block")?;
            let mut region = Region::default();
            if p.token.tok == Tok::Block {
                p.advance();
                if p.eat("(") {
                    region.args = p.list(")", |p| {
                        let (name, span) = p.value_name("an argument of the block")?;
                        p.expect(":", "and the argument's type")?;
                        Ok(BlockArg { name, span, ty: Some(p.ty()?), attrs: Vec::new() })
                    })?;
                }
                p.expect(":", "behind the block's name")?;
            }
            while !p.is("}") {
                if p.token.tok == Tok::Block {
                    let (span, message) = (p.here(), "a region of several blocks is not read: control flow is `scf`");
                    return p.wrong(codes::PTO_NOT_READ, span, message);
                }
                region.ops.push(p.op()?);
            }
            p.advance();
            Ok(region)
        })
    }

    /// `loc(..)`, if it is there.
    fn source(&mut self) -> Res<Option<Source>> {
        if !self.is("loc") {
            return Ok(None);
        }
        self.advance();
        self.expect("(", "behind `loc`")?;
        let start = self.token.start;
        let place = self.place();
        if let Some(place) = place.filter(|_| self.is(")")) {
            self.advance();
            return Ok(Some(place));
        }
        let mut open = 1;
        loop {
            match self.word() {
                _ if self.token.tok == Tok::End => return self.fail("expected `)` to end `loc(`".into()),
                "(" => open += 1,
                ")" => open -= 1,
                _ => {}
            }
            if open == 0 {
                let text = Word::new(self.text[start..self.token.start].trim_end());
                self.advance();
                return Ok(Some(Source::Other(text)));
            }
            self.advance();
        }
    }

    /// `"file":1:2`; what does not begin so is left where it is.
    fn place(&mut self) -> Option<Source> {
        if self.token.tok != Tok::Str {
            return None;
        }
        let quoted = self.word();
        let file = Word::new(&quoted[1..quoted.len() - 1]);
        self.advance();
        let mut number = || {
            let there = self.eat(":") && self.token.tok == Tok::Int;
            let number = self.word().parse().ok().filter(|_| there)?;
            self.advance();
            Some(number)
        };
        Some(Source::Place { file, line: number()?, column: number()? })
    }

    fn types(&mut self) -> Res<Vec<Typed>> {
        match self.eat("(") {
            true => self.list(")", |p| p.ty()),
            false => Ok(vec![self.ty()?]),
        }
    }
}

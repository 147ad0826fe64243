//! The parser: tables and functions. Statements are in `statement`.

use super::lex::{Token, TokenKind, tokens};
use crate::loops::{
    Bounded, BoundsRow, CheckRow, Func, FunctionEntry, LTy, Label, MemTy, Module, Reg, RegData, SourcePosition,
    SpaceData, SpaceId, VarData, VarId,
};
use cranelift_entity::{EntityRef, PrimaryMap};
use ptoc_abi::Raster;
use ptoc_diagnostics::{Diagnostic, FileId, Span, codes};
use smol_str::SmolStr;

/// Reads a module from its text form; `file` is where the text's own spans point (diagnostics only).
///
/// # Errors
/// The first mistake, with its place. The result is well-formed but not verified.
pub fn parse(text: &str, file: FileId) -> std::result::Result<Module, Diagnostic> {
    let tokens = tokens(text, file)?;
    Parser { tokens: &tokens, at: 0, regs: Vec::new(), vars: 0, labels: 0 }.module().map_err(|error| *error)
}

/// What parsing a piece gives; errors are boxed to keep the frames of the recursion small.
pub(super) type Result<T> = std::result::Result<T, Box<Diagnostic>>;

pub(super) struct Parser<'a> {
    tokens: &'a [Token<'a>],
    at: usize,
    /// The function's registers: whether each is mentioned, and its type as far as it is known.
    regs: Vec<(bool, Option<LTy>)>,
    pub(super) vars: usize,
    pub(super) labels: usize,
}

impl<'a> Parser<'a> {
    pub(super) fn peek(&self) -> Token<'a> {
        self.tokens[self.at]
    }

    pub(super) fn advance(&mut self) -> Token<'a> {
        let token = self.peek();
        // The last token is `End`, which is never passed.
        self.at = (self.at + 1).min(self.tokens.len() - 1);
        token
    }

    /// An error at the next token.
    pub(super) fn wanted<T>(&self, what: &str) -> Result<T> {
        let token = self.peek();
        let found = match token.kind {
            TokenKind::End => "the end of the text".to_owned(),
            _ => format!("`{}`", token.text),
        };
        Self::bad(token, format!("expected {what}, found {found}"))
    }

    pub(super) fn bad<T>(token: Token<'_>, message: impl Into<String>) -> Result<T> {
        Err(Box::new(Diagnostic::error(codes::LOOP_IR_SYNTAX, token.span, message)))
    }

    /// Takes the token if it is this word or mark.
    pub(super) fn take(&mut self, text: &str) -> bool {
        let token = self.peek();
        let found = matches!(token.kind, TokenKind::Word | TokenKind::Mark) && token.text == text;
        if found {
            self.advance();
        }
        found
    }

    pub(super) fn expect(&mut self, text: &str) -> Result<()> {
        if self.take(text) { Ok(()) } else { self.wanted(&format!("`{text}`")) }
    }

    pub(super) fn text(&mut self) -> Result<String> {
        let token = self.peek();
        if token.kind != TokenKind::Text {
            return self.wanted("text in quotes");
        }
        self.advance();
        let mut out = String::new();
        let mut chars = token.text[1..token.text.len() - 1].chars();
        while let Some(c) = chars.next() {
            out.push(match c {
                '\\' => match chars.next() {
                    Some('n') => '\n',
                    Some(c @ ('"' | '\\')) => c,
                    _ => return Self::bad(token, "the only escapes are `\\\"`, `\\\\` and `\\n`"),
                },
                c => c,
            });
        }
        Ok(out)
    }

    /// A number of a type that parses from decimal.
    pub(super) fn number<T: std::str::FromStr>(&mut self, what: &str) -> Result<T> {
        let token = self.peek();
        match token.text.parse() {
            Ok(number) if token.kind == TokenKind::Number => {
                self.advance();
                Ok(number)
            }
            _ => self.wanted(what),
        }
    }

    /// `prefix` and an index below `limit`.
    fn indexed(&mut self, prefix: char, limit: usize, what: &str) -> Result<usize> {
        let token = self.peek();
        let digits = token.text.strip_prefix(prefix).filter(|_| token.kind == TokenKind::Word);
        // Only the spelling that the printer writes: no leading zeros.
        match digits.filter(|d| *d == "0" || !d.starts_with('0')).map(str::parse::<usize>) {
            Some(Ok(index)) if index < limit => {
                self.advance();
                Ok(index)
            }
            Some(Ok(_)) => Self::bad(token, format!("there is no {what} `{}`", token.text)),
            _ => self.wanted(&format!("a {what}")),
        }
    }

    pub(super) fn reg(&mut self) -> Result<Reg> {
        // Every register is mentioned where it is defined, so a larger number than there are tokens is wrong; the
        // bound keeps the table as small as the text.
        let index = self.indexed('r', self.tokens.len(), "register")?;
        if self.regs.len() <= index {
            self.regs.resize(index + 1, (false, None));
        }
        self.regs[index].0 = true;
        Ok(Reg::new(index))
    }

    pub(super) fn var(&mut self) -> Result<VarId> {
        Ok(VarId::new(self.indexed('m', self.vars, "variable")?))
    }

    pub(super) fn label(&mut self) -> Result<Label> {
        Ok(Label::new(self.indexed('l', self.labels, "label")?))
    }

    pub(super) fn space(&mut self) -> Result<SpaceId> {
        Ok(SpaceId::new(self.indexed('s', u32::MAX as usize, "space")?))
    }

    pub(super) fn tensor(&mut self) -> Result<u32> {
        Ok(self.indexed('t', u32::MAX as usize, "tensor")? as u32)
    }

    fn ty(&mut self) -> Result<LTy> {
        for ty in [LTy::I32, LTy::I64, LTy::F32, LTy::Bool] {
            if self.take(ty.name()) {
                return Ok(ty);
            }
        }
        self.wanted("a register type: i32, i64, f32 or bool")
    }

    pub(super) fn mem_ty(&mut self) -> Result<MemTy> {
        match MemTy::from_name(self.peek().text).filter(|ty| self.take(ty.name())) {
            Some(ty) => Ok(ty),
            None => self.wanted("a memory type"),
        }
    }

    /// `r3: f32`
    pub(super) fn typed_reg(&mut self) -> Result<(Reg, LTy)> {
        let token = self.peek();
        let reg = self.reg()?;
        self.expect(":")?;
        let ty = self.ty()?;
        match self.regs[reg.index()].1.replace(ty) {
            Some(other) if other != ty => Self::bad(token, format!("{reg} is both {other} and {ty}")),
            _ => Ok((reg, ty)),
        }
    }

    /// `@file:start..end`, or nothing.
    pub(super) fn span(&mut self) -> Result<Span> {
        if !self.take("@") {
            return Ok(Span::default());
        }
        let file = FileId(self.number("a file's number")?);
        self.expect(":")?;
        let token = self.peek();
        let start = self.number("a byte offset")?;
        self.expect("..")?;
        let end = self.number("a byte offset")?;
        if end < start {
            return Self::bad(token, format!("a span from {start} back to {end}"));
        }
        Ok(Span::new(file, start, end))
    }

    /// `at 3:18`, `at "other.tile" 3:18`
    fn place(&mut self) -> Result<Option<SourcePosition>> {
        if !self.take("at") {
            return Ok(None);
        }
        let file = match self.peek().kind {
            TokenKind::Text => Some(SmolStr::from(self.text()?)),
            _ => None,
        };
        let line = self.number("a line")?;
        self.expect(":")?;
        Ok(Some(SourcePosition { file, line, column: self.number("a column")? }))
    }

    /// A comma-separated list up to `close`, which is taken.
    pub(super) fn list<T>(&mut self, close: &str, mut item: impl FnMut(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        let mut items = Vec::new();
        if self.take(close) {
            return Ok(items);
        }
        loop {
            items.push(item(self)?);
            if self.take(close) {
                return Ok(items);
            }
            self.expect(",")?;
        }
    }

    fn module(mut self) -> Result<Module> {
        self.expect("kernel")?;
        let name = SmolStr::from(self.text()?);
        let mut tensors = Vec::new();
        while self.take("tensor") {
            tensors.push(SmolStr::from(self.text()?));
        }
        self.expect("arena")?;
        let arena = self.number("a number of bytes")?;
        let mut spaces = PrimaryMap::new();
        while self.take("space") {
            let name = SmolStr::from(self.text()?);
            self.expect("at")?;
            let offset = self.number("an offset")?;
            self.expect("size")?;
            let size = self.number("a size")?;
            spaces.push(SpaceData { name, offset, size });
        }
        let mut spread = Vec::new();
        while self.take("spread") {
            spread.push(self.number("a dimension")?);
        }
        let raster = match self.take("raster") {
            true => {
                let along = self.number("a dimension")?;
                Some(Raster { along, swizzle: self.number("a number of blocks")? })
            }
            false => None,
        };
        let mut cluster = Vec::new();
        while self.take("cluster") {
            cluster.push(self.number("a number of blocks")?);
        }
        let mut checks = Vec::new();
        while self.take("check") {
            let id = self.number("a check's number")?;
            checks.push(CheckRow { id, span: self.span()? });
        }
        let mut bounds = Vec::new();
        while self.take("bounds") {
            let what = SmolStr::from(self.text()?);
            let by = match () {
                () if self.take("proof") => Bounded::Proof,
                () if self.take("intervals") => Bounded::Intervals,
                () => {
                    self.expect("checks")?;
                    let mut checks = Vec::new();
                    while self.peek().kind == TokenKind::Number {
                        checks.push(self.number("a row of the check table")?);
                    }
                    Bounded::Checks(checks)
                }
            };
            let place = self.place()?;
            bounds.push(BoundsRow { what, by, span: self.span()?, place });
        }
        let launch = self.func(FunctionEntry::Launch)?;
        let block = self.func(FunctionEntry::Block)?;
        if self.peek().kind != TokenKind::End {
            return self.wanted("the end of the text");
        }
        Ok(Module { name, tensors, spaces, arena, spread, raster, cluster, checks, bounds, launch, block })
    }

    fn func(&mut self, entry: FunctionEntry) -> Result<Func> {
        let head = self.peek();
        self.expect(if entry == FunctionEntry::Launch { "launch" } else { "block" })?;
        self.regs.clear();
        let name = SmolStr::from(self.text()?);
        self.expect("(")?;
        let params = self.list(")", |p| Ok(p.typed_reg()?.0))?;
        let results = if self.take("->") {
            self.expect("(")?;
            self.list(")", Parser::reg)?
        } else {
            Vec::new()
        };
        self.expect("{")?;
        let mut vars = PrimaryMap::new();
        while self.take("var") {
            self.vars = vars.len() + 1;
            let token = self.peek();
            if self.var()?.index() != vars.len() {
                return Self::bad(token, format!("variables are numbered in order: m{} comes next", vars.len()));
            }
            self.expect(":")?;
            let ty = self.ty()?;
            vars.push(VarData { ty });
        }
        self.vars = vars.len();
        self.labels = 0;
        if self.take("labels") {
            let token = self.peek();
            self.labels = self.number("a number of labels")?;
            if self.labels > self.tokens.len() {
                return Self::bad(token, "more labels than the text has words");
            }
        }
        while self.take("reg") {
            self.typed_reg()?;
        }
        let body = self.region(0)?;
        let mut regs = PrimaryMap::new();
        for (index, (mentioned, ty)) in self.regs.drain(..).enumerate() {
            // Numbers that hand-written text skips become registers that nothing uses.
            let Some(ty) = ty.or((!mentioned).then_some(LTy::I32)) else {
                return Self::bad(head, format!("r{index} is used in `{name}` but nothing says its type"));
            };
            regs.push(RegData { ty });
        }
        let mut labels = PrimaryMap::new();
        (0..self.labels).for_each(|_| {
            labels.push(());
        });
        Ok(Func { name, entry, params, results, regs, vars, labels, body })
    }
}

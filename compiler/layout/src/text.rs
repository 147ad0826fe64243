//! The notation of values and expressions, as a syntax tree with byte spans.
//!
//! ```text
//! expr    = pair {"o" pair}                      Sw<3,0,3> o 0 o (8,8):(8,1), 96 o (4,2):(24,1)
//! pair    = sum [":" sum]                        (4,8):(1,4)
//! sum     = product { ("+" | "-") product }
//! product = factor { "*" factor }
//! factor  = "-" factor | basis
//! basis   = primary { "@" integer }              4@0@1, outermost mode last
//! primary = integer | "_" | "X" | "(" [expr {"," expr} [","]] ")" | "<" expr {"," expr} ">"
//!         | "Sw<" integer "," integer "," integer ">" | name ["<" words ">"] | name "(" [expr {"," expr}] ")"
//! ```
//!
//! Parentheses around one entry are a tuple of one, except in arithmetic, where they group.

use crate::expr::{ExprError, ExprErrorKind};
use std::ops::Range;

/// Bytes of the text, half open.
pub type TextSpan = Range<usize>;

/// Brackets, signs and operations deeper than this are refused, so that no text exhausts the stack.
pub const MAX_DEPTH: usize = 64;

/// A piece of the tree and the bytes that it was read from.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Expr {
    pub span: TextSpan,
    pub kind: ExprKind,
}

/// The forms of expressions. Chains are lists, so that a long one is not a deep one.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum ExprKind {
    Int(i64),
    Keep,
    Skip,
    Bool(bool),
    /// `(a, b)`
    Tuple(Vec<Expr>),
    /// `<a, b>`
    Tiler(Vec<Expr>),
    /// `shape:stride`
    Pair(Box<Expr>, Box<Expr>),
    /// `v@i@j`, the mode numbers as they are written
    Basis(Box<Expr>, Vec<usize>),
    /// Terms with their signs (`true`: minus).
    Sum(Vec<(bool, Expr)>),
    Product(Vec<Expr>),
    Neg(Box<Expr>),
    /// `Sw<b,m,s>`
    Swizzle([i64; 3]),
    /// `a o b o c`
    Compose(Vec<Expr>),
    /// A name, and the whole spelling if words in `<>` follow.
    Name {
        name: String,
        full: Option<String>,
    },
    /// `name(args)`
    Call {
        name: String,
        name_span: TextSpan,
        args: Vec<Expr>,
    },
}

/// Parses the whole text as one expression.
pub(crate) fn parse(text: &str) -> Result<Expr, ExprError> {
    let mut p = Parser { text, at: 0, depth: 0 };
    p.space();
    if p.at == text.len() {
        return Err(p.error(p.at..p.at, "there is no expression").help("write a layout, such as `(4,8):(1,4)`"));
    }
    let e = p.expr()?;
    p.space();
    match p.peek() {
        None => Ok(e),
        Some(c) => Err(p.surplus(c)),
    }
}

struct Parser<'t> {
    text: &'t str,
    at: usize,
    depth: usize,
}

impl Parser<'_> {
    fn peek(&self) -> Option<char> {
        self.text[self.at..].chars().next()
    }

    fn space(&mut self) {
        while let Some(c) = self.peek().filter(|c| c.is_whitespace()) {
            self.at += c.len_utf8();
        }
    }

    /// Skips space and takes `c` if it is next.
    fn take(&mut self, c: char) -> bool {
        self.space();
        let found = self.peek() == Some(c);
        if found {
            self.at += c.len_utf8();
        }
        found
    }

    fn error(&self, span: TextSpan, message: impl Into<String>) -> ExprError {
        ExprError::new(ExprErrorKind::Syntax, span, message)
    }

    /// The character that stands at `at`, or nothing at the end.
    fn here(&self) -> TextSpan {
        self.at..self.at + self.peek().map_or(0, char::len_utf8)
    }

    fn surplus(&self, c: char) -> ExprError {
        let e = self.error(self.here(), format!("`{c}` is not expected here"));
        match c {
            ')' | '>' => e.label(format!("no bracket is open that `{c}` could close")),
            ',' => e.label("the expression ends before it").help("entries of a tuple stand in parentheses: `(4,8)`"),
            ':' => e
                .label("the layout has its stride already")
                .help("nested layouts are nested tuples: `((2,2),4):((1,2),4)`"),
            _ => e.label("the expression ends before it"),
        }
    }

    /// One level deeper.
    fn nested<T>(&mut self, parse: impl FnOnce(&mut Self) -> Result<T, ExprError>) -> Result<T, ExprError> {
        if self.depth == MAX_DEPTH {
            let e = self.error(self.here(), format!("more than {MAX_DEPTH} levels of brackets and signs"));
            return Err(e.label("this one is too deep").help("no layout needs so many: check the brackets"));
        }
        self.depth += 1;
        let result = parse(self);
        self.depth -= 1;
        result
    }

    fn expr(&mut self) -> Result<Expr, ExprError> {
        let first = self.pair()?;
        let start = first.span.start;
        let mut parts = vec![first];
        while self.infix_o() {
            parts.push(self.pair()?);
        }
        Ok(match parts.len() {
            1 => parts.remove(0),
            _ => Expr { span: start..self.at, kind: ExprKind::Compose(parts) },
        })
    }

    /// Takes `o` (or `∘`) where an infix may stand.
    fn infix_o(&mut self) -> bool {
        if self.take('∘') {
            return true;
        }
        let rest = &self.text[self.at..];
        let found = rest.starts_with('o') && !rest[1..].starts_with(is_word);
        if found {
            self.at += 1;
        }
        found
    }

    fn pair(&mut self) -> Result<Expr, ExprError> {
        let shape = self.sum()?;
        if !self.take(':') {
            return Ok(shape);
        }
        let stride = self.sum()?;
        Ok(Expr { span: shape.span.start..stride.span.end, kind: ExprKind::Pair(shape.into(), stride.into()) })
    }

    fn sum(&mut self) -> Result<Expr, ExprError> {
        let first = self.product()?;
        let start = first.span.start;
        let mut terms = vec![(false, first)];
        loop {
            let minus = self.take('-');
            if !minus && !self.take('+') {
                break;
            }
            terms.push((minus, self.product()?));
        }
        Ok(match terms.len() {
            1 => terms.remove(0).1,
            n => Expr { span: start..terms[n - 1].1.span.end, kind: ExprKind::Sum(terms) },
        })
    }

    fn product(&mut self) -> Result<Expr, ExprError> {
        let first = self.factor()?;
        let start = first.span.start;
        let mut factors = vec![first];
        while self.take('*') {
            factors.push(self.factor()?);
        }
        Ok(match factors.len() {
            1 => factors.remove(0),
            n => Expr { span: start..factors[n - 1].span.end, kind: ExprKind::Product(factors) },
        })
    }

    fn factor(&mut self) -> Result<Expr, ExprError> {
        self.space();
        let start = self.at;
        if !self.take('-') {
            return self.basis();
        }
        self.space();
        if self.peek().is_some_and(|c| c.is_ascii_digit()) {
            // With its sign, because the least number has no positive twin.
            let n = self.integer(start)?;
            let literal = Expr { span: start..self.at, kind: ExprKind::Int(n) };
            return self.basis_of(literal);
        }
        let of = self.nested(Self::factor)?;
        Ok(Expr { span: start..of.span.end, kind: ExprKind::Neg(of.into()) })
    }

    fn basis(&mut self) -> Result<Expr, ExprError> {
        let scale = self.primary()?;
        self.basis_of(scale)
    }

    fn basis_of(&mut self, scale: Expr) -> Result<Expr, ExprError> {
        let mut modes = Vec::new();
        let mut end = scale.span.end;
        while self.take('@') {
            self.space();
            let start = self.at;
            if !self.peek().is_some_and(|c| c.is_ascii_digit()) {
                let e = self.error(self.here(), "after `@` comes the number of a mode");
                return Err(e
                    .label("a number is missing")
                    .help("`1@0` is one step in mode 0; `1@0@1` one in entry 0 of mode 1"));
            }
            let mode = self.integer(start)?;
            // Coordinates are padded to the greatest mode, so a huge one would only exhaust the memory.
            let small = usize::try_from(mode).ok().filter(|&m| m < MAX_DEPTH);
            modes.push(small.ok_or_else(|| {
                let message = format!("mode {mode} is beyond the {MAX_DEPTH} modes that a coordinate may have");
                self.error(start..self.at, message)
            })?);
            end = self.at;
        }
        Ok(match modes.is_empty() {
            true => scale,
            false => Expr { span: scale.span.start..end, kind: ExprKind::Basis(scale.into(), modes) },
        })
    }

    /// The digits from here; `start` is where the sign stands, or the first digit.
    fn integer(&mut self, start: usize) -> Result<i64, ExprError> {
        let digits = self.at;
        let rest = &self.text[digits..];
        let length = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        self.at += length;
        if self.peek().is_some_and(is_word) {
            let from = self.at;
            let rest = &self.text[from..];
            let end = from + rest.find(|c| !is_word(c)).unwrap_or(rest.len());
            let e = self.error(start..end, format!("`{}` is neither a number nor a name", &self.text[digits..end]));
            return Err(e.label("a decimal integer, or a name that begins with a letter"));
        }
        let negative = start < digits;
        let magnitude = self.text[digits..self.at].parse::<i128>().ok();
        let value = magnitude.and_then(|m| i64::try_from(if negative { -m } else { m }).ok());
        value.ok_or_else(|| {
            self.error(start..self.at, "the number does not fit 64 bits").label(format!("at most {}", i64::MAX))
        })
    }

    fn primary(&mut self) -> Result<Expr, ExprError> {
        self.space();
        let start = self.at;
        let Some(c) = self.peek() else {
            return Err(self.error(start..start, "the expression ends too early").label("something is missing here"));
        };
        let kind = match c {
            '0'..='9' => ExprKind::Int(self.integer(start)?),
            '(' => {
                self.at += 1;
                ExprKind::Tuple(self.nested(|p| p.entries(start, ')'))?)
            }
            '<' => {
                self.at += 1;
                let entries = self.nested(|p| p.entries(start, '>'))?;
                if entries.is_empty() {
                    let e = self.error(start..self.at, "a tiler needs an entry");
                    return Err(e
                        .label("nothing to cut with")
                        .help("one entry for each mode: `<4:1,8:1>`; `_` keeps a mode"));
                }
                ExprKind::Tiler(entries)
            }
            c if is_word(c) => return self.word(),
            ')' | '>' | ',' | ':' | '*' | '+' | '@' => {
                let e = self.error(self.here(), format!("a value is missing before `{c}`"));
                return Err(e.label("a number, a tuple, a layout or a name must stand before it"));
            }
            '[' | '{' => {
                let e = self.error(self.here(), format!("`{c}` has no meaning here"));
                return Err(e.help("tuples are written `(4,8)`, tilers `<4:1,8:1>`"));
            }
            c => return Err(self.error(self.here(), format!("`{c}` has no meaning here"))),
        };
        Ok(Expr { span: start..self.at, kind })
    }

    /// Entries up to the closing bracket, which is taken; `open` is where the opening one stands.
    fn entries(&mut self, open: usize, close: char) -> Result<Vec<Expr>, ExprError> {
        let mut entries = Vec::new();
        while !self.take(close) {
            if !entries.is_empty() {
                // `entries` is behind an entry here: a comma, or the end that `take` has not found.
                if !self.take(',') {
                    self.space();
                    let message = match self.peek() {
                        None => format!("`{}` is not closed", &self.text[open..open + 1]),
                        Some(c) => format!("`,` or `{close}` is expected, not `{c}`"),
                    };
                    let e = self.error(self.here(), message).label(format!("`,` or `{close}` is missing here"));
                    return Err(e.also(open..open + 1, "opened here"));
                }
                if self.take(close) {
                    break;
                }
            }
            self.space();
            if self.peek().is_none() {
                let e = self.error(self.at..self.at, format!("`{}` is not closed", &self.text[open..open + 1]));
                return Err(e.label(format!("`{close}` is missing here")).also(open..open + 1, "opened here"));
            }
            entries.push(self.expr()?);
        }
        Ok(entries)
    }

    /// A name, a call, a swizzle, or a word with a meaning of its own.
    fn word(&mut self) -> Result<Expr, ExprError> {
        let start = self.at;
        let rest = &self.text[start..];
        self.at += rest.find(|c| !is_word(c)).unwrap_or(rest.len());
        let name = &self.text[start..self.at];
        let word = start..self.at;
        let kind = match (name, self.peek()) {
            ("_", _) => ExprKind::Keep,
            ("X", _) => ExprKind::Skip,
            ("true", _) => ExprKind::Bool(true),
            ("false", _) => ExprKind::Bool(false),
            ("Sw", Some('<')) => self.swizzle(start)?,
            (name, Some('<')) => {
                let name = name.to_owned();
                self.words_in_angles(&word)?;
                ExprKind::Name { name, full: Some(self.text[start..self.at].to_owned()) }
            }
            (name, _) => {
                let name = name.to_owned();
                self.space();
                let open = self.at;
                if self.take('(') {
                    let args = self.nested(|p| p.entries(open, ')'))?;
                    ExprKind::Call { name, name_span: word, args }
                } else {
                    self.at = word.end;
                    ExprKind::Name { name, full: None }
                }
            }
        };
        Ok(Expr { span: start..self.at, kind })
    }

    /// `<float,float>` behind a name: words, which are part of it.
    fn words_in_angles(&mut self, name: &TextSpan) -> Result<(), ExprError> {
        let open = self.at;
        let rest = &self.text[open + 1..];
        let end = rest.find(|c: char| !is_word(c) && c != ',' && c != ' ').unwrap_or(rest.len());
        self.at = open + 1 + end;
        if self.take('>') {
            return Ok(());
        }
        let e = self.error(self.here(), format!("`<` after `{}` is not closed", &self.text[name.clone()]));
        Err(e.label("`>` is missing here").also(open..open + 1, "opened here"))
    }

    fn swizzle(&mut self, start: usize) -> Result<ExprKind, ExprError> {
        let open = self.at;
        self.at += 1;
        let mut fields = [0i64; 3];
        for (k, field) in fields.iter_mut().enumerate() {
            self.space();
            let first = self.at;
            self.take('-');
            if !self.peek().is_some_and(|c| c.is_ascii_digit()) {
                let e = self.error(self.here(), "a swizzle has three numbers: bits, base and shift");
                return Err(e.label("a number is missing here").help("write it like `Sw<3,4,3>`"));
            }
            *field = self.integer(first)?;
            let separator = if k == 2 { '>' } else { ',' };
            if !self.take(separator) {
                let e = self.error(self.here(), "a swizzle has three numbers: bits, base and shift");
                let e = e.label(format!("`{separator}` is expected here")).also(start..open, "of this swizzle");
                return Err(e.help("write it like `Sw<3,4,3>`"));
            }
        }
        Ok(ExprKind::Swizzle(fields))
    }
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

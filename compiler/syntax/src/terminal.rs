//! The terminals of the grammar: tokens of the text, parts that were parsed before, and the marks that say what the
//! input is to be parsed as.

use crate::token::Tok;

/// A terminal of the grammar.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Terminal {
    /// A token of the text.
    Tok(Tok),
    // Indices into the tables of parsed parts in the builder.
    Param(u32),
    StaticParam(u32),
    Block(u32),
    GridVar(u32),
    Arg(u32),
    Expr(u32),
    // What is to be parsed.
    StartFile,
    StartItem,
    StartParam,
    StartStaticParam,
    StartStmt,
    StartTail,
    StartGridVar,
    StartArg,
    StartStaticArg,
    StartExpr,
}

/// A terminal at a place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Lexeme {
    /// What it is.
    pub term: Terminal,
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
    /// Inserted, replaced, or bad: an error here was reported already, so a parse that fails around it stays silent.
    pub touched: bool,
}

impl Lexeme {
    /// The token, if it is one of the text.
    pub fn tok(&self) -> Option<Tok> {
        match self.term {
            Terminal::Tok(tok) => Some(tok),
            _ => None,
        }
    }

    /// Whether it is this token.
    pub fn is(&self, tok: Tok) -> bool {
        self.term == Terminal::Tok(tok)
    }
}

//! Tokens. [`Tok`] carries no text: the span does.

use std::fmt;

use logos::Logos;

/// A kind of token.
///
/// The lexer never fails: what is no token becomes [`Tok::Bad`] or a `Bad..` variant and is reported on the side,
/// because the generated parser cannot go on after an error of its token stream.
#[derive(Logos, Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[logos(skip r"[ \t\r\n\u{c}]+")]
#[allow(missing_docs, reason = "the names are those of the words and marks")]
pub enum Tok {
    // Words of items.
    #[token("use")]
    Use,
    #[token("const")]
    Const,
    #[token("atom")]
    Atom,
    #[token("fn")]
    Fn,
    #[token("kernel")]
    Kernel,
    #[token("program")]
    Program,
    #[token("type")]
    Type,
    #[token("where")]
    Where,
    #[token("ensures")]
    Ensures,
    // Words of parameters and of clauses; the last five are names wherever a name can stand, and so is `role`.
    #[token("in")]
    In,
    #[token("out")]
    Out,
    #[token("inout")]
    InOut,
    #[token("at")]
    At,
    #[token("over")]
    Over,
    #[token("on")]
    On,
    #[token("fill")]
    Fill,
    #[token("tune")]
    Tune,
    // Words of statements.
    #[token("role")]
    Role,
    #[token("let")]
    Let,
    #[token("var")]
    Var,
    #[token("if")]
    If,
    #[token("else")]
    Else,
    #[token("for")]
    For,
    #[token("while")]
    While,
    #[token("pipeline")]
    Pipeline,
    #[token("grid")]
    Grid,
    #[token("return")]
    Return,
    #[token("break")]
    Break,
    #[token("continue")]
    Continue,
    // Words of expressions.
    #[token("tile")]
    Tile,
    #[token("tensor")]
    Tensor,
    #[token("true")]
    True,
    #[token("false")]
    False,
    #[token("_")]
    Hole,
    #[regex(r"[A-Za-z_][A-Za-z0-9_]*", priority = 1)]
    Name,
    // Literals. Their exact extent is found by `lexer`, which sees the whole malformed thing.
    #[regex(r"[0-9]")]
    Int,
    Float,
    #[token("\"")]
    Str,
    /// A malformed number; stands where a number can stand.
    BadNumber,
    // Brackets.
    #[token("(")]
    LParen,
    #[token(")")]
    RParen,
    #[token("[")]
    LBracket,
    #[token("]")]
    RBracket,
    #[token("{")]
    LBrace,
    #[token("}")]
    RBrace,
    /// `<` that compares: after an operand, and not glued to a name.
    #[token("<")]
    Lt,
    /// `<` glued to the name before it: opens static arguments or parameters.
    StaticOpen,
    /// `<` where an operand begins: opens a tiler.
    TilerOpen,
    /// `>` that compares.
    #[token(">")]
    Gt,
    /// `>` that closes static arguments or a tiler.
    AngleClose,
    // Marks.
    #[token(",")]
    Comma,
    #[token(";")]
    Semi,
    #[token(":")]
    Colon,
    #[token("::")]
    PathSep,
    #[token("#")]
    Hash,
    #[token("@")]
    Basis,
    #[token(".")]
    Dot,
    #[token("..")]
    DotDot,
    #[token("->")]
    Arrow,
    #[token("=")]
    Assign,
    #[token("+=")]
    AddAssign,
    #[token("-=")]
    SubAssign,
    #[token("*=")]
    MulAssign,
    #[token("/=")]
    DivAssign,
    #[token("%=")]
    RemAssign,
    #[token("|=")]
    OrAssign,
    #[token("^=")]
    XorAssign,
    #[token("&=")]
    AndAssign,
    #[token("<<=")]
    ShlAssign,
    #[token(">>=")]
    ShrAssign,
    #[token("==")]
    Eq,
    #[token("!=")]
    Ne,
    #[token("<=")]
    Le,
    #[token(">=")]
    Ge,
    #[token("+")]
    Plus,
    #[token("-")]
    Minus,
    #[token("*")]
    Star,
    #[token("/")]
    Slash,
    #[token("%")]
    Percent,
    #[token("&")]
    And,
    #[token("|")]
    Or,
    #[token("^")]
    Caret,
    #[token("<<")]
    Shl,
    #[token(">>")]
    Shr,
    #[token("&&")]
    AndAnd,
    #[token("||")]
    OrOr,
    #[token("!")]
    Not,
    // Marks of other languages: tokens only so that the error can name them.
    #[token(":=")]
    ColonAssign,
    #[token("=>")]
    FatArrow,
    #[token("**")]
    Power,
    /// `// ..`
    #[token("//")]
    Comment,
    /// `/// ..`: documents the item that follows.
    DocComment,
    /// `//! ..`: documents the file.
    FileDoc,
    /// `/* .. */`, reported.
    #[token("/*")]
    BlockComment,
    /// No token of the language, reported.
    Bad,
}

impl Tok {
    /// Comments of all kinds: in the token list, but not seen by the grammar.
    pub fn is_comment(self) -> bool {
        matches!(self, Tok::Comment | Tok::DocComment | Tok::FileDoc | Tok::BlockComment)
    }

    /// Whether this is a word that the language keeps for itself everywhere but after `.`.
    pub fn is_keyword(self) -> bool {
        self.word().is_some() && !self.is_soft_keyword()
    }

    /// Whether this is a word that has a meaning in some clause (`role`: before a name) and is a name elsewhere.
    pub fn is_soft_keyword(self) -> bool {
        matches!(self, Tok::At | Tok::Over | Tok::On | Tok::Fill | Tok::Tune | Tok::Role)
    }

    /// The fixed spelling of a word, if this is one.
    pub fn word(self) -> Option<&'static str> {
        Some(match self {
            Tok::Use => "use",
            Tok::Const => "const",
            Tok::Atom => "atom",
            Tok::Fn => "fn",
            Tok::Kernel => "kernel",
            Tok::Program => "program",
            Tok::Type => "type",
            Tok::Where => "where",
            Tok::Ensures => "ensures",
            Tok::In => "in",
            Tok::Out => "out",
            Tok::InOut => "inout",
            Tok::At => "at",
            Tok::Over => "over",
            Tok::On => "on",
            Tok::Fill => "fill",
            Tok::Tune => "tune",
            Tok::Role => "role",
            Tok::Let => "let",
            Tok::Var => "var",
            Tok::If => "if",
            Tok::Else => "else",
            Tok::For => "for",
            Tok::While => "while",
            Tok::Pipeline => "pipeline",
            Tok::Grid => "grid",
            Tok::Return => "return",
            Tok::Break => "break",
            Tok::Continue => "continue",
            Tok::Tile => "tile",
            Tok::Tensor => "tensor",
            Tok::True => "true",
            Tok::False => "false",
            _ => return None,
        })
    }

    /// The fixed spelling of a mark, if this is one.
    pub fn mark(self) -> Option<&'static str> {
        Some(match self {
            Tok::Hole => "_",
            Tok::LParen => "(",
            Tok::RParen => ")",
            Tok::LBracket => "[",
            Tok::RBracket => "]",
            Tok::LBrace => "{",
            Tok::RBrace => "}",
            Tok::Lt | Tok::StaticOpen | Tok::TilerOpen => "<",
            Tok::Gt | Tok::AngleClose => ">",
            Tok::Comma => ",",
            Tok::Semi => ";",
            Tok::Colon => ":",
            Tok::PathSep => "::",
            Tok::Hash => "#",
            Tok::Basis => "@",
            Tok::Dot => ".",
            Tok::DotDot => "..",
            Tok::Arrow => "->",
            Tok::Assign => "=",
            Tok::AddAssign => "+=",
            Tok::SubAssign => "-=",
            Tok::MulAssign => "*=",
            Tok::DivAssign => "/=",
            Tok::RemAssign => "%=",
            Tok::OrAssign => "|=",
            Tok::XorAssign => "^=",
            Tok::AndAssign => "&=",
            Tok::ShlAssign => "<<=",
            Tok::ShrAssign => ">>=",
            Tok::Eq => "==",
            Tok::Ne => "!=",
            Tok::Le => "<=",
            Tok::Ge => ">=",
            Tok::Plus => "+",
            Tok::Minus => "-",
            Tok::Star => "*",
            Tok::Slash => "/",
            Tok::Percent => "%",
            Tok::And => "&",
            Tok::Or => "|",
            Tok::Caret => "^",
            Tok::Shl => "<<",
            Tok::Shr => ">>",
            Tok::AndAnd => "&&",
            Tok::OrOr => "||",
            Tok::Not => "!",
            Tok::ColonAssign => ":=",
            Tok::FatArrow => "=>",
            Tok::Power => "**",
            _ => return None,
        })
    }

    /// Whether an operand can end with this token. Decides between a comparison and a tiler, and between `-` and
    /// negation.
    pub fn ends_operand(self) -> bool {
        matches!(
            self,
            Tok::Name
                | Tok::Int
                | Tok::Float
                | Tok::BadNumber
                | Tok::Str
                | Tok::Hole
                | Tok::True
                | Tok::False
                | Tok::RParen
                | Tok::RBracket
                | Tok::RBrace
                | Tok::AngleClose
                | Tok::Bad
        )
    }
}

impl fmt::Display for Tok {
    /// The category that `ptoc emit --stage tokens` prints: the spelling where it is fixed, else the kind.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(text) = self.word().or_else(|| self.mark()) {
            return match self {
                Tok::StaticOpen => f.write_str("static `<`"),
                Tok::TilerOpen => f.write_str("tiler `<`"),
                Tok::AngleClose => f.write_str("closing `>`"),
                _ => write!(f, "`{text}`"),
            };
        }
        f.write_str(match self {
            Tok::Name => "name",
            Tok::Int => "integer",
            Tok::Float => "float",
            Tok::Str => "string",
            Tok::BadNumber => "malformed number",
            Tok::Comment => "comment",
            Tok::DocComment => "doc comment",
            Tok::FileDoc => "file doc",
            Tok::BlockComment => "block comment",
            _ => "bad",
        })
    }
}

//! What each token is, as far as white space goes: brackets with their partners, heads of items, prefixes, clauses.

use super::pieces::Piece;
use crate::Tok;

/// What a token is beyond its kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Role {
    /// Whatever its kind says.
    #[default]
    Plain,
    /// A value ends here: what follows may be an operator, and `(` or `[` is a call or an index.
    End,
    /// A word of a clause (`at`, `on`, ..) and no name.
    Clause,
    /// An operator before its operand, or the bar that opens the parameters of a closure.
    Prefix,
    /// The bar that closes them.
    Bar,
    /// `:` between a name and its type.
    Annotation,
    /// The parameters of an item: `(`.
    Params,
    /// The static parameters of an item: `<`.
    Statics,
}

/// What is known of a token.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Context {
    pub role: Role,
    /// It begins a statement or an item.
    pub start: bool,
    /// The other bracket, for a bracket.
    pub partner: Option<usize>,
}

/// A bracket that is open, or the file.
struct Frame {
    open: usize,
    tok: Option<Tok>,
    role: Role,
    /// In braces and in the file, whether the next token is the first of a statement.
    start: bool,
    /// The head of an item, before its parameters.
    head: bool,
    /// In a `let`, `var` or `const`, before `=`.
    declares: bool,
    /// An attribute.
    attribute: bool,
    /// Between the bars of a closure.
    closure: bool,
    /// The type of a record.
    record: bool,
}

impl Frame {
    fn new(open: usize, tok: Option<Tok>) -> Frame {
        let start = tok.is_none_or(|t| t == Tok::LBrace);
        Frame {
            open,
            tok,
            role: Role::Plain,
            start,
            head: false,
            declares: false,
            attribute: false,
            closure: false,
            record: false,
        }
    }

    fn holds_statements(&self) -> bool {
        self.tok.is_none_or(|t| t == Tok::LBrace)
    }
}

/// The context of every piece. The text has been parsed, so that brackets are balanced.
pub(super) fn contexts(pieces: &[Piece<'_>]) -> Vec<Context> {
    let mut out = vec![Context::default(); pieces.len()];
    let mut frames = vec![Frame::new(0, None)];
    // The last two tokens.
    let (mut last, mut before): (Option<usize>, Option<usize>) = (None, None);
    for (i, piece) in pieces.iter().enumerate() {
        if piece.tok.is_comment() {
            continue;
        }
        let end = last.is_some_and(|l| out[l].role == Role::End);
        let frame = frames.last_mut().expect("the file is never closed");
        let first = frame.holds_statements() && piece.tok != Tok::RBrace && std::mem::take(&mut frame.start);
        out[i].start = first;
        let role = match piece.tok {
            Tok::Name | Tok::Int | Tok::Float | Tok::Str | Tok::BadNumber | Tok::True | Tok::False | Tok::Hole => {
                Role::End
            }
            t if t.is_soft_keyword() => {
                let begins_role = t == Tok::Role && first && pieces.get(i + 1).is_some_and(|p| p.tok == Tok::Name);
                if end || begins_role { Role::Clause } else { Role::End }
            }
            // A word after `.` is a name.
            t if t.word().is_some() && last.is_some_and(|l| pieces[l].tok == Tok::Dot) => Role::End,
            Tok::Minus | Tok::Not if !end => Role::Prefix,
            Tok::Or if frame.closure => {
                frame.closure = false;
                Role::Bar
            }
            Tok::Or if !end => {
                frame.closure = true;
                Role::Prefix
            }
            Tok::Colon => {
                let named = |l: usize| out[l].role == Role::End && pieces[l].tok.mark().is_none();
                let opens = |b: usize| {
                    matches!(
                        pieces[b].tok,
                        Tok::LParen | Tok::StaticOpen | Tok::Comma | Tok::Const | Tok::Let | Tok::Var | Tok::Or
                    )
                };
                let declares = matches!(frame.role, Role::Params | Role::Statics)
                    || frame.declares
                    || frame.closure
                    || frame.record;
                match declares && last.is_some_and(named) && before.is_some_and(opens) {
                    true => Role::Annotation,
                    false => Role::Plain,
                }
            }
            Tok::LParen if frame.head => Role::Params,
            Tok::StaticOpen if frame.head => Role::Statics,
            _ => Role::Plain,
        };
        out[i].role = role;
        match piece.tok {
            Tok::Kernel | Tok::Program | Tok::Fn if first => frame.head = true,
            Tok::Let | Tok::Var | Tok::Const if first => frame.declares = true,
            Tok::Assign => frame.declares = false,
            Tok::Semi if frame.holds_statements() => {
                frame.start = true;
                frame.declares = false;
            }
            _ => {}
        }
        match piece.tok {
            Tok::LParen | Tok::LBracket | Tok::LBrace | Tok::StaticOpen | Tok::TilerOpen => {
                if role == Role::Params {
                    frame.head = false;
                }
                let of_type = |l: usize| pieces[l].tok == Tok::Arrow || out[l].role == Role::Annotation;
                let record = piece.tok == Tok::LParen && last.is_some_and(of_type);
                let attribute = piece.tok == Tok::LBracket && last.is_some_and(|l| pieces[l].tok == Tok::Hash);
                frames.push(Frame { role, attribute, record, ..Frame::new(i, Some(piece.tok)) });
            }
            Tok::RParen | Tok::RBracket | Tok::RBrace | Tok::AngleClose if frames.len() > 1 => {
                let closed = frames.pop().expect("there is one");
                out[i].partner = Some(closed.open);
                out[closed.open].partner = Some(i);
                out[i].role = if piece.tok == Tok::RBrace { Role::Plain } else { Role::End };
                let outer = frames.last_mut().expect("the file is never closed");
                if outer.holds_statements() && (closed.attribute || ends_statement(piece.tok, pieces, i)) {
                    outer.start = true;
                    outer.declares = false;
                }
            }
            _ => {}
        }
        (before, last) = (last, Some(i));
    }
    out
}

/// Whether the statement ends with this `}`. What goes on is `else`, and whatever can only stand inside of an
/// expression.
fn ends_statement(tok: Tok, pieces: &[Piece<'_>], at: usize) -> bool {
    let next = pieces[at + 1..].iter().find(|p| !p.tok.is_comment()).map(|p| p.tok);
    let goes_on = [Tok::Else, Tok::Semi, Tok::Comma, Tok::RParen, Tok::RBracket, Tok::AngleClose];
    tok == Tok::RBrace && next.is_none_or(|t| !goes_on.contains(&t))
}

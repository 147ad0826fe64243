//! What may come next in a text that is being written: the words that the grammar itself wants at a place.
//!
//! What is finished before the place (statements, items) does not count, so mistakes in it do no harm: the statement or
//! item that is being written is parsed alone, with a token behind it that never fits, and the parser says what would
//! have.

use crate::build::Builder;
use crate::parse::wanted;
use crate::source::LexedSource;
use crate::terminal::{Lexeme, Terminal};
use crate::token::Tok;
use crate::{brackets, lexer};
use ptoc_diagnostics::FileId;

/// What can stand at a place.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Next {
    /// Words of the language. Those that are names elsewhere (`at`, `tune`, ..) only where no name can stand.
    pub words: Vec<Tok>,
    /// A name.
    pub name: bool,
}

impl Next {
    fn of(expected: &[String]) -> Next {
        let name = expected.iter().any(|e| e == "name");
        let word = |e: &String| {
            let text = e.trim_matches('"');
            let lexed = lexer::lex(FileId(0), text);
            let tok = lexed.tokens.first()?.tok;
            (tok.word() == Some(text) && tok != Tok::Hole && !(name && tok.is_soft_keyword())).then_some(tok)
        };
        Next { words: expected.iter().filter_map(word).collect(), name }
    }
}

/// What can stand behind `text`; nothing if the statement or item at its end has a mistake before.
pub fn next(file: FileId, text: &str) -> Option<Next> {
    let source = LexedSource::new(file, text);
    let mut lexemes = brackets::balance(file, source.text, &source.tokens).lexemes;
    // What was inserted to close what is open still.
    while lexemes.last().is_some_and(|l| l.touched && l.start == l.end) {
        lexemes.pop();
    }
    let part = UnfinishedPart::last(&lexemes)?;
    let ask = |from: usize| wanted(&mut Builder::new(file, source.text, Vec::new()), part.start, &lexemes[from..]);
    let mut found = Next::of(&ask(part.from)?);
    // A block may be followed by `else`, which belongs to what stands before.
    if part.from == lexemes.len()
        && lexemes.last().is_some_and(|l| l.is(Tok::RBrace))
        && let Some(more) = ask(part.before)
    {
        let more = Next::of(&more).words.into_iter().filter(|w| *w == Tok::Else);
        found.words.extend(more);
    }
    Some(found)
}

/// The statement or item that is being written.
struct UnfinishedPart {
    start: Terminal,
    /// Its first lexeme.
    from: usize,
    /// The first one of the part before it.
    before: usize,
}

impl UnfinishedPart {
    fn last(lexemes: &[Lexeme]) -> Option<UnfinishedPart> {
        // Of every block that is open, and of the file: where the part begins that is being written, and the one before
        // it.
        let mut starts = vec![(0, 0)];
        let mut brackets: Vec<Tok> = Vec::new();
        for (n, l) in lexemes.iter().enumerate() {
            let flat = brackets.last().is_none_or(|b| *b == Tok::LBrace);
            match l.tok() {
                Some(Tok::LBrace) => {
                    brackets.push(Tok::LBrace);
                    starts.push((n + 1, n + 1));
                }
                Some(Tok::RBrace) => {
                    brackets.pop();
                    starts.pop();
                    // Two blocks of one `if` are one statement, and one in a value ends none.
                    let goes_on = lexemes.get(n + 1).is_some_and(|l| l.is(Tok::Else));
                    let inner = brackets.last().is_none_or(|b| *b == Tok::LBrace);
                    let file = starts.len() == 1;
                    let ends = |from: usize| file || lexemes[from].tok().is_some_and(has_block);
                    if let Some(top) = starts.last_mut().filter(|top| !goes_on && inner && ends(top.0)) {
                        *top = (n + 1, top.0);
                    }
                }
                Some(Tok::Semi) if flat => {
                    if let Some(top) = starts.last_mut() {
                        *top = (n + 1, top.0);
                    }
                }
                Some(tok @ (Tok::LParen | Tok::LBracket | Tok::StaticOpen | Tok::TilerOpen)) => brackets.push(tok),
                Some(Tok::RParen | Tok::RBracket | Tok::AngleClose) => {
                    brackets.pop();
                }
                _ => {}
            }
        }
        let (from, before) = starts.pop()?;
        let file = starts.is_empty();
        // In the braces of an atom stand fields, and no statements.
        let item = starts.first().map_or(from, |(item, _)| *item);
        if !file && lexemes[item..].iter().take_while(|l| !l.is(Tok::LBrace)).any(|l| l.is(Tok::Atom)) {
            return None;
        }
        Some(UnfinishedPart { start: if file { Terminal::StartItem } else { Terminal::StartStmt }, from, before })
    }
}

/// Words of statements that end with a block.
fn has_block(tok: Tok) -> bool {
    matches!(tok, Tok::If | Tok::For | Tok::While | Tok::Pipeline | Tok::Role | Tok::Hash)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> String {
        let Some(found) = next(FileId(0), text) else { return "nothing is known".into() };
        let mut words: Vec<&str> = found.words.iter().filter_map(|t| t.word()).collect();
        words.sort_unstable();
        format!("{}{}", words.join(" "), if found.name { " + name" } else { "" })
    }

    #[test]
    fn words_of_the_grammar() {
        const STMT: &str =
            "break const continue false for grid if let pipeline return tensor tile true var while + name";
        for (text, expected) in [
            ("", "atom const fn kernel program use"),
            ("use a::b;\n", "atom const fn kernel program use"),
            ("kernel k() {}\n", "atom const fn kernel program use"),
            ("kernel k<", "const fn type"),
            ("kernel k<const N = 4, ", "const fn type"),
            ("kernel k<const N = 4 ", "tune"),
            ("kernel k(", " + name"),
            ("kernel k(x: ", "false fn in inout out true + name"),
            ("kernel k(x: in ", "false true + name"),
            ("kernel k(x: in f32[M] ", "at"),
            ("kernel k(x: in f32[M] at f ", "over"),
            ("kernel k(x: in f32[M]) ", "ensures where"),
            ("kernel k(x: in f32[M]) where M >= 1 ", "ensures"),
            ("kernel k(x: in f32[M]) where M >= ", "false true + name"),
            ("kernel k() {", STMT),
            ("kernel k() { let a = 1; ", STMT),
            ("kernel k() { if a { b; } ", &STMT.replace("continue", "continue else")),
            ("kernel k() { if a { b; } else { c; } ", STMT),
            ("kernel k() { for q in 0..3 { b; } ", STMT),
            ("kernel k() { for q ", "in"),
            ("kernel k() { for q in ", "false tensor tile true + name"),
            ("kernel k() { grid (i ", "in"),
            ("kernel k() { grid (i in tiles(M, 4)) ", " + name"),
            ("kernel k() { let v = ", "false if tensor tile true + name"),
            ("kernel k() { let v = tile T ", "at"),
            ("kernel k() { let v = if c { 1 } ", "else"),
            ("kernel k() { TADD(u, ", "false if tensor tile true + name"),
            ("kernel k() { TADD(u ", ""),
            ("kernel k() { pipeline(stages = 2) ", "for"),
            // What was wrong before does not matter, what is wrong here does.
            ("kernel k(x: in f32[M] { let first = = 1; for q in 0..3 { ", STMT),
            ("kernel k() { let let ", "nothing is known"),
            ("atom A { ", "nothing is known"),
        ] {
            assert_eq!(words(text), expected, "{text}");
        }
    }
}

//! Kinds of tokens, for editors.

use crate::lexer::{Tok, Token, next};
use crate::ops;
use std::ops::Range;

/// What a token is to a reader.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// `// ..`
    Comment,
    /// `%x`
    Value,
    /// `@name`
    Symbol,
    /// `!pto.tile_buf`, `index`, `f32`
    Type,
    /// `#pto.layout`, and words of enumerations in angles
    Attribute,
    /// `pto.tadd`, `scf.for`
    Operation,
    /// Words of the syntax: `module`, `ins`, `to`
    Word,
    /// A number.
    Number,
    /// A text in quotes.
    Text,
}

/// Tokens that have a kind, in order, with their bytes. Any text will do.
pub fn tokens(text: &str) -> Vec<(Range<usize>, Kind)> {
    let mut found = Vec::new();
    let mut at = 0;
    loop {
        let token = next(text, at);
        comments(text, at..token.start, &mut found);
        if token.tok == Tok::End {
            return found;
        }
        found.extend(kind(text, token).map(|kind| (token.start..token.end, kind)));
        at = token.end;
    }
}

/// Tokens with their bytes, one a line, comments and marks too.
pub fn listed(text: &str) -> String {
    let mut found: Vec<(Range<usize>, String)> =
        tokens(text).into_iter().map(|(range, kind)| (range, format!("{kind:?}").to_lowercase())).collect();
    let mut at = 0;
    loop {
        let token = next(text, at);
        let mark = match token.tok {
            Tok::End => break,
            Tok::Mark => "mark",
            Tok::Bad => "bad",
            _ => "",
        };
        if !mark.is_empty() {
            found.push((token.start..token.end, mark.to_owned()));
        }
        at = token.end;
    }
    found.sort_by_key(|(range, _)| range.start);
    let line = |(range, kind): (Range<usize>, String)| {
        let place = format!("{}..{}", range.start, range.end);
        format!("{place:<14}{kind:<16}{}\n", text[range].escape_debug())
    };
    found.into_iter().map(line).collect()
}

fn comments(text: &str, between: Range<usize>, found: &mut Vec<(Range<usize>, Kind)>) {
    let mut at = between.start;
    while let Some(start) = text[at..between.end].find("//").map(|n| at + n) {
        let end = text[start..between.end].find('\n').map_or(between.end, |n| start + n);
        found.push((start..end, Kind::Comment));
        at = end;
    }
}

fn kind(text: &str, token: Token) -> Option<Kind> {
    let word = &text[token.start..token.end];
    Some(match token.tok {
        Tok::Value | Tok::Block => Kind::Value,
        Tok::Symbol => Kind::Symbol,
        Tok::Type => Kind::Type,
        Tok::Attr => Kind::Attribute,
        Tok::Name if word == "index" || crate::types::is_element(word) => Kind::Type,
        Tok::Name if ops::lookup(word).is_some() || word == "func.func" => Kind::Operation,
        Tok::Name => Kind::Word,
        Tok::Number | Tok::Int | Tok::Float => Kind::Number,
        Tok::Str => Kind::Text,
        Tok::Mark | Tok::Bad | Tok::End => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_of_a_line() {
        let text = "// a // b\n%0 = pto.tadd ins(%a : f32) // c\n  !pto.ptr @f \"t\" -1.5 #pto<eq> func.func";
        let seen: Vec<(&str, Kind)> = tokens(text).into_iter().map(|(range, kind)| (&text[range], kind)).collect();
        let expected = [
            ("// a // b", Kind::Comment),
            ("%0", Kind::Value),
            ("pto.tadd", Kind::Operation),
            ("ins", Kind::Word),
            ("%a", Kind::Value),
            ("f32", Kind::Type),
            ("// c", Kind::Comment),
            ("!pto.ptr", Kind::Type),
            ("@f", Kind::Symbol),
            ("\"t\"", Kind::Text),
            ("-1.5", Kind::Number),
            ("#pto", Kind::Attribute),
            ("eq", Kind::Word),
            ("func.func", Kind::Operation),
        ];
        assert_eq!(seen, expected);
    }
}

//! Characters that are not in the language but look like some that are: what a word processor or another keyboard
//! layout puts in place of them.

use crate::token::Tok;

/// What a foreign character is like.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Likeness {
    /// A mark: its Unicode name, our spelling, our token.
    Mark(&'static str, &'static str, Tok),
    /// White space or something invisible.
    Space(&'static str),
    /// An opening quote, with the quote that closes it.
    Quote(char),
}

/// What `c` looks like, if it looks like a token.
pub(crate) fn find(c: char) -> Option<Likeness> {
    use Likeness::{Mark, Quote, Space};
    Some(match c {
        '\u{2212}' => Mark("minus sign", "-", Tok::Minus),
        '\u{2010}' => Mark("hyphen", "-", Tok::Minus),
        '\u{2011}' => Mark("non-breaking hyphen", "-", Tok::Minus),
        '\u{2012}' => Mark("figure dash", "-", Tok::Minus),
        '\u{2013}' => Mark("en dash", "-", Tok::Minus),
        '\u{2014}' => Mark("em dash", "-", Tok::Minus),
        '\u{FF0D}' => Mark("fullwidth hyphen-minus", "-", Tok::Minus),
        '\u{FF0B}' => Mark("fullwidth plus sign", "+", Tok::Plus),
        '\u{00D7}' => Mark("multiplication sign", "*", Tok::Star),
        '\u{2217}' => Mark("asterisk operator", "*", Tok::Star),
        '\u{22C5}' => Mark("dot operator", "*", Tok::Star),
        '\u{00B7}' => Mark("middle dot", "*", Tok::Star),
        '\u{00F7}' => Mark("division sign", "/", Tok::Slash),
        '\u{2215}' => Mark("division slash", "/", Tok::Slash),
        '\u{2044}' => Mark("fraction slash", "/", Tok::Slash),
        '\u{2264}' => Mark("less-than or equal to", "<=", Tok::Le),
        '\u{2265}' => Mark("greater-than or equal to", ">=", Tok::Ge),
        '\u{2260}' => Mark("not equal to", "!=", Tok::Ne),
        '\u{2192}' => Mark("rightwards arrow", "->", Tok::Arrow),
        '\u{2026}' => Mark("horizontal ellipsis", "..", Tok::DotDot),
        '\u{2227}' => Mark("logical and", "&&", Tok::AndAnd),
        '\u{2228}' => Mark("logical or", "||", Tok::OrOr),
        '\u{00AC}' => Mark("not sign", "!", Tok::Not),
        '\u{FF01}' => Mark("fullwidth exclamation mark", "!", Tok::Not),
        '\u{FF08}' => Mark("fullwidth left parenthesis", "(", Tok::LParen),
        '\u{FF09}' => Mark("fullwidth right parenthesis", ")", Tok::RParen),
        '\u{FF3B}' => Mark("fullwidth left square bracket", "[", Tok::LBracket),
        '\u{FF3D}' => Mark("fullwidth right square bracket", "]", Tok::RBracket),
        '\u{FF5B}' => Mark("fullwidth left curly bracket", "{", Tok::LBrace),
        '\u{FF5D}' => Mark("fullwidth right curly bracket", "}", Tok::RBrace),
        '\u{FF1C}' => Mark("fullwidth less-than sign", "<", Tok::Lt),
        '\u{FF1E}' => Mark("fullwidth greater-than sign", ">", Tok::Gt),
        '\u{FF0C}' => Mark("fullwidth comma", ",", Tok::Comma),
        '\u{3001}' => Mark("ideographic comma", ",", Tok::Comma),
        '\u{FF1B}' => Mark("fullwidth semicolon", ";", Tok::Semi),
        '\u{037E}' => Mark("Greek question mark", ";", Tok::Semi),
        '\u{FF1A}' => Mark("fullwidth colon", ":", Tok::Colon),
        '\u{2236}' => Mark("ratio", ":", Tok::Colon),
        '\u{FF1D}' => Mark("fullwidth equals sign", "=", Tok::Assign),
        '\u{FF0E}' => Mark("fullwidth full stop", ".", Tok::Dot),
        '\u{3002}' => Mark("ideographic full stop", ".", Tok::Dot),
        '\u{00A0}' => Space("no-break space"),
        '\u{202F}' => Space("narrow no-break space"),
        '\u{3000}' => Space("ideographic space"),
        '\u{2000}'..='\u{200A}' => Space("typographic space"),
        '\u{200B}' => Space("zero width space"),
        '\u{200C}' | '\u{200D}' => Space("zero width joiner"),
        '\u{2028}' | '\u{2029}' | '\u{0085}' => Space("foreign line separator"),
        '\u{FEFF}' => Space("byte order mark"),
        '\u{201C}' | '\u{201D}' | '\u{201E}' => Quote('\u{201D}'),
        '\u{2018}' | '\u{2019}' => Quote('\u{2019}'),
        '\u{00AB}' => Quote('\u{00BB}'),
        '\'' => Quote('\''),
        _ => return None,
    })
}

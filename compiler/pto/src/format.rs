//! White space of `.pto` files: lines are indented by the braces and brackets around them, and nothing else changes.

use crate::lexer::{self, Tok};
use crate::tree::MAX_DEPTH;

/// The text with its lines indented.
pub fn format(text: &str) -> String {
    let text = text.strip_prefix(lexer::BYTE_ORDER_MARK).unwrap_or(text);
    let mut out = String::with_capacity(text.len());
    let mut depth = Depth::default();
    let mut blank = 0;
    for line in text.lines() {
        let content = line.trim();
        if content.is_empty() {
            blank += 1;
            continue;
        }
        // Empty lines stay, two at most, and none at the beginning.
        let kept = if out.is_empty() { 0 } else { blank.min(2) };
        out.extend(std::iter::repeat_n('\n', kept));
        blank = 0;
        let (indent, brackets) = depth.line(content);
        let label = content.starts_with('^');
        let width = 2 * indent.saturating_sub(usize::from(label)) + 4 * brackets;
        out.extend(std::iter::repeat_n(' ', width));
        out.push_str(content);
        out.push('\n');
    }
    out
}

/// Open braces, and other brackets in the line's statement.
#[derive(Default)]
struct Depth {
    braces: usize,
    brackets: usize,
}

impl Depth {
    /// The depth of a line, in braces, and whether it goes on with what is in brackets.
    fn line(&mut self, content: &str) -> (usize, usize) {
        let closes = content.bytes().take_while(|b| *b == b'}').count();
        // Deeper than what is read, depth shows no more.
        let braces = self.braces.saturating_sub(closes).min(MAX_DEPTH as usize);
        let at = (braces, usize::from(self.brackets > 0));
        let mut place = 0;
        loop {
            let token = lexer::next(content, place);
            if token.tok == Tok::End {
                return at;
            }
            if token.tok == Tok::Mark {
                match &content[token.start..token.end] {
                    "{" => self.braces += 1,
                    "}" => self.braces = self.braces.saturating_sub(1),
                    "(" | "[" | "<" => self.brackets += 1,
                    ")" | "]" | ">" => self.brackets = self.brackets.saturating_sub(1),
                    _ => {}
                }
            }
            place = token.end;
        }
    }
}

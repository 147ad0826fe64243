//! Bodies whose `{` is missing: found by what begins the next line, and by the indentation of the `}` that follows.

use ptoc_diagnostics::{Diagnostic, Edit, Fix, codes};

use super::{BracketMatcher, LOOK_AHEAD, Open, starts_statement};
use crate::lexer::Token;
use crate::terminal::{Lexeme, Terminal};
use crate::token::Tok;

impl BracketMatcher<'_> {
    /// The header of a function or kernel is complete, and a statement begins where `{` should stand.
    pub(super) fn missing_brace(&mut self, i: usize) {
        let Some((name, _)) = self.header.take() else { return };
        let end = self.last_end();
        let name = self.tokens.get(name).map(|n| n.start as usize..n.end as usize);
        let name = name.and_then(|n| self.text.get(n)).unwrap_or_default();
        let message = format!("the body of `{name}` must begin with `{{`");
        let here = self.span(end, end);
        let d = Diagnostic::error(codes::MISSING_BRACE, here, message).with_fix("insert `{`", here, " {");
        self.report(d);
        let open = Open {
            tok: Tok::LBrace,
            at: self.out.lexemes.len(),
            indent: 0,
            c_for: false,
            of_if: false,
            pending_block: None,
        };
        self.stack.push(open);
        let term = Terminal::Tok(Tok::LBrace);
        let end = self.tokens[i].start.min(end);
        self.out.lexemes.push(Lexeme { term, start: end, end, touched: true });
    }

    /// Keeps track of the header that is being read; see [`BracketMatcher::missing_brace`].
    pub(super) fn track_header(&mut self, i: usize, first: bool) {
        if !self.stack.is_empty() {
            return;
        }
        let t = self.tokens[i].tok;
        let prev = i.checked_sub(1).map(|p| self.tokens[p].tok);
        if matches!(t, Tok::Fn | Tok::Kernel | Tok::Program) && prev != Some(Tok::Arrow) {
            self.header = Some((i + 1, false));
            return;
        }
        if prev == Some(Tok::Colon) {
            return self.body_after_colon(i, first);
        }
        let complete =
            prev.is_some_and(Tok::ends_operand) && self.out.lexemes.last().is_some_and(|l| !l.is(Tok::RBrace));
        let begins =
            starts_statement(t) || t == Tok::If || (t == Tok::Name && complete && !self.brace_before_semicolon(i));
        if let Some(header) = &mut self.header {
            header.1 |= prev == Some(Tok::RParen);
        }
        let after_params = self.header.is_some_and(|h| h.1);
        if first && self.indent > 0 && begins && after_params {
            self.missing_brace(i);
        } else if matches!(t, Tok::LBrace | Tok::Semi | Tok::RBrace | Tok::Const | Tok::Use | Tok::Atom | Tok::Hash) {
            self.header = None;
        }
    }

    /// The body of Python: a `:` ends the header, and statements follow. The `:` is taken for `{`.
    fn body_after_colon(&mut self, i: usize, first: bool) {
        let Some((name, true)) = self.header else { return };
        let tok = self.tokens[i].tok;
        let begins = starts_statement(tok) || (first && self.indent > 0);
        if !begins || matches!(tok, Tok::LBrace | Tok::RBrace) || self.brace_before_semicolon(i) {
            return;
        }
        let Some(colon) = self.out.lexemes.pop() else { return };
        self.header = None;
        let name = self.tokens.get(name).map(|n| n.start as usize..n.end as usize);
        let name = name.and_then(|n| self.text.get(n)).unwrap_or_default();
        let span = self.span(colon.start, colon.end);
        let message = format!("the body of `{name}` stands in `{{` and `}}`, not after `:`");
        let glued = !self.text[..colon.start as usize].ends_with(char::is_whitespace);
        let mut edits = vec![Edit { span, text: if glued { " {" } else { "{" }.to_owned() }];
        let mut fix = "write `{`";
        if let Some((at, text)) = self.end_of_indented(i) {
            edits.push(Edit { span: self.span(at, at), text: text.to_owned() });
            fix = "put it in braces";
        }
        let mut d = Diagnostic::error(codes::MISSING_BRACE, span, message);
        d.fixes.push(Fix::certain(fix, edits));
        self.report(d);
        let at = self.out.lexemes.len();
        let open = Open { tok: Tok::LBrace, at, indent: 0, c_for: false, of_if: false, pending_block: None };
        self.stack.push(open);
        self.out.lexemes.push(Lexeme { term: Terminal::Tok(Tok::LBrace), touched: true, ..colon });
    }

    /// Where a `}` belongs that ends what is indented from token `i` on, and its text with a line break; `None` if
    /// there is one.
    fn end_of_indented(&self, i: usize) -> Option<(u32, &'static str)> {
        let margin = |t: &Token| t.start == 0 || self.text[..t.start as usize].ends_with('\n');
        let next = self.tokens[i + 1..].iter().position(margin).map_or(self.tokens.len(), |n| i + 1 + n);
        if self.tokens.get(next).is_some_and(|t| t.tok == Tok::RBrace) {
            return None;
        }
        let end = self.tokens[next - 1].end as usize;
        // A comment may follow on the line.
        Some(match self.text[end..].find('\n') {
            Some(line) if self.text[..end + line].ends_with('\r') => ((end + line + 1) as u32, "}\r\n"),
            Some(line) => ((end + line + 1) as u32, "}\n"),
            None => (self.text.len() as u32, "\n}"),
        })
    }

    /// Whether a `{` follows before the next `;`.
    pub(super) fn brace_before_semicolon(&self, i: usize) -> bool {
        let mut ahead = self.tokens[i..].iter().take(4 * LOOK_AHEAD).map(|t| t.tok);
        ahead.find(|t| matches!(t, Tok::LBrace | Tok::RBrace | Tok::Semi)) == Some(Tok::LBrace)
    }

    /// A statement begins on its own line though a block is due: if a `}` follows that is indented as the loop or
    /// branch is, then only its `{` is missing.
    pub(super) fn missing_inner_brace(&mut self, i: usize) {
        let Some(top) = self.stack.last().filter(|o| o.tok == Tok::LBrace) else { return };
        let Some((head, indent)) = top.pending_block else { return };
        let mut depth = 0_usize;
        let mut closes = false;
        for t in self.tokens[i..].iter().take(8 * LOOK_AHEAD) {
            match t.tok {
                Tok::LBrace => depth += 1,
                Tok::RBrace if depth > 0 => depth -= 1,
                Tok::RBrace => {
                    let line = self.text[..t.start as usize].rfind('\n').map_or(0, |n| n + 1);
                    let before = &self.text[line..t.start as usize];
                    closes = before.trim().is_empty() && before.len() == indent as usize;
                    break;
                }
                _ => {}
            }
        }
        if !closes {
            return;
        }
        if let Some(top) = self.stack.last_mut() {
            top.pending_block = None;
        }
        let end = self.last_end();
        let here = self.span(end, end);
        let word = self.tokens[head].tok.word().unwrap_or_default();
        let d = Diagnostic::error(codes::MISSING_BRACE, here, format!("the body of `{word}` must begin with `{{`"));
        self.report(d.with_fix("insert `{`", here, " {"));
        let open = Open {
            tok: Tok::LBrace,
            at: self.out.lexemes.len(),
            indent,
            c_for: false,
            of_if: false,
            pending_block: None,
        };
        self.stack.push(open);
        self.out.lexemes.push(Lexeme { term: Terminal::Tok(Tok::LBrace), start: end, end, touched: true });
    }
}

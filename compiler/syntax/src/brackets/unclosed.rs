//! Brackets that nobody closed.

use ptoc_diagnostics::{Diagnostic, Span, codes};

use super::{BracketMatcher, Open};
use crate::lexer::Token;
use crate::terminal::{Lexeme, Terminal};
use crate::token::Tok;

impl BracketMatcher<'_> {
    /// Closes the bracket on top, which nobody closed.
    pub(super) fn close_top(&mut self) {
        if let Some(open) = self.stack.last() {
            let end = self.last_end();
            let term = Terminal::Tok(open.closer());
            self.out.lexemes.push(Lexeme { term, start: end, end, touched: true });
            self.pop();
        }
    }

    /// Closes round and square brackets as long as `go_on` says so, with one report for all of them: `more` follows
    /// them in the repaired text.
    pub(super) fn unwind(&mut self, more: &str, go_on: impl Fn(&Open) -> bool) {
        self.unwind_while(more, |open, _| go_on(open));
    }

    /// As [`BracketMatcher::unwind`]; `go_on` is told how many brackets are open, too.
    pub(super) fn unwind_while(&mut self, more: &str, go_on: impl Fn(&Open, usize) -> bool) {
        // Closing the outermost bracket forgets it.
        let too_deep = self.too_deep;
        let end = self.last_end();
        let mut report: Option<Diagnostic> = None;
        let mut closers = String::new();
        while let Some(open) = self.stack.last().copied().filter(|o| go_on(o, self.stack.len())) {
            let at = self.out.lexemes[open.at];
            let span = self.span(at.start, at.end);
            closers += open.closer().mark().unwrap_or_default();
            report = Some(match report {
                None => self.unclosed(span, open.tok),
                Some(d) => d.with_secondary(span, "nor is this one"),
            });
            self.close_top();
        }
        if let Some(d) = report.filter(|_| !too_deep) {
            let at = self.span(end, end);
            let d = d.with_secondary(at, format!("`{closers}` is missing here"));
            let text = format!("{closers}{more}");
            self.report_bracket(d.with_fix(format!("insert `{text}`"), at, text));
        }
    }

    pub(super) fn unclosed(&self, span: Span, tok: Tok) -> Diagnostic {
        let mark = tok.mark().unwrap_or_default();
        Diagnostic::error(codes::UNCLOSED_BRACKET, span, format!("this `{mark}` is never closed"))
            .with_label("opened here")
    }

    /// Closes all round and square brackets down to the next brace.
    pub(super) fn unwind_to_brace(&mut self, more: &str) {
        self.unwind(more, |o| matches!(o.tok, Tok::LParen | Tok::LBracket));
    }

    /// Closes everything: at the end of the text, and before an item that starts at the margin.
    pub(super) fn unwind_all(&mut self) {
        let mut reports = 0;
        while !self.stack.is_empty() {
            let end = self.last_end();
            self.fail_angles(Token { tok: Tok::Semi, start: end, end });
            self.unwind_to_brace("");
            let Some(open) = self.stack.last().copied().filter(|o| o.tok == Tok::LBrace) else { continue };
            if reports < 3 && !self.too_deep {
                self.unclosed_brace(open);
            }
            reports += 1;
            self.close_top();
        }
    }

    pub(super) fn unclosed_brace(&mut self, open: Open) {
        let at = self.out.lexemes[open.at];
        if at.touched {
            return; // it was missing, and inserted
        }
        // Of several braces that may be the unclosed one, indentation tells the likely one.
        let d = match self.suspects.iter().rposition(|s| *s > at.start) {
            Some(i) => {
                let start = self.suspects.remove(i);
                self.unclosed(self.span(start, start + 1), Tok::LBrace)
                    .with_note("the `}` that closes it by number is indented for an outer block")
            }
            None => {
                let end = self.last_end();
                let here = self.span(end, end);
                let text = format!("\n{}}}", " ".repeat(open.indent as usize));
                self.unclosed(self.span(at.start, at.end), Tok::LBrace)
                    .with_secondary(here, "`}` is missing here")
                    .with_fix("insert `}`", here, text)
            }
        };
        self.report(d);
    }
}

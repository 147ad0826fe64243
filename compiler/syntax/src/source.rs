//! A text cut into what the grammar sees and what it does not: comments, documentation, test lines.

use ptoc_diagnostics::{Diagnostic, FileId, Span, codes};

use crate::brackets::Balanced;
use crate::build::Builder;
use crate::directive::{self, Directive};
use crate::lexer::{self, MAX_ERRORS, Token};
use crate::token::Tok;

/// Texts are cut here: spans are 32 bits wide, and errors need room after the last byte.
const MAX_TEXT: usize = (u32::MAX - 1) as usize;

/// The part of a text that spans can address.
pub(crate) fn limit(text: &str) -> &str {
    if text.len() <= MAX_TEXT { text } else { &text[..text.floor_char_boundary(MAX_TEXT)] }
}

/// A text that was read by the lexer.
pub(crate) struct LexedSource<'s> {
    file: FileId,
    /// The text, cut if it is too large.
    pub text: &'s str,
    /// Without comments.
    pub tokens: Vec<Token>,
    /// Marks included.
    pub comments: Vec<(Span, String)>,
    /// The `// run:` and `// check:` lines.
    pub directives: Vec<Directive>,
    /// First byte of an item -> the documentation before it, sorted.
    pub docs: Vec<(u32, String)>,
    /// The documentation of the file.
    pub file_docs: String,
    diagnostics: Vec<Diagnostic>,
    dropped: usize,
}

impl<'s> LexedSource<'s> {
    pub fn new(file: FileId, whole: &'s str) -> LexedSource<'s> {
        let text = limit(whole);
        let lexed = lexer::lex(file, text);
        let mut source = LexedSource {
            file,
            text,
            tokens: Vec::with_capacity(lexed.tokens.len()),
            comments: Vec::new(),
            directives: Vec::new(),
            docs: Vec::new(),
            file_docs: String::new(),
            diagnostics: lexed.diagnostics,
            dropped: lexed.dropped,
        };
        if text.len() < whole.len() {
            let end = Span::new(file, text.len() as u32, text.len() as u32);
            let message = "the file is too large: only its first 4 GiB were read";
            source.diagnostics.push(Diagnostic::error(codes::UNEXPECTED_TOKEN, end, message));
        }
        let mut docs = String::new();
        let mut last_end = 0;
        for token in lexed.tokens {
            let alone = text[last_end..token.start as usize].contains('\n') || last_end == 0;
            last_end = token.end as usize;
            if token.tok.is_comment() {
                source.comment(token, alone, &mut docs);
            } else {
                if !docs.is_empty() {
                    source.docs.push((token.start, std::mem::take(&mut docs)));
                }
                source.tokens.push(token);
            }
        }
        source
    }

    /// A comment; `alone` if nothing stands before it on its line.
    fn comment(&mut self, token: Token, alone: bool, docs: &mut String) {
        let text = &self.text[token.start as usize..token.end as usize];
        let span = Span::new(self.file, token.start, token.end);
        let docs = match token.tok {
            Tok::DocComment => Some(docs),
            Tok::FileDoc => Some(&mut self.file_docs),
            _ => None,
        };
        if let Some(docs) = docs {
            if !docs.is_empty() {
                docs.push('\n');
            }
            let line = &text[3..];
            docs.push_str(line.strip_prefix(' ').unwrap_or(line).trim_end());
        }
        if token.tok == Tok::Comment && alone && self.diagnostics.len() < 2 * MAX_ERRORS {
            self.directives.extend(directive::read(span, text, &mut self.diagnostics));
        }
        self.comments.push((span, text.to_owned()));
    }

    /// All that was reported, in source order.
    pub fn all_diagnostics(self, balanced: Balanced, builder: Builder<'_>) -> Vec<Diagnostic> {
        let mut all = self.diagnostics;
        all.extend(balanced.diagnostics);
        all.extend(builder.diagnostics);
        all.sort_by_key(|d| d.span.map_or(0, |s| (u64::from(s.start) << 32) + u64::from(s.end)));
        let dropped = self.dropped + balanced.dropped + builder.dropped;
        if dropped > 0 {
            let end = Span::new(self.file, self.text.len() as u32, self.text.len() as u32);
            let message = format!("there are {dropped} more syntax errors, which are not shown");
            all.push(Diagnostic::error(codes::TOO_MANY_SYNTAX_ERRORS, end, message));
        }
        all
    }
}

//! Text to syntax tree: logos lexer, lalrpop grammar with recovery, syntax errors as situations.
//!
//! ```text
//! text --lexer--> tokens --brackets--> balanced tokens --grammar--> tree
//!                                            \\--(on an error) recover, situation-->
//!                                                tree with error nodes, diagnostics
//! ```
//!
//! Nothing here fails or panics on any text: errors are diagnostics, and error nodes in the tree.

#![forbid(unsafe_code)]

pub mod ast;
mod brackets;
mod build;
mod confusables;
pub mod directive;
pub mod format;
mod lexer;
mod next;
mod parse;
pub mod places;
pub mod print;
mod recover;
pub mod respan;
mod similar;
mod situation;
mod source;
mod terminal;
mod token;

use build::{Builder, Node};
use ptoc_diagnostics::{Diagnostic, FileId, Span};
use source::LexedSource;
use terminal::Terminal;

pub use directive::Directive;
pub use lexer::MAX_ERRORS;
pub use next::{Next, next};
pub use token::Tok;

/// A parsed file.
#[derive(Clone, Debug, Default)]
pub struct Parsed {
    /// The tree; erroneous parts are `Error` nodes.
    pub file: ast::File,
    /// Everything that is wrong with the text, in source order.
    pub diagnostics: Vec<Diagnostic>,
    /// Every comment, marks included, in source order.
    pub comments: Vec<(Span, String)>,
    /// The `// run:` and `// check:` lines that are well-formed.
    pub directives: Vec<Directive>,
}

/// Parses a file.
pub fn parse(file: FileId, text: &str) -> Parsed {
    let mut source = LexedSource::new(file, text);
    let text = source.text;
    let mut builder = Builder::new(file, text, std::mem::take(&mut source.docs));
    let balanced = brackets::balance(file, text, &source.tokens);
    let items = match parse::parse(&mut builder, Terminal::StartFile, &balanced.lexemes) {
        Ok(Node::File(items)) => items,
        _ => recover::items(&mut builder, &balanced.lexemes),
    };
    let docs = std::mem::take(&mut source.file_docs);
    let (comments, directives) = (std::mem::take(&mut source.comments), std::mem::take(&mut source.directives));
    let mut diagnostics = source.all_diagnostics(balanced, builder);
    situation::one_for_each_word(&mut diagnostics, &items, text);
    Parsed { file: ast::File { docs, items }, diagnostics, comments, directives }
}

/// Parses one expression: the value of `-D NAME=VALUE`, or the argument of `ptoc layout`. An expression that cannot be
/// parsed is an error node, and has a diagnostic.
pub fn parse_expr(file: FileId, text: &str) -> (ast::Expr, Vec<Diagnostic>) {
    let mut source = LexedSource::new(file, text);
    let text = source.text;
    let mut builder = Builder::new(file, text, std::mem::take(&mut source.docs));
    let balanced = brackets::balance(file, text, &source.tokens);
    let expr = match parse::parse(&mut builder, Terminal::StartExpr, &balanced.lexemes) {
        Ok(Node::Expr(expr)) => expr,
        _ => recover::expr(&mut builder, &balanced.lexemes)
            .unwrap_or_else(|| builder.error_expr(Span::new(file, 0, text.len() as u32))),
    };
    (expr, source.all_diagnostics(balanced, builder))
}

/// Whether a word is one of the language, and no name.
pub fn is_keyword(word: &str) -> bool {
    matches!(&lexer::lex(FileId(0), word).tokens[..], [token] if token.tok.is_keyword())
}

/// The tokens of a text with its comments, in source order, as the grammar sees them: `<` and `>` are told apart, and
/// `>>` that closes static arguments is two tokens. [`print::tokens`] shows them.
pub fn tokens(file: FileId, text: &str) -> Vec<(Tok, Span)> {
    let lexed = lexer::lex(file, source::limit(text));
    let code: Vec<_> = lexed.tokens.iter().copied().filter(|t| !t.tok.is_comment()).collect();
    let balanced = brackets::balance(file, source::limit(text), &code);
    let mut seen = balanced.lexemes.iter().filter(|l| l.start < l.end).peekable();
    let mut out = Vec::with_capacity(lexed.tokens.len());
    for token in lexed.tokens {
        let angle = matches!(token.tok, Tok::Lt | Tok::Gt | Tok::Shr | Tok::Ge | Tok::ShrAssign);
        let before = out.len();
        while let Some(l) = seen.peek().filter(|l| l.start < token.end) {
            if angle
                && l.start >= token.start
                && l.end <= token.end
                && let Some(tok) = l.tok()
            {
                out.push((tok, Span::new(file, l.start, l.end)));
            }
            seen.next();
        }
        if out.len() == before {
            out.push((token.tok, Span::new(file, token.start, token.end)));
        }
    }
    out
}

//! Text to syntax tree: logos lexer, lalrpop grammar with recovery, syntax errors as situations.
pub mod ast;
mod brackets;
mod build;
mod confusables;
pub mod directive;
mod lexer;
mod parse;
mod recover;
mod similar;
mod situation;
mod terminal;
mod token;

use build::Node;
use ptoc_diagnostics::{Diagnostic, FileId, Span};
use terminal::Terminal;

pub use directive::Directive;
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

/// Parses one expression: the value of `-D NAME=VALUE`, or the argument of `ptoc layout`. An expression that cannot be
/// parsed is an error node, and has a diagnostic.
pub fn parse_expr(file: FileId, text: &str) -> (ast::Expr, Vec<Diagnostic>) {
    let source = Source::new(file, text);
    let mut builder = build::Builder::new(file, text, source.docs);
    let mut diagnostics = source.diagnostics;
    let balanced = brackets::balance(file, text, &source.tokens);
    diagnostics.extend(balanced.diagnostics);
    let span = Span::new(file, 0, text.len() as u32);
    let expr = match parse::parse(&mut builder, Terminal::StartExpr, &balanced.lexemes) {
        Ok(Node::Expr(expr)) => expr,
        _ => recover::expr(&mut builder, &balanced.lexemes).unwrap_or_else(|| builder.error_expr(span)),
    };
    diagnostics.extend(builder.diagnostics);
    (expr, diagnostics)
}

/// Parses a file.
pub fn parse(file: FileId, text: &str) -> Parsed {
    let source = Source::new(file, text);
    let mut builder = build::Builder::new(file, text, source.docs);
    let mut diagnostics = source.diagnostics;
    let balanced = brackets::balance(file, text, &source.tokens);
    diagnostics.extend(balanced.diagnostics);
    let mut parsed = Parsed { comments: source.comments, ..Parsed::default() };
    parsed.file.docs = source.file_docs;
    parsed.file.items = match parse::parse(&mut builder, Terminal::StartFile, &balanced.lexemes) {
        Ok(Node::File(items)) => items,
        _ => recover::items(&mut builder, &balanced.lexemes),
    };
    diagnostics.extend(builder.diagnostics);
    parsed.directives = source.directives;
    diagnostics.sort_by_key(|d| d.span.map_or(0, |s| s.start));
    parsed.diagnostics = diagnostics;
    parsed
}

/// A text cut into what the grammar sees and what it does not.
struct Source {
    tokens: Vec<lexer::Token>,
    comments: Vec<(Span, String)>,
    diagnostics: Vec<Diagnostic>,
    /// Start of an item -> its documentation.
    docs: Vec<(u32, String)>,
    file_docs: String,
    directives: Vec<Directive>,
}

impl Source {
    fn new(file: FileId, text: &str) -> Source {
        let lexed = lexer::lex(file, text);
        let mut source = Source {
            tokens: Vec::with_capacity(lexed.tokens.len()),
            comments: Vec::new(),
            diagnostics: lexed.diagnostics,
            docs: Vec::new(),
            file_docs: String::new(),
            directives: Vec::new(),
        };
        let mut docs = String::new();
        for token in lexed.tokens {
            let content = &text[token.start as usize..token.end as usize];
            if !token.tok.is_comment() {
                if !docs.is_empty() {
                    source.docs.push((token.start, std::mem::take(&mut docs)));
                }
                source.tokens.push(token);
                continue;
            }
            let target = match token.tok {
                Tok::DocComment => Some(&mut docs),
                Tok::FileDoc => Some(&mut source.file_docs),
                _ => None,
            };
            if let Some(target) = target {
                if !target.is_empty() {
                    target.push('\n');
                }
                let line = &content[3..];
                target.push_str(line.strip_prefix(' ').unwrap_or(line).trim_end());
            }
            let span = Span::new(file, token.start, token.end);
            if token.tok == Tok::Comment
                && lexer::line_indent(text, token.start as usize).len() == column(text, token.start)
            {
                source.directives.extend(directive::read(span, content, &mut source.diagnostics));
            }
            source.comments.push((span, content.to_owned()));
        }
        source
    }
}

/// Bytes between the start of the line and byte `at`.
fn column(text: &str, at: u32) -> usize {
    let at = at as usize;
    at - text[..at].rfind('\n').map_or(0, |i| i + 1)
}

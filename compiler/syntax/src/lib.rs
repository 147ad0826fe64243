//! Text to syntax tree: logos lexer, lalrpop grammar with recovery, syntax errors as situations.
pub mod ast;

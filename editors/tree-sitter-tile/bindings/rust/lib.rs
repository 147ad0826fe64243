//! The tree-sitter grammar of the tile language. `grammar.js` is the source, `src/` is generated from it.

#![expect(unsafe_code, reason = "the parser is a C function")]

use tree_sitter_language::LanguageFn;

unsafe extern "C" {
    fn tree_sitter_tile() -> *const ();
}

/// The language, for `tree_sitter::Language::new`.
// SAFETY: the function is the one that the generated parser exports, and it returns its language.
pub const LANGUAGE: LanguageFn = unsafe { LanguageFn::from_raw(tree_sitter_tile) };

/// What is coloured how.
pub const HIGHLIGHTS_QUERY: &str = include_str!("../../queries/highlights.scm");
/// Scopes, definitions and references.
pub const LOCALS_QUERY: &str = include_str!("../../queries/locals.scm");
/// The outline.
pub const TAGS_QUERY: &str = include_str!("../../queries/tags.scm");

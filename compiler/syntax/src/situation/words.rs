//! A word of the language in the place of a name is one mistake, however often the name stands in its item.

use crate::ast::Item;
use ptoc_diagnostics::{Diagnostic, Span, codes};

/// Leaves the first error about each such word in an item; its repair renames the others, too. The errors are in
/// source order.
pub(crate) fn one_for_each_word(diagnostics: &mut Vec<Diagnostic>, items: &[Item], text: &str) {
    let item_of = |at: Span| items.iter().position(|i| i.span.contains(at));
    let word_of = |at: Span| text.get(at.start as usize..at.end as usize);
    let mut kept: Vec<Diagnostic> = Vec::new();
    for d in diagnostics.drain(..) {
        let place = d.span.filter(|_| d.code == codes::KEYWORD_AS_NAME);
        let first = place.and_then(|at| {
            kept.iter_mut().find(|k| {
                let same = |other: Span| item_of(other) == item_of(at) && word_of(other) == word_of(at);
                k.code == codes::KEYWORD_AS_NAME && k.span.is_some_and(same)
            })
        });
        let Some(first) = first else {
            kept.push(d);
            continue;
        };
        if let (Some(all), Some(this)) = (first.fixes.first_mut(), d.fixes.into_iter().next()) {
            all.edits.extend(this.edits);
        }
    }
    *diagnostics = kept;
}

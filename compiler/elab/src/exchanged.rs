//! Blocks in the places of each other: `c.tile(j, i)`, where `j` counts over the columns.

use super::Elaborator;
use ptoc_diagnostics::{Diagnostic, Edit, codes};
use ptoc_syntax::ast::{Arg, ExprKind};
use ptoc_values::{Val, WindowMap};

impl Elaborator<'_> {
    /// Blocks that are cut from the dimensions of each other's modes, as in `c.tile(j, i)`: a warning, since the
    /// dimensions may be equal when the kernel runs.
    pub(crate) fn exchanged(&self, w: &WindowMap, name: &str, args: &[Arg], blocks: &[Val]) -> Option<Diagnostic> {
        let place = |k: usize| match &blocks[k] {
            Val::Block(b) => b.place.as_ref(),
            _ => None,
        };
        // A block is of the mode whose extent is its domain.
        let of = |block: usize, mode: usize| {
            place(block).is_some_and(|p| self.lengths_agree(p.domain, w.modes[mode].extent))
        };
        let wrong: Vec<usize> = (0..blocks.len()).filter(|&k| place(k).is_some() && !of(k, k)).collect();
        let outside = |k: &usize| place(*k).is_some_and(|p| !self.facts.le_certain(p.end, w.modes[*k].extent, 0));
        if !wrong.iter().any(outside) {
            return None;
        }
        let meant = orders(&wrong).into_iter().find(|order| order.iter().zip(&wrong).all(|(b, m)| of(*b, *m)))?;
        let text = |k: usize| match &*args[k].value.kind {
            ExprKind::Name(n) => Some(n.clone()),
            _ => None,
        };
        let first = *wrong.first()?;
        let called = |k: usize| text(k).map_or("this block".to_owned(), |n| format!("`{n}`"));
        let domain = |k: usize| place(k).map_or_else(String::new, |p| self.size_shown(p.domain));
        let extent = |k: usize| self.size_shown(w.modes[k].extent);
        let message = format!(
            "{} counts blocks of {}, and stands for mode {first} of `{name}`, which has {}",
            called(first),
            domain(first),
            extent(first)
        );
        let all = args.first()?.value.span.to(args.last()?.value.span);
        let mut d =
            Diagnostic::warning(codes::VIEW_OUT_OF_BOUNDS, all, message).with_label("in another order than the modes");
        for &k in &wrong[1..] {
            let more = format!("{} counts blocks of {}, mode {k} has {}", called(k), domain(k), extent(k));
            d = d.with_note(more);
        }
        let equal: Vec<String> = wrong.iter().map(|k| extent(*k)).collect();
        d = d.with_note(format!("where {} differ, the kernel stops when it runs", ptoc_isa::text::list(equal)));
        let edits = wrong
            .iter()
            .zip(&meant)
            .map(|(at, block)| Some(Edit { span: args[*at].value.span, text: text(*block)?.to_string() }));
        let order: Option<Vec<String>> = (0..args.len())
            .map(|k| match wrong.iter().position(|m| *m == k) {
                Some(n) => text(meant[n]).map(|n| n.to_string()),
                None => match &blocks[k] {
                    Val::Hole => Some("_".to_owned()),
                    _ => text(k).map(|n| n.to_string()),
                },
            })
            .collect();
        Some(match (edits.collect::<Option<Vec<Edit>>>(), order) {
            (Some(edits), Some(order)) => d.with_edits(format!("write `.tile({})`", order.join(", ")), edits),
            _ => d.with_help("give the blocks in the order of the modes"),
        })
    }
}

/// The orders of a few numbers in which none stays where it is; of more than four there are too many to try.
fn orders(of: &[usize]) -> Vec<Vec<usize>> {
    fn extend(of: &[usize], begun: &mut Vec<usize>, out: &mut Vec<Vec<usize>>) {
        if begun.len() == of.len() {
            out.push(begun.clone());
            return;
        }
        for &next in of {
            if next != of[begun.len()] && !begun.contains(&next) {
                begun.push(next);
                extend(of, begun, out);
                begun.pop();
            }
        }
    }
    let mut out = Vec::new();
    if (2..=4).contains(&of.len()) {
        extend(of, &mut Vec::new(), &mut out);
    }
    out
}

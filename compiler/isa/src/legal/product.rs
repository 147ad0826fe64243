//! Products that no matrix unit of a target computes.

use super::nearest::distance;
use crate::{Target, text};
use ptoc_diagnostics::{Diagnostic, Span, codes};
use ptoc_tensor::DType;

/// The report that `target` has no product of these factors, whatever the accumulator: what it has, who has this one,
/// and the nearest.
pub fn no_product(target: &Target, (left, right): (DType, DType), span: Span) -> Diagnostic {
    let message = format!("{} multiplies no `{left}` by `{right}`", target.name);
    let mut d = Diagnostic::error(codes::DTYPE_MISMATCH, span, message);
    if target.triples.is_empty() {
        return d.with_note("it has no matrix unit");
    }
    d = d.with_note(format!("its matrix unit computes {}", text::list(&target.triples)));
    let others: Vec<&str> =
        Target::all().iter().filter(|t| t.accumulator_of(left, right).is_some()).map(|t| t.name.as_str()).collect();
    d = match others.as_slice() {
        [] => d.with_note("no target has this product"),
        on => d.with_note(format!("it is legal on {}", text::list(on))),
    };
    let nearest = target.triples.iter().min_by_key(|t| distance(left, t.left) + distance(right, t.right));
    let changes = nearest.map(|t| {
        let sides = [("left", left, t.left), ("right", right, t.right)];
        let changed = sides.into_iter().filter(|(_, from, to)| from != to);
        text::list(changed.map(|(side, _, to)| format!("the {side} operand {to}")))
    });
    match changes {
        Some(changes) => d.with_help(format!("the nearest is to make {changes}")),
        None => d,
    }
}

//! How much work an equation is, and which elements are looked at where all would be too much.

use super::eval::Eval;
use super::node::{Int, Node, NodeKind};
use super::{Inputs, Oracle, ReduceKind};

/// Operations that an equation may take: some seconds.
pub const MAX_WORK: u128 = 1 << 32;

/// Which runs of elements are evaluated: one of `every`, spread evenly, the first and the last always.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// 1: all.
    pub every: u64,
}

impl Sample {
    /// All elements.
    pub const ALL: Sample = Sample { every: 1 };

    /// Whether the run with that number is evaluated. Multiplied by an odd constant, numbers that follow one another
    /// are scattered, so that the sample has no period of its own.
    pub(super) fn takes(self, run: u64, last: bool) -> bool {
        self.every <= 1
            || run == 0
            || last
            || (run.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32).is_multiple_of(self.every)
    }
}

impl Oracle {
    /// The number of operations for all elements, reductions counted by their extents.
    pub fn work(&self, inputs: Inputs<'_>) -> u128 {
        let Some(tensor) = inputs.tensors.get(self.equation.tensor) else { return 0 };
        let elements: u128 = tensor.shape.iter().map(|&n| u128::from(n)).product();
        let mut e = Eval::<i128>::new(inputs, self.locals);
        elements.saturating_mul(cost(&self.node, &mut e))
    }

    /// Addends of the longest sum of an element, sums of sums counted through; 1 where there is none.
    pub fn addends(&self, inputs: Inputs<'_>) -> u128 {
        addends(&self.node, &mut Eval::<i128>::new(inputs, self.locals))
    }

    /// The sample that keeps the work below `most`.
    pub fn sample(&self, inputs: Inputs<'_>, most: u128) -> Sample {
        let every = self.work(inputs).div_ceil(most.max(1)).max(1);
        Sample { every: u64::try_from(every).unwrap_or(u64::MAX) }
    }
}

/// Operations for one element.
fn cost(node: &Node, e: &mut Eval<'_, i128>) -> u128 {
    let own: u128 = match &node.kind {
        NodeKind::Const(_) | NodeKind::Int(_) | NodeKind::Scalar(_) | NodeKind::Local(_) | NodeKind::Elem(..) => 0,
        NodeKind::Unary(_, a) => cost(a, e),
        NodeKind::Binary(_, a, b) | NodeKind::Pow(a, b) | NodeKind::Compare(_, a, b) => {
            cost(a, e).saturating_add(cost(b, e))
        }
        NodeKind::Select(c, a, b) => cost(c, e).saturating_add(cost(a, e).max(cost(b, e))),
        NodeKind::Reduce { lo, hi, body, .. } => values(lo, hi, e).saturating_mul(cost(body, e)),
        // Both lists are sorted, too.
        NodeKind::Rearranged { lo, hi, a, b, .. } => {
            values(lo, hi, e).saturating_mul(cost(a, e).saturating_add(cost(b, e)).saturating_add(32))
        }
        NodeKind::Let { value, body, .. } => cost(value, e).saturating_add(cost(body, e)),
    };
    own.saturating_add(1)
}

/// Addends of the longest sum.
fn addends(node: &Node, e: &mut Eval<'_, i128>) -> u128 {
    match &node.kind {
        NodeKind::Const(_) | NodeKind::Int(_) | NodeKind::Scalar(_) | NodeKind::Local(_) | NodeKind::Elem(..) => 1,
        NodeKind::Unary(_, a) => addends(a, e),
        NodeKind::Binary(_, a, b) | NodeKind::Pow(a, b) | NodeKind::Compare(_, a, b) => {
            addends(a, e).max(addends(b, e))
        }
        NodeKind::Select(_, a, b) => addends(a, e).max(addends(b, e)),
        NodeKind::Reduce { kind: ReduceKind::Sum, lo, hi, body, .. } => {
            values(lo, hi, e).max(1).saturating_mul(addends(body, e))
        }
        NodeKind::Reduce { body, .. } => addends(body, e),
        NodeKind::Rearranged { a, b, .. } => addends(a, e).max(addends(b, e)),
        NodeKind::Let { value, body, .. } => addends(value, e).max(addends(body, e)),
    }
}

/// How many values the variable of a reduction takes; where that depends on other variables, for their first values.
fn values(lo: &Int, hi: &Int, e: &mut Eval<'_, i128>) -> u128 {
    match (e.int_at(lo, 0), e.int_at(hi, 0)) {
        (Ok(lo), Ok(hi)) => u128::try_from(i128::from(hi) - i128::from(lo)).unwrap_or(0),
        _ => 1,
    }
}

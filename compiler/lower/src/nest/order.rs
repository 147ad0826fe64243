//! The order of the loops of a copy: neighbours innermost, and blocks where the two sides disagree about who they are.

use super::side::Stored;
use super::{Nest, NestSide};
use crate::code::FunctionBuilder;

/// Elements of a block's row and column. Emitters have a routine that transposes a block line by line.
const BLOCK: i64 = 512;

/// Runs along the rows and columns of a block of runs.
const RUNS: i64 = 16;

/// Runs of this many bytes are worth a loop of their own, whatever is around it.
const LONG_RUN: i64 = 512;

/// Whether two axes may be one. The order of a copy's elements has no meaning, but that of what can fail has.
pub(crate) fn mergeable(nest: &Nest, inner: usize, outer: usize) -> bool {
    !nest.axes[inner].pinned && !nest.axes[outer].pinned
}

/// How far apart neighbours along an axis are; what is not known is far.
fn distance(code: &FunctionBuilder, nest: &Nest, side: &NestSide, a: usize) -> u64 {
    match code.known(nest.forms[side.at].steps[a]) {
        // An axis that does not move a side says nothing about it.
        Some(0) => u64::MAX - 1,
        Some(n) => n.unsigned_abs(),
        None => u64::MAX,
    }
}

/// Orders the axes of a copy, outermost first; splits some.
pub(crate) fn copy_order(code: &mut FunctionBuilder, nest: &mut Nest, dst: &NestSide, src: &NestSide) {
    let far = |code: &FunctionBuilder, nest: &Nest, a: usize| {
        let (d, s) = (distance(code, nest, dst, a), distance(code, nest, src, a));
        (d.max(s), d, s)
    };
    let free: Vec<usize> = (0..nest.axes.len()).filter(|&a| !nest.axes[a].pinned).collect();
    let next_to = |code: &FunctionBuilder, nest: &Nest, side: &NestSide, a: usize| {
        distance(code, nest, side, a) == side.stored.units().unsigned_abs()
    };
    // A run of neighbours on both sides; of half bytes, those that are the same half.
    let halves = matches!(src.stored, Stored::Half { .. });
    let run = match halves {
        true => {
            let even = |a: &usize| code.known(nest.forms[src.at].steps[*a]).is_some_and(|t| t != 0 && t % 2 == 0);
            free.iter().copied().filter(even).min_by_key(|&a| distance(code, nest, src, a))
        }
        false => free.iter().copied().find(|&a| next_to(code, nest, dst, a) && next_to(code, nest, src, a)),
    };
    let run_bytes = run.map_or(0, |a| match code.known(nest.axes[a].extent) {
        Some(n) => n.saturating_mul(dst.stored.units()),
        None => i64::MAX,
    });
    let rest = || free.iter().copied().filter(|&a| Some(a) != run);
    let to = rest().min_by_key(|&a| (distance(code, nest, dst, a), distance(code, nest, src, a)));
    let from = rest().min_by_key(|&a| (distance(code, nest, src, a), distance(code, nest, dst, a)));
    let mut inner: Vec<usize> = Vec::new();
    let mut split = Vec::new();
    match (to, from) {
        (Some(to), Some(from))
            if to != from && !halves && run_bytes < LONG_RUN && crosses(code, nest, (dst, src), to, from) =>
        {
            // Lanes go along the destination, unless it has no neighbours and the source has, or unless every lane
            // would have a swizzle of its own to compute.
            let turned = next_to(code, nest, src, from) && (!next_to(code, nest, dst, to) || src.xor.is_some());
            inner = if turned { vec![to, from] } else { vec![from, to] };
            let block = if run.is_some() { RUNS } else { BLOCK };
            split = vec![(from, block), (to, block)];
        }
        _ => {}
    }
    let (pinned, mut outer): (Vec<usize>, Vec<usize>) =
        (0..nest.axes.len()).filter(|a| !inner.contains(a) && Some(*a) != run).partition(|&a| nest.axes[a].pinned);
    // Pinned axes in the interpreter's order; then the farthest first, the slower first among equals.
    outer.sort_by_key(|&a| (std::cmp::Reverse(far(code, nest, a)), nest.axes[a].rank));
    let mut order = pinned;
    // The rest of a split axis stands behind its part, and is the slower one.
    order.sort_by_key(|&a| (nest.axes[a].rank, std::cmp::Reverse(a)));
    order.extend(outer);
    order.extend(inner.iter().copied());
    order.extend(run);
    nest.permute(&order);
    let place = |a: usize| order.iter().position(|&b| b == a);
    // Blocks: the loops over the parts of both axes lie around those inside a part.
    let first = order.len() - inner.len() - usize::from(run.is_some());
    let mut blocks: Vec<(usize, i64)> = split.into_iter().filter_map(|(a, n)| Some((place(a)?, n))).collect();
    blocks.sort_unstable();
    for (a, n) in blocks {
        let a = a + nest.axes.len() - order.len();
        if code.known(nest.axes[a].extent).is_none_or(|e| e > 2 * n) {
            nest.split(code, a, n);
            let mut again: Vec<usize> = (0..nest.axes.len()).filter(|&b| b != a + 1).collect();
            again.insert(first, a + 1);
            nest.permute(&again);
        }
    }
}

/// Whether the sides disagree on which of two axes is the faster one.
fn crosses(code: &FunctionBuilder, nest: &Nest, (dst, src): (&NestSide, &NestSide), to: usize, from: usize) -> bool {
    distance(code, nest, dst, to) < distance(code, nest, dst, from)
        && distance(code, nest, src, from) < distance(code, nest, src, to)
}

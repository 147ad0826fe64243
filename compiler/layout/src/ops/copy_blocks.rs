//! Blocks of strided copies: which elements one block of a grid moves, so that both sides are walked along their own
//! fastest axes and blocks run side by side.
//!
//! The layouts' modes are refined until both sides count alike, axes that go on into each other on both sides become
//! one, and a box is cut from the axes: it grows, by factors of two and along the side that it covers less of, from the
//! smallest strides of either side, until it holds as many elements as a block may. Once it covers whole lines of the
//! destination, only the source's stretches grow: lines may be written anywhere, but reading is fast where it goes on.
//! So at most one axis of each side is cut, where possible in equal parts; otherwise the last block is shorter.

use super::Op;
use super::args::Args;
use super::copy_plan::{Pair, paired};
use crate::{Cx, ErrorKind, Int, Layout, LayoutError, Result, Stride, Tiler, Truth, Value};

const OP: &str = "copy_blocks";

/// Elements of a block, where the author says nothing: some tens of KiB on either side, so that a block fits a core's
/// caches and costs more than its start.
const ELEMENTS: i64 = 16384;

/// So many elements in a row are some lines, and fewer are enough where the next one in the destination is on another
/// axis.
const WIDE: i64 = 64;
const WIDE_AXIS: i64 = 16;

/// How to cut two windows of one shape into the same blocks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CopyBlocks {
    /// Composed with, it makes both sides count by the same axes.
    pub axes: Tiler,
    /// The axes: the destination's fastest one, then the others in the source's order, so that blocks behind one
    /// another read what is near. (What is written is whole lines, wherever they are.) Those of one group are one walk
    /// on both sides.
    pub order: Vec<Vec<usize>>,
    /// Of each group, how many elements are one block's.
    pub block: Vec<i64>,
}

impl CopyBlocks {
    /// `(axes, order, block)`, for `composition`, `modes` and `zipped_divide`.
    fn value(&self) -> Value {
        let number = |k: &usize| Value::Int(Int::Const(*k as i64));
        let group = |g: &Vec<usize>| match &g[..] {
            [one] => number(one),
            many => Value::Tuple(many.iter().map(number).collect()),
        };
        let block = self.block.iter().map(|n| Tiler::Extent(Int::Const(*n))).collect();
        Value::Tuple(vec![
            Value::Tiler(self.axes.clone()),
            Value::Tuple(self.order.iter().map(group).collect()),
            Value::Tiler(Tiler::ByMode(block)),
        ])
    }
}

/// Axes that both sides walk as one.
struct Group {
    axes: Vec<usize>,
    extent: Int,
    dst: Int,
    src: Int,
}

/// The blocks of a copy from `src` to `dst`, each of at most `most` elements.
pub fn copy_blocks(cx: &Cx, dst: &Layout, src: &Layout, most: i64) -> Result<CopyBlocks> {
    if most < 1 {
        return Err(LayoutError::new(ErrorKind::Domain, OP, format!("a block of {most} elements"))
            .in_arg(2)
            .with_help("a block has one element or more"));
    }
    let modal = |l: &Layout| if l.is_leaf() { Layout::of_modes(vec![l.clone()]) } else { l.clone() };
    let (dst, src) = (modal(dst), modal(src));
    let (mut tilers, mut groups, mut ones) = (Vec::new(), Vec::new(), Vec::new());
    let mut next = 0;
    for (k, pairs) in paired(cx, &dst, &src).map_err(|e| e.of(OP))?.into_iter().enumerate() {
        let plain = |l: &Layout| l.mode(k).is_some_and(|m| m.is_leaf());
        tilers.push(match plain(&dst) && plain(&src) {
            true => Tiler::Keep,
            false => Tiler::Layout(row_of(&pairs)?),
        });
        if pairs.is_empty() {
            ones.push(next);
            next += 1;
        }
        for p in pairs {
            groups.push(Group { axes: vec![next], extent: p.extent, dst: p.dst, src: p.src });
            next += 1;
        }
    }
    merge(cx, &mut groups)?;
    let order = ascending(cx, &groups, |g| &g.dst);
    let mut groups: Vec<Option<Group>> = groups.into_iter().map(Some).collect();
    let mut groups: Vec<Group> = order.into_iter().filter_map(|k| groups[k].take()).collect();
    match groups.first_mut() {
        Some(first) => first.axes.append(&mut ones),
        None if ones.is_empty() => {}
        None => groups.push(Group { axes: ones, extent: Int::ONE, dst: Int::ZERO, src: Int::ZERO }),
    }
    let block = boxed(cx, &groups, most);
    let mut order: Vec<usize> = ascending(cx, &groups, |g| &g.src);
    order.sort_by_key(|&k| k > 0);
    let block = order.iter().map(|&k| block[k]).collect();
    let order = order.iter().map(|&k| std::mem::take(&mut groups[k].axes)).collect();
    Ok(CopyBlocks { axes: Tiler::ByMode(tilers), order, block })
}

/// A mode's axes as a layout onto its indices.
fn row_of(pairs: &[Pair]) -> Result<Layout> {
    let mut step = Int::ONE;
    let mut modes = Vec::new();
    for p in pairs {
        modes.push(Layout::leaf(p.extent.clone(), Stride::int(step.clone())));
        step = step.mul(&p.extent)?;
    }
    Ok(match modes.len() {
        0 => Layout::unit(),
        1 => modes.remove(0),
        _ => Layout::of_modes(modes),
    })
}

/// Joins each two of which one goes on where the other ends, on both sides.
fn merge(cx: &Cx, groups: &mut Vec<Group>) -> Result<()> {
    let goes_on = |a: &Group, b: &Group| -> Result<bool> {
        Ok(cx.eq(&a.extent.mul(&a.dst)?, &b.dst) == Truth::Yes && cx.eq(&a.extent.mul(&a.src)?, &b.src) == Truth::Yes)
    };
    'again: loop {
        for i in 0..groups.len() {
            for j in 0..groups.len() {
                if i != j && goes_on(&groups[i], &groups[j])? {
                    let slow = groups.remove(j);
                    let fast = &mut groups[if j < i { i - 1 } else { i }];
                    fast.extent = fast.extent.mul(&slow.extent)?;
                    fast.axes.extend(slow.axes);
                    continue 'again;
                }
            }
        }
        return Ok(());
    }
}

/// Groups by ascending stride, as far as strides can be compared: known ones first, then by degree.
fn ascending(cx: &Cx, groups: &[Group], stride: impl Fn(&Group) -> &Int) -> Vec<usize> {
    let degree = |n: &Int| match n {
        Int::Const(_) => 0,
        Int::Sym(p) => p.terms().map(|(m, _)| m.iter().map(|(_, power)| *power).sum()).max().unwrap_or(0),
    };
    let size = |n: &Int| n.as_const().map_or(0, i64::unsigned_abs);
    let mut order: Vec<usize> = (0..groups.len()).collect();
    order.sort_by_key(|&k| (degree(stride(&groups[k])), size(stride(&groups[k]))));
    for k in 1..order.len() {
        for at in (1..=k).rev() {
            let (x, y) = (stride(&groups[order[at - 1]]), stride(&groups[order[at]]));
            if cx.le(y, x) != Truth::Yes || cx.le(x, y) == Truth::Yes {
                break;
            }
            order.swap(at - 1, at);
        }
    }
    order
}

/// The elements of each group that are one block's.
fn boxed(cx: &Cx, groups: &[Group], most: i64) -> Vec<i64> {
    let extents: Vec<Option<i64>> = groups.iter().map(|g| g.extent.as_const()).collect();
    // What repeats in the source costs nothing there.
    let mut src = ascending(cx, groups, |g| &g.src);
    src.retain(|&k| !groups[k].src.is(0));
    let sides: [Vec<usize>; 2] = [(0..groups.len()).collect(), src];
    // `None` if that is too much.
    let cut = |targets: [i64; 2], part: fn(i64, i64) -> i64| {
        let mut block = vec![1i64; groups.len()];
        let covered = [0, 1].map(|side| cover(&sides[side], &extents, targets[side], part, &mut block));
        let elements = block.iter().try_fold(1i64, |n, &b| n.checked_mul(b))?;
        (elements <= most).then_some((block, covered))
    };
    let mut targets = [1, 1];
    let (mut block, mut covered) = (vec![1; groups.len()], [1, 1]);
    let mut open = [true, true];
    while open[0] || open[1] {
        let whole = sides[0].first().is_some_and(|&k| extents[k] == Some(block[k]));
        let wide = covered[0] >= if whole { WIDE_AXIS } else { WIDE };
        open[0] &= !wide;
        if open == [false, false] {
            break;
        }
        let side = if open[0] && (!open[1] || covered[0] <= covered[1]) { 0 } else { 1 };
        let mut wider = targets;
        wider[side] *= 2;
        match cut(wider, even).or_else(|| cut(wider, i64::min)).filter(|_| wider[side] <= most) {
            Some(next) => (targets, (block, covered)) = (wider, next),
            None => open[side] = false,
        }
    }
    block
}

/// Widens the block along one side's axes, the fastest first, until it covers `target` elements in a row or cuts an
/// axis; `part` of it and of what is wanted says what is taken.
fn cover(order: &[usize], extents: &[Option<i64>], target: i64, part: fn(i64, i64) -> i64, block: &mut [i64]) -> i64 {
    let mut covered = 1i64;
    for &k in order {
        if covered >= target {
            break;
        }
        let want = target.div_euclid(covered) + i64::from(target % covered != 0);
        let take = extents[k].map_or(want, |n| part(n, want));
        block[k] = block[k].max(take);
        covered = covered.saturating_mul(block[k]);
        if extents[k] != Some(block[k]) {
            break;
        }
    }
    covered
}

/// `want` of an axis of `n`, or a little more if that divides it.
fn even(n: i64, want: i64) -> i64 {
    let most = want.saturating_add(want / 4);
    (want..=most.min(n)).find(|d| *d > 0 && n % d == 0).unwrap_or(n.min(want))
}

pub(crate) static OPS: &[Op] = &[Op {
    name: "copy_blocks",
    usage: "copy_blocks(dst, src), copy_blocks(dst, src, elements)",
    doc: "How to cut a copy into blocks: a tiler to compose with, the order of its axes, and a tiler of one block.",
    arity: (2, 3),
    eval: |cx, v| {
        let args = Args::new(OP, v);
        let most = if args.len() > 2 { args.constant(2)? } else { ELEMENTS };
        Ok(copy_blocks(cx, args.view(0)?.inner(), args.view(1)?.inner(), most)?.value())
    },
}];

#[cfg(test)]
mod tests;

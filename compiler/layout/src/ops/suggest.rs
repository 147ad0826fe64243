//! Help that mends: the nearest numbers that would do. Only for errors, so clarity goes before speed.

use super::make::row;
use crate::{Int, Layout, Stride, Tiler, Tuple};
use std::ops::Range;

/// Strides near `d * stepped` that suit extent `a`, of those that `accepts`.
pub(crate) fn strides(a: &Int, d: &Int, stepped: &Int, accepts: impl Fn(i64) -> bool) -> Option<String> {
    let (a, d, stepped) = (a.as_const()?, d.as_const()?, stepped.as_const()?);
    let suits = |n: &i64| *n > 0 && (a % n == 0 || n % a == 0);
    let good = |n: i64| n.checked_mul(stepped).filter(|n| accepts(*n));
    let below = (1..d).rev().take(CANDIDATES).filter(suits).find_map(good);
    let above = d.checked_add(1)?..=d.checked_mul(2)?.max(a);
    let above = above.take(CANDIDATES).filter(suits).find_map(good);
    would("a stride of", [below, above])
}

/// Extents near `taken * s`, of which `whole` at a time fit, of those that `accepts`.
pub(crate) fn extents(whole: &Int, s: &Int, taken: &Int, accepts: impl Fn(i64) -> bool) -> Option<String> {
    let (whole, s, taken) = (whole.as_const()?, s.as_const()?, taken.as_const()?);
    if whole < 1 || s < 1 {
        return None;
    }
    let good = |n: i64| n.checked_mul(taken).filter(|n| *n > 1 && accepts(*n));
    let below = good(s / whole * whole).or_else(|| good(whole.min(s)));
    let above = (s / whole).checked_add(1).and_then(|n| n.checked_mul(whole)).and_then(good);
    would("an extent of", [below, above])
}

/// Tiles with another extent, or else another stride, in place of a tiler that is a single mode.
pub(crate) fn tiles(a: &Layout, tiler: &Tiler, accepts: impl Fn(&Layout) -> bool) -> Option<String> {
    let tile = match tiler {
        Tiler::Extent(n) => row(n),
        Tiler::Layout(l) if l.is_leaf() => l.clone(),
        _ => return None,
    };
    let (n, size) = (tile.size().ok()?.as_const()?, a.size().ok()?.as_const()?);
    // A tile of one element always does, and helps nobody.
    let with = |n: i64| accepts(&tile.with_shape(Tuple::Leaf(Int::Const(n))));
    let extents = would("an extent of", near(n, 2..size, with));
    extents.or_else(|| {
        let d = tile.stride().leaves().first()?.as_int()?.as_const()?;
        let with = |d: i64| accepts(&Layout::leaf(Int::Const(n), Stride::from(d)));
        would("a stride of", near(d, 1..size, with))
    })
}

/// The nearest numbers on both sides of `n` within `range`.
fn near(n: i64, range: Range<i64>, accepts: impl Fn(i64) -> bool) -> [Option<i64>; 2] {
    let below = (range.start..n).rev().take(CANDIDATES).find(|n| accepts(*n));
    let above = (n.saturating_add(1)..range.end.saturating_add(1)).take(CANDIDATES).find(|n| accepts(*n));
    [below, above]
}

const CANDIDATES: usize = 64;

fn would(what: &str, found: [Option<i64>; 2]) -> Option<String> {
    match found {
        [None, None] => None,
        [Some(one), None] | [None, Some(one)] => Some(format!("{what} {one} would do")),
        [Some(one), Some(two)] => Some(format!("{what} {one} or {two} would do")),
    }
}

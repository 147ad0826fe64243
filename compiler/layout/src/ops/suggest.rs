//! Help that mends: the nearest numbers that would do. Only for errors, so clarity goes before speed.

use super::make::row;
use crate::{Int, Layout, Tiler, Tuple};

/// Strides near `d * stepped` that suit extent `a`.
pub(crate) fn strides(a: &Int, d: &Int, stepped: &Int) -> Option<String> {
    let (a, d, stepped) = (a.as_const()?, d.as_const()?, stepped.as_const()?);
    let suits = |n: i64| n > 0 && (a % n == 0 || n % a == 0);
    let below = (1..d).rev().take(CANDIDATES).find(|n| suits(*n));
    let above = d.checked_add(1)?..=d.checked_mul(2)?.max(a);
    let above = above.take(CANDIDATES).find(|n| suits(*n));
    let found: Vec<i64> = [below, above].into_iter().flatten().filter_map(|n| n.checked_mul(stepped)).collect();
    would("a stride of", &found)
}

/// Extents near `taken * s` of which `whole` at a time fit. `exact`: `whole` of them fill the mode.
pub(crate) fn extents(whole: &Int, s: &Int, taken: &Int, exact: bool) -> Option<String> {
    let (whole, s, taken) = (whole.as_const()?, s.as_const()?, taken.as_const()?);
    if whole < 1 || s < 1 {
        return None;
    }
    let below = if s > whole && exact { s / whole * whole } else { whole.min(s) };
    let above = exact.then(|| (s / whole).checked_add(1)?.checked_mul(whole)).flatten();
    let found: Vec<i64> = [Some(below), above].into_iter().flatten().filter_map(|n| n.checked_mul(taken)).collect();
    would("an extent of", &found)
}

/// Tiles with another extent that `accepts`, in place of a tiler that is a single mode: `4 or 6 would`.
pub(crate) fn tiles(a: &Layout, tiler: &Tiler, accepts: impl Fn(&Layout) -> bool) -> Option<String> {
    let tile = match tiler {
        Tiler::Extent(n) => row(n),
        Tiler::Layout(l) if l.is_leaf() => l.clone(),
        _ => return None,
    };
    let (n, size) = (tile.size().ok()?.as_const()?, a.size().ok()?.as_const()?);
    let good = |n: &i64| accepts(&tile.with_shape(Tuple::Leaf(Int::Const(*n))));
    // A tile of one element always does, and helps nobody.
    let below = (2..n).rev().take(CANDIDATES).find(good);
    let above = (n.checked_add(1)?..=size).take(CANDIDATES).find(good);
    let found: Vec<i64> = [below, above].into_iter().flatten().collect();
    would("an extent of", &found)
}

const CANDIDATES: usize = 64;

fn would(what: &str, found: &[i64]) -> Option<String> {
    match found {
        [] => None,
        [one] => Some(format!("{what} {one} would do")),
        [one, two, ..] => Some(format!("{what} {one} or {two} would do")),
    }
}

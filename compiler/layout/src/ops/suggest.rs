//! Help that mends: the nearest numbers that would do. Only for errors, so clarity goes before speed.

use crate::{Cx, Int, Layout, Result, Tiler};

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
pub(crate) fn tiles(
    cx: &Cx,
    a: &Layout,
    tiler: &Tiler,
    accepts: impl Fn(&Cx, &Layout, &Tiler) -> Result<Layout>,
) -> Option<String> {
    let n = match tiler {
        Tiler::Extent(n) => n.as_const()?,
        Tiler::Layout(l) if l.is_leaf() => l.size().ok()?.as_const()?,
        _ => return None,
    };
    let size = a.size().ok()?.as_const()?;
    let with = |n: i64| match tiler {
        Tiler::Layout(l) => Tiler::Layout(l.with_shape(crate::Tuple::Leaf(Int::Const(n)))),
        _ => Tiler::Extent(Int::Const(n)),
    };
    let good = |n: &i64| accepts(cx, a, &with(*n)).is_ok();
    let below = (1..n).rev().take(CANDIDATES).find(good);
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

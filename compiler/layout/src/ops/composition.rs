//! Composition: `R(c) = A(B(c))`.

use super::Op;
use super::args::Args;
use super::left::{Left, Rule};
use crate::error::plural;
use crate::{Cx, ErrorKind, Int, IntTuple, Layout, LayoutError, Result, Stride, Tiler, Tuple, Value};

const OP: &str = "composition";

/// `R(c) == A(B(c))` for all coordinates `c` of `B`, whose shape `R`'s refines. A tiler composes mode by mode; modes of
/// `A` beyond the tiler's are dropped. Along its last mode `A` goes on beyond its size.
///
/// Stricter than CuTe, which takes some `B` for which no layout is the composition: a stride of `B` that is below the
/// extent of the mode of `A` that it falls into must divide it, unless the mode of `B` ends within it; and the modes of
/// `B` together must not run past it. (For static layouts this is exactly when the equation holds.)
pub fn composition(cx: &Cx, a: &Layout, b: &Tiler) -> Result<Layout> {
    composition_as(Rule::Exact, cx, a, b)
}

/// By the given rule.
pub(crate) fn composition_as(rule: Rule, cx: &Cx, a: &Layout, b: &Tiler) -> Result<Layout> {
    match b {
        Tiler::Keep => Ok(a.clone()),
        Tiler::Extent(n) => {
            extent(OP, n)?;
            compose_as(rule, cx, a, &Layout::vector(n.clone()))
        }
        Tiler::Layout(b) => compose_as(rule, cx, a, b),
        Tiler::ByMode(tiles) => {
            let modes = by_mode(OP, a, tiles)?;
            let parts = modes.iter().zip(tiles).enumerate();
            let parts = parts.map(|(k, (m, t))| composition_as(rule, cx, m, t).map_err(|e| e.within(k)));
            Ok(Layout::of_modes(parts.collect::<Result<_>>()?))
        }
    }
}

/// The modes of `a` for a tiler of so many entries.
pub(crate) fn by_mode(op: &'static str, a: &Layout, tiles: &[Tiler]) -> Result<Vec<Layout>> {
    let modes = a.modes();
    if tiles.len() > modes.len() {
        let message = format!("the tiler has {}, {a} has {}", plural(tiles.len(), "mode", "modes"), modes.len());
        return Err(LayoutError::new(ErrorKind::Profile, op, message)
            .in_arg(1)
            .with_help(format!("give at most {}; `_` keeps a mode", plural(modes.len(), "entry", "entries"))));
    }
    Ok(modes)
}

/// A tile's extent must not be negative.
pub(crate) fn extent(op: &'static str, n: &Int) -> Result<()> {
    match n.bounds().1 {
        Some(hi) if hi < 0 => {
            let message = format!("a tile of {n} elements");
            Err(LayoutError::new(ErrorKind::Domain, op, message).in_arg(1).with_help("give an extent of at least 1"))
        }
        _ => Ok(()),
    }
}

/// Composition with a layout.
pub(crate) fn compose(cx: &Cx, a: &Layout, b: &Layout) -> Result<Layout> {
    compose_as(Rule::Exact, cx, a, b)
}

/// By the given rule. Strides of `B` that are coordinates select a mode of `A` each.
pub(crate) fn compose_as(rule: Rule, cx: &Cx, a: &Layout, b: &Layout) -> Result<Layout> {
    if !b.has_basis() {
        return after(rule, cx, &mut Left::new(cx, a)?, b);
    }
    let mut parts: Vec<(Vec<usize>, Left)> = Vec::new();
    walk(b.shape(), b.stride(), &mut |s, d| {
        if d.basis.is_empty() {
            if d.scale.is(0) {
                return Ok(Layout::leaf(s.clone(), d.clone()));
            }
            let message = format!("{b} steps along coordinates and, with stride {d}, along plain offsets");
            return Err(LayoutError::new(ErrorKind::Kind, OP, message).in_arg(1));
        }
        let known = parts.iter().position(|(path, _)| *path == d.basis);
        let part = match known {
            Some(k) => k,
            None => {
                if let Some((path, _)) = parts.iter().find(|(p, _)| p.starts_with(&d.basis) || d.basis.starts_with(p)) {
                    let whole = path.len().min(d.basis.len());
                    let whole = crate::Path(d.basis[..whole].to_vec());
                    let message = format!("{b} steps along {whole} of the left operand and along a part of it");
                    return Err(LayoutError::new(ErrorKind::Profile, OP, message).in_arg(1));
                }
                parts.push((d.basis.clone(), Left::new(cx, &sub_mode(a, &d.basis)?)?));
                parts.len() - 1
            }
        };
        parts[part].1.leaf(rule, cx, s, &d.scale)
    })
}

/// `A o B` for a `B` of plain strides.
pub(crate) fn after(rule: Rule, cx: &Cx, left: &mut Left, b: &Layout) -> Result<Layout> {
    walk(b.shape(), b.stride(), &mut |s, d| left.leaf(rule, cx, s, &d.scale))
}

/// The mode of `a` that a unit vector names.
fn sub_mode(a: &Layout, path: &[usize]) -> Result<Layout> {
    let mut at = a.clone();
    for (depth, &k) in path.iter().enumerate() {
        let inner = if at.is_leaf() { None } else { at.mode(k) };
        at = inner.ok_or_else(|| {
            let wanted = crate::Path(path[..=depth].to_vec());
            let message = format!("a stride of the right operand is along {wanted}, which {a} does not have");
            LayoutError::new(ErrorKind::Profile, OP, message).in_arg(1)
        })?;
    }
    Ok(at)
}

/// One result for each leaf of `B`, nested as `B` is; errors get the leaf's path.
fn walk(
    shape: &IntTuple,
    stride: &Tuple<Stride>,
    leaf: &mut impl FnMut(&Int, &Stride) -> Result<Layout>,
) -> Result<Layout> {
    match (shape, stride) {
        (Tuple::Node(s), Tuple::Node(d)) => {
            let parts = s.iter().zip(d).enumerate();
            let parts = parts.map(|(k, (s, d))| walk(s, d, leaf).map_err(|e| e.within(k)));
            Ok(Layout::of_modes(parts.collect::<Result<_>>()?))
        }
        (Tuple::Leaf(s), Tuple::Leaf(d)) => leaf(s, d),
        // Congruent by construction.
        _ => Err(LayoutError::new(ErrorKind::Profile, OP, "shape and stride are nested differently")),
    }
}

pub(crate) static OPS: &[Op] = &[Op {
    name: "composition",
    usage: "composition(A, B)",
    doc: "A after B: R(c) = A(B(c)); a tiler composes mode by mode.",
    arity: (2, 2),
    eval: |cx, v| {
        let args = Args::new(OP, v);
        if let (Value::Swizzle(_), _) | (_, Value::Swizzle(_) | Value::Composed(_)) = (args.value(0)?, args.value(1)?) {
            return super::swizzle::compose(cx, args);
        }
        let tiler = args.tiler(1)?;
        args.view(0)?.map(|a| composition(cx, a, &tiler))
    },
}];

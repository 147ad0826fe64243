//! Inverses, and the vectors that two layouts share.

use super::Op;
use super::args::{Args, View};
use super::coalesce::{Leaves, coalesce, from_leaves, owned};
use super::complement::sort_by_stride;
use super::composition::compose;
use crate::{Condition, Cx, ErrorKind, Int, Layout, LayoutError, Result, Stride, Truth, Value};

/// `A(R(i)) == i` for all `i < size(R)`: where to find the offsets from 0 on, as far as `A`'s modes reach without a gap
/// (and as far as that can be shown, for symbolic strides).
pub fn right_inverse(cx: &Cx, a: &Layout) -> Result<Layout> {
    const OP: &str = "right_inverse";
    let mut modes = with_prefix(cx, OP, a)?;
    // Coalesced extents are above 1, so each step finds another mode and `next` grows.
    let mut next = Int::ONE;
    let mut out: Leaves = Vec::new();
    while let Some(k) = modes.iter().position(|m| plain(&m.1).is_some_and(|d| cx.eq(d, &next) == Truth::Yes)) {
        let (s, _, prefix) = modes.remove(k);
        next = s.mul(&next).map_err(|e| e.of(OP))?;
        out.push((s, Stride::int(prefix)));
    }
    coalesce(cx, &from_leaves(out)).map_err(|e| e.of(OP))
}

/// `R(A(i)) == i` where `A` is injective; where it has modes of stride 0, `A(R(A(i))) == A(i)`. Offsets that `A` leaves
/// out go somewhere.
///
/// Refuses, unlike CuTe, modes that overlap: for those no layout is such an inverse.
pub fn left_inverse(cx: &Cx, a: &Layout) -> Result<Layout> {
    const OP: &str = "left_inverse";
    let mut modes: Vec<(Int, Stride, Int)> = with_prefix(cx, OP, a)?;
    modes.retain(|m| !m.1.scale.is(0));
    let mut sorted: Leaves = Vec::with_capacity(modes.len());
    for (_, d, _) in &modes {
        let Some(n) = plain(d) else {
            let message = format!("stride {d} of {a} is a coordinate");
            return Err(LayoutError::new(ErrorKind::Kind, OP, message).in_arg(0));
        };
        if !cx.require(OP, Condition::Le(Int::ZERO, n.clone())).map_err(|e| e.in_arg(0))? {
            let message = format!("stride {n} of {a} is negative");
            return Err(LayoutError::new(ErrorKind::Domain, OP, message).in_arg(0).with_help("use positive strides"));
        }
        sorted.push((Int::from(sorted.len() as i64), d.clone()));
    }
    if sorted.is_empty() {
        // One offset, 0: any index has it.
        return Ok(Layout::leaf(coalesce(cx, a)?.size()?, Stride::from(0)));
    }
    sort_by_stride(cx, OP, &mut sorted)?;
    let order: Vec<usize> = sorted.iter().filter_map(|(k, _)| usize::try_from(k.as_const()?).ok()).collect();
    // Size of the result so far, which is the last stride; and the span of the modes so far.
    let (mut size, mut span) = (Int::ONE, Int::ONE);
    let mut step = Int::ZERO;
    let mut out: Leaves = Vec::with_capacity(order.len() + 1);
    let mut last = Int::ONE;
    for k in order {
        let (s, d, prefix) = &modes[k];
        let d = &d.scale;
        let count = match cx.divides(&size, d) {
            Truth::Yes => d.div_exact(&size).map_or_else(|| cx.floor_div(d, &size), Ok)?,
            Truth::Unknown => return Err(LayoutError::undecided(OP, Condition::Divides(size, d.clone())).in_arg(0)),
            Truth::No => {
                let message = format!("stride {d} of {a} is no multiple of {size}, the stride below it");
                let e = LayoutError::new(ErrorKind::StrideOrder, OP, message).in_arg(0);
                return Err(match (size.as_const(), d.as_const(), span.as_const()) {
                    (Some(size), Some(d), Some(span)) => {
                        let below = Some(d / size * size).filter(|n| *n >= span);
                        // The first multiple above that lies beyond the span of the modes below.
                        let least = d.max(span.saturating_sub(1));
                        let found = [below, (least / size + 1).checked_mul(size)];
                        let found: Vec<String> = found.iter().flatten().map(i64::to_string).collect();
                        e.with_help(format!("a stride of {} would do", found.join(" or ")))
                    }
                    _ => e,
                });
            }
        };
        // A multiple of the stride below that is below the span: the mode below runs into this one.
        let apart = Condition::Le(span.clone(), d.clone());
        if !cx.require(OP, apart).map_err(|e| e.in_arg(0))? {
            let message =
                format!("the modes of {a} overlap: stride {d} lies within {span}, the span of the modes below");
            return Err(LayoutError::new(ErrorKind::NotInjective, OP, message)
                .in_arg(0)
                .with_help(format!("a stride of {span} or a multiple of it would do")));
        }
        out.push((count, Stride::int(step)));
        span = s.mul(d).map_err(|e| e.of(OP))?;
        (size, step, last) = (d.clone(), prefix.clone(), s.clone());
    }
    out.push((last, Stride::int(step)));
    coalesce(cx, &from_leaves(out)).map_err(|e| e.of(OP))
}

/// The coalesced modes, each with the product of the extents before it.
fn with_prefix(cx: &Cx, op: &'static str, a: &Layout) -> Result<Vec<(Int, Stride, Int)>> {
    let mut prefix = Int::ONE;
    let mut modes = Vec::new();
    for (s, d) in owned(&coalesce(cx, a).map_err(|e| e.of(op))?) {
        if s.is(1) {
            continue;
        }
        let next = prefix.mul(&s).map_err(|e| e.of(op))?;
        modes.push((s, d, std::mem::replace(&mut prefix, next)));
    }
    Ok(modes)
}

fn plain(d: &Stride) -> Option<&Int> {
    d.as_int()
}

/// How many elements both layouts have in a row, in the same order: the widest vector with which one can be copied to
/// the other. 1 where none can be shown.
pub fn max_common_vector(cx: &Cx, a: &Layout, b: &Layout) -> Result<Int> {
    let inverse = right_inverse(cx, b).map_err(|e| e.of("max_common_vector"))?;
    // All of what b has in a row, or a part of it that a can be read by.
    let modes = owned(&inverse);
    for taken in (1..=modes.len()).rev() {
        let run = from_leaves(modes[..taken].to_vec());
        let Ok(common) = compose(cx, a, &run).and_then(|c| coalesce(cx, &c)) else { continue };
        if let Some((s, d)) = common.leaves().first()
            && plain(d).is_some_and(|d| cx.eq(d, &Int::ONE) == Truth::Yes)
        {
            return Ok((*s).clone());
        }
        return Ok(Int::ONE);
    }
    Ok(Int::ONE)
}

/// The same through swizzles: no more than a swizzle keeps together.
fn common_vector(cx: &Cx, a: View<'_>, b: View<'_>) -> Result<Int> {
    let n = max_common_vector(cx, a.inner(), b.inner())?;
    let same = match (a, b) {
        (View::Swizzled(x), View::Swizzled(y)) => x.swizzle == y.swizzle && x.offset == y.offset,
        _ => false,
    };
    let limit = |v: View<'_>| match v {
        View::Swizzled(c) if !c.swizzle.is_identity() => {
            (0..=c.swizzle.base()).rev().find(|&k| cx.divides(&Int::Const(1 << k), &c.offset) == Truth::Yes)
        }
        _ => None,
    };
    let keep = if same { None } else { limit(a).into_iter().chain(limit(b)).min() };
    let Some(bits) = keep else { return Ok(n) };
    let widest = (0..=bits).rev().find(|&k| cx.divides(&Int::Const(1 << k), &n) == Truth::Yes);
    Ok(Int::Const(1 << widest.unwrap_or(0)))
}

/// The modes of stride 0, as a layout into the coordinates of `a` (counted leftmost fastest): what `a` does not depend
/// on.
pub fn nullspace(a: &Layout) -> Result<Layout> {
    let mut prefix = Int::ONE;
    let mut out: Leaves = Vec::new();
    for (s, d) in a.leaves() {
        if d.scale.is(0) {
            // A 1-sized mode's step is 0, as in compact layouts.
            let step = if s.is(1) { Int::ZERO } else { prefix.clone() };
            out.push((s.clone(), Stride::int(step)));
        }
        prefix = prefix.mul(s).map_err(|e| e.of("nullspace"))?;
    }
    Ok(from_leaves(out))
}

pub(crate) static OPS: &[Op] = &[
    Op {
        name: "right_inverse",
        usage: "right_inverse(A)",
        doc: "R with A(R(i)) = i: where to find the offsets 0, 1, 2, ..",
        arity: (1, 1),
        eval: |cx, v| Ok(Value::Layout(right_inverse(cx, Args::new("right_inverse", v).layout(0)?)?)),
    },
    Op {
        name: "left_inverse",
        usage: "left_inverse(A)",
        doc: "R with R(A(i)) = i: which index an offset has.",
        arity: (1, 1),
        eval: |cx, v| Ok(Value::Layout(left_inverse(cx, Args::new("left_inverse", v).layout(0)?)?)),
    },
    Op {
        name: "max_common_vector",
        usage: "max_common_vector(A, B)",
        doc: "How many elements A and B have in a row, in the same order.",
        arity: (2, 2),
        eval: |cx, v| {
            let args = Args::new("max_common_vector", v);
            Ok(Value::Int(common_vector(cx, args.view(0)?, args.view(1)?)?))
        },
    },
    Op {
        name: "nullspace",
        usage: "nullspace(A)",
        doc: "The modes of stride 0, as a layout into A's indices.",
        arity: (1, 1),
        eval: |_, v| Ok(Value::Layout(nullspace(Args::new("nullspace", v).layout(0)?)?)),
    },
];

//! Complement: the layout of what another one leaves out.

use super::Op;
use super::args::Args;
use super::coalesce::{Leaves, coalesce, filter, from_leaves, owned};
use crate::{Condition, Cx, ErrorKind, Int, Layout, LayoutError, Result, Stride, Truth};

const OP: &str = "complement";

/// A layout `R` with increasing strides that is disjoint from `a` but for the offset 0, such that `(a, R)` gives each
/// offset at most once. It gives each of `0..m` where the strides of `a` are multiples of the span of the modes below
/// them; otherwise it leaves holes.
///
/// The strides of `a` must be positive, and its modes must not overlap.
pub fn complement(cx: &Cx, a: &Layout, m: &Int) -> Result<Layout> {
    complement_over(cx, a, std::slice::from_ref(m))
}

/// In the product of `extents`, rounded up in each of them.
pub(crate) fn complement_over(cx: &Cx, a: &Layout, extents: &[Int]) -> Result<Layout> {
    if let Some(m) = extents.iter().find(|m| m.bounds().1.is_some_and(|hi| hi < 0)) {
        return Err(LayoutError::new(ErrorKind::Domain, OP, format!("a size of {m}")).in_arg(1));
    }
    let f = filter(cx, a).map_err(|e| e.of(OP))?;
    let mut leaves: Leaves = owned(&f);
    if leaves.iter().any(|(s, _)| s.is(0)) {
        let message = format!("{a} has no elements, so no number of copies covers anything");
        return Err(LayoutError::new(ErrorKind::Domain, OP, message).in_arg(0).with_help("give extents of at least 1"));
    }
    // All 1s and 0s: the one offset 0.
    leaves.retain(|(s, d)| !(s.is(1) && d.scale.is(0)));
    for (_, d) in &leaves {
        positive(cx, a, d)?;
    }
    sort_by_stride(cx, OP, &mut leaves)?;
    let mut out: Leaves = Vec::with_capacity(leaves.len() + 1);
    let mut span = Int::ONE;
    for (s, d) in leaves {
        let d = d.scale;
        let gap = match (cx.divides(&span, &d), cx.le(&span, &d)) {
            (Truth::Yes, _) => d.div_exact(&span).map_or_else(|| cx.floor_div(&d, &span), Ok)?,
            (_, Truth::Yes) => cx.floor_div(&d, &span)?,
            (_, Truth::No) => return Err(overlap(a, &d, &span)),
            (_, Truth::Unknown) => return Err(LayoutError::undecided(OP, Condition::Le(span, d)).in_arg(0)),
        };
        out.push((gap, Stride::int(span)));
        span = s.mul(&d).map_err(|e| e.of(OP))?;
    }
    out.push((copies(cx, extents, &span)?, Stride::int(span)));
    coalesce(cx, &from_leaves(out)).map_err(|e| e.of(OP))
}

/// How many spans cover the extents: `ceil(m / span)` of one extent; of several it takes whole ones of the first, and
/// what of the span is left goes on in the next.
fn copies(cx: &Cx, extents: &[Int], span: &Int) -> Result<Int> {
    let (mut product, mut span) = (Int::ONE, span.clone());
    for (k, m) in extents.iter().enumerate() {
        product = product.mul(&ceil_div(cx, OP, m, &span)?).map_err(|e| e.of(OP))?;
        if k + 1 == extents.len() || span.is(1) || m.is(0) {
            continue;
        }
        span = match (&span, m, cx.le(&span, m)) {
            (Int::Const(_), Int::Const(_), _) => ceil_div(cx, OP, &span, m)?,
            (_, _, Truth::Yes) => Int::ONE,
            _ => match span.div_exact(m) {
                Some(left) => left,
                None if cx.divides(&span, m) == Truth::Yes => Int::ONE,
                None => return Err(LayoutError::undecided(OP, Condition::Le(span, m.clone())).in_arg(0)),
            },
        };
    }
    Ok(product)
}

fn positive(cx: &Cx, a: &Layout, d: &Stride) -> Result<()> {
    let Some(n) = d.as_int() else {
        let message = format!("stride {d} of {a} is a coordinate");
        return Err(LayoutError::new(ErrorKind::Kind, OP, message)
            .in_arg(0)
            .with_help("take the complement of each mode, with plain strides"));
    };
    match cx.le(&Int::ZERO, n) {
        Truth::No => {
            let message = format!("stride {n} of {a} is negative");
            Err(LayoutError::new(ErrorKind::Domain, OP, message).in_arg(0).with_help("use positive strides"))
        }
        Truth::Yes => Ok(()),
        Truth::Unknown => Err(LayoutError::undecided(OP, Condition::Le(Int::ZERO, n.clone())).in_arg(0)),
    }
}

fn overlap(a: &Layout, d: &Int, span: &Int) -> LayoutError {
    let message = format!("the modes of {a} overlap: stride {d} lies within {span}, the span of the modes below it");
    LayoutError::new(ErrorKind::NotInjective, OP, message)
        .in_arg(0)
        .with_help(format!("a stride of {span} or a multiple of it would do"))
}

/// Ascending, equal ones in their order. Symbolic strides must be comparable.
pub(crate) fn sort_by_stride(cx: &Cx, op: &'static str, leaves: &mut Leaves) -> Result<()> {
    if leaves.iter().all(|(_, d)| d.scale.as_const().is_some()) {
        leaves.sort_by_key(|(_, d)| d.scale.as_const());
        return Ok(());
    }
    for k in 1..leaves.len() {
        let mut at = k;
        while at > 0 {
            let (below, this) = (&leaves[at - 1].1.scale, &leaves[at].1.scale);
            match cx.le(below, this) {
                Truth::Yes => break,
                Truth::Unknown if cx.le(this, below) != Truth::Yes => {
                    // Ask for what is likely: products of more quantities are greater.
                    let (less, more) = if degree(this) < degree(below) { (this, below) } else { (below, this) };
                    return Err(LayoutError::undecided(op, Condition::Le(less.clone(), more.clone())).in_arg(0));
                }
                _ => leaves.swap(at - 1, at),
            }
            at -= 1;
        }
    }
    Ok(())
}

/// The greatest number of quantities in a product of the polynomial.
fn degree(n: &Int) -> u32 {
    match n {
        Int::Const(_) => 0,
        Int::Sym(p) => p.terms().map(|(m, _)| m.iter().map(|(_, power)| power).sum()).max().unwrap_or(0),
    }
}

/// `ceil(a / b)`; a symbolic `b` that does not cancel must be known to be at least 1.
pub(crate) fn ceil_div(cx: &Cx, op: &'static str, a: &Int, b: &Int) -> Result<Int> {
    if let (Int::Sym(_), None) = (b, a.div_exact(b)) {
        cx.require(op, Condition::Le(Int::ONE, b.clone()))?;
    }
    match a.div_exact(b) {
        Some(q) if !b.is(0) => Ok(q),
        _ => cx.ceil_div(a, b).map_err(|e| e.of(op)),
    }
}

pub(crate) static OPS: &[Op] = &[
    Op {
        name: OP,
        usage: "complement(A, M)",
        doc: "The layout of what A leaves out of M elements: where copies of A go to fill them.",
        arity: (1, 2),
        eval: |cx, v| {
            let args = Args::new(OP, v);
            match args.len() {
                1 => args.view(0)?.map(|a| unary(cx, a)),
                _ => {
                    let m = super::profile::product(&args.shape(1)?)?;
                    args.view(0)?.map(|a| complement(cx, a, &m))
                }
            }
        },
    },
    Op {
        name: "complement1",
        usage: "complement1(A)",
        doc: "The complement of A in as many elements as A spans.",
        arity: (1, 1),
        eval: |cx, v| Args::new("complement1", v).view(0)?.map(|a| unary(cx, a).map_err(|e| e.of("complement1"))),
    },
];

/// In as many elements as `a` spans.
fn unary(cx: &Cx, a: &Layout) -> Result<Layout> {
    let span = filter(cx, a)?.cosize(cx).map_err(|e| e.of(OP))?;
    complement(cx, a, &span)
}

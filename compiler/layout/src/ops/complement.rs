//! Complement: the layout of what another one leaves out.

use super::Op;
use super::args::Args;
use super::coalesce::{Leaves, coalesce, filter, from_leaves};
use crate::{Condition, Cx, ErrorKind, Int, Layout, LayoutError, Result, Stride, Truth};

const OP: &str = "complement";

/// A layout `R` with increasing strides, disjoint from `a` but for the offset 0, such that `a` and `R` together reach
/// each of `0..m` (and whatever the last repetition adds): `(a, R)` is a bijection onto an interval.
///
/// `a` needs positive strides, each a multiple of the span of the modes below it; without that the modes overlap, or
/// (what CuTe accepts) no such `R` exists.
pub fn complement(cx: &Cx, a: &Layout, m: &Int) -> Result<Layout> {
    if m.bounds().1.is_some_and(|hi| hi < 0) {
        return Err(LayoutError::new(ErrorKind::Domain, OP, format!("a size of {m}")).in_arg(1));
    }
    let f = filter(cx, a).map_err(|e| e.of(OP))?;
    let mut leaves: Leaves = f.leaves().into_iter().map(|(s, d)| (s.clone(), d.clone())).collect();
    if leaves.iter().any(|(s, _)| s.is(0)) {
        let message = format!("{a} has no elements, so no number of copies covers {m}");
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
        let gap = match cx.divides(&span, &d) {
            Truth::Yes => d.div_exact(&span).map_or_else(|| cx.floor_div(&d, &span), Ok)?,
            Truth::No => return Err(overlap(cx, a, &d, &span)),
            Truth::Unknown => return Err(LayoutError::undecided(OP, Condition::Divides(span, d)).in_arg(0)),
        };
        out.push((gap, Stride::int(span)));
        span = s.mul(&d).map_err(|e| e.of(OP))?;
    }
    out.push((ceil_div(cx, OP, m, &span)?, Stride::int(span)));
    coalesce(cx, &from_leaves(out)).map_err(|e| e.of(OP))
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

fn overlap(cx: &Cx, a: &Layout, d: &Int, span: &Int) -> LayoutError {
    let (kind, message) = if cx.le(span, d) == Truth::Yes {
        let message = format!("stride {d} of {a} is no multiple of {span}, the span of the modes below it");
        (ErrorKind::StrideOrder, message)
    } else {
        let message = format!("the modes of {a} overlap: stride {d} lies within {span}, the span of the modes below it");
        (ErrorKind::NotInjective, message)
    };
    let help = match (span.as_const(), d.as_const()) {
        (Some(span), Some(d)) if d > span => match (d / span * span, (d / span + 1).checked_mul(span)) {
            (below, Some(above)) => Some(format!("a stride of {below} or {above} would do")),
            (below, None) => Some(format!("a stride of {below} would do")),
        },
        (Some(span), Some(_)) => Some(format!("a stride of {span} or a multiple of it would do")),
        _ => None,
    };
    let e = LayoutError::new(kind, OP, message).in_arg(0);
    match help {
        Some(help) => e.with_help(help),
        None => e,
    }
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
                    return Err(LayoutError::undecided(op, Condition::Le(below.clone(), this.clone())).in_arg(0));
                }
                _ => leaves.swap(at - 1, at),
            }
            at -= 1;
        }
    }
    Ok(())
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

//! Fewer modes for the same function: coalesce, filter.

use super::Op;
use super::args::Args;
use crate::error::plural;
use crate::{Cx, ErrorKind, Int, IntTuple, Layout, LayoutError, Result, Stride, Truth, Tuple};

/// Extents with strides, without nesting.
pub(crate) type Leaves = Vec<(Int, Stride)>;

/// As few modes as possible, without nesting: same size, same values at the indices `0..size`. 1-sized modes go, and
/// neighbours `s0:d0`, `s1:d1` become one where `s0 * d0 == d1` for all values of the symbols.
///
/// A layout with an extent of 0 becomes `0:d`, `d` the stride of its first mode.
pub fn coalesce(cx: &Cx, a: &Layout) -> Result<Layout> {
    let leaves = owned(a);
    Ok(from_leaves(merge(cx, "coalesce", leaves)?))
}

/// Coalesces within each mode that is an integer in `profile` (its value means nothing), and leaves the modes beyond
/// it.
pub fn coalesce_by(cx: &Cx, a: &Layout, profile: &IntTuple) -> Result<Layout> {
    let Tuple::Node(parts) = profile else { return coalesce(cx, a).map_err(|e| e.of("coalesce_by")) };
    let mut modes = a.modes();
    if parts.len() > modes.len() || a.is_leaf() {
        let message =
            format!("the profile {profile} has {}, {a} has {}", plural(parts.len(), "mode", "modes"), modes.len());
        return Err(LayoutError::new(ErrorKind::Profile, "coalesce_by", message)
            .in_arg(1)
            .with_help("give one entry for each mode that is to be coalesced"));
    }
    for (k, (mode, part)) in modes.iter_mut().zip(parts).enumerate() {
        *mode = coalesce_by(cx, mode, part).map_err(|e| e.within(k))?;
    }
    Ok(Layout::of_modes(modes))
}

/// Modes of stride 0 get the extent 1: each value once.
pub fn filter_zeros(a: &Layout) -> Layout {
    fn walk(shape: &IntTuple, stride: &Tuple<Stride>) -> IntTuple {
        match (shape, stride) {
            (Tuple::Node(s), Tuple::Node(d)) => Tuple::Node(s.iter().zip(d).map(|(s, d)| walk(s, d)).collect()),
            (_, Tuple::Leaf(d)) if d.scale.is(0) => Tuple::Leaf(Int::ONE),
            _ => shape.clone(),
        }
    }
    a.with_shape(walk(a.shape(), a.stride()))
}

/// Coalesced, without modes of stride 0.
pub fn filter(cx: &Cx, a: &Layout) -> Result<Layout> {
    coalesce(cx, &filter_zeros(a)).map_err(|e| e.of("filter"))
}

/// The coalesced modes of a layout that is to be read beyond its size too, along its last mode: a 1-sized last mode
/// stands for more of its kind, as in CuTe's `coalesce_x`. At least one mode.
pub(crate) fn coalesce_open(cx: &Cx, a: &Layout) -> Result<Leaves> {
    let mut leaves = owned(a);
    match leaves.last_mut() {
        Some(last) if last.0.is(1) => last.0 = Int::Const(2),
        Some(_) => {}
        None => leaves.push((Int::Const(2), Stride::from(0))),
    }
    merge(cx, "coalesce", leaves)
}

/// Drops 1s and merges neighbours; all 1s give no mode. Folds from the right, as CuTe does.
pub(crate) fn merge(cx: &Cx, op: &'static str, leaves: Leaves) -> Result<Leaves> {
    if leaves.iter().any(|(s, _)| s.is(0)) {
        let stride = leaves.into_iter().find(|(s, _)| !s.is(1)).map_or(Stride::from(0), |(_, d)| d);
        return Ok(vec![(Int::ZERO, stride)]);
    }
    let mut merged: Leaves = Vec::with_capacity(leaves.len());
    for (s, d) in leaves.into_iter().rev() {
        if is_one(cx, &s) {
            continue;
        }
        match merged.last_mut() {
            Some((next, stride)) if follows(cx, &s, &d, stride) => {
                *next = s.mul(next).map_err(|e| e.of(op))?;
                *stride = d;
            }
            _ => merged.push((s, d)),
        }
    }
    merged.reverse();
    Ok(merged)
}

fn is_one(cx: &Cx, n: &Int) -> bool {
    match n {
        Int::Const(n) => *n == 1,
        Int::Sym(_) => cx.eq(n, &Int::ONE) == Truth::Yes,
    }
}

/// Whether a mode of stride `next` goes on where `s:d` ends.
fn follows(cx: &Cx, s: &Int, d: &Stride, next: &Stride) -> bool {
    // Both 0, whatever the units; else the units must agree. A product beyond 64 bits equals no stride.
    let both_zero = d.scale.is(0) && next.scale.is(0);
    both_zero || d.basis == next.basis && s.mul(&d.scale).is_ok_and(|end| cx.eq(&end, &next.scale) == Truth::Yes)
}

/// The layout of these modes: one is a leaf, none is `1:0`.
pub(crate) fn from_leaves(mut leaves: Leaves) -> Layout {
    match leaves.len() {
        0 => Layout::unit(),
        1 => leaves.pop().map_or_else(Layout::unit, |(s, d)| Layout::leaf(s, d)),
        _ => Layout::of_modes(leaves.into_iter().map(|(s, d)| Layout::leaf(s, d)).collect()),
    }
}

pub(crate) fn owned(a: &Layout) -> Leaves {
    a.leaves().into_iter().map(|(s, d)| (s.clone(), d.clone())).collect()
}

pub(crate) static OPS: &[Op] = &[
    Op {
        name: "coalesce",
        usage: "coalesce(A)",
        doc: "The same function of an index with as few modes as possible; coalesce(A, profile) as coalesce_by.",
        arity: (1, 2),
        eval: |cx, v| {
            let args = Args::new("coalesce", v);
            match args.len() {
                1 => args.view(0)?.map(|a| coalesce(cx, a)),
                _ => {
                    let profile = args.ints(1)?;
                    args.view(0)?.map(|a| coalesce_by(cx, a, &profile).map_err(|e| e.of("coalesce")))
                }
            }
        },
    },
    Op {
        name: "coalesce_by",
        usage: "coalesce_by(A, (1, 1))",
        doc: "Coalesces within each mode that the profile names, and keeps the modes apart.",
        arity: (2, 2),
        eval: |cx, v| {
            let args = Args::new("coalesce_by", v);
            let profile = args.ints(1)?;
            args.view(0)?.map(|a| coalesce_by(cx, a, &profile))
        },
    },
    Op {
        name: "filter",
        usage: "filter(A)",
        doc: "Coalesced, and without the modes of stride 0 and extent 1.",
        arity: (1, 1),
        eval: |cx, v| Args::new("filter", v).view(0)?.map(|a| filter(cx, a)),
    },
    Op {
        name: "filter_zeros",
        usage: "filter_zeros(A)",
        doc: "Modes of stride 0 get the extent 1.",
        arity: (1, 1),
        eval: |_, v| Args::new("filter_zeros", v).view(0)?.map(|a| Ok(filter_zeros(a))),
    },
];

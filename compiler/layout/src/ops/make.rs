//! Layouts from shapes.

use super::Op;
use super::args::Args;
use super::coalesce::{Leaves, coalesce, from_leaves};
use super::complement::sort_by_stride;
use super::composition::composition_as;
use super::left::Rule;
use super::zipped_divide;
use crate::{Cx, ErrorKind, Int, IntTuple, Layout, LayoutError, Result, Stride, Tuple, Value, gcd};

/// `n` elements in a row, as a layout: `n:1`, and `1:0` for one.
pub(crate) fn row(n: &Int) -> Layout {
    Layout::leaf(n.clone(), Stride::from(if n.is(1) { 0 } else { 1 }))
}

/// The shape with compact strides, leftmost fastest; 1-sized modes have the stride 0.
pub fn compact(shape: &IntTuple) -> Result<Layout> {
    let mut next = Int::ONE;
    let stride = shape.try_map(&mut |s| step(s, &mut next))?;
    Layout::new(shape.clone(), stride)
}

/// The shape with compact strides, rightmost fastest.
pub fn compact_right(shape: &IntTuple) -> Result<Layout> {
    let mut strides = Vec::new();
    let mut next = Int::ONE;
    for s in shape.leaves().into_iter().rev() {
        strides.push(step(s, &mut next)?);
    }
    let stride = shape.map(&mut |_| strides.pop().unwrap_or_else(|| Stride::from(0)));
    Layout::new(shape.clone(), stride)
}

/// The stride of the next mode of a compact layout.
fn step(s: &Int, next: &mut Int) -> Result<Stride> {
    if s.is(1) {
        return Ok(Stride::from(0));
    }
    let after = next.mul(s).map_err(|e| e.of("make_layout"))?;
    Ok(Stride::int(std::mem::replace(next, after)))
}

/// The shape with compact strides: the mode with the least order is fastest, of equal ones the leftmost. An entry of
/// `order` for a tuple of modes orders it as one. Without an order: leftmost fastest.
pub fn make_ordered_layout(cx: &Cx, shape: &IntTuple, order: Option<&IntTuple>) -> Result<Layout> {
    const OP: &str = "make_ordered_layout";
    let Some(order) = order else { return compact(shape).map_err(|e| e.of(OP)) };
    let mut ranks = Vec::new();
    spread(shape, order, &mut ranks)?;
    ordered(cx, OP, shape, ranks, Int::ONE)
}

/// The order of each leaf.
fn spread(shape: &IntTuple, order: &IntTuple, out: &mut Vec<Int>) -> Result<()> {
    match (shape, order) {
        (_, Tuple::Leaf(n)) => {
            out.resize(out.len() + shape.leaves().len(), n.clone());
            Ok(())
        }
        (Tuple::Node(s), Tuple::Node(o)) if s.len() == o.len() => {
            s.iter().zip(o).try_for_each(|(s, o)| spread(s, o, out))
        }
        _ => {
            let message = format!("order {order} is nested otherwise than shape {shape}");
            Err(LayoutError::new(ErrorKind::Profile, "make_ordered_layout", message)
                .in_arg(1)
                .with_help("give one number for each mode"))
        }
    }
}

/// Compact strides from `first` on, in the order of `ranks`, one for each leaf of `shape`.
fn ordered(cx: &Cx, op: &'static str, shape: &IntTuple, ranks: Vec<Int>, first: Int) -> Result<Layout> {
    let extents = shape.leaves();
    let mut sorted: Leaves = (0..).map(Int::Const).zip(ranks.into_iter().map(Stride::int)).collect();
    sort_by_stride(cx, op, &mut sorted)?;
    let mut strides = vec![Stride::from(0); extents.len()];
    let mut next = first;
    for k in sorted.iter().filter_map(|(k, _)| usize::try_from(k.as_const()?).ok()) {
        if let (Some(s), Some(d)) = (extents.get(k), strides.get_mut(k)) {
            *d = step(s, &mut next).map_err(|e| e.of(op))?;
        }
    }
    let mut strides = strides.into_iter();
    let stride = shape.map(&mut |_| strides.next().unwrap_or_else(|| Stride::from(0)));
    Layout::new(shape.clone(), stride)
}

/// Compact strides in the order of the given ones; what has the stride 0 keeps it.
pub fn make_layout_like(cx: &Cx, a: &Layout) -> Result<Layout> {
    like("make_layout_like", cx, a, Int::ONE)
}

fn like(op: &'static str, cx: &Cx, a: &Layout, first: Int) -> Result<Layout> {
    let mut ranks = Vec::new();
    for (_, d) in a.leaves() {
        ranks.push(d.as_int().cloned().ok_or_else(|| {
            let message = format!("stride {d} of {a} is a coordinate, which has no order");
            LayoutError::new(ErrorKind::Kind, op, message).in_arg(0)
        })?);
    }
    let distinct = super::coalesce::filter_zeros(a);
    let compact = ordered(cx, op, distinct.shape(), ranks, first)?;
    Layout::new(a.shape().clone(), compact.stride().clone())
}

/// A layout for the values of one thread: mode 0 compact, leftmost fastest, then the others in the order of their
/// strides; what has the stride 0 keeps it.
pub fn make_fragment_like(cx: &Cx, a: &Layout) -> Result<Layout> {
    const OP: &str = "make_fragment_like";
    let modes = a.modes();
    let (first, others) = match modes.as_slice() {
        [first, others @ ..] if !others.is_empty() => (first, others),
        _ => return compact(a.shape()).map_err(|e| e.of(OP)),
    };
    let distinct = super::coalesce::filter_zeros(first);
    let value = Layout::new(first.shape().clone(), compact(distinct.shape())?.stride().clone())?;
    let rest = like(OP, cx, &Layout::of_modes(others.to_vec()), distinct.size()?)?;
    Ok(Layout::of_modes([vec![value], rest.modes()].concat()))
}

/// Each coordinate's value is itself: strides are the unit vectors.
pub fn make_identity_layout(shape: &IntTuple) -> Layout {
    fn units(shape: &IntTuple, path: &mut Vec<usize>) -> Tuple<Stride> {
        match shape {
            Tuple::Leaf(_) => Tuple::Leaf(Stride { scale: Int::ONE, basis: path.clone() }),
            Tuple::Node(modes) => {
                let entry = |(k, m)| {
                    path.push(k);
                    let unit = units(m, path);
                    path.pop();
                    unit
                };
                Tuple::Node(modes.iter().enumerate().map(entry).collect())
            }
        }
    }
    Layout::congruent(shape.clone(), units(shape, &mut Vec::new()))
}

/// Shares `n` out over the modes of a shape from the left, as much of it as divides each: an increasing layout.
pub fn domain_distribute(cx: &Cx, shape: &IntTuple, n: i64) -> Result<Layout> {
    const OP: &str = "domain_distribute";
    if n < 1 {
        let message = format!("{n} parts");
        return Err(LayoutError::new(ErrorKind::Domain, OP, message).in_arg(1).with_help("give at least 1"));
    }
    let (mut rest, mut prefix) = (n, Int::ONE);
    let mut out: Leaves = Vec::new();
    for s in shape.leaves() {
        let Some(extent) = s.as_const() else {
            let message = format!("extent {s} must be known when the kernel is compiled");
            return Err(LayoutError::new(ErrorKind::Kind, OP, message).in_arg(0));
        };
        let part = gcd(extent, rest);
        if part > 0 {
            rest /= part;
        }
        out.push((Int::Const(part), Stride::int(prefix.clone())));
        prefix = prefix.mul(s).map_err(|e| e.of(OP))?;
    }
    coalesce(cx, &from_leaves(out)).map_err(|e| e.of(OP))
}

pub(crate) static OPS: &[Op] = &[
    Op {
        name: "make_layout",
        usage: "make_layout(shape, stride)",
        doc: "A layout from its shape (compact, leftmost fastest) and strides; of layouts: one with them as modes.",
        arity: (1, usize::MAX),
        eval: |_, v| {
            let args = Args::new("make_layout", v);
            if let Value::Layout(_) | Value::Composed(_) = args.value(0)? {
                let modes = (0..args.len()).map(|k| args.layout(k).cloned()).collect::<Result<_>>()?;
                return Ok(Value::Layout(Layout::of_modes(modes)));
            }
            let shape = args.ints(0)?;
            Ok(Value::Layout(match args.len() {
                1 => compact(&shape).map_err(|e| e.in_arg(0))?,
                2 => Layout::new(shape, args.strides(1)?).map_err(|e| e.of("make_layout").in_arg(1))?,
                n => {
                    let message = format!("a shape and its strides are 2 arguments, not {n}");
                    return Err(LayoutError::new(ErrorKind::Kind, "make_layout", message).in_arg(2));
                }
            }))
        },
    },
    Op {
        name: "make_ordered_layout",
        usage: "make_ordered_layout(shape, order)",
        doc: "Compact strides, the mode with the least order fastest.",
        arity: (1, 2),
        eval: |cx, v| {
            let args = Args::new("make_ordered_layout", v);
            let order = if args.len() > 1 { Some(args.ints(1)?) } else { None };
            Ok(Value::Layout(make_ordered_layout(cx, &args.shape(0)?, order.as_ref())?))
        },
    },
    Op {
        name: "make_layout_like",
        usage: "make_layout_like(A)",
        doc: "Compact strides in the order of A's; stride 0 stays.",
        arity: (1, 1),
        eval: |cx, v| Args::new("make_layout_like", v).view(0)?.map(|a| make_layout_like(cx, a)),
    },
    Op {
        name: "make_fragment_like",
        usage: "make_fragment_like(A)",
        doc: "A thread's values: mode 0 compact, the other modes in the order of A's strides; stride 0 stays.",
        arity: (1, 1),
        eval: |cx, v| Ok(Value::Layout(make_fragment_like(cx, Args::new("make_fragment_like", v).view(0)?.inner())?)),
    },
    Op {
        name: "make_identity_layout",
        usage: "make_identity_layout(shape)",
        doc: "Coordinate -> itself: the strides are unit vectors.",
        arity: (1, 1),
        eval: |_, v| Ok(Value::Layout(make_identity_layout(&Args::new("make_identity_layout", v).shape(0)?))),
    },
    Op {
        name: "identity_divide",
        usage: "identity_divide(shape, tiler)",
        doc: "zipped_divide(make_identity_layout(shape), tiler): the coordinates of each tile.",
        arity: (2, 2),
        eval: |cx, v| {
            let args = Args::new("identity_divide", v);
            let identity = make_identity_layout(&args.shape(0)?);
            Ok(Value::Layout(zipped_divide(cx, &identity, &args.tiler(1)?).map_err(|e| e.of("identity_divide"))?))
        },
    },
    Op {
        name: "identity_compose",
        usage: "identity_compose(shape, tiler)",
        doc: "The coordinates that a tiler selects; those outside of the shape are to be predicated.",
        arity: (2, 2),
        eval: |cx, v| {
            let args = Args::new("identity_compose", v);
            let identity = make_identity_layout(&args.shape(0)?);
            let composed = composition_as(Rule::RoundUp, cx, &identity, &args.tiler(1)?);
            Ok(Value::Layout(composed.map_err(|e| e.of("identity_compose"))?))
        },
    },
    Op {
        name: "domain_distribute",
        usage: "domain_distribute(shape, n)",
        doc: "Shares n out over the modes of a shape, leftmost first.",
        arity: (2, 2),
        eval: |cx, v| {
            let args = Args::new("domain_distribute", v);
            Ok(Value::Layout(domain_distribute(cx, &args.shape(0)?, args.constant(1)?)?))
        },
    },
];

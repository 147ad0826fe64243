//! Coordinates, indices and offsets.

use super::Op;
use super::args::{Args, View};
use super::profile::product;
use crate::{
    Composed, Coord, CoordLeaf, Cx, ErrorKind, Int, IntTuple, Layout, LayoutError, Result, Stride, Tuple, Value,
};
use std::fmt;

/// What a layout gives for a coordinate.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Offset {
    /// A number of elements.
    Int(Int),
    /// A multiple of one unit, of a layout that has a single one: `3@0`.
    Unit(Stride),
    /// A coordinate, padded with 0 to its greatest mode.
    Coord(IntTuple),
}

impl Offset {
    /// The sum: of two numbers, or of two coordinates, the shorter padded with 0. The number 0 is neutral.
    pub fn add(&self, other: &Offset) -> Result<Offset> {
        match (self, other) {
            (Offset::Int(a), Offset::Int(b)) => Ok(Offset::Int(a.add(b)?)),
            (Offset::Int(z), x) | (x, Offset::Int(z)) if z.is(0) => Ok(x.clone()),
            (Offset::Int(_), _) | (_, Offset::Int(_)) => {
                let message = format!("{self} and {other}, an offset and a coordinate, do not add up");
                Err(LayoutError::new(ErrorKind::Kind, "eval", message))
            }
            (a, b) => add("eval", &a.coord(), &b.coord()).map(Offset::Coord),
        }
    }

    /// A number, or the coordinate.
    pub fn coord(&self) -> IntTuple {
        match self {
            Offset::Int(n) => Tuple::Leaf(n.clone()),
            Offset::Unit(u) => entry(&u.basis, u.scale.clone()),
            Offset::Coord(c) => c.clone(),
        }
    }

    /// The number of elements, if it is one.
    pub fn as_int(&self) -> Option<&Int> {
        match self {
            Offset::Int(n) => Some(n),
            _ => None,
        }
    }

    /// As a value: a single unit's multiple becomes the coordinate that it is.
    pub fn value(&self) -> Value {
        Value::ints(&self.coord())
    }
}

impl fmt::Display for Offset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Offset::Int(n) => n.fmt(f),
            Offset::Unit(u) => u.fmt(f),
            Offset::Coord(c) => c.fmt(f),
        }
    }
}

impl Layout {
    /// The offset of a coordinate: an index, or nested as the shape or less deeply. An index counts leftmost fastest
    /// and may run past the size, along the last mode. Symbolic coordinates are taken to be within the shape.
    pub fn eval(&self, cx: &Cx, coord: &IntTuple) -> Result<Offset> {
        self.eval_coord(cx, "eval", &coord.map(&mut |n| CoordLeaf::At(n.clone())))
    }

    /// The same, `_` counting as 0.
    pub(crate) fn eval_coord(&self, cx: &Cx, op: &'static str, coord: &Coord) -> Result<Offset> {
        let mut sum = Sum::default();
        walk(cx, op, coord, self.shape(), self.stride(), &mut sum)?;
        sum.result(op)
    }
}

impl Composed {
    /// The offset of a coordinate, behind the swizzle; it must be known now, or the swizzle change nothing.
    pub fn eval(&self, cx: &Cx, coord: &IntTuple) -> Result<Int> {
        let inner = self.layout.eval(cx, coord)?;
        let Offset::Int(inner) = inner else {
            let message = format!("{} gives coordinates, which a swizzle cannot take", self.layout);
            return Err(LayoutError::new(ErrorKind::Kind, "eval", message));
        };
        swizzled(self, &self.offset.add(&inner)?)
    }
}

fn swizzled(c: &Composed, offset: &Int) -> Result<Int> {
    match offset {
        Int::Const(n) => Ok(Int::Const(c.swizzle.apply(*n))),
        n if c.swizzle.is_identity() => Ok(n.clone()),
        n => {
            let message = format!("offset {n} must be known before {} is applied to it", c.swizzle);
            Err(LayoutError::new(ErrorKind::Kind, "eval", message))
        }
    }
}

/// Index and shape: the natural coordinate. Each level splits its own entry; the last mode takes what is left over.
pub fn idx2crd(cx: &Cx, coord: &IntTuple, shape: &IntTuple) -> Result<IntTuple> {
    const OP: &str = "idx2crd";
    match (coord, shape) {
        (Tuple::Leaf(_), Tuple::Leaf(_)) => Ok(coord.clone()),
        (Tuple::Leaf(i), Tuple::Node(modes)) => {
            let parts = split(cx, OP, i, modes)?;
            let parts = parts.into_iter().zip(modes).map(|(i, m)| idx2crd(cx, &Tuple::Leaf(i), m));
            Ok(Tuple::Node(parts.collect::<Result<_>>()?))
        }
        (Tuple::Node(c), Tuple::Node(s)) if c.len() == s.len() => {
            let parts = c.iter().zip(s).enumerate().map(|(k, (c, s))| idx2crd(cx, c, s).map_err(|e| e.within(k)));
            Ok(Tuple::Node(parts.collect::<Result<_>>()?))
        }
        _ => Err(profile(OP, coord, shape)),
    }
}

/// Offset, shape and strides: each leaf's coordinate is `(i / d) % s`, 0 where the extent is 1 or the stride 0.
pub fn idx2crd_strided(cx: &Cx, coord: &IntTuple, shape: &IntTuple, stride: &IntTuple) -> Result<IntTuple> {
    const OP: &str = "idx2crd";
    match (coord, shape, stride) {
        (_, Tuple::Leaf(s), Tuple::Leaf(d)) if s.is(1) || d.is(0) => Ok(Tuple::Leaf(Int::ZERO)),
        (Tuple::Leaf(i), Tuple::Leaf(s), Tuple::Leaf(d)) => {
            let at = cx.floor_div(i, d).map_err(|e| e.of(OP))?;
            let over = cx.floor_div(&at, s).map_err(|e| e.of(OP))?;
            Ok(Tuple::Leaf(at.sub(&over.mul(s)?)?))
        }
        (Tuple::Leaf(_), Tuple::Node(s), Tuple::Node(d)) if s.len() == d.len() => {
            let parts = s.iter().zip(d).map(|(s, d)| idx2crd_strided(cx, coord, s, d));
            Ok(Tuple::Node(parts.collect::<Result<_>>()?))
        }
        (Tuple::Node(c), Tuple::Node(s), Tuple::Node(d)) if c.len() == s.len() && s.len() == d.len() => {
            let parts = c.iter().zip(s.iter().zip(d)).map(|(c, (s, d))| idx2crd_strided(cx, c, s, d));
            Ok(Tuple::Node(parts.collect::<Result<_>>()?))
        }
        _ => Err(profile(OP, coord, shape)),
    }
}

fn profile(op: &'static str, coord: &impl fmt::Display, shape: &IntTuple) -> LayoutError {
    let message = format!("coordinate {coord} is nested deeper than shape {shape}, or has another number of entries");
    LayoutError::new(ErrorKind::Profile, op, message)
        .in_arg(0)
        .with_help("a coordinate is one index, or has an entry for each mode of the shape")
}

/// An index over modes, leftmost fastest; the last one takes what is left over.
fn split(cx: &Cx, op: &'static str, i: &Int, modes: &[IntTuple]) -> Result<Vec<Int>> {
    if i.as_const().is_some_and(|i| i < 0) && modes.len() > 1 {
        let message = format!("index {i} is below 0");
        return Err(LayoutError::new(ErrorKind::OutOfRange, op, message).in_arg(0));
    }
    let mut rest = i.clone();
    let mut parts = Vec::with_capacity(modes.len());
    for (k, mode) in modes.iter().enumerate() {
        if k + 1 == modes.len() {
            parts.push(rest);
            break;
        }
        let n = product(mode)?;
        if n.is(0) {
            let message = format!("the extent is 0: there is no index {i}");
            return Err(LayoutError::new(ErrorKind::OutOfRange, op, message).in_arg(0).at(crate::Path(vec![k])));
        }
        let over = cx.floor_div(&rest, &n).map_err(|e| e.of(op))?;
        parts.push(rest.sub(&over.mul(&n)?)?);
        rest = over;
    }
    Ok(parts)
}

/// Adds up what a coordinate's entries contribute.
fn walk(
    cx: &Cx,
    op: &'static str,
    coord: &Coord,
    shape: &IntTuple,
    stride: &Tuple<Stride>,
    sum: &mut Sum,
) -> Result<()> {
    match (coord, shape, stride) {
        (Tuple::Leaf(CoordLeaf::Keep), _, _) => {
            // Nothing, but the result has an entry for each unit.
            stride.leaves().into_iter().try_for_each(|d| sum.add(d, &Int::ZERO))
        }
        (Tuple::Leaf(CoordLeaf::At(i)), Tuple::Leaf(_), Tuple::Leaf(d)) => sum.add(d, i),
        (Tuple::Leaf(CoordLeaf::At(i)), Tuple::Node(s), Tuple::Node(d)) => {
            let parts = split(cx, op, i, s)?;
            for (i, (s, d)) in parts.into_iter().zip(s.iter().zip(d)) {
                walk(cx, op, &Tuple::Leaf(CoordLeaf::At(i)), s, d, sum)?;
            }
            Ok(())
        }
        (Tuple::Node(c), Tuple::Node(s), Tuple::Node(d)) if c.len() == s.len() => {
            for (k, (c, (s, d))) in c.iter().zip(s.iter().zip(d)).enumerate() {
                walk(cx, op, c, s, d, sum).map_err(|e| e.within(k))?;
            }
            Ok(())
        }
        _ => Err(profile(op, coord, shape)),
    }
}

/// A sum of multiples of strides.
#[derive(Default)]
struct Sum {
    int: Option<Int>,
    units: Vec<Stride>,
}

impl Sum {
    fn add(&mut self, d: &Stride, n: &Int) -> Result<()> {
        let term = d.times(n)?;
        if !d.basis.is_empty() {
            self.units.push(term);
        } else if !d.scale.is(0) {
            self.int = Some(match &self.int {
                Some(sum) => sum.add(&term.scale)?,
                None => term.scale,
            });
        }
        Ok(())
    }

    fn result(self, op: &'static str) -> Result<Offset> {
        match (self.int, self.units.as_slice()) {
            (int, []) => Ok(Offset::Int(int.unwrap_or(Int::ZERO))),
            (None, [one]) => Ok(Offset::Unit(one.clone())),
            (None, [first, rest @ ..]) => {
                let mut all = entry(&first.basis, first.scale.clone());
                for unit in rest {
                    all = add(op, &all, &entry(&unit.basis, unit.scale.clone()))?;
                }
                Ok(Offset::Coord(all))
            }
            (Some(n), [unit, ..]) => {
                let message = format!("offset {n} and coordinate {unit} do not add up");
                Err(LayoutError::new(ErrorKind::Kind, op, message))
            }
        }
    }
}

/// The coordinate that has `n` in the entry `path` and 0 before it.
fn entry(path: &[usize], n: Int) -> IntTuple {
    match path {
        [] => Tuple::Leaf(n),
        [k, inner @ ..] => {
            let mut entries = vec![Tuple::Leaf(Int::ZERO); *k];
            entries.push(entry(inner, n));
            Tuple::Node(entries)
        }
    }
}

/// Entry by entry, the shorter padded with 0; the integer 0 is neutral.
fn add(op: &'static str, a: &IntTuple, b: &IntTuple) -> Result<IntTuple> {
    match (a, b) {
        (Tuple::Leaf(x), Tuple::Leaf(y)) => Ok(Tuple::Leaf(x.add(y)?)),
        (Tuple::Leaf(z), other) | (other, Tuple::Leaf(z)) if z.is(0) => Ok(other.clone()),
        (Tuple::Node(x), Tuple::Node(y)) => {
            let zero = Tuple::Leaf(Int::ZERO);
            let entry = |of: &[IntTuple], k: usize| of.get(k).unwrap_or(&zero).clone();
            let sum = (0..x.len().max(y.len())).map(|k| add(op, &entry(x, k), &entry(y, k)));
            Ok(Tuple::Node(sum.collect::<Result<_>>()?))
        }
        _ => {
            let message = format!("{a} and {b}, an entry of a coordinate and a part of it, do not add up");
            Err(LayoutError::new(ErrorKind::Kind, op, message))
        }
    }
}

/// `coord` on `shape` with `stride`: the offset, `_` counting as 0.
pub fn crd2idx(cx: &Cx, coord: &Coord, shape: &IntTuple, stride: &Tuple<Stride>) -> Result<Offset> {
    let layout = Layout::new(shape.clone(), stride.clone()).map_err(|e| e.of("crd2idx").in_arg(2))?;
    layout.eval_coord(cx, "crd2idx", coord)
}

pub(crate) static OPS: &[Op] = &[
    Op {
        name: "eval",
        usage: "eval(A, coordinate)",
        doc: "The offset of a coordinate or index.",
        arity: (2, 2),
        eval: |cx, v| {
            let args = Args::new("eval", v);
            let coord = args.ints(1)?;
            Ok(match args.view(0)? {
                View::Plain(a) => a.eval(cx, &coord).map_err(|e| e.in_arg(1))?.value(),
                View::Swizzled(c) => Value::Int(c.eval(cx, &coord).map_err(|e| e.in_arg(1))?),
            })
        },
    },
    Op {
        name: "crd2idx",
        usage: "crd2idx(coordinate, shape, stride)",
        doc: "The index or, with strides, the offset of a coordinate; `_` counts as 0.",
        arity: (2, 3),
        eval: |cx, v| {
            let args = Args::new("crd2idx", v);
            let (coord, shape) = (args.coord(0)?, args.shape(1)?);
            let stride = match (args.len(), args.value(1)?) {
                (3, _) => args.strides(2)?,
                (_, Value::Layout(a)) => a.stride().clone(),
                _ => super::make::compact(&shape)?.stride().clone(),
            };
            Ok(crd2idx(cx, &coord, &shape, &stride)?.value())
        },
    },
    Op {
        name: "idx2crd",
        usage: "idx2crd(index, shape)",
        doc: "The coordinate of an index, leftmost fastest; with strides, of an offset.",
        arity: (2, 3),
        eval: |cx, v| {
            let args = Args::new("idx2crd", v);
            let (coord, shape) = (args.ints(0)?, args.shape(1)?);
            Ok(Value::ints(&match args.len() {
                3 => idx2crd_strided(cx, &coord, &shape, &args.ints(2)?)?,
                _ => idx2crd(cx, &coord, &shape)?,
            }))
        },
    },
];

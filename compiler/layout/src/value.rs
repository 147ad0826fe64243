//! Anything that the language's and the command line's layout operations take or give.

use crate::{
    AtomFamily, Composed, Coord, CoordLeaf, Int, IntTuple, Layout, LayoutWindow, MmaAtom, Swizzle, TiledMma, Tiler,
    Tuple,
};
use std::fmt;
use std::sync::Arc;

/// A compile-time value of the algebra.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Value {
    /// `true`, `false`
    Bool(bool),
    /// `(a, b, ..)`: shapes, coordinates, projections.
    Tuple(Vec<Value>),
    /// An integer.
    Int(Int),
    /// `_`
    Keep,
    /// `X` in a projection.
    Skip,
    /// `shape:stride`
    Layout(Layout),
    /// `<t0, t1>`
    Tiler(Tiler),
    /// `Sw<b,m,s>`
    Swizzle(Swizzle),
    /// `Sw<b,m,s> o offset o layout`
    Composed(Composed),
    /// `start o shape:stride`: a tile or a thread's part.
    Window(LayoutWindow),
    /// A matrix instruction's description.
    Atom(Arc<MmaAtom>),
    /// An instruction's atoms, one for each extent in N.
    Family(Arc<AtomFamily>),
    /// Atoms tiled over threads and values.
    Mma(Arc<TiledMma>),
    /// A dtype's name, which only matrix instructions know.
    DType(Arc<str>),
}

impl Value {
    /// A tuple of integers as a value.
    pub fn ints(tuple: &IntTuple) -> Value {
        match tuple {
            Tuple::Leaf(n) => Value::Int(n.clone()),
            Tuple::Node(modes) => Value::Tuple(modes.iter().map(Value::ints).collect()),
        }
    }

    /// The shape that it is, if it is an integer or a tuple of them.
    pub fn as_ints(&self) -> Option<IntTuple> {
        match self {
            Value::Int(n) => Some(Tuple::Leaf(n.clone())),
            Value::Tuple(modes) => Some(Tuple::Node(modes.iter().map(Value::as_ints).collect::<Option<_>>()?)),
            _ => None,
        }
    }

    /// The coordinate that it is: integers and `_`.
    pub fn as_coord(&self) -> Option<Coord> {
        match self {
            Value::Int(n) => Some(Tuple::Leaf(CoordLeaf::At(n.clone()))),
            Value::Keep => Some(Tuple::Leaf(CoordLeaf::Keep)),
            Value::Tuple(modes) => Some(Tuple::Node(modes.iter().map(Value::as_coord).collect::<Option<_>>()?)),
            _ => None,
        }
    }

    /// What kind of value it is, for messages ("a layout").
    pub fn describe(&self) -> &'static str {
        match self {
            Value::Bool(_) => "a truth value",
            Value::Tuple(_) => "a tuple",
            Value::Int(_) => "an integer",
            Value::Keep => "`_`",
            Value::Skip => "`X`",
            Value::Layout(_) => "a layout",
            Value::Tiler(_) => "a tiler",
            Value::Swizzle(_) => "a swizzle",
            Value::Composed(_) => "a swizzled layout",
            Value::Window(_) => "a layout with a start",
            Value::Atom(_) => "an MMA atom",
            Value::Family(_) => "a family of MMA atoms",
            Value::Mma(_) => "a tiled MMA",
            Value::DType(_) => "a dtype",
        }
    }
}

impl fmt::Display for Value {
    /// CuTe's notation, as `golden/layout` has it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Bool(b) => b.fmt(f),
            Value::Tuple(modes) => crate::tuple::write_list(f, "(", modes, ")"),
            Value::Int(n) => n.fmt(f),
            Value::Keep => f.write_str("_"),
            Value::Skip => f.write_str("X"),
            Value::Layout(l) => l.fmt(f),
            Value::Tiler(t) => t.fmt(f),
            Value::Swizzle(s) => s.fmt(f),
            Value::Composed(c) => c.fmt(f),
            Value::Window(p) => p.fmt(f),
            Value::Atom(a) => a.name.fmt(f),
            Value::Family(a) => a.fmt(f),
            Value::Mma(m) => m.fmt(f),
            Value::DType(d) => d.fmt(f),
        }
    }
}

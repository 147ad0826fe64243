//! Layouts that begin somewhere.

use crate::ops::Offset;
use crate::{Composed, Coord, Cx, ErrorKind, IntTuple, Layout, LayoutError, Result, Value, ops};
use std::fmt;

/// A layout from a start on: a slice, a tile, a thread's part. CuTe's tensor, without memory: coordinate ->
/// `start + layout(coordinate)`.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Window {
    /// What is at coordinate 0: an offset, or the coordinate of a coordinate tensor.
    pub start: Offset,
    /// The rest.
    pub layout: Layout,
}

impl Window {
    /// From the beginning.
    pub fn new(layout: Layout) -> Window {
        Window { start: Offset::Int(crate::Int::ZERO), layout }
    }

    /// The same elements cut or reordered: `f` changes the layout only.
    pub fn map(&self, f: impl FnOnce(&Layout) -> Result<Layout>) -> Result<Window> {
        Ok(Window { start: self.start.clone(), layout: f(&self.layout)? })
    }

    /// The modes where `coord` has `_`; the start moves to the rest.
    pub fn slice(&self, cx: &Cx, coord: &Coord) -> Result<Window> {
        let (layout, moved) = ops::slice(cx, &self.layout, coord)?;
        Ok(Window { start: self.start.add(&moved)?, layout })
    }

    /// What is at a coordinate.
    pub fn eval(&self, cx: &Cx, coord: &IntTuple) -> Result<Offset> {
        self.start.add(&self.layout.eval(cx, coord)?)
    }
}

impl fmt::Display for Window {
    /// `96 o (4,2):(24,1)`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} o {}", self.start, self.layout)
    }
}

/// What partitioning works on: a layout, perhaps from a start on, or behind a swizzle, where the start stays inside.
#[derive(Clone, Debug)]
pub(crate) enum Whole<'a> {
    Window(Window),
    Swizzled(&'a Composed),
}

impl<'a> Whole<'a> {
    /// Argument `k` of `op`.
    pub fn of(op: &'static str, values: &'a [Value], k: usize) -> Result<Whole<'a>> {
        Ok(match values.get(k) {
            Some(Value::Layout(l)) => Whole::Window(Window::new(l.clone())),
            Some(Value::Window(p)) => Whole::Window(p.clone()),
            Some(Value::Composed(c)) => Whole::Swizzled(c),
            other => {
                let got = other.map_or("nothing", Value::describe);
                let message = format!("argument {} must be a layout, not {got}", k + 1);
                return Err(LayoutError::new(ErrorKind::Kind, op, message).in_arg(k));
            }
        })
    }

    pub fn layout(&self) -> &Layout {
        match self {
            Whole::Window(p) => &p.layout,
            Whole::Swizzled(c) => &c.layout,
        }
    }

    /// A part of it, which begins `part.start` later.
    pub fn part(&self, op: &'static str, part: Window) -> Result<Value> {
        Ok(match self {
            Whole::Window(p) => {
                Value::Window(Window { start: p.start.add(&part.start).map_err(|e| e.of(op))?, layout: part.layout })
            }
            Whole::Swizzled(c) => {
                let Offset::Int(moved) = &part.start else {
                    let message = format!("{} gives coordinates, which a swizzle cannot take", c.layout);
                    return Err(LayoutError::new(ErrorKind::Kind, op, message).in_arg(0));
                };
                Value::Composed(Composed { offset: c.offset.add(moved)?, layout: part.layout, swizzle: c.swizzle })
            }
        })
    }

    /// All of it, with its modes cut or reordered.
    pub fn recut(&self, layout: Layout) -> Value {
        match self {
            Whole::Window(p) if p.start == Offset::Int(crate::Int::ZERO) => Value::Layout(layout),
            Whole::Window(p) => Value::Window(Window { start: p.start.clone(), layout }),
            Whole::Swizzled(c) => Value::Composed(Composed { layout, ..(*c).clone() }),
        }
    }
}

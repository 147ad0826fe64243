//! Layouts that begin somewhere.

use crate::ops::args::Args;
use crate::ops::{Offset, Op};
use crate::{Composed, Coord, Cx, ErrorKind, IntTuple, Layout, LayoutError, Result, Value, ops};
use std::fmt;

/// A layout from a start on: a slice, a tile, a thread's part. CuTe's tensor, without memory: coordinate ->
/// `start + layout(coordinate)`.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct LayoutWindow {
    /// What is at coordinate 0: an offset, or the coordinate of a coordinate tensor.
    pub start: Offset,
    /// The rest.
    pub layout: Layout,
}

impl LayoutWindow {
    /// From the beginning.
    pub fn new(layout: Layout) -> LayoutWindow {
        LayoutWindow { start: Offset::Int(crate::Int::ZERO), layout }
    }

    /// The same elements cut or reordered: `f` changes the layout only.
    pub fn map(&self, f: impl FnOnce(&Layout) -> Result<Layout>) -> Result<LayoutWindow> {
        Ok(LayoutWindow { start: self.start.clone(), layout: f(&self.layout)? })
    }

    /// The modes where `coord` has `_`; the start moves to the rest.
    pub fn slice(&self, cx: &Cx, coord: &Coord) -> Result<LayoutWindow> {
        let (layout, moved) = ops::slice(cx, &self.layout, coord)?;
        Ok(LayoutWindow { start: self.start.add(&moved)?, layout })
    }

    /// What is at a coordinate.
    pub fn eval(&self, cx: &Cx, coord: &IntTuple) -> Result<Offset> {
        self.start.add(&self.layout.eval(cx, coord)?)
    }
}

impl fmt::Display for LayoutWindow {
    /// `96 o (4,2):(24,1)`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} o {}", self.start, self.layout)
    }
}

/// Operations that cut or reorder modes: of a window they do it to its layout, and the start stays.
const CUTS: &[&str] = &[
    "coalesce",
    "composition",
    "flat_divide",
    "flatten",
    "group",
    "logical_divide",
    "select",
    "take",
    "tiled_divide",
    "zipped_divide",
];

/// Operations whose answer does not depend on the start.
const MEASURES: &[&str] = &["depth", "is_injective", "layout", "rank", "shape", "size", "slice_offset", "stride"];

impl Op {
    /// Evaluates it; the number of arguments is right. Besides what the operation itself takes, its first argument may
    /// be a window, where that has a meaning.
    pub fn call(&self, cx: &Cx, values: &[Value]) -> Result<Value> {
        let Some(Value::Window(window)) = values.first() else { return (self.eval)(cx, values) };
        let of_layout = || {
            let mut values = values.to_vec();
            values[0] = Value::Layout(window.layout.clone());
            (self.eval)(cx, &values)
        };
        let args = Args::new(self.name, values);
        match self.name {
            "slice" => Ok(Value::Window(window.slice(cx, &args.coord(1)?)?)),
            "eval" => {
                let at = window.eval(cx, &args.ints(1)?);
                at.map(|offset| offset.value()).map_err(|e| e.in_arg(1))
            }
            name if CUTS.contains(&name) => Ok(match of_layout()? {
                Value::Layout(layout) => Value::Window(LayoutWindow { start: window.start.clone(), layout }),
                other => other,
            }),
            name if MEASURES.contains(&name) => of_layout(),
            _ => (self.eval)(cx, values),
        }
    }
}

/// What partitioning works on: a layout, perhaps from a start on, or behind a swizzle, where the start stays inside.
#[derive(Clone, Debug)]
pub(crate) enum Whole<'a> {
    Window(LayoutWindow),
    Swizzled(&'a Composed),
}

impl<'a> Whole<'a> {
    /// Argument `k` of `op`.
    pub fn of(op: &'static str, values: &'a [Value], k: usize) -> Result<Whole<'a>> {
        Ok(match values.get(k) {
            Some(Value::Layout(l)) => Whole::Window(LayoutWindow::new(l.clone())),
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
    pub fn part(&self, op: &'static str, part: LayoutWindow) -> Result<Value> {
        Ok(match self {
            Whole::Window(p) => Value::Window(LayoutWindow {
                start: p.start.add(&part.start).map_err(|e| e.of(op))?,
                layout: part.layout,
            }),
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
            Whole::Window(p) => Value::Window(LayoutWindow { start: p.start.clone(), layout }),
            Whole::Swizzled(c) => Value::Composed(Composed { layout, ..(*c).clone() }),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{Cx, Env, eval_expr};

    fn eval(text: &str) -> String {
        eval_expr(&Cx::default(), &Env::new(), text).map_or_else(|e| e.located(text), |v| v.to_string())
    }

    #[test]
    fn windows_are_cut_again() {
        let tile = "local_tile((12,24):(24,1), (4,2), (1,_))";
        assert_eq!(eval(tile), "96 o (4,2,12):(24,1,2)");
        assert_eq!(eval(&format!("slice({tile}, (_,_,3))")), "102 o (4,2):(24,1)");
        assert_eq!(eval(&format!("eval({tile}, (1,1,1))")), "123");
        assert_eq!(eval(&format!("start({tile})")), "96");
        assert_eq!(eval(&format!("(rank({tile}), size({tile}), shape({tile}))")), "(3,96,(4,2,12))");
        assert_eq!(eval(&format!("zipped_divide({tile}, <2,2>)")), "96 o ((2,2),(2,1,12)):((24,1),(48,0,2))");
        assert_eq!(eval(&format!("local_partition({tile}, (2,2):(1,2), 3)")), "121 o (2,1,12):(48,0,2)");
        assert_eq!(eval("slice((8,4) o (4,4):(1@0,1@1), (1,_))"), "(9,4) o (4):(1@1)");
        assert_eq!(
            eval("right_inverse(4 o 8:1)"),
            "column 15: right_inverse: argument 1 must be a layout, not a layout with a start"
        );
    }
}

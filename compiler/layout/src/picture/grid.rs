//! A layout as a grid: mode 0 goes down, the other modes go to the right.

use super::{Cell, Grid, Shade, unknown};
use crate::points::coordinate;
use crate::{IntTuple, Point, Points, Result, Tuple, Value};

/// A single mode is one row up to here, and rows of [`ROW`] beyond.
const LONGEST_ROW: i64 = 32;
const ROW: i64 = 16;

pub(crate) struct LayoutGrid {
    points: Points,
    rows: i64,
    cols: i64,
    heads: Heads,
}

enum Heads {
    /// Coordinates in the shapes of the rows and of the columns.
    Coordinates(IntTuple, IntTuple),
    /// One mode in several rows, which begin at multiples of this.
    Wrapped(i64),
}

impl LayoutGrid {
    pub(crate) fn new(value: &Value) -> Result<LayoutGrid> {
        let layout = match value {
            Value::Composed(c) => &c.layout,
            Value::Window(w) => &w.layout,
            Value::Layout(l) => l,
            other => return Err(super::without(other)),
        };
        let points = Points::of(value).ok_or_else(|| unknown(value))?;
        let modes = layout.shape().modes();
        let size = |modes: &[IntTuple]| {
            modes.iter().flat_map(|m| m.leaves()).map(|n| n.as_const().unwrap_or(0)).product::<i64>()
        };
        let unit = IntTuple::from(1);
        let (rows, cols, heads) = match modes {
            [] => (1, 1, Heads::Coordinates(unit.clone(), unit)),
            [only] if points.size() > LONGEST_ROW => {
                let _ = only;
                ((points.size() - 1) / ROW + 1, ROW, Heads::Wrapped(ROW))
            }
            [only] => (1, points.size(), Heads::Coordinates(unit, only.clone())),
            [down, right] => (size(&modes[..1]), size(&modes[1..]), Heads::Coordinates(down.clone(), right.clone())),
            [down, rest @ ..] => {
                (size(&modes[..1]), size(rest), Heads::Coordinates(down.clone(), Tuple::Node(rest.to_vec())))
            }
        };
        Ok(LayoutGrid { points, rows, cols, heads })
    }

    fn index(&self, row: usize, col: usize) -> i64 {
        match self.heads {
            Heads::Coordinates(..) => row as i64 + col as i64 * self.rows,
            Heads::Wrapped(n) => row as i64 * n + col as i64,
        }
    }
}

impl Grid for LayoutGrid {
    fn sides(&self) -> (usize, usize) {
        (self.rows as usize, self.cols as usize)
    }

    fn row_head(&self, row: usize) -> String {
        match &self.heads {
            Heads::Coordinates(down, _) => coordinate(down, row as i64).to_string(),
            Heads::Wrapped(n) => (row as i64 * n).to_string(),
        }
    }

    fn col_head(&self, col: usize) -> String {
        match &self.heads {
            Heads::Coordinates(_, right) => coordinate(right, col as i64).to_string(),
            Heads::Wrapped(_) => format!("+{col}"),
        }
    }

    fn cell(&self, row: usize, col: usize) -> Cell {
        let index = self.index(row, col);
        if index >= self.points.size() {
            return Cell { text: String::new(), second: None, shade: Shade::Empty };
        }
        match self.points.at(index) {
            Some(point) => Cell { shade: shade(&point), text: point.to_string(), second: None },
            None => Cell { text: "overflow".into(), second: None, shade: Shade::Empty },
        }
    }

    fn breaks(&self) -> (usize, usize) {
        let Heads::Coordinates(down, right) = &self.heads else { return (0, 0) };
        let first = |shape: &IntTuple| match shape {
            Tuple::Leaf(_) => 0,
            Tuple::Node(modes) => modes
                .first()
                .map_or(1, |m| m.leaves().iter().map(|n| n.as_const().unwrap_or(1)).product::<i64>())
                .max(0) as usize,
        };
        (first(down), first(right))
    }
}

/// Offsets by what remains of 8, as `print_latex` shades them; coordinates along the diagonals.
fn shade(point: &Point) -> Shade {
    let n = match point {
        Point::Offset(n) | Point::Unit(n, _) => *n,
        Point::Coord(c) => c.leaves().iter().fold(0i64, |sum, n| sum.wrapping_add(n.as_const().unwrap_or(0))),
    };
    Shade::Step(n.rem_euclid(8) as u8)
}

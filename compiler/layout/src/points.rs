//! The values of a layout whose numbers are all known, by linear index.

use crate::ops::Offset;
use crate::{Int, IntTuple, Layout, Stride, Swizzle, Tuple, Value};
use std::fmt;

/// What a layout gives for one index.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Point {
    /// An offset.
    Offset(i64),
    /// A multiple of one unit, of a layout that has a single one: `3@0`.
    Unit(i64, Vec<usize>),
    /// A coordinate, padded with 0 to its greatest mode.
    Coord(IntTuple),
}

impl Point {
    /// `None` if a number is not known.
    fn of(offset: Offset) -> Option<Point> {
        Some(match offset {
            Offset::Int(n) => Point::Offset(n.as_const()?),
            Offset::Unit(u) => Point::Unit(u.scale.as_const()?, u.basis),
            Offset::Coord(c) => Point::Coord(c),
        })
    }
}

impl From<Point> for Offset {
    fn from(point: Point) -> Offset {
        match point {
            Point::Offset(n) => Offset::Int(Int::from(n)),
            Point::Unit(n, basis) => Offset::Unit(Stride { scale: Int::from(n), basis }),
            Point::Coord(c) => Offset::Coord(c),
        }
    }
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Point::Offset(n) => n.fmt(f),
            Point::Unit(n, basis) => {
                n.fmt(f)?;
                basis.iter().rev().try_for_each(|k| write!(f, "@{k}"))
            }
            Point::Coord(c) => c.fmt(f),
        }
    }
}

/// A layout, perhaps behind a swizzle, ready to be evaluated often.
#[derive(Clone, Debug)]
pub struct Points {
    size: i64,
    /// Extent, stride and the entry of the result that it adds to.
    leaves: Vec<(i64, i64, usize)>,
    swizzle: Option<Swizzle>,
    offset: i64,
    /// Where it begins, if that is a coordinate.
    start: Option<Offset>,
    result: Form,
}

#[derive(Clone, Debug)]
enum Form {
    Offset,
    Unit(Vec<usize>),
    /// Numbers of the entries; `None` where no stride leads.
    Coord(Tuple<Option<usize>>),
}

impl Points {
    /// `None` if the value is no layout, if a number of it is not known, if its size does not fit 64 bits, or if its
    /// strides do not add up (an offset and a coordinate, an entry and a part of it).
    pub fn of(value: &Value) -> Option<Points> {
        match value {
            Value::Layout(l) => Points::of_layout(l),
            Value::Composed(c) => {
                let mut points = Points::of_layout(&c.layout)?;
                (points.swizzle, points.offset) = (Some(c.swizzle), c.offset.as_const()?);
                matches!(points.result, Form::Offset).then_some(points)
            }
            Value::Window(p) => {
                let mut points = Points::of_layout(&p.layout)?;
                match &p.start {
                    Offset::Int(n) => points.offset = n.as_const()?,
                    start => points.start = Some(start.clone()),
                }
                // An offset does not add to coordinates; the offset 0 does.
                (matches!(points.result, Form::Offset) || points.offset == 0).then_some(points)
            }
            _ => None,
        }
    }

    /// As [`Points::of`].
    pub fn of_layout(layout: &Layout) -> Option<Points> {
        let leaves = layout.leaves();
        let size = leaves.iter().try_fold(1i64, |n, (s, _)| n.checked_mul(s.as_const()?))?;
        let mut units: Vec<&[usize]> = Vec::new();
        let mut list = Vec::with_capacity(leaves.len());
        let mut offsets = false;
        for (s, d) in leaves {
            let (s, scale) = (s.as_const()?, d.scale.as_const()?);
            let slot = match d.basis.as_slice() {
                [] => {
                    offsets |= scale != 0;
                    0
                }
                basis => units.iter().position(|u| *u == basis).unwrap_or_else(|| {
                    units.push(basis);
                    units.len() - 1
                }),
            };
            list.push((s, scale, slot));
        }
        if offsets && !units.is_empty() {
            return None;
        }
        let terms = layout.leaves().iter().filter(|(_, d)| !d.basis.is_empty()).count();
        let result = match (terms, &units[..]) {
            (0, _) => Form::Offset,
            (1, [unit]) => Form::Unit(unit.to_vec()),
            _ => {
                let mut form = Tuple::Leaf(None);
                for (k, unit) in units.iter().enumerate() {
                    insert(&mut form, unit, k)?;
                }
                Form::Coord(form)
            }
        };
        Some(Points { size, leaves: list, swizzle: None, offset: 0, start: None, result })
    }

    /// Number of indices.
    pub fn size(&self) -> i64 {
        self.size
    }

    /// Whether it gives coordinates.
    pub fn has_coords(&self) -> bool {
        !matches!(self.result, Form::Offset) || self.start.is_some()
    }

    /// The value at an index, which the last mode takes beyond the size as CuTe does; `None` if it does not fit 64
    /// bits.
    pub fn at(&self, index: i64) -> Option<Point> {
        let mut sums = match &self.result {
            Form::Offset | Form::Unit(_) => Vec::new(),
            Form::Coord(form) => vec![0i64; form.leaves().len()],
        };
        let (mut rest, mut first) = (index, self.offset);
        for (k, &(extent, stride, slot)) in self.leaves.iter().enumerate() {
            let digit = match k + 1 == self.leaves.len() {
                true => rest,
                false => rest.checked_rem(extent)?,
            };
            rest = rest.checked_div(extent)?;
            let sum = sums.get_mut(slot).unwrap_or(&mut first);
            *sum = sum.checked_add(digit.checked_mul(stride)?)?;
        }
        let point = match &self.result {
            Form::Offset => Point::Offset(self.swizzle.map_or(first, |s| s.apply(first))),
            Form::Unit(basis) => Point::Unit(first, basis.clone()),
            Form::Coord(form) => Point::Coord(form.map(&mut |slot| Int::from(slot.map_or(0, |slot| sums[slot])))),
        };
        match &self.start {
            None => Some(point),
            Some(start) => start.add(&point.into()).ok().and_then(Point::of),
        }
    }

    /// The value at an index, if it is an offset.
    pub fn offset_at(&self, index: i64) -> Option<i64> {
        match self.at(index)? {
            Point::Offset(n) => Some(n),
            _ => None,
        }
    }
}

/// Puts `slot` at `path`, outermost mode first; `None` if an entry and a part of it are both wanted.
fn insert(form: &mut Tuple<Option<usize>>, path: &[usize], slot: usize) -> Option<()> {
    let Some((&mode, rest)) = path.split_first() else {
        return match form {
            Tuple::Leaf(at @ None) => {
                *at = Some(slot);
                Some(())
            }
            _ => None,
        };
    };
    if matches!(form, Tuple::Leaf(None)) {
        *form = Tuple::Node(Vec::new());
    }
    let Tuple::Node(modes) = form else { return None };
    while modes.len() <= mode {
        modes.push(Tuple::Leaf(None));
    }
    insert(&mut modes[mode], rest, slot)
}

/// The coordinate of a linear index in a shape whose extents are known and positive.
pub(crate) fn coordinate(shape: &IntTuple, index: i64) -> IntTuple {
    let mut rest = index;
    shape.map(&mut |n| {
        let n = n.as_const().unwrap_or(1).max(1);
        let digit = rest % n;
        rest /= n;
        Int::from(digit)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse_value;

    fn points(text: &str) -> String {
        let Some(p) = Points::of(&parse_value(text).unwrap()) else { return "none".into() };
        let all: Vec<String> = (0..p.size()).map(|i| p.at(i).map_or("?".into(), |p| p.to_string())).collect();
        all.join(" ")
    }

    #[test]
    fn values_by_index() {
        assert_eq!(points("((2,2),2):((4,1),2)"), "0 4 1 5 2 6 3 7");
        assert_eq!(points("Sw<1,0,3> o 5 o (8,2):(12,3)"), "5 17 28 40 53 65 76 88 9 20 32 45 57 68 80 93");
        assert_eq!(points("(2,3):(1@0,1@1)"), "(0,0) (1,0) (0,1) (1,1) (0,2) (1,2)");
        assert_eq!(
            points("((2),(2,2)):((1@1@0),(0,1@2))"),
            "((0,0),0,0) ((0,1),0,0) ((0,0),0,0) ((0,1),0,0) ((0,0),0,1) ((0,1),0,1) ((0,0),0,1) ((0,1),0,1)"
        );
        assert_eq!(points("(2,2):(0,3@1)"), "0@1 0@1 3@1 3@1");
        assert_eq!(points("(2,2):(1,3@1)"), "none");
        assert_eq!(points("(2,2):(1@0,1@1@0)"), "none");
        assert_eq!(points("4:9223372036854775807"), "0 9223372036854775807 ? ?");
        assert_eq!(points("():()"), "0");
        assert_eq!(points("96 o (2,2):(1,4)"), "96 97 100 101");
        assert_eq!(points("(8,4) o (2,2):(1@0,2@1)"), "(8,4) (9,4) (8,6) (9,6)");
        assert_eq!(points("(8,4) o (2):(1@1)"), "(8,4) (8,5)");
        assert_eq!(points("(8,4) o ():()"), "(8,4)");
        assert_eq!(points("3 o 2:1@1"), "none");
        assert_eq!(points("(4,0):(1,4)"), "");
        assert_eq!(points("(9223372036854775807,4):(0,0)"), "none");
    }

    #[test]
    fn the_last_mode_goes_on() {
        let p = Points::of(&parse_value("(3,2):(1,10)").unwrap()).unwrap();
        assert_eq!(p.offset_at(14), Some(42));
    }

    #[test]
    fn coordinates() {
        let shape = parse_value("(3,(2,3))").unwrap().as_ints().unwrap();
        assert_eq!(coordinate(&shape, 16).to_string(), "(1,(1,2))");
        assert_eq!(coordinate(&IntTuple::from(4), 3).to_string(), "3");
    }
}

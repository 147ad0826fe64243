//! Which elements are there: tails of tiles that do not divide their extents.
//!
//! What cuts a layout is done to the identity layout of its shape, whose values are coordinates. An element is there if
//! its coordinate is below the shape in every entry; where it lies follows from the same coordinate, so that data and
//! predicate cannot come apart. (CuTe's identity tensors and `elem_less`.)

use crate::ops::{self, Offset};
use crate::{
    Condition, Coord, Cx, ErrorKind, Int, IntTuple, Layout, LayoutError, LayoutWindow, Result, Stride, Tiler, Truth,
    Tuple,
};

/// A layout that remembers, through all cutting and reordering, which coordinate of the original each element has.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Predicated {
    /// Where the element at each coordinate of the original lies.
    base: Layout,
    /// Of the original's coordinate 0.
    start: Offset,
    /// The coordinate of each element; what lies outside of the original's shape is not there.
    coords: LayoutWindow,
}

impl Predicated {
    /// All elements of a layout, as they are.
    pub fn new(data: Layout) -> Predicated {
        Predicated::of(LayoutWindow::new(data))
    }

    /// All elements of a window.
    pub fn of(data: LayoutWindow) -> Predicated {
        let coords = LayoutWindow::new(ops::make_identity_layout(data.layout.shape()));
        Predicated { base: data.layout, start: data.start, coords }
    }

    /// The shape of the original, which bounds the coordinates.
    pub fn bounds(&self) -> &IntTuple {
        self.base.shape()
    }

    /// The coordinates of the elements: basis strides.
    pub fn coords(&self) -> &LayoutWindow {
        &self.coords
    }

    /// Where the elements lie; those that are not there would lie outside.
    pub fn data(&self) -> Result<LayoutWindow> {
        let origin = fit(&self.coords.start.coord(), self.bounds())?;
        let layout = &self.coords.layout;
        let stride = layout.stride().try_map(&mut |d: &Stride| self.step(d))?;
        Ok(LayoutWindow {
            start: self.start.add(&self.base.eval(&Cx::default(), &origin)?)?,
            layout: Layout::new(layout.shape().clone(), stride)?,
        })
    }

    /// The stride of the original along the unit, so many times.
    fn step(&self, d: &Stride) -> Result<Stride> {
        // A mode whose stride is no unit does not move: 1-sized modes, and those that repeat.
        if d.scale.is(0) {
            return Ok(Stride::from(0));
        }
        let mut at = self.base.stride();
        for &k in &d.basis {
            at = match at {
                Tuple::Node(modes) if k < modes.len() => &modes[k],
                _ => return Err(foreign(d, self.bounds())),
            };
        }
        match at {
            Tuple::Leaf(step) => step.times(&d.scale),
            Tuple::Node(_) => Err(foreign(d, self.bounds())),
        }
    }

    /// Cuts or reorders: `f` may be any operation on layouts, as what it does to coordinates says what it does to data.
    pub fn map(&self, f: impl FnOnce(&Layout) -> Result<Layout>) -> Result<Predicated> {
        Ok(Predicated { coords: self.coords.map(f)?, ..self.clone() })
    }

    /// [`ops::composition`]
    pub fn composition(&self, cx: &Cx, tiler: &Tiler) -> Result<Predicated> {
        self.map(|l| ops::composition(cx, l, tiler))
    }

    /// [`ops::logical_divide`]
    pub fn logical_divide(&self, cx: &Cx, tiler: &Tiler) -> Result<Predicated> {
        self.map(|l| ops::logical_divide(cx, l, tiler))
    }

    /// [`ops::zipped_divide`]
    pub fn zipped_divide(&self, cx: &Cx, tiler: &Tiler) -> Result<Predicated> {
        self.map(|l| ops::zipped_divide(cx, l, tiler))
    }

    /// [`ops::tiled_divide`]
    pub fn tiled_divide(&self, cx: &Cx, tiler: &Tiler) -> Result<Predicated> {
        self.map(|l| ops::tiled_divide(cx, l, tiler))
    }

    /// [`ops::flat_divide`]
    pub fn flat_divide(&self, cx: &Cx, tiler: &Tiler) -> Result<Predicated> {
        self.map(|l| ops::flat_divide(cx, l, tiler))
    }

    /// [`ops::slice`]
    pub fn slice(&self, cx: &Cx, coord: &Coord) -> Result<Predicated> {
        Ok(Predicated { coords: self.coords.slice(cx, coord)?, ..self.clone() })
    }

    /// [`ops::local_tile`]
    pub fn local_tile(&self, cx: &Cx, tiler: &Tiler, coord: &Coord) -> Result<Predicated> {
        self.within(ops::local_tile(cx, &self.coords.layout, tiler, coord)?)
    }

    /// [`ops::local_partition`]
    pub fn local_partition(&self, cx: &Cx, threads: &Layout, index: &Int) -> Result<Predicated> {
        self.within(ops::local_partition(cx, &self.coords.layout, threads, index)?)
    }

    fn within(&self, part: LayoutWindow) -> Result<Predicated> {
        let coords = LayoutWindow { start: self.coords.start.add(&part.start)?, layout: part.layout };
        Ok(Predicated { coords, ..self.clone() })
    }

    /// The original's coordinate of the element at `index`, nested as the original's shape.
    pub fn coordinate(&self, cx: &Cx, index: &IntTuple) -> Result<IntTuple> {
        fit(&self.coords.eval(cx, index)?.coord(), self.bounds())
    }

    /// Whether the element at `index` is there.
    pub fn contains(&self, cx: &Cx, index: &IntTuple) -> Result<Truth> {
        let at = self.coordinate(cx, index)?;
        let mut answer = Truth::Yes;
        for (x, n) in at.leaves().into_iter().zip(self.bounds().leaves()) {
            match cx.le(&x.add(&Int::ONE)?, n) {
                Truth::Yes => {}
                Truth::No => return Ok(Truth::No),
                Truth::Unknown => answer = Truth::Unknown,
            }
        }
        Ok(answer)
    }

    /// Whether all elements are there. The conditions that would make it so, one for each entry of the coordinate that
    /// may lie outside: none, and no predicate is needed.
    pub fn open(&self, cx: &Cx) -> Result<Vec<Condition>> {
        let mut last = fit(&self.coords.start.coord(), self.bounds())?;
        for (s, d) in self.coords.layout.leaves() {
            if d.scale.is(0) {
                continue;
            }
            let span = s.sub(&Int::ONE)?.mul(&d.scale)?;
            let mut at = &mut last;
            for &k in &d.basis {
                at = match at {
                    Tuple::Node(modes) if k < modes.len() => &mut modes[k],
                    _ => return Err(foreign(d, self.bounds())),
                };
            }
            let Tuple::Leaf(n) = at else { return Err(foreign(d, self.bounds())) };
            *n = n.add(&span)?;
        }
        let ends = last.leaves().into_iter().zip(self.bounds().leaves());
        let conditions = ends.map(|(x, n)| Ok(Condition::Le(x.add(&Int::ONE)?, n.clone())));
        let conditions: Vec<Condition> = conditions.collect::<Result<_>>()?;
        Ok(conditions.into_iter().filter(|c| cx.decide(c) != Truth::Yes).collect())
    }

    /// For each element, leftmost fastest, whether it is there. All numbers must be known, and no more than `most`.
    pub fn predicates(&self, cx: &Cx, most: i64) -> Result<Vec<bool>> {
        const OP: &str = "predicates";
        let size = self.coords.layout.size()?;
        let Some(count) = size.as_const().filter(|n| *n <= most) else {
            let message = format!("{size} elements are not known now, or more than {most}");
            return Err(LayoutError::new(ErrorKind::Domain, OP, message));
        };
        let answer = |i: i64| match self.contains(cx, &IntTuple::from(i))? {
            Truth::Yes => Ok(true),
            Truth::No => Ok(false),
            Truth::Unknown => {
                let message = format!("whether element {i} is within {} is not known", self.bounds());
                Err(LayoutError::new(ErrorKind::Kind, OP, message))
            }
        };
        (0..count).map(answer).collect()
    }
}

fn foreign(d: &Stride, shape: &IntTuple) -> LayoutError {
    let message = format!("stride {d} is no coordinate of shape {shape}");
    LayoutError::new(ErrorKind::Profile, "predicates", message)
}

/// A coordinate with its missing entries, which are 0.
fn fit(coord: &IntTuple, shape: &IntTuple) -> Result<IntTuple> {
    match (coord, shape) {
        (_, Tuple::Leaf(_)) if coord.is_leaf() => Ok(coord.clone()),
        (Tuple::Leaf(n), Tuple::Node(modes)) if n.is(0) => {
            Ok(Tuple::Node(modes.iter().map(|m| fit(coord, m)).collect::<Result<_>>()?))
        }
        (Tuple::Node(entries), Tuple::Node(modes)) if entries.len() <= modes.len() => {
            let zero = Tuple::Leaf(Int::ZERO);
            let entry = |k: usize| entries.get(k).unwrap_or(&zero);
            let all = modes.iter().enumerate().map(|(k, m)| fit(entry(k), m));
            Ok(Tuple::Node(all.collect::<Result<_>>()?))
        }
        _ => {
            let message = format!("{coord} is no coordinate of shape {shape}");
            Err(LayoutError::new(ErrorKind::Profile, "predicates", message))
        }
    }
}

#[cfg(test)]
mod tests;

//! Where data and blocks are in the memory of a PIM target: layouts whose strides name coordinates.

use std::fmt;

pub use ptoc_abi::Coord;

/// Part of a dimension: `extent` steps of `stride` along a coordinate.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct PlaceLeaf {
    /// Steps, at least 0.
    pub extent: i64,
    /// What a step moves along; `None`: it moves nowhere (stride 0).
    pub coord: Option<Coord>,
    /// How far, at least 0.
    pub stride: i64,
}

impl fmt::Display for PlaceLeaf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.coord {
            Some(c) => write!(f, "{}:{}@{c}", self.extent, self.stride),
            None => write!(f, "{}:0", self.extent),
        }
    }
}

/// Where each element (of a tensor) or block (of a grid) is. Dimension by dimension the leaves, the first of which runs
/// fastest: index `i` of a dimension is `i % e0` of leaf 0, `i / e0 % e1` of leaf 1, and so on.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct ElementPlacement {
    /// One entry for each dimension; the extents of its leaves have the dimension's as product.
    pub dims: Vec<Vec<PlaceLeaf>>,
    /// `over unit`: a copy in the banks of every unit. No leaf names a coordinate above the row then.
    pub replicated: bool,
}

impl ElementPlacement {
    /// Coordinates of the element with these indices, in the order of [`Coord::ALL`]. Indices are inside the
    /// dimensions.
    pub fn at(&self, index: &[i64]) -> [i64; 8] {
        let mut out = [0; 8];
        for (leaves, &i) in self.dims.iter().zip(index) {
            let mut rest = i;
            for leaf in leaves.iter().filter(|l| l.extent > 0) {
                if let Some(c) = leaf.coord {
                    out[c as usize] += rest % leaf.extent * leaf.stride;
                }
                rest /= leaf.extent;
            }
        }
        out
    }

    /// The same places with as few leaves as possible; equal for equal placements that differ in how they are written.
    #[must_use]
    pub fn normal(&self) -> ElementPlacement {
        let one = |dim: &Vec<PlaceLeaf>| {
            let mut out: Vec<PlaceLeaf> = Vec::new();
            for leaf in dim.iter().filter(|l| l.extent != 1) {
                match out.last_mut() {
                    Some(last)
                        if last.coord == leaf.coord && last.extent.checked_mul(last.stride) == Some(leaf.stride) =>
                    {
                        last.extent = last.extent.saturating_mul(leaf.extent);
                    }
                    _ => out.push(*leaf),
                }
            }
            out
        };
        ElementPlacement { dims: self.dims.iter().map(one).collect(), replicated: self.replicated }
    }

    /// All leaves, dimension by dimension.
    pub fn leaves(&self) -> impl Iterator<Item = &PlaceLeaf> {
        self.dims.iter().flatten()
    }

    /// The largest value of a coordinate; `None` if the placement is empty or the number does not fit.
    pub fn reach(&self, coord: Coord) -> Option<i64> {
        if self.leaves().any(|l| l.extent == 0) {
            return None;
        }
        let of_coord = self.leaves().filter(|l| l.coord == Some(coord));
        of_coord.into_iter().try_fold(0i64, |sum, l| sum.checked_add((l.extent - 1).checked_mul(l.stride)?))
    }

    /// Whether any leaf names this coordinate.
    pub fn names(&self, coord: Coord) -> bool {
        self.leaves().any(|l| l.coord == Some(coord))
    }

    /// Extents of the dimensions.
    pub fn shape(&self) -> Option<Vec<i64>> {
        let product = |d: &Vec<PlaceLeaf>| d.iter().try_fold(1i64, |n, l| n.checked_mul(l.extent));
        self.dims.iter().map(product).collect()
    }
}

impl fmt::Display for ElementPlacement {
    /// `[(8:1@col, 4:1@bg), (16:2@byte)]`, and ` over unit` behind it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[")?;
        for (k, dim) in self.dims.iter().enumerate() {
            f.write_str(if k > 0 { ", (" } else { "(" })?;
            for (k, leaf) in dim.iter().enumerate() {
                write!(f, "{}{leaf}", if k > 0 { ", " } else { "" })?;
            }
            f.write_str(")")?;
        }
        f.write_str(if self.replicated { "] over unit" } else { "]" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leaf(extent: i64, coord: Coord, stride: i64) -> PlaceLeaf {
        PlaceLeaf { extent, coord: Some(coord), stride }
    }

    #[test]
    fn names_are_those_of_the_layouts() {
        for c in Coord::ALL {
            assert_eq!(Coord::from_name(c.name()), Some(c));
            assert_eq!(Coord::ALL[c as usize], c);
            assert_eq!(ptoc_layout::NAMED_UNITS[c as usize], c.name());
        }
        assert_eq!(Coord::from_name("rank"), None);
    }

    /// The 2 x 2 patches of geo_sample.tile, W = 8 and C = 128: pixel (h, w) of channel c.
    #[test]
    fn elements_of_patches() {
        let (w, bursts) = (8, 8);
        let p = ElementPlacement {
            dims: vec![
                vec![leaf(2, Coord::Col, 2 * bursts), leaf(4, Coord::Row, w / 2)],
                vec![leaf(2, Coord::Col, bursts), leaf(w / 2, Coord::Row, 1)],
                vec![leaf(16, Coord::Byte, 2), leaf(bursts, Coord::Col, 1)],
            ],
            replicated: true,
        };
        let at = p.at(&[5, 3, 17]);
        // Row 2 of patches, patch 1; lower right pixel; second burst, second element.
        assert_eq!((at[Coord::Row as usize], at[Coord::Col as usize], at[Coord::Byte as usize]), (9, 25, 2));
        assert_eq!((p.reach(Coord::Row), p.reach(Coord::Col), p.reach(Coord::Byte)), (Some(15), Some(31), Some(30)));
        assert_eq!((p.reach(Coord::Bank), p.names(Coord::Bank)), (Some(0), false));
        assert_eq!(p.shape(), Some(vec![8, 8, 128]));
        let more =
            vec![leaf(1, Coord::Bank, 3), leaf(4, Coord::Byte, 2), leaf(4, Coord::Byte, 8), leaf(8, Coord::Col, 1)];
        let other = ElementPlacement { dims: vec![p.dims[0].clone(), p.dims[1].clone(), more], replicated: true };
        assert!(other != p && other.normal() == p.normal());
        assert!(ElementPlacement { replicated: false, ..other }.normal() != p.normal());
        assert_eq!(p.to_string(), "[(2:16@col, 4:4@row), (2:8@col, 4:1@row), (16:2@byte, 8:1@col)] over unit");
    }
}

//! The bytes that an access touches, and whether two of them meet.

use ptoc_isa::{Loc, TileType};
use ptoc_tensor::DType;
use rustc_hash::FxHashMap;

/// Elements of a window in a layout of its own that are looked at one by one; more are taken as a whole.
const ELEMENTS: u64 = 1 << 14;

/// What an access touches.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) enum Area {
    /// Bytes of a memory.
    Bytes {
        /// The location that stands for it.
        loc: Loc,
        /// First byte and one past the last, sorted, apart.
        ranges: Vec<(u64, u64)>,
        /// All of them are touched; else some of them.
        exact: bool,
    },
    /// A part of a tensor.
    Part(super::global::TensorPart),
}

/// Overlap of two areas.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Meet {
    No,
    /// Not decided.
    Maybe,
    Yes,
}

/// Areas by number.
#[derive(Default)]
pub(super) struct Areas {
    pub(super) all: Vec<Area>,
    ids: FxHashMap<Area, u32>,
    meets: FxHashMap<(u32, u32), Meet>,
}

impl Areas {
    pub(super) fn id(&mut self, area: Area) -> u32 {
        if let Some(&id) = self.ids.get(&area) {
            return id;
        }
        let id = self.all.len() as u32;
        self.all.push(area.clone());
        self.ids.insert(area, id);
        id
    }

    pub(super) fn meet(&mut self, a: u32, b: u32) -> Meet {
        let all = &self.all;
        *self.meets.entry((a, b)).or_insert_with(|| match (&all[a as usize], &all[b as usize]) {
            (Area::Bytes { loc, ranges, exact }, Area::Bytes { loc: l, ranges: r, exact: e }) => {
                match loc == l && common(ranges, r).is_some() {
                    false => Meet::No,
                    true if *exact && *e => Meet::Yes,
                    true => Meet::Maybe,
                }
            }
            (Area::Part(x), Area::Part(y)) => x.meet(y),
            _ => Meet::No,
        })
    }

    /// Whether all bytes of `a` are certainly in `b`.
    pub(super) fn inside(&self, a: u32, b: u32) -> bool {
        match (&self.all[a as usize], &self.all[b as usize]) {
            (Area::Bytes { loc, ranges, .. }, Area::Bytes { loc: l, ranges: r, exact: true }) => {
                loc == l && ranges.iter().all(|x| r.iter().any(|y| y.0 <= x.0 && x.1 <= y.1))
            }
            _ => false,
        }
    }

    /// The first common bytes of two areas of a memory.
    pub(super) fn common(&self, a: u32, b: u32) -> Option<(Loc, u64, u64)> {
        match (&self.all[a as usize], &self.all[b as usize]) {
            (Area::Bytes { loc, ranges, .. }, Area::Bytes { ranges: r, .. }) => {
                common(ranges, r).map(|(from, to)| (*loc, from, to))
            }
            _ => None,
        }
    }
}

/// The first bytes that are in both.
fn common(a: &[(u64, u64)], b: &[(u64, u64)]) -> Option<(u64, u64)> {
    let (mut i, mut j) = (0, 0);
    while i < a.len() && j < b.len() {
        let (from, to) = (a[i].0.max(b[j].0), a[i].1.min(b[j].1));
        if from < to {
            return Some((from, to));
        }
        if a[i].1 < b[j].1 { i += 1 } else { j += 1 }
    }
    None
}

/// Sorted, joined where they touch.
pub(super) fn joined(mut ranges: Vec<(u64, u64)>) -> Vec<(u64, u64)> {
    ranges.sort_unstable();
    let mut out: Vec<(u64, u64)> = Vec::with_capacity(ranges.len());
    for (from, to) in ranges {
        match out.last_mut() {
            Some(last) if from <= last.1 => last.1 = last.1.max(to),
            _ if from < to => out.push((from, to)),
            _ => {}
        }
    }
    out
}

/// The bytes of a window, counted from the tile's first; false if only some of them may be touched. The window's
/// capacity counts: how much of it is valid is known when the kernel runs.
pub(super) fn window(ty: TileType, row: u64, col: u64, rows: u64, cols: u64) -> (Vec<(u64, u64)>, bool) {
    let (all_rows, all_cols) = (u64::from(ty.rows), u64::from(ty.cols));
    let (row_end, col_end) = ((row + rows).min(all_rows), (col + cols).min(all_cols));
    if (row, col, row_end, col_end) == (0, 0, all_rows, all_cols) && ty.layout.is_none() {
        return (vec![(0, ty.bytes())], true);
    }
    if ty.dtype == DType::Bool {
        let pitch = all_cols.div_ceil(8).next_multiple_of(32);
        let lines = (row..row_end).map(|r| (r * pitch + col / 8, r * pitch + col_end.div_ceil(8)));
        return (joined(lines.collect()), true);
    }
    let size = ty.dtype.size() as u64;
    let (count_rows, count_cols) = (row_end.saturating_sub(row), col_end.saturating_sub(col));
    if ty.layout.is_some() {
        if count_rows * count_cols > ELEMENTS {
            return (vec![(0, ty.bytes())], false);
        }
        let elements = (row..row_end).flat_map(|r| (col..col_end).map(move |c| (r, c)));
        let bytes = elements.map(|(r, c)| {
            let at = ty.element(r as u32, c as u32) * size;
            (at, at + size)
        });
        return (joined(bytes.collect()), true);
    }
    let lines = match ty.order {
        ptoc_isa::Order::Nd => {
            (row..row_end).map(|r| ((r * all_cols + col) * size, (r * all_cols + col_end) * size)).collect::<Vec<_>>()
        }
        ptoc_isa::Order::Dn => {
            (col..col_end).map(|c| ((c * all_rows + row) * size, (c * all_rows + row_end) * size)).collect()
        }
    };
    (joined(lines), true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ptoc_isa::Order;

    #[test]
    fn windows() {
        let ty = TileType { loc: Loc::Vec, dtype: DType::F32, rows: 4, cols: 16, order: Order::Nd, layout: None };
        assert_eq!(window(ty, 0, 0, 4, 16), (vec![(0, 256)], true));
        assert_eq!(window(ty, 1, 0, 2, 16), (vec![(64, 192)], true));
        assert_eq!(window(ty, 1, 8, 2, 8), (vec![(96, 128), (160, 192)], true));
        let down = TileType { order: Order::Dn, ..ty };
        assert_eq!(window(down, 1, 0, 2, 2), (vec![(4, 12), (20, 28)], true));
        let mask = TileType { dtype: DType::Bool, ..ty };
        assert_eq!(window(mask, 1, 8, 1, 8), (vec![(33, 34)], true));
    }

    #[test]
    fn areas_meet() {
        let mut areas = Areas::default();
        let mut bytes = |from, to, exact| areas.id(Area::Bytes { loc: Loc::Vec, ranges: vec![(from, to)], exact });
        let (a, b, c, d) = (bytes(0, 64, true), bytes(64, 128, true), bytes(32, 96, true), bytes(0, 256, false));
        assert_eq!(areas.meet(a, b), Meet::No);
        assert_eq!(areas.meet(a, c), Meet::Yes);
        assert_eq!(areas.meet(a, d), Meet::Maybe);
        assert_eq!(areas.common(b, c), Some((Loc::Vec, 64, 96)));
        assert!(areas.inside(a, a) && !areas.inside(c, a) && !areas.inside(a, d));
    }
}

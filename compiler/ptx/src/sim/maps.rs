//! Tensor maps: how a box of a tensor lies in global and in shared memory.

use crate::types::Type;

/// How chunks of 16 bytes are exchanged within rows of shared memory, by the number of the row: bits 7 and up of an
/// address go onto bits 4 and up.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Swizzle {
    #[default]
    None,
    B32,
    B64,
    B128,
}

impl Swizzle {
    /// Bytes of a row.
    pub fn span(self) -> u64 {
        match self {
            Swizzle::None => 16,
            Swizzle::B32 => 32,
            Swizzle::B64 => 64,
            Swizzle::B128 => 128,
        }
    }

    /// Where the byte of an address lies.
    pub(super) fn place(self, at: u64) -> u64 {
        at ^ ((at >> 7) & (self.span() / 16 - 1)) << 4
    }
}

/// The most bytes of shared memory that a CTA has.
pub(super) const SHARED: u64 = 232_448;

/// A tensor in global memory and a box of it, as `cuTensorMapEncodeTiled` has them. The first dimension is the one
/// whose elements are neighbours.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TensorMap {
    /// The address of its first element.
    pub base: u64,
    /// Elements.
    pub dtype: Type,
    /// Elements along each dimension, 1 to 5 of them.
    pub dims: Vec<u64>,
    /// Bytes from one to the next, along each dimension but the first.
    pub strides: Vec<u64>,
    /// Elements of the box along each dimension.
    pub tile: Vec<u32>,
    /// How the box lies in shared memory.
    pub swizzle: Swizzle,
    /// Elements of f32 are rounded to TF32 on their way (`CU_TENSOR_MAP_DATA_TYPE_TFLOAT32`).
    pub tf32: bool,
}

/// Bytes of a box, side by side in both memories.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    pub(super) shared: u64,
    /// `None` outside of the tensor: loads have zeros there, stores leave it out.
    pub(super) global: Option<u64>,
    pub(super) len: usize,
    /// Words are rounded to TF32.
    pub(super) tf32: bool,
}

impl TensorMap {
    /// Bytes of a box.
    pub fn bytes(&self) -> u64 {
        self.tile.iter().fold(self.dtype.size().into(), |bytes: u64, n| bytes.saturating_mul((*n).into()))
    }

    /// Why the driver would refuse it.
    pub(super) fn refused(&self) -> Option<String> {
        let rank = self.dims.len();
        let inner = u64::from(self.tile.first().copied().unwrap_or(0)) * u64::from(self.dtype.size());
        let refusals = [
            ((1..=5).contains(&rank), "1 to 5 dimensions"),
            (self.strides.len() + 1 == rank && self.tile.len() == rank, "a stride and a box for each dimension"),
            (self.base.is_multiple_of(16), "a base that is a multiple of 16"),
            (self.strides.iter().all(|s| s.is_multiple_of(16) && *s < 1 << 40), "strides that are multiples of 16"),
            (self.dims.iter().all(|n| (1..=1 << 32).contains(n)), "dimensions of 1 to 2^32"),
            (self.tile.iter().all(|n| (1..=256).contains(n)), "boxes of 1 to 256"),
            (self.bytes() <= SHARED, "boxes that fit into shared memory"),
            (inner.is_multiple_of(16) && inner > 0, "rows of a box that are multiples of 16 bytes"),
            (self.swizzle == Swizzle::None || inner == self.swizzle.span(), "rows of a box as wide as the swizzle"),
        ];
        let broken = refusals.into_iter().find(|(holds, _)| !holds);
        broken.map(|(_, want)| format!("a tensor map has {want}"))
    }

    /// Where the bytes of the box at these coordinates lie.
    pub(super) fn runs(&self, at: &[i64], shared: u64) -> Vec<Run> {
        let size = i64::from(self.dtype.size());
        let inner = i64::from(self.tile[0]) * size;
        let rows: u64 = self.tile[1..].iter().map(|n| u64::from(*n)).product();
        let mut runs = Vec::new();
        for row in 0..rows {
            let base = self.row(at, row);
            for chunk in (0..inner).step_by(16) {
                let place = self.swizzle.place(shared.wrapping_add(row * inner as u64 + chunk as u64));
                // The first and the last byte of the chunk that the tensor has.
                let first = (at[0] + chunk / size) * size;
                let low = (-first).clamp(0, 16);
                let high = (self.dims[0] as i64 * size - first).clamp(low, 16);
                let (low, high) = if base.is_some() && low < high { (low, high) } else { (0, 0) };
                for (from, to, inside) in [(0, low, false), (low, high, true), (high, 16, false)] {
                    if from < to {
                        let global = base.filter(|_| inside).map(|base| base.wrapping_add_signed(first + from));
                        runs.push(Run {
                            shared: place + from as u64,
                            global,
                            len: (to - from) as usize,
                            tf32: self.tf32,
                        });
                    }
                }
            }
        }
        runs
    }

    /// The address at which a row of a box begins, if the tensor has it.
    fn row(&self, at: &[i64], mut row: u64) -> Option<u64> {
        let mut base = self.base;
        for (((at, count), tile), stride) in at.iter().zip(&self.dims).zip(&self.tile).skip(1).zip(&self.strides) {
            let index = at + (row % u64::from(*tile)) as i64;
            row /= u64::from(*tile);
            if index < 0 || index as u64 >= *count {
                return None;
            }
            base = base.wrapping_add((index as u64).wrapping_mul(*stride));
        }
        Some(base)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(swizzle: Swizzle) -> TensorMap {
        let (dims, strides, tile) = (vec![70, 9, 3], vec![160, 1440], vec![64, 4, 2]);
        TensorMap { base: 1 << 20, dtype: Type::F16, dims, strides, tile, swizzle, tf32: false }
    }

    /// Every byte of the box once; where it comes from, by the definition.
    #[test]
    fn boxes_are_whole() {
        for (swizzle, x) in [(Swizzle::None, 3), (Swizzle::B128, 40), (Swizzle::B128, -5), (Swizzle::None, 69)] {
            let map = map(swizzle);
            assert_eq!(map.refused(), None);
            let (y, z, shared) = (7i64, 2i64, 2048u64);
            let mut seen = vec![false; 1024];
            for run in map.runs(&[x, y, z], shared) {
                for n in 0..run.len as u64 {
                    let at = run.shared + n;
                    assert!(!std::mem::replace(&mut seen[(at - shared) as usize], true));
                    // Swizzling again gives the place in order.
                    let offset = swizzle.place(at) - shared;
                    let (e, row) = (x + (offset % 128 / 2) as i64, offset / 128);
                    let (i, j) = (y + (row % 4) as i64, z + (row / 4) as i64);
                    let inside = (0..70).contains(&e) && i < 9 && j < 3;
                    let want = (1 << 20) + e * 2 + (offset % 2) as i64 + i * 160 + j * 1440;
                    assert_eq!(run.global.map(|g| (g + n) as i64), inside.then_some(want), "{offset}");
                }
            }
            assert!(seen.iter().all(|s| *s));
        }
    }

    #[test]
    fn maps_are_held_to_the_rules() {
        let change = |f: fn(&mut TensorMap)| {
            let mut map = map(Swizzle::None);
            f(&mut map);
            map.refused().unwrap_or_default()
        };
        assert!(change(|m| m.base += 8).contains("base"));
        assert!(change(|m| m.strides[0] = 140).contains("multiples of 16"));
        assert!(change(|m| m.tile[1] = 257).contains("1 to 256"));
        assert!(change(|m| m.tile[1..].fill(256)).contains("fit into shared memory"));
        assert!(change(|m| m.tile[0] = 12).contains("multiples of 16 bytes"));
        assert!(change(|m| m.swizzle = Swizzle::B64).contains("as wide as the swizzle"));
        assert!(change(|m| m.dims.truncate(2)).contains("for each dimension"));
    }
}

//! The order in which the blocks of a grid start.

/// Blocks in bands: along one dimension of the grid, a few abreast. Operands that neighbours share stay in the cache
/// for them: 16 blocks of a product in a row need 17 panels of its operands, 4 x 4 of them need 8.
///
/// Without one, the last dimension of the grid moves fastest (which is `along` the last dimension, one abreast).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Raster {
    /// The dimension that blocks move along.
    pub along: u32,
    /// Blocks abreast: the width of a band, in blocks of the last other dimension. At least 1.
    pub swizzle: u32,
}

impl Raster {
    /// The dimension across which bands follow each other: the last one but `along`.
    fn across(self, rank: usize) -> Option<usize> {
        (0..rank).rev().find(|d| *d != self.along as usize)
    }

    /// The place of the `number`-th of `extents[0] * extents[1] * ..` blocks, which come each once. The dimensions but
    /// the two of the raster are the outer ones, the last of them fastest; the last band is as narrow as what is left.
    ///
    /// The formula is CUTLASS's: with s abreast, offset = n mod s, e = n div s; along = e mod extent, across = (e div
    /// extent) s + offset. There a grid is padded to whole bands, here the last one has a width of its own.
    pub fn place(self, number: u64, extents: &[i64], at: &mut [i64]) {
        let along = self.along as usize;
        let across = self.across(extents.len());
        let extent = |d: usize| extents[d].max(1) as u64;
        let mut rest = number;
        let inner = extent(along) * across.map_or(1, extent);
        let n = rest % inner;
        rest /= inner;
        for d in (0..extents.len()).rev().filter(|d| *d != along && Some(*d) != across) {
            at[d] = (rest % extent(d)) as i64;
            rest /= extent(d);
        }
        let Some(across) = across else {
            at[along] = n as i64;
            return;
        };
        let (swizzle, band) = (u64::from(self.swizzle.max(1)), u64::from(self.swizzle.max(1)) * extent(along));
        let first = n / band * swizzle;
        let width = swizzle.min(extent(across) - first);
        let n = n % band;
        at[along] = (n / width) as i64;
        at[across] = (first + n % width) as i64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(along: u32, swizzle: u32, extents: &[i64]) -> Vec<Vec<i64>> {
        let blocks = extents.iter().product::<i64>() as u64;
        let place = |n| {
            let mut at = vec![0; extents.len()];
            Raster { along, swizzle }.place(n, extents, &mut at);
            at
        };
        (0..blocks).map(place).collect()
    }

    #[test]
    fn the_sequence_of_a_small_grid() {
        let numbers: Vec<i64> = order(1, 4, &[4, 4]).iter().map(|at| at[0] * 4 + at[1]).collect();
        assert_eq!(numbers, [0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15]);
        let down: Vec<i64> = order(0, 1, &[2, 3]).iter().map(|at| at[0] * 3 + at[1]).collect();
        assert_eq!(down, [0, 3, 1, 4, 2, 5]);
    }

    #[test]
    fn every_block_comes_once() {
        for extents in [&[7][..], &[4, 4], &[5, 3], &[3, 10], &[1, 9], &[2, 5, 3], &[2, 1, 2, 7]] {
            for along in 0..extents.len() as u32 {
                for swizzle in [1, 2, 3, 4, 8, 64] {
                    let mut places = order(along, swizzle, extents);
                    if along as usize + 1 == extents.len() && swizzle == 1 {
                        assert!(places.is_sorted(), "this is the order without a raster");
                    }
                    places.sort();
                    places.dedup();
                    assert_eq!(places.len() as i64, extents.iter().product::<i64>(), "{extents:?} {along} {swizzle}");
                    assert!(places.iter().all(|at| at.iter().zip(extents).all(|(a, e)| (0..*e).contains(a))));
                }
            }
        }
    }

    /// Tiles of both operands of a product that the first 16 of 16 x 16 blocks touch.
    #[test]
    fn bands_need_fewer_operands() {
        for (swizzle, tiles) in [(1, 17), (2, 10), (4, 8), (8, 10)] {
            for along in [0, 1] {
                let order = order(along, swizzle, &[16, 16]);
                let distinct = |d: usize| {
                    let mut all: Vec<i64> = order[..16].iter().map(|at| at[d]).collect();
                    all.sort_unstable();
                    all.dedup();
                    all.len()
                };
                assert_eq!(distinct(0) + distinct(1), tiles, "swizzle {swizzle} along {along}");
                // Neighbours share the operand that does not change along the way.
                if swizzle == 1 {
                    assert_eq!(distinct(1 - along as usize), 1);
                }
            }
        }
    }
}

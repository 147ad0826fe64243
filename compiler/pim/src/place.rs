//! Placements that the compiler chooses, and those of the author as streams write them.

use ptoc_abi::Coord;
use ptoc_ir::tile::{ElementPlacement as IrPlacement, PlaceLeaf};
use ptoc_pim_stream::placement::Leaf;
use ptoc_pim_stream::{ArrayPlacement, Geometry};

/// A part of a dimension.
pub fn leaf(extent: u32, coord: Coord, stride: u32) -> Leaf {
    Leaf { extent, coord, stride }
}

/// The author's placement, from row 0 on. `None`: a number does not fit.
pub fn of_author(p: &IrPlacement) -> Option<ArrayPlacement> {
    let part = |l: &PlaceLeaf| {
        let extent = u32::try_from(l.extent).ok()?;
        let stride = u32::try_from(l.stride).ok()?;
        // A part that names nothing moves nowhere.
        Some(l.coord.map_or(leaf(extent, Coord::Byte, 0), |c| leaf(extent, c, stride)))
    };
    let dims = p.dims.iter().map(|d| d.iter().map(part).collect()).collect::<Option<_>>()?;
    Some(ArrayPlacement { dims, row: 0, replicated: p.replicated, ..ArrayPlacement::default() })
}

/// Bursts of `count` slots of `size` bursts each, one behind the other in a bank, as parts of the dimension that counts
/// the slots; a row has `row` bursts. `None` if slots would cross from row to row unevenly.
pub fn slots(count: u32, size: u32, row: u32) -> Option<Vec<Leaf>> {
    let fits = (row / size.max(1)).max(1);
    if size > row {
        return size.is_multiple_of(row).then(|| vec![leaf(count, Coord::Row, size / row)]);
    }
    if count <= fits {
        return Some(vec![leaf(count, Coord::Col, size)]);
    }
    (row.is_multiple_of(size) && count.is_multiple_of(fits))
        .then(|| vec![leaf(fits, Coord::Col, size), leaf(count / fits, Coord::Row, 1)])
}

/// The same where the last row may be filled in part: nothing comes behind.
pub fn last_slots(count: u32, size: u32, row: u32) -> Option<Vec<Leaf>> {
    let fits = (row / size.max(1)).max(1);
    slots(count, size, row).or_else(|| slots(count.next_multiple_of(fits), size, row))
}

/// Bursts of one slot: `per` elements of `bytes` in a burst, then along the row, then rows.
pub fn within(extent: u32, per: u32, bytes: u32, row: u32) -> Vec<Leaf> {
    let bursts = extent.div_ceil(per);
    let mut out = vec![leaf(per, Coord::Byte, bytes), leaf(bursts.min(row), Coord::Col, 1)];
    if bursts > row {
        out.push(leaf(bursts.div_ceil(row), Coord::Row, 1));
    }
    out
}

/// A size of slots from `least` bursts on that [`slots`] can lay out: the least itself, a power of two, or whole rows.
pub fn slot_size(count: u32, least: u32, row: u32) -> u32 {
    let candidates = [least, least.next_power_of_two(), least.next_multiple_of(row)];
    candidates.into_iter().find(|s| slots(count, *s, row).is_some()).unwrap_or(least.next_multiple_of(row))
}

/// Rows that `count` slots of `size` bursts take.
pub fn rows(count: u32, size: u32, row: u32) -> u32 {
    (u64::from(count) * u64::from(size)).div_ceil(u64::from(row)).max(1) as u32
}

/// Elements of `size` bytes over the whole memory, as the host likes them: bursts along a row, rows of successive
/// channels, then of bank groups and banks, then the next rows. Where an extent does not divide what is left of a
/// coordinate, the rest stays empty.
pub fn interleaved(shape: &[u32], size: u32, g: &Geometry) -> ArrayPlacement {
    let levels = [
        (Coord::Byte, g.burst, size),
        (Coord::Col, g.col, 1),
        (Coord::Pch, g.pch, 1),
        (Coord::Channel, g.channel, 1),
        (Coord::Bg, g.bg, 1),
        (Coord::Bank, g.bank, 1),
        (Coord::Row, u32::MAX, 1),
    ];
    // The coordinate that is being filled, and the next step along it.
    let (mut level, mut step) = (0, levels[0].2);
    let mut dims = Vec::new();
    for &extent in shape.iter().rev() {
        let (mut leaves, mut rest) = (Vec::new(), extent);
        while rest > 1 {
            let (coord, bound, _) = levels[level];
            let here = (bound / step).min(rest);
            if here > 1 {
                leaves.push(leaf(here, coord, step));
                rest = rest.div_ceil(here);
                step = step.saturating_mul(here);
            }
            if coord != Coord::Row && (rest > 1 || here <= 1) {
                level += 1;
                step = levels[level].2;
            }
        }
        if leaves.is_empty() {
            leaves.push(leaf(1, Coord::Row, 0));
        }
        dims.push(leaves);
    }
    dims.reverse();
    ArrayPlacement { dims, row: 0, replicated: false, ..ArrayPlacement::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Arrays of any shape lie inside the device, each element in a place of its own; powers of two fill every burst.
    #[test]
    fn everything_has_a_place() {
        let g = Geometry { channel: 16, pch: 2, bg: 4, bank: 4, row: 16384, col: 32, burst: 32 };
        let shapes: [&[u32]; 9] =
            [&[1], &[7, 9, 11], &[2, 37, 9, 11], &[128, 64, 64], &[5], &[3, 1, 100], &[1, 1], &[100_000], &[33, 513]];
        for shape in shapes {
            for size in [1, 2, 4, 8] {
                let p = interleaved(shape, size, &g);
                let placed = p.resolve(shape, size, &g, &ptoc_pim_stream::UnitConfig::None);
                let placed = placed.unwrap_or_else(|e| panic!("{shape:?} {p}: {e}"));
                let mut seen = std::collections::HashSet::new();
                placed.for_each(|a| assert!(seen.insert(a), "{shape:?} {p}"));
            }
        }
        let p = interleaved(&[64, 32, 32], 2, &g);
        assert_eq!(p.to_string(), "((16,4),(16,2),(16,2)):((1@channel,1@bg),(2@col,1@pch),(2@byte,1@col))");
    }

    /// Any step through the pseudo-channels of all channels, whose number in a channel the stream knows.
    #[test]
    fn pseudo_channels_of_the_author() {
        let part = |extent, coord, stride| PlaceLeaf { extent, coord, stride };
        let pch = Some(Coord::Pch);
        let of = |dims: Vec<Vec<PlaceLeaf>>| of_author(&IrPlacement { dims, replicated: false }).map(|p| p.dims);
        let elements = vec![part(16, Some(Coord::Byte), 2)];
        assert_eq!(of(vec![vec![part(3, pch, 3)], elements.clone()]).unwrap()[0], [leaf(3, Coord::Pch, 3)]);
        assert_eq!(of(vec![vec![part(8, pch, 1)], elements.clone()]).unwrap()[0], [leaf(8, Coord::Pch, 1)]);
        assert_eq!(of(vec![vec![part(1 << 40, pch, 1)], elements]), None);
    }

    #[test]
    fn slots_in_rows_of_32() {
        assert_eq!(slots(4, 8, 32).unwrap(), [leaf(4, Coord::Col, 8)]);
        assert_eq!(slots(8, 8, 32).unwrap(), [leaf(4, Coord::Col, 8), leaf(2, Coord::Row, 1)]);
        assert_eq!(slots(6, 8, 32), None);
        assert_eq!(last_slots(6, 8, 32).unwrap(), [leaf(4, Coord::Col, 8), leaf(2, Coord::Row, 1)]);
        assert_eq!(last_slots(6, 10, 32), None);
        assert_eq!(slots(3, 10, 32).unwrap(), [leaf(3, Coord::Col, 10)]);
        assert_eq!(slots(5, 64, 32).unwrap(), [leaf(5, Coord::Row, 2)]);
        assert_eq!(
            (slot_size(4, 5, 32), slot_size(8, 5, 32), slot_size(6, 8, 32), slot_size(2, 40, 32)),
            (5, 8, 32, 64)
        );
        assert_eq!(within(20, 16, 2, 32), [leaf(16, Coord::Byte, 2), leaf(2, Coord::Col, 1)]);
        assert_eq!((rows(8, 8, 32), rows(3, 10, 32)), (2, 1));
    }
}

//! Where an array lies in the memory: a layout with named strides.
//!
//! A [`ArrayPlacement`] splits every dimension of an array, the lowest part first, and says by how much each part moves
//! which coordinate. [`Placed`] is the same with its addresses computed; an address is a byte of the device, counted
//! over channels, pseudo-channels, bank groups, banks, rows, columns and bytes, from the slowest to the fastest.

use crate::stream::TensorDecl;
use crate::unit::UnitConfig;
use ptoc_abi::Coord;

/// Counts of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// Channels.
    pub channel: u32,
    /// Pseudo-channels of a channel.
    pub pch: u32,
    /// Bank groups of a pseudo-channel, over all its SIDs.
    pub bg: u32,
    /// Banks of a bank group.
    pub bank: u32,
    /// Rows of a bank.
    pub row: u32,
    /// Bursts of a row.
    pub col: u32,
    /// Bytes of a burst.
    pub burst: u32,
}

impl Geometry {
    /// Banks of the device.
    pub fn banks(&self) -> u32 {
        self.channel * self.pch * self.bg * self.bank
    }

    /// Banks of a pseudo-channel.
    pub fn banks_of_pch(&self) -> u32 {
        self.bg * self.bank
    }

    /// Bytes of a row.
    pub fn row_bytes(&self) -> u64 {
        u64::from(self.col) * u64::from(self.burst)
    }

    /// Bytes of a bank.
    pub fn bank_bytes(&self) -> u64 {
        self.row_bytes() * u64::from(self.row)
    }

    /// Bytes from one value of a coordinate to the next; `None` for units.
    fn weight(&self, coord: Coord) -> Option<u64> {
        let bank = self.bank_bytes();
        let group = bank * u64::from(self.bank);
        let pch = group * u64::from(self.bg);
        Some(match coord {
            Coord::Channel => pch * u64::from(self.pch),
            Coord::Pch => pch,
            Coord::Bg => group,
            Coord::Bank => bank,
            Coord::Row => self.row_bytes(),
            Coord::Col => u64::from(self.burst),
            Coord::Byte => 1,
            Coord::Unit => return None,
        })
    }

    /// The address of these coordinates, which are in range.
    pub fn address(&self, [channel, pch, bg, bank]: [u32; 4], row: u32, col: u32) -> u64 {
        let index = ((u64::from(channel) * u64::from(self.pch) + u64::from(pch)) * u64::from(self.bg) + u64::from(bg))
            * u64::from(self.bank)
            + u64::from(bank);
        index * self.bank_bytes() + u64::from(row) * self.row_bytes() + u64::from(col) * u64::from(self.burst)
    }
}

/// A part of a dimension: it counts to `extent` and moves a coordinate by `stride`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leaf {
    /// Values of the part.
    pub extent: u32,
    /// What it moves.
    pub coord: Coord,
    /// By how much.
    pub stride: u32,
}

/// A dimension of a [`Placed`].
#[derive(Clone, Debug)]
struct Dim {
    extent: u64,
    /// Extent of each part, and by how much it moves the address and the unit.
    parts: Vec<(u64, u64, u32)>,
    /// Address and unit for each value, where there are not too many.
    table: Vec<(u64, u32)>,
}

/// Values of a dimension that are tabulated.
const TABLE: u32 = 1 << 14;

/// Where an array lies.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct ArrayPlacement {
    /// Parts of each dimension, the lowest first. The extents of a dimension multiply to its extent, or to more: what
    /// is more is room that no element takes, such as the rest of a last burst.
    pub dims: Vec<Vec<Leaf>>,
    /// Added to the row.
    pub row: u32,
    /// Added to the bank: of a unit with several, the one that it begins in.
    pub bank: u32,
    /// Added to the column, so that arrays can share rows.
    pub col: u32,
    /// There is a copy in every bank that a unit has; the placement is within a bank.
    pub replicated: bool,
}

/// A placement with its addresses.
#[derive(Clone, Debug)]
pub struct Placed {
    dims: Vec<Dim>,
    base: u64,
    /// Address of each unit's home; empty where the placement has no units.
    homes: Vec<u64>,
    elements: u64,
    /// From addresses back to elements.
    back: Inverse,
}

/// The parts of all dimensions, for the way from addresses to elements: parts that move a coordinate step over all that
/// move it by less, so that digits are found from the largest step down.
#[derive(Clone, Debug, Default)]
struct Inverse {
    /// Parts that move the address, and those that move the unit.
    steps: [Vec<Step>; 2],
    /// Homes in the order of their addresses, and their units.
    homes: Vec<(u64, u64)>,
}

/// A part of a dimension.
#[derive(Clone, Copy, Debug)]
struct Step {
    dim: usize,
    /// By how much it moves.
    by: u64,
    extent: u64,
    /// Values of the dimension from one of its own to the next.
    below: u64,
}

impl Inverse {
    fn new(dims: &[Dim], homes: &[u64]) -> Inverse {
        let mut steps = [Vec::new(), Vec::new()];
        for (dim, d) in dims.iter().enumerate() {
            let mut below = 1;
            for &(extent, moved, units) in &d.parts {
                let of_unit = usize::from(units > 0);
                steps[of_unit].push(Step { dim, by: moved.max(u64::from(units)), extent, below });
                below *= extent;
            }
        }
        steps.iter_mut().for_each(|s| s.sort_by_key(|s| std::cmp::Reverse(s.by)));
        let mut homes: Vec<(u64, u64)> = homes.iter().zip(0..).map(|(home, unit)| (*home, unit)).collect();
        homes.sort_unstable();
        Inverse { steps, homes }
    }
}

impl ArrayPlacement {
    /// Checks the placement of an array with these extents and bytes an element, and computes its addresses.
    ///
    /// Errors: extents that multiply to less than the array's, coordinates outside the device, elements that would
    /// share a byte or cross a burst.
    pub fn resolve(&self, shape: &[u32], size: u32, g: &Geometry, unit: &UnitConfig) -> Result<Placed, String> {
        if self.dims.len() != shape.len() {
            return Err(format!("the layout has {} and the array {}", dims(self.dims.len()), dims(shape.len())));
        }
        for (n, (leaves, &extent)) in self.dims.iter().zip(shape).enumerate() {
            let product = leaves.iter().try_fold(1u64, |p, l| p.checked_mul(u64::from(l.extent)));
            // More than 2^64 are enough too, and lie outside of any device.
            if product.is_some_and(|p| p < u64::from(extent)) {
                let product = product.unwrap_or(0);
                return Err(format!(
                    "the layout's extents of dimension {n} multiply to {product}, the array has {extent}"
                ));
            }
        }
        let units = self.uses(Coord::Unit);
        self.fits(size, g, unit, units)?;
        let mut elements = 1u64;
        let mut dims = Vec::new();
        for (leaves, &extent) in self.dims.iter().zip(shape) {
            let most = TensorDecl::MAX_ELEMENTS;
            elements =
                elements.checked_mul(u64::from(extent)).filter(|n| *n <= most).ok_or("the array is too large")?;
            dims.push(Dim::new(leaves, extent, g));
        }
        let homes = match units {
            true => (0..unit.count(g)).map(|n| g.address(unit.home(n, g), 0, 0)).collect(),
            false => Vec::new(),
        };
        let (bank, row) = (u64::from(self.bank) * g.bank_bytes(), u64::from(self.row) * g.row_bytes());
        let base = bank + row + u64::from(self.col) * u64::from(g.burst);
        Ok(Placed { back: Inverse::new(&dims, &homes), dims, base, homes, elements })
    }

    /// Where elements begin along a coordinate.
    fn first(&self, coord: Coord) -> u32 {
        match coord {
            Coord::Row => self.row,
            Coord::Bank => self.bank,
            Coord::Col => self.col,
            _ => 0,
        }
    }

    fn uses(&self, coord: Coord) -> bool {
        self.dims.iter().flatten().any(|l| l.coord == coord && l.extent > 1)
    }

    /// Coordinates are in range, and elements apart.
    fn fits(&self, size: u32, g: &Geometry, unit: &UnitConfig, units: bool) -> Result<(), String> {
        if units && *unit == UnitConfig::None {
            return Err("the layout places elements in units, and the stream has none".into());
        }
        if self.replicated && unit.banks() == 0 {
            return Err("the array is replicated over units, and the stream has none".into());
        }
        for coord in Coord::ALL {
            let moves = |c: Coord| self.dims.iter().flatten().filter(move |l| l.coord == c && l.extent > 1);
            let mut own: Vec<(u64, u64)> = moves(coord).map(|l| (u64::from(l.extent), u64::from(l.stride))).collect();
            if coord == Coord::Pch && !own.is_empty() {
                // Pseudo-channels are counted through all channels.
                let per = u64::from(g.pch);
                own.extend(moves(Coord::Channel).map(|l| (u64::from(l.extent), u64::from(l.stride) * per)));
            }
            let first = self.first(coord);
            if own.is_empty() && first == 0 && coord != Coord::Row {
                continue;
            }
            own.sort_by_key(|(_, stride)| *stride);
            let bound = match coord {
                Coord::Channel => g.channel,
                Coord::Pch => g.channel * g.pch,
                Coord::Bg => g.bg,
                Coord::Bank if units => unit.banks(),
                Coord::Bank => g.bank,
                Coord::Row => g.row,
                Coord::Col => g.col,
                Coord::Byte => g.burst,
                Coord::Unit => unit.count(g),
            };
            let above = matches!(coord, Coord::Channel | Coord::Pch | Coord::Bg | Coord::Bank | Coord::Unit);
            if self.replicated && above && (first > 0 || !own.is_empty()) {
                return Err(format!("a replicated array lies within a bank, and this one moves {}", coord.name()));
            }
            if let (true, Coord::Channel | Coord::Pch | Coord::Bg, Some(_)) = (units, coord, own.first()) {
                return Err(format!("the layout moves both {} and unit, which contains it", coord.name()));
            }
            // What the parts so far reach: a further part must step over it.
            let step = if coord == Coord::Byte { size } else { 1 };
            let mut reach = u64::from(step);
            for (extent, stride) in own {
                if stride < reach {
                    return Err(format!(
                        "two elements would lie in one place: a part of {extent} values moves {} by {stride}, and the \
                         parts below it take {reach}",
                        coord.name(),
                    ));
                }
                if coord == Coord::Byte && stride % u64::from(size) != 0 {
                    return Err(format!("elements of {size} bytes cannot lie {stride} bytes apart"));
                }
                reach = reach.saturating_add((extent - 1).saturating_mul(stride));
            }
            let end = reach.saturating_add(u64::from(first));
            if end > u64::from(bound) {
                let most = end - u64::from(step);
                return Err(format!("{} {most} is not below {bound}", coord.name()));
            }
        }
        Ok(())
    }
}

fn dims(n: usize) -> String {
    if n == 1 { "one dimension".into() } else { format!("{n} dimensions") }
}

impl Dim {
    fn new(leaves: &[Leaf], extent: u32, g: &Geometry) -> Dim {
        let parts = leaves
            .iter()
            .filter(|l| l.extent > 1)
            .map(|leaf| match g.weight(leaf.coord) {
                Some(weight) => (u64::from(leaf.extent), u64::from(leaf.stride) * weight, 0),
                None => (u64::from(leaf.extent), 0, leaf.stride),
            })
            .collect();
        let mut dim = Dim { extent: u64::from(extent), parts, table: Vec::new() };
        if extent <= TABLE {
            dim.table = (0..dim.extent).map(|n| dim.compute(n)).collect();
        }
        dim
    }

    fn compute(&self, index: u64) -> (u64, u32) {
        let (mut rest, mut address, mut unit) = (index, 0u64, 0u32);
        for &(extent, moved, units) in &self.parts {
            let steps = rest % extent;
            rest /= extent;
            address += steps * moved;
            // Both are below the number of units.
            unit += steps as u32 * units;
        }
        (address, unit)
    }

    #[inline]
    fn at(&self, index: u64) -> (u64, u32) {
        self.table.get(index as usize).copied().unwrap_or_else(|| self.compute(index))
    }
}

impl Placed {
    /// Number of elements.
    pub fn elements(&self) -> u64 {
        self.elements
    }

    /// The address of element `n` in C order, which is below [`Self::elements`].
    pub fn address(&self, n: u64) -> u64 {
        let (mut rest, mut address, mut unit) = (n, self.base, 0);
        for dim in self.dims.iter().rev() {
            let (a, u) = dim.at(rest % dim.extent);
            rest /= dim.extent;
            address += a;
            unit += u;
        }
        address + self.homes.get(unit as usize).copied().unwrap_or(0)
    }

    /// The element that begins at an address, if one does.
    pub fn element_at(&self, address: u64) -> Option<u64> {
        let (home, unit) = match self.back.homes.partition_point(|(home, _)| *home <= address) {
            0 if self.back.homes.is_empty() => (0, 0),
            n => self.back.homes[n.checked_sub(1)?],
        };
        let mut index = vec![0u64; self.dims.len()];
        let rests = [address.checked_sub(home)?.checked_sub(self.base)?, unit];
        for (steps, mut rest) in self.back.steps.iter().zip(rests) {
            for step in steps {
                // No part moves by 0 ([`ArrayPlacement::fits`]).
                let digit = (rest / step.by.max(1)).min(step.extent - 1);
                rest -= digit * step.by;
                index[step.dim] += digit * step.below;
            }
            if rest > 0 {
                return None;
            }
        }
        let mut n = 0;
        for (dim, i) in self.dims.iter().zip(index) {
            if i >= dim.extent {
                return None;
            }
            n = n * dim.extent + i;
        }
        Some(n)
    }

    /// How many elements of `size` bytes begin in the bytes from an address on.
    pub fn elements_in(&self, address: u64, bytes: u32, size: u32) -> u32 {
        let all = bytes / size.max(1);
        match self.element_at(address) {
            Some(n) if n + u64::from(all) <= self.elements && self.is_straight(n, all, size) => all,
            _ => (0..all).filter(|k| self.element_at(address + u64::from(k * size)).is_some()).count() as u32,
        }
    }

    /// Whether the elements from `n` on, which there are, lie next to each other.
    pub fn is_straight(&self, n: u64, count: u32, size: u32) -> bool {
        let (count, step) = (u64::from(count), u64::from(size));
        if let Some(dim) = self.dims.last()
            && let Some(&(extent, moved, 0)) = dim.parts.first()
            && moved == step
        {
            let i = n % dim.extent;
            if i % extent + count <= extent && i + count <= dim.extent {
                return true;
            }
        }
        let first = self.address(n);
        (1..count).all(|k| self.address(n + k) == first + k * step)
    }

    /// Whether the values `first..=last` of a dimension all move alike, in address and unit, to those `by` further on.
    pub fn moves_alike(&self, dim: usize, [first, last]: [u64; 2], by: i64) -> bool {
        let Some(dim) = self.dims.get(dim) else { return by == 0 };
        let step = |n: u64| {
            let (from, to) = (dim.at(n), dim.at(n.wrapping_add_signed(by)));
            (to.0.wrapping_sub(from.0), to.1.wrapping_sub(from.1))
        };
        by == 0 || (first..=last).all(|n| step(n) == step(first))
    }

    /// Calls `f` with the address of every element in C order.
    pub fn for_each(&self, mut f: impl FnMut(u64)) {
        match self.dims.last() {
            Some(last) if self.homes.is_empty() && self.elements > 0 => {
                for outer in 0..self.elements / last.extent {
                    let base = self.address(outer * last.extent);
                    (0..last.extent).for_each(|n| f(base + last.at(n).0));
                }
            }
            _ => (0..self.elements).for_each(|n| f(self.address(n))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::unit::{GeoPim, HbmPim};
    use std::collections::HashSet;

    /// `pch` is counted through all channels, whether a part of it or `channel` moves on to the next one.
    #[test]
    fn pseudo_channels_are_counted_through_all_channels() {
        let g = Geometry { channel: 4, pch: 2, bg: 4, bank: 4, row: 16, col: 32, burst: 32 };
        let leaf = |extent, coord, stride| Leaf { extent, coord, stride };
        let place = |leaves: Vec<Leaf>| ArrayPlacement {
            dims: vec![leaves],
            row: 0,
            replicated: false,
            ..ArrayPlacement::default()
        };
        let through = place(vec![leaf(8, Coord::Pch, 1)]);
        let split = place(vec![leaf(2, Coord::Pch, 1), leaf(4, Coord::Channel, 1)]);
        let [a, b] = [through, split].map(|p| p.resolve(&[8], 2, &g, &UnitConfig::None).unwrap());
        assert!((0..8).all(|n| a.address(n) == b.address(n)));
        assert_eq!(a.address(3), g.address([1, 1, 0, 0], 0, 0));
        let says = |leaves: Vec<Leaf>, extent| place(leaves).resolve(&[extent], 2, &g, &UnitConfig::None).unwrap_err();
        assert_eq!(says(vec![leaf(9, Coord::Pch, 1)], 9), "pch 8 is not below 8");
        let both = says(vec![leaf(4, Coord::Pch, 1), leaf(2, Coord::Channel, 1)], 8);
        assert!(both.starts_with("two elements would lie in one place"), "{both}");
    }

    const G: Geometry = Geometry { channel: 2, pch: 2, bg: 4, bank: 4, row: 64, col: 32, burst: 32 };

    fn leaf(extent: u32, stride: u32, coord: Coord) -> Leaf {
        Leaf { extent, coord, stride }
    }

    fn rows() -> ArrayPlacement {
        let dims = vec![
            vec![leaf(2, 1, Coord::Pch), leaf(3, 2, Coord::Row)],
            vec![leaf(16, 2, Coord::Byte), leaf(4, 8, Coord::Col)],
        ];
        ArrayPlacement { dims, row: 5, replicated: false, ..ArrayPlacement::default() }
    }

    #[test]
    fn addresses_by_hand() {
        let p = rows().resolve(&[6, 64], 2, &G, &UnitConfig::None).unwrap();
        assert_eq!(p.elements(), 384);
        assert_eq!(p.address(0), 5 * 1024);
        // Element (3, 17): pch 1, row 5 + 2, byte 2, column 8.
        let pch = 16 * 64 * 1024;
        assert_eq!(p.address(3 * 64 + 17), pch + 7 * 1024 + 8 * 32 + 2);
        let mut seen = Vec::new();
        p.for_each(|a| seen.push(a));
        assert_eq!(seen, (0..384).map(|n| p.address(n)).collect::<Vec<_>>());
        assert_eq!(seen.iter().collect::<HashSet<_>>().len(), 384);
    }

    /// Every address that an element has leads back to it, and no other byte to any: of random layouts, with room that
    /// no element takes, in units and in banks.
    #[test]
    fn addresses_lead_back() {
        let mut seed = 5u64;
        let mut next = |n: u32| {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            ((seed >> 33) % u64::from(n)) as u32
        };
        let (mut placed_well, mut straight) = (0, 0);
        for _ in 0..4000 {
            let coords = [Coord::Channel, Coord::Pch, Coord::Bg, Coord::Bank, Coord::Unit, Coord::Row, Coord::Col];
            let mut dims: Vec<Vec<Leaf>> = (0..=next(2))
                .map(|_| (0..=next(2)).map(|_| leaf(1 + next(4), 1 + next(4), coords[next(7) as usize])).collect())
                .collect();
            let lanes = leaf(1 + next(16), 2, Coord::Byte);
            dims.last_mut().expect("one at least").insert(0, lanes);
            let shape: Vec<u32> = dims
                .iter()
                .map(|d| d.iter().map(|l| l.extent).product::<u32>())
                .map(|most| most - next(most.min(5)))
                .collect();
            let p = ArrayPlacement { dims, row: next(3), bank: next(2), col: next(3), replicated: false };
            let Ok(placed) = p.resolve(&shape, 2, &G, &UnitConfig::HbmPim(HbmPim::default())) else { continue };
            if placed.elements() > 600 {
                continue;
            }
            placed_well += 1;
            let all: Vec<u64> = (0..placed.elements()).map(|n| placed.address(n)).collect();
            for (n, &a) in all.iter().enumerate() {
                assert_eq!(placed.element_at(a), Some(n as u64), "{p:?} {shape:?}");
                let burst = a / 32 * 32;
                let held = all.iter().filter(|b| (burst..burst + 32).contains(b)).count();
                assert_eq!(placed.elements_in(burst, 32, 2), held as u32, "{p:?} {shape:?}");
                let count = 1 + next(16).min((all.len() - n - 1) as u32);
                let beside = (1..count as usize).all(|k| all[n + k] == a + 2 * k as u64);
                assert_eq!(placed.is_straight(n as u64, count, 2), beside, "{p:?} {shape:?}");
                straight += usize::from(beside && count > 1);
                for other in [a.wrapping_sub(2), a + 1, a + 2, a + 32, a + 1024] {
                    let there = all.iter().position(|b| *b == other).map(|n| n as u64);
                    assert_eq!(placed.element_at(other), there, "{p:?} {shape:?}");
                }
            }
        }
        assert!(placed_well > 500 && straight > 5000, "{placed_well} {straight}");
    }

    #[test]
    fn units_stand_for_banks() {
        let p = ArrayPlacement {
            dims: vec![vec![leaf(6, 3, Coord::Unit)], vec![leaf(8, 4, Coord::Byte)]],
            row: 1,
            replicated: false,
            ..ArrayPlacement::default()
        };
        let unit = UnitConfig::GeoPim(GeoPim::default());
        let placed = p.resolve(&[6, 8], 4, &G, &unit).unwrap();
        assert_eq!(placed.address(5 * 8 + 1), G.address(unit.home(15, &G), 1, 0) + 4);
        let mut seen = Vec::new();
        placed.for_each(|a| seen.push(a));
        assert_eq!(seen, (0..48).map(|n| placed.address(n)).collect::<Vec<_>>());
    }

    #[test]
    fn what_cannot_be_placed() {
        let says =
            |p: &ArrayPlacement, shape: &[u32], size, unit: &UnitConfig| p.resolve(shape, size, &G, unit).unwrap_err();
        let none = UnitConfig::None;
        assert_eq!(says(&rows(), &[6], 2, &none), "the layout has 2 dimensions and the array one dimension");
        assert!(says(&rows(), &[6, 65], 2, &none).contains("dimension 1 multiply to 64, the array has 65"));
        assert!(says(&rows(), &[6, 64], 4, &none).contains("two elements would lie in one place"));
        assert_eq!(says(&ArrayPlacement { row: 60, ..rows() }, &[6, 64], 2, &none), "row 64 is not below 64");
        let one =
            |l: Leaf| ArrayPlacement { dims: vec![vec![l]], row: 0, replicated: false, ..ArrayPlacement::default() };
        assert_eq!(says(&one(leaf(3, 1, Coord::Channel)), &[3], 2, &none), "channel 2 is not below 2");
        assert!(says(&one(leaf(4, 0, Coord::Row)), &[4], 2, &none).contains("moves row by 0"));
        assert!(says(&one(leaf(4, 3, Coord::Byte)), &[4], 2, &none).contains("3 bytes apart"));
        assert!(says(&one(leaf(4, 1, Coord::Unit)), &[4], 2, &none).contains("the stream has none"));
        let hbm = UnitConfig::HbmPim(HbmPim::default());
        assert_eq!(says(&one(leaf(33, 1, Coord::Unit)), &[33], 2, &hbm), "unit 32 is not below 32");
        let both = ArrayPlacement {
            dims: vec![vec![leaf(2, 1, Coord::Unit)], vec![leaf(2, 1, Coord::Bg)]],
            row: 0,
            replicated: false,
            ..ArrayPlacement::default()
        };
        assert!(says(&both, &[2, 2], 2, &hbm).contains("both bg and unit"));
        let copies = ArrayPlacement { replicated: true, ..one(leaf(2, 1, Coord::Bank)) };
        assert!(says(&copies, &[2], 2, &hbm).contains("moves bank"));
    }
}

//! Which rows of which banks an array takes.

use crate::placement::{ArrayPlacement, Geometry, Leaf};
use crate::unit::UnitConfig;
use ptoc_abi::Coord;
use std::collections::BTreeMap;
use std::ops::Range;

/// By how much parts move the bank (counted over banks, bank groups, pseudo-channels and channels) and the unit, with
/// the first and the last row that they reach there.
type Reach = BTreeMap<(u64, u32), (u64, u64)>;

impl ArrayPlacement {
    /// The rows of each bank from the first to the last that has an element of an array with these extents; banks are
    /// counted through the device. The placement is one that [`Self::resolve`] accepts.
    pub fn rows_by_bank(&self, shape: &[u32], g: &Geometry, unit: &UnitConfig) -> BTreeMap<u32, Range<u64>> {
        let mut all = Reach::from([((0, 0), (0, 0))]);
        for (leaves, extent) in self.dims.iter().zip(shape) {
            let own = of_dimension(leaves, u64::from(*extent), g);
            let mut next = Reach::new();
            for ((bank, number), (first, last)) in &all {
                for ((b, n), (f, l)) in &own {
                    join(&mut next, (bank + b, number + n), (first + f, last + l));
                }
            }
            all = next;
        }
        let units = self.dims.iter().flatten().any(|l| l.coord == Coord::Unit && l.extent > 1);
        let base = u64::from(self.row);
        let mut out = BTreeMap::new();
        for ((bank, number), (first, last)) in all {
            let rows = base + first..base + last + 1;
            if self.replicated {
                out.extend((0..unit.count(g)).flat_map(|n| banks_of(n, unit, g)).map(|b| (b, rows.clone())));
                continue;
            }
            let home = if units { banks_of(number, unit, g).start } else { 0 };
            // It is below the number of banks.
            out.insert(bank as u32 + home + self.bank, rows);
        }
        out
    }
}

/// The banks of a unit.
pub fn banks_of(unit: u32, config: &UnitConfig, g: &Geometry) -> Range<u32> {
    let [channel, pch, bg, bank] = config.home(unit, g);
    let first = ((channel * g.pch + pch) * g.bg + bg) * g.bank + bank;
    first..first + config.banks()
}

fn join(reach: &mut Reach, key: (u64, u32), (first, last): (u64, u64)) {
    let rows = reach.entry(key).or_insert((first, last));
    *rows = (rows.0.min(first), rows.1.max(last));
}

/// Banks from one value of a coordinate to the next.
fn banks(coord: Coord, g: &Geometry) -> u64 {
    let [bank, bg, pch] = [g.bank, g.bg, g.pch].map(u64::from);
    match coord {
        Coord::Channel => bank * bg * pch,
        Coord::Pch => bank * bg,
        Coord::Bg => bank,
        Coord::Bank => 1,
        Coord::Row | Coord::Col | Coord::Byte | Coord::Unit => 0,
    }
}

/// What the first `count` values of a dimension reach.
fn of_dimension(leaves: &[Leaf], count: u64, g: &Geometry) -> Reach {
    if count == 0 {
        return Reach::new();
    }
    let Some((top, lower)) = leaves.split_last() else { return Reach::from([((0, 0), (0, 0))]) };
    let below = lower.iter().fold(1u64, |n, l| n.saturating_mul(u64::from(l.extent)));
    let full = (count / below.max(1)).min(u64::from(top.extent));
    let rest = if full < u64::from(top.extent) { count % below.max(1) } else { 0 };
    let mut out = Reach::new();
    let stride = u64::from(top.stride);
    let mut put = |part: &Reach, n: u64| {
        for ((bank, unit), (first, last)) in part {
            let key = match top.coord {
                Coord::Unit => (*bank, unit + (n * stride) as u32),
                coord => (bank + n * stride * banks(coord, g), *unit),
            };
            let rows = if top.coord == Coord::Row { n * stride } else { 0 };
            join(&mut out, key, (first + rows, last + rows));
        }
    };
    if full > 0 {
        let part = of_dimension(lower, below, g);
        match top.coord {
            // In a bank what matters are the ends.
            Coord::Row | Coord::Col | Coord::Byte => [0, full - 1].iter().for_each(|n| put(&part, *n)),
            _ => (0..full).for_each(|n| put(&part, n)),
        }
    }
    if rest > 0 {
        put(&of_dimension(lower, rest, g), full);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::unit::{GeoPim, HbmPim};
    use proptest::prelude::*;

    const G: Geometry = Geometry { channel: 2, pch: 2, bg: 4, bank: 4, row: 64, col: 32, burst: 32 };

    fn leaf() -> impl Strategy<Value = Leaf> {
        let stride = prop_oneof![Just(1u32), Just(2), Just(4), Just(8), Just(16), 0u32..12];
        (1u32..5, 0usize..8, stride).prop_map(|(extent, c, stride)| Leaf { extent, coord: Coord::ALL[c], stride })
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: ptoc_tests_budget::cases(1000, 4000), ..ProptestConfig::default() })]
        /// Element by element.
        #[test]
        fn rows_are_those_of_the_elements(
            dims in proptest::collection::vec((proptest::collection::vec(leaf(), 1..4), 0u32..9), 1..4),
            row in 0u32..40, bank in 0u32..4, col in 0u32..20, geopim: bool, spread in 0u32..2,
        ) {
            let unit = match geopim {
                true => UnitConfig::GeoPim(GeoPim { spread, units: 40, ..GeoPim::default() }),
                false => UnitConfig::HbmPim(HbmPim::default()),
            };
            let shape: Vec<u32> = dims.iter().map(|(leaves, less)| {
                let all: u32 = leaves.iter().map(|l| l.extent).product();
                all - less.min(&all)
            }).collect();
            let dims = dims.into_iter().map(|(d, _)| d).collect();
            let p = ArrayPlacement { dims, row, bank, col, replicated: false };
            let Ok(placed) = p.resolve(&shape, 2, &G, &unit) else { return Ok(()) };
            let mut wanted: BTreeMap<u32, Range<u64>> = BTreeMap::new();
            placed.for_each(|a| {
                let (bank, row) = ((a / G.bank_bytes()) as u32, a % G.bank_bytes() / G.row_bytes());
                let rows = wanted.entry(bank).or_insert(row..row + 1);
                *rows = rows.start.min(row)..rows.end.max(row + 1);
            });
            prop_assert_eq!(p.rows_by_bank(&shape, &G, &unit), wanted);
        }
    }
}

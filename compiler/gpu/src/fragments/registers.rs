//! How registers are shared: CTAs of a multiprocessor, and what the producer gives up for consumers.

use super::GROUP;
use crate::allocation::residents;

/// How many registers a thread has.
pub(super) struct Registers {
    /// Those of the producer and of consumers, where they differ from an equal share: whole eights.
    pub(super) moved: Option<[u32; 2]>,
    /// CTAs that a multiprocessor has room for.
    pub(super) resident: u32,
}

/// Registers for tiles that a consumer of 136 has room for.
const FEW: u32 = 120;

/// What a product asks of an equal share of registers beside its sums, half a register a column: `ptxas` refuses it
/// otherwise (C7602), whatever registers move later. It names the number: 26, and four for a left operand in registers.
const BESIDE_SUMS: u32 = 30;

impl Registers {
    /// Of 65,536. Two CTAs of one consumer are as good as one of two: while the products of one are under way, the
    /// other computes weights; three, where tiles are so small, hide more latencies.
    pub(super) fn new((consumers, columns): (u32, u32), shared: u32, tiles: u32, gathers: bool) -> Registers {
        let threads = GROUP * (1 + consumers);
        let shares = |resident: u32| columns / 2 + BESIDE_SUMS <= 65_536 / (resident * threads) / 8 * 8;
        // What consumers take, producers must have given up: both together have no more than at the start of a CTA.
        let few = if gathers { FEW - 32 } else { FEW };
        let three = residents(shared) > 2 && tiles <= few && shares(3);
        let two = residents(shared) > 1 && shares(2);
        match (consumers, gathers) {
            (1, false) if three => Registers { moved: Some([24, 136]), resident: 3 },
            (1, true) if three => Registers { moved: Some([56, 104]), resident: 3 },
            (1, false) if two => Registers { moved: Some([24, 232]), resident: 2 },
            (1, true) if two => Registers { moved: Some([56, 200]), resident: 2 },
            // An equal share is all that a thread can have.
            (1, _) => Registers { moved: None, resident: 1 },
            (_, false) => Registers { moved: Some([24, 240]), resident: 1 },
            (_, true) => Registers { moved: Some([72, 216]), resident: 1 },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A warp that asks for registers waits until others of its CTA have given up as many: for ever, if those of all
    /// together are more than the CTA has at its start, an equal share in eights.
    #[test]
    fn registers_move_within_a_cta() {
        for (consumers, gathers) in [(1, false), (1, true), (2, false), (2, true)] {
            for shared in [16 << 10, 60 << 10, 100 << 10, 200 << 10] {
                for tiles in [64, 104, 120, 160, 192] {
                    let Registers { moved, resident } = Registers::new((consumers, 64), shared, tiles, gathers);
                    let threads = GROUP * (1 + consumers);
                    let share = (65_536 / (resident * threads) / 8 * 8).min(255);
                    let Some([producer, consumer]) = moved else { continue };
                    let wanted = GROUP * (producer + consumers * consumer);
                    assert!(wanted <= share * threads, "{consumers} {gathers} {shared} {tiles}: {wanted}");
                    assert!(producer % 8 == 0 && consumer % 8 == 0);
                }
            }
        }
    }
}

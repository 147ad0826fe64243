//! What to write where a target lacks an instruction altogether.

use crate::InstrId;

/// What to write where a target lacks the instruction altogether.
pub(crate) fn instead_of(instr: InstrId) -> Option<&'static str> {
    Some(match instr.get().name {
        "TQUANT" => {
            "compute it: `TROWEXPANDMUL` with the scales, `TCVT(t, x, Rint)` to a tile of i16, and `i8(f32(t))`"
        }
        "TQUANT_OFFSET" => {
            "compute it: `TROWEXPANDMUL` with the scales, `TROWEXPANDADD` with the offsets, `TCVT(t, x, Rint)` to a \
             tile of i16, and `u8(f32(t))`"
        }
        "TQUANT_INT4" | "TDEQUANT_INT4" => "keep numbers of 4 bits one a byte, in tiles of i8",
        "TDEQUANT" => {
            "compute it: convert by name, then `TROWEXPANDSUB` with the offsets and `TROWEXPANDMUL` with the scales"
        }
        "TINSERT_TO_MAT" => {
            "store the tile to a window of a tensor, and load what should be in Mat from there: `TLOAD(dst, view)`"
        }
        "TINTERLEAVE" => "store both tiles to every other column of a tensor, with `copy(window, tile)`, and load that",
        "TDEINTERLEAVE" | "TDEINTERLEAVE_ONE" => {
            "gather every other column: `TGATHER(dst, a, P0101)` and `TGATHER(dst, a, P1010)`"
        }
        "TRANDOM" => "compute the numbers elsewhere, and load them as a tensor",
        "THISTOGRAM" => "count with `MSCATTER(table, ones, idx, atomic = true)` into a tensor of counts",
        _ => return None,
    })
}

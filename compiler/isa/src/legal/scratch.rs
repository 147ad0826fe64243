//! Scratch tiles that an instruction wants on a target; the author never writes them.

use crate::{Family, InstrId, Loc, Order, Scratch, Target, TileType};

/// The type of the hidden scratch tile of `instr` on `target`, for a (first) source tile of type `src`.
pub fn scratch_type(target: &Target, instr: InstrId, src: TileType) -> Option<TileType> {
    // A5 and its family do without: their scratch operands are ignored (pto_isa.md section 5).
    if target.family != Family::A2A3 {
        return None;
    }
    match instr.get().scratch {
        Scratch::None => None,
        Scratch::LikeSource => Some(src),
        Scratch::Transpose => {
            // One line of the transposed tile a source column, padded to 16 elements (32 of one byte).
            let pad = if src.dtype.size() == 1 { 32 } else { 16 };
            let cols = src.rows.checked_next_multiple_of(pad).unwrap_or(u32::MAX / pad * pad);
            Some(TileType { loc: Loc::Vec, dtype: src.dtype, rows: src.cols, cols, order: Order::Nd, layout: None })
        }
    }
}

//! Scratch tiles that an instruction wants on a target; the author never writes them.

use crate::{InstrId, Loc, Order, Scratch, Target, TileType};
use ptoc_tensor::DType;

/// The type of the hidden scratch tile of `instr` on `target`, for a (first) destination of type `dst` and a (first)
/// source tile of type `src`.
pub fn scratch_type(target: &Target, instr: InstrId, dst: TileType, src: TileType) -> Option<TileType> {
    if !target.instructions.scratch {
        return None;
    }
    match instr.get().scratch {
        Scratch::None => None,
        Scratch::LikeSource => Some(src),
        Scratch::LikeResult => Some(dst),
        Scratch::Places => {
            let bytes = src.cols.checked_mul(4)?.checked_add(src.cols.div_ceil(8))?;
            let cols = bytes.checked_add(src.dtype.size() as u32)?.checked_next_multiple_of(32)?;
            Some(TileType { loc: Loc::Vec, dtype: DType::U8, cols, order: Order::Nd, layout: None, ..src })
        }
        Scratch::Bytes => {
            let cols = src.cols.checked_next_multiple_of(32)?;
            Some(TileType { loc: Loc::Vec, dtype: DType::U8, cols, order: Order::Nd, layout: None, ..src })
        }
        Scratch::Remainder => {
            let whole = 32 / src.dtype.size() as u32;
            let cols = src.cols.checked_add(2 * src.cols.div_ceil(64))?.checked_next_multiple_of(whole)?;
            Some(TileType { loc: Loc::Vec, rows: 1, cols, order: Order::Nd, layout: None, ..src })
        }
        Scratch::Transpose => {
            // One line of the transposed tile a source column, padded to 16 elements (32 of one byte).
            let pad = if src.dtype.size() == 1 { 32 } else { 16 };
            let cols = src.rows.checked_next_multiple_of(pad).unwrap_or(u32::MAX / pad * pad);
            Some(TileType { loc: Loc::Vec, dtype: src.dtype, rows: src.cols, cols, order: Order::Nd, layout: None })
        }
    }
}

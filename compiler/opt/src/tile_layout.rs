//! Layout of a tile's elements in the arena: what is stored for an element, and the strides of rows and columns.
//!
//! Three things are stored otherwise than a device does it, because no program can see their bytes: see [`Storage`].

use ptoc_ir::loops::MemTy;
use ptoc_ir::tile::{AddrKind, TileData};
use ptoc_isa::{Loc, Order, TileType};
use ptoc_tensor::DType;

/// How a tile's bytes map to the arena.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Storage {
    /// As placed.
    Plain,
    /// Left, Right of 8-bit floats: four times the address.
    Widened,
    /// Masks: eight times the address.
    Mask,
}

impl Storage {
    /// How tiles of this type are stored.
    pub fn of(ty: &TileType) -> Storage {
        match (ty.dtype, ty.loc) {
            (DType::Bool, _) => Storage::Mask,
            (DType::F8E4M3 | DType::F8E5M2, Loc::Left | Loc::Right) => Storage::Widened,
            _ => Storage::Plain,
        }
    }
}

/// Storage type of a tile's elements, and its strides (row, column) in bytes.
pub fn tile_layout(data: &TileData) -> (MemTy, i64, i64) {
    let ty = &data.ty;
    let storage = Storage::of(ty);
    // A mask at an address of the author's may be the bytes of another one, shifted by rows: rows keep their padding.
    if storage == Storage::Mask && data.addr != AddrKind::Auto {
        return (MemTy::Bool, i64::from(ty.cols.div_ceil(8).next_multiple_of(32)) * 8, 1);
    }
    let elem = match storage {
        Storage::Widened => MemTy::F32,
        _ => MemTy::of(ty.dtype),
    };
    let size = i64::from(elem.size());
    let row_major = ty.order == Order::Nd || matches!(ty.loc, Loc::Left | Loc::Right | Loc::Acc);
    match row_major {
        true => (elem, i64::from(ty.cols) * size, size),
        false => (elem, size, i64::from(ty.rows) * size),
    }
}

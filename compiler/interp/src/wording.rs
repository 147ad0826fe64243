//! Faults of memory in words: the same whoever finds them, the interpreter or the sanitizer of machine code.

use super::tensors::TensorFault;
use ptoc_diagnostics::{Code, codes};
use ptoc_ir::tile::{Elem, Kernel, TensorId, Tile, TileRef};
use ptoc_isa::TileType;
use ptoc_tensor::DType;

/// What is wrong: its code, and one sentence.
pub(crate) type Words = (Code, String);

/// A tile's name.
pub(crate) fn tile_name(kernel: &Kernel, tile: Tile) -> String {
    format!("`{}`", kernel.tiles[tile].name)
}

/// A use of an element of a tensor.
pub(crate) struct Use<'k> {
    /// Name of the tensor.
    pub name: &'k str,
    /// Its dtype.
    pub dtype: DType,
    /// Its size in bytes.
    pub bytes: usize,
    /// What its elements are taken for.
    pub elem: Elem,
    /// Number of the element.
    pub index: i64,
    /// `read`, `write`, `atomic access`.
    pub verb: &'static str,
    /// The block that does it.
    pub block: u32,
}

impl Use<'_> {
    /// The fault; `coordinates` are those of an element of the tensor.
    pub fn fault(&self, fault: TensorFault, coordinates: impl Fn(u64) -> Vec<u64>) -> Words {
        let Use { name, dtype, bytes, elem, index, verb, block } = *self;
        let seen = if elem == Elem::Whole(dtype) { String::new() } else { format!(" (seen as {elem})") };
        if fault == TensorFault::Outside {
            let count = bytes as u128 * 8 / u128::from(elem.bits());
            let message = format!("{verb} of element {index} of tensor {name}{seen}, which has {count} elements");
            return (codes::TRAP_TENSOR_OUT_OF_BOUNDS, message);
        }
        let bits = u128::from(index.unsigned_abs()) * u128::from(elem.bits());
        let first = (bits / 8 / dtype.size() as u128) as u64;
        let place = format!("{name}{:?}{seen}", coordinates(first));
        match fault {
            TensorFault::Race(u32::MAX) => {
                (codes::TRAP_BLOCK_RACE, format!("{verb} of {place}, which other blocks use as well"))
            }
            TensorFault::Race(other) => (
                codes::TRAP_BLOCK_RACE,
                format!("{verb} of {place} by block {block}, which block {other} uses as well"),
            ),
            _ => (codes::TRAP_POISON_READ_TENSOR, format!("{verb} of {place}, which nothing has written")),
        }
    }
}

/// A number that is no element of a tile array.
pub(crate) fn no_element(kernel: &Kernel, tile: Tile, n: i64) -> Words {
    let count = kernel.tiles[tile].count;
    let message = format!("element {n} of tile array {} of {count}", tile_name(kernel, tile));
    (codes::TRAP_TILE_OUT_OF_BOUNDS, message)
}

/// An address that a tile cannot have.
pub(crate) fn bad_address(kernel: &Kernel, tile: Tile, addr: i64, capacity: Option<u64>) -> Words {
    let limit = capacity.map_or(String::new(), |c| format!(" in a memory of {c} bytes"));
    let message = format!(
        "tile {} of {} bytes is assigned address {addr}{limit} (alignment {ALIGN})",
        tile_name(kernel, tile),
        kernel.tiles[tile].ty.bytes()
    );
    (codes::TRAP_BAD_TILE_ADDRESS, message)
}

/// TASSIGN's alignment, the same in every memory.
pub(crate) const ALIGN: i64 = 32;

/// Whether this address is aligned and a tile of that type fits there.
pub(crate) fn is_address(ty: TileType, addr: i64, capacity: Option<u64>) -> bool {
    let end = u64::try_from(addr).ok().and_then(|a| a.checked_add(ty.bytes()));
    end.is_some_and(|end| capacity.is_none_or(|c| end <= c)) && addr % ALIGN == 0
}

/// A tile that has no address yet.
pub(crate) fn unassigned(kernel: &Kernel, tile: Tile) -> Words {
    (codes::TRAP_UNASSIGNED_TILE, format!("tile {} is used before it has an address", tile_name(kernel, tile)))
}

/// A tile beyond the memory that a run may hold.
pub(crate) fn too_large(kernel: &Kernel, tile: Tile, limit: u64) -> Words {
    let name = tile_name(kernel, tile);
    (codes::TRAP_MEMORY_LIMIT, format!("tile {name} needs more memory than the limit of {limit} bytes leaves"))
}

/// Checks that the valid part of a window is inside its tile: its start and its extents.
pub(crate) fn window(kernel: &Kernel, t: &TileRef, origin: (i64, i64), valid: (i64, i64)) -> Result<(), Words> {
    let ty = &kernel.tiles[t.tile].ty;
    let axes = [("rows", origin.0, valid.0, t.rows, ty.rows), ("columns", origin.1, valid.1, t.cols, ty.cols)];
    for (what, start, len, window, capacity) in axes {
        let end = i128::from(start) + i128::from(len);
        if start < 0 || len < 0 || len > i64::from(window) || end > i128::from(capacity) {
            let message = format!(
                "{len} valid {what} from {start}, in a window of {window}, of tile {} of capacity {} x {}",
                tile_name(kernel, t.tile),
                ty.rows,
                ty.cols
            );
            return Err((codes::TRAP_TILE_OUT_OF_BOUNDS, message));
        }
    }
    Ok(())
}

/// An element outside the valid part.
pub(crate) fn not_valid(kernel: &Kernel, tile: Tile, (i, j): (i64, i64), (rows, cols): (usize, usize)) -> Words {
    let message = format!("element ({i}, {j}) of tile {}, valid {rows} x {cols}", tile_name(kernel, tile));
    (codes::TRAP_TILE_OUT_OF_BOUNDS, message)
}

/// An element of a tile in words; row and column are those of the whole tile.
pub(crate) fn tile_element(kernel: &Kernel, tile: Tile, (row, col): (usize, usize)) -> String {
    format!("element ({row}, {col}) of tile {}", tile_name(kernel, tile))
}

/// A read of an element that nothing has written.
pub(crate) fn poison(kernel: &Kernel, tile: Tile, at: (usize, usize)) -> Words {
    let place = tile_element(kernel, tile, at);
    (codes::TRAP_POISON_READ_TILE, format!("read of {place}, which nothing has written"))
}

/// A read of an element that was written under another type (`None`: as plain bytes).
pub(crate) fn confused(kernel: &Kernel, tile: Tile, at: (usize, usize), by: Option<TileType>) -> Words {
    let by = by.map_or("plain data".to_owned(), |ty| ty.to_string());
    let place = tile_element(kernel, tile, at);
    let message = format!("{place}, a {}, is read where {by} was written", kernel.tiles[tile].ty);
    (codes::TRAP_TYPE_CONFUSED_BYTES, message)
}

/// A place of a nest that is outside of its window, which begins at `origin`; `None` is beyond all numbers.
pub(crate) fn outside_window(
    kernel: &Kernel,
    t: &TileRef,
    origin: (usize, usize),
    (r, c): (Option<i128>, Option<i128>),
) -> Words {
    let show = |at: Option<i128>| at.map_or("a huge number".to_owned(), |n| n.to_string());
    let (TileRef { rows, cols, .. }, ty) = (t, kernel.tiles[t.tile].ty);
    let message = format!(
        "element ({}, {}) of a window of {rows} x {cols} at ({}, {}) of tile {}, which has {} x {}",
        show(r),
        show(c),
        origin.0,
        origin.1,
        tile_name(kernel, t.tile),
        ty.rows,
        ty.cols
    );
    (codes::TRAP_TILE_OUT_OF_BOUNDS, message)
}

/// A window of a tensor with another shape than its tile.
pub(crate) fn other_shape(kernel: &Kernel, tensor: TensorId, shape: &[i64], (rows, cols): (usize, usize)) -> Words {
    let name = &kernel.tensors[tensor].name;
    let message = format!("a view of {name} of shape {shape:?} for a tile that is valid as {rows} x {cols}");
    (codes::TRAP_TENSOR_OUT_OF_BOUNDS, message)
}

/// How an element of a nest meets another one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Meeting {
    /// It is read after it was written.
    Read,
    /// It is written again.
    Twice,
    /// It is written after it was read.
    ReadToo,
}

/// An element that two points of a nest use.
pub(crate) fn conflict(element: &str, how: Meeting, nest: &str) -> Words {
    let message = match how {
        Meeting::Read => format!("{element} is read and written"),
        Meeting::Twice => format!("{element} is written twice by one {nest}"),
        Meeting::ReadToo => format!("{element} is read and written by one {nest}"),
    };
    (codes::COPY_CONFLICT, message)
}

/// An entry of a table that the nest writes as well.
pub(crate) fn table_conflict(name: &str, at: i64) -> Words {
    (codes::COPY_CONFLICT, format!("element {at} of table {name} is read and written"))
}

/// An element of a tensor in words.
pub(crate) fn tensor_element(
    name: &str,
    dtype: DType,
    elem: Elem,
    n: i64,
    coordinates: impl Fn(u64) -> Vec<u64>,
) -> String {
    match u64::try_from(n) {
        Ok(at) if elem == Elem::Whole(dtype) => format!("{name}{:?}", coordinates(at)),
        _ => format!("element {n} of {name} (seen as {elem})"),
    }
}

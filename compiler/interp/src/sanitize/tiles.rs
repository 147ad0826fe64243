//! Shadow of tiles: what has been written, and as what.

use cranelift_entity::SecondaryMap;
use ptoc_ir::tile::{AddrKind, Kernel, Tile};
use ptoc_isa::{Loc, Order, TileType};
use ptoc_tensor::DType;
use std::ops::Range;

/// A mark: nothing has written here.
const POISON: u16 = 0;
/// Written as plain data, readable under any type.
const PLAIN: u16 = 1;
// Larger marks: written under the type `types[mark - FIRST_TYPE]`, readable under that type only.
const FIRST_TYPE: u16 = 2;

/// A memory's marks: one a byte. Masks have one a bit beside it.
#[derive(Default)]
struct Space {
    bytes: Vec<u16>,
    bits: Vec<u8>,
}

/// Why an element cannot be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum TileReadFault {
    /// Nothing wrote it.
    Poison,
    /// It was written under that type, or as plain bytes.
    Confused(Option<TileType>),
}

/// Why a tile has no storage.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Missing {
    /// It has no address yet.
    Unassigned,
    /// More memory than [`MOST`].
    TooLarge,
}

/// Bytes that a memory without capacity may have.
pub(super) const MOST: u64 = 4 << 30;

/// The storage of one tile (one element of a tile array).
#[derive(Clone, Copy)]
pub(super) struct Slot<'k> {
    pub ty: &'k TileType,
    pub place: TileStorage,
    mark: u16,
    /// From row to row and from column to column, in elements of the storage (a placed mask: bits); `None`: as the
    /// layout says.
    steps: Option<(usize, usize)>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum TileStorage {
    /// The tile's own marks, from this one on.
    Private(Tile, usize),
    /// First byte in the memory of the type's location.
    Space(usize),
}

/// Elements of a storage at even distances.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct StridedElements {
    pub start: usize,
    pub step: isize,
    pub count: usize,
}

impl StridedElements {
    fn at(&self, k: usize) -> usize {
        self.start.wrapping_add_signed(self.step * k as isize)
    }
}

/// A rectangle of elements.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct ElementRect {
    pub row: usize,
    pub col: usize,
    pub rows: usize,
    pub cols: usize,
}

impl Slot<'_> {
    /// Number of an element in the storage.
    pub fn index(&self, row: usize, col: usize) -> usize {
        match self.steps {
            Some((down, right)) => row * down + col * right,
            None => self.ty.element(row as u32, col as u32) as usize,
        }
    }

    /// From row to row and from column to column, unless a layout says where elements are.
    pub fn steps(&self) -> Option<(usize, usize)> {
        self.steps
    }

    /// The part in as few lines as possible.
    pub fn lines(&self, p: ElementRect, f: &mut dyn FnMut(StridedElements)) {
        if p.rows == 0 || p.cols == 0 {
            return;
        }
        let mut line = |row, col, step: usize, count| {
            f(StridedElements { start: self.index(row, col), step: step as isize, count });
        };
        match self.steps {
            Some((down, 1)) if p.rows == 1 || down == p.cols => line(p.row, p.col, 1, p.rows * p.cols),
            Some((1, right)) if p.cols == 1 || right == p.rows => line(p.row, p.col, 1, p.rows * p.cols),
            Some((1, _)) => (p.col..p.col + p.cols).for_each(|col| line(p.row, col, 1, p.rows)),
            Some((_, right)) => (p.row..p.row + p.rows).for_each(|row| line(row, p.col, right, p.cols)),
            None => p.places().for_each(|(row, col)| line(row, col, 1, 1)),
        }
    }

    /// The first byte and the one behind the last in the memory of the location, if the tile has an address.
    pub fn place_in_memory(&self) -> Option<Range<u64>> {
        match self.place {
            TileStorage::Private(..) => None,
            TileStorage::Space(base) => Some(base as u64..base as u64 + self.ty.bytes()),
        }
    }

    /// Elements that its marks are for.
    pub fn room(&self) -> usize {
        room(self.ty)
    }

    /// Whether it is a mask.
    pub fn is_mask(&self) -> bool {
        self.ty.dtype == DType::Bool
    }

    /// The bytes (of a mask: bits) of an element in its location's memory. Only of a tile with an address.
    pub fn footprint(&self, index: usize) -> Range<u64> {
        let TileStorage::Space(base) = self.place else { return 0..0 };
        let (base, index, size) = (base as u64, index as u64, self.ty.dtype.size() as u64);
        match self.is_mask() {
            true => base * 8 + index..base * 8 + index + 1,
            false => base + index * size..base + (index + 1) * size,
        }
    }

    /// The bytes of an element in its location's memory; `None` of what has none, and of masks.
    pub fn bytes(&self, index: usize) -> Option<Range<u64>> {
        match self.place {
            TileStorage::Space(_) if !self.is_mask() => Some(self.footprint(index)),
            _ => None,
        }
    }
}

impl ElementRect {
    /// Rows and columns of its elements, row by row.
    pub fn places(self) -> impl Iterator<Item = (usize, usize)> {
        (self.row..self.row + self.rows)
            .flat_map(move |row| (self.col..self.col + self.cols).map(move |col| (row, col)))
    }
}

/// All tiles of a block.
pub(super) struct Tiles<'k> {
    kernel: &'k Kernel,
    spaces: Vec<Space>,
    /// One an element, for each element of the array in turn; empty before the tile begins to live.
    private: SecondaryMap<Tile, Vec<u8>>,
    bound: SecondaryMap<Tile, Vec<Option<u64>>>,
    types: Vec<TileType>,
}

impl<'k> Tiles<'k> {
    pub fn new(kernel: &'k Kernel) -> Tiles<'k> {
        Tiles {
            kernel,
            spaces: Loc::ALL.iter().map(|_| Space::default()).collect(),
            private: SecondaryMap::new(),
            bound: SecondaryMap::new(),
            types: Vec::new(),
        }
    }

    /// A block starts: nothing is written, nothing is bound.
    pub fn reset(&mut self) {
        for space in &mut self.spaces {
            space.bytes.fill(POISON);
            space.bits.fill(0);
        }
        self.private.values_mut().for_each(Vec::clear);
        self.bound.clear();
    }

    /// A tile begins to live.
    pub fn alloc(&mut self, tile: Tile) {
        let data = &self.kernel.tiles[tile];
        match data.addr {
            AddrKind::Fixed(_) => {}
            AddrKind::Dynamic => self.bound[tile] = vec![None; data.count as usize],
            AddrKind::Auto => {
                let marks = &mut self.private[tile];
                marks.clear();
                marks.resize(room(&data.ty) * data.count as usize, 0);
            }
        }
    }

    /// Binds an element of a dynamic tile.
    pub fn bind(&mut self, tile: Tile, element: usize, addr: u64) {
        if let Some(slot) = self.bound[tile].get_mut(element) {
            *slot = Some(addr);
        }
    }

    /// The mark of an element of a tile that shares no bytes and whose elements lie in rows or columns.
    pub fn own_mark(&mut self, tile: Tile, row: usize, col: usize) -> Option<&mut u8> {
        let data = &self.kernel.tiles[tile];
        let (down, right) = steps(&data.ty)?;
        if !matches!(data.addr, AddrKind::Auto) {
            return None;
        }
        self.private[tile].get_mut(row * down + col * right)
    }

    /// The storage of an element of a tile array, which exists.
    pub fn slot(&mut self, tile: Tile, element: usize) -> Result<Slot<'k>, Missing> {
        let kernel = self.kernel;
        let data = &kernel.tiles[tile];
        let ty = &data.ty;
        let steps = steps(ty);
        let addr = match &data.addr {
            AddrKind::Auto => {
                let first = room(ty) * element;
                let lives = self.private[tile].len() > first;
                let slot = Slot { ty, place: TileStorage::Private(tile, first), mark: PLAIN, steps };
                return lives.then_some(slot).ok_or(Missing::Unassigned);
            }
            AddrKind::Fixed(at) => at[element],
            AddrKind::Dynamic => self.bound[tile].get(element).copied().flatten().ok_or(Missing::Unassigned)?,
        };
        let end = addr.checked_add(ty.bytes()).filter(|end| *end <= MOST).ok_or(Missing::TooLarge)?;
        let (addr, end) = (addr as usize, end as usize);
        let mask = ty.dtype == DType::Bool;
        let space = &mut self.spaces[ty.loc as usize];
        if space.bytes.len() < end {
            space.bytes.resize(end, POISON);
        }
        if mask && space.bits.len() < end * 8 {
            space.bits.resize(end * 8, 0);
        }
        let mark = if mask || !ty.loc.bytes_observable() { self.mark(ty) } else { PLAIN };
        // A packed mask's rows are padded to 32 bytes.
        let steps = if mask { Some(((ty.cols as usize).div_ceil(8).next_multiple_of(32) * 8, 1)) } else { steps };
        Ok(Slot { ty, place: TileStorage::Space(addr), mark, steps })
    }

    fn mark(&mut self, ty: &TileType) -> u16 {
        let at = self.types.iter().position(|t| t == ty).unwrap_or_else(|| {
            self.types.push(*ty);
            self.types.len() - 1
        });
        FIRST_TYPE + at as u16
    }

    /// Whether all elements of the line may be read.
    pub fn may_read(&self, slot: &Slot<'_>, line: StridedElements) -> bool {
        match slot.place {
            TileStorage::Private(tile, first) => {
                let marks = &self.private[tile];
                match line.step {
                    1 => all(&marks[first + line.start..first + line.start + line.count], 1),
                    _ => (0..line.count).all(|k| marks[first + line.at(k)] == 1),
                }
            }
            TileStorage::Space(_) if line.step != 1 => (0..line.count).all(|k| self.fault(slot, line.at(k)).is_none()),
            TileStorage::Space(base) => {
                let space = &self.spaces[slot.ty.loc as usize];
                if slot.ty.dtype == DType::Bool {
                    let start = base * 8 + line.start;
                    let end = start + line.count;
                    return all(&space.bytes[start / 8..end.div_ceil(8)], slot.mark) && all(&space.bits[start..end], 1);
                }
                let size = slot.ty.dtype.size();
                let start = base + line.start * size;
                all(&space.bytes[start..start + line.count * size], slot.mark)
            }
        }
    }

    /// Why the element with this number cannot be read.
    pub fn fault(&self, slot: &Slot<'_>, index: usize) -> Option<TileReadFault> {
        match slot.place {
            TileStorage::Private(tile, first) => {
                (self.private[tile][first + index] == 0).then_some(TileReadFault::Poison)
            }
            TileStorage::Space(base) => {
                let space = &self.spaces[slot.ty.loc as usize];
                let wrong = |mark: u16| match mark {
                    POISON => Some(TileReadFault::Poison),
                    m if m == slot.mark => None,
                    PLAIN => Some(TileReadFault::Confused(None)),
                    m => Some(TileReadFault::Confused(self.types.get(usize::from(m - FIRST_TYPE)).copied())),
                };
                if slot.ty.dtype == DType::Bool {
                    let bit = base * 8 + index;
                    let poison = (space.bits[bit] == 0).then_some(TileReadFault::Poison);
                    return wrong(space.bytes[bit / 8]).or(poison);
                }
                let size = slot.ty.dtype.size();
                let start = base + index * size;
                space.bytes[start..start + size].iter().find_map(|&mark| wrong(mark))
            }
        }
    }

    /// The elements of a line are written.
    pub fn write(&mut self, slot: &Slot<'_>, line: StridedElements) {
        let mark = slot.mark;
        if line.step != 1 && line.count > 1 {
            for k in 0..line.count {
                self.write(slot, StridedElements { start: line.at(k), step: 1, count: 1 });
            }
            return;
        }
        match slot.place {
            TileStorage::Private(tile, first) => {
                self.private[tile][first + line.start..first + line.start + line.count].fill(1);
            }
            TileStorage::Space(base) => {
                let space = &mut self.spaces[slot.ty.loc as usize];
                if slot.ty.dtype != DType::Bool {
                    let size = slot.ty.dtype.size();
                    let start = base + line.start * size;
                    space.bytes[start..start + line.count * size].fill(mark);
                    return;
                }
                let start = base * 8 + line.start;
                let end = start + line.count;
                for byte in start / 8..end.div_ceil(8) {
                    if space.bytes[byte] != mark {
                        // The byte changes hands: none of its other bits is written.
                        space.bytes[byte] = mark;
                        space.bits[byte * 8..byte * 8 + 8].fill(0);
                    }
                }
                space.bits[start..end].fill(1);
            }
        }
    }
}

/// From row to row and from column to column, in elements; `None`: as the layout says.
fn steps(ty: &TileType) -> Option<(usize, usize)> {
    match (ty.layout, ty.order) {
        (Some(_), _) => None,
        (None, Order::Nd) => Some((ty.cols as usize, 1)),
        (None, Order::Dn) => Some((1, ty.rows as usize)),
    }
}

/// Elements that the marks of one tile are for.
fn room(ty: &TileType) -> usize {
    match ty.dtype {
        DType::Bool => ty.rows as usize * ty.cols as usize,
        dtype => ty.bytes() as usize / dtype.size(),
    }
}

/// Whether all of them are `mark`. Without a branch for each, so that it runs at vector width.
fn all<T: PartialEq + Copy>(marks: &[T], mark: T) -> bool {
    marks.chunks(256).all(|chunk| chunk.iter().fold(true, |same, &m| same & (m == mark)))
}

//! Storage of tiles, with a mark on every byte.

use super::observe::Storage;
use super::traffic::Home;
use cranelift_entity::SecondaryMap;
use ptoc_ir::tile::{AddrKind, Kernel, Tile};
use ptoc_isa::{Loc, TileType};
use ptoc_tensor::DType;
use std::ops::Range;

/// A byte's mark: nothing has written it.
const POISON: u16 = 0;
/// Written as plain data, readable under any type.
const PLAIN: u16 = 1;
// Larger marks: written under the type `types[mark - FIRST_TYPE]`, readable under that type only.
const FIRST_TYPE: u16 = 2;

/// Bytes and their marks.
#[derive(Default)]
struct Bytes {
    data: Vec<u8>,
    marks: Vec<u16>,
}

impl Bytes {
    fn grow(&mut self, len: usize) {
        if self.data.len() < len {
            self.data.resize(len, 0);
            self.marks.resize(len, POISON);
        }
    }
}

/// A location's memory. Masks are kept beside it, a byte for each of their bits.
#[derive(Default)]
struct Space {
    bytes: Bytes,
    masks: Bytes,
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
    /// No TASSIGN yet.
    Unassigned,
    /// More memory than allowed.
    TooLarge,
}

/// The storage of one tile (one element of a tile array).
#[derive(Clone, Copy)]
pub(super) struct Slot {
    pub ty: TileType,
    place: TileStorage,
    mark: u16,
}

#[derive(Clone, Copy)]
enum TileStorage {
    /// Index of a private storage.
    Private(usize),
    /// First byte in the memory of the type's location.
    Space(usize),
}

/// All tile storage of a block.
pub(super) struct Tiles {
    types: Vec<TileType>,
    spaces: Vec<Space>,
    private: Vec<Bytes>,
    /// First private storage of a tile array that has some.
    first: SecondaryMap<Tile, Option<usize>>,
    bound: SecondaryMap<Tile, Vec<Option<u64>>>,
    /// Bytes that may still be allocated.
    left: u64,
}

impl Tiles {
    pub fn new(limit: u64) -> Tiles {
        Tiles {
            types: Vec::new(),
            spaces: Loc::ALL.iter().map(|_| Space::default()).collect(),
            private: Vec::new(),
            first: SecondaryMap::new(),
            bound: SecondaryMap::new(),
            left: limit,
        }
    }

    /// A block starts: every byte is poison, nothing is bound.
    pub fn reset(&mut self) {
        for space in &mut self.spaces {
            space.bytes.marks.fill(POISON);
            space.masks.marks.fill(POISON);
        }
        for bytes in &mut self.private {
            bytes.marks.fill(POISON);
        }
        self.bound.clear();
    }

    /// Private storage becomes poison; a binding ends. False if memory does not suffice.
    pub fn alloc(&mut self, kernel: &Kernel, tile: Tile) -> bool {
        let data = &kernel.tiles[tile];
        match data.addr {
            AddrKind::Fixed(_) => {}
            AddrKind::Dynamic => self.bound[tile] = vec![None; data.count as usize],
            AddrKind::Auto => match self.first[tile] {
                Some(first) => {
                    for bytes in &mut self.private[first..first + data.count as usize] {
                        bytes.marks.fill(POISON);
                    }
                }
                None => {
                    // A private mask is not packed.
                    let each = match data.ty.dtype {
                        DType::Bool => u64::from(data.ty.rows) * u64::from(data.ty.cols),
                        _ => data.ty.bytes(),
                    };
                    // A mark takes two bytes.
                    let Some(left) = self.left.checked_sub(each.saturating_mul(3 * u64::from(data.count))) else {
                        return false;
                    };
                    self.left = left;
                    self.first[tile] = Some(self.private.len());
                    for _ in 0..data.count {
                        let mut bytes = Bytes::default();
                        bytes.grow(each as usize);
                        self.private.push(bytes);
                    }
                }
            },
        }
        true
    }

    /// Takes so many bytes of the memory that may be allocated. False if they are not there.
    pub fn reserve(&mut self, bytes: u64) -> bool {
        let left = self.left.checked_sub(bytes);
        self.left = left.unwrap_or(self.left);
        left.is_some()
    }

    /// Whether so many bytes could be allocated.
    pub fn has(&self, bytes: u64) -> bool {
        bytes <= self.left
    }

    /// Binds an element of a dynamic tile.
    pub fn bind(&mut self, tile: Tile, element: usize, addr: u64) {
        if let Some(slot) = self.bound[tile].get_mut(element) {
            *slot = Some(addr);
        }
    }

    /// The storage of an element of a tile array, which exists.
    pub fn slot(&mut self, kernel: &Kernel, tile: Tile, element: usize) -> Result<Slot, Missing> {
        let data = &kernel.tiles[tile];
        let addr = match &data.addr {
            AddrKind::Auto => {
                let place = TileStorage::Private(self.first[tile].ok_or(Missing::Unassigned)? + element);
                return Ok(Slot { ty: data.ty, place, mark: PLAIN });
            }
            AddrKind::Fixed(at) => at[element],
            AddrKind::Dynamic => self.bound[tile].get(element).copied().flatten().ok_or(Missing::Unassigned)?,
        };
        let mask = data.ty.dtype == DType::Bool;
        let end = addr.checked_add(data.ty.bytes()).ok_or(Missing::TooLarge)?;
        let space = &mut self.spaces[data.ty.loc as usize];
        let len = space.bytes.data.len() as u64;
        let mask_len = space.masks.data.len() as u64;
        let grow = end.saturating_sub(len).saturating_mul(3);
        let grow_masks = if mask { end.saturating_mul(8).saturating_sub(mask_len).saturating_mul(3) } else { 0 };
        self.left = self.left.checked_sub(grow.saturating_add(grow_masks)).ok_or(Missing::TooLarge)?;
        space.bytes.grow(end as usize);
        if mask {
            space.masks.grow(end as usize * 8);
        }
        let mark = if mask || !data.ty.loc.bytes_observable() { self.mark(data.ty) } else { PLAIN };
        Ok(Slot { ty: data.ty, place: TileStorage::Space(addr as usize), mark })
    }

    /// Where an element of a tile array is.
    pub fn storage(&self, kernel: &Kernel, tile: Tile, element: usize) -> Storage {
        match &kernel.tiles[tile].addr {
            AddrKind::Auto => self.first[tile].map_or(Storage::None, |_| Storage::Own),
            AddrKind::Fixed(at) => at.get(element).map_or(Storage::None, |&at| Storage::At(at)),
            AddrKind::Dynamic => self.bound[tile].get(element).copied().flatten().map_or(Storage::None, Storage::At),
        }
    }

    /// [`Self::slot`] of a tile of which bytes have been touched; makes nothing.
    pub fn existing(&self, kernel: &Kernel, tile: Tile, element: usize) -> Result<Slot, Missing> {
        let data = &kernel.tiles[tile];
        let addr = match self.storage(kernel, tile, element) {
            Storage::None => return Err(Missing::Unassigned),
            Storage::Own => {
                let place = TileStorage::Private(self.first[tile].ok_or(Missing::Unassigned)? + element);
                return Ok(Slot { ty: data.ty, place, mark: PLAIN });
            }
            Storage::At(addr) => addr,
        };
        let end = addr.checked_add(data.ty.bytes()).and_then(|end| usize::try_from(end).ok());
        let end = end.ok_or(Missing::TooLarge)?;
        let space = &self.spaces[data.ty.loc as usize];
        let mask = data.ty.dtype == DType::Bool;
        if space.bytes.data.len() < end || mask && space.masks.data.len() < end * 8 {
            return Err(Missing::Unassigned);
        }
        let mark = match self.types.iter().position(|&t| t == data.ty) {
            _ if !mask && data.ty.loc.bytes_observable() => PLAIN,
            Some(at) => FIRST_TYPE.saturating_add(at as u16),
            // No tile of this type has been used yet.
            None => u16::MAX,
        };
        Ok(Slot { ty: data.ty, place: TileStorage::Space(addr as usize), mark })
    }

    fn mark(&mut self, ty: TileType) -> u16 {
        let at = self.types.iter().position(|&t| t == ty).unwrap_or_else(|| {
            self.types.push(ty);
            self.types.len() - 1
        });
        FIRST_TYPE.saturating_add(at as u16)
    }

    /// Bits of the element; the indices are inside the capacity.
    pub fn read(&self, slot: &Slot, row: usize, col: usize) -> Result<u64, TileReadFault> {
        let size = slot.ty.dtype.size();
        let at = index(&slot.ty, row, col) * size;
        let (bytes, at) = match slot.place {
            TileStorage::Private(n) => (&self.private[n], at),
            TileStorage::Space(base) => {
                let space = &self.spaces[slot.ty.loc as usize];
                if slot.ty.dtype == DType::Bool {
                    let bit = base * 8 + mask_bit(&slot.ty, row, col);
                    self.check(space.bytes.marks[bit / 8], slot)?;
                    if space.masks.marks[bit] == POISON {
                        return Err(TileReadFault::Poison);
                    }
                    return Ok(u64::from(space.masks.data[bit]));
                }
                (&space.bytes, base + at)
            }
        };
        for &mark in &bytes.marks[at..at + size] {
            self.check(mark, slot)?;
        }
        let mut raw = [0; 8];
        raw[..size].copy_from_slice(&bytes.data[at..at + size]);
        Ok(u64::from_le_bytes(raw))
    }

    /// The storage of a tile, for comparison with others'.
    pub fn home(&self, slot: &Slot) -> Home {
        let bytes = slot.ty.bytes();
        match slot.place {
            TileStorage::Private(n) => Home::Private(n as u64, self.private[n].data.len() as u64),
            TileStorage::Space(base) if slot.ty.dtype == DType::Bool => {
                Home::Masks(slot.ty.loc, base as u64 * 8..(base as u64 + bytes) * 8)
            }
            TileStorage::Space(base) => Home::Space(slot.ty.loc, base as u64..base as u64 + bytes),
        }
    }

    /// The bytes (of a placed mask: bits) of an element in the tile's home; the indices are inside the capacity.
    pub fn footprint(&self, slot: &Slot, row: usize, col: usize) -> Range<u64> {
        let size = slot.ty.dtype.size() as u64;
        let at = index(&slot.ty, row, col) as u64 * size;
        match slot.place {
            TileStorage::Private(_) => at..at + size,
            TileStorage::Space(base) if slot.ty.dtype == DType::Bool => {
                let bit = base as u64 * 8 + mask_bit(&slot.ty, row, col) as u64;
                bit..bit + 1
            }
            TileStorage::Space(base) => base as u64 + at..base as u64 + at + size,
        }
    }

    /// The bytes of an element in its location's memory (of a mask: the byte of its bit); `None` for private storage.
    pub fn physical_bytes(&self, slot: &Slot, row: usize, col: usize) -> Option<Range<u64>> {
        match slot.place {
            TileStorage::Private(_) => None,
            TileStorage::Space(_) if slot.ty.dtype == DType::Bool => {
                let bit = self.footprint(slot, row, col).start;
                Some(bit / 8..bit / 8 + 1)
            }
            TileStorage::Space(_) => Some(self.footprint(slot, row, col)),
        }
    }

    /// Addresses of a tile array that is bound at run time.
    pub fn bindings(&self, tile: Tile) -> &[Option<u64>] {
        &self.bound[tile]
    }

    /// Exchanges them with others.
    pub fn exchange_bindings(&mut self, tile: Tile, with: &mut Vec<Option<u64>>) {
        std::mem::swap(&mut self.bound[tile], with);
    }

    fn check(&self, mark: u16, slot: &Slot) -> Result<(), TileReadFault> {
        match mark {
            POISON => Err(TileReadFault::Poison),
            m if m == slot.mark => Ok(()),
            PLAIN => Err(TileReadFault::Confused(None)),
            m => Err(TileReadFault::Confused(self.types.get(usize::from(m - FIRST_TYPE)).copied())),
        }
    }

    /// Writes the element; the indices are inside the capacity.
    pub fn write(&mut self, slot: &Slot, row: usize, col: usize, bits: u64) {
        let size = slot.ty.dtype.size();
        let at = index(&slot.ty, row, col) * size;
        let (bytes, at) = match slot.place {
            TileStorage::Private(n) => (&mut self.private[n], at),
            TileStorage::Space(base) => {
                let space = &mut self.spaces[slot.ty.loc as usize];
                if slot.ty.dtype == DType::Bool {
                    let bit = base * 8 + mask_bit(&slot.ty, row, col);
                    let mark = &mut space.bytes.marks[bit / 8];
                    if *mark != slot.mark {
                        // The byte changes hands: none of its other bits is written.
                        *mark = slot.mark;
                        space.masks.marks[bit / 8 * 8..bit / 8 * 8 + 8].fill(POISON);
                    }
                    space.masks.marks[bit] = PLAIN;
                    space.masks.data[bit] = bits as u8 & 1;
                    return;
                }
                (&mut space.bytes, base + at)
            }
        };
        bytes.data[at..at + size].copy_from_slice(&bits.to_le_bytes()[..size]);
        bytes.marks[at..at + size].fill(slot.mark);
    }
}

impl Tiles {
    /// An instruction has left something here that nobody may read. Not for masks.
    pub fn spoil(&mut self, slot: &Slot, row: usize, col: usize) {
        let size = slot.ty.dtype.size();
        let at = index(&slot.ty, row, col) * size;
        let (bytes, at) = match slot.place {
            TileStorage::Private(n) => (&mut self.private[n], at),
            TileStorage::Space(base) => (&mut self.spaces[slot.ty.loc as usize].bytes, base + at),
        };
        bytes.marks[at..at + size].fill(POISON);
    }
}

/// Number of the element (row, col) in the whole tile's storage.
fn index(ty: &TileType, row: usize, col: usize) -> usize {
    ty.element(row as u32, col as u32) as usize
}

/// The bit of a packed mask: rows are padded to 32 bytes.
fn mask_bit(ty: &TileType, row: usize, col: usize) -> usize {
    row * (ty.cols as usize).div_ceil(8).next_multiple_of(32) * 8 + col
}

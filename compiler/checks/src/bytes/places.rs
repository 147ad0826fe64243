//! Where the window of an operand may be: storages, addresses, bytes.

use super::contents::{Bytes, Entry, UNWRITTEN, Vague};
use super::numbers::SymbolicOffset;
use super::states::ByteState;
use super::walk::{ByteInterpreter, Element};
use super::window::{Extent, Key, Shape, Start, TouchedPart};
use cranelift_entity::EntityRef;
use ptoc_ir::tile::{AddrKind, Tile, TileRef};
use std::rc::Rc;

/// Addresses of a tile that are told apart where it is not known which of them it has.
const ADDRESSES: usize = 64;

/// Where a window may be.
pub(super) struct Places {
    /// Storages and first bytes.
    pub(super) all: Vec<(usize, u64)>,
    /// It is the only one of `all`.
    pub(super) certain: bool,
    /// Nothing is known of the address: all of the storage.
    pub(super) anywhere: bool,
    /// Its lowest address then.
    lowest: u64,
    pub(super) element: Element,
    pub(super) key: Key,
    pub(super) extent: Extent,
}

impl Places {
    /// At each of its places, the bytes that it has where all is valid that can be. `None` if that is not known.
    pub(super) fn full(&self) -> Option<Vec<(usize, Rc<[Bytes]>)>> {
        let known = !self.anywhere && !self.extent.full.is_empty();
        known.then(|| self.all.iter().map(|&(s, base)| (s, shift(&self.extent.full, base))).collect())
    }

    /// At each of its places, the bytes of which some are touched, or all.
    pub(super) fn sure(&self) -> Vec<(usize, Rc<[Bytes]>)> {
        if self.extent.sized {
            return self.most();
        }
        self.all.iter().filter(|_| !self.anywhere).map(|&(s, base)| (s, shift(&self.extent.least, base))).collect()
    }

    /// Bytes that are touched wherever the window is; none if that is not known.
    pub(super) fn common(&self) -> Option<(usize, Rc<[Bytes]>)> {
        let (storage, first) = *self.all.first()?;
        if self.anywhere || !self.extent.exact || self.all.iter().any(|(s, _)| *s != storage) {
            return None;
        }
        let mut common = shift(&self.extent.most, first).to_vec();
        for &(_, base) in &self.all[1..] {
            common = both(&common, &shift(&self.extent.most, base));
        }
        (!common.is_empty()).then(|| (storage, common.into()))
    }

    pub(super) fn most(&self) -> Vec<(usize, Rc<[Bytes]>)> {
        let whole: Rc<[Bytes]> = Rc::from([(self.lowest, u64::MAX)]);
        let at = |&(s, base): &(usize, u64)| match self.anywhere {
            true => (s, whole.clone()),
            false => (s, shift(&self.extent.most, base)),
        };
        self.all.iter().map(at).collect()
    }
}

pub(super) fn shift(ranges: &Rc<[Bytes]>, by: u64) -> Rc<[Bytes]> {
    match by {
        0 => ranges.clone(),
        _ => ranges.iter().map(|(s, e)| (s.saturating_add(by), e.saturating_add(by))).collect(),
    }
}

/// Bytes that are in both lists, each of which is sorted and has no overlaps.
fn both(a: &[Bytes], b: &[Bytes]) -> Vec<Bytes> {
    let (mut i, mut j, mut out) = (0, 0, Vec::new());
    while i < a.len() && j < b.len() {
        let (start, end) = (a[i].0.max(b[j].0), a[i].1.min(b[j].1));
        if start < end {
            out.push((start, end));
        }
        if a[i].1 < b[j].1 { i += 1 } else { j += 1 }
    }
    out
}

impl ByteInterpreter<'_> {
    /// Storage and first byte of an element of a tile that is not bound at run time.
    pub(super) fn start(&self, tile: Tile, element: u32) -> (usize, u64) {
        let data = &self.kernel.tiles[tile];
        match &data.addr {
            AddrKind::Fixed(at) => (data.ty.loc as usize, at[element as usize]),
            _ => (self.own[tile] + element as usize, 0),
        }
    }

    pub(super) fn places(&mut self, state: &ByteState, r: &TileRef, part: TouchedPart) -> Places {
        let data = &self.kernel.tiles[r.tile];
        let number = r.element.map_or(SymbolicOffset::known(0), |v| self.numbers.get(v));
        let element = number.constant().and_then(|n| u32::try_from(n).ok()).filter(|n| *n < data.count);
        let elements = self.numbers.spread(number);
        let memory = data.ty.loc as usize;
        let somewhere = Start::Somewhere(r.tile.index() as u32, number);
        let own = data.addr == AddrKind::Auto;
        let mut lowest = 0;
        let (all, anywhere, start) = match (&data.addr, element) {
            (AddrKind::Auto, Some(n)) => {
                let s = self.own[r.tile] + n as usize;
                (vec![(s, 0)], false, Start::At(s, 0))
            }
            (AddrKind::Auto, None) => {
                let first = self.own[r.tile];
                (
                    (0..data.count).filter(|n| elements.has(i64::from(*n))).map(|n| (first + n as usize, 0)).collect(),
                    false,
                    somewhere,
                )
            }
            (AddrKind::Fixed(at), Some(n)) => {
                let base = at[n as usize];
                (vec![(memory, base)], false, Start::At(memory, base))
            }
            (AddrKind::Fixed(at), None) => {
                let some = at.iter().enumerate().filter(|(n, _)| elements.has(*n as i64));
                (some.map(|(_, &base)| (memory, base)).collect(), false, somewhere)
            }
            (AddrKind::Dynamic, element) => {
                let address = element.and_then(|n| state.bound.get(&(r.tile, n)).copied());
                match address.map(|a| (a, a.constant().and_then(|n| u64::try_from(n).ok()))) {
                    Some((_, Some(base))) => (vec![(memory, base)], false, Start::At(memory, base)),
                    Some((a, None)) => {
                        let start = Start::Somewhere(r.tile.index() as u32, a);
                        match self.numbers.spread(a).values(0, i64::MAX, ADDRESSES) {
                            Some(all) => (all.into_iter().map(|at| (memory, at as u64)).collect(), false, start),
                            None => {
                                lowest = self.numbers.spread(a).first.map_or(0, |n| n.max(0) as u64);
                                (vec![(memory, 0)], true, start)
                            }
                        }
                    }
                    None => {
                        let unknown = self.numbers.symbol();
                        (vec![(memory, 0)], true, Start::Somewhere(r.tile.index() as u32, unknown))
                    }
                }
            }
        };
        let certain = matches!(start, Start::At(..));
        let (key, extent) = self.keys.window(self.kernel, &mut self.numbers, r, part, start, own);
        Places { all, certain, anywhere, lowest, element, key, extent }
    }

    /// How many bytes of a tile may be unwritten; none where its address is not known.
    pub(super) fn unwritten_in(&self, tile: Tile, state: &ByteState) -> u64 {
        let data = &self.kernel.tiles[tile];
        let (memory, own) = (data.ty.loc as usize, data.addr == AddrKind::Auto);
        let size = Shape::new(data.ty, own).bytes();
        let all: Vec<(usize, u64)> = match &data.addr {
            AddrKind::Auto => (0..data.count as usize).map(|n| (self.own[tile] + n, 0)).collect(),
            AddrKind::Fixed(at) => at.iter().map(|&base| (memory, base)).collect(),
            AddrKind::Dynamic => Vec::new(),
        };
        let mut count = 0u64;
        for (storage, base) in all {
            state.storages[storage].visit(&[(base, base.saturating_add(size))], &mut |(start, end), set| {
                let open = |e: &Entry| e.def == UNWRITTEN && e.vague == Vague::No;
                count += if self.sets.get(set).iter().any(open) { end - start } else { 0 };
            });
        }
        count
    }
}

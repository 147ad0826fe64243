//! Tiles that bulk copies bring to be computed with: threads take their elements from a slot, and free it.

use super::Code;
use ptoc_ir::tile::{Copy, NestAccess, Tile, TileRef, ViewRef};
use ptoc_opt::fragments::{Fragment, OperandSource, PART_BYTES};
use ptoc_ptx::{Address, Arith, Class, Op as Ptx, Round, Sm90, Space, Src, Type, VReg};
use ptoc_tensor::DType;

/// Bytes of a chunk, which swizzles exchange.
pub(super) const CHUNK: u32 = 16;

/// A number of 16 bits twice in a word.
pub(super) const BOTH: u32 = 0x1_0001;

/// All lanes of a warp.
const ALL: u64 = 0xffff_ffff;

impl Code<'_> {
    /// The producer's part, where this launch's bulk copies can bring the array.
    pub(super) fn bring_staged(&mut self, ring: usize) -> Option<()> {
        let skip = self.b.label();
        if let Some(mapped) = self.mapped[ring] {
            self.b.bra_if(mapped, false, skip);
        }
        self.only_if_leads(ring, |c| c.copy_window(ring))?;
        self.advance(ring);
        self.b.place(skip);
        Some(())
    }

    /// The elements of a tile: from the slot at hand, or from memory where bulk copies cannot bring it.
    pub(super) fn take_staged(&mut self, ring: usize, t: &TileRef, view: &ViewRef) -> Option<()> {
        self.take(ring, t.tile, |c| c.elements_from_slot(ring, t), |c| c.load(t, view))
    }

    /// The same of half bytes.
    pub(super) fn take_nibbles(&mut self, ring: usize, copy: &Copy) -> Option<()> {
        let plan = self.plan;
        let (NestAccess::Tile { tile, .. }, OperandSource::Nibbles(nibbles)) = (&copy.dst, &plan.loads[ring].source)
        else {
            return None;
        };
        // A word for eight columns of each of a thread's two rows.
        let words: Vec<VReg> = (0..tile.cols / 4).map(|_| self.b.reg(Class::B32)).collect();
        let slot = |c: &mut Self| {
            c.words_from_slot(ring, tile, &words);
            Some(())
        };
        self.take(ring, tile.tile, slot, |c| c.words_from_memory(ring, (tile, nibbles), &words))?;
        self.nibbles_of(&words, tile, nibbles)
    }

    fn take(
        &mut self,
        ring: usize,
        tile: Tile,
        slot: impl FnOnce(&mut Self) -> Option<()>,
        elements: impl FnOnce(&mut Self) -> Option<()>,
    ) -> Option<()> {
        // What a slot is free behind is no product, so nothing is under way that one path would wait for.
        let (memory, end) = (self.b.label(), self.b.label());
        if let Some(mapped) = self.mapped[ring] {
            self.b.bra_if(mapped, false, memory);
        }
        self.wait_for(ring);
        slot(self)?;
        // One lane frees the slot for all of its warp.
        self.b.sm90(Sm90::BarWarpSync, &[], &[Src::Imm(ALL)]);
        self.release(ring);
        if self.mapped[ring].is_some() {
            self.b.bra(end);
            self.b.place(memory);
            elements(self)?;
            self.b.place(end);
        }
        self.forget(tile);
        Some(())
    }

    /// Two neighbours in each of two rows, of every eight columns: lines are as wide as the swizzle, or parts of that.
    fn elements_from_slot(&mut self, ring: usize, t: &TileRef) -> Option<()> {
        let Fragment::Full(columns) = self.layout(t.tile)? else { return None };
        let dtype = self.kernel.tiles[t.tile].ty.dtype;
        let (width, part) = (self.rings[ring].width, self.rings[ring].part);
        let size = dtype.size() as u32;
        let (to, ..) = self.slot(ring);
        let row = self.at(self.row, width, to);
        let line = self.swizzle(width);
        let mine = self.u32(Arith::Shl, self.column, size.ilog2());
        let mine = self.b.arith(Arith::Xor, Type::B32, &[mine.into(), line.into()]);
        let mut taken = Vec::new();
        for eight in 0..columns / 8 {
            let at = 8 * eight * size;
            let place = self.u32(Arith::Xor, mine, at % width);
            let place = self.b.arith(Arith::Add, Type::U32, &[place.into(), row.into()]);
            for below in [0, 8 * width] {
                let disp = (at / width * part + below) as i32;
                self.pair_from(dtype, Address { disp, ..Address::at(place) }, &mut taken);
            }
        }
        for (reg, value) in self.tile(t.tile)?.into_iter().zip(taken) {
            let class = self.b.class(reg);
            self.b.set(reg, super::statements::copied(class), value);
        }
        Some(())
    }

    /// What swizzles the places in a thread's rows: the number of the row's 128 bytes, of which as many digits count as
    /// a line has chunks.
    pub(super) fn swizzle(&mut self, width: u32) -> VReg {
        let line = self.u32(Arith::Shr, self.row, (PART_BYTES / width).ilog2());
        let line = self.u32(Arith::And, line, width / CHUNK - 1);
        self.u32(Arith::Shl, line, CHUNK.ilog2())
    }

    /// Two neighbours, in as many registers as they have.
    fn pair_from(&mut self, dtype: DType, at: Address, to: &mut Vec<VReg>) {
        match dtype.size() {
            1 => {
                let both = self.b.ld(Space::Shared, Type::U16, at);
                let both = self.b.cvt(Type::U32, Type::U16, Round::None, both);
                let apart = self.u32(Arith::Shl, both, 8);
                let apart = self.b.arith(Arith::Or, Type::B32, &[apart.into(), both.into()]);
                to.push(self.u32(Arith::And, apart, 0xff * BOTH));
            }
            2 => to.push(self.b.ld(Space::Shared, Type::B32, at)),
            _ => {
                let (ty, class) = if dtype == DType::F32 { (Type::F32, Class::F32) } else { (Type::B32, Class::B32) };
                let pair = [self.b.reg(class), self.b.reg(class)];
                self.b.push(Ptx::Ld(Space::Shared, ty), &pair, &[Src::Addr(at)]);
                to.extend(pair);
            }
        }
    }
}

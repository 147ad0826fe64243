//! Half bytes as elements (int4 weights of a mixed-input GEMM): a thread takes words of eight columns, of
//! which its two are anywhere.

use super::Code;
use super::staged::{BOTH, CHUNK};
use ptoc_ir::tile::TileRef;
use ptoc_opt::fragments::Nibbles;
use ptoc_ptx::{Address, Arith, Cmp, Op as Ptx, Space, Src, Type, VReg};

/// Bytes of a word, and columns that it has.
const WORD: u32 = 4;
const COLUMNS: u32 = 8;

/// Words of a chunk.
const CHUNK_WORDS: usize = (CHUNK / WORD) as usize;

impl Code<'_> {
    /// By how many digits the two columns of a thread are shifted in a word.
    fn own_nibbles(&mut self, of: &Nibbles) -> [VReg; 2] {
        [0, 1].map(|e| {
            // A byte for each of four threads; the thread's column is twice its number.
            let table = (0..4).fold(0, |table, q| table | u32::from(of.order[2 * q + e]) << (8 * q + 2));
            let at = self.u32(Arith::Shl, self.column, 2);
            let shift = self.b.arith(Arith::Shr, Type::U32, &[Src::Imm(table.into()), at.into()]);
            self.u32(Arith::And, shift, 0xff)
        })
    }

    /// A thread's half bytes of a word.
    fn pair_of(&mut self, word: VReg, own: [VReg; 2], of: &Nibbles) -> VReg {
        let low = self.b.arith(Arith::Shr, Type::U32, &[word.into(), own[0].into()]);
        let steps = of.order.chunks(2).map(|pair| pair[1].wrapping_sub(pair[0]));
        let both = match distance(steps) {
            // They are 16 digits apart as it is.
            Some(4) => low,
            Some(1) => {
                let high = self.u32(Arith::Shl, low, 12);
                let high = self.u32(Arith::And, high, 0xf << 16);
                let low = self.u32(Arith::And, low, 0xf);
                self.b.arith(Arith::Or, Type::B32, &[low.into(), high.into()])
            }
            _ => {
                let low = self.u32(Arith::And, low, 0xf);
                let high = self.b.arith(Arith::Shr, Type::U32, &[word.into(), own[1].into()]);
                self.beside(low, high)
            }
        };
        self.extended(both, of.signed)
    }

    /// Half bytes that lie 16 digits apart as the digits of integers of 8 bits.
    fn extended(&mut self, both: VReg, signed: bool) -> VReg {
        let low = self.u32(Arith::And, both, 0xf * BOTH);
        if !signed {
            return low;
        }
        let above = self.u32(Arith::Xor, low, 8 * BOTH);
        let below = self.u32(Arith::Add, above, 0xf8 * BOTH);
        self.u32(Arith::And, below, 0xff * BOTH)
    }

    /// Two words of which the first has 16 digits.
    pub(super) fn beside(&mut self, low: VReg, high: VReg) -> VReg {
        let high = self.u32(Arith::Shl, high, 16);
        self.b.arith(Arith::Or, Type::B32, &[low.into(), high.into()])
    }

    /// The words of a thread's rows, in the order of columns: from a slot, where four threads read the same chunks.
    pub(super) fn words_from_slot(&mut self, ring: usize, t: &TileRef, to: &[VReg]) {
        let (width, part) = (self.rings[ring].width, self.rings[ring].part);
        let (slot, ..) = self.slot(ring);
        let row = self.at(self.row, width, slot);
        let line = self.swizzle(width);
        let mut to = to.chunks(2 * CHUNK_WORDS);
        for at in (0..t.cols * WORD / COLUMNS).step_by(CHUNK as usize) {
            let Some(words) = to.next() else { return };
            let place = self.u32(Arith::Xor, line, at % width);
            let place = self.b.arith(Arith::Add, Type::U32, &[place.into(), row.into()]);
            for (half, below) in [0, 8 * width].into_iter().enumerate() {
                let words: Vec<VReg> = words.iter().copied().skip(half).step_by(2).collect();
                let from = Address { disp: (at / width * part + below) as i32, ..Address::at(place) };
                self.b.push(Ptx::Ld(Space::Shared, Type::B32), &words, &[Src::Addr(from)]);
            }
        }
    }

    /// The same from memory, byte by byte; zeros beyond the end of a row, and below the valid rows.
    pub(super) fn words_from_memory(&mut self, ring: usize, (t, of): (&TileRef, &Nibbles), to: &[VReg]) -> Option<()> {
        let base = self.tensors[self.plan.loads[ring].tensor as usize];
        let (start, pitch) = (self.value(of.start)?, self.value(of.pitch)?);
        let (valid, row) = (self.value(t.valid.0)?, self.long(self.row));
        let along = self.coordinate(&self.plan.loads[ring].at[0])?;
        let along = self.long(along);
        let all = self.b.arith(Arith::Shr, Type::U64, &[pitch, Src::Imm(1)]);
        let left = self.b.arith(Arith::Sub, Type::S64, &[all.into(), along.into()]);
        let rows = [0, 8].map(|n| {
            let row = self.b.arith(Arith::Add, Type::U64, &[row.into(), Src::Imm(n)]);
            let inside = self.b.setp(Cmp::Lt, Type::S64, row, valid);
            let first = self.b.arith(Arith::MadLo, Type::U64, &[row.into(), pitch, start]);
            let first = self.b.arith(Arith::Shr, Type::U64, &[first.into(), Src::Imm(1)]);
            (self.b.arith(Arith::Add, Type::U64, &[first.into(), base.into()]), inside)
        });
        for (word, pair) in (0..t.cols / COLUMNS).zip(to.chunks(2)) {
            for to in pair {
                self.b.set(*to, Type::B32, Src::Imm(0));
            }
            for byte in 0..WORD {
                let at = word * WORD + byte;
                let inside = self.b.setp(Cmp::Gt, Type::S64, left, Src::Imm(at.into()));
                for ((first, above), to) in rows.iter().zip(pair) {
                    let good = self.b.arith(Arith::And, Type::Pred, &[inside.into(), (*above).into()]);
                    let loaded = self.b.mov(Type::U32, Src::Imm(0));
                    self.b.guard = Some((good, true));
                    let from = Address { disp: at as i32, ..Address::at(*first) };
                    self.b.push(Ptx::Ld(Space::Global, Type::U8), &[loaded], &[Src::Addr(from)]);
                    self.b.guard = None;
                    let digits = self.u32(Arith::Shl, loaded, 8 * byte);
                    self.b.push(Ptx::Arith(Arith::Or, Type::B32), &[*to], &[(*to).into(), digits.into()]);
                }
            }
        }
        Some(())
    }

    /// The elements of words.
    pub(super) fn nibbles_of(&mut self, words: &[VReg], t: &TileRef, of: &Nibbles) -> Option<()> {
        let own = self.own_nibbles(of);
        let pairs: Vec<VReg> = words.iter().map(|word| self.pair_of(*word, own, of)).collect();
        for (reg, pair) in self.tile(t.tile)?.into_iter().zip(pairs) {
            self.b.set(reg, Type::B32, pair);
        }
        Some(())
    }
}

/// The distance that all of these are.
fn distance(mut steps: impl Iterator<Item = u8>) -> Option<u8> {
    let first = steps.next()?;
    steps.all(|step| step == first).then_some(first)
}

//! Chunks of 16 bytes that the producer's threads bring one by one: where each lies in a swizzled part of a slot, its
//! elements, and zeros for those that are not there.

use super::loads::LINE;
use super::{Code, GROUP};
use ptoc_opt::fragments::PART;
use ptoc_ptx::{Address, Arith, Class, Cmp, Op as Ptx, Sm90, Space, Src, Type, VReg};

/// Elements of a chunk, and chunks of a line of a part.
pub(super) const CHUNK: u32 = 8;
pub(super) const CHUNKS: u32 = PART / CHUNK;

/// Bytes of an element.
pub(super) const HALF: u64 = 2;

/// Chunks of a thread whose addresses are computed at once, and so their entries of tables loaded: as many as it has
/// registers for.
const AHEAD: u32 = 4;

impl Code<'_> {
    /// Runs `body` for each chunk of the thread in a part with this many lines.
    pub(super) fn each_chunk(&mut self, lines: u32, body: impl FnOnce(&mut Self, VReg) -> Option<()>) -> Option<()> {
        let chunk = self.b.mov(Type::U32, self.thread);
        let (head, end) = (self.b.label(), self.b.label());
        self.b.place(head);
        let over = self.b.setp(Cmp::Ge, Type::U32, chunk, Src::Imm(u64::from(lines * CHUNKS)));
        self.b.bra_if(over, true, end);
        body(self, chunk)?;
        self.b.push(Ptx::Arith(Arith::Add, Type::U32), &[chunk], &[chunk.into(), Src::Imm(GROUP.into())]);
        self.b.bra(head);
        self.b.place(end);
        Some(())
    }

    /// The predicate that two numbers of bytes, addresses or distances, are multiples of a chunk's.
    pub(super) fn are_chunks(&mut self, a: VReg, b: VReg) -> VReg {
        let all = self.b.arith(Arith::Or, Type::B64, &[a.into(), b.into()]);
        let low = self.b.arith(Arith::And, Type::B64, &[all.into(), Src::Imm(u64::from(CHUNK) * HALF - 1)]);
        self.b.setp(Cmp::Eq, Type::B64, low, Src::Imm(0))
    }

    /// Brings all chunks of a part at `to` as vectors, which are under way behind it: `source` gives the address of a
    /// chunk, by its line and its place in the line, and the predicate that there is one; else it is zeros. A line is
    /// eight neighbouring threads'.
    pub(super) fn each_vector(
        &mut self,
        (to, lines): (VReg, u32),
        mut source: impl FnMut(&mut Self, [VReg; 2]) -> Option<(VReg, VReg)>,
    ) -> Option<()> {
        let count = (lines * CHUNKS).div_ceil(GROUP);
        // The next chunk of a thread is so many lines further, which are swizzled alike.
        const _: () = assert!(GROUP.is_multiple_of(CHUNKS * CHUNKS));
        let further = GROUP / CHUNKS;
        let [first_line, of_line, first_place] = self.place_of_chunk(to, self.thread);
        for first in (0..count).step_by(AHEAD as usize) {
            let mut found = Vec::new();
            for n in first..count.min(first + AHEAD) {
                let line = self.u32(Arith::Add, first_line, n * further);
                let (from, there) = source(self, [line, of_line])?;
                // Lines come out even for most parts.
                let last = (n + 1) * GROUP > lines * CHUNKS;
                let exists = last.then(|| self.b.setp(Cmp::Lt, Type::U32, line, Src::Imm(lines.into())));
                found.push((n * further * LINE, from, there, exists));
            }
            for (disp, from, there, exists) in found {
                let bytes = Src::Imm(u64::from(CHUNK) * HALF);
                let bytes = self.b.selp(Type::B32, bytes, Src::Imm(0), there);
                let place = Address { disp: disp as i32, ..Address::at(first_place) };
                let srcs = [Src::Addr(place), Src::Addr(Address::at(from)), bytes.into()];
                self.b.guard = exists.map(|exists| (exists, true));
                self.b.sm90(Sm90::CpAsync, &[], &srcs);
                self.b.guard = None;
            }
        }
        Some(())
    }

    /// Where a chunk of a part at `to` lies: its line, its place in the line, its address in shared memory.
    pub(super) fn place_of_chunk(&mut self, to: VReg, chunk: VReg) -> [VReg; 3] {
        let of_line = self.u32(Arith::And, chunk, CHUNKS - 1);
        let line = self.u32(Arith::Shr, chunk, CHUNKS.ilog2());
        let swizzle = self.u32(Arith::And, line, CHUNKS - 1);
        let swizzled = self.b.arith(Arith::Xor, Type::B32, &[of_line.into(), swizzle.into()]);
        let place = self.at(line, LINE, to);
        [line, of_line, self.at(swizzled, CHUNK * HALF as u32, place)]
    }

    /// The words of a chunk at an address, whose first element has this number in its line: those elements that are
    /// below a bound, if the line is there, and zeros.
    pub(super) fn elements_of_chunk(&mut self, at: VReg, first: VReg, bound: Src, there: VReg) -> Vec<VReg> {
        let mut halves = Vec::new();
        for e in 0..u64::from(CHUNK) {
            let index = self.b.arith(Arith::Add, Type::U64, &[first.into(), Src::Imm(e)]);
            let good = self.b.setp(Cmp::Lt, Type::S64, index, bound);
            let good = self.b.arith(Arith::And, Type::Pred, &[good.into(), there.into()]);
            let half = self.b.reg(Class::B16);
            self.b.set(half, Type::B16, Src::Imm(0));
            self.b.guard = Some((good, true));
            let from = Address { disp: (HALF * e) as i32, ..Address::at(at) };
            self.b.push(Ptx::Ld(Space::Global, Type::B16), &[half], &[Src::Addr(from)]);
            self.b.guard = None;
            halves.push(half);
        }
        halves.chunks(2).map(|pair| self.b.pack(pair[0], pair[1])).collect()
    }

    /// Stores a chunk.
    pub(super) fn store_chunk(&mut self, place: VReg, words: &[VReg]) {
        let mut srcs = vec![Src::Addr(Address::at(place))];
        srcs.extend(words.iter().map(|w| Src::Reg(*w)));
        self.b.push(Ptx::St(Space::Shared, Type::B32), &[], &srcs);
    }
}

//! Windows that the producer's threads bring element by element: those of arrays that bulk copies cannot bring, and
//! those of which a product has fewer factors than they have elements, as zeros have to stand beyond.

use super::loads::LINE;
use super::{Code, GROUP, PRODUCERS};
use ptoc_opt::fragments::{OperandSource, PART};
use ptoc_ptx::{Address, Arith, Class, Cmp, Op as Ptx, Sm90, Space, Src, Type, VReg};

/// Elements that are stored at once, in 16 bytes, and how many times as many a line has.
const CHUNK: u32 = 8;
const CHUNKS: u32 = PART / CHUNK;

/// Bytes of an element.
const HALF: u64 = 2;

impl Code<'_> {
    /// The predicate that bulk copies bring the window at hand.
    pub(super) fn is_copied(&mut self, ring: usize) -> Option<VReg> {
        let load = &self.plan.loads[ring];
        let mapped = self.mapped[ring]?;
        let Some(side) = load.depth else { return Some(mapped) };
        let most = if (side == 1) == load.turned { load.lines } else { load.length };
        let OperandSource::Window(view) = &load.source else { return None };
        let valid = self.value(view.shape[side])?;
        let whole = self.b.setp(Cmp::Ge, Type::S64, valid, Src::Imm(most.into()));
        Some(self.b.arith(Arith::And, Type::Pred, &[whole.into(), mapped.into()]))
    }

    /// The elements of the window at hand, and zeros beyond its valid ones, where a bulk copy would put them.
    pub(super) fn gather_window(&mut self, ring: usize) -> Option<()> {
        // Nobody is ahead of the thread that issues copies, which has waited for every slot until here.
        self.meet();
        let (to, full, free) = self.slot(ring);
        let [_, phase] = self.state(ring);
        let parity = self.u32(Arith::Xor, phase, 1);
        self.b.mbarrier_wait(free, parity);
        let (lines, parts, part) = (self.rings[ring].lines, self.rings[ring].parts, self.rings[ring].part);
        let plan = self.plan;
        for n in 0..parts {
            let to = self.u32(Arith::Add, to, n * part);
            if let OperandSource::Rows(rows) = &plan.loads[ring].source {
                self.gather_rows(ring, rows, (n * PART, to))?;
                continue;
            }
            let chunk = self.b.mov(Type::U32, self.thread);
            let (head, end) = (self.b.label(), self.b.label());
            self.b.place(head);
            let over = self.b.setp(Cmp::Ge, Type::U32, chunk, Src::Imm(u64::from(lines * CHUNKS)));
            self.b.bra_if(over, true, end);
            self.gather_chunk(ring, n * PART, (chunk, to))?;
            self.b.push(Ptx::Arith(Arith::Add, Type::U32), &[chunk], &[chunk.into(), Src::Imm(GROUP.into())]);
            self.b.bra(head);
            self.b.place(end);
        }
        // Products read shared memory through another proxy than stores write it.
        self.b.sm90(Sm90::FenceProxyAsync(Some(Space::Shared)), &[], &[]);
        self.meet();
        self.b.guard = Some((self.leads, true));
        self.b.sm90(Sm90::MbarrierArrive, &[], &[Src::Addr(full), Src::Imm(1)]);
        self.b.guard = None;
        Some(())
    }

    /// All threads of the producer come here.
    fn meet(&mut self) {
        self.b.sm90(Sm90::BarSync, &[], &[Src::Imm(PRODUCERS), Src::Imm(GROUP.into())]);
    }

    /// Eight neighbours of a line of a part that begins at an element of the lines.
    pub(super) fn gather_chunk(&mut self, ring: usize, from: u32, (chunk, to): (VReg, VReg)) -> Option<()> {
        let load = &self.plan.loads[ring];
        let (lines_side, along) = if load.turned { (1, 0) } else { (0, 1) };
        let OperandSource::Window(view) = &load.source else { return None };
        let tensor = load.tensor;
        let part_of_line = self.u32(Arith::And, chunk, CHUNKS - 1);
        let line = self.u32(Arith::Shr, chunk, CHUNKS.ilog2());
        let swizzle = self.u32(Arith::And, line, CHUNKS - 1);
        let swizzled = self.b.arith(Arith::Xor, Type::B32, &[part_of_line.into(), swizzle.into()]);
        let place = self.at(line, LINE, to);
        let place = self.at(swizzled, CHUNK * HALF as u32, place);
        let line = self.long(line);
        let first = self.u32(Arith::Shl, part_of_line, CHUNK.ilog2());
        let first = self.u32(Arith::Add, first, from);
        let first = self.long(first);
        let pitch = self.value(view.strides[lines_side])?;
        let offset = self.value(view.offset)?;
        let [lines, elements] = [lines_side, along].map(|side| self.value(view.shape[side]));
        let at = self.b.arith(Arith::MadLo, Type::U64, &[line.into(), pitch, offset]);
        let at = self.b.arith(Arith::Add, Type::U64, &[at.into(), first.into()]);
        let base = self.tensors[tensor as usize];
        let at = self.b.arith(Arith::MadLo, Type::U64, &[at.into(), Src::Imm(HALF), base.into()]);
        let inside = self.b.setp(Cmp::Lt, Type::S64, line, lines?);
        let mut halves = Vec::new();
        let elements = elements?;
        for e in 0..u64::from(CHUNK) {
            let index = self.b.arith(Arith::Add, Type::U64, &[first.into(), Src::Imm(e)]);
            let good = self.b.setp(Cmp::Lt, Type::S64, index, elements);
            let good = self.b.arith(Arith::And, Type::Pred, &[good.into(), inside.into()]);
            let half = self.b.reg(Class::B16);
            self.b.set(half, Type::B16, Src::Imm(0));
            self.b.guard = Some((good, true));
            let from = Address { disp: (HALF * e) as i32, ..Address::at(at) };
            self.b.push(Ptx::Ld(Space::Global, Type::B16), &[half], &[Src::Addr(from)]);
            self.b.guard = None;
            halves.push(half);
        }
        let mut srcs = vec![Src::Addr(Address::at(place))];
        srcs.extend(halves.chunks(2).map(|pair| Src::Reg(self.b.pack(pair[0], pair[1]))));
        self.b.push(Ptx::St(Space::Shared, Type::B32), &[], &srcs);
        Some(())
    }
}

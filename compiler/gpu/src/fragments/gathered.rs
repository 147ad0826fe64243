//! Windows that the producer's threads bring element by element: those of arrays that bulk copies cannot bring, and
//! those of which a product has fewer factors than they have elements, as zeros have to stand beyond.

use super::chunks::{CHUNK, HALF};
use super::{Code, GROUP, PRODUCERS};
use ptoc_opt::fragments::{OperandSource, PART};
use ptoc_ptx::{Arith, Cmp, Sm90, Space, Src, Type, VReg};

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
        let (to, full) = self.free_slot(ring);
        let (lines, parts, part) = (self.rings[ring].lines, self.rings[ring].parts, self.rings[ring].part);
        for n in 0..parts {
            let to = self.u32(Arith::Add, to, n * part);
            self.each_chunk(lines, |c, chunk| c.gather_chunk(ring, n * PART, (chunk, to)))?;
        }
        // Products read shared memory through another proxy than stores write it.
        self.b.sm90(Sm90::FenceProxyAsync(Some(Space::Shared)), &[], &[]);
        self.meet();
        self.arrive_if(self.lead(ring), full);
        Some(())
    }

    /// The window at hand of rows that a table lists or of an image. No thread waits for what it brings: vectors are
    /// under way when it goes on, and the barrier of the slot counts each thread twice, when it has stored what it
    /// brings by elements, and when its vectors are there.
    pub(super) fn gather_listed(&mut self, ring: usize) -> Option<()> {
        let (to, full) = self.free_slot(ring);
        let (parts, part) = (self.rings[ring].parts, self.rings[ring].part);
        let plan = self.plan;
        for n in 0..parts {
            let to = self.u32(Arith::Add, to, n * part);
            match &plan.loads[ring].source {
                OperandSource::Rows(rows) => self.gather_rows(ring, rows, (n * PART, to))?,
                OperandSource::Image(image) => self.gather_image(ring, image, (n * PART, to))?,
                _ => return None,
            }
        }
        self.b.sm90(Sm90::CpAsyncArrive, &[], &[Src::Addr(full)]);
        self.b.sm90(Sm90::MbarrierArrive, &[], &[Src::Addr(full), Src::Imm(1)]);
        Some(())
    }

    /// All threads of the producer come here.
    fn meet(&mut self) {
        self.b.sm90(Sm90::BarSync, &[], &[Src::Imm(PRODUCERS), Src::Imm(GROUP.into())]);
    }

    /// Eight neighbours of a line of a part that begins at an element of the lines.
    fn gather_chunk(&mut self, ring: usize, from: u32, (chunk, to): (VReg, VReg)) -> Option<()> {
        let load = &self.plan.loads[ring];
        let (lines_side, along) = if load.turned { (1, 0) } else { (0, 1) };
        let OperandSource::Window(view) = &load.source else { return None };
        let tensor = load.tensor;
        let [line, part_of_line, place] = self.place_of_chunk(to, chunk);
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
        let words = self.elements_of_chunk(at, first, elements?, inside);
        self.store_chunk(place, &words);
        Some(())
    }
}

//! Windows of arrays in rings of slots: how a producer fills them, and how consumers wait for them and free them.
//!
//! A slot has two `mbarrier`s: one completes when the bytes of the window are there, the other when all warps of
//! consumers have done with it.

use super::{CONSUMERS, Code, GROUP, consumers};
use ptoc_ir::analysis::poly::Poly;
use ptoc_ir::tile::{Tile, Value};
use ptoc_opt::fragments::{OperandLoad, OperandSource};
use ptoc_ptx::{Address, Arith, Class, Cmp, Op as Ptx, Round, Sm90, Space, Src, Type, VReg};

/// The slots of a load.
#[derive(Clone, Debug)]
pub(super) struct Ring {
    /// The operand that they are.
    pub operand: Tile,
    /// The tile whose load fills them.
    pub filled: Tile,
    slots: u32,
    /// The first slot, and the first barrier.
    at: u32,
    barriers: u32,
    /// Lines of a window, parts of them, and bytes of a part.
    pub lines: u32,
    pub parts: u32,
    pub part: u32,
    /// Bytes of a line of a part, and of an element.
    pub width: u32,
    element: u32,
    pub turned: bool,
    /// The slot at hand, and the parity of its phase.
    state: Option<[VReg; 2]>,
}

impl Ring {
    /// Those of all loads; their barriers are behind all slots.
    pub(super) fn all(loads: &[OperandLoad]) -> Vec<Ring> {
        let mut end = 0;
        let mut rings: Vec<Ring> = Vec::new();
        for load in loads {
            let OperandLoad { operand, filled, lines, slots, turned, element, .. } = *load;
            let (at, barriers, state) = (end, 0, None);
            let (parts, part, width) = (load.parts(), load.part_bytes(), load.line_bytes());
            let ring = Ring { operand, filled, slots, at, barriers, lines, parts, part, width, element, turned, state };
            end += slots * ring.bytes();
            rings.push(ring);
        }
        let mut barriers = end;
        for ring in &mut rings {
            ring.barriers = barriers;
            barriers += 16 * ring.slots;
        }
        rings
    }

    /// Bytes of a slot.
    fn bytes(&self) -> u32 {
        self.parts * self.part
    }
}

/// Bytes of a line of a part of an operand, and of a half.
pub(super) const LINE: u32 = 128;
const HALF: u32 = 2;

impl Code<'_> {
    /// The first thread makes the barriers.
    pub(super) fn make_barriers(&mut self) {
        let consumers = consumers(self.plan);
        let leads = self.b.setp(Cmp::Eq, Type::U32, self.thread, Src::Imm(0));
        self.only_if(leads, true, |c| {
            for (k, ring) in c.rings.clone().into_iter().enumerate() {
                // Each thread of the producer twice, if all bring the window.
                let full = if c.plan.loads[k].is_listed() { 2 * GROUP } else { 1 };
                for n in 0..2 * ring.slots {
                    let at = c.u32(Arith::Add, c.base, ring.barriers + 8 * n);
                    // Behind those of full slots are those of free ones.
                    let arrivals = if n < ring.slots { full } else { 4 * consumers };
                    c.b.sm90(Sm90::MbarrierInit, &[], &[Src::Addr(Address::at(at)), Src::Imm(arrivals.into())]);
                }
            }
            c.b.sm90(Sm90::FenceMbarrierInit, &[], &[]);
        });
        self.b.push(Ptx::Bar(0), &[], &[]);
    }

    pub(super) fn start_rings(&mut self) {
        for n in 0..self.rings.len() {
            self.rings[n].state = Some([0, 1].map(|_| self.b.mov(Type::U32, Src::Imm(0))));
        }
    }

    pub(super) fn state(&self, ring: usize) -> [VReg; 2] {
        self.rings[ring].state.expect("rings were started")
    }

    /// The slot at hand, and its barriers: when it is full, and when it is free.
    pub(super) fn slot(&mut self, ring: usize) -> (VReg, Address, Address) {
        let [slot, _] = self.state(ring);
        let r = &self.rings[ring];
        let (at, bytes, barriers, slots) = (r.at, r.bytes(), r.barriers, r.slots);
        let first = self.u32(Arith::Add, self.base, at);
        let to = self.at(slot, bytes, first);
        let full = self.at(slot, 8, self.base);
        let full = Address { disp: barriers as i32, ..Address::at(full) };
        (to, full, Address { disp: full.disp + 8 * slots as i32, ..full })
    }

    /// The next slot; the parity of its phase changes at the end of the ring.
    pub(super) fn advance(&mut self, ring: usize) {
        let ([slot, phase], slots) = (self.state(ring), self.rings[ring].slots);
        let turn = |c: &mut Self| c.b.push(Ptx::Arith(Arith::Xor, Type::B32), &[phase], &[phase.into(), Src::Imm(1)]);
        if slots == 1 {
            return turn(self);
        }
        self.b.push(Ptx::Arith(Arith::Add, Type::U32), &[slot], &[slot.into(), Src::Imm(1)]);
        let over = self.b.setp(Cmp::Ge, Type::U32, slot, Src::Imm(slots.into()));
        self.only_if(over, true, |c| {
            c.b.set(slot, Type::U32, Src::Imm(0));
            turn(c);
        });
    }

    // ---- the producer -----------------------------------------------------------------------------------------------

    /// Brings the window of a load: by bulk copies, which one thread issues, or element by element.
    pub(super) fn bring(&mut self, ring: usize) -> Option<()> {
        if self.plan.loads[ring].staged {
            return self.bring_staged(ring);
        }
        if !self.plan.loads[ring].by_threads() {
            self.only_if_leads(ring, |c| c.copy_window(ring))?;
            self.end_producers(ring)?;
            self.advance(ring);
            return Some(());
        }
        if self.plan.loads[ring].is_listed() {
            self.gather_listed(ring)?;
            self.advance(ring);
            return Some(());
        }
        let (copies, next) = (self.b.label(), self.b.label());
        let whole = self.is_copied(ring)?;
        self.b.bra_if(whole, true, copies);
        self.gather_window(ring)?;
        self.b.bra(next);
        self.b.place(copies);
        self.only_if_leads(ring, |c| c.copy_window(ring))?;
        self.b.place(next);
        self.advance(ring);
        Some(())
    }

    /// The predicate of the thread that issues bulk copies of a ring.
    pub(super) fn lead(&self, ring: usize) -> VReg {
        self.leads[ring % self.leads.len()]
    }

    /// Runs `body` on the thread that issues bulk copies of a ring.
    pub(super) fn only_if_leads(&mut self, ring: usize, body: impl FnOnce(&mut Self) -> Option<()>) -> Option<()> {
        if !self.plan.all_threads && self.leads.len() == 1 {
            return body(self);
        }
        let (leads, skip) = (self.lead(ring), self.b.label());
        self.b.bra_if(leads, false, skip);
        body(self)?;
        self.b.place(skip);
        Some(())
    }

    /// The slot at hand and its barrier, when consumers have done with what was in it.
    pub(super) fn free_slot(&mut self, ring: usize) -> (VReg, Address) {
        let (to, full, free) = self.slot(ring);
        let [_, phase] = self.state(ring);
        let parity = self.u32(Arith::Xor, phase, 1);
        self.b.mbarrier_wait(free, parity);
        (to, full)
    }

    /// The bulk copies of a window, or of its pages.
    pub(super) fn copy_window(&mut self, ring: usize) -> Option<()> {
        let (_, full) = self.free_slot(ring);
        let load = &self.plan.loads[ring];
        let [column, row] = [self.coordinate(&load.at[0])?, self.coordinate(&load.at[1])?];
        if let OperandSource::Pages(pages) = &load.source {
            return self.copy_pages(ring, pages, [column, row]);
        }
        let Ring { parts, lines, width, element, .. } = self.rings[ring];
        self.b.sm90(Sm90::MbarrierArriveExpectTx, &[], &[Src::Addr(full), Src::Imm(u64::from(parts * lines * width))]);
        // What bulk copies count are halves.
        let column = match element {
            1 => self.u32(Arith::Shr, column, 1),
            of => self.u32(Arith::Shl, column, (of / HALF).ilog2()),
        };
        self.copy_box(ring, 0, [column, row]);
        Some(())
    }

    /// The bulk copies of the parts of some lines of a slot.
    pub(super) fn copy_box(&mut self, ring: usize, line: u32, [column, row]: [VReg; 2]) {
        let (to, full, _) = self.slot(ring);
        let Ring { parts, part, width, .. } = self.rings[ring];
        let map = self.maps[ring];
        for n in 0..parts {
            let to = self.u32(Arith::Add, to, n * part + line * width);
            let column = self.u32(Arith::Add, column, n * width / HALF);
            let srcs = [Src::Addr(Address::at(to)), map.into(), column.into(), row.into(), Src::Addr(full)];
            self.b.sm90(Sm90::TensorLoad(2), &[], &srcs);
        }
    }

    /// A sum of products of values, in 32 bits.
    pub(super) fn coordinate(&mut self, p: &Poly<Value>) -> Option<VReg> {
        let mut sum = self.b.mov(Type::U64, Src::Imm(0));
        for (factors, n) in p.terms() {
            let mut term = self.b.mov(Type::U64, Src::Imm(*n as u64));
            for factor in factors {
                let factor = *self.values.get(factor)?;
                term = self.b.arith(Arith::MulLo, Type::U64, &[term.into(), factor]);
            }
            sum = self.b.arith(Arith::Add, Type::U64, &[sum.into(), term.into()]);
        }
        Some(self.b.cvt(Type::U32, Type::U64, Round::None, sum))
    }

    // ---- consumers --------------------------------------------------------------------------------------------------

    /// Waits for a window.
    pub(super) fn wait_for(&mut self, ring: usize) {
        self.settle_ring(ring);
        let (_, full, _) = self.slot(ring);
        let [_, phase] = self.state(ring);
        self.b.mbarrier_wait(full, phase);
        if self.plan.loads[ring].is_listed() {
            // Products read shared memory through another proxy than the producer's threads write it.
            self.b.sm90(Sm90::FenceProxyAsync(Some(Space::Shared)), &[], &[]);
        }
    }

    /// Lets the producer have a slot: one lane of each warp says so.
    pub(super) fn release(&mut self, ring: usize) {
        let (.., free) = self.slot(ring);
        self.arrive_if(self.first, free);
        self.advance(ring);
    }

    /// One arrival at a barrier, where a predicate holds.
    pub(super) fn arrive_if(&mut self, pred: VReg, barrier: Address) {
        self.b.guard = Some((pred, true));
        self.b.sm90(Sm90::MbarrierArrive, &[], &[Src::Addr(barrier), Src::Imm(1)]);
        self.b.guard = None;
    }

    /// Zeros in the lines of a window from a number on, which products with nothing would meet otherwise: all consumers
    /// store some, and wait for each other.
    pub(super) fn clear_lines(&mut self, ring: usize, valid: VReg) {
        let Ring { lines, parts, part, .. } = self.rings[ring];
        let threads = consumers(self.plan) * GROUP;
        let whole = self.b.setp(Cmp::Ge, Type::S64, valid, Src::Imm(lines.into()));
        self.only_if(whole, false, |c| {
            let (to, ..) = c.slot(ring);
            let zero = c.b.mov(Type::U32, Src::Imm(0));
            // Chunks of 16 bytes, eight in a line.
            let valid = c.b.cvt(Type::U32, Type::U64, Round::None, valid);
            let begin = c.u32(Arith::Shl, valid, 3);
            let chunk = c.b.arith(Arith::Add, Type::U32, &[begin.into(), c.thread.into()]);
            let (head, end) = (c.b.label(), c.b.label());
            c.b.place(head);
            let over = c.b.setp(Cmp::Ge, Type::U32, chunk, Src::Imm(u64::from(8 * lines)));
            c.b.bra_if(over, true, end);
            let place = c.at(chunk, 16, to);
            for n in 0..parts {
                let mut srcs = vec![Src::Addr(Address { disp: (n * part) as i32, ..Address::at(place) })];
                srcs.extend([Src::Reg(zero); 4]);
                c.b.push(Ptx::St(Space::Shared, Type::B32), &[], &srcs);
            }
            c.b.push(Ptx::Arith(Arith::Add, Type::U32), &[chunk], &[chunk.into(), Src::Imm(threads.into())]);
            c.b.bra(head);
            c.b.place(end);
            // Products read shared memory through another proxy than stores write it.
            c.b.sm90(Sm90::FenceProxyAsync(Some(Space::Shared)), &[], &[]);
            c.b.sm90(Sm90::BarSync, &[], &[Src::Imm(CONSUMERS), Src::Imm(threads.into())]);
        });
    }

    /// A register of 64 bits.
    pub(super) fn long_reg(&mut self, src: Src) -> VReg {
        match src {
            Src::Reg(reg) if self.b.class(reg) == Class::B64 => reg,
            other => self.b.mov(Type::U64, other),
        }
    }
}

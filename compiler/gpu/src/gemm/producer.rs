//! The producer of a product: steps of both operands into the slots of the ring.

use super::arguments::{Major, OperandSide, PART, ROW};
use super::{GROUP, Gemm, PRODUCER};
use ptoc_ptx::{Address, Arith, Class, Cmp, Label, Op as Ptx, Round, Sm90, Space, Src, Type, VReg};

/// Warps of the producer take turns: the number of a step, and which of them are this warp's.
#[derive(Clone, Copy)]
struct Turn {
    step: VReg,
    mask: VReg,
    own: VReg,
}

/// Bytes that are stored at once, and how many times as many a row is.
const CHUNK: u32 = 16;
const CHUNKS: u32 = ROW / CHUNK;

impl Gemm {
    /// Ends at `done`.
    pub(super) fn producer(&mut self, done: Label) {
        if self.plan.moves_registers() {
            self.b.sm90(Sm90::SetMaxReg { inc: false, count: PRODUCER }, &[], &[]);
        }
        let leads = self.b.setp(Cmp::Eq, Type::U32, self.thread, Src::Imm(0));
        let all = self.all_mapped();
        let turns = self.plan.turns();
        let issues = match turns {
            1 => leads,
            _ => {
                let first = self.b.setp(Cmp::Eq, Type::U32, self.lane, Src::Imm(0));
                let takes_turns = self.b.setp(Cmp::Lt, Type::U32, self.thread, Src::Imm((32 * turns).into()));
                self.b.arith(Arith::And, Type::Pred, &[first.into(), takes_turns.into()])
            }
        };
        // Bulk copies are one thread's work, or of some warps' first threads.
        let other = self.b.label();
        self.b.bra_if(issues, true, other);
        self.b.bra_if(all, true, done);
        self.b.place(other);
        let bytes = self.announced();
        let turn = (turns > 1).then(|| self.turn(turns, all));
        let (head, at) = self.blocks(done);
        self.steps(|g, k| {
            let skip = turn.map(|turn| g.unless_it_is_its_turn(turn));
            g.step(k, at, (leads, all), bytes);
            if let (Some(skip), Some(turn)) = (skip, turn) {
                g.b.place(skip);
                g.update(turn.step, Arith::Add, Type::U32, Src::Imm(1));
            }
            g.advance();
        });
        self.next_block(head);
    }

    /// The steps that a warp issues. Where threads bring an operand, each has a part in all steps.
    fn turn(&mut self, turns: u32, all: VReg) -> Turn {
        let warp = self.u32(Arith::Shr, self.thread, 5);
        let mask = self.b.selp(Type::B32, Src::Imm((turns - 1).into()), Src::Imm(0), all);
        let own = self.b.arith(Arith::And, Type::B32, &[warp.into(), mask.into()]);
        Turn { step: self.b.mov(Type::U32, Src::Imm(0)), mask, own }
    }

    /// Jumps to the label that is returned where a step is another warp's.
    fn unless_it_is_its_turn(&mut self, turn: Turn) -> Label {
        let skip = self.b.label();
        let whose = self.b.arith(Arith::And, Type::B32, &[turn.step.into(), turn.mask.into()]);
        let mine = self.b.setp(Cmp::Eq, Type::U32, whose, turn.own);
        self.b.bra_if(mine, false, skip);
        skip
    }

    /// Bytes that bulk copies bring in a step.
    fn announced(&mut self) -> VReg {
        let [a, b] = [&self.plan.a, &self.plan.b].map(|o| u64::from(o.bytes()));
        let [x, y] = self.mapped;
        let a = self.b.selp(Type::B32, Src::Imm(a), Src::Imm(0), x);
        let b = self.b.selp(Type::B32, Src::Imm(b), Src::Imm(0), y);
        self.b.arith(Arith::Add, Type::U32, &[a.into(), b.into()])
    }

    fn step(&mut self, k: VReg, at: [VReg; 2], (leads, all): (VReg, VReg), bytes: VReg) {
        let full = self.full();
        let parity = self.b.arith(Arith::Xor, Type::B32, &[self.phase.into(), Src::Imm(1)]);
        let empty = self.empty(full);
        self.b.mbarrier_wait(empty, parity);
        let to = self.operands();
        let (copies, next) = (self.b.label(), self.b.label());
        self.b.bra_if(all, true, copies);
        for n in 0..2 {
            let skip = self.b.label();
            self.b.bra_if(self.mapped[n], true, skip);
            self.gather(n, k, at[n], to[n]);
            self.b.place(skip);
        }
        if !self.plan.in_warps() {
            // Products of warp-groups read shared memory through another proxy than stores write it.
            self.b.sm90(Sm90::FenceProxyAsync(Some(Space::Shared)), &[], &[]);
        }
        self.b.bra_if(leads, true, copies);
        let full = Src::Addr(Address::at(full));
        self.b.sm90(Sm90::MbarrierArrive, &[], &[full, Src::Imm(1)]);
        self.b.bra(next);
        self.b.place(copies);
        self.b.sm90(Sm90::MbarrierArriveExpectTx, &[], &[full, bytes.into()]);
        for n in 0..2 {
            self.copy(n, [k, at[n]], to[n], full, all);
        }
        self.b.place(next);
    }

    pub(super) fn operand(&self, n: usize) -> &OperandSide {
        [&self.plan.a, &self.plan.b][n]
    }

    /// The boxes of an operand, by its map: of a cluster this CTA's parts of them, to all who need it, where `all`
    /// operands come by bulk copies.
    fn copy(&mut self, n: usize, [k, side]: [VReg; 2], to: VReg, full: Src, all: VReg) {
        let (boxes, dense) = (self.operand(n).boxes(), self.operand(n).dense);
        if !dense {
            return;
        }
        let matrix: Vec<VReg> = self.operand(n).moves().map(|d| self.matrix[d]).collect();
        let dims = 2 + matrix.len() as u8;
        let matrix: Vec<Src> =
            matrix.into_iter().map(|at| self.b.cvt(Type::U32, Type::U64, Round::None, at).into()).collect();
        let [mut k, side] = [k, side].map(|x| self.b.cvt(Type::U32, Type::U64, Round::None, x));
        if self.operand(n).factor == 1 {
            k = self.u32(Arith::Shr, k, 1);
        }
        let next = self.member.filter(|_| self.operand(n).shared > 1).map(|member| {
            let (alone, next) = (self.b.label(), self.b.label());
            self.b.bra_if(all, false, alone);
            for part in 0..boxes {
                let at = self.corner(n, [k, side], to, part);
                let (to, at) = self.part(member, n, at);
                let srcs = self.sources(n, to, at, &matrix, full);
                self.multicast(member, n, srcs, dims);
            }
            self.b.bra(next);
            self.b.place(alone);
            next
        });
        // What others would bring is brought here, part by part.
        let shared = self.operand(n).shared;
        for part in 0..boxes * shared {
            let (to, at) = self.corner(n, [k, side], to, part / shared);
            let (to, at) = self.share(n, to, at, part % shared);
            let srcs = self.sources(n, to, at, &matrix, full);
            self.b.guard = Some((self.mapped[n], true));
            self.b.sm90(Sm90::TensorLoad(dims), &[], &srcs);
            self.b.guard = None;
        }
        if let Some(next) = next {
            self.b.place(next);
        }
    }

    /// Where a box of a step goes, and where it is in the map.
    fn corner(&mut self, n: usize, [k, side]: [VReg; 2], to: VReg, part: u32) -> (VReg, [VReg; 2]) {
        let to = self.plus(to, part * ROW * PART);
        let side = self.plus(side, part * PART);
        (to, if self.operand(n).major == Major::Depth { [k, side] } else { [side, k] })
    }

    /// The same of one of the parts that a box is brought in.
    fn share(&mut self, n: usize, to: VReg, [x, y]: [VReg; 2], share: u32) -> (VReg, [VReg; 2]) {
        let lines = share * self.operand(n).rows();
        match lines {
            0 => (to, [x, y]),
            _ => (self.plus(to, lines * ROW), [x, self.plus(y, lines)]),
        }
    }

    /// The operands of a bulk copy.
    fn sources(&self, n: usize, to: VReg, [x, y]: [VReg; 2], matrix: &[Src], full: Src) -> Vec<Src> {
        let mut srcs = vec![Src::Addr(Address::at(to)), self.maps[n].into(), x.into(), y.into()];
        srcs.extend(matrix);
        srcs.push(full);
        srcs
    }

    /// The factors of an operand, loaded one by one, and stored where a bulk copy would put them; zeros beyond its
    /// extents.
    fn gather(&mut self, n: usize, k: VReg, side: VReg, to: VReg) {
        let o = self.operand(n).clone();
        let index = self.b.mov(Type::U32, self.thread);
        let (head, end) = (self.b.label(), self.b.label());
        let chunks = o.bytes() / CHUNK;
        self.b.place(head);
        let over = self.b.setp(Cmp::Ge, Type::U32, index, Src::Imm(u64::from(chunks)));
        self.b.bra_if(over, true, end);
        // The chunk in its line of 128 bytes, and the line.
        let chunk = self.u32(Arith::And, index, CHUNKS - 1);
        let line = self.u32(Arith::Shr, index, CHUNKS.ilog2());
        let turned = self.u32(Arith::And, line, 7);
        let turned = self.b.arith(Arith::Xor, Type::B32, &[chunk.into(), turned.into()]);
        let place = self.at(line, ROW, to);
        let place = self.at(turned, CHUNK, place);
        let (mut of_side, mut of_k) = (line, self.u32(Arith::Shl, chunk, (CHUNK / o.factor).ilog2()));
        if o.major == Major::Side {
            // A part has a line for each k.
            let part = self.u32(Arith::Shr, line, PART.ilog2());
            (of_side, of_k) = (self.at(part, PART, of_k), self.u32(Arith::And, line, PART - 1));
        }
        let side = self.sum(side, of_side);
        let k = self.sum(k, of_k);
        let words = self.factors(n, &o, side, k);
        let mut srcs = vec![Src::Addr(Address::at(place))];
        srcs.extend(words.into_iter().map(Src::Reg));
        self.b.push(Ptx::St(Space::Shared, Type::B32), &[], &srcs);
        self.update(index, Arith::Add, Type::U32, Src::Imm(u64::from(GROUP)));
        self.b.bra(head);
        self.b.place(end);
    }

    /// Neighbours of 16 bytes, from a row or column and a k on, as four words.
    fn factors(&mut self, n: usize, o: &OperandSide, side: VReg, k: VReg) -> Vec<VReg> {
        let major = o.major;
        let (class, from) = match o.factor {
            1 => (Class::B32, Type::U8),
            2 => (Class::B16, Type::B16),
            _ => (Class::B32, Type::B32),
        };
        let [along_side, along_k] = self.strides[n];
        let at = self.b.arith(Arith::MadLo, Type::U64, &[side.into(), along_side.into(), self.first[n].into()]);
        let at = self.b.arith(Arith::MadLo, Type::U64, &[k.into(), along_k.into(), at.into()]);
        let extent = self.sizes[n];
        let (fixed, moving) = match major {
            Major::Depth => ((side, extent), (k, self.sizes[2])),
            Major::Side => ((k, self.sizes[2]), (side, extent)),
        };
        let step = if major == Major::Depth { along_k } else { along_side };
        let inside = self.b.setp(Cmp::Lt, Type::U64, fixed.0, fixed.1);
        let (mut all, mut at) = (Vec::new(), at);
        for e in 0..u64::from(CHUNK / o.factor) {
            if e > 0 {
                at = self.u64(Arith::Add, at, step);
            }
            let index = self.u64(Arith::Add, moving.0, Src::Imm(e));
            let good = self.b.setp(Cmp::Lt, Type::U64, index, moving.1);
            let good = self.b.arith(Arith::And, Type::Pred, &[good.into(), inside.into()]);
            let factor = self.b.reg(class);
            self.b.set(factor, if class == Class::B32 { Type::B32 } else { Type::B16 }, Src::Imm(0));
            self.b.guard = Some((good, true));
            self.b.push(Ptx::Ld(Space::Global, from), &[factor], &[Src::Addr(Address::at(at))]);
            self.b.guard = None;
            all.push(factor);
        }
        match o.factor {
            1 => all.chunks(4).map(|four| self.word(four)).collect(),
            2 => all.chunks(2).map(|pair| self.b.pack(pair[0], pair[1])).collect(),
            _ => all.into_iter().map(|word| self.rounded_to_tf32(word)).collect(),
        }
    }

    /// A number of f32 to the nearest of TF32, of two the even one, as bulk copies round. The cores leave its low bits
    /// out; what is no number, and infinities, stay.
    fn rounded_to_tf32(&mut self, word: VReg) -> VReg {
        let size = self.u32(Arith::And, word, 0x7fff_ffff);
        let finite = self.b.setp(Cmp::Lt, Type::U32, size, Src::Imm(0x7f80_0000));
        let odd = self.u32(Arith::Shr, word, 13);
        let odd = self.u32(Arith::And, odd, 1);
        let up = self.u32(Arith::Add, word, 0xfff);
        let up = self.b.arith(Arith::Add, Type::U32, &[up.into(), odd.into()]);
        self.b.selp(Type::B32, up, word, finite)
    }

    /// Four bytes in a word, the first in its lowest bits.
    fn word(&mut self, bytes: &[VReg]) -> VReg {
        let mut word = bytes[0];
        for (n, byte) in (1..).zip(&bytes[1..]) {
            let up = self.u32(Arith::Shl, *byte, 8 * n);
            word = self.b.arith(Arith::Or, Type::B32, &[word.into(), up.into()]);
        }
        word
    }

    /// A number of 64 bits and one of 32.
    fn sum(&mut self, a: VReg, b: VReg) -> VReg {
        let b = self.long(b);
        self.u64(Arith::Add, a, b)
    }
}

//! Products of few rows and columns: a warp has 16 rows of a block, where a warp-group would have 64, so a launch has
//! more CTAs. Operands go from the ring's slots to registers (`ldmatrix`), and are multiplied there
//! (`mma.sync`), in the same order, which gives the bits that products of a warp-group have.

use super::Gemm;
use super::arguments::{Major, OperandSide, PART, ROW};
use ptoc_ptx::{Address, Arith, Class, Sm90, Src, Type, VReg};

/// Rows of an instruction, and its depth.
pub(super) const ROWS: u32 = 16;
const DEPTH: u32 = 16;

/// Instructions along the depth of a step.
const PARTS: u32 = ROW / (2 * DEPTH);

/// Bytes that a lane of `ldmatrix` points at, and factors of them.
const CHUNK: u32 = 16;
const FACTORS: u32 = 8;

impl Gemm {
    /// The steps of a block.
    pub(super) fn steps_in_warps(&mut self, sums: &[VReg], first: VReg) {
        let count = self.plan.tile[1] / ROWS;
        self.steps(|g, _| {
            let full = g.full();
            g.b.mbarrier_wait(Address::at(full), g.phase);
            let words = g.load_operands(count);
            g.multiply_in_warps(&words, sums);
            // All lanes have read the slot.
            g.b.sm90(Sm90::BarWarpSync, &[], &[Src::Imm(0xffff_ffff)]);
            g.release(first, full);
            g.advance();
        });
    }

    /// The operands of a step, part by part: four words on the left, then four for each 16 columns.
    fn load_operands(&mut self, count: u32) -> Vec<VReg> {
        let [a, b] = self.operands();
        let (left, right) = (self.plan.a.clone(), self.plan.b.clone());
        let warp = self.u32(Arith::Shr, self.thread, 5);
        let warp = self.u32(Arith::And, warp, 3);
        let first = self.b.arith(Arith::MulLo, Type::U32, &[warp.into(), Src::Imm(ROWS.into())]);
        let lane_row = self.u32(Arith::And, self.lane, FACTORS - 1);
        let [low, high] = [3, 4].map(|bit| {
            let bit = self.u32(Arith::Shr, self.lane, bit);
            self.u32(Arith::And, bit, 1)
        });
        let mut words = Vec::new();
        for part in 0..PARTS {
            // Matrices of 8 x 8 follow each other along rows on the left, along k on the right.
            let rows = self.at(low, FACTORS, first);
            words.extend(self.matrices(&left, a, (rows, lane_row, high), part));
            for n in 0..count {
                let column = self.b.mov(Type::U32, Src::Imm(u64::from(n * ROWS)));
                let columns = self.at(high, FACTORS, column);
                words.extend(self.matrices(&right, b, (columns, lane_row, low), part));
            }
        }
        words
    }

    /// The products of a step, in ascending order of k.
    fn multiply_in_warps(&mut self, words: &[VReg], sums: &[VReg]) {
        for part in words.chunks(words.len() / PARTS as usize) {
            let (a, b) = part.split_at(4);
            for (b, sums) in b.chunks(2).zip(sums.chunks(4)) {
                let operands: Vec<Src> = a.iter().chain(b).chain(sums).map(|reg| Src::Reg(*reg)).collect();
                self.b.sm90(Sm90::MmaSync(self.plan.factors[0]), sums, &operands);
            }
        }
    }

    /// Four matrices of 8 rows (columns) and 8 of k: of the lane's, the first row, the row in it, and which half of the
    /// instruction's depth.
    fn matrices(&mut self, o: &OperandSide, at: VReg, rows: (VReg, VReg, VReg), part: u32) -> Vec<VReg> {
        let (first, row, half) = rows;
        let (line, chunk, at) = match o.major {
            Major::Depth => {
                let line = self.b.arith(Arith::Add, Type::U32, &[first.into(), row.into()]);
                (line, self.plus(half, part * DEPTH / FACTORS), at)
            }
            // A line for each k, of 64 rows.
            Major::Side => {
                let line = self.at(half, FACTORS, row);
                let of_part = self.u32(Arith::Shr, first, PART.ilog2());
                let at = self.at(of_part, ROW * PART, at);
                let first = self.u32(Arith::And, first, PART - 1);
                (self.plus(line, part * DEPTH), self.u32(Arith::Shr, first, FACTORS.ilog2()), at)
            }
        };
        // Chunks of a line are swizzled by the line's number.
        let turned = self.u32(Arith::And, line, 7);
        let chunk = self.b.arith(Arith::Xor, Type::B32, &[chunk.into(), turned.into()]);
        let at = self.at(line, ROW, at);
        let at = self.at(chunk, CHUNK, at);
        let words: Vec<VReg> = (0..4).map(|_| self.b.reg(Class::B32)).collect();
        let trans = o.major == Major::Side;
        self.b.sm90(Sm90::LdMatrix { count: 4, trans }, &words, &[Src::Addr(Address::at(at))]);
        words
    }
}

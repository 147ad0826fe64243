//! The consumers of a product: 64 rows of a block in the registers of a warp-group, and their way to memory.

use super::arguments::{Major, OperandSide, PART, ROW};
use super::{CONSUMER, Gemm};
use ptoc_ptx::{Address, Arith, Class, Cmp, Label, Op as Ptx, Round, Sm90, Space, Src, Type, VReg, Wgmma};
use ptoc_tensor::DType;

/// Bytes of the depth of an instruction, and lines of factors of 16 bits.
const STEP: u32 = 32;
const LINES: u32 = STEP / 2;

/// What a descriptor takes of an address in shared memory.
const SHARED_BITS: u32 = 0x3_ffff;

/// Which elements of a block a lane has: two neighbours of every eight columns, in two rows.
pub(super) struct Fragment {
    /// The block's first row and column.
    pub(super) block: [VReg; 2],
    /// The lane's first row and column.
    pub(super) row: VReg,
    pub(super) column: VReg,
    /// The predicates that its two rows are inside.
    pub(super) rows: [VReg; 2],
}

/// Where a lane's results are in memory.
struct Results {
    /// The number of their array.
    n: usize,
    /// The address of the lane's first row and column.
    at: VReg,
    rows: [VReg; 2],
    column: VReg,
}

impl Gemm {
    /// Ends at `done`.
    pub(super) fn consumer(&mut self, done: Label) {
        if self.plan.moves_registers() {
            self.b.sm90(Sm90::SetMaxReg { inc: true, count: CONSUMER }, &[], &[]);
        }
        let mine = self.u32(Arith::Sub, self.group, 1);
        let sums: Vec<VReg> = (0..self.plan.tile[1] / 2).map(|_| self.b.reg(self.plan.factors[0].sum())).collect();
        let yes = self.b.setp(Cmp::Eq, Type::U32, self.lane, self.lane);
        let first = self.b.setp(Cmp::Eq, Type::U32, self.lane, Src::Imm(0));
        let (head, at) = self.blocks(done);
        self.start((mine, at), &sums);
        match self.plan.in_warps() {
            true => self.steps_in_warps(&sums, first),
            false => self.steps_in_groups((mine, yes), &sums, first),
        }
        let fragment = self.fragment(mine, at);
        match self.element.take() {
            Some(element) => self.epilogue(&element, &fragment, &sums),
            None => self.store(&fragment, &sums),
        }
        self.next_block(head);
    }

    /// The steps of a block: products of one are under way while the next is waited for.
    fn steps_in_groups(&mut self, (mine, yes): (VReg, VReg), sums: &[VReg], first: VReg) {
        // The barrier of the slot before, which is free when its products are done.
        let last = self.b.mov(Type::U32, Src::Imm(0));
        self.steps(|g, k| {
            let full = g.full();
            g.b.mbarrier_wait(Address::at(full), g.phase);
            g.multiply(mine, yes, sums);
            g.b.sm90(Sm90::WgmmaWait(1), &[], &[]);
            let kept = g.b.label();
            let begins = g.b.setp(Cmp::Eq, Type::U64, k, Src::Imm(0));
            g.b.bra_if(begins, true, kept);
            g.release(first, last);
            g.b.place(kept);
            g.b.set(last, Type::U32, full);
            g.advance();
        });
        self.b.sm90(Sm90::WgmmaWait(0), &[], &[]);
        let none = self.b.label();
        let nothing = self.b.setp(Cmp::Eq, Type::U64, self.sizes[2], Src::Imm(0));
        self.b.bra_if(nothing, true, none);
        self.release(first, last);
        self.b.place(none);
    }

    /// Sums start at zero, or at the bias of their column; of a product that is turned round, of their row.
    fn start(&mut self, (mine, at): (VReg, [VReg; 2]), sums: &[VReg]) {
        let ty = if self.plan.factors[0].sum() == Class::F32 { Type::F32 } else { Type::B32 };
        sums.iter().for_each(|sum| self.b.set(*sum, ty, Src::Imm(0)));
        if !self.plan.biased {
            return;
        }
        let f = self.fragment(mine, at);
        let n = self.arrays.len() - 1;
        let (_, [down, along]) = self.arrays[n];
        let (column, at) = (f.column, self.array_at(n, &f));
        if self.plan.arrays[n].has[0] {
            let below = self.b.arith(Arith::Shl, Type::B64, &[down.into(), Src::Imm(3)]);
            let below = self.u64(Arith::Add, at, below);
            for (row, at) in [at, below].into_iter().enumerate() {
                let of_row = sums.iter().enumerate().filter(|(n, _)| n / 2 % 2 == row).map(|(_, sum)| *sum);
                let of_row: Vec<VReg> = of_row.collect();
                self.b.guard = Some((f.rows[row], true));
                self.b.push(Ptx::Ld(Space::Global, ty), &[of_row[0]], &[Src::Addr(Address::at(at))]);
                self.b.guard = None;
                of_row[1..].iter().for_each(|sum| self.b.set(*sum, ty, of_row[0]));
            }
            return;
        }
        for (n, four) in sums.chunks(4).enumerate() {
            for c in 0..2u64 {
                let further = 8 * n as u64 + c;
                let of_column = self.u64(Arith::Add, column, Src::Imm(further));
                let inside = self.b.setp(Cmp::Lt, Type::U64, of_column, self.sizes[1]);
                let from = self.b.arith(Arith::MadLo, Type::U64, &[along.into(), Src::Imm(further), at.into()]);
                let sum = four[c as usize];
                self.b.guard = Some((inside, true));
                self.b.push(Ptx::Ld(Space::Global, ty), &[sum], &[Src::Addr(Address::at(from))]);
                self.b.guard = None;
                self.b.set(four[2 + c as usize], ty, sum);
            }
        }
    }

    /// One lane of each warp says that a slot is empty.
    pub(super) fn release(&mut self, first: VReg, full: VReg) {
        if let Some(member) = self.member {
            let empty = self.plus(full, 8 * self.plan.slots);
            return self.tell_partners(member, empty);
        }
        let empty = Src::Addr(self.empty(full));
        self.b.guard = Some((first, true));
        self.b.sm90(Sm90::MbarrierArrive, &[], &[empty, Src::Imm(1)]);
        self.b.guard = None;
    }

    /// The products of a step, in ascending order of k.
    fn multiply(&mut self, mine: VReg, yes: VReg, sums: &[VReg]) {
        let [mut a, mut b] = self.operands();
        if self.member.is_some() {
            // Addresses begin with the CTA's rank, for which a descriptor has no room.
            [a, b] = [a, b].map(|at| self.u32(Arith::And, at, SHARED_BITS));
        }
        // 64 rows of either form have as many bytes.
        let a = self.at(mine, 64 * ROW, a);
        let (left, right) = (self.plan.a.clone(), self.plan.b.clone());
        let product = Wgmma {
            trans_a: left.major == Major::Side,
            trans_b: right.major == Major::Side,
            b: self.plan.factors[1],
            ..Wgmma::new(self.plan.tile[1] as u16, self.plan.factors[0])
        };
        self.b.sm90(Sm90::WgmmaFence, &[], &[]);
        for part in 0..ROW / STEP {
            let [x, y] = [(a, &left), (b, &right)].map(|(at, o)| self.descriptor(at, o, part));
            self.b.sm90(Sm90::Wgmma(product), sums, &[x.into(), y.into(), yes.into()]);
        }
        self.b.sm90(Sm90::WgmmaCommit, &[], &[]);
    }

    /// The descriptor of an instruction's operand: lines of 128 bytes, swizzled, eight of them 1024 bytes apart.
    fn descriptor(&mut self, at: VReg, o: &OperandSide, part: u32) -> VReg {
        // From a part of 64 rows (or columns) to the next; of no meaning where k is side by side.
        let (step, leading) = match o.major {
            Major::Depth => (STEP, 16),
            Major::Side => (ROW * LINES, ROW * PART),
        };
        let at = self.plus(at, part * step);
        let low = self.u32(Arith::Shr, at, 4);
        let low = self.u32(Arith::Or, low, leading >> 4 << 16);
        let high = self.b.mov(Type::U32, Src::Imm(1 << 30 | 1024 >> 4));
        self.b.pair(low, high)
    }

    // ---- results ----------------------------------------------------------------------------------------------------

    fn lane_column(&mut self, column: VReg) -> VReg {
        let pair = self.u32(Arith::And, self.lane, 3);
        let pair = self.u32(Arith::Shl, pair, 1);
        let pair = self.long(pair);
        self.u64(Arith::Add, column, pair)
    }

    /// The lane's part of a block.
    fn fragment(&mut self, mine: VReg, block: [VReg; 2]) -> Fragment {
        let warp = self.u32(Arith::Shr, self.thread, 5);
        let warp = self.u32(Arith::And, warp, 3);
        let of_lane = self.u32(Arith::Shr, self.lane, 2);
        let of_lane = self.at(warp, 16, of_lane);
        let of_lane = self.at(mine, 64, of_lane);
        let of_lane = self.long(of_lane);
        let row = self.u64(Arith::Add, block[0], of_lane);
        let column = self.lane_column(block[1]);
        let below = self.u64(Arith::Add, row, Src::Imm(8));
        let rows = [row, below].map(|row| self.b.setp(Cmp::Lt, Type::U64, row, self.sizes[0]));
        Fragment { block, row, column, rows }
    }

    /// The address of a lane's first element in an array.
    pub(super) fn array_at(&mut self, n: usize, f: &Fragment) -> VReg {
        let (first, [down, along]) = self.arrays[n];
        let at = self.b.arith(Arith::MadLo, Type::U64, &[f.row.into(), down.into(), first.into()]);
        self.b.arith(Arith::MadLo, Type::U64, &[f.column.into(), along.into(), at.into()])
    }

    /// Sums to memory.
    fn store(&mut self, f: &Fragment, sums: &[VReg]) {
        let n = self.plan.plain.unwrap_or_default();
        let results = Results { n, at: self.array_at(n, f), rows: f.rows, column: f.column };
        let (pairs, elements, done) = (self.b.label(), self.b.label(), self.b.label());
        if self.plan.arrays[n].dtype != DType::F32 {
            let aligned = self.are_aligned(n, 4);
            self.b.bra_if(aligned, false, pairs);
            self.store_quads(&results, sums);
            self.b.bra(done);
        }
        self.b.place(pairs);
        let aligned = self.are_aligned(n, 2);
        self.b.bra_if(aligned, false, elements);
        self.store_pairs(&results, sums);
        self.b.bra(done);
        self.b.place(elements);
        self.store_elements(&results, sums);
        self.b.place(done);
    }

    /// The predicate that so many neighbours are at a multiple of their size, and inside or outside together.
    fn are_aligned(&mut self, n: usize, count: u64) -> VReg {
        let size = self.plan.arrays[n].size();
        let (first, [down, _]) = self.arrays[n];
        let all = self.b.arith(Arith::Or, Type::B64, &[first.into(), down.into()]);
        let low = self.b.arith(Arith::And, Type::B64, &[all.into(), Src::Imm(count * size - 1)]);
        let odd = self.b.arith(Arith::And, Type::B64, &[self.sizes[1].into(), Src::Imm(count - 1)]);
        let bad = self.b.arith(Arith::Or, Type::B64, &[low.into(), odd.into()]);
        self.b.setp(Cmp::Eq, Type::B64, bad, Src::Imm(0))
    }

    /// The addresses of a lane's two rows.
    fn row_addresses(&mut self, results: &Results) -> [VReg; 2] {
        let eight = self.u64(Arith::MulLo, self.arrays[results.n].1[0], Src::Imm(8));
        [results.at, self.u64(Arith::Add, results.at, eight)]
    }

    fn inside(&mut self, results: &Results, row: usize, column: u64) -> VReg {
        let column = self.u64(Arith::Add, results.column, Src::Imm(column));
        let good = self.b.setp(Cmp::Lt, Type::U64, column, self.sizes[1]);
        self.b.arith(Arith::And, Type::Pred, &[good.into(), results.rows[row].into()])
    }

    fn store_pairs(&mut self, results: &Results, sums: &[VReg]) {
        let at = self.row_addresses(results);
        let result = self.plan.arrays[results.n].dtype;
        let size = result.size() as u64;
        for (n, four) in sums.chunks(4).enumerate() {
            let column = 8 * n as u64;
            for (row, pair) in four.chunks(2).enumerate() {
                let good = self.inside(results, row, column);
                let to = Src::Addr(Address { disp: (column * size) as i32, ..Address::at(at[row]) });
                let word = match result {
                    DType::F32 => None,
                    narrow => Some(self.rounded(pair, narrow)),
                };
                self.b.guard = Some((good, true));
                match word {
                    None => {
                        let srcs = [to, pair[0].into(), pair[1].into()];
                        self.b.push(Ptx::St(Space::Global, Type::F32), &[], &srcs);
                    }
                    Some(word) => self.b.push(Ptx::St(Space::Global, Type::B32), &[], &[to, word.into()]),
                }
                self.b.guard = None;
            }
        }
    }

    /// Narrow sums, four neighbours at once: a lane and the next one exchange words, so that the even one has four
    /// columns of eight, and the odd one four of the next eight. A warp then writes whole sectors.
    fn store_quads(&mut self, results: &Results, sums: &[VReg]) {
        let result = self.plan.arrays[results.n].dtype;
        let odd = self.odd();
        let [none, further, bytes] = [0, 6, 12].map(|n| self.b.mov(Type::U64, Src::Imm(n)));
        let (columns, bytes) = (self.b.selp(Type::B64, further, none, odd), self.b.selp(Type::B64, bytes, none, odd));
        let column = self.b.arith(Arith::Add, Type::U64, &[results.column.into(), columns.into()]);
        let at = self.row_addresses(results).map(|at| self.b.arith(Arith::Add, Type::U64, &[at.into(), bytes.into()]));
        let even = self.b.setp(Cmp::Eq, Type::U64, columns, Src::Imm(0));
        for (n, eight) in sums.chunks(8).enumerate() {
            let first = 16 * n as u64;
            for row in 0..2 {
                let words = eight.chunks(4).map(|four| self.rounded(&four[2 * row..][..2], result));
                let words: Vec<VReg> = words.collect();
                let quad = self.b.exchanged([words[0], *words.last().unwrap_or(&words[0])], odd);
                let mut good = self.inside(&Results { column, ..*results }, row, first);
                // Of an odd number of groups the last one is stored by even lanes alone.
                if words.len() == 1 {
                    good = self.b.arith(Arith::And, Type::Pred, &[good.into(), even.into()]);
                }
                let to = Src::Addr(Address { disp: (first * 2) as i32, ..Address::at(at[row]) });
                self.b.guard = Some((good, true));
                self.b.push(Ptx::St(Space::Global, Type::B32), &[], &[to, quad[0].into(), quad[1].into()]);
                self.b.guard = None;
            }
        }
    }

    fn store_elements(&mut self, results: &Results, sums: &[VReg]) {
        let rows = self.row_addresses(results);
        let (along, result) = (self.arrays[results.n].1[1], self.plan.arrays[results.n].dtype);
        for (n, sum) in sums.iter().enumerate() {
            let (column, row) = ((n / 4 * 8 + n % 2) as u64, n / 2 % 2);
            let good = self.inside(results, row, column);
            let to = self.b.arith(Arith::MadLo, Type::U64, &[along.into(), Src::Imm(column), rows[row].into()]);
            let (ty, value) = match result {
                DType::F32 => (Type::F32, *sum),
                DType::BF16 => (Type::B16, self.b.cvt(Type::BF16, Type::F32, Round::Rn, *sum)),
                _ => (Type::B16, self.b.cvt(Type::F16, Type::F32, Round::Rn, *sum)),
            };
            self.b.guard = Some((good, true));
            self.b.st(Space::Global, ty, Address::at(to), value);
            self.b.guard = None;
        }
    }

    /// Two sums in a word, the first in its low half.
    fn rounded(&mut self, pair: &[VReg], to: DType) -> VReg {
        let word = self.b.reg(Class::B32);
        let ty = if to == DType::BF16 { Type::BF16 } else { Type::F16 };
        self.b.push(Ptx::Cvt2(ty), &[word], &[pair[1].into(), pair[0].into()]);
        word
    }
}

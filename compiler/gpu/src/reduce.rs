//! Reductions of rows in the order of [`ptoc_ir::loops::Reduce`].
//!
//! The lanes of a warp share the partials of a row, or of two: each has some neighbours, which it loads as a vector, or
//! partials `lane` and `lane + 32`. Steps of the tree within a lane are its own, the others are shuffles.
//!
//! Where the order does not show in the result (minima, maxima, integers) and rows are few, all warps of the CTA share
//! them ([`Emit::reduce_by_all`]): each leaves what it found in a word of shared memory, and one thread joins them.

use crate::dependences::{self, Key};
use crate::emit::{Emit, whole};
use crate::memory::{GpuAddress, Index};
use crate::segments::Segments;
use crate::vectors::WIDEST;
use ptoc_ir::loops::{BinOp, LTy, MemTy, Op, PARTIALS, Reduce, Region, Stride};
use ptoc_ptx::{Address, Arith, Class, Cmp, Op as Ptx, Round, Shfl, Space, Special, Src, Type, VReg};

/// All lanes of a warp.
const ALL: u64 = 0xffff_ffff;

/// Vectors that a lane loads at a time.
const AT_A_TIME: u64 = 4;

/// How rows are spread over lanes.
struct Rows<'r> {
    r: &'r Reduce,
    /// Elements of a vector: partials that a lane has.
    width: u64,
    /// Lanes of a row, of one warp or of several.
    lanes: u64,
    cols: Src,
}

impl Rows<'_> {
    /// Elements that the lanes of a row load at a time. Lanes with single elements have two, so many lanes apart.
    fn span(&self) -> u64 {
        self.lanes * self.width.max(2)
    }

    /// The distance of the `n`-th element that a lane loads from its first.
    fn distance(&self, n: u64) -> u64 {
        if self.width == 1 { self.lanes * n } else { n }
    }
}

/// Bytes of the word that a warp leaves.
const WORD: u32 = 8;

/// Whether elements may be joined in any order.
fn any_order(r: &Reduce) -> bool {
    let float = matches!(r.ty, MemTy::F16 | MemTy::BF16 | MemTy::F32);
    r.op != BinOp::Add || !float
}

impl Emit<'_> {
    /// Whether all warps share the rows.
    pub(crate) fn shared_by_warps(&self, r: &Reduce) -> bool {
        warps_of_row(r, &self.homes.segments, self.threads).is_some()
    }
}

/// Warps that share a row, where several do.
fn warps_of_row(r: &Reduce, segments: &Segments, threads: u32) -> Option<u64> {
    let rows = u64::try_from(segments.interval(r.rows).hi).ok()?;
    let long = segments.interval(r.cols).hi >= LONG;
    let warps = u64::from(threads / 32);
    let each = warps / rows.max(1).checked_next_power_of_two()?;
    (any_order(r) && long && each >= 2).then(|| 1 << each.ilog2())
}

/// Elements from which on a row is shared by several warps: below, one has it before the others have told.
const LONG: i64 = 1024;

/// Bytes of shared memory through which the warps of rows tell each other: 0 where no row is shared.
pub(crate) fn words(region: &Region, segments: &Segments, threads: u32) -> u32 {
    let own = |op: &Op| matches!(op, Op::Reduce(r) if warps_of_row(r, segments, threads).is_some());
    let any = |region: &Region| words(region, segments, threads) > 0;
    if region.iter().any(|s| own(&s.op) || s.op.regions().any(any)) { WORD * (threads / 32) } else { 0 }
}

impl Emit<'_> {
    pub(crate) fn reduce(&mut self, r: &Reduce) {
        if let (Some(words), Some(warps)) = (self.words, warps_of_row(r, &self.homes.segments, self.threads)) {
            return self.reduce_by_all(r, words, warps);
        }
        self.order(&dependences::of(&Op::Reduce(Box::new(r.clone())), self.keys()));
        let (rows, cols) = (self.src(r.rows), self.src(r.cols));
        let (a, d) = (self.origin_of(&r.a), self.origin_of(&r.d));
        // Results may lie where elements of their row do, which other lanes have to read first.
        let same = self.keys().of(&r.a) == self.keys().of(&r.d);
        let width = self.reduce_width(r);
        let walk = Rows { r, width, lanes: (PARTIALS as u64 / width).min(32), cols };
        let at_once = 32 / walk.lanes;
        let lane = self.b.mov(Type::U32, Src::Special(Special::Laneid));
        let in_row = self.b.arith(Arith::And, Type::B32, &[lane.into(), Src::Imm(walk.lanes - 1)]);
        let first = self.b.arith(Arith::Shr, Type::U32, &[self.tid.into(), Src::Imm(u64::from(walk.lanes.ilog2()))]);
        let first = self.b.cvt(Type::U64, Type::U32, Round::None, first);
        let warp = self.b.arith(Arith::Shr, Type::U32, &[self.tid.into(), Src::Imm(5)]);
        let warp = self.b.arith(Arith::MulLo, Type::U32, &[warp.into(), Src::Imm(at_once)]);
        let warp = self.b.cvt(Type::U64, Type::U32, Round::None, warp);
        let turn = self.variable(LTy::I64, Src::Imm(0));
        let (head, exit) = (self.b.label(), self.b.label());
        self.b.place(head);
        let over = self.b.setp(Cmp::Ge, Type::S64, turn, rows);
        self.b.bra_if(over, true, exit);

        let row = self.b.arith(Arith::Add, Type::S64, &[turn.into(), first.into()]);
        let row = (self.low(row), row);
        let active = self.b.setp(Cmp::Lt, Type::S64, row.1, rows);
        let result = self.variable(r.ty.reg(), Src::Imm(0));
        let idle = self.b.label();
        // Shuffles are of whole warps: one leaves only if all of its rows are beyond the last.
        let of_warp = self.b.arith(Arith::Add, Type::S64, &[turn.into(), warp.into()]);
        let works = self.b.setp(Cmp::Lt, Type::S64, of_warp, rows);
        self.b.bra_if(works, false, idle);
        let in_row = (in_row, self.b.cvt(Type::U64, Type::U32, Round::None, in_row));
        let partials = self.row_partials(&walk, a, row, active, in_row.1);
        let joined = self.tree(&walk, partials);
        self.b.set(result, whole(r.ty.reg()), joined);
        self.b.place(idle);
        if same {
            self.b.push(Ptx::Bar(0), &[], &[]);
        }
        let writes = self.b.setp(Cmp::Eq, Type::U32, in_row.0, Src::Imm(0));
        let writes = self.b.arith(Arith::And, Type::Pred, &[writes.into(), active.into()]);
        let place = self.along(d, row, Stride::Const(r.d_stride));
        self.store(r.ty, place, result, Some((writes, true)));
        self.advance(turn, Type::S64, Src::Imm(u64::from(self.threads / 32) * at_once));
        self.b.bra(head);
        self.b.place(exit);
    }

    /// Rows that several warps share, each a part of every few vectors: so many warps a row.
    fn reduce_by_all(&mut self, r: &Reduce, words: u32, warps: u64) {
        let op = Op::Reduce(Box::new(r.clone()));
        let mut touched = dependences::of(&op, self.keys());
        touched.remove(self.untouched(&op));
        touched.writes.insert(Key::Words);
        touched.reads.insert(Key::Words);
        self.order(&touched);
        let (rows, cols) = (self.src(r.rows), self.src(r.cols));
        let (a, d) = (self.origin_of(&r.a), self.origin_of(&r.d));
        let size = u64::from(r.ty.size());
        let of_rows = match self.homes.segments.interval(r.rows).hi {
            0..=1 => u64::MAX,
            _ => 1 << r.a_strides.0.trailing_zeros().min(16),
        };
        let aligned = self.alignment(r.a.base, r.a.offset).min(of_rows).min(WIDEST);
        let width = if r.a_strides.1 == size as i64 { (aligned / size).max(1) } else { 1 };
        let walk = Rows { r, width, lanes: 32 * warps, cols };
        let lane = self.b.arith(Arith::And, Type::B32, &[self.tid.into(), Src::Imm(walk.lanes - 1)]);
        let shift = u64::from(walk.lanes.ilog2());
        let row = self.b.arith(Arith::Shr, Type::U32, &[self.tid.into(), Src::Imm(shift)]);
        let [lane64, row64] = [lane, row].map(|n| self.b.cvt(Type::U64, Type::U32, Round::None, n));
        let active = self.b.setp(Cmp::Lt, Type::S64, row64, rows);
        let mut partials = match self.resident_row(r) {
            Some(row) => row,
            None => self.row_partials(&walk, a, (row, row64), active, lane64),
        };
        while partials.len() > 1 {
            let half = partials.len() / 2;
            let other = partials.split_off(half);
            for (partial, other) in partials.iter_mut().zip(other) {
                *partial = self.binary(r.op, r.ty.reg(), (*partial).into(), other.into(), None);
            }
        }
        for distance in [16, 8, 4, 2, 1] {
            let other = self.moved_down(r.ty.reg(), partials[0], distance);
            partials[0] = self.binary(r.op, r.ty.reg(), partials[0].into(), other.into(), None);
        }
        let ty = whole(r.ty.reg());
        let warp = self.b.arith(Arith::Shr, Type::U32, &[self.tid.into(), Src::Imm(5)]);
        let scale = |e: &mut Self, n: VReg, by: u64| {
            let at = e.b.arith(Arith::MadLo, Type::U32, &[n.into(), Src::Imm(by), e.smem.into()]);
            Address { disp: words as i32, ..Address::at(at) }
        };
        let lowest = self.b.arith(Arith::And, Type::B32, &[self.tid.into(), Src::Imm(31)]);
        let lowest = self.b.setp(Cmp::Eq, Type::U32, lowest, Src::Imm(0));
        let at = scale(self, warp, u64::from(WORD));
        let guard = self.b.guard.replace((lowest, true));
        self.b.st(Space::Shared, ty, at, partials[0]);
        self.b.guard = guard;
        self.b.push(Ptx::Bar(0), &[], &[]);
        // A thread for each row joins what its warps have found.
        let done = self.b.label();
        let tid = self.b.cvt(Type::U64, Type::U32, Round::None, self.tid);
        let over = self.b.setp(Cmp::Ge, Type::S64, tid, rows);
        self.b.bra_if(over, true, done);
        let first = scale(self, self.tid, u64::from(WORD) * warps);
        let found: Vec<VReg> = (0..warps as i32)
            .map(|n| self.b.ld(Space::Shared, ty, Address { disp: first.disp + n * WORD as i32, ..first }))
            .collect();
        let joined = found.into_iter().reduce(|a, b| self.binary(r.op, r.ty.reg(), a.into(), b.into(), None));
        let place = self.along(d, (self.tid, tid), Stride::Const(r.d_stride));
        self.store(r.ty, place, joined.unwrap_or(partials[0]), None);
        self.b.place(done);
    }

    /// The elements that a lane loads at once: neighbours of 4 bytes, where rows are known to be aligned; more where
    /// there are rows for all warps even so.
    fn reduce_width(&self, r: &Reduce) -> u64 {
        let size = i64::from(r.ty.size());
        if r.a_strides.1 != size || size != 4 {
            return 1;
        }
        let of_rows = 1 << r.a_strides.0.trailing_zeros().min(16);
        let aligned = self.alignment(r.a.base, r.a.offset).min(of_rows);
        let rows = self.homes.segments.interval(r.rows).hi;
        match aligned {
            16.. if rows > i64::from(self.threads / 32) => 4,
            8.. => 2,
            _ => 1,
        }
    }

    /// A lane's partials of its row; what changes nothing, where it has none.
    fn row_partials(&mut self, w: &Rows<'_>, a: GpuAddress, row: Index, active: VReg, lane: VReg) -> Vec<VReg> {
        let (r, ty) = (w.r, w.r.ty.reg());
        let neutral = Src::Imm(neutral(r.op, r.ty));
        let count = w.width.max(2);
        let partials: Vec<VReg> = (0..count).map(|_| self.variable(ty, neutral)).collect();
        let start = self.along(a, row, Stride::Const(r.a_strides.0));
        let col = self.u64(Arith::MulLo, lane, Src::Imm(w.width));
        let col = self.variable(LTy::I64, col.into());
        let cols = self.b.selp(Type::B64, w.cols, Src::Imm(0), active);
        for turns in [AT_A_TIME, 1] {
            let (next, end) = (self.b.label(), self.b.label());
            self.b.place(next);
            let last = (turns - 1) * w.span() + w.distance(count - 1);
            let last = self.u64(Arith::Add, col, Src::Imm(last));
            let over = self.b.setp(Cmp::Ge, Type::S64, last, cols);
            self.b.bra_if(over, true, end);
            let index = (self.low(col), col);
            let place = self.along(start, index, Stride::Const(r.a_strides.1));
            let far = w.span() as i64 * r.a_strides.1;
            let mut loaded = Vec::new();
            for turn in 0..turns {
                let place = self.further(place, turn as i64 * far);
                loaded.extend(match w.width {
                    1 => {
                        let second = self.further(place, w.distance(1) as i64 * r.a_strides.1);
                        vec![self.load(r.ty, place), self.load(r.ty, second)]
                    }
                    width => self.load_vector(r.ty, place, width),
                });
            }
            for (n, x) in loaded.into_iter().enumerate() {
                self.join_partial(r, partials[n % count as usize], x, None);
            }
            self.advance(col, Type::S64, Src::Imm(turns * w.span()));
            self.b.bra(next);
            self.b.place(end);
        }
        // The last ones: some of a vector.
        for (n, partial) in partials.iter().enumerate() {
            let at = self.u64(Arith::Add, col, Src::Imm(w.distance(n as u64)));
            let there = self.b.setp(Cmp::Lt, Type::S64, at, cols);
            let skip = self.b.label();
            self.b.bra_if(there, false, skip);
            let place = {
                let at = (self.low(at), at);
                self.along(start, at, Stride::Const(r.a_strides.1))
            };
            let x = self.load(r.ty, place);
            self.join_partial(r, *partial, x, None);
            self.b.place(skip);
        }
        partials
    }

    fn join_partial(&mut self, r: &Reduce, partial: VReg, x: VReg, known: Option<u64>) {
        let ty = r.ty.reg();
        let joined = self.binary(r.op, ty, partial.into(), x.into(), known);
        self.b.set(partial, whole(ty), joined);
    }

    /// Joins partials n and n + 32, then n and n + 16, and so on: those of one lane here, those of others by shuffles.
    /// What reaches the first lane of a row counts.
    fn tree(&mut self, w: &Rows<'_>, mut partials: Vec<VReg>) -> VReg {
        let ty = w.r.ty.reg();
        if w.width == 1 {
            let joined = self.binary(w.r.op, ty, partials[0].into(), partials[1].into(), None);
            partials = vec![joined];
        }
        let mut distance = if w.width == 1 { 16 } else { PARTIALS as u64 / 2 };
        while distance > 0 {
            if distance >= w.width {
                for partial in &mut partials {
                    let other = self.moved_down(ty, *partial, distance / w.width);
                    *partial = self.binary(w.r.op, ty, (*partial).into(), other.into(), None);
                }
            } else {
                for n in 0..distance as usize {
                    let other = partials[n + distance as usize];
                    partials[n] = self.binary(w.r.op, ty, partials[n].into(), other.into(), None);
                }
                partials.truncate(distance as usize);
            }
            distance /= 2;
        }
        partials[0]
    }

    /// The value of the lane that is so many further.
    fn moved_down(&mut self, ty: LTy, value: VReg, distance: u64) -> VReg {
        let one = |e: &mut Self, value: VReg| {
            let dst = e.b.reg(Class::B32);
            let srcs = [value.into(), Src::Imm(distance), Src::Imm(31), Src::Imm(ALL)];
            e.b.push(Ptx::Shfl(Shfl::Down), &[dst], &srcs);
            dst
        };
        match ty {
            LTy::F32 => {
                let bits = self.b.bits(Class::B32, value);
                let bits = one(self, bits);
                self.b.bits(Class::F32, bits)
            }
            LTy::I64 => {
                let low = self.low(value);
                let high = self.b.arith(Arith::Shr, Type::U64, &[value.into(), Src::Imm(32)]);
                let high = self.low(high);
                let [low, high] = [low, high].map(|half| {
                    let half = one(self, half);
                    self.b.cvt(Type::U64, Type::U32, Round::None, half)
                });
                let high = self.b.arith(Arith::Shl, Type::B64, &[high.into(), Src::Imm(32)]);
                self.b.arith(Arith::Or, Type::B64, &[low.into(), high.into()])
            }
            _ => one(self, value),
        }
    }
}

/// What changes nothing when it is joined: bits of a register.
fn neutral(op: BinOp, ty: MemTy) -> u64 {
    let bits = 8 * ty.size();
    let float = matches!(ty, MemTy::F16 | MemTy::BF16 | MemTy::F32);
    let mask = if ty.reg() == LTy::I64 { u64::MAX } else { u64::from(u32::MAX) };
    match (op, ty) {
        (BinOp::Max, _) if float => u64::from(f32::NEG_INFINITY.to_bits()),
        (BinOp::Min, _) if float => u64::from(f32::INFINITY.to_bits()),
        (BinOp::Max, MemTy::U8 | MemTy::U16) => 0,
        (BinOp::Min, MemTy::U8 | MemTy::U16) => (1 << bits) - 1,
        (BinOp::Max, _) => (i64::MIN >> (64 - bits)) as u64 & mask,
        (BinOp::Min, _) => (i64::MAX >> (64 - bits)) as u64 & mask,
        // No number is below 0, or above all ones.
        (BinOp::MinU, _) => mask,
        _ => 0,
    }
}

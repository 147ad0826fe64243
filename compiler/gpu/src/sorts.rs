//! Sorts of short lists, a warp each: the rank of an element is the number of those that come before it. Every lane has
//! one, and looks at the others' by shuffles.

use crate::dependences;
use crate::emit::Emit;
use crate::memory::{GpuAddress, Index};
use ptoc_ir::loops::{Addr, Base, LTy, MemTy, Op, Sort, Stride, fields};
use ptoc_isa::{RECORD, SORTED};
use ptoc_ptx::{Arith, Class, Cmp, Op as Ptx, Round, Shfl, Special, Src, Type, VReg};

/// The key of NaN. The next one is that of the largest number, so that what comes before or is equal to a value is what
/// comes before the next key's value, for NaN as well.
pub(crate) const NAN_KEY: u64 = 0x007f_fffe;

/// The record at an address: its first field, and how the fields lie.
#[derive(Clone, Copy)]
pub(crate) struct RecordShape {
    pub(crate) ty: MemTy,
    /// Bytes from field to field.
    pub(crate) stride: i64,
    /// One vector of eight bytes.
    pub(crate) whole: bool,
}

impl RecordShape {
    /// Bytes from record to record.
    pub(crate) fn step(&self) -> i64 {
        fields(self.ty).unwrap_or(1) * self.stride
    }

    /// The type of a field's bits.
    pub(crate) fn raw(&self) -> MemTy {
        if self.ty == MemTy::F32 { MemTy::I32 } else { MemTy::U16 }
    }
}

impl Emit<'_> {
    pub(crate) fn sort(&mut self, s: &Sort) {
        self.order(&dependences::of(&Op::Sort(Box::new(s.clone())), self.keys()));
        let (rows, cols) = (self.src(s.rows), self.src(s.cols));
        let cols = self.b.arith(Arith::Max, Type::S64, &[cols, Src::Imm(0)]);
        let (a, index, d) = (self.origin_of(&s.a), self.origin_of(&s.index), self.origin_of(&s.d));
        let shape = self.record_shape(s.ty, &s.d, s.d_strides.1, &[s.d_strides.0]);
        let filled = self.u64(Arith::Add, cols, Src::Imm(SORTED as u64 - 1));
        let of_row = self.b.arith(Arith::Shr, Type::U64, &[filled.into(), Src::Imm(u64::from(SORTED.ilog2()))]);
        let all = match rows {
            Src::Imm(1) => of_row,
            rows => {
                let rows = self.b.arith(Arith::Max, Type::S64, &[rows, Src::Imm(0)]);
                self.u64(Arith::MulLo, rows, of_row)
            }
        };
        let lane = self.b.mov(Type::U32, Src::Special(Special::Laneid));
        let wide_lane = self.b.cvt(Type::U64, Type::U32, Round::None, lane);
        let warp = self.b.arith(Arith::Shr, Type::U32, &[self.tid.into(), Src::Imm(5)]);
        let warp = self.b.cvt(Type::U64, Type::U32, Round::None, warp);
        let list = self.variable(LTy::I64, warp.into());
        let (head, exit) = (self.b.label(), self.b.label());
        self.b.place(head);
        let over = self.b.setp(Cmp::Ge, Type::U64, list, all);
        self.b.bra_if(over, true, exit);

        let (row, within) = match rows {
            Src::Imm(1) => (self.b.mov(Type::U64, Src::Imm(0)), list),
            _ => self.div_rem(list.into(), of_row.into()),
        };
        let row = (self.low(row), row);
        let first = self.b.arith(Arith::Shl, Type::B64, &[within.into(), Src::Imm(u64::from(SORTED.ilog2()))]);
        let col = self.u64(Arith::Add, first, wide_lane);
        let active = self.b.setp(Cmp::Lt, Type::U64, col, cols);
        // The key of no element comes behind all others.
        let key = self.variable(LTy::I32, Src::Imm(u64::from(u32::MAX)));
        let [bits, number] = [0; 2].map(|zero| self.variable(LTy::I32, Src::Imm(zero)));
        let idle = self.b.label();
        self.b.bra_if(active, false, idle);
        let col = (self.low(col), col);
        let at = |e: &mut Self, place: GpuAddress, strides: (i64, i64), col: Index| {
            let place = e.along(place, row, Stride::Const(strides.0));
            e.along(place, col, Stride::Const(strides.1))
        };
        let place = at(self, a, s.a_strides, col);
        let x = self.load(s.ty, place);
        let raw = self.load(shape.raw(), place);
        self.b.set(bits, Type::B32, raw);
        let own = self.key(x);
        self.b.set(key, Type::B32, own);
        let place = at(self, index, s.index_strides, col);
        let x = self.load(MemTy::I32, place);
        self.b.set(number, Type::B32, x);
        self.b.place(idle);
        let rank = self.rank(key, lane);
        let first = self.low(first);
        let record = self.b.arith(Arith::Add, Type::U32, &[first.into(), rank.into()]);
        let record = (record, self.b.cvt(Type::U64, Type::U32, Round::None, record));
        let place = at(self, d, (s.d_strides.0, shape.step()), record);
        let skip = self.b.label();
        self.b.bra_if(active, false, skip);
        self.store_record(shape, place, bits, number);
        self.b.place(skip);
        self.advance(list, Type::U64, Src::Imm(u64::from(self.threads / 32)));
        self.b.bra(head);
        self.b.place(exit);
    }

    /// How many lanes have a lower key, or the same one and a lower number.
    fn rank(&mut self, key: VReg, lane: VReg) -> VReg {
        let paired = |e: &mut Self, key: VReg, lane: Src| {
            let high = e.b.cvt(Type::U64, Type::U32, Round::None, key);
            let high = e.b.arith(Arith::Shl, Type::B64, &[high.into(), Src::Imm(32)]);
            e.b.arith(Arith::Or, Type::B64, &[high.into(), lane])
        };
        let wide = self.b.cvt(Type::U64, Type::U32, Round::None, lane);
        let own = paired(self, key, wide.into());
        let rank = self.variable(LTy::I32, Src::Imm(0));
        for other in 0..SORTED as u64 {
            let theirs = self.b.reg(Class::B32);
            let srcs = [key.into(), Src::Imm(other), Src::Imm(31), Src::Imm(u64::from(u32::MAX))];
            self.b.push(Ptx::Shfl(Shfl::Idx), &[theirs], &srcs);
            let theirs = paired(self, theirs, Src::Imm(other));
            let first = self.b.setp(Cmp::Lt, Type::U64, theirs, own);
            let before = self.b.guard.replace((first, true));
            self.advance(rank, Type::U32, Src::Imm(1));
            self.b.guard = before;
        }
        rank
    }

    /// An unsigned number that is lower the earlier a value comes: all NaN have the same, and zeros of either sign that
    /// of -0. It is less than all ones.
    pub(crate) fn key(&mut self, x: VReg) -> VReg {
        let nan = self.b.setp(Cmp::Nan, Type::F32, x, x);
        let negated = self.b.arith(Arith::SubF, Type::F32, &[Src::Imm(0), x.into()]);
        let bits = self.b.bits(Class::B32, negated);
        let bits = self.b.arith(Arith::Xor, Type::B32, &[bits.into(), Src::Imm(1 << 31)]);
        let key = self.flipped(bits);
        self.b.selp(Type::B32, Src::Imm(NAN_KEY), key, nan)
    }

    /// The bits of a number as its key, or the key as the bits: those below the sign are inverted unless it is set.
    pub(crate) fn flipped(&mut self, bits: VReg) -> VReg {
        let sign = self.b.arith(Arith::Shr, Type::S32, &[bits.into(), Src::Imm(31)]);
        let not = self.b.arith(Arith::Not, Type::B32, &[sign.into()]);
        let below = self.b.arith(Arith::And, Type::B32, &[not.into(), Src::Imm(0x7fff_ffff)]);
        self.b.arith(Arith::Xor, Type::B32, &[bits.into(), below.into()])
    }

    /// How records lie that begin at an address, and at multiples of these strides from it.
    pub(crate) fn record_shape(&self, ty: MemTy, addr: &Addr, stride: i64, others: &[i64]) -> RecordShape {
        let bytes = RECORD as u64;
        let aligned = matches!(addr.base, Base::Space(_))
            && addr.gather.is_none()
            && self.alignment(addr.base, addr.offset) >= bytes
            && others.iter().all(|n| n % bytes as i64 == 0);
        RecordShape { ty, stride, whole: aligned && stride == i64::from(ty.size()) }
    }

    /// Stores a value's bits and an index as a record.
    fn store_record(&mut self, shape: RecordShape, place: GpuAddress, bits: VReg, index: VReg) {
        if shape.whole {
            return self.store_vector(MemTy::I32, place, &[bits, index]);
        }
        let mut parts = vec![bits];
        if shape.ty == MemTy::F32 {
            parts.push(index);
        } else {
            let zero = self.b.mov(Type::B32, Src::Imm(0));
            let high = self.b.arith(Arith::Shr, Type::U32, &[index.into(), Src::Imm(16)]);
            parts.extend([zero, index, high]);
        }
        self.store_fields(shape, place, &parts);
    }

    /// Stores the fields of a record.
    pub(crate) fn store_fields(&mut self, shape: RecordShape, place: GpuAddress, parts: &[VReg]) {
        for (n, part) in parts.iter().enumerate() {
            let place = self.further(place, n as i64 * shape.stride);
            self.store(shape.raw(), place, *part, None);
        }
    }
}

//! Vector accesses (`ld.v2`, `ld.v4`): elements of neighbouring lanes in one instruction of up to 16 bytes, so that the
//! accesses of a warp coalesce.
//!
//! A vector access needs an address that is a multiple of its size. What follows from constants and strides is known
//! when the kernel is compiled ([`Factors`]); where rows begin, and how arrays are aligned, is tested when it runs.

use crate::allocation::ALIGN;
use crate::emit::Emit;
use crate::lanes::{Row, beside};
use crate::memory::GpuAddress;
use crate::row_pointers::row_pointer;
use cranelift_entity::SecondaryMap;
use ptoc_ir::loops::{Base, BinOp, Func, LTy, Lanes, MemTy, Op, Reg, Region, Stride, operands};
use ptoc_ptx::{AddrBase, Address, Arith, Class, Cmp, Op as Ptx, Round, Src, Type, VReg};

/// Bytes of the widest access.
pub(crate) const WIDEST: u64 = 16;

/// Bodies above this length take lanes one by one: their vectors would not fit in registers.
const LONGEST: usize = 200;

/// Whether the vectors of a body are aligned.
#[derive(Clone, Copy)]
pub(crate) enum Aligned {
    Always,
    Never,
    If(VReg),
}

/// The lanes of a vector: as many as fill the widest access of the narrowest elements, 8 at most; 1 where neighbouring
/// lanes have elements that are no neighbours. In a tile, of its own elements: of vectors that lie apart, as the halves
/// of longer ones do, two meet in each bank of shared memory.
pub(crate) fn width(lanes: &Lanes) -> u64 {
    if lanes.body.len() > LONGEST {
        return 1;
    }
    let mut narrowest = u64::MAX;
    let mut of_tiles = 1;
    for stmt in &lanes.body {
        if let Op::Load { ty, addr, .. } | Op::Store { ty, addr, .. } = &stmt.op {
            let same = addr.stride == Stride::Const(0) && addr.gather.is_none_or(|g| !made_in(lanes, g));
            if beside(lanes, addr, *ty) && (addr.gather.is_none() || matches!(stmt.op, Op::Load { .. })) {
                narrowest = narrowest.min(u64::from(ty.size()));
                if matches!(addr.base, Base::Space(_)) {
                    of_tiles = of_tiles.max(u64::from(ty.size()));
                }
            } else if !same || matches!(stmt.op, Op::Store { .. }) {
                return 1;
            }
        }
    }
    match narrowest {
        u64::MAX => 1,
        // Registers of long bodies are the limit, not memory.
        size if lanes.body.len() > 24 => (WIDEST / size.max(of_tiles)).min(4),
        size => (WIDEST / size.max(of_tiles)).min(8),
    }
}

/// Low bits of numbers that have to be multiples of powers of two: all are 0 where all are.
#[derive(Default)]
pub(crate) struct LowBits(Option<VReg>);

/// Whether the register is one of the lanes' body.
pub(crate) fn made_in(lanes: &Lanes, reg: Reg) -> bool {
    reg == lanes.lane || lanes.body.iter().any(|s| operands(&s.op).1 == Some(reg))
}

/// For each register of a function, the power of two that its value is known to be a multiple of.
#[derive(Clone, Debug, Default)]
pub(crate) struct Factors {
    bits: SecondaryMap<Reg, u8>,
}

impl Factors {
    pub(crate) fn new(func: &Func) -> Factors {
        let mut factors = Factors::default();
        factors.region(func, &func.body);
        factors
    }

    /// Trailing zeros that are known.
    fn of(&self, reg: Reg) -> u8 {
        self.bits[reg]
    }

    fn region(&mut self, func: &Func, region: &Region) {
        for stmt in region {
            let known = |reg: Reg, n: u32, f: &mut Factors| {
                if func.regs[reg].ty == LTy::I64 {
                    f.bits[reg] = n.min(32) as u8;
                }
            };
            match &stmt.op {
                Op::Const { dst, bits } => known(*dst, bits.trailing_zeros(), self),
                Op::Binary { dst, op, a, b } => {
                    let (a, b) = (u32::from(self.of(*a)), u32::from(self.of(*b)));
                    match op {
                        BinOp::Mul => known(*dst, a + b, self),
                        BinOp::Add | BinOp::Sub | BinOp::Min | BinOp::Max => known(*dst, a.min(b), self),
                        _ => {}
                    }
                }
                Op::Select { dst, a, b, .. } => known(*dst, u32::from(self.of(*a).min(self.of(*b))), self),
                Op::For(f) => {
                    let step = f.step.trailing_zeros();
                    known(f.index, step.min(u32::from(self.of(f.lo))), self);
                }
                _ => {}
            }
            stmt.op.regions().for_each(|r| self.region(func, r));
        }
    }
}

/// The type of the registers in which elements are loaded and stored: narrow ones several at a time.
fn word(ty: MemTy) -> Type {
    match ty {
        MemTy::I64 => Type::B64,
        MemTy::F32 => Type::F32,
        _ => Type::B32,
    }
}

impl Emit<'_> {
    /// Whether the vectors of these lanes are aligned. Emits the test, if it depends on the launch.
    pub(crate) fn aligned(&mut self, lanes: &Lanes, width: u64, rows: &[Row]) -> Aligned {
        if width == 1 {
            return Aligned::Never;
        }
        let mut tested: Vec<(Base, Reg, u64)> = Vec::new();
        let mut pointers: Vec<VReg> = Vec::new();
        for stmt in &lanes.body {
            let (Op::Load { ty, addr, .. } | Op::Store { ty, addr, .. }) = &stmt.op else { continue };
            if !beside(lanes, addr, *ty) {
                continue;
            }
            if let Some(pointer) = addr.gather.and_then(|g| row_pointer(lanes, g)) {
                let Some(aligned) = self.aligned_pointers(pointer) else { return Aligned::Never };
                if !pointers.contains(&aligned) {
                    pointers.push(aligned);
                }
            }
            let bytes = (width * u64::from(ty.size())).min(WIDEST);
            // Less than a word is no vector: of lanes with joins there may be two.
            if bytes < 4 {
                return Aligned::Never;
            }
            if self.alignment(addr.base, addr.offset) >= bytes {
                continue;
            }
            // What the body computes is not there yet.
            if made_in(lanes, addr.offset) {
                return Aligned::Never;
            }
            if !tested.contains(&(addr.base, addr.offset, bytes)) {
                tested.push((addr.base, addr.offset, bytes));
            }
        }
        let mut bits = LowBits::default();
        let each = rows.iter().flat_map(|row| tested.iter().map(move |t| (row, *t)));
        for (row, (base, offset, bytes)) in each {
            self.enter(row);
            let place = self.origin(base, offset);
            self.low_bits(&mut bits, place, bytes);
        }
        let tests = self.all_zero(bits).into_iter().chain(pointers);
        let all = tests.fold(None, |all, test| Some(self.both(all, test)));
        all.map_or(Aligned::Always, Aligned::If)
    }

    /// Adds those of an address, which has to be a multiple of so many bytes.
    pub(crate) fn low_bits(&mut self, bits: &mut LowBits, place: GpuAddress, bytes: u64) {
        let mut low = if self.b.class(place.reg) == Class::B64 { self.low(place.reg) } else { place.reg };
        if !(place.disp as u64).is_multiple_of(bytes) {
            low = self.b.arith(Arith::Add, Type::U32, &[low.into(), Src::Imm(u64::from(place.disp as u32))]);
        }
        self.add_low_bits(bits, low.into(), bytes);
    }

    /// Adds those of a stride.
    pub(crate) fn low_bits_of_stride(&mut self, bits: &mut LowBits, stride: Stride, bytes: u64) {
        let stride = match stride {
            Stride::Const(n) => Src::Imm(u64::from(n as u32)),
            Stride::Reg(reg) => {
                let reg = self.reg(reg);
                self.low(reg).into()
            }
        };
        self.add_low_bits(bits, stride, bytes);
    }

    fn add_low_bits(&mut self, bits: &mut LowBits, number: Src, bytes: u64) {
        let rest = self.b.arith(Arith::And, Type::B32, &[number, Src::Imm(bytes - 1)]);
        bits.0 = Some(match bits.0 {
            Some(all) => self.b.arith(Arith::Or, Type::B32, &[all.into(), rest.into()]),
            None => rest,
        });
    }

    /// Tests them; `None` where there are none.
    pub(crate) fn all_zero(&mut self, bits: LowBits) -> Option<VReg> {
        bits.0.map(|bits| self.b.setp(Cmp::Eq, Type::U32, bits, Src::Imm(0)))
    }

    /// The power of two that an address is known to be a multiple of.
    pub(crate) fn alignment(&self, base: Base, offset: Reg) -> u64 {
        let of_offset = 1 << self.factors.of(offset);
        match base {
            Base::Tensor(_) => 1,
            Base::Space(_) => u64::from(ALIGN).min(of_offset),
        }
    }

    /// Loads so many neighbours.
    pub(crate) fn load_vector(&mut self, ty: MemTy, place: GpuAddress, count: u64) -> Vec<VReg> {
        let size = u64::from(ty.size());
        let word = word(ty);
        let words = self.load_words(word, place, count * size / u64::from(word.size()));
        if size >= 4 {
            return words;
        }
        let each = 4 / size;
        (0..count).map(|n| self.unpacked(ty, words[(n / each) as usize], 8 * size * (n % each))).collect()
    }

    fn load_words(&mut self, ty: Type, place: GpuAddress, count: u64) -> Vec<VReg> {
        let most = WIDEST / u64::from(ty.size());
        let mut all = Vec::new();
        while (all.len() as u64) < count {
            let some = most.min(count - all.len() as u64);
            let dsts: Vec<VReg> = (0..some).map(|_| self.b.reg(ty.class())).collect();
            let disp = place.disp + (all.len() as u32 * ty.size()) as i32;
            let at = Address { base: AddrBase::Reg(place.reg), disp };
            self.b.push(Ptx::Ld(place.space, ty), &dsts, &[Src::Addr(at)]);
            all.extend(dsts);
        }
        all
    }

    /// Moves so many bytes, a multiple of 4, between aligned places.
    pub(crate) fn move_bytes(&mut self, from: GpuAddress, to: GpuAddress, bytes: u64) {
        let words = self.load_words(Type::B32, from, bytes / 4);
        self.store_vector(MemTy::I32, to, &words);
    }

    /// The element that begins at a bit of a word.
    pub(crate) fn unpacked(&mut self, ty: MemTy, word: VReg, at: u64) -> VReg {
        let bits = 8 * u64::from(ty.size());
        match ty {
            MemTy::I8 | MemTy::I16 => {
                let left = match 32 - bits - at {
                    0 => word,
                    by => self.b.arith(Arith::Shl, Type::B32, &[word.into(), Src::Imm(by)]),
                };
                self.b.arith(Arith::Shr, Type::S32, &[left.into(), Src::Imm(32 - bits)])
            }
            MemTy::BF16 => {
                let wide = match at {
                    0 => self.b.arith(Arith::Shl, Type::B32, &[word.into(), Src::Imm(16)]),
                    _ => self.b.arith(Arith::And, Type::B32, &[word.into(), Src::Imm(0xffff_0000)]),
                };
                self.b.bits(Class::F32, wide)
            }
            _ => {
                let moved = match at {
                    0 => word,
                    by => self.b.arith(Arith::Shr, Type::U32, &[word.into(), Src::Imm(by)]),
                };
                match ty {
                    MemTy::F16 => {
                        let half = self.b.cvt(Type::U16, Type::U32, Round::None, moved);
                        let value = self.b.cvt(Type::F32, Type::F16, Round::None, half);
                        self.loaded.insert(value, half);
                        value
                    }
                    _ => {
                        let mask = Src::Imm((1 << bits) - 1);
                        let value = if at + bits == 32 {
                            moved
                        } else {
                            self.b.arith(Arith::And, Type::B32, &[moved.into(), mask])
                        };
                        match ty {
                            MemTy::Bool => self.b.setp(Cmp::Ne, Type::U32, value, Src::Imm(0)),
                            _ => value,
                        }
                    }
                }
            }
        }
    }

    /// Stores neighbours.
    pub(crate) fn store_vector(&mut self, ty: MemTy, place: GpuAddress, values: &[VReg]) {
        let word = word(ty);
        let words: Vec<VReg> = match ty.size() {
            4 | 8 => values.to_vec(),
            size => values.chunks((4 / size) as usize).map(|some| self.packed(ty, some)).collect(),
        };
        let most = WIDEST / u64::from(word.size());
        for (n, some) in words.chunks(most as usize).enumerate() {
            let disp = place.disp + (n as u64 * WIDEST) as i32;
            let at = Address { base: AddrBase::Reg(place.reg), disp };
            let srcs: Vec<Src> = std::iter::once(Src::Addr(at)).chain(some.iter().map(|r| (*r).into())).collect();
            self.b.push(Ptx::St(place.space, word), &[], &srcs);
        }
    }

    /// A word of narrow elements.
    fn packed(&mut self, ty: MemTy, values: &[VReg]) -> VReg {
        if let (MemTy::F16 | MemTy::BF16, &[low, high]) = (ty, values) {
            let [low, high] = [low, high].map(|value| self.half(ty, value));
            return self.b.pack(low, high);
        }
        let bits = 8 * u64::from(ty.size());
        let mut word: Option<VReg> = None;
        for (n, value) in values.iter().enumerate() {
            let element = match ty {
                MemTy::Bool => self.b.selp(Type::B32, Src::Imm(1), Src::Imm(0), *value),
                MemTy::F16 | MemTy::BF16 => {
                    let half = self.half(ty, *value);
                    self.b.cvt(Type::U32, Type::U16, Round::None, half)
                }
                // What is shifted to the top needs no mask.
                _ if n + 1 == values.len() => *value,
                _ => self.b.arith(Arith::And, Type::B32, &[(*value).into(), Src::Imm((1 << bits) - 1)]),
            };
            let moved = match n as u64 * bits {
                0 => element,
                by => self.b.arith(Arith::Shl, Type::B32, &[element.into(), Src::Imm(by)]),
            };
            word = Some(match word {
                Some(word) => self.b.arith(Arith::Or, Type::B32, &[word.into(), moved.into()]),
                None => moved,
            });
        }
        word.unwrap_or(self.tid)
    }
}

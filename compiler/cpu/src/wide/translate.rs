//! Vectorised body: the body of a nest as a vector program.

use super::Isa;
use super::lower::{IntTest, Lower, Pair};
use super::memory::{LaneAccess, Value};
use super::ops::VOp;
use super::program::{Action, Gap, Home, Ins, Mask, NestProgram, Origin, VReg};
use super::ranges::{self, Ranges};
use super::unroll_and_jam::turn;
use crate::nest::{FIRST_INPUT, LANE, Nest};
use ptoc_ir::loops::{Addr, Base, BinOp, Cast, CmpOp, LTy, MemTy, Op, Reg, SharedInfo, Stride, operands};
use rustc_hash::{FxHashMap, FxHashSet};

/// An i64 register that is an affine function of the lane, with known numbers.
#[derive(Clone, Copy, Debug)]
struct Affine {
    step: i64,
    add: i64,
}

/// What stands for a register.
#[derive(Clone, Copy, Debug)]
enum Rep {
    Value(Value),
    Affine(Affine),
    Nibble(Nibble),
}

/// A function of a half byte (AVX-512).
#[derive(Clone, Copy, Debug)]
struct Nibble {
    /// Registers whose lanes have the half bytes in their low bits.
    index: VReg,
    /// The function of 0 to 15, made once a row.
    table: VReg,
}

/// Translates a nest's body; `None` if an operation has no vector form.
pub(crate) fn translate(nest: &Nest, isa: Isa, multishift: bool) -> Option<NestProgram> {
    let lanes = nest.lanes();
    let info = SharedInfo::new(&lanes);
    let mut t = Translate {
        nest,
        l: Lower {
            p: NestProgram { multishift, ..NestProgram::new(isa) },
            out: Vec::new(),
            origin: Origin::default(),
            tail: false,
            rounded: FxHashMap::default(),
        },
        reps: FxHashMap::default(),
        numbers: FxHashMap::default(),
        known: FxHashMap::default(),
        ranges: Ranges::default(),
        words: FxHashMap::default(),
        seeks: FxHashMap::default(),
        in_row: true,
        shared: FxHashSet::default(),
        tables: FxHashMap::default(),
    };
    t.reps.insert(Reg::from_u32(LANE), Rep::Affine(Affine { step: 1, add: 0 }));
    t.inputs();
    for (n, (stmt, shared)) in (0..).zip(nest.body.iter().zip(&info.shared)) {
        if *shared {
            t.l.origin = Origin(Some(n));
            t.statement(&stmt.op, true)?;
        }
    }
    t.l.p.row = std::mem::take(&mut t.l.out);
    t.in_row = false;
    let outside = t.reps.clone();
    t.shared = outside.keys().copied().filter(|reg| *reg != Reg::from_u32(LANE)).collect();
    let count = nest.count;
    let width = isa.lanes();
    for tail in [false, true] {
        // A known count may need only one of the two.
        if count.is_some_and(|n| if tail { n % width == 0 } else { n < width }) {
            continue;
        }
        t.l.tail = tail;
        t.reps.clone_from(&outside);
        t.numbers.clear();
        for (n, (stmt, _)) in (0..).zip(nest.body.iter().zip(&info.shared)).filter(|(_, (_, shared))| !**shared) {
            t.l.origin = Origin(Some(n));
            t.statement(&stmt.op, false)?;
        }
        let section = std::mem::take(&mut t.l.out);
        *(if tail { &mut t.l.p.tail } else { &mut t.l.p.main }) = section;
    }
    t.l.p.sweep();
    t.l.p.turn = turn(&mut t.l.p, count);
    if let Some(ending) = &nest.ending {
        let turn = t.l.p.turn.take();
        t.l.p.ending = Some(t.l.ending(ending, turn.as_ref()));
        t.l.p.turn = turn;
    }
    Some(t.l.p)
}

struct Translate<'a> {
    nest: &'a Nest,
    l: Lower,
    reps: FxHashMap<Reg, Rep>,
    /// Affine registers as vectors, where they were needed so.
    numbers: FxHashMap<Reg, Pair>,
    /// Bits of the registers that are constants.
    known: FxHashMap<Reg, u64>,
    ranges: Ranges,
    /// Where the i64 registers are read that all lanes share: pointer and displacement.
    words: FxHashMap<Reg, (u32, i32)>,
    /// Pointers of the program's own, by the nest's pointer and such a register.
    seeks: FxHashMap<(u32, Reg), u32>,
    /// Code of the row (the loop's preheader) is being made.
    in_row: bool,
    /// Registers that are the same in all lanes.
    shared: FxHashSet<Reg>,
    /// Functions of half bytes that the row's code has made.
    tables: FxHashMap<Reg, VReg>,
}

impl Translate<'_> {
    fn ty(&self, reg: Reg) -> LTy {
        self.nest.regs[reg.as_u32() as usize]
    }

    /// What is read from outside.
    fn inputs(&mut self) {
        for n in 0..self.nest.inputs as u32 {
            let reg = Reg::from_u32(FIRST_INPUT + n);
            let value = match self.ty(reg) {
                LTy::I64 => Value::Pair([self.l.p.homed(Home::ParamQ(n)); 2]),
                LTy::I32 | LTy::F32 => Value::One(self.l.p.homed(Home::Param(n))),
                LTy::Bool => {
                    // The frame holds 0 or 1.
                    let bit = self.l.p.homed(Home::Param(n));
                    Value::Mask(self.l.nonzero(bit))
                }
            };
            self.reps.insert(reg, Rep::Value(value));
        }
    }

    fn constant(&mut self, ty: LTy, bits: u64) -> Value {
        match ty {
            LTy::I32 | LTy::F32 => Value::One(self.l.int(bits as u32)),
            LTy::I64 => Value::Pair([self.l.long(bits); 2]),
            LTy::Bool => {
                let all = self.l.int(if bits != 0 { u32::MAX } else { 0 });
                Value::Mask(if self.l.is_512() { self.l.nonzero(all) } else { all })
            }
        }
    }

    fn value(&mut self, reg: Reg) -> Option<Value> {
        match *self.reps.get(&reg)? {
            Rep::Value(value) => Some(value),
            Rep::Nibble(Nibble { index, table }) => {
                let value = Value::One(self.l.ins(VOp::PermI, &[index, table]));
                self.reps.insert(reg, Rep::Value(value));
                Some(value)
            }
            Rep::Affine(affine) => {
                if let Some(pair) = self.numbers.get(&reg) {
                    return Some(Value::Pair(*pair));
                }
                let pair = self.affine_pair(affine);
                self.numbers.insert(reg, pair);
                Some(Value::Pair(pair))
            }
        }
    }

    fn one(&mut self, reg: Reg) -> Option<VReg> {
        match self.value(reg)? {
            Value::One(a) | Value::Mask(a) => Some(a),
            Value::Pair(_) => None,
        }
    }

    fn pair(&mut self, reg: Reg) -> Option<Pair> {
        match self.value(reg)? {
            Value::Pair(pair) => Some(pair),
            _ => None,
        }
    }

    fn index(&mut self, wide: bool) -> VReg {
        let dst = self.l.p.reg(super::program::Class::Vector);
        self.l.push(Action::Index { wide }, Some(dst), &[]);
        dst
    }

    fn affine_pair(&mut self, Affine { step, add }: Affine) -> Pair {
        let lanes = self.l.isa().lanes();
        let first = self.index(true);
        let scaled = if step == 1 {
            [first; 2]
        } else {
            let factor = self.l.long(step as u64);
            self.l.binary_long(BinOp::Mul, [first; 2], [factor; 2], None)
        };
        let steps = [0, lanes / 2].map(|from| {
            let numbers = (from..from + lanes / 2).map(|n| n.wrapping_mul(step).wrapping_add(add));
            let words = numbers.flat_map(|n| [n as u32, (n as u64 >> 32) as u32]).collect();
            self.l.p.table(words)
        });
        self.l.binary_long(BinOp::Add, scaled, steps, None)
    }

    /// The low 32 bits.
    fn affine_word(&mut self, Affine { step, add }: Affine) -> VReg {
        let first = self.index(false);
        let scaled = if step == 1 {
            first
        } else {
            let factor = self.l.int(step as u32);
            self.l.ins(VOp::MulI, &[first, factor])
        };
        let steps = (0..self.l.isa().lanes()).map(|n| n.wrapping_mul(step).wrapping_add(add) as u32).collect();
        let steps = self.l.p.table(steps);
        self.l.ins(VOp::AddI, &[scaled, steps])
    }

    fn affine(&self, op: BinOp, a: Reg, b: Reg) -> Option<Affine> {
        let of = |reg: Reg| match self.reps.get(&reg) {
            Some(Rep::Affine(affine)) => Some(*affine),
            _ => self.known.get(&reg).map(|bits| Affine { step: 0, add: *bits as i64 }),
        };
        let (x, y) = (of(a)?, of(b)?);
        Some(match op {
            BinOp::Add => Affine { step: x.step.wrapping_add(y.step), add: x.add.wrapping_add(y.add) },
            BinOp::Sub => Affine { step: x.step.wrapping_sub(y.step), add: x.add.wrapping_sub(y.add) },
            BinOp::Mul if x.step == 0 || y.step == 0 => Affine {
                step: x.step.wrapping_mul(y.add).wrapping_add(y.step.wrapping_mul(x.add)),
                add: x.add.wrapping_mul(y.add),
            },
            _ => return None,
        })
    }

    fn access(&mut self, addr: &Addr) -> Option<LaneAccess> {
        let Base::Tensor(mut pointer) = addr.base else { return None };
        let mut disp = 0i64;
        let mut gap = match addr.stride {
            Stride::Const(bytes) => Gap::Const(bytes),
            Stride::Reg(reg) => match self.known.get(&reg) {
                Some(bits) => Gap::Const(*bits as i64),
                None => {
                    let n = reg.as_u32().checked_sub(FIRST_INPUT).filter(|n| (*n as usize) < self.nest.inputs)?;
                    Gap::Param(n)
                }
            },
        };
        let mut gather = None;
        if let Some(own) = addr.gather.and_then(|reg| self.seek(pointer, reg)) {
            pointer = own;
        } else if let Some(reg) = addr.gather {
            let affine = match self.reps.get(&reg) {
                Some(Rep::Affine(affine)) => Some(*affine),
                _ => self.known.get(&reg).map(|bits| Affine { step: 0, add: *bits as i64 }),
            };
            match (affine, gap) {
                (Some(affine), Gap::Const(bytes)) => {
                    gap = Gap::Const(bytes.wrapping_add(affine.step));
                    disp = affine.add;
                }
                _ => gather = Some(self.pair(reg)?),
            }
        }
        Some(LaneAccess { pointer, disp, gap, gather })
    }

    /// The pointer that a register which all lanes share leads to.
    fn seek(&mut self, base: u32, reg: Reg) -> Option<u32> {
        let &(word, disp) = self.words.get(&reg)?;
        if let Some(own) = self.seeks.get(&(base, reg)) {
            return Some(*own);
        }
        let to = (self.nest.steps.len() + self.seeks.len()) as u32;
        self.seeks.insert((base, reg), to);
        self.l.p.seeks += 1;
        let action = Action::Seek { to, base, word, disp };
        match self.in_row {
            true => self.l.push(action, None, &[]),
            false => self.l.p.row.push(Ins {
                action,
                dst: None,
                args: Vec::new(),
                place: None,
                imm: None,
                mask: Mask::All,
                origin: self.l.origin,
            }),
        }
        Some(to)
    }

    /// A statement; `shared`: its result is the same in all lanes.
    fn statement(&mut self, op: &Op, shared: bool) -> Option<()> {
        if let Some(dst) = ranges::result(op).filter(|dst| matches!(self.ty(*dst), LTy::I32 | LTy::F32)) {
            if let Some(src) = self.ranges.unchanged(op, &self.known)
                && let Some(rep) = self.reps.get(&src).copied()
            {
                self.reps.insert(dst, rep);
                self.ranges.copy(dst, src);
                if let Some(&bits) = self.known.get(&src) {
                    self.known.insert(dst, bits);
                }
                return Some(());
            }
            if self.ty(dst) == LTy::I32 || matches!(op, Op::Cast { .. }) {
                self.ranges.note(op, &self.known);
            }
        }
        if let Some(rep) = self.of_nibble(op) {
            let (dst, rep) = rep?;
            self.reps.insert(dst, rep);
            return Some(());
        }
        let (dst, value) = match *op {
            Op::Const { dst, bits } => {
                self.known.insert(dst, bits);
                (dst, self.constant(self.ty(dst), bits))
            }
            Op::Load { dst, ty, ref addr } => {
                let access = self.access(addr)?;
                if let (true, MemTy::I64, None, Ok(disp)) = (shared, ty, access.gather, i32::try_from(access.disp)) {
                    self.words.insert(dst, (access.pointer, disp));
                }
                let value = if shared { self.l.load_shared(&access, ty) } else { self.l.load_lanes(&access, ty) };
                (dst, value)
            }
            Op::Nibble { dst, ref addr, moves } => {
                let access = self.access(addr)?;
                let value = self.l.nibbles(access.pointer, moves);
                if self.l.is_512() {
                    let table = self.half_bytes();
                    self.reps.insert(dst, Rep::Nibble(Nibble { index: value, table }));
                    return Some(());
                }
                (dst, Value::One(value))
            }
            Op::Store { ty, ref addr, value: reg } => {
                let value = self.value(reg)?;
                if let (MemTy::BF16, Value::One(a), true) = (ty, value, self.ranges.is_bf16(reg)) {
                    self.l.rounded.insert((a, ty), a);
                }
                let access = self.access(addr)?;
                self.l.store_lanes(&access, ty, value);
                return Some(());
            }
            Op::Fetch { ty, ref addr } => {
                let access = self.access(addr)?;
                self.l.fetch_lanes(&access, ty);
                return Some(());
            }
            Op::Join { op, ty, ref addr, value } => {
                let value = self.one(value)?;
                let access = self.access(addr)?;
                self.l.join(op, ty.reg() == LTy::F32, access.pointer, value);
                return Some(());
            }
            Op::Unary { dst, op, a } => {
                let value = match self.ty(dst) {
                    LTy::F32 => {
                        let a = self.one(a)?;
                        Value::One(self.l.unary_float(op, a))
                    }
                    LTy::I32 => {
                        let a = self.one(a)?;
                        Value::One(self.l.unary_int(op, a))
                    }
                    LTy::I64 => {
                        let a = self.pair(a)?;
                        Value::Pair(self.l.unary_long(op, a))
                    }
                    LTy::Bool => {
                        let a = self.one(a)?;
                        Value::Mask(self.l.not(a))
                    }
                };
                (dst, value)
            }
            Op::Binary { dst, op, a, b } => {
                if let Some(affine) = self.affine(op, a, b).filter(|_| self.ty(dst) == LTy::I64) {
                    if affine.step != 0 {
                        self.reps.insert(dst, Rep::Affine(affine));
                        return Some(());
                    }
                    self.known.insert(dst, affine.add as u64);
                    let value = self.constant(LTy::I64, affine.add as u64);
                    (dst, value)
                } else {
                    (dst, self.binary(self.ty(dst), op, a, b)?)
                }
            }
            Op::Fma { dst, a, b, c } => {
                let args = [self.one(a)?, self.one(b)?, self.one(c)?];
                (dst, Value::One(self.l.ins(VOp::Fma, &args)))
            }
            Op::Compare { dst, op, a, b } => (dst, Value::Mask(self.compare(op, a, b)?)),
            Op::Select { dst, cond, a, b } => {
                let cond = self.one(cond)?;
                let value = match (self.value(a)?, self.value(b)?) {
                    (Value::One(a), Value::One(b)) => Value::One(self.l.choose(cond, a, b)),
                    (Value::Pair(a), Value::Pair(b)) => Value::Pair(self.l.choose_long(cond, a, b)),
                    (Value::Mask(a), Value::Mask(b)) => {
                        let yes = self.l.bitwise(VOp::And, cond, a);
                        let other = self.l.not(cond);
                        let no = self.l.bitwise(VOp::And, other, b);
                        Value::Mask(self.l.bitwise(VOp::Or, yes, no))
                    }
                    _ => return None,
                };
                (dst, value)
            }
            Op::Cast { dst, op, a } => (dst, self.cast(op, a)?),
            _ => return None,
        };
        self.reps.insert(dst, Rep::Value(value));
        Some(())
    }

    /// The table of half bytes as they are.
    fn half_bytes(&mut self) -> VReg {
        self.l.p.table((0..16).collect())
    }

    /// The result of an operation on a half byte and what all lanes share: the row's code computes it for each half
    /// byte that there can be. `Some(None)` if it has no vector form, `None` if it is no such operation.
    fn of_nibble(&mut self, op: &Op) -> Option<Option<(Reg, Rep)>> {
        let (inputs, dst) = match op {
            Op::Unary { .. } | Op::Binary { .. } | Op::Cast { .. } => operands(op),
            _ => return None,
        };
        let dst = dst.filter(|dst| matches!(self.ty(*dst), LTy::I32 | LTy::F32))?;
        let of = |t: &Self, reg: Reg| if let Some(Rep::Nibble(n)) = t.reps.get(&reg) { Some(*n) } else { None };
        let inputs: Vec<Reg> = inputs.into_iter().flatten().collect();
        let index = inputs.iter().find_map(|reg| of(self, *reg))?.index;
        let even = |reg: &Reg| match of(self, *reg) {
            Some(nibble) => nibble.index == index,
            None => self.shared.contains(reg),
        };
        if !inputs.iter().all(even) {
            return None;
        }
        let known = self.tables.get(&dst).copied();
        let plain = inputs.len() == 1 && of(self, inputs[0]).map(|n| n.table) == Some(self.half_bytes());
        let table = match known {
            Some(table) => table,
            None if plain && matches!(op, Op::Cast { op: Cast::UToF | Cast::IToF, .. }) => {
                self.l.p.table((0..16).map(|n| (n as f32).to_bits()).collect())
            }
            None => {
                let before = self.reps.clone();
                for reg in &inputs {
                    if let Some(nibble) = of(self, *reg) {
                        self.reps.insert(*reg, Rep::Value(Value::One(nibble.table)));
                    }
                }
                let tail = std::mem::replace(&mut self.l.tail, false);
                std::mem::swap(&mut self.l.out, &mut self.l.p.row);
                let made = self.statement(op, true).and_then(|()| self.one(dst));
                std::mem::swap(&mut self.l.out, &mut self.l.p.row);
                self.l.tail = tail;
                self.reps = before;
                let Some(made) = made else { return Some(None) };
                self.tables.insert(dst, made);
                made
            }
        };
        Some(Some((dst, Rep::Nibble(Nibble { index, table }))))
    }

    fn binary(&mut self, ty: LTy, op: BinOp, a: Reg, b: Reg) -> Option<Value> {
        // `known` speaks of the second operand; these commute.
        let commutes = matches!(
            op,
            BinOp::Max
                | BinOp::Min
                | BinOp::Add
                | BinOp::Mul
                | BinOp::MaxU
                | BinOp::MinU
                | BinOp::And
                | BinOp::Or
                | BinOp::Xor
        );
        let swap = commutes && !self.known.contains_key(&b) && self.known.contains_key(&a);
        // Which NaN comes out of two is not fixed, so floats commute too.
        let (a, b) = if swap { (b, a) } else { (a, b) };
        let known = self.known.get(&b).copied();
        Some(match ty {
            LTy::F32 => {
                let (x, y) = (self.one(a)?, self.one(b)?);
                Value::One(self.l.binary_float(op, x, y, known))
            }
            LTy::I32 => {
                let (x, y) = (self.one(a)?, self.one(b)?);
                Value::One(self.l.binary_int(op, x, y, known))
            }
            LTy::I64 => {
                let (x, y) = (self.pair(a)?, self.pair(b)?);
                Value::Pair(self.l.binary_long(op, x, y, known))
            }
            LTy::Bool => {
                let (x, y) = (self.one(a)?, self.one(b)?);
                let op = match op {
                    BinOp::And => VOp::And,
                    BinOp::Or => VOp::Or,
                    BinOp::Xor => VOp::Xor,
                    _ => return None,
                };
                Value::Mask(self.l.bitwise(op, x, y))
            }
        })
    }

    fn compare(&mut self, op: CmpOp, a: Reg, b: Reg) -> Option<VReg> {
        let (test, signed) = match op {
            CmpOp::Eq => (IntTest::Eq, true),
            CmpOp::Ne => (IntTest::Ne, true),
            CmpOp::Lt => (IntTest::Lt, true),
            CmpOp::Le => (IntTest::Le, true),
            CmpOp::Gt => (IntTest::Gt, true),
            CmpOp::Ge => (IntTest::Ge, true),
            CmpOp::LtU => (IntTest::Lt, false),
            CmpOp::LeU => (IntTest::Le, false),
            CmpOp::GtU => (IntTest::Gt, false),
            CmpOp::GeU => (IntTest::Ge, false),
        };
        Some(match self.ty(a) {
            LTy::F32 => {
                let (x, y) = (self.one(a)?, self.one(b)?);
                self.l.compare_float(op, x, y)
            }
            LTy::I32 => {
                let (x, y) = (self.one(a)?, self.one(b)?);
                self.l.test_int(test, signed, x, y)
            }
            LTy::I64 => {
                let (x, y) = (self.pair(a)?, self.pair(b)?);
                self.l.test_long(test, signed, x, y)
            }
            LTy::Bool => {
                let (x, y) = (self.one(a)?, self.one(b)?);
                if !matches!(op, CmpOp::Eq | CmpOp::Ne) {
                    return None;
                }
                self.l.compare_bool(op, x, y)
            }
        })
    }

    fn cast(&mut self, op: Cast, a: Reg) -> Option<Value> {
        if let (Cast::Wrap, Some(Rep::Affine(affine))) = (op, self.reps.get(&a)) {
            return Some(Value::One(self.affine_word(*affine)));
        }
        let from = self.ty(a);
        Some(match (op, self.value(a)?) {
            (Cast::Sext, Value::One(a)) => Value::Pair(self.l.extended(true, a)),
            (Cast::Zext, Value::One(a)) => Value::Pair(self.l.extended(false, a)),
            (Cast::Wrap, Value::Pair(a)) => Value::One(self.l.wrapped(a)),
            (Cast::IToF, Value::Pair(a)) => Value::One(self.l.long_to_float(true, a)),
            (Cast::UToF, Value::Pair(a)) => Value::One(self.l.long_to_float(false, a)),
            (Cast::FToI64, Value::One(a)) => Value::Pair(self.l.float_to_long(true, a)),
            (Cast::FToU64, Value::One(a)) => Value::Pair(self.l.float_to_long(false, a)),
            (Cast::BToI, Value::Mask(a)) => Value::One(self.l.one_or_zero(a)),
            (Cast::IToB, Value::One(a)) if from == LTy::I32 => Value::Mask(self.l.nonzero(a)),
            (_, Value::One(a)) => Value::One(self.l.cast(op, a)),
            _ => return None,
        })
    }
}

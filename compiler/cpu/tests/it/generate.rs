//! Random valid loop IR, from a stream of choices that proptest can shrink.
//!
//! Tensors: `t0` is read, `t1` and the spaces are written (each store to bytes of its own), `t2` is read and written
//! in place. NaN is made canonical before its bits can be seen.

use crate::make::{Build, NIBBLES, space, strided, tensor};
use crate::scalars::canonical;
use ptoc_ir::loops::{
    Addr, Atomic, BinOp, Cast, CmpOp, For, If, LTy, Lanes, MemTy, Module, Op, Reg, Scope, Stride, UnOp, VarData, VarId,
    While,
};
use ptoc_isa::AtomicOp;

/// Bytes of t0; the last `MARGIN` are never where an access starts.
pub const INPUT: i64 = 4096;
/// Bytes of t1.
pub const OUTPUT: i64 = 1 << 16;
/// Bytes of t2.
pub const PLACE: i64 = 4096;

pub struct Generator<'a> {
    choices: &'a [u8],
    at: usize,
    b: Build,
    /// Registers that may be read, innermost last.
    visible: Vec<Reg>,
    vars: Vec<(VarId, LTy)>,
    /// Next free bytes of t1 and t2.
    out: i64,
    place: i64,
    /// Statements that may still be made.
    budget: usize,
    depth: usize,
}

const TYPES: [LTy; 4] = [LTy::F32, LTy::I32, LTy::I64, LTy::Bool];

impl<'a> Generator<'a> {
    pub fn module(choices: &'a [u8]) -> Module {
        let mut g = Generator {
            choices,
            at: 0,
            b: Build::new(2),
            visible: Vec::new(),
            vars: Vec::new(),
            out: 0,
            place: 0,
            budget: 60,
            depth: 0,
        };
        g.visible = g.b.params.clone();
        for ty in [LTy::I64, LTy::F32, LTy::I32] {
            let var = g.b.vars.push(VarData { ty });
            g.vars.push((var, ty));
        }
        g.clear_spaces();
        while g.at < g.choices.len() && g.budget > 0 {
            g.statement();
        }
        for (var, ty) in g.vars.clone() {
            let value = g.b.def(ty, |dst| Op::Get { dst, var });
            g.keep(value);
        }
        g.copy_spaces();
        g.b.module(3)
    }

    fn pick(&mut self, limit: usize) -> usize {
        let byte = self.choices.get(self.at).copied().unwrap_or(0);
        self.at += 1;
        usize::from(byte) % limit
    }

    fn chance(&mut self, percent: usize) -> bool {
        // Zero, which shrinking tends to, means no.
        self.pick(100) >= 100 - percent
    }

    fn number(&mut self) -> u64 {
        match self.pick(8) {
            0..=2 => self.pick(256) as u64,
            3 => (self.pick(256) as u64).wrapping_neg(),
            4 => u64::from(self.pick(2) as u32) << 31,
            5 => 1 << (self.pick(64)),
            6 => (0..8).fold(0, |n, _| n << 8 | self.pick(256) as u64),
            _ => i64::MAX as u64 + self.pick(3) as u64,
        }
    }

    fn literal(&mut self, ty: LTy) -> Reg {
        let bits = match ty {
            LTy::F32 => {
                let special = [0.0f32, -0.0, 1.0, -1.5, f32::INFINITY, f32::NAN, 65520.0, 1e-40, 3e9];
                match self.pick(12) {
                    n @ 0..9 => u64::from(special[n].to_bits()),
                    _ => u64::from((self.number() as i64 as f32 / 16.0).to_bits()),
                }
            }
            LTy::I32 => u64::from(self.number() as u32),
            LTy::I64 => self.number(),
            LTy::Bool => self.pick(2) as u64,
        };
        self.b.constant(ty, bits)
    }

    /// A register of that type; a constant if there is none.
    fn any(&mut self, ty: LTy) -> Reg {
        let all: Vec<Reg> = self.visible.iter().copied().filter(|r| self.b.regs[*r].ty == ty).collect();
        if all.is_empty() || self.chance(15) {
            return self.literal(ty);
        }
        // Late ones are likelier, so that values are used.
        let back = self.pick(all.len().min(6));
        all[all.len() - 1 - back]
    }

    fn statement(&mut self) {
        self.budget = self.budget.saturating_sub(1);
        match self.pick(16) {
            0..=3 => {
                let value = self.arithmetic();
                self.visible.push(value);
            }
            4..=8 => self.lanes(),
            9 => {
                let value = self.load_one();
                self.visible.push(value);
            }
            10 => {
                let ty = TYPES[self.pick(4)];
                let value = self.any(ty);
                self.keep(value);
            }
            11 => {
                let which = self.pick(self.vars.len());
                let (var, ty) = self.vars[which];
                if self.chance(50) {
                    let value = self.b.def(ty, |dst| Op::Get { dst, var });
                    self.visible.push(value);
                } else {
                    let value = self.any(ty);
                    self.b.push(Op::Set { var, value });
                }
            }
            12 if self.depth < 3 => self.control(),
            13 => self.atomic(),
            14 if self.chance(10) => {
                let cond = self.any(LTy::Bool);
                let args = (0..self.pick(5)).map(|_| self.any(LTy::I64)).collect();
                let check = self.pick(8) as u32;
                self.b.push(Op::Check { cond, check, args });
            }
            _ => {
                let value = self.arithmetic();
                self.visible.push(value);
            }
        }
    }

    /// A number of magnitude 1 to 2 with any sign and mantissa.
    fn near_one(&mut self) -> Reg {
        let x = self.any(LTy::F32);
        let bits = self.b.def(LTy::I32, |dst| Op::Cast { dst, op: Cast::Bits, a: x });
        let (keep, one) = (self.b.constant(LTy::I32, 0x807f_ffff), self.b.constant(LTy::I32, 0x3f80_0000));
        let bits = self.b.binary(BinOp::And, bits, keep);
        let bits = self.b.binary(BinOp::Or, bits, one);
        self.b.def(LTy::F32, |dst| Op::Cast { dst, op: Cast::Bits, a: bits })
    }

    /// An integral number from -128 to 127.
    fn power(&mut self) -> Reg {
        let x = self.any(LTy::I32);
        let by = self.b.constant(LTy::I32, 24);
        let n = self.b.binary(BinOp::Shr, x, by);
        self.b.def(LTy::F32, |dst| Op::Cast { dst, op: Cast::IToF, a: n })
    }

    /// One statement that computes.
    fn arithmetic(&mut self) -> Reg {
        match self.pick(12) {
            0 | 1 => {
                let ty = TYPES[self.pick(4)];
                let ops: Vec<UnOp> = UnOp::ALL
                    .iter()
                    .copied()
                    .filter(|op| match op {
                        UnOp::Neg | UnOp::Abs => ty != LTy::Bool,
                        UnOp::Not => ty != LTy::F32,
                        _ => ty == LTy::F32,
                    })
                    .collect();
                let op = ops[self.pick(ops.len())];
                let a = self.any(ty);
                self.b.def(ty, |dst| Op::Unary { dst, op, a })
            }
            2..=6 => {
                let ty = TYPES[self.pick(4)];
                let floats = [BinOp::Add, BinOp::Sub, BinOp::Mul, BinOp::Div, BinOp::Max, BinOp::Min, BinOp::Scale];
                let bools = [BinOp::And, BinOp::Or, BinOp::Xor];
                let op = match ty {
                    LTy::F32 => floats[self.pick(7)],
                    LTy::Bool => bools[self.pick(3)],
                    _ => BinOp::ALL[self.pick(BinOp::ALL.len())],
                };
                let (a, b) = match op {
                    BinOp::Scale if ty == LTy::F32 => (self.near_one(), self.power()),
                    // An operation of floats only.
                    BinOp::Scale => return self.any(ty),
                    _ => (self.any(ty), self.any(ty)),
                };
                self.b.def(ty, |dst| Op::Binary { dst, op, a, b })
            }
            7 => {
                let (a, b, c) = (self.any(LTy::F32), self.any(LTy::F32), self.any(LTy::F32));
                self.b.def(LTy::F32, |dst| Op::Fma { dst, a, b, c })
            }
            8 => {
                let ty = TYPES[self.pick(4)];
                let ops = match ty {
                    LTy::Bool => 2,
                    LTy::F32 => 6,
                    _ => 10,
                };
                let op = CmpOp::ALL[self.pick(ops)];
                let (a, b) = (self.any(ty), self.any(ty));
                self.b.def(LTy::Bool, |dst| Op::Compare { dst, op, a, b })
            }
            9 => {
                let ty = TYPES[self.pick(4)];
                let (cond, a, b) = (self.any(LTy::Bool), self.any(ty), self.any(ty));
                self.b.def(ty, |dst| Op::Select { dst, cond, a, b })
            }
            _ => {
                let (op, from, to) = [
                    (Cast::Sext, LTy::I32, LTy::I64),
                    (Cast::Zext, LTy::I32, LTy::I64),
                    (Cast::Wrap, LTy::I64, LTy::I32),
                    (Cast::IToF, LTy::I32, LTy::F32),
                    (Cast::IToF, LTy::I64, LTy::F32),
                    (Cast::UToF, LTy::I32, LTy::F32),
                    (Cast::UToF, LTy::I64, LTy::F32),
                    (Cast::FToI32, LTy::F32, LTy::I32),
                    (Cast::FToU32, LTy::F32, LTy::I32),
                    (Cast::FToI64, LTy::F32, LTy::I64),
                    (Cast::FToU64, LTy::F32, LTy::I64),
                    (Cast::Bits, LTy::F32, LTy::I32),
                    (Cast::Bits, LTy::I32, LTy::F32),
                    (Cast::BToI, LTy::Bool, LTy::I32),
                    (Cast::IToB, LTy::I32, LTy::Bool),
                ][self.pick(15)];
                let mut a = self.any(from);
                if op == Cast::Bits {
                    a = canonical(&mut self.b, a);
                }
                self.b.def(to, |dst| Op::Cast { dst, op, a })
            }
        }
    }

    fn memory_type(&mut self) -> MemTy {
        MemTy::ALL[self.pick(10)]
    }

    /// A constant offset, or one that the compiler does not know (the parameters are 0).
    fn offset(&mut self, value: i64) -> Reg {
        let known = self.b.i64(value);
        if self.chance(60) {
            let zero = self.b.params[1];
            return self.b.binary(BinOp::Add, zero, known);
        }
        known
    }

    fn load_one(&mut self) -> Reg {
        let ty = self.memory_type();
        let at = self.pick(256) as i64 * 8;
        let offset = self.offset(at);
        let value = self.b.load(ty, tensor(0, offset));
        canonical(&mut self.b, value)
    }

    /// Stores a value where nothing else is.
    fn keep(&mut self, value: Reg) {
        let value = canonical(&mut self.b, value);
        let ty = self.store_type(value);
        let at = self.room(i64::from(ty.size()));
        let offset = self.offset(at);
        self.b.store(ty, tensor(1, offset), value);
    }

    fn room(&mut self, bytes: i64) -> i64 {
        // Round again when full: by then no store of the same body is near.
        if self.out + bytes > OUTPUT - 4096 {
            self.out = 0;
        }
        self.out += bytes;
        self.out - bytes
    }

    fn store_type(&mut self, value: Reg) -> MemTy {
        let reg = self.b.regs[value].ty;
        let all: Vec<MemTy> = MemTy::ALL.into_iter().filter(|t| t.reg() == reg).collect();
        all[self.pick(all.len())]
    }

    fn lanes(&mut self) {
        let most = 72;
        let n = self.pick(most) as i64 - 1;
        let count = self.offset(n);
        let lane = self.b.reg(LTy::I64);
        let outer = self.visible.len();
        // Strides, offsets and places are made outside.
        let zero = self.offset(0);
        let stride_reg = self.offset(4);
        self.b.open.push(vec![]);
        self.visible.push(lane);
        for _ in 0..1 + self.pick(3) {
            let value = self.load_lane(zero, stride_reg);
            self.visible.push(value);
        }
        for _ in 0..self.pick(14) {
            let value = if self.chance(15) { self.load_lane(zero, stride_reg) } else { self.arithmetic() };
            self.visible.push(value);
        }
        // The offsets of stores are constants of the body: the same in all lanes.
        for _ in 0..1 + self.pick(3) {
            let own: Vec<Reg> = self.visible[outer..].to_vec();
            let value = own[own.len() - 1 - self.pick(own.len().min(5))];
            let value = canonical(&mut self.b, value);
            let ty = self.store_type(value);
            let size = i64::from(ty.size());
            match self.pick(7) {
                6 if self.b.regs[value].ty == LTy::F32 || self.b.regs[value].ty == LTy::I32 => {
                    // Partials of a reduction; of floats sums of numbers, whose bits are no matter of taste.
                    let at = self.room(256);
                    let offset = self.b.i64(at);
                    let (ty, op, value) = if self.b.regs[value].ty == LTy::F32 {
                        let (size, most) = (
                            self.b.def(LTy::F32, |dst| Op::Unary { dst, op: UnOp::Abs, a: value }),
                            self.b.constant(LTy::F32, 0x7100_0000),
                        );
                        let small = self.b.def(LTy::Bool, |dst| Op::Compare { dst, op: CmpOp::Lt, a: size, b: most });
                        let one = self.b.constant(LTy::F32, 0x3f80_0000);
                        let number = self.b.def(LTy::F32, |dst| Op::Select { dst, cond: small, a: value, b: one });
                        (MemTy::F32, BinOp::Add, number)
                    } else {
                        let all = [BinOp::Add, BinOp::Max, BinOp::Min, BinOp::MaxU, BinOp::MinU];
                        (MemTy::I32, all[self.pick(all.len())], value)
                    };
                    self.b.push(Op::Join { op, ty, addr: tensor(1, offset), value });
                }
                0 => {
                    // Scattered: lane * size as a gather.
                    let at = self.room(most as i64 * size);
                    let offset = self.b.i64(at);
                    let factor = self.b.i64(size);
                    let gather = self.b.binary(BinOp::Mul, lane, factor);
                    self.b.store(ty, Addr { gather: Some(gather), ..tensor(1, offset) }, value);
                }
                1 => {
                    let at = self.room(most as i64 * size * 2);
                    let offset = self.b.i64(at);
                    self.b.store(ty, strided(tensor(1, offset), size * 2), value);
                }
                2 => {
                    let at = self.room(most as i64 * 4);
                    let offset = self.b.i64(at);
                    let ty = if size > 4 { MemTy::Bool } else { ty };
                    if ty.reg() == self.b.regs[value].ty {
                        self.b.store(ty, Addr { stride: Stride::Reg(stride_reg), ..tensor(1, offset) }, value);
                    }
                }
                3 if self.place + most as i64 * 8 <= PLACE - 64 => {
                    // In place: load, combine, store the same element.
                    let offset = self.b.i64(self.place);
                    self.place += most as i64 * 8;
                    let addr = strided(tensor(2, offset), size);
                    let old = self.b.load(ty, addr);
                    let old = canonical(&mut self.b, old);
                    let cond = self.any(LTy::Bool);
                    let reg = ty.reg();
                    let new = self.b.def(reg, |dst| Op::Select { dst, cond, a: old, b: value });
                    self.b.store(ty, addr, new);
                }
                4 => {
                    // A space: the lanes' bytes are read back at the end.
                    let spot = self.pick(8) as i64 * 128;
                    let offset = self.b.i64(spot);
                    let which = self.pick(2) as u32;
                    if most as i64 * size <= 1024 {
                        self.b.store(ty, strided(space(which, offset), size), value);
                    }
                }
                _ => {
                    let at = self.room(most as i64 * size);
                    let offset = self.b.i64(at);
                    self.b.store(ty, strided(tensor(1, offset), size), value);
                }
            }
        }
        let body = self.b.open.pop().unwrap();
        self.visible.truncate(outer);
        // Two stores of one body may not meet in a space: keep the first.
        let mut spaces = Vec::new();
        let body = body
            .into_iter()
            .filter(|s| match &s.op {
                Op::Store { addr: Addr { base: ptoc_ir::loops::Base::Space(id), .. }, .. } => {
                    let first = !spaces.contains(id);
                    spaces.push(*id);
                    first
                }
                _ => true,
            })
            .collect();
        self.b.push(Op::Lanes(Box::new(Lanes { lane, count, body })));
    }

    fn load_lane(&mut self, zero: Reg, stride_reg: Reg) -> Reg {
        if NIBBLES && self.chance(10) {
            let moves = [[1, 2, 4], [4, 1, 2], [2, 0, 5]][self.pick(3)];
            let at = self.pick(64) as i64 * 4;
            let offset = self.b.i64(at);
            return self.b.def(LTy::I32, |dst| Op::Nibble { dst, addr: tensor(0, offset), moves });
        }
        let ty = self.memory_type();
        let size = i64::from(ty.size());
        // 72 lanes at 24 bytes and a gather below 256 * 8 stay inside.
        let mut addr = tensor(0, zero);
        match self.pick(8) {
            0 => {}
            1 => addr = strided(addr, size * [2, 3][self.pick(2)]),
            2 => addr = Addr { stride: Stride::Reg(stride_reg), ..addr },
            3 => {
                // Backwards from byte 1024.
                let offset = self.b.i64(1024);
                addr = strided(tensor(0, offset), -size);
            }
            4 => {
                let index = self.any(LTy::I32);
                let mask = self.b.constant(LTy::I32, 255);
                let index = self.b.binary(BinOp::And, index, mask);
                let index = self.b.cast(LTy::I64, Cast::Zext, index);
                let eight = self.b.i64(8);
                addr.gather = Some(self.b.binary(BinOp::Mul, index, eight));
                if self.chance(50) {
                    addr = strided(addr, size);
                }
            }
            _ => {
                let value = self.pick(64) as i64 * 4;
                let offset = self.b.i64(value);
                addr = strided(tensor(0, offset), size);
            }
        }
        let value = self.b.load(ty, addr);
        canonical(&mut self.b, value)
    }

    fn region(&mut self, statements: usize) -> Vec<ptoc_ir::loops::Stmt> {
        let outer = self.visible.len();
        self.depth += 1;
        self.b.open.push(vec![]);
        for _ in 0..statements {
            self.statement();
        }
        self.depth -= 1;
        self.visible.truncate(outer);
        self.b.open.pop().unwrap()
    }

    fn control(&mut self) {
        let length = 1 + self.pick(3);
        match self.pick(4) {
            0 => {
                let cond = self.any(LTy::Bool);
                let then = self.region(length);
                let els = self.region(length - 1);
                self.b.push(Op::If(Box::new(If { cond, then, els })));
            }
            1 => {
                let label = self.b.labels.push(());
                let value = self.pick(4) as i64 - 2;
                let lo = self.b.i64(value);
                let value = self.pick(6) as i64;
                let hi = self.b.i64(value);
                let index = self.b.reg(LTy::I64);
                self.visible.push(index);
                let mut body = self.region(length);
                self.visible.pop();
                if self.chance(50) {
                    let cond = self.any(LTy::Bool);
                    let jump = if self.chance(50) { Op::Break(label) } else { Op::Continue(label) };
                    let jump = ptoc_ir::loops::Stmt { op: jump, span: Default::default() };
                    let op = Op::If(Box::new(If { cond, then: vec![jump], els: vec![] }));
                    body.insert(0, ptoc_ir::loops::Stmt { op, span: Default::default() });
                }
                let step = 1 + self.pick(3) as i64;
                self.b.push(Op::For(Box::new(For { label, index, lo, hi, step, body })));
            }
            2 => {
                // A counter of its own, so that it ends.
                let label = self.b.labels.push(());
                let counter = self.b.vars.push(VarData { ty: LTy::I64 });
                let value = self.pick(4) as i64;
                let start = self.b.i64(value);
                self.b.push(Op::Set { var: counter, value: start });
                self.b.open.push(vec![]);
                let now = self.b.def(LTy::I64, |dst| Op::Get { dst, var: counter });
                let one = self.b.i64(1);
                let next = self.b.binary(BinOp::Sub, now, one);
                self.b.push(Op::Set { var: counter, value: next });
                let zero = self.b.i64(0);
                let cond = self.b.def(LTy::Bool, |dst| Op::Compare { dst, op: CmpOp::Gt, a: now, b: zero });
                let head = self.b.open.pop().unwrap();
                let body = self.region(length);
                self.b.push(Op::While(Box::new(While { label, head, cond, body })));
            }
            _ => {
                let label = self.b.labels.push(());
                let cond = self.any(LTy::Bool);
                let leave = ptoc_ir::loops::Stmt { op: Op::Leave(label), span: Default::default() };
                let mut body = self.region(length);
                let op = Op::If(Box::new(If { cond, then: vec![leave], els: vec![] }));
                let at = self.pick(body.len() + 1);
                body.insert(at, ptoc_ir::loops::Stmt { op, span: Default::default() });
                self.b.push(Op::Scope(Box::new(Scope { label, body })));
            }
        }
    }

    fn atomic(&mut self) {
        let (ty, op) = match self.pick(9) {
            n @ 0..8 => {
                let types = [MemTy::I8, MemTy::U8, MemTy::I16, MemTy::U16, MemTy::I32, MemTy::I64];
                (types[self.pick(6)], AtomicOp::ALL[n])
            }
            _ => (MemTy::F32, AtomicOp::Add),
        };
        let reg = ty.reg();
        let at = PLACE - 64 + self.pick(4) as i64 * 8;
        // The float cell is another one, whose bits are never those of a NaN.
        let at = if ty == MemTy::F32 { PLACE - 8 } else { at };
        let offset = self.offset(at);
        let value = if ty == MemTy::F32 { self.b.constant(LTy::F32, 0x3fa0_0000) } else { self.any(reg) };
        let expected = (op == AtomicOp::Cas).then(|| self.any(reg));
        let unsigned = matches!(ty, MemTy::U8 | MemTy::U16) || self.chance(50) && !matches!(ty, MemTy::I8 | MemTy::I16);
        let dst = self.b.reg(reg);
        let addr = tensor(2, offset);
        self.b.push(Op::Atomic(Box::new(Atomic { dst, op, unsigned, ty, addr, expected, value })));
        self.visible.push(dst);
    }

    fn fill(&mut self, copy: bool) {
        for which in 0..2 {
            let zero = self.b.i64(0);
            let out = self.b.i64(OUTPUT - 4096 + i64::from(which) * 2048);
            let nothing = self.b.constant(LTy::I32, 0);
            let count = self.b.i64(512);
            let lane = self.b.reg(LTy::I64);
            self.b.open.push(vec![]);
            let here = strided(space(which, zero), 4);
            if copy {
                let value = self.b.load(MemTy::I32, here);
                self.b.store(MemTy::I32, strided(tensor(1, out), 4), value);
            } else {
                self.b.store(MemTy::I32, here, nothing);
            }
            let body = self.b.open.pop().unwrap();
            self.b.push(Op::Lanes(Box::new(Lanes { lane, count, body })));
        }
    }

    fn clear_spaces(&mut self) {
        self.fill(false);
    }

    fn copy_spaces(&mut self) {
        self.fill(true);
    }
}

/// Bytes that hold many interesting floats and integers.
pub fn input(len: i64, seed: u32) -> Vec<u8> {
    let mut state = seed | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        state
    };
    let words =
        [0x3f80_0000, 0x8000_0000, 0x7f80_0000, 0x0000_3c00, 0x0000_7bff, 0xc2c8_0000, 0x4b00_0001, 0x0001_0001];
    let mut out = Vec::new();
    while out.len() < len as usize {
        let word: u32 = match next() % 4 {
            0 => next(),
            1 => words[next() as usize % words.len()],
            2 => ((next() % 2001) as f32 / 8.0 - 125.0).to_bits(),
            _ => next() % 256,
        };
        out.extend(word.to_le_bytes());
    }
    out
}

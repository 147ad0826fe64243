//! `Lanes`: four 32-bit lanes at a time, then the rest one by one.
//!
//! Every statement is emitted in program order for four neighbouring lanes. That is the meaning of the loop, since
//! lanes are independent and an iteration only stores what it alone loads. What all lanes share is computed once,
//! before the loop. Values of 64 bits that differ between lanes are either an affine function of the lane (addresses,
//! lane numbers) or four scalars.

use crate::analyse::{Body, Class};
use crate::func::Emit;
use crate::memory::MachineAddress;
use crate::shape::{Shape, plain};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{F32X4, F64, F64X2, I8X16, I32, I32X4, I64};
use cranelift_codegen::ir::{BlockArg, ConstantData, InstBuilder, Value};
use ptoc_ir::loops::{Addr, BinOp, Cast, LTy, Lanes, MemTy, Op, PARTIALS, Reg, Stride, nibble, operands};

/// A register that differs between the four lanes at hand.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) enum Rep {
    /// It does not: see the scalar registers.
    #[default]
    Same,
    /// A vector (i32x4, f32x4; bool as a mask).
    Four(Value),
    /// `base + n * step` in lane n (i64).
    Affine { base: Value, step: i64 },
    /// Four scalars.
    Each([Value; 4]),
}

/// Lanes at a time.
pub(crate) const WIDTH: i64 = 4;

impl Emit<'_, '_> {
    pub(crate) fn lanes(&mut self, lanes: &Lanes) {
        let body = Body::new(self.func, lanes);
        let count = self.value(lanes.count);
        let known = self.known[lanes.count].map(|bits| bits as i64);
        if known.is_some_and(|n| n <= 0) {
            return;
        }
        let (pre, exit) = (self.b.create_block(), self.b.create_block());
        let any = self.b.ins().icmp_imm_s(IntCC::SignedGreaterThan, count, 0);
        self.b.ins().brif(any, pre, &[], exit, &[]);
        self.b.switch_to_block(pre);
        let origins = self.before(&body);
        // (lanes a step, times the body is repeated), widest first; the last takes single lanes.
        let mut steps = Vec::new();
        if self.vectors && body.worth_vectors() {
            let repeat = body.repeat();
            steps.extend((repeat > 1).then_some((WIDTH, repeat)));
            steps.push((WIDTH, 1));
        }
        steps.push((1, 1));
        let mut start = self.b.ins().iconst(I64, 0);
        let mut known_start = Some(0);
        for (width, repeat) in steps {
            let stride = width * repeat;
            if let (Some(n), Some(s)) = (known, known_start) {
                let end = s + (n - s) / stride * stride;
                known_start = Some(end);
                if s == end {
                    continue;
                }
                if end - s == stride {
                    self.step(&body, &origins, width, repeat, start);
                    start = self.b.ins().iconst(I64, end);
                    continue;
                }
                let bound = self.b.ins().iconst(I64, end);
                start = self.step_loop(&body, &origins, (width, repeat), start, bound, true);
            } else {
                known_start = None;
                // Not `count & -stride`: Cranelift would compute that anew in every turn of the loop.
                let bound = if stride == 1 {
                    count
                } else {
                    let rest = self.b.ins().band_imm_s(count, stride - 1);
                    self.b.ins().isub(count, rest)
                };
                start = self.step_loop(&body, &origins, (width, repeat), start, bound, false);
            }
        }
        self.b.ins().jump(exit, &[]);
        self.b.switch_to_block(exit);
    }

    /// The body for lanes `start..bound`; gives the next lane. `entered`: there is at least one step.
    fn step_loop(
        &mut self,
        body: &Body<'_>,
        origins: &[Option<MachineAddress>],
        (width, repeat): (i64, i64),
        start: Value,
        bound: Value,
        entered: bool,
    ) -> Value {
        let (head, after) = (self.b.create_block(), self.b.create_block());
        let index = self.b.append_block_param(head, I64);
        let next_start = self.b.append_block_param(after, I64);
        let from = [BlockArg::Value(start)];
        if entered {
            self.b.ins().jump(head, &from);
        } else {
            let any = self.b.ins().icmp(IntCC::SignedLessThan, start, bound);
            self.b.ins().brif(any, head, &from, after, &from);
        }
        self.b.switch_to_block(head);
        self.step(body, origins, width, repeat, index);
        let following = self.b.ins().iadd_imm_s(index, width * repeat);
        let more = self.b.ins().icmp(IntCC::SignedLessThan, following, bound);
        let following = [BlockArg::Value(following)];
        self.b.ins().brif(more, head, &following, after, &following);
        self.b.switch_to_block(after);
        next_start
    }

    /// `repeat` times the body, `width` lanes each.
    fn step(&mut self, body: &Body<'_>, origins: &[Option<MachineAddress>], width: i64, repeat: i64, index: Value) {
        let around = self.here();
        for n in 0..repeat {
            self.ahead = n * width;
            if width == 1 {
                self.one_lane(body, origins, index);
            } else {
                self.four_lanes(body, origins, index);
            }
            self.back_to(around);
        }
        self.ahead = 0;
    }

    /// The number of the first lane at hand: `index` and what the repetition adds.
    fn lane_number(&mut self, index: Value) -> Value {
        if self.ahead == 0 { index } else { self.b.ins().iadd_imm_s(index, self.ahead) }
    }

    /// What all lanes share: values, and the common part of each address.
    fn before(&mut self, body: &Body<'_>) -> Vec<Option<MachineAddress>> {
        let mut origins = Vec::with_capacity(body.stmts.len());
        let around = self.here();
        for (n, (stmt, shared)) in body.stmts.iter().zip(&body.info.shared).enumerate() {
            self.at(stmt, n, around);
            let mut origin = None;
            match &stmt.op {
                Op::Load { dst, ty, addr } if *shared => {
                    let at = self.address(addr);
                    let value = self.load_one(*ty, at);
                    self.define(*dst, value);
                }
                Op::Load { addr, .. } | Op::Store { addr, .. } | Op::Join { addr, .. } | Op::Nibble { addr, .. } => {
                    let mut at = self.origin(addr.base, addr.offset);
                    if let Some(gather) = addr.gather.filter(|g| body.is_shared(*g)) {
                        let gather = self.value(gather);
                        at = self.moved(at, gather);
                    }
                    origin = Some(at);
                }
                op if *shared => self.scalar(op),
                _ => {}
            }
            origins.push(origin);
        }
        self.back_to(around);
        origins
    }

    fn one_lane(&mut self, body: &Body<'_>, origins: &[Option<MachineAddress>], index: Value) {
        let number = self.lane_number(index);
        self.define(body.lane, number);
        let around = self.here();
        for (n, stmt) in body.own() {
            self.at(stmt, n, around);
            match &stmt.op {
                Op::Load { dst, ty, addr } => {
                    let at = self.lane_address(body, addr, origins[n], index);
                    let value = self.load_one(*ty, at);
                    self.define(*dst, value);
                }
                Op::Store { ty, addr, value } => {
                    let at = self.lane_address(body, addr, origins[n], index);
                    let value = self.value(*value);
                    self.store_one(*ty, value, at);
                }
                Op::Fetch { .. } => {}
                Op::Nibble { dst, moves, .. } => {
                    let value = self.nibble(origins[n], index, *moves);
                    self.define(*dst, value);
                }
                Op::Join { op, ty, value, .. } => {
                    let at = self.partial(origins[n], index);
                    let (old, value) = (self.load_one(*ty, at), self.value(*value));
                    let new = self.binary(Shape::One, ty.reg(), *op, old, value, None);
                    self.store_one(*ty, new, at);
                }
                op => self.scalar(op),
            }
        }
    }

    /// Where the partial of the first lane at hand is.
    fn partial(&mut self, origin: Option<MachineAddress>, index: Value) -> MachineAddress {
        let origin = origin.expect("`before` gave every access an origin");
        let number = self.lane_number(index);
        let number = self.b.ins().band_imm_s(number, PARTIALS as i64 - 1);
        let offset = self.b.ins().ishl_imm_s(number, 2);
        self.moved(origin, offset)
    }

    /// The word that the first lane at hand takes its half byte of, and the lane's number in it.
    fn word(&mut self, origin: Option<MachineAddress>, index: Value) -> (Value, Value) {
        let origin = origin.expect("`before` gave every access an origin");
        let number = self.lane_number(index);
        let offset = self.b.ins().ushr_imm_u(number, 3);
        let offset = self.b.ins().ishl_imm_s(offset, 2);
        let at = self.moved(origin, offset);
        let place = self.b.ins().band_imm_s(number, 7);
        let place = self.b.ins().ireduce(I32, place);
        (self.load_raw(MemTy::I32, at), place)
    }

    /// A lane's half byte.
    fn nibble(&mut self, origin: Option<MachineAddress>, index: Value, moves: [u8; 3]) -> Value {
        let (word, place) = self.word(origin, index);
        // The number of each lane's half byte is a half byte of this.
        let all = (0..8).fold(0, |all, lane| all | nibble(lane, moves) << (4 * lane));
        let all = self.b.ins().iconst(I32, all as i64);
        let by = self.b.ins().ishl_imm_s(place, 2);
        let which = self.b.ins().ushr(all, by);
        let which = self.b.ins().band_imm_s(which, 7);
        let by = self.b.ins().ishl_imm_s(which, 2);
        let value = self.b.ins().ushr(word, by);
        self.b.ins().band_imm_s(value, 15)
    }

    /// The half bytes of four lanes, the first of which has a number that is a multiple of four: each is brought to the
    /// top by a product.
    fn four_nibbles(&mut self, origin: Option<MachineAddress>, index: Value, moves: [u8; 3]) -> Value {
        let (word, place) = self.word(origin, index);
        // The upper four lanes of a word lie as the lower ones, some half bytes further on.
        let by = self.b.ins().imul_imm_s(place, i64::from(moves[2]));
        let word = self.b.ins().ushr(word, by);
        let words = self.b.ins().splat(I32X4, word);
        let up = [0, 1, 2, 3].map(|lane| 1 << (28 - 4 * nibble(lane, moves)));
        let up = self.vector(I32X4, up);
        let top = self.b.ins().imul(words, up);
        self.b.ins().ushr_imm_u(top, 28)
    }

    /// The address of one lane, all registers being scalars.
    fn lane_address(
        &mut self,
        body: &Body<'_>,
        addr: &Addr,
        origin: Option<MachineAddress>,
        index: Value,
    ) -> MachineAddress {
        let origin = self.strided(addr, origin, index);
        match addr.gather.filter(|g| !body.is_shared(*g)) {
            Some(gather) => {
                let gather = self.value(gather);
                self.moved(origin, gather)
            }
            None => origin,
        }
    }

    /// `origin + (index + ahead) * stride`.
    fn strided(&mut self, addr: &Addr, origin: Option<MachineAddress>, index: Value) -> MachineAddress {
        let origin = origin.expect("`before` gave every access an origin");
        let offset = match addr.stride {
            Stride::Const(0) => return origin,
            Stride::Const(1) => index,
            Stride::Const(bytes) if bytes > 0 && bytes & (bytes - 1) == 0 => {
                self.b.ins().ishl_imm_s(index, i64::from(bytes.trailing_zeros()))
            }
            Stride::Const(bytes) => self.b.ins().imul_imm_s(index, bytes),
            Stride::Reg(reg) => {
                let bytes = self.value(reg);
                let number = self.lane_number(index);
                let offset = self.b.ins().imul(number, bytes);
                return self.moved(origin, offset);
            }
        };
        let at = self.moved(origin, offset);
        let Stride::Const(bytes) = addr.stride else { return at };
        self.further(at, self.ahead.wrapping_mul(bytes))
    }

    fn four_lanes(&mut self, body: &Body<'_>, origins: &[Option<MachineAddress>], index: Value) {
        let number = self.lane_number(index);
        self.reps[body.lane] = Rep::Affine { base: number, step: 1 };
        let around = self.here();
        for (n, stmt) in body.own() {
            self.at(stmt, n, around);
            match &stmt.op {
                Op::Load { dst, ty, addr } => {
                    let rep = self.load_four(body, *ty, addr, origins[n], index);
                    if let Rep::Same = rep {
                        // Cannot happen: a shared load is emitted by `before`.
                        continue;
                    }
                    self.reps[*dst] = rep;
                }
                Op::Store { ty, addr, value } => self.store_four(body, *ty, addr, *value, origins[n], index),
                Op::Fetch { .. } => {}
                Op::Nibble { dst, moves, .. } => {
                    self.reps[*dst] = Rep::Four(self.four_nibbles(origins[n], index, *moves));
                }
                Op::Join { op, ty, value, .. } => {
                    // The first lane's number is a multiple of four: so is that of its partial.
                    let at = self.partial(origins[n], index);
                    let value = self.four(body, *value);
                    let old = self.load_vector(*ty, at);
                    let new = self.binary(Shape::Four, ty.reg(), *op, old, value, None);
                    self.store_vector(*ty, new, at);
                }
                op => self.arithmetic_four(body, op),
            }
        }
    }

    fn arithmetic_four(&mut self, body: &Body<'_>, op: &Op) {
        let class = body.class(op);
        let (dst, rep) = match (class, op) {
            (Class::Affine, &Op::Binary { dst, op, a, b }) => match self.affine(body, op, a, b) {
                Some(rep) => (dst, rep),
                None => return self.each_lane(body, Op::Binary { dst, op, a, b }),
            },
            (Class::Vector, &Op::Unary { dst, op, a }) => {
                let a = self.four(body, a);
                (dst, Rep::Four(self.unary(Shape::Four, self.func.regs[dst].ty, op, a)))
            }
            (Class::Vector, &Op::Binary { dst, op: op @ (BinOp::Shl | BinOp::Shr | BinOp::ShrU), a, b }) => {
                let (x, count) = (self.four(body, a), self.value(b));
                (dst, Rep::Four(self.shift_four(op, x, count, self.known[b])))
            }
            (Class::Vector, &Op::Binary { dst, op, a, b }) => {
                // `known` speaks of the second operand; max and min commute.
                let swap = self.known_in(body, b).is_none() && matches!(op, BinOp::Max | BinOp::Min);
                let (a, b) = if swap { (b, a) } else { (a, b) };
                let (x, y) = (self.four(body, a), self.four(body, b));
                let known = self.known_in(body, b);
                (dst, Rep::Four(self.binary(Shape::Four, self.func.regs[dst].ty, op, x, y, known)))
            }
            (Class::Vector, &Op::Fma { dst, a, b, c }) => {
                let (x, y, z) = (self.four(body, a), self.four(body, b), self.four(body, c));
                (dst, Rep::Four(self.b.ins().fma(x, y, z)))
            }
            (Class::Vector, &Op::Compare { dst, op, a, b }) => {
                let (x, y) = (self.four(body, a), self.four(body, b));
                (dst, Rep::Four(self.compare(self.func.regs[a].ty, op, x, y)))
            }
            (Class::Vector, &Op::Select { dst, cond, a, b }) => {
                let (c, x, y) = (self.four(body, cond), self.four(body, a), self.four(body, b));
                (dst, Rep::Four(self.choose(Shape::Four, c, x, y)))
            }
            (Class::Vector, &Op::Cast { dst, op: Cast::Wrap, a })
                if matches!(self.rep(body, a), Rep::Affine { .. }) =>
            {
                let Rep::Affine { base, step } = self.rep(body, a) else { return };
                let base = self.b.ins().ireduce(I32, base);
                let base = self.b.ins().splat(I32X4, base);
                let step = step as u32;
                let steps = self.vector(I32X4, [0, step, step.wrapping_mul(2), step.wrapping_mul(3)]);
                (dst, Rep::Four(self.b.ins().iadd(base, steps)))
            }
            (Class::Vector, &Op::Cast { dst, op, a }) if op != Cast::Wrap => {
                let a = self.four(body, a);
                (dst, Rep::Four(self.cast(Shape::Four, op, a)))
            }
            (_, op) => return self.each_lane(body, op.clone()),
        };
        self.reps[dst] = rep;
    }

    /// An affine result, if the operands allow it.
    fn affine(&mut self, body: &Body<'_>, op: BinOp, a: Reg, b: Reg) -> Option<Rep> {
        let (x, y) = (self.rep(body, a), self.rep(body, b));
        Some(match (op, x, y) {
            (BinOp::Add, Rep::Affine { base, step }, Rep::Same) => {
                let other = self.value(b);
                Rep::Affine { base: self.b.ins().iadd(base, other), step }
            }
            (BinOp::Add, Rep::Same, Rep::Affine { base, step }) => {
                let other = self.value(a);
                Rep::Affine { base: self.b.ins().iadd(base, other), step }
            }
            (BinOp::Sub, Rep::Affine { base, step }, Rep::Same) => {
                let other = self.value(b);
                Rep::Affine { base: self.b.ins().isub(base, other), step }
            }
            (BinOp::Add, Rep::Affine { base, step }, Rep::Affine { base: other, step: more }) => {
                Rep::Affine { base: self.b.ins().iadd(base, other), step: step.wrapping_add(more) }
            }
            (BinOp::Mul, Rep::Affine { base, step }, Rep::Same) if self.known[b].is_some() => {
                let factor = self.known[b]? as i64;
                Rep::Affine { base: self.b.ins().imul_imm_s(base, factor), step: step.wrapping_mul(factor) }
            }
            (BinOp::Mul, Rep::Same, Rep::Affine { base, step }) if self.known[a].is_some() => {
                let factor = self.known[a]? as i64;
                Rep::Affine { base: self.b.ins().imul_imm_s(base, factor), step: step.wrapping_mul(factor) }
            }
            _ => return None,
        })
    }

    /// A statement lane by lane: its operands become scalars in turn.
    fn each_lane(&mut self, body: &Body<'_>, op: Op) {
        let (inputs, dst) = operands(&op);
        let Some(dst) = dst else { return };
        let own: Vec<(Reg, [Value; 4])> =
            inputs.into_iter().flatten().filter(|r| !body.is_shared(*r)).map(|r| (r, self.each(body, r))).collect();
        let results = [0, 1, 2, 3].map(|n| {
            for (reg, values) in &own {
                self.define(*reg, values[n]);
            }
            self.scalar(&op);
            self.value(dst)
        });
        self.reps[dst] = Rep::Each(results);
    }

    fn rep(&self, body: &Body<'_>, reg: Reg) -> Rep {
        if body.is_shared(reg) { Rep::Same } else { self.reps[reg] }
    }

    fn known_in(&self, body: &Body<'_>, reg: Reg) -> Option<u64> {
        if body.is_shared(reg) { self.known[reg] } else { None }
    }

    /// A 32-bit register as a vector.
    fn four(&mut self, body: &Body<'_>, reg: Reg) -> Value {
        let ty = self.func.regs[reg].ty;
        let vector = if ty == LTy::F32 { F32X4 } else { I32X4 };
        match self.rep(body, reg) {
            Rep::Four(value) => value,
            Rep::Each(values) => self.gathered(ty, values),
            Rep::Affine { .. } | Rep::Same => {
                if let Some(bits) = self.known[reg] {
                    let bits = if ty == LTy::Bool && bits != 0 { u32::MAX } else { bits as u32 };
                    return self.vector(vector, [bits; 4]);
                }
                let mut value = self.value(reg);
                if ty == LTy::Bool {
                    value = self.b.ins().bmask(I32, value);
                }
                self.b.ins().splat(vector, value)
            }
        }
    }

    /// Four scalars as a vector.
    pub(crate) fn gathered(&mut self, ty: LTy, values: [Value; 4]) -> Value {
        let vector = if ty == LTy::F32 { F32X4 } else { I32X4 };
        let values = if ty == LTy::Bool { values.map(|v| self.b.ins().bmask(I32, v)) } else { values };
        if values[1..].iter().all(|v| *v == values[0]) {
            return self.b.ins().splat(vector, values[0]);
        }
        let first = self.b.ins().scalar_to_vector(vector, values[0]);
        (1..4).fold(first, |so_far, n| self.b.ins().insertlane(so_far, values[n], n as u8))
    }

    /// A register as four scalars.
    fn each(&mut self, body: &Body<'_>, reg: Reg) -> [Value; 4] {
        match self.rep(body, reg) {
            Rep::Same => [self.value(reg); 4],
            Rep::Each(values) => values,
            Rep::Affine { base, step } => [0, 1, 2, 3].map(|n| self.b.ins().iadd_imm_s(base, step.wrapping_mul(n))),
            Rep::Four(value) => {
                let bool = self.func.regs[reg].ty == LTy::Bool;
                [0, 1, 2, 3].map(|n| {
                    let lane = self.b.ins().extractlane(value, n);
                    if bool { self.b.ins().icmp_imm_s(IntCC::NotEqual, lane, 0) } else { lane }
                })
            }
        }
    }

    /// Bytes from lane to lane, where they are known: the stride and an affine gather together.
    fn step_of(&self, body: &Body<'_>, addr: &Addr) -> Option<i64> {
        let Stride::Const(stride) = addr.stride else { return None };
        match addr.gather.map(|g| self.rep(body, g)) {
            None | Some(Rep::Same) => Some(stride),
            Some(Rep::Affine { step, .. }) => stride.checked_add(step),
            Some(_) => None,
        }
    }

    /// Lane 0's address where the step is known.
    fn first_place(
        &mut self,
        body: &Body<'_>,
        addr: &Addr,
        origin: Option<MachineAddress>,
        index: Value,
    ) -> MachineAddress {
        let at = self.strided(addr, origin, index);
        match addr.gather.map(|g| self.rep(body, g)) {
            Some(Rep::Affine { base, .. }) => self.moved(at, base),
            _ => at,
        }
    }

    /// The four lanes' addresses.
    fn places(
        &mut self,
        body: &Body<'_>,
        addr: &Addr,
        origin: Option<MachineAddress>,
        index: Value,
    ) -> [MachineAddress; 4] {
        if let Some(step) = self.step_of(body, addr) {
            let at = self.first_place(body, addr, origin, index);
            return [0, 1, 2, 3].map(|n| self.further(at, step.wrapping_mul(n)));
        }
        let at = self.strided(addr, origin, index);
        let mut places = [at; 4];
        for n in 1..4 {
            places[n] = match addr.stride {
                Stride::Const(bytes) => self.further(at, bytes.wrapping_mul(n as i64)),
                Stride::Reg(reg) => {
                    let bytes = self.value(reg);
                    self.moved(places[n - 1], bytes)
                }
            };
        }
        if let Some(gather) = addr.gather.filter(|g| !body.is_shared(*g)) {
            let own = self.each(body, gather);
            for (place, gather) in places.iter_mut().zip(own) {
                *place = self.moved(*place, gather);
            }
        }
        places
    }

    fn load_four(
        &mut self,
        body: &Body<'_>,
        ty: MemTy,
        addr: &Addr,
        origin: Option<MachineAddress>,
        index: Value,
    ) -> Rep {
        let s = Shape::Four;
        match self.step_of(body, addr) {
            Some(0) => {
                let at = self.first_place(body, addr, origin, index);
                let value = self.load_one(ty, at);
                return Rep::Each([value; 4]);
            }
            Some(step) if step == i64::from(ty.size()) && ty != MemTy::I64 => {
                let at = self.first_place(body, addr, origin, index);
                let raw = self.load_vector(ty, at);
                return Rep::Four(self.widen(s, ty, raw));
            }
            _ => {}
        }
        let places = self.places(body, addr, origin, index);
        let raw = places.map(|at| self.load_raw(ty, at));
        if ty == MemTy::I64 {
            return Rep::Each(raw);
        }
        let reg = if ty == MemTy::F32 { LTy::F32 } else { LTy::I32 };
        let raw = self.gathered(reg, raw);
        Rep::Four(self.widen(s, ty, raw))
    }

    /// Four neighbouring elements, widened to 32 bits.
    pub(crate) fn load_vector(&mut self, ty: MemTy, at: MachineAddress) -> Value {
        let (base, disp) = (at.base, at.disp);
        match ty {
            MemTy::F32 => self.b.ins().load(F32X4, plain(), base, disp),
            MemTy::I32 | MemTy::I64 => self.b.ins().load(I32X4, plain(), base, disp),
            MemTy::I16 => self.b.ins().sload16x4(plain(), base, disp),
            MemTy::U16 | MemTy::F16 | MemTy::BF16 => self.b.ins().uload16x4(plain(), base, disp),
            MemTy::I8 | MemTy::U8 | MemTy::Bool | MemTy::F8E4M3 | MemTy::F8E5M2 => {
                let bytes = self.b.ins().load(I32, plain(), base, disp);
                let bytes = self.b.ins().scalar_to_vector(I32X4, bytes);
                let bytes = self.bitcast(I8X16, bytes);
                if ty == MemTy::I8 {
                    let halves = self.b.ins().swiden_low(bytes);
                    self.b.ins().swiden_low(halves)
                } else {
                    let halves = self.b.ins().uwiden_low(bytes);
                    self.b.ins().uwiden_low(halves)
                }
            }
        }
    }

    /// Stores the low parts of four lanes to neighbouring elements.
    pub(crate) fn store_vector(&mut self, ty: MemTy, raw: Value, at: MachineAddress) {
        let size = ty.size();
        if size >= 4 {
            self.b.ins().store(plain(), raw, at.base, at.disp);
            return;
        }
        let bytes = self.bitcast(I8X16, raw);
        let pick: Vec<u8> =
            (0..16u32).map(|n| if n < 4 * size { (n / size * 4 + n % size) as u8 } else { 0 }).collect();
        let pick = self.b.func.dfg.immediates.push(ConstantData::from(pick));
        let packed = self.b.ins().shuffle(bytes, bytes, pick);
        let low = if size == 2 {
            let packed = self.bitcast(F64X2, packed);
            self.b.ins().extractlane(packed, 0)
        } else {
            let packed = self.bitcast(F32X4, packed);
            self.b.ins().extractlane(packed, 0)
        };
        debug_assert!(size == 1 || self.b.func.dfg.value_type(low) == F64);
        self.b.ins().store(plain(), low, at.base, at.disp);
    }

    fn store_four(
        &mut self,
        body: &Body<'_>,
        ty: MemTy,
        addr: &Addr,
        value: Reg,
        origin: Option<MachineAddress>,
        index: Value,
    ) {
        let s = Shape::Four;
        let step = self.step_of(body, addr);
        if ty == MemTy::I64 || step == Some(0) {
            // Lanes in order, so that the last one stays; with step 0 only that one is stored.
            let values = self.each(body, value);
            let places = self.places(body, addr, origin, index);
            let first = if step == Some(0) { 3 } else { 0 };
            for n in first..4 {
                self.store_one(ty, values[n], places[n]);
            }
            return;
        }
        let value = self.four(body, value);
        let raw = self.narrow(s, ty, value);
        if step == Some(i64::from(ty.size())) {
            let at = self.first_place(body, addr, origin, index);
            return self.store_vector(ty, raw, at);
        }
        let places = self.places(body, addr, origin, index);
        for (n, at) in places.into_iter().enumerate() {
            let lane = self.b.ins().extractlane(raw, n as u8);
            self.store_raw(ty, lane, at);
        }
    }
}

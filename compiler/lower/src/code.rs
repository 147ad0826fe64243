//! Builds a function of loop IR: registers, a pool of constants, nested regions. Address arithmetic on known numbers
//! is folded, so that constant offsets stay constants.

use super::f8;
use super::terms::{Terms, times};
use cranelift_entity::{PrimaryMap, SecondaryMap};
use ptoc_diagnostics::Span;
use ptoc_ir::loops::{
    Addr, BinOp, Cast, CmpOp, For, Func, FunctionEntry, If, LTy, Label, Lanes, MemTy, Op, Reg, RegData, Region, Stmt,
    UnOp, VarData, VarId,
};
use rustc_hash::FxHashMap;
use smol_str::SmolStr;

/// A function under construction.
pub(super) struct FunctionBuilder {
    func: Func,
    /// Open regions, innermost last.
    open: Vec<Region>,
    /// Constants of the whole function, defined at its start.
    pool: FxHashMap<(LTy, u64), Reg>,
    pool_stmts: Region,
    /// Inside `Lanes`: constants that its body defines for itself, so that emitters need not keep them in registers
    /// around the loop.
    lanes: Option<FxHashMap<(LTy, u64), Reg>>,
    known: SecondaryMap<Reg, Option<i64>>,
    terms: Terms,
    /// Registers whose values are rounded already, and how: a second rounding is the identity.
    rounded: FxHashMap<Reg, UnOp>,
    /// The source of what is emitted now.
    pub(super) span: Span,
}

impl FunctionBuilder {
    pub(super) fn new(name: impl Into<SmolStr>, entry: FunctionEntry, span: Span) -> FunctionBuilder {
        FunctionBuilder {
            func: Func {
                name: name.into(),
                entry,
                params: Vec::new(),
                results: Vec::new(),
                regs: PrimaryMap::new(),
                vars: PrimaryMap::new(),
                labels: PrimaryMap::new(),
                body: Region::new(),
            },
            open: vec![Region::new()],
            pool: FxHashMap::default(),
            pool_stmts: Region::new(),
            lanes: None,
            known: SecondaryMap::new(),
            terms: Terms::default(),
            rounded: FxHashMap::default(),
            span,
        }
    }

    pub(super) fn finish(mut self, results: Vec<Reg>) -> Func {
        let mut body = self.pool_stmts;
        while let Some(region) = self.open.pop() {
            body.extend(region);
        }
        self.func.body = body;
        self.func.results = results;
        self.func
    }

    pub(super) fn param(&mut self) -> Reg {
        let reg = self.reg(LTy::I64);
        self.func.params.push(reg);
        reg
    }

    pub(super) fn reg(&mut self, ty: LTy) -> Reg {
        self.func.regs.push(RegData { ty })
    }

    pub(super) fn ty(&self, reg: Reg) -> LTy {
        self.func.regs[reg].ty
    }

    pub(super) fn var(&mut self, ty: LTy) -> VarId {
        self.func.vars.push(VarData { ty })
    }

    pub(super) fn label(&mut self) -> Label {
        self.func.labels.push(())
    }

    pub(super) fn emit(&mut self, op: Op) {
        let stmt = Stmt { op, span: self.span };
        match self.open.last_mut() {
            Some(region) => region.push(stmt),
            None => self.pool_stmts.push(stmt),
        }
    }

    // ---- constants -----------------------------------------------------------------------------------------------

    /// A constant by its bits.
    pub(super) fn bits(&mut self, ty: LTy, bits: u64) -> Reg {
        let span = self.span;
        if let Some(local) = &self.lanes
            && ty != LTy::I64
        {
            if let Some(&reg) = local.get(&(ty, bits)) {
                return reg;
            }
            let dst = self.reg(ty);
            self.emit(Op::Const { dst, bits });
            if let Some(local) = &mut self.lanes {
                local.insert((ty, bits), dst);
            }
            return dst;
        }
        if let Some(&reg) = self.pool.get(&(ty, bits)) {
            return reg;
        }
        let dst = self.reg(ty);
        self.pool_stmts.push(Stmt { op: Op::Const { dst, bits }, span });
        self.pool.insert((ty, bits), dst);
        if ty == LTy::I64 {
            self.known[dst] = Some(bits as i64);
        }
        dst
    }

    /// An i64.
    pub(super) fn int(&mut self, value: i64) -> Reg {
        self.bits(LTy::I64, value as u64)
    }

    /// An i32.
    pub(super) fn i32(&mut self, value: i32) -> Reg {
        self.bits(LTy::I32, u64::from(value as u32))
    }

    /// An f32.
    pub(super) fn f32(&mut self, value: f32) -> Reg {
        self.bits(LTy::F32, u64::from(value.to_bits()))
    }

    /// The value of an i64 register, if it is known now.
    pub(super) fn known(&self, reg: Reg) -> Option<i64> {
        self.known[reg]
    }

    // ---- arithmetic ----------------------------------------------------------------------------------------------

    pub(super) fn un(&mut self, op: UnOp, a: Reg) -> Reg {
        let rounds = matches!(op, UnOp::RoundF16 | UnOp::RoundBf16);
        if rounds && self.rounded.get(&a) == Some(&op) {
            return a;
        }
        let dst = self.reg(self.ty(a));
        self.emit(Op::Unary { dst, op, a });
        if rounds {
            self.rounded.insert(dst, op);
        }
        dst
    }

    pub(super) fn bin(&mut self, op: BinOp, a: Reg, b: Reg) -> Reg {
        let known = (self.known(a), self.known(b));
        if let (Some(x), Some(y)) = known
            && let Some(result) = folded(op, x, y)
        {
            return self.int(result);
        }
        match (op, known.0, known.1) {
            (BinOp::Max | BinOp::Min, ..) if a == b => return a,
            (BinOp::Add, Some(0), _) => return b,
            (BinOp::Add | BinOp::Sub, _, Some(0)) => return a,
            (BinOp::Mul, Some(1), _) => return b,
            (BinOp::Mul, _, Some(1)) => return a,
            (BinOp::Mul, Some(0), _) | (BinOp::Mul, _, Some(0)) => return self.int(0),
            _ => {}
        }
        let dst = self.reg(self.ty(a));
        self.emit(Op::Binary { dst, op, a, b });
        if self.ty(a) == LTy::I64 {
            self.terms.note(dst, op, (a, b), known);
        }
        dst
    }

    /// Whether `whole = a * b`, as far as is known.
    pub(super) fn is_product(&self, whole: Reg, a: Reg, b: Reg) -> bool {
        let of = |r: Reg| self.terms.product(r, self.known(r));
        of(whole) == times(&of(a), &of(b))
    }

    /// A power of two that divides `reg`, as far as is known.
    pub(super) fn power(&self, reg: Reg) -> u64 {
        self.terms.power(reg, self.known(reg))
    }

    pub(super) fn fma(&mut self, a: Reg, b: Reg, c: Reg) -> Reg {
        let dst = self.reg(LTy::F32);
        self.emit(Op::Fma { dst, a, b, c });
        dst
    }

    pub(super) fn cmp(&mut self, op: CmpOp, a: Reg, b: Reg) -> Reg {
        let dst = self.reg(LTy::Bool);
        self.emit(Op::Compare { dst, op, a, b });
        dst
    }

    pub(super) fn select(&mut self, cond: Reg, a: Reg, b: Reg) -> Reg {
        if a == b {
            return a;
        }
        let dst = self.reg(self.ty(a));
        self.emit(Op::Select { dst, cond, a, b });
        dst
    }

    pub(super) fn cast(&mut self, op: Cast, a: Reg, ty: LTy) -> Reg {
        let dst = self.reg(ty);
        self.emit(Op::Cast { dst, op, a });
        dst
    }

    pub(super) fn add(&mut self, a: Reg, b: Reg) -> Reg {
        self.bin(BinOp::Add, a, b)
    }

    /// `a + n`
    pub(super) fn plus(&mut self, a: Reg, n: i64) -> Reg {
        let n = self.int(n);
        self.bin(BinOp::Add, a, n)
    }

    /// `a * n`
    pub(super) fn times(&mut self, a: Reg, n: i64) -> Reg {
        let n = self.int(n);
        self.bin(BinOp::Mul, a, n)
    }

    // ---- memory and variables ------------------------------------------------------------------------------------

    pub(super) fn load(&mut self, ty: MemTy, addr: Addr) -> Reg {
        if let Some(d) = f8::dtype(ty) {
            let byte = self.load(MemTy::U8, addr);
            return f8::value(self, d, byte);
        }
        let dst = self.reg(ty.reg());
        self.emit(Op::Load { dst, ty, addr });
        match ty {
            MemTy::F16 => drop(self.rounded.insert(dst, UnOp::RoundF16)),
            MemTy::BF16 => drop(self.rounded.insert(dst, UnOp::RoundBf16)),
            _ => {}
        }
        dst
    }

    pub(super) fn store(&mut self, ty: MemTy, addr: Addr, value: Reg) {
        if let Some(d) = f8::dtype(ty) {
            let near = f8::nearest(self, d, value);
            let byte = f8::bits(self, d, near);
            return self.store(MemTy::U8, addr, byte);
        }
        self.emit(Op::Store { ty, addr, value });
    }

    pub(super) fn get(&mut self, var: VarId) -> Reg {
        let dst = self.reg(self.func.vars[var].ty);
        self.emit(Op::Get { dst, var });
        dst
    }

    // ---- structure -----------------------------------------------------------------------------------------------

    pub(super) fn push(&mut self) {
        self.open.push(Region::new());
    }

    pub(super) fn pop(&mut self) -> Region {
        self.open.pop().unwrap_or_default()
    }

    /// Statements that were taken out of a region go to the one at hand.
    pub(super) fn append(&mut self, region: Region) {
        match self.open.last_mut() {
            Some(open) => open.extend(region),
            None => self.pool_stmts.extend(region),
        }
    }

    /// `for index in 0..count`. A count that is known to be 1 needs no loop.
    pub(super) fn for_count(&mut self, count: Reg, body: impl FnOnce(&mut FunctionBuilder, Reg)) {
        let lo = self.int(0);
        if self.known(count) == Some(1) {
            body(self, lo);
            return;
        }
        self.for_range(lo, count, 1, body);
    }

    /// `for index in lo..hi` by `step`.
    pub(super) fn for_range(&mut self, lo: Reg, hi: Reg, step: i64, body: impl FnOnce(&mut FunctionBuilder, Reg)) {
        let (label, index) = (self.label(), self.reg(LTy::I64));
        self.push();
        body(self, index);
        let body = self.pop();
        self.emit(Op::For(Box::new(For { label, index, lo, hi, step, body })));
    }

    /// `if cond {} else {}`
    pub(super) fn either(
        &mut self,
        cond: Reg,
        then: impl FnOnce(&mut FunctionBuilder),
        els: impl FnOnce(&mut FunctionBuilder),
    ) {
        self.push();
        then(self);
        let then = self.pop();
        self.push();
        els(self);
        let els = self.pop();
        self.emit(Op::If(Box::new(If { cond, then, els })));
    }

    /// Independent lanes.
    pub(super) fn lanes(&mut self, count: Reg, body: impl FnOnce(&mut FunctionBuilder, Reg)) {
        let lane = self.reg(LTy::I64);
        self.open_lanes();
        body(self, lane);
        self.close_lanes(lane, count);
    }

    /// Begins the body of lanes. They do not nest.
    pub(super) fn open_lanes(&mut self) {
        self.push();
        self.lanes = Some(FxHashMap::default());
    }

    /// Ends it.
    pub(super) fn close_lanes(&mut self, lane: Reg, count: Reg) {
        self.lanes = None;
        let body = self.pop();
        self.emit(Op::Lanes(Box::new(Lanes { lane, count, body })));
    }
}

/// `x op y`, where that is one number for sure.
fn folded(op: BinOp, x: i64, y: i64) -> Option<i64> {
    Some(match op {
        BinOp::Add => x.wrapping_add(y),
        BinOp::Sub => x.wrapping_sub(y),
        BinOp::Mul => x.wrapping_mul(y),
        BinOp::Max => x.max(y),
        BinOp::Min => x.min(y),
        BinOp::DivFloor if y > 0 => x.div_euclid(y),
        BinOp::RemFloor if y > 0 => x.rem_euclid(y),
        BinOp::And => x & y,
        BinOp::Or => x | y,
        BinOp::Xor => x ^ y,
        BinOp::Shl if (0..64).contains(&y) => x << y,
        BinOp::ShrU if (0..64).contains(&y) => ((x as u64) >> y) as i64,
        _ => return None,
    })
}

//! A plain evaluator of loop IR, against which the emitters are tested.
//!
//! It runs one function on byte arrays, statement by statement and lane by lane, checks every address, and counts
//! steps. It shares nothing with the emitters or with tile IR's interpreter but the definitions in [`super`].

pub(super) mod arith;
mod sorts;

use super::{
    Addr, Atomic, Base, Contract, For, Func, Gather, LTy, Label, Lanes, MemTy, Module, Op, PARTIALS, PrintPart, Reduce,
    Reg, Region, Start, Stmt, Stride, VarId, nibble,
};
use cranelift_entity::SecondaryMap;
use ptoc_diagnostics::Span;
use ptoc_isa::{AtomicOp, Oob};

/// The memory of a run.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    /// Data of the tensors.
    pub tensors: Vec<Vec<u8>>,
    /// Spaces.
    pub arena: Vec<u8>,
}

/// How a run ended otherwise than by reaching the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EvalStop {
    /// A check failed.
    Check {
        /// Row of the check table.
        check: u32,
        /// The numbers.
        args: Vec<i64>,
    },
    /// An address outside its tensor or the arena.
    OutOfBounds(Span),
    /// More steps than were allowed.
    Fuel,
}

/// What a print showed: a scalar's bits, or a matrix's elements' bits in row-major order.
pub type Printed = Vec<u64>;

/// Runs `func` with the parameters `params` for at most `fuel` steps: statements, iterations, multiply-adds, printed
/// elements.
///
/// # Errors
/// [`EvalStop`], when the end is not reached.
pub fn run(
    module: &Module,
    func: &Func,
    params: &[i64],
    memory: &mut Memory,
    prints: &mut Vec<Printed>,
    fuel: u64,
) -> Result<Vec<i64>, EvalStop> {
    let mut eval =
        Eval { module, func, memory, prints, regs: SecondaryMap::new(), vars: SecondaryMap::new(), fuel, lane: 0 };
    for (reg, value) in func.params.iter().zip(params) {
        eval.regs[*reg] = *value as u64;
    }
    match eval.region(&func.body) {
        Ok(()) => Ok(func.results.iter().map(|r| eval.i64(*r)).collect()),
        Err(Exit::Stop(stop)) => Err(stop),
        // The verifier refuses jumps without target.
        Err(Exit::Break(_) | Exit::Continue(_)) => Err(EvalStop::Fuel),
    }
}

/// Bits of a byte's number within its tensor or the arena.
const BASE_BITS: u32 = 40;

enum Exit {
    Stop(EvalStop),
    /// `break` and `leave`.
    Break(Label),
    Continue(Label),
}

struct Eval<'a> {
    module: &'a Module,
    func: &'a Func,
    memory: &'a mut Memory,
    prints: &'a mut Vec<Printed>,
    /// Bits: i32 and f32 in the low half, bool 0 or 1.
    regs: SecondaryMap<Reg, u64>,
    vars: SecondaryMap<VarId, u64>,
    fuel: u64,
    /// The lane at hand, 0 outside `lanes`.
    lane: i64,
}

impl Eval<'_> {
    fn i64(&self, reg: Reg) -> i64 {
        self.regs[reg] as i64
    }

    fn f32(&self, reg: Reg) -> f32 {
        f32::from_bits(self.regs[reg] as u32)
    }

    fn ty(&self, reg: Reg) -> LTy {
        self.func.regs[reg].ty
    }

    /// Uses a step.
    fn spend(&mut self) -> Result<(), Exit> {
        self.fuel = self.fuel.checked_sub(1).ok_or(Exit::Stop(EvalStop::Fuel))?;
        Ok(())
    }

    fn region(&mut self, region: &Region) -> Result<(), Exit> {
        region.iter().try_for_each(|stmt| self.statement(stmt))
    }

    fn statement(&mut self, stmt: &Stmt) -> Result<(), Exit> {
        self.spend()?;
        let (dst, bits) = match &stmt.op {
            Op::Const { dst, bits } => match self.ty(*dst) {
                LTy::I64 => (*dst, *bits),
                LTy::Bool => (*dst, u64::from(*bits != 0)),
                _ => (*dst, u64::from(*bits as u32)),
            },
            Op::Unary { dst, op, a } => (*dst, arith::unary(*op, self.ty(*dst), self.regs[*a])),
            Op::Binary { dst, op, a, b } => (*dst, arith::binary(*op, self.ty(*dst), self.regs[*a], self.regs[*b])),
            Op::Fma { dst, a, b, c } => {
                let value = self.f32(*a).mul_add(self.f32(*b), self.f32(*c));
                (*dst, u64::from(value.to_bits()))
            }
            Op::Compare { dst, op, a, b } => {
                let holds = arith::compare(*op, self.ty(*a), self.regs[*a], self.regs[*b]);
                (*dst, u64::from(holds))
            }
            Op::Select { dst, cond, a, b } => (*dst, if self.regs[*cond] != 0 { self.regs[*a] } else { self.regs[*b] }),
            Op::Cast { dst, op, a } => (*dst, arith::cast(*op, self.ty(*a), self.regs[*a])),
            Op::Get { dst, var } => (*dst, self.vars[*var]),
            Op::Set { var, value } => {
                self.vars[*var] = self.regs[*value];
                return Ok(());
            }
            Op::Load { dst, ty, addr } => (*dst, self.load(*ty, addr, 0, stmt.span)?),
            Op::Store { ty, addr, value } => return self.store(*ty, addr, 0, self.regs[*value], stmt.span),
            Op::Fetch { .. } => return Ok(()),
            Op::Join { op, ty, addr, value } => {
                let at = self.lane % PARTIALS as i64 * i64::from(ty.size());
                let old = self.load(*ty, addr, at, stmt.span)?;
                let new = arith::binary(*op, ty.reg(), old, self.regs[*value]);
                return self.store(*ty, addr, at, new, stmt.span);
            }
            Op::Nibble { dst, addr, moves } => {
                let word = self.load(MemTy::I32, addr, self.lane / 8 * 4, stmt.span)?;
                (*dst, word >> (4 * nibble(self.lane, *moves)) & 15)
            }
            Op::Atomic(atomic) => return self.atomic(atomic, stmt.span),
            Op::For(f) => return self.counted(f),
            Op::Lanes(lanes) => return self.lanes(lanes),
            Op::If(i) => return self.region(if self.regs[i.cond] != 0 { &i.then } else { &i.els }),
            Op::While(w) => loop {
                let turn = self.region(&w.head).and_then(|()| {
                    if self.regs[w.cond] == 0 {
                        return Err(Exit::Break(w.label));
                    }
                    self.region(&w.body)
                });
                match turn {
                    Err(Exit::Break(label)) if label == w.label => return Ok(()),
                    Err(Exit::Continue(label)) if label == w.label => {}
                    other => other?,
                }
                self.spend()?;
            },
            Op::Scope(s) => {
                return match self.region(&s.body) {
                    Err(Exit::Break(label)) if label == s.label => Ok(()),
                    other => other,
                };
            }
            Op::Break(label) | Op::Leave(label) => return Err(Exit::Break(*label)),
            Op::Continue(label) => return Err(Exit::Continue(*label)),
            Op::Contract(c) => return self.contract(c, stmt.span),
            Op::Reduce(r) => return self.reduce(r, stmt.span),
            Op::Gather(g) => return self.gather(g, stmt.span),
            Op::Sort(s) => return self.sort(s, stmt.span),
            Op::Merge(m) => return self.merge(m, stmt.span),
            Op::Check { cond, check, args } => {
                if self.regs[*cond] != 0 {
                    return Ok(());
                }
                let args = args.iter().map(|r| self.i64(*r)).collect();
                return Err(Exit::Stop(EvalStop::Check { check: *check, args }));
            }
            // Nobody looks on.
            Op::Watch(_) => return Ok(()),
            Op::Print { parts } => return self.print(parts, stmt.span),
        };
        self.regs[dst] = bits;
        Ok(())
    }

    fn counted(&mut self, f: &For) -> Result<(), Exit> {
        let (mut index, hi) = (self.i64(f.lo), self.i64(f.hi));
        while index < hi {
            self.spend()?;
            self.regs[f.index] = index as u64;
            match self.region(&f.body) {
                Err(Exit::Break(label)) if label == f.label => break,
                Err(Exit::Continue(label)) if label == f.label => {}
                other => other?,
            }
            index = index.wrapping_add(f.step);
        }
        Ok(())
    }

    fn lanes(&mut self, lanes: &Lanes) -> Result<(), Exit> {
        for lane in 0..self.i64(lanes.count) {
            self.spend()?;
            self.lane = lane;
            self.regs[lanes.lane] = lane as u64;
            self.region(&lanes.body)?;
        }
        self.lane = 0;
        Ok(())
    }

    /// The bytes at an address, moved by `extra`.
    fn bytes(&mut self, addr: &Addr, extra: i64, size: u32, span: Span) -> Result<&mut [u8], Exit> {
        let stride = match addr.stride {
            Stride::Const(bytes) => bytes,
            Stride::Reg(reg) => self.i64(reg),
        };
        let mut at = self.i64(addr.offset).wrapping_add(extra).wrapping_add(self.lane.wrapping_mul(stride));
        if let Some(gather) = addr.gather {
            at = at.wrapping_add(self.i64(gather));
        }
        let (mut tensor, mut start, len) = match addr.base {
            Base::Tensor(n) => (Some(n as usize), 0, self.memory.tensors[n as usize].len() as u64),
            Base::Space(space) => (None, self.module.spaces[space].offset, self.module.spaces[space].size),
        };
        let inside = u64::try_from(at).is_ok_and(|at| at.checked_add(u64::from(size)).is_some_and(|end| end <= len));
        if !inside {
            // The place of a gathered row may lead elsewhere.
            let number = self.number_of(addr.base, at).filter(|_| addr.gather.is_some());
            let number = number.ok_or(Exit::Stop(EvalStop::OutOfBounds(span)))?;
            (tensor, start, at) = match number >> BASE_BITS {
                1 => (None, 0, number & ((1 << BASE_BITS) - 1)),
                n => (Some(usize::try_from(n - 2).unwrap_or(usize::MAX)), 0, number & ((1 << BASE_BITS) - 1)),
            };
        }
        let memory = match tensor {
            Some(n) => self.memory.tensors.get_mut(n),
            None => Some(&mut self.memory.arena),
        };
        let from = usize::try_from(at).ok().and_then(|at| at.checked_add(start as usize));
        memory
            .zip(from)
            .and_then(|(memory, from)| memory.get_mut(from..from.checked_add(size as usize)?))
            .ok_or(Exit::Stop(EvalStop::OutOfBounds(span)))
    }

    /// A number for a byte, so that two bytes have a distance: the arena's begin at 1 << [`BASE_BITS`], a tensor's at
    /// its own multiple.
    fn number_of(&self, base: Base, at: i64) -> Option<i64> {
        match base {
            Base::Tensor(n) => ((i64::from(n) + 2) << BASE_BITS).checked_add(at),
            Base::Space(space) => ((1 << BASE_BITS) + self.module.spaces[space].offset as i64).checked_add(at),
        }
    }

    fn load(&mut self, ty: MemTy, addr: &Addr, extra: i64, span: Span) -> Result<u64, Exit> {
        let bytes = self.bytes(addr, extra, ty.size(), span)?;
        let mut raw = [0; 8];
        raw[..bytes.len()].copy_from_slice(bytes);
        Ok(arith::widen(ty, u64::from_le_bytes(raw)))
    }

    fn store(&mut self, ty: MemTy, addr: &Addr, extra: i64, bits: u64, span: Span) -> Result<(), Exit> {
        let raw = arith::narrow(ty, bits).to_le_bytes();
        let bytes = self.bytes(addr, extra, ty.size(), span)?;
        bytes.copy_from_slice(&raw[..ty.size() as usize]);
        Ok(())
    }

    fn atomic(&mut self, a: &Atomic, span: Span) -> Result<(), Exit> {
        use super::BinOp;
        let old = self.load(a.ty, &a.addr, 0, span)?;
        let (value, reg) = (self.regs[a.value], a.ty.reg());
        let op = match (a.op, a.unsigned) {
            (AtomicOp::Add, _) => Some(BinOp::Add),
            (AtomicOp::Max, false) => Some(BinOp::Max),
            (AtomicOp::Max, true) => Some(BinOp::MaxU),
            (AtomicOp::Min, false) => Some(BinOp::Min),
            (AtomicOp::Min, true) => Some(BinOp::MinU),
            (AtomicOp::And, _) => Some(BinOp::And),
            (AtomicOp::Or, _) => Some(BinOp::Or),
            (AtomicOp::Xor, _) => Some(BinOp::Xor),
            (AtomicOp::Exchange | AtomicOp::Cas, _) => None,
        };
        // The operand as the memory has it, so that comparisons happen at the memory's width.
        let value = arith::widen(a.ty, arith::narrow(a.ty, value));
        let (old_n, value_n) =
            if a.unsigned { (arith::narrow(a.ty, old), arith::narrow(a.ty, value)) } else { (old, value) };
        let new = match op {
            Some(op) => arith::binary(op, reg, old_n, value_n),
            None => {
                let expected = a.expected.map(|r| arith::widen(a.ty, arith::narrow(a.ty, self.regs[r])));
                if expected.is_some_and(|e| e != old) { old } else { value }
            }
        };
        self.store(a.ty, &a.addr, 0, new, span)?;
        self.regs[a.dst] = old;
        Ok(())
    }

    fn contract(&mut self, c: &Contract, span: Span) -> Result<(), Exit> {
        let (m, n, k) = (self.i64(c.m), self.i64(c.n), self.i64(c.k));
        let bytes = |s: Stride| match s {
            Stride::Const(n) => n,
            Stride::Reg(r) => self.regs[r] as i64,
        };
        let pair = |(x, y)| (bytes(x), bytes(y));
        let (d, a_by, b_by) = (pair(c.d_strides), pair(c.a_strides), pair(c.b_strides));
        let start = match c.start {
            Start::Zero => (0, 0),
            Start::At { row, col, .. } => (bytes(row), bytes(col)),
        };
        for i in 0..m {
            self.spend()?;
            for j in 0..n {
                self.spend()?;
                let mut sum = match &c.start {
                    Start::Zero => 0,
                    Start::At { addr, ty, .. } => self.load(*ty, addr, i * start.0 + j * start.1, span)?,
                };
                for p in 0..k {
                    let a = self.load(c.ab_ty, &c.a, i * a_by.0 + p * a_by.1, span)?;
                    let b = self.load(c.ab_ty, &c.b, p * b_by.0 + j * b_by.1, span)?;
                    self.spend()?;
                    sum = if c.ab_ty.reg() == LTy::F32 {
                        let [a, b, s] = [a, b, sum].map(|bits| f32::from_bits(bits as u32));
                        u64::from(a.mul_add(b, s).to_bits())
                    } else {
                        let [a, b, s] = [a, b, sum].map(|bits| bits as u32);
                        u64::from(a.wrapping_mul(b).wrapping_add(s))
                    };
                }
                self.store(c.d_ty, &c.d, i * d.0 + j * d.1, sum, span)?;
            }
        }
        Ok(())
    }

    fn reduce(&mut self, r: &Reduce, span: Span) -> Result<(), Exit> {
        let reg = r.ty.reg();
        for i in 0..self.i64(r.rows) {
            self.spend()?;
            let mut partials = [arith::neutral(r.op, r.ty); PARTIALS];
            for j in 0..self.i64(r.cols) {
                self.spend()?;
                let x = self.load(r.ty, &r.a, i * r.a_strides.0 + j * r.a_strides.1, span)?;
                let partial = &mut partials[j as usize % PARTIALS];
                *partial = arith::binary(r.op, reg, *partial, x);
            }
            let mut half = PARTIALS / 2;
            while half > 0 {
                for n in 0..half {
                    partials[n] = arith::binary(r.op, reg, partials[n], partials[n + half]);
                }
                half /= 2;
            }
            self.store(r.ty, &r.d, i * r.d_stride, partials[0], span)?;
        }
        Ok(())
    }

    /// The distance in bytes from one address outside `lanes` to another.
    fn distance(&self, from: &Addr, to: &Addr) -> i64 {
        let number = |a: &Addr| {
            let at = self.i64(a.offset).wrapping_add(a.gather.map_or(0, |g| self.i64(g)));
            self.number_of(a.base, at).unwrap_or(0)
        };
        number(to).wrapping_sub(number(from))
    }

    fn gather(&mut self, g: &Gather, span: Span) -> Result<(), Exit> {
        let (cols, total) = (self.i64(g.cols), self.i64(g.total));
        let ty = g.ty;
        let mut missing = -1;
        for i in 0..self.i64(g.rows) {
            let mut indices = Vec::new();
            for j in 0..cols {
                self.spend()?;
                let mut bits =
                    self.load(MemTy::I32, &g.index, i * g.index_strides.0 + j * g.index_strides.1, span)? as u32;
                if let Some((addr, strides)) = &g.plus {
                    let more = self.load(MemTy::I32, addr, i * strides.0 + j * strides.1, span)?;
                    bits = bits.wrapping_add(more as u32);
                }
                indices.push(if g.unsigned { i64::from(bits) } else { i64::from(bits as i32) });
            }
            if let Some((addr, stride)) = &g.places {
                let neighbour = |(j, n): (i64, &i64)| *n == indices[0] + j && (0..total).contains(n);
                let stays = (0..).zip(&indices).all(neighbour);
                let place = match indices.first() {
                    Some(first) if stays => first * i64::from(ty.size()),
                    _ => self.distance(&g.table, &g.d) + i * g.d_strides.0,
                };
                self.store(MemTy::I64, addr, i * stride, place as u64, span)?;
                if stays {
                    continue;
                }
            }
            for (j, index) in (0..).zip(indices) {
                let at = g.oob.lead(index, total);
                if at.is_none() && g.oob != Oob::Zero && missing < 0 {
                    missing = i * cols + j;
                }
                let x = match at {
                    Some(at) => self.load(ty, &g.table, at * i64::from(ty.size()), span)?,
                    None => 0,
                };
                self.store(ty, &g.d, i * g.d_strides.0 + j * g.d_strides.1, x, span)?;
            }
        }
        self.regs[g.dst] = missing as u64;
        Ok(())
    }

    fn print(&mut self, parts: &[PrintPart], span: Span) -> Result<(), Exit> {
        for part in parts {
            let printed = match part {
                PrintPart::Text(_) => continue,
                PrintPart::Scalar { value, .. } => vec![self.regs[*value]],
                PrintPart::Matrix { addr, ty, rows, cols, row_stride, col_stride, .. } => {
                    let mut all = Vec::new();
                    for i in 0..self.i64(*rows) {
                        self.spend()?;
                        for j in 0..self.i64(*cols) {
                            self.spend()?;
                            all.push(self.load(*ty, addr, i * row_stride + j * col_stride, span)?);
                        }
                    }
                    all
                }
            };
            self.prints.push(printed);
        }
        Ok(())
    }
}

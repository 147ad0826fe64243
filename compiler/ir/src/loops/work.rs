//! How much a launch computes, counted without computing it.
//!
//! Control flow, extents and addresses of a kernel hardly ever depend on what it computes, so loops are walked with
//! numbers in hand and bodies are only counted: a product of `m` by `n` by `k` is one step here. Numbers that are read
//! from arrays (lengths of rows, lists of blocks) are read from those of the launch, if it does not write them. What
//! depends on other data ([`Unknown::Data`]) has no count. Beside it is noted which bytes of the tensors are touched.

use super::eval::arith;
use super::touched::{Matrix, Touched, Writes};
use super::{
    Addr, Base, For, Func, FunctionEntry, LTy, Label, Lanes, Lists, MemTy, Module, Op, PARTIALS, Reg, Region, Start,
    Stmt, Stride, UnOp, VarId,
};
use cranelift_entity::SecondaryMap;
use std::ops::AddAssign;

/// Operations on elements. A fused multiply-add is two; what computes addresses, converts or selects is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpCount {
    /// Multiplications and additions of matrix products in f32.
    pub product_flops: u64,
    /// Of these, the ones whose factors are bf16 in memory, and those whose factors are f16.
    pub product_bf16: u64,
    /// See there.
    pub product_f16: u64,
    /// Those of products of integers.
    pub product_ints: u64,
    /// Other operations on f32, f16 and bf16 (which compute in f32).
    pub flops: u64,
    /// Other operations on integers of 32 bits or less.
    pub ints: u64,
}

impl OpCount {
    /// All operations.
    pub fn total(&self) -> u64 {
        let OpCount { product_flops, product_ints, flops, ints, .. } = *self;
        product_flops.saturating_add(product_ints).saturating_add(flops).saturating_add(ints)
    }

    fn times(self, n: u64) -> OpCount {
        let times = |x: u64| x.saturating_mul(n);
        OpCount {
            product_flops: times(self.product_flops),
            product_bf16: times(self.product_bf16),
            product_f16: times(self.product_f16),
            product_ints: times(self.product_ints),
            flops: times(self.flops),
            ints: times(self.ints),
        }
    }
}

impl AddAssign for OpCount {
    fn add_assign(&mut self, more: OpCount) {
        self.product_flops = self.product_flops.saturating_add(more.product_flops);
        self.product_bf16 = self.product_bf16.saturating_add(more.product_bf16);
        self.product_f16 = self.product_f16.saturating_add(more.product_f16);
        self.product_ints = self.product_ints.saturating_add(more.product_ints);
        self.flops = self.flops.saturating_add(more.flops);
        self.ints = self.ints.saturating_add(more.ints);
    }
}

/// Why there is no count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unknown {
    /// A loop, a branch or an extent depends on what is computed, or on contents that are not given.
    Data,
    /// The walk would take longer than it was granted.
    Long,
    /// The launch fails a check.
    Fails,
}

/// What a launch does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Its operations.
    pub operations: OpCount,
    /// Bytes of each tensor that are read, and that are written, each once; `None` where that is not known.
    pub bytes: Vec<[Option<u64>; 2]>,
}

/// The work of all blocks of a launch with these parameters (dimensions, then bits of scalars), in at most `fuel`
/// steps. `arrays` are the bytes of the tensors that the launch only reads, by number.
///
/// # Errors
/// [`Unknown`] says what keeps it from being counted.
pub fn work(module: &Module, params: &[i64], arrays: &[Option<&[u8]>], fuel: u64) -> Result<Work, Unknown> {
    let touched = Touched::new(module.tensors.len());
    let mut prologue = Count::new(&module.launch, params, arrays, (fuel, touched));
    prologue.run()?;
    let results = module.launch.results.iter();
    let grid = results.map(|&r| prologue.number(r)).collect::<Result<Vec<i64>, Unknown>>()?;
    let (mut total, mut fuel, mut touched) = (prologue.work, prologue.fuel, prologue.touched);
    if grid.iter().any(|&n| n <= 0) {
        return Ok(Work { operations: total, bytes: touched.bytes() });
    }
    let mut at = vec![0i64; grid.len()];
    let mut inputs = params.to_vec();
    loop {
        inputs.truncate(params.len());
        inputs.extend(&at);
        if !module.spread.is_empty() {
            // One block a call.
            inputs.extend(at.iter().map(|_| 1));
        }
        let mut block = Count::new(&module.block, &inputs, arrays, (fuel, touched));
        block.run()?;
        total += block.work;
        (fuel, touched) = (block.fuel, block.touched);
        let Some(next) = (0..grid.len()).rev().find(|&d| at[d] + 1 < grid[d]) else {
            return Ok(Work { operations: total, bytes: touched.bytes() });
        };
        at[next] += 1;
        at[next + 1..].fill(0);
    }
}

enum Exit {
    Unknown(Unknown),
    /// `break` and `leave`.
    Break(Label),
    Continue(Label),
}

impl From<Unknown> for Exit {
    fn from(u: Unknown) -> Exit {
        Exit::Unknown(u)
    }
}

struct Count<'a> {
    func: &'a Func,
    arrays: &'a [Option<&'a [u8]>],
    /// Bits; none for what comes from memory.
    regs: SecondaryMap<Reg, Option<u64>>,
    vars: SecondaryMap<VarId, Option<u64>>,
    work: OpCount,
    touched: Touched,
    fuel: u64,
}

impl<'a> Count<'a> {
    fn new(
        func: &'a Func,
        params: &[i64],
        arrays: &'a [Option<&'a [u8]>],
        (fuel, touched): (u64, Touched),
    ) -> Count<'a> {
        let mut regs = SecondaryMap::new();
        for (&reg, &value) in func.params.iter().zip(params) {
            regs[reg] = Some(value as u64);
        }
        debug_assert!(func.entry == FunctionEntry::Block || func.params.len() == params.len());
        Count { func, arrays, regs, vars: SecondaryMap::new(), work: OpCount::default(), touched, fuel }
    }

    fn run(&mut self) -> Result<(), Unknown> {
        match self.region(&self.func.body) {
            Ok(()) => Ok(()),
            Err(Exit::Unknown(u)) => Err(u),
            // The verifier refuses jumps without target.
            Err(Exit::Break(_) | Exit::Continue(_)) => Err(Unknown::Fails),
        }
    }

    fn number(&self, reg: Reg) -> Result<i64, Unknown> {
        self.regs[reg].map(|bits| bits as i64).ok_or(Unknown::Data)
    }

    fn truth(&self, reg: Reg) -> Result<bool, Unknown> {
        Ok(self.number(reg)? != 0)
    }

    fn extent(&self, reg: Reg) -> Result<u64, Unknown> {
        Ok(self.number(reg)?.max(0) as u64)
    }

    /// The bits of an element, if its array is given.
    fn element(&self, ty: MemTy, addr: &Addr) -> Option<u64> {
        let Base::Tensor(tensor) = addr.base else { return None };
        let bytes = (*self.arrays.get(tensor as usize)?)?;
        let offset = usize::try_from(self.number(addr.offset).ok().filter(|_| addr.gather.is_none())?).ok()?;
        let element = bytes.get(offset..)?.get(..ty.size() as usize)?;
        let mut raw = [0; 8];
        raw[..element.len()].copy_from_slice(element);
        Some(arith::widen(ty, u64::from_le_bytes(raw)))
    }

    fn stride(&self, stride: Stride) -> Option<i64> {
        match stride {
            Stride::Const(bytes) => Some(bytes),
            Stride::Reg(reg) => self.number(reg).ok(),
        }
    }

    fn anywhere(&mut self, addr: &Addr, writes: Writes) {
        if let Base::Tensor(tensor) = addr.base {
            self.touched.add(tensor, writes, None);
        }
    }

    /// Elements of all lanes.
    fn along(&mut self, addr: &Addr, writes: Writes, count: u64, ty: MemTy) {
        let by = self.stride(addr.stride);
        match by {
            Some(0) => self.touch(addr, writes, (1, 1), ([None, None], ty)),
            _ => self.touch(addr, writes, (1, count), ([None, by], ty)),
        }
    }

    /// A matrix of elements with bytes from row to row and from column to column, where these are known; of one row or
    /// one column nobody has to know them.
    fn touch(&mut self, addr: &Addr, writes: Writes, (rows, cols): (u64, u64), (by, ty): ([Option<i64>; 2], MemTy)) {
        let Base::Tensor(tensor) = addr.base else { return };
        let step = |count: u64, by: Option<i64>| if count <= 1 { Some((count, 0)) } else { Some((count, by?)) };
        let matrix = || {
            let offset = self.number(addr.offset).ok().filter(|_| addr.gather.is_none())?;
            Some(Matrix { offset, rows: step(rows, by[0])?, cols: step(cols, by[1])?, size: ty.size() })
        };
        self.touched.add(tensor, writes, matrix());
    }

    fn region(&mut self, region: &Region) -> Result<(), Exit> {
        region.iter().try_for_each(|stmt| self.statement(stmt))
    }

    fn statement(&mut self, stmt: &Stmt) -> Result<(), Exit> {
        self.fuel = self.fuel.checked_sub(1).ok_or(Unknown::Long)?;
        let ty = |r: &Reg| self.func.regs[*r].ty;
        let (dst, bits) = match &stmt.op {
            Op::Const { dst, bits } => (*dst, Some(if ty(dst) == LTy::I64 { *bits } else { u64::from(*bits as u32) })),
            Op::Unary { dst, op, a } => (*dst, self.regs[*a].map(|a| arith::unary(*op, ty(dst), a))),
            Op::Binary { dst, op, a, b } => {
                (*dst, self.regs[*a].zip(self.regs[*b]).map(|(a, b)| arith::binary(*op, ty(dst), a, b)))
            }
            Op::Fma { dst, .. } => (*dst, None),
            Op::Compare { dst, op, a, b } => {
                let both = self.regs[*a].zip(self.regs[*b]);
                (*dst, both.map(|(x, y)| u64::from(arith::compare(*op, ty(a), x, y))))
            }
            Op::Select { dst, cond, a, b } => {
                (*dst, self.regs[*cond].and_then(|c| self.regs[if c != 0 { *a } else { *b }]))
            }
            Op::Cast { dst, op, a } => (*dst, self.regs[*a].map(|x| arith::cast(*op, ty(a), x))),
            Op::Get { dst, var } => (*dst, self.vars[*var]),
            Op::Set { var, value } => {
                self.vars[*var] = self.regs[*value];
                return Ok(());
            }
            Op::Load { dst, ty, addr } => {
                self.touch(addr, false, (1, 1), ([None, None], *ty));
                (*dst, self.element(*ty, addr))
            }
            // It stands in lanes.
            Op::Nibble { dst, .. } => (*dst, None),
            Op::Atomic(a) => {
                for writes in [false, true] {
                    self.touch(&a.addr, writes, (1, 1), ([None, None], a.ty));
                }
                (a.dst, None)
            }
            // Nothing is missing in a launch that succeeds.
            Op::Gather(g) => {
                let (rows, cols) = (self.extent(g.rows)?, self.extent(g.cols)?);
                let by = |(row, col): (i64, i64)| [Some(row), Some(col)];
                self.anywhere(&g.table, false);
                self.touch(&g.index, false, (rows, cols), (by(g.index_strides), MemTy::I32));
                if let Some((addr, strides)) = &g.plus {
                    self.touch(addr, false, (rows, cols), (by(*strides), MemTy::I32));
                }
                self.touch(&g.d, true, (rows, cols), (by(g.d_strides), g.ty));
                (g.dst, Some(-1i64 as u64))
            }
            Op::Store { ty, addr, .. } => {
                self.touch(addr, true, (1, 1), ([None, None], *ty));
                return Ok(());
            }
            Op::Fetch { .. } | Op::Join { .. } | Op::Watch(_) => return Ok(()),
            // Comparisons are no operations on elements. Lists are in tiles, as a rule.
            Op::Sort(s) => {
                [&s.a, &s.index].into_iter().for_each(|addr| self.anywhere(addr, false));
                self.anywhere(&s.d, true);
                return Ok(());
            }
            Op::Merge(m) => {
                self.anywhere(&m.d, true);
                match &m.lists {
                    Lists::Each(all) => all.iter().for_each(|list| self.anywhere(&list.at, false)),
                    Lists::Runs { all, .. } => [false, true].into_iter().for_each(|w| self.anywhere(&all.at, w)),
                }
                return Ok(());
            }
            Op::Print { .. } => return Ok(()),
            Op::For(f) => return self.counted(f),
            Op::Lanes(lanes) => {
                let (lane, count) = (self.lane(lanes), self.extent(lanes.count)?);
                self.work += lane.times(count);
                for stmt in &lanes.body {
                    match &stmt.op {
                        Op::Load { ty, addr, .. } => self.along(addr, false, count, *ty),
                        Op::Store { ty, addr, .. } => self.along(addr, true, count, *ty),
                        Op::Nibble { addr, .. } => {
                            self.touch(addr, false, (1, count.div_ceil(8)), ([None, Some(4)], MemTy::I32));
                        }
                        Op::Join { ty, addr, .. } => {
                            self.touch(addr, false, (1, PARTIALS as u64), ([None, Some(i64::from(ty.size()))], *ty));
                        }
                        _ => {}
                    }
                }
                return Ok(());
            }
            Op::If(i) => return self.region(if self.truth(i.cond)? { &i.then } else { &i.els }),
            Op::While(w) => loop {
                let turn = self.region(&w.head).and_then(|()| match self.truth(w.cond)? {
                    true => self.region(&w.body),
                    false => Err(Exit::Break(w.label)),
                });
                match turn {
                    Err(Exit::Break(label)) if label == w.label => return Ok(()),
                    Err(Exit::Continue(label)) if label == w.label => {}
                    other => other?,
                }
            },
            Op::Scope(s) => {
                return match self.region(&s.body) {
                    Err(Exit::Break(label)) if label == s.label => Ok(()),
                    other => other,
                };
            }
            Op::Break(label) | Op::Leave(label) => return Err(Exit::Break(*label)),
            Op::Continue(label) => return Err(Exit::Continue(*label)),
            Op::Contract(c) => {
                let (m, n, k) = (self.extent(c.m)?, self.extent(c.n)?, self.extent(c.k)?);
                let by = |count: &Self, (row, col): (Stride, Stride)| [count.stride(row), count.stride(col)];
                let (a, b, d) = (by(self, c.a_strides), by(self, c.b_strides), by(self, c.d_strides));
                self.touch(&c.a, false, (m, k), (a, c.ab_ty));
                self.touch(&c.b, false, (k, n), (b, c.ab_ty));
                self.touch(&c.d, true, (m, n), (d, c.d_ty));
                if let Start::At { addr, row, col, ty } = &c.start {
                    let by = by(self, (*row, *col));
                    self.touch(addr, false, (m, n), (by, *ty));
                }
                let steps = m.saturating_mul(n).saturating_mul(k);
                let operations = steps.saturating_mul(2);
                self.work += match c.ab_ty.reg() {
                    LTy::F32 => {
                        let of = |ty: MemTy| if c.ab_ty == ty { operations } else { 0 };
                        let (product_bf16, product_f16) = (of(MemTy::BF16), of(MemTy::F16));
                        OpCount { product_flops: operations, product_bf16, product_f16, ..OpCount::default() }
                    }
                    _ => OpCount { product_ints: operations, ..OpCount::default() },
                };
                return Ok(());
            }
            Op::Reduce(r) => {
                let (rows, cols) = (self.extent(r.rows)?, self.extent(r.cols)?);
                self.touch(&r.a, false, (rows, cols), ([Some(r.a_strides.0), Some(r.a_strides.1)], r.ty));
                self.touch(&r.d, true, (rows, 1), ([Some(r.d_stride), None], r.ty));
                let joined = rows.saturating_mul(cols);
                self.work += one(r.ty.reg()).times(joined);
                return Ok(());
            }
            // Checks of what is in memory hold in a launch that succeeds.
            Op::Check { cond, .. } => match self.regs[*cond] {
                Some(0) => return Err(Unknown::Fails.into()),
                _ => return Ok(()),
            },
        };
        self.work += self.operation(&stmt.op);
        self.regs[dst] = bits;
        Ok(())
    }

    fn counted(&mut self, f: &For) -> Result<(), Exit> {
        let (mut index, hi) = (self.number(f.lo)?, self.number(f.hi)?);
        while index < hi {
            self.regs[f.index] = Some(index as u64);
            match self.region(&f.body) {
                Err(Exit::Break(label)) if label == f.label => break,
                Err(Exit::Continue(label)) if label == f.label => {}
                other => other?,
            }
            index = index.wrapping_add(f.step);
        }
        Ok(())
    }

    fn lane(&self, lanes: &Lanes) -> OpCount {
        let mut work = OpCount::default();
        lanes.body.iter().for_each(|stmt| work += self.operation(&stmt.op));
        work
    }

    /// What a statement computes, loops and memory aside.
    fn operation(&self, op: &Op) -> OpCount {
        let ty = |r: &Reg| self.func.regs[*r].ty;
        match op {
            Op::Unary { op: UnOp::RoundF16 | UnOp::RoundBf16, .. } => OpCount::default(),
            Op::Unary { dst, .. } | Op::Binary { dst, .. } => one(ty(dst)),
            Op::Fma { .. } => one(LTy::F32).times(2),
            Op::Join { ty, .. } => one(ty.reg()),
            _ => OpCount::default(),
        }
    }
}

/// One operation of a type.
fn one(ty: LTy) -> OpCount {
    match ty {
        LTy::F32 => OpCount { flops: 1, ..OpCount::default() },
        LTy::I32 => OpCount { ints: 1, ..OpCount::default() },
        LTy::I64 | LTy::Bool => OpCount::default(),
    }
}

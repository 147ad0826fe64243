//! When rows of a loop nest touch nothing that another row writes.

use ptoc_ir::loops::{Addr, Base, BinOp, Func, LTy, Op, PARTIALS, Reg, Stmt, Stride, operands};
use rustc_hash::{FxHashMap, FxHashSet};

/// What an address moves by from row to row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum RowStride {
    Const(i64),
    /// A register from outside the loop, times a number.
    Reg(Reg, i64),
}

/// A register of the loop as a function of the row.
#[derive(Clone, Copy, Debug)]
struct Linear {
    /// Its value in row 0, where that is known.
    first: Option<i64>,
    step: RowStride,
}

/// An access of a row: all of its lanes.
pub(crate) struct RowAccess<'a> {
    addr: &'a Addr,
    /// Bytes of a lane's part; of partials all of them.
    width: i64,
    writes: bool,
}

impl<'a> RowAccess<'a> {
    pub(crate) fn of(stmt: &'a Stmt) -> Option<RowAccess<'a>> {
        match &stmt.op {
            Op::Load { addr, ty, .. } => Some(RowAccess { addr, width: i64::from(ty.size()), writes: false }),
            Op::Store { addr, ty, .. } => Some(RowAccess { addr, width: i64::from(ty.size()), writes: true }),
            Op::Join { addr, ty, .. } => {
                Some(RowAccess { addr, width: i64::from(ty.size()) * PARTIALS as i64, writes: true })
            }
            _ => None,
        }
    }

    fn base(&self) -> Base {
        self.addr.base
    }

    /// Bytes from lane to lane, where they are known.
    fn lane(&self) -> Option<i64> {
        match self.addr.stride {
            Stride::Const(n) => Some(n),
            Stride::Reg(_) => None,
        }
    }
}

/// `(rows - 1) * self.rows + (cols - 1) * self.cols + self.plus` is at most `self.limit`, times the register, if there
/// is one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Condition {
    pub(crate) rows: i64,
    pub(crate) cols: i64,
    pub(crate) plus: i64,
    pub(crate) limit: i64,
    pub(crate) limit_reg: Option<Reg>,
}

/// The registers of a loop over rows.
pub(crate) struct Rows<'a> {
    func: &'a Func,
    /// Bits of registers from outside.
    known: &'a dyn Fn(Reg) -> Option<i64>,
    /// Registers of the loop.
    made: FxHashSet<Reg>,
    linear: FxHashMap<Reg, Linear>,
    /// Registers that differ from row to row, or from lane to lane.
    varying: FxHashSet<Reg>,
    constants: FxHashMap<Reg, i64>,
    /// The first of those that are computed alike.
    same: FxHashMap<(BinOp, Reg, Reg), Reg>,
    alias: FxHashMap<Reg, Reg>,
}

impl<'a> Rows<'a> {
    /// `lo` is the first row, if it is known.
    pub(crate) fn new(func: &'a Func, index: Reg, lo: Option<i64>, known: &'a dyn Fn(Reg) -> Option<i64>) -> Rows<'a> {
        let mut rows = Rows {
            func,
            known,
            made: FxHashSet::default(),
            linear: FxHashMap::default(),
            varying: FxHashSet::default(),
            constants: FxHashMap::default(),
            same: FxHashMap::default(),
            alias: FxHashMap::default(),
        };
        rows.linear.insert(index, Linear { first: lo, step: RowStride::Const(1) });
        rows.varying.insert(index);
        rows.made.insert(index);
        rows
    }

    fn varies(&self, reg: Reg) -> bool {
        self.varying.contains(&reg)
    }

    /// The value of a register, where it is known and the same in all rows.
    pub(crate) fn constant(&self, reg: Reg) -> Option<i64> {
        self.constants.get(&reg).copied().or_else(|| (self.known)(reg))
    }

    fn canonical(&self, reg: Reg) -> Reg {
        self.alias.get(&reg).copied().unwrap_or(reg)
    }

    fn linear(&self, reg: Reg) -> Option<Linear> {
        match self.linear.get(&reg) {
            Some(linear) => Some(*linear),
            None if self.varies(reg) => None,
            None => Some(Linear { first: self.constant(reg), step: RowStride::Const(0) }),
        }
    }

    /// Takes in statements of the loop, or of its lanes.
    pub(crate) fn statements(&mut self, stmts: &[Stmt]) {
        for stmt in stmts {
            let (inputs, dst) = operands(&stmt.op);
            let Some(dst) = dst else { continue };
            self.made.insert(dst);
            match stmt.op {
                Op::Const { bits, .. } => {
                    let bits = if self.func.regs[dst].ty == LTy::I64 { bits as i64 } else { bits as u32 as i64 };
                    // Constants of one value are one.
                    let first = self.constants.iter().find(|(_, n)| **n == bits).map(|(reg, _)| *reg);
                    if let Some(first) = first.filter(|r| self.func.regs[*r].ty == self.func.regs[dst].ty) {
                        let first = self.canonical(first);
                        self.alias.insert(dst, first);
                    }
                    self.constants.insert(dst, bits);
                }
                // What a variable holds does not change in the loop; what is loaded may.
                Op::Get { .. } => {}
                Op::Load { .. } => {
                    self.varying.insert(dst);
                }
                Op::Binary { op, a, b, .. } if self.func.regs[dst].ty == LTy::I64 => self.binary(dst, op, a, b),
                _ if inputs.into_iter().flatten().any(|r| self.varies(r)) => {
                    self.varying.insert(dst);
                }
                _ => {}
            }
        }
    }

    fn binary(&mut self, dst: Reg, op: BinOp, a: Reg, b: Reg) {
        let (a, b) = (self.canonical(a), self.canonical(b));
        if self.varies(a) || self.varies(b) {
            self.varying.insert(dst);
        }
        if let Some(first) = self.same.get(&(op, a, b)) {
            let first = *first;
            self.alias.insert(dst, first);
            if let Some(linear) = self.linear.get(&first).copied() {
                self.linear.insert(dst, linear);
            }
            return;
        }
        self.same.insert((op, a, b), dst);
        let (Some(x), Some(y)) = (self.linear(a), self.linear(b)) else { return };
        let both = |f: fn(i64, i64) -> Option<i64>| x.first.zip(y.first).and_then(|(x, y)| f(x, y));
        let made = match (op, x.step, y.step) {
            (BinOp::Add, step, RowStride::Const(0)) | (BinOp::Add, RowStride::Const(0), step) => {
                Some(Linear { first: both(i64::checked_add), step })
            }
            (BinOp::Add, RowStride::Const(s), RowStride::Const(t)) => {
                s.checked_add(t).map(|s| Linear { first: both(i64::checked_add), step: RowStride::Const(s) })
            }
            (BinOp::Sub, step, RowStride::Const(0)) => Some(Linear { first: both(i64::checked_sub), step }),
            (BinOp::Mul, RowStride::Const(s), RowStride::Const(0)) => self.times(s, y, b, both(i64::checked_mul)),
            (BinOp::Mul, RowStride::Const(0), RowStride::Const(t)) => self.times(t, x, a, both(i64::checked_mul)),
            _ => None,
        };
        if let Some(linear) = made {
            self.linear.insert(dst, linear);
        }
    }

    /// A step times what is the same in all rows.
    fn times(&self, step: i64, by: Linear, reg: Reg, first: Option<i64>) -> Option<Linear> {
        let step = match by.first {
            Some(n) => RowStride::Const(step.checked_mul(n)?),
            None if step == 0 => RowStride::Const(0),
            // A register of the loop is not there before it.
            None if self.made_here(reg) => return None,
            None => RowStride::Reg(reg, step),
        };
        Some(Linear { first, step })
    }

    /// What has to hold so that no row touches what another writes; `None` if that is not to be had.
    pub(crate) fn conditions(&self, accesses: &[RowAccess<'_>]) -> Option<Vec<Condition>> {
        let mut all = Vec::new();
        let mut add = |c: Condition| {
            if !all.contains(&c) {
                all.push(c);
            }
        };
        for (n, store) in accesses.iter().enumerate().filter(|(_, a)| a.writes) {
            add(self.apart(store)?);
            for (_, other) in accesses.iter().enumerate().filter(|(k, o)| *k != n && o.base() == store.base()) {
                if self.identical(store, other) {
                    continue;
                }
                add(self.disjoint(store, other)?);
            }
        }
        Some(all)
    }

    fn offset(&self, access: &RowAccess<'_>) -> Option<Linear> {
        if access.addr.gather.is_some() {
            return None;
        }
        self.linear(self.canonical(access.addr.offset))
    }

    /// The same bytes in each lane of each row.
    fn identical(&self, a: &RowAccess<'_>, b: &RowAccess<'_>) -> bool {
        let offsets = |x: Linear, y: Linear| x.first.is_some() && x.first == y.first && x.step == y.step;
        let same = self.canonical(a.addr.offset) == self.canonical(b.addr.offset)
            || self.offset(a).zip(self.offset(b)).is_some_and(|(x, y)| offsets(x, y));
        same && a.addr.stride == b.addr.stride
            && a.width == b.width
            && a.addr.gather.is_none()
            && b.addr.gather.is_none()
    }

    /// Rows of a store do not overlap: each lies within the step to the next, or within the step from lane to lane.
    fn apart(&self, store: &RowAccess<'_>) -> Option<Condition> {
        let plus = store.width;
        let none = Condition { rows: 0, cols: 0, plus, limit: 0, limit_reg: None };
        match (self.offset(store)?.step, store.addr.stride) {
            (RowStride::Const(row), Stride::Const(lane)) if row > 0 && lane >= 0 && row >= lane => {
                Some(Condition { cols: lane, limit: row, ..none })
            }
            (RowStride::Const(row), Stride::Const(lane)) if row > 0 && lane > row => {
                Some(Condition { rows: row, limit: lane, ..none })
            }
            (RowStride::Reg(reg, by), Stride::Const(lane)) if by > 0 && lane >= 0 => {
                Some(Condition { cols: lane, limit: by, limit_reg: Some(reg), ..none })
            }
            (RowStride::Const(row), Stride::Reg(lane)) if row > 0 && !self.made_here(lane) => {
                Some(Condition { rows: row, limit: 1, limit_reg: Some(lane), ..none })
            }
            _ => None,
        }
    }

    /// Whether the access moves by one element from row to row.
    pub(crate) fn neighbours(&self, access: &RowAccess<'_>) -> bool {
        self.offset(access).is_some_and(|offset| offset.step == RowStride::Const(access.width))
    }

    /// Whether it is a register of the loop.
    pub(crate) fn made_here(&self, reg: Reg) -> bool {
        self.made.contains(&reg)
    }

    /// All bytes of one come before all bytes of the other.
    fn disjoint(&self, a: &RowAccess<'_>, b: &RowAccess<'_>) -> Option<Condition> {
        let (x, y) = (self.offset(a)?, self.offset(b)?);
        let (first, second) = (x.first?, y.first?);
        match first < second {
            true => self.before((x, a), (y, b), second.checked_sub(first)?),
            false => self.before((y, b), (x, a), first.checked_sub(second)?),
        }
    }

    /// All bytes of the first lie within so many from where it begins.
    fn before(
        &self,
        (low, access): (Linear, &RowAccess<'_>),
        (high, other): (Linear, &RowAccess<'_>),
        limit: i64,
    ) -> Option<Condition> {
        let (RowStride::Const(rows), RowStride::Const(others)) = (low.step, high.step) else { return None };
        let (cols, lanes) = (access.lane()?, other.lane()?);
        // What moves down may begin anywhere.
        if rows < 0 || others < 0 || cols < 0 || lanes < 0 {
            return None;
        }
        Some(Condition { rows, cols, plus: access.width, limit, limit_reg: None })
    }
}

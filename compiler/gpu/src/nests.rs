//! Loops over rows around `Lanes`: rows and lanes are spread over the threads at once.
//!
//! Rows may be spread where no row touches what another writes. That is so if conditions on the extents hold that
//! follow from the addresses ([`Rows::conditions`]): those that are not known hold or do not when the kernel runs, and
//! then rows are taken in turn, with a barrier after each.

use crate::dependences;
use crate::emit::{Emit, Val};
use crate::lanes::{self, Row};
use crate::memory::Index;
use crate::ops::pure;
use crate::rows::{Condition, RowAccess, Rows};
use crate::transpose::Turning;
use ptoc_ir::loops::{For, LTy, Lanes, Op, Stmt, operands};
use ptoc_ptx::{Arith, Cmp, Op as Ptx, Round, Src, Type, VReg};

/// Extents from which on products of them are not formed.
const LARGE: u64 = 1 << 31;

/// More lanes than this have all threads.
const MOST_LANES: i64 = 1 << 20;

/// A thread gets 2^2 vectors of a row, where a row has as many for a whole warp (of 2^5).
const SEVERAL: u64 = 2;
const WARP: u64 = 5;

/// Whether rows may be spread.
#[derive(Clone, Copy)]
enum Spread {
    Always,
    If(VReg),
}

/// How the threads of a CTA are laid over rows and lanes.
struct Threads {
    /// The thread in its row.
    x: Index,
    /// Its row.
    y: VReg,
    /// Threads of a row, and rows of threads.
    wide: Src,
    tall: Src,
    /// Whether the thread has a row at all, as a predicate.
    works: VReg,
}

impl Emit<'_> {
    /// A loop whose only effect is `Lanes`; false if it is none, or its rows depend on each other.
    pub(crate) fn nest(&mut self, f: &For) -> bool {
        let Some((Stmt { op: Op::Lanes(lanes), .. }, before)) = f.body.split_last() else { return false };
        if f.step != 1 || !before.iter().all(|s| pure(&s.op)) {
            return false;
        }
        let Some((conditions, constant, turning)) = self.independent(f, before, lanes) else { return false };
        let (lo, hi) = (self.src(f.lo), self.src(f.hi));
        let count = match constant {
            Some(n) => Src::Imm(n as u64),
            None => self.src(lanes.count),
        };
        let Some(spread) = self.holds(&conditions, lo, hi, count) else { return false };
        self.order(&dependences::of(&Op::Lanes(lanes.clone()), self.keys()));
        let range = (lo, hi, count);
        // Loop distribution is for rows that are independent in every launch.
        if let (Spread::Always, Some([first, second])) = (spread, self.apart(lanes, self.intervals[f.hi].hi)) {
            self.spread(f, before, &first, range, spread);
            self.b.push(Ptx::Bar(0), &[], &[]);
            self.spread(f, before, &second, range, spread);
            return true;
        }
        match (turning, spread) {
            (Some(turning), Spread::Always) => self.turned(f, before, lanes, range, &turning),
            (Some(turning), Spread::If(so)) => {
                let (other, done) = (self.b.label(), self.b.label());
                self.b.bra_if(so, false, other);
                self.turned(f, before, lanes, range, &turning);
                self.b.bra(done);
                self.b.place(other);
                self.spread(f, before, lanes, range, spread);
                self.b.place(done);
            }
            (None, _) => self.spread(f, before, lanes, range, spread),
        }
        true
    }

    /// What has to hold so that rows are independent; the number of lanes, if it is known; whether the nest turns a
    /// matrix.
    fn independent(
        &self,
        f: &For,
        before: &[Stmt],
        lanes: &Lanes,
    ) -> Option<(Vec<Condition>, Option<i64>, Option<Turning>)> {
        let known = |reg| self.known(reg).map(|bits| bits as i64);
        let mut rows = Rows::new(self.func, f.index, known(f.lo), &known);
        rows.statements(before);
        rows.statements(&lanes.body);
        let count = rows.constant(lanes.count);
        // All rows have the same lanes.
        if count.is_none() && rows.made_here(lanes.count) {
            return None;
        }
        let accesses: Vec<RowAccess<'_>> = lanes.body.iter().filter_map(RowAccess::of).collect();
        Some((rows.conditions(&accesses)?, count, Turning::of(lanes, &rows)))
    }

    /// Emits the conditions; `None` if one is known not to hold.
    fn holds(&mut self, conditions: &[Condition], lo: Src, hi: Src, count: Src) -> Option<Spread> {
        let known = |src: Src| if let Src::Imm(bits) = src { Some(bits as i64) } else { None };
        let rows = known(lo).zip(known(hi)).map(|(lo, hi)| (hi.saturating_sub(lo) - 1).max(0));
        let cols = known(count).map(|n| (n - 1).max(0));
        let (mut row_reg, mut col_reg) = (None, None);
        let mut all: Option<VReg> = None;
        for c in conditions {
            let by_rows = c.rows != 0 && rows.is_none();
            let by_cols = c.cols != 0 && cols.is_none();
            if !by_rows && !by_cols && c.limit_reg.is_none() {
                let term = |n: Option<i64>, by: i64| i128::from(n.unwrap_or(0)) * i128::from(by);
                if term(rows, c.rows) + term(cols, c.cols) + i128::from(c.plus) > i128::from(c.limit) {
                    return None;
                }
                continue;
            }
            let mut sum = Src::Imm(c.plus as u64);
            for (by, extent, is_row) in [(c.rows, rows, true), (c.cols, cols, false)] {
                let last = match extent {
                    _ if by == 0 => continue,
                    Some(n) => Src::Imm(n as u64),
                    None if is_row => (*row_reg.get_or_insert_with(|| self.last(hi, Some(lo)))).into(),
                    None => (*col_reg.get_or_insert_with(|| self.last(count, None))).into(),
                };
                sum = self.b.arith(Arith::MadLo, Type::S64, &[last, Src::Imm(by as u64), sum]).into();
            }
            let limit = match c.limit_reg {
                Some(reg) => {
                    let reg = self.src(reg);
                    Src::Reg(self.b.arith(Arith::MulLo, Type::S64, &[reg, Src::Imm(c.limit as u64)]))
                }
                None => Src::Imm(c.limit as u64),
            };
            let holds = self.b.setp(Cmp::Le, Type::S64, sum, limit);
            all = Some(self.both(all, holds));
        }
        // Extents without bounds might wrap.
        for last in [row_reg, col_reg].into_iter().flatten() {
            let small = self.b.setp(Cmp::Lt, Type::U64, last, Src::Imm(LARGE));
            all = Some(self.both(all, small));
        }
        Some(all.map_or(Spread::Always, Spread::If))
    }

    /// Both predicates, where there is a first.
    pub(crate) fn both(&mut self, a: Option<VReg>, b: VReg) -> VReg {
        a.map_or(b, |a| self.b.arith(Arith::And, Type::Pred, &[a.into(), b.into()]))
    }

    /// `end - begin - 1`, at least 0.
    fn last(&mut self, end: Src, begin: Option<Src>) -> VReg {
        let mut n = self.b.arith(Arith::Sub, Type::S64, &[end, Src::Imm(1)]);
        if let Some(begin) = begin {
            n = self.b.arith(Arith::Sub, Type::S64, &[n.into(), begin]);
        }
        self.b.arith(Arith::Max, Type::S64, &[n.into(), Src::Imm(0)])
    }

    /// The loop: threads are rows of a power of two of lanes, a fourth of those that there are.
    fn spread(&mut self, f: &For, before: &[Stmt], lanes: &Lanes, (lo, hi, count): (Src, Src, Src), spread: Spread) {
        let most = u64::from(self.threads.ilog2());
        let rows = match (lo, hi) {
            (Src::Imm(lo), Src::Imm(hi)) => (hi as i64).saturating_sub(lo as i64),
            _ => self.intervals[f.hi].hi,
        };
        let lanes::Sharing { width, owners } = lanes::Sharing::new(lanes, rows.max(1) as u64, self.threads);
        let joins = owners.is_some();
        let by_width = u64::from(width.ilog2());
        // What is known of the lanes of a tile is how many there are at most.
        let extent = match count {
            Src::Imm(_) => count,
            _ => match self.intervals[lanes.count].hi {
                n @ 1..=MOST_LANES => Src::Imm(n as u64),
                _ => count,
            },
        };
        let shift: Src = match (owners, extent) {
            (Some(owners), _) => Src::Imm(u64::from(owners.ilog2())),
            (None, Src::Imm(n)) => {
                let bits = u64::from((n as i64).clamp(1, MOST_LANES).unsigned_abs().next_power_of_two().ilog2());
                let bits = bits.saturating_sub(by_width);
                Src::Imm(bits.saturating_sub(SEVERAL).max(bits.min(WARP)).min(most))
            }
            (None, count) => {
                let last = self.last(count, None);
                let last = self.b.arith(Arith::Min, Type::U64, &[last.into(), Src::Imm(MOST_LANES as u64)]);
                let last = self.low(last);
                let zeros = self.b.arith(Arith::Clz, Type::B32, &[last.into()]);
                let bits = self.b.arith(Arith::Sub, Type::S32, &[Src::Imm(32 - by_width), zeros.into()]);
                let bits = self.b.arith(Arith::Max, Type::S32, &[bits.into(), Src::Imm(0)]);
                let few = self.b.arith(Arith::Min, Type::S32, &[bits.into(), Src::Imm(WARP)]);
                let less = self.b.arith(Arith::Sub, Type::S32, &[bits.into(), Src::Imm(SEVERAL)]);
                let bits = self.b.arith(Arith::Max, Type::S32, &[less.into(), few.into()]);
                Src::Reg(self.b.arith(Arith::Min, Type::S32, &[bits.into(), Src::Imm(most)]))
            }
        };
        // One row at a time has all threads, or as many as there are partials.
        let shift = match spread {
            Spread::If(so) if !joins => Src::Reg(self.b.selp(Type::B32, shift, Src::Imm(most), so)),
            _ => shift,
        };
        let wide = self.shifted(Arith::Shl, Src::Imm(1), shift);
        let mut tall = self.shifted(Arith::Shr, Src::Imm(u64::from(self.threads)), shift);
        if let (Spread::If(so), true) = (spread, joins) {
            tall = Src::Reg(self.b.selp(Type::B32, tall, Src::Imm(1), so));
        }
        let mask = match wide {
            Src::Imm(n) => Src::Imm(n - 1),
            wide => Src::Reg(self.b.arith(Arith::Sub, Type::U32, &[wide, Src::Imm(1)])),
        };
        let x = self.b.arith(Arith::And, Type::B32, &[self.tid.into(), mask]);
        let y = self.b.arith(Arith::Shr, Type::U32, &[self.tid.into(), shift]);
        let works = self.b.setp(Cmp::Lt, Type::U32, y, tall);
        let [x64, y64] = [x, y].map(|n| self.b.cvt(Type::U64, Type::U32, Round::None, n));
        let [wide, tall] = [wide, tall].map(|n| match n {
            Src::Reg(reg) => Src::Reg(self.b.cvt(Type::U64, Type::U32, Round::None, reg)),
            n => n,
        });

        let base = self.variable(LTy::I64, lo);
        let at_once = match (wide, extent) {
            (Src::Imm(wide), Src::Imm(extent)) if !joins => {
                let vectors = extent.div_ceil(wide * width).max(1);
                let turns = (rows.max(1) as u64).div_ceil(u64::from(self.threads) / wide.min(u64::from(self.threads)));
                (lanes::at_a_time(lanes, width) / vectors).min(turns).max(1)
            }
            _ => 1,
        };
        let threads = Threads { x: (x, x64), y: y64, wide, tall, works };
        if at_once > 1 {
            // Rows that depend on each other are taken one by one.
            let single = self.b.label();
            if let Spread::If(so) = spread {
                self.b.bra_if(so, false, single);
            }
            self.rows(f, before, lanes, (base, hi, count), &threads, (width, at_once));
            self.b.place(single);
        }
        let (head, skip, exit) = (self.b.label(), self.b.label(), self.b.label());
        self.b.place(head);
        let over = self.b.setp(Cmp::Ge, Type::S64, base, hi);
        self.b.bra_if(over, true, exit);
        let row = self.b.arith(Arith::Add, Type::S64, &[base.into(), y64.into()]);
        let there = self.b.setp(Cmp::Lt, Type::S64, row, hi);
        let active = self.b.arith(Arith::And, Type::Pred, &[there.into(), works.into()]);
        self.b.bra_if(active, false, skip);
        let row = self.enter_rows(f, before, row, Src::Imm(1), 1);
        self.lane_loop(lanes, width, &row, (x, x64), count, wide);
        self.b.place(skip);
        if let Spread::If(so) = spread {
            let guard = self.b.guard.replace((so, false));
            self.b.push(Ptx::Bar(0), &[], &[]);
            self.b.guard = guard;
        }
        self.advance(base, Type::S64, tall);
        self.b.bra(head);
        self.b.place(exit);
    }

    /// Rows of a thread, so many at a time, as long as all threads have as many.
    fn rows(
        &mut self,
        f: &For,
        before: &[Stmt],
        lanes: &Lanes,
        (base, hi, count): (VReg, Src, Src),
        threads: &Threads,
        (width, at_once): (u64, u64),
    ) {
        let (head, skip, exit) = (self.b.label(), self.b.label(), self.b.label());
        let step = match threads.tall {
            Src::Imm(n) => Src::Imm(n * at_once),
            tall => self.u64(Arith::MulLo, tall, Src::Imm(at_once)).into(),
        };
        self.b.place(head);
        let end = self.b.arith(Arith::Add, Type::S64, &[base.into(), step]);
        let over = self.b.setp(Cmp::Gt, Type::S64, end, hi);
        self.b.bra_if(over, true, exit);
        self.b.bra_if(threads.works, false, skip);
        let first = self.b.arith(Arith::Add, Type::S64, &[base.into(), threads.y.into()]);
        let rows = self.enter_rows(f, before, first, threads.tall, at_once);
        self.lane_loop(lanes, width, &rows, threads.x, count, threads.wide);
        self.b.place(skip);
        self.b.set(base, Type::B64, end);
        self.b.bra(head);
        self.b.place(exit);
    }

    /// What the loop computes before its lanes, for some rows, each so far from the one before.
    pub(crate) fn enter_rows(&mut self, f: &For, before: &[Stmt], first: VReg, step: Src, count: u64) -> Vec<Row> {
        let mut row = first;
        let mut rows = Vec::new();
        for n in 0..count {
            if n > 0 {
                row = self.u64(Arith::Add, row, step);
            }
            let mut own = Row::from_iter([(f.index, Val::Reg(row))]);
            self.values[f.index] = Some(Val::Reg(row));
            for stmt in before {
                self.at(stmt.span);
                match stmt.op {
                    Op::Get { dst, var } => self.get(dst, var),
                    ref op => self.compute(op),
                }
                if let Some(dst) = operands(&stmt.op).1
                    && let Some(value) = self.values[dst]
                {
                    own.insert(dst, value);
                }
            }
            rows.push(own);
        }
        rows
    }

    /// A shift of numbers of 32 bits, done here where both are known.
    fn shifted(&mut self, arith: Arith, a: Src, by: Src) -> Src {
        match (a, by) {
            (Src::Imm(a), Src::Imm(by)) => Src::Imm(if arith == Arith::Shl { a << by } else { a >> by }),
            (a, by) => {
                let ty = if arith == Arith::Shl { Type::B32 } else { Type::U32 };
                Src::Reg(self.b.arith(arith, ty, &[a, by]))
            }
        }
    }
}

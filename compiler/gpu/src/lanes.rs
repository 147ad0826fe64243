//! `Lanes`: each lane belongs to one thread. Where memory allows it, a thread has several neighbouring lanes, a vector,
//! whose elements it loads and stores at once.

use crate::dependences;
use crate::emit::{Emit, Val};
use crate::memory::{GpuAddress, Index};
use crate::row_pointers::row_pointer;
use crate::vectors::{Aligned, made_in, width};
use ptoc_ir::loops::{Addr, Base, BinOp, LTy, Lanes, MemTy, Op, PARTIALS, Reg, SharedInfo, Stmt, Stride, operands};
use ptoc_ptx::{Arith, Cmp, Op as Ptx, Round, Src, Type, VReg};
use rustc_hash::FxHashMap;

/// A lane of the thread at hand: so many behind one whose number is in a register, and which of several rows it is of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lane {
    pub(crate) first: Index,
    pub(crate) plus: u64,
    pub(crate) row: usize,
}

/// What registers of a row hold.
pub(crate) type Row = FxHashMap<Reg, Val>;

/// The row of partials of a `Join`, in the registers of the threads that own them. Where its address is computed with
/// each lane, there are no registers, and partials stay in memory.
pub(crate) struct Partials {
    op: BinOp,
    ty: MemTy,
    addr: Addr,
    regs: Vec<VReg>,
    /// The first that the thread owns.
    first: Index,
}

/// The lanes of a thread: vectors of `width` of them, with all other threads' between one and the next, in each of some
/// rows.
pub(crate) struct Walk<'l> {
    pub(crate) lanes: &'l Lanes,
    pub(crate) rows: &'l [Row],
    pub(crate) info: SharedInfo,
    /// Threads that share the lanes.
    pub(crate) threads: Src,
    pub(crate) count: Src,
    pub(crate) width: u64,
    /// The first lane of the next vector.
    pub(crate) lane: VReg,
    /// One for each `Join`, in the order of the body.
    pub(crate) partials: Vec<Partials>,
    /// Rows may be in registers.
    pub(crate) resident: bool,
}

impl Walk<'_> {
    /// Whether no lanes are left behind the last whole vector.
    fn is_whole(&self) -> bool {
        matches!(self.count, Src::Imm(n) if ((n as i64).max(0) as u64).is_multiple_of(self.width)) || self.width == 1
    }
}

/// How lanes are spread over threads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sharing {
    /// Lanes of a vector.
    pub(crate) width: u64,
    /// With joins, the threads that have lanes of a row: each owns as many partials as a vector has lanes.
    pub(crate) owners: Option<u64>,
}

impl Sharing {
    /// For so many rows at once. Lanes with joins have narrower vectors where there are few rows, so that more threads
    /// have some.
    pub(crate) fn new(lanes: &Lanes, rows: u64, threads: u32) -> Sharing {
        let width = width(lanes);
        if !lanes.body.iter().any(|s| matches!(s.op, Op::Join { .. })) {
            return Sharing { width, owners: None };
        }
        let each = (u64::from(threads) / rows.max(1)).max(1);
        let owners = (1 << each.ilog2()).clamp(PARTIALS as u64 / width, PARTIALS as u64);
        Sharing { width: PARTIALS as u64 / owners, owners: Some(owners) }
    }
}

impl Emit<'_> {
    pub(crate) fn lanes(&mut self, lanes: &Lanes) {
        let op = Op::Lanes(Box::new(lanes.clone()));
        let mut touched = dependences::of(&op, self.keys());
        touched.remove(self.untouched(&op));
        self.order(&touched);
        if self.few_lanes(lanes) {
            return;
        }
        if let Some([first, second]) = self.apart(lanes, 1) {
            self.all_lanes(&first);
            self.b.push(Ptx::Bar(0), &[], &[]);
            return self.all_lanes(&second);
        }
        self.all_lanes(lanes);
    }

    /// Two statements in place of one whose lanes are joined and stored as well: where rows are so few that partials
    /// have owners for a part of the threads only, all of them compute what is stored, and some join it afterwards.
    pub(crate) fn apart(&self, lanes: &Lanes, rows: i64) -> Option<[Lanes; 2]> {
        if rows < 1 || rows.saturating_mul(PARTIALS as i64) >= i64::from(self.threads) {
            return None;
        }
        let joins: Vec<usize> =
            (0..lanes.body.len()).filter(|n| matches!(lanes.body[*n].op, Op::Join { .. })).collect();
        let [join] = joins[..] else { return None };
        let Op::Join { ty, addr, value, .. } = lanes.body[join].op else { return None };
        let mut stores = lanes.body.iter().filter_map(|s| match s.op {
            Op::Store { ty, addr, value } => Some((ty, addr, value, s.span)),
            _ => None,
        });
        // What is stored has all bits of what is joined, or of what that is computed from, and stays as it is.
        let (stored, at, same, span) = stores.next()?;
        let exact = stored == ty && (value == same || matches!(ty, MemTy::F32 | MemTy::I32 | MemTy::I64));
        if stores.next().is_some() || !exact || made_in(lanes, at.offset) {
            return None;
        }
        if at.gather.is_some() || !matches!(at.base, Base::Space(_)) || made_in(lanes, addr.offset) {
            return None;
        }
        let (mut first, mut second) = (lanes.clone(), lanes.clone());
        first.body.remove(join);
        let load = Stmt { op: Op::Load { dst: same, ty: stored, addr: at }, span };
        second.body = vec![load];
        second.body.extend(made_of(&lanes.body[..join], value, same)?);
        second.body.push(lanes.body[join].clone());
        Some([first, second])
    }

    /// Lanes over all threads, or over those that own partials.
    fn all_lanes(&mut self, lanes: &Lanes) {
        if self.resident_lanes(lanes) {
            return;
        }
        let Sharing { width, owners } = Sharing::new(lanes, 1, self.threads);
        let count = self.src(lanes.count);
        let exit = self.b.label();
        if let Some(owners) = owners {
            let idle = self.b.setp(Cmp::Ge, Type::U32, self.tid, Src::Imm(owners));
            self.b.bra_if(idle, true, exit);
        }
        let tid = self.b.cvt(Type::U64, Type::U32, Round::None, self.tid);
        let threads = Src::Imm(owners.unwrap_or(u64::from(self.threads)));
        self.lane_loop(lanes, width, &[Row::default()], (self.tid, tid), count, threads);
        self.b.place(exit);
    }

    /// Lanes that are no more than threads: a thread has one, or none.
    fn few_lanes(&mut self, lanes: &Lanes) -> bool {
        let most = self.homes.segments.interval(lanes.count).hi;
        let joins = lanes.body.iter().any(|s| matches!(s.op, Op::Join { .. }));
        if joins || most > i64::from(self.threads) {
            return false;
        }
        let count = self.src(lanes.count);
        let lane = self.b.cvt(Type::U64, Type::U32, Round::None, self.tid);
        let exit = self.b.label();
        let over = self.b.setp(Cmp::Ge, Type::S64, lane, count);
        self.b.bra_if(over, true, exit);
        let info = SharedInfo::new(lanes);
        let rows = &[Row::default()];
        let walk = Walk {
            lanes,
            rows,
            info,
            threads: Src::Imm(1),
            count,
            width: 1,
            lane,
            partials: Vec::new(),
            resident: false,
        };
        self.some(&walk, &[Lane { first: (self.tid, lane), plus: 0, row: 0 }], false);
        self.b.place(exit);
        true
    }

    /// The lanes of one thread, by its number among the `threads` that share them. Several vectors at a time while
    /// there are as many, so that their loads are under way together; then one, then lane by lane.
    pub(crate) fn lane_loop(
        &mut self,
        lanes: &Lanes,
        width: u64,
        rows: &[Row],
        thread: Index,
        count: Src,
        threads: Src,
    ) {
        let first = match width {
            1 => thread.1,
            _ => self.u64(Arith::MulLo, thread.1, Src::Imm(width)),
        };
        let lane = self.variable(LTy::I64, first.into());
        let info = SharedInfo::new(lanes);
        let mut walk = Walk { lanes, rows, info, threads, count, width, lane, partials: Vec::new(), resident: false };
        walk.partials = self.partials(lanes, first, width);
        match self.aligned(lanes, width, rows) {
            Aligned::Always => self.vectors(&walk, true),
            Aligned::Never => self.vectors(&walk, false),
            Aligned::If(aligned) => {
                let (apart, done) = (self.b.label(), self.b.label());
                self.b.bra_if(aligned, false, apart);
                self.vectors(&walk, true);
                self.b.bra(done);
                self.b.place(apart);
                self.vectors(&walk, false);
                self.b.place(done);
            }
        }
        self.leave_partials(&walk);
    }

    /// All vectors of the thread, then the lanes behind the last whole one.
    fn vectors(&mut self, walk: &Walk<'_>, together: bool) {
        let width = walk.width;
        let known = match (walk.count, walk.threads) {
            (Src::Imm(n), Src::Imm(m)) => Some(((n as i64).max(0) as u64, m * width)),
            _ => None,
        };
        let at_a_time = if together || width == 1 { at_a_time(walk.lanes, width) / walk.rows.len() as u64 } else { 1 };
        let at_a_time = at_a_time.min(known.map_or(u64::MAX, |(n, m)| n / m)).max(1);
        let left_by = |turn: u64| known.is_none_or(|(n, m)| n % (m * turn) != 0);
        if at_a_time > 1 {
            self.turns(walk, at_a_time, together);
        }
        if at_a_time == 1 || left_by(at_a_time) {
            self.turns(walk, 1, together);
        }
        if !walk.is_whole() {
            self.rest(walk);
        }
    }

    /// Turns of so many vectors, as long as there are as many.
    fn turns(&mut self, walk: &Walk<'_>, vectors: u64, together: bool) {
        let (head, exit) = (self.b.label(), self.b.label());
        let step = walk.width * vectors;
        let once = matches!((walk.count, walk.threads), (Src::Imm(n), Src::Imm(m)) if n as i64 <= (m * step) as i64);
        if !once {
            self.b.place(head);
        }
        // Lanes that vectors begin at, and how many are between: known distances are displacements of one address.
        let starts: Vec<(VReg, u64)> = match walk.threads {
            Src::Imm(threads) => (0..vectors).map(|n| (walk.lane, n * threads * walk.width)).collect(),
            threads => {
                let mut starts = vec![(walk.lane, 0)];
                while (starts.len() as u64) < vectors {
                    let by = self.times(threads, walk.width);
                    let lane = self.u64(Arith::Add, starts[starts.len() - 1].0, by);
                    starts.push((lane, 0));
                }
                starts
            }
        };
        let last = match starts[starts.len() - 1] {
            (lane, 0) => lane,
            (lane, by) => self.u64(Arith::Add, lane, Src::Imm(by)),
        };
        let over = match walk.width {
            1 => self.b.setp(Cmp::Ge, Type::S64, last, walk.count),
            width => {
                let end = self.u64(Arith::Add, last, Src::Imm(width));
                self.b.setp(Cmp::Gt, Type::S64, end, walk.count)
            }
        };
        self.b.bra_if(over, true, exit);
        let mut all: Vec<(Index, u64)> = Vec::new();
        for (lane, by) in starts {
            let first = match all.last() {
                Some((first, _)) if first.1 == lane => *first,
                _ => (self.low(lane), lane),
            };
            all.push((first, by));
        }
        self.body(walk, &all, walk.width, together);
        // The lanes behind the last whole vector are none of those that are done.
        if !once || !walk.is_whole() {
            let by = self.times(walk.threads, step);
            self.advance(walk.lane, Type::U64, by);
        }
        if !once {
            self.b.bra(head);
        }
        self.b.place(exit);
    }

    /// The lanes of a vector that is not whole. Which partial a lane has is known by its number in the vector, so the
    /// code is that of a vector, each lane under a test.
    fn rest(&mut self, walk: &Walk<'_>) {
        let exit = self.b.label();
        if walk.partials.is_empty() {
            let end = self.u64(Arith::Add, walk.lane, Src::Imm(walk.width - 1));
            let end = self.b.arith(Arith::Min, Type::S64, &[end.into(), walk.count]);
            let lane = self.variable(LTy::I64, walk.lane.into());
            let head = self.b.label();
            self.b.place(head);
            let over = self.b.setp(Cmp::Ge, Type::S64, lane, end);
            self.b.bra_if(over, true, exit);
            let first = (self.low(lane), lane);
            self.body(walk, &[(first, 0)], 1, false);
            self.advance(lane, Type::U64, Src::Imm(1));
            self.b.bra(head);
        } else {
            let first = (self.low(walk.lane), walk.lane);
            for n in 0..walk.width - 1 {
                let lane = self.u64(Arith::Add, walk.lane, Src::Imm(n));
                let over = self.b.setp(Cmp::Ge, Type::S64, lane, walk.count);
                self.b.bra_if(over, true, exit);
                self.some(walk, &[Lane { first, plus: n, row: 0 }], false);
            }
        }
        self.b.place(exit);
    }

    /// A count of threads times a number.
    fn times(&mut self, threads: Src, by: u64) -> Src {
        match threads {
            Src::Imm(n) => Src::Imm(n * by),
            threads if by == 1 => threads,
            threads => self.u64(Arith::MulLo, threads, Src::Imm(by)).into(),
        }
    }

    /// The body for vectors of lanes, which begin so many behind a first one.
    fn body(&mut self, walk: &Walk<'_>, vectors: &[(Index, u64)], width: u64, together: bool) {
        let mut all = Vec::new();
        for row in 0..walk.rows.len() {
            let lanes = |&(first, by): &(Index, u64)| (0..width).map(move |n| Lane { first, plus: by + n, row });
            all.extend(vectors.iter().flat_map(lanes));
        }
        self.some(walk, &all, together && width > 1);
    }

    /// The body for some lanes, statement by statement; with `together`, they are whole vectors.
    pub(crate) fn some(&mut self, walk: &Walk<'_>, all: &[Lane], together: bool) {
        let lanes = walk.lanes;
        // Registers that are the same in all lanes of a row, and those that differ, for each lane.
        let mut rows = walk.rows.to_vec();
        let mut own: Vec<FxHashMap<Reg, Val>> = vec![FxHashMap::default(); all.len()];
        if self.used.contains(&lanes.lane) {
            for (own, lane) in own.iter_mut().zip(all) {
                let number = match lane.plus {
                    0 => lane.first.1,
                    plus => self.u64(Arith::Add, lane.first.1, Src::Imm(plus)),
                };
                own.insert(lanes.lane, Val::Reg(number));
            }
        }
        let mut joins = walk.partials.iter();
        for (stmt, shared) in lanes.body.iter().zip(&walk.info.shared) {
            self.at(stmt.span);
            if walk.resident && self.resident_access(lanes, &stmt.op, &mut own, all) {
                continue;
            }
            match &stmt.op {
                Op::Load { dst, ty, addr } if together && beside(lanes, addr, *ty) => {
                    for (own, lanes) in vectors(&mut own, all, walk.width) {
                        self.enter(&rows[lanes[0].row]);
                        self.lane = Some(lanes[0]);
                        let place = self.address(addr);
                        let values = self.load_vector(*ty, place, walk.width);
                        for (own, value) in own.iter_mut().zip(values) {
                            own.insert(*dst, Val::Reg(value));
                        }
                    }
                    continue;
                }
                Op::Store { ty, addr, value } if together && neighbours(addr, *ty) => {
                    for (own, lanes) in vectors(&mut own, all, walk.width) {
                        self.enter(&rows[lanes[0].row]);
                        let mut values = Vec::new();
                        for own in own.iter() {
                            self.take(own, &[*value]);
                            values.push(self.reg(*value));
                        }
                        self.lane = Some(lanes[0]);
                        let place = self.address(addr);
                        self.store_vector(*ty, place, &values);
                    }
                    continue;
                }
                _ => {}
            }
            let mut read = Vec::new();
            crate::control::reads(&stmt.op, &mut |reg| {
                read.push(reg);
                read.extend(self.rounded.get(&reg));
            });
            let partials = if matches!(stmt.op, Op::Join { .. }) { joins.next() } else { None };
            let mut done = None;
            for (own, lane) in own.iter_mut().zip(all) {
                if *shared && done == Some(lane.row) {
                    continue;
                }
                done = Some(lane.row);
                self.enter(&rows[lane.row]);
                self.lane = Some(*lane);
                self.take(own, &read);
                if let (Op::Join { value, .. }, Some(partials)) = (&stmt.op, partials) {
                    let value = self.src(*value);
                    self.join(partials, lane.plus % walk.width, value);
                    continue;
                }
                self.lane_statement(&stmt.op);
                if let Some(dst) = operands(&stmt.op).1
                    && let Some(value) = self.values[dst]
                {
                    let values = if *shared { &mut rows[lane.row] } else { own };
                    values.insert(dst, value);
                }
            }
        }
        self.lane = None;
    }

    /// The registers of a row become those that the emitter has.
    pub(crate) fn enter(&mut self, row: &Row) {
        for (reg, value) in row {
            self.values[*reg] = Some(*value);
        }
    }

    /// A lane's own values of these registers become those that the emitter has.
    pub(crate) fn take(&mut self, own: &FxHashMap<Reg, Val>, regs: &[Reg]) {
        for reg in regs {
            if let Some(value) = own.get(reg) {
                self.values[*reg] = Some(*value);
            }
        }
    }

    pub(crate) fn lane_statement(&mut self, op: &Op) {
        match op {
            Op::Load { dst, ty, addr } => {
                let place = self.address(addr);
                let value = self.load(*ty, place);
                self.define(*dst, value);
            }
            Op::Store { ty, addr, value } => {
                let place = self.address(addr);
                let value = self.reg(*value);
                self.store(*ty, place, value, None);
            }
            Op::Fetch { .. } => {}
            // The verifier admits nothing but arithmetic beside.
            op => self.compute(op),
        }
    }

    /// The partials that a thread owns, in registers while it has lanes. `first` is the number of the first.
    fn partials(&mut self, lanes: &Lanes, first: VReg, width: u64) -> Vec<Partials> {
        let mut all = Vec::new();
        let first = (self.low(first), first);
        for stmt in &lanes.body {
            let Op::Join { op, ty, addr, .. } = stmt.op else { continue };
            self.at(stmt.span);
            if made_in(lanes, addr.offset) {
                all.push(Partials { op, ty, addr, regs: Vec::new(), first });
                continue;
            }
            let place = self.partial_place(&addr, ty, first);
            let values: Vec<VReg> = match self.alignment(addr.base, addr.offset) {
                0..16 => (0..width).map(|n| self.load(ty, place.behind(n, ty))).collect(),
                _ => self.load_vector(ty, place, width),
            };
            let regs = values.into_iter().map(|v| self.variable(ty.reg(), v.into())).collect();
            all.push(Partials { op, ty, addr, regs, first });
        }
        all
    }

    fn leave_partials(&mut self, walk: &Walk<'_>) {
        for partials in walk.partials.iter().filter(|p| !p.regs.is_empty()) {
            let (addr, ty) = (&partials.addr, partials.ty);
            let place = self.partial_place(addr, ty, partials.first);
            match self.alignment(addr.base, addr.offset) {
                0..16 => {
                    for (n, reg) in partials.regs.iter().enumerate() {
                        self.store(ty, place.behind(n as u64, ty), *reg, None);
                    }
                }
                _ => self.store_vector(ty, place, &partials.regs),
            }
        }
    }

    fn partial_place(&mut self, addr: &Addr, ty: MemTy, first: Index) -> GpuAddress {
        let place = self.origin(addr.base, addr.offset);
        self.along(place, first, Stride::Const(i64::from(ty.size())))
    }

    /// Joins a lane's value with its partial: lanes that share one are one thread's, which takes them in ascending
    /// order.
    fn join(&mut self, partials: &Partials, number: u64, value: Src) {
        let Partials { op, ty, ref addr, ref regs, first } = *partials;
        if let Some(partial) = regs.get(number as usize) {
            let joined = self.binary(op, ty.reg(), (*partial).into(), value, None);
            self.b.set(*partial, crate::emit::whole(ty.reg()), joined);
            return;
        }
        let place = self.partial_place(addr, ty, first).behind(number, ty);
        let partial = self.load(ty, place);
        let joined = self.binary(op, ty.reg(), partial.into(), value, None);
        self.store(ty, place, joined, None);
    }

    /// The elements of a matrix of `rows * cols`, one a thread, row by row: `body` gets the element's number, row and
    /// column.
    pub(crate) fn elements(&mut self, rows: Src, cols: Src, body: &mut dyn FnMut(&mut Self, VReg, Index, Index)) {
        let (head, exit) = (self.b.label(), self.b.label());
        let rows = self.b.arith(Arith::Max, Type::S64, &[rows, Src::Imm(0)]);
        let cols = self.b.arith(Arith::Max, Type::S64, &[cols, Src::Imm(0)]);
        let total = self.u64(Arith::MulLo, rows, cols);
        let tid = self.b.cvt(Type::U64, Type::U32, Round::None, self.tid);
        let number = self.variable(LTy::I64, tid.into());
        self.b.place(head);
        let over = self.b.setp(Cmp::Ge, Type::U64, number, total);
        self.b.bra_if(over, true, exit);
        let (row, col) = self.div_rem(number.into(), cols.into());
        let [i, j] = [row, col].map(|n| (self.low(n), n));
        body(self, number, i, j);
        self.advance(number, Type::U64, Src::Imm(u64::from(self.threads)));
        self.b.bra(head);
        self.b.place(exit);
    }
}

/// The statements that compute a register of another one and of constants, in their order.
fn made_of(body: &[Stmt], value: Reg, from: Reg) -> Option<Vec<Stmt>> {
    let mut wanted = vec![value];
    let mut made = Vec::new();
    for stmt in body.iter().rev() {
        let (inputs, dst) = operands(&stmt.op);
        let Some(dst) = dst.filter(|dst| *dst != from && wanted.contains(dst)) else { continue };
        if !matches!(
            stmt.op,
            Op::Const { .. } | Op::Unary { .. } | Op::Binary { .. } | Op::Fma { .. } | Op::Cast { .. }
        ) {
            return None;
        }
        wanted.retain(|reg| *reg != dst);
        wanted.extend(inputs.into_iter().flatten());
        made.push(stmt.clone());
    }
    // What is left comes from outside, or is the one.
    let here = |reg: &Reg| *reg != from && body.iter().any(|s| operands(&s.op).1 == Some(*reg));
    made.reverse();
    (!wanted.iter().any(here) && wanted.contains(&from)).then_some(made)
}

/// Whether the elements of neighbouring lanes are neighbours.
pub(crate) fn neighbours(addr: &Addr, ty: MemTy) -> bool {
    addr.stride == Stride::Const(i64::from(ty.size())) && addr.gather.is_none()
}

/// Whether the elements that neighbouring lanes of a row load are neighbours: in an array, or in a row that a row
/// pointer leads to.
pub(crate) fn beside(lanes: &Lanes, addr: &Addr, ty: MemTy) -> bool {
    let row = Addr { gather: None, ..*addr };
    neighbours(&row, ty) && addr.gather.is_none_or(|g| row_pointer(lanes, g).is_some())
}

/// The lanes of each vector, with their registers.
fn vectors<'a, T>(own: &'a mut [T], all: &'a [Lane], width: u64) -> impl Iterator<Item = (&'a mut [T], &'a [Lane])> {
    own.chunks_mut(width as usize).zip(all.chunks(width as usize))
}

/// How many vectors a thread takes at a time, of one row or of several: fewer of long bodies, for the sake of
/// registers.
pub(crate) fn at_a_time(lanes: &Lanes, width: u64) -> u64 {
    let lanes_at_a_time = match lanes.body.len() {
        0..=6 => 32,
        7..=12 => 16,
        13..=24 => 8,
        25..=48 => 4,
        49..=120 => 2,
        _ => 1,
    };
    match width {
        // Elements of one partial are added one after the other: their loads wait for nothing.
        1 if lanes.body.len() <= 3 && lanes.body.iter().any(|s| matches!(s.op, Op::Join { .. })) => 32,
        1 => lanes_at_a_time.min(4),
        width => (lanes_at_a_time / width).clamp(1, 4),
    }
}

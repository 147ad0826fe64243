//! Software pipelining of rows: the last pass over a row is woven into a pass over the next one.
//!
//! Where each row has a block of its own (grid splitting), the last pass over it often only scales what an earlier one
//! computed, and stores that past the caches: it waits for memory, while the earlier one computes. So one call runs
//! several blocks ([`ptoc_ir::loops::Module::spread`]), and the last pass over a row goes, lane by lane, along with a
//! pass over the next one:
//!
//! ```text
//! for each row r { before(r); first(r) with last(r - 1); between(r) }; last(of the last row)
//! ```
//!
//! What is proved: both passes are loops over the same parts, and the lanes of a part are as many in both; they, and
//! all else, touch memory by addresses alone. Spaces of the arena that the last pass touches are there twice, and rows
//! take turns, so what it reads is as `between` left it, and the next row disturbs nothing. Tensors that it writes
//! nothing else touches, and nothing else writes what it reads. Spaces that it does not touch, and tensors, see the
//! accesses of each row in their order.

use cranelift_entity::PrimaryMap;
use ptoc_diagnostics::Span;
use ptoc_ir::loops::{
    Addr, Base, BinOp, CmpOp, For, Func, If, LTy, Lanes, Module, Op, Reg, RegData, Region, SpaceData, SpaceId, Stmt,
    Stride, operands,
};
use rustc_hash::{FxHashMap, FxHashSet};

/// The two places of a space are half of this more than a multiple of it apart: a processor that compares the low bits
/// of addresses shall not take a load from one for what was just stored to the other.
const PAGE: u64 = 4096;

/// A block function's passes over its row.
struct Passes {
    /// What does not depend on the row.
    fixed: Region,
    before: Region,
    first: For,
    /// Which statement of `first` is joined by the lanes of `last`.
    joined: usize,
    between: Region,
    last: For,
    /// What of `before` and `between` the addresses of `last` are computed by.
    needed: Region,
    /// The spaces that `last` touches.
    framed: Vec<SpaceId>,
}

/// The pass.
pub const NAME: &str = "row-pipelining";
/// What it does, in one line.
pub const ABOUT: &str = "software pipelining of rows: weaves the last pass over a row into a pass over the next one";

/// The rewrite of a module whose blocks are rows along dimension `dim` of its grid; says whether anything changed.
pub fn run(module: &mut Module, dim: usize) -> bool {
    if !module.spread.is_empty() {
        return false;
    }
    // The launch function returns the extent of each dimension.
    let rank = module.launch.results.len();
    let Some(block) = overlapped(&module.block, (dim, rank), &mut module.spaces) else { return false };
    module.block = block;
    module.spread.push(dim as u32);
    module.lay_out();
    true
}

/// The block function for several blocks along dimension `dim` of a grid of `rank`, and the spaces it needs; `None`
/// where rows cannot overlap.
fn overlapped(block: &Func, (dim, rank): (usize, usize), spaces: &mut PrimaryMap<SpaceId, SpaceData>) -> Option<Func> {
    let g = *block.params.get(block.params.len().checked_sub(rank)? + dim)?;
    let passes = Passes::of(block, g)?;
    let mut func = block.clone();
    let spans: Vec<Reg> = (0..rank).map(|_| func.regs.push(RegData { ty: LTy::I64 })).collect();
    func.params.extend(&spans);
    let apart = passes.framed.iter().map(|&s| (s, spaces[s].size.next_multiple_of(PAGE) + PAGE / 2)).collect();
    let span = block.body.last()?.span;
    let build = Build { func: &mut func, span, open: passes.fixed.clone() };
    let body = build.rows(&passes, (g, spans[dim]), &apart);
    func.body = body;
    for (space, apart) in apart {
        spaces[space].size += apart;
    }
    Some(func)
}

/// What a scalar statement without effect reads and defines.
fn pure(op: &Op) -> Option<(Vec<Reg>, Reg)> {
    match op {
        Op::Const { .. }
        | Op::Unary { .. }
        | Op::Binary { .. }
        | Op::Fma { .. }
        | Op::Compare { .. }
        | Op::Select { .. }
        | Op::Cast { .. } => {
            let (inputs, dst) = operands(op);
            Some((inputs.into_iter().flatten().collect(), dst?))
        }
        _ => None,
    }
}

/// An address of a statement, and whether it is written; not what is only fetched.
fn addresses(op: &Op, found: &mut Vec<(Addr, bool)>) {
    match op {
        Op::Load { addr, .. } | Op::Nibble { addr, .. } => found.push((*addr, false)),
        Op::Store { addr, .. } | Op::Join { addr, .. } => found.push((*addr, true)),
        Op::Reduce(r) => found.extend([(r.a, false), (r.d, true)]),
        Op::For(f) => f.body.iter().for_each(|s| addresses(&s.op, found)),
        Op::Lanes(l) => l.body.iter().for_each(|s| addresses(&s.op, found)),
        _ => {}
    }
}

/// Whether it is nothing but loops, lanes, reductions and scalars. `lanes`: within lanes.
fn plain(stmt: &Stmt, lanes: bool) -> bool {
    match &stmt.op {
        op if pure(op).is_some() => true,
        Op::Load { .. } | Op::Store { .. } | Op::Fetch { .. } | Op::Join { .. } | Op::Nibble { .. } => lanes,
        Op::For(f) => f.body.iter().all(|s| plain(s, false)),
        Op::Lanes(l) => {
            let own: FxHashSet<Reg> = l.body.iter().filter_map(|s| operands(&s.op).1).collect();
            let mut found = Vec::new();
            addresses(&stmt.op, &mut found);
            l.body.iter().all(|s| plain(s, true)) && found.iter().all(|(a, _)| !own.contains(&a.offset))
        }
        Op::Reduce(_) => true,
        _ => false,
    }
}

impl Passes {
    fn of(block: &Func, g: Reg) -> Option<Passes> {
        if !block.vars.is_empty() || !block.body.iter().all(|s| plain(s, false)) {
            return None;
        }
        // What the row's number decides.
        let mut moving = FxHashSet::from_iter([g]);
        let (mut fixed, mut rows) = (Region::new(), Region::new());
        for stmt in &block.body {
            match pure(&stmt.op) {
                Some((inputs, dst)) if inputs.iter().any(|r| moving.contains(r)) => {
                    moving.insert(dst);
                    rows.push(stmt.clone());
                }
                Some(_) => fixed.push(stmt.clone()),
                None => rows.push(stmt.clone()),
            }
        }
        let Op::For(last) = rows.pop()?.op else { return None };
        let (at, joined) = (0..rows.len()).rev().find_map(|at| {
            let Op::For(first) = &rows[at].op else { return None };
            Some((at, joined(first, &last, &moving)?))
        })?;
        let between = rows.split_off(at + 1);
        let Op::For(first) = rows.pop()?.op else { return None };
        let framed = apart(&rows, &first, &between, &last)?;
        let mut wanted: FxHashSet<Reg> = FxHashSet::default();
        last.body.iter().for_each(|s| uses(&s.op, &mut wanted));
        let mut needed = Region::new();
        for stmt in rows.iter().chain(&between).rev() {
            if let Some((inputs, dst)) = pure(&stmt.op)
                && wanted.contains(&dst)
            {
                wanted.extend(inputs);
                needed.insert(0, stmt.clone());
            }
        }
        Some(Passes { fixed, before: rows, first: *first, joined, between, last: *last, needed, framed })
    }
}

/// Which statement of `first` does as many lanes in each part as the only lanes of `last`, which write a tensor.
fn joined(first: &For, last: &For, moving: &FxHashSet<Reg>) -> Option<usize> {
    let parts = |f: &For| (f.lo, f.hi, f.step);
    if parts(first) != parts(last) || moving.contains(&first.lo) || moving.contains(&first.hi) {
        return None;
    }
    let (Stmt { op: Op::Lanes(lanes), .. }, scalars) = last.body.split_last()? else { return None };
    if !scalars.iter().all(|s| pure(&s.op).is_some()) || lanes.body.iter().any(|s| matches!(s.op, Op::Join { .. })) {
        return None;
    }
    let mut found = Vec::new();
    lanes.body.iter().for_each(|s| addresses(&s.op, &mut found));
    if !found.iter().any(|(a, written)| *written && matches!(a.base, Base::Tensor(_))) {
        return None;
    }
    let mut same = FxHashMap::from_iter([(last.index, first.index)]);
    let mut own: FxHashSet<Reg> = FxHashSet::default();
    for stmt in scalars {
        let (_, dst) = pure(&stmt.op)?;
        own.insert(dst);
        let Op::Binary { op, a, b, .. } = stmt.op else { continue };
        let of = |r: Reg| same.get(&r).copied().or((!own.contains(&r) && !moving.contains(&r)).then_some(r));
        let (Some(x), Some(y)) = (of(a), of(b)) else { continue };
        let twin = first.body.iter().find_map(|s| match s.op {
            Op::Binary { dst, op: o, a, b } if (o, a, b) == (op, x, y) => Some(dst),
            _ => None,
        });
        same.extend(twin.map(|twin| (dst, twin)));
    }
    let count = same.get(&lanes.count).copied().or_else(|| {
        let outside = !own.contains(&lanes.count) && !moving.contains(&lanes.count);
        outside.then_some(lanes.count)
    })?;
    let size = |at: &usize| if let Op::Lanes(l) = &first.body[*at].op { l.body.len() } else { 0 };
    let fits = |at: &usize| matches!(&first.body[*at].op, Op::Lanes(l) if l.count == count);
    (0..first.body.len()).filter(fits).max_by_key(size)
}

/// The spaces that the last pass touches, if it may go along with the next row.
fn apart(before: &[Stmt], first: &For, between: &[Stmt], last: &For) -> Option<Vec<SpaceId>> {
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    let others = before.iter().chain(&first.body).chain(between);
    others.for_each(|s| addresses(&s.op, &mut ours));
    last.body.iter().for_each(|s| addresses(&s.op, &mut theirs));
    let mut framed = Vec::new();
    for (addr, written) in &theirs {
        match addr.base {
            Base::Space(space) if framed.contains(&space) => {}
            Base::Space(space) => framed.push(space),
            base => {
                if ours.iter().any(|(a, w)| a.base == base && (*w || *written)) {
                    return None;
                }
            }
        }
    }
    Some(framed)
}

/// Adds what a statement reads, also in regions.
fn uses(op: &Op, out: &mut FxHashSet<Reg>) {
    each_reg(&mut op.clone(), &mut |reg, _| {
        out.insert(*reg);
    });
}

/// Calls `f` with every register of a plain statement, and whether it is defined there; what is defined comes before
/// its uses.
fn each_reg(op: &mut Op, f: &mut dyn FnMut(&mut Reg, bool)) {
    fn addr(a: &mut Addr, f: &mut dyn FnMut(&mut Reg, bool)) {
        f(&mut a.offset, false);
        if let Stride::Reg(r) = &mut a.stride {
            f(r, false);
        }
        if let Some(r) = &mut a.gather {
            f(r, false);
        }
    }
    match op {
        Op::Const { dst, .. } => f(dst, true),
        Op::Unary { dst, a, .. } | Op::Cast { dst, a, .. } => {
            f(a, false);
            f(dst, true);
        }
        Op::Binary { dst, a, b, .. } | Op::Compare { dst, a, b, .. } => {
            f(a, false);
            f(b, false);
            f(dst, true);
        }
        Op::Fma { dst, a, b, c } | Op::Select { dst, cond: a, a: b, b: c } => {
            [a, b, c].into_iter().for_each(|r| f(r, false));
            f(dst, true);
        }
        Op::Load { dst, addr: a, .. } | Op::Nibble { dst, addr: a, .. } => {
            addr(a, f);
            f(dst, true);
        }
        Op::Store { addr: a, value, .. } | Op::Join { addr: a, value, .. } => {
            addr(a, f);
            f(value, false);
        }
        Op::Fetch { addr: a, .. } => addr(a, f),
        Op::Reduce(r) => {
            f(&mut r.rows, false);
            f(&mut r.cols, false);
            addr(&mut r.d, f);
            addr(&mut r.a, f);
        }
        Op::For(l) => {
            f(&mut l.lo, false);
            f(&mut l.hi, false);
            f(&mut l.index, true);
            l.body.iter_mut().for_each(|s| each_reg(&mut s.op, f));
        }
        Op::Lanes(l) => {
            f(&mut l.count, false);
            f(&mut l.lane, true);
            l.body.iter_mut().for_each(|s| each_reg(&mut s.op, f));
        }
        _ => {}
    }
}

/// Calls `f` with every address of a plain statement.
fn each_addr(op: &mut Op, f: &mut dyn FnMut(&mut Addr)) {
    match op {
        Op::Load { addr, .. }
        | Op::Store { addr, .. }
        | Op::Join { addr, .. }
        | Op::Fetch { addr, .. }
        | Op::Nibble { addr, .. } => f(addr),
        Op::Reduce(r) => [&mut r.d, &mut r.a].into_iter().for_each(f),
        Op::Lanes(l) => l.body.iter_mut().for_each(|s| each_addr(&mut s.op, f)),
        _ => {}
    }
}

/// A row in the making: what its registers are called, and where its place in the framed spaces begins.
struct Row {
    names: FxHashMap<Reg, Reg>,
    /// Registers that are defined from here on keep their names.
    keep: bool,
    frames: FxHashMap<SpaceId, Reg>,
}

/// The function in the making.
struct Build<'f> {
    func: &'f mut Func,
    span: Span,
    open: Region,
}

impl Build<'_> {
    fn emit(&mut self, op: Op) {
        self.open.push(Stmt { op, span: self.span });
    }

    fn reg(&mut self, ty: LTy) -> Reg {
        self.func.regs.push(RegData { ty })
    }

    fn int(&mut self, value: i64) -> Reg {
        let dst = self.reg(LTy::I64);
        self.emit(Op::Const { dst, bits: value as u64 });
        dst
    }

    fn binary(&mut self, op: BinOp, a: Reg, b: Reg) -> Reg {
        let dst = self.reg(LTy::I64);
        self.emit(Op::Binary { dst, op, a, b });
        dst
    }

    /// Emits what `f` does into a region of its own.
    fn within(&mut self, f: impl FnOnce(&mut Self)) -> Region {
        let around = std::mem::take(&mut self.open);
        f(self);
        std::mem::replace(&mut self.open, around)
    }

    /// All rows of a call; `g` is the first one's number.
    fn rows(mut self, p: &Passes, (g, rows): (Reg, Reg), apart: &FxHashMap<SpaceId, u64>) -> Region {
        let (zero, one) = (self.int(0), self.int(1));
        let apart: Vec<(SpaceId, Reg)> = p.framed.iter().map(|s| (*s, self.int(apart[s] as i64))).collect();
        let (label, index) = (self.func.labels.push(()), self.reg(LTy::I64));
        let body = self.within(|b| {
            let mut row = b.row(g, index, one, &apart);
            row.keep = true;
            b.copy(&p.before, &mut row);
            let cond = b.reg(LTy::Bool);
            b.emit(Op::Compare { dst: cond, op: CmpOp::Gt, a: index, b: zero });
            let els = b.within(|b| {
                let first = b.part(&p.first, &mut row, |b, row| b.copy(&p.first.body, row));
                b.emit(first);
            });
            row.keep = false;
            let then = b.within(|b| {
                let before = b.binary(BinOp::Sub, index, one);
                let (mut past, mut here) = (b.row(g, before, one, &apart), b.row(g, index, one, &apart));
                b.copy(&p.needed, &mut past);
                b.copy(&p.needed, &mut here);
                b.together(p, &mut row, &mut past, &mut here);
            });
            row.keep = true;
            b.emit(Op::If(Box::new(If { cond, then, els })));
            b.copy(&p.between, &mut row);
        });
        self.emit(Op::For(Box::new(For { label, index, lo: zero, hi: rows, step: 1, body })));
        let end = self.binary(BinOp::Sub, rows, one);
        let mut row = self.row(g, end, one, &apart);
        self.copy(&p.needed, &mut row);
        row.keep = true;
        let last = self.part(&p.last, &mut row, |b, row| b.copy(&p.last.body, row));
        self.emit(last);
        self.open
    }

    /// The row number `n` of the call.
    fn row(&mut self, g: Reg, n: Reg, one: Reg, apart: &[(SpaceId, Reg)]) -> Row {
        let number = self.binary(BinOp::Add, g, n);
        let odd = self.binary(BinOp::And, n, one);
        let frames = apart.iter().map(|&(space, bytes)| (space, self.binary(BinOp::Mul, odd, bytes))).collect();
        Row { names: FxHashMap::from_iter([(g, number)]), keep: false, frames }
    }

    /// Statements as that row has them.
    fn copy(&mut self, stmts: &[Stmt], row: &mut Row) {
        for stmt in stmts {
            self.span = stmt.span;
            let op = match &stmt.op {
                Op::For(f) => self.part(f, row, |b, row| b.copy(&f.body, row)),
                op => self.renamed(op, row),
            };
            self.emit(op);
        }
    }

    /// A loop as that row has it, with another body.
    fn part(&mut self, f: &For, row: &mut Row, body: impl FnOnce(&mut Self, &mut Row)) -> Op {
        let (mut label, mut index) = (f.label, f.index);
        let (lo, hi) = (row.name(f.lo), row.name(f.hi));
        if !row.keep {
            (label, index) = (self.func.labels.push(()), self.reg(LTy::I64));
            row.names.insert(f.index, index);
        }
        let body = self.within(|b| body(b, row));
        Op::For(Box::new(For { label, index, lo, hi, step: f.step, body }))
    }

    /// Any other statement as that row has it. What its places are computed by is emitted.
    fn renamed(&mut self, op: &Op, row: &mut Row) -> Op {
        let mut op = op.clone();
        each_reg(&mut op, &mut |reg, defined| {
            if defined && !row.keep {
                let ty = self.func.regs[*reg].ty;
                row.names.insert(*reg, self.func.regs.push(RegData { ty }));
            }
            *reg = row.name(*reg);
        });
        let mut places: FxHashMap<(SpaceId, Reg), Reg> = FxHashMap::default();
        each_addr(&mut op, &mut |addr| {
            if let Base::Space(space) = addr.base
                && let Some(&frame) = row.frames.get(&space)
            {
                let place = places.entry((space, addr.offset));
                addr.offset = *place.or_insert_with_key(|&(_, offset)| self.binary(BinOp::Add, offset, frame));
            }
        });
        op
    }

    /// The first pass over `row` and the last one over `past`; `here` is how the last one would be over `row`.
    fn together(&mut self, p: &Passes, row: &mut Row, past: &mut Row, here: &mut Row) {
        let Some((Stmt { op: last @ Op::Lanes(lanes), .. }, scalars)) = p.last.body.split_last() else { return };
        let both = self.part(&p.first, row, |b, row| {
            for other in [&mut *past, &mut *here] {
                other.names.insert(p.last.index, row.name(p.first.index));
            }
            for (n, stmt) in p.first.body.iter().enumerate() {
                if n != p.joined {
                    b.copy(std::slice::from_ref(stmt), row);
                    continue;
                }
                b.copy(scalars, past);
                if let (Op::Lanes(ours), Op::Lanes(mut theirs)) = (b.renamed(&stmt.op, row), b.renamed(last, past)) {
                    // The row behind this one is asked for, not this one.
                    theirs.body.retain(|s| !matches!(s.op, Op::Fetch { .. }));
                    let fetches = b.fetches(scalars, lanes, here);
                    b.emit(Op::Lanes(Box::new(merged(*ours, *theirs, fetches))));
                }
            }
        });
        self.emit(both);
    }

    /// What the last pass fetches, as it does over `row`; only what is told by the loop.
    fn fetches(&mut self, scalars: &[Stmt], lanes: &Lanes, row: &mut Row) -> Region {
        let mut own: FxHashSet<Reg> = lanes.body.iter().filter_map(|s| operands(&s.op).1).collect();
        own.insert(lanes.lane);
        let outside = |s: &&Stmt| {
            let mut used = FxHashSet::default();
            uses(&s.op, &mut used);
            matches!(s.op, Op::Fetch { .. }) && used.is_disjoint(&own)
        };
        let fetches: Vec<&Stmt> = lanes.body.iter().filter(outside).collect();
        if !fetches.is_empty() {
            self.copy(scalars, row);
        }
        fetches.into_iter().map(|s| Stmt { op: self.renamed(&s.op, row), span: s.span }).collect()
    }
}

impl Row {
    fn name(&self, reg: Reg) -> Reg {
        self.names.get(&reg).copied().unwrap_or(reg)
    }
}

/// Lanes that do one body and then another. What all lanes share is read in front of the first store, so that it is
/// read once.
fn merged(ours: Lanes, theirs: Lanes, mut front: Region) -> Lanes {
    let mut rest = Region::new();
    for lanes in [&ours, &theirs] {
        let mut stored = false;
        for stmt in &lanes.body {
            let mut stmt = stmt.clone();
            each_reg(&mut stmt.op, &mut |reg, _| {
                if *reg == theirs.lane {
                    *reg = ours.lane;
                }
            });
            stored |= matches!(stmt.op, Op::Store { .. });
            let shared = matches!(stmt.op, Op::Load { addr: Addr { stride: Stride::Const(0), gather: None, .. }, .. });
            if shared && !stored { &mut front } else { &mut rest }.push(stmt);
        }
    }
    front.append(&mut rest);
    Lanes { lane: ours.lane, count: ours.count, body: front }
}

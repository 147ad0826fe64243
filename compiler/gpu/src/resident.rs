//! Rows that fit stay in registers.
//!
//! A tile of one row that every thread works on at the same elements is kept in the registers of those threads from one
//! statement to the next. Memory has it only where something else reads it: partials of sums have owners of their own,
//! for the sake of the order. Of a softmax's row, which is loaded, searched for its maximum, exponentiated, summed and
//! scaled, one store and one load of shared memory are left of six.

use crate::dependences::{Key, of, of_region};
use crate::emit::{Emit, Val, whole};
use crate::lanes::{Lane, Row, Walk, at_a_time, neighbours};
use crate::vectors::{Aligned, made_in, width};
use ptoc_ir::loops::{Addr, Base, For, LTy, Lanes, MemTy, Op, Reduce, Reg, Region, SharedInfo, SpaceId, Stmt, UnOp};
use ptoc_ptx::{Arith, Class, Round, Src, Type, VReg};
use rustc_hash::{FxHashMap, FxHashSet};
use std::borrow::Cow;

/// Elements that a thread keeps of all tiles: half of the registers that it may have without crowding others out.
const MOST: u64 = 64;

/// Elements of a thread up to which a row stays in registers that memory has, too. Of more, reading it again costs less
/// than the CTAs that do not fit.
const RELOADED: u64 = 16;

/// A tile of one row: its space, and where in it the row begins. Elements have 32 bits and lie side by side.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct RowTile {
    space: SpaceId,
    offset: i64,
}

/// A row as one statement leaves it.
#[derive(Clone, Debug)]
struct Generation {
    /// The float of 16 bits that its elements of f32 are: two of them need one register.
    narrow: Option<MemTy>,
    /// Something reads it from memory.
    spilled: bool,
    /// Threads keep it in registers.
    kept: bool,
    /// Those registers, bits. Empty before it is written.
    regs: Vec<VReg>,
}

/// The tiles that are kept.
#[derive(Clone, Debug, Default)]
pub(crate) struct Residents {
    /// Elements of a row, of a vector, and of a row for each thread.
    count: i64,
    width: u64,
    each: u64,
    tiles: FxHashSet<RowTile>,
    generations: Vec<Generation>,
    /// The lanes that work on them, by their register of the lane's number.
    members: FxHashSet<Reg>,
    /// The generation that lanes make of a tile.
    made: FxHashMap<(Reg, RowTile), usize>,
    /// The generation that a tile has where code is emitted.
    current: FxHashMap<RowTile, usize>,
}

impl Residents {
    /// Whether rows of 16 bits are among them.
    pub(crate) fn any_narrow(&self) -> bool {
        self.generations.iter().any(|row| row.narrow.is_some())
    }
}

/// A statement of the block, whose order is the program's.
enum Step<'a> {
    Lanes(Cow<'a, Lanes>),
    Reduce(&'a Reduce),
    Other(&'a Stmt),
}

/// A loop of one iteration that nothing leaves.
pub(crate) fn single(f: &For, constant: impl Fn(Reg) -> Option<i64>) -> bool {
    fn jumps(region: &Region) -> bool {
        region
            .iter()
            .any(|s| matches!(s.op, Op::Break(_) | Op::Continue(_) | Op::Leave(_)) || s.op.regions().any(jumps))
    }
    let trip = constant(f.lo).zip(constant(f.hi)).map(|(lo, hi)| (hi > lo, hi.saturating_sub(lo) <= f.step));
    trip == Some((true, true)) && !jumps(&f.body)
}

fn joins(lanes: &Lanes) -> bool {
    lanes.body.iter().any(|s| matches!(s.op, Op::Join { .. }))
}

impl Emit<'_> {
    /// The value of a register that is the same in every launch.
    fn constant(&self, reg: Reg) -> Option<i64> {
        let interval = self.homes.segments.interval(reg);
        (interval.lo == interval.hi).then_some(interval.lo)
    }

    /// Statements in their order: loops of one iteration are what they repeat, and lanes are taken apart as they will
    /// be ([`Emit::apart`]).
    fn steps<'s>(&self, region: &'s Region, out: &mut Vec<Step<'s>>) {
        for stmt in region {
            match &stmt.op {
                Op::For(f) if single(f, |r| self.constant(r)) => self.steps(&f.body, out),
                Op::Lanes(lanes) => match self.apart(lanes, 1) {
                    Some(both) => out.extend(both.into_iter().map(|l| Step::Lanes(Cow::Owned(l)))),
                    None => out.push(Step::Lanes(Cow::Borrowed(lanes))),
                },
                Op::Reduce(r) => out.push(Step::Reduce(r)),
                _ => out.push(Step::Other(stmt)),
            }
        }
    }

    /// The tile of which lanes touch one element each.
    fn row_tile(&self, lanes: &Lanes, addr: &Addr, ty: MemTy) -> Option<RowTile> {
        let Base::Space(space) = addr.base else { return None };
        let plain = neighbours(addr, ty) && matches!(ty, MemTy::F32 | MemTy::I32) && !made_in(lanes, addr.offset);
        let offset = self.constant(addr.offset)?;
        plain.then_some(RowTile { space, offset })
    }

    /// Whether lanes may work on rows in registers: all elements that they touch in a space are their own.
    fn of_rows(&self, lanes: &Lanes) -> bool {
        !joins(lanes) && self.constant(lanes.count).is_some_and(|n| n > i64::from(self.threads)) && width(lanes) > 1
    }

    /// Decides which tiles are kept.
    pub(crate) fn plan_residents(&mut self) {
        let mut steps = Vec::new();
        let module = self.module;
        self.steps(&module.block.body, &mut steps);
        let rows = steps.iter().filter_map(|s| match s {
            Step::Lanes(lanes) if self.of_rows(lanes) => Some(lanes),
            _ => None,
        });
        let rows: Vec<_> = rows.collect();
        let Some(count) = rows.iter().find_map(|l| self.constant(l.count)) else { return };
        let members: Vec<_> = rows.into_iter().filter(|l| self.constant(l.count) == Some(count)).collect();
        let width = members.iter().map(|l| width(l)).max().unwrap_or(1);
        let threads = u64::from(self.threads);
        if !(count as u64).is_multiple_of(threads * width) {
            return;
        }
        let each = count as u64 / threads;
        let mut plan = Residents { count, width, each, ..Residents::default() };
        plan.members = members.iter().map(|l| l.lane).collect();
        for lanes in &members {
            for stmt in &lanes.body {
                let (Op::Load { addr, ty, .. } | Op::Store { addr, ty, .. }) = &stmt.op else { continue };
                let Some(tile) = self.row_tile(lanes, addr, *ty) else { continue };
                let room = (plan.tiles.len() as u64 + 1) * each <= MOST;
                if room && !plan.tiles.contains(&tile) && self.keeps(&plan, tile, &steps) {
                    plan.tiles.insert(tile);
                }
            }
        }
        let tiles: Vec<RowTile> = plan.tiles.iter().copied().collect();
        for tile in tiles {
            self.generations(&mut plan, tile, &steps);
        }
        if !plan.tiles.is_empty() {
            self.residents = plan;
        }
    }

    /// What a step does with a tile: whether it reads it from registers, from memory, and writes all of it.
    fn uses(&self, plan: &Residents, tile: RowTile, step: &Step<'_>) -> Uses {
        let key = self.tile_key(tile);
        let mut uses = Uses::default();
        match step {
            Step::Lanes(lanes) => {
                let member = plan.members.contains(&lanes.lane) && self.of_rows(lanes);
                for stmt in &lanes.body {
                    let (addr, ty, stores) = match &stmt.op {
                        Op::Load { addr, ty, .. } => (addr, *ty, false),
                        Op::Store { addr, ty, .. } => (addr, *ty, true),
                        Op::Join { addr, ty, .. } => (addr, *ty, true),
                        _ => continue,
                    };
                    if self.keys().of(addr) != key {
                        continue;
                    }
                    let own = member && self.row_tile(lanes, addr, ty) == Some(tile);
                    match (stores, own) {
                        (true, true) => uses.writes = true,
                        (true, false) => uses.spoils = true,
                        (false, true) => uses.registers |= !uses.writes,
                        (false, false) => uses.memory = true,
                    }
                }
            }
            Step::Reduce(r) => {
                uses.spoils = self.keys().of(&r.d) == key;
                if self.keys().of(&r.a) == key {
                    match self.reduces_resident(r, plan.count) == Some(tile) {
                        true => uses.registers = true,
                        false => uses.memory = true,
                    }
                }
            }
            Step::Other(stmt) => {
                let mut touched = of(&stmt.op, self.keys());
                stmt.op.regions().for_each(|r| of_region(r, self.keys(), &mut touched));
                uses.spoils = touched.writes.contains(&key) || touched.solo_writes.contains(&key);
                uses.memory = touched.reads.contains(&key) || touched.solo_reads.contains(&key);
            }
        }
        uses
    }

    /// Whether a tile can be kept, and something reads it that way: only members write it, before anything reads it.
    fn keeps(&self, plan: &Residents, tile: RowTile, steps: &[Step<'_>]) -> bool {
        let all: Vec<Uses> = steps.iter().map(|s| self.uses(plan, tile, s)).collect();
        let first = all.iter().position(|u| u.writes || u.memory || u.registers);
        let written_first = first.is_some_and(|n| all[n].writes && !all[n].memory && !all[n].registers);
        written_first && all.iter().any(|u| u.registers) && !all.iter().any(|u| u.spoils)
    }

    /// The float of 16 bits that all elements of a tile are which these lanes store.
    fn narrow(&self, lanes: &Lanes, tile: RowTile) -> Option<MemTy> {
        let stores = lanes.body.iter().filter_map(|s| match &s.op {
            Op::Store { addr, ty, value } if self.row_tile(lanes, addr, *ty) == Some(tile) => Some(*value),
            _ => None,
        });
        let half = |value| {
            lanes.body.iter().find_map(|s| match &s.op {
                Op::Load { dst, ty: ty @ (MemTy::F16 | MemTy::BF16), .. } if *dst == value => Some(*ty),
                Op::Unary { dst, op: UnOp::RoundF16, .. } if *dst == value => Some(MemTy::F16),
                Op::Unary { dst, op: UnOp::RoundBf16, .. } if *dst == value => Some(MemTy::BF16),
                _ => None,
            })
        };
        let mut halves = stores.map(half);
        let first = halves.next()??;
        halves.all(|other| other == Some(first)).then_some(first)
    }

    /// What each statement that writes a tile makes of it, and what is read of that.
    fn generations(&self, plan: &mut Residents, tile: RowTile, steps: &[Step<'_>]) {
        let mut current: Option<usize> = None;
        for step in steps {
            let uses = self.uses(plan, tile, step);
            if let Some(read) = current.map(|n| &mut plan.generations[n]) {
                read.spilled |= uses.memory;
                // What is joined from registers has to be there.
                read.kept |= uses.registers && matches!(step, Step::Reduce(_));
            }
            if let (Step::Lanes(lanes), true) = (step, uses.writes) {
                let narrow = self.narrow(lanes, tile).filter(|_| plan.width.is_multiple_of(2));
                let kept = narrow.is_some() || plan.each <= RELOADED;
                current = Some(plan.generations.len());
                plan.made.insert((lanes.lane, tile), plan.generations.len());
                plan.generations.push(Generation { narrow, spilled: false, kept, regs: Vec::new() });
            }
        }
        for made in plan.made.iter().filter(|((_, of), _)| *of == tile).map(|(_, n)| *n) {
            plan.generations[made].kept |= !plan.generations[made].spilled;
        }
    }

    fn tile_key(&self, tile: RowTile) -> Key {
        Key::Space(tile.space, self.homes.segments.at(tile.space, tile.offset as u64) as u32)
    }

    /// The tile whose only row is joined in any order.
    fn reduces_resident(&self, r: &Reduce, count: i64) -> Option<RowTile> {
        let Base::Space(space) = r.a.base else { return None };
        let all = self.constant(r.rows) == Some(1) && self.constant(r.cols) == Some(count) && r.a_strides.1 == 4;
        let offset = self.constant(r.a.offset)?;
        let shared = self.words.is_some() && self.shared_by_warps(r);
        (all && shared && r.a.gather.is_none() && matches!(r.ty, MemTy::F32 | MemTy::I32))
            .then_some(RowTile { space, offset })
    }

    /// What a reduction joins, where it is in registers.
    pub(crate) fn resident_row(&mut self, r: &Reduce) -> Option<Vec<VReg>> {
        let tile = self.reduces_resident(r, self.residents.count)?;
        let row = self.residents.generations.get(*self.residents.current.get(&tile)?)?.clone();
        Some(match row.narrow {
            Some(ty) => row.regs.iter().flat_map(|word| [0, 16].map(|at| self.unpacked(ty, *word, at))).collect(),
            None => row.regs.iter().map(|reg| self.of_bits(r.ty, *reg)).collect(),
        })
    }

    /// Whether these lanes work on rows in registers.
    fn is_member(&self, lanes: &Lanes) -> bool {
        !self.residents.tiles.is_empty() && self.residents.members.contains(&lanes.lane) && self.of_rows(lanes)
    }

    /// Memory that a statement does not touch, since registers have it: what it reads, and what it writes.
    pub(crate) fn untouched(&self, op: &Op) -> (Vec<Key>, Vec<Key>) {
        let (mut reads, mut writes) = (Vec::new(), Vec::new());
        match op {
            Op::Lanes(lanes) => {
                let first = self.apart(lanes, 1).map(|[first, _]| first);
                let lanes = first.as_ref().unwrap_or(lanes);
                if !self.is_member(lanes) {
                    return (reads, writes);
                }
                for stmt in &lanes.body {
                    match &stmt.op {
                        Op::Load { addr, .. } => {
                            let row = self.generation(lanes, &stmt.op);
                            reads.extend(
                                row.filter(|n| self.residents.generations[*n].kept).map(|_| self.keys().of(addr)),
                            );
                        }
                        Op::Store { addr, .. } => {
                            let row = self.generation(lanes, &stmt.op);
                            let only = row.filter(|n| !self.residents.generations[*n].spilled);
                            writes.extend(only.map(|_| self.keys().of(addr)));
                        }
                        _ => {}
                    }
                }
            }
            Op::Reduce(r) => {
                let tile = self.reduces_resident(r, self.residents.count);
                if tile.is_some_and(|tile| self.residents.tiles.contains(&tile)) {
                    reads.push(self.keys().of(&r.a));
                }
            }
            _ => {}
        }
        (reads, writes)
    }

    /// The generation of a row that a statement of lanes reads or makes.
    fn generation(&self, lanes: &Lanes, op: &Op) -> Option<usize> {
        let (addr, ty) = match op {
            Op::Load { addr, ty, .. } | Op::Store { addr, ty, .. } => (addr, *ty),
            _ => return None,
        };
        let tile = self.row_tile(lanes, addr, ty).filter(|tile| self.residents.tiles.contains(tile))?;
        let stores =
            |s: &Stmt| matches!(&s.op, Op::Store { addr, ty, .. } if self.row_tile(lanes, addr, *ty) == Some(tile));
        let made = matches!(op, Op::Store { .. }) || lanes.body.iter().take_while(|s| s.op != *op).any(stores);
        match made {
            true => self.residents.made.get(&(lanes.lane, tile)).copied(),
            false => self.residents.current.get(&tile).copied(),
        }
    }

    /// Lanes that work on rows in registers; false if these do not.
    pub(crate) fn resident_lanes(&mut self, lanes: &Lanes) -> bool {
        if !self.is_member(lanes) {
            return false;
        }
        let (width, each, threads) = (self.residents.width, self.residents.each, u64::from(self.threads));
        for stmt in lanes.body.iter().filter(|s| matches!(s.op, Op::Store { .. })) {
            if let Some(row) = self.generation(lanes, &stmt.op).map(|n| &mut self.residents.generations[n])
                && row.kept
                && row.regs.is_empty()
            {
                let words = if row.narrow.is_some() { each / 2 } else { each };
                row.regs = (0..words).map(|_| self.b.reg(Class::B32)).collect();
            }
        }
        let tid = self.b.cvt(Type::U64, Type::U32, Round::None, self.tid);
        let first = self.u64(Arith::MulLo, tid, Src::Imm(width));
        let first = (self.low(first), first);
        let rows = &[Row::default()];
        let walk = Walk {
            lanes,
            rows,
            info: SharedInfo::new(lanes),
            threads: Src::Imm(threads),
            count: Src::Imm(self.residents.count as u64),
            width,
            lane: first.1,
            partials: Vec::new(),
            resident: true,
        };
        let vectors: Vec<u64> = (0..each / width).collect();
        let all = |e: &mut Self, together: bool| {
            for some in vectors.chunks(at_a_time(lanes, width).max(1) as usize) {
                let lane = |plus| Lane { first, plus, row: 0 };
                let some: Vec<Lane> =
                    some.iter().flat_map(|v| (0..width).map(move |n| lane(v * threads * width + n))).collect();
                e.some(&walk, &some, together);
            }
        };
        match self.aligned(lanes, width, rows) {
            Aligned::Always => all(self, true),
            Aligned::Never => all(self, false),
            Aligned::If(aligned) => {
                let (apart, done) = (self.b.label(), self.b.label());
                self.b.bra_if(aligned, false, apart);
                all(self, true);
                self.b.bra(done);
                self.b.place(apart);
                all(self, false);
                self.b.place(done);
            }
        }
        let made = self.residents.made.iter().filter(|((lane, _), _)| *lane == lanes.lane);
        let made: Vec<(RowTile, usize)> = made.map(|((_, tile), n)| (*tile, *n)).collect();
        self.residents.current.extend(made);
        true
    }

    /// A statement of lanes whose tile is in registers; false if memory has to do it, too.
    pub(crate) fn resident_access(
        &mut self,
        lanes: &Lanes,
        op: &Op,
        own: &mut [FxHashMap<Reg, Val>],
        all: &[Lane],
    ) -> bool {
        let (Op::Load { ty, .. } | Op::Store { ty, .. }) = op else { return false };
        let Some(row) = self.generation(lanes, op).map(|n| &self.residents.generations[n]).filter(|row| row.kept)
        else {
            return false;
        };
        let (regs, narrow, spilled) = (row.regs.clone(), row.narrow, row.spilled);
        let span = u64::from(self.threads) * self.residents.width;
        let mut low = None;
        for (own, lane) in own.iter_mut().zip(all) {
            let n = lane.plus / span * self.residents.width + lane.plus % span;
            if let Some(narrow) = narrow {
                self.narrow_access(op, narrow, own, (regs[n as usize / 2], n % 2), &mut low);
                continue;
            }
            let reg = regs[n as usize];
            match op {
                Op::Store { value, .. } => {
                    self.take(own, &[*value]);
                    let value = self.reg(*value);
                    let bits = if *ty == MemTy::F32 { self.b.bits(Class::B32, value) } else { value };
                    self.b.set(reg, Type::B32, bits);
                }
                Op::Load { dst, .. } => {
                    let value = self.of_bits(*ty, reg);
                    own.insert(*dst, Val::Reg(value));
                }
                _ => {}
            }
        }
        matches!(op, Op::Load { .. }) || !spilled
    }

    /// One element of a tile of 16 bits, the low or the high half of a word. A word is written with its high half.
    fn narrow_access(
        &mut self,
        op: &Op,
        ty: MemTy,
        own: &mut FxHashMap<Reg, Val>,
        (word, n): (VReg, u64),
        low: &mut Option<VReg>,
    ) {
        match op {
            Op::Store { value, .. } => {
                self.take(own, &[*value]);
                let value = self.reg(*value);
                let half = match self.loaded.get(&value) {
                    Some(half) => *half,
                    None => self.half(ty, value),
                };
                match low.take() {
                    Some(low) => {
                        let both = self.b.pack(low, half);
                        self.b.set(word, Type::B32, both);
                    }
                    None => *low = Some(half),
                }
            }
            Op::Load { dst, .. } => {
                let value = self.unpacked(ty, word, 16 * n);
                own.insert(*dst, Val::Reg(value));
            }
            _ => {}
        }
    }

    fn of_bits(&mut self, ty: MemTy, bits: VReg) -> VReg {
        debug_assert!(whole(ty.reg()) != Type::Pred && ty.reg() != LTy::I64, "elements of 32 bits");
        if ty == MemTy::F32 { self.b.bits(Class::F32, bits) } else { bits }
    }
}

/// What a statement does with a tile.
#[derive(Clone, Copy, Default)]
struct Uses {
    /// Reads it as members do.
    registers: bool,
    /// Reads it from memory.
    memory: bool,
    /// Writes all of it, as members do.
    writes: bool,
    /// Writes some of it otherwise.
    spoils: bool,
}

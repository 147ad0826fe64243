//! Parametric windows: all that is written before a read, as families of windows.
//!
//! The other walk keeps sets of bytes, and of a loop that it does not walk through it knows little. Reads that it
//! leaves open are looked at here: each statement once, loops with a symbol for their index. A write is a window under
//! the conditions that were met on the way; at the end of a loop it becomes the family of the windows of all
//! iterations, `there is an index p, lo <= p < hi, with ..`. In an iteration the families of those before it are
//! written as well (`lo <= p < index`). Whether an element that is read lies in one of them is for [`super::witness`]
//! to show.
//!
//! A family says that all of its windows are written: it ends where its tile is declared anew, and what may be jumped
//! over has none behind its loop.

use super::numbers::{Literal, SymbolicOffset};
use super::states::ByteState;
use super::touches::touches;
use super::walk::{ByteInterpreter, launch};
use super::window::{Count, TouchedPart};
use ptoc_diagnostics::{Account, Span};
use ptoc_ir::tile::{AddrKind, For, If, Kernel, Label, Op, Region, Scope, Stmt, Tile, TileRef, Ty, Value, Var, While};
use ptoc_isa::{BinOp, CmpOp};
use ptoc_placement::access::AccessMode;
use rustc_hash::{FxHashMap, FxHashSet};
use std::rc::Rc;

/// Steps that a statement takes, and a family that is made or handed on.
const VISIT: usize = 32;
const FAMILY: usize = 16;
/// Families of one tile: of more, the latest.
const FAMILIES: usize = 32;
/// Proofs take one in so many of the steps that are left.
const PART: usize = 4;

const INDEX: Ty = Ty::Index;

/// First row or column, and how many.
pub(super) type FamilyAxis = (SymbolicOffset, SymbolicOffset);

/// An element of a tile array.
pub(super) type Owner = (Tile, u32);

/// There is a value of this symbol, from `lo` on and below `hi`.
#[derive(Clone, Copy)]
pub(super) struct Param {
    pub(super) symbol: SymbolicOffset,
    pub(super) lo: SymbolicOffset,
    pub(super) hi: Option<SymbolicOffset>,
}

/// Windows that are written: for all values of the parameters with which the conditions turn out so.
#[derive(Clone)]
pub(super) struct Family {
    owner: Owner,
    /// The outermost loop first.
    pub(super) params: Vec<Param>,
    pub(super) holds: Vec<(SymbolicOffset, bool)>,
    pub(super) axes: [FamilyAxis; 2],
}

/// A read, with all that is written before it.
pub(super) struct Read {
    place: (Span, Tile),
    owner: Owner,
    pub(super) axes: [FamilyAxis; 2],
    pub(super) path: Vec<Literal>,
    pub(super) written: Vec<Rc<Family>>,
}

struct Families<'w, 'k> {
    walk: &'w mut ByteInterpreter<'k>,
    account: Account<'k>,
    /// Reads that are looked at, and their tiles.
    open: &'w FxHashSet<(Span, Tile)>,
    tiles: FxHashSet<Tile>,
    defs: FxHashMap<Value, &'k Op>,
    state: ByteState,
    written: Vec<Rc<Family>>,
    reads: Vec<Read>,
    /// Reads that cannot be followed.
    lost: FxHashSet<(Span, Tile)>,
}

/// Of these reads, those of which everything is certainly written.
pub(super) fn proved(kernel: &Kernel, open: &FxHashSet<(Span, Tile)>, account: Account<'_>) -> FxHashSet<(Span, Tile)> {
    let none = FxHashSet::default();
    let followed = |t: &Tile| kernel.tiles[*t].addr == AddrKind::Auto;
    let tiles: FxHashSet<Tile> = open.iter().map(|(_, t)| *t).filter(followed).collect();
    if tiles.is_empty() {
        return none;
    }
    let Some((mut walk, state)) = launch(kernel, true, account) else { return none };
    for dim in kernel.dims.values() {
        let n = walk.numbers.get(dim.value);
        walk.numbers.natural(n);
    }
    let mut defs = FxHashMap::default();
    definitions(&kernel.body, &mut defs);
    let (written, reads, lost) = (Vec::new(), Vec::new(), FxHashSet::default());
    let mut families = Families { walk: &mut walk, account, open, tiles, defs, state, written, reads, lost };
    if families.region(&kernel.body).is_none() {
        return none;
    }
    let (reads, mut lost) = (families.reads, families.lost);
    let mut found = FxHashSet::default();
    // Others need steps too.
    let enough = account.left() / PART * (PART - 1);
    for read in &reads {
        if account.left() < enough {
            lost.insert(read.place);
        }
        if lost.contains(&read.place) {
            continue;
        }
        let ty = kernel.tiles[read.place.1].ty;
        match super::witness::covered(&mut walk.numbers, read, (ty.rows, ty.cols), account) {
            Some(true) => drop(found.insert(read.place)),
            Some(false) => drop(lost.insert(read.place)),
            // No steps are left: what was not looked at is not shown.
            None => return none,
        }
    }
    found.retain(|place| !lost.contains(place));
    found
}

fn definitions<'k>(region: &'k [Stmt], out: &mut FxHashMap<Value, &'k Op>) {
    for stmt in region {
        out.extend(stmt.op.def().map(|v| (v, &stmt.op)));
        stmt.op.regions().for_each(|r| definitions(r, out));
    }
}

/// How control leaves an iteration other than by its end.
#[derive(Clone, Copy, Default)]
struct Exits {
    /// To the next one.
    continues: bool,
    leaves: bool,
}

fn exits(regions: &[&Region], own: Label) -> Exits {
    fn walk(region: &[Stmt], own: Label, inner: &mut Vec<Label>, out: &mut Exits) {
        for stmt in region {
            match &stmt.op {
                Op::Continue(l) if *l == own => out.continues = true,
                Op::Break(l) | Op::Leave(l) | Op::Continue(l) => out.leaves |= !inner.contains(l),
                _ => {}
            }
            let label = match &stmt.op {
                Op::For(f) => Some(f.label),
                Op::While(w) => Some(w.label),
                Op::Scope(s) => Some(s.label),
                _ => None,
            };
            inner.extend(label);
            stmt.op.regions().for_each(|r| walk(r, own, inner, out));
            if label.is_some() {
                inner.pop();
            }
        }
    }
    let mut out = Exits::default();
    regions.iter().for_each(|r| walk(r, own, &mut Vec::new(), &mut out));
    out
}

/// What is declared and set in a region.
#[derive(Default)]
struct Changes {
    declared: FxHashSet<Tile>,
    /// How often each variable is set.
    set: FxHashMap<Var, usize>,
}

impl Changes {
    fn of(regions: &[&Region]) -> Changes {
        fn walk(region: &[Stmt], out: &mut Changes) {
            for stmt in region {
                match &stmt.op {
                    Op::Alloc { tile } => drop(out.declared.insert(*tile)),
                    Op::Set { var, .. } => *out.set.entry(*var).or_default() += 1,
                    _ => {}
                }
                stmt.op.regions().for_each(|r| walk(r, out));
            }
        }
        let mut out = Changes::default();
        regions.iter().for_each(|r| walk(r, &mut out));
        out
    }
}

/// What was there before a loop.
struct Before {
    written: Vec<Rc<Family>>,
    vars: FxHashMap<Var, SymbolicOffset>,
    changes: Changes,
    reads: usize,
    path: usize,
    then: u32,
}

impl<'k> Families<'_, 'k> {
    /// Walks the statements; whether control comes to their end. `None` if there are no steps left.
    fn region(&mut self, region: &'k [Stmt]) -> Option<bool> {
        for stmt in region {
            self.account.spend(VISIT).ok()?;
            let ends = match &stmt.op {
                Op::For(f) => self.for_loop(f)?,
                Op::While(w) => self.while_loop(w)?,
                Op::If(i) => self.conditional(i)?,
                Op::Scope(s) => self.scope(s)?,
                Op::Break(_) | Op::Leave(_) | Op::Continue(_) => false,
                op => {
                    match op {
                        Op::Check { cond, .. } => {
                            let cond = self.walk.numbers.get(*cond);
                            let more = self.walk.assume(cond, true);
                            self.walk.path.extend(more);
                        }
                        Op::Alloc { tile } => self.written.retain(|f| f.owner.0 != *tile),
                        op => self.walk.scalar(op, &mut self.state),
                    }
                    for (access, r, part) in touches(self.walk.kernel, &self.walk.constants, stmt) {
                        self.touch(stmt, access, &r, part)?;
                    }
                    true
                }
            };
            if !ends {
                return Some(false);
            }
        }
        Some(true)
    }

    fn touch(&mut self, stmt: &Stmt, access: AccessMode, r: &TileRef, part: TouchedPart) -> Option<()> {
        let place = (stmt.span, r.tile);
        if !self.tiles.contains(&r.tile) || (access == AccessMode::Read && !self.open.contains(&place)) {
            return Some(());
        }
        let numbers = &mut self.walk.numbers;
        let element = r.element.map_or(SymbolicOffset::known(0), |v| numbers.get(v)).constant();
        let count = self.walk.kernel.tiles[r.tile].count;
        let element = element.and_then(|n| u32::try_from(n).ok()).filter(|n| *n < count);
        let some = matches!(part, TouchedPart::Some(_) | TouchedPart::Within(..));
        match (access, element) {
            (AccessMode::Read, None) => drop(self.lost.insert(place)),
            (AccessMode::Read, Some(element)) => {
                let (owner, axes) = ((r.tile, element), self.axes(r, part));
                let written: Vec<_> = self.written.iter().filter(|f| f.owner == owner).cloned().collect();
                self.account.spend(FAMILY * written.len()).ok()?;
                self.reads.push(Read { place, owner, axes, path: self.walk.path.clone(), written });
            }
            (AccessMode::Write, Some(element)) if !some => {
                let (owner, axes) = ((r.tile, element), self.axes(r, part));
                let family = Family { owner, params: Vec::new(), holds: Vec::new(), axes };
                self.add(Rc::new(family));
            }
            (AccessMode::Write, _) => {}
        }
        Some(())
    }

    fn add(&mut self, family: Rc<Family>) {
        let same = |f: &&Rc<Family>| f.owner == family.owner;
        if self.written.iter().filter(same).count() >= FAMILIES
            && let Some(first) = self.written.iter().position(|f| f.owner == family.owner)
        {
            self.written.remove(first);
        }
        self.written.push(family);
    }

    /// The window of an operand.
    fn axes(&mut self, r: &TileRef, part: TouchedPart) -> [FamilyAxis; 2] {
        let numbers = &mut self.walk.numbers;
        let zero = SymbolicOffset::known(0);
        let (row, col) = r.origin.map_or((zero, zero), |(a, b)| (numbers.get(a), numbers.get(b)));
        let mut at = |a: SymbolicOffset, b: Value, n: Count| {
            let b = numbers.get(b);
            let n = match n {
                Count::One => SymbolicOffset::known(1),
                Count::Of(v) => numbers.get(v),
            };
            (numbers.binary(INDEX, BinOp::Add, a, b), n)
        };
        match part {
            TouchedPart::Valid => [(row, numbers.get(r.valid.0)), (col, numbers.get(r.valid.1))],
            TouchedPart::Element(i, j) => [at(row, i, Count::One), at(col, j, Count::One)],
            TouchedPart::Rect((i, j), (m, n)) | TouchedPart::Within((i, j), (m, n)) => [at(row, i, m), at(col, j, n)],
            TouchedPart::Some([m, n]) => {
                let mut limit = |v: Option<Value>, all: u32| match v {
                    Some(v) => numbers.get(v),
                    None => SymbolicOffset::known(i64::from(all)),
                };
                [(row, limit(m, r.rows)), (col, limit(n, r.cols))]
            }
        }
    }

    fn conditional(&mut self, i: &'k If) -> Option<bool> {
        let condition = self.walk.numbers.get(i.cond);
        match self.walk.numbers.decide(condition, &self.walk.path) {
            Some(true) => return self.region(&i.then),
            Some(false) => return self.region(&i.els),
            None => {}
        }
        let (before, vars) = (self.written.clone(), self.state.vars.clone());
        self.account.spend(FAMILY * before.len()).ok()?;
        let side = |this: &mut Self, holds: bool, region: &'k [Stmt]| {
            let depth = this.walk.path.len();
            let more = this.walk.assume(condition, holds);
            this.walk.path.extend(more);
            this.written.clone_from(&before);
            this.state.vars.clone_from(&vars);
            let ends = this.region(region)?;
            this.walk.path.truncate(depth);
            Some((ends, std::mem::take(&mut this.written), std::mem::take(&mut this.state.vars)))
        };
        let (then, els) = (side(self, true, &i.then)?, side(self, false, &i.els)?);
        let ends = match (then.0, els.0) {
            (false, false) => false,
            (true, false) => {
                (self.written, self.state.vars) = (then.1, then.2);
                true
            }
            (false, true) => {
                (self.written, self.state.vars) = (els.1, els.2);
                true
            }
            (true, true) => {
                let stays = |f: &&Rc<Family>| [&then.1, &els.1].iter().all(|side| has(side, f));
                self.written = before.iter().filter(stays).cloned().collect();
                for (side, holds) in [(&then.1, true), (&els.1, false)] {
                    for family in side.iter().filter(|f| !has(&before, f)) {
                        let mut family = (**family).clone();
                        family.holds.push((condition, holds));
                        self.add(Rc::new(family));
                    }
                }
                self.state.vars = super::states::agreed(then.2, &els.2);
                true
            }
        };
        Some(ends)
    }

    fn scope(&mut self, s: &'k Scope) -> Option<bool> {
        let out = exits(&[&s.body], s.label);
        let jumps = out.continues || out.leaves;
        let (before, depth) = (self.before(&[&s.body]), self.walk.path.len());
        let ends = self.region(&s.body)?;
        self.walk.path.truncate(depth);
        if !jumps {
            return Some(ends);
        }
        // Somebody left before the end.
        self.after(before, &FxHashMap::default());
        Some(true)
    }

    /// What is there before a region that may come several times: without what it may undo.
    fn before(&mut self, regions: &[&Region]) -> Before {
        let changes = Changes::of(regions);
        self.written.retain(|f| !changes.declared.contains(&f.owner.0));
        Before {
            written: self.written.clone(),
            vars: self.state.vars.clone(),
            changes,
            reads: self.reads.len(),
            path: self.walk.path.len(),
            then: self.walk.numbers.now(),
        }
    }

    /// Only that is left after it, and these variables.
    fn after(&mut self, before: Before, vars: &FxHashMap<Var, SymbolicOffset>) {
        self.walk.path.truncate(before.path);
        self.written = before.written;
        self.state.vars = before.vars;
        self.state.vars.retain(|v, _| !before.changes.set.contains_key(v));
        self.state.vars.extend(vars);
    }

    /// Variables that each iteration sets once, to some constant more: what they begin with, and by how much they grow.
    fn counters(&mut self, regions: &[&'k Region], before: &Before) -> Vec<(Var, SymbolicOffset, i64)> {
        let mut read: FxHashMap<Value, Var> = FxHashMap::default();
        let mut out = Vec::new();
        for stmt in regions.iter().flat_map(|r| r.iter()) {
            match &stmt.op {
                Op::Get { dst, var } => drop(read.insert(*dst, *var)),
                Op::Set { var, value } if before.changes.set.get(var) == Some(&1) => {
                    let Some(&first) = before.vars.get(var) else { continue };
                    let Some(Op::Binary { op, a, b, .. }) = self.defs.get(value) else { continue };
                    let constant = |v: &Value| self.walk.constants.get(v).copied();
                    let by = match op {
                        BinOp::Add if read.get(a) == Some(var) => constant(b),
                        BinOp::Add if read.get(b) == Some(var) => constant(a),
                        BinOp::Sub if read.get(a) == Some(var) => constant(b).and_then(i64::checked_neg),
                        _ => None,
                    };
                    out.extend(by.map(|by| (*var, first, by)));
                }
                _ => {}
            }
        }
        out
    }

    /// Each counter after so many iterations.
    fn counted(
        &mut self,
        counters: &[(Var, SymbolicOffset, i64)],
        times: SymbolicOffset,
    ) -> FxHashMap<Var, SymbolicOffset> {
        let numbers = &mut self.walk.numbers;
        let mut at = |first: SymbolicOffset, by: i64| {
            let more = numbers.binary(INDEX, BinOp::Mul, times, SymbolicOffset::known(by));
            numbers.binary(INDEX, BinOp::Add, first, more)
        };
        counters.iter().map(|&(var, first, by)| (var, at(first, by))).collect()
    }

    fn for_loop(&mut self, f: &'k For) -> Option<bool> {
        let (lo, hi) = (self.walk.numbers.get(f.lo), self.walk.numbers.get(f.hi));
        let runs = self.walk.numbers.compare(INDEX, CmpOp::Lt, lo, hi);
        if self.walk.numbers.decide(runs, &self.walk.path) == Some(false) {
            return Some(true);
        }
        let out = exits(&[&f.body], f.label);
        let before = self.before(&[&f.body]);
        let counters = if out.continues { Vec::new() } else { self.counters(&[&f.body], &before) };
        let index = self.walk.numbers.symbol_in(lo, hi);
        self.walk.numbers.set(f.index, index);
        let below = self.walk.numbers.compare(INDEX, CmpOp::Lt, index, hi);
        let more = self.walk.assume(below, true);
        self.walk.path.extend(more);
        let times = self.walk.numbers.minus(index, lo);
        let counted = self.counted(&counters, times);
        self.state.vars.retain(|v, _| !before.changes.set.contains_key(v));
        self.state.vars.extend(counted);
        let ends = self.region(&f.body)?;
        let param = Param { symbol: index, lo, hi: Some(hi) };
        let all = self.all_iterations(&before, param, ends && !out.continues, !out.leaves, &[])?;
        let trips = self.walk.numbers.minus(hi, lo);
        let trips = self.walk.numbers.binary(INDEX, BinOp::Max, trips, SymbolicOffset::known(0));
        let vars = if out.leaves { FxHashMap::default() } else { self.counted(&counters, trips) };
        self.after(before, &vars);
        all.into_iter().for_each(|f| self.add(f));
        Some(true)
    }

    fn while_loop(&mut self, w: &'k While) -> Option<bool> {
        let regions = [&w.head, &w.body];
        let out = exits(&regions, w.label);
        let before = self.before(&regions);
        let counters = if out.continues { Vec::new() } else { self.counters(&regions, &before) };
        // The iteration's number.
        let index = self.walk.numbers.symbol();
        self.walk.numbers.natural(index);
        let counted = self.counted(&counters, index);
        self.state.vars.retain(|v, _| !before.changes.set.contains_key(v));
        self.state.vars.extend(counted);
        let mut ends = self.region(&w.head)?;
        let condition = self.walk.numbers.get(w.cond);
        let more = self.walk.assume(condition, true);
        let falls = self.falls(&more, index, before.then);
        self.walk.path.extend(more);
        ends = ends && self.region(&w.body)?;
        // Which iterations come is known where one that comes has all before it.
        let param = Param { symbol: index, lo: SymbolicOffset::known(0), hi: None };
        let all =
            self.all_iterations(&before, param, ends && !out.continues, falls && !out.leaves, &[(condition, true)])?;
        self.after(before, &FxHashMap::default());
        all.into_iter().for_each(|f| self.add(f));
        Some(true)
    }

    /// Whether there are conditions, and each of them holds in all iterations before one in which it does.
    fn falls(&self, conditions: &[Literal], index: SymbolicOffset, then: u32) -> bool {
        let numbers = &self.walk.numbers;
        !conditions.is_empty()
            && conditions.iter().all(|l| {
                let Some((a, b)) = numbers.sides(*l) else { return false };
                let old = |n: SymbolicOffset| numbers.made_of(n, then, &|id| id == index.base);
                let difference = numbers.sum(b).zip(numbers.sum(a)).and_then(|(b, a)| b.plus(&a, -1));
                let step =
                    difference.filter(|d| d.symbols().all(|s| s == index.base || !numbers.contains(s, index.base)));
                old(a) && old(b) && step.and_then(|d| d.step(index.base)?.number()).is_some_and(|n| n <= 0)
            })
    }

    /// Hands what an iteration writes on to the reads of later ones; what all of them write together. `runs` holds in
    /// each one that comes.
    fn all_iterations(
        &mut self,
        before: &Before,
        param: Param,
        whole: bool,
        all: bool,
        runs: &[(SymbolicOffset, bool)],
    ) -> Option<Vec<Rc<Family>>> {
        if !whole {
            return Some(Vec::new());
        }
        let declared = &before.changes.declared;
        let new: Vec<Rc<Family>> = self
            .written
            .iter()
            .filter(|f| !has(&before.written, f) && !declared.contains(&f.owner.0))
            .cloned()
            .collect();
        self.account.spend(FAMILY * (new.len() * 4 + self.written.len())).ok()?;
        let (mut earlier, mut together) = (Vec::new(), Vec::new());
        for family in &new {
            earlier.extend(self.general(
                family,
                Param { hi: Some(param.symbol), ..param },
                param.symbol,
                before.then,
                &[],
            ));
            if all {
                together.extend(self.general(family, param, param.symbol, before.then, runs).map(Rc::new));
            }
        }
        let earlier: Vec<Rc<Family>> = earlier.into_iter().map(Rc::new).collect();
        for read in &mut self.reads[before.reads..] {
            let same: Vec<_> = earlier.iter().filter(|f| f.owner == read.owner).cloned().collect();
            self.account.spend(FAMILY * (1 + same.len())).ok()?;
            if read.written.len() < 2 * FAMILIES {
                read.written.extend(same);
            }
        }
        Some(together)
    }

    /// The family for all values of `index` that `param` allows. `None` if it depends on what else is new since `then`.
    fn general(
        &mut self,
        f: &Family,
        param: Param,
        index: SymbolicOffset,
        then: u32,
        runs: &[(SymbolicOffset, bool)],
    ) -> Option<Family> {
        let numbers = &mut self.walk.numbers;
        let mut family = f.clone();
        family.holds.extend(runs);
        let known = |id: u32| id == index.base || f.params.iter().any(|p| p.symbol.base == id);
        if !family.numbers().all(|n| numbers.made_of(n, then, &known)) {
            return None;
        }
        let symbol = match param.hi {
            Some(hi) => numbers.symbol_in(param.lo, hi),
            None => numbers.symbol(),
        };
        let mut family = family.with(numbers, index, symbol)?;
        family.params.insert(0, Param { symbol, ..param });
        let above = numbers.compare(INDEX, CmpOp::Lt, symbol, param.lo);
        family.holds.push((above, false));
        if let Some(hi) = param.hi {
            let below = numbers.compare(INDEX, CmpOp::Lt, symbol, hi);
            family.holds.push((below, true));
        }
        Some(family)
    }
}

fn has(all: &[Rc<Family>], family: &Rc<Family>) -> bool {
    all.iter().any(|f| Rc::ptr_eq(f, family))
}

impl Family {
    fn numbers(&self) -> impl Iterator<Item = SymbolicOffset> + '_ {
        let bounds = self.params.iter().flat_map(|p| [Some(p.lo), p.hi]).flatten();
        self.axes.iter().flat_map(|(a, n)| [*a, *n]).chain(self.holds.iter().map(|(c, _)| *c)).chain(bounds)
    }

    /// With another number for a symbol.
    pub(super) fn with(
        &self,
        numbers: &mut super::numbers::Numbers,
        symbol: SymbolicOffset,
        to: SymbolicOffset,
    ) -> Option<Family> {
        let with = super::shift::Instead { symbol, to };
        let mut family = self.clone();
        for (a, n) in &mut family.axes {
            (*a, *n) = (numbers.instead(*a, with)?, numbers.instead(*n, with)?);
        }
        for (condition, _) in &mut family.holds {
            *condition = numbers.instead(*condition, with)?;
        }
        for p in &mut family.params {
            p.lo = numbers.instead(p.lo, with)?;
            p.hi = match p.hi {
                Some(hi) => Some(numbers.instead(hi, with)?),
                None => None,
            };
        }
        Some(family)
    }
}

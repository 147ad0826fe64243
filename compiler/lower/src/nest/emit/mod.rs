//! From a nest to loops: everything is computed in the outermost loop where all that it depends on is known.
//!
//! *Level* `l` is inside the loops of the axes before `l`. Guards become bounds of the loop over their innermost axis;
//! entries of tables are looked up, and swizzles and digits computed, on the first level where their axes are known,
//! and only where some element needs them.

mod bounds;
mod elem;
mod tables;

use super::{Form, Lookup, Nest, NestSide, Stored};
use crate::code::FunctionBuilder;
use elem::Elem;
use ptoc_ir::loops::{Addr, BinOp, Cast, CmpOp, LTy, MemTy, Op, Reg, Stride};

/// The body of a nest: what happens to the elements of all sides.
pub(crate) type Body<'b> = &'b mut dyn FnMut(&mut FunctionBuilder, &[Elem]);

/// Bounds of a loop.
#[derive(Clone, Copy, Debug)]
struct Clip {
    /// Elements that exist.
    all: (Reg, Reg),
    /// Those that no guard excludes.
    kept: (Reg, Reg),
}

/// What is known on a level.
#[derive(Clone, Debug)]
struct LevelState {
    /// The forms so far: start and the axes outside.
    at: Vec<Reg>,
    /// Byte and shift of each side, once they are settled: the axes inside only add.
    places: Vec<Option<(Reg, Option<Reg>)>>,
    /// Sides of which a table has no element.
    missing: Vec<bool>,
    clips: Vec<Option<Clip>>,
}

/// A nest on its way into code. The axes are in order, the outermost first.
pub(crate) struct NestEmitter<'c> {
    code: &'c mut FunctionBuilder,
    nest: &'c Nest,
    sides: &'c [NestSide],
    tables: &'c [Lookup],
    /// Written to side 0 where a guard or a table says so, with its type in memory.
    fill: Option<(Reg, MemTy)>,
    /// The innermost loop may be `Lanes`.
    lanes: bool,
    /// The body reads elements that a table does not have, as zeros.
    zeros: bool,
    /// On which level the entry of a table is looked up,
    lookups: Vec<usize>,
    /// a side's place becomes one that only adds,
    settles: Vec<usize>,
    /// the bounds of an axis are known,
    bounds: Vec<usize>,
    /// a form is needed last.
    needed: Vec<usize>,
}

impl<'c> NestEmitter<'c> {
    pub(crate) fn new(
        code: &'c mut FunctionBuilder,
        nest: &'c Nest,
        sides: &'c [NestSide],
        tables: &'c [Lookup],
    ) -> Self {
        let depth = nest.axes.len();
        let mut walk = NestEmitter {
            code,
            nest,
            sides,
            tables,
            fill: None,
            lanes: depth > 0,
            zeros: false,
            lookups: Vec::new(),
            settles: Vec::new(),
            bounds: vec![0; depth],
            needed: vec![0; nest.forms.len()],
        };
        walk.levels();
        walk
    }

    pub(crate) fn with_fill(self, fill: Option<(Reg, MemTy)>) -> Self {
        NestEmitter { fill, ..self }
    }

    pub(crate) fn without_lanes(self) -> Self {
        NestEmitter { lanes: false, ..self }
    }

    pub(crate) fn with_zeros(self) -> Self {
        NestEmitter { zeros: true, ..self }
    }

    /// The address of side 0, which has neither axes nor tables nor half bytes.
    pub(crate) fn element(mut self) -> (MemTy, Addr) {
        let at = self.nest.forms.iter().map(|f| f.start).collect();
        let (place, _) =
            self.settle(&self.sides[0], &LevelState { at, places: Vec::new(), missing: Vec::new(), clips: Vec::new() });
        let ty = match self.sides[0].stored {
            Stored::Whole(ty) => ty,
            Stored::Half { .. } => MemTy::U8,
        };
        (ty, Addr { base: self.sides[0].base, offset: place, stride: Stride::Const(0), gather: None })
    }

    /// Emits the loops.
    pub(crate) fn run(mut self, body: Body<'_>) {
        let nest = self.nest;
        let state = LevelState {
            at: nest.forms.iter().map(|f| f.start).collect(),
            places: vec![None; self.sides.len()],
            missing: vec![false; self.sides.len()],
            clips: vec![None; nest.axes.len()],
        };
        let mut conditions: Vec<(Reg, Reg)> = Vec::new();
        // Without elements nothing is looked up.
        if !self.tables.is_empty() {
            let zero = self.code.int(0);
            conditions.extend(nest.axes.iter().map(|a| (zero, a.extent)));
        }
        if self.all(&conditions) == Some(true) {
            return self.guarded(state, body);
        }
        let cond = self.condition(&conditions);
        self.code.push();
        self.guarded(state, body);
        let then = self.code.pop();
        self.conditional(cond, then, Vec::new());
    }

    /// Guards that no axis moves.
    fn guarded(&mut self, state: LevelState, body: Body<'_>) {
        let fixed = self.nest.guards.iter().filter(|g| self.innermost(g.at).is_none());
        let conditions: Vec<(Reg, Reg)> = fixed.map(|g| (state.at[g.at], g.bound)).collect();
        self.branch(&conditions, 0, state, &mut |this, state| this.enter(0, state, body));
    }

    /// `then` where all of these are less, else the fill of everything from level `l` on.
    fn branch(
        &mut self,
        conditions: &[(Reg, Reg)],
        l: usize,
        state: LevelState,
        then: &mut dyn FnMut(&mut Self, LevelState),
    ) {
        match self.all(conditions) {
            Some(true) => then(self, state),
            Some(false) => self.fill_level(l, state),
            None => {
                let cond = self.condition(conditions);
                self.code.push();
                then(self, state.clone());
                let kept = self.code.pop();
                self.code.push();
                self.fill_level(l, state);
                let filled = self.code.pop();
                self.conditional(cond, kept, filled);
            }
        }
    }

    fn conditional(&mut self, cond: Reg, then: ptoc_ir::loops::Region, els: ptoc_ir::loops::Region) {
        self.code.emit(Op::If(Box::new(ptoc_ir::loops::If { cond, then, els })));
    }

    /// Whether all hold: `Some(false)` if one surely does not, `None` if it is not known.
    fn all(&self, less: &[(Reg, Reg)]) -> Option<bool> {
        let known = less.iter().map(|&(a, b)| Some(self.code.known(a)? < self.code.known(b)?));
        let known: Vec<Option<bool>> = known.collect();
        match () {
            () if known.contains(&Some(false)) => Some(false),
            () if known.contains(&None) => None,
            () => Some(true),
        }
    }

    fn condition(&mut self, less: &[(Reg, Reg)]) -> Reg {
        let unknown = less.iter().filter(|(a, b)| self.code.known(*a).is_none() || self.code.known(*b).is_none());
        let unknown: Vec<(Reg, Reg)> = unknown.copied().collect();
        let mut all = None;
        for (a, b) in unknown {
            let this = self.code.cmp(CmpOp::Lt, a, b);
            all = Some(all.map_or(this, |all| self.code.bin(BinOp::And, all, this)));
        }
        all.unwrap_or_else(|| self.code.bits(LTy::Bool, 1))
    }

    // ---- levels --------------------------------------------------------------------------------------------------

    /// The innermost axis that moves a form.
    fn innermost(&self, f: Form) -> Option<usize> {
        (0..self.nest.axes.len()).rev().find(|&a| self.nest.moves(self.code, a, f))
    }

    /// The first level on which all axes of a form are known.
    fn level(&self, f: Form) -> usize {
        self.innermost(f).map_or(0, |a| a + 1)
    }

    /// Decides on which level what is computed.
    fn levels(&mut self) {
        let nest = self.nest;
        let depth = nest.axes.len();
        // Outside of an axis that moves a guard nobody knows where, it cannot be said whether an element is left.
        let unclear = (0..depth).rev().find(|&a| {
            let backwards = |f: Form| self.code.known(nest.forms[f].steps[a]).is_none_or(|t| t < 0);
            nest.guards.iter().any(|g| backwards(g.at))
        });
        let mut level = unclear.map_or(0, |a| a + 1);
        for table in self.tables {
            // In the order in which the interpreter looks at them.
            level = level.max(self.level(table.at));
            self.lookups.push(level);
            self.needed[table.at] = level;
        }
        for (n, side) in self.sides.iter().enumerate() {
            let settle = self.settle_level(n, side);
            self.settles.push(settle);
            for form in side.digits.iter().map(|d| d.form).chain([side.at]) {
                self.needed[form] = settle;
            }
        }
        for g in &nest.guards {
            if let Some(a) = self.innermost(g.at) {
                let others = (0..a).rev().find(|&b| nest.moves(self.code, b, g.at)).map_or(0, |b| b + 1);
                self.bounds[a] = self.bounds[a].max(others);
            }
        }
        for g in &nest.guards {
            if let Some(a) = self.innermost(g.at) {
                self.needed[g.at] = self.bounds[a];
            }
        }
    }

    fn settle_level(&self, number: usize, side: &NestSide) -> usize {
        let (nest, depth) = (self.nest, self.nest.axes.len());
        let steps = &nest.forms[side.at].steps;
        let tables: Vec<(usize, Reg)> = (0..self.tables.len())
            .filter(|&t| self.tables[t].side == number)
            .map(|t| (self.lookups[t], self.tables[t].stride))
            .collect();
        let digits = side.digits.iter().map(|d| self.level(d.form));
        let first = digits.chain(tables.iter().map(|t| t.0)).max().unwrap_or(0);
        let strides: Vec<Reg> = tables.iter().map(|t| t.1).collect();
        (first..depth)
            .find(|&l| {
                let inner: Vec<usize> = (l..depth).collect();
                let reach = inner.iter().try_fold(0i64, |sum, &a| {
                    let step = self.code.known(steps[a]).filter(|t| *t >= 0)?;
                    let last = if step == 0 { 0 } else { self.code.known(nest.axes[a].extent)? - 1 };
                    sum.checked_add(step.checked_mul(last.max(0))?)
                });
                let swizzled = side.xor.is_none_or(|xor| match reach {
                    Some(0) => true,
                    Some(n) => n < xor.chunk && side.aligned(self.code, nest, &strides, xor.chunk, &inner),
                    None => false,
                });
                let even = |&a: &usize| self.code.known(steps[a]).is_some_and(|t| t % 2 == 0);
                let halves = !matches!(side.stored, Stored::Half { .. }) || inner.iter().all(even);
                swizzled && halves
            })
            .unwrap_or(depth)
    }

    /// Bytes that an axis adds to the place of a settled side.
    fn inner_step(&mut self, side: &NestSide, a: usize) -> Reg {
        let step = self.nest.forms[side.at].steps[a];
        match (side.stored, self.code.known(step)) {
            (Stored::Half { .. }, Some(t)) => self.code.int(t / 2),
            _ => step,
        }
    }

    /// A side's place from its form, digits and swizzle.
    fn settle(&mut self, side: &NestSide, state: &LevelState) -> (Reg, Option<Reg>) {
        let code = &mut *self.code;
        let mut n = state.at[side.at];
        for digits in &side.digits {
            let more = digits.apply(code, state.at[digits.form]);
            n = code.add(n, more);
        }
        if let Some(xor) = side.xor {
            n = xor.apply(code, n);
        }
        if let Some(origin) = side.origin {
            n = code.add(n, origin);
        }
        let Stored::Half { .. } = side.stored else { return (n, None) };
        let one = code.int(1);
        let odd = code.bin(BinOp::And, n, one);
        let shift = match code.known(odd) {
            Some(odd) => code.i32(4 * odd as i32),
            None => {
                let (odd, two) = (code.cast(Cast::Wrap, odd, LTy::I32), code.i32(2));
                code.bin(BinOp::Shl, odd, two)
            }
        };
        (code.bin(BinOp::ShrU, n, one), Some(shift))
    }

    /// The state behind index `x` of axis `a`.
    fn advance(&mut self, state: &LevelState, a: usize, x: Reg) -> LevelState {
        let mut next = state.clone();
        for (f, form) in self.nest.forms.iter().enumerate() {
            if a < self.needed[f] {
                let step = self.code.bin(BinOp::Mul, x, form.steps[a]);
                next.at[f] = self.code.add(next.at[f], step);
            }
        }
        for (n, side) in self.sides.iter().enumerate() {
            if let Some((place, shift)) = next.places[n] {
                let step = self.inner_step(side, a);
                let step = self.code.bin(BinOp::Mul, x, step);
                next.places[n] = Some((self.code.add(place, step), shift));
            }
        }
        next
    }

    // ---- loops ---------------------------------------------------------------------------------------------------

    fn enter(&mut self, l: usize, mut state: LevelState, body: Body<'_>) {
        for a in l..self.nest.axes.len() {
            if state.clips[a].is_none() && self.bounds[a] <= l {
                state.clips[a] = Some(self.clip(a, &state));
            }
        }
        if !self.lookups.contains(&l) {
            return self.settled(l, state, body);
        }
        // The conditions under which some element inside needs the tables.
        let mut conditions = Vec::new();
        for a in l..self.nest.axes.len() {
            match state.clips[a] {
                Some(clip) => conditions.push(clip.kept),
                None => {
                    let guards = self.nest.guards.iter().filter(|g| self.innermost(g.at) == Some(a));
                    conditions.extend(guards.map(|g| (state.at[g.at], g.bound)));
                }
            }
        }
        self.branch(&conditions, l, state, &mut |this, state| this.look_up(l, 0, state, body));
    }

    /// The rest of a level, now that all entries are known.
    fn settled(&mut self, l: usize, mut state: LevelState, body: Body<'_>) {
        for (n, side) in self.sides.iter().enumerate() {
            if self.settles[n] == l {
                state.places[n] = Some(self.settle(side, &state));
            }
        }
        if l == self.nest.axes.len() {
            let elems = self.elems(&state, None);
            return body(self.code, &elems);
        }
        let clip = self.clip_of(l, &state);
        if self.fill.is_some() {
            self.fill_range(l, (clip.all.0, clip.kept.0), &state);
            self.fill_range(l, (clip.kept.1, clip.all.1), &state);
        }
        let in_lanes = l + 1 == self.nest.axes.len() && self.lanes && !self.lookups.contains(&(l + 1));
        match in_lanes {
            true => self.in_lanes(l, clip.kept, &state, self.sides.len(), body),
            false => self.each(l, clip.kept, &state, &mut |this, state| this.enter(l + 1, state, body)),
        }
    }

    /// A loop over axis `l`.
    fn each(
        &mut self,
        l: usize,
        (lo, hi): (Reg, Reg),
        state: &LevelState,
        inside: &mut dyn FnMut(&mut Self, LevelState),
    ) {
        match (self.code.known(lo), self.code.known(hi)) {
            (Some(a), Some(b)) if a >= b => {}
            (Some(a), Some(b)) if a + 1 == b => {
                let next = self.advance(state, l, lo);
                inside(self, next);
            }
            _ => {
                let (label, index) = (self.code.label(), self.code.reg(LTy::I64));
                self.code.push();
                let next = self.advance(state, l, index);
                inside(self, next);
                let body = self.code.pop();
                let f = ptoc_ir::loops::For { label, index, lo, hi, step: 1, body };
                self.code.emit(Op::For(Box::new(f)));
            }
        }
    }

    /// The innermost axis as lanes, of the first `sides` sides.
    fn in_lanes(&mut self, l: usize, (lo, hi): (Reg, Reg), state: &LevelState, sides: usize, body: Body<'_>) {
        let count = self.code.bin(BinOp::Sub, hi, lo);
        if self.code.known(count).is_some_and(|n| n <= 0) {
            return;
        }
        let first = self.advance(state, l, lo);
        let lane = self.code.reg(LTy::I64);
        self.code.open_lanes();
        let mut here = first.clone();
        if self.settles[..sides].contains(&(l + 1)) {
            here.at = self.advance(&LevelState { places: vec![None; self.sides.len()], ..first.clone() }, l, lane).at;
            for (n, side) in self.sides.iter().enumerate().take(sides) {
                if self.settles[n] == l + 1 {
                    here.places[n] = Some(self.settle(side, &here));
                }
            }
        }
        let elems = self.elems(&here, Some(l));
        body(self.code, &elems);
        self.code.close_lanes(lane, count);
    }

    /// The elements of all sides, on the innermost level or along the lanes of an axis.
    fn elems(&mut self, state: &LevelState, lanes: Option<usize>) -> Vec<Elem> {
        let mut elems = Vec::with_capacity(self.sides.len());
        for (n, side) in self.sides.iter().enumerate() {
            let zero = self.code.int(0);
            let (place, shift) = state.places[n].unwrap_or((zero, None));
            let mut addr = Addr { base: side.base, offset: place, stride: Stride::Const(0), gather: None };
            match lanes {
                Some(l) if self.settles[n] == l + 1 => {
                    addr.offset = zero;
                    addr.gather = Some(place);
                }
                Some(l) => {
                    let step = self.inner_step(side, l);
                    addr.stride = self.code.known(step).map_or(Stride::Reg(step), Stride::Const);
                }
                None => {}
            }
            elems.push(Elem { addr, stored: side.stored, shift, missing: state.missing[n] });
        }
        elems
    }
}

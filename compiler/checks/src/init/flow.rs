//! The walk through the program.

use super::carried::Loops;
use super::state::{InitState, S};
use super::{Facts, Object, object_count};
use ptoc_diagnostics::{Account, Budget, Span};
use ptoc_ir::tile::{For, If, Kernel, Label, Op, Region, Stmt, TileRef, Value, While, jumps};
use ptoc_isa::CmpOp;
use ptoc_placement::access::{AccessMode, AccessedStorage, accesses, is_auto};
use rustc_hash::{FxHashMap, FxHashSet};

/// Beyond this nesting a loop's iterations are not told apart any more: the cost would be exponential.
const PEELED: usize = 6;
/// Steps for iterations that are told apart, at most, and the part of what is left that they may be: of kernels with
/// more loops, or behind many such kernels, fewer loops around each other are.
const STEPS: usize = 1 << 22;
const PART: usize = Budget::PART as usize;
/// Steps of a visit of a statement.
const VISIT: usize = 4;

/// Which iteration of a loop is looked at.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum IterationClass {
    First,
    Later,
}

/// What one visit of a read found.
#[derive(Clone, Debug)]
pub(super) struct Visit {
    pub(super) state: S,
    /// Iterations of the loops around, outermost first.
    pub(super) passes: Vec<IterationClass>,
    /// From this loop on, inwards, nothing but the loops' own starts decides whether control comes here.
    pub(super) clean_from: usize,
}

/// A counted loop.
#[derive(Clone, Copy, Debug)]
pub(super) struct Loop {
    pub(super) lo: Value,
    pub(super) hi: Value,
    pub(super) index: Value,
    pub(super) span: Span,
}

/// A loop that is being walked.
struct Around {
    /// Its lower bound and index; `None` for `while`.
    counted: Option<(Value, Value)>,
    pass: IterationClass,
}

/// States that jumps to a label carry.
struct Target {
    label: Label,
    breaks: InitState,
    continues: InitState,
}

pub(super) struct InitAnalysis<'k> {
    kernel: &'k Kernel,
    facts: &'k Facts,
    pub(super) loops: Vec<Loop>,
    loop_numbers: FxHashMap<*const For, usize>,
    pub(super) visits: FxHashMap<(*const Stmt, Object), (Span, Vec<Visit>)>,
    around: Vec<Around>,
    /// See [`Visit::clean_from`].
    clean_from: usize,
    targets: Vec<Target>,
    /// Values that can be named at this place, and which of them the regions around have defined, innermost last.
    named: FxHashSet<Value>,
    scope: Vec<Vec<Value>>,
    /// See [`PEELED`].
    peeled: usize,
    loops_of: Loops,
}

impl<'k> InitAnalysis<'k> {
    /// `account`: what telling iterations apart takes its steps from.
    pub(super) fn new(kernel: &'k Kernel, facts: &'k Facts, account: Account<'_>) -> InitAnalysis<'k> {
        let mut outermost: FxHashSet<Value> = FxHashSet::default();
        outermost.extend(kernel.dims.values().map(|d| d.value));
        outermost.extend(kernel.scalars.iter().map(|s| s.value));
        outermost.extend(kernel.grid.iter().map(|g| g.index));
        outermost.extend(kernel.prologue.iter().filter_map(|s| s.op.def()));
        InitAnalysis {
            kernel,
            facts,
            loops: Vec::new(),
            loop_numbers: FxHashMap::default(),
            visits: FxHashMap::default(),
            around: Vec::new(),
            clean_from: 0,
            targets: Vec::new(),
            named: outermost,
            scope: Vec::new(),
            peeled: peeled(&kernel.body, account),
            loops_of: Loops::new(kernel),
        }
    }

    pub(super) fn run(&mut self) {
        let start = InitState::start(object_count(self.kernel));
        self.region(&self.kernel.body, start);
    }

    fn region(&mut self, region: &'k Region, mut state: InitState) -> InitState {
        self.open();
        for stmt in region {
            state = self.stmt(stmt, state);
        }
        self.close();
        state
    }

    fn open(&mut self) {
        self.scope.push(Vec::new());
    }

    fn close(&mut self) {
        for value in self.scope.pop().into_iter().flatten() {
            self.named.remove(&value);
        }
    }

    fn define(&mut self, value: Value) {
        if let Some(top) = self.scope.last_mut()
            && self.named.insert(value)
        {
            top.push(value);
        }
    }

    fn visible(&self, l: usize) -> bool {
        let Loop { lo, hi, .. } = self.loops[l];
        [lo, hi].iter().all(|v| self.named.contains(v))
    }

    fn stmt(&mut self, stmt: &'k Stmt, mut state: InitState) -> InitState {
        ptoc_diagnostics::work(1);
        for (access, place) in accesses(self.kernel, stmt) {
            let object = Object::of(&place);
            let index = object.index(self.kernel);
            match access {
                AccessMode::Read if self.empty(&place) => {}
                AccessMode::Read => {
                    if let Some(s) = state.get(index).cloned() {
                        let (read, left) = s.split(&|l| self.empty_without(l, &place));
                        self.visit(stmt, object, &read);
                        // Once reported, once checked.
                        state.set(index, left);
                    }
                }
                AccessMode::Write => {
                    state.set(index, S::Yes);
                    if let Object::Tile(tile) = object {
                        self.loops_of.placed.aliases(self.kernel, tile, &mut |other| {
                            state.set(Object::Tile(other).index(self.kernel), S::Yes);
                        });
                    }
                }
            }
        }
        if let Some(value) = stmt.op.def() {
            self.define(value);
        }
        match &stmt.op {
            // Bytes at an address of the author's keep what was written to them.
            Op::Alloc { tile } if is_auto(self.kernel, *tile) => {
                state.set(Object::Tile(*tile).index(self.kernel), S::No);
                state
            }
            Op::For(f) => self.for_loop(f, stmt.span, state),
            Op::While(w) => self.while_loop(w, state),
            Op::If(i) => self.conditional(i, state),
            Op::Scope(s) => {
                self.target(s.label);
                let mut end = self.region(&s.body, state);
                if let Some(target) = self.targets.pop() {
                    end = end.join(target.breaks);
                }
                end.keep(&|l| self.visible(l));
                end
            }
            Op::Break(label) | Op::Leave(label) => self.jump(*label, state, false),
            Op::Continue(label) => self.jump(*label, state, true),
            _ => state,
        }
    }

    /// Whether a read of `place` has no elements where loop `l` does not run, since the loop counts its rows or
    /// columns: a scan of an empty slice has nothing to write, and nobody reads it.
    fn empty_without(&self, l: usize, place: &AccessedStorage) -> bool {
        let AccessedStorage::Tile(TileRef { valid: (rows, cols), .. }) = place else { return false };
        let Loop { lo, hi, .. } = self.loops[l];
        self.facts.consts[lo] == Some(0) && (hi == *rows || hi == *cols)
    }

    /// Whether a read of `place` has no elements: its valid shape has no rows, or no columns.
    fn empty(&self, place: &AccessedStorage) -> bool {
        let AccessedStorage::Tile(TileRef { valid: (rows, cols), .. }) = place else { return false };
        [rows, cols].into_iter().any(|n| self.facts.consts[*n] == Some(0))
    }

    fn visit(&mut self, stmt: &Stmt, object: Object, state: &S) {
        let passes = self.around.iter().map(|a| a.pass).collect();
        let visit = Visit { state: state.clone(), passes, clean_from: self.clean_from };
        let key = (std::ptr::from_ref(stmt), object);
        self.visits.entry(key).or_insert_with(|| (stmt.span, Vec::new())).1.push(visit);
    }

    fn target(&mut self, label: Label) {
        self.targets.push(Target { label, breaks: InitState::UNREACHABLE, continues: InitState::UNREACHABLE });
    }

    fn jump(&mut self, label: Label, state: InitState, continues: bool) -> InitState {
        if let Some(target) = self.targets.iter_mut().rev().find(|t| t.label == label) {
            let slot = if continues { &mut target.continues } else { &mut target.breaks };
            *slot = std::mem::replace(slot, InitState::UNREACHABLE).join(state);
        }
        InitState::UNREACHABLE
    }

    /// Runs `f` behind a condition that is not understood.
    fn guarded<T>(&mut self, f: impl FnOnce(&mut Self) -> T) -> T {
        let outer = std::mem::replace(&mut self.clean_from, self.around.len());
        let result = f(self);
        self.clean_from = outer;
        result
    }

    fn conditional(&mut self, i: &'k If, state: InitState) -> InitState {
        match self.decide(i.cond) {
            Some(true) => self.region(&i.then, state),
            Some(false) => self.region(&i.els, state),
            None => {
                let jumps = jumps(&i.then) || jumps(&i.els);
                let mut then = self.guarded(|this| this.region(&i.then, state.clone()));
                let mut els = self.guarded(|this| this.region(&i.els, state.clone()));
                // A loop of one branch alone says nothing about the other path.
                let known: FxHashSet<usize> = state.loops().collect();
                then.keep(&|l| known.contains(&l));
                els.keep(&|l| known.contains(&l));
                if jumps {
                    self.clean_from = self.around.len();
                }
                then.join(els)
            }
        }
    }

    /// The value of the condition in the iterations that are looked at; `None` if it is not known.
    fn decide(&self, cond: Value) -> Option<bool> {
        if let Some(inner) = self.facts.nots[cond] {
            return self.decide(inner).map(|b| !b);
        }
        let (op, a, b) = self.facts.compares[cond]?;
        let equal = |x: Value, y: Value| {
            x == y || (self.facts.consts[x].is_some() && self.facts.consts[x] == self.facts.consts[y])
        };
        for around in self.around.iter().take(self.peeled) {
            let Some((index, lo)) = around.counted else { continue };
            let first = around.pass == IterationClass::First;
            let result = match op {
                CmpOp::Eq if (a == index && equal(b, lo)) || (b == index && equal(a, lo)) => Some(first),
                CmpOp::Ne if (a == index && equal(b, lo)) || (b == index && equal(a, lo)) => Some(!first),
                CmpOp::Gt if a == index && equal(b, lo) => Some(!first),
                CmpOp::Lt if b == index && equal(a, lo) => Some(!first),
                CmpOp::Le if a == index && equal(b, lo) => Some(first),
                CmpOp::Ge if b == index && equal(a, lo) => Some(first),
                _ => None,
            };
            if result.is_some() {
                return result;
            }
        }
        None
    }

    /// One iteration: the state at its end, with what `continue` carries; breaks are collected in `broken`.
    fn iteration(
        &mut self,
        label: Label,
        around: Around,
        state: InitState,
        broken: &mut InitState,
        body: &mut dyn FnMut(&mut Self, InitState) -> InitState,
    ) -> InitState {
        self.target(label);
        self.around.push(around);
        let clean = self.clean_from;
        let mut end = body(self, state);
        self.clean_from = clean;
        self.around.pop();
        if let Some(target) = self.targets.pop() {
            end = end.join(target.continues);
            *broken = std::mem::replace(broken, InitState::UNREACHABLE).join(target.breaks);
        }
        end
    }

    /// The state after at least one iteration, breaks included.
    fn iterations(
        &mut self,
        label: Label,
        counted: Option<(Value, Value)>,
        state: InitState,
        body: &mut dyn FnMut(&mut Self, InitState) -> InitState,
    ) -> InitState {
        let mut broken = InitState::UNREACHABLE;
        let at = |pass| Around { counted, pass };
        if self.around.len() >= self.peeled {
            // All iterations as one.
            let entry = self.loops_of.carried(self.kernel, label, state);
            return self.iteration(label, at(IterationClass::Later), entry, &mut broken, body).join(broken);
        }
        let first = self.iteration(label, at(IterationClass::First), state, &mut broken, body);
        let entry = self.loops_of.carried(self.kernel, label, first.clone());
        let later = self.iteration(label, at(IterationClass::Later), entry, &mut broken, body);
        first.join(later).join(broken)
    }

    fn for_loop(&mut self, f: &'k For, span: Span, state: InitState) -> InitState {
        let key = std::ptr::from_ref(f);
        let number = match self.loop_numbers.get(&key) {
            Some(&n) => n,
            None => {
                self.loops.push(Loop { lo: f.lo, hi: f.hi, index: f.index, span });
                self.loop_numbers.insert(key, self.loops.len() - 1);
                self.loops.len() - 1
            }
        };
        let runs = match (self.facts.consts[f.lo], self.facts.consts[f.hi]) {
            (Some(lo), Some(hi)) => Some(lo < hi),
            _ => None,
        };
        if runs == Some(false) {
            return state;
        }
        // Seen from the loops around, a loop that may not run is a condition; seen from itself it is not.
        let outer = self.clean_from;
        if runs.is_none() {
            self.clean_from = self.around.len();
        }
        let mut ran = self.iterations(f.label, Some((f.index, f.lo)), state.clone(), &mut |this, state| {
            this.open();
            this.define(f.index);
            let end = this.region(&f.body, state);
            this.close();
            end
        });
        self.clean_from = outer;
        if runs == Some(true) {
            ran.keep(&|l| self.visible(l));
            return ran;
        }
        state.after_loop(ran, number, &|l| self.visible(l))
    }

    fn while_loop(&mut self, w: &'k While, state: InitState) -> InitState {
        let outer = std::mem::replace(&mut self.clean_from, self.around.len());
        let mut ran = self.iterations(w.label, None, state.clone(), &mut |this, state| {
            // The body sees the head's values.
            this.open();
            let mut at_test = state;
            for stmt in &w.head {
                at_test = this.stmt(stmt, at_test);
            }
            // Leaving here is a way out of the loop.
            if let Some(target) = this.targets.last_mut() {
                target.breaks = std::mem::replace(&mut target.breaks, InitState::UNREACHABLE).join(at_test.clone());
            }
            let end = this.guarded(|this| this.region(&w.body, at_test));
            this.close();
            end
        });
        self.clean_from = outer;
        // The head always runs once, so that the state after it is among the breaks.
        ran.keep(&|l| self.visible(l));
        ran
    }
}

/// Of how many loops around each other the first iteration is told from later ones.
fn peeled(body: &Region, account: Account<'_>) -> usize {
    fn count(region: &Region, depth: usize, at: &mut Vec<usize>) {
        for stmt in region {
            at.resize(at.len().max(depth + 1), 0);
            at[depth] += 1;
            let inside = matches!(stmt.op, Op::For(_) | Op::While(_));
            stmt.op.regions().for_each(|r| count(r, depth + usize::from(inside), at));
        }
    }
    let mut at = Vec::new();
    count(body, 0, &mut at);
    // Each of them is walked as the first and as later ones, deeper ones as all iterations at once.
    let steps = |peeled: usize| -> usize {
        at.iter().enumerate().map(|(n, count)| count << n.min(peeled)).sum::<usize>() * VISIT
    };
    let within = |most: usize| (1..=PEELED).rev().find(|n| steps(*n) <= most).unwrap_or(0);
    let peeled = within(STEPS.min(account.left() / PART));
    if peeled < within(STEPS) {
        account.fell_short();
    }
    // Without any, each statement is walked once; that is nobody's choice.
    if peeled > 0 && account.spend(steps(peeled)).is_err() {
        return 0;
    }
    peeled
}

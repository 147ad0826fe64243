//! Abstract interpretation of a block: the walk: every way through a block, each state once.

use super::bytes::Areas;
use super::code::{HazardOp, HazardProgram};
use super::find::{Finding, Findings, HazardFault};
use super::order::{Carried, Order};
use super::reported::Told;
use super::state::HazardState;
use super::touch::{TouchKind, TouchedObject as Place};
use ptoc_diagnostics::Account;
use ptoc_ir::tile::{EventRef, Op, SyncOp, Tile, Value};
use ptoc_isa::{Loc, Pipe, Target};
use rustc_hash::{FxHashMap, FxHashSet};

/// Steps of one walk.
const STEPS: u64 = 200_000;
/// States that are kept: three loops around each other over one dimension that is not known take 27,000.
const STATES: usize = 60_000;
/// Words of them: of large states fewer are kept.
const WORDS: usize = 3_000_000;
/// Words of states that are still to be followed.
const HELD: usize = 8_000_000;
/// Steps of the budget that a step of the walk takes, beside those for its state.
const STEP: usize = 16;
/// Elements of an array that are told apart if the index is not known.
const ELEMENTS: i64 = 16;

/// Areas of one touch by element, origin and address.
type AreaKey = (usize, usize, i64, i64, i64, i64);

pub(super) struct HazardInterpreter<'k> {
    pub(super) code: &'k HazardProgram<'k>,
    pub(super) carried: Carried,
    pub(super) areas: Areas,
    /// Stream of each site.
    streams: Vec<usize>,
    /// The location that stands for the memory behind each location.
    homes: [Loc; Loc::ALL.len()],
    /// First element of each tile in [`HazardState::bound`].
    pub(super) first_bound: Vec<usize>,
    seen: FxHashSet<Box<[u64]>>,
    stack: Vec<HazardState>,
    pub(super) found: Findings,
    pub(super) told: Told,
    pub(super) known_areas: FxHashMap<AreaKey, u32>,
    pub(super) aged: FxHashMap<(u32, usize, bool), u32>,
    /// Tensors whose accesses may meet unordered.
    pub(super) shared: Vec<bool>,
    account: Account<'k>,
    steps: u64,
    /// Of the states that were met.
    words: usize,
    /// Of the states that are still to be followed.
    held: usize,
}

/// There are more ways than are followed.
#[derive(Clone, Copy, Debug)]
pub(super) struct GivenUp;

/// Where a step leads.
pub(super) enum Then {
    /// To the next one.
    On,
    /// The way is over, or has forked.
    Stop,
}

impl<'k> HazardInterpreter<'k> {
    pub(super) fn new(
        code: &'k HazardProgram<'k>,
        target: &Target,
        account: Account<'k>,
    ) -> Option<HazardInterpreter<'k>> {
        HazardInterpreter::with(code, target, HazardState::new(code, Order::default()), account)
    }

    /// One that begins with what `start` knows.
    pub(super) fn with(
        code: &'k HazardProgram<'k>,
        target: &Target,
        mut start: HazardState,
        account: Account<'k>,
    ) -> Option<HazardInterpreter<'k>> {
        let pipes = code.sites.iter().map(|s| (s.role, s.pipe.unwrap_or(Pipe::S)));
        let carried = Carried::new(code.kernel, pipes, target)?;
        let streams = code.sites.iter().map(|s| carried.stream(s.role, s.pipe.unwrap_or(Pipe::S))).collect();
        let mut next = 0;
        let first_bound = code.kernel.tiles.values().map(|t| {
            next += t.count as usize;
            next - t.count as usize
        });
        let first_bound = first_bound.collect();
        start.order = Order::new(code.kernel, &carried);
        // The launch's own checks hold.
        for stmt in &code.kernel.prologue {
            if let Op::Check { cond, .. } = &stmt.op {
                start.holds(code, *cond);
            }
        }
        let mut walk = HazardInterpreter {
            code,
            carried,
            areas: Areas::default(),
            streams,
            homes: Loc::ALL.map(|loc| target.home(loc)),
            first_bound,
            seen: FxHashSet::default(),
            stack: vec![start],
            found: Findings::default(),
            told: Told::default(),
            known_areas: FxHashMap::default(),
            aged: FxHashMap::default(),
            shared: Vec::new(),
            account,
            steps: 0,
            words: 0,
            held: 0,
        };
        walk.shared = code.kernel.tensors.keys().map(|t| walk.is_shared(t)).collect();
        Some(walk)
    }

    /// The location that stands for the tile's memory.
    pub(super) fn home(&self, tile: Tile) -> Loc {
        self.homes[self.code.kernel.tiles[tile].ty.loc as usize]
    }

    /// Whether two accesses of the tensor that conflict may be on different pipes, or unordered on one.
    fn is_shared(&self, tensor: ptoc_ir::tile::TensorId) -> bool {
        let mut uses: Vec<(usize, TouchKind)> = Vec::new();
        for (n, site) in self.code.sites.iter().enumerate() {
            for touch in &site.touches {
                let of = match touch.what {
                    Place::View(t, ..) | Place::Element(t, _) | Place::Tensor(t) => Some(t),
                    Place::Tile(_) => None,
                };
                if of == Some(tensor) {
                    uses.push((self.streams[n], touch.kind));
                }
            }
        }
        uses.iter().any(|a| uses.iter().any(|b| a.1.conflicts(b.1) && (a.0 != b.0 || self.weak(a.0))))
    }

    fn weak(&self, stream: usize) -> bool {
        let s = self.carried.streams[stream];
        s.start != s.done
    }

    /// Walks every way. `Err`: more of them than are followed; what was found until then stands.
    pub(super) fn run(&mut self) -> Result<(), GivenUp> {
        while let Some(mut state) = self.stack.pop() {
            self.held = self.held.saturating_sub(state.words());
            loop {
                let step = state.step;
                self.steps += 1;
                let full = self.seen.len() > STATES || self.words > WORDS || self.held > HELD;
                if self.steps > STEPS || full || self.account.spend(STEP + state.words() / 4).is_err() {
                    return Err(GivenUp);
                }
                state.step += 1;
                match self.step(&mut state, step) {
                    Then::On => {}
                    Then::Stop => break,
                }
            }
        }
        Ok(())
    }

    /// A way that is followed later.
    pub(super) fn later(&mut self, state: HazardState) {
        self.held += state.words();
        self.stack.push(state);
    }

    /// Whether this state was met before. Notes that it was met.
    pub(super) fn again(&mut self, state: &HazardState) -> bool {
        let key = state.key();
        let words = key.len();
        let new = self.seen.insert(key);
        self.words += if new { words } else { 0 };
        !new
    }

    fn step(&mut self, state: &mut HazardState, step: usize) -> Then {
        let code = self.code;
        match code.steps[step] {
            HazardOp::Unknown(slot, positive) => {
                let low = if positive { 0 } else { super::domain::MIN };
                state.slots[slot] = super::domain::AffineValue::range(low, super::domain::MAX);
                if let Some(v) = code.slots[slot] {
                    state.assumed.retain(|a| a.0 != v);
                }
                Then::On
            }
            HazardOp::Get(slot, var) => {
                state.slots[slot] = state.vars[cranelift_entity::EntityRef::index(var)];
                if let Some(v) = code.slots[slot] {
                    state.assumed.retain(|a| a.0 != v);
                }
                Then::On
            }
            HazardOp::Set(var, value) => {
                state.vars[cranelift_entity::EntityRef::index(var)] = state.value(code, value);
                Then::On
            }
            HazardOp::Bind(tile, element, addr) => self.bind(state, tile, element, addr, step),
            HazardOp::Access(site) => self.access(state, site, step),
            HazardOp::Sync(site, op) => self.sync(state, site, op, step),
            HazardOp::Holds(cond) => {
                if state.holds(code, cond) {
                    Then::On
                } else {
                    Then::Stop
                }
            }
            HazardOp::Branch(cond, otherwise) => self.branch(state, cond, otherwise),
            HazardOp::Jump(to) => {
                state.step = to;
                Then::On
            }
            HazardOp::Join => {
                if self.again(state) {
                    return Then::Stop;
                }
                Then::On
            }
            HazardOp::Enter(l) => self.enter(state, l),
            HazardOp::Head(l) => self.head(state, l),
            HazardOp::Next(l) => self.next(state, l),
            HazardOp::Leave(l) => {
                self.age(state, l, true);
                state.leave(code, l);
                if self.again(state) { Then::Stop } else { Then::On }
            }
            HazardOp::End => {
                self.end(state);
                Then::Stop
            }
        }
    }

    fn branch(&mut self, state: &mut HazardState, cond: Value, otherwise: usize) -> Then {
        if let Some(n) = state.value(self.code, cond).constant() {
            if n == 0 {
                state.step = otherwise;
            }
            return Then::On;
        }
        let mut other = state.clone();
        other.step = otherwise;
        if other.decide(self.code, cond, false) {
            self.later(other);
        }
        if state.decide(self.code, cond, true) { Then::On } else { Then::Stop }
    }

    /// The element of an array. `Err` with what happens where it is not one known number: the walk forks, or (`On`) it
    /// is any of them.
    pub(super) fn element(
        &mut self,
        state: &HazardState,
        element: Option<Value>,
        count: u32,
        step: usize,
    ) -> Result<i64, Then> {
        let Some(v) = element else { return Ok(0) };
        let n = state.value(self.code, v);
        if let Some(n) = n.constant() {
            return if (0..i64::from(count)).contains(&n) { Ok(n) } else { Err(Then::Stop) };
        }
        if count == 1 {
            return Ok(0);
        }
        let (lo, hi) = n.bounds(&state.periods);
        let (lo, hi) = (lo.max(0), hi.min(i64::from(count) - 1));
        if n.base != 0 || hi - lo >= ELEMENTS {
            return Err(Then::On);
        }
        for k in (lo..=hi).rev() {
            let mut other = state.clone();
            other.step = step;
            if other.assume(self.code, v, super::domain::AffineValue::of(k)) {
                self.later(other);
            }
        }
        Err(Then::Stop)
    }

    fn bind(&mut self, state: &mut HazardState, tile: Tile, element: Option<Value>, addr: Value, step: usize) -> Then {
        let count = self.code.kernel.tiles[tile].count;
        let first = self.first_bound[cranelift_entity::EntityRef::index(tile)];
        let at = state.value(self.code, addr);
        match self.element(state, element, count, step) {
            Ok(n) => state.bound[first + n as usize] = at,
            Err(Then::On) => {
                state.bound[first..first + count as usize].fill(super::domain::AffineValue::TOP);
            }
            Err(Then::Stop) => return Then::Stop,
        }
        Then::On
    }

    fn sync(&mut self, state: &mut HazardState, site: usize, op: SyncOp, step: usize) -> Then {
        if let SyncOp::Barrier(pipe) = op {
            state.order.barrier(&self.carried, self.code.sites[site].role, pipe);
            return Then::On;
        }
        let Some(EventRef { event, element }) = op.event() else { return Then::On };
        let count = self.code.kernel.events[event].count;
        let n = match self.element(state, element, count, step) {
            Ok(n) => n,
            Err(Then::Stop) => return Then::Stop,
            Err(Then::On) => {
                self.tell(Finding::plain(HazardFault::UnknownElement, false, site, state, None), state);
                return Then::Stop;
            }
        };
        let element = self.carried.first[cranelift_entity::EntityRef::index(event)] + n as u32;
        self.event(state, site, op, element)
    }

    pub(super) fn stream(&self, site: usize) -> usize {
        self.streams[site]
    }
}

//! Which pairs of accesses are not ordered: a forward analysis over all ways through the program.
//!
//! It is what insertion is built on, and says of a finished kernel that nothing is missing: also that every flag is
//! down when it is raised and up when it is waited for, and that its last wait was over before it is raised again.

use super::state::{Bits, SyncState, Up, join};
use super::tree::{Act, Elem, FlagId, LoopId, Node, Sync, SyncBlock, Tree};
use ptoc_ir::tile::Label;
use ptoc_isa::Pipe;
use rustc_hash::FxHashSet;

/// Two things that are not ordered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Violation {
    /// Statement of the block under analysis that contains the second one.
    pub top: usize,
    /// It is in the head of a `while`.
    pub head: bool,
    /// What must be done first: an event, or beyond those the wait of a flag's element.
    pub source: usize,
    /// The pipe of the second one.
    pub pipe: Pipe,
    pub sink: Sink,
}

/// What must come second.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Sink {
    Event(usize),
    /// Raising this flag.
    Set(FlagId, u32),
    /// It is raised although it may be up, or waited for although it may be down: nothing but its own order mends it.
    Protocol(FlagId),
}

/// The numbers of what an analysis follows: the tree's events, then each element of each flag.
#[derive(Clone, Debug)]
pub(super) struct Numbers {
    /// First element of each flag.
    pub flags: Vec<usize>,
    pub elements: usize,
    pub events: usize,
}

impl Numbers {
    pub fn new(tree: &Tree) -> Numbers {
        let mut elements = 0;
        let first = |f: &super::tree::Flag| {
            elements += f.count as usize;
            elements - f.count as usize
        };
        let flags = tree.flags.iter().map(first).collect();
        Numbers { flags, elements, events: tree.events.len() }
    }

    pub fn all(&self) -> usize {
        self.events + self.elements
    }

    /// The flag and the element that an event beyond the tree's stands for.
    pub fn wait_of(&self, event: usize) -> Option<(FlagId, u32)> {
        let element = event.checked_sub(self.events)?;
        let flag = self.flags.iter().rposition(|&first| first <= element)?;
        Some((flag, (element - self.flags[flag]) as u32))
    }
}

/// What has to be known before each event.
pub(super) fn needs(tree: &Tree) -> Vec<Bits> {
    let n = tree.events.len();
    let mut needs = vec![Bits::none(n); n];
    for (later, b) in tree.events.iter().enumerate() {
        let q = tree.leaves[b.leaf].pipe;
        for (earlier, a) in tree.events.iter().enumerate() {
            let p = tree.leaves[a.leaf].pipe;
            if p == q && !tree.eager.contains(&p) {
                continue;
            }
            // What the issuer has read, it has read before it issues anything else.
            let mut pairs = a.touches.iter().filter(|x| p != Pipe::S || x.write);
            if pairs.any(|x| b.touches.iter().any(|y| x.conflicts(y))) {
                needs[later].add(earlier);
            }
        }
    }
    needs
}

/// How many pairs of statements on different pipes need an order: one before the other, or in an iteration before the
/// other's.
pub(super) fn pairs(tree: &Tree, needs: &[Bits], block: &SyncBlock) -> usize {
    fn leaves(node: &Node) -> Vec<usize> {
        let mut found = Vec::new();
        node.visit(&mut |n| found.extend(if let Node::Leaf { leaf, .. } = n { Some(*leaf) } else { None }));
        found
    }
    let mut again: FxHashSet<(usize, usize)> = FxHashSet::default();
    for node in block {
        node.visit(&mut |n| {
            if matches!(n, Node::For { .. } | Node::While { .. }) {
                let inside = leaves(n);
                again.extend(inside.iter().flat_map(|&a| inside.iter().map(move |&b| (a, b))));
            }
        });
    }
    let none = Bits::none(tree.events.len());
    let mut found: FxHashSet<(usize, usize)> = FxHashSet::default();
    for (later, need) in needs.iter().enumerate() {
        let b = tree.events[later].leaf;
        let sources = need.beyond(&none).map(|earlier| tree.events[earlier].leaf);
        let other = sources.filter(|&a| tree.leaves[a].pipe != tree.leaves[b].pipe);
        found.extend(other.filter(|&a| a < b || again.contains(&(a, b))).map(|a| (a, b)));
    }
    found.len()
}

pub(super) struct SyncDataflow<'t> {
    pub tree: &'t Tree,
    needs: &'t [Bits],
    pub numbers: Numbers,
    phase: Vec<u32>,
    exits: Vec<Exit>,
    record: bool,
    pub top: usize,
    pub head: bool,
    /// The loop whose statements count as those of the block.
    level: Option<LoopId>,
    pub found: Vec<Violation>,
    /// Work done, in machine words that were gone over: a statement costs one for each pipe and flag, a copy or a join
    /// of states all of their bits.
    pub cost: u64,
}

struct Exit {
    label: Label,
    out: Option<SyncState>,
    again: Option<SyncState>,
}

impl<'t> SyncDataflow<'t> {
    pub fn new(tree: &'t Tree, needs: &'t [Bits]) -> SyncDataflow<'t> {
        SyncDataflow {
            tree,
            needs,
            numbers: Numbers::new(tree),
            phase: vec![0; tree.loops.len()],
            exits: Vec::new(),
            record: false,
            top: 0,
            head: false,
            level: None,
            found: Vec::new(),
            cost: 0,
        }
    }

    pub fn fresh(&self) -> SyncState {
        SyncState::fresh(self.numbers.all(), self.numbers.elements, &self.tree.eager)
    }

    /// All violations of a block that is run once, from nothing.
    pub fn block_alone(&mut self, block: &SyncBlock) {
        self.record = true;
        let mut state = Some(self.fresh());
        for (n, node) in block.iter().enumerate() {
            self.top = n;
            state = self.node(node, state);
        }
        // The next block begins with all flags down.
        for flag in 0..self.tree.flags.len() {
            let data = &self.tree.flags[flag];
            let first = self.numbers.flags[flag];
            let Some(state) = &state else { break };
            if state.flags[first..first + data.count as usize].iter().any(|f| f.up != Up::No) {
                let to = data.to;
                self.violate(self.numbers.events + first, to, Sink::Protocol(flag));
            }
        }
    }

    /// All violations of a loop that is run once, with its own flags raised before.
    pub fn loop_alone(&mut self, node: &Node) {
        let (Node::For { lp, .. } | Node::While { lp, .. }) = node else { return };
        let state = self.raised(*lp);
        self.record = true;
        self.level = Some(*lp);
        self.node(node, Some(state));
    }

    /// All violations of one iteration by itself, of each phase.
    pub fn iteration_alone(&mut self, node: &Node) {
        let (Node::For { lp, .. } | Node::While { lp, .. }) = node else { return };
        self.record = true;
        for phase in 0..self.tree.loops[*lp].phases {
            self.phase[*lp] = phase;
            self.exits.push(Exit { label: self.tree.loops[*lp].label, out: None, again: None });
            let mut state = Some(self.raised(*lp));
            for (n, block) in node.blocks().enumerate() {
                self.head = n == 0 && matches!(node, Node::While { .. });
                state = self.block(block, state, true);
            }
            self.head = false;
            self.exits.pop();
        }
        self.phase[*lp] = 0;
    }

    /// Nothing has happened but that the flags which a loop carries are raised.
    fn raised(&self, lp: LoopId) -> SyncState {
        let mut state = self.fresh();
        for (flag, data) in self.tree.flags.iter().enumerate().filter(|(_, f)| f.ring == Some(lp) && f.same.is_none()) {
            let first = self.numbers.flags[flag];
            state.flags[first..first + data.count as usize].iter_mut().for_each(|f| f.up = Up::Yes);
        }
        state
    }

    /// Goes over one statement; with `record` takes note of violations.
    pub fn step(&mut self, node: &Node, state: Option<SyncState>, record: bool) -> Option<SyncState> {
        self.record = record;
        self.node(node, state)
    }

    fn block(&mut self, block: &SyncBlock, mut state: Option<SyncState>, level: bool) -> Option<SyncState> {
        for (n, node) in block.iter().enumerate() {
            if level {
                self.top = n;
            }
            state = self.node(node, state);
        }
        state
    }

    fn node(&mut self, node: &Node, state: Option<SyncState>) -> Option<SyncState> {
        let mut state = state?;
        let sets = (14 + self.numbers.elements) as u64;
        self.cost += match node {
            Node::Leaf { .. } | Node::Sync(_) => sets,
            _ => sets * (self.numbers.all() as u64 / 64 + 1),
        };
        match node {
            Node::Leaf { leaf, .. } => {
                self.leaf(*leaf, &mut state);
                Some(state)
            }
            Node::Sync(sync) => {
                self.sync(sync, &mut state);
                Some(state)
            }
            Node::If { then, els, .. } => {
                let other = self.block(els, Some(state.clone()), false);
                join(self.block(then, Some(state), false), other)
            }
            Node::Scope { label, body, .. } => {
                self.exits.push(Exit { label: *label, out: None, again: None });
                let end = self.block(body, Some(state), false);
                join(end, self.exits.pop().and_then(|e| e.out))
            }
            Node::Jump { label, again, .. } => {
                // A label that is not around belongs to a block around the one under analysis.
                if let Some(exit) = self.exits.iter_mut().rev().find(|e| e.label == *label) {
                    let slot = if *again { &mut exit.again } else { &mut exit.out };
                    *slot = join(slot.take(), Some(state));
                }
                None
            }
            Node::For { lp, body, .. } => self.counted(*lp, body, state),
            Node::While { lp, head, body, .. } => self.conditional(*lp, head, body, state),
        }
    }

    /// Runs a loop until its states settle, and once more to take note.
    fn settle(
        &mut self,
        entry: Option<SyncState>,
        mut round: impl FnMut(&mut Self, Option<SyncState>) -> (Option<SyncState>, Option<SyncState>),
    ) -> Option<SyncState> {
        let record = std::mem::replace(&mut self.record, false);
        let mut state = entry.clone();
        loop {
            let (_, back) = round(self, state.clone());
            let next = join(state.clone(), back);
            if next == state {
                break;
            }
            state = next;
        }
        self.record = record;
        round(self, state).0
    }

    fn counted(&mut self, lp: LoopId, body: &SyncBlock, state: SyncState) -> Option<SyncState> {
        let data = &self.tree.loops[lp];
        let (label, phases) = (data.label, data.phases);
        let level = self.level == Some(lp);
        let skipped = (!data.some).then(|| state.clone());
        let out = self.settle(Some(state), |this, first| {
            let (mut state, mut out) = (first, None);
            for phase in 0..phases {
                this.phase[lp] = phase;
                this.exits.push(Exit { label, out: None, again: None });
                let end = this.block(body, state, level);
                let (left, again) = this.exits.pop().map_or((None, None), |e| (e.out, e.again));
                state = join(end, again);
                out = join(join(out, left), state.clone());
            }
            this.phase[lp] = 0;
            (out, state)
        });
        join(out, skipped)
    }

    fn conditional(&mut self, lp: LoopId, head: &SyncBlock, body: &SyncBlock, state: SyncState) -> Option<SyncState> {
        let label = self.tree.loops[lp].label;
        let level = self.level == Some(lp);
        self.settle(Some(state), |this, first| {
            this.exits.push(Exit { label, out: None, again: None });
            this.head |= level;
            let tested = this.block(head, first, level);
            this.head &= !level;
            let end = this.block(body, tested.clone(), level);
            let exit = this.exits.pop();
            let (out, again) = exit.map_or((None, None), |e| (e.out, e.again));
            (join(tested, out), join(end, again))
        })
    }

    fn violate(&mut self, source: usize, pipe: Pipe, sink: Sink) {
        if self.record {
            let v = Violation { top: self.top, head: self.head, source, pipe, sink };
            if !self.found.contains(&v) {
                self.found.push(v);
            }
        }
    }

    fn leaf(&mut self, leaf: usize, state: &mut SyncState) {
        let pipe = self.tree.leaves[leaf].pipe;
        let event = self.tree.event(leaf, &self.phase);
        if self.record {
            let missing: Vec<usize> = self.needs[event].beyond(state.start(pipe)).collect();
            for source in missing {
                self.violate(source, pipe, Sink::Event(event));
            }
        }
        state.happen(event, pipe);
    }

    fn element(&self, flag: FlagId, elem: Elem) -> (FlagId, u32) {
        let n = match elem {
            Elem::Fixed(n) => n,
            Elem::Phase => {
                let data = &self.tree.flags[flag];
                data.phase.map_or(0, |lp| self.phase[lp] % data.count.max(1))
            }
        };
        (self.tree.flag(flag), n)
    }

    fn sync(&mut self, sync: &Sync, state: &mut SyncState) {
        match sync.act {
            Act::Barrier(n) => {
                let data = &self.tree.barriers[n];
                if !data.dead {
                    state.barrier(data.pipe);
                }
            }
            Act::Set(f, _) | Act::Wait(f, _) if self.tree.flags[f].dead => {}
            Act::Set(f, elem) => {
                let (flag, n) = self.element(f, elem);
                let (from, at) = (self.tree.flags[flag].from, self.numbers.flags[flag] + n as usize);
                let wait = self.numbers.events + at;
                if state.flags[at].up != Up::No {
                    self.violate(wait, from, Sink::Protocol(f));
                }
                if !state.done(from).has(wait) {
                    self.violate(wait, from, Sink::Set(f, n));
                }
                state.flags[at].up = Up::Yes;
                state.flags[at].knows = state.done(from).clone();
            }
            Act::Wait(f, elem) => {
                let (flag, n) = self.element(f, elem);
                let (to, at) = (self.tree.flags[flag].to, self.numbers.flags[flag] + n as usize);
                let wait = self.numbers.events + at;
                if state.flags[at].up != Up::Yes {
                    self.violate(wait, to, Sink::Protocol(f));
                }
                state.flags[at].up = Up::No;
                let mut known = state.flags[at].knows.clone();
                state.happen(wait, to);
                // The wait itself is over before what it held back.
                known.add(wait);
                state.learn(to, &known);
            }
        }
    }
}

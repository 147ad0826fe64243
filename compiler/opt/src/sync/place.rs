//! Where order is inserted, innermost blocks first.
//!
//! * **Within a block**, in order: before the first statement that needs it, a pipe waits for what the other pipe set
//!   right after the latest statement that is needed. A statement stands for all that is inside it, so sets and waits
//!   are paired whatever branches do.
//! * **Around a loop**: what an iteration needs of the d-th one before it is a flag for each of d iterations, raised
//!   before the loop and waited for after it.
//! * Where a jump could separate a set from its wait, the set moves down to the wait, or, around a loop, all pipes
//!   meet.
//!
//! Each step asks the flow analysis what is still missing, so what is ordered through other pipes gets nothing.

use super::flow::{Sink, SyncDataflow, Violation, needs};
use super::state::{Bits, SyncState};
use super::tree::{Act, Anchor, BarrierData, Elem, Flag, FlagId, LoopId, Node, Sync, SyncBlock, Tree, leaves};
use ptoc_diagnostics::Span;
use ptoc_ir::tile::Kernel;
use ptoc_isa::Pipe;
use smol_str::SmolStr;
use std::cell::Cell;

/// Order by a barrier of all pipes, as flags do not do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fallback {
    /// The statement that waits.
    pub span: Span,
    /// Why.
    pub reason: &'static str,
}

/// One flag where there would have been one for each iteration that is under way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Narrowed {
    /// The loop.
    pub span: Span,
    /// The pipe that raises the flag.
    pub from: Pipe,
    /// The pipe that waits for it.
    pub to: Pipe,
    /// Iterations.
    pub count: u32,
}

pub(super) struct Placer<'k> {
    pub kernel: &'k Kernel,
    pub tree: Tree,
    pub needs: Vec<Bits>,
    /// With the number of the barrier.
    pub fallbacks: Vec<(usize, Fallback)>,
    /// By flag.
    pub narrowed: Vec<(FlagId, Narrowed)>,
    /// What the analyses of the whole program and of its loops have cost so far: see [`SyncDataflow::cost`].
    pub spent: Cell<u64>,
}

/// What orders a violation's two sides, in terms of a block.
struct Edge {
    /// Statement of the first side.
    source: usize,
    from: Pipe,
    violation: Violation,
}

impl<'k> Placer<'k> {
    pub fn new(kernel: &'k Kernel, tree: Tree) -> Placer<'k> {
        let needs = needs(&tree);
        Placer { kernel, tree, needs, fallbacks: Vec::new(), narrowed: Vec::new(), spent: Cell::new(0) }
    }

    /// Orders everything inside `block`.
    pub fn solve(&mut self, block: SyncBlock) -> SyncBlock {
        let mut out = SyncBlock::with_capacity(block.len());
        for mut node in block {
            for inner in node.blocks_mut() {
                *inner = self.solve(std::mem::take(inner));
            }
            if let Node::For { at, lp, .. } | Node::While { at, lp, .. } = node {
                self.carried(lp, &mut node);
                let rings: Vec<FlagId> =
                    (0..self.tree.flags.len()).filter(|&f| self.tree.flags[f].ring == Some(lp)).collect();
                let span = self.tree.loops[lp].span;
                let ends = |tree: &Tree, anchor, act: fn(FlagId, Elem) -> Act| -> Vec<Node> {
                    let elements = rings.iter().flat_map(|&f| (0..tree.flags[f].count).map(move |n| (f, n)));
                    elements.map(|(f, n)| Node::Sync(Sync { anchor, act: act(f, Elem::Fixed(n)), span })).collect()
                };
                out.extend(ends(&self.tree, Anchor::Before(at), Act::Set));
                out.push(node);
                out.extend(ends(&self.tree, Anchor::After(at), Act::Wait));
            } else {
                out.push(node);
            }
        }
        self.forward(out)
    }

    /// All violations of the finished program.
    pub fn check(&self, block: &SyncBlock) -> Vec<Violation> {
        self.watch(|f| f.block_alone(block))
    }

    /// Runs an analysis, and counts what it cost.
    fn watch(&self, run: impl FnOnce(&mut SyncDataflow<'_>)) -> Vec<Violation> {
        let mut flow = SyncDataflow::new(&self.tree, &self.needs);
        run(&mut flow);
        self.spent.set(self.spent.get() + flow.cost);
        flow.found
    }

    /// The pipe of an event, or of a flag's wait.
    fn pipe_of(&self, flow_event: usize) -> Pipe {
        match self.tree.events.get(flow_event) {
            Some(e) => self.tree.leaves[e.leaf].pipe,
            None => {
                let wait = super::flow::Numbers::new(&self.tree).wait_of(flow_event);
                wait.map_or(Pipe::S, |(f, _)| self.tree.flags[f].to)
            }
        }
    }

    /// The events that happen in a statement, its waits among them.
    fn events(&self, node: &Node, numbers: &super::flow::Numbers) -> Bits {
        let mut bits = Bits::none(numbers.all());
        node.visit(&mut |n| match n {
            Node::Leaf { leaf, .. } => {
                let leaf = &self.tree.leaves[*leaf];
                let n: u32 = leaf.loops.iter().map(|&l| self.tree.loops[l].phases).product();
                (leaf.base..leaf.base + n as usize).for_each(|e| bits.add(e));
            }
            Node::Sync(Sync { act: Act::Wait(f, _), .. }) => {
                let f = self.tree.flag(*f);
                // A flag that is being placed has no numbers yet.
                if let Some(&first) = numbers.flags.get(f) {
                    let first = numbers.events + first;
                    (first..first + self.tree.flags[f].count as usize).for_each(|e| bits.add(e));
                }
            }
            _ => {}
        });
        bits
    }

    /// Within a block.
    fn forward(&mut self, block: SyncBlock) -> SyncBlock {
        let n = block.len();
        let (mut waits, mut sets): (Vec<Vec<Sync>>, Vec<Vec<Sync>>) = (vec![Vec::new(); n], vec![Vec::new(); n]);
        let numbers = super::flow::Numbers::new(&self.tree);
        let inside: Vec<Bits> = block.iter().map(|node| self.events(node, &numbers)).collect();
        let escapes: Vec<bool> = block.iter().map(|node| leaves(node, &self.tree)).collect();
        let mut state: Option<SyncState> = Some(SyncDataflow::new(&self.tree, &self.needs).fresh());
        let mut after: Vec<Option<SyncState>> = Vec::with_capacity(n);
        for (j, node) in block.iter().enumerate() {
            while let Some(now) = &state {
                let mut flow = SyncDataflow::new(&self.tree, &self.needs);
                flow.numbers = numbers.clone();
                flow.top = j;
                flow.step(node, Some(now.clone()), true);
                self.spent.set(self.spent.get() + flow.cost);
                let found = flow.found;
                let edge = |v: &Violation| {
                    let source = (0..j).rev().find(|&i| inside[i].has(v.source))?;
                    Some(Edge { source, from: self.pipe_of(v.source), violation: *v })
                };
                let edges: Vec<Edge> = found.iter().filter_map(edge).collect();
                // Flags may order two instructions of one pipe as well, so its barrier comes last.
                let best = edges.iter().filter(|e| e.from != e.violation.pipe).max_by_key(|e| e.source);
                let span = anchor_span(&self.tree, node);
                let at = self.before(&block, j);
                if let Some(e) = best {
                    let last = (e.source..j).rev().find(|&i| i == e.source || escapes[i]).unwrap_or(e.source);
                    let flag = self.flag(e.from, e.violation.pipe, &e.violation, span);
                    waits[j].push(Sync { anchor: at, act: Act::Wait(flag, Elem::Phase), span });
                    sets[last].push(Sync { anchor: self.after(&block, last), act: Act::Set(flag, Elem::Phase), span });
                    let mut known = Bits::none(numbers.all());
                    if let Some(s) = &after[last] {
                        known = s.done(e.from).clone();
                        inside[last + 1..j].iter().for_each(|i| known.minus(i));
                    }
                    let to = e.violation.pipe;
                    state.iter_mut().for_each(|s| s.learn(to, &known));
                } else if let Some(e) = edges.first() {
                    let pipe = e.from;
                    let act = self.barrier(Some(pipe));
                    waits[j].push(Sync { anchor: at, act, span });
                    state.iter_mut().for_each(|s| s.barrier(Some(pipe)));
                } else {
                    break;
                }
            }
            let mut flow = SyncDataflow::new(&self.tree, &self.needs);
            flow.numbers = numbers.clone();
            state = flow.step(node, state, false);
            after.push(state.clone());
        }
        let mut out = SyncBlock::with_capacity(n);
        for (j, node) in block.into_iter().enumerate() {
            out.extend(waits[j].iter().copied().map(Node::Sync));
            out.push(node);
            out.extend(sets[j].iter().copied().map(Node::Sync));
        }
        out
    }

    /// Around a loop whose body is in order.
    fn carried(&mut self, lp: LoopId, node: &mut Node) {
        // Each step orders a pair for good, and what it adds asks for at most one flag back. Should it go on for longer
        // than that takes, or cost too much, nothing of it is kept, and all pipes meet once in each iteration.
        let most = 8 + 2 * self.size(node);
        let before = (node.clone(), self.tree.flags.clone(), self.tree.barriers.len(), self.fallbacks.len());
        for step in 0..=most {
            let found = self.watch(|f| f.loop_alone(node));
            let numbers = super::flow::Numbers::new(&self.tree);
            let body = match &*node {
                Node::For { body, .. } | Node::While { body, .. } => body,
                _ => return,
            };
            let inside: Vec<Bits> = body.iter().map(|n| self.events(n, &numbers)).collect();
            let Some(first) = found.first().copied() else { return };
            // What stands in a head has no place in the body.
            let edge = |v: &Violation| {
                let source = (0..body.len()).rev().find(|&i| inside[i].has(v.source))?;
                (!v.head).then(|| Edge { source, from: self.pipe_of(v.source), violation: *v })
            };
            // Those that one iteration has by itself: what was taken out around an inner loop ordered more than the
            // next round.
            let own = self.watch(|f| f.iteration_alone(node));
            let distance = |e: &Edge| match e.source < e.violation.top && own.contains(&e.violation) {
                true => 0,
                false => self.distance(lp, &e.violation, &numbers),
            };
            let edges: Vec<(u32, Edge)> = found.iter().filter_map(edge).map(|e| (distance(&e), e)).collect();
            let placed = edges.len() == found.len();
            let protocol = found.iter().any(|v| matches!(v.sink, Sink::Protocol(_)));
            if step == most || protocol || !self.affordable() {
                let (old, flags, barriers, fallbacks) = before;
                (*node, self.tree.flags) = (old, flags);
                self.tree.barriers.truncate(barriers);
                self.fallbacks.truncate(fallbacks);
                self.meet_first(node);
                return;
            }
            if !placed || self.tree.loops[lp].jumps {
                let reason = match self.tree.loops[lp].jumps {
                    true => "an iteration may end early, so that a flag may not be raised",
                    false => "the condition of a loop is part of it",
                };
                self.meet(node, &first, reason);
                continue;
            }
            let reuse = |v: &Violation| match v.sink {
                Sink::Set(f, _) => Some(f),
                _ => None,
            };
            let access = edges.iter().filter(|(_, e)| reuse(&e.violation).is_none());
            let flags = access.clone().filter(|(_, e)| e.from != e.violation.pipe);
            let order = |(d, e): &&(u32, Edge)| (*d, e.violation.top, std::cmp::Reverse(e.source));
            if let Some((d, e)) = flags.min_by_key(order) {
                let (own, phases) = (*d == 0, self.tree.loops[lp].phases);
                let d = (1..=*d).rev().find(|m| phases.is_multiple_of(*m)).unwrap_or(1);
                let (source, from, v) = (e.source, e.from, e.violation);
                match own {
                    true => self.within(node, (source, from), &v),
                    false => self.ring(lp, node, (source, from), &v, d),
                }
                continue;
            }
            if let Some((_, e)) = access.clone().next() {
                let (v, pipe) = (e.violation, e.from);
                self.insert_barrier(node, &v, Some(pipe));
                continue;
            }
            let Some((_, e)) = edges.first() else { return };
            let (v, source, from) = (e.violation, e.source, e.from);
            let Some(f) = reuse(&v) else { return };
            let data = &self.tree.flags[f];
            let phases = self.tree.loops[lp].phases;
            if data.ring == Some(lp) && source < v.top {
                // The wait and the set of one iteration, in this order: once the second knows of the first, so it does
                // of all before. What says so may not be carried itself: two flags that both start raised hold nothing
                // back.
                self.within(node, (source, from), &v);
            } else if phases > 1 && data.count == 1 && data.phase.is_none() && data.ring.is_none() {
                // A flag for each iteration that is under way.
                self.tree.flags[f].count = phases;
                self.tree.flags[f].phase = Some(lp);
            } else if data.ring.is_some_and(|inner| inner != lp) && self.hoist(f, node) {
                // It stays raised from one run of the inner loop to the next.
                self.tree.flags[f].ring = Some(lp);
            } else {
                let d = if self.tree.flags[f].phase == Some(lp) { self.tree.flags[f].count } else { 1 };
                self.ring(lp, node, (source, from), &v, d);
            }
        }
    }

    /// Iterations between the two sides of a violation.
    fn distance(&self, lp: LoopId, v: &Violation, numbers: &super::flow::Numbers) -> u32 {
        let n = self.tree.loops[lp].phases;
        match v.sink {
            Sink::Event(sink) if v.source < self.tree.events.len() => {
                let (a, b) = (self.tree.phase_of(v.source, lp), self.tree.phase_of(sink, lp));
                (b + n - a + n - 1) % n + 1
            }
            _ => numbers.wait_of(v.source).map_or(1, |(f, _)| match self.tree.flags[f].phase == Some(lp) {
                true => self.tree.flags[f].count,
                false => 1,
            }),
        }
    }

    /// A flag that is carried over `d` iterations.
    fn ring(&mut self, lp: LoopId, node: &mut Node, (source, from): (usize, Pipe), v: &Violation, d: u32) {
        let (Node::For { body, .. } | Node::While { body, .. }) = &*node else { return };
        // A set comes after the wait of its iteration.
        let sink = v.top.min(source);
        let span = anchor_span(&self.tree, &body[v.top]);
        let (before, after) = (self.before(body, sink), self.after(body, source));
        let flag = self.flag(from, v.pipe, v, span);
        let data = &mut self.tree.flags[flag];
        data.ring = Some(lp);
        data.count = d;
        data.phase = (d > 1).then_some(lp);
        let (Node::For { body, .. } | Node::While { body, .. }) = node else { return };
        body.insert(source + 1, Node::Sync(Sync { anchor: after, act: Act::Set(flag, Elem::Phase), span }));
        body.insert(sink, Node::Sync(Sync { anchor: before, act: Act::Wait(flag, Elem::Phase), span }));
    }

    /// A flag from one statement of a body to a later one.
    fn within(&mut self, node: &mut Node, (source, from): (usize, Pipe), v: &Violation) {
        let (Node::For { body, .. } | Node::While { body, .. }) = &*node else { return };
        let span = anchor_span(&self.tree, &body[v.top]);
        let (before, after) = (self.before(body, v.top), self.after(body, source));
        let flag = self.flag(from, v.pipe, v, span);
        let (Node::For { body, .. } | Node::While { body, .. }) = node else { return };
        body.insert(v.top, Node::Sync(Sync { anchor: before, act: Act::Wait(flag, Elem::Phase), span }));
        body.insert(source + 1, Node::Sync(Sync { anchor: after, act: Act::Set(flag, Elem::Phase), span }));
    }

    /// All pipes meet at the start of each iteration.
    fn meet_first(&mut self, node: &mut Node) {
        let act = self.barrier(None);
        let (Node::For { lp, .. } | Node::While { lp, .. }) = &*node else { return };
        let span = self.tree.loops[*lp].span;
        let (Node::For { body: first, .. } | Node::While { head: first, .. }) = node else { return };
        first.insert(0, Node::Sync(Sync { anchor: Anchor::Before(0), act, span }));
        let reason = "no flags were found that order the iterations of this loop";
        self.fallbacks.push((self.tree.barriers.len() - 1, Fallback { span, reason }));
    }

    /// All pipes meet before every statement, whatever it needs.
    pub fn meet_everywhere(&mut self, block: SyncBlock) -> SyncBlock {
        let mut out = SyncBlock::with_capacity(2 * block.len());
        for mut node in block {
            if let Node::Leaf { at, leaf } = node {
                let (act, span) = (self.barrier(None), self.tree.leaves[leaf].span);
                out.push(Node::Sync(Sync { anchor: Anchor::Before(at), act, span }));
                let reason = "no order by flags was found";
                self.fallbacks.push((self.tree.barriers.len() - 1, Fallback { span, reason }));
            }
            node.blocks_mut().for_each(|b| *b = self.meet_everywhere(std::mem::take(b)));
            out.push(node);
        }
        out
    }

    /// All pipes meet before the second side of a violation.
    fn meet(&mut self, node: &mut Node, v: &Violation, reason: &'static str) {
        let span = self.insert_barrier(node, v, None);
        self.fallbacks.push((self.tree.barriers.len() - 1, Fallback { span, reason }));
    }

    fn insert_barrier(&mut self, node: &mut Node, v: &Violation, pipe: Option<Pipe>) -> Span {
        let act = self.barrier(pipe);
        let block = match node {
            Node::While { head, .. } if v.head => head,
            Node::For { body, .. } | Node::While { body, .. } => body,
            _ => return Span::default(),
        };
        let span = block.get(v.top).map_or(Span::default(), |n| anchor_span(&self.tree, n));
        let anchor = self.before(block, v.top);
        block.insert(v.top, Node::Sync(Sync { anchor, act, span }));
        span
    }

    /// Takes a flag's raising before and its waiting after an inner loop out of the body of the outer one, also out of
    /// a branch: where it is not taken, the flag stays raised. The first sets then stand before the outer loop.
    fn hoist(&mut self, f: FlagId, node: &mut Node) -> bool {
        fn hoist(block: &mut SyncBlock, end: &dyn Fn(&Node) -> bool, ends: usize) -> bool {
            if block.iter().any(end) {
                // A jump may leave the loop and not its end.
                let all = block.iter().filter(|n| end(n)).count() == ends;
                block.retain(|n| !(all && end(n)));
                return all;
            }
            let plain = |n: &&mut Node| matches!(n, Node::If { .. } | Node::Scope { .. });
            block.iter_mut().filter(plain).flat_map(Node::blocks_mut).any(|b| hoist(b, end, ends))
        }
        let (Node::For { body, .. } | Node::While { body, .. }) = node else { return false };
        let end = |n: &Node| match n {
            Node::Sync(s) => matches!(s.act, Act::Set(g, Elem::Fixed(_)) | Act::Wait(g, Elem::Fixed(_)) if g == f),
            _ => false,
        };
        hoist(body, &end, 2 * self.tree.flags[f].count as usize)
    }

    pub fn barrier(&mut self, pipe: Option<Pipe>) -> Act {
        self.tree.barriers.push(BarrierData { pipe, dead: false });
        Act::Barrier(self.tree.barriers.len() - 1)
    }

    fn flag(&mut self, from: Pipe, to: Pipe, v: &Violation, span: Span) -> FlagId {
        let name = self.name(v);
        self.tree.flags.push(Flag { from, to, name, span, count: 1, phase: None, ring: None, dead: false, same: None });
        self.tree.flags.len() - 1
    }

    /// What a flag is for: the tile or tensor, or the two tiles that have common bytes.
    fn name(&self, v: &Violation) -> SmolStr {
        let Sink::Event(sink) = v.sink else { return "reuse".into() };
        let Some((a, b)) = self.tree.events.get(v.source).zip(self.tree.events.get(sink)) else {
            return "order".into();
        };
        let pair = a.touches.iter().find_map(|x| Some((x, b.touches.iter().find(|y| x.conflicts(y))?)));
        let Some((x, y)) = pair else { return "order".into() };
        let name = |t: &super::touch::InstAccess| match (t.tile, t.space) {
            (Some(tile), _) => self.kernel.tiles[tile].name.clone(),
            (None, super::touch::Space::Tensor(t)) => self.kernel.tensors[t].name.clone(),
            (None, super::touch::Space::Memory(loc)) => loc.name().into(),
        };
        let (a, b) = (name(x), name(y));
        if a == b { a } else { format!("{a} -> {b}").into() }
    }

    fn size(&self, node: &Node) -> usize {
        let mut n = 0;
        node.visit(&mut |_| n += 1);
        n
    }

    /// Right before node `n` of a block.
    fn before(&self, block: &SyncBlock, n: usize) -> Anchor {
        match block.get(n) {
            Some(Node::Sync(s)) => s.anchor,
            Some(node) => Anchor::Before(node.at().unwrap_or(0)),
            None => Anchor::Before(0),
        }
    }

    /// Right after it.
    fn after(&self, block: &SyncBlock, n: usize) -> Anchor {
        match block.get(n) {
            Some(Node::Sync(s)) => s.anchor,
            Some(node) => Anchor::After(node.at().unwrap_or(0)),
            None => Anchor::Before(0),
        }
    }
}

/// The source of a statement.
pub(super) fn anchor_span(tree: &Tree, node: &Node) -> Span {
    match node {
        Node::Leaf { leaf, .. } => tree.leaves[*leaf].span,
        Node::For { lp, .. } | Node::While { lp, .. } => tree.loops[*lp].span,
        Node::Sync(s) => s.span,
        Node::If { then, els, .. } => then.iter().chain(els).map(|n| anchor_span(tree, n)).next().unwrap_or_default(),
        Node::Scope { body, .. } => body.iter().map(|n| anchor_span(tree, n)).next().unwrap_or_default(),
        Node::Jump { .. } => Span::default(),
    }
}

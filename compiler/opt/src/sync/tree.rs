//! A kernel as the insertion sees it: the statements that run on pipes, the control flow around them, and what orders
//! them.
//!
//! A loop has **phases** where something in it is chosen by its counter modulo n (the copies of a pipeline). A
//! statement is one event for each combination of phases around it, so that what happens n iterations apart is told
//! from what happens in the next one.

use super::touch::{InstAccess, Residue, Scalars};
use ptoc_diagnostics::Span;
use ptoc_ir::analysis::lcm;
use ptoc_ir::tile::{Kernel, Label, Op, Region, Stmt, Value, pipe_of_op};
use ptoc_isa::{Pipe, Target};
use smol_str::SmolStr;

/// Phases that all loops around a statement have together, at most.
const MAX_PHASES: u32 = 64;

pub(super) type LoopId = usize;
pub(super) type FlagId = usize;
pub(super) type SyncBlock = Vec<Node>;

/// Where a new statement goes, in terms of the region's old statements.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Anchor {
    Before(usize),
    After(usize),
}

#[derive(Clone, Debug)]
pub(super) enum Node {
    /// A statement on a pipe.
    Leaf {
        at: usize,
        leaf: usize,
    },
    For {
        at: usize,
        lp: LoopId,
        body: SyncBlock,
    },
    While {
        at: usize,
        lp: LoopId,
        head: SyncBlock,
        body: SyncBlock,
    },
    If {
        at: usize,
        then: SyncBlock,
        els: SyncBlock,
    },
    Scope {
        at: usize,
        label: Label,
        body: SyncBlock,
    },
    /// `continue` goes on with the loop, the others leave.
    Jump {
        at: usize,
        label: Label,
        again: bool,
    },
    Sync(Sync),
}

/// An inserted statement.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sync {
    pub anchor: Anchor,
    pub act: Act,
    pub span: Span,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Act {
    Set(FlagId, Elem),
    Wait(FlagId, Elem),
    /// By number.
    Barrier(usize),
}

/// Element of an array of flags.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Elem {
    /// That of the phase of the flag's loop.
    Phase,
    Fixed(u32),
}

/// A flag, or one for each phase.
#[derive(Clone, Debug)]
pub(super) struct Flag {
    pub from: Pipe,
    pub to: Pipe,
    pub name: SmolStr,
    pub span: Span,
    pub count: u32,
    /// The loop whose phase is the element.
    pub phase: Option<LoopId>,
    /// The loop around which it is carried: set before it, waited for after it.
    pub ring: Option<LoopId>,
    /// Not needed after all.
    pub dead: bool,
    /// Shares the flag of another.
    pub same: Option<FlagId>,
}

#[derive(Clone, Debug)]
pub(super) struct BarrierData {
    pub pipe: Option<Pipe>,
    pub dead: bool,
}

#[derive(Clone, Debug)]
pub(super) struct LoopData {
    pub label: Label,
    /// Index and first value of a counted loop.
    pub counter: Option<(Value, Value)>,
    pub phases: u32,
    /// Runs at least once.
    pub some: bool,
    /// An iteration may end early.
    pub jumps: bool,
    pub span: Span,
}

/// A statement on a pipe.
#[derive(Debug)]
pub(super) struct Leaf {
    pub pipe: Pipe,
    pub span: Span,
    /// Number of its first event.
    pub base: usize,
    /// Loops with phases around it, outermost first.
    pub loops: Vec<LoopId>,
}

/// One combination of phases of a statement.
#[derive(Debug)]
pub(super) struct EventData {
    pub leaf: usize,
    pub touches: Vec<InstAccess>,
}

#[derive(Debug)]
pub(super) struct Tree {
    pub loops: Vec<LoopData>,
    pub leaves: Vec<Leaf>,
    pub events: Vec<EventData>,
    pub flags: Vec<Flag>,
    pub barriers: Vec<BarrierData>,
    /// Pipes that may start before they are done.
    pub eager: Vec<Pipe>,
}

impl Node {
    /// The old statement; a new one has none.
    pub fn at(&self) -> Option<usize> {
        match self {
            Node::Leaf { at, .. }
            | Node::For { at, .. }
            | Node::While { at, .. }
            | Node::If { at, .. }
            | Node::Scope { at, .. }
            | Node::Jump { at, .. } => Some(*at),
            Node::Sync(_) => None,
        }
    }

    pub fn blocks(&self) -> impl Iterator<Item = &SyncBlock> {
        let (a, b) = match self {
            Node::For { body, .. } | Node::Scope { body, .. } => (Some(body), None),
            Node::While { head, body, .. } => (Some(head), Some(body)),
            Node::If { then, els, .. } => (Some(then), Some(els)),
            _ => (None, None),
        };
        a.into_iter().chain(b)
    }

    pub fn blocks_mut(&mut self) -> impl Iterator<Item = &mut SyncBlock> {
        let (a, b) = match self {
            Node::For { body, .. } | Node::Scope { body, .. } => (Some(body), None),
            Node::While { head, body, .. } => (Some(head), Some(body)),
            Node::If { then, els, .. } => (Some(then), Some(els)),
            _ => (None, None),
        };
        a.into_iter().chain(b)
    }

    /// Calls `f` on this and everything inside.
    pub fn visit<'n>(&'n self, f: &mut dyn FnMut(&'n Node)) {
        f(self);
        self.blocks().flatten().for_each(|n| n.visit(f));
    }
}

impl Tree {
    /// The statements of `kernel` that run on pipes.
    pub fn new(kernel: &Kernel, target: &Target) -> (Tree, SyncBlock) {
        let tree = Tree {
            loops: Vec::new(),
            leaves: Vec::new(),
            events: Vec::new(),
            flags: Vec::new(),
            barriers: Vec::new(),
            eager: target.pipes.barrier.clone(),
        };
        let scalars = Scalars::new(kernel, target);
        let most = i64::from(target.pipes.flags.max(1));
        let mut build = Build { kernel, scalars, most, tree, around: Vec::new() };
        let body = build.block(&kernel.body);
        (build.tree, body)
    }

    /// The event of a leaf with these phases.
    pub fn event(&self, leaf: usize, phase: &[u32]) -> usize {
        let leaf = &self.leaves[leaf];
        let n = leaf.loops.iter().fold(0, |n, &l| n * self.loops[l].phases + phase[l]);
        leaf.base + n as usize
    }

    /// The phase of loop `lp` in an event's combination; 0 if it has none.
    pub fn phase_of(&self, event: usize, lp: LoopId) -> u32 {
        let leaf = &self.leaves[self.events[event].leaf];
        let mut n = (event - leaf.base) as u32;
        for &l in leaf.loops.iter().rev() {
            let phases = self.loops[l].phases;
            if l == lp {
                return n % phases;
            }
            n /= phases;
        }
        0
    }

    /// The flag that stands for `flag`.
    pub fn flag(&self, flag: FlagId) -> FlagId {
        self.flags[flag].same.unwrap_or(flag)
    }
}

struct Build<'k> {
    kernel: &'k Kernel,
    scalars: Scalars<'k>,
    /// Phases of one loop, at most.
    most: i64,
    tree: Tree,
    /// Loops around with phases.
    around: Vec<LoopId>,
}

impl Build<'_> {
    fn block(&mut self, region: &[Stmt]) -> SyncBlock {
        let mut out = SyncBlock::new();
        for (at, stmt) in region.iter().enumerate() {
            match &stmt.op {
                Op::For(f) => {
                    let sure = self.scalars.constant(f.lo).zip(self.scalars.constant(f.hi));
                    let lp = self.tree.loops.len();
                    let phases = self.phases(&f.body, f.index, f.lo);
                    self.tree.loops.push(LoopData {
                        label: f.label,
                        counter: Some((f.index, f.lo)),
                        phases,
                        some: sure.is_some_and(|(lo, hi)| lo < hi),
                        jumps: escapes(&f.body),
                        span: stmt.span,
                    });
                    self.around.push(lp);
                    let body = self.block(&f.body);
                    self.around.pop();
                    out.push(Node::For { at, lp, body });
                }
                Op::While(w) => {
                    let lp = self.tree.loops.len();
                    self.tree.loops.push(LoopData {
                        label: w.label,
                        counter: None,
                        phases: 1,
                        some: false,
                        jumps: escapes(&w.body) || escapes(&w.head),
                        span: stmt.span,
                    });
                    let head = self.block(&w.head);
                    let body = self.block(&w.body);
                    out.push(Node::While { at, lp, head, body });
                }
                Op::If(i) => {
                    let (then, els) = (self.block(&i.then), self.block(&i.els));
                    out.push(Node::If { at, then, els });
                }
                Op::Scope(s) => {
                    let body = self.block(&s.body);
                    out.push(Node::Scope { at, label: s.label, body });
                }
                Op::Break(label) | Op::Leave(label) => out.push(Node::Jump { at, label: *label, again: false }),
                Op::Continue(label) => out.push(Node::Jump { at, label: *label, again: true }),
                op => {
                    if let Some(pipe) = pipe_of_op(self.kernel, op) {
                        self.leaf(at, pipe, stmt, &mut out);
                    }
                }
            }
        }
        out
    }

    fn leaf(&mut self, at: usize, pipe: Pipe, stmt: &Stmt, out: &mut SyncBlock) {
        let loops: Vec<LoopId> = self.around.iter().copied().filter(|&l| self.tree.loops[l].phases > 1).collect();
        let (leaf, base) = (self.tree.leaves.len(), self.tree.events.len());
        let all: u32 = loops.iter().map(|&l| self.tree.loops[l].phases).product();
        for n in 0..all {
            let mut rest = n;
            let mut known = Vec::new();
            for &l in loops.iter().rev() {
                let data = &self.tree.loops[l];
                if let Some((index, lo)) = data.counter {
                    let (phase, of) = (i64::from(rest % data.phases), i64::from(data.phases));
                    known.push(Residue { index, lo, phase, of });
                }
                rest /= data.phases;
            }
            self.tree.events.push(EventData { leaf, touches: self.scalars.touches(stmt, &known) });
        }
        self.tree.leaves.push(Leaf { pipe, span: stmt.span, base, loops });
        out.push(Node::Leaf { at, leaf });
    }

    /// The moduli under which a loop's counter is used, as one; 1 if that is too much.
    fn phases(&self, body: &Region, index: Value, lo: Value) -> u32 {
        fn note(this: &Build<'_>, region: &[Stmt], (index, lo): (Value, Value), n: &mut i64) {
            for stmt in region {
                if let Op::Binary { dst, .. } = stmt.op
                    && let Some(m) = this.scalars.modulus(dst, index, lo).filter(|m| *m <= this.most)
                {
                    *n = lcm(*n, m).filter(|both| *both <= this.most).unwrap_or(*n);
                }
                stmt.op.regions().for_each(|r| note(this, r, (index, lo), n));
            }
        }
        let mut n = 1;
        note(self, body, (index, lo), &mut n);
        let around: u32 = self.around.iter().map(|&l| self.tree.loops[l].phases).product();
        let n = u32::try_from(n).unwrap_or(1);
        if around * n <= MAX_PHASES { n } else { 1 }
    }
}

/// Whether something may jump out of `region`, or, if it is a loop's body, to the loop's next iteration or end.
fn escapes(region: &[Stmt]) -> bool {
    fn walk(region: &[Stmt], inside: &mut Vec<Label>) -> bool {
        region.iter().any(|stmt| match &stmt.op {
            Op::Break(l) | Op::Continue(l) | Op::Leave(l) => !inside.contains(l),
            op => {
                let label = match op {
                    Op::For(f) => Some(f.label),
                    Op::While(w) => Some(w.label),
                    Op::Scope(s) => Some(s.label),
                    _ => None,
                };
                inside.extend(label);
                let found = op.regions().any(|r| walk(r, inside));
                inside.truncate(inside.len() - usize::from(label.is_some()));
                found
            }
        })
    }
    walk(region, &mut Vec::new())
}

/// Whether a jump inside of `node` may leave it.
pub(super) fn leaves(node: &Node, tree: &Tree) -> bool {
    fn walk(node: &Node, tree: &Tree, inside: &mut Vec<Label>) -> bool {
        let label = match node {
            Node::Jump { label, .. } => return !inside.contains(label),
            Node::For { lp, .. } | Node::While { lp, .. } => Some(tree.loops[*lp].label),
            Node::Scope { label, .. } => Some(*label),
            _ => None,
        };
        inside.extend(label);
        let found = node.blocks().flatten().any(|n| walk(n, tree, inside));
        inside.truncate(inside.len() - usize::from(label.is_some()));
        found
    }
    walk(node, tree, &mut Vec::new())
}

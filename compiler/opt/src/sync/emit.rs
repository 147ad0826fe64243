//! Puts what was decided into the kernel.

use super::tree::{Act, Anchor, Elem, LoopId, Node, Sync, SyncBlock, Tree};
use ptoc_diagnostics::Span;
use ptoc_ir::tile::{
    Event, EventData, EventKind, EventRef, Kernel, Op, Purpose, Region, Stmt, SyncMode, SyncOp, Value,
};
use ptoc_isa::BinOp;
use ptoc_placement::scalars::Scalars;
use rustc_hash::FxHashMap;

/// `kernel` with the order of `block`.
pub(super) fn emit(mut kernel: Kernel, tree: &Tree, block: &SyncBlock) -> Kernel {
    let mut events: Vec<Option<Event>> = vec![None; tree.flags.len()];
    for (flag, data) in tree.flags.iter().enumerate() {
        if !data.dead && data.same.is_none() {
            events[flag] = Some(kernel.events.push(EventData {
                name: data.name.clone(),
                kind: EventKind::Flag,
                from: data.from,
                to: data.to,
                count: data.count,
                purpose: Purpose::Inserted,
                span: data.span,
            }));
        }
    }
    let scalars = Scalars::new(&mut kernel.values, &kernel.prologue);
    let mut emit = Emit { tree, events, scalars, elements: FxHashMap::default(), heads: FxHashMap::default() };
    emit.block(&mut kernel.body, block);
    emit.scalars.finish(&mut kernel.prologue);
    kernel.sync = SyncMode::Inserted;
    kernel
}

struct Emit<'t, 'k> {
    tree: &'t Tree,
    events: Vec<Option<Event>>,
    scalars: Scalars<'k>,
    /// A loop's counter modulo a number.
    elements: FxHashMap<(LoopId, u32), Value>,
    /// What the start of a loop's body has to compute for that.
    heads: FxHashMap<LoopId, Region>,
}

impl Emit<'_, '_> {
    fn block(&mut self, region: &mut Region, block: &SyncBlock) {
        let mut old = std::mem::take(region).into_iter().enumerate().peekable();
        for node in block {
            match node {
                Node::Sync(sync) => {
                    let end = match sync.anchor {
                        Anchor::Before(at) => at,
                        Anchor::After(at) => at + 1,
                    };
                    while let Some((_, stmt)) = old.next_if(|(n, _)| *n < end) {
                        region.push(stmt);
                    }
                    region.extend(self.sync(sync));
                }
                node => {
                    let Some(at) = node.at() else { continue };
                    while let Some((_, stmt)) = old.next_if(|(n, _)| *n < at) {
                        region.push(stmt);
                    }
                    if let Some((_, mut stmt)) = old.next_if(|(n, _)| *n == at) {
                        self.inside(&mut stmt, node);
                        region.push(stmt);
                    }
                }
            }
        }
        region.extend(old.map(|(_, stmt)| stmt));
    }

    fn inside(&mut self, stmt: &mut Stmt, node: &Node) {
        match (&mut stmt.op, node) {
            (Op::For(f), Node::For { lp, body, .. }) => {
                self.note(*lp, f);
                self.block(&mut f.body, body);
                if let Some(head) = self.heads.remove(lp) {
                    f.body.splice(0..0, head);
                }
            }
            (Op::While(w), Node::While { head, body, .. }) => {
                self.block(&mut w.head, head);
                self.block(&mut w.body, body);
            }
            (Op::If(i), Node::If { then, els, .. }) => {
                self.block(&mut i.then, then);
                self.block(&mut i.els, els);
            }
            (Op::Scope(s), Node::Scope { body, .. }) => self.block(&mut s.body, body),
            _ => {}
        }
    }

    /// Finds residues of the counter that the start of a body computes anyway.
    fn note(&mut self, lp: LoopId, f: &ptoc_ir::tile::For) {
        let mut counters = vec![f.index];
        if self.scalars.constant(f.lo) != Some(0) {
            counters.clear();
        }
        // Nothing that is defined after the first statement on a pipe may be used by what stands before it.
        for stmt in f.body.iter().take_while(|s| s.op.is_pure()) {
            match stmt.op {
                Op::Binary { dst, op: BinOp::Sub, a, b } if a == f.index && b == f.lo => counters.push(dst),
                Op::Binary { dst, op: BinOp::Rem, a, b } if counters.contains(&a) => {
                    if let Some(n) = self.scalars.constant(b).and_then(|n| u32::try_from(n).ok()) {
                        self.elements.entry((lp, n)).or_insert(dst);
                    }
                }
                _ => {}
            }
        }
    }

    fn sync(&mut self, sync: &Sync) -> Option<Stmt> {
        let span = sync.span;
        let op = match sync.act {
            Act::Barrier(n) => {
                let data = &self.tree.barriers[n];
                if data.dead {
                    return None;
                }
                SyncOp::Barrier(data.pipe)
            }
            Act::Set(f, elem) => SyncOp::Set(self.flag(f, elem)?),
            Act::Wait(f, elem) => SyncOp::Wait(self.flag(f, elem)?),
        };
        Some(Stmt { op: Op::Sync(op), span })
    }

    fn flag(&mut self, flag: usize, elem: Elem) -> Option<EventRef> {
        let data = &self.tree.flags[flag];
        if data.dead {
            return None;
        }
        let event = self.events[self.tree.flag(flag)]?;
        let element = match elem {
            _ if data.count == 1 => None,
            Elem::Fixed(n) => Some(self.scalars.index(i64::from(n))),
            Elem::Phase => Some(self.element(data.phase?, data.count)),
        };
        Some(EventRef { event, element })
    }

    /// `(index - lo) % n`
    fn element(&mut self, lp: LoopId, n: u32) -> Value {
        if let Some(&v) = self.elements.get(&(lp, n)) {
            return v;
        }
        let data = &self.tree.loops[lp];
        let span: Span = data.span;
        let head = self.heads.entry(lp).or_default();
        let modulus = self.scalars.index(i64::from(n));
        let counter = match data.counter {
            Some((index, lo)) => self.scalars.binary(BinOp::Sub, index, lo, span, head),
            // Only counted loops have phases.
            None => modulus,
        };
        let v = self.scalars.binary(BinOp::Rem, counter, modulus, span, head);
        self.elements.insert((lp, n), v);
        v
    }
}

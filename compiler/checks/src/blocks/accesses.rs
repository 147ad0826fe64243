//! What a block reads and writes of the tensors that blocks share, and what holds where it does.

use ptoc_diagnostics::Span;
use ptoc_ir::tile::{
    Affine, Elem, For, Guard, If, Inst, Kernel, Label, NestAccess as Side, Op, Operand, Region, Stmt, Table, TensorDir,
    TensorId, Value, ViewRef, While,
};
use ptoc_isa::{Oob, Role, Sem};
use ptoc_layout::Swizzle;
use rustc_hash::FxHashSet;
use std::rc::Rc;

/// How elements are used.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(super) enum AccessKind {
    Read,
    Write,
    /// Read and written in one step, which no other update comes between.
    Atomic,
}

impl AccessKind {
    /// Whether two blocks' accesses of these kinds to one element are a race: all but two reads, and two atomic
    /// updates.
    pub(super) fn races_with(self, other: AccessKind) -> bool {
        self != other || self == AccessKind::Write
    }
}

/// Which elements.
#[derive(Clone, Debug)]
pub(super) enum AccessedElements<'k> {
    /// One.
    Element(Value),
    /// All of a window.
    Window(&'k ViewRef),
    /// Some of a window: the data say which.
    Within(&'k ViewRef),
    /// Those of a nest's points.
    Nest(NestSide<'k>),
}

/// A side of a nest.
#[derive(Clone, Debug)]
pub(super) struct NestSide<'k> {
    pub(super) extents: Vec<Value>,
    pub(super) elem: Elem,
    pub(super) at: &'k Affine,
    pub(super) swizzle: Option<Swizzle>,
    pub(super) tables: &'k [Table],
    pub(super) guards: &'k [Guard],
}

/// Something that holds where an access is made.
#[derive(Clone, Copy, Debug)]
pub(super) enum Fact<'k> {
    /// A counted loop is around.
    Loop(&'k For),
    /// A conditional loop is around: its condition holds in this turn, if it is in the body.
    Turn(&'k While, bool),
    /// This has been checked.
    Checked(Value),
    /// It stands in one branch of an `if`.
    Branch(&'k If, bool, Span),
}

/// Facts, each with those before it, which accesses share.
#[derive(Clone, Debug, Default)]
pub(super) struct Facts<'k>(Option<Rc<(Fact<'k>, Facts<'k>)>>);

impl<'k> Facts<'k> {
    fn with(&self, fact: Fact<'k>) -> Facts<'k> {
        Facts(Some(Rc::new((fact, self.clone()))))
    }

    /// From the outermost to the innermost.
    pub(super) fn list(&self) -> Vec<Fact<'k>> {
        let mut out: Vec<Fact<'k>> = self.backwards().collect();
        out.reverse();
        out
    }

    fn backwards(&self) -> impl Iterator<Item = Fact<'k>> + '_ {
        let mut at = self;
        std::iter::from_fn(move || {
            let node = at.0.as_ref()?;
            at = &node.1;
            Some(node.0)
        })
    }
}

impl Drop for Facts<'_> {
    /// One after the other: there may be many.
    fn drop(&mut self) {
        let mut next = self.0.take();
        while let Some(mut node) = next.and_then(Rc::into_inner) {
            next = node.1.0.take();
        }
    }
}

/// One access.
#[derive(Clone, Debug)]
pub(super) struct TensorAccess<'k> {
    pub(super) tensor: TensorId,
    pub(super) kind: AccessKind,
    pub(super) place: AccessedElements<'k>,
    pub(super) facts: Facts<'k>,
    /// A `break`, `continue` or `return` may keep control from it.
    pub(super) skipped: bool,
    pub(super) span: Span,
    /// The statement.
    pub(super) stmt: &'k Stmt,
}

/// The accesses without those that ask what an earlier one asks: the same elements at the same place of the program.
pub(super) fn distinct<'k>(accesses: &[TensorAccess<'k>]) -> Vec<TensorAccess<'k>> {
    let mut known = FxHashSet::default();
    let is_new = |a: &&TensorAccess<'k>| {
        let (kind, elements) = match &a.place {
            AccessedElements::Element(at) => (0, (*at, &[][..], &[][..])),
            AccessedElements::Window(view) => (1, (view.offset, &view.shape[..], &view.strides[..])),
            AccessedElements::Within(view) => (2, (view.offset, &view.shape[..], &view.strides[..])),
            // Of these the statement counts, too.
            AccessedElements::Nest(_) => return true,
        };
        let facts = a.facts.0.as_ref().map(Rc::as_ptr);
        known.insert((a.tensor, a.kind, kind, elements, facts, a.skipped))
    };
    // The keys are borrowed from the accesses.
    accesses.iter().filter(is_new).cloned().collect()
}

/// Whether it is shared by blocks, and written.
pub(super) fn is_watched(kernel: &Kernel, tensor: TensorId) -> bool {
    matches!(kernel.tensors[tensor].dir, TensorDir::Out | TensorDir::InOut)
}

/// The accesses of a block to watched tensors, in program order.
pub(super) fn collect(kernel: &Kernel) -> Vec<TensorAccess<'_>> {
    let mut walk = AccessCollector { kernel, facts: Facts::default(), out: Vec::new(), left: 0 };
    walk.checks(&kernel.prologue);
    walk.region(&kernel.body);
    walk.out
}

struct AccessCollector<'k> {
    kernel: &'k Kernel,
    facts: Facts<'k>,
    out: Vec<TensorAccess<'k>>,
    /// Regions around that something in them leaves early.
    left: u32,
}

impl<'k> AccessCollector<'k> {
    /// What the launch checks holds in every block.
    fn checks(&mut self, region: &'k Region) {
        for stmt in region {
            if let Op::Check { cond, .. } = &stmt.op {
                self.facts = self.facts.with(Fact::Checked(*cond));
            }
        }
    }

    fn region(&mut self, region: &'k Region) {
        let before = self.facts.clone();
        for stmt in region {
            self.stmt(stmt);
        }
        self.facts = before;
    }

    fn inside(&mut self, facts: &[Fact<'k>], region: &'k Region) {
        let before = self.facts.clone();
        for fact in facts {
            self.facts = self.facts.with(*fact);
        }
        self.region(region);
        self.facts = before;
    }

    fn stmt(&mut self, stmt: &'k Stmt) {
        match &stmt.op {
            Op::Load { tensor, offset, .. } => {
                self.push(*tensor, AccessKind::Read, AccessedElements::Element(*offset), stmt)
            }
            Op::Store { tensor, offset, .. } => {
                self.push(*tensor, AccessKind::Write, AccessedElements::Element(*offset), stmt)
            }
            Op::Atomic { tensor, offset, .. } => {
                self.push(*tensor, AccessKind::Atomic, AccessedElements::Element(*offset), stmt)
            }
            Op::Inst(inst) => {
                for (view, kind, whole) in views(inst) {
                    let place = if whole { AccessedElements::Window(view) } else { AccessedElements::Within(view) };
                    self.push(view.tensor, kind, place, stmt);
                }
            }
            Op::Copy(copy) => {
                self.side(&copy.src, &copy.extents, &copy.guards, AccessKind::Read, stmt);
                let guards = if copy.fill.is_some() { &[][..] } else { &copy.guards };
                let first = self.out.len();
                self.side(&copy.dst, &copy.extents, guards, AccessKind::Write, stmt);
                // What a table does not find is not written.
                let absent =
                    matches!(&copy.src, Side::Tensor { tables, .. } if tables.iter().any(|t| t.oob == Oob::Zero));
                if absent && copy.fill.is_none() {
                    self.out[first..].iter_mut().for_each(|a| a.skipped = true);
                }
            }
            Op::Mma(mma) => {
                let axes: Vec<Value> = [&mma.m, &mma.n, &mma.k].into_iter().flatten().copied().collect();
                self.side(&mma.a, &axes, &[], AccessKind::Read, stmt);
                self.side(&mma.b, &axes, &[], AccessKind::Read, stmt);
                self.side(&mma.acc, &axes, &[], AccessKind::Read, stmt);
                self.side(&mma.acc, &axes, &[], AccessKind::Write, stmt);
            }
            Op::Check { cond, .. } => self.facts = self.facts.with(Fact::Checked(*cond)),
            Op::For(f) => self.around(&[Fact::Loop(f)], f.label, &f.body),
            Op::If(i) => {
                self.inside(&[Fact::Branch(i, true, stmt.span)], &i.then);
                self.inside(&[Fact::Branch(i, false, stmt.span)], &i.els);
            }
            Op::While(w) => {
                self.around(&[Fact::Turn(w, false)], w.label, &w.head);
                self.around(&[Fact::Turn(w, true)], w.label, &w.body);
            }
            Op::Scope(s) => self.around(&[], s.label, &s.body),
            _ => {}
        }
    }

    /// The region of a label.
    fn around(&mut self, facts: &[Fact<'k>], label: Label, region: &'k Region) {
        let left = u32::from(leaves(region, label));
        self.left += left;
        self.inside(facts, region);
        self.left -= left;
    }

    fn side(&mut self, side: &'k Side, axes: &[Value], guards: &'k [Guard], kind: AccessKind, stmt: &'k Stmt) {
        let Side::Tensor { tensor, elem, at, swizzle, tables } = side else { return };
        let nest = NestSide { extents: axes.to_vec(), elem: *elem, at, swizzle: *swizzle, tables, guards };
        self.push(*tensor, kind, AccessedElements::Nest(nest), stmt);
        for table in tables {
            let elem = Elem::Whole(self.kernel.tensors[table.tensor].dtype);
            let nest = NestSide { extents: axes.to_vec(), elem, at: &table.at, swizzle: None, tables: &[], guards };
            self.push(table.tensor, AccessKind::Read, AccessedElements::Nest(nest), stmt);
        }
    }

    fn push(&mut self, tensor: TensorId, kind: AccessKind, place: AccessedElements<'k>, stmt: &'k Stmt) {
        if is_watched(self.kernel, tensor) {
            let (facts, skipped) = (self.facts.clone(), self.left > 0);
            self.out.push(TensorAccess { tensor, kind, place, facts, skipped, span: stmt.span, stmt });
        }
    }
}

/// The windows of tensors that an instruction uses, how, and whether all of each: a prefetch uses none.
pub(super) fn views(inst: &Inst) -> impl Iterator<Item = (&ViewRef, AccessKind, bool)> {
    let row = inst.instr.get();
    let whole = matches!(row.sem, Sem::Load | Sem::Store | Sem::Fixpipe(_));
    let operands = row.operands.iter().zip(&inst.operands).filter(|_| row.sem != Sem::Prefetch);
    operands.filter_map(move |(spec, operand)| {
        let Operand::View(view) = operand else { return None };
        let kind = match (spec.role, inst.attrs.atomic) {
            (Role::Src, _) => AccessKind::Read,
            (Role::Dst, None) => AccessKind::Write,
            (Role::Dst, Some(_)) => AccessKind::Atomic,
        };
        Some((view, kind, whole))
    })
}

/// Whether something in it ends the loop, the iteration or the scope of this label.
pub(super) fn leaves(region: &Region, label: Label) -> bool {
    region.iter().any(|s| {
        matches!(s.op, Op::Break(l) | Op::Continue(l) | Op::Leave(l) if l == label)
            || s.op.regions().any(|r| leaves(r, label))
    })
}

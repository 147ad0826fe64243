//! Accesses of a statement: what a statement touches: windows of tiles, and parts of tensors.

use cranelift_entity::EntitySet;
use ptoc_ir::tile::{Inst, NestAccess, Op, Operand, PrintPart, Stmt, TensorId, TileRef, Update, Value, ViewRef};
use ptoc_isa::{Role, Sem};

/// One access of a statement.
#[derive(Clone, Copy, Debug)]
pub(super) struct StatementAccess<'k> {
    pub(super) kind: TouchKind,
    pub(super) what: TouchedObject<'k>,
}

/// How.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(super) enum TouchKind {
    Read,
    Write,
    /// An atomic update.
    Atomic(Update),
}

impl TouchKind {
    /// Whether two accesses of common bytes need an order.
    pub(super) fn conflicts(self, other: TouchKind) -> bool {
        match (self, other) {
            (TouchKind::Read, TouchKind::Read) => false,
            (TouchKind::Atomic(a), TouchKind::Atomic(b)) => !a.commutes(b),
            _ => true,
        }
    }

    /// Whether whatever conflicts with `other` conflicts with this one too.
    pub(super) fn covers(self, other: TouchKind) -> bool {
        self == TouchKind::Write || self == other
    }

    /// A number of its own, below 64.
    pub(super) fn number(self) -> u32 {
        match self {
            TouchKind::Read => 0,
            TouchKind::Write => 1,
            TouchKind::Atomic(u) => 2 + 2 * u.op as u32 + u32::from(u.seen),
        }
    }
}

/// What is touched.
#[derive(Clone, Copy, Debug)]
pub(super) enum TouchedObject<'k> {
    Tile(&'k TileRef),
    View(TensorId, &'k ViewRef, Option<(u32, u32)>),
    Element(TensorId, Value),
    /// Some part of it.
    Tensor(TensorId),
}

/// The accesses of `stmt` itself, reads first; `used` are the values that something in the kernel uses.
pub(super) fn touches<'k>(stmt: &'k Stmt, used: &EntitySet<Value>) -> Vec<StatementAccess<'k>> {
    let mut out = Vec::new();
    let mut push = |kind, what| out.push(StatementAccess { kind, what });
    match &stmt.op {
        Op::Load { tensor, offset, .. } => push(TouchKind::Read, TouchedObject::Element(*tensor, *offset)),
        Op::Store { tensor, offset, .. } => push(TouchKind::Write, TouchedObject::Element(*tensor, *offset)),
        Op::Atomic { tensor, offset, .. } => {
            if let Some(update) = stmt.op.update(used) {
                push(TouchKind::Atomic(update), TouchedObject::Element(*tensor, *offset));
            }
        }
        Op::TileGet { tile, .. } => push(TouchKind::Read, TouchedObject::Tile(tile)),
        Op::TileSet { tile, .. } => push(TouchKind::Write, TouchedObject::Tile(tile)),
        Op::Print { parts } => parts.iter().for_each(|part| {
            if let PrintPart::Tile(t) = part {
                push(TouchKind::Read, TouchedObject::Tile(t));
            }
        }),
        // Binding an address touches no element.
        Op::Inst(inst) if inst.instr.get().sem == Sem::Assign => {}
        Op::Inst(inst) => instruction(inst, &mut push),
        Op::Copy(copy) => {
            side(&copy.src, TouchKind::Read, &mut push);
            side(&copy.dst, TouchKind::Write, &mut push);
        }
        Op::Mma(mma) => {
            side(&mma.a, TouchKind::Read, &mut push);
            side(&mma.b, TouchKind::Read, &mut push);
            side(&mma.acc, TouchKind::Read, &mut push);
            side(&mma.acc, TouchKind::Write, &mut push);
        }
        _ => {}
    }
    out.sort_by_key(|t| t.kind);
    out
}

fn instruction<'k>(inst: &'k Inst, push: &mut dyn FnMut(TouchKind, TouchedObject<'k>)) {
    // What is moved to or from a tensor is no more than the tile holds.
    let cap = inst.operands.iter().find_map(|o| match o {
        Operand::Tile(t) => Some((t.rows, t.cols)),
        _ => None,
    });
    let by_rows = matches!(inst.instr.get().sem, Sem::Load | Sem::Store | Sem::Fixpipe(_));
    for (spec, operand) in inst.instr.get().operands.iter().zip(&inst.operands) {
        let kind = match spec.role {
            Role::Src => TouchKind::Read,
            Role::Dst => TouchKind::Write,
        };
        match operand {
            Operand::Tile(t) => push(kind, TouchedObject::Tile(t)),
            Operand::View(v) => {
                let kind = match (inst.attrs.atomic, kind) {
                    (Some(op), TouchKind::Write) => TouchKind::Atomic(Update::unseen(op)),
                    _ => kind,
                };
                push(kind, TouchedObject::View(v.tensor, v, cap.filter(|_| by_rows)));
            }
            Operand::Scalar(_) => {}
        }
    }
    inst.scratch.iter().for_each(|t| push(TouchKind::Write, TouchedObject::Tile(t)));
}

fn side<'k>(side: &'k NestAccess, kind: TouchKind, push: &mut dyn FnMut(TouchKind, TouchedObject<'k>)) {
    match side {
        NestAccess::Tile { tile, .. } => push(kind, TouchedObject::Tile(tile)),
        NestAccess::Tensor { tensor, .. } => push(kind, TouchedObject::Tensor(*tensor)),
    }
    side.tables().for_each(|t| push(TouchKind::Read, TouchedObject::Tensor(t)));
}

//! What a statement touches: windows of tiles, and parts of tensors.

use cranelift_entity::EntitySet;
use ptoc_ir::tile::{Access, Inst, Op, Operand, PrintPart, Stmt, TensorId, TileRef, Update, Value, ViewRef};
use ptoc_isa::{Role, Sem};

/// One access of a statement.
#[derive(Clone, Copy, Debug)]
pub(super) struct Touch<'k> {
    pub(super) kind: Kind,
    pub(super) what: What<'k>,
}

/// How.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(super) enum Kind {
    Read,
    Write,
    /// An atomic update.
    Atomic(Update),
}

impl Kind {
    /// Do two accesses of common bytes need an order?
    pub(super) fn conflicts(self, other: Kind) -> bool {
        match (self, other) {
            (Kind::Read, Kind::Read) => false,
            (Kind::Atomic(a), Kind::Atomic(b)) => !a.commutes(b),
            _ => true,
        }
    }

    /// Whatever conflicts with `other`, does it conflict with this one too?
    pub(super) fn covers(self, other: Kind) -> bool {
        self == Kind::Write || self == other
    }

    /// A number of its own, below 64.
    pub(super) fn number(self) -> u32 {
        match self {
            Kind::Read => 0,
            Kind::Write => 1,
            Kind::Atomic(u) => 2 + 2 * u.op as u32 + u32::from(u.seen),
        }
    }
}

/// What is touched.
#[derive(Clone, Copy, Debug)]
pub(super) enum What<'k> {
    Tile(&'k TileRef),
    View(TensorId, &'k ViewRef, Option<(u32, u32)>),
    Element(TensorId, Value),
    /// Some part of it.
    Tensor(TensorId),
}

/// The accesses of `stmt` itself, reads first; `used` are the values that something in the kernel uses.
pub(super) fn touches<'k>(stmt: &'k Stmt, used: &EntitySet<Value>) -> Vec<Touch<'k>> {
    let mut out = Vec::new();
    let mut push = |kind, what| out.push(Touch { kind, what });
    match &stmt.op {
        Op::Load { tensor, offset, .. } => push(Kind::Read, What::Element(*tensor, *offset)),
        Op::Store { tensor, offset, .. } => push(Kind::Write, What::Element(*tensor, *offset)),
        Op::Atomic { tensor, offset, .. } => {
            if let Some(update) = stmt.op.update(used) {
                push(Kind::Atomic(update), What::Element(*tensor, *offset));
            }
        }
        Op::TileGet { tile, .. } => push(Kind::Read, What::Tile(tile)),
        Op::TileSet { tile, .. } => push(Kind::Write, What::Tile(tile)),
        Op::Print { parts } => parts.iter().for_each(|part| {
            if let PrintPart::Tile(t) = part {
                push(Kind::Read, What::Tile(t));
            }
        }),
        // Binding an address touches no element.
        Op::Inst(inst) if inst.instr.get().sem == Sem::Assign => {}
        Op::Inst(inst) => instruction(inst, &mut push),
        Op::Copy(copy) => {
            side(&copy.src, Kind::Read, &mut push);
            side(&copy.dst, Kind::Write, &mut push);
        }
        Op::Mma(mma) => {
            side(&mma.a, Kind::Read, &mut push);
            side(&mma.b, Kind::Read, &mut push);
            side(&mma.acc, Kind::Read, &mut push);
            side(&mma.acc, Kind::Write, &mut push);
        }
        _ => {}
    }
    out.sort_by_key(|t| t.kind);
    out
}

fn instruction<'k>(inst: &'k Inst, push: &mut dyn FnMut(Kind, What<'k>)) {
    // What is moved to or from a tensor is no more than the tile holds.
    let cap = inst.operands.iter().find_map(|o| match o {
        Operand::Tile(t) => Some((t.rows, t.cols)),
        _ => None,
    });
    let by_rows = matches!(inst.instr.get().sem, Sem::Load | Sem::Store | Sem::Fixpipe(_));
    for (spec, operand) in inst.instr.get().operands.iter().zip(&inst.operands) {
        let kind = match spec.role {
            Role::Src => Kind::Read,
            Role::Dst => Kind::Write,
        };
        match operand {
            Operand::Tile(t) => push(kind, What::Tile(t)),
            Operand::View(v) => {
                let kind = match (inst.attrs.atomic, kind) {
                    (Some(op), Kind::Write) => Kind::Atomic(Update::unseen(op)),
                    _ => kind,
                };
                push(kind, What::View(v.tensor, v, cap.filter(|_| by_rows)));
            }
            Operand::Scalar(_) => {}
        }
    }
    inst.scratch.iter().for_each(|t| push(Kind::Write, What::Tile(t)));
}

fn side<'k>(side: &'k Access, kind: Kind, push: &mut dyn FnMut(Kind, What<'k>)) {
    match side {
        Access::Tile { tile, .. } => push(kind, What::Tile(tile)),
        Access::Tensor { tensor, .. } => push(kind, What::Tensor(*tensor)),
    }
    side.tables().for_each(|t| push(Kind::Read, What::Tensor(t)));
}

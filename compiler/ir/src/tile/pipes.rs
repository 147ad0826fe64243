//! On which pipe a statement runs.

use super::{Inst, Kernel, NestAccess, Op, Operand, PrintPart, SyncOp};
use ptoc_isa::{Loc, Pipe, Role, Sem, pipe_of};

/// The pipe that executes `op` (`spec/pipes.md`). `None` for what is done while issuing and touches no tile or tensor
/// (scalars, control), and for a barrier of all pipes. Copies and products along nests, which PTO does not have, run
/// where the move or product of whole tiles would; a copy from tensor to tensor on the pipe that writes global memory.
pub fn pipe_of_op(kernel: &Kernel, op: &Op) -> Option<Pipe> {
    match op {
        Op::Load { .. } | Op::Store { .. } | Op::Atomic { .. } | Op::TileGet { .. } | Op::TileSet { .. } => {
            Some(Pipe::S)
        }
        Op::Print { parts } => parts.iter().any(|p| matches!(p, PrintPart::Tile(_))).then_some(Pipe::S),
        // Binding an address is the issuer's business.
        Op::Inst(inst) if inst.instr.get().sem == Sem::Assign => None,
        Op::Inst(inst) => Some(pipe_of_inst(kernel, inst)),
        Op::Copy(copy) => Some(match (loc(kernel, &copy.src), loc(kernel, &copy.dst)) {
            (None, Some(_)) => Pipe::Mte2,
            (Some(Loc::Acc), None) => Pipe::Fix,
            (_, None) => Pipe::Mte3,
            (Some(src), Some(dst)) => match (src, dst) {
                (Loc::Mat, Loc::Left | Loc::Right | Loc::Bias) => Pipe::Mte1,
                (Loc::Mat, Loc::Scaling) | (Loc::Acc, _) | (Loc::Vec, Loc::Mat) => Pipe::Fix,
                _ => Pipe::V,
            },
        }),
        Op::Mma(_) => Some(Pipe::M),
        Op::Sync(SyncOp::Barrier(pipe)) => *pipe,
        Op::Sync(sync) => sync.event().map(|e| {
            let data = &kernel.events[e.event];
            if sync.waits() { data.to } else { data.from }
        }),
        _ => None,
    }
}

fn loc(kernel: &Kernel, side: &NestAccess) -> Option<Loc> {
    side.tile().map(|t| kernel.tiles[t.tile].ty.loc)
}

fn pipe_of_inst(kernel: &Kernel, inst: &Inst) -> Pipe {
    let place = |role: Role| {
        inst.instr.get().operands.iter().zip(&inst.operands).find_map(|(spec, operand)| match operand {
            Operand::Tile(t) if spec.role == role => Some(kernel.tiles[t.tile].ty.loc),
            _ => None,
        })
    };
    pipe_of(inst.instr, place(Role::Src), place(Role::Dst))
}

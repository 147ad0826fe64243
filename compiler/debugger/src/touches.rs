//! What a statement of tile IR does, as far as a breakpoint can ask for it: its name, its pipe, what it writes.

use super::points::StatementPart;
use ptoc_analysis::debug::NameMeaning;
use ptoc_ir::tile::{Event, Kernel, NestAccess, Op, Operand, Purpose, Stmt, SyncOp, TensorId, Tile, Var, pipe_of_op};
use ptoc_placement::access;
use ptoc_placement::access::{inst_operands, tile_accesses};

/// Something with a name that statements change.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Stored {
    /// A tile, or an array of tiles.
    Tile(Tile),
    /// A tensor.
    Tensor(TensorId),
    /// A mutable scalar.
    Var(Var),
    /// An event, or an array of events.
    Event(Event),
}

/// What changes when what has this meaning does.
pub fn stored(what: &NameMeaning) -> Vec<Stored> {
    match what {
        NameMeaning::Tile(t) | NameMeaning::TileArray(t, _) => vec![Stored::Tile(t.tile)],
        NameMeaning::View(w) => vec![Stored::Tensor(w.tensor())],
        NameMeaning::Var(v) => vec![Stored::Var(*v)],
        NameMeaning::Event(e) => vec![Stored::Event(e.event)],
        NameMeaning::Ring(r) => vec![Stored::Event(r.events.0), Stored::Event(r.events.1)],
        _ => Vec::new(),
    }
}

/// Words for operations that are no instructions of the table.
pub const WORDS: [&str; 12] = [
    "copy",
    "mma",
    "set",
    "wait",
    "barrier",
    "arrive",
    "expect",
    "arrive_and_expect",
    "complete",
    "acquire",
    "commit",
    "release",
];

/// PTO's names for what orders pipes.
pub const ALIASES: [&str; 5] = ["TSYNC", "TALLOC", "TPUSH", "TPOP", "TFREE"];

/// Whether it is one of the operations that belong to the declaration of a ring: those that make all slots free, and
/// those that wait for all.
fn is_of_declaration(kernel: &Kernel, stmt: &Stmt) -> bool {
    let Op::Sync(sync) = &stmt.op else { return false };
    sync.event().is_some_and(|e| kernel.events[e.event].span == stmt.span)
}

/// The part of a statement of the source that this is, if it does something on a pipe.
pub fn run(kernel: &Kernel, stmt: &Stmt) -> Option<StatementPart> {
    if is_of_declaration(kernel, stmt) {
        return None;
    }
    let pipe = pipe_of_op(kernel, &stmt.op);
    match &stmt.op {
        Op::Inst(inst) => Some(StatementPart::Instruction(inst.instr.get().name, pipe)),
        Op::Copy(_) => Some(StatementPart::Instruction("copy", pipe)),
        Op::Mma(_) => Some(StatementPart::Instruction("mma", pipe)),
        Op::Sync(sync) => {
            let word = sync.event().map_or(sync.word(), |e| kernel.events[e.event].word(sync));
            Some(StatementPart::Order(word, pipe))
        }
        _ => None,
    }
}

/// PTO's name of an operation on an event.
pub fn alias(kernel: &Kernel, stmt: &Stmt) -> Option<&'static str> {
    let Op::Sync(sync) = &stmt.op else { return None };
    if is_of_declaration(kernel, stmt) {
        return None;
    }
    let purpose = sync.event().map(|e| kernel.events[e.event].purpose);
    match (purpose, sync) {
        (Some(Purpose::RingFull), SyncOp::Set(_)) => Some("TPUSH"),
        (Some(Purpose::RingFull), SyncOp::Wait(_)) => Some("TPOP"),
        (Some(Purpose::RingEmpty), SyncOp::Set(_)) => Some("TFREE"),
        (Some(Purpose::RingEmpty), SyncOp::Wait(_)) => Some("TALLOC"),
        (_, SyncOp::Wait(_) | SyncOp::Barrier(_)) => Some("TSYNC"),
        _ => None,
    }
}

/// What the statement writes, and the event that it is about.
pub fn touches(kernel: &Kernel, stmt: &Stmt) -> Vec<Stored> {
    let tiles = tile_accesses(kernel, stmt).into_iter().filter(|(a, _)| *a == access::AccessMode::Write);
    let mut out: Vec<Stored> = tiles.map(|(_, t)| Stored::Tile(t.tile)).collect();
    let side = |side: &NestAccess| side.tensor().map(Stored::Tensor);
    match &stmt.op {
        Op::Inst(inst) => out.extend(inst_operands(inst).filter_map(|(access, operand)| match operand {
            Operand::View(v) if access == access::AccessMode::Write => Some(Stored::Tensor(v.tensor)),
            _ => None,
        })),
        Op::Copy(copy) => out.extend(side(&copy.dst)),
        Op::Mma(mma) => out.extend(side(&mma.acc)),
        Op::Store { tensor, .. } | Op::Atomic { tensor, .. } => out.push(Stored::Tensor(*tensor)),
        Op::Set { var, .. } => out.push(Stored::Var(*var)),
        Op::Sync(sync) if !is_of_declaration(kernel, stmt) => out.extend(sync.event().map(|e| Stored::Event(e.event))),
        _ => {}
    }
    out
}

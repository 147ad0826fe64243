//! Pipes that run at the same time: the interpreter as sanitizer of synchronisation, and the model of time.
//!
//! It runs *physical* kernels, those of which every tile has an address. The issuer goes through a block in program
//! order and evaluates scalars; a tile instruction is queued on its pipe with the values that it uses, and executed in
//! some order that the synchronisation allows ([`Order`]). What happens before what does not depend on that order: it
//! is found while issuing ([`clocks`], [`protocol`]). Every byte that an instruction touches is compared with those
//! that others have touched without order ([`races`]).
//!
//! With any other order than the program's a failing run is repeated in program order, so that what is reported does
//! not depend on chance.

mod clocks;
mod issue;
mod loads;
mod protocol;
mod races;
mod report;
mod schedule;
mod time;
pub(super) mod touches;

use super::machine::Machine;
use super::trap::Trap;
use clocks::{Clocks, Stamp};
use loads::Loads;
use protocol::Protocol;
use ptoc_diagnostics::{Span, codes};
use ptoc_ir::tile::{AddrKind, EventKind, Kernel, Label, Op, RoleId};
use ptoc_isa::{Loc, Pipe, PipeTimes};
use races::Histories;
use report::Stuck;
use schedule::Schedule;
use std::rc::Rc;
use time::Timeline;
pub use time::{
    BlockTimeline, Cause, EventElement, Lane, Moment, Signal, Slice, Stall, StallInterval, Timing, UnitUse,
};
use touches::Object;

/// In which order what was queued is executed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Order {
    /// As it was issued.
    #[default]
    Program,
    /// Nothing before something needs it, and then only what is needed.
    Late,
    /// By chance, the same for the same seed.
    Random(u64),
}

/// How pipes are run; see [`super::Options::pipes`].
#[derive(Clone, Debug, Default)]
pub struct Pipes {
    /// The order.
    pub order: Order,
    /// Pipes that may start an instruction before the one before it is done ([`ptoc_isa::Pipes::barrier`]).
    pub barrier: Vec<Pipe>,
    /// Locations that share one memory ([`ptoc_isa::Pool`]): their bytes are the same bytes.
    pub pools: Vec<Vec<Loc>>,
    /// Costs, to time the run with.
    pub time: Option<PipeTimes>,
}

/// Something that was issued, for reports.
struct Item<'k> {
    op: &'k Op,
    span: Span,
    stamp: Stamp,
    /// The loops around it, the outermost first, and their counters.
    loops: Rc<[(Label, i64)]>,
}

/// The pipes of the running block.
pub(super) struct Running<'k> {
    order: Order,
    loose: Vec<Pipe>,
    role: u32,
    loops: Vec<(Label, i64)>,
    /// [`Self::loops`] as items have it, until it changes.
    loops_now: Option<Rc<[(Label, i64)]>>,
    clocks: Clocks,
    protocol: Protocol,
    histories: Histories,
    schedule: Schedule<'k>,
    loads: Loads,
    items: Vec<Item<'k>>,
    /// By [`races::Use::number`]: the item, and what it touched the bytes as.
    uses: Vec<(u32, Object)>,
    /// A wait that no set comes before. The rest of the block is gone through for the sake of the report.
    stuck: Option<Stuck>,
    timeline: Option<Timeline>,
}

impl<'k> Running<'k> {
    /// Refuses kernels that are not physical.
    pub fn new(kernel: &'k Kernel, pipes: &Pipes) -> Result<Running<'k>, Trap> {
        if let Some(tile) = kernel.tiles.values().find(|t| t.addr == AddrKind::Auto) {
            let message = format!("tile `{}` has no address, and what pipes do to bytes depends on it", tile.name);
            return Err(Trap::new(codes::TRAP_NOT_PHYSICAL, tile.span, message));
        }
        let roles = kernel.roles.len() as u32 + 1;
        let clocks = Clocks::new(roles, &pipes.barrier);
        Ok(Running {
            order: pipes.order,
            loose: pipes.barrier.clone(),
            role: 0,
            loops: Vec::new(),
            loops_now: None,
            protocol: Protocol::new(kernel),
            histories: Histories::default(),
            schedule: Schedule::new(pipes.order, clocks.streams(), 0),
            loads: loads_of(kernel, &clocks),
            timeline: pipes
                .time
                .as_ref()
                .map(|t| Timeline::new(t.clone(), clocks.streams(), roles as usize, &pipes.barrier)),
            clocks,
            items: Vec::new(),
            uses: Vec::new(),
            stuck: None,
        })
    }

    /// A block begins.
    pub fn begin(&mut self, kernel: &'k Kernel, block: u32) {
        self.role = 0;
        self.loops.clear();
        self.loops_now = None;
        self.clocks = Clocks::new(kernel.roles.len() as u32 + 1, &self.loose);
        self.protocol = Protocol::new(kernel);
        self.histories = Histories::default();
        self.schedule = Schedule::new(self.order, self.clocks.streams(), block);
        self.loads = loads_of(kernel, &self.clocks);
        self.items.clear();
        self.uses.clear();
    }

    /// A region of a role (or of the same issuer) begins; returns who issued before.
    pub fn enter_role(&mut self, role: Option<RoleId>) -> u32 {
        let before = self.role;
        if let Some(role) = role {
            self.role = role.as_u32() + 1;
        }
        before
    }

    pub fn leave_role(&mut self, before: u32) {
        self.role = before;
    }

    /// An iteration of a loop begins: the first pushes it.
    pub fn enter_loop(&mut self, label: Label, counter: i64) {
        self.loops_now = None;
        match self.loops.last_mut() {
            Some((last, at)) if *last == label => *at = counter,
            _ => self.loops.push((label, counter)),
        }
    }

    pub fn leave_loop(&mut self, label: Label) {
        self.loops_now = None;
        if self.loops.last().is_some_and(|(last, _)| *last == label) {
            self.loops.pop();
        }
    }

    /// What the model of time has found.
    pub fn timing(self) -> Option<Timing> {
        self.timeline.map(Timeline::finish)
    }

    fn loops_here(&mut self) -> Rc<[(Label, i64)]> {
        self.loops_now.get_or_insert_with(|| Rc::from(&self.loops[..])).clone()
    }

    fn item(&mut self, op: &'k Op, span: Span, stamp: Stamp) -> u32 {
        let loops = self.loops_here();
        self.items.push(Item { op, span, stamp, loops });
        self.items.len() as u32 - 1
    }
}

fn loads_of(kernel: &Kernel, clocks: &Clocks) -> Loads {
    let bytes = kernel.events.values().any(|e| matches!(e.kind, EventKind::Barrier { .. }));
    Loads::new(if bytes { clocks.streams() } else { 0 })
}

impl Machine<'_, '_> {
    /// The block has been issued: everything else is executed, and no event is left over.
    pub(super) fn drain(&mut self) -> Result<(), Trap> {
        let Some(mut running) = self.pipes.take() else { return Ok(()) };
        let result = self.finish_block(&mut running);
        self.pipes = Some(running);
        result
    }
}

#[cfg(test)]
mod tests;

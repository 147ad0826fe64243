//! A unit in time: its sequencer brings groups of bursts, its lanes compute behind it.
//!
//! * The sequencer issues at most one command a tick, in the order of the walk. A half of the tile buffer can be filled
//!   again once the lanes have computed what it held, so with two halves the next fetch overlaps the computation.
//! * A burst is in the buffer tCCD_L after its RD. Lanes begin at the next edge of the unit's clock.
//! * Coordinates of a sample are computed while the sample before is fetched; they show only at a query's first sample
//!   and where offsets had to be read. Parameters, weights and offsets have registers of their own for what comes next.
//! * The result is written when the lanes are done; the next query's first product waits for that.

use super::clock::Clock;
use super::kernel::{Banks, GeoPimFault, GeoPimKernel};
use super::ledger::{Ledger, TickLabel};
use super::rows::{Bank, Gaps};
use super::scratchpad::Scratchpad;
use super::walk::{BurstGroup, BurstPurpose, JobCursor, Phase, TileTime, UnitPhase};
use crate::dram::Command;
use std::collections::VecDeque;

/// Numbers that do not change while units run.
#[derive(Debug)]
pub struct Fixed<'k> {
    pub kernel: &'k GeoPimKernel,
    pub gaps: Gaps,
    pub clock: Clock,
    /// Bursts of a row.
    pub row: u64,
    /// When tiles were fetched and computed is kept.
    pub timed: bool,
}

impl Fixed<'_> {
    /// Row and column of a burst, which was checked to be in the bank.
    #[inline]
    fn split(&self, burst: u64) -> (u32, u32) {
        // A shift takes a cycle, a division some twenty.
        match self.row.is_power_of_two() {
            true => ((burst >> self.row.trailing_zeros()) as u32, (burst & (self.row - 1)) as u32),
            false => ((burst / self.row) as u32, (burst % self.row) as u32),
        }
    }
}

/// Why a unit's sequencer stands still.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pause {
    /// It wants to open a row and is ready to from this tick on.
    Activate { row: u32, ready: u64 },
    /// Its next command comes at or after the refresh that is due.
    Refresh,
    /// It goes on at this tick; whoever is earlier goes first.
    Later(u64),
    /// It is done.
    Done,
}

/// What a unit did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Column accesses by what they found: their row open, no row open, another row open.
    pub hits: u64,
    /// No row was open.
    pub misses: u64,
    /// Another row was open.
    pub conflicts: u64,
    /// Accesses of these that were for the map.
    pub map_reads: u64,
    /// Of those, the ones that found their row open.
    pub map_hits: u64,
    /// Accesses for parameters, weights and offsets.
    pub operand_reads: u64,
    /// Accesses for results.
    pub writes: u64,
    /// Bursts of the map that came from the scratchpad.
    pub shared: u64,
    /// Commands to the row.
    pub activations: u64,
    /// PREs of this unit alone.
    pub precharges: u64,
    /// Cycles that the lanes computed.
    pub cycles: u64,
}

/// A command that a unit gave its bank.
pub type Trace<'t> = &'t mut dyn FnMut(u64, Command, u32, u32);

/// A unit at work.
#[derive(Debug)]
pub struct GeoPimUnit<'k> {
    pub walk: JobCursor<'k>,
    pub bank: Bank,
    pub ledger: Ledger,
    pub counts: Counts,
    /// The lanes' first product, in ticks.
    pub first_product: Option<u64>,
    /// The states that it was in, in order.
    pub phases: Vec<Phase>,
    /// The half buffers in order, if they are wanted.
    pub tiles: Vec<TileTime>,
    /// Samples and half buffers of the phases before the last.
    told: (u64, u64),
    /// The first command of the group at hand.
    first: Option<u64>,
    group: BurstGroup,
    /// The next burst of the group.
    at: usize,
    /// The group has been begun: the tick before which none of its commands is issued.
    begin: u64,
    /// The access at hand has been counted.
    counted: bool,
    /// The first tick that the sequencer has free.
    cursor: u64,
    /// When the last burst of the group is there.
    arrival: u64,
    /// Ends of the computations that hold halves of the buffer, in cycles.
    ends: VecDeque<u64>,
    /// The cycle in which the lanes are free, and those from which addresses and weights are known.
    lanes: u64,
    addresses: u64,
    weights: u64,
    /// The row of the map that an operand's row has displaced: to come back to it is the operand's cost.
    displaced: Option<u32>,
    /// The group only restores what an operand displaced.
    restoring: bool,
    /// The unit lets the others go first at every group.
    yielding: bool,
    /// When it was through with everything.
    through: Option<u64>,
}

impl<'k> GeoPimUnit<'k> {
    /// A unit that begins at a tick, its bank closed.
    pub fn new(walk: JobCursor<'k>, start: u64, clock: &Clock, yielding: bool) -> GeoPimUnit<'k> {
        let cycle = clock.cycle(start);
        GeoPimUnit {
            walk,
            bank: Bank::default(),
            ledger: Ledger::new(start),
            counts: Counts::default(),
            first_product: None,
            phases: vec![Phase { state: UnitPhase::Idle, begin: start, samples: 0, tiles: 0 }],
            tiles: Vec::new(),
            told: (0, 0),
            first: None,
            group: BurstGroup::default(),
            at: 0,
            begin: start,
            counted: false,
            cursor: start,
            arrival: start,
            ends: VecDeque::new(),
            lanes: cycle,
            addresses: cycle,
            weights: cycle,
            displaced: None,
            restoring: false,
            yielding,
            through: None,
        }
    }

    /// Goes on to the next pause. Commands at or after `due` are not issued.
    pub fn advance(
        &mut self,
        fixed: &Fixed<'_>,
        banks: &mut impl Banks,
        mut pad: Option<&mut Scratchpad>,
        due: u64,
        trace: Trace<'_>,
    ) -> Result<Pause, GeoPimFault> {
        loop {
            if self.at == self.group.bursts.len() {
                self.finish(fixed);
                if !self.walk.next(banks, &mut self.group, self.bank.open, fixed.row)? {
                    self.through = Some(self.end(&fixed.clock));
                    return Ok(Pause::Done);
                }
                self.prepare(fixed);
                if self.yielding {
                    return Ok(Pause::Later(self.begin.max(self.cursor)));
                }
                continue;
            }
            let burst = self.group.bursts[self.at];
            if self.group.kind == BurstPurpose::Tile
                && let Some(pad) = pad.as_deref_mut()
            {
                let asked = fixed.clock.cycle(self.begin.max(self.cursor));
                let cycles = u64::from(fixed.kernel.unit.scratchpad_cycles.max(1));
                if let Some(there) = pad.serve(burst, asked, cycles) {
                    let there = fixed.clock.tick(there);
                    self.first.get_or_insert(fixed.clock.tick(asked));
                    self.ledger.note(self.cursor, there, TickLabel::Column);
                    self.arrival = self.arrival.max(there);
                    self.cursor = self.cursor.max(fixed.clock.tick(asked)) + 1;
                    self.counts.shared += 1;
                    self.at += 1;
                    continue;
                }
            }
            match self.access(fixed, burst, due, trace) {
                Some(pause) => return Ok(pause),
                None if self.counted => {}
                None => {
                    if self.group.kind == BurstPurpose::Tile
                        && let Some(pad) = pad.as_deref_mut()
                    {
                        pad.deposit(burst);
                    }
                }
            }
        }
    }

    /// One command for a burst: its column access, or what must precede it.
    fn access(&mut self, fixed: &Fixed<'_>, burst: u64, due: u64, trace: Trace<'_>) -> Option<Pause> {
        let (row, column) = fixed.split(burst);
        let column_command = self.column_command();
        let command = match self.bank.open {
            Some(open) if open == row => column_command,
            Some(_) => Command::PrePb,
            None => Command::Act,
        };
        if !self.counted {
            self.counted = true;
            self.count(command);
            self.displace(row);
        }
        let tick = self.begin.max(self.cursor).max(self.bank.earliest(&fixed.gaps, command));
        if tick >= due {
            return Some(Pause::Refresh);
        }
        if command == Command::Act {
            return Some(Pause::Activate { row, ready: tick });
        }
        self.issue(command, row, column, tick, trace);
        if command == Command::PrePb {
            self.counts.precharges += 1;
            self.ledger.note(self.cursor, tick + 1, self.label(TickLabel::Row));
        } else {
            let there = tick + fixed.gaps.own(column_command, column_command).max(1);
            self.ledger.note(self.cursor, there, self.label(TickLabel::Column));
            self.arrival = there;
            (self.at, self.counted) = (self.at + 1, false);
        }
        self.cursor = tick + 1;
        None
    }

    /// What the group at hand does to columns.
    pub fn column_command(&self) -> Command {
        if self.group.kind == BurstPurpose::Output { Command::Wr } else { Command::Rd }
    }

    /// The row that the unit wanted was opened at `tick`; it was ready at `ready`.
    pub fn activated(&mut self, row: u32, ready: u64, tick: u64, trace: Trace<'_>) {
        self.ledger.note(self.cursor, ready, self.label(TickLabel::Row));
        self.ledger.note(self.cursor.max(ready), tick, TickLabel::Activate);
        self.ledger.note(tick, tick + 1, self.label(TickLabel::Row));
        self.issue(Command::Act, row, 0, tick, trace);
        self.counts.activations += 1;
        self.cursor = tick + 1;
    }

    /// A refresh kept the bank up to `until`.
    pub fn refreshed(&mut self, until: u64) {
        self.ledger.note(self.cursor, until, TickLabel::Refresh);
        self.cursor = self.cursor.max(until);
    }

    /// A command to the bank.
    pub fn issue(&mut self, command: Command, row: u32, column: u32, tick: u64, trace: Trace<'_>) {
        self.bank.issue(command, row, tick);
        self.first.get_or_insert(tick);
        trace(tick, command, row, column);
    }

    /// When it was through with everything; refreshes of its bank come later, too, as long as others work.
    pub fn through(&self) -> Option<u64> {
        self.through
    }

    /// When the unit, and its bank, are through with everything.
    pub fn end(&self, clock: &Clock) -> u64 {
        clock.tick(self.lanes).max(self.arrival).max(self.cursor)
    }

    /// Notes, before the first command for a burst in `row`, who is to blame if another row is open: an operand or a
    /// result displaces the open row, and a burst of the map may restore it.
    fn displace(&mut self, row: u32) {
        if self.group.kind != BurstPurpose::Tile {
            self.displaced = self.displaced.or(self.bank.open.filter(|open| *open != row));
        } else if let Some(displaced) = self.displaced.take() {
            self.restoring = displaced == row;
        }
    }

    fn label(&self, of_map: TickLabel) -> TickLabel {
        if self.group.kind == BurstPurpose::Tile && !self.restoring { of_map } else { TickLabel::Operand }
    }

    fn count(&mut self, command: Command) {
        let counts = &mut self.counts;
        match command {
            Command::PrePb => counts.conflicts += 1,
            Command::Act => counts.misses += 1,
            _ => counts.hits += 1,
        }
        match self.group.kind {
            BurstPurpose::Tile => {
                counts.map_reads += 1;
                counts.map_hits += u64::from(command.is_column());
            }
            BurstPurpose::Output => counts.writes += 1,
            _ => counts.operand_reads += 1,
        }
    }

    /// Prepares a new group: from when its commands may be issued.
    fn prepare(&mut self, fixed: &Fixed<'_>) {
        (self.at, self.restoring, self.first) = (0, false, None);
        self.begin = match self.group.kind {
            BurstPurpose::Params | BurstPurpose::Weights | BurstPurpose::Offsets => 0,
            BurstPurpose::Output => fixed.clock.tick(self.lanes),
            BurstPurpose::Tile => {
                let halves = fixed.kernel.unit.buffers as usize;
                let free = if self.ends.len() < halves { 0 } else { self.ends[self.ends.len() - halves] };
                fixed.clock.tick(free.max(self.addresses))
            }
        };
        self.arrival = self.begin;
        let state = match self.group.kind {
            BurstPurpose::Params => UnitPhase::Load,
            BurstPurpose::Weights | BurstPurpose::Offsets | BurstPurpose::Tile => UnitPhase::Process,
            BurstPurpose::Output => UnitPhase::Output,
        };
        if self.phases.last().is_none_or(|p| p.state != state) {
            self.enter(state, self.begin.max(self.cursor));
        }
    }

    /// A new state, and the work of the one that it follows. The group at hand is the new state's.
    pub fn enter(&mut self, state: UnitPhase, begin: u64) {
        let pending = u64::from(state == UnitPhase::Process && self.group.kind == BurstPurpose::Tile);
        let now = (self.walk.states.samples, self.walk.states.tiles - pending);
        if let Some(last) = self.phases.last_mut() {
            (last.samples, last.tiles) = (now.0 - self.told.0, now.1 - self.told.1);
        }
        self.told = now;
        self.phases.push(Phase { state, begin, samples: 0, tiles: 0 });
    }

    /// The group at hand was a half buffer that the lanes compute in these ticks. A row may be opened for it while the
    /// last burst of the one before is on its way; one that lies outside the map has no bursts.
    fn note_tile(&mut self, compute: (u64, u64)) {
        let before = self.tiles.last().map_or(0, |t| t.fetch.1);
        let begin = self.first.unwrap_or(self.arrival).max(before);
        self.tiles.push(TileTime { fetch: (begin, self.arrival.max(begin)), compute });
    }

    /// All bursts of the group are there, or written.
    fn finish(&mut self, fixed: &Fixed<'_>) {
        let clock = &fixed.clock;
        let there = clock.cycle(self.arrival);
        match self.group.kind {
            // The first call comes before any group.
            _ if self.group.bursts.is_empty() && self.group.cycles == 0 => {}
            BurstPurpose::Params | BurstPurpose::Offsets => {
                self.addresses = there + u64::from(fixed.kernel.unit.address_cycles);
            }
            BurstPurpose::Weights => self.weights = there,
            BurstPurpose::Output => {
                self.ledger.wait(clock.tick(there), TickLabel::Operand);
                self.lanes = self.lanes.max(there);
            }
            BurstPurpose::Tile => {
                let from = there.max(self.lanes).max(self.weights);
                self.ledger.wait(clock.tick(from), TickLabel::Address);
                self.first_product.get_or_insert(clock.tick(from));
                self.lanes = from + self.group.cycles;
                self.counts.cycles += self.group.cycles;
                self.ledger.spend(clock.tick(self.lanes), TickLabel::Compute);
                if fixed.timed {
                    self.note_tile((clock.tick(from), clock.tick(self.lanes)));
                }
                self.ends.push_back(self.lanes);
                if self.ends.len() > 2 {
                    self.ends.pop_front();
                }
            }
        }
    }
}

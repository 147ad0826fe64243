//! First ready, first come first served.
//!
//! In each tick (from 1): one request is offered to its queue; then the column slot takes the oldest ready RD or WR,
//! then the row slot the oldest ready ACT or PRE. A request whose ACT has issued leaves its queue and keeps its row
//! open until its column command issues; such requests go before all others. While a refresh waits, only they issue, so
//! that the banks come free. Writes wait until their queue fills (write drain) or no read is there.
//!
//! Hits, misses and conflicts are classified by the state of the bank when the first command for a request issues.
//!
//! The engine skips from event to event. Each slot keeps its best candidate and the tick at which it is ready. Earliest
//! ticks never fall and only issued commands raise them, so a candidate stays the best until a command issues, a
//! request arrives (which is compared with it), or the mode changes.

use std::collections::VecDeque;

use super::command::Command;
use super::config::Config;
use super::controller::{Controller, Refresh, RowPolicy, SimError};
use super::device::{CLOSED, Cause};
use super::org::Address;
use super::queue::{Banks, Entry, Queue};
use super::session::Session;
use super::standard::Standard;
use super::stats::Stats;
use super::trace::{Issued, Request};

const NEVER: u64 = u64::MAX;

pub(super) fn run(
    config: &Config,
    controller: &Controller,
    requests: impl Iterator<Item = Request>,
    mut sink: impl FnMut(Issued),
) -> Result<Stats, SimError> {
    let mut session = Session::new(config, controller);
    step::<false>(config, controller, &mut session, 1, requests, |issued, _| sink(issued))?;
    Ok(session.meter.stats)
}

/// Serves requests from tick `start` on, on a channel with a past. The last command issues in the tick that is
/// returned.
pub(super) fn serve(
    config: &Config,
    controller: &Controller,
    session: &mut Session,
    start: u64,
    requests: impl Iterator<Item = Request>,
    sink: impl FnMut(Issued, Cause),
) -> Result<u64, SimError> {
    step::<false>(config, controller, session, start.max(1), requests, sink)
}

/// The loop over ticks. `EVERY` takes every tick and finds every candidate anew; a test holds the skipping to it.
fn step<const EVERY: bool>(
    config: &Config,
    controller: &Controller,
    session: &mut Session,
    start: u64,
    mut requests: impl Iterator<Item = Request>,
    sink: impl FnMut(Issued, Cause),
) -> Result<u64, SimError> {
    let mut engine = Engine::new(config, controller, session, sink);
    let mut offered = requests.next();
    let mut tick = start;
    loop {
        if let Some(request) = &offered
            && engine.offer(request, tick)
        {
            offered = requests.next();
        }
        if tick >= engine.session.refresh_due {
            engine.request_refresh(tick)?;
        }
        engine.column_slot(tick);
        engine.row_slot(tick);
        if offered.is_none() && engine.is_idle() {
            return Ok(tick);
        }
        if EVERY {
            tick += 1;
            engine.stale_columns = true;
            engine.stale_row = true;
            continue;
        }
        let next = engine.next_event(tick, offered.as_ref());
        if next == NEVER {
            debug_assert!(false, "requests wait and nothing will happen");
            return Err(SimError::Stuck { tick });
        }
        tick = next;
    }
}

/// The best choice of a slot: when it is ready, and whose it is.
#[derive(Clone, Copy, Debug)]
struct Best {
    tick: u64,
    seq: u64,
    bank: u32,
}

impl Best {
    const NONE: Best = Best { tick: NEVER, seq: NEVER, bank: 0 };

    #[inline]
    fn consider(&mut self, tick: u64, seq: u64, bank: usize) {
        if (tick, seq) < (self.tick, self.seq) {
            *self = Best { tick, seq, bank: bank as u32 };
        }
    }
}

struct Engine<'a, S> {
    config: &'a Config,
    controller: &'a Controller,
    session: &'a mut Session,
    sink: S,
    /// Reads, writes.
    queues: [Queue; 2],
    /// Of each bank, the request whose ACT has issued and whose column command has not.
    active: Vec<Option<Entry>>,
    active_banks: Banks,
    active_in_pc: Vec<u32>,
    /// Refreshes that wait, in their order.
    maintenance: VecDeque<(Command, u32)>,
    write_mode: bool,
    /// Write mode begins above, and ends below.
    write_high: f64,
    write_low: f64,
    seq: u64,
    /// Ticks between rising clock edges, and between edges for PRE; 1 is every tick.
    edge: u64,
    half_edge: u64,
    refreshes_since_data: u64,
    /// Candidates of the column slot among the active requests and in the queue, and of the row slot.
    best_active: Best,
    best_column: Best,
    best_row: Best,
    /// Commands issued or modes changed since the candidates were found.
    stale_columns: bool,
    stale_row: bool,
}

impl<'a, S: FnMut(Issued, Cause)> Engine<'a, S> {
    fn new(config: &'a Config, controller: &'a Controller, session: &'a mut Session, sink: S) -> Self {
        let banks = session.device.banks();
        let pcs = config.org.pseudochannel as usize;
        let edges = controller.clock_edges && config.standard == Standard::Hbm3;
        let clock = u64::from(config.tick_multiplier);
        Engine {
            queues: [controller.read_queue, controller.write_queue].map(|n| Queue::new(n, banks, pcs)),
            active: vec![None; banks],
            active_banks: Banks::new(banks),
            active_in_pc: vec![0; pcs],
            maintenance: VecDeque::new(),
            write_mode: false,
            write_high: controller.write_high * controller.write_queue as f64,
            write_low: controller.write_low * controller.write_queue as f64,
            seq: 0,
            edge: if edges { clock } else { 1 },
            half_edge: if edges { (clock / 2).max(1) } else { 1 },
            refreshes_since_data: 0,
            best_active: Best::NONE,
            best_column: Best::NONE,
            best_row: Best::NONE,
            stale_columns: false,
            stale_row: false,
            config,
            controller,
            session,
            sink,
        }
    }

    /// The first edge at or after a tick at which the command may begin; tick 1 is a rising edge.
    #[inline]
    fn align(&self, command: Command, tick: u64) -> u64 {
        if self.edge == 1 {
            return tick;
        }
        let period = if matches!(command, Command::PrePb | Command::PreAb) { self.half_edge } else { self.edge };
        (tick.max(1) - 1).next_multiple_of(period) + 1
    }

    #[inline]
    fn ready(&self, command: Command, bank: usize, now: u64) -> u64 {
        self.align(command, self.session.device.earliest(command, bank).max(now))
    }

    /// Whether the write queue has the burst: a read is answered from it, a write merges into it.
    #[inline]
    fn waits_as_write(&self, request: &Request) -> bool {
        let writes = &self.queues[1];
        writes.len() != 0 && writes.contains(request.bank_index(self.config), request.address)
    }

    /// Takes a request in, if there is room.
    fn offer(&mut self, request: &Request, now: u64) -> bool {
        let bank = request.bank_index(self.config);
        if self.waits_as_write(request) {
            if request.write {
                self.session.meter.stats.writes += 1;
                self.session.meter.stats.coalesced += 1;
            } else {
                self.session.meter.stats.reads += 1;
                self.session.meter.stats.forwarded += 1;
                self.session.meter.stats.read_latency.add(1);
            }
            return true;
        }
        let queue = &mut self.queues[usize::from(request.write)];
        if queue.is_full() {
            return false;
        }
        let open_row = self.session.device.open_row(bank);
        self.seq += 1;
        queue.push(request.address, bank, self.seq, now - 1, request.write, open_row);
        if request.write {
            self.session.meter.stats.writes += 1;
        } else {
            self.session.meter.stats.reads += 1;
        }
        // The youngest request replaces a candidate only if it is ready before it.
        if request.write == self.write_mode {
            let command = self.command_for(request, open_row);
            if command.is_column() {
                if !self.stale_columns {
                    let at = self.ready(command, bank, now);
                    self.best_column.consider(at, self.seq, bank);
                }
            } else if !self.stale_row
                && self.maintenance.is_empty()
                && !(command == Command::PrePb && self.active_banks.contains(bank))
            {
                let at = self.ready(command, bank, now);
                self.best_row.consider(at, self.seq, bank);
            }
        }
        true
    }

    fn command_for(&self, request: &Request, open_row: u32) -> Command {
        if open_row == CLOSED {
            Command::Act
        } else if open_row != request.address.row {
            Command::PrePb
        } else {
            column(request.write)
        }
    }

    fn request_refresh(&mut self, now: u64) -> Result<(), SimError> {
        let per_pc = self.session.device.banks_per_pc();
        let banks = self.session.device.banks();
        // A bank's number is below 2^14.
        match self.controller.refresh {
            Refresh::Off => {}
            Refresh::AllBank => {
                (0..banks / per_pc).for_each(|pc| self.maintenance.push_back((Command::RefAb, (pc * per_pc) as u32)));
            }
            Refresh::PerBank => {
                let (together, stride) = Controller::refresh_together(self.config);
                for i in 0..together {
                    self.maintenance.push_back((Command::RefPb, (self.session.refresh_bank + i * stride) as u32));
                }
                self.session.refresh_bank = (self.session.refresh_bank + 1) % (banks / together);
            }
        }
        self.stale_row = true;
        self.session.refresh_due += self.session.refresh_interval;
        let limit = SimError::refresh_limit(banks);
        if self.maintenance.len() as u64 > limit || self.refreshes_since_data > limit {
            return Err(SimError::RefreshStarves { tick: now });
        }
        Ok(())
    }

    /// What the write drain says with the queues as they are.
    #[inline]
    fn wanted_mode(&self) -> bool {
        let (reads, writes) = (self.queues[0].len(), self.queues[1].len());
        if self.write_mode {
            !((writes == 0 || (writes as f64) < self.write_low) && reads != 0)
        } else {
            writes as f64 > self.write_high || reads == 0
        }
    }

    #[inline]
    fn update_mode(&mut self) {
        let mode = self.wanted_mode();
        if mode != self.write_mode {
            self.write_mode = mode;
            self.stale_columns = true;
            self.stale_row = true;
        }
    }

    fn find_columns(&mut self, now: u64) {
        self.stale_columns = false;
        let mut best = Best::NONE;
        self.active_banks.for_each(|bank| {
            if let Some(entry) = &self.active[bank] {
                best.consider(self.ready(column(entry.write), bank, now), entry.seq, bank);
            }
        });
        self.best_active = best;
        let mut best = Best::NONE;
        let queue = &self.queues[usize::from(self.write_mode)];
        let command = column(self.write_mode);
        let soonest = self.align(command, self.session.device.soonest(command, &queue.in_pc).max(now));
        for (seq, bank) in queue.hits.iter() {
            best.consider(self.ready(command, bank, now), seq, bank);
            if best.tick <= soonest {
                break; // no younger one is earlier
            }
        }
        self.best_column = best;
    }

    fn find_row(&mut self, now: u64) {
        self.stale_row = false;
        let mut best = Best::NONE;
        if let Some((refresh, bank)) = self.maintenance.front() {
            let bank = *bank as usize;
            let command = self.toward_refresh(*refresh, bank);
            let blocked = match command {
                Command::PreAb => self.active_in_pc[self.session.device.pc_of(bank)] != 0,
                Command::PrePb => self.active_banks.contains(bank),
                _ => false,
            };
            if !blocked {
                let at = match command {
                    Command::PreAb | Command::PrePb => self.session.device.earliest(command, bank),
                    _ => self.session.device.earliest_refresh(command, bank),
                };
                best.consider(self.align(command, at.max(now)), 0, bank);
            }
        } else if !self.queues[usize::from(self.write_mode)].others.is_empty() {
            let queue = &self.queues[usize::from(self.write_mode)];
            let act = self.session.device.soonest(Command::Act, &queue.in_pc);
            let pre = self.session.device.soonest(Command::PrePb, &queue.in_pc);
            let soonest = act.min(pre).max(now);
            for (seq, bank) in queue.others.iter() {
                let closed = self.session.device.open_row(bank) == CLOSED;
                if closed || !self.active_banks.contains(bank) {
                    let command = if closed { Command::Act } else { Command::PrePb };
                    best.consider(self.ready(command, bank, now), seq, bank);
                    if best.tick <= soonest {
                        break;
                    }
                }
            }
        }
        self.best_row = best;
    }

    fn toward_refresh(&self, refresh: Command, bank: usize) -> Command {
        if refresh == Command::RefAb {
            if self.session.device.any_open(self.session.device.pc_of(bank)) { Command::PreAb } else { refresh }
        } else if self.session.device.open_row(bank) != CLOSED {
            Command::PrePb
        } else {
            refresh
        }
    }

    fn column_slot(&mut self, now: u64) {
        if self.stale_columns {
            self.find_columns(now);
        }
        if self.best_active.tick <= now {
            let bank = self.best_active.bank as usize;
            if let Some(entry) = self.active[bank].take() {
                self.active_banks.put(bank, false);
                self.active_in_pc[self.session.device.pc_of(bank)] -= 1;
                self.issue_column(entry, now);
            }
            return;
        }
        if !self.maintenance.is_empty() {
            return;
        }
        self.update_mode();
        if self.stale_columns {
            self.find_columns(now);
        }
        if self.best_column.tick <= now {
            let bank = self.best_column.bank as usize;
            let mut entry = self.queues[usize::from(self.write_mode)].take_hit(bank);
            if !entry.counted {
                entry.counted = true;
                self.session.meter.stats.hits += 1;
            }
            self.issue_column(entry, now);
        }
    }

    fn issue_column(&mut self, entry: Entry, now: u64) {
        let bank = entry.bank as usize;
        let mut command = column(entry.write);
        let close = self.controller.row_policy == RowPolicy::Closed
            && !self.queues.iter().any(|q| q.has_hit(bank))
            && self.active[bank].is_none();
        if close {
            let auto = if entry.write { Command::WrA } else { Command::RdA };
            if self.ready(auto, bank, now) <= now {
                command = auto;
            }
        }
        self.issue(command, bank, entry.address, now, entry.arrived + 1);
        self.refreshes_since_data = 0;
        if !entry.write {
            let end = self.session.meter.data_end(command, now);
            self.session.meter.stats.read_latency.add(end - entry.arrived);
        }
        if command != column(entry.write) {
            self.queues.iter_mut().for_each(|q| q.row_changed(bank, CLOSED));
        }
    }

    fn row_slot(&mut self, now: u64) {
        if self.maintenance.is_empty() {
            self.update_mode();
        }
        if self.stale_row {
            self.find_row(now);
        }
        if self.best_row.tick > now {
            return;
        }
        let bank = self.best_row.bank as usize;
        if let Some((refresh, _)) = self.maintenance.front() {
            let command = self.toward_refresh(*refresh, bank);
            let address = Request::bank_address(self.config, bank);
            self.issue(command, bank, address, now, 0);
            if matches!(command, Command::PrePb | Command::PreAb) {
                let per_pc = self.session.device.banks_per_pc();
                let first = self.session.device.pc_of(bank) * per_pc;
                let changed = if command == Command::PreAb { first..first + per_pc } else { bank..bank + 1 };
                for bank in changed {
                    self.queues.iter_mut().for_each(|q| q.row_changed(bank, CLOSED));
                }
            } else {
                self.maintenance.pop_front();
                self.refreshes_since_data += 1;
            }
            return;
        }
        let mode = usize::from(self.write_mode);
        let closed = self.session.device.open_row(bank) == CLOSED;
        let entry = self.queues[mode].other(bank);
        if !entry.counted {
            entry.counted = true;
            if closed {
                self.session.meter.stats.misses += 1;
            } else {
                self.session.meter.stats.conflicts += 1;
            }
        }
        let (address, arrived) = (entry.address, entry.arrived);
        if closed {
            let entry = self.queues[mode].take_other(bank);
            self.issue(Command::Act, bank, address, now, arrived + 1);
            self.active[bank] = Some(entry);
            self.active_banks.put(bank, true);
            self.active_in_pc[self.session.device.pc_of(bank)] += 1;
            self.queues.iter_mut().for_each(|q| q.row_changed(bank, address.row));
        } else {
            self.issue(Command::PrePb, bank, address, now, arrived + 1);
            self.queues.iter_mut().for_each(|q| q.row_changed(bank, CLOSED));
        }
    }

    #[inline]
    fn issue(&mut self, command: Command, bank: usize, address: Address, tick: u64, arrived: u64) {
        let cause = self.session.meter.issue(&self.session.device, command, bank, tick, arrived);
        self.session.device.issue(command, bank, address.row, tick);
        (self.sink)(Issued { tick, command, address }, cause);
        self.stale_columns = true;
        self.stale_row = true;
    }

    fn is_idle(&self) -> bool {
        self.queues.iter().all(|q| q.len() == 0) && self.active_banks.is_empty() && self.maintenance.is_empty()
    }

    /// The next tick at which something can happen.
    fn next_event(&mut self, now: u64, offered: Option<&Request>) -> u64 {
        let soon = now + 1;
        if let Some(request) = offered
            && (!self.queues[usize::from(request.write)].is_full() || self.waits_as_write(request))
        {
            return soon;
        }
        if self.maintenance.is_empty() && self.wanted_mode() != self.write_mode {
            return soon;
        }
        if self.stale_columns {
            self.find_columns(soon);
        }
        if self.stale_row {
            self.find_row(soon);
        }
        let mut next = self.session.refresh_due.min(self.best_active.tick).min(self.best_row.tick);
        if self.maintenance.is_empty() {
            next = next.min(self.best_column.tick);
        }
        next.max(soon)
    }
}

#[inline]
fn column(write: bool) -> Command {
    if write { Command::Wr } else { Command::Rd }
}

#[cfg(test)]
#[path = "frfcfs_tests.rs"]
mod tests;

//! The in-order policy: strict program order, open page, at most one command a tick.
//!
//! Every command issues at the earliest legal tick after the one before it; the first tick is 0. It is the definition
//! that golden data and other people's simulators can be held to, and the slowest sensible controller.
//! With refresh, an all-bank (or per-bank) refresh that is due before the next command issues first.

use super::command::Command;
use super::config::Config;
use super::controller::{Controller, Refresh, SimError};
use super::device::{CLOSED, Device};
use super::meter::Meter;
use super::org::Address;
use super::stats::Stats;
use super::trace::{Issued, Request};

pub(super) fn run(
    config: &Config,
    controller: &Controller,
    requests: impl Iterator<Item = Request>,
    mut sink: impl FnMut(Issued),
) -> Result<Stats, SimError> {
    let device = Device::new(config);
    let meter = Meter::new(config, &device);
    let interval = controller.refresh_interval(config);
    let mut state = InOrder { config, device, meter, next: 0, sink: &mut sink };
    let mut due = interval.unwrap_or(u64::MAX);
    let mut refresh_bank = 0;
    for request in requests {
        let bank = request.bank_index(config);
        let arrived = state.next;
        if request.write {
            state.meter.stats.writes += 1;
        } else {
            state.meter.stats.reads += 1;
        }
        let column = if request.write { Command::Wr } else { Command::Rd };
        let mut counted = false;
        let mut refreshes = 0u64;
        loop {
            let open = state.device.open_row(bank);
            let command = if open == request.address.row {
                column
            } else if open == CLOSED {
                Command::Act
            } else {
                Command::PrePb
            };
            let stats = &mut state.meter.stats;
            if !counted {
                counted = true;
                match command {
                    Command::Act => stats.misses += 1,
                    Command::PrePb => stats.conflicts += 1,
                    _ => stats.hits += 1,
                }
            }
            let tick = state.device.earliest(command, bank).max(state.next);
            if tick >= due {
                due += interval.unwrap_or(u64::MAX);
                refreshes += 1;
                if refreshes > SimError::refresh_limit(state.device.banks()) {
                    return Err(SimError::RefreshStarves { tick });
                }
                state.refresh(controller.refresh, &mut refresh_bank);
                continue;
            }
            state.issue(command, bank, request.address, tick, arrived);
            if command.is_column() {
                if command.is_read() {
                    let end = state.meter.data_end(command, tick);
                    state.meter.stats.read_latency.add(end - arrived);
                }
                break;
            }
        }
    }
    Ok(state.meter.stats)
}

struct InOrder<'a, S> {
    config: &'a Config,
    device: Device,
    meter: Meter,
    /// The first tick that has no command yet.
    next: u64,
    sink: &'a mut S,
}

impl<S: FnMut(Issued)> InOrder<'_, S> {
    fn issue(&mut self, command: Command, bank: usize, address: Address, tick: u64, arrived: u64) {
        self.meter.issue(&self.device, command, bank, tick, arrived);
        self.device.issue(command, bank, address.row, tick);
        (self.sink)(Issued { tick, command, address });
        self.next = tick + 1;
    }

    fn refresh(&mut self, mode: Refresh, next_bank: &mut usize) {
        let per_pc = self.device.banks_per_pc();
        if mode == Refresh::PerBank {
            let (together, stride) = Controller::refresh_together(self.config);
            let turns = self.device.banks() / together;
            for bank in (0..together).map(|i| *next_bank + i * stride) {
                let address = Request::bank_address(self.config, bank);
                if self.device.open_row(bank) != CLOSED {
                    let tick = self.device.earliest(Command::PrePb, bank).max(self.next);
                    self.issue(Command::PrePb, bank, address, tick, 0);
                }
                let tick = self.device.earliest_refresh(Command::RefPb, bank).max(self.next);
                self.issue(Command::RefPb, bank, address, tick, 0);
            }
            *next_bank = (*next_bank + 1) % turns;
            return;
        }
        for pc in 0..self.device.banks() / per_pc {
            let bank = pc * per_pc;
            let address = Request::bank_address(self.config, bank);
            if self.device.any_open(pc) {
                let tick = self.device.earliest(Command::PreAb, bank).max(self.next);
                self.issue(Command::PreAb, bank, address, tick, 0);
            }
            let tick = self.device.earliest_refresh(Command::RefAb, bank).max(self.next);
            self.issue(Command::RefAb, bank, address, tick, 0);
        }
    }
}

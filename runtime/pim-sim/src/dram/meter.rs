//! Bookkeeping that both policies share: commands, data buses, stalls.

use super::command::Command;
use super::config::Config;
use super::device::{Cause, Device};
use super::stats::Stats;

/// Counts what a controller issues. Call [`Meter::issue`] before the device learns of the command.
pub(super) struct Meter {
    pub(super) stats: Stats,
    /// Of each pseudo-channel, the first tick after its last burst.
    bus_free: Vec<u64>,
    /// Of each bank, what bound its last ACT.
    act_cause: Vec<Cause>,
    burst: u64,
    read_offset: u64,
    write_offset: u64,
}

impl Meter {
    pub(super) fn new(config: &Config, device: &Device) -> Meter {
        let pcs = config.org.pseudochannel as usize;
        let stats = Stats { data_busy: vec![0; pcs], ..Stats::default() };
        Meter {
            stats,
            bus_free: vec![0; pcs],
            act_cause: vec![Cause::RowCycle; device.banks()],
            burst: config.ticks(config.timing.bl),
            read_offset: config.ticks(config.timing.cl),
            write_offset: config.ticks(config.timing.cwl),
        }
    }

    /// The first tick after a column command's data.
    pub(super) fn data_end(&self, command: Command, tick: u64) -> u64 {
        tick + if command.is_read() { self.read_offset } else { self.write_offset } + self.burst
    }

    /// Counts a command at its tick. `arrived` is the tick from which it could have been issued but for the rules.
    /// Returns why a column command did not come sooner: for a row that had to be opened, what held the ACT.
    #[inline]
    pub(super) fn issue(&mut self, device: &Device, command: Command, bank: usize, tick: u64, arrived: u64) -> Cause {
        self.stats.commands[command as usize] += 1;
        if command.is_column() {
            let pc = device.pc_of(bank);
            let end = self.data_end(command, tick);
            let start = end - self.burst;
            let idle = start.saturating_sub(self.bus_free[pc]);
            // Data of the first command after a turnaround may lie before the other direction's; never count twice.
            self.stats.data_busy[pc] += self.burst;
            self.bus_free[pc] = self.bus_free[pc].max(end);
            self.stats.last_cmd_tick = tick;
            self.stats.end_tick = self.stats.end_tick.max(end);
            if idle != 0 {
                let cause = match device.binding(command, bank) {
                    _ if tick <= arrived => Cause::QueueEmpty,
                    (at, Cause::RowCycle) if at == tick => self.act_cause[bank],
                    (at, cause) if at == tick => cause,
                    _ => Cause::Scheduling,
                };
                self.stats.stalls[cause as usize] += idle;
                return cause;
            }
            return Cause::Ccd;
        } else if command == Command::Act {
            self.act_cause[bank] = match device.binding(command, bank) {
                (at, cause) if at == tick && tick > arrived => cause,
                _ => Cause::RowCycle,
            };
        }
        Cause::Scheduling
    }
}

//! Time in the banks that units have to themselves. A unit's own sequencer reads and writes its bank without the
//! pseudo-channel's buses, so what bounds it is its bank (tRC, tRAS, tRP, tRCD, tCCD_L, tRTP, tWR); activations it
//! shares with the other banks (tRRD, tFAW), and refreshes too.

use crate::dram::{Command, Config, Level};
use std::collections::VecDeque;

const N: usize = Command::COUNT;

/// Ticks between commands, from the device's constraints.
#[derive(Clone, Debug)]
pub struct Gaps {
    own: [[u64; N]; N],
    /// The same by the later command: what a bank asks of all earlier ones lies side by side.
    before: [[i64; N]; N],
    pc: [[u64; N]; N],
    group: [[u64; N]; N],
    /// At most so many ACTs of a pseudo-channel in so many ticks.
    window: Option<(usize, u64)>,
    /// Between two per-bank refreshes.
    refresh_spacing: u64,
}

impl Gaps {
    /// The gaps of a device. The occupancy of its command buses is left out: units do not use them.
    pub fn new(config: &Config) -> Gaps {
        let mut gaps = Gaps {
            own: [[0; N]; N],
            before: [[0; N]; N],
            pc: [[0; N]; N],
            group: [[0; N]; N],
            window: None,
            refresh_spacing: config.ticks(config.timing.rrefd),
        };
        let shared = |c: Command| matches!(c, Command::Act | Command::RefPb);
        for c in config.constraints.iter().filter(|c| c.level != Level::Channel && !c.sibling) {
            let Ok(gap) = u64::try_from(c.gap) else { continue };
            if c.window > 1 {
                gaps.window = Some((c.window as usize, gap));
                continue;
            }
            for p in c.preceding.iter() {
                for f in c.following.iter() {
                    let raise = |table: &mut [[u64; N]; N]| {
                        let at = &mut table[p as usize][f as usize];
                        *at = (*at).max(gap);
                    };
                    raise(&mut gaps.own);
                    if shared(p) && shared(f) {
                        match c.level {
                            Level::PseudoChannel | Level::Sid => raise(&mut gaps.pc),
                            Level::BankGroup => raise(&mut gaps.group),
                            _ => {}
                        }
                    }
                }
            }
        }
        for (before, own) in gaps.own.iter().enumerate() {
            for (after, gap) in own.iter().enumerate() {
                gaps.before[after][before] = i64::try_from(*gap).unwrap_or(i64::MAX / 4);
            }
        }
        gaps
    }

    /// Ticks from one command to another of the same bank.
    pub fn own(&self, before: Command, after: Command) -> u64 {
        self.own[before as usize][after as usize]
    }
}

/// One bank.
#[derive(Clone, Debug)]
pub struct Bank {
    /// The open row.
    pub open: Option<u32>,
    /// The last tick of each command; [`NEVER`] if there was none.
    last: [i64; N],
}

/// So long ago that nothing waits for it.
const NEVER: i64 = i64::MIN / 2;

impl Default for Bank {
    fn default() -> Bank {
        Bank { open: None, last: [NEVER; N] }
    }
}

impl Bank {
    /// The earliest tick of a command as far as the bank is concerned.
    pub fn earliest(&self, gaps: &Gaps, command: Command) -> u64 {
        let all = self.last.iter().zip(&gaps.before[command as usize]);
        all.fold(0, |at: i64, (last, gap)| at.max(last + gap)) as u64
    }

    /// The command was issued.
    pub fn issue(&mut self, command: Command, row: u32, tick: u64) {
        // Ticks of a run are far below 2^63.
        self.last[command as usize] = tick as i64;
        match command {
            Command::Act => self.open = Some(row),
            Command::PrePb | Command::PreAb => self.open = None,
            _ => {}
        }
    }
}

/// What the banks of a pseudo-channel share: a place in the row of activations and per-bank refreshes. They are granted
/// in the order in which they become ready.
#[derive(Clone, Debug)]
pub struct Shared {
    floor: u64,
    last: [Option<u64>; N],
    groups: Vec<Option<u64>>,
    acts: VecDeque<u64>,
}

impl Shared {
    /// Of a pseudo-channel with so many bank groups, after `start`.
    pub fn new(groups: usize, start: u64) -> Shared {
        Shared { floor: start, last: [None; N], groups: vec![None; groups], acts: VecDeque::new() }
    }

    /// When a command that is ready may be issued: ACT or REFpb.
    pub fn grant(&self, gaps: &Gaps, command: Command, group: usize, ready: u64) -> u64 {
        let mut at = ready.max(self.floor);
        for before in [Command::Act, Command::RefPb] {
            if let Some(t) = self.last[before as usize] {
                at = at.max(t + gaps.pc[before as usize][command as usize]);
            }
        }
        if command == Command::RefPb {
            return at.max(self.last[Command::RefPb as usize].map_or(0, |t| t + gaps.refresh_spacing));
        }
        if let Some(t) = self.groups[group] {
            at = at.max(t + gaps.group[Command::Act as usize][Command::Act as usize]);
        }
        match gaps.window {
            Some((n, gap)) if self.acts.len() >= n => at.max(self.acts[self.acts.len() - n] + gap),
            _ => at,
        }
    }

    /// The command was issued.
    pub fn issue(&mut self, gaps: &Gaps, command: Command, group: usize, tick: u64) {
        self.floor = self.floor.max(tick);
        self.last[command as usize] = Some(tick);
        if command == Command::Act {
            self.groups[group] = Some(tick);
            self.acts.push_back(tick);
            if self.acts.len() > gaps.window.map_or(0, |w| w.0) {
                self.acts.pop_front();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Against the named parameters of HBM2-2000; ACT holds its bus two ticks, so what follows it waits one more.
    #[test]
    fn gaps_of_hbm2() {
        let config = Config::preset("hbm2_2000").unwrap();
        let gaps = Gaps::new(&config);
        assert_eq!(gaps.own(Command::Rd, Command::Rd), 4);
        assert_eq!(gaps.own(Command::Act, Command::Rd), 15);
        assert_eq!(gaps.own(Command::PrePb, Command::Act), 13);
        assert_eq!(gaps.own(Command::Act, Command::Act), 48);
        assert_eq!(grants(&config), [0, 4, 8, 12, 16, 20, 24, 28], "tRRD; four of them are longer than tFAW of 15");
        let mut tight = config;
        tight.timing.faw = 30;
        tight.derive();
        assert_eq!(grants(&tight), [0, 4, 8, 12, 30, 34, 38, 42]);
    }

    /// When eight banks of as many groups may be activated that all want to be at 0.
    fn grants(config: &Config) -> Vec<u64> {
        let gaps = Gaps::new(config);
        let mut shared = Shared::new(4, 0);
        let grant = |bank: usize| {
            let at = shared.grant(&gaps, Command::Act, bank % 4, 0);
            shared.issue(&gaps, Command::Act, bank % 4, at);
            at
        };
        (0..8).map(grant).collect()
    }
}

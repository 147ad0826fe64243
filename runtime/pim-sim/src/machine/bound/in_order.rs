//! What commands in order wait for, whichever order it is.
//!
//! A command to another row waits for its PRE and ACT, which are issued when its turn comes: nothing hides them. From
//! reads to writes and back the bus turns, and a fence stands there, since the units' registers hold what goes on. A
//! unit has eight registers of a file, so of the vectors that the host writes and units use, and of the results that
//! units compute and store, there are no more between two turns. A row that changes where the direction does waits for
//! both at once; as many as can are taken to do so. Into the units' modes and out of them all banks close.

use super::{BoundBy, LowerBound, same_bank, same_pch};
use crate::dram::{Command, Config};
use crate::machine::lanes::Work;
use rustc_hash::FxHashSet;

/// Vectors of a register file.
const REGISTERS: u64 = 8;

/// Distances of commands, in ticks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gaps {
    /// PRE to ACT to RD, to WR.
    row: [u64; 2],
    /// ACT to RD, to WR.
    act: [u64; 2],
    /// RD, WR to PRE.
    pre: [u64; 2],
    /// RD to WR, WR to RD.
    turn: [u64; 2],
    /// WR to PREab, PREab to ACT.
    close: [u64; 2],
}

impl Gaps {
    pub(super) fn new(config: &Config) -> Gaps {
        let columns = [Command::Rd, Command::Wr];
        let act = columns.map(|c| same_bank(config, Command::Act, c));
        let pre = same_bank(config, Command::PrePb, Command::Act);
        Gaps {
            row: act.map(|act| pre + act),
            act,
            pre: columns.map(|c| same_bank(config, c, Command::PrePb)),
            turn: [same_pch(config, Command::Rd, Command::Wr), same_pch(config, Command::Wr, Command::Rd)],
            close: [same_bank(config, Command::Wr, Command::PreAb), same_bank(config, Command::PreAb, Command::Act)],
        }
    }

    /// What a refresh, which no fence holds, may gain by falling behind a command for whose data a fence waits.
    pub(super) fn hidden(&self, fences: bool, latency: [u64; 2]) -> u64 {
        let gained = latency.into_iter().zip(self.pre).map(|(wait, pre)| wait.saturating_sub(pre));
        if fences { gained.max().unwrap_or(0) } else { 0 }
    }

    /// The banks' last closing, in which refreshes take nothing.
    pub(super) fn last_close(&self) -> u64 {
        self.close[0]
    }
}

/// What the commands of a step were for.
#[derive(Clone, Debug, Default)]
pub(super) struct InOrder {
    /// Banks with data.
    banks: FxHashSet<u32>,
    /// Rows beside the first of each bank, by their first command: read, written.
    rows: [u64; 2],
    /// Reserved rows: those of commands to one bank and to many, and of them those in banks that have another row open.
    reserved: [u64; 3],
    /// Banks that were used since all closed.
    used: FxHashSet<u32>,
    /// Vectors that the host wrote to a file and units read, results that units stored.
    moved: [u64; 3],
    /// Registers that the host has written, those that hold results which are not stored: bits by file.
    fed: [u8; 2],
    computed: [u8; 2],
    /// All banks closed.
    closes: u64,
}

impl InOrder {
    /// A row is touched for the first time, by a command to many banks (`wide`) or to one.
    pub(super) fn row(&mut self, bank: u32, write: bool, wide: bool, reserved: bool) {
        let open = !self.used.insert(bank);
        if reserved {
            self.reserved[usize::from(wide)] += 1;
            self.reserved[2] += u64::from(open);
        } else if !self.banks.insert(bank) {
            self.rows[usize::from(write)] += 1;
        }
    }

    /// A column command was for this.
    pub(super) fn work(&mut self, work: Work) {
        match work {
            Work::Other => {}
            Work::Closes => {
                self.closes += 1;
                self.used.clear();
            }
            Work::Feeds { file, register } => {
                self.fed[file] |= 1 << register;
                self.computed[file] &= !(1 << register);
            }
            Work::Steps { reads, written } => {
                for (file, register) in reads.into_iter().flatten() {
                    let bit = 1 << register;
                    self.moved[file] += u64::from(self.fed[file] & bit != 0);
                    self.fed[file] &= !bit;
                }
                if let Some((file, register)) = written {
                    self.computed[file] |= 1 << register;
                }
            }
            Work::Stores { from } => {
                let Some((file, register)) = from else { return };
                let bit = 1 << register;
                self.moved[2] += u64::from(self.computed[file] & bit != 0);
                self.computed[file] &= !bit;
            }
        }
    }

    /// What the step takes beside the distances of its column commands. `fences`: they wait for data.
    pub(super) fn bound(
        &self,
        gaps: &Gaps,
        (fences, [narrow, column]): (bool, [u64; 2]),
        latency: [u64; 2],
    ) -> LowerBound {
        let over = |ticks: u64, under: u64| ticks.saturating_sub(under);
        // What a fence waits for behind a read, a write.
        let fence = if fences { latency } else { [1, 1] };
        let fed = self.moved[0].div_ceil(REGISTERS).max(self.moved[1].div_ceil(REGISTERS));
        let stored = self.moved[2].div_ceil(2 * REGISTERS);
        // Where the step enters the units' modes, it has written before it reads.
        let entered = u64::from(self.closes > 0);
        let turns = [fed.saturating_sub(1).max(stored), fed.max((stored + entered).saturating_sub(1))];
        let turn = [0, 1].map(|n| gaps.turn[n].max(fence[n]));
        let turning: u64 = (0..2).map(|n| turns[n] * over(turn[n], column)).sum();
        // Reads come behind writes, so that the rows that they open wait there, too.
        let mut rows = 0;
        for kind in 0..2 {
            let before = 1 - kind;
            let at_turn = over(fence[before] + gaps.row[kind], turn[before]);
            let wait = if self.banks.len() == 1 { gaps.pre[kind] } else { gaps.pre[kind].min(fence[0]).min(fence[1]) };
            let between = over(wait + gaps.row[kind], column);
            let shared = self.rows[kind].min(turns[before]);
            rows += shared * at_turn.min(between) + (self.rows[kind] - shared) * between;
        }
        let [alone, together, reopened] = self.reserved;
        rows += alone * over(gaps.act[1], narrow) + together * over(gaps.act[1], column);
        rows += reopened * (gaps.row[1] - gaps.act[1]);
        // In between the units have stopped, for which a fence waits.
        let stop = if self.closes > 1 && self.moved[2] > 0 { fence[1] } else { 0 };
        let close = match self.closes {
            0 => 0,
            n => (n - 1) * (gaps.close[0] + gaps.close[1]) + gaps.close[0] + stop,
        };
        LowerBound::default().with(BoundBy::Rows, rows).with(BoundBy::Turns, turning).with(BoundBy::Modes, close)
    }
}

//! What commands in order wait for, whichever order it is.
//!
//! A command to another row waits for its PRE and ACT, which are issued when its turn comes: nothing hides them. From
//! reads to writes and back the bus turns, and a fence stands there, since the units' registers hold what goes on. A
//! unit has eight registers of a file, so of the vectors and of the elements as scalars that the host writes and units
//! use, and of the results that units compute and store, there are no more between two turns. A row that changes where
//! the direction does waits for both at once; as many as can are taken to do so. Into the units' modes and out of them
//! all banks close, so that behind that the first row of a bank waits, too.
//!
//! Products take vectors that the host has written. If each such vector is used as often as a file has registers, as
//! many sums grow at a time, and two vectors would need more than both files have. So a burst is read once until the
//! sums are stored, and whoever reads more bursts than a row has opens another one: of so many products not the rows
//! count that there are, but those of the bursts that are read, less one for every eight results.

use super::{BoundBy, LowerBound, same_bank, same_pch};
use crate::dram::{Command, Config};
use crate::machine::lanes::Work;
use rustc_hash::FxHashSet;

/// Vectors of a register file, scalars of one.
const REGISTERS: u64 = 8;

/// Files of vectors, and all with those of scalars.
const VECTORS: usize = 2;
const FILES: usize = 4;

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

    /// Ticks from PRE to ACT.
    pub(super) fn precharge(&self) -> u64 {
        self.row[0] - self.act[0]
    }

    /// What the bus takes to turn at least, beside the distance of two commands.
    pub(super) fn least_turn(&self, column: u64) -> u64 {
        self.turn[0].min(self.turn[1]).saturating_sub(column)
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
    /// Vectors, and elements as scalars, that the host wrote to a file and units read; results that units stored.
    moved: [u64; FILES],
    stored: u64,
    /// Registers that the host has written, those that hold results which are not stored: bits by file.
    fed: [u8; FILES],
    computed: [u8; VECTORS],
    /// How often the vectors that the host wrote were used, by file and register; 0 where the units wrote another one.
    uses: [[u64; REGISTERS as usize]; VECTORS],
    /// Products of such vectors that were used as often as a file has registers.
    products: u64,
    /// Data rows that are the first of their bank since all closed, by their first command: those of banks that had
    /// nothing open, and those of banks with a reserved row.
    first: [[u64; 2]; 2],
    /// All banks closed.
    closes: u64,
}

/// What is known of the device and the step.
#[derive(Clone, Copy, Debug)]
pub(super) struct Device {
    /// Fences wait for data.
    pub fences: bool,
    /// Ticks from one column command to the next, of one bank and of many.
    pub column: [u64; 2],
    /// Ticks from a read, a write to the end of its data.
    pub latency: [u64; 2],
    /// Bursts of a row.
    pub bursts: u64,
}

/// Rows that wait alike.
#[derive(Clone, Copy, Debug)]
struct Opened {
    count: u64,
    /// Ticks of one, beside another command and where the bus turns.
    between: u64,
    turning: u64,
}

/// Ticks of these rows, of which so many may open where the bus turns: those that gain most.
fn opened(mut rows: [Opened; 3], mut turns: u64) -> u64 {
    rows.sort_by_key(|row| std::cmp::Reverse(row.between.saturating_sub(row.turning)));
    let mut ticks = 0;
    for Opened { count, between, turning } in rows {
        let shared = if turning < between { count.min(turns) } else { 0 };
        turns -= shared;
        ticks += shared * turning + (count - shared) * between;
    }
    ticks
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
        } else if self.closes > 0 {
            self.first[usize::from(open)][usize::from(write)] += 1;
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
            Work::Feeds { file, .. } if file >= VECTORS => {}
            Work::Feeds { file, register } => {
                self.fed[file] |= 1 << register;
                self.computed[file] &= !(1 << register);
                self.uses[file][usize::from(register)] = 1;
            }
            Work::Scalars { elements } => {
                let fed = if elements { u8::MAX } else { 0 };
                self.fed[VECTORS..].fill(fed);
            }
            Work::Steps { reads, written } => {
                for (file, register) in reads.into_iter().flatten() {
                    if file < VECTORS {
                        self.product(file, register, written);
                    }
                    let bit = 1 << register;
                    self.moved[file] += u64::from(self.fed[file] & bit != 0);
                    self.fed[file] &= !bit;
                }
                if let Some((file, register)) = written.filter(|(file, _)| *file < VECTORS) {
                    self.computed[file] |= 1 << register;
                    self.uses[file][usize::from(register)] = 0;
                }
            }
            Work::Stores { from } => {
                let Some((file, register)) = from.filter(|(file, _)| *file < VECTORS) else { return };
                let bit = 1 << register;
                self.stored += u64::from(self.computed[file] & bit != 0);
                self.computed[file] &= !bit;
            }
        }
    }

    /// A step used a register, to go on with a sum in another one.
    fn product(&mut self, file: usize, register: u8, written: Option<(usize, u8)>) {
        let uses = &mut self.uses[file][usize::from(register)];
        if *uses == 0 || written.is_none_or(|to| to == (file, register)) {
            return;
        }
        // The first use makes two of what the host's writing made one.
        *uses += 1;
        self.products += match *uses - 1 {
            n if n < REGISTERS => 0,
            REGISTERS => REGISTERS,
            _ => 1,
        };
    }

    /// What the step takes beside the distances of its column commands.
    pub(super) fn bound(&self, gaps: &Gaps, device: Device) -> LowerBound {
        let Device { fences, column: [narrow, column], latency, bursts } = device;
        let over = |ticks: u64, under: u64| ticks.saturating_sub(under);
        // What a fence waits for behind a read, a write.
        let fence = if fences { latency } else { [1, 1] };
        let fed = self.moved.into_iter().max().unwrap_or(0).div_ceil(REGISTERS);
        let stored = self.stored.div_ceil(2 * REGISTERS);
        // Where the step enters the units' modes, it has written before it reads.
        let entered = u64::from(self.closes > 0);
        let turns = [fed.saturating_sub(1).max(stored), fed.max((stored + entered).saturating_sub(1))];
        let turn = [0, 1].map(|n| gaps.turn[n].max(fence[n]));
        let turning: u64 = (0..2).map(|n| turns[n] * over(turn[n], column)).sum();
        // Reads come behind writes, so that the rows that they open wait there, too.
        let mut rows = 0;
        // Rows beside the first of all that are opened for products.
        let read = (self.products.div_ceil(bursts)).saturating_sub(1 + self.stored.div_ceil(REGISTERS));
        for kind in 0..2 {
            let before = 1 - kind;
            let at_turn = over(fence[before] + gaps.row[kind], turn[before]);
            let wait = if self.banks.len() == 1 { gaps.pre[kind] } else { gaps.pre[kind].min(fence[0]).min(fence[1]) };
            let first = |gap: u64| [over(gap, column), over(fence[before] + gap, turn[before])];
            let [closed, replaced] = [first(gaps.act[kind]), first(gaps.row[kind])];
            let again = if kind == 0 { read } else { 0 };
            let all = [
                Opened {
                    count: self.rows[kind].max(again),
                    between: over(wait + gaps.row[kind], column),
                    turning: at_turn,
                },
                Opened { count: self.first[0][kind], between: closed[0], turning: closed[1] },
                Opened { count: self.first[1][kind], between: replaced[0], turning: replaced[1] },
            ];
            rows += opened(all, turns[before]);
        }
        let [alone, together, reopened] = self.reserved;
        rows += alone * over(gaps.act[1], narrow) + together * over(gaps.act[1], column);
        rows += reopened * (gaps.row[1] - gaps.act[1]);
        // In between the units have stopped, for which a fence waits.
        let stop = if self.closes > 1 && self.stored > 0 { fence[1] } else { 0 };
        let close = match self.closes {
            0 => 0,
            n => (n - 1) * (gaps.close[0] + gaps.close[1]) + gaps.close[0] + stop,
        };
        LowerBound::default().with(BoundBy::Rows, rows).with(BoundBy::Turns, turning).with(BoundBy::Modes, close)
    }
}

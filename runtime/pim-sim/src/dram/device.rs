//! The timing state of one channel: for every command and every node of the hierarchy the earliest legal tick, and the
//! open row of every bank.
//!
//! Issuing a command raises the earliest ticks of what must wait for it, so asking is a maximum of one number a level.
//! Earliest ticks never fall, on which the schedulers rely.

use super::command::Command;
use super::config::Config;
use super::rules::{Constraint, Level};

/// The value of [`Device::open_row`] for a closed bank; rows are below 2^24.
pub const CLOSED: u32 = u32::MAX;

/// Why a command could not issue earlier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Cause {
    /// It came when nothing was waiting: the requests are the bound.
    QueueEmpty = 0,
    /// Data of the same direction: tCCD, or the burst itself.
    Ccd = 1,
    /// The data bus turned around: tRTW, tWTR.
    Turnaround = 2,
    /// Opening and closing a row: tRCD, tRP, tRAS, tRC, tRTP, tWR.
    RowCycle = 3,
    /// ACT to ACT of other banks: tRRD.
    Rrd = 4,
    /// The window of four ACTs: tFAW.
    Faw = 5,
    /// A refresh: tRFC, tRREFD, and waiting for one.
    Refresh = 6,
    /// The command buses, clock edges, and the order of the scheduler.
    Scheduling = 7,
}

impl Cause {
    /// How many there are.
    pub const COUNT: usize = 8;
    /// All of them, in the order of their numbers.
    pub const ALL: [Cause; Cause::COUNT] = [
        Cause::QueueEmpty,
        Cause::Ccd,
        Cause::Turnaround,
        Cause::RowCycle,
        Cause::Rrd,
        Cause::Faw,
        Cause::Refresh,
        Cause::Scheduling,
    ];

    /// A short name for reports.
    pub const fn name(self) -> &'static str {
        match self {
            Cause::QueueEmpty => "queue empty",
            Cause::Ccd => "tCCD",
            Cause::Turnaround => "turnaround",
            Cause::RowCycle => "tRCD/tRP",
            Cause::Rrd => "tRRD",
            Cause::Faw => "tFAW",
            Cause::Refresh => "refresh",
            Cause::Scheduling => "scheduling",
        }
    }
}

fn cause_of(constraint: &Constraint, preceding: Command, following: Command) -> Cause {
    use Command::{Act, RefAb, RefPb, RfmAb, RfmPb};
    if constraint.level == Level::Channel {
        Cause::Scheduling
    } else if matches!(preceding, RefAb | RefPb | RfmAb | RfmPb) || matches!(following, RefAb | RefPb | RfmAb | RfmPb) {
        Cause::Refresh
    } else if preceding.is_column() && following.is_column() {
        if preceding.is_read() == following.is_read() { Cause::Ccd } else { Cause::Turnaround }
    } else if preceding == Act && following == Act && constraint.level != Level::Bank {
        if constraint.window > 1 { Cause::Faw } else { Cause::Rrd }
    } else {
        Cause::RowCycle
    }
}

/// One level's earliest ticks, by command and then node: a scan over banks asks for one command.
#[derive(Clone, Debug)]
struct Earliest {
    nodes: usize,
    at: Vec<u64>,
    cause: Vec<Cause>,
}

impl Earliest {
    fn new(nodes: usize) -> Earliest {
        let len = nodes * Command::COUNT;
        Earliest { nodes, at: vec![0; len], cause: vec![Cause::QueueEmpty; len] }
    }

    #[inline]
    fn get(&self, command: Command, node: usize) -> u64 {
        self.at[command as usize * self.nodes + node]
    }

    #[inline]
    fn raise(&mut self, command: Command, node: usize, at: u64, cause: Cause) {
        let i = command as usize * self.nodes + node;
        if at > self.at[i] {
            self.at[i] = at;
            self.cause[i] = cause;
        }
    }
}

/// A constraint, seen from one preceding command: who waits and how long.
#[derive(Clone, Copy, Debug)]
struct Update {
    level: Level,
    following: Command,
    gap: u64,
    cause: Cause,
    sibling: bool,
}

/// A constraint to the n-th previous command: the ticks of the last n at each node of its level.
#[derive(Clone, Debug)]
struct Window {
    level: Level,
    length: usize,
    following: Vec<(Command, Cause)>,
    preceding: super::command::CommandSet,
    gap: u64,
    sibling: bool,
    /// `length` ticks a node, oldest at `next`; u64::MAX is none yet.
    ring: Vec<u64>,
    next: Vec<usize>,
}

/// The state of one channel.
#[derive(Clone, Debug)]
pub struct Device {
    channel: Earliest,
    pc: Earliest,
    sid: Earliest,
    bankgroup: Earliest,
    bank: Earliest,
    /// Level sizes per parent: pseudo-channels, SIDs a pseudo-channel, groups a SID, banks a group.
    counts: [usize; 4],
    uses_sid: bool,
    open_row: Vec<u32>,
    /// Banks open in each pseudo-channel.
    open: Vec<u32>,
    /// Of each bank: its pseudo-channel, SID and bank group.
    parents: Vec<[u16; 3]>,
    updates: [Vec<Update>; Command::COUNT],
    windows: Vec<Window>,
    /// Of each pseudo-channel, the earliest next per-bank refresh after the last one: tRREFD. HBM2's table has no such
    /// rule, its devices have.
    next_refresh: Vec<u64>,
    refresh_spacing: u64,
    /// Whether a command starts any window, so that the others skip them.
    windowed: [bool; Command::COUNT],
    /// Ticks by which an ACT is longer than a refresh command.
    act_tail: u64,
}

impl Device {
    /// A channel of the configuration, all banks closed and nothing issued.
    pub fn new(config: &Config) -> Device {
        let org = &config.org;
        let counts = [org.pseudochannel, org.sid, org.bankgroup, org.bank].map(|c| c as usize);
        let pcs = counts[0];
        let sids = pcs * counts[1];
        let groups = sids * counts[2];
        let banks = groups * counts[3];
        let mut updates: [Vec<Update>; Command::COUNT] = Default::default();
        let mut windows = Vec::new();
        let mut windowed = [false; Command::COUNT];
        let nodes = |level: Level| match level {
            Level::Channel => 1,
            Level::PseudoChannel => pcs,
            Level::Sid => sids,
            Level::BankGroup => groups,
            Level::Bank => banks,
        };
        let mut uses_sid = false;
        for c in &config.constraints {
            // What is not positive forbids nothing: a later command is never earlier.
            let Ok(gap) = u64::try_from(c.gap) else { continue };
            if gap == 0 {
                continue;
            }
            uses_sid |= c.level == Level::Sid;
            if c.window > 1 {
                let following =
                    c.following.iter().map(|f| (f, cause_of(c, c.preceding.iter().next().unwrap_or(f), f))).collect();
                c.preceding.iter().for_each(|p| windowed[p as usize] = true);
                let length = c.window as usize;
                windows.push(Window {
                    level: c.level,
                    length,
                    following,
                    preceding: c.preceding,
                    gap,
                    sibling: c.sibling,
                    ring: vec![u64::MAX; nodes(c.level) * length],
                    next: vec![0; nodes(c.level)],
                });
                continue;
            }
            for p in c.preceding.iter() {
                for f in c.following.iter() {
                    let update =
                        Update { level: c.level, following: f, gap, cause: cause_of(c, p, f), sibling: c.sibling };
                    let list = &mut updates[p as usize];
                    let same =
                        list.iter_mut().find(|u| u.level == c.level && u.following == f && u.sibling == c.sibling);
                    match same {
                        // Two rules for one pair: the longer one implies the other.
                        Some(u) if u.gap >= gap => {}
                        Some(u) => *u = update,
                        None => list.push(update),
                    }
                }
            }
        }
        let parents = (0..banks)
            .map(|b| {
                let group = b / counts[3];
                let sid = group / counts[2];
                // Bounded by 16 pseudo-channels of 1024 banks.
                [(sid / counts[1]) as u16, sid as u16, group as u16]
            })
            .collect();
        Device {
            channel: Earliest::new(1),
            pc: Earliest::new(pcs),
            sid: Earliest::new(sids),
            bankgroup: Earliest::new(groups),
            bank: Earliest::new(banks),
            counts,
            uses_sid,
            open_row: vec![CLOSED; banks],
            open: vec![0; pcs],
            parents,
            updates,
            windows,
            next_refresh: vec![0; pcs],
            refresh_spacing: config.ticks(config.timing.rrefd),
            windowed,
            act_tail: config.command_ticks[Command::Act as usize]
                .saturating_sub(config.command_ticks[Command::RefPb as usize])
                .into(),
        }
    }

    /// Ticks between per-bank refreshes of a pseudo-channel.
    pub(super) fn refresh_spacing(&self) -> u64 {
        self.refresh_spacing
    }

    /// Banks of the channel, over all pseudo-channels.
    pub fn banks(&self) -> usize {
        self.open_row.len()
    }

    /// Banks of a pseudo-channel.
    pub fn banks_per_pc(&self) -> usize {
        self.counts[1] * self.counts[2] * self.counts[3]
    }

    /// The pseudo-channel of a bank.
    #[inline]
    pub fn pc_of(&self, bank: usize) -> usize {
        usize::from(self.parents[bank][0])
    }

    /// The open row of a bank, or [`CLOSED`].
    #[inline]
    pub fn open_row(&self, bank: usize) -> u32 {
        self.open_row[bank]
    }

    /// Whether a bank of the pseudo-channel is open.
    #[inline]
    pub fn any_open(&self, pc: usize) -> bool {
        self.open[pc] != 0
    }

    /// The earliest legal tick of a command to a bank by the timing rules (the bank's state is the caller's business).
    /// All-bank commands take any bank of the pseudo-channel.
    #[inline(always)]
    pub fn earliest(&self, command: Command, bank: usize) -> u64 {
        let [pc, sid, group] = self.parents[bank];
        let mut at = self.channel.at[command as usize].max(self.pc.get(command, usize::from(pc)));
        if !command.is_all_bank() {
            at = at.max(self.bankgroup.get(command, usize::from(group))).max(self.bank.get(command, bank));
        }
        if self.uses_sid {
            at = at.max(self.sid.get(command, usize::from(sid)));
        }
        at
    }

    /// A tick before which the command is legal at no bank of the pseudo-channels that count more than 0.
    #[inline]
    pub(super) fn soonest(&self, command: Command, counts: &[u32]) -> u64 {
        let first = command as usize * self.pc.nodes;
        let levels = self.pc.at[first..first + self.pc.nodes].iter().zip(counts);
        let of_pcs = levels.filter(|(_, count)| **count != 0).map(|(at, _)| *at).min().unwrap_or(0);
        of_pcs.max(self.channel.at[command as usize])
    }

    /// The earliest tick at which all banks that a refresh takes are through with what was before it. The table of
    /// rules has no entry for some pairs (RDA to REFpb, REFpb to REFab, HBM2's REFpb to REFpb); a bank that may not
    /// open may not refresh, and refreshes of a pseudo-channel's banks are tRREFD apart.
    pub fn earliest_refresh(&self, command: Command, bank: usize) -> u64 {
        let own = self.earliest(command, bank);
        // An ACT takes effect in its last tick, so it may begin earlier than a refresh.
        let idle = |b: usize| self.bank.get(Command::Act, b) + self.act_tail;
        if !command.is_all_bank() {
            let spaced = self.next_refresh[self.pc_of(bank)];
            return own.max(idle(bank)).max(self.pc_refresh_end(bank)).max(spaced);
        }
        let first = self.pc_of(bank) * self.banks_per_pc();
        (first..first + self.banks_per_pc()).map(idle).fold(own.max(self.pc_refresh_end(bank)), u64::max)
    }

    /// When the pseudo-channel's last all-bank refresh ends, as seen by PREab (which waits for it alone and in full).
    fn pc_refresh_end(&self, bank: usize) -> u64 {
        let i = Command::Act as usize * self.pc.nodes + self.pc_of(bank);
        if self.pc.cause[i] == Cause::Refresh { self.pc.at[i] + self.act_tail } else { 0 }
    }

    /// Why [`Device::earliest`] is what it is: the cause of the latest of its numbers, and that number.
    pub fn binding(&self, command: Command, bank: usize) -> (u64, Cause) {
        let [pc, sid, group] = self.parents[bank];
        let mut best = (0, Cause::QueueEmpty);
        let mut consider = |level: &Earliest, node: usize| {
            let i = command as usize * level.nodes + node;
            if level.at[i] > best.0 {
                best = (level.at[i], level.cause[i]);
            }
        };
        consider(&self.channel, 0);
        consider(&self.pc, usize::from(pc));
        consider(&self.sid, usize::from(sid));
        if !command.is_all_bank() {
            consider(&self.bankgroup, usize::from(group));
            consider(&self.bank, bank);
        }
        best
    }

    /// Issues a command: raises what waits for it and changes the banks' states. Whether it was legal is not asked.
    #[inline]
    pub fn issue(&mut self, command: Command, bank: usize, row: u32, tick: u64) {
        let [pc, sid, group] = self.parents[bank].map(usize::from);
        let all = command.is_all_bank();
        let count = self.updates[command as usize].len();
        for i in 0..count {
            let u = self.updates[command as usize][i];
            let at = tick + u.gap;
            if u.sibling || (all && matches!(u.level, Level::Sid | Level::BankGroup | Level::Bank)) {
                self.raise_widely(u.level, u.sibling, u.following, bank, all, at, u.cause);
                continue;
            }
            match u.level {
                Level::Channel => self.channel.raise(u.following, 0, at, u.cause),
                Level::PseudoChannel => self.pc.raise(u.following, pc, at, u.cause),
                Level::Sid => self.sid.raise(u.following, sid, at, u.cause),
                Level::BankGroup => self.bankgroup.raise(u.following, group, at, u.cause),
                Level::Bank => self.bank.raise(u.following, bank, at, u.cause),
            }
        }
        if self.windowed[command as usize] {
            self.issue_windows(command, bank, tick);
        }
        match command {
            Command::Act => {
                if self.open_row[bank] == CLOSED {
                    self.open[pc] += 1;
                }
                self.open_row[bank] = row;
            }
            Command::PrePb | Command::RdA | Command::WrA => self.close(bank),
            Command::RefPb | Command::RfmPb => self.next_refresh[pc] = tick + self.refresh_spacing,
            Command::PreAb => {
                let per_pc = self.banks_per_pc();
                self.open_row[pc * per_pc..(pc + 1) * per_pc].fill(CLOSED);
                self.open[pc] = 0;
            }
            _ => {}
        }
    }

    fn close(&mut self, bank: usize) {
        if self.open_row[bank] != CLOSED {
            self.open[usize::from(self.parents[bank][0])] -= 1;
            self.open_row[bank] = CLOSED;
        }
    }

    /// The nodes of a level in which a bank lies, or for a sibling rule the other ones under the same parent; for an
    /// all-bank command every node of the pseudo-channel.
    fn nodes(&self, level: Level, sibling: bool, bank: usize, all: bool) -> (std::ops::Range<usize>, Option<usize>) {
        let [pc, sid, group] = self.parents[bank].map(usize::from);
        let (own, under_pc, parent_size) = match level {
            Level::Channel => (0, 1, 1),
            Level::PseudoChannel => (pc, 1, self.counts[0]),
            Level::Sid => (sid, self.counts[1], self.counts[1]),
            Level::BankGroup => (group, self.counts[1] * self.counts[2], self.counts[2]),
            Level::Bank => (bank, self.banks_per_pc(), self.counts[3]),
        };
        if sibling {
            let first = own / parent_size * parent_size;
            (first..first + parent_size, Some(own))
        } else if all && matches!(level, Level::Sid | Level::BankGroup | Level::Bank) {
            (pc * under_pc..(pc + 1) * under_pc, None)
        } else {
            (own..own + 1, None)
        }
    }

    #[cold]
    #[allow(clippy::too_many_arguments)]
    fn raise_widely(
        &mut self,
        level: Level,
        sibling: bool,
        following: Command,
        bank: usize,
        all: bool,
        at: u64,
        cause: Cause,
    ) {
        let (nodes, except) = self.nodes(level, sibling, bank, all);
        let earliest = match level {
            Level::Channel => &mut self.channel,
            Level::PseudoChannel => &mut self.pc,
            Level::Sid => &mut self.sid,
            Level::BankGroup => &mut self.bankgroup,
            Level::Bank => &mut self.bank,
        };
        for node in nodes.filter(|n| Some(*n) != except) {
            earliest.raise(following, node, at, cause);
        }
    }

    fn issue_windows(&mut self, command: Command, bank: usize, tick: u64) {
        for w in 0..self.windows.len() {
            if !self.windows[w].preceding.contains(command) {
                continue;
            }
            let (level, sibling) = (self.windows[w].level, self.windows[w].sibling);
            let (own, _) = self.nodes(level, false, bank, command.is_all_bank());
            for node in own {
                let window = &mut self.windows[w];
                let at = window.next[node];
                window.ring[node * window.length + at] = tick;
                window.next[node] = (at + 1) % window.length;
                let oldest = window.ring[node * window.length + window.next[node]];
                if oldest == u64::MAX {
                    continue;
                }
                let until = oldest + window.gap;
                for i in 0..self.windows[w].following.len() {
                    let (following, cause) = self.windows[w].following[i];
                    if sibling {
                        self.raise_widely(level, true, following, bank, false, until, cause);
                    } else {
                        let earliest = match level {
                            Level::Channel => &mut self.channel,
                            Level::PseudoChannel => &mut self.pc,
                            Level::Sid => &mut self.sid,
                            Level::BankGroup => &mut self.bankgroup,
                            Level::Bank => &mut self.bank,
                        };
                        earliest.raise(following, node, until, cause);
                    }
                }
            }
        }
    }
}

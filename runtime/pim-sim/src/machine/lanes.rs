//! Column commands in order, one stream of them for each pseudo-channel of a channel.
//!
//! A [`CommandSource`] says what its pseudo-channel wants next. The engine opens and closes rows for it, and issues
//! each command at the earliest tick at which the device and the buses allow it; of several pseudo-channels the one
//! that can go first goes first. Refreshes that are due go before everything else.

use super::account::{Bucket, ColumnEvent};
use super::bound::{LowerBound, StepSpan};
use super::log::{Bytes, Log, Slice};
use super::memory::{ChannelMemory, Memory, Written};
use super::{FULL, Fail, MachineStop};
use crate::dram::{Address, Command, Config, Controller, Issued, Refresh, Session};
use ptoc_pim_stream::stream::SourceLine;
use std::sync::{Mutex, PoisonError};

/// What a pseudo-channel wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Want {
    /// A column command.
    Column {
        /// Bank group and bank.
        bank: [u16; 2],
        /// Row.
        row: u32,
        /// Column.
        col: u32,
        /// It writes.
        write: bool,
        /// Banks that follow it: 1, or all of a parity, or all.
        banks: u32,
    },
    /// A row open.
    Open {
        /// Bank group and bank.
        bank: [u16; 2],
        /// Row.
        row: u32,
        /// Banks that follow.
        banks: u32,
    },
    /// A command to stores of the units, which no bank takes.
    Apart(Apart),
    /// All banks closed.
    Close,
    /// Everything before it done.
    Fence,
    /// Nothing more.
    End,
}

/// A command to stores of the units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Apart {
    /// The host writes what steps at a column read.
    Operand {
        /// Which.
        col: u32,
    },
    /// The host writes what steps add to.
    Sums,
    /// The units work on their sums.
    Step,
    /// The host reads the sums.
    Read,
}

impl Apart {
    /// The place of its kind in [`Lane::apart_ready`].
    fn kind(self) -> usize {
        match self {
            Apart::Operand { .. } => 0,
            Apart::Sums => 1,
            Apart::Step => 2,
            Apart::Read => 3,
        }
    }
}

/// What a column command was for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effect {
    /// What it is charged as.
    pub bucket: Bucket,
    /// The line.
    pub place: SourceLine,
    /// Its data cross the interface.
    pub host: bool,
    /// What it does to units.
    pub work: Work,
}

/// What a column command does to the units of HBM-PIM, for [`super::bound`]. A register is its file (GRF_A, GRF_B,
/// SRF_M, SRF_A) and its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Nothing of account.
    Other,
    /// All banks close behind it.
    Closes,
    /// A register has a value without a read.
    Feeds {
        /// Of which file.
        file: usize,
        /// Which.
        register: u8,
    },
    /// The scalars have values.
    Scalars {
        /// Elements of an array, and not one number for all.
        elements: bool,
    },
    /// A read steps the units.
    Steps {
        /// Registers that they use.
        reads: [Option<(usize, u8)>; 3],
        /// The one that they write.
        written: Option<(usize, u8)>,
    },
    /// A register goes to a bank.
    Stores {
        /// The register; none where it is something else.
        from: Option<(usize, u8)>,
    },
}

/// The commands of one pseudo-channel.
pub trait CommandSource {
    /// The line that it is wanted for.
    fn place(&self) -> SourceLine;

    /// What is wanted next; the same until it is [`CommandSource::done`].
    fn want(&self) -> Want;

    /// The want is fulfilled, a column command at its tick.
    fn done(&mut self, memory: &mut ChannelMemory<'_>, log: &mut Log) -> Result<Effect, MachineStop>;
}

/// How units are commanded.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// Activations that a command for many banks counts.
    pub act_weight: u32,
    /// A fence waits for data, not only for issue.
    pub fence_data: bool,
    /// Rows are opened when their commands come, so that what each waits for adds up.
    pub waits: bool,
    /// Clocks from a step to its sum, for [`Apart`].
    pub latency: u32,
}

/// A pseudo-channel at work.
struct Lane<'s> {
    pc: usize,
    source: &'s mut (dyn CommandSource + 's),
    /// Nothing before this tick: the start, or the last fence.
    from: u64,
    fence: u64,
    last_issue: u64,
    data_end: u64,
    /// Commands for many banks keep tCCD_L, and activations their weight.
    column_ready: u64,
    act_ready: u64,
    /// The weight held the last ACT.
    weighed: bool,
    /// When [`Apart`] commands, in their order, are free; and steps, of the sums and of what a column has.
    apart_ready: [u64; 4],
    sums_ready: u64,
    operands: Vec<u64>,
    /// The bank that closes next, where all are to close.
    closes: usize,
    /// The want has been counted as hit, miss or conflict.
    counted: bool,
}

/// The memory and its past: what every way of using it needs.
pub struct Dram {
    /// The device.
    pub config: Config,
    /// Who refreshes, and how the host is served.
    pub controller: Controller,
    /// The state of each channel.
    pub sessions: Vec<Session>,
    /// What the banks hold.
    pub memory: Memory,
    /// What happened, by channel.
    pub logs: Vec<Log>,
    /// Channels that work at once, at most.
    pub threads: usize,
}

impl Lane<'_> {
    /// When what a step at this column needs has been written apart.
    fn operand(&self, col: u32) -> u64 {
        self.operands.get(col as usize).copied().unwrap_or(0).max(self.sums_ready)
    }

    /// A column's operand is there at this tick.
    fn wrote(&mut self, col: usize, tick: u64) {
        if self.operands.len() <= col {
            self.operands.resize(col + 1, 0);
        }
        self.operands[col] = tick;
    }

    /// A step's sum is there at this tick.
    fn summed(&mut self, tick: u64) {
        let [_, sums, steps, read] = &mut self.apart_ready;
        [sums, steps, read].into_iter().for_each(|ready| *ready = (*ready).max(tick));
    }
}

impl Dram {
    /// A step of this kind begins.
    pub fn begin(&mut self, kind: &'static str) {
        for log in &mut self.logs {
            log.account.begin(kind);
            log.bounds.begin(kind != "driver execute");
        }
    }

    /// It is over; what it would have taken at least belongs to its kind.
    pub fn end(&mut self, start: u64, end: u64, place: SourceLine) {
        self.logs.iter_mut().for_each(|l| l.account.end(start, end, place));
        let bounds = self.logs.iter_mut().zip(&self.sessions).map(|(log, session)| {
            let latency = [Command::Rd, Command::Wr].map(|c| session.data_end(c, 0));
            log.bounds.take(StepSpan { start, due: session.refresh_due(), latency })
        });
        let most = bounds.max_by_key(LowerBound::ticks).unwrap_or_default();
        // The first account has what is the device's.
        self.logs[0].account.bound(&most);
    }

    /// Bytes that the host moves, whatever the channel.
    pub fn bytes(&mut self) -> &mut Bytes {
        &mut self.logs[0].bytes
    }

    /// Lets the channels with these numbers, which ascend, work side by side from `start` on, each with what comes with
    /// its number; `commands` is roughly how many they issue. Channels share nothing, so the results are those of one
    /// after the other, and of several failures the first channel's counts.
    pub fn each<D: Send, T: Send>(
        &mut self,
        own: impl IntoIterator<Item = (usize, D)>,
        (start, commands): (u64, usize),
        work: impl Fn(&mut Channel<'_>, D) -> Result<T, MachineStop> + Sync,
    ) -> Result<Vec<T>, MachineStop> {
        let Dram { config, controller, sessions, memory, logs, threads } = self;
        let (before, mut own) = (&*memory, own.into_iter().peekable());
        let channels = sessions.iter_mut().zip(logs.iter_mut()).enumerate();
        let jobs: Vec<(Channel<'_>, D)> = channels
            .filter_map(|(number, (session, log))| {
                let (_, data) = own.next_if(|(n, _)| *n == number)?;
                let memory = ChannelMemory::new(before);
                Some((Channel { config, controller, number, session, memory, log }, data))
            })
            .collect();
        let one = |(mut channel, data): (Channel<'_>, D)| -> (Result<T, MachineStop>, Written) {
            let done = channel.catch_up(start).and_then(|()| {
                channel.ready(start);
                work(&mut channel, data)
            });
            (done, channel.memory.written())
        };
        let threads = if commands < FEW { 1 } else { *threads };
        let done = side_by_side(threads, jobs, one);
        let mut out = Vec::with_capacity(done.len());
        for (result, written) in done {
            out.push(result?);
            memory.take(written).map_err(|_| MachineStop::new(Fail::Size, FULL.into()))?;
        }
        Ok(out)
    }
}

/// Commands for which threads are not worth their start.
const FEW: usize = 1 << 12;

/// The results of jobs in their order, on up to so many threads.
fn side_by_side<J: Send, R: Send>(threads: usize, jobs: Vec<J>, work: impl Fn(J) -> R + Sync) -> Vec<R> {
    let threads = threads.min(jobs.len());
    if threads < 2 {
        return jobs.into_iter().map(work).collect();
    }
    let queue = Mutex::new(jobs.into_iter().enumerate());
    let worker = || {
        let mut done = Vec::new();
        loop {
            let next = queue.lock().unwrap_or_else(PoisonError::into_inner).next();
            let Some((n, job)) = next else { return done };
            done.push((n, work(job)));
        }
    };
    let mut all: Vec<(usize, R)> = std::thread::scope(|scope| {
        let handles: Vec<_> = (0..threads).map(|_| scope.spawn(worker)).collect();
        let joined = handles.into_iter().map(|h| h.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        joined.flatten().collect()
    });
    all.sort_by_key(|(n, _)| *n);
    all.into_iter().map(|(_, result)| result).collect()
}

/// A channel and what its commands are noted in.
pub struct Channel<'c> {
    /// The device.
    pub config: &'c Config,
    /// Who refreshes.
    pub controller: &'c Controller,
    /// The channel's number.
    pub number: usize,
    /// Its state.
    pub session: &'c mut Session,
    /// The banks.
    pub memory: ChannelMemory<'c>,
    /// The log.
    pub log: &'c mut Log,
}

impl Channel<'_> {
    /// The refreshes that the channel owes when it begins to work after having nothing to do.
    fn catch_up(&mut self, until: u64) -> Result<(), MachineStop> {
        let log = &mut *self.log;
        self.session
            .idle(self.config, self.controller, until, |i| log.issued(&i, 1, false, SourceLine::default()))
            .map_err(|e| MachineStop::new(Fail::Time, e.to_string()))
    }

    /// Tells the bound when each bank may open a row, by what the steps before have left.
    fn ready(&mut self, start: u64) {
        let banks = self.config.org.banks_per_pc() as usize;
        let (pre, session) = (self.log.bounds.precharge(), &*self.session);
        let act = |bank| match session.open_row(bank) {
            None => session.earliest(Command::Act, bank, start),
            Some(_) => session.earliest(Command::PrePb, bank, start) + pre,
        };
        for pc in 0..self.config.org.pseudochannel as usize {
            let banks = pc * banks..(pc + 1) * banks;
            // Where banks are refreshed one by one, they are closed one by one.
            let open = banks.clone().filter(|bank| session.open_row(*bank).is_some());
            let together = open.map(act).max().filter(|_| self.controller.refresh != Refresh::PerBank);
            let closed = together.unwrap_or(start).saturating_sub(start);
            let ticks = banks.map(|bank| act(bank).saturating_sub(start));
            self.log.bounds.ready(pc, ticks, closed, session.refresh_due());
        }
    }

    /// Runs the sources of some pseudo-channels from `start` on; returns the first tick after all data.
    pub fn run<'a>(
        &mut self,
        rules: Rules,
        start: u64,
        sources: impl Iterator<Item = (usize, &'a mut (dyn CommandSource + 'a))>,
    ) -> Result<u64, MachineStop> {
        if rules.waits {
            self.log.bounds.in_order(&rules);
        }
        // Commands of a channel are issued one after the other: what is chosen now is not before what was chosen.
        let mut now = start;
        // Refreshes since the last column command: too many, and there will be none.
        let mut vain = 0;
        let mut lanes: Vec<Lane<'_>> = sources
            .map(|(pc, source)| Lane {
                pc,
                source,
                from: start,
                fence: start,
                last_issue: start,
                data_end: start,
                column_ready: 0,
                act_ready: 0,
                weighed: false,
                apart_ready: [0; 4],
                sums_ready: 0,
                operands: Vec::new(),
                closes: 0,
                counted: false,
            })
            .collect();
        loop {
            let due = self.session.refresh_due();
            // The first command that is of use before the next refresh, and whether a lane wants any.
            let mut best: Option<(u64, usize, Command)> = None;
            let mut wanted = false;
            for (n, lane) in lanes.iter_mut().enumerate() {
                let Some((tick, command)) = self.next(rules, lane, now)? else { continue };
                wanted = true;
                if tick + self.until_data(lane, command) < due && best.is_none_or(|(t, ..)| tick < t) {
                    best = Some((tick, n, command));
                }
            }
            if !wanted {
                return Ok(lanes.iter().map(|l| l.data_end.max(l.last_issue + 1)).max().unwrap_or(start));
            }
            let Some((tick, n, command)) = best else {
                vain += 1;
                if vain > 256 + 4 * self.config.org.pseudochannel * self.config.org.banks_per_pc() {
                    let message = "refreshes leave no time for data: no row stays open long enough between two of them";
                    return Err(MachineStop::new(Fail::Time, message.into()));
                }
                now = now.max(self.refresh()?);
                continue;
            };
            now = tick;
            if command.is_column() {
                vain = 0;
            }
            self.issue(rules, &mut lanes[n], command, tick)?;
        }
    }

    /// The next command of a lane and its tick. Fences pass on the way.
    fn next(&mut self, rules: Rules, lane: &mut Lane<'_>, now: u64) -> Result<Option<(u64, Command)>, MachineStop> {
        loop {
            match lane.source.want() {
                Want::End => return Ok(None),
                Want::Fence => {
                    let until = if rules.fence_data { lane.data_end } else { lane.last_issue + 1 };
                    lane.from = lane.from.max(until);
                    lane.fence = lane.from;
                    lane.source.done(&mut self.memory, self.log)?;
                }
                Want::Close if self.session.any_open(lane.pc) => {
                    let per_pc = self.config.org.banks_per_pc() as usize;
                    let first = lane.pc * per_pc;
                    // A bank that is refreshed by itself may not be closed with the others.
                    let (command, bank) = match self.controller.refresh {
                        Refresh::PerBank => {
                            let open = (first..first + per_pc).find(|b| self.session.open_row(*b).is_some());
                            (Command::PrePb, open.unwrap_or(first))
                        }
                        _ => (Command::PreAb, first),
                    };
                    lane.closes = bank;
                    return Ok(Some((self.session.earliest(command, bank, lane.from.max(now)), command)));
                }
                Want::Close => {
                    lane.source.done(&mut self.memory, self.log)?;
                }
                Want::Apart(kind) => {
                    let from = lane.from.max(lane.apart_ready[kind.kind()]).max(now);
                    // No command of the DRAM, and behind those that are.
                    return Ok(Some((self.session.earliest_apart(from), Command::Wr)));
                }
                Want::Open { bank, row, .. } => {
                    let index = self.index(lane.pc, bank);
                    let (command, ready) = match self.session.open_row(index) {
                        Some(open) if open == row => {
                            lane.source.done(&mut self.memory, self.log)?;
                            continue;
                        }
                        Some(_) => (Command::PrePb, 0),
                        None => (Command::Act, lane.act_ready),
                    };
                    return Ok(Some((self.session.earliest(command, index, lane.from.max(ready).max(now)), command)));
                }
                Want::Column { bank, row, col, write, banks } => {
                    let index = self.index(lane.pc, bank);
                    let open = self.session.open_row(index);
                    if !std::mem::replace(&mut lane.counted, true) {
                        self.session.count(open, row, write);
                    }
                    let command = match open {
                        Some(r) if r == row && write => Command::Wr,
                        Some(r) if r == row => Command::Rd,
                        Some(_) => Command::PrePb,
                        None => Command::Act,
                    };
                    let ready = match command {
                        Command::Act => lane.act_ready,
                        Command::PrePb => 0,
                        _ if banks > 1 => lane.column_ready.max(lane.operand(col)),
                        _ => 0,
                    };
                    return Ok(Some((self.session.earliest(command, index, lane.from.max(ready).max(now)), command)));
                }
            }
        }
    }

    /// Ticks that an ACT takes to be of use (tRCD from its last cycle on), if the next refresh closes its row whatever
    /// its bank: opened for nothing, the row would delay the refresh by tRAS, and the time between two refreshes can be
    /// so short that nothing else happens.
    fn until_data(&self, lane: &Lane<'_>, command: Command) -> u64 {
        let (t, cycles) = (&self.config.timing, &self.config.command_ticks);
        match (command, self.controller.refresh, lane.source.want()) {
            (Command::Act, Refresh::AllBank, want @ (Want::Column { .. } | Want::Open { .. })) => {
                let write = matches!(want, Want::Column { write: true, .. });
                let (clocks, column) = if write { (t.rcd_wr, Command::Wr) } else { (t.rcd_rd, Command::Rd) };
                let gap = self.config.ticks(clocks) + u64::from(cycles[Command::Act as usize]);
                // Commands begin with a clock.
                (gap - u64::from(cycles[column as usize]).min(gap)).next_multiple_of(self.config.ticks(1))
            }
            _ => 0,
        }
    }

    fn index(&self, pc: usize, [bg, bank]: [u16; 2]) -> usize {
        // A channel has at most 16 pseudo-channels.
        Session::bank_index(self.config, Address { pc: pc as u16, bankgroup: bg, bank, row: 0, column: 0 })
    }

    fn issue(&mut self, rules: Rules, lane: &mut Lane<'_>, command: Command, tick: u64) -> Result<(), MachineStop> {
        let pc = lane.pc as u16;
        lane.last_issue = tick;
        let (bank, row, col, write, banks) = match lane.source.want() {
            Want::Apart(kind) => return self.issue_apart(rules, lane, kind, tick),
            Want::Column { bank, row, col, write, banks } => (bank, row, col, write, banks),
            Want::Open { bank, row, banks } => (bank, row, 0, false, banks),
            // All banks close.
            Want::Close | Want::Fence | Want::End => {
                self.session.issue(self.config, command, lane.closes, 0, tick, lane.from);
                let address = Session::bank_address(self.config, lane.closes);
                self.log.issued(&Issued { tick, command, address }, 1, false, lane.source.place());
                return Ok(());
            }
        };
        let index = self.index(lane.pc, bank);
        let cause = self.session.issue(self.config, command, index, row, tick, lane.from);
        let address =
            Address { pc, bankgroup: bank[0], bank: bank[1], row, column: if command.is_column() { col } else { 0 } };
        let issued = Issued { tick, command, address };
        let wide = banks > 1;
        if !command.is_column() {
            self.log.issued(&issued, u64::from(banks), false, lane.source.place());
            if command == Command::Act {
                lane.weighed = lane.act_ready == tick && tick > lane.from;
                if wide && rules.act_weight > 1 {
                    let t = &self.config.timing;
                    let w = rules.act_weight;
                    let clocks = (w * t.rrd_s).max((w * t.faw).div_ceil(4));
                    lane.act_ready = tick + self.config.ticks(clocks);
                }
            }
            return Ok(());
        }
        let t = &self.config.timing;
        let (short, long) = (self.config.ticks(t.ccd_s), self.config.ticks(t.ccd_l));
        lane.counted = false;
        lane.column_ready = tick + long;
        if wide {
            lane.summed(tick + self.config.ticks(rules.latency));
        }
        let data_end = self.session.data_end(command, tick);
        lane.data_end = lane.data_end.max(data_end);
        let effect = lane.source.done(&mut self.memory, self.log)?;
        self.log.issued(
            &issued,
            u64::from(banks),
            effect.host || !write && effect.bucket != Bucket::Compute,
            effect.place,
        );
        self.log.bounds.work(lane.pc, effect.work);
        let pch = lane.pc;
        let busy = tick + if wide { long } else { short };
        if let Some(history) = self.log.history.as_mut().filter(|_| effect.bucket == Bucket::Compute) {
            history.stepped(index, u64::from(banks), tick, busy, effect.place);
        }
        self.log.slice(Slice { pch, start: tick, end: busy, bucket: effect.bucket, place: effect.place });
        let wait = match effect.bucket {
            Bucket::Mode => Bucket::Mode,
            _ if std::mem::take(&mut lane.weighed) => Bucket::Faw,
            _ => Bucket::of(cause, self.log.account.busy(pch)),
        };
        self.log.account.column(
            pch,
            ColumnEvent { tick, wait, fence: lane.fence, busy: (busy, effect.bucket), data_end, place: effect.place },
        );
        Ok(())
    }

    /// A command to the units' own stores. Their data bus is the memory's: so far apart as bursts, and turned between
    /// writes and reads by tWTR and, as for the registers of AiM, three clocks.
    fn issue_apart(&mut self, rules: Rules, lane: &mut Lane<'_>, kind: Apart, tick: u64) -> Result<(), MachineStop> {
        let (t, config) = (&self.config.timing, self.config);
        self.session.issue_apart(config, tick);
        let burst = config.ticks(t.bl.max(t.ccd_s));
        let written = config.ticks(1 + t.bl);
        let step = config.ticks(rules.latency);
        let [operand, sums, steps, read] = &mut lane.apart_ready;
        let mut after = |ready: [u64; 4]| {
            for (own, ready) in [&mut *operand, &mut *sums, &mut *steps, &mut *read].into_iter().zip(ready) {
                *own = (*own).max(tick + ready);
            }
        };
        let (bucket, host, end) = match kind {
            Apart::Operand { .. } | Apart::Sums => {
                after([burst, burst, written, written + config.ticks(t.wtr_s)]);
                match kind {
                    Apart::Operand { col } => lane.wrote(col as usize, tick + written),
                    _ => {
                        lane.sums_ready = tick + written;
                        self.log.bounds.begin_sum(lane.pc, (written, config.ticks(t.bl + 3)));
                    }
                }
                (Bucket::Column, true, tick + written)
            }
            Apart::Step => {
                after([0, step, step, step]);
                self.log.bounds.work_on_sum(lane.pc, step, step);
                (Bucket::Compute, false, tick + step)
            }
            Apart::Read => {
                let turn = config.ticks(t.bl + 3);
                after([turn, turn, 0, burst]);
                self.log.bounds.take_sum(lane.pc, step, burst);
                (Bucket::Column, true, tick + burst)
            }
        };
        lane.data_end = lane.data_end.max(end);
        let effect = lane.source.done(&mut self.memory, self.log)?;
        if host {
            self.log.apart(kind == Apart::Read);
        }
        let pch = lane.pc;
        let busy = tick + burst;
        self.log.slice(Slice { pch, start: tick, end: busy, bucket, place: effect.place });
        self.log.account.column(
            pch,
            ColumnEvent {
                tick,
                wait: Bucket::Column,
                fence: lane.fence,
                busy: (busy, bucket),
                data_end: end,
                place: effect.place,
            },
        );
        Ok(())
    }

    fn refresh(&mut self) -> Result<u64, MachineStop> {
        let Channel { config, controller, session, log, .. } = self;
        let sink = |i: Issued| log.issued(&i, 1, false, SourceLine::default());
        session.refresh(config, controller, sink).map_err(|e| MachineStop::new(Fail::Time, e.to_string()))
    }
}

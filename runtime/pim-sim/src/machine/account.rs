//! Where the time went. Every tick of every pseudo-channel is in exactly one bucket, and is charged to the kind of step
//! and the line of the source that it was spent on.

use super::bound::LowerBound;
use crate::dram::Cause;
use ptoc_pim_stream::stream::SourceLine;
use std::collections::BTreeMap;

/// What a pseudo-channel did, or waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Bucket {
    /// Units computed: a column command that stepped them, for as long as it keeps the next one away.
    Compute,
    /// Data moved otherwise, or the data bus turned around.
    Column,
    /// Rows opened and closed: tRCD, tRP, tRAS, tWR, ...
    Row,
    /// Activations of other banks: tRRD and tFAW.
    Faw,
    /// Refresh.
    Refresh,
    /// Operands and results of units that fetch them themselves.
    Operand,
    /// A fence waited.
    Fence,
    /// Modes changed, programs were written.
    Mode,
    /// There was nothing to do.
    Idle,
}

impl Bucket {
    /// How many there are.
    pub const COUNT: usize = 9;
    /// All, in their order.
    pub const ALL: [Bucket; Bucket::COUNT] = [
        Bucket::Compute,
        Bucket::Column,
        Bucket::Row,
        Bucket::Faw,
        Bucket::Refresh,
        Bucket::Operand,
        Bucket::Fence,
        Bucket::Mode,
        Bucket::Idle,
    ];

    /// The name in reports.
    pub fn name(self) -> &'static str {
        ["compute", "column", "tRCD/tRP", "tFAW", "refresh", "operand", "fence", "mode switch", "idle"][self as usize]
    }

    /// The bucket of what held a column command back. `busy` is what the pseudo-channel did before.
    pub fn of(cause: Cause, busy: Bucket) -> Bucket {
        match cause {
            Cause::QueueEmpty => Bucket::Idle,
            Cause::Ccd => busy,
            Cause::Turnaround | Cause::Scheduling => Bucket::Column,
            Cause::RowCycle => Bucket::Row,
            Cause::Rrd | Cause::Faw => Bucket::Faw,
            Cause::Refresh => Bucket::Refresh,
        }
    }
}

/// Ticks by bucket.
pub type Buckets = [u64; Bucket::COUNT];

const NONE: Buckets = [0; Bucket::COUNT];

/// A pseudo-channel's time so far.
#[derive(Clone, Debug)]
struct Clock {
    /// Everything before this tick is charged.
    done: u64,
    /// What it does until when, and for which line.
    busy: (u64, Bucket, SourceLine),
    /// Its last data have moved then.
    data_end: u64,
    buckets: Buckets,
    /// Those of them in which units with sequencers had the banks: each unit has its own account of that time.
    apart: Buckets,
}

/// A column command, for the account.
#[derive(Clone, Copy, Debug)]
pub struct ColumnEvent {
    /// Its tick.
    pub tick: u64,
    /// The bucket of the wait before it, fences left out.
    pub wait: Bucket,
    /// Until when a fence held it.
    pub fence: u64,
    /// Until when it keeps the pseudo-channel busy, and with what.
    pub busy: (u64, Bucket),
    /// The first tick after its data.
    pub data_end: u64,
    /// Whose it is.
    pub place: SourceLine,
}

/// The time of all pseudo-channels.
#[derive(Clone, Debug)]
pub struct Account {
    clocks: Vec<Clock>,
    /// The kind of the current step.
    kind: &'static str,
    /// By kind of step: how many, their ticks, the pseudo-channels' ticks.
    pub kinds: BTreeMap<&'static str, KindTotals>,
    /// By line: the pseudo-channels' ticks.
    pub lines: BTreeMap<SourceLine, Buckets>,
}

/// What the steps of one kind took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KindTotals {
    /// How many.
    pub steps: u64,
    /// Ticks from the beginning to the end of each.
    pub ticks: u64,
    /// Ticks of the pseudo-channels in them.
    pub buckets: Buckets,
    /// What they would have taken at least.
    pub bound: LowerBound,
}

impl Account {
    /// So many pseudo-channels, at tick 0.
    pub fn new(pchs: usize) -> Account {
        let clock =
            Clock { done: 0, busy: (0, Bucket::Idle, SourceLine::default()), data_end: 0, buckets: NONE, apart: NONE };
        Account { clocks: vec![clock; pchs], kind: "", kinds: BTreeMap::new(), lines: BTreeMap::new() }
    }

    /// Ticks of a pseudo-channel so far.
    pub fn buckets(&self, pch: usize) -> &Buckets {
        &self.clocks[pch].buckets
    }

    /// Ticks of a pseudo-channel in which units with sequencers had its banks, by what its slowest unit did.
    pub fn apart(&self, pch: usize) -> &Buckets {
        &self.clocks[pch].apart
    }

    /// A step begins.
    pub fn begin(&mut self, kind: &'static str) {
        self.kind = kind;
    }

    /// What the current step takes at least.
    pub fn bound(&mut self, bound: &LowerBound) {
        self.kinds.entry(self.kind).or_default().bound.add(bound);
    }

    /// What the pseudo-channel did before, for a command that waits for nothing else.
    pub fn busy(&self, pch: usize) -> Bucket {
        self.clocks[pch].busy.1
    }

    fn charge(&mut self, pch: usize, until: u64, bucket: Bucket, place: SourceLine) {
        let clock = &mut self.clocks[pch];
        let ticks = until.saturating_sub(clock.done);
        if ticks == 0 {
            return;
        }
        clock.done = until;
        clock.buckets[bucket as usize] += ticks;
        self.kinds.entry(self.kind).or_default().buckets[bucket as usize] += ticks;
        self.lines.entry(place).or_default()[bucket as usize] += ticks;
    }

    fn finish_busy(&mut self, pch: usize, until: u64) {
        let (end, bucket, place) = self.clocks[pch].busy;
        self.charge(pch, end.min(until), bucket, place);
    }

    /// A column command was issued.
    pub fn column(&mut self, pch: usize, e: ColumnEvent) {
        self.finish_busy(pch, e.tick);
        self.charge(pch, e.fence.min(e.tick), Bucket::Fence, e.place);
        self.charge(pch, e.tick, e.wait, e.place);
        let clock = &mut self.clocks[pch];
        clock.busy = (e.busy.0, e.busy.1, e.place);
        clock.data_end = clock.data_end.max(e.data_end);
    }

    /// Charges a pseudo-channel for what it did on its own, from where it stands.
    pub fn spend(&mut self, pch: usize, until: u64, bucket: Bucket, place: SourceLine) {
        self.finish_busy(pch, until);
        self.charge(pch, until, bucket, place);
    }

    /// Units with sequencers have the banks of a pseudo-channel up to `until`; see [`Account::apart`].
    pub fn spend_apart(&mut self, pch: usize, until: u64, bucket: Bucket, place: SourceLine) {
        let before = self.clocks[pch].buckets;
        self.spend(pch, until, bucket, place);
        let clock = &mut self.clocks[pch];
        clock
            .apart
            .iter_mut()
            .zip(clock.buckets)
            .zip(before)
            .for_each(|((apart, after), before)| *apart += after - before);
    }

    /// The accounts of the channels of a device, whose steps are the same, as one.
    pub fn joined(channels: impl Iterator<Item = Account>) -> Option<Account> {
        fn add(all: &mut Buckets, own: &Buckets) {
            all.iter_mut().zip(own).for_each(|(a, b)| *a += b);
        }
        channels.reduce(|mut all, mut own| {
            all.clocks.append(&mut own.clocks);
            own.kinds.iter().for_each(|(kind, k)| add(&mut all.kinds.entry(kind).or_default().buckets, &k.buckets));
            own.lines.iter().for_each(|(line, b)| add(all.lines.entry(*line).or_insert(NONE), b));
            all
        })
    }

    /// The step that began at `start` ends; all pseudo-channels meet. Data still move, then there is nothing to do.
    pub fn end(&mut self, start: u64, end: u64, place: SourceLine) {
        for pch in 0..self.clocks.len() {
            self.finish_busy(pch, end);
            let data = self.clocks[pch].data_end.min(end);
            self.charge(pch, data, Bucket::Column, place);
            self.charge(pch, end, Bucket::Idle, place);
        }
        let kind = self.kinds.entry(self.kind).or_default();
        kind.steps += 1;
        kind.ticks += end - start;
    }
}

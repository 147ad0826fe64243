//! Commands as a timeline.
//!
//! A process is a pseudo-channel. Its tracks are the data bus, refresh of all banks, and each bank: the row that is
//! open, in it the commands that use it, and per-bank refreshes and precharges between rows. Data that units read from
//! or write to their own banks are on no bus. Files have nanoseconds since tick 0, rounded down, and each slice has its
//! exact tick.

use crate::dram::{Command, Config, Issued};
use ptoc_trace::{Arguments, Process, Slice, Text, Trace, Value};

/// Tracks before those of the banks.
const DATA: usize = 0;
const REFRESH: usize = 1;
const FIRST_BANK: usize = 2;

/// Something on a [`Track`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedSlice {
    /// First tick, and the one at which it ends.
    pub ticks: (u64, u64),
    /// Its name.
    pub name: String,
    /// What slices like it are called together.
    pub class: &'static str,
    /// More about it.
    pub numbers: Vec<(&'static str, u64)>,
}

/// A track beside those of the commands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Track {
    /// The pseudo-channel of the device, counted through, whose process has it; `None` for a process of its own.
    pub pch: Option<usize>,
    /// Its name.
    pub name: String,
    /// In order of time. Slices do not overlap.
    pub slices: Vec<NamedSlice>,
}

/// The commands of a channel, sorted by tick.
#[derive(Clone, Copy, Debug, Default)]
pub struct Channel<'t> {
    /// All of them.
    pub issued: &'t [Issued],
    /// For each, whether its data stay in the memory. Those that are missing cross the data bus.
    pub internal: &'t [bool],
}

impl<'t> Channel<'t> {
    fn of(&self, pc: u32) -> impl Iterator<Item = (&'t Issued, bool)> {
        let all = self.issued.iter().zip(self.internal.iter().copied().chain(std::iter::repeat(false)));
        all.filter(move |(c, _)| u32::from(c.address.pc) == pc)
    }
}

/// The timeline of a device, whose data all cross the buses: `channels` has the commands of each channel, sorted by
/// tick.
pub fn of_commands(config: &Config, channels: &[&[Issued]]) -> Trace {
    let channels: Vec<Channel<'_>> = channels.iter().map(|issued| Channel { issued, internal: &[] }).collect();
    with_tracks(config, &channels, &[])
}

/// The same with further tracks.
pub fn with_tracks(config: &Config, channels: &[Channel<'_>], tracks: &[Track]) -> Trace {
    let mut trace = Trace::default();
    for (channel, commands) in channels.iter().enumerate() {
        for pc in 0..config.org.pseudochannel {
            let pch = channel * config.org.pseudochannel as usize + pc as usize;
            let own: Vec<&Track> = tracks.iter().filter(|t| t.pch == Some(pch)).collect();
            if own.is_empty() && commands.of(pc).next().is_none() {
                continue;
            }
            let name = format!("channel {channel} pseudo-channel {pc}");
            let mut all = PseudoChannel::new(config, &mut trace).tracks(commands.of(pc));
            all.extend(own.into_iter().map(|t| further(&mut trace, t)));
            trace.push(process(config, name, all));
        }
    }
    let others: Vec<_> = tracks.iter().filter(|t| t.pch.is_none()).map(|t| further(&mut trace, t)).collect();
    if !others.is_empty() {
        trace.push(process(config, "stream".into(), others));
    }
    trace
}

fn process(config: &Config, name: String, tracks: Vec<ptoc_trace::Track>) -> Process {
    let (picoseconds, ticks) = (u64::from(config.timing.tck_ps), u64::from(config.tick_multiplier));
    Process { name, picoseconds, ticks, tick: "tick", tracks }
}

fn further(trace: &mut Trace, track: &Track) -> ptoc_trace::Track {
    let mut slice = |s: &NamedSlice| {
        let (name, class) = (trace.text(&s.name), trace.text(s.class));
        let arguments = match s.numbers.is_empty() {
            true => Arguments::default(),
            false => trace.arguments(s.numbers.iter().map(|(key, n)| (*key, Value::Number(*n))).collect()),
        };
        Slice { begin: s.ticks.0, end: s.ticks.1, name, class, depth: 0, arguments }
    };
    let slices = track.slices.iter().map(&mut slice).collect();
    ptoc_trace::Track { name: track.name.clone(), slices }
}

/// A row that is open, and the commands that have used it.
#[derive(Clone)]
struct Open {
    since: u64,
    row: u32,
    /// First tick, end, command, column.
    inner: Vec<(u64, u64, Command, u32)>,
}

struct PseudoChannel<'a> {
    config: &'a Config,
    trace: &'a mut Trace,
    /// Of each track.
    slices: Vec<Vec<Slice>>,
    open: Vec<Option<Open>>,
}

impl<'a> PseudoChannel<'a> {
    fn new(config: &'a Config, trace: &'a mut Trace) -> PseudoChannel<'a> {
        let banks = config.org.banks_per_pc() as usize;
        PseudoChannel { config, trace, slices: vec![Vec::new(); FIRST_BANK + banks], open: vec![None; banks] }
    }

    /// The tracks of its commands.
    fn tracks<'c>(mut self, commands: impl Iterator<Item = (&'c Issued, bool)>) -> Vec<ptoc_trace::Track> {
        self.commands(commands);
        // Reads and writes have different ways to the bus.
        self.slices[DATA].sort_by_key(|s| s.begin);
        let banks = self.config.org.bank as usize;
        let name = |track: usize| match track {
            DATA => "data bus".to_owned(),
            REFRESH => "refresh of all banks".to_owned(),
            n => format!("bank group {} bank {}", (n - FIRST_BANK) / banks, (n - FIRST_BANK) % banks),
        };
        self.slices.into_iter().enumerate().map(|(n, slices)| ptoc_trace::Track { name: name(n), slices }).collect()
    }

    fn slice(&mut self, track: usize, ticks: (u64, u64), class: &str, name: &str, depth: u8) {
        let class: Text = self.trace.text(class);
        let name = self.trace.text(name);
        let (begin, end) = (ticks.0, ticks.1.max(ticks.0));
        self.slices[track].push(Slice { begin, end, name, class, depth, arguments: Arguments::default() });
    }

    fn commands<'c>(&mut self, commands: impl Iterator<Item = (&'c Issued, bool)>) {
        let config = self.config;
        let (org, t) = (&config.org, &config.timing);
        let held = |c: Command| u64::from(config.command_ticks[c as usize]);
        // A precharge lasts until an ACT may take effect, whose first cycles come before that.
        let precharge = config.ticks(t.rp).saturating_sub(held(Command::Act) - 1).max(1);
        let mut end = 0u64;
        for (c, internal) in commands {
            let (tick, a) = (c.tick, &c.address);
            let after = tick.saturating_add(held(c.command));
            end = end.max(after);
            let index = org.bank_index(a.bankgroup, a.bank) as usize;
            if !c.command.is_all_bank() && index >= self.open.len() {
                continue;
            }
            let name = c.command.name();
            match c.command {
                Command::Act => {
                    self.close(index, tick);
                    self.open[index] = Some(Open { since: tick, row: a.row, inner: vec![(tick, after, c.command, 0)] });
                }
                Command::PrePb => self.precharge(index, tick, precharge),
                Command::PreAb => (0..self.open.len()).for_each(|index| self.precharge(index, tick, precharge)),
                Command::Rd | Command::RdA | Command::Wr | Command::WrA => {
                    if let Some(open) = &mut self.open[index] {
                        open.inner.push((tick, after, c.command, a.column));
                    }
                    let latency = if c.command.is_read() { t.cl } else { t.cwl };
                    let data = after - 1 + config.ticks(latency);
                    let moved = (data, data.saturating_add(config.ticks(t.bl)));
                    if !internal {
                        let what = format!("{name} {} {} row {} column {}", a.bankgroup, a.bank, a.row, a.column);
                        self.slice(DATA, moved, name, &what, 0);
                    }
                    if matches!(c.command, Command::RdA | Command::WrA) {
                        self.close(index, after);
                    }
                }
                Command::RefAb | Command::RfmAb => {
                    let until = tick.saturating_add(config.ticks(t.rfc));
                    self.slice(REFRESH, (tick, until), name, name, 0);
                }
                Command::RefPb | Command::RfmPb => {
                    let last = held(Command::Act) - 1;
                    let until = tick.saturating_add(config.ticks(t.rfc_pb).saturating_sub(last).max(1));
                    self.slice(FIRST_BANK + index, (tick, until), name, name, 0);
                }
            }
        }
        (0..self.open.len()).for_each(|index| self.close(index, end));
    }

    fn precharge(&mut self, index: usize, tick: u64, length: u64) {
        if self.open[index].is_some() {
            self.close(index, tick);
            self.slice(FIRST_BANK + index, (tick, tick.saturating_add(length)), "PRE", "PRE", 0);
        }
    }

    /// Ends the slice of the open row, if there is one.
    fn close(&mut self, index: usize, tick: u64) {
        let Some(Open { since, row, inner }) = self.open[index].take() else { return };
        let track = FIRST_BANK + index;
        self.slice(track, (since, tick), "row", &format!("row {row}"), 0);
        for (from, to, command, column) in inner {
            let name = match command {
                Command::Act => "ACT".to_owned(),
                _ => format!("{} column {column}", command.name()),
            };
            self.slice(track, (from, to.min(tick)), command.name(), &name, 1);
        }
    }
}

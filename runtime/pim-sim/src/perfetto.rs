//! Command traces as Chrome trace events, which Perfetto and chrome://tracing open.
//!
//! A process is a pseudo-channel. Its tracks are the data bus, refresh of all banks, and each bank: the row that is
//! open, in it the commands that use it, and per-bank refreshes and precharges between rows. Data that units read from
//! or write to their own banks are on no bus. Times are nanoseconds since tick 0, rounded down (the format has no finer
//! ones), and each event has its exact tick in `args`.

use crate::dram::{Command, Config, Issued};
use std::fmt::{self, Write};

/// Tracks before those of the banks.
const DATA: usize = 1;
const REFRESH: usize = 2;
const FIRST_BANK: usize = 3;

/// A track beside those of the commands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Track {
    /// The pseudo-channel of the device, counted through, whose process has it; `None` for a process of its own.
    pub pch: Option<usize>,
    /// Its name.
    pub name: String,
    /// First tick, end, name. Slices do not overlap; one that lies in another follows it.
    pub slices: Vec<(u64, u64, String)>,
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

/// Writes the trace of a device, whose data all cross the buses: `channels` has the commands of each channel, sorted by
/// tick.
pub fn write(out: &mut dyn Write, config: &Config, channels: &[&[Issued]]) -> fmt::Result {
    let channels: Vec<Channel<'_>> = channels.iter().map(|issued| Channel { issued, internal: &[] }).collect();
    write_with(out, config, &channels, &[])
}

/// The same with further tracks.
pub fn write_with(out: &mut dyn Write, config: &Config, channels: &[Channel<'_>], tracks: &[Track]) -> fmt::Result {
    let mut events = Events { out, config, first: true };
    events.out.write_str("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n")?;
    for (channel, trace) in channels.iter().enumerate() {
        for pc in 0..config.org.pseudochannel {
            let pch = channel * config.org.pseudochannel as usize + pc as usize;
            let mut own = tracks.iter().filter(|t| t.pch == Some(pch)).peekable();
            if own.peek().is_some() || trace.of(pc).next().is_some() {
                events.names(pch + 1, channel, pc)?;
                events.pseudo_channel(pch + 1, trace.of(pc))?;
            }
            let first = FIRST_BANK + config.org.banks_per_pc() as usize;
            for (n, track) in own.enumerate() {
                events.track(pch + 1, first + n, track)?;
            }
        }
    }
    let last = channels.len() * config.org.pseudochannel as usize + 1;
    let mut others = tracks.iter().filter(|t| t.pch.is_none()).peekable();
    if others.peek().is_some() {
        events.name("process_name", last, 0, format_args!("stream"))?;
    }
    for (n, track) in others.enumerate() {
        events.track(last, n + 1, track)?;
    }
    events.out.write_str("\n]}\n")
}

/// The text within quotes of JSON.
fn escaped(text: &str) -> String {
    let quoted = serde_json::Value::from(text).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

struct Events<'a> {
    out: &'a mut dyn Write,
    config: &'a Config,
    first: bool,
}

/// A row that is open, and the commands that have used it: the slice that encloses others is written before them.
#[derive(Clone)]
struct Open {
    since: u64,
    row: u32,
    /// First tick, end, command, column.
    inner: Vec<(u64, u64, Command, u32)>,
}

impl Events<'_> {
    fn next(&mut self) -> fmt::Result {
        if !std::mem::take(&mut self.first) {
            self.out.write_str(",\n")?;
        }
        Ok(())
    }

    fn name(&mut self, what: &str, process: usize, thread: usize, name: fmt::Arguments<'_>) -> fmt::Result {
        self.next()?;
        write!(self.out, r#"{{"name":"{what}","ph":"M","pid":{process},"tid":{thread},"args":{{"name":"{name}"}}}}"#)
    }

    fn names(&mut self, process: usize, channel: usize, pc: u32) -> fmt::Result {
        self.name("process_name", process, 0, format_args!("channel {channel} pseudo-channel {pc}"))?;
        self.name("thread_name", process, DATA, format_args!("data bus"))?;
        self.name("thread_name", process, REFRESH, format_args!("refresh of all banks"))?;
        let org = &self.config.org;
        let (groups, banks) = (org.bankgroups_per_pc(), org.bank);
        for n in 0..groups * banks {
            let (group, bank) = (n / banks, n % banks);
            let thread = FIRST_BANK + n as usize;
            self.name("thread_name", process, thread, format_args!("bank group {group} bank {bank}"))?;
        }
        Ok(())
    }

    fn track(&mut self, process: usize, thread: usize, track: &Track) -> fmt::Result {
        self.name("thread_name", process, thread, format_args!("{}", escaped(&track.name)))?;
        track.slices.iter().try_for_each(|(from, to, name)| {
            self.slice(process, thread, (*from, *to), format_args!("{}", escaped(name)))
        })
    }

    /// Nanoseconds of a tick.
    fn ns(&self, tick: u64) -> u128 {
        u128::from(tick) * u128::from(self.config.timing.tck_ps) / (1000 * u128::from(self.config.tick_multiplier))
    }

    fn slice(&mut self, process: usize, thread: usize, ticks: (u64, u64), name: fmt::Arguments<'_>) -> fmt::Result {
        self.next()?;
        let (from, to) = (self.ns(ticks.0), self.ns(ticks.1.max(ticks.0)));
        let micros = |ns: u128| (ns / 1000, ns % 1000);
        let ((ts, ts_ns), (dur, dur_ns)) = (micros(from), micros(to - from));
        let tick = ticks.0;
        write!(
            self.out,
            "{{\"name\":\"{name}\",\"ph\":\"X\",\"pid\":{process},\"tid\":{thread},\"ts\":{ts}.{ts_ns:03},\
             \"dur\":{dur}.{dur_ns:03},\"args\":{{\"tick\":{tick}}}}}"
        )
    }

    fn pseudo_channel<'c>(&mut self, process: usize, trace: impl Iterator<Item = (&'c Issued, bool)>) -> fmt::Result {
        let config = self.config;
        let (org, t) = (&config.org, &config.timing);
        let held = |c: Command| u64::from(config.command_ticks[c as usize]);
        // A precharge lasts until an ACT may take effect, whose first cycles come before that.
        let precharge = config.ticks(t.rp).saturating_sub(held(Command::Act) - 1).max(1);
        let mut open: Vec<Option<Open>> = vec![None; org.banks_per_pc() as usize];
        let mut end = 0u64;
        for (c, internal) in trace {
            let (tick, a) = (c.tick, &c.address);
            let after = tick.saturating_add(held(c.command));
            end = end.max(after);
            let index = org.bank_index(a.bankgroup, a.bank) as usize;
            if !c.command.is_all_bank() && index >= open.len() {
                continue;
            }
            let thread = FIRST_BANK + index;
            match c.command {
                Command::Act => {
                    self.close(process, index, &mut open, tick)?;
                    open[index] = Some(Open { since: tick, row: a.row, inner: vec![(tick, after, c.command, 0)] });
                }
                Command::PrePb => {
                    if self.close(process, index, &mut open, tick)? {
                        self.slice(process, thread, (tick, tick.saturating_add(precharge)), format_args!("PRE"))?;
                    }
                }
                Command::PreAb => {
                    for index in 0..open.len() {
                        if self.close(process, index, &mut open, tick)? {
                            let thread = FIRST_BANK + index;
                            self.slice(process, thread, (tick, tick.saturating_add(precharge)), format_args!("PRE"))?;
                        }
                    }
                }
                Command::Rd | Command::RdA | Command::Wr | Command::WrA => {
                    let name = c.command.name();
                    if let Some(open) = &mut open[index] {
                        open.inner.push((tick, after, c.command, a.column));
                    }
                    let latency = if c.command.is_read() { t.cl } else { t.cwl };
                    let data = after - 1 + config.ticks(latency);
                    let moved = (data, data.saturating_add(config.ticks(t.bl)));
                    if !internal {
                        let what = format_args!("{name} {} {} row {} column {}", a.bankgroup, a.bank, a.row, a.column);
                        self.slice(process, DATA, moved, what)?;
                    }
                    if matches!(c.command, Command::RdA | Command::WrA) {
                        self.close(process, index, &mut open, after)?;
                    }
                }
                Command::RefAb | Command::RfmAb => {
                    let until = tick.saturating_add(config.ticks(t.rfc));
                    self.slice(process, REFRESH, (tick, until), format_args!("{}", c.command.name()))?;
                }
                Command::RefPb | Command::RfmPb => {
                    let last = held(Command::Act) - 1;
                    let until = tick.saturating_add(config.ticks(t.rfc_pb).saturating_sub(last).max(1));
                    self.slice(process, thread, (tick, until), format_args!("{}", c.command.name()))?;
                }
            }
        }
        for index in 0..open.len() {
            self.close(process, index, &mut open, end)?;
        }
        Ok(())
    }

    /// Ends the slice of the open row; false if there is none.
    fn close(
        &mut self,
        process: usize,
        index: usize,
        open: &mut [Option<Open>],
        tick: u64,
    ) -> Result<bool, fmt::Error> {
        let Some(Open { since, row, inner }) = open[index].take() else { return Ok(false) };
        let thread = FIRST_BANK + index;
        self.slice(process, thread, (since, tick), format_args!("row {row}"))?;
        for (from, to, command, column) in inner {
            let ticks = (from, to.min(tick));
            match command {
                Command::Act => self.slice(process, thread, ticks, format_args!("ACT"))?,
                _ => self.slice(process, thread, ticks, format_args!("{} column {column}", command.name()))?,
            }
        }
        Ok(true)
    }
}

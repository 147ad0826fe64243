//! Controllers: what can be chosen, and the engine's entry points.

use std::fmt;

use super::config::Config;
use super::standard::Standard;
use super::stats::Stats;
use super::trace::{Issued, Request};
use super::{frfcfs, inorder};

/// In which order requests are served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// Strict program order, one command a tick; see [`super::inorder`](crate::dram).
    InOrder,
    /// First ready, first come first served, with read and write queues.
    FrFcfs,
}

/// What happens to a row after an access (FR-FCFS).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowPolicy {
    /// It stays open until another row of the bank or a refresh needs the bank.
    Open,
    /// An access after which no waiting request needs the row closes it (RDA, WRA).
    Closed,
}

/// Who is refreshed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refresh {
    /// Nobody.
    Off,
    /// Every tREFI all banks of each pseudo-channel (REFab).
    AllBank,
    /// Every tREFIpb one bank (REFpb): HBM2 in turn over the channel, as its tREFIpb is tREFI over the channel's banks;
    /// HBM3 one of each pseudo-channel.
    PerBank,
}

/// A controller's choices.
#[derive(Clone, Debug, PartialEq)]
pub struct Controller {
    /// The order of service.
    pub policy: Policy,
    /// What happens to a row.
    pub row_policy: RowPolicy,
    /// Who is refreshed.
    pub refresh: Refresh,
    /// Entries of the read queue, 1..=1024.
    pub read_queue: usize,
    /// Entries of the write queue, 1..=1024.
    pub write_queue: usize,
    /// Writes drain from above this share of the write queue (or when no read waits) ...
    pub write_high: f64,
    /// ... until below this share, if a read waits.
    pub write_low: f64,
    /// FR-FCFS on HBM3: column commands, ACT and refreshes only at rising clock edges (JESD238). The first tick is one.
    pub clock_edges: bool,
}

impl Default for Controller {
    fn default() -> Controller {
        Controller {
            policy: Policy::FrFcfs,
            row_policy: RowPolicy::Open,
            refresh: Refresh::Off,
            read_queue: 32,
            write_queue: 32,
            write_high: 0.8,
            write_low: 0.2,
            clock_edges: true,
        }
    }
}

impl Controller {
    /// The in-order controller without refresh.
    pub fn in_order() -> Controller {
        Controller { policy: Policy::InOrder, ..Controller::default() }
    }

    /// Ticks between refreshes of one kind, if any.
    pub(super) fn refresh_interval(&self, config: &Config) -> Option<u64> {
        match self.refresh {
            Refresh::Off => None,
            Refresh::AllBank => Some(config.ticks(config.timing.refi).max(1)),
            Refresh::PerBank => Some(config.ticks(config.timing.refi_pb).max(1)),
        }
    }

    /// How many banks a per-bank refresh takes at a time, and how far apart in the channel they are.
    pub(crate) fn refresh_together(config: &Config) -> (usize, usize) {
        match config.standard {
            Standard::Hbm2 => (1, config.org.banks_per_pc() as usize),
            _ => (config.org.pseudochannel as usize, config.org.banks_per_pc() as usize),
        }
    }

    fn check(&self, config: &Config) -> Result<(), SimError> {
        if self.refresh == Refresh::PerBank && !config.standard.refreshes_banks() {
            return Err(SimError::NoBankRefresh { standard: config.standard.name() });
        }
        let queue = 1..=1024;
        let share = 0.0..=1.0;
        if !queue.contains(&self.read_queue) || !queue.contains(&self.write_queue) {
            return Err(SimError::Controller("a queue has 1 to 1024 entries"));
        }
        if !share.contains(&self.write_high) || !share.contains(&self.write_low) || self.write_low > self.write_high {
            return Err(SimError::Controller("write drain needs 0 <= low <= high <= 1"));
        }
        Ok(())
    }
}

/// Why a simulation gave up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SimError {
    /// A request lies outside the device.
    OutOfRange {
        /// Its number from 0.
        index: u64,
        /// What is too large.
        what: String,
    },
    /// Refreshes take all the time; no data command can issue.
    RefreshStarves {
        /// When it was noticed.
        tick: u64,
    },
    /// Requests wait and no rule says for what: a mistake of ours.
    Stuck {
        /// When.
        tick: u64,
    },
    /// The controller is to refresh single banks, which the standard does not have.
    NoBankRefresh {
        /// Its name.
        standard: &'static str,
    },
    /// The controller's numbers make no sense.
    Controller(&'static str),
}

impl SimError {
    /// So many refreshes may pass without a data command while requests wait, or wait themselves.
    pub(super) fn refresh_limit(banks: usize) -> u64 {
        256 + 4 * banks as u64
    }
}

impl fmt::Display for SimError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SimError::OutOfRange { index, what } => write!(f, "request {} is outside the device: {what}", index + 1),
            SimError::RefreshStarves { tick } => {
                write!(
                    f,
                    "at tick {tick}: refreshes leave no time for data; nREFI (nREFIpb) is too short for nRFC (nRFCpb)"
                )
            }
            SimError::NoBankRefresh { standard } => write!(f, "{standard} has no refresh of single banks (REFpb)"),
            SimError::Stuck { tick } => {
                write!(f, "at tick {tick}: requests wait and nothing can happen; this is a bug")
            }
            SimError::Controller(what) => f.write_str(what),
        }
    }
}

impl std::error::Error for SimError {}

/// Runs one channel. Every command goes to `sink` in the order of issue, as it is issued; nothing else is kept.
///
/// Pure: the result depends on the arguments alone. Addresses are checked against the organisation.
pub fn simulate(
    config: &Config,
    controller: &Controller,
    requests: impl IntoIterator<Item = Request>,
    sink: impl FnMut(Issued),
) -> Result<Stats, SimError> {
    controller.check(config)?;
    let mut wrong = None;
    let mut index = 0;
    let checked = requests.into_iter().map_while(|request| {
        if let Some(what) = request.outside(config) {
            wrong = Some(SimError::OutOfRange { index, what });
            return None;
        }
        index += 1;
        Some(request)
    });
    let result = match controller.policy {
        Policy::InOrder => inorder::run(config, controller, checked, sink),
        Policy::FrFcfs => frfcfs::run(config, controller, checked, sink),
    };
    match wrong {
        Some(error) => Err(error),
        None => result,
    }
}

/// What one channel did.
#[derive(Clone, Debug, PartialEq)]
pub struct ChannelOutcome {
    /// Its counts.
    pub stats: Stats,
    /// Its commands, if they were asked for.
    pub commands: Vec<Issued>,
}

/// Runs the channels, each with its requests, on up to `threads` threads. The results are those of running each alone:
/// channels share nothing.
pub fn simulate_channels(
    config: &Config,
    controller: &Controller,
    channels: &[Vec<Request>],
    keep_commands: bool,
    threads: usize,
) -> Result<Vec<ChannelOutcome>, (usize, SimError)> {
    let run = |requests: &Vec<Request>| {
        let mut commands = Vec::new();
        let stats = simulate(config, controller, requests.iter().copied(), |issued| {
            if keep_commands {
                commands.push(issued);
            }
        })?;
        Ok(ChannelOutcome { stats, commands })
    };
    let threads = threads.clamp(1, channels.len().max(1));
    let next = std::sync::atomic::AtomicUsize::new(0);
    let worker = || {
        let mut done = Vec::new();
        loop {
            let i = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            let Some(requests) = channels.get(i) else { return done };
            done.push((i, run(requests)));
        }
    };
    let mut results = if threads == 1 {
        worker()
    } else {
        std::thread::scope(|scope| {
            let handles: Vec<_> = (0..threads).map(|_| scope.spawn(worker)).collect();
            handles
                .into_iter()
                .flat_map(|h| h.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
                .collect()
        })
    };
    results.sort_by_key(|(i, _)| *i);
    results.into_iter().map(|(i, result)| result.map_err(|e| (i, e))).collect()
}

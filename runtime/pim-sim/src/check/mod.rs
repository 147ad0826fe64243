//! The rule checker: whether a trace of commands is one that the device may be given.
//!
//! It knows the named timing parameters, the organisation, and how long each command holds its bus; from these and the
//! standards' meaning of the parameters it derives for every command what the earlier ones ask. It shares no code with
//! the engine and does not see the constraint list that the engine obeys, so each finds the other's mistakes.
//!
//! Two grades: the default holds a trace to the distances of the established device models, against which it is
//! tested pair by pair. [`Options::strict`] adds what the standards say and those models leave to the controller: a
//! refreshing bank takes no refresh, and REFpb waits for PREab and auto-precharge like it waits for PREpb.

mod autonomous;
pub mod bound;
pub mod read;
mod refresh;
mod rule;
mod track;
mod violation;

pub use autonomous::check_autonomous;
pub use read::CommandTrace;
pub use rule::{Cause, Rule};
pub use violation::Violation;

use crate::dram::{Config, Issued};
use track::Tracker;
use violation::Shown;

/// What is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// What the standards ask beyond the established models.
    pub strict: bool,
    /// What banks hold: rows open and closed. Off, only distances count, as in a table of gaps.
    pub state: bool,
    /// That all-bank or per-bank refreshes come as often as tREFI asks.
    pub refresh: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options { strict: false, state: true, refresh: false }
    }
}

/// Checks the commands of one channel. They may be in any order of ticks; those of one tick count in the order given.
/// Violations come in the order of the later command, each rule and pair of commands once: where several rules hold
/// between two commands, the one that needs most is named.
pub fn check(config: &Config, trace: &[Issued], options: Options) -> Vec<Violation> {
    let mut order: Vec<usize> = (0..trace.len()).collect();
    order.sort_by_key(|&n| trace[n].tick);
    let mut tracker = Tracker::new(config, options.strict);
    let mut out = Vec::new();
    let mut broken: Vec<track::Demand> = Vec::new();
    for &n in &order {
        let c = &trace[n];
        if !tracker.is_place(c.command, &c.address) {
            out.push(misplaced(config, n, c));
            continue;
        }
        let fault = options.state.then(|| tracker.state(c)).flatten();
        if let Some(fault) = fault {
            out.push(Violation {
                rule: fault.rule,
                parameters: Vec::new(),
                first: fault.first.map(|first| (first, trace[first])),
                second: (n, *c),
                gap: 0,
                need: 0,
                detail: match (fault.rule, fault.row) {
                    (Rule::BankClosed, _) if fault.first.is_some() => "the bank is closed".into(),
                    (Rule::BankClosed, _) => "the bank is closed; nothing has opened a row".into(),
                    (_, Some(row)) => {
                        format!("row {row} is open in {}", if c.command.is_all_bank() { "a bank" } else { "the bank" })
                    }
                    (_, None) => String::new(),
                },
            });
        }
        broken.clear();
        let tick = c.tick.min(1 << 62) as i64;
        for demand in tracker.demands(c) {
            // ACT on an open bank: that it also comes too soon after the other ACT is the same mistake.
            let same = fault.is_some_and(|f| f.first == Some(demand.first)) && demand.rule == Rule::Rc;
            if demand.tick <= tick || same {
                continue;
            }
            match broken.iter_mut().find(|b| b.first == demand.first) {
                Some(b) if b.tick >= demand.tick => {}
                Some(b) => *b = *demand,
                None => broken.push(*demand),
            }
        }
        for demand in &broken {
            let first = trace[demand.first];
            out.push(Violation {
                rule: demand.rule,
                parameters: violation::parameters(demand.rule, Some(first.command), c.command, config),
                first: Some((demand.first, first)),
                second: (n, *c),
                gap: c.tick.saturating_sub(first.tick),
                need: (demand.tick - first.tick.min(1 << 62) as i64).max(0) as u64,
                detail: String::new(),
            });
        }
        tracker.apply(c, n);
    }
    if options.refresh {
        refresh::check(config, trace, &order, &mut out);
    }
    out
}

fn misplaced(config: &Config, n: usize, c: &Issued) -> Violation {
    let (org, a) = (&config.org, &c.address);
    let levels = [
        ("pseudo-channel", u32::from(a.pc), org.pseudochannel),
        ("bank group", u32::from(a.bankgroup), org.bankgroups_per_pc()),
        ("bank", u32::from(a.bank), org.bank),
        ("row", a.row, org.row),
        ("column", a.column, org.bursts_per_row()),
    ];
    let wrong = levels.iter().find(|&&(_, index, count)| index >= count);
    let detail = wrong.map_or_else(String::new, |(level, index, count)| {
        format!("there is no {level} {index}; the device has {count}")
    });
    Violation { rule: Rule::Address, parameters: Vec::new(), first: None, second: (n, *c), gap: 0, need: 0, detail }
}

/// `ACT bank group 0 bank 1 row 5 at tick 12`
pub fn shown(command: &Issued) -> String {
    Shown(command).to_string()
}

//! Whether refreshes come often enough.
//!
//! JESD235 and JESD238 let a controller postpone refreshes by up to eight intervals, so what can be checked of a trace
//! is that at no time more than eight are owed. Every bank is due once in nREFI; with per-bank refresh that is one bank
//! of a pseudo-channel in nREFI divided by its banks, and eight are eight rounds.

use super::rule::Rule;
use super::violation::Violation;
use crate::dram::{Command, Config, Issued};

/// Refreshes that may be owed.
const POSTPONED: u64 = 8;

/// Looks at each pseudo-channel that has commands.
pub(super) fn check(config: &Config, trace: &[Issued], order: &[usize], out: &mut Vec<Violation>) {
    let interval = config.ticks(config.timing.refi);
    if interval == 0 {
        return;
    }
    for pc in 0..config.org.pseudochannel {
        let mine = order.iter().map(|&n| (n, &trace[n])).filter(|(_, c)| u32::from(c.address.pc) == pc);
        let per_bank = mine.clone().any(|(_, c)| c.command == Command::RefPb);
        let all_bank = mine.clone().any(|(_, c)| c.command == Command::RefAb);
        let (kind, banks) = match per_bank && !all_bank {
            true => (Command::RefPb, u64::from(config.org.banks_per_pc())),
            false => (Command::RefAb, 1),
        };
        let owed = POSTPONED * banks;
        let mut done = 0u64;
        let mut last: Option<(usize, Issued)> = None;
        for (n, c) in mine {
            let due = (u128::from(c.tick) * u128::from(banks) / u128::from(interval)) as u64;
            if due > done.saturating_add(owed) {
                out.push(Violation {
                    rule: Rule::RefreshCount,
                    parameters: vec![("nREFI", config.timing.refi)],
                    first: last,
                    second: (n, *c),
                    gap: 0,
                    need: 0,
                    detail: format!("{done} {} by now, {due} were due, and {owed} may be owed", kind.name()),
                });
                break;
            }
            if c.command == kind {
                done += 1;
                last = Some((n, *c));
            }
        }
    }
}

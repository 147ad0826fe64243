//! Whether refreshes come often enough.
//!
//! JESD235 and JESD238 let a controller postpone refreshes by up to eight intervals, so what can be checked of a trace
//! is that at no time more than eight are owed. Per-bank refreshes are counted against nREFIpb, and eight of them are
//! eight rounds over the banks.

use super::rule::Rule;
use super::violation::Violation;
use crate::dram::{Command, Config, Issued};

/// Refreshes that may be owed.
const POSTPONED: u64 = 8;

/// Looks at each pseudo-channel that has commands.
pub(super) fn check(config: &Config, trace: &[Issued], order: &[usize], out: &mut Vec<Violation>) {
    let ticks = |clocks: u32| u64::from(clocks) * u64::from(config.tick_multiplier);
    let (all, one) = (ticks(config.timing.refi), ticks(config.timing.refi_pb));
    if all == 0 {
        return;
    }
    for pc in 0..config.org.pseudochannel {
        let mine = order.iter().map(|&n| (n, &trace[n])).filter(|(_, c)| u32::from(c.address.pc) == pc);
        let per_bank = mine.clone().any(|(_, c)| c.command == Command::RefPb);
        let all_bank = mine.clone().any(|(_, c)| c.command == Command::RefAb);
        let (kind, interval, owed) = match per_bank && !all_bank && one > 0 {
            true => (Command::RefPb, one, POSTPONED * u64::from(config.org.banks_per_pc())),
            false => (Command::RefAb, all, POSTPONED),
        };
        let mut done = 0u64;
        let mut last: Option<(usize, Issued)> = None;
        for (n, c) in mine {
            let due = c.tick / interval;
            if due > done.saturating_add(owed) {
                let name = if kind == Command::RefAb { "nREFI" } else { "nREFIpb" };
                out.push(Violation {
                    rule: Rule::RefreshCount,
                    parameters: config.timing.get(name).map(|clocks| (name, clocks)).into_iter().collect(),
                    first: last,
                    second: (n, *c),
                    gap: 0,
                    need: 0,
                    detail: format!(
                        "{done} {} by now, {due} intervals of {interval} ticks have passed and {owed} may be owed",
                        kind.name()
                    ),
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

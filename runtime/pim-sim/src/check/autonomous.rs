//! Traces of units that have a bank to themselves: sequencers beside the banks use no command bus and no data bus of
//! the pseudo-channel, so the rules of these do not bind them. All others do.

use super::{Options, Rule, Violation, check};
use crate::dram::{Command, Config, Issued};

/// Checks what autonomous units of one channel did: each bank by itself for everything that happens in a bank, and
/// activations and refreshes of all banks together.
///
/// Not asked for: the command buses, the data bus, what separates column commands of different banks, and tPPD, which
/// spaces commands on the row bus.
pub fn check_autonomous(config: &Config, trace: &[Issued], options: Options) -> Vec<Violation> {
    let mut out = Vec::new();
    let place = |c: &Issued| (c.address.pc, c.address.bankgroup, c.address.bank);
    let mut banks: Vec<_> = trace.iter().filter(|c| !c.command.is_all_bank()).map(place).collect();
    banks.sort_unstable();
    banks.dedup();
    for bank in banks {
        let of_bank = |c: &&Issued| match c.command.is_all_bank() {
            true => c.address.pc == bank.0,
            false => place(c) == bank,
        };
        let own: Vec<Issued> = trace.iter().filter(of_bank).copied().collect();
        out.extend(check(config, &own, Options { refresh: false, ..options }));
    }
    let shared = |c: &&Issued| matches!(c.command, Command::Act | Command::RefPb) || c.command.is_all_bank();
    let rows: Vec<Issued> = trace.iter().filter(shared).copied().collect();
    // Without PREs banks look open: their state was checked above.
    let rows = check(config, &rows, Options { state: false, ..options });
    out.extend(rows.into_iter().filter(|v| !matches!(v.rule, Rule::RowBus | Rule::CommandBus | Rule::Ppd)));
    out
}

//! Commands of many banks in the order of their ticks.

use crate::dram::Issued;

/// The commands that units issue, of which those are kept that are still needed when all are done. Column commands are
/// by far the most; without a trace it is enough to count them, and the last ones matter to what comes next.
pub struct Commands {
    kept: Vec<Issued>,
    /// The latest column commands, where the others are not kept.
    recent: Vec<Issued>,
    reach: u64,
    all: bool,
    last: u64,
}

/// Recent commands from which on those that are old are dropped.
const MANY: usize = 1 << 13;

impl Commands {
    /// None yet. A command matters to others for `reach` ticks; `all` are to be kept.
    pub fn new(reach: u64, all: bool) -> Commands {
        Commands { kept: Vec::new(), recent: Vec::new(), reach, all, last: 0 }
    }

    /// Takes a command; false: it will not be among those that are handed out, but for the last ones.
    pub fn keeps(&mut self, command: Issued) -> bool {
        self.last = self.last.max(command.tick);
        if self.all || !command.command.is_column() {
            self.kept.push(command);
            return true;
        }
        if self.recent.len() >= MANY && self.recent.len() == self.recent.capacity() {
            self.drop_old();
        }
        self.recent.push(command);
        false
    }

    fn drop_old(&mut self) {
        let old = self.last.saturating_sub(self.reach);
        self.recent.retain(|c| c.tick >= old);
    }

    /// Those that are kept, in the order of their ticks, and whether [`Commands::keeps`] said false to the column
    /// commands among them.
    pub fn by_tick(mut self) -> (Vec<Issued>, bool) {
        self.drop_old();
        let mut commands = self.kept;
        commands.append(&mut self.recent);
        by_tick(&mut commands);
        (commands, !self.all)
    }
}

/// Sorts by ticks, and leaves the order of equal ones. Units issue a command every few ticks, so places are counted
/// tick by tick and nothing is compared; where ticks are far apart, which would take more room than the commands, it is
/// an ordinary sort.
fn by_tick(commands: &mut Vec<Issued>) {
    let ticks = || commands.iter().map(|c| c.tick);
    let (Some(first), Some(last)) = (ticks().min(), ticks().max()) else { return };
    let span = (last - first).saturating_add(1);
    if span / 8 > commands.len() as u64 || commands.len() as u64 > u64::from(u32::MAX) {
        commands.sort_by_key(|c| c.tick);
        return;
    }
    // How many commands come before each tick.
    let mut before = vec![0u32; span as usize + 1];
    commands.iter().for_each(|c| before[(c.tick - first) as usize + 1] += 1);
    let mut sum = 0;
    for n in &mut before {
        sum += *n;
        *n = sum;
    }
    let mut sorted = commands.clone();
    for c in &*commands {
        let at = &mut before[(c.tick - first) as usize];
        sorted[*at as usize] = *c;
        *at += 1;
    }
    *commands = sorted;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dram::{Address, Command};
    use proptest::prelude::*;

    proptest! {
        /// Without all of them, those are there that move rows, and those that still matter.
        #[test]
        fn what_still_matters_is_kept(
            ticks in prop::collection::vec((0u64..5000, any::<bool>()), 1..30_000),
            reach in 1u64..800,
        ) {
            let issued = |(tick, row): &(u64, bool)| Issued {
                tick: *tick,
                command: if *row { Command::Act } else { Command::Rd },
                address: Address::default(),
            };
            let mut some = Commands::new(reach, false);
            let kept = ticks.iter().filter(|t| some.keeps(issued(t))).count();
            prop_assert_eq!(kept, ticks.iter().filter(|t| t.1).count());
            let last = ticks.iter().map(|t| t.0).max().expect("one at least");
            let matters = |t: &&(u64, bool)| t.1 || t.0 + reach >= last;
            let mut wanted: Vec<(u64, bool)> = ticks.iter().filter(matters).copied().collect();
            wanted.sort_unstable();
            let (commands, noted) = some.by_tick();
            prop_assert!(noted && commands.is_sorted_by_key(|c| c.tick));
            let mut got: Vec<(u64, bool)> = commands.iter().map(|c| (c.tick, c.command == Command::Act)).collect();
            got.sort_unstable();
            prop_assert_eq!(got, wanted);
        }

        #[test]
        fn as_a_stable_sort(ticks in prop::collection::vec(100u64..130, 0..60), far in prop::option::of(any::<u64>())) {
            let mut commands: Vec<Issued> = ticks
                .into_iter()
                .chain(far)
                .zip(0..)
                .map(|(tick, row)| (tick, Address { row, ..Address::default() }))
                .map(|(tick, address)| Issued { tick, command: Command::Rd, address })
                .collect();
            let mut wanted = commands.clone();
            wanted.sort_by_key(|c| c.tick);
            by_tick(&mut commands);
            prop_assert_eq!(commands, wanted);
        }
    }
}

//! Commands of many banks in the order of their ticks.

use crate::dram::Issued;

/// Sorts by ticks, and leaves the order of equal ones. Units issue a command every few ticks, so places are counted
/// tick by tick and nothing is compared; where ticks are far apart, which would take more room than the commands, it is
/// an ordinary sort.
pub fn by_tick(commands: &mut Vec<Issued>) {
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

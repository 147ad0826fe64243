//! What commands take at least in whichever order they go: the column rate, the rows of a bank, the activations of a
//! pseudo-channel.

use super::{BoundBy, same_bank};
use crate::dram::{Command, Config};
use rustc_hash::FxHashSet;

/// Distances of commands, in ticks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Distances {
    /// From one column command to the next: of other bank groups (where a file has more there than here, of any), and
    /// of the same one.
    pub short: u64,
    /// See there.
    pub long: u64,
    /// tRC.
    row: u64,
    /// From an ACT to its first use at least.
    opening: u64,
    /// From the last RD, WR of a row to the first use of the next one, which is read or written.
    pub change: [u64; 2],
    /// tFAW.
    pub window: u64,
    /// tRRD_S.
    between: u64,
}

impl Distances {
    pub(super) fn new(config: &Config) -> Distances {
        let t = &config.timing;
        let [read, write] = [Command::Rd, Command::Wr].map(|c| same_bank(config, Command::Act, c));
        let (opening, pre) = (read.min(write), same_bank(config, Command::PrePb, Command::Act));
        Distances {
            short: config.ticks(t.bl.max(t.ccd_s.min(t.ccd_l))),
            long: config.ticks(t.ccd_l),
            row: config.ticks(t.rc),
            opening,
            change: [Command::Rd, Command::Wr].map(|c| same_bank(config, c, Command::PrePb) + pre + opening),
            window: config.ticks(t.faw),
            between: config.ticks(t.rrd_s),
        }
    }
}

/// What a bank has to do.
#[derive(Clone, Copy, Debug, Default)]
struct Bank {
    columns: u64,
    rows: u64,
    /// The row that it had last: most commands are to that one.
    last: Option<u32>,
    /// Reads and writes were there.
    kinds: [bool; 2],
    /// It was opened before it was used.
    opened: bool,
    /// Its first command found its row open.
    found: bool,
    /// Ticks after the step's first until it may open a row, as the steps before have left it.
    ready: u64,
    /// Its commands are for many banks.
    wide: bool,
}

impl Bank {
    fn acts(&self) -> u64 {
        self.rows - u64::from(self.found)
    }
}

/// What the banks of a pseudo-channel have to do.
#[derive(Clone, Debug, Default)]
pub(super) struct AnyOrder {
    banks: Vec<Bank>,
    /// Commands to one bank, by bank group.
    groups: Vec<u64>,
    /// Bank, row.
    rows: FxHashSet<(u32, u32)>,
    /// Of the rows those of commands to many banks.
    wide: u64,
    /// When all banks that had a row open may open one, closed together.
    closed: u64,
    /// The steps before are known.
    known: bool,
}

/// The most that is waited for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Least {
    /// What it is.
    pub by: BoundBy,
    /// Its ticks.
    pub most: u64,
    /// Those of a row that is opened before it or behind it.
    pub first: u64,
    /// Ticks of the column commands alone.
    pub columns: u64,
    /// Ticks of what may still go when a refresh is due, since its rows are open.
    pub going: u64,
}

/// Item `at` of a list, which grows to it.
fn item<T: Clone + Default>(list: &mut Vec<T>, at: u32) -> &mut T {
    let at = at as usize;
    if list.len() <= at {
        list.resize(at + 1, T::default());
    }
    &mut list[at]
}

impl AnyOrder {
    /// When each bank may open a row, and all that had one open together; only the first word counts.
    pub(super) fn ready(&mut self, ticks: impl Iterator<Item = u64>, closed: u64) {
        if std::mem::replace(&mut self.known, true) {
            return;
        }
        self.closed = closed;
        (0..).zip(ticks).for_each(|(bank, ticks)| item(&mut self.banks, bank).ready = ticks);
    }

    /// Rows that commands to many banks were for, each once.
    pub(super) fn wide_rows(&self) -> u64 {
        self.wide
    }

    /// A bank was opened.
    pub(super) fn activated(&mut self, bank: u32) {
        item(&mut self.banks, bank).opened = true;
    }

    /// A column command to a bank of a group; whether it is the row's first.
    pub(super) fn column(&mut self, (bank, group): (u32, u32), row: u32, write: bool, wide: bool) -> bool {
        if !wide {
            *item(&mut self.groups, group) += 1;
        }
        let own = item(&mut self.banks, bank);
        own.columns += 1;
        own.kinds[usize::from(write)] = true;
        own.wide |= wide;
        let before = own.last.replace(row);
        if before == Some(row) {
            return false;
        }
        own.found |= before.is_none() && !own.opened;
        let new = self.rows.insert((bank, row));
        own.rows += u64::from(new);
        self.wide += u64::from(new && wide);
        new
    }

    /// The largest of three: the column commands, which take so many ticks, the bank with most to do, and all
    /// activations, each for so many of them. Before commands to many banks `all` banks are closed, if that is said.
    pub(super) fn bound(&self, d: &Distances, (columns, weight): (u64, u32), all: bool, per_group: u64) -> Least {
        // The last command's distance is to nothing: of both kinds it may be the shorter one.
        let last = if self.groups.iter().any(|n| *n > 0) { d.short } else { d.long };
        let group = self.groups.iter().max().map_or(0, |most| most.saturating_sub(1) * d.long);
        let columns = (columns - last.min(columns)).max(group);
        let used = || self.banks.iter().filter(|b| b.rows > 0);
        // Behind an activation a column command waits for its row; before it, what the steps before left is waited for.
        let opens = |bank: &Bank| d.opening + bank.ready.max(if all && bank.wide { self.closed } else { 0 });
        let closed = used().filter(|b| b.acts() > 0).map(opens).min().unwrap_or(0);
        let open = used().any(|b| b.found);
        let rows = |bank: &Bank| {
            let change = (0..2).filter(|n| bank.kinds[*n]).map(|n| d.change[n]).min().unwrap_or(0);
            let serial = (bank.columns - bank.rows) * d.long + (bank.rows - 1) * change;
            match bank.acts().checked_sub(1).map(|between| between * d.row) {
                None => (serial, 0),
                // Its first row was open.
                Some(acts) if bank.found => (serial.max(acts + d.opening), 0),
                Some(acts) => (serial.max(acts), opens(bank)),
            }
        };
        let all = [
            (BoundBy::Columns, (columns, if open { 0 } else { closed })),
            (BoundBy::Rows, used().map(rows).max_by_key(|(ticks, first)| *ticks + *first).unwrap_or((0, 0))),
            (BoundBy::Activations, self.activations(d, weight).map_or((0, 0), |ticks| (ticks, closed))),
        ];
        let most = all.into_iter().rev().max_by_key(|(_, (ticks, first))| *ticks + *first);
        let (by, (most, first)) = most.unwrap_or((BoundBy::Columns, (columns, 0)));
        // One command of each bank, whose row was opened for it.
        let active = (used().count() as u64 * d.short).max(per_group * d.long);
        let going = d.opening.max(d.long).max(if by == BoundBy::Columns { active } else { 0 });
        Least { by, most, first, columns, going }
    }

    /// All activations: of the rows that were open before the step there are none.
    fn activations(&self, d: &Distances, weight: u32) -> Option<u64> {
        let between = self.banks.iter().filter(|b| b.rows > 0).map(Bank::acts).sum::<u64>().checked_sub(1)?;
        let plain = (between / 4 * d.window).max(between * d.between);
        let weight = u64::from(weight);
        if weight < 2 || self.wide < self.rows.len() as u64 {
            return Some(plain);
        }
        Some(plain.max(between * (weight * d.between).max((weight * d.window).div_ceil(4))))
    }
}

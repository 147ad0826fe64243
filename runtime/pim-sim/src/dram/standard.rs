//! The standards: what sets one family of devices apart from another, as one table.

use super::command::Command;

/// The standard that a device follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standard {
    /// JESD235: an ACT holds the row bus for two clocks, every other command its bus for one.
    Hbm2,
    /// JESD238: an ACT holds the row bus for one and a half clocks, other row commands for half a clock; tPPD.
    Hbm3,
    /// JESD79-4: one command bus, a clock for each command; refresh of whole ranks.
    Ddr4,
    /// JESD79-5: one command bus, two clocks for ACT, RD and WR; tPPD; writes of a bank group are further apart.
    Ddr5,
    /// JESD250: one command bus, a clock for each command; tPPD; refresh of single banks.
    Gddr6,
    /// JESD209-5: one command bus; an activation is two commands (ACT-1, ACT-2), which follow each other here; tRPab,
    /// tPPD; refresh of single banks, tpbR2pbR apart.
    Lpddr5,
}

/// Clocks that commands hold their bus, in half clocks.
struct Held {
    act: u32,
    row: u32,
    column: u32,
}

/// One row of the table of standards.
struct Facts {
    name: &'static str,
    prefetch: u32,
    held: Held,
    one_bus: bool,
    precharges_apart: bool,
    refreshes_banks: bool,
    levels: bool,
}

impl Standard {
    /// All, in the order in which they are listed.
    pub const ALL: [Standard; 6] =
        [Standard::Hbm2, Standard::Hbm3, Standard::Ddr4, Standard::Ddr5, Standard::Gddr6, Standard::Lpddr5];

    #[rustfmt::skip]
    const fn facts(self) -> Facts {
        match self {
            Standard::Hbm2 => Facts {
                name: "HBM2", prefetch: 4, held: Held { act: 4, row: 2, column: 2 },
                one_bus: false, precharges_apart: false, refreshes_banks: true, levels: true,
            },
            Standard::Hbm3 => Facts {
                name: "HBM3", prefetch: 8, held: Held { act: 3, row: 1, column: 2 },
                one_bus: false, precharges_apart: true, refreshes_banks: true, levels: true,
            },
            Standard::Ddr4 => Facts {
                name: "DDR4", prefetch: 8, held: Held { act: 2, row: 2, column: 2 },
                one_bus: true, precharges_apart: false, refreshes_banks: false, levels: false,
            },
            Standard::Ddr5 => Facts {
                name: "DDR5", prefetch: 16, held: Held { act: 4, row: 2, column: 4 },
                one_bus: true, precharges_apart: true, refreshes_banks: false, levels: false,
            },
            Standard::Gddr6 => Facts {
                name: "GDDR6", prefetch: 16, held: Held { act: 2, row: 2, column: 2 },
                one_bus: true, precharges_apart: true, refreshes_banks: true, levels: false,
            },
            Standard::Lpddr5 => Facts {
                name: "LPDDR5", prefetch: 16, held: Held { act: 4, row: 2, column: 2 },
                one_bus: true, precharges_apart: true, refreshes_banks: true, levels: false,
            },
        }
    }

    /// The name in configuration files.
    pub const fn name(self) -> &'static str {
        self.facts().name
    }

    /// The standard of that name.
    pub fn from_name(name: &str) -> Option<Standard> {
        Standard::ALL.into_iter().find(|s| s.name() == name)
    }

    /// Columns that one RD or WR moves.
    pub const fn prefetch(self) -> u32 {
        self.facts().prefetch
    }

    /// Whether all commands of a channel share one bus. Devices of high-bandwidth memory have one for rows and one for
    /// columns.
    pub const fn one_bus(self) -> bool {
        self.facts().one_bus
    }

    /// The bus of a command: 0 that of rows, or of all commands, 1 that of columns.
    pub const fn bus(self, command: Command) -> usize {
        if command.is_column() && !self.one_bus() { 1 } else { 0 }
    }

    /// Whether precharges keep a distance (tPPD).
    pub const fn precharges_apart(self) -> bool {
        self.facts().precharges_apart
    }

    /// Whether there is a refresh of one bank (REFpb). DDR5 refreshes one bank of every group at once, which is
    /// another command, and not modelled.
    pub const fn refreshes_banks(self) -> bool {
        self.facts().refreshes_banks
    }

    /// Whether a channel may have pseudo-channels and stack identifiers.
    pub const fn has_stack_levels(self) -> bool {
        self.facts().levels
    }

    /// Whether commands begin at half clocks, so that a clock has an even number of ticks.
    pub const fn half_clocks(self) -> bool {
        !self.facts().held.act.is_multiple_of(2)
    }

    /// The commands that it has.
    pub fn commands(self) -> &'static [Command] {
        match self {
            Standard::Hbm3 => &Command::ALL,
            _ if self.refreshes_banks() => &Command::ALL[..9],
            _ => &Command::ALL[..8],
        }
    }

    /// Ticks that each command holds its bus, at so many ticks a clock.
    pub fn command_ticks(self, tick_multiplier: u32) -> [u32; Command::COUNT] {
        let Held { act, row, column } = self.facts().held;
        Command::ALL.map(|command| {
            let halves = match command {
                Command::Act => act,
                c if c.is_column() => column,
                _ => row,
            };
            (halves * tick_multiplier / 2).max(1)
        })
    }
}

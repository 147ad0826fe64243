//! The commands of an HBM device, and sets of them.

/// A DRAM command. The discriminants are the ids of the configuration files (`commands` in their order).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Command {
    /// Opens a row of one bank.
    Act = 0,
    /// Closes one bank.
    PrePb = 1,
    /// Closes all banks of a pseudo-channel.
    PreAb = 2,
    /// Reads one burst of the open row.
    Rd = 3,
    /// Writes one burst of the open row.
    Wr = 4,
    /// Reads one burst, then closes the bank.
    RdA = 5,
    /// Writes one burst, then closes the bank.
    WrA = 6,
    /// Refreshes all banks of a pseudo-channel.
    RefAb = 7,
    /// Refreshes one bank.
    RefPb = 8,
    /// Refresh management of all banks (HBM3).
    RfmAb = 9,
    /// Refresh management of one bank (HBM3).
    RfmPb = 10,
}

impl Command {
    /// How many commands there are; ids are below it.
    pub const COUNT: usize = 11;

    /// All commands in the order of their ids.
    pub const ALL: [Command; Command::COUNT] = [
        Command::Act,
        Command::PrePb,
        Command::PreAb,
        Command::Rd,
        Command::Wr,
        Command::RdA,
        Command::WrA,
        Command::RefAb,
        Command::RefPb,
        Command::RfmAb,
        Command::RfmPb,
    ];

    /// The name in traces and configuration files.
    pub const fn name(self) -> &'static str {
        match self {
            Command::Act => "ACT",
            Command::PrePb => "PREpb",
            Command::PreAb => "PREab",
            Command::Rd => "RD",
            Command::Wr => "WR",
            Command::RdA => "RDA",
            Command::WrA => "WRA",
            Command::RefAb => "REFab",
            Command::RefPb => "REFpb",
            Command::RfmAb => "RFMab",
            Command::RfmPb => "RFMpb",
        }
    }

    /// The command of that name.
    pub fn from_name(name: &str) -> Option<Command> {
        Command::ALL.into_iter().find(|c| c.name() == name)
    }

    /// Whether it uses the column bus (RD, WR and their auto-precharge forms); all others use the row bus.
    pub const fn is_column(self) -> bool {
        matches!(self, Command::Rd | Command::Wr | Command::RdA | Command::WrA)
    }

    /// Whether it moves data from the device.
    pub const fn is_read(self) -> bool {
        matches!(self, Command::Rd | Command::RdA)
    }

    /// Whether it moves data to the device.
    pub const fn is_write(self) -> bool {
        matches!(self, Command::Wr | Command::WrA)
    }

    /// Whether it addresses a whole pseudo-channel and not one bank.
    pub const fn is_all_bank(self) -> bool {
        matches!(self, Command::PreAb | Command::RefAb | Command::RfmAb)
    }
}

/// A set of commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct CommandSet(u16);

impl CommandSet {
    /// The set of these commands.
    pub const fn of(commands: &[Command]) -> CommandSet {
        let mut bits = 0;
        let mut i = 0;
        while i < commands.len() {
            bits |= 1 << commands[i] as u16;
            i += 1;
        }
        CommandSet(bits)
    }

    /// Whether the command is in the set.
    pub const fn contains(self, command: Command) -> bool {
        self.0 & (1 << command as u16) != 0
    }

    /// Adds a command.
    pub fn insert(&mut self, command: Command) {
        self.0 |= 1 << command as u16;
    }

    /// Whether the set has no command.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The commands of the set in the order of their ids.
    pub fn iter(self) -> impl Iterator<Item = Command> {
        Command::ALL.into_iter().filter(move |c| self.contains(*c))
    }
}

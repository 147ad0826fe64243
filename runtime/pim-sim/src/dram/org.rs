//! The organisation of a device: how many of each level there are, and addresses in it.

/// Counts of one channel of a device. Stack identifiers (SIDs) lie between pseudo-channel and bank group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Org {
    /// Independent channels; each has its own command buses.
    pub channel: u32,
    /// Pseudo-channels in a channel; they share its command buses and have data buses of their own.
    pub pseudochannel: u32,
    /// Stack identifiers in a pseudo-channel; 1 where the device has none.
    pub sid: u32,
    /// Bank groups in a SID.
    pub bankgroup: u32,
    /// Banks in a bank group.
    pub bank: u32,
    /// Rows in a bank.
    pub row: u32,
    /// Columns in a row, each `dq` bits wide. Traces count bursts: see [`Org::bursts_per_row`].
    pub column: u32,
    /// Data pins of a pseudo-channel.
    pub dq: u32,
    /// Width of a pseudo-channel in bits.
    pub channel_width: u32,
    /// Density in Mb, for reports only.
    pub density: u32,
    /// Columns that one RD or WR moves (the prefetch: 4 in HBM2, 8 in HBM3).
    pub burst_length: u32,
}

impl Org {
    /// The most pseudo-channels of a channel.
    pub const MAX_PSEUDOCHANNELS: u32 = 16;
    /// The most banks of a pseudo-channel.
    pub const MAX_BANKS: u32 = 1024;

    /// Bank groups of a pseudo-channel over all its SIDs. Traces number bank groups so, the SID being the quotient by
    /// [`Org::bankgroup`].
    pub fn bankgroups_per_pc(&self) -> u32 {
        self.sid * self.bankgroup
    }

    /// Banks of a pseudo-channel.
    pub fn banks_per_pc(&self) -> u32 {
        self.sid * self.bankgroup * self.bank
    }

    /// Bursts in a row: the columns that traces count.
    pub fn bursts_per_row(&self) -> u32 {
        self.column / self.burst_length
    }

    /// Bytes that one RD or WR moves.
    pub fn burst_bytes(&self) -> u32 {
        self.burst_length * self.channel_width / 8
    }

    /// The index of a bank in its pseudo-channel.
    pub fn bank_index(&self, bankgroup: u16, bank: u16) -> u32 {
        u32::from(bankgroup) * self.bank + u32::from(bank)
    }
}

/// Where a burst lies in one channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Address {
    /// Pseudo-channel.
    pub pc: u16,
    /// Bank group in the pseudo-channel, counted over all SIDs.
    pub bankgroup: u16,
    /// Bank in the bank group.
    pub bank: u16,
    /// Row.
    pub row: u32,
    /// Burst in the row.
    pub column: u32,
}

//! Processing units in the memory, and the memory around them.

/// What kind of unit, with the numbers that only this kind has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum UnitKind {
    /// Samples a feature map between its pixels, by TSAMPLE.
    GeoPim(GeoUnit),
    /// Vectors of f16 that a stream of column commands steps.
    HbmPim(HbmUnit),
}

/// What only a GeoPIM unit has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GeoUnit {
    /// Channels of a pixel that are fetched together.
    pub tile_channels: u32,
    /// Halves of the tile buffer: 2 fetch one tile while the other is computed.
    pub buffers: u32,
    /// Queries whose parameters are loaded at once.
    pub parameters: u32,
    /// Bytes of the scratchpad that the banks of a channel share; 0: none.
    pub scratchpad: u32,
    /// Cycles of the address generator for a sample.
    pub coordinate_cycles: u32,
    /// Activations that a command for all banks counts for tRRD and tFAW.
    pub act_weight: u32,
    /// The loops of a query: `chosen` by the compiler, or a word of the stream's `order=`.
    pub order: &'static str,
}

/// What only an HBM-PIM unit has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HbmUnit {
    /// Instructions that its store holds (CRF).
    pub instructions: u32,
    /// Vectors of each of GRF_A and GRF_B.
    pub registers: u32,
    /// Scalars of each of SRF_M and SRF_A.
    pub scalars: u32,
    /// Activations that a command for all even or odd banks counts for tRRD and tFAW.
    pub act_weight: u32,
    /// 1: a fence waits until data has moved; 0: until commands are issued.
    pub fence_data: u32,
}

/// A processing unit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ProcessingUnit {
    /// The kind.
    pub kind: UnitKind,
    /// MHz.
    pub clock: u32,
    /// Elements that it computes at once.
    pub lanes: u32,
    /// Banks that a unit is beside of; it reaches no other.
    pub banks: u32,
}

/// The DRAM as placements see it. The numbers are those of its preset; `rows` may be fewer, where some are reserved.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Device {
    /// Organisation and timing, by the name of a preset of the simulator.
    pub preset: String,
    /// Stacks.
    pub stacks: u32,
    /// Channels of a stack.
    pub channels: u32,
    /// Pseudo-channels of a channel.
    pub pseudo_channels: u32,
    /// Bank groups of a pseudo-channel.
    pub bank_groups: u32,
    /// Banks of a group.
    pub banks: u32,
    /// Rows of a bank that data may have.
    pub rows: u32,
    /// Bursts of a row: its columns.
    pub bursts: u32,
    /// Bytes of a burst.
    pub burst_bytes: u32,
    /// Who is refreshed: a word of the stream's `refresh=`.
    pub refresh: &'static str,
}

impl Device {
    /// Channels of all stacks.
    pub fn all_channels(&self) -> u64 {
        u64::from(self.stacks) * u64::from(self.channels)
    }

    /// Pseudo-channels of all channels: the range of the coordinate `pch`, which counts on from channel to channel.
    pub fn all_pseudo_channels(&self) -> u64 {
        self.all_channels() * u64::from(self.pseudo_channels)
    }

    /// Banks of a pseudo-channel.
    pub fn banks_of_pseudo_channel(&self) -> u64 {
        u64::from(self.bank_groups) * u64::from(self.banks)
    }

    /// Bytes of a row.
    pub fn row_bytes(&self) -> u64 {
        u64::from(self.bursts) * u64::from(self.burst_bytes)
    }

    /// Units of the device, of which each has so many banks.
    pub fn units(&self, unit: &ProcessingUnit) -> u64 {
        self.all_pseudo_channels() * self.banks_of_pseudo_channel() / u64::from(unit.banks)
    }
}

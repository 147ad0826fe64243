//! Processing units in the memory, and the memory around them.

use ptoc_tensor::DType;

/// What kind of unit, with the numbers that only this kind has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum UnitKind {
    /// Samples a feature map between its pixels, by TSAMPLE.
    GeoPim(GeoUnit),
    /// Vectors of f16 that a stream of column commands steps.
    HbmPim(HbmUnit),
    /// Products of a bank's bursts and of a buffer that all units of a channel share, summed across lanes.
    Aim(AimUnit),
    /// Described, and no code is made for it: the host computes beside it, and the interpreter says what kernels mean.
    Described,
}

impl UnitKind {
    /// The word in target files.
    pub const fn name(self) -> &'static str {
        match self {
            UnitKind::GeoPim(_) => "geopim",
            UnitKind::HbmPim(_) => "hbm-pim",
            UnitKind::Aim(_) => "aim",
            UnitKind::Described => "described",
        }
    }

    /// What its adders sum: they are of f16 and no wider, or a tree of f32. `None` where code sums nothing.
    pub const fn adders(self) -> Option<DType> {
        match self {
            UnitKind::HbmPim(_) => Some(DType::F16),
            UnitKind::Aim(_) => Some(DType::F32),
            UnitKind::GeoPim(_) | UnitKind::Described => None,
        }
    }
}

/// An operation of units, of the list from which a target file declares some.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum UnitOperation {
    /// A vector from a bank or register to another.
    Mov,
    /// A vector from a bank to a register.
    Fill,
    /// Sum of two vectors.
    Add,
    /// Product of two vectors.
    Mul,
    /// Product added to a register.
    Mac,
    /// Product added to another vector.
    Mad,
    /// Maximum of a moved vector and 0.
    Relu,
    /// Sum of the products of two vectors, as one number (an adder tree).
    Dot,
    /// A function by interpolation in a table.
    Table,
    /// Bilinear samples of a feature map.
    Sample,
}

impl UnitOperation {
    /// All.
    pub const ALL: [UnitOperation; 10] = {
        use UnitOperation::*;
        [Mov, Fill, Add, Mul, Mac, Mad, Relu, Dot, Table, Sample]
    };

    /// The word in target files.
    pub const fn name(self) -> &'static str {
        match self {
            UnitOperation::Mov => "MOV",
            UnitOperation::Fill => "FILL",
            UnitOperation::Add => "ADD",
            UnitOperation::Mul => "MUL",
            UnitOperation::Mac => "MAC",
            UnitOperation::Mad => "MAD",
            UnitOperation::Relu => "RELU",
            UnitOperation::Dot => "DOT",
            UnitOperation::Table => "TABLE",
            UnitOperation::Sample => "SAMPLE",
        }
    }
}

/// The operations that units have.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct UnitOperations(u16);

impl UnitOperations {
    /// Whether the operation is among them.
    pub const fn has(self, operation: UnitOperation) -> bool {
        self.0 & (1 << operation as u16) != 0
    }

    /// Adds one; false if it was there.
    pub const fn add(&mut self, operation: UnitOperation) -> bool {
        let new = !self.has(operation);
        self.0 |= 1 << operation as u16;
        new
    }

    /// Those that there are.
    pub fn iter(self) -> impl Iterator<Item = UnitOperation> {
        UnitOperation::ALL.into_iter().filter(move |o| self.has(*o))
    }
}

/// How units round.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rounding {
    /// After each operation, so twice for a product that is added.
    Each,
    /// Once for a product that is added.
    Fused,
}

/// Who says when a unit does something.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stepping {
    /// Column commands to all units of a pseudo-channel at once.
    LockStep,
    /// A sequencer of its own.
    Autonomous,
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

/// What only an AiM unit has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AimUnit {
    /// Bytes of the buffer that the units of a channel share.
    pub buffer: u32,
    /// Clocks of the DRAM from a product to its sum in the accumulator.
    pub latency: u32,
    /// Activations that one for all banks counts for tRRD and tFAW.
    pub act_weight: u32,
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
    /// What it does.
    pub operations: UnitOperations,
    /// How it rounds.
    pub rounding: Rounding,
    /// Who steps it.
    pub stepping: Stepping,
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
    /// Numbers of the DRAM that differ from the preset's, by their names in streams.
    pub overrides: Vec<(String, u32)>,
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

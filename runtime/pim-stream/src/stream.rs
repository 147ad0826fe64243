//! The command stream: what a simulator of memory with units in it executes, and nothing else.
//!
//! A [`Stream`] names its device, the parameters of the units, the arrays of the host that it takes and gives, and its
//! steps in order. Each step knows the place in the source that it comes from. The forms are in [`crate::binary`] and
//! [`crate::text`], what a stream must satisfy beyond its form in [`crate::check`]; the reference is `spec/stream.md`.

use crate::driver;
use crate::placement::ArrayPlacement;
use crate::unit::UnitConfig;
use ptoc_tensor::DType;
use std::fmt;

/// A whole stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stream {
    /// The memory.
    pub device: Device,
    /// The units in it.
    pub unit: UnitConfig,
    /// Arrays, by number.
    pub tensors: Vec<TensorDecl>,
    /// Source files; places count them from 1.
    pub files: Vec<String>,
    /// What is done, in this order.
    pub steps: Vec<StreamStep>,
}

/// A memory device: a preset of the simulator and what differs from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device {
    /// The preset's name.
    pub preset: String,
    /// Who is refreshed.
    pub refresh: Refresh,
    /// Counts (`channel`, `row`, ...) and timing parameters in clocks (`nFAW`, ...) that replace the preset's.
    pub overrides: Vec<(String, u32)>,
}

/// Who is refreshed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Refresh {
    /// Nobody.
    #[default]
    Off,
    /// All banks of a pseudo-channel at once.
    All,
    /// One bank after the other.
    Bank,
}

/// What the host has to do with an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It gives it.
    In,
    /// It gets it.
    Out,
    /// Both.
    InOut,
    /// It neither gives nor gets it: the array lives in the memory, and with the host while the stream runs.
    Temp,
}

impl Role {
    /// Whether the stream may say what every element of such an array begins with. Nobody gives it then.
    pub fn may_begin(self) -> bool {
        matches!(self, Role::Out | Role::Temp)
    }
}

/// An array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorDecl {
    /// Its name: a letter or `_`, then letters, digits, `_` and `.`.
    pub name: String,
    /// Type of its elements.
    pub dtype: DType,
    /// Extents, the last one fastest.
    pub shape: Vec<u32>,
    /// Who gives and gets it.
    pub role: Role,
    /// Bits that every element has with the host when the stream begins; of `temp` arrays, and of `out` arrays, which
    /// nobody gives.
    pub fill: Option<u64>,
}

/// A line of a source file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct SourceLine {
    /// Number of the file from 1; 0 is no file.
    pub file: u32,
    /// Line from 1; 0 where the step comes from no line.
    pub line: u32,
}

/// A step and where it comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamStep {
    /// The source.
    pub place: SourceLine,
    /// What is done.
    pub action: Action,
}

/// What a step does. Numbers of arrays index [`Stream::tensors`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// The host writes an array to the memory.
    Write(Transfer),
    /// The host reads an array from the memory.
    Read(Transfer),
    /// The host reads an array from one place and writes it to another.
    Move {
        /// Which.
        tensor: u32,
        /// Where it is.
        from: ArrayPlacement,
        /// Where it goes.
        to: ArrayPlacement,
    },
    /// The array is in the memory from runs before. Takes no time, and stands before all other steps.
    Resident(Transfer),
    /// The host reads elements of one array and writes them as elements of another.
    Relayout(Relayout),
    /// Column commands for units that commands step.
    Exec(Exec),
    /// What units with a sequencer must know beyond the driver's commands.
    Descriptor(Descriptor),
    /// The host packs parameter entries and writes them to the units' banks.
    Params(Params),
    /// A driver's command, 44 bytes on the wire.
    Driver(driver::DriverCommand),
    /// What follows, up to the next one, is done for this kernel of a program. Takes no time.
    Launch(Launch),
    /// The host computes arrays from arrays.
    Host(Host),
}

impl Action {
    /// The words with which its line begins, and its name in reports.
    pub fn name(&self) -> &'static str {
        match self {
            Action::Write(_) => "write",
            Action::Read(_) => "read",
            Action::Move { .. } => "move",
            Action::Relayout(_) => "relayout",
            Action::Exec(_) => "exec",
            Action::Descriptor(_) => "descriptor",
            Action::Params(_) => "params",
            Action::Driver(c) => match c.kind {
                driver::CommandKind::Load => "driver load",
                driver::CommandKind::Execute => "driver execute",
                driver::CommandKind::Read => "driver read",
            },
            Action::Resident(_) => "resident",
            Action::Launch(_) => "launch",
            Action::Host(_) => "host",
        }
    }
}

/// A kernel of the host between those of the units. The stream says when it runs and what it reads and writes of the
/// host's arrays; what it computes only its program knows. Its time is not that of the memory, and is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// The kernel.
    pub kernel: String,
    /// Arrays that the host must have.
    pub reads: Vec<u32>,
    /// Arrays that it has afterwards.
    pub writes: Vec<u32>,
}

/// A kernel of a program, and the arrays that it works on: what the host would have to move if it were the host's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Launch {
    /// The kernel.
    pub kernel: String,
    /// Arrays that it reads.
    pub reads: Vec<u32>,
    /// Arrays that it writes.
    pub writes: Vec<u32>,
}

/// An array between the host and the memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// Which.
    pub tensor: u32,
    /// Where it lies in the memory.
    pub placement: ArrayPlacement,
}

/// A copy with other indices: a nest of loops in which both elements move by fixed distances.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Relayout {
    /// The array that is read.
    pub src: u32,
    /// Where it lies.
    pub from: ArrayPlacement,
    /// The array that is written.
    pub dst: u32,
    /// Where it goes.
    pub to: ArrayPlacement,
    /// The loops, outermost first.
    pub axes: Vec<RelayoutAxis>,
    /// Elements of the source and of the destination with which they begin.
    pub start: [u32; 2],
}

/// A loop of a [`Relayout`]. Elements are counted in C order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RelayoutAxis {
    /// Rounds.
    pub extent: u32,
    /// Elements of the source from round to round.
    pub src: u32,
    /// Elements of the destination.
    pub dst: u32,
}

/// A pseudo-channel of the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pch {
    /// Channel.
    pub channel: u16,
    /// Pseudo-channel in it.
    pub pc: u16,
}

impl fmt::Display for Pch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.channel, self.pc)
    }
}

/// Column commands. The same ones go to each of the pseudo-channels, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exec {
    /// Where, in ascending order.
    pub pchs: Vec<Pch>,
    /// What.
    pub ops: Vec<ColumnOp>,
}

/// The place of a burst in a pseudo-channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Burst {
    /// Bank group.
    pub bg: u16,
    /// Bank in it.
    pub bank: u16,
    /// Row.
    pub row: u32,
    /// Burst in the row.
    pub col: u32,
}

/// An operation of an [`Exec`]. `count` commands go to successive columns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ColumnOp {
    /// Reads.
    Rd {
        /// The first burst.
        at: Burst,
        /// How many.
        count: u32,
    },
    /// Writes.
    Wr {
        /// The first burst.
        at: Burst,
        /// How many.
        count: u32,
        /// What.
        data: Data,
    },
    /// A command to AiM's units.
    Aim(AimOp),
    /// Waits until what came before is done.
    Fence,
    /// What follows comes from this line of the source.
    Line(SourceLine),
}

/// A command to AiM's units: all those of the pseudo-channel take it. Their buffer and accumulators are no rows of the
/// banks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AimOp {
    /// All banks close.
    Close,
    /// A row opens in all banks.
    Open {
        /// Which.
        row: u32,
    },
    /// The host writes bytes of an array to successive bursts of the global buffer; the last one ends in zeros.
    WriteBuffer {
        /// The first burst.
        col: u32,
        /// The array.
        tensor: u32,
        /// The first byte.
        offset: u64,
        /// How many.
        bytes: u32,
    },
    /// The host writes the accumulators: zeros.
    Clear,
    /// Successive bursts of a row, each multiplied with the burst of the global buffer that has its column; the sum of
    /// the lanes is added to the accumulator of the bank.
    Mac {
        /// The row.
        row: u32,
        /// The first burst.
        col: u32,
        /// How many.
        count: u32,
    },
    /// Accumulators become the larger of themselves and 0.
    Relu,
    /// The host reads the accumulators, rounded to bf16: bank after bank, pseudo-channel after pseudo-channel in the
    /// order of the exec.
    Read {
        /// The array that takes them.
        tensor: u32,
        /// Its first byte.
        offset: u64,
        /// The first accumulator that it takes, counted through the exec's pseudo-channels, and how many.
        lanes: (u32, u32),
    },
}

/// Bytes of a burst that the host writes.
pub const BURST: usize = 32;

/// What a write brings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Data {
    /// Nothing of meaning: the units drive the banks.
    Unit,
    /// These bytes, in each of the commands.
    Bytes([u8; BURST]),
    /// Bytes of an array of the host, 32 further on in each command.
    Tensor {
        /// Which.
        tensor: u32,
        /// The first byte.
        offset: u64,
    },
}

/// What a GeoPIM unit has to know of the map and the work. Addresses are bytes of the unit's own
/// bank: `row * bytes of a row + 32 * column + byte`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Descriptor {
    /// The map of the first batch item.
    pub feature: u64,
    /// Rows of pixels.
    pub height: u32,
    /// Pixels of a row.
    pub width: u32,
    /// f16 numbers of a pixel.
    pub channels: u32,
    /// Channels of a tile.
    pub tile_channels: u32,
    /// Batch items; each has its map and an equal share of the units.
    pub batch: u32,
    /// Pixels outside the map.
    pub border: Border,
    /// Attention weights are multiplied into the bilinear ones.
    pub fold: bool,
    /// Order of the loops.
    pub order: LoopOrder,
    /// The first unit that works.
    pub first_unit: u32,
    /// How many work.
    pub units: u32,
    /// Queries of a unit; the last unit of a batch item may have fewer.
    pub queries: u32,
    /// How the map lies in the bank.
    pub map: MapLayout,
    /// Whose maps a bank holds.
    pub items: Items,
}

impl Descriptor {
    /// Bytes from the map of one batch item to that of the next, where a row of a bank has so many: whole rows.
    pub fn item_bytes(&self, row: u64) -> u64 {
        let pixels = u64::from(self.height) * u64::from(self.width);
        match self.map {
            MapLayout::Pixels => (pixels * u64::from(self.channels) * 2).next_multiple_of(row),
            MapLayout::Patches => pixels / 4 * row,
        }
    }

    /// The batch item of unit `n`, counted from the first one that works.
    pub fn item_of(&self, n: u32) -> u32 {
        n / (self.units / self.batch.max(1)).max(1)
    }

    /// How many maps lie in the bank of unit `n` before its own.
    pub fn map_of(&self, n: u32) -> u64 {
        if self.items == Items::All { u64::from(self.item_of(n)) } else { 0 }
    }

    /// Queries of unit `n` if all units together have `queries`: the last unit of an item may have fewer.
    pub fn queries_of(&self, n: u32, queries: u64) -> u64 {
        let each = queries / u64::from(self.batch.max(1));
        let before = u64::from(n % (self.units / self.batch.max(1)).max(1)) * u64::from(self.queries);
        each.saturating_sub(before).min(u64::from(self.queries))
    }
}

/// Whose maps the bank of a unit holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Items {
    /// Those of all batch items, one behind the other.
    #[default]
    All,
    /// That of the unit's own item.
    Own,
}

/// Pixels outside the map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Border {
    /// The nearest one inside.
    Clamp,
    /// Zero.
    Zero,
}

/// Order of the loops of a unit, outermost first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoopOrder {
    /// Samples, tiles, neighbours.
    Tile,
    /// Samples, neighbours, tiles.
    Neighbour,
    /// Tiles, samples, neighbours: few accumulators live at a time, coordinates are computed for every tile.
    Outer,
}

/// How a map of `height x width` pixels lies in a bank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MapLayout {
    /// Pixels follow each other in C order.
    Pixels,
    /// A row of the bank begins with the 2 x 2 pixels of a patch, in C order; patches are in C order.
    Patches,
}

/// Parameter entries, one for each query: [`crate::register::Parameters`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Params {
    /// f16 `[..., 4]`: reference x and y, stride x and y of each query.
    pub geo: u32,
    /// Where a unit's entries go in its bank.
    pub address: u64,
    /// Samples of a query.
    pub samples: u16,
    /// Weights of a unit's first query, and bytes from query to query.
    pub weights: (u64, u32),
    /// Offsets likewise; none where absent.
    pub offsets: Option<(u64, u32)>,
}

/// Table between an enumeration, its names in the text form, and its codes in the binary form (the positions).
macro_rules! names {
    ($type:ident: $($variant:ident = $name:literal),*) => {
        impl $type {
            /// All of them, in the order of their codes.
            pub const ALL: &'static [$type] = &[$($type::$variant),*];

            /// The word of the text form.
            pub fn name(self) -> &'static str {
                match self { $($type::$variant => $name),* }
            }
        }
    };
}

names!(Refresh: Off = "off", All = "all", Bank = "bank");
names!(Role: In = "in", Out = "out", InOut = "inout", Temp = "temp");
names!(Border: Clamp = "clamp", Zero = "zero");
names!(LoopOrder: Tile = "tile", Neighbour = "neighbour", Outer = "outer");
names!(MapLayout: Pixels = "pixels", Patches = "patches");
names!(Items: All = "all", Own = "own");

impl TensorDecl {
    /// The most elements of an array.
    pub const MAX_ELEMENTS: u64 = 1 << 30;
    /// The most dimensions.
    pub const MAX_RANK: usize = 16;

    /// Number of elements, if it is at most [`Self::MAX_ELEMENTS`].
    pub fn elements(&self) -> Option<u64> {
        let n = self.shape.iter().try_fold(1u64, |n, &e| n.checked_mul(u64::from(e)))?;
        (n <= Self::MAX_ELEMENTS).then_some(n)
    }

    /// Its bytes on the host, if they are that few.
    pub fn bytes(&self) -> Option<u64> {
        Some(self.elements()? * self.dtype.size() as u64)
    }

    /// Whether the word is a name.
    pub fn is_name(word: &str) -> bool {
        let head = word.chars().next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
        head && word.len() <= 128 && word.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '.')
    }
}

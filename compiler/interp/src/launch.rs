//! What a run is given and what it gives back.

use super::pipes::{Pipes, Timing};
use ptoc_ir::tile::TensorId;
use ptoc_isa::Loc;
use ptoc_isa::math::Exponential;
use ptoc_layout::Storage;
use ptoc_tensor::DType;
use ptoc_tensor::matrix_unit::SumProfile;
use std::collections::BTreeMap;

/// A tensor argument: contiguous, row-major, little-endian; `bool` is one byte an element.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorArg {
    /// Element type.
    pub dtype: DType,
    /// Extents.
    pub shape: Vec<u64>,
    /// The bytes. May be empty for an `out` argument, and is then made.
    pub data: Vec<u8>,
}

impl TensorArg {
    /// An `out` argument without data.
    pub fn empty(dtype: DType, shape: Vec<u64>) -> TensorArg {
        TensorArg { dtype, shape, data: Vec::new() }
    }
}

/// Arguments and options of a run.
pub struct InterpreterLaunch<'a> {
    /// The arguments in the kernel's order, without scratch tensors.
    pub tensors: Vec<TensorArg>,
    /// Values of the symbolic dimensions, in the kernel's order.
    pub dims: Vec<i64>,
    /// Bits of the scalar arguments, in the kernel's order; `None` takes the default.
    pub scalars: Vec<Option<u64>>,
    /// Limits and switches.
    pub options: Options,
    /// Receives what `print` prints, a line at a time with its newline.
    pub print: &'a mut dyn FnMut(&str),
}

/// Limits and switches of a run.
#[derive(Clone, Debug)]
pub struct Options {
    /// Steps after which the run is ended: one a block, one a statement, and one for every element that an instruction
    /// computes (multiply-adds in a matrix product) and every point of a nest. `None` is no limit.
    pub fuel: Option<u64>,
    /// Bytes that the run may hold.
    pub memory: u64,
    /// Bytes of the memories, for tiles with addresses. A location that is not listed has no limit but `memory`.
    pub capacity: Vec<(Loc, u64)>,
    /// Races between blocks are errors: uses of one element by several of them.
    pub races: bool,
    /// Reading a value that another tile has overwritten is an error. It is reported when the launch ends.
    pub overlap: bool,
    /// By tensor argument: which elements of its buffer are the tensor's, and their coordinates in it. Without an entry
    /// all are, in C order.
    pub storage: Vec<Option<Storage>>,
    /// Runs the pipes of the target at the same time, in some order, and watches their synchronisation. `None`: one
    /// statement after another. The kernel must be physical, and its pipes must have been ordered.
    pub pipes: Option<Pipes>,
    /// Products of these factors are added as a matrix unit adds them, and not by chains of multiply-adds.
    pub matrix_unit: Vec<(DType, SumProfile)>,
    /// The kernel was rewritten for a machine whose units share registers: operands may be in any location.
    pub rewritten: bool,
    /// Exponentials of element-wise instructions.
    pub exponential: Exponential,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            fuel: None,
            memory: 4 << 30,
            capacity: Vec::new(),
            races: true,
            overlap: false,
            storage: Vec::new(),
            pipes: None,
            matrix_unit: Vec::new(),
            rewritten: false,
            exponential: Exponential::Program,
        }
    }
}

/// What happened.
#[derive(Clone, Debug, Default)]
pub struct InterpreterOutcome {
    /// Counts.
    pub stats: Stats,
    /// `out` arguments of which elements were never written.
    pub unwritten: Vec<Unwritten>,
    /// What the model of time says, where [`Pipes::time`] asks it.
    pub timing: Option<Timing>,
}

/// An `out` argument that the kernel did not fill.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unwritten {
    /// The argument.
    pub tensor: TensorId,
    /// How many elements.
    pub count: u64,
    /// The index of the first.
    pub first: Vec<u64>,
}

/// Counts of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Executed instructions by mnemonic; `copy` and `mma` are those along nests.
    pub instructions: BTreeMap<&'static str, u64>,
    /// Blocks that ran.
    pub blocks: u64,
    /// Steps, as [`Options::fuel`] counts them.
    pub steps: u64,
    /// What was read and written of each tensor, by its name.
    pub tensors: BTreeMap<String, TensorBytes>,
    /// Clusters whose blocks loaded anything.
    pub clusters: u64,
    /// Bytes read from tensors.
    pub bytes_read: u64,
    /// Bytes written to tensors.
    pub bytes_written: u64,
    /// Bytes moved from tile to tile by TMOV and `copy`.
    pub bytes_moved: u64,
}

/// Bytes of a tensor that a run moved. Two elements of four bits are one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TensorBytes {
    /// What blocks read.
    pub read: u64,
    /// What of it came from memory: loads that blocks of a cluster share do so once.
    pub fetched: u64,
    /// What blocks wrote.
    pub written: u64,
}

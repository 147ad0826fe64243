//! The function that C calls, as its object and its header both have it.

/// What the function takes, and what it says when it fails.
#[derive(Clone, Debug)]
pub struct Interface {
    /// Its name.
    pub symbol: String,
    /// Its parameters, before the workspace, the threads and the status.
    pub parameters: Vec<Parameter>,
    /// Parameters of the launch whose values are fixed: their slots, and bits.
    pub constants: Vec<(usize, i64)>,
    /// What failed checks of the code are, by row of the module's table.
    pub checks: Vec<CheckText>,
    /// Numbers of what the function itself refuses.
    pub codes: EntryCodes,
}

/// A check that fails.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CheckText {
    /// The number of its code.
    pub number: i32,
    /// What it says, with `{0}` to `{3}` where its numbers go.
    pub message: String,
}

/// Numbers of the codes of what is wrong with a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EntryCodes {
    /// A dimension is negative.
    pub dimension: i32,
    /// An array has more bytes than addresses.
    pub too_large: i32,
    /// A pointer is null.
    pub null: i32,
    /// A pointer is not aligned.
    pub misaligned: i32,
    /// Arrays overlap, one of which is written.
    pub overlap: i32,
    /// The processor lacks instructions.
    pub processor: i32,
    /// The grid has too many blocks.
    pub grid: i32,
    /// The workspace is too small.
    pub workspace: i32,
}

/// A parameter of the function.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Parameter {
    /// Its name.
    pub name: String,
    /// What it is.
    pub kind: ParameterKind,
}

/// What a parameter of the function is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ParameterKind {
    /// A pointer to the first element of an array.
    Tensor {
        /// The tensor's number in the kernel.
        tensor: usize,
        /// Bytes of an element.
        size: u32,
        /// Extents whose product are the elements in memory; `None` where only the kernel knows it.
        extents: Option<Vec<Extent>>,
        /// The kernel writes it.
        written: bool,
    },
    /// A scalar argument.
    Scalar {
        /// Its slot among the parameters of a launch.
        slot: usize,
        /// How it is passed.
        class: ScalarClass,
    },
    /// A size.
    Dimension {
        /// Its slot among the parameters of a launch.
        slot: usize,
    },
}

/// An extent of an array.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Extent {
    /// A number.
    Const(u64),
    /// The dimension in this slot.
    Dimension(usize),
}

/// How a scalar is passed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ScalarClass {
    /// As `float`.
    F32,
    /// As an integer of so many bits, or the bits of a half.
    Int(u32),
}

//! What can be wrong with a `.npy` file.

use crate::TensorError;

/// Why a `.npy` file cannot be read. Every message names what was found, with the numbers.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NpyError {
    /// The file does not start with the magic string.
    #[error("not a .npy file: it starts with {found}, not with `\\x93NUMPY`")]
    NotNpy {
        /// The first bytes, quoted, or what they are known to be.
        found: String,
    },
    /// A format version that does not exist (yet).
    #[error("the file has the .npy version {major}.{minor}; 1.0, 2.0 and 3.0 are known")]
    Version {
        /// First version byte.
        major: u8,
        /// Second version byte.
        minor: u8,
    },
    /// The file ends within its header.
    #[error("the file ends in its header: it has {found} bytes, the header takes {needed}")]
    TruncatedHeader {
        /// Bytes from the start to the end of the header.
        needed: u64,
        /// Bytes in the file.
        found: u64,
    },
    /// The header is no dictionary of the form that NumPy writes.
    #[error("the header is malformed: {reason}")]
    BadHeader {
        /// What is wrong, with the text in question.
        reason: String,
    },
    /// An element type that no kernel argument can have.
    #[error("the elements are `{descr}` ({kind}), which kernels do not have; save {remedy} instead")]
    UnsupportedType {
        /// The type as the header spells it.
        descr: String,
        /// The type in words.
        kind: &'static str,
        /// A Python expression over the array `x` that gives a readable array.
        remedy: String,
    },
    /// The extents are too large.
    #[error("the shape {shape} of {itemsize}-byte elements is too large to address")]
    TooLarge {
        /// The shape as the header spells it.
        shape: String,
        /// Bytes an element.
        itemsize: usize,
    },
    /// There are fewer data bytes than the shape needs.
    #[error("the data end early: {needed} bytes for {signature}, but {found} follow the header")]
    TruncatedData {
        /// Bytes that the shape takes.
        needed: usize,
        /// Bytes after the header.
        found: usize,
        /// Dtype and shape.
        signature: String,
    },
    /// There are more data bytes than the shape takes.
    #[error("{} bytes follow the {needed} bytes of {signature}", .extra.map_or("more".to_owned(), |n| n.to_string()))]
    TrailingData {
        /// Bytes that the shape takes.
        needed: usize,
        /// Bytes beyond those; of a pipe it is only known that there are some.
        extra: Option<usize>,
        /// Dtype and shape.
        signature: String,
    },
    /// The operating system could not read on.
    #[error("{reason}")]
    Io {
        /// The system's words.
        reason: String,
    },
    /// The tensor cannot be allocated.
    #[error(transparent)]
    Tensor(#[from] TensorError),
}

impl NpyError {
    /// The diagnostic code of this error.
    pub fn code(&self) -> &'static str {
        match self {
            NpyError::NotNpy { .. } => "E0701",
            NpyError::Version { .. } => "E0702",
            NpyError::TruncatedHeader { .. } => "E0703",
            NpyError::BadHeader { .. } => "E0704",
            NpyError::UnsupportedType { .. } => "E0705",
            NpyError::TruncatedData { .. } => "E0706",
            NpyError::TrailingData { .. } => "E0707",
            NpyError::TooLarge { .. } => "E0708",
            NpyError::Io { .. } => "E0740",
            NpyError::Tensor(error) => error.code(),
        }
    }
}

impl From<std::io::Error> for NpyError {
    fn from(error: std::io::Error) -> NpyError {
        NpyError::Io { reason: error.to_string() }
    }
}

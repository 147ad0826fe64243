//! Values read from JSON or TOML that know where they stand, and the error that says so.

/// What is wrong with an input text, and where. The caller adds the file's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputError {
    /// What is wrong.
    pub message: String,
    /// Line from 1; 0 where the error is not about a place.
    pub line: usize,
    /// Column from 1, in Unicode scalars; 0 with line 0.
    pub column: usize,
    /// Bytes of the text that are meant.
    pub bytes: std::ops::Range<usize>,
    /// The path in the document, such as `timing_nCK.nFAW`; empty where there is none.
    pub path: String,
    /// What mends it; empty where nothing can be said.
    pub help: String,
}

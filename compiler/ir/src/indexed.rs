//! An index that leads nowhere, in words: the same whoever finds it, the interpreter or machine code.
//!
//! Texts have `{0}`, `{1}`, .. for numbers, as those of checks do.

use ptoc_isa::Oob;

/// Indices of elements, in the order of the table.
pub const ELEMENT: &str = "element";
/// Indices of rows.
pub const ROW: &str = "row";

/// A use of a table in memory by indices.
#[derive(Clone, Copy, Debug)]
pub struct Lookup {
    /// What an index outside means.
    pub oob: Oob,
    /// Scatter: the table is written.
    pub scatters: bool,
    /// What there are indices of: [`ELEMENT`] or [`ROW`].
    pub what: &'static str,
}

impl Lookup {
    /// The fault and its remedy. `{0}` is the index, `{1}` how many there are, `{2}` and `{3}` are row and column of
    /// the index in `tile`.
    pub fn outside(&self, tensor: &str, tile: &str) -> (String, &'static str) {
        let what = self.what;
        let outside = |way: &str| {
            format!("index {{0}} in `{tile}`[{{2}}, {{3}}] is outside the {{1}} {what}s of `{tensor}` that are {way}")
        };
        let empty =
            |to: &str| format!("`{tensor}` has no {what} to {to}, and `{tile}`[{{2}}, {{3}}] asks for index {{0}}");
        match (self.oob, self.scatters) {
            (Oob::Undefined, false) => {
                (outside("gathered from"), "say what an index outside means: `oob = Zero`, `Clamp` or `Wrap`")
            }
            (Oob::Undefined, true) => {
                (outside("scattered to"), "say what an index outside means: `oob = Skip`, `Clamp` or `Wrap`")
            }
            (_, false) => (empty("gather from"), "`oob = Zero` reads zeros from an empty tensor"),
            (_, true) => (empty("scatter to"), "`oob = Skip` writes nothing to an empty tensor"),
        }
    }
}

/// An index in a tile that is none of the valid elements of another one: `{0}` is the index, `{1}` and `{2}` are its
/// row and column.
pub fn outside_tile(index: &str, tile: &str) -> String {
    format!("index {{0}} in `{index}`[{{1}}, {{2}}] is outside the valid elements of `{tile}`")
}

/// An index in a tile that is no row of another one: `{0}` to `{2}` as for [`outside_tile`], `{3}` is how many rows
/// there are.
pub fn outside_rows(index: &str, tile: &str) -> String {
    format!("index {{0}} in `{index}`[{{1}}, {{2}}] is outside the {{3}} rows of `{tile}`")
}

/// The text with these numbers.
pub fn filled(text: &str, numbers: &[i64]) -> String {
    numbers.iter().enumerate().fold(text.to_owned(), |text, (k, n)| text.replace(&format!("{{{k}}}"), &n.to_string()))
}

//! Memory maps: where the tiles of a kernel are and when, as text, JSON, a page or pictures.

pub mod html;
pub mod json;
pub mod lines;
pub mod svg;
pub mod table;

use ptoc_diagnostics::FileId;
use ptoc_placement::MemoryMap;

/// The maps of a kernel, or of the launches of a program.
#[derive(Debug)]
pub struct Maps {
    /// The kernel's or program's name.
    pub name: String,
    /// A program, and no kernel.
    pub program: bool,
    /// Where it is declared.
    pub file: FileId,
    /// In the order of launches.
    pub list: Vec<MemoryMap>,
}

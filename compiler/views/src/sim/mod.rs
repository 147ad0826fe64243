//! Runs of command streams on units in memory: a report as text, and a page.

mod page;
pub mod report;

pub use page::page;

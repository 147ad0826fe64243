//! What is drawn: memory maps, pipes in time, runs on units in memory, layouts, plots, the pages of codes and
//! instructions; as text, JSON, SVG and HTML.
//!
//! Every view is a function of what was found to a text: nothing is compiled here, and no file is read or written. The
//! command line and the language server show the same views.

#![forbid(unsafe_code)]

pub mod explain;
pub mod expression;
pub mod junit;
pub mod layout;
pub mod memory;
pub mod page;
pub mod pipes;
pub mod plot;
mod pto_ids;
#[cfg(feature = "pim")]
pub mod sim;
pub mod trace;

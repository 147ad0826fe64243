//! `ptoc run --step` and `--print-tile`: a debugger over the reference interpreter.
//!
//! Pure but for a [`Console`]. [`statements`] are those of the source; [`points`] say for each statement of IR which of
//! them it belongs to, [`touches`] what it does; [`names`], [`values`] and [`overview`] say what a name holds;
//! [`debugger`] decides where to stop and [`actions`] does what is typed there; [`print_tile`] prints without stopping.

#![forbid(unsafe_code)]

pub mod actions;
pub mod breakpoints;
pub mod command;
pub mod condition;
pub mod debugger;
pub mod events;
pub mod names;
pub mod numbers;
pub mod overview;
pub mod points;
pub mod print_tile;
pub mod slice;
pub mod statements;
pub mod stop;
pub mod touches;
pub mod values;
pub mod watch;
pub mod watcher;

pub use debugger::Debugger;
pub use print_tile::{PrintTile, Prints};
pub use watcher::{DebuggedProgram, Onlookers};

/// Who types and reads.
pub trait Console {
    /// The next line without its line break; `None` at the end of input. `prompt` is for people.
    fn read(&mut self, prompt: &str) -> Option<String>;

    /// Shows text of the session.
    fn write(&mut self, text: &str);

    /// Shows text beside the results, as `print` does.
    fn note(&mut self, text: &str);

    /// Whether it is a person at a terminal.
    fn is_terminal(&self) -> bool;
}

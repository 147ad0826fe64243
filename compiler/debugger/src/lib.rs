//! A debugger over the reference interpreter, for `ptoc run --step`, `--print-tile` and `ptoc dap`.
//!
//! Pure but for a [`Frontend`], of which [`command_line`] is one, over a [`Console`]. [`statements`] are those of the
//! source; [`points`] say for each statement of IR which of them it belongs to, [`touches`] what it does; [`names`],
//! [`values`] and [`overview`] say what a name holds; [`debugger`] decides where to stop, [`replay`] goes back by
//! running again, [`actions`] does what is typed; [`print_tile`] prints without stopping.

#![forbid(unsafe_code)]

pub mod actions;
pub mod breakpoints;
pub mod command;
pub mod command_line;
pub mod completion;
pub mod condition;
pub mod debugger;
pub mod events;
pub mod frontend;
pub mod inspect;
pub mod names;
pub mod numbers;
pub mod overview;
pub mod points;
pub mod print_tile;
pub mod replay;
pub mod slice;
pub mod statements;
pub mod stop;
pub mod touches;
pub mod values;
pub mod watch;
pub mod watcher;

pub use command_line::CommandLine;
pub use completion::Completions;
pub use debugger::Debugger;
pub use frontend::{Frontend, StopReason};
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

    /// What the next line may have, for completion.
    fn offer(&mut self, words: Completions) {
        let _ = words;
    }

    /// Whether that person has asked for the run to stop, since this was asked last.
    fn interrupted(&mut self) -> bool {
        false
    }
}

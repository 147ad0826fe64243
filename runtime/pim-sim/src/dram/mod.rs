//! DRAM: organisation, commands, timing rules, controllers, statistics.

pub mod command;
pub mod config;
pub mod org;
pub mod presets;
pub mod rules;
pub mod timing;
pub mod trace;

pub use command::{Command, CommandSet};
pub use config::Config;
pub use org::{Address, Org};
pub use rules::{Constraint, Level};
pub use timing::{Standard, Timing};
pub use trace::{Issued, Request};

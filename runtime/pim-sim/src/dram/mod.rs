//! DRAM: organisation, commands, timing rules, controllers, statistics.

pub mod command;
pub mod config;
pub mod controller;
pub mod device;
mod frfcfs;
mod inorder;
pub mod mapping;
mod meter;
pub mod org;
pub mod presets;
mod queue;
pub mod rules;
pub mod session;
pub mod standard;
pub mod stats;
pub mod timing;
pub mod trace;

pub use command::{Command, CommandSet};
pub use config::Config;
pub use controller::{ChannelOutcome, Controller, Policy, Refresh, RowPolicy, SimError, simulate, simulate_channels};
pub use device::{Cause, Device};
pub use mapping::Mapping;
pub use org::{Address, Org};
pub use rules::{Constraint, Level};
pub use session::Session;
pub use standard::Standard;
pub use stats::Stats;
pub use timing::Timing;
pub use trace::{Issued, Request};

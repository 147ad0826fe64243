//! Tests of the layout algebra through its public interface.

mod golden;
mod messages;
mod partition;
mod properties;
mod random;
mod symbolic;

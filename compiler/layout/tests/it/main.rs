//! Tests of the layout algebra through its public interface.

mod golden;
mod partition;

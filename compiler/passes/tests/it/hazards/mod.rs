//! Hazards: known kernels, and random ones against brute force.

mod oracle;
mod program;
mod random;
mod schedules;

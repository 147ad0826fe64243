//! Hazards: known kernels, and random ones against brute force and against the interpreter.

mod oracle;
mod phases;
mod program;
mod random;
mod schedules;

//! Integration tests of the parser.

mod programs;
mod report;
mod situations;

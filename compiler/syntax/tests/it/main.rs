//! Integration tests of the parser.

mod emit;
mod limits;
mod pages;
mod programs;
mod properties;
mod report;
mod situations;

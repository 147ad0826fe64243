//! Integration tests of the parser.

mod programs;

//! Tests of the DRAM half: golden data, properties, texts.

mod checker;
mod claims;
mod config;
mod energy;
mod engine_rules;
mod fuzz;
mod golden;
mod mutants;
mod mutation;
mod random;
mod standards;
mod support;
mod texts;
mod timing;

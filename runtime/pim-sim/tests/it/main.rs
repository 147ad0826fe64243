//! Tests of the DRAM half: golden data, properties, texts.

mod checker;
mod config;
mod energy;
mod golden;
mod support;

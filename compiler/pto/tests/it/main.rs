//! Tests of PTO text.

mod contracts;
mod coverage;
mod hostile;
mod pages;
mod rebound;
mod texts;

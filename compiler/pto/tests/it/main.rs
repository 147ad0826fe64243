//! Tests of PTO text.

mod coverage;
mod hostile;
mod pages;
mod texts;

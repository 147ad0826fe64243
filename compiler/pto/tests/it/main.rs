//! Tests of PTO text.

mod hostile;
mod pages;
mod texts;

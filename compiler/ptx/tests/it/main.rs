//! Tests of the crate as others use it.

mod asynchronous;
mod attention;
mod by_hand;
mod clusters;
mod deletions;
mod gemm;
mod model;
mod products;
mod texts;

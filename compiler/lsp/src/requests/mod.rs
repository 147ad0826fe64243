//! One file a family of requests. A request is a function of what the server knows and of its parameters.

pub mod actions;
pub mod calls;
pub mod complete;
pub mod diagnose;
pub mod formatting;
pub mod hints;
pub mod hover;
pub mod lens;
pub mod links;
pub mod navigate;
pub mod pto;
pub mod rename;
pub mod signature;
pub mod structure;
pub mod symbols;
pub mod tokens;
pub mod views;

//! One file a family of requests. A request is a function of what the server knows and of its parameters.

pub mod actions;
pub mod calls;
pub mod formatting;
pub mod hover;
pub mod links;
pub mod navigate;
pub mod rename;
pub mod structure;
pub mod symbols;
pub mod tokens;

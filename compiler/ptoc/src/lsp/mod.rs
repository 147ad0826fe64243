//! `ptoc lsp`: the language server. Editors speak the Language Server Protocol 3.17 with it over standard input and output.
//!
//! [`Server`] is a function from messages to messages and does no I/O but for imported files; [`stdio`] carries the messages. The
//! analysis is that of `ptoc check`, so an editor shows what the command line says. Types of the protocol are met in
//! [`to_proto`] and in the requests' own files only.

mod analysis;
mod documents;
mod hover;
mod position;
mod server;
pub mod stdio;
mod symbols;
mod to_proto;

pub use server::{Failure, Server};

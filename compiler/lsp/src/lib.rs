//! `ptoc lsp`: the language server. Editors speak the Language Server Protocol 3.17 with it over standard input and
//! output.
//!
//! [`Server`] is a function from messages to messages and does no I/O but for files that are imported or in the
//! workspace; [`stdio`] carries the messages, and has analyses made beside the conversation ([`work`]). The analysis is
//! that of `ptoc check`, so an editor shows what the command line says. [`requests`] has a file for each family of
//! requests, [`server`] their table; what they work on is the [`world::World`], seen from one text as a
//! [`context::Context`].

#![forbid(unsafe_code)]

mod analysis;
mod brackets;
mod cache;
mod capabilities;
mod client;
mod context;
mod cursor;
mod documents;
mod failure;
mod places;
mod position;
mod reply;
mod requests;
mod server;
mod settings;
pub mod stdio;
mod to_proto;
mod work;
mod world;

pub use failure::Failure;
pub use reply::Reply;
pub use server::{Message, Pace, Server};

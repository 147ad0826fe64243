//! Modules and names: what the files of a compilation declare, and what each name in them stands for.
//!
//! [`Modules::load`] parses a file and its imports, [`check_names`] resolves every name, also in code that nothing
//! instantiates, and [`index`] holds every occurrence, for editors. All of it is pure, and nothing is evaluated.

#![forbid(unsafe_code)]

mod atoms;
pub mod builtins;
pub mod foreign;
mod functions;
pub mod index;
mod launched;
mod layout_codes;
mod library;
mod modules;
pub mod pto_tile;
pub mod resolve;
pub mod scopes;

pub use atoms::{EXAMPLES as FIELD_EXAMPLES, atom, standard as standard_atoms, standard_families};
pub use builtins::{FUNCTION_NAMES, SyncFn, WORD_NAMES};
pub use foreign::spelled_otherwise;
pub use functions::{ATTRIBUTES, FUNCTIONS, FunctionDoc, reference};
pub use launched::launched;
pub use layout_codes::code as layout_code;
pub use library::{Exported, UsePlace, exported, library};
pub use modules::{ItemId, Loader, Module, ModuleId, Modules, NoImports, Tree, item_name};
pub use resolve::check as check_names;

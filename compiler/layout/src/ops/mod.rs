//! The operations that have a name in the language and on the command line: one table.

use crate::{Cx, Result, Value};

/// An operation.
pub struct Op {
    /// The name that authors write.
    pub name: &'static str,
    /// How it is called: `composition(A, B)`.
    pub usage: &'static str,
    /// One sentence.
    pub doc: &'static str,
    /// Least and greatest number of arguments.
    pub arity: (usize, usize),
    /// Evaluates it. The number of arguments is right.
    pub eval: fn(&Cx, &[Value]) -> Result<Value>,
}

/// Every operation, by topic: a file's operations are one slice of it.
pub static TABLES: &[&[Op]] = &[crate::picture::OPS];

/// Every operation.
pub fn all() -> impl Iterator<Item = &'static Op> {
    TABLES.iter().copied().flatten()
}

/// The operation called `name`.
pub fn find(name: &str) -> Option<&'static Op> {
    all().find(|op| op.name == name)
}

//! Where in the source's scopes the statements of a kernel come from. Functions are inlined and loops over lists are
//! unrolled, so a place in the text may stand for several; a debugger wants to know which.

use super::{Op, Value};
use cranelift_entity::SecondaryMap;
use ptoc_diagnostics::Span;
use std::cell::Cell;
use std::rc::Rc;

/// A cell that holds the number of the scope whose text is being translated. Whoever opens and closes scopes sets it.
pub type ScopeCell = Rc<Cell<u32>>;

/// The scope of every statement, by what identifies it in all later forms of the kernel: the value that it defines, or
/// else its span and how many of that span came before it.
#[derive(Clone, Debug, Default)]
pub struct Trail {
    /// Scopes of values (also of loops' indices, which no statement defines).
    pub values: SecondaryMap<Value, u32>,
    /// Span and scope of each statement that defines no value, in the order in which they were emitted: one that has
    /// regions comes after those in them. Checks, which passes add too, are not among them.
    pub statements: Vec<(Span, u32)>,
}

impl Trail {
    /// Whether it is one of those in [`Trail::statements`].
    pub fn lists(op: &Op) -> bool {
        op.def().is_none() && !matches!(op, Op::Check { .. })
    }

    pub(super) fn note(&mut self, op: &Op, span: Span, scope: u32) {
        match op.def() {
            Some(value) => self.values[value] = scope,
            None if Trail::lists(op) => self.statements.push((span, scope)),
            None => {}
        }
    }
}

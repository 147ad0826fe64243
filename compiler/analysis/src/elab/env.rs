//! Names in scope while elaborating: lexical blocks inside functions that see only items outside.

use crate::value::Val;
use ptoc_diagnostics::Span;
use ptoc_ir::tile::{Ty, Var};
use ptoc_syntax::ast::Name;

/// What a name stands for.
#[derive(Clone, Debug)]
pub(crate) enum Binding {
    /// A value that does not change (a tile is storage whose contents may).
    Let(Val),
    /// A mutable scalar in IR.
    Var(Var, Ty),
}

/// A frame is a function body; blocks nest in it.
#[derive(Default)]
pub(crate) struct Env {
    frames: Vec<Vec<Vec<(Name, Binding, Span)>>>,
}

impl Env {
    /// Enters a function (or kernel): outer locals become invisible.
    pub fn push_frame(&mut self) {
        self.frames.push(vec![Vec::new()]);
    }

    /// Leaves it.
    pub fn pop_frame(&mut self) {
        self.frames.pop();
    }

    /// Enters a block.
    pub fn push(&mut self) {
        self.frames.last_mut().expect("in a frame").push(Vec::new());
    }

    /// Leaves it.
    pub fn pop(&mut self) {
        self.frames.last_mut().expect("in a frame").pop();
    }

    /// Binds a name in the innermost block.
    pub fn define(&mut self, name: Name, binding: Binding, span: Span) {
        let frame = self.frames.last_mut().expect("in a frame");
        frame.last_mut().expect("in a block").push((name, binding, span));
    }

    /// Binds a name in the outermost block of the function.
    pub fn define_outer(&mut self, name: Name, binding: Binding, span: Span) {
        self.frames.last_mut().expect("in a frame")[0].push((name, binding, span));
    }

    /// The innermost binding of `name`, with the place of its definition.
    pub fn get(&self, name: &str) -> Option<(&Binding, Span)> {
        let frame = self.frames.last()?;
        frame.iter().rev().find_map(|s| s.iter().rev().find(|(n, ..)| n == name).map(|(_, b, s)| (b, *s)))
    }
}

//! Names in scope while elaborating: lexical blocks inside functions that see only items outside.

use crate::value::Val;
use ptoc_diagnostics::Span;
use ptoc_ir::tile::{ScopeCell, Ty, Var};
use ptoc_syntax::ast::Name;

/// What a name stands for.
#[derive(Clone, Debug)]
pub(crate) enum Binding {
    /// A value that does not change (a tile is storage whose contents may).
    Let(Val),
    /// A mutable scalar in IR.
    Var(Var, Ty),
}

/// A block once it has been entered, kept for the debugger.
#[derive(Default)]
pub(crate) struct Entered {
    /// The block around it, or the caller's; the outermost is its own.
    pub parent: u32,
    /// The function, if this is the body of one, and where it is called.
    pub call: Option<(Name, Span)>,
    /// All that was defined, in order.
    pub names: Vec<(Name, Binding, Span)>,
}

/// A frame is a function body; blocks nest in it.
pub(crate) struct Env {
    frames: Vec<Vec<Scope>>,
    entered: Vec<Entered>,
    /// Number of the innermost block among `entered`, for all who translate text.
    current: ScopeCell,
}

/// A block that is open.
struct Scope {
    id: u32,
    names: Vec<(Name, Binding, Span)>,
}

impl Env {
    /// Keeps `current` at the number of the innermost block.
    pub fn new(current: ScopeCell) -> Env {
        Env { frames: Vec::new(), entered: vec![Entered::default()], current }
    }

    /// Enters a function (or kernel): outer locals become invisible.
    pub fn push_frame(&mut self) {
        let scope = self.enter(None);
        self.frames.push(vec![scope]);
    }

    /// Enters a function that is called there.
    pub fn push_call(&mut self, function: Name, span: Span) {
        let scope = self.enter(Some((function, span)));
        self.frames.push(vec![scope]);
    }

    fn enter(&mut self, call: Option<(Name, Span)>) -> Scope {
        let id = self.entered.len() as u32;
        self.entered.push(Entered { parent: self.current.get(), call, names: Vec::new() });
        self.current.set(id);
        Scope { id, names: Vec::new() }
    }

    fn leave(&mut self, outermost: Option<u32>) {
        if let Some(id) = outermost {
            self.current.set(self.entered[id as usize].parent);
        }
    }

    /// Leaves it.
    pub fn pop_frame(&mut self) {
        let frame = self.frames.pop();
        self.leave(frame.and_then(|f| f.first().map(|s| s.id)));
    }

    /// Enters a block.
    pub fn push(&mut self) {
        let scope = self.enter(None);
        self.frames.last_mut().expect("in a frame").push(scope);
    }

    /// Leaves it.
    pub fn pop(&mut self) {
        let scope = self.frames.last_mut().expect("in a frame").pop();
        self.leave(scope.map(|s| s.id));
    }

    /// Binds a name in the innermost block.
    pub fn define(&mut self, name: Name, binding: Binding, span: Span) {
        let frame = self.frames.last_mut().expect("in a frame");
        let scope = frame.last_mut().expect("in a block");
        self.entered[scope.id as usize].names.push((name.clone(), binding.clone(), span));
        scope.names.push((name, binding, span));
    }

    /// Binds a name in the outermost block of the function.
    pub fn define_outer(&mut self, name: Name, binding: Binding, span: Span) {
        let scope = &mut self.frames.last_mut().expect("in a frame")[0];
        self.entered[scope.id as usize].names.push((name.clone(), binding.clone(), span));
        scope.names.push((name, binding, span));
    }

    /// The innermost binding of `name`, with the place of its definition.
    pub fn get(&self, name: &str) -> Option<(&Binding, Span)> {
        let frame = self.frames.last()?;
        let find = |s: &Scope| s.names.iter().rev().position(|(n, ..)| n == name).map(|k| s.names.len() - 1 - k);
        let (scope, at) = frame.iter().rev().find_map(|s| Some((s, find(s)?)))?;
        let (_, binding, span) = &scope.names[at];
        Some((binding, *span))
    }

    /// The blocks that were entered so far.
    pub fn entered(&self) -> &[Entered] {
        &self.entered
    }

    /// All blocks in the order in which they were entered; number 0 is around all of them.
    pub fn take_entered(&mut self) -> Vec<Entered> {
        std::mem::take(&mut self.entered)
    }
}

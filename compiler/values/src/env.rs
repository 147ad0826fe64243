//! Names in scope while elaborating: lexical blocks inside functions that see only items outside.

use crate::value::Val;
use ptoc_diagnostics::Span;
use ptoc_ir::tile::{ScopeCell, Ty, Var};
use ptoc_syntax::ast::Name;
use rustc_hash::FxHashMap;

/// What a name stands for.
#[derive(Clone, Debug)]
pub enum Binding {
    /// A value that does not change (a tile is storage whose contents may).
    Let(Val),
    /// A mutable scalar in IR.
    Var(Var, Ty),
}

/// A block once it has been entered, kept for the debugger.
#[derive(Default)]
pub struct Entered {
    /// The block around it, or the caller's; the outermost is its own.
    pub parent: u32,
    /// The function, if this is the body of one, and where it is called.
    pub call: Option<(Name, Span)>,
    /// All that was defined, in order.
    pub names: Vec<(Name, Binding, Span)>,
}

/// A frame is a function body; blocks nest in it.
pub struct Env {
    frames: Vec<Vec<Scope>>,
    /// Where each name is bound, the innermost binding last.
    places: FxHashMap<Name, Vec<Bound>>,
    entered: Vec<Entered>,
    /// Number of the innermost block among `entered`, for all who translate text.
    current: ScopeCell,
}

/// Where a name is bound: number of the frame, of the block in it, and of the definition there.
type Bound = (usize, usize, usize);

/// A call of a function whose body is being translated.
pub struct Call<'e> {
    /// The function.
    pub function: &'e Name,
    /// The place of the call.
    pub span: Span,
    /// What its parameters stand for, with what its body defines.
    pub names: &'e [(Name, Binding, Span)],
}

/// A block that is open.
struct Scope {
    id: u32,
    names: Vec<(Name, Binding, Span)>,
}

impl Env {
    /// Keeps `current` at the number of the innermost block.
    pub fn new(current: ScopeCell) -> Env {
        Env { frames: Vec::new(), places: FxHashMap::default(), entered: vec![Entered::default()], current }
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
        frame.iter().flatten().for_each(|scope| self.unbind(scope, (self.frames.len(), 0)));
        self.leave(frame.and_then(|f| f.first().map(|s| s.id)));
    }

    /// Enters a block.
    pub fn push(&mut self) {
        let scope = self.enter(None);
        self.frames.last_mut().expect("in a frame").push(scope);
    }

    /// Leaves it.
    pub fn pop(&mut self) {
        let frame = self.frames.last_mut().expect("in a frame");
        let scope = frame.pop();
        let place = (self.frames.len() - 1, self.frames.last().map_or(0, Vec::len));
        scope.iter().for_each(|scope| self.unbind(scope, place));
        self.leave(scope.map(|s| s.id));
    }

    /// The bindings of a block that is left, and of those inside of it, end: the first of them would be at `(frame,
    /// block)`.
    fn unbind(&mut self, scope: &Scope, (frame, block): (usize, usize)) {
        for (name, ..) in &scope.names {
            if let Some(all) = self.places.get_mut(name) {
                while all.last().is_some_and(|&(f, b, _)| (f, b) >= (frame, block)) {
                    all.pop();
                }
            }
        }
    }

    /// The calls that lead here, the innermost first.
    pub fn calls(&self) -> Vec<Call<'_>> {
        let mut out = Vec::new();
        let mut at = self.current.get();
        loop {
            let scope = &self.entered[at as usize];
            if let Some((function, span)) = &scope.call {
                out.push(Call { function, span: *span, names: &scope.names });
            }
            if scope.parent == at {
                return out;
            }
            at = scope.parent;
        }
    }

    /// Binds a name in the innermost block.
    pub fn define(&mut self, name: Name, binding: Binding, span: Span) {
        let in_frame = self.frames.len() - 1;
        let frame = self.frames.last_mut().expect("in a frame");
        let in_block = frame.len() - 1;
        let scope = frame.last_mut().expect("in a block");
        self.places.entry(name.clone()).or_default().push((in_frame, in_block, scope.names.len()));
        self.entered[scope.id as usize].names.push((name.clone(), binding.clone(), span));
        scope.names.push((name, binding, span));
    }

    /// Binds a name in the outermost block of the function.
    pub fn define_outer(&mut self, name: Name, binding: Binding, span: Span) {
        let in_frame = self.frames.len() - 1;
        let scope = &mut self.frames.last_mut().expect("in a frame")[0];
        let all = self.places.entry(name.clone()).or_default();
        let at = all.partition_point(|&(f, b, _)| (f, b) <= (in_frame, 0));
        all.insert(at, (in_frame, 0, scope.names.len()));
        self.entered[scope.id as usize].names.push((name.clone(), binding.clone(), span));
        scope.names.push((name, binding, span));
    }

    /// The innermost binding of `name`, with the place of its definition.
    pub fn get(&self, name: &str) -> Option<(&Binding, Span)> {
        let last = self.frames.len().checked_sub(1)?;
        let &(_, block, at) = self.places.get(name)?.last().filter(|(frame, ..)| *frame == last)?;
        let (_, binding, span) = &self.frames[last][block].names[at];
        Some((binding, *span))
    }

    /// Gives the innermost binding of `name` another value.
    pub fn assign(&mut self, name: &str, value: Val) {
        let Some(last) = self.frames.len().checked_sub(1) else { return };
        let Some(&(_, block, at)) = self.places.get(name).and_then(|all| all.last()).filter(|b| b.0 == last) else {
            return;
        };
        self.frames[last][block].names[at].1 = Binding::Let(value);
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

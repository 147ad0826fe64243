//! What is known about whether an object has been written.

use std::rc::Rc;

/// One object's state.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum S {
    /// Certainly unwritten.
    No,
    /// Written on some paths.
    Maybe,
    /// Written if each of these loops ran at least once (sorted numbers; not empty).
    Ran(Vec<usize>),
    /// Certainly written.
    Yes,
}

impl S {
    /// The loops that it depends on.
    pub(super) fn loops(&self) -> &[usize] {
        match self {
            S::Ran(loops) => loops,
            _ => &[],
        }
    }

    /// The state for a read that is empty unless the loops of `vacuous` run, and the state that the read leaves behind.
    pub(super) fn split(&self, vacuous: &dyn Fn(usize) -> bool) -> (S, S) {
        let S::Ran(loops) = self else { return (self.clone(), S::Yes) };
        let (left, read): (Vec<usize>, Vec<usize>) = loops.iter().partition(|l| vacuous(**l));
        let state = |loops: Vec<usize>| if loops.is_empty() { S::Yes } else { S::Ran(loops) };
        (state(read), state(left))
    }

    fn join(&self, other: &S) -> S {
        match (self, other) {
            (a, b) if a == b => a.clone(),
            (S::Ran(a), S::Ran(b)) => S::ran(a.iter().chain(b).copied()),
            (S::Yes, S::Ran(a)) | (S::Ran(a), S::Yes) => S::Ran(a.clone()),
            _ => S::Maybe,
        }
    }

    fn ran(loops: impl Iterator<Item = usize>) -> S {
        let mut all: Vec<usize> = loops.collect();
        all.sort_unstable();
        all.dedup();
        S::Ran(all)
    }
}

/// Objects that states share as one, while nothing tells them apart.
const CHUNK: usize = 64;

/// Some objects' states.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Chunk {
    all: Vec<S>,
    /// Some of them depend on loops.
    conditional: bool,
}

impl Chunk {
    fn of(all: Vec<S>) -> Chunk {
        let conditional = all.iter().any(|s| matches!(s, S::Ran(_)));
        Chunk { all, conditional }
    }
}

/// The state of all objects; `None` where control does not come. Copies share what stays the same, so that a path costs
/// what it changes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct InitState(Option<Vec<Rc<Chunk>>>);

impl InitState {
    pub(super) const UNREACHABLE: InitState = InitState(None);

    pub(super) fn start(objects: usize) -> InitState {
        let chunk = |first: usize| Rc::new(Chunk::of(vec![S::No; CHUNK.min(objects - first)]));
        let whole = Rc::new(Chunk::of(vec![S::No; CHUNK]));
        let chunks = (0..objects).step_by(CHUNK);
        InitState(Some(chunks.map(|n| if objects - n >= CHUNK { whole.clone() } else { chunk(n) }).collect()))
    }

    pub(super) fn get(&self, object: usize) -> Option<&S> {
        self.0.as_ref().map(|chunks| &chunks[object / CHUNK].all[object % CHUNK])
    }

    pub(super) fn set(&mut self, object: usize, s: S) {
        if let Some(chunks) = &mut self.0
            && chunks[object / CHUNK].all[object % CHUNK] != s
        {
            let chunk = Rc::make_mut(&mut chunks[object / CHUNK]);
            chunk.conditional |= matches!(s, S::Ran(_));
            chunk.all[object % CHUNK] = s;
        }
    }

    /// The loops on which some object's state depends.
    pub(super) fn loops(&self) -> impl Iterator<Item = usize> {
        let chunks = self.0.iter().flatten().filter(|c| c.conditional);
        chunks.flat_map(|c| c.all.iter().flat_map(|s| s.loops().iter().copied()))
    }

    pub(super) fn join(self, other: InitState) -> InitState {
        match (self.0, other.0) {
            (None, x) | (x, None) => InitState(x),
            (Some(a), Some(b)) => InitState(Some(merged(a, &b, &|x, y| x.join(y)))),
        }
    }

    /// After loop number `this`, which found `self` and left `ran` if it ran at all. `visible` says whether the bounds
    /// of a loop can be named here.
    pub(super) fn after_loop(self, ran: InitState, this: usize, visible: &dyn Fn(usize) -> bool) -> InitState {
        let (before, ran) = match (self.0, ran.0) {
            (None, x) | (x, None) => return InitState(x),
            (Some(before), Some(ran)) => (before, ran),
        };
        InitState(Some(merged(before, &ran, &|e, r| match (e, r) {
            (e, r) if e == r => e.clone(),
            (S::No | S::Maybe, S::Yes) if visible(this) => S::Ran(vec![this]),
            (S::No | S::Maybe, S::Ran(inner)) if visible(this) && inner.iter().all(|&l| visible(l)) => {
                S::ran(inner.iter().copied().chain([this]))
            }
            // What was written stays so, whether the loop ran or not.
            (S::Ran(outer), S::Yes) => S::Ran(outer.clone()),
            (S::Ran(outer), S::Ran(inner)) if inner.iter().all(|&l| visible(l)) => {
                S::ran(outer.iter().chain(inner).copied())
            }
            _ => S::Maybe,
        })))
    }

    /// Forgets dependencies on loops of which the bounds cannot be named any more, or that were not on every path.
    pub(super) fn keep(&mut self, visible: &dyn Fn(usize) -> bool) {
        for chunk in self.0.iter_mut().flatten().filter(|c| c.conditional) {
            let lost = |s: &S| s.loops().iter().any(|&l| !visible(l));
            if chunk.all.iter().any(lost) {
                let kept = chunk.all.iter().map(|s| if lost(s) { S::Maybe } else { s.clone() });
                *chunk = Rc::new(Chunk::of(kept.collect()));
            }
        }
    }
}

/// Both, object by object; `f` of equal states is that state.
fn merged(mut a: Vec<Rc<Chunk>>, b: &[Rc<Chunk>], f: &dyn Fn(&S, &S) -> S) -> Vec<Rc<Chunk>> {
    for (x, y) in a.iter_mut().zip(b) {
        if !Rc::ptr_eq(x, y) && x != y {
            ptoc_diagnostics::work(CHUNK);
            *x = Rc::new(Chunk::of(x.all.iter().zip(&y.all).map(|(p, q)| f(p, q)).collect()));
        }
    }
    a
}

//! What is known about whether an object has been written.

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

/// The state of all objects; `None` where control does not come.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct State(pub(super) Option<Vec<S>>);

impl State {
    pub(super) const UNREACHABLE: State = State(None);

    pub(super) fn start(objects: usize) -> State {
        State(Some(vec![S::No; objects]))
    }

    pub(super) fn get(&self, object: usize) -> Option<&S> {
        self.0.as_ref().map(|all| &all[object])
    }

    pub(super) fn set(&mut self, object: usize, s: S) {
        if let Some(all) = &mut self.0 {
            all[object] = s;
        }
    }

    pub(super) fn join(self, other: State) -> State {
        match (self.0, other.0) {
            (None, x) | (x, None) => State(x),
            (Some(a), Some(b)) => State(Some(a.iter().zip(&b).map(|(x, y)| x.join(y)).collect())),
        }
    }

    /// After loop number `this`, which found `self` and left `ran` if it ran at all. `visible` says whether the bounds
    /// of a loop can be named here.
    pub(super) fn after_loop(self, ran: State, this: usize, visible: &dyn Fn(usize) -> bool) -> State {
        let (Some(before), Some(ran)) = (&self.0, &ran.0) else { return self.join(ran) };
        let merged = before.iter().zip(ran).map(|(e, r)| match (e, r) {
            (e, r) if e == r => e.clone(),
            (S::No | S::Maybe, S::Yes) if visible(this) => S::Ran(vec![this]),
            (S::No | S::Maybe, S::Ran(inner)) if visible(this) && inner.iter().all(|&l| visible(l)) => {
                S::ran(inner.iter().copied().chain([this]))
            }
            // Written already, and still if the loop's own writes depend on something.
            (S::Yes, S::Yes) => S::Yes,
            _ => S::Maybe,
        });
        State(Some(merged.collect()))
    }

    /// Forgets dependencies on loops of which the bounds cannot be named any more, or that were not on every path.
    pub(super) fn keep(&mut self, visible: &dyn Fn(usize) -> bool) {
        for s in self.0.iter_mut().flatten() {
            if s.loops().iter().any(|&l| !visible(l)) {
                *s = S::Maybe;
            }
        }
    }
}

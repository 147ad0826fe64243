//! What each pipe knows to be done.

use ptoc_isa::Pipe;

/// A set of events.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Bits(Vec<u64>);

impl Bits {
    pub fn all(n: usize) -> Bits {
        Bits(vec![u64::MAX; n.div_ceil(64)])
    }

    pub fn none(n: usize) -> Bits {
        Bits(vec![0; n.div_ceil(64)])
    }

    pub fn has(&self, e: usize) -> bool {
        self.0[e / 64] >> (e % 64) & 1 == 1
    }

    pub fn add(&mut self, e: usize) {
        self.0[e / 64] |= 1 << (e % 64);
    }

    pub fn remove(&mut self, e: usize) {
        self.0[e / 64] &= !(1 << (e % 64));
    }

    pub fn union(&mut self, other: &Bits) {
        self.0.iter_mut().zip(&other.0).for_each(|(a, b)| *a |= b);
    }

    pub fn meet(&mut self, other: &Bits) {
        self.0.iter_mut().zip(&other.0).for_each(|(a, b)| *a &= b);
    }

    pub fn minus(&mut self, other: &Bits) {
        self.0.iter_mut().zip(&other.0).for_each(|(a, b)| *a &= !b);
    }

    pub fn fill(&mut self) {
        self.0.fill(u64::MAX);
    }

    /// The events of `self` that `other` has not.
    pub fn beyond<'b>(&'b self, other: &'b Bits) -> impl Iterator<Item = usize> + 'b {
        self.0.iter().zip(&other.0).enumerate().flat_map(|(word, (a, b))| {
            let mut rest = a & !b;
            std::iter::from_fn(move || {
                let bit = rest.checked_ilog2()?;
                rest &= !(1 << bit);
                Some(word * 64 + bit as usize)
            })
        })
    }
}

/// A flag on some way to here.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Up {
    No,
    Yes,
    /// Depends on the way.
    Perhaps,
}

/// Of one element of a flag.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct FlagState {
    pub up: Up,
    /// What was done when it was raised.
    pub knows: Bits,
}

/// The state before a statement, on every way to it. An event is known to a pipe if all its occurrences so far are done
/// before whatever comes next there.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct SyncState {
    /// Before a set on the pipe raises its flag.
    done: Vec<Bits>,
    /// Before the next instruction of the pipe starts.
    start: Vec<Bits>,
    pub flags: Vec<FlagState>,
    /// By pipe, whether it starts early.
    eager: [bool; 7],
}

impl SyncState {
    /// Nothing has happened yet, of `events` events; all flags are down.
    pub fn fresh(events: usize, flags: usize, eager: &[Pipe]) -> SyncState {
        let all = Bits::all(events);
        let mut early = [false; 7];
        eager.iter().for_each(|p| early[*p as usize] = true);
        SyncState {
            done: vec![all.clone(); 7],
            start: vec![all.clone(); 7],
            flags: vec![FlagState { up: Up::No, knows: all }; flags],
            eager: early,
        }
    }

    pub fn start(&self, pipe: Pipe) -> &Bits {
        if self.eager[pipe as usize] { &self.start[pipe as usize] } else { &self.done[pipe as usize] }
    }

    pub fn done(&self, pipe: Pipe) -> &Bits {
        &self.done[pipe as usize]
    }

    /// Event `e` happens on `pipe`: nobody else knows of it.
    pub fn happen(&mut self, e: usize, pipe: Pipe) {
        let flags = self.flags.iter_mut().map(|f| &mut f.knows);
        self.done.iter_mut().chain(&mut self.start).chain(flags).for_each(|k| k.remove(e));
        self.done[pipe as usize].add(e);
    }

    /// What `pipe` starts from here on comes after all of `known`. The issuer makes everybody wait.
    pub fn learn(&mut self, pipe: Pipe, known: &Bits) {
        if pipe == Pipe::S {
            self.done.iter_mut().chain(&mut self.start).for_each(|k| k.union(known));
        } else {
            self.start[pipe as usize].union(known);
            self.done[pipe as usize].union(known);
        }
    }

    /// A barrier of one pipe, or of all.
    pub fn barrier(&mut self, pipe: Option<Pipe>) {
        match pipe {
            Some(p) => self.start[p as usize] = self.done[p as usize].clone(),
            None => self.done.iter_mut().chain(&mut self.start).for_each(Bits::fill),
        }
    }

    /// Both ways lead here.
    pub fn join(&mut self, other: &SyncState) {
        self.done.iter_mut().zip(&other.done).for_each(|(a, b)| a.meet(b));
        self.start.iter_mut().zip(&other.start).for_each(|(a, b)| a.meet(b));
        for (a, b) in self.flags.iter_mut().zip(&other.flags) {
            a.knows.meet(&b.knows);
            if a.up != b.up {
                a.up = Up::Perhaps;
            }
        }
    }
}

/// [`SyncState::join`] where a way may not exist.
pub(super) fn join(a: Option<SyncState>, b: Option<SyncState>) -> Option<SyncState> {
    match (a, b) {
        (Some(mut a), Some(b)) => {
            a.join(&b);
            Some(a)
        }
        (a, None) => a,
        (None, b) => b,
    }
}

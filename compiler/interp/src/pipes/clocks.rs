//! Vector clocks: what is known to be complete when something starts.
//!
//! A *stream* is a pipe of a role. Each keeps a count of what was queued on it; a [`Stamp`] names one of those. What a
//! stream knows is, for every stream, a count up to which everything is complete before the next of its own starts. It
//! learns from what it does itself (unless its pipe is *loose*: it may start something before the one before it is
//! done), from flags and transaction barriers, and from its issuer.
//!
//! Pipe S is the issuer. What it reads is read before it issues anything else, so its reads have a stream of their own
//! that all later work of the role knows. What it writes is seen by other pipes only after a flag from S.

use ptoc_isa::Pipe;
use std::rc::Rc;

/// One thing that a stream did: the `clock`-th, counted from 1.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub(super) struct Stamp {
    pub stream: u32,
    pub clock: u32,
}

/// For every stream, how much of it is complete.
pub(super) type Knowledge = Rc<[u32]>;

/// Streams of a role: its pipes, and the reads of S.
const PER_ROLE: u32 = Pipe::ALL.len() as u32 + 1;

/// The stream of a pipe of a role (0: the kernel itself).
pub(super) fn stream(role: u32, pipe: Pipe) -> u32 {
    role * PER_ROLE + pipe as u32
}

/// The stream of what S reads.
pub(super) fn reads_of(role: u32) -> u32 {
    role * PER_ROLE + PER_ROLE - 1
}

/// Role and pipe of a stream.
pub(super) fn place(stream: u32) -> (u32, Pipe) {
    let pipe = Pipe::ALL.get((stream % PER_ROLE) as usize).copied().unwrap_or(Pipe::S);
    (stream / PER_ROLE, pipe)
}

/// Whether `stamp` is among what is complete.
pub(super) fn knows(knowledge: &[u32], stamp: Stamp) -> bool {
    knowledge[stamp.stream as usize] >= stamp.clock
}

/// Whether everything of `other` is among what is complete.
pub(super) fn knows_all(knowledge: &[u32], other: &[u32]) -> bool {
    knowledge.iter().zip(other).all(|(a, b)| a >= b)
}

/// Adds what `from` knows.
pub(super) fn join(into: &mut [u32], from: &[u32]) {
    for (a, b) in into.iter_mut().zip(from) {
        *a = (*a).max(*b);
    }
}

/// The clocks of a block.
pub(super) struct Clocks {
    /// By stream: how much was queued.
    count: Vec<u32>,
    /// By stream: what is complete when the next of it starts.
    know: Vec<Vec<u32>>,
    /// By role: what is complete when anything starts that is issued from now on.
    issued: Vec<Vec<u32>>,
    /// By pipe, whether it may start something before the one before it is done.
    loose: [bool; Pipe::ALL.len()],
}

impl Clocks {
    pub fn new(roles: u32, loose: &[Pipe]) -> Clocks {
        let streams = (roles * PER_ROLE) as usize;
        let mut is_loose = [false; Pipe::ALL.len()];
        for &pipe in loose.iter().filter(|&&p| p != Pipe::S) {
            is_loose[pipe as usize] = true;
        }
        Clocks {
            count: vec![0; streams],
            know: vec![vec![0; streams]; streams],
            issued: vec![vec![0; streams]; roles as usize],
            loose: is_loose,
        }
    }

    /// Number of streams.
    pub fn streams(&self) -> usize {
        self.count.len()
    }

    /// The issuer of `role` queues something on `pipe`: its stamp, and what is complete when it starts.
    pub fn start(&mut self, role: u32, pipe: Pipe) -> (Stamp, Knowledge) {
        let at = stream(role, pipe) as usize;
        let know = &mut self.know[at];
        join(know, &self.issued[role as usize]);
        let known: Knowledge = Rc::from(&know[..]);
        self.count[at] += 1;
        if !self.loose[pipe as usize] {
            know[at] = self.count[at];
        }
        (Stamp { stream: at as u32, clock: self.count[at] }, known)
    }

    /// S has read, and issues the rest only now.
    pub fn read_by_issuer(&mut self, role: u32) -> Stamp {
        let at = reads_of(role) as usize;
        self.count[at] += 1;
        self.issued[role as usize][at] = self.count[at];
        Stamp { stream: at as u32, clock: self.count[at] }
    }

    /// All that is complete once everything is that the stream has been given.
    pub fn done(&self, role: u32, pipe: Pipe) -> Knowledge {
        let at = stream(role, pipe) as usize;
        let mut known = self.know[at].clone();
        known[at] = self.count[at];
        known.into()
    }

    /// The stream goes on only when all this is complete; where it is S, so does all that is issued from now on.
    pub fn learn(&mut self, role: u32, pipe: Pipe, from: &[u32]) {
        join(&mut self.know[stream(role, pipe) as usize], from);
        if pipe == Pipe::S {
            join(&mut self.issued[role as usize], from);
        }
    }

    /// Nothing later of the pipe starts before all that it has is complete.
    pub fn barrier(&mut self, role: u32, pipe: Pipe) {
        let at = stream(role, pipe) as usize;
        self.know[at][at] = self.count[at];
    }

    /// Nothing that the role issues from now on starts before all that it has issued is complete.
    pub fn barrier_of_all(&mut self, role: u32) {
        for pipe in Pipe::ALL {
            let done = self.done(role, pipe);
            join(&mut self.issued[role as usize], &done);
        }
    }

    /// Everything that the role has issued: the last stamp of each of its pipes.
    pub fn last(&self, role: u32) -> impl Iterator<Item = Stamp> + '_ {
        Pipe::ALL.into_iter().map(move |pipe| {
            let at = stream(role, pipe);
            Stamp { stream: at, clock: self.count[at as usize] }
        })
    }
}

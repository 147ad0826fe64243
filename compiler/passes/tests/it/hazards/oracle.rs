//! What is wrong with a run, by brute force: everything that happens, in program order, with the whole relation of what
//! happens before what.

use super::program::{At, ELEMENTS, EVENTS, P, Trip, When};
use ptoc_isa::{AtomicOp, Pipe};

/// Something that happens: its pipe, what it reads and writes.
struct Event {
    pipe: Pipe,
    touches: Vec<Touch>,
    part: Part,
}

/// How, what, and which element of it.
type Touch = (Kind, char, i64);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Read,
    Write,
    /// The old value is not used.
    Update(AtomicOp),
}

impl Kind {
    fn conflicts(self, other: Kind) -> bool {
        match (self, other) {
            (Kind::Read, Kind::Read) => false,
            (Kind::Update(a), Kind::Update(b)) => a != b,
            _ => true,
        }
    }
}

/// What an event is to the pipe V, where instructions may start before the one before them is done.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Work,
    /// What comes later starts after it.
    Gate,
    /// It comes when all before it is done.
    Announce,
    /// Both.
    Barrier,
}

/// A set of events.
#[derive(Clone, Default)]
struct Bits(Vec<u64>);

impl Bits {
    fn has(&self, n: usize) -> bool {
        self.0.get(n / 64).is_some_and(|w| w >> (n % 64) & 1 == 1)
    }

    fn add(&mut self, n: usize) {
        self.0.resize(self.0.len().max(n / 64 + 1), 0);
        self.0[n / 64] |= 1 << (n % 64);
    }

    fn join(&mut self, other: &Bits) {
        self.0.resize(self.0.len().max(other.0.len()), 0);
        self.0.iter_mut().zip(&other.0).for_each(|(a, b)| *a |= b);
    }
}

#[derive(Default)]
struct Run {
    events: Vec<Event>,
    /// `before[b]` are the events whose end is before the start of event `b`.
    before: Vec<Bits>,
    /// Of each flag: the event that raised it, if it is up; and the last wait.
    up: Vec<Option<usize>>,
    waited: Vec<Option<usize>>,
    /// What the issuer waited for: before everything that is issued later.
    issued: Vec<(usize, usize)>,
    wrong: Vec<&'static str>,
    stuck: bool,
}

/// The mistakes of the program when its dimensions and its argument are these.
pub fn mistakes(program: &[P], dims: [i64; 2], flag: bool) -> Vec<&'static str> {
    let flags = EVENTS.len() * ELEMENTS as usize;
    let mut run = Run { up: vec![None; flags], waited: vec![None; flags], ..Run::default() };
    run.all(program, dims, flag, None);
    if !run.stuck && run.up.iter().any(Option::is_some) {
        run.wrong.push("left up");
    }
    run.wrong.sort_unstable();
    run.wrong.dedup();
    run.wrong
}

impl Run {
    fn all(&mut self, program: &[P], dims: [i64; 2], flag: bool, around: Option<(i64, i64)>) {
        for p in program {
            if self.stuck {
                return;
            }
            self.one(p, dims, flag, around);
        }
    }

    /// A new event on a pipe. It follows what its pipe did, what the issuer waited for, and `after`.
    fn push(&mut self, pipe: Pipe, touches: Vec<Touch>, after: &[usize], part: Part) -> usize {
        let n = self.events.len();
        let mut before = Bits::default();
        let follow = |before: &mut Bits, all: &Vec<Bits>, e: usize| {
            if !before.has(e) {
                before.add(e);
                before.join(&all[e]);
            }
        };
        for (e, event) in self.events.iter().enumerate().rev() {
            let waits = pipe != Pipe::V
                || matches!(part, Part::Announce | Part::Barrier)
                || matches!(event.part, Part::Gate | Part::Barrier);
            // The issuer goes on when it has read.
            let reads =
                event.pipe == Pipe::S && !event.touches.is_empty() && event.touches.iter().all(|t| t.0 == Kind::Read);
            if event.pipe == pipe && waits {
                follow(&mut before, &self.before, e);
            } else if reads {
                // But not what it has written, which an event has to announce.
                before.add(e);
            }
        }
        for &(wait, set) in &self.issued {
            follow(&mut before, &self.before, set);
            before.add(wait);
        }
        for &e in after {
            follow(&mut before, &self.before, e);
        }
        for (e, event) in self.events.iter().enumerate() {
            if before.has(e) {
                continue;
            }
            for (w, tile, k) in &touches {
                if event.touches.iter().any(|(v, t, l)| (t, l) == (tile, k) && w.conflicts(*v)) {
                    self.wrong.push("race");
                }
            }
        }
        self.events.push(Event { pipe, touches, part });
        self.before.push(before);
        n
    }

    fn at(at: At, around: Option<(i64, i64)>) -> i64 {
        match at {
            At::Fixed(n) => n,
            At::Turn(n, m) => (around.map_or(0, |a| a.0) + n).rem_euclid(m),
        }
    }

    fn one(&mut self, p: &P, dims: [i64; 2], flag: bool, around: Option<(i64, i64)>) {
        let at = |a: At| Run::at(a, around);
        use Kind::{Read, Update, Write};
        match p {
            P::Load(a) => drop(self.push(Pipe::Mte2, vec![(Write, 's', at(*a))], &[], Part::Work)),
            P::Work(a, b) => drop(self.push(Pipe::V, vec![(Read, 's', at(*a)), (Write, 'd', at(*b))], &[], Part::Work)),
            P::Fill(a) => drop(self.push(Pipe::V, vec![(Write, 'd', at(*a))], &[], Part::Work)),
            P::Store(a) => drop(self.push(Pipe::Mte3, vec![(Read, 'd', at(*a))], &[], Part::Work)),
            P::Look(a) => drop(self.push(Pipe::S, vec![(Read, 'd', at(*a))], &[], Part::Work)),
            P::Poke(a) => drop(self.push(Pipe::S, vec![(Write, 's', at(*a))], &[], Part::Work)),
            P::Add(a) => {
                let touches = vec![(Read, 'd', at(*a)), (Update(AtomicOp::Add), 'z', 0)];
                self.push(Pipe::Mte3, touches, &[], Part::Work);
            }
            P::Bump(op) => drop(self.push(Pipe::S, vec![(Update(*op), 'z', 0)], &[], Part::Work)),
            P::Fetch(a) => {
                self.push(Pipe::Mte2, vec![(Read, 'z', 0), (Write, 's', at(*a))], &[], Part::Work);
            }
            P::Set(n, a) => {
                let flag = n * ELEMENTS as usize + at(*a) as usize;
                let e = self.push(EVENTS[*n].0, Vec::new(), &[], Part::Announce);
                if self.up[flag].is_some() {
                    self.wrong.push("up");
                } else if self.waited[flag].is_some_and(|w| !self.before[e].has(w)) {
                    self.wrong.push("reused");
                }
                self.waited[flag] = None;
                self.up[flag] = Some(e);
            }
            P::Wait(n, a) => {
                let flag = n * ELEMENTS as usize + at(*a) as usize;
                let Some(set) = self.up[flag].take() else {
                    self.wrong.push("down");
                    self.stuck = true;
                    return;
                };
                let e = self.push(EVENTS[*n].1, Vec::new(), &[set], Part::Gate);
                self.waited[flag] = Some(e);
                if EVENTS[*n].1 == Pipe::S {
                    self.issued.push((e, set));
                }
            }
            P::Barrier(Some(pipe)) => drop(self.push(*pipe, Vec::new(), &[], Part::Barrier)),
            P::Barrier(None) => {
                let all: Vec<usize> = (0..self.events.len()).collect();
                let e = self.push(Pipe::S, Vec::new(), &all, Part::Barrier);
                self.issued.push((e, e));
            }
            P::Loop(trip, body) => {
                let n = match trip {
                    Trip::Dim(d) => dims[*d],
                    Trip::Times(n) => *n,
                };
                for j in 0..n {
                    self.all(body, dims, flag, Some((j, n)));
                }
            }
            P::If(when, body) => {
                let holds = match (when, around) {
                    (When::Argument, _) => flag,
                    (_, None) => true,
                    (When::First, Some((j, _))) => j == 0,
                    (When::NotFirst, Some((j, _))) => j > 0,
                    (When::Last, Some((j, n))) => j + 1 == n,
                    (When::NotLast, Some((j, n))) => j + 1 < n,
                };
                if holds {
                    self.all(body, dims, flag, around);
                }
            }
        }
    }
}

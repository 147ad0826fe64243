//! What threads of a CTA, or of a cluster, know of each other: vector clocks.
//!
//! A thread's time goes on where it lets others know what it has done: it arrives at a barrier, or fences. An
//! asynchronous operation belongs to a *slot*: a phase of an `mbarrier`, a group of bulk stores of a thread, or a group
//! of products of a warp. Its time is the number of that phase or group, since those end in order, and who has waited
//! for one knows those before.
//!
//! Copies and products go through the async proxy. They see what was written through the generic one if a proxy fence
//! lies on the way from the write to them; so a clock has, for each memory, a second column of what has been fenced.
//! That what they write is seen through the generic proxy comes with waiting for them. A load that is ordered before
//! an asynchronous write needs no fence: it has its value.

use super::races::Who;
use std::cell::RefCell;
use std::rc::Rc;

/// Columns of a clock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Column {
    /// What is ordered before.
    Known,
    /// What of it the async proxy sees in shared memory.
    Shared,
    /// And in global memory.
    Global,
}

const COLUMNS: [Column; 3] = [Column::Known, Column::Shared, Column::Global];

/// CTAs of a cluster, and threads of a CTA.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Shape {
    pub(super) ctas: u32,
    pub(super) threads: u32,
}

impl Shape {
    /// The number of a thread among those of its cluster.
    fn number(self, who: Who) -> usize {
        (who.cta % self.ctas.max(1) * self.threads) as usize + who.thread()
    }
}

/// Times of others, as far as they are known.
#[derive(Clone, Debug, Default)]
pub(super) struct Clocks {
    shape: Shape,
    threads: [Vec<u32>; 3],
    slots: Vec<u32>,
}

fn join(into: &mut Vec<u32>, from: &[u32]) {
    if into.len() < from.len() {
        into.resize(from.len(), 0);
    }
    into.iter_mut().zip(from).for_each(|(a, b)| *a = (*a).max(*b));
}

fn meet(into: &mut Vec<u32>, from: &[u32]) {
    into.truncate(from.len());
    into.iter_mut().zip(from).for_each(|(a, b)| *a = (*a).min(*b));
}

impl Clocks {
    fn thread(&self, column: Column, thread: usize) -> u32 {
        self.threads[column as usize].get(thread).copied().unwrap_or(0)
    }

    /// Whether an access is ordered before.
    pub(super) fn knows(&self, who: Who) -> bool {
        let time = match who.slot() {
            Some(slot) => self.slots.get(slot).copied().unwrap_or(0),
            None => self.thread(Column::Known, self.shape.number(who)),
        };
        time >= who.time
    }

    /// Whether there is a proxy fence, too.
    pub(super) fn fenced(&self, column: Column, who: Who) -> bool {
        self.thread(column, self.shape.number(who)) >= who.time
    }

    /// Whether two CTAs are of one cluster.
    pub(super) fn together(&self, cta: u32, other: u32) -> bool {
        cta == other || cta / self.shape.ctas.max(1) == other / self.shape.ctas.max(1)
    }

    /// Takes what the other knows.
    pub(super) fn join(&mut self, other: &Clocks) {
        for n in 0..COLUMNS.len() {
            join(&mut self.threads[n], &other.threads[n]);
        }
        join(&mut self.slots, &other.slots);
    }

    /// Keeps what both know.
    pub(super) fn meet(&mut self, other: &Clocks) {
        for n in 0..COLUMNS.len() {
            meet(&mut self.threads[n], &other.threads[n]);
        }
        meet(&mut self.slots, &other.slots);
    }

    /// Knows of a slot up to a time.
    pub(super) fn ended(&mut self, slot: usize, time: u32) {
        if self.slots.len() <= slot {
            self.slots.resize(slot + 1, 0);
        }
        self.slots[slot] = self.slots[slot].max(time);
    }
}

/// The clocks of a cluster's threads.
#[derive(Debug)]
struct ClusterClocks {
    of: Vec<Rc<Clocks>>,
    /// Of each slot the last operation that goes to shared memory.
    last: Vec<Option<Who>>,
}

/// The clocks of a CTA's threads, among those of its cluster.
#[derive(Clone, Debug)]
pub(super) struct CtaClocks {
    cluster: Rc<RefCell<ClusterClocks>>,
    /// The number of its first thread.
    first: usize,
}

impl ClusterClocks {
    /// A thread begins something that others do not know of.
    fn advance(&mut self, thread: usize) {
        Rc::make_mut(&mut self.of[thread]).threads[Column::Known as usize][thread] += 1;
    }
}

impl CtaClocks {
    /// Of the first CTA of a cluster.
    pub(super) fn new(shape: Shape) -> CtaClocks {
        let threads = (shape.ctas * shape.threads) as usize;
        let first = |thread: usize| {
            let mut clocks = Clocks { shape, threads: std::array::from_fn(|_| vec![0; threads]), slots: Vec::new() };
            clocks.threads[Column::Known as usize][thread] = 1;
            Rc::new(clocks)
        };
        let cluster = ClusterClocks { of: (0..threads).map(first).collect(), last: Vec::new() };
        CtaClocks { cluster: Rc::new(RefCell::new(cluster)), first: 0 }
    }

    /// Of another CTA of the same cluster.
    pub(super) fn of_rank(&self, rank: u32, threads: u32) -> CtaClocks {
        CtaClocks { cluster: self.cluster.clone(), first: (rank * threads) as usize }
    }

    /// What a thread knows.
    pub(super) fn of(&self, thread: usize) -> Rc<Clocks> {
        self.cluster.borrow().of[self.first + thread].clone()
    }

    /// A thread's time.
    pub(super) fn time(&self, thread: usize) -> u32 {
        self.cluster.borrow().of[self.first + thread].thread(Column::Known, self.first + thread)
    }

    /// A new slot.
    pub(super) fn slot(&self) -> usize {
        let last = &mut self.cluster.borrow_mut().last;
        last.push(None);
        last.len() - 1
    }

    /// What a thread tells: what it does from now on is not part of it.
    pub(super) fn release(&self, thread: usize) -> Rc<Clocks> {
        let told = self.of(thread);
        self.cluster.borrow_mut().advance(self.first + thread);
        told
    }

    /// A thread is told.
    pub(super) fn acquire(&self, thread: usize, told: &Clocks) {
        Rc::make_mut(&mut self.cluster.borrow_mut().of[self.first + thread]).join(told);
    }

    /// A thread has waited for a slot.
    pub(super) fn ended(&self, thread: usize, slot: usize, time: u32) {
        Rc::make_mut(&mut self.cluster.borrow_mut().of[self.first + thread]).ended(slot, time);
    }

    /// A proxy fence by a thread, for a memory.
    pub(super) fn fence(&self, thread: usize, column: Column) {
        let cluster = &mut self.cluster.borrow_mut();
        let clocks = Rc::make_mut(&mut cluster.of[self.first + thread]);
        let known = clocks.threads[Column::Known as usize].clone();
        join(&mut clocks.threads[column as usize], &known);
        cluster.advance(self.first + thread);
    }

    /// A barrier of some threads.
    pub(super) fn meet_at(&self, threads: impl Iterator<Item = usize> + Clone) {
        let cluster = &mut self.cluster.borrow_mut();
        let threads = threads.map(|thread| self.first + thread);
        let mut all: Option<Clocks> = None;
        for thread in threads.clone() {
            match &mut all {
                Some(all) => all.join(&cluster.of[thread]),
                None => all = Some((*cluster.of[thread]).clone()),
            }
        }
        let all = Rc::new(all.unwrap_or_default());
        for thread in threads {
            cluster.of[thread] = all.clone();
            cluster.advance(thread);
        }
    }

    /// What every one of some threads knows: what is done for all of them together.
    pub(super) fn common(&self, threads: impl Iterator<Item = usize>) -> Rc<Clocks> {
        let cluster = self.cluster.borrow();
        let mut all: Option<Clocks> = None;
        for thread in threads.map(|thread| self.first + thread) {
            match &mut all {
                Some(all) => all.meet(&cluster.of[thread]),
                None => all = Some((*cluster.of[thread]).clone()),
            }
        }
        Rc::new(all.unwrap_or_default())
    }

    /// An asynchronous operation goes to shared memory.
    pub(super) fn issue(&self, who: Who) {
        if let Some(slot) = who.slot() {
            self.cluster.borrow_mut().last[slot] = Some(who);
        }
    }

    /// An operation that nobody has waited for.
    pub(super) fn unwaited(&self) -> Option<Who> {
        let cluster = self.cluster.borrow();
        let mut all = Clocks::default();
        cluster.of.iter().for_each(|clocks| all.join(clocks));
        cluster.last.iter().flatten().copied().find(|who| !all.knows(*who))
    }
}

//! Executing what was queued in an order that the synchronisation allows.
//!
//! The heads of the queues are executed; each names what must have been executed before it. That was found in program
//! order, so there is always a way, and every order that is taken is one that the machine might take.

use super::Order;
use super::clocks::{Knowledge, Stamp};
use ptoc_diagnostics::Span;
use ptoc_ir::tile::{Op, Tile, Value};
use std::collections::VecDeque;

/// Something queued, with all that its execution depends on.
pub(super) struct Deferred<'k> {
    pub stamp: Stamp,
    pub item: u32,
    /// `None` for synchronisation, which has had its effect.
    pub op: Option<&'k Op>,
    pub span: Span,
    pub knowledge: Knowledge,
    /// The values that it uses, as they were.
    pub values: Vec<(Value, u64)>,
    /// Addresses of the tiles without fixed ones, as they were.
    pub bound: Vec<(Tile, Vec<Option<u64>>)>,
    /// Executed before.
    pub after: Vec<Stamp>,
}

/// What is queued, and what has been executed.
pub(super) struct Schedule<'k> {
    order: Order,
    queues: Vec<VecDeque<Deferred<'k>>>,
    executed: Vec<u32>,
    waiting: usize,
    dice: Dice,
    /// By stream: chances of being chosen, so that seeds have tempers.
    weights: Vec<u64>,
    /// How eagerly anything is executed while issuing, of 8.
    eagerness: u64,
}

/// Queued things before some are executed in any case; a bound on memory.
const MOST: usize = 1 << 16;

impl<'k> Schedule<'k> {
    /// For block number `block`.
    pub fn new(order: Order, streams: usize, block: u32) -> Schedule<'k> {
        let seed = match order {
            Order::Random(seed) => seed,
            _ => 0,
        };
        let mut dice = Dice(seed ^ u64::from(block).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let weights = (0..streams).map(|_| 1 << (2 * dice.below(4))).collect();
        let eagerness = dice.below(8);
        Schedule {
            order,
            queues: (0..streams).map(|_| VecDeque::new()).collect(),
            executed: vec![0; streams],
            waiting: 0,
            dice,
            weights,
            eagerness,
        }
    }

    /// What was just issued was executed with it.
    pub fn ran(&mut self, stamp: Stamp) {
        self.executed[stamp.stream as usize] = stamp.clock;
    }

    /// A wait of the issuer goes by a stamp of its own, and is over when the issuer goes on.
    pub fn seen(&mut self, seen: Stamp, stamp: Stamp) {
        if seen != stamp {
            self.ran(seen);
        }
    }

    pub fn push(&mut self, deferred: Deferred<'k>) {
        self.waiting += 1;
        self.queues[deferred.stamp.stream as usize].push_back(deferred);
    }

    fn is_done(&self, stamp: Stamp) -> bool {
        self.executed[stamp.stream as usize] >= stamp.clock
    }

    fn pop(&mut self, stream: usize) -> Option<Deferred<'k>> {
        let head = self.queues[stream].pop_front()?;
        self.waiting -= 1;
        self.executed[stream] = head.stamp.clock;
        Some(head)
    }

    /// What is executed next so that in the end `goal` is; `None` once it is.
    pub fn toward(&mut self, goal: Stamp) -> Option<Deferred<'k>> {
        if self.is_done(goal) {
            return None;
        }
        if matches!(self.order, Order::Random(_)) {
            return self.any();
        }
        let mut at = goal;
        loop {
            let head = self.queues[at.stream as usize].front()?;
            match head.after.iter().find(|&&s| !self.is_done(s)) {
                Some(&before) => at = before,
                None => return self.pop(at.stream as usize),
            }
        }
    }

    /// Something that may be executed now, by chance.
    fn any(&mut self) -> Option<Deferred<'k>> {
        let ready = |q: &VecDeque<Deferred<'k>>| q.front().is_some_and(|d| d.after.iter().all(|&s| self.is_done(s)));
        let heads: Vec<usize> = (0..self.queues.len()).filter(|&s| ready(&self.queues[s])).collect();
        let total: u64 = heads.iter().map(|&s| self.weights[s]).sum();
        let mut at = self.dice.below(total.max(1));
        for stream in heads {
            match at.checked_sub(self.weights[stream]) {
                Some(rest) => at = rest,
                None => return self.pop(stream),
            }
        }
        None
    }

    /// What is executed between two steps of the issuer.
    pub fn between(&mut self) -> Option<Deferred<'k>> {
        let now = match self.order {
            _ if self.waiting > MOST => true,
            Order::Random(_) => self.dice.below(8) < self.eagerness,
            Order::Program | Order::Late => false,
        };
        if now { self.next() } else { None }
    }

    /// What is executed next at the end of the block. As late as possible means for the demand of the last pipes:
    /// results leave the block as soon as what they need is there.
    pub fn next(&mut self) -> Option<Deferred<'k>> {
        if matches!(self.order, Order::Random(_)) {
            return self.any();
        }
        let last = self.queues.iter().rev().find_map(VecDeque::front)?.stamp;
        self.toward(last)
    }
}

/// SplitMix64.
struct Dice(u64);

impl Dice {
    /// A number below `n`, which is at least 1.
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (x ^ (x >> 31)) % n
    }
}

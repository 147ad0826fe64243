//! Merges of sorted lists: every record finds its rank by itself, which is its number in its own list and how many
//! records of each other list come before it, those of equal value among them if the list stands before its own.
//!
//! The numbers are found by bisection, if all lists are in order. A vote says whether they are. If not, what a merge
//! takes next is still what comes first in order of ranks, once a record that comes before one that precedes it in its
//! list is ranked with that one: it follows it at once. Then records look through the lists one by one.
//!
//! Counts have 32 bits here: what is merged is in tiles.

use crate::dependences::{self, Touched};
use crate::emit::Emit;
use crate::memory::{GpuAddress, Index};
use crate::sorts::{NAN_KEY, RecordShape};
use ptoc_ir::loops::{LTy, Lists, MERGED, MemTy, Merge, Op, Records, Reg, Stride};
use ptoc_ptx::{Arith, Class, Cmp, Op as Ptx, Round, Space, Src, Type, VReg};

/// More records than any tile has.
const LONGEST: u64 = 1 << 28;

/// A list: its first record, and how many it has.
#[derive(Clone, Copy)]
struct List {
    at: GpuAddress,
    shape: RecordShape,
    count: Src,
}

/// How the numbers are found.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Search {
    Bisection,
    Linear,
}

/// A record in registers.
struct Loaded {
    value: VReg,
    /// Its two words, or the bits of each field.
    parts: Vec<VReg>,
}

/// A record, as it is compared with others.
struct Probe {
    /// What comes before it is not less than or equal to the first of these; what does or is equal, to the second.
    bounds: [VReg; 2],
    /// It is NaN, before which nothing comes.
    nan: VReg,
}

/// What is wanted of a merge: the first records of each that is merged, and whether only as many of each list are read.
#[derive(Clone, Copy)]
struct Wanted {
    first: Src,
    of_lists: bool,
}

/// Neighbouring runs of one list.
struct Runs {
    all: List,
    length: Src,
    /// How many there are, if each merge has as many as can be, all of full length.
    whole: Option<u64>,
    /// The first records of each that are wanted, and those of each run that are read, if they are not all.
    wanted: Option<Src>,
    read: Option<Src>,
}

impl Runs {
    fn new(all: List, length: Src, wanted: Option<Wanted>) -> Runs {
        let whole = match (all.count, length) {
            (Src::Imm(count), Src::Imm(length)) if count.is_multiple_of(length * MERGED as u64) => Some(count / length),
            _ => None,
        };
        let read = wanted.filter(|w| w.of_lists).map(|w| w.first);
        Runs { all, length, whole, wanted: wanted.map(|w| w.first), read }
    }
}

/// Where records go.
#[derive(Clone, Copy)]
struct Target {
    at: GpuAddress,
    shape: RecordShape,
}

impl Emit<'_> {
    pub(crate) fn merge_lists(&mut self, m: &Merge) {
        let all = dependences::of(&Op::Merge(Box::new(m.clone())), self.keys());
        self.order(&Touched { reads: all.reads.clone(), ..Touched::default() });
        let d = Target { at: self.origin_of(&m.d), shape: self.record_shape(m.ty, &m.d, m.d_stride, &[]) };
        let lists = m.read().iter().map(|records| self.list(m.ty, records)).collect::<Vec<_>>();
        let wanted = self
            .demands
            .of(m)
            .map(|demand| Wanted { first: self.at_most(demand.records, LONGEST), of_lists: demand.of_lists });
        match m.lists {
            Lists::Each(_) => self.merge_each(&lists, wanted, d),
            Lists::Runs { length, .. } => match self.few_runs(lists[0], length) {
                Some(lists) => self.merge_each(&lists, wanted, d),
                None => {
                    let length = self.run_length(lists[0], length);
                    self.merge_runs(&Runs::new(lists[0], length, wanted), d);
                }
            },
        }
        self.pending = all;
    }

    /// A count in 32 bits, at least `least`.
    fn count(&mut self, reg: Reg, least: u64) -> Src {
        match self.src(reg) {
            Src::Imm(n) => Src::Imm((n as i64).max(least as i64) as u64),
            count => {
                let count = self.b.arith(Arith::Max, Type::S64, &[count, Src::Imm(least)]);
                self.low(count).into()
            }
        }
    }

    /// A count in 32 bits, at most `most`.
    fn at_most(&mut self, reg: Reg, most: u64) -> Src {
        match self.src(reg) {
            Src::Imm(n) => Src::Imm((n as i64).clamp(0, most as i64) as u64),
            count => {
                let count = self.b.arith(Arith::Min, Type::S64, &[count, Src::Imm(most)]);
                let count = self.b.arith(Arith::Max, Type::S64, &[count.into(), Src::Imm(0)]);
                self.low(count).into()
            }
        }
    }

    /// The lesser one of two counts.
    fn lesser(&mut self, a: Src, b: Src) -> Src {
        match (a, b) {
            (Src::Imm(a), Src::Imm(b)) => Src::Imm(a.min(b)),
            _ => {
                let a = if let Src::Reg(reg) = a { reg } else { self.b.mov(Type::U32, a) };
                self.b.arith(Arith::Min, Type::U32, &[a.into(), b]).into()
            }
        }
    }

    /// The length of runs, which is at least 1. What is longer than all records is as long as they are.
    fn run_length(&mut self, all: List, length: Reg) -> Src {
        match self.src(length) {
            Src::Imm(n) => Src::Imm(n.clamp(1, LONGEST)),
            length => {
                let most = match all.count {
                    Src::Reg(count) => self.b.cvt(Type::U64, Type::U32, Round::None, count),
                    count => self.b.mov(Type::U64, count),
                };
                let length = self.b.arith(Arith::Min, Type::S64, &[length, most.into()]);
                let length = self.b.arith(Arith::Max, Type::S64, &[length.into(), Src::Imm(1)]);
                self.low(length).into()
            }
        }
    }

    fn list(&mut self, ty: MemTy, records: &Records) -> List {
        let shape = self.record_shape(ty, &records.at, records.stride, &[]);
        List { at: self.origin_of(&records.at), shape, count: self.count(records.count, 0) }
    }

    /// Runs as lists of their own, if it is known that there are no more than are merged at once.
    fn few_runs(&mut self, all: List, length: Reg) -> Option<Vec<List>> {
        let (Src::Imm(count), length) = (all.count, self.known(length)?.max(1)) else { return None };
        if count > length.saturating_mul(MERGED as u64) {
            return None;
        }
        let firsts = (0..count).step_by(length as usize);
        let lists = firsts.map(|first| {
            let at = self.further(all.at, first as i64 * all.shape.step());
            List { at, count: Src::Imm(length.min(count - first)), ..all }
        });
        Some(lists.collect())
    }

    /// One merge.
    fn merge_each(&mut self, lists: &[List], wanted: Option<Wanted>, d: Target) {
        let first = wanted.map(|w| w.first);
        let lists: Vec<List> = lists
            .iter()
            .map(|list| List { count: first.map_or(list.count, |first| self.lesser(list.count, first)), ..*list })
            .collect();
        let late = self.variable(LTy::Bool, Src::Imm(0));
        for list in &lists {
            let pairs = match list.count {
                Src::Imm(n) => Src::Imm(n.saturating_sub(1)),
                count => {
                    let count = self.b.arith(Arith::Max, Type::U32, &[count, Src::Imm(1)]);
                    self.b.arith(Arith::Sub, Type::U32, &[count.into(), Src::Imm(1)]).into()
                }
            };
            self.each(pairs, &mut |e: &mut Self, n| e.late(*list, n, late));
        }
        self.by_vote(late, &mut |e: &mut Self, search| {
            for (l, list) in lists.iter().enumerate() {
                e.each(list.count, &mut |e: &mut Self, n| {
                    let record = e.loaded(*list, n);
                    let probe = e.probe(*list, n, record.value, search);
                    let rank = e.variable(LTy::I32, n.into());
                    for (o, other) in lists.iter().enumerate().filter(|(o, _)| *o != l) {
                        let bound = probe.bounds[usize::from(o < l)];
                        let found = e.search(*other, bound, search);
                        let nothing = if o > l { Some(probe.nan) } else { None };
                        e.add_rank(rank, found, nothing);
                    }
                    e.move_wanted(*list, &record, d, (rank, rank), first);
                });
            }
        });
    }

    /// Each four neighbouring runs of one list.
    fn merge_runs(&mut self, runs: &Runs, d: Target) {
        let late = self.variable(LTy::Bool, Src::Imm(0));
        let read = match runs.read {
            Some(read) => self.lesser(runs.length, read),
            None => runs.length,
        };
        // Of whole runs as many records as are read stand for all.
        let every = match (runs.whole, runs.all.count, runs.length) {
            (Some(count), Src::Imm(all), Src::Imm(length)) if runs.read.is_some() => {
                debug_assert!(count * length == all, "all runs have full length");
                match read {
                    Src::Imm(read) => Src::Imm(count * read),
                    read => self.b.arith(Arith::MulLo, Type::U32, &[read, Src::Imm(count)]).into(),
                }
            }
            _ => runs.all.count,
        };
        self.each(every, &mut |e: &mut Self, n| {
            let (n, _, own) = e.of_runs(runs, read, n);
            // The last of a run, and of all, has no next one.
            let next = e.b.arith(Arith::Add, Type::U32, &[n.into(), Src::Imm(1)]);
            let within = e.b.arith(Arith::Add, Type::U32, &[own.into(), Src::Imm(1)]);
            let inside = e.b.setp(Cmp::Lt, Type::U32, next, runs.all.count);
            let same = e.b.setp(Cmp::Lt, Type::U32, within, read);
            let pair = e.b.arith(Arith::And, Type::Pred, &[inside.into(), same.into()]);
            let skip = e.b.label();
            e.b.bra_if(pair, false, skip);
            e.late(runs.all, n, late);
            e.b.place(skip);
        });
        self.by_vote(late, &mut |e: &mut Self, search| {
            e.each(every, &mut |e: &mut Self, n| {
                let (n, run, own) = e.of_runs(runs, read, n);
                let skip = e.b.label();
                if runs.read.is_some() && runs.whole.is_none() {
                    let unread = e.b.setp(Cmp::Ge, Type::U32, own, read);
                    e.b.bra_if(unread, true, skip);
                }
                e.merge_of_runs(runs, read, (n, run, own), search, d);
                e.b.place(skip);
            });
        });
    }

    /// The record that the n-th one of those that are read is, its run, and its number there.
    fn of_runs(&mut self, runs: &Runs, read: Src, n: VReg) -> (VReg, VReg, VReg) {
        if runs.read.is_none() || runs.whole.is_none() {
            let (run, own) = self.divided(n, runs.length);
            return (n, run, own);
        }
        let (run, own) = self.divided(n, read);
        (self.b.arith(Arith::MadLo, Type::U32, &[run.into(), runs.length, own.into()]), run, own)
    }

    /// The n-th record of all runs, with its run and its number there. Of each run so many are `read`.
    fn merge_of_runs(&mut self, runs: &Runs, read: Src, (n, run, own): (VReg, VReg, VReg), search: Search, d: Target) {
        let Runs { all, length, .. } = *runs;
        let number = self.b.arith(Arith::And, Type::B32, &[run.into(), Src::Imm(MERGED as u64 - 1)]);
        let first_run = self.b.arith(Arith::Sub, Type::U32, &[run.into(), number.into()]);
        let record = self.loaded(all, n);
        let mine = self.b.arith(Arith::Sub, Type::U32, &[n.into(), own.into()]);
        let list = List { at: self.record(all, mine), ..all };
        let probe = self.probe(list, own, record.value, search);
        let (mut lists, mut bounds, mut nothing) = (Vec::new(), Vec::new(), Vec::new());
        for further in 1..MERGED as u64 {
            let other = self.b.arith(Arith::Add, Type::U32, &[number.into(), Src::Imm(further)]);
            let other = self.b.arith(Arith::And, Type::B32, &[other.into(), Src::Imm(MERGED as u64 - 1)]);
            let before = self.b.setp(Cmp::Lt, Type::U32, other, number);
            bounds.push(self.b.selp(Type::F32, probe.bounds[1], probe.bounds[0], before));
            let behind = self.b.arith(Arith::Not, Type::Pred, &[before.into()]);
            nothing.push(self.b.arith(Arith::And, Type::Pred, &[behind.into(), probe.nan.into()]));
            let other = self.b.arith(Arith::Add, Type::U32, &[first_run.into(), other.into()]);
            let first = self.b.arith(Arith::MulLo, Type::U32, &[other.into(), length]);
            let mut count = read;
            if runs.whole.is_none() {
                let first = self.b.arith(Arith::Min, Type::U32, &[first.into(), all.count]);
                let left = self.b.arith(Arith::Sub, Type::U32, &[all.count, first.into()]);
                count = self.b.arith(Arith::Min, Type::U32, &[left.into(), read]).into();
            }
            lists.push(List { at: self.record(all, first), count, ..all });
        }
        // Its rank among those that are merged, and among all.
        let rank = self.variable(LTy::I32, own.into());
        let found = self.search_all(&lists, &bounds, runs.whole.is_some(), search);
        for (found, nothing) in found.into_iter().zip(nothing) {
            self.add_rank(rank, found, Some(nothing));
        }
        let among_all = self.b.arith(Arith::MadLo, Type::U32, &[first_run.into(), length, rank.into()]);
        self.move_wanted(all, &record, d, (rank, among_all), runs.wanted);
    }

    /// Searches several lists; `alike`: they have one length.
    fn search_all(&mut self, lists: &[List], bounds: &[VReg], alike: bool, search: Search) -> Vec<VReg> {
        match lists[0].count {
            Src::Reg(count) if alike && search == Search::Bisection => self.joint_bisection(lists, bounds, count),
            _ => lists.iter().zip(bounds).map(|(list, bound)| self.search(*list, *bound, search)).collect(),
        }
    }

    /// Lists of one length are halved together; only addresses are kept.
    fn joint_bisection(&mut self, lists: &[List], bounds: &[VReg], count: VReg) -> Vec<VReg> {
        let step = lists[0].shape.step();
        let walks: Vec<GpuAddress> = lists.iter().map(|list| self.walking(list.at)).collect();
        let left = self.variable(LTy::I32, count.into());
        let (head, exit) = (self.b.label(), self.b.label());
        self.b.place(head);
        let over = self.b.setp(Cmp::Eq, Type::U32, left, Src::Imm(0));
        self.b.bra_if(over, true, exit);
        // The lesser half, or what is left if that is one record; then nothing is left behind it.
        let half = self.b.arith(Arith::Shr, Type::U32, &[left.into(), Src::Imm(1)]);
        let half = self.b.arith(Arith::Max, Type::U32, &[half.into(), Src::Imm(1)]);
        let half = self.wide(half);
        for ((list, walk), bound) in lists.iter().zip(&walks).zip(bounds) {
            let next = self.along(*walk, half, Stride::Const(step));
            let last = self.further(next, -step);
            let ends = self.not_before(*list, last, *bound);
            let before = self.b.guard.replace((ends, false));
            let ty = if walk.space == Space::Shared { LTy::I32 } else { LTy::I64 };
            self.b.set(walk.reg, crate::emit::whole(ty), next.reg);
            self.b.guard = before;
        }
        self.b.push(Ptx::Arith(Arith::Sub, Type::U32), &[left], &[left.into(), half.0.into()]);
        self.b.bra(head);
        self.b.place(exit);
        lists.iter().zip(walks).map(|(list, walk)| self.walked(*list, walk)).collect()
    }

    /// How many records an address has walked along a list.
    fn walked(&mut self, list: List, walk: GpuAddress) -> VReg {
        let ty = if walk.space == Space::Shared { Type::U32 } else { Type::U64 };
        let bytes = self.b.arith(Arith::Sub, ty, &[walk.reg.into(), list.at.reg.into()]);
        let bytes = if ty == Type::U64 { self.low(bytes) } else { bytes };
        let step = list.shape.step();
        match u64::try_from(step) {
            Ok(step) => self.divided(bytes, Src::Imm(step)).0,
            Err(_) => self.b.arith(Arith::Div, Type::S32, &[bytes.into(), Src::Imm(step as u64)]),
        }
    }

    /// A record goes to its rank among all, if its rank among those that are merged is below what is wanted.
    fn move_wanted(
        &mut self,
        list: List,
        record: &Loaded,
        d: Target,
        (rank, among_all): (VReg, VReg),
        wanted: Option<Src>,
    ) {
        let skip = self.b.label();
        if let Some(wanted) = wanted {
            let unwanted = self.b.setp(Cmp::Ge, Type::U32, rank, wanted);
            self.b.bra_if(unwanted, true, skip);
        }
        self.move_record(list, record, d, among_all);
        self.b.place(skip);
    }

    /// The two ways of a search, chosen by all threads: linear if any of them says so.
    fn by_vote(&mut self, late: VReg, body: &mut dyn FnMut(&mut Self, Search)) {
        let any = self.b.reg(Class::Pred);
        self.b.push(Ptx::BarOr(0), &[any], &[late.into()]);
        let (linear, done) = (self.b.label(), self.b.label());
        self.b.bra_if(any, true, linear);
        body(self, Search::Bisection);
        self.b.bra(done);
        self.b.place(linear);
        body(self, Search::Linear);
        self.b.place(done);
    }

    /// Numbers below a count, one a thread.
    fn each(&mut self, count: Src, body: &mut dyn FnMut(&mut Self, VReg)) {
        let (head, exit) = (self.b.label(), self.b.label());
        let once = matches!(count, Src::Imm(n) if n <= u64::from(self.threads));
        let n = if once { self.tid } else { self.variable(LTy::I32, self.tid.into()) };
        self.b.place(head);
        let over = self.b.setp(Cmp::Ge, Type::U32, n, count);
        self.b.bra_if(over, true, exit);
        body(self, n);
        if !once {
            self.advance(n, Type::U32, Src::Imm(self.threads.into()));
            self.b.bra(head);
        }
        self.b.place(exit);
    }

    /// Quotient and remainder of 32 bits; the divisor is at least 1.
    fn divided(&mut self, n: VReg, by: Src) -> (VReg, VReg) {
        if let Src::Imm(by) = by
            && by.is_power_of_two()
        {
            let quotient = self.b.arith(Arith::Shr, Type::U32, &[n.into(), Src::Imm(by.ilog2().into())]);
            return (quotient, self.b.arith(Arith::And, Type::B32, &[n.into(), Src::Imm(by - 1)]));
        }
        let quotient = self.b.arith(Arith::Div, Type::U32, &[n.into(), by]);
        let product = self.b.arith(Arith::MulLo, Type::U32, &[quotient.into(), by]);
        (quotient, self.b.arith(Arith::Sub, Type::U32, &[n.into(), product.into()]))
    }

    fn record(&mut self, list: List, n: VReg) -> GpuAddress {
        let index = self.wide(n);
        self.along(list.at, index, Stride::Const(list.shape.step()))
    }

    fn wide(&mut self, n: VReg) -> Index {
        (n, self.b.cvt(Type::U64, Type::U32, Round::None, n))
    }

    /// Whether the record behind the n-th comes before it.
    fn late(&mut self, list: List, n: VReg, late: VReg) {
        let place = self.record(list, n);
        let behind = self.further(place, list.shape.step());
        let [x, y] = [place, behind].map(|place| self.load(list.shape.ty, place));
        let after = self.b.setp(Cmp::Le, Type::F32, y, x);
        let before = self.b.arith(Arith::Not, Type::Pred, &[after.into()]);
        let number = self.b.setp(Cmp::Eq, Type::F32, x, x);
        let before = self.b.arith(Arith::And, Type::Pred, &[before.into(), number.into()]);
        self.b.push(Ptx::Arith(Arith::Or, Type::Pred), &[late], &[late.into(), before.into()]);
    }

    /// The n-th record of a list.
    fn loaded(&mut self, list: List, n: VReg) -> Loaded {
        let shape = list.shape;
        let place = self.record(list, n);
        if shape.whole {
            let parts = self.load_vector(MemTy::I32, place, 2);
            let value = match shape.ty {
                MemTy::F32 => self.b.bits(Class::F32, parts[0]),
                ty => self.unpacked(ty, parts[0], 0),
            };
            return Loaded { value, parts };
        }
        let fields = shape.step() / shape.stride;
        let parts = (0..fields)
            .map(|n| {
                let place = self.further(place, n * shape.stride);
                self.load(shape.raw(), place)
            })
            .collect();
        Loaded { value: self.load(shape.ty, place), parts }
    }

    /// What the n-th record of a list, of value `x`, is compared as: with a linear search, as the last one of those up
    /// to it.
    fn probe(&mut self, list: List, n: VReg, x: VReg, search: Search) -> Probe {
        let mut key = self.key(x);
        if search == Search::Linear {
            key = self.variable(LTy::I32, key.into());
            let walk = self.walking(list.at);
            let (head, exit) = (self.b.label(), self.b.label());
            let left = self.variable(LTy::I32, n.into());
            self.b.place(head);
            let over = self.b.setp(Cmp::Eq, Type::U32, left, Src::Imm(0));
            self.b.bra_if(over, true, exit);
            let x = self.load(list.shape.ty, walk);
            let other = self.key(x);
            self.b.push(Ptx::Arith(Arith::Max, Type::U32), &[key], &[key.into(), other.into()]);
            self.walk(walk, Stride::Const(list.shape.step()));
            self.advance(left, Type::U32, Src::Imm(u64::from(u32::MAX)));
            self.b.bra(head);
            self.b.place(exit);
        }
        let next = self.b.arith(Arith::Add, Type::U32, &[key.into(), Src::Imm(1)]);
        let bounds = [key, next].map(|key| {
            let bits = self.flipped(key);
            self.b.bits(Class::F32, bits)
        });
        Probe { bounds, nan: self.b.setp(Cmp::Eq, Type::U32, key, Src::Imm(NAN_KEY)) }
    }

    /// How many of the first records of a list have values that are not less than or equal to a bound.
    fn search(&mut self, list: List, bound: VReg, search: Search) -> VReg {
        match (search, list.count) {
            (Search::Linear, _) => self.linear(list, bound),
            (Search::Bisection, Src::Imm(count)) => self.known_bisection(list, count, bound),
            (Search::Bisection, _) => self.bisection(list, bound),
        }
    }

    /// Whether a record does not come before a bound.
    fn not_before(&mut self, list: List, place: GpuAddress, bound: VReg) -> VReg {
        let y = self.load(list.shape.ty, place);
        self.b.setp(Cmp::Le, Type::F32, y, bound)
    }

    fn linear(&mut self, list: List, bound: VReg) -> VReg {
        let found = self.variable(LTy::I32, Src::Imm(0));
        let walk = self.walking(list.at);
        let (head, exit) = (self.b.label(), self.b.label());
        self.b.place(head);
        let over = self.b.setp(Cmp::Ge, Type::U32, found, list.count);
        self.b.bra_if(over, true, exit);
        let ends = self.not_before(list, walk, bound);
        self.b.bra_if(ends, true, exit);
        self.advance(found, Type::U32, Src::Imm(1));
        self.walk(walk, Stride::Const(list.shape.step()));
        self.b.bra(head);
        self.b.place(exit);
        found
    }

    /// A list of known length is halved by known steps; only addresses are kept.
    fn known_bisection(&mut self, list: List, count: u64, bound: VReg) -> VReg {
        if count == 0 {
            return self.b.mov(Type::U32, Src::Imm(0));
        }
        let step = list.shape.step();
        let walk = self.walking(list.at);
        let mut left = count;
        loop {
            let half = (left / 2).max(1);
            let middle = self.further(walk, (half - 1) as i64 * step);
            let ends = self.not_before(list, middle, bound);
            let before = self.b.guard.replace((ends, false));
            self.walk(walk, Stride::Const(half as i64 * step));
            self.b.guard = before;
            if left == 1 {
                break;
            }
            left -= half;
        }
        self.walked(list, walk)
    }

    fn bisection(&mut self, list: List, bound: VReg) -> VReg {
        let step = list.shape.step();
        let found = self.variable(LTy::I32, Src::Imm(0));
        let left = self.variable(LTy::I32, list.count);
        let (head, exit) = (self.b.label(), self.b.label());
        self.b.place(head);
        let over = self.b.setp(Cmp::Eq, Type::U32, left, Src::Imm(0));
        self.b.bra_if(over, true, exit);
        // The first half, the greater one: it ends with the record that is looked at.
        let half = self.b.arith(Arith::Add, Type::U32, &[left.into(), Src::Imm(1)]);
        let half = self.b.arith(Arith::Shr, Type::U32, &[half.into(), Src::Imm(1)]);
        let end = self.b.arith(Arith::Add, Type::U32, &[found.into(), half.into()]);
        let place = self.record(list, end);
        let place = self.further(place, -step);
        let ends = self.not_before(list, place, bound);
        let less = self.b.arith(Arith::Sub, Type::U32, &[half.into(), Src::Imm(1)]);
        let more = self.b.arith(Arith::Sub, Type::U32, &[left.into(), half.into()]);
        let rest = self.b.selp(Type::U32, less, more, ends);
        let at = self.b.selp(Type::U32, found, end, ends);
        self.b.set(left, Type::U32, rest);
        self.b.set(found, Type::U32, at);
        self.b.bra(head);
        self.b.place(exit);
        found
    }

    /// Adds what was found, or nothing where a predicate says so.
    fn add_rank(&mut self, rank: VReg, found: VReg, nothing: Option<VReg>) {
        let before = nothing.map_or(self.b.guard, |nothing| self.b.guard.replace((nothing, false)));
        self.advance(rank, Type::U32, found.into());
        self.b.guard = before;
    }

    /// A record goes to its rank.
    fn move_record(&mut self, list: List, record: &Loaded, d: Target, rank: VReg) {
        let to = self.record(List { at: d.at, shape: d.shape, count: list.count }, rank);
        if !list.shape.whole {
            return self.store_fields(d.shape, to, &record.parts);
        }
        if d.shape.whole {
            return self.store_vector(MemTy::I32, to, &record.parts);
        }
        let mut parts = record.parts.clone();
        if d.shape.ty == MemTy::F16 {
            let upper = |e: &mut Self, part: VReg| e.b.arith(Arith::Shr, Type::U32, &[part.into(), Src::Imm(16)]);
            parts = parts.into_iter().flat_map(|part| [part, upper(self, part)]).collect();
        }
        self.store_fields(d.shape, to, &parts);
    }
}

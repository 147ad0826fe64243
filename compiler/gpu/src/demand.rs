//! Demanded prefixes of merges: which records of a merge any later statement makes use of.
//!
//! Of a top-k, K records of the last merge are read. These are among the first K of each list that it merges, which an
//! earlier merge has made, and so on. Statements of the block are looked at from the last one to the first; the space's
//! bytes are told apart by offsets that are constants. Where anything else reads what a merge has made, all of it is
//! wanted.

use crate::segments::Segments;
use ptoc_ir::loops::{Base, Func, Lanes, Lists, MERGED, Merge, Op, Reg, SpaceId, Stmt, Stride, fields, operands};
use rustc_hash::FxHashMap;

/// The longest lists that a merge reads as a whole, whatever is wanted of them: it looks through them by known steps.
const SHORT: i64 = 64;

/// What is wanted of a merge.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Demand {
    /// The first records of each four lists, as many as this register says.
    pub(crate) records: Reg,
    /// So many records of each list are read, and none behind them. Else all are.
    pub(crate) of_lists: bool,
}

/// What is wanted of the merges of a block, by where their statements are.
#[derive(Clone, Debug, Default)]
pub(crate) struct Demands(FxHashMap<*const Merge, Demand>);

impl Demands {
    pub(crate) fn new(func: &Func, segments: &Segments) -> Demands {
        let mut look = Look { func, segments, lanes: FxHashMap::default(), merges: FxHashMap::default() };
        for n in (0..func.body.len()).rev() {
            match &func.body[n].op {
                Op::Lanes(lanes) => look.lanes_at(n, lanes),
                Op::Merge(merge) => look.merge_at(n, merge),
                _ => {}
            }
        }
        let at = |n: usize| if let Op::Merge(m) = &func.body[n].op { Some(&raw const **m) } else { None };
        Demands(look.merges.into_iter().filter_map(|(n, demand)| Some((at(n)?, demand))).collect())
    }

    pub(crate) fn of(&self, merge: &Merge) -> Option<Demand> {
        self.0.get(&(&raw const *merge)).copied()
    }
}

struct Look<'a> {
    func: &'a Func,
    segments: &'a Segments,
    /// How many of the first lanes of a statement are wanted, and what of merges.
    lanes: FxHashMap<usize, Reg>,
    merges: FxHashMap<usize, Demand>,
}

/// Elements of a space, evenly spaced: the first byte, and from one to the next.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Array {
    space: SpaceId,
    at: i64,
    step: i64,
}

/// What a statement leaves.
struct Output {
    array: Array,
    /// How many elements at most.
    count: i64,
    /// Elements that are merged together; none if all are one group.
    group: Option<i64>,
}

impl Output {
    fn end(&self) -> i64 {
        self.array.at.saturating_add(self.array.step.saturating_mul(self.count))
    }

    fn meets(&self, from: i64, end: i64) -> bool {
        from < self.end() && self.array.at < end
    }
}

/// The first elements of an array, which a statement between has written: as many as a register says.
struct Written {
    array: Array,
    /// Bytes of an element.
    size: i64,
    count: Reg,
    /// Elements that there are at most.
    most: i64,
}

impl Look<'_> {
    fn constant(&self, reg: Reg) -> Option<i64> {
        let known = self.segments.interval(reg);
        (known.lo == known.hi).then_some(known.lo)
    }

    fn lanes_at(&mut self, n: usize, lanes: &Lanes) {
        let mut stores = lanes.body.iter().filter(|s| matches!(s.op, Op::Store { .. } | Op::Join { .. }));
        let (Some(Stmt { op: Op::Store { addr, .. }, .. }), None) = (stores.next(), stores.next()) else { return };
        let (Base::Space(space), Stride::Const(step @ 1..), None) = (addr.base, addr.stride, addr.gather) else {
            return;
        };
        let Some(at) = self.constant(addr.offset) else { return };
        let count = self.segments.interval(lanes.count).hi;
        let output = Output { array: Array { space, at, step }, count, group: None };
        if let Some(wanted) = self.wanted(n, &output) {
            self.lanes.insert(n, wanted);
        }
    }

    fn merge_at(&mut self, n: usize, merge: &Merge) {
        let Lists::Runs { all, length } = &merge.lists else { return };
        let known = (self.constant(all.count), self.constant(*length), self.constant(merge.d.offset));
        let ((Some(count), Some(length), Some(at)), Base::Space(space)) = (known, merge.d.base) else { return };
        let step = fields(merge.ty).unwrap_or(1).saturating_mul(merge.d_stride);
        let group = length.saturating_mul(MERGED as i64);
        if merge.d.gather.is_some() || step <= 0 || length <= 0 || !(count <= group || count % group == 0) {
            return;
        }
        let group = (count > group).then_some(group);
        let output = Output { array: Array { space, at, step }, count, group };
        if let Some(records) = self.wanted(n, &output) {
            self.merges.insert(n, Demand { records, of_lists: length > SHORT || group.is_none() });
        }
    }

    /// The register that says how many of the first elements of each group are wanted behind the n-th statement: the
    /// same for all that read them, and known before.
    fn wanted(&self, n: usize, output: &Output) -> Option<Reg> {
        let mut all: Option<Reg> = None;
        let mut written: Vec<Written> = Vec::new();
        for (later, stmt) in self.func.body.iter().enumerate().skip(n + 1) {
            let wanted = match &stmt.op {
                Op::Lanes(lanes) => self.wanted_by_lanes(later, lanes, output, &mut written)?,
                Op::Merge(merge) => self.wanted_by_merge(later, merge, output, &mut written)?,
                Op::Check { .. } | Op::Set { .. } | Op::Get { .. } => continue,
                op if operands(op).1.is_some() && !matches!(op, Op::Load { .. }) => continue,
                _ => return None,
            };
            for reg in wanted {
                if all.is_some_and(|other| other != reg) {
                    return None;
                }
                all = Some(reg);
            }
        }
        all.filter(|reg| self.is_known_at(n, *reg))
    }

    /// Whether a register has its value before the n-th statement.
    fn is_known_at(&self, n: usize, reg: Reg) -> bool {
        self.func.params.contains(&reg) || self.func.body[..n].iter().any(|s| operands(&s.op).1 == Some(reg))
    }

    fn wanted_by_lanes(
        &self,
        n: usize,
        lanes: &Lanes,
        output: &Output,
        written: &mut Vec<Written>,
    ) -> Option<Vec<Reg>> {
        let mut all = Vec::new();
        let mut stored = Vec::new();
        for stmt in &lanes.body {
            let (addr, ty, store) = match &stmt.op {
                Op::Load { addr, ty, .. } => (addr, ty, false),
                Op::Store { addr, ty, .. } => (addr, ty, true),
                Op::Join { addr, .. } if addr.base == Base::Space(output.array.space) => return None,
                _ => continue,
            };
            if addr.base != Base::Space(output.array.space) {
                continue;
            }
            let place = (self.constant(addr.offset), addr.stride, addr.gather);
            let (Some(at), Stride::Const(step @ 0..), None) = place else {
                if store {
                    continue;
                }
                return None;
            };
            let (array, size) = (Array { at, step, ..output.array }, i64::from(ty.size()));
            if store {
                stored.push(Written { array, size, count: lanes.count, most: i64::MAX });
                continue;
            }
            let count = self.segments.interval(lanes.count).hi;
            let end = at.saturating_add(step.saturating_mul((count - 1).max(0))).saturating_add(size);
            let wanted = self.lanes.get(&n).copied().unwrap_or(lanes.count);
            let there = |w: &Written| {
                let (first, last) = (w.array.at, w.array.at + w.size);
                w.array.step == step
                    && (first..last).contains(&at)
                    && at + size <= last
                    && (w.count == wanted || w.count == lanes.count)
                    && count <= w.most
            };
            if !output.meets(at, end) || written.iter().any(there) {
                continue;
            }
            let Array { at: first, step: record, .. } = output.array;
            let inside = at >= first && at + size <= first + record && step == record && output.group.is_none();
            if !inside {
                return None;
            }
            all.push(wanted);
        }
        written.extend(stored);
        Some(all)
    }

    fn wanted_by_merge(
        &self,
        n: usize,
        merge: &Merge,
        output: &Output,
        written: &mut Vec<Written>,
    ) -> Option<Vec<Reg>> {
        let step = fields(merge.ty).unwrap_or(1);
        let demand = self.merges.get(&n);
        let mut all = Vec::new();
        for records in merge.read().iter().filter(|r| r.at.base == Base::Space(output.array.space)) {
            let (at, count) = (self.constant(records.at.offset)?, self.segments.interval(records.count).hi);
            let array = Array { at, step: step.saturating_mul(records.stride), ..output.array };
            let end = at.saturating_add(array.step.saturating_mul(count));
            if array.step > 0 && records.at.gather.is_none() && !output.meets(at, end) {
                continue;
            }
            let Lists::Runs { length, .. } = merge.lists else { return None };
            let same = array == output.array && count <= output.count && output.group == self.constant(length);
            all.push(demand.filter(|d| same && d.of_lists)?.records);
        }
        // One group is written up to what is wanted of it.
        if let (Some(demand), Lists::Runs { all: read, length }) = (demand, &merge.lists)
            && merge.d.base == Base::Space(output.array.space)
            && let (Some(at), Some(count), Some(length)) =
                (self.constant(merge.d.offset), self.constant(read.count), self.constant(*length))
            && count <= length.saturating_mul(MERGED as i64)
        {
            let step = step.saturating_mul(merge.d_stride);
            let array = Array { at, step, ..output.array };
            written.push(Written { array, size: step, count: demand.records, most: count });
        }
        Some(all)
    }
}

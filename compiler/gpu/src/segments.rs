//! The parts of spaces that a kernel touches.
//!
//! A space is a memory of the target, with all tiles that the placement has put there. Tiles of fused chains are in
//! registers, and what is touched of the rest is often little. A segment is a run of bytes that some access may touch,
//! and that no access leaves; segments get homes one by one, and barriers tell them apart.

use crate::allocation::ALIGN;
use crate::bounds::{Interval, intervals};
use cranelift_entity::SecondaryMap;
use ptoc_ir::loops::{Addr, Base, MemTy, Module, Op, PARTIALS, PrintPart, Reg, Region, SpaceId, Start, Stride, fields};

/// Bytes of a space, from a multiple of [`ALIGN`] to another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Segment {
    pub(crate) lo: u64,
    pub(crate) hi: u64,
}

/// The segments of all spaces, in ascending order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Segments {
    of: SecondaryMap<SpaceId, Vec<Segment>>,
    intervals: SecondaryMap<Reg, Interval>,
}

impl Segments {
    pub(crate) fn new(module: &Module) -> Segments {
        let mut found = Found { module, intervals: intervals(module, &[]), all: SecondaryMap::new() };
        found.region(&module.block.body);
        let mut segments = Segments { of: SecondaryMap::new(), intervals: found.intervals };
        for space in module.spaces.keys() {
            segments.of[space] = merged(std::mem::take(&mut found.all[space]));
        }
        segments
    }

    pub(crate) fn of(&self, space: SpaceId) -> &[Segment] {
        &self.of[space]
    }

    /// Which segment an access at this offset touches.
    pub(crate) fn find(&self, space: SpaceId, offset: Reg) -> usize {
        self.at(space, self.intervals[offset].lo.max(0) as u64)
    }

    /// The segment of a byte.
    pub(crate) fn at(&self, space: SpaceId, at: u64) -> usize {
        self.of[space].iter().position(|s| (s.lo..s.hi).contains(&at)).unwrap_or(0)
    }

    /// What is known of a register, whatever the numbers of blocks of a call.
    pub(crate) fn interval(&self, reg: Reg) -> Interval {
        self.intervals[reg]
    }
}

/// Segments that overlap are one.
fn merged(mut all: Vec<Segment>) -> Vec<Segment> {
    all.sort_by_key(|s| s.lo);
    let mut out: Vec<Segment> = Vec::new();
    for s in all {
        match out.last_mut() {
            Some(last) if s.lo < last.hi => last.hi = last.hi.max(s.hi),
            _ => out.push(s),
        }
    }
    out
}

/// What has been found.
struct Found<'m> {
    module: &'m Module,
    intervals: SecondaryMap<Reg, Interval>,
    all: SecondaryMap<SpaceId, Vec<Segment>>,
}

impl Found<'_> {
    fn region(&mut self, region: &Region) {
        for stmt in region {
            match &stmt.op {
                Op::Lanes(lanes) => {
                    for stmt in &lanes.body {
                        match &stmt.op {
                            Op::Load { addr, ty, .. } | Op::Store { addr, ty, .. } => {
                                self.add(addr, &[(lanes.count, addr.stride)], i64::from(ty.size()));
                            }
                            Op::Join { addr, ty, .. } => self.add(addr, &[], i64::from(ty.size()) * PARTIALS as i64),
                            _ => {}
                        }
                    }
                }
                op => {
                    self.statement(op);
                    op.regions().for_each(|r| self.region(r));
                }
            }
        }
    }

    fn statement(&mut self, op: &Op) {
        match op {
            Op::Load { addr, ty, .. } | Op::Store { addr, ty, .. } => self.add(addr, &[], i64::from(ty.size())),
            Op::Atomic(a) => self.add(&a.addr, &[], i64::from(a.ty.size())),
            Op::Contract(c) => {
                let ab = i64::from(c.ab_ty.size());
                self.add(&c.a, &[(c.m, c.a_strides.0), (c.k, c.a_strides.1)], ab);
                self.add(&c.b, &[(c.k, c.b_strides.0), (c.n, c.b_strides.1)], ab);
                self.add(&c.d, &[(c.m, c.d_strides.0), (c.n, c.d_strides.1)], i64::from(c.d_ty.size()));
                if let Start::At { addr, row, col, ty } = &c.start {
                    self.add(addr, &[(c.m, *row), (c.n, *col)], i64::from(ty.size()));
                }
            }
            Op::Reduce(r) => {
                let size = i64::from(r.ty.size());
                let by = Stride::Const;
                self.add(&r.a, &[(r.rows, by(r.a_strides.0)), (r.cols, by(r.a_strides.1))], size);
                self.add(&r.d, &[(r.rows, by(r.d_stride))], size);
            }
            Op::Gather(g) => {
                let size = i64::from(g.ty.size());
                let matrix = |(row, col): (i64, i64)| [(g.rows, Stride::Const(row)), (g.cols, Stride::Const(col))];
                self.add(&g.d, &matrix(g.d_strides), size);
                self.add(&g.index, &matrix(g.index_strides), 4);
                self.add(&g.table, &[(g.total, Stride::Const(size))], size);
                if let Some((addr, strides)) = &g.plus {
                    self.add(addr, &matrix(*strides), 4);
                }
                if let Some((addr, stride)) = &g.places {
                    self.add(addr, &[(g.rows, Stride::Const(*stride))], 8);
                }
            }
            Op::Sort(s) => {
                let size = i64::from(s.ty.size());
                let matrix = |(row, col): (i64, i64)| [(s.rows, Stride::Const(row)), (s.cols, Stride::Const(col))];
                self.add(&s.a, &matrix(s.a_strides), size);
                self.add(&s.index, &matrix(s.index_strides), 4);
                let (row, field) = s.d_strides;
                let counts = [(self.most(s.rows), row), (self.most(s.cols), fields(s.ty).unwrap_or(1) * field)];
                self.add_records(&s.d, &counts, s.ty, field);
            }
            Op::Merge(m) => {
                let each = fields(m.ty).unwrap_or(1);
                let mut all = 0i64;
                for records in m.read() {
                    let count = self.most(records.count);
                    all = all.saturating_add(count);
                    self.add_records(&records.at, &[(count, each * records.stride)], m.ty, records.stride);
                }
                self.add_records(&m.d, &[(all, each * m.d_stride)], m.ty, m.d_stride);
            }
            Op::Print { parts } => {
                for part in parts {
                    if let PrintPart::Matrix { addr, .. } = part {
                        self.whole(addr.base);
                    }
                }
            }
            _ => {}
        }
    }

    fn whole(&mut self, base: Base) {
        if let Base::Space(space) = base {
            let hi = self.module.spaces[space].size.next_multiple_of(u64::from(ALIGN));
            self.all[space].push(Segment { lo: 0, hi });
        }
    }

    /// The greatest number that a count may be.
    fn most(&self, count: Reg) -> i64 {
        self.intervals[count].hi
    }

    /// Records whose fields are so many bytes apart, along dimensions of known extent and stride.
    fn add_records(&mut self, addr: &Addr, dims: &[(i64, i64)], ty: MemTy, field: i64) {
        let fields = (fields(ty).unwrap_or(1), field);
        self.add_strided(addr, dims.iter().chain([&fields]).map(|(n, by)| (*n, Some(*by))), i64::from(ty.size()));
    }

    /// An access of elements of so many bytes, along these dimensions.
    fn add(&mut self, addr: &Addr, dims: &[(Reg, Stride)], size: i64) {
        let dims: Vec<(i64, Option<i64>)> = dims
            .iter()
            .map(|(count, stride)| {
                let stride = if let Stride::Const(n) = stride { Some(*n) } else { None };
                (self.most(*count), stride)
            })
            .collect();
        self.add_strided(addr, dims.into_iter(), size);
    }

    /// The same, with the greatest number of elements along a dimension, and its stride if that is known.
    fn add_strided(&mut self, addr: &Addr, dims: impl Iterator<Item = (i64, Option<i64>)>, size: i64) {
        let Base::Space(space) = addr.base else { return };
        let offset = self.intervals[addr.offset];
        let (mut lo, mut hi) = (offset.lo, offset.hi.saturating_add(size));
        let mut widen = |by: Interval| {
            lo = lo.saturating_add(by.lo.min(0));
            hi = hi.saturating_add(by.hi.max(0));
        };
        if let Some(gather) = addr.gather {
            widen(self.intervals[gather]);
        }
        for (count, stride) in dims {
            let last = count.saturating_sub(1).max(0);
            match stride {
                Some(n) => {
                    let far = n.saturating_mul(last);
                    widen(Interval { lo: far, hi: far });
                }
                None => widen(Interval::default()),
            }
        }
        // Accesses stay inside the space, whatever is known of them.
        let end = self.module.spaces[space].size;
        let lo = (lo.max(0) as u64).min(end) / u64::from(ALIGN) * u64::from(ALIGN);
        let hi = (hi.max(0) as u64).min(end).next_multiple_of(u64::from(ALIGN));
        self.all[space].push(Segment { lo, hi: hi.max(lo + u64::from(ALIGN)) });
    }
}

#[cfg(test)]
mod tests {
    use super::{Segment, merged};

    #[test]
    fn segments_that_touch_stay_apart() {
        let s = |lo, hi| Segment { lo, hi };
        assert_eq!(merged(vec![s(32, 64), s(0, 32), s(48, 96), s(128, 144)]), [s(0, 32), s(32, 96), s(128, 144)]);
    }
}

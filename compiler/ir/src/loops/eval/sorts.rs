//! Sorts and merges of records.

use super::{Eval, Exit};
use crate::loops::{Addr, Lists, MERGED, MemTy, Merge, Records, Sort, before, fields};
use ptoc_diagnostics::Span;
use ptoc_isa::SORTED;

/// The type in which bits are moved.
fn raw(ty: MemTy) -> MemTy {
    if ty == MemTy::F32 { MemTy::I32 } else { MemTy::U16 }
}

/// A stretch of one list of a merge: the records from `first` to before `end`.
struct Stretch {
    records: Records,
    first: i64,
    end: i64,
}

impl Eval<'_> {
    pub(super) fn sort(&mut self, s: &Sort, span: Span) -> Result<(), Exit> {
        let (ty, cols) = (raw(s.ty), self.i64(s.cols));
        let fields = fields(s.ty).unwrap_or(1);
        for i in 0..self.i64(s.rows) {
            for start in (0..cols).step_by(SORTED) {
                let mut list = Vec::new();
                for j in start..cols.min(start + SORTED as i64) {
                    self.spend()?;
                    let at = i * s.a_strides.0 + j * s.a_strides.1;
                    let (value, bits) = (self.value(s.ty, &s.a, at, span)?, self.load(ty, &s.a, at, span)?);
                    let index = self.load(MemTy::I32, &s.index, i * s.index_strides.0 + j * s.index_strides.1, span)?;
                    list.push((value, bits, index));
                }
                // A stable sort.
                list.sort_by(|x, y| before(y.0, x.0).cmp(&before(x.0, y.0)));
                for (n, (_, bits, index)) in (start..).zip(list) {
                    let mut put = |field: i64, bits: u64| {
                        let at = i * s.d_strides.0 + (n * fields + field) * s.d_strides.1;
                        self.store(ty, &s.d, at, bits, span)
                    };
                    put(0, bits)?;
                    if fields == 2 {
                        put(1, index)?;
                    } else {
                        put(1, 0)?;
                        put(2, index & 0xffff)?;
                        put(3, index >> 16 & 0xffff)?;
                    }
                }
            }
        }
        Ok(())
    }

    pub(super) fn merge(&mut self, m: &Merge, span: Span) -> Result<(), Exit> {
        match &m.lists {
            Lists::Each(lists) => {
                let all = lists.iter().map(|r| Stretch { records: *r, first: 0, end: self.i64(r.count) }).collect();
                self.merge_into(m, 0, all, span)
            }
            Lists::Runs { all, length } => {
                let (count, length) = (self.i64(all.count), self.i64(*length).max(1));
                let mut at = 0;
                while at < count {
                    let bound = |n: i64| at.saturating_add(length.saturating_mul(n)).min(count);
                    let four = (0..MERGED as i64)
                        .map(|n| Stretch { records: *all, first: bound(n), end: bound(n + 1) })
                        .collect();
                    let next = bound(MERGED as i64);
                    self.merge_into(m, at, four, span)?;
                    at = next;
                }
                Ok(())
            }
        }
    }

    /// One merge, to the records from `at` on.
    fn merge_into(&mut self, m: &Merge, at: i64, mut lists: Vec<Stretch>, span: Span) -> Result<(), Exit> {
        let (ty, fields) = (raw(m.ty), fields(m.ty).unwrap_or(1));
        for out in at.. {
            let mut best: Option<(usize, f32)> = None;
            for (l, list) in lists.iter().enumerate().filter(|(_, list)| list.first < list.end) {
                self.spend()?;
                let Records { at, stride, .. } = &list.records;
                let x = self.value(m.ty, at, list.first * fields * stride, span)?;
                if best.is_none_or(|(_, y)| before(x, y)) {
                    best = Some((l, x));
                }
            }
            let Some((l, _)) = best else { break };
            let Stretch { records: Records { at, stride, .. }, first, .. } = &mut lists[l];
            let from = *first * fields;
            *first += 1;
            for f in 0..fields {
                let bits = self.load(ty, at, (from + f) * *stride, span)?;
                self.store(ty, &m.d, (out * fields + f) * m.d_stride, bits, span)?;
            }
        }
        Ok(())
    }

    fn value(&mut self, ty: MemTy, addr: &Addr, extra: i64, span: Span) -> Result<f32, Exit> {
        Ok(f32::from_bits(self.load(ty, addr, extra, span)? as u32))
    }
}

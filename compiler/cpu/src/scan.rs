//! Scans: a loop over lines around a loop that joins each element with all before it in its line (`rowcumsum` and
//! `colcumsum` are lowered to ones). As it stands each step waits for the one before; as a call of a routine many lines
//! go side by side.

use crate::func::Emit;
use crate::nest::{RowStride, Rows};
use crate::routines::Routine;
use cranelift_codegen::ir::InstBuilder;
use cranelift_codegen::ir::types::{I32, I64};
use cranelift_entity::SecondaryMap;
use ptoc_ir::loops::{Addr, BinOp, For, Func, MemTy, Op, Reg, Region, Stride, UnOp, VarId};

/// What such loops are made of.
struct Scan<'a> {
    op: BinOp,
    ty: MemTy,
    /// What is before the first element of each line.
    start: Reg,
    /// An element is left out of its own result.
    exclusive: bool,
    /// The loop along a line.
    inner: &'a For,
    from: Addr,
    to: Addr,
    /// From line to line of results and elements, from element to element of both.
    steps: [i64; 4],
    /// What computes addresses.
    addresses: Vec<Op>,
}

impl Emit<'_, '_> {
    /// Calls the routine of a scan, if the loop is one.
    pub(crate) fn scan_of_loop(&mut self, f: &For) -> bool {
        if self.link.is_none() || !self.vectors {
            return false;
        }
        let Some(scan) = Scan::of(f, self.func, &self.known) else { return false };
        let routine = Routine::Scan(scan.op, scan.ty);
        if !self.routines.moves(routine) {
            return false;
        }
        // Everything at the first element.
        let mut counts = Vec::new();
        for (index, lo, hi) in [(f.index, f.lo, f.hi), (scan.inner.index, scan.inner.lo, scan.inner.hi)] {
            let (first, behind) = (self.value(lo), self.value(hi));
            self.define(index, first);
            self.known[index] = self.known[lo];
            counts.push(if self.known[lo] == Some(0) { behind } else { self.b.ins().isub(behind, first) });
        }
        for op in &scan.addresses {
            self.address_step(op);
        }
        let (to, from) = (self.address(&scan.to), self.address(&scan.from));
        let mut args = vec![self.pointer(to), self.pointer(from)];
        args.extend(counts);
        args.extend(scan.steps.map(|bytes| self.b.ins().iconst(I64, bytes)));
        let start = self.value(scan.start);
        let start = self.bitcast(I32, start);
        args.push(self.b.ins().uextend(I64, start));
        args.push(self.b.ins().iconst(I64, i64::from(scan.exclusive)));
        self.call_routine(routine, &args);
        true
    }
}

impl<'a> Scan<'a> {
    fn of(f: &'a For, func: &Func, known: &SecondaryMap<Reg, Option<u64>>) -> Option<Scan<'a>> {
        let (Op::For(inner), before) = f.body.split_last().map(|(last, rest)| (&last.op, rest))? else { return None };
        if f.step != 1 || inner.step != 1 {
            return None;
        }
        let (mut lines, mut places) = (Rows::new(f.index), Rows::new(inner.index));
        let mut addresses = Vec::new();
        let mut set = None;
        for stmt in before {
            match stmt.op {
                Op::Set { var, value } if set.is_none() => set = Some((var, value)),
                ref op => Self::address(op, (&mut lines, &mut places), &mut addresses, func, known)?,
            }
        }
        let (var, start) = set?;
        let (mut get, mut load, mut joined, mut rounded, mut store, mut kept) = (None, None, None, None, None, None);
        for stmt in &inner.body {
            match &stmt.op {
                // Nothing is stored before it is read, and nothing is read behind the store.
                Op::Get { dst, var: v } if *v == var && get.is_none() => get = Some(*dst),
                Op::Load { dst, ty, addr } if load.is_none() && store.is_none() => load = Some((*dst, *ty, *addr)),
                Op::Binary { dst, op, a, b }
                    if Some(*a) == get && Some(*b) == load.map(|l| l.0) && joined.is_none() =>
                {
                    joined = Some((*dst, *op));
                }
                Op::Unary { dst, op: UnOp::RoundF16, a } if Some(*a) == joined.map(|j| j.0) && rounded.is_none() => {
                    rounded = Some(*dst);
                }
                Op::Store { ty, addr, value } if store.is_none() => store = Some((*ty, *addr, *value)),
                Op::Set { var: v, value } if *v == var && kept.is_none() => kept = Some(*value),
                op => Self::address(op, (&mut lines, &mut places), &mut addresses, func, known)?,
            }
        }
        let (get, (_, ty, from), (with, op)) = (get?, load?, joined?);
        let (stored, to, result) = store?;
        // A sum of halves is rounded; an extreme is an element, and rounding it changes nothing.
        let as_stored = if ty == MemTy::F16 { op != BinOp::Add || rounded.is_some() } else { rounded.is_none() };
        let with = rounded.unwrap_or(with);
        let exclusive = result == get;
        let there = Routine::Scan(op, ty).address().is_some();
        if !there || !as_stored || stored != ty || kept != Some(with) || !(exclusive || result == with) {
            return None;
        }
        let steps = |indexed: &Rows| {
            let step = |addr: &Addr| match indexed.step(indexed.canonical(addr.offset)) {
                RowStride::Const(bytes) if addr.stride == Stride::Const(0) && addr.gather.is_none() => Some(bytes),
                _ => None,
            };
            Some([step(&to)?, step(&from)?])
        };
        let ([d_line, a_line], [d_place, a_place]) = (steps(&lines)?, steps(&places)?);
        // A start and bounds of the body's own are other loops.
        let own = |reg: Reg| f.body.iter().any(|s| ptoc_ir::loops::operands(&s.op).1 == Some(reg)) || reg == f.index;
        if [start, inner.lo, inner.hi].into_iter().any(own) {
            return None;
        }
        // The variable has the last line's end behind the loop.
        if gets(&func.body, var) > 1 {
            return None;
        }
        let steps = [d_line, a_line, d_place, a_place];
        Some(Scan { op, ty, start, exclusive, inner, from, to, steps, addresses })
    }

    /// A statement that computes an address from both indices.
    fn address(
        op: &Op,
        (lines, places): (&mut Rows, &mut Rows),
        addresses: &mut Vec<Op>,
        func: &Func,
        known: &SecondaryMap<Reg, Option<u64>>,
    ) -> Option<()> {
        lines.statement(op, func, known)?;
        places.statement(op, func, known)?;
        addresses.push(op.clone());
        Some(())
    }
}

/// How often a variable is read.
fn gets(region: &Region, var: VarId) -> usize {
    let of = |op: &Op| {
        let own = usize::from(matches!(op, Op::Get { var: v, .. } if *v == var));
        op.regions().map(|region| gets(region, var)).sum::<usize>() + own
    };
    region.iter().map(|s| of(&s.op)).sum()
}

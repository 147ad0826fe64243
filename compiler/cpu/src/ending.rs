//! Sums of rows that end with each row: a fill of partials, a loop over rows that adds elements to them, and the
//! reduction of all partials, one statement behind the other, are one nest. Its rows have their partials in registers,
//! as far as there are any, and leave a number each. (Extremes of floats, where NaN and zeros take five instructions,
//! are better off in the routine, which looks at NaN once a row.)
//!
//! Results go to the beginning of the partials first: where the reduction puts them may be what a later row reads.

use crate::func::Emit;
use crate::nest::{self, Ending, RowStride};
use crate::shape::plain;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{F32, F32X4, I64};
use cranelift_codegen::ir::{BlockArg, InstBuilder, Value};
use ptoc_ir::loops::{
    Addr, Base, BinOp, For, Func, Lanes, Lists, MemTy, Op, PARTIALS, Reduce, Reg, Region, SpaceId, Start, Stmt, Stride,
};

/// Bytes of a row of partials.
const ROW_BYTES: i64 = PARTIALS as i64 * 4;

/// How many statements are one nest.
pub(crate) const STATEMENTS: usize = 3;

/// Vectors of a row of partials.
const VECTORS: usize = PARTIALS / 4;

/// The space of partials, if nothing but fills, joins and reductions to elsewhere touch it: behind a reduction nobody
/// reads what it holds.
pub(crate) fn partials(func: &Func) -> Option<SpaceId> {
    let mut found = Found::default();
    found.region(&func.body);
    found.joined.filter(|space| !found.unknown && !found.others.contains(space))
}

#[derive(Default)]
struct Found {
    joined: Option<SpaceId>,
    /// Spaces that are touched otherwise, or joined when another one is.
    others: Vec<SpaceId>,
    /// Something may touch any space.
    unknown: bool,
}

impl Found {
    fn region(&mut self, region: &Region) {
        region.iter().for_each(|stmt| self.statement(&stmt.op));
    }

    fn statement(&mut self, op: &Op) {
        match op {
            Op::Join { addr: Addr { base: Base::Space(space), .. }, .. } => {
                if self.joined.is_some_and(|known| known != *space) {
                    self.others.push(*space);
                }
                self.joined.get_or_insert(*space);
            }
            Op::Lanes(lanes) if fill(lanes).is_some() => {}
            Op::Reduce(r) => self.others([&r.d]),
            Op::Load { addr, .. } | Op::Store { addr, .. } | Op::Nibble { addr, .. } => self.others([addr]),
            Op::Lanes(lanes) => self.region(&lanes.body),
            Op::For(f) => self.region(&f.body),
            Op::If(i) => [&i.then, &i.els].into_iter().for_each(|r| self.region(r)),
            Op::While(w) => [&w.head, &w.body].into_iter().for_each(|r| self.region(r)),
            Op::Scope(s) => self.region(&s.body),
            Op::Contract(c) => {
                self.others([&c.a, &c.b, &c.d]);
                if let Start::At { addr, .. } = &c.start {
                    self.others([addr]);
                }
            }
            Op::Gather(g) => {
                self.others([&g.d, &g.table, &g.index]);
                self.others(g.plus.iter().map(|(addr, _)| addr).chain(g.places.iter().map(|(addr, _)| addr)));
            }
            Op::Sort(s) => self.others([&s.d, &s.a, &s.index]),
            Op::Merge(m) => {
                self.others([&m.d]);
                match &m.lists {
                    Lists::Each(all) => self.others(all.iter().map(|list| &list.at)),
                    Lists::Runs { all, .. } => self.others([&all.at]),
                }
            }
            Op::Atomic(_) | Op::Watch(_) | Op::Print { .. } => self.unknown = true,
            _ => {}
        }
    }

    fn others<'a>(&mut self, addrs: impl IntoIterator<Item = &'a Addr>) {
        for addr in addrs {
            if let Base::Space(space) = addr.base {
                self.others.push(space);
            }
        }
    }
}

/// What lanes do that only fill words of a space with one value.
struct Fill {
    space: SpaceId,
    /// Where the first word is.
    offset: Reg,
    value: Reg,
    /// The value, if the lanes define it.
    bits: Option<u64>,
}

fn fill(lanes: &Lanes) -> Option<Fill> {
    let (own, store) = match &lanes.body[..] {
        [store] => (None, store),
        [Stmt { op: Op::Const { dst, bits }, .. }, store] => (Some((*dst, *bits)), store),
        _ => return None,
    };
    let Op::Store { ty: MemTy::F32, addr, value } = store.op else { return None };
    let Addr { base: Base::Space(space), offset, stride: Stride::Const(4), gather: None } = addr else { return None };
    Some(Fill { space, offset, value, bits: own.filter(|(dst, _)| *dst == value).map(|(_, bits)| bits) })
}

impl Emit<'_, '_> {
    /// Emits the first three statements of a region as one nest, if they are what this is about.
    pub(crate) fn rows_that_end(&mut self, region: &[Stmt]) -> bool {
        let (Some(space), [filled, rows, reduced, ..]) = (self.partials, region) else { return false };
        let (Op::Lanes(lanes), Op::For(f), Op::Reduce(r)) = (&filled.op, &rows.op, &reduced.op) else { return false };
        if self.link.is_none() || !self.vectors || !self.reduces(r, f, space) {
            return false;
        }
        let Some(Fill { space: of, offset: at, value, bits }) = fill(lanes) else { return false };
        let Some(identity) = bits.or(self.known[value]).map(|bits| bits as u32) else { return false };
        let Some((mut site, addresses)) = nest::of_loop(f, self.func, &self.known) else { return false };
        let Some(Op::Lanes(body)) = f.body.last().map(|stmt| &stmt.op) else { return false };
        let mut joins = body
            .body
            .iter()
            .filter_map(|s| if let Op::Join { op, ty, addr, .. } = &s.op { Some((*op, *ty, addr)) } else { None });
        let (Some((op, MemTy::F32, addr)), None) = (joins.next(), joins.next()) else { return false };
        // All of them begin where the space does.
        let begins = [self.known[at], self.known[r.a.offset], self.first_row(f, &addresses, addr.offset)];
        if (of, addr.base, op) != (space, Base::Space(space), BinOp::Add) || begins != [Some(0); 3] {
            return false;
        }
        let number = site
            .pointers
            .iter()
            .zip(&site.nest.steps)
            .position(|((base, _), step)| *base == addr.base && *step == RowStride::Const(ROW_BYTES));
        let (Some(partials), Ok(result)) = (number, u32::try_from(site.pointers.len())) else { return false };
        site.nest.ending = Some(Ending { identity, partials: partials as u32, result });
        site.nest.steps.push(RowStride::Const(4));
        site.pointers.push((addr.base, r.a.offset));
        let count = site.count;
        self.call_rows(f, site, &addresses);
        self.results(r, count, identity);
        true
    }

    /// Whether a reduction is one of the partials that a loop over rows fills.
    fn reduces(&self, r: &Reduce, f: &For, space: SpaceId) -> bool {
        let partials = r.a.base == Base::Space(space) && r.a.gather.is_none() && r.a_strides == (ROW_BYTES, 4);
        let sums = self.known[r.cols] == Some(PARTIALS as u64) && (r.op, r.ty) == (BinOp::Add, MemTy::F32);
        partials && sums && r.d.gather.is_none() && r.rows == f.hi && self.known[f.lo] == Some(0) && f.step == 1
    }

    /// An offset in the first row, if it is known.
    fn first_row(&self, f: &For, addresses: &[Op], offset: Reg) -> Option<u64> {
        let mut known = vec![(f.index, 0u64)];
        for op in addresses {
            let &Op::Binary { dst, op, a, b } = op else { continue };
            let of = |r: Reg| known.iter().find(|(reg, _)| *reg == r).map(|(_, n)| *n).or(self.known[r]);
            let value = match (op, of(a), of(b)) {
                (BinOp::Mul, Some(0), _) | (BinOp::Mul, _, Some(0)) => Some(0),
                (BinOp::Mul, Some(x), Some(y)) => Some(x.wrapping_mul(y)),
                (BinOp::Add, Some(x), Some(y)) => Some(x.wrapping_add(y)),
                (BinOp::Sub, Some(x), Some(y)) => Some(x.wrapping_sub(y)),
                _ => None,
            };
            known.extend(value.map(|n| (dst, n)));
        }
        known.into_iter().find(|(reg, _)| *reg == offset).map(|(_, n)| n).or(self.known[offset])
    }

    /// Takes the results to where the reduction puts them. Rows without elements have not been gone through.
    fn results(&mut self, r: &Reduce, count: Reg, identity: u32) {
        let (from, to) = (self.address(&r.a), self.address(&r.d));
        let (from, to) = (self.pointer(from), self.pointer(to));
        let (rows, count) = (self.value(r.rows), self.value(count));
        let some = self.b.ins().icmp_imm_s(IntCC::SignedGreaterThan, count, 0);
        let nothing = self.b.ins().f32const(f32::from_bits(identity));
        let (head, exit) = (self.b.create_block(), self.b.create_block());
        let [left, source, target] = [(); 3].map(|()| self.b.append_block_param(head, I64));
        let any = self.b.ins().icmp_imm_s(IntCC::SignedGreaterThan, rows, 0);
        let args = [rows, from, to].map(BlockArg::Value);
        self.b.ins().brif(any, head, &args, exit, &[]);
        self.b.switch_to_block(head);
        let value = self.b.ins().load(F32, plain(), source, 0);
        let value = self.b.ins().select(some, value, nothing);
        self.b.ins().store(plain(), value, target, 0);
        let left = self.b.ins().iadd_imm_s(left, -1);
        let source = self.b.ins().iadd_imm_s(source, 4);
        let target = self.b.ins().iadd_imm_s(target, r.d_stride);
        let more = self.b.ins().icmp_imm_s(IntCC::SignedGreaterThan, left, 0);
        let args = [left, source, target].map(BlockArg::Value);
        self.b.ins().brif(more, head, &args, exit, &[]);
        self.b.switch_to_block(exit);
    }

    /// Fills a row's partials, in a nest's own function.
    pub(crate) fn fill_partials(&mut self, ending: Ending) {
        let identity = self.vector(F32X4, [ending.identity; 4]);
        let at = self.tensors[ending.partials as usize];
        for n in 0..VECTORS {
            self.b.ins().store(plain(), identity, at, 16 * n as i32);
        }
    }

    /// Adds to each of a row's partials the one half of them further on, and stores the sum.
    pub(crate) fn end_row(&mut self, ending: Ending) {
        let at = self.tensors[ending.partials as usize];
        let mut all: Vec<Value> = (0..VECTORS).map(|n| self.b.ins().load(F32X4, plain(), at, 16 * n as i32)).collect();
        while all.len() > 1 {
            let upper = all.split_off(all.len() / 2);
            all = all.into_iter().zip(upper).map(|(a, b)| self.b.ins().fadd(a, b)).collect();
        }
        let lanes = [0, 1, 2, 3].map(|n| self.b.ins().extractlane(all[0], n));
        let [even, odd] = [0, 1].map(|n| self.b.ins().fadd(lanes[n], lanes[n + 2]));
        let value = self.b.ins().fadd(even, odd);
        self.b.ins().store(plain(), value, self.tensors[ending.result as usize], 0);
    }
}

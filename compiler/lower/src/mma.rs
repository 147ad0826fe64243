//! `mma`: products accumulated along a nest of axes, in ascending order of `k`.
//!
//! Where all extents are known, the product is one [`Contract`], for which every emitter has a micro-kernel. A side
//! that the kernel cannot walk (half precision, a swizzle, rows that are not evenly apart) is copied to a dense buffer
//! first; which sides are is the cheapest choice that leaves one axis each for rows, columns and depth. f32 and i32
//! survive the way through a buffer, so that the bits are the same. Otherwise the nest is loops.

use super::Lower;
use super::code::FunctionBuilder;
use super::copy::copy_nest;
use super::nest::{Lin, Lookup, Nest, NestEmitter, NestSide, Stored};
use ptoc_ir::loops::{Addr, Base, BinOp, Contract, MemTy, Op, Reg, Start, Stride, UnOp};
use ptoc_ir::tile::{Affine, Mma, NestAccess, Value};
use ptoc_tensor::DType;

/// Largest buffer of one product.
const MAX_BUFFER: i64 = 1 << 25;

/// Steps of `k` that are one body.
const UNROLL: i64 = 8;

/// Rows, columns, depth: which of them a side has.
const SEES: [[bool; 3]; 3] = [[true, true, false], [true, false, true], [false, true, true]];

/// A side that the micro-kernel can walk: byte strides along rows, columns and depth.
struct Walked {
    addr: Addr,
    strides: [i64; 3],
}

/// The axes of a product: ranges of its axes in tile IR.
struct Groups {
    counts: [usize; 3],
}

impl Groups {
    fn all(&self) -> usize {
        self.counts.iter().sum()
    }

    /// The axes of a group.
    fn range(&self, group: usize) -> std::ops::Range<usize> {
        let first = self.counts[..group].iter().sum::<usize>();
        first..first + self.counts[group]
    }

    /// The group of an axis of the nest of all axes, perhaps split or joined since.
    fn of(&self, nest: &Nest, axis: usize) -> usize {
        let number = self.all() - 1 - nest.axes[axis].rank;
        (0..3).find(|&g| self.range(g).contains(&number)).unwrap_or(2)
    }

    /// Rows and columns may be joined in any order, the depth only as it is counted.
    fn mergeable(&self, nest: &Nest, inner: usize, outer: usize) -> bool {
        let group = self.of(nest, inner);
        let between = || (inner + 1..outer).any(|a| self.of(nest, a) == group);
        group == self.of(nest, outer) && (group != 2 || (inner < outer && !between()))
    }
}

/// The same side over some of the axes.
fn restricted(access: &NestAccess, axes: &[usize]) -> NestAccess {
    let pick = |a: &Affine| Affine { start: a.start, strides: axes.iter().map(|&i| a.strides[i]).collect() };
    match access {
        NestAccess::Tile { tile, row, col } => NestAccess::Tile { tile: *tile, row: pick(row), col: pick(col) },
        NestAccess::Tensor { tensor, elem, at, swizzle, tables } => NestAccess::Tensor {
            tensor: *tensor,
            elem: *elem,
            at: pick(at),
            swizzle: *swizzle,
            tables: tables.iter().map(|t| ptoc_ir::tile::Table { at: pick(&t.at), ..t.clone() }).collect(),
        },
    }
}

impl Lower<'_> {
    pub(super) fn mma(&mut self, mma: &Mma) {
        let groups = Groups { counts: [mma.m.len(), mma.n.len(), mma.k.len()] };
        let extents: Vec<Value> = [&mma.m, &mma.n, &mma.k].into_iter().flatten().copied().collect();
        let sides = [&mma.acc, &mma.a, &mma.b];
        let acc = self.dtype_of(&mma.acc);
        let known: Option<Vec<i64>> = extents.iter().map(|&v| self.constant(v)).collect();
        let done = match known {
            Some(known) if acc != DType::F16 => {
                let unit = if acc.is_float() { MemTy::F32 } else { MemTy::I32 };
                self.contract(&groups, &extents, &known, sides, unit)
            }
            _ => false,
        };
        if !done {
            self.mma_loops(&groups, &extents, sides, acc);
        }
    }

    fn dtype_of(&self, access: &NestAccess) -> DType {
        match access {
            NestAccess::Tile { tile, .. } => self.kernel.tiles[tile.tile].ty.dtype,
            NestAccess::Tensor { elem, .. } => elem.dtype(),
        }
    }

    // ---- by the micro-kernel -------------------------------------------------------------------------------------

    /// The product as a [`Contract`], if no buffer becomes too large.
    fn contract(
        &mut self,
        groups: &Groups,
        extents: &[Value],
        known: &[i64],
        sides: [&NestAccess; 3],
        unit: MemTy,
    ) -> bool {
        let size = |group: usize| known[groups.range(group)].iter().try_fold(1i64, |n, &e| n.checked_mul(e.max(0)));
        let (Some(m), Some(n), Some(k)) = (size(0), size(1), size(2)) else { return false };
        let sizes = [m, n, k];
        // Dense buffers: neighbours along columns, for operands without columns along the depth.
        let bytes = i64::from(unit.size());
        let lengths = SEES.map(|sees| {
            (0..3).filter(|&g| sees[g]).try_fold(bytes, |all, g| all.checked_mul(sizes[g])).filter(|&b| b <= MAX_BUFFER)
        });
        let [Some(acc_bytes), Some(a_bytes), Some(b_bytes)] = lengths else { return false };
        let dense = [[n * bytes, bytes, 0], [k * bytes, 0, bytes], [0, bytes, n * bytes]];
        // Operands are cheaper to copy than the accumulator, which is copied both ways.
        for beside in [[0, 0, 0], [0, 1, 0], [0, 0, 1], [0, 1, 1], [1, 0, 0], [1, 1, 0], [1, 0, 1], [1, 1, 1]] {
            let beside = beside.map(|b| b == 1);
            let space = beside.contains(&true).then(|| {
                let lengths = [acc_bytes, a_bytes, b_bytes];
                let total: i64 = (0..3).filter(|&s| beside[s]).map(|s| lengths[s].max(64)).sum();
                self.temp_space(total as u64)
            });
            let mut next = 0;
            let firsts = [0, 1, 2].map(|s| {
                let first = next;
                next += if beside[s] { [acc_bytes, a_bytes, b_bytes][s].max(64) } else { 0 };
                first
            });
            let buffers = [0, 1, 2].map(|s| match space {
                Some(space) if beside[s] => Some((Base::Space(space), firsts[s], dense[s])),
                _ => None,
            });
            // What a failed attempt has computed for itself is not needed by anyone.
            self.code.push();
            let walked = self.walked(groups, extents, known, sides, &buffers, unit);
            let prepared = self.code.pop();
            let Some(walked) = walked else { continue };
            for s in [1, 2, 0] {
                if let Some(buffer) = &buffers[s] {
                    self.through_buffer(groups, extents, known, (sides[s], SEES[s]), buffer, unit, true);
                }
            }
            self.code.append(prepared);
            self.emit_contract(&sizes, walked, unit);
            if let Some(buffer) = &buffers[0] {
                self.through_buffer(groups, extents, known, (sides[0], SEES[0]), buffer, unit, false);
            }
            return true;
        }
        false
    }

    /// A dense buffer over some axes (numbers in tile IR), each group colexicographically.
    fn dense(&mut self, groups: &Groups, known: &[i64], axes: &[usize], (first, strides): (i64, [i64; 3])) -> Lin {
        let mut steps = Vec::new();
        for &a in axes {
            let group = (0..3).find(|&g| groups.range(g).contains(&a)).unwrap_or(2);
            let inner: i64 = known[groups.range(group).start..a].iter().product();
            steps.push(self.code.int(strides[group].wrapping_mul(inner)));
        }
        Lin { start: self.code.int(first), steps }
    }

    /// All sides as the micro-kernel walks them; none if one of them has more than an axis for rows, columns or depth.
    fn walked(
        &mut self,
        groups: &Groups,
        extents: &[Value],
        known: &[i64],
        sides: [&NestAccess; 3],
        buffers: &[Option<(Base, i64, [i64; 3])>; 3],
        unit: MemTy,
    ) -> Option<[Walked; 3]> {
        let mut nest = self.nest(extents, &[]);
        let mut tables = Vec::new();
        let all: Vec<usize> = (0..groups.all()).collect();
        let mut resolved = Vec::new();
        for (access, buffer) in sides.into_iter().zip(buffers) {
            resolved.push(match buffer {
                Some((base, first, strides)) => {
                    let lin = self.dense(groups, known, &all, (*first, *strides));
                    NestSide::plain(&mut nest, *base, unit, lin)
                }
                // Tables are looked up on the way to a buffer.
                None if access.tables().next().is_some() => return None,
                None => self.side(&mut nest, access, resolved.len(), &mut tables),
            });
        }
        let code = &mut self.code;
        nest.drop_single(code);
        for side in &mut resolved {
            side.unroll(code, &mut nest);
        }
        nest.drop_single(code);
        nest.merge(code, &|nest, i, o| groups.mergeable(nest, i, o));
        let mut axis_of = [None; 3];
        for a in 0..nest.axes.len() {
            if axis_of[groups.of(&nest, a)].replace(a).is_some() {
                return None;
            }
        }
        let mut out = Vec::new();
        for side in &resolved {
            let (base, _, at) = side.affine().filter(|(_, ty, _)| *ty == unit)?;
            let form = &nest.forms[at];
            let mut strides = [i64::from(unit.size()); 3];
            for (stride, axis) in strides.iter_mut().zip(axis_of) {
                if let Some(a) = axis {
                    *stride = code.known(form.steps[a])?;
                }
            }
            out.push(Walked {
                addr: Addr { base, offset: form.start, stride: Stride::Const(0), gather: None },
                strides,
            });
        }
        out.try_into().ok()
    }

    /// Copies a side to its buffer, or back.
    #[allow(clippy::too_many_arguments, reason = "one thing each")]
    fn through_buffer(
        &mut self,
        groups: &Groups,
        extents: &[Value],
        known: &[i64],
        (access, sees): (&NestAccess, [bool; 3]),
        &(base, first, strides): &(Base, i64, [i64; 3]),
        unit: MemTy,
        there: bool,
    ) {
        // The interpreter's order: the last group that the side has is the fastest, then the first.
        let axes: Vec<usize> = (0..3).rev().filter(|&g| sees[g]).flat_map(|g| groups.range(g)).collect();
        let picked: Vec<Value> = axes.iter().map(|&a| extents[a]).collect();
        let mut nest = self.nest(&picked, &[]);
        let mut tables = Vec::new();
        let number = usize::from(there);
        let side = self.side(&mut nest, &restricted(access, &axes), number, &mut tables);
        let lin = self.dense(groups, known, &axes, (first, strides));
        let buffer = NestSide::plain(&mut nest, base, unit, lin);
        // What a table does not have is zero.
        let zero = tables.iter().any(Lookup::reads_zero).then(|| self.code.bits(unit.reg(), 0));
        let pair = if there { [buffer, side] } else { [side, buffer] };
        copy_nest(&mut self.code, nest, pair, &tables, zero, false);
    }

    fn emit_contract(&mut self, sizes: &[i64; 3], [mut d, mut a, mut b]: [Walked; 3], unit: MemTy) {
        let mut sizes = *sizes;
        // Lanes go along columns: the transposed product has the same sums.
        let size = i64::from(unit.size());
        if d.strides[1] != size && d.strides[0] == size {
            sizes.swap(0, 1);
            std::mem::swap(&mut a, &mut b);
            [&mut d, &mut a, &mut b].into_iter().for_each(|w| w.strides.swap(0, 1));
        }
        let [m, n, k] = sizes.map(|n| self.code.int(n));
        self.code.emit(Op::Contract(Box::new(Contract {
            m,
            n,
            k,
            d: d.addr,
            d_strides: (Stride::Const(d.strides[0]), Stride::Const(d.strides[1])),
            d_ty: unit,
            start: Start::At {
                addr: d.addr,
                row: Stride::Const(d.strides[0]),
                col: Stride::Const(d.strides[1]),
                ty: unit,
            },
            a: a.addr,
            a_strides: (Stride::Const(a.strides[0]), Stride::Const(a.strides[2])),
            b: b.addr,
            b_strides: (Stride::Const(b.strides[2]), Stride::Const(b.strides[1])),
            ab_ty: unit,
            part_of: None,
        })));
    }

    // ---- as loops ------------------------------------------------------------------------------------------------

    fn mma_loops(&mut self, groups: &Groups, extents: &[Value], sides: [&NestAccess; 3], acc: DType) {
        // The interpreter looks at the tables of both operands before anything else.
        for s in [1, 2] {
            let axes: Vec<usize> = (0..3).rev().filter(|&g| SEES[s][g]).flat_map(|g| groups.range(g)).collect();
            let picked: Vec<Value> = axes.iter().map(|&a| extents[a]).collect();
            let mut nest = self.nest(&picked, &[]);
            let mut tables = Vec::new();
            let side = self.side(&mut nest, &restricted(sides[s], &axes), 0, &mut tables);
            if !tables.is_empty() {
                nest.drop_single(&self.code);
                nest.slowest_first();
                NestEmitter::new(&mut self.code, &nest, &[side], &tables).without_lanes().run(&mut |_, _| {});
            }
        }
        let mut nest = self.nest(extents, &[]);
        let mut tables = Vec::new();
        let mut resolved: Vec<NestSide> = Vec::new();
        for access in sides {
            let side = self.side(&mut nest, access, resolved.len(), &mut tables);
            resolved.push(side);
        }
        let code = &mut self.code;
        nest.drop_single(code);
        if nest.is_empty(code) {
            return;
        }
        nest.pin(code, &tables);
        nest.merge(code, &|nest, i, o| tables.is_empty() && groups.mergeable(nest, i, o));
        for side in &mut resolved {
            side.unroll(code, &mut nest);
        }
        nest.drop_single(code);
        let lanes = loop_order(code, groups, &mut nest, &resolved, !tables.is_empty());
        let steps = match tables.is_empty() {
            true => unrolled(code, groups, &mut nest, &resolved, lanes),
            false => Steps { count: 1, a: 0, b: 0 },
        };
        let (products, float) = (MmaArithmetic { acc }, acc.is_float());
        debug_assert!(float || acc == DType::I32);
        let walk = NestEmitter::new(code, &nest, &resolved, &tables).with_zeros();
        let walk = if lanes { walk } else { walk.without_lanes() };
        walk.run(&mut |code, elems| {
            let mut sum = elems[0].load(code);
            for step in 0..steps.count {
                let a = elems[1].further(code, step * steps.a).load(code);
                let b = elems[2].further(code, step * steps.b).load(code);
                sum = products.add(code, a, b, sum);
            }
            elems[0].store(code, sum);
        });
    }
}

/// The arithmetic of a step.
struct MmaArithmetic {
    acc: DType,
}

impl MmaArithmetic {
    fn add(&self, code: &mut FunctionBuilder, a: Reg, b: Reg, sum: Reg) -> Reg {
        if !self.acc.is_float() {
            let product = code.bin(BinOp::Mul, a, b);
            return code.add(sum, product);
        }
        let sum = code.fma(a, b, sum);
        if self.acc == DType::F16 { code.un(UnOp::RoundF16, sum) } else { sum }
    }
}

/// Orders the axes: rows and columns, the depth with its fastest axis inside, and innermost the rows or columns along
/// which the accumulator has neighbours, if there are such. True if the innermost axis may be lanes.
fn loop_order(code: &FunctionBuilder, groups: &Groups, nest: &mut Nest, sides: &[NestSide], tables: bool) -> bool {
    let depth: Vec<usize> = (0..nest.axes.len()).filter(|&a| groups.of(nest, a) == 2).rev().collect();
    let mut outer: Vec<usize> = (0..nest.axes.len()).filter(|&a| groups.of(nest, a) != 2).rev().collect();
    // Rows before columns, as the interpreter goes.
    outer.sort_by_key(|&a| groups.of(nest, a));
    let neighbours = |&a: &usize| {
        let unit = match sides[0].stored {
            Stored::Whole(ty) => i64::from(ty.size()),
            Stored::Half { .. } => 0,
        };
        let long = code.known(nest.axes[a].extent).is_none_or(|n| n >= 4);
        long && sides[0].affine().is_some_and(|(_, _, at)| code.known(nest.forms[at].steps[a]) == Some(unit))
    };
    let lane = outer.iter().copied().find(neighbours).filter(|_| !tables);
    outer.retain(|&a| Some(a) != lane);
    let order: Vec<usize> = outer.into_iter().chain(depth).chain(lane).collect();
    nest.permute(&order);
    lane.is_some()
}

/// Steps of the depth that are one body, and the bytes from one to the next of both operands.
struct Steps {
    count: i64,
    a: i64,
    b: i64,
}

/// Takes a part of the fastest axis of the depth out of the nest, so that the accumulator stays in a register.
fn unrolled(code: &mut FunctionBuilder, groups: &Groups, nest: &mut Nest, sides: &[NestSide], lanes: bool) -> Steps {
    let none = Steps { count: 1, a: 0, b: 0 };
    let Some(axis) = (nest.axes.len()).checked_sub(1 + usize::from(lanes)) else { return none };
    let (Some((_, _, a)), Some((_, _, b))) = (sides[1].affine(), sides[2].affine()) else { return none };
    if groups.of(nest, axis) != 2 || sides[0].affine().is_none() {
        return none;
    }
    let count = code.known(nest.axes[axis].extent).and_then(|n| (2..=UNROLL).rev().find(|c| n % c == 0));
    let step = |f: usize| code.known(nest.forms[f].steps[axis]);
    let (Some(count), Some(a), Some(b)) = (count, step(a), step(b)) else { return none };
    nest.split(code, axis, count);
    nest.remove(axis);
    Steps { count, a, b }
}

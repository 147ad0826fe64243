//! Sorting, counting and random numbers in loop IR.

use super::code::FunctionBuilder;
use super::matrix::{Matrix, map};
use super::{Lower, convert, ops};
use ptoc_ir::loops::{BinOp as L, Cast, CmpOp as C, LTy, MemTy, Op, Reg, Stride, UnOp as U};
use ptoc_ir::tile::{Inst, TileRef, Ty};
use ptoc_isa::{CmpOp, Named, PHILOX_MULTIPLIERS, PHILOX_WEYL, Primitive, RECORD, RoundMode, SORTED};
use ptoc_opt::operands::Operands;
use ptoc_tensor::DType;

/// Fields of a record of this element.
fn fields(m: &Matrix) -> i64 {
    (RECORD / m.dtype.size()) as i64
}

/// Whether `x` comes before `y`, whatever their places. Larger ones do, and NaN before numbers.
fn before(code: &mut FunctionBuilder, x: Reg, y: Reg) -> Reg {
    let larger = code.cmp(C::Gt, x, y);
    let (nan, number) = (code.cmp(C::Ne, x, x), code.cmp(C::Eq, y, y));
    let first = code.bin(L::And, nan, number);
    code.bin(L::Or, larger, first)
}

/// A truth value as 0 or 1, i64.
fn count(code: &mut FunctionBuilder, b: Reg) -> Reg {
    let bit = code.cast(Cast::BToI, b, LTy::I32);
    code.cast(Cast::Zext, bit, LTy::I64)
}

/// A copy of element 0 of `from`, bit by bit.
fn copy(code: &mut FunctionBuilder, to: &Matrix, from: &Matrix) {
    let (to, from) = (to.raw(), from.raw());
    let x = code.load(from.ty, from.first());
    code.store(to.ty, to.first(), x);
}

impl Lower<'_> {
    pub(super) fn named(&mut self, named: &Named, inst: &Inst) -> Option<()> {
        let o = Operands::new(inst);
        let dst = o.tile(0)?;
        let d = self.tile(&dst);
        let whole = (self.value(dst.valid.0), self.value(dst.valid.1));
        match named.what {
            Primitive::Sort32 => {
                let (src, idx) = (o.tile(1)?, o.tile(2)?);
                let shape = (self.value(src.valid.0), self.value(src.valid.1));
                let (a, index) = (self.tile(&src), self.tile(&idx));
                self.beside(&dst, &d, whole, &[&src, &idx], &mut |code, d| sort32(code, d, &a, &index, shape));
            }
            Primitive::MergeSort => {
                let src = o.tile(1)?;
                let length = self.value(o.scalar(2)?);
                let shape = (self.value(src.valid.0), self.value(src.valid.1));
                let a = self.tile(&src);
                self.beside(&dst, &d, whole, &[&src], &mut |code, d| merge(code, d, &a, length, shape));
            }
            Primitive::MergeTiles => {
                let sources: Vec<TileRef> = (1..inst.operands.len()).map(|k| o.tile(k)).collect::<Option<_>>()?;
                let lists: Vec<(Matrix, Reg)> = sources.iter().map(|t| (self.tile(t), self.value(t.valid.1))).collect();
                let read: Vec<&TileRef> = sources.iter().collect();
                self.beside(&dst, &d, whole, &read, &mut |code, d| merge_tiles(code, d, &lists, whole.1));
            }
            Primitive::Places => {
                let (src, k, counts) = (o.tile(1)?, o.tile(2)?, o.tile(3)?);
                let (first, op) = (self.value(o.scalar(4)?), inst.attrs.cmp?);
                let shape = (self.value(src.valid.0), self.value(src.valid.1));
                let (a, k_at) = (self.tile(&src), self.tile(&k));
                self.write_results(&[&dst, &counts], &[&src, &k], &mut |code, results| {
                    places(code, op, results, (&a, &k_at), first, shape, whole);
                });
            }
            Primitive::Pack => {
                let (src, scale) = (o.tile(1)?, o.tile(2)?);
                let (a, s) = (self.tile(&src), self.tile(&scale).one_column());
                self.beside(&dst, &d, whole, &[&src, &scale], &mut |code, d| {
                    let sources = [alternate(code, &a, 0), alternate(code, &a, 1), s];
                    map(code, whole, d, &sources, &mut |code, v| {
                        let (low, high) = (quarter_byte(code, v[0], v[2]), quarter_byte(code, v[1], v[2]));
                        let (four, mask) = (code.i32(4), code.i32(15));
                        let (low, high) = (code.bin(L::And, low, mask), code.bin(L::Shl, high, four));
                        let byte = code.bin(L::Or, low, high);
                        ops::settle(code, Ty::D(DType::I8), byte)
                    });
                });
            }
            Primitive::Unpack => {
                let (src, scale, offset) = (o.tile(1)?, o.tile(2)?, o.tile(3)?);
                let sources = [self.tile(&src), self.tile(&scale).one_column(), self.tile(&offset).one_column()];
                let shape = (self.value(src.valid.0), self.value(src.valid.1));
                self.beside(&dst, &d, whole, &[&src, &scale, &offset], &mut |code, d| {
                    // The half that is wanted at the top of 32 bits, then down with its sign.
                    for (half, up) in [(0, 28), (1, 24)] {
                        let d = alternate(code, d, half);
                        map(code, shape, &d, &sources, &mut |code, v| {
                            let (up, down) = (code.i32(up), code.i32(28));
                            let q = code.bin(L::Shl, v[0], up);
                            let q = code.bin(L::Shr, q, down);
                            let q =
                                convert::convert(code, Ty::D(DType::I32), Ty::D(DType::F32), q, RoundMode::Rint, false);
                            let q = code.bin(L::Sub, q, v[2]);
                            code.bin(L::Mul, q, v[1])
                        });
                    }
                });
            }
            Primitive::Histogram => {
                let (src, idx) = (o.tile(1)?, o.tile(2)?);
                let byte = self.constant(o.scalar(3)?)?;
                let shape = (self.value(src.valid.0), self.value(src.valid.1));
                let (a, index) = (self.tile(&src), self.tile(&idx));
                self.beside(&dst, &d, whole, &[&src, &idx], &mut |code, d| {
                    histogram(code, d, (&a, &index), byte, shape, whole);
                });
            }
            Primitive::Random => {
                let [key, low, high] = [1, 2, 3].map(|k| o.scalar(k));
                let (key, low, high) = (self.value(key?), self.value(low?), self.value(high?));
                let rounds = self.constant(o.scalar(4)?)?;
                random(&mut self.code, &d, (key, low, high), rounds, whole);
            }
        }
        Some(())
    }

    /// Fills the destination beside the sources, where they share bytes.
    fn beside(
        &mut self,
        dst: &TileRef,
        d: &Matrix,
        whole: (Reg, Reg),
        sources: &[&TileRef],
        write: &mut dyn FnMut(&mut FunctionBuilder, &Matrix),
    ) {
        let read: Vec<(&TileRef, bool)> = sources.iter().map(|t| (*t, true)).collect();
        let clash = self.clash(dst, &read);
        self.write_apart(clash, dst, d, whole, write);
    }
}

/// Every second column, from the first or the second on.
fn alternate(code: &mut FunctionBuilder, m: &Matrix, first: i64) -> Matrix {
    let first = code.int(first);
    let from = m.at_col(code, first);
    let cols = match m.cols {
        Stride::Const(n) => Stride::Const(2 * n),
        Stride::Reg(r) => Stride::Reg(code.times(r, 2)),
    };
    Matrix { cols, ..from }
}

/// The nearest of -8 to 7.
fn quarter_byte(code: &mut FunctionBuilder, x: Reg, scale: Reg) -> Reg {
    let x = code.bin(L::Mul, x, scale);
    let q = convert::convert(code, Ty::D(DType::F32), Ty::D(DType::I8), x, RoundMode::Rint, true);
    let (least, most) = (code.i32(-8), code.i32(7));
    let q = code.bin(L::Max, q, least);
    code.bin(L::Min, q, most)
}

/// The rank of an element is the number of those that come before it; its record goes there.
fn sort32(code: &mut FunctionBuilder, d: &Matrix, a: &Matrix, index: &Matrix, (rows, cols): (Reg, Reg)) {
    let fields = fields(a);
    code.for_count(rows, |code, i| {
        let (d, a, index) = (d.at_row(code, i), a.at_row(code, i), index.at_row(code, i));
        let zero = code.int(0);
        code.for_range(zero, cols, SORTED as i64, |code, start| {
            let end = code.plus(start, SORTED as i64);
            let end = code.bin(L::Min, end, cols);
            code.for_range(start, end, 1, |code, j| {
                let here = a.at_col(code, j);
                let x = code.load(here.ty, here.first());
                let rank = code.var(LTy::I64);
                code.emit(Op::Set { var: rank, value: start });
                code.for_range(start, end, 1, |code, k| {
                    let other = a.at_col(code, k);
                    let y = code.load(other.ty, other.first());
                    let (first, later) = (before(code, y, x), before(code, x, y));
                    let apart = code.bin(L::Or, first, later);
                    let equal = code.un(U::Not, apart);
                    let earlier = code.cmp(C::Lt, k, j);
                    let equal = code.bin(L::And, equal, earlier);
                    let counts = code.bin(L::Or, first, equal);
                    let one = count(code, counts);
                    let so_far = code.get(rank);
                    let value = code.add(so_far, one);
                    code.emit(Op::Set { var: rank, value });
                });
                let place = code.get(rank);
                let place = code.times(place, fields);
                let record = d.at_col(code, place);
                copy(code, &record, &here);
                let index = index.at_col(code, j);
                let n = code.load(index.ty, index.first());
                let put = |code: &mut FunctionBuilder, at: i64, value: Reg| {
                    let at = code.int(at);
                    let field = record.at_col(code, at).raw();
                    code.store(field.ty, field.first(), value);
                };
                if fields == 2 {
                    put(code, 1, n);
                } else {
                    let none = code.i32(0);
                    put(code, 1, none);
                    put(code, 2, n);
                    let sixteen = code.i32(16);
                    let high = code.bin(L::ShrU, n, sixteen);
                    put(code, 3, high);
                }
            });
        });
    });
}

/// Four heads; the best of those that are left goes next.
fn merge(code: &mut FunctionBuilder, d: &Matrix, a: &Matrix, length: Reg, (rows, cols): (Reg, Reg)) {
    let fields = fields(a);
    let four = code.times(length, 4);
    let one = code.int(1);
    // The number of groups; a length is at least 1 (elaboration has checked it).
    let positive = code.bin(L::Max, four, one);
    let filled = code.add(cols, positive);
    let filled = code.plus(filled, -1);
    let groups = code.bin(L::DivFloor, filled, positive);
    code.for_count(rows, |code, i| {
        let (d, a) = (d.at_row(code, i), a.at_row(code, i));
        code.for_count(groups, |code, g| {
            let start = code.bin(L::Mul, g, positive);
            let heads: Vec<_> = (0..4).map(|_| code.var(LTy::I64)).collect();
            let mut ends = Vec::new();
            for (l, head) in heads.iter().enumerate() {
                let at = code.times(length, l as i64);
                let at = code.add(start, at);
                let value = code.bin(L::Min, at, cols);
                code.emit(Op::Set { var: *head, value });
                let end = code.add(at, length);
                ends.push(code.bin(L::Min, end, cols));
            }
            let last = ends[3];
            code.for_range(start, last, fields, |code, out| {
                let none = code.int(-1);
                let top = code.plus(cols, -1);
                let (mut place, mut best) = (none, None);
                for (head, end) in heads.iter().zip(&ends) {
                    let at = code.get(*head);
                    let left = code.cmp(C::Lt, at, *end);
                    // What is left of no list is read somewhere, and not taken.
                    let safe = code.bin(L::Min, at, top);
                    let here = a.at_col(code, safe);
                    let x = code.load(here.ty, here.first());
                    let Some(y) = best else {
                        place = code.select(left, at, none);
                        best = Some(x);
                        continue;
                    };
                    let nothing = code.cmp(C::Eq, place, none);
                    let better = before(code, x, y);
                    let better = code.bin(L::Or, nothing, better);
                    let taken = code.bin(L::And, left, better);
                    place = code.select(taken, at, place);
                    best = Some(code.select(taken, x, y));
                }
                for f in 0..fields {
                    let f = code.int(f);
                    let (to, from) = (code.add(out, f), code.add(place, f));
                    let (to, from) = (d.at_col(code, to), a.at_col(code, from));
                    copy(code, &to, &from);
                }
                for head in &heads {
                    let at = code.get(*head);
                    let here = code.cmp(C::Eq, at, place);
                    let step = count(code, here);
                    let step = code.times(step, fields);
                    let value = code.add(at, step);
                    code.emit(Op::Set { var: *head, value });
                }
            });
        });
    });
}

/// The best of the heads of those lists that are not at their end goes next.
fn merge_tiles(code: &mut FunctionBuilder, d: &Matrix, lists: &[(Matrix, Reg)], whole: Reg) {
    let fields = fields(d);
    let heads: Vec<_> = lists.iter().map(|_| code.var(LTy::I64)).collect();
    let zero = code.int(0);
    for head in &heads {
        code.emit(Op::Set { var: *head, value: zero });
    }
    code.for_range(zero, whole, fields, |code, out| {
        let none = code.int(-1);
        let (mut chosen, mut best) = (none, None);
        for (l, ((a, end), head)) in lists.iter().zip(&heads).enumerate() {
            let at = code.get(*head);
            let left = code.cmp(C::Lt, at, *end);
            // What is left of no list is read somewhere, and not taken.
            let top = code.plus(*end, -1);
            let (inside, zero) = (code.bin(L::Min, at, top), code.int(0));
            let inside = code.bin(L::Max, inside, zero);
            let here = a.at_col(code, inside);
            let x = code.load(here.ty, here.first());
            let this = code.int(l as i64);
            let Some(y) = best else {
                chosen = code.select(left, this, none);
                best = Some(x);
                continue;
            };
            let nothing = code.cmp(C::Eq, chosen, none);
            let better = before(code, x, y);
            let better = code.bin(L::Or, nothing, better);
            let taken = code.bin(L::And, left, better);
            chosen = code.select(taken, this, chosen);
            best = Some(code.select(taken, x, y));
        }
        for (l, ((a, _), head)) in lists.iter().zip(&heads).enumerate() {
            let this = code.int(l as i64);
            let taken = code.cmp(C::Eq, chosen, this);
            code.either(
                taken,
                |code| {
                    let at = code.get(*head);
                    for f in 0..fields {
                        let f = code.int(f);
                        let (to, from) = (code.add(out, f), code.add(at, f));
                        let (to, from) = (d.at_col(code, to), a.at_col(code, from));
                        copy(code, &to, &from);
                    }
                    let value = code.plus(at, fields);
                    code.emit(Op::Set { var: *head, value });
                },
                |_| {},
            );
        }
    });
}

/// TGATHER by a comparison: a row is zeros, then the places one behind the other as far as there is room.
fn places(
    code: &mut FunctionBuilder,
    op: CmpOp,
    results: &[Matrix],
    (a, k): (&Matrix, &Matrix),
    first: Reg,
    (rows, cols): (Reg, Reg),
    whole: (Reg, Reg),
) {
    let [d, counts] = results else { return };
    let ty = Ty::D(a.dtype);
    map(code, whole, d, &[], &mut |code, _| code.i32(0));
    code.for_count(rows, |code, i| {
        let (d, a) = (d.at_row(code, i), a.at_row(code, i));
        let (counts, k) = (counts.at_row(code, i), k.at_row(code, i));
        let wanted = code.load(k.ty, k.first());
        let found = code.var(LTy::I64);
        let zero = code.int(0);
        code.emit(Op::Set { var: found, value: zero });
        code.for_count(cols, |code, j| {
            let here = a.at_col(code, j);
            let x = code.load(here.ty, here.first());
            let holds = ops::compare(code, ty, op, x, wanted);
            let n = code.get(found);
            let room = code.cmp(C::Lt, n, whole.1);
            let put = code.bin(L::And, holds, room);
            code.either(
                put,
                |code| {
                    let place = d.at_col(code, n);
                    let at = code.add(first, j);
                    let at = code.cast(Cast::Wrap, at, LTy::I32);
                    code.store(place.ty, place.first(), at);
                },
                |_| {},
            );
            let one = count(code, holds);
            let value = code.add(n, one);
            code.emit(Op::Set { var: found, value });
        });
        let n = code.get(found);
        let n = code.cast(Cast::Wrap, n, LTy::I32);
        code.store(counts.ty, counts.first(), n);
    });
}

fn histogram(
    code: &mut FunctionBuilder,
    d: &Matrix,
    (a, index): (&Matrix, &Matrix),
    byte: i64,
    (rows, cols): (Reg, Reg),
    whole: (Reg, Reg),
) {
    let above = a.dtype.size() as i64 - 1 - byte;
    let of = |code: &mut FunctionBuilder, x: Reg, byte: i64| {
        let (shift, mask) = (code.i32(8 * byte as i32), code.i32(0xff));
        let x = code.bin(L::ShrU, x, shift);
        code.bin(L::And, x, mask)
    };
    map(code, whole, d, &[], &mut |code, _| code.i32(0));
    code.for_count(rows, |code, i| {
        let (d, a, index) = (d.at_row(code, i), a.at_row(code, i), index.at_row(code, i));
        code.for_count(cols, |code, j| {
            let here = a.at_col(code, j);
            let x = code.load(here.ty, here.first());
            let mut counted = code.bits(LTy::Bool, 1);
            for m in 0..above {
                let at = code.int(m);
                let wanted = index.at_col(code, at);
                let wanted = code.load(wanted.ty, wanted.first());
                let have = of(code, x, a.dtype.size() as i64 - 1 - m);
                let same = code.cmp(C::Eq, have, wanted);
                counted = code.bin(L::And, counted, same);
            }
            let bin = of(code, x, byte);
            let bin = code.cast(Cast::Zext, bin, LTy::I64);
            let bin = d.at_col(code, bin);
            let so_far = code.load(bin.ty, bin.first());
            let one = code.cast(Cast::BToI, counted, LTy::I32);
            let more = code.bin(L::Add, so_far, one);
            code.store(bin.ty, bin.first(), more);
        });
    });
}

/// Every lane computes its block.
fn random(
    code: &mut FunctionBuilder,
    d: &Matrix,
    (key, low, high): (Reg, Reg, Reg),
    rounds: i64,
    (rows, cols): (Reg, Reg),
) {
    debug_assert_eq!(d.ty, MemTy::I32);
    code.for_count(rows, |code, i| {
        let row = d.at_row(code, i);
        let start = code.bin(L::Mul, i, cols);
        code.lanes(cols, |code, j| {
            let mask = code.int(0xffff_ffff);
            let half = code.int(32);
            let n = code.add(start, j);
            let two = code.int(2);
            let block = code.bin(L::ShrU, n, two);
            // The carry of the sum: it is below what was added.
            let sum = code.add(low, block);
            let carried = code.cmp(C::LtU, sum, low);
            let carry = count(code, carried);
            let top = code.add(high, carry);
            let split = |code: &mut FunctionBuilder, x: Reg| (code.bin(L::And, x, mask), code.bin(L::ShrU, x, half));
            let ((c0, c1), (c2, c3)) = (split(code, sum), split(code, top));
            let mut c = [c0, c1, c2, c3];
            let mut k: [Reg; 2] = split(code, key).into();
            for _ in 0..rounds {
                let m = PHILOX_MULTIPLIERS.map(i64::from);
                let (p0, p1) = (code.times(c[0], m[0]), code.times(c[2], m[1]));
                let ((low0, high0), (low1, high1)) = (split(code, p0), split(code, p1));
                let xor = |code: &mut FunctionBuilder, a, b, k| {
                    let x = code.bin(L::Xor, a, b);
                    code.bin(L::Xor, x, k)
                };
                c = [xor(code, high1, c[1], k[0]), low1, xor(code, high0, c[3], k[1]), low0];
                for (k, w) in k.iter_mut().zip(PHILOX_WEYL) {
                    let sum = code.plus(*k, i64::from(w));
                    *k = code.bin(L::And, sum, mask);
                }
            }
            let three = code.int(3);
            let word = code.bin(L::And, n, three);
            let mut x = c[3];
            for (w, value) in c.into_iter().enumerate().take(3).rev() {
                let w = code.int(w as i64);
                let this = code.cmp(C::Eq, word, w);
                x = code.select(this, value, x);
            }
            let x = code.cast(Cast::Wrap, x, LTy::I32);
            code.store(row.ty, row.lane(), x);
        });
    });
}

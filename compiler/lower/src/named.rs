//! Counting, packing and random numbers in loop IR; sorts are beside (`sorts.rs`).

use super::code::FunctionBuilder;
use super::matrix::{Matrix, map};
use super::{Lower, convert, ops};
use ptoc_ir::loops::{BinOp as L, Cast, CmpOp as C, LTy, MemTy, Op, Reg, Stride};
use ptoc_ir::tile::{Inst, TileRef, Ty};
use ptoc_isa::{CmpOp, Named, PHILOX_MULTIPLIERS, PHILOX_WEYL, Primitive, RoundMode};
use ptoc_opt::operands::Operands;
use ptoc_tensor::DType;

/// A truth value as 0 or 1, i64.
fn count(code: &mut FunctionBuilder, b: Reg) -> Reg {
    let bit = code.cast(Cast::BToI, b, LTy::I32);
    code.cast(Cast::Zext, bit, LTy::I64)
}

impl Lower<'_> {
    pub(super) fn named(&mut self, named: &Named, inst: &Inst) -> Option<()> {
        let o = Operands::new(inst);
        let dst = o.tile(0)?;
        let d = self.tile(&dst);
        let whole = (self.value(dst.valid.0), self.value(dst.valid.1));
        match named.what {
            Primitive::Sort32 => self.sort(&dst, &o.tile(1)?, &o.tile(2)?),
            Primitive::MergeSort => self.merge_runs(&dst, &o.tile(1)?, o.scalar(2)?),
            Primitive::MergeTiles => {
                let sources: Vec<TileRef> = (1..inst.operands.len()).map(|k| o.tile(k)).collect::<Option<_>>()?;
                self.merge_tiles(&dst, &sources);
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
    pub(super) fn beside(
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

//! Instructions of two valid shapes, of pairs of value and index, and of streams that are taken apart or put together:
//! a few maps over parts of their operands.

use super::code::FunctionBuilder;
use super::matrix::{Matrix, map};
use super::memory::Clash;
use super::reduce::{fixed, wide};
use super::{Lower, ops};
use ptoc_ir::loops::{self, Base, BinOp as L, Reg, Stride};
use ptoc_ir::tile::{TileRef, Ty};
use ptoc_isa::{BinOp, CmpOp, Reduce};

/// The larger and the smaller source of a partial operation.
struct Nested<'a> {
    large: &'a TileRef,
    small: &'a TileRef,
    /// The smaller one is the first.
    swapped: bool,
}

/// Which of the sources is as large as the result: the verifier has seen that one is.
fn nested<'a>(d: &TileRef, a: &'a TileRef, b: &'a TileRef) -> Nested<'a> {
    match a.valid == d.valid || b.valid != d.valid {
        true => Nested { large: a, small: b, swapped: false },
        false => Nested { large: b, small: a, swapped: true },
    }
}

impl Lower<'_> {
    fn extents(&mut self, t: &TileRef) -> (Reg, Reg) {
        (self.value(t.valid.0), self.value(t.valid.1))
    }

    /// Lets `write` fill the results. If one of them has bytes of `sources`, they are filled beside and copied then.
    pub(super) fn write_results(
        &mut self,
        results: &[&TileRef],
        sources: &[&TileRef],
        write: &mut dyn FnMut(&mut FunctionBuilder, &[Matrix]),
    ) {
        let reads: Vec<(&TileRef, bool)> = sources.iter().map(|t| (*t, true)).collect();
        let apart = results.iter().all(|d| matches!(self.clash(d, &reads), Clash::No));
        let places: Vec<Matrix> = results.iter().map(|d| self.tile(d)).collect();
        if apart {
            return write(&mut self.code, &places);
        }
        let bytes = |k: usize| {
            let elements = u64::from(results[k].rows) * u64::from(results[k].cols);
            (elements * u64::from(wide(places[k].dtype).size())).next_multiple_of(8)
        };
        let space = self.temp_space((0..results.len()).map(bytes).sum());
        let mut at = 0;
        let mut beside = Vec::new();
        for (k, d) in results.iter().enumerate() {
            let (size, offset) = (i64::from(places[k].ty.size()), self.code.int(at as i64));
            at += bytes(k);
            let (rows, cols) = (Stride::Const(i64::from(d.cols) * size), Stride::Const(size));
            beside.push(Matrix { base: Base::Space(space), offset, rows, cols, ..places[k] });
        }
        write(&mut self.code, &beside);
        for (k, d) in results.iter().enumerate() {
            let shape = self.extents(d);
            map(&mut self.code, shape, &places[k].raw(), &[beside[k].raw()], &mut |_, v| v[0]);
        }
    }

    /// The larger source is copied, then both are combined where the smaller one is.
    pub(super) fn part(&mut self, op: BinOp, dst: &TileRef, a: &TileRef, b: &TileRef) {
        let n = nested(dst, a, b);
        let (whole, inner) = (self.extents(dst), self.extents(n.small));
        let (x, y, large) = (self.tile(a), self.tile(b), self.tile(n.large));
        let ty = Ty::D(x.dtype);
        self.write_results(&[dst], &[a, b], &mut |code, d| {
            map(code, whole, &d[0].raw(), &[large.raw()], &mut |_, v| v[0]);
            map(code, inner, &d[0], &[x, y], &mut |code, v| ops::binary(code, ty, op, v[0], v[1]));
        });
    }

    /// Operands in the order of the table: values, then indices. The pairs of the larger source are copied, then the
    /// better of two chosen where the smaller one is.
    pub(super) fn part_arg(&mut self, op: Reduce, tiles: &[TileRef; 6]) {
        let [dst, a, b, idx, ai, bi] = tiles;
        let n = nested(dst, a, b);
        let (whole, inner) = (self.extents(dst), self.extents(n.small));
        let [x, y, xi, yi] = [a, b, ai, bi].map(|t| self.tile(t));
        let (large, large_idx) = if n.swapped { (y, yi) } else { (x, xi) };
        let ty = Ty::D(x.dtype);
        let cmp = if op == Reduce::Min { CmpOp::Lt } else { CmpOp::Gt };
        let first = |code: &mut FunctionBuilder, x: Reg, y: Reg| {
            let better = ops::compare(code, ty, cmp, x, y);
            let nan = code.cmp(loops::CmpOp::Ne, x, x);
            code.bin(L::Or, better, nan)
        };
        self.write_results(&[dst, idx], &[a, b, ai, bi], &mut |code, d| {
            map(code, whole, &d[1], &[large_idx], &mut |_, v| v[0]);
            map(code, inner, &d[1], &[x, y, xi, yi], &mut |code, v| {
                let first = first(code, v[0], v[1]);
                code.select(first, v[2], v[3])
            });
            map(code, whole, &d[0].raw(), &[large.raw()], &mut |_, v| v[0]);
            map(code, inner, &d[0], &[x, y], &mut |code, v| {
                let first = first(code, v[0], v[1]);
                code.select(first, v[0], v[1])
            });
        });
    }

    /// Both halves of the stream of `a` and `b`: even columns come from the one, odd ones from the other.
    pub(super) fn interleave(&mut self, second: &TileRef, first: &TileRef, b: &TileRef, a: &TileRef) {
        let (rows, cols) = self.extents(a);
        let (x, y) = (self.tile(a).raw(), self.tile(b).raw());
        let one = self.code.int(1);
        let half = self.code.bin(L::Shr, cols, one);
        self.write_results(&[second, first], &[b, a], &mut |code, d| {
            for (k, target) in [(0, d[1].raw()), (1, d[0].raw())] {
                for (odd, source) in [(false, x), (true, y)] {
                    let source = if k == 1 { source.at_col(code, half) } else { source };
                    let target = every_other(code, target, odd);
                    map(code, (rows, half), &target, &[source], &mut |_, v| v[0]);
                }
            }
        });
    }

    /// The even and the odd elements of rows that follow each other in `parts`.
    pub(super) fn deinterleave(&mut self, odd: &TileRef, even: &TileRef, parts: &[TileRef]) {
        let (rows, cols) = self.extents(&parts[0]);
        let sources: Vec<Matrix> = parts.iter().map(|t| self.tile(t).raw()).collect();
        let one = self.code.int(1);
        let half = self.code.bin(L::Shr, cols, one);
        let reads: Vec<&TileRef> = parts.iter().collect();
        self.write_results(&[odd, even], &reads, &mut |code, d| {
            for (target, odd) in [(d[1].raw(), false), (d[0].raw(), true)] {
                for (k, source) in sources.iter().enumerate() {
                    let target = if k == 1 { target.at_col(code, half) } else { target };
                    let source = every_other(code, *source, odd);
                    map(code, (rows, half), &target, &[source], &mut |_, v| v[0]);
                }
            }
        });
    }
}

/// The even columns of a matrix, or its odd ones.
fn every_other(code: &mut FunctionBuilder, m: Matrix, odd: bool) -> Matrix {
    let one = code.int(1);
    let start = if odd { m.at_col(code, one) } else { m };
    Matrix { cols: Stride::Const(2 * fixed(m.cols)), ..start }
}

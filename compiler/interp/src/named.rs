//! Sorting, counting, random numbers: the plainest programs for them.

use super::machine::Machine;
use super::matrix::Matrix;
use super::trap::Trap;
use ptoc_ir::scalar;
use ptoc_ir::tile::{Inst, Operand, Ty};
use ptoc_isa::{CmpOp, Named, PHILOX_MULTIPLIERS, PHILOX_WEYL, Primitive, RECORD, SORTED};
use ptoc_tensor::DType;

type TrapResult<T = ()> = Result<T, Trap>;

impl<'k> Machine<'k, '_> {
    /// The elements of the destination.
    pub(super) fn named(&mut self, named: &Named, inst: &'k Inst, dtype: DType) -> TrapResult<Matrix> {
        let name = inst.instr.get().name;
        let (mut tiles, mut numbers) = (Vec::new(), Vec::new());
        for operand in &inst.operands[1..] {
            match operand {
                Operand::Tile(t) => tiles.push(self.take(t)?),
                Operand::Scalar(v) => numbers.push(self.index(*v)),
                Operand::View(_) => return self.malformed(name),
            }
        }
        let Some(Operand::Tile(d)) = inst.operands.first() else { return self.malformed(name) };
        let w = self.window(d)?;
        self.spend((w.rows * w.cols) as u64)?;
        let fields = RECORD / dtype.size();
        let result = match (named.what, &tiles[..], &numbers[..]) {
            (Primitive::Sort32, [a, idx], []) if (idx.rows, idx.cols) == (a.rows, a.cols) => Some(sort32(a, idx)),
            (Primitive::MergeSort, [a], [length]) if *length > 0 && a.cols % fields == 0 => {
                usize::try_from(*length).ok().filter(|n| n % fields == 0).map(|n| merged(a, n))
            }
            (Primitive::MergeTiles, lists, []) if lists.iter().all(|l| l.rows == 1 && l.cols % fields == 0) => {
                let lists: Vec<(&Matrix, usize, usize)> = lists.iter().map(|l| (l, 0, l.cols)).collect();
                let mut bits = Vec::new();
                merge(0, lists, &mut bits);
                Some(Matrix { dtype, rows: 1, cols: bits.len(), bits })
            }
            (Primitive::Histogram, [a, idx], [byte]) if idx.rows == a.rows => histogram(a, idx, *byte),
            (Primitive::Pack, [a, scale], [_]) if (scale.rows, scale.cols) == (a.rows, 1) && a.cols % 2 == 0 => {
                Some(packed(a, scale))
            }
            (Primitive::Unpack, [a, scale, offset], [_])
                if (scale.rows, scale.cols) == (a.rows, 1) && (offset.rows, offset.cols) == (a.rows, 1) =>
            {
                Some(unpacked(a, scale, offset))
            }
            (Primitive::Random, [], [key, low, high, rounds]) => {
                Some(random(dtype, (w.rows, w.cols), *key as u64, [*low as u64, *high as u64], *rounds as u32))
            }
            _ => None,
        };
        match result {
            Some(result) => Ok(result),
            None => self.malformed(name),
        }
    }
}

/// Whether `x` comes before `y`, whatever their places. Larger ones do, and NaN before numbers.
fn before(x: f32, y: f32) -> bool {
    x > y || (x.is_nan() && !y.is_nan())
}

fn value(a: &Matrix, i: usize, j: usize) -> f32 {
    scalar::to_f32(a.dtype, a.at(i, j))
}

fn sort32(a: &Matrix, idx: &Matrix) -> Matrix {
    let fields = RECORD / a.dtype.size();
    let mut bits = Vec::with_capacity(a.bits.len() * fields);
    for i in 0..a.rows {
        for start in (0..a.cols).step_by(SORTED) {
            let mut order: Vec<usize> = (start..a.cols.min(start + SORTED)).collect();
            // A stable sort.
            order.sort_by(|&x, &y| {
                let (x, y) = (value(a, i, x), value(a, i, y));
                before(y, x).cmp(&before(x, y))
            });
            for j in order {
                let index = idx.at(i, j);
                bits.push(a.at(i, j));
                if fields == 2 {
                    bits.push(index);
                } else {
                    bits.extend([0, index & 0xffff, index >> 16]);
                }
            }
        }
    }
    Matrix { dtype: a.dtype, rows: a.rows, cols: a.cols * fields, bits }
}

fn merged(a: &Matrix, length: usize) -> Matrix {
    let mut bits = Vec::with_capacity(a.bits.len());
    for i in 0..a.rows {
        for group in (0..a.cols).step_by(4 * length) {
            let end = |l: usize| (group + l * length).min(a.cols);
            merge(i, (0..4).map(|l| (a, end(l), end(l + 1))).collect(), &mut bits);
        }
    }
    Matrix { dtype: a.dtype, rows: a.rows, cols: a.cols, bits }
}

/// The records of several lists, each of them columns of a row, the best one next.
fn merge(i: usize, mut lists: Vec<(&Matrix, usize, usize)>, bits: &mut Vec<u64>) {
    loop {
        let mut best: Option<usize> = None;
        for (l, (a, at, end)) in lists.iter().enumerate() {
            let better = |b: usize| before(value(a, i, *at), value(lists[b].0, i, lists[b].1));
            if at < end && best.is_none_or(better) {
                best = Some(l);
            }
        }
        let Some(l) = best else { break };
        let (a, at, _) = lists[l];
        let fields = RECORD / a.dtype.size();
        bits.extend((at..at + fields).map(|j| a.at(i, j)));
        lists[l].1 += fields;
    }
}

/// TGATHER by a comparison: where it holds in each row, of `cols` columns, and how often.
pub(super) fn places(op: CmpOp, dtype: DType, cols: usize, a: &Matrix, k: &Matrix, first: i64) -> Option<[Matrix; 2]> {
    if (k.rows, k.cols) != (a.rows, 1) || k.dtype != a.dtype {
        return None;
    }
    let holds = |i: usize, j: &usize| scalar::compare(op, a.ty(), a.at(i, *j), k.at(i, 0));
    let found: Vec<Vec<usize>> = (0..a.rows).map(|i| (0..a.cols).filter(|j| holds(i, j)).collect()).collect();
    let whole = |n: i64| scalar::from_int(Ty::D(dtype), i128::from(n));
    let places =
        Matrix::new(dtype, a.rows, cols, |i, n| found[i].get(n).map_or(0, |j| whole(first.wrapping_add(*j as i64))));
    let counts = Matrix::new(dtype, a.rows, 1, |i, _| whole(found[i].len() as i64));
    Some([places, counts])
}

/// Two columns in a byte, each the nearest of -8 to 7.
fn packed(a: &Matrix, scale: &Matrix) -> Matrix {
    let half = |i: usize, j: usize| {
        let x = (value(a, i, j) * value(scale, i, 0)).round_ties_even();
        (x.clamp(-8.0, 7.0) as i8) as u64 & 15
    };
    Matrix::new(DType::I8, a.rows, a.cols / 2, |i, j| half(i, 2 * j) | half(i, 2 * j + 1) << 4)
}

fn unpacked(a: &Matrix, scale: &Matrix, offset: &Matrix) -> Matrix {
    Matrix::new(DType::F32, a.rows, 2 * a.cols, |i, j| {
        let byte = a.at(i, j / 2) as u8;
        // The half that is wanted at the top, then down with its sign.
        let q = (if j % 2 == 0 { byte << 4 } else { byte }) as i8 >> 4;
        u64::from(((f32::from(q) - value(offset, i, 0)) * value(scale, i, 0)).to_bits())
    })
}

/// `None` if elements have no such byte, or the index has not the bytes above it.
fn histogram(a: &Matrix, idx: &Matrix, byte: i64) -> Option<Matrix> {
    let byte = usize::try_from(byte).ok().filter(|b| *b < a.dtype.size())?;
    let above = a.dtype.size() - 1 - byte;
    if above > idx.cols {
        return None;
    }
    let of = |x: u64, n: usize| x >> (8 * n) & 0xff;
    let counted = |i: usize, x: u64| (0..above).all(|m| of(x, a.dtype.size() - 1 - m) == idx.at(i, m));
    Some(Matrix::new(DType::U32, a.rows, 256, |i, b| {
        let row = (0..a.cols).map(|j| a.at(i, j));
        row.filter(|x| of(*x, byte) == b as u64 && counted(i, *x)).count() as u64
    }))
}

fn random(dtype: DType, (rows, cols): (usize, usize), key: u64, counter: [u64; 2], rounds: u32) -> Matrix {
    let start = u128::from(counter[1]) << 64 | u128::from(counter[0]);
    Matrix::new(dtype, rows, cols, |i, j| {
        let n = i * cols + j;
        u64::from(philox(start.wrapping_add(n as u128 / 4), key, rounds)[n % 4])
    })
}

/// Philox 4x32: words of counter and key from the least significant one.
fn philox(counter: u128, key: u64, rounds: u32) -> [u32; 4] {
    let mut c: [u32; 4] = std::array::from_fn(|n| (counter >> (32 * n)) as u32);
    let mut k = [key as u32, (key >> 32) as u32];
    for _ in 0..rounds {
        let product = |m: u32, x: u32| {
            let p = u64::from(m) * u64::from(x);
            ((p >> 32) as u32, p as u32)
        };
        let ((high0, low0), (high1, low1)) =
            (product(PHILOX_MULTIPLIERS[0], c[0]), product(PHILOX_MULTIPLIERS[1], c[2]));
        c = [high1 ^ c[1] ^ k[0], low1, high0 ^ c[3] ^ k[1], low0];
        k = [k[0].wrapping_add(PHILOX_WEYL[0]), k[1].wrapping_add(PHILOX_WEYL[1])];
    }
    c
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The known answers that its authors publish (Random123, philox4x32 10).
    #[test]
    fn known_answers() {
        let words = |w: [u32; 4]| (0..4).fold(0u128, |n, k| n | u128::from(w[k]) << (32 * k));
        assert_eq!(philox(0, 0, 10), [0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8]);
        assert_eq!(philox(u128::MAX, u64::MAX, 10), [0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd]);
        let counter = words([0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344]);
        let key = 0xa4093822 | 0x299f31d0 << 32;
        assert_eq!(philox(counter, key, 10), [0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1]);
    }
}

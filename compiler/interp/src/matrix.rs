//! The values of an operand, and what instructions compute of them.

use ptoc_ir::scalar;
use ptoc_ir::tile::{SUM_LANES, Ty};
use ptoc_isa::{BinOp, CmpOp, Reduce};
use ptoc_tensor::DType;
use ptoc_tensor::matrix_unit::{Factor, FactorType, SumProfile};

/// `rows x cols` elements as bits, row-major.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Matrix {
    pub dtype: DType,
    pub rows: usize,
    pub cols: usize,
    pub bits: Vec<u64>,
}

impl Matrix {
    pub fn new(dtype: DType, rows: usize, cols: usize, mut element: impl FnMut(usize, usize) -> u64) -> Matrix {
        let mut bits = Vec::with_capacity(rows * cols);
        for i in 0..rows {
            for j in 0..cols {
                bits.push(element(i, j));
            }
        }
        Matrix { dtype, rows, cols, bits }
    }

    pub fn at(&self, i: usize, j: usize) -> u64 {
        self.bits[i * self.cols + j]
    }

    pub fn ty(&self) -> Ty {
        Ty::D(self.dtype)
    }

    /// The same shape, every element computed.
    pub fn map(&self, dtype: DType, mut f: impl FnMut(u64) -> u64) -> Matrix {
        Matrix { dtype, bits: self.bits.iter().map(|&x| f(x)).collect(), ..*self }
    }

    fn f32(&self) -> Vec<f32> {
        self.bits.iter().map(|&x| scalar::to_f32(self.dtype, x)).collect()
    }
}

/// Partial sums of a row.
const PARTIALS: usize = 64;

/// The reduction of each row, as a column.
///
/// A sum has 64 partials that start at +0; partial l adds the columns j = l modulo 64, ascending; then 32 of them add
/// the other 32, 16 the other 16, and so on. Floats are summed in f32 and rounded to the dtype once, at the end.
/// The largest (smallest) of nothing is the least (greatest) value of the dtype. A `stepwise` sum of f16 has
/// [`SUM_LANES`] partials of whole sixteens of columns, and adds them one after the other, and then the columns that
/// are left; a sum begins with its first term, and every addition is rounded. One of f32 is [`tree_sum`].
pub(super) fn row_reduce(op: Reduce, stepwise: bool, a: &Matrix) -> Matrix {
    let row = |i: usize| &a.bits[i * a.cols..(i + 1) * a.cols];
    Matrix::new(a.dtype, a.rows, 1, |i, _| match op {
        Reduce::Sum if stepwise && a.dtype == DType::F32 => tree_sum(row(i).iter().copied()),
        Reduce::Sum if stepwise => {
            let (whole, rest) = row(i).as_chunks::<SUM_LANES>();
            let sum = |items: &mut dyn Iterator<Item = u64>| items.reduce(|sum, x| add(a.dtype, sum, x));
            let partials = (0..SUM_LANES).filter_map(|l| sum(&mut whole.iter().map(|chunk| chunk[l])));
            sum(&mut partials.chain(rest.iter().copied())).unwrap_or(0)
        }
        Reduce::Sum if a.dtype.is_float() => {
            let mut p = [0f32; PARTIALS];
            for (j, &x) in row(i).iter().enumerate() {
                p[j % PARTIALS] += scalar::to_f32(a.dtype, x);
            }
            let mut half = PARTIALS / 2;
            while half > 0 {
                for l in 0..half {
                    p[l] += p[l + half];
                }
                half /= 2;
            }
            scalar::from_f32(a.dtype, p[0])
        }
        Reduce::Prod if a.dtype.is_float() => product(a.dtype, row(i).iter().copied()),
        _ => fold(op, a.dtype, row(i).iter().copied()),
    })
}

/// The sum of f32 that units with an adder tree make: of [`SUM_LANES`] elements after the other, where the last ones
/// are filled up with +0, a half is added to the other one until one is left, which is added to the sum so far.
fn tree_sum(items: impl Iterator<Item = u64>) -> u64 {
    let items: Vec<f32> = items.map(|x| scalar::to_f32(DType::F32, x)).collect();
    let sum = items.chunks(SUM_LANES).fold(0f32, |sum, chunk| {
        let mut p: [f32; SUM_LANES] = std::array::from_fn(|l| chunk.get(l).copied().unwrap_or(0.0));
        let mut half = SUM_LANES / 2;
        while half > 0 {
            for l in 0..half {
                p[l] += p[l + half];
            }
            half /= 2;
        }
        sum + p[0]
    });
    scalar::from_f32(DType::F32, sum)
}

/// The sum, rounded once. Additions exist for every dtype that the verifier admits.
fn add(dtype: DType, a: u64, b: u64) -> u64 {
    scalar::binary(BinOp::Add, Ty::D(dtype), a, b).unwrap_or(a)
}

/// The reduction of each column, rows ascending, as a row. Sums start at +0, in f32 for floats, rounded once, or,
/// `stepwise` of f16, after every addition; `stepwise` of f32 they are [`tree_sum`].
pub(super) fn col_reduce(op: Reduce, stepwise: bool, a: &Matrix) -> Matrix {
    Matrix::new(a.dtype, 1, a.cols, |_, j| {
        let column = (0..a.rows).map(|i| a.at(i, j));
        match op {
            Reduce::Sum if stepwise && a.dtype == DType::F32 => tree_sum(column),
            Reduce::Sum if stepwise => column.fold(0, |s, x| add(a.dtype, s, x)),
            Reduce::Sum if a.dtype.is_float() => {
                let sum = column.fold(0f32, |s, x| s + scalar::to_f32(a.dtype, x));
                scalar::from_f32(a.dtype, sum)
            }
            Reduce::Prod if a.dtype.is_float() => product(a.dtype, column),
            _ => fold(op, a.dtype, column),
        }
    })
}

/// A product of floats: in f32, from 1, rounded once.
fn product(dtype: DType, items: impl Iterator<Item = u64>) -> u64 {
    scalar::from_f32(dtype, items.fold(1f32, |p, x| p * scalar::to_f32(dtype, x)))
}

/// For each row the column of its largest or smallest element, as `index`.
pub(super) fn row_arg(op: Reduce, index: DType, a: &Matrix) -> Matrix {
    Matrix::new(index, a.rows, 1, |i, _| first_best(op, a.ty(), (0..a.cols).map(|j| a.at(i, j))))
}

/// For each column the row of its largest or smallest element, as `index`.
pub(super) fn col_arg(op: Reduce, index: DType, a: &Matrix) -> Matrix {
    Matrix::new(index, 1, a.cols, |_, j| first_best(op, a.ty(), (0..a.rows).map(|i| a.at(i, j))))
}

/// The number of the first NaN, or else of the first of the largest (smallest) items; 0 of none.
fn first_best(op: Reduce, ty: Ty, items: impl Iterator<Item = u64>) -> u64 {
    let cmp = if op == Reduce::Min { CmpOp::Lt } else { CmpOp::Gt };
    let nan = |x: u64| scalar::compare(CmpOp::Ne, ty, x, x);
    let mut best: Option<(u64, u64)> = None;
    for (n, x) in (0..).zip(items) {
        if best.is_none_or(|(_, y)| !nan(y) && (nan(x) || scalar::compare(cmp, ty, x, y))) {
            best = Some((n, x));
        }
    }
    best.map_or(0, |(n, _)| n)
}

/// Sums of neighbouring columns, rounded once, then zeros; an odd last column stands alone.
pub(super) fn pair_sum(a: &Matrix) -> Matrix {
    Matrix::new(a.dtype, a.rows, a.cols, |i, k| match a.cols {
        c if 2 * k + 1 < c => add(a.dtype, a.at(i, 2 * k), a.at(i, 2 * k + 1)),
        c if 2 * k < c => a.at(i, 2 * k),
        _ => 0,
    })
}

/// The elements of a row at which an index of [`row_arg`] points; an empty row has none, and 0 stands for it.
pub(super) fn chosen(a: &Matrix, index: &Matrix) -> Matrix {
    Matrix::new(a.dtype, a.rows, 1, |i, _| {
        let j = index.at(i, 0) as usize;
        if j < a.cols { a.at(i, j) } else { 0 }
    })
}

/// Whether `small` lies within `large`.
fn within(small: &Matrix, large: &Matrix) -> bool {
    small.rows <= large.rows && small.cols <= large.cols
}

/// For every element of the larger one what `both` makes of the two places, `None` where one of them has none. `None`
/// if neither is as large as the other one in both directions.
fn joined(
    a: &Matrix,
    b: &Matrix,
    dtype: DType,
    f: impl Fn(Option<(usize, usize)>, Option<(usize, usize)>) -> u64,
) -> Option<Matrix> {
    let large = if within(b, a) { a } else { within(a, b).then_some(b)? };
    let there = |m: &Matrix, i, j| (i < m.rows && j < m.cols).then_some((i, j));
    Some(Matrix::new(dtype, large.rows, large.cols, |i, j| f(there(a, i, j), there(b, i, j))))
}

/// `a op b` where both are, the element of the one that is elsewhere.
pub(super) fn part(op: BinOp, a: &Matrix, b: &Matrix) -> Option<Matrix> {
    joined(a, b, a.dtype, |x, y| match (x, y) {
        (Some((i, j)), Some(_)) => scalar::binary(op, a.ty(), a.at(i, j), b.at(i, j)).unwrap_or(0),
        (Some((i, j)), None) => a.at(i, j),
        (None, Some((i, j))) => b.at(i, j),
        (None, None) => 0,
    })
}

/// Values and indices: the pair of `a` where its value is the better one or NaN, or alone; else that of `b`.
pub(super) fn part_arg(op: Reduce, a: &Matrix, b: &Matrix, ai: &Matrix, bi: &Matrix) -> Option<[Matrix; 2]> {
    let cmp = if op == Reduce::Min { CmpOp::Lt } else { CmpOp::Gt };
    let same = |x: &Matrix, y: &Matrix| (x.rows, x.cols) == (y.rows, y.cols);
    if !same(a, ai) || !same(b, bi) {
        return None;
    }
    let first = |x: Option<(usize, usize)>, y: Option<(usize, usize)>| match (x, y) {
        (Some((i, j)), Some(_)) => {
            let (x, y) = (a.at(i, j), b.at(i, j));
            scalar::compare(cmp, a.ty(), x, y) || scalar::compare(CmpOp::Ne, a.ty(), x, x)
        }
        (x, _) => x.is_some(),
    };
    let pick = |x: &Matrix, y: &Matrix| {
        joined(a, b, x.dtype, |p, q| match (first(p, q), p, q) {
            (true, Some((i, j)), _) => x.at(i, j),
            (_, _, Some((i, j))) => y.at(i, j),
            _ => 0,
        })
    };
    Some([pick(a, b)?, pick(ai, bi)?])
}

/// Elements of two rows in turn: the first and the second half of what that makes. `None` of shapes that differ or an
/// odd number of columns.
pub(super) fn interleave(a: &Matrix, b: &Matrix) -> Option<[Matrix; 2]> {
    if (a.rows, a.cols) != (b.rows, b.cols) || !a.cols.is_multiple_of(2) {
        return None;
    }
    let from = |start: usize| {
        Matrix::new(a.dtype, a.rows, a.cols, |i, j| {
            let n = start + j;
            if n.is_multiple_of(2) { a.at(i, n / 2) } else { b.at(i, n / 2) }
        })
    };
    Some([from(0), from(a.cols)])
}

/// The even and the odd elements of rows that follow each other. `None` of shapes that differ or an odd number of
/// columns.
pub(super) fn deinterleave(parts: &[&Matrix]) -> Option<[Matrix; 2]> {
    let first = parts.first()?;
    let (rows, cols) = (first.rows, first.cols);
    if !cols.is_multiple_of(2) || parts.iter().any(|m| (m.rows, m.cols) != (rows, cols)) {
        return None;
    }
    let each = |odd: usize| {
        Matrix::new(first.dtype, rows, cols * parts.len() / 2, |i, k| {
            let n = 2 * k + odd;
            parts[n / cols].at(i, n % cols)
        })
    };
    Some([each(0), each(1)])
}

/// Integer sums and products, and maxima and minima of every dtype: no order matters.
fn fold(op: Reduce, dtype: DType, items: impl Iterator<Item = u64>) -> u64 {
    let ty = Ty::D(dtype);
    let op = match op {
        Reduce::Sum => BinOp::Add,
        Reduce::Max => BinOp::Max,
        Reduce::Min => BinOp::Min,
        Reduce::Prod => BinOp::Mul,
    };
    // The verifier admits no reduction of masks, for which these operations do not exist.
    items.fold(identity(op, dtype), |s, x| scalar::binary(op, ty, s, x).unwrap_or(s))
}

fn identity(op: BinOp, dtype: DType) -> u64 {
    let ty = Ty::D(dtype);
    let (mask, sign) = (scalar::mask(ty), (scalar::mask(ty) >> 1) + 1);
    match op {
        BinOp::Max if dtype.is_float() => scalar::from_f32(dtype, f32::NEG_INFINITY),
        BinOp::Min if dtype.is_float() => scalar::from_f32(dtype, f32::INFINITY),
        BinOp::Max if dtype.is_signed_int() => sign,
        BinOp::Min if dtype.is_signed_int() => mask ^ sign,
        BinOp::Min => mask,
        BinOp::Mul => 1,
        _ => 0,
    }
}

/// What a matrix product starts from.
pub(super) enum Start<'a> {
    Zero,
    /// The accumulator.
    Matrix(&'a Matrix),
    /// The same row everywhere.
    Row(&'a Matrix),
}

impl Start<'_> {
    /// The bits of element (i, j).
    fn at(&self, i: usize, j: usize) -> u64 {
        match self {
            Start::Zero => 0,
            Start::Matrix(c) => c.at(i, j),
            Start::Row(bias) => bias.at(0, j),
        }
    }
}

/// What factors of a dtype are to a matrix unit.
fn factors(dtype: DType) -> FactorType {
    match dtype {
        DType::BF16 => FactorType::Bf16,
        DType::F8E4M3 => FactorType::E4m3,
        DType::F8E5M2 => FactorType::E5m2,
        // Rounded before.
        DType::F32 => FactorType::Tf32,
        _ => FactorType::F16,
    }
}

/// `start + a b` as units in memory sum: the products of a row and a column, each rounded to its dtype where `rounds`,
/// are added as a stepwise TROWSUM of the accumulator's dtype does, and then to the start.
pub(super) fn summed_products(acc: DType, start: &Start<'_>, a: &Matrix, b: &Matrix, rounds: bool) -> Matrix {
    let product = |x: u64, y: u64| match rounds {
        true => {
            let rounded = scalar::binary(BinOp::Mul, a.ty(), x, y).unwrap_or(x);
            scalar::from_f32(acc, scalar::to_f32(a.dtype, rounded))
        }
        false => scalar::from_f32(acc, scalar::to_f32(a.dtype, x) * scalar::to_f32(b.dtype, y)),
    };
    Matrix::new(acc, a.rows, b.cols, |i, j| {
        let row = Matrix::new(acc, 1, a.cols, |_, k| product(a.at(i, k), b.at(k, j)));
        let sum = row_reduce(Reduce::Sum, true, &row).at(0, 0);
        match start {
            Start::Zero => sum,
            start => add(acc, start.at(i, j), sum),
        }
    })
}

/// `start + a b` in f32, as a matrix unit adds: block by block of k.
pub(super) fn matmul_on_unit(profile: SumProfile, start: &Start<'_>, a: &Matrix, b: &Matrix) -> Matrix {
    let types = (factors(a.dtype), factors(b.dtype));
    let left: Vec<Factor> = a.bits.iter().map(|&x| types.0.factor(x as u32)).collect();
    // Columns side by side.
    let right: Vec<Vec<Factor>> =
        (0..b.cols).map(|j| (0..b.rows).map(|k| types.1.factor(b.at(k, j) as u32)).collect()).collect();
    Matrix::new(DType::F32, a.rows, b.cols, |i, j| {
        let row = &left[i * a.cols..(i + 1) * a.cols];
        u64::from(profile.dot(types, row, &right[j], start.at(i, j) as u32))
    })
}

/// `start + a b`: k ascends; each step is one f32 fused multiply-add, or a wrapping i32 multiply-add for i8. The sum is
/// rounded to the accumulator's dtype once, at the end.
pub(super) fn matmul(acc: DType, start: &Start<'_>, a: &Matrix, b: &Matrix) -> Matrix {
    let (m, n, k) = (a.rows, b.cols, a.cols);
    let mut bits = Vec::with_capacity(m * n);
    if acc.is_float() {
        let (x, y) = (a.f32(), b.f32());
        let mut row = vec![0f32; n];
        for i in 0..m {
            for (j, sum) in row.iter_mut().enumerate() {
                *sum = scalar::to_f32(acc, start.at(i, j));
            }
            // k outside: every sum still sees k ascending.
            for kk in 0..k {
                for (j, sum) in row.iter_mut().enumerate() {
                    *sum = x[i * k + kk].mul_add(y[kk * n + j], *sum);
                }
            }
            bits.extend(row.iter().map(|&s| scalar::from_f32(acc, s)));
        }
    } else {
        let int = |m: &Matrix| m.bits.iter().map(|&x| scalar::to_int(m.ty(), x) as i32).collect::<Vec<_>>();
        let (x, y) = (int(a), int(b));
        for i in 0..m {
            for j in 0..n {
                let start = start.at(i, j) as u32 as i32;
                let sum = (0..k).fold(start, |s, kk| s.wrapping_add(x[i * k + kk].wrapping_mul(y[kk * n + j])));
                bits.push(u64::from(sum as u32));
            }
        }
    }
    Matrix { dtype: acc, rows: m, cols: n, bits }
}

//! What instructions give, said a second time and as simply as can be: integers exactly in i128, floats in f64.

use super::case::{BLOCK, CUBE};
use crate::engine::Content;
use ptoc_isa::{BinOp, CmpOp, Reduce, RoundMode, Sem, UnOp};
use ptoc_tensor::{DType, Tensor, scalar};

/// What an element should be.
#[derive(Clone, Copy, Debug)]
pub enum Want {
    /// These bits.
    Bits(u64),
    /// So many units in the last place from this number, rounded to the dtype.
    Near(f64, u64),
    /// Not said.
    Any,
}

/// The meaning of a generated kernel.
pub enum Model {
    Plain {
        sem: Sem,
        dtype: DType,
    },
    Shifts {
        op: BinOp,
        dtype: DType,
        counts: Vec<i128>,
    },
    Reversed {
        dtype: DType,
    },
    Convert {
        from: DType,
        to: DType,
        modes: Vec<(Option<RoundMode>, Option<bool>)>,
    },
    Compare {
        ops: Vec<CmpOp>,
    },
    Gather,
    /// All outputs are this input.
    Copy {
        of: usize,
    },
    /// The output is the first input, as a row for all rows.
    CopyRow,
    /// The output is the first input, in its own dtype.
    Moved,
    /// The output is the scalar.
    Filled,
    Product {
        sem: Sem,
    },
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Num {
    I(i128),
    F(f64),
}

fn get(t: &Tensor, i: usize) -> Num {
    if t.dtype().is_float() { Num::F(t.get_f64(i)) } else { Num::I(t.get_i128(i)) }
}

fn wrap(dtype: DType, n: i128) -> Want {
    Want::Bits(n as u128 as u64 & (u64::MAX >> (64 - 8 * dtype.size())))
}

fn truth(x: Num) -> bool {
    matches!(x, Num::F(x) if x > 0.0)
}

fn flag(b: bool) -> Want {
    Want::Near(f64::from(u8::from(b)), 0)
}

/// One rounding of the exact result of these operations; bf16 rounds its subnormals twice, by way of f32.
fn ulps(dtype: DType) -> u64 {
    u64::from(dtype == DType::BF16)
}

fn binary(op: BinOp, dtype: DType, a: Num, b: Num) -> Want {
    match (a, b) {
        (Num::F(a), Num::F(b)) => {
            let nan = a.is_nan() || b.is_nan();
            let (value, ulps) = match op {
                BinOp::Add => (a + b, ulps(dtype)),
                BinOp::Sub => (a - b, ulps(dtype)),
                BinOp::Mul => (a * b, ulps(dtype)),
                BinOp::Div => (a / b, ulps(dtype)),
                BinOp::Max | BinOp::Min if nan => (f64::NAN, 0),
                // -0 is below +0.
                BinOp::Max if a == b => (if a.is_sign_negative() { b } else { a }, 0),
                BinOp::Min if a == b => (if a.is_sign_negative() { a } else { b }, 0),
                BinOp::Max => (a.max(b), 0),
                BinOp::Min => (a.min(b), 0),
                _ => return Want::Any,
            };
            Want::Near(value, ulps)
        }
        (Num::I(a), Num::I(b)) => {
            let width = 8 * dtype.size() as i128;
            wrap(
                dtype,
                match op {
                    BinOp::Add => a + b,
                    BinOp::Sub => a - b,
                    BinOp::Mul => a.wrapping_mul(b),
                    BinOp::Div => a.checked_div(b).unwrap_or(-1),
                    BinOp::Rem => a.checked_rem(b).unwrap_or(a),
                    BinOp::Max => a.max(b),
                    BinOp::Min => a.min(b),
                    BinOp::And => a & b,
                    BinOp::Or => a | b,
                    BinOp::Xor => a ^ b,
                    BinOp::Shl => {
                        if (0..width).contains(&b) {
                            a << b
                        } else {
                            0
                        }
                    }
                    BinOp::Shr => a >> if (0..width).contains(&b) { b } else { 127 },
                },
            )
        }
        _ => Want::Any,
    }
}

fn unary(op: UnOp, dtype: DType, a: Num) -> Want {
    match a {
        Num::F(x) => {
            let loose = if dtype == DType::F32 { 4 } else { 1 };
            let (value, ulps) = match op {
                UnOp::Neg => (-x, 0),
                UnOp::Abs => (x.abs(), 0),
                UnOp::Relu => (if x.is_nan() || x > 0.0 { x } else { 0.0 }, 0),
                UnOp::Sqrt => (x.sqrt(), ulps(dtype)),
                UnOp::Recip => (1.0 / x, ulps(dtype)),
                UnOp::Exp => (x.exp(), loose),
                UnOp::Log => (x.ln(), loose),
                UnOp::Rsqrt => (1.0 / x.sqrt(), loose),
                UnOp::Floor => (x.floor(), 0),
                UnOp::Ceil => (x.ceil(), 0),
                UnOp::Trunc => (x.trunc(), 0),
                UnOp::Rint => (x.round_ties_even(), 0),
                UnOp::Tanh => (x.tanh(), loose),
                UnOp::Sin if x.abs() < 1e6 => (x.sin(), loose),
                UnOp::Cos if x.abs() < 1e6 => (x.cos(), loose),
                UnOp::Not | UnOp::Erf | UnOp::Sin | UnOp::Cos => return Want::Any,
            };
            Want::Near(value, ulps)
        }
        Num::I(x) => match op {
            UnOp::Neg => wrap(dtype, -x),
            UnOp::Abs => wrap(dtype, x.abs()),
            UnOp::Relu => wrap(dtype, x.max(0)),
            UnOp::Not => wrap(dtype, !x),
            _ => Want::Any,
        },
    }
}

fn round(x: f64, mode: RoundMode) -> f64 {
    match mode {
        RoundMode::Rint => x.round_ties_even(),
        RoundMode::Round => x.round(),
        RoundMode::Floor => x.floor(),
        RoundMode::Ceil => x.ceil(),
        RoundMode::Trunc => x.trunc(),
        RoundMode::Odd => {
            let down = x.floor();
            if x == down || down.rem_euclid(2.0) == 1.0 { down } else { down + 1.0 }
        }
    }
}

fn convert(from: DType, to: DType, x: Num, mode: Option<RoundMode>, saturate: Option<bool>) -> Want {
    let range = scalar::integer_range(to);
    match (x, range) {
        (Num::F(x), Some((lo, hi))) => {
            if x.is_nan() {
                return Want::Bits(0);
            }
            let x = round(x, mode.unwrap_or(RoundMode::Trunc));
            if saturate.unwrap_or(true) {
                return wrap(to, (x.clamp(-1e30, 1e30) as i128).clamp(lo, hi));
            }
            // Multiples of 2^76, and infinities, leave nothing.
            wrap(to, if x.abs() >= 1e30 { 0 } else { x as i128 })
        }
        (Num::I(x), Some((lo, hi))) => wrap(to, if saturate == Some(true) { x.clamp(lo, hi) } else { x }),
        // What is too large for an 8-bit float becomes the largest, if it is not said otherwise.
        (Num::F(x), None) if to.is_f8() && saturate.unwrap_or(true) => match mode {
            None | Some(RoundMode::Rint) => {
                let most = if to == DType::F8E4M3 { 448.0 } else { 57344.0 };
                Want::Near(x.clamp(-most, most), 0)
            }
            _ => Want::Any,
        },
        (Num::F(x), None) if from != to && saturate == Some(true) && matches!(to, DType::F16 | DType::BF16) => {
            match mode {
                None | Some(RoundMode::Rint) => {
                    let most = if to == DType::F16 { 65504.0 } else { f64::from(f32::from_bits(0x7f7f_0000)) };
                    Want::Near(x.clamp(-most, most), 0)
                }
                _ => Want::Any,
            }
        }
        (Num::F(x), None) => match mode {
            // f16 and bf16 are exact in f64, and so is f32: one rounding.
            None | Some(RoundMode::Rint) => Want::Near(x, 0),
            _ if from == to || (to == DType::F32 && from.size() < 4) => Want::Near(x, 0),
            _ => Want::Any,
        },
        (Num::I(x), None) => match mode {
            // Through f64 a wide integer would round twice.
            None | Some(RoundMode::Rint) if to == DType::F32 => Want::Bits((x as f32).to_bits().into()),
            None | Some(RoundMode::Rint) => Want::Near(x as f64, 0),
            _ => Want::Any,
        },
    }
}

fn holds(op: CmpOp, a: Num, b: Num) -> bool {
    let order = match (a, b) {
        (Num::F(a), Num::F(b)) => a.partial_cmp(&b),
        (Num::I(a), Num::I(b)) => Some(a.cmp(&b)),
        _ => None,
    };
    match op {
        CmpOp::Eq => order.is_some_and(|o| o.is_eq()),
        CmpOp::Ne => !order.is_some_and(|o| o.is_eq()),
        CmpOp::Lt => order.is_some_and(|o| o.is_lt()),
        CmpOp::Le => order.is_some_and(|o| o.is_le()),
        CmpOp::Gt => order.is_some_and(|o| o.is_gt()),
        CmpOp::Ge => order.is_some_and(|o| o.is_ge()),
    }
}

/// All of `list`, in any order: so a sum only where no order changes it.
fn reduce(op: Reduce, dtype: DType, content: Content, list: impl Iterator<Item = Num>) -> Want {
    let list: Vec<Num> = list.collect();
    let float = |x: &Num| if let Num::F(x) = x { *x } else { f64::NAN };
    let int = |x: &Num| if let Num::I(x) = x { *x } else { 0 };
    if dtype.is_float() {
        let nan = list.iter().any(|x| float(x).is_nan());
        let fold = |op| {
            list.iter().copied().reduce(|a, b| match binary(op, dtype, a, b) {
                Want::Near(x, _) => Num::F(x),
                _ => Num::F(f64::NAN),
            })
        };
        return match op {
            Reduce::Sum if content == Content::Tame => Want::Near(list.iter().map(float).sum(), 0),
            // A long product of these is infinite or not exact.
            Reduce::Sum | Reduce::Prod => Want::Any,
            _ if nan => Want::Near(f64::NAN, 0),
            Reduce::Max => fold(BinOp::Max).map_or(Want::Any, |x| Want::Near(float(&x), 0)),
            Reduce::Min => fold(BinOp::Min).map_or(Want::Any, |x| Want::Near(float(&x), 0)),
        };
    }
    match op {
        Reduce::Sum => wrap(dtype, list.iter().map(int).sum()),
        Reduce::Prod => wrap(dtype, list.iter().fold(1, |p: i128, x| p.wrapping_mul(int(x)))),
        Reduce::Max => list.iter().map(int).max().map_or(Want::Any, |n| wrap(dtype, n)),
        Reduce::Min => list.iter().map(int).min().map_or(Want::Any, |n| wrap(dtype, n)),
    }
}

fn same(dtype: DType, x: Num) -> Want {
    match x {
        Num::I(n) => wrap(dtype, n),
        Num::F(x) => Want::Near(x, 0),
    }
}

impl Model {
    /// For each output, what its elements should be. Inputs and outputs are in the order of the arguments.
    pub fn expect(&self, content: Content, inputs: &[&Tensor], outputs: &[&Tensor]) -> Option<Vec<Vec<Want>>> {
        let all = outputs.iter().enumerate();
        Some(all.map(|(k, out)| self.output(k, content, inputs, out)).collect())
    }

    fn output(&self, k: usize, content: Content, x: &[&Tensor], out: &Tensor) -> Vec<Want> {
        let cols = out.shape().last().copied().unwrap_or(1).max(1);
        let at = |i: usize| self.element(k, content, x, (i, i / cols, i % cols), out);
        (0..out.len()).map(at).collect()
    }

    /// Element `i` of output `k`, which is in row `r` and column `c`.
    fn element(
        &self,
        k: usize,
        content: Content,
        x: &[&Tensor],
        (i, r, c): (usize, usize, usize),
        out: &Tensor,
    ) -> Want {
        match self {
            Model::Plain { sem, dtype } => plain(*sem, *dtype, content, x, (i, r, c)),
            Model::Shifts { op, dtype, counts } => binary(*op, *dtype, get(x[0], i), Num::I(counts[k])),
            Model::Reversed { dtype } => binary(BinOp::Div, *dtype, get(x[1], 0), get(x[0], i)),
            Model::Convert { from, to, modes } => convert(*from, *to, get(x[0], i), modes[k].0, modes[k].1),
            Model::Compare { ops } => flag(holds(ops[k], get(x[0], i), get(x[1], i))),
            Model::Gather => {
                let (table, index) = (x[0], if k == 0 { x[1] } else { x[2] }.get_i128(i));
                let n = table.len() as i128;
                let inside = (0..n).contains(&index);
                match k {
                    0 => same(table.dtype(), get(table, index as usize)),
                    1 => same(table.dtype(), get(table, index.clamp(0, n - 1) as usize)),
                    2 => same(table.dtype(), get(table, index.rem_euclid(n) as usize)),
                    _ if inside => same(table.dtype(), get(table, index as usize)),
                    _ => Want::Bits(0),
                }
            }
            Model::Copy { of } => same(out.dtype(), get(x[*of], i)),
            // Through the matrix unit an infinity meets zeros.
            Model::CopyRow | Model::Moved if content == Content::Wild => Want::Any,
            Model::CopyRow => same(out.dtype(), get(x[0], c)),
            Model::Moved => match get(x[0], i) {
                Num::I(n) => wrap(out.dtype(), n),
                Num::F(v) => Want::Near(v, 0),
            },
            Model::Filled if content == Content::Wild => Want::Any,
            Model::Filled => same(out.dtype(), get(x[0], 0)),
            Model::Product { sem } => product(*sem, content, x, (r, c), out.dtype()),
        }
    }
}

fn plain(sem: Sem, dtype: DType, content: Content, x: &[&Tensor], (i, r, c): (usize, usize, usize)) -> Want {
    let mask = dtype == DType::Bool;
    match sem {
        Sem::Binary(op) if mask => {
            let (a, b) = (truth(get(x[0], i)), truth(get(x[1], i)));
            match op {
                BinOp::And => flag(a && b),
                BinOp::Or => flag(a || b),
                BinOp::Xor => flag(a != b),
                _ => Want::Any,
            }
        }
        Sem::Unary(UnOp::Not) if mask => flag(!truth(get(x[0], i))),
        Sem::Binary(op) => binary(op, dtype, get(x[0], i), get(x[1], i)),
        Sem::BinaryScalar(op) => binary(op, dtype, get(x[0], i), get(x[1], 0)),
        Sem::Unary(op) => unary(op, dtype, get(x[0], i)),
        Sem::Expand => same(dtype, get(x[0], 0)),
        Sem::Select => same(dtype, get(if truth(get(x[0], i)) { x[1] } else { x[2] }, i)),
        Sem::RowReduce(op) => {
            // Output row r is block r of columns, output column c is row c.
            let cols = x[0].shape()[1];
            let block = r * BLOCK.1..cols.min((r + 1) * BLOCK.1);
            reduce(op, dtype, content, block.map(|j| get(x[0], c * cols + j)))
        }
        Sem::ColReduce(op) => {
            let [rows, cols] = *x[0].shape() else { return Want::Any };
            let block = r * BLOCK.0..rows.min((r + 1) * BLOCK.0);
            reduce(op, dtype, content, block.map(|i| get(x[0], i * cols + c)))
        }
        Sem::RowExpand => same(dtype, get(x[0], r)),
        Sem::ColExpand => same(dtype, get(x[0], c)),
        Sem::RowExpandBinary(op) => binary(op, dtype, get(x[0], i), get(x[1], r)),
        Sem::ColExpandBinary(op) => binary(op, dtype, get(x[0], i), get(x[1], c)),
        Sem::Transpose => same(dtype, get(x[0], c * x[0].shape()[1] + r)),
        _ => Want::Any,
    }
}

fn product(sem: Sem, content: Content, x: &[&Tensor], (r, c): (usize, usize), out: DType) -> Want {
    let (depth, cols) = (x[0].shape()[1], x[1].shape()[1]);
    // Without an accumulator operand each block of k starts anew, so the last one stays.
    let first = if sem == Sem::MatmulAcc { 0 } else { depth.saturating_sub(1) / CUBE * CUBE };
    let terms = (first..depth).map(|k| (get(x[0], r * depth + k), get(x[1], k * cols + c)));
    let start = (sem == Sem::MatmulBias && depth > 0).then(|| get(x[2], c));
    if out.is_float() {
        if content == Content::Wild {
            return Want::Any;
        }
        let float = |n| if let Num::F(x) = n { x } else { f64::NAN };
        return Want::Near(start.map_or(0.0, float) + terms.map(|(a, b)| float(a) * float(b)).sum::<f64>(), 0);
    }
    let int = |n| if let Num::I(x) = n { x } else { 0 };
    wrap(out, start.map_or(0, int) + terms.map(|(a, b)| int(a) * int(b)).sum::<i128>())
}

/// Whether `bits` is what was wanted.
pub fn meets(dtype: DType, bits: u64, want: Want) -> bool {
    match want {
        Want::Any => true,
        Want::Bits(w) => bits == w,
        Want::Near(x, ulps) => {
            let want =
                if dtype == DType::F32 { u64::from((x as f32).to_bits()) } else { scalar::bits_from_f64(dtype, x) };
            let nan = |bits| scalar::is_nan(dtype, bits);
            if nan(want) || nan(bits) {
                return nan(want) && nan(bits);
            }
            distance(dtype, bits, want) <= ulps
        }
    }
}

/// How many numbers of the dtype lie between two.
fn distance(dtype: DType, a: u64, b: u64) -> u64 {
    let half = 1i64 << (8 * dtype.size() - 1);
    let ordered = |bits: u64| if (bits as i64) < half { bits as i64 } else { half - 1 - bits as i64 };
    ordered(a).abs_diff(ordered(b))
}

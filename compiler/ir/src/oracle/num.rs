//! The two kinds of number.

use super::{OracleError, ReduceKind};
use crate::scalar;
use crate::tile::Ty;
use ptoc_isa::{BinOp, CmpOp, RoundMode, UnOp};
use ptoc_tensor::DType;

/// A number that expressions are evaluated in.
pub(super) trait OracleNumber: Copy + PartialOrd {
    fn from_int(x: i64) -> Self;
    fn from_real(x: f64) -> Result<Self, OracleError>;
    fn from_bits(ty: Ty, bits: u64) -> Result<Self, OracleError>;
    fn truth(self) -> bool;
    fn unary(op: UnOp, a: Self) -> Result<Self, OracleError>;
    fn binary(op: BinOp, a: Self, b: Self) -> Result<Self, OracleError>;
    fn compare(op: CmpOp, a: Self, b: Self) -> bool {
        match op {
            CmpOp::Eq => a == b,
            CmpOp::Ne => a != b,
            CmpOp::Lt => a < b,
            CmpOp::Le => a <= b,
            CmpOp::Gt => a > b,
            CmpOp::Ge => a >= b,
        }
    }
    /// `a` to the power `b`.
    fn pow(a: Self, b: Self) -> Result<Self, OracleError>;
    /// Whether it is no number.
    fn is_nan(self) -> bool;
    /// The index that it is, if it is one.
    fn index(self) -> Option<usize>;
    /// The reduction of nothing.
    fn start(kind: ReduceKind) -> Option<Self>;

    /// `a[i] = a[i] op b[i]`; the same as `binary`, and fast where that matters.
    fn binary_lanes(op: BinOp, a: &mut [Self], b: &[Self]) -> Result<(), OracleError> {
        for (a, &b) in a.iter_mut().zip(b) {
            *a = Self::binary(op, *a, b)?;
        }
        Ok(())
    }
}

pub(super) fn fold_op(kind: ReduceKind) -> BinOp {
    match kind {
        ReduceKind::Sum => BinOp::Add,
        ReduceKind::Prod => BinOp::Mul,
        ReduceKind::Max | ReduceKind::ArgMax => BinOp::Max,
        ReduceKind::Min | ReduceKind::ArgMin | ReduceKind::Permutation => BinOp::Min,
    }
}

/// The Gauss error function, to a few units in the last place.
pub fn erf(x: f64) -> f64 {
    if x.is_nan() {
        return x;
    }
    if x.abs() >= 6.0 {
        return x.signum();
    }
    // 2/sqrt(pi) e^(-x^2) sum over n of 2^n x^(2n+1) / (2n+1)!!: all terms have one sign, so nothing cancels.
    let mut term = x;
    let mut sum = x;
    let mut n = 0.0;
    while term.abs() > sum.abs() * 1e-17 {
        n += 1.0;
        term *= 2.0 * x * x / (2.0 * n + 1.0);
        sum += term;
    }
    std::f64::consts::FRAC_2_SQRT_PI * (-x * x).exp() * sum
}

/// An f64 that is an integer of i64.
fn integer(x: f64) -> Result<i64, OracleError> {
    // 2^63 is the first float beyond.
    let fits = x.fract() == 0.0 && (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&x);
    if fits { Ok(x as i64) } else { Err(OracleError::NotInteger) }
}

impl OracleNumber for f64 {
    fn from_int(x: i64) -> f64 {
        x as f64
    }

    fn from_real(x: f64) -> Result<f64, OracleError> {
        Ok(x)
    }

    fn from_bits(ty: Ty, bits: u64) -> Result<f64, OracleError> {
        Ok(scalar::to_f64(ty, bits))
    }

    fn truth(self) -> bool {
        self != 0.0
    }

    fn unary(op: UnOp, a: f64) -> Result<f64, OracleError> {
        Ok(match op {
            UnOp::Neg => -a,
            UnOp::Not => f64::from(a == 0.0),
            UnOp::Abs => a.abs(),
            UnOp::Relu => f64::binary(BinOp::Max, a, 0.0)?,
            UnOp::Exp => a.exp(),
            UnOp::Log => a.ln(),
            UnOp::Sqrt => a.sqrt(),
            UnOp::Rsqrt => 1.0 / a.sqrt(),
            UnOp::Recip => 1.0 / a,
            UnOp::Floor => a.floor(),
            UnOp::Ceil => a.ceil(),
            UnOp::Trunc => a.trunc(),
            UnOp::Rint => scalar::round_f64_to_integral(a, RoundMode::Rint),
            UnOp::Tanh => a.tanh(),
            UnOp::Erf => erf(a),
            UnOp::Sin => a.sin(),
            UnOp::Cos => a.cos(),
        })
    }

    fn binary(op: BinOp, a: f64, b: f64) -> Result<f64, OracleError> {
        Ok(match op {
            BinOp::Add => a + b,
            BinOp::Sub => a - b,
            BinOp::Mul => a * b,
            BinOp::Div => a / b,
            BinOp::Rem => a % b,
            BinOp::Max | BinOp::Min if a.is_nan() || b.is_nan() => f64::NAN,
            BinOp::Max => a.max(b),
            BinOp::Min => a.min(b),
            BinOp::And | BinOp::Or | BinOp::Xor | BinOp::Shl | BinOp::Shr => {
                i128::binary(op, i128::from(integer(a)?), i128::from(integer(b)?))? as f64
            }
        })
    }

    fn pow(a: f64, b: f64) -> Result<f64, OracleError> {
        Ok(a.powf(b))
    }

    fn is_nan(self) -> bool {
        f64::is_nan(self)
    }

    fn index(self) -> Option<usize> {
        integer(self).ok().and_then(|i| usize::try_from(i).ok())
    }

    fn start(kind: ReduceKind) -> Option<f64> {
        Some(match kind {
            ReduceKind::Sum | ReduceKind::ArgMax | ReduceKind::ArgMin => 0.0,
            ReduceKind::Prod | ReduceKind::Permutation => 1.0,
            ReduceKind::Max => f64::NEG_INFINITY,
            ReduceKind::Min => f64::INFINITY,
        })
    }

    fn binary_lanes(op: BinOp, a: &mut [f64], b: &[f64]) -> Result<(), OracleError> {
        let lanes = a.iter_mut().zip(b);
        match op {
            BinOp::Add => lanes.for_each(|(a, b)| *a += b),
            BinOp::Sub => lanes.for_each(|(a, b)| *a -= b),
            BinOp::Mul => lanes.for_each(|(a, b)| *a *= b),
            BinOp::Div => lanes.for_each(|(a, b)| *a /= b),
            _ => {
                for (a, &b) in lanes {
                    *a = f64::binary(op, *a, b)?;
                }
            }
        }
        Ok(())
    }
}

impl OracleNumber for i128 {
    fn from_int(x: i64) -> i128 {
        i128::from(x)
    }

    fn from_real(x: f64) -> Result<i128, OracleError> {
        integer(x).map(i128::from)
    }

    fn from_bits(ty: Ty, bits: u64) -> Result<i128, OracleError> {
        if scalar::float(ty).is_some() { Err(OracleError::NotInteger) } else { Ok(scalar::to_int(ty, bits)) }
    }

    fn truth(self) -> bool {
        self != 0
    }

    fn unary(op: UnOp, a: i128) -> Result<i128, OracleError> {
        match op {
            UnOp::Neg => a.checked_neg().ok_or(OracleError::Overflow),
            UnOp::Not => Ok(i128::from(a == 0)),
            UnOp::Abs => a.checked_abs().ok_or(OracleError::Overflow),
            UnOp::Relu => Ok(a.max(0)),
            _ => Err(OracleError::NotInteger),
        }
    }

    fn binary(op: BinOp, a: i128, b: i128) -> Result<i128, OracleError> {
        let result = match op {
            BinOp::Add => a.checked_add(b),
            BinOp::Sub => a.checked_sub(b),
            BinOp::Mul => a.checked_mul(b),
            BinOp::Div if b == 0 => Some(-1),
            BinOp::Rem if b == 0 => Some(a),
            BinOp::Div => a.checked_div(b),
            BinOp::Rem => a.checked_rem(b),
            BinOp::Max => Some(a.max(b)),
            BinOp::Min => Some(a.min(b)),
            BinOp::And => Some(a & b),
            BinOp::Or => Some(a | b),
            BinOp::Xor => Some(a ^ b),
            // A left shift is a product; beyond i128 only zero survives.
            BinOp::Shl => match u32::try_from(b) {
                Ok(n) if n < 127 => a.checked_mul(1 << n),
                _ if a == 0 => Some(0),
                _ => None,
            },
            BinOp::Shr => Some(a >> u32::try_from(b).unwrap_or(127).min(127)),
        };
        result.ok_or(OracleError::Overflow)
    }

    fn pow(a: i128, b: i128) -> Result<i128, OracleError> {
        // A negative power is 1 divided by it, which is an integer for 1 and -1 alone.
        match (a, u32::try_from(b)) {
            (1, _) => Ok(1),
            (-1, _) => Ok(if b % 2 == 0 { 1 } else { -1 }),
            (_, Ok(b)) => a.checked_pow(b).ok_or(OracleError::Overflow),
            (_, Err(_)) if b < 0 => Err(OracleError::NotInteger),
            (_, Err(_)) => Err(OracleError::Overflow),
        }
    }

    fn is_nan(self) -> bool {
        false
    }

    fn index(self) -> Option<usize> {
        usize::try_from(self).ok()
    }

    fn start(kind: ReduceKind) -> Option<i128> {
        match kind {
            ReduceKind::Sum | ReduceKind::ArgMax | ReduceKind::ArgMin => Some(0),
            ReduceKind::Prod | ReduceKind::Permutation => Some(1),
            ReduceKind::Max | ReduceKind::Min => None,
        }
    }
}

/// All elements of a tensor as numbers.
pub(super) fn elements<T: OracleNumber>(dtype: DType, data: &[u8]) -> Result<Vec<T>, OracleError> {
    data.chunks_exact(dtype.size()).map(|raw| T::from_bits(Ty::D(dtype), bits(dtype, raw))).collect()
}

/// The bits of one element.
pub(super) fn bits(dtype: DType, raw: &[u8]) -> u64 {
    let mut wide = [0; 8];
    wide[..raw.len()].copy_from_slice(raw);
    let bits = u64::from_le_bytes(wide);
    if dtype == DType::Bool { u64::from(bits != 0) } else { bits }
}

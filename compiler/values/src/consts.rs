//! Arithmetic of compile-time integers and floats: 128 bits, checked, division floors.

use ptoc_syntax::ast::BinaryOp;

/// Why a constant operation has no value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ConstFault {
    /// More than 128 bits.
    Overflow,
    /// `/` or `%` by 0.
    DivisionByZero,
    /// Not an operation on integers.
    Undefined,
}

/// `a op b` for the operators that give integers.
pub fn int(op: BinaryOp, a: i128, b: i128) -> Result<i128, ConstFault> {
    let some = |x: Option<i128>| x.ok_or(ConstFault::Overflow);
    match op {
        BinaryOp::Add => some(a.checked_add(b)),
        BinaryOp::Sub => some(a.checked_sub(b)),
        BinaryOp::Mul => some(a.checked_mul(b)),
        BinaryOp::Div if b == 0 => Err(ConstFault::DivisionByZero),
        BinaryOp::Rem if b == 0 => Err(ConstFault::DivisionByZero),
        BinaryOp::Div => some(a.checked_div(b).map(|q| if a % b != 0 && (a < 0) != (b < 0) { q - 1 } else { q })),
        BinaryOp::Rem => some(a.checked_rem(b).map(|r| if r != 0 && (r < 0) != (b < 0) { r + b } else { r })),
        BinaryOp::BitAnd => Ok(a & b),
        BinaryOp::BitOr => Ok(a | b),
        BinaryOp::BitXor => Ok(a ^ b),
        BinaryOp::Shl if (0..127).contains(&b) => some(a.checked_mul(1i128 << b)),
        BinaryOp::Shl => Err(ConstFault::Overflow),
        BinaryOp::Shr if b >= 0 => Ok(a >> b.min(127)),
        BinaryOp::Shr => Err(ConstFault::Overflow),
        _ => Err(ConstFault::Undefined),
    }
}

/// `a op b` for comparisons.
pub fn compare<T: PartialOrd>(op: BinaryOp, a: T, b: T) -> Option<bool> {
    Some(match op {
        BinaryOp::Eq => a == b,
        BinaryOp::Ne => a != b,
        BinaryOp::Lt => a < b,
        BinaryOp::Le => a <= b,
        BinaryOp::Gt => a > b,
        BinaryOp::Ge => a >= b,
        _ => return None,
    })
}

/// `a op b` for floats.
pub fn float(op: BinaryOp, a: f64, b: f64) -> Option<f64> {
    Some(match op {
        BinaryOp::Add => a + b,
        BinaryOp::Sub => a - b,
        BinaryOp::Mul => a * b,
        BinaryOp::Div => a / b,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn division_floors_and_remainder_follows() {
        for a in -9..9i128 {
            for b in [-4, -3, -1, 1, 2, 5i128] {
                let (q, r) = (int(BinaryOp::Div, a, b).unwrap(), int(BinaryOp::Rem, a, b).unwrap());
                assert_eq!(q * b + r, a);
                assert!(r == 0 || (r < 0) == (b < 0), "{a} % {b} = {r}");
            }
        }
    }

    #[test]
    fn nothing_wraps() {
        assert_eq!(int(BinaryOp::Add, i128::MAX, 1), Err(ConstFault::Overflow));
        assert_eq!(int(BinaryOp::Div, i128::MIN, -1), Err(ConstFault::Overflow));
        assert_eq!(int(BinaryOp::Shl, 1, 200), Err(ConstFault::Overflow));
        assert_eq!(int(BinaryOp::Div, 1, 0), Err(ConstFault::DivisionByZero));
    }
}

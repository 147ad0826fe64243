//! Scalars: literals adopt a type, operators on constants are evaluated, all others become IR.

use super::{ElabResult, Elaborator, FLOAT_FOR_INTEGER};
use ptoc_diagnostics::{Diagnostic, Span, codes};
use ptoc_ir::tile::{Const, Ty, Value};
use ptoc_isa::{BinOp, CmpOp, UnOp};
use ptoc_names::builtins::Word;
use ptoc_syntax::ast::BinaryOp;
use ptoc_tensor::DType;
use ptoc_values::Val;
use ptoc_values::consts::{self, ConstFault};

/// The IR operation of an arithmetic operator.
pub fn arith(op: BinaryOp) -> Option<BinOp> {
    Some(match op {
        BinaryOp::Add => BinOp::Add,
        BinaryOp::Sub => BinOp::Sub,
        BinaryOp::Mul => BinOp::Mul,
        BinaryOp::Div => BinOp::Div,
        BinaryOp::Rem => BinOp::Rem,
        BinaryOp::BitAnd => BinOp::And,
        BinaryOp::BitOr => BinOp::Or,
        BinaryOp::BitXor => BinOp::Xor,
        BinaryOp::Shl => BinOp::Shl,
        BinaryOp::Shr => BinOp::Shr,
        _ => return None,
    })
}

/// The comparison of a comparison operator.
pub fn comparison(op: BinaryOp) -> Option<CmpOp> {
    Some(match op {
        BinaryOp::Eq => CmpOp::Eq,
        BinaryOp::Ne => CmpOp::Ne,
        BinaryOp::Lt => CmpOp::Lt,
        BinaryOp::Le => CmpOp::Le,
        BinaryOp::Gt => CmpOp::Gt,
        BinaryOp::Ge => CmpOp::Ge,
        _ => return None,
    })
}

/// Whether `op` is defined on scalars and tiles of type `ty`.
pub(crate) fn defined_on(op: BinOp, ty: Ty) -> bool {
    match (op, ty) {
        (BinOp::And | BinOp::Or | BinOp::Xor, Ty::D(d)) => !d.is_float(),
        (BinOp::Shl | BinOp::Shr, Ty::D(d)) => d.is_int(),
        (BinOp::Rem, Ty::D(d)) => d.is_int(),
        (_, Ty::D(DType::Bool)) => false,
        _ => true,
    }
}

impl Elaborator<'_> {
    /// The type that a value has or, for untyped literals, `None`.
    pub(crate) fn scalar_ty(&self, v: &Val) -> Option<Ty> {
        match v {
            Val::Scalar(x) => Some(self.ty(*x)),
            Val::Bool(_) => Some(Ty::BOOL),
            _ => None,
        }
    }

    /// The value as a scalar of type `ty`: literals adopt it, anything else must have it.
    pub fn scalar_of(&mut self, v: &Val, ty: Ty, span: Span) -> ElabResult<Value> {
        match v {
            Val::Poison => Err(super::ErrorReported),
            Val::Scalar(x) if self.ty(*x) == ty => Ok(*x),
            Val::Scalar(x) => {
                let have = self.ty(*x);
                let d = Diagnostic::error(codes::DTYPE_MISMATCH, span, format!("expected `{ty}`, found `{have}`"))
                    .with_label(format!("this is `{have}`"));
                let d = Elaborator::convert_fix(d, ty, span);
                self.report(d)
            }
            Val::Bool(b) if ty == Ty::BOOL => Ok(self.b.bool_const(*b)),
            Val::Int(i) => {
                let c = self.literal_int(*i, ty, span)?;
                Ok(self.constant(c))
            }
            Val::Float(f) => match ty {
                Ty::D(d) if d.is_float() => {
                    let c = self.literal_float(*f, d, span)?;
                    Ok(self.constant(c))
                }
                _ => {
                    let d = Diagnostic::error(
                        codes::TYPE_MISMATCH,
                        span,
                        format!("expected `{ty}`, found a float literal"),
                    )
                    .with_label(format!("not of type `{ty}`"))
                    .with_help(match ty {
                        Ty::Index => FLOAT_FOR_INTEGER.to_owned(),
                        _ => format!(
                            "write an integer, or convert the other side to a float first; `{ty}(..)` truncates"
                        ),
                    });
                    self.report(d)
                }
            },
            other => {
                let message = format!("expected a scalar of type `{ty}`, found {}", other.describe());
                self.error(codes::TYPE_MISMATCH, span, message)
            }
        }
    }

    /// A number rounds to a float that is one, too.
    pub fn literal_float(&mut self, f: f64, d: DType, span: Span) -> ElabResult<Const> {
        let bits = float_bits(d, f);
        if !f.is_finite() || ptoc_tensor::scalar::bits_to_f64(d, bits).is_finite() {
            return Ok(Const { ty: Ty::D(d), bits });
        }
        let shown = |x: f64, far: String| if x.abs() < 1e15 { x.to_string() } else { far };
        let infinite = float_bits(d, f64::INFINITY);
        let greatest = ptoc_tensor::scalar::bits_to_f64(d, infinite - 1);
        let greatest = shown(greatest, format!("{:e}", greatest as f32));
        let message = format!("{} does not fit `{d}`", shown(f, format!("{f:e}")));
        let report = Diagnostic::error(codes::LITERAL_OUT_OF_RANGE, span, message)
            .with_note(format!("`{d}` holds -{greatest} to {greatest}"));
        self.report(match ptoc_tensor::scalar::is_nan(d, infinite) {
            true => report,
            false => report.with_help(if f > 0.0 { "infinity is written `inf`" } else { "infinity is written `-inf`" }),
        })
    }

    /// An integer of the text as a constant of a type, which must hold it.
    pub fn literal_int(&mut self, i: i128, ty: Ty, span: Span) -> ElabResult<Const> {
        let d = match ty {
            Ty::Index => DType::I64,
            Ty::D(d) => d,
        };
        if d.is_float() {
            return self.literal_float(i as f64, d, span);
        }
        let (lo, hi) = int_range(d);
        if d == DType::Bool || i < lo || i > hi {
            let message = if d == DType::Bool {
                format!("expected a truth value, found the integer {i}")
            } else {
                format!("{i} does not fit `{ty}`")
            };
            let d = Diagnostic::error(codes::LITERAL_OUT_OF_RANGE, span, message)
                .with_note(format!("`{ty}` holds {lo} to {hi}"));
            return self.report(d);
        }
        let bits = i as u64 & if d.size() == 8 { u64::MAX } else { (1 << (d.size() * 8)) - 1 };
        Ok(Const { ty, bits })
    }

    /// The value as an `index`.
    pub fn index_of(&mut self, v: &Val, span: Span) -> ElabResult<Value> {
        if let Val::Block(b) = v {
            let message = "expected a scalar of type `index`, found a block";
            let d = Diagnostic::error(codes::TYPE_MISMATCH, span, message).with_label("does not fit here");
            let d = match b.place {
                Some(_) => d
                    .with_help("a block is several indices: `for r in i { .. }` goes through them, from `i.start` on")
                    .with_help("in a tile that was loaded from the block they count from 0, up to `i.len`"),
                None => d.with_help("its length is `.len`"),
            };
            return self.report(d);
        }
        let v = self.scalar_of(v, Ty::Index, span)?;
        if let Some(c) = self.const_index(v) {
            self.facts.constant(v, c);
        }
        Ok(v)
    }

    /// The value as a truth value in IR.
    pub fn bool_of(&mut self, v: &Val, span: Span) -> ElabResult<Value> {
        match v {
            Val::Bool(_) | Val::Poison => self.scalar_of(v, Ty::BOOL, span),
            Val::Scalar(x) if self.ty(*x) == Ty::BOOL => Ok(*x),
            other => {
                let what = self.scalar_ty(other).map_or_else(|| other.describe().to_string(), |t| format!("`{t}`"));
                let d = Diagnostic::error(
                    codes::CONDITION_NOT_BOOL,
                    span,
                    format!("a condition is `bool`, this is {what}"),
                )
                .with_help("compare it, as in `n != 0`");
                self.report(d)
            }
        }
    }

    /// A constant, folded out of IR where it is one: `index` constants and `bool`s become untyped again.
    pub(crate) fn fold(&self, v: Value) -> Val {
        match self.b.const_of(v) {
            Some(c) if c.ty == Ty::BOOL => Val::Bool(c.bits != 0),
            _ => Val::Scalar(v),
        }
    }

    /// The compile-time integer that `v` is, if it is one.
    pub fn int_const(&self, v: &Val) -> Option<i128> {
        match v {
            Val::Int(i) => Some(*i),
            Val::Scalar(x) => self.b.const_of(*x).and_then(|c| match c.ty {
                Ty::Index => Some(i128::from(c.bits as i64)),
                Ty::D(d) if d.is_int() => {
                    let shift = 64 - 8 * d.size() as u32;
                    let (s, u) = (((c.bits << shift) as i64) >> shift, c.bits);
                    Some(if d.is_signed_int() { i128::from(s) } else { i128::from(u) })
                }
                _ => None,
            }),
            _ => None,
        }
    }

    /// `a op b` on scalars.
    pub(crate) fn scalar_binary(
        &mut self,
        op: BinaryOp,
        a: &Val,
        b: &Val,
        span: Span,
        spans: (Span, Span),
    ) -> ElabResult<Val> {
        match (a, b) {
            (Val::Poison, _) | (_, Val::Poison) => return Err(super::ErrorReported),
            (Val::Int(x), Val::Int(y)) => return self.const_ints(op, *x, *y, span),
            (Val::Int(_) | Val::Float(_), Val::Int(_) | Val::Float(_)) => {
                let (x, y) = (as_f64(a), as_f64(b));
                if let Some(r) = consts::float(op, x, y) {
                    return Ok(Val::Float(r));
                }
                if let Some(r) = consts::compare(op, x, y) {
                    return Ok(Val::Bool(r));
                }
            }
            (Val::Bool(x), Val::Bool(y)) if matches!(op, BinaryOp::Eq | BinaryOp::Ne) => {
                return Ok(Val::Bool((x == y) == (op == BinaryOp::Eq)));
            }
            _ => {}
        }
        if let (BinaryOp::Shl | BinaryOp::Shr, Some(Ty::D(d)), Some(Ty::Index)) =
            (op, self.scalar_ty(a), self.scalar_ty(b))
            && d.is_int()
        {
            let count = self.shift_count(b.clone(), d, spans.1)?;
            return self.scalar_binary(op, a, &count, span, spans);
        }
        // A literal beside an `index` constant stays exact: index constants fold in the builder.
        let ty = match (self.scalar_ty(a), self.scalar_ty(b)) {
            (Some(x), Some(y)) if x == y => x,
            (Some(x), Some(y)) => {
                let d = self.two_dtypes(op.symbol(), (x, y), spans);
                return self.report(d);
            }
            (Some(x), None) | (None, Some(x)) => x,
            (None, None) => Ty::Index,
        };
        let x = self.scalar_of(a, ty, spans.0)?;
        let y = self.scalar_of(b, ty, spans.1)?;
        if let Some(cmp) = comparison(op) {
            if ty == Ty::Index
                && let Some(known) = self.decide(cmp, x, y)
            {
                return Ok(Val::Bool(known));
            }
            let v = self.compare(cmp, x, y, span);
            return Ok(self.fold(v));
        }
        let Some(bin) = arith(op).filter(|o| defined_on(*o, ty)) else {
            let message = format!("`{}` is not defined on `{ty}`", op.symbol());
            return self.error(codes::UNDEFINED_OPERATION, span, message);
        };
        if matches!(bin, BinOp::Div | BinOp::Rem) && ty == Ty::Index && self.const_index(y) == Some(0) {
            return self.error(codes::DIVISION_BY_ZERO, span, format!("`{}` by zero", op.symbol()));
        }
        Ok(Val::Scalar(self.bin(bin, x, y, span)))
    }

    /// The count of a shift of `dtype`. It may be an `index`, which becomes `dtype` without changing the result: any
    /// count of the width or more does the same.
    pub(crate) fn shift_count(&mut self, count: Val, dtype: DType, at: Span) -> ElabResult<Val> {
        if self.scalar_ty(&count) != Some(Ty::Index) {
            return Ok(count);
        }
        let count = self.index_of(&count, at)?;
        let (zero, width) = (self.idx(0), self.idx(8 * dtype.size() as i64));
        let low = self.bin(BinOp::Min, count, width, at);
        let negative = self.compare(CmpOp::Lt, count, zero, at);
        let count = self.b.select(negative, width, low, at);
        Ok(Val::Scalar(self.convert_scalar(count, Ty::D(dtype), at)))
    }

    /// A comparison of `index` values that the facts decide.
    fn decide(&self, op: CmpOp, x: Value, y: Value) -> Option<bool> {
        let le = |a, b| self.facts.le_certain(a, b, 0);
        let lt = |a, b| self.facts.le_certain(a, b, -1);
        match op {
            CmpOp::Le if le(x, y) => Some(true),
            CmpOp::Le if lt(y, x) => Some(false),
            CmpOp::Lt if lt(x, y) => Some(true),
            CmpOp::Lt if le(y, x) => Some(false),
            CmpOp::Ge if le(y, x) => Some(true),
            CmpOp::Ge if lt(x, y) => Some(false),
            CmpOp::Gt if lt(y, x) => Some(true),
            CmpOp::Gt if le(x, y) => Some(false),
            CmpOp::Eq if lt(x, y) || lt(y, x) => Some(false),
            CmpOp::Ne if lt(x, y) || lt(y, x) => Some(true),
            _ => None,
        }
    }

    fn const_ints(&mut self, op: BinaryOp, x: i128, y: i128, span: Span) -> ElabResult<Val> {
        if let Some(r) = consts::compare(op, x, y) {
            return Ok(Val::Bool(r));
        }
        match consts::int(op, x, y) {
            Ok(r) => Ok(Val::Int(r)),
            Err(ConstFault::Overflow) => {
                let message = format!("{x} {} {y} overflows 128 bits", op.symbol());
                self.error(codes::CONSTANT_OVERFLOW, span, message)
            }
            Err(ConstFault::DivisionByZero) => {
                self.error(codes::DIVISION_BY_ZERO, span, format!("division by zero: {x} {} 0", op.symbol()))
            }
            Err(ConstFault::Undefined) => {
                let message = format!("`{}` is not defined on integers", op.symbol());
                self.error(codes::UNDEFINED_OPERATION, span, message)
            }
        }
    }

    /// `op a` on a scalar.
    pub(crate) fn scalar_unary(&mut self, op: UnOp, a: &Val, span: Span, arg: Span) -> ElabResult<Val> {
        match (op, a) {
            (_, Val::Poison) => return Err(super::ErrorReported),
            (UnOp::Neg, Val::Int(i)) => {
                return match i.checked_neg() {
                    Some(i) => Ok(Val::Int(i)),
                    None => self.error(codes::CONSTANT_OVERFLOW, span, format!("-({i}) overflows 128 bits")),
                };
            }
            (UnOp::Neg, Val::Float(f)) => return Ok(Val::Float(-f)),
            (UnOp::Neg, Val::Word(Word::Inf)) => return Ok(Val::Float(f64::NEG_INFINITY)),
            (UnOp::Not, Val::Bool(b)) => return Ok(Val::Bool(!b)),
            (UnOp::Abs, Val::Int(i)) if *i != i128::MIN => return Ok(Val::Int(i.abs())),
            (UnOp::Abs, Val::Float(f)) => return Ok(Val::Float(f.abs())),
            (_, Val::Float(f)) => {
                // A literal alone has no dtype to round to; f32 is what its context will want or reject.
                if let Some(r) = float_unary(op, *f) {
                    return Ok(Val::Float(r));
                }
            }
            _ => {}
        }
        let v = match a {
            Val::Scalar(v) => *v,
            other => {
                let message = format!("`{op}` is not defined on {}", other.describe());
                let d = Diagnostic::error(codes::UNDEFINED_OPERATION, arg, message);
                return self.report(super::labels::as_tile(d, other, arg));
            }
        };
        let ty = self.ty(v);
        let ok = match op {
            UnOp::Not => matches!(ty, Ty::D(d) if !d.is_float()),
            UnOp::Neg | UnOp::Abs => ty != Ty::BOOL,
            UnOp::Relu => ty != Ty::BOOL,
            _ => matches!(ty, Ty::D(d) if d.is_float()),
        };
        if !ok {
            let d = Diagnostic::error(codes::UNDEFINED_OPERATION, arg, format!("`{op}` is not defined on `{ty}`"));
            let d = match op {
                UnOp::Not => d.with_help("use `!` on `bool` and on integers"),
                _ if ty == Ty::BOOL => d.with_help("use it on numbers"),
                _ => Elaborator::convert_fix(d, Ty::D(DType::F32), arg),
            };
            return self.report(d);
        }
        let r = self.un(op, v, span);
        Ok(self.fold(r))
    }
}

fn float_unary(op: UnOp, f: f64) -> Option<f64> {
    Some(match op {
        UnOp::Sqrt => f.sqrt(),
        UnOp::Exp => f.exp(),
        UnOp::Log => f.ln(),
        UnOp::Rsqrt => 1.0 / f.sqrt(),
        UnOp::Recip => 1.0 / f,
        UnOp::Floor => f.floor(),
        UnOp::Ceil => f.ceil(),
        UnOp::Trunc => f.trunc(),
        UnOp::Tanh => f.tanh(),
        UnOp::Sin => f.sin(),
        UnOp::Cos => f.cos(),
        _ => return None,
    })
}

fn as_f64(v: &Val) -> f64 {
    match v {
        Val::Int(i) => *i as f64,
        Val::Float(f) => *f,
        _ => f64::NAN,
    }
}

/// The bits of `f` rounded to `dtype`.
pub(crate) fn float_bits(dtype: DType, f: f64) -> u64 {
    ptoc_tensor::scalar::bits_from_f64(dtype, f)
}

/// Least and greatest value of an integer dtype.
pub(crate) fn int_range(d: DType) -> (i128, i128) {
    let bits = 8 * d.size() as u32;
    if d == DType::Bool {
        (0, 1)
    } else if d.is_signed_int() {
        (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1)
    } else {
        (0, (1i128 << bits) - 1)
    }
}

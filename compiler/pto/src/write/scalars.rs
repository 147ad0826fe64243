//! Numbers.

use super::build::{Given, is_numbered};
use super::{Res, Writer, unsaid};
use crate::attr::AttrValue;
use crate::lexer::Word;
use crate::types::Type;
use ptoc_ir::analysis::poly::Poly;
use ptoc_ir::tile::{Const, Op, Ty, Value};
use ptoc_isa::{BinOp, CmpOp, RoundMode, UnOp};
use ptoc_tensor::DType;

impl Writer<'_> {
    /// A pure operation on numbers.
    pub(super) fn scalar(&mut self, op: &Op) -> Res<()> {
        let Some(dst) = op.def() else { return Ok(()) };
        let first = self.numbering.first(dst);
        if first == dst
            && let Some(name) = self.folded(op)?
        {
            self.known(dst, name);
            return Ok(());
        }
        let name = match op {
            _ if first != dst => self.value(first)?,
            Op::Const { value, .. } => self.literal(*value)?,
            Op::Binary { op, a, b, .. } => self.binary(dst, *op, *a, *b)?,
            Op::Unary { op, a, .. } => self.unary(dst, *op, *a)?,
            Op::Compare { op, a, b, .. } => self.compare(dst, *op, *a, *b)?,
            Op::Select { cond, a, b, .. } => {
                let ty = Some(self.ty(*a, self.span)?);
                let given: Vec<Given> = vec![
                    ("condition", self.value(*cond)?, None),
                    ("true", self.value(*a)?, ty.clone()),
                    ("false", self.value(*b)?, ty),
                ];
                let op = self.op("arith.select", given);
                let name = self.name_of(dst);
                self.define(op, name, None)
            }
            Op::Convert { a, round, saturate, .. } => self.convert(dst, *a, *round, *saturate)?,
            _ => return unsaid(self.span, "this computation"),
        };
        self.known(dst, name);
        Ok(())
    }

    /// The number that a value is: by its definition, or in the text, where variables have been set to one.
    pub(super) fn number(&self, v: Value) -> Option<i64> {
        self.defs.number(v).or_else(|| self.constant_value(self.values.get(&v)?))
    }

    /// The constant that an operation of type `index` comes to: a variable that is set to one is that in the text.
    fn folded(&mut self, op: &Op) -> Res<Option<Word>> {
        let (Op::Binary { a, .. } | Op::Compare { a, .. } | Op::Select { cond: a, .. }) = op else { return Ok(None) };
        let Some(x) = self.constant_value(&self.value(*a)?) else { return Ok(None) };
        let (Op::Binary { b, .. } | Op::Compare { b, .. } | Op::Select { b, .. }) = op else { return Ok(None) };
        let y = self.value(*b)?;
        if let Op::Select { a, .. } = op {
            return Ok(Some(if x == 0 { y } else { self.value(*a)? }));
        }
        let Some(y) = self.constant_value(&y).filter(|_| self.kernel.values[*a].ty == Ty::Index) else {
            return Ok(None);
        };
        Ok(match op {
            Op::Binary { op, .. } => {
                let n = match op {
                    BinOp::Add => x.checked_add(y),
                    BinOp::Sub => x.checked_sub(y),
                    BinOp::Mul => x.checked_mul(y),
                    _ => None,
                };
                n.map(|n| self.index(n))
            }
            Op::Compare { op, .. } => {
                let holds = match op {
                    CmpOp::Eq => x == y,
                    CmpOp::Ne => x != y,
                    CmpOp::Lt => x < y,
                    CmpOp::Le => x <= y,
                    CmpOp::Gt => x > y,
                    CmpOp::Ge => x >= y,
                };
                let ty = self.scalar_type(Ty::BOOL, self.span)?;
                Some(self.constant(AttrValue::Bool(holds), &ty))
            }
            _ => None,
        })
    }

    /// The value has this name, in the block that is open.
    pub(super) fn known(&mut self, value: Value, name: Word) {
        self.values.insert(value, name);
        if let Some(visible) = self.visible.last_mut() {
            visible.push(value);
        }
    }

    /// A name for a value: the source's, or a number.
    pub(super) fn name_of(&mut self, value: Value) -> Word {
        match self.kernel.values[value].name.as_deref().filter(|n| !is_numbered(n)) {
            Some(name) => self.names.give(name),
            None => self.names.number(),
        }
    }

    pub(super) fn literal(&mut self, value: Const) -> Res<Word> {
        let ty = self.scalar_type(value.ty, self.span)?;
        let attr = match value.ty {
            Ty::Index => AttrValue::Int(i128::from(value.bits as i64), Some(Type::Index)),
            Ty::D(DType::Bool) => AttrValue::Bool(value.bits != 0),
            Ty::D(dtype) if dtype.is_int() => {
                // Without a sign in the type the number is read as signed.
                let shift = 64 - 8 * dtype.size() as u32;
                AttrValue::Int(i128::from(((value.bits << shift) as i64) >> shift), Some(ty.clone()))
            }
            Ty::D(dtype) => {
                let float = match dtype {
                    DType::F32 => f64::from(f32::from_bits(value.bits as u32)),
                    DType::F16 => half::f16::from_bits(value.bits as u16).to_f64(),
                    DType::BF16 => half::bf16::from_bits(value.bits as u16).to_f64(),
                    _ => return unsaid(self.span, format!("numbers of {dtype}")),
                };
                let width = 2 * dtype.size();
                let text = match float.is_finite() {
                    true => scientific(float, dtype),
                    false => format!("0x{:0width$X}", value.bits),
                };
                AttrValue::Float(Word::new(text), Some(ty.clone()))
            }
        };
        Ok(self.constant(attr, &ty))
    }

    fn two(&mut self, name: &'static str, dst: Option<Value>, a: Word, b: Word, ty: &Type) -> Word {
        let given = vec![("lhs", a, Some(ty.clone())), ("rhs", b, Some(ty.clone()))];
        let op = self.op(name, given);
        let name = match dst {
            Some(dst) => self.name_of(dst),
            None => self.names.number(),
        };
        self.define(op, name, None)
    }

    fn binary(&mut self, dst: Value, op: BinOp, a: Value, b: Value) -> Res<Word> {
        let ir_ty = self.kernel.values[a].ty;
        let ty = self.ty(a, self.span)?;
        let (x, y) = (self.value(a)?, self.value(b)?);
        let float = matches!(ir_ty, Ty::D(d) if d.is_float());
        let signed = !matches!(ir_ty, Ty::D(d) if d.is_int() && !d.is_signed_int());
        let index = ir_ty == Ty::Index;
        let name = match op {
            BinOp::Add if float => "arith.addf",
            BinOp::Sub if float => "arith.subf",
            BinOp::Mul if float => "arith.mulf",
            BinOp::Div if float => "arith.divf",
            BinOp::Rem if float => "arith.remf",
            BinOp::Max if float => "arith.maximumf",
            BinOp::Min if float => "arith.minimumf",
            BinOp::Add => "arith.addi",
            BinOp::Sub => "arith.subi",
            BinOp::Mul => "arith.muli",
            BinOp::Div if index => "arith.floordivsi",
            BinOp::Div if signed => "arith.divsi",
            BinOp::Div => "arith.divui",
            BinOp::Rem if index && !(self.is_natural(a, 0) && self.is_natural(b, 0)) => {
                // It goes with a division that rounds down.
                let quotient = self.two("arith.floordivsi", None, x.clone(), y.clone(), &ty);
                let whole = self.two("arith.muli", None, quotient, y, &ty);
                return Ok(self.two("arith.subi", Some(dst), x, whole, &ty));
            }
            BinOp::Rem if signed => "arith.remsi",
            BinOp::Rem => "arith.remui",
            BinOp::Max if signed => "arith.maxsi",
            BinOp::Max => "arith.maxui",
            BinOp::Min if signed => "arith.minsi",
            BinOp::Min => "arith.minui",
            BinOp::And => "arith.andi",
            BinOp::Or => "arith.ori",
            BinOp::Xor => "arith.xori",
            BinOp::Shl => "arith.shli",
            BinOp::Shr if signed => "arith.shrsi",
            BinOp::Shr => "arith.shrui",
        };
        Ok(self.two(name, Some(dst), x, y, &ty))
    }

    /// Whether an `index` is seen not to be negative.
    fn is_natural(&self, v: Value, depth: u32) -> bool {
        let both = |a: Value, b: Value| self.is_natural(a, depth + 1) && self.is_natural(b, depth + 1);
        if depth > 16 {
            return false;
        }
        match self.defs.of(v) {
            Some(Op::Const { value, .. }) => value.as_index().is_some_and(|n| n >= 0),
            Some(Op::Binary { op: BinOp::Add | BinOp::Mul | BinOp::Div | BinOp::Min | BinOp::Rem, a, b, .. }) => {
                both(*a, *b)
            }
            Some(Op::Binary { op: BinOp::Max, a, b, .. }) => {
                self.is_natural(*a, depth + 1) || self.is_natural(*b, depth + 1)
            }
            Some(_) => false,
            // Dimensions, and indices of the grid and of loops, which begin at 0 or above where that is seen.
            None => self.naturals.contains(&v),
        }
    }

    fn unary(&mut self, dst: Value, op: UnOp, a: Value) -> Res<Word> {
        let ir_ty = self.kernel.values[a].ty;
        let ty = self.ty(a, self.span)?;
        let x = self.value(a)?;
        let float = matches!(ir_ty, Ty::D(d) if d.is_float());
        let number = |n: i128| AttrValue::Int(n, Some(ty.clone()));
        match op {
            UnOp::Neg if float => {
                let op = self.op("arith.negf", vec![("in", x, Some(ty))]);
                let name = self.name_of(dst);
                Ok(self.define(op, name, None))
            }
            UnOp::Neg => {
                let zero = self.constant(number(0), &ty);
                Ok(self.two("arith.subi", Some(dst), zero, x, &ty))
            }
            UnOp::Not if ir_ty == Ty::BOOL => {
                let yes = self.constant(AttrValue::Bool(true), &ty);
                Ok(self.two("arith.xori", Some(dst), x, yes, &ty))
            }
            UnOp::Not if !float => {
                let ones = self.constant(number(-1), &ty);
                Ok(self.two("arith.xori", Some(dst), x, ones, &ty))
            }
            _ => unsaid(self.span, format!("`{op}` of a scalar")),
        }
    }

    fn compare(&mut self, dst: Value, op: CmpOp, a: Value, b: Value) -> Res<Word> {
        let ir_ty = self.kernel.values[a].ty;
        let ty = self.ty(a, self.span)?;
        let float = matches!(ir_ty, Ty::D(d) if d.is_float());
        let unsigned = matches!(ir_ty, Ty::D(d) if !d.is_float() && !d.is_signed_int());
        let predicate = match (op, float) {
            (CmpOp::Eq, true) => "oeq".to_string(),
            (CmpOp::Ne, true) => "une".to_string(),
            (_, true) => format!("o{op}"),
            (CmpOp::Eq | CmpOp::Ne, false) => op.to_string(),
            (_, false) => format!("{}{op}", if unsigned { 'u' } else { 's' }),
        };
        let given = vec![("lhs", self.value(a)?, Some(ty.clone())), ("rhs", self.value(b)?, Some(ty))];
        let mut op = self.op(if float { "arith.cmpf" } else { "arith.cmpi" }, given);
        op.attrs.push(self.attr("predicate", AttrValue::Other(Word::new(predicate))));
        let name = self.name_of(dst);
        Ok(self.define(op, name, None))
    }

    fn cast(&mut self, name: &'static str, dst: Value, a: Value) -> Res<Word> {
        let given = vec![("in", self.value(a)?, Some(self.ty(a, self.span)?))];
        let to = self.ty(dst, self.span)?;
        let op = self.op(name, given);
        let name = self.name_of(dst);
        Ok(self.define(op, name, Some(to)))
    }

    fn convert(&mut self, dst: Value, a: Value, round: RoundMode, saturate: bool) -> Res<Word> {
        let (from, to) = (self.kernel.values[a].ty, self.kernel.values[dst].ty);
        let what = format!("this conversion from {from} to {to}");
        let (Ty::D(f), Ty::D(t)) = (from, to) else {
            // `index` has 64 bits.
            let whole = |ty: Ty| matches!(ty, Ty::D(d) if d.is_int() && (d.is_signed_int() || ty == to));
            // The bits of a `u64` are those of the `index`.
            let fine = match from == Ty::Index {
                true => whole(to) && !saturate,
                false => whole(from) || from == Ty::D(DType::U64),
            };
            let other = match (from, to) {
                (Ty::D(d), _) | (_, Ty::D(d)) => d,
                _ => DType::I64,
            };
            let through = match (to == Ty::Index, other.is_float()) {
                (false, true) if round == RoundMode::Rint => Some(("arith.index_cast", "arith.sitofp")),
                (true, true) if round == RoundMode::Trunc => Some(("arith.fptosi", "arith.index_cast")),
                // Bits of an integer without a sign are widened first.
                (true, false) if !other.is_signed_int() && other.size() < 8 => {
                    Some(("arith.extui", "arith.index_cast"))
                }
                _ => None,
            };
            if let Some((first, second)) = through {
                return self.through_i64(dst, a, first, second);
            }
            return if fine { self.cast("arith.index_cast", dst, a) } else { unsaid(self.span, what) };
        };
        let (signed, signed_int) = (f.is_signed_int(), t.is_signed_int());
        let name = match (f.is_float(), t.is_float()) {
            (true, true) if t.size() > f.size() => "arith.extf",
            (true, true) if t.size() < f.size() && round == RoundMode::Rint && !saturate => "arith.truncf",
            (true, true) => return unsaid(self.span, what),
            // What does not fit is defined in the language, and not in `arith`.
            (true, false) if round != RoundMode::Trunc || t == DType::Bool => return unsaid(self.span, what),
            (true, false) if signed_int => "arith.fptosi",
            (true, false) => "arith.fptoui",
            (false, true) if round != RoundMode::Rint => return unsaid(self.span, what),
            (false, true) => {
                if signed {
                    "arith.sitofp"
                } else {
                    "arith.uitofp"
                }
            }
            (false, false) if saturate => return unsaid(self.span, what),
            (false, false) if t.size() > f.size() || f == DType::Bool => {
                if signed {
                    "arith.extsi"
                } else {
                    "arith.extui"
                }
            }
            (false, false) if t.size() < f.size() && t != DType::Bool => "arith.trunci",
            // The same bits: `arith` has no sign in its types.
            (false, false) if t.size() == f.size() && t != DType::Bool => return self.value(a),
            _ => return unsaid(self.span, what),
        };
        self.cast(name, dst, a)
    }

    /// Two conversions, with 64 bits between them: those of an `index`.
    fn through_i64(&mut self, dst: Value, a: Value, first: &'static str, second: &'static str) -> Res<Word> {
        let i64 = Type::Element(Word::new_static("i64"));
        let op = self.op(first, vec![("in", self.value(a)?, Some(self.ty(a, self.span)?))]);
        let name = self.names.number();
        let whole = self.define(op, name, Some(i64.clone()));
        let to = self.ty(dst, self.span)?;
        let op = self.op(second, vec![("in", whole, Some(i64))]);
        let name = self.name_of(dst);
        Ok(self.define(op, name, Some(to)))
    }

    // ---- sums and products -----------------------------------------------------------------------------------------

    /// A value of type `index` that is this sum of products: one that is there, or a new one.
    pub(super) fn sum(&mut self, poly: &Poly) -> Res<Word> {
        if let Some(n) = poly.number() {
            return Ok(self.index(n));
        }
        if let Some(there) = self.there(poly)? {
            return Ok(there);
        }
        let mut sum: Option<Word> = None;
        for (factors, n) in poly.terms() {
            let term = self.product(factors, *n)?;
            sum = Some(match sum {
                Some(s) => self.two("arith.addi", None, s, term, &Type::Index),
                None => term,
            });
        }
        let Some(sum) = sum else { return Ok(self.index(0)) };
        self.made(poly.clone(), &sum);
        Ok(sum)
    }

    /// A value that is visible here and is this sum.
    fn there(&mut self, poly: &Poly) -> Res<Option<Word>> {
        let visible: Vec<Value> = self.visible.iter().rev().flatten().copied().collect();
        for v in visible {
            if self.kernel.values[v].ty == Ty::Index && self.poly(v).as_ref() == Some(poly) {
                return self.value(v).map(Some);
            }
        }
        Ok(self.sums.iter().rev().flatten().find(|(made, _)| made == poly).map(|(_, name)| name.clone()))
    }

    /// The sum has this name, in the block that is open.
    fn made(&mut self, poly: Poly, name: &Word) {
        if let Some(sums) = self.sums.last_mut() {
            sums.push((poly, name.clone()));
        }
    }

    /// One term of a sum.
    fn product(&mut self, factors: &[Value], n: i64) -> Res<Word> {
        let whole = Poly::sum_of(vec![(factors.to_vec(), n)]);
        if let Some(whole) = whole.as_ref().filter(|_| !factors.is_empty())
            && let Some(there) = self.there(whole)?
        {
            return Ok(there);
        }
        let mut product: Option<Word> = None;
        for factor in factors {
            let factor = self.value(*factor)?;
            product = Some(match product {
                Some(p) => self.two("arith.muli", None, p, factor, &Type::Index),
                None => factor,
            });
        }
        let name = match (product, n) {
            (Some(p), 1) => p,
            (Some(p), n) => {
                let n = self.index(n);
                self.two("arith.muli", None, p, n, &Type::Index)
            }
            (None, n) => return Ok(self.index(n)),
        };
        if let Some(whole) = whole {
            self.made(whole, &name);
        }
        Ok(name)
    }
}

/// A finite number as MLIR prints it: digits enough to read it back.
fn scientific(value: f64, dtype: DType) -> String {
    let text = match dtype {
        DType::F32 => format!("{:e}", value as f32),
        _ => format!("{value:e}"),
    };
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let (sign, digits) = exponent.strip_prefix('-').map_or(('+', exponent), |digits| ('-', digits));
    let point = if mantissa.contains('.') { "" } else { ".0" };
    format!("{mantissa}{point}e{sign}{digits:0>2}")
}

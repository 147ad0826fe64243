//! Masks: comparisons of tiles, logic on their results, selection.
//!
//! A mask that is read the other way round is so marked (`Val::Mask(_, true)`), and no instruction is spent on it until
//! something needs its bits.

use super::inst::instr_for;
use super::scalars::comparison;
use super::tileops::{Fit, tile};
use super::{ElabResult, Elaborator, ErrorReported};
use ptoc_diagnostics::{Diagnostic, Span, codes};
use ptoc_ir::tile::{InstAttrs, Ty};
use ptoc_isa::{BinOp, CmpOp, Sem, UnOp};
use ptoc_syntax::ast::BinaryOp;
use ptoc_tensor::DType;
use ptoc_values::{TileVal, Val};

/// A mask, and whether it is to be read the other way round.
type Mask = (TileVal, bool);

impl Elaborator<'_> {
    /// `a op b` where at least one side is a mask: `&` `&&` `|` `||` `^` `==` `!=`.
    pub(crate) fn mask_binary(
        &mut self,
        op: BinaryOp,
        a: Val,
        b: Val,
        dest: Option<TileVal>,
        span: Span,
        at: (Span, Span),
    ) -> ElabResult<Val> {
        if matches!(a, Val::Poison) || matches!(b, Val::Poison) {
            return Err(ErrorReported);
        }
        // What is asked for, and whether the answer is to be read the other way round.
        let (bin, flip) = match (op, comparison(op)) {
            (BinaryOp::BitAnd | BinaryOp::And, _) => (BinOp::And, false),
            (BinaryOp::BitOr | BinaryOp::Or, _) => (BinOp::Or, false),
            (BinaryOp::BitXor, _) | (_, Some(CmpOp::Ne)) => (BinOp::Xor, false),
            (_, Some(CmpOp::Eq)) => (BinOp::Xor, true),
            _ => {
                let d = Diagnostic::error(
                    codes::UNDEFINED_OPERATION,
                    span,
                    format!("`{}` is not defined on masks", op.symbol()),
                )
                .with_note("masks have `&`, `|`, `^`, `!`, `==` and `!=`")
                .with_help("numbers that depend on a mask are `if mask { a } else { b }`");
                return self.report(d);
            }
        };
        match (&a, &b) {
            (m, Val::Bool(v)) => return self.mask_with_constant(bin, m, *v != flip, dest, span, at.0),
            (Val::Bool(v), m) => return self.mask_with_constant(bin, m, *v != flip, dest, span, at.1),
            _ => {}
        }
        let (Some(x), Some(y)) = (a.as_mask(), b.as_mask()) else {
            let (other, at_other, at_mask) = if a.as_mask().is_some() { (&b, at.1, at.0) } else { (&a, at.0, at.1) };
            let what = match self.scalar_ty(other) {
                Some(ty) => format!("a scalar of `{ty}`"),
                None => other.describe().into(),
            };
            let d = Diagnostic::error(
                codes::TYPE_MISMATCH,
                at_other,
                format!("`{}` needs a mask on both sides, this is {what}", op.symbol()),
            )
            .with_label(what)
            .with_secondary(at_mask, "a mask");
            return self.report(match other {
                Val::Tile(_) => d.with_help("compare it to get a mask, as in `x != 0`"),
                Val::Scalar(_) if self.scalar_ty(other) == Some(Ty::BOOL) => {
                    d.with_help("a condition that is the same for all elements is an `if` around the other")
                }
                _ => d.with_help("masks go with masks; the results of comparisons are masks"),
            });
        };
        let (x, y) = self.level_masks(x, y, span, at)?;
        let (r, negated) = self.mask_logic(bin, x, y, flip, dest, span, at)?;
        Ok(Val::Mask(r, negated))
    }

    /// A truth value known now decides for all elements, or for none. `==` comes here as an exclusive or with the other
    /// value.
    fn mask_with_constant(
        &mut self,
        op: BinOp,
        m: &Val,
        v: bool,
        dest: Option<TileVal>,
        span: Span,
        at: Span,
    ) -> ElabResult<Val> {
        match (op, v) {
            (BinOp::And, false) | (BinOp::Or, true) => return Ok(Val::Bool(v)),
            _ => {}
        }
        let negate = op == BinOp::Xor && v;
        match m {
            Val::Mask(t, negated) => Ok(Val::Mask(*t, *negated != negate)),
            // A declared tile may change before the result is used: the result has bits of its own.
            Val::Tile(t) if negate => self.tile_unary(UnOp::Not, *t, dest, span, at),
            Val::Tile(t) => {
                let (r, _) = self.mask_logic(BinOp::And, (*t, false), (*t, false), false, dest, span, (at, at))?;
                Ok(Val::Mask(r, false))
            }
            _ => Err(ErrorReported),
        }
    }

    /// Logic of masks of one shape. Negations move out of it: `!a & !b` is `!(a | b)`.
    #[allow(clippy::too_many_arguments, reason = "an operator and its places")]
    fn mask_logic(
        &mut self,
        op: BinOp,
        (x, nx): Mask,
        (y, ny): Mask,
        flip: bool,
        dest: Option<TileVal>,
        span: Span,
        at: (Span, Span),
    ) -> ElabResult<Mask> {
        let dual = if op == BinOp::And { BinOp::Or } else { BinOp::And };
        let (op, x, y, negated) = match (op, nx, ny) {
            (BinOp::Xor, _, _) => (op, x, y, nx != ny),
            (_, true, true) => (dual, x, y, true),
            (_, true, false) => (op, self.complement(x, span, at.0)?, y, false),
            (_, false, true) => (op, x, self.complement(y, span, at.1)?, false),
            (_, false, false) => (op, x, y, false),
        };
        let negated = negated != flip;
        let id = instr_for(Sem::Binary(op)).ok_or(ErrorReported)?;
        let shape = self.valid_of(&x, at.0)?;
        // What is to be read the other way round is not yet what belongs into the destination.
        let dest = self.apart(id, dest, &[&x, &y]).filter(|_| !negated);
        let d = self.result(DType::Bool, (x.rows, x.cols), shape, dest, span)?;
        self.apply(id, vec![tile(d, span), tile(x, at.0), tile(y, at.1)], InstAttrs::default(), span)?;
        Ok((d, negated))
    }

    fn complement(&mut self, m: TileVal, span: Span, at: Span) -> ElabResult<TileVal> {
        match self.tile_unary(UnOp::Not, m, None, span, at)? {
            Val::Tile(t) => Ok(t),
            _ => Err(ErrorReported),
        }
    }

    /// Both masks in the full shape; a column or a row decides for whole rows or columns.
    fn level_masks(&mut self, x: Mask, y: Mask, span: Span, at: (Span, Span)) -> ElabResult<(Mask, Mask)> {
        match self.fit(&x.0, &y.0, at)? {
            (Fit::Same, _) => Ok((x, y)),
            (_, true) => Ok((self.widen_mask(x, &y.0, span)?, y)),
            (_, false) => Ok((x, self.widen_mask(y, &x.0, span)?)),
        }
    }

    /// Comparison to a mask.
    pub(crate) fn tile_compare(&mut self, op: CmpOp, a: Val, b: Val, span: Span, at: (Span, Span)) -> ElabResult<Val> {
        let (x, y) = match (a, b) {
            (Val::Tile(x), Val::Tile(y)) => {
                let (x, y) = (self.in_vec(x, at.0)?, self.in_vec(y, at.1)?);
                self.same_dtype(&x, &y, op.name(), span, at)?;
                self.level(x, y, span, at)?
            }
            (Val::Tile(x), s) => (x, self.filled_like(&x, s, span, at)?),
            (s, Val::Tile(y)) => (self.filled_like(&y, s, span, (at.1, at.0))?, y),
            _ => return Err(ErrorReported),
        };
        let dtype = x.ty.dtype;
        let legal = |s: &Self, op| {
            let id = instr_for(Sem::Compare)?;
            ptoc_isa::check_dtypes(s.target, id, &[DType::Bool, dtype, dtype], Some(op)).is_none().then_some(())
        };
        if legal(self, op).is_some() || legal(self, CmpOp::Eq).is_none() || !dtype.is_int() {
            let m = self.mask(op, x, y, span, at)?;
            return Ok(Val::Mask(m, false));
        }
        // The target compares these integers for equality only: a <= b is max(a, b) == b, and so on.
        let (which, negate) = match op {
            CmpOp::Eq => (None, false),
            CmpOp::Ne => (None, true),
            CmpOp::Le => (Some(false), false),
            CmpOp::Gt => (Some(false), true),
            CmpOp::Ge => (Some(true), false),
            CmpOp::Lt => (Some(true), true),
        };
        let (l, r) = match which {
            None => (x, y),
            Some(first) => {
                let top = self.tile_tile(BinOp::Max, x, y, None, span, at)?;
                let Val::Tile(top) = top else { return Err(ErrorReported) };
                (top, if first { x } else { y })
            }
        };
        let m = self.mask(CmpOp::Eq, l, r, span, at)?;
        Ok(Val::Mask(m, negate))
    }

    fn mask(&mut self, op: CmpOp, x: TileVal, y: TileVal, span: Span, at: (Span, Span)) -> ElabResult<TileVal> {
        let id = instr_for(Sem::Compare).ok_or(ErrorReported)?;
        let shape = self.valid_of(&x, at.0)?;
        let m = self.temp(DType::Bool, (x.rows, x.cols), shape, span)?;
        let attrs = InstAttrs { cmp: Some(op), ..InstAttrs::default() };
        self.apply(id, vec![tile(m, span), tile(x, at.0), tile(y, at.1)], attrs, span)?;
        Ok(m)
    }

    /// `if mask { a } else { b }`
    pub(crate) fn tile_select(
        &mut self,
        mask: (TileVal, bool),
        a: Val,
        b: Val,
        dest: Option<TileVal>,
        span: Span,
        at: (Span, Span),
    ) -> ElabResult<Val> {
        let dtype = match (&a, &b) {
            (Val::Tile(t), _) | (_, Val::Tile(t)) => t.ty.dtype,
            (Val::Scalar(v), _) | (_, Val::Scalar(v)) if matches!(self.ty(*v), Ty::D(_)) => {
                let Ty::D(d) = self.ty(*v) else { return Err(ErrorReported) };
                d
            }
            (Val::Float(_), _) | (_, Val::Float(_)) => DType::F32,
            _ => DType::I32,
        };
        // A mask that is a column or a row decides for whole rows or columns.
        let wide = [&a, &b].into_iter().find_map(|v| match v {
            Val::Tile(t)
                if (t.rows, t.cols) != (mask.0.rows, mask.0.cols) && (mask.0.cols == 1 || mask.0.rows == 1) =>
            {
                Some(*t)
            }
            _ => None,
        });
        let mask = match wide {
            Some(t) if t.rows >= mask.0.rows && t.cols >= mask.0.cols => self.widen_mask(mask, &t, span)?,
            _ => mask,
        };
        let shape = self.valid_of(&mask.0, span)?;
        let caps = (mask.0.rows, mask.0.cols);
        let arm = |s: &mut Self, v: Val, at: Span| -> ElabResult<TileVal> {
            match v {
                Val::Tile(t) if (t.rows, t.cols) == caps => Ok(t),
                Val::Tile(t) => {
                    let like = TileVal { ty: t.ty, ..mask.0 };
                    let (t, _) = s.level(t, like, span, (at, span))?;
                    Ok(t)
                }
                v => {
                    let d = s.temp(dtype, caps, shape, span)?;
                    s.expand_scalar(&d, v, at, span)?;
                    Ok(d)
                }
            }
        };
        let (x, y) = (arm(self, a, at.0)?, arm(self, b, at.1)?);
        self.same_dtype(&x, &y, "if", span, at)?;
        let (x, y) = if mask.1 { (y, x) } else { (x, y) };
        let id = instr_for(Sem::Select).ok_or(ErrorReported)?;
        let d = self.result(dtype, caps, shape, dest, span)?;
        self.apply(
            id,
            vec![tile(d, span), tile(mask.0, span), tile(x, at.0), tile(y, at.1)],
            InstAttrs::default(),
            span,
        )?;
        Ok(Val::Tile(d))
    }

    /// A column or row mask in the shape of `like`: there is no broadcast of masks, so it goes through numbers.
    fn widen_mask(&mut self, mask: (TileVal, bool), like: &TileVal, span: Span) -> ElabResult<(TileVal, bool)> {
        let dtype = DType::F32;
        let shape = self.valid_of(&mask.0, span)?;
        let caps = (mask.0.rows, mask.0.cols);
        let filled = |s: &mut Self, x: f64| -> ElabResult<TileVal> {
            let d = s.temp(dtype, caps, shape, span)?;
            s.expand_scalar(&d, Val::Float(x), span, span)?;
            Ok(d)
        };
        let (one, zero) = (filled(self, 1.0)?, filled(self, 0.0)?);
        let id = instr_for(Sem::Select).ok_or(ErrorReported)?;
        let d = self.temp(dtype, caps, shape, span)?;
        let ops = vec![tile(d, span), tile(mask.0, span), tile(one, span), tile(zero, span)];
        self.apply(id, ops, InstAttrs::default(), span)?;
        let full = self.spread(&d, like, mask.0.cols == 1, span, span, span)?;
        let nought = self.filled_like(&full, Val::Float(0.0), span, (span, span))?;
        let m = self.mask(CmpOp::Gt, full, nought, span, (span, span))?;
        Ok((m, mask.1))
    }
}

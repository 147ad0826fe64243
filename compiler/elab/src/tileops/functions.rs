//! Functions of tiles that are more than one operator: powers, and the places of the largest and smallest elements.

use super::super::inst::{Opnd, instr_for};
use super::super::{ElabResult, Elaborator, ErrorReported};
use super::tile;
use ptoc_diagnostics::{Diagnostic, Span, codes};
use ptoc_ir::tile::{InstAttrs, Op, Ty};
use ptoc_isa::{Expr, InstrId, Reduce, Sem};
use ptoc_tensor::DType;
use ptoc_values::{TileVal, Val};

impl Elaborator<'_> {
    /// `pow(a, b)`: of tiles the instruction for it, by a tile or by a scalar.
    pub(crate) fn pow(
        &mut self,
        a: Val,
        b: Val,
        dest: Option<TileVal>,
        span: Span,
        at: (Span, Span),
    ) -> ElabResult<Val> {
        match (a, b) {
            (Val::Poison, _) | (_, Val::Poison) => Err(ErrorReported),
            (Val::Tile(x), Val::Tile(y)) => {
                let (x, y) = (self.in_vec(x, at.0)?, self.in_vec(y, at.1)?);
                self.same_dtype(&x, &y, "pow", span, at)?;
                let (x, y) = self.level(x, y, span, at)?;
                self.tile_pow(x, Val::Tile(y), dest, span, at)
            }
            (Val::Tile(x), s) => {
                let x = self.in_vec(x, at.0)?;
                let s = Val::Scalar(self.scalar_of(&s, Ty::D(x.ty.dtype), at.1)?);
                self.tile_pow(x, s, dest, span, at)
            }
            (s, Val::Tile(y)) => {
                let y = self.in_vec(y, at.1)?;
                let x = self.filled_like(&y, s, span, (at.1, at.0))?;
                self.tile_pow(x, Val::Tile(y), dest, span, at)
            }
            (a, b) => self.scalar_pow(a, b, span, at),
        }
    }

    /// The power of tiles of one shape, or by a scalar, both of one dtype. Where the target takes no narrow floats, in
    /// f32, which gives the same bits.
    fn tile_pow(&mut self, x: TileVal, y: Val, dest: Option<TileVal>, span: Span, at: (Span, Span)) -> ElabResult<Val> {
        let dtype = x.ty.dtype;
        let by_tile = matches!(y, Val::Tile(_));
        let id = self.power_row(by_tile).ok_or(ErrorReported)?;
        let legal = |d: DType| ptoc_isa::check_dtypes(self.target, id, &[d; 3], None).is_none();
        if dtype.is_float() && dtype != DType::F32 && !legal(dtype) && legal(DType::F32) {
            let wide = Ty::D(DType::F32);
            let Val::Tile(x) = self.convert_to(wide, Val::Tile(x), None, span, at.0)? else {
                return Err(ErrorReported);
            };
            let y = self.convert_to(wide, y, None, span, at.1)?;
            let r = self.tile_pow(x, y, None, span, at)?;
            return self.convert_to(Ty::D(dtype), r, dest, span, span);
        }
        let shape = self.valid_of(&x, at.0)?;
        let dest = match &y {
            Val::Tile(y) => self.apart(id, dest, &[&x, y]),
            _ => self.apart(id, dest, &[&x]),
        };
        let d = self.result(dtype, (x.rows, x.cols), shape, dest, span)?;
        let exponent = match y {
            Val::Tile(y) => tile(y, at.1),
            s => Opnd::Scalar(s, at.1),
        };
        self.apply(id, vec![tile(d, span), tile(x, at.0), exponent], InstAttrs::default(), span)?;
        Ok(Val::Tile(d))
    }

    /// The row of the table that is a power, by a tile or by a scalar.
    fn power_row(&self, by_tile: bool) -> Option<InstrId> {
        let power = |id: &InstrId| {
            id.get().sem.expr() == Some(Expr::Pow(&Expr::Arg(1), &Expr::Arg(2)))
                && id.get().operands[2].is_tile() == by_tile
        };
        InstrId::all().find(power)
    }

    /// Of constants a constant; else what the instruction gives for a tile of one element, so that scalars and tiles
    /// have the same bits.
    fn scalar_pow(&mut self, a: Val, b: Val, span: Span, at: (Span, Span)) -> ElabResult<Val> {
        let constant = |v: &Val| match v {
            Val::Int(i) => Some(*i as f64),
            Val::Float(f) => Some(*f),
            _ => None,
        };
        if let (Some(x), Some(y)) = (constant(&a), constant(&b)) {
            if let (Val::Int(x), Val::Int(y)) = (&a, &b) {
                let exact = u32::try_from(*y).ok().and_then(|y| x.checked_pow(y));
                return match exact {
                    Some(p) => Ok(Val::Int(p)),
                    None => {
                        self.error(codes::CONSTANT_OVERFLOW, span, format!("`pow({x}, {y})` is no integer of 128 bits"))
                    }
                };
            }
            return Ok(Val::Float(x.powf(y)));
        }
        let ty = match (self.scalar_ty(&a), self.scalar_ty(&b)) {
            (Some(t), _) | (None, Some(t)) => t,
            (None, None) => {
                let message = format!("`pow` is not defined on {}", a.describe());
                return self.error(codes::UNDEFINED_OPERATION, at.0, message);
            }
        };
        let Ty::D(dtype) = ty else {
            let d = Diagnostic::error(codes::UNDEFINED_OPERATION, span, "`pow` is not defined on `index`")
                .with_help("convert it first: `pow(f32(n), 2.0)`; a small power is a product, `n * n`");
            return self.report(d);
        };
        let (x, y) = (self.scalar_of(&a, ty, at.0)?, self.scalar_of(&b, ty, at.1)?);
        let one = self.idx(1);
        let t = self.temp(dtype, (1, 1), (one, one), span)?;
        self.expand_scalar(&t, Val::Scalar(x), at.0, span)?;
        let Val::Tile(r) = self.tile_pow(t, Val::Scalar(y), None, span, at)? else { return Err(ErrorReported) };
        let (zero, r) = (self.idx(0), self.tile_ref(&r, (one, one)));
        let dst = self.b.new_value(ty, None, span);
        self.emit(Op::TileGet { dst, tile: r, row: zero, col: zero }, span);
        Ok(Val::Scalar(dst))
    }

    /// `rowargmax(x)`, `colargmin(x)`, ..: the place of an element in each row or column, in i32.
    pub(crate) fn tile_argument(
        &mut self,
        by_row: bool,
        op: Reduce,
        x: TileVal,
        dest: Option<TileVal>,
        span: Span,
        at: Span,
    ) -> ElabResult<Val> {
        let x = self.in_vec(x, at)?;
        let sem = if by_row { Sem::RowArg(op) } else { Sem::ColArg(op) };
        let id = instr_for(sem).ok_or(ErrorReported)?;
        self.one_of_each(id, by_row, DType::I32, x, dest, (span, at))
    }
}

//! A tile's bits as another dtype of the same size, and the conversions that come of it: no target converts u32 by TCVT
//! as it does i32.

use super::inst::Opnd;
use super::tileops::tile;
use super::{ElabResult, Elaborator, ErrorReported};
use ptoc_diagnostics::{Diagnostic, Span, codes};
use ptoc_ir::tile::{Elem, InstAttrs, Ty};
use ptoc_isa::{BinOp, BitsWay, CmpOp, other_sign};
use ptoc_tensor::DType::{self, F32, I16, I32, U32};
use ptoc_values::{TileVal, Val};

/// 2^31, the first number beyond i32, and 2^16.
const TWO_31: f64 = 2_147_483_648.0;
const TWO_16: f64 = 65536.0;

impl Elaborator<'_> {
    /// The bits of `t` as elements of `to`, which has their size.
    fn bits_of(&mut self, t: TileVal, to: DType, dest: Option<TileVal>, span: Span, at: Span) -> ElabResult<TileVal> {
        let id = ptoc_isa::bits_row(self.target, t.ty.dtype, to).ok_or(ErrorReported)?;
        let shape = self.valid_of(&t, at)?;
        let d = self.result(to, (t.rows, t.cols), shape, dest.filter(|d| d.tile != t.tile), span)?;
        let all_columns = Opnd::Scalar(Val::Int(1), span);
        self.apply(id, vec![tile(d, span), tile(t, at), all_columns], InstAttrs::default(), span)?;
        Ok(d)
    }

    /// `recast<u32>(t)` of a tile.
    pub(crate) fn recast_tile(&mut self, t: TileVal, to: DType, span: Span, at: Span) -> ElabResult<Val> {
        let from = t.ty.dtype;
        if from == to {
            return Ok(Val::Tile(t));
        }
        if ptoc_isa::bits_row(self.target, from, to).is_some() {
            let t = self.in_vec(t, at)?;
            return Ok(Val::Tile(self.bits_of(t, to, None, span, at)?));
        }
        let message = format!("the bits of a tile of `{from}` are no tile of `{to}`");
        let d = Diagnostic::error(codes::UNDEFINED_OPERATION, span, message).with_label(format!("a tile of `{from}`"));
        self.report(match (from, to) {
            (DType::Bool, _) => d.with_help("masks are packed: select numbers by it, `select(mask, 1, 0)`"),
            (_, DType::Bool) => d.with_help("a mask is the result of a comparison: `t != 0`"),
            _ => d.with_note(format!("{} copies bits between integers and floats of one size alone", self.target.name)),
        })
    }

    /// `recast<u16>(t)`, where elements have another size: rows are longer or shorter, and go through global memory.
    pub(crate) fn recast_wide_tile(
        &mut self,
        t: TileVal,
        (elem, to): (Elem, DType),
        span: Span,
        at: Span,
    ) -> ElabResult<Val> {
        let from = t.ty.dtype;
        if from == DType::Bool || to == DType::Bool {
            return self.recast_tile(t, to, span, at);
        }
        let t = self.in_vec(t, at)?;
        let name = match elem {
            Elem::U4 => "u4".to_owned(),
            Elem::I4 => "i4".to_owned(),
            Elem::Whole(to) => to.to_string(),
        };
        let message = format!("elements of `{from}` become those of `{name}`: this goes through global memory");
        let note = Diagnostic::note(codes::THROUGH_GLOBAL_MEMORY, span, message)
            .with_label("a TSTORE and a TLOAD of scratch memory");
        if !self.diags.contains(&note) {
            self.diags.push(note);
        }
        let stored = self.store_to_scratch(&t, span, at)?;
        let view = self.recast_view(&stored, (elem, to), span, at)?;
        self.load_view(self.target.temporaries(), view, None, span, at)
    }

    /// A conversion that TCVT does not have and bits make.
    pub(crate) fn convert_by_bits(
        &mut self,
        t: TileVal,
        (way, to): (BitsWay, DType),
        dest: Option<TileVal>,
        span: Span,
        at: Span,
    ) -> ElabResult<Val> {
        match way {
            BitsWay::Through(way) => self.convert_along(t, &way, dest, span, at),
            BitsWay::LowerHalf => self.lower_half(t, to, dest, span, at),
            BitsWay::FloatOfU32 => self.float_of_u32(t, dest, span, at),
            BitsWay::U32OfFloat => self.u32_of_float(t, dest, span, at),
        }
    }

    fn convert_along(
        &mut self,
        t: TileVal,
        way: &[DType],
        dest: Option<TileVal>,
        span: Span,
        at: Span,
    ) -> ElabResult<Val> {
        let mut here = t;
        for (k, next) in way.iter().enumerate() {
            let dest = dest.filter(|_| k + 1 == way.len());
            here = match other_sign(here.ty.dtype) {
                Some(other) if other == *next => self.bits_of(here, *next, dest, span, at)?,
                _ => self.tile_as(here, *next, dest, span, at)?,
            };
        }
        Ok(Val::Tile(here))
    }

    fn tile_as(&mut self, t: TileVal, to: DType, dest: Option<TileVal>, span: Span, at: Span) -> ElabResult<TileVal> {
        match self.convert_to(Ty::D(to), Val::Tile(t), dest, span, at)? {
            Val::Tile(t) => Ok(t),
            _ => Err(ErrorReported),
        }
    }

    /// Widened with its sign, and without what that filled in.
    fn lower_half(&mut self, t: TileVal, to: DType, dest: Option<TileVal>, span: Span, at: Span) -> ElabResult<Val> {
        let signed = self.bits_of(t, I16, None, span, at)?;
        let wide = self.tile_as(signed, I32, None, span, at)?;
        let inner = dest.filter(|_| to == I32);
        let low = self.tile_arith(BinOp::And, Val::Tile(wide), Val::Int(0xFFFF), inner, span, (at, span))?;
        self.convert_to(Ty::D(to), low, dest, span, at)
    }

    /// Both halves are exact, and so is the upper one times 2^16: their sum is rounded once.
    fn float_of_u32(&mut self, t: TileVal, dest: Option<TileVal>, span: Span, at: Span) -> ElabResult<Val> {
        let here = (at, span);
        let half = |s: &mut Self, op: BinOp, by: i128| -> ElabResult<Val> {
            let Val::Tile(h) = s.tile_arith(op, Val::Tile(t), Val::Int(by), None, span, here)? else {
                return Err(ErrorReported);
            };
            let h = s.bits_of(h, I32, None, span, at)?;
            Ok(Val::Tile(s.tile_as(h, F32, None, span, at)?))
        };
        let high = half(self, BinOp::Shr, 16)?;
        let low = half(self, BinOp::And, 0xFFFF)?;
        let high = self.tile_arith(BinOp::Mul, high, Val::Float(TWO_16), None, span, here)?;
        self.tile_arith(BinOp::Add, high, low, dest, span, here)
    }

    /// Towards zero, saturating, NaN to 0. From 2^31 on it is what remains of it, and the highest bit.
    fn u32_of_float(&mut self, t: TileVal, dest: Option<TileVal>, span: Span, at: Span) -> ElabResult<Val> {
        let here = (at, span);
        let x = Val::Tile(t);
        let large = self.tile_compare(CmpOp::Ge, x.clone(), Val::Float(TWO_31), span, here)?;
        let large = large.as_mask().ok_or(ErrorReported)?;
        let less = self.tile_arith(BinOp::Sub, x.clone(), Val::Float(TWO_31), None, span, here)?;
        let rest = self.tile_select(large, less, x, None, span, here)?;
        let rest = self.tile_arith(BinOp::Max, rest, Val::Float(0.0), None, span, here)?;
        let Val::Tile(rest) = rest else { return Err(ErrorReported) };
        let low = self.tile_as(rest, I32, None, span, at)?;
        let wrapped = self.tile_arith(BinOp::Add, Val::Tile(low), Val::Int(i32::MIN.into()), None, span, here)?;
        let Val::Tile(all) = self.tile_select(large, wrapped, Val::Tile(low), None, span, here)? else {
            return Err(ErrorReported);
        };
        Ok(Val::Tile(self.bits_of(all, U32, dest, span, at)?))
    }
}

//! `%` of tiles, which has the sign of the dividend, as on scalars. PTO has instructions of two kinds: one with this
//! sign, and one with the sign of the divisor, which some targets take on more dtypes and which is corrected then.

use super::super::inst::{Opnd, usage};
use super::super::{ElabResult, Elaborator, ErrorReported};
use super::{symbol, tile};
use ptoc_diagnostics::{Diagnostic, Span, codes};
use ptoc_ir::tile::{InstAttrs, Ty};
use ptoc_isa::{BinOp, CmpOp, DTypeProblem, Expr, InstrId, Nearest, text};
use ptoc_syntax::ast::BinaryOp;
use ptoc_tensor::DType;
use ptoc_values::{TileVal, Val};

/// Whether the expression is a remainder of its two operands, with the sign of the first.
fn is_rem(e: &Expr) -> bool {
    matches!(e, Expr::Bin(BinOp::Rem, ..))
}

/// The rows of the table that compute a remainder, those with the sign of the dividend first.
fn rows(by_tile: bool) -> Vec<(InstrId, Expr)> {
    let all = InstrId::all().filter_map(|id| Some((id, id.get().sem.expr()?)));
    let mut all: Vec<_> = all.filter(|(id, e)| e.any(&is_rem) && id.get().operands[2].is_tile() == by_tile).collect();
    all.sort_by_key(|(_, e)| !is_rem(e));
    all
}

impl Elaborator<'_> {
    /// `a % b` where at least one side is a tile.
    pub(crate) fn tile_remainder(
        &mut self,
        a: Val,
        b: Val,
        dest: Option<TileVal>,
        span: Span,
        at: (Span, Span),
    ) -> ElabResult<Val> {
        match (a, b) {
            (Val::Tile(x), Val::Tile(y)) => {
                let (x, y) = (self.in_vec(x, at.0)?, self.in_vec(y, at.1)?);
                self.same_dtype(&x, &y, BinOp::Rem.name(), span, at)?;
                let (x, y) = self.level(x, y, span, at)?;
                self.remainder(x, Val::Tile(y), dest, span, at)
            }
            (Val::Tile(x), s) => {
                let x = self.in_vec(x, at.0)?;
                let s = Val::Scalar(self.scalar_of(&s, Ty::D(x.ty.dtype), at.1)?);
                self.remainder(x, s, dest, span, at)
            }
            (s, Val::Tile(y)) => {
                let y = self.in_vec(y, at.1)?;
                let x = self.filled_like(&y, s, span, (at.1, at.0))?;
                self.remainder(x, Val::Tile(y), dest, span, at)
            }
            _ => Err(ErrorReported),
        }
    }

    /// The remainder of tiles of one shape, or by a scalar, both of one dtype.
    fn remainder(
        &mut self,
        x: TileVal,
        y: Val,
        dest: Option<TileVal>,
        span: Span,
        at: (Span, Span),
    ) -> ElabResult<Val> {
        let dtype = x.ty.dtype;
        let all = rows(matches!(y, Val::Tile(_)));
        let takes = |d: DType| {
            all.iter().find(|(id, _)| ptoc_isa::check_dtypes(self.target, *id, &[d; 3], None).is_none()).copied()
        };
        let Some((id, expr)) = takes(dtype) else {
            // A remainder of narrow numbers is one of them: through a wider dtype nothing is rounded.
            let wide = if dtype.is_float() { DType::F32 } else { DType::I32 };
            let leads = |from, to| ptoc_isa::converts(self.target, from, to);
            if dtype.size() < 4 && takes(wide).is_some() && leads(dtype, wide) && leads(wide, dtype) {
                let Val::Tile(x) = self.convert_to(Ty::D(wide), Val::Tile(x), None, span, at.0)? else {
                    return Err(ErrorReported);
                };
                let y = self.convert_to(Ty::D(wide), y, None, span, at.1)?;
                let r = self.remainder(x, y, None, span, at)?;
                return self.convert_to(Ty::D(dtype), r, dest, span, span);
            }
            return self.no_remainder(dtype, matches!(y, Val::Tile(_)), span);
        };
        let dividend = is_rem(&expr);
        let shape = self.valid_of(&x, at.0)?;
        let dest = match &y {
            _ if !dividend => None,
            Val::Tile(y) => self.apart(id, dest, &[&x, y]),
            _ => self.apart(id, dest, &[&x]),
        };
        let d = self.result(dtype, (x.rows, x.cols), shape, dest, span)?;
        let divisor = match &y {
            Val::Tile(y) => tile(*y, at.1),
            s => Opnd::Scalar(s.clone(), at.1),
        };
        self.apply(id, vec![tile(d, span), tile(x, at.0), divisor], InstAttrs::default(), span)?;
        if dividend || !(dtype.is_float() || dtype.is_signed_int()) {
            return Ok(Val::Tile(d));
        }
        self.with_sign_of(x, d, y, dest, span, at)
    }

    /// The remainder `r` by `y` as one with the sign of `x`: where it is not 0 and has the other sign, `r - y`.
    fn with_sign_of(
        &mut self,
        x: TileVal,
        r: TileVal,
        y: Val,
        dest: Option<TileVal>,
        span: Span,
        at: (Span, Span),
    ) -> ElabResult<Val> {
        let here = (span, span);
        let signs = self.tile_arith(BinOp::Xor, Val::Tile(r), Val::Tile(x), None, span, (span, at.0))?;
        let differ = self.tile_compare(CmpOp::Lt, signs, Val::Int(0), span, here)?;
        let some = self.tile_compare(CmpOp::Ne, Val::Tile(r), Val::Int(0), span, here)?;
        let wrong = self.mask_binary(BinaryOp::BitAnd, differ, some, None, span, here)?;
        let less = self.tile_arith(BinOp::Sub, Val::Tile(r), y, None, span, (span, at.1))?;
        let wrong = wrong.as_mask().ok_or(ErrorReported)?;
        self.tile_select(wrong, less, Val::Tile(r), dest, span, here)
    }

    /// Says what computes remainders.
    fn no_remainder<T>(&mut self, dtype: DType, by_tile: bool, span: Span) -> ElabResult<T> {
        let what = symbol(BinOp::Rem.name());
        let message = format!("`{what}` is not defined on tiles of `{dtype}`");
        let d = Diagnostic::error(codes::UNDEFINED_OPERATION, span, message);
        let d = match self.remainders(dtype, by_tile) {
            Ok(help) => d.with_help(help),
            Err(note) => d.with_note(note),
        };
        self.report(d)
    }

    /// The instructions that compute remainders of this dtype, or of the nearest one that they take; else that there
    /// are none.
    fn remainders(&self, dtype: DType, by_tile: bool) -> Result<String, String> {
        let all = rows(by_tile);
        // `Err`: what to use instead, if there is something.
        let takes = |id: InstrId| match ptoc_isa::check_dtypes(self.target, id, &[dtype; 3], None).map(|v| v.problem) {
            None => Ok(()),
            Some(DTypeProblem::Unsupported { instead, .. }) => Err(instead),
            Some(_) => Err(None),
        };
        let rank = |n: &Nearest| match n {
            Nearest::Keeps(d) => (0, d.size()),
            Nearest::Rounds(d) => (1, d.size()),
            Nearest::Declared(d) => (2, d.size()),
        };
        let any = all.iter().any(|(id, _)| takes(*id).is_ok());
        let instead = all.iter().filter_map(|(id, _)| takes(*id).err().flatten()).min_by_key(rank).filter(|_| !any);
        let to = instead.map_or(dtype, Nearest::dtype);
        let there = |id: &InstrId| ptoc_isa::check_dtypes(self.target, *id, &[to; 3], None).is_none();
        let said = all.iter().filter(|(id, _)| there(id)).map(|(id, e)| {
            let sign = if is_rem(e) { "dividend" } else { "divisor" };
            format!("`{}` (the sign of the {sign})", usage(*id))
        });
        let said: Vec<String> = said.collect();
        if said.is_empty() {
            return Err(format!("{} has no instruction for remainders of {dtype}", self.target.name));
        }
        let mut help = format!("remainders of tiles are instructions: {}", text::either(said));
        if let Some(nearest) = instead {
            help += &format!("; of {dtype} there is none: {}", nearest.help(dtype, &self.target.name));
        }
        Ok(help)
    }
}

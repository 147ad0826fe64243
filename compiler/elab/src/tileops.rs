//! Operators and functions on tiles: each becomes PTO instructions. `[ElabResult, 1]` and `[1, C]` operands broadcast.

use super::inst::{Opnd, instr_for};
use super::labels::around;
use super::scalars::{arith, comparison, defined_on};
use super::tiles::Shape;
use super::{ElabResult, Elaborator, ErrorReported};
use ptoc_diagnostics::{Diagnostic, Span, codes};
use ptoc_ir::tile::{InstAttrs, Ty};
use ptoc_isa::{BinOp, InstrId, Loc, Order, Reduce, Sem, UnOp};
use ptoc_syntax::ast::BinaryOp;
use ptoc_tensor::DType;
use ptoc_values::{TileVal, Val};

mod functions;
mod packed;
mod remainders;
mod scans;

pub(super) use scans::Scan;

/// How two tile operands relate.
pub(super) enum Fit {
    /// Equal shapes.
    Same,
    /// The second is a column of the first's height.
    Column,
    /// The second is a row of the first's width.
    Row,
}

impl Elaborator<'_> {
    /// `a op b` where at least one side is a tile.
    pub(crate) fn tile_binary(
        &mut self,
        op: BinaryOp,
        a: Val,
        b: Val,
        dest: Option<TileVal>,
        span: Span,
        at: (Span, Span),
    ) -> ElabResult<Val> {
        if a.as_mask().is_some() || b.as_mask().is_some() {
            return self.mask_binary(op, a, b, dest, span, at);
        }
        if let Some(cmp) = comparison(op) {
            return self.tile_compare(cmp, a, b, span, at);
        }
        let Some(bin) = arith(op) else {
            let message = format!("`{}` is not defined on tiles", op.symbol());
            return self.error(codes::UNDEFINED_OPERATION, span, message);
        };
        self.tile_arith(bin, a, b, dest, span, at)
    }

    /// `a op b` by instructions.
    pub(crate) fn tile_arith(
        &mut self,
        op: BinOp,
        a: Val,
        b: Val,
        dest: Option<TileVal>,
        span: Span,
        at: (Span, Span),
    ) -> ElabResult<Val> {
        match (a, b) {
            (Val::Poison, _) | (_, Val::Poison) => Err(ErrorReported),
            (a, b) if op == BinOp::Rem => self.tile_remainder(a, b, dest, span, at),
            (Val::Tile(x), Val::Tile(y)) => {
                let (x, y) = (self.in_vec(x, at.0)?, self.in_vec(y, at.1)?);
                self.same_dtype(&x, &y, op.name(), span, at)?;
                self.op_defined(op, x.ty.dtype, span)?;
                self.tile_tile(op, x, y, dest, span, at)
            }
            (Val::Tile(x), s) => {
                let x = self.in_vec(x, at.0)?;
                self.op_defined(op, x.ty.dtype, span)?;
                self.tile_scalar(op, x, s, false, dest, span, at)
            }
            (s, Val::Tile(y)) => {
                let y = self.in_vec(y, at.1)?;
                self.op_defined(op, y.ty.dtype, span)?;
                self.tile_scalar(op, y, s, true, dest, span, (at.1, at.0))
            }
            (a, _) => {
                let message = format!("`{op}` is not defined on {}", a.describe());
                let d = Diagnostic::error(codes::UNDEFINED_OPERATION, at.0, message);
                self.report(super::labels::as_tile(d, &a, at.0))
            }
        }
    }

    fn op_defined(&mut self, op: BinOp, dtype: DType, span: Span) -> ElabResult<()> {
        if defined_on(op, Ty::D(dtype)) {
            return Ok(());
        }
        let message = format!("`{}` is not defined on tiles of `{dtype}`", symbol(op.name()));
        let d = Diagnostic::error(codes::UNDEFINED_OPERATION, span, message);
        let d = if dtype.is_float() { d.with_note("bits and shifts belong to integers") } else { d };
        self.report(d)
    }

    pub(crate) fn same_dtype(
        &mut self,
        x: &TileVal,
        y: &TileVal,
        what: &str,
        span: Span,
        at: (Span, Span),
    ) -> ElabResult<()> {
        let (dx, dy) = (x.ty.dtype, y.ty.dtype);
        if dx == dy {
            return Ok(());
        }
        let d = if at.0 == at.1 {
            Diagnostic::error(
                codes::DTYPE_MISMATCH,
                span,
                format!("`{what}` needs one dtype on both sides, and has `{dx}` and `{dy}`"),
            )
        } else {
            self.two_dtypes(symbol(what), (Ty::D(dx), Ty::D(dy)), at)
        };
        self.report(d)
    }

    /// The operand of a vector operation must be in Vec; Acc results come there by name only.
    pub(crate) fn in_vec(&mut self, t: TileVal, at: Span) -> ElabResult<TileVal> {
        if t.ty.loc.is_vector() {
            return Ok(t);
        }
        let d = Diagnostic::error(
            codes::LOCATION_MISMATCH,
            at,
            format!("operators work on Vec tiles, this one is in {}", t.ty.loc),
        )
        .with_label(format!("in {}", t.ty.loc));
        let d = match t.ty.loc {
            Loc::Left | Loc::Right => {
                d.with_help("matrices are multiplied by `matmul(left, right)`; `*` goes element by element")
            }
            _ => d.with_edits("bring it there by name", around(at, "Vec(", ")")),
        };
        self.report(d)
    }

    pub(crate) fn fit(&mut self, x: &TileVal, y: &TileVal, at: (Span, Span)) -> ElabResult<(Fit, bool)> {
        let cap = |t: &TileVal| (t.rows, t.cols);
        let ((xr, xc), (yr, yc)) = (cap(x), cap(y));
        if (xr, xc) == (yr, yc) {
            return Ok((Fit::Same, false));
        }
        // Capacities are room; where they differ, what is valid decides.
        let (xv, yv) = (self.valid_of(x, at.0)?, self.valid_of(y, at.1)?);
        let rows = xr == yr || self.lengths_agree(xv.0, yv.0);
        let cols = xc == yc || self.lengths_agree(xv.1, yv.1);
        let fit = if yc == 1 && xc != 1 && rows {
            (Fit::Column, false)
        } else if xc == 1 && yc != 1 && rows {
            (Fit::Column, true)
        } else if yr == 1 && xr != 1 && cols {
            (Fit::Row, false)
        } else if xr == 1 && yr != 1 && cols {
            (Fit::Row, true)
        } else if rows && cols {
            (Fit::Same, false)
        } else {
            let d = Diagnostic::error(
                codes::CANNOT_BROADCAST,
                at.1,
                format!("shapes {xr} x {xc} and {yr} x {yc} do not go together"),
            )
            .with_label(format!("{yr} x {yc}"))
            .with_secondary(at.0, format!("{xr} x {xc}"))
            .with_note("only [R, 1] and [1, C] tiles broadcast, in the dimension whose static extent is 1");
            return self.report(d);
        };
        Ok(fit)
    }

    pub(crate) fn tile_tile(
        &mut self,
        op: BinOp,
        x: TileVal,
        y: TileVal,
        dest: Option<TileVal>,
        span: Span,
        at: (Span, Span),
    ) -> ElabResult<Val> {
        // A column and a row: the column is spread first.
        if x.cols == 1 && y.rows == 1 && x.rows != 1 && y.cols != 1 {
            let x = self.spread_column(&x, y.cols, &y, span, at)?;
            return self.tile_tile(op, x, y, dest, span, at);
        }
        if x.rows == 1 && y.cols == 1 && x.cols != 1 && y.rows != 1 {
            let y = self.spread_column(&y, x.cols, &x, span, (at.1, at.0))?;
            return self.tile_tile(op, x, y, dest, span, at);
        }
        let (fit, swapped) = self.fit(&x, &y, at)?;
        let (big, small) = if swapped { (y, x) } else { (x, y) };
        let (at_big, at_small) = if swapped { (at.1, at.0) } else { at };
        let shape = self.valid_of(&big, at_big)?;
        let caps = match fit {
            Fit::Same => (x.rows.min(y.rows), x.cols.min(y.cols)),
            Fit::Column | Fit::Row => (big.rows, big.cols),
        };
        let dtype = x.ty.dtype;
        match fit {
            Fit::Same => {
                let Some(id) = instr_for(Sem::Binary(op)) else { return self.no_instruction(op.name(), span) };
                // [ElabResult, 1] operands may lie in either order in memory; the result follows the first.
                let (x, y) = self.one_order(x, y, span, at)?;
                let dest = self.apart(id, dest, &[&x, &y]);
                let d = self.result_like(&x, dtype, caps, shape, dest, span)?;
                self.apply(id, vec![tile(d, span), tile(x, at.0), tile(y, at.1)], InstAttrs::default(), span)?;
                Ok(Val::Tile(d))
            }
            Fit::Column | Fit::Row => {
                let sem = if matches!(fit, Fit::Column) { Sem::RowExpandBinary(op) } else { Sem::ColExpandBinary(op) };
                let commutes = matches!(op, BinOp::Add | BinOp::Mul | BinOp::Max | BinOp::Min);
                // a2a3 broadcasts floats only in the instruction itself: integers are spread first.
                let takes = |id| ptoc_isa::check_dtypes(self.target, id, &[dtype, dtype, dtype], None).is_none();
                let spread = instr_for(if matches!(fit, Fit::Column) { Sem::RowExpand } else { Sem::ColExpand });
                let spreads =
                    spread.is_some_and(|id| ptoc_isa::check_dtypes(self.target, id, &[dtype, dtype], None).is_none());
                match instr_for(sem) {
                    Some(id) if (!swapped || commutes) && (takes(id) || !spreads) => {
                        let d = self.result(dtype, caps, shape, dest, span)?;
                        self.apply(
                            id,
                            vec![tile(d, span), tile(big, at_big), tile(small, at_small)],
                            InstAttrs::default(),
                            span,
                        )?;
                        Ok(Val::Tile(d))
                    }
                    _ => {
                        let wide = self.spread(&small, &big, matches!(fit, Fit::Column), span, at_small, at_big)?;
                        let (l, r) = if swapped { (wide, big) } else { (big, wide) };
                        self.tile_tile(op, l, r, dest, span, at)
                    }
                }
            }
        }
    }

    /// Two operands of equal capacity but different element order: only vectors, whose order is a matter of naming.
    fn one_order(&mut self, x: TileVal, y: TileVal, span: Span, at: (Span, Span)) -> ElabResult<(TileVal, TileVal)> {
        if x.ty.order == y.ty.order || x.rows == 1 || x.cols == 1 {
            return Ok((x, y));
        }
        let d =
            Diagnostic::error(codes::SHAPE_MISMATCH, span, "one tile is row-major (ND), the other column-major (DN)")
                .with_secondary(at.0, format!("{}", x.ty))
                .with_secondary(at.1, format!("{}", y.ty))
                .with_help("TTRANS one of them");
        self.report(d)
    }

    /// The destination as the place of a result, unless it is a source that the instruction must not write over.
    pub(crate) fn apart(&self, id: InstrId, dest: Option<TileVal>, sources: &[&TileVal]) -> Option<TileVal> {
        dest.filter(|d| {
            sources.iter().all(|s| s.tile != d.tile) || ptoc_isa::check_overlap(self.target, id, 1).is_none()
        })
    }

    /// A result of the same element order as `x`.
    fn result_like(
        &mut self,
        x: &TileVal,
        dtype: DType,
        caps: (u32, u32),
        shape: Shape,
        dest: Option<TileVal>,
        span: Span,
    ) -> ElabResult<TileVal> {
        if x.ty.order == Order::Dn && x.cols > 1 {
            return self.not_yet(span, "operators on column-major (DN) tiles of several columns");
        }
        self.result(dtype, caps, shape, dest, span)
    }

    /// A [ElabResult, 1] tile as [ElabResult, C], the columns being those of `like`.
    fn spread_column(
        &mut self,
        x: &TileVal,
        cols: u32,
        like: &TileVal,
        span: Span,
        at: (Span, Span),
    ) -> ElabResult<TileVal> {
        let (r, _) = self.valid_of(x, at.0)?;
        let (_, c) = self.valid_of(like, at.1)?;
        let d = self.temp(x.ty.dtype, (x.rows, cols), (r, c), span)?;
        let id = instr_for(Sem::RowExpand).ok_or(ErrorReported)?;
        self.apply(id, vec![tile(d, span), tile(*x, at.0)], InstAttrs::default(), span)?;
        Ok(d)
    }

    /// `small` in the shape of `big`.
    pub(crate) fn spread(
        &mut self,
        small: &TileVal,
        big: &TileVal,
        column: bool,
        span: Span,
        at: Span,
        at_big: Span,
    ) -> ElabResult<TileVal> {
        let shape = self.valid_of(big, at_big)?;
        let d = self.temp(small.ty.dtype, (big.rows, big.cols), shape, span)?;
        let id = instr_for(if column { Sem::RowExpand } else { Sem::ColExpand }).ok_or(ErrorReported)?;
        self.apply(id, vec![tile(d, span), tile(*small, at)], InstAttrs::default(), span)?;
        Ok(d)
    }

    #[allow(clippy::too_many_arguments, reason = "an operator and its places")]
    fn tile_scalar(
        &mut self,
        op: BinOp,
        x: TileVal,
        s: Val,
        scalar_left: bool,
        dest: Option<TileVal>,
        span: Span,
        at: (Span, Span),
    ) -> ElabResult<Val> {
        let shape = self.valid_of(&x, at.0)?;
        let caps = (x.rows, x.cols);
        let dtype = x.ty.dtype;
        let shift = matches!(op, BinOp::Shl | BinOp::Shr);
        if shift && scalar_left {
            let message = format!("a scalar cannot be shifted by a tile with `{}`", symbol(op.name()));
            let d = Diagnostic::error(codes::UNDEFINED_OPERATION, span, message)
                .with_secondary(at.1, "what is shifted is a scalar")
                .with_secondary(at.0, format!("the counts are a tile of `{dtype}`"))
                .with_note("TSHL and TSHR shift the elements of a tile, by a tile or by a scalar")
                .with_help("fill a tile with the scalar and shift that: `let t = tile Vec<..>;  t = 1;  t << counts`");
            return self.report(d);
        }
        let s = if shift { self.shift_count(s, dtype, at.1)? } else { s };
        let s = Val::Scalar(self.scalar_of(&s, Ty::D(dtype), at.1)?);
        let commutes = !shift && !matches!(op, BinOp::Sub | BinOp::Div | BinOp::Rem);
        // Where only the form with two tiles takes this dtype, the scalar is spread over a tile.
        let takes = |s: &Self, sem| {
            instr_for(sem).filter(|id| ptoc_isa::check_dtypes(s.target, *id, &[dtype; 3], None).is_none())
        };
        let id = instr_for(Sem::BinaryScalar(op))
            .filter(|_| takes(self, Sem::BinaryScalar(op)).is_some() || takes(self, Sem::Binary(op)).is_none());
        match (id, scalar_left && !commutes, op) {
            (Some(id), false, _) | (Some(id), true, BinOp::Div) => {
                let dest = self.apart(id, dest, &[&x]);
                let d = self.result_like(&x, dtype, caps, shape, dest, span)?;
                let attrs = InstAttrs { reversed: scalar_left && !commutes, ..InstAttrs::default() };
                self.apply(id, vec![tile(d, span), tile(x, at.0), Opnd::Scalar(s, at.1)], attrs, span)?;
                Ok(Val::Tile(d))
            }
            // s - x = -x + s, exactly.
            (_, true, BinOp::Sub) if dtype.is_float() || dtype.is_signed_int() => {
                let neg = self.tile_unary(UnOp::Neg, x, None, span, at.0)?;
                self.tile_arith(BinOp::Add, neg, s, dest, span, at)
            }
            _ => {
                let d = self.temp(dtype, caps, shape, span)?;
                self.expand_scalar(&d, s, at.1, span)?;
                let (l, r, places) = if scalar_left { (d, x, (at.1, at.0)) } else { (x, d, at) };
                self.tile_tile(op, l, r, dest, span, places)
            }
        }
    }

    /// TEXPANDS: `d` = s everywhere in its valid shape.
    pub(crate) fn expand_scalar(&mut self, d: &TileVal, s: Val, at: Span, span: Span) -> ElabResult<()> {
        let id = instr_for(Sem::Expand).ok_or(ErrorReported)?;
        self.apply(id, vec![tile(*d, span), Opnd::Scalar(s, at)], InstAttrs::default(), span)
    }

    fn no_instruction<T>(&mut self, what: &str, span: Span) -> ElabResult<T> {
        let what = symbol(what);
        let d = Diagnostic::error(
            codes::UNDEFINED_OPERATION,
            span,
            format!("there is no instruction for `{what}` on tiles"),
        );
        self.report(d.with_help(
            "compute it from operations that tiles have: + - * / min max exp log sqrt rsqrt abs, & | ^ << >> on \
            integers",
        ))
    }

    /// `op x`
    pub(crate) fn tile_unary(
        &mut self,
        op: UnOp,
        x: TileVal,
        dest: Option<TileVal>,
        span: Span,
        at: Span,
    ) -> ElabResult<Val> {
        let x = self.in_vec(x, at)?;
        let Some(id) = instr_for(Sem::Unary(op)) else { return self.no_instruction(op.name(), span) };
        if op == UnOp::Not && x.ty.dtype.is_float() {
            let message = format!("`!` is not defined on tiles of `{}`", x.ty.dtype);
            let d = Diagnostic::error(codes::UNDEFINED_OPERATION, span, message)
                .with_note("the complement belongs to integers and masks")
                .with_help("negate with `-x`; where it is zero is `x == 0.0`");
            return self.report(d);
        }
        let shape = self.valid_of(&x, at)?;
        let dest = self.apart(id, dest, &[&x]);
        let d = self.result_like(&x, x.ty.dtype, (x.rows, x.cols), shape, dest, span)?;
        self.apply(id, vec![tile(d, span), tile(x, at)], InstAttrs::default(), span)?;
        Ok(Val::Tile(d))
    }

    /// `rowsum(x)`, `colmax(x)`, ...
    pub(crate) fn tile_reduce(
        &mut self,
        by_row: bool,
        op: Reduce,
        x: TileVal,
        dest: Option<TileVal>,
        span: Span,
        at: Span,
    ) -> ElabResult<Val> {
        let x = self.in_vec(x, at)?;
        let sem = if by_row { Sem::RowReduce(op) } else { Sem::ColReduce(op) };
        let Some(id) = instr_for(sem) else { return self.no_instruction(op.name(), span) };
        let dtype = x.ty.dtype;
        self.one_of_each(id, by_row, dtype, x, dest, (span, at))
    }

    /// One element of each row or column, by an instruction that reads all of it.
    pub(crate) fn one_of_each(
        &mut self,
        id: InstrId,
        by_row: bool,
        dtype: DType,
        x: TileVal,
        dest: Option<TileVal>,
        (span, at): (Span, Span),
    ) -> ElabResult<Val> {
        let (r, c) = self.valid_of(&x, at)?;
        let one = self.idx(1);
        let (caps, shape) = if by_row { ((x.rows, 1), (r, one)) } else { ((1, x.cols), (one, c)) };
        let d = self.result(dtype, caps, shape, dest.filter(|d| d.tile != x.tile), span)?;
        self.apply(id, vec![tile(d, span), tile(x, at)], InstAttrs::default(), span)?;
        Ok(Val::Tile(d))
    }

    /// Both operands in the full shape.
    pub(crate) fn level(
        &mut self,
        x: TileVal,
        y: TileVal,
        span: Span,
        at: (Span, Span),
    ) -> ElabResult<(TileVal, TileVal)> {
        if x.cols == 1 && y.rows == 1 && x.rows != 1 && y.cols != 1 {
            let x = self.spread_column(&x, y.cols, &y, span, at)?;
            return self.level(x, y, span, at);
        }
        if x.rows == 1 && y.cols == 1 && x.cols != 1 && y.rows != 1 {
            let y = self.spread_column(&y, x.cols, &x, span, (at.1, at.0))?;
            return self.level(x, y, span, at);
        }
        match self.fit(&x, &y, at)? {
            (Fit::Same, _) => Ok((x, y)),
            (fit, swapped) => {
                let column = matches!(fit, Fit::Column);
                if swapped {
                    let x = self.spread(&x, &y, column, span, at.0, at.1)?;
                    Ok((x, y))
                } else {
                    let y = self.spread(&y, &x, column, span, at.1, at.0)?;
                    Ok((x, y))
                }
            }
        }
    }

    pub(crate) fn filled_like(&mut self, x: &TileVal, s: Val, span: Span, at: (Span, Span)) -> ElabResult<TileVal> {
        let shape = self.valid_of(x, at.0)?;
        let d = self.temp(x.ty.dtype, (x.rows, x.cols), shape, span)?;
        self.expand_scalar(&d, s, at.1, span)?;
        Ok(d)
    }

    /// `transpose(x)`
    pub(crate) fn tile_transpose(
        &mut self,
        x: TileVal,
        dest: Option<TileVal>,
        span: Span,
        at: Span,
    ) -> ElabResult<Val> {
        let x = self.in_vec(x, at)?;
        let (r, c) = self.valid_of(&x, at)?;
        let id = instr_for(Sem::Transpose).ok_or(ErrorReported)?;
        let d = self.result(x.ty.dtype, (x.cols, x.rows), (c, r), dest.filter(|d| d.tile != x.tile), span)?;
        self.apply(id, vec![tile(d, span), tile(x, at)], InstAttrs::default(), span)?;
        Ok(Val::Tile(d))
    }

    /// `matmul(a, b)` into a new accumulator.
    pub(crate) fn tile_matmul(&mut self, a: TileVal, b: TileVal, span: Span, at: (Span, Span)) -> ElabResult<Val> {
        for (t, loc, at) in [(&a, Loc::Left, at.0), (&b, Loc::Right, at.1)] {
            if t.ty.loc != loc {
                let d = Diagnostic::error(
                    codes::LOCATION_MISMATCH,
                    at,
                    format!("this operand of `matmul` lives in {loc}, not {}", t.ty.loc),
                )
                .with_label(format!("in {}", t.ty.loc));
                return self.report(match t.ty.loc {
                    Loc::Left | Loc::Right => d.with_help("the left operand comes before the right one"),
                    from => match self.loaded_by(t, at) {
                        Some(place) => d.with_fix(format!("load it there: `{loc}(..)`"), place, loc.name()),
                        None if !self.leads(from.into(), loc, t.ty.dtype) => d,
                        None => d.with_edits("move it there", around(at, &format!("{loc}("), ")")),
                    },
                });
            }
        }
        let Some(acc) = self.target.accumulator_of(a.ty.dtype, b.ty.dtype) else {
            let d = ptoc_isa::no_product(self.target, (a.ty.dtype, b.ty.dtype), span)
                .with_secondary(at.0, format!("`{}`", a.ty.dtype))
                .with_secondary(at.1, format!("`{}`", b.ty.dtype));
            return self.report(d);
        };
        let (m, n) = (self.valid_of(&a, at.0)?.0, self.valid_of(&b, at.1)?.1);
        let mut ty = self.hidden_type(Loc::Acc, acc, a.rows, b.cols);
        (ty.rows, ty.cols) = (a.ty.rows, b.ty.cols);
        self.check_tile_type(ty, span)?;
        let d = self.new_tile("matmul(..)", ty, (a.rows, b.cols), (m, n), span);
        let id = instr_for(Sem::Matmul).ok_or(ErrorReported)?;
        self.apply(id, vec![tile(d, span), tile(a, at.0), tile(b, at.1)], InstAttrs::default(), span)?;
        Ok(Val::Tile(d))
    }
}

/// An operation as it is written.
fn symbol(name: &str) -> &str {
    match name {
        "add" => "+",
        "sub" => "-",
        "mul" => "*",
        "div" => "/",
        "rem" => "%",
        "and" => "&",
        "or" => "|",
        "xor" => "^",
        "shl" => "<<",
        "shr" => ">>",
        "eq" => "==",
        "ne" => "!=",
        "lt" => "<",
        "le" => "<=",
        "gt" => ">",
        "ge" => ">=",
        other => other,
    }
}

pub(crate) fn tile(t: TileVal, span: Span) -> Opnd {
    Opnd::Tile(t, span)
}

//! Built-in functions with rules of their own: scans, indices as tiles, atomics, and what belongs to `ensures`.

use super::tileops::Scan;
use super::{ElabResult, Elaborator, ErrorReported};
use ptoc_diagnostics::{Diagnostic, Span, codes};
use ptoc_ir::tile::{Op, Ty};
use ptoc_isa::{AtomicOp, Reduce};
use ptoc_names::builtins::Over;
use ptoc_syntax::ast::{Arg, Expr};
use ptoc_tensor::DType;
use ptoc_values::Val;

impl Elaborator<'_> {
    /// The arguments of a function that can be switched, as `exclusive = true` does.
    fn with_switch<'e>(
        &mut self,
        args: &'e [Arg],
        switch: &str,
        (what, help): (&str, &str),
    ) -> ElabResult<(bool, Vec<&'e Expr>)> {
        let (mut on, mut given) = (false, Vec::new());
        for a in args {
            match &a.name {
                None => given.push(&a.value),
                Some(n) if n.name == switch => match self.expr(&a.value)? {
                    Val::Bool(b) => on = b,
                    other => {
                        let message = format!("`{switch}` is true or false, found {}", other.describe());
                        return self.error(codes::WRONG_ARGUMENTS, a.value.span, message);
                    }
                },
                Some(n) => {
                    let message = format!("{what} has no `{}`", n.name);
                    let d = Diagnostic::error(codes::WRONG_ARGUMENTS, n.span, message).with_help(help);
                    return self.report(d);
                }
            }
        }
        Ok((on, given))
    }

    /// `packbits(mask)`
    pub(crate) fn packbits(&mut self, args: &[Arg], span: Span) -> ElabResult<Val> {
        let help = "`highest_first = true` puts the first element into the highest bit";
        let (highest_first, given) = self.with_switch(args, "highest_first", ("`packbits`", help))?;
        let [e] = given[..] else {
            return self.error(codes::WRONG_ARGUMENTS, span, "`packbits` takes a mask: `packbits(t > 0.0)`");
        };
        let v = self.expr(e)?;
        match (v.as_mask(), v) {
            (Some(mask), _) => self.pack_bits(mask, highest_first, span, e.span),
            (None, Val::Poison) => Err(ErrorReported),
            (None, other) => {
                let message = format!("`packbits` takes a mask, found {}", other.describe());
                let d = Diagnostic::error(codes::TYPE_MISMATCH, e.span, message).with_label(other.describe());
                self.report(d.with_help("compare it to get a mask, as in `t != 0`"))
            }
        }
    }

    /// `rowcumsum(t)`, `colcummax(t, exclusive = true)`
    pub(crate) fn scan(&mut self, by_row: bool, op: Reduce, args: &[Arg], span: Span) -> ElabResult<Val> {
        let help = "`exclusive = true` leaves each element out of its own result";
        let (exclusive, given) = self.with_switch(args, "exclusive", ("a scan", help))?;
        let [e] = given[..] else {
            let usage = if by_row { "rowcumsum(t)" } else { "colcumsum(t)" };
            return self.error(codes::WRONG_ARGUMENTS, span, format!("a scan takes a tile: `{usage}`"));
        };
        match self.expr(e)? {
            Val::Tile(t) => self.tile_scan(Scan { by_row, op, exclusive }, t, span, e.span),
            Val::Poison => Err(ErrorReported),
            other => {
                self.error(codes::TYPE_MISMATCH, e.span, format!("a scan takes a tile, found {}", other.describe()))
            }
        }
    }

    /// A function over an index, where there are tiles.
    pub(crate) fn belongs_to_ensures<T>(&mut self, over: Over, name: Span) -> ElabResult<T> {
        let message = format!("`{}` belongs to `ensures`", over.usage().replace("(e)", "(..)").replace("(c)", "(..)"));
        let d = Diagnostic::error(codes::TYPE_MISMATCH, name, message).with_label("no function of tiles");
        let instead = match over {
            Over::Sum => Some(("is summed", "sum")),
            Over::Prod => Some(("is multiplied", "prod")),
            Over::Max => Some(("has its largest element", "max")),
            Over::Min => Some(("has its smallest element", "min")),
            Over::ArgMax => Some(("has the place of its largest element", "argmax")),
            Over::ArgMin => Some(("has the place of its smallest element", "argmin")),
            _ => None,
        };
        self.report(match instead {
            Some((_, "sum")) => {
                d.with_fix("a tile's rows are summed by `rowsum`, its columns by `colsum`", name, "rowsum")
            }
            Some((what, f)) => d.with_help(format!("a tile's row {what} by `row{f}`, its column by `col{f}`")),
            None => d.with_help("select a number for what is true and reduce that: `rowmax(select(mask, 1.0, 0.0))`"),
        })
    }

    /// `iota(q, 1)`: the indices of block `q` as a column of i32; `iota(1, k)`: as a row.
    pub(crate) fn iota(&mut self, args: &[Arg], span: Span) -> ElabResult<Val> {
        let e = self.exactly(args, 2, "iota(block, 1) or iota(1, block)", span)?;
        let (r, c) = (self.expr(e[0])?, self.expr(e[1])?);
        let (b, column) = match (&r, &c) {
            (Val::Block(b), Val::Int(1)) => (b.clone(), true),
            (Val::Int(1), Val::Block(b)) => (b.clone(), false),
            (Val::Poison, _) | (_, Val::Poison) => return Err(ErrorReported),
            _ => {
                let d = Diagnostic::error(codes::TYPE_MISMATCH, span, "`iota` takes a block and 1")
                    .with_help("`iota(q, 1)` is a column of q's indices, `iota(1, k)` a row of k's");
                return self.report(d);
            }
        };
        let Some(p) = &b.place else {
            return self.error(codes::TYPE_MISMATCH, span, "this extent has no place: it only sizes tiles");
        };
        let one = self.idx(1);
        let (caps, shape) = if column { ((b.cap, 1), (b.len, one)) } else { ((1, b.cap), (one, b.len)) };
        let t = self.temp(DType::I32, caps, shape, span)?;
        let r = self.tile_ref(&t, shape);
        let (zero, start, len) = (self.idx(0), p.start, b.len);
        self.b.for_loop("iota", (zero, len), 1, span, |b, _, i| {
            let at = b.add(start, i, span);
            let value = b.convert(at, Ty::D(DType::I32), ptoc_isa::RoundMode::Rint, false, span);
            let (row, col) = if column { (i, zero) } else { (zero, i) };
            b.emit(Op::TileSet { tile: r, row, col, value }, span);
        });
        Ok(Val::Tile(t))
    }

    /// `atomic_add(x[i], v)` and its like.
    pub(crate) fn atomic(&mut self, op: AtomicOp, args: &[Arg], span: Span) -> ElabResult<Val> {
        let cas = op == AtomicOp::Cas;
        let usage = if cas { "atomic_cas(x[i], expected, new)" } else { "atomic_add(x[i], value)" };
        let e = self.exactly(args, if cas { 3 } else { 2 }, usage, span)?;
        let Val::View(view) = self.place(e[0], None)? else {
            return self.error(codes::NOT_ASSIGNABLE, e[0].span, "an atomic works on an element of a tensor");
        };
        let offset = self.element_offset(&view, e[0].span)?;
        if !view.modes.is_empty() {
            return self.error(codes::RANK_MISMATCH, e[0].span, "an atomic works on one element: give every index");
        }
        self.writable(&view, e[0].span)?;
        self.outside_prologue(span)?;
        let ty = Ty::D(view.dtype);
        let float_ok = view.dtype == DType::F32 && matches!(op, AtomicOp::Add | AtomicOp::Max | AtomicOp::Min);
        if !(float_ok || matches!(view.dtype, DType::I32 | DType::U32 | DType::I64 | DType::U64)) {
            let message = format!("no atomic `{op}` on `{}`", view.dtype);
            let d = Diagnostic::error(codes::UNDEFINED_OPERATION, span, message);
            return self.report(match view.dtype.is_float() {
                true => d.with_note("floats have atomic_add, atomic_max and atomic_min, on f32"),
                false => d.with_note("atomics are on i32, u32, i64 and u64"),
            });
        }
        let expected = if cas {
            let v = self.expr(e[1])?;
            Some(self.scalar_of(&v, ty, e[1].span)?)
        } else {
            None
        };
        let last = e[e.len() - 1];
        let v = self.expr(last)?;
        let value = self.scalar_of(&v, ty, last.span)?;
        let dst = self.b.new_value(ty, None, span);
        self.emit(Op::Atomic { dst, op, tensor: view.tensor, offset, expected, value }, span);
        Ok(Val::Scalar(dst))
    }
}

//! Elements of tiles that statements write: `t[i, j] = x;` and `t[i, j] += x;`.

use super::tiles::Shape;
use super::{ElabResult, Elaborator};
use ptoc_diagnostics::{Diagnostic, Span, codes};
use ptoc_ir::tile::{Op, Ty, Value};
use ptoc_syntax::ast::*;
use ptoc_values::{Binding, TilePartition, TileVal, Val};

/// One element: its tile, the tile's valid shape, row and column.
struct Element {
    tile: TileVal,
    valid: Shape,
    row: Value,
    col: Value,
}

impl Elaborator<'_> {
    /// Whether `base[args]` is an element of a tile that has a name, or of a part of one.
    pub(crate) fn is_element(&self, base: &Expr, args: &[Arg]) -> bool {
        let fixed = !args.iter().any(|a| self.keeps(&a.value));
        fixed && (args.len() == 2 && self.names_tile(base) || self.names_part(base))
    }

    /// Whether there is a `_` or a range in it.
    fn keeps(&self, e: &Expr) -> bool {
        match &*e.kind {
            ExprKind::Hole | ExprKind::Range(..) => true,
            ExprKind::Paren(e) => self.keeps(e),
            ExprKind::Tuple(l) => l.iter().any(|e| self.keeps(e)),
            ExprKind::Name(n) => matches!(self.env.get(n), Some((Binding::Let(Val::Range(..) | Val::Hole), _))),
            _ => false,
        }
    }

    /// Whether this is the name of a part of a tile through a layout.
    fn names_part(&self, e: &Expr) -> bool {
        let ExprKind::Name(n) = &*e.kind else { return false };
        matches!(self.env.get(n), Some((Binding::Let(Val::Part(_)), _)))
    }

    /// Whether this is a tile by its name, a tile of an array, or a part of such a tile.
    fn names_tile(&self, e: &Expr) -> bool {
        let bound = |n| match self.env.get(n) {
            Some((Binding::Let(v), _)) => Some(v),
            _ => None,
        };
        match &*e.kind {
            ExprKind::Paren(inner) => self.names_tile(inner),
            ExprKind::Name(n) => matches!(bound(n), Some(Val::Tile(_))),
            ExprKind::Index(array, args) if args.len() == 1 => {
                matches!(&*array.kind, ExprKind::Name(n) if matches!(bound(n), Some(Val::TileArray(_))))
            }
            ExprKind::Call(callee, _) => matches!(
                &*callee.kind,
                ExprKind::Field(of, n) if matches!(n.name.as_str(), "tile" | "valid") && self.names_tile(of)
            ),
            _ => false,
        }
    }

    /// `t[i, j] = x;`
    pub(crate) fn assign_element(&mut self, target: &Expr, value: &Expr, span: Span) -> ElabResult<()> {
        let not = |s: &mut Self| s.error(codes::NOT_ASSIGNABLE, target.span, "this is a value, not a place");
        let ExprKind::Index(base, args) = &*target.kind else { return not(self) };
        let Some(at) = self.element_place(target, base, args)? else { return not(self) };
        let v = self.expr(value)?;
        self.set_element(&at, &v, value.span, span)
    }

    /// `t[i, j] op= x;`: where the element is, is computed once.
    pub(crate) fn update_element(
        &mut self,
        (target, base, args): (&Expr, &Expr, &[Arg]),
        op: BinaryOp,
        value: &Expr,
        span: Span,
    ) -> ElabResult<()> {
        let Some(at) = self.element_place(target, base, args)? else {
            return self.error(codes::NOT_ASSIGNABLE, target.span, "this is a value, not a place");
        };
        self.outside_prologue(target.span)?;
        let r = self.tile_ref(&at.tile, at.valid);
        let now = Val::Scalar(self.b.tile_get(r, at.row, at.col, target.span));
        let v = self.expr(value)?;
        let v = self.binary(op, now, v, None, span, (target.span, value.span))?;
        self.set_element(&at, &v, span, span)
    }

    fn element_place(&mut self, target: &Expr, base: &Expr, args: &[Arg]) -> ElabResult<Option<Element>> {
        let tile = match self.expr(base)? {
            Val::Tile(tile) => tile,
            Val::Part(p) => return self.part_element(target, base, &p, args),
            _ => return Ok(None),
        };
        self.tile_destination(&tile, base)?;
        let parts = self.exactly(args, 2, "t[row, column]", target.span)?;
        let valid = self.valid_of(&tile, target.span)?;
        let (i, j) = (self.expr(parts[0])?, self.expr(parts[1])?);
        let (row, col) = self.tile_element(valid, (&i, parts[0].span), (&j, parts[1].span))?;
        Ok(Some(Element { tile, valid, row, col }))
    }

    fn part_element(
        &mut self,
        target: &Expr,
        base: &Expr,
        p: &TilePartition,
        args: &[Arg],
    ) -> ElabResult<Option<Element>> {
        self.tile_destination(&p.tile, base)?;
        let name = self.b.kernel().tiles[p.tile.tile].name.clone();
        let w = self.index_modes(&p.window, &format!("part of {name}"), args, target.span)?;
        for (q, bound) in w.guards().collect::<Vec<_>>() {
            self.check_index(w.starts[q], bound, "the part", target.span)?;
        }
        let valid = (self.idx(i64::from(p.tile.rows)), self.idx(i64::from(p.tile.cols)));
        Ok(Some(Element { tile: p.tile, valid, row: w.starts[0], col: w.starts[1] }))
    }

    fn set_element(&mut self, at: &Element, v: &Val, of: Span, span: Span) -> ElabResult<()> {
        let value = self.scalar_of(v, Ty::D(at.tile.ty.dtype), of)?;
        let tile = self.tile_ref(&at.tile, at.valid);
        self.emit(Op::TileSet { tile, row: at.row, col: at.col, value }, span);
        Ok(())
    }

    /// The left side of `op=` is no place.
    pub(crate) fn no_place<T>(&mut self, v: &Val, target: &Expr) -> ElabResult<T> {
        if let Val::View(_) = v {
            let d = Diagnostic::error(codes::NOT_ASSIGNABLE, target.span, "a window of a tensor is written by TSTORE")
                .with_label("a window of a tensor")
                .with_help(
                    "load it into a tile, change that and store it: `let t = Vec(window);`, `TSTORE(window, t);`",
                );
            return self.report(d);
        }
        // What the element of a computed tile lacks is the tile's name.
        if let ExprKind::Index(base, _) = &*target.kind
            && let Val::Tile(t) = self.expr(base)?
        {
            self.tile_destination(&t, base)?;
        }
        let d =
            Diagnostic::error(codes::NOT_ASSIGNABLE, target.span, format!("{} cannot be assigned to", v.describe()))
                .with_help("the left side is what `var` declares, a tile, or an element of a tile or tensor");
        self.report(d)
    }
}

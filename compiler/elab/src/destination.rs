//! Places that statements write to. What an expression computes has no place: a write to it would be lost.

use super::{Argument, ElabResult, Elaborator, Given};
use ptoc_diagnostics::{Diagnostic, Span, codes};
use ptoc_syntax::ast::{Expr, ExprKind, Param};
use ptoc_values::{TileVal, Val, written};

/// Whether this is a name, or a part of what a name stands for.
fn is_named(e: &Expr) -> bool {
    match &*e.kind {
        ExprKind::Name(_) => true,
        ExprKind::Paren(inner) | ExprKind::Index(inner, _) => is_named(inner),
        ExprKind::Call(callee, _) => {
            matches!(&*callee.kind, ExprKind::Field(of, n)
                if matches!(n.name.as_str(), "tile" | "valid") && is_named(of))
        }
        _ => false,
    }
}

/// Without what takes a part of it.
fn whole(e: &Expr) -> &Expr {
    match &*e.kind {
        ExprKind::Paren(inner) | ExprKind::Index(inner, _) => whole(inner),
        ExprKind::Call(callee, _) => match &*callee.kind {
            ExprKind::Field(of, n) if matches!(n.name.as_str(), "tile" | "valid") => whole(of),
            _ => e,
        },
        _ => e,
    }
}

impl Elaborator<'_> {
    /// What a call gives for `p`, for one who writes to it. Called where the argument stands, outside the function.
    pub(crate) fn argument(&self, p: &Param, v: &Val, e: &Expr) -> Given {
        let (Val::Tile(t) | Val::Mask(t, _)) = v else { return Given::Place };
        if !matches!(&*p.ty.kind, ExprKind::Static(..)) {
            return Given::Mapped;
        }
        // A parameter that is passed on is no more of a place than what it was given.
        let computed = match is_named(e) {
            true => self.parameter(e).map_or(Given::Place, |a| a.given),
            false => Given::Computed(e.span),
        };
        match computed {
            Given::Computed(_) if self.b.kernel().tiles[t.tile].hidden => computed,
            _ => Given::Place,
        }
    }

    /// The parameter of the innermost function that `e` names, or names a part of.
    fn parameter(&self, e: &Expr) -> Option<&Argument> {
        let ExprKind::Name(name) = &*whole(e).kind else { return None };
        let (_, defined) = self.env.get(name)?;
        self.arguments.last()?.iter().find(|a| a.declared == defined)
    }

    /// Refuses to write to a parameter of which nobody outside the function sees what is written.
    fn parameter_destination(&mut self, e: &Expr) -> ElabResult<()> {
        let Some(a) = self.parameter(e) else { return Ok(()) };
        let name = a.name.clone();
        let d = match a.given {
            Given::Place => return Ok(()),
            Given::Computed(at) => Diagnostic::error(
                codes::NOT_ASSIGNABLE,
                e.span,
                format!("`{name}` is written, and the call gives a computed tile for it"),
            )
            .with_label("nothing outside the function can read what is written here")
            .with_secondary(at, "a computed tile is no place to write to")
            .with_help(format!("give it a name before the call, `let u = ..;`, and pass `u` for `{name}`")),
            Given::Mapped => Diagnostic::error(
                codes::NOT_ASSIGNABLE,
                e.span,
                format!("`{name}` is a parameter for a scalar and never changes"),
            )
            .with_secondary(a.declared, "declared here")
            .with_note(
                "a function of scalars that is given tiles computes each element; it changes none of its arguments",
            )
            .with_help(format!("give what is computed a name of its own: `let my_{name} = ..;`")),
        };
        self.report(d)
    }

    /// Refuses a value as the destination that `e` is, if it is a tile that nothing can read afterwards.
    pub(crate) fn destination(&mut self, v: &Val, e: &Expr) -> ElabResult<()> {
        match v {
            Val::Tile(t) | Val::Mask(t, _) => self.tile_destination(t, e),
            Val::Part(p) => self.tile_destination(&p.tile, e),
            _ => Ok(()),
        }
    }

    /// `t.T`. Who writes to it where `t` is still there expects `t` to change.
    pub(crate) fn transposed_tile(&mut self, t: &TileVal, base: &Expr, span: Span) -> ElabResult<Val> {
        let v = self.tile_transpose(*t, None, span, base.span)?;
        if let Val::Tile(d) = &v
            && (is_named(base) || !self.b.kernel().tiles[t.tile].hidden)
        {
            let of = written::text(base).unwrap_or_else(|| "..".to_owned());
            self.transposes.insert(d.tile, (of, Span::new(span.file, base.span.start, span.end)));
        }
        Ok(v)
    }

    /// Refuses to write to `let p = t.T`: `t` would not change.
    fn transposed_destination(&mut self, t: &TileVal, e: &Expr) -> ElabResult<()> {
        let named = !self.b.kernel().tiles[t.tile].hidden;
        let Some((of, at)) = self.transposes.get(&t.tile).cloned().filter(|_| named) else { return Ok(()) };
        let d = Diagnostic::error(codes::NOT_ASSIGNABLE, e.span, "the transpose of a tile is no place to write to")
            .with_label("the tile that was transposed would not change")
            .with_secondary(at, "transposed here")
            .with_help(format!("`modes({of}, (1, 0))` is a part of the tile: what is written to it changes the tile"))
            .with_help(format!("`transpose({of})` is a tile of its own, if the other one is to stay as it is"));
        self.report(d)
    }

    /// [`Elaborator::destination`] of a tile.
    pub(crate) fn tile_destination(&mut self, t: &TileVal, e: &Expr) -> ElabResult<()> {
        self.parameter_destination(e)?;
        self.transposed_destination(t, e)?;
        if !self.b.kernel().tiles[t.tile].hidden || is_named(e) {
            return Ok(());
        }
        let of = whole(e);
        let d = Diagnostic::error(codes::NOT_ASSIGNABLE, e.span, "a computed tile is no place to write to")
            .with_label("nothing can read what is written here");
        let d = match &*of.kind {
            ExprKind::Field(base, n) if n.name == "T" => {
                let d =
                    d.with_note("the transpose of a tile is a tile of its own; that of a window of a tensor is a view");
                match &*base.kind {
                    ExprKind::Name(t) => d.with_help(format!(
                        "write to a tile of the other shape, and make `{t}` of it: `{t} = transpose(u);`"
                    )),
                    _ => d.with_help("write to a tile that has a name, and transpose that: `transpose(u)`"),
                }
            }
            _ => d.with_help("give it a name, `let u = ..;`, and write to `u`"),
        };
        self.report(d)
    }
}

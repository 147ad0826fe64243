//! Places that statements write to. What an expression computes has no place: a write to it would be lost.

use super::{Elab, R};
use crate::value::{TileVal, Val};
use ptoc_diagnostics::{Diagnostic, codes};
use ptoc_syntax::ast::{Expr, ExprKind};

/// Is this a name, or a part of what a name stands for?
fn is_named(e: &Expr) -> bool {
    match &*e.kind {
        ExprKind::Name(_) => true,
        ExprKind::Paren(inner) | ExprKind::Index(inner, _) => is_named(inner),
        ExprKind::Call(callee, _) => {
            matches!(&*callee.kind, ExprKind::Field(of, n) if matches!(n.name.as_str(), "tile" | "valid") && is_named(of))
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

impl Elab<'_> {
    /// Refuses a value as the destination that `e` is, if it is a tile that nothing can read afterwards.
    pub fn destination(&mut self, v: &Val, e: &Expr) -> R<()> {
        match v {
            Val::Tile(t) | Val::Mask(t, _) => self.tile_destination(t, e),
            Val::Part(p) => self.tile_destination(&p.tile, e),
            _ => Ok(()),
        }
    }

    /// [`Elab::destination`] of a tile.
    pub fn tile_destination(&mut self, t: &TileVal, e: &Expr) -> R<()> {
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

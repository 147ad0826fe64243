//! A copy from one part of a tile to another part of it: elements are moved in no order, so the parts must be apart.

use super::copies::CopyEnd;
use super::{ElabResult, Elaborator};
use ptoc_diagnostics::{Diagnostic, Edit, Span, codes};
use ptoc_ir::tile::Value;
use ptoc_isa::BinOp;
use ptoc_layout::Truth;
use ptoc_syntax::ast::Expr;
use ptoc_values::{TilePartition, TileVal, Val};

/// What is known of two windows of one tile.
enum Parts {
    /// They have no element in common.
    Apart,
    /// This is an element of both.
    Meet(i64, i64),
    Unknown,
}

impl Elaborator<'_> {
    /// Refuses a copy within a tile unless its two sides are proved to be apart.
    pub(crate) fn apart_in_tile(
        &mut self,
        sides: [&CopyEnd; 2],
        values: [&Val; 2],
        e: [&Expr; 2],
        span: Span,
    ) -> ElabResult<()> {
        let [CopyEnd::Part(to), CopyEnd::Part(from)] = sides else { return Ok(()) };
        if to.tile.tile != from.tile.tile || to.tile.element != from.tile.element {
            return Ok(());
        }
        let name = self.b.kernel().tiles[to.tile.tile].name.clone();
        let whole = self.patterns.contains_key(&to.tile.tile);
        let same = matches!(values, [Val::Tile(a), Val::Tile(b)] if a.origin == b.origin && a.valid == b.valid);
        let (parts, plain) = match values {
            [Val::Tile(a), Val::Tile(b)] if !whole => (self.parts(a, b, span)?, a.ty.layout.is_none()),
            _ if whole => (Parts::Unknown, false),
            _ => (self.enumerated(to, from), false),
        };
        let d = match parts {
            Parts::Apart => return Ok(()),
            Parts::Meet(row, col) => {
                Diagnostic::error(codes::COPY_OVERLAP, span, "this reads elements that it writes itself")
                    .with_label(format!("element ({row}, {col}) of `{name}` is both read and written"))
            }
            Parts::Unknown => {
                let message =
                    format!("not proved: what this reads of `{name}` and what it writes have no element in common");
                Diagnostic::error(codes::COPY_OVERLAP, span, message).with_label("a copy within one tile")
            }
        };
        let d = d.with_note("elements are moved in no particular order: which value stays is not defined");
        let d = match plain {
            _ if same => d.with_help("leave it out: the source and the destination are the same elements"),
            // TMOV reads a window before it writes one.
            true => {
                let edit = |from, to, text: &str| Edit { span: Span::new(span.file, from, to), text: text.into() };
                let edits = vec![
                    edit(span.start, e[0].span.start, ""),
                    edit(e[0].span.end, e[1].span.start, " = "),
                    edit(e[1].span.end, span.end, ""),
                ];
                d.with_edits("assign the window, which is read before any of it is written", edits)
            }
            false => d.with_help("copy through another tile: all of the source first"),
        };
        self.report(d)
    }

    /// Two parts whose elements are constants, counted from the tile's first one.
    fn enumerated(&self, to: &TilePartition, from: &TilePartition) -> Parts {
        let elements = |p: &TilePartition| -> Option<Vec<(i64, i64)>> {
            let (row, col) = match p.tile.origin {
                Some((r, c)) => (self.const_index(r)?, self.const_index(c)?),
                None => (0, 0),
            };
            Some(self.elements_of(&p.window)?.into_iter().map(|(r, c)| (r + row, c + col)).collect())
        };
        let (Some(to), Some(from)) = (elements(to), elements(from)) else { return Parts::Unknown };
        let read: rustc_hash::FxHashSet<(i64, i64)> = from.into_iter().collect();
        match to.into_iter().find(|e| read.contains(e)) {
            Some((row, col)) => Parts::Meet(row, col),
            None => Parts::Apart,
        }
    }

    /// Two windows of one tile.
    fn parts(&mut self, a: &TileVal, b: &TileVal, span: Span) -> ElabResult<Parts> {
        let (x, y) = (self.valid_of(a, span)?, self.valid_of(b, span)?);
        let zero = self.idx(0);
        let (p, q) = (a.origin.unwrap_or((zero, zero)), b.origin.unwrap_or((zero, zero)));
        let axes = [((p.0, x.0), (q.0, y.0)), ((p.1, x.1), (q.1, y.1))];
        let behind = |s: &mut Self, (from, len): (Value, Value), other: Value| {
            let end = s.bin(BinOp::Add, from, len, span);
            if s.facts.le_certain(end, other, 0) {
                return true;
            }
            let (end, other) = (s.int_of(end), s.int_of(other));
            s.cx.le(&end, &other) == Truth::Yes
        };
        if axes.iter().any(|&(v, w)| behind(self, v, w.0) || behind(self, w, v.0)) {
            return Ok(Parts::Apart);
        }
        // The first element of both.
        let common = |((from, len), (other, more)): ((Value, Value), (Value, Value))| {
            let known = |v| self.const_index(v);
            let at = known(from)?.max(known(other)?);
            (at < known(from)?.checked_add(known(len)?)? && at < known(other)?.checked_add(known(more)?)?).then_some(at)
        };
        Ok(match (common(axes[0]), common(axes[1])) {
            (Some(row), Some(col)) => Parts::Meet(row, col),
            _ => Parts::Unknown,
        })
    }
}

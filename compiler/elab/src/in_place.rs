//! Copies to a part of a tile: elements are moved in no order, so none may be written twice, and none may be one that
//! the same copy reads.

use super::copies::CopyEnd;
use super::{ElabResult, Elaborator};
use ptoc_diagnostics::{Diagnostic, Edit, Span, codes};
use ptoc_ir::tile::Value;
use ptoc_isa::BinOp;
use ptoc_layout::{Int, Truth};
use ptoc_syntax::ast::Expr;
use ptoc_values::{Quantity, TilePartition, TileVal, Val, WindowMap};

/// What is known of two windows of one tile.
enum Parts {
    /// They have no element in common.
    Apart,
    /// This is an element of both.
    Meet(i64, i64),
    Unknown,
}

/// How often the elements of a window are named.
enum Named {
    Once,
    /// This element twice, where it is known which.
    Twice(Option<(i64, i64)>),
    Unknown,
}

/// What is said of elements that meet.
const NO_ORDER: &str = "elements are moved in no particular order: which value stays is not defined";

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
        let d = d.with_note(NO_ORDER);
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
            Some(p.window.elements(|v| self.const_index(v))?.into_iter().map(|(r, c)| (r + row, c + col)).collect())
        };
        let (Some(to), Some(from)) = (elements(to), elements(from)) else { return Parts::Unknown };
        let read: rustc_hash::FxHashSet<(i64, i64)> = from.into_iter().collect();
        match to.into_iter().find(|e| read.contains(e)) {
            Some((row, col)) => Parts::Meet(row, col),
            None => Parts::Apart,
        }
    }

    /// Refuses to write a part of a tile that is not proved to name each of its elements once.
    pub(super) fn named_once(&mut self, p: &TilePartition, at: Span) -> ElabResult<()> {
        let named = self.times_named(&p.window);
        let tile = &self.b.kernel().tiles[p.tile.tile];
        let of = if tile.hidden { String::new() } else { format!(" of `{}`", tile.name) };
        let d = match named {
            Named::Once => return Ok(()),
            Named::Twice(element) => {
                let element = element.filter(|_| p.tile.origin.is_none());
                let label = match element {
                    Some((row, col)) => format!("element ({row}, {col}){of} is written twice"),
                    None => format!("elements{of} are written twice"),
                };
                Diagnostic::error(codes::COPY_OVERLAP, at, "this writes one element twice").with_label(label)
            }
            Named::Unknown => {
                let message = format!("not proved: this writes every element{of} once");
                Diagnostic::error(codes::COPY_OVERLAP, at, message).with_label("a part of a tile that is written")
            }
        };
        let d = d.with_note(NO_ORDER);
        self.report(d.with_help(
            "write a part in which each coordinate has an element of its own: strides of 0, and ones that others \
             reach, name elements again",
        ))
    }

    fn times_named(&mut self, w: &WindowMap) -> Named {
        // A partition by an MMA is written by the first thread that holds an element.
        if w.pattern.is_some() || self.walks_on(w) {
            return Named::Once;
        }
        if let Some(elements) = w.elements(|v| self.const_index(v)) {
            return repeated(elements).map_or(Named::Once, |e| Named::Twice(Some(e)));
        }
        // Wherever it begins, and whatever of it exists.
        let zero = self.idx(0);
        let (all, guarded) = (2..w.quantities.len(), w.guards().next().is_some());
        let mut out = w.clone();
        out.quantities.truncate(all.start);
        out.starts = vec![zero; all.start];
        for m in &mut out.modes {
            m.tree = m.tree.map(&mut |l| ptoc_values::Leaf { extent: l.extent, by: l.by[..all.start].to_vec() });
            if let Some(cap) = m.cap {
                m.extent = self.idx(i64::from(cap));
            }
        }
        let from_the_tile = matches!(out.quantities[..], [Quantity::Row, Quantity::Col]);
        match out.elements(|v| self.const_index(v)).filter(|_| from_the_tile).map(repeated) {
            Some(None) => Named::Once,
            Some(Some(_)) if !guarded => Named::Twice(None),
            _ => Named::Unknown,
        }
    }

    /// Whether each axis moves along rows or along columns alone, and steps over all that shorter steps reach.
    fn walks_on(&mut self, w: &WindowMap) -> bool {
        let mut along: [Vec<(Int, Int)>; 2] = Default::default();
        for m in &w.modes {
            for l in m.tree.leaves() {
                let extent = m
                    .cap
                    .filter(|_| m.plain().is_some())
                    .map_or_else(|| self.int_of(l.extent), |c| Int::Const(i64::from(c)));
                if extent.is(1) {
                    continue;
                }
                let q = match (self.const_index(l.by[0]), self.const_index(l.by[1])) {
                    (_, Some(0)) => 0,
                    (Some(0), _) => 1,
                    _ => return false,
                };
                if self.facts.min_of(l.by[q]).is_none_or(|least| least < 1) {
                    return false;
                }
                along[q].push((self.int_of(l.by[q]), extent));
            }
        }
        along.into_iter().all(|mut axes| {
            axes.sort_by_key(|(step, _)| step.as_const());
            let mut reach = Int::ZERO;
            axes.len() == 1
                || axes.iter().all(|(step, extent)| {
                    let further = reach.add(&Int::ONE).is_ok_and(|next| self.cx.le(&next, step) == Truth::Yes);
                    let far = extent.sub(&Int::ONE).and_then(|n| n.mul(step)).and_then(|far| reach.add(&far));
                    far.is_ok_and(|far| {
                        reach = far;
                        further
                    })
                })
        })
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

/// An element that is there twice.
fn repeated(elements: Vec<(i64, i64)>) -> Option<(i64, i64)> {
    let mut seen = rustc_hash::FxHashSet::default();
    elements.into_iter().find(|e| !seen.insert(*e))
}

//! Tiles as windows: what the operations on windows make of a tile, and how parts of tiles are read and written. A part
//! that is a rectangle is a window of the tile like `t.tile(i, j)`, which instructions take as it is.

use super::copies::CopyEnd;
use super::{ElabResult, Elaborator, ErrorReported, Valid};
use ptoc_diagnostics::{Diagnostic, Span, codes};
use ptoc_isa::BinOp;
use ptoc_layout::Layout;
use ptoc_syntax::ast::{BinaryOp, Expr};
use ptoc_values::{TilePartition, TileVal, Val, WindowMap, WindowMode};

impl Elaborator<'_> {
    /// What the operations on windows work on: a window of a tensor, a tile, a part of one. Fragments and partitions by
    /// an MMA are layouts to them.
    pub(crate) fn windowed(&mut self, v: &Val, at: Span) -> ElabResult<Option<CopyEnd>> {
        Ok(match v {
            Val::View(view) => Some(CopyEnd::View((**view).clone())),
            Val::Cut(view) => {
                self.not_cut(&view.window, "no layout cuts them further", at)?;
                None
            }
            Val::Part(p) if p.window.pattern.is_none() => Some(CopyEnd::Part((**p).clone())),
            Val::Tile(t) if self.patterns.contains_key(&t.tile) => None,
            Val::Tile(t) => {
                let shape = self.valid_of(t, at)?;
                Some(CopyEnd::Part(self.tile_part(t, shape)))
            }
            _ => None,
        })
    }

    /// What an operation has made of a window.
    pub(crate) fn of_window(&mut self, side: &CopyEnd, window: WindowMap, span: Span) -> Val {
        match side {
            CopyEnd::View(view) => Val::View(self.with_window(view, window).into()),
            CopyEnd::Part(p) => self.part_value(TilePartition { window, ..p.clone() }, span),
        }
    }

    /// A part of a tile: a window of it if it is a rectangle.
    pub(crate) fn part_value(&mut self, p: TilePartition, span: Span) -> Val {
        match self.rectangle(&p, span) {
            Some(t) => Val::Tile(t),
            None => Val::Part(p.into()),
        }
    }

    /// Rows and columns of the tile in their order, without gaps.
    fn rectangle(&mut self, p: &TilePartition, span: Span) -> Option<TileVal> {
        let w = &p.window;
        if w.pattern.is_some() || w.threads.is_some() || w.quantities.len() != 2 {
            return None;
        }
        let [rows, cols] = &w.modes[..] else { return None };
        let (r, c) = (rows.cap?, cols.cap?);
        if !self.steps_along(rows, 0) || !self.steps_along(cols, 1) {
            return None;
        }
        let (valid, starts) = ((rows.extent, cols.extent), (w.starts[0], w.starts[1]));
        let zero = self.idx(0);
        let origin = p.tile.origin.unwrap_or((zero, zero));
        let origin = (self.bin(BinOp::Add, origin.0, starts.0, span), self.bin(BinOp::Add, origin.1, starts.1, span));
        let (r, c) = (r.min(p.tile.rows), c.min(p.tile.cols));
        Some(TileVal { origin: Some(origin), rows: r, cols: c, valid: Some(valid), temp: false, ..p.tile })
    }

    /// Whether an index of the mode is a step along rows (0) or columns (1), and nothing else.
    fn steps_along(&self, mode: &WindowMode, axis: usize) -> bool {
        let Some(l) = mode.plain() else { return false };
        let by = |q: usize| self.const_index(l.by[q]);
        mode.cap == Some(1) || (by(axis) == Some(1) && by(1 - axis) == Some(0))
    }

    /// Whether it is the rows and columns of a tile from its first one on.
    pub(crate) fn in_order(&self, w: &WindowMap) -> bool {
        let [rows, cols] = &w.modes[..] else { return false };
        let first = w.starts.iter().all(|s| self.const_index(*s) == Some(0));
        w.quantities.len() == 2 && first && self.steps_along(rows, 0) && self.steps_along(cols, 1)
    }

    /// A tile's shape, where its elements are numbered row by row.
    pub(crate) fn rows_and_columns(&mut self, t: &TileVal) -> Option<Layout> {
        let shape = match (t.valid, self.valid.get(&t.tile)) {
            (Some(shape), _) => shape,
            (None, Some(Valid::Known(r, c))) => (*r, *c),
            _ => return None,
        };
        let part = self.tile_part(t, shape);
        t.ty.layout.is_none().then(|| self.part_layout(&part))
    }

    /// A part as far as its elements exist.
    pub(crate) fn trimmed(&mut self, p: &TilePartition, at: Span) -> TilePartition {
        TilePartition { window: self.trim(&p.window, at), ..p.clone() }
    }

    /// A part with the modes of a tile, as far as its elements exist; one mode is a row.
    fn part_matrix(&mut self, p: &TilePartition, at: Span) -> ElabResult<TilePartition> {
        let mut out = self.trimmed(p, at);
        let n = p.window.modes.len();
        if n > 2 {
            let d = Diagnostic::error(codes::RANK_MISMATCH, at, format!("a tile has 2 modes, this part has {n}"))
                .with_help(
                    "fix the others by index, as in `p[_, _, 0]`, or make one mode of several: `group(p, 0, 2)`",
                );
            return self.report(d);
        }
        let (zero, one) = (self.idx(0), self.idx(1));
        while out.window.modes.len() < 2 {
            let by = vec![zero; out.window.quantities.len()];
            let row = self.axis(one, Some(1), by);
            out.window.modes.insert(0, row);
        }
        Ok(out)
    }

    /// `Vec(part)`: its elements as a tile of their own.
    pub(crate) fn part_to_tile(&mut self, p: &TilePartition, span: Span, at: Span) -> ElabResult<TileVal> {
        let p = self.part_matrix(p, at)?;
        self.all_there(&p, at)?;
        let shape = (p.window.modes[0].extent, p.window.modes[1].extent);
        let mut caps = [0; 2];
        for (cap, (m, what)) in
            caps.iter_mut().zip(p.window.modes.iter().zip(["the number of rows", "the number of columns"]))
        {
            *cap = match m.cap {
                Some(c) => c,
                None => self.static_extent(&Val::Scalar(m.extent), at, what)?,
            };
        }
        let t = self.temp(p.tile.ty.dtype, (caps[0], caps[1]), shape, span)?;
        let to = CopyEnd::Part(self.tile_part(&t, shape));
        self.copy_sides(&to, &CopyEnd::Part(p), None, true, span, (at, at))?;
        Ok(t)
    }

    /// A tile is valid in its first rows and columns: an element of the part that does not exist must be none of those.
    fn all_there(&mut self, p: &TilePartition, at: Span) -> ElabResult<()> {
        if p.window.guards().next().is_none() {
            return Ok(());
        }
        let name = self.b.kernel().tiles[p.tile.tile].name.clone();
        let message = "the valid elements of this part are not its first rows and columns";
        let extents: Vec<String> = p.window.modes.iter().map(|m| self.size_shown(m.extent)).collect();
        let d = Diagnostic::error(codes::VALID_SHAPE_UNKNOWN, at, message)
            .with_label(format!("reaches beyond the valid shape of `{name}`"))
            .with_help(format!(
                "copy it to a tile that has a value already: `let u = tile Vec<{}, {}>; u = {}; copy(u, part);`",
                p.tile.ty.dtype,
                extents.join(", "),
                if p.tile.ty.dtype.is_float() { "0.0" } else { "0" },
            ));
        self.report(d)
    }

    /// `part = value;`
    pub(crate) fn assign_part(
        &mut self,
        p: &TilePartition,
        (target, value): (&Expr, &Expr),
        span: Span,
    ) -> ElabResult<()> {
        self.tile_destination(&p.tile, target)?;
        let v = self.expr(value)?;
        self.write_part(p, v, span, (target.span, value.span))
    }

    /// `part op= value;`: the part is read, and written when all of it is known.
    pub(crate) fn update_part(
        &mut self,
        p: &TilePartition,
        (target, value): (&Expr, &Expr),
        op: BinaryOp,
        span: Span,
    ) -> ElabResult<()> {
        self.tile_destination(&p.tile, target)?;
        let now = self.part_to_tile(p, span, target.span)?;
        let v = self.expr(value)?;
        self.pattern_kept(p, &v, (target.span, value.span))?;
        let v = match v {
            Val::Part(q) => Val::Tile(self.part_to_tile(&q, span, value.span)?),
            v => v,
        };
        let r = self.binary(op, Val::Tile(now), v, Some(now), span, (target.span, value.span))?;
        self.write_part(p, r, span, (target.span, value.span))
    }

    /// Refuses a part by another pattern as the value of a part.
    fn pattern_kept(&mut self, p: &TilePartition, v: &Val, at: (Span, Span)) -> ElabResult<()> {
        let Val::Part(q) = v else { return Ok(()) };
        self.same_pattern(&CopyEnd::Part(p.clone()), &CopyEnd::Part((**q).clone()), at)
    }

    pub(crate) fn write_part(&mut self, p: &TilePartition, v: Val, span: Span, at: (Span, Span)) -> ElabResult<()> {
        let v = match v {
            Val::Mask(m, false) => Val::Tile(m),
            v => v,
        };
        self.pattern_kept(p, &v, at)?;
        let same = |t: &TileVal| (t.tile, t.element) == (p.tile.tile, p.tile.element);
        let (to, from) = match v {
            Val::Poison => return Err(ErrorReported),
            // All of the source is read before any of it is written.
            Val::Part(q) if same(&q.tile) => {
                let t = self.part_to_tile(&q, span, at.1)?;
                let shape = self.valid_of(&t, at.1)?;
                (self.part_matrix(p, at.0)?, self.tile_part(&t, shape))
            }
            Val::Part(q) => (self.trimmed(p, at.0), self.trimmed(&q, at.1)),
            Val::Tile(t) => {
                let shape = self.valid_of(&t, at.1)?;
                let mut from = self.tile_part(&t, shape);
                if same(&t) {
                    let t = self.part_to_tile(&from, span, at.1)?;
                    from = self.tile_part(&t, shape);
                }
                (self.part_matrix(p, at.0)?, from)
            }
            Val::Scalar(_) | Val::Int(_) | Val::Float(_) => {
                let now = self.part_matrix(p, at.0)?;
                let extents = [now.window.modes[0].clone(), now.window.modes[1].clone()];
                let [r, c] = [&extents[0], &extents[1]];
                let (Some(rows), Some(cols)) = (r.cap, c.cap) else {
                    let message = "the extents of the part must be known at compile time";
                    return self.error(codes::NOT_CONSTANT, at.0, message);
                };
                let t = self.temp(p.tile.ty.dtype, (rows, cols), (r.extent, c.extent), span)?;
                self.expand_scalar(&t, v, at.1, span)?;
                (now, self.tile_part(&t, (r.extent, c.extent)))
            }
            other => {
                let message = format!("{} cannot be assigned to a part of a tile", other.describe());
                let d = Diagnostic::error(codes::TYPE_MISMATCH, at.1, message).with_label(other.describe());
                return self.report(match other {
                    Val::View(_) => d.with_help("`copy(part, window)` loads it"),
                    Val::Bool(_) if p.tile.ty.dtype == ptoc_tensor::DType::Bool => {
                        d.with_help("a mask is what a comparison gives: `part = t > 0.0;`")
                    }
                    _ => d,
                });
            }
        };
        self.outside_prologue(span)?;
        self.copy_sides(&CopyEnd::Part(to), &CopyEnd::Part(from), None, false, span, at)
    }

    /// `p.T` of a part.
    pub(crate) fn transpose_part(&mut self, p: &TilePartition, span: Span) -> ElabResult<Val> {
        if p.window.modes.len() != 2 {
            let message = format!("`.T` needs 2 modes, this part has {}", p.window.modes.len());
            return self.error(codes::RANK_MISMATCH, span, message);
        }
        let mut out = p.clone();
        out.window.modes.swap(0, 1);
        out.window.threads = p.window.threads.as_ref().and_then(|p| p.transposed()).map(Into::into);
        Ok(self.part_value(out, span))
    }
}

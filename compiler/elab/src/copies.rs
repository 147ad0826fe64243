//! `copy(dst, src)`, and the loads and stores that are more than rows and columns: one loop nest over the axes of both
//! sides.

use super::{ElabResult, Elaborator, ErrorReported};
use ptoc_diagnostics::{Diagnostic, Span, codes};
use ptoc_ir::tile::{Affine, Copy, Guard, NestAccess, Op, Table, Value};
use ptoc_isa::BinOp;
use ptoc_layout::{Truth, Tuple};
use ptoc_syntax::ast::{Arg, Expr};
use ptoc_tensor::DType;
use ptoc_values::{Leaf, Quantity, TilePartition, TileVal, Val, View, WindowMap, WindowMode};

/// One side of a copy.
#[derive(Clone, Debug)]
pub(crate) enum CopyEnd {
    /// Elements of a tensor.
    View(View),
    /// Elements of a tile.
    Part(TilePartition),
}

impl CopyEnd {
    pub(crate) fn window(&self) -> &WindowMap {
        match self {
            CopyEnd::View(v) => &v.window,
            CopyEnd::Part(p) => &p.window,
        }
    }

    fn with_window(self, window: WindowMap) -> CopyEnd {
        match self {
            CopyEnd::View(v) => CopyEnd::View(View { window, ..v }),
            CopyEnd::Part(p) => CopyEnd::Part(TilePartition { window, ..p }),
        }
    }

    fn dtype(&self) -> DType {
        match self {
            CopyEnd::View(v) => v.dtype,
            CopyEnd::Part(p) => p.tile.ty.dtype,
        }
    }
}

/// An axis of the nest: its extent and what it moves on each side.
struct CopyLoop {
    extent: Value,
    dst: Vec<Value>,
    src: Vec<Value>,
}

impl Elaborator<'_> {
    /// `copy(dst, src)`
    pub(crate) fn copy(&mut self, args: &[Arg], span: Span) -> ElabResult<Val> {
        let e = self.exactly(args, 2, "copy(dst, src)", span)?;
        let (dst, src) = (self.place(e[0], None)?, self.place(e[1], None)?);
        self.copy_values(&dst, &src, [e[0], e[1]], span)
    }

    /// A copy of what two expressions have given.
    pub(crate) fn copy_values(&mut self, dst: &Val, src: &Val, e: [&Expr; 2], span: Span) -> ElabResult<Val> {
        self.outside_prologue(span)?;
        self.destination(dst, e[0])?;
        let to = self.side(dst, e[0].span, true)?;
        let from = self.side(src, e[1].span, false)?;
        let (row, to) = (self.as_row(from.clone(), &to), self.as_row(to, &from));
        let from = row;
        self.same_pattern(&to, &from, (e[0].span, e[1].span))?;
        if let CopyEnd::Part(p) = &from {
            self.padding_written(p, e[1].span)?;
        }
        self.apart_in_tile([&to, &from], [dst, src], e, span)?;
        let at = (e[0].span, e[1].span);
        match dst {
            Val::Tile(t) => self.copy_to_tile(t, to, from, span, at)?,
            _ => {
                let to = match src {
                    Val::Tile(_) => self.beside_tile(to, Some(from.window()), span),
                    _ => to,
                };
                let zero = self.gathered_zero(&from, span)?;
                if zero.is_some() && [&to, &from].iter().any(|s| s.window().guards().next().is_some()) {
                    return self
                        .not_yet(span, "a gather with `oob = Zero` straight into a ragged window (load it first)");
                }
                self.copy_sides(&to, &from, zero, false, span, at)?
            }
        }
        Ok(Val::Unit)
    }

    /// A window as far as its elements exist, if those are its first rows and columns. Where the tile on the other side
    /// is as long as all of the window, guards leave out what does not exist.
    fn beside_tile(&mut self, side: CopyEnd, tile: Option<&WindowMap>, span: Span) -> CopyEnd {
        let w = side.window().clone();
        if w.guards().next().is_none() || w.modes.iter().any(|m| m.skip.is_some()) {
            return side;
        }
        let there = self.trim(&w, span);
        let as_long = |a: &WindowMap, b: &WindowMap| {
            a.modes.len() == b.modes.len()
                && a.modes.iter().zip(&b.modes).all(|(a, b)| self.lengths_agree(a.extent, b.extent))
        };
        let whole = tile.is_some_and(|t| as_long(&w, t) && !as_long(&there, t));
        if whole || there.guards().next().is_some() { side } else { side.with_window(there) }
    }

    /// A tile as the destination: what is copied sets its valid shape, and is padded as a load is. A fragment is always
    /// whole: where a partition ends, it holds zeros.
    fn copy_to_tile(
        &mut self,
        t: &TileVal,
        to: CopyEnd,
        mut from: CopyEnd,
        span: Span,
        at: (Span, Span),
    ) -> ElabResult<()> {
        if self.patterns.contains_key(&t.tile) {
            let zero = self.pad_of(t, 0.0, span)?;
            return self.copy_sides(&to, &from, Some(zero), true, span, at);
        }
        from = self.beside_tile(from, t.valid.map(|_| to.window()), span);
        let extents: Vec<Value> = from.window().modes.iter().map(|m| m.extent).collect();
        let zero = self.gathered_zero(&from, span)?;
        let ([r, c], None) = (&extents[..], t.valid) else {
            return self.copy_sides(&to, &from, zero, true, span, at);
        };
        self.block_fits(t, &from, at)?;
        let shape = self.write_valid(t, (*r, *c), span)?;
        let (pad, to) = match (self.pads.get(&t.tile).copied(), &from) {
            (Some(pad), CopyEnd::View(v)) => {
                let view = self.padded(v, (t.rows, t.cols), span, at.1)?;
                from = CopyEnd::View(view);
                self.padded_loads.insert((t.tile, t.element), shape);
                (Some(self.pad_of(t, pad, span)?), to)
            }
            _ => (zero, CopyEnd::Part(self.tile_part(t, shape))),
        };
        self.copy_sides(&to, &from, pad, true, span, at)
    }

    /// Refuses a tile that has no room for a whole block: it would hold the last ones alone.
    fn block_fits(&mut self, t: &TileVal, from: &CopyEnd, at: (Span, Span)) -> ElabResult<()> {
        let (CopyEnd::View(view), None) = (from, t.origin) else { return Ok(()) };
        for (k, (m, room)) in view.modes.iter().zip([t.rows, t.cols]).enumerate() {
            let Some(block) = m.cap.filter(|block| *block > room) else { continue };
            if self.facts.max_of(m.extent).is_some_and(|most| most <= i64::from(room)) {
                continue;
            }
            self.wrong_sizes.push(t.tile);
            let what = ["rows", "columns"][k];
            let message = format!(
                "`copy`: mode {k}: blocks of {block}{}, and {room} {what}{}",
                self.of_side(from),
                self.of_tile(t)
            );
            let d = Diagnostic::error(codes::EXCEEDS_CAPACITY, at.1, message)
                .with_label(format!("blocks of {block} in mode {k}"))
                .with_secondary(at.0, format!("a tile of {room} {what}"))
                .with_help("give the tile the size of the block");
            return self.report(d);
        }
        Ok(())
    }

    /// What entries outside a table of `oob = Zero` stand for.
    pub(crate) fn gathered_zero(&mut self, src: &CopyEnd, span: Span) -> ElabResult<Option<Value>> {
        let zero = |q: &Quantity| matches!(q, Quantity::Entry(l) if l.oob == ptoc_isa::Oob::Zero);
        match src.window().quantities.iter().any(zero) {
            true => Ok(Some(self.scalar_of(&Val::Int(0), ptoc_ir::tile::Ty::D(src.dtype()), span)?)),
            false => Ok(None),
        }
    }

    /// A vector beside a tile of one row is a row.
    fn as_row(&mut self, side: CopyEnd, other: &CopyEnd) -> CopyEnd {
        let row = |p: &TilePartition| p.window.modes.len() == 2 && p.window.modes[0].cap == Some(1);
        match (side, other) {
            (CopyEnd::View(mut v), CopyEnd::Part(p)) if v.modes.len() == 1 && row(p) => {
                let first = self.single(&v.window, 0);
                v.window.modes.insert(0, first);
                CopyEnd::View(v)
            }
            (side, _) => side,
        }
    }

    /// A value as one side of a copy.
    fn side(&mut self, v: &Val, at: Span, written: bool) -> ElabResult<CopyEnd> {
        match v {
            Val::Poison => Err(ErrorReported),
            Val::View(view) | Val::Cut(view) => {
                if written {
                    self.writable(view, at)?;
                    if !matches!(view.elem, ptoc_ir::tile::Elem::Whole(_)) {
                        let d = Diagnostic::error(codes::NOT_WRITABLE, at, "packed half bytes cannot be written")
                            .with_help("write whole bytes: leave out the `recast`");
                        return self.report(d);
                    }
                    if view.quantities.iter().any(|q| matches!(q, Quantity::Entry(_))) {
                        let d = Diagnostic::error(codes::NOT_WRITABLE, at, "a gathered view cannot be written")
                            .with_note("two entries of the table may name one place");
                        return self.report(d);
                    }
                } else {
                    self.readable(view, at)?;
                }
                Ok(CopyEnd::View((**view).clone()))
            }
            Val::Part(p) => {
                self.note_whole_use(p);
                Ok(CopyEnd::Part((**p).clone()))
            }
            Val::Tile(t) => {
                let shape = match written && t.valid.is_none() {
                    // What is written sets the valid shape: up to the capacity.
                    true => (self.idx(i64::from(t.rows)), self.idx(i64::from(t.cols))),
                    false => self.valid_of(t, at)?,
                };
                Ok(CopyEnd::Part(self.tile_part(t, shape)))
            }
            other => {
                let d = Diagnostic::error(
                    codes::TYPE_MISMATCH,
                    at,
                    format!("`copy` moves windows of tensors, tiles and partitions, found {}", other.describe()),
                );
                self.report(d)
            }
        }
    }

    /// A tile as a window: its fragment's layout if it has one, else rows and columns.
    pub(crate) fn tile_part(&mut self, t: &TileVal, shape: (Value, Value)) -> TilePartition {
        if let Some(window) = self.patterns.get(&t.tile) {
            return TilePartition { tile: *t, window: window.clone(), within: None };
        }
        let (zero, one) = (self.idx(0), self.idx(1));
        let modes =
            vec![self.axis(shape.0, Some(t.rows), vec![one, zero]), self.axis(shape.1, Some(t.cols), vec![zero, one])];
        let window = WindowMap::new(vec![Quantity::Row, Quantity::Col], vec![zero, zero], modes);
        TilePartition { tile: *t, window, within: Some(shape) }
    }

    /// Partitions of one copy must be partitions by one pattern.
    pub(crate) fn same_pattern(&mut self, to: &CopyEnd, from: &CopyEnd, at: (Span, Span)) -> ElabResult<()> {
        self.same_threads(to.window(), from.window(), at)?;
        let (Some(a), Some(b)) = (&to.window().pattern, &from.window().pattern) else { return Ok(()) };
        if a == b {
            return self.blocks_agree(to, from, at);
        }
        let (a, b) = (a.clone(), b.clone());
        let d = if a.mma == b.mma {
            Diagnostic::error(
                codes::PATTERN_MISMATCH,
                at.1,
                format!("a partition by pattern {:?} is copied to one by pattern {:?}", b.operand, a.operand),
            )
        } else {
            Diagnostic::error(codes::PATTERN_MISMATCH, at.1, "the two partitions belong to different tiled MMAs")
                .with_note(format!("to: {}", a.mma))
                .with_note(format!("from: {}", b.mma))
        };
        let d = d
            .with_label(format!("pattern {:?} of {}", b.operand, b.mma.atom.name))
            .with_secondary(at.0, format!("pattern {:?} of {}", a.operand, a.mma.atom.name))
            .with_help("partition both sides by the same function of the same MMA");
        self.report(d)
    }

    /// Emits the nest. `fill`, of the tile's dtype, is written where a guard fails.
    pub(crate) fn copy_sides(
        &mut self,
        dst: &CopyEnd,
        src: &CopyEnd,
        fill: Option<Value>,
        covers: bool,
        span: Span,
        at: (Span, Span),
    ) -> ElabResult<()> {
        if dst.dtype() != src.dtype() {
            let d = Diagnostic::error(
                codes::DTYPE_MISMATCH,
                at.1,
                format!("`copy` from `{}` to `{}`", src.dtype(), dst.dtype()),
            )
            .with_label(format!("`{}`", src.dtype()))
            .with_secondary(at.0, format!("`{}`", dst.dtype()))
            .with_help("a copy keeps bits: convert a tile by name, as in `f16(t)`");
            return self.report(d);
        }
        let (d, s) = (dst.window(), src.window());
        if d.modes.len() != s.modes.len() {
            let modes = |w: &WindowMap| super::labels::count(w.modes.len(), "mode", "modes");
            let e =
                Diagnostic::error(codes::RANK_MISMATCH, at.1, format!("`copy` between {} and {}", modes(s), modes(d)))
                    .with_label(modes(s))
                    .with_secondary(at.0, modes(d));
            // `_` keeps a mode as it is, of however many it is made.
            let fewer = if s.modes.len() < d.modes.len() { s } else { d };
            let nested = fewer.modes.iter().any(|m| m.plain().is_none());
            return self.report(match nested {
                true => e.with_help("a mode that is made of two counts as one: an index `(_, _)` keeps them apart"),
                false => e,
            });
        }
        if let CopyEnd::Part(p) = dst {
            self.named_once(p, at.0)?;
        }
        for k in 0..d.modes.len() {
            self.same_extent(k, (dst, src), span, at)?;
        }
        // What is filled where a guard fails would be beside the block.
        if fill.is_some() {
            for w in [d, s] {
                self.not_cut(&w.clone(), "what is missing in them cannot be filled", at.1)?;
            }
        }
        let (d, s) = self.in_pieces((dst, src), span, at)?;
        let mut axes = Vec::new();
        let mut counted: Vec<(std::ops::Range<usize>, WindowMode)> = Vec::new();
        for k in 0..d.modes.len() {
            let first = axes.len();
            if self.align(k, &d.modes[k], &s.modes[k], &mut axes, span, at)? || d.modes[k].skip.is_some() {
                counted.push((first..axes.len(), d.modes[k].clone()));
            }
        }
        let zero = self.idx(0);
        let mut guards = Vec::new();
        for (range, mode) in counted {
            guards.extend(self.mode_guards(range, &mode, &axes, span));
        }
        // So far they leave out what is no part of the destination.
        let own = guards.len();
        for (w, of_dst) in [(&d, true), (&s, false)] {
            for (q, bound) in w.guards() {
                guards.push(Guard { at: affine(w, q, &axes, of_dst), bound });
            }
        }
        // Where several threads hold one element of the destination, the first of them writes it.
        for a in &mut axes {
            if d.pattern.is_some() && a.dst.iter().all(|by| *by == zero) && self.const_index(a.extent) > Some(1) {
                a.extent = self.idx(1);
            }
        }
        let copy = Copy {
            extents: axes.iter().map(|a| a.extent).collect(),
            dst: self.access(dst, &d, &axes, true),
            src: self.access(src, &s, &axes, false),
            covers: covers && (fill.is_some() || guards.len() == own),
            guards,
            fill,
        };
        self.emit(Op::Copy(Box::new(copy)), span);
        Ok(())
    }

    /// Guards by which the index that these axes count is one of the mode's.
    fn mode_guards(
        &mut self,
        range: std::ops::Range<usize>,
        mode: &WindowMode,
        axes: &[CopyLoop],
        span: Span,
    ) -> Vec<Guard> {
        let (zero, one) = (self.idx(0), self.idx(1));
        let (mut up, mut down) = (vec![zero; axes.len()], vec![zero; axes.len()]);
        let mut step = one;
        for k in range {
            up[k] = step;
            down[k] = self.bin(BinOp::Sub, zero, step, span);
            step = self.bin(BinOp::Mul, step, axes[k].extent, span);
        }
        let first = mode.skip.unwrap_or(zero);
        let behind = self.bin(BinOp::Add, first, mode.extent, span);
        let end = Guard { at: Affine { start: zero, strides: up }, bound: behind };
        let begin = mode.skip.map(|skip| Guard { at: Affine { start: skip, strides: down }, bound: one });
        [end].into_iter().chain(begin).collect()
    }

    /// " of `x`", for what has a name.
    fn of_side(&self, side: &CopyEnd) -> String {
        match side {
            CopyEnd::View(v) => format!(" of `{}`", self.b.kernel().tensors[v.tensor].name),
            CopyEnd::Part(p) => match self.of_tile(&p.tile) {
                of if of.is_empty() || p.window.pattern.is_some() || self.in_order(&p.window) => of,
                of => format!(" of this part{of}"),
            },
        }
    }

    /// What is said of a part of which the end of its tile has cut mode `k`.
    fn cut_short(&self, side: &CopyEnd, k: usize) -> Option<String> {
        let CopyEnd::Part(p) = side else { return None };
        let m = &p.window.modes[k];
        let (cap, there) = (i64::from(m.cap?), self.const_index(m.extent)?);
        let cut = there < cap && !self.in_order(&p.window);
        cut.then(|| format!("the end of the tile cuts this part: in mode {k}, {there} of {cap} elements exist"))
    }

    /// Mode `k` must be as long on both sides.
    fn same_extent(
        &mut self,
        k: usize,
        (dst, src): (&CopyEnd, &CopyEnd),
        span: Span,
        at: (Span, Span),
    ) -> ElabResult<()> {
        let (a, b) = (dst.window().modes[k].extent, src.window().modes[k].extent);
        if a == b || (self.facts.le_certain(a, b, 0) && self.facts.le_certain(b, a, 0)) {
            return Ok(());
        }
        let (x, y) = (self.int_of(a), self.int_of(b));
        match self.cx.eq(&x, &y) {
            Truth::Yes => Ok(()),
            Truth::No => {
                let e = Diagnostic::error(
                    codes::COPY_SHAPE,
                    at.1,
                    format!("`copy`: mode {k} has extent {y} in the source and {x} in the destination"),
                )
                .with_label(format!("mode {k}{}: {y}", self.of_side(src)))
                .with_secondary(at.0, format!("mode {k}{}: {x}", self.of_side(dst)));
                let cut = [dst, src].into_iter().find_map(|side| self.cut_short(side, k));
                self.report(match cut {
                    Some(note) => e.with_note(note).with_help("`copy(part, value)` moves what exists of both"),
                    None => e,
                })
            }
            Truth::Unknown => {
                let message = format!("`copy`: mode {k} has {{1}} elements in the source and {{0}} in the destination");
                self.check_equal(a, b, message, None, span)
            }
        }
    }

    /// The axes of mode `k`, refined until both sides move evenly along each. True if the valid extent is less than
    /// they span.
    fn align(
        &mut self,
        k: usize,
        d: &WindowMode,
        s: &WindowMode,
        axes: &mut Vec<CopyLoop>,
        span: Span,
        at: (Span, Span),
    ) -> ElabResult<bool> {
        if let (Some(x), Some(y)) = (d.plain(), s.plain()) {
            axes.push(CopyLoop { extent: d.extent, dst: x.by.clone(), src: y.by.clone() });
            return Ok(false);
        }
        // A single axis is as long as the axes of the other side together.
        let whole = match d.plain() {
            Some(_) => self.span_of(&s.tree, span),
            None => self.span_of(&d.tree, span),
        };
        let leaves = |m: &WindowMode| -> Vec<Leaf> {
            match &m.tree {
                Tuple::Leaf(l) => vec![Leaf { extent: whole, by: l.by.clone() }],
                tree => tree.leaves().into_iter().cloned().collect(),
            }
        };
        let (mut x, mut y) = (leaves(d), leaves(s));
        x.reverse();
        y.reverse();
        while let (Some(a), Some(b)) = (x.pop(), y.pop()) {
            let (m, n) = (self.int_of(a.extent), self.int_of(b.extent));
            if m.is(1) && !n.is(1) {
                y.push(b);
                continue;
            }
            if n.is(1) && !m.is(1) {
                x.push(a);
                continue;
            }
            let (short, rest) = if self.cx.eq(&m, &n) == Truth::Yes {
                (a.extent, None)
            } else if self.cx.divides(&n, &m) == Truth::Yes {
                (b.extent, Some((&a, true)))
            } else if self.cx.divides(&m, &n) == Truth::Yes {
                (a.extent, Some((&b, false)))
            } else {
                let (m, n) = (self.size_shown(a.extent), self.size_shown(b.extent));
                let e = Diagnostic::error(
                    codes::COPY_AXES,
                    at.1,
                    format!("`copy`: inside mode {k} the source counts by {n} and the destination by {m}"),
                )
                .with_label(format!("axes of {n}"))
                .with_secondary(at.0, format!("axes of {m}"))
                .with_help("neither divides the other, so no loop walks both: choose tiles that do");
                return self.report(e);
            };
            axes.push(CopyLoop { extent: short, dst: a.by.clone(), src: b.by.clone() });
            if let Some((long, of_dst)) = rest {
                let (whole, part) = (self.int_of(long.extent), self.int_of(short));
                let extent = match whole.div_exact(&part) {
                    Some(q) => self.value_of(&q, span),
                    None => self.bin(BinOp::Div, long.extent, short, span),
                };
                let by = long.by.clone().into_iter().map(|v| self.bin(BinOp::Mul, v, short, span)).collect();
                if of_dst { &mut x } else { &mut y }.push(Leaf { extent, by });
            }
        }
        Ok(whole != d.extent && !self.facts.le_certain(whole, d.extent, 0))
    }

    /// One side over the axes; `w` is its window as the axes count it.
    fn access(&mut self, side: &CopyEnd, w: &WindowMap, axes: &[CopyLoop], of_dst: bool) -> NestAccess {
        match side {
            CopyEnd::Part(p) => {
                // A tile as such is used as far as it is valid, and a part is read as far as the tile was valid that it
                // was cut from. What is written may set the valid shape, if that is not fixed: it ranges over the
                // capacity.
                let own = &p.window;
                let shape = match (&own.modes[..], p.within) {
                    ([r, c], _) if own.pattern.is_none() && self.in_order(own) => (r.extent, c.extent),
                    (_, Some(within)) if !of_dst || p.tile.valid.is_some() => within,
                    _ => (self.idx(i64::from(p.tile.rows)), self.idx(i64::from(p.tile.cols))),
                };
                let tile = self.tile_ref(&p.tile, shape);
                NestAccess::Tile { tile, row: affine(w, 0, axes, of_dst), col: affine(w, 1, axes, of_dst) }
            }
            CopyEnd::View(v) => {
                let tables = w.quantities.iter().enumerate().filter_map(|(q, kind)| match kind {
                    Quantity::Entry(t) => Some(Table {
                        tensor: t.tensor,
                        at: affine(w, q, axes, of_dst),
                        stride: t.stride,
                        extent: t.extent,
                        oob: t.oob,
                    }),
                    _ => None,
                });
                NestAccess::Tensor {
                    tensor: v.tensor,
                    elem: v.elem,
                    at: affine(w, 0, axes, of_dst),
                    swizzle: v.swizzle,
                    tables: tables.collect(),
                }
            }
        }
    }
}

/// Quantity `q` over the axes.
fn affine(w: &WindowMap, q: usize, axes: &[CopyLoop], of_dst: bool) -> Affine {
    let strides = axes.iter().map(|a| if of_dst { a.dst[q] } else { a.src[q] }).collect();
    Affine { start: w.starts[q], strides }
}

//! Blocks cut over threads and values: `partition_A(MMA, x)` of tiles and windows of tensors, and fragments.

use super::{MODES, dtype_of};
use crate::copies::CopyEnd;
use crate::{ElabResult, Elaborator, ErrorReported};
use ptoc_diagnostics::{Diagnostic, Span, codes};
use ptoc_ir::tile::Value;
use ptoc_isa::BinOp;
use ptoc_layout::{Layout, Operand, TiledMma, Tuple, Value as Algebra};
use ptoc_syntax::ast::{Arg, Expr, ExprKind};
use ptoc_values::{Leaf, Pattern, Quantity, TilePartition, TileVal, Val, WindowMap, WindowMode};
use std::sync::Arc;

impl Elaborator<'_> {
    /// `partition_A(MMA, x)`: modes (thread, (value, rest, rest)).
    pub(crate) fn mma_partition(
        &mut self,
        operand: Operand,
        name: &'static str,
        args: &[Arg],
        span: Span,
    ) -> ElabResult<Val> {
        let e = self.exactly(args, 2, &format!("{name}(MMA, x)"), span)?;
        let (mma, x) = (self.expr(e[0])?, self.expr(e[1])?);
        let mma = self.mma_of(&mma, e[0].span)?;
        let at = e[1].span;
        self.note_mma_threads(&x, &mma, at);
        match x {
            Val::Algebra(a) if matches!(&*a, Algebra::Layout(_) | Algebra::Composed(_) | Algebra::Window(_)) => {
                self.layout_op(name, &[], args, span)
            }
            Val::View(view) => {
                let window = self.partitioned(&mma, operand, &view.window, span, at)?;
                Ok(Val::View(self.with_window(&view, window).into()))
            }
            Val::Tile(t) => {
                if let Some(fragment) = self.patterns.get(&t.tile)
                    && let Some(of) = fragment.pattern.clone()
                {
                    return self.fragment_partitioned(&t, &of, &Pattern { mma, operand }, at);
                }
                let window = self.block_of_tile(&t, at)?;
                let window = self.partitioned(&mma, operand, &window, span, at)?;
                Ok(Val::Part(TilePartition { tile: t, window, within: None }.into()))
            }
            Val::Part(_) => {
                let d = Diagnostic::error(codes::NOT_PARTITIONED, at, "this is a part of a tile already")
                    .with_help("partition the tile itself");
                self.report(d)
            }
            Val::Poison => Err(ErrorReported),
            other => {
                let message =
                    format!("a tiled MMA partitions tiles and windows of tensors, found {}", other.describe());
                self.error(codes::TYPE_MISMATCH, at, message)
            }
        }
    }

    /// `tA[_, (_, _, k)]`
    pub(crate) fn index_part(&mut self, p: &TilePartition, args: &[Arg], span: Span) -> ElabResult<Val> {
        let name = self.b.kernel().tiles[p.tile.tile].name.clone();
        let window = self.index_modes(&p.window, &format!("partition of {name}"), args, span)?;
        if !window.modes.is_empty() {
            return Ok(self.part_value(TilePartition { window, ..p.clone() }, span));
        }
        for (q, bound) in window.guards().collect::<Vec<_>>() {
            self.check_index(window.starts[q], bound, "the block", span)?;
        }
        self.outside_prologue(span)?;
        self.padding_written(p, span)?;
        let shape = (self.idx(i64::from(p.tile.rows)), self.idx(i64::from(p.tile.cols)));
        let tile = self.tile_ref(&p.tile, shape);
        Ok(Val::Scalar(self.b.tile_get(tile, window.starts[0], window.starts[1], span)))
    }

    /// Shape and strides of a part, where the tile's elements are numbered row by row.
    pub(crate) fn part_layout(&mut self, p: &TilePartition) -> Layout {
        let mut w = p.window.clone();
        let (cols, at) = (self.idx(i64::from(p.tile.cols)), Span::default());
        for m in &mut w.modes {
            m.tree = m.tree.map(&mut |l: &Leaf| {
                let row = self.bin(BinOp::Mul, l.by[0], cols, at);
                Leaf { extent: l.extent, by: vec![self.bin(BinOp::Add, row, l.by[1], at)] }
            });
        }
        self.layout_of(&w, 0)
    }

    /// A fragment is a partition already.
    fn fragment_partitioned(&mut self, t: &TileVal, of: &Pattern, want: &Pattern, at: Span) -> ElabResult<Val> {
        if of == want {
            let window = self.patterns[&t.tile].clone();
            return Ok(Val::Part(TilePartition { tile: *t, window, within: None }.into()));
        }
        let message = format!("this is a fragment by pattern {:?} of {} already", of.operand, of.mma.atom.name);
        let d = Diagnostic::error(codes::PATTERN_MISMATCH, at, message)
            .with_secondary(self.b.kernel().tiles[t.tile].span, "the fragment")
            .with_help("a fragment's elements are counted by thread and value: copy it to a tile of rows and columns");
        self.report(d)
    }

    /// The block that a tile is. With `pad = Zero` it is all of the capacity, else the valid shape.
    fn block_of_tile(&mut self, t: &TileVal, at: Span) -> ElabResult<WindowMap> {
        let padded = self.pads.contains_key(&t.tile) && t.origin.is_none();
        let shape = match padded {
            true => (self.idx(i64::from(t.rows)), self.idx(i64::from(t.cols))),
            false => self.valid_of(t, at)?,
        };
        let mut window = self.tile_part(t, shape).window;
        self.add_coordinates(&mut window, at);
        Ok(window)
    }

    /// Quantities for the coordinates in the block, whose modes have one axis each.
    fn add_coordinates(&mut self, w: &mut WindowMap, span: Span) {
        for k in 0..w.modes.len() {
            let zero = self.idx(0);
            let q = self.add_quantity(w, Quantity::Coord(k), zero);
            let mut step = self.idx(1);
            let mut tree = w.modes[k].tree.clone();
            self.natural(&mut tree, q, &mut step, span);
            w.modes[k].tree = tree;
        }
    }

    /// The window over threads and values. It covers whole tiles of the MMA: what lies outside of the block is guarded.
    fn partitioned(
        &mut self,
        mma: &Arc<TiledMma>,
        operand: Operand,
        w: &WindowMap,
        span: Span,
        at: Span,
    ) -> ElabResult<WindowMap> {
        if w.modes.len() != 2 {
            let [r, c] = operand.modes().map(|k| MODES[k]);
            let message = format!(
                "`partition_{operand:?}` cuts a block of modes {r} and {c}, this has {}",
                crate::labels::count(w.modes.len(), "mode", "modes")
            );
            let d = Diagnostic::error(codes::RANK_MISMATCH, at, message)
                .with_help("fix the others by index, as in `x[b, _, _]`");
            return self.report(d);
        }
        let cut = self.apply_layout(w, span, |cx, block| mma.partition(cx, operand, block))?;
        let mut out = match cut {
            Ok(w) => w,
            Err(e) => return self.mma_error(codes::MMA_BLOCK, e, span, at),
        };
        out.pattern = Some(Pattern { mma: mma.clone(), operand });
        Ok(self.settle(&out, span))
    }

    /// Refuses a copy between partitions by one pattern of blocks that differ in a mode of the product.
    pub(crate) fn blocks_agree(&mut self, to: &CopyEnd, from: &CopyEnd, at: (Span, Span)) -> ElabResult<()> {
        let (Some(pattern), Some(_)) = (to.window().pattern.clone(), &from.window().pattern) else { return Ok(()) };
        let (Some(x), Some(y)) = (self.repetitions(to.window()), self.repetitions(from.window())) else {
            return Ok(());
        };
        let Some(k) = (0..2).find(|&k| x[k] != y[k]) else { return Ok(()) };
        // The product has said that the sizes do not fit.
        if self.diags.iter().any(|d| d.code == codes::MMA_EXTENTS) {
            return Err(ErrorReported);
        }
        let mode = pattern.operand.modes()[k];
        let name = MODES[mode];
        // The atoms side by side repeat, whatever the tiler is.
        let Ok(atoms) = pattern.mma.side(mode) else { return Ok(()) };
        let unit = pattern.mma.atom.shape[mode].saturating_mul(atoms);
        let (x, y) = (x[k].saturating_mul(unit), y[k].saturating_mul(unit));
        let (to, from) = (self.called(to), self.called(from));
        let d = Diagnostic::error(codes::MMA_EXTENTS, at.1, format!("mode {name}: {from} has {y}, {to} has {x}"))
            .with_label(format!("{y} in mode {name}"))
            .with_secondary(at.0, format!("{x} in mode {name}"))
            .with_help("give the fragment the size of the block");
        self.misfit(d)
    }

    /// How often a pattern repeats along the two modes of its block, where that is known.
    fn repetitions(&self, w: &WindowMap) -> Option<[i64; 2]> {
        let Tuple::Node(parts) = &w.modes.get(1)?.tree else { return None };
        let [_, first, second] = &parts[..] else { return None };
        let count =
            |part: &Tuple<Leaf>| part.leaves().iter().try_fold(1i64, |n, l| n.checked_mul(self.const_index(l.extent)?));
        Some([count(first)?, count(second)?])
    }

    /// What the author calls one side of a copy.
    fn called(&self, side: &CopyEnd) -> String {
        match side {
            CopyEnd::View(v) => format!("the block of `{}`", self.b.kernel().tensors[v.tensor].name),
            CopyEnd::Part(p) if self.patterns.contains_key(&p.tile.tile) => "the fragment".into(),
            CopyEnd::Part(p) => format!("`{}`", self.b.kernel().tiles[p.tile.tile].name),
        }
    }

    /// `fragment_C(MMA, (BM, BN))`: storage for what the threads hold of a block.
    pub(crate) fn mma_fragment(&mut self, operand: Operand, args: &[Arg], span: Span) -> ElabResult<Val> {
        let usage = format!("fragment_{operand:?}(MMA, (rows, columns))");
        let e = self.exactly(args, 2, &usage, span)?;
        let mma = self.expr(e[0])?;
        let mma = self.mma_of(&mma, e[0].span)?;
        let parts: Vec<&Expr> = match &*e[1].kind {
            ExprKind::Tuple(l) => l.iter().collect(),
            _ => Vec::new(),
        };
        let [rows, cols] = parts[..] else {
            let [r, c] = operand.modes().map(|k| MODES[k]);
            let d = Diagnostic::error(codes::WRONG_ARGUMENTS, e[1].span, format!("a block has extents in {r} and {c}"))
                .with_note(format!("usage: `{usage}`"));
            return self.report(d);
        };
        self.mma_types(&mma, e[0].span)?;
        let tile = self.mma_tile(&mma, e[0].span)?;
        let mut caps = [0u32; 2];
        for ((cap, e), mode) in caps.iter_mut().zip([rows, cols]).zip(operand.modes()) {
            let name = MODES[mode];
            *cap = match self.expr(e)? {
                Val::Block(b) => b.cap,
                v => self.static_extent(&v, e.span, &format!("the fragment's extent in mode {name}"))?,
            };
            if i64::from(*cap) % tile[mode] != 0 {
                let message = format!("mode {name}: {cap} is no multiple of {}, what the MMA covers", tile[mode]);
                let d = Diagnostic::error(codes::MMA_BLOCK, e.span, message)
                    .with_label(format!("{cap} in mode {name}"))
                    .with_note(mma.to_string());
                return self.misfit(d.with_help(multiples(i64::from(*cap), tile[mode])));
            }
        }
        let dtype = dtype_of(&mma.atom, operand).ok_or(ErrorReported)?;
        let (zero, one) = (self.idx(0), self.idx(1));
        let (r, c) = (self.idx(i64::from(caps[0])), self.idx(i64::from(caps[1])));
        let modes = vec![self.axis(r, Some(caps[0]), vec![one, zero]), self.axis(c, Some(caps[1]), vec![zero, one])];
        let block = WindowMap::new(vec![Quantity::Coord(0), Quantity::Coord(1)], vec![zero, zero], modes);
        let cut = self.partitioned(&mma, operand, &block, span, e[1].span)?;
        let window = self.numbered(&cut, span);
        let mut extents = [0; 2];
        for (n, m) in extents.iter_mut().zip(&window.modes) {
            *n = self.static_extent(&Val::Scalar(m.extent), span, "the size of a fragment")?;
        }
        let (rows, cols) = (self.idx(i64::from(extents[0])), self.idx(i64::from(extents[1])));
        let t = self.temp(dtype, (extents[0], extents[1]), (rows, cols), span)?;
        self.b.kernel_mut().tiles[t.tile].name = format!("fragment {operand:?}").into();
        self.patterns.insert(t.tile, window);
        Ok(Val::Tile(t))
    }

    /// The same modes, where the row counts threads and the column counts values.
    fn numbered(&mut self, w: &WindowMap, span: Span) -> WindowMap {
        let zero = self.idx(0);
        let quantities = [Quantity::Row, Quantity::Col].into_iter().chain(w.quantities.clone()).collect();
        let starts = [zero, zero].into_iter().chain(w.starts.clone()).collect();
        let mut modes = Vec::new();
        for (k, m) in w.modes.iter().enumerate() {
            let mut tree = m.tree.map(&mut |l: &Leaf| {
                let by: Vec<Value> = [zero, zero].into_iter().chain(l.by.clone()).collect();
                Leaf { extent: l.extent, by }
            });
            let mut step = self.idx(1);
            self.natural(&mut tree, k, &mut step, span);
            modes.push(WindowMode { tree, ..m.clone() });
        }
        WindowMap { quantities, starts, modes, ..w.clone() }
    }
}

/// What would be a multiple.
pub(super) fn multiples(n: i64, of: i64) -> String {
    let below = n / of * of;
    match below {
        0 => format!("{of} is the least that the MMA covers"),
        _ => format!("{below} and {} are multiples", below.saturating_add(of)),
    }
}

//! Windows of tensors: slicing, `.tile`, `.T`, `col`; element access. Bounds are proved or checked where a window is
//! made, so that a view never reaches outside its tensor.

use super::cut_blocks::window_value;
use super::{ElabResult, Elaborator, ErrorReported};
use ptoc_diagnostics::{Diagnostic, Span, codes};
use ptoc_ir::tile::{Elem, TensorDir, Value, ViewRef};
use ptoc_isa::BinOp;
use ptoc_layout::{Int, Layout, Tiler, Truth, Tuple};
use ptoc_syntax::ast::{Arg, Expr};
use ptoc_values::{Leaf, Quantity, TileBlock, Val, View, WindowMap, WindowMode};

impl Elaborator<'_> {
    /// `index` must lie in `0..extent`.
    pub(crate) fn check_index(&mut self, index: Value, extent: Value, what: &str, span: Span) -> ElabResult<()> {
        let known = |s: &Self| s.facts.min_of(index).is_some_and(|m| m >= 0) && s.facts.le_certain(index, extent, -1);
        if !known(self) && self.proves(|p| p.within(index, extent)) {
            self.exact_terms(index, span)?;
            self.facts.ge_const(index, 0);
            self.facts.le(index, extent, -1);
            return Ok(());
        }
        self.exact(index, span)?;
        let zero = self.idx(0);
        if self.facts.min_of(index).is_none_or(|m| m < 0) {
            let message = format!("index {{1}} of {what} is negative");
            self.require_le(zero, index, codes::INDEX_OUT_OF_BOUNDS, message, span)?;
        }
        if self.facts.le_certain(index, extent, -1) {
            return Ok(());
        }
        let cond = self.compare(ptoc_isa::CmpOp::Lt, index, extent, span);
        let data = ptoc_ir::tile::CheckData {
            code: codes::INDEX_OUT_OF_BOUNDS,
            message: format!("index {{0}} of {what} is outside its extent of {{1}}"),
            span,
            help: None,
        };
        self.check(cond, data, vec![index, extent], span)?;
        self.facts.le(index, extent, -1);
        Ok(())
    }

    /// Every quantity moves `index` steps along an axis.
    pub(crate) fn advance(&mut self, w: &mut WindowMap, by: &[Value], index: Value, span: Span) {
        for (q, &b) in by.iter().enumerate() {
            let step = self.bin(BinOp::Mul, index, b, span);
            w.starts[q] = self.bin(BinOp::Add, w.starts[q], step, span);
        }
    }

    /// Fixes the index of a mode: its axes count colexicographically, the last without end.
    pub(crate) fn fix_mode(&mut self, w: &mut WindowMap, tree: &Tuple<Leaf>, index: Value, span: Span) {
        let leaves = tree.leaves();
        let mut rest = index;
        for (k, l) in leaves.iter().enumerate() {
            let here = if k + 1 == leaves.len() {
                rest
            } else {
                let here = self.bin(BinOp::Rem, rest, l.extent, span);
                rest = self.bin(BinOp::Div, rest, l.extent, span);
                here
            };
            self.advance(w, &l.by, here, span);
        }
    }

    pub(crate) fn tensor_name(&self, view: &View) -> String {
        self.b.kernel().tensors[view.tensor].name.to_string()
    }

    /// `view[a, _, b]`, also with nested coordinates: `view[_, (_, k)]`
    pub(crate) fn index_view(&mut self, view: &View, args: &[Arg], span: Span) -> ElabResult<Val> {
        let name = self.tensor_name(view);
        let window = self.index_modes(&view.window, &name, args, span)?;
        Ok(Val::View(self.with_window(view, window).into()))
    }

    /// The same of any window: one coordinate, or `_`, for each mode.
    pub(crate) fn index_modes(&mut self, w: &WindowMap, name: &str, args: &[Arg], span: Span) -> ElabResult<WindowMap> {
        self.same_rank(w, name, args.len(), "index", span)?;
        self.index_window(w, name, args, span)
    }

    /// The window that coordinates leave.
    pub(crate) fn index_window(
        &mut self,
        w: &WindowMap,
        name: &str,
        args: &[Arg],
        span: Span,
    ) -> ElabResult<WindowMap> {
        let coordinates: Vec<(Val, Span)> =
            args.iter().map(|a| Ok((self.expr(&a.value)?, a.value.span))).collect::<ElabResult<_>>()?;
        // A nested coordinate reaches inside a mode, where a shorter valid extent is a guard.
        let nested = coordinates.iter().any(|(v, _)| matches!(v, Val::Tuple(_)));
        let w = if nested { self.expose(w, span) } else { w.clone() };
        let mut out = WindowMap { modes: Vec::new(), ..w.clone() };
        for (k, ((v, at), mode)) in coordinates.iter().zip(&w.modes).enumerate() {
            match v {
                Val::Hole => out.modes.push(mode.clone()),
                Val::Block(_) => {
                    let d = Diagnostic::error(codes::TYPE_MISMATCH, *at, "a block cannot index an element")
                        .with_help("a window of one block is `.tile(i, j)`");
                    return self.report(d);
                }
                Val::Range(lo, hi) => {
                    self.slice_mode(&mut out, mode, (*lo, *hi), &format!("mode {k} of `{name}`"), *at)?;
                }
                Val::Tuple(parts) => {
                    let what = format!("mode {k} of `{name}`");
                    self.index_tree(&mut out, &mode.tree, parts, &what, *at)?;
                }
                v => {
                    let i = self.index_of(v, *at)?;
                    self.check_index(i, mode.extent, &format!("mode {k} of `{name}`"), *at)?;
                    self.fix_mode(&mut out, &mode.tree, i, span);
                }
            }
        }
        Ok(self.settle(&out, span))
    }

    /// A coordinate inside a mode; what it keeps becomes modes of the result.
    pub(crate) fn index_tree(
        &mut self,
        out: &mut WindowMap,
        tree: &Tuple<Leaf>,
        parts: &[Val],
        what: &str,
        at: Span,
    ) -> ElabResult<()> {
        let modes = match tree {
            Tuple::Node(modes) if modes.len() == parts.len() => modes,
            _ => {
                let message = format!(
                    "{what} has {} inside, and {} given",
                    super::labels::count(tree.rank(), "mode", "modes"),
                    super::labels::count(parts.len(), "coordinate is", "coordinates are")
                );
                let d = Diagnostic::error(codes::RANK_MISMATCH, at, message)
                    .with_label("one coordinate, or `_`, for each mode inside");
                let d = match tree {
                    Tuple::Leaf(_) => d
                        .with_note("modes of a group that count on where the one before ends are merged into one mode")
                        .with_help(
                            "give one number: the first coordinate, plus the second times the first one's extent",
                        ),
                    Tuple::Node(_) => d,
                };
                return self.report(d);
            }
        };
        for (k, (part, tree)) in parts.iter().zip(modes).enumerate() {
            let what = format!("mode {k} inside of {what}");
            match part {
                Val::Hole => {
                    let extent = self.span_of(tree, at);
                    let cap = self.const_index(extent).and_then(|n| u32::try_from(n).ok());
                    out.modes.push(WindowMode { extent, cap, tree: tree.clone(), skip: None });
                }
                Val::Tuple(parts) => self.index_tree(out, tree, parts, &what, at)?,
                v => {
                    let i = self.index_of(v, at)?;
                    let extent = self.span_of(tree, at);
                    self.check_index(i, extent, &what, at)?;
                    self.fix_mode(out, tree, i, at);
                }
            }
        }
        Ok(())
    }

    fn same_rank(&mut self, w: &WindowMap, name: &str, given: usize, what: &str, span: Span) -> ElabResult<()> {
        let rank = w.modes.len();
        if rank == given {
            return Ok(());
        }
        let plural = if rank == 1 { "mode" } else { "modes" };
        let given = match what {
            "index" => super::labels::count(given, "index is", "indices are"),
            _ => super::labels::count(given, "block is", "blocks are"),
        };
        let d = Diagnostic::error(
            codes::RANK_MISMATCH,
            span,
            format!("`{name}` has {rank} {plural} here, and {given} given"),
        )
        .with_label(format!("one {what}, or `_`, for each mode"));
        self.report(d)
    }

    /// `view.tile(i, j)`
    pub(crate) fn tile_view(&mut self, view: &View, args: &[Arg], span: Span) -> ElabResult<Val> {
        let name = self.tensor_name(view);
        self.same_rank(&view.window, &name, args.len(), "block", span)?;
        let mut out = view.clone();
        let blocks = args.iter().map(|a| self.expr(&a.value)).collect::<ElabResult<Vec<Val>>>()?;
        let exchanged = self.exchanged(&view.window, &name, args, &blocks);
        for (k, (arg, block)) in args.iter().zip(blocks).enumerate() {
            let at = arg.value.span;
            match block {
                Val::Hole => {}
                Val::Block(b) => {
                    let inside = self.tile_block(&mut out, k, &b, at);
                    if let (Err(ErrorReported), Some(swap), Some(d)) = (&inside, &exchanged, self.diags.last_mut())
                        && d.code == codes::VIEW_OUT_OF_BOUNDS
                    {
                        d.fixes.extend(swap.fixes.iter().cloned());
                    }
                    inside?;
                }
                Val::Poison => return Err(ErrorReported),
                other => {
                    let d = Diagnostic::error(
                        codes::TYPE_MISMATCH,
                        at,
                        format!("`.tile` takes blocks and `_`, found {}", other.describe()),
                    )
                    .with_label(other.describe())
                    .with_help("a block comes from `i in tiles(n, size)`; a single index is written `x[i, _]`");
                    return self.report(d);
                }
            }
        }
        self.diags.extend(exchanged);
        Ok(window_value(out))
    }

    /// Mode `k` becomes the block `b` of it.
    pub(crate) fn tile_block(&mut self, view: &mut View, k: usize, b: &TileBlock, at: Span) -> ElabResult<()> {
        let Some(place) = &b.place else {
            return self.error(codes::TYPE_MISMATCH, at, "this extent has no place in a tensor: it only sizes tiles");
        };
        let name = self.tensor_name(view);
        let what = format!("mode {k} of `{name}`: the block ends at {{0}}, the extent is {{1}}");
        self.require_le(place.end, view.window.modes[k].extent, codes::VIEW_OUT_OF_BOUNDS, what, at)?;
        self.not_cut(
            &WindowMap { modes: vec![view.window.modes[k].clone()], ..view.window.clone() },
            "blocks are cut once",
            at,
        )?;
        let w = &mut view.window;
        self.tile_mode(w, k, b, (place.start, place.index), at)?;
        w.modes[k].extent = b.len;
        w.modes[k].cap = Some(b.cap);
        if let Tuple::Leaf(l) = &mut w.modes[k].tree {
            l.extent = b.len;
        }
        Ok(())
    }

    /// Mode `k` becomes its block `b` from `start`, which is block number `index`.
    fn tile_mode(
        &mut self,
        w: &mut WindowMap,
        k: usize,
        b: &TileBlock,
        at: (Value, Value),
        span: Span,
    ) -> ElabResult<()> {
        let ((start, index), cap) = (at, b.cap);
        let mode = w.modes[k].clone();
        if let Some(l) = mode.plain() {
            let by = l.by.clone();
            self.advance(w, &by, start, span);
            return Ok(());
        }
        if !self.blocks_fit(&mode.tree, cap, k, span)? {
            self.cut_mode(w, k, (b, start), span);
            return Ok(());
        }
        // The block's own length says where it ends; that the last one runs over the end of the last axis is no matter.
        let extent = self.span_of(&mode.tree, span);
        let one = WindowMap { modes: vec![WindowMode { extent, ..mode.clone() }], ..w.clone() };
        let tiler = Tiler::Extent(Int::Const(i64::from(cap)));
        let divided = self.apply_layout(&one, span, |cx, l| {
            let inner = l.mode(0).unwrap_or_else(Layout::unit);
            super::local::divide("logical_divide", cx, &inner, &tiler)
        })?;
        let divided = match divided {
            Ok(w) => w,
            Err(e) => return self.layout_error(e.within(k), span, &[]),
        };
        let quantities = w.quantities.len();
        let keep = |t: &Tuple<Leaf>| t.map(&mut |l: &Leaf| Leaf { extent: l.extent, by: l.by[..quantities].to_vec() });
        let (tile, rest) = (keep(&divided.modes[0].tree), keep(&divided.modes[1].tree));
        self.fix_mode(w, &rest, index, span);
        w.modes[k].tree = tile;
        Ok(())
    }

    /// Whether no end of an axis within a mode (the last one's aside) cuts a block of `cap` indices: what all axes but
    /// the last span is a multiple of the block, or the block of it. Tested when the kernel runs, where only the launch
    /// knows it.
    fn blocks_fit(&mut self, tree: &Tuple<Leaf>, cap: u32, k: usize, span: Span) -> ElabResult<bool> {
        let block = Int::Const(i64::from(cap));
        let leaves = tree.leaves();
        let mut inner = self.idx(1);
        let mut unknown = Vec::new();
        for l in &leaves[..leaves.len().saturating_sub(1)] {
            inner = self.bin(BinOp::Mul, inner, l.extent, span);
            let n = self.int_of(inner);
            match (self.cx.divides(&block, &n), self.cx.divides(&n, &block)) {
                (Truth::Yes, _) | (_, Truth::Yes) => {}
                (Truth::No, Truth::No) => return Ok(false),
                _ => unknown.push(inner),
            }
        }
        for inner in unknown {
            let size = self.idx(i64::from(cap));
            let (over, under) = (self.bin(BinOp::Rem, inner, size, span), self.bin(BinOp::Rem, size, inner, span));
            // One of the remainders is 0 exactly if their product is.
            let both = self.bin(BinOp::Mul, over, under, span);
            let zero = self.idx(0);
            let cond = self.compare(ptoc_isa::CmpOp::Eq, both, zero, span);
            let data = ptoc_ir::tile::CheckData {
                code: codes::LAYOUT_CONDITION,
                message: format!("a block of {{1}} is cut by the end of an axis of {{0}} inside mode {k}"),
                span,
                help: Some("of an axis whose extent is a constant, blocks may be cut".into()),
            };
            self.check(cond, data, vec![inner, size], span)?;
        }
        Ok(true)
    }

    /// `view.T`
    pub(crate) fn transpose_view(&mut self, view: &View, span: Span) -> ElabResult<Val> {
        if view.modes.len() != 2 {
            let message = format!("`.T` needs 2 modes, this view has {}", view.modes.len());
            return self.error(codes::RANK_MISMATCH, span, message);
        }
        let mut out = view.clone();
        out.window.modes.swap(0, 1);
        out.window.threads = view.threads.as_ref().and_then(|p| p.transposed()).map(Into::into);
        Ok(window_value(out))
    }

    /// `col(view)`: a vector as a column.
    pub(crate) fn column_view(&mut self, view: &View, span: Span) -> ElabResult<Val> {
        if view.modes.len() != 1 {
            let message = format!("`col` needs 1 mode, this view has {}", view.modes.len());
            return self.error(codes::RANK_MISMATCH, span, message);
        }
        let mut out = view.clone();
        let mode = self.single(&out.window, 1);
        out.window.modes.push(mode);
        Ok(Val::View(out.into()))
    }

    /// A mode of one index; a step of it would move `step` elements.
    pub fn single(&mut self, w: &WindowMap, step: i64) -> WindowMode {
        let (one, zero) = (self.idx(1), self.idx(0));
        let mut by = vec![zero; w.quantities.len()];
        by[0] = self.idx(step);
        self.axis(one, Some(1), by)
    }

    /// A view as the operand of a two-dimensional instruction, as far as its elements exist; rank 1 is a row.
    pub(crate) fn matrix(&mut self, view: &View, span: Span) -> ElabResult<View> {
        let view = self.two_modes(view, span)?;
        // Pieces of a block that is cut begin in the middle of an axis, and say themselves where they end.
        if view.modes.iter().any(|m| m.skip.is_some()) || view.guards().next().is_none() {
            return Ok(view);
        }
        let there = self.trim(&view.window, span);
        Ok(self.with_window(&view, there))
    }

    fn two_modes(&mut self, view: &View, span: Span) -> ElabResult<View> {
        let mut out = view.clone();
        match out.modes.len() {
            0 | 1 => {
                let step = out.modes.first().and_then(|m| m.plain().map(|l| l.by[0]));
                while out.modes.len() < 2 {
                    let mut row = self.single(&out.window, 1);
                    if let (Tuple::Leaf(l), Some(step)) = (&mut row.tree, step) {
                        l.by[0] = step;
                    }
                    out.window.modes.insert(0, row);
                }
                Ok(out)
            }
            2 => Ok(out),
            n => {
                let d = Diagnostic::error(codes::RANK_MISMATCH, span, format!("a tile has 2 modes, this view has {n}"))
                    .with_help("fix the others by index, as in `x[b, h, _, _]`");
                self.report(d)
            }
        }
    }

    /// The capacities that a tile for this view needs.
    pub(crate) fn view_caps(&mut self, view: &View, span: Span) -> ElabResult<(u32, u32)> {
        let mut caps = [0; 2];
        for (cap, (m, what)) in
            caps.iter_mut().zip(view.modes.iter().zip(["the number of rows", "the number of columns"]))
        {
            *cap = match m.cap {
                Some(0) => return self.no_elements(what.trim_start_matches("the number of "), span),
                Some(c) => c,
                None => self.most_of(m.extent, span, what)?,
            };
        }
        Ok((caps[0], caps[1]))
    }

    /// The IR operand of a view whose modes are single axes.
    pub(crate) fn view_ref(&self, view: &View) -> ViewRef {
        debug_assert!(view.is_strided());
        ViewRef {
            tensor: view.tensor,
            offset: view.offset(),
            shape: view.modes.iter().map(|m| m.extent).collect(),
            strides: view.modes.iter().filter_map(|m| m.plain().map(|l| l.by[0])).collect(),
        }
    }

    /// Reading from `view` must be allowed.
    pub(crate) fn readable(&mut self, view: &View, span: Span) -> ElabResult<()> {
        let data = &self.b.kernel().tensors[view.tensor];
        // An `out` argument that was written may be read; the interpreter's poison decides which elements were.
        if data.dir != TensorDir::Out {
            return Ok(());
        }
        let d = Diagnostic::error(codes::NOT_READABLE, span, format!("`{}` is `out`, and read here", data.name))
            .with_secondary(data.span, "declared `out`")
            .with_help("declare it `inout`");
        self.report(d)
    }

    /// Writing to `view` must be allowed.
    pub(crate) fn writable(&mut self, view: &View, span: Span) -> ElabResult<()> {
        let data = &self.b.kernel().tensors[view.tensor];
        if data.dir != TensorDir::In {
            return Ok(());
        }
        let d = Diagnostic::error(codes::NOT_WRITABLE, span, format!("`{}` is `in`, and written here", data.name))
            .with_secondary(data.span, "declared `in`")
            .with_help("declare it `out`, or `inout` if it is read too");
        self.report(d)
    }

    /// A member of a block: `.start`, `.len`, ...
    pub(crate) fn block_member(&mut self, b: &TileBlock, name: &str, span: Span) -> ElabResult<Val> {
        if name == "len" {
            return Ok(Val::Scalar(b.len));
        }
        let Some(p) = &b.place else {
            let message = format!("this extent has `.len`, and no `.{name}`");
            return self.error(codes::UNKNOWN_MEMBER, span, message);
        };
        Ok(match name {
            "start" => Val::Scalar(p.start),
            "end" => Val::Scalar(p.end),
            "index" => Val::Scalar(p.index),
            "first" => self.fold(p.first),
            "last" => {
                let v = self.compare(ptoc_isa::CmpOp::Eq, p.end, p.domain, span);
                self.fold(v)
            }
            _ => {
                let d = Diagnostic::error(codes::UNKNOWN_MEMBER, span, format!("a block has no `.{name}`"))
                    .with_note("it has .start, .end, .len, .index, .first and .last");
                return self.report(d);
            }
        })
    }

    /// `x[i, j]` of which all modes are fixed: the element.
    pub(crate) fn element(&mut self, v: Val, span: Span) -> ElabResult<Val> {
        match v {
            Val::View(view) if view.modes.is_empty() => {
                self.readable(&view, span)?;
                self.outside_prologue(span)?;
                let offset = self.element_offset(&view, span)?;
                let v = self.b.load(view.tensor, offset, span);
                let name = self.b.kernel().tensors[view.tensor].name.clone();
                self.size_origin(v, || format!("{name}[..]"));
                Ok(Val::Scalar(v))
            }
            other => Ok(other),
        }
    }

    /// The number of the one element that a view without modes is.
    pub(crate) fn element_offset(&mut self, view: &View, span: Span) -> ElabResult<Value> {
        if !matches!(view.elem, Elem::Whole(d) if d == self.b.kernel().tensors[view.tensor].dtype) {
            return self.not_yet(span, "single elements of a `recast` view");
        }
        let mut offset = view.offset();
        for (q, kind) in view.quantities.iter().enumerate() {
            let at = view.starts[q];
            match kind {
                Quantity::Guard(bound) => self.check_index(at, *bound, "the view's tile", span)?,
                Quantity::Entry(table) => {
                    if table.oob != ptoc_isa::Oob::Undefined {
                        return self.not_yet(span, "single elements of a gather with `oob =`");
                    }
                    let entry = self.b.load(table.tensor, at, span);
                    let entry = self.convert_scalar(entry, ptoc_ir::tile::Ty::Index, span);
                    self.check_index(entry, table.extent, "the gathered mode", span)?;
                    let far = self.bin(BinOp::Mul, entry, table.stride, span);
                    offset = self.bin(BinOp::Add, offset, far, span);
                }
                _ => {}
            }
        }
        match view.swizzle {
            None => Ok(offset),
            Some(s) => {
                let mask = self.idx(s.source_mask());
                let field = self.bin(BinOp::And, offset, mask, span);
                let by = self.idx(i64::from(s.shift().unsigned_abs()));
                let op = if s.shift() >= 0 { BinOp::Shr } else { BinOp::Shl };
                let moved = self.bin(op, field, by, span);
                Ok(self.bin(BinOp::Xor, offset, moved, span))
            }
        }
    }

    /// Memory is only touched in a block.
    pub(crate) fn outside_prologue(&mut self, span: Span) -> ElabResult<()> {
        self.worked = true;
        self.behind_grid(span)
    }

    /// Before `grid` scalars are computed, once, and nothing else is done.
    pub(crate) fn behind_grid(&mut self, span: Span) -> ElabResult<()> {
        if self.in_prologue {
            let d = Diagnostic::error(codes::GRID_MISUSE, span, "this runs before `grid`, where there is no block yet")
                .with_help("move it below the `grid` statement");
            return self.report(d);
        }
        Ok(())
    }

    /// Positional arguments only.
    pub(crate) fn no_names(&mut self, args: &[Arg]) -> ElabResult<()> {
        match args.iter().find_map(|a| a.name.as_ref()) {
            Some(n) => self.error(codes::WRONG_ARGUMENTS, n.span, format!("no argument is called `{}` here", n.name)),
            None => Ok(()),
        }
    }

    /// Exactly `n` arguments, without names.
    pub fn exactly<'e>(&mut self, args: &'e [Arg], n: usize, usage: &str, span: Span) -> ElabResult<Vec<&'e Expr>> {
        self.no_names(args)?;
        if args.len() != n {
            let message = format!("expected {n} argument{}, found {}", if n == 1 { "" } else { "s" }, args.len());
            let d = Diagnostic::error(codes::WRONG_ARGUMENTS, span, message).with_note(format!("usage: `{usage}`"));
            return self.report(d);
        }
        Ok(args.iter().map(|a| &a.value).collect())
    }
}

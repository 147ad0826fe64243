//! Windows of tensors: slicing, `.tile`, `.T`, `col`; element access. Bounds are proved or checked where a window is
//! made, so that a view never reaches outside its tensor.

use super::{Elab, R, Reported, not_yet};
use crate::value::{Block, Mode, Val, View};
use ptoc_diagnostics::{Diagnostic, Span, codes};
use ptoc_ir::tile::{TensorDir, Value, ViewRef};
use ptoc_isa::BinOp;
use ptoc_syntax::ast::{Arg, Expr};

impl Elab<'_> {
    /// `index` must lie in `0..extent`.
    pub fn check_index(&mut self, index: Value, extent: Value, what: &str, span: Span) -> R<()> {
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

    fn advance(&mut self, view: &mut View, index: Value, stride: Value, span: Span) {
        let step = self.bin(BinOp::Mul, index, stride, span);
        view.offset = self.bin(BinOp::Add, view.offset, step, span);
    }

    fn tensor_name(&self, view: &View) -> String {
        self.b.kernel().tensors[view.tensor].name.to_string()
    }

    /// `view[a, _, b]`
    pub fn index_view(&mut self, view: &View, args: &[Arg], span: Span) -> R<Val> {
        self.same_rank(view, args.len(), "index", span)?;
        let name = self.tensor_name(view);
        let mut out = View { modes: Vec::new(), ..view.clone() };
        for (k, (arg, mode)) in args.iter().zip(&view.modes).enumerate() {
            match self.expr(&arg.value)? {
                Val::Hole => out.modes.push(*mode),
                Val::Block(_) => {
                    let d = Diagnostic::error(codes::TYPE_MISMATCH, arg.value.span, "a block cannot index an element")
                        .with_help("a window of one block is `.tile(i, j)`");
                    return self.report(d);
                }
                Val::Range(..) | Val::Tuple(_) => {
                    let d = not_yet(arg.value.span, "ranges and nested coordinates as indices")
                        .with_help("a window of one block is `x.tile(i, j)`, with `i in tiles(n, size)`");
                    return self.report(d);
                }
                v => {
                    let i = self.index_of(&v, arg.value.span)?;
                    self.check_index(i, mode.extent, &format!("mode {k} of `{name}`"), arg.value.span)?;
                    self.advance(&mut out, i, mode.stride, span);
                }
            }
        }
        Ok(Val::View(out.into()))
    }

    fn same_rank(&mut self, view: &View, given: usize, what: &str, span: Span) -> R<()> {
        let rank = view.modes.len();
        if rank == given {
            return Ok(());
        }
        let name = self.tensor_name(view);
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
    pub fn tile_view(&mut self, view: &View, args: &[Arg], span: Span) -> R<Val> {
        self.same_rank(view, args.len(), "block", span)?;
        let name = self.tensor_name(view);
        let mut out = view.clone();
        for (k, arg) in args.iter().enumerate() {
            let at = arg.value.span;
            match self.expr(&arg.value)? {
                Val::Hole => {}
                Val::Block(b) => {
                    let Some(place) = &b.place else {
                        return self.error(
                            codes::TYPE_MISMATCH,
                            at,
                            "this extent has no place in a tensor: it only sizes tiles",
                        );
                    };
                    let what = format!("mode {k} of `{name}`: the block ends at {{0}}, the extent is {{1}}");
                    self.require_le(place.end, out.modes[k].extent, codes::VIEW_OUT_OF_BOUNDS, what, at)?;
                    let stride = out.modes[k].stride;
                    self.advance(&mut out, place.start, stride, span);
                    out.modes[k].extent = b.len;
                    out.modes[k].cap = Some(b.cap);
                }
                Val::Poison => return Err(Reported),
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
        Ok(Val::View(out.into()))
    }

    /// `view.T`
    pub fn transpose_view(&mut self, view: &View, span: Span) -> R<Val> {
        if view.modes.len() != 2 {
            let message = format!("`.T` needs 2 modes, this view has {}", view.modes.len());
            return self.error(codes::RANK_MISMATCH, span, message);
        }
        let mut out = view.clone();
        out.modes.swap(0, 1);
        Ok(Val::View(out.into()))
    }

    /// `col(view)`: a vector as a column.
    pub fn column_view(&mut self, view: &View, span: Span) -> R<Val> {
        if view.modes.len() != 1 {
            let message = format!("`col` needs 1 mode, this view has {}", view.modes.len());
            return self.error(codes::RANK_MISMATCH, span, message);
        }
        let mut out = view.clone();
        let one = self.idx(1);
        out.modes.push(Mode { extent: one, cap: Some(1), stride: one });
        Ok(Val::View(out.into()))
    }

    /// A view as the operand of a two-dimensional instruction; rank 1 is a row.
    pub fn matrix(&mut self, view: &View, span: Span) -> R<View> {
        let mut out = view.clone();
        let one = self.idx(1);
        match out.modes.len() {
            0 | 1 => {
                while out.modes.len() < 2 {
                    let stride = out.modes.first().map_or(one, |m| m.stride);
                    let row = Mode { extent: one, cap: Some(1), stride };
                    out.modes.insert(0, row);
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
    pub fn view_caps(&mut self, view: &View, span: Span) -> R<(u32, u32)> {
        let mut caps = [0; 2];
        for (cap, (m, what)) in
            caps.iter_mut().zip(view.modes.iter().zip(["the number of rows", "the number of columns"]))
        {
            *cap = match m.cap {
                Some(c) => c,
                None => self.static_extent(&Val::Scalar(m.extent), span, what)?,
            };
        }
        Ok((caps[0], caps[1]))
    }

    /// The IR operand.
    pub fn view_ref(&self, view: &View) -> ViewRef {
        ViewRef {
            tensor: view.tensor,
            offset: view.offset,
            shape: view.modes.iter().map(|m| m.extent).collect(),
            strides: view.modes.iter().map(|m| m.stride).collect(),
        }
    }

    /// Reading from `view` must be allowed.
    pub fn readable(&mut self, view: &View, span: Span) -> R<()> {
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
    pub fn writable(&mut self, view: &View, span: Span) -> R<()> {
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
    pub fn block_member(&mut self, b: &Block, name: &str, span: Span) -> R<Val> {
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
    pub fn element(&mut self, v: Val, span: Span) -> R<Val> {
        match v {
            Val::View(view) if view.modes.is_empty() => {
                self.readable(&view, span)?;
                self.outside_prologue(span)?;
                Ok(Val::Scalar(self.b.load(view.tensor, view.offset, span)))
            }
            other => Ok(other),
        }
    }

    /// Memory is only touched in a block.
    pub fn outside_prologue(&mut self, span: Span) -> R<()> {
        self.worked = true;
        if self.in_prologue {
            let d = Diagnostic::error(codes::GRID_MISUSE, span, "this runs before `grid`, where there is no block yet")
                .with_help("move it below the `grid` statement");
            return self.report(d);
        }
        Ok(())
    }

    /// Positional arguments only.
    pub fn no_names(&mut self, args: &[Arg]) -> R<()> {
        match args.iter().find_map(|a| a.name.as_ref()) {
            Some(n) => self.error(codes::WRONG_ARGUMENTS, n.span, format!("no argument is called `{}` here", n.name)),
            None => Ok(()),
        }
    }

    /// Exactly `n` arguments, without names.
    pub fn exactly<'e>(&mut self, args: &'e [Arg], n: usize, usage: &str, span: Span) -> R<Vec<&'e Expr>> {
        self.no_names(args)?;
        if args.len() != n {
            let message = format!("expected {n} argument{}, found {}", if n == 1 { "" } else { "s" }, args.len());
            let d = Diagnostic::error(codes::WRONG_ARGUMENTS, span, message).with_note(format!("usage: `{usage}`"));
            return self.report(d);
        }
        Ok(args.iter().map(|a| &a.value).collect())
    }
}

//! Dtypes and locations applied to values: `f32(x)`, `index(i)`, `Left(view)`, `Vec(acc)`.

use super::inst::{Opnd, instr_for};
use super::tileops::tile;
use super::{ElabResult, Elaborator, ErrorReported};
use ptoc_diagnostics::{Diagnostic, Span, codes};
use ptoc_ir::tile::{Elem, InstAttrs, Ty};
use ptoc_isa::{Hop, InstrId, Loc, MemorySpace, Order, Sem, TileType};
use ptoc_names::builtins::Word;
use ptoc_tensor::DType;
use ptoc_values::{Quantity, TileVal, Val, View, WindowMap};

impl Elaborator<'_> {
    /// `f32(x)`, `index(x)`
    pub(crate) fn convert_to(
        &mut self,
        ty: Ty,
        v: Val,
        dest: Option<TileVal>,
        span: Span,
        at: Span,
    ) -> ElabResult<Val> {
        match v {
            Val::Poison => Err(ErrorReported),
            Val::Int(_) | Val::Float(_) => {
                let v = match (&v, ty) {
                    // An explicit conversion of a float literal to an integer truncates and saturates.
                    (Val::Float(f), Ty::D(d)) if d.is_int() => Val::Int(saturate(*f, super::scalars::int_range(d))),
                    (Val::Float(f), Ty::Index) => Val::Int(saturate(*f, (i64::MIN.into(), i64::MAX.into()))),
                    _ => v,
                };
                Ok(Val::Scalar(self.scalar_of(&v, ty, at)?))
            }
            Val::Bool(_) => {
                let b = self.bool_of(&v, at)?;
                Ok(Val::Scalar(self.convert_scalar(b, ty, span)))
            }
            Val::Word(Word::Inf) => self.convert_to(ty, Val::Float(f64::INFINITY), dest, span, at),
            Val::Word(Word::Nan) => self.convert_to(ty, Val::Float(f64::NAN), dest, span, at),
            Val::Scalar(x) => Ok(Val::Scalar(self.convert_scalar(x, ty, span))),
            Val::Tile(t) => {
                let Ty::D(d) = ty else {
                    let d = Diagnostic::error(codes::TYPE_MISMATCH, at, "a tile cannot become an `index`")
                        .with_help("read one element with `t[i, j]` and convert that");
                    return self.report(d);
                };
                if t.ty.dtype == d {
                    return Ok(Val::Tile(t));
                }
                if !t.ty.loc.is_vector() {
                    let e = Diagnostic::error(
                        codes::LOCATION_MISMATCH,
                        at,
                        format!("TCVT works in Vec, this tile is in {}", t.ty.loc),
                    )
                    .with_label(format!("in {}", t.ty.loc))
                    .with_edits("bring it there by name", super::labels::around(at, "Vec(", ")"));
                    return self.report(e);
                }
                let shape = self.valid_of(&t, at)?;
                let id = instr_for(Sem::Convert).ok_or(ErrorReported)?;
                // Where the target has no direct pair, the shortest exact chain; none: TCVT itself reports it.
                let chain = ptoc_isa::conversion_path(self.target, t.ty.dtype, d);
                if chain.is_none()
                    && let Some(way) = ptoc_isa::conversion_by_bits(self.target, t.ty.dtype, d)
                {
                    return self.convert_by_bits(t, (way, d), dest, span, at);
                }
                let chain = chain.unwrap_or_default();
                let mut here = t;
                let steps: Vec<_> =
                    if chain.is_empty() { vec![(d, None)] } else { chain.iter().map(|h| (h.to, h.saturate)).collect() };
                for (k, (to, saturate)) in steps.iter().enumerate() {
                    let dest = dest.filter(|x| x.tile != here.tile && k + 1 == steps.len());
                    let r = self.result(*to, (here.rows, here.cols), shape, dest, span)?;
                    // Between integers it wraps on the whole way, also where a step of it goes through a float.
                    let wraps = (steps.len() > 1 && t.ty.dtype.is_int() && d.is_int()).then_some(false);
                    let attrs = InstAttrs { saturate: saturate.or(wraps), ..InstAttrs::default() };
                    self.apply(id, vec![tile(r, span), tile(here, at)], attrs, span)?;
                    here = r;
                }
                Ok(Val::Tile(here))
            }
            Val::View(view) => {
                let v = self.element(Val::View(view), at)?;
                if let Val::Scalar(_) = v {
                    return self.convert_to(ty, v, dest, span, at);
                }
                let d = Diagnostic::error(
                    codes::TYPE_MISMATCH,
                    at,
                    format!("a window of a tensor cannot become `{ty}` in place"),
                )
                .with_label("a window of a tensor")
                .with_edits("load it first", super::labels::around(at, "Vec(", ")"));
                self.report(d)
            }
            Val::Block(_) => {
                let d = Diagnostic::error(codes::TYPE_MISMATCH, at, "a block is no number")
                    .with_help("use `.start`, `.index` or `.len`");
                self.report(d)
            }
            other => {
                let message = format!("{} cannot become `{ty}`", other.describe());
                let d = Diagnostic::error(codes::TYPE_MISMATCH, at, message);
                self.report(match (&other, ty) {
                    (Val::Mask(..), Ty::D(to)) => self.of_mask(d, to, at),
                    _ => d,
                })
            }
        }
    }

    /// What makes numbers of a mask, which stands `at`.
    fn of_mask(&self, d: Diagnostic, to: DType, at: Span) -> Diagnostic {
        let takes = |dtype: DType| {
            let select = instr_for(Sem::Select).map(InstrId::get);
            select.and_then(|row| ptoc_isa::allowed_dtypes(self.target, row)).is_some_and(|l| l.contains(&dtype))
        };
        // In its own dtype, or in one that is converted.
        let from = [to, DType::I32, DType::F16, DType::F32]
            .into_iter()
            .find(|from| takes(*from) && (*from == to || ptoc_isa::converts(self.target, *from, to)));
        let rest = match from {
            Some(DType::I32) => ", 1, 0)".to_owned(),
            Some(DType::F32) => ", 1.0, 0.0)".to_owned(),
            Some(dtype) => format!(", {dtype}(1), {dtype}(0))"),
            None => return d,
        };
        d.with_edits(
            "select a number for what is true and one for what is not",
            super::labels::around(at, "select(", &rest),
        )
    }

    /// `Left(x)`: the target's shortest legal path, through hidden tiles.
    #[allow(clippy::wrong_self_convention, reason = "the value is the argument")]
    pub(crate) fn to_location(
        &mut self,
        loc: Loc,
        v: Val,
        dest: Option<TileVal>,
        span: Span,
        at: Span,
    ) -> ElabResult<Val> {
        self.outside_prologue(span)?;
        match v {
            Val::Poison => Err(ErrorReported),
            Val::View(view) | Val::Cut(view) => {
                self.readable(&view, at)?;
                let view = self.matrix(&view, at)?;
                self.load_view(loc, view, dest, span, at)
            }
            // A part is a tile of its own afterwards, whatever the layout that cut it; a whole tile is there already.
            Val::Tile(t) if t.ty.loc == loc && t.origin.is_some() => self.window_to_tile(loc, t, dest, span, at),
            // Of one with a layout of its own, a tile in the order of rows.
            Val::Tile(t) if t.ty.loc == loc && t.is_laid_out() => {
                let shape = self.valid_of(&t, at)?;
                let all = self.tile_part(&t, shape);
                self.part_to_tile(&all, span, at).map(Val::Tile)
            }
            Val::Tile(t) if t.ty.loc == loc => Ok(Val::Tile(t)),
            Val::Part(p) => {
                let t = self.part_to_tile(&p, span, at)?;
                self.to_location(loc, Val::Tile(t), dest, span, at)
            }
            Val::Tile(t) => self.move_tile(loc, t, dest, span, at),
            other => {
                let d = Diagnostic::error(
                    codes::TYPE_MISMATCH,
                    at,
                    format!("`{loc}(..)` takes a window of a tensor or a tile, found {}", other.describe()),
                )
                .with_help("a window is `x.tile(i, j)` or `x[b, _, _]`");
                self.report(d)
            }
        }
    }

    /// A window of a tile as a tile of its own, in the location where it is: by TMOV where the target has one.
    fn window_to_tile(&mut self, loc: Loc, t: TileVal, dest: Option<TileVal>, span: Span, at: Span) -> ElabResult<Val> {
        let shape = self.valid_of(&t, at)?;
        let space = MemorySpace::Tile(loc);
        let moves = self.target.move_rule(space, space).is_some() && t.ty.dtype != ptoc_tensor::DType::Bool;
        if loc == Loc::Vec && moves && t.ty.layout.is_none() {
            let ty = self.hidden_type(loc, t.ty.dtype, t.rows, t.cols);
            let own = self.named_hidden(loc, ty, (t.rows, t.cols), shape, span)?;
            let id = instr_for(Sem::Move).ok_or(ErrorReported)?;
            self.apply(id, vec![tile(own, span), tile(t, at)], InstAttrs::default(), span)?;
            return Ok(Val::Tile(own));
        }
        let part = self.tile_part(&t, shape);
        let own = self.part_to_tile(&part, span, at)?;
        self.to_location(loc, Val::Tile(own), dest, span, at)
    }

    /// The register that is assigned to, where what it gets would need another one. Other locations have room for
    /// hidden tiles.
    fn registers(dest: Option<TileVal>, loc: Loc, dtype: ptoc_tensor::DType, caps: (u32, u32)) -> Option<TileVal> {
        dest.filter(|d| {
            matches!(loc, Loc::GrfA | Loc::GrfB) && (d.ty.loc, d.ty.dtype) == (loc, dtype) && (d.rows, d.cols) == caps
        })
    }

    pub(crate) fn load_view(
        &mut self,
        loc: Loc,
        view: View,
        dest: Option<TileVal>,
        span: Span,
        at: Span,
    ) -> ElabResult<Val> {
        let (rows, cols) = self.view_caps(&view, at)?;
        let shape = (view.modes[0].extent, view.modes[1].extent);
        if self.target.cube_dtypes(loc).is_some_and(|d| !d.contains(&view.dtype)) && !self.refused.contains(&view.dtype)
        {
            self.check_tile_type(self.hidden_type(loc, view.dtype, rows, cols), span)?;
        }
        let mut path = self.path(MemorySpace::Gm, loc, view.dtype, span)?;
        // Mat takes any order of memory.
        if path.len() == 2 && path[0].to == MemorySpace::Tile(Loc::Vec) && self.lies_transposed(&view, rows, cols) {
            let hop = |from, to| ptoc_isa::shortest_path(self.target, from, to, view.dtype).unwrap_or_default();
            let mat = [hop(MemorySpace::Gm, Loc::Mat), hop(MemorySpace::Tile(Loc::Mat), loc)];
            if mat.iter().all(|hops| hops.len() == 1) {
                path = mat.concat();
            }
        }
        let load = instr_for(Sem::Load).ok_or(ErrorReported)?;
        let mut here: Option<TileVal> = None;
        for hop in path {
            here = Some(match (hop.to, here) {
                (MemorySpace::Tile(l), None) => {
                    // Vec keeps the order of memory: a transposed window is loaded as it lies, and turned around.
                    if l == Loc::Vec && self.lies_transposed(&view, rows, cols) {
                        let mut straight = view.clone();
                        straight.window.modes.swap(0, 1);
                        let ty = self.hidden_type(l, view.dtype, cols, rows);
                        let t = self.named_hidden(l, ty, (cols, rows), (shape.1, shape.0), span)?;
                        self.apply(load, vec![tile(t, span), Opnd::View(straight, at)], InstAttrs::default(), span)?;
                        let Val::Tile(t) = self.tile_transpose(t, None, span, at)? else { return Err(ErrorReported) };
                        t
                    } else {
                        let ty = self.sized_for(l, loc, view.dtype, rows, cols);
                        let t = match Self::registers(dest, l, view.dtype, (rows, cols)) {
                            Some(own) => own,
                            None => self.named_hidden(l, ty, (rows, cols), shape, span)?,
                        };
                        self.apply(
                            load,
                            vec![tile(t, span), Opnd::View(view.clone(), at)],
                            InstAttrs::default(),
                            span,
                        )?;
                        t
                    }
                }
                (_, Some(t)) => self.hop(hop, t, loc, span, at)?,
                (MemorySpace::Gm, None) => return Err(ErrorReported),
            });
        }
        here.map(Val::Tile).ok_or(ErrorReported)
    }

    fn lies_transposed(&self, view: &View, rows: u32, cols: u32) -> bool {
        rows != 1
            && cols != 1
            && view.stride(1).is_some_and(|s| self.const_index(s) != Some(1))
            && view.stride(0).is_some_and(|s| self.const_index(s) == Some(1))
    }

    fn move_tile(&mut self, loc: Loc, t: TileVal, dest: Option<TileVal>, span: Span, at: Span) -> ElabResult<Val> {
        let path = self.path(MemorySpace::Tile(t.ty.loc), loc, t.ty.dtype, span)?;
        let mut here = t;
        for hop in path {
            here = match Self::registers(dest, loc, here.ty.dtype, (here.rows, here.cols)) {
                Some(own) if hop.to == MemorySpace::Tile(loc) && hop.from != MemorySpace::Gm => {
                    let id = instr_for(Sem::Move).ok_or(ErrorReported)?;
                    self.apply(id, vec![tile(own, span), tile(here, at)], InstAttrs::default(), span)?;
                    own
                }
                _ => self.hop(hop, here, loc, span, at)?,
            };
        }
        Ok(Val::Tile(here))
    }

    /// The target's shortest path; a detour through global memory is said.
    fn path(&mut self, from: MemorySpace, to: Loc, dtype: ptoc_tensor::DType, span: Span) -> ElabResult<Vec<Hop>> {
        self.check_location(to, span)?;
        match ptoc_isa::shortest_path(self.target, from, to, dtype) {
            Some(path) => {
                if path.iter().any(|h| h.to == MemorySpace::Gm) {
                    let message =
                        format!("{} has no move {from} -> {to}: this goes through global memory", self.target.name);
                    let note = Diagnostic::note(codes::THROUGH_GLOBAL_MEMORY, span, message)
                        .with_label("a TSTORE and a TLOAD of scratch memory");
                    if !self.diags.contains(&note) {
                        self.diags.push(note);
                    }
                }
                Ok(path)
            }
            // The matrix unit does not have this dtype, and the accumulator said so.
            None if matches!(to, Loc::Left | Loc::Right | Loc::Bias) && self.refused.contains(&dtype) => {
                Err(ErrorReported)
            }
            None => {
                let d = match ptoc_isa::check_move(self.target, from, to, dtype, dtype) {
                    Err(v) => v.diagnostic(span),
                    Ok(_) => Diagnostic::error(codes::NO_MOVE_PATH, span, format!("no way from {from} to {to}")),
                };
                let d = match self.b.kernel().host {
                    true => d.with_note("the host runs this kernel, and has Vec alone"),
                    false => d,
                };
                self.report(d)
            }
        }
    }

    fn named_hidden(
        &mut self,
        loc: Loc,
        ty: TileType,
        caps: (u32, u32),
        shape: super::tiles::Shape,
        span: Span,
    ) -> ElabResult<TileVal> {
        self.check_tile_type(ty, span)?;
        Ok(self.new_tile(&format!("{loc}(..)"), ty, caps, shape, span))
    }

    /// A stop on the way to `end` is sized so that the last tile is legal and equal to it.
    fn sized_for(&self, loc: Loc, end: Loc, dtype: ptoc_tensor::DType, rows: u32, cols: u32) -> TileType {
        let last = self.hidden_type(end, dtype, rows, cols);
        if loc == end {
            return last;
        }
        let mut ty = self.hidden_type(loc, dtype, last.rows, last.cols);
        ty.order = Order::Nd;
        ty
    }

    /// The tile in scratch memory.
    pub(crate) fn store_to_scratch(&mut self, t: &TileVal, span: Span, at: Span) -> ElabResult<View> {
        let shape = self.valid_of(t, at)?;
        let g = self.scratch_tensor(t.ty.dtype, t.rows, t.cols, span);
        let view = self.scratch_view(g, t.ty.dtype, t, shape);
        let id = instr_for(Sem::Store).ok_or(ErrorReported)?;
        self.apply(id, vec![Opnd::View(view.clone(), span), tile(*t, at)], InstAttrs::default(), span)?;
        Ok(view)
    }

    fn hop(&mut self, hop: Hop, t: TileVal, end: Loc, span: Span, at: Span) -> ElabResult<TileVal> {
        let shape = self.valid_of(&t, at)?;
        let dtype = t.ty.dtype;
        match (hop.from, hop.to) {
            (MemorySpace::Tile(_), MemorySpace::Tile(loc)) => {
                let ty = self.sized_for(loc, end, dtype, t.rows, t.cols);
                let d = self.named_hidden(loc, ty, (t.rows, t.cols), shape, span)?;
                let id = instr_for(Sem::Move).ok_or(ErrorReported)?;
                self.apply(id, vec![tile(d, span), tile(t, at)], InstAttrs::default(), span)?;
                Ok(d)
            }
            (_, MemorySpace::Gm) => {
                self.pending_gm = Some(self.store_to_scratch(&t, span, at)?);
                Ok(t)
            }
            (MemorySpace::Gm, MemorySpace::Tile(loc)) => {
                let view = self.pending_gm.take().ok_or(ErrorReported)?;
                let ty = self.sized_for(loc, end, dtype, t.rows, t.cols);
                let d = self.named_hidden(loc, ty, (t.rows, t.cols), shape, span)?;
                let id = instr_for(Sem::Load).ok_or(ErrorReported)?;
                self.apply(id, vec![tile(d, span), Opnd::View(view, span)], InstAttrs::default(), span)?;
                Ok(d)
            }
        }
    }

    fn scratch_view(
        &mut self,
        g: ptoc_ir::tile::TensorId,
        dtype: ptoc_tensor::DType,
        t: &TileVal,
        shape: super::tiles::Shape,
    ) -> View {
        let (zero, one, width) = (self.idx(0), self.idx(1), self.idx(i64::from(t.cols)));
        let modes = vec![self.axis(shape.0, Some(t.rows), vec![width]), self.axis(shape.1, Some(t.cols), vec![one])];
        let window = WindowMap::new(vec![Quantity::Offset], vec![zero], modes);
        View { tensor: g, dtype, elem: Elem::Whole(dtype), swizzle: None, window }
    }
}

fn saturate(f: f64, (lo, hi): (i128, i128)) -> i128 {
    if f.is_nan() { 0 } else { (f as i128).clamp(lo, hi) }
}

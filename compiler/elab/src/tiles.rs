//! Tiles as storage: making them, naming windows, following valid shapes through the program.

use super::{ElabResult, Elaborator, ErrorReported, Valid};
use ptoc_diagnostics::{Diagnostic, Span, codes};
use ptoc_ir::tile::{AddrKind, Op, TensorData, TensorDir, TileData, TileRef, Value};
use ptoc_isa::{BinOp, Loc, TileType};
use ptoc_syntax::ast::{Arg, Expr, ExprKind};
use ptoc_tensor::DType;
use ptoc_values::{TileArray, TileSpec, TileVal, Val};

/// Rows and columns.
pub(crate) type Shape = (Value, Value);

/// What a vector is beside a column.
const VECTOR: &str = "a vector is a row to a tile; `col` makes it a column";

impl Elaborator<'_> {
    /// New storage, alive from here.
    pub(crate) fn new_tile(
        &mut self,
        name: &str,
        ty: TileType,
        (rows, cols): (u32, u32),
        valid: Shape,
        span: Span,
    ) -> TileVal {
        let tile = self.b.tile(TileData {
            name: name.into(),
            ty,
            count: 1,
            stages: 1,
            addr: AddrKind::Auto,
            hidden: true,
            span,
        });
        self.emit(Op::Alloc { tile }, span);
        self.worked = true;
        self.valid.insert(tile, Valid::Known(valid.0, valid.1));
        TileVal { tile, ty, element: None, origin: None, rows, cols, valid: None, temp: true }
    }

    /// A Vec tile for an intermediate result.
    pub(crate) fn temp(&mut self, dtype: DType, caps: (u32, u32), valid: Shape, span: Span) -> ElabResult<TileVal> {
        self.outside_prologue(span)?;
        // Masks are packed, and have one place.
        let loc = if dtype == DType::Bool { Loc::Vec } else { self.target.temporaries() };
        let ty = self.hidden_type(loc, dtype, caps.0, caps.1);
        self.check_tile_type(ty, span)?;
        Ok(self.new_tile("temporary", ty, caps, valid, span))
    }

    /// Where a Vec result goes: `dest` if it fits, else a temporary.
    pub(crate) fn result(
        &mut self,
        dtype: DType,
        caps: (u32, u32),
        valid: Shape,
        dest: Option<TileVal>,
        span: Span,
    ) -> ElabResult<TileVal> {
        match dest {
            Some(d)
                if d.ty.loc.is_vector()
                    && d.ty.loc != Loc::Bank
                    && d.ty.dtype == dtype
                    && d.rows == caps.0
                    && d.cols == caps.1 =>
            {
                Ok(d)
            }
            _ => self.temp(dtype, caps, valid, span),
        }
    }

    /// `tile T`, once for each of `names` (at least one).
    pub(crate) fn declare_tile(
        &mut self,
        name: &str,
        spec: &TileSpec,
        address: Option<u64>,
        span: Span,
    ) -> ElabResult<Val> {
        self.outside_prologue(span)?;
        let addr = match address {
            Some(a) => AddrKind::Fixed(vec![a; spec.count as usize]),
            None => AddrKind::Auto,
        };
        let data = TileData {
            name: name.into(),
            ty: spec.ty,
            count: spec.count,
            stages: self.stages,
            addr,
            hidden: false,
            span,
        };
        let tile = self.b.tile(data);
        self.emit(Op::Alloc { tile }, span);
        if let Some(pad) = spec.pad {
            self.pads.insert(tile, pad);
        }
        self.valid.insert(tile, Valid::Known(spec.valid.0, spec.valid.1));
        let (rows, cols) = (spec.rows, spec.cols);
        Ok(if spec.array {
            Val::TileArray(TileArray { tile, ty: spec.ty, rows, cols, count: spec.count })
        } else {
            Val::Tile(TileVal { tile, ty: spec.ty, element: None, origin: None, rows, cols, valid: None, temp: false })
        })
    }

    /// A temporary gets the name that a `let` gives it.
    pub(crate) fn adopt(&mut self, t: &mut TileVal, name: &str, span: Span) {
        if !t.temp {
            return;
        }
        t.temp = false;
        let stages = self.stages;
        let data = &mut self.b.kernel_mut().tiles[t.tile];
        data.name = name.into();
        data.hidden = false;
        data.span = span;
        data.stages = stages;
    }

    /// The valid shape with which `t` is read here.
    pub(crate) fn valid_of(&mut self, t: &TileVal, span: Span) -> ElabResult<Shape> {
        if let Some(v) = t.valid {
            return Ok(v);
        }
        let state = self.valid.get(&t.tile).copied();
        if let Some(state) = state {
            self.valid_reads.push((t.tile, state, span));
        }
        match state {
            Some(Valid::Known(r, c)) => Ok((r, c)),
            Some(Valid::Unknown(met)) => {
                let name = self.b.kernel().tiles[t.tile].name.clone();
                let message = format!("the valid shape of `{name}` depends on the path taken");
                let d = Diagnostic::error(codes::VALID_SHAPE_UNKNOWN, span, message)
                    .with_label("used here")
                    .with_secondary(met, "the paths meet here with different shapes")
                    .with_help("load it again here, or use one tile for each shape");
                self.report(d)
            }
            Some(Valid::InRole(role)) => {
                let name = self.b.kernel().tiles[t.tile].name.clone();
                let message = format!("the valid shape of `{name}` is known only in the role that wrote it");
                let d = Diagnostic::error(codes::VALID_SHAPE_UNKNOWN, span, message)
                    .with_label("used here")
                    .with_secondary(role, "depends on what this role has read")
                    .with_help(
                        "read the size before the roles: scalars that are computed there are known in all of them",
                    );
                self.report(d)
            }
            Some(Valid::Poison) | None => Err(ErrorReported),
        }
    }

    /// " of `t`", for a tile that has a name.
    pub(crate) fn of_tile(&self, t: &TileVal) -> String {
        let data = &self.b.kernel().tiles[t.tile];
        if data.hidden { String::new() } else { format!(" of `{}`", data.name) }
    }

    /// `t` is written with this valid shape.
    pub(crate) fn write_valid(&mut self, t: &TileVal, shape: Shape, span: Span) -> ElabResult<Shape> {
        if let Some(fixed) = t.valid {
            self.same_shape(fixed, shape, span, None)?;
            return Ok(fixed);
        }
        // The planner and the emitters rely on it: valid <= capacity.
        let of = self.of_tile(t);
        self.require_valid(shape.0, t.rows, &format!("rows{of}"), span)?;
        self.require_valid(shape.1, t.cols, &format!("columns{of}"), span)?;
        self.valid.insert(t.tile, Valid::Known(shape.0, shape.1));
        Ok(shape)
    }

    /// Whether two lengths are known to be equal.
    pub(crate) fn lengths_agree(&self, a: Value, b: Value) -> bool {
        a == b || (self.facts.le_certain(a, b, 0) && self.facts.le_certain(b, a, 0))
    }

    /// Whether two lengths are known to differ.
    pub(crate) fn lengths_differ(&self, a: Value, b: Value) -> bool {
        match (self.const_index(a), self.const_index(b)) {
            (Some(x), Some(y)) => x != y,
            _ => self.facts.le_certain(a, b, -1) || self.facts.le_certain(b, a, -1),
        }
    }

    /// Whether two shapes are known to be equal.
    pub(crate) fn shapes_agree(&self, a: Shape, b: Shape) -> bool {
        self.lengths_agree(a.0, b.0) && self.lengths_agree(a.1, b.1)
    }

    /// Two lengths must be equal: identical, refuted, or checked.
    pub(crate) fn same_length(
        &mut self,
        a: Value,
        b: Value,
        what: &str,
        span: Span,
        spans: Option<(Span, Span)>,
    ) -> ElabResult<()> {
        if self.lengths_agree(a, b) {
            return Ok(());
        }
        if let (Some(x), Some(y)) = (self.const_index(a), self.const_index(b)) {
            let message = format!("valid {what} differ: {x} and {y}");
            let counted = |n| format!("{n} {}", if n == 1 { what.trim_end_matches('s') } else { what });
            let d = match spans {
                Some((sa, sb)) => Diagnostic::error(codes::SHAPE_MISMATCH, sb, message)
                    .with_label(counted(y))
                    .with_secondary(sa, counted(x)),
                None => Diagnostic::error(codes::SHAPE_MISMATCH, span, message),
            };
            let d = match self.vector {
                Some(at) => d.with_edits(VECTOR, super::labels::around(at, "col(", ")")),
                None => d,
            };
            return self.report(d);
        }
        if self.facts.le_certain(a, b, -1) || self.facts.le_certain(b, a, -1) {
            let message = format!("valid {what} always differ");
            let d = match spans {
                Some((sa, sb)) => Diagnostic::error(codes::SHAPE_MISMATCH, sb, message)
                    .with_label("this valid shape")
                    .with_secondary(sa, "and this one"),
                None => Diagnostic::error(codes::SHAPE_MISMATCH, span, message),
            };
            return self.report(d);
        }
        let name = |at| self.operand_names.iter().find(|(s, _)| *s == at).map(|(_, name)| name);
        let names = spans.and_then(|(sa, sb)| name(sa).zip(name(sb))).filter(|(x, y)| x != y);
        let of = names.map_or(String::new(), |(x, y)| format!(" of `{x}` and `{y}`"));
        let message = format!("valid {what}{of} differ: {{0}} and {{1}}");
        let help = self.vector.map(|_| format!("{VECTOR}, as in `TSTORE(col(v), t)`"));
        self.check_equal(a, b, message, help, span)
    }

    /// Two shapes must be equal.
    pub(crate) fn same_shape(&mut self, a: Shape, b: Shape, span: Span, spans: Option<(Span, Span)>) -> ElabResult<()> {
        self.same_length(a.0, b.0, "rows", span, spans)?;
        self.same_length(a.1, b.1, "columns", span, spans)
    }

    /// The IR operand, with the given valid shape.
    pub(crate) fn tile_ref(&self, t: &TileVal, valid: Shape) -> TileRef {
        TileRef { tile: t.tile, element: t.element, origin: t.origin, rows: t.rows, cols: t.cols, valid }
    }

    /// `t.tile(e, _)`: a window by blocks.
    pub(crate) fn tile_window(&mut self, t: &TileVal, args: &[Arg], span: Span) -> ElabResult<Val> {
        let parts = self.exactly(args, 2, "t.tile(rows, columns)", span)?;
        let valid = self.valid_of(t, span)?;
        let zero = self.idx(0);
        let mut origin = t.origin.unwrap_or((zero, zero));
        let (mut rows, mut cols, mut shape) = (t.rows, t.cols, valid);
        for (k, e) in parts.into_iter().enumerate() {
            match self.expr(e)? {
                Val::Hole => {}
                Val::Block(b) => {
                    let Some(p) = &b.place else {
                        return self.error(
                            codes::TYPE_MISMATCH,
                            e.span,
                            "this extent has no place: it only sizes tiles",
                        );
                    };
                    let whole = if k == 0 { valid.0 } else { valid.1 };
                    let message = "the block ends at {0}, the tile's valid shape at {1}".to_string();
                    self.require_le(p.end, whole, codes::VIEW_OUT_OF_BOUNDS, message, e.span)?;
                    // A block may be larger than the tile: what there is of it is inside.
                    if k == 0 {
                        origin.0 = self.bin(BinOp::Add, origin.0, p.start, span);
                        (rows, shape.0) = (b.cap.min(t.rows), b.len);
                    } else {
                        origin.1 = self.bin(BinOp::Add, origin.1, p.start, span);
                        (cols, shape.1) = (b.cap.min(t.cols), b.len);
                    }
                }
                Val::Poison => return Err(ErrorReported),
                other => {
                    let message = format!("`.tile` takes blocks and `_`, found {}", other.describe());
                    return self.error(codes::TYPE_MISMATCH, e.span, message);
                }
            }
        }
        Ok(Val::Tile(TileVal { origin: Some(origin), rows, cols, valid: Some(shape), temp: false, ..*t }))
    }

    /// `t[i, j]`: an element; `t[i, _]`: a row; `t[_, j]`: a column.
    pub(crate) fn index_tile(&mut self, t: &TileVal, args: &[Arg], span: Span) -> ElabResult<Val> {
        let parts = self.exactly(args, 2, "t[row, column]", span)?;
        let valid = self.valid_of(t, span)?;
        let (row, col) = (self.expr(parts[0])?, self.expr(parts[1])?);
        if matches!((&row, &col), (Val::Range(..), _) | (_, Val::Range(..))) {
            return self.slice_tile(t, valid, [(&row, parts[0].span), (&col, parts[1].span)], span);
        }
        let zero = self.idx(0);
        let one = self.idx(1);
        let origin = t.origin.unwrap_or((zero, zero));
        match (row, col) {
            (Val::Hole, Val::Hole) => Ok(Val::Tile(*t)),
            (r, Val::Hole) => {
                let i = self.index_of(&r, parts[0].span)?;
                self.check_index(i, valid.0, "the tile's rows", parts[0].span)?;
                let first = self.bin(BinOp::Add, origin.0, i, span);
                Ok(Val::Tile(TileVal {
                    origin: Some((first, origin.1)),
                    rows: 1,
                    valid: Some((one, valid.1)),
                    temp: false,
                    ..*t
                }))
            }
            (Val::Hole, c) => {
                let j = self.index_of(&c, parts[1].span)?;
                self.check_index(j, valid.1, "the tile's columns", parts[1].span)?;
                let first = self.bin(BinOp::Add, origin.1, j, span);
                Ok(Val::Tile(TileVal {
                    origin: Some((origin.0, first)),
                    cols: 1,
                    valid: Some((valid.0, one)),
                    temp: false,
                    ..*t
                }))
            }
            (r, c) => {
                let (i, j) = self.tile_element(valid, (&r, parts[0].span), (&c, parts[1].span))?;
                self.outside_prologue(span)?;
                let r = self.tile_ref(t, valid);
                Ok(Val::Scalar(self.b.tile_get(r, i, j, span)))
            }
        }
    }

    /// Row and column of an element, inside the valid shape: proved or checked.
    pub(crate) fn tile_element(
        &mut self,
        valid: Shape,
        row: (&Val, Span),
        col: (&Val, Span),
    ) -> ElabResult<(Value, Value)> {
        let (i, j) = (self.index_of(row.0, row.1)?, self.index_of(col.0, col.1)?);
        self.check_index(i, valid.0, "the tile's rows", row.1)?;
        self.check_index(j, valid.1, "the tile's columns", col.1)?;
        Ok((i, j))
    }

    /// `arr[b]`
    pub(crate) fn index_array(&mut self, a: &TileArray, args: &[Arg], span: Span) -> ElabResult<Val> {
        let parts = self.exactly(args, 1, "tiles[number]", span)?;
        let v = self.expr(parts[0])?;
        let i = self.index_of(&v, parts[0].span)?;
        let n = self.idx(i64::from(a.count));
        self.check_index(i, n, "the array of tiles", parts[0].span)?;
        Ok(Val::Tile(self.element_of(a, Some(i))))
    }

    /// An element of an array, whose number is known to be inside (`None`: element 0).
    pub(crate) fn element_of(&self, a: &TileArray, element: Option<Value>) -> TileVal {
        let valid = match self.valid.get(&a.tile) {
            Some(Valid::Known(r, c)) => Some((*r, *c)),
            _ => None,
        };
        TileVal { tile: a.tile, ty: a.ty, element, origin: None, rows: a.rows, cols: a.cols, valid, temp: false }
    }

    /// `t.valid(r, c)`: the same storage with another valid shape.
    pub(crate) fn revalid(&mut self, t: &TileVal, args: &[Arg], span: Span) -> ElabResult<Val> {
        let parts = self.exactly(args, 2, "t.valid(rows, columns)", span)?;
        let (r, c) = (self.length(parts[0])?, self.length(parts[1])?);
        self.require_valid(r, t.rows, "rows", parts[0].span)?;
        self.require_valid(c, t.cols, "columns", parts[1].span)?;
        Ok(Val::Tile(TileVal { valid: Some((r, c)), temp: false, ..*t }))
    }

    /// Global memory of the running block, for a move that has to go through it.
    pub(crate) fn scratch_tensor(&mut self, dtype: DType, rows: u32, cols: u32, span: Span) -> ptoc_ir::tile::TensorId {
        let n = self.b.kernel().tensors.values().filter(|t| t.dir == TensorDir::Scratch).count();
        let shape = vec![self.idx(i64::from(rows)), self.idx(i64::from(cols))];
        self.b.tensor(TensorData {
            name: format!("gm{n}").into(),
            dtype,
            dir: TensorDir::Scratch,
            shape,
            optional: false,
            place: None,
            disjoint: false,
            stored: None,
            span,
        })
    }

    /// The literal list of addresses of `at`, with the place of each and of the number in it.
    pub(crate) fn addresses(&mut self, at: &Expr, n: usize) -> ElabResult<Vec<(Val, Span, Option<Span>)>> {
        let one = |s: &mut Self, e: &Expr| -> ElabResult<(Val, Span, Option<Span>)> {
            Ok((s.expr(e)?, e.span, s.literal_of(e)))
        };
        match &*at.kind {
            ExprKind::List(l) => {
                if l.len() != n {
                    let message = format!("{n} address{} needed, {} given", if n == 1 { "" } else { "es" }, l.len());
                    let d = Diagnostic::error(codes::WRONG_ARGUMENTS, at.span, message)
                        .with_label(super::labels::count(l.len(), "address", "addresses"))
                        .with_note("each tile takes one, in the order of the names; an array one for each element");
                    return self.report(d);
                }
                l.iter().map(|e| one(self, e)).collect()
            }
            _ if n == 1 => Ok(vec![one(self, at)?]),
            _ => {
                let d = Diagnostic::error(codes::WRONG_ARGUMENTS, at.span, format!("{n} tiles need {n} addresses"))
                    .with_help("write a list: `at [0x0000, 0x1000]`");
                self.report(d)
            }
        }
    }
}

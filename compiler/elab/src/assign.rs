//! Assignments: to variables, tiles, elements; and TASSIGN, which assigns an address.

use super::inst::instr_for;
use super::labels::around;
use super::tileops::tile;
use super::{ElabResult, Elaborator, ErrorReported, PlaceMode};
use ptoc_diagnostics::{Diagnostic, Edit, Span, codes};
use ptoc_ir::tile::{AddrKind, CheckData, Inst, InstAttrs, Op, Operand, Tile, Ty};
use ptoc_isa::{BinOp, CmpOp, Loc, Sem, TileType};
use ptoc_syntax::ast::*;
use ptoc_tensor::DType;
use ptoc_values::{Binding, TileVal, Val};

/// `target = value` as `TSTORE(target, value)`.
fn stored(target: Span, value: Span) -> Vec<Edit> {
    let at = |offset| Span::new(target.file, offset, offset);
    vec![
        Edit { span: at(target.start), text: "TSTORE(".into() },
        Edit { span: Span::new(target.file, target.end, value.start), text: ", ".into() },
        Edit { span: at(value.end), text: ")".into() },
    ]
}

impl Elaborator<'_> {
    /// `target = value;`
    pub(crate) fn assign(&mut self, target: &Expr, value: &Expr, span: Span) -> ElabResult<()> {
        if let ExprKind::Name(n) = &*target.kind {
            match self.env.get(n).map(|(b, s)| (b.clone(), s)) {
                Some((Binding::Var(var, ty), _)) => {
                    let v = self.expr(value)?;
                    let x = self.scalar_of(&v, ty, value.span)?;
                    self.write_var(var, &format!("`{n}`"), target.span)?;
                    self.b.set(var, x, span);
                    return Ok(());
                }
                Some((Binding::Let(Val::Tile(t)), _)) => {
                    self.tile_destination(&t, target)?;
                    return self.assign_tile(&t, value, span);
                }
                Some((Binding::Let(Val::Part(p)), _)) => return self.assign_part(&p, (target, value), span),
                Some((Binding::Let(Val::Poison), _)) => return Err(ErrorReported),
                Some((Binding::Let(v), at)) => {
                    return self.unchanging(n, &v, target.span, at);
                }
                None => {}
            }
        }
        if let ExprKind::Field(base, name) = &*target.kind
            && let ExprKind::Name(n) = &*base.kind
            && let Some((Binding::Let(Val::Record(r)), at)) = self.env.get(n)
            && !matches!(r.get(&name.name), Some(Val::Tile(_) | Val::View(_)) | None)
        {
            let message = format!("`{n}.{}` is a field of a record, which never changes", name.name);
            let d = Diagnostic::error(codes::NOT_ASSIGNABLE, target.span, message)
                .with_secondary(at, "the record")
                .with_help(format!("make another record, or a variable: `var {0} = {n}.{0};`", name.name));
            return self.report(d);
        }
        // An element that is written is not read first: nothing may have written it yet.
        if let ExprKind::Index(base, args) = &*target.kind
            && self.is_element(base, args)
        {
            return self.assign_element(target, value, span);
        }
        match self.place(target, None)? {
            Val::Tile(t) => {
                self.tile_destination(&t, target)?;
                self.assign_tile(&t, value, span)
            }
            Val::Part(p) => self.assign_part(&p, (target, value), span),
            Val::View(v) if v.modes.is_empty() => {
                self.writable(&v, target.span)?;
                self.outside_prologue(span)?;
                let x = self.expr(value)?;
                let x = self.scalar_of(&x, Ty::D(v.dtype), value.span)?;
                let offset = self.element_offset(&v, target.span)?;
                self.emit(Op::Store { tensor: v.tensor, offset, value: x }, span);
                Ok(())
            }
            Val::View(_) => {
                let d =
                    Diagnostic::error(codes::NOT_ASSIGNABLE, target.span, "a window of a tensor is written by TSTORE")
                        .with_label("a window of a tensor")
                        .with_edits("store the tile", stored(target.span, value.span));
                self.report(d)
            }
            Val::Scalar(_) => self.assign_element(target, value, span),
            other => {
                let message = format!("{} cannot be assigned to", other.describe());
                self.error(codes::NOT_ASSIGNABLE, target.span, message)
            }
        }
    }

    /// `n` is bound by `let`, or is a parameter or a loop's variable.
    pub fn unchanging(&mut self, n: &Name, v: &Val, at: Span, defined: Span) -> ElabResult<()> {
        if let Some(d) = self.captured_variable(n, at, defined) {
            return self.report(d);
        }
        let d = Diagnostic::error(codes::NOT_ASSIGNABLE, at, format!("`{n}` is {} and never changes", v.describe()))
            .with_secondary(defined, "defined here");
        let d = match (v, self.lets.get(&defined)) {
            (Val::View(_), _) if self.in_program => d.with_help("launch a kernel that writes it"),
            (Val::View(_), _) => d.with_help("store a tile to it: `TSTORE(window, tile);`"),
            (Val::Scalar(_) | Val::Int(_) | Val::Float(_) | Val::Bool(_), Some(stmt)) => {
                let word = Span::new(stmt.file, stmt.start, stmt.start + 3);
                d.with_fix("what changes is declared with `var`", word, "var")
            }
            (Val::Scalar(_) | Val::Int(_) | Val::Float(_) | Val::Bool(_), None) => {
                d.with_help(format!("copy it into a variable: `var my_{n} = {n};`"))
            }
            (Val::Mask(..), _) => d.with_help(
                "storage for a mask is a tile, `let m = tile Vec<bool, rows, columns>;`, to which a comparison is \
                 assigned: `m = t > 0.0;`",
            ),
            _ => d.with_help("only tiles, elements and what `var` declares can be assigned"),
        };
        self.report(d)
    }

    /// `t = value;`: the value is computed into `t`'s storage.
    pub(crate) fn assign_tile(&mut self, t: &TileVal, value: &Expr, span: Span) -> ElabResult<()> {
        // The last instruction may write `t` directly unless `t` is a window of something else it reads.
        let dest = Some(*t).filter(|t| !t.is_laid_out());
        let r = self.expr_into(value, dest).and_then(|v| self.write_tile(t, v, span, value.span));
        if r.is_err() {
            self.forget(&tile(*t, span));
        }
        r
    }

    fn write_tile(&mut self, t: &TileVal, v: Val, span: Span, at: Span) -> ElabResult<()> {
        match v {
            Val::Mask(m, false) => self.write_tile(t, Val::Tile(m), span, at),
            Val::Mask(m, true) => {
                let Val::Tile(m) = self.tile_unary(ptoc_isa::UnOp::Not, m, None, span, at)? else {
                    return Err(ErrorReported);
                };
                self.write_tile(t, Val::Tile(m), span, at)
            }
            Val::Tile(x) if x.tile == t.tile && x.element == t.element && x.origin == t.origin => Ok(()),
            // Instructions walk rows, a copy follows the layout.
            Val::Tile(_) | Val::Scalar(_) | Val::Int(_) | Val::Float(_) if t.is_laid_out() => {
                let shape = self.valid_of(t, span)?;
                let all = self.tile_part(t, shape);
                self.write_part(&all, v, span, (span, at))
            }
            Val::Tile(x) => {
                if x.ty.dtype != t.ty.dtype {
                    let d = Diagnostic::error(
                        codes::DTYPE_MISMATCH,
                        at,
                        format!("the tile holds `{}`, the value is `{}`", t.ty.dtype, x.ty.dtype),
                    )
                    .with_label(format!("`{}`", x.ty.dtype))
                    .with_secondary(self.b.kernel().tiles[t.tile].span, format!("`{}`", t.ty.dtype));
                    // A mask is no number, and no number is a mask.
                    let d = match (t.ty.dtype, x.ty.dtype) {
                        (to, DType::Bool) => {
                            let numbers = if to.is_float() { "1.0, 0.0" } else { "1, 0" };
                            d.with_help(format!("`select(mask, {numbers})` makes numbers of a mask"))
                        }
                        (DType::Bool, _) => d.with_help("a comparison makes a mask: `x != 0`"),
                        (to, _) => Elaborator::convert_fix(d, Ty::D(to), at),
                    };
                    return self.report(d);
                }
                if (x.rows, x.cols) != (t.rows, t.cols) && !self.same_valid(&x, t, at)? {
                    let message = format!("the tile is {} x {}, the value {} x {}", t.rows, t.cols, x.rows, x.cols);
                    let d = Diagnostic::error(codes::CAPACITY_MISMATCH, at, message)
                        .with_label(format!("{} x {}", x.rows, x.cols))
                        .with_secondary(self.b.kernel().tiles[t.tile].span, format!("{} x {}", t.rows, t.cols))
                        .with_help(
                            "give both the same extents; `=` writes a whole tile, `t.tile(i, j) = ..` a part of it",
                        );
                    return self.report(d);
                }
                let x = if x.ty.loc == t.ty.loc || matches!((x.ty.loc, t.ty.loc), (Loc::Mat, _)) {
                    x
                } else {
                    let Val::Tile(x) = self.to_location(t.ty.loc, Val::Tile(x), None, span, at)? else {
                        return Err(ErrorReported);
                    };
                    x
                };
                let id = instr_for(Sem::Move).ok_or(ErrorReported)?;
                self.apply(id, vec![tile(*t, span), tile(x, at)], InstAttrs::default(), span)
            }
            Val::Scalar(_) | Val::Int(_) | Val::Float(_) => {
                // `acc = 0.0` is the start of an accumulation: TEXPANDS is for Vec and Mat only, so Acc takes it as
                // the product with nothing that it is.
                self.expand_into(t, v, at, span)
            }
            Val::View(_) => {
                let d = Diagnostic::error(codes::TYPE_MISMATCH, at, "a window of a tensor is loaded by TLOAD")
                    .with_label("a window of a tensor")
                    .with_edits("load it", around(at, &format!("{}(", t.ty.loc), ")"));
                self.report(d)
            }
            Val::Poison => Err(ErrorReported),
            other => {
                let message = format!("{} cannot be assigned to a tile", other.describe());
                let d = Diagnostic::error(codes::TYPE_MISMATCH, at, message).with_label(other.describe());
                self.report(match other {
                    Val::Bool(_) if t.ty.dtype == DType::Bool => {
                        d.with_help("a mask is what a comparison gives: `m = t > 0.0;`")
                    }
                    Val::Part(_) => d.with_edits("make a tile of it", around(at, &format!("{}(", t.ty.loc), ")")),
                    _ => d,
                })
            }
        }
    }

    /// Whether two tiles of different capacities are known to have the same valid shape here.
    fn same_valid(&mut self, a: &TileVal, b: &TileVal, at: Span) -> ElabResult<bool> {
        let (a, b) = (self.valid_of(a, at)?, self.valid_of(b, at)?);
        Ok(self.shapes_agree(a, b))
    }

    fn expand_into(&mut self, t: &TileVal, v: Val, at: Span, span: Span) -> ElabResult<()> {
        if t.ty.loc == Loc::Acc {
            let zero = match &v {
                Val::Float(f) => *f == 0.0,
                Val::Int(i) => *i == 0,
                Val::Scalar(x) => self.b.const_of(*x).is_some_and(|c| c.bits == 0),
                _ => false,
            };
            if !zero {
                let d = Diagnostic::error(codes::LOCATION_MISMATCH, at, "an accumulator can only be started at zero")
                    .with_label("not zero")
                    .with_help("`acc = 0.0;`, or TMATMUL_BIAS for another start");
                return self.report(d);
            }
            // TEXPANDS has no Acc form in the table; IR has one for this start alone (see `verify`).
            self.outside_prologue(span)?;
            let value = self.scalar_of(&v, Ty::D(t.ty.dtype), at)?;
            let shape = self.valid_of(t, span)?;
            let id = instr_for(Sem::Expand).ok_or(ErrorReported)?;
            let operands = vec![Operand::Tile(self.tile_ref(t, shape)), Operand::Scalar(value)];
            self.b.inst(Inst { instr: id, operands, scratch: Vec::new(), attrs: InstAttrs::default() }, span);
            return Ok(());
        }
        self.expand_scalar(t, v, at, span)
    }

    /// `target op= value;`
    pub(crate) fn op_assign(&mut self, target: &Expr, op: BinaryOp, value: &Expr, span: Span) -> ElabResult<()> {
        if let ExprKind::Name(n) = &*target.kind
            && let Some((Binding::Var(var, ty), _)) = self.env.get(n).map(|(b, s)| (b.clone(), s))
        {
            let v = self.expr(value)?;
            self.read_var(var, &format!("`{n}`"), target.span)?;
            self.write_var(var, &format!("`{n}`"), target.span)?;
            let now = Val::Scalar(self.b.get(var, target.span));
            let r = self.binary(op, now, v, None, span, (target.span, value.span))?;
            let x = self.scalar_of(&r, ty, span)?;
            self.b.set(var, x, span);
            return Ok(());
        }
        if let ExprKind::Name(n) = &*target.kind
            && let Some((Binding::Let(v), at)) = self.env.get(n).map(|(b, s)| (b.clone(), s))
            && matches!(v, Val::Scalar(_) | Val::Int(_) | Val::Float(_) | Val::Bool(_))
        {
            return self.unchanging(n, &v, target.span, at);
        }
        if let ExprKind::Index(base, args) = &*target.kind
            && self.is_element(base, args)
        {
            return self.update_element((target, base, args), op, value, span);
        }
        match self.place(target, None)? {
            Val::Tile(t) if t.ty.loc == Loc::Acc => {
                let message = "an accumulator is added to by the matrix unit alone";
                let d = Diagnostic::error(codes::LOCATION_MISMATCH, target.span, message)
                    .with_label("in Acc")
                    .with_help("accumulate products: `TMATMUL_ACC(acc, acc, left, right);`");
                self.report(d)
            }
            Val::Tile(t) if t.is_laid_out() => {
                let shape = self.valid_of(&t, target.span)?;
                let all = self.tile_part(&t, shape);
                self.update_part(&all, (target, value), op, span)
            }
            Val::Tile(t) => {
                self.tile_destination(&t, target)?;
                let v = self.expr(value)?;
                let r = self.binary(op, Val::Tile(t), v, Some(t), span, (target.span, value.span))?;
                self.write_tile(&t, r, span, span)
            }
            Val::Part(p) => self.update_part(&p, (target, value), op, span),
            Val::View(view) if view.modes.is_empty() => {
                self.writable(&view, target.span)?;
                self.readable(&view, target.span)?;
                let now = self.element(Val::View(view.clone()), target.span)?;
                let v = self.expr(value)?;
                let r = self.binary(op, now, v, None, span, (target.span, value.span))?;
                let x = self.scalar_of(&r, Ty::D(view.dtype), span)?;
                let offset = self.element_offset(&view, target.span)?;
                self.emit(Op::Store { tensor: view.tensor, offset, value: x }, span);
                Ok(())
            }
            Val::Poison => Err(ErrorReported),
            other => self.no_place(&other, target),
        }
    }

    /// `TASSIGN(tile, address);`
    pub(crate) fn tassign(&mut self, args: &[Arg], span: Span) -> ElabResult<Val> {
        let placed = self.tassign_checked(args, span);
        if placed.is_err() {
            self.refused_place(args);
        }
        placed
    }

    /// Nothing is placed by a `TASSIGN` that was refused: that its tile has no address follows from that.
    pub(crate) fn refused_place(&mut self, args: &[Arg]) {
        let target = match args.first().map(|a| &*a.value.kind) {
            Some(ExprKind::Name(n)) => self.env.get(n).map(|(b, _)| b),
            _ => None,
        };
        self.refused_places.push(match target {
            Some(Binding::Let(Val::Tile(t) | Val::Mask(t, _))) => Some(t.tile),
            Some(Binding::Let(Val::TileArray(a))) => Some(a.tile),
            _ => None,
        });
    }

    fn tassign_checked(&mut self, args: &[Arg], span: Span) -> ElabResult<Val> {
        let e = self.exactly(args, 2, "TASSIGN(tile, address)", span)?;
        let target = self.expr(e[0])?;
        if self.place == PlaceMode::Planned && self.pin_tile(&target, e[1], span)? {
            return Ok(Val::Unit);
        }
        match target {
            Val::Tile(t) => {
                if t.origin.is_some() || t.valid.is_some() && t.element.is_none() {
                    return self.error(codes::OPERAND_KIND, e[0].span, "TASSIGN places whole tiles, not windows");
                }
                let a = self.expr(e[1])?;
                let at = (e[1].span, self.literal_of(e[1]));
                match t.element {
                    None => self.place_tile(t.tile, t.ty, None, &a, at, span)?,
                    Some(k) => match self.const_index(k) {
                        Some(k) => self.place_tile(t.tile, t.ty, Some(k as u32), &a, at, span)?,
                        None => {
                            return self
                                .not_yet(e[0].span, "TASSIGN of a tile array's element that is chosen at run time");
                        }
                    },
                }
                Ok(Val::Unit)
            }
            Val::View(_) => {
                let d = Diagnostic::error(
                    codes::TASSIGN_ON_TENSOR,
                    e[0].span,
                    "TASSIGN places tiles, this is a global tensor",
                )
                .with_note("tensors are bound by the launch; the language has no pointers")
                .with_help("declare a tile and TLOAD the window into it");
                self.report(d)
            }
            Val::Poison => Err(ErrorReported),
            other => {
                let message = format!("TASSIGN places tiles, this is {}", other.describe());
                self.error(codes::OPERAND_KIND, e[0].span, message)
            }
        }
    }

    /// The number that an address is written as: here, or where this file defines the constant that is named.
    pub(crate) fn literal_of(&self, e: &Expr) -> Option<Span> {
        match &*e.kind {
            ExprKind::Int(_) => Some(e.span),
            ExprKind::Paren(inner) => self.literal_of(inner),
            ExprKind::Unary(UnaryOp::Neg, of) => self.literal_of(of).map(|_| e.span),
            ExprKind::Name(n) if self.env.get(n).is_none() => {
                let id = *self.modules.get(self.module).scope.get(n)?;
                match &self.modules.item(id).kind {
                    ItemKind::Const(c) if id.module == self.module && matches!(&*c.value.kind, ExprKind::Int(_)) => {
                        Some(c.value.span)
                    }
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// Units in memory have registers: what they hold when is the compiler's, and their numbers are no variables.
    fn no_such_address(&mut self, ty: TileType, at: Span) -> ElabResult<()> {
        let name = &self.target.name;
        let (message, note, help) = match self.binds_tiles() {
            true => (
                format!("an address in a store of {name} is a number, given once"),
                "units have registers, which no program counts through: the blocks of a loop are the same instructions",
                "give a number before loops and conditions, or leave the address out",
            ),
            false => (
                format!("the stores of {name} have no addresses"),
                "units in memory have registers, which the compiler gives out",
                "leave the address out",
            ),
        };
        let d = Diagnostic::error(codes::ASSIGN_IN_UNIT, at, message).with_label(format!("for a tile in {}", ty.loc));
        self.report(d.with_note(note).with_help(help))
    }

    /// Whether tiles of the units may be bound to numbers all the same: they say which tiles have a register in common.
    fn binds_tiles(&self) -> bool {
        self.target.unit.is_some_and(|u| matches!(u.kind, ptoc_isa::UnitKind::HbmPim(_)))
    }

    /// Binds (an element of) a tile to an address, which stands `at` its place and is perhaps a number there.
    pub(crate) fn place_tile(
        &mut self,
        t: Tile,
        ty: TileType,
        element: Option<u32>,
        a: &Val,
        (at, literal): (Span, Option<Span>),
        span: Span,
    ) -> ElabResult<()> {
        let shared = match a {
            Val::Tile(other) => Some(self.bytes_of(t, ty, other, at)?),
            _ => None,
        };
        let a = shared.as_ref().unwrap_or(a);
        let known = self.int_const(a);
        let straight = self.loops.is_empty() && self.b.region_depth() <= 2;
        if !(self.target.has_addresses() || known.is_some() && straight && self.binds_tiles()) {
            return self.no_such_address(ty, at);
        }
        if let Some(addr) = known {
            let violations = ptoc_isa::check_address(self.target, ty, addr);
            if !violations.is_empty() {
                let data = &self.b.kernel().tiles[t];
                let (name, declared) = (data.name.to_string(), data.span);
                for v in violations {
                    let d = v
                        .editing(literal)
                        .diagnostic(&format!("tile `{name}`"), at)
                        .with_secondary(declared, format!("`{name}`: {ty}, {} bytes", ty.bytes()));
                    let _: ElabResult<()> = self.report(d);
                }
                // The tile counts as placed: it was given an address, and what follows can be judged.
                let data = &mut self.b.kernel_mut().tiles[t];
                if matches!(data.addr, AddrKind::Auto) {
                    data.addr = AddrKind::Fixed(vec![u64::MAX; data.count as usize]);
                }
                if let AddrKind::Fixed(list) = &mut data.addr {
                    list[element.unwrap_or(0) as usize] = 0;
                }
                return Ok(());
            }
        }
        match a {
            Val::Int(_) => {}
            Val::Scalar(v) if self.ty(*v) == Ty::Index => {}
            Val::Scalar(v) if matches!(self.ty(*v), Ty::D(d) if d.is_int()) => {}
            Val::Poison => return Err(ErrorReported),
            other => {
                let what = self.scalar_ty(other).map_or_else(|| other.describe().to_string(), |t| format!("`{t}`"));
                let d = Diagnostic::error(codes::ADDRESS_TYPE, at, format!("an address is an integer, this is {what}"))
                    .with_label("no integer")
                    .with_note("an address is a byte offset in the tile's memory, as in `TASSIGN(x, 0x1000);`");
                return self.report(d);
            }
        }
        if self.place == PlaceMode::Auto {
            return Ok(());
        }
        self.outside_prologue(span)?;
        let count = self.b.kernel().tiles[t].count as usize;
        match known {
            Some(addr) if straight => {
                let data = &mut self.b.kernel_mut().tiles[t];
                let k = element.unwrap_or(0) as usize;
                match &mut data.addr {
                    AddrKind::Fixed(list) if k < list.len() && list[k] == u64::MAX => list[k] = addr as u64,
                    AddrKind::Auto => {
                        let mut list = vec![u64::MAX; count];
                        list[k] = addr as u64;
                        data.addr = AddrKind::Fixed(list);
                    }
                    // A second address: the binding changes while the kernel runs.
                    _ => return self.rebind(t, ty, element, a, at, span),
                }
                Ok(())
            }
            _ => self.rebind(t, ty, element, a, at, span),
        }
    }

    /// The address of `other`, for a tile that is to share its bytes.
    fn bytes_of(&mut self, t: Tile, ty: TileType, other: &TileVal, at: Span) -> ElabResult<Val> {
        let (name, theirs) = (self.b.kernel().tiles[t].name.to_string(), self.b.kernel().tiles[other.tile].clone());
        let whole = other.origin.is_none();
        let element = other.element.map_or(Some(0), |v| self.const_index(v));
        let address = match (&theirs.addr, element) {
            (AddrKind::Fixed(list), Some(k)) => list.get(k as usize).copied().filter(|a| *a != u64::MAX),
            _ => None,
        };
        let wrong = |message: String| {
            Diagnostic::error(codes::ADDRESS_TYPE, at, message)
                .with_label("not bytes to share")
                .with_secondary(theirs.span, format!("`{}`: {}", theirs.name, theirs.ty))
        };
        let d = match address {
            _ if t == other.tile => wrong(format!("`{name}` cannot lie on itself")),
            _ if !whole => wrong("a tile shares the bytes of a whole tile, not of a window".into()),
            _ if theirs.ty.loc != ty.loc => {
                let message = format!("`{name}` is in {}, `{}` in {}", ty.loc, theirs.name, theirs.ty.loc);
                wrong(message).with_note("tiles of different memories have no bytes in common")
            }
            // Where addresses are ignored, so is this one.
            None if self.place == PlaceMode::Auto => return Ok(Val::Int(0)),
            None => wrong(format!("`{}` has no constant address here", theirs.name))
                .with_help(format!("give `{}` one before: `TASSIGN({}, 0x0);`", theirs.name, theirs.name)),
            Some(address) => {
                self.b.kernel_mut().aliases.push((t, other.tile));
                return Ok(Val::Int(i128::from(address)));
            }
        };
        self.report(d)
    }

    fn rebind(&mut self, t: Tile, ty: TileType, element: Option<u32>, a: &Val, at: Span, span: Span) -> ElabResult<()> {
        let addr = match a {
            Val::Scalar(v) if self.ty(*v) != Ty::Index => self.convert_scalar(*v, Ty::Index, at),
            a => self.index_of(a, at)?,
        };
        let count = self.b.kernel().tiles[t].count;
        let earlier = self.b.kernel().tiles[t].addr.clone();
        self.b.kernel_mut().tiles[t].addr = AddrKind::Dynamic;
        // A constant binding made before becomes one of the same kind. It held from the declaration on, so it goes
        // there: what lies between used it.
        if let AddrKind::Fixed(list) = earlier {
            for (k, old) in list.into_iter().enumerate().filter(|(_, a)| *a != u64::MAX) {
                let addr = self.idx(old as i64);
                let element = if count > 1 { Some(self.idx(k as i64)) } else { None };
                let op = Op::Assign { tile: t, element, addr };
                if !self.b.emit_after_alloc(t, op.clone(), span) {
                    self.emit(op, span);
                }
            }
        }
        // Range, alignment: PTO leaves them unchecked in this form; we do not.
        let capacity = self.target.capacity(ty.loc);
        let align = self.target.memory(ty.loc).align;
        let name = self.b.kernel().tiles[t].name.clone();
        let zero = self.idx(0);
        let message = format!("the address {{1}} of `{name}` is negative");
        self.require_le(zero, addr, codes::ADDRESS_OUT_OF_RANGE, message, at)?;
        // The last address, and not the end of the tile: the sum could wrap around.
        let last = self.idx(capacity as i64 - ty.bytes() as i64);
        let message = format!(
            "`{name}` at {{0}} runs past the end of {}: its {} bytes begin at {{1}} at the latest on {}",
            self.target.memory(ty.loc).name,
            ty.bytes(),
            self.target.name
        );
        self.require_le(addr, last, codes::ADDRESS_OUT_OF_RANGE, message, at)?;
        if !self.facts.multiple_certain(addr, align) {
            let align_v = self.idx(align as i64);
            let rest = self.bin(BinOp::Rem, addr, align_v, at);
            let cond = self.compare(CmpOp::Eq, rest, zero, at);
            let data = CheckData {
                code: codes::ADDRESS_MISALIGNED,
                message: format!("the address {{0}} of `{name}` is not a multiple of {align}"),
                span: at,
                help: None,
            };
            self.check(cond, data, vec![addr], at)?;
        }
        let element = element.map(|k| self.idx(i64::from(k)));
        self.emit(Op::Assign { tile: t, element, addr }, span);
        Ok(())
    }

    /// After the walk: tiles that a `#[place(manual)]` kernel left without an address, arrays placed in part.
    pub(crate) fn finish_places(&mut self) {
        let mut found = Vec::new();
        for (t, data) in &self.b.kernel().tiles {
            let missing = match &data.addr {
                AddrKind::Auto if self.place == PlaceMode::Manual && !data.hidden => {
                    Some((data.name.to_string(), "`#[place(manual)]` wants an address for every tile"))
                }
                AddrKind::Fixed(l) => l.iter().position(|a| *a == u64::MAX).map(|k| {
                    (
                        format!("{}[{k}]", data.name),
                        "an array of tiles has addresses for all of its elements or for none",
                    )
                }),
                _ => None,
            };
            if let Some((name, why)) = missing {
                // One whose tile is not known may be meant for any.
                let refused = self.refused_places.iter().any(|r| r.is_none_or(|r| r == t));
                found.push((t, name, why, data.span, refused));
            }
        }
        for (t, name, why, span, refused) in found {
            self.b.kernel_mut().tiles[t].addr = AddrKind::Auto;
            if refused {
                continue;
            }
            let d = Diagnostic::error(codes::MISSING_TASSIGN, span, format!("`{name}` has no address"))
                .with_label("declared here, placed nowhere")
                .with_note(why)
                .with_help(format!("add `TASSIGN({name}, ..);`"));
            self.report::<()>(d).ok();
        }
    }
}

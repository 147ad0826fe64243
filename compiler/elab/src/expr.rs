//! Expressions.

use super::{ElabResult, Elaborator, ErrorReported};
use ptoc_diagnostics::{Diagnostic, Fix, Span, codes};
use ptoc_ir::tile::{If, Op, Region, Ty};
use ptoc_isa::{BinOp, UnOp};
use ptoc_names::ItemId;
use ptoc_names::builtins::{self, Builtin, Word};
use ptoc_syntax::ast::*;
use ptoc_values::{Binding, TileVal, Val};

impl Elaborator<'_> {
    /// The value of an expression.
    pub fn expr(&mut self, e: &Expr) -> ElabResult<Val> {
        self.expr_into(e, None)
    }

    /// The value of an expression; a tile result may be written to `dest` instead of a temporary.
    pub(crate) fn expr_into(&mut self, e: &Expr, dest: Option<TileVal>) -> ElabResult<Val> {
        let v = self.place(e, dest)?;
        match (&v, &*e.kind) {
            // What an operation on windows leaves is a window, also without modes.
            (Val::View(_), ExprKind::Call(..)) => Ok(v),
            _ => self.element(v, e.span),
        }
    }

    /// Like [`Elaborator::expr_into`], but an element of a tensor stays a place.
    pub(crate) fn place(&mut self, e: &Expr, dest: Option<TileVal>) -> ElabResult<Val> {
        self.step(e.span)?;
        match &*e.kind {
            ExprKind::Name(n) => self.name(n, e.span),
            ExprKind::Int(i) => Ok(Val::Int(*i)),
            ExprKind::Float(f, _) => Ok(Val::Float(*f)),
            ExprKind::Bool(b) => Ok(Val::Bool(*b)),
            ExprKind::Str(s) => Ok(Val::Str(s.clone())),
            ExprKind::Hole => Ok(Val::Hole),
            ExprKind::Paren(a) => self.place(a, dest),
            ExprKind::Tuple(l) => Ok(Val::Tuple(l.iter().map(|x| self.expr(x)).collect::<ElabResult<_>>()?)),
            ExprKind::List(l) => Ok(Val::List(l.iter().map(|x| self.expr(x)).collect::<ElabResult<_>>()?)),
            ExprKind::Record(fields) => self.record(fields, e.span),
            ExprKind::Closure(c) => self.closure(c, e),
            ExprKind::FnType => {
                self.error(codes::TYPE_MISMATCH, e.span, "`fn` is the type of a function, and no value")
            }
            ExprKind::Tiler(modes) => self.tiler_literal(modes),
            ExprKind::Layout(shape, stride) => self.layout_literal(shape, stride, e.span),
            ExprKind::Basis(..) => {
                let d = Diagnostic::error(codes::TYPE_MISMATCH, e.span, "`v@k` is a stride")
                    .with_help("it stands in a layout: `(4, 8):(1@0, 1@1)`");
                self.report(d)
            }
            ExprKind::Unary(op, a) => self.unary(*op, a, dest, e.span),
            ExprKind::Binary(BinaryOp::And, a, b) => self.logic(true, a, b, dest, e.span),
            ExprKind::Binary(BinaryOp::Or, a, b) => self.logic(false, a, b, dest, e.span),
            ExprKind::Binary(op @ (BinaryOp::Eq | BinaryOp::Ne), a, b) if self.is_none(a) || self.is_none(b) => {
                self.compare_none(*op, if self.is_none(a) { b } else { a })
            }
            ExprKind::Binary(op, a, b) => {
                let (x, y) = (self.expr(a), self.expr(b));
                let (x, y) = (x?, y?);
                self.binary(*op, x, y, dest, e.span, (a.span, b.span))
            }
            ExprKind::Index(base, args) => self.index(base, args, e.span),
            ExprKind::Call(callee, args) => self.call(callee, args, dest, e.span),
            ExprKind::Field(base, name) => self.field(base, name),
            ExprKind::TupleField(base, k, at) => match self.expr(base)? {
                Val::Tuple(l) if (*k as usize) < l.len() => Ok(l[*k as usize].clone()),
                Val::Tuple(l) => {
                    self.error(codes::UNKNOWN_MEMBER, *at, format!("the tuple has {} parts, no `.{k}`", l.len()))
                }
                Val::Record(r) => {
                    let d = Diagnostic::error(codes::UNKNOWN_MEMBER, *at, "the fields of a record have names");
                    let names: Vec<String> = r.names().map(|n| format!(".{n}")).collect();
                    self.report(d.with_note(format!("it has: {}", names.join(", "))))
                }
                Val::Poison => Err(ErrorReported),
                other => self.error(codes::UNKNOWN_MEMBER, *at, format!("{} has no `.{k}`", other.describe())),
            },
            ExprKind::Static(base, args) => match self.expr(base)? {
                Val::Word(Word::Loc(l)) => Ok(Val::TileType(self.tile_type(l, args, e.span)?.into())),
                Val::Poison => Err(ErrorReported),
                Val::Builtin(Builtin::NotYet(what)) => self.not_yet(base.span, what),
                Val::Builtin(Builtin::Sync(what)) => self.sync_type(what, args, e.span),
                Val::Builtin(Builtin::Layout("swizzle")) => self.swizzle_literal(args, e.span),
                other => {
                    let message = format!("`<..>` belongs to tile types and calls, not to {}", other.describe());
                    self.error(codes::BAD_TILE_TYPE, e.span, message)
                }
            },
            ExprKind::Range(lo, hi) => {
                let (a, b) = (self.expr(lo)?, self.expr(hi)?);
                let (a, b) = (self.index_of(&a, lo.span)?, self.index_of(&b, hi.span)?);
                Ok(Val::Range(a, b))
            }
            ExprKind::If(i) => self.if_value(i, dest, e.span),
            ExprKind::Tile { ty, at } => {
                let spec = self.tile_spec(ty)?;
                let mut made = self.make_tiles(&spec, at.as_ref(), &["tile".into()], e.span)?;
                made.pop().ok_or(ErrorReported)
            }
            ExprKind::Tensor { .. } => {
                let d = Diagnostic::error(codes::TYPE_MISMATCH, e.span, "a kernel has no tensors of its own")
                    .with_help("declare it in a `program` and pass it as an argument");
                self.report(d)
            }
            ExprKind::Error => Err(ErrorReported),
        }
    }

    /// What a name stands for.
    pub fn name(&mut self, n: &Name, span: Span) -> ElabResult<Val> {
        match self.env.get(n) {
            Some((Binding::Let(Val::Poison), _)) => return Err(ErrorReported),
            Some((Binding::Let(Val::Absent(_)), at)) => return self.absent_used(n, span, at),
            Some((Binding::Let(v), _)) => return Ok(v.clone()),
            Some((Binding::Var(var, _), _)) => {
                let var = *var;
                self.read_var(var, &format!("`{n}`"), span)?;
                let v = self.b.get(var, span);
                self.size_origin(v, || n.to_string());
                return Ok(Val::Scalar(v));
            }
            None => {}
        }
        if let Some(&id) = self.modules.get(self.module).scope.get(n) {
            return self.item(id, span);
        }
        if let Some(w) = builtins::word(n) {
            return match w {
                Word::NotYet(what) => self.not_yet(span, what),
                Word::Inf => Ok(Val::Float(f64::INFINITY)),
                Word::Nan => Ok(Val::Float(f64::NAN)),
                Word::None => Ok(Val::Nothing),
                Word::DType(d) => {
                    let instead = self.bindings.retyped.iter().find(|(from, _)| *from == d);
                    Ok(Val::Word(Word::DType(instead.map_or(d, |(_, to)| *to))))
                }
                w => Ok(Val::Word(w)),
            };
        }
        if let Some(b) = builtins::function(n) {
            return Ok(Val::Builtin(b));
        }
        if let Some(i) = ptoc_isa::lookup(n) {
            return Ok(Val::Instr(i));
        }
        // Reported when names were resolved, unless it is a name of the item that has no value yet.
        self.unknown.get_or_insert((n.clone(), span));
        Err(ErrorReported)
    }

    fn item(&mut self, id: ItemId, span: Span) -> ElabResult<Val> {
        let modules = self.modules;
        match &modules.item(id).kind {
            ItemKind::Fn(_) => Ok(Val::Fn(id)),
            ItemKind::Const(c) => {
                if self.calls.contains(&Some(id)) {
                    return self.error(
                        codes::RECURSION,
                        span,
                        format!("constant `{}` is defined by itself", c.name.name),
                    );
                }
                self.calls.push(Some(id));
                let module = std::mem::replace(&mut self.module, id.module);
                self.env.push_frame();
                let v = self.const_value(c);
                self.env.pop_frame();
                self.module = module;
                self.calls.pop();
                v
            }
            ItemKind::Kernel(_) | ItemKind::Program(_) => {
                let d = Diagnostic::error(codes::TYPE_MISMATCH, span, "a kernel is no value")
                    .with_help("kernels are launched from a `program`");
                self.report(d)
            }
            // Its faults were reported with the names.
            ItemKind::Atom(a) => match ptoc_names::atom(a) {
                Ok(atom) => Ok(Val::Algebra(atom.into())),
                Err(_) => Err(ErrorReported),
            },
            ItemKind::Use(_) | ItemKind::Error => Err(ErrorReported),
        }
    }

    /// The value of a `const`, with its declared type.
    pub(crate) fn const_value(&mut self, c: &ConstItem) -> ElabResult<Val> {
        let v = self.expr(&c.value)?;
        if !self.is_constant(&v) {
            let d = Diagnostic::error(codes::NOT_CONSTANT, c.value.span, "a `const` must be known at compile time")
                .with_label(self.computed_late())
                .with_help("use `let` for what is not known before");
            return self.report(d);
        }
        match &c.ty {
            None => Ok(v),
            Some(t) => {
                let ty = self.scalar_type(t)?;
                Ok(Val::Scalar(self.scalar_of(&v, ty, c.value.span)?))
            }
        }
    }

    /// Whether it is known at compile time.
    pub fn is_constant(&self, v: &Val) -> bool {
        match v {
            Val::Scalar(x) => self.b.const_of(*x).is_some(),
            Val::Tile(_) | Val::View(_) | Val::Cut(_) | Val::Mask(..) | Val::Part(_) => false,
            Val::Record(r) => r.fields.iter().all(|(_, v)| self.is_constant(v)),
            Val::Closure(c) => c.captured.iter().all(|(_, v, _)| self.is_constant(v)),
            _ => true,
        }
    }

    fn unary(&mut self, op: UnaryOp, a: &Expr, dest: Option<TileVal>, span: Span) -> ElabResult<Val> {
        let v = self.expr(a)?;
        let un = match op {
            UnaryOp::Neg => UnOp::Neg,
            UnaryOp::Not => UnOp::Not,
        };
        match v {
            Val::Tile(t) => self.tile_unary(un, t, dest, span, a.span),
            Val::Mask(t, negated) if un == UnOp::Not => Ok(Val::Mask(t, !negated)),
            v => self.scalar_unary(un, &v, span, a.span),
        }
    }

    /// `a op b` on scalars or tiles.
    pub(crate) fn binary(
        &mut self,
        op: BinaryOp,
        a: Val,
        b: Val,
        dest: Option<TileVal>,
        span: Span,
        ats: (Span, Span),
    ) -> ElabResult<Val> {
        // What a static parameter is: so code for one function may be another than for all.
        if let (Val::Fn(x), Val::Fn(y), BinaryOp::Eq | BinaryOp::Ne) = (&a, &b, op) {
            return Ok(Val::Bool((x == y) == (op == BinaryOp::Eq)));
        }
        for (v, at) in [(&a, ats.0), (&b, ats.1)] {
            match v {
                Val::View(_) => {
                    let d = Diagnostic::error(
                        codes::TYPE_MISMATCH,
                        at,
                        "operators work on tiles and scalars, this is a window of a tensor",
                    )
                    .with_help("load it: `Vec(..)`");
                    return self.report(d);
                }
                Val::Part(_) => {
                    let d = Diagnostic::error(
                        codes::TYPE_MISMATCH,
                        at,
                        "operators work on tiles and scalars, this is a part of a tile through a layout",
                    )
                    .with_label("its elements do not lie in rows and columns");
                    let parts = [(&a, ats.0), (&b, ats.1)].into_iter().filter(|(v, _)| matches!(v, Val::Part(_)));
                    let edits: Vec<_> = parts.flat_map(|(_, at)| super::labels::around(at, "Vec(", ")")).collect();
                    let fix = if edits.len() > 2 { "copy both to tiles" } else { "copy it to a tile" };
                    return self.report(d.with_edits(fix, edits));
                }
                Val::Block(_) => {
                    let d = Diagnostic::error(codes::TYPE_MISMATCH, at, "a block is no number")
                        .with_help("use `.start`, `.index`, `.len` or `.end`");
                    return self.report(d);
                }
                Val::Record(_) | Val::Closure(_) => {
                    let message = format!("operators work on tiles and scalars, this is {}", v.describe());
                    let d = Diagnostic::error(codes::TYPE_MISMATCH, at, message).with_label(v.describe());
                    return self.report(match v {
                        Val::Record(r) => {
                            d.with_help(format!("name its field: `.{}`", r.names().next().unwrap_or("x")))
                        }
                        _ => d.with_help("call it: `act(x)`"),
                    });
                }
                Val::Nothing => {
                    let d = Diagnostic::error(codes::UNDEFINED_OPERATION, at, "`none` has no value")
                        .with_help("whether an argument was given is `x == none`, `x != none`");
                    return self.report(d);
                }
                _ => {}
            }
        }
        if matches!(a, Val::Algebra(_) | Val::Tuple(_)) || matches!(b, Val::Algebra(_) | Val::Tuple(_)) {
            return self.algebra_binary(op, &a, &b, span, ats);
        }
        match (&a, &b) {
            (Val::Tile(_) | Val::Mask(..), _) | (_, Val::Tile(_) | Val::Mask(..)) => {
                self.tile_binary(op, a, b, dest, span, ats)
            }
            _ => self.scalar_binary(op, &a, &b, span, ats),
        }
    }

    /// `a && b`, `a || b`: the right side is evaluated only if it decides.
    fn logic(&mut self, and: bool, a: &Expr, b: &Expr, dest: Option<TileVal>, span: Span) -> ElabResult<Val> {
        let x = self.expr(a)?;
        match x {
            Val::Bool(v) if v == and => {
                let y = self.expr(b)?;
                return match y {
                    Val::Bool(_) | Val::Mask(..) => Ok(y),
                    y => Ok(Val::Scalar(self.bool_of(&y, b.span)?)),
                };
            }
            // The left side decides, but the right one must still be a condition.
            Val::Bool(v) => return Ok(Val::Bool(v)),
            // A mask decides for each element apart: both sides are computed.
            x if x.as_mask().is_some() => {
                let y = self.expr(b)?;
                let op = if and { BinaryOp::And } else { BinaryOp::Or };
                return self.mask_binary(op, x, y, dest, span, (a.span, b.span));
            }
            _ => {}
        }
        let left = self.bool_of(&x, a.span)?;
        let (region, right) = self.region(|s| {
            s.facts.learn(left, and);
            let y = s.expr(b)?;
            if y.as_mask().is_some() {
                let op = if and { BinaryOp::And } else { BinaryOp::Or };
                s.mask_binary(op, x, y, None, span, (a.span, b.span))?;
                return Err(ErrorReported);
            }
            s.bool_of(&y, b.span)
        });
        let right = right?;
        if region.is_empty() {
            let op = if and { BinOp::And } else { BinOp::Or };
            let v = self.bin(op, left, right, span);
            return Ok(self.fold(v));
        }
        let var = self.b.var(if and { "and" } else { "or" }, Ty::BOOL);
        self.b.set(var, left, span);
        let mut inner = region;
        inner.push(self.noted(Op::Set { var, value: right }, span));
        let (then, els) = if and { (inner, Region::new()) } else { (Region::new(), inner) };
        self.emit(Op::If(Box::new(If { cond: left, then, els })), span);
        let v = self.b.get(var, span);
        self.facts.combined(v, and, left, right);
        Ok(Val::Scalar(v))
    }

    /// A statement for a region that is closed already.
    fn noted(&mut self, op: Op, span: Span) -> ptoc_ir::tile::Stmt {
        self.b.note(&op, span);
        ptoc_ir::tile::Stmt { op, span }
    }

    /// Runs `f` in a new region; facts that were checked in it are forgotten after it.
    pub fn region<T>(&mut self, f: impl FnOnce(&mut Self) -> ElabResult<T>) -> (Region, ElabResult<T>) {
        let (mark, known, seen) = (self.facts.mark(), self.cx.mark(), self.ints_log.len());
        let padded = self.padded_loads.clone();
        self.b.push_region();
        let r = f(self);
        let region = self.b.pop_region();
        self.facts.forget(mark);
        self.cx.forget(known);
        self.padded_loads = padded;
        for v in self.ints_log.drain(seen..) {
            self.ints.remove(&v);
        }
        (region, r)
    }

    fn index(&mut self, base: &Expr, args: &[Arg], span: Span) -> ElabResult<Val> {
        self.no_names(args)?;
        match self.operand_value(base)? {
            Val::View(v) => self.index_view(&v, args, span),
            Val::Cut(v) => {
                self.not_cut(&v.window, "none of their elements or rows is chosen by itself", span)?;
                Err(ErrorReported)
            }
            // Coordinates inside the values of a fragment.
            Val::Tile(t)
                if self.patterns.contains_key(&t.tile)
                    && t.origin.is_none()
                    && args.iter().any(|a| matches!(&*a.value.kind, ExprKind::Tuple(_))) =>
            {
                let window = self.patterns[&t.tile].clone();
                self.index_part(&ptoc_values::TilePartition { tile: t, window, within: None }, args, span)
            }
            Val::Tile(t) => self.index_tile(&t, args, span),
            Val::Part(p) => {
                self.note_rest_uses(&base.kind, &p, args);
                self.index_part(&p, args, span)
            }
            Val::TileArray(a) => self.index_array(&a, args, span),
            Val::TileType(t) => {
                let e = self.exactly(args, 1, "tile T[count]", span)?;
                let v = self.expr(e[0])?;
                let count = self.static_extent(&v, e[0].span, "the number of tiles")?;
                // Tiles take 32 bytes at least: no memory holds as many.
                if count > 1 << 16 {
                    let message = format!("{count} tiles are more than any memory holds");
                    return self.error(codes::BAD_EXTENT, e[0].span, message);
                }
                let mut spec = (*t).clone();
                (spec.count, spec.array) = (count, true);
                Ok(Val::TileType(spec.into()))
            }
            Val::Event(e) => self.index_event(&e, args, span),
            Val::EventType(t) => self.event_array(&t, args, span),
            Val::Tiles(t) => {
                let e = self.exactly(args, 1, "blocks[number]", span)?;
                let v = self.expr(e[0])?;
                let i = self.index_of(&v, e[0].span)?;
                self.check_index(i, t.count, "the set of blocks", e[0].span)?;
                Ok(self.block_at(&t, i, span))
            }
            Val::Tuple(l) | Val::List(l) => {
                let e = self.exactly(args, 1, "list[number]", span)?;
                let v = self.expr(e[0])?;
                let told = self.diags.len();
                let i = self.static_int(&v, e[0].span, "the position in a list").inspect_err(|_| {
                    self.run_over(base, &l, told);
                })?;
                match usize::try_from(i).ok().and_then(|i| l.get(i)) {
                    Some(v) => Ok(v.clone()),
                    None => self.error(
                        codes::INDEX_OUT_OF_BOUNDS,
                        e[0].span,
                        format!("there is no position {i} in a list of {}", l.len()),
                    ),
                }
            }
            Val::Poison => Err(ErrorReported),
            Val::Word(Word::DType(_) | Word::Index) => {
                self.error(codes::TYPE_MISMATCH, span, "a tensor type stands only in a parameter or after `tensor`")
            }
            Val::Ring(r) => {
                let d = Diagnostic::error(codes::TYPE_MISMATCH, base.span, "a ring's slots have no numbers")
                    .with_label("which slot is next, the ring knows")
                    .with_help(format!(
                        "`{0}.acquire()` is the next to fill, `{0}.wait()` the next that is filled",
                        r.name
                    ));
                self.report(d)
            }
            other => self.error(codes::TYPE_MISMATCH, base.span, format!("{} cannot be indexed", other.describe())),
        }
    }

    /// Adds to an error about a position in a list of tiles how a loop takes each of them.
    fn run_over(&mut self, list: &Expr, of: &[Val], told: usize) {
        let Some(d) = self.diags.get_mut(told).filter(|d| d.code == codes::NOT_CONSTANT) else { return };
        if let ExprKind::Name(n) = &*list.kind
            && of.iter().all(|v| matches!(v, Val::Tile(_)))
        {
            d.notes.push("a list has no storage of its own, in which a number could choose a tile".into());
            let help = format!("take them one after the other: `for t in {n} {{ .. }}` is unrolled");
            d.fixes.push(Fix::advice(help));
        }
    }

    fn field(&mut self, base: &Expr, name: &Ident) -> ElabResult<Val> {
        let v = self.expr(base)?;
        let list = match &v {
            Val::Poison => return Err(ErrorReported),
            Val::Algebra(a) => return self.algebra_member(&a.clone(), name),
            Val::Record(r) => return self.record_field(&r.clone(), name),
            Val::Block(b) => return self.block_member(&b.clone(), &name.name, name.span),
            Val::View(view) | Val::Cut(view) if name.name == "T" => {
                return self.transpose_view(&view.clone(), name.span);
            }
            Val::Part(p) if name.name == "T" => return self.transpose_part(&p.clone(), name.span),
            Val::Tile(t) if name.name == "T" => return self.transposed_tile(t, base, name.span),
            Val::Tiles(t) if name.name == "count" => return Ok(Val::Scalar(t.count)),
            Val::Tile(t) if name.name == "rows" => return Ok(Val::Scalar(self.valid_of(t, name.span)?.0)),
            Val::Tile(t) if name.name == "cols" => return Ok(Val::Scalar(self.valid_of(t, name.span)?.1)),
            Val::View(_) => ".T, .tile(..)",
            Val::Tile(_) => ".T, .rows, .cols, .tile(..), .valid(..)",
            Val::Tiles(_) => ".count",
            Val::Ring(_) => ".acquire(), .commit() for who fills slots, .wait(), .release() for who empties them",
            _ => "no members",
        };
        let d =
            Diagnostic::error(codes::UNKNOWN_MEMBER, name.span, format!("{} has no `.{}`", v.describe(), name.name))
                .with_note(format!("it has: {list}"));
        let d = match ptoc_isa::otherwise(&name.name).filter(|_| ptoc_isa::is_spelled(&name.name)) {
            Some(ptoc_isa::Otherwise::As(how)) => d.with_help(format!("PTO's `{}` is {how}", name.name)),
            Some(ptoc_isa::Otherwise::LeftOut(why)) => d.with_note(why),
            None => d,
        };
        self.report(d)
    }

    /// `if c { a } else { b }` for its value.
    fn if_value(&mut self, i: &IfStmt, dest: Option<TileVal>, span: Span) -> ElabResult<Val> {
        let cond = self.expr(&i.cond)?;
        if let Some(mask) = cond.as_mask() {
            let a = self.block_value(&i.then, None)?;
            let b = self.else_value(i, None, span)?;
            let other = i.els.as_deref().map_or(span, else_span);
            return self.tile_select(mask, a, b, dest, span, (i.then.span, other));
        }
        match cond {
            Val::Bool(true) => self.block_value(&i.then, dest),
            Val::Bool(false) => self.else_value(i, dest, span),
            Val::Poison => Err(ErrorReported),
            cond => {
                let c = self.bool_of(&cond, i.cond.span)?;
                self.if_scalar(c, i, span)
            }
        }
    }

    fn else_value(&mut self, i: &IfStmt, dest: Option<TileVal>, span: Span) -> ElabResult<Val> {
        match i.els.as_deref() {
            Some(Else::Block(b)) => self.block_value(b, dest),
            Some(Else::If(i, s)) => self.if_value(i, dest, *s),
            None => {
                let d = Diagnostic::error(codes::TYPE_MISMATCH, span, "an `if` that gives a value needs an `else`");
                self.report(d)
            }
        }
    }

    /// Both arms are scalars; the condition is known when the kernel runs.
    fn if_scalar(&mut self, cond: ptoc_ir::tile::Value, i: &IfStmt, span: Span) -> ElabResult<Val> {
        let before = self.valid.clone();
        let (mut then, a) = self.region(|s| {
            s.facts.learn(cond, true);
            s.block_value(&i.then, None)
        });
        let after_then = std::mem::replace(&mut self.valid, before.clone());
        let (mut els, b) = self.region(|s| {
            s.facts.learn(cond, false);
            s.else_value(i, None, span)
        });
        self.merge_valid(after_then, &before, span);
        let (a, b) = (a?, b?);
        let (sa, sb) = (i.then.tail.as_ref().map_or(i.then.span, |e| e.span), i.els.as_deref().map_or(span, else_span));
        if let (Val::Unit, Val::Unit) = (&a, &b) {
            self.emit(Op::If(Box::new(If { cond, then, els })), span);
            return Ok(Val::Unit);
        }
        for (v, at) in [(&a, sa), (&b, sb)] {
            if matches!(
                v,
                Val::Tile(_)
                    | Val::View(_)
                    | Val::Cut(_)
                    | Val::Part(_)
                    | Val::Block(_)
                    | Val::Tuple(_)
                    | Val::Record(_)
                    | Val::Closure(_)
                    | Val::Algebra(_)
                    | Val::Mask(..)
            ) {
                let d = Diagnostic::error(
                    codes::TYPE_MISMATCH,
                    at,
                    format!("a run-time `if` gives a scalar, this arm is {}", v.describe()),
                )
                .with_help(match v {
                    Val::Record(_) | Val::Tuple(_) => "choose part by part: `(x = if c { a } else { b }, y = ..)`",
                    Val::Closure(_) => "put the `if` into it: `|v| if c { f(v) } else { g(v) }`",
                    _ => "assign to a tile in both arms instead",
                });
                return self.report(d);
            }
        }
        let ty = self.scalar_ty(&a).or_else(|| self.scalar_ty(&b)).unwrap_or(match (&a, &b) {
            (Val::Float(_), _) | (_, Val::Float(_)) => Ty::D(ptoc_tensor::DType::F32),
            _ => Ty::Index,
        });
        let (x, y) = (self.scalar_of(&a, ty, sa)?, self.scalar_of(&b, ty, sb)?);
        if then.is_empty() && els.is_empty() {
            let v = self.b.select(cond, x, y, span);
            if ty == Ty::Index {
                self.facts.selected(v, x, y);
            }
            return Ok(Val::Scalar(v));
        }
        let var = self.b.var("if", ty);
        then.push(self.noted(Op::Set { var, value: x }, span));
        els.push(self.noted(Op::Set { var, value: y }, span));
        self.emit(Op::If(Box::new(If { cond, then, els })), span);
        Ok(Val::Scalar(self.b.get(var, span)))
    }

    /// A block for the value of its tail.
    pub(crate) fn block_value(&mut self, b: &Block, dest: Option<TileVal>) -> ElabResult<Val> {
        self.env.push();
        let rings = self.rings_begin();
        let mut failed = false;
        for s in &b.stmts {
            failed |= self.stmt(s).is_err();
        }
        let r = match &b.tail {
            Some(e) => self.expr_into(e, dest),
            None => Ok(Val::Unit),
        };
        self.rings_end(rings, !failed && r.is_ok());
        self.env.pop();
        if failed { Err(ErrorReported) } else { r }
    }

    /// A text with `{name}` replaced by the values of constants.
    pub(crate) fn interpolate(&mut self, text: &str) -> String {
        let mut pieces = text.split('{');
        let mut out = pieces.next().unwrap_or_default().to_owned();
        for piece in pieces {
            match piece.split_once('}').and_then(|(path, rest)| Some((self.shown_at(path)?, rest))) {
                Some((shown, rest)) => out.extend([shown.as_str(), rest]),
                None => out.extend(["{", piece]),
            }
        }
        out
    }

    /// A `const` of the file.
    fn constant_of_file(&mut self, name: &str) -> Option<Val> {
        let id = *self.modules.get(self.module).scope.get(name)?;
        let is_constant = matches!(self.modules.item(id).kind, ItemKind::Const(_));
        if is_constant { self.name(&Name::from(name), Span::default()).ok() } else { None }
    }

    /// The text of a name, or of a part of what it names.
    fn shown_at(&mut self, path: &str) -> Option<String> {
        let mut parts = path.split('.').map(str::trim);
        let name = parts.next()?;
        let mut v = match self.env.get(name).map(|(b, _)| b.clone()) {
            Some(Binding::Let(v)) => v,
            Some(Binding::Var(..)) => return None,
            None => self.constant_of_file(name)?,
        };
        for p in parts {
            v = match (v, p.parse::<usize>()) {
                (Val::Tuple(l), Ok(k)) if k < l.len() => l[k].clone(),
                (Val::Record(r), Err(_)) if r.get(p).is_some() => r.get(p)?.clone(),
                (Val::Algebra(a), Err(_)) => match self.member_of(&a, p, Span::default()) {
                    Ok(Some(m)) => m,
                    _ => Val::Algebra(a),
                },
                (v, _) => v,
            };
        }
        Some(self.show(&v))
    }

    /// A constant as text.
    pub(crate) fn show(&self, v: &Val) -> String {
        match v {
            Val::Int(i) => i.to_string(),
            Val::Float(f) => format!("{f}"),
            Val::Bool(b) => b.to_string(),
            Val::Str(s) => s.clone(),
            Val::Scalar(x) => match (self.int_const(v), self.b.const_of(*x)) {
                (Some(i), _) => i.to_string(),
                (None, Some(c)) => match c.ty {
                    Ty::D(d) => ptoc_tensor::scalar::format_bits(d, c.bits),
                    Ty::Index => (c.bits as i64).to_string(),
                },
                _ if self.ty(*x) == Ty::Index => self.size_shown(*x),
                _ => "?".into(),
            },
            Val::Algebra(a) => a.to_string(),
            Val::Hole => "_".into(),
            Val::Tuple(l) => format!("({})", l.iter().map(|x| self.show(x)).collect::<Vec<_>>().join(", ")),
            Val::Record(r) => {
                let comma = if r.fields.len() == 1 { "," } else { "" };
                let fields: Vec<String> = r.fields.iter().map(|(n, v)| format!("{n} = {}", self.show(v))).collect();
                format!("({}{comma})", fields.join(", "))
            }
            Val::List(l) => format!("[{}]", l.iter().map(|x| self.show(x)).collect::<Vec<_>>().join(", ")),
            other => other.describe().into(),
        }
    }
}

fn else_span(e: &Else) -> Span {
    match e {
        Else::Block(b) => b.tail.as_ref().map_or(b.span, |t| t.span),
        Else::If(_, s) => *s,
    }
}

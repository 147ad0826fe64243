//! One instruction: operands against the table, legality on the target, shapes, emission. Both `TADD(z, x, y)` and
//! `z = x + y` end in [`Elaborator::apply`].

mod legal;
mod modes;
mod shapes;
pub(crate) mod statics;

use self::legal::OrderKept;
use self::modes::{form_of, mode_name};
use super::cells::pads;
use super::copies::CopyEnd;
use super::labels::{around, count};
use super::tiles::Shape;
use super::{ElabResult, Elaborator, ErrorReported, FLOAT_FOR_INTEGER, Valid};
use ptoc_diagnostics::{Diagnostic, Span, codes};
use ptoc_ir::tile::{Inst, InstAttrs, Operand, TileRef, Ty};
use ptoc_isa::{
    InstrId, Loc, MemorySpace, Oob, OperandKind, OperandSpec, Reduce, Role, Scratch, Sem, Target, TileType,
};
use ptoc_names::builtins::Word;
use ptoc_syntax::ast::{Arg, Expr, ExprKind};
use ptoc_tensor::DType;
use ptoc_values::written::Written;
use ptoc_values::{Quantity, TileVal, Val, View};

/// An operand before it is IR.
#[derive(Clone, Debug)]
pub(crate) enum Opnd {
    Tile(TileVal, Span),
    View(View, Span),
    Scalar(Val, Span),
}

impl Opnd {
    fn span(&self) -> Span {
        match self {
            Opnd::Tile(_, s) | Opnd::View(_, s) | Opnd::Scalar(_, s) => *s,
        }
    }

    fn dtype(&self) -> Option<DType> {
        match self {
            Opnd::Tile(t, _) => Some(t.ty.dtype),
            Opnd::View(v, _) => Some(v.dtype),
            Opnd::Scalar(..) => None,
        }
    }

    fn tile(&self) -> Option<&TileVal> {
        match self {
            Opnd::Tile(t, _) => Some(t),
            _ => None,
        }
    }
}

/// The instruction with that meaning.
pub(crate) fn instr_for(sem: Sem) -> Option<InstrId> {
    ptoc_isa::TABLE.iter().position(|i| i.sem == sem).map(|i| InstrId(i as u16))
}

/// A window with one mode, which is a row to a tile, if a tile with one column stands beside it.
fn vector_beside_column(operands: &[(Val, &Expr)]) -> Option<Span> {
    let column = |(v, _): &(Val, &Expr)| matches!(v, Val::Tile(t) if t.cols == 1 && t.rows > 1);
    let vector = operands.iter().find(|(v, _)| matches!(v, Val::View(v) if v.modes.len() == 1))?;
    operands.iter().any(column).then_some(vector.1.span)
}

impl Elaborator<'_> {
    /// `TADD(z, x, y);`
    pub(crate) fn instruction(&mut self, id: InstrId, args: &[Arg], span: Span, name_span: Span) -> ElabResult<Val> {
        let id = self.form(id, args);
        let instr = id.get();
        if instr.sem == Sem::Assign {
            return self.tassign(args, span);
        }
        if instr.sem == Sem::Sample {
            return self.sample(id, args, span, name_span);
        }
        let mut attrs = InstAttrs::default();
        let mut operands = Vec::new();
        let mut words = Vec::new();
        let mut scratch = None;
        for a in args {
            // What is wrong with one argument does not hide what is wrong with the next.
            match (&a.name, self.expr(&a.value).unwrap_or(Val::Poison)) {
                (
                    n,
                    Val::Word(
                        w @ (Word::Cmp(_)
                        | Word::Round(_)
                        | Word::Oob(_)
                        | Word::Choice("Skip" | "Relu" | "HF32" | "TF32")),
                    ),
                ) if n.as_ref().is_none_or(|n| n.name == mode_name(w)) && !pads(instr) => {
                    words.push((w, a.value.span));
                }
                (Some(n), v) if n.name == "tmp" && instr.scratch != Scratch::None => scratch = Some((v, a.value.span)),
                (Some(n), v) => self.named_mode(id, n, &v, &mut attrs)?,
                (None, v) => operands.push((v, &a.value)),
            }
        }
        let id = form_of(id, &operands);
        let instr = id.get();
        // Of an operand that could not be made nothing is known: another form may be meant, which has the words.
        let unknown =
            operands.iter().any(|(v, _)| matches!(v, Val::Poison)) && ptoc_isa::overloads(id).nth(1).is_some();
        for (w, at) in words.into_iter().filter(|_| !unknown) {
            self.mode_word(id, w, at, &mut attrs)?;
        }
        let wanted = instr.written();
        // A mode that was not understood stands among the operands, or several operands could not be told apart.
        let unread = operands.iter().any(|(_, e)| matches!(&*e.kind, ExprKind::Error));
        if unread || operands.len() > wanted.len() && operands.iter().any(|(v, _)| matches!(v, Val::Poison)) {
            return Err(ErrorReported);
        }
        let left_out = wanted.len().saturating_sub(operands.len());
        let default = |o: &OperandSpec| matches!(o.kind, OperandKind::Choice(_) | OperandKind::Pad);
        let choices = wanted.iter().rev().take(left_out).all(default);
        if operands.len() > wanted.len() || left_out > instr.optional || !choices {
            let d = Diagnostic::error(
                codes::WRONG_ARGUMENTS,
                span,
                format!(
                    "`{}` takes {}, {} given",
                    instr.written_name(),
                    count(wanted.len(), "operand", "operands"),
                    operands.len()
                ),
            )
            .with_label(format!("{} given", operands.len()))
            .with_note(format!("usage: `{}`: {}", usage(id), instr.doc));
            let d = if operands.len() > wanted.len() { more_operands(d, id, &operands) } else { d };
            // `rint` is a function, and the mode `Rint`.
            let word = args.iter().find_map(|a| {
                let ExprKind::Name(n) = &*a.value.kind else { return None };
                let words = instr.modes.iter().flat_map(|m| m.words);
                let meant = words.into_iter().find(|w| w.eq_ignore_ascii_case(n) && **w != n.as_str())?;
                Some((a.value.span, *meant))
            });
            let d = match word {
                Some((at, meant)) => d.with_fix(format!("the mode is called `{meant}`"), at, meant),
                None => d,
            };
            // The habit of functions that return their result.
            let first = &instr.operands[0];
            // What is missing is named, if it is not the destination, which most often is.
            let tile = |(v, _): &(Val, &Expr)| matches!(v, Val::Tile(_) | Val::Mask(..));
            let fits = |k: usize| {
                let rest = wanted.iter().take(k).chain(wanted.iter().skip(k + 1));
                rest.zip(&operands).all(|(spec, given)| matches!(spec.kind, OperandKind::Tile(_)) == tile(given))
            };
            let d = match operands.len() + 1 == wanted.len() && first.role == Role::Dst {
                true if !fits(0)
                    && let Some(k) = (1..wanted.len()).find(|k| fits(*k)) =>
                {
                    d.with_help(format!("`{}` is missing", wanted[k].name))
                }
                true if instr.sem == Sem::MatmulAcc => {
                    let name = instr.written_name();
                    d.with_help(format!("what it adds to is named too: `{name}(acc, acc, a, b)`"))
                }
                true => {
                    // Which dtypes stand where tells more.
                    let given: Vec<Option<DType>> = operands.iter().map(|(v, _)| dtype_of(v)).collect();
                    let could: Vec<usize> =
                        (0..wanted.len()).filter(|k| fits(*k) && without(self.target, id, *k, &given)).collect();
                    let rest = ptoc_isa::text::list(wanted[1..].iter().map(|o| format!("`{}`", o.name)));
                    match could[..] {
                        [] | [0, ..] => d.with_help(format!(
                            "the destination `{}` stands first, behind it {rest}; an instruction gives no value",
                            first.name
                        )),
                        _ => {
                            let names = could.iter().map(|k| format!("`{}`", wanted[*k].name));
                            d.with_help(format!("{} is missing", ptoc_isa::text::either(names)))
                        }
                    }
                }
                false => d,
            };
            return self.report(d);
        }
        if instr.sem.compares() && attrs.cmp.is_none() {
            let names: Vec<&str> = wanted.iter().map(|o| o.name).collect();
            let words: Vec<&str> = instr.modes.iter().flat_map(|m| m.words).copied().collect();
            let (name, list) = (instr.written_name(), words.join(", "));
            let list = list.rsplit_once(", ").map_or(list.clone(), |(first, last)| format!("{first} or {last}"));
            let any = if words.contains(&"LT") { "LT" } else { "GT" };
            let d = Diagnostic::error(codes::WRONG_ARGUMENTS, span, format!("`{name}` needs a comparison"))
                .with_label("compares how?")
                .with_help(format!("add {list}: `{name}({}, {any})`", names.join(", ")));
            return self.report(d);
        }
        if let [(first, e), (second, _)] = &operands[..]
            && matches!(
                (instr.sem, first, second),
                (Sem::Load, Val::View(_) | Val::Cut(_), Val::Tile(_))
                    | (Sem::Store, Val::Tile(_), Val::View(_) | Val::Cut(_))
            )
        {
            let from =
                if instr.sem == Sem::Load { "a tile, filled from a window" } else { "a window, filled from a tile" };
            let d = Diagnostic::error(
                codes::OPERAND_KIND,
                span,
                format!("the operands of `{}` are swapped", instr.written_name()),
            )
            .with_label(format!("the destination stands first: {from}"))
            .with_secondary(e.span, first.describe())
            .with_note(format!("usage: `{}`", usage(id)));
            return self.report(d);
        }
        // A part of a tile through a layout is copied.
        if let ([(to, d), (from, s)], 2) = (&operands[..], args.len())
            && matches!(instr.sem, Sem::Load | Sem::Store | Sem::Move)
            && (matches!(to, Val::Part(_)) || matches!(from, Val::Part(_)))
        {
            return self.copy_values(to, from, [*d, *s], span);
        }
        let mut ops = Vec::new();
        let (mut failed, mut first_failed) = (false, false);
        let call = Written { operands: &operands, args, span, name: name_span };
        for (k, (v, e)) in operands.iter().enumerate() {
            if matches!(v, Val::Poison) {
                failed = true;
                first_failed |= k == 0;
                continue;
            }
            if wanted[k].role == Role::Dst {
                self.destination(v, e)?;
            }
            let op = self.operand(id, (k, v.clone()), e, &mut attrs, &call)?;
            ops.push(op);
        }
        // A choice that is left out is the first, a pad 0.
        for spec in &wanted[wanted.len() - left_out..] {
            match spec.kind {
                OperandKind::Choice([(_, first), ..]) => ops.push(Opnd::Scalar(Val::Int((*first).into()), span)),
                OperandKind::Pad => ops.push(Opnd::Scalar(Val::Word(Word::Oob(Oob::Zero)), span)),
                _ => {}
            }
        }
        if failed {
            if let Some(dst) = ops.first().filter(|_| !first_failed && instr.operands[0].role == Role::Dst) {
                let dst = dst.clone();
                self.forget(&dst);
            }
            return Err(ErrorReported);
        }
        if instr.updates {
            ops.extend(ops.first().cloned());
        }
        self.vector = vector_beside_column(&operands);
        self.given_scratch = scratch;
        let applied = self.apply(id, ops, attrs, span);
        (self.vector, self.given_scratch) = (None, None);
        applied?;
        Ok(Val::Unit)
    }

    /// The value as operand `k`.
    fn operand(
        &mut self,
        id: InstrId,
        (k, v): (usize, Val),
        e: &Expr,
        attrs: &mut InstAttrs,
        call: &Written,
    ) -> ElabResult<Opnd> {
        let instr = id.get();
        let spec = instr.operands[k];
        match (spec.kind, v) {
            (_, Val::Poison) => Err(ErrorReported),
            (OperandKind::Tile(_), Val::Tile(t)) => Ok(Opnd::Tile(t, e.span)),
            (OperandKind::Tile(_), Val::Mask(t, false)) => Ok(Opnd::Tile(t, e.span)),
            (OperandKind::View, Val::View(view)) => {
                if spec.role == Role::Dst {
                    self.writable(&view, e.span)?
                } else {
                    self.readable(&view, e.span)?
                }
                let whole = matches!(instr.sem, Sem::Gather | Sem::ScatterTo);
                let view = if whole { (*view).clone() } else { self.matrix(&view, e.span)? };
                Ok(Opnd::View(view, e.span))
            }
            (OperandKind::View, Val::Cut(view)) if matches!(instr.sem, Sem::Load | Sem::Store | Sem::Fixpipe(_)) => {
                if spec.role == Role::Dst {
                    self.writable(&view, e.span)?
                } else {
                    self.readable(&view, e.span)?
                }
                Ok(Opnd::View(self.matrix(&view, e.span)?, e.span))
            }
            (OperandKind::Scalar(_), v @ (Val::Scalar(_) | Val::Int(_) | Val::Float(_) | Val::Bool(_)))
                if !attrs.reversed =>
            {
                Ok(Opnd::Scalar(v, e.span))
            }
            (OperandKind::Index, v @ (Val::Scalar(_) | Val::Int(_))) => Ok(Opnd::Scalar(v, e.span)),
            (OperandKind::Pad, v @ (Val::Scalar(_) | Val::Int(_) | Val::Float(_))) => Ok(Opnd::Scalar(v, e.span)),
            (
                OperandKind::Pad,
                Val::Word(w @ (Word::Oob(ptoc_isa::Oob::Zero) | Word::Choice("Max" | "Min") | Word::Inf)),
            ) => Ok(Opnd::Scalar(Val::Word(w), e.span)),
            (OperandKind::Choice(words), Val::Word(Word::Choice(w))) if words.iter().any(|(name, _)| *name == w) => {
                let n = words.iter().find(|(name, _)| *name == w).map_or(0, |(_, n)| *n);
                Ok(Opnd::Scalar(Val::Int(n.into()), e.span))
            }
            (OperandKind::Choice([("Zero", n)]), Val::Word(Word::Oob(Oob::Zero))) => {
                Ok(Opnd::Scalar(Val::Int((*n).into()), e.span))
            }
            (OperandKind::Scalar(_), Val::Word(Word::Inf)) => Ok(Opnd::Scalar(Val::Float(f64::INFINITY), e.span)),
            // PTO's TDIVS takes its scalar on either side.
            (OperandKind::Tile(_), v @ (Val::Scalar(_) | Val::Int(_) | Val::Float(_)))
                if instr.scalar_first && k == 1 && matches!(instr.operands[2].kind, OperandKind::Scalar(_)) =>
            {
                attrs.reversed = true;
                Ok(Opnd::Scalar(v, e.span))
            }
            (OperandKind::Scalar(_), Val::Tile(t)) if attrs.reversed => Ok(Opnd::Tile(t, e.span)),
            (kind, other) => {
                let choices;
                let want = match kind {
                    OperandKind::Tile(_) => "a tile",
                    OperandKind::View => "a window of a tensor",
                    OperandKind::Scalar(_) if attrs.reversed => "a tile where a scalar stands in front of it",
                    OperandKind::Scalar(_) => "a scalar",
                    OperandKind::Address => "an address",
                    OperandKind::Index => "an index",
                    OperandKind::Pad => "a scalar, `Zero`, `Max` or `Min`",
                    OperandKind::Choice(words) => {
                        let (last, rest) = words.split_last().map_or(("", &[][..]), |(l, r)| (l.0, r));
                        let rest: Vec<String> = rest.iter().map(|w| format!("`{}`", w.0)).collect();
                        choices = match rest.as_slice() {
                            [] => format!("`{last}`"),
                            rest => format!("{} or `{last}`", rest.join(", ")),
                        };
                        &choices
                    }
                };
                let message = format!(
                    "operand `{}` of `{}` is {want}, found {}",
                    spec.name,
                    instr.written_name(),
                    other.describe()
                );
                let mut d = Diagnostic::error(codes::OPERAND_KIND, e.span, message)
                    .with_label(other.describe())
                    .with_note(format!("usage: `{}`", usage(id)));
                // TADD takes two tiles, TADDS a scalar.
                let twin = ptoc_isa::sibling(id);
                d = match (kind, &other, twin) {
                    (OperandKind::Tile(legal), Val::View(view), _) if spec.role == Role::Src => {
                        match self.leads(MemorySpace::Gm, legal[0], view.dtype) {
                            true => d.with_edits("load it", around(e.span, &format!("{}(", legal[0]), ")")),
                            false => d,
                        }
                    }
                    (OperandKind::Tile(_), Val::View(_), _) if spec.role == Role::Dst => {
                        d.with_help("write a tile, and behind it `TSTORE(window, tile)`")
                    }
                    (OperandKind::Tile(_), Val::Part(_), _) if spec.role == Role::Src => {
                        d.with_edits("copy it to a tile", around(e.span, "Vec(", ")"))
                    }
                    (OperandKind::Tile(_), Val::Part(_), _) => {
                        d.with_help("write a tile, and behind it `copy(part, tile)`")
                    }
                    (OperandKind::Choice(_), Val::Tile(_), _) => more_operands(d, id, &[]),
                    (OperandKind::Index, Val::Float(_), _) => d.with_help(FLOAT_FOR_INTEGER),
                    (OperandKind::Index | OperandKind::Scalar(_) | OperandKind::Pad, Val::Tile(_), None) => {
                        d.with_help("an element of a tile is `t[i, j]`")
                    }
                    (OperandKind::Tile(_), Val::TileArray(_), _) => d.with_help("choose one of them, as in `tiles[0]`"),
                    (OperandKind::Tile(_), Val::Scalar(_) | Val::Int(_) | Val::Float(_), _) => {
                        call.scalar_for_tile(d, id, k, attrs.cmp)
                    }
                    (OperandKind::Scalar(_), Val::Tile(_), Some((twin, at))) if at == k => {
                        let name = twin.get().written_name();
                        d.with_fix(format!("`{name}` takes a tile here"), call.name, name)
                    }
                    _ => d,
                };
                self.report(d)
            }
        }
    }

    /// Checks and emits one instruction; the destination's valid shape follows.
    pub(crate) fn apply(&mut self, id: InstrId, ops: Vec<Opnd>, attrs: InstAttrs, span: Span) -> ElabResult<()> {
        let written: Vec<Opnd> = id.get().results().filter_map(|k| ops.get(k).cloned()).collect();
        let r = self.apply_checked(id, ops, attrs, span);
        if r.is_err() {
            written.iter().for_each(|dst| self.forget(dst));
        }
        r
    }

    /// What should have been written was not: reads of it stay silent.
    pub(crate) fn forget(&mut self, dst: &Opnd) {
        if let Opnd::Tile(t, _) = dst {
            self.valid.insert(t.tile, Valid::Poison);
        }
    }

    fn apply_checked(&mut self, id: InstrId, mut ops: Vec<Opnd>, mut attrs: InstAttrs, span: Span) -> ElabResult<()> {
        let instr = id.get();
        self.outside_prologue(span)?;
        if attrs.reversed {
            // In IR the tile stands before the scalar; the mode says which side it is on.
            if matches!(ops[1], Opnd::Scalar(..)) {
                ops.swap(1, 2);
            }
        }
        // Likewise the large tile before the one of one column.
        if instr.scalar_first
            && let (Some(first), Some(second)) = (ops[1].tile(), ops.get(2).and_then(Opnd::tile))
            && self.valid_columns(first) == Some(1)
            && self.valid_columns(second) != Some(1)
        {
            ops.swap(1, 2);
            attrs.reversed = true;
        }
        self.locations(id, &ops)?;
        self.dtypes(id, &ops, &attrs, span)?;
        self.out_of_acc(id, &ops, &attrs)?;
        self.overlap(id, &ops)?;
        if instr.sem.converts() {
            let to_int = ops[0].dtype().is_some_and(DType::is_int);
            let from_float = ops[1].dtype().is_some_and(DType::is_float);
            attrs.round.get_or_insert(if to_int && from_float {
                ptoc_isa::RoundMode::Trunc
            } else {
                ptoc_isa::RoundMode::Rint
            });
            let to_f8 = ops[0].dtype().is_some_and(DType::is_f8);
            attrs.saturate.get_or_insert((to_int && from_float) || to_f8);
        }
        let adders = self.target.unit.and_then(|unit| unit.kind.adders());
        let of = usize::from(!instr.sem.multiplies());
        attrs.stepwise = (of == 0 || matches!(instr.sem, Sem::RowReduce(Reduce::Sum) | Sem::ColReduce(Reduce::Sum)))
            && adders.is_some_and(|dtype| ops[of].dtype() == Some(dtype));
        if instr.sem.gathers() || instr.sem.scatters() {
            attrs.oob.get_or_insert(Oob::Undefined);
        }
        self.factors(id, &ops, &mut attrs, span)?;
        if attrs.stepwise && of == 0 && self.target.unit.is_some_and(|u| u.rounding == ptoc_isa::Rounding::Each) {
            attrs.round = Some(ptoc_isa::RoundMode::Rint);
        }
        self.updates(id, &ops, &attrs, span)?;
        self.operand_names = ops.iter().filter_map(|o| Some((o.span(), self.author_name(o)?))).collect();
        let shapes = self.shapes(id, &ops, span)?;
        self.limits(id, &ops, span)?;
        if self.is_nest(id, &ops) {
            return self.nest(id, &ops, &shapes, &attrs, span);
        }
        if let Some(Opnd::View(_, at)) = ops.iter().find(|o| matches!(o, Opnd::View(v, _) if !v.is_strided())) {
            return self.not_yet(*at, &format!("`{}` of such a window", instr.written_name()));
        }
        let mut out = Vec::new();
        // The last tile that the author writes has the scalar's dtype, unless the table says another.
        let tiles = ops[..instr.written().len()].iter().rev();
        let scalar_ty = tiles.clone().find_map(|o| o.tile().map(|t| Ty::D(t.ty.dtype)));
        let fixed = instr.operands.iter().find_map(|o| if let OperandKind::Scalar(d) = o.kind { d } else { None });
        let scalar_ty = fixed.map(Ty::D).or(scalar_ty);
        for (k, (op, shape)) in ops.iter().zip(&shapes).enumerate() {
            out.push(match op {
                Opnd::Tile(t, _) => Operand::Tile(self.tile_ref(t, shape.expect("tiles have shapes"))),
                Opnd::View(v, _) => {
                    let mut r = self.view_ref(v);
                    if let Some(s) = shape {
                        r.shape = vec![s.0, s.1];
                    }
                    Operand::View(r)
                }
                Opnd::Scalar(v, at) => match instr.operands[k].kind {
                    OperandKind::Index | OperandKind::Choice(_) => {
                        Operand::Scalar(self.scalar_of(v, Ty::Index, *at)?)
                    }
                    OperandKind::Pad => Operand::Scalar(self.filling(v, ops[0].dtype().ok_or(ErrorReported)?, *at)?),
                    _ => {
                        let ty = scalar_ty.expect("an instruction with a scalar has a tile");
                        Operand::Scalar(self.scalar_of(v, ty, *at)?)
                    }
                },
            });
        }
        self.demands(id, &out, span)?;
        if matches!(instr.sem, Sem::Matmul | Sem::MatmulAcc | Sem::MatmulBias) {
            whole_capacities(&ops, &mut out);
        }
        let scratch = self.scratch(id, &ops, span)?;
        // An intermediate result is called after the instruction that makes it.
        if let Some(t) = ops[0].tile() {
            let data = &mut self.b.kernel_mut().tiles[t.tile];
            if data.hidden && data.name == "temporary" {
                data.name = format!("{} result", instr.name).into();
            }
        }
        self.b.inst(Inst { instr: id, operands: out, scratch, attrs }, span);
        Ok(())
    }

    /// How many columns of a tile are valid, if that is known.
    fn valid_columns(&self, t: &TileVal) -> Option<i64> {
        let cols = match (t.valid, self.valid.get(&t.tile)) {
            (Some(shape), _) => shape.1,
            (None, Some(Valid::Known(_, cols))) => *cols,
            _ => return None,
        };
        self.const_index(cols)
    }

    /// The destination as a source too. Windows of one tile are told apart by their origins alone.
    fn overlap(&mut self, id: InstrId, ops: &[Opnd]) -> ElabResult<()> {
        let Some(d) = ops[0].tile() else { return Ok(()) };
        if let Some(k) = id.get().results().nth(1)
            && let Opnd::Tile(t, at) = &ops[k]
            && (t.tile, t.element, t.origin) == (d.tile, d.element, d.origin)
        {
            let message = format!("both results of {} are written to one tile", id.get().written_name());
            let d = Diagnostic::error(codes::OVERLAPPING_OPERANDS, *at, message)
                .with_label("the second result")
                .with_secondary(ops[0].span(), "the first one")
                .with_help("give each result a tile of its own");
            return self.report(d);
        }
        for (k, op) in ops.iter().enumerate().skip(1) {
            let Opnd::Tile(t, at) = op else { continue };
            if (t.tile, t.element, t.origin) == (d.tile, d.element, d.origin)
                && let Some(v) = ptoc_isa::check_overlap(self.target, id, k)
            {
                return self.report(v.diagnostic(*at));
            }
        }
        Ok(())
    }

    /// Whether a load or store is more than rows and columns at fixed distances.
    fn is_nest(&self, id: InstrId, ops: &[Opnd]) -> bool {
        let (view, tile) = match (id.get().sem, ops) {
            (Sem::Load, [Opnd::Tile(t, _), Opnd::View(v, _)])
            | (Sem::Store, [Opnd::View(v, _), Opnd::Tile(t, _)])
            | (Sem::Fixpipe(_), [Opnd::View(v, _), Opnd::Tile(t, _), ..]) => (v, t),
            _ => return false,
        };
        // A `recast` from whole elements to others counts memory otherwise than its tensor does.
        !view.is_strided()
            || self.b.kernel().tensors[view.tensor].dtype != view.dtype
            || tile.ty.layout.is_some()
            || (!matches!(id.get().sem, Sem::Fixpipe(_)) && self.order_kept(view, tile) == OrderKept::Apart)
            || (id.get().sem == Sem::Load && self.pads.contains_key(&tile.tile))
    }

    /// A load or store as a loop nest.
    fn nest(
        &mut self,
        id: InstrId,
        ops: &[Opnd],
        shapes: &[Option<Shape>],
        attrs: &InstAttrs,
        span: Span,
    ) -> ElabResult<()> {
        let at = (ops[0].span(), ops[1].span());
        match ops {
            [Opnd::Tile(t, _), Opnd::View(v, _)] => {
                let valid = shapes[0].ok_or(ErrorReported)?;
                match self.pads.get(&t.tile).copied() {
                    None => {
                        let part = self.tile_part(t, valid);
                        let zero = v
                            .quantities
                            .iter()
                            .any(|q| matches!(q, Quantity::Entry(l) if l.oob == ptoc_isa::Oob::Zero));
                        let fill = match zero {
                            true => Some(self.scalar_of(&Val::Int(0), Ty::D(t.ty.dtype), span)?),
                            false => None,
                        };
                        self.copy_sides(&CopyEnd::Part(part), &CopyEnd::View(v.clone()), fill, true, span, at)
                    }
                    Some(pad) => {
                        let (rows, cols) = (self.idx(i64::from(t.rows)), self.idx(i64::from(t.cols)));
                        let part = self.tile_part(t, (rows, cols));
                        let view = self.padded(v, (t.rows, t.cols), span, at.1)?;
                        let pad = self.pad_of(t, pad, span)?;
                        self.copy_sides(&CopyEnd::Part(part), &CopyEnd::View(view), Some(pad), true, span, at)?;
                        // A window of the tile is not all of it.
                        if t.origin.is_none() {
                            self.padded_loads.insert((t.tile, t.element), valid);
                        }
                        Ok(())
                    }
                }
            }
            [Opnd::View(v, _), Opnd::Tile(t, _)] => {
                if attrs.atomic.is_some() || attrs.relu {
                    return self.no_distances(id, if attrs.relu { "`Relu`" } else { "`atomic`" }, at.0);
                }
                let part = self.tile_part(t, shapes[1].ok_or(ErrorReported)?);
                self.copy_sides(&CopyEnd::View(v.clone()), &CopyEnd::Part(part), None, false, span, at)
            }
            [Opnd::View(..), Opnd::Tile(..), ..] => self.no_distances(id, "a scale", at.0),
            _ => Err(ErrorReported),
        }
    }

    /// A store that does more than move elements, to a window whose elements do not lie at fixed distances.
    fn no_distances(&mut self, id: InstrId, what: &str, at: Span) -> ElabResult<()> {
        let name = id.get().written_name();
        let message =
            format!("{name} with {what} writes rows of neighbours at a fixed distance, and this window has others");
        let through = match self.target.move_rule(MemorySpace::Tile(Loc::Acc), MemorySpace::Tile(Loc::Vec)) {
            _ if what == "`atomic`" => "add to windows of it that have fixed distances, with a TSTORE for each",
            Some(_) => "move the tile so to one in Vec (`TMOV(t, a, ..)`), and `copy(window, t)`",
            None => "store it so to a tensor of rows, load that, and `copy(window, tile)`",
        };
        let d = Diagnostic::error(codes::OPERAND_LAYOUT, at, message)
            .with_label("other distances")
            .with_note("PTO's store knows a distance from row to row, on every target; `copy` follows any window")
            .with_help(through);
        self.report(d)
    }

    /// What a load writes beyond the valid shape, in the tile's dtype.
    pub(crate) fn pad_of(&mut self, t: &TileVal, pad: f64, span: Span) -> ElabResult<ptoc_ir::tile::Value> {
        let pad = if t.ty.dtype.is_float() { Val::Float(pad) } else { Val::Int(pad as i128) };
        self.scalar_of(&pad, Ty::D(t.ty.dtype), span)
    }

    /// The window over the whole capacity of a tile; what lies beyond its extents is guarded.
    pub(crate) fn padded(&mut self, v: &View, caps: (u32, u32), span: Span, at: Span) -> ElabResult<View> {
        let mut view = v.clone();
        for (m, cap) in view.window.modes.iter_mut().zip([caps.0, caps.1]) {
            if m.plain().is_some() {
                m.cap = Some(cap);
            } else if m.cap != Some(cap) {
                return self.not_yet(at, "`pad` for a window whose nested modes do not fill the tile");
            }
        }
        let window = self.expose(&view.window, span);
        Ok(self.with_window(&view, window))
    }

    fn scratch(&mut self, id: InstrId, ops: &[Opnd], span: Span) -> ElabResult<Vec<TileRef>> {
        let instr = id.get();
        if instr.scratch == Scratch::None || !self.target.instructions.scratch {
            return Ok(Vec::new());
        }
        let like = |k: usize| ops.get(k).and_then(Opnd::tile).map(|t| TileType { rows: t.rows, cols: t.cols, ..t.ty });
        let (Some(dst), Some(src)) = (like(0), like(1)) else { return Ok(Vec::new()) };
        let Some(wanted) = ptoc_isa::scratch_type(self.target, id, dst, src) else { return Ok(Vec::new()) };
        if let Some((given, at)) = self.given_scratch.take() {
            return self.scratch_of(id, ops, &given, wanted, at);
        }
        let (rows, cols) = (wanted.rows, wanted.cols);
        let valid = (self.idx(i64::from(rows)), self.idx(i64::from(cols)));
        let ty = self.hidden_type(Loc::Vec, wanted.dtype, rows, cols);
        let t = self.new_tile(&format!("scratch of {}", instr.name), ty, (rows, cols), valid, span);
        Ok(vec![self.tile_ref(&t, valid)])
    }

    /// `tmp = t`: the author says which tile is worked in. It holds nothing of use behind the instruction.
    fn scratch_of(
        &mut self,
        id: InstrId,
        ops: &[Opnd],
        given: &Val,
        wanted: TileType,
        at: Span,
    ) -> ElabResult<Vec<TileRef>> {
        let (name, bytes) = (id.get().written_name(), wanted.bytes());
        let Val::Tile(t) = given else {
            if matches!(given, Val::Poison) {
                return Err(ErrorReported);
            }
            let message = format!("`tmp` of `{name}` is a tile, this is {}", given.describe());
            return self.error(codes::OPERAND_KIND, at, message);
        };
        if t.origin.is_some() || t.ty.loc != Loc::Vec || t.ty.bytes() < bytes {
            let d = Diagnostic::error(codes::OPERAND_KIND, at, format!("`{name}` cannot work in this tile"))
                .with_label(format!("{}, {} bytes", t.ty, t.ty.bytes()))
                .with_note(format!("`tmp` is a whole tile in Vec, here of {bytes} bytes at least"));
            return self.report(d);
        }
        if let Some(operand) = ops.iter().find(|o| o.tile().is_some_and(|o| o.tile == t.tile && o.element == t.element))
        {
            let d = Diagnostic::error(codes::OPERAND_KIND, at, format!("`{name}` works in an operand of its own"))
                .with_label("what it works in does not keep what it holds")
                .with_secondary(operand.span(), "the same tile");
            return self.report(d);
        }
        let valid = (self.idx(i64::from(t.rows)), self.idx(i64::from(t.cols)));
        Ok(vec![self.tile_ref(t, valid)])
    }
}

/// What of PTO's form with more operands is left out; flags among the operands may be meant so too.
fn more_operands(d: Diagnostic, id: InstrId, given: &[(Val, &Expr)]) -> Diagnostic {
    let flags = given.iter().any(|(v, _)| matches!(v, Val::Bool(_)));
    let meant = |p: &ptoc_isa::LeftOut| p.words.contains(&"+") || flags && p.words.contains(&"true");
    ptoc_isa::left_out(id.get().written_name()).filter(meant).fold(d, |d, p| p.told(d))
}

/// `TADD(dst, a, b)`
pub(crate) fn usage(id: InstrId) -> String {
    id.get().usage()
}

/// The operands of a matrix product with the capacities of their storage: those of converted operands are rounded up to
/// whole fractals, and PTO wants them equal. A bias table is rounded up differently; it is as wide as the result.
fn whole_capacities(ops: &[Opnd], out: &mut [Operand]) {
    let width = ops[0].tile().map_or(0, |d| d.ty.cols);
    for (op, out) in ops.iter().zip(out) {
        if let (Opnd::Tile(t, _), Operand::Tile(r)) = (op, out)
            && t.origin.is_none()
        {
            let bias = t.ty.loc == ptoc_isa::Loc::Bias;
            (r.rows, r.cols) = if bias { (t.rows, width.min(t.ty.cols)) } else { (t.ty.rows, t.ty.cols) };
        }
    }
}

fn dtype_of(v: &Val) -> Option<DType> {
    match v {
        Val::Tile(t) | Val::Mask(t, _) => Some(t.ty.dtype),
        _ => None,
    }
}

/// Whether tiles of these dtypes stand where the row wants them if operand `k` is the one that is missing.
fn without(target: &Target, id: InstrId, k: usize, given: &[Option<DType>]) -> bool {
    let Some(tuples) = ptoc_isa::allowed_tuples(target, id.get()) else { return true };
    let tiles: Vec<usize> = (0..id.get().written().len()).filter(|i| id.get().written()[*i].is_tile()).collect();
    let takes = |list: &[DType]| {
        let rest = tiles.iter().zip(list).filter(|(at, _)| **at != k);
        rest.map(|(_, d)| Some(*d)).eq(given.iter().copied().filter(Option::is_some))
    };
    tuples.iter().any(|list| takes(list))
}

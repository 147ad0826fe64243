//! What an instruction asks of its operands on the target: where they are, their dtypes, how updates are made, limits
//! of the unit.

use super::Opnd;
use crate::labels::around;
use crate::{ElabResult, Elaborator, ErrorReported, Valid};
use ptoc_diagnostics::{Diagnostic, Span, codes};
use ptoc_ir::tile::InstAttrs;
use ptoc_isa::{InstrId, Loc, MemorySpace, OperandKind, Order, PipeRule, Role, RoundMode, Sem, Target, TileType, text};
use ptoc_tensor::DType;
use ptoc_values::{TileVal, View};

/// How the elements of a window lie for a tile.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum OrderKept {
    /// Neighbours in the tile's lines are neighbours in memory.
    Straight,
    /// Those in its other direction are: it would have to be transposed.
    Turned,
    /// None are.
    Apart,
}

impl Elaborator<'_> {
    pub(crate) fn locations(&mut self, id: InstrId, ops: &[Opnd]) -> ElabResult<()> {
        let instr = id.get();
        for (k, op) in ops.iter().enumerate() {
            if let Opnd::Tile(t, at) = op
                && let Some(v) = ptoc_isa::check_layout(id, k, t.ty)
            {
                let subject = format!("tile `{}`", self.b.kernel().tiles[t.tile].name);
                return self.report(v.diagnostic(&subject, *at));
            }
        }
        if matches!(instr.sem, Sem::Load | Sem::Store | Sem::Move) {
            // Which moves there are is the target's to say.
            return Ok(());
        }
        for (k, (spec, op)) in instr.operands.iter().zip(ops).enumerate() {
            let (OperandKind::Tile(_), Opnd::Tile(t, at)) = (spec.kind, op) else { continue };
            if spec.takes(t.ty.loc) {
                continue;
            }
            if let Some(d) = self.no_such_pair(id, k, ops) {
                return self.report(d);
            }
            let legal = &self.legal_locations(id, k)[..];
            if legal.is_empty() {
                let (name, loc, target) = (instr.written_name(), t.ty.loc, &self.target.name);
                let message = format!("operand `{}` of `{name}` lives where {target} has no memory", spec.name);
                let d = Diagnostic::error(codes::OPERAND_LOCATION, *at, message).with_label(format!("in {loc}"));
                let OperandKind::Tile(elsewhere) = spec.kind else { return Err(ErrorReported) };
                let d =
                    d.with_note(format!("it lives in {}: {name} is for targets that have it", text::either(elsewhere)));
                return self.report(d.with_help(format!("{target} works in {}", text::list(self.target.locations()))));
            }
            let list = text::either(legal);
            let message = format!(
                "operand `{}` of `{}` lives in {list}, this tile in {}",
                spec.name,
                instr.written_name(),
                t.ty.loc
            );
            let here = t.ty.loc.name();
            let out = ptoc_isa::left_out(instr.written_name()).filter(|p| p.what.ends_with(here));
            let mut d = Diagnostic::error(codes::OPERAND_LOCATION, *at, message)
                .with_secondary(self.b.kernel().tiles[t.tile].span, format!("declared in {}", t.ty.loc));
            d = d.with_label(format!("in {}", t.ty.loc)).with_note(format!("it is so on {}", self.everywhere()));
            d = out.fold(d, |d, p| p.told(d));
            if instr.sem == Sem::Load {
                d = d.with_help(format!(
                    "`{}(view)` goes GM -> L1 -> {} by the target's legal path",
                    t.ty.loc, t.ty.loc
                ));
            } else if let (Sem::Matmul | Sem::MatmulAcc | Sem::MatmulBias, Loc::Left | Loc::Right) =
                (instr.sem, t.ty.loc)
            {
                d = d.with_help("the left operand comes before the right one");
            } else if spec.role == Role::Dst {
                if let Some(there) = legal.first() {
                    d = d.with_help(format!("declare a tile in {there}, and write that"));
                }
            } else if matches!(instr.sem, Sem::Fixpipe(f) if f.quantised) && k == 1 && t.ty.loc == Loc::Vec {
                d = scaled_in_vec(d, ops);
            } else if spec.role == Role::Src
                && let Some(place) = self.loaded_by(t, *at)
                && let Some(to) = legal.iter().find(|to| self.leads(MemorySpace::Gm, **to, t.ty.dtype))
            {
                d = d.with_fix(format!("load it there: `{to}(..)`"), place, to.name());
            } else if spec.role == Role::Src
                && let Some(to) = self.reachable(t.ty, legal)
            {
                d = d.with_edits(format!("move it there: `{to}(..)`"), around(*at, &format!("{to}("), ")"));
            } else if spec.role == Role::Src
                && let Some(to) = legal.iter().find(|to| self.leads(MemorySpace::Gm, **to, t.ty.dtype))
            {
                d = d.with_help(format!("fill a tile in {to} from where this one was filled: `{to}(view)`"));
            }
            return self.report(d);
        }
        Ok(())
    }

    /// Factors are rounded of f32 alone, and how is said where they are.
    pub(crate) fn factors(&mut self, id: InstrId, ops: &[Opnd], attrs: &mut InstAttrs, span: Span) -> ElabResult<()> {
        if !id.get().sem.multiplies() || (attrs.factors, attrs.round) == (None, None) {
            return Ok(());
        }
        let name = id.get().written_name();
        let Some(factors) = attrs.factors else {
            let message = format!("`{name}` rounds its factors with `HF32` or `TF32` alone");
            let d = Diagnostic::error(codes::WRONG_ARGUMENTS, span, message)
                .with_label("a rounding, and nothing to round to")
                .with_note(format!("usage: `{}`", id.get().usage()));
            return self.report(d);
        };
        attrs.round.get_or_insert(RoundMode::Round);
        let left = if id.get().sem == Sem::MatmulAcc { 2 } else { 1 };
        let Some(dtype) = ops.get(left).and_then(Opnd::dtype).filter(|d| *d != DType::F32) else { return Ok(()) };
        let word = factors.name().to_uppercase();
        let message = format!("`{word}` of `{name}` rounds factors of f32, and these are {dtype}");
        let d = Diagnostic::error(codes::INSTR_DTYPE, ops[left].span(), message)
            .with_label(format!("`{dtype}`"))
            .with_note(self.rounded_there())
            .with_help(format!("leave `{word}` out: {dtype} is multiplied exactly"));
        self.report(d)
    }

    /// Which targets round factors.
    fn rounded_there(&self) -> String {
        let multiplies = |t: &ptoc_isa::Target| t.accumulator_of(DType::F32, DType::F32).is_some();
        let target = &self.target.name;
        if multiplies(self.target) {
            return format!("of the products of {target} those of f32 alone have digits to leave out");
        }
        let there: Vec<&str> = self.target.others().filter(|t| multiplies(t)).map(|t| t.name.as_str()).collect();
        format!("{target} has no products of f32, whose factors are rounded; they are on {}", text::list(there))
    }

    /// What only moves from Acc may do.
    pub(crate) fn out_of_acc(&mut self, id: InstrId, ops: &[Opnd], attrs: &InstAttrs) -> ElabResult<()> {
        let Some(from) = ops.get(1).and_then(Opnd::tile).map(|t| t.ty.loc).filter(|l| attrs.relu && *l != Loc::Acc)
        else {
            return Ok(());
        };
        let message =
            format!("`Relu` of `{}` is for what leaves Acc, and this tile is in {from}", id.get().written_name());
        let d = Diagnostic::error(codes::OPERAND_LOCATION, ops[1].span(), message)
            .with_label(format!("in {from}"))
            .with_help("in Vec it is an instruction of its own: `TRELU(dst, a)`, or `max(a, 0)`");
        self.report(d)
    }

    /// The location's name in `Vec(view)`, if that is how this operand came to be where it is: it may be loaded
    /// elsewhere at once.
    pub(crate) fn loaded_by(&self, t: &ptoc_values::TileVal, at: Span) -> Option<Span> {
        let data = &self.b.kernel().tiles[t.tile];
        let name = self.loads.iter().find(|l| l.0 == t.tile && l.1 == at).map(|l| l.2);
        name.filter(|_| data.hidden && t.origin.is_none())
    }

    /// Where operand `k` may be in this form of the instruction, or in others of as many operands.
    fn legal_locations(&self, id: InstrId, k: usize) -> Vec<Loc> {
        let first = ptoc_isa::lookup(id.get().written_name()).unwrap_or(id);
        let mut all = id.get().operands[k].locations(self.target);
        for form in ptoc_isa::overloads(first).filter(|f| f.get().written().len() == id.get().written().len()) {
            let more = form.get().operands[k].locations(self.target);
            all.extend(more.into_iter().filter(|l| !all.contains(l)).collect::<Vec<_>>());
        }
        all
    }

    /// A destination and a source that forms of the instruction take, and no form takes both.
    fn no_such_pair(&self, id: InstrId, k: usize, ops: &[Opnd]) -> Option<Diagnostic> {
        let [Opnd::Tile(dst, dst_at), Opnd::Tile(a, a_at), ..] = ops else { return None };
        let (name, from, to) = (id.get().written_name(), a.ty.loc, dst.ty.loc);
        let first = ptoc_isa::lookup(name).unwrap_or(id);
        let mut pairs: Vec<(Loc, Loc)> = Vec::new();
        for form in ptoc_isa::overloads(first).filter(|f| f.get().written().len() == id.get().written().len()) {
            let at = |k: usize| form.get().operands[k].locations(self.target);
            let all = at(1).into_iter().flat_map(|from| at(0).into_iter().map(move |to| (from, to)));
            let moves =
                |(from, to): &(Loc, Loc)| from == to || self.target.move_rule((*from).into(), (*to).into()).is_some();
            pairs.extend(all.filter(moves).filter(|p| !pairs.contains(p)).collect::<Vec<_>>());
        }
        let into: Vec<Loc> = pairs.iter().filter(|p| p.1 == to).map(|p| p.0).collect();
        let out: Vec<Loc> = pairs.iter().filter(|p| p.0 == from).map(|p| p.1).collect();
        let known = pairs.iter().any(|p| p.1 == to) && pairs.iter().any(|p| p.0 == from);
        // Where neither is taken, or only one, the list of places says it.
        if k > 1 || pairs.len() < 2 || pairs.contains(&(from, to)) || !(known || from == to) {
            return None;
        }
        let forms = pairs.iter().map(|(from, to)| format!("{from} to {to}"));
        let message = format!("on {} `{name}` has no form from {from} to {to}", self.target.name);
        let mut d = Diagnostic::error(codes::OPERAND_LOCATION, *a_at, message)
            .with_label(format!("in {from}"))
            .with_secondary(*dst_at, format!("in {to}"))
            .with_note(format!("its forms of as many operands: {}", text::list(forms)));
        for part in ptoc_isa::left_out(name).filter(|p| p.what.ends_with(from.name())) {
            d = part.told(d);
        }
        let leads = |start: MemorySpace| into.iter().find(|l| self.leads(start, **l, a.ty.dtype));
        if matches!(id.get().sem, Sem::Fixpipe(f) if f.quantised) && from == Loc::Vec {
            return Some(scaled_in_vec(d, ops));
        }
        Some(if let Some(via) = leads(from.into()) {
            if a.ty.dtype != dst.ty.dtype {
                let (have, want) = (a.ty.dtype, dst.ty.dtype);
                return Some(
                    d.with_help(format!("move it to {via} first, `{via}(..)`, and make the {have} {want} there")),
                );
            }
            d.with_edits(format!("move it to {via} first: `{via}(..)`"), around(*a_at, &format!("{via}("), ")"))
        } else if let Some(via) = leads(MemorySpace::Gm) {
            d.with_help(format!("fill a tile in {via} from where this one was filled, `{via}(view)`, and take that"))
        } else if !out.is_empty() {
            d.with_help(format!("from {from} it goes to {}: declare the destination there", text::either(&out)))
        } else if let Some((both, _)) = pairs.iter().find(|(from, to)| from == to) {
            d.with_help(format!("do it in {both}: declare the destination there, and fill the source there"))
        } else {
            d
        })
    }

    /// The target, and those whose instructions work in the same locations.
    pub(crate) fn everywhere(&self) -> String {
        let others: Vec<&str> = self.target.others_alike().map(|t| t.name.as_str()).collect();
        text::list(std::iter::once(self.target.name.as_str()).chain(others))
    }

    /// The target, and those alike that have the instruction too.
    pub(crate) fn having(&self, id: InstrId) -> String {
        let row = id.get();
        let there = |t: &&Target| {
            let tuples = ptoc_isa::allowed_tuples(t, row).is_none_or(|list| !list.is_empty());
            tuples && ptoc_isa::allowed_dtypes(t, row).is_none_or(|list| !list.is_empty())
        };
        let others = self.target.others_alike().filter(there).map(|t| t.name.as_str());
        text::list(std::iter::once(self.target.name.as_str()).chain(others))
    }

    /// The first of these locations that a conversion leads to.
    fn reachable(&self, from: TileType, to: &[Loc]) -> Option<Loc> {
        to.iter().find(|to| self.leads(from.loc.into(), **to, from.dtype)).copied()
    }

    /// Whether a path of moves leads from one memory to the other for this dtype.
    pub(crate) fn leads(&self, from: MemorySpace, to: Loc, dtype: DType) -> bool {
        ptoc_isa::shortest_path(self.target, from, to, dtype).is_some()
    }

    pub(crate) fn dtypes(&mut self, id: InstrId, ops: &[Opnd], attrs: &InstAttrs, span: Span) -> ElabResult<()> {
        let instr = id.get();
        let found: Vec<DType> = ops.iter().filter_map(Opnd::dtype).collect();
        if let Sem::Move = instr.sem {
            let (Some(d), Some(s)) = (ops[0].tile(), ops[1].tile()) else { return Err(ErrorReported) };
            return match ptoc_isa::check_move(self.target, s.ty.loc, d.ty.loc, s.ty.dtype, d.ty.dtype) {
                Ok(_) => Ok(()),
                Err(v) => {
                    let d = v.diagnostic(span);
                    self.report(d)
                }
            };
        }
        if let Sem::Fixpipe(f) = instr.sem {
            let Some(a) = ops[1].tile() else { return Err(ErrorReported) };
            let (to, dtype) = match &ops[0] {
                Opnd::Tile(t, _) => (MemorySpace::Tile(t.ty.loc), t.ty.dtype),
                Opnd::View(v, _) => (MemorySpace::Gm, v.dtype),
                Opnd::Scalar(..) => return Err(ErrorReported),
            };
            let from = MemorySpace::Tile(a.ty.loc);
            if let Err(v) = ptoc_isa::check_move_as(self.target, from, to, (a.ty.dtype, dtype), f.quantised) {
                let d = v
                    .of(id)
                    .diagnostic(span)
                    .with_secondary(ops[0].span(), format!("`{dtype}`"))
                    .with_secondary(ops[1].span(), format!("`{}`", a.ty.dtype));
                return self.report(d);
            }
            // Of a table that could not be filled its dtype was told.
            if let Some(Opnd::Tile(s, at)) = ops.get(2).filter(|_| f.by_column(instr))
                && !matches!(self.valid.get(&s.tile), Some(Valid::Poison))
                && !ptoc_isa::scales(self.target).contains(&s.ty.dtype)
            {
                let scales = text::either(ptoc_isa::scales(self.target));
                let message = format!(
                    "on {} the scales of `{}` are {scales}, these are {}",
                    self.target.name,
                    instr.written_name(),
                    s.ty.dtype
                );
                let d = Diagnostic::error(codes::INSTR_DTYPE, *at, message)
                    .with_label(format!("`{}`", s.ty.dtype))
                    .with_note("of a u64 the lower half is the bits of an f32, as PTO has it")
                    .with_help(format!("make the table {scales}"));
                return self.report(d);
            }
            return Ok(());
        }
        if let (PipeRule::Move, Opnd::Tile(d, _), Some(Opnd::Tile(a, _))) = (instr.pipe, &ops[0], ops.get(1))
            && let Err(v) = ptoc_isa::check_move(self.target, a.ty.loc, d.ty.loc, a.ty.dtype, d.ty.dtype)
            && v.from != v.to
        {
            return match ptoc_isa::check_dtypes(self.target, id, &found, attrs.cmp) {
                // Of a window that is no move of its own, the row of the table knows more.
                Some(w) if !w.had_by.is_empty() => self.report(w.diagnostic(span)),
                _ => self.report(v.of(id).diagnostic(span)),
            };
        }
        if matches!(instr.sem, Sem::Load | Sem::Store) {
            let (Some(to), Some(from)) = (ops[0].dtype(), ops[1].dtype()) else { return Err(ErrorReported) };
            let (a, b) = match (&ops[0], &ops[1]) {
                (Opnd::Tile(t, _), _) => (MemorySpace::Gm, MemorySpace::Tile(t.ty.loc)),
                (_, Opnd::Tile(t, _)) => (MemorySpace::Tile(t.ty.loc), MemorySpace::Gm),
                _ => return Err(ErrorReported),
            };
            return match ptoc_isa::check_move(self.target, a, b, from, to) {
                Ok(_) => Ok(()),
                Err(v) => {
                    let same = ptoc_isa::check_move(self.target, a, b, from, from).is_ok();
                    let d = match (from != to && same, instr.sem) {
                        (true, Sem::Load) => {
                            let message = format!("TLOAD does not convert: the window holds `{from}`, the tile `{to}`");
                            Diagnostic::error(codes::MOVE_DTYPE, ops[1].span(), message)
                                .with_label(format!("`{from}`"))
                                .with_secondary(ops[0].span(), format!("`{to}`"))
                                .with_help(format!("load into a tile of `{from}`, then convert it: `{to}(..)`"))
                        }
                        (true, _) => {
                            let message =
                                format!("TSTORE does not convert: the tile holds `{from}`, the tensor `{to}`");
                            let d = Diagnostic::error(codes::MOVE_DTYPE, ops[1].span(), message)
                                .with_label(format!("`{from}`"))
                                .with_secondary(ops[0].span(), format!("`{to}`"));
                            // From Acc some dtypes are converted, and others are not.
                            let whole = v.diagnostic(span);
                            let path = ptoc_isa::conversion_path(self.target, from, to);
                            let told = a == MemorySpace::Tile(Loc::Acc) || path.is_none();
                            let d = match whole.notes.first().filter(|_| told) {
                                Some(takes) => d.with_note(format!("on {} {takes}", self.target.name)),
                                None => d,
                            };
                            let vec = if a == MemorySpace::Tile(Loc::Vec) { String::new() } else { "Vec(".into() };
                            let edits =
                                around(ops[1].span(), &format!("{to}({vec}"), if vec.is_empty() { ")" } else { "))" });
                            let scaled = ptoc_isa::check_move_as(self.target, a, b, (from, to), true).is_ok();
                            let d = match path {
                                Some(_) => d.with_edits("convert it by name", edits),
                                None if scaled => d,
                                // In two steps from Vec; else the nearest tensor.
                                None => {
                                    let two = self.two_steps(from, to).filter(|_| a == MemorySpace::Tile(Loc::Vec));
                                    let d = two.into_iter().fold(d, Diagnostic::with_help);
                                    whole.fixes.into_iter().fold(d, |d, f| d.with_help(f.message))
                                }
                            };
                            match scaled {
                                true => {
                                    d.with_help("with a scale it is quantised on the way: `TSTORE(view, a, scale)`")
                                }
                                false => d,
                            }
                        }
                        _ => v
                            .diagnostic(span)
                            .with_secondary(ops[0].span(), format!("`{to}`"))
                            .with_secondary(ops[1].span(), format!("`{from}`")),
                    };
                    self.report(d)
                }
            };
        }
        match ptoc_isa::check_dtypes(self.target, id, &found, attrs.cmp) {
            None => Ok(()),
            Some(v) => {
                let mut d = v.called(self.author_names(id, ops)).diagnostic(span);
                for op in ops {
                    if let Some(t) = op.dtype()
                        && !d.labels.iter().any(|l| l.span == op.span())
                    {
                        d = d.with_secondary(op.span(), format!("`{t}`"));
                    }
                }
                self.report(d)
            }
        }
    }

    /// How the author calls the tiles of an instruction, by their names in the table.
    fn author_names(&self, id: InstrId, ops: &[Opnd]) -> Vec<(&'static str, String)> {
        let named = |(spec, op): (&ptoc_isa::OperandSpec, &Opnd)| match op {
            Opnd::Tile(..) => Some((spec.name, self.author_name(op)?)),
            _ => None,
        };
        id.get().written().iter().zip(ops).filter_map(named).collect()
    }

    /// How the author calls what a tile or a window is of.
    pub(crate) fn author_name(&self, op: &Opnd) -> Option<String> {
        let kernel = self.b.kernel();
        let name = match op {
            Opnd::Tile(t, _) => kernel.tiles.get(t.tile).filter(|t| !t.hidden).map(|t| &t.name),
            Opnd::View(v, _) => Some(&kernel.tensors[v.tensor].name),
            Opnd::Scalar(..) => None,
        };
        name.filter(|n| !n.is_empty()).map(ToString::to_string)
    }

    /// How `from` becomes `to` in two conversions, where no one does it.
    fn two_steps(&self, from: DType, to: DType) -> Option<String> {
        let convert = super::instr_for(Sem::Convert)?;
        let found = ptoc_isa::check_dtypes(self.target, convert, &[to, from], None)?;
        let fixes = found.diagnostic(Span::default()).fixes;
        fixes.into_iter().map(|f| f.message).find(|m| m.starts_with("convert in two steps"))
    }

    /// What an instruction does to elements of a tensor instead of overwriting them.
    pub(crate) fn updates(&mut self, id: InstrId, ops: &[Opnd], attrs: &InstAttrs, span: Span) -> ElabResult<()> {
        let (Some(op), Some(dtype)) = (attrs.atomic, ops[0].dtype()) else { return Ok(()) };
        match ptoc_isa::check_atomic(self.target, id, op, dtype).filter(|_| self.target.lists_updates()) {
            None => Ok(()),
            Some(v) if v.of_op => self.report(v.diagnostic(span)),
            Some(v) => self.report(v.diagnostic(ops[0].span())),
        }
    }

    /// How the elements of a window lie for a tile in Vec.
    pub(crate) fn order_kept(&self, v: &View, t: &TileVal) -> OrderKept {
        let neighbours = |m: &ptoc_values::WindowMode| m.plain().is_some_and(|l| self.const_index(l.by[0]) == Some(1));
        let [first, second] = [0, 1].map(|k| &v.modes[k]);
        let (lines, across) = if t.ty.order == Order::Nd { (second, first) } else { (first, second) };
        // Modes of several axes and rows of one element are loop nests, whatever their distances are.
        let straight = lines.plain().is_none() || lines.cap == Some(1) || neighbours(lines);
        let turned = across.cap == Some(1) || neighbours(across);
        match (straight, turned) {
            _ if t.ty.loc != Loc::Vec || t.rows == 1 || t.cols == 1 => OrderKept::Straight,
            (true, _) => OrderKept::Straight,
            (false, true) => OrderKept::Turned,
            (false, false) => OrderKept::Apart,
        }
    }

    /// PTO's limits on extents, from the target's file; on capacities, so that they hold for every valid shape.
    pub(crate) fn limits(&mut self, id: InstrId, ops: &[Opnd], span: Span) -> ElabResult<()> {
        let instr = id.get();
        let tiles: Vec<TileType> =
            ops.iter().filter_map(|o| o.tile().map(|t| TileType { rows: t.rows, cols: t.cols, ..t.ty })).collect();
        if let Some(v) = ptoc_isa::check_limits(self.target, id, &tiles).first() {
            let d = v.diagnostic(span);
            return self.report(d);
        }
        // Copies between GM and Vec keep the order of the elements.
        let (view, tile) = match instr.sem {
            Sem::Load => (&ops[1], &ops[0]),
            Sem::Store => (&ops[0], &ops[1]),
            // From Acc there is no order to keep.
            _ => return Ok(()),
        };
        let (Opnd::View(v, at), Opnd::Tile(t, _)) = (view, tile) else { return Ok(()) };
        // What is turned around or apart: the first is the author's to say, the second is a loop nest.
        if self.order_kept(v, t) != OrderKept::Turned {
            return Ok(());
        }
        let load = instr.sem == Sem::Load;
        let d = Diagnostic::error(
            codes::TRANSPOSING_LOAD,
            *at,
            format!("`{}` cannot transpose on the way", instr.written_name()),
        )
        .with_label(match t.ty.order {
            Order::Nd => "consecutive columns are not adjacent in memory",
            Order::Dn => "the columns of the tile lie one behind the other, and not these",
        });
        let turn = match (t.ty.order, load) {
            (Order::Dn, true) => "load a tile in the order of rows, and TMOV it to this one",
            (Order::Dn, false) => "TMOV the tile to one in the order of rows, and store that",
            (Order::Nd, true) => "load the untransposed window and TTRANS it, or use `Vec(view)`, which does both",
            (Order::Nd, false) => {
                "TTRANS the tile, and store it to the untransposed window: `TSTORE(view, transpose(t))`"
            }
        };
        self.report(d.with_help(turn).with_help(match load {
            true => "`copy(tile, window)` and `Vec(window)` follow any strides, element by element",
            false => "`copy(window, tile)` follows any strides, element by element",
        }))
    }
}

/// A scale for what lies in Vec.
fn scaled_in_vec(d: Diagnostic, ops: &[Opnd]) -> Diagnostic {
    let to = ops[0].dtype().map_or("i8", DType::name);
    d.with_note("a scale is for what leaves Acc, where it is applied on the way")
        .with_help(format!("in Vec, multiply and convert: `{to}(t * scale)`"))
}

//! TSAMPLE, the instruction of GeoPIM's units: its operands are windows with three, one and two modes, and may be
//! absent.

use super::inst::usage;
use super::{ElabResult, Elaborator, ErrorReported};
use ptoc_diagnostics::{Diagnostic, Span, codes};
use ptoc_ir::tile::{Inst, InstAttrs, Operand, Value};
use ptoc_isa::{InstrId, Loc, Oob, Order, UnitKind};
use ptoc_names::builtins::Word;
use ptoc_syntax::ast::{Arg, Expr};
use ptoc_tensor::DType;
use ptoc_values::{TileVal, Val, View};

/// Samples of a query: the register that counts them has 16 bits.
const MAX_SAMPLES: i64 = 65_535;

/// How blocks become fewer by this factor.
pub(super) fn several(each: u64) -> String {
    format!(
        "let a block do {each} times as much: where it is one query, \
         `grid (q in tiles(Q, {each})) on (ceil_div(Q, {each})) : (1@unit)` with a loop `for i in q`"
    )
}

impl Elaborator<'_> {
    /// `TSAMPLE(acc, map, geo, attn, offs, fold = .., border = ..);`
    pub(crate) fn sample(&mut self, id: InstrId, args: &[Arg], span: Span, name_span: Span) -> ElabResult<Val> {
        let there = self.target.unit.is_some_and(|u| matches!(u.kind, UnitKind::GeoPim(_)));
        if !there {
            return self.sample_elsewhere(name_span);
        }
        self.outside_prologue(span)?;
        let mut attrs = InstAttrs { fold: Some(true), oob: Some(Oob::Clamp), ..InstAttrs::default() };
        let mut operands: Vec<&Expr> = Vec::new();
        for a in args {
            let Some(name) = &a.name else {
                operands.push(&a.value);
                continue;
            };
            match (name.name.as_str(), self.expr(&a.value)?) {
                ("fold", Val::Bool(fold)) => attrs.fold = Some(fold),
                ("border", Val::Word(Word::Oob(border @ (Oob::Clamp | Oob::Zero)))) => attrs.oob = Some(border),
                (_, Val::Poison) => return Err(ErrorReported),
                (other, v) => {
                    let known = matches!(other, "fold" | "border");
                    let message = match known {
                        true => format!("`{other}` of `TSAMPLE` cannot be {}", v.describe()),
                        false => format!("`TSAMPLE` has no mode `{other}`"),
                    };
                    let d = Diagnostic::error(
                        codes::WRONG_ARGUMENTS,
                        if known { a.value.span } else { name.span },
                        message,
                    )
                    .with_label(if known { "not that" } else { "no such mode" })
                    .with_note(format!("usage: `{}`", usage(id)));
                    return self.report(d);
                }
            }
        }
        if !(4..=5).contains(&operands.len()) {
            let d = Diagnostic::error(
                codes::WRONG_ARGUMENTS,
                span,
                format!("`TSAMPLE` takes 4 or 5 operands, {} given", operands.len()),
            )
            .with_label(format!("{} given", operands.len()))
            .with_note(format!("usage: `{}`", usage(id)));
            return self.report(d);
        }
        let acc = match self.expr(operands[0])? {
            Val::Tile(t) => t,
            Val::Poison => return Err(ErrorReported),
            other => return self.sample_kind(id, 0, &other, operands[0].span),
        };
        let map = self.sample_view(id, 1, operands[1], 3)?;
        let geo = self.sample_view(id, 2, operands[2], 1)?;
        let attn = self.sample_view(id, 3, operands[3], 1)?;
        let offs = match operands.get(4) {
            Some(e) => match self.maybe_absent(e)? {
                Val::Nothing | Val::Absent(_) => None,
                v => Some((self.view_operand(id, 4, v, e.span, 2)?, e.span)),
            },
            None => None,
        };
        self.sample_accumulators(&acc, operands[0].span)?;
        let (two, four, one) = (self.idx(2), self.idx(4), self.idx(1));
        let at = |k: usize| operands[k].span;
        let samples = attn.modes[0].extent;
        self.same_length(geo.modes[0].extent, four, "numbers of a query (x, y and their steps)", at(2), None)?;
        if let Some((offs, at_offs)) = &offs {
            self.same_length(offs.modes[0].extent, samples, "samples", *at_offs, Some((*at_offs, at(3))))?;
            self.same_length(offs.modes[1].extent, two, "numbers of an offset (x, y)", *at_offs, None)?;
        }
        self.sample_sizes(&map, samples, (at(1), at(3)))?;
        let channels = map.modes[2].extent;
        self.require_valid(channels, acc.cols, "channels", at(1))?;
        let valid = self.write_valid(&acc, (one, channels), at(0))?;
        let mut out = vec![Operand::Tile(self.tile_ref(&acc, valid))];
        for view in [&map, &geo, &attn].into_iter().chain(offs.as_ref().map(|o| &o.0)) {
            out.push(Operand::View(self.view_ref(view)));
        }
        self.b.inst(Inst { instr: id, operands: out, scratch: Vec::new(), attrs }, span);
        Ok(Val::Unit)
    }

    fn sample_elsewhere<T>(&mut self, at: Span) -> ElabResult<T> {
        if std::mem::replace(&mut self.elsewhere, true) {
            return Err(ErrorReported);
        }
        let geopim = self.target.name == "geopim";
        let who = if self.b.kernel().host { "the host".to_owned() } else { self.target.name.clone() };
        let d = Diagnostic::error(codes::INSTR_TARGET, at, format!("{who} has no `TSAMPLE`"))
            .with_label("an instruction of GeoPIM's units");
        self.report(match geopim {
            true => d.with_help(self.blocks_on_units()),
            // No unit of the others has addresses from data.
            false if self.target.has_units() => {
                d.with_help("use `--target geopim`, or sample in loops in a kernel of the host: `#[on(host)]`")
            }
            false => d.with_help("use `--target geopim`, or write it in loops"),
        })
    }

    /// How this kernel's grid gives its blocks to units, one each, as it can be written.
    fn blocks_on_units(&self) -> String {
        let extents: Vec<Option<i64>> = self.b.kernel().grid.iter().map(|d| self.const_index(d.extent)).collect();
        let name = |n: usize| extents[n].map_or_else(|| format!("n{}", n + 1), |extent| extent.to_string());
        // Blocks are counted with the last dimension fastest.
        let stride = |n: usize| match extents[n + 1..].iter().try_fold(1i64, |p, e| p.checked_mul((*e)?)) {
            Some(product) => format!("{product}@unit"),
            None => {
                let factors: Vec<String> = (n + 1..extents.len()).map(name).collect();
                if factors.len() == 1 {
                    format!("{}@unit", factors[0])
                } else {
                    format!("({})@unit", factors.join(" * "))
                }
            }
        };
        let list = |of: &dyn Fn(usize) -> String| {
            let all: Vec<String> = (0..extents.len()).map(of).collect();
            if all.len() == 1 { all[0].clone() } else { format!("({})", all.join(", ")) }
        };
        if extents.is_empty() {
            return "give the block to a unit, by the kernel's first statement: `grid (b in 0..1) on 1:0;`".into();
        }
        let blocks = extents.iter().try_fold(1i64, |p, e| p.checked_mul((*e)?)).unwrap_or(0);
        // The host, whose kernel this is yet, has no units.
        let target = ptoc_isa::Target::find(&self.target.name).ok();
        if let Some((device, unit)) = target.as_ref().and_then(|t| Some((t.device.as_ref()?, t.unit.as_ref()?))) {
            let units = device.units(unit).max(1);
            let each = u64::try_from(blocks).unwrap_or(0).div_ceil(units);
            if each > 1 {
                return format!("these are {blocks} blocks for {units} units: {}", several(each));
            }
        }
        let unknown: Vec<String> = (0..extents.len()).filter(|n| extents[*n].is_none()).map(name).collect();
        let text = format!("give each block to a unit: `grid (..) on {} : {}`", list(&name), list(&stride));
        match unknown.len() {
            0 => text,
            1 => format!("{text}, where `{}` is the number of blocks in that dimension", unknown[0]),
            _ => format!("{text}, where `{}` are the numbers of blocks in these dimensions", unknown.join("`, `")),
        }
    }

    fn sample_kind<T>(&mut self, id: InstrId, k: usize, v: &Val, at: Span) -> ElabResult<T> {
        let spec = id.get().operands[k];
        let want = if k == 0 { "a tile" } else { "a window of a tensor" };
        let message = format!("operand `{}` of `TSAMPLE` is {want}, found {}", spec.name, v.describe());
        let d = Diagnostic::error(codes::OPERAND_KIND, at, message)
            .with_label(v.describe())
            .with_note(format!("usage: `{}`", usage(id)));
        self.report(d)
    }

    fn sample_view(&mut self, id: InstrId, k: usize, e: &Expr, rank: usize) -> ElabResult<View> {
        let v = self.expr(e)?;
        self.view_operand(id, k, v, e.span, rank)
    }

    /// A window of f16 with so many modes at fixed distances.
    fn view_operand(&mut self, id: InstrId, k: usize, v: Val, at: Span, rank: usize) -> ElabResult<View> {
        let view = match v {
            Val::View(view) => view,
            Val::Poison => return Err(ErrorReported),
            other => return self.sample_kind(id, k, &other, at),
        };
        self.readable(&view, at)?;
        let name = id.get().operands[k].name;
        let shapes = ["1 x c", "h x w x c", "4", "s", "s x 2"];
        if view.modes.len() != rank {
            let d = Diagnostic::error(
                codes::RANK_MISMATCH,
                at,
                format!(
                    "`{name}` of `TSAMPLE` has {}, this window {}",
                    super::labels::count(rank, "mode", "modes"),
                    view.modes.len()
                ),
            )
            .with_help(format!("it is {}: choose all else by an index, as in `feat[b, _, _, _]`", shapes[k]));
            return self.report(d);
        }
        if view.dtype != DType::F16 {
            let d = Diagnostic::error(
                codes::INSTR_DTYPE,
                at,
                format!("`{name}` of `TSAMPLE` is f16, this holds {}", view.dtype),
            )
            .with_label(format!("`{}`", view.dtype));
            return self.report(d);
        }
        if !view.is_strided() || view.swizzle.is_some() {
            let d = Diagnostic::error(
                codes::SAMPLE_OPERAND,
                at,
                format!("`{name}` of `TSAMPLE` is more than rows at fixed distances"),
            )
            .with_label("a swizzle, a table or a ragged edge")
            .with_help("pass whole modes of a tensor: `feat[b, _, _, _]`");
            return self.report(d);
        }
        Ok((*view).clone())
    }

    fn sample_accumulators(&mut self, acc: &TileVal, at: Span) -> ElabResult<()> {
        let fits = acc.ty.loc == Loc::Vec && acc.ty.dtype == DType::F32 && acc.rows == 1 && acc.ty.order == Order::Nd;
        if fits {
            return Ok(());
        }
        let d =
            Diagnostic::error(codes::SAMPLE_OPERAND, at, "`TSAMPLE` sums in the accumulators: one row of f32 in Vec")
                .with_label(acc.ty.to_string())
                .with_help(format!("declare it `tile Vec<f32, 1, {}>`", acc.cols));
        self.report(d)
    }

    /// A map without pixels has nothing to sample, and samples are counted in 16 bits.
    fn sample_sizes(&mut self, map: &View, samples: Value, at: (Span, Span)) -> ElabResult<()> {
        if let Some(n) = self.const_index(samples).filter(|n| *n > MAX_SAMPLES) {
            let d = Diagnostic::error(
                codes::SAMPLE_OPERAND,
                at.1,
                format!("a query has {n} samples, and {MAX_SAMPLES} are counted"),
            )
            .with_label("too many")
            .with_help("split them over several queries");
            return self.report(d);
        }
        for (k, what) in ["rows", "columns"].into_iter().enumerate() {
            let n = self.const_index(map.modes[k].extent);
            if let Some(n) = n.filter(|n| *n < 1 || *n > MAX_SAMPLES) {
                let d =
                    Diagnostic::error(codes::SAMPLE_OPERAND, at.0, format!("a map of {n} {what} cannot be sampled"))
                        .with_label(format!("1 to {MAX_SAMPLES} {what}"));
                return self.report(d);
            }
        }
        Ok(())
    }
}

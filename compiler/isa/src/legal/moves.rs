//! Moves between places: which are legal, and the shortest way where no single one is.

use super::convert::exact_integer_bits;
use super::nearest::{distance, nearest_list};
use crate::{InstrId, Loc, MemorySpace, MoveRule, Target, left_out_as, lookup, text};
use ptoc_diagnostics::{Code, Diagnostic, Span, codes};
use ptoc_tensor::DType;

/// One step of a way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Hop {
    /// `TLOAD`, `TMOV` or `TSTORE`.
    pub instr: InstrId,
    /// From here.
    pub from: MemorySpace,
    /// To here.
    pub to: MemorySpace,
    /// Dtype before.
    pub from_dtype: DType,
    /// Dtype after.
    pub to_dtype: DType,
}

/// Why a move is illegal.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum MoveProblem {
    /// The target has no move between these places.
    NoMove {
        /// The shortest way round, if there is one.
        way: Option<Vec<Hop>>,
        /// Places that `from` moves to directly.
        reachable: Vec<MemorySpace>,
        /// What moves to `to` directly: from where, with which dtypes (before, after).
        into: Vec<(MemorySpace, Vec<(DType, DType)>)>,
        /// Where there is no way: the nearest dtype that has one, if it goes unchanged.
        instead: Option<DType>,
        /// Elements in global memory can be moved to `to`.
        from_memory: bool,
    },
    /// There is the move, but not for these dtypes.
    DType {
        /// The pairs that it takes.
        allowed: Vec<(DType, DType)>,
        /// It is taken with a scale, where it was given none, or without one.
        otherwise: bool,
        /// What this source becomes with a scale, where it was given none.
        scaled: Vec<DType>,
    },
}

/// A move that a target does not have.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MoveViolation {
    /// From here.
    pub from: MemorySpace,
    /// To here.
    pub to: MemorySpace,
    /// Dtype before.
    pub from_dtype: DType,
    /// Dtype after.
    pub to_dtype: DType,
    /// Whether the move applies a scale.
    pub quantised: bool,
    /// The instruction that the author wrote, if it is no move by name.
    pub instr: Option<InstrId>,
    /// Why.
    pub problem: MoveProblem,
    /// The target's name.
    pub target: String,
    /// Other built-in targets that have it.
    pub taken_by: Vec<&'static str>,
    /// Where there is no way: other built-in targets that have not the move, but a way.
    pub ways: Vec<(&'static str, Vec<Hop>)>,
}

fn takes_as(rule: &MoveRule, from: DType, to: DType, quantised: bool) -> bool {
    if quantised { rule.quantised.contains(&(from, to)) } else { takes(rule, from, to) }
}

/// A mask moves where any dtype does, within the vector memory.
fn moves_masks(rule: &MoveRule) -> bool {
    (rule.from, rule.to) == (Loc::Vec.into(), Loc::Vec.into())
}

fn takes(rule: &MoveRule, from: DType, to: DType) -> bool {
    let mask = from == DType::Bool && to == DType::Bool && moves_masks(rule);
    mask || rule.pairs.contains(&(from, to))
}

/// The instruction that moves from `from` to `to` with these dtypes, or why there is none.
pub fn check_move(
    target: &Target,
    from: impl Into<MemorySpace>,
    to: impl Into<MemorySpace>,
    from_dtype: DType,
    to_dtype: DType,
) -> Result<InstrId, MoveViolation> {
    check_move_as(target, from.into(), to.into(), (from_dtype, to_dtype), false)
}

/// [`check_move`] of a move that quantises, or does not; `dtypes` are those before and after.
pub fn check_move_as(
    target: &Target,
    from: MemorySpace,
    to: MemorySpace,
    (from_dtype, to_dtype): (DType, DType),
    quantised: bool,
) -> Result<InstrId, MoveViolation> {
    let problem = match target.move_rule(from, to) {
        Some(rule) if takes_as(rule, from_dtype, to_dtype, quantised) => return Ok(rule.instr),
        Some(rule) => MoveProblem::DType {
            allowed: match quantised {
                true => rule.quantised.clone(),
                false => {
                    let masks = moves_masks(rule).then_some((DType::Bool, DType::Bool));
                    rule.pairs.iter().copied().chain(masks).collect()
                }
            },
            otherwise: takes_as(rule, from_dtype, to_dtype, !quantised),
            scaled: rule.quantised.iter().filter(|p| !quantised && p.0 == from_dtype).map(|p| p.1).collect(),
        },
        None => {
            let way = shortest_conversion(target, from, from_dtype, to, to_dtype);
            let pairs = |m: &MoveRule| if quantised { m.quantised.clone() } else { m.pairs.clone() };
            let into = target.moves.iter().filter(|m| m.to == to && m.from != to && !pairs(m).is_empty());
            let others = target.dtypes.iter().copied().filter(|d| *d != from_dtype);
            let leads = |d: &DType| way.is_none() && shortest_path(target, from, to, *d).is_some();
            MoveProblem::NoMove {
                reachable: target.moves.iter().filter(|m| m.from == from).map(|m| m.to).collect(),
                into: into.map(|m| (m.from, pairs(m))).collect(),
                instead: others.filter(leads).min_by_key(|d| distance(from_dtype, *d)),
                from_memory: from != MemorySpace::Gm && shortest_path(target, MemorySpace::Gm, to, to_dtype).is_some(),
                way,
            }
        }
    };
    let takes = |t: &&Target| t.move_rule(from, to).is_some_and(|rule| takes_as(rule, from_dtype, to_dtype, quantised));
    // Where there is no way at all, one round is the next best.
    let round = matches!(problem, MoveProblem::NoMove { way: None, .. }) && !quantised;
    let way = |t: &'static Target| {
        Some((t.name.as_str(), shortest_conversion(t, from, from_dtype, to, to_dtype).filter(|_| round && !takes(&t))?))
    };
    let ways = target.others().filter_map(way).collect();
    let taken_by = target.others().filter(takes).map(|t| t.name.as_str()).collect();
    let (instr, target) = (None, target.name.clone());
    Err(MoveViolation { from, to, from_dtype, to_dtype, quantised, instr, problem, target, taken_by, ways })
}

/// The fewest moves from `from` to `to` that keep the dtype; empty if the places are equal. Among ways of equal length
/// the one that stays on chip longest.
pub fn shortest_path(
    target: &Target,
    from: impl Into<MemorySpace>,
    to: impl Into<MemorySpace>,
    dtype: DType,
) -> Option<Vec<Hop>> {
    shortest_conversion(target, from.into(), dtype, to.into(), dtype)
}

/// The fewest moves from `from` to `to` that also change the dtype, once at most, where a move can (from Acc, into
/// Bias).
pub fn shortest_conversion(
    target: &Target,
    from: impl Into<MemorySpace>,
    from_dtype: DType,
    to: impl Into<MemorySpace>,
    to_dtype: DType,
) -> Option<Vec<Hop>> {
    let (start, goal) = ((from.into(), from_dtype), (to.into(), to_dtype));
    if start == goal {
        return Some(Vec::new());
    }
    // Breadth first over (place, dtype); moves that stay on chip come first, so they win ties.
    let mut moves: Vec<&MoveRule> = target.moves.iter().collect();
    moves.sort_by_key(|m| m.from == MemorySpace::Gm || m.to == MemorySpace::Gm);
    let mut ways: Vec<Vec<Hop>> = vec![Vec::new()];
    let mut seen = vec![start];
    while !ways.is_empty() {
        let mut next = Vec::new();
        for way in &ways {
            let (here, dtype) = way.last().map_or(start, |h| (h.to, h.to_dtype));
            for rule in moves.iter().filter(|m| m.from == here && m.to != here) {
                for out in [dtype, to_dtype] {
                    let state = (rule.to, out);
                    if !takes(rule, dtype, out) || seen.contains(&state) {
                        continue;
                    }
                    let hop = Hop { instr: rule.instr, from: here, to: rule.to, from_dtype: dtype, to_dtype: out };
                    let longer: Vec<Hop> = way.iter().copied().chain([hop]).collect();
                    if state == goal {
                        return Some(longer);
                    }
                    seen.push(state);
                    next.push(longer);
                }
            }
        }
        ways = next;
    }
    None
}

impl MoveViolation {
    /// The same, of this instruction of the author's.
    #[must_use]
    pub fn of(self, instr: InstrId) -> MoveViolation {
        MoveViolation { instr: Some(instr), ..self }
    }

    /// How the move is written with a scale: `TMOV(dst, a, scale)`.
    fn with_scale(&self) -> String {
        let name = match (self.instr, self.to) {
            (Some(id), _) => id.get().written_name(),
            (None, MemorySpace::Gm) => "TSTORE",
            (None, MemorySpace::Tile(_)) => "TMOV",
        };
        let form = lookup(&format!("{name}_QUANT")).or_else(|| lookup("TMOV_QUANT"));
        let names = form.map_or(&[][..], |id| id.get().written()).iter().map(|o| o.name);
        format!("`{}({})`", form.map_or(name, |id| id.get().written_name()), text::joined(names))
    }

    /// The code.
    pub fn code(&self) -> Code {
        match &self.problem {
            MoveProblem::NoMove { way: None, .. } => codes::NO_MOVE_PATH,
            MoveProblem::NoMove { .. } => codes::NO_SUCH_MOVE,
            MoveProblem::DType { .. } => codes::MOVE_DTYPE,
        }
    }

    /// The report.
    pub fn diagnostic(&self, span: Span) -> Diagnostic {
        let MoveViolation { from, to, from_dtype, to_dtype, target, .. } = self;
        let error = |message: String| Diagnostic::error(self.code(), span, message);
        let d = match &self.problem {
            // From a place to itself there is no way to name.
            MoveProblem::NoMove { way: Some(way), reachable, .. } if way.is_empty() => {
                out_of(error(format!("{target} has no move from {from} to {to}")), *from, reachable)
                    .with_help("fill the tile from where the other one was filled, or use the other one itself")
            }
            MoveProblem::NoMove { into, .. } if self.quantised => self
                .into(error(format!("{target} has no move from {from} to {to}")), into)
                .with_help("`TSTORE(view, a, scale)` quantises on the way to memory: load it from there"),
            MoveProblem::NoMove { way: Some(way), .. } => error(format!("{target} has no move from {from} to {to}"))
                .with_note(format!("the way there is {}", describe(way)))
                .with_help(match to {
                    MemorySpace::Tile(loc) => format!("write `{loc}(...)`: a conversion takes that way by itself"),
                    MemorySpace::Gm => "take that way".to_string(),
                }),
            MoveProblem::NoMove { way: None, reachable, into, instead, from_memory } => {
                let d = error(format!("{target} has no way from {from} {from_dtype} to {to} {to_dtype}"));
                self.round(self.into(out_of(d, *from, reachable), into), into, *instead, *from_memory)
            }
            MoveProblem::DType { allowed, otherwise, scaled } => self.of_dtypes(span, allowed, *otherwise, scaled),
        };
        let way =
            |d: Diagnostic, (name, way): &(&str, Vec<Hop>)| d.with_note(format!("{name} has a way: {}", describe(way)));
        let d = self.ways.iter().fold(d, way);
        match self.taken_by.as_slice() {
            [] => d,
            [one] => d.with_note(format!("{one} has this move")),
            all => d.with_note(format!("{} have this move", text::list(all))),
        }
    }

    /// What moves to where it should go.
    fn into(&self, d: Diagnostic, into: &[(MemorySpace, Vec<(DType, DType)>)]) -> Diagnostic {
        match into {
            [] if self.quantised => d.with_note(format!("with a scale nothing moves to {}", self.to)),
            [] => {
                let out = left_out_as(&self.to.to_string());
                out.iter().fold(d.with_note(format!("nothing moves to {}", self.to)), |d, p| p.told(d))
            }
            all => {
                let with = if self.quantised { " with a scale" } else { "" };
                let ways = all.iter().map(|(from, pairs)| format!("from {from} {}", kinds(pairs)));
                let ways: Vec<String> = ways.collect();
                d.with_note(format!("to {} it moves{with}: {}", self.to, ways.join("; ")))
            }
        }
    }

    /// What to do where no way leads there.
    fn round(
        &self,
        d: Diagnostic,
        into: &[(MemorySpace, Vec<(DType, DType)>)],
        instead: Option<DType>,
        from_memory: bool,
    ) -> Diagnostic {
        let (from, to) = (self.from, self.to);
        match (instead, to) {
            (Some(DType::U64), MemorySpace::Tile(Loc::Scaling)) if self.from_dtype == DType::F32 => {
                d.with_help(U64_SCALES)
            }
            (Some(dtype), _) => d.with_help(format!("make it {dtype}: from {from} to {to} there is a way for {dtype}")),
            (None, MemorySpace::Gm) => {
                let places = into.iter().filter(|(_, pairs)| pairs.contains(&(self.from_dtype, self.to_dtype)));
                let places: Vec<&MemorySpace> = places.map(|(p, _)| p).collect();
                match places.as_slice() {
                    [] => d,
                    some => d.with_help(format!(
                        "keep what is to be stored in {}: load it there from where this tile was filled",
                        text::either(some)
                    )),
                }
            }
            (None, MemorySpace::Tile(Loc::Acc)) => {
                d.with_help("a product writes there, or a number: `acc = 0`; `TMATMUL_BIAS` starts from a row in Bias")
            }
            (None, MemorySpace::Tile(_)) if from_memory => {
                d.with_help(format!("fill the tile in {to} from where this one was filled: `{to}(view)`"))
            }
            (None, MemorySpace::Tile(_)) => d,
        }
    }

    /// The move is there, and not for these dtypes.
    fn of_dtypes(&self, span: Span, allowed: &[(DType, DType)], otherwise: bool, scaled: &[DType]) -> Diagnostic {
        let MoveViolation { from, to, from_dtype, to_dtype, target, .. } = self;
        let what = match from_dtype == to_dtype {
            true => from_dtype.to_string(),
            false => format!("{from_dtype} as {to_dtype}"),
        };
        let takes = if self.quantised { "does not quantise" } else { "does not take" };
        let message = format!("on {target} the move from {from} to {to} {takes} {what}");
        let d = Diagnostic::error(self.code(), span, message);
        let d = match (allowed, self.quantised) {
            ([], _) => d.with_note("it has no form with a scale"),
            (_, true) => d.with_note(format!("with a scale it takes {}", kinds(allowed))),
            (_, false) => d.with_note(format!("it takes {}", kinds(allowed))),
        };
        let d = match (otherwise, self.quantised) {
            (true, true) => d.with_help("leave the scale out: as they are, these dtypes move"),
            (true, false) => d.with_help(format!("with a scale it is quantised on the way: {}", self.with_scale())),
            _ => d,
        };
        if *from_dtype == DType::Bool {
            return d
                .with_help("a mask stays in Vec: select with it, and move the result, or its bits, `packbits(mask)`");
        }
        // The source is what there is; the destination is easier to change.
        let of_source: Vec<DType> = allowed.iter().filter(|(a, _)| a == from_dtype).map(|(_, b)| *b).collect();
        let side = if *to == MemorySpace::Gm { "tensor" } else { "destination" };
        let nearest = of_source.iter().copied().min_by_key(|d| distance(*to_dtype, *d));
        let pair = nearest_list(&[*from_dtype, *to_dtype], allowed.iter().map(|(a, b)| [*a, *b]));
        match (nearest, pair) {
            (Some(b), _) => d.with_help(format!("the nearest is to make the {side} {b}")),
            (None, _) if otherwise && !scaled.is_empty() => d,
            // The source is what the product has made: what it becomes with a scale, and has the most digits.
            (None, _) if let Some(b) = scaled.iter().max_by_key(|d| exact_integer_bits(**d)) => d.with_help(format!(
                "the nearest is to make the {side} {b}, and to give a scale: {}",
                self.with_scale()
            )),
            (None, Some([DType::U64, DType::U64])) if *to == Loc::Scaling.into() && *from_dtype == DType::F32 => {
                d.with_help(U64_SCALES)
            }
            (None, Some([a, b])) if a == b => {
                d.with_help(format!("the nearest is to make the source and the {side} {a}"))
            }
            (None, Some([a, b])) => d.with_help(format!("the nearest is to make the source {a} and the {side} {b}")),
            (None, None) => d,
        }
    }
}

/// A table of scales, where it cannot be f32.
const U64_SCALES: &str = "make the table u64: the lower half of an element is the bits of an f32, the scale";

/// Where the source moves.
fn out_of(d: Diagnostic, from: MemorySpace, reachable: &[MemorySpace]) -> Diagnostic {
    match reachable {
        [] => d.with_note(format!("nothing moves out of {from}: only instructions read it there")),
        places => d.with_note(format!("from {from} it moves to {}", text::list(places))),
    }
}

/// `i32, f32 and f16 to f32`; `any dtype` where it is so.
fn kinds(pairs: &[(DType, DType)]) -> String {
    let same = pairs.iter().filter(|(a, b)| a == b).map(|(a, _)| a.to_string());
    let other = pairs.iter().filter(|(a, b)| a != b).map(|(a, b)| format!("{a} to {b}"));
    let all: Vec<String> = same.chain(other).collect();
    match all.len() > 10 && pairs.iter().all(|(a, b)| a == b) {
        true if pairs.contains(&(DType::Bool, DType::Bool)) => "any dtype, as it is".to_owned(),
        true => "any dtype but bool".to_owned(),
        false => text::list(all),
    }
}

/// `TSTORE to GM, TLOAD to Vec`
fn describe(way: &[Hop]) -> String {
    way.iter().map(|h| format!("{} to {}", h.instr.get().name, h.to)).collect::<Vec<_>>().join(", then ")
}

//! Moves between places: which are legal, and the shortest way where no single one is.

use crate::{InstrId, Loc, MoveRule, Place, Target, TileType, text};
use ptoc_diagnostics::{Code, Diagnostic, Span, codes};
use ptoc_tensor::DType;

/// One step of a way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Hop {
    /// `TLOAD`, `TMOV` or `TSTORE`.
    pub instr: InstrId,
    /// From here.
    pub from: Place,
    /// To here.
    pub to: Place,
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
        reachable: Vec<Place>,
    },
    /// There is the move, but not for these dtypes.
    DType {
        /// The pairs that it takes.
        allowed: Vec<(DType, DType)>,
        /// Does it take this one with a scale, which it was not given?
        scaled: bool,
    },
    /// The destination is a table of one row (Bias, Scaling), and the tile has more.
    Rows {
        /// Its rows.
        rows: u32,
    },
}

/// A move that a target does not have.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MoveViolation {
    /// From here.
    pub from: Place,
    /// To here.
    pub to: Place,
    /// Dtype before.
    pub from_dtype: DType,
    /// Dtype after.
    pub to_dtype: DType,
    /// With a scale?
    pub quantised: bool,
    /// Why.
    pub problem: MoveProblem,
    /// The target's name.
    pub target: String,
    /// Other built-in targets that have it.
    pub taken_by: Vec<&'static str>,
}

fn takes_as(rule: &MoveRule, from: DType, to: DType, quantised: bool) -> bool {
    if quantised { rule.quantised.contains(&(from, to)) } else { takes(rule, from, to) }
}

fn takes(rule: &MoveRule, from: DType, to: DType) -> bool {
    // A mask moves where any dtype does, within the vector memory.
    let mask = from == DType::Bool && to == DType::Bool && (rule.from, rule.to) == (Loc::Vec.into(), Loc::Vec.into());
    mask || rule.pairs.contains(&(from, to))
}

/// The instruction that moves from `from` to `to` with these dtypes, or why there is none.
pub fn check_move(
    target: &Target,
    from: impl Into<Place>,
    to: impl Into<Place>,
    from_dtype: DType,
    to_dtype: DType,
) -> Result<InstrId, MoveViolation> {
    check_move_as(target, from.into(), to.into(), (from_dtype, to_dtype), false)
}

/// [`check_move`] of a move that quantises, or does not; `dtypes` are those before and after.
pub fn check_move_as(
    target: &Target,
    from: Place,
    to: Place,
    (from_dtype, to_dtype): (DType, DType),
    quantised: bool,
) -> Result<InstrId, MoveViolation> {
    let problem = match target.move_rule(from, to) {
        Some(rule) if takes_as(rule, from_dtype, to_dtype, quantised) => return Ok(rule.instr),
        Some(rule) if quantised => MoveProblem::DType { allowed: rule.quantised.clone(), scaled: false },
        Some(rule) => {
            MoveProblem::DType { allowed: rule.pairs.clone(), scaled: rule.quantised.contains(&(from_dtype, to_dtype)) }
        }
        None => MoveProblem::NoMove {
            way: shortest_conversion(target, from, from_dtype, to, to_dtype),
            reachable: target.moves.iter().filter(|m| m.from == from).map(|m| m.to).collect(),
        },
    };
    let taken_by = target
        .others()
        .filter(|t| t.move_rule(from, to).is_some_and(|rule| takes_as(rule, from_dtype, to_dtype, quantised)))
        .map(|t| t.name.as_str())
        .collect();
    Err(MoveViolation { from, to, from_dtype, to_dtype, quantised, problem, target: target.name.clone(), taken_by })
}

/// [`check_move`] between two tiles, with the rule on rows of Bias and Scaling.
pub fn check_move_tiles(target: &Target, from: TileType, to: TileType) -> Result<InstrId, MoveViolation> {
    let instr = check_move(target, from.loc, to.loc, from.dtype, to.dtype)?;
    if target.memory(to.loc).one_row && to.rows != 1 {
        return Err(MoveViolation {
            from: from.loc.into(),
            to: to.loc.into(),
            from_dtype: from.dtype,
            to_dtype: to.dtype,
            quantised: false,
            problem: MoveProblem::Rows { rows: to.rows },
            target: target.name.clone(),
            taken_by: Vec::new(),
        });
    }
    Ok(instr)
}

/// The fewest moves from `from` to `to` that keep the dtype; empty if the places are equal. Among ways of equal length
/// the one that stays on chip longest.
pub fn shortest_path(target: &Target, from: impl Into<Place>, to: impl Into<Place>, dtype: DType) -> Option<Vec<Hop>> {
    shortest_conversion(target, from.into(), dtype, to.into(), dtype)
}

/// The fewest moves from `from` to `to` that also change the dtype, once at most, where a move can (from Acc, into Bias).
pub fn shortest_conversion(
    target: &Target,
    from: impl Into<Place>,
    from_dtype: DType,
    to: impl Into<Place>,
    to_dtype: DType,
) -> Option<Vec<Hop>> {
    let (start, goal) = ((from.into(), from_dtype), (to.into(), to_dtype));
    if start == goal {
        return Some(Vec::new());
    }
    // Breadth first over (place, dtype); moves that stay on chip come first, so they win ties.
    let mut moves: Vec<&MoveRule> = target.moves.iter().collect();
    moves.sort_by_key(|m| m.from == Place::Gm || m.to == Place::Gm);
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
    /// The code.
    pub fn code(&self) -> Code {
        match &self.problem {
            MoveProblem::NoMove { way: None, .. } => codes::NO_MOVE_PATH,
            MoveProblem::NoMove { .. } => codes::NO_SUCH_MOVE,
            MoveProblem::DType { .. } => codes::MOVE_DTYPE,
            MoveProblem::Rows { .. } => codes::TABLE_ONE_ROW,
        }
    }

    /// The report.
    pub fn diagnostic(&self, span: Span) -> Diagnostic {
        let MoveViolation { from, to, from_dtype, to_dtype, target, .. } = self;
        let error = |message: String| Diagnostic::error(self.code(), span, message);
        let mut d = match &self.problem {
            // From a place to itself there is no way to name.
            MoveProblem::NoMove { way: Some(way), reachable } if way.is_empty() => {
                let d = error(format!("{target} has no move from {from} to {to}"));
                match reachable.as_slice() {
                    [] => d.with_note(format!("nothing moves out of {from}: only instructions read it there")),
                    places => d.with_note(format!("from {from} it moves to {}", text::list(places))),
                }
                .with_help("fill the tile from where the other one was filled, or use the other one itself")
            }
            MoveProblem::NoMove { .. } if self.quantised => error(format!("{target} has no move from {from} to {to}"))
                .with_help("`TSTORE(view, a, scale)` quantises on the way to memory: load it from there"),
            MoveProblem::NoMove { way: Some(way), .. } => error(format!("{target} has no move from {from} to {to}"))
                .with_note(format!("the way there is {}", describe(way)))
                .with_help(match to {
                    Place::Tile(loc) => format!("write `{loc}(...)`: a conversion takes that way by itself"),
                    Place::Gm => "take that way".to_string(),
                }),
            MoveProblem::NoMove { way: None, reachable } => {
                let d = error(format!("{target} has no way from {from} {from_dtype} to {to} {to_dtype}"));
                match reachable.as_slice() {
                    [] => d.with_note(format!("nothing moves out of {from}: only instructions read it there")),
                    places => d.with_note(format!("from {from} it moves to {}", text::list(places))),
                }
            }
            MoveProblem::DType { allowed, scaled } => {
                let same: Vec<DType> = allowed.iter().filter(|(a, b)| a == b).map(|(a, _)| *a).collect();
                let other = allowed.iter().filter(|(a, b)| a != b).map(|(a, b)| format!("{a} to {b}"));
                let kinds: Vec<String> = same.iter().map(|d| d.to_string()).chain(other).collect();
                let what = match from_dtype == to_dtype {
                    true => from_dtype.to_string(),
                    false => format!("{from_dtype} as {to_dtype}"),
                };
                let takes = if self.quantised { "does not quantise" } else { "does not take" };
                let d = error(format!("on {target} the move from {from} to {to} {takes} {what}"));
                let d = match (kinds.is_empty(), self.quantised) {
                    (true, _) => d.with_note("it has no form with a scale"),
                    (_, true) => d.with_note(format!("with a scale it takes {}", text::list(kinds))),
                    (_, false) => d.with_note(format!("it takes {}", text::list(kinds))),
                };
                let d = match (scaled, to) {
                    (true, Place::Gm) => {
                        d.with_help("with a scale it is quantised on the way: `TSTORE(view, a, scale)`")
                    }
                    (true, _) => d.with_help("with a scale it is quantised on the way, as in `TMOV(dst, a, scale)`"),
                    (false, _) => d,
                };
                match from_dtype {
                    DType::Bool => d.with_help("a mask stays in Vec: select with it, and move the result"),
                    _ => d,
                }
            }
            MoveProblem::Rows { rows } => {
                error(format!("a tile that is moved to {to} has one row, and this has {rows}"))
                    .with_note(format!("{to} is a table that is read along its only row"))
            }
        };
        if !self.taken_by.is_empty() {
            let verb = if self.taken_by.len() == 1 { "has" } else { "have" };
            d = d.with_note(format!("{} {verb} this move", text::list(&self.taken_by)));
        }
        d
    }
}

/// `TSTORE to GM, TLOAD to Vec`
fn describe(way: &[Hop]) -> String {
    way.iter().map(|h| format!("{} to {}", h.instr.get().name, h.to)).collect::<Vec<_>>().join(", then ")
}

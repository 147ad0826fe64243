//! Dtypes of an instruction's operands.

use super::convert::{ConversionHop, conversion_path, converts, keeps_all, rounds_twice, tcvt_pairs};
use super::nearest::{Nearest, becomes, best_list, changes, distance, nearest};
use crate::{CmpOp, DTypeRule, Instr, InstrId, LeftOut, OperandKind, Sem, Target, Triple};
use crate::{left_out, overloads, storage_operand, table, text};
use ptoc_diagnostics::{Code, Diagnostic, Span, codes};
use ptoc_tensor::DType;

/// What is wrong.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum DTypeProblem {
    /// Operands that must have one dtype have several.
    Mixed,
    /// The instruction does not take this dtype.
    Unsupported {
        /// The dtype.
        given: DType,
        /// The dtypes that it takes.
        allowed: Vec<DType>,
        /// What to use instead.
        instead: Option<Nearest>,
    },
    /// The operand that is a mask must be `bool`.
    NoMask,
    /// The comparison is not there for this dtype.
    CmpMode {
        /// The comparison.
        cmp: CmpOp,
    },
    /// TCVT has no such pair.
    NoPair {
        /// What the source converts to.
        allowed: Vec<DType>,
        /// What conversions by name make of it, with other instructions than TCVT as well.
        by_name: Vec<DType>,
        /// Where no chain does it: what the source converts to that has all of its values.
        keeps: Option<DType>,
        /// A chain of TCVTs that does the same.
        chain: Option<Vec<ConversionHop>>,
        /// Where there is none: a dtype to go through, at the price of a second rounding.
        via: Option<DType>,
        /// Where there is neither: the nearest source that converts there.
        from: Option<DType>,
        /// Where there is none either: the nearest pair (from, to).
        nearest: Option<(DType, DType)>,
    },
    /// The matrix unit does not combine these.
    NoTriple {
        /// What it combines.
        allowed: Vec<Triple>,
        /// The accumulator that these operands need, if they can be combined at all.
        accumulator: Option<DType>,
    },
    /// The index of a gather is no 32-bit integer.
    Index {
        /// Its dtype.
        given: DType,
        /// What to use instead.
        instead: Option<Nearest>,
    },
    /// The instruction takes certain lists of dtypes.
    NoTuple {
        /// The lists that it takes, in table order.
        allowed: Vec<Vec<DType>>,
        /// The one that differs the least.
        nearest: Option<Vec<DType>>,
    },
}

/// Dtypes that an instruction does not take on a target.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DTypeViolation {
    /// The instruction.
    pub instr: InstrId,
    /// The dtypes given, in table order.
    pub given: Vec<DType>,
    /// What is wrong.
    pub problem: DTypeProblem,
    /// The target's name.
    pub target: String,
    /// Other built-in targets that take them.
    pub taken_by: Vec<&'static str>,
    /// Other built-in targets that have the instruction, with these dtypes or with others; asked where this one has
    /// not.
    pub had_by: Vec<&'static str>,
    /// The dtypes that the target compares for equality alone.
    pub equal_only: Vec<DType>,
    /// How the author calls what the table calls so.
    called: Vec<(&'static str, String)>,
}

/// The dtypes that the data operands of `instr` may have on `target`; `None` where the rule is another (conversions,
/// matrix products, moves).
pub fn allowed_dtypes(target: &Target, instr: &Instr) -> Option<Vec<DType>> {
    if !matches!(instr.dtypes, DTypeRule::Same | DTypeRule::Mask) {
        return None;
    }
    let list = target.instructions.list(instr).iter().filter_map(|entry| entry.first().copied());
    Some(list.filter(|d| target.has_dtype(*d) && fits(target, instr, *d)).collect())
}

/// Whether the operands may be of this dtype wherever they are. What the matrix unit reads and writes has a few dtypes
/// on each target.
fn fits(target: &Target, instr: &Instr, dtype: DType) -> bool {
    instr.operands.iter().all(|o| match o.kind {
        OperandKind::Tile(&[loc]) => {
            let there = loc == crate::Loc::Vec || target.knows(loc);
            there && target.cube_dtypes(loc).is_none_or(|there| there.contains(&dtype))
        }
        _ => true,
    })
}

/// The lists of dtypes, one for each tile operand that the author writes, that an instruction takes on `target`; `None`
/// where the rule is another.
pub fn allowed_tuples<'t>(target: &'t Target, instr: &Instr) -> Option<Vec<&'t [DType]>> {
    if instr.dtypes != DTypeRule::Tuples {
        return None;
    }
    let list = target.instructions.list(instr).iter().map(Vec::as_slice);
    Some(list.filter(|t| t.iter().all(|d| target.has_dtype(*d))).collect())
}

/// Checks the dtypes of the operands that have one (tiles, views and scalars; not addresses), in table order. Moves,
/// loads and stores are checked by [`super::check_move`], because their rule depends on locations.
pub fn check_dtypes(target: &Target, instr: InstrId, given: &[DType], cmp: Option<CmpOp>) -> Option<DTypeViolation> {
    let problem = find_problem(target, instr, given, cmp)?;
    let taken_by =
        target.others().filter(|t| find_problem(t, instr, given, cmp).is_none()).map(|t| t.name.as_str()).collect();
    let had_by = match has(target, instr) {
        true => Vec::new(),
        false => target.others().filter(|t| has(t, instr)).map(|t| t.name.as_str()).collect(),
    };
    let equal_only = match instr.get().dtypes {
        DTypeRule::Mask => target.instructions.equal_only(instr).to_vec(),
        _ => Vec::new(),
    };
    let (given, target) = (given.to_vec(), target.name.clone());
    Some(DTypeViolation { instr, given, problem, target, taken_by, had_by, equal_only, called: Vec::new() })
}

/// Whether there is a dtype, or a list of them, that the instruction takes.
fn has(target: &Target, instr: InstrId) -> bool {
    let row = instr.get();
    allowed_dtypes(target, row).is_none_or(|l| !l.is_empty())
        && allowed_tuples(target, row).is_none_or(|l| !l.is_empty())
}

fn find_problem(target: &Target, instr: InstrId, given: &[DType], cmp: Option<CmpOp>) -> Option<DTypeProblem> {
    let row = instr.get();
    match row.dtypes {
        // By the moves of the target's file ([`super::check_move_as`]).
        DTypeRule::Move | DTypeRule::Fixpipe => None,
        DTypeRule::Any => {
            let bad = given.iter().find(|d| !target.has_dtype(**d))?;
            Some(unsupported(target, target.dtypes.clone(), *bad))
        }
        DTypeRule::Same => same(target, row, given, None),
        DTypeRule::Tuples => {
            let allowed = allowed_tuples(target, row)?;
            let given = &given[..row.tiles_written().min(given.len())];
            // What is compared is the first source.
            let only = target.instructions.equal_only(instr);
            let unequal = cmp.filter(|c| *c != CmpOp::Eq);
            let eq_only = |list: &[DType]| list.get(1).is_some_and(|d| only.contains(d));
            if !allowed.contains(&given) {
                let usable = allowed.iter().copied().filter(|l| unequal.is_none() || !eq_only(l));
                let nearest = best_list(target, row, given, usable).map(<[DType]>::to_vec);
                let allowed = allowed.into_iter().map(<[DType]>::to_vec).collect();
                return Some(DTypeProblem::NoTuple { nearest, allowed });
            }
            let cmp = unequal.filter(|_| eq_only(given))?;
            Some(DTypeProblem::CmpMode { cmp })
        }
        DTypeRule::Mask => {
            // The mask is operand 0 of a comparison and operand 1 of a selection.
            let at = usize::from(!row.sem.compares());
            let mut data = given.to_vec();
            if at < data.len() && data.remove(at) != DType::Bool {
                return Some(DTypeProblem::NoMask);
            }
            let eq_only = |d: &DType| target.instructions.equal_only(instr).contains(d);
            let usable = cmp.filter(|c| *c != CmpOp::Eq).map(|_| |d: &DType| !eq_only(d));
            if let Some(problem) = same(target, row, &data, usable.as_ref().map(|f| f as &dyn Fn(&DType) -> bool)) {
                return Some(problem);
            }
            let (first, cmp) = (*data.first()?, cmp?);
            let limited = eq_only(&first) && cmp != CmpOp::Eq;
            limited.then_some(DTypeProblem::CmpMode { cmp })
        }
        DTypeRule::Pairs => {
            let &[to, from, ..] = given else { return None };
            let pairs = tcvt_pairs(target);
            if pairs.contains(&(from, to)) {
                return None;
            }
            let allowed: Vec<DType> = pairs.iter().filter(|(a, _)| *a == from).map(|(_, b)| *b).collect();
            let chain = conversion_path(target, from, to).filter(|c| !c.is_empty());
            let via = rounds_twice(target, from, to);
            let neither = chain.is_none() && via.is_none();
            let keeps = allowed.iter().copied().filter(|d| neither && *d != from && keeps_all(from, *d));
            let keeps = keeps.min_by_key(|d| (d.is_float() != to.is_float(), d.size()));
            let sources = pairs.iter().filter(|(_, b)| *b == to).map(|(a, _)| *a);
            // One that has every value, before one that is like it.
            let rank = |a: &DType| {
                (!keeps_all(from, *a), if keeps_all(from, *a) { a.size() as u32 } else { distance(from, *a) })
            };
            let source = sources.min_by_key(rank).filter(|_| neither && keeps.is_none());
            // The source is what there is.
            let nearest = pairs.iter().copied().min_by_key(|(a, b)| 4 * distance(from, *a) + distance(to, *b));
            let by_name = DType::ALL.into_iter().filter(|d| *d != from && converts(target, from, *d)).collect();
            Some(DTypeProblem::NoPair { allowed, by_name, keeps, from: source, via, chain, nearest })
        }
        DTypeRule::Matmul => {
            let (acc, left, right, equal_acc) = match (row.sem, given) {
                (Sem::MatmulAcc, &[d, c, a, b]) => (d, a, b, c == d),
                (Sem::MatmulBias, &[d, a, b, bias]) => (d, a, b, bias == d),
                (_, &[d, a, b]) => (d, a, b, true),
                _ => return None,
            };
            if !target.triples.contains(&Triple { acc, left, right }) {
                return Some(DTypeProblem::NoTriple {
                    allowed: target.triples.clone(),
                    accumulator: target.accumulator_of(left, right),
                });
            }
            (!equal_acc).then_some(DTypeProblem::Mixed)
        }
        DTypeRule::Sample => {
            let wrong = given.iter().enumerate().find(|(k, d)| **d != if *k == 0 { DType::F32 } else { DType::F16 });
            let (k, d) = wrong?;
            let allowed = vec![if k == 0 { DType::F32 } else { DType::F16 }];
            Some(unsupported(target, allowed, *d))
        }
        DTypeRule::Gather => {
            let &[d, table, idx] = given else { return None };
            if let Some(bad) = [d, table].into_iter().find(|x| *x == DType::Bool || !target.has_dtype(*x)) {
                return Some(unsupported(target, target.dtypes.clone(), bad));
            }
            if d != table {
                return Some(DTypeProblem::Mixed);
            }
            let taken = [DType::I32, DType::U32];
            let index = || DTypeProblem::Index { given: idx, instead: nearest(target, &taken, idx) };
            (!taken.contains(&idx)).then(index)
        }
    }
}

/// `usable`: of what is allowed, what helps.
fn same(
    target: &Target,
    row: &Instr,
    given: &[DType],
    usable: Option<&dyn Fn(&DType) -> bool>,
) -> Option<DTypeProblem> {
    let allowed = allowed_dtypes(target, row)?;
    let first = *given.first()?;
    if given.iter().any(|d| *d != first) {
        return Some(DTypeProblem::Mixed);
    }
    if allowed.contains(&first) {
        return None;
    }
    let of_use: Vec<DType> = allowed.iter().copied().filter(|d| usable.is_none_or(|f| f(d))).collect();
    let instead = nearest(target, &of_use, first);
    Some(DTypeProblem::Unsupported { given: first, allowed, instead })
}

fn unsupported(target: &Target, allowed: Vec<DType>, given: DType) -> DTypeProblem {
    let instead = nearest(target, &allowed, given);
    DTypeProblem::Unsupported { given, allowed, instead }
}

/// What two conversions do that one would not.
fn two_steps(from: DType, via: DType, to: DType) -> &'static str {
    match (from.is_int() && to.is_int(), keeps_all(from, via)) {
        (true, true) => "what does not fit saturates, where integers would wrap",
        (true, false) => "what does not fit saturates, and beyond 2^24 it is rounded first",
        (false, _) => "the value is then rounded twice",
    }
}

impl DTypeViolation {
    /// The same with the author's names of operands, which stand in help for what the table calls them.
    #[must_use]
    pub fn called(mut self, names: Vec<(&'static str, String)>) -> DTypeViolation {
        // One tile in two places cannot have two dtypes: then the places are named.
        let distinct = names.iter().enumerate().all(|(k, a)| names[..k].iter().all(|b| a.1 != b.1));
        self.called = if distinct { names } else { Vec::new() };
        self
    }

    /// What help calls an operand.
    fn call(&self, operand: &'static str) -> String {
        let own = self.called.iter().find(|(name, _)| *name == operand);
        own.map_or_else(|| operand.to_owned(), |(_, own)| own.clone())
    }

    /// The code.
    pub fn code(&self) -> Code {
        match self.problem {
            DTypeProblem::CmpMode { .. } => codes::CMP_MODE_DTYPE,
            DTypeProblem::NoTriple { .. } => codes::CUBE_TRIPLE,
            DTypeProblem::NoPair { .. } => codes::CVT_PAIR,
            _ => codes::INSTR_DTYPE,
        }
    }

    /// The report.
    pub fn diagnostic(&self, span: Span) -> Diagnostic {
        let name = self.instr.get().written_name();
        let target = &self.target;
        let form = if crate::is_first(self.instr) { "" } else { "this form of " };
        let error = |message: String| Diagnostic::error(self.code(), span, message);
        let mut d = match &self.problem {
            DTypeProblem::Mixed if matches!(self.instr.get().dtypes, DTypeRule::Matmul) => {
                let (what, to) = match self.instr.get().sem {
                    Sem::MatmulBias => ("bias", "TMOV to Bias converts f16 on the way"),
                    _ => ("start", "give it an accumulator of this dtype"),
                };
                error(format!("the {what} of {name} has the dtype of its result, and these are {}", self.operands()))
                    .with_help(format!("make it {}: {to}", self.given[0]))
            }
            DTypeProblem::Mixed => {
                error(format!("{name} takes operands of one dtype, and these are {}", self.operands()))
                    .with_help("convert one side: nothing is promoted by itself")
            }
            DTypeProblem::Unsupported { given, allowed, instead } => {
                let d = match allowed.as_slice() {
                    [] => error(self.lacks()).with_label(format!("not on {target}")),
                    all => error(format!("{form}{name} does not take {given} on {target}")).with_note(format!(
                        "it takes {} there{}",
                        text::list(all),
                        self.only_equal()
                    )),
                };
                match (instead, self.tile_form(*given)) {
                    (_, Some(form)) => d.with_help(form),
                    (Some(nearest), None) if !self.instr.get().reads_tiles() => d.with_help(format!(
                        "make `{}` {}",
                        self.call(self.instr.get().operands[0].name),
                        nearest.dtype()
                    )),
                    (Some(nearest), None) => d.with_help(nearest.help(*given, target)),
                    (None, None) => d,
                }
            }
            DTypeProblem::NoMask => {
                error(format!("the mask of {name} is a tile of bool, and operands are {}", self.operands()))
                    .with_help("declare the mask `Vec<bool, r, c>`: the compiler packs its bits")
            }
            DTypeProblem::CmpMode { cmp } => {
                error(format!("on {target}, {name} compares integers for equality only, not with `{cmp}`"))
                    .with_help("convert both sides with `f32(...)`: exact up to 2^24")
            }
            DTypeProblem::NoPair { allowed, by_name, keeps, chain, via, from: source, nearest } => {
                let (to, from) = (self.given[0], self.given[1]);
                let d = error(format!("{name} does not convert {from} to {to} on {target}"));
                let d = match allowed.as_slice() {
                    [] if by_name.is_empty() => d.with_note(format!("from {from} it converts to nothing there")),
                    [] => {
                        let names = text::list(by_name.iter().map(|d| format!("`{d}(...)`")));
                        d.with_note(format!("it does not read {from} there; operations on bits make {names} of it"))
                    }
                    all => d.with_note(format!("from {from} it converts to {} there", text::list(all))),
                };
                match (chain, via, source) {
                    _ if to == from => d.with_help("`TMOV(dst, a)` copies a tile that keeps its dtype"),
                    (Some(hops), ..) => {
                        let via = hops[..hops.len() - 1].iter().map(|h| h.to);
                        d.with_help(format!("`{to}(...)` goes through {} by itself", text::list(via)))
                    }
                    _ if by_name.contains(&to) => d.with_help(format!("`{to}(...)` does it by operations on bits")),
                    (None, Some(via), _) => {
                        let what = two_steps(from, *via, to);
                        d.with_help(format!("convert in two steps, `{to}({via}(...))`: {what}"))
                    }
                    _ if let Some(to) = keeps => {
                        d.with_help(format!("the nearest is to convert to {to}, which has every value of {from}"))
                    }
                    (None, None, Some(source)) if keeps_all(from, *source) => d.with_help(format!(
                        "make the source {source}, which has every value of {from} and converts to {to} there"
                    )),
                    (None, None, Some(source)) => d.with_help(format!(
                        "make the source {source}: of what converts to {to} there, it is the nearest to {from}"
                    )),
                    (None, None, None) => match nearest {
                        Some((a, b)) if a == &from => d.with_help(format!("the nearest is to convert to {b}")),
                        Some((a, b)) => d.with_help(format!(
                            "the nearest is to make `{}` {a} and `{}` {b}",
                            self.call("a"),
                            self.call("dst")
                        )),
                        None => d,
                    },
                }
            }
            DTypeProblem::NoTriple { allowed, accumulator } => {
                let d = error(format!("the matrix unit of {target} does not combine {}", self.operands()))
                    .with_note(format!("it computes {}", text::list(allowed)));
                match accumulator {
                    Some(acc) => d.with_help(format!("make the accumulator {acc}")),
                    None => self.nearest_triple(d, allowed),
                }
            }
            DTypeProblem::NoTuple { allowed, .. } if allowed.is_empty() => {
                error(self.lacks()).with_label(format!("not on {target}"))
            }
            DTypeProblem::NoTuple { allowed, nearest } => {
                let names = || self.instr.get().written().iter().filter(|o| o.is_tile()).map(|o| o.name);
                let all = allowed.iter().map(|t| format!("({})", text::joined(t.iter())));
                let d = error(format!("{name} does not take {} on {target}", self.operands())).with_note(format!(
                    "as ({}) it takes {} there",
                    text::joined(names()),
                    text::list(all)
                ));
                match nearest {
                    Some(list) => {
                        let own = names().map(|n| self.call(n));
                        let list_of = changes(own, &self.given, list);
                        d.with_help(format!("the nearest is to make {list_of}{}", self.of_sources(list)))
                    }
                    None if self.instr.get().counts_bytes() => d.with_help(format!(
                        "an offset counts bytes, so elements keep their width, and none of these is as wide as {}: \
                         declare the tensors u32, with two columns for one, and gather both halves",
                        self.given[1]
                    )),
                    None => d,
                }
            }
            DTypeProblem::Index { given, instead } => {
                let d = error(format!("on {target} the index of {name} is i32 or u32, and this one is {given}"))
                    .with_note("PTO has indices of 32 bits on every target");
                match instead {
                    Some(Nearest::Declared(to)) => d.with_help(format!(
                        "make the index {to} from the start: {target} has no conversion from {given} to it"
                    )),
                    Some(nearest) => d.with_help(nearest.help(*given, target)),
                    None => d,
                }
            }
        };
        let has_tile_form = self.given.first().is_some_and(|given| self.tile_form(*given).is_some());
        if !self.taken_by.is_empty() {
            d = d.with_note(format!("{} would take it", text::list(&self.taken_by)));
        } else if let Some(there) = self.tile_form_elsewhere().filter(|_| !has_tile_form) {
            d = d.with_note(there);
        } else if !self.had_by.is_empty() {
            let verb = if self.had_by.len() == 1 { "has" } else { "have" };
            d = d.with_note(format!("{} {verb} {name}, for other dtypes", text::list(&self.had_by)));
        }
        d = self.left_out().into_iter().fold(d, |d, p| p.told(d));
        match table::instead_of(self.instr).filter(|_| !has_any(&self.problem)) {
            Some(other) => d.with_help(other),
            None => d,
        }
    }

    /// How the sources become what `list` has, and what is lost on the way.
    fn of_sources(&self, list: &[DType]) -> String {
        let row = self.instr.get();
        if row.counts_bytes() {
            return ": declare the tensor so, which moves the same bits".to_owned();
        }
        let Ok(there) = Target::builtin(&self.target) else { return String::new() };
        let mut told: Vec<String> = Vec::new();
        for k in row.sources().filter(|k| *k < list.len().min(self.given.len()) && self.given[*k] != list[*k]) {
            let how = becomes(there, self.given[k], list[k]);
            if !told.contains(&how) {
                told.push(how);
            }
        }
        if told.is_empty() { String::new() } else { format!(": {}", told.join("; ")) }
    }

    /// What of PTO's instruction this is, and the language has not.
    fn left_out(&self) -> Vec<LeftOut> {
        let wanted = |p: &LeftOut| match self.problem {
            DTypeProblem::Mixed => p.words.contains(&":"),
            DTypeProblem::Unsupported { .. } | DTypeProblem::NoTuple { .. } => {
                self.taken_by.is_empty() && self.given.iter().any(|d| p.words.contains(&d.name()))
            }
            _ => false,
        };
        let more = storage_operand(self.instr).filter(|_| matches!(self.problem, DTypeProblem::NoTuple { .. }));
        left_out(self.instr.get().written_name()).filter(wanted).chain(more).collect()
    }

    /// Where the same instruction with a tile for the scalar takes this dtype: that, and the operator that fills the
    /// tile.
    fn tile_form(&self, given: DType) -> Option<String> {
        let Sem::BinaryScalar(op) = self.instr.get().sem else { return None };
        let (tiles, _) = table::sibling(self.instr)?;
        let there = Target::builtin(&self.target).ok()?;
        let takes = allowed_dtypes(there, tiles.get())?.contains(&given);
        let how = match op.symbol() {
            Some(symbol) => format!("operators (`a {symbol} s`) see to it"),
            None => format!("functions (`{op}(a, s)`) see to it"),
        };
        takes.then(|| format!("`{}` takes {given} there, with the scalar in a tile: {how}", tiles.get().usage()))
    }

    /// Where another target takes this dtype with a tile for the scalar: that.
    fn tile_form_elsewhere(&self) -> Option<String> {
        let Sem::BinaryScalar(_) = self.instr.get().sem else { return None };
        let (tiles, _) = table::sibling(self.instr)?;
        let dtype = self.given.first()?;
        let takes = |t: &&Target| allowed_dtypes(t, tiles.get()).is_some_and(|l| l.contains(dtype));
        let on = Target::all().iter().filter(|t| t.name != self.target).filter(takes).map(|t| t.name.as_str());
        let on: Vec<&str> = on.collect();
        let form = tiles.get().usage();
        (!on.is_empty()).then(|| {
            format!("{} would take it as `{form}`, with the scalar in a tile, as operators do", text::list(&on))
        })
    }

    /// `, i32 for equality alone`: what a comparison takes with a reserve.
    fn only_equal(&self) -> String {
        match self.equal_only.as_slice() {
            [] => String::new(),
            only => format!(", {} for equality alone", text::list(only)),
        }
    }

    /// The product that differs the least, if it is no table.
    fn nearest_triple(&self, d: Diagnostic, allowed: &[Triple]) -> Diagnostic {
        let (at, given) = match (self.instr.get().sem, &self.given[..]) {
            (Sem::MatmulAcc, &[acc, _, a, b]) | (_, &[acc, a, b, ..]) => (["dst", "a", "b"], [acc, a, b]),
            _ => return d,
        };
        // Factors are harder to change than the accumulator.
        let far =
            |t: &&Triple| 4 * (distance(given[1], t.left) + distance(given[2], t.right)) + distance(given[0], t.acc);
        match allowed.iter().min_by_key(far) {
            Some(t) => {
                let list = changes(at.into_iter().map(|n| self.call(n)), &given, &[t.acc, t.left, t.right]);
                d.with_help(format!("the nearest is to make {list}"))
            }
            None => d,
        }
    }

    fn operands(&self) -> String {
        let has = |o: &&crate::OperandSpec| match o.kind {
            OperandKind::Tile(_) | OperandKind::View | OperandKind::Scalar(_) => true,
            OperandKind::Address | OperandKind::Index | OperandKind::Choice(_) | OperandKind::Pad => false,
        };
        let given = self.instr.get().written().iter().filter(has).zip(&self.given);
        let seen = given.filter(|(o, _)| !matches!(o.kind, OperandKind::Scalar(_)));
        text::list(seen.map(|(o, d)| format!("{} {d}", o.name)))
    }

    /// The target has not the instruction, or not this form of it.
    fn lacks(&self) -> String {
        let (name, target) = (self.instr.get().written_name(), &self.target);
        let there = |id: InstrId| Target::builtin(target).is_ok_and(|t| has(t, id));
        let first = crate::lookup(name).unwrap_or(self.instr);
        match overloads(first).any(there) {
            true => format!("{target} does not have this form of {name}"),
            false => format!("{target} does not have {name}"),
        }
    }
}

fn has_any(problem: &DTypeProblem) -> bool {
    match problem {
        DTypeProblem::Unsupported { allowed, .. } => !allowed.is_empty(),
        DTypeProblem::NoTuple { allowed, .. } => !allowed.is_empty(),
        _ => true,
    }
}

//! Dtypes of an instruction's operands.

use super::convert::{ConversionHop, conversion_path, keeps_all, rounds_twice, tcvt_pairs};
use crate::{CmpOp, DTypeRule, Family, Instr, InstrId, Sem, Target, Triple, text};
use ptoc_diagnostics::{Code, Diagnostic, Span, codes};
use ptoc_tensor::DType;

/// What is wrong.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum DTypeProblem {
    /// Operands that must have one dtype have several.
    Mixed,
    /// The instruction does not take this dtype.
    Unsupported {
        /// The dtypes that it takes.
        allowed: Vec<DType>,
        /// The smallest of them that holds every value of the given one.
        convert_to: Option<DType>,
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
        /// A chain of TCVTs that does the same.
        chain: Option<Vec<ConversionHop>>,
        /// Where there is none: a dtype to go through, at the price of a second rounding.
        via: Option<DType>,
    },
    /// The matrix unit does not combine these.
    NoTriple {
        /// What it combines.
        allowed: Vec<Triple>,
        /// The accumulator that these operands need, if they can be combined at all.
        accumulator: Option<DType>,
    },
    /// The index of a gather is no 32-bit integer.
    Index,
    /// The instruction takes certain lists of dtypes.
    NoTuple {
        /// The lists that it takes, in table order.
        allowed: Vec<&'static [DType]>,
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
}

/// The dtypes that the data operands of `instr` may have on `target`; `None` where the rule is another (conversions,
/// matrix products, moves).
pub fn allowed_dtypes(target: &Target, instr: &Instr) -> Option<Vec<DType>> {
    let (a2a3, more, a5) = match instr.dtypes {
        DTypeRule::Same { a2a3, a5 } => (a2a3, &[][..], a5),
        DTypeRule::Mask { a2a3, a2a3_eq_only, a5 } => (a2a3, a2a3_eq_only, a5),
        _ => return None,
    };
    let list: Vec<DType> = match target.family {
        Family::A2A3 => a2a3.iter().chain(more).copied().collect(),
        Family::A5 | Family::Pim => a5.to_vec(),
    };
    Some(list.into_iter().filter(|d| target.has_dtype(*d)).collect())
}

/// The lists of dtypes, one for each tile operand that the author writes, that an instruction takes on `target`; `None`
/// where the rule is another.
pub fn allowed_tuples(target: &Target, instr: &Instr) -> Option<Vec<&'static [DType]>> {
    let DTypeRule::Tuples { a2a3, a5 } = instr.dtypes else { return None };
    let list = match target.family {
        Family::A2A3 => a2a3,
        Family::A5 | Family::Pim => a5,
    };
    Some(list.iter().copied().filter(|t| t.iter().all(|d| target.has_dtype(*d))).collect())
}

/// Checks the dtypes of the operands that have one (tiles, views and scalars; not addresses), in table order. Moves,
/// loads and stores are checked by [`super::check_move`], because their rule depends on locations.
pub fn check_dtypes(target: &Target, instr: InstrId, given: &[DType], cmp: Option<CmpOp>) -> Option<DTypeViolation> {
    let problem = find_problem(target, instr, given, cmp)?;
    let taken_by =
        target.others().filter(|t| find_problem(t, instr, given, cmp).is_none()).map(|t| t.name.as_str()).collect();
    Some(DTypeViolation { instr, given: given.to_vec(), problem, target: target.name.clone(), taken_by })
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
        DTypeRule::Same { .. } => same(target, row, given),
        DTypeRule::Tuples { .. } => {
            let allowed = allowed_tuples(target, row)?;
            let given = &given[..row.tiles_written().min(given.len())];
            if !allowed.contains(&given) {
                return Some(DTypeProblem::NoTuple { allowed });
            }
            // As TCMP compares integers there.
            let integers = target.family == Family::A2A3 && given.get(1).is_some_and(|d| d.is_int());
            let cmp = cmp.filter(|c| row.sem.compares() && integers && *c != CmpOp::Eq)?;
            Some(DTypeProblem::CmpMode { cmp })
        }
        DTypeRule::Mask { a2a3_eq_only, .. } => {
            // The mask is operand 0 of a comparison and operand 1 of a selection.
            let at = usize::from(!row.sem.compares());
            let mut data = given.to_vec();
            if at < data.len() && data.remove(at) != DType::Bool {
                return Some(DTypeProblem::NoMask);
            }
            if let Some(problem) = same(target, row, &data) {
                return Some(problem);
            }
            let (first, cmp) = (*data.first()?, cmp?);
            let limited = target.family == Family::A2A3 && a2a3_eq_only.contains(&first) && cmp != CmpOp::Eq;
            limited.then_some(DTypeProblem::CmpMode { cmp })
        }
        DTypeRule::Pairs { .. } => {
            let &[to, from, ..] = given else { return None };
            let pairs = tcvt_pairs(target);
            if pairs.contains(&(from, to)) {
                return None;
            }
            let allowed = pairs.iter().filter(|(a, _)| *a == from).map(|(_, b)| *b).collect();
            let chain = conversion_path(target, from, to).filter(|c| !c.is_empty());
            Some(DTypeProblem::NoPair { allowed, via: rounds_twice(target, from, to), chain })
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
            (!matches!(idx, DType::I32 | DType::U32)).then_some(DTypeProblem::Index)
        }
    }
}

fn same(target: &Target, row: &Instr, given: &[DType]) -> Option<DTypeProblem> {
    let allowed = allowed_dtypes(target, row)?;
    let first = *given.first()?;
    if given.iter().any(|d| *d != first) {
        return Some(DTypeProblem::Mixed);
    }
    (!allowed.contains(&first)).then(|| unsupported(target, allowed, first))
}

fn unsupported(target: &Target, allowed: Vec<DType>, given: DType) -> DTypeProblem {
    let convert_to = allowed
        .iter()
        .copied()
        .filter(|d| *d != DType::Bool && keeps_all(given, *d) && conversion_path(target, given, *d).is_some())
        // The smallest; an integer for an integer, where there is one.
        .min_by_key(|d| (d.size(), d.is_float() != given.is_float()));
    DTypeProblem::Unsupported { allowed, convert_to }
}

/// What two conversions do that one would not.
fn two_steps(from: DType, via: DType, to: DType) -> &'static str {
    match (from.is_int() && to.is_int(), keeps_all(from, via)) {
        (true, true) => "what does not fit saturates, where integers would wrap",
        (true, false) => "what does not fit saturates, and beyond 2^24 it is rounded first",
        (false, true) => "the first one keeps every value",
        (false, false) => "the value is then rounded twice",
    }
}

impl DTypeViolation {
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
        let error = |message: String| Diagnostic::error(self.code(), span, message);
        let mut d = match &self.problem {
            DTypeProblem::Mixed => {
                error(format!("{name} takes operands of one dtype, and these are {}", self.operands()))
                    .with_help("convert one side: nothing is promoted by itself")
            }
            DTypeProblem::Unsupported { allowed, convert_to } => {
                let given = self.given.iter().find(|d| !allowed.contains(d)).copied().unwrap_or(self.given[0]);
                let d =
                    error(format!("{name} does not take {given} on {target}")).with_note(match allowed.as_slice() {
                        [] => format!("{target} does not have {name}"),
                        allowed => format!("it takes {} there", text::list(allowed)),
                    });
                match convert_to {
                    Some(to) => d.with_help(format!("convert with `{to}(...)`, which keeps every value of {given}")),
                    None => d,
                }
            }
            DTypeProblem::NoMask => {
                error(format!("the mask of {name} is a tile of bool, and operands are {}", self.operands()))
            }
            DTypeProblem::CmpMode { cmp } => {
                error(format!("on {target}, {name} compares integers for equality only, not with `{cmp}`"))
                    .with_help("convert both sides with `f32(...)`: exact up to 2^24")
            }
            DTypeProblem::NoPair { allowed, chain, via } => {
                let (to, from) = (self.given[0], self.given[1]);
                let mut d = error(format!("{name} does not convert {from} to {to} on {target}"));
                if !allowed.is_empty() {
                    d = d.with_note(format!("from {from} it converts to {}", text::list(allowed)));
                }
                match chain {
                    Some(hops) => {
                        let via = hops[..hops.len() - 1].iter().map(|h| h.to);
                        d.with_help(format!("`{to}(...)` goes through {} by itself", text::list(via)))
                    }
                    None if from == to => d.with_help("nothing is to be converted: `TMOV(dst, a)` copies it"),
                    None => match via {
                        Some(via) => {
                            let what = two_steps(from, *via, to);
                            d.with_help(format!("convert in two steps, `{to}({via}(...))`: {what}"))
                        }
                        None => d,
                    },
                }
            }
            DTypeProblem::NoTriple { allowed, accumulator } => {
                let d = error(format!("the matrix unit of {target} does not combine {}", self.operands()))
                    .with_note(format!("it computes {}", text::list(allowed)));
                match accumulator {
                    Some(acc) => d.with_help(format!("make the accumulator {acc}")),
                    None => d,
                }
            }
            DTypeProblem::NoTuple { allowed } => {
                let d = error(format!("{name} does not take {} on {target}", self.operands()));
                match allowed.as_slice() {
                    [] => d.with_note(format!("{target} does not have {name}")),
                    all => {
                        let all = all.iter().map(|t| format!("({})", text::joined(t.iter())));
                        let names = self.instr.get().written().iter().filter(|o| o.is_tile()).map(|o| o.name);
                        d.with_note(format!("as ({}) it takes {} there", text::joined(names), text::list(all)))
                    }
                }
            }
            DTypeProblem::Index => {
                error(format!("the index of {name} is i32 or u32, and operands are {}", self.operands()))
            }
        };
        if !self.taken_by.is_empty() {
            d = d.with_note(format!("{} would take it", text::list(&self.taken_by)));
        }
        d
    }

    fn operands(&self) -> String {
        let specs = self
            .instr
            .get()
            .written()
            .iter()
            .filter(|o| !matches!(o.kind, crate::OperandKind::Address | crate::OperandKind::Scalar(_)));
        text::list(specs.zip(&self.given).map(|(o, d)| format!("{} {d}", o.name)))
    }
}

//! Limits on sizes that belong to instructions, not to tiles.

use crate::{InstrId, Loc, PipeRule, Sem, Target, TileType};
use ptoc_diagnostics::{Diagnostic, Span, codes};

/// A size that an instruction does not take.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LimitViolation {
    /// The instruction.
    pub instr: InstrId,
    /// What is limited: "rows of a Vec tile", "m".
    pub what: String,
    /// The size.
    pub value: u64,
    /// Smallest legal.
    pub min: u64,
    /// Largest legal.
    pub max: u64,
    /// The target's name.
    pub target: String,
    /// Other built-in targets that take it.
    pub taken_by: Vec<&'static str>,
}

impl LimitViolation {
    /// The report.
    pub fn diagnostic(&self, span: Span) -> Diagnostic {
        let LimitViolation { instr, what, value, min, max, target, taken_by } = self;
        let name = instr.get().written_name();
        let message = format!("{name} on {target} takes {min} to {max} {what}, and this is {value}");
        let d = Diagnostic::error(codes::INSTR_LIMIT, span, message)
            .with_help(format!("split the tile so that its part has at most {max} {what}"));
        match taken_by.as_slice() {
            [] => d.with_note("no target takes more"),
            some => d.with_note(format!("{} would take it", crate::text::list(some))),
        }
    }
}

/// Whether it is a quantising store.
fn stores(instr: InstrId) -> bool {
    matches!(instr.get().sem, Sem::Fixpipe(_)) && instr.get().pipe == PipeRule::Store
}

/// Checks the tile operands of `instr`, in table order, by capacity: what fits by capacity fits by valid shape.
pub fn check_limits(target: &Target, instr: InstrId, tiles: &[TileType]) -> Vec<LimitViolation> {
    let mut out = broken(target, instr, tiles);
    for v in &mut out {
        let takes = |t: &&Target| broken(t, instr, tiles).iter().all(|w| w.what != v.what);
        v.taken_by = target.others().filter(takes).map(|t| t.name.as_str()).collect();
    }
    out
}

fn broken(target: &Target, instr: InstrId, tiles: &[TileType]) -> Vec<LimitViolation> {
    let mut out = Vec::new();
    let mut check = |what: String, value: u64, min: u64, max: u64| {
        if value < min || value > max {
            let target = target.name.clone();
            out.push(LimitViolation { instr, what, value, min, max, target, taken_by: Vec::new() });
        }
    };
    let limits = &target.limits;
    let at = |table: &[(Loc, u32)], loc: Loc| table.iter().find(|(l, _)| *l == loc).map(|(_, n)| u64::from(*n));
    match (instr.get().sem, tiles) {
        (Sem::Load, [d, ..]) => {
            if let Some(max) = at(&limits.load_rows, d.loc) {
                check(format!("rows of a {} tile", d.loc), d.rows.into(), 1, max);
            }
        }
        (sem, [a, ..]) if sem == Sem::Store || stores(instr) => {
            if let Some(max) = at(&limits.store_rows, a.loc) {
                check(format!("rows of a {} tile", a.loc), a.rows.into(), 1, max);
            }
            if a.loc == Loc::Acc {
                let (min, max) = (*limits.store_cols.start(), *limits.store_cols.end());
                check("columns of an Acc tile".into(), a.cols.into(), min.into(), max.into());
            }
        }
        (Sem::Expand, [d]) if d.loc == Loc::Mat => {
            let (min, max) = (*limits.fill_blocks.start(), *limits.fill_blocks.end());
            check("blocks of 32 bytes".into(), d.bytes() / 32, min, max);
        }
        (Sem::Matmul | Sem::MatmulAcc | Sem::MatmulBias, tiles) => {
            let left = tiles.iter().find(|t| t.loc == Loc::Left);
            let right = tiles.iter().find(|t| t.loc == Loc::Right);
            let (min, max) = (u64::from(*limits.matmul_extent.start()), u64::from(*limits.matmul_extent.end()));
            if let (Some(a), Some(b)) = (left, right) {
                check("rows of the left operand (m)".into(), a.rows.into(), min, max);
                check("columns of the left operand (k)".into(), a.cols.into(), min, max);
                check("columns of the right operand (n)".into(), b.cols.into(), min, max);
            }
        }
        _ => {}
    }
    out
}

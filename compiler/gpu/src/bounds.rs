//! Intervals of registers, as far as constants say: how large a product can be decides how it is computed.

use cranelift_entity::SecondaryMap;
use ptoc_ir::loops::{BinOp, Cast, CmpOp, Func, LTy, Module, Op, Reg, Region, Stmt, operands};
use rustc_hash::FxHashMap;

/// Numbers from `lo` to `hi`, both inside.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Interval {
    pub(crate) lo: i64,
    pub(crate) hi: i64,
}

impl Default for Interval {
    fn default() -> Interval {
        Interval { lo: i64::MIN, hi: i64::MAX }
    }
}

impl Interval {
    fn only(n: i64) -> Interval {
        Interval { lo: n, hi: n }
    }

    /// `a + b`, where the ends of all numbers are infinite.
    fn sum(a: i64, b: i64) -> i64 {
        match (a, b) {
            (i64::MIN | i64::MAX, _) => a,
            (_, i64::MIN | i64::MAX) => b,
            _ => a.saturating_add(b),
        }
    }

    fn negated(n: i64) -> i64 {
        if n == i64::MIN {
            i64::MAX
        } else if n == i64::MAX {
            i64::MIN
        } else {
            -n
        }
    }

    /// Arithmetic on indices does not wrap: extents of tiles and arrays are bounded, and so is what is made of them. So
    /// numbers without a known end stay without one.
    fn of(op: BinOp, a: Interval, b: Interval) -> Interval {
        match op {
            BinOp::Min => Interval { lo: a.lo.min(b.lo), hi: a.hi.min(b.hi) },
            BinOp::Max => Interval { lo: a.lo.max(b.lo), hi: a.hi.max(b.hi) },
            BinOp::Add => Interval { lo: Interval::sum(a.lo, b.lo), hi: Interval::sum(a.hi, b.hi) },
            BinOp::Sub => Interval {
                lo: Interval::sum(a.lo, Interval::negated(b.hi)),
                hi: Interval::sum(a.hi, Interval::negated(b.lo)),
            },
            BinOp::Mul => {
                let corners =
                    [(a.lo, b.lo), (a.lo, b.hi), (a.hi, b.lo), (a.hi, b.hi)].map(|(a, b)| a.saturating_mul(b));
                let ends = corners.iter().fold((i64::MAX, i64::MIN), |(lo, hi), n| (lo.min(*n), hi.max(*n)));
                Interval { lo: ends.0, hi: ends.1 }
            }
            BinOp::DivFloor if b.lo == b.hi && b.lo > 0 => {
                let end = |n: i64| if matches!(n, i64::MIN | i64::MAX) { n } else { n.div_euclid(b.lo) };
                Interval { lo: end(a.lo), hi: end(a.hi) }
            }
            _ => Interval::default(),
        }
    }
}

/// The intervals of a block function's registers. Its last parameters are the numbers of blocks of a call along each
/// dimension of the grid; those that are given are known. Of the launch's parameters is known what its checks say.
pub(crate) fn intervals(module: &Module, spans: &[u64]) -> SecondaryMap<Reg, Interval> {
    let func = &module.block;
    let mut all = SecondaryMap::new();
    for (reg, known) in func.params.iter().zip(checked(&module.launch)) {
        all[*reg] = known;
    }
    let first = func.params.len().saturating_sub(spans.len());
    for (reg, span) in func.params[first..].iter().zip(spans) {
        all[*reg] = Interval::only(*span as i64);
    }
    let mut gathers = Gathers::default();
    gathered(&func.body, &mut gathers);
    region(func, &gathers, &func.body, &mut all);
    all
}

/// Rows and columns of the gathers, by the registers of the first missing elements.
type Gathers = FxHashMap<Reg, (Reg, Reg)>;

fn gathered(region: &Region, out: &mut Gathers) {
    for stmt in region {
        if let Op::Gather(g) = &stmt.op {
            out.insert(g.dst, (g.rows, g.cols));
        }
        stmt.op.regions().for_each(|r| gathered(r, out));
    }
}

/// What a launch function's checks say of its parameters: comparisons with constants. Blocks run if they hold.
fn checked(launch: &Func) -> Vec<Interval> {
    let mut all: SecondaryMap<Reg, Interval> = SecondaryMap::new();
    let mut compared: SecondaryMap<Reg, Option<(CmpOp, Reg, Reg)>> = SecondaryMap::new();
    let mut constants: SecondaryMap<Reg, Option<i64>> = SecondaryMap::new();
    for stmt in &launch.body {
        match &stmt.op {
            Op::Const { dst, bits } if launch.regs[*dst].ty == LTy::I64 => constants[*dst] = Some(*bits as i64),
            Op::Compare { dst, op, a, b } => compared[*dst] = Some((*op, *a, *b)),
            Op::Check { cond, .. } => {
                let Some((op, a, b)) = compared[*cond] else { continue };
                let (at_most, at_least) = match op {
                    CmpOp::Le => (Some((a, b)), Some((b, a))),
                    CmpOp::Ge => (Some((b, a)), Some((a, b))),
                    _ => (None, None),
                };
                if let Some((reg, n)) = at_most.and_then(|(reg, n)| Some((reg, constants[n]?))) {
                    all[reg].hi = all[reg].hi.min(n);
                }
                if let Some((reg, n)) = at_least.and_then(|(reg, n)| Some((reg, constants[n]?))) {
                    all[reg].lo = all[reg].lo.max(n);
                }
            }
            _ => {}
        }
    }
    launch.params.iter().map(|reg| all[*reg]).collect()
}

fn region(func: &Func, gathers: &Gathers, stmts: &Region, all: &mut SecondaryMap<Reg, Interval>) {
    for (n, stmt) in stmts.iter().enumerate() {
        match &stmt.op {
            Op::Const { dst, bits } if func.regs[*dst].ty == LTy::I64 => all[*dst] = Interval::only(*bits as i64),
            Op::Binary { dst, op, a, b } if func.regs[*dst].ty == LTy::I64 => {
                // Row and column of the first missing element, which are looked at where there is one.
                let bound = |extent: Reg| Interval { lo: 0, hi: all[extent].hi.saturating_sub(1).max(0) };
                all[*dst] = match (op, gathers.get(a)) {
                    (BinOp::DivU, Some((rows, cols))) if cols == b => bound(*rows),
                    (BinOp::RemU, Some((_, cols))) if cols == b => bound(*cols),
                    _ => Interval::of(*op, all[*a], all[*b]),
                };
            }
            // What is narrower has the bounds of its type.
            Op::Cast { dst, op: Cast::Zext, .. } => all[*dst] = Interval { lo: 0, hi: i64::from(u32::MAX) },
            Op::Cast { dst, op: Cast::Sext, .. } => {
                all[*dst] = Interval { lo: i64::from(i32::MIN), hi: i64::from(i32::MAX) };
            }
            Op::Select { dst, a, b, .. } if func.regs[*dst].ty == LTy::I64 => {
                let (a, b) = (all[*a], all[*b]);
                all[*dst] = Interval { lo: a.lo.min(b.lo), hi: a.hi.max(b.hi) };
            }
            Op::For(f) => {
                all[f.index] = Interval { lo: all[f.lo].lo, hi: all[f.hi].hi.saturating_sub(1) };
                region(func, gathers, &f.body, all);
            }
            Op::Lanes(lanes) => {
                all[lanes.lane] = Interval { lo: 0, hi: all[lanes.count].hi.saturating_sub(1) };
                region(func, gathers, &lanes.body, all);
            }
            Op::Check { cond, .. } => refine(func, &stmts[..n], *cond, all),
            op => op.regions().for_each(|r| region(func, gathers, r, all)),
        }
    }
}

/// What holds behind a check of a comparison. One interval stands for all uses of a register, so those before may be
/// comparisons only.
fn refine(func: &Func, before: &[Stmt], cond: Reg, all: &mut SecondaryMap<Reg, Interval>) {
    let Some(Op::Compare { op, a, b, .. }) = before.iter().rfind(|s| operands(&s.op).1 == Some(cond)).map(|s| &s.op)
    else {
        return;
    };
    let fresh = |reg: Reg| {
        let made = before.iter().rposition(|s| operands(&s.op).1 == Some(reg));
        let other = |s: &Stmt| !matches!(s.op, Op::Compare { .. } | Op::Check { .. });
        made.is_some_and(|at| {
            !before[at + 1..].iter().filter(|s| other(s)).any(|s| {
                let mut read = s.op.regions().next().is_some();
                crate::control::reads(&s.op, &mut |r| read |= r == reg);
                read
            })
        })
    };
    if func.regs[*a].ty != LTy::I64 {
        return;
    }
    let (x, y) = (all[*a], all[*b]);
    let apart = match op {
        CmpOp::Lt => 1,
        CmpOp::Le => 0,
        _ => return,
    };
    if fresh(*a) && y.hi != i64::MAX {
        all[*a].hi = x.hi.min(y.hi.saturating_sub(apart));
    }
    if fresh(*b) && x.lo != i64::MIN {
        all[*b].lo = y.lo.max(x.lo.saturating_add(apart));
    }
}

#[cfg(test)]
mod tests {
    use super::Interval;
    use ptoc_ir::loops::BinOp;

    #[test]
    fn numbers_without_an_end_stay_without_one() {
        let (tile, all) = (Interval { lo: 1, hi: 64 }, Interval::default());
        assert_eq!(Interval::of(BinOp::Mul, tile, Interval::only(2)), Interval { lo: 2, hi: 128 });
        assert_eq!(Interval::of(BinOp::Min, tile, all), Interval { lo: i64::MIN, hi: 64 });
        assert_eq!(Interval::of(BinOp::Sub, all, tile), all);
        assert_eq!(Interval::of(BinOp::Mul, all, tile), all);
        let valid = Interval { lo: i64::MIN, hi: 8 };
        assert_eq!(Interval::of(BinOp::Mul, valid, Interval::only(4096)), Interval { lo: i64::MIN, hi: 32_768 });
        assert_eq!(Interval::of(BinOp::Add, valid, Interval::only(-1)), Interval { lo: i64::MIN, hi: 7 });
    }
}

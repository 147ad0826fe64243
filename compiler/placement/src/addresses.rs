//! Constant propagation of addresses: addresses that are computed from constants and loop variables, decided for every
//! iteration.
//!
//! A TASSIGN in a loop has a run-time address, and checks that it is aligned and inside its memory. Where every loop
//! variable in it has a constant range, the address has finitely many values: if all are right, the checks go; if one
//! is wrong and its iteration is sure to come, that is an error like that of a constant address (SA-0353, SA-0354). So
//! is an address that is wrong in every iteration, however many there are, or for every argument that a `where` lets
//! through ([`ptoc_ir::analysis::progression`]).

use crate::access::regions;
use crate::memories;
use ptoc_diagnostics::{Diagnostic, codes};
use ptoc_ir::analysis::progression::Progression;
use ptoc_ir::tile::{Kernel, Label, Op, Region, Stmt, Value};
use ptoc_isa::{BinOp, CmpOp, SaKind, SaViolation, Target, check_address, check_size};
use rustc_hash::FxHashMap;

/// Iterations that are tried for one address.
const COMBINATIONS: i64 = 4_096;
/// Steps of an evaluation, which may meet a value on several ways.
const FUEL: u32 = 2_000;

/// Removes the checks of addresses that are always right, and reports those that are certain to be wrong.
pub fn settle(kernel: &mut Kernel, target: &Target) -> Vec<Diagnostic> {
    let mut body = std::mem::take(&mut kernel.body);
    let mut pass = AddressAnalysis {
        kernel,
        target,
        defs: FxHashMap::default(),
        loops: Vec::new(),
        lows: FxHashMap::default(),
        sure: true,
        out: Vec::new(),
    };
    let counted = kernel.dims.values().map(|d| d.value).chain(kernel.grid.iter().map(|g| g.index));
    pass.lows.extend(counted.map(|v| (v, 0)));
    pass.note(&pass.kernel.prologue);
    pass.note(&body);
    pass.demand();
    pass.region(&mut body);
    let out = pass.out;
    kernel.body = body;
    out
}

/// A pure computation.
#[derive(Clone, Copy)]
enum Def {
    Const(i64),
    Binary(BinOp, Value, Value),
    Compare(CmpOp, Value, Value),
}

/// A loop around the current statement whose range is constant.
struct Loop {
    index: Value,
    lo: i64,
    hi: i64,
}

struct AddressAnalysis<'k> {
    kernel: &'k Kernel,
    target: &'k Target,
    defs: FxHashMap<Value, Def>,
    loops: Vec<Loop>,
    /// What counters, sizes, numbers of blocks, and arguments that a `where` limits are at least.
    lows: FxHashMap<Value, i64>,
    /// The current statement runs in every iteration of all of `loops`.
    sure: bool,
    out: Vec<Diagnostic>,
}

impl AddressAnalysis<'_> {
    fn note(&mut self, region: &[Stmt]) {
        for stmt in region {
            match &stmt.op {
                Op::Const { dst, value } => {
                    // `bool` constants are 0 and 1.
                    let n = value.as_index().or((value.ty == ptoc_ir::tile::Ty::BOOL).then_some(value.bits as i64));
                    self.defs.extend(n.map(|n| (*dst, Def::Const(n))));
                }
                Op::Binary { dst, op, a, b } if self.kernel.values[*a].ty == ptoc_ir::tile::Ty::Index => {
                    self.defs.insert(*dst, Def::Binary(*op, *a, *b));
                }
                Op::Compare { dst, op, a, b } if self.kernel.values[*a].ty == ptoc_ir::tile::Ty::Index => {
                    self.defs.insert(*dst, Def::Compare(*op, *a, *b));
                }
                op => regions(op).into_iter().for_each(|r| self.note(r)),
            }
        }
    }

    /// What the launch is refused without (`where`) holds: some arguments are not below a constant.
    fn demand(&mut self) {
        let prologue = &self.kernel.prologue;
        let made: FxHashMap<Value, &Op> = prologue.iter().filter_map(|s| Some((s.op.def()?, &s.op))).collect();
        let checked = |s: &Stmt| if let Op::Check { cond, .. } = s.op { Some(cond) } else { None };
        let mut holds: Vec<Value> = prologue.iter().filter_map(checked).collect();
        let mut lows: Vec<(Value, i64)> = Vec::new();
        while let Some(condition) = holds.pop() {
            match made.get(&condition) {
                Some(Op::Binary { op: BinOp::And, a, b, .. }) => holds.extend([*a, *b]),
                Some(Op::Compare { op, a, b, .. }) => {
                    let constant = |v: &Value| if let Some(Def::Const(n)) = self.defs.get(v) { Some(*n) } else { None };
                    let low = match (op, constant(a), constant(b)) {
                        (CmpOp::Ge | CmpOp::Eq, _, Some(n)) => Some((*a, n)),
                        (CmpOp::Gt, _, Some(n)) => n.checked_add(1).map(|n| (*a, n)),
                        (CmpOp::Le | CmpOp::Eq, Some(n), _) => Some((*b, n)),
                        (CmpOp::Lt, Some(n), _) => n.checked_add(1).map(|n| (*b, n)),
                        _ => None,
                    };
                    lows.extend(low);
                }
                _ => {}
            }
        }
        for (value, low) in lows {
            let known = self.lows.entry(value).or_insert(low);
            *known = low.max(*known);
        }
    }

    fn region(&mut self, region: &mut Region) {
        let mut kept = Region::with_capacity(region.len());
        for mut stmt in std::mem::take(region) {
            let keep = match &mut stmt.op {
                Op::Check { cond, check, .. } => {
                    let about = self.kernel.checks[*check].code;
                    let address = matches!(about, codes::ADDRESS_OUT_OF_RANGE | codes::ADDRESS_MISALIGNED);
                    !(address && self.all(*cond, |holds| holds != 0) == Some(None))
                }
                Op::Assign { tile, addr, .. } => {
                    let ty = self.kernel.tiles[*tile].ty;
                    let right = |at: i64| check_address(self.target, ty, i128::from(at)).is_empty();
                    // A tile that is too large anyway is reported as such.
                    if check_size(self.target, ty).is_none() {
                        match self.all(*addr, right) {
                            Some(Some(wrong)) if self.sure => self.report(*tile, *addr, &wrong, &stmt),
                            Some(_) => {}
                            None => self.report_always(*tile, *addr, &stmt),
                        }
                    }
                    true
                }
                Op::For(f) => {
                    let constant = |v: Value| match self.defs.get(&v) {
                        Some(Def::Const(c)) => Some(*c),
                        _ => None,
                    };
                    let range = constant(f.lo).zip(constant(f.hi));
                    self.lows.extend(constant(f.lo).map(|lo| (f.index, lo)));
                    let before = self.sure;
                    // An empty loop has no iteration that could be wrong.
                    if let Some((lo, hi)) = range.filter(|(lo, hi)| lo < hi) {
                        self.sure &= !exits(&f.body, f.label);
                        self.loops.push(Loop { index: f.index, lo, hi });
                        self.region(&mut f.body);
                        self.loops.pop();
                    } else {
                        self.sure = false;
                        self.region(&mut f.body);
                    }
                    self.sure = before;
                    true
                }
                Op::If(i) => {
                    let before = std::mem::replace(&mut self.sure, false);
                    self.region(&mut i.then);
                    self.region(&mut i.els);
                    self.sure = before;
                    true
                }
                Op::While(w) => {
                    let before = std::mem::replace(&mut self.sure, false);
                    self.region(&mut w.head);
                    self.region(&mut w.body);
                    self.sure = before;
                    true
                }
                Op::Scope(s) => {
                    let before = self.sure;
                    self.sure &= !exits(&s.body, s.label);
                    self.region(&mut s.body);
                    self.sure = before;
                    true
                }
                _ => true,
            };
            if keep {
                kept.push(stmt);
            }
        }
        *region = kept;
    }

    /// Whether a value is right in every iteration. `Some(None)` if so, the first iteration where it is not, or `None`
    /// if the value depends on more than constants and these loops.
    fn all(&self, value: Value, right: impl Fn(i64) -> bool) -> Option<Option<Vec<(Value, i64)>>> {
        let mut used = Vec::new();
        let mut fuel = FUEL;
        self.indices(value, &mut used, &mut fuel)?;
        let count = used.iter().try_fold(1i64, |n, &l| {
            n.checked_mul(self.loops[l].hi.checked_sub(self.loops[l].lo)?).filter(|n| *n <= COMBINATIONS)
        })?;
        for n in 0..count {
            let (mut at, mut rest) = (Vec::with_capacity(used.len()), n);
            // The innermost loop counts fastest.
            for &l in used.iter().rev() {
                let Loop { index, lo, hi } = self.loops[l];
                at.push((index, lo + rest % (hi - lo)));
                rest /= hi - lo;
            }
            if !right(self.value(value, &at)?) {
                at.reverse();
                return Some(Some(at));
            }
        }
        Some(None)
    }

    /// The loops (by number, outermost first) on which a value depends; `None` if it depends on something else.
    fn indices(&self, value: Value, used: &mut Vec<usize>, fuel: &mut u32) -> Option<()> {
        *fuel = fuel.checked_sub(1)?;
        if let Some(n) = self.loops.iter().position(|l| l.index == value) {
            if let Err(at) = used.binary_search(&n) {
                used.insert(at, n);
            }
            return Some(());
        }
        match *self.defs.get(&value)? {
            Def::Const(_) => Some(()),
            Def::Binary(_, a, b) | Def::Compare(_, a, b) => {
                self.indices(a, used, fuel)?;
                self.indices(b, used, fuel)
            }
        }
    }

    fn value(&self, value: Value, at: &[(Value, i64)]) -> Option<i64> {
        if let Some((_, n)) = at.iter().find(|(index, _)| *index == value) {
            return Some(*n);
        }
        match *self.defs.get(&value)? {
            Def::Const(n) => Some(n),
            Def::Binary(op, a, b) => {
                let (a, b) = (self.value(a, at)?, self.value(b, at)?);
                match op {
                    BinOp::Add => a.checked_add(b),
                    BinOp::Sub => a.checked_sub(b),
                    BinOp::Mul => a.checked_mul(b),
                    BinOp::Min => Some(a.min(b)),
                    BinOp::Max => Some(a.max(b)),
                    // Floors, as the language does; its answers for 0 are not needed here.
                    BinOp::Div if b > 0 => Some(a.div_euclid(b)),
                    BinOp::Rem if b > 0 => Some(a.rem_euclid(b)),
                    _ => None,
                }
            }
            Def::Compare(op, a, b) => {
                let (a, b) = (self.value(a, at)?, self.value(b, at)?);
                Some(i64::from(match op {
                    CmpOp::Eq => a == b,
                    CmpOp::Ne => a != b,
                    CmpOp::Lt => a < b,
                    CmpOp::Le => a <= b,
                    CmpOp::Gt => a > b,
                    CmpOp::Ge => a >= b,
                }))
            }
        }
    }

    /// What is known of a value in every iteration.
    fn progression(&self, value: Value, fuel: &mut u32) -> Progression {
        let Some(left) = fuel.checked_sub(1) else { return Progression::ANY };
        *fuel = left;
        match self.defs.get(&value) {
            Some(Def::Const(n)) => Progression::one(*n),
            Some(Def::Binary(op, a, b)) => {
                let (a, b) = (self.progression(*a, fuel), self.progression(*b, fuel));
                a.binary(*op, b)
            }
            Some(Def::Compare(..)) | None => Progression::between(self.lows.get(&value).copied(), None),
        }
    }

    /// Reports an address that is wrong whenever control comes to it.
    fn report_always(&mut self, tile: ptoc_ir::tile::Tile, addr: Value, stmt: &Stmt) {
        let at = self.progression(addr, &mut { FUEL });
        let ty = self.kernel.tiles[tile].ty;
        let (unit, end) = (memories::align(self.target, ty.loc), memories::capacity(self.target, ty.loc));
        let last = i64::try_from(end.saturating_sub(ty.bytes())).unwrap_or(i64::MAX);
        let (misaligned, outside) = (at.never_multiple(unit), at.always_above(last));
        for violation in check_address(self.target, ty, i128::from(at.sample())) {
            let note = match violation.kind {
                SaKind::Misaligned if misaligned => format!("no address that it can be is a multiple of {unit}"),
                SaKind::OutOfRange if outside => "that is the lowest address that it can be".to_owned(),
                _ => continue,
            };
            self.tell(tile, addr, stmt, &violation, Some(note));
        }
    }

    fn report(&mut self, tile: ptoc_ir::tile::Tile, addr: Value, wrong: &[(Value, i64)], stmt: &Stmt) {
        let Some(address) = self.value(addr, wrong) else { return };
        let when: Vec<String> = wrong
            .iter()
            .map(|(index, n)| match &self.kernel.values[*index].name {
                Some(name) => format!("`{name}` = {n}"),
                None => format!("number {n} of the loop"),
            })
            .collect();
        for violation in check_address(self.target, self.kernel.tiles[tile].ty, i128::from(address)) {
            let note = (!when.is_empty()).then(|| format!("that is the address where {}", when.join(" and ")));
            self.tell(tile, addr, stmt, &violation, note);
        }
    }

    fn tell(
        &mut self,
        tile: ptoc_ir::tile::Tile,
        addr: Value,
        stmt: &Stmt,
        violation: &SaViolation,
        note: Option<String>,
    ) {
        let data = &self.kernel.tiles[tile];
        // The address, if it is written there, rather than the whole statement.
        let written = self.kernel.values[addr].span;
        let place = if stmt.span.contains(written) { written } else { stmt.span };
        let mut d = violation
            .diagnostic(&format!("tile `{}`", data.name), place)
            .with_secondary(data.span, format!("`{}`: {}, {} bytes", data.name, data.ty, data.ty.bytes()));
        if let Some(note) = note {
            d = d.with_note(note);
        }
        // A loop that is unrolled, a function that is called twice.
        if !self.out.iter().any(|o| (o.code, o.span) == (d.code, d.span)) {
            self.out.push(d);
        }
    }
}

/// Whether anything in `region` leaves it early, or an iteration of it. A loop in it may be left as it likes.
fn exits(region: &[Stmt], label: Label) -> bool {
    fn leaves(region: &[Stmt], inner: &mut Vec<Label>, label: Label) -> bool {
        region.iter().any(|stmt| match &stmt.op {
            Op::Break(l) | Op::Continue(l) | Op::Leave(l) => *l == label || !inner.contains(l),
            op => {
                let own = match op {
                    Op::For(f) => Some(f.label),
                    Op::While(w) => Some(w.label),
                    Op::Scope(s) => Some(s.label),
                    _ => None,
                };
                inner.extend(own);
                let found = regions(op).into_iter().any(|r| leaves(r, inner, label));
                if own.is_some() {
                    inner.pop();
                }
                found
            }
        })
    }
    leaves(region, &mut Vec::new(), label)
}

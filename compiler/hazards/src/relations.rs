//! Relational facts (path conditions): what the assumptions of a way say together. Each one alone is a number in
//! `State::assumed`; here they become linear inequalities over what the launch gives and what is loaded, so that `n ==
//! m`, `a < b` or `16 * q <= n` count between values, too. A way whose assumptions contradict each other is none.

use super::code::{Def, HazardProgram};
use super::domain::{AffineValue, MAX, MIN};
use super::poly::{PolyInterval, constant, poly};
use super::state::HazardState;
use ptoc_ir::analysis::linear::{LinearSum, System};
use ptoc_ir::tile::{TensorId, Ty, Value};
use ptoc_isa::{BinOp, CmpOp, UnOp};
use rustc_hash::FxHashMap;

/// Symbols of a system; what has more is not looked at further.
const SYMBOLS: usize = 48;

/// What a value depends on that is not computed, and not known to be one number.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(super) enum Leaf {
    /// Given, loaded, or read from a variable.
    Value(Value),
    /// How many periods a loop has been through.
    Periods(u8),
    /// An element of a tensor that is only read.
    Element(TensorId, i64),
}

/// What `v` depends on in a state.
pub(super) fn leaves(code: &HazardProgram, state: &HazardState, v: Value, out: &mut Vec<Leaf>) {
    for &s in code.sources(v).iter() {
        let n = state.value(code, s);
        if n.constant().is_some() {
            continue;
        }
        if n.base != 0 {
            out.push(Leaf::Periods(n.base));
            if n.offset().is_some() {
                continue;
            }
        }
        match state.place(code, s) {
            Some((tensor, offset)) => out.push(Leaf::Element(tensor, offset)),
            None => out.push(Leaf::Value(code.read.get(&s).copied().unwrap_or(s))),
        }
        // A counter that is not followed exactly has something to do with its bounds.
        for counted in code.loops.iter().filter_map(|l| l.counted).filter(|c| c.index == s) {
            for end in counted.lo.into_iter().chain([counted.hi]) {
                let read = |v: &Value| code.read.get(v).copied().unwrap_or(*v);
                out.extend(code.sources(end).iter().filter(|b| **b != s).map(|b| Leaf::Value(read(b))));
            }
        }
    }
}

/// The assumptions that have to do with `seeds`, by their number. Those of `v` itself do not count.
pub(super) fn related(code: &HazardProgram, state: &HazardState, v: Value, mut seeds: Vec<Leaf>) -> Vec<usize> {
    let of = |v: Value| {
        let mut out = Vec::new();
        leaves(code, state, v, &mut out);
        out
    };
    let all: Vec<Vec<Leaf>> = state.assumed.iter().map(|a| if a.0 == v { Vec::new() } else { of(a.0) }).collect();
    let mut found: Vec<usize> = Vec::new();
    loop {
        let before = found.len();
        for (n, own) in all.iter().enumerate() {
            if !found.contains(&n) && own.iter().any(|l| seeds.contains(l)) {
                found.push(n);
                seeds.extend(own);
            }
        }
        if found.len() == before {
            return found;
        }
    }
}

/// A symbol of a system.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Symbol {
    /// A product of values; mostly of one.
    Values(Vec<Value>),
    Periods(u8),
    /// How often a modulus fits.
    Times(u32),
}

/// Inequalities of a state.
pub(super) struct Relations<'a> {
    code: &'a HazardProgram<'a>,
    state: &'a HazardState,
    numbers: FxHashMap<Symbol, u32>,
    pub(super) system: System,
    /// Values that have not been described yet.
    open: Vec<Value>,
}

impl<'a> Relations<'a> {
    pub(super) fn new(code: &'a HazardProgram<'a>, state: &'a HazardState) -> Relations<'a> {
        Relations { code, state, numbers: FxHashMap::default(), system: System::default(), open: Vec::new() }
    }

    /// The assumptions of these numbers.
    pub(super) fn of(
        code: &'a HazardProgram<'a>,
        state: &'a HazardState,
        assumed: impl IntoIterator<Item = usize>,
    ) -> Relations<'a> {
        let mut relations = Relations::new(code, state);
        for n in assumed {
            let (v, n) = state.assumed[n];
            relations.assumption(v, n);
        }
        relations
    }

    /// Takes in one more assumption.
    pub(super) fn assumption(&mut self, v: Value, n: AffineValue) {
        let known = n.constant().map(|n| n != 0);
        match (self.code.defs[v], known) {
            (Def::Compare(op, a, b), Some(holds)) => self.compare(if holds { op } else { op.opposite() }, a, b, 0),
            (Def::AtMost(a, b, c), Some(holds)) => {
                self.compare(if holds { CmpOp::Le } else { CmpOp::Gt }, a, b, c);
            }
            _ => {
                let row = poly(self.code, v, 0).and_then(|p| self.row(&p));
                if let Some(row) = row {
                    self.number(&row, n);
                }
            }
        }
        self.describe();
    }

    /// The number of a value's symbol, if it has one.
    pub(super) fn symbol_of(&mut self, v: Value) -> u32 {
        let n = self.symbol(Symbol::Values(vec![v]));
        self.describe();
        n
    }

    fn symbol(&mut self, symbol: Symbol) -> u32 {
        let next = self.numbers.len() as u32;
        if let Some(&n) = self.numbers.get(&symbol) {
            return n;
        }
        self.numbers.insert(symbol.clone(), next);
        match symbol {
            Symbol::Values(values) => match values[..] {
                [v] => self.open.push(v),
                // A product of what is not negative is not.
                _ => {
                    let least = |v: &Value| self.state.value(self.code, *v).bounds(&self.state.periods).0;
                    if values.iter().all(|v| least(v) >= 0) {
                        self.system.at_least_zero(LinearSum::number(0).plus(next, 1).expect("a small factor"));
                    }
                }
            },
            Symbol::Periods(base) => {
                let one = LinearSum::number(-1).plus(next, 1).expect("a small factor");
                self.system.at_least_zero(one);
                let most = self.state.periods.get(usize::from(base) - 1).copied().unwrap_or(MAX);
                if let Some(row) = LinearSum::number(most.min(1 << 40)).plus(next, -1).filter(|_| most != MAX) {
                    self.system.at_least_zero(row);
                }
            }
            Symbol::Times(_) => {}
        }
        next
    }

    /// A polynomial as a row; `None`: too great numbers.
    fn row(&mut self, p: &PolyInterval) -> Option<LinearSum> {
        if p.lo != p.hi {
            return None;
        }
        p.terms().iter().try_fold(LinearSum::number(0).sum(1, &LinearSum::number(p.lo), 1)?, |row, (values, n)| {
            let symbol = self.symbol(Symbol::Values(values.clone()));
            row.plus(symbol, *n)
        })
    }

    fn value_row(&mut self, v: Value) -> Option<LinearSum> {
        let p = poly(self.code, v, 0)?;
        self.row(&p)
    }

    /// `row` is one of the numbers of `n`.
    fn number(&mut self, row: &LinearSum, n: AffineValue) {
        let moved = match n.base {
            0 => Some(row.clone()),
            base => {
                let t = self.symbol(Symbol::Periods(base));
                row.clone().plus(t, -n.coef)
            }
        };
        let Some(rest) = moved else { return };
        if n.lo == n.hi {
            if let Some(row) = rest.sum(1, &LinearSum::number(-n.lo), 1) {
                self.system.zero(row);
            }
            return;
        }
        if n.lo != MIN
            && let Some(row) = rest.sum(1, &LinearSum::number(-1), n.lo)
        {
            self.system.at_least_zero(row);
        }
        if n.hi != MAX
            && let Some(row) = rest.sum(-1, &LinearSum::number(1), n.hi)
        {
            self.system.at_least_zero(row);
        }
        if n.m > 1 {
            let k = self.symbol(Symbol::Times(self.numbers.len() as u32));
            if let Some(row) = rest.sum(1, &LinearSum::number(-n.r), 1).and_then(|r| r.plus(k, -n.m)) {
                self.system.zero(row);
            }
        }
    }

    /// `a op b + more`
    fn compare(&mut self, op: CmpOp, a: Value, b: Value, more: i64) {
        let (Some(x), Some(y)) = (self.value_row(a), self.value_row(b)) else { return };
        let Some(d) = x.sum(1, &y, -1).and_then(|d| d.sum(1, &LinearSum::number(-more), 1)) else { return };
        let (one, zero) = (LinearSum::number(-1), LinearSum::number(0));
        match op {
            CmpOp::Eq => self.system.zero(d),
            CmpOp::Ne => self.system.not_zero(d),
            CmpOp::Lt => self.least(d.sum(-1, &one, 1)),
            CmpOp::Le => self.least(d.sum(-1, &zero, 1)),
            CmpOp::Gt => self.least(d.sum(1, &one, 1)),
            CmpOp::Ge => self.least(Some(d)),
        }
    }

    fn least(&mut self, row: Option<LinearSum>) {
        if let Some(row) = row {
            self.system.at_least_zero(row);
        }
    }

    /// `a <= b + more`, of rows.
    fn at_most(&mut self, a: &LinearSum, b: &LinearSum, more: i64) {
        let row = b.sum(1, a, -1).and_then(|d| d.sum(1, &LinearSum::number(more), 1));
        self.least(row);
    }

    /// What is known of the symbols that have come in, and of those that they are computed from.
    fn describe(&mut self) {
        while let Some(v) = self.open.pop() {
            if self.numbers.len() > SYMBOLS {
                self.open.clear();
                return;
            }
            let own = LinearSum::number(0).plus(self.numbers[&Symbol::Values(vec![v])], 1).expect("a small factor");
            let n = self.state.value(self.code, v).meet(by_type(self.code.kernel.values[v].ty));
            self.number(&own, n);
            if let Some(grid) = self.code.kernel.grid.iter().find(|g| g.index == v)
                && let Some(extent) = self.value_row(grid.extent)
            {
                self.at_most(&own, &extent, -1);
            }
            self.computed(v, &own);
        }
    }

    /// How a value is computed that is no polynomial.
    fn computed(&mut self, v: Value, own: &LinearSum) {
        match self.code.defs[v] {
            Def::Binary(op @ (BinOp::Div | BinOp::Rem), a, by) => {
                let Some(n) = constant(self.code, by).filter(|n| *n > 0) else { return };
                let Some(all) = self.value_row(a) else { return };
                // a = n * quotient + remainder
                let (quotient, remainder) = match op {
                    BinOp::Div => {
                        let whole = own.sum(n, &LinearSum::number(0), 1);
                        (whole.clone(), whole.and_then(|w| all.sum(1, &w, -1)))
                    }
                    _ => (all.sum(1, own, -1), Some(own.clone())),
                };
                if let (BinOp::Rem, Some(quotient)) = (op, quotient) {
                    let k = self.symbol(Symbol::Times(self.numbers.len() as u32));
                    if let Some(row) = quotient.plus(k, -n) {
                        self.system.zero(row);
                    }
                }
                if let Some(remainder) = remainder {
                    self.at_most(&LinearSum::number(0), &remainder, 0);
                    self.at_most(&remainder, &LinearSum::number(n - 1), 0);
                }
            }
            Def::Binary(op @ (BinOp::Min | BinOp::Max), a, b) => {
                let sides = [a, b].map(|side| {
                    let side = self.value_row(side)?;
                    match op {
                        BinOp::Min => side.sum(1, own, -1),
                        _ => own.sum(1, &side, -1),
                    }
                });
                sides.iter().for_each(|s| self.least(s.clone()));
                // It is one of the two.
                if let [Some(a), Some(b)] = sides.map(|s| s?.sum(-1, &LinearSum::default(), 1)) {
                    self.system.either(a, b);
                }
            }
            Def::Unary(UnOp::Neg, a) => {
                if let Some(row) = self.value_row(a).and_then(|a| a.sum(1, own, 1)) {
                    self.system.zero(row);
                }
            }
            Def::Select(c, a, b) => {
                let Some(n) = self.state.value(self.code, c).constant() else { return };
                let taken = self.value_row(if n != 0 { a } else { b });
                if let Some(row) = taken.and_then(|t| t.sum(1, own, -1)) {
                    self.system.zero(row);
                }
            }
            _ => {}
        }
    }
}

/// The numbers that a type has.
pub(super) fn by_type(ty: Ty) -> AffineValue {
    if ty == Ty::BOOL {
        return AffineValue::BIT;
    }
    if !ptoc_ir::scalar::is_int(ty) || ty == Ty::Index {
        return AffineValue::TOP;
    }
    match (ptoc_ir::scalar::width(ty), ptoc_ir::scalar::is_signed(ty)) {
        (bits @ 1..=32, true) => AffineValue::range(-(1 << (bits - 1)), (1 << (bits - 1)) - 1),
        (bits @ 1..=32, false) => AffineValue::range(0, (1i64 << bits) - 1),
        (_, true) => AffineValue::TOP,
        (_, false) => AffineValue::range(0, MAX),
    }
}

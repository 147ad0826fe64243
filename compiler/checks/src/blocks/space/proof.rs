//! What follows from what is known, as far as linear inequalities over products show it.

use super::{Claim, Form, Space, Stride, Sym, number};
use ptoc_ir::analysis::linear::{LinearSum, System};
use ptoc_ir::analysis::poly::Poly;
use rustc_hash::{FxHashMap, FxHashSet};

/// Pairs of alternatives that are told apart, one within the other.
const NESTED: u32 = 4;
/// Facts that have a symbol in common with what is asked, or with one of those.
const NEAR: u32 = 2;
/// Of a system with more rows than its root, the rows decide how long it takes.
const MANY: u64 = 128;
/// Factors that are taken out of a sum, one within the other.
const FACTORED: u32 = 2;

impl Space<'_, '_> {
    /// Whether the claim certainly holds.
    pub(in crate::blocks) fn proves(&mut self, claim: &Claim) -> bool {
        match claim {
            Claim::Least(f) => self.at_least_zero(f, FACTORED),
            Claim::Zero(f) => match f.number() {
                Some(n) => n == 0,
                None => number(0)
                    .plus(f, -1)
                    .is_some_and(|minus| self.proves(&Claim::Least(f.clone())) && self.proves(&Claim::Least(minus))),
            },
        }
    }

    fn at_least_zero(&self, f: &Form, depth: u32) -> bool {
        if let Some(n) = f.number() {
            return n >= 0;
        }
        let direct = number(-1).plus(f, -1).is_some_and(|against| self.refutes(&[Claim::Least(against)]));
        direct || depth > 0 && self.is_small(f) && (self.by_factor(f, depth - 1) || self.by_multiple(f, depth - 1))
    }

    /// `p * q + r` is at least 0 if q is at least 1 and `p + r` at least 0.
    fn by_factor(&self, f: &Form, depth: u32) -> bool {
        let mut factors: Vec<Sym> = f.terms().iter().filter(|t| t.0.len() > 1).flat_map(|t| t.0.clone()).collect();
        factors.sort_unstable();
        factors.dedup();
        factors.into_iter().any(|p| {
            let by = Stride { factors: vec![p], count: 1 };
            let Some((q, r)) = by.split(f).filter(|(q, _)| q.number().is_none()) else { return false };
            let (Some(less), Some(sum)) = (q.plus(&number(1), -1), r.plus(&by.form(), 1)) else { return false };
            self.at_least_zero(&by.form(), 0) && self.at_least_zero(&less, depth) && self.at_least_zero(&sum, depth)
        })
    }

    /// f is at least 0 if `p * (f + 1)` is at least 1, for a p that is not negative: where such products are known.
    fn by_multiple(&self, f: &Form, depth: u32) -> bool {
        let own: FxHashSet<Sym> = f.terms().iter().filter(|t| t.0.len() == 1).map(|t| t.0[0]).collect();
        if own.is_empty() || f.terms().iter().any(|t| t.0.len() > 1) {
            return false;
        }
        let mut factors: Vec<Sym> = Vec::new();
        for (symbols, _) in self.facts.iter().flat_map(|c| c.form().terms()).filter(|t| t.0.len() == 2) {
            for (s, p) in [(symbols[0], symbols[1]), (symbols[1], symbols[0])] {
                if own.contains(&s) && self.is_launch(p) && !factors.contains(&p) {
                    factors.push(p);
                }
            }
        }
        factors.into_iter().take(4).any(|p| {
            let p = Poly::symbol(p);
            let product = f.plus(&number(1), 1).and_then(|g| g.times(&p)).and_then(|g| g.plus(&number(1), -1));
            self.at_least_zero(&p, 0) && product.is_some_and(|g| self.at_least_zero(&g, depth))
        })
    }

    /// Whether these certainly contradict what is known.
    pub(in crate::blocks) fn refutes(&self, claims: &[Claim]) -> bool {
        if !self.budget.spend((self.facts.len() + self.either.len()) as u64 / 16) {
            return false;
        }
        // What is near decides most; only then is all that is connected looked at.
        let (near, all) = self.related(claims, Some(NEAR));
        self.contradict(claims, near) || !all && self.contradict(claims, self.related(claims, None).0)
    }

    fn contradict(&self, claims: &[Claim], (near, open): Related<'_>) -> bool {
        let now = |c: &Claim| c.map(|f| self.current(f));
        let kept: Vec<Claim> = claims.iter().chain(near).filter_map(now).collect();
        let alternatives: Vec<[Vec<Claim>; 2]> =
            open.into_iter().map(|sides| sides.clone().map(|s| s.iter().filter_map(now).collect())).collect();
        if !self.budget.spend(20 + (kept.len() + alternatives.len()) as u64) {
            return false;
        }
        let mut problem = Problem::default();
        kept.iter().chain(alternatives.iter().flatten().flatten()).for_each(|c| problem.note(c));
        let mut system = problem.system(&kept);
        let alternatives: Vec<[Vec<SystemRow>; 2]> =
            alternatives.iter().map(|sides| [problem.rows(&sides[0]), problem.rows(&sides[1])]).collect();
        if self.split(&system, &alternatives, NESTED) {
            return true;
        }
        let more = self.multiplied(&kept);
        if more.is_empty() {
            return false;
        }
        more.iter().for_each(|c| problem.note(c));
        problem.rows(&more).into_iter().for_each(|r| r.add(&mut system));
        self.split(&system, &alternatives, NESTED)
    }

    /// The facts that have a symbol in common with the claims, directly or by other facts, at most `far` steps away.
    /// Also whether these are all that there are.
    fn related(&self, claims: &[Claim], far: Option<u32>) -> (Related<'_>, bool) {
        let mut symbols: FxHashSet<Sym> = claims.iter().flat_map(|c| c.form().symbols()).collect();
        let mut facts: Vec<&Claim> = self.facts.iter().collect();
        let mut either: Vec<&[Vec<Claim>; 2]> = self.either.iter().collect();
        let (mut near, mut open) = (Vec::new(), Vec::new());
        let mut steps = 0;
        loop {
            let touches = |c: &Claim| c.form().terms().is_empty() || c.form().symbols().any(|s| symbols.contains(&s));
            let constant = |c: &Claim| c.form().number().is_some_and(|n| n != 0);
            let (more, rest): (Vec<_>, Vec<_>) = facts.into_iter().partition(|c| touches(c) || constant(c));
            let (ways, later): (Vec<_>, Vec<_>) =
                either.into_iter().partition(|sides| sides.iter().flatten().any(touches));
            let known = symbols.len();
            symbols.extend(more.iter().flat_map(|c| c.form().symbols()));
            symbols.extend(ways.iter().flat_map(|w| w.iter().flatten()).flat_map(|c| c.form().symbols()));
            for (s, by) in &self.replaced {
                if symbols.contains(s) || by.symbols().any(|b| symbols.contains(&b)) {
                    symbols.insert(*s);
                    symbols.extend(by.symbols());
                }
            }
            near.extend(more);
            open.extend(ways);
            (facts, either) = (rest, later);
            steps += 1;
            if symbols.len() == known {
                return ((near, open), true);
            }
            if far.is_some_and(|far| steps >= far) {
                return ((near, open), facts.is_empty() && either.is_empty());
            }
        }
    }

    /// Whether there is no solution, whichever of the alternatives hold.
    fn split(&self, system: &System, open: &[[Vec<SystemRow>; 2]], depth: u32) -> bool {
        let large = system.rows() as u64;
        let large = large * large / MANY;
        if !self.budget.spend(30 + large) {
            return false;
        }
        if system.refuted() {
            return true;
        }
        if depth == 0 || open.is_empty() {
            return false;
        }
        // What no alternative speaks of is eliminated once for all of them.
        let spoken: FxHashSet<u32> = open.iter().flatten().flatten().flat_map(|line| line.row().symbols()).collect();
        let Some(system) = &system.reduced(&|s| spoken.contains(&s)) else { return true };
        let with = |rows: &[SystemRow]| {
            let mut s = system.clone();
            rows.iter().cloned().for_each(|r| r.add(&mut s));
            s
        };
        for (n, sides) in open.iter().enumerate() {
            let [x, y] = [with(&sides[0]), with(&sides[1])];
            let rest: Vec<[Vec<SystemRow>; 2]> =
                open.iter().enumerate().filter(|(k, _)| *k != n).map(|(_, s)| s.clone()).collect();
            if !self.budget.spend(60 + 2 * large + open.len() as u64 / 4) {
                return false;
            }
            match (x.refuted(), y.refuted()) {
                (true, true) => return true,
                (true, false) => return self.split(&y, &rest, depth),
                (false, true) => return self.split(&x, &rest, depth),
                (false, false) => {}
            }
        }
        let Some((first, rest)) = open.split_first() else { return false };
        self.split(&with(&first[0]), rest, depth - 1) && self.split(&with(&first[1]), rest, depth - 1)
    }

    /// Inequalities times a factor that is not negative, where products of their symbols with it are in question.
    fn multiplied(&self, kept: &[Claim]) -> Vec<Claim> {
        const MOST: usize = 48;
        let products: FxHashSet<Vec<Sym>> =
            kept.iter().flat_map(|c| c.form().terms()).filter(|t| t.0.len() >= 2).map(|t| t.0.clone()).collect();
        let mut products: Vec<Vec<Sym>> = products.into_iter().collect();
        products.sort();
        let positive: FxHashSet<Sym> = kept
            .iter()
            .filter_map(|c| match c {
                // s - n >= 0
                Claim::Least(f) => match f.terms() {
                    [(s, 1)] if s.len() == 1 => Some(s[0]),
                    [(none, n), (s, 1)] if none.is_empty() && *n <= 0 && s.len() == 1 => Some(s[0]),
                    _ => None,
                },
                Claim::Zero(_) => None,
            })
            .collect();
        let mut out = Vec::new();
        let mut seen = FxHashSet::default();
        for factors in &products {
            for (at, s) in factors.iter().enumerate() {
                let mut others = factors.clone();
                others.remove(at);
                if !others.iter().all(|o| positive.contains(o)) {
                    continue;
                }
                let Some(by) = Poly::sum_of(vec![(others.clone(), 1)]) else { continue };
                for c in kept {
                    let linear = c.form().terms().iter().any(|t| t.0 == [*s]);
                    if !linear || !seen.insert((c.clone(), others.clone())) {
                        continue;
                    }
                    out.extend(c.map(|f| self.product(f, &by)));
                    if out.len() >= MOST {
                        return out;
                    }
                }
                if positive.contains(s) {
                    out.push(Claim::Least(Poly::sum_of(vec![(factors.clone(), 1)]).unwrap_or_default()));
                }
            }
        }
        out
    }
}

/// A row of a system.
#[derive(Clone)]
enum SystemRow {
    Zero(LinearSum),
    Least(LinearSum),
}

impl SystemRow {
    fn row(&self) -> &LinearSum {
        match self {
            SystemRow::Zero(r) | SystemRow::Least(r) => r,
        }
    }

    fn add(self, system: &mut System) {
        match self {
            SystemRow::Zero(r) => system.zero(r),
            SystemRow::Least(r) => system.at_least_zero(r),
        }
    }
}

/// Facts, and pairs of which one holds.
type Related<'s> = (Vec<&'s Claim>, Vec<&'s [Vec<Claim>; 2]>);

/// Products as unknowns of a linear system.
#[derive(Default)]
struct Problem {
    numbers: FxHashMap<Vec<Sym>, u32>,
}

impl Problem {
    fn note(&mut self, claim: &Claim) {
        for (factors, _) in claim.form().terms() {
            if !factors.is_empty() {
                let next = self.numbers.len() as u32;
                self.numbers.entry(factors.clone()).or_insert(next);
            }
        }
    }

    fn row(&self, form: &Form) -> Option<LinearSum> {
        let mut row = LinearSum::number(0);
        for (factors, k) in form.terms() {
            row = match self.numbers.get(factors) {
                Some(&n) => row.plus(n, *k)?,
                None => row.sum(1, &LinearSum::number(*k), 1)?,
            };
        }
        Some(row)
    }

    fn rows(&self, claims: &[Claim]) -> Vec<SystemRow> {
        let row = |c: &Claim| {
            Some(match c {
                Claim::Zero(f) => SystemRow::Zero(self.row(f)?),
                Claim::Least(f) => SystemRow::Least(self.row(f)?),
            })
        };
        claims.iter().filter_map(row).collect()
    }

    fn system(&self, claims: &[Claim]) -> System {
        let mut system = System::default();
        self.rows(claims).into_iter().for_each(|r| r.add(&mut system));
        system
    }
}

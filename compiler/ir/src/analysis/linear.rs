//! Linear inequalities over integers, and whether they certainly contradict each other. Symbols are eliminated one by
//! one: by an equation, or by adding up each pair of bounds (Fourier and Motzkin). Every row is divided by what divides
//! its factors and its constant rounded, so that what only fractions could meet is a contradiction too. Where there are
//! too many rows, or too great numbers, some are left out: then less is contradicted.

use crate::analysis::gcd;

/// Rows that are kept during an elimination.
const ROWS: usize = 160;
/// Pairs of rows of which one holds: so many are looked at from both sides.
const SIDES: usize = 6;
/// Factors and constants beyond this are left out.
const LARGE: i64 = 1 << 56;

/// A sum of symbols with factors, and a constant.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct LinearSum {
    /// Sorted by symbol; no factor is 0.
    terms: Vec<(u32, i64)>,
    constant: i64,
}

/// What holds at once.
#[derive(Clone, Debug, Default)]
pub struct System {
    zero: Vec<LinearSum>,
    at_least_zero: Vec<LinearSum>,
    /// One of the two is at least zero.
    either: Vec<[LinearSum; 2]>,
}

impl LinearSum {
    /// A constant row: no symbols.
    pub fn number(constant: i64) -> LinearSum {
        LinearSum { terms: Vec::new(), constant }
    }

    /// With `factor * symbol` more; `None`: too great a number.
    pub fn plus(self, symbol: u32, factor: i64) -> Option<LinearSum> {
        self.sum(1, &LinearSum { terms: vec![(symbol, factor)], constant: 0 }, 1)
    }

    /// `n * self + m * other`
    pub fn sum(&self, n: i64, other: &LinearSum, m: i64) -> Option<LinearSum> {
        let scaled = |x: i64, by: i64| x.checked_mul(by).filter(|p| p.unsigned_abs() < LARGE.unsigned_abs());
        let added = |x: i64, y: i64| x.checked_add(y).filter(|s| s.unsigned_abs() < LARGE.unsigned_abs());
        let mut terms = Vec::with_capacity(self.terms.len() + other.terms.len());
        let (mut a, mut b) = (self.terms.iter().peekable(), other.terms.iter().peekable());
        loop {
            let next = match (a.peek(), b.peek()) {
                (None, None) => break,
                (Some(x), Some(y)) if x.0 == y.0 => {
                    let both = (x.0, added(scaled(x.1, n)?, scaled(y.1, m)?)?);
                    a.next();
                    b.next();
                    both
                }
                (Some(x), y) if y.is_none_or(|y| x.0 < y.0) => {
                    let one = (x.0, scaled(x.1, n)?);
                    a.next();
                    one
                }
                (_, Some(y)) => {
                    let one = (y.0, scaled(y.1, m)?);
                    b.next();
                    one
                }
                (Some(_), None) => unreachable!("the guard above takes it"),
            };
            if next.1 != 0 {
                terms.push(next);
            }
        }
        let constant = added(scaled(self.constant, n)?, scaled(other.constant, m)?)?;
        Some(LinearSum { terms, constant })
    }

    /// Its symbols.
    pub fn symbols(&self) -> impl Iterator<Item = u32> + '_ {
        self.terms.iter().map(|t| t.0)
    }

    fn factor(&self, symbol: u32) -> i64 {
        self.terms.iter().find(|t| t.0 == symbol).map_or(0, |t| t.1)
    }

    fn divisor(&self) -> i64 {
        self.terms.iter().fold(0, |g, t| gcd(g, t.1)).max(1)
    }

    fn divided(&mut self, by: i64) {
        if by == 1 {
            return;
        }
        self.terms.iter_mut().for_each(|t| t.1 /= by);
        self.constant = self.constant.div_euclid(by);
    }
}

/// There is no solution.
struct Contradiction;

impl System {
    /// `row == 0`
    pub fn zero(&mut self, row: LinearSum) {
        self.zero.push(row);
    }

    /// `row >= 0`
    pub fn at_least_zero(&mut self, row: LinearSum) {
        self.at_least_zero.push(row);
    }

    /// `row != 0`
    pub fn not_zero(&mut self, row: LinearSum) {
        let sides = [1, -1].map(|sign| row.sum(sign, &LinearSum::number(-1), 1));
        if let [Some(above), Some(below)] = sides {
            self.either(above, below);
        }
    }

    /// `a >= 0` or `b >= 0`
    pub fn either(&mut self, a: LinearSum, b: LinearSum) {
        self.either.push([a, b]);
    }

    /// What follows for the symbols that `keep` names; `None`: there is certainly no solution.
    pub fn reduced(&self, keep: &dyn Fn(u32) -> bool) -> Option<System> {
        let (zero, at_least_zero) = project(self.zero.clone(), self.at_least_zero.clone(), keep).ok()?;
        Some(System { zero, at_least_zero, either: self.either.clone() })
    }

    /// Equations and inequalities.
    pub fn rows(&self) -> usize {
        self.zero.len() + self.at_least_zero.len()
    }

    /// Whether there is certainly no solution.
    pub fn refuted(&self) -> bool {
        let mut least = self.at_least_zero.clone();
        if project(self.zero.clone(), least.clone(), &|_| false).is_err() {
            return true;
        }
        for sides in self.either.iter().take(SIDES) {
            let mut possible = sides.iter().filter(|side| {
                let with = least.iter().chain([*side]).cloned().collect();
                project(self.zero.clone(), with, &|_| false).is_ok()
            });
            match (possible.next(), possible.next()) {
                (None, _) => return true,
                (Some(only), None) => least.push(only.clone()),
                _ => {}
            }
        }
        false
    }

    /// Between which numbers a symbol is, as far as that is seen.
    pub fn bounds(&self, symbol: u32) -> (Option<i64>, Option<i64>) {
        let (mut low, mut high) = (None, None);
        let Ok((zero, mut rows)) = project(self.zero.clone(), self.at_least_zero.clone(), &|s| s == symbol) else {
            return (low, high);
        };
        both_ways(zero, &mut rows);
        for row in rows {
            match row.factor(symbol) {
                1 => low = Some(low.map_or(-row.constant, |n: i64| n.max(-row.constant))),
                -1 => high = Some(high.map_or(row.constant, |n: i64| n.min(row.constant))),
                _ => {}
            }
        }
        (low, high)
    }
}

/// What is left of equations and inequalities without the symbols, but for those that `keep` names.
fn project(
    mut zero: Vec<LinearSum>,
    mut least: Vec<LinearSum>,
    keep: &dyn Fn(u32) -> bool,
) -> Result<(Vec<LinearSum>, Vec<LinearSum>), Contradiction> {
    loop {
        while let Some((at, symbol)) = solvable(&mut zero, keep)? {
            let equation = zero.swap_remove(at);
            let factor = equation.factor(symbol);
            // The factor is 1 or -1.
            let replaced = |row: &LinearSum| match row.factor(symbol) {
                0 => Some(row.clone()),
                n => row.sum(1, &equation, -n * factor),
            };
            zero = zero.iter().filter_map(replaced).collect();
            least = least.iter().filter_map(replaced).collect();
        }
        rounded(&mut least)?;
        let Some(same) = opposite(&mut least) else { break };
        zero.push(same);
    }
    let (zero, others): (Vec<LinearSum>, Vec<LinearSum>) =
        zero.into_iter().partition(|r| r.terms.iter().all(|t| keep(t.0)));
    both_ways(others, &mut least);
    loop {
        rounded(&mut least)?;
        let Some(symbol) = cheapest(&least, keep) else { return Ok((zero, least)) };
        let (with, mut rest): (Vec<LinearSum>, Vec<LinearSum>) = least.into_iter().partition(|r| r.factor(symbol) != 0);
        for low in with.iter().filter(|r| r.factor(symbol) > 0) {
            for high in with.iter().filter(|r| r.factor(symbol) < 0) {
                let (n, m) = (low.factor(symbol), -high.factor(symbol));
                let g = gcd(n, m);
                rest.extend(low.sum(m / g, high, n / g));
            }
        }
        rest.truncate(ROWS);
        least = rest;
    }
}

/// Two inequalities that leave one number are an equation: that it is one of integers would be lost where a pair of
/// bounds is added up.
fn opposite(least: &mut Vec<LinearSum>) -> Option<LinearSum> {
    let negated = |row: &LinearSum| row.sum(-1, &LinearSum::default(), 1);
    // They are sorted, and no two have the same terms.
    let other = |row: &LinearSum| {
        let at = least.binary_search_by(|r| r.terms.cmp(&row.terms)).ok()?;
        (least[at].constant == row.constant).then_some(at)
    };
    let (first, second) = least.iter().enumerate().find_map(|(n, row)| Some((n, other(&negated(row)?)?)))?;
    let row = least.remove(first.max(second));
    least.remove(first.min(second));
    Some(row)
}

/// Equations as two inequalities each.
fn both_ways(zero: Vec<LinearSum>, least: &mut Vec<LinearSum>) {
    for row in zero {
        least.extend(row.sum(-1, &LinearSum::default(), 1));
        least.push(row);
    }
}

/// An equation with a symbol that has the factor 1 or -1. All of them are divided by what divides their factors.
fn solvable(zero: &mut Vec<LinearSum>, keep: &dyn Fn(u32) -> bool) -> Result<Option<(usize, u32)>, Contradiction> {
    for row in zero.iter_mut() {
        let by = row.divisor();
        if row.constant % by != 0 || row.terms.is_empty() && row.constant != 0 {
            return Err(Contradiction);
        }
        row.divided(by);
    }
    zero.retain(|r| !r.terms.is_empty());
    Ok(zero.iter().enumerate().find_map(|(n, row)| {
        let one = row.terms.iter().find(|t| t.1.abs() == 1 && !keep(t.0))?;
        Some((n, one.0))
    }))
}

/// Divides and rounds the rows; of equal ones the tightest stays.
fn rounded(least: &mut Vec<LinearSum>) -> Result<(), Contradiction> {
    for row in least.iter_mut() {
        if row.terms.is_empty() && row.constant < 0 {
            return Err(Contradiction);
        }
        row.divided(row.divisor());
    }
    least.retain(|r| !r.terms.is_empty());
    least.sort_by(|a, b| (&a.terms, a.constant).cmp(&(&b.terms, b.constant)));
    least.dedup_by(|next, first| next.terms == first.terms);
    Ok(())
}

/// The symbol whose elimination makes the fewest rows.
fn cheapest(least: &[LinearSum], keep: &dyn Fn(u32) -> bool) -> Option<u32> {
    // How many rows bound it from below and from above.
    let mut counts: Vec<(u32, u64, u64)> = Vec::new();
    for &(symbol, factor) in least.iter().flat_map(|r| &r.terms) {
        let at = symbol as usize;
        if counts.len() <= at {
            counts.resize(at + 1, (0, 0, 0));
        }
        let (n, below, above) = counts[at];
        counts[at] = (n + 1, below + u64::from(factor > 0), above + u64::from(factor < 0));
    }
    let all = counts.iter().zip(0u32..).filter(|((n, ..), s)| *n > 0 && !keep(*s));
    all.map(|((_, below, above), s)| (below * above, s)).min().map(|(_, s)| s)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(terms: &[(u32, i64)], constant: i64) -> LinearSum {
        terms.iter().fold(LinearSum::number(constant), |row, &(s, n)| row.plus(s, n).expect("small"))
    }

    #[test]
    fn chains_and_rounding() {
        let mut s = System::default();
        s.at_least_zero(row(&[(0, 1), (1, -1)], 0));
        s.at_least_zero(row(&[(1, 1), (2, -1)], 0));
        assert!(!s.refuted());
        assert_eq!(s.bounds(0), (None, None));
        s.at_least_zero(row(&[(2, 1)], -4));
        assert_eq!(s.bounds(0), (Some(4), None));
        s.at_least_zero(row(&[(0, -1)], 3));
        assert!(s.refuted());
        // 16 k = n, and n = 8 (mod 32) twice over.
        let mut s = System::default();
        s.zero(row(&[(0, 1), (1, -16)], 0));
        s.zero(row(&[(0, 1), (2, -32)], -8));
        assert!(s.refuted());
        // 1 <= 3 k <= 2
        let mut s = System::default();
        s.at_least_zero(row(&[(0, 3)], -1));
        s.at_least_zero(row(&[(0, -3)], 2));
        assert!(s.refuted());
    }

    #[test]
    fn bounds_that_meet_are_an_equation() {
        // n = 2 k + 1 and n = 2 j + 2, each by two bounds.
        let mut s = System::default();
        s.at_least_zero(row(&[(0, 1), (1, -2)], -1));
        s.at_least_zero(row(&[(0, -1), (1, 2)], 1));
        s.at_least_zero(row(&[(0, 1), (2, -2)], -2));
        assert!(!s.refuted());
        s.at_least_zero(row(&[(0, -1), (2, 2)], 2));
        assert!(s.refuted());
    }

    #[test]
    fn sides_of_zero() {
        let mut s = System::default();
        s.not_zero(row(&[(0, 1), (1, -1)], 0));
        s.at_least_zero(row(&[(0, 1), (1, -1)], 0));
        assert!(!s.refuted());
        s.at_least_zero(row(&[(1, 1), (0, -1)], 0));
        assert!(s.refuted());
    }

    /// Whatever has a solution among small numbers is not refuted, and its bounds contain it.
    #[test]
    fn nothing_that_has_a_solution_is_refuted() {
        let mut seed = 1u64;
        let mut next = |n: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) % n
        };
        let (mut solved, mut refuted) = (0, 0);
        for _ in 0..4000 {
            let mut s = System::default();
            let mut rows = Vec::new();
            for _ in 0..2 + next(5) {
                let terms: Vec<(u32, i64)> = (0..3).map(|v| (v, next(7) as i64 - 3)).collect();
                let (row, kind) = (row(&terms, next(15) as i64 - 7), next(4));
                match kind {
                    0 => s.zero(row.clone()),
                    1 => s.not_zero(row.clone()),
                    _ => s.at_least_zero(row.clone()),
                }
                rows.push((row, kind));
            }
            let all = (0..1000).map(|n| [n % 10 - 5, n / 10 % 10 - 5, n / 100 - 5]);
            let holds = |x: &[i64; 3]| {
                rows.iter().all(|(row, kind)| {
                    let sum = row.constant + row.terms.iter().map(|&(s, n)| n * x[s as usize]).sum::<i64>();
                    match kind {
                        0 => sum == 0,
                        1 => sum != 0,
                        _ => sum >= 0,
                    }
                })
            };
            let solutions: Vec<[i64; 3]> = all.filter(holds).collect();
            if s.refuted() {
                refuted += 1;
                assert!(solutions.is_empty(), "{s:?} {solutions:?}");
            }
            solved += usize::from(!solutions.is_empty());
            for (v, x) in solutions.iter().flat_map(|x| x.iter().enumerate()) {
                let (low, high) = s.bounds(v as u32);
                assert!(low.is_none_or(|n| n <= *x) && high.is_none_or(|n| n >= *x), "{s:?} {v} {x}");
            }
        }
        assert!(solved > 1000 && refuted > 200, "{solved} {refuted}");
    }
}

//! Coverage proof: whether each element that a read may touch is in a family that is written before it.
//!
//! The element has a symbol for its row and one for its column. A family has it if its parameters have values with
//! which the conditions hold and the window has the element. Such values are found by solving what the window begins
//! with for the parameters: of `t[2 * p + 1, _]` it is `p = (row - 1) / 2`, of `t[n - 1 - p, _]` `n - 1 - row`, and of
//! `t[q / 64, q % 64]` `64 * row + col`. Then nothing is left to be found: the element is missed only if for each
//! family one of its conditions fails, which linear inequalities are to contradict. Where one family has the even rows,
//! the condition of the other one is looked at for the odd rows alone.

use super::families::{Family, Param, Read};
use super::linear::{Facts, Linear};
use super::numbers::{Node, Numbers, SymbolicOffset};
use ptoc_diagnostics::Account;
use ptoc_ir::analysis::poly::Poly;
use ptoc_ir::tile::Ty;
use ptoc_isa::{BinOp, CmpOp};

/// Ways to solve a family that are tried.
const WAYS: usize = 8;
/// Elements that share a quotient, of which each is tried.
const SHARED: i64 = 4;
/// Operations that an origin is followed through.
const DEPTH: u32 = 6;
/// Steps of one read.
const STEPS: usize = 400_000;

const INDEX: Ty = Ty::Index;

/// What has to hold for an element to be in a family.
type Conditions = Vec<(SymbolicOffset, bool)>;

/// Whether all that is read is written before. `None` if no steps are left.
pub(super) fn covered(numbers: &mut Numbers, read: &Read, shape: (u32, u32), account: Account<'_>) -> Option<bool> {
    let element = [numbers.symbol(), numbers.symbol()];
    let mut window: Conditions = Vec::new();
    for ((at, size), (origin, count)) in element.into_iter().zip([shape.0, shape.1]).zip(read.axes) {
        within(numbers, at, (origin, count), &mut window);
        // No window begins before its tile or ends behind it.
        within(numbers, at, (SymbolicOffset::known(0), SymbolicOffset::known(i64::from(size))), &mut window);
    }
    let mut ways = Vec::new();
    // What was written last is the likeliest.
    for family in read.written.iter().rev() {
        let before = ways.len();
        solve(numbers, family, element, before + WAYS, &mut ways);
    }
    let mut linear = Linear::new(numbers, STEPS);
    let mut facts = Facts::default();
    read.path.iter().for_each(|l| linear.literal(&mut facts, *l));
    window.into_iter().for_each(|(c, holds)| linear.assume(&mut facts, c, holds));
    // Those of which the fewest conditions are open come first.
    let mut ranked: Vec<(usize, Conditions)> = Vec::new();
    for way in ways {
        let open = way.iter().filter(|(c, holds)| !linear.follows(&facts, *c, *holds)).count();
        ranked.push((open, way));
        if open == 0 {
            break;
        }
    }
    ranked.sort_by_key(|(open, _)| *open);
    let ways: Vec<Conditions> = ranked.into_iter().map(|(_, way)| way).collect();
    let found = missed_nowhere(&mut linear, &facts, &ways);
    account.spend(linear.taken).ok()?;
    Some(found)
}

/// `origin <= at < origin + count`
fn within(
    numbers: &mut Numbers,
    at: SymbolicOffset,
    (origin, count): (SymbolicOffset, SymbolicOffset),
    out: &mut Conditions,
) {
    let end = numbers.binary(INDEX, BinOp::Add, origin, count);
    out.push((numbers.compare(INDEX, CmpOp::Lt, at, origin), false));
    out.push((numbers.compare(INDEX, CmpOp::Lt, at, end), true));
}

/// Whether there is no element that is in none of these.
fn missed_nowhere(linear: &mut Linear<'_>, facts: &Facts, ways: &[Conditions]) -> bool {
    if linear.refuted(facts) {
        return true;
    }
    let Some((way, others)) = ways.split_first() else { return false };
    if linear.spent() {
        return false;
    }
    // The first condition that fails: those before it hold.
    let mut before = facts.clone();
    let mut open = Vec::new();
    for &(condition, holds) in way {
        if linear.follows(&before, condition, holds) {
            continue;
        }
        let mut fails = before.clone();
        linear.assume(&mut fails, condition, !holds);
        open.push(fails);
        linear.assume(&mut before, condition, holds);
    }
    // It is of no use where it never has an element.
    if open.len() > 1 && linear.refuted(&before) {
        return missed_nowhere(linear, facts, others);
    }
    open.iter().all(|fails| missed_nowhere(linear, fails, others))
}

/// The conditions of the family with values for its parameters, in each way that is found.
fn solve(numbers: &mut Numbers, family: &Family, element: [SymbolicOffset; 2], most: usize, out: &mut Vec<Conditions>) {
    let Some(last) = family.params.last() else {
        let mut all = Vec::new();
        for (at, axis) in element.into_iter().zip(family.axes) {
            within(numbers, at, axis, &mut all);
        }
        all.extend(&family.holds);
        // One that never holds is no way.
        if !all.iter().any(|(c, holds)| c.constant().is_some_and(|c| (c != 0) != *holds)) && !out.contains(&all) {
            out.push(all);
        }
        return;
    };
    let found = equations(numbers, family, element);
    let (param, values) = match found {
        Some(found) => found,
        None => (*last, defaults(numbers, family, *last)),
    };
    for value in values {
        if out.len() >= most {
            return;
        }
        let Some(mut with) = family.with(numbers, param.symbol, value) else { continue };
        with.params.retain(|p| p.symbol != param.symbol);
        solve(numbers, &with, element, most, out);
    }
}

/// A parameter, and the values that it can have.
type Solved = (Param, Vec<SymbolicOffset>);

fn equations(numbers: &mut Numbers, family: &Family, element: [SymbolicOffset; 2]) -> Option<Solved> {
    let [(row, _), (col, _)] = family.axes;
    // x / n and x % n
    for ((a, at), (b, rest)) in [((row, element[0]), (col, element[1])), ((col, element[1]), (row, element[0]))] {
        if let (Node::Index(BinOp::Div, x, n), Node::Index(BinOp::Rem, y, m)) =
            (&numbers.nodes[a.base as usize], &numbers.nodes[b.base as usize])
            && (x, n) == (y, m)
            && let (x, n) = (*x, *n)
            && let Some((at, rest)) = less(at, a.offset).zip(less(rest, b.offset))
        {
            let times = numbers.binary(INDEX, BinOp::Mul, at, n);
            let whole = numbers.binary(INDEX, BinOp::Add, times, rest);
            if let Some(found) = equation(numbers, family, x, whole, DEPTH) {
                return Some(found);
            }
        }
    }
    element.into_iter().zip([row, col]).find_map(|(at, origin)| equation(numbers, family, origin, at, DEPTH))
}

fn less(n: SymbolicOffset, by: i64) -> Option<SymbolicOffset> {
    by.checked_neg().and_then(|by| n.plus(by))
}

/// The values of a parameter of the family with which `origin` is `at`, or the window from there on has it.
fn equation(
    numbers: &mut Numbers,
    family: &Family,
    origin: SymbolicOffset,
    at: SymbolicOffset,
    depth: u32,
) -> Option<Solved> {
    let depth = depth.checked_sub(1)?;
    let sum = numbers.sum(origin)?;
    let rest = less(at, origin.offset)?;
    // The one that moves it most.
    let linear = family.params.iter().filter_map(|p| {
        let by = sum.step(p.symbol.base)?.number().filter(|by| *by != 0)?;
        let hidden = |s: u32| s != p.symbol.base && numbers.contains(s, p.symbol.base);
        (!sum.symbols().any(hidden)).then_some((*p, by))
    });
    if let Some((param, by)) = linear.max_by_key(|(_, by)| by.unsigned_abs()) {
        // What else moves with a parameter is what is left.
        let others: Vec<u32> = family.params.iter().map(|p| p.symbol.base).collect();
        let free = |factors: &[u32]| factors.iter().any(|s| others.iter().any(|o| numbers.contains(*s, *o)));
        let fixed = sum.terms().iter().filter(|(factors, _)| !free(factors)).cloned().collect();
        let fixed = Poly::sum_of(fixed)?;
        let fixed = numbers.number_of(&fixed);
        let left = match by > 0 {
            true => numbers.binary(INDEX, BinOp::Sub, at, fixed),
            false => numbers.binary(INDEX, BinOp::Sub, fixed, at),
        };
        let steps = i64::try_from(by.unsigned_abs()).ok()?;
        let value = numbers.binary(INDEX, BinOp::Div, left, SymbolicOffset::known(steps));
        let value = if steps == 1 { left } else { value };
        return Some((param, vec![value]));
    }
    let (op, x, y) = match numbers.nodes[origin.base as usize] {
        Node::Index(op, x, y) => (op, x, y),
        _ => return None,
    };
    let mut all: Option<Solved> = None;
    let mut add = |found: Option<Solved>| match (&mut all, found) {
        (None, found) => all = found,
        (Some((p, values)), Some((q, more))) if p.symbol == q.symbol => {
            more.into_iter().for_each(|n| {
                if !values.contains(&n) {
                    values.push(n)
                }
            });
        }
        _ => {}
    };
    match op {
        // x = rest, rest + y, rest - y
        BinOp::Rem => {
            let (above, below) =
                (numbers.binary(INDEX, BinOp::Add, rest, y), numbers.binary(INDEX, BinOp::Sub, rest, y));
            for whole in [rest, above, below] {
                add(equation(numbers, family, x, whole, depth));
            }
        }
        BinOp::Div => {
            let n = y.constant().filter(|n| *n >= 1)?;
            let first = numbers.binary(INDEX, BinOp::Mul, rest, y);
            for k in 0..n.min(SHARED) {
                add(equation(numbers, family, x, first.plus(k)?, depth));
            }
        }
        BinOp::Min | BinOp::Max => {
            for side in [x, y] {
                add(equation(numbers, family, side, rest, depth));
            }
        }
        _ => {}
    }
    all
}

/// Values of a parameter that moves no window: one that a condition names, the first one, the last one.
fn defaults(numbers: &mut Numbers, family: &Family, param: Param) -> Vec<SymbolicOffset> {
    let p = param.symbol;
    let mut out = Vec::new();
    let mut offer = |n: Option<SymbolicOffset>| out.extend(n);
    for &(condition, holds) in &family.holds {
        let mut all = Vec::new();
        numbers.assume(condition, holds, &mut all);
        for l in all.iter().filter(|l| l.holds) {
            if let Node::Equal(a, b, n) = numbers.nodes[l.condition as usize] {
                // a == b + n
                if a == p.base {
                    offer(Some(SymbolicOffset { base: b, offset: n }));
                } else if b == p.base {
                    offer(n.checked_neg().map(|offset| SymbolicOffset { base: a, offset }));
                }
            }
        }
    }
    offer(Some(param.lo));
    offer(param.hi.and_then(|hi| hi.plus(-1)));
    out.retain(|n| !numbers.depends(*n, p));
    out.dedup();
    out
}

//! How long a window can be, by what is known of the numbers where it begins and ends.

use ptoc_ir::analysis::facts::Facts;
use ptoc_ir::tile::Value;
use ptoc_isa::BinOp;

/// The help for a window without a bound.
pub const SAY_THE_MOST: &str =
    "say the most that it can be, and the tile has room for that: `where n <= 64`, `min(n, 64)`";

/// Another help for it.
pub const BY_BLOCKS: &str = "or take it by blocks: `for i in tiles(n, 64) { .. x[a .. b, _].tile(i, _) .. }`";

/// Bounds that are looked at for one distance, one above the other.
const DEPTH: u32 = 6;

/// Values above one that are looked at.
const STEPS: usize = 64;

/// What `hi - lo` is at most, by what `hi` is at most: numbers, or other values and numbers.
pub fn most_apart(facts: &Facts, lo: Value, hi: Value) -> Vec<(Option<Value>, i64)> {
    apart_at(facts, lo, hi, DEPTH)
}

fn apart_at(facts: &Facts, lo: Value, hi: Value, depth: u32) -> Vec<(Option<Value>, i64)> {
    if lo == hi {
        return vec![(None, 0)];
    }
    let Some(depth) = depth.checked_sub(1) else { return Vec::new() };
    let plus = |v: Value, n: Value| {
        let number = facts.number(n);
        apart_at(facts, lo, v, depth).into_iter().filter_map(move |(u, c)| match (u, number) {
            (u, Some(k)) => Some((u, c.checked_add(k)?)),
            (None, None) => Some((Some(n), c)),
            (Some(_), None) => None,
        })
    };
    let mut out: Vec<_> = match facts.definition(hi) {
        Some((BinOp::Add, a, b)) => plus(a, b).chain(plus(b, a)).collect(),
        Some((BinOp::Min, a, b)) => [a, b].into_iter().flat_map(|v| apart_at(facts, lo, v, depth)).collect(),
        _ => Vec::new(),
    };
    for (v, c) in facts.above(hi).filter_map(|(v, c)| Some((v?, c))) {
        out.extend(apart_at(facts, lo, v, depth).into_iter().filter_map(|(u, k)| Some((u, k.checked_add(c)?))));
    }
    out
}

/// Values that `v` is at most, but for numbers that are added to them.
pub fn above(facts: &Facts, v: Value) -> Vec<Value> {
    let mut met = vec![v];
    let mut at = 0;
    while let Some(&v) = met.get(at) {
        at += 1;
        let smaller = match facts.definition(v) {
            Some((BinOp::Min, a, b)) => vec![a, b],
            _ => Vec::new(),
        };
        for u in smaller.into_iter().chain(facts.above(v).filter_map(|(u, _)| u)) {
            if met.len() <= STEPS && !met.contains(&u) {
                met.push(u);
            }
        }
    }
    met.split_off(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values that have numbers, and the facts.
    fn values() -> ([Value; 6], Facts) {
        ([0, 1, 2, 3, 4, 5].map(Value::from_u32), Facts::default())
    }

    #[test]
    fn an_end_that_is_cut_is_no_farther_than_where_it_is_cut() {
        // end = min(b, a + 64)
        let ([a, b, sixty_four, sum, end, _], mut facts) = values();
        facts.constant(sixty_four, 64);
        facts.defined(sum, BinOp::Add, a, sixty_four);
        facts.defined(end, BinOp::Min, b, sum);
        assert_eq!(most_apart(&facts, a, end), [(None, 64)]);
        assert_eq!(most_apart(&facts, b, end), [(None, 0)]);
        assert!(most_apart(&facts, end, a).is_empty());
    }

    #[test]
    fn a_sum_is_as_far_as_what_is_added() {
        // end <= a + n - 1
        let ([a, n, sum, end, ..], mut facts) = values();
        facts.defined(sum, BinOp::Add, a, n);
        facts.le(end, sum, -1);
        assert_eq!(most_apart(&facts, a, end), [(Some(n), -1)]);
    }

    #[test]
    fn what_is_above_is_found_through_others() {
        let ([n, m, k, least, other, apart], mut facts) = values();
        facts.defined(least, BinOp::Min, n, k);
        facts.le(n, m, 3);
        facts.le(other, least, 0);
        assert_eq!(above(&facts, other), [least, n, k, m]);
        assert!(above(&facts, apart).is_empty());
    }
}

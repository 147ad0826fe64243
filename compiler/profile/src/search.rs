//! Coordinate descent with restarts: which configurations are raced where the product of the lists is too large to race
//! all.
//!
//! From a start, the values of one list after the other are raced while the other values stay, and the fastest stays;
//! a tie changes nothing. Where a pass over all lists changes nothing the search is in a local optimum, and begins anew
//! elsewhere. The starts are the same in every call, so what differs between two calls is what was measured.

use std::collections::HashSet;

/// A value for each list.
pub(crate) type Choice = Vec<usize>;

/// Configurations up to which all are raced.
pub(crate) const ALL: usize = 64;
/// Values of a list that are raced together at most: of longer lists those near the present one, and some far away.
const LINE: usize = 16;
/// Starts behind the first.
const RESTARTS: usize = 3;
/// Configurations at most that are raced, unless the first pass has more.
const BUDGET: usize = 192;

/// What a search has come to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Found {
    /// The local optima, in the order in which they were found, each once.
    pub optima: Vec<Choice>,
    /// How many configurations were looked at.
    pub tried: usize,
    /// How often it began.
    pub starts: usize,
}

/// Races configurations: the numbers of those that none is faster than; none if all are refused.
pub(crate) type Judge<'j, E> = dyn FnMut(&[Choice]) -> Result<Vec<usize>, E> + 'j;

/// Searches lists of these lengths, first from `start`.
///
/// # Errors
/// What the judge says.
pub(crate) fn descend<E>(lengths: &[usize], start: &Choice, judge: &mut Judge<'_, E>) -> Result<Found, E> {
    let mut search = Search { lengths, judge, tried: HashSet::new(), settled: HashSet::new() };
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut found = Found { optima: Vec::new(), tried: 0, starts: 0 };
    for n in 0..=RESTARTS {
        if n > 0 && search.tried.len() >= BUDGET {
            break;
        }
        let from = if n == 0 { start.clone() } else { random.choice(lengths) };
        found.starts += 1;
        if let Some(optimum) = search.from(from)?
            && !found.optima.contains(&optimum)
        {
            found.optima.push(optimum);
        }
    }
    found.tried = search.tried.len();
    Ok(found)
}

struct Search<'s, 'j, E> {
    lengths: &'s [usize],
    judge: &'s mut Judge<'j, E>,
    /// Configurations that were raced.
    tried: HashSet<Choice>,
    /// Lists that were raced, with the other values (that of the list is its fastest).
    settled: HashSet<(usize, Choice)>,
}

impl<E> Search<'_, '_, E> {
    /// The local optimum that a start leads to; `None` if nothing near it can be run.
    fn from(&mut self, start: Choice) -> Result<Option<Choice>, E> {
        let (mut at, mut runs) = (start, false);
        loop {
            let mut changed = false;
            for axis in 0..self.lengths.len() {
                if self.settled.contains(&(axis, at.clone())) {
                    continue;
                }
                let line = self.line(axis, &at);
                self.tried.extend(line.iter().cloned());
                let fastest = (self.judge)(&line)?;
                runs |= !fastest.is_empty();
                let stays = fastest.iter().any(|n| line[*n] == at);
                if let Some(first) = fastest.first().filter(|_| !stays) {
                    at.clone_from(&line[*first]);
                    changed = true;
                }
                // Of a long list another part is near where it is now.
                if stays || self.lengths[axis] <= LINE {
                    self.settled.insert((axis, at.clone()));
                }
            }
            if !changed || self.tried.len() >= BUDGET {
                return Ok(runs.then_some(at));
            }
        }
    }

    /// A configuration with the other values of one list, in the list's order.
    fn line(&self, axis: usize, at: &Choice) -> Vec<Choice> {
        let (length, own) = (self.lengths[axis], at[axis]);
        let near = |n: &usize| length <= LINE || n.abs_diff(own) == 0 || n.abs_diff(own).is_power_of_two();
        let with = |n: usize| {
            let mut choice = at.clone();
            choice[axis] = n;
            choice
        };
        (0..length).filter(near).map(with).collect()
    }
}

/// Starts that are the same in every call: Knuth's linear congruential generator (MMIX).
struct Random(u64);

impl Random {
    fn choice(&mut self, lengths: &[usize]) -> Choice {
        let mut below = |length: &usize| {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 33) as usize % length.max(&1)
        };
        lengths.iter().map(&mut below).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Searches with a cost for each configuration, `None` if it is refused.
    fn search(lengths: &[usize], start: &[usize], cost: impl Fn(&[usize]) -> Option<u64>) -> (Found, Vec<Choice>) {
        let mut raced: Vec<Choice> = Vec::new();
        let found = descend::<()>(lengths, &start.to_vec(), &mut |line| {
            raced.extend(line.iter().cloned());
            let least = line.iter().filter_map(|c| cost(c)).min();
            Ok((0..line.len()).filter(|n| least.is_some() && cost(&line[*n]) == least).collect())
        });
        (found.unwrap(), raced)
    }

    #[test]
    fn a_valley_is_found_in_few_steps() {
        let cost = |c: &[usize]| Some(c.iter().zip([5, 2, 9]).map(|(n, best)| n.abs_diff(best) as u64).sum());
        let (found, raced) = search(&[12, 12, 12], &[0, 0, 0], cost);
        assert_eq!(found.optima, [vec![5, 2, 9]]);
        assert!(found.tried < 1728 / 8 && found.starts == RESTARTS + 1, "{found:?}");
        assert!(raced.len() < 3 * found.tried, "{} races for {}", raced.len(), found.tried);
    }

    #[test]
    fn a_restart_leaves_a_local_optimum() {
        // Both have to change at once to get out of the corner.
        let cost = |c: &[usize]| match (c[0] < 4, c[1] < 4) {
            (true, true) => Some(10 + (c[0] + c[1]) as u64),
            (false, false) => Some(20 - (c[0] + c[1]) as u64),
            _ => Some(100),
        };
        let (found, _) = search(&[10, 10], &[1, 1], cost);
        assert_eq!(found.optima[0], [0, 0]);
        assert!(found.optima.contains(&vec![9, 9]), "{found:?}");
    }

    #[test]
    fn a_tie_changes_nothing() {
        let (found, _) = search(&[5, 5], &[3, 2], |_| Some(7));
        assert_eq!(found.optima[0], [3, 2]);
    }

    #[test]
    fn what_is_refused_is_left() {
        // The start cannot be run, and nothing else with its first value.
        let cost = |c: &[usize]| (c[0] > 0 && c[1] < 3).then(|| (c[0] + c[1]) as u64);
        let (found, _) = search(&[4, 5], &[0, 4], cost);
        assert!(found.optima.contains(&vec![1, 0]), "{found:?}");
        let (found, _) = search(&[4, 5], &[0, 4], |_| None);
        assert!(found.optima.is_empty());
    }

    #[test]
    fn of_long_lists_some_are_tried() {
        let cost = |c: &[usize]| Some(c[0].abs_diff(777) as u64);
        let (found, raced) = search(&[1000], &[0], cost);
        assert!(found.tried <= BUDGET + 2 * LINE, "{found:?}");
        let best = raced.iter().map(|c| c[0].abs_diff(777)).min();
        assert_eq!(best, Some(0), "{found:?}");
    }

    #[test]
    fn two_calls_race_the_same() {
        let cost = |c: &[usize]| Some((c[0] * 7 + c[1] * 3) as u64 % 11);
        assert_eq!(search(&[20, 20], &[0, 0], cost).1, search(&[20, 20], &[0, 0], cost).1);
    }
}

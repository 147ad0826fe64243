//! Kernels launched in turns, so that a disturbance of the machine meets all of them, and who of them is faster.

use crate::sample::{Rehearsal, percentile};
use crate::setup::first_error;
use ptoc_diagnostics::Diagnostic;
use ptoc_driver::session::{Failed, Session};
use ptoc_tensor::Tensor;
use std::time::Duration;

/// Rounds in which all are launched. If two are as fast as each other, one is slower in all of them once in 128 times.
pub const ROUNDS: usize = 7;
/// Rounds after which those that are clearly slower may leave.
const FIRST: usize = 3;
/// By how much: they are slower by it in every round.
const CLEARLY: f64 = 1.1;
/// Less than that is no difference, however sure it is.
const LEAST: f64 = 1.01;

/// Who takes part.
pub struct Entrant<'s, 'c, 'p> {
    /// The compilation.
    pub session: &'s mut Session,
    /// What is launched.
    pub rehearsal: Rehearsal<'c, 'p>,
    /// The number of the arrays that it is launched on.
    pub arrays: usize,
}

/// Times of one.
#[derive(Clone, Default, Debug)]
pub struct Laps {
    /// Of all launches, ascending.
    pub times: Vec<Duration>,
    /// Medians of the rounds, in seconds.
    pub rounds: Vec<f64>,
}

impl Laps {
    /// The median, in seconds.
    pub fn median(&self) -> f64 {
        percentile(&self.times, 0.5).as_secs_f64()
    }

    /// Whether it is slower than another by a factor in every round that both have.
    fn slower_by(&self, other: &Laps, factor: f64) -> bool {
        let both = self.rounds.iter().zip(&other.rounds);
        both.clone().count() > 0 && both.clone().all(|(own, theirs)| *own > theirs * factor)
    }

    /// Whether it is slower than another: in every round, and by more than a hundredth in the middle.
    pub fn is_slower(&self, other: &Laps) -> bool {
        let mut ratios: Vec<f64> = self.rounds.iter().zip(&other.rounds).map(|(own, theirs)| own / theirs).collect();
        ratios.sort_by(f64::total_cmp);
        self.slower_by(other, 1.0) && ratios[ratios.len() / 2] >= LEAST
    }
}

/// The number of the one that failed, and why.
type Stopped = (usize, Box<Diagnostic>);

/// Launches all of them in turns, for `length` each. `halving`: the slower half leaves after some rounds, as far as it
/// is clearly slower.
///
/// # Errors
/// The number of the one that failed, and why.
pub fn race(
    entrants: &mut [Entrant<'_, '_, '_>],
    arrays: &mut [Vec<Tensor>],
    length: Duration,
    halving: bool,
) -> Result<Vec<Laps>, Stopped> {
    let all = (0..entrants.len()).collect();
    turns(entrants, arrays, (all, length), halving)
}

/// Launches some of them in turns: those that do not take part have no laps.
fn turns(
    entrants: &mut [Entrant<'_, '_, '_>],
    arrays: &mut [Vec<Tensor>],
    (mut there, length): (Vec<usize>, Duration),
    halving: bool,
) -> Result<Vec<Laps>, Stopped> {
    let mut all = vec![Laps::default(); entrants.len()];
    for round in 0..ROUNDS {
        // Who begins is another one each time.
        let first = round % there.len().max(1);
        for &n in there[first..].iter().chain(&there[..first]) {
            let Entrant { session, rehearsal, arrays: of } = &mut entrants[n];
            match rehearsal.launch_for(session, &mut arrays[*of], length / ROUNDS as u32) {
                Ok(sample) => {
                    all[n].rounds.push(percentile(&sample.times, 0.5).as_secs_f64());
                    all[n].times.extend(sample.times);
                }
                Err(Failed) => return Err((n, Box::new(first_error(session)))),
            }
        }
        if halving && round + 1 >= FIRST {
            leave(&mut there, &all);
        }
    }
    all.iter_mut().for_each(|laps| laps.times.sort_unstable());
    Ok(all)
}

/// Those of the slower half that are clearly slower than the fastest leave.
fn leave(there: &mut Vec<usize>, all: &[Laps]) {
    let middle = |n: &usize| {
        let mut rounds = all[*n].rounds.clone();
        rounds.sort_by(f64::total_cmp);
        rounds[rounds.len() / 2]
    };
    let mut order = there.clone();
    order.sort_by(|a, b| middle(a).total_cmp(&middle(b)));
    let Some(&fastest) = order.first() else { return };
    let slow = &order[order.len().div_ceil(2)..];
    there.retain(|n| !slow.contains(n) || !all[*n].slower_by(&all[fastest], CLEARLY));
}

/// The numbers of those that none is faster than, in their order: more than one is a tie.
pub fn fastest(all: &[Laps]) -> Vec<usize> {
    // Those that have left have fewer rounds.
    let most = all.iter().map(|laps| laps.rounds.len()).max().unwrap_or(0);
    let there: Vec<usize> = (0..all.len()).filter(|n| all[*n].rounds.len() == most).collect();
    let beaten = |n: &usize| there.iter().any(|m| all[*n].is_slower(&all[*m]));
    let best: Vec<usize> = there.iter().copied().filter(|n| !beaten(n)).collect();
    match best.is_empty() {
        false => best,
        // Each is slower than another in a circle, by rounds that not all have.
        true => there.into_iter().min_by(|a, b| all[*a].median().total_cmp(&all[*b].median())).into_iter().collect(),
    }
}

/// The numbers of those that none is faster than, where the default is left on stronger evidence alone
/// ([`unless_default_stays`]): it and who would take its place are launched again, for `length` each.
///
/// # Errors
/// The number of the one that failed, and why.
pub fn fastest_or_default(
    entrants: &mut [Entrant<'_, '_, '_>],
    arrays: &mut [Vec<Tensor>],
    length: Duration,
    (all, default): (&[Laps], Option<usize>),
) -> Result<Vec<usize>, Stopped> {
    unless_default_stays(all, default, |default, other| {
        let mut laps = turns(entrants, arrays, (vec![default, other], length), false)?;
        Ok([default, other].map(|n| std::mem::take(&mut laps[n])))
    })
}

/// Of two that are as fast as each other one is slower in every round once in 128 times, but of many each has as many
/// chances to be slower than some other. So who would take the place of the default meets it once more, by themselves:
/// if the default is not slower again it is one of the fastest.
fn unless_default_stays<E>(
    all: &[Laps],
    default: Option<usize>,
    meet: impl FnOnce(usize, usize) -> Result<[Laps; 2], E>,
) -> Result<Vec<usize>, E> {
    let mut best = fastest(all);
    if let (Some(default), Some(&first)) = (default, best.first())
        && !best.contains(&default)
    {
        let [own, other] = meet(default, first)?;
        if !own.is_slower(&other) {
            best.push(default);
            best.sort_unstable();
        }
    }
    Ok(best)
}

/// As [`fastest`], of those who ran elsewhere, by their medians of each round, in seconds; all were launched in turns.
pub fn fastest_of(rounds: Vec<Vec<f64>>) -> Vec<usize> {
    let times = |of: &[f64]| {
        let mut times: Vec<Duration> =
            of.iter().map(|s| Duration::try_from_secs_f64(*s).unwrap_or(Duration::MAX)).collect();
        times.sort_unstable();
        times
    };
    let all: Vec<Laps> = rounds.into_iter().map(|rounds| Laps { times: times(&rounds), rounds }).collect();
    fastest(&all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn laps(rounds: &[u64]) -> Laps {
        let mut times: Vec<Duration> = rounds.iter().map(|us| Duration::from_micros(*us)).collect();
        times.sort_unstable();
        Laps { times, rounds: rounds.iter().map(|us| *us as f64 * 1e-6).collect() }
    }

    #[test]
    fn what_is_faster_by_turns_is_a_tie() {
        let one = laps(&[100, 120, 100, 100, 140, 100, 100]);
        let other = laps(&[104, 110, 105, 106, 130, 107, 108]);
        assert_eq!(fastest(&[one.clone(), other.clone()]), [0, 1]);
        // A disturbance meets both: in every round the second is slower.
        let slower = laps(&[104, 125, 105, 106, 150, 107, 108]);
        assert!(slower.is_slower(&one) && !one.is_slower(&slower) && !other.is_slower(&one));
        assert_eq!(fastest(&[slower, one]), [1]);
        // Of what is as fast as one that a disturbance has met, the slower one is none of the fastest.
        let met = laps(&[100, 100, 100, 500, 100, 100, 100]);
        assert_eq!(fastest(&[laps(&[110; 7]), met, laps(&[102; 7])]), [1, 2]);
    }

    #[test]
    fn less_than_a_hundredth_is_no_difference() {
        let one = laps(&[10_000; 7]);
        assert_eq!(fastest(&[one.clone(), laps(&[10_050; 7])]), [0, 1]);
        assert_eq!(fastest(&[laps(&[10_200; 7]), one]), [1]);
    }

    /// Eight that are as fast as each other, with noise of a tenth: the first is the default.
    #[test]
    fn a_default_leaves_on_stronger_evidence() {
        let mut state = 1u64;
        let mut lap = |speed: u64| {
            let mut round = || {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                speed * (1000 + (state >> 33) % 100) / 100
            };
            laps(&[(); ROUNDS].map(|()| round()))
        };
        let (mut lost, mut replaced) = (0, 0);
        for _ in 0..2000 {
            let all: Vec<Laps> = (0..8).map(|_| lap(1000)).collect();
            lost += usize::from(!fastest(&all).contains(&0));
            let best = unless_default_stays::<()>(&all, Some(0), |_, _| Ok([lap(1000), lap(1000)])).unwrap();
            replaced += usize::from(!best.contains(&0));
        }
        assert!(lost > 40 && replaced <= 2, "{lost} without, {replaced}");
        // What is slower leaves all the same, and none is asked where there is no default.
        let all = [lap(1200), lap(1000)];
        assert_eq!(unless_default_stays::<()>(&all, Some(0), |_, _| Ok([lap(1200), lap(1000)])), Ok(vec![1]));
        assert_eq!(unless_default_stays(&all, Some(0), |_, _| Ok::<_, ()>([lap(1000), lap(1000)])), Ok(vec![0, 1]));
        assert_eq!(unless_default_stays(&all, None, |_, _| Err(())), Ok(vec![1]));
        assert_eq!(unless_default_stays(&all, Some(1), |_, _| Err(())), Ok(vec![1]));
    }

    #[test]
    fn the_slower_half_leaves() {
        let all = [laps(&[100; 3]), laps(&[300, 290, 310]), laps(&[105; 3]), laps(&[300, 105, 300])];
        let mut there = vec![0, 1, 2, 3];
        leave(&mut there, &all);
        // The last was close once.
        assert_eq!(there, [0, 2, 3]);
        assert_eq!(fastest(&[]), Vec::<usize>::new());
    }
}

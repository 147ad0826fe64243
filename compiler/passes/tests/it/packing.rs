//! Quality of the packing: problems with a known best solution, and brute force on small ones.

use crate::cuts::{ALIGN, Random, instance};
use ptoc_placement::pack::{EXACT, Effort, Problem, Rect, Solution};

/// No two rectangles overlap, all are aligned, and the extent is what it says.
fn valid(problem: &Problem, solution: &Solution) {
    let at = |i: usize| (solution.offsets[i], solution.offsets[i] + problem.rects[i].size);
    let mut top = problem.free;
    for (i, a) in problem.rects.iter().enumerate() {
        match a.fixed {
            Some(fixed) => assert_eq!(solution.offsets[i], fixed),
            None => {
                assert_eq!(solution.offsets[i] % problem.align, 0);
                top = top.max(at(i).0 + a.size.next_multiple_of(problem.align));
            }
        }
        for (j, b) in problem.rects.iter().enumerate().take(i) {
            let together = a.start <= b.end && b.start <= a.end;
            let overlap = at(i).0 < at(j).1 && at(j).0 < at(i).1;
            assert!(!together || !overlap || a.fixed.is_some() && b.fixed.is_some(), "{i} and {j} overlap");
        }
    }
    assert_eq!(solution.extent, top);
    assert!(solution.bound <= solution.extent);
}

/// `cargo run --release --example packing` shows all 200; these are those with up to 150 tiles, and some larger ones,
/// for which an unoptimised build needs no minutes.
#[test]
fn packings_are_near_the_known_optimum() {
    let mut excesses = Vec::new();
    for seed in 0..200 {
        let c = instance(seed);
        let n = c.problem.rects.len();
        if n > 150 && seed % 20 != 4 {
            continue;
        }
        let solution = c.problem.solve(Effort::Much);
        valid(&c.problem, &solution);
        assert!(solution.bound <= c.bytes && solution.extent >= c.bytes, "seed {seed}");
        if n <= EXACT {
            assert!(solution.optimal && solution.extent == c.bytes, "seed {seed}");
        }
        excesses.push(c.excess(&solution));
    }
    assert!(excesses.len() > 100, "{}", excesses.len());
    excesses.sort_by(f64::total_cmp);
    let (median, worst) = (excesses[excesses.len() / 2], excesses[excesses.len() - 1]);
    assert!(median <= 3.0 && worst <= 8.0, "median {median:.2} %, worst {worst:.2} %");
}

/// The lowest extent of all: every rectangle at every offset.
fn brute_force(problem: &Problem, limit: u64) -> u64 {
    fn place(problem: &Problem, at: &mut Vec<u64>, best: &mut u64) {
        let i = at.len();
        let Some(r) = problem.rects.get(i) else {
            let tops = problem.rects.iter().zip(&*at).filter(|(r, _)| r.fixed.is_none());
            *best = (*best).min(tops.map(|(r, at)| at + r.size.next_multiple_of(problem.align)).max().unwrap_or(0));
            return;
        };
        let mut offset = r.fixed.unwrap_or(0);
        while r.fixed.is_some() || offset + r.size < *best {
            let clear = problem.rects.iter().zip(&*at).all(|(o, &b)| {
                let together = r.start <= o.end && o.start <= r.end && !(r.fixed.is_some() && o.fixed.is_some());
                !together || offset >= b + o.size || b >= offset + r.size
            });
            if clear {
                at.push(offset);
                place(problem, at, best);
                at.pop();
            }
            if r.fixed.is_some() {
                break;
            }
            offset += problem.align;
        }
    }
    let mut best = limit;
    place(problem, &mut Vec::new(), &mut best);
    best
}

#[test]
fn the_search_is_exhaustive_for_few_rectangles() {
    let mut r = Random(7);
    for round in 0..ptoc_tests_budget::cases::<u32>(100, 300) {
        let align = [1, 32][(r.next() % 2) as usize];
        let n = r.within(1, 6);
        // Obstacles first: brute force goes through the list in order.
        let obstacles = r.within(0, 2);
        let rects = (0..n + obstacles).map(|k| {
            let start = r.within(0, 7) as u32;
            let end = start + r.within(0, 4) as u32;
            let size = if align == 1 { r.within(1, 4) } else { r.within(1, 4 * 32) };
            Rect { start, end, size, fixed: (k < obstacles).then(|| align * r.within(0, 8)) }
        });
        let problem = Problem { align, free: 0, rects: rects.collect() };
        let solution = problem.solve(Effort::Much);
        valid(&problem, &solution);
        assert!(solution.optimal, "round {round}");
        assert_eq!(solution.extent, brute_force(&problem, solution.extent + align), "round {round}: {problem:?}");
    }
}

#[test]
fn obstacles_and_sizes_that_are_no_multiple_are_kept_clear_of() {
    let mut r = Random(99);
    for _ in 0..40 {
        let n = r.within(13, 60);
        let rects = (0..n).map(|k| {
            let start = r.within(0, 40) as u32;
            let fixed = (k % 7 == 0).then(|| r.within(0, 5000));
            Rect { start, end: start + r.within(0, 15) as u32, size: r.within(0, 900), fixed }
        });
        let rects = rects.collect();
        let problem = Problem { align: ALIGN, free: r.within(0, 2) * 640, rects };
        for effort in [Effort::Little, Effort::Much] {
            valid(&problem, &problem.solve(effort));
        }
    }
}

#[test]
fn empty_and_monstrous_problems_have_a_packing() {
    let none = Problem { align: 0, free: 0, rects: Vec::new() };
    assert_eq!(none.solve(Effort::Much), Solution { offsets: Vec::new(), extent: 0, bound: 0, optimal: true });
    let rect = |size, fixed| Rect { start: 0, end: u32::MAX, size, fixed };
    let huge = Problem {
        align: 32,
        free: 0,
        rects: vec![rect(u64::MAX, None), rect(u64::MAX, None), rect(1, Some(u64::MAX))],
    };
    assert_eq!(huge.solve(Effort::Much).offsets.len(), 3);
}

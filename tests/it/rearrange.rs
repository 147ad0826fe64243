//! `std::rearrange` and the blocks that the algebra cuts, against naive loops over coordinates: byte for byte, places
//! between elements untouched, on the interpreter and in machine code.

use crate::engine::{Built, Content, Noise, build, noise};
use ptoc_tensor::{DType, Tensor};

const DTYPES: [DType; 6] = [DType::U8, DType::F16, DType::BF16, DType::F32, DType::I32, DType::I64];

fn library() -> &'static str {
    ptoc_stdlib::module(&["rearrange"]).expect("a module of the library").1
}

/// One side: strides by mode, each mode perhaps in two parts. (extent, stride), the first part fastest.
#[derive(Clone, Debug)]
struct Side(Vec<Vec<(usize, usize)>>);

impl Side {
    /// As the language writes it.
    fn text(&self) -> String {
        let part = |f: fn(&(usize, usize)) -> usize| {
            let modes: Vec<String> = self
                .0
                .iter()
                .map(|m| match &m[..] {
                    [one] => f(one).to_string(),
                    parts => format!("({})", parts.iter().map(|p| f(p).to_string()).collect::<Vec<_>>().join(", ")),
                })
                .collect();
            match &modes[..] {
                [one] if !one.starts_with('(') => one.clone(),
                [one] => format!("({one},)"),
                _ => format!("({})", modes.join(", ")),
            }
        };
        format!("{} : {}", part(|p| p.0), part(|p| p.1))
    }

    fn extents(&self) -> Vec<usize> {
        self.0.iter().map(|m| m.iter().map(|p| p.0).product()).collect()
    }

    /// Where an element is.
    fn place(&self, at: &[usize]) -> usize {
        let mode = |(m, &i): (&Vec<(usize, usize)>, &usize)| {
            let mut rest = i;
            m.iter().map(|&(n, d)| (rest % n * d, rest /= n).0).sum::<usize>()
        };
        self.0.iter().zip(at).map(mode).sum()
    }

    fn len(&self) -> usize {
        let last: Vec<usize> = self.extents().iter().map(|n| n.saturating_sub(1)).collect();
        if self.extents().contains(&0) { 0 } else { self.place(&last) + 1 }
    }
}

/// Every coordinate of a shape.
fn coordinates(shape: &[usize]) -> Vec<Vec<usize>> {
    let mut out = vec![Vec::new()];
    for &n in shape {
        out = out.iter().flat_map(|c| (0..n).map(|i| [&c[..], &[i]].concat())).collect();
    }
    out
}

/// The extents in a random order of memory with gaps between some.
fn random_side(rng: &mut Noise, extents: &[usize], source: bool) -> Side {
    let mut parts: Vec<Vec<(usize, usize)>> = Vec::new();
    for &n in extents {
        let inner = [2, 3].into_iter().find(|d| n > *d && n % d == 0).filter(|_| rng.below(4) == 0);
        parts.push(inner.map_or(vec![(n, 0)], |d| vec![(d, 0), (n / d, 0)]));
    }
    let mut order: Vec<(usize, usize)> =
        parts.iter().enumerate().flat_map(|(m, p)| (0..p.len()).map(move |k| (m, k))).collect();
    for k in (1..order.len()).rev() {
        order.swap(k, rng.below(k as u64 + 1) as usize);
    }
    let mut step = 1 + rng.below(8) as usize / 7;
    for (m, k) in order {
        if source && rng.below(12) == 0 {
            continue;
        }
        parts[m][k].1 = step;
        step *= parts[m][k].0.max(1) + rng.below(6) as usize / 5;
    }
    Side(parts)
}

/// A few thousand elements at most.
fn random_extents(rng: &mut Noise, rank: usize, lengths: &[usize]) -> Vec<usize> {
    let mut extents: Vec<usize> = Vec::new();
    for _ in 0..rank {
        let room = (4000 / extents.iter().product::<usize>().max(1)).max(1);
        let fits: Vec<usize> = lengths.iter().copied().filter(|n| *n <= room).collect();
        extents.push(fits[rng.below(fits.len() as u64) as usize]);
    }
    extents
}

/// What naive loops make of `dst`.
fn naive(src: (&Side, &Tensor), dst: (&Side, &Tensor)) -> Vec<u8> {
    let width = src.1.dtype().size();
    let mut want = dst.1.bytes().to_vec();
    for at in coordinates(&src.0.extents()) {
        let (from, to) = (src.0.place(&at) * width, dst.0.place(&at) * width);
        want[to..to + width].copy_from_slice(&src.1.bytes()[from..from + width]);
    }
    want
}

#[track_caller]
fn hold(built: &Built, dims: &[(&str, i64)], tensors: &[Tensor], want: &[u8], what: &str) {
    let interpreted = built.interpret(dims, tensors).unwrap_or_else(|e| panic!("{what}: {e:?}"));
    assert_eq!(interpreted[1].bytes(), want, "{what}: interp");
    for threads in [1, 2] {
        let got = built.execute(dims, tensors, threads).unwrap_or_else(|e| panic!("{what}: {e:?}"));
        assert_eq!(got[1].bytes(), want, "{what}: cpu, {threads} threads");
    }
}

fn rearranged(src: &Side, dst: &Side, dtype: DType, seed: u64) {
    let what = format!("{dtype} {} to {}", src.text(), dst.text());
    let (s, d) = (src.text(), dst.text());
    let defs = [("T", dtype.name()), ("SRC", s.as_str()), ("DST", d.as_str())];
    let built = build(library(), "a2a3", &defs, &[]).unwrap_or_else(|e| panic!("{what}: {e:?}"));
    let tensors =
        [noise(dtype, &[src.len()], Content::Wild, seed), noise(dtype, &[dst.len()], Content::Wild, seed + 1)];
    let want = naive((src, &tensors[0]), (dst, &tensors[1]));
    hold(&built, &[], &tensors, &want, &what);
}

/// Ranks 0 to 8, primes, lengths of 0 and 1, gaps, repeated sources, parts of modes.
#[test]
fn strides_of_any_rank() {
    let mut rng = Noise::new(11);
    let lengths = [1, 2, 3, 4, 5, 6, 7, 11, 13, 16, 31, 64, 97];
    for case in 0..108 {
        let rank = case % 9;
        let mut extents = random_extents(&mut rng, rank, &lengths);
        if rng.below(12) == 0 && rank > 0 {
            extents[rng.below(rank as u64) as usize] = 0;
        }
        let (src, dst) = (random_side(&mut rng, &extents, true), random_side(&mut rng, &extents, false));
        rearranged(&src, &dst, DTYPES[rng.below(6) as usize], case as u64);
    }
}

fn plain(extents: &[usize], strides: &[usize]) -> Side {
    Side(extents.iter().zip(strides).map(|(&n, &d)| vec![(n, d)]).collect())
}

/// The strides of C order.
fn row_major(extents: &[usize]) -> Side {
    let mut strides = vec![1; extents.len()];
    (0..extents.len().saturating_sub(1)).rev().for_each(|k| strides[k] = strides[k + 1] * extents[k + 1]);
    plain(extents, &strides)
}

/// More elements than a block has, with lengths that no block divides: both sides cut.
#[test]
fn many_blocks() {
    rearranged(&row_major(&[401, 203]), &plain(&[401, 203], &[1, 401]), DType::F16, 1);
    rearranged(&row_major(&[2, 67, 13, 37]), &plain(&[2, 67, 13, 37], &[67 * 481, 1, 67 * 37, 67]), DType::F32, 2);
    rearranged(&row_major(&[65537]), &plain(&[65537], &[1]), DType::U8, 3);
    rearranged(&row_major(&[257, 131]), &plain(&[257, 131], &[133, 1]), DType::I64, 4);
}

/// Permutations of row-major arrays whose extents are known at the launch only, through `blocks` in a kernel.
#[test]
fn symbolic_permutations() {
    let mut rng = Noise::new(5);
    for case in 0..24 {
        let rank = 1 + case % 6;
        let mut order: Vec<usize> = (0..rank).collect();
        for k in (1..rank).rev() {
            order.swap(k, rng.below(k as u64 + 1) as usize);
        }
        let name = |k: &usize| format!("N{k}");
        let names: Vec<String> = (0..rank).map(|k| name(&k)).collect();
        let permuted: Vec<String> = order.iter().map(name).collect();
        // Mode k of x is mode `where k stands in order` of y.
        let back: Vec<String> =
            (0..rank).map(|k| order.iter().position(|o| *o == k).expect("a permutation").to_string()).collect();
        let text = format!(
            "use std::rearrange::blocks;\n\
             kernel permute(x: in f16[{}], y: out f16[{}]) {{\n\
                 let (d, s) = blocks(modes(y, ({},)), x, {});\n\
                 grid (b in 0..size<1>(d));\n\
                 copy(d[_, b], s[_, b]);\n\
             }}\n",
            names.join(", "),
            permuted.join(", "),
            back.join(", "),
            // The interpreter visits what a block could have, also where a tensor is smaller.
            [16, 64, 256][case % 3],
        );
        let built = build(&text, "a2a3", &[], &[]).unwrap_or_else(|e| panic!("{text}{e:?}"));
        for round in 0..3 {
            let extents = random_extents(&mut rng, rank, &[0, 1, 2, 3, 5, 8, 17]);
            let dims: Vec<(&str, i64)> =
                names.iter().map(String::as_str).zip(extents.iter().map(|&n| n as i64)).collect();
            let shape: Vec<usize> = order.iter().map(|&k| extents[k]).collect();
            let x = noise(DType::F16, &extents, Content::Wild, round);
            let y = noise(DType::F16, &shape, Content::Wild, round + 1);
            let Side(out) = row_major(&shape);
            let dst = Side((0..rank).map(|k| out[order.iter().position(|o| *o == k).unwrap()].clone()).collect());
            let want = naive((&row_major(&extents), &x), (&dst, &y));
            hold(&built, &dims, &[x, y], &want, &format!("{text}{dims:?}"));
        }
    }
}

/// A view of every other row and every third column, and its opposite, as layouts of one mode in two parts.
#[test]
fn strided_views() {
    let text = "use std::rearrange::blocks;\n\
                kernel every(x: in u8[96, 90], y: out u8[48, 30]) {\n\
                    let (d, s) = blocks(y, composition(x, <48:2, 30:3>));\n\
                    grid (b in 0..size<1>(d));\n\
                    copy(d[_, b], s[_, b]);\n\
                }\n";
    let built = build(text, "a2a3", &[], &[]).unwrap_or_else(|e| panic!("{e:?}"));
    let x = noise(DType::U8, &[96, 90], Content::Wild, 1);
    let y = noise(DType::U8, &[48, 30], Content::Wild, 2);
    let want = naive((&plain(&[48, 30], &[180, 3]), &x), (&row_major(&[48, 30]), &y));
    hold(&built, &[], &[x, y], &want, text);
}

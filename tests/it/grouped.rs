//! Blocks of modes of several axes, at random, which the ends of the axes cut or do not: loaded, stored and copied, on
//! all backends, against indices counted one by one.
//!
//! The full budget is 300 kernels.

use crate::engine::{Noise, agree, build};
use ptoc_tensor::{DType, Tensor};

/// Modes of an array as two groups: rows and columns of what is moved.
#[derive(Clone)]
struct Grouping {
    shape: Vec<usize>,
    /// The modes of each group, the fastest first.
    groups: [Vec<usize>; 2],
}

impl Grouping {
    fn draw(rng: &mut Noise) -> Grouping {
        let rank = 2 + rng.below(3) as usize;
        let shape: Vec<usize> = (0..rank).map(|_| 1 + rng.below(7) as usize).collect();
        let mut order: Vec<usize> = (0..rank).collect();
        for i in (1..rank).rev() {
            order.swap(i, rng.below(i as u64 + 1) as usize);
        }
        let rows = 1 + rng.below(rank as u64 - 1) as usize;
        let cols = order.split_off(rows);
        Grouping { shape, groups: [order, cols] }
    }

    fn extent(&self, group: usize) -> usize {
        self.groups[group].iter().map(|&m| self.shape[m]).product()
    }

    /// `modes(x, ((2, 0), 1))`
    fn view(&self, of: &str) -> String {
        let entry = |group: &Vec<usize>| {
            let list = group.iter().map(usize::to_string).collect::<Vec<_>>().join(", ");
            if group.len() > 1 { format!("({list})") } else { list }
        };
        format!("modes({of}, ({}, {}))", entry(&self.groups[0]), entry(&self.groups[1]))
    }

    /// The number of the element in C order.
    fn element(&self, at: [usize; 2]) -> usize {
        let mut index = vec![0; self.shape.len()];
        for (group, mut rest) in self.groups.iter().zip(at) {
            for &m in group {
                index[m] = rest % self.shape[m];
                rest /= self.shape[m];
            }
        }
        index.iter().zip(&self.shape).fold(0, |sum, (i, n)| sum * n + i)
    }
}

/// A kernel that moves all of one array to another one, block by block.
struct Moves {
    text: String,
    dims: Vec<(&'static str, i64)>,
    from: Grouping,
    to: Grouping,
}

fn draw(seed: u64) -> Moves {
    let mut rng = Noise::new(seed);
    let grouped = Grouping::draw(&mut rng);
    let (height, width) = (grouped.extent(0), grouped.extent(1));
    let plain = Grouping { shape: vec![height, width], groups: [vec![0], vec![1]] };
    // The slowest axis of rows may be the launch's to say: its end cuts no block.
    let slowest = grouped.groups[0].last().copied().filter(|_| rng.below(2) == 0);
    let dims = slowest.map(|m| ("S", grouped.shape[m] as i64)).into_iter().collect();
    let rows = match slowest {
        Some(m) => format!("{} * S", height / grouped.shape[m]),
        None => height.to_string(),
    };
    let dense = format!("{rows}, {width}");
    let extent = |(m, n): (usize, &usize)| if Some(m) == slowest { "S".to_owned() } else { n.to_string() };
    let own = grouped.shape.iter().enumerate().map(extent).collect::<Vec<_>>().join(", ");
    let (from, to, shapes) = match rng.below(3) {
        0 => (grouped.clone(), grouped, [own.clone(), own]),
        1 => (grouped, plain, [own, dense]),
        _ => (plain, grouped, [dense, own]),
    };
    let mut block = || 1 + rng.below(9);
    let blocks = format!("i in tiles({rows}, {}), j in tiles({width}, {})", block(), block());
    let (a, b) = ("a.tile(i, j)", "b.tile(i, j)");
    let body = match rng.below(5) {
        0 => format!("TSTORE({b}, Vec({a}));"),
        1 => format!("copy({b}, {a});"),
        2 => format!("let t = tile Vec<f32, i, j>; TLOAD(t, {a}); TSTORE({b}, t);"),
        3 => format!("let t = tile Vec<f32, i, j>; copy(t, {a}); copy({b}, t);"),
        _ => format!("let t = Vec({a}) * 2.0; TSTORE({b}, t * 0.5);"),
    };
    let (views, [x, y]) = ([from.view("x"), to.view("y")], shapes);
    let text = format!(
        "kernel k(x: in f32[{x}], y: inout f32[{y}]) {{
    grid ({blocks});
    let a = {};
    let b = {};
    {body}
}}
",
        views[0], views[1],
    );
    Moves { text, dims, from, to }
}

/// Whether it ran. A TLOAD or TSTORE that would have to transpose is refused.
fn case(seed: u64) -> Result<bool, String> {
    let Moves { text, dims, from, to } = draw(seed);
    let built = match build(&text, "a2a3", &[], &dims) {
        Ok(built) => built,
        Err(refused) if refused.codes.iter().all(|c| *c == "E0223") => return Ok(false),
        Err(refused) => return Err(format!("{text}{refused:?}")),
    };
    let array = |shape: &[usize], values: &[f32]| {
        let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        Tensor::from_bytes(DType::F32, shape, &bytes).map_err(|e| e.to_string())
    };
    let count = from.extent(0) * from.extent(1);
    let values: Vec<f32> = (0..count).map(|i| i as f32).collect();
    let mut want = vec![-1.0; count];
    for (i, j) in (0..from.extent(0)).flat_map(|i| (0..from.extent(1)).map(move |j| (i, j))) {
        want[to.element([i, j])] = values[from.element([i, j])];
    }
    let tensors = [array(&from.shape, &values)?, array(&to.shape, &vec![-1.0; count])?];
    let told = |why: String| format!("{why}\n{text}with {dims:?}, x of {:?}", from.shape);
    let got = match agree(&built, &dims, &tensors, &[1, 2]).map_err(told)? {
        Ok(got) => got,
        Err((code, message)) => return Err(told(format!("stops with {code}: {message}"))),
    };
    if got[1].bytes() != array(&to.shape, &want)?.bytes() {
        return Err(told(format!("wanted {want:?}")));
    }
    if seed.is_multiple_of(4) {
        let ptx = crate::ptx::build(&text, "a2a3", &dims, seed).map_err(told)?;
        ptx.gives(&dims, &tensors, &got, (&format!("grouped_{seed}"), seed)).map_err(told)?;
    }
    Ok(true)
}

#[test]
fn blocks_of_grouped_modes_are_all_of_them() {
    let cases = ptoc_tests_budget::cases(60, 300);
    let (mut ran, mut wrong) = (0, Vec::new());
    for seed in 0..cases {
        match case(seed) {
            Ok(done) => ran += u64::from(done),
            Err(why) => wrong.push(format!("seed {seed}: {why}")),
        }
    }
    assert!(wrong.is_empty(), "{} wrong\n{}", wrong.len(), wrong[..wrong.len().min(3)].join("\n"));
    assert!(ran * 4 > cases * 3, "only {ran} of {cases} kernels were not refused");
}

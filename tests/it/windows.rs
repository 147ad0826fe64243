//! Random views: what a kernel copies through a chain of layout operations, on both backends, against indices counted
//! one by one. Sizes are constants or symbols of the launch, bounds of slices are numbers that the kernel reads, too;
//! tiles need not divide. The chain is one of windows of a tensor, or of parts of a tile, which are read or written; or
//! of windows that a program launches a kernel on.

use crate::engine::{Noise, agree, build, check};
use ptoc_driver::backend::{BackendRef, CPU, INTERP};
use ptoc_driver::launch::{CompiledPlan, RunOptions};
use ptoc_tensor::{DType, Tensor};
use ptoc_tests::programs::runs_of;
use std::path::Path;
use std::rc::Rc;

/// The array's element for these indices, if there is one.
type Source = Rc<dyn Fn(&[usize]) -> Option<usize>>;

/// A view by definition: where the element at these indices (one a mode, counted colexicographically) comes from.
#[derive(Clone)]
struct Model {
    sizes: Vec<usize>,
    /// Some tile was cut short: what regroups its modes sees the whole tile, with elements that do not exist.
    ragged: bool,
    /// Modes were joined. A tile that does not divide the first of them is cut short at its end, and not at the end of
    /// all: such tiles are left out here.
    joined: bool,
    source: Source,
}

impl Model {
    /// A row-major array.
    fn array(sizes: &[usize]) -> Model {
        let shape = sizes.to_vec();
        let source = move |at: &[usize]| {
            let inside = at.iter().zip(&shape).all(|(i, n)| i < n);
            inside.then(|| at.iter().zip(&shape).fold(0, |sum, (i, n)| sum * n + i))
        };
        Model { sizes: sizes.to_vec(), ragged: false, joined: false, source: Rc::new(source) }
    }

    /// New sizes, and how new indices become old ones.
    fn through(&self, sizes: Vec<usize>, old: impl Fn(&[usize]) -> Option<Vec<usize>> + 'static) -> Model {
        let source = self.source.clone();
        Model { sizes, ragged: self.ragged, joined: self.joined, source: Rc::new(move |at| source(&old(at)?)) }
    }
}

/// What the operations are applied to.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd)]
enum Base {
    Tensor,
    /// A tile that is read.
    Read,
    /// A tile that is written from the same part of a tensor.
    Written,
    /// A tile of which a part becomes a tile of its own.
    Taken,
    /// A tile of which a part is updated.
    Doubled,
}

/// Stands for the base in the text of a chain.
const BASE: &str = "@";

struct Chain {
    base: Base,
    rng: Noise,
    model: Model,
    /// The expression so far.
    text: String,
}

impl Chain {
    fn below(&mut self, n: usize) -> usize {
        self.rng.below(n.max(1) as u64) as usize
    }

    fn step(&mut self) {
        let rank = self.model.sizes.len();
        if rank == 0 {
            return;
        }
        let k = self.below(rank);
        let n = self.model.sizes[k];
        let whole = !self.model.ragged;
        match self.below(10) {
            // A row of a tile is a tile.
            0 if rank > 1 && self.base == Base::Tensor => self.fix(k),
            1 => self.reorder(),
            2 if !self.model.joined => self.tile(k),
            3 if whole && !self.model.joined => self.part(k),
            4 if !self.model.joined => self.local_tile(),
            5 if whole && !self.model.joined => self.threads(),
            6 if whole => self.every(k),
            7 if whole => self.nest(k),
            8 if n > 0 && whole && !self.model.joined => self.zip(),
            9 if whole && !self.model.joined && self.base == Base::Tensor => self.slice(k),
            _ => {}
        }
    }

    /// `_` for all modes but `k`.
    fn coordinates(&self, k: usize, here: &str) -> String {
        let mut at = vec!["_"; self.model.sizes.len()];
        at[k] = here;
        at.join(", ")
    }

    fn tiler(&self, k: usize, here: &str) -> String {
        format!("<{}>", self.coordinates(k, here))
    }

    /// `x[_, i]`
    fn fix(&mut self, k: usize) {
        let n = self.model.sizes[k];
        if n == 0 {
            return;
        }
        let i = self.below(n);
        self.text = format!("{}[{}]", self.text, self.coordinates(k, &i.to_string()));
        let mut sizes = self.model.sizes.clone();
        sizes.remove(k);
        self.model = self.model.through(sizes, move |at| {
            let mut at = at.to_vec();
            at.insert(k, i);
            Some(at)
        });
    }

    /// `modes(x, (1, (2, 0)))`
    fn reorder(&mut self) {
        let rank = self.model.sizes.len();
        let mut order: Vec<usize> = (0..rank).collect();
        for i in (1..rank).rev() {
            let j = self.below(i + 1);
            order.swap(i, j);
        }
        let group = if rank > 1 && !self.model.ragged && self.below(2) == 0 { 2 } else { 1 };
        let (tail, head) = (order.split_off(rank - group), order);
        let names = |l: &[usize]| l.iter().map(usize::to_string).collect::<Vec<_>>().join(", ");
        let mut entries: Vec<String> = head.iter().map(usize::to_string).collect();
        entries.push(if group == 2 { format!("({})", names(&tail)) } else { names(&tail) });
        let comma = if entries.len() == 1 { "," } else { "" };
        self.text = format!("modes({}, ({}{comma}))", self.text, entries.join(", "));
        self.model.joined |= group == 2;
        let old = self.model.sizes.clone();
        let mut sizes: Vec<usize> = head.iter().map(|&m| old[m]).collect();
        sizes.push(tail.iter().map(|&m| old[m]).product());
        self.model = self.model.through(sizes, move |at| {
            let mut back = vec![0; old.len()];
            for (&m, &i) in head.iter().zip(at) {
                back[m] = i;
            }
            let mut rest = at[head.len()];
            for (p, &m) in tail.iter().enumerate() {
                back[m] = if p + 1 == tail.len() { rest } else { rest % old[m].max(1) };
                rest /= old[m].max(1);
            }
            Some(back)
        });
    }

    /// One tile of a mode: `logical_divide(x, <t, _>)[(_, r), _]`, the last one ragged.
    fn tile(&mut self, k: usize) {
        let n = self.model.sizes[k];
        let t = 1 + self.below(6);
        let count = n.div_ceil(t);
        if count == 0 {
            return;
        }
        let r = self.below(count);
        let divided = format!("logical_divide({}, {})", self.text, self.tiler(k, &t.to_string()));
        self.text = format!("{divided}[{}]", self.coordinates(k, &format!("(_, {r})")));
        self.model.ragged |= r * t + t > n;
        self.at_mode(k, t.min(n - r * t), move |i| i + r * t);
    }

    /// Index `i` of every tile: `logical_divide(x, <t, _>)[(i, _), _]`
    fn part(&mut self, k: usize) {
        let n = self.model.sizes[k];
        let t = 1 + self.below(4);
        if n == 0 || !n.is_multiple_of(t) {
            return;
        }
        let i = self.below(t);
        let divided = format!("logical_divide({}, {})", self.text, self.tiler(k, &t.to_string()));
        self.text = format!("{divided}[{}]", self.coordinates(k, &format!("({i}, _)")));
        self.at_mode(k, n / t, move |r| i + r * t);
    }

    /// `x[a .. b, _]`
    fn slice(&mut self, k: usize) {
        let n = self.model.sizes[k];
        let first = self.below(n + 1);
        let end = first + self.below(n - first + 1);
        self.text = format!("{}[{}]", self.text, self.coordinates(k, &format!("{first} .. {end}")));
        self.at_mode(k, end - first, move |i| i + first);
    }

    /// The same between two numbers that the kernel reads: `x[index(b[0]) .. index(b[1]), _]`.
    fn late_slice(&mut self) -> Vec<i32> {
        let rank = self.model.sizes.len();
        if rank == 0 || self.model.ragged || self.model.joined || self.base != Base::Tensor || self.below(2) > 0 {
            return Vec::new();
        }
        let k = self.below(rank);
        let n = self.model.sizes[k];
        let first = self.below(n + 1);
        let end = first + self.below(n - first + 1);
        self.text = format!("{}[{}]", self.text, self.coordinates(k, "index(b[0]) .. index(b[1])"));
        self.at_mode(k, end - first, move |i| i + first);
        vec![first as i32, end as i32]
    }

    /// Every d-th index: `composition(x, <n:d, _>)`
    fn every(&mut self, k: usize) {
        let n = self.model.sizes[k];
        let d = 1 + self.below(3);
        let m = n / d;
        if m == 0 {
            return;
        }
        self.text = format!("composition({}, {})", self.text, self.tiler(k, &format!("{m}:{d}")));
        self.at_mode(k, m, move |i| i * d);
    }

    /// A mode counted in another order: `composition(x, <(a, b):(b, 1), _>)`
    fn nest(&mut self, k: usize) {
        let n = self.model.sizes[k];
        let b = 1 + self.below(4);
        if n == 0 || !n.is_multiple_of(b) {
            return;
        }
        let a = n / b;
        self.text = format!("composition({}, {})", self.text, self.tiler(k, &format!("({a}, {b}):({b}, 1)")));
        self.model.joined = true;
        self.at_mode(k, n, move |i| (i % a) * b + i / a);
    }

    fn at_mode(&mut self, k: usize, size: usize, f: impl Fn(usize) -> usize + 'static) {
        let mut sizes = self.model.sizes.clone();
        sizes[k] = size;
        self.model = self.model.through(sizes, move |at| {
            let mut at = at.to_vec();
            at[k] = f(at[k]);
            Some(at)
        });
    }

    fn tiles(&mut self) -> Option<(Vec<usize>, Vec<usize>)> {
        let t: Vec<usize> = self.model.sizes.clone().iter().map(|_| 1 + self.below(5)).collect();
        let counts: Vec<usize> = self.model.sizes.iter().zip(&t).map(|(n, t)| n.div_ceil(*t)).collect();
        if counts.contains(&0) {
            return None;
        }
        let r = counts.iter().map(|&c| self.below(c)).collect();
        Some((t, r))
    }

    /// `local_tile(x, <t, u>, (r, s))`: ragged at the end.
    fn local_tile(&mut self) {
        let Some((t, r)) = self.tiles() else { return };
        self.text = format!("local_tile({}, <{}>, ({},))", self.text, list(&t), list(&r));
        self.model.ragged |= self.model.sizes.iter().zip(t.iter().zip(&r)).any(|(n, (t, r))| r * t + t > *n);
        let sizes = self.model.sizes.iter().zip(t.iter().zip(&r)).map(|(n, (t, r))| (*t).min(n - r * t)).collect();
        self.model = self
            .model
            .through(sizes, move |at| Some(at.iter().zip(t.iter().zip(&r)).map(|(i, (t, r))| i + r * t).collect()));
    }

    /// Two modes of one divided at once, the tile fixed: `zipped_divide(x, <t, u>)[_, (r, s)]` is one mode.
    fn zip(&mut self) {
        let Some((t, r)) = self.tiles() else { return };
        if self.model.sizes.len() < 2 || self.model.sizes.iter().zip(&t).any(|(n, t)| n % t != 0) {
            return;
        }
        self.text = format!("zipped_divide({}, <{}>)[_, ({})]", self.text, list(&t), list(&r));
        self.model.joined = true;
        self.model = self.model.through(vec![t.iter().product()], move |at| {
            let mut rest = at[0];
            let back = t.iter().zip(&r).map(|(t, r)| {
                let i = rest % t;
                rest /= t;
                i + r * t
            });
            Some(back.collect())
        });
    }

    /// What one of several threads holds: `local_partition(x, (2, 3):(1, 2), t)`
    fn threads(&mut self) {
        let p: Vec<usize> = self.model.sizes.clone().iter().map(|_| 1 + self.below(3)).collect();
        if self.model.sizes.iter().zip(&p).any(|(n, p)| *n == 0 || n % p != 0) {
            return;
        }
        let count: usize = p.iter().product();
        let thread = self.below(count);
        let mut stride = 1;
        let mut strides = Vec::new();
        for n in &p {
            strides.push(stride);
            stride *= n;
        }
        self.text = format!("local_partition({}, ({},):({},), {thread})", self.text, list(&p), list(&strides));
        let sizes = self.model.sizes.iter().zip(&p).map(|(n, p)| n / p).collect();
        self.model = self.model.through(sizes, move |at| {
            let own = strides.iter().zip(&p).map(|(d, p)| thread / d % p);
            Some(at.iter().zip(p.iter().zip(own)).map(|(i, (p, own))| i * p + own).collect())
        });
    }
}

fn list(l: &[usize]) -> String {
    l.iter().map(usize::to_string).collect::<Vec<_>>().join(", ")
}

/// One random kernel. Refusals are legal (no loop walks it, a tile ends inside a mode); what runs must be right.
fn case(seed: u64) -> Result<bool, String> {
    let mut rng = Noise::new(seed);
    let base = [Base::Tensor, Base::Read, Base::Written, Base::Taken, Base::Doubled][rng.below(5) as usize];
    let of_tile = base != Base::Tensor;
    let rank = if of_tile { 2 } else { 1 + rng.below(3) as usize };
    let shape: Vec<usize> = (0..rank).map(|_| (rng.below(13) as usize).max(usize::from(of_tile))).collect();
    let symbolic = rng.below(2) == 0 && !of_tile;
    let steps = 1 + rng.below(4);
    let mut chain = Chain { base, rng, model: Model::array(&shape), text: BASE.into() };
    for _ in 0..steps {
        chain.step();
    }
    let bounds = chain.late_slice();
    let names = ["A", "B", "C"];
    let extents: Vec<String> =
        shape.iter().zip(names).map(|(n, s)| if symbolic { s.to_string() } else { n.to_string() }).collect();
    let model = chain.model;
    if model.sizes.is_empty() {
        return Ok(false);
    }
    let of = |base: &str| chain.text.replace(BASE, base);
    let (body, sizes) = match base {
        Base::Tensor => (format!("let v = {};\n    copy(y, v);", of("x")), model.sizes.clone()),
        Base::Read => (format!("let t = Vec(x);\n    let v = {};\n    copy(y, v);", of("t")), model.sizes.clone()),
        Base::Written => {
            (format!("let t = Vec(y);\n    copy({}, {});\n    copy(y, t);", of("t"), of("x")), shape.clone())
        }
        Base::Taken => {
            let body = format!("let t = Vec(x);\n    let u = Vec({});\n    t = 0.0;\n    TSTORE(y, u);", of("t"));
            (body, model.sizes.clone())
        }
        Base::Doubled => {
            (format!("let t = Vec(x);\n    let p = {};\n    p += p;\n    copy(y, t);", of("t")), shape.clone())
        }
    };
    // A tile has two modes, and all of it is no part.
    if base == Base::Taken && chain.text == BASE || base >= Base::Taken && model.sizes.len() > 2 {
        return Ok(false);
    }
    let (from, to) = (extents.join(", "), list(&sizes));
    let table = if bounds.is_empty() { "" } else { ", b: in i32[2]" };
    let text = format!("kernel k(x: in f32[{from}], y: inout f32[{to}]{table}) {{\n    {body}\n}}\n");
    let dims: Vec<(&str, i64)> =
        if symbolic { names.into_iter().zip(shape.iter().map(|&n| n as i64)).collect() } else { Vec::new() };
    let built = match build(&text, "a2a3", &[], &dims) {
        Ok(built) => built,
        Err(refused) => {
            let legal = |c: &&str| ["E1001", "E1002", "E1014", "E1052", "E0218"].contains(c) || c.starts_with("PA-1");
            return match refused.codes.iter().all(legal) {
                true => Ok(false),
                false => Err(format!("{text}{refused:?}")),
            };
        }
    };
    let values: Vec<f32> = (0..shape.iter().product()).map(|i: usize| i as f32).collect();
    let x = Tensor::from_bytes(DType::F32, &shape, &bytes(&values)).map_err(|e| e.to_string())?;
    let mut want = match base {
        Base::Doubled => values.clone(),
        _ => vec![-1.0f32; sizes.iter().product()],
    };
    let y = Tensor::from_bytes(DType::F32, &sizes, &bytes(&want)).map_err(|e| e.to_string())?;
    for flat in 0..model.sizes.iter().product() {
        // Row-major, as arrays are.
        let at = unravel(flat, &model.sizes);
        let from = (model.source)(&at).ok_or_else(|| format!("the model leaves the array\n{text}"))?;
        match base {
            Base::Written => want[from] = values[from],
            Base::Doubled => want[from] = 2.0 * values[from],
            _ => want[flat] = values[from],
        }
    }
    let mut tensors = vec![x, y];
    if !bounds.is_empty() {
        let bytes: Vec<u8> = bounds.iter().flat_map(|n| n.to_le_bytes()).collect();
        tensors.push(Tensor::from_bytes(DType::I32, &[2], &bytes).map_err(|e| e.to_string())?);
    }
    let got = match agree(&built, &dims, &tensors, &[1])? {
        Ok(got) => got,
        Err((code, message)) => return Err(format!("{text}stops with {code}: {message} for {shape:?}")),
    };
    match got[1].bytes() == bytes(&want) {
        true => Ok(true),
        false => Err(format!("{text}with x of {shape:?}: wanted {want:?}")),
    }
}

/// What a launch may not take.
const NO_ARGUMENT: [&str; 5] = ["E0511", "E1001", "E1002", "E1014", "E1052"];

/// A program that launches a copy from a random window, or to one.
fn launched(seed: u64) -> Result<bool, String> {
    let mut rng = Noise::new(seed);
    let rank = 1 + rng.below(3) as usize;
    let shape: Vec<usize> = (0..rank).map(|_| rng.below(9) as usize).collect();
    let (steps, written) = (1 + rng.below(4), rng.below(2) == 0);
    let mut chain = Chain { base: Base::Tensor, rng, model: Model::array(&shape), text: BASE.into() };
    for _ in 0..steps {
        chain.step();
    }
    let bounds = chain.late_slice();
    let model = chain.model;
    if model.sizes.is_empty() || bounds.is_empty() && chain.text == BASE {
        return Ok(false);
    }
    let names = &["A", "B", "C", "D", "E", "F"][..model.sizes.len()];
    let (x, y) = if written { (&model.sizes, &shape) } else { (&shape, &model.sizes) };
    let launch = match written {
        true => format!("move(x, {})", chain.text.replace(BASE, "y")),
        false => format!("move({}, y)", chain.text.replace(BASE, "x")),
    };
    let table = if bounds.is_empty() { "" } else { ", b: in i32[2]" };
    let text = format!(
        "// run: p interp seed=1
kernel move(x: in f32[{0}], y: out f32[{0}]) {{ copy(y, x); }}

program p(x: in f32[{1}], y: inout f32[{2}]{table}) {{ {launch}; }}
",
        names.join(", "),
        list(x),
        list(y)
    );
    let refused = check(&text, "a2a3", &[]);
    if !refused.codes.is_empty() {
        let legal = |c: &&str| NO_ARGUMENT.contains(c) || c.starts_with("PA-1");
        return match refused.codes.iter().all(legal) {
            true => Ok(false),
            false => Err(format!("{text}{refused:?}")),
        };
    }
    let values = |sizes: &[usize], first: i64| -> Vec<f32> {
        (0..sizes.iter().product::<usize>()).map(|i| (first + i as i64) as f32).collect()
    };
    let (from, mut want) = (values(x, 0), values(y, -1000));
    let before = [Tensor::from_bytes(DType::F32, x, &bytes(&from)), Tensor::from_bytes(DType::F32, y, &bytes(&want))];
    for flat in 0..model.sizes.iter().product() {
        let at = unravel(flat, &model.sizes);
        let place = (model.source)(&at).ok_or_else(|| format!("the model leaves the array\n{text}"))?;
        match written {
            true => want[place] = from[flat],
            false => want[flat] = from[place],
        }
    }
    let mut runs = runs_of(Path::new("windows.tile"), &text);
    let [run] = &mut runs[..] else { return Err(format!("cannot be run:\n{text}")) };
    for backend in [INTERP, CPU] as [BackendRef; 2] {
        let compiled = CompiledPlan::new(&mut run.session, &run.plan, backend).map_err(|_| format!("fails\n{text}"))?;
        let mut tensors: Vec<Tensor> = before.iter().map(|t| t.as_ref().expect("small").clone()).collect();
        if !bounds.is_empty() {
            let bytes: Vec<u8> = bounds.iter().flat_map(|n| n.to_le_bytes()).collect();
            tensors.push(Tensor::from_bytes(DType::I32, &[2], &bytes).map_err(|e| e.to_string())?);
        }
        let options = RunOptions { threads: 1, ..RunOptions::default() };
        let ran = compiled.run(&mut run.session, &mut tensors, &options, &mut |_| {}, None);
        if ran.is_err() || tensors[1].bytes() != bytes(&want) {
            return Err(format!("{text}{}: {bounds:?}, x of {x:?}: wanted {want:?}", backend.name()));
        }
    }
    Ok(true)
}

/// The indices of an element, in row-major order.
fn unravel(flat: usize, sizes: &[usize]) -> Vec<usize> {
    let mut at = vec![0; sizes.len()];
    let mut rest = flat;
    for (i, n) in at.iter_mut().zip(sizes).rev() {
        *i = rest % n;
        rest /= n;
    }
    at
}

fn bytes(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_le_bytes()).collect()
}

#[test]
fn views_are_what_their_operations_say() {
    hold(case, 130, 400);
}

#[test]
fn launches_take_the_windows_that_they_are_given() {
    hold(launched, 120, 400);
}

/// No random case is wrong, and half of them are not refused.
fn hold(case: fn(u64) -> Result<bool, String>, usual: u64, full: u64) {
    let (mut ran, mut wrong) = (0, Vec::new());
    let cases = ptoc_tests_budget::cases(usual, full);
    for seed in 0..cases {
        match case(seed) {
            Ok(true) => ran += 1,
            Ok(false) => {}
            Err(e) => wrong.push(format!("seed {seed}:\n{e}")),
        }
    }
    assert!(wrong.is_empty(), "{} wrong\n{}", wrong.len(), wrong[..wrong.len().min(3)].join("\n"));
    assert!(ran * 2 > cases, "only {ran} of {cases} cases were not refused");
}

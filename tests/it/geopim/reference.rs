//! Every GeoPIM kernel and program that has a test line, against sums in f64.
//!
//! The reference knows nothing of tiles, bursts and the unit's order of operations: a sample is the map's four pixels
//! around a place, weighted by nearness, times attention. It is compared in two ways.
//!
//! **The unit's places.** Coordinates are f16 by definition (spec/numerics.md), so the first comparison takes them
//! rounded as the unit rounds them, and the rest exact. With u = 2^-11, the unit roundoff of f16, and M = |f_n| of
//! neighbour n with share w_n:
//!
//! * `x - floor x` is exact for x >= 0 and rounded to 2^-12 at worst below 0, and `1 - way` as well: each factor of a
//!   share is off by at most u, their product is rounded once, so a share by at most (2 + w_n) u.
//! * Folded: attention times share is rounded once, u w_n; the product with the pixel is exact in f32.
//!   Unfolded: each product of share and pixel is rounded once, u w_n M, and three sums of at most sum(w_n M) are, too.
//! * Where numbers are subnormal the rounding is 2^-25 and not relative; every sample has at most four such products.
//! * Sums in f32 of n terms are off by n 2^-24 of the sum of magnitudes, n = 4 S folded, 2 S unfolded.
//! * The result is rounded to f16 once: u of itself, or 2^-25.
//! * Attention that the host computes is a softmax in f32, off by 2^-14 of itself at most (logits off by 15 * 16 *
//!   2^-24 from a sum of 16 products below 1, exp by 1.05 ulp, a sum of 512 terms), then rounded to f16: u of itself,
//!   or 2^-25.
//!
//! Terms in u^2 are covered by a factor of 1 + 2^-7.
//!
//! **Places in f64.** A bilinear map is continuous, and between neighbours it changes by at most their difference. So a
//! place that is off by e moves the sample by at most e times the largest difference of neighbours along that axis.
//! Each of the three operations on a coordinate rounds by u of its result.

use super::{Ran, program, run};
use ptoc_diagnostics::FileId;
use ptoc_syntax::directive::Directive;
use ptoc_tensor::{DType, Tensor, scalar};
use ptoc_tests::programs::Given;

/// Unit roundoff of f16, and half its smallest number.
const U: f64 = 1.0 / 2048.0;
const TINY: f64 = 1.0 / 33_554_432.0;
/// Unit roundoff of f32.
const U32: f64 = 1.0 / 16_777_216.0;

fn rounded(x: f64) -> f64 {
    scalar::bits_to_f64(DType::F16, scalar::bits_from_f64(DType::F16, x))
}

/// What is computed.
struct Case {
    /// Batch items, queries, samples, height, width, channels.
    sizes: [usize; 6],
    /// Channels last.
    map: Vec<f64>,
    lines: Vec<f64>,
    attention: Vec<f64>,
    /// How far off attention is: a share of itself.
    attention_error: f64,
    offsets: Option<Vec<f64>>,
    fold: bool,
    zero: bool,
}

/// A mistake that the comparison has to find.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Mistake {
    None,
    /// Lines' x and y change places.
    Axes,
    /// The weights are those of the next sample.
    Attention,
    /// The other rule for what is outside.
    Border,
    /// The second channel is the first.
    Channel,
}

/// What a result is and how far off it may be.
#[derive(Clone, Copy)]
struct Wanted {
    value: f64,
    off: f64,
}

/// The pixels around a place and their shares.
fn around(x: f64, y: f64) -> [(f64, f64, f64); 4] {
    let (x0, y0) = (x.floor(), y.floor());
    let (a, b) = (x - x0, y - y0);
    [
        (x0, y0, (1.0 - a) * (1.0 - b)),
        (x0 + 1.0, y0, a * (1.0 - b)),
        (x0, y0 + 1.0, (1.0 - a) * b),
        (x0 + 1.0, y0 + 1.0, a * b),
    ]
}

impl Case {
    /// Element of the map, by the border's rule.
    fn pixel(&self, zero: bool, item: usize, x: f64, y: f64, c: usize) -> f64 {
        let [_, _, _, h, w, channels] = self.sizes;
        let inside = x >= 0.0 && y >= 0.0 && x < w as f64 && y < h as f64;
        if zero && !inside {
            return 0.0;
        }
        let (x, y) = (x.clamp(0.0, w as f64 - 1.0) as usize, y.clamp(0.0, h as f64 - 1.0) as usize);
        self.map[((item * h + y) * w + x) * channels + c]
    }

    /// The largest difference of neighbours along x and along y.
    fn steepest(&self, item: usize) -> [f64; 2] {
        let [_, _, _, h, w, channels] = self.sizes;
        let mut most = [0.0f64; 2];
        for y in -1..=h as i64 {
            for x in -1..=w as i64 {
                let at = |x: i64, y: i64, c| self.pixel(self.zero, item, x as f64, y as f64, c);
                for c in 0..channels {
                    most[0] = most[0].max((at(x + 1, y, c) - at(x, y, c)).abs());
                    most[1] = most[1].max((at(x, y + 1, c) - at(x, y, c)).abs());
                }
            }
        }
        most
    }

    /// All results. `exact`: places in f64, too.
    fn results(&self, exact: bool, mistake: Mistake) -> Vec<Wanted> {
        let [items, queries, samples, _, _, channels] = self.sizes;
        let zero = self.zero ^ (mistake == Mistake::Border);
        let mut out = Vec::new();
        for item in 0..items {
            let steepest = if exact { self.steepest(item) } else { [0.0; 2] };
            for q in 0..queries {
                let at = item * queries + q;
                let mut sums = vec![Wanted { value: 0.0, off: 0.0 }; channels];
                let mut sizes = vec![0.0; channels];
                for s in 0..samples {
                    let next = if mistake == Mistake::Attention { (s + 1) % samples } else { s };
                    let a = self.attention[at * samples + next];
                    let a_off = self.attention_error * a.abs() + if self.attention_error > 0.0 { TINY } else { 0.0 };
                    let mut place = [0.0; 2];
                    let mut moved = [0.0; 2];
                    for (axis, place) in place.iter_mut().enumerate() {
                        let axis = if mistake == Mistake::Axes { 1 - axis } else { axis };
                        let (first, step) = (self.lines[4 * at + axis], self.lines[4 * at + 2 + axis]);
                        let offset = self.offsets.as_ref().map(|o| o[2 * (at * samples + s) + axis]);
                        let round = |x: f64| if exact { x } else { rounded(x) };
                        let way = round(s as f64 * step);
                        let on_line = round(first + way);
                        *place = offset.map_or(on_line, |o| round(on_line + o));
                        if exact {
                            let of_sum = if offset.is_some() { place.abs() + TINY } else { 0.0 };
                            moved[axis] = U * (way.abs() + on_line.abs() + of_sum) + 2.0 * TINY;
                        }
                    }
                    let near = around(place[0], place[1]);
                    for c in 0..channels {
                        let from = if mistake == Mistake::Channel && c == 1 { 0 } else { c };
                        let mut value = 0.0;
                        let mut size = 0.0;
                        let mut off = moved[0] * steepest[0] + moved[1] * steepest[1];
                        for (x, y, w) in near {
                            let f = self.pixel(zero, item, x, y, from);
                            value += w * f;
                            size += w * f.abs();
                            let steps = if self.fold { w } else { 4.0 * w };
                            off += (2.0 + w + steps) * U * f.abs() + TINY * f.abs().max(1.0);
                        }
                        sums[c].value += a * value;
                        sums[c].off += a.abs() * off + a_off * value.abs() + 4.0 * TINY * size;
                        sizes[c] += a.abs() * size;
                    }
                }
                let terms = if self.fold { 4 } else { 2 } * samples;
                for (sum, size) in sums.iter_mut().zip(sizes) {
                    sum.off = (sum.off + terms as f64 * U32 * size + U * sum.value.abs() + TINY) * (1.0 + 1.0 / 128.0);
                }
                out.append(&mut sums);
            }
        }
        out
    }
}

/// A softmax over each run of `samples` numbers.
fn softmax(logits: &[f64], samples: usize) -> Vec<f64> {
    let mut out = Vec::new();
    for row in logits.chunks(samples) {
        let sum: f64 = row.iter().map(|l| l.exp()).sum();
        out.extend(row.iter().map(|l| l.exp() / sum));
    }
    out
}

impl Case {
    /// What a program was asked, from its inputs: those of the units, or what the host makes them from
    /// (examples/sampling.tile).
    fn of(ran: &Ran, fold: bool, zero: bool) -> Case {
        let numbers = |name: &str| ran.tensors.get(name).map(Tensor::to_f64s);
        let size = |name: &str| ran.sizes.get(name).map(|n| *n as usize);
        let shape = ran.tensors["y"].shape();
        let (items, queries, channels) = (shape[0], shape[1], shape[2]);
        let [h, w] = ["H", "W"].map(|n| size(n).expect("a size"));
        let samples = size("S").unwrap_or(32);
        let map = numbers("feat").unwrap_or_else(|| {
            let first = numbers("fmap").expect("a map");
            let (hw, chw) = (h * w, channels * h * w);
            (0..items * chw).map(|n| first[n / chw * chw + n % channels * hw + n / channels % hw]).collect()
        });
        let lines = numbers("geo").unwrap_or_else(|| {
            let pole = numbers("pole").expect("an epipole");
            let mut lines = Vec::new();
            for at in 0..items * queries {
                let q = at % queries;
                let place = [(q % w) as f64, (q / w) as f64];
                let last = [w as f64 - 1.0, h as f64 - 1.0];
                let end =
                    |axis: usize| rounded(rounded(rounded(pole[at / queries * 2 + axis] + 1.0) * 0.5) * last[axis]);
                let step = |axis: usize| rounded(rounded(end(axis) - place[axis]) / samples as f64);
                lines.extend([place[0], place[1], step(0), step(1)]);
            }
            lines
        });
        let given = numbers("attn");
        let attention_error = if given.is_some() { 0.0 } else { U + 1.0 / 16384.0 };
        let attention = given.or_else(|| numbers("logits").map(|l| softmax(&l, samples))).unwrap_or_else(|| {
            let (keys, query) = (numbers("keys").expect("keys"), numbers("query").expect("queries"));
            let depth = query.len() / (items * queries);
            let mut logits = Vec::new();
            for at in 0..items * queries {
                for s in 0..samples {
                    // The host's rule is in f32: the pixel nearest to a point.
                    let near = |axis: usize, last: usize| {
                        let place = s as f32 * lines[4 * at + 2 + axis] as f32 + lines[4 * at + axis] as f32;
                        (place.round_ties_even() as i64).clamp(0, last as i64) as usize
                    };
                    let key = ((at / queries * h + near(1, h - 1)) * w + near(0, w - 1)) * depth;
                    logits.push((0..depth).map(|d| keys[key + d] * query[at * depth + d]).sum());
                }
            }
            softmax(&logits, samples)
        });
        let sizes = [items, queries, samples, h, w, channels];
        Case { sizes, map, lines, attention, attention_error, offsets: numbers("offs"), fold, zero }
    }

    /// How many results are farther off than they may be, and by how much the worst.
    fn wrong(&self, got: &[f64], exact: bool, mistake: Mistake) -> (usize, f64) {
        let wanted = self.results(exact, mistake);
        assert_eq!(wanted.len(), got.len());
        let shares = got.iter().zip(&wanted).map(|(g, w)| (g - w.value).abs() / w.off);
        shares.fold((0, 0.0), |(n, worst), share| (n + usize::from(share.is_nan() || share > 1.0), worst.max(share)))
    }
}

/// Compares a run with the reference, and the reference's mistakes with the run: those have to be found.
#[track_caller]
fn compare(ran: &Ran, fold: bool, zero: bool, mistakes: &[Mistake], what: &str) {
    let case = Case::of(ran, fold, zero);
    let got = ran.tensors["y"].to_f64s();
    assert!(got.iter().any(|y| *y != 0.0), "{what}: nothing but zeros");
    for exact in [false, true] {
        let (wrong, worst) = case.wrong(&got, exact, Mistake::None);
        assert_eq!(
            wrong,
            0,
            "{what}, exact places {exact}: {wrong} of {} are off, by {worst} of what they may",
            got.len()
        );
    }
    for mistake in mistakes {
        assert_ne!(case.wrong(&got, false, *mistake).0, 0, "{what}: {mistake:?} would not be seen");
    }
}

/// The test lines of the two files that name `pim`.
#[test]
fn every_line_is_near_the_exact_sums() {
    let mut seen = Vec::new();
    for file in ["sampling.tile", "geo_sample.tile"] {
        let text = std::fs::read_to_string(program(file)).expect("a program");
        for directive in ptoc_syntax::parse(FileId(0), &text).directives {
            let Directive::Run(line) = directive else { continue };
            if line.backends.iter().all(|(b, _)| *b != "pim") {
                continue;
            }
            let kernel = line.kernel.name.to_string();
            let definitions: Vec<(String, String)> =
                line.settings.params.iter().map(|p| (p.name.name.to_string(), p.value.to_string())).collect();
            let flag = |name: &str, default: bool| {
                definitions.iter().find(|(n, _)| n == name).map_or(default, |(_, v)| v == "true")
            };
            let seed = line.settings.seed.expect("a seed").0;
            let ran = run(file, &kernel, &definitions, &Given::new(), seed);
            let zero = flag("ZERO", kernel == "transplat");
            compare(
                &ran,
                flag("FOLD", true),
                zero,
                &[Mistake::Axes, Mistake::Channel],
                &format!("{file} {kernel} {definitions:?}"),
            );
            seen.push(kernel);
        }
    }
    for kernel in ["transplat", "pixelsplat", "sample", "moved", "geo_sample"] {
        assert!(seen.iter().any(|s| s == kernel), "{kernel} has a line");
    }
}

/// Random numbers of f16 in a range.
fn numbers(name: &str, shape: &[usize], seed: u64, (low, high): (i128, i128)) -> Tensor {
    ptoc_tensor::random_in(DType::F16, shape, seed, name, Some((low, high))).expect("small")
}

/// Places in the map, on its edges and beyond them, steps of all sizes; both borders, both ways to add,
/// with offsets and without, on sizes that fill neither units nor lanes.
#[test]
fn places_around_the_map() {
    for (n, [items, queries, samples, h, w, channels]) in
        [[1, 7, 9, 4, 6, 16], [2, 5, 20, 8, 8, 32], [1, 3, 33, 5, 8, 64], [2, 2, 12, 6, 16, 128]]
            .into_iter()
            .enumerate()
    {
        for (fold, zero, offsets) in
            [(true, true, true), (true, false, false), (false, true, false), (false, false, true), (true, true, false)]
        {
            let seed = n as u64 + 1;
            let mut arrays = Given::new();
            let mut geo = numbers("geo", &[items, queries, 4], seed, (-1, 1));
            for i in 0..items * queries * 4 {
                let (x, end) = (geo.get_f64(i), [w, h][i % 2] as f64);
                // A place from -2 to one pixel behind the end, or a step.
                let x = if i % 4 < 2 { (x + 1.0) * 0.5 * (end + 3.0) - 2.0 } else { x * 4.0 / samples as f64 };
                geo.set_bits(i, scalar::bits_from_f64(DType::F16, x));
            }
            // Edges: the first pixel, the last one, one beyond, and a step of nothing.
            let edges = [0.0, 0.0, 0.0, 0.0, w as f64 - 1.0, h as f64 - 1.0, 0.0, 0.0, w as f64, h as f64, 0.0, 0.0];
            for (i, x) in edges.into_iter().enumerate().take(4 * (queries - 1)) {
                geo.set_bits(i, scalar::bits_from_f64(DType::F16, x));
            }
            arrays.insert("geo".into(), geo);
            arrays.insert("feat".into(), numbers("feat", &[items, h, w, channels], seed, (-3, 4)));
            arrays.insert("attn".into(), numbers("attn", &[items, queries, samples], seed, (-1, 2)));
            if offsets {
                arrays.insert("offs".into(), numbers("offs", &[items, queries, samples, 2], seed, (-1, 1)));
            }
            let definitions = [
                ("C", channels.to_string()),
                ("QB", "2".into()),
                ("FOLD", fold.to_string()),
                ("ZERO", zero.to_string()),
            ];
            let definitions = definitions.map(|(n, v)| (n.to_owned(), v));
            let kernel = if offsets { "moved" } else { "sample" };
            let mut ran = run("sampling.tile", kernel, &definitions, &arrays, 1);
            ran.sizes.insert("S".into(), samples as i64);
            let mistakes = [Mistake::Axes, Mistake::Attention, Mistake::Border, Mistake::Channel];
            compare(&ran, fold, zero, &mistakes, &format!("{kernel} {definitions:?}"));
            // The language's own program clamps, and takes even sides.
            if !zero && h % 2 == 0 {
                let mut given = arrays.clone();
                given.retain(|name, _| name != "offs" || offsets);
                let definitions = [definitions[0].clone(), definitions[1].clone(), definitions[2].clone()];
                let other = run("geo_sample.tile", "geo_sample", &definitions, &given, 1);
                assert_eq!(other.tensors["y"].bytes(), ran.tensors["y"].bytes(), "{definitions:?}");
            }
        }
    }
}

//! Tiles that are written in parts, at random. What is proved to be written never ends a launch of the interpreter,
//! whatever the sizes; where it is not proved, runs are watched, and end where the interpreter does.

use super::drawn;
use super::engine::{self, Noise};
use ptoc_diagnostics::codes;
use ptoc_ir::tile::Kernel;
use ptoc_tensor::{DType, Tensor};
use std::fmt::Write as _;

/// Kernels of two tiles of 16 x 16, with statements that write and read parts of them.
struct Random {
    noise: Noise,
    /// Names that were given.
    names: u32,
}

impl Random {
    fn one_of<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.noise.below(of.len() as u64) as usize]
    }

    /// Rows or columns: at most 16 for the sizes that are launched.
    fn count(&mut self) -> &'static str {
        self.noise.pick(&["16", "16", "5", "M", "N", "M", "min(M, N)", "M - min(M, N)", "i.len", "i.len", "j.len"])
    }

    fn tile(&mut self) -> &'static str {
        self.noise.pick(&["t", "u"])
    }

    fn statement(&mut self, depth: u64, out: &mut String) {
        let (t, other) = (self.tile(), self.tile());
        let (m, n) = (self.count(), self.count());
        if self.noise.below(2) == 0 {
            return self.related(t, other, out);
        }
        let kinds = if depth == 0 { 10 } else { 14 };
        match self.noise.below(kinds) {
            0 => writeln!(out, "{t} = 1.0;"),
            1 => writeln!(out, "{t}.valid({m}, {n}) = 2.0;"),
            2 => writeln!(out, "{t}.valid({m}, {n}) = {other}.valid({m}, {n});"),
            3 => writeln!(out, "{t}.valid({m}, 16) += 1.0;"),
            4 => writeln!(out, "for r in 0..{m} {{ {t}[r, _] = 3.0; }}"),
            5 => writeln!(out, "for r in 0..{m} {{ for c in 0..{n} {{ {t}[r, c] = 4.0; }} }}"),
            6 => writeln!(out, "for r in 0..{m} {{ s += {t}[r, 0]; }}"),
            7 => writeln!(out, "for e in tiles({m}, 4) {{ {t}.tile(e, _) = 5.0; }}"),
            8 => writeln!(out, "for e in tiles({m}, 4) {{ {other}.tile(e, _) = {t}.tile(e, _); }}"),
            9 => writeln!(out, "TLOAD({t}.valid(i.len, {n}), x.tile(i, tiles({n}, 16)[0]));"),
            10 => {
                writeln!(out, "if M > {n} {{").ok();
                self.statement(depth - 1, out);
                writeln!(out, "}} else {{").ok();
                self.statement(depth - 1, out);
                writeln!(out, "}}")
            }
            11 => {
                writeln!(out, "if N > 3 {{").ok();
                self.statement(depth - 1, out);
                writeln!(out, "}}")
            }
            12 => {
                writeln!(out, "for q in 0..N {{").ok();
                self.statement(depth - 1, out);
                self.statement(depth - 1, out);
                writeln!(out, "}}")
            }
            _ => {
                writeln!(out, "for q in 0..3 {{").ok();
                self.statement(depth - 1, out);
                writeln!(out, "if q == 0 {{").ok();
                self.statement(depth - 1, out);
                writeln!(out, "}}\n}}")
            }
        }
        .ok();
    }

    /// Rows and elements by arithmetic on the indices of loops: all of them, or all but some.
    fn related(&mut self, t: &str, other: &str, out: &mut String) {
        self.names += 1;
        let (k, m, n) = (self.names, self.count(), self.count());
        let (few, one) = (self.one_of(&["0", "0", "0", "1"]), self.one_of(&["1", "1", "1", "0", "2"]));
        let step = self.one_of(&["1", "1", "1", "2"]);
        let odd = self.one_of(&["0", "1"]);
        writeln!(out, "let m{k} = {m};").ok();
        match self.noise.below(30) {
            0 => writeln!(out, "for r in {few}..m{k} {{ {t}[r % m{k}, _] = 3.0; }}"),
            1 => writeln!(out, "for r in {few}..m{k} {{ {t}[(r + {one}) % m{k}, _] = 3.0; }}"),
            2 => writeln!(out, "for r in {few}..m{k} {{ {t}[m{k} - {one} - r, _] = 3.0; }}"),
            3 => writeln!(
                out,
                "for r in 0..m{k} {{ s += {t}[max(r - 1, {few}), 0] + {t}[min(r + 1, m{k} - {one}), 3]; }}"
            ),
            4 => writeln!(out, "for r in 0..m{k} {{ if r % 2 == {odd} {{ {t}[r, _] = 3.0; }} }}"),
            5 => writeln!(
                out,
                "for r in 0..m{k} {{ if r % 2 == {odd} {{ {t}[r, _] = 3.0; }} else {{ {other}[r, _] = 3.0; }} }}"
            ),
            6 => writeln!(
                out,
                "for p in {few}..(m{k} + {one}) / 2 {{ {t}[2 * p, _] = 3.0; }}\n\
                 for p in 0..m{k} / 2 {{ {t}[2 * p + {one}, _] = 3.0; }}"
            ),
            7 => writeln!(out, "for q in {few}..m{k} * 16 {{ {t}[q / 16, q % 16] = 3.0; }}"),
            8 => writeln!(out, "for q in 0..m{k} * 16 - {few} {{ {t}[q / 16, 15 - q % 16] = 3.0; }}"),
            9 => writeln!(
                out,
                "for d in {few}..m{k} + 15 {{ for r in max(d - 15, 0)..min(d + 1, m{k}) {{ {t}[r, d - r] = 3.0; }} }}"
            ),
            10 => writeln!(out, "for b in tiles(m{k}, 4) {{ for r in {few}..b.len {{ {t}[b.start + r, _] = 3.0; }} }}"),
            11 => writeln!(out, "var w{k} = {few}; while w{k} < m{k} {{ {t}[w{k}, _] = 3.0; w{k} = w{k} + {step}; }}"),
            12 => writeln!(
                out,
                "var w{k} = 0; while w{k} < m{k} {{ if w{k} == 7 + {n} {{ break; }} {t}[w{k}, _] = 3.0; w{k} = w{k} + \
                1; }}"
            ),
            13 => writeln!(out, "var w{k} = m{k}; while w{k} > {few} {{ w{k} = w{k} - 1; {t}[w{k}, _] = 3.0; }}"),
            14 => writeln!(
                out,
                "for q in 0..3 {{ for r in 0..m{k} {{ if q == {few} {{ {t}[r, _] = 1.0; }} else {{ {t}[r, _] += 1.0; \
                }} }} }}"
            ),
            15 => writeln!(
                out,
                "for q in 0..N {{ for r in 0..m{k} {{ if q == {few} {{ {t}[r, _] = 1.0; }} else {{ {t}[r, _] += 1.0; \
                }} }} }}"
            ),
            16 => writeln!(out, "for r in 0..m{k} {{ if r + i.start < {n} {{ {t}[r, _] = 3.0; }} }}"),
            17 => writeln!(out, "for r in 0..m{k} {{ if r + i.start < {n} + {few} {{ s += {t}[r, 0]; }} }}"),
            18 => writeln!(
                out,
                "for r in 0..m{k} {{ if r < {n} {{ {t}[r, _] = 3.0; }} else {{ {t}[r + {few}, _] = 4.0; }} }}"
            ),
            19 => writeln!(out, "var w{k} = 0; for r in {few}..m{k} {{ {t}[w{k}, _] = 3.0; w{k} = w{k} + {step}; }}"),
            20 => writeln!(out, "for r in 0..m{k} {{ if r == 3 + {n} {{ continue; }} {t}[r, _] = 3.0; }}"),
            21 => writeln!(out, "for r in 0..m{k} {{ if r > 0 {{ s += {t}[r - {one}, 1]; }} {t}[r, _] = 3.0; }}"),
            22 => writeln!(
                out,
                "for r in 0..m{k} {{ {t}[r / 2, _] = 3.0; if r % 2 == {odd} {{ s += {t}[r / 2 + {few}, 5]; }} }}"
            ),
            // Parts through layouts, which the end of what is valid may cut.
            23 => writeln!(out, "logical_divide({t}, <_, 4>)[_, ({odd}, _)] = 3.0;"),
            24 => writeln!(out, "logical_divide({t}.valid(m{k}, {n}), <_, 4>)[_, ({odd}, _)] = 3.0;"),
            25 => {
                writeln!(out, "let p{k} = logical_divide({t}.valid(m{k}, {n}), <2, _>)[({odd}, _), _]; p{k} += p{k};")
            }
            26 => writeln!(out, "let v{k} = Vec(composition({t}.valid(m{k}, {n}), <_, 4:4>)) + 1.0;"),
            27 => writeln!(out, "for r in 0..8 {{ local_partition({t}.valid(m{k}, {n}), (4, 2):(2, 1), r) = 3.0; }}"),
            28 => writeln!(
                out,
                "for r in {few}..8 {{ let v{k} = Vec(local_partition({t}.valid(m{k}, {n}), (4, 2):(2, 1), r)); }}"
            ),
            _ => writeln!(
                out,
                "for r in 0..m{k} {{ let v{k} = tile Vec<f32, 1, 16>; if r < {n} {{ v{k} = 1.0; }} \
                 if r < {n} + {few} {{ {t}[r, _] = v{k}; }} }}"
            ),
        }
        .ok();
    }

    fn kernel(&mut self, number: usize) -> String {
        let mut out = format!(
            "kernel k{number}(x: in f32[M, 16], y: inout f32[1], z: in f32[N]) where M <= 16, N <= 16 {{\n    \
             grid (i in tiles(M, 16), j in tiles(N, 16));\n    let t, u = tile Vec<f32, 16, 16>;\n    var s = 0.0;\n"
        );
        for t in ["t", "u"] {
            if self.noise.below(3) > 0 {
                writeln!(out, "{t}.valid({}, {}) = 0.5;", self.count(), self.count()).ok();
            }
        }
        for _ in 0..1 + self.noise.below(4) {
            self.statement(2, &mut out);
        }
        let (t, m, n) = (self.tile(), self.count(), self.count());
        writeln!(out, "let w = {t}.valid({m}, {n}) + 1.0;\ny[0] = s;\n}}").ok();
        out
    }
}

/// The code with which a launch of the interpreter ends, if it does not end well.
fn end(kernel: &Kernel, (m, n): (i64, i64)) -> Option<&'static str> {
    let dims: Vec<i64> = kernel.dims.values().map(|d| if &*d.name == "M" { m } else { n }).collect();
    drawn::launch(kernel, &dims).err().map(|trap| trap.code.as_str())
}

/// Machine code that is watched ends where the interpreter does.
fn watched(source: &str, m: i64, n: i64) {
    let built = engine::build(source, "a2a3", &[], &[]).unwrap_or_else(|refused| panic!("{refused:?}\n{source}"));
    let zeros = |shape: &[usize]| Tensor::zeros(DType::F32, shape).expect("little");
    let tensors = [zeros(&[m as usize, 16]), zeros(&[1]), zeros(&[n as usize])];
    let same = built.sanitized(&[("M", m), ("N", n)], &tensors);
    assert!(same.is_ok(), "{same:?}\n{source}");
}

/// Kernels whose machine code runs.
const WATCHED: usize = 40;

#[test]
fn what_is_proved_is_written() {
    let seed = std::env::var("PARTS_SEED").ok().and_then(|s| s.parse().ok()).unwrap_or(20_261_124);
    let kernels: usize = ptoc_tests_budget::cases(170, 500);
    let mut random = Random { noise: Noise::new(seed), names: 0 };
    // Refused; proved; watched and wrong with some sizes; watched and right with all.
    let mut counts = [0; 4];
    let draw = |n| random.kernel(n);
    drawn::each(kernels, draw, |kernel, target, source| {
        let unwritten = |kernel: &Kernel| {
            let sizes = [0, 1, 3, 5, 9, 16].into_iter().flat_map(|m| [0, 1, 4, 5, 13, 16].map(|n| (m, n)));
            sizes.into_iter().find(|s| end(kernel, *s) == Some(codes::TRAP_POISON_READ_TILE.as_str()))
        };
        let kind = match ptoc_passes::place(kernel, target) {
            Err(told) => {
                assert!(told.iter().any(|d| d.code == codes::UNINITIALISED), "{source}\n{told:?}");
                0
            }
            Ok((placed, _)) => match (placed.watched, unwritten(&placed.kernel)) {
                (false, Some(sizes)) => panic!("proved, and unwritten for {sizes:?}\n{source}"),
                (false, None) => 1,
                (true, Some((m, n))) => {
                    if counts[2] < WATCHED {
                        watched(source, m, n);
                    }
                    2
                }
                (true, None) => 3,
            },
        };
        counts[kind] += 1;
    });
    println!("{counts:?}");
    // Of each kind there are enough, and little is open.
    let [refused, proved, wrong, open] = counts;
    let share = |of: usize| kernels * of / 500;
    assert!(refused > share(20) && proved > share(40) && wrong > share(40) && open < kernels / 5, "{counts:?}");
}

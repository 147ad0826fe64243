//! Tiles that are written in parts, at random. What is proved to be written never ends a launch of the interpreter,
//! whatever the sizes; where it is not proved, runs are watched, and end where the interpreter does.

use super::drawn;
use super::engine::{self, Noise};
use ptoc_diagnostics::codes;
use ptoc_ir::tile::Kernel;
use ptoc_tensor::{DType, Tensor};
use std::fmt::Write as _;

/// Kernels of two tiles of 16 x 16, with statements that write and read parts of them.
struct Random(Noise);

impl Random {
    /// Rows or columns: at most 16 for the sizes that are launched.
    fn count(&mut self) -> &'static str {
        self.0.pick(&["16", "16", "5", "M", "N", "M", "min(M, N)", "M - min(M, N)", "i.len", "i.len", "j.len"])
    }

    fn tile(&mut self) -> &'static str {
        self.0.pick(&["t", "u"])
    }

    fn statement(&mut self, depth: u64, out: &mut String) {
        let (t, other) = (self.tile(), self.tile());
        let (m, n) = (self.count(), self.count());
        let kinds = if depth == 0 { 10 } else { 14 };
        match self.0.below(kinds) {
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

    fn kernel(&mut self, number: usize) -> String {
        let mut out = format!(
            "kernel k{number}(x: in f32[M, 16], y: inout f32[1], z: in f32[N]) where M <= 16, N <= 16 {{\n    \
             grid (i in tiles(M, 16), j in tiles(N, 16));\n    let t, u = tile Vec<f32, 16, 16>;\n    var s = 0.0;\n"
        );
        for t in ["t", "u"] {
            if self.0.below(3) > 0 {
                writeln!(out, "{t}.valid({}, {}) = 0.5;", self.count(), self.count()).ok();
            }
        }
        for _ in 0..1 + self.0.below(4) {
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
    const KERNELS: usize = 400;
    let mut random = Random(Noise::new(20_261_124));
    // Refused; proved; watched and wrong with some sizes; watched and right with all.
    let mut counts = [0; 4];
    let draw = |n| random.kernel(n);
    drawn::each(KERNELS, draw, |kernel, target, source| {
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
    assert!(refused > 20 && proved > 40 && wrong > 40 && open < KERNELS / 5, "{counts:?}");
}

//! Long steps, which are woven with AVX2, against the evaluator.

use crate::make::{agree, data, joining};
use ptoc_cpu::{Options, Vectors, compile};
use ptoc_ir::loops::{MemTy, Module};
use ptoc_isa::math::EXPONENTIAL;

/// A step of so many operations on `live` values at once that are read to the end.
fn long(load: &str, store: &str, live: usize, ops: usize) -> String {
    let mut body =
        format!("r12: f32 = load {load}\nr13: f32 = const 0.75\nr14: f32 = const 1.5\nr15: f32 = const -0.25\n");
    let mut values: Vec<usize> = vec![12];
    for n in 0..ops {
        let (x, y, dst) = (values[values.len() - 1], values[0], 30 + n);
        body += &match n % 5 {
            0 => format!("r{dst}: f32 = fma r{x}, r13, r{y}\n"),
            1 => format!("r{dst}: f32 = max r{x}, r15\n"),
            2 => format!("r{dst}: f32 = fma r{y}, r{x}, r14\n"),
            3 => format!("r{dst}: f32 = mul r{x}, r13\n"),
            _ => format!("r{dst}: f32 = sub r{x}, r14\n"),
        };
        values.push(dst);
        if values.len() > live {
            values.remove(0);
        }
    }
    let last = values.into_iter().reduce(|x, y| {
        body += &format!("r{}: f32 = add r{x}, r{y}\n", 100 + y);
        100 + y
    });
    body + &format!("r16: f32 = mul r{}, r13\nstore {store}, r16\n", last.unwrap_or(12))
}

/// Steps of every length and pressure, in rows of every length: those that are woven by four, three and two with AVX2,
/// and those that are not.
#[test]
fn long_steps_are_those_of_lanes() {
    let words = ("f32 t0[r7, stride 4]", "f32 t1[r7, stride 4]");
    let halves = ("f16 t0[r7, stride 2]", "bf16 t1[r7, stride 2]");
    let own = ("f32 t1[r7, stride 4]", "f32 t1[r7, stride 4]");
    let joins = ["", "join add f32 t2[r8], r16\n", "join max f32 t2[r8], r16\njoin add f32 t2[r9], r12\n"];
    let mut lanes = std::collections::BTreeSet::new();
    for ((load, store), joins) in [words, halves, own].into_iter().flat_map(|w| joins.map(|j| (w, j))) {
        for (live, ops) in [(1, 12), (1, 20), (2, 15), (3, 20), (4, 25), (5, 18), (9, 30)] {
            let body = long(load, store, live, ops);
            for count in [7, 8, 15, 16, 23, 24, 31, 33, 63, 64, 65, 97, 131] {
                for known in [None, Some(count)].into_iter().filter(|n| n.is_none_or(|n| n <= 16)) {
                    let module = joining(joins, &body, known);
                    let ty = if load == halves.0 { MemTy::F16 } else { MemTy::F32 };
                    let tensors = [data(ty, 4096, 7), data(MemTy::F32, 8192, 9), data(MemTy::F32, 4096, 8)];
                    agree(&module, &[3, count], &tensors)
                        .unwrap_or_else(|e| panic!("{joins} {count} {known:?}: {e}\n{body}"));
                }
            }
            let turn = turn(&joining(joins, &body, None));
            lanes.insert((
                joins.is_empty(),
                turn.lines().filter(|l| l.contains("load.") || l.contains("= load")).count(),
            ));
        }
    }
    // What is loaded once a step says how many there are.
    for steps in [4, 3, 2, 0] {
        assert!(!ptoc_cpu::available(Vectors::Bits256) || lanes.contains(&(true, steps)), "{steps} steps: {lanes:?}");
    }
}

/// The instructions of a module's turn with AVX2; none if it has no turn, or the machine no AVX2.
fn turn(module: &Module) -> String {
    if !ptoc_cpu::available(Vectors::Bits256) {
        return String::new();
    }
    let options = Options { text: true, vectors: Vectors::Bits256, ..Options::default() };
    let kernel = compile(module, &options).expect("it compiles");
    let text = &kernel.text().expect("it was asked for").clif;
    text.split(" turn\n")
        .nth(1)
        .map_or("", |t| t.split(" step\n").next().and_then(|t| t.split("\n whole").next()).unwrap_or(""))
        .to_owned()
}

/// Sets `r{to}` to e to the power of `r{x}`, kept between bounds, as the language's programs do; it takes 26 registers
/// from `to` on.
fn exponential(to: usize, x: usize, bounds: [f32; 2]) -> String {
    let mut out = String::new();
    let mut line = |n: usize, what: String| {
        out += &format!("r{}: f32 = {what}\n", to + n);
        to + n
    };
    let [most, least] = [(1, bounds[0]), (2, bounds[1])].map(|(n, c)| line(n, format!("const {:#x}", c.to_bits())));
    let below = line(3, format!("min r{x}, r{most}"));
    let kept = line(4, format!("max r{below}, r{least}"));
    let c: Vec<usize> =
        EXPONENTIAL.iter().enumerate().map(|(n, c)| line(5 + n, format!("const {:#x}", c.to_bits()))).collect();
    let moved = line(16, format!("fma r{kept}, r{}, r{}", c[0], c[1]));
    let n = line(17, format!("sub r{moved}, r{}", c[1]));
    let upper = line(18, format!("fma r{n}, r{}, r{kept}", c[2]));
    let r = line(19, format!("fma r{n}, r{}, r{upper}", c[3]));
    let p = c[5..].iter().enumerate().fold(c[4], |p, (k, c)| line(20 + k, format!("fma r{p}, r{r}, r{c}")));
    line(0, format!("scale r{p}, r{n}"));
    out
}

/// A row of f16 in the bytes of one of f32.
fn half_row(row: &[f32]) -> Vec<u8> {
    let mut out: Vec<u8> = row.iter().flat_map(|&x| half::f16::from_f32(x).to_le_bytes()).collect();
    out.resize(4 * row.len(), 0);
    out
}

/// Exponentials whose turns end early, at every lane, and on both sides of where they do.
#[test]
fn exponentials_near_and_beyond_their_bounds() {
    const WHOLE: [f32; 2] = [89.0, -104.0];
    let load = "r12: f32 = load f32 t0[r7, stride 4]\n";
    let own = "r12: f32 = load f32 t1[r7, stride 4]\n";
    let half = "r12: f32 = load f16 t0[r7, stride 2]\n";
    let store = "store f32 t1[r7, stride 4], r16\n";
    let one = exponential(40, 12, WHOLE) + "r16: f32 = fma r40, r40, r12\n";
    let two =
        exponential(40, 12, WHOLE) + "r13: f32 = neg r12\n" + &exponential(80, 13, WHOLE) + "r16: f32 = sub r40, r80\n";
    let plain = exponential(40, 12, WHOLE) + "r16: f32 = mul r40, r40\n";
    let near = exponential(40, 12, [20.0, -87.0]) + "r16: f32 = add r40, r12\n";
    // The second's argument is the first's result: nothing is known before it.
    let after = exponential(40, 12, WHOLE) + &exponential(80, 40, WHOLE) + "r16: f32 = add r40, r80\n";
    let join = "join add f32 t2[r8], r40\n";
    let early =
        format!("store f32 t1[r7, stride 4], r12\n{}", exponential(40, 12, WHOLE) + "r16: f32 = add r40, r12\n");
    let cases = [
        (load, &one, "", true),
        (own, &one, "", true),
        (load, &one, join, true),
        (own, &one, join, true),
        (load, &two, "", true),
        (load, &near, join, true),
        (load, &after, "", true),
        (load, &early, "", false),
        (half, &one, "", true),
        (load, &plain, join, true),
    ];
    let e = |n: f32| n * std::f32::consts::LN_2;
    let numbers = [
        f32::NAN,
        f32::INFINITY,
        f32::NEG_INFINITY,
        1e30,
        -1e30,
        89.5,
        88.8,
        88.6,
        -104.5,
        -103.5,
        21.0,
        e(127.4),
        e(127.49),
        e(127.51),
        e(128.0),
        e(-124.4),
        e(-124.6),
        e(-125.4),
        e(-125.49),
        e(-125.51),
        e(-126.0),
        e(-149.5),
        -0.0,
        1e-40,
        12_582_912.0,
        -12_582_912.0,
    ];
    for (load, body, joins, guarded) in cases {
        let halves = load == half;
        let store = if halves { "r17: f32 = round_bf16 r16\nstore bf16 t1[r7, stride 2], r17\n" } else { store };
        let text = format!("{load}{body}{store}");
        let module = joining(joins, &text, None);
        let turn = turn(&module);
        assert_eq!(
            turn.contains("go on with whole"),
            guarded && ptoc_cpu::available(Vectors::Bits256),
            "{body}\n{turn}"
        );
        // Eight steps with partials are two groups of four, if nothing else lives: whole exponentials take no more
        // registers than short ones.
        let guards = turn.matches("go on with whole").count();
        assert!(body != &plain || guards <= 2, "{turn}");
        for (n, number) in numbers.into_iter().enumerate() {
            let (count, at) = [(31, 5 * n % 31), (64, 7 * n % 64), (105, 64 + 3 * n % 41), (130, 11 * n % 130)][n % 4];
            let row = |seed: usize| (0..250).map(move |k| ((k * 37 + seed * 11) % 173) as f32 / 4.0 - 30.0);
            let mut rows: Vec<f32> = (0..3).flat_map(row).collect();
            // One row has one of them, and the next is as it is.
            rows[250 + at] = number;
            let bytes: Vec<u8> = match halves {
                true => rows.chunks(250).flat_map(half_row).collect(),
                false => rows.iter().flat_map(|x| x.to_le_bytes()).collect(),
            };
            let tensors = [bytes.clone(), bytes, data(MemTy::F32, 4096, 8)];
            for (known, module) in [(false, &module), (true, &joining(joins, &text, Some(count)))] {
                agree(module, &[3, count], &tensors)
                    .unwrap_or_else(|e| panic!("{number} at {at} of {count}, known: {known}, {joins}: {e}\n{text}"));
            }
        }
    }
}

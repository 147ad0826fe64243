//! Gathered rows that the CPU reads in their tables: kernels put together at random of gathers, of what is computed of
//! their rows, and of what keeps them apart. Interpreter = CPU at every width, also where it stops; and which gathers
//! leave places of rows.

use crate::engine::{Built, Content, Noise, agree, build, noise};
use ptoc_ir::loops::text;
use ptoc_tensor::{DType, Tensor};

/// Indices of a gather, and whether they are sums of a column and a row.
const INDICES: [(&str, bool); 8] = [
    ("u * i32(C) + channel", true),
    ("channel + v * i32(C)", true),
    ("(u + 1) * i32(C) + channel", true),
    ("u * i32(C) + (channel + 1)", true),
    ("u * i32(C) - channel", false),
    ("Vec(q.tile(p, c))", false),
    ("Vec(q.tile(p, c)) + 1", false),
    ("u * i32(C) + (v + channel)", false),
];

/// What may stand between gathers, `#` being the last one's number.
const STEPS: [&str; 12] = [
    "s = s + f32(g#) * a;",
    "s = max(s, f32(g#));",
    "s = s + f32(g#) * f32(g0);",
    "let h# = f32(g#) * a; s = s + h# * a;",
    "a = a * 0.5;",
    "u = min(u, v);",
    "v = v + 1;",
    "a = a + rowsum(f32(g#) * a);",
    "channel = channel + 1;",
    "TSTORE(z.tile(p, c), s);",
    "TSTORE(z.tile(p, c), f32(g#));",
    "s = s * 0.25;",
];

fn kernel(dtype: &str, steps: &[String], (bp, bc): (u32, u32)) -> String {
    format!(
        "kernel k<const BP = {bp}, const BC = {bc}>(t: in {dtype}[N, C], x: in i32[P], y: in i32[P], q: in i32[P, C], \
        w: in f32[P],
                z: out f32[P, C], o: out f32[P, C], e: out f32[P]) where N * C <= 1000000 {{
            grid (p in tiles(P, BP), c in tiles(C, BC));
            let u = Vec(col(x).tile(p, _));
            let v = Vec(col(y).tile(p, _));
            let a = Vec(col(w).tile(p, _));
            let channel = iota(1, c);
            let s = tile Vec<f32, p, c>;
            s = 0.5;
            {}
            TSTORE(o.tile(p, c), s);
            if c.start == 0 {{ TSTORE(col(e).tile(p, _), a); }}
        }}",
        steps.join("\n            "),
    )
}

/// How many gathers leave places of rows, of how many.
fn places(built: &Built) -> (usize, usize) {
    let printed = text::print(built.module(), false);
    (printed.matches(", places ").count(), printed.matches("= gather ").count())
}

fn arrays(dtype: DType, (n, c, p): (usize, usize, usize), content: Content, outside: bool, seed: u64) -> Vec<Tensor> {
    let mut dice = Noise::new(seed);
    let zeros = |shape: &[usize]| Tensor::zeros(DType::F32, shape).expect("small");
    let starts = |seed: u64| {
        let mut dice = Noise::new(seed);
        Tensor::from_fn(DType::I32, &[p], |_| match dice.below(12) {
            0 if outside => (dice.below(9) as i32 - 4 + dice.below(2) as i32 * n as i32) as u32 as u64,
            _ => dice.below(n as u64),
        })
        .expect("small")
    };
    let (x, y) = (starts(seed + 1), starts(seed + 2));
    // Rows of neighbours, with one that is none here and there.
    let last = (n * c) as u64;
    let (mut row, mut at) = (0, usize::MAX);
    let q = Tensor::from_fn(DType::I32, &[p, c], |k| {
        if at != k / c {
            (at, row) = (k / c, dice.below(n as u64) * c as u64);
        }
        let jump = u64::from(dice.below(200) == 0);
        let inside = (row + (k % c) as u64 + jump) % last;
        if outside && dice.below(300) == 0 { u64::from((-(inside as i32) - 1) as u32) } else { inside }
    });
    vec![
        noise(dtype, &[n, c], content, seed + 3),
        x,
        y,
        q.expect("small"),
        noise(DType::F32, &[p], Content::Tame, seed + 4),
        zeros(&[p, c]),
        zeros(&[p, c]),
        zeros(&[p]),
    ]
}

#[test]
fn gathered_rows_at_random() {
    let mut dice = Noise::new(77);
    let (mut stay, mut stops) = (0u64, 0u64);
    let rounds = ptoc_tests_budget::cases(45, 140);
    for round in 0..rounds {
        let dtype = [DType::F32, DType::F32, DType::F16, DType::BF16, DType::I32][dice.below(5) as usize];
        // Without a mode, most launches have no index outside.
        let mode = ["", ", oob = Zero", ", oob = Clamp", ", oob = Wrap"][dice.below(4) as usize];
        let outside = !mode.is_empty() || dice.below(6) == 0;
        let mut steps = Vec::new();
        for g in 0..1 + dice.below(5) {
            let (index, _) = INDICES[dice.below(INDICES.len() as u64) as usize];
            // Small numbers of rows: one more is outside.
            let index = if outside || !index.contains('1') { index } else { INDICES[0].0 };
            let name = dtype.name();
            steps.push(format!("let n{g} = {index}; let g{g} = tile Vec<{name}, p, c>; MGATHER(g{g}, t, n{g}{mode});"));
            for _ in 0..dice.below(4) {
                let step = STEPS[dice.below(STEPS.len() as u64) as usize];
                let moves = step.starts_with("v =") || step.starts_with("channel =");
                if outside || !moves {
                    steps.push(step.replace('#', &g.to_string()));
                }
            }
        }
        // Names that come twice.
        let mut seen: Vec<String> = Vec::new();
        steps.retain(|s| {
            let again = s.starts_with("let h") && seen.contains(s);
            seen.push(s.clone());
            !again
        });
        let (bp, bc) = ([8, 16, 32][dice.below(3) as usize], [16, 32, 64][dice.below(3) as usize]);
        let text = kernel(dtype.name(), &steps, (bp, bc));
        let size = (1 + dice.below(9) as usize, 1 + dice.below(90) as usize, 1 + dice.below(50) as usize);
        let dims = [("N", size.0 as i64), ("C", size.1 as i64), ("P", size.2 as i64)];
        let built = build(&text, "a2a3", &[], &dims).unwrap_or_else(|e| panic!("{text}\n{e:?}"));
        stay += u64::from(places(&built).0 > 0);
        let content = if round % 4 == 0 && dtype != DType::I32 { Content::Wild } else { Content::Tame };
        let tensors = arrays(dtype, size, content, outside, 10 * round);
        match agree(&built, &dims, &tensors, &[1, 2]).unwrap_or_else(|e| panic!("{e}\n{text}\n{dims:?}")) {
            Ok(_) => {}
            Err((code, message)) => {
                stops += 1;
                let (same, said) =
                    built.execute(&dims, &tensors, 1).expect_err(&format!("{message}\n{text}\n{dims:?}"));
                assert_eq!(code, same, "{message}\n{said}\n{text}\n{dims:?}");
            }
        }
    }
    assert!(stay > rounds * 3 / 7 && stops > rounds / 35, "{stay} of {rounds} have rows that stay, {stops} stop");
}

/// By which indices gathers leave places, and which of them are the sum of a column and a row. What else has to hold is
/// in `filetests/lazy-gather`.
#[test]
fn rows_stay_by_any_indices() {
    for (index, sum) in INDICES {
        let gather = format!("let n = {index}; let g = tile Vec<f32, p, c>; MGATHER(g, t, n);");
        let text = kernel("f32", &[gather, "s = s + g * a;".to_owned()], (32, 64));
        let built = build(&text, "a2a3", &[], &[]).unwrap_or_else(|e| panic!("{text}\n{e:?}"));
        assert_eq!(places(&built), (1, 1), "{index}");
        assert_eq!(text::print(built.module(), false).contains(", plus "), sum, "{index}");
    }
}

/// The message of an index outside says the number, also where nothing has added column and row.
#[test]
fn an_index_outside_is_shown() {
    let steps =
        ["let n = u * i32(C) + channel; let g = tile Vec<f32, p, c>; MGATHER(g, t, n); s = s + g * a;".to_owned()];
    let built = build(&kernel("f32", &steps, (8, 64)), "a2a3", &[], &[]).unwrap_or_else(|e| panic!("{e:?}"));
    assert_eq!(places(&built), (1, 1));
    let mut tensors = arrays(DType::F32, (3, 40, 20), Content::Tame, false, 5);
    tensors[1].set_bits(13, u64::from(-2i32 as u32));
    let dims = [("N", 3), ("C", 40), ("P", 20)];
    let (code, message) = built.execute(&dims, &tensors, 1).expect_err("an index is outside");
    assert!(message.ends_with("[-80, 120, 5, 0]"), "{message}");
    assert_eq!(built.interpret(&dims, &tensors).expect_err("an index is outside").0, code);
}

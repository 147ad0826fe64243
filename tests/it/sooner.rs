//! Reductions where their elements are computed, cheap results that are computed again, and what sinks to its reader:
//! kernels put together at random of what makes tiles, reads them again, and changes what they were made of.
//! Interpreter = CPU at every width. What is stored is said by `filetests/rematerialize` and `filetests/lowering`.

use crate::engine::{Content, Noise, agree, build, noise};
use ptoc_tensor::{DType, Tensor};

/// What may come one after the other, `#` being the step's number.
const STEPS: [&str; 22] = [
    "let s# = t * 0.5; s = s#;",
    "s = t * 0.5;",
    "s = t - top;",
    "s = t + across;",
    "top = max(top, rowmax(s));",
    "top = max(top, rowmax(t)); sum = sum * 0.5;",
    "let p# = exp(s - top); sum = sum * 0.5; sum = sum + rowsum(p#);",
    "let p# = exp(s - top); sum = sum + rowsum(p#); TSTORE(z.tile(m, n), p#);",
    "let q# = s * s; top = top * 0.5; sum = sum + rowsum(q#) * 0.125;",
    "let a# = t * 0.25; let r# = rowmax(a#); let b# = a# - r#; sum = sum + rowsum(b# * b#);",
    "let a# = t * 0.25; top = rowmax(a#); t = t + 1.0; s = a# * top;",
    "let a# = t * 0.25; top = rowmax(a#); s = s + a#; a# = s; sum = rowmin(a#);",
    "s = s + top;",
    "t = t * 0.5;",
    "t = s;",
    "if n.start > 0 { s = max(s, 0.0); }",
    "TSTORE(z.tile(m, n), s);",
    "sum = sum + rowsum(s); s = s * 0.5;",
    "let c# = exp(t); let d# = exp(sum * 0.01) * 0.5; s = c# - d#;",
    "let c# = t * 2.0; let e# = c# + 1.0; top = top * 0.5; t = t + 1.0; s = s + e#;",
    "let c# = abs(s); top = top * 0.5; s = s + 1.0; top = top + 0.5; t = t * c#;",
    "let c# = f16(t); let g# = f32(c#); sum = min(sum, 9.0); let h# = exp(top); s = g# * h#; top = rowmax(g#);",
];

fn kernel(steps: &[String], (bm, bn): (u32, u32)) -> String {
    format!(
        "kernel k<const BM = {bm}, const BN = {bn}>(x: in f32[M, N], w: in f32[N], z: out f32[M, N], o: out f32[M], e: \
        out f32[M]) {{
            grid (m in tiles(M, BM));
            let top, sum = tile Vec<f32, m, 1>;
            top = -1.0;
            sum = 0.0;
            for n in tiles(N, BN) {{
                let t = tile Vec<f32, m, n>;
                TLOAD(t, x.tile(m, n));
                let across = Vec(w.tile(n));
                let s = t * 0.5 + across;
                {}
                TSTORE(z.tile(m, n), s);
            }}
            TSTORE(col(o).tile(m, _), top);
            TSTORE(col(e).tile(m, _), sum);
        }}",
        steps.join("\n                "),
    )
}

#[test]
fn tiles_that_are_read_again_at_random() {
    let mut dice = Noise::new(16);
    for round in 0..ptoc_tests_budget::cases(40, 120) {
        let steps: Vec<String> = (0..1 + dice.below(6))
            .map(|n| STEPS[dice.below(STEPS.len() as u64) as usize].replace('#', &n.to_string()))
            .collect();
        let blocks = ([8, 16][dice.below(2) as usize], [64, 128, 256, 512][dice.below(4) as usize]);
        let text = kernel(&steps, blocks);
        let (m, n) = (1 + dice.below(20) as usize, 1 + dice.below(700) as usize);
        let dims = [("M", m as i64), ("N", n as i64)];
        let built = build(&text, "a5", &[], &dims).unwrap_or_else(|e| panic!("{text}\n{e:?}"));
        let content = if round % 4 == 0 { Content::Wild } else { Content::Tame };
        let zeros = |shape: &[usize]| Tensor::zeros(DType::F32, shape).expect("small");
        let inputs = [noise(DType::F32, &[m, n], content, 2 * round), noise(DType::F32, &[n], content, 2 * round + 1)];
        let tensors: Vec<Tensor> = inputs.into_iter().chain([zeros(&[m, n]), zeros(&[m]), zeros(&[m])]).collect();
        let done = agree(&built, &dims, &tensors, &[1]).unwrap_or_else(|e| panic!("{e}\n{text}\n{dims:?}"));
        done.unwrap_or_else(|e| panic!("{e:?}\n{text}\n{dims:?}"));
    }
}

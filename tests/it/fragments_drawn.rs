//! Kernels of fragments that are drawn: shapes of blocks, orders of operands, parts of k, conditions that arrays
//! decide, what is done to sums, where they go, and how often; sizes that are whole and odd ones.

use crate::engine::{Content, Noise, noise};
use crate::ptx::build_unit;
use ptoc_isa::Target;
use ptoc_opt::fragments::find;
use ptoc_tensor::{DType, Tensor};
use ptoc_tests_budget::cases;

/// A kernel and its arrays.
struct Drawn {
    text: String,
    dims: Vec<(&'static str, i64)>,
    arrays: Vec<Tensor>,
}

fn numbers(of: &[i32]) -> Tensor {
    let bytes: Vec<u8> = of.iter().flat_map(|n| n.to_le_bytes()).collect();
    Tensor::from_bytes(DType::I32, &[of.len()], &bytes).expect("as many")
}

fn draw(rng: &mut Noise, seed: u64) -> Drawn {
    let mut one_of = |of: &[u32]| of[rng.below(of.len() as u64) as usize];
    let (bm, bn, bk) = (one_of(&[16, 32, 64, 128]), 16 * one_of(&[1, 2, 3, 5]), 16 * one_of(&[1, 2, 4, 5]));
    let [turned_a, turned_b, odd, taken, twice, narrow, scaled] =
        [2, 2, 2, 3, 3, 2, 2].map(|n| one_of(&[0, 1, 2][..n]));
    let (stages, parts) = (one_of(&[1, 2, 3]), one_of(&[1, 2, 3]));
    let (f16, tame) = (if narrow == 1 { DType::BF16 } else { DType::F16 }, Content::Tame);
    let size = |n: u32| n as usize;
    let [m, n, k] = [one_of(&[1, 40, 136]), one_of(&[8, 40, 72]), one_of(&[0, 64, 88, 200])].map(|n| size(n + odd));
    let (a, left) = if turned_a == 1 { ("K, M", "A.T.tile(m, k)") } else { ("M, K", "A.tile(m, k)") };
    let (b, right) = if turned_b == 1 { ("N, K", "B.T.tile(k, n)") } else { ("K, N", "B.tile(k, n)") };
    let pipeline = if stages > 1 { format!("pipeline(stages = {stages}) ") } else { String::new() };
    let product = format!(
        "acc = 0.0;
         {pipeline}for i in steps.count * s / S..steps.count * (s + 1) / S {{
             let k = steps[i];
             TMATMUL_ACC(acc, acc, Left({left}), Right({right}));
         }}"
    );
    let value = match scaled {
        1 => "Vec(acc) * Vec(scale.tile(m, _)) + rowmax(Vec(acc))",
        _ => "max(Vec(acc), 0.0)",
    };
    let store = format!("TSTORE(P[s, _, _].tile(m, n), {value});");
    // Twice to the same places, the second time something else.
    let store = match twice {
        1 => format!("{store} TSTORE(P[s, _, _].tile(m, n), Vec(acc));"),
        2 => format!("for r in 0..index(take[s]) {{ {store} }}"),
        _ => store,
    };
    let block = match taken {
        1 => format!("if take[s] > 0 {{ {product} {store} }}"),
        2 => format!("if take[s] > 1 {{ {product} }} else {{ acc = 0.0; }} {store}"),
        _ => format!("{product} {store}"),
    };
    let text = format!(
        "kernel drawn(A: in {f16}[{a}], B: in {f16}[{b}], take: in i32[S], scale: in f32[M, 1], P: inout f32[S, M, N])
             where S >= 1, 0 <= take[s] && take[s] < 4
         {{
             grid (s in 0..S, m in tiles(M, {bm}), n in tiles(N, {bn}));
             let steps = tiles(K, {bk});
             let acc = tile Acc<f32, m, n>;
             {block}
         }}"
    );
    let of = |turned: u32, rows: usize, cols: usize| if turned == 1 { [cols, rows] } else { [rows, cols] };
    let take: Vec<i32> = (0..parts as i32).map(|s| (s + seed as i32) % 4).collect();
    let arrays = vec![
        noise(f16, &of(turned_a, m, k), tame, seed),
        noise(f16, &of(turned_b, k, n), tame, seed + 1),
        numbers(&take),
        noise(DType::F32, &[m, 1], tame, seed + 2),
        noise(DType::F32, &[size(parts), m, n], tame, seed + 3),
    ];
    let dims = [("M", m), ("N", n), ("K", k), ("S", size(parts))].map(|(name, n)| (name, n as i64)).to_vec();
    Drawn { text, dims, arrays }
}

#[test]
fn drawn_kernels() {
    let mut rng = Noise::new(20_261_130);
    let mut taken = 0;
    let count = cases::<u64>(20, 400);
    for case in 0..count {
        let Drawn { text, dims, arrays } = draw(&mut rng, case);
        let (middle, ptx) = build_unit(&text, &[]).unwrap_or_else(|why| panic!("case {case}: {why}\n{text}"));
        let found = find(&middle.prepared.placed.kernel, Target::builtin("sm90").expect("a target"));
        taken += u64::from(found.is_ok());
        let want = middle.interpret_on_unit(&dims, &arrays).unwrap_or_else(|e| panic!("case {case}: {e:?}\n{text}"));
        let given = ptx.gives(&dims, &arrays, &want, (&format!("drawn_{case}"), case));
        given.unwrap_or_else(|why| panic!("case {case}, {dims:?}: {why}\n{text}\n{:?}", found.err()));
    }
    // The others are chains, with the interpreter's bits as well.
    assert!(2 * taken > count, "{taken} of {count}");
}

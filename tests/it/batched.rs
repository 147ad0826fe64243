//! Batches of products on the tensor cores: grids with dimensions that count matrices have the reference interpreter's
//! bits, with operands by bulk copies and without, shared by the batch or not, with epilogues.

use crate::engine::{Content, noise};
use crate::ptx::build_unit;
use ptoc_isa::Target;
use ptoc_opt::matrix_unit::find;
use ptoc_tensor::{DType, Tensor};

/// A kernel, and the shapes of its arrays in the order of its arguments, the last of which is the result.
struct Case {
    text: String,
    dims: Vec<(&'static str, i64)>,
    arrays: Vec<(DType, Vec<usize>)>,
}

/// A kernel with such arguments, a grid, windows of both operands and of the result.
fn kernel(arguments: &str, grid: &str, [a, b]: [&str; 2], store: &str) -> String {
    format!(
        "kernel product({arguments}) {{
             grid ({grid});
             let acc = tile Acc<f32, m, n>;
             acc = 0.0;
             pipeline(stages = 2) for k in tiles(K, 64) {{ TMATMUL_ACC(acc, acc, Left({a}), Right({b})); }}
             {store}
         }}"
    )
}

fn check(case: &Case) {
    let Case { text, dims, arrays } = case;
    let (middle, ptx) = build_unit(text, &[]).unwrap_or_else(|why| panic!("{why}\n{text}"));
    let found = find(&middle.prepared.placed.kernel, Target::builtin("sm90").expect("a target"));
    assert!(found.is_ok_and(|p| !p.batch.is_empty()), "it is no batch on the tensor cores\n{text}");
    let last = arrays.len() - 1;
    let array = |(n, (dtype, shape)): (usize, &(DType, Vec<usize>))| match n == last {
        true => Tensor::zeros(*dtype, shape).expect("small"),
        false => noise(*dtype, shape, Content::Tame, n as u64),
    };
    let tensors: Vec<Tensor> = arrays.iter().enumerate().map(array).collect();
    let want = middle.interpret_on_unit(dims, &tensors).unwrap_or_else(|e| panic!("{e:?}\n{text}"));
    for seed in 1..3 {
        let sizes: Vec<String> = dims.iter().map(|(name, n)| format!("{name}{n}")).collect();
        let name = format!("batched_{}_{seed}", sizes.join("_"));
        ptx.gives(dims, &tensors, &want, (&name, seed)).unwrap_or_else(|why| panic!("{why}\n{text}"));
    }
}

const GRID: &str = "h in 0..H, m in tiles(M, 64), n in tiles(N, 32)";

#[test]
fn matrices_of_a_batch() {
    let text = kernel(
        "a: in f16[H, M, K], b: in f16[H, K, N], c: out f32[H, M, N]",
        GRID,
        ["a[h, _, _].tile(m, k)", "b[h, _, _].tile(k, n)"],
        "TSTORE(c[h, _, _].tile(m, n), acc);",
    );
    // By bulk copies; with tails; matrices that begin at odd addresses; one matrix; a depth of 0.
    for [h, m, n, k] in [[3, 64, 32, 128], [2, 72, 40, 136], [3, 67, 33, 97], [1, 70, 24, 64], [2, 5, 7, 0]] {
        let (f16, f32) = (DType::F16, DType::F32);
        check(&Case {
            text: text.clone(),
            dims: vec![("H", h as i64), ("M", m as i64), ("N", n as i64), ("K", k as i64)],
            arrays: vec![(f16, vec![h, m, k]), (f16, vec![h, k, n]), (f32, vec![h, m, n])],
        });
    }
}

/// An operand that all matrices share, the batch inside of the grid and in other places of arrays.
#[test]
fn shared_operands_and_other_orders() {
    let bf16 = DType::BF16;
    let [h, m, n, k] = [3, 130, 72, 80];
    let dims = vec![("H", h as i64), ("M", m as i64), ("N", n as i64), ("K", k as i64)];
    check(&Case {
        text: kernel(
            "a: in bf16[M, H, K], b: in bf16[N, K], c: out bf16[M, H, N]",
            "n in tiles(N, 64), h in 0..H, m in tiles(M, 128)",
            ["a[_, h, _].tile(m, k)", "b.T.tile(k, n)"],
            "TSTORE(c[_, h, _].tile(m, n), bf16(Vec(acc)));",
        ),
        dims: dims.clone(),
        arrays: vec![(bf16, vec![m, h, k]), (bf16, vec![n, k]), (bf16, vec![m, h, n])],
    });
    let f32 = DType::F32;
    check(&Case {
        text: kernel(
            "a: in bf16[M, K], b: in bf16[H, K, N], bias: in f32[H, N], r: in f32[H, M, N], c: out f32[H, M, N]",
            GRID,
            ["a.tile(m, k)", "b[h, _, _].tile(k, n)"],
            "TSTORE(c[h, _, _].tile(m, n), max(Vec(acc) + Vec(bias[h, _].tile(n)), 0.0) + Vec(r[h, _, _].tile(m, n)));",
        ),
        dims,
        arrays: vec![
            (bf16, vec![m, k]),
            (bf16, vec![h, k, n]),
            (f32, vec![h, n]),
            (f32, vec![h, m, n]),
            (f32, vec![h, m, n]),
        ],
    });
}

/// Two dimensions of a batch, one of which the right operand does not have.
#[test]
fn two_dimensions() {
    let (f16, f32) = (DType::F16, DType::F32);
    let [g, h, m, n, k] = [2, 3, 40, 48, 72];
    check(&Case {
        text: kernel(
            "a: in f16[G, H, M, K], b: in f16[H, K, N], c: out f32[G, H, M, N]",
            "g in 0..G, h in 0..H, m in tiles(M, 64), n in tiles(N, 32)",
            ["a[g, h, _, _].tile(m, k)", "b[h, _, _].tile(k, n)"],
            "TSTORE(c[g, h, _, _].tile(m, n), max(Vec(acc), 0.0));",
        ),
        dims: vec![("G", g as i64), ("H", h as i64), ("M", m as i64), ("N", n as i64), ("K", k as i64)],
        arrays: vec![(f16, vec![g, h, m, k]), (f16, vec![h, k, n]), (f32, vec![g, h, m, n])],
    });
}

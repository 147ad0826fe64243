//! Products whose left operand is computed of integers of 8 bits or of nibbles, which bulk copies bring ahead of their
//! step: the reference interpreter's bits, with windows that are and are not whole, and arrays that bulk copies cannot
//! bring.

use crate::deletions::deletions;
use crate::engine::{Content, Middle, noise};
use crate::ptx::{Ptx, build_unit};
use ptoc_isa::Target;
use ptoc_opt::fragments::find;
use ptoc_tensor::{DType, Tensor};

/// Nibbles less zero points, scales for their sums, two products of each group beside each other (`std::quant`).
const NIBBLES: &str = "
kernel nibbles(W: in u8[N, H], scales: in f16[N, Q], zeros: in u8[N, Q], low: in bf16[R, H], high: in bf16[R, H],
               y: out f16[M, N])
    where Q == ceil_div(H, 64), R == 16 * ceil_div(M, 8)
{
    grid (n in tiles(N, 64), m in tiles(M, 8));
    let at  = 16 * m.index;
    let sum = tile Vec<f32, n, 16>;
    let acc = tile Acc<f32, n, 16>;
    sum = 0.0;
    for g in tiles(H, 64) {
        let w = Vec(W.tile(n, g));
        let z = f32(Vec(col(zeros[_, g.index]).tile(n, _)));
        let s = f32(Vec(col(scales[_, g.index]).tile(n, _)));
        TMATMUL(acc, Left(bf16(f32(w & 0x0F) - z)), Right(low[at..at + 16, _].T.tile(g, _)));
        TMATMUL_ACC(acc, acc, Left(bf16(f32(w >> 4) - z)), Right(high[at..at + 16, _].T.tile(g, _)));
        sum += Vec(acc) * s;
    }
    TSTORE(y.tile(m, n), transpose(f16(sum[_, 0..m.len] + sum[_, 8..8 + m.len])));
}";

/// Weights of 8 bits with a scale for each group, rounded to halves.
const BYTES: &str = "
kernel bytes(x: in f16[M, K], W: in i8[N, K], scales: in f16[N, Q], y: out f16[M, N])
    where Q == ceil_div(K, 128)
{
    grid (n in tiles(N, 64), m in tiles(M, 32));
    let acc = tile Acc<f32, n, m>;
    acc = 0.0;
    for g in tiles(K, 128) {
        let s = f32(Vec(col(scales[_, g.index]).tile(n, _)));
        TMATMUL_ACC(acc, acc, Left(f16(f32(Vec(W.tile(n, g))) * s)), Right(x.T.tile(g, m)));
    }
    TSTORE(y.tile(m, n), transpose(f16(Vec(acc))));
}";

/// Numbers of 16 and of 32 bits, in lines of several parts.
const GATED: &str = "
kernel gated<type T = f16>(a: in T[M, K], b: in f32[M, K], x: in f16[K, N], y: out f32[M, N]) {
    grid (m in tiles(M, 64), n in tiles(N, 32));
    let acc = tile Acc<f32, m, n>;
    acc = 0.0;
    for k in tiles(K, 64) {
        TMATMUL_ACC(acc, acc, Left(f16(f32(Vec(a.tile(m, k))) * Vec(b.tile(m, k)))), Right(x.tile(k, n)));
    }
    TSTORE(y.tile(m, n), acc);
}";

/// Half bytes in logical order, undone by composition, and halves as they lie.
const NATURAL: &str = "
kernel natural<const ORDER: layout = (2, 4):(4, 1)>
              (x: in f16[M, K], W: in u8[N, H], scales: in f16[N, Q], zeros: in u8[N, Q], y: out f16[M, N])
    where K == 2 * H, K % 8 == 0, Q == ceil_div(K, 128)
{
    grid (n in tiles(N, 64), m in tiles(M, 16));
    let weights = composition(recast<u4>(W), <_, logical_product(ORDER, 2 * H / size(ORDER))>);
    let sum = tile Vec<f32, n, m>;
    let acc = tile Acc<f32, n, m>;
    sum = 0.0;
    for g in tiles(K, 128) {
        let z = f32(Vec(col(zeros[_, g.index]).tile(n, _)));
        let s = f32(Vec(col(scales[_, g.index]).tile(n, _)));
        TMATMUL(acc, Left(f16(f32(Vec(weights.tile(n, g))) - z)), Right(x.T.tile(g, m)));
        sum += Vec(acc) * s;
    }
    TSTORE(y.tile(m, n), transpose(f16(sum)));
}";

fn built(text: &str, staged: usize) -> (Middle, Ptx) {
    let (middle, ptx) = build_unit(text, &[]).unwrap_or_else(|why| panic!("{why}\n{text}"));
    let found = find(&middle.prepared.placed.kernel, Target::builtin("sm90").expect("a target"));
    let found = found.unwrap_or_else(|why| panic!("it is not on the tensor cores: {why}\n{text}"));
    assert_eq!(found.loads.iter().filter(|l| l.staged).count(), staged);
    (middle, ptx)
}

fn check((middle, ptx): &(Middle, Ptx), name: &str, dims: &[(&str, i64)], tensors: &[Tensor]) {
    let want = middle.interpret_on_unit(dims, tensors).unwrap_or_else(|e| panic!("{name} {dims:?}: {e:?}"));
    let sizes: Vec<String> = dims.iter().map(|(n, v)| format!("{n}{v}")).collect();
    for seed in 1..3 {
        let bundle = format!("staged_{name}_{}_{seed}", sizes.join("_"));
        ptx.gives(dims, tensors, &want, (&bundle, seed)).unwrap_or_else(|why| panic!("{name} {dims:?}: {why}"));
    }
}

fn array(dtype: DType, shape: &[usize], seed: u64) -> Tensor {
    noise(dtype, shape, Content::Tame, seed)
}

fn zeros(dtype: DType, shape: &[usize]) -> Tensor {
    Tensor::zeros(dtype, shape).expect("small")
}

/// Bytes of all values.
fn any_bytes(dtype: DType, shape: &[usize]) -> Tensor {
    let bytes: Vec<u8> = (0..shape.iter().product::<usize>()).map(|n| (n * 151 + n / 7 + n / 251) as u8).collect();
    Tensor::from_bytes(dtype, shape, &bytes).expect("as many")
}

fn nibbles([m, n, h]: [usize; 3]) -> (Vec<(&'static str, i64)>, Vec<Tensor>) {
    let (q, r) = (h.div_ceil(64), 16 * m.div_ceil(8));
    let dims = [("N", n), ("H", h), ("Q", q), ("R", r), ("M", m)].map(|(d, v)| (d, v as i64));
    let arrays = vec![
        any_bytes(DType::U8, &[n, h]),
        array(DType::F16, &[n, q], 1),
        array(DType::U8, &[n, q], 2),
        array(DType::BF16, &[r, h], 3),
        array(DType::BF16, &[r, h], 4),
        zeros(DType::F16, &[m, n]),
    ];
    (dims.to_vec(), arrays)
}

#[test]
fn nibbles_become_factors() {
    let code = built(NIBBLES, 1);
    // The last one has rows that are no multiple of 16 bytes.
    for sizes in [[8, 64, 256], [5, 130, 160], [19, 64, 320], [9, 70, 72], [8, 64, 203]] {
        let (dims, arrays) = nibbles(sizes);
        check(&code, "nibbles", &dims, &arrays);
    }
}

#[test]
fn half_bytes_in_any_order() {
    let orders = ["(2, 4):(4, 1)", "8:1", "(2, 2, 2):(4, 2, 1)", "(2, 4):(1, 2)"];
    let texts = orders.map(|order| NATURAL.replace("= (2, 4):(4, 1)", &format!("= {order}")));
    let signed = NATURAL.replace("u4", "i4");
    // Differences of small integers are exact in f16, too.
    let narrow = NATURAL
        .replace("f16(f32(Vec(weights.tile(n, g))) - z)", "f16(Vec(weights.tile(n, g))) - z")
        .replace("let z = f32", "let z = f16");
    assert!(narrow.contains("let z = f16") && narrow.contains("g))) - z)"));
    for (n, text) in texts.iter().chain([&signed, &narrow]).enumerate() {
        let code = built(text, 1);
        for [m, n_, k] in [[16usize, 64, 512], [5, 130, 320], [19, 70, 144], [9, 65, 200]] {
            let q = k.div_ceil(128);
            let dims = [("M", m), ("K", k), ("N", n_), ("H", k / 2), ("Q", q)].map(|(d, v)| (d, v as i64));
            let arrays = [
                array(DType::F16, &[m, k], 1),
                any_bytes(DType::U8, &[n_, k / 2]),
                array(DType::F16, &[n_, q], 2),
                array(DType::U8, &[n_, q], 3),
                zeros(DType::F16, &[m, n_]),
            ];
            check(&code, &format!("natural{n}"), &dims, &arrays);
        }
    }
}

#[test]
fn bytes_become_factors() {
    let code = built(BYTES, 1);
    for [m, n, k] in [[32usize, 64, 512], [7, 100, 400], [40, 65, 144], [3, 64, 136]] {
        let q = k.div_ceil(128);
        let dims = [("M", m), ("K", k), ("N", n), ("Q", q)].map(|(d, v)| (d, v as i64));
        let arrays = [
            array(DType::F16, &[m, k], 1),
            any_bytes(DType::I8, &[n, k]),
            array(DType::F16, &[n, q], 2),
            zeros(DType::F16, &[m, n]),
        ];
        check(&code, "bytes", &dims, &arrays);
    }
}

/// An item of `std::quant`, as it stands.
fn of_library(begins: &str) -> &'static str {
    let text = include_str!("../../stdlib/quant.tile");
    let at = text.find(begins).unwrap_or_else(|| panic!("there is no `{begins}`"));
    let end = at + text[at..].find("\n}\n").expect("its end") + 3;
    &text[at..end]
}

/// The kernels of the library, of which parts of K are blocks: with and without zero points.
#[test]
fn kernels_of_the_library() {
    let text = [of_library("fn logical("), of_library("fn _is_order("), of_library("kernel gemm_nibbles<")].concat();
    let code = built(&text, 1);
    let found = find(&code.0.prepared.placed.kernel, Target::builtin("sm90").expect("a target")).expect("as above");
    assert!(!found.whole.is_empty(), "groups divide K");
    for [m, n, q] in [[16usize, 64, 8], [5, 130, 11], [19, 70, 3]] {
        let (k, s) = (128 * q, q.div_ceil(8));
        let dims = [("M", m), ("K", k), ("N", n), ("H", k / 2), ("Q", q), ("S", s)].map(|(d, v)| (d, v as i64));
        let arrays = [
            array(DType::F16, &[m, k], 1),
            any_bytes(DType::U8, &[n, k / 2]),
            array(DType::F16, &[n, q], 2),
            zeros(DType::F32, &[s, m, n]),
        ];
        check(&code, "gemm_nibbles", &dims, &arrays);
    }
    let code = built(of_library("kernel gemm_integers<"), 1);
    for [m, n, q] in [[16usize, 64, 8], [5, 130, 9]] {
        let (k, s) = (128 * q, q.div_ceil(8));
        let dims = [("M", m), ("K", k), ("N", n), ("Q", q), ("S", s)].map(|(d, v)| (d, v as i64));
        let arrays = [
            array(DType::F16, &[m, k], 1),
            any_bytes(DType::I8, &[n, k]),
            array(DType::F16, &[n, q], 2),
            zeros(DType::F32, &[s, m, n]),
        ];
        check(&code, "gemm_integers", &dims, &arrays);
    }
}

/// Sums, differences and products of f16, of tiles, columns and rows, with numbers of all kinds.
#[test]
fn two_halves_at_once() {
    let text = "
kernel halves(a: in f16[M, K], b: in f16[M, K], c: in f16[M], r: in f16[K], x: in f16[K, N], y: out f32[M, N]) {
    grid (m in tiles(M, 64), n in tiles(N, 32));
    let acc = tile Acc<f32, m, n>;
    acc = 0.0;
    let by = Vec(col(c).tile(m, _));
    for k in tiles(K, 64) {
        let t = (Vec(a.tile(m, k)) - by) * Vec(b.tile(m, k)) + Vec(r.tile(k));
        TMATMUL_ACC(acc, acc, Left(t), Right(x.tile(k, n)));
    }
    TSTORE(y.tile(m, n), acc);
}";
    let code = built(text, 2);
    for ([m, n, k], content) in
        [([64usize, 32usize, 192usize], Content::Tame), ([70, 40, 152], Content::Wild), ([65, 24, 128], Content::Tame)]
    {
        let dims = [("M", m), ("K", k), ("N", n)].map(|(d, v)| (d, v as i64));
        let of = |shape: &[usize], seed| noise(DType::F16, shape, content, seed);
        let arrays = [
            of(&[m, k], 1),
            of(&[m, k], 2),
            of(&[m], 3),
            of(&[k], 4),
            array(DType::F16, &[k, n], 5),
            zeros(DType::F32, &[m, n]),
        ];
        check(&code, "halves", &dims, &arrays);
    }
}

/// Differences of bytes with and without signs, by tiles and columns, in one subtraction; not of what was changed since
/// it was converted, on either way.
#[test]
fn differences_of_bytes() {
    let kernel = |change: &str| {
        format!(
            "
kernel less(w: in i8[M, K], v: in u8[M, K], z: in u8[M], d: in i8[M], x: in f16[K, N], y: out f32[M, N]) {{
    grid (m in tiles(M, 64), n in tiles(N, 32));
    let acc = tile Acc<f32, m, n>;
    acc = 0.0;
    let by = f16(Vec(col(z).tile(m, _)));
    for k in tiles(K, 64) {{
        let t = f16(Vec(w.tile(m, k)));
        let u = f16(Vec(v.tile(m, k)));
        {change}
        TMATMUL_ACC(acc, acc, Left(t - by), Right(x.tile(k, n)));
        TMATMUL_ACC(acc, acc, Left(u - f16(Vec(col(d).tile(m, _)))), Right(x.tile(k, n)));
        TMATMUL_ACC(acc, acc, Left(u - t), Right(x.tile(k, n)));
    }}
    TSTORE(y.tile(m, n), acc);
}}"
        )
    };
    for change in ["", "t = t * u;", "if k.index % 2 == 1 { t = t * u; }", "u = t;"] {
        let code = built(&kernel(change), 2);
        for [m, n, k] in [[64usize, 32usize, 192usize], [70, 40, 320]] {
            let dims = [("M", m), ("K", k), ("N", n)].map(|(d, v)| (d, v as i64));
            let arrays = [
                any_bytes(DType::I8, &[m, k]),
                any_bytes(DType::U8, &[m, k]),
                any_bytes(DType::U8, &[m]),
                any_bytes(DType::I8, &[m]),
                array(DType::F16, &[k, n], 5),
                zeros(DType::F32, &[m, n]),
            ];
            check(&code, &format!("less_{}", change.len()), &dims, &arrays);
        }
    }
}

#[test]
fn numbers_of_two_and_four_bytes() {
    for (ty, dtype) in [("f16", DType::F16), ("f32", DType::F32)] {
        let code = built(&GATED.replace("T = f16", &format!("T = {ty}")), 2);
        for [m, n, k] in [[64, 32, 192], [70, 40, 152], [65, 24, 90]] {
            let dims = [("M", m), ("K", k), ("N", n)].map(|(d, v)| (d, v as i64));
            let arrays = [
                array(dtype, &[m, k], 1),
                array(DType::F32, &[m, k], 2),
                array(DType::F16, &[k, n], 3),
                zeros(DType::F32, &[m, n]),
            ];
            check(&code, &format!("gated_{ty}"), &dims, &arrays);
        }
    }
}

/// Every barrier, wait, fence, commit and arrival is needed.
#[test]
fn nothing_can_be_left_out() {
    let (middle, ptx) = built(NIBBLES, 1);
    let all = deletions(&ptx.code.kernel);
    let mut missed: Vec<bool> = vec![true; all.len()];
    for sizes in [[8, 64, 448], [8, 64, 396]] {
        let (dims, arrays) = nibbles(sizes);
        let want = middle.interpret_on_unit(&dims, &arrays).unwrap_or_else(|e| panic!("{e:?}"));
        for ((_, kernel), missed) in all.iter().zip(&mut missed).filter(|(_, missed)| **missed) {
            let without = ptx.with_kernel(kernel.clone());
            *missed = !(0..12).any(|seed| without.gives(&dims, &arrays, &want, ("deleted", seed)).is_err());
        }
    }
    assert!(all.len() >= 20, "{}", all.len());
    let kept: Vec<&String> = all.iter().zip(&missed).filter(|(_, m)| **m).map(|((name, _), _)| name).collect();
    // A right operand comes behind the one of its step that comes first, and their slots are free together; both
    // products of a step are waited for at once.
    let of = |text: &str| kept.iter().filter(|name| name.contains(text)).count();
    assert_eq!([of("bar.sync 2, 128"), of("try_wait"), of("commit_group")], [2, 1, 1], "{kept:?}");
    assert_eq!(kept.len(), 4, "{kept:?}");
}

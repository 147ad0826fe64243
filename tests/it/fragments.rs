//! Kernels with products on the tensor cores that are no plain product: the reference interpreter's bits with parts of
//! k, sizes and conditions that a block reads from memory, left operands that are computed of what threads load,
//! blocks of few rows, and conditions that are checked.

use crate::deletions::deletions;
use crate::engine::{Content, Middle, noise};
use crate::ptx::{Ptx, build_unit};
use ptoc_isa::Target;
use ptoc_opt::fragments::find;
use ptoc_tensor::{DType, Tensor};

type Dims<'a> = [(&'a str, i64)];

fn built(text: &str) -> (Middle, Ptx) {
    let (middle, ptx) = build_unit(text, &[]).unwrap_or_else(|why| panic!("{why}\n{text}"));
    let found = find(&middle.prepared.placed.kernel, Target::builtin("sm90").expect("a target"));
    assert!(found.is_ok(), "it is not on the tensor cores: {:?}\n{text}", found.err());
    (middle, ptx)
}

/// A launch has the interpreter's bits, or its failure, in some orders.
fn check((middle, ptx): &(Middle, Ptx), name: &str, dims: &Dims<'_>, tensors: &[Tensor]) {
    let sizes: Vec<String> = dims.iter().map(|(n, v)| format!("{n}{v}")).collect();
    let want = middle.interpret_on_unit(dims, tensors).unwrap_or_else(|e| panic!("{name} {dims:?}: {e:?}"));
    for seed in 1..3 {
        let bundle = format!("fragments_{name}_{}_{seed}", sizes.join("_"));
        ptx.gives(dims, tensors, &want, (&bundle, seed)).unwrap_or_else(|why| panic!("{name} {dims:?}: {why}"));
    }
}

fn array(dtype: DType, shape: &[usize], seed: u64) -> Tensor {
    noise(dtype, shape, Content::Tame, seed)
}

fn zeros(dtype: DType, shape: &[usize]) -> Tensor {
    Tensor::zeros(dtype, shape).expect("small")
}

/// Some numbers as an array of i32.
fn numbers(of: &[i32]) -> Tensor {
    let bytes: Vec<u8> = of.iter().flat_map(|n| n.to_le_bytes()).collect();
    Tensor::from_bytes(DType::I32, &[of.len()], &bytes).expect("as many")
}

const PARTS: &str = "
kernel parts(A: in f16[M, K], B: in f16[K, N], P: out f32[S, M, N])
    where S >= 1
{
    grid (s in 0..S, m in tiles(M, 64), n in tiles(N, 32));
    let acc = tile Acc<f32, m, n>;
    let steps = ceil_div(K, 64);
    let all = tiles(K, 64);
    acc = 0.0;
    pipeline(stages = 3) for i in steps * s / S..steps * (s + 1) / S {
        let k = all[i];
        TMATMUL_ACC(acc, acc, Left(A.tile(m, k)), Right(B.tile(k, n)));
    }
    TSTORE(P[s, _, _].tile(m, n), acc);
}";

/// Parts of k, by bulk copies and element by element; tails in all directions; more parts than steps; no k at all.
#[test]
fn parts_of_k() {
    let code = built(PARTS);
    for [m, n, k, s] in [[64, 32, 256, 2], [72, 40, 328, 3], [67, 33, 97, 2], [65, 64, 64, 3], [3, 8, 0, 2]] {
        let dims = [("M", m as i64), ("K", k as i64), ("N", n as i64), ("S", s as i64)];
        let arrays = [array(DType::F16, &[m, k], 1), array(DType::F16, &[k, n], 2), zeros(DType::F32, &[s, m, n])];
        check(&code, "parts", &dims, &arrays);
    }
    let turned = PARTS.replace("A: in f16[M, K]", "A: in f16[K, M]").replace("A.tile(m, k)", "A.T.tile(m, k)");
    let turned = turned.replace("B: in f16[K, N]", "B: in f16[N, K]").replace("B.tile(k, n)", "B.T.tile(k, n)");
    let code = built(&turned);
    for [m, n, k, s] in [[72, 40, 328, 3], [67, 33, 97, 2]] {
        let dims = [("K", k as i64), ("M", m as i64), ("N", n as i64), ("S", s as i64)];
        let arrays = [array(DType::F16, &[k, m], 1), array(DType::F16, &[n, k], 2), zeros(DType::F32, &[s, m, n])];
        check(&code, "turned_parts", &dims, &arrays);
    }
}

/// Products that are no plain ones by what comes behind them, or by their shapes.
#[test]
fn what_follows_a_product() {
    let text = |[m, n]: [u32; 2], rest: &str| {
        format!(
            "kernel product(a: in f16[M, K], b: in f16[K, N], c: out f32[M, N]) {{
                 grid (m in tiles(M, {m}), n in tiles(N, {n}));
                 let acc = tile Acc<f32, m, n>;
                 acc = 0.0;
                 for k in tiles(K, 64) {{ TMATMUL_ACC(acc, acc, Left(a.tile(m, k)), Right(b.tile(k, n))); }}
                 TSTORE(c.tile(m, n), {rest});
             }}"
        )
    };
    for text in [text([64, 64], "rowmax(Vec(acc)) - Vec(acc)"), text([32, 48], "acc"), text([16, 80], "Vec(acc) * 2.0")]
    {
        let code = built(&text);
        for [m, n, k] in [[70, 72, 96], [33, 81, 50]] {
            let dims = [("M", m as i64), ("K", k as i64), ("N", n as i64)];
            let arrays = [array(DType::F16, &[m, k], 1), array(DType::F16, &[k, n], 2), zeros(DType::F32, &[m, n])];
            check(&code, "followed", &dims, &arrays);
        }
    }
}

/// What lies beyond the depth of a problem, inside of its arrays, is no number: nothing of it is multiplied.
#[test]
fn problems_with_sizes_of_their_own() {
    let code = built(
        "kernel grouped(A: in bf16[G, M, K], B: in bf16[G, K, N], ms: in i32[G], ks: in i32[G], D: inout f32[G, M, N])
             where 0 <= ms[g] && ms[g] <= M, 0 <= ks[g] && ks[g] <= K
         {
             grid (g in 0..G, i in 0..ceil_div(M, 128), n in tiles(N, 64));
             let rows = tiles(min(index(ms[g]), M), 128);
             if i < rows.count {
                 let m = rows[i];
                 let acc = tile Acc<f32, m, n>;
                 acc = 0.0;
                 pipeline(stages = 2) for k in tiles(min(index(ks[g]), K), 64) {
                     TMATMUL_ACC(acc, acc, Left(A[g, _, _].tile(m, k)), Right(B[g, _, _].tile(k, n)));
                 }
                 TSTORE(D[g, _, _].tile(m, n), max(Vec(acc), 0.0));
             }
         }",
    );
    for [m, n, k] in [[200, 72, 136], [130, 33, 97]] {
        let (mut a, mut b) = (array(DType::BF16, &[3, m, k], 1), array(DType::BF16, &[3, k, n], 2));
        let depths = [k, k / 2 + 1, 0];
        let nan = 0x7fc0u16.to_le_bytes();
        for (g, depth) in depths.iter().enumerate() {
            for at in *depth..k {
                (0..m).for_each(|row| a.bytes_mut()[2 * ((g * m + row) * k + at)..][..2].copy_from_slice(&nan));
                (0..n).for_each(|col| b.bytes_mut()[2 * ((g * k + at) * n + col)..][..2].copy_from_slice(&nan));
            }
        }
        let rows = numbers(&[m as i32, 0, (m / 2) as i32]);
        let ks = numbers(&depths.map(|k| k as i32));
        let dims = [("G", 3), ("M", m as i64), ("K", k as i64), ("N", n as i64)];
        check(&code, "grouped", &dims, &[a, b, rows, ks, array(DType::F32, &[3, m, n], 3)]);
    }
}

/// The left operand is made of what threads load: rows of f16, a column and a row of f32, a row of i32; columns are
/// stored, too.
#[test]
fn operands_of_loaded_tiles() {
    let text = "
kernel normed(x: in f16[M, 64], gain: in f32[64], shift: in f32[M, 1], w: in f16[B, 64, 32], y: out f32[M, 32],
              r: out f32[M, 1])
{
    grid (m in tiles(M, ROWS));
    let rows = f32(Vec(x.tile(m, _)));
    let scale = rsqrt(rowsum(rows * rows) / 64.0 + 1e-5);
    let left = Left(f16(rows * scale * Vec(gain) + Vec(shift.tile(m, _))));
    TSTORE(r.tile(m, _), scale);
    let all = tile Vec<f32, m, 32>;
    all = 0.0;
    for b in 0..B { all = all + Vec(matmul(left, Right(w[b, _, _]))); }
    TSTORE(y.tile(m, _), all);
}";
    for rows in ["64", "128", "16", "32"] {
        let text = text.replace("ROWS", rows);
        let code = built(&text);
        for [m, b] in [[64, 1], [131, 3], [5, 2]] {
            let dims = [("M", m as i64), ("B", b as i64)];
            let arrays = [
                array(DType::F16, &[m, 64], 1),
                array(DType::F32, &[64], 2),
                array(DType::F32, &[m, 1], 3),
                array(DType::F16, &[b, 64, 32], 4),
                zeros(DType::F32, &[m, 32]),
                zeros(DType::F32, &[m, 1]),
            ];
            check(&code, &format!("normed{rows}"), &dims, &arrays);
        }
    }
}

/// A condition that fails in some blocks: the first of them is told, as by the interpreter.
#[test]
fn conditions_that_fail() {
    let (middle, ptx) = built(
        "kernel steps(A: in f16[M, K], B: in f16[K, N], at: in i32[S], P: out f32[S, M, N])
         {
             grid (s in 0..S, m in tiles(M, 64), n in tiles(N, 32));
             let steps = tiles(K, 64);
             let k = steps[index(at[s])];
             let acc = tile Acc<f32, m, n>;
             acc = 0.0;
             for j in 0..2 {
                 TMATMUL_ACC(acc, acc, Left(A.tile(m, k)), Right(B.tile(k, n)));
             }
             TSTORE(P[s, _, _].tile(m, n), acc);
         }",
    );
    let [m, n, k, s] = [70, 40, 200, 4];
    let dims = [("M", m as i64), ("K", k as i64), ("N", n as i64), ("S", s as i64)];
    // Four blocks of the result for each part.
    for (at, fails) in [([0, 3, 1, 2], None), ([0, 4, 9, 1], Some((4, 4))), ([1, 2, 3, -1], Some((12, -1)))] {
        let arrays =
            [array(DType::F16, &[m, k], 1), array(DType::F16, &[k, n], 2), numbers(&at), zeros(DType::F32, &[s, m, n])];
        let want = middle.interpret_on_unit(&dims, &arrays);
        assert_eq!(want.is_err(), fails.is_some(), "{at:?}: {want:?}");
        for seed in 1..4 {
            match (&want, fails) {
                (Ok(want), _) => {
                    ptx.gives(&dims, &arrays, want, ("conditions", seed)).unwrap_or_else(|e| panic!("{at:?}: {e}"));
                }
                (Err(_), Some((block, number))) => {
                    let ended = ptx.run(&dims, &arrays, seed).unwrap_or_else(|e| panic!("{at:?}: {e}"));
                    let said = ended.expect_err("it fails");
                    let (block, number) = (format!("block: Some({block})"), number.to_string());
                    assert!(said.contains(&block) && said.contains(&number), "{at:?}: {said}");
                }
                (Err(_), None) => {}
            }
        }
    }
}

/// Every barrier, wait, fence, commit and arrival is needed, with windows by bulk copies and by elements in one launch.
#[test]
fn nothing_can_be_left_out() {
    let (middle, ptx) = built(PARTS);
    let all = deletions(&ptx.code.kernel);
    let mut missed: Vec<bool> = vec![true; all.len()];
    for [m, n, k, s] in [[70, 40, 520, 2], [67, 40, 393, 2], [70, 33, 512, 2]] {
        let dims = [("M", m as i64), ("K", k as i64), ("N", n as i64), ("S", s as i64)];
        let arrays = [array(DType::F16, &[m, k], 1), array(DType::F16, &[k, n], 2), zeros(DType::F32, &[s, m, n])];
        let want = middle.interpret_on_unit(&dims, &arrays).unwrap_or_else(|e| panic!("{e:?}"));
        for ((_, kernel), missed) in all.iter().zip(&mut missed).filter(|(_, missed)| **missed) {
            let without = ptx.with_kernel(kernel.clone());
            *missed = !(0..24).any(|seed| without.gives(&dims, &arrays, &want, ("deleted", seed)).is_err());
        }
    }
    assert!(all.len() >= 20, "{}", all.len());
    let kept: Vec<&String> = all.iter().zip(&missed).filter(|(_, m)| **m).map(|((name, _), _)| name).collect();
    // A right operand comes behind the left one of its step, and their slots are free together: one of both waits for a
    // slot, by elements.
    assert!(kept.len() == 2 && kept[0] == "bar.sync 2, 128 #3", "{kept:?}");
    assert!(kept[1].contains("try_wait") && kept[1].contains("+65632]"), "{kept:?}");
}

/// The source of decode attention over a paged cache, as it stands.
fn paged(bn: u32) -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/language/paged_attention.tile");
    let step = concat!(env!("CARGO_MANIFEST_DIR"), "/language/attention.tile");
    let text = std::fs::read_to_string(path).expect("a source");
    let step = std::fs::read_to_string(step).expect("a source");
    let at = step.find("fn softmax_step").expect("it is there");
    let end = at + step[at..].find("\n}\n").expect("its end") + 3;
    let text = text.replace("use attention::softmax_step;", &step[at..end]);
    assert!(text.contains("const BN = 64 tune [64, 128]"));
    text.replace("const BN = 64 tune [64, 128]", &format!("const BN = {bn}"))
}

/// Pages by bulk copies: lengths of all kinds, an empty sequence, pages in any order; an entry that is none is told
/// with its place, unless nobody looks at it.
#[test]
fn pages_of_a_cache() {
    let (b, hk, g, d, p, np, most) = (3usize, 2, 8, 128, 16, 40, 12usize);
    for bn in [64, 128] {
        let code = built(&paged(bn));
        let dims = [("B", b as i64), ("HK", hk as i64), ("NP", np as i64), ("MAXP", most as i64)];
        let table: Vec<i32> = (0..b * most).map(|n| (n * 7 % np) as i32).collect();
        let launch = |table: &[i32], lens: &[i32]| {
            let table = Tensor::from_bytes(DType::I32, &[b, most], numbers(table).bytes()).expect("as many");
            vec![
                array(DType::F16, &[b, hk, g, d], 1),
                array(DType::F16, &[np, p, hk, d], 2),
                array(DType::F16, &[np, p, hk, d], 3),
                table,
                numbers(lens),
                zeros(DType::F16, &[b, hk, g, d]),
            ]
        };
        for lens in [[192, 64, 1], [65, 0, 130], [17, 128, 63]] {
            check(&code, &format!("paged{bn}"), &dims, &launch(&table, &lens));
        }
        // The second sequence has an entry that is none: in a page that nobody looks at; in its last one.
        for (length, entry, fails) in [(64, 41, false), (80, 40, true), (80, -1, true)] {
            let mut table = table.clone();
            table[most + 4] = entry;
            let arrays = launch(&table, &[192, length, 1]);
            let want = code.0.interpret_on_unit(&dims, &arrays);
            assert_eq!(want.is_err(), fails, "{length} {entry}: {want:?}");
            if !fails {
                check(&code, &format!("missing{bn}"), &dims, &arrays);
                continue;
            }
            for seed in 1..4 {
                let ended = code.1.run(&dims, &arrays, seed).unwrap_or_else(|e| panic!("{length} {entry}: {e}"));
                let said = ended.expect_err("it fails");
                let (args, block) = (format!("args: [{entry}, 40, 1, 4]"), "block: Some(2)");
                assert!(said.contains(&args) && said.contains(block), "{length} {entry}: {said}");
            }
        }
    }
}

/// One kernel of `examples/attention_backward.tile`, with these shapes.
fn backward(name: &str, [d, bm, bn]: [u32; 3], causal: bool) -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/attention_backward.tile");
    let text = std::fs::read_to_string(path).expect("a source");
    let items = text.split("\n}\n").map(|item| format!("{item}\n}}\n"));
    let wanted = |item: &String| item.contains("\nfn ") || item.contains(&format!("\nkernel {name}<"));
    let mut text: String = items.filter(wanted).collect();
    let value = |text: &str, name: &str, value: String| {
        let (at, old) = (text.find(&format!("const {name} = ")).expect("it is there"), text);
        let end = at + old[at..].find([',', '>']).expect("its end");
        let rest = old[end..].trim_start_matches(|c: char| !matches!(c, ',' | '>'));
        format!("{}const {name} = {value}{rest}", &old[..at])
    };
    // Lists for the tuner are no part of a value.
    while let Some(at) = text.find(" tune [") {
        let end = at + text[at..].find(']').expect("its end") + 1;
        text.replace_range(at..end, "");
    }
    for (name, n) in [("D", d), ("BM", bm), ("BN", bn)] {
        text = value(&text, name, n.to_string());
    }
    value(&text, "CAUSAL", causal.to_string())
}

/// The gradients of attention: numbers of queries as rows and as columns, a logarithm, two sums that go on for a loop.
#[test]
fn gradients_of_attention() {
    for (shape, causal) in [([64, 32, 64], true), ([32, 64, 64], false), ([128, 32, 64], true)] {
        let [forward, keys, queries] = ["forward", "of_keys", "of_queries"].map(|k| built(&backward(k, shape, causal)));
        for [h, m, n] in [[1, 64, 64], [2, 67, 83]] {
            let (d, f16) = (shape[0] as usize, DType::F16);
            let dims = [("H", h as i64), ("M", m as i64), ("N", n as i64)];
            let [q, k, v, above] = [(m, 1), (n, 2), (n, 3), (m, 4)].map(|(rows, s)| array(f16, &[h, rows, d], s));
            let [l, delta] = [5, 6].map(|s| array(DType::F32, &[h, m, 1], s));
            let [of_m, of_n] = [m, n].map(|rows| zeros(f16, &[h, rows, d]));
            let arrays = [q.clone(), k.clone(), v.clone(), of_m.clone(), zeros(DType::F32, &[h, m, 1])];
            check(&forward, "forward", &dims, &arrays);
            let inputs = [q, k, v, above, l, delta];
            check(&keys, "of_keys", &dims, &[&inputs[..], &[of_n.clone(), of_n]].concat());
            check(&queries, "of_queries", &dims, &[&inputs[..], &[of_m]].concat());
        }
    }
}

/// A file of `examples` that has several kernels, with all but one left out.
fn only(file: &str, name: &str) -> String {
    let path = format!("{}/../examples/{file}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).expect("a source");
    let items = text.split("\n}\n").map(|item| format!("{item}\n}}\n"));
    let wanted = |item: &String| item.contains("\nfn ") || item.contains(&format!("kernel {name}<"));
    items.filter(wanted).collect()
}

/// Products whose schedules are written out, with roles, rings, flags and transaction barriers, double buffers at fixed
/// addresses: they mean a product, and have its bits.
#[test]
fn schedules_that_are_written_out() {
    for (file, name) in [
        ("schedules.tile", "basic"),
        ("schedules.tile", "pingpong"),
        ("schedules.tile", "cooperative"),
        ("pingpong.tile", "pingpong"),
    ] {
        let text = only(file, name);
        let code = build_unit(&text, &[]).unwrap_or_else(|why| panic!("{why}\n{text}"));
        let (middle, ptx) = (&code.0, &code.1);
        let multiplies = ptx.code.kernel.insts().any(|i| matches!(i.op, ptoc_ptx::Op::Sm90(ptoc_ptx::Sm90::Wgmma(_))));
        let why = find(&middle.prepared.placed.kernel, Target::builtin("sm90").expect("a target")).err();
        assert!(multiplies, "{file} {name} is not on the tensor cores: {why:?}");
        let f16 = DType::F16;
        for [m, n, k] in [[64, 64, 64], [130, 200, 264], [67, 65, 97], [1, 320, 128]] {
            let dims = [("M", m as i64), ("K", k as i64), ("N", n as i64)];
            let arrays = [array(f16, &[m, k], 1), array(f16, &[k, n], 2), zeros(DType::F32, &[m, n])];
            check(&code, name, &dims, &arrays);
        }
    }
}

/// A kernel of `std::sparse`, for factors of f16.
fn sparse(name: &str, split: u32) -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../stdlib/sparse.tile");
    let text = std::fs::read_to_string(path).expect("a source");
    let item = text.split("\n}\n").find(|item| item.contains(&format!("kernel {name}<"))).expect("it is there");
    let item = item[item.find("kernel ").expect("it begins so")..].to_owned() + "\n}\n";
    let attribute = if name == "_masked" { "#[disjoint(part, \"order is a permutation\")]\n" } else { "" };
    let item = item.replace("type T = f32", "type T = f16").replace("SPLIT = 1", &format!("SPLIT = {split}"));
    format!("{attribute}{item}").replace("kernel _", "kernel ")
}

/// Rows that a table lists, zeros where there is none; results that go where a table says; an entry that is none is
/// told.
#[test]
fn rows_by_number() {
    let none = -1;
    for split in [1, 3] {
        let (gathered, masked) = (built(&sparse("_gathered", split)), built(&sparse("_masked", split)));
        for [n, m, ci, co, v] in [[90, 70, 64, 40, 3], [30, 130, 72, 64, 2], [20, 33, 19, 8, 2]] {
            let map: Vec<i32> = (0..m * v).map(|i| if i % 3 == 1 { none } else { (i * 7 % n) as i32 }).collect();
            let u32s = |of: &[i32], shape: &[usize]| {
                Tensor::from_bytes(DType::U32, shape, numbers(of).bytes()).expect("as many")
            };
            let (feats, weight) = (array(DType::F16, &[n, ci], 1), array(DType::F16, &[co, v, ci], 2));
            let dim = |name, n: usize| (name, n as i64);
            let part = zeros(DType::F32, &[split as usize, m, co]);
            let dims = [dim("N", n), dim("Ci", ci), dim("Co", co), dim("V", v), dim("M", m)];
            let arrays = [feats.clone(), weight.clone(), u32s(&map, &[m, v]), part.clone()];
            check(&gathered, &format!("gathered{split}"), &dims, &arrays);
            // Every block has all positions but the first has none.
            let blocks = m.div_ceil(64);
            let seg: Vec<i32> = (0..=blocks).map(|b| (b.saturating_sub(1) * v) as i32).collect();
            let list: Vec<i32> = (0..(blocks - 1) * v).map(|p| (p % v) as i32).collect();
            let list = if list.is_empty() { vec![0] } else { list };
            let mut order: Vec<i32> = (0..m as i32).rev().collect();
            let dims = [&dims[..], &[dim("L", list.len())]].concat();
            let launch = |order: &[i32]| {
                [
                    feats.clone(),
                    weight.clone(),
                    u32s(order, &[m]),
                    u32s(&map, &[v, m]),
                    u32s(&seg, &[blocks + 1]),
                    u32s(&list, &[list.len()]),
                    part.clone(),
                ]
            };
            check(&masked, &format!("masked{split}"), &dims, &launch(&order));
            order[m - 2] = m as i32;
            let arrays = launch(&order);
            assert!(masked.0.interpret_on_unit(&dims, &arrays).is_err());
            let said = masked.1.run(&dims, &arrays, 5).unwrap_or_else(|e| panic!("{e}")).expect_err("it fails");
            let args = format!("args: [{m}, {m}, {}]", m - 2);
            assert!(said.contains(&args), "{said}");
        }
    }
}

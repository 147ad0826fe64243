//! Products in a row on the tensor cores: attention from the sources of `examples` and of `tests/language` has the bits
//! of the reference interpreter in PTX's, at odd lengths, with a mask and without; what else is row by row between
//! products as well; what does not fit says why, and has the sums of chains.

use crate::deletions::deletions;
use crate::engine::{Content, Middle, noise};
use crate::ptx::{Ptx, build_unit};
use ptoc_ir::tile::Op as TileOp;
use ptoc_isa::{Sem, Target};
use ptoc_opt::fragments::find;
use ptoc_ptx::{Op, Sm90};
use ptoc_tensor::{DType, Tensor};
use ptoc_tests_budget::cases;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;

type Dims<'a> = [(&'a str, i64)];

fn target() -> &'static Target {
    Target::builtin("sm90").expect("a target")
}

/// Whether the code has products with operands in registers.
fn chained(ptx: &Ptx) -> bool {
    ptx.code.kernel.insts().any(|inst| matches!(inst.op, Op::Sm90(Sm90::Wgmma(w)) if w.a_in_regs))
}

/// The text of a file of the repository whose parameters have these values where they are declared.
fn source(file: &str, values: &[(&str, &str)]) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut text = fs::read_to_string(root.join(file)).expect("a source");
    for (old, new) in values {
        assert!(text.contains(old), "{file} has no `{old}`");
        text = text.replace(old, new);
    }
    text
}

/// Attention of `examples`, with these static parameters.
fn example(dtype: &str, [d, bm, bn]: [u32; 3], causal: bool) -> String {
    let (d, bm, bn) = (format!("const D = {d},"), format!("const BM = {bm} tune"), format!("const BN = {bn} tune"));
    let (dtype, causal) = (format!("type T = {dtype},"), format!("const CAUSAL = {causal})"));
    let values = [
        ("type T = f16,", &dtype[..]),
        ("const D = 64,", &d),
        ("const BM = 64 tune", &bm),
        ("const BN = 64 tune", &bn),
        ("const CAUSAL = true>", &causal.replace(')', ">")),
    ];
    source("examples/attention.tile", &values)
}

/// Queries, keys, values and the result: [H, M, D], [H, N, D].
fn tensors(dtype: DType, [h, m, n, d]: [usize; 4], content: Content, seed: u64) -> Vec<Tensor> {
    let array = |rows, n| noise(dtype, &[h, rows, d], content, seed + n);
    vec![array(m, 0), array(n, 1), array(n, 2), Tensor::zeros(dtype, &[h, m, d]).expect("small")]
}

/// A launch has the interpreter's bits, in some orders.
fn check(
    (middle, ptx): &(Middle, Ptx),
    dims: &Dims<'_>,
    tensors: &[Tensor],
    seeds: std::ops::Range<u64>,
) -> Result<(), String> {
    let want = middle.interpret_on_unit(dims, tensors).map_err(|(code, why)| format!("{code}: {why}"))?;
    for seed in seeds {
        let sizes: Vec<String> = dims.iter().map(|(n, v)| format!("{n}{v}")).collect();
        let mut hasher = DefaultHasher::new();
        ptoc_ptx::print(&ptx.code.kernel).hash(&mut hasher);
        let name = format!("back_to_back_{:016x}_{}_{seed}", hasher.finish(), sizes.join("_"));
        ptx.gives(dims, tensors, &want, (&name, seed)).map_err(|why| format!("{dims:?}: {why}"))?;
    }
    Ok(())
}

fn built(text: &str) -> (Middle, Ptx) {
    let (middle, ptx) = build_unit(text, &[]).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let why = find(&middle.prepared.placed.kernel, target()).err();
    assert!(chained(&ptx), "it is not on the tensor cores: {why:?}\n{text}");
    (middle, ptx)
}

fn dims([h, m, n]: [usize; 3]) -> [(&'static str, i64); 3] {
    [("H", h as i64), ("M", m as i64), ("N", n as i64)]
}

/// One block of queries; tails of both; a chunk of a prompt; one token; more than one block, in some CTAs.
const SIZES: [[usize; 3]; 5] = [[1, 64, 64], [2, 67, 67], [1, 17, 133], [1, 1, 65], [2, 130, 200]];

#[test]
fn the_example_has_the_interpreters_bits() {
    let (f16, bf16) = (("f16", DType::F16), ("bf16", DType::BF16));
    for ((name, dtype), shape, causal) in [
        (f16, [64, 64, 64], true),
        (bf16, [128, 64, 64], false),
        (bf16, [64, 128, 64], true),
        (f16, [64, 64, 128], false),
        (bf16, [128, 64, 128], false),
    ] {
        let code = built(&example(name, shape, causal));
        for (n, size) in SIZES.into_iter().enumerate() {
            let [h, m, keys] = size;
            let arrays = tensors(dtype, [h, m, keys, shape[0] as usize], Content::Tame, n as u64);
            check(&code, &dims(size), &arrays, 1..2).unwrap_or_else(|e| panic!("{name} {shape:?} {causal}: {e}"));
        }
    }
}

/// Blocks of 128 queries fit the registers when tiles are fused, though not before: products start at what they are
/// added to.
#[test]
fn large_blocks() {
    for shape in [[128, 128, 64], [128, 64, 64], [64, 64, 128]] {
        let (middle, ptx) = built(&example("bf16", shape, false));
        let plan = find(&middle.prepared.placed.kernel, target()).expect("it is one");
        assert!(plan.registers <= 192, "{shape:?}: {}", plan.registers);
        let accumulates = |s: &ptoc_ir::tile::Stmt| {
            matches!(&s.op, TileOp::For(f) if f.body.iter().any(|s| {
                matches!(&s.op, TileOp::Inst(inst) if inst.instr.get().sem == Sem::MatmulAcc)
            }))
        };
        assert!(plan.kernel.body.iter().any(accumulates), "{}", plan.kernel);
        let (m, keys, d) = (130, 200, shape[0] as usize);
        let arrays = tensors(DType::BF16, [1, m, keys, d], Content::Tame, 5);
        check(&(middle, ptx), &dims([1, m, keys]), &arrays, 1..3).unwrap_or_else(|e| panic!("{shape:?}: {e}"));
    }
}

/// Blocks of fewer queries than a warp-group has rows: a few new tokens.
#[test]
fn few_queries() {
    for (rows, causal) in [(16, false), (32, true)] {
        let code = built(&example("bf16", [64, rows, 64], causal));
        for size in [[2, 16, 130], [1, 33, 70], [1, 1, 64]] {
            let [h, m, keys] = size;
            let arrays = tensors(DType::BF16, [h, m, keys, 64], Content::Tame, 7);
            check(&code, &dims(size), &arrays, 1..3).unwrap_or_else(|e| panic!("{rows} {causal}: {e}"));
        }
    }
}

/// Infinities, NaN, and numbers of all magnitudes, also among what the mask hides and what lies beyond a window.
#[test]
fn the_example_with_wild_numbers() {
    for causal in [true, false] {
        let code = built(&example("f16", [64, 64, 64], causal));
        for (n, size) in [[2, 67, 67], [1, 64, 70]].into_iter().enumerate() {
            let [h, m, keys] = size;
            let mut arrays = tensors(DType::F16, [h, m, keys, 64], Content::Tame, 3);
            arrays[2] = noise(DType::F16, &[h, keys, 64], Content::Wild, n as u64);
            check(&code, &dims(size), &arrays, 1..2).unwrap_or_else(|e| panic!("values, {causal}: {e}"));
            let arrays = tensors(DType::F16, [h, m, keys, 64], Content::Wild, n as u64);
            check(&code, &dims(size), &arrays, 1..2).unwrap_or_else(|e| panic!("{causal}: {e}"));
        }
    }
}

/// Another source of attention: batches, a function for a step of the softmax.
#[test]
fn another_attention() {
    for causal in ["true", "false"] {
        let causal = format!("const CAUSAL = {causal}>");
        let code = built(&source("tests/language/attention.tile", &[("const CAUSAL = true>", &causal)]));
        let dims = [("B", 2), ("H", 1), ("S", 100)];
        let array = |n| noise(DType::F16, &[2, 1, 100, 64], Content::Tame, n);
        let arrays = [array(1), array(2), array(3), Tensor::zeros(DType::F16, &[2, 1, 100, 64]).expect("small")];
        check(&code, &dims, &arrays, 1..3).unwrap_or_else(|e| panic!("{causal}: {e}"));
    }
}

/// What is no attention: two layers, of which the hidden one is never stored, by a sum that stays in the accumulator,
/// and by one beside it; minima of rows, and roots.
#[test]
fn other_kernels() {
    let layers = |rest: &str| {
        format!(
            "kernel layers(x: in f16[M, 64], w: in f16[H, 64], v: in f16[H, 32], y: out f32[M, 32]) {{
                 grid (m in tiles(M, 64));
                 let left = Left(x.tile(m, _));
                 {rest}
             }}"
        )
    };
    let sums = "let acc = tile Acc<f32, m, 32>;
                acc = 0.0;
                for h in tiles(H, 48) {
                    let hidden = Vec(matmul(left, Right(w.T.tile(_, h))));
                    TMATMUL_ACC(acc, acc, Left(f16(max(hidden, 0.0))), Right(v.tile(h, _)));
                }
                TSTORE(y.tile(m, _), acc);";
    let steps = "let total = tile Vec<f32, m, 32>;
                 total = 1.0;
                 for h in tiles(H, 16) {
                     let hidden = Vec(matmul(left, Right(w.T.tile(_, h))));
                     let scaled = sqrt(abs(hidden - rowmin(hidden)));
                     total = total - Vec(matmul(Left(f16(scaled)), Right(v.tile(h, _)))) / 3.0;
                 }
                 TSTORE(y.tile(m, _), total);";
    for text in [layers(sums), layers(steps)] {
        let code = built(&text);
        for (n, [m, h]) in [[64, 48], [67, 85], [1, 16]].into_iter().enumerate() {
            let array = |rows, cols, seed| noise(DType::F16, &[rows, cols], Content::Tame, seed + n as u64);
            let arrays = [
                array(m, 64, 1),
                array(h, 64, 2),
                array(h, 32, 3),
                Tensor::zeros(DType::F32, &[m, 32]).expect("small"),
            ];
            let dims = [("M", m as i64), ("H", h as i64)];
            check(&code, &dims, &arrays, 1..3).unwrap_or_else(|e| panic!("{e}\n{text}"));
        }
    }
}

/// Shapes, sizes and orders that look random.
#[test]
fn random_attention() {
    let mut x = 0x1234_5678_9abc_def1u64;
    let mut below = |n: u64| {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        x % n
    };
    for case in 0..cases::<u64>(3, 100) {
        let rows = 16 << below(4);
        // Tiles of 128 rows take all of the target's registers earlier.
        let shape = [16 * (1 + below(512 / rows.max(64))), rows, 16 * (1 + below(4))].map(|n| n as u32);
        let (name, dtype) = [("f16", DType::F16), ("bf16", DType::BF16)][below(2) as usize];
        let causal = below(2) == 0;
        let code = built(&example(name, shape, causal));
        let (m, more) = (1 + below(150) as usize, below(100) as usize);
        let size = [1 + below(2) as usize, m, if causal { m + more } else { 1 + more }];
        let content = if below(3) == 0 { Content::Wild } else { Content::Tame };
        let arrays = tensors(dtype, [size[0], size[1], size[2], shape[0] as usize], content, case);
        check(&code, &dims(size), &arrays, case..case + 1)
            .unwrap_or_else(|e| panic!("case {case}, {name} {shape:?} {causal}: {e}"));
    }
}

/// Every barrier, wait, fence, commit and arrival is needed: without it a launch is refused, or wrong, in one of some
/// orders.
#[test]
fn nothing_can_be_left_out() {
    let text = example("f16", [16, 64, 16], false);
    let (middle, ptx) = built(&text);
    let all = deletions(&ptx.code.kernel);
    let size = [3, 70, 90];
    let arrays = tensors(DType::F16, [3, 70, 90, 16], Content::Tame, 3);
    let want = middle.interpret_on_unit(&dims(size), &arrays).unwrap_or_else(|e| panic!("{e:?}"));
    let mut kept = Vec::new();
    for (name, kernel) in &all {
        let without = ptx.with_kernel(kernel.clone());
        let found = (0..24).any(|seed| without.gives(&dims(size), &arrays, &want, ("deleted", seed)).is_err());
        if !found {
            kept.push(name);
        }
    }
    assert!(all.len() >= 20, "{}", all.len());
    // The group of the product ahead: nobody waits for it without the other one of the iteration.
    kept.retain(|name| *name != "wgmma.commit_group.sync.aligned #2");
    assert!(kept.is_empty(), "{kept:?}");
}

/// What does not fit says why, and has the sums of chains.
#[test]
fn what_does_not_fit() {
    for (text, why) in [
        (example("f16", [64, 48, 64], false), "a block has 48 rows"),
        (example("f16", [24, 64, 64], false), "TLOAD of a part of a tile"),
    ] {
        let (middle, ptx) = build_unit(&text, &[]).unwrap_or_else(|e| panic!("{e}\n{text}"));
        let refused = find(&middle.prepared.placed.kernel, target()).map(|_| ()).expect_err("refused");
        assert!(refused.starts_with(why), "{refused}\n{text}");
        assert!(!chained(&ptx), "{text}");
        let d = if why.contains("part") { 24 } else { 64 };
        let arrays = tensors(DType::F16, [1, 20, 40, d], Content::Tame, 1);
        let chain = middle.interpret(&dims([1, 20, 40]), &arrays).unwrap_or_else(|e| panic!("{e:?}"));
        let same = middle.interpret_on_unit(&dims([1, 20, 40]), &arrays).unwrap_or_else(|e| panic!("{e:?}"));
        assert_eq!(chain[3].bytes(), same[3].bytes());
        ptx.gives(&dims([1, 20, 40]), &arrays, &chain, ("chain", 1)).unwrap_or_else(|e| panic!("{e}"));
    }
    // More than the registers of threads, fused or not.
    let refused = build_unit(&example("f16", [128, 64, 256], false), &[]).err().expect("too large");
    assert!(refused.contains("bytes of regs"), "{refused}");
    // Products of f32 do not ask for it.
    let (middle, _) = build_unit(&example("f32", [64, 64, 64], false), &[]).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(find(&middle.prepared.placed.kernel, target()).err(), Some(String::new()));
}

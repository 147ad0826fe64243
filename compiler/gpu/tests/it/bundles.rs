//! Launches whose time says something, as folders for a card: written only where `PTX_BUNDLES` names a folder for them.

use crate::bundle::{Array, Bundle, folder, options, write_code};
use crate::harness::{bound, examples, lines_of, lowered, with_stack};
use ptoc_gpu::{compile_kernel, extents};
use ptoc_ir::tile::TensorDir;
use ptoc_isa::Target;
use ptoc_tensor::DType;
use std::fs;
use std::path::PathBuf;

/// Launches whose time says something, by test lines.
const LARGE: &[(&str, &str)] = &[
    ("add", "add_auto interp M=8192 N=8192"),
    ("add", "add_auto interp T=f16 M=8192 N=8192"),
    ("elementwise", "map interp M=8192 N=8192 f=exponential"),
    ("elementwise", "map interp M=8192 N=8192 f=six"),
    ("softmax", "softmax interp M=16384 N=4096 BM=1 BN=1024"),
    ("softmax", "softmax interp M=16384 N=4096 BM=2"),
    ("softmax", "softmax interp M=16384 N=4096 BM=4"),
    ("softmax", "softmax interp M=4096 N=16384 BM=1 BN=1024"),
    ("softmax", "softmax_long interp M=16384 N=4096"),
    ("layernorm", "layernorm interp M=16384 N=4096"),
    ("layernorm", "layernorm interp M=16384 N=4096 BM=2 BN=4096"),
    ("layernorm", "layernorm interp T=f16 M=16384 N=4096"),
    ("rmsnorm", "rmsnorm interp M=16384 N=4096"),
    ("transpose", "transpose interp M=4096 N=4096"),
    ("transpose", "transpose interp T=f16 M=4096 N=4096"),
    ("gemm", "gemm interp M=1024 N=1024 K=1024"),
    ("gemm", "gemm interp M=4096 N=4096 K=4096"),
    ("gemm", "gemm_f16 interp target=sm90 T=bf16 M=4096 N=4096 K=4096 BM=128 BN=128"),
    ("gemm", "gemm_f16 interp target=sm90 T=bf16 M=4096 N=4096 K=4096 BM=128 BN=256"),
    ("ffn", "layer interp target=sm90 T=bf16 M=4096 N=4096 K=4096 BM=128 BN=256 STAGES=4"),
    ("attention", "attention interp target=sm90 T=bf16 H=16 M=4096 N=4096 D=128 CAUSAL=false"),
    ("attention", "attention interp target=sm90 T=bf16 H=16 M=4096 N=4096 D=128"),
    ("attention", "attention interp target=sm90 T=bf16 H=16 M=16384 N=16384 D=128 CAUSAL=false"),
    ("attention", "attention interp target=sm90 T=bf16 H=16 M=16384 N=16384 D=128"),
    ("attention", "attention interp target=sm90 T=bf16 H=16 M=4096 N=4096 D=128 BN=128 CAUSAL=false"),
    ("attention", "attention interp target=sm90 T=bf16 H=16 M=4096 N=4096 D=128 BN=128"),
    ("attention", "attention interp target=sm90 T=bf16 H=16 M=16384 N=16384 D=128 BN=128 CAUSAL=false"),
    ("attention", "attention interp target=sm90 T=bf16 H=16 M=16384 N=16384 D=128 BN=128"),
    ("attention", "attention interp target=sm90 T=bf16 H=32 M=4096 N=4096 D=64 BN=128 CAUSAL=false"),
    ("attention", "attention interp target=sm90 T=bf16 H=32 M=4096 N=4096 D=64 BN=128"),
    ("attention", "attention interp target=sm90 T=bf16 H=32 M=16384 N=16384 D=64 BN=128 CAUSAL=false"),
    ("attention", "attention interp target=sm90 T=bf16 H=32 M=16384 N=16384 D=64 BN=128"),
];

/// What an array holds: by a list `NAME=LO:HI` or `NAME=<BELOW`, else random f32 from -1 to 1.
fn contents(list: &str, name: &str, bytes: usize) -> Array {
    let of_it = |item: &str| item.trim().split_once('=').filter(|(n, _)| *n == name).map(|(_, v)| v.to_string());
    let Some(value) = list.split(',').find_map(of_it) else { return Array::Random(bytes, -1.0, 1.0) };
    if let Some(below) = value.strip_prefix('<') {
        return Array::Indices(bytes, below.parse().expect("a number"));
    }
    let (lo, hi) = value.split_once(':').expect("LO:HI");
    Array::Random(bytes, lo.parse().expect("a number"), hi.parse().expect("a number"))
}

/// Large launches are translated; their text is kept, where someone wants it, without arrays. `PTX_LINES` names a file
/// with more of them: `FILE|LINE`, or `FILE|LINE|CONTENTS` ([`contents`]).
#[test]
fn large_launches() {
    with_stack(|| {
        let extra = std::env::var("PTX_LINES").map(|p| fs::read_to_string(p).expect("lines")).unwrap_or_default();
        let extra = extra.lines().filter_map(|l| l.split_once('|'));
        for (n, (file, line)) in LARGE.iter().copied().chain(extra).enumerate() {
            let example = || examples().into_iter().find(|p| p.file_stem().is_some_and(|s| s == file));
            let (line, list) = line.split_once('|').unwrap_or((line, ""));
            let path = if file.contains('/') { Some(PathBuf::from(file)) } else { example() }.expect("a source");
            let (_, directive) = lines_of(&path, format!("// run: {line}\n")).swap_remove(0);
            let (_, plan, _) = bound(&path, &directive).unwrap_or_else(|e| panic!("{line}: {e}"));
            let step = &plan.steps[0];
            let module = lowered(step);
            let params: Vec<i64> = step.params();
            let grid = extents(&module, &params).expect("a grid");
            // As `run` has them, which allows tensor cores.
            let target = Target::builtin("sm90").expect("a target");
            let code = compile_kernel(&step.kernel, target, &module, false, &options())
                .unwrap_or_else(|e| panic!("{line}: {e}"));
            let Some(root) = folder() else { continue };
            let arrays = plan.arguments.iter().map(|a| {
                let bytes = a.shape.iter().product::<usize>() * a.dtype.size();
                match a.dir {
                    TensorDir::Out => Array::Zeros(bytes),
                    _ if a.dtype == DType::BF16 => Array::Bfloats(bytes, -1.0, 1.0),
                    // Any bits.
                    _ if a.dtype.size() == 1 => Array::Indices(bytes, u32::MAX),
                    _ => contents(list, &a.name, bytes),
                }
            });
            let bundle = Bundle {
                name: format!("large_{n}_{}", plan.name),
                module: &module,
                params: &params,
                extents: &grid,
                arrays: arrays.collect(),
                expect: Vec::new(),
                in_order: false,
            };
            write_code(&root, &bundle, &code);
        }
    });
}

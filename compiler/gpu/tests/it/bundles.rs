//! Launches as folders for `runtime/cuda`'s example `launch`, which runs them on a card: written only where
//! `PTX_BUNDLES` names a folder for them.

use crate::harness::{bound, examples, lines_of, lowered, with_stack};
use ptoc_gpu::{Compiled, Options, compile, extents};
use ptoc_ir::loops::Module;
use ptoc_ir::tile::TensorDir;
use ptoc_tensor::DType;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

/// Multiprocessors of an H100.
const MULTIPROCESSORS: u64 = 132;

/// A parameter that is memory.
pub enum Array {
    /// These bytes.
    Bytes(Vec<u8>),
    /// So many bytes of random f32.
    Random(usize),
    /// So many zeros.
    Zeros(usize),
}

/// A launch.
pub struct Bundle<'a> {
    pub name: String,
    pub module: &'a Module,
    pub params: &'a [i64],
    pub extents: &'a [i64],
    pub arrays: Vec<Array>,
    /// What the n-th array holds afterwards.
    pub expect: Vec<(usize, Vec<u8>, DType)>,
    /// One CTA: the order of blocks matters.
    pub in_order: bool,
}

/// Where launches go, if someone wants them.
pub fn folder() -> Option<PathBuf> {
    std::env::var_os("PTX_BUNDLES").map(PathBuf::from)
}

/// Writes a launch.
pub fn write(root: &Path, bundle: &Bundle<'_>) {
    let Compiled { kernel, abi, .. } = compile(bundle.module, &Options::default()).expect("it compiles");
    let folder = root.join(&bundle.name);
    fs::create_dir_all(&folder).expect("a folder");
    let blocks: u64 = bundle.extents.iter().map(|&n| n as u64).product();
    let ctas = if bundle.in_order { 1 } else { blocks.min(MULTIPROCESSORS * u64::from(abi.resident())) as u32 };
    let mut text = String::new();
    let (threads, shared) = (abi.threads, abi.shared);
    let _ = writeln!(text, "entry {}\nthreads {threads}\nctas {ctas}\nshared {shared}", kernel.name);
    for (n, array) in bundle.arrays.iter().enumerate() {
        let _ = match array {
            Array::Bytes(bytes) => {
                fs::write(folder.join(format!("{n}.in")), bytes).expect("written");
                writeln!(text, "file {n}.in")
            }
            Array::Random(bytes) => writeln!(text, "random {bytes}"),
            Array::Zeros(bytes) => writeln!(text, "zeros {bytes}"),
        };
    }
    for n in bundle.params.iter().chain(bundle.extents) {
        let _ = writeln!(text, "number {}", *n as u64);
    }
    let _ = writeln!(text, "number {blocks}\nfile status.in\nzeros {}", abi.scratch * u64::from(ctas));
    let status = abi.status(ctas);
    fs::write(folder.join("status.in"), &status).expect("written");
    let at = bundle.arrays.len() + bundle.params.len() + bundle.extents.len() + 1;
    let _ = writeln!(text, "expect {at} status.in u8");
    for (n, bytes, dtype) in &bundle.expect {
        fs::write(folder.join(format!("{n}.out")), bytes).expect("written");
        let _ = writeln!(text, "expect {n} {n}.out {dtype}");
    }
    fs::write(folder.join("launch.txt"), text).expect("written");
    fs::write(folder.join("kernel.ptx"), ptoc_ptx::print(&kernel)).expect("written");
}

/// Launches whose time says something, by test lines.
const LARGE: &[(&str, &str)] = &[
    ("add", "add_auto interp M=8192 N=8192"),
    ("elementwise", "map interp M=8192 N=8192 f=exponential"),
    ("elementwise", "map interp M=8192 N=8192 f=six"),
    ("softmax", "softmax interp M=16384 N=4096"),
    ("softmax", "softmax_long interp M=16384 N=4096"),
    ("layernorm", "layernorm interp M=16384 N=4096"),
    ("rmsnorm", "rmsnorm interp M=16384 N=4096"),
    ("transpose", "transpose interp M=4096 N=4096"),
    ("gemm", "gemm interp M=1024 N=1024 K=1024"),
];

/// Large launches are translated; their text is kept, where someone wants it, without arrays.
#[test]
fn large_launches() {
    with_stack(|| {
        for (n, (file, line)) in LARGE.iter().enumerate() {
            let path = examples().into_iter().find(|p| p.file_stem().is_some_and(|s| s == *file)).expect("an example");
            let (_, directive) = lines_of(&path, format!("// run: {line}\n")).swap_remove(0);
            let (_, plan, _) = bound(&path, &directive).unwrap_or_else(|e| panic!("{line}: {e}"));
            let step = &plan.steps[0];
            let module = lowered(step);
            let params: Vec<i64> = step.params();
            let grid = extents(&module, &params).expect("a grid");
            compile(&module, &Options::default()).unwrap_or_else(|e| panic!("{line}: {e}"));
            let Some(root) = folder() else { continue };
            let arrays = plan.arguments.iter().map(|a| {
                let bytes = a.shape.iter().product::<usize>() * a.dtype.size();
                if a.dir == TensorDir::Out { Array::Zeros(bytes) } else { Array::Random(bytes) }
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
            write(&root, &bundle);
        }
    });
}

//! A launch as a folder for `runtime/cuda`'s example `launch`, which runs it on a card. The tests of the whole compiler
//! write theirs with it, too.

use ptoc_gpu::{Abi, Arguments, Compiled, Options, compile};
use ptoc_ir::loops::Module;
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
    /// So many bytes of random f32, from a number to another.
    Random(usize, f32, f32),
    /// The same of bf16.
    Bfloats(usize, f32, f32),
    /// So many bytes of random u32, below a number.
    Indices(usize, u32),
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

/// Options, with as many threads as `PTX_THREADS` says.
pub fn options() -> Options {
    let threads = std::env::var("PTX_THREADS").ok().and_then(|n| n.parse().ok());
    Options { threads, ..Options::default() }
}

/// Where the arrays of a launch would be: what tensor maps are made of is told apart by its high bits.
const ARRAY: u64 = 1 << 48;

/// Writes a launch.
pub fn write(root: &Path, bundle: &Bundle<'_>) {
    write_code(root, bundle, &compile(bundle.module, &options()).expect("it compiles"));
}

/// Writes a launch of some code.
pub fn write_code(root: &Path, bundle: &Bundle<'_>, Compiled { kernel, abi, .. }: &Compiled) {
    let folder = root.join(&bundle.name);
    fs::create_dir_all(&folder).expect("a folder");
    let turns = abi.turns(bundle.extents);
    let blocks: u64 = turns.iter().map(|&n| n as u64).product();
    let room = MULTIPROCESSORS as u32 * abi.resident();
    let ctas = if bundle.in_order { 1 } else { abi.ctas(room, bundle.extents) };
    let said = if ctas > room { "turns" } else { "ctas" };
    let mut text = String::new();
    let Abi { threads, shared, cluster, .. } = abi;
    let _ =
        writeln!(text, "entry {}\nthreads {threads}\ncluster {cluster}\n{said} {ctas}\nshared {shared}", kernel.name);
    for (n, array) in bundle.arrays.iter().enumerate() {
        let _ = match array {
            Array::Bytes(bytes) => {
                fs::write(folder.join(format!("{n}.in")), bytes).expect("written");
                writeln!(text, "file {n}.in")
            }
            Array::Random(bytes, lo, hi) => writeln!(text, "random {bytes} {lo} {hi}"),
            Array::Bfloats(bytes, lo, hi) => writeln!(text, "bfloats {bytes} {lo} {hi}"),
            Array::Indices(bytes, below) => writeln!(text, "indices {bytes} {below}"),
            Array::Zeros(bytes) => writeln!(text, "zeros {bytes}"),
        };
    }
    for n in bundle.params.iter().chain(&turns) {
        let _ = writeln!(text, "number {}", *n as u64);
    }
    let _ = writeln!(text, "number {blocks}\nfile status.in\nzeros {}", abi.scratch * u64::from(ctas));
    let status = abi.status(ctas);
    fs::write(folder.join("status.in"), &status).expect("written");
    let at = bundle.arrays.len() + bundle.params.len() + bundle.extents.len() + 1;
    let _ = writeln!(text, "expect {at} status.in u8");
    let tensors: Vec<u64> = (1..).take(bundle.arrays.len()).map(|n| n * ARRAY).collect();
    let Bundle { params, extents, .. } = *bundle;
    let arguments = Arguments { tensors: &tensors, params, extents, status: 0, scratch: 0 };
    for n in &abi.arguments(&arguments)[at + 2..] {
        let _ = writeln!(text, "number {n}");
    }
    for map in abi.maps(&arguments) {
        let (array, offset) = (map.base / ARRAY - 1, map.base % ARRAY);
        let tile = map.tile.iter().map(|n| u64::from(*n));
        let numbers = map.dims.iter().chain(&map.strides).copied().chain(tile).map(|n| format!(" {n}"));
        let _ =
            writeln!(text, "{} {array} {offset}{}", if map.tf32 { "tf32" } else { "map" }, numbers.collect::<String>());
    }
    for (n, bytes, dtype) in &bundle.expect {
        fs::write(folder.join(format!("{n}.out")), bytes).expect("written");
        let _ = writeln!(text, "expect {n} {n}.out {dtype}");
    }
    fs::write(folder.join("launch.txt"), text).expect("written");
    fs::write(folder.join("kernel.ptx"), ptoc_ptx::print(kernel)).expect("written");
}

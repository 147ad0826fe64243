//! `serve`: kernels, limits and the peers that are Rust crates, measured on demand. A driver of other peers (`peers/`)
//! starts this program, sends it one JSON object a line and reads one back, so that contenders take turns in one run on
//! the same data.
//!
//! | request | answer |
//! |---|---|
//! | `load`: `id`, `file`, `kernel`, `dims`, `defs`, `inputs` (name to file) | `compile_ms`, `arrays` (name to bytes) |
//! | `run`: `id`, `times`, `threads` | `seconds` of each launch: by the clock, or processor time without `threads` |
//! | `read`: `id`, `arrays` | reads them, so that they are in the caches as far as they fit |
//! | `store`: `id`, `array`, `path` | |
//! | `product`: `id`, `with` (a crate), `times`; of a loaded f32 product A B = C | `seconds` |
//! | `limits`: `bytes`, `threads` | `f32`, `bf16`, `f16`, `i8` (operations a second), `copy` (bytes a second) |
//!
//! A file has an input's raw bytes. What goes wrong is answered by `error`.

use std::collections::HashMap;
use std::fs;
use std::hint::black_box;
use std::io::{BufRead, Write};
use std::time::{Duration, Instant};

use cpu_time::ProcessTime;
use ptoc_exec::machine::{Operation, copy_bandwidth, peak};
use serde_json::{Value, json};

use crate::kernels::{Case, Ready, TARGET, ready};

/// Bytes that a cache fetches at once.
const LINE: usize = 64;

/// Answers requests until the input ends.
pub fn serve(dir: &str) {
    let mut kernels = HashMap::new();
    let mut out = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines().map_while(Result::ok).filter(|l| !l.trim().is_empty()) {
        let request = serde_json::from_str(&line).map_err(|e| e.to_string());
        let answer = request.and_then(|r| answer(dir, &mut kernels, &r)).unwrap_or_else(|e| json!({ "error": e }));
        if writeln!(out, "{answer}").and_then(|()| out.flush()).is_err() {
            return;
        }
    }
}

fn answer(dir: &str, kernels: &mut HashMap<String, Ready>, request: &Value) -> Result<Value, String> {
    let word = |name: &str| request[name].as_str().ok_or_else(|| format!("`{name}` is missing"));
    let times = || request["times"].as_u64().unwrap_or(1);
    match word("do")? {
        "load" => {
            let mut kernel = load(dir, request)?;
            let compile_ms = kernel.compile.as_secs_f64() * 1e3;
            for (name, path) in request["inputs"].as_object().into_iter().flatten() {
                let path = path.as_str().ok_or("an input is a path")?;
                let bytes = fs::read(path).map_err(|e| format!("{path}: {e}"))?;
                let array = kernel.array(name)?;
                if array.len() != bytes.len() {
                    return Err(format!("`{name}` has {} bytes, {path} {}", array.len(), bytes.len()));
                }
                array.copy_from_slice(&bytes);
            }
            let arrays: Vec<_> =
                kernel.names.iter().zip(&kernel.buffers).map(|(n, b)| json!([n, b.bytes().len()])).collect();
            kernels.insert(word("id")?.to_owned(), kernel);
            Ok(json!({ "compile_ms": compile_ms, "arrays": arrays }))
        }
        "limits" => {
            let bytes = request["bytes"].as_u64().unwrap_or(1 << 24) as usize;
            let threads = request["threads"].as_u64().unwrap_or(1) as usize;
            let (f32, tiles) = (peak(Operation::FmaF32, threads), peak(Operation::TilesBf16, threads));
            let i8 = peak(Operation::TilesI8, threads).or(peak(Operation::DotI8, threads));
            // f16 take the matrix unit four products for one.
            let f16 = f32.zip(tiles).map(|(f32, tiles)| f32.max(tiles / 4.0));
            Ok(json!({
                "f32": f32, "bf16": tiles.or(f32), "f16": f16.or(f32), "i8": i8, "copy": copy_bandwidth(bytes, threads),
            }))
        }
        what => {
            let id = word("id")?;
            let kernel = kernels.get_mut(id).ok_or_else(|| format!("`{id}` is not loaded"))?;
            match what {
                "run" => Ok(json!({ "seconds": match request["threads"].as_u64() {
                    Some(threads) => by_the_clock(times(), || kernel.run(threads as usize)),
                    None => measured(times(), || kernel.run(1)),
                } })),
                "read" => {
                    for name in request["arrays"].as_array().into_iter().flatten() {
                        let bytes = kernel.array(name.as_str().ok_or("an array is a name")?)?;
                        black_box(bytes.iter().step_by(LINE).fold(0, |all, byte| all ^ byte));
                    }
                    Ok(json!({}))
                }
                "store" => {
                    let (array, path) = (kernel.array(word("array")?)?, word("path")?);
                    fs::write(path, array).map_err(|e| format!("{path}: {e}"))?;
                    Ok(json!({}))
                }
                "product" => product(kernel, word("with")?, times(), request),
                other => Err(format!("`{other}` is no request")),
            }
        }
    }
}

fn load(dir: &str, request: &Value) -> Result<Ready, String> {
    let file = request["file"].as_str().ok_or("`file` is missing")?;
    let text = fs::read_to_string(format!("{dir}{file}")).map_err(|e| format!("{dir}{file}: {e}"))?;
    let dims: Vec<(&str, i64)> = request["dims"]
        .as_object()
        .into_iter()
        .flatten()
        .filter_map(|(n, v)| Some((n.as_str(), v.as_i64()?)))
        .collect();
    let defs: Vec<(&str, &str)> = request["defs"]
        .as_object()
        .into_iter()
        .flatten()
        .filter_map(|(n, v)| Some((n.as_str(), v.as_str()?)))
        .collect();
    let kernel = request["kernel"].as_str().ok_or("`kernel` is missing")?;
    let target = request["target"].as_str().unwrap_or(TARGET);
    Ok(ready(&text, &Case { path: file, kernel, dims: &dims, defs: &defs, target }))
}

fn measured(times: u64, mut once: impl FnMut()) -> Vec<f64> {
    let mut one = || {
        let start = ProcessTime::now();
        once();
        start.elapsed()
    };
    (0..times).map(|_| one()).map(|d: Duration| d.as_secs_f64()).collect()
}

fn by_the_clock(times: u64, mut once: impl FnMut()) -> Vec<f64> {
    let mut one = || {
        let start = Instant::now();
        once();
        start.elapsed().as_secs_f64()
    };
    (0..times).map(|_| one()).collect()
}

/// The same product by a crate, on the kernel's own arrays A, B and into C.
fn product(kernel: &mut Ready, with: &str, times: u64, request: &Value) -> Result<Value, String> {
    let dim = |n: &str| request["dims"][n].as_u64().map(|d| d as usize).ok_or_else(|| format!("`dims.{n}` is missing"));
    let (m, n, k) = (dim("M")?, dim("N")?, dim("K")?);
    let at = |name: &str| kernel.names.iter().position(|n| n == name).ok_or_else(|| format!("there is no array \
        `{name}`"));
    let arrays = [at("A")?, at("B")?, at("C")?];
    // The kernel's own arrays: a copy made now would be in the caches, where the kernel finds its own as the others
    // left them.
    let [a, b, c] = kernel.buffers.get_disjoint_mut(arrays).map_err(|e| e.to_string())?;
    let none = || "it is no product of f32".to_owned();
    let (a, b) = (a.as_slice::<f32>().ok_or_else(none)?, b.as_slice::<f32>().ok_or_else(none)?);
    let c = c.as_mut_slice::<f32>().ok_or_else(none)?;
    if (a.len(), b.len(), c.len()) != (m * k, k * n, m * n) {
        return Err("it is no f32 product of these sizes".into());
    }
    let (row_a, row_b, row_c) = (k as isize, n as isize, n as isize);
    let seconds = match with {
        // SAFETY: three row-major matrices of these shapes, as checked.
        "gemm" => measured(times, || unsafe {
            let (c, a, b, none) = (c.as_mut_ptr(), a.as_ptr(), b.as_ptr(), gemm::Parallelism::None);
            gemm::gemm(m, n, k, c, 1, row_c, false, a, 1, row_a, b, 1, row_b, 0.0, 1.0f32, false, false, false, none);
        }),
        // SAFETY: as above.
        "matrixmultiply" => measured(times, || unsafe {
            matrixmultiply::sgemm(
                m,
                k,
                n,
                1.0,
                a.as_ptr(),
                row_a,
                1,
                b.as_ptr(),
                row_b,
                1,
                0.0,
                c.as_mut_ptr(),
                row_c,
                1,
            );
        }),
        "faer" => {
            let (a, b) = (faer::MatRef::from_row_major_slice(a, m, k), faer::MatRef::from_row_major_slice(b, k, n));
            measured(times, || {
                let c = faer::MatMut::from_row_major_slice_mut(&mut *c, m, n);
                faer::linalg::matmul::matmul(c, faer::Accum::Replace, a, b, 1.0f32, faer::Par::Seq);
            })
        }
        other => return Err(format!("`{other}` is no crate that this program has")),
    };
    Ok(json!({ "seconds": seconds }))
}

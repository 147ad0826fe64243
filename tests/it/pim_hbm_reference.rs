//! HBM-PIM's results against f64: sizes of the examples, and the bound that rounding to f16 gives.
//!
//! u = 2^-11 is the unit roundoff of f16, and g(n) = n u / (1 - n u). A sum of m products, each product and each
//! addition rounded, is off by at most g(m) * sum |a b| (the first addition, to 0, is exact; Higham, "Accuracy and
//! Stability of Numerical Algorithms", 3.1), and a product below 2^-14 by 2^-25 more. The f32 sum of 16 lanes adds at
//! most 2^-19 of the sum of their sizes.

use crate::engine::command;
use ptoc_tensor::{DType, Tensor, npy};
use serde_json::Value;
use std::path::{Path, PathBuf};

fn g(n: usize) -> f64 {
    let n = n as f64 * 2f64.powi(-11);
    n / (1.0 - n)
}

/// Rounded numbers from -1 to 1.
fn numbers(shape: &[usize], seed: u64) -> Tensor {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut out = Tensor::zeros(DType::F16, shape).expect("small");
    for i in 0..out.len() {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        out.set_f64(i, (state >> 40) as f64 / f64::from(1 << 23) - 1.0);
    }
    out
}

fn folder() -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("pim_hbm_reference");
    std::fs::create_dir_all(&folder).expect("a folder for tests");
    folder
}

/// Runs an example's kernel on the units; its result `y` and its statistics.
fn run(file: &str, kernel: &str, sizes: &str, inputs: &[(&str, &Tensor)]) -> (Tensor, Value) {
    run_to("y", file, kernel, sizes, inputs)
}

/// [`run`] of a kernel whose result has another name.
fn run_to(output: &str, file: &str, kernel: &str, sizes: &str, inputs: &[(&str, &Tensor)]) -> (Tensor, Value) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples").join(file).display().to_string();
    let name = |array: &str| folder().join(format!("{kernel}_{}_{array}.npy", sizes.replace(' ', "_")));
    let mut words = vec!["run".to_owned(), path, kernel.to_owned()];
    words.extend(["--target", "hbm-pim", "--backend", "pim", "--json"].map(str::to_owned));
    sizes.split(' ').for_each(|s| words.extend(["-D".to_owned(), s.to_owned()]));
    for (array, tensor) in inputs {
        std::fs::write(name(array), npy::write(tensor)).expect("written");
        words.extend(["--in".to_owned(), format!("{array}={}", name(array).display())]);
    }
    words.extend(["--out".to_owned(), format!("{output}={}", name(output).display())]);
    let outcome = command(&words);
    assert_eq!(outcome.status, 0, "{sizes}: {}", outcome.err);
    let y = npy::read(&std::fs::read(name(output)).expect("written"), None).expect("an array");
    let json: Value = serde_json::from_str(&outcome.out).expect("JSON");
    inputs.iter().map(|(array, _)| *array).chain([output]).for_each(|a| drop(std::fs::remove_file(name(a))));
    (y, json["stats"].clone())
}

/// Everything within its bound, and something beyond a thousandth of it: sums in f32 would stay below 2^-13 of it.
fn within(what: &str, got: &[f64], want: &[f64], bounds: &[f64]) {
    assert_eq!((got.len(), got.len()), (want.len(), bounds.len()), "{what}");
    // Of an exact result the bound may be 0; what is not a number would be below any.
    assert!(got.iter().all(|g| g.is_finite()), "{what}: not all finite");
    let shares = got.iter().zip(want).zip(bounds).map(|((g, w), b)| if g == w { 0.0 } else { (g - w).abs() / b });
    let worst = shares.fold(0.0, f64::max);
    assert!(worst <= 1.0, "{what}: {worst} times the bound");
    assert!(worst > 0.001, "{what}: at most {worst} of the bound; is this f16?");
}

/// GEMV from 64 x 256 to 4096 x 1024, and a few columns at once.
#[test]
fn products() {
    for (n, k, b, pch) in [
        (64, 256, 1, 1),
        (256, 1024, 1, 4),
        (1024, 1024, 1, 16),
        (4096, 1024, 1, 16),
        (64, 256, 2, 1),
        (128, 512, 7, 2),
        (128, 256, 16, 2),
    ] {
        let (w, x) = (numbers(&[n, k], 3 + n as u64), numbers(&[b, k], 5 + k as u64));
        let sizes = format!("N={n} K={k} B={b} PCH={pch}");
        let (y, stats) = run("hbm_gemm.tile", "gemm", &sizes, &[("W", &w), ("x", &x)]);
        let (w, x) = (w.to_f64s(), x.to_f64s());
        let (mut want, mut bounds) = (Vec::new(), Vec::new());
        for column in x.chunks(k) {
            for row in w.chunks(k) {
                let size: f64 = row.iter().zip(column).map(|(a, b)| (a * b).abs()).sum();
                want.push(row.iter().zip(column).map(|(a, b)| a * b).sum());
                bounds.push((g(k / 16) + 2f64.powi(-19)) * size + k as f64 * 2f64.powi(-25));
            }
        }
        within(&sizes, &y.to_f64s(), &want, &bounds);
        assert!(stats["cycles"].as_u64().is_some_and(|c| c > 0), "{stats}");
    }
}

/// Sums of columns: one addition a row.
#[test]
fn column_sums() {
    for (m, n) in [(1, 16), (20, 200), (64, 1000), (200, 64)] {
        let a = numbers(&[m, n], 7 + m as u64);
        let sizes = format!("M={m} N={n}");
        let (y, _) = run("hbm_pim.tile", "col_sums", &sizes, &[("a", &a)]);
        let a = a.to_f64s();
        let column = |j: usize| (0..m).map(move |i| i * n + j);
        let want: Vec<f64> = (0..n).map(|j| column(j).map(|i| a[i]).sum()).collect();
        let bounds: Vec<f64> = (0..n).map(|j| g(m - 1) * column(j).map(|i| a[i].abs()).sum::<f64>()).collect();
        match m {
            1 => assert_eq!(y.to_f64s(), want),
            _ => within(&sizes, &y.to_f64s(), &want, &bounds),
        }
    }
}

/// Sums of rows: 16 partial sums, which are added one after the other, and then what is left.
#[test]
fn row_sums() {
    for (m, n) in [(1, 16), (50, 70), (64, 1024), (300, 64), (5, 1000)] {
        let a = numbers(&[m, n], 11 + m as u64);
        let sizes = format!("M={m} N={n}");
        let (y, _) = run("hbm_pim.tile", "row_sums", &sizes, &[("a", &a)]);
        let a = a.to_f64s();
        let want: Vec<f64> = a.chunks(n).map(|row| row.iter().sum()).collect();
        let additions = n / 16 + 14 + n % 16;
        let bounds: Vec<f64> = a.chunks(n).map(|row| g(additions) * row.iter().map(|x| x.abs()).sum::<f64>()).collect();
        within(&sizes, &y.to_f64s(), &want, &bounds);
    }
}

/// What units do to each element, by itself. A rounded result is off by u of its size, and a product below 2^-14 by
/// 2^-25 more; relu rounds nothing.
#[test]
fn elements() {
    let smallest = 2f64.powi(-25);
    for n in [17, 5000, 8192] {
        let (a, b) = (numbers(&[n], 13 + n as u64), numbers(&[n], 17 + n as u64));
        let (x, y) = (a.to_f64s(), b.to_f64s());
        let pairs = || x.iter().zip(&y);
        let binary = |kernel: &str, more: &str| {
            run_to("c", "hbm_pim.tile", kernel, &format!("N={n}{more}"), &[("a", &a), ("b", &b)]).0.to_f64s()
        };
        let one = |kernel: &str, want: Vec<f64>, least: f64| {
            let bounds: Vec<f64> = want.iter().map(|w| g(1) * w.abs() + least).collect();
            within(&format!("{kernel} N={n}"), &binary(kernel, ""), &want, &bounds);
        };
        // Sums of subnormal numbers are exact.
        one("add", pairs().map(|(a, b)| a + b).collect(), 0.0);
        one("sub", pairs().map(|(a, b)| a - b).collect(), 0.0);
        one("mul", pairs().map(|(a, b)| a * b).collect(), smallest);
        let want: Vec<f64> = pairs().map(|(a, b)| 1.7 * a + b).collect();
        // 1.7 is rounded too.
        let bounds: Vec<f64> = pairs().map(|(a, b)| g(3) * ((1.7 * a).abs() + b.abs()) + smallest).collect();
        within(&format!("axpy N={n}"), &binary("axpy", " s=1.7"), &want, &bounds);
        let (c, _) = run_to("c", "hbm_pim.tile", "relu", &format!("N={n}"), &[("a", &a)]);
        assert_eq!(c.to_f64s(), x.iter().map(|a| a.max(0.0)).collect::<Vec<_>>(), "relu N={n}");
    }
}

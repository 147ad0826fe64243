//! A matrix product by `examples/gemm.tile`: constants chosen, a result that the launch makes, held to `ensures`.
//!
//! `cargo run -p ptoc-examples --bin gemm`

#![forbid(unsafe_code)]

use ptoc::{Error, Module, View};
use std::path::Path;
use std::time::Instant;

fn main() -> Result<(), Error> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../gemm.tile");
    let gemm = Module::open(file)?.kernel("gemm")?.with("BM", 128)?;

    let (m, k, n) = (64, 96, 80);
    let a: Vec<f32> = (0..m * k).map(|i| (i % 11) as f32 - 5.0).collect();
    let b: Vec<f32> = (0..k * n).map(|i| (i % 5) as f32 - 2.0).collect();
    let launch = || gemm.launch().input("A", View::new(&a, &[m, k])).input("B", View::new(&b, &[k, n]));

    let begin = Instant::now();
    launch().compile()?;
    println!("compiled in {:.1} ms", begin.elapsed().as_secs_f64() * 1e3);

    // `C` is not given, so the launch makes it.
    let outputs = launch().threads(2).run()?;
    let c = outputs.array("C").expect("it was not given");
    let elements: &[f32] = c.as_slice().expect("it is declared f32");
    let expected = |row: usize, column: usize| (0..k).map(|i| a[row * k + i] * b[i * n + column]).sum::<f32>();
    println!("C{:?}, C[3, 5] = {}, expected {}", c.shape(), elements[3 * n + 5], expected(3, 5));

    for verified in launch().verify(1e-5, 1e-5)? {
        let stats = verified.stats;
        println!("{}: {} elements as expected, largest error {:.1e}", verified.name, stats.elements, stats.max_error);
    }
    Ok(())
}

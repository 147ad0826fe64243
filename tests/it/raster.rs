//! `raster`: the order in which blocks run, on both backends.

use crate::engine::{build, check};
use ptoc_tensor::{DType, Tensor};

/// A block writes down how many ran before it.
fn order(grid: &str, rows: i64, cols: i64) -> Vec<i64> {
    let text = format!(
        "kernel k(count: inout i32[1], order: out i32[M, N]) {{
            {grid}
            order[i, j] = atomic_add(count[0], 1);
        }}"
    );
    let dims = [("M", rows), ("N", cols)];
    let built = build(&text, "a2a3", &[], &dims).expect("compiles");
    let sizes = [rows as usize, cols as usize];
    let arrays = [Tensor::zeros(DType::I32, &[1]).expect("small"), Tensor::zeros(DType::I32, &sizes).expect("small")];
    let interpreted = built.interpret(&dims, &arrays).expect("runs");
    let executed = built.execute(&dims, &arrays, 1).expect("runs");
    assert_eq!(interpreted[1].bytes(), executed[1].bytes(), "{grid}");
    (0..sizes[0] * sizes[1]).map(|n| interpreted[1].get_bits(n) as i64).collect()
}

#[test]
fn blocks_run_in_bands() {
    // Where each block stands in the order.
    let plain = order("grid (i in 0..M, j in 0..N);", 4, 4);
    assert_eq!(plain, (0..16).collect::<Vec<_>>());
    assert_eq!(order("grid (i in 0..M, j in 0..N) raster(along = j);", 4, 4), plain);
    // Blocks 0, 4, 8, 12, 1, 5, .. one after the other.
    let bands = order("grid (i in 0..M, j in 0..N) raster(along = N, swizzle = 4);", 4, 4);
    assert_eq!(bands, [0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15]);
    // Along the rows, two columns abreast, the last column by itself.
    let down = order("grid (i in 0..M, j in 0..N) raster(along = M, swizzle = 2);", 3, 5);
    assert_eq!(down, [0, 1, 6, 7, 12, 2, 3, 8, 9, 13, 4, 5, 10, 11, 14]);
}

#[test]
fn a_dimension_that_two_variables_run_over_is_no_answer() {
    let text = "kernel k(x: in f32[N, N], y: out f32[N, N]) {
        grid (i in tiles(N, 16), j in tiles(N, 64)) raster(along = ALONG);
        TSTORE(y.tile(i, j), Vec(x.tile(i, j)));
    }";
    assert_eq!(check(&text.replace("ALONG", "N"), "a2a3", &[]).codes, ["E0225"]);
    assert_eq!(check(&text.replace("ALONG", "i"), "a2a3", &[]).codes, [""; 0]);
}

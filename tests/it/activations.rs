//! `std::act` at the ends of its range.

use crate::engine::build;
use ptoc_tensor::{DType, Tensor};

/// GELU by erf of these numbers, on the interpreter.
fn gelu_erf(values: &[f32]) -> Vec<f32> {
    let source = "use std::act::gelu_erf;
        kernel k(x: in f32[N], y: out f32[N]) {
            grid (i in tiles(N, 64));
            TSTORE(y.tile(i), gelu_erf(Vec(x.tile(i))));
        }";
    let dims = [("N", values.len() as i64)];
    let built = build(source, "a2a3", &[], &dims).unwrap_or_else(|e| panic!("{e:?}"));
    let x = Tensor::from_slice(&[values.len()], values).expect("it fits");
    let y = Tensor::zeros(DType::F32, &[values.len()]).expect("it fits");
    let out = built.interpret(&dims, &[x, y]).unwrap_or_else(|e| panic!("{e:?}"));
    out[1].as_slice::<f32>().expect("f32").to_vec()
}

#[test]
fn gelu_has_its_limits_and_no_denormal_numbers() {
    let found = gelu_erf(&[f32::INFINITY, 1e30, 30.0, 1.0, 0.0, -0.0, -1.0]);
    assert_eq!((found[0], found[1], found[2], found[4], found[5]), (f32::INFINITY, 1e30, 30.0, 0.0, 0.0));
    assert!((found[3] - 0.841_344_7).abs() < 2e-7 && (found[6] + 0.158_655_25).abs() < 2e-7, "{found:?}");
    let below = gelu_erf(&[-12.4, -12.5, -13.0, -1e30, f32::NEG_INFINITY]);
    assert!(below.iter().all(|y| (-1e-33..=0.0).contains(y)), "{below:?}");
    assert!(gelu_erf(&[f32::NAN])[0].is_nan());
    let range: Vec<f32> = (-8000..8000).map(|n| n as f32 / 200.0).collect();
    for (x, y) in range.iter().zip(gelu_erf(&range)) {
        assert!(*x == 0.0 || y.is_normal(), "{x}: {y:e}");
    }
}

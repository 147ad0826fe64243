//! The exponential of the special function unit against what an H200 computed on 2026-11-30: arguments all over its
//! range, and those at its ends.

use ptoc_tensor::ex2::ex2;
use ptoc_tensor::npy;

#[test]
fn results_of_a_card() {
    let read = |bytes: &[u8]| npy::read(bytes, None).unwrap().to_f64s();
    let arguments = read(include_bytes!("fixtures/ex2_arguments.npy"));
    let results = read(include_bytes!("fixtures/ex2_results.npy"));
    for (x, y) in arguments.into_iter().zip(results) {
        let (x, y) = (x as f32, y as f32);
        let same = ex2(x).to_bits() == y.to_bits() || (y.is_nan() && ex2(x).is_nan());
        assert!(same, "2^{x} is {y} on the card and {} here", ex2(x));
    }
}

//! Conversions by name that take several TCVTs on a target: the whole does what one conversion of a scalar does.

use crate::engine::{agree, build};
use ptoc_ir::scalar;
use ptoc_ir::tile::Ty;
use ptoc_isa::{RoundMode, Target, conversion_path, converts};
use ptoc_tensor::DType::{self, *};
use ptoc_tensor::Tensor;

/// What is at the ends, in the middle and between them, the largest values of 8-bit floats among it.
fn values(d: DType) -> Vec<u64> {
    let (lo, hi) = ptoc_tensor::scalar::integer_range(d).expect("an integer");
    let wanted =
        [0, 1, -1, 7, 17, 100, 240, 447, 448, 449, 464, 465, 479, 480, 481, 1000, 32767, 57344, 61440, 65504, 65535];
    let both = wanted.iter().flat_map(|n: &i128| [*n, -*n]).chain([lo, hi, lo + 1, hi - 1]);
    let bits = both.map(|n| scalar::from_int(Ty::D(d), n));
    let mut all: Vec<u64> = bits.chain((0..206).map(|k| scalar::from_int(Ty::D(d), k * 331 - 33000))).collect();
    all.resize(256, 0);
    all
}

#[test]
fn integers_saturate_to_floats_of_8_bits_by_any_way() {
    let mut chains = 0;
    for target in Target::pto() {
        for from in [U8, I8, U16, I16, U32, I32] {
            for to in [F8E4M3, F8E5M2, F16, BF16, F32, U8, I8, I16, U16] {
                if from == to || !target.has_dtype(to) {
                    continue;
                }
                if !converts(target, from, to) {
                    continue;
                }
                let path = conversion_path(target, from, to);
                chains += u32::from(path.is_some_and(|p| p.len() > 1) && to.is_f8());
                let text = format!(
                    "kernel k(x: in {from}[1, 256], y: out {to}[1, 256]) {{\n    TSTORE(y, {to}(Vec(x)));\n}}\n"
                );
                let built = build(&text, &target.name, &[], &[]).unwrap_or_else(|r| panic!("{r:?}\n{text}"));
                let bits = values(from);
                let given = Tensor::from_fn(from, &[1, 256], |i| bits[i]).expect("small");
                let tensors = [given, Tensor::zeros(to, &[1, 256]).expect("small")];
                let got = agree(&built, &[], &tensors, &[1]).expect("equal").expect("no stop");
                let saturate = scalar::saturates_unasked(Ty::D(from), Ty::D(to));
                for (i, &x) in bits.iter().enumerate() {
                    let want = scalar::convert(Ty::D(from), Ty::D(to), x, RoundMode::Rint, saturate);
                    let found = got.last().expect("a result").get_bits(i);
                    assert_eq!(found, want, "{}: {to} of the {from} {}", target.name, scalar::to_int(Ty::D(from), x));
                }
            }
        }
    }
    // u8, i8 and i16 of a5, to either.
    assert_eq!(chains, 6);
}

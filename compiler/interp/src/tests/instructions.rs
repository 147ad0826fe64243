//! Each element-wise instruction on each dtype that it has on any target.

use super::*;
use ptoc_ir::scalar;
use ptoc_isa::{CmpOp, DTypeRule, Instr, InstrId, RoundMode, Sem};

/// What the row takes on any target.
fn listed(row: &Instr) -> impl Iterator<Item = &'static Vec<DType>> {
    ptoc_isa::InstructionSet::builtin().flat_map(move |set| set.list(row))
}

fn dtypes(row: &Instr) -> Vec<DType> {
    let mut all = match row.dtypes {
        DTypeRule::Same | DTypeRule::Mask => listed(row).map(|entry| entry[0]).collect(),
        _ => vec![DType::F32],
    };
    all.sort();
    all.dedup();
    all
}

fn rotated(bits: &[u64], by: usize) -> Vec<u64> {
    bits.iter().cycle().skip(by).take(bits.len()).copied().collect()
}

#[test]
fn every_elementwise_instruction_on_every_dtype() {
    let none = InstAttrs::default();
    let mut seen = 0;
    for id in InstrId::all() {
        let row = id.get();
        for d in dtypes(row) {
            let ty = Ty::D(d);
            let a = if d == DType::Bool { vec![0, 1, 1, 0, 0, 0, 1, 1, 0, 1, 0, 1] } else { corners(d) };
            let b = rotated(&a, 5);
            let t = vec_ty(d, 3, 4);
            let dst = (t, (3, 4));
            let what = format!("{} {d}", row.name);
            let (got, want) = match row.sem {
                Sem::Binary(op) => (
                    exec(row.name, none, dst, &[full(t, &a), full(t, &b)]).unwrap(),
                    a.iter().zip(&b).map(|(&x, &y)| scalar::binary(op, ty, x, y).unwrap()).collect::<Vec<_>>(),
                ),
                Sem::BinaryScalar(op) => {
                    let s = a[3];
                    let reversed = InstAttrs { reversed: true, ..none };
                    let got = exec(row.name, reversed, dst, &[full(t, &a), Src::Scalar(d, s)]).unwrap();
                    let want: Vec<_> = a.iter().map(|&x| scalar::binary(op, ty, s, x).unwrap()).collect();
                    assert_same(d, &got, &want, &what);
                    (
                        exec(row.name, none, dst, &[full(t, &a), Src::Scalar(d, s)]).unwrap(),
                        a.iter().map(|&x| scalar::binary(op, ty, x, s).unwrap()).collect(),
                    )
                }
                Sem::Unary(op) => (
                    exec(row.name, none, dst, &[full(t, &a)]).unwrap(),
                    a.iter().map(|&x| scalar::unary(op, ty, x).unwrap()).collect(),
                ),
                Sem::Expand => (exec(row.name, none, dst, &[Src::Scalar(d, a[4])]).unwrap(), vec![a[4]; 12]),
                Sem::Compare => {
                    for &cmp in CmpOp::ALL {
                        let attrs = InstAttrs { cmp: Some(cmp), ..none };
                        let mask = (vec_ty(DType::Bool, 3, 4), (3, 4));
                        let got = exec(row.name, attrs, mask, &[full(t, &a), full(t, &b)]).unwrap();
                        let want: Vec<_> =
                            a.iter().zip(&b).map(|(&x, &y)| u64::from(scalar::compare(cmp, ty, x, y))).collect();
                        assert_same(DType::Bool, &got, &want, &what);
                    }
                    continue;
                }
                Sem::Select => {
                    let m = [1, 0, 0, 1, 1, 1, 0, 1, 0, 0, 0, 1];
                    let mask = full(vec_ty(DType::Bool, 3, 4), &m);
                    (
                        exec(row.name, none, dst, &[mask, full(t, &a), full(t, &b)]).unwrap(),
                        m.iter().zip(a.iter().zip(&b)).map(|(&m, (&x, &y))| if m == 1 { x } else { y }).collect(),
                    )
                }
                Sem::RowExpandBinary(op) => {
                    let column = &a[2..5];
                    let small = TileType { order: Order::Dn, ..vec_ty(d, 3, 1) };
                    (
                        exec(row.name, none, dst, &[full(t, &a), full(small, column)]).unwrap(),
                        (0..12).map(|i| scalar::binary(op, ty, a[i], column[i / 4]).unwrap()).collect(),
                    )
                }
                Sem::ColExpandBinary(op) => {
                    let line = &a[2..6];
                    (
                        exec(row.name, none, dst, &[full(t, &a), full(vec_ty(d, 1, 4), line)]).unwrap(),
                        (0..12).map(|i| scalar::binary(op, ty, a[i], line[i % 4]).unwrap()).collect(),
                    )
                }
                Sem::RowExpand => (
                    exec(row.name, none, dst, &[full(vec_ty(d, 3, 1), &a[..3])]).unwrap(),
                    (0..12).map(|i| a[i / 4]).collect(),
                ),
                Sem::ColExpand => (
                    exec(row.name, none, dst, &[full(vec_ty(d, 1, 4), &a[..4])]).unwrap(),
                    (0..12).map(|i| a[i % 4]).collect(),
                ),
                Sem::Transpose => (
                    exec(row.name, none, (vec_ty(d, 4, 3), (4, 3)), &[full(t, &a)]).unwrap(),
                    (0..12).map(|i| a[i % 3 * 4 + i / 3]).collect(),
                ),
                _ => continue,
            };
            assert_same(d, &got, &want, &what);
            seen += 1;
        }
    }
    assert!(seen > 200, "{seen} combinations");
}

#[test]
fn conversions_of_every_pair_and_mode() {
    let mut pairs: Vec<(DType, DType)> = listed(lookup("TCVT").unwrap().get()).map(|e| (e[0], e[1])).collect();
    pairs.sort();
    pairs.dedup();
    assert!(!pairs.is_empty());
    for (from, to) in pairs {
        let a = corners(from);
        for (n, &round) in RoundMode::ALL.iter().enumerate() {
            // All three settings come up, each with two modes.
            let saturate = [None, Some(true), Some(false)][n % 3];
            let attrs = InstAttrs { round: Some(round), saturate, ..InstAttrs::default() };
            let got = exec("TCVT", attrs, (vec_ty(to, 3, 4), (3, 4)), &[full(vec_ty(from, 3, 4), &a)]).unwrap();
            let saturate = saturate.unwrap_or(scalar::saturates_unasked(Ty::D(from), Ty::D(to)));
            let want: Vec<_> = a.iter().map(|&x| scalar::convert(Ty::D(from), Ty::D(to), x, round, saturate)).collect();
            assert_same(to, &got, &want, &format!("{from} to {to} {round}"));
        }
    }
}

/// Numbers, so that the table above does not only compare the interpreter with its own arithmetic.
#[test]
fn a_few_numbers() {
    let none = InstAttrs::default();
    let t = vec_ty(DType::F32, 1, 8);
    let dst = (t, (1, 4));
    let src = |xs: &[f32]| Src::Tile(t, (1, 4), f32s(xs));
    let (a, b) = ([1.0, 2.5, -3.0, 0.0], [4.0, -2.0, 0.5, 0.0]);
    assert_eq!(exec("TADD", none, dst, &[src(&a), src(&b)]).unwrap(), f32s(&[5.0, 0.5, -2.5, 0.0]));
    assert_eq!(exec("TDIV", none, dst, &[src(&b), src(&a)]).unwrap()[..3], f32s(&[4.0, -0.8, -1.0 / 6.0])[..]);
    assert_eq!(exec("TMAX", none, dst, &[src(&a), src(&b)]).unwrap(), f32s(&[4.0, 2.5, 0.5, 0.0]));
    assert_eq!(
        exec("TEXP", none, dst, &[src(&[0.0, f32::NEG_INFINITY, 1.0, 200.0])]).unwrap()[..2],
        f32s(&[1.0, 0.0])[..]
    );
    let minus = [Src::Tile(t, (1, 4), f32s(&a)), Src::Scalar(DType::F32, f32s(&[1.0])[0])];
    let reversed = InstAttrs { reversed: true, ..none };
    assert_eq!(exec("TSUBS", none, dst, &minus).unwrap(), f32s(&[0.0, 1.5, -4.0, -1.0]));
    assert_eq!(exec("TSUBS", reversed, dst, &minus).unwrap(), f32s(&[0.0, -1.5, 4.0, 1.0]));
    let u = vec_ty(DType::U8, 1, 32);
    let bytes = |xs: &[u64]| Src::Tile(u, (1, 3), xs.to_vec());
    assert_eq!(exec("TADD", none, (u, (1, 3)), &[bytes(&[250, 1, 0]), bytes(&[10, 1, 0])]).unwrap(), [4, 2, 0]);
    assert_eq!(exec("TNOT", none, (u, (1, 3)), &[bytes(&[250, 1, 0])]).unwrap(), [5, 254, 255]);
}

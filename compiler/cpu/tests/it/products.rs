//! Matrix products of every shape, stride and type against the evaluator.

use crate::make::{Build, agree, tensor};
use proptest::prelude::*;
use ptoc_ir::loops::{Contract, MemTy, Module, Op, Start, Stride};

/// How a matrix lies in memory.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Order {
    Rows,
    Columns,
    /// Rows with gaps between the elements too.
    Loose,
}

fn strides(order: Order, rows: i64, cols: i64, size: i64) -> (i64, i64) {
    match order {
        Order::Rows => ((cols + 1) * size, size),
        Order::Columns => (size, (rows + 2) * size),
        Order::Loose => ((2 * cols + 1) * size, 2 * size),
    }
}

#[derive(Clone, Copy, Debug)]
struct Case {
    m: i64,
    n: i64,
    k: i64,
    /// Which extents are constants: bits 0, 1, 2.
    known: u8,
    ab: MemTy,
    d: MemTy,
    start: Option<(MemTy, bool)>,
    orders: (Order, Order, Order),
    /// Start is d itself.
    in_place: bool,
    /// Strides are in registers.
    strides: bool,
}

fn module(case: &Case) -> Module {
    let mut f = Build::new(3);
    let extents: Vec<_> = [case.m, case.n, case.k]
        .into_iter()
        .enumerate()
        .map(|(bit, value)| if case.known >> bit & 1 == 1 { f.i64(value) } else { f.params[bit] })
        .collect();
    let zero = f.i64(0);
    let (a, b, d) = case.orders;
    let mut by = |(row, col): (i64, i64)| match case.strides {
        true => (Stride::Reg(f.i64(row)), Stride::Reg(f.i64(col))),
        false => (Stride::Const(row), Stride::Const(col)),
    };
    let d_strides = by(strides(d, case.m, case.n, i64::from(case.d.size())));
    let a_strides = by(strides(a, case.m, case.k, i64::from(case.ab.size())));
    let b_strides = by(strides(b, case.k, case.n, i64::from(case.ab.size())));
    let start = match case.start {
        None => Start::Zero,
        Some(_) if case.in_place => Start::At { addr: tensor(2, zero), row: d_strides.0, col: d_strides.1, ty: case.d },
        Some((ty, bias)) => {
            let (row, col) = strides(Order::Rows, case.m, case.n, i64::from(ty.size()));
            let (row, col) = by((if bias { 0 } else { row }, col));
            Start::At { addr: tensor(3, zero), row, col, ty }
        }
    };
    f.push(Op::Contract(Box::new(Contract {
        m: extents[0],
        n: extents[1],
        k: extents[2],
        d: tensor(2, zero),
        d_strides,
        d_ty: case.d,
        start,
        a: tensor(0, zero),
        a_strides,
        b: tensor(1, zero),
        b_strides,
        ab_ty: case.ab,
        part_of: None,
    })));
    f.module(4)
}

/// Small multiples of 1/8 (so that f16 is often exact, and rounding often not), or integers that wrap.
fn data(ty: MemTy, count: usize, seed: u32) -> Vec<u8> {
    let mut state = seed.wrapping_mul(2_654_435_761) | 1;
    (0..count)
        .flat_map(|_| {
            state ^= state << 13;
            state ^= state >> 17;
            state ^= state << 5;
            let number = (state % 257) as f32 / 8.0 - 15.7;
            match ty {
                MemTy::F32 => number.to_bits().to_le_bytes().to_vec(),
                MemTy::F16 => half::f16::from_f32(number).to_bits().to_le_bytes().to_vec(),
                MemTy::BF16 => half::bf16::from_f32(number).to_bits().to_le_bytes().to_vec(),
                _ => state.to_le_bytes()[..ty.size() as usize].to_vec(),
            }
        })
        .collect()
}

fn check(case: &Case, seed: u32) -> Result<(), String> {
    let module = module(case);
    let cells = |rows: i64, cols: i64| ((2 * cols + 3) * (rows + 3)).max((rows + 3) * (2 * cols + 3)) as usize;
    let tensors = [
        data(case.ab, cells(case.m, case.k), seed),
        data(case.ab, cells(case.k, case.n), seed ^ 1),
        data(case.d, cells(case.m, case.n), seed ^ 2),
        data(case.start.map_or(case.d, |s| s.0), cells(case.m, case.n), seed ^ 3),
    ];
    agree(&module, &[case.m, case.n, case.k], &tensors)
}

/// Products of up to so many rows, columns and steps.
fn small() -> impl Strategy<Value = (i64, i64, i64)> {
    (0..21i64, 0..30i64, 0..21i64)
}

/// Products that a GPU stages through shared memory: of several macro-tiles, whole ones and rests, and rows that begin
/// at multiples of 16 bytes as well as elsewhere ([`strides`]).
fn large() -> impl Strategy<Value = (i64, i64, i64)> {
    let side = || prop_oneof![30..150i64, Just(63), Just(64), Just(127), Just(131)];
    (side(), side(), prop_oneof![0..21i64, Just(15), Just(23), Just(31)])
}

fn case(shape: impl Strategy<Value = (i64, i64, i64)>) -> impl Strategy<Value = Case> {
    let order = || prop_oneof![3 => Just(Order::Rows), 2 => Just(Order::Columns), 1 => Just(Order::Loose)];
    let types = prop_oneof![
        (
            prop_oneof![3 => Just(MemTy::F32), 1 => Just(MemTy::F16), 1 => Just(MemTy::BF16)],
            prop_oneof![Just(MemTy::F32), Just(MemTy::F16), Just(MemTy::BF16)],
            prop_oneof![Just(MemTy::F32), Just(MemTy::F16), Just(MemTy::BF16)]
        ),
        (
            prop_oneof![2 => Just(MemTy::I32), 1 => Just(MemTy::I8)],
            prop_oneof![Just(MemTy::I32), Just(MemTy::I8), Just(MemTy::U16)],
            prop_oneof![Just(MemTy::I32), Just(MemTy::I16)]
        ),
    ];
    ((shape, 0..8u8), types, proptest::option::of(any::<bool>()), (order(), order(), order()), any::<(bool, bool)>())
        .prop_map(|(((m, n, k), known), (ab, d, start), bias, orders, (in_place, strides))| Case {
            m,
            n,
            k,
            known,
            ab,
            d,
            start: bias.map(|bias| (start, bias)),
            orders,
            in_place,
            strides,
        })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ptoc_tests_budget::cases(32, 96), ..ProptestConfig::default() })]

    #[test]
    fn random_products(case in case(small()), seed in any::<u32>()) {
        if let Err(why) = check(&case, seed) {
            prop_assert!(false, "{case:?}: {why}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ptoc_tests_budget::cases(8, 24), ..ProptestConfig::default() })]

    #[test]
    fn random_large_products(case in case(large()), seed in any::<u32>()) {
        if let Err(why) = check(&case, seed) {
            prop_assert!(false, "{case:?}: {why}");
        }
    }
}

#[test]
fn every_small_shape() {
    for known in [0, 7] {
        for (m, n, k) in (0..6).flat_map(|m| [0, 1, 3, 4, 11, 12, 13, 17].map(|n| (m, n, (m * 5 + n) % 10))) {
            let rows = (Order::Rows, Order::Rows, Order::Rows);
            let case = Case {
                m,
                n,
                k,
                known,
                ab: MemTy::F32,
                d: MemTy::F32,
                start: None,
                orders: rows,
                in_place: false,
                strides: false,
            };
            check(&case, 7).unwrap_or_else(|why| panic!("{case:?}: {why}"));
        }
    }
}

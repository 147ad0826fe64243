//! Matrix products along random nests of axes: the bits of the interpreter.

use crate::harness::*;
use crate::nests::{Dice, Line, Nest, Plan, Sides, Tables, tensor_plan, tile_plan};
use ptoc_ir::tile::{Elem, Kernel, Mma, NestAccess, Value};
use ptoc_tensor::DType;

const TRIPLES: [(DType, DType); 5] = [
    (DType::F32, DType::F32),
    (DType::F32, DType::F16),
    (DType::F32, DType::BF16),
    (DType::I32, DType::I8),
    (DType::F16, DType::F16),
];

/// A side that sees some axes only.
fn plan(n: &mut Nest, d: &mut Dice, (name, dtype): (&str, DType), seen: &[bool], apart: bool, tables: Tables) -> Plan {
    let all = n.extents.clone();
    n.extents = all.iter().zip(seen).filter(|(_, s)| **s).map(|(e, _)| *e).collect();
    let plan = match d.one_in(2) && tables == Tables::None {
        true => tile_plan(d, dtype, &n.extents, apart),
        false => tensor_plan(n, d, name, dtype, apart, tables),
    };
    n.extents = all;
    let zero = n.k.c(0);
    fn spread<T: Clone>(steps: &mut Vec<T>, seen: &[bool], zero: &T) {
        let mut own = std::mem::take(steps).into_iter();
        steps.extend(seen.iter().map(|s| if *s { own.next().unwrap() } else { zero.clone() }));
    }
    match plan {
        Plan::Tile(mut row, mut col, ty, addr, origin) => {
            spread(&mut row.steps, seen, &0);
            spread(&mut col.steps, seen, &0);
            Plan::Tile(row, col, ty, addr, origin)
        }
        Plan::Tensor(mut access) => {
            if let NestAccess::Tensor { at, tables, .. } = &mut access {
                spread(&mut at.strides, seen, &zero);
                tables.iter_mut().for_each(|t| spread(&mut t.at.strides, seen, &zero));
            }
            Plan::Tensor(access)
        }
    }
}

fn random_product(seed: u64, wrong: bool) -> Option<(Kernel, Args)> {
    let mut d = Dice::new(seed);
    let counts = [0, 1, 2].map(|_| d.pick(&[0usize, 1, 1, 2, 2]));
    let size = |d: &mut Dice| if d.one_in(30) { 0 } else { d.pick(&[1, 2, 3, 4, 5, 8]) };
    let extents: Vec<i64> = (0..counts.iter().sum::<usize>()).map(|_| size(&mut d)).collect();
    let symbolic = d.one_in(3);
    let mut n = Nest::new(extents.clone(), symbolic);
    n.tame = true;
    let (acc, operand) = d.pick(&TRIPLES);
    let seen = |groups: [bool; 3]| -> Vec<bool> {
        counts.iter().zip(groups).flat_map(|(&c, sees)| std::iter::repeat_n(sees, c)).collect()
    };
    let tables = |d: &mut Dice| match (wrong, d.one_in(5)) {
        (true, _) => Tables::Wrong,
        (_, true) => Tables::Valid,
        _ => Tables::None,
    };
    let (ta, tb) = (tables(&mut d), tables(&mut d));
    let plans = [
        plan(&mut n, &mut d, ("acc", acc), &seen([true, true, false]), true, Tables::None),
        plan(&mut n, &mut d, ("a", operand), &seen([true, false, true]), false, ta),
        plan(&mut n, &mut d, ("b", operand), &seen([false, true, true]), false, tb),
    ];
    if plans.iter().any(|p| matches!(p, Plan::Tile(_, _, ty, ..) if ty.bytes() > 1 << 14)) {
        return None;
    }
    let sides = Sides::new(&mut n, &mut d, plans.into());
    let axes: Vec<Value> = extents.iter().map(|&e| n.number(&mut d, e)).collect();
    n.k.b.begin_body();
    sides.run(&mut n, |n, sides| {
        let span = n.k.span();
        let [acc, a, b] = <[NestAccess; 3]>::try_from(sides).unwrap();
        let (m, rest) = axes.split_at(counts[0]);
        let (c, k) = rest.split_at(counts[1]);
        n.k.b.mma(Mma { m: m.into(), n: c.into(), k: k.into(), acc, a, b }, span);
    });
    Some((n.k.finish(), n.args))
}

#[test]
fn random_products() {
    for seed in 0..ptoc_tests_budget::cases(125, 500) {
        let Some((kernel, args)) = random_product(seed, false) else { continue };
        let end = run_interpreter(&kernel, &args);
        assert!(matches!(end, End::Done(_)), "{seed}: {end:?}\n{kernel}");
        agree(&kernel, a5(), &args);
    }
}

#[test]
fn wrong_entries_of_operands() {
    let (mut failed, all) = (0u64, ptoc_tests_budget::cases::<u64>(90, 300));
    for seed in 1000..1000 + all {
        let Some((kernel, args)) = random_product(seed, true) else { continue };
        let prepared = compile(&kernel, a5());
        match run_interpreter(&kernel, &args) {
            End::Done(_) => agree(&kernel, a5(), &args),
            want => {
                assert_eq!(want, run_lowered_and_tell(&prepared, &args), "{seed}\n{kernel}");
                failed += 1;
            }
        }
    }
    assert!(failed > all / 6, "{failed} of {all}");
}

/// A product of whole tensors, large enough for the widest blocks, in every combination of dtypes and orders.
#[test]
fn large_products() {
    for (acc, operand) in TRIPLES {
        for order in 0..4 {
            let (m, n, k) = (37, 50, 43);
            let mut nest = Nest::new(vec![m, n, k], false);
            nest.tame = true;
            let mut d = Dice::new(5 + order);
            let side = |nest: &mut Nest, d: &mut Dice, name: &str, dtype, count: i64, steps: [i64; 3]| {
                let tensor = nest.tensor(name, dtype, &[count], tame(dtype, count as u64));
                let at = nest.affine(d, &Line { start: 0, steps: steps.into() });
                NestAccess::Tensor { tensor, elem: Elem::Whole(dtype), at, swizzle: None, tables: vec![] }
            };
            let c = if order & 1 == 0 { [n, 1, 0] } else { [1, m, 0] };
            let (x, y) = if order & 2 == 0 { ([k, 0, 1], [0, k, 1]) } else { ([1, 0, m], [0, 1, n]) };
            let c = side(&mut nest, &mut d, "c", acc, m * n, c);
            let a = side(&mut nest, &mut d, "a", operand, m * k, x);
            let b = side(&mut nest, &mut d, "b", operand, n * k, y);
            let axes = [m, n, k].map(|e| nest.k.c(e));
            nest.k.b.begin_body();
            let span = nest.k.span();
            let [m, n, k] = axes.map(|e| vec![e]);
            nest.k.b.mma(Mma { m, n, k, acc: c, a, b }, span);
            agree(&nest.k.finish(), a5(), &nest.args);
        }
    }
}

use super::*;
use IntExpr::Var;

fn f32s(xs: &[f32]) -> Vec<u8> {
    xs.iter().flat_map(|x| x.to_le_bytes()).collect()
}

fn elem(tensor: usize, index: Vec<IntExpr>) -> OracleExpr {
    OracleExpr::Elem { tensor, index }
}

fn tensor<'a>(dtype: DType, shape: &'a [u64], data: &'a [u8]) -> OracleTensor<'a> {
    OracleTensor { dtype, shape, data }
}

fn sum(var: usize, hi: IntExpr, body: OracleExpr) -> OracleExpr {
    OracleExpr::Reduce { kind: ReduceKind::Sum, var, lo: IntExpr::Const(0), hi, body: Box::new(body) }
}

fn gemm() -> OracleExpr {
    let product = OracleExpr::binary(BinOp::Mul, elem(0, vec![Var(0), Var(2)]), elem(1, vec![Var(2), Var(1)]));
    sum(2, IntExpr::Extent { tensor: 0, mode: 1 }, product)
}

#[test]
fn matrix_product_with_bias_and_activation() {
    let (a, b) = (f32s(&[1., 2., 3., 4., 5., 6.]), f32s(&[1., 0., 0., 1., 1., 1.]));
    let bias = f32s(&[-20.0, 0.5]);
    // let x = sum + bias in max(x, 0) * x
    let local = || OracleExpr::Local(0);
    let expr = OracleExpr::Let {
        slot: 0,
        value: Box::new(OracleExpr::binary(BinOp::Add, gemm(), elem(2, vec![Var(1)]))),
        body: Box::new(OracleExpr::binary(BinOp::Mul, OracleExpr::unary(UnOp::Relu, local()), local())),
    };
    let oracle = Oracle::new(Equation { tensor: 3, vars: vec![0, 1], expr, exact: false }).unwrap();
    let tensors = [
        tensor(DType::F32, &[2, 3], &a),
        tensor(DType::F32, &[3, 2], &b),
        tensor(DType::F32, &[2], &bias),
        tensor(DType::F32, &[2, 2], &[]),
    ];
    let got = oracle.evaluate(Inputs { tensors: &tensors, ints: &[], scalars: &[] }).unwrap();
    assert_eq!(got, [0.0, 5.5 * 5.5, 0.0, 11.5 * 11.5]);
}

/// Long rows cross the run length; a softmax has reductions that do not depend on the lane.
#[test]
fn softmax_of_long_rows() {
    let (rows, cols) = (3usize, 700usize);
    let xs: Vec<f32> = (0..rows * cols).map(|i| ((i * 37 % 101) as f32 - 50.0) / 10.0).collect();
    let data = f32s(&xs);
    let exp = |var| OracleExpr::unary(UnOp::Exp, elem(0, vec![Var(0), Var(var)]));
    let expr = OracleExpr::binary(BinOp::Div, exp(1), sum(2, IntExpr::Input(0), exp(2)));
    let oracle = Oracle::new(Equation { tensor: 0, vars: vec![0, 1], expr, exact: false }).unwrap();
    let shape = [rows as u64, cols as u64];
    let inputs = Inputs { tensors: &[tensor(DType::F32, &shape, &data)], ints: &[cols as i64], scalars: &[] };
    let got = oracle.evaluate(inputs).unwrap();
    for i in 0..rows {
        let row: Vec<f64> = xs[i * cols..][..cols].iter().map(|&x| f64::from(x).exp()).collect();
        let total: f64 = row.iter().sum();
        for j in 0..cols {
            assert!((got[i * cols + j] - row[j] / total).abs() < 1e-15);
        }
    }
}

#[test]
fn index_arithmetic_and_lookups() {
    // y[n, k] = scales[n, k / 2] * table[k % 2]
    let scales = f32s(&[1., 10., 100., 1000.]);
    let table = [1i32, -1].iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<_>>();
    let half = IntExpr::binary(IntOp::Div, Var(1), IntExpr::Const(2));
    let parity = IntExpr::binary(IntOp::Rem, Var(1), IntExpr::Const(2));
    let lookup = OracleExpr::Int(IntExpr::Elem { tensor: 1, index: vec![parity] });
    let expr = OracleExpr::binary(BinOp::Mul, elem(0, vec![Var(0), half]), lookup);
    let oracle = Oracle::new(Equation { tensor: 2, vars: vec![0, 1], expr, exact: false }).unwrap();
    let tensors =
        [tensor(DType::F32, &[2, 2], &scales), tensor(DType::I32, &[2], &table), tensor(DType::F32, &[2, 4], &[])];
    let got = oracle.evaluate(Inputs { tensors: &tensors, ints: &[], scalars: &[] }).unwrap();
    assert_eq!(got, [1., -1., 10., -10., 100., -100., 1000., -1000.]);
}

#[test]
fn select_takes_one_branch() {
    // y[i] = i >= 2 ? x[i - 2] : s
    let x = f32s(&[1., 2., 3.]);
    let shifted = elem(0, vec![IntExpr::binary(IntOp::Sub, Var(0), IntExpr::Const(2))]);
    let cond = OracleExpr::compare(CmpOp::Ge, OracleExpr::Int(Var(0)), OracleExpr::int(2));
    let expr = OracleExpr::select(cond, shifted.clone(), OracleExpr::Scalar(0));
    let equation = |expr| Equation { tensor: 1, vars: vec![0], expr, exact: false };
    let tensors = [tensor(DType::F32, &[3], &x), tensor(DType::F32, &[5], &[])];
    let scalars = [(Ty::D(DType::F32), u64::from(7f32.to_bits()))];
    let inputs = Inputs { tensors: &tensors, ints: &[], scalars: &scalars };
    assert_eq!(Oracle::new(equation(expr)).unwrap().evaluate(inputs), Ok(vec![7., 7., 1., 2., 3.]));
    let error = OracleError::OutOfRange { tensor: 0, mode: 0, index: -2, extent: 3 };
    assert_eq!(Oracle::new(equation(shifted)).unwrap().evaluate(inputs), Err(error));
}

#[test]
fn exact_integers() {
    let data: Vec<u8> = [u64::MAX, 3, 1 << 60].iter().flat_map(|x| x.to_le_bytes()).collect();
    let square = OracleExpr::binary(BinOp::Mul, elem(0, vec![Var(0)]), elem(0, vec![Var(0)]));
    let equation = |expr| Equation { tensor: 0, vars: vec![0], expr, exact: true };
    let inputs = Inputs { tensors: &[tensor(DType::U64, &[3], &data)], ints: &[], scalars: &[] };
    let cube = OracleExpr::binary(BinOp::Mul, square.clone(), elem(0, vec![Var(0)]));
    assert_eq!(Oracle::new(equation(cube)).unwrap().evaluate_exact(inputs, Sample::ALL), Err(OracleError::Overflow));
    let minus = OracleExpr::binary(BinOp::Sub, elem(0, vec![Var(0)]), OracleExpr::int(1));
    let got = Oracle::new(equation(minus)).unwrap().evaluate_exact(inputs, Sample::ALL).unwrap().values;
    assert_eq!(got, [i128::from(u64::MAX) - 1, 2, (1 << 60) - 1]);
    assert_eq!(Oracle::new(equation(OracleExpr::Const(0.5))).err(), Some(OracleError::NotInteger));
    let root = OracleExpr::unary(UnOp::Sqrt, square);
    assert_eq!(Oracle::new(equation(root)).err(), Some(OracleError::NotInteger));
}

#[test]
fn conditions_over_data() {
    let zeros: Vec<u8> = vec![1, 2, 15, 3, 16, 5];
    let condition = Condition {
        vars: vec![
            (0, IntExpr::Const(0), IntExpr::Extent { tensor: 0, mode: 0 }),
            (1, IntExpr::Const(0), IntExpr::Extent { tensor: 0, mode: 1 }),
        ],
        cond: OracleExpr::compare(CmpOp::Lt, elem(0, vec![Var(0), Var(1)]), OracleExpr::int(16)),
        exact: true,
    };
    let p = Predicate::new(&condition).unwrap();
    let all = |shape: &[u64], data: &[u8]| {
        let inputs = Inputs { tensors: &[tensor(DType::U8, shape, data)], ints: &[], scalars: &[] };
        p.counterexample(inputs)
    };
    assert_eq!(all(&[2, 3], &zeros), Ok(Some(vec![1, 1])));
    assert_eq!(all(&[2, 2], &zeros), Ok(None));
    assert_eq!(all(&[0, 2], &[]), Ok(None));
}

#[test]
fn malformed_expressions_are_refused() {
    let equation = |expr| Oracle::new(Equation { tensor: 0, vars: vec![0], expr, exact: false }).err();
    assert!(matches!(equation(OracleExpr::Int(Var(1))), Some(OracleError::Malformed(_))));
    assert!(matches!(equation(OracleExpr::Local(0)), Some(OracleError::Malformed(_))));
    assert!(matches!(equation(sum(0, IntExpr::Const(3), OracleExpr::int(1))), Some(OracleError::Malformed(_))));
    let mut deep = OracleExpr::int(1);
    for _ in 0..2000 {
        deep = OracleExpr::unary(UnOp::Neg, deep);
    }
    assert!(matches!(equation(deep), Some(OracleError::Malformed(_))));
    // As deep as is allowed, in every position.
    let shape = [1];
    let tensors = [tensor(DType::F32, &shape, &[])];
    let inputs = Inputs { tensors: &tensors, ints: &[], scalars: &[] };
    let mut deep = OracleExpr::Int(Var(0));
    for _ in 0..node::MAX_DEPTH / 2 - 2 {
        deep = OracleExpr::Let {
            slot: 0,
            value: Box::new(OracleExpr::unary(UnOp::Neg, deep)),
            body: Box::new(OracleExpr::Local(0)),
        };
    }
    let oracle = Oracle::new(Equation { tensor: 0, vars: vec![0], expr: deep, exact: false }).unwrap();
    assert!(oracle.evaluate(inputs).is_ok());
    let divided = IntExpr::binary(IntOp::Div, Var(0), IntExpr::Const(0));
    let oracle = Oracle::new(Equation { tensor: 0, vars: vec![0], expr: OracleExpr::Int(divided), exact: false });
    assert_eq!(oracle.unwrap().evaluate(inputs), Err(OracleError::DivisionByZero));
}

#[test]
fn empty_tensors_and_rank_0() {
    let oracle = Oracle::new(Equation { tensor: 0, vars: vec![0, 1], expr: OracleExpr::int(1), exact: false }).unwrap();
    let evaluate = |oracle: &Oracle, shape: &[u64]| {
        oracle.evaluate(Inputs { tensors: &[tensor(DType::F32, shape, &[])], ints: &[], scalars: &[] })
    };
    assert_eq!(evaluate(&oracle, &[0, 3]), Ok(vec![]));
    assert_eq!(evaluate(&oracle, &[3, 0]), Ok(vec![]));
    let scalar = Oracle::new(Equation { tensor: 0, vars: vec![], expr: OracleExpr::int(4), exact: false }).unwrap();
    assert_eq!(evaluate(&scalar, &[]), Ok(vec![4.0]));
}

#[test]
fn error_function() {
    // Abramowitz and Stegun, table 7.1.
    for (x, want) in [(0.0, 0.0), (0.5, 0.520_499_877_8), (1.0, 0.842_700_792_9), (2.0, 0.995_322_265_0)] {
        assert!((erf(x) - want).abs() < 1e-10, "{x}");
        assert_eq!(erf(-x), -erf(x));
    }
    assert_eq!(erf(7.0), 1.0);
    assert!(erf(f64::NAN).is_nan());
}

/// A GEMM of 128^3, to keep an eye on the speed: it must not take long even unoptimised.
#[test]
fn a_larger_product() {
    let n = 128usize;
    let xs: Vec<f32> = (0..n * n).map(|i| (i % 7) as f32 - 3.0).collect();
    let data = f32s(&xs);
    let oracle = Oracle::new(Equation { tensor: 2, vars: vec![0, 1], expr: gemm(), exact: false }).unwrap();
    let shape = [n as u64, n as u64];
    let t = tensor(DType::F32, &shape, &data);
    let got = oracle.evaluate(Inputs { tensors: &[t, t, t], ints: &[], scalars: &[] }).unwrap();
    let want: f64 = (0..n).map(|k| f64::from(xs[5 * n + k]) * f64::from(xs[k * n + 9])).sum();
    assert_eq!(got[5 * n + 9], want);
}

fn reduce(kind: ReduceKind, var: usize, hi: i64, body: OracleExpr) -> OracleExpr {
    OracleExpr::Reduce { kind, var, lo: IntExpr::Const(0), hi: IntExpr::Const(hi), body: Box::new(body) }
}

/// What an expression over rows of a 3 x 4 tensor gives.
fn of_rows(xs: &[f32], body: impl Fn(OracleExpr) -> OracleExpr) -> Vec<f64> {
    let data = f32s(xs);
    let tensors = [tensor(DType::F32, &[3, 4], &data), tensor(DType::F32, &[3], &[])];
    let expr = body(elem(0, vec![Var(0), Var(1)]));
    let oracle = Oracle::new(Equation { tensor: 1, vars: vec![0], expr, exact: false }).unwrap();
    oracle.evaluate(Inputs { tensors: &tensors, ints: &[], scalars: &[] }).unwrap()
}

#[test]
fn places_of_extremes_and_permutations() {
    let xs = [1.0, 3.0, 3.0, 0.0, 2.0, f32::NAN, 9.0, f32::NAN, 0.0, 3.0, 1.0, 2.0];
    assert_eq!(of_rows(&xs, |e| reduce(ReduceKind::ArgMax, 1, 4, e)), [1.0, 1.0, 1.0]);
    assert_eq!(of_rows(&xs, |e| reduce(ReduceKind::ArgMin, 1, 4, e)), [3.0, 1.0, 0.0]);
    assert_eq!(of_rows(&xs, |e| reduce(ReduceKind::ArgMax, 1, 0, e)), [0.0, 0.0, 0.0]);
    assert_eq!(of_rows(&xs, |e| reduce(ReduceKind::Permutation, 1, 4, e)), [0.0, 0.0, 1.0]);
    let rearranged = |a: OracleExpr| {
        let back = IntExpr::binary(IntOp::Sub, IntExpr::Const(3), Var(1));
        let b = a.rewritten(&Substitute { var: 1, by: back });
        OracleExpr::Rearranged { var: 1, lo: IntExpr::Const(0), hi: IntExpr::Const(4), a: a.into(), b: b.into() }
    };
    assert_eq!(of_rows(&xs, rearranged), [1.0, 1.0, 1.0]);
    let doubled = |a: OracleExpr| {
        let b = OracleExpr::binary(BinOp::Add, a.clone(), a.clone());
        OracleExpr::Rearranged { var: 1, lo: IntExpr::Const(0), hi: IntExpr::Const(4), a: a.into(), b: b.into() }
    };
    assert_eq!(of_rows(&xs, doubled), [0.0, 0.0, 0.0]);
}

#[test]
fn powers_of_reals_and_integers() {
    let number = |x| Box::new(OracleExpr::Const(x));
    let of = |a, b, exact| {
        let equation = Equation { tensor: 0, vars: Vec::new(), expr: OracleExpr::Pow(number(a), number(b)), exact };
        let oracle = Oracle::new(equation).unwrap();
        oracle.evaluate(Inputs { tensors: &[tensor(DType::I64, &[], &[])], ints: &[], scalars: &[] })
    };
    assert_eq!(of(2.0, 0.5, false), Ok(vec![2f64.sqrt()]));
    assert_eq!(of(3.0, 4.0, true), Ok(vec![81.0]));
    assert_eq!(of(-1.0, -3.0, true), Ok(vec![-1.0]));
    assert_eq!(of(2.0, -1.0, true), Err(OracleError::NotInteger));
    assert_eq!(of(3.0, 200.0, true), Err(OracleError::Overflow));
}

/// The two sides are of two lists of tensors: what is before a launch and what is after it.
#[test]
fn both_sides_of_a_relation() {
    let (before, after) = (f32s(&[1.0, 2.0, 3.0]), f32s(&[2.0, 4.0, 7.0]));
    let x = || elem(0, vec![Var(0)]);
    let relation = Relation {
        vars: vec![(0, IntExpr::Const(0), IntExpr::Extent { tensor: 0, mode: 0 })],
        left: x().rewritten(&Shift(1)),
        right: OracleExpr::binary(BinOp::Mul, x(), OracleExpr::Const(2.0)),
        exact: false,
    };
    let tensors = [tensor(DType::F32, &[3], &before), tensor(DType::F32, &[3], &after)];
    let mut seen = Vec::new();
    let inputs = Inputs { tensors: &tensors, ints: &[], scalars: &[] };
    let comparison = Comparison::new(&relation).unwrap();
    comparison.each(inputs, &mut |c| seen.push((c.at.to_vec(), c.left, c.right, c.equal))).unwrap();
    let want = [(vec![0], 2.0, 2.0, true), (vec![1], 4.0, 4.0, true), (vec![2], 7.0, 6.0, false)];
    assert_eq!(seen, want);
}

/// Where all is too much work, some runs of elements are evaluated, always the same ones.
#[test]
fn a_sample_of_the_elements() {
    let (rows, cols) = (64usize, 600usize);
    let data = f32s(&(0..rows * cols).map(|i| i as f32).collect::<Vec<_>>());
    let shape = [rows as u64, cols as u64];
    let inputs = Inputs { tensors: &[tensor(DType::F32, &shape, &data)], ints: &[cols as i64], scalars: &[] };
    let total = sum(2, IntExpr::Input(0), elem(0, vec![Var(0), Var(2)]));
    let oracle = Oracle::new(Equation { tensor: 0, vars: vec![0, 1], expr: total, exact: false }).unwrap();
    assert_eq!(oracle.work(inputs), (rows * cols) as u128 * (cols as u128 + 1));
    assert_eq!(oracle.sample(inputs, MAX_WORK), Sample::ALL);
    assert_eq!(oracle.addends(inputs), cols as u128);
    let all = oracle.evaluate_sample(inputs, Sample::ALL).unwrap();
    assert_eq!((all.values.len(), all.skipped.len()), (rows * cols, 0));
    let sample = oracle.sample(inputs, oracle.work(inputs) / 8);
    assert_eq!(sample.every, 8);
    let some = oracle.evaluate_sample(inputs, sample).unwrap();
    let skipped: usize = some.skipped.iter().map(|r| r.len()).sum();
    let looked_at = rows * cols - skipped;
    assert!((rows * cols / 16..rows * cols / 4).contains(&looked_at), "{looked_at}");
    let in_sample = |i: &usize| !some.skipped.iter().any(|r| r.contains(i));
    assert!((0..rows * cols).filter(in_sample).all(|i| some.values[i] == all.values[i]));
    assert!(in_sample(&0) && in_sample(&(rows * cols - 1)));
}

use super::*;

fn at(n: u32) -> Span {
    Span::new(ptoc_diagnostics::FileId(0), n, n + 1)
}

#[test]
fn equal_constants_and_expressions_are_one_value() {
    let mut b = Builder::new("k", at(0), "a2a3");
    let m = b.dim("M", at(1));
    let sixteen = b.index_const(16);
    let blocks = b.ceil_div(m, sixteen, at(2));
    let i = b.grid_dim("i", blocks, at(3));
    b.begin_body();
    assert_eq!(b.index_const(16), sixteen);
    let start = b.mul(i, sixteen, at(4));
    assert_eq!(b.mul(sixteen, i, at(5)), start);
    assert_eq!(b.ceil_div(m, sixteen, at(5)), blocks);
    // Sibling regions meet in the body.
    b.push_region();
    let left = b.sub(m, start, at(6));
    b.pop_region();
    b.push_region();
    let right = b.sub(m, start, at(7));
    b.pop_region();
    assert_eq!(left, right);
    // (x + 3) - 5 + 2 is x, and x - 5 is x + -5.
    let three = b.index_const(3);
    let five = b.index_const(5);
    let two = b.index_const(2);
    let x = b.add(start, three, at(8));
    let x = b.sub(x, five, at(8));
    let minus_two = b.index_const(-2);
    assert_eq!(b.add(start, minus_two, at(9)), x);
    assert_eq!(b.add(x, two, at(9)), start);
    let k = b.finish();
    assert!(k.body.iter().any(|s| s.op.def() == Some(left)));
    assert!(k.prologue.iter().all(|s| s.op.is_pure()));
}

#[test]
fn loop_variants_stay_in_the_loop() {
    let mut b = Builder::new("k", at(0), "a2a3");
    let n = b.dim("N", at(1));
    b.begin_body();
    let zero = b.index_const(0);
    let mut inside = None;
    b.for_loop("j", (zero, n), 1, at(2), |b, _, j| {
        inside = Some(b.mul(j, n, at(3)));
        b.push_region();
        assert_eq!(b.mul(n, j, at(4)), inside.unwrap());
        b.pop_region();
    });
    let k = b.finish();
    let Op::For(f) = &k.body[0].op else { panic!("a loop") };
    assert_eq!(f.body[0].op.def(), inside);
    assert_eq!(f.body.len(), 1);
}

#[test]
fn folding_and_identities() {
    let mut b = Builder::new("k", at(0), "a2a3");
    let x = b.scalar_param("x", Ty::D(DType::F32), at(1));
    let zero = b.float_const(DType::F32, 0.0);
    // -0.0 + 0.0 is 0.0: no identity.
    assert_ne!(b.add(x, zero, at(2)), x);
    let (seven, minus_two) = (b.index_const(7), b.index_const(-2));
    let q = b.binary(BinOp::Div, seven, minus_two, at(3));
    assert_eq!(b.index_of(q), Some(-4));
    let c = b.compare(CmpOp::Lt, minus_two, seven, at(4));
    assert_eq!(b.const_of(c), Some(Const { ty: Ty::BOOL, bits: 1 }));
    assert_eq!(b.select(c, x, zero, at(5)), x);
    let p = b.compare(CmpOp::Lt, x, zero, at(6));
    assert_eq!(b.and(c, p, at(7)), p);
    let f = b.float_const(DType::F32, 3.7);
    let i = b.convert(f, Ty::Index, RoundMode::Trunc, false, at(8));
    assert_eq!(b.index_of(i), Some(3));
}

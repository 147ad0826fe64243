use super::*;
use crate::{Cx, Env, Layout, Value, eval_expr, parse_value};

fn layout(text: &str) -> Layout {
    match parse_value(text).unwrap() {
        Value::Layout(l) => l,
        v => panic!("{v}"),
    }
}

/// One thread holds all that there is.
fn family(name: &str, types: [&str; 4], extents: &[i64]) -> Arc<AtomFamily> {
    let atom = |n: i64| {
        Arc::new(MmaAtom {
            name: format!("{name}{n}"),
            shape: [1, n, 1],
            types: types.map(str::to_string),
            thr: layout("1:0"),
            a: layout("(1,1):(0,0)"),
            b: layout(&format!("(1,{n}):(0,1)")),
            c: layout(&format!("(1,{n}):(0,1)")),
        })
    };
    Arc::new(AtomFamily::new(name, extents.iter().map(|&n| atom(n)).collect()).unwrap())
}

fn eval(text: &str) -> String {
    let by_8: Vec<i64> = (1..=32).map(|k| 8 * k).collect();
    let odd = [8, 16, 24, 32, 48, 64, 80, 96];
    let families = [
        family("H", ["f32", "f16", "f16", "f32"], &by_8),
        family("HH", ["f16", "f16", "f16", "f16"], &by_8),
        family("I", ["i32", "i8", "i8", "i32"], &odd),
    ];
    let mut env = Env::new();
    for name in ["f16", "f32", "bf16", "i8", "i32"] {
        env.insert(name, Value::DType(name.into()));
    }
    env.insert("FEW", Value::Family(family("FEW", ["f32", "f32", "f32", "f32"], &[6, 10])));
    match eval_expr(&Cx::default().with_families(families.into()), &env, text) {
        Ok(v) => v.to_string(),
        Err(e) => e.located(text),
    }
}

#[test]
fn the_largest_extent_that_divides() {
    for (n, atom) in [(256, "H256"), (8, "H8"), (512, "H256"), (128, "H128"), (96, "H96"), (264, "H88"), (776, "H8")] {
        assert_eq!(eval(&format!("select_mma(f16, f16, f32, {n})")), atom);
    }
    // By brute force.
    for n in 1..600 {
        let most = (1..=32).map(|k| 8 * k).filter(|e| n % e == 0).max();
        let found = eval(&format!("select_mma(f16, f16, f16, {n})"));
        match most {
            Some(e) => assert_eq!(found, format!("HH{e}")),
            None => assert!(found.contains("would do"), "{n}: {found}"),
        }
    }
    assert_eq!(eval("select_mma(i8, i8, i32, 40)"), "I8");
    assert_eq!(eval("select_mma(FEW, 60)"), "FEW10");
    assert_eq!(eval("select_mma(FEW, 18)"), "FEW6");
}

#[test]
fn extents_that_nothing_divides() {
    assert_eq!(
        eval("select_mma(f16, f16, f32, 4)"),
        "column 27: select_mma: N = 4 is below 8, the least N of H; an N of 8 would do"
    );
    assert_eq!(
        eval("select_mma(f16, f16, f32, 100)"),
        "column 27: select_mma: N = 100 is no multiple of any N that H has: 8, 16, .., 256; an N of 96 or 104 would do"
    );
    assert_eq!(
        eval("select_mma(i8, i8, i32, 20)"),
        "column 25: select_mma: N = 20 is no multiple of any N that I has: 8, 16, 24, 32, 48, 64, 80, 96; an N of 16 \
        or 24 would do"
    );
    for n in ["0", "-8", "-9223372036854775808"] {
        let said = eval(&format!("select_mma(f16, f16, f32, {n})"));
        assert!(said.ends_with("is below 8, the least N of H; an N of 8 would do"), "{said}");
    }
    assert!(eval("select_mma(f16, f16, f32, 9223372036854775807)").ends_with("an N of 9223372036854775800 would do"));
    assert!(eval("select_mma(FEW, 7)").ends_with("has: 6, 10; an N of 6 or 10 would do"));
}

#[test]
fn dtypes_that_nothing_multiplies() {
    assert_eq!(
        eval("select_mma(i8, i8, f32, 64)"),
        "column 20: select_mma: products of i8 and i8 are added up in i32, not in f32; take i32 as the accumulator's \
        dtype"
    );
    assert_eq!(
        eval("select_mma(f16, i8, f32, 64)"),
        "column 17: select_mma: no instruction multiplies f16 by i8; there are f16 x f16 into f32 or f16, i8 x i8 into \
        i32"
    );
    assert!(eval("select_mma(f32, f32, f32, 64)").starts_with("column 12: select_mma: no instruction multiplies f32"));
    assert_eq!(
        eval("select_mma(f16, f16, 32, 64)"),
        "column 22: select_mma: argument 3 must be a dtype, not an integer"
    );
    assert!(eval("select_mma(f16, 64)").starts_with("column 12: select_mma: argument 1 must be a family of MMA atoms"));
    assert!(eval("select_mma(f16, f16, 64)").contains("argument 3 must be a dtype"));
    assert!(eval("tiled_mma(FEW)").contains("select_mma(FEW, n)"));
}

#[test]
fn families_are_ordered_by_extent() {
    let atoms =
        |extents: &[i64]| extents.iter().map(|n| family("F", ["f32"; 4], &[*n]).atoms()[0].clone()).collect::<Vec<_>>();
    assert!(AtomFamily::new("F", atoms(&[8, 16])).is_some());
    assert!(AtomFamily::new("F", atoms(&[16, 8])).is_none());
    assert!(AtomFamily::new("F", atoms(&[8, 8])).is_none());
    assert!(AtomFamily::new("F", Vec::new()).is_none());
}

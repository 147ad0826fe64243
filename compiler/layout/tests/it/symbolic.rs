//! Symbolic layouts: put numbers in place of the symbols, and the static operation must agree.

use crate::random::Rng;
use proptest::prelude::*;
use ptoc_layout::ops::*;
use ptoc_layout::{Condition, Cx, ErrorKind, Int, Layout, LayoutError, Points, Stride, Tiler, Truth, Tuple, Value};

const NAMES: [&str; 3] = ["M", "N", "K"];

fn var(id: u64) -> Int {
    Int::var(id, NAMES[id as usize], 1, 0, None)
}

/// Numbers for the symbols.
type Numbers = [i64; 3];

fn number(n: &Int, numbers: &Numbers) -> Int {
    n.substitute(&|id| numbers.get(id as usize).map(|&n| Int::Const(n))).expect("in range")
}

fn numbered(a: &Layout, numbers: &Numbers) -> Layout {
    a.substitute(&|id| numbers.get(id as usize).map(|&n| Int::Const(n))).expect("in range")
}

fn holds(condition: &Condition, numbers: &Numbers) -> bool {
    let put = |n: &Int| number(n, numbers);
    let condition = match condition {
        Condition::Divides(d, n) => Condition::Divides(put(d), put(n)),
        Condition::Le(a, b) => Condition::Le(put(a), put(b)),
        Condition::Eq(a, b) => Condition::Eq(put(a), put(b)),
    };
    Cx::default().decide(&condition) == Truth::Yes
}

/// As an elaborator does it: conditions that are not decided are checked and then assumed. `None` where one fails, or
/// the operation refuses.
fn checked<T>(numbers: &Numbers, f: impl Fn(&Cx) -> Result<T, LayoutError>) -> Option<T> {
    let mut cx = Cx::default();
    for _ in 0..32 {
        match f(&cx) {
            Ok(v) => return Some(v),
            Err(LayoutError { kind: ErrorKind::Undecided, condition: Some(c), .. }) if holds(&c, numbers) => {
                assert_ne!(cx.decide(&c), Truth::Yes, "{c} was assumed already");
                cx.assume(c);
            }
            Err(_) => return None,
        }
    }
    panic!("no end of conditions");
}

fn values(a: &Layout) -> Vec<String> {
    let points = Points::of(&Value::Layout(a.clone())).unwrap_or_else(|| panic!("numbers in {a}"));
    (0..points.size()).map(|i| points.at(i).expect("a value").to_string()).collect()
}

/// Of up to three dimensions, some known, in any order of strides, perhaps with a gap.
fn layout(rng: &mut Rng, numbers: &Numbers) -> Layout {
    let rank = 1 + rng.below(3) as usize;
    let extents: Vec<Int> = (0..rank)
        .map(|k| match rng.below(4) {
            0 => Int::Const(numbers[k]),
            1 => var(k as u64).mul(&Int::Const(rng.pick(&[2, 4]))).expect("small"),
            _ => var(k as u64),
        })
        .collect();
    let mut rest: Vec<usize> = (0..rank).collect();
    let mut strides = vec![Stride::from(0); rank];
    let mut next = Int::ONE;
    while !rest.is_empty() {
        let k = rest.remove(rng.below(rest.len() as u64) as usize);
        strides[k] = Stride::int(next.clone());
        next = next.mul(&extents[k]).expect("small");
        if rng.below(6) == 0 {
            next = next.mul(&Int::Const(2)).expect("small");
        }
    }
    let modes: Vec<Layout> = extents.into_iter().zip(strides).map(|(s, d)| Layout::leaf(s, d)).collect();
    if let ([one], 0) = (modes.as_slice(), rng.below(2)) { one.clone() } else { Layout::of_modes(modes) }
}

fn tiler(rng: &mut Rng, rank: usize) -> Tiler {
    let one = |rng: &mut Rng| match rng.below(4) {
        0 => Tiler::Layout(Layout::leaf(Int::Const(rng.pick(&[2, 4])), Stride::from(rng.pick(&[1, 2])))),
        1 => Tiler::Extent(var(rng.below(3))),
        _ => Tiler::Extent(Int::Const(rng.pick(&[1, 2, 3, 4, 8]))),
    };
    match rng.below(3) {
        0 => one(rng),
        _ => Tiler::ByMode((0..rank).map(|_| one(rng)).collect()),
    }
}

fn tiler_of(t: &Tiler, numbers: &Numbers) -> Tiler {
    match t {
        Tiler::Keep => Tiler::Keep,
        Tiler::Extent(n) => Tiler::Extent(number(n, numbers)),
        Tiler::Layout(l) => Tiler::Layout(numbered(l, numbers)),
        Tiler::ByMode(ts) => Tiler::ByMode(ts.iter().map(|t| tiler_of(t, numbers)).collect()),
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: ptoc_tests_budget::cases(170, 500),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn symbolic_operations_are_the_static_ones(seed: u64) {
        let rng = &mut Rng(seed);
        let numbers: Numbers = std::array::from_fn(|_| rng.pick(&[1, 2, 3, 4, 6, 8, 12]));
        let a = layout(rng, &numbers);
        let t = tiler(rng, a.rank());
        let (known, cut) = (numbered(&a, &numbers), tiler_of(&t, &numbers));
        let cx = &Cx::default();
        let same = |symbolic: Option<Layout>, fixed: Result<Layout, LayoutError>, what: &str| {
            if let Some(symbolic) = symbolic {
                let put = numbered(&symbolic, &numbers);
                let fixed = fixed.unwrap_or_else(|e| panic!("{what} of {a}, {t} is {symbolic}, but of {known}: {e}"));
                assert_eq!(values(&put), values(&fixed), "{what} of {a}, {t} is {symbolic}, of {known}, {cut}: \
                    {fixed}");
            }
        };
        same(checked(&numbers, |cx| coalesce(cx, &a)), coalesce(cx, &known), "coalesce");
        same(checked(&numbers, |cx| composition(cx, &a, &t)), composition(cx, &known, &cut), "composition");
        // How far the last tiles overhang depends on which modes merge, which numbers may happen to do.
        if let Some(z) = checked(&numbers, |cx| zipped_divide(cx, &a, &t)) {
            let put = numbered(&z, &numbers);
            let fixed = zipped_divide(cx, &known, &cut).unwrap_or_else(|e| panic!("{a} / {t} is {z}, but {e}"));
            prop_assert_eq!(values(&put.mode(0).unwrap()), values(&fixed.mode(0).unwrap()), "{} / {} is {}", a, t, z);
            let (mut all, mut want) = (values(&put), values(&known));
            if all.len() == want.len() {
                all.sort();
                want.sort();
                prop_assert_eq!(all, want, "{} / {} is {}", a, t, z);
            } else {
                prop_assert!(want.iter().all(|x| all.contains(x)), "{a} / {t} is {z}");
            }
        }
        same(checked(&numbers, |cx| logical_product(cx, &a, &t)), logical_product(cx, &known, &cut), "logical_product");
        // Offsets that are not there go elsewhere, where an extent is 1.
        if let Some(r) = checked(&numbers, |cx| left_inverse(cx, &a)) {
            let r = numbered(&r, &numbers);
            for i in 0..values(&known).len() as i64 {
                let at = |a: &Layout, i: &Int| a.eval(cx, &i.clone().into()).unwrap().as_int().cloned().unwrap();
                let x = at(&known, &Int::Const(i));
                prop_assert_eq!(at(&known, &at(&r, &x)), x, "{} of {}", r, known);
            }
        }
        same(checked(&numbers, |cx| make_layout_like(cx, &a)), make_layout_like(cx, &known), "make_layout_like");
        let m = number(&var(0), &numbers);
        // Where an extent is 1 the static one need not leave room for its stride.
        if let Some(r) = checked(&numbers, |cx| complement(cx, &a, &var(0))) {
            let both = Layout::of_modes(vec![filter(cx, &known).unwrap(), numbered(&r, &numbers)]);
            prop_assert!(is_injective(cx, &both).unwrap(), "{r} of {a}: {both}");
            let (all, m) = (values(&both), m.as_const().unwrap());
            let even = complement(cx, &known, &Int::Const(m)).is_ok_and(|r| {
                is_bijection(cx, &Layout::of_modes(vec![filter(cx, &known).unwrap(), r])).unwrap()
            });
            prop_assert!(!even || (0..m).all(|x| all.contains(&x.to_string())), "{r} of {a}: {both} covers {m}");
        }
        // Shorter than the static one perhaps, but an inverse.
        let r = numbered(&right_inverse(cx, &a).unwrap(), &numbers);
        let back: Vec<String> = values(&composition(cx, &known, &Tiler::Layout(r.clone())).unwrap());
        prop_assert_eq!(back, (0..values(&r).len()).map(|i| i.to_string()).collect::<Vec<_>>(), "{} of {}", r, known);
        if let Some(b) = checked(&numbers, |cx| is_bijection(cx, &a)) {
            prop_assert_eq!(b, is_bijection(cx, &known).unwrap(), "{}", a);
        }
        if let Some(b) = checked(&numbers, |cx| is_injective(cx, &a)) {
            prop_assert_eq!(b, is_injective(cx, &known).unwrap(), "{}", a);
        }
        if let Some(n) = checked(&numbers, |cx| a.cosize(cx)) {
            prop_assert_eq!(number(&n, &numbers), known.cosize(cx).unwrap(), "{}", a);
        }
    }
}

fn text(result: Result<Layout, LayoutError>) -> String {
    match result {
        Ok(l) => l.to_string(),
        Err(e) => match e.condition {
            Some(c) => format!("? {c}"),
            None => format!("! {e}"),
        },
    }
}

fn named(id: u64, multiple_of: i64, min: i64) -> Int {
    Int::var(id, NAMES[id as usize], multiple_of, min, None)
}

fn mode(s: &Int, d: &Int) -> Layout {
    Layout::leaf(s.clone(), Stride::int(d.clone()))
}

#[test]
fn what_can_be_told_of_symbols() {
    let cx = Cx::default();
    let (m, n) = (named(0, 1, 1), named(1, 1, 1));
    let (one, four) = (Int::ONE, Tiler::Extent(Int::Const(4)));
    let columns = Layout::of_modes(vec![mode(&m, &one), mode(&n, &m)]);
    let rows = Layout::of_modes(vec![mode(&m, &n), mode(&n, &one)]);
    assert_eq!(text(coalesce(&cx, &columns)), "M*N:1");
    assert_eq!(text(coalesce(&cx, &rows)), "(M,N):(N,1)");
    // By mode nothing needs to be known, tails are rounded up.
    let by_mode = Tiler::of_shape(&Tuple::flat(&[4, 8]));
    assert_eq!(text(zipped_divide(&cx, &rows, &by_mode)), "((4,8),(ceil_div(M,4),ceil_div(N,8))):((N,1),(4*N,8))");
    assert_eq!(text(zipped_divide(&cx, &columns, &four)), "(4,ceil_div(M*N,4)):(1,4)");
    // Across modes that do not merge it must be known whether a tile stays within the first.
    assert_eq!(text(zipped_divide(&cx, &rows, &four)), "? 4 <= M");
    let m = named(0, 4, 1);
    let rows = Layout::of_modes(vec![mode(&m, &n), mode(&n, &one)]);
    assert_eq!(text(zipped_divide(&cx, &rows, &four)), "(4,(M/4,N)):(N,(4*N,1))");
    assert_eq!(text(composition(&cx, &rows, &four)), "4:N");
    assert_eq!(text(complement(&cx, &mode(&n, &one), &m.mul(&n).unwrap())), "M:N");
    assert_eq!(text(right_inverse(&cx, &rows)), "(N,M):(M,1)");
    assert_eq!(text(left_inverse(&cx, &rows)), "(N,M):(M,1)");
    assert_eq!(text(make_layout_like(&cx, &rows)), "(M,N):(N,1)");
    // A condition that is assumed is not asked for again.
    let n = named(1, 1, 0);
    let rows = Layout::of_modes(vec![mode(&m, &n), mode(&n, &one)]);
    let mut cx = Cx::default();
    assert_eq!(text(left_inverse(&cx, &rows)), "? 1 <= N");
    cx.assume(Condition::Le(Int::ONE, n));
    assert_eq!(text(left_inverse(&cx, &rows)), "(N,M):(M,1)");
}

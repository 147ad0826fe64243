//! The postconditions of the operations on random layouts, against brute force.

use crate::random::{Rng, bijection, layout, offsets, shape, tiler};
use proptest::prelude::*;
use ptoc_layout::ops::*;
use ptoc_layout::{Cx, ErrorKind, Int, IntTuple, Layout, Offset, Tiler, Tuple};
use std::collections::HashSet;

fn cx() -> Cx {
    Cx::default()
}

/// The value at an index, which may lie beyond the size.
fn at(a: &Layout, i: i64) -> i64 {
    match a.eval(&cx(), &IntTuple::from(i)).expect("an index") {
        Offset::Int(Int::Const(n)) => n,
        other => panic!("{a} at {i} gives {other}"),
    }
}

fn size(a: &Layout) -> i64 {
    a.size().ok().and_then(|n| n.as_const()).expect("a size")
}

/// Results that overhang more than this are not enumerated.
const ENOUGH: i64 = 2000;

fn injective(values: &[i64]) -> bool {
    values.iter().collect::<HashSet<_>>().len() == values.len()
}

/// Checks that the entries of the identity layout `a` that lie within `shape` are all of its coordinates, each once.
fn partitions(a: &Layout, shape: &IntTuple) -> Result<(), TestCaseError> {
    let mut seen = HashSet::new();
    for i in 0..size(a) {
        let coord = match a.eval(&cx(), &IntTuple::from(i)).expect("an index") {
            Offset::Coord(c) => c,
            Offset::Unit(u) => {
                // One unit: the coordinate's only entry that is not 0.
                let mut c = shape.map(&mut |_| Int::ZERO);
                let mut at = &mut c;
                for &k in &u.basis {
                    let Tuple::Node(modes) = at else { panic!("{u} in {shape}") };
                    at = &mut modes[k];
                }
                *at = Tuple::Leaf(u.scale);
                c
            }
            Offset::Int(n) => {
                // No strides at all, or the identity of a single extent.
                let mut n = Some(n);
                shape.map(&mut |_| n.take().unwrap_or(Int::ZERO))
            }
        };
        let padded = pad(&coord, shape);
        if elem_less(&cx(), &padded, shape).expect("numbers") {
            prop_assert!(seen.insert(padded.to_string()), "{padded} twice in {a}");
        }
    }
    let all: i64 = shape.leaves().iter().map(|n| n.as_const().expect("a number")).product();
    prop_assert_eq!(seen.len() as i64, all, "{} leaves elements of {} out", a, shape);
    Ok(())
}

/// A coordinate with as many entries as the shape.
fn pad(coord: &IntTuple, shape: &IntTuple) -> IntTuple {
    match (coord, shape) {
        (Tuple::Node(c), Tuple::Node(s)) => {
            let zero = Tuple::Leaf(Int::ZERO);
            Tuple::Node(s.iter().enumerate().map(|(k, s)| pad(c.get(k).unwrap_or(&zero), s)).collect())
        }
        (Tuple::Leaf(_), Tuple::Node(s)) => Tuple::Node(s.iter().map(|s| pad(&Tuple::Leaf(Int::ZERO), s)).collect()),
        (c, Tuple::Leaf(_)) => c.clone(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: ptoc_tests_budget::cases(170, 500),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn coalesce_keeps_the_function(seed: u64) {
        let a = layout(&mut Rng(seed));
        for c in [coalesce(&cx(), &a).unwrap(), flatten(&a)] {
            prop_assert!(c.depth() <= 1);
            prop_assert_eq!(offsets(&c), offsets(&a), "{} of {}", c, a);
        }
        let by = coalesce_by(&cx(), &a, &a.shape().map(&mut |_| Int::ONE)).unwrap();
        prop_assert!(by.shape().congruent(a.shape()));
        prop_assert_eq!(offsets(&by), offsets(&a));
        // Each value that it takes, and not more often than it must.
        let f: Vec<i64> = offsets(&filter(&cx(), &a).unwrap());
        let all: HashSet<i64> = offsets(&a).into_iter().collect();
        prop_assert_eq!(f.into_iter().collect::<HashSet<_>>(), all);
    }

    #[test]
    fn composition_is_the_function_after_the_other(seed: u64) {
        let rng = &mut Rng(seed);
        let (a, b) = (layout(rng), layout(rng));
        match composition(&cx(), &a, &Tiler::Layout(b.clone())) {
            Ok(r) => {
                prop_assert!(compatible(&cx(), b.shape(), r.shape()).unwrap(), "{r} for {b}");
                for i in 0..size(&b) {
                    prop_assert_eq!(at(&r, i), at(&a, at(&b, i)), "{} o {} = {} at {}", a, b, r, i);
                }
            }
            Err(e) => prop_assert!(
                matches!(e.kind, ErrorKind::StrideDivisibility | ErrorKind::ShapeDivisibility) && e.arg == Some(1),
                "{}", e
            ),
        }
    }

    #[test]
    fn complement_fills_what_is_left(seed: u64) {
        let rng = &mut Rng(seed);
        let a = layout(rng);
        let m = rng.below(100) as i64;
        match complement(&cx(), &a, &Int::Const(m)) {
            Ok(r) => {
                let once = filter(&cx(), &a).unwrap();
                let image: HashSet<i64> = offsets(&a).into_iter().collect();
                let rest = offsets(&r);
                prop_assert!(rest.windows(2).all(|w| w[0] < w[1]), "{r} increases");
                prop_assert!(rest.iter().skip(1).all(|n| !image.contains(n)), "{r} meets {a}");
                let both = Layout::of_modes(vec![once, r.clone()]);
                prop_assert!(injective(&offsets(&both)), "{both}");
                // With holes, the last of them may end what is spanned.
                let even = offsets(&both).into_iter().max() == Some(size(&both) - 1);
                prop_assert!(!even || size(&both) >= m, "{both} covers {m}");
            }
            Err(e) => {
                prop_assert_eq!(e.kind, ErrorKind::NotInjective, "{}", e);
            }
        }
    }

    #[test]
    fn right_inverse_finds_the_offsets(seed: u64) {
        let a = layout(&mut Rng(seed));
        let r = right_inverse(&cx(), &a).unwrap();
        for i in 0..size(&r) {
            prop_assert_eq!(at(&a, at(&r, i)), i, "{} of {}", r, a);
        }
    }

    #[test]
    fn left_inverse_finds_the_indices(seed: u64) {
        let a = layout(&mut Rng(seed));
        let image = offsets(&a);
        match left_inverse(&cx(), &a) {
            Ok(r) => for (i, &x) in image.iter().enumerate() {
                let back = at(&r, x);
                prop_assert_eq!(at(&a, back), x, "{} of {}", r, a);
                prop_assert!(!injective(&image) || back == i as i64, "{r} of {a} at {i}");
            },
            Err(e) => prop_assert!(matches!(e.kind, ErrorKind::NotInjective | ErrorKind::StrideOrder), "{e}"),
        }
    }

    #[test]
    fn of_bijections_both_inverses_are_bijections(seed: u64) {
        let a = bijection(&mut Rng(seed));
        prop_assert!(is_bijection(&cx(), &a).unwrap());
        for r in [right_inverse(&cx(), &a).unwrap(), left_inverse(&cx(), &a).unwrap()] {
            prop_assert!(is_bijection(&cx(), &r).unwrap(), "{r} of {a}");
            prop_assert_eq!(size(&r), size(&a));
        }
    }

    #[test]
    fn injective_and_bijective_are_what_they_say(seed: u64) {
        let a = layout(&mut Rng(seed));
        let mut image = offsets(&a);
        prop_assert_eq!(is_injective(&cx(), &a).unwrap(), injective(&image), "{}", a);
        image.sort_unstable();
        prop_assert_eq!(is_bijection(&cx(), &a).unwrap(), image == (0..size(&a)).collect::<Vec<_>>(), "{}", a);
    }

    #[test]
    fn division_has_each_element_once(seed: u64) {
        let rng = &mut Rng(seed);
        let a = if rng.below(2) == 0 { bijection(rng) } else { layout(rng) };
        let t = tiler(rng, a.shape());
        let Ok(zipped) = zipped_divide(&cx(), &a, &t) else { return Ok(()) };
        if size(&zipped) > ENOUGH {
            return Ok(());
        }
        let tile = zipped.mode(0).unwrap();
        let composed = composition(&cx(), &a, &t).unwrap();
        prop_assert_eq!(offsets(&tile), offsets(&composed), "{} / {}", a, t);
        // The same elements in each form.
        let sorted = |l: &Layout| { let mut v = offsets(l); v.sort_unstable(); v };
        let all = sorted(&zipped);
        for other in [logical_divide(&cx(), &a, &t), tiled_divide(&cx(), &a, &t), flat_divide(&cx(), &a, &t)] {
            prop_assert_eq!(sorted(&other.unwrap()), all.clone());
        }
        let image: HashSet<i64> = offsets(&a).into_iter().collect();
        let covered: HashSet<i64> = all.iter().copied().collect();
        prop_assert!(image.is_subset(&covered), "{} / {} = {} leaves elements out", a, t, zipped);
        if size(&zipped) == size(&a) {
            prop_assert_eq!(all, sorted(&a), "{} / {} = {}", a, t, zipped);
        }
    }

    #[test]
    fn division_of_the_identity_partitions_it(seed: u64) {
        let rng = &mut Rng(seed);
        let s = shape(rng);
        let t = tiler(rng, &s);
        let identity = make_identity_layout(&s);
        if let Ok(zipped) = zipped_divide(&cx(), &identity, &t)
            && size(&zipped) <= ENOUGH
        {
            partitions(&zipped, &s)?;
        }
    }

    #[test]
    fn products_keep_the_block_and_lay_copies_apart(seed: u64) {
        let rng = &mut Rng(seed);
        let (a, b) = (layout(rng), layout(rng));
        if let Ok(p) = logical_product(&cx(), &a, &Tiler::Layout(b.clone())) {
            prop_assert_eq!(p.mode(0), Some(a.clone()));
            let copies = p.mode(1).unwrap();
            prop_assert!(compatible(&cx(), b.shape(), copies.shape()).unwrap());
            if injective(&offsets(&a)) && injective(&offsets(&b)) {
                prop_assert!(injective(&offsets(&p)), "{} x {} = {}", a, b, p);
            }
        }
        let (a, b) = (bijection(rng), bijection(rng));
        for p in [blocked_product(&cx(), &a, &b), raked_product(&cx(), &a, &b)] {
            let p = p.unwrap();
            prop_assert!(is_bijection(&cx(), &p).unwrap(), "{a} x {b} = {p}");
            prop_assert_eq!(size(&p), size(&a) * size(&b));
        }
    }

    #[test]
    fn coordinates_and_indices(seed: u64) {
        let rng = &mut Rng(seed);
        let a = layout(rng);
        for i in 0..size(&a) + 3 {
            let coord = idx2crd(&cx(), &IntTuple::from(i), a.shape()).unwrap();
            prop_assert!(coord.congruent(a.shape()));
            prop_assert_eq!(a.eval(&cx(), &coord).unwrap().to_string(), at(&a, i).to_string());
            let back = compact(a.shape()).unwrap();
            // 1-sized modes, which have the stride 0 there, take no index but 0.
            if i < size(&a) {
                prop_assert_eq!(back.eval(&cx(), &coord).unwrap().to_string(), i.to_string());
            }
        }
    }

    #[test]
    fn nothing_panics_on_extremes(seed: u64) {
        let rng = &mut Rng(seed);
        let (a, b) = (crate::random::extreme(rng), crate::random::extreme(rng));
        let t = Tiler::Layout(b.clone());
        let cx = cx();
        let _ = (coalesce(&cx, &a), composition(&cx, &a, &t), a.cosize(&cx));
        let _ = (is_injective(&cx, &a), is_bijection(&cx, &a));
        let _ = (a.size().and_then(|n| complement(&cx, &b, &n)), right_inverse(&cx, &a), left_inverse(&cx, &a));
        let _ = (zipped_divide(&cx, &a, &t), logical_product(&cx, &a, &t), blocked_product(&cx, &a, &b));
        let _ = (upcast(&cx, &a, 4), downcast(&a, 4), max_common_vector(&cx, &a, &b), nullspace(&a));
        let _ = (make_layout_like(&cx, &a), make_fragment_like(&cx, &a), tile_to_shape(&cx, &a, b.shape(), None));
        let _ = (ceil_div(&cx, a.shape(), &t), evenly_divides(&cx, a.shape(), b.shape()));
        let _ = idx2crd(&cx, &IntTuple::from(i64::MAX), a.shape());
        let _ = (a.eval(&cx, &IntTuple::from(i64::MAX)), a.eval(&cx, &IntTuple::from(-1)));
    }
}

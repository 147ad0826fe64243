use super::*;
use crate::parse_value;
use std::collections::HashSet;

fn of(text: &str) -> Result<TileLayout> {
    TileLayout::new(&parse_value(text).unwrap_or_else(|e| panic!("{text}: {e:?}")))
}

fn ok(text: &str) -> TileLayout {
    of(text).unwrap_or_else(|e| panic!("{text}: {e}"))
}

#[test]
fn handles_are_equal_where_layouts_are() {
    let (a, b, c) = (ok("(4,8):(8,1)"), ok("(4,8):(8,1)"), ok("(4,8):(1,4)"));
    assert!(a == b && a != c);
    assert_eq!(HashSet::from([a, b, c]).len(), 2);
    assert_eq!(a.to_string(), "(4,8):(8,1)");
    assert_eq!(size_of::<TileLayout>(), size_of::<usize>());
    // From several threads at once too.
    let many: Vec<_> = (0..4).map(|_| std::thread::spawn(|| ok("((2,2),(2,4)):((1,4),(2,8))"))).collect();
    let many: HashSet<_> = many.into_iter().map(|t| t.join().expect("no panic")).collect();
    assert_eq!(many.len(), 1);
}

#[test]
fn offsets() {
    let l = ok("(4,8):(8,1)");
    assert_eq!((l.rows(), l.cols(), l.cosize()), (4, 8, 32));
    assert_eq!(l.offset(2, 3), 19);
    // Morton order: bits of row and column alternate.
    let l = ok("((2,2),(2,2)):((1,4),(2,8))");
    let row: Vec<_> = (0..4).map(|c| l.offset(3, c)).collect();
    assert_eq!(row, [5, 7, 13, 15]);
    // Padding: the cosize counts it up to the last element.
    let l = ok("(4,8):(10,1)");
    assert_eq!(l.cosize(), 38);
    // A negative stride behind an offset.
    let l = ok("Sw<0,0,0> o 7 o (1,8):(0,-1)");
    assert_eq!((l.offset(0, 0), l.offset(0, 7), l.swizzle()), (7, 0, None));
}

/// Against the definition, element by element.
#[test]
fn swizzles() {
    for text in ["Sw<3,0,3> o 0 o (8,8):(8,1)", "Sw<2,1,3> o 0 o (8,(4,2)):(8,(1,4))", "Sw<2,0,-3> o 0 o (4,4):(4,1)"] {
        let l = ok(text);
        let Value::Composed(c) = l.value() else { panic!("{text} is composed") };
        let plain = TileLayout::new(&Value::Layout(c.layout.clone())).expect("a layout");
        let mut top = 0;
        for r in 0..l.rows() {
            for k in 0..l.cols() {
                assert_eq!(l.offset(r, k), c.swizzle.apply(plain.offset(r, k)));
                top = top.max(l.offset(r, k));
            }
        }
        assert_eq!(l.cosize(), top + 1);
        assert_eq!(ok(&l.to_string()), l);
    }
    // A swizzle to the left reaches further than the layout behind it.
    assert_eq!(ok("Sw<2,0,-3> o 0 o (4,1):(1,0)").cosize(), 3 + 3 * 8 + 1);
}

/// Injective although no stride steps over the others: decided by looking.
#[test]
fn interleaved_strides() {
    assert_eq!(ok("(3,2):(2,3)").cosize(), 8);
    let e = of("(3,2):(1,2)").expect_err("3 rows in 2");
    assert_eq!(e.to_string(), "tile layout: elements (0, 1) and (2, 0) of (3,2):(1,2) are both at offset 2");
    assert_eq!(e.kind, ErrorKind::NotInjective);
}

#[test]
fn refusals() {
    let cases = [
        ("5", ErrorKind::Kind, "tile layout: an integer is no layout"),
        ("(4,8)", ErrorKind::Kind, "a tuple is no layout"),
        ("8:1", ErrorKind::Profile, "8:1 has rank 1, a tile has rows and columns"),
        ("(2,2,2):(1,2,4)", ErrorKind::Profile, "has rank 3"),
        ("(4,8):(1@0,1@1)", ErrorKind::Kind, "stride 1@0 is a coordinate"),
        ("(4,0):(1,4)", ErrorKind::Domain, "has no elements: 4 x 0"),
        ("(4,8):(0,1)", ErrorKind::NotInjective, "(0, 0) and (1, 0)"),
        ("(4,8):(-8,1)", ErrorKind::Domain, "reaches offset -24"),
        ("(8192,4096):(4096,1)", ErrorKind::Domain, "at most 2^24"),
        ("(2,2):(9000000000000000000,1)", ErrorKind::Domain, "beyond 2^40"),
        ("(9000000000000000000,9000000000000000000):(1,1)", ErrorKind::Domain, "at most 2^24"),
        ("Sw<1,0,50> o 1125899906842624 o (2,2):(2,1)", ErrorKind::Domain, "beyond 2^40"),
    ];
    for (text, kind, message) in cases {
        let e = of(text).expect_err(text);
        assert_eq!(e.kind, kind, "{text}: {e}");
        assert!(e.to_string().contains(message), "{text}: {e}");
    }
    let n = Value::Layout(crate::Layout::of_modes(vec![
        crate::Layout::vector(crate::Int::from(4)),
        crate::Layout::vector(crate::Int::var(0, "N", 1, 1, None)),
    ]));
    let e = TileLayout::new(&n).expect_err("N is not known");
    assert_eq!(e.to_string(), "tile layout: mode 1: N:1 is known at launch only");
}

use super::*;
use crate::text::MAX_DEPTH;
use crate::{MmaAtom, Tuple};
use proptest::prelude::*;
use std::sync::Arc;

fn same(text: &str) {
    match parse_value(text) {
        Ok(v) => assert_eq!(v.to_string(), text),
        Err(e) => panic!("{text}: {}", e.located(text)),
    }
}

fn refusal(text: &str) -> (String, String) {
    let e = parse_value(text).unwrap_err();
    (text[e.span.clone()].to_owned(), e.located(text))
}

#[test]
fn notation_is_read_back() {
    for text in [
        "4",
        "-7",
        "0",
        "(4)",
        "((4))",
        "()",
        "(4,(2,2))",
        "4:1",
        "(4):(1)",
        "4:-1",
        "((2,2),2):((4,1),2)",
        "(4,8):(1@0,1@1)",
        "(4,(2,2)):(1@0,(1@0@1,-3@1@1))",
        "<32:1,16:1>",
        "<_,<2:1,_>>",
        "_",
        "X",
        "(1,X,1)",
        "(_,5)",
        "((_,_),5)",
        "Sw<3,4,3>",
        "Sw<2,0,-3>",
        "Sw<2,0,3> o 0 o (8,4):(4,1)",
        "Sw<1,0,3> o -5 o 8:2",
        "96 o (4,2):(24,1)",
        "(8,(4,0)) o (4,2):(1@0,1@1@1)",
        "3@1 o 4:1@1",
        "true",
        "false",
        "9223372036854775807",
        "-9223372036854775808",
        "1:9223372036854775807",
    ] {
        same(text);
    }
    assert_eq!(parse_value(" ( 4 , ( 2,2 ,) ) : ( 1 ,( 4 , 8) ) ").unwrap().to_string(), "(4,(2,2)):(1,(4,8))");
    assert_eq!(parse_value("<4,(2,2):(1,2)>").unwrap().to_string(), "<4,(2,2):(1,2)>");
    assert_eq!(parse_value("(2*8,3-(1+1)):(1,2*8)").unwrap().to_string(), "(16,1):(1,16)");
    assert_eq!(parse_value("8:2*3@1").unwrap().to_string(), "8:6@1");
    assert_eq!(parse_value("Sw<3,0,3> ∘ 0 ∘ 8:1").unwrap().to_string(), "Sw<3,0,3> o 0 o 8:1");
    let Value::Tuple(one) = parse_value("(4)").unwrap() else { panic!() };
    assert_eq!(one, [Value::Int(Int::from(4))]);
    assert_eq!(parse_value("(4:1,8)").unwrap().to_string(), "(4:1,8)");
}

#[test]
fn wrong_texts_are_located() {
    for (text, place, message) in [
        ("", "", "column 1: there is no expression; write a layout, such as `(4,8):(1,4)`"),
        ("(4,8", "", "column 5: `(` is not closed"),
        ("(4,", "", "column 4: `(` is not closed"),
        ("(4 8)", "8", "column 4: `,` or `)` is expected, not `8`"),
        ("4,8", ",", "column 2: `,` is not expected here; entries of a tuple stand in parentheses: `(4,8)`"),
        ("(4,8):", "", "column 7: the expression ends too early"),
        ("4:1:2", ":", "column 4: `:` is not expected here; nested layouts are nested tuples: `((2,2),4):((1,2),4)`"),
        ("4)", ")", "column 2: `)` is not expected here"),
        (":4", ":", "column 1: a value is missing before `:`"),
        ("<>", "<>", "column 1: a tiler needs an entry; one entry for each mode: `<4:1,8:1>`; `_` keeps a mode"),
        ("12ab", "12ab", "column 1: `12ab` is neither a number nor a name"),
        ("ß:99999999999999999999", "99999999999999999999", "column 3: the number does not fit 64 bits"),
        ("[4]", "[", "column 1: `[` has no meaning here; tuples are written `(4,8)`, tilers `<4:1,8:1>`"),
        (
            "1@0",
            "1@0",
            "column 1: a unit of a coordinate (`@`) stands only in strides; write a layout of it: `(4,8):(1@0,1@1)`",
        ),
        (
            "4:1@x",
            "x",
            "column 5: after `@` comes the number of a mode; `1@0` is one step in mode 0; `1@0@1` one in entry 0 of \
            mode 1",
        ),
        ("4:1@4000", "4000", "column 5: mode 4000 is beyond the 64 modes that a coordinate may have"),
        ("Sw<3,4>", ">", "column 7: a swizzle has three numbers: bits, base and shift; write it like `Sw<3,4,3>`"),
        (
            "Sw<3,0,1>",
            "Sw<3,0,1>",
            "column 1: Sw<3,0,1>: the two fields of 3 bits overlap, as the shift is 1; the shift must be at least the \
            number of bits",
        ),
        (
            "(4,8):(1,4,2)",
            "(4,8):(1,4,2)",
            "column 1: shape (4,8) and stride (1,4,2) are nested differently; give each extent of the shape its \
            stride, in the same parentheses",
        ),
        ("(4,_):(1,2)", "_", "column 4: an extent is an integer; `_` is not"),
        ("4:X", "X", "column 3: a stride is an integer, or a unit such as `1@0`; `X` is neither"),
        ("<4,X>", "X", "column 4: an entry of a tiler is a layout, an integer or `_`, not `X`"),
        ("2*(4,8)", "(4,8)", "column 3: arithmetic is for integers, not for a tuple"),
        (
            "4:1 o 4:1",
            "4:1",
            "column 1: a layout cannot stand here; a swizzled layout is `Sw<3,0,3> o 0 o (8,8):(8,1)`, a tile of a \
            layout `96 o (4,2):(24,1)`; layouts are composed by `composition(A, B)`",
        ),
        ("nothing", "nothing", "column 1: nothing is called `nothing`"),
        ("nothing(4)", "nothing", "column 1: there is no operation `nothing`"),
        ("Fma<float", "", "column 10: `<` after `Fma` is not closed"),
        ("9223372036854775807+1", "9223372036854775807+1", "column 1: 9223372036854775807 + 1 does not fit 64 bits"),
    ] {
        let (at, said) = refusal(text);
        assert_eq!((at.as_str(), said.as_str()), (place, message), "{text}");
    }
}

#[test]
fn depth_is_bounded_length_is_not() {
    let deep = |n: usize| format!("{}4{}", "(".repeat(n), ")".repeat(n));
    same(&deep(MAX_DEPTH));
    for text in
        [deep(MAX_DEPTH + 1), "(".repeat(1_000_000), "-".repeat(1_000_000), "<".repeat(1_000_000), "f(".repeat(100_000)]
    {
        assert!(parse_value(&text).unwrap_err().message.contains("levels"), "{:.20}", text);
    }
    for (unit, end) in [("1+", "1"), ("2*", "0"), ("4 o ", "4"), ("4,", "")] {
        let _ = parse_value(&format!("{}{end}", unit.repeat(200_000)));
    }
    assert_eq!(parse_value(&format!("{}1", "1+".repeat(99_999))).unwrap().to_string(), "100000");
}

#[test]
fn names_mean_what_the_environment_says() {
    let layout = Layout::vector(Int::from(1));
    let atom = MmaAtom {
        name: "UniversalFMA".into(),
        shape: [1, 1, 1],
        types: ["f32", "f32", "f32", "f32"].map(String::from),
        thr: layout.clone(),
        a: layout.clone(),
        b: layout.clone(),
        c: layout,
    };
    let mut env = Env::new();
    env.insert("UniversalFMA", Value::Atom(Arc::new(atom)));
    env.insert("N", Value::Int(Int::var(1, "N", 1, 0, None)));
    let eval = |text: &str| eval_expr(&Cx::default(), &env, text).map(|v| v.to_string());
    assert_eq!(eval("UniversalFMA<float,float, float,float>").unwrap(), "UniversalFMA");
    assert_eq!(eval("(N,2*N+1):(1,N)").unwrap(), "(N,2*N+1):(1,N)");
    assert_eq!(eval("(N,4):((2*N-1)@0,N*N@0@1)").unwrap(), "(N,4):((2*N-1)@0,N*N@0@1)");
    assert_eq!(eval("UniversalFMA(1)").unwrap_err().message, "`UniversalFMA` is an MMA atom, not an operation");
}

fn shape() -> impl Strategy<Value = IntTuple> {
    let leaf = (0i64..100).prop_map(IntTuple::from);
    leaf.prop_recursive(4, 24, 4, |inner| prop::collection::vec(inner, 0..4).prop_map(Tuple::Node))
}

fn layout() -> impl Strategy<Value = Layout> {
    (shape(), any::<bool>(), prop::collection::vec((any::<i64>(), prop::collection::vec(0usize..5, 0..3)), 1..9))
        .prop_map(|(shape, basis, strides)| {
            let mut k = 0;
            let stride = shape.map(&mut |_| {
                k += 1;
                let (scale, modes) = strides[k % strides.len()].clone();
                Stride { scale: Int::from(scale), basis: if basis { modes } else { Vec::new() } }
            });
            Layout::new(shape, stride).unwrap()
        })
}

fn tiler() -> impl Strategy<Value = Tiler> {
    let leaf = prop_oneof![Just(Tiler::Keep), layout().prop_map(Tiler::Layout)];
    leaf.prop_recursive(3, 12, 3, |inner| prop::collection::vec(inner, 1..4).prop_map(Tiler::ByMode))
}

fn window_start() -> impl Strategy<Value = Offset> {
    prop_oneof![
        any::<i64>().prop_map(|n| Offset::Int(Int::from(n))),
        (any::<i64>(), prop::collection::vec(0usize..5, 1..3))
            .prop_map(|(n, basis)| Offset::Unit(Stride { scale: Int::from(n), basis })),
        prop::collection::vec(shape(), 0..3).prop_map(|modes| Offset::Coord(Tuple::Node(modes))),
    ]
}

fn value() -> impl Strategy<Value = Value> {
    let swizzle = || {
        (0i64..6, 0i64..8, 0i64..9, any::<bool>()).prop_map(|(bits, base, more, negative)| {
            Swizzle::new(bits, base, if negative { -bits - more } else { bits + more }).unwrap()
        })
    };
    let leaf = prop_oneof![
        any::<i64>().prop_map(|n| Value::Int(Int::from(n))),
        any::<bool>().prop_map(Value::Bool),
        Just(Value::Keep),
        Just(Value::Skip),
        layout().prop_map(Value::Layout),
        prop::collection::vec(tiler(), 1..4).prop_map(|t| Value::Tiler(Tiler::ByMode(t))),
        swizzle().prop_map(Value::Swizzle),
        (swizzle(), any::<i64>(), layout()).prop_map(|(swizzle, n, layout)| Value::Composed(Composed {
            swizzle,
            offset: Int::from(n),
            layout
        })),
        (window_start(), layout()).prop_map(|(start, layout)| Value::Window(LayoutWindow { start, layout })),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| prop::collection::vec(inner, 0..4).prop_map(Value::Tuple))
}

proptest! {
    #[test]
    fn display_is_read_back(v in value()) {
        let text = v.to_string();
        prop_assert_eq!(parse_value(&text).map_err(|e| e.located(&text)), Ok(v));
    }

    #[test]
    fn no_text_panics(text in "[ (),:<>@_Xo0-9a-z*+\\-S∘ß]{0,60}") {
        if let Err(e) = parse_value(&text) {
            prop_assert!(text.get(e.span.clone()).is_some(), "{:?} in {text}", e.span);
            prop_assert!(e.labels.iter().all(|(at, _)| text.get(at.clone()).is_some()));
        }
    }
}

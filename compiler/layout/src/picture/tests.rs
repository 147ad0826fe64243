use super::*;
use crate::{Int, Layout, MmaAtom, TiledMma, Tiler, parse_value};
use std::sync::Arc;

const STYLE: TableStyle = TableStyle { width: 60, rows: 6, color: false };

fn layout(text: &str) -> Layout {
    match parse_value(text) {
        Ok(Value::Layout(l)) => l,
        other => panic!("{text}: {other:?}"),
    }
}

fn picture(text: &str) -> Picture {
    Picture::of(&Cx::default(), &parse_value(text).unwrap()).unwrap_or_else(|e| panic!("{text}: {e}"))
}

fn table(text: &str) -> String {
    picture(text).table(&STYLE)
}

fn atom(shape: [i64; 3], [thr, a, b, c]: [&str; 4]) -> Arc<MmaAtom> {
    let types = ["f32", "f16", "f16", "f32"].map(String::from);
    Arc::new(MmaAtom { name: "Atom".into(), shape, types, thr: layout(thr), a: layout(a), b: layout(b), c: layout(c) })
}

fn sm80() -> Arc<MmaAtom> {
    let tv = [
        "32:1",
        "((4,8),(2,2,2)):((32,1),(16,8,128))",
        "((4,8),(2,2)):((16,1),(8,64))",
        "((4,8),(2,2)):((32,1),(16,8))",
    ];
    atom([16, 8, 16], tv)
}

fn tiled(atom: &Arc<MmaAtom>, atoms: &str, tiler: [Tiler; 3]) -> Value {
    Value::Mma(Arc::new(TiledMma { atom: atom.clone(), atoms: layout(atoms), tiler }))
}

#[test]
fn tables_name_their_coordinates() {
    assert_eq!(
        table("((2,2),(2,2)):((1,4),(2,8))"),
        "      │ (0,0)  (1,0)  (0,1)  (1,1)\n\
         ──────┼────────────────────────────\n\
         (0,0) │     0      2      8     10\n\
         (1,0) │     1      3      9     11\n\
         (0,1) │     4      6     12     14\n\
         (1,1) │     5      7     13     15\n"
    );
    assert_eq!(
        table("(2,2,2):(1@0,1@1,1@2)"),
        "  │   (0,0)    (1,0)    (0,1)    (1,1)\n\
         ──┼────────────────────────────────────\n\
         0 │ (0,0,0)  (0,1,0)  (0,0,1)  (0,1,1)\n\
         1 │ (1,0,0)  (1,1,0)  (1,0,1)  (1,1,1)\n"
    );
    assert_eq!(table("Sw<1,0,1> o 0 o (2,2):(2,1)"), "  │  0   1\n──┼────────\n0 │  0   1\n1 │  3   2\n");
    assert_eq!(table("3:5"), "  │  0   1   2\n──┼────────────\n0 │  0   5  10\n");
    assert_eq!(table("():()"), "  │  0\n──┼────\n0 │  0\n");
    assert_eq!(table("(4,0):(1,4)"), "empty: 4 x 0\n");
    assert_eq!(
        table("(((2,2),(2,1)):((1,2),(4,0)),(4,2))"),
        "  │     0      1\n\
         ──┼──────────────\n\
         0 │ T0 V0  T0 V1\n\
         1 │ T1 V0  T1 V1\n\
         2 │ T2 V0  T2 V1\n\
         3 │ T3 V0  T3 V1\n"
    );
}

#[test]
fn tables_are_cut_and_say_so() {
    assert_eq!(
        table("(100,300):(300,1)"),
        "   │     0      1      2      3      4     ..    299\n\
         ───┼─────────────────────────────────────────────────\n \
          0 │     0      1      2      3      4     ..    299\n \
          1 │   300    301    302    303    304     ..    599\n \
          2 │   600    601    602    603    604     ..    899\n \
          3 │   900    901    902    903    904     ..   1199\n\
         .. │    ..     ..     ..     ..     ..     ..     ..\n\
         99 │ 29700  29701  29702  29703  29704     ..  29999\n\
         (5 of 100 rows and 6 of 300 columns are shown)\n"
    );
    let wide = TableStyle { width: 200, ..STYLE };
    let text = picture("40:2").table(&wide);
    assert!(text.starts_with("   │  +0 ") && text.contains("\n32 │  64   66 "), "{text}");
    // Nothing of a huge layout is computed but what is shown.
    let huge = table("(1048576,1048576,1024):(1,1048576,1099511627776)");
    assert!(huge.contains("(5 of 1048576 rows and 2 of 1073741824 columns are shown)"), "{huge}");
    let color = TableStyle { color: true, ..STYLE };
    assert!(picture("(2,2):(1,2)").table(&color).contains("\x1b[48;5;231;38;5;16m  0 \x1b[0m"));
}

#[test]
fn numbers_that_do_not_fit_are_told() {
    assert!(table("3:9223372036854775807").contains("overflow"));
    for (text, message) in [
        ("4", "there is no picture of an integer"),
        ("<4,8>", "there is no picture of a tiler"),
        ("(4,8)", "there is no picture of a tuple"),
        ("(2,2):(1,1@0)", "(2,2):(1,1@0) cannot be drawn"),
        ("(9223372036854775807,2):(1,1)", "cannot be drawn"),
        ("((4,2):(1,4),(2,2))", "value 1 of thread 0 is element 4, the tile has 2 x 2"),
        ("((4,2):(1,4),(-2,2))", "a tile of -2 x 2 elements cannot be drawn"),
        ("((4,2):(1,4),(4294967296,4294967296))", "a tile of 4294967296 x 4294967296 elements cannot be drawn"),
        ("((4294967296,1):(0,0),(2,2))", "4294967296 pairs of a thread and a value are too many to be drawn"),
    ] {
        let e = Picture::of(&Cx::default(), &parse_value(text).unwrap()).err().unwrap_or_else(|| panic!("{text}"));
        assert!(e.message.contains(message), "{text}: {e}");
    }
}

fn cells(value: &Value) -> [Vec<Vec<String>>; 3] {
    let Panels::Mma(parts) = Picture::of(&Cx::default(), value).unwrap().panels else { panic!("{value}") };
    (*parts).each_ref().map(|grid| {
        let (rows, cols) = grid.sides();
        let text = |r, c| {
            let cell = grid.cell(r, c);
            format!("{} {}", cell.text, cell.second.unwrap_or_default())
        };
        (0..rows).map(|r| (0..cols).map(|c| text(r, c)).collect()).collect()
    })
}

/// PTX ISA, "Matrix Fragments for mma.m16n8k16 with floating point type".
#[test]
fn fragments_lie_where_ptx_has_them() {
    let [a, b, c] = cells(&Value::Atom(sm80()));
    for lane in 0..32usize {
        let (group, within) = (lane / 4, lane % 4);
        for i in 0..8usize {
            let row = if matches!(i, 0 | 1 | 4 | 5) { group } else { group + 8 };
            let col = within * 2 + (i & 1) + if i < 4 { 0 } else { 8 };
            assert_eq!(a[row][col], format!("T{lane} V{i}"));
        }
        for i in 0..4usize {
            let row = within * 2 + (i & 1) + if i < 2 { 0 } else { 8 };
            assert_eq!(b[row][group], format!("T{lane} V{i}"));
            let row = if i < 2 { group } else { group + 8 };
            assert_eq!(c[row][within * 2 + (i & 1)], format!("T{lane} V{i}"));
        }
    }
}

#[test]
fn tiled_atoms_repeat() {
    let keep = || [Tiler::Keep, Tiler::Keep, Tiler::Keep];
    // One atom as it is.
    assert_eq!(cells(&tiled(&sm80(), "(1,1,1):(0,0,0)", keep())), cells(&Value::Atom(sm80())));
    let [a, b, c] = cells(&tiled(&sm80(), "(2,2,1):(1,2,4)", keep()));
    assert_eq!((a.len(), a[0].len(), b.len(), b[0].len(), c.len(), c[0].len()), (32, 16, 16, 16, 32, 16));
    assert_eq!([&c[0][0], &c[16][0], &c[0][8], &c[31][15]], ["T0 V0", "T32 V0", "T64 V0", "T127 V3"]);
    assert_eq!([&a[0][0], &b[0][0]], ["T0,64 V0", "T0,32 V0"]);
    // A greater tile: the atoms do it in several steps, further values.
    let [_, _, c] = cells(&tiled(&sm80(), "(1,1,1):(0,0,0)", [Tiler::Extent(Int::from(32)), Tiler::Keep, Tiler::Keep]));
    assert_eq!([&c[0][0], &c[16][0]], ["T0 V0", "T0 V4"]);
    // A permutation makes two rows neighbours that were 8 apart.
    let order = Tiler::Layout(layout("(8,2,2):(1,16,8)"));
    let [_, _, c] = cells(&tiled(&sm80(), "(1,1,1):(0,0,0)", [order, Tiler::Keep, Tiler::Keep]));
    assert_eq!([&c[0][0], &c[8][0], &c[16][0], &c[24][0]], ["T0 V0", "T0 V4", "T0 V2", "T0 V6"]);
    // Threads of a quad pair keep the machine's numbers.
    let tv = ["(4,2):(1,16)", "(8,4):(1,8)", "(8,4):(1,8)", "((2,2,2),(2,2,2)):((1,16,4),(8,2,32))"];
    let [a, ..] = cells(&Value::Atom(atom([8, 8, 4], tv)));
    assert_eq!([&a[3][0], &a[4][0]], ["T3 V0", "T16 V0"]);
    let [a, ..] = cells(&tiled(&atom([8, 8, 4], tv), "(2,2,1):(1,2,4)", keep()));
    assert_eq!([&a[4][0], &a[8][0]], ["T16,24 V0", "T4,12 V0"]);
}

/// The algebra's thread-value layouts, which come about by division and composition, say the same as the pictures.
#[test]
fn pictures_agree_with_the_algebra() {
    let quad = ["(4,2):(1,16)", "(8,4):(1,8)", "(8,4):(1,8)", "((2,2,2),(2,2,2)):((1,16,4),(8,2,32))"];
    let nt = ["(4,2):(1,16)", "((4,2),4):((8,4),1)", "((4,2),4):((8,4),1)", quad[3]];
    let keep = || [Tiler::Keep, Tiler::Keep, Tiler::Keep];
    let order = |text: &str| Tiler::Layout(layout(text));
    for (atom, atoms, tiler) in [
        (sm80(), "(1,1,1):(0,0,0)", keep()),
        (sm80(), "(2,2,1):(1,2,4)", keep()),
        (sm80(), "(2,2,1):(2,1,1)", [32, 32, 16].map(|n: i64| Tiler::Extent(Int::from(n)))),
        (sm80(), "(1,2,2):(1,1,2)", keep()),
        (sm80(), "(1,1,1):(0,0,0)", [order("(8,2,2):(1,16,8)"), Tiler::Keep, Tiler::Extent(Int::from(32))]),
        (atom([8, 8, 4], quad), "(2,2,1):(1,2,4)", keep()),
        (atom([8, 8, 4], nt), "(2,1,1):(1,2,4)", [order("(4,4,2):(1,8,4)"), Tiler::Extent(Int::from(24)), Tiler::Keep]),
    ] {
        let mma = TiledMma { atom: atom.clone(), atoms: layout(atoms), tiler };
        let Panels::Mma(parts) = mma::of_tiled(&Cx::default(), &mma).unwrap().panels else { panic!("{mma}") };
        for (operand, grid) in crate::Operand::ALL.into_iter().zip(parts.iter()) {
            let tv = mma.tv(operand).unwrap();
            let threads: i64 = tv.shape().modes()[0].leaves().iter().map(|n| n.as_const().unwrap()).product();
            let points = crate::Points::of_layout(&tv).unwrap();
            let mut seen = 0;
            for (element, thread, value) in grid.holders() {
                assert_eq!(
                    points.offset_at(thread + value * threads),
                    Some(element),
                    "{mma} {operand:?} T{thread} V{value}"
                );
                seen += 1;
            }
            assert_eq!(seen, grid.sides().0 * grid.sides().1, "{mma} {operand:?}: every element is held");
        }
    }
}

#[test]
fn impossible_tilings_have_no_picture() {
    let entry = |n| [Tiler::Extent(Int::from(n)), Tiler::Keep, Tiler::Keep];
    for (atoms, tiler, message) in [
        ("(2,2,1):(1,2,4)", entry(40), "entry 40 of the tiler is no multiple of 2 atoms of 16"),
        ("(2,2):(1,2)", entry(32), "the atoms (2,2):(1,2) have rank 2, not 3"),
        ("(1048576,1048576,1):(0,0,0)", entry(16), "is no multiple of 1048576 atoms of 16"),
        ("(1,1,1000000):(0,0,1)", entry(16), "too many to be drawn"),
        ("(9223372036854775807,1,1):(0,0,0)", entry(16), "is no multiple of"),
    ] {
        let e = Picture::of(&Cx::default(), &tiled(&sm80(), atoms, tiler)).err().unwrap();
        assert!(e.message.contains(message), "{atoms}: {e}");
    }
}

/// Relative luminance (WCAG 2.2).
fn luminance(color: &str) -> f64 {
    let hex: String = match color.trim_start_matches('#') {
        short if short.len() == 3 => short.chars().flat_map(|c| [c, c]).collect(),
        long => long.to_owned(),
    };
    let part = |at: usize| {
        let c = f64::from(u8::from_str_radix(&hex[at..at + 2], 16).unwrap()) / 255.0;
        if c <= 0.04045 { c / 12.92 } else { ((c + 0.055) / 1.055).powf(2.4) }
    };
    0.2126 * part(0) + 0.7152 * part(2) + 0.0722 * part(4)
}

#[test]
fn text_is_legible_on_every_shade() {
    let shades = (0..8).map(Shade::Step).chain((0..32).map(Shade::Thread)).chain([Shade::Empty]);
    for shade in shades {
        let fill = svg::fill(shade);
        let contrast = (luminance(&fill) + 0.05) / (luminance("#111") + 0.05);
        assert!(contrast >= 4.5, "{shade:?} {fill}: {contrast:.2}");
    }
}

/// Attributes of a name, as numbers.
fn numbers(svg: &str, attribute: &str) -> Vec<f64> {
    let start = format!(" {attribute}=\"");
    svg.split(&start).skip(1).filter_map(|part| part.split('"').next()?.parse().ok()).collect()
}

#[test]
fn svg_is_well_formed_and_everything_is_inside() {
    let mut pictures: Vec<Picture> = [
        "((2,4),(3,2)):((1,16),(2,64))",
        "1000:3",
        "(1,200):(0,1)",
        "(300,2):(1,300)",
        "():()",
        "(0,4):(1,1)",
        "Sw<3,0,3> o 0 o (8,8):(8,1)",
        "(((4,8),(2,2)):((32,1),(16,8)),(16,8))",
        "1:0",
        "(2,2):(1000000000000,1@0)",
    ]
    .iter()
    .filter_map(|text| Picture::of(&Cx::default(), &parse_value(text).unwrap()).ok())
    .collect();
    assert_eq!(pictures.len(), 9);
    let tv = ["1:0", "(1,1):(0,0)", "(1,1):(0,0)", "(1,1):(0,0)"];
    for value in [Value::Atom(sm80()), Value::Atom(atom([1, 1, 1], tv))] {
        pictures.push(Picture::of(&Cx::default(), &value).unwrap());
    }
    for picture in &pictures {
        let svg = picture.svg();
        let (w, h) = (numbers(&svg, "width")[0], numbers(&svg, "height")[0]);
        assert!(numbers(&svg, "x").iter().all(|&x| x >= 0.0 && x <= w), "{}", picture.title);
        assert!(numbers(&svg, "y").iter().all(|&y| y >= 0.0 && y <= h), "{}", picture.title);
        for tag in ["svg", "text", "title", "style"] {
            let open = svg.matches(&format!("<{tag}>")).count() + svg.matches(&format!("<{tag} ")).count();
            assert_eq!(open, svg.matches(&format!("</{tag}>")).count(), "{tag} of {}", picture.title);
        }
        assert!(!svg.replace("<svg", "").contains("Sw<"), "texts are escaped");
    }
    assert!(picture("(300,2):(1,300)").svg().contains("300 x 2; the first 126 and the last are drawn"));
}

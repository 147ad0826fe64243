use super::*;
use crate::{BinOp, DTypeRule, Expr, PipeRule, Reduce, Sem, ShapeRule, UnOp};
use std::collections::HashSet;

#[test]
fn names_are_unique_and_lookup_finds_each() {
    let mut seen = HashSet::new();
    for id in InstrId::all() {
        let row = id.get();
        assert!(seen.insert(row.name), "{} twice", row.name);
        assert_eq!(lookup(row.name), Some(id));
        assert!(!NOT_YET.contains(&row.name), "{} is there", row.name);
    }
    assert_eq!(lookup("TPREFETCH"), None);
    assert!(NOT_YET.is_sorted());
}

#[test]
fn what_other_parts_of_the_compiler_ask_for_is_there() {
    let wanted = "TASSIGN TLOAD TSTORE TMOV TADD TSUB TMUL TDIV TMAX TMIN TAND TOR TXOR TSHL TSHR TADDS TSUBS TMULS \
                  TDIVS TMAXS TMINS TANDS TORS TXORS TSHLS TSHRS TEXPANDS TABS TNEG TNOT TRELU TEXP TLOG TSQRT TRSQRT \
                  TRECIP TCVT TCMP TSEL TROWSUM TROWMAX TROWMIN TCOLSUM TCOLMAX TCOLMIN TROWEXPAND TROWEXPANDADD \
                  TROWEXPANDSUB TROWEXPANDMUL TROWEXPANDDIV TROWEXPANDMAX TROWEXPANDMIN TCOLEXPAND TCOLEXPANDADD \
                  TCOLEXPANDSUB TCOLEXPANDMUL TCOLEXPANDDIV TCOLEXPANDMAX TCOLEXPANDMIN TTRANS TMATMUL TMATMUL_ACC \
                  TMATMUL_BIAS MGATHER TSAMPLE";
    let wanted: HashSet<&str> = wanted.split_whitespace().collect();
    let have: HashSet<&str> = TABLE.iter().map(|i| i.name).collect();
    assert!(wanted.is_subset(&have));
}

/// Number of operands and shape rule that a meaning has.
fn expected(row: &Instr) -> (usize, ShapeRule) {
    match row.sem {
        Sem::Assign => (2, ShapeRule::Free),
        Sem::Load | Sem::Store | Sem::Move => (2, ShapeRule::Same),
        Sem::Binary(_) | Sem::BinaryScalar(_) | Sem::Compare => (3, ShapeRule::Same),
        Sem::Unary(_) | Sem::Expand | Sem::Convert => (2, ShapeRule::Same),
        // `ir::formula` checks that the expression fits the operands.
        Sem::Map(_) => (row.operands.len(), row.shape),
        Sem::Select => (4, ShapeRule::Same),
        Sem::RowReduce(_) | Sem::RowArg(_) => (2, ShapeRule::RowReduce),
        Sem::ColReduce(_) | Sem::ColArg(_) => (2, ShapeRule::ColReduce),
        Sem::PairSum => (2, ShapeRule::Same),
        Sem::RowArgValues(_) => (3, ShapeRule::RowReduce),
        Sem::Part(_) => (3, ShapeRule::Part),
        Sem::PartArg(_) => (6, ShapeRule::Part),
        Sem::Interleave | Sem::Deinterleave => (4, ShapeRule::EvenColumns),
        Sem::DeinterleaveOne => (3, ShapeRule::Halves),
        Sem::RowExpand => (2, ShapeRule::RowExpand),
        Sem::RowExpandBinary(_) => (3, ShapeRule::RowExpand),
        Sem::ColExpand => (2, ShapeRule::ColExpand),
        Sem::ColExpandBinary(_) => (3, ShapeRule::ColExpand),
        Sem::Transpose => (2, ShapeRule::Transpose),
        // Or of one row: `Gemv`.
        Sem::Matmul if row.shape == ShapeRule::Gemv => (3, ShapeRule::Gemv),
        Sem::MatmulAcc | Sem::MatmulBias if row.shape == ShapeRule::Gemv => (4, ShapeRule::Gemv),
        Sem::Matmul => (3, ShapeRule::Matmul),
        Sem::MatmulAcc | Sem::MatmulBias => (4, ShapeRule::Matmul),
        Sem::Gather => (3, ShapeRule::Gather),
        Sem::ScatterTo => (3, ShapeRule::Scattered),
        Sem::GatherRows => (4, ShapeRule::GatherRows),
        Sem::ScatterRows => (4, ShapeRule::ScatterRows),
        Sem::Prefetch => (1, ShapeRule::Free),
        Sem::Sample => (5, ShapeRule::Sample),
        // `cells_agree_with_their_operands` looks at these.
        Sem::Cells(_) => (row.operands.len(), row.shape),
        Sem::Scatter => (4, ShapeRule::Own),
        Sem::Fixpipe(_) => (row.operands.len(), ShapeRule::Fixpipe),
        Sem::Named(_) if row.shape == ShapeRule::Counted => (5, ShapeRule::Counted),
        Sem::Named(_) => (row.operands.len(), ShapeRule::Own),
    }
}

#[test]
fn usage_shows_the_modes() {
    let usage = |name| lookup(name).unwrap().get().usage();
    assert_eq!(usage("TADD"), "TADD(dst, a, b)");
    assert_eq!(usage("TAXPY"), "TAXPY(dst, a, scalar)");
    assert_eq!(lookup("TAXPY").unwrap().get().formula(), "dst[i, j] = s * a[i, j] + dst[i, j]");
    assert_eq!(usage("TCMP"), "TCMP(dst, a, b, EQ | NE | LT | LE | GT | GE)");
    assert_eq!(
        usage("TCVT"),
        "TCVT(dst, a, [Rint | Round | Floor | Ceil | Trunc | Odd], [saturate = true | saturate = false])"
    );
    assert_eq!(usage("MGATHER"), "MGATHER(dst, table, idx, [Undefined | Clamp | Wrap | Zero])");
    assert_eq!(
        usage("TSAMPLE"),
        "TSAMPLE(dst, map, geo, attn, [offs], [fold = true | fold = false], [border = Clamp | border = Zero])"
    );
    assert_eq!(usage("TSTORE"), "TSTORE(view, a, [atomic = true], [Relu])");
    assert_eq!(usage("TEXTRACT_QUANT"), "TEXTRACT(dst, a, scale, row, col, [Relu])");
    assert_eq!(usage("TDIVS"), "TDIVS(dst, a, scalar) or TDIVS(dst, scalar, a)");
}

#[test]
fn operands_agree_with_meaning() {
    for row in TABLE {
        let (count, shape) = expected(row);
        assert_eq!((row.operands.len(), row.shape), (count, shape), "{}", row.name);
        let results: Vec<usize> = row.results().collect();
        let second = match row.sem {
            Sem::RowArgValues(_) | Sem::Interleave | Sem::Deinterleave | Sem::DeinterleaveOne => vec![0, 1],
            Sem::PartArg(_) => vec![0, 3],
            _ if row.shape == ShapeRule::Counted => vec![0, 3],
            Sem::Prefetch => vec![],
            _ => vec![0],
        };
        assert_eq!(results, second, "{}: the destination comes first, alone but for those of two", row.name);
        let names: HashSet<&str> = row.operands.iter().map(|o| o.name).collect();
        assert_eq!(names.len(), count, "{}: operand names", row.name);
        for o in row.operands {
            if let OperandKind::Tile(locs) = o.kind {
                assert!(!locs.is_empty(), "{}.{}", row.name, o.name);
            }
        }
        let has = |kind: OperandKind| row.operands.iter().any(|o| o.kind == kind);
        let scalars = row.operands.iter().filter(|o| matches!(o.kind, OperandKind::Scalar(_))).count();
        let named = matches!(row.sem, Sem::BinaryScalar(_) | Sem::Expand);
        assert!(
            scalars == usize::from(named)
                || (scalars <= 1 && matches!(row.sem, Sem::Map(_) | Sem::Cells(_) | Sem::Fixpipe(_))),
            "{}",
            row.name
        );
        assert_eq!(row.updates, row.operands.last().is_some_and(|o| o.name == "old"), "{}", row.name);
        if let Some(expr) = row.sem.expr() {
            // What is an expression is printed from it, and every source takes part.
            assert!(row.meaning.is_empty(), "{}", row.name);
            for k in 1..row.operands.len() {
                assert!(expr.any(&|e| *e == Expr::Arg(k)), "{}: {}", row.name, row.operands[k].name);
            }
        }
        assert_eq!(
            has(OperandKind::View),
            matches!(row.sem, Sem::Load | Sem::Store | Sem::Prefetch | Sem::Sample)
                || row.sem.gathers()
                || row.sem.scatters()
                || (matches!(row.sem, Sem::Fixpipe(_)) && row.pipe == PipeRule::Store),
            "{}",
            row.name
        );
        assert_eq!(has(OperandKind::Address), row.sem == Sem::Assign, "{}", row.name);
        assert_eq!(
            row.dtypes == DTypeRule::Move,
            matches!(row.sem, Sem::Load | Sem::Store | Sem::Move),
            "{}",
            row.name
        );
        assert_eq!(row.pipe == PipeRule::M, matches!(row.shape, ShapeRule::Matmul | ShapeRule::Gemv), "{}", row.name);
        for text in [row.doc, &row.formula(), row.source] {
            assert!(!text.is_empty(), "{}", row.name);
        }
        assert!(row.doc.ends_with('.'), "{}: `{}`", row.name, row.doc);
    }
}

#[test]
fn every_meaning_is_an_instruction_once() {
    let mut all = vec![
        Sem::Assign,
        Sem::Load,
        Sem::Store,
        Sem::Move,
        Sem::Expand,
        Sem::Convert,
        Sem::Compare,
        Sem::Select,
        Sem::RowExpand,
        Sem::ColExpand,
        Sem::Transpose,
        Sem::PairSum,
        Sem::Interleave,
        Sem::Deinterleave,
        Sem::DeinterleaveOne,
        Sem::Matmul,
        Sem::MatmulAcc,
        Sem::MatmulBias,
        Sem::Gather,
        Sem::ScatterTo,
        Sem::GatherRows,
        Sem::ScatterRows,
        Sem::Prefetch,
        Sem::Scatter,
        Sem::Sample,
    ];
    use BinOp::*;
    all.extend([Add, Sub, Mul, Div, Max, Min, And, Or, Xor, Shl, Shr].map(Sem::Binary));
    all.extend([Add, Sub, Mul, Div, Max, Min, And, Or, Xor, Shl, Shr].map(Sem::BinaryScalar));
    all.extend([Add, Sub, Mul, Div, Max, Min].map(Sem::RowExpandBinary));
    all.extend([Add, Sub, Mul, Div, Max, Min].map(Sem::ColExpandBinary));
    all.extend(Reduce::ALL.iter().map(|r| Sem::RowReduce(*r)));
    all.extend(Reduce::ALL.iter().map(|r| Sem::ColReduce(*r)));
    all.extend([Reduce::Max, Reduce::Min].map(Sem::RowArg));
    all.extend([Reduce::Max, Reduce::Min].map(Sem::ColArg));
    all.extend([Reduce::Max, Reduce::Min].map(Sem::RowArgValues));
    all.extend([Reduce::Max, Reduce::Min].map(Sem::PartArg));
    all.extend([Add, Mul, Max, Min].map(Sem::Part));
    use UnOp::*;
    all.extend([Abs, Neg, Not, Relu, Exp, Log, Sqrt, Rsqrt, Recip].map(Sem::Unary));
    all.extend([Sin, Cos, Tanh, Erf, Floor, Ceil, Trunc, Rint].map(Sem::Unary));
    for sem in &all {
        let rows = TABLE.iter().filter(|i| i.sem == *sem && i.shape != ShapeRule::Gemv);
        assert_eq!(rows.count(), 1, "{sem:?}");
    }
    let expressions = TABLE.iter().filter(|i| {
        matches!(i.sem, Sem::Map(_) | Sem::Cells(_) | Sem::Named(_) | Sem::Fixpipe(_)) || i.shape == ShapeRule::Gemv
    });
    assert_eq!(TABLE.len(), all.len() + expressions.count());
}

#[test]
fn names_that_are_not_there() {
    assert_eq!(find("TADD"), NameLookup::Found(lookup("TADD").unwrap()));
    assert_eq!(find("TPREFETCH"), NameLookup::NotYet("TPREFETCH"));
    assert_eq!(find("tprefetch"), NameLookup::NotYet("TPREFETCH"));
    assert_eq!(find("TMATMULL"), NameLookup::Unknown { nearest: vec!["TMATMUL"] });
    let NameLookup::Unknown { nearest } = find("tadd") else { panic!("names are upper case") };
    assert_eq!(nearest[0], "TADD");
    assert_eq!(find("QQQQQQQQ"), NameLookup::Unknown { nearest: vec![] });
}

#[test]
fn forms_with_a_scalar() {
    let of = |name: &str| sibling(lookup(name).unwrap()).map(|(id, k)| (id.get().name, k));
    for (tile, scalar, k) in [
        ("TADD", "TADDS", 2),
        ("TSEL", "TSELS", 3),
        ("TPRELU", "TLRELU", 2),
        ("TADDC", "TADDSC", 2),
        ("TCMP", "TCMPS", 2),
        ("TFMOD", "TFMODS", 2),
    ] {
        assert_eq!(of(tile), Some((scalar, k)));
        assert_eq!(of(scalar), Some((tile, k)));
    }
    for name in ["TEXP", "TAXPY", "TROWEXPANDADD", "TLOAD", "TADDDEQRELU"] {
        assert_eq!(of(name), None, "{name}");
    }
}

#[test]
fn scratch_and_overlap_of_single_rows() {
    use crate::{Target, TileType, check_overlap, scratch_type};
    let on = |t: &str| Target::builtin(t).unwrap();
    let leaky = lookup("TPRELU").unwrap();
    let legal_on = check_overlap(on("a2a3"), leaky, 1).map(|v| v.legal_on);
    assert_eq!(legal_on, Some(vec!["a5", "kirin9030", "kirinx90", "sm90"]));
    assert!(check_overlap(on("a5"), leaky, 1).is_none());
    let src = TileType {
        loc: Loc::Vec,
        dtype: ptoc_tensor::DType::F32,
        rows: 16,
        cols: 100,
        order: crate::Order::Nd,
        layout: None,
    };
    let scratch = |name: &str, target: &str| {
        scratch_type(on(target), lookup(name).unwrap(), src, src).map(|t| (t.dtype, t.rows, t.cols))
    };
    use ptoc_tensor::DType::{F32, U8};
    assert_eq!(scratch("TPRELU", "a2a3"), Some((U8, 16, 128)));
    assert_eq!(scratch("TREM", "a2a3"), Some((F32, 1, 104)));
    assert_eq!(scratch("TREM", "a5"), None);
    assert_eq!(scratch("TMRGSORT_2", "a2a3"), Some((F32, 16, 100)));
    assert_eq!(scratch("TGATHER_COMPARE", "a2a3"), Some((U8, 16, 448)));
}

/// Which operands an expression names, and as what.
fn named_in(cells: &crate::Cells) -> Vec<(usize, &'static str)> {
    use crate::{Cell, IndexExpr, Test};
    fn num(n: &IndexExpr, out: &mut Vec<(usize, &'static str)>) {
        match n {
            IndexExpr::Rows(k) | IndexExpr::Cols(k) | IndexExpr::Width(k) | IndexExpr::Size(k) => {
                out.push((*k, "shape"))
            }
            IndexExpr::Arg(k) => out.push((*k, "scalar")),
            IndexExpr::At(k, r, c) => {
                out.push((*k, "tile"));
                num(r, out);
                num(c, out);
            }
            IndexExpr::Bin(_, a, b) => {
                num(a, out);
                num(b, out);
            }
            IndexExpr::Row | IndexExpr::Col | IndexExpr::Is(_) => {}
        }
    }
    fn test(t: &Test, out: &mut Vec<(usize, &'static str)>) {
        match t {
            Test::Cmp(_, a, b) => {
                num(a, out);
                num(b, out);
            }
            Test::And(a, b) => {
                test(a, out);
                test(b, out);
            }
        }
    }
    fn cell(c: &Cell, out: &mut Vec<(usize, &'static str)>) {
        match c {
            Cell::At(k, r, c) => num(&IndexExpr::At(*k, r, c), out),
            Cell::Scalar(k) => out.push((*k, "scalar")),
            Cell::Of(n) => num(n, out),
            Cell::Is(_) => {}
            Cell::If(t, a, b) => {
                test(t, out);
                cell(a, out);
                cell(b, out);
            }
        }
    }
    let mut out = Vec::new();
    cell(&cells.value, &mut out);
    for need in cells.needs {
        assert!(!need.left.looks() && !need.right.looks(), "{}", need.what);
        num(&need.left, &mut out);
        num(&need.right, &mut out);
    }
    out
}

#[test]
fn cells_agree_with_their_operands() {
    for row in TABLE {
        let Sem::Cells(cells) = row.sem else { continue };
        let named = named_in(cells);
        for (k, what) in &named {
            let kind = row.operands[*k].kind;
            let tile = matches!(kind, OperandKind::Tile(_));
            assert_eq!(tile, *what != "scalar", "{}: operand {k}", row.name);
        }
        for k in 1..row.operands.len() {
            assert!(named.iter().any(|(n, _)| *n == k), "{}: {}", row.name, row.operands[k].name);
        }
        assert!(matches!(row.shape, ShapeRule::Own | ShapeRule::Whole), "{}", row.name);
    }
}

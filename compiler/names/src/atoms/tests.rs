use super::*;

fn faults(text: &str) -> Vec<String> {
    let parsed = ptoc_syntax::parse(FileId(0), text);
    let mut out = Vec::new();
    for item in &parsed.file.items {
        if let ItemKind::Atom(a) = &item.kind
            && let Err(d) = atom(a)
        {
            out.extend(d.iter().map(|d| {
                let at = d.span.map_or("", |s| &text[s.start as usize..s.end as usize]);
                format!("{} {at}: {}", d.code, d.message)
            }));
        }
    }
    out
}

fn of(fields: &[(&str, &str)]) -> String {
    let fields: String = fields.iter().map(|(n, v)| format!("{n} = {v}; ")).collect();
    format!("atom T {{ {fields}}}")
}

const GOOD: [(&str, &str); 6] = [
    ("shape", "(2, 2, 1)"),
    ("types", "(f32, f16, f16, f32)"),
    ("thr", "2:1"),
    ("A", "(2, 1):(1, 0)"),
    ("B", "(2, 1):(1, 0)"),
    ("C", "(2, (2,)):(1, (2 * 1,))"),
];

fn with(k: usize, name: &'static str, value: &'static str) -> Vec<String> {
    let mut fields = GOOD;
    fields[k] = (name, value);
    faults(&of(&fields))
}

#[test]
fn the_library_has_good_atoms() {
    let names: Vec<String> = standard().iter().map(Value::to_string).collect();
    assert_eq!(
        names,
        [
            "UniversalFMA",
            "SM70_8x8x4_F32F16F16F32_TN",
            "SM70_8x8x4_F32F16F16F32_NT",
            "SM80_16x8x8_F32F16F16F32_TN",
            "SM80_16x8x16_F32F16F16F32_TN",
            "SM80_8x8x4_F64F64F64F64_TN",
            "SM90_64xNx16_F32F16F16_SS",
            "SM90_64xNx16_F16F16F16_SS",
            "SM90_64xNx16_F32BF16BF16_SS",
            "SM90_64xNx32_S32S8S8_SS"
        ]
    );
    let text = ptoc_stdlib::module(&["atoms"]).unwrap().1;
    assert!(ptoc_syntax::parse(FileId(0), text).diagnostics.is_empty());
    assert_eq!(text.matches("\natom ").count(), names.len());
}

#[test]
fn the_library_has_good_families() {
    let extents: Vec<String> = standard_families().iter().map(|f| f.extents()).collect();
    assert_eq!(extents, ["8, 16, .., 256", "8, 16, .., 256", "8, 16, .., 256", "8, 16, 24, 32, 48, 64, .., 256"]);
    for family in standard_families().iter() {
        for atom in family.atoms() {
            assert_eq!(atom.check(), Ok(()), "{}", atom.name);
            let n = atom.shape[1];
            assert!(atom.name.contains(&format!("_64x{n}x")), "{}", atom.name);
        }
    }
    // As in CUTLASS's `CLayout_64xN` and `ABLayout`.
    let atom = standard_families()[0].select(256).unwrap();
    assert_eq!(atom.name, "SM90_64x256x16_F32F16F16_SS");
    assert_eq!(atom.c.to_string(), "((4,8,4),(2,2,32)):((128,1,16),(64,8,512))");
    assert_eq!(atom.a.to_string(), "(128,(64,16)):(0,(1,64))");
    assert_eq!(atom.b.to_string(), "(128,(256,16)):(0,(1,256))");
}

#[test]
fn families() {
    let family = |k: usize, name: &'static str, value: &'static str| {
        let mut fields = vec![
            ("N", "[2, 4]"),
            ("shape", "(2, N, 1)"),
            ("types", "(f32, f16, f16, f32)"),
            ("thr", "2:1"),
            ("A", "(2, 1):(1, 0)"),
            ("B", "(2, N / 2):(1, 2)"),
            ("C", "(2, N):(1, 2)"),
        ];
        fields[k] = (name, value);
        faults(&of(&fields))
    };
    assert_eq!(family(0, "N", "[2, 4, 6]"), [""; 0]);
    assert_eq!(family(0, "N", "[4, 2]"), ["E1032 2: the extents in `N` ascend, here 2 stands after 4"]);
    assert_eq!(family(0, "N", "8"), ["E1032 8: the field `N` of an atom takes a list of ascending extents, found 8"]);
    assert_eq!(family(1, "shape", "(2, 4, 1)"), ["E1034 (2, 4, 1): the shape has 4 in mode N where N is 2"]);
    // Said once, of the first extent that it is wrong for.
    assert_eq!(
        family(6, "C", "(2, N):(1, 1)"),
        ["E1035 (2, N):(1, 1): C = (2,2):(1,1) gives element 1 of M x N = 2 x 2 to value 0 of thread 1 and to value \
            1 of thread 0"]
    );
    assert_eq!(
        family(0, "N", "[2, 3]"),
        ["E1032 N / 2: the field `B` of an atom takes constant integers in its layout, found an expression that is \
            no integer for N = 3"]
    );
    // Without the field, `N` means nothing.
    assert_eq!(with(5, "C", "(2, N):(1, 2)").len(), 1);
}

#[test]
fn fields() {
    assert_eq!(faults(&of(&GOOD)), [""; 0]);
    assert_eq!(faults(&of(&GOOD[..4])), ["E1030 T: the atom `T` lacks the fields `B`, `C`"]);
    // The unknown one is the missing one.
    assert_eq!(with(5, "c", "(2, 2):(1, 2)"), ["E1031 c: an atom has no field `c`"]);
    assert_eq!(with(1, "shape", "(2, 2, 1)")[0], "E1033 shape: the field `shape` is given twice");
    assert_eq!(
        with(0, "shape", "(2, 2)"),
        ["E1032 (2, 2): the field `shape` of an atom takes three numbers, M, N and K, found a tuple of 2"]
    );
    assert_eq!(
        with(0, "shape", "(2, N, 1)"),
        ["E1032 N: the field `shape` of an atom takes three numbers, M, N and K, found `N`"]
    );
    assert_eq!(
        with(1, "types", "(f32, f16, float, f32)"),
        ["E1032 float: the field `types` of an atom takes four dtypes, those of D, A, B and C, found `float`"]
    );
    assert_eq!(with(2, "thr", "2"), ["E1032 2: the field `thr` of an atom takes a layout, `shape : stride`, found 2"]);
    assert_eq!(
        with(3, "A", "(2, 1):(1, 0.5)"),
        ["E1032 0.5: the field `A` of an atom takes constant integers in its layout, found 0.5"]
    );
    assert_eq!(with(3, "A", "(2, 1):1"), ["E1007 (2, 1):1: shape (2,1) and stride 1 are nested differently"]);
    assert_eq!(with(0, "shape", "(0, 2, 1)"), ["E1034 (0, 2, 1): extent 0 in mode M is not in 1 to 4194304"]);
}

#[test]
fn layouts() {
    assert_eq!(
        with(2, "thr", "(2, 1):(0, 1)"),
        ["E1035 (2, 1):(0, 1): thr = (2,1):(0,1) gives two logical threads one thread of the machine"]
    );
    assert_eq!(
        with(3, "A", "(4, 1):(1, 0)"),
        ["E1034 (4, 1):(1, 0): A = (4,1):(1,0) has 4 threads in mode 0, thr = 2:1 has 2"]
    );
    assert_eq!(with(3, "A", "2:1"), ["E1034 2:1: A = 2:1 has 1 mode, not two"]);
    assert_eq!(
        with(4, "B", "(2, 1):(2, 0)"),
        ["E1035 (2, 1):(2, 0): B = (2,1):(2,0) gives value 0 of thread 1 element 2, N x K = 2 x 1 has 0 to 1"]
    );
    assert_eq!(
        with(5, "C", "(2, 2):(1, 1)"),
        ["E1035 (2, 2):(1, 1): C = (2,2):(1,1) gives element 1 of M x N = 2 x 2 to value 0 of thread 1 and to value \
            1 of thread 0"]
    );
    assert_eq!(
        with(5, "C", "(2, 1):(1, 0)"),
        ["E1035 (2, 1):(1, 0): C = (2,1):(1,0) gives element 2 of M x N = 2 x 2 to no thread"]
    );
    // A and B may be shared.
    assert_eq!(with(3, "A", "(2, 2):(0, 1)"), [""; 0]);
    // Two mistakes, two faults.
    let mut fields = GOOD;
    fields[3].1 = "(2, 1):(2, 0)";
    fields[4].1 = "(2, 1):(-1, 0)";
    assert_eq!(faults(&of(&fields)).len(), 2);
}

//! Bounds of accesses: proved from tile IR alone in every program that we ship. Where they are not, hostile indices at
//! every place that takes one end alike on the interpreter and in machine code, between guard pages.

use crate::engine::{Built, Content, Refused, Stop, build, noise};
use ptoc_checks::bounds;
use ptoc_diagnostics::{Analysis, Budget};
use ptoc_ir::loops::Bounded;
use ptoc_isa::OperandKind;
use ptoc_tensor::{DType, Tensor};
use ptoc_tests::programs;

/// Kernels with windows whose bounds take more than the prover knows: products of grouped modes, halves of bytes, and
/// blocks of two dimensions that are counted by one number; pages that are gathered, whose last one is not whole;
/// threads whose number the launch says, and ones that have no row of a tile; subtiles, and shares of steps, that are
/// counted by one number over sizes of the launch; rows as far apart as a parameter says; slices of as many rows as the
/// launch says, whose blocks are counted by a sum that might wrap; what threads have of a tile or tensor that is cut.
const NOT_PROVED: [&str; 26] = [
    "conv2d",
    "any_to_any",
    "strided",
    "gemv_w4a16_bytes",
    "transpose",
    "paged",
    "launched",
    "few_rows",
    "none_left",
    "late",
    "partial_products",
    "stream_products",
    "pack",
    "copied",
    "moved_rows",
    "bounded",
    "as_many_rows",
    "of_tile",
    "of_any_size",
    "ragged_blocks",
    "swizzled_product",
    "far_heads",
    "head_products",
    "unfolded_filter",
    "heads_by_name",
    "gemm_nibbles",
];

/// No access of a program of ours needs a check that its author's source does not ask for.
#[test]
fn programs_are_proved() {
    let (mut proved, mut open) = (0, Vec::new());
    for file in programs::files() {
        for p in programs::runs(&file) {
            for step in &p.plan.steps {
                let (bounded, verdict) =
                    bounds::settled(&step.kernel, &p.session.target, Budget::default().account(Analysis::Lowering));
                proved += verdict.proved;
                let taken = bounded.as_ref().unwrap_or(&step.kernel);
                assert_eq!(bounds::verify(taken, &p.session.target), Ok(()), "{} {}", p.name, step.kernel.name);
                if let Some(module) = &step.module {
                    assert_eq!(ptoc_ir::loops::verify(module), Ok(()), "{} {}", p.name, step.kernel.name);
                    let tested = module.bounds.iter().any(|row| matches!(row.by, Bounded::Checks(_)));
                    assert_eq!(tested, verdict.checked > 0, "{} {}", p.name, step.kernel.name);
                    assert_eq!(module.bounds.is_empty(), verdict.rows.is_empty(), "{}", p.name);
                }
                let told = NOT_PROVED.contains(&step.kernel.name.as_str());
                if verdict.checked > 0 && step.module.is_some() && !told {
                    let checks = bounded.map(|k| k.checks.values().skip(step.kernel.checks.len()).cloned().collect());
                    let checks: Vec<ptoc_ir::tile::CheckData> = checks.unwrap_or_default();
                    let what: Vec<_> = checks.iter().map(|c| format!("{} {}", c.code.as_str(), c.message)).collect();
                    open.push(format!("{} {}: {} of {what:#?}", p.name, step.kernel.name, verdict.checked));
                }
            }
        }
    }
    assert!(open.is_empty(), "{}", open.join("\n"));
    assert!(proved > 10_000, "{proved} bounds");
}

/// Places of an index `#`, with what stands around them. Arrays: `x` and `y` of f32, `z` of i32, `t` a tile.
const PLACES: &[(&str, &str)] = &[
    ("an element of a tile is written", "t[#, 1] = 2.0; TSTORE(y, t);"),
    ("in a column", "t[1, #] = 2.0; TSTORE(y, t);"),
    ("an element of a tile is updated", "t[#, 1] += 2.0; TSTORE(y, t);"),
    ("an element of a part of a tile", "t.tile(tiles(16, 4)[1], _)[#, 1] -= 2.0; TSTORE(y, t);"),
    ("an element of a tile is read", "y[0, 0] = t[#, 1];"),
    ("in a column, to be read", "y[0, 0] = t[1, #];"),
    ("a row of a tile is read", "TSTORE(y[0, _], t[#, _]);"),
    ("a row of a tile is written", "t[#, _] = 3.0; TSTORE(y, t);"),
    (
        "an element of an array of tiles",
        "let u = tile Vec<f32, 16, 8>[3]; for k in 0..3 { u[k] = 1.0; } u[#] = 2.0; TSTORE(y, u[2]);",
    ),
    ("of which one is read", "let u = tile Vec<f32, 16, 8>[3]; for k in 0..3 { u[k] = 1.0; } TSTORE(y, u[#]);"),
    (
        "an element of an element",
        "let u = tile Vec<f32, 16, 8>[3]; for k in 0..3 { u[k] = 1.0; } u[#][#, 0] = 2.0; TSTORE(y, u[2]);",
    ),
    ("an element of a tensor is written", "y[#, 1] = 2.0;"),
    ("in a column of a tensor", "y[1, #] = 2.0;"),
    ("an element of a tensor is read", "y[0, 0] = x[#, 1];"),
    ("in a column of a tensor, to be read", "y[0, 0] = x[1, #];"),
    ("an element is updated", "y[#, 1] += 2.0;"),
    ("a row of a tensor is loaded", "TSTORE(y[0, _], Vec(x[#, _]));"),
    ("a row of a tensor is stored", "TSTORE(y[#, _], Vec(x[0, _]));"),
    ("a column of a tensor is stored", "TSTORE(col(y[_, #]), Vec(col(x[_, 0])));"),
    ("a block by its number", "TSTORE(y.tile(tiles(16, 4)[#], _), Vec(x.tile(tiles(16, 4)[0], _)));"),
    ("a block that is read", "TSTORE(y.tile(tiles(16, 4)[0], _), Vec(x.tile(tiles(16, 4)[#], _)));"),
    ("a block of a tile", "t.tile(tiles(16, 4)[#], _) = 1.0; TSTORE(y, t);"),
    ("the start of a block and a number", "for i in tiles(16, 4) { y[i.start + #, 0] = 1.0; }"),
    ("copy, destination", "copy(y[#, _], x[0, _]);"),
    ("copy, source", "copy(y[0, _], x[#, _]);"),
    ("copy, both", "copy(y[#, _], x[#, _]);"),
    (
        "an overlapping window",
        "TSTORE(y.tile(tiles(16, 4)[0], _), Vec(composition(x, <(13, 4):(1, 1), _>)[(#, _), _]));",
    ),
    (
        "an overlapping window, stored",
        "TSTORE(composition(y, <(13, 4):(1, 1), _>)[(#, _), _], Vec(x.tile(tiles(16, 4)[0], _)));",
    ),
    ("an atomic", "atomic_add(z[#, 1], 1);"),
    ("an atomic's column", "atomic_max(z[1, #], 1);"),
    ("compare and swap", "atomic_cas(z[#, 1], 0, 1);"),
    (
        "valid rows",
        "TSTORE(y.tile(tiles(16, 4)[0], _), Vec(x.tile(tiles(16, 4)[0], _))); TADDS(t.valid(#, 8), t.valid(#, 8), \
        1.0); TSTORE(y, t);",
    ),
    ("valid columns", "TADDS(t.valid(16, #), t.valid(16, #), 1.0); TSTORE(y, t);"),
    ("an address", "let u = tile Vec<f32, 16, 8>; TASSIGN(u, #); u = 2.0; TSTORE(y, u);"),
    ("TEXTRACT, rows", "let u = tile Vec<f32, 4, 8>; TEXTRACT(u, t, #, 0); TSTORE(y.tile(tiles(16, 4)[0], _), u);"),
    ("TEXTRACT, columns", "let u = tile Vec<f32, 16, 8>; TEXTRACT(u, t, 0, #); TSTORE(y, u);"),
    ("TINSERT, rows", "let u = tile Vec<f32, 4, 8>; u = 5.0; TINSERT(t, u, #, 0); TSTORE(y, t);"),
    ("TINSERT, columns", "let u = tile Vec<f32, 16, 8>; u = 5.0; TINSERT(t, u, 0, #); TSTORE(y, t);"),
    ("TTRI", "let u = tile Vec<f32, 16, 8>; TTRI(u, #); TSTORE(y, u);"),
    (
        "a gathered row",
        "let i = tile Vec<i32, 1, 8>; for k in 0..8 { i[0, k] = i32(#); } let u = tile Vec<f32, 1, 8>; MGATHER(u, x, \
        i); TSTORE(y[0, _], u);",
    ),
    (
        "MSCATTER",
        "let i = tile Vec<i32, 1, 8>; for k in 0..8 { i[0, k] = i32(#) + i32(k); } let u = tile Vec<f32, 1, 8>; u = \
        4.0; MSCATTER(y, u, i);",
    ),
    (
        "gathered rows",
        "let i = tile Vec<i32, 1, 8>; for k in 0..8 { i[0, k] = i32(#); } let u = tile Vec<f32, 8, 8>; MGATHER(u, x, \
        i, Row); TSTORE(y.tile(tiles(16, 8)[0], _), u);",
    ),
    (
        "scattered rows",
        "let i = tile Vec<i32, 1, 8>; for k in 0..8 { i[0, k] = i32(#) + i32(k); } let u = tile Vec<f32, 8, 8>; u = \
        4.0; MSCATTER(y, u, i, Row);",
    ),
    (
        "TGATHER",
        "let i = tile Vec<i32, 16, 8>; i = i32(#); let u = tile Vec<f32, 16, 8>; TGATHER(u, t, i); TSTORE(y, u);",
    ),
    (
        "TSCATTER",
        "let i = tile Vec<i32, 16, 8>; i = i32(#); for k in 0..8 { i[0, k] = i32(k); } TSCATTER(t, t, i); TSTORE(y, \
        t);",
    ),
    ("a loop up to it", "for k in 0..min(#, 40) { t[k, 0] = 1.0; } TSTORE(y, t);"),
    ("a loop from it", "for k in max(#, -3)..2 { y[k, 0] = 1.0; }"),
    ("a loop and a number", "for k in 0..2 { y[k + #, 0] = 1.0; }"),
    ("a variable", "var k = #; k += 1; y[k, 0] = 1.0;"),
    ("a condition below", "if # < 16 { y[#, 0] = 1.0; }"),
    ("a condition above", "if # >= 0 { y[#, 0] = 1.0; }"),
    ("behind a branch that bounds it", "if n >= 0 && n < 4 { y[#, 0] = 1.0; } y[#, 1] = 1.0;"),
    ("a condition on a product", "if # * 4 < 16 && # * 4 >= 0 { y[# * 4, 0] = 1.0; }"),
];

/// What stands for `#`: the number, and what may overflow on the way to it.
const FORMS: &[&str] = &["n", "n * 4", "n + 1", "n * n", "n - 9223372036854775807", "(0 - n)", "n / 2", "n % 16"];

const NUMBERS: &[i64] = &[
    0,
    1,
    3,
    7,
    8,
    12,
    13,
    15,
    16,
    17,
    31,
    -1,
    -2,
    -16,
    1 << 31,
    -(1 << 31),
    3_037_000_500,
    1 << 61,
    1 << 62,
    i64::MAX / 4,
    i64::MAX - 1,
    i64::MAX,
    i64::MIN,
    i64::MIN + 1,
];

fn kernel(place: &str, index: &str) -> String {
    format!(
        "kernel k(p: in i64[1], x: in f32[16, 8], y: inout f32[16, 8], z: inout i32[16, 8]) {{
            let n = index(p[0]);
            let t = tile Vec<f32, 16, 8>;
            TLOAD(t, x);
            {}
        }}",
        place.replace('#', &format!("({index})"))
    )
}

fn arguments(n: i64) -> [Tensor; 4] {
    let floats = |seed| noise(DType::F32, &[16, 8], Content::Tame, seed);
    let p = Tensor::from_slice(&[1], &[n]).expect("one number");
    [p, floats(1), floats(2), noise(DType::I32, &[16, 8], Content::Tame, 3)]
}

/// Machine code's message as it is told: the check's text has the numbers that stand behind it.
fn filled(message: &str) -> String {
    let Some((text, numbers)) = message.strip_suffix(']').and_then(|m| m.rsplit_once(" [")) else {
        return message.to_owned();
    };
    match numbers.split(", ").map(str::parse).collect::<Result<Vec<i64>, _>>() {
        Ok(numbers) => ptoc_ir::indexed::filled(text, &numbers),
        Err(_) => message.to_owned(),
    }
}

/// The code alone: what the interpreter and the lowering's own checks say of an index is worded by each, but for
/// indices of gathers and scatters, which have one wording.
fn end(of: &Result<Vec<Tensor>, Stop>) -> Result<Vec<Vec<u8>>, String> {
    match of {
        Ok(tensors) => Ok(tensors.iter().map(|t| t.bytes().to_vec()).collect()),
        Err((code, message)) if code == "PA-1042" => Err(format!("{code}: {}", filled(message))),
        Err((code, _)) => Err(code.clone()),
    }
}

fn compare(built: &Built, n: i64, what: &str) {
    let args = arguments(n);
    let want = built.interpret(&[], &args);
    for threads in [1, 2] {
        let got = built.execute_guarded(&[], &args, threads);
        assert!(
            end(&want) == end(&got),
            "{what}, n = {n}, {threads} threads: interp {:?}, cpu {:?}",
            want.as_ref().err(),
            got.as_ref().err()
        );
    }
}

#[test]
fn hostile_indices_end_alike() {
    let (mut built_kernels, mut refused) = (0, Vec::new());
    for (place, text) in PLACES {
        for form in FORMS {
            let source = kernel(text, form);
            let built = match build(&source, "a2a3", &[], &[]) {
                Ok(built) => built,
                Err(Refused { codes, text }) => {
                    refused.push(format!("{place}, {form}: {codes:?}\n{text}"));
                    continue;
                }
            };
            built_kernels += 1;
            for &n in NUMBERS {
                compare(&built, n, &format!("{place}, `{form}`"));
            }
        }
    }
    assert!(refused.is_empty(), "{}", refused.join("\n"));
    assert_eq!(built_kernels, PLACES.len() * FORMS.len());
}

/// Constants are decided when the kernel is compiled, or end as on the interpreter.
#[test]
fn hostile_constants() {
    for (place, text) in PLACES {
        for n in [0, 15, 16, -1, i64::MAX, i64::MIN + 1] {
            match build(&kernel(text, &n.to_string()), "a2a3", &[], &[]) {
                Ok(built) => compare(&built, 0, &format!("{place}, constant {n}")),
                Err(refused) => assert!(n != 0 || !refused.codes.is_empty(), "{place}: {refused:?}"),
            }
        }
    }
}

/// Every instruction of the table that takes an index operand is among the places, or names here why it is not.
#[test]
fn index_operands_are_covered() {
    // Sizes and counts: constants at compile time, or numbers that no address is made of.
    let elsewhere = ["TMRGSORT", "TCI", "TRANDOM", "THISTOGRAM", "TIMG2COL"];
    for id in ptoc_isa::InstrId::all() {
        let instr = id.get();
        if !instr.operands.iter().any(|o| matches!(o.kind, OperandKind::Index)) {
            continue;
        }
        let name = instr.written_name();
        let base = name.split('_').next().unwrap_or(name);
        let covered = PLACES.iter().any(|(_, text)| text.contains(&format!("{base}(")));
        assert!(covered || elsewhere.contains(&base), "{name} takes an index and stands at no place");
    }
}

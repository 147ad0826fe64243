//! Round trips: the tile IR of a kernel, and that of the PTO text that is written of it. The two are equal but for what
//! text has no words for; `spec/pto.md` says what that is.
//!
//! Compared is a canonical form of both (`canonical.rs`). Left out: names, places, run-time checks and `ensures`; the
//! number of stages of a pipeline, which the text leaves to who places the tiles; the order of blocks; which tiles were
//! hidden; `inout` of an array that is only stored to. Scalars are compared as expressions, those of type `index` as
//! sums of products, variables as values that loops carry, so definitions that nothing uses and the order of
//! independent ones do not count.

mod bytes;
mod canonical;
mod expr;
mod renumbered;
mod tree;

use crate::pto::{kernels_of, others, written};
use canonical::{canonical, canonical_by_place};
use ptoc_driver::session::Session;
use ptoc_driver::stages::{Level, Stage, text_of};
use std::path::Path;

/// Tile IR of a kernel of a text at a stage, or the first error.
fn ir(path: &Path, text: String, kernel: Option<&str>, target: &str, stage: Stage) -> Result<String, String> {
    let mut session = Session::new(target, &[]).expect("a target");
    let unit = session.load_text(path, text);
    let made = match unit.entry(kernel, "emit") {
        Ok(entry) => text_of(&mut session, &unit, &entry, stage, Vec::new()).ok(),
        Err(_) => None,
    };
    let error = session.diagnostics.iter().find(|d| d.is_error());
    match (made, error) {
        (Some(text), None) => Ok(text),
        (_, error) => Err(error.map_or("nothing was made".into(), |d| format!("{} {}", d.code, d.message))),
    }
}

/// What becomes of a kernel at a level.
fn fate(path: &Path, name: &str, text: &str, level: Level) -> String {
    let target = ["a2a3", "a5"]
        .into_iter()
        .map(|target| (target, written(path, text.to_owned(), Some(name), target, level)))
        .reduce(|first, second| if first.1.is_ok() { first } else { second });
    let Some((target, made)) = target else { return String::new() };
    let pto = match made {
        Ok(text) => text,
        Err(why) => return format!("not said: {why}"),
    };
    // At level 3 the text has the addresses of the plan and the flags of the proof.
    let stage = if level == Level::Explicit { Stage::Sync } else { Stage::Ir };
    // The first tile of an array and number 0 of it are one.
    let first_of = |line: String| line.replace(">#0[", ">[");
    let form = |ir: &str| match level {
        Level::Automatic | Level::Placed => canonical(ir),
        Level::Explicit => canonical_by_place(&bytes::by_bytes(ir)).into_iter().map(first_of).collect(),
    };
    let first = ir(path, text.to_owned(), Some(name), target, stage).expect("it was written");
    let other_names = renumbered::renumbered(&pto);
    match ir(Path::new("read.pto"), pto, None, target, stage) {
        Err(why) => format!("not read: {why}"),
        // Nor does text of level 2 say in which tile an instruction works.
        Ok(_) if level == Level::Automatic && text.contains("tmp = ") => "equal but for `tmp`".into(),
        Ok(second) => {
            let (a, b) = (form(&first), form(&second));
            // Values as MLIR numbers them: names are used again in regions that do not see each other.
            let b = match ir(Path::new("renumbered.pto"), other_names, None, target, stage) {
                Err(why) => return format!("renumbered, not read: {why}"),
                Ok(third) if a == b => form(&third),
                Ok(_) => b,
            };
            if a == b {
                return "equal".into();
            }
            let at = a.iter().zip(&b).position(|(a, b)| a != b).unwrap_or(a.len().min(b.len()));
            let line = |lines: &[String]| lines.get(at).cloned().unwrap_or_else(|| "the end".into());
            format!("differs: `{}`, read `{}`", line(&a), line(&b))
        }
    }
}

#[test]
fn what_is_read_has_the_ir_of_what_was_written() {
    round_trip(Level::Automatic, 53);
}

/// At level 3 flags and addresses are compared, too: also of kernels whose author orders the pipes.
#[test]
fn what_is_read_has_the_bytes_and_flags_of_what_was_written() {
    round_trip(Level::Explicit, 54);
}

fn round_trip(level: Level, least: usize) {
    let examples = kernels_of(Path::new("../examples"));
    let examples_count = examples.len();
    let mut table = String::new();
    for (path, name, text) in examples.into_iter().chain(others()) {
        let file = path.file_name().expect("a name").to_string_lossy();
        table += &format!("{file} {name}: {}\n", fate(&path, &name, &text, level));
    }
    if let Some(to) = std::env::var_os("PTO_ROUND_TABLE") {
        let to = format!("{}.{level:?}", to.to_string_lossy());
        std::fs::write(to, &table).expect("writable");
    }
    let known = |l: &str| [": equal", ": not said: "].iter().any(|w| l.contains(w));
    let unequal: Vec<&str> = table.lines().filter(|l| !known(l)).collect();
    assert!(unequal.is_empty(), "{}", unequal.join("\n"));
    // What is said less often than before is a step back.
    let said = table.lines().take(examples_count).filter(|l| l.ends_with(": equal")).count();
    assert!(said >= least, "{said} of the examples can be said\n{table}");
}

/// Tiles of arrays whose numbers a loop knows: two at once, columns with their rows, and where a part is valid.
#[test]
fn tiles_that_a_loop_numbers() {
    const TEXT: &str = "\
kernel two(x: in f32[A, 64], y: out f32[A, 64], n: index)
    where n >= 1
{
    grid (i in tiles(A, 16));
    let p = tile Vec<f32, 16, 64>[2];
    p[0] = 1.0;
    p[1] = 2.0;
    let r = tile Vec<f32, 16, 64>;
    r = 0.0;
    for k in 0..n {
        TADD(r, p[k % 2], p[(k + 1) % 2]);
        TMULS(p[k % 2], r, 0.5);
    }
    TADD(r, r, p[0]);
    TSTORE(y.tile(i, _), r.valid(i, 64));
}
kernel columns(x: in f32[M, N], y: out f32[M])
{
    grid (i in tiles(M, 16));
    let acc = tile Vec<f32, i, 1>[2];
    acc[0] = 0.0;
    acc[1] = 1.0;
    for j in tiles(N, 64) {
        let b = j.index % 2;
        acc[b] = acc[b] * 0.5 + rowsum(Vec(x.tile(i, j)));
    }
    TSTORE(col(y).tile(i, _), acc[0] - 3.0 * acc[1]);
}
kernel parts(x: in f32[A, B], y: out f32[A, B])
{
    let p = tile Vec<f32, 16, 32>[2];
    for i in tiles(A, 16) {
        for j in tiles(B, 32) {
            let b = j.index % 2;
            let t = p[b].valid(i, j);
            let u = p[1 - b].valid(i, j);
            TLOAD(t, x.tile(i, j));
            TMULS(u, t, 2.0);
            TSTORE(y.tile(i, j), u);
        }
    }
}
";
    for (name, target) in ["two", "columns", "parts"].into_iter().flat_map(|n| [(n, "a2a3"), (n, "a5")]) {
        let path = Path::new("k.tile");
        let pto = written(path, TEXT.into(), Some(name), target, Level::Explicit).expect("it can be said");
        // Each handle is bound once: `pto.tassign` binds the tile itself.
        let bound: Vec<&str> = pto.lines().filter_map(|l| l.split("pto.tassign ").nth(1)?.split(',').next()).collect();
        let distinct: std::collections::BTreeSet<&&str> = bound.iter().collect();
        assert!(bound.len() > 1 && distinct.len() == bound.len(), "{pto}");
        assert_eq!(fate(path, name, TEXT, Level::Explicit), "equal", "{name}\n{pto}");
    }
}

/// A number below 0 is below 0 as an index: only numbers without a sign are extended by zeros.
#[test]
fn signs_are_extended() {
    let text = |ty: &str| {
        let kernel = format!(
            "kernel k(x: inout f32[64, 64], f: {ty}) {{\n    grid (s in 0..1);\n    \
             let t = Vec(x.tile(tiles(64, 64)[0], tiles(64, 64)[0]));\n    \
             x[index(f) + 5, 0] = t[0, 0];\n}}\n"
        );
        written(Path::new("k.tile"), kernel, None, "a2a3", Level::Automatic).expect("it can be said")
    };
    assert!(!text("i32").contains("extui"), "{}", text("i32"));
    assert!(text("u32").contains("extui"), "{}", text("u32"));
    assert!(text("bool").contains("extui"), "{}", text("bool"));
    // 64 bits are all that an index has.
    assert!(!text("u64").contains("extui") && text("u64").contains("%f : i64 to index"), "{}", text("u64"));
}

/// What is compared tells kernels apart.
#[test]
fn what_is_not_equal_is_told() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/gemm.tile");
    let text = std::fs::read_to_string(&path).expect("readable");
    let made = ir(&path, text, Some("gemm"), "a2a3", Stage::Ir).expect("it is made");
    let own = canonical(&made);
    assert_eq!(own, canonical(&made.replace("hidden", "")));
    let changes = [
        ("tmatmul_acc", "tmatmul"),
        ("const 31", "const 30"),
        (" in v", " in 1.. v"),
        ("Left<", "Right<"),
        (" f16 [", " f32 ["),
        ("for l0", "while l0"),
    ];
    for (from, to) in changes {
        let other = made.replace(from, to);
        assert!(other == made || canonical(&other) != own, "{from}: {to}");
    }
    assert!(changes.iter().filter(|(from, _)| made.contains(from)).count() >= 4, "{made}");
}

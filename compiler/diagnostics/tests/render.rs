//! What diagnostics look like.

use proptest::prelude::*;
use ptoc_diagnostics::{Diagnostic, Edit, FileId, SourceMap, Span, codes, render};

const ADD: &str = "\
/// Adds.
kernel add(a: in f32[M, N], b: in f32[M, N], c: out f32[M, N])
{
    grid (i in tiles(M, 16), j in tiles(N, 64));
    let x, y, z = tile Vec<f32, i, j>;
    TASSIGN(x, 0x0000);  TASSIGN(y, 0x8000);  TASSIGN(z, 0x2000);
    TLOAD(x, a.tile(i, j));  TLOAD(y, b.tile(i, j));
    TADD(z, x, y);
    TSTORE(c.tile(i, j), z);
}
";

/// The span of the `nth` occurrence of `what`.
fn nth(sources: &SourceMap, file: FileId, what: &str, nth: usize) -> Span {
    let (at, _) = sources.text(file).match_indices(what).nth(nth).unwrap_or_else(|| panic!("no `{what}`"));
    Span::new(file, at as u32, (at + what.len()) as u32)
}

fn first(sources: &SourceMap, file: FileId, what: &str) -> Span {
    nth(sources, file, what, 0)
}

fn add() -> (SourceMap, FileId) {
    let mut sources = SourceMap::new();
    let file = sources.add("examples/add.tile", ADD);
    (sources, file)
}

fn error(span: Span, message: &str) -> Diagnostic {
    Diagnostic::error(codes::UNEXPECTED_TOKEN, span, message)
}

fn show(diagnostic: &Diagnostic, sources: &SourceMap) -> String {
    render::terminal(diagnostic, sources, false, 100)
}

#[test]
fn one_label() {
    let (sources, file) = add();
    let bare = error(first(&sources, file, "TADD"), "something is wrong here");
    insta::assert_snapshot!("bare", show(&bare, &sources));
    let labelled = bare.with_label("expected a name");
    insta::assert_snapshot!("labelled", show(&labelled, &sources));
}

#[test]
fn everything_at_once() {
    let (sources, file) = add();
    let diagnostic = error(first(&sources, file, "TASSIGN(y, 0x8000)"), "tile `y` does not fit the rest of Vec")
        .with_label("0x8000 + 4096 = 36864 > 32768")
        .with_secondary(first(&sources, file, "y, z = tile"), "`y` takes 16 x 64 x 4 = 4096 bytes")
        .with_secondary(first(&sources, file, "0x2000"), "`z` is at 8192..12288")
        .with_note("Vec has 32768 bytes on a2a3")
        .with_note(
            "live at this point are `x` (4096 bytes at 0x0000), `y` (4096 bytes at 0x8000) and `z` (4096 bytes at \
             0x2000), which is 12288 bytes in all; 20480 bytes are free",
        )
        .with_fix("move `y` to 0x1000", first(&sources, file, "0x8000"), "0x1000")
        .with_help("or leave the TASSIGN out: placement is then automatic");
    insta::assert_snapshot!("everything", show(&diagnostic, &sources));
    insta::assert_snapshot!(
        "everything_in_colour",
        render::terminal(&diagnostic, &sources, true, 100).replace('\x1b', "␛")
    );
    insta::assert_snapshot!("everything_narrow", render::terminal(&diagnostic, &sources, false, 50));
    let json = render::json(&diagnostic, &sources);
    assert!(!json.contains('\n'));
    let value: serde_json::Value = serde_json::from_str(&json).unwrap();
    insta::assert_snapshot!("everything_json", serde_json::to_string_pretty(&value).unwrap());
}

#[test]
fn several_labels_on_one_line() {
    let (sources, file) = add();
    let sum = first(&sources, file, "TADD(z, x, y)");
    let operand = |at: u32| Span::new(file, sum.start + at, sum.start + at + 1);
    let diagnostic = error(operand(11), "the dtypes of a sum differ")
        .with_label("this is f16")
        .with_secondary(sum, "in this instruction")
        .with_secondary(operand(5), "this is f32")
        .with_secondary(operand(8), "this is f32 too");
    insta::assert_snapshot!("one_line", show(&diagnostic, &sources));
    let same = first(&sources, file, "TADD");
    let diagnostic =
        error(same, "one place").with_label("first").with_secondary(same, "second").with_secondary(same, "");
    insta::assert_snapshot!("one_place", show(&diagnostic, &sources));
}

#[test]
fn spans_over_several_lines() {
    let (sources, file) = add();
    let body = first(&sources, file, "{\n").to(first(&sources, file, "}\n"));
    let diagnostic = error(body, "the body never writes `d`").with_label("no TSTORE to `d` in here");
    insta::assert_snapshot!("multi_line", show(&diagnostic, &sources));
    let loads = first(&sources, file, "TLOAD(x").to(first(&sources, file, "TADD(z, x, y);"));
    let diagnostic = error(first(&sources, file, "TSTORE"), "not ordered")
        .with_label("reads `z`")
        .with_secondary(loads, "these write it")
        .with_secondary(body, "in this body")
        .with_secondary(first(&sources, file, "i in tiles"), "for each block");
    insta::assert_snapshot!("multi_line_and_others", show(&diagnostic, &sources));
    let neighbours = first(&sources, file, "TADD(z").to(first(&sources, file, "TSTORE"));
    insta::assert_snapshot!("two_lines", show(&error(neighbours, "a pair").with_label("both"), &sources));
}

#[test]
fn ends_of_files_and_lines() {
    let (mut sources, file) = add();
    let end = Span::new(file, ADD.len() as u32, ADD.len() as u32);
    insta::assert_snapshot!("end_of_file", show(&error(end, "expected `}`").with_label("the file ends"), &sources));
    let line_end = first(&sources, file, "TADD(z, x, y)").after();
    let diagnostic = error(line_end, "expected `;`").with_label("expected `;`").with_fix("insert `;`", line_end, ";");
    insta::assert_snapshot!("insertion_point", show(&diagnostic, &sources));
    let last = first(&sources, file, "{\n");
    insta::assert_snapshot!("with_line_break", show(&error(last, "an odd span").with_label("this line"), &sources));
    let no_break = sources.add("short.tile", "kernel k(");
    let end = Span::new(no_break, 9, 9);
    insta::assert_snapshot!("end_without_break", show(&error(end, "expected `)`").with_label("after this"), &sources));
    let empty = sources.add("empty.tile", "");
    insta::assert_snapshot!("empty_file", show(&error(Span::new(empty, 0, 0), "no kernel in this file"), &sources));
    insta::assert_snapshot!("out_of_range", show(&error(Span::new(FileId(9), 5, 7), "nowhere"), &sources));
}

#[test]
fn two_files() {
    let (mut sources, file) = add();
    let lib = sources.add("stdlib/scan.tile", "\n\nfn scan(x) {\n    x\n}\n");
    let diagnostic = error(first(&sources, file, "TADD(z, x, y)"), "`scan` takes one argument, got 3")
        .with_label("3 given")
        .with_secondary(first(&sources, lib, "scan(x)"), "declared here")
        .with_secondary(first(&sources, file, "x, y, z"), "these")
        .with_fix("add the parameters", first(&sources, lib, "(x)"), "(x, y, z)");
    insta::assert_snapshot!("two_files", show(&diagnostic, &sources));
    let back = error(first(&sources, lib, "scan"), "unused").with_secondary(first(&sources, file, "z"), "");
    insta::assert_snapshot!("two_files_reversed", show(&back, &sources));
}

#[test]
fn characters_of_every_kind() {
    let mut sources = SourceMap::new();
    let text = "let a\t= 1;\t// tab\r\nlet 漢字 = \"🦀🦀\" + é + x;\r\nlet\u{b} b = \u{202e}c\u{1b}[31m;\u{2028} d\n";
    let file = sources.add("odd\u{1b}[0m.tile", text);
    let tab = error(first(&sources, file, "1;"), "behind a tab").with_label("here");
    insta::assert_snapshot!("tab", show(&tab, &sources));
    let wide = error(nth(&sources, file, "x", 0), "behind wide characters")
        .with_label("x")
        .with_secondary(first(&sources, file, "漢字"), "CJK")
        .with_secondary(first(&sources, file, "🦀🦀"), "crabs");
    insta::assert_snapshot!("wide", show(&wide, &sources));
    let control = error(first(&sources, file, " d"), "control \u{1b}[31m characters\nand a line").with_label("a\tb\nc");
    insta::assert_snapshot!("control", show(&control, &sources));
}

#[test]
fn very_long_lines() {
    let mut sources = SourceMap::new();
    let text = format!("let a = {}WRONG{} + OTHER;\nlet b = 2;\n", "x + ".repeat(200), " + y".repeat(200));
    let file = sources.add("long.tile", text);
    let diagnostic = error(first(&sources, file, "WRONG"), "far to the right").with_label("this");
    insta::assert_snapshot!("long_line", show(&diagnostic, &sources));
    let diagnostic = diagnostic.with_secondary(first(&sources, file, "OTHER"), "and this").with_fix(
        "rename it",
        first(&sources, file, "WRONG"),
        "RIGHT",
    );
    insta::assert_snapshot!("long_line_two_labels", show(&diagnostic, &sources));
    let whole = error(first(&sources, file, "x + ").to(first(&sources, file, "OTHER")), "all of it").with_label("this");
    insta::assert_snapshot!("long_label", show(&whole, &sources));
}

#[test]
fn fixes_of_every_shape() {
    let (sources, file) = add();
    let at = first(&sources, file, "TADD(z, x, y);");
    let line_before = first(&sources, file, "    TADD");
    let line_before = Span::new(file, line_before.start, line_before.start);
    let whole_line = Span::new(file, line_before.start, at.end + 1);
    let insert = |text: &str| Edit { span: line_before, text: text.to_string() };
    let diagnostic = error(at, "fixes")
        .with_label("here")
        .with_fix("insert a line", line_before, "    wait(full);\n")
        .with_fix("delete the line", whole_line, "")
        .with_edits(
            "wrap it",
            vec![insert("    if k.first {\n"), Edit { span: at.after(), text: "\n    }".to_string() }],
        )
        .with_edits(
            "swap two",
            vec![
                Edit { span: first(&sources, file, "M, 16"), text: "N, 16".to_string() },
                Edit { span: first(&sources, file, "N, 64"), text: "M, 64".to_string() },
                Edit { span: first(&sources, file, "TSTORE"), text: "TSTORE_NZ".to_string() },
            ],
        )
        .with_fix("replace much", Span::new(file, 0, ADD.len() as u32), "kernel add() {}\n")
        .with_edits("overlapping", vec![Edit { span: at, text: "A".into() }, Edit { span: at, text: "B".into() }]);
    insta::assert_snapshot!("fixes", show(&diagnostic, &sources));
}

#[test]
fn without_a_place() {
    let sources = SourceMap::new();
    let mut diagnostic =
        Diagnostic::global(codes::NPY_DTYPE, "`A` cannot be read from a.npy: the elements are `<f8` (float64)")
            .with_note("the kernel declares `A: in f32[M, K]`")
            .with_help("save `x.astype(np.float32)` instead");
    insta::assert_snapshot!("global", show(&diagnostic, &sources));
    diagnostic.severity = ptoc_diagnostics::Severity::Note;
    assert!(show(&diagnostic, &sources).starts_with("note[E0705]: "));
    insta::assert_snapshot!("global_json", render::json(&diagnostic, &sources));
}

#[test]
fn warnings_are_named_so() {
    let (sources, file) = add();
    let warning = Diagnostic::warning(codes::UNEXPECTED_TOKEN, first(&sources, file, "grid"), "odd");
    assert!(show(&warning, &sources).starts_with("warning[E0001]: odd\n"));
    assert!(render::json(&warning, &sources).starts_with(r#"{"code":"E0001","severity":"warning","message":"odd","#));
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: ptoc_tests_budget::cases(130, 400),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]
    #[test]
    fn nothing_panics_and_json_is_one_line(
        texts in prop::collection::vec("([ -~]|[\t\r\n\u{b}\u{85}\u{2028}é漢🦀\u{301}\u{1b}\u{1}]){0,60}", 0..3),
        places in prop::collection::vec((0u32..4, 0u32..130, 0u32..130), 0..6),
        message in "([ -~]|[\n\u{1}漢]){0,30}",
        color: bool,
        width in 0usize..130,
    ) {
        let mut sources = SourceMap::new();
        for (i, text) in texts.iter().enumerate() {
            sources.add(format!("file{i}"), text.as_str());
        }
        let mut spans = places.iter().map(|&(file, start, end)| Span { file: FileId(file), start, end });
        let mut diagnostic = match spans.next() {
            Some(span) => error(span, &message),
            None => Diagnostic::global(codes::UNEXPECTED_TOKEN, &message),
        };
        for span in spans {
            diagnostic = diagnostic.with_secondary(span, &message);
            diagnostic = diagnostic.with_fix(&message, span, &message).with_note(&message);
        }
        let text = render::terminal(&diagnostic, &sources, color, width);
        let header = if color { "\x1b[1;31merror" } else { "error[E0001]:" };
        prop_assert!(text.starts_with(header));
        prop_assert!(text.ends_with('\n'));
        prop_assert!(color || !text.contains('\x1b'));
        prop_assert_eq!(&text, &render::terminal(&diagnostic, &sources, color, width));
        prop_assert_eq!(render::json(&diagnostic, &sources).lines().count(), 1);
    }
}

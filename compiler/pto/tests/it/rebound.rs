//! `pto.tassign` of tiles: handles that are bound to another address, elements of arrays, rows that are columns.

use ptoc_diagnostics::FileId;

const TILE: &str = "!pto.tile_buf<vec, 16x16xf32>";

/// A function that allocates `%t` and `%u`, with these lines.
fn function(lines: &[String]) -> String {
    let lines: String = lines.iter().map(|l| format!("    {l}\n")).collect();
    format!(
        "module {{\n  func.func @f(%n: index, %b: i1, %f: f32) {{\n    \
         %c0 = arith.constant 0 : index\n    %c1 = arith.constant 1 : index\n    %a0 = arith.constant 0 : i64\n    \
         %a1 = arith.constant 1024 : i64\n    %a2 = arith.constant 2048 : i64\n    \
         %t = pto.alloc_tile addr = %a0 : {TILE}\n    %u = pto.alloc_tile addr = %a1 : {TILE}\n{lines}    return\n  \
         }}\n}}\n"
    )
}

/// The source of a text, or its errors.
fn read(text: &str) -> Result<String, Vec<String>> {
    let (reading, found) = ptoc_pto::translate(FileId(0), text, &|_| false, &[]);
    match reading {
        Some(reading) => Ok(reading.source.text),
        None => Err(found.iter().map(|d| format!("{} {}", d.code, d.message)).collect()),
    }
}

fn bind(result: &str, tile: &str, to: &str) -> String {
    format!("%{result} = pto.tassign %{tile}, %{to} : {TILE} -> {TILE}")
}

fn fill(tile: &str) -> String {
    format!("pto.texpands ins(%f : f32) outs(%{tile} : {TILE})")
}

fn lines(of: &[&[String]]) -> Vec<String> {
    of.iter().flat_map(|l| l.iter().cloned()).collect()
}

fn looped(body: &[String]) -> Vec<String> {
    lines(&[&["scf.for %i = %c0 to %n step %c1 {".into()], body, &["}".into()]])
}

fn branch(body: &[String]) -> Vec<String> {
    lines(&[&["scf.if %b {".into()], body, &["}".into()]])
}

/// `pto.tassign` binds the tile itself: behind it all its names have the new address, and the newest one is read.
#[test]
fn a_tile_that_is_bound_is_used_by_its_newest_name() {
    let (r, s) = (bind("r", "t", "a1"), bind("s", "t", "a2"));
    let stale = "E1404 `%t` is used, and `pto.tassign` binds it to another address";
    let fine = [
        vec![fill("t"), r.clone(), fill("r")],
        vec![r.clone(), fill("r"), s.clone(), fill("s")],
        vec![r.clone(), bind("s", "r", "a2"), fill("s")],
        lines(&[&[fill("t")], &looped(&[r.clone(), fill("r")])]),
        looped(&[format!("%w = pto.alloc_tile addr = %a0 : {TILE}"), fill("w"), bind("r", "w", "a1"), fill("r")]),
        lines(&[&branch(&[r.clone(), fill("r")]), &[s.clone(), fill("s")]]),
    ];
    for lines in fine {
        let text = function(&lines);
        assert!(read(&text).is_ok(), "{:?}\n{text}", read(&text));
    }
    let wrong = [
        vec![r.clone(), fill("t")],
        // The result is the same tile, and `%s` has bound it anew.
        vec![r.clone(), s.clone(), fill("r")],
        vec![r.clone(), bind("s", "r", "a2"), fill("r")],
        lines(&[&looped(&[r.clone(), fill("r")]), &[fill("t")]]),
        // In the second iteration it is bound.
        looped(&[fill("t"), r.clone(), fill("r")]),
        lines(&[&branch(&[r.clone(), fill("r")]), &[fill("t")]]),
        branch(&[r.clone(), fill("t")]),
    ];
    for lines in wrong {
        let text = function(&lines);
        let errors = read(&text).expect_err(&text);
        assert_eq!(errors.len(), 1, "{errors:?}");
        assert!([stale, &stale.replace("%t", "%r")].contains(&errors[0].as_str()), "{errors:?}\n{text}");
    }
}

/// What is valid changes of a tile that is allocated, or of a view of one.
#[test]
fn what_is_valid_changes_of_allocated_tiles() {
    const T: &str = "!pto.tile_buf<vec, 16x16xf32, valid=?x?>";
    let alloc = format!("%w = pto.alloc_tile addr = %a0 valid_row = %n valid_col = %n : {T}");
    let set = |of: &str| format!("pto.set_validshape %{of}, %c1, %c1 : {T}");
    let bound = format!("%r = pto.tassign %w, %a1 : {T} -> {T}");
    let view = |of: &str| format!("%x = pto.treshape %{of} : {T} -> {T}");
    for fine in [vec![alloc.clone(), set("w")], vec![alloc.clone(), view("w"), set("x")]] {
        assert!(read(&function(&fine)).is_ok(), "{:?}", read(&function(&fine)));
    }
    for (wrong, name) in
        [(vec![alloc.clone(), bound.clone(), set("r")], "r"), (vec![alloc, bound, view("r"), set("x")], "x")]
    {
        let message = format!("E1403 `%{name}` is not allocated here: what is valid of it cannot be changed");
        assert_eq!(read(&function(&wrong)), Err(vec![message]));
    }
}

/// The number of an element, as the text computes its address.
fn address(first: &str, step: &str) -> Vec<String> {
    vec![
        "%e = arith.index_cast %i : index to i64".into(),
        format!("%k = arith.muli %e, %{step} : i64"),
        format!("%at = arith.addi %k, %{first} : i64"),
    ]
}

/// An array goes up to where its handle is allocated, whatever stands behind it. Without a handle of its own it is what
/// is allocated at its addresses, under whatever names.
#[test]
fn arrays_have_as_many_tiles_as_their_handles_say() {
    let third = format!("%other = pto.alloc_tile addr = %a2 : {TILE}");
    let used = [fill("t"), fill("u"), third, fill("other")];
    let handle = format!("%h = pto.alloc_tile addr = %a1 : {TILE}");
    let element = lines(&[&address("a0", "a1"), &[handle, bind("r", "h", "at"), fill("r")]]);
    let text = function(&lines(&[&used, &looped(&element)]));
    let source = read(&text).expect("it is read");
    assert!(source.contains("[2] at [0x0, 0x400];") && source.contains("TEXPANDS(t[i], f);"), "{source}");
    assert!(source.contains("at 0x800;") && !source.contains("TASSIGN"), "{source}");
    // The tile at the first address is bound itself.
    let element = lines(&[&address("a0", "a1"), &[bind("r", "t", "at"), fill("r")]]);
    let text = function(&lines(&[&used[1..2], &looped(&element)]));
    let source = read(&text).expect("it is read");
    assert!(source.contains("[2] at [0x0, 0x400];") && source.contains("[i], f);"), "{source}");
    assert_eq!(read(&text.replace("%u", "%any")).map(|s| s.matches("[i], f);").count()), Ok(1));
}

/// Of a column that is bound, the row is a tile of its own at the same address, of which as much is valid.
#[test]
fn rows_of_columns_that_are_bound() {
    const COLUMN: &str = "!pto.tile_buf<vec, 16x1xf32, valid=?x1, blayout=col_major>";
    const ROW: &str = "!pto.tile_buf<vec, 1x16xf32, valid=?x?>";
    let element = |valid: &str, more: &str| {
        let mut all = address("a0", "a1");
        all.extend([
            format!("%h = pto.alloc_tile addr = %a1 valid_row = %n : {COLUMN}"),
            format!("%c = pto.tassign %h, %at : {COLUMN} -> {COLUMN}"),
            format!("%g = pto.alloc_tile addr = %a1 valid_row = %c1 valid_col = %{valid} : {ROW}"),
            format!("%r = pto.tassign %g, %at : {ROW} -> {ROW}"),
            format!("pto.tadds ins(%r, %f : {ROW}, f32) outs(%r : {ROW})"),
            more.replace("ROW", ROW),
        ]);
        let columns = ["a0", "a1"].map(|a| format!("%c{a} = pto.alloc_tile addr = %{a} valid_row = %n : {COLUMN}"));
        let text = function(&lines(&[&columns, &looped(&all)]));
        read(&text.replace("    \n", "")).expect("it is read")
    };
    let source = element("n", "");
    assert!(source.contains("[2] at [0x0, 0x400];") && source.contains("[i].valid(n, 1), "), "{source}");
    assert!(!source.contains("1, 16"), "{source}");
    // Another part is valid, or something else asks for the row: it is a row.
    for source in [element("i", ""), element("n", "pto.tprint ins(%r : ROW)")] {
        assert!(source.contains("1, 16"), "{source}");
    }
}

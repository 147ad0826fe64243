//! Texts that are parsed, printed and translated.

use ptoc_diagnostics::FileId;
use ptoc_pto::{parse, print, read, verify};

/// The texts of this folder.
pub fn all() -> Vec<(&'static str, &'static str)> {
    vec![
        ("forms", include_str!("texts/forms.pto")),
        ("control", include_str!("texts/control.pto")),
        ("row_scale", include_str!("texts/row_scale.pto")),
        ("cores", include_str!("texts/cores.pto")),
        ("values", include_str!("texts/values.pto")),
        ("masks", include_str!("texts/masks.pto")),
        ("numbers", include_str!("texts/numbers.pto")),
        ("arrays", include_str!("texts/arrays.pto")),
        ("events", include_str!("texts/events.pto")),
        ("calls", include_str!("texts/calls.pto")),
        ("columns", include_str!("texts/columns.pto")),
        ("bound", include_str!("texts/bound.pto")),
    ]
}

#[test]
fn what_is_printed_is_read_as_the_same_text() {
    for (name, text) in all() {
        let first = parse(FileId(0), text);
        assert!(first.diagnostics.is_empty(), "{name}: {:?}", first.diagnostics);
        let found = verify::check(&first.module);
        assert!(found.is_empty(), "{name}: {found:?}");
        let once = print(&first.module);
        let second = parse(FileId(0), &once);
        assert!(second.diagnostics.is_empty(), "{name}: {:?}\n{once}", second.diagnostics);
        assert_eq!(print(&second.module), once, "{name}");
        // These are written as they are printed.
        assert_eq!(once, text, "{name}");
    }
}

#[test]
fn kernels_that_are_read() {
    for name in ["control", "row_scale", "values", "masks", "numbers", "events", "calls", "columns", "bound"] {
        let text = all().into_iter().find(|(n, _)| *n == name).unwrap().1;
        let reading = read::read(&parse(FileId(0), text).module, &|_| false, &[]);
        assert!(reading.diagnostics.is_empty(), "{name}: {:?}", reading.diagnostics);
        insta::assert_snapshot!(format!("read_{name}"), reading.source.text);
    }
}

#[test]
fn formatting_changes_white_space_alone() {
    let squeezed = |s: &str| s.split_whitespace().collect::<String>();
    for (name, text) in all() {
        let flat: String = text.lines().map(|l| format!("{}\n", l.trim_start())).collect();
        let formatted = ptoc_pto::format::format(&flat);
        assert_eq!(formatted, text, "{name}");
        assert_eq!(squeezed(&formatted), squeezed(&flat), "{name}");
        assert_eq!(ptoc_pto::format::format(&formatted), formatted, "{name}");
    }
}

/// A row that is a view of a column is the column where all of what computes with it is element by element, and as much
/// is valid of both.
#[test]
fn rows_that_are_views_of_columns() {
    let text = all().into_iter().find(|(n, _)| *n == "columns").unwrap().1;
    let copies = |text: &str| {
        let (reading, found) = ptoc_pto::translate(FileId(0), text, &|_| false, &[]);
        match reading {
            Some(reading) => reading.source.text.matches("TRESHAPE").count().to_string(),
            None => found.iter().map(|d| d.code.to_string()).collect(),
        }
    };
    assert_eq!(copies(text), "0");
    // Less is valid of the row than of the column.
    assert_eq!(copies(&text.replace("set_validshape %top_row, %c1, %8", "set_validshape %top_row, %c1, %c7")), "E1404");
    assert_eq!(copies(&text.replace("set_validshape %13, %c1, %8", "set_validshape %13, %8, %c1")), "E1404");
    // The row is stored, too.
    let (at, _) = text.match_indices("      pto.trowmax").next().unwrap();
    let print = "      pto.tprint ins(%top_row : !pto.tile_buf<vec, 1x8xf32, valid=?x?>)\n";
    assert_eq!(copies(&format!("{}{print}{}", &text[..at], &text[at..])), "E1404");
}

/// What a text means in the language's words.
fn meant(text: &str) -> String {
    let (reading, found) = ptoc_pto::translate(FileId(0), text, &|_| false, &[]);
    assert!(found.is_empty(), "{found:?}\n{text}");
    reading.expect("it is read").source.text
}

/// Regions that do not see each other may have values of one name: what is read is that of other names.
#[test]
fn names_that_regions_use_again() {
    const COLUMN: &str = "!pto.tile_buf<vec, 16x1xf32, blayout=col_major>";
    const ROW: &str = "!pto.tile_buf<vec, 1x16xf32>";
    const BLOCK: &str = "!pto.tile_buf<vec, 2x8xf32>";
    let row = |of: &str, name: &str| {
        format!(
            "scf.if %b {{\n%{name} = pto.treshape %{of} : {COLUMN} -> {ROW}\npto.tmuls ins(%{name}, %f : {ROW}, f32) \
             outs(%{name} : {ROW})\n}}\n"
        )
    };
    let filled = |name: &str, ty: &str| {
        format!("scf.if %b {{\n%{name} = pto.alloc_tile : {ty}\npto.texpands ins(%f : f32) outs(%{name} : {ty})\n}}\n")
    };
    let view = |name: &str, then: &str| {
        format!(
            "%{name} = pto.make_tensor_view %x, shape = [%n, %n], strides = [%n, %c1] : \
             !pto.tensor_view<?x?xf32>\n{then}"
        )
    };
    let stored = |name: &str| {
        format!(
            "%q_{name} = pto.partition_view %{name}, offsets = [%c0, %c0], sizes = [%n, %n] : \
             !pto.tensor_view<?x?xf32> -> !pto.partition_tensor_view<16x16xf32>\n\
             pto.tstore ins(%t : !pto.tile_buf<vec, 16x16xf32>) outs(%q_{name} : \
             !pto.partition_tensor_view<16x16xf32>)\n"
        )
    };
    let bound = "pto.tassign %v, %z : !pto.tensor_view<?x?xf32>, !pto.ptr<f32>\n";
    // What is written with the names `l` and `l_2` means the same where both are `l`.
    let cases = [
        row("c", "l") + &filled("l_2", ROW),
        filled("l", ROW) + &row("c", "l_2"),
        row("c", "l") + &row("d", "l_2"),
        row("d", "l") + &row("c", "l_2"),
        format!(
            "scf.if %b {{\n%l = pto.make_tensor_view %x, shape = [%n, %n], strides = [%n, %c1] : \
             !pto.tensor_view<?x?xf32>\n}}\nscf.for %i = %c0 to %n step %c1 {{\n%l_2 = pto.alloc_tile addr = %a : \
             {ROW}\n%r = pto.tassign %l_2, %a : {ROW} -> {ROW}\npto.texpands ins(%f : f32) outs(%r : {ROW})\n}}\n"
        ),
        format!(
            "%k:2 = scf.for %l = %c0 to %n step %c1 iter_args(%p = %c0, %q = %n) -> (index, index) {{\nscf.yield %q, \
             %p : index, index\n}}\nscf.for %l_2 = %c0 to %k#1 step %c1 {{\npto.texpands ins(%f : f32) outs(%d : \
             {COLUMN})\n}}\n"
        )
        .replace("%d", "%t")
        .replace(COLUMN, "!pto.tile_buf<vec, 16x16xf32>"),
    ];
    let whole = |lines: &str| {
        format!(
            "module {{\nfunc.func @f(%x: !pto.ptr<f32>, %z: !pto.ptr<f32>, %n: index, %b: i1, %f: f32) {{\n%a = \
             arith.constant 0 : i64\n%c0 = arith.constant 0 : index\n%c1 = arith.constant 1 : index\n%t = \
             pto.alloc_tile : !pto.tile_buf<vec, 16x16xf32>\n%c = pto.alloc_tile : {COLUMN}\n%d = pto.alloc_tile : \
             {COLUMN}\n{lines}return\n}}\n}}\n"
        )
    };
    for lines in &cases {
        assert!(lines.contains("%l_2"), "{lines}");
        assert_eq!(meant(&whole(&lines.replace("%l_2", "%l"))), meant(&whole(lines)), "{lines}");
    }
    // Another view of the bytes that is seen is no copy, whatever another region calls one that is not seen.
    let block = |of: &str, d: &str, l: &str| {
        format!(
            "%{d} = pto.alloc_tile : {COLUMN}\n%{l} = pto.treshape %{of} : {COLUMN} -> {BLOCK}\npto.texpands ins(%f : \
             f32) outs(%{l} : {BLOCK})\n"
        )
    };
    let print = format!("pto.tprint ins(%c : {COLUMN})\n");
    let text = whole(&format!("scf.if %b {{\n{}}} else {{\n{}}}\n{print}", block("c", "e", "l"), block("e", "e", "l")));
    let (_, found) = ptoc_pto::translate(FileId(0), &text, &|_| false, &[]);
    assert_eq!(found.iter().map(|d| d.code.to_string()).collect::<Vec<_>>(), ["E1404"]);
    // The name of a view behind its `tassign` is none of the text's.
    let text = |other: &str| whole(&(view("v", bound) + &view(other, "") + &stored("v")));
    assert_eq!(meant(&text("v_2")), meant(&text("w")));
    assert!(meant(&text("w")).contains("TSTORE(z"), "{}", meant(&text("w")));
}

/// What the verifier says of `tassign` to an operand of that type.
fn bound(tile: &str, to: &str) -> Vec<String> {
    let text = format!(
        "module {{\n  func.func @f(%t: {tile}, %a: {to}) {{\n    %r = pto.tassign %t, %a : {tile} -> {tile}\n    \
         return\n  }}\n}}\n"
    );
    let mut sources = ptoc_diagnostics::SourceMap::new();
    let file = sources.add("k.pto", text.as_str());
    let parsed = ptoc_pto::parse(file, &text);
    assert!(parsed.diagnostics.is_empty(), "{:?}", parsed.diagnostics);
    let found = ptoc_pto::verify::check(&parsed.module);
    found.iter().map(|d| format!("{} {}", d.code, d.message)).collect()
}

/// Rows 4 to 6 of the founders' table, in the text form: an address operand is an integer, a view is bound to a pointer
/// with its elements, and what is neither has a message of its own.
#[test]
fn operands_of_tassign_have_messages_of_their_own() {
    let (tile, view) = ("!pto.tile_buf<vec, 16x16xf32>", "!pto.tensor_view<16x16xf16>");
    for fine in [(tile, "i64"), (tile, "i32"), (tile, "index"), (view, "!pto.ptr<f16>")] {
        assert_eq!(bound(fine.0, fine.1), [""; 0], "{fine:?}");
    }
    let refused = [
        (tile, "f32", "an integer, and `%a` is an `f32`"),
        (tile, "!pto.ptr<f32>", "`%a` is a pointer into global memory"),
        (view, "!pto.ptr<f32>", "whose elements are `f32`"),
        (view, "i64", "and `%a` is a number"),
        (view, "f32", "bound to a pointer, and `%a` is an `f32`"),
    ];
    let mut all = Vec::new();
    for (bound_to, operand, part) in refused {
        let said = bound(bound_to, operand);
        assert!(said.len() == 1 && said[0].starts_with("E1409 ") && said[0].contains(part), "{said:?}");
        all.extend(said);
    }
    // A constant is another mistake than a number of the launch.
    let constant = format!(
        "module {{\n  func.func @f(%t: {view}) {{\n    %a = arith.constant 4096 : i64\n    %r = pto.tassign %t, %a : \
         {view} -> {view}\n    return\n  }}\n}}\n"
    );
    let parsed = ptoc_pto::parse(FileId(0), &constant);
    let found = ptoc_pto::verify::check(&parsed.module);
    all.extend(found.iter().map(|d| format!("{} {}", d.code, d.message)));
    assert!(all.last().is_some_and(|m| m.starts_with("E1409 ") && m.ends_with("and `%a` is a constant")), "{all:?}");
    let count = all.len();
    all.sort();
    all.dedup();
    assert_eq!(all.len(), count, "each has a message of its own");
}

/// What the verifier says of a function with these lines.
fn verified(lines: &str) -> Vec<String> {
    let text = format!(
        "module {{\n  func.func @f(%v: !pto.tile<16x64xf32>, %t: !pto.tile_buf<vec, 16x64xf32>) {{\n{lines}\n    \
         return\n  }}\n}}\n"
    );
    let mut sources = ptoc_diagnostics::SourceMap::new();
    let file = sources.add("k.pto", text.as_str());
    let parsed = ptoc_pto::parse(file, &text);
    let found = ptoc_pto::verify::check(&parsed.module);
    parsed.diagnostics.iter().chain(&found).map(|d| format!("{} {}", d.code, d.message)).collect()
}

/// A tile that is a value and a buffer are never each other.
#[test]
fn values_and_buffers_cannot_be_exchanged() {
    const VALUE: &str = "!pto.tile<16x64xf32>";
    const BUFFER: &str = "!pto.tile_buf<vec, 16x64xf32>";
    for fine in [
        format!("%r = pto.tabs %v : {VALUE} -> {VALUE}"),
        format!("%r = tabs %v : {VALUE}"),
        format!("pto.tabs ins(%t : {BUFFER}) outs(%t : {BUFFER})"),
    ] {
        assert_eq!(verified(&fine), [""; 0], "{fine}");
    }
    for (wrong, part) in [
        (format!("%r = pto.tabs %t : {BUFFER} -> {VALUE}"), "is about values, and this is a buffer"),
        (format!("%r = pto.tabs %v : {VALUE} -> {BUFFER}"), "is about values, and this is a buffer"),
        (format!("%r = tabs %t : {BUFFER}"), "is about values, and this is a buffer"),
        (format!("pto.tabs ins(%v : {VALUE}) outs(%t : {BUFFER})"), "is about buffers, and this is a value"),
        (format!("%r = pto.tabs %t : {VALUE} -> {VALUE}"), "is a `!pto.tile_buf<vec, 16x64xf32>`, and not a"),
        (format!("pto.tabs ins(%v : {BUFFER}) outs(%t : {BUFFER})"), "is a `!pto.tile<16x64xf32>`, and not a"),
    ] {
        let said = verified(&wrong);
        assert!(said.len() == 1 && said[0].starts_with("E1403 ") && said[0].contains(part), "{wrong}: {said:?}");
    }
}

/// What the reader says of a function with these lines.
fn read_of(lines: &str) -> Vec<String> {
    let text = format!(
        "module {{\n  func.func @f(%x: !pto.ptr<f32>) {{\n    %c0 = arith.constant 0 : index\n    %c1 = \
         arith.constant 1 : index\n    %c16 = arith.constant 16 : index\n    %c64 = arith.constant 64 : index\n    \
         %m = arith.constant -32 : index\n    %v = pto.make_tensor_view %x, shape = [%c16, %c64], strides = [%c64, \
         %c1] : !pto.tensor_view<?x?xf32>\n{lines}\n    return\n  }}\n}}\n"
    );
    let (_, found) = ptoc_pto::translate(FileId(0), &text, &|_| false, &[]);
    found.iter().map(|d| format!("{} {}", d.code, d.message)).collect()
}

/// Numbers that contradict the types beside them, and addresses that are none.
#[test]
fn constants_hold_with_their_types() {
    let part = |offsets: &str, sizes: &str, ty: &str| {
        format!(
            "    %p = pto.partition_view %v, offsets = [{offsets}], sizes = [{sizes}] : !pto.tensor_view<?x?xf32> -> \
             !pto.partition_tensor_view<{ty}xf32>"
        )
    };
    for fine in [part("%c0, %c0", "%c16, %c64", "16x64"), part("%c0, %c0", "%c16, %c16", "?x16")] {
        assert_eq!(read_of(&fine), [""; 0], "{fine}");
    }
    let tile = "%t = pto.alloc_tile addr = %m : !pto.tile_buf<vec, 16x64xf32>";
    let numbers = "%e = pto.declare_eventid_array -> !pto.eventid_array<2>\n%g = pto.eventid_array_get %e[%c16] : \
                   !pto.eventid_array<2>";
    for (wrong, part) in [
        (part("%c0, %c0", "%c16, %c16", "16x64"), "E1403 mode 1 of the part has 16 elements, and 64 in its type"),
        (part("%m, %c0", "%c16, %c64", "16x64"), "E1403 mode 0 of the part begins at -32"),
        (part("%c0, %c0", "%c0, %c64", "?x64"), "E1403 mode 0 of the part has 0 elements"),
        (
            tile.replace("%m", "%a").replacen("%t", "%a = arith.constant -32 : i64\n%t", 1),
            "E1403 an address is not -32",
        ),
        (numbers.to_string(), "E1403 `%e` has 2 numbers, and none is number 16"),
    ] {
        assert_eq!(read_of(&wrong), [part], "{wrong}");
    }
}

/// A part may leave out its type, which its sizes say; `layout` of a transfer says again that rows lie in memory.
#[test]
fn words_that_may_be_left_out() {
    const TILE: &str = "!pto.tile_buf<vec, 16x64xf32>";
    let text = |arrow: &str, used: &str, layout: &str| {
        format!(
            "    %p = pto.partition_view %v, offsets = [%c0, %c0], sizes = [%c16, %c64] : \
             !pto.tensor_view<?x?xf32>{arrow}\n    %t = pto.alloc_tile : {TILE}\n    pto.tload ins(%p : \
             !pto.partition_tensor_view<{used}xf32>) outs(%t : {TILE}){layout}\n"
        )
    };
    let arrow = " -> !pto.partition_tensor_view<16x64xf32>";
    for layout in ["", " {layout = #pto.layout<nd>}"] {
        assert_eq!(read_of(&text(arrow, "16x64", layout)), [""; 0], "{layout}");
        assert_eq!(read_of(&text("", "16x64", layout)), [""; 0], "{layout}");
    }
    let wrong = read_of(&text("", "16x32", ""));
    assert!(wrong.len() == 1 && wrong[0].starts_with("E1403 `%p` is a `!pto.partition_tensor_view<16x64xf32>`"));
    for layout in ["dn", "nz"] {
        let said = read_of(&text(arrow, "16x64", &format!(" {{layout = #pto.layout<{layout}>}}")));
        let part = format!("E1404 `layout = #pto.layout<{layout}>` of `pto.tload` is not read: only `nd` is");
        assert_eq!(said, [part]);
    }
    // It is printed as it was.
    let whole =
        format!("func.func @f(%v: !pto.tensor_view<?x?xf32>, %c0: index) {{\n{}  return\n}}\n", text("", "16x64", ""));
    let parsed = parse(FileId(0), &whole);
    assert!(parsed.diagnostics.is_empty(), "{:?}", parsed.diagnostics);
    let printed = print(&parsed.module);
    assert!(printed.contains("sizes = [%c16, %c64] : !pto.tensor_view<?x?xf32>\n"), "{printed}");
}

/// The codes and messages of what a text of these lines in front of a module and arguments of its function says.
fn told(front: &str, params: &str, lines: &str) -> Vec<String> {
    let text = format!("{front}module {{\n  func.func @f({params}) {{\n{lines}    return\n  }}\n}}\n");
    let (_, found) = ptoc_pto::translate(FileId(0), &text, &|_| false, &[]);
    found.iter().map(|d| format!("{} {}", d.code, d.message)).collect()
}

/// MLIR's names for types and attributes. What is printed has what they are for.
#[test]
fn names_of_types_and_attributes() {
    const FRONT: &str =
        "!t = !pto.tile_buf<vec, 16x32xf32>\n!m = !pto.tile_buf<vec, 16x32xui8>\n#mode = #pto<cmp gt>\n";
    const LINES: &str = "    %a = pto.alloc_tile : !t\n    %m = pto.alloc_tile : !m\n    pto.tcmp ins(%a, %a {cmpMode \
                         = #mode} : !t, !pto.tile_buf<vec, 16x32xf32>) outs(%m : !m)\n";
    assert_eq!(told(FRONT, "", LINES), [""; 0]);
    let text = format!("{FRONT}module {{\n  func.func @f() {{\n{LINES}    return\n  }}\n}}\n");
    let printed = ptoc_pto::print(&ptoc_pto::parse(FileId(0), &text).module);
    let own = "!pto.tile_buf<vec, 16x32xf32>";
    assert!(printed.contains(&format!("(%a, %a {{cmpMode = #pto<cmp gt>}} : {own}, {own})")), "{printed}");
    assert_eq!(ptoc_pto::format::format(&text), text);
    // One error for each mistake.
    assert_eq!(told(FRONT, "", "    %a = pto.alloc_tile : !u\n"), ["E1401 nothing defines the type `!u`"]);
    let twice = format!("{FRONT}!t = index\n");
    assert_eq!(told(&twice, "", LINES), ["E1402 `!t` is defined twice"]);
    let wrong = "!t = !pto.tile_buf<vec, 16x>\n!m = !pto.tile_buf<vec, 16x32xui8>\n#mode = #pto<cmp gt>\n";
    let found = told(wrong, "", LINES);
    assert!(found.len() == 1 && found[0].starts_with("E1400 "), "{found:?}");
}

/// What stands between the words of a type of MLIR says nothing.
#[test]
fn types_of_mlir_are_the_same_however_they_are_spaced() {
    let param = "%g: memref<16x64xf32, #pto.address_space<gm>>";
    for other in [
        "memref<16x64xf32,#pto.address_space<gm>>",
        "memref< 16x64xf32 , #pto.address_space<gm> >",
        "memref<16x64xf32, // rows\n #pto.address_space<gm>>",
    ] {
        let line = "    %t = pto.alloc_tile : !pto.tile_buf<vec, 16x64xf32>\n    pto.tload ins(%g : TYPE) outs(%t : \
                    !pto.tile_buf<vec, 16x64xf32>)\n";
        assert_eq!(told("", param, &line.replace("TYPE", other)), [""; 0], "{other}");
    }
}

#[test]
fn one_error_for_a_mistake_at_its_place() {
    let negative = told("", "", "    %a = pto.alloc_tile : !pto.tile_buf<vec, -16x64xf32>\n");
    assert_eq!(negative, ["E1400 expected an extent, which is not negative"]);
    for (number, ty) in [("1e99999", "f32"), ("-1.0e39", "f32"), ("1.0e5", "f16")] {
        let lines = format!(
            "    %c = arith.constant {number} : {ty}\n    %a = pto.alloc_tile : !pto.tile_buf<vec, 16x64x{ty}>\n    \
             pto.texpands ins(%c : {ty}) outs(%a : !pto.tile_buf<vec, 16x64x{ty}>)\n    pto.tmuls ins(%a, %c : \
             !pto.tile_buf<vec, 16x64x{ty}>, {ty}) outs(%a : !pto.tile_buf<vec, 16x64x{ty}>)\n"
        );
        assert_eq!(told("", "", &lines), [format!("E1400 `{number}` is larger than every `{ty}`")]);
    }
    let open = "module attributes {pto.target_arch = \"a5} {\n  func.func @f() {\n    return\n  }\n}\n";
    let (_, found) = ptoc_pto::translate(FileId(0), open, &|_| false, &[]);
    assert_eq!(found.len(), 1, "{found:?}");
    // Articles.
    let yielded = "    %c = arith.constant true\n    %x = scf.if %c -> (index) {\n      scf.yield %s : i32\n    \
                   } else {\n      scf.yield %s : i32\n    }\n";
    assert_eq!(told("", "%s: i32", yielded), ["E1403 this is an `i32`, and an `index` is needed"]);
}

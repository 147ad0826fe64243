//! What PTOAS's verifier asks of single operations: broken once for each rule, with the reason in the message.

use ptoc_diagnostics::FileId;

/// What is said of a text, as the code and the message.
fn said(text: &str) -> Vec<String> {
    let (_, found) = ptoc_pto::translate(FileId(0), text, &|_| false, &[]);
    let inside = |d: &ptoc_diagnostics::Diagnostic| d.span.is_some_and(|s| !text[s.range()].is_empty());
    assert!(found.iter().all(inside), "{found:?}");
    found.iter().map(|d| format!("{} {}", d.code, d.message)).collect()
}

/// A module of one function with these arguments and lines.
fn function(params: &str, attributes: &str, lines: &[&str]) -> String {
    let body: String = lines.iter().map(|l| format!("    {l}\n")).collect();
    format!("module {{\n  func.func @f({params}){attributes} {{\n{body}    return\n  }}\n}}\n")
}

/// A tile as an argument in each of these types, `%a`, `%b`, ..; they are used in the line.
fn tiles(types: &[&str], line: &str) -> String {
    let names: Vec<String> = ('a'..).zip(types).map(|(n, ty)| format!("%{n} = pto.alloc_tile : {ty}")).collect();
    let lines: Vec<&str> = names.iter().map(String::as_str).chain([line]).collect();
    function("", "", &lines)
}

#[test]
fn what_is_valid_is_valid_in_all_operands() {
    const A: &str = "!pto.tile_buf<vec, 16x16xf32>";
    const B: &str = "!pto.tile_buf<vec, 16x16xf32, valid=8x16>";
    const H: &str = "!pto.tile_buf<vec, 16x16xf16>";
    let add = |a: &str, b: &str, d: &str| tiles(&[a, b, d], &format!("pto.tadd ins(%a, %b : {a}, {b}) outs(%c : {d})"));
    assert_eq!(said(&add(A, A, A)), [""; 0]);
    assert_eq!(said(&add(A, B, A)), ["E1403 8x16 of `src1` are valid, and 16x16 of `dst`"]);
    assert_eq!(said(&add(A, A, B)), ["E1403 16x16 of `src0` are valid, and 8x16 of `dst`"]);
    let convert = tiles(&[B, H], &format!("pto.tcvt ins(%a : {B}) outs(%b : {H})"));
    assert_eq!(said(&convert), ["E1403 8x16 of `src` are valid, and 16x16 of `dst`"]);
    // A number that the launch knows may be the other one, and a row that is spread out is another part.
    const D: &str = "!pto.tile_buf<vec, 16x16xf32, valid=?x16>";
    let lines = [
        &format!("%a = pto.alloc_tile valid_row = %n : {D}"),
        &format!("%b = pto.alloc_tile : {A}"),
        &format!("pto.texp ins(%a : {D}) outs(%b : {A})"),
    ];
    assert_eq!(said(&function("%n: index", "", &lines.map(String::as_str))), [""; 0]);
    const ROW: &str = "!pto.tile_buf<vec, 1x16xf32>";
    let spread = tiles(&[A, ROW], &format!("pto.tcolexpandmul ins(%a, %b : {A}, {ROW}) outs(%a : {A})"));
    assert_eq!(said(&spread), [""; 0]);
    const SCALE: &str = "!pto.tile_buf<vec, 16x8xf32>";
    const BYTES: &str = "!pto.tile_buf<vec, 16x32xi8>";
    const WIDE: &str = "!pto.tile_buf<vec, 16x32xf32>";
    let line = format!("pto.tdequant ins(%a, %b, %b : {BYTES}, {SCALE}, {SCALE}) outs(%c : {WIDE})");
    assert_eq!(said(&tiles(&[BYTES, SCALE, WIDE], &line)), [""; 0]);
}

#[test]
fn quantisation_says_what_it_gives() {
    let quant = |mode: &str, element: &str, offset: bool| {
        let (f, d) = ("!pto.tile_buf<vec, 16x32xf32>", format!("!pto.tile_buf<vec, 16x32x{element}>"));
        let (more, ty) = if offset { (", %c", format!(", {f}")) } else { ("", String::new()) };
        let line = format!(
            "pto.tquant ins(%a, %b{more} : {f}, {f}{ty}) outs(%d : {d}) {{quant_type = #pto<quant_type {mode}>}}"
        );
        tiles(&[f, f, f, &d], &line)
    };
    assert_eq!(said(&quant("INT8_SYM", "i8", false)), [""; 0]);
    assert_eq!(said(&quant("INT8_ASYM", "ui8", true)), [""; 0]);
    assert_eq!(said(&quant("INT8_ASYM", "ui8", false)), ["E1403 `INT8_ASYM` asks for an operand `offset`"]);
    assert_eq!(said(&quant("INT8_SYM", "i8", true)), ["E1403 `INT8_SYM` takes no `offset`"]);
    assert_eq!(said(&quant("INT8_SYM", "ui8", false)), ["E1403 `INT8_SYM` gives elements of `i8`, and not of `ui8`"]);
    assert_eq!(said(&quant("INT8_ASYM", "i8", true)), ["E1403 `INT8_ASYM` gives elements of `ui8`, and not of `i8`"]);
}

#[test]
fn elements_are_cut_out_of_rows() {
    const PLAIN: &str = "!pto.tile_buf<vec, 16x16xf16>";
    for boxes in ["slayout=row_major", "blayout=col_major", "blayout=col_major, slayout=row_major"] {
        let from = format!("!pto.tile_buf<vec, 32x32xf16, {boxes}>");
        let line = format!("pto.textract ins(%a, %n, %n : {from}, index, index) outs(%b : {PLAIN})");
        let lines = [&format!("%a = pto.alloc_tile : {from}"), &format!("%b = pto.alloc_tile : {PLAIN}"), &line];
        let text = function("%n: index", "", &lines.map(String::as_str));
        assert_eq!(said(&text), ["E1403 `src` of `pto.textract` from Vec to Vec is row-major and has no boxes"]);
    }
}

#[test]
fn scales_are_in_scaling() {
    let address = |d: &str| {
        let a = "!pto.tile_buf<left, 16x64xf16, blayout=col_major, slayout=row_major>";
        tiles(&[a, d], &format!("pto.tget_scale_addr ins(%a : {a}) outs(%b : {d})"))
    };
    let fine = said(&address("!pto.tile_buf<scaling, 16x64xf16>"));
    assert!(fine.len() == 1 && fine[0].starts_with("E1404"), "{fine:?}");
    let vec = said(&address("!pto.tile_buf<vec, 16x64xf16>"));
    assert!(vec.len() == 1 && vec[0].starts_with("E1403 `dst` of `pto.tget_scale_addr` is in `scaling`"), "{vec:?}");
    let small = said(&address("!pto.tile_buf<scaling, 1x64xf16>"));
    assert_eq!(small, ["E1403 `src` is 16x64, and `dst` 1x64"]);
}

#[test]
fn what_goes_to_other_devices_is_one_row() {
    let put = |dst: &str, src: &str| {
        let memref = |shape: &str| format!("memref<{shape}, #pto.address_space<gm>>");
        let (dst, src) = (memref(dst), memref(src));
        let lines = [
            "%t = pto.alloc_tile : !pto.tile_buf<vec, 1x256xi8>",
            "%s = pto.build_async_session(%t, %w : !pto.tile_buf<vec, 1x256xi8>, !pto.ptr<i8>) -> !pto.async_session",
            &format!("%e = pto.tput_async(%d, %x, %s : {dst}, {src}, !pto.async_session) -> !pto.async_event"),
        ];
        function(&format!("%d: {dst}, %x: {src}, %w: !pto.ptr<i8>"), "", &lines)
    };
    let unread = said(&put("1x32xf32", "1x32xf32"));
    assert!(unread.len() == 1 && unread[0].starts_with("E1404 "), "{unread:?}");
    let part = "`dst` of `pto.tput_async` is one row of a known length";
    let rows = said(&put("4x32xf32", "4x32xf32"));
    assert!(rows.len() == 1 && rows[0].starts_with(&format!("E1403 {part}")), "{rows:?}");
    let other = said(&put("1x32xf32", "1x64xf32"));
    assert!(other.len() == 1 && other[0].starts_with("E1403 `dst` is a `memref<1x32xf32"), "{other:?}");
}

#[test]
fn pipes_between_cores_fit_together() {
    const CUBE: &str = " attributes {pto.kernel_kind = #pto.kernel_kind<cube>}";
    const VECTOR: &str = " attributes {pto.kernel_kind = #pto.kernel_kind<vector>}";
    const FREE: &str = "pto.tfree_from_aic {split = 0}";
    const RESERVE: &str =
        "%b = pto.reserve_buffer {name = \"q\", size = 4096, location = #pto.address_space<vec>, auto = true} -> i32";
    let pop = |ty: &str| format!("%t = pto.tpop_from_aic(%n, %n) {{split = 0}} -> !pto.tile_buf<vec, 16x64xf32{ty}>");
    for fine in [FREE, RESERVE, &pop(", valid=?x?")] {
        let found = said(&function("%n: index", VECTOR, &[fine]));
        assert!(found.len() == 1 && found[0].starts_with("E1404 "), "{fine}: {found:?}");
    }
    let import = "%b = pto.import_reserved_buffer {name = \"q\", peer_func = @f} -> i32";
    for (attributes, line, part) in [
        (CUBE, FREE, "E1403 `pto.tfree_from_aic` stands in a function for the vector core"),
        (VECTOR, "pto.tfree_from_aic {split = 3}", "E1403 `split` is 0, 1 or 2, and this is 3"),
        (VECTOR, &pop(""), "E1403 `pto.tpop_from_aic` is given what is valid, and the type does not say `?x?`"),
        (VECTOR, &RESERVE.replace("4096", "0"), "E1403 `size` is greater than 0, and this is 0"),
        (VECTOR, &RESERVE.replace("<vec>", "<acc>"), "E1403 `location` is `vec` or `mat`, and this is"),
        (VECTOR, &RESERVE.replace("true", "false"), "E1403 `auto` is false, and `base` is not given"),
        (VECTOR, import, "E1402 `@f` reserves no buffer \"q\""),
        (VECTOR, &import.replace("@f", "@g"), "E1402 there is no function `@g`"),
    ] {
        let found = said(&function("%n: index", attributes, &[line]));
        assert!(found.len() == 1 && found[0].starts_with(part), "{line}: {found:?}");
    }
}

/// Lines of a function with a tile `%t` of 16x64 floats, `%n` of type `index` and `%b` of `i1`.
fn in_function(lines: &[&str]) -> Vec<String> {
    let mut all = vec!["%t = pto.alloc_tile : !pto.tile_buf<vec, 16x64xf32>"];
    all.extend(lines);
    said(&function("%n: index, %b: i1, %p: !pto.ptr<f32>", "", &all))
}

#[test]
fn numbers_have_their_types() {
    for fine in [
        "%x = arith.constant -128 : i8",
        "%x = arith.constant 255 : i8",
        "%x = arith.constant 0xFF800000 : f32",
        "%x = arith.constant 1.0e+00 : f32",
        "%x = arith.constant -1 : i1",
        "%x = arith.index_cast %n : index to i32",
        "%x = arith.extui %b : i1 to i32",
        "%x = arith.select %b, %n, %n : index",
        "%x = arith.cmpi slt, %n, %n : index",
    ] {
        assert_eq!(in_function(&[fine]), [""; 0], "{fine}");
    }
    for (line, part) in [
        ("%x = arith.constant 256 : i8", "E1403 `i8` has numbers from -128 to 255, and 256 is none"),
        ("%x = arith.constant 9223372036854775808 : index", "E1403 `index` has numbers from"),
        ("%x = arith.constant 1.5 : i32", "E1403 `1.5` is no number of type `i32`"),
        ("%x = arith.constant 1 : f32", "E1403 a number of type `f32` has a point"),
        ("%x = arith.extsi %n : index to i64", "E1403 `arith.extsi` converts an integer to a wider one"),
        ("%x = arith.trunci %b : i1 to i8", "E1403 `arith.trunci` converts an integer to a narrower one"),
        (
            "%x = arith.index_cast %n : index to index",
            "E1403 `arith.index_cast` converts between `index` and an integer",
        ),
        ("%x = arith.select %n, %n, %n : index", "E1403 a condition is an `i1`, and this is an `index`"),
        ("%x = arith.cmpi oeq, %n, %n : index", "E1401 `arith.cmpi` has no comparison `oeq`"),
        ("scf.if %n {\n    }", "E1403 a condition is an `i1`"),
    ] {
        let found = in_function(&[line]);
        assert!(found.len() == 1 && found[0].starts_with(part), "{line}: {found:?}");
    }
    let half = in_function(&["%x = arith.constant 1.0 : f16", "%y = arith.truncf %x : f16 to f32"]);
    assert!(
        half.len() == 1 && half[0].starts_with("E1403 `arith.truncf` converts a float to a narrower one"),
        "{half:?}"
    );
}

#[test]
fn elements_are_numbers_of_their_type() {
    const GET: &str = "%x = pto.tgetval ins(%t, %n : !pto.tile_buf<vec, 16x64xf32>, index) outs : ";
    assert_eq!(in_function(&[&format!("{GET}f32")]), [""; 0]);
    let other = in_function(&[&format!("{GET}i32")]);
    assert_eq!(other, ["E1403 the elements are `f32`, and the number of `pto.tgetval` is an `i32`"]);
    let set = in_function(&["pto.tsetval ins(%n, %b : index, i1) outs(%t : !pto.tile_buf<vec, 16x64xf32>)"]);
    assert_eq!(set, ["E1403 the elements are `f32`, and the number of `pto.tsetval` is an `i1`"]);
    let load = in_function(&["%x = pto.load_scalar %p[%n] : !pto.ptr<f32> -> f16"]);
    assert_eq!(load, ["E1403 the elements are `f32`, and the number of `pto.load_scalar` is an `f16`"]);
}

#[test]
fn numbers_stand_where_they_are_asked_for() {
    const T: &str = "!pto.tile_buf<vec, 16x64xf32>";
    for (line, part) in [
        (
            format!("pto.tadds ins(%t, %n : {T}, index) outs(%t : {T})"),
            "`scalar` of `pto.tadds` is an integer or a float",
        ),
        (
            format!("pto.tsetval ins(%n, %n : index, index) outs(%t : {T})"),
            "`val` of `pto.tsetval` is an integer or a float",
        ),
        (format!("%x = pto.tgetval ins(%t, %b : {T}, i1) outs : f32"), "`offset` of `pto.tgetval` is an `index`"),
        (format!("%x = pto.subset %t[%b, %n] sizes [8, 64] : {T}"), "`offsets` of `pto.subset` is an `index`"),
        ("%x = pto.load_scalar %p[%b] : !pto.ptr<f32> -> f32".into(), "`offset` of `pto.load_scalar` is an `index`"),
    ] {
        let found = in_function(&[&line]);
        assert!(found.len() == 1 && found[0].starts_with(&format!("E1403 {part}")), "{line}: {found:?}");
    }
}

#[test]
fn parts_lie_in_their_tile() {
    let part = |at: &str, sizes: &str| {
        let ty = "!pto.tile_buf<vec, 16x64xf32>";
        let line = format!("%s = pto.subset %t[%at, %n] sizes [{sizes}] : {ty}");
        in_function(&[&format!("%at = arith.constant {at} : index"), &line])
    };
    assert_eq!(part("8", "8, 64"), [""; 0]);
    assert_eq!(part("-1", "8, 64"), ["E1403 8 rows from -1 on are not in a tile of 16"]);
    assert_eq!(part("9", "8, 64"), ["E1403 8 rows from 9 on are not in a tile of 16"]);
    assert_eq!(part("0", "32, 64"), ["E1403 a part has 1 to 16 rows of this tile, and not 32"]);
    assert_eq!(part("0", "8, 0"), ["E1403 a part has 1 to 64 columns of this tile, and not 0"]);
}

#[test]
fn what_is_valid_changes_where_the_type_says_so() {
    let of = |ty: &str, given: &str, rows: &str| {
        let lines = [
            format!("%r = arith.constant {rows} : index"),
            format!("%d = pto.alloc_tile {given}: {ty}"),
            format!("pto.set_validshape %d, %r, %n : {ty}"),
        ];
        in_function(&lines.iter().map(String::as_str).collect::<Vec<_>>())
    };
    let moving = "!pto.tile_buf<vec, 16x64xf32, valid=?x?>";
    assert_eq!(of(moving, "valid_row = %n valid_col = %n ", "16"), [""; 0]);
    let beyond = of(moving, "valid_row = %n valid_col = %n ", "17");
    assert_eq!(beyond, ["E1403 17 rows cannot be valid of a tile that has 16"]);
    let fixed = of("!pto.tile_buf<vec, 16x64xf32>", "", "16");
    assert_eq!(fixed, ["E1403 what is valid of a tile is changed where its type says `valid=?x?`"]);
}

#[test]
fn attributes_have_values_of_their_kind() {
    const A: &str = "!pto.tile_buf<vec, 16x64xf32>";
    const M: &str = "!pto.tile_buf<vec, 16x32xui8>";
    let compare = |mode: &str| {
        let line = format!("pto.tcmp ins(%a, %b {{cmpMode = {mode}}} : {A}, {A}) outs(%c : {M})");
        tiles(&[A, A, M], &line)
    };
    assert_eq!(said(&compare("#pto<cmp gt>")), [""; 0]);
    for other in ["#pto<round_mode RINT>", "true", "1 : i32"] {
        assert_eq!(said(&compare(other)), ["E1403 `cmpMode` is a word of `cmp`"], "{other}");
    }
    let sum = |value: &str| {
        let row = "!pto.tile_buf<vec, 1x64xf32>";
        tiles(&[A, A, row], &format!("pto.tcolsum ins(%a, %b {{isBinary = {value}}} : {A}, {A}) outs(%c : {row})"))
    };
    assert_eq!(said(&sum("false")), [""; 0]);
    assert_eq!(said(&sum("1 : i32")), ["E1403 `isBinary` is true or false"]);
    let twice = "!pto.tile_buf<vec, 16x64xf32, pad=1, pad=1>";
    let found = said(&tiles(&[twice], "pto.barrier <PIPE_ALL>"));
    assert!(found.len() == 1 && found[0].starts_with("E1400 expected `pad` of a tile buffer once"), "{found:?}");
}

/// The rows of `constraints.txt`, one of each kind of clause that holds of a text that is read.
#[test]
fn rows_of_the_verifier() {
    const COLUMN: &str = "!pto.tile_buf<vec, 8x1xf32, blayout=col_major>";
    const A: &str = "!pto.tile_buf<vec, 16x16xf32>";
    const W: &str = "!pto.tile_buf<vec, 16x32xi16>";
    let on = |arch: &str, text: String| text.replacen("module {", &format!("module attributes {{{arch}}} {{"), 1);
    let line = format!("pto.tadd ins(%a, %b : {COLUMN}, {COLUMN}) outs(%a : {COLUMN})");
    assert_eq!(said(&tiles(&[COLUMN, COLUMN], &line)), ["E1403 `src0` of `pto.tadd` has to be row-major"]);
    // A number takes columns, and on a5 so does what fills a tile.
    let line = format!("%c = arith.constant 1.0 : f32\n    pto.tmuls ins(%a, %c : {COLUMN}, f32) outs(%a : {COLUMN})");
    assert_eq!(said(&tiles(&[COLUMN], &line)), [""; 0]);
    let fill = format!("%c = arith.constant 1.0 : f32\n    pto.texpands ins(%c : f32) outs(%a : {COLUMN})");
    let fill = tiles(&[COLUMN], &fill);
    assert_eq!(said(&on("pto.target_arch = \"a5\"", fill.clone())), [""; 0]);
    assert_eq!(
        said(&on("pto.target_arch = \"a3\"", fill.clone())),
        ["E1403 `dst` of `pto.texpands` has to be row-major"]
    );
    assert_eq!(said(&fill), [""; 0], "no target is named");
    let line = format!("%c = arith.constant 3 : i16\n    pto.tands ins(%a, %c : {W}, i16) outs(%a : {W})");
    assert_eq!(said(&tiles(&[W], &line)), ["E1403 `pto.tands` does not work in place, on `%a`"]);
    const U: &str = "!pto.tile_buf<vec, 16x16xui16>";
    let line = format!("%c = arith.constant 3 : i16\n    pto.texpands ins(%c : i16) outs(%a : {U})");
    assert_eq!(
        said(&tiles(&[U], &line)),
        ["E1403 `scalar` of `pto.texpands` has to be of the type of `dst`'s elements, ui16, and this is i16"]
    );
    let line = format!("pto.tcolsum ins(%a, %b : {A}, {A}) outs(%c : !pto.tile_buf<vec, 1x16xf32>)");
    assert_eq!(
        said(&tiles(&[A, A, "!pto.tile_buf<vec, 1x16xf32>"], &line)),
        ["E1403 `pto.tcolsum` with `tmp` needs `isBinary`"]
    );
    const PART: &str = "!pto.tile_buf<vec, 16x16xf32, valid=8x16>";
    let line =
        format!("pto.trowmin ins(%a, %b : {A}, {PART}) outs(%c : !pto.tile_buf<vec, 16x1xf32, blayout=col_major>)");
    assert_eq!(
        said(&tiles(&[A, PART, "!pto.tile_buf<vec, 16x1xf32, blayout=col_major>"], &line)),
        ["E1403 as much has to be valid of `tmp` of `pto.trowmin` as of `src`"]
    );
    const N: &str = "!pto.tile_buf<vec, 8x1xi32, blayout=col_major>";
    let line = format!("%c = arith.constant 3 : i32\n    pto.tci ins(%c : i32) outs(%a : {N})");
    assert_eq!(said(&tiles(&[N], &line)), ["E1403 `dst` of `pto.tci` has to have more than one column"]);
    const I: &str = "!pto.tile_buf<vec, 16x16xi32>";
    let line = format!("pto.tgather ins(%a, %b : {A}, {I}) outs(%a : {A})");
    assert_eq!(said(&tiles(&[A, I], &line)), ["E1403 `pto.tgather` needs an operand `tmp`"]);
}

/// Types that an operation's definition asks for, and shapes of what an instruction works in.
#[test]
fn rows_of_the_verifier_by_definition() {
    const A: &str = "!pto.tile_buf<vec, 16x16xf32>";
    const H: &str = "!pto.tile_buf<vec, 16x16xf16>";
    const I: &str = "!pto.tile_buf<vec, 16x16xi32>";
    let on = |arch: &str, text: String| {
        said(&text.replacen("module {", &format!("module attributes {{pto.target_arch = \"{arch}\"}} {{"), 1))
    };
    let slope = |ty: &str| {
        let line = format!("%c = arith.constant 0.5 : {ty}\n    pto.tlrelu ins(%a, %c : {H}, {ty}) outs(%b : {H})");
        said(&tiles(&[H, H], &line))
    };
    assert_eq!(slope("f32"), [""; 0]);
    assert_eq!(slope("f16"), ["E1403 `slope` of `pto.tlrelu` is of type `f32`, and this is f16"]);
    let gather =
        |tmp: &str| tiles(&[A, I, tmp], &format!("pto.tgather ins(%a, %b, %c : {A}, {I}, {tmp}) outs(%a : {A})"));
    assert_eq!(on("a2a3", gather(I)), [""; 0]);
    assert_eq!(on("a2a3", gather(A)), ["E1403 the elements of `by` of `pto.tgather` are i32, and those of `tmp` f32"]);
    assert_eq!(on("a5", gather(A)), [""; 0]);
    let few = "!pto.tile_buf<vec, 8x16xi32>";
    assert_eq!(on("a3", gather(few)), ["E1403 as much has to be valid of `tmp` of `pto.tgather` as of `by`"]);
    let turned =
        |ty: &str, tmp: &str| tiles(&[ty, tmp, ty], &format!("pto.ttrans ins(%a, %b : {ty}, {tmp}) outs(%c : {ty})"));
    assert_eq!(said(&turned(A, A)), [""; 0]);
    assert_eq!(said(&turned(A, H)), ["E1403 the elements of `src` of `pto.ttrans` are f32, and those of `tmp` f16"]);
    const L: &str = "!pto.tile_buf<vec, 16x16xi64>";
    assert_eq!(
        said(&turned(L, L)),
        ["E1403 an element of `src` of `pto.ttrans` has 1 or 2 or 4 bytes, and this is i64"]
    );
    let least = |tmp: &str, dst: &str| {
        said(&tiles(&[A, tmp, dst], &format!("pto.tcolargmin ins(%a, %b : {A}, {tmp}) outs(%c : {dst})")))
    };
    let row = "!pto.tile_buf<vec, 1x16xi32>";
    assert_eq!(least(A, row), [""; 0]);
    assert_eq!(least(H, row), ["E1403 the elements of `src` of `pto.tcolargmin` are f32, and those of `tmp` f16"]);
    let two = "!pto.tile_buf<vec, 2x16xi32>";
    assert_eq!(least(A, two), ["E1403 one row of `dst` of `pto.tcolargmin` has to be valid"]);
    let half = "!pto.tile_buf<vec, 1x16xi32, valid=1x8>";
    assert_eq!(least(A, half), ["E1403 as many columns have to be valid of `dst` of `pto.tcolargmin` as of `src`"]);
    let tri = |n: &str| {
        let line =
            format!("%c = arith.constant 0 : i32\n    pto.ttri ins(%c {{upperOrLower = {n}}} : i32) outs(%a : {A})");
        said(&tiles(&[A], &line))
    };
    assert_eq!((tri("0 : i32"), tri("1 : i32")), (Vec::new(), Vec::new()));
    for n in ["2 : i32", "-1 : i32", "true"] {
        assert_eq!(tri(n), ["E1403 `upperOrLower` is 0 (lower) or 1 (upper)"]);
    }
}

#[test]
fn numbers_have_the_types_of_definitions() {
    const I: &str = "!pto.tile_buf<vec, 16x16xi32>";
    let scalar = |ty: &str| {
        let lines =
            [&format!("%a = pto.alloc_tile : {I}"), &format!("pto.tmaxs ins(%a, %s : {I}, {ty}) outs(%a : {I})")];
        said(&function(&format!("%s: {ty}"), "", &lines.map(String::as_str)))
    };
    assert_eq!(scalar("i32"), [""; 0]);
    assert_eq!(
        scalar("ui32"),
        ["E1403 `scalar` of `pto.tmaxs` is an integer without a sign or a float, and this is a `ui32`"]
    );
    let at = |ty: &str| {
        let lines = [format!("%d = arith.constant 0 : {ty}"), format!("%a = pto.alloc_tile addr = %d : {I}")];
        said(&function("", "", &lines.each_ref().map(String::as_str)))
    };
    assert_eq!(at("i64"), [""; 0]);
    for ty in ["i32", "index"] {
        assert_eq!(at(ty), [format!("E1403 the address of a tile is an `i64`, and this is of type `{ty}`")]);
    }
    let counted = |from: &str, behind: &str| {
        let lines = [
            "%c0 = arith.constant 0 : index",
            "%c1 = arith.constant 1 : index",
            "%i0 = arith.constant 0 : i32",
            "%i1 = arith.constant 1 : i32",
            &format!("scf.for %q = %{from}0 to %n step %{from}1 {behind}{{\n    }}"),
        ];
        said(&function(if behind.is_empty() { "%n: index" } else { "%n: i32" }, "", &lines))
    };
    assert_eq!(counted("c", ""), [""; 0]);
    assert_eq!(counted("i", ""), ["E1403 the number of this loop is of type `index`, and `%i0` of `i32`"]);
    assert_eq!(counted("i", ": i32 "), [""; 0]);
    assert_eq!(counted("c", ": i32 "), ["E1403 the number of this loop is of type `i32`, and `%c0` of `index`"]);
}

#[test]
fn parts_lie_in_what_they_are_of() {
    let part = |offset: i64, size: i64| {
        let (view, part) = ("!pto.tensor_view<4x8xf32>", "!pto.partition_tensor_view<?x8xf32>");
        let lines = [
            "%c0 = arith.constant 0 : index",
            "%c1 = arith.constant 1 : index",
            "%c4 = arith.constant 4 : index",
            "%c8 = arith.constant 8 : index",
            &format!("%o = arith.constant {offset} : index"),
            &format!("%s = arith.constant {size} : index"),
            &format!("%v = pto.make_tensor_view %x, shape = [%c4, %c8], strides = [%c8, %c1] : {view}"),
            &format!("%p = pto.partition_view %v, offsets = [%o, %c0], sizes = [%s, %c8] : {view} -> {part}"),
        ];
        said(&function("%x: !pto.ptr<f32>", "", &lines))
    };
    assert_eq!((part(0, 4), part(2, 2)), (Vec::new(), Vec::new()));
    assert_eq!(part(0, 8), ["E1403 mode 0 of the part has 8 elements from 0 on, and that of its view 4"]);
    assert_eq!(part(3, 2), ["E1403 mode 0 of the part has 2 elements from 3 on, and that of its view 4"]);
    assert_eq!(part(-1, 2), ["E1403 mode 0 of the part begins at -1"]);
    assert_eq!(part(0, 0), ["E1403 mode 0 of the part has 0 elements"]);
    let boxed = |rows: i64, cols: i64, row: i64, col: i64| {
        let ty = "!pto.tile_buf<mat, 32x64xf16, blayout=col_major, slayout=row_major>";
        let lines = [
            &format!("%r = arith.constant {row} : index"),
            &format!("%c = arith.constant {col} : index"),
            &format!("%a = pto.alloc_tile : {ty}"),
            &format!("%p = pto.subset %a[%r, %c] sizes [{rows}, {cols}] : {ty}"),
        ];
        said(&function("", "", &lines.map(String::as_str)))
    };
    assert_eq!(boxed(32, 16, 0, 16), [""; 0]);
    assert_eq!(boxed(8, 16, 0, 0), ["E1403 a part of a tile of boxes is whole boxes, and this is 8x16"]);
    assert_eq!(boxed(32, 16, 0, 8), ["E1403 a part of a tile of boxes begins at a box, and not column 8"]);
    let whole = "E1403 a part of this tile has all its 32 rows: its boxes follow each other along them";
    assert_eq!(boxed(16, 16, 0, 0), [whole]);
}

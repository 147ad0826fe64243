//! What is printed as PTO text is read, and printed again as the same text, places included: kernels and texts of which
//! some were not.

use crate::pto::written;
use ptoc_diagnostics::{FileId, codes};
use ptoc_driver::check::check_entry;
use ptoc_driver::session::Session;
use ptoc_driver::stages::Level;
use std::path::Path;

/// Kernels with what is computed in front of a window that asks for it, conditions of loops, numbers of other types and
/// diagonals.
const KERNELS: &str = "\
kernel ends(x: in f32[M, N], y: out f32[M, N], flag: i32, s: f32) {
    grid (i in tiles(M, 8), j in tiles(N, 64));
    let t = Vec(x.tile(i, j));
    if flag > 2 && i.first { TSTORE(y.tile(i, j), t * s); }
    else if flag == 1 || j.last { TSTORE(y.tile(i, j), t + s); }
    else { TSTORE(y.tile(i, j), -t); }
}
kernel steps(x: in f32[M, N], y: out f32[M, N], n: i32, m: i32) {
    grid (i in tiles(M, 8), j in tiles(N, 64));
    let t = tile Vec<f32, i, j>;
    TLOAD(t, x.tile(i, j));
    var k = i32(0);
    while k < n { t *= 1.5; k += 1; }
    while k * 2 < n + m {
        t += 1.0;
        k += 1;
    }
    TSTORE(y.tile(i, j), t);
}
kernel towards_zero(x: in f32[M, N], y: out f32[M, N], g: f32, h: f16) {
    grid (i in tiles(M, 8), j in tiles(N, 64));
    let t = Vec(x.tile(i, j));
    let a = i32(g);
    let c = i64(h);
    let d = i8(g);
    let e = index(g);
    if a > 2 && c > 3 && d > 1 && e > 4 { TSTORE(y.tile(i, j), t); } else { TSTORE(y.tile(i, j), -t); }
}
kernel diagonals(y: out f32[64, 64], n: i32) {
    grid (i in tiles(64, 32), j in tiles(64, 64));
    let t = tile Vec<f32, i, j>;
    TTRI(t, 3);
    let u = tile Vec<f32, i, j>;
    TTRI(u, i.start - j.start);
    let v = tile Vec<f32, i, j>;
    TTRI(v, index(n), Upper);
    TSTORE(y.tile(i, j), t + u + v);
}
";

#[test]
fn kernels_are_printed_again_as_they_were() {
    for name in ["ends", "steps", "towards_zero", "diagonals"] {
        for level in [Level::Automatic, Level::Placed, Level::Explicit] {
            let first = written(Path::new("k.tile"), KERNELS.into(), Some(name), "a2a3", level);
            let first = first.expect("it can be said");
            let again = written(Path::new("k.pto"), first.clone(), None, "a2a3", level).expect("it is read");
            assert_eq!(again, first, "{name} {level:?}");
        }
    }
}

/// Texts that are read, and then printed to themselves.
const TEXTS: [&str; 3] = [
    // The number of a block is used in it, so the grid is over the cores.
    "module attributes {pto.target_arch = \"a2a3\"} {
  func.func @k(%y: !pto.ptr<f32>, %N: index) attributes {pto.entry} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c64 = arith.constant 64 : index
    %cst = arith.constant 1.0 : f32
    %b = pto.get_block_idx
    %bi = arith.index_cast %b : i64 to index
    %n = pto.get_block_num
    %ni = arith.index_cast %n : i64 to index
    %yv = pto.make_tensor_view %y, shape = [%N, %c64], strides = [%c64, %c1] : !pto.tensor_view<?x?xf32>
    scf.for %i = %bi to %N step %ni {
      %j = arith.addi %i, %bi : index
      %k = arith.subi %j, %bi : index
      %t = pto.alloc_tile : !pto.tile_buf<vec, 1x64xf32>
      pto.texpands ins(%cst : f32) outs(%t : !pto.tile_buf<vec, 1x64xf32>)
      %p = pto.partition_view %yv, offsets = [%k, %c0], sizes = [%c1, %c64] : !pto.tensor_view<?x?xf32> -> \
!pto.partition_tensor_view<1x64xf32>
      pto.tstore ins(%t : !pto.tile_buf<vec, 1x64xf32>) outs(%p : !pto.partition_tensor_view<1x64xf32>)
    }
    return
  }
}
",
    // The number of a loop has a number for a name, and so has what is computed of it.
    "module {
  func.func @k(%y: !pto.ptr<f32>, %N: index) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c64 = arith.constant 64 : index
    %cst = arith.constant 1.0 : f32
    %yv = pto.make_tensor_view %y, shape = [%N, %c64], strides = [%c64, %c1] : !pto.tensor_view<?x?xf32>
    scf.for %0 = %c0 to %N step %c1 {
      %1 = arith.muli %0, %c2 : index
      %t = pto.alloc_tile : !pto.tile_buf<vec, 1x64xf32>
      pto.texpands ins(%cst : f32) outs(%t : !pto.tile_buf<vec, 1x64xf32>)
      %p = pto.partition_view %yv, offsets = [%1, %c0], sizes = [%c1, %c64] : !pto.tensor_view<?x?xf32> -> \
!pto.partition_tensor_view<1x64xf32>
      pto.tstore ins(%t : !pto.tile_buf<vec, 1x64xf32>) outs(%p : !pto.partition_tensor_view<1x64xf32>)
    }
    return
  }
}
",
    // Diagonals of integers.
    "module {
  func.func @k(%n: i32, %m: i64) {
    %t = pto.alloc_tile : !pto.tile_buf<vec, 16x64xf32>
    pto.ttri ins(%n {upperOrLower = 0 : i32} : i32) outs(%t : !pto.tile_buf<vec, 16x64xf32>)
    pto.ttri ins(%m {upperOrLower = 1 : i32} : i64) outs(%t : !pto.tile_buf<vec, 16x64xf32>)
    return
  }
}
",
];

#[test]
fn texts_are_printed_again_as_they_were() {
    for text in TEXTS {
        let once = written(Path::new("k.pto"), text.into(), None, "a2a3", Level::Automatic).expect("it is read");
        let twice = written(Path::new("k.pto"), once.clone(), None, "a2a3", Level::Automatic).expect("it is read");
        assert_eq!(twice, once);
    }
    // The operands are those of the text.
    let text = written(Path::new("k.pto"), TEXTS[2].into(), None, "a2a3", Level::Automatic).expect("it is read");
    for op in ["pto.ttri ins(%n {upperOrLower = 0 : i32} : i32)", "pto.ttri ins(%m {upperOrLower = 1 : i32} : i64)"] {
        assert!(text.contains(op), "{op}\n{text}");
    }
}

/// The three levels say more from one to the next: neither place nor order, places of the plan, and flags.
#[test]
fn levels_say_places_and_order() {
    let at = |level| written(Path::new("k.tile"), KERNELS.into(), Some("ends"), "a2a3", level).expect("it can be said");
    let counts = [Level::Automatic, Level::Placed, Level::Explicit].map(|level| {
        let text = at(level);
        ["addr = ", "_flag[", "pto.barrier"].map(|word| text.contains(word))
    });
    assert_eq!(counts, [[false; 3], [true, false, false], [true; 3]]);
    let sorted = |text: String| {
        let tiles = text.lines().filter_map(|l| Some(l.trim().split_once(" = pto.alloc_tile addr = ")?.1.to_owned()));
        let mut tiles: Vec<String> = tiles.map(|l| l.split(" loc(").next().unwrap_or_default().into()).collect();
        tiles.sort();
        tiles
    };
    assert_eq!(sorted(at(Level::Placed)), sorted(at(Level::Explicit)));
}

/// What is valid of a part is in its type as PTOAS infers it, and not said where the offset or the tile does not.
#[test]
fn parts_have_the_types_that_ptoas_infers() {
    let source = "kernel win(x: in f32[M, 64], y: out f32[16, 64]) {
    grid (i in tiles(16, 16));
    let t = Vec(x[0..16, _]);
    let u = tile Vec<f32, 16, 64>;
    for k in 0..4 { TMULS(u[k * 4 .. k * 4 + 4, 0..64], t[k * 4 .. k * 4 + 4, 0..64], 2.0); }
    TADDS(u[4..8, 0..64], t[8..12, 0..64], 1.0);
    TSTORE(y.tile(i, _), u);
}
";
    let text = written(Path::new("k.tile"), source.into(), None, "a2a3", Level::Automatic).expect("it can be said");
    let line = |op: &str| text.lines().find(|l| l.contains(op)).unwrap_or_default().to_owned();
    assert!(line("pto.tmuls").contains("!pto.tile_buf<vec, 4x64xf32, valid=?x64>"), "{text}");
    assert!(line("pto.tadds").contains("!pto.tile_buf<vec, 4x64xf32>"), "{text}");
    let again = written(Path::new("k.pto"), text.clone(), None, "a2a3", Level::Automatic).expect("it is read");
    assert_eq!(again, text);
    // The type that says more is not that of the part.
    let wrong = text.replace("vec, 4x64xf32, valid=?x64>", "vec, 4x64xf32>");
    let refused = written(Path::new("k.pto"), wrong, None, "a2a3", Level::Automatic);
    assert!(refused.is_err_and(|why| why.starts_with("E1403")));
}

/// How often hazards are found in a text on a2a3, by an error or by a warning.
fn hazards(text: &str) -> usize {
    let mut session = Session::new("a2a3", &[]).expect("a target");
    let unit = session.load_text(Path::new("k.pto"), text.into());
    if let Ok(entry) = unit.entry(None, "emit") {
        check_entry(&mut session, &unit, &entry);
    }
    let errors: Vec<String> = session.diagnostics.iter().filter(|d| d.is_error()).map(|d| d.message.clone()).collect();
    assert_eq!(errors, [""; 0]);
    session.diagnostics.iter().filter(|d| d.code == codes::RACE_NOT_EXCLUDED).count()
}

/// Where the text orders the pipes, a core's next block begins when this one is done only if a barrier says so.
#[test]
fn blocks_of_one_core_are_ordered_by_the_text() {
    let view = "!pto.tensor_view<?x?xf32>";
    let part = "!pto.partition_tensor_view<1x64xf32>";
    let tile = "!pto.tile_buf<vec, 1x64xf32>";
    let text = |end: &str| {
        format!(
            "module {{
  func.func @k(%x: !pto.ptr<f32>, %y: !pto.ptr<f32>, %N: index) {{
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c64 = arith.constant 64 : index
    %a0 = arith.constant 0 : i64
    %a1 = arith.constant 256 : i64
    %b = pto.get_block_idx
    %bi = arith.index_cast %b : i64 to index
    %n = pto.get_block_num
    %ni = arith.index_cast %n : i64 to index
    %xv = pto.make_tensor_view %x, shape = [%N, %c64], strides = [%c64, %c1] : {view}
    %yv = pto.make_tensor_view %y, shape = [%N, %c64], strides = [%c64, %c1] : {view}
    scf.for %i = %bi to %N step %ni {{
      %t = pto.alloc_tile addr = %a0 : {tile}
      %u = pto.alloc_tile addr = %a1 : {tile}
      %p = pto.partition_view %xv, offsets = [%i, %c0], sizes = [%c1, %c64] : {view} -> {part}
      %q = pto.partition_view %yv, offsets = [%i, %c0], sizes = [%c1, %c64] : {view} -> {part}
      pto.tload ins(%p : {part}) outs(%t : {tile})
      pto.set_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID0>]
      pto.wait_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID0>]
      pto.texp ins(%t : {tile}) outs(%u : {tile})
      pto.set_flag[<PIPE_V>, <PIPE_MTE3>, <EVENT_ID0>]
      pto.wait_flag[<PIPE_V>, <PIPE_MTE3>, <EVENT_ID0>]
      pto.tstore ins(%u : {tile}) outs(%q : {part})
{end}    }}
    return
  }}
}}
"
        )
    };
    assert_eq!(hazards(&text("      pto.barrier <PIPE_ALL>\n")), 0);
    // TLOAD and TEXP of a block overwrite what the block before may still read.
    assert_eq!(hazards(&text("")), 2);
    assert_eq!(hazards(&text("      pto.barrier <PIPE_V>\n")), 2);
}

/// TASSIGN as pto-isa's pages have it: it gives nothing, and binds the tile anew.
#[test]
fn tiles_are_bound_in_all_forms() {
    let text = |bind: &str| {
        format!(
            "module {{
  func.func @k(%v: !pto.tile<1x64xf32>, %n: i64, %i: index) {{
    %a = arith.constant 512 : i64
    %t = pto.alloc_tile : !pto.tile_buf<vec, 1x64xf32>
    {bind}
    return
  }}
}}
"
        )
    };
    let parsed = |bind: &str| {
        let text = text(bind);
        let parsed = ptoc_pto::parse(FileId(0), &text);
        let mut found = parsed.diagnostics;
        found.extend(ptoc_pto::verify::check(&parsed.module));
        (ptoc_pto::print(&parsed.module) == text, found.iter().map(|d| d.code.to_string()).collect::<Vec<_>>())
    };
    for bind in [
        "tassign %v, %i : !pto.tile<1x64xf32>, index",
        "pto.tassign %v, %n : !pto.tile<1x64xf32>, i64",
        "pto.tassign ins(%t, %a : !pto.tile_buf<vec, 1x64xf32>, i64)",
        "pto.tassign ins(%t, %n : !pto.tile_buf<vec, 1x64xf32>, i64)",
        "%u = pto.tassign %t, %a : !pto.tile_buf<vec, 1x64xf32> -> !pto.tile_buf<vec, 1x64xf32>",
    ] {
        assert_eq!(parsed(bind), (true, Vec::new()), "{bind}");
    }
    for (bind, code) in [
        ("pto.tassign ins(%t, %v : !pto.tile_buf<vec, 1x64xf32>, !pto.tile<1x64xf32>)", "E1409"),
        ("tassign %t, %n : !pto.tile<1x64xf32>, i64", "E1403"),
        ("pto.tassign ins(%t : !pto.tile_buf<vec, 1x64xf32>)", "E1400"),
        ("%u = tassign %t, %a : !pto.tile_buf<vec, 1x64xf32>, i64", "E1401"),
    ] {
        assert_eq!(parsed(bind).1, [code], "{bind}");
    }
    let source = "module {
  func.func @k(%x: !pto.ptr<f32>, %y: !pto.ptr<f32>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c64 = arith.constant 64 : index
    %a = arith.constant 512 : i64
    %xv = pto.make_tensor_view %x, shape = [%c1, %c64], strides = [%c64, %c1] : !pto.tensor_view<?x?xf32>
    %yv = pto.make_tensor_view %y, shape = [%c1, %c64], strides = [%c64, %c1] : !pto.tensor_view<?x?xf32>
    %p = pto.partition_view %xv, offsets = [%c0, %c0], sizes = [%c1, %c64] : !pto.tensor_view<?x?xf32> -> \
!pto.partition_tensor_view<1x64xf32>
    %q = pto.partition_view %yv, offsets = [%c0, %c0], sizes = [%c1, %c64] : !pto.tensor_view<?x?xf32> -> \
!pto.partition_tensor_view<1x64xf32>
    %t = pto.alloc_tile : !pto.tile_buf<vec, 1x64xf32>
    pto.tassign ins(%t, %a : !pto.tile_buf<vec, 1x64xf32>, i64)
    pto.tload ins(%p : !pto.partition_tensor_view<1x64xf32>) outs(%t : !pto.tile_buf<vec, 1x64xf32>)
    pto.tstore ins(%t : !pto.tile_buf<vec, 1x64xf32>) outs(%q : !pto.partition_tensor_view<1x64xf32>)
    return
  }
}
";
    let placed = written(Path::new("k.pto"), source.into(), None, "a2a3", Level::Placed).expect("it is read");
    assert!(placed.contains("%c512_i64 = arith.constant 512 : i64") && placed.contains("addr = %c512_i64"), "{placed}");
}

/// A column that is cut out of a tile is computed with as a row of its bytes. PTOAS takes no `set_validshape` of that.
#[test]
fn columns_that_are_cut_out_and_valid_in_part() {
    const TEXT: &str = "kernel k(x: in f32[A, B], y: out f32[A]) {\n    grid (i in tiles(A, 32));\n    let s = tile \
                        Vec<f32, 32, 1>;\n    s = 2.0;\n    let w = s.tile(tiles(32, 8)[1], _);\n    w = w * 2.0 + \
                        1.0;\n    TSTORE(col(y).tile(i, _), s.valid(i, 1));\n}\n";
    for level in [Level::Automatic, Level::Explicit] {
        let why = written(Path::new("k.tile"), TEXT.into(), None, "a5", level).expect_err("it is refused");
        assert!(why.starts_with("E1405 ") && why.contains("a column that is cut out of a tile"), "{why}");
    }
}

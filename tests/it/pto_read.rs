//! PTO text computes what its operations mean: numbers without a sign, masks in memory, flags whose number the launch
//! knows, calls, and other shapes of a tile.

use crate::pto::written;
use ptoc_driver::stages::Level;
use std::path::{Path, PathBuf};

/// An array as numpy stores it.
fn npy(dtype: &str, shape: &[usize], data: &[u8]) -> Vec<u8> {
    let shape: String = shape.iter().map(|n| format!("{n}, ")).collect();
    let mut header = format!("{{'descr': '{dtype}', 'fortran_order': False, 'shape': ({shape}), }}");
    while (header.len() + 11) % 64 != 0 {
        header.push(' ');
    }
    header.push('\n');
    let mut file = b"\x93NUMPY\x01\x00".to_vec();
    file.extend((header.len() as u16).to_le_bytes());
    file.extend(header.as_bytes());
    file.extend(data);
    file
}

fn floats(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_le_bytes()).collect()
}

/// Arrays in a folder, and kernels that are run on them.
struct Launch {
    folder: tempfile::TempDir,
}

impl Launch {
    fn new() -> Launch {
        Launch { folder: tempfile::tempdir().expect("a folder") }
    }

    fn array(&self, name: &str, dtype: &str, shape: &[usize], data: &[u8]) -> String {
        let path = self.folder.path().join(name);
        std::fs::write(&path, npy(dtype, shape, data)).expect("a file");
        path.display().to_string()
    }

    /// Runs a kernel on both back ends; `--expect` among the arguments says what it must give.
    fn run(&self, file: &Path, kernel: &str, args: &[&str]) {
        for backend in ["interp", "cpu"] {
            let mut all = ["ptoc", "run"].map(String::from).to_vec();
            all.extend([file.display().to_string(), kernel.into(), "--backend".into(), backend.into()]);
            all.extend(args.iter().map(|a| (*a).to_string()));
            let (mut shown, mut err) = (Vec::new(), Vec::new());
            let mut io = ptoc_cli::io::Io::new(&mut shown, &mut err);
            let status = ptoc_cli::execute(all.into_iter().map(Into::into), &mut io);
            assert_eq!(status, ptoc_cli::DONE, "{backend} {args:?}: {}", String::from_utf8_lossy(&err));
        }
    }
}

/// A text of ptoc-pto's tests.
fn text(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../compiler/pto/tests/it/texts").join(name)
}

/// `arith` on numbers that may be negative where it takes them without a sign, and on NaN.
#[test]
fn numbers_of_the_launch() {
    let launch = Launch::new();
    let nan = f32::NAN;
    for (n, m, f, g, b) in [
        (-7i32, 2i32, 1.0f32, 2.0f32, -1i8),
        (7, -2, nan, 3.0, 5),
        (i32::MIN, 3, 5.0, nan, -128),
        (100, 7, 2.0, 2.0, 0),
    ] {
        let (un, um) = (n as u32, m as u32);
        let below = i64::from(un < um);
        let exact = f64::from(n) / f64::from(m);
        let largest = if f.is_nan() {
            g
        } else if g.is_nan() {
            f
        } else {
            f.max(g)
        };
        let expected: [i64; 12] = [
            i64::from(un),
            i64::from((un / um) as i32),
            i64::from(b as u8),
            below,
            -below,
            (exact.ceil() - exact.floor()) as i64,
            i64::from(un.div_ceil(um)),
            i64::from(f.partial_cmp(&g).is_none_or(|o| o.is_lt())),
            largest as i64,
            i64::from(u32::MAX),
            i64::from(un.checked_shr(um).unwrap_or(0).max(un)),
            i64::from(n) + 1,
        ];
        let data: Vec<u8> = expected.iter().flat_map(|v| v.to_le_bytes()).collect();
        let expect = format!("x={}", launch.array("x.npy", "<i8", &[12], &data));
        let given = [
            format!("n={n}"),
            format!("m={m}"),
            format!("f={f:?}").to_lowercase(),
            format!("g={g:?}").to_lowercase(),
            format!("b={b}"),
        ];
        let mut args = vec!["-D", "x_len=12", "--expect", &expect];
        args.extend(given.iter().flat_map(|d| ["-D", d]));
        launch.run(&text("numbers.pto"), "numbers", &args);
    }
}

/// Masks are bytes in memory: eight elements of a row in each, the first in the lowest bit.
#[test]
fn masks_in_memory() {
    let launch = Launch::new();
    let x: Vec<f32> = (0..16 * 64).map(|i| ((i * 37 % 101) as f32 - 50.0) / 8.0).collect();
    let mut mask = vec![0u8; 16 * 32];
    for i in (0..x.len()).filter(|i| x[*i] > 0.0) {
        mask[i / 64 * 32 + i % 64 / 8] |= 1 << (i % 8);
    }
    let input = format!("x={}", launch.array("x.npy", "<f4", &[16, 64], &floats(&x)));
    let packed = format!("m={}", launch.array("m.npy", "|u1", &[16, 32], &mask));
    launch.run(&text("masks.pto"), "compare", &["--in", &input, "--expect", &packed]);
    // What is beside a row's elements is not looked at.
    let noisy: Vec<u8> = mask.iter().enumerate().map(|(i, b)| if i % 32 < 8 { *b } else { 0xa5 }).collect();
    let packed = format!("m={}", launch.array("n.npy", "|i1", &[16, 32], &noisy));
    let absolute: Vec<f32> = x.iter().map(|v| v.abs()).collect();
    let expect = format!("y={}", launch.array("y.npy", "<f4", &[16, 64], &floats(&absolute)));
    launch.run(&text("masks.pto"), "select", &["--in", &input, "--in", &packed, "--expect", &expect]);
    // Rows change places, and a tile that nothing has written may be scattered to.
    let rows: Vec<u8> = (0..16 * 64).flat_map(|i: i32| (i / 64 * 5 % 16).to_le_bytes()).collect();
    let places = format!("i={}", launch.array("i.npy", "<i4", &[16, 64], &rows));
    let mut moved = vec![0f32; 16 * 64];
    (0..16).for_each(|r| moved[r * 5 % 16 * 64..][..64].copy_from_slice(&x[r * 64..][..64]));
    let expect = format!("y={}", launch.array("z.npy", "<f4", &[16, 64], &floats(&moved)));
    launch.run(&text("masks.pto"), "scatter", &["--in", &input, "--in", &places, "--expect", &expect]);
}

#[test]
fn flags_that_the_launch_numbers_and_calls() {
    let launch = Launch::new();
    let x: Vec<f32> = (0..64 * 64).map(|i| i as f32).collect();
    let array = launch.array("x.npy", "<f4", &[64, 64], &floats(&x));
    for file in ["events.pto", "arrays.pto"] {
        launch.run(&text(file), "turns", &["--in", &format!("x={array}"), "--expect", &format!("y={array}")]);
    }
    let x: Vec<f32> = (0..16 * 64).map(|i| i as f32).collect();
    let nine: Vec<f32> = x.iter().map(|v| v * 9.0).collect();
    let input = format!("x={}", launch.array("a.npy", "<f4", &[16, 64], &floats(&x)));
    let expect = format!("x={}", launch.array("b.npy", "<f4", &[16, 64], &floats(&nine)));
    launch.run(&text("calls.pto"), "twice", &["--in", &input, "--expect", &expect, "-D", "s=3.0"]);
}

/// Arguments that are views of a known size are arrays; parts of tiles may be valid in part; a tile of an outer block
/// may be said to be valid in another part.
#[test]
fn parts_of_tiles() {
    let launch = Launch::new();
    let x: Vec<f32> = (0..16 * 64).map(|i| i as f32).collect();
    let input = format!("x={}", launch.array("x.npy", "<f4", &[16, 64], &floats(&x)));
    for n in [1, 40, 64] {
        let y: Vec<f32> = x.iter().enumerate().map(|(i, v)| if i % 64 < n { *v } else { v * 2.0 }).collect();
        let expect = format!("y={}", launch.array("y.npy", "<f4", &[16, 64], &floats(&y)));
        launch.run(&text("parts.pto"), "parts", &["--in", &input, "--expect", &expect, "-D", &format!("n={n}")]);
    }
}

/// A reshape is another tile in the language, and another view of the same bytes in the text.
#[test]
fn reshapes_are_written_and_read() {
    const KERNEL: &str = "kernel k(x: in f32[16, 64], y: out f32[32, 32]) {\n    let a = tile Vec<f32, 16, 64>;\n    \
                          let b = tile Vec<f32, 32, 32>;\n    TLOAD(a, x);\n    TRESHAPE(b, a);\n    TADDS(b, b, \
                          1.0);\n    TSTORE(y, b);\n}\n";
    let launch = Launch::new();
    let x: Vec<f32> = (0..16 * 64).map(|i| i as f32).collect();
    let more: Vec<f32> = x.iter().map(|v| v + 1.0).collect();
    let input = format!("x={}", launch.array("x.npy", "<f4", &[16, 64], &floats(&x)));
    let expect = format!("y={}", launch.array("y.npy", "<f4", &[32, 32], &floats(&more)));
    for level in [Level::Automatic, Level::Explicit] {
        let made = written(Path::new("k.tile"), KERNEL.into(), None, "a2a3", level).expect("it can be said");
        assert!(made.contains("pto.treshape"), "{made}");
        let file = launch.folder.path().join("k.pto");
        std::fs::write(&file, made).expect("a file");
        launch.run(&file, "k", &["--in", &input, "--expect", &expect]);
    }
}

/// Arrays whose columns are contiguous, in several blocks of each mode: a window's offset is one of each mode.
#[test]
fn windows_of_columns() {
    const TEXT: &str = "kernel rows(x: in f32[(A, B) : (1, A)], y: out f32[A, B]) {\n    grid (i in tiles(A, 16), j in \
                        tiles(B, 64));\n    TSTORE(y.tile(i, j), Vec(x.tile(i, j)) * 1.0);\n}\n\
                        kernel columns(x: in f32[(A, B) : (1, A)], y: out f32[(A, B) : (1, A)]) {\n    grid (i in \
                        tiles(A, 16), j in tiles(B, 8));\n    let a = tile Vec<f32, i, j, layout = DN>;\n    TLOAD(a, \
                        x.tile(i, j));\n    TSTORE(y.tile(i, j), a);\n}\n\
                        kernel known(x: in f32[(37, 100) : (1, 37)], y: out f32[37, 100]) {\n    grid (i in tiles(37, \
                        16), j in tiles(100, 64));\n    TSTORE(y.tile(i, j), Vec(x.tile(i, j)) * 1.0);\n}\n";
    const ROWS: usize = 37;
    const COLS: usize = 100;
    let launch = Launch::new();
    // The text has the array of columns.
    let columns: Vec<f32> = (0..ROWS * COLS).map(|n| n as f32).collect();
    let rows: Vec<f32> = (0..ROWS * COLS).map(|n| columns[n % COLS * ROWS + n / COLS]).collect();
    let columns = launch.array("c.npy", "<f4", &[COLS, ROWS], &floats(&columns));
    let rows = launch.array("r.npy", "<f4", &[ROWS, COLS], &floats(&rows));
    for (name, y) in [("rows", &rows), ("columns", &columns), ("known", &rows)] {
        for (level, target) in [(Level::Automatic, "a2a3"), (Level::Explicit, "a5")] {
            let made = written(Path::new("k.tile"), TEXT.into(), Some(name), target, level).expect("it can be said");
            let file = launch.folder.path().join("k.pto");
            std::fs::write(&file, made).expect("a file");
            let (x, y) = (format!("x={columns}"), format!("y={y}"));
            launch.run(&file, name, &["--target", target, "--in", &x, "--expect", &y]);
        }
    }
}

/// Pointers of later versions of PTOAS say where they point, and `descending` may be said to be false.
#[test]
fn words_of_later_versions() {
    const TEXT: &str = "module {\n  func.func @count(%y: !pto.ptr<i32, gm>) {\n    %c0 = arith.constant 0 : index\n    \
                        %c1 = arith.constant 1 : index\n    %n = arith.constant 64 : index\n    \
                        %first = arith.constant 5 : i32\n    \
                        %v = pto.make_tensor_view %y, shape = [%c1, %n], strides = [%n, %c1] : \
                        !pto.tensor_view<1x64xi32>\n    \
                        %p = pto.partition_view %v, offsets = [%c0, %c0], sizes = [%c1, %n] : \
                        !pto.tensor_view<1x64xi32> -> !pto.partition_tensor_view<1x64xi32>\n    \
                        %t = pto.alloc_tile : !pto.tile_buf<vec, 1x64xi32>\n    \
                        pto.tci ins(%first : i32) outs(%t : !pto.tile_buf<vec, 1x64xi32>) {descending = false}\n    \
                        pto.tstore ins(%t : !pto.tile_buf<vec, 1x64xi32>) outs(%p : \
                        !pto.partition_tensor_view<1x64xi32>)\n    return\n  }\n}\n";
    let launch = Launch::new();
    let file = launch.folder.path().join("count.pto");
    std::fs::write(&file, TEXT).expect("a file");
    let y: Vec<u8> = (5..69i32).flat_map(i32::to_le_bytes).collect();
    let expect = format!("y={}", launch.array("y.npy", "<i4", &[1, 64], &y));
    launch.run(&file, "count", &["--expect", &expect]);
}

/// A load of each array into a tile of its name, lines between, and a store of each tile to its array.
fn through_tiles(name: &str, loads: &[(&str, &str, &str)], lines: &str, stores: &[(&str, &str, &str)]) -> String {
    let mut head = String::new();
    let mut before = String::new();
    let mut after = String::new();
    let mut params = Vec::new();
    for (load, (array, shape, dtype)) in loads.iter().map(|l| (true, l)).chain(stores.iter().map(|l| (false, l))) {
        let (rows, cols) = shape.split_once('x').expect("rows and columns");
        let (view, part, tile) = (
            format!("!pto.tensor_view<{shape}x{dtype}>"),
            format!("!pto.partition_tensor_view<{shape}x{dtype}>"),
            format!("!pto.tile_buf<vec, {shape}x{dtype}{}>", if cols == "1" { ", blayout=col_major" } else { "" }),
        );
        params.push(format!("%{array}: !pto.ptr<{dtype}>"));
        head += &format!(
            "    %{array}_r = arith.constant {rows} : index\n    %{array}_c = arith.constant {cols} : index\n    \
             %{array}_v = pto.make_tensor_view %{array}, shape = [%{array}_r, %{array}_c], strides = [%{array}_c, \
             %one] : {view}\n    %{array}_p = pto.partition_view %{array}_v, offsets = [%zero, %zero], sizes = \
             [%{array}_r, %{array}_c] : {view} -> {part}\n    %{array}_t = pto.alloc_tile : {tile}\n"
        );
        let (ins, outs) = if load { (("p", &part), ("t", &tile)) } else { (("t", &tile), ("p", &part)) };
        let op = if load { "tload" } else { "tstore" };
        let line = format!("    pto.{op} ins(%{array}_{} : {}) outs(%{array}_{} : {})\n", ins.0, ins.1, outs.0, outs.1);
        if load { &mut before } else { &mut after }.push_str(&line);
    }
    let params = params.join(", ");
    format!(
        "module {{\n  func.func @{name}({params}) {{\n    %zero = arith.constant 0 : index\n    \
         %one = arith.constant 1 : index\n{head}{before}{lines}{after}    return\n  }}\n}}\n"
    )
}

/// Constants and sums of few bits are below 0 where their highest bit is set.
#[test]
fn numbers_of_few_bits() {
    let lines = [
        "%ones = arith.constant 255 : i8",
        "%hundred = arith.constant 100 : i8",
        "%seven = arith.constant 7 : i8",
        "%sum = arith.addi %hundred, %hundred : i8",
        "%part = arith.divui %sum, %seven : i8",
        "%square = arith.muli %hundred, %hundred : i8",
        "%rest = arith.remui %square, %seven : i8",
        "%least = arith.constant -1 : index",
        "%less = arith.cmpi ult, %least, %n : index",
        "%bit = arith.extui %less : i1 to i8",
    ];
    let stores = ["ones", "part", "rest", "bit"];
    let mut text = String::from("module {\n  func.func @bits(%y: !pto.ptr<i8>, %n: index) {\n");
    lines.iter().for_each(|l| text += &format!("    {l}\n"));
    for (n, name) in stores.iter().enumerate() {
        text += &format!(
            "    %at{n} = arith.constant {n} : index\n    pto.store_scalar %{name}, %y[%at{n}] : !pto.ptr<i8>, i8\n"
        );
    }
    text += "    return\n  }\n}\n";
    let launch = Launch::new();
    let file = launch.folder.path().join("bits.pto");
    std::fs::write(&file, text).expect("a file");
    // 200 / 7, and 10000 of 8 bits is 16.
    let y = launch.array("y.npy", "|i1", &[4], &[255, 28, 2, 0]);
    launch.run(&file, "bits", &["--expect", &format!("y={y}"), "-D", "y_len=4", "-D", "n=100"]);
}

/// A tile that cannot be scattered to is told once, and not for what fills it before.
#[test]
fn scatters_to_other_memories() {
    let (src, rows) = ("!pto.tile_buf<vec, 16x64xf32>", "!pto.tile_buf<vec, 16x64xi32>");
    let dst = "!pto.tile_buf<acc, 16x64xf32, blayout=col_major, slayout=row_major, fractal=1024>";
    let lines = format!(
        "    %d = pto.alloc_tile : {dst}\n    pto.tscatter ins(%x_t, %i_t : {src}, {rows}) outs(%d : {dst})\n    \
         pto.tstore ins(%d : {dst}) outs(%y_p : !pto.partition_tensor_view<16x64xf32>)\n"
    );
    let unset = format!("    pto.tstore ins(%y_t : {src}) outs(%y_p : !pto.partition_tensor_view<16x64xf32>)\n");
    let loads = [("x", "16x64", "f32"), ("i", "16x64", "i32")];
    let text = through_tiles("scatter", &loads, &lines, &[("y", "16x64", "f32")]).replace(&unset, "");
    let file = Path::new("scatter.pto");
    let mut session = ptoc_driver::session::Session::new("a2a3", &[]).expect("a target");
    let unit = session.load_text(file, text);
    for entry in &unit.entries() {
        ptoc_driver::check::check_entry(&mut session, &unit, entry);
    }
    let errors: Vec<_> = session.diagnostics.iter().filter(|d| d.is_error()).map(|d| d.message.clone()).collect();
    assert_eq!(errors, ["operand `dst` of `TSCATTER` lives in Vec, this tile in Acc"]);
}

/// An element of a tile without a sign is set to a number, which has none in the text.
#[test]
fn elements_without_a_sign() {
    let tile = "!pto.tile_buf<vec, 1x32xui8>";
    let lines = format!(
        "    %three = arith.constant -3 : i8\n    %seven = arith.addi %n, %three : i8\n    \
         pto.tsetval ins(%one, %seven : index, i8) outs(%x_t : {tile})\n    \
         pto.tstore ins(%x_t : {tile}) outs(%y_p : !pto.partition_tensor_view<1x32xui8>)\n"
    );
    // What is stored is the tile that was loaded.
    let unset = format!("    pto.tstore ins(%y_t : {tile}) outs(%y_p : !pto.partition_tensor_view<1x32xui8>)\n");
    let text = through_tiles("set", &[("x", "1x32", "ui8")], &lines, &[("y", "1x32", "ui8")])
        .replace("%y: !pto.ptr<ui8>", "%y: !pto.ptr<ui8>, %n: i8")
        .replace(&unset, "");
    let launch = Launch::new();
    let file = launch.folder.path().join("set.pto");
    std::fs::write(&file, text).expect("a file");
    let x: Vec<u8> = (0..32).collect();
    let mut y = x.clone();
    y[1] = 252;
    let (x, y) = (launch.array("x.npy", "|u1", &[1, 32], &x), launch.array("y.npy", "|u1", &[1, 32], &y));
    launch.run(&file, "set", &["--in", &format!("x={x}"), "--expect", &format!("y={y}"), "-D", "n=-1"]);
}

/// Counts of bytes, as pto-isa's page of THISTOGRAM has them: of the upper byte, and of the lower one where the upper
/// one is the row's.
#[test]
fn histograms() {
    const ROWS: usize = 8;
    let (src, idx, dst) = (
        "!pto.tile_buf<vec, 8x64xui16>",
        "!pto.tile_buf<vec, 8x1xui8, blayout=col_major>",
        "!pto.tile_buf<vec, 8x256xui32>",
    );
    let line =
        |to: &str, low: &str| format!("    pto.thistogram ins(%x_t, %i_t : {src}, {idx}) outs(%{to}_t : {dst}){low}\n");
    let lines = line("high", "") + &line("low", " {isMSB = false}");
    let text = through_tiles(
        "counts",
        &[("x", "8x64", "ui16"), ("i", "8x1", "ui8")],
        &lines,
        &[("high", "8x256", "ui32"), ("low", "8x256", "ui32")],
    );
    let launch = Launch::new();
    let file = launch.folder.path().join("counts.pto");
    std::fs::write(&file, text).expect("a file");
    let x: Vec<u16> = (0..ROWS * 64).map(|n| (n * 7919 % 5 * 256 + n * 31 % 7) as u16).collect();
    let wanted: Vec<u8> = (0..ROWS).map(|r| (r % 5) as u8).collect();
    let (mut high, mut low) = (vec![0u32; ROWS * 256], vec![0u32; ROWS * 256]);
    for (n, v) in x.iter().enumerate() {
        let (row, [upper, lower]) = (n / 64, v.to_be_bytes());
        high[row * 256 + usize::from(upper)] += 1;
        low[row * 256 + usize::from(lower)] += u32::from(upper == wanted[row]);
    }
    let bytes = |v: &[u32]| v.iter().flat_map(|n| n.to_le_bytes()).collect::<Vec<u8>>();
    let x: Vec<u8> = x.iter().flat_map(|n| n.to_le_bytes()).collect();
    let args = [
        "--target".to_string(),
        "a5".into(),
        "--in".into(),
        format!("x={}", launch.array("x.npy", "<u2", &[ROWS, 64], &x)),
        "--in".into(),
        format!("i={}", launch.array("i.npy", "|u1", &[ROWS, 1], &wanted)),
        "--expect".into(),
        format!("high={}", launch.array("h.npy", "<u4", &[ROWS, 256], &bytes(&high))),
        "--expect".into(),
        format!("low={}", launch.array("l.npy", "<u4", &[ROWS, 256], &bytes(&low))),
    ];
    launch.run(&file, "counts", &args.iter().map(String::as_str).collect::<Vec<_>>());
}

/// The columns at which a comparison holds, counted from a number, and how many there are.
#[test]
fn gathers_by_comparison() {
    let (src, tmp, dst) =
        ("!pto.tile_buf<vec, 1x32xf16>", "!pto.tile_buf<vec, 1x32xui8>", "!pto.tile_buf<vec, 1x32xi32>");
    let lines = format!(
        "    %limit = arith.constant 2.0 : f16\n    %tmp = pto.alloc_tile : {tmp}\n    \
         %n = pto.alloc_tile : {dst}\n    \
         pto.tgather ins(%x_t, %limit, %tmp : {src}, f16, {tmp}) outs(%y_t, %n : {dst}, {dst}) {{offset = 7 : i32, \
         cmpMode = #pto<cmp gt>}}\n    %c0 = arith.constant 0 : index\n    \
         %count = pto.tgetval ins(%n, %c0 : {dst}, index) outs : i32\n    \
         pto.store_scalar %count, %counts[%c0] : !pto.ptr<i32>, i32\n"
    );
    let text = through_tiles("above", &[("x", "1x32", "f16")], &lines, &[("y", "1x32", "i32")])
        .replace("%y: !pto.ptr<i32>", "%y: !pto.ptr<i32>, %counts: !pto.ptr<i32>");
    let launch = Launch::new();
    let file = launch.folder.path().join("above.pto");
    std::fs::write(&file, text).expect("a file");
    // Halves of 0, 1, 2 and 3.
    let halves = [0u16, 0x3c00, 0x4000, 0x4200];
    let x: Vec<u16> = (0..32).map(|n| halves[n * 5 % 7 % 4]).collect();
    let mut y: Vec<i32> = (0..32).filter(|n| x[*n as usize] == 0x4200).map(|n| n + 7).collect();
    let count = y.len() as i32;
    assert!((1..32).contains(&count));
    y.resize(32, 0);
    let x: Vec<u8> = x.iter().flat_map(|n| n.to_le_bytes()).collect();
    let y: Vec<u8> = y.iter().flat_map(|n| n.to_le_bytes()).collect();
    let args = [
        "--in".to_string(),
        format!("x={}", launch.array("x.npy", "<f2", &[1, 32], &x)),
        "--expect".into(),
        format!("y={}", launch.array("y.npy", "<i4", &[1, 32], &y)),
        "--expect".into(),
        format!("counts={}", launch.array("n.npy", "<i4", &[1], &count.to_le_bytes())),
        "-D".into(),
        "counts_len=1".into(),
    ];
    launch.run(&file, "above", &args.iter().map(String::as_str).collect::<Vec<_>>());
}

/// A function may have the name of anything: of an instruction, a dtype or a location too.
#[test]
fn functions_have_any_name() {
    let launch = Launch::new();
    let x = launch.array("x.npy", "<f4", &[8, 8], &floats(&[1.5; 64]));
    for (name, own) in [
        ("TADD", "TADD_"),
        ("Vec", "Vec_"),
        ("f32", "f32_"),
        ("index", "index_"),
        ("exp", "exp"),
        ("kernel", "kernel_"),
        ("let", "let_"),
    ] {
        let line = "    pto.tmov ins(%x_t : !pto.tile_buf<vec, 8x8xf32>) outs(%y_t : !pto.tile_buf<vec, 8x8xf32>)\n";
        let text = through_tiles(name, &[("x", "8x8", "f32")], line, &[("y", "8x8", "f32")]);
        let file = launch.folder.path().join("named.pto");
        std::fs::write(&file, text).expect("a file");
        for kernel in [name, own] {
            launch.run(&file, kernel, &["--in", &format!("x={x}"), "--expect", &format!("y={x}")]);
        }
        // It is printed by its own name.
        let text = std::fs::read_to_string(&file).expect("readable");
        let made = written(&file, text, Some(name), "a2a3", Level::Automatic).expect("it can be said");
        assert!(made.contains(&format!("func.func @{name}(")), "{made}");
    }
}

/// Values may have the names of words of the language, and keep them.
#[test]
fn values_have_any_name() {
    let text = TEXT_OF_WORDS;
    let made = written(Path::new("k.pto"), text.into(), None, "a2a3", Level::Automatic).expect("it is read");
    assert!(made.contains("func.func @kernel(%let: !pto.ptr<f32>, %grid: index)"), "{made}");
    let again = written(Path::new("k.pto"), made.clone(), None, "a2a3", Level::Automatic).expect("it is read");
    assert_eq!(again, made);
}

const TEXT_OF_WORDS: &str = "module {
  func.func @kernel(%let: !pto.ptr<f32>, %grid: index) attributes {pto.entry} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c64 = arith.constant 64 : index
    %while = arith.constant 1.0 : f32
    %out = pto.make_tensor_view %let, shape = [%grid, %c64], strides = [%c64, %c1] : !pto.tensor_view<?x?xf32>
    scf.for %in = %c0 to %grid step %c1 {
      %tile = pto.alloc_tile : !pto.tile_buf<vec, 1x64xf32>
      pto.texpands ins(%while : f32) outs(%tile : !pto.tile_buf<vec, 1x64xf32>)
      %p = pto.partition_view %out, offsets = [%in, %c0], sizes = [%c1, %c64] : !pto.tensor_view<?x?xf32> -> \
!pto.partition_tensor_view<1x64xf32>
      pto.tstore ins(%tile : !pto.tile_buf<vec, 1x64xf32>) outs(%p : !pto.partition_tensor_view<1x64xf32>)
    }
    return
  }
}
";

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

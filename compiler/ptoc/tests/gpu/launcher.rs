//! Launchers in C: they compile as C and C++ without warnings, pass what a launch of ptoc's own passes, and say what is
//! wrong with a call. The driver is the one that is none.

use super::{Machine, PRODUCT};
use std::fs;
use std::path::Path;
use std::process::Command;

const SCALE: &str = "\
kernel scale(x: in f32[M, N], a: f32, y: out f32[M, N], from: i32 = 0)
    where N <= 100
{
    grid (i in tiles(M, 4), j in tiles(N, 64));
    let row = i.start;
    assert(row + index(from) < 20, \"row {row} is one too many\");
    TSTORE(y.tile(i, j), Vec(x.tile(i, j)) * a);
}
";

/// Numbers of the launch function that take all its arithmetic.
const NUMBERS: &str = "\
fn twice(n: index) -> index { n * 2 }
kernel numbers(x: inout f32[N], s: f32, h: f16, n: i32)
    where (n - 7) / 2 * 2 + (n - 7) % 2 == n - 7, s * 2.0 > -4.0, h < 3.0, twice(min(N, 500)) < 900,
          N % 3 != 2 || n > 100, (n << 3) >> 3 == n
{
    grid (i in tiles(ceil_div(N, 2) + max(index(n), 3) - min(index(n), 9), 8));
    if i.index == 0 { TSTORE(x[0..1], Vec(x[0..1]) + s); }
}
";

const MAIN: &str = r#"
#include "k.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failures;
static void expect(const char *what, int32_t got, int32_t want, const ptoc_status *s) {
    if (got == want && (want == 0 || s->code == want)) return;
    failures++;
    fprintf(stderr, "%s: %d and not %d: %s\n", what, (int)got, (int)want, s->message ? s->message : "");
}
static _Alignas(256) float x[4096], y[4096];
static _Alignas(256) char room[1 << 16];

int main(void) {
    ptoc_cuda k, none;
    ptoc_status s;
    size_t bytes;
    memset(&s, 0, sizeof s);
    memset(&none, 0, sizeof none);
    expect("load", scale_load(&k, NULL, &s), 0, &s);
    if (k.resident != 2 * 132) return 2;
    bytes = scale_workspace(&k, 1.0f, 0, 40, 8);
    if (bytes < 16 + 40 * 10 || bytes > sizeof room) return 3;
    if (scale_workspace(&k, 1.0f, 0, 4, 101) || scale_workspace(&k, 1.0f, 0, -1, 8)) return 4;
    memset(room, 0x55, sizeof room);
    expect("right", scale(&k, x, 1.5f, y, 0, 40, 8, room, bytes, NULL, &s), 0, &s);
    expect("waited", scale_wait(room, NULL, &s), 0, &s);
    /* What a CTA would have left of block 7, the third slot of ten. */
    ((uint64_t *)room)[1] = (uint64_t)7 << 32;
    for (int check = 0; check < 4; check++) {
        ((uint64_t *)room)[1] = (uint64_t)7 << 32 | check;
        ((uint64_t *)room)[2 + 5 * 7] = 1;
        ((uint64_t *)room)[3 + 5 * 7] = 28;
        if (scale_wait(room, NULL, &s) == 1109) break;
    }
    if (s.code != 1109 || s.block != 7 || s.count != 1 || s.numbers[0] != 28) return 5;
    if (!strstr(s.message, "row {0} is one too many")) return 6;
    ((uint64_t *)room)[1] = 1000;
    expect("spoiled", scale_wait(room, NULL, &s), 732, &s);
    expect("no status", scale(&k, x, 1.0f, y, 0, 4, 101, room, bytes, NULL, NULL), 1105, (s.code = 1105, &s));
    expect("where", scale(&k, x, 1.0f, y, 0, 4, 101, room, bytes, NULL, &s), 1105, &s);
    expect("null", scale(&k, NULL, 1.0f, y, 0, 4, 8, room, bytes, NULL, &s), 747, &s);
    expect("empty", scale(&k, NULL, 1.0f, NULL, 0, 0, 8, room, bytes, NULL, &s), 0, &s);
    expect("after it", scale_wait(room, NULL, &s), 0, &s);
    expect("negative", scale(&k, x, 1.0f, y, 0, -1, 8, room, bytes, NULL, &s), 1010, &s);
    if (s.numbers[0] != -1 || s.block != -1 || !strstr(s.message, "`M`")) return 7;
    expect("huge", scale(&k, x, 1.0f, y, 0, INT64_MAX / 2, 8, room, bytes, NULL, &s), 708, &s);
    expect("odd", scale(&k, x + 1, 1.0f, y, 0, 4, 8, room, bytes, NULL, &s), 766, &s);
    expect("same", scale(&k, y, 1.0f, y, 0, 4, 8, room, bytes, NULL, &s), 760, &s);
    expect("neighbours", scale(&k, y + 32, 1.0f, y, 0, 4, 8, room, bytes, NULL, &s), 0, &s);
    expect("in the workspace", scale(&k, (float *)room, 1.0f, y, 0, 4, 8, room, bytes, NULL, &s), 760, &s);
    if (!strstr(s.message, "workspace")) return 8;
    expect("no workspace", scale(&k, x, 1.0f, y, 0, 4, 8, NULL, bytes, NULL, &s), 723, &s);
    expect("small", scale(&k, x, 1.0f, y, 0, 4, 8, room, 8, NULL, &s), 723, &s);
    if (s.numbers[1] != 8) return 9;
    expect("not loaded", scale(&none, x, 1.0f, y, 0, 4, 8, room, bytes, NULL, &s), 731, &s);
    expect("nothing", scale(NULL, x, 1.0f, y, 0, 4, 8, room, bytes, NULL, &s), 731, &s);
    scale_unload(&k);
    scale_unload(&k);
    expect("unloaded", scale(&k, x, 1.0f, y, 0, 4, 8, room, bytes, NULL, &s), 731, &s);
    return failures != 0;
}
"#;

/// What goes wrong with the driver.
const DRIVER: &str = r#"
#include "k.h"
#include <stdio.h>
#include <stdlib.h>

int main(void) {
    static _Alignas(256) float x[64], y[64];
    static _Alignas(256) char room[4096];
    ptoc_cuda k;
    ptoc_status s;
    int32_t code = scale_load(&k, NULL, &s);
    if (!code) code = scale(&k, x, 1.0f, y, 0, 4, 8, room, sizeof room, NULL, &s);
    if (!code) code = scale_wait(room, NULL, &s);
    if (code) printf("%d %d %s\n", (int)code, (int)s.numbers[0], s.message);
    return 0;
}
"#;

impl Machine {
    /// A file of the sandbox, built with its launcher.
    fn build(&self, args: &str) {
        let output = self.output(&format!("build {args} --target sm90 -o k.ptx --header k.h --launcher k.c"), "");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }

    fn compiler(&self, program: &str, args: &str) {
        let output = Command::new(program).current_dir(self.sandbox.path()).args(args.split_whitespace()).output();
        let output = output.expect("a compiler");
        assert!(output.status.success(), "{program} {args}: {}", String::from_utf8_lossy(&output.stderr));
    }

    /// A program with the launcher, on the driver.
    fn link(&self, main: &str) {
        fs::write(self.sandbox.path().join("main.c"), main).expect("written");
        let flags = "-std=c11 -pedantic -Wall -Wextra -Werror -fsanitize=undefined -fno-sanitize-recover=all -O1 -g";
        self.compiler("cc", &format!("{flags} main.c k.c driver/libcuda.so.1 -lm -o main"));
    }

    /// How many numbers the launcher passes.
    fn words(&self) -> usize {
        let source = fs::read_to_string(self.sandbox.path().join("k.c")).expect("written");
        let (_, rest) = source.split_once("uint64_t words[").expect("an array of them");
        rest.split(']').next().and_then(|n| n.parse().ok()).expect("a number")
    }

    /// Runs it; what it prints.
    fn main(&self, mode: &str, words: Option<usize>) -> String {
        let path = |name: &str| self.sandbox.path().join(name);
        let mut command = Command::new(path("main"));
        command
            .current_dir(self.sandbox.path())
            .env("LD_LIBRARY_PATH", path("driver"))
            .env("FAKE_CUDA", mode)
            .env("FAKE_CUDA_LOG", path("log"));
        if let Some(words) = words {
            command.env("FAKE_CUDA_WORDS", words.to_string());
        }
        let output = command.output().expect("it runs");
        assert!(output.status.success(), "{mode}: {:?} {}", output.status, String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("UTF-8")
    }
}

#[test]
fn calls_of_launchers_that_are_wrong() {
    let machine = Machine::new();
    machine.sandbox.file("scale.tile", SCALE);
    machine.build("scale.tile scale");
    machine.link(MAIN);
    machine.main("", None);
    let asked = machine.asked();
    assert_eq!(super::count(&asked, "launch"), 2, "{asked:?}");
    assert_eq!((super::count(&asked, "load"), super::count(&asked, "unload")), (1, 1), "{asked:?}");
    machine.link(DRIVER);
    for (mode, said) in [
        ("", ""),
        ("none", "731 201 no context is current"),
        ("ampere", "731 8 the device has compute capability {0}"),
        ("refused", "732 218 the driver does not take the code"),
        ("resources", "732 701 cuLaunchKernel gives {0}"),
        ("fault", "732 700 cuStreamSynchronize gives {0}"),
    ] {
        assert!(machine.main(mode, None).starts_with(said), "{mode}");
    }
}

/// The program of `examples/cuda`, by hand and by CMake where there is one: it launches once, with an array each way.
#[test]
fn the_example_program_launches() {
    let machine = Machine::new();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    for name in ["softmax.tile", "cuda/main.c", "cuda/CMakeLists.txt"] {
        machine.sandbox.file(name, fs::read(root.join(name)).expect("it is there"));
    }
    let runs_well = || {
        machine.asked();
        let rows = machine.main("", None);
        assert!(rows.lines().count() == 3 && rows.lines().all(|l| l.ends_with("sum 0.000")), "{rows}");
        let asked = machine.asked();
        for (what, times) in [("load", 1), ("launch", 1), ("to-device", 1), ("to-host", 1), ("unload", 1)] {
            assert_eq!(super::count(&asked, what), times, "{what}: {asked:?}");
        }
    };
    machine.build("softmax.tile softmax -D N=8");
    fs::copy(machine.sandbox.path().join("k.h"), machine.sandbox.path().join("softmax.h")).expect("copied");
    machine.compiler("cc", "-std=c99 -Wall -Wextra -Werror -I. cuda/main.c k.c driver/libcuda.so.1 -lm -o main");
    runs_well();
    if Command::new("cmake").arg("--version").output().is_err() {
        return;
    }
    let driver = machine.sandbox.path().join("driver/libcuda.so.1");
    let (ptoc, driver) = (env!("CARGO_BIN_EXE_ptoc"), driver.display());
    machine.compiler("cmake", &format!("-S cuda -B made -DPTOC={ptoc} -DCUDA_DRIVER={driver}"));
    machine.compiler("cmake", "--build made");
    fs::copy(machine.sandbox.path().join("made/main"), machine.sandbox.path().join("main")).expect("copied");
    runs_well();
}

/// As C and as C++, whatever its names are, and in one unit with another.
#[test]
fn launchers_are_c_and_cpp() {
    let machine = Machine::new();
    machine.sandbox.file("scale.tile", SCALE);
    machine.sandbox.file("numbers.tile", NUMBERS);
    machine.sandbox.file("product.tile", PRODUCT);
    let names = "kernel names(kernel_: in f32[int], stream: out f32[int], image: f32, class: i32) {
        grid (i in tiles(int, 8)); TSTORE(stream.tile(i), Vec(kernel_.tile(i)) * image + f32(class)); }";
    machine.sandbox.file("names.tile", names);
    for (file, more) in
        [("scale", "--symbol other"), ("numbers", ""), ("product", ""), ("product", "--exact"), ("names", "")]
    {
        machine.build(&format!("{file}.tile {more}"));
        machine.compiler("cc", "-std=c99 -pedantic -Wall -Wextra -Werror -O1 -c k.c -o k.o");
        machine.compiler("c++", "-x c++ -std=c++11 -pedantic -Wall -Wextra -Werror -O1 -c k.c -o k.o");
        let header = fs::read_to_string(machine.sandbox.path().join("k.h")).expect("written");
        for said in ["_load(", "_wait(", "_workspace(", "struct CUstream_st *stream", "E0766", "-lcuda"] {
            assert!(header.contains(said), "{said}: {header}");
        }
    }
    for (args, code) in [
        ("scale.tile -o k.o --header k.h --launcher k.c", "E0734"),
        ("scale.tile --target sm90 -o k.ptx --header k.h --launcher k.h", "E0742"),
        ("scale.tile --target sm90 --symbol int -o k.ptx --header k.h --launcher k.c", "E0734"),
    ] {
        let said = machine.sandbox.run(&format!("build {args}"));
        assert!(said.contains("exit 1") && said.contains(code), "{said}");
    }
    assert!(machine.sandbox.run("build scale.tile --target sm90 -o k.ptx --launcher k.c").contains("exit 2"));
}

/// A launch by the launcher is the launch of `ptoc run`: CTAs, threads, shared memory, every number, tensor maps.
#[test]
fn launchers_pass_what_ptoc_passes() {
    let machine = Machine::new();
    machine.sandbox.file("product.tile", PRODUCT);
    machine.sandbox.file("numbers.tile", NUMBERS);
    let interesting = |asked: Vec<String>| -> Vec<String> {
        let launch = ["launch", "grid", "shared", "word", "map", "stride", "box", "kinds"];
        asked.into_iter().filter(|line| launch.iter().any(|w| line.split(' ').next() == Some(w))).collect()
    };
    let product = |args: &str, k: u64, exact: &str| {
        let main = format!(
            "#include \"k.h\"\nstatic _Alignas(256) uint16_t a[1 << 16], b[1 << 16];\nstatic _Alignas(256) float c[1 \
             << \
             16];\nstatic _Alignas(256) char room[1 << 20];\nint main(void) {{\n    ptoc_cuda k;\n    return \
             product_load(&k, 0, 0) || product(&k, a, b, c, 200, {k}, 72, room, sizeof room, 0, 0);\n}}\n"
        );
        machine.build(&format!("product.tile {exact}"));
        machine.link(&main);
        let words = machine.words();
        machine.asked();
        machine.main("", Some(words));
        let own = interesting(machine.asked());
        let mut command = machine.sandbox.command(&format!(
            "run product.tile --target sm90 --backend gpu -D M=200 -D N=72 -D K={k} {args} --random 1"
        ));
        let path = |name: &str| machine.sandbox.path().join(name);
        command.env("LD_LIBRARY_PATH", path("driver")).env("FAKE_CUDA_LOG", path("log"));
        command.env("FAKE_CUDA_WORDS", words.to_string());
        assert!(command.output().expect("it runs").status.success());
        assert_eq!(own, interesting(machine.asked()), "{k} {exact}");
        assert_eq!(own.iter().filter(|line| line.starts_with("map")).count(), if exact.is_empty() { 2 } else { 0 });
    };
    for k in [104, 97, 64] {
        product("", k, "");
    }
    product("--exact", 104, "--exact");
    // The launch function's arithmetic: the grid is the same, or the same condition fails.
    machine.build("numbers.tile");
    for (n, s, h, length) in
        [(3, 1.0, 1.0, 20), (9, -1.5, 2.5, 27), (-40, 0.0, 0.0, 3), (1000, 0.5, -2.0, 65), (5, 1.0, 1.0, 5)]
    {
        for (s, h) in [(s, h), (-2.0, h), (s, 3.5)] {
            let bits = half(h);
            let number = format!("{s:?}");
            machine.link(&format!(
                "#include \"k.h\"\n#include <stdio.h>\nstatic _Alignas(256) float x[4096];\nint main(void) {{\n    \
                 ptoc_cuda k;\n    ptoc_status status;\n    static _Alignas(256) char room[1 << 20];\n    int code = \
                 numbers_load(&k, 0, 0);\n    if (!code) code = numbers(&k, x, {number}f, {bits}, {n}, {length}, room, \
                 sizeof \
                 room, 0, &status);\n    if (code) printf(\"%d %s\", code, status.message);\n    return 0;\n}}\n",
            ));
            let words = machine.words();
            machine.asked();
            let said = machine.main("", Some(words));
            let own = interesting(machine.asked());
            let mut command = machine.sandbox.command(&format!(
                "run numbers.tile --target sm90 --backend gpu -D N={length} -D s={s:?} -D h={h:?} -D n={n} --random 1"
            ));
            let path = |name: &str| machine.sandbox.path().join(name);
            command.env("LD_LIBRARY_PATH", path("driver")).env("FAKE_CUDA_LOG", path("log"));
            let output = command.env("FAKE_CUDA_WORDS", words.to_string()).output().expect("it runs");
            let error = String::from_utf8(output.stderr).expect("UTF-8");
            assert_eq!(own, interesting(machine.asked()), "{n} {s} {h} {length}: {said}, {error}");
            assert_eq!(said.starts_with("1105"), error.contains("PA-1105"), "{n} {s} {h} {length}: {said}, {error}");
        }
    }
}

/// Bits of these numbers as f16.
fn half(x: f64) -> u16 {
    let sign = if x.is_sign_negative() { 0x8000 } else { 0 };
    let x = x.abs();
    if x == 0.0 {
        return sign;
    }
    let exponent = x.log2().floor();
    let mantissa = (x / exponent.exp2() - 1.0) * 1024.0;
    sign | ((exponent as i32 + 15) as u16) << 10 | mantissa as u16
}

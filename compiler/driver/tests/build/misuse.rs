//! Calls from C that are wrong: each gives a status, and none a crash.

use super::harness::{Folder, installed, succeeded};

const KERNEL: &str = "
    /// a x, where x >= 0.
    kernel scale(x: in f32[M, N], a: f32, y: out f32[M, N])
        where N <= 100
    {
        grid (i in tiles(M, 4), j in tiles(N, 128));
        let row = i.start;
        assert(row < 20, \"row {row} is one too many\");
        TSTORE(y.tile(i, j), Vec(x.tile(i, j)) * a);
    }
    kernel both(x: in f32[N], y: out f32[N], z: out f32[N]) {
        grid (i in tiles(N, 64));
        let t = Vec(x.tile(i));
        TSTORE(y.tile(i), t);
        TSTORE(z.tile(i), t * 2.0);
    }
";

const MAIN: &str = r#"
#include "kernel.h"
#include <pthread.h>
#include <stdio.h>
#include <string.h>

static float x[4096], y[4096];
static float rooms[1 << 14];
static char *const room = (char *)rooms;
static int failures;

static void expect(const char *what, int32_t got, int32_t want, const ptoc_status *s) {
    if (got == want && (want == 0 || s->code == want)) return;
    failures++;
    fprintf(stderr, "%s: %d and not %d: %s\n", what, (int)got, (int)want, s->message ? s->message : "");
}

static void *call(void *unused) {
    float mine[8 * 16];
    char own[1 << 14];
    int n, i;
    (void)unused;
    for (n = 0; n < 200; n++) {
        ptoc_status s;
        int32_t code = scale(x, 2.0f, mine, 8, 16, own, sizeof own, 1 + n % 3, &s);
        if (code) return &failures;
        for (i = 0; i < 8 * 16; i++)
            if (mine[i] != 2.0f * x[i]) return &failures;
    }
    return NULL;
}

int main(void) {
    ptoc_status s;
    pthread_t threads[10];
    int i;
    size_t bytes = scale_workspace(1);
    memset(&s, 0, sizeof s);
    for (i = 0; i < 4096; i++) x[i] = (float)i;
    if (bytes > sizeof rooms || scale_workspace(2) > sizeof rooms) return 2;
    expect("right", scale(x, 1.0f, y, 4, 8, room, bytes, 1, &s), 0, &s);
    expect("no status", scale(x, 1.0f, y, 4, -8, room, bytes, 1, NULL), 1010, (s.code = 1010, &s));
    expect("null", scale(NULL, 1.0f, y, 4, 8, room, bytes, 1, &s), 747, &s);
    expect("null output", scale(x, 1.0f, NULL, 4, 8, room, bytes, 1, &s), 747, &s);
    expect("empty", scale(NULL, 1.0f, NULL, 0, 8, NULL, 0, 1, &s), 0, &s);
    expect("negative", scale(x, 1.0f, y, -1, 8, room, bytes, 1, &s), 1010, &s);
    if (s.count != 1 || s.numbers[0] != -1 || s.block != -1 || !strstr(s.message, "`M`")) return 3;
    expect("huge", scale(x, 1.0f, y, INT64_MAX / 2, 8, room, bytes, 1, &s), 708, &s);
    expect("huge product", scale(x, 1.0f, y, INT64_MAX / 8, 8, room, bytes, 1, &s), 708, &s);
    expect("odd", scale((const float *)((const char *)x + 1), 1.0f, y, 4, 8, room, bytes, 1, &s), 766, &s);
    expect("same", scale(y, 1.0f, y, 4, 8, room, bytes, 1, &s), 760, &s);
    expect("one element", scale(y + 31, 1.0f, y, 4, 8, room, bytes, 1, &s), 760, &s);
    expect("neighbours", scale(y + 32, 1.0f, y, 4, 8, room, bytes, 1, &s), 0, &s);
    expect("where", scale(x, 1.0f, y, 4, 101, room, bytes, 1, &s), 1105, &s);
    expect("block", scale(x, 1.0f, y, 40, 8, room, bytes, 1, &s), 1109, &s);
    if (s.block != 5 || s.count != 1 || s.numbers[0] != 20) return 4;
    for (i = 2; i < 20; i++) {
        expect("blocks", scale(x, 1.0f, y, 40, 8, room, sizeof rooms, i, &s), 1109, &s);
        if (s.block != 5) return 5;
    }
    if (bytes) {
        expect("no workspace", scale(x, 1.0f, y, 4, 8, NULL, bytes, 1, &s), 723, &s);
        expect("small workspace", scale(x, 1.0f, y, 4, 8, room, 1, 1, &s), 723, &s);
        if (s.numbers[1] != 1) return 6;
        expect("input there", scale(rooms, 1.0f, y, 4, 8, room, sizeof rooms, 1, &s), 760, &s);
        expect("output there", scale(x, 1.0f, rooms, 4, 8, room, sizeof rooms, 1, &s), 760, &s);
        if (!strstr(s.message, "workspace")) return 9;
        expect("behind it", scale(x, 1.0f, rooms + (1 << 14) - 32, 4, 8, room, sizeof rooms, 1, &s), 0, &s);
    }
    expect("threads", scale(x, 1.0f, y, 8, 8, room, sizeof rooms, INT32_MIN, &s), 0, &s);
    expect("many threads", scale(x, 1.0f, y, 8, 8, room, sizeof rooms, INT32_MAX, &s), 0, &s);
    for (i = 0; i < 10; i++)
        if (pthread_create(&threads[i], NULL, call, NULL)) return 7;
    for (i = 0; i < 10; i++) {
        void *bad;
        if (pthread_join(threads[i], &bad) || bad) return 8;
    }
    return failures != 0;
}
"#;

const OUTPUTS: &str = r#"
#include "kernel.h"

int main(void) {
    static float x[64], y[128];
    static char room[1 << 14];
    ptoc_status s;
    if (both(x, y, y, 64, room, sizeof room, 1, &s) != 760) return 1;
    if (both(x, y, y + 63, 64, room, sizeof room, 1, &s) != 760) return 2;
    if (both(x, y, y + 64, 64, room, sizeof room, 1, &s)) return 3;
    return 0;
}
"#;

fn folder(kernel: &str) -> Folder {
    let source = tempfile::NamedTempFile::with_suffix(".tile").expect("there is room");
    std::fs::write(source.path(), KERNEL).expect("there is room");
    Folder::of(source.path(), kernel, &[], "a")
}

#[test]
fn misuse_gives_statuses() {
    let folder = folder("scale");
    folder.link(MAIN, "a");
    for vectors in [None, Some("128"), Some("256"), Some("none")] {
        succeeded("misuse", &folder.run("./main", &[], vectors));
    }
    if installed("valgrind") {
        let args = ["--error-exitcode=9", "--leak-check=full", "--errors-for-leak-kinds=definite", "./main"];
        succeeded("valgrind", &folder.run("valgrind", &args, None));
    }
}

#[test]
fn outputs_that_overlap_are_refused() {
    let folder = folder("both");
    folder.link(OUTPUTS, "a");
    succeeded("outputs", &folder.run("./main", &[], None));
}

/// A header is C99 and C++, and says what callers have to know.
#[test]
fn headers_are_c_and_cpp() {
    let folder = folder("scale");
    folder.write("unit.c", b"#include \"kernel.h\"\nint main(void) { return scale_workspace(1) > 1000000000; }\n");
    let flags = ["-pedantic", "-Wall", "-Wextra", "-Werror", "-fsyntax-only"];
    let with = |language: &[&'static str]| [&flags[..], language, &["unit.c"]].concat();
    succeeded("c99", &folder.run("cc", &with(&["-std=c99"]), None));
    if installed("c++") {
        succeeded("c++", &folder.run("c++", &with(&["-x", "c++", "-std=c++11"]), None));
    }
    let header = String::from_utf8(folder.read("kernel.h")).expect("it is text");
    for said in ["a x, where x >= 0.", "where N <= 100", "in f32[M, N]", "PA-1105", "E0760", "int64_t M", "float a"] {
        assert!(header.contains(said), "{said}\n{header}");
    }
}

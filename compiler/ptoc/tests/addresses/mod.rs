//! Tiles at addresses that are computed, or come with the launch: what is proved, warned of, and trapped.

use super::Sandbox;

/// Addresses that a remainder bounds are proved: nothing is left for the run to test.
#[test]
fn addresses_of_remainders_are_proved() {
    let s = Sandbox::new();
    for (address, unproved) in [
        ("(k.index % 4) * 0x800", &[][..]),
        ("0x100 + 0x800 * (k.index % 3)", &[]),
        ("(k.index % 4) * 0x810", &["PA-1106"]),
        ("(k.index % 400) * 0x800", &["PA-1107"]),
        ("k.index * 0x800", &["PA-1107"]),
    ] {
        let text = format!(
            "kernel k(a: in f32[M, 64], c: out f32[M, 64]) {{\n    let x = tile Vec<f32, 8, 64>;\n    \
             for k in tiles(M, 8) {{\n        \
             TASSIGN(x, {address});\n        TLOAD(x.valid(k, 64), a.tile(k, _));\n        \
             TSTORE(c.tile(k, _), x.valid(k, 64));\n    \
             }}\n}}\n"
        );
        s.file("turns.tile", text);
        let told = s.run("check turns.tile");
        for code in ["PA-1106", "PA-1107"] {
            assert_eq!(told.contains(code), unproved.contains(&code), "{address}: {told}");
        }
    }
}

/// A tile at an address of the launch: what it may destroy is warned of, and a run in which it does ends; the bytes
/// that it may have are among those that are used.
#[test]
fn addresses_of_the_launch_may_destroy() {
    let s = Sandbox::new();
    let kernel = |demand: &str| {
        format!(
            "kernel k(a: in f32[16, 64], b: in f32[16, 64], c: out f32[16, 64], n: index) where {demand} {{\n    \
             let x = tile Vec<f32, 16, 64> at 0x0;\n    let y = tile Vec<f32, 16, 64>;\n    \
             TASSIGN(y, n * 0x800);\n    TLOAD(x, a);\n    \
             TLOAD(y, b);\n    TADD(x, x, y);\n    TSTORE(c, x);\n}}\n"
        )
    };
    s.file("apart.tile", kernel("n >= 2 && n < 4"));
    let told = s.run("check apart.tile");
    assert!(!told.contains("warning") && told.contains("10240 of 196608 bytes used, peak 8192"), "{told}");
    s.file("meet.tile", kernel("n >= 0 && n < 4"));
    let told = s.run("check meet.tile");
    assert!(told.contains("warning[W0220]: writing `y` may destroy `x`") && told.contains("exit 0"), "{told}");
    for (n, trap) in [(0, true), (1, true), (2, false), (3, false)] {
        let told = s.run(&format!("run meet.tile --backend interp --random 1 -D n={n}"));
        assert_eq!(told.contains("error[PA-1014]"), trap, "{n}: {told}");
    }
    s.file("any.tile", kernel("n >= 2"));
    let told = s.run("check any.tile");
    assert!(!told.contains("W0220") && told.contains("at least 4096 of 196608 bytes used"), "{told}");
}

/// Bytes that two tiles share on purpose: one is declared at the other, or is read where only the other was written.
#[test]
fn bytes_that_are_shared_on_purpose_are_no_overlap() {
    let s = Sandbox::new();
    for (second, use_of_it) in
        [("at x", "TADDS(y, y, 1);"), ("at 0x0", "TADDS(y, y, 1);"), ("at 0x0", "y = 7; TSTORE(d, y);")]
    {
        s.file(
            "shared.tile",
            format!(
                "kernel k(a: in f32[16, 64], c: out f32[16, 64], d: out i32[16, 64]) {{\n    \
                 let x = tile Vec<f32, 16, 64> at 0x0;\n    let y = tile Vec<i32, 16, 64> {second};\n    \
                 TLOAD(x, a);\n    TSTORE(d, y);\n    {use_of_it}\n    \
                 TSTORE(c, x);\n}}\n"
            ),
        );
        let told = s.run("check shared.tile") + &s.run("run shared.tile --backend interp --random 1");
        assert!(!told.contains("W0220") && !told.contains("PA-1014"), "{second} {use_of_it}: {told}");
    }
}

/// A destination that the launch makes its own source: warned of, and the run in which it is one ends.
#[test]
fn a_destination_of_the_launch_may_be_its_source() {
    let s = Sandbox::new();
    let kernel = |body: &str| {
        format!(
            "kernel k(x: inout u8[16, 64], n: index) where 0 <= n, n < 2 {{\n    \
             let t = tile Vec<u8, 16, 64>[2] at [0x0, 0x400];\n    \
             let u = tile Vec<u8, 16, 64>;\n    TASSIGN(u, n * 0x200);\n    TLOAD(t[0], x);\n    TLOAD(t[1], x);\n    \
             {body}\n    TSTORE(x, t[1]);\n}}\n"
        )
    };
    for (body, meets) in [
        ("TANDS(t[n], t[1], 15);", [false, true]),
        ("for r in 0..4 { TANDS(t[1][r, _], t[1][n + 3, _], 15); }", [true, false]),
        ("TANDS(t[1], t[0], 15); TANDS(u, t[1], 1);", [false, true]),
    ] {
        s.file("own.tile", kernel(body));
        let told = s.run("check own.tile");
        assert!(told.contains("warning[E0617]") && told.contains("exit 0"), "{body}: {told}");
        for (n, meets) in meets.into_iter().enumerate() {
            let told = s.run(&format!("run own.tile --backend interp --random 1 -D n={n}"));
            assert_eq!(told.contains("error[PA-1015]"), meets, "{body} {n}: {told}");
        }
    }
}

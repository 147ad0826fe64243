//! Overflow of `index` in what bounds a grid or a loop: every backend ends such a launch with PA-1111.

use super::Sandbox;

const KERNELS: &str = "\
kernel blocks(y: inout f32[64], k: index) { grid (i in tiles(k, 16)); y[i.index] = f32(i.len); }
kernel doubled(y: inout f32[64], k: index) { grid (i in 0..k * 2); y[i] = 1.0; }
kernel between(y: inout f32[64], k: index, l: index) { grid (i in k..l); y[i - k] = 1.0; }
kernel behind(y: inout f32[64], k: index) { grid (i in k..k + 4); y[i - k] = 1.0; }
kernel through(y: inout f32[64], k: index) { let n = k * 4; grid (i in 0..n / 4); y[i] = 1.0; }
kernel looped(y: inout f32[64], k: index) { for i in k..k + 4 { y[i - k] = 1.0; } }
kernel turned(y: inout f32[64], k: index) { for i in 0..k * 2 { y[i] = 1.0; if i > 3 { break; } } }
kernel cut(y: inout f32[64], k: index) { for i in tiles(k, 4) { y[i.index] = 1.0; if i.index > 3 { break; } } }
kernel ceiled(y: inout f32[64], k: index, l: index) { for i in 0..ceil_div(k, l) { y[i] = 1.0; if i > 3 { break; } } }
kernel negated(y: inout f32[64], k: index) { y[-((-k) / 4611686018427387904)] = 1.0; }
";

#[test]
fn bounds_do_not_wrap() {
    let s = Sandbox::new();
    s.file("k.tile", KERNELS);
    let least = i64::MIN;
    let half = 1i64 << 62;
    for (kernel, good, bad) in [
        ("blocks", "-D k=20".to_owned(), format!("-D k={}", i64::MAX)),
        ("doubled", "-D k=2".to_owned(), format!("-D k={half}")),
        ("between", "-D k=-3 -D l=4".to_owned(), format!("-D k={least} -D l={}", i64::MAX)),
        ("behind", "-D k=7".to_owned(), format!("-D k={}", i64::MAX - 2)),
        ("through", "-D k=3".to_owned(), format!("-D k={half}")),
        ("looped", "-D k=7".to_owned(), format!("-D k={}", i64::MAX - 2)),
        ("turned", "-D k=2".to_owned(), format!("-D k={half}")),
        ("cut", "-D k=9".to_owned(), format!("-D k={}", i64::MAX)),
        ("ceiled", "-D k=9 -D l=4".to_owned(), format!("-D k={least} -D l=2")),
        ("negated", "-D k=3".to_owned(), format!("-D k={least}")),
    ] {
        for how in ["--backend interp", "--backend cpu", "--sanitize"] {
            let told = s.run(&format!("run k.tile {kernel} {how} --random 1 {good}"));
            assert!(told.contains("exit 0"), "{kernel} {how} {good}: {told}");
            let told = s.run(&format!("run k.tile {kernel} {how} --random 1 {bad}"));
            assert!(told.contains("error[PA-1111]") && told.contains("exit 1"), "{kernel} {how} {bad}: {told}");
        }
    }
}

/// The extents of a grid fit 64 bits, their product does not.
#[test]
fn too_many_blocks_are_refused() {
    let s = Sandbox::new();
    s.file("k.tile", "kernel k(y: inout f32[8], k: index) { grid (i in 0..k, j in 0..k); y[i * k + j] = 1.0; }\n");
    for how in ["--backend interp", "--backend cpu", "--sanitize"] {
        let told = s.run(&format!("run k.tile {how} --random 1 -D k={}", 1i64 << 33));
        assert!(told.contains("error[E0722]") && told.contains("exit 1"), "{how}: {told}");
    }
}

/// The product of the extents fits 64 bits, and numbers of blocks do not fit 32: all backends say the same, and none
/// begins.
#[test]
fn more_blocks_than_numbers_are_refused() {
    let s = Sandbox::new();
    s.file(
        "k.tile",
        "kernel k(y: inout f32[1], n: index) { grid (i in 0..n, j in 0..4); if i + j < 0 { y[0] = 1.0; } }\n",
    );
    let run = |how: &str, n: i64| {
        let output = s.command(&format!("run k.tile --random 1 -D n={n} {how}")).output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let want = run("--backend interp", 1 << 30);
    assert!(want.0 == Some(1) && want.1.contains("[E0722]: the grid [1073741824, 4] has more than"), "{}", want.1);
    for how in ["--backend cpu", "--sanitize", "--backend pim --target geopim", "--backend pim --target hbm-pim"] {
        assert_eq!(run(how, 1 << 30), want, "{how}");
    }
    // An empty grid has none, however long its other extents are.
    for how in ["--backend interp", "--backend cpu", "--sanitize"] {
        assert_eq!(run(how, 0).0, Some(0), "{how}");
    }
}

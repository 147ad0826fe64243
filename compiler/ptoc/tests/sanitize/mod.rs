//! `ptoc run --sanitize`: what it says is what the interpreter says, and the page shows what it prints.

use super::Sandbox;

const PAGE: &str = include_str!("../../../../spec/sanitizer.md");

/// The first fenced block of a language.
fn block(language: &str) -> &'static str {
    let open = format!("```{language}\n");
    let rest = PAGE.split(&open).nth(1).expect("a block");
    rest.split("```").next().expect("its beginning")
}

#[test]
fn the_page_shows_what_it_prints() {
    let s = Sandbox::new();
    s.file("spread.tile", block("rust"));
    let session = block("console").strip_prefix("$ ptoc ").expect("a command");
    let (command, shown) = session.split_once('\n').expect("what it prints");
    let printed = s.run(&format!("{command} --threads 1"));
    let lines = |text: &str| text.lines().map(|l| l.trim_end().to_owned()).collect::<Vec<_>>();
    let printed = lines(&printed);
    assert!(lines(shown).iter().all(|line| printed.contains(line)), "{}", printed.join("\n"));
}

/// Kernels with one fault each that only the launch shows.
const FAULTS: &str = "\
kernel part_of_a_tile(x: in f32[M, N], y: out f32[M, N], s: i32) {
    grid (i in tiles(M, 8), j in tiles(N, 64));
    let t = tile Vec<f32, i, j>;
    if s > 0 { TLOAD(t, x.tile(i, j)); }
    TSTORE(y.tile(i, j), t + t);
}

kernel one_element(x: in f32[M, N], y: out f32[M, N], s: i32) {
    grid (i in tiles(M, 8), j in tiles(N, 64));
    let t = tile Vec<f32, i, j>;
    for r in 0..i.len { for c in 0..j.len {
        if c != index(s) { t[r, c] = x[i.start + r, j.start + c]; }
    } }
    TSTORE(y.tile(i, j), t);
}

kernel rows_of_two(x: in f32[M, 64], place: in i32[M], y: out f32[R, 64])
    where place[i] >= 0, place[i] < R
{
    grid (i in tiles(M, 8));
    let rows = Vec(x.tile(i, _));
    let at = Vec(place.tile(i));
    MSCATTER(y, rows, at, Row);
}
";

/// The same words, whoever finds the fault, with vectors of each width.
#[test]
fn faults_are_the_interpreters() {
    let s = Sandbox::new();
    s.file("k.tile", FAULTS);
    for (kernel, sizes, code) in [
        ("part_of_a_tile", "-D M=9 -D N=70 -D s=0", "PA-1001"),
        ("one_element", "-D M=9 -D N=70 -D s=3", "PA-1001"),
        ("rows_of_two", "-D M=20 -D R=40", "PA-1013"),
    ] {
        let run = |how: &str| {
            let output = s.command(&format!("run k.tile {kernel} {sizes} --random 1 {how}")).output().unwrap();
            (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
        };
        let want = run("--backend interp");
        assert!(want.0 == Some(1) && want.1.contains(code), "{kernel}: {}", want.1);
        assert_eq!(run("--sanitize --threads 1"), want, "{kernel}");
        assert_eq!(run("--sanitize --threads 1 --vectors 128"), want, "{kernel}");
        let (status, told) = run("--sanitize --threads 2");
        assert!(status == Some(1) && told.contains(code), "{kernel}: {told}");
    }
}

#[test]
fn backends() {
    let s = Sandbox::new();
    let run = |how: &str| {
        let output = s.command(&format!("run add.tile add --in a=a.npy --in b=b.npy {how}")).output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    assert_eq!(run("--sanitize --backend interp").0, Some(0));
    let (status, told) = run("--sanitize --target hbm-pim");
    assert!(status == Some(2) && told.contains("`--sanitize` watches machine code"), "{told}");
    let (status, told) = run("--sanitize --step");
    assert!(status == Some(2) && told.contains("--sanitize"), "{told}");
}

/// Kernels that leave elements unwritten, and programs of them.
const HOLES: &str = "\
kernel half<type T = f32>(x: in T[M, N], y: out T[M, N]) {
    grid (i in tiles(M, 8), j in tiles(N, 64));
    if i.index % 2 == 0 { TSTORE(y.tile(i, j), Vec(x.tile(i, j))); }
}

kernel both(x: in f32[M, N], y: out f32[M, N], z: inout f32[M, N]) {
    grid (i in tiles(M, 8), j in tiles(N, 64));
    let a = Vec(x.tile(i, j));
    if i.index % 2 == 0 { TSTORE(y.tile(i, j), a + 1.0); }
    TSTORE(z.tile(i, j), Vec(z.tile(i, j)) + a);
}

kernel all(x: in f32[M, N], y: out f32[M, N]) {
    grid (i in tiles(M, 8), j in tiles(N, 64));
    TSTORE(y.tile(i, j), Vec(x.tile(i, j)));
}

program two(x: in f32[M, N], y: out f32[M, N]) {
    let t = tensor f32[M, N] fill 7.0;
    half(x, t);
    all(t, y);
}
";

/// Machine code without the sanitizer says it too, also of a tensor between two launches, and what was there stays.
#[test]
fn holes_are_told_by_every_backend() {
    let s = Sandbox::new();
    s.file("k.tile", HOLES);
    let types = ["half", "half -D T=u8", "half -D T=i32", "half -D T=f16", "both", "all", "two"];
    for kernel in types {
        let run = |how: &str| {
            let z = if kernel == "both" { "--out z=z.npy" } else { "" };
            let args = format!("run k.tile {kernel} -D M=20 -D N=10 --random 1 --out y=y.npy {z} {how}");
            let output = s.command(&args).output().unwrap();
            let told = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!(output.status.code(), Some(0), "{kernel} {how}: {told}");
            // What the run took is no part of it.
            let told: Vec<&str> = told.lines().filter(|line| !line.contains("compiled in")).collect();
            let z = if kernel == "both" { s.read("z.npy").bytes().to_vec() } else { Vec::new() };
            (told.join("\n"), s.read("y.npy").bytes().to_vec(), z)
        };
        let want = run("--backend interp");
        assert_eq!(want.0.contains("W0760"), kernel != "all", "{kernel}: {}", want.0);
        for how in ["", "--threads 1", "--sanitize"] {
            assert_eq!(run(how), want, "{kernel} {how}");
        }
    }
}

/// What is added to elements that nothing has written is no number: machine code stops as the interpreter does.
#[test]
fn atomics_on_what_is_unwritten() {
    let s = Sandbox::new();
    s.file(
        "k.tile",
        "kernel acc(x: in f32[M, N], y: out f32[N]) {
    grid (i in tiles(M, 8), j in tiles(N, 64));
    TSTORE(y.tile(j), colsum(Vec(x.tile(i, j))), atomic = true);
}
",
    );
    let run = |how: &str| {
        let output = s.command(&format!("run k.tile acc -D M=20 -D N=10 --random 1 {how}")).output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let want = run("--backend interp");
    assert!(want.0 == Some(1) && want.1.contains("PA-1012"), "{}", want.1);
    assert_eq!(run("--threads 1"), want);
}

/// A kernel of units that leaves rows unwritten.
#[test]
fn holes_of_units() {
    let s = Sandbox::new();
    let whole = include_str!("../../../../tests/language/hbm_gemv.tile");
    let half = "if n.index < N / 16 { TSTORE(part.tile(n, _), acc); }";
    s.file("k.tile", whole.replacen("TSTORE(part.tile(n, _), acc);", half, 1));
    let run = |how: &str| {
        let args = format!("run k.tile gemv_lanes --target hbm-pim -D N=256 -D K=512 -D PCH=2 --random 1 {how}");
        let output = s.command(&args).output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        told.lines().filter(|line| !line.contains("compiled in")).collect::<Vec<_>>().join("\n")
    };
    let want = run("--backend interp");
    assert!(want.contains("W0760") && want.contains("2048 elements of `part`"), "{want}");
    assert_eq!(run("--backend pim"), want);
}

/// What is proved for the sizes of a launch is not watched, and `check` says the same of them; in general it is open.
#[test]
fn the_sizes_of_a_launch_count() {
    let s = Sandbox::new();
    let kernel = |name: &str, first: u32| {
        format!(
            "kernel {name}(x: in f32[M, 64], y: out f32[M, 64]) {{
    grid (i in tiles(M, 16));
    let t = tile Vec<f32, i, 64>;
    for r in {first}..i.len {{ TLOAD(t[(r + 3) % i.len, _], x[i.start + r, _]); }}
    TSTORE(y.tile(i, _), t);
}}
"
        )
    };
    s.file("turned.tile", kernel("turned", 0));
    s.file("short.tile", kernel("short", 1));
    let doubted = |args: &str| {
        let output = s.command(args).output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.code(), told.contains("[E0502]") || told.contains("[E0501]"), told)
    };
    for args in ["run turned.tile -D M=64 --random 1", "check turned.tile -D M=64"] {
        let here = doubted(args);
        assert!(here.0 == Some(0) && !here.1, "{args}: {}", here.2);
    }
    for args in ["check turned.tile", "run short.tile -D M=64 --random 1", "check short.tile -D M=64"] {
        let open = doubted(args);
        assert!(open.1, "{args}: {}", open.2);
    }
}

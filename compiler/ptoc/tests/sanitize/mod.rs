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
    assert!(status == Some(1) && told.contains("`--sanitize` watches machine code"), "{told}");
    let (status, told) = run("--sanitize --step");
    assert!(status == Some(2) && told.contains("--sanitize"), "{told}");
}

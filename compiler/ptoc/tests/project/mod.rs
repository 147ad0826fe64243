//! `ptoc.toml`: what it sets, what counts more, and mistakes in it.

use super::{Sandbox, snapshot};
use std::fs;
use std::path::Path;

/// A kernel that says what it was compiled for, and has a warning.
const KERNEL: &str = "\
kernel copy<const ROWS = 16>(x: in f32[M, 64], y: out f32[M, 64]) {
    let unused = 1;
    grid (i in tiles(M, ROWS));
    let t = tile Vec<f32, i, 64>;
    TLOAD(t, x.tile(i, _));
    TSTORE(y.tile(i, _), t);
}
";

fn project() -> Sandbox {
    let s = Sandbox::new();
    s.file("copy.tile", KERNEL);
    s.file("deep/inner/copy.tile", KERNEL);
    s.file("deep/other.tile", KERNEL);
    s
}

/// Target and rows that a kernel is compiled for, by its map of memory.
fn seen(s: &Sandbox, args: &str) -> String {
    let output = s.command(&format!("mem {args} --json")).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let map: serde_json::Value = serde_json::from_str(&text).unwrap_or_else(|e| {
        panic!("{e}: {text}{}", String::from_utf8_lossy(&output.stderr));
    });
    let (target, memory) = (&map["target"], &map["memories"][0]);
    format!("{} {} of {}", target.as_str().unwrap(), memory["used"], memory["capacity"])
}

#[test]
fn what_is_nearer_counts_more() {
    let s = project();
    assert_eq!(seen(&s, "copy.tile"), "a2a3 4096 of 196608");
    s.file("ptoc.toml", "target = \"a5\"\n[define]\nROWS = 32\n\"capacity.Vec\" = 0x10000\n");
    assert_eq!(seen(&s, "copy.tile"), "a5 8192 of 65536");
    assert_eq!(seen(&s, "deep/inner/copy.tile"), "a5 8192 of 65536");
    // A folder's own: what it does not say is the project's.
    s.file("deep/ptoc.toml", "define = { ROWS = 8 }\n");
    assert_eq!(seen(&s, "deep/inner/copy.tile"), "a5 2048 of 65536");
    assert_eq!(seen(&s, "copy.tile"), "a5 8192 of 65536");
    // Tables of files, of which the last counts most.
    let tables = "[[files]]\nmatch = [\"deep/**/*.tile\"]\ntarget = \"kirin9030\"\n[[files]]\nmatch = \"*.tile\"\n\
                  define = { ROWS = 64 }\n[[files]]\nmatch = \"copy.tile\"\ndefine = { ROWS = 16 }\n";
    s.file("ptoc.toml", format!("target = \"a5\"\n{tables}"));
    assert!(seen(&s, "copy.tile").starts_with("a5 4096 "), "{}", seen(&s, "copy.tile"));
    assert!(seen(&s, "deep/other.tile").starts_with("kirin9030 2048 "), "{}", seen(&s, "deep/other.tile"));
    // Flags.
    assert!(seen(&s, "deep/other.tile --target a2a3 -D ROWS=4").starts_with("a2a3 1024 "));
    // Nothing from around a root.
    s.file("deep/ptoc.toml", "root = true\n");
    assert_eq!(seen(&s, "deep/other.tile"), "a2a3 4096 of 196608");
}

#[test]
fn lints() {
    let s = project();
    let status = |s: &Sandbox, args: &str| s.command(args).output().unwrap();
    let shown = |s: &Sandbox, args: &str| String::from_utf8(status(s, args).stderr).unwrap();
    let warning = shown(&s, "check copy.tile");
    let code = warning.split(['[', ']']).nth(1).unwrap().to_owned();
    assert!(code.starts_with('W'), "{warning}");
    for (lints, errors, warned) in [
        (format!("{code} = \"allow\""), false, false),
        (format!("{code} = \"deny\""), true, false),
        ("warnings = \"deny\"".to_owned(), true, false),
        (format!("warnings = \"deny\"\n{code} = \"warn\""), false, true),
        (format!("warnings = \"allow\"\n{code} = \"warn\""), false, true),
    ] {
        s.file("ptoc.toml", format!("[lints]\n{lints}\n"));
        let output = status(&s, "check copy.tile");
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(i32::from(errors)), "{lints}: {text}");
        assert_eq!(text.contains(&format!("warning[{code}]")), warned, "{lints}: {text}");
        assert_eq!(text.contains(&format!("error[{code}]")), errors, "{lints}: {text}");
    }
    s.file("ptoc.toml", format!("[lints]\n{code} = \"allow\"\n"));
    assert_eq!(status(&s, "check copy.tile --deny warnings").status.code(), Some(0), "a code counts more than all");
    assert_eq!(status(&s, &format!("check copy.tile --deny {code}")).status.code(), Some(1));
}

#[test]
fn mistakes() {
    let s = project();
    let mut text = String::new();
    for toml in [
        "tagret = \"a5\"\n",
        "target = \"a6\"\n",
        "target = 5\n",
        "define = \"BM=64\"\n",
        "[define]\nROWS = [1]\n",
        "[define]\nROWS = \"16 +\"\n",
        "[define]\n\"capacity.Vec\" = \"big\"\n",
        "[lints]\nW9999 = \"deny\"\nwarnings = \"forbid\"\n",
        "[[files]]\ntarget = \"a5\"\n",
        "[[files]]\nmatch = \"a***\"\nmach = 1\n",
        "files = { match = \"*\" }\n",
        "root = 1\n",
        "[define]\nROWS = 99999999999999999999\n",
        "[define]\n\"capacity.Nope\" = 3\n",
        "[lints]\nE0401 = \"allow\"\n",
        "[[files]]\nmatch = [\"./copy.tile\", \"/a/copy.tile\", \"../x\", \"\", \"deep/\", \"a[b\"]\n",
        "target = \"a5\n",
    ] {
        s.file("ptoc.toml", toml);
        text += &format!("{toml}{}\n", s.run("check copy.tile"));
    }
    snapshot!(text);
}

/// A file of the project that is there and cannot be read: nothing is checked for the wrong target in silence.
#[cfg(unix)]
#[test]
fn what_cannot_be_read_is_told() {
    use std::os::unix::fs::symlink;
    let s = project();
    let toml = s.path().join("ptoc.toml");
    let mut text = String::new();
    let mut say = |what: &str| {
        text += &format!("{what}: {}\n", s.run("check copy.tile"));
        match toml.symlink_metadata() {
            Ok(m) if m.is_dir() => fs::remove_dir(&toml).unwrap(),
            _ => fs::remove_file(&toml).unwrap(),
        }
    };
    s.file("ptoc.toml", b"target = \"a5\"\n# \xff\n");
    say("no UTF-8");
    fs::create_dir(&toml).unwrap();
    say("a folder");
    symlink("ptoc.toml", &toml).unwrap();
    say("a link to itself");
    symlink("nowhere", &toml).unwrap();
    say("a link to nothing");
    // Opening it would wait for somebody who writes.
    assert!(std::process::Command::new("mkfifo").arg(&toml).status().unwrap().success());
    say("a pipe");
    snapshot!(text);
}

/// Names that a kernel does not have, and memories that a target does not have, are no mistakes there.
#[test]
fn definitions_hold_where_there_is_something_of_the_name() {
    let s = project();
    s.file("ptoc.toml", "[define]\nBN = 64\nROWS = 8\n\"unit.clock\" = 300\n");
    assert_eq!(seen(&s, "copy.tile"), "a2a3 2048 of 196608");
    let run = s.run("run copy.tile -D M=9 --random 1");
    assert!(run.contains("exit 0"), "{run}");
    // A flag has to mean something.
    assert!(s.run("run copy.tile -D M=9 -D BN=4 --random 1").contains("E0745"));
    s.file("lines.tile", format!("// run: copy interp,cpu M=9 seed=1\n{KERNEL}"));
    assert!(s.run("test lines.tile").contains("1 passed, 0 failed"));
    // A line of tests is for the project's target.
    s.file("ptoc.toml", "target = \"geopim\"\n");
    assert!(s.run("test lines.tile").contains("0 passed, 1 failed"), "{}", s.run("test lines.tile"));
}

#[test]
fn init_writes_one_that_holds() {
    let s = project();
    snapshot!(s.runs(&["init", "check copy.tile", "init", "init nowhere"]));
    let text = fs::read_to_string(s.path().join("ptoc.toml")).unwrap();
    // What it shows as comments is right, too.
    let all: String = text.lines().map(|l| l.trim_start_matches("# ").to_owned() + "\n").skip(1).collect();
    let known =
        all.replace("What becomes of", "# What").replace("Constants,", "# Constants,").replace("Some files.", "");
    s.file("ptoc.toml", known);
    assert!(s.run("check copy.tile --target a2a3").contains("error[W"), "{}", s.run("check copy.tile"));
}

/// Of several files each has its own project, and a mistake in one is said once.
#[test]
fn mistakes_are_said_once() {
    let s = project();
    s.file("ptoc.toml", "tagret = 1\n");
    s.file("deep/inner/ptoc.toml", "root = true\nlint = {}\n");
    let text = s.run("check .");
    assert_eq!(text.matches("error[E0767]: there is no key `tagret`").count(), 1, "{text}");
    assert_eq!(text.matches("error[E0767]: there is no key `lint`").count(), 1, "{text}");
}

/// Every example is checked for its own target.
#[test]
fn examples_pass_whole() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let output = Sandbox::new().command(&format!("check {}", examples.display())).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// A device of the project's own: in `ptoc.toml` and in test lines, from the folder of the file that names it.
#[test]
fn devices_of_the_project() {
    let s = Sandbox::new();
    let device = "name = \"mine\"\ndescription = \"one of our own\"\nbase = \"hbm-pim\"\n\n[unit]\nclock = 200\n\n\
        [device]\npreset = \"lpddr5_6400\"\nstacks = 1\nchannels = 2\npseudo_channels = 1\nbank_groups = 4\nbanks = 4\n\
        rows = 4096\nbursts = 64\nburst_bytes = 32\n";
    let kernel = "kernel add(x: in f16[N], y: out f16[N]) ensures y[i] == x[i] + x[i] {\n    \
        grid (i in tiles(N, 64));\n    TSTORE(y.tile(i), Vec(x.tile(i)) + Vec(x.tile(i)));\n}\n";
    s.file("p/devices/mine.toml", device);
    s.file("p/devices/broken.toml", device.replace("channels = 2", "channels = 0"));
    s.file("p/ptoc.toml", "target = \"devices/mine.toml\"\n");
    s.file("p/k/add.tile", format!("// run: add pim,interp target=../devices/mine.toml N=300 seed=1\n{kernel}"));
    s.file(
        "p/k/wrong.tile",
        format!(
            "// run: add pim target=../devices/none.toml N=300 seed=1\n\
         // run: add pim target=../devices/broken.toml N=300 seed=1\n{kernel}"
        ),
    );
    let mut text =
        s.runs(&["run p/k/add.tile add -D N=300 --random 1 --verify", "test p/k/add.tile", "test p/k/wrong.tile"]);
    s.file("p/ptoc.toml", "target = \"devices/none.toml\"\n");
    text += &s.runs(&["check p/k/add.tile"]);
    snapshot!(text);
}

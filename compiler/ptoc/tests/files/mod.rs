//! Files that are read no further than they must be, and outputs that take the place of nothing that they must not.

mod outputs;

use super::Sandbox;
use ptoc_tensor::DType;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};

const KERNELS: &str = "\
use parts::plus;

kernel add(a: in f32[M, N], b: in f32[M, N], c: out f32[M, N])
{
    grid (i in tiles(M, 16), j in tiles(N, 64));
    TSTORE(c.tile(i, j), plus(Vec(a.tile(i, j)), Vec(b.tile(i, j))));
}

kernel fixed(a: in f32[3, 4], c: out f32[3, 4])
{
    TSTORE(c, Vec(a));
}

kernel next(x: inout f32[M, N])
{
    grid (i in tiles(M, 16), j in tiles(N, 64));
    TSTORE(x.tile(i, j), Vec(x.tile(i, j)) + 1.0);
}
";

const PARTS: &str = "fn plus(a: f32, b: f32) -> f32 { a + b }\n";

impl Sandbox {
    fn with_parts() -> Sandbox {
        let s = Sandbox::new();
        s.file("k.tile", KERNELS);
        s.file("parts.tile", PARTS);
        s
    }

    /// Status and standard error of a shell's command, in which `$P` is the binary.
    fn shell(&self, script: &str) -> String {
        let mut command = Command::new("bash");
        command.current_dir(self.path()).env("P", env!("CARGO_BIN_EXE_ptoc")).arg("-c").arg(script);
        let output = command.output().unwrap();
        format!("exit {}\n{}", output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
    }
}

/// The beginning of an array's file.
fn header(descr: &str, shape: &str) -> Vec<u8> {
    let text = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}");
    [b"\x93NUMPY\x01\x00", &(text.len() as u16).to_le_bytes()[..], text.as_bytes()].concat()
}

/// A file that is longer than the disk; `false` where the file system has none so long.
fn sparse(path: &Path, beginning: &[u8], length: u64) -> bool {
    fs::write(path, beginning).unwrap();
    File::options().write(true).open(path).unwrap().set_len(length).is_ok()
}

fn assert_refused(run: &str, code: &str) {
    assert!(run.contains("exit 1\n") && run.contains(&format!("error[{code}]")), "{run}");
    assert_eq!(run.matches("error[").count(), 1, "one mistake, one error: {run}");
}

#[test]
fn headers_are_believed_only_as_far_as_the_file_goes() {
    let s = Sandbox::with_parts();
    let sparse = |name: &str, beginning: &[u8], data: u64| {
        let length = data + beginning.len() as u64;
        sparse(&s.path().join(name), beginning, length)
    };
    let tera = header("<f4", "(1099511627776, 1)");
    assert!(sparse("claims.npy", &tera, 8 << 30));
    assert!(sparse("trails.npy", &header("<f4", "(3, 4)"), 8 << 30));
    assert!(sparse("dtype.npy", &header("<f2", "(64, 67108864)"), 8 << 30));
    assert!(sparse("shape.npy", &header("<f4", "(32, 67108864)"), 8 << 30));
    assert!(sparse("header.npy", b"\x93NUMPY\x02\x00\xff\xff\xff\xff", 8 << 30));
    let mut calls = vec![
        ("add --in a=claims.npy --in b=b.npy", "E0706"),
        ("add --in a=trails.npy --in b=b.npy", "E0707"),
        ("add --in a=header.npy --in b=b.npy", "E0704"),
        ("fixed --in a=dtype.npy", "E0750"),
        ("fixed --in a=shape.npy", "E0751"),
        ("fixed --in a=a.npy --expect c=dtype.npy", "E0711"),
        ("fixed --in a=a.npy --expect c=shape.npy", "E0712"),
        ("fixed --in a=a.npy --expect c=claims.npy", "E0706"),
    ];
    if sparse("memory.npy", &tera, 4 << 40) {
        calls.push(("next --in x=memory.npy", "E0708"));
    }
    for (args, code) in calls {
        assert_refused(&s.run(&format!("run k.tile {args}")), code);
    }
}

#[test]
fn devices_hold_no_arrays() {
    let s = Sandbox::with_parts();
    for device in ["/dev/zero", "/dev/full", "/dev/urandom", "/dev/null"] {
        assert_refused(&s.run(&format!("run k.tile add --in a={device} --in b=b.npy")), "E0701");
        assert_refused(&s.run(&format!("run k.tile fixed --in a=a.npy --expect c={device}")), "E0701");
    }
    assert_refused(&s.run("run k.tile add --in a=. --in b=b.npy"), "E0740");
    for args in ["check /dev/zero", "sim /dev/zero", "dram /dev/zero --config hbm2_2000"] {
        assert_refused(&s.run(args), "E0740");
    }
    assert_refused(&s.shell("$P fmt - < /dev/zero"), "E0740");
    // Who speaks no protocol is gone, and a command that has no end is none.
    assert!(s.shell("$P lsp < /dev/zero").starts_with("exit 1"));
}

#[test]
fn arrays_come_through_pipes() {
    let s = Sandbox::with_parts();
    assert!(s.run("run k.tile add --in a=a.npy --in b=b.npy --out c=c.npy").contains("exit 0"));
    for script in [
        "cat a.npy | $P run k.tile add --in a=/dev/stdin --in b=b.npy --expect c=c.npy",
        "$P run k.tile add --in a=/dev/stdin --in b=b.npy --expect c=c.npy < a.npy",
        "$P run k.tile add --in a=<(cat a.npy) --in b=<(cat b.npy) --expect c=<(cat c.npy)",
        // One writer, who begins a pipe when the one before is empty; an array that no pipe holds.
        "mkfifo f g h; (cat a.npy >f; cat b.npy >g; cat c.npy >h) & $P run k.tile add --in a=f --in b=g --expect c=h",
        "mkfifo p q; (cat big.npy >p; cat big.npy >q) & $P run k.tile add --in a=p --in b=q",
        "$P run k.tile add --in a=<(cat a.npy) --in b=b.npy --out c=/dev/stdout | grep -q NUMPY",
    ] {
        s.array("big.npy", DType::F32, &[300, 400]);
        let run = s.shell(script);
        assert!(run.contains("exit 0"), "{script}: {run}");
    }
}

#[test]
fn pipes_are_read_as_far_as_their_headers_say() {
    let s = Sandbox::with_parts();
    fs::write(s.path().join("tera"), header("<f4", "(1099511627776, 1)")).unwrap();
    fs::write(s.path().join("giga"), header("<f4", "(1073741824, 4)")).unwrap();
    for (script, code) in [
        // The shape is refused before the elements come; of what comes, no more than one byte too many is taken.
        ("$P run k.tile fixed --in a=<(cat giga /dev/zero)", "E0751"),
        ("$P run k.tile fixed --in a=<(cat a.npy /dev/zero)", "E0707"),
        ("$P run k.tile next --in x=<(cat tera /dev/zero)", "E0708"),
        ("$P run k.tile fixed --in a=<(head -c 150 a.npy)", "E0706"),
        ("$P run k.tile fixed --in a=<(head -c 50 a.npy)", "E0703"),
        ("$P run k.tile fixed --in a=<(head -c 8 a.npy)", "E0703"),
        ("$P run k.tile fixed --in a=a.npy --expect c=<(cat a.npy a.npy)", "E0707"),
        ("cat a.npy b.npy | $P run k.tile add --in a=/dev/stdin --in b=/dev/stdin", "E0740"),
        ("cat a.npy | $P run k.tile fixed --in a=/dev/stdin --expect c=/dev/stdin", "E0740"),
    ] {
        assert_refused(&s.shell(script), code);
    }
}

/// Which part of the call an error of a pipe is about.
#[test]
fn errors_of_pipes_have_a_place() {
    let s = Sandbox::with_parts();
    let run = s.shell("$P run k.tile add --in a=<(head -c 150 a.npy) --in b=<(cat b.npy)");
    assert!(run.contains("k.tile:3:12") && run.contains("for this argument"), "{run}");
    let run = s.shell("cat a.npy b.npy | $P run k.tile add --in a=/dev/stdin --in b=/dev/stdin");
    assert!(run.contains("k.tile:3:29") && run.contains("it is the pipe that `a` is read from"), "{run}");
}

#[test]
fn results_that_cannot_be_written_are_told() {
    let s = Sandbox::new();
    for args in ["--help", "--version", "run --help", "help", "explain --list", "completions bash", "targets"] {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let output = s.command(args).stdout(full).stderr(Stdio::piped()).output().unwrap();
        let err = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code() == Some(1) && err.contains("error[E0742]"), "{args}: {err}");
        // Who reads no further wants no more, and no message.
        let mut child = s.command(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert_eq!((output.status.code(), &output.stderr[..]), (Some(0), &b""[..]), "{args}");
    }
}

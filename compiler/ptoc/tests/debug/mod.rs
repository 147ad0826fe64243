//! Sessions of `ptoc run --step`, as somebody at a terminal sees them, and `--print-tile`.

mod pages;
mod results;
mod roles;

use ptoc_cli::io::Io;
use std::ffi::OsString;
use std::io::Cursor;
use std::path::Path;

/// Where the repository begins, from the directory in which tests run.
const ROOT: &str = "../../";

/// The file in the arguments, from here.
fn here(arg: &str) -> String {
    match arg {
        arg if arg.starts_with("examples/") => format!("{ROOT}{arg}"),
        arg if arg.ends_with(".tile") => format!("tests/debug/{arg}"),
        arg => arg.to_owned(),
    }
}

/// Exit status, standard output and standard error of a call with these lines as input.
fn call(args: &[&str], input: &str, terminal: bool) -> (u8, String, String) {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let mut input = Cursor::new(input.to_owned());
    let mut io = Io::new(&mut out, &mut err);
    io.input = Some(&mut input);
    io.interactive = terminal;
    let args = ["ptoc"].into_iter().chain(args.iter().copied());
    let status = ptoc_cli::execute(args.map(|a| OsString::from(here(a))), &mut io);
    let text = |bytes| String::from_utf8(bytes).unwrap().replace(ROOT, "").replace("tests/debug/", "");
    let err = text(err);
    // The last line of a run has times.
    let err: String = err.lines().filter(|l| !l.contains("compiled in")).map(|l| format!("{l}\n")).collect();
    (status, text(out), err)
}

/// A session: `(ptoc) command` and its answer, command for command.
fn session(args: &str, commands: &str) -> String {
    let commands: Vec<&str> = commands.lines().map(str::trim).filter(|c| !c.is_empty()).collect();
    let args: Vec<&str> = args.split_whitespace().collect();
    let (status, out, err) = call(&args, &(commands.join("\n") + "\n"), true);
    let mut given = commands.iter();
    let mut text = format!("$ ptoc {}\n", args.join(" "));
    for (n, part) in out.split("(ptoc) ").enumerate() {
        if n > 0 {
            match given.next() {
                Some(command) => text.push_str(&format!("(ptoc) {command}\n")),
                None => text.push_str("(ptoc) "),
            }
        }
        text.push_str(part);
    }
    if !err.is_empty() {
        text.push_str(&format!("-- stderr\n{err}"));
    }
    if status != 0 {
        text.push_str(&format!("exit {status}\n"));
    }
    text
}

#[test]
fn straight_line_code() {
    insta::assert_snapshot!(session(
        "run straight.tile --step -D M=18 -D N=70 --random 1",
        "step 3
         tiles
         print x
         break 6
         continue
         print x
         step
         step
         print x
         print y[0, 62:64]
         next
         print z[-1, -3:]
         print a
         step
         step
         step
         print parts
         print parts[1, 0:2]
         print parts[0]
         print parts[2]
         tiles
         info locals
         block
         block i=1 j=1
         step 5
         print x
         print x[0:4, 4:9]
         next 3
         print z
         block 0 0
         where"
    ));
}

#[test]
fn the_k_loop_of_a_matrix_product() {
    insta::assert_snapshot!(session(
        "run examples/gemm.tile gemm --step -D M=65 -D N=33 -D K=97 --random 1",
        "break TMATMUL_ACC if k == 1 && acc[0, 0] > 0.0
         break 59 if k.start > 1000
         info breaks
         c
         where
         print k
         print k.start + 1
         print k.len * 2 - BK
         print k.first
         print a[0:2, 30:35]
         watch acc[0, 0]
         c
         tiles
         print A[-1, 0:4]
         until
         delete 1
         c
         info b
         d
         block m=1
         next 4
         until
         finish"
    ));
}

#[test]
fn an_attention_kernel() {
    insta::assert_snapshot!(session(
        "run examples/attention.tile --step -D H=1 -D M=17 -D N=50 -D D=16 -D BM=16 -D BN=16 --random 3",
        "break hide_future
         break TROWMAX
         break 70
         c
         where
         d 2
         c
         info locals
         print score[0:3, 0:3]
         print keys[0:2, 0:3]
         step
         c
         where
         tiles
         list
         quit"
    ));
}

#[test]
fn functions_loops_and_jumps() {
    insta::assert_snapshot!(session(
        "run calls.tile --step -D M=8 --random 1",
        "next 3
         next
         step
         step
         where
         info locals
         finish
         break 9 if lo > 14.2
         break collatz
         c
         print t
         where
         finish
         c
         print t
         next 6
         watch steps
         watch n
         c
         c
         where
         delete
         until 20
         finish
         until 37
         step
         step
         step
         step"
    ));
}

#[test]
fn programs_of_several_kernels() {
    insta::assert_snapshot!(session(
        "run examples/split_k.tile matmul_split --step -D M=8 -D N=8 -D K=130 -D SPLIT=2 --random 1",
        "break add_parts
         watch P[1, 0, 0]
         info
         c
         c
         where
         info
         print P[:, 0, 0:3]
         list partial
         c"
    ));
}

#[test]
fn mistakes_are_told() {
    insta::assert_snapshot!(session(
        "run straight.tile --step -D M=16 -D N=64 --random 1",
        "frobnicate
         contniue
         x
         print
         print xx
         print x
         s 2
         print parts
         print x[0:17, 0]
         print x[0, 0, 0]
         print x[q]
         print x[0
         print i[0]
         print x + 1
         print 1 +
         print i.size
         print a.start
         break
         break 1
         break 900
         break other.tile:3
         break TLAOD
         break straigth
         break 7
         break 8 if x
         break 8 if i >
         until TADD
         watch i
         watch c[0:9000]
         watch i + 1
         delete 9
         info nothing
         list 4000
         list strait
         step 0
         block k=1
         block i=7
         block 0 0
         help pri
         c
         d 3
         d 4
         break TCVT
         c
         c
         print y[0, 0] * 2
         break TADD
         until 11
         step
         break TSTORE
         step
         c"
    ));
}

#[test]
fn help_lists_the_commands() {
    insta::assert_snapshot!(session("run straight.tile --step -D M=16 -D N=64 --random 1", "help\nquit"));
}

#[test]
fn a_run_that_fails_can_be_looked_at() {
    insta::assert_snapshot!(session(
        "run calls.tile --step -D M=9 --random 1",
        "c
         where
         info locals
         print t
         c"
    ));
}

#[test]
fn an_empty_line_repeats_and_the_end_of_input_lets_go() {
    // At a terminal; the empty line is dropped by `session`.
    let args = ["run", "straight.tile", "--step", "-D", "M=16", "-D", "N=64", "--random", "1"];
    let (status, out, _) = call(&args, "step\n\n\n", true);
    assert_eq!(status, 0);
    assert_eq!(out.matches("(ptoc) ").count(), 4, "{out}");
    assert!(out.contains("straight.tile:5"), "{out}");
    assert!(out.contains("c: f32[16, 64]\n"), "the run went on to its end: {out}");
    // From a file there are no prompts, empty lines are nothing, and `#` is a comment.
    let (status, out, _) = call(&args, "step 2\n\n\n# a comment\nprint x[0, 0]", false);
    assert_eq!(status, 0);
    assert!(!out.contains("(ptoc)"), "{out}");
    assert!(out.contains("straight.tile:4") && !out.contains("straight.tile:5"), "{out}");
    assert!(out.contains("x: Vec f16 16 x 64, at"), "{out}");
    // Without any input the run is an ordinary one after the first stop.
    let (status, out, _) = call(&args, "", false);
    assert_eq!(status, 0);
    assert!(out.contains("c: f32[16, 64]\n"), "{out}");
}

#[test]
fn quitting_writes_nothing() {
    let dir = tempfile::TempDir::new().unwrap();
    let path = dir.path().join("c.npy");
    let out = format!("c={}", path.display());
    let args =
        ["run", "straight.tile", "--step", "-D", "M=16", "-D", "N=64", "--random", "1", "--verify", "--out", &out];
    let args: Vec<&str> = args.into_iter().filter(|a| *a != "--verify").collect();
    let (status, _, err) = call(&args, "quit\n", false);
    assert_eq!((status, err.as_str()), (0, ""));
    assert!(!Path::new(&path).exists());
    let (status, ..) = call(&args, "continue\n", false);
    assert_eq!(status, 0);
    assert!(Path::new(&path).exists());
}

/// Back by statements and to writes, and forwards again to the same results.
#[test]
fn the_way_back() {
    insta::assert_snapshot!(session(
        "run calls.tile --step -D M=8 --random 1",
        "break 36
         continue
         back
         back
         print t[0, 0:2]
         back t
         print t[0, 0:2]
         back t
         next
         back nowhere
         back a
         continue
         continue"
    ));
}

/// A flag that is waited for in vain, phases of a barrier, slots of a ring.
#[test]
fn events_of_manual_kernels() {
    insta::assert_snapshot!(session(
        "run events.tile phases --step -D M=8 -D N=48 --random 1",
        "events
         break 17
         continue
         events
         step
         events
         step
         step
         events
         continue 2
         events
         step 4
         events
         continue"
    ));
    insta::assert_snapshot!(session(
        "run events.tile slots --step -D M=8 -D N=48 --random 1",
        "break 34
         continue
         events
         step
         events
         break 37
         continue
         events
         step
         events
         continue 2
         events
         quit"
    ));
    insta::assert_snapshot!(session(
        "run events.tile more --step -D extra=4 --random 1",
        "break 53
         continue
         events
         quit"
    ));
    insta::assert_snapshot!(session(
        "run straight.tile --step -D M=18 -D N=70 --random 1",
        "events
         quit"
    ));
}

/// Calls without input.
fn calls(list: &[&str]) -> String {
    let mut text = String::new();
    for args in list {
        let (status, out, err) = call(&args.split_whitespace().collect::<Vec<_>>(), "", false);
        text.push_str(&format!("$ ptoc {args}\nexit {status}\n{out}{err}\n"));
    }
    text
}

#[test]
fn tiles_are_printed_where_it_is_asked_for() {
    insta::assert_snapshot!(calls(&[
        "run calls.tile -D M=8 --random 1 --print-tile t[0:2,0:3]@26 --print-tile t[0,0:3]@9 --print-tile a@27 \
         --print-tile t[:2,14:]@32 --print-tile t[0]@37 --print-tile n@17",
        "run examples/gemm.tile gemm -D M=9 -D N=8 -D K=70 --random 1 --print-tile acc[0:2,0:4]@60 --print-tile acc@57",
        "run examples/split_k.tile matmul_split -D M=8 -D N=8 -D K=130 -D SPLIT=2 --random 1 --print-tile P@37",
    ]));
}

#[test]
fn wrong_calls() {
    insta::assert_snapshot!(calls(&[
        "run calls.tile -D M=8 --random 1 --print-tile tt@26 --print-tile t@23 --print-tile t@900 --print-tile \
        t@other.tile:3",
        "run calls.tile -D M=8 --random 1 --print-tile t[0:20]@26",
        "run calls.tile -D M=8 --random 1 --print-tile t@0",
        "run calls.tile -D M=8 --random 1 --print-tile t[0@4",
        "run calls.tile -D M=8 --random 1 --print-tile t",
        "run calls.tile -D M=8 --random 1 --print-tile t@26 --backend cpu",
        "run calls.tile -D M=8 --random 1 --step --backend pim",
        "run calls.tile -D M=8 --random 1 --step --json",
    ]));
}

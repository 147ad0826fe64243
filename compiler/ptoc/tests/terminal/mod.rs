//! Arguments, and where output goes.

#[cfg(all(target_os = "linux", feature = "debugger"))]
mod pty;

use super::{Sandbox, snapshot};
use std::fs;
use std::process::Stdio;

#[test]
fn wrong_calls_and_what_is_for_later() {
    let s = Sandbox::new();
    snapshot!(s.runs(&[
        "--help",
        "run --help",
        "",
        "frobnicate",
        "check",
        "fmt --check add.tile",
        "lsp",
        "mem add.tile",
        "sim x.pim",
        "bench add.tile",
    ]));
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = s.run(&format!("completions {shell}"));
        assert!(script.contains("exit 0") && script.contains("ptoc"), "{shell}");
    }
}

#[test]
fn colours_only_where_they_are_wanted() {
    let s = Sandbox::new();
    assert!(!s.run("check missing.tile").contains('\x1b'));
    assert!(s.run("check missing.tile --color always").contains('\x1b'));
    assert!(!s.run("check missing.tile --color never").contains('\x1b'));
}

#[test]
fn a_reader_that_has_gone_is_no_panic() {
    let s = Sandbox::new();
    for args in [
        "explain --list",
        "targets",
        "emit add.tile add --stage clif",
        "run add.tile add --random 1 -D M=3 -D N=3",
        "--help",
    ] {
        let mut child = s.command(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        let err = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(0) && !err.contains("panicked"), "{args}: {err}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_told() {
    let s = Sandbox::new();
    let full = fs::File::options().write(true).open("/dev/full").unwrap();
    let output = s.command("targets").stdout(full).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("E0742"));
}

/// The debugger at a terminal: lines are edited and completed, those before come back, and Ctrl-C stops the run.
#[cfg(all(target_os = "linux", feature = "debugger"))]
#[test]
fn the_debugger_edits_lines() {
    let s = Sandbox::new();
    s.file(
        "long.tile",
        "kernel long(y: out f32[8, 64]) {
    let counter = tile Vec<f32, 8, 64>;
    counter = 0.0;
    for i in 0..100000000 {
        TADDS(counter, counter, 1.0);
    }
    TSTORE(y, counter);
}
",
    );
    let mut t = pty::Terminal::start(s.command("run long.tile --step"));
    t.until("long.tile:2 in long");
    t.until("(ptoc) ");
    t.press("next\r");
    t.until("long.tile:3 in long");
    t.until("(ptoc) ");
    t.press("next\r");
    t.until("(ptoc) ");
    t.press("back counter\r");
    t.until("long.tile:3 in long");
    t.until("(ptoc) ");
    // Tab completes a name, and Backspace takes a letter away.
    t.press("print cou\tX\x7f.shape\r");
    t.until("counter.shape = (8, 64)");
    t.until("(ptoc) ");
    // The line before comes back.
    t.press("\x1b[A\r");
    t.until("counter.shape = (8, 64)");
    t.until("(ptoc) ");
    // At the prompt Ctrl-C drops the line.
    t.press("quit\x03");
    t.until("(ptoc) ");
    // Names of what a run can stop at, and words of commands.
    t.press("info lo\t\r");
    t.until("counter");
    t.until("(ptoc) ");
    t.press("break TADDS\t\r");
    t.until("Breakpoint 1: TADDS");
    t.until("(ptoc) ");
    t.press("break coun\t\r");
    t.until("Breakpoint 2: ");
    t.until("(ptoc) ");
    t.press("delete\r");
    t.until("(ptoc) ");
    // Each line that is pasted is a command.
    t.press("\x1b[200~print counter.shape\nprint 3 * 5\x1b[201~\r");
    t.until("counter.shape = (8, 64)");
    t.until("3 * 5 = 15");
    t.until("(ptoc) ");
    // While the program runs Ctrl-C stops the run. Keys that come between two modes of the terminal may be lost.
    t.press_until(&["continue\r", "\x03"], "Interrupted at ");
    t.until("in long");
    t.until("(ptoc) ");
    // A Ctrl-C more may have come to the prompt, where it drops the line.
    t.press_until(&["print i > 0\r"], "i > 0 = true");
    t.until("i > 0 = true");
    t.until("(ptoc) ");
    // At the end of the input the run goes on, and Ctrl-C ends it, as it ends every program.
    // Between two lines the terminal takes Ctrl-D for its own, so both are pressed until it has ended.
    assert_eq!(t.end_by("\x04\x03"), Some(libc::SIGINT));
    let mut t = pty::Terminal::start(s.command("run long.tile --step"));
    t.until("(ptoc) ");
    t.press("quit\r");
    assert_eq!(t.end(), Some(0));
}

//! Arguments, and where output goes.

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

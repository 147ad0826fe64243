//! Every command of `ptoc --help`: in a pipe, with wrong arguments, without its file, interrupted. `check --fix`,
//! `--watch`, SARIF, completions, manual pages.

mod fixes;

use super::Sandbox;
use std::process::{Command, Output, Stdio};

/// A command, with arguments by which it reads the file `FILE`; without any, it reads standard input or no file.
const COMMANDS: [(&str, &str); 21] = [
    ("check", "FILE"),
    ("run", "FILE"),
    ("emit", "FILE --stage ir"),
    ("build", "FILE -o out.o"),
    ("mem", "FILE"),
    ("test", "FILE"),
    ("explain", ""),
    ("targets", ""),
    ("layout", ""),
    ("dram", "FILE --config hbm2_2000"),
    ("sim", "FILE"),
    ("completions", ""),
    ("man", ""),
    ("bench", "FILE"),
    ("profile", "FILE"),
    ("tune", ""),
    ("fmt", "FILE"),
    ("import", "FILE.pto -o out.tile"),
    ("init", ""),
    ("lsp", ""),
    ("dap", ""),
];

fn output(s: &Sandbox, args: &str) -> Output {
    s.command(args).stdin(Stdio::null()).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// The table has all commands that there are.
#[test]
fn the_table_is_whole() {
    let help = text(&output(&Sandbox::new(), "--help").stdout);
    let list = help.split("Commands:\n").nth(1).unwrap().split("\n\n").next().unwrap();
    let mut named: Vec<&str> =
        list.lines().filter_map(|l| l.split_whitespace().next()).filter(|n| *n != "help").collect();
    let mut known: Vec<&str> = COMMANDS.iter().map(|c| c.0).collect();
    named.retain(|n| help.contains(&format!("\n  {n} ")));
    named.sort_unstable();
    known.sort_unstable();
    assert_eq!(named, known);
}

#[test]
fn help_in_a_pipe() {
    let s = Sandbox::new();
    for (command, _) in COMMANDS {
        for flag in ["--help", "-h"] {
            let found = output(&s, &format!("{command} {flag}"));
            let (out, err) = (text(&found.stdout), text(&found.stderr));
            assert_eq!((found.status.code(), err.as_str()), (Some(0), ""), "{command} {flag}");
            assert!(out.contains("Usage: ptoc") && !out.contains('\x1b'), "{command} {flag}: {out}");
        }
    }
}

/// Status 2: the words of the call are wrong, and nothing was read.
#[test]
fn wrong_arguments() {
    let s = Sandbox::new();
    for (command, _) in COMMANDS {
        let found = output(&s, &format!("{command} --no-such-flag"));
        let (out, err) = (text(&found.stdout), text(&found.stderr));
        assert_eq!((found.status.code(), out.as_str()), (Some(2), ""), "{command}: {err}");
        assert!(err.starts_with("error: ") && err.contains("--no-such-flag"), "{command}: {err}");
        assert!(!err.contains('\x1b'), "{command}: {err}");
    }
    for call in [
        "",
        "frobnicate",
        "check",
        "check - --fix",
        "check - --watch",
        "check missing.tile --target a6",
        "check missing.tile --deny W9999",
        "run missing.tile -D M=1 -D M=2",
        "run missing.tile --schedule late",
        "run missing.tile --rtol 1e-3",
        "run missing.tile --step --backend cpu",
        "run missing.tile --sanitize --backend pim",
        "check missing.tile --watch --message-format sarif",
        "run missing.tile --html page.html --backend cpu",
        "test missing.tile --sanitize --backend pim",
        "man frobnicate",
        "explain",
        "explain E9999",
        "layout",
    ] {
        let found = output(&s, call);
        assert_eq!(found.status.code(), Some(2), "{call}: {}", text(&found.stderr));
        assert_eq!(text(&found.stdout), "", "{call}");
        assert!(!text(&found.stderr).is_empty(), "{call}");
    }
}

/// Status 1: what the call names is wrong.
#[test]
fn files_that_are_not_there() {
    let s = Sandbox::new();
    let before = s.listing();
    for (command, args) in COMMANDS.iter().filter(|(_, args)| args.contains("FILE")) {
        let found = output(&s, &format!("{command} {}", args.replace("FILE", "missing.tile")));
        let err = text(&found.stderr);
        assert_eq!(found.status.code(), Some(1), "{command}: {err}");
        assert!(err.contains("missing.tile") && err.contains("error[E"), "{command}: {err}");
    }
    for call in ["layout (1", "init nowhere", "man --dir nowhere", "run add.tile nothing"] {
        let found = output(&s, call);
        assert_eq!(found.status.code(), Some(1), "{call}: {}", text(&found.stderr));
    }
    assert_eq!(s.listing(), before);
}

/// Lets a signal end a process, also where these tests run with that signal ignored (a job in the background).
#[cfg(unix)]
fn takes_signal(call: &mut Command, number: i32) {
    use std::os::unix::process::CommandExt;
    // SAFETY: `signal` may be called between fork and exec.
    unsafe {
        call.pre_exec(move || {
            libc::signal(number, libc::SIG_DFL);
            Ok(())
        });
    }
}

/// A command that waits for its file, a pipe that nobody writes to, ends by the signal and leaves nothing.
#[cfg(unix)]
#[test]
fn signals() {
    use std::os::unix::process::ExitStatusExt;
    use std::time::Duration;
    let s = Sandbox::new();
    assert!(Command::new("mkfifo").arg(s.path().join("pipe.tile")).status().unwrap().success());
    assert!(Command::new("mkfifo").arg(s.path().join("pipe.tile.pto")).status().unwrap().success());
    let before = s.listing();
    let waits = COMMANDS.iter().filter(|(name, args)| args.contains("FILE") || ["lsp", "dap"].contains(name));
    for (command, args) in waits {
        for (name, number) in [("INT", libc::SIGINT), ("TERM", libc::SIGTERM)] {
            let mut call = s.command(&format!("{command} {}", args.replace("FILE", "pipe.tile")));
            call.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
            takes_signal(&mut call, number);
            let mut child = call.spawn().unwrap();
            let input = child.stdin.take();
            std::thread::sleep(Duration::from_millis(300));
            // Whoever has ended before does not wait for its file.
            assert!(child.try_wait().unwrap().is_none(), "{command} does not read its file");
            let killed =
                std::process::Command::new("kill").arg(format!("-{name}")).arg(child.id().to_string()).status();
            assert!(killed.unwrap().success());
            let found = child.wait_with_output().unwrap();
            drop(input);
            assert_eq!(found.status.signal(), Some(number), "{command}: {}", text(&found.stderr));
            assert_eq!(s.listing(), before, "{command}");
        }
    }
}

/// Who interrupts tests is told how far they were.
#[cfg(unix)]
#[test]
fn what_was_done_is_said() {
    use std::io::{BufRead, BufReader};
    let s = Sandbox::new();
    let long = "kernel long(y: out f32[8, 64]) {
    let t = tile Vec<f32, 8, 64>;
    t = 0.0;
    for i in 0..100000000 { TADDS(t, t, 1.0); }
    TSTORE(y, t);
}
kernel short(y: out f32[8, 64]) {
    let t = tile Vec<f32, 8, 64>;
    t = 0.0;
    TSTORE(y, t);
}
";
    s.file("long.tile", format!("// run: short interp seed=1\n// run: long interp seed=1\n{long}"));
    let mut call = s.command("test long.tile");
    takes_signal(&mut call, libc::SIGINT);
    let mut child = call.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    out.read_line(&mut line).unwrap();
    assert!(line.contains("long.tile:1"), "{line}");
    assert!(std::process::Command::new("kill").arg("-INT").arg(child.id().to_string()).status().unwrap().success());
    let found = child.wait_with_output().unwrap();
    let (passed, failed) = if line.starts_with("ok") { (1, 0) } else { (0, 1) };
    let said = format!("interrupted: {passed} passed, {failed} failed; the rest was not tested");
    assert!(text(&found.stderr).contains(&said), "{}", text(&found.stderr));
}

/// Whoever interrupts `check` is told how far it was, to the file.
#[cfg(unix)]
#[test]
fn checks_say_how_far_they_were() {
    use std::io::{BufRead, BufReader};
    let s = Sandbox::new();
    let kernel =
        "kernel k(y: out f32[16, 64]) {\n    let t = tile Vec<f32, 16, 64>;\n    t = 1.0\n    TSTORE(y, t);\n}\n";
    let mended = kernel.replace("1.0", "1.0;");
    let number = |line: &str, before: &str| -> usize {
        let word = line.split_once(before).map_or(line, |(front, _)| front);
        word.split_whitespace().last().and_then(|n| n.parse().ok()).unwrap_or_else(|| panic!("{line}"))
    };
    // As often as it has ended before the signal came.
    let interrupted = |args: &str, count: usize| loop {
        for n in 0..count {
            s.file(&format!("all/k{n}.tile"), if args.contains("--fix") { kernel } else { &mended });
        }
        let mut call = s.command(args);
        takes_signal(&mut call, libc::SIGINT);
        let mut child = call.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let mut first = String::new();
        out.read_line(&mut first).unwrap();
        let kill = Command::new("kill").arg("-INT").arg(child.id().to_string()).status().unwrap();
        let mut lines = vec![first];
        lines.extend(out.lines().map(Result::unwrap));
        let found = child.wait_with_output().unwrap();
        if kill.success() && found.status.code().is_none() {
            let said =
                text(&found.stderr).lines().find(|l| l.contains("interrupted: ")).expect("it is said").to_owned();
            return (lines, said.split_once("interrupted: ").unwrap().1.to_owned());
        }
    };
    let (lines, said) = interrupted("check all", 400);
    let good = lines.iter().filter(|line| line.contains(": ok")).count();
    assert_eq!(number(&said, " without errors"), good, "{said}");
    assert_eq!(number(&said, " files not checked"), 400 - good, "{said}");
    let (_, said) = interrupted("check all --fix", 400);
    // The signal may also come while what is left is checked, after all is mended.
    if said.contains("mended in") {
        let changed = |n: &usize| std::fs::read_to_string(s.path().join(format!("all/k{n}.tile"))).unwrap() == mended;
        let changed = (0..400).filter(changed).count();
        assert_eq!(number(said.split(" mended in ").nth(1).unwrap(), " file"), changed, "{said}");
    }
}

#[test]
fn manual_pages() {
    let s = Sandbox::new();
    let page = text(&output(&s, "man").stdout);
    assert!(page.contains(".TH ptoc 1") && page.contains("ptoc\\-check(1)"), "{page}");
    let check = text(&output(&s, "man check").stdout);
    assert!(
        check.contains("\\-\\-watch") && check.contains(".SH SYNOPSIS\nptoc check [OPTIONS] <FILE|DIR>..."),
        "{check}"
    );
    assert!(!page.contains("ptoc\\-help"), "{page}");
    std::fs::create_dir(s.path().join("man1")).unwrap();
    assert!(text(&output(&s, "man --dir man1").stdout).contains(&format!("{} pages", COMMANDS.len() + 1)));
    for (command, _) in COMMANDS {
        assert!(s.path().join(format!("man1/ptoc-{command}.1")).exists(), "{command}");
    }
}

/// The script for bash: words with spaces, and values behind `=`.
#[cfg(unix)]
#[test]
fn completions_in_bash() {
    let s = Sandbox::new();
    s.file("b c.tile", "kernel k(y: out f32[16, 64]) {}\n");
    let script = text(&output(&s, "completions bash").stdout).replace("\"ptoc\" --", "\"$PTOC\" --");
    s.file("ptoc.bash", script);
    let complete = |words: &str| {
        let call = format!(
            "source ./ptoc.bash; COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); COMP_TYPE=9; \
             _clap_complete_ptoc ptoc \"${{COMP_WORDS[COMP_CWORD]/#=/}}\" x; printf '%s\\n' \"${{COMPREPLY[@]}}\""
        );
        let mut bash = Command::new("bash");
        bash.arg("-c").arg(call).current_dir(s.path()).env("PTOC", env!("CARGO_BIN_EXE_ptoc"));
        let found = bash.stderr(Stdio::null()).output().unwrap();
        text(&found.stdout).trim().to_owned()
    };
    assert!(complete("ptoc check b").lines().any(|word| word == "b\\ c.tile"));
    assert_eq!(complete("ptoc check 'b\\ '"), "b\\ c.tile");
    assert_eq!(complete("ptoc run 'b\\ c.tile' ''").lines().next(), Some("k"));
    assert_eq!(complete("ptoc run add.tile add --out c ="), "");
    assert_eq!(complete("ptoc run add.tile add -D ROWS ="), "");
}

/// What a shell asks for is asked by the environment.
#[test]
fn completions_know_the_file() {
    let s = Sandbox::new();
    let complete = |line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        let mut command = s.command("");
        command.env("COMPLETE", "bash").env("_CLAP_COMPLETE_INDEX", (words.len() - 1).to_string());
        command.env("_CLAP_COMPLETE_COMP_TYPE", "9").env("_CLAP_COMPLETE_SPACE", "true").env("_CLAP_IFS", "\n");
        let found = command.arg("--").args(&words).output().unwrap();
        assert!(found.status.success(), "{}", text(&found.stderr));
        text(&found.stdout)
    };
    assert_eq!(complete("ptoc run add.tile a").lines().next(), Some("add"));
    assert!(complete("ptoc run add.tile add --target kirin").contains("kirin9030"));
    let names = complete("ptoc run add.tile add -D ");
    assert!(names.contains("ROWS=") && names.contains("M="), "{names}");
    assert!(complete("ptoc explain E076").contains("E0767"));
    assert!(complete("ptoc explain TAD").contains("TADD"));
    assert!(complete("ptoc check add.tile --deny W07").contains("W0760"));
    assert!(complete("ptoc che").contains("check"));
    assert!(complete("ptoc man che").contains("check"));
    assert!(complete("ptoc run add.tile add --schedule ").contains("late"));
    assert_eq!(complete("ptoc run add.tile add --in ").lines().collect::<Vec<_>>(), ["a=", "b="]);
    assert_eq!(complete("ptoc run add.tile add --out ").lines().collect::<Vec<_>>(), ["c="]);
    // Names of the kernel on the line, and of no other.
    assert!(!names.contains("s="), "{names}");
    let all = complete("ptoc check add.tile -D ");
    assert!(all.contains("s=") && all.contains("ROWS="), "{all}");
}

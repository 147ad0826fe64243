//! Symbols and lines of generated code for others' profilers: the jitdump file of Linux's `perf`, read here by a
//! decoder of its own, and the line table of PTX.

use super::Sandbox;
use std::collections::BTreeSet;

/// A function of a jitdump file.
#[cfg(target_os = "linux")]
#[derive(Debug)]
struct Jitted {
    name: String,
    address: u64,
    code: Vec<u8>,
    /// Address, line and file.
    lines: Vec<(u64, u32, String)>,
}

/// What is in front of the rest.
#[cfg(target_os = "linux")]
fn word<const N: usize>(bytes: &mut &[u8]) -> [u8; N] {
    let (word, rest) = bytes.split_first_chunk().expect("the record is long enough");
    *bytes = rest;
    *word
}

#[cfg(target_os = "linux")]
fn text(bytes: &mut &[u8]) -> String {
    let end = bytes.iter().position(|b| *b == 0).expect("it ends");
    let text = String::from_utf8(bytes[..end].to_vec()).unwrap();
    *bytes = &bytes[end + 1..];
    text
}

/// The functions of a file, as `perf inject` reads it: a record of lines belongs to the function behind it.
#[cfg(target_os = "linux")]
fn decode(file: &[u8], process: u32) -> Vec<Jitted> {
    let mut rest = file;
    let u32 = |at: &mut &[u8]| u32::from_ne_bytes(word(at));
    let u64 = |at: &mut &[u8]| u64::from_ne_bytes(word(at));
    assert_eq!([u32(&mut rest), u32(&mut rest), u32(&mut rest)], [0x4A69_5444, 1, 40]);
    let machine = if cfg!(target_arch = "aarch64") { 183 } else { 62 };
    assert_eq!([u32(&mut rest), u32(&mut rest), u32(&mut rest)], [machine, 0, process]);
    let mut time = u64(&mut rest);
    assert_eq!(u64(&mut rest), 0, "flags");
    let (mut functions, mut lines) = (Vec::new(), Vec::new());
    while !rest.is_empty() {
        let whole = rest;
        let (kind, size, at) = (u32(&mut rest), u32(&mut rest) as usize, u64(&mut rest));
        assert!(at >= time, "records are in the order of time");
        time = at;
        let mut body = &whole[16..size];
        rest = &whole[size..];
        match kind {
            0 => {
                assert_eq!(u32(&mut body), process);
                let _thread = u32(&mut body);
                let (address, again, size, number) =
                    (u64(&mut body), u64(&mut body), u64(&mut body) as usize, u64(&mut body));
                assert_eq!((address, number), (again, functions.len() as u64));
                let name = text(&mut body);
                assert_eq!(body.len(), size, "the code ends the record");
                functions.push(Jitted { name, address, code: body.to_vec(), lines: std::mem::take(&mut lines) });
            }
            2 => {
                let address = u64(&mut body);
                for _ in 0..u64(&mut body) {
                    let (at, line, column) = (u64(&mut body), u32(&mut body), u32(&mut body));
                    assert!(at >= address && column > 0);
                    lines.push((at, line, text(&mut body)));
                }
                assert!(body.is_empty());
            }
            other => panic!("a record of kind {other}"),
        }
    }
    functions
}

#[cfg(target_os = "linux")]
#[test]
fn a_jitdump_has_functions_and_lines() {
    let s = Sandbox::new();
    let mut command = s.command("run add.tile add --in a=a.npy --in b=b.npy");
    let mut child = command.env("PTOC_JITDUMP", s.path().join("perf")).spawn().unwrap();
    let process = child.id();
    assert!(child.wait().unwrap().success());
    let file = std::fs::read(s.path().join(format!("perf/jit-{process}.dump"))).unwrap();
    let functions = decode(&file, process);
    let names: Vec<&str> = functions.iter().map(|f| f.name.as_str()).collect();
    assert!(names.contains(&"add.launch") && names.contains(&"add.block"), "{names:?}");
    assert!(names.iter().all(|name| name.starts_with("add.")), "{names:?}");
    for f in &functions {
        assert!(!f.code.is_empty() && f.code.iter().any(|b| *b != 0), "{f:?}");
        let end = f.address + f.code.len() as u64;
        assert!(f.lines.iter().all(|(at, ..)| (f.address..end).contains(at)), "{f:?}");
        assert!(f.lines.is_sorted_by_key(|(at, ..)| *at), "{f:?}");
    }
    let lines: BTreeSet<(u32, &str)> =
        functions.iter().flat_map(|f| &f.lines).map(|(_, line, file)| (*line, file.as_str())).collect();
    // The grid and the statement.
    assert!(lines.contains(&(6, "add.tile")), "{lines:?}");
    assert!(lines.iter().all(|(line, file)| (2..=7).contains(line) && *file == "add.tile"), "{lines:?}");
}

/// Where it cannot be written, one warning says so, and the launch goes on.
#[cfg(unix)]
#[test]
fn a_jitdump_that_cannot_be_written_is_a_warning() {
    let s = Sandbox::new();
    s.file("plain", "no directory");
    s.file(
        "two.tile",
        format!(
            "{}program twice(a: in f32[M, N], c: out f32[M, N]) {{\n    let t = tensor f32[M, N];\n    \
        scale(a, 2.0, t);\n    scale(t, 3.0, c);\n}}\n",
            super::ADD
        ),
    );
    let mut command = s.command("run two.tile twice --random 1 -D M=9 -D N=70");
    let output = command.env("PTOC_JITDUMP", s.path().join("plain")).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{said}");
    assert_eq!(said.matches("W0770").count(), 1, "{said}");
    assert!(said.contains("help: name another directory by the variable `PTOC_JITDUMP`, or unset it"), "{said}");
    // An empty name is none.
    let mut command = s.command("run two.tile twice --random 1 -D M=9 -D N=70");
    let output = command.env("PTOC_JITDUMP", "").output().unwrap();
    assert!(!String::from_utf8(output.stderr).unwrap().contains("W0770"));
}

/// Every instruction of PTX stands behind the line that it is made for.
#[test]
fn ptx_has_a_line_table() {
    let s = Sandbox::new();
    let source = super::ADD.lines().collect::<Vec<_>>();
    let output = s.command("emit add.tile add --target sm90 --stage ptx").output().unwrap();
    let ptx = String::from_utf8(output.stdout).unwrap();
    assert!(ptx.ends_with("}\n.file 1 \"add.tile\"\n"), "{ptx}");
    let (mut line, mut found) = (0usize, Vec::new());
    for text in ptx.lines().map(str::trim) {
        if let Some(place) = text.strip_prefix(".loc 1 ") {
            let (at, column) = place.split_once(' ').unwrap();
            (line, _) = (at.parse().unwrap(), column.parse::<u32>().unwrap());
            assert!((1..=source.len()).contains(&line), "{text}");
        } else if text.contains("ld.global") || text.contains("st.global") {
            found.push((&text[..2], source[line - 1].trim_start()));
        }
    }
    assert!(found.iter().any(|(what, _)| *what == "ld") && found.iter().any(|(what, _)| *what == "st"), "{ptx}");
    assert!(found.iter().all(|(_, text)| text.starts_with("TSTORE")), "{found:?}");
}

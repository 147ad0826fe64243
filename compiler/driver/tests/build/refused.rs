//! What cannot be built, with the code that says so.

use ptoc_driver::build::{Request, build, forms};
use ptoc_driver::session::Session;
use std::path::Path;

/// The codes of what is said, of a text that is to be built.
fn codes(text: &str, target: &str, extension: &str, symbol: Option<&str>) -> Vec<String> {
    let mut session = Session::new(target, &[]).expect("there is such a target");
    let unit = session.load_text(Path::new("k.tile"), text.to_owned());
    let entry = unit.entry(None, "build").expect("it has one kernel");
    let request = Request {
        extension: extension.into(),
        symbol: symbol.map(Into::into),
        header: None,
        launcher: None,
        file: format!("k.{extension}"),
        command: "ptoc build k.tile".into(),
    };
    session.command = Some(request.command.clone());
    let made = build(&mut session, &unit, &entry, Vec::new(), &request);
    assert_eq!(made.is_err(), session.diagnostics.has_errors());
    session.diagnostics.iter().map(|d| d.code.to_string()).collect()
}

const COPY: &str =
    "kernel k(x: in f32[N], y: out f32[N]) { grid (i in tiles(N, 64)); TSTORE(y.tile(i), Vec(x.tile(i))); }";

#[test]
fn reasons_have_codes() {
    assert_eq!(codes(COPY, "a2a3", "o", None), [""; 0]);
    assert_eq!(codes(COPY, "a2a3", "exe", None), ["E0734"]);
    assert_eq!(codes(COPY, "a2a3", "", None), ["E0734"]);
    assert_eq!(codes(COPY, "a2a3", "ptx", None), ["E0734"]);
    assert_eq!(codes(COPY, "sm90", "o", None), ["E0734"]);
    for name in ["", "a b", "1k", "int", "status"] {
        assert_eq!(codes(COPY, "a2a3", "o", Some(name)), ["E0734"], "{name}");
    }
    assert_eq!(codes(COPY, "a2a3", "o", Some("copy_of_1")), [""; 0]);
    // A size that tiles depend on.
    let row = "kernel k(x: in f32[M, N], y: out f32[M, N]) { grid (i in tiles(M, 8)); let t = Vec(x.tile(i, _)); \
               TSTORE(y.tile(i, _), t * rowmax(t)); }";
    assert_eq!(codes(row, "a2a3", "o", None), ["E0307"]);
}

#[test]
fn forms_are_listed_once() {
    let all: Vec<&str> = forms().iter().map(|f| f.extension).collect();
    assert_eq!(all, ["o", "a", "so", "ptx", "cubin"]);
}

/// The library of routines has what objects may call, and nothing else.
#[test]
fn routines_have_symbols() {
    let mut called = ptoc_cpu::object::routines();
    let mut there: Vec<String> = ptoc_native::SYMBOLS.iter().map(|s| (*s).to_owned()).collect();
    there.push("ptoc_scratch".into());
    called.sort();
    there.sort();
    assert_eq!(called, there);
}

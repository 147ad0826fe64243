//! Bounds that the text itself guarantees: nothing is tested while the kernel runs, and nothing is said. Where they are
//! not guaranteed, a test is left, and a warning says so.

use ptoc::io::Io;
use std::path::Path;

/// A kernel that copies another block under a condition.
fn ahead(clause: &str, condition: &str, next: &str) -> String {
    format!(
        "\
kernel ahead(x: in f32[M, N], y: out f32[M, N], n: index)
    where {clause}
{{
    grid (i in tiles(M, 8));
    let c = tiles(N, 16);
    TSTORE(y.tile(i, c[0]), Vec(x.tile(i, c[0])));
    for k in c {{
        if {condition} {{
            let next = c[{next}];
            TSTORE(y.tile(i, next), Vec(x.tile(i, next)));
        }}
    }}
}}
"
    )
}

/// The codes that `ptoc check` warns with.
fn told(name: &str, text: &str) -> Vec<String> {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("bounds-{name}.tile"));
    std::fs::write(&path, text).expect("a temporary file");
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let args = ["ptoc".into(), "check".into(), path.into_os_string()];
    let status = ptoc::execute(args, &mut Io::new(&mut out, &mut err));
    let err = String::from_utf8_lossy(&err).into_owned();
    assert_eq!(status, ptoc::DONE, "{err}\n{text}");
    let codes = err.lines().filter_map(|l| l.strip_prefix("warning[")?.split(']').next());
    // Whether blocks meet is another question.
    codes.filter(|c| c.starts_with("PA-")).map(str::to_owned).collect()
}

#[test]
fn conditions_prove_them() {
    let right = [
        ("!k.last", "k.index + 1"),
        ("k.index + 1 < c.count", "k.index + 1"),
        ("c.count > k.index + 1", "k.index + 1"),
        ("k.index + 1 != c.count", "k.index + 1"),
        ("k.index < c.count - 1", "k.index + 1"),
        ("k.index + 2 <= c.count", "k.index + 1"),
        ("k.index + 3 < c.count", "k.index + 2"),
        ("n > 0 && !k.last", "k.index + 1"),
        ("!(k.last || n > 3)", "k.index + 1"),
        ("n >= 0 && n < c.count", "n"),
        ("k.index > 0", "k.index - 1"),
        ("k.first == false && !k.last", "k.index + 1"),
    ];
    for (condition, next) in right {
        let text = ahead("N >= 1", condition, next);
        assert!(told("right", &text).is_empty(), "{condition}: {:?}", told("right", &text));
    }
}

#[test]
fn others_do_not() {
    let open = [
        ("k.last", "k.index + 1"),
        ("!k.last", "k.index + 2"),
        ("k.index < c.count", "k.index + 1"),
        ("k.index + 1 <= c.count", "k.index + 1"),
        ("!k.last || n > 3", "k.index + 1"),
        ("!(k.last && n > 3)", "k.index + 1"),
        ("n < c.count", "n"),
        ("k.first", "k.index - 1"),
    ];
    for (condition, next) in open {
        let text = ahead("N >= 1", condition, next);
        assert_eq!(told("open", &text), ["PA-1101"], "{condition}");
    }
    // The first block of what may be empty.
    assert_eq!(told("open", &ahead("N >= 0", "!k.last", "k.index + 1")), ["PA-1101"]);
}

/// A fact ends with its branch; the other branch knows the contrary.
#[test]
fn a_condition_holds_only_where_it_does() {
    let after = ahead("N >= 1", "!k.last", "k.index + 1").replace(
        "        }\n    }",
        "        }\n        let o = c[k.index + 1];\n        TSTORE(y.tile(i, o), Vec(x.tile(i, o)));\n    }",
    );
    assert_eq!(told("after", &after), ["PA-1101"], "{after}");
    let other = ahead("N >= 1", "k.last { } else if true", "k.index + 1");
    assert_eq!(told("other", &other), [""; 0], "{other}");
}

//! Completion and signature help, in texts as they are while somebody writes them.

use super::names::there;
use super::{Client, URI, range};
use serde_json::{Value, json};

fn client() -> Client {
    let item = json!({"completionItem": {"snippetSupport": true}});
    let help = json!({"signatureInformation": {"parameterInformation": {"labelOffsetSupport": true}}});
    Client::able(Value::Null, json!({"textDocument": {"completion": item, "signatureHelp": help}}))
}

/// The text without its mark `|`, and the place of the mark.
fn marked(text: &str) -> (String, Value) {
    let place = there(URI, text, "|");
    (text.replacen('|', "", 1), place)
}

/// A client that knows defaults gets what is replaced once, and the same proposals.
#[test]
fn defaults_of_lists() {
    let (text, place) = marked(&kernel("TADD|"));
    let snippets = json!({"snippetSupport": true});
    let asked = |list: Value| {
        let able = json!({"textDocument": {"completion": {"completionItem": snippets, "completionList": list}}});
        let mut c = Client::able(Value::Null, able);
        c.open(URI, &text);
        let found = c.ask("textDocument/completion", place.clone());
        c.published();
        found
    };
    let (plain, short) =
        (asked(json!({"itemDefaults": ["commitCharacters"]})), asked(json!({"itemDefaults": ["editRange"]})));
    let range = &short["itemDefaults"]["editRange"];
    let mut items = short["items"].as_array().unwrap().clone();
    for item in &mut items {
        let text = item.as_object_mut().unwrap().shift_remove("textEditText").unwrap_or(item["label"].clone());
        item["textEdit"] = json!({"range": range, "newText": text});
    }
    let sorted = |items: &[Value]| items.iter().map(|i| i["sortText"].to_string()).collect::<Vec<_>>();
    let given = plain["items"].as_array().unwrap();
    assert!(plain.get("itemDefaults").is_none() && sorted(given) == sorted(&items));
    for (given, item) in given.iter().zip(&items) {
        assert_eq!(given, item);
    }
    assert!(short.to_string().len() * 3 < plain.to_string().len() * 2);
}

/// The best proposals at the mark.
fn proposals(text: &str, most: usize) -> String {
    let (text, place) = marked(text);
    let mut c = client();
    c.open(URI, &text);
    let found = c.ask("textDocument/completion", place);
    c.published();
    let mut items: Vec<&Value> = found["items"].as_array().unwrap().iter().collect();
    items.sort_by_key(|i| i["sortText"].as_str().unwrap().to_owned());
    let line = |i: &&Value| {
        let detail = i["detail"].as_str().unwrap_or_default();
        let edit = &i["textEdit"];
        let new = edit["newText"].as_str().unwrap().replace('\n', "\\n");
        let written = if i["label"] == edit["newText"] { String::new() } else { format!(" -> {new}") };
        let more = i["additionalTextEdits"][0]["newText"].as_str().map_or(String::new(), |t| format!(" and {t:?}"));
        format!("{} {} ({detail}){written}{more}\n", range(&edit["range"]), i["label"].as_str().unwrap())
    };
    items.iter().take(most).map(line).collect()
}

/// A kernel around a statement that is being written.
fn kernel(statement: &str) -> String {
    format!(
        "use std::act::gelu;\nconst SIZE = 32;\nfn half(x: f32) -> f32 {{ x / 2.0 }}\n\
         kernel k<const BM = 64>(a: in f32[M, 64], b: in f16[M, 64], c: out f32[M, 64]) {{\n\
         \x20   grid (i in tiles(M, BM));\n    let acc = tile Acc<f32, i, 64>;\n    let t = tile Vec<f32, i, 64>;\n\
         \x20   let h = tile Vec<f16, i, 64>;\n    let u = tile Vec<f32, i, 64>;\n    TLOAD(t, a.tile(i, _));\n\
         \x20   {statement}\n    TSTORE(c.tile(i, _), u);\n}}\n"
    )
}

#[test]
fn operands_that_fit_come_first() {
    let mut out = String::new();
    for statement in [
        "TADD(|",
        "TADD(u, |",
        "TADD(u, t, |);",
        "TADD(h, |, h);",
        "TMULS(u, t, |)",
        "TLOAD(t, |)",
        "TSTORE(|",
        "TMATMUL(|",
        "TADD(u, t, half(|",
        "TCMP(u, t, t, |",
    ] {
        out += &format!("== {statement}\n{}", proposals(&kernel(statement), 7));
    }
    insta::assert_snapshot!(out);
}

#[test]
fn words_by_place() {
    let mut out = String::new();
    for (text, most) in [
        (kernel("|"), 30),
        (kernel("TA|"), 14),
        (kernel("let v = |;"), 12),
        (kernel("let v = tile |"), 4),
        (kernel("let v = tile Vec<|"), 4),
        (kernel("let v = tile Vec<f32, i, 64, |"), 4),
        (kernel("let v = i.|"), 10),
        (kernel("let v = t.|"), 10),
        (kernel("let v = a.|;"), 10),
        (kernel("let |"), 4),
        (kernel("// a |"), 4),
        (kernel("print(\"|\")"), 4),
        (kernel("barrier(|)"), 4),
        ("|".to_owned(), 10),
        ("use |".to_owned(), 3),
        ("use std::|".to_owned(), 6),
        ("use std::act::|;\n".to_owned(), 3),
        ("#[|]\nkernel k() {}\n".to_owned(), 6),
        ("#[place(|)]\nkernel k() {}\n".to_owned(), 6),
        ("kernel k(x: in |".to_owned(), 4),
        ("kernel k<const N = 4>(x: in f32[M]) {}\nprogram p(x: in f32[M]) { k<|>(x); }\n".to_owned(), 3),
        ("kernel k<const N = 4>(x: in f32[M]) {}\nprogram p(x: in f32[M]) { k(|); }\n".to_owned(), 3),
    ] {
        let head = text.lines().find(|l| l.contains('|')).unwrap();
        out += &format!("== {head}\n{}", proposals(&text, most));
    }
    insta::assert_snapshot!(out);
}

/// Proposals at the mark, all of them.
fn labels(text: &str) -> Vec<String> {
    let (text, place) = marked(text);
    let mut c = client();
    c.open(URI, &text);
    let found = c.ask("textDocument/completion", place);
    c.published();
    found["items"].as_array().unwrap().iter().map(|i| i["label"].as_str().unwrap().to_owned()).collect()
}

/// Members of a tile are known by its text, where no analysis has found out what it is.
#[test]
fn members_of_what_is_only_written() {
    let sizes = |body: &str| {
        format!("kernel k<const BM>(a: in f32[M, 64]) {{\n    grid (i in tiles(M, BM));\n    {body}\n}}\n")
    };
    for (body, expected) in [
        ("let q = tile Vec<f32, BM, 64>;\n    q.|", "T cols rows tile valid"),
        ("let q = tile Vec<f32, NOTHING, 64>;\n    q.|;", "T cols rows tile valid"),
        ("let q = Vec(a.tile(i, _));\n    let r = q.|;", "T cols rows tile valid"),
        ("a.|", "T tile"),
        ("i.|", "end first index last len start"),
        ("for j in tiles(64, BM) { j.| }", "end first index last len start"),
    ] {
        let mut found = labels(&sizes(body));
        found.sort();
        assert_eq!(found.join(" "), expected, "{body}");
    }
}

/// A name cannot be named while it is being defined; an older one that is called so can.
#[test]
fn names_are_not_proposed_in_their_own_values() {
    for statement in [
        "let new = |",
        "let new = |;",
        "let new = if M > 0 { | } else { 1 };",
        "let new = if M > 0 { 1 } else { |",
        "const new = |;",
        "var new = TADD(t, |",
        "const new = |",
        "let new: | = 1;",
    ] {
        let found = labels(&kernel(statement));
        assert!(!found.contains(&"new".to_owned()), "{statement}: {found:?}");
    }
    for text in [
        "const new = |",
        "const new = |;\nkernel k() {}\n",
        "kernel k<const new = |>() {}",
        "kernel k<fn new = |",
        "kernel k<type new = |",
    ] {
        let found = labels(text);
        assert!(!found.contains(&"new".to_owned()) && found.len() > 3, "{text}: {found:?}");
    }
    assert!(labels(&kernel("let new = 1;\n    let new = |;")).contains(&"new".to_owned()));
    assert!(labels(&kernel("let new = 1;\n    |")).contains(&"new".to_owned()));
    assert!(labels("fn new(x: f32) -> f32 { | }").contains(&"new".to_owned()));
}

/// Where a type, a constant or a function stands, nothing else is proposed.
#[test]
fn what_is_known_when_a_kernel_is_compiled() {
    let head = "use std::act::relu;\nconst A = 1;\nfn g(x: f32) -> f32 { x }\n";
    for (text, there, not) in [
        ("fn f(x: f32) -> |", "f32 index Vec view", "true TADD max A g x TALLOC"),
        ("fn f<type T>(x: T) -> | { x }", "f32 T Vec", "TADD max g x"),
        ("fn f() -> f|", "f32 f16", "if TADD"),
        ("const B: |", "index f32", "TADD max g A"),
        (
            "const B = |",
            "A g max ceil_div true if inf coalesce f32",
            "TADD TALLOC print atomic_add copy tile Vec relu2",
        ),
        ("const B = 2 * |;\nfn f() {}", "A g max", "TADD TALLOC assert matmul"),
        ("kernel k<const N = |>(x: in f32[M]) {}", "A g max", "TADD TALLOC k x"),
        ("kernel k<type T = |>(x: in T[M]) {}", "f32 f16", "TADD TALLOC A g Vec"),
        ("atom X {\n    |\n}\n", "shape types thr A B C", "let for TADD X g max"),
        ("atom X {\n    shape = (16, 8, 16);\n    t|", "types thr", "let TADD shape2 X"),
        ("atom X {\n    shape = (16, |);\n}\n", "A max", "TADD let TALLOC x"),
        ("atom X {\n    thr = |;\n}\n", "A max", "TADD let TALLOC x"),
        ("atom X {\n    thr = 1:0;\n}\nfn f() -> f32 { | }\n", "let g if", "thr types"),
        ("kernel k<fn act = |>(x: in f32[M]) {}", "g relu gelu exp", "TADD TALLOC A f32 max copy"),
        ("kernel k<fn act = |", "g relu gelu exp", "TADD TALLOC A f32"),
        (
            "kernel k<fn act = relu, const N = 1>(x: in f32[M]) {}\nprogram p(x: in f32[M]) { k<act = |>(x); }",
            "g relu exp",
            "TADD x A f32",
        ),
        (
            "kernel k<fn act = relu, const N = 1>(x: in f32[M]) {}\nprogram p(x: in f32[M]) { k<N = |>(x); }",
            "A g max",
            "TADD x",
        ),
        ("kernel k(x: in f32[M]) {\n    let t: | = 1;\n}\n", "f32 index", "TADD x A g"),
        ("kernel k(x: in f32[M]) {\n    const C = |;\n}\n", "A g max M", "TADD x TALLOC"),
        ("kernel k(x: in f32[M]) {\n    let t = |;\n}\n", "A g max M x tile", ""),
    ] {
        let found = labels(&format!("{head}{text}"));
        for word in there.split_whitespace() {
            assert!(found.iter().any(|l| l == word), "{text}: no {word} in {found:?}");
        }
        for word in not.split_whitespace() {
            assert!(!found.iter().any(|l| l == word), "{text}: {word} in {found:?}");
        }
    }
}

/// What is not imported yet comes with its `use` line; the text is then right.
#[test]
fn items_of_the_library_bring_their_line() {
    for (head, expected) in [
        ("//! A file.\n", "//! A file.\n\nuse std::act::silu;\n"),
        ("use std::act::gelu;\n", "use std::act::gelu;\nuse std::act::silu;\n"),
        ("// c\n", "use std::act::silu;\n\n// c\n"),
    ] {
        let text = format!("{head}fn f(x: f32) -> f32 {{ sil| }}\n");
        let (plain, place) = marked(&text);
        let mut c = client();
        c.open(URI, &plain);
        let found = c.ask("textDocument/completion", place);
        c.published();
        let item = found["items"].as_array().unwrap().iter().find(|i| i["label"] == "silu").unwrap().clone();
        let edit = &item["additionalTextEdits"][0];
        let (line, column) =
            (edit["range"]["start"]["line"].as_u64().unwrap(), edit["range"]["start"]["character"].as_u64().unwrap());
        let at: usize = plain.split_inclusive('\n').take(line as usize).map(str::len).sum::<usize>() + column as usize;
        let mut applied = plain.clone();
        applied.insert_str(at, edit["newText"].as_str().unwrap());
        assert!(applied.starts_with(expected), "{applied}");
        let page = c.ask("completionItem/resolve", json!({"label": "TADD"}));
        assert!(page["documentation"]["value"].as_str().unwrap().contains("On a2a3"), "{page}");
        assert_eq!(c.fails("completionItem/resolve", json!({})).code, -32602);
    }
}

/// In a text whose item has no tree any more, what stands before the cursor is known still.
#[test]
fn names_of_broken_texts() {
    let text = "kernel k(x: in f32[M] {\n    let first = 1\n    let second = = 2;\n    for q in 0..3 { TADD(|\n";
    let found = proposals(text, 200);
    for name in ["first", "second", "q"] {
        assert!(found.lines().any(|l| l.split(' ').nth(1) == Some(name)), "{name} is missing in {found}");
    }
}

/// Words of the language stand where the grammar wants them, and nowhere else.
#[test]
fn keywords_where_they_may_stand() {
    let plain = |words: &str| words.split(' ').map(str::to_owned).collect::<Vec<_>>();
    for (text, there, not) in [
        ("kernel k<|", "const type fn", "in if BM f32 k"),
        ("kernel k<const N = 4, |>(x: in f32[M]) {\n}\n", "const type fn", "in N f32"),
        ("kernel k<const N = 4 |>(x: in f32[M]) {\n}\n", "tune", "const N f32"),
        ("kernel k(x: |", "in out inout f32 view", "true TADD x"),
        ("kernel k(x: in |", "f32 f16", "in view"),
        ("kernel k(x: in f32[M], |", "", "x in"),
        ("fn f(|", "", "in f32"),
        ("fn f(x: f32, y: |", "f32 Vec view block ring", "x true TADD"),
        ("kernel k(x: in f32[M]) |", "where ensures", "f32 kernel x"),
        ("kernel k(x: in f32[M]) where M >= 1 |", "ensures", "where x"),
        ("kernel k(x: in f32[M]) where | {\n}\n", "M true", "where let"),
    ] {
        let found = proposals(text, 500);
        let labels: Vec<&str> = found.lines().filter_map(|l| l.split(' ').nth(1)).collect();
        for word in plain(there).iter().filter(|w| !w.is_empty()) {
            assert!(labels.contains(&word.as_str()), "{text}: no `{word}` in {labels:?}");
        }
        for word in plain(not) {
            assert!(!labels.contains(&word.as_str()), "{text}: `{word}` in {labels:?}");
        }
    }
    for (statement, there, not) in [
        ("let v = |", "tile true false if tensor t inf", "let while for else in"),
        ("TADD(u, t, |", "tile true t", "let for"),
        ("TADD(u, t |", "", "t u tile let"),
        ("if true { }\n    |", "else let for", "in"),
        ("for q |", "in", "t let"),
        ("for q in |", "tiles i", "let in"),
        ("let v = tile Vec<f32, i, 64> |", "at", "t let"),
        ("let v = if true { 1 } |", "else", "let t"),
        ("|", "let for if tile true t TADD", "else in where"),
    ] {
        let found = proposals(&kernel(statement), 900);
        let labels: Vec<&str> = found.lines().filter_map(|l| l.split(' ').nth(1)).collect();
        for word in plain(there).iter().filter(|w| !w.is_empty()) {
            assert!(labels.contains(&word.as_str()), "{statement}: no `{word}` in {labels:?}");
        }
        for word in plain(not) {
            assert!(!labels.contains(&word.as_str()), "{statement}: `{word}` in {labels:?}");
        }
    }
}

/// While the last `}` is missing, everything that the kernel has defined is there, with its type.
#[test]
fn names_of_an_item_that_is_not_closed() {
    let whole = kernel("|");
    let (head, tail) = whole.split_once("    |\n").unwrap();
    for (text, fits) in [
        (format!("{head}    |"), false),
        (format!("{head}\n\n    |\n\n"), false),
        (format!("{head}    TADD(u, |"), true),
        (format!("{head}    for q in 0..4 {{ |\n"), false),
        (format!("{head}    |\n\nkernel next(x: in f32[M]) {{\n    grid (i in tiles(M, 4));\n}}\n"), false),
        (format!("{head}    |\n{}", tail.replace("}\n", "")), false),
    ] {
        let found = proposals(&text, 900);
        let has = |line: &str| found.lines().any(|l| l.split_once(' ').is_some_and(|(_, l)| l == line));
        assert!(has("t (Vec<f32, 64, 64>)") && has("a (f32[M, 64])") && has("BM (64)"), "{text}\n{found}");
        if fits {
            assert!(found.lines().next().is_some_and(|l| l.contains(" t (Vec<f32")), "{found}");
        }
        assert_eq!(text.contains("for q"), has("q (index)") || found.contains(" q ("), "{text}\n{found}");
    }
}

#[test]
fn members_of_rings() {
    let text = "#[sync(manual)]\nkernel s(x: in f32[M, N], y: out f32[M, N])\n{\n    grid (i in tiles(M, 64));\n\
                \x20   let loads = ring<MTE2, V>(tile Vec<f32, i, 128>[2]);\n    |\n}\n";
    let labels = |statement: &str| {
        let found = proposals(&text.replace('|', statement), 20);
        found.lines().filter_map(|l| l.split(' ').nth(1)).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(labels("loads.|"), ["acquire", "commit", "release", "wait"]);
    assert_eq!(labels("loads.acquire().|"), ["T", "cols", "rows", "tile", "valid"]);
}

#[test]
fn signatures() {
    let mut out = String::new();
    for (statement, more) in [
        ("TADD(|", ""),
        ("TADD(u, t|", ""),
        ("TCMP(u, t, t, |)", ""),
        ("half(|)", ""),
        ("let v = tile Vec<f32, |", ""),
        ("let q = tiles(M, |", ""),
        ("let q = composition(|", ""),
        ("wait(|", ""),
        ("gelu(|t)", ""),
        ("TADD(u, (1, |", ""),
        ("TADD(u, t); |", ""),
        ("// TADD(|", ""),
        ("", "program p(x: in f32[M, 64]) { k<|>(c = x); }"),
        ("", "program p(x: in f32[M, 64]) { k(c = |"),
        ("", "program p(x: in f32[M, 64]) { k<BM = 4>(x, |"),
    ] {
        let text = format!("{}{more}", kernel(statement));
        let (plain, place) = marked(&text);
        let mut c = client();
        c.open(URI, &plain);
        c.published();
        let help = c.ask("textDocument/signatureHelp", place);
        out += &format!("== {statement}{more}\n");
        let Some(all) = help["signatures"].as_array() else {
            out += "nothing\n";
            continue;
        };
        for (n, s) in all.iter().enumerate() {
            let label = s["label"].as_str().unwrap();
            let active = help["activeSignature"] == n;
            out += &format!("{}{label}\n", if active { "> " } else { "  " });
            if let Some(p) = s["parameters"].get(help["activeParameter"].as_u64().unwrap() as usize).filter(|_| active)
            {
                let at = |k: usize| p["label"][k].as_u64().unwrap() as usize;
                out += &format!("    {} : {}\n", &label[at(0)..at(1)], p["documentation"].as_str().unwrap());
            }
            out += &format!("    {}\n", s["documentation"]["value"].as_str().unwrap().replace('\n', "\n    "));
        }
    }
    insta::assert_snapshot!(out);
}

//! Random edits and requests: nothing panics, and what the server has after them is what a fresh one makes of the text.
//!
//! `PTOC_LSP_SEED` is where they begin.

use super::{Client, KERNEL, URI, place_of};
use ptoc_lsp::Server;
use serde_json::Value;

/// A generator of numbers below a bound.
struct Draw(u64);

impl Draw {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % n.max(1)
    }
}

const PIECES: &[&str] = &[
    "",
    " ",
    "\n",
    "{",
    "}",
    "(",
    ")",
    "<",
    ">",
    ";",
    ",",
    ".",
    "x",
    "t",
    "u",
    "TADD",
    "TADD(u, ",
    "tile Vec<f32, 1, i>",
    "let v = t + u;\n",
    "/// d\n",
    "// c\n",
    "// run: twice interp,cpu M=3\n",
    "\u{e9}\u{1F600}",
    "\"",
    "0x",
    "kernel k() {}\n",
    "#[sync(manual)]\n",
    "use std::act::relu;\n",
    "const N = 2;\n",
    "fn g(a: f32) -> f32 { a * 2.0 }\n",
    "\r\n",
    "if M > 0 { ",
    "for k in 0..4 {",
];

/// Other kernels, so that there is something that an edit does not touch.
const OTHERS: &str = "\
fn half(a: f32) -> f32 { a * 0.5 }
kernel other<const N = 64>(x: in f32[M], y: out f32[M]) {
    grid (i in tiles(M, N));
    TSTORE(y.tile(i), half(Vec(x.tile(i))));
}
kernel large(x: in f32[M]) {
    let t = tile Vec<f32, 220, 256>;
    t = 0.0;
}
program both(x: in f32[M], y: out f32[M]) {
    let z = tensor f32[M];
    twice(x, z);
    other<N = 32>(z, y);
}
";

/// The place of a byte, as the client sees it.
pub fn position(text: &str, offset: usize) -> (u32, u32) {
    let before = &text[..offset];
    let start = before.rfind('\n').map_or(0, |n| n + 1);
    (before.matches('\n').count() as u32, (offset - start) as u32)
}

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|n| n.parse().ok()).unwrap_or(default)
}

fn fresh(text: &str) -> Client {
    let mut c = Client::new(Value::Null);
    c.open(URI, text);
    c
}

/// What a request says, without what a server numbers by itself.
fn asked(c: &mut Client, method: &str, params: &Value) -> String {
    match c.server.request(method, params.clone()) {
        Ok(answer) => {
            let mut answer = answer.value();
            if method.starts_with("textDocument/semanticTokens") {
                answer["resultId"] = Value::Null;
            }
            answer.to_string()
        }
        Err(failure) => {
            assert!([-32803, -32602].contains(&failure.code), "{method}: {failure:?}");
            format!("{failure:?}")
        }
    }
}

#[test]
fn random_edits_leave_what_a_fresh_server_makes() {
    let steps = ptoc_tests_budget::cases(100, 400);
    let mut draw = Draw(number("PTOC_LSP_SEED", 7));
    let begin = format!("{KERNEL}{OTHERS}");
    // What depends on the requests before is left out: a difference of tokens is one to the state that the client has.
    let methods: Vec<&str> = Server::requests().filter(|m| !m.ends_with("/delta")).collect();
    let mut c = Client::new(Value::Null);
    let mut text = begin.clone();
    c.open(URI, &text);
    let mut undo: Vec<String> = Vec::new();
    for step in 0..steps {
        let next = match draw.below(24) {
            // What was there before: the way on which the cache is of use.
            0..4 => undo.pop().unwrap_or_else(|| begin.clone()),
            // Mistakes add up until nothing is whole.
            4..6 => begin.clone(),
            _ => {
                let from = text.floor_char_boundary(draw.below(text.len() + 1));
                let to = text.floor_char_boundary((from + draw.below(9)).min(text.len())).max(from);
                let mut next = text.clone();
                next.replace_range(from..to, PIECES[draw.below(PIECES.len())]);
                next
            }
        };
        // A lone `\r` is a line break of the protocol, which `position` does not know.
        if next.replace("\r\n", "\n").contains('\r') {
            continue;
        }
        let same = |a: &str, b: &str| a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count();
        let start = text.floor_char_boundary(same(&text, &next));
        let start = next.floor_char_boundary(start).min(start);
        c.edit(URI, [position(&text, start), (99_999, 0)], &next[start..]);
        undo.push(std::mem::replace(&mut text, next));
        undo.truncate(6);
        let at = text.floor_char_boundary(draw.below(text.len() + 1));
        let (line, column) = position(&text, at);
        let method = methods[draw.below(methods.len())];
        let params = place_of(URI, line, column);
        let answer = asked(&mut c, method, &params);
        // One in four is held against a fresh server, diagnostics and answer.
        if step % 4 == 3 {
            let mut other = fresh(&text);
            assert_eq!(asked(&mut other, method, &params), answer, "{method} at {line}:{column}\n{text}");
            let (mine, others) = (c.server.settle(), other.server.settle());
            assert_eq!(mine[0].params["diagnostics"], others[0].params["diagnostics"], "step {step}\n{text}");
            if draw.below(3) == 0 {
                for method in &methods {
                    assert_eq!(
                        asked(&mut c, method, &params),
                        asked(&mut other, method, &params),
                        "{method} at {line}:{column}\n{text}"
                    );
                }
            }
        }
        if text.len() > 2500 || text.len() < 300 {
            text = begin.clone();
            c.edit(URI, [(0, 0), (99_999, 0)], &text);
            undo.clear();
        }
    }
    c.published();
    // The cache was of use.
    assert!(c.server.reused() > steps / 4, "{} of {steps}", c.server.reused());
}

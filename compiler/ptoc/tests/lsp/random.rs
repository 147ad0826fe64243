//! Random edits and requests: nothing panics, and what the server has after them is what a fresh one makes of the text.

use super::{Client, URI, at, document};
use serde_json::{Value, json};

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
    "x",
    "t",
    "u",
    "TADD",
    "tile Vec<f32, 1, i>",
    "let v = t + u;\n",
    "/// d\n",
    "// c\n",
    "\u{e9}\u{1F600}",
    "\"",
    "0x",
    "kernel k() {}\n",
    "use std::act::relu;\n",
    "\r\n",
    "if M > 0 { ",
    "for k in 0..4 {",
];

/// The text after an edit of the characters from..to, as the client sees it.
pub fn position(text: &str, offset: usize) -> (u32, u32) {
    let before = &text[..offset];
    let start = before.rfind('\n').map_or(0, |n| n + 1);
    (before.matches('\n').count() as u32, (offset - start) as u32)
}

fn boundary(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

fn diagnostics(text: &str) -> Value {
    let mut fresh = Client::new(Value::Null);
    fresh.open(URI, text);
    let out = fresh.server.settle();
    out[0].params["diagnostics"].clone()
}

#[test]
fn random_edits_leave_what_a_fresh_server_makes() {
    let mut draw = Draw(7);
    let mut c = Client::new(Value::Null);
    let mut text = super::KERNEL.to_owned();
    c.open(URI, &text);
    for step in 0..400 {
        // A lone `\r` is a line break of the protocol, which `position` does not know.
        let (from, length) = (draw.below(text.len() + 1), draw.below(9));
        let from = boundary(&text, from);
        let to = boundary(&text, (from + length).min(text.len())).max(from);
        let new = PIECES[draw.below(PIECES.len())];
        let edit = [position(&text, from), position(&text, to)];
        let mut next = text.clone();
        next.replace_range(from..to, new);
        if next.replace("\r\n", "\n").contains('\r') {
            continue;
        }
        c.edit(URI, edit, new);
        text = next;
        let place = boundary(&text, draw.below(text.len() + 1));
        let (line, column) = position(&text, place);
        match draw.below(5) {
            0 => drop(c.ask("textDocument/hover", at(URI, line, column))),
            1 => drop(c.ask("textDocument/documentSymbol", document(URI))),
            2 => {
                let here = json!({"line": line, "character": column});
                let range = json!({"start": here, "end": {"line": line + 3, "character": 0}});
                let params = json!({"textDocument": {"uri": URI}, "range": range, "context": {"diagnostics": []}});
                c.ask("textDocument/codeAction", params);
            }
            3 => {
                // A text with errors has no canonical form.
                let params = json!({"textDocument": {"uri": URI}, "options": {"tabSize": 4, "insertSpaces": true}});
                let _ = c.server.request("textDocument/formatting", params);
            }
            _ => {}
        }
        if step % 4 == 3 {
            let published = c.server.settle();
            assert_eq!(published[0].params["diagnostics"], diagnostics(&text), "{text}");
        }
        if text.len() > 1500 || text.len() < 100 {
            c.edit(URI, [(0, 0), (99_999, 0)], super::KERNEL);
            text = super::KERNEL.to_owned();
        }
    }
    c.published();
}

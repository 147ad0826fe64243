//! Values of the layout algebra as text and as JSON.

use ptoc_layout::picture::{Picture, TableStyle};
use ptoc_layout::{Cx, Int, Layout, MmaAtom, Operand, Point, Points, Value, ops};
use serde_json::{Map, json};
use std::fmt::Write as _;

/// A layout of more elements shows no `indices` in JSON.
const INDICES: i64 = 256;

/// The layout that a value is, without its swizzle or start.
fn inner(value: &Value) -> Option<&Layout> {
    match value {
        Value::Layout(l) => Some(l),
        Value::Composed(c) => Some(&c.layout),
        Value::Window(w) => Some(&w.layout),
        _ => None,
    }
}

/// What JSON says of the value of `text`. Of a tile or a thread's part the layout and, besides, where it begins.
/// Coordinates are text, those of one entry too.
pub fn object(cx: &Cx, value: &Value, text: &str) -> serde_json::Value {
    let number = |n: &Int| n.as_const().map_or_else(|| json!(n.to_string()), |n| json!(n));
    let Some(layout) = inner(value) else {
        return match value {
            Value::Int(n) if gives_coordinate(text) => json!({"value": n.to_string()}),
            Value::Int(n) => json!({"value": number(n)}),
            Value::Bool(b) => json!({"value": b}),
            other => json!({"value": other.to_string()}),
        };
    };
    let mut object = Map::new();
    match value {
        Value::Window(w) => {
            object.insert("layout".into(), json!(w.layout.to_string()));
            let start = w.start.as_int().map_or_else(|| json!(w.start.to_string()), number);
            object.insert("start".into(), start);
        }
        _ => drop(object.insert("layout".into(), json!(value.to_string()))),
    }
    if let Ok(size) = layout.size() {
        object.insert("size".into(), number(&size));
    }
    if let Some(cosize) = cosize(cx, value) {
        object.insert("cosize".into(), number(&cosize));
    }
    object.insert("rank".into(), json!(layout.rank()));
    object.insert("depth".into(), json!(layout.depth()));
    if let Some(points) = Points::of(value).filter(|p| p.size() <= INDICES) {
        let all = (0..points.size()).map(|i| {
            Some(match points.at(i)? {
                Point::Offset(n) => json!(n),
                other => json!(other.to_string()),
            })
        });
        if let Some(all) = all.collect::<Option<Vec<_>>>() {
            object.insert("indices".into(), json!(all));
        }
    }
    serde_json::Value::Object(object)
}

/// Whether it is a call of the operation whose results are coordinates.
fn gives_coordinate(text: &str) -> bool {
    text.split_once('(').is_some_and(|(name, _)| name.trim() == "idx2crd")
}

/// As the operation of this name has it; not every layout has one.
fn cosize(cx: &Cx, value: &Value) -> Option<Int> {
    let from_0 = match value {
        Value::Window(w) => Value::Layout(w.layout.clone()),
        other => other.clone(),
    };
    match (ops::find("cosize")?.eval)(cx, &[from_0]) {
        Ok(Value::Int(n)) => Some(n),
        _ => None,
    }
}

/// The value for people.
pub fn describe(cx: &Cx, value: &Value, style: &TableStyle) -> String {
    let mut out = format!("{value}\n");
    if let Some(layout) = inner(value) {
        let mut facts = Vec::new();
        if let Ok(size) = layout.size() {
            facts.push(format!("size {size}"));
        }
        if let Some(cosize) = cosize(cx, value) {
            facts.push(format!("cosize {cosize}"));
        }
        facts.extend([format!("rank {}", layout.rank()), format!("depth {}", layout.depth())]);
        let _ = writeln!(out, "{}\n", facts.join("   "));
    }
    match value {
        Value::Swizzle(s) if !s.is_identity() => {
            let (low, bits, up) = (s.base(), s.bits(), s.base() + s.shift().unsigned_abs());
            let (to, from) = if s.shift() >= 0 { (low, up) } else { (up, low) };
            let field =
                |at: u32| if bits == 1 { format!("bit {at}") } else { format!("bits {at} to {}", at + bits - 1) };
            let _ = writeln!(out, "{} of an offset are XORed with {}", field(to), field(from));
        }
        Value::Atom(atom) => out.push_str(&atom_facts(atom)),
        Value::Family(family) => {
            let _ = writeln!(out, "select_mma({family}, n) is an atom with N = {}", family.extents());
        }
        Value::Mma(mma) => {
            out.push_str(&atom_facts(&mma.atom));
        }
        _ => {}
    }
    if let Ok(picture) = Picture::of(cx, value) {
        if matches!(value, Value::Atom(_) | Value::Mma(_)) {
            if matches!(value, Value::Mma(_)) {
                let _ = writeln!(out, "{}", picture.title());
            }
            out.push_str("\nC, thread and value of each element (`--svg F` draws A and B too):\n\n");
        } else if matches!(value, Value::Tuple(_)) {
            out.push('\n');
        }
        out.push_str(&picture.table(style));
    }
    out
}

fn atom_facts(atom: &MmaAtom) -> String {
    let ([m, n, k], [d, a, b, c]) = (atom.shape, &atom.types);
    let mut out = format!("D = A * B^T + C for M x N x K = {m} x {n} x {k}; D {d}, A {a}, B {b}, C {c}\n");
    let _ = writeln!(out, "threads  {}", atom.thr);
    for (operand, over) in [(Operand::A, "M x K"), (Operand::B, "N x K"), (Operand::C, "M x N")] {
        let _ = writeln!(out, "{operand:?}        {}  on {over}", atom.tv(operand));
    }
    out
}

//! Kernels of a few lines, one statement a line; a statement's place is its line's number.
//!
//! ```text
//! tile a 0x0              f32, 1 x 64, an element of an array for each address
//! event e MTE2 V 2        an array of two flags
//! mbar m MTE2 V 1         a transaction barrier of one arrival
//! load a[0] 3             TLOAD of the 64 elements of x from number 3 * 64
//! muls b a                b = 2 a
//! set e[1]
//! ```
//!
//! `for i 4 {`, `role p {`, `mod b i 2` (b = i modulo 2), `store 3 b`, `get a`, `put a`, `print a`, `barrier V`,
//! `barrier`.

mod barriers;
mod flags;
mod orders;
mod phases;
mod property;
mod races;
mod roles_time;
mod times;

use super::{Order, Pipes, Timing};
use crate::tests::{arg, f32s};
use crate::{InterpreterLaunch, InterpreterOutcome, Options, TensorArg, Trap, run};
use ptoc_diagnostics::FileId;
use ptoc_ir::tile::{Kernel, text, verify};
use ptoc_isa::{Pipe, PipeTimes};
use ptoc_tensor::DType;
use std::collections::HashMap;
use std::fmt::Write as _;

#[derive(Default)]
struct Writer {
    names: HashMap<String, String>,
    constants: Vec<i64>,
    head: String,
    body: String,
    values: usize,
    labels: usize,
}

impl Writer {
    fn value(&mut self, word: &str) -> String {
        if let Some(name) = self.names.get(word) {
            return name.clone();
        }
        let n: i64 = word.parse().unwrap_or_else(|_| panic!("`{word}` is no value"));
        let at = self.constants.iter().position(|&c| c == n).unwrap_or_else(|| {
            self.constants.push(n);
            self.constants.len() - 1
        });
        format!("v{at}")
    }

    /// `a`, `a[i]`
    fn entity(&mut self, word: &str) -> String {
        match word.strip_suffix(']').and_then(|w| w.split_once('[')) {
            Some((name, at)) => format!("{}#{}", self.names[name].clone(), self.value(at)),
            None => self.names[word].clone(),
        }
    }

    fn tile(&mut self, word: &str) -> String {
        format!("{}[1x64 {}, {}]", self.entity(word), self.value("1"), self.value("64"))
    }

    fn fresh(&mut self) -> String {
        self.values += 1;
        format!("v{}", 49 + self.values)
    }

    fn view(&mut self, tensor: &str, at: &str, line: usize) -> String {
        let (offset, row) = (self.fresh(), self.value("64"));
        let (at, one) = (self.value(at), self.value("1"));
        writeln!(self.body, "{offset}: index = mul {at}, {row} @0:{line}..{line}").expect("a string");
        format!("{tensor}[{offset} + ({one}, {row}):({row}, {one})]")
    }

    fn statement(&mut self, line: usize, words: &[&str]) {
        let text = match words {
            ["load", a, at] => format!("tload {}, {}", self.tile(a), self.view("g0", at, line)),
            ["store", at, a] => {
                let view = self.view("g1", at, line);
                format!("tstore {view}, {}", self.tile(a))
            }
            ["reload", a, at] => format!("tload {}, {}", self.tile(a), self.view("g1", at, line)),
            ["atomic", at, a] => {
                let view = self.view("g1", at, line);
                format!("tstore.atomic {view}, {}", self.tile(a))
            }
            ["muls", b, a] => format!("tmuls {}, {}, v40", self.tile(b), self.tile(a)),
            ["add", c, a, b] => format!("tadd {}, {}, {}", self.tile(c), self.tile(a), self.tile(b)),
            ["get", a] => {
                format!("{}: f32 = tileget {}, {}, {}", self.fresh(), self.tile(a), self.value("0"), self.value("0"))
            }
            ["put", a] => format!("tileset {}, {}, {}, v40", self.tile(a), self.value("0"), self.value("0")),
            ["print", a] => format!("print {}", self.tile(a)),
            ["mod", name, a, n] => {
                let (v, a, n) = (self.fresh(), self.value(a), self.value(n));
                self.names.insert((*name).into(), v.clone());
                format!("{v}: index = rem {a}, {n}")
            }
            ["add1", name, a, b] => {
                let (v, a, n) = (self.fresh(), self.value(a), self.value(b));
                self.names.insert((*name).into(), v.clone());
                format!("{v}: index = add {a}, {n}")
            }
            ["div", name, a, b] => {
                let (v, a, n) = (self.fresh(), self.value(a), self.value(b));
                self.names.insert((*name).into(), v.clone());
                format!("{v}: index = div {a}, {n}")
            }
            ["barrier"] => "sync barrier all".into(),
            ["barrier", pipe] => format!("sync barrier {pipe}"),
            [word @ ("set" | "wait" | "arrive"), e] => format!("sync {word} {}", self.entity(e)),
            [word @ ("expect" | "arrive_expect" | "complete" | "wait_phase"), e, n] => {
                format!("sync {word} {}, {}", self.entity(e), self.value(n))
            }
            ["for", name, n, "{"] => {
                let (v, n, zero) = (self.fresh(), self.value(n), self.value("0"));
                self.names.insert((*name).into(), v.clone());
                self.labels += 1;
                writeln!(self.body, "for l{} {v}: index in {zero}..{n} @0:{line}..{line} {{", self.labels - 1)
                    .expect("a string");
                return;
            }
            ["role", name, "{"] => {
                self.labels += 1;
                let role = self.names[*name].clone();
                writeln!(self.body, "scope l{} role {role} @0:{line}..{line} {{", self.labels - 1).expect("a string");
                return;
            }
            ["}"] => {
                self.body.push_str("}\n");
                return;
            }
            other => panic!("line {line}: {other:?}"),
        };
        writeln!(self.body, "{text} @0:{line}..{line}").expect("a string");
    }
}

/// The kernel of a script; the first line has number 1.
pub(super) fn kernel(script: &str) -> Kernel {
    let mut w = Writer::default();
    let (mut tiles, mut events, mut roles) = (0, 0, 0);
    for (n, line) in script.trim().lines().enumerate() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match &words[..] {
            [] => {}
            ["tile", name, at @ ..] => {
                let count = if at.len() == 1 { String::new() } else { format!(" count {}", at.len()) };
                writeln!(w.head, "tile t{tiles} \"{name}\" Vec<f32, 1, 64>{count} at [{}]", at.join(", "))
                    .expect("a string");
                w.names.insert((*name).into(), format!("t{tiles}"));
                tiles += 1;
            }
            ["event", name, from, to, count @ ..] => {
                let count = count.first().map_or(String::new(), |c| format!(" count {c}"));
                writeln!(w.head, "event e{events} \"{name}\" flag from {from} to {to}{count}").expect("a string");
                w.names.insert((*name).into(), format!("e{events}"));
                events += 1;
            }
            ["mbar", name, from, to, arrivals, count @ ..] => {
                let count = count.first().map_or(String::new(), |c| format!(" count {c}"));
                writeln!(w.head, "event e{events} \"{name}\" barrier {arrivals} from {from} to {to}{count}")
                    .expect("a string");
                w.names.insert((*name).into(), format!("e{events}"));
                events += 1;
            }
            ["role", name] => {
                writeln!(w.head, "role r{roles} \"{name}\"").expect("a string");
                w.names.insert((*name).into(), format!("r{roles}"));
                roles += 1;
            }
            words => w.statement(n + 1, words),
        }
    }
    let mut lines: Vec<&str> = w.head.lines().collect();
    // The text form wants entities by kind.
    lines.sort_by_key(|l| ["tile", "role", "event"].iter().position(|k| l.starts_with(k)));
    let mut text = String::from("kernel \"k\" target \"a2a3\" sync manual @0:0..0\n");
    text.push_str("tensor g0 \"x\" in f32 [v49]\ntensor g1 \"y\" inout f32 [v49]\n");
    for line in lines {
        writeln!(text, "{line}").expect("a string");
    }
    for l in 0..w.labels {
        writeln!(text, "label l{l}").expect("a string");
    }
    text.push_str("prologue {\n");
    for (at, c) in w.constants.iter().enumerate() {
        writeln!(text, "v{at}: index = const {c}").expect("a string");
    }
    let unused: Vec<String> = (w.constants.len()..49).filter(|&v| v != 40).map(|v| format!("v{v}")).collect();
    for v in unused {
        writeln!(text, "{v}: index = const 0").expect("a string");
    }
    text.push_str("v40: f32 = const 2.0\nv49: index = const 1024\n}\ngrid []\nbody {\n");
    for t in 0..tiles {
        writeln!(text, "alloc t{t}").expect("a string");
    }
    text.push_str(&w.body);
    text.push_str("}\n");
    let kernel = text::parse(&text, FileId(0)).unwrap_or_else(|d| panic!("{} at {:?}\n{text}", d.message, d.span));
    if let Err(errors) = verify::verify(&kernel) {
        panic!("{errors:?}\n{}", w.body);
    }
    kernel
}

/// Costs in round numbers.
pub(super) fn times() -> PipeTimes {
    PipeTimes {
        clock: 1000,
        cores: 2,
        issue: 1,
        sync: 2,
        startup: [4, 10, 10, 10, 20, 20, 10],
        bytes: [0, 16, 0, 16, 8, 8, 8],
        macs: vec![(1, 16), (2, 8), (4, 4)],
    }
}

/// Runs a kernel with `x` counting up and `y` zero.
pub(super) fn launch(kernel: &Kernel, pipes: Option<Pipes>) -> (Result<InterpreterOutcome, Trap>, Vec<u8>, String) {
    let count: Vec<f32> = (0..1024).map(|n| n as f32).collect();
    let tensors: Vec<TensorArg> =
        vec![arg(DType::F32, &[1024], &f32s(&count)), arg(DType::F32, &[1024], &f32s(&[0.0; 1024]))];
    let mut printed = String::new();
    let mut print = |line: &str| printed.push_str(line);
    let options = Options { pipes, ..Options::default() };
    let mut launch = InterpreterLaunch { tensors, dims: Vec::new(), scalars: Vec::new(), options, print: &mut print };
    let result = run(kernel, &mut launch);
    let data = launch.tensors.pop().map(|t| t.data).unwrap_or_default();
    (result, data, printed)
}

pub(super) fn pipes(order: Order) -> Pipes {
    Pipes { order, barrier: vec![Pipe::V], ..Pipes::default() }
}

/// All orders that are tried.
pub(super) fn orders() -> Vec<Order> {
    [Order::Program, Order::Late].into_iter().chain((1..6).map(Order::Random)).collect()
}

/// In every order: the same trap, or the bits of one statement after another.
pub(super) fn verdict(kernel: &Kernel) -> Option<Trap> {
    let (plain, bits, printed) = launch(kernel, None);

    let mut first: Option<Option<Trap>> = None;
    for order in orders() {
        let (result, data, lines) = launch(kernel, Some(pipes(order)));
        if result.is_ok() {
            assert!(plain.is_ok(), "{order:?}");
            assert!(data == bits && lines == printed, "{order:?}");
        }
        let trap = result.err();
        match &first {
            None => first = Some(trap),
            Some(one) => assert_eq!(one, &trap, "{order:?}"),
        }
    }
    first.flatten()
}

/// The verdict of a script: `CODE@line`, with the lines of the other places.
pub(super) fn says(script: &str) -> String {
    verdict(&kernel(script)).map_or("fine".into(), |trap| {
        let mut text = format!("{}@{}", trap.code, trap.span.start);
        for (span, _) in &trap.labels {
            write!(text, ",{}", span.start).expect("a string");
        }
        text
    })
}

/// Code and message.
pub(super) fn message(script: &str) -> String {
    verdict(&kernel(script)).map_or("fine".into(), |trap| trap.message)
}

pub(super) fn timing(script: &str) -> Timing {
    let pipes = Pipes { time: Some(times()), ..pipes(Order::Program) };
    launch(&kernel(script), Some(pipes)).0.expect("a run").timing.expect("a timing")
}

//! How long an editor waits for `ptoc lsp`: diagnostics after an edit, completion, hover, on a file of 2,000 lines with
//! 50 kernels.
//!
//! `cargo run --release --example lsp_latency` drives the `ptoc` of the same profile over its streams, as an
//! editor does (build it first), or the program that is named as argument, with so many edits of each kind as a second
//! argument says. Times are from the message that is written to the one that is read. On Linux the time is shown, too,
//! for which the server had a processor: on a machine that others use it is the one that means something.

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

const KERNELS: usize = 50;
const LINES: usize = 2000;
const URI: &str = "file:///nowhere/many.tile";

/// A kernel of 40 lines: arithmetic on tiles, a loop, a product every fifth time.
fn kernel(n: usize) -> String {
    let mut out = format!(
        "/// Kernel {n}.\nkernel k{n}<const BM = 32, const BN = 64>(x: in f32[M, N], w: in f32[N], y: out f32[M, \
         N])\n    where N >= 1\n{{\n    \
         grid (i in tiles(M, BM), j in tiles(N, BN));\n    let t0 = tile Vec<f32, i, j>;\n    \
         TLOAD(t0, x.tile(i, j));\n    \
         let row = tile Vec<f32, 1, j>;\n    TLOAD(row, w.tile(j));\n    var total = 1.0;\n    \
         for q in 0..4 {{\n        total = total + {n}.5;\n    }}\n"
    );
    let mut lines = out.lines().count();
    let mut k = 0;
    while lines < LINES / KERNELS - 3 {
        let op =
            ["TMULS(a, t, 2.0);", "TADDS(a, t, 0.5);", "TEXP(a, t);", "TABS(a, t);", "TMAXS(a, t, 0.0);"][(n + k) % 5];
        let op = op
            .replace('a', &format!("t{}", k + 1))
            .replacen(" t,", &format!(" t{k},"), 1)
            .replace(" t)", &format!(" t{k})"));
        out += &format!("    let t{} = tile Vec<f32, i, j>;\n    {op}\n", k + 1);
        (lines, k) = (lines + 2, k + 1);
    }
    out += &format!("    TSTORE(y.tile(i, j), t{k});\n}}\n");
    while out.lines().count() < LINES / KERNELS {
        out += "\n";
    }
    out
}

/// A client over the streams of a server.
struct Client {
    server: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    id: u64,
    /// Notifications that came before an answer.
    passed: Vec<Value>,
}

impl Client {
    fn start(program: &PathBuf) -> Client {
        let server = Command::new(program).arg("lsp").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut server = server.unwrap_or_else(|e| panic!("cannot start {}: {e}", program.display()));
        let (input, output) =
            (server.stdin.take().expect("piped"), BufReader::new(server.stdout.take().expect("piped")));
        let mut c = Client { server, input, output, id: 0, passed: Vec::new() };
        let encodings = json!({"general": {"positionEncodings": ["utf-8"]}});
        c.ask("initialize", json!({"processId": null, "rootUri": null, "capabilities": encodings}));
        c.tell("initialized", json!({}));
        c
    }

    /// How long the server has had a processor; zero where that is not to be known.
    fn computed(&self) -> Duration {
        let threads = std::fs::read_dir(format!("/proc/{}/task", self.server.id())).into_iter().flatten().flatten();
        let stats = threads.filter_map(|t| std::fs::read_to_string(t.path().join("schedstat")).ok());
        stats.filter_map(|s| s.split(' ').next()?.parse().ok()).map(Duration::from_nanos).sum()
    }

    fn send(&mut self, message: &Value) {
        let text = message.to_string();
        write!(self.input, "Content-Length: {}\r\n\r\n{text}", text.len()).expect("the server reads");
        self.input.flush().expect("the server reads");
    }

    fn read(&mut self) -> Value {
        let mut length = 0;
        loop {
            let mut line = String::new();
            self.output.read_line(&mut line).expect("the server writes");
            match line.trim().strip_prefix("Content-Length: ") {
                Some(n) => length = n.parse().expect("a number"),
                None if line.trim().is_empty() => break,
                None => {}
            }
        }
        let mut body = vec![0; length];
        self.output.read_exact(&mut body).expect("the server writes");
        serde_json::from_slice(&body).expect("JSON")
    }

    fn tell(&mut self, method: &str, params: Value) {
        self.send(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    fn ask(&mut self, method: &str, params: Value) -> Value {
        self.id += 1;
        let id = self.id;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        loop {
            let message = self.read();
            if message["id"] == id && message.get("method").is_none() {
                return message["result"].clone();
            }
            self.passed.push(message);
        }
    }

    /// Waits for the diagnostics of a version.
    fn diagnostics(&mut self, version: usize) -> usize {
        let mut passed = std::mem::take(&mut self.passed).into_iter();
        loop {
            let message = passed.next().unwrap_or_else(|| self.read());
            if message["method"] == "textDocument/publishDiagnostics" && message["params"]["version"] == version {
                return message["params"]["diagnostics"].as_array().map_or(0, Vec::len);
            }
        }
    }

    fn edit(&mut self, version: usize, line: usize, columns: [usize; 2], text: &str) {
        let place = |character| json!({"line": line, "character": character});
        let change = json!({"range": {"start": place(columns[0]), "end": place(columns[1])}, "text": text});
        self.tell(
            "textDocument/didChange",
            json!({"textDocument": {"uri": URI, "version": version}, "contentChanges": [change]}),
        );
    }
}

/// When a wait began, and how long the server had computed then.
struct Watch {
    begin: Instant,
    computed: Duration,
}

impl Watch {
    fn start(c: &Client) -> Watch {
        Watch { computed: c.computed(), begin: Instant::now() }
    }

    /// The wait, and the server's part of it.
    fn stop(self, c: &Client) -> (Duration, Duration) {
        (self.begin.elapsed(), c.computed().saturating_sub(self.computed))
    }
}

fn report(what: &str, times: &[(Duration, Duration)]) {
    let line = |mut all: Vec<Duration>| {
        all.sort();
        let at = |share: f64| all[((all.len() - 1) as f64 * share).round() as usize].as_secs_f64() * 1e3;
        format!("median {:7.2} ms  p99 {:7.2} ms", at(0.5), at(0.99))
    };
    let waited = line(times.iter().map(|t| t.0).collect());
    println!("{what:40} {waited}   computed {}", line(times.iter().map(|t| t.1).collect()));
}

fn main() {
    let beside = || std::env::current_exe().expect("it runs").parent().expect("a folder").join("../ptoc");
    let program = std::env::args().nth(1).map_or_else(beside, PathBuf::from);
    let edits: usize = std::env::args().nth(2).map_or(400, |n| n.parse().expect("a number of edits"));
    let text: String = (0..KERNELS).map(kernel).collect();
    let lines: Vec<&str> = text.lines().collect();
    println!("{} lines, {KERNELS} kernels, {edits} edits of each kind", lines.len());
    let mut c = Client::start(&program);
    let watch = Watch::start(&c);
    c.tell(
        "textDocument/didOpen",
        json!({"textDocument": {"uri": URI, "languageId": "tile", "version": 0, "text": text}}),
    );
    let wrong = c.diagnostics(0);
    let (waited, computed) = watch.stop(&c);
    let ms = |t: Duration| t.as_secs_f64() * 1e3;
    println!("{:40} {:.2} ms, computed {:.2} ms ({wrong} diagnostics)", "open", ms(waited), ms(computed));
    // Numbers are changed: every edit changes what one kernel computes, and leaves it right.
    let places: Vec<usize> = (0..lines.len()).filter(|n| lines[*n].contains("total + ")).collect();
    let mut version = 0;
    let (mut after, mut new_line, mut broken, mut complete, mut hover) = (vec![], vec![], vec![], vec![], vec![]);
    for n in 0..edits {
        let line = places[n * 7 % places.len()];
        let column = lines[line].find("total + ").expect("it was found") + 8;
        let mut edit = |c: &mut Client, columns, text: &str, times: &mut Vec<(Duration, Duration)>, line| {
            version += 1;
            let watch = Watch::start(c);
            c.edit(version, line, columns, text);
            c.diagnostics(version);
            times.push(watch.stop(c));
        };
        edit(&mut c, [column, column], ["1", "2", "3"][n % 3], &mut after, line);
        // A broken statement, a proposal while it is broken, and back.
        let word = "        TA\n";
        edit(&mut c, [0, 0], word, &mut broken, line);
        let at = json!({"textDocument": {"uri": URI}, "position": {"line": line, "character": 10}});
        let watch = Watch::start(&c);
        c.ask("textDocument/completion", at.clone());
        complete.push(watch.stop(&c));
        let watch = Watch::start(&c);
        c.ask(
            "textDocument/hover",
            json!({"textDocument": {"uri": URI}, "position": {"line": line - 3, "character": 6}}),
        );
        hover.push(watch.stop(&c));
        version += 1;
        let place = |line, character| json!({"line": line, "character": character});
        let change = json!({"range": {"start": place(line, 0), "end": place(line + 1, 0)}, "text": ""});
        let watch = Watch::start(&c);
        c.tell(
            "textDocument/didChange",
            json!({"textDocument": {"uri": URI, "version": version}, "contentChanges": [change]}),
        );
        c.diagnostics(version);
        new_line.push(watch.stop(&c));
        let mut edit = |c: &mut Client, columns, text: &str, times: &mut Vec<(Duration, Duration)>, line| {
            version += 1;
            let watch = Watch::start(c);
            c.edit(version, line, columns, text);
            c.diagnostics(version);
            times.push(watch.stop(c));
        };
        edit(&mut c, [column, column + 1], "", &mut after, line);
    }
    report("diagnostics after an edit in a line", &after);
    report("diagnostics after a line that is broken", &broken);
    report("diagnostics after a line is gone", &new_line);
    report("completion in a broken statement", &complete);
    report("hover", &hover);
    // Requests that do not wait for the diagnostics of the edit before them.
    let mut at_once = vec![];
    for n in 0..edits {
        let line = places[n * 11 % places.len()];
        let column = lines[line].find("total + ").expect("it was found") + 8;
        version += 1;
        let watch = Watch::start(&c);
        c.edit(version, line, [column, column + usize::from(n % 2 == 1)], if n % 2 == 0 { "4" } else { "" });
        c.ask(
            "textDocument/completion",
            json!({"textDocument": {"uri": URI}, "position": {"line": line, "character": column}}),
        );
        at_once.push(watch.stop(&c));
        c.diagnostics(version);
        if n % 2 == 0 {
            version += 1;
            c.edit(version, line, [column, column + 1], "");
            c.diagnostics(version);
        }
    }
    report("completion at once after an edit", &at_once);
    c.ask("shutdown", Value::Null);
    c.tell("exit", Value::Null);
    let status = c.server.wait().expect("it ends");
    assert!(status.success(), "the server ended with {status}");
}

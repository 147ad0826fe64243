//! What the host of a program computes between launches, against a kernel that computes the same: random functions
//! with `if`, `&&`, `||`, early returns and loops, and random statements with variables, loops that data leave, and
//! windows that begin and end where data say.
//!
//! The full budget is 300 of each.

use ptoc_driver::backend::{BackendRef, CPU, INTERP};
use ptoc_driver::launch::{CompiledPlan, RunOptions};
use ptoc_tests::programs::runs_of;
use std::fmt::Write;
use std::path::Path;

/// A linear congruential generator: the functions are the same in every run.
struct Choices {
    state: u64,
    /// Names that were made.
    made: u32,
    /// What is in scope.
    names: &'static [&'static str],
}

impl Choices {
    fn below(&mut self, n: u64) -> u64 {
        self.state = self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.state >> 33) % n
    }

    fn name(&mut self) -> &'static str {
        self.names[self.below(self.names.len() as u64) as usize]
    }

    fn number(&mut self, depth: u32) -> String {
        if depth == 0 {
            return match self.below(3) {
                0 => format!("i32({})", self.below(7)),
                _ => self.name().to_owned(),
            };
        }
        let (x, y) = (self.number(depth - 1), self.number(depth - 1));
        match self.below(7) {
            0 => format!("({x} + {y})"),
            1 => format!("({x} - {y})"),
            2 => format!("({x} & {y})"),
            3 => format!("min({x}, {y})"),
            4 => format!("max({x}, {y})"),
            5 => format!("(if {} {{ {x} }} else {{ {y} }})", self.truth(depth - 1)),
            _ => x,
        }
    }

    fn truth(&mut self, depth: u32) -> String {
        let compare = ["<", "<=", "==", "!=", ">", ">="][self.below(6) as usize];
        if depth == 0 {
            return format!("{} {compare} {}", self.name(), self.number(0));
        }
        match self.below(4) {
            0 => format!("({} && {})", self.truth(depth - 1), self.truth(depth - 1)),
            1 => format!("({} || {})", self.truth(depth - 1), self.truth(depth - 1)),
            2 => format!("!({})", self.truth(depth - 1)),
            _ => format!("{} {compare} {}", self.number(depth - 1), self.number(depth - 1)),
        }
    }

    /// The head of a loop that ends.
    fn loop_head(&mut self, out: &mut String) {
        self.made += 1;
        let q = self.made;
        let head = match self.below(3) {
            0 => format!("for q{q} in 0..3 {{ m += i32(q{q});"),
            1 => format!("for q{q} in 0..index({} & 3) {{ m += 2 * i32(q{q});", self.name()),
            _ => format!("var q{q} = i32(0);\nwhile q{q} < 4 && {} {{ q{q} += 1;", self.truth(1)),
        };
        writeln!(out, "{head}").expect("a string");
    }

    /// Statements; the last is none that all paths return from. `loops` are around.
    fn statements(&mut self, depth: u32, loops: u32, out: &mut String) {
        for _ in 0..1 + self.below(3) {
            match self.below(8) {
                6 if loops > 0 => {
                    let word = ["break", "continue"][self.below(2) as usize];
                    writeln!(out, "if {} {{ m -= 1; {word}; }}", self.truth(1)).expect("a string");
                }
                5 | 7 if depth > 0 => {
                    self.loop_head(out);
                    self.statements(depth - 1, loops + 1, out);
                    out.push_str("}\n");
                }
                0 | 1 => writeln!(out, "m = {};", self.number(2)).expect("a string"),
                2 if depth > 0 => {
                    writeln!(out, "if {} {{ return {}; }}", self.truth(1), self.number(1)).expect("a string");
                }
                _ if depth > 0 => {
                    writeln!(out, "if {} {{", self.truth(1)).expect("a string");
                    self.statements(depth - 1, loops, out);
                    if self.below(2) == 0 {
                        out.push_str("} else {\n");
                        self.statements(depth - 1, loops, out);
                    }
                    out.push_str("}\n");
                }
                _ => writeln!(out, "m += {};", self.number(1)).expect("a string"),
            }
        }
    }

    /// Where a window of ten elements begins and ends, behind the first two.
    fn window(&mut self) -> String {
        let (a, b) = (self.name(), self.name());
        match self.below(5) {
            0 => format!("2; 2 + index({a} & 7)"),
            1 => format!("2 + index({a} & 3); 6"),
            2 => format!("2 + index({a} & 3); 4 + index({a} & 3)"),
            3 => format!("2 + index({a} & 3); 2 + index({a} & 3) + index({b} & 3)"),
            _ => "3; 9".to_owned(),
        }
    }

    /// Statements with loops: those of a kernel are those of a program. `loops` are around, `made` are there so far.
    fn looping(&mut self, depth: u32, loops: u32, made: &mut u32, out: &mut String) {
        let say = |out: &mut String, line: String| writeln!(out, "{line}").expect("a string");
        for _ in 0..1 + self.below(3) {
            match self.below(11) {
                9 => {
                    let (window, value) = (self.window(), self.name());
                    say(out, format!("@add {window}; {value}@"));
                }
                // Windows keep their places.
                10 => {
                    *made += 1;
                    let window = self.window();
                    say(out, format!("@keep {made}; {window}@"));
                    say(out, format!("{} += 1;", self.name()));
                    say(out, format!("@add kept {made}; {}@", self.name()));
                }
                0 | 1 => say(out, format!("{} = {};", self.name(), self.number(2))),
                2 => say(out, format!("{} += {};", self.name(), self.number(1))),
                3 if loops > 0 => {
                    let word = ["break", "continue"][self.below(2) as usize];
                    say(out, format!("if {} {{ {} = {}; {word}; }}", self.truth(1), self.name(), self.number(1)));
                }
                4 => {
                    *made += 1;
                    say(out, format!("let t{made} = {};", self.number(1)));
                    say(out, format!("{} -= 1;", self.name()));
                    say(out, format!("{} = t{made};", self.name()));
                }
                5 | 6 if depth > 0 => {
                    *made += 1;
                    let q = *made;
                    match self.below(3) {
                        0 => say(out, format!("for q{q} in 0..3 {{ {} += i32(q{q});", self.name())),
                        1 => {
                            let (end, sum) = (self.name(), self.name());
                            say(out, format!("for q{q} in 0..index({end} & 3) {{ {sum} += i32(q{q});"));
                        }
                        _ => {
                            let condition = ["true".to_owned(), self.truth(1)][self.below(2) as usize].clone();
                            say(out, format!("var q{q} = i32(0);"));
                            say(out, format!("while q{q} < 4 && {condition} {{ q{q} += 1;"));
                        }
                    }
                    self.looping(depth - 1, loops + 1, made, out);
                    say(out, "}".to_owned());
                }
                _ if depth > 0 => {
                    say(out, format!("if {} {{", self.truth(1)));
                    self.looping(depth - 1, loops, made, out);
                    if self.below(2) == 0 {
                        say(out, "} else {".to_owned());
                        self.looping(depth - 1, loops, made, out);
                    }
                    say(out, "}".to_owned());
                }
                _ => say(out, format!("{} = {};", self.name(), self.number(1))),
            }
        }
    }
}

/// Statements as they stand in a kernel, or in a program.
fn written_for(body: &str, program: bool) -> String {
    let mut out = String::new();
    for line in body.lines() {
        let marked = line.strip_prefix('@').and_then(|line| line.strip_suffix('@'));
        let Some((what, parts)) = marked.and_then(|marked| marked.split_once(' ')) else {
            writeln!(out, "{line}").expect("a string");
            continue;
        };
        let parts: Vec<&str> = parts.split("; ").collect();
        let line = match (what, &parts[..], program) {
            ("keep", [n, lo, hi], true) => format!("let w{n} = z[{lo} .. {hi}];"),
            ("keep", [n, lo, hi], false) => format!("let (l{n}, h{n}) = ({lo}, {hi});"),
            (_, [lo, hi, v], true) => format!("add(z[{lo} .. {hi}], {v});"),
            (_, [lo, hi, v], false) => format!("for w in {lo}..{hi} {{ y[w] += {v}; }}"),
            (_, [kept, v], true) => format!("add({}, {v});", kept.replace("kept ", "w")),
            (_, [kept, v], false) => {
                let n = kept.replace("kept ", "");
                format!("for w in l{n}..h{n} {{ y[w] += {v}; }}")
            }
            _ => unreachable!("{line}"),
        };
        writeln!(out, "{line}").expect("a string");
    }
    out
}

fn looping_program(choices: &mut Choices, seed: u64) -> String {
    choices.names = &["a", "b", "c", "d"];
    let mut body = String::new();
    choices.looping(3, 0, &mut 0, &mut body);
    let (by_kernel, by_program) = (written_for(&body, false), written_for(&body, true));
    format!(
        "// run: p interp seed={seed}
kernel numbers(x: in i32[3], n: out i32[3]) {{
    for i in 0..3 {{ n[i] = (x[i] & 15) - 4; }}
}}

kernel by_kernel(n: in i32[3], y: inout i32[10]) {{
    var a = n[0];
    var b = n[1];
    var c = n[2];
    var d = i32(2);
{by_kernel}
    y[0] = a ^ b;
    y[1] = c - d;
}}

kernel by_host(z: inout i32[10], v: i32, w: i32) {{ z[0] = v; z[1] = w; }}

kernel clear(z: out i32[N]) {{ for i in 0..N {{ z[i] = 0; }} }}

kernel add(z: inout i32[N], v: i32) {{ for i in 0..N {{ z[i] += v; }} }}

program p(x: in i32[3], y: out i32[10], z: out i32[10]) {{
    let n = tensor i32[3];
    numbers(x, n);
    clear(y);
    by_kernel(n, y);
    clear(z);
    var a = n[0];
    var b = n[1];
    var c = n[2];
    var d = i32(2);
{by_program}
    by_host(z, a ^ b, c - d);
}}
"
    )
}

fn program(choices: &mut Choices, seed: u64) -> String {
    choices.names = &["a", "b", "c"];
    let (condition, value) = (choices.truth(3), choices.number(2));
    choices.names = &["a", "b", "c", "m"];
    let mut body = String::new();
    choices.statements(3, 0, &mut body);
    format!(
        "// run: p interp seed={seed}
fn f(a: i32, b: i32, c: i32) -> i32 {{
var m = {value};
{body}
m
}}

fn t(a: i32, b: i32, c: i32) -> bool {{ {condition} }}

kernel numbers(x: in i32[3], n: out i32[3]) {{
    for i in 0..3 {{ n[i] = (x[i] & 15) - 4; }}
}}

kernel by_kernel(n: in i32[3], y: out i32[2]) {{
    y[0] = f(n[0], n[1], n[2]);
    y[1] = i32(t(n[0], n[1], n[2]));
}}

kernel by_host(z: out i32[2], v: i32, w: i32) {{ z[0] = v; z[1] = w; }}

program p(x: in i32[3], y: out i32[2], z: out i32[2]) {{
    let n = tensor i32[3];
    numbers(x, n);
    by_kernel(n, y);
    let (a, b, c) = (n[0], n[1], n[2]);
    let decided = t(a, b, c);
    if decided {{ by_host(z, f(a, b, c), 1); }} else {{ by_host(z, f(n[0], n[1], n[2]), i32(decided)); }}
}}
"
    )
}

/// Runs programs, whose second and third arguments have equal bits afterwards.
fn the_same_by_both(program: impl Fn(&mut Choices, u64) -> String, backends: &[BackendRef]) {
    let mut choices = Choices { state: 7, made: 0, names: &[] };
    let options = RunOptions { threads: 1, ..RunOptions::default() };
    for seed in 0..ptoc_tests_budget::cases::<u64>(60, 300) {
        let text = program(&mut choices, seed);
        let mut runs = runs_of(Path::new("host.tile"), &text);
        assert_eq!(runs.len(), 1, "is not taken:\n{text}");
        let run = &mut runs[0];
        for backend in backends {
            let compiled = CompiledPlan::new(&mut run.session, &run.plan, *backend).expect("compiles");
            let mut tensors = run.before.clone();
            compiled.run(&mut run.session, &mut tensors, &options, &mut |_| {}, None).expect("runs");
            let [x, y, z] = &tensors[..] else { panic!("three arguments") };
            assert_eq!(y.bytes(), z.bytes(), "{:?} of x = {:?}\n{text}", backend.name(), x.bytes());
        }
    }
}

#[test]
fn the_host_computes_what_kernels_compute() {
    the_same_by_both(program, &[INTERP, CPU]);
}

#[test]
fn programs_loop_as_kernels_do() {
    the_same_by_both(looping_program, &[INTERP, CPU]);
}

//! `ptoc emit --stage sync`: what orders the pipes of a kernel, beside the source.

use ptoc_diagnostics::{SourceMap, Span, plural};
use ptoc_ir::tile::{EventRef, Kernel, Op, Stmt, SyncOp, Value, pipe_of_op};
use ptoc_isa::BinOp;
use std::collections::HashMap;
use std::fmt::Write as _;

/// The listing: the flags, then every statement that runs on a pipe, in program order, with its line; what was inserted
/// has a `+`.
pub fn listing(kernel: &Kernel, sources: &SourceMap) -> String {
    let mut list = Listing { kernel, sources, out: String::new(), names: HashMap::new(), shown: None };
    list.note(&kernel.prologue);
    list.note(&kernel.body);
    let (mut flags, mut barriers) = (0, 0);
    for event in kernel.events.values() {
        flags += event.count as usize;
    }
    count_barriers(&kernel.body, &mut barriers);
    let (flags, barriers) = (plural(flags, "flag"), plural(barriers, "barrier"));
    let _ = writeln!(list.out, "# {} for {}: {flags}, {barriers}", kernel.name, kernel.target);
    for (id, e) in &kernel.events {
        let count = if e.count == 1 { String::new() } else { format!("[{}]", e.count) };
        let _ = writeln!(list.out, "#   {:<8} {:<4} to {:<4}  {}", format!("{id}{count}"), e.from, e.to, e.name);
    }
    list.region(&kernel.body, 0);
    list.out
}

fn count_barriers(region: &[Stmt], n: &mut usize) {
    for stmt in region {
        *n += usize::from(matches!(stmt.op, Op::Sync(SyncOp::Barrier(_))));
        stmt.op.regions().for_each(|r| count_barriers(r, n));
    }
}

struct Listing<'k> {
    kernel: &'k Kernel,
    sources: &'k SourceMap,
    out: String,
    /// Constants and residues, as text.
    names: HashMap<Value, String>,
    /// The line whose text was shown last.
    shown: Option<(ptoc_diagnostics::FileId, u32)>,
}

impl Listing<'_> {
    fn note(&mut self, region: &[Stmt]) {
        for stmt in region {
            let text = match &stmt.op {
                Op::Const { value, .. } => value.as_index().map(|n| n.to_string()),
                Op::Binary { op: op @ (BinOp::Rem | BinOp::Sub | BinOp::Add | BinOp::Mul), a, b, .. } => {
                    let sign = match op {
                        BinOp::Rem => "%",
                        BinOp::Sub => "-",
                        BinOp::Add => "+",
                        _ => "*",
                    };
                    let (a, b) = (self.value(*a), self.value(*b));
                    (a.len() + b.len() < 24).then(|| format!("{a} {sign} {b}"))
                }
                _ => None,
            };
            if let Some((dst, text)) = stmt.op.def().zip(text) {
                self.names.insert(dst, text);
            }
            stmt.op.regions().for_each(|r| self.note(r));
        }
    }

    fn value(&self, v: Value) -> String {
        let named = || self.kernel.values[v].name.as_ref().map(ToString::to_string);
        self.names.get(&v).cloned().or_else(named).unwrap_or_else(|| v.to_string())
    }

    fn event(&self, e: EventRef) -> String {
        let name = &self.kernel.events[e.event].name;
        let element = e.element.map_or(String::new(), |v| format!("[{}]", self.value(v)));
        format!("{}{element}  {name}", e.event)
    }

    fn row(&mut self, span: Span, mark: char, depth: usize, what: &str) {
        // What the compiler made out of nothing has no line.
        let known = span != Span::default();
        let line = self.sources.position(span.file, span.start).line;
        let number = if known { line.to_string() } else { String::new() };
        let left = format!("{number:>5} {mark} {:1$}{what}", "", 2 * depth);
        let text = match known && mark == ' ' && self.shown != Some((span.file, line)) {
            true => {
                self.shown = Some((span.file, line));
                self.sources.line(span.file, line - 1).trim()
            }
            false => "",
        };
        let _ = writeln!(self.out, "{}", format!("{left:<44}{text}").trim_end());
    }

    fn region(&mut self, region: &[Stmt], depth: usize) {
        for stmt in region {
            match &stmt.op {
                Op::For(f) => {
                    let index = self.value(f.index);
                    self.row(stmt.span, ' ', depth, &format!("for {index}"));
                    self.region(&f.body, depth + 1);
                }
                Op::While(w) => {
                    self.row(stmt.span, ' ', depth, "while");
                    self.region(&w.head, depth + 1);
                    self.region(&w.body, depth + 1);
                }
                Op::If(i) => {
                    self.row(stmt.span, ' ', depth, "if");
                    self.region(&i.then, depth + 1);
                    if !i.els.is_empty() {
                        self.row(stmt.span, ' ', depth, "else");
                        self.region(&i.els, depth + 1);
                    }
                }
                Op::Scope(s) => self.region(&s.body, depth),
                Op::Sync(sync) => {
                    let pipe = pipe_of_op(self.kernel, &stmt.op).map_or("all", |p| p.name());
                    let event = sync.event().map_or(String::new(), |e| self.event(e));
                    self.row(stmt.span, '+', depth, format!("{pipe:<5}{} {event}", sync.word()).trim_end());
                }
                op => {
                    if let Some(pipe) = pipe_of_op(self.kernel, op) {
                        let word = match op {
                            Op::Inst(inst) => inst.instr.get().name,
                            Op::Copy(_) => "copy",
                            Op::Mma(_) => "mma",
                            Op::Load { .. } | Op::TileGet { .. } => "read",
                            Op::Store { .. } | Op::TileSet { .. } => "write",
                            Op::Atomic { .. } => "atomic",
                            _ => "print",
                        };
                        self.row(stmt.span, ' ', depth, &format!("{:<5}{word}", pipe.name()));
                    }
                }
            }
        }
    }
}

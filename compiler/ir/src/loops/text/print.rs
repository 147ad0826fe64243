//! The printer.

use crate::loops::{
    Addr, Base, Bounded, CheckRow, Contract, Func, Gather, LTy, Lists, Merge, Module, Op, PrintPart, Records, Reduce,
    Reg, Region, Sort, SourcePosition, Start, Stmt, Stride, operands,
};
use cranelift_entity::SecondaryMap;
use ptoc_diagnostics::Span;
use std::fmt::Write as _;

/// A module as text, with the statements' spans if `spans`.
pub fn print(module: &Module, spans: bool) -> String {
    let mut p = Printer { out: String::new(), spans };
    p.module(module);
    p.out
}

/// One function as text.
pub fn print_func(func: &Func, spans: bool) -> String {
    let mut p = Printer { out: String::new(), spans };
    p.func(func);
    p.out
}

struct Printer {
    out: String,
    spans: bool,
}

macro_rules! put {
    ($p:expr, $($arg:tt)*) => {
        // Writing to a `String` cannot fail.
        let _ = write!($p.out, $($arg)*);
    };
}

impl Printer {
    fn module(&mut self, module: &Module) {
        put!(self, "kernel {}\n", quoted(&module.name));
        for name in &module.tensors {
            put!(self, "tensor {}\n", quoted(name));
        }
        put!(self, "arena {}\n", module.arena);
        for space in module.spaces.values() {
            put!(self, "space {} at {} size {}\n", quoted(&space.name), space.offset, space.size);
        }
        for dim in &module.spread {
            put!(self, "spread {dim}\n");
        }
        if let Some(raster) = module.raster {
            put!(self, "raster {} {}\n", raster.along, raster.swizzle);
        }
        for blocks in &module.cluster {
            put!(self, "cluster {blocks}\n");
        }
        for CheckRow { id, span } in &module.checks {
            put!(self, "check {id}");
            self.span(*span);
            self.out.push('\n');
        }
        for row in &module.bounds {
            put!(self, "bounds {}", quoted(&row.what));
            match &row.by {
                Bounded::Proof => self.out.push_str(" proof"),
                Bounded::Intervals => self.out.push_str(" intervals"),
                Bounded::Checks(checks) => {
                    self.out.push_str(" checks");
                    checks.iter().for_each(|n| {
                        put!(self, " {n}");
                    });
                }
            }
            if let Some(SourcePosition { file, line, column }) = &row.place {
                self.out.push_str(" at ");
                if let Some(file) = file {
                    put!(self, "{} ", quoted(file));
                }
                put!(self, "{line}:{column}");
            }
            self.span(row.span);
            self.out.push('\n');
        }
        self.func(&module.launch);
        self.func(&module.block);
    }

    fn span(&mut self, span: Span) {
        if self.spans && span != Span::default() {
            put!(self, " @{}:{}..{}", span.file.0, span.start, span.end);
        }
    }

    fn func(&mut self, func: &Func) {
        let word = match func.entry {
            crate::loops::FunctionEntry::Launch => "launch",
            crate::loops::FunctionEntry::Block => "block",
        };
        put!(self, "{word} {} (", quoted(&func.name));
        for (n, reg) in func.params.iter().enumerate() {
            let comma = if n == 0 { "" } else { ", " };
            put!(self, "{comma}{}", self.typed(func, *reg));
        }
        self.out.push(')');
        if !func.results.is_empty() {
            put!(self, " -> ({})", list(&func.results));
        }
        self.out.push_str(" {\n");
        for (var, data) in &func.vars {
            put!(self, "  var {var}: {}\n", data.ty);
        }
        if !func.labels.is_empty() {
            put!(self, "  labels {}\n", func.labels.len());
        }
        let mut defined = SecondaryMap::new();
        func.params.iter().for_each(|r| defined[*r] = true);
        mark(&func.body, &mut defined);
        for (reg, data) in &func.regs {
            if !defined[reg] {
                put!(self, "  reg {reg}: {}\n", data.ty);
            }
        }
        self.region(func, &func.body, 1);
        self.out.push_str("}\n");
    }

    /// `r3: f32`; a register that the table lacks prints without a type (the verifier refuses it).
    fn typed(&self, func: &Func, reg: Reg) -> String {
        match func.regs.get(reg) {
            Some(data) => format!("{reg}: {}", data.ty),
            None => reg.to_string(),
        }
    }

    fn region(&mut self, func: &Func, region: &Region, depth: usize) {
        for stmt in region {
            self.indent(depth);
            self.statement(func, stmt, depth);
        }
    }

    fn indent(&mut self, depth: usize) {
        (0..depth).for_each(|_| self.out.push_str("  "));
    }

    fn block(&mut self, func: &Func, region: &Region, depth: usize) {
        self.out.push_str(" {\n");
        self.region(func, region, depth + 1);
        self.indent(depth);
        self.out.push('}');
    }

    fn statement(&mut self, func: &Func, stmt: &Stmt, depth: usize) {
        let define = |p: &mut Printer, dst: Reg| {
            put!(p, "{} = ", p.typed(func, dst));
        };
        match &stmt.op {
            Op::Const { dst, bits } => {
                define(self, *dst);
                put!(self, "const {}", constant(func.regs.get(*dst).map(|d| d.ty), *bits));
            }
            Op::Unary { dst, op, a } => {
                define(self, *dst);
                put!(self, "{} {a}", op.name());
            }
            Op::Binary { dst, op, a, b } => {
                define(self, *dst);
                put!(self, "{} {a}, {b}", op.name());
            }
            Op::Fma { dst, a, b, c } => {
                define(self, *dst);
                put!(self, "fma {a}, {b}, {c}");
            }
            Op::Compare { dst, op, a, b } => {
                define(self, *dst);
                put!(self, "{} {a}, {b}", op.name());
            }
            Op::Select { dst, cond, a, b } => {
                define(self, *dst);
                put!(self, "select {cond}, {a}, {b}");
            }
            Op::Cast { dst, op, a } => {
                define(self, *dst);
                put!(self, "{} {a}", op.name());
            }
            Op::Get { dst, var } => {
                define(self, *dst);
                put!(self, "get {var}");
            }
            Op::Set { var, value } => {
                put!(self, "set {var}, {value}");
            }
            Op::Load { dst, ty, addr } => {
                define(self, *dst);
                put!(self, "load {} {}", ty.name(), address(addr));
            }
            Op::Store { ty, addr, value } => {
                put!(self, "store {} {}, {value}", ty.name(), address(addr));
            }
            Op::Fetch { ty, addr } => {
                put!(self, "fetch {} {}", ty.name(), address(addr));
            }
            Op::Join { op, ty, addr, value } => {
                put!(self, "join {} {} {}, {value}", op.name(), ty.name(), address(addr));
            }
            Op::Nibble { dst, addr, moves: [one, two, four] } => {
                define(self, *dst);
                put!(self, "nibble {}, {one}, {two}, {four}", address(addr));
            }
            Op::Atomic(a) => {
                define(self, a.dst);
                let unsigned = if a.unsigned { " unsigned" } else { "" };
                put!(self, "atomic {}{unsigned} {} {}, {}", a.op, a.ty.name(), address(&a.addr), a.value);
                if let Some(expected) = a.expected {
                    put!(self, ", expected {expected}");
                }
            }
            Op::For(f) => {
                put!(self, "for {} {} in {}..{} step {}", f.label, self.typed(func, f.index), f.lo, f.hi, f.step);
                self.span(stmt.span);
                self.block(func, &f.body, depth);
                return self.out.push('\n');
            }
            Op::Lanes(l) => {
                put!(self, "lanes {} in {}", self.typed(func, l.lane), l.count);
                self.span(stmt.span);
                self.block(func, &l.body, depth);
                return self.out.push('\n');
            }
            Op::If(i) => {
                put!(self, "if {}", i.cond);
                self.span(stmt.span);
                self.block(func, &i.then, depth);
                if !i.els.is_empty() {
                    self.out.push_str(" else");
                    self.block(func, &i.els, depth);
                }
                return self.out.push('\n');
            }
            Op::While(w) => {
                put!(self, "while {}", w.label);
                self.span(stmt.span);
                self.block(func, &w.head, depth);
                put!(self, " {}", w.cond);
                self.block(func, &w.body, depth);
                return self.out.push('\n');
            }
            Op::Scope(s) => {
                put!(self, "scope {}", s.label);
                self.span(stmt.span);
                self.block(func, &s.body, depth);
                return self.out.push('\n');
            }
            Op::Break(label) => {
                put!(self, "break {label}");
            }
            Op::Continue(label) => {
                put!(self, "continue {label}");
            }
            Op::Leave(label) => {
                put!(self, "leave {label}");
            }
            Op::Contract(c) => self.contract(c),
            Op::Reduce(r) => self.reduce(r),
            Op::Gather(g) => {
                define(self, g.dst);
                self.gather(g);
            }
            Op::Sort(s) => self.sort(s),
            Op::Merge(m) => self.merge(m),
            Op::Check { cond, check, args } => {
                put!(self, "check {cond}, {check} ({})", list(args));
            }
            Op::Watch(w) => {
                put!(self, "watch {} ({})", w.site, list(&w.args));
                for (addr, (row, col)) in &w.data {
                    put!(self, ", {} ({row}, {col})", address(addr));
                }
            }
            Op::Print { parts } => {
                self.out.push_str("print");
                for (n, part) in parts.iter().enumerate() {
                    self.out.push_str(if n == 0 { " " } else { ", " });
                    self.part(part);
                }
            }
        }
        self.span(stmt.span);
        self.out.push('\n');
    }

    fn contract(&mut self, c: &Contract) {
        let pair = |(x, y)| format!("({}, {})", stride(x), stride(y));
        put!(self, "contract {} ({}, {}, {})", c.ab_ty.name(), c.m, c.n, c.k);
        put!(self, ", d {} {} {}", c.d_ty.name(), address(&c.d), pair(c.d_strides));
        match &c.start {
            Start::Zero => self.out.push_str(", start zero"),
            Start::At { addr, row, col, ty } => {
                put!(self, ", start {} {} {}", ty.name(), address(addr), pair((*row, *col)));
            }
        }
        put!(self, ", a {} {}", address(&c.a), pair(c.a_strides));
        put!(self, ", b {} {}", address(&c.b), pair(c.b_strides));
        if let Some([m, n, k]) = c.part_of {
            put!(self, ", part of ({m}, {n}, {k})");
        }
    }

    fn reduce(&mut self, r: &Reduce) {
        put!(self, "reduce {} {} ({}, {})", r.op.name(), r.ty.name(), r.rows, r.cols);
        put!(self, ", d {} {}", address(&r.d), r.d_stride);
        put!(self, ", a {} ({}, {})", address(&r.a), r.a_strides.0, r.a_strides.1);
    }

    fn gather(&mut self, g: &Gather) {
        let pair = |(x, y): (i64, i64)| format!("({x}, {y})");
        put!(self, "gather {} {} ({}, {})", g.oob.name(), g.ty.name(), g.rows, g.cols);
        put!(self, ", d {} {}", address(&g.d), pair(g.d_strides));
        put!(self, ", from {} {}", address(&g.table), g.total);
        let unsigned = if g.unsigned { "unsigned " } else { "" };
        put!(self, ", by {unsigned}{} {}", address(&g.index), pair(g.index_strides));
        if let Some((addr, strides)) = &g.plus {
            put!(self, ", plus {} {}", address(addr), pair(*strides));
        }
        if let Some((addr, stride)) = &g.places {
            put!(self, ", places {} {stride}", address(addr));
        }
    }

    fn sort(&mut self, s: &Sort) {
        let pair = |(x, y): (i64, i64)| format!("({x}, {y})");
        put!(self, "sort {} ({}, {})", s.ty.name(), s.rows, s.cols);
        put!(self, ", d {} {}", address(&s.d), pair(s.d_strides));
        put!(self, ", a {} {}", address(&s.a), pair(s.a_strides));
        put!(self, ", index {} {}", address(&s.index), pair(s.index_strides));
    }

    fn merge(&mut self, m: &Merge) {
        let records = |r: &Records| format!("{} {} {}", address(&r.at), r.stride, r.count);
        put!(self, "merge {} d {} {}", m.ty.name(), address(&m.d), m.d_stride);
        match &m.lists {
            Lists::Each(lists) => lists.iter().for_each(|list| {
                put!(self, ", list {}", records(list));
            }),
            Lists::Runs { all, length } => {
                put!(self, ", runs {} of {length}", records(all));
            }
        }
    }

    fn part(&mut self, part: &PrintPart) {
        let sign = |unsigned: &bool| if *unsigned { "unsigned " } else { "" };
        match part {
            PrintPart::Text(text) => self.out.push_str(&quoted(text)),
            PrintPart::Scalar { value, ty, unsigned } => {
                put!(self, "{}{} {value}", sign(unsigned), ty.name());
            }
            PrintPart::Matrix { addr, ty, unsigned, rows, cols, row_stride, col_stride } => {
                put!(self, "matrix {}{} {}", sign(unsigned), ty.name(), address(addr));
                put!(self, " ({rows}, {cols}) ({row_stride}, {col_stride})");
            }
        }
    }
}

/// Marks every register that the region defines.
fn mark(region: &Region, defined: &mut SecondaryMap<Reg, bool>) {
    for stmt in region {
        match &stmt.op {
            Op::Atomic(a) => defined[a.dst] = true,
            Op::Gather(g) => defined[g.dst] = true,
            Op::For(f) => {
                defined[f.index] = true;
                mark(&f.body, defined);
            }
            Op::Lanes(l) => {
                defined[l.lane] = true;
                mark(&l.body, defined);
            }
            Op::If(i) => {
                mark(&i.then, defined);
                mark(&i.els, defined);
            }
            Op::While(w) => {
                mark(&w.head, defined);
                mark(&w.body, defined);
            }
            Op::Scope(s) => mark(&s.body, defined),
            op => {
                if let (_, Some(dst)) = operands(op) {
                    defined[dst] = true;
                }
            }
        }
    }
}

fn list(regs: &[Reg]) -> String {
    regs.iter().map(Reg::to_string).collect::<Vec<_>>().join(", ")
}

fn stride(stride: Stride) -> String {
    match stride {
        Stride::Const(bytes) => bytes.to_string(),
        Stride::Reg(reg) => reg.to_string(),
    }
}

fn address(addr: &Addr) -> String {
    let mut text = match addr.base {
        Base::Tensor(n) => format!("t{n}[{}", addr.offset),
        Base::Space(space) => format!("{space}[{}", addr.offset),
    };
    match addr.stride {
        Stride::Const(0) => {}
        Stride::Const(bytes) => text += &format!(", stride {bytes}"),
        Stride::Reg(reg) => text += &format!(", stride {reg}"),
    }
    if let Some(gather) = addr.gather {
        text += &format!(", gather {gather}");
    }
    text + "]"
}

/// A number of the type where that says all the bits, otherwise the bits as `0x...`.
fn constant(ty: Option<LTy>, bits: u64) -> String {
    let low = bits as u32;
    let narrow = u64::from(low) == bits;
    match ty {
        Some(LTy::I64) => (bits as i64).to_string(),
        Some(LTy::I32) if narrow => (low as i32).to_string(),
        Some(LTy::F32) if narrow && f32::from_bits(low).is_finite() => format!("{:?}", f32::from_bits(low)),
        Some(LTy::Bool) if bits <= 1 => (bits == 1).to_string(),
        _ => format!("{bits:#x}"),
    }
}

pub(super) fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

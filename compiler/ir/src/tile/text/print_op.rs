//! Printing statements.

use super::print::{Printer, Quoted};
use crate::scalar;
use crate::tile::{Const, Inst, Op, Operand, PrintPart, Region, Stmt, SyncOp, TileRef, Value, ViewRef};
use ptoc_diagnostics::Span;
use std::fmt::{self, Write};

impl Printer<'_> {
    pub(super) fn region(&mut self, region: &Region) -> fmt::Result {
        self.indent += 1;
        for stmt in region {
            self.stmt(stmt)?;
        }
        self.indent -= 1;
        Ok(())
    }

    fn margin(&mut self) {
        for _ in 0..self.indent {
            self.out.push_str("  ");
        }
    }

    /// ` @span {`, a region, and the margin before its `}`.
    fn block(&mut self, span: Option<Span>, region: &Region) -> fmt::Result {
        if let Some(span) = span {
            self.span(span)?;
        }
        self.out.push_str(" {\n");
        self.region(region)?;
        self.margin();
        Ok(())
    }

    fn stmt(&mut self, stmt: &Stmt) -> fmt::Result {
        let span = stmt.span;
        self.margin();
        if let Some(dst) = stmt.op.def() {
            self.def(dst, span)?;
            self.out.push_str(" = ");
        }
        match &stmt.op {
            Op::For(x) => {
                write!(self.out, "for {} ", x.label)?;
                self.def(x.index, span)?;
                write!(self.out, " in {}..{}", x.lo, x.hi)?;
                if x.stages != 1 {
                    write!(self.out, " stages {}", x.stages)?;
                }
                self.block(Some(span), &x.body)?;
                self.out.write_str("}\n")
            }
            Op::If(x) => {
                write!(self.out, "if {}", x.cond)?;
                self.block(Some(span), &x.then)?;
                if !x.els.is_empty() {
                    self.out.push_str("} else");
                    self.block(None, &x.els)?;
                }
                self.out.write_str("}\n")
            }
            Op::While(x) => {
                write!(self.out, "while {}", x.label)?;
                self.block(Some(span), &x.head)?;
                write!(self.out, "}} do {}", x.cond)?;
                self.block(None, &x.body)?;
                self.out.write_str("}\n")
            }
            Op::Scope(x) => {
                write!(self.out, "scope {}", x.label)?;
                x.role.map_or(Ok(()), |r| write!(self.out, " role {r}"))?;
                self.block(Some(span), &x.body)?;
                self.out.write_str("}\n")
            }
            op => {
                self.simple(op)?;
                self.end(span)
            }
        }
    }

    /// A statement without regions, without its `dst =`.
    fn simple(&mut self, op: &Op) -> fmt::Result {
        match op {
            Op::Const { dst, value } => {
                let same = self.k.values.get(*dst).is_some_and(|d| d.ty == value.ty);
                if same {
                    self.out.push_str("const ");
                } else {
                    write!(self.out, "const.{} ", value.ty)?;
                }
                self.literal(*value)
            }
            Op::Unary { op, a, .. } => write!(self.out, "{op} {a}"),
            Op::Binary { op, a, b, .. } => write!(self.out, "{op} {a}, {b}"),
            Op::Compare { op, a, b, .. } => write!(self.out, "{op} {a}, {b}"),
            Op::Select { cond, a, b, .. } => write!(self.out, "select {cond}, {a}, {b}"),
            Op::Convert { a, round, saturate, .. } => {
                write!(self.out, "convert.{round}{} {a}", if *saturate { ".sat" } else { "" })
            }
            Op::Bitcast { a, .. } => write!(self.out, "bitcast {a}"),
            Op::Get { var, .. } => write!(self.out, "get {var}"),
            Op::Set { var, value } => write!(self.out, "set {var}, {value}"),
            Op::Load { tensor, offset, .. } => write!(self.out, "load {tensor}[{offset}]"),
            Op::Store { tensor, offset, value } => write!(self.out, "store {tensor}[{offset}], {value}"),
            Op::Atomic { op, tensor, offset, expected, value, .. } => {
                write!(self.out, "atomic.{op} {tensor}[{offset}], {value}")?;
                expected.map_or(Ok(()), |e| write!(self.out, " expect {e}"))
            }
            Op::TileGet { tile, row, col, .. } => {
                self.out.push_str("tileget ");
                self.tile_ref(tile)?;
                write!(self.out, ", {row}, {col}")
            }
            Op::TileSet { tile, row, col, value } => {
                self.out.push_str("tileset ");
                self.tile_ref(tile)?;
                write!(self.out, ", {row}, {col}, {value}")
            }
            Op::Alloc { tile } => write!(self.out, "alloc {tile}"),
            Op::Assign { tile, element, addr } => {
                write!(self.out, "assign {tile}")?;
                self.element(*element)?;
                write!(self.out, ", {addr}")
            }
            Op::Inst(inst) => self.inst(inst),
            Op::Copy(copy) => self.copy(copy),
            Op::Mma(mma) => self.mma(mma),
            Op::Sync(sync) => self.sync(sync),
            Op::Check { cond, check, args } => {
                write!(self.out, "check {check}, {cond}")?;
                args.iter().try_for_each(|a| write!(self.out, ", {a}"))
            }
            Op::Print { parts } => {
                self.out.push_str("print");
                for (i, part) in parts.iter().enumerate() {
                    self.out.push_str(if i > 0 { ", " } else { " " });
                    match part {
                        PrintPart::Text(text) => write!(self.out, "{}", Quoted(text))?,
                        PrintPart::Scalar(v) => write!(self.out, "{v}")?,
                        PrintPart::Tile(t) => self.tile_ref(t)?,
                    }
                }
                Ok(())
            }
            Op::Break(label) => write!(self.out, "break {label}"),
            Op::Continue(label) => write!(self.out, "continue {label}"),
            Op::Leave(label) => write!(self.out, "leave {label}"),
            Op::For(_) | Op::If(_) | Op::While(_) | Op::Scope(_) => Ok(()),
        }
    }

    /// A constant. Floats are decimal where that is exact, and bits for NaN.
    fn literal(&mut self, value: Const) -> fmt::Result {
        let Const { ty, bits } = value;
        if bits & !scalar::mask(ty) != 0 {
            return write!(self.out, "bits {bits:#x}");
        }
        match scalar::float(ty) {
            None => self.out.write_str(&scalar::display(ty, bits)),
            Some(d) => match scalar::to_f32(d, bits) {
                x if x.is_nan() => write!(self.out, "bits {bits:#x}"),
                x => write!(self.out, "{x:?}"),
            },
        }
    }

    fn element(&mut self, element: Option<Value>) -> fmt::Result {
        element.map_or(Ok(()), |e| write!(self.out, "#{e}"))
    }

    pub(super) fn tile_ref(&mut self, t: &TileRef) -> fmt::Result {
        write!(self.out, "{}", t.tile)?;
        self.element(t.element)?;
        write!(self.out, "[{}x{} {}, {}", t.rows, t.cols, t.valid.0, t.valid.1)?;
        if let Some((row, col)) = t.origin {
            write!(self.out, " at {row}, {col}")?;
        }
        self.out.write_char(']')
    }

    fn view(&mut self, v: &ViewRef) -> fmt::Result {
        write!(self.out, "{}[{} + (", v.tensor, v.offset)?;
        self.list(&v.shape)?;
        self.out.push_str("):(");
        self.list(&v.strides)?;
        self.out.write_str(")]")
    }

    fn sync(&mut self, sync: &SyncOp) -> fmt::Result {
        write!(self.out, "sync {}", sync.word())?;
        if let Some(e) = sync.event() {
            write!(self.out, " {}", e.event)?;
            self.element(e.element)?;
        }
        match sync {
            SyncOp::Barrier(Some(pipe)) => write!(self.out, " {pipe}"),
            SyncOp::Barrier(None) => self.out.write_str(" all"),
            _ => sync.value().map_or(Ok(()), |v| write!(self.out, ", {v}")),
        }
    }

    fn inst(&mut self, inst: &Inst) -> fmt::Result {
        self.out.push_str(&inst.instr.get().name.to_ascii_lowercase());
        let a = &inst.attrs;
        let names = [
            a.cmp.map(|x| x.name()),
            a.round.map(|x| x.name()),
            a.saturate.map(|x| if x { "sat" } else { "nosat" }),
            a.reversed.then_some("rev"),
            a.oob.map(|x| x.name()),
            a.fold.map(|x| if x { "fold" } else { "nofold" }),
            a.atomic.map(|op| match op {
                ptoc_isa::AtomicOp::Max => "atomic_max",
                ptoc_isa::AtomicOp::Min => "atomic_min",
                _ => "atomic",
            }),
            a.stepwise.then_some("step"),
            a.relu.then_some("relu"),
            a.factors.map(|x| x.name()),
        ];
        for name in names.into_iter().flatten() {
            write!(self.out, ".{name}")?;
        }
        for (i, operand) in inst.operands.iter().enumerate() {
            self.out.push_str(if i > 0 { ", " } else { " " });
            match operand {
                Operand::Tile(t) => self.tile_ref(t)?,
                Operand::View(v) => self.view(v)?,
                Operand::Scalar(v) => write!(self.out, "{v}")?,
            }
        }
        for (i, t) in inst.scratch.iter().enumerate() {
            self.out.push_str(if i > 0 { ", " } else { " scratch " });
            self.tile_ref(t)?;
        }
        Ok(())
    }
}

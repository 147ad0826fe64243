//! Shapes of an instruction's operands: what the table's rule says of them, and checks where only the launch knows.

use super::Opnd;
use crate::tiles::Shape;
use crate::{ElabResult, Elaborator, ErrorReported};
use ptoc_diagnostics::{Diagnostic, Span, codes};
use ptoc_ir::tile::{CheckData, Value};
use ptoc_isa::{BinOp, CmpOp, FixpipeWindow, InstrId, Role, Sem, ShapeRule};

impl Elaborator<'_> {
    /// The valid shape of each operand; the destination's is set.
    pub(crate) fn shapes(&mut self, id: InstrId, ops: &[Opnd], span: Span) -> ElabResult<Vec<Option<Shape>>> {
        let instr = id.get();
        let one = self.idx(1);
        let mut shapes: Vec<Option<Shape>> = Vec::new();
        for (k, op) in ops.iter().enumerate() {
            let written = instr.operands[k].role == Role::Dst && matches!(op, Opnd::Tile(..));
            shapes.push(match op {
                Opnd::Tile(t, at) if !written => Some(self.valid_of(t, *at)?),
                Opnd::View(v, _) if !matches!(instr.sem, Sem::Gather | Sem::ScatterTo) => {
                    Some((v.modes[0].extent, v.modes[1].extent))
                }
                _ => None,
            });
        }
        let at = |k: usize| ops[k].span();
        let source = |k: usize, shapes: &[Option<Shape>]| shapes[k].ok_or(ErrorReported);
        let dst = match instr.shape {
            ShapeRule::Free => None,
            ShapeRule::Same => {
                let known: Vec<usize> = (0..ops.len()).filter(|k| shapes[*k].is_some()).collect();
                match known.first() {
                    Some(&first) => {
                        let s = source(first, &shapes)?;
                        for &k in &known[1..] {
                            let other = source(k, &shapes)?;
                            self.same_shape(s, other, span, Some((at(first), at(k))))?;
                            shapes[k] = Some(s);
                        }
                        Some(s)
                    }
                    // Only scalars: the destination keeps its shape.
                    None => match &ops[0] {
                        Opnd::Tile(t, at) => Some(self.valid_of(t, *at)?),
                        _ => None,
                    },
                }
            }
            ShapeRule::RowReduce => Some((source(ops.len() - 1, &shapes)?.0, one)),
            ShapeRule::ColReduce => Some((one, source(1, &shapes)?.1)),
            ShapeRule::RowExpand | ShapeRule::ColExpand => {
                let by_row = instr.shape == ShapeRule::RowExpand;
                let last = ops.len() - 1;
                let big = if last == 1 {
                    let Opnd::Tile(t, at) = &ops[0] else { return Err(ErrorReported) };
                    self.valid_of(t, *at)?
                } else {
                    source(1, &shapes)?
                };
                let small = source(last, &shapes)?;
                let spans = Some((at(last - 1), at(last)));
                if by_row {
                    self.same_length(big.0, small.0, "rows", span, spans)?;
                    self.line(id, last, ops, small, true)?;
                    shapes[last] = Some((big.0, one));
                } else {
                    self.same_length(big.1, small.1, "columns", span, spans)?;
                    self.line(id, last, ops, small, false)?;
                    shapes[last] = Some((one, big.1));
                }
                Some(big)
            }
            ShapeRule::Part => Some(self.part_shapes(id, ops, &mut shapes, span)?),
            ShapeRule::EvenColumns | ShapeRule::Halves => {
                let reads: Vec<usize> = instr.sources().collect();
                let s = source(reads[0], &shapes)?;
                for &k in &reads[1..] {
                    let other = source(k, &shapes)?;
                    self.same_shape(s, other, span, Some((at(reads[0]), at(k))))?;
                    shapes[k] = Some(s);
                }
                self.even(id, s.1, at(reads[0]))?;
                let two = self.idx(2);
                Some(if reads.len() == 1 { (s.0, self.bin(BinOp::Div, s.1, two, span)) } else { s })
            }
            ShapeRule::Transpose => source(1, &shapes)?.into_swapped(),
            ShapeRule::RowParams => {
                let big = source(1, &shapes)?;
                for k in 2..ops.len() {
                    let small = source(k, &shapes)?;
                    self.same_length(big.0, small.0, "rows", span, Some((at(1), at(k))))?;
                    self.line(id, k, ops, small, true)?;
                    shapes[k] = Some((big.0, one));
                }
                Some(big)
            }
            ShapeRule::Gemv => {
                let d = self.matmul_shapes(instr.sem, ops, &mut shapes, span)?;
                let left = if instr.sem == Sem::MatmulAcc { 2 } else { 1 };
                self.line(id, left, ops, (d.0, one), false)?;
                for k in [left, 1] {
                    if let Some(s) = shapes[k] {
                        shapes[k] = Some((one, s.1));
                    }
                }
                Some((one, d.1))
            }
            ShapeRule::Matmul => Some(self.matmul_shapes(instr.sem, ops, &mut shapes, span)?),
            ShapeRule::Own => match &ops[0] {
                Opnd::Tile(t, at) => {
                    let own = self.valid_of(t, *at)?;
                    if instr.sem == Sem::Scatter {
                        let (a, b) = (source(1, &shapes)?, source(2, &shapes)?);
                        self.same_shape(a, b, span, Some((ops[1].span(), ops[2].span())))?;
                        self.same_length(own.1, a.1, "columns", span, Some((*at, ops[1].span())))?;
                        shapes[1] = Some((a.0, own.1));
                        shapes[2] = shapes[1];
                    }
                    Some(own)
                }
                _ => None,
            },
            ShapeRule::Fixpipe => return self.fixpipe_shapes(id, ops, shapes, span),
            ShapeRule::Counted => {
                let (Opnd::Tile(d, d_at), Opnd::Tile(counts, counts_at)) = (&ops[0], &ops[3]) else {
                    return Err(ErrorReported);
                };
                let (own, a, k) = (self.valid_of(d, *d_at)?, source(1, &shapes)?, source(2, &shapes)?);
                self.same_length(own.0, a.0, "rows", span, Some((at(0), at(1))))?;
                self.same_length(own.0, k.0, "rows", span, Some((at(0), at(2))))?;
                self.line(id, 2, ops, k, true)?;
                self.write_valid(d, own, *d_at)?;
                self.write_valid(counts, (own.0, one), *counts_at)?;
                shapes = vec![Some(own), Some((own.0, a.1)), Some((own.0, one)), Some((own.0, one)), None];
                return Ok(shapes);
            }
            ShapeRule::Whole => match &ops[0] {
                Opnd::Tile(t, _) => Some((self.idx(i64::from(t.rows)), self.idx(i64::from(t.cols)))),
                _ => None,
            },
            // `Elab::sample` has its own way.
            ShapeRule::Sample => return Err(ErrorReported),
            ShapeRule::Gather => Some(source(ops.len() - 1, &shapes)?),
            ShapeRule::GatherRows => {
                let (table, idx) = (source(1, &shapes)?, source(2, &shapes)?);
                let count = self.row_of_indices(idx, &ops[2], at(2))?;
                shapes[2] = Some(if is_column(&ops[2]) { (count, one) } else { (one, count) });
                Some((count, table.1))
            }
            ShapeRule::ScatterRows => {
                let (table, a, idx) = (source(0, &shapes)?, source(1, &shapes)?, source(2, &shapes)?);
                let count = self.row_of_indices(idx, &ops[2], at(2))?;
                self.same_length(a.0, count, "rows and indices", span, Some((at(1), at(2))))?;
                self.same_length(table.1, a.1, "columns", span, Some((at(0), at(1))))?;
                shapes[0] = Some((table.0, a.1));
                shapes[2] = Some(if is_column(&ops[2]) { (a.0, one) } else { (one, a.0) });
                None
            }
            ShapeRule::Scattered => {
                let (a, idx) = (source(1, &shapes)?, source(2, &shapes)?);
                self.same_shape(a, idx, span, Some((at(1), at(2))))?;
                shapes[2] = Some(a);
                None
            }
        };
        if let Some(d) = dst {
            // Operands carry the very same values where the rule says equal, also where a check made them so.
            for k in instr.results() {
                let Opnd::Tile(t, at) = &ops[k] else { continue };
                self.write_valid(t, d, *at)?;
                shapes[k] = Some(d);
            }
            if instr.shape == ShapeRule::Same {
                for s in shapes.iter_mut().flatten() {
                    *s = d;
                }
            }
        }
        Ok(shapes)
    }

    /// Operand `k`, of this valid shape, is one column, or one row: known, refuted, or checked.
    fn line(&mut self, id: InstrId, k: usize, ops: &[Opnd], shape: Shape, column: bool) -> ElabResult<()> {
        let (n, what, which) = if column { (shape.1, "column", "narrow") } else { (shape.0, "row", "flat") };
        let (at, one) = (ops[k].span(), self.idx(1));
        let Some(found) = self.const_index(n).filter(|n| *n != 1) else {
            return self.same_length(n, one, &format!("{what}s of the {which} operand"), at, None);
        };
        let (row, name) = (id.get(), id.get().written_name());
        let message =
            format!("`{}` of {name} is a {what}, and this operand has {found} valid {what}s", row.operands[k].name);
        let mut d = Diagnostic::error(codes::SHAPE_MISMATCH, at, message).with_label(format!("{found} {what}s"));
        // PTO has it as rows of 32 bytes too.
        let block = ops[k].dtype().map_or(0, |d| 32 / d.size() as i64);
        if let Some(part) = ptoc_isa::left_out(name).find(|p| column && found == block && p.what.starts_with("a small"))
        {
            d = d.with_note(format!("of PTO's forms this is left out: {}", part.what)).with_help(part.why);
            return self.report(d);
        }
        let matrix = |i: &InstrId| i.get().sem == row.sem && i.get().shape == ShapeRule::Matmul;
        let help = match (column, InstrId::all().find(matrix)) {
            (_, Some(other)) => format!("{} multiplies more rows", other.get().name),
            (true, _) => {
                "take one column out of it, by TEXTRACT into a tile of r x 1, or load one: `Vec(col(s))`".to_owned()
            }
            (false, _) => "one row of a tile is `t[0, _]`, the first".to_owned(),
        };
        self.report(d.with_help(help))
    }

    /// How many indices of rows there are: they stand in a row, or in a column.
    fn row_of_indices(&mut self, idx: Shape, op: &Opnd, at: Span) -> ElabResult<Value> {
        let one = self.idx(1);
        let (across, along, what) = match is_column(op) {
            true => (idx.1, idx.0, "columns of the indices"),
            false => (idx.0, idx.1, "rows of the indices"),
        };
        self.same_length(across, one, what, at, None)?;
        Ok(along)
    }

    /// Of what leaves the accumulator: the window's place is for the meaning to demand.
    fn fixpipe_shapes(
        &mut self,
        id: InstrId,
        ops: &[Opnd],
        mut shapes: Vec<Option<Shape>>,
        span: Span,
    ) -> ElabResult<Vec<Option<Shape>>> {
        let Sem::Fixpipe(f) = id.get().sem else { return Err(ErrorReported) };
        let a = shapes[1].ok_or(ErrorReported)?;
        let d = match (&ops[0], f.window) {
            (Opnd::Tile(t, at), FixpipeWindow::Whole) => {
                self.write_valid(t, a, *at)?;
                a
            }
            (Opnd::Tile(t, at), _) => {
                let own = self.valid_of(t, *at)?;
                self.write_valid(t, own, *at)?;
                own
            }
            _ => {
                let view = shapes[0].ok_or(ErrorReported)?;
                self.same_shape(view, a, span, Some((ops[0].span(), ops[1].span())))?;
                a
            }
        };
        shapes[0] = Some(d);
        if id.get().updates {
            *shapes.last_mut().ok_or(ErrorReported)? = Some(d);
        }
        if f.by_column(id.get()) {
            let cols = if f.window == FixpipeWindow::OfSource { d.1 } else { a.1 };
            let (scales, one, at) = (shapes[2].ok_or(ErrorReported)?, self.idx(1), ops[2].span());
            self.same_length(scales.1, cols, "columns", span, Some((at, ops[1].span())))?;
            self.line(id, 2, ops, scales, false)?;
            shapes[2] = Some((one, cols));
        }
        Ok(shapes)
    }

    /// The shape of the larger source of a partial operation, and that the other one lies within it. Which one is
    /// larger is known when it is compiled; where it is not, the first one is meant, and the launch checks it.
    fn part_shapes(
        &mut self,
        id: InstrId,
        ops: &[Opnd],
        shapes: &mut [Option<Shape>],
        span: Span,
    ) -> ElabResult<Shape> {
        let at = |k: usize| ops[k].span();
        let (a, b) = (shapes[1].ok_or(ErrorReported)?, shapes[2].ok_or(ErrorReported)?);
        if ops.len() == 6 {
            for (value, index) in [(1, 4), (2, 5)] {
                let (v, i) = (shapes[value].ok_or(ErrorReported)?, shapes[index].ok_or(ErrorReported)?);
                self.same_shape(v, i, span, Some((at(value), at(index))))?;
                shapes[index] = Some(v);
            }
        }
        let certain = |e: &Self, x: Shape, y: Shape| e.facts.le_certain(x.0, y.0, 0) && e.facts.le_certain(x.1, y.1, 0);
        if !certain(self, b, a) && certain(self, a, b) {
            return Ok(b);
        }
        for (x, y, what) in [(b.0, a.0, "rows"), (b.1, a.1, "columns")] {
            if let (Some(n), Some(most)) = (self.const_index(x), self.const_index(y))
                && n > most
            {
                let message =
                    format!("the second source has {n} {what}, the first one {most}: one must lie within the other");
                let name = id.get().operands[2].name;
                let d = Diagnostic::error(codes::PART_OUTSIDE, at(2), message)
                    .with_note(format!("{} asks for it on {}", id.get().written_name(), self.having(id)))
                    .with_help(format!("give `{name}` {most} valid {what}, or fewer"));
                return self.report(d);
            }
            let message =
                format!("the second source has {{0}} {what}, the first one {{1}}: one must lie within the other");
            self.require_le(x, y, codes::PART_OUTSIDE, message, at(2))?;
        }
        Ok(a)
    }

    /// `n` columns are an even number: known, refuted, or checked.
    fn even(&mut self, id: InstrId, n: ptoc_ir::tile::Value, at: Span) -> ElabResult<()> {
        if self.facts.multiple_certain(n, 2) {
            return Ok(());
        }
        if let Some(n) = self.const_index(n).filter(|n| n % 2 != 0) {
            let message = format!("{n} columns are no even number: pairs of columns are taken apart or put together");
            let d = Diagnostic::error(codes::ODD_COLUMNS, at, message)
                .with_note(format!("{} asks for it on {}", id.get().written_name(), self.having(id)))
                .with_help(format!("the nearest to {n} are {} and {}", n - 1, n + 1));
            return self.report(d);
        }
        let (zero, two) = (self.idx(0), self.idx(2));
        let rest = self.bin(BinOp::Rem, n, two, at);
        let cond = self.compare(CmpOp::Eq, rest, zero, at);
        let message = "{0} columns are no even number: pairs of columns are taken apart or put together".to_string();
        self.check(cond, CheckData { code: codes::ODD_COLUMNS, message, span: at, help: None }, vec![n], at)
    }

    fn matmul_shapes(&mut self, sem: Sem, ops: &[Opnd], shapes: &mut [Option<Shape>], span: Span) -> ElabResult<Shape> {
        let (a, b) = if sem == Sem::MatmulAcc { (2, 3) } else { (1, 2) };
        let (sa, sb) = (shapes[a].ok_or(ErrorReported)?, shapes[b].ok_or(ErrorReported)?);
        let at = |k: usize| ops[k].span();
        if let (Some(x), Some(y)) = (self.const_index(sa.1), self.const_index(sb.0))
            && x != y
        {
            let message =
                format!("a product takes m x k and k x n, and here k is {x} on the left and {y} on the right");
            let d = Diagnostic::error(codes::SHAPE_MISMATCH, at(b), message)
                .with_label(format!("{y} valid rows"))
                .with_secondary(at(a), format!("{x} valid columns"));
            return self.report(d.with_help(
                "take as many columns on the left as rows on the right: both are cut by one block of k, `a.tile(i, k)` \
                 and `b.tile(k, j)`",
            ));
        }
        self.same_length(
            sa.1,
            sb.0,
            "depths (columns of the left, rows of the right operand)",
            span,
            Some((at(a), at(b))),
        )?;
        shapes[b] = Some((sa.1, sb.1));
        let d = (sa.0, sb.1);
        if sem == Sem::MatmulAcc {
            let c = shapes[1].ok_or(ErrorReported)?;
            self.of_result("start", c, d, at(1))?;
            self.same_shape(c, d, span, Some((at(1), at(a))))?;
            shapes[1] = Some(d);
        }
        if sem == Sem::MatmulBias {
            let (bias, one) = (shapes[3].ok_or(ErrorReported)?, self.idx(1));
            self.of_result("bias", bias, (one, d.1), at(3))?;
            self.same_length(bias.1, d.1, "columns", span, Some((at(3), at(b))))?;
            self.same_length(bias.0, one, "rows of the bias", at(3), None)?;
            shapes[3] = Some((one, d.1));
        }
        let (ta, tb, td) = (ops[a].tile(), ops[b].tile(), ops[0].tile());
        let (Some(ta), Some(tb), Some(td)) = (ta, tb, td) else { return Err(ErrorReported) };
        let pairs = [
            (ta.ty.cols, tb.ty.rows, "depth", at(a), at(b)),
            (td.ty.rows, ta.ty.rows, "rows", at(0), at(a)),
            (td.ty.cols, tb.ty.cols, "columns", at(0), at(b)),
        ];
        for (x, y, what, p, q) in pairs {
            if x != y {
                let d = Diagnostic::error(
                    codes::CAPACITY_MISMATCH,
                    q,
                    format!("capacities of a matrix product must agree: {what} {x} and {y}"),
                )
                .with_label(format!("{what} {y}"))
                .with_secondary(p, format!("{what} {x}"))
                .with_note("PTO's TMATMUL wants equal capacities; valid shapes may be smaller");
                let help = match what {
                    "depth" => format!(
                        "declare both with the larger depth, {}, and give the other one a valid shape: \
                        `valid = (.., ..)`",
                        x.max(y)
                    ),
                    _ => format!("declare the accumulator `Acc<{}, {}, {}>`", td.ty.dtype, ta.ty.rows, tb.ty.cols),
                };
                return self.report(d.with_help(help));
            }
        }
        Ok(d)
    }

    /// What a product starts from has this shape; known not to be so, it is told with the shape that it should have.
    fn of_result(&mut self, what: &str, found: Shape, wanted: Shape, at: Span) -> ElabResult<()> {
        let known = |e: &Self, s: Shape| Some((e.const_index(s.0)?, e.const_index(s.1)?));
        let (Some(x), Some(y)) = (known(self, found), known(self, wanted)) else { return Ok(()) };
        if x == y {
            return Ok(());
        }
        let message =
            format!("the {what} of a product of this shape is {} x {}, and this one {} x {}", y.0, y.1, x.0, x.1);
        let d = Diagnostic::error(codes::SHAPE_MISMATCH, at, message).with_label(format!("{} x {}", x.0, x.1));
        self.report(d.with_help(format!("give it the valid shape {} x {}", y.0, y.1)))
    }
}

trait Swapped {
    fn into_swapped(self) -> Option<Shape>;
}

impl Swapped for Shape {
    fn into_swapped(self) -> Option<Shape> {
        Some((self.1, self.0))
    }
}

/// Whether it is a tile of one column, and not of one element.
fn is_column(op: &Opnd) -> bool {
    op.tile().is_some_and(|t| t.cols == 1 && t.rows > 1)
}

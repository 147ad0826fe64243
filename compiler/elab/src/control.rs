//! Control flow, and what happens to valid shapes where paths meet.

use super::{ElabResult, Elaborator, ErrorReported, Valid};
use ptoc_diagnostics::{Diagnostic, Span, codes};
use ptoc_ir::tile::{For, If, Label, Op, Tile, Ty, Value, While};
use ptoc_isa::{BinOp, CmpOp};
use ptoc_syntax::ast::*;
use ptoc_values::{Binding, BlockRange, TileBlock as BlockVal, TilesDomain, Val};
use rustc_hash::FxHashMap;

/// Copies of the tiles of a pipeline: more are no use.
const MOST_STAGES: u32 = 64;

pub(crate) type Shapes = FxHashMap<Tile, Valid>;

impl Elaborator<'_> {
    /// A block of statements in a scope of its own. Statements after an error are still checked.
    pub(crate) fn block(&mut self, b: &Block) -> ElabResult<()> {
        self.env.push();
        let rings = self.rings_begin();
        let mut failed = false;
        for s in &b.stmts {
            failed |= self.stmt(s).is_err();
        }
        if let Some(e) = &b.tail {
            failed |= match self.expr(e) {
                Ok(Val::Unit) => false,
                Ok(v) => {
                    let d = Diagnostic::error(
                        codes::UNUSED_VALUE,
                        e.span,
                        format!("this block gives {}, and nothing takes it", v.describe()),
                    )
                    .with_help("end it with `;`, or assign it");
                    self.report::<()>(d).is_err()
                }
                Err(_) => true,
            };
        }
        self.rings_end(rings, !failed);
        self.env.pop();
        if failed { Err(ErrorReported) } else { Ok(()) }
    }

    /// Two paths meet: what they disagree on is no longer known.
    pub(crate) fn merge_valid(&mut self, other: Shapes, before: &Shapes, span: Span) {
        for t in before.keys() {
            let (Some(a), Some(b)) = (self.valid.get(t).copied(), other.get(t).copied()) else { continue };
            if a == Valid::Poison || b == Valid::Poison {
                self.valid.insert(*t, Valid::Poison);
            } else if a != b {
                self.valid.insert(*t, Valid::Unknown(span));
            }
        }
        // Tiles declared on one path are out of scope.
        self.valid.retain(|t, _| before.contains_key(t));
    }

    /// `if`
    pub(crate) fn if_stmt(&mut self, i: &IfStmt, span: Span) -> ElabResult<()> {
        let cond = self.expr(&i.cond)?;
        let cond = match cond {
            Val::Bool(true) => return self.block(&i.then),
            Val::Bool(false) => return self.else_stmt(i, span),
            Val::Mask(..) => {
                let d = Diagnostic::error(
                    codes::CONDITION_NOT_BOOL,
                    i.cond.span,
                    "this condition differs from element to element",
                )
                .with_label("a mask, one truth value for each element")
                .with_help("select values: `x = if mask { a } else { b };`");
                return self.report(d);
            }
            Val::Poison => return Err(ErrorReported),
            c => self.bool_of(&c, i.cond.span)?,
        };
        self.behind_grid(span)?;
        let before = self.valid.clone();
        let (then, a) = self.region(|s| {
            s.facts.learn(cond, true);
            s.block(&i.then)
        });
        let after_then = std::mem::replace(&mut self.valid, before.clone());
        let (els, b) = self.region(|s| {
            s.facts.learn(cond, false);
            s.else_stmt(i, span)
        });
        self.merge_valid(after_then, &before, span);
        let branches = If { cond, then, els };
        let on = branches.holds_behind();
        self.emit(Op::If(Box::new(branches)), span);
        // What follows is on the path that goes on.
        if let Some(holds) = on {
            self.facts.learn(cond, holds);
        }
        a.and(b)
    }

    fn else_stmt(&mut self, i: &IfStmt, _: Span) -> ElabResult<()> {
        match i.els.as_deref() {
            Some(Else::Block(b)) => self.block(b),
            Some(Else::If(i, s)) => self.if_stmt(i, *s),
            None => Ok(()),
        }
    }

    /// Number `i` of `tiles(n, size)`.
    pub fn block_at(&mut self, t: &TilesDomain, i: Value, span: Span) -> Val {
        let size = i64::from(t.size);
        let by = self.idx(size);
        let start = self.bin(BinOp::Mul, i, by, span);
        // No block of one is smaller: i < count.
        let whole = size == 1 || self.const_index(t.n).is_some_and(|n| n % size == 0);
        let len = if whole {
            by
        } else {
            let rest = self.bin(BinOp::Sub, t.n, start, span);
            self.bin(BinOp::Min, by, rest, span)
        };
        let end = self.bin(BinOp::Add, start, len, span);
        // 0 <= i < count, so the block begins inside the domain and is not empty, and nothing here wraps.
        self.facts.assume_exact(start);
        self.facts.assume_exact(end);
        self.facts.ge_const(start, 0);
        if self.const_index(start).is_none() {
            self.facts.le(start, t.n, -1);
        }
        self.facts.ge_const(len, 1);
        self.facts.le_const(len, size);
        if self.const_index(end).is_none() {
            self.facts.le(end, t.n, 0);
            self.facts.le(start, end, -1);
        }
        self.facts.block((end, t.n), (i, t.count));
        let zero = self.idx(0);
        let first = self.compare(CmpOp::Eq, i, zero, span);
        Val::Block(
            BlockVal { cap: t.size, len, place: Some(BlockRange { start, end, index: i, first, domain: t.n }) }.into(),
        )
    }

    /// `for` and `pipeline`.
    pub(crate) fn for_stmt(
        &mut self,
        var: &Ident,
        range: &Expr,
        body: &Block,
        stages: u32,
        span: Span,
    ) -> ElabResult<()> {
        match self.range(range)? {
            Val::List(items) => {
                if stages > 1 {
                    return self.error(codes::TYPE_MISMATCH, range.span, "a pipeline runs over a range or blocks");
                }
                self.unrolled(var, items, body, span)
            }
            Val::Range(lo, hi) => {
                self.outside_prologue(span)?;
                self.exact(lo, range.span)?;
                self.exact(hi, range.span)?;
                self.counted(var, lo, hi, body, stages, span, |s, i| {
                    s.note_loop(i, lo, hi, range.span);
                    Val::Scalar(i)
                })
            }
            Val::Tiles(t) => {
                let (lo, hi) = (self.idx(0), t.count);
                self.counted(var, lo, hi, body, stages, span, |s, i| {
                    let block = s.block_at(&t, i, span);
                    s.name_block(&var.name, &block);
                    block
                })
            }
            Val::Block(b) => match &b.place {
                Some(p) => self.counted(var, p.start, p.end, body, stages, span, |_, i| Val::Scalar(i)),
                None => {
                    let lo = self.idx(0);
                    self.counted(var, lo, b.len, body, stages, span, |_, i| Val::Scalar(i))
                }
            },
            Val::TileArray(a) => {
                let (lo, hi) = (self.idx(0), self.idx(i64::from(a.count)));
                self.counted(var, lo, hi, body, stages, span, |s, i| Val::Tile(s.element_of(&a, Some(i))))
            }
            other => self.not_looped(&other, range),
        }
    }

    /// What a loop cannot run over.
    pub fn not_looped<T>(&mut self, v: &Val, range: &Expr) -> ElabResult<T> {
        let message = format!("cannot loop over {}", v.describe());
        let d = Diagnostic::error(codes::TYPE_MISMATCH, range.span, message)
            .with_label(v.describe())
            .with_help("loop over `0..n`, `tiles(n, size)`, a block, a list, or an array of tiles");
        self.report(d)
    }

    /// What a loop runs over.
    pub fn range(&mut self, e: &Expr) -> ElabResult<Val> {
        match self.expr(e)? {
            Val::Poison => Err(ErrorReported),
            v @ (Val::Int(_) | Val::Scalar(_)) => {
                let start = Span::new(e.span.file, e.span.start, e.span.start);
                let d = Diagnostic::error(codes::TYPE_MISMATCH, e.span, format!("cannot loop over {}", v.describe()))
                    .with_label("a number, no range")
                    .with_fix("write a range", start, "0..");
                self.report(d)
            }
            v => Ok(v),
        }
    }

    fn unrolled(&mut self, var: &Ident, items: Vec<Val>, body: &Block, span: Span) -> ElabResult<()> {
        if contains_jump(body) {
            let d = Diagnostic::error(
                codes::TYPE_MISMATCH,
                span,
                "a loop over a list is unrolled, so it has no `break` or `continue`",
            )
            .with_help("loop over a range");
            return self.report(d);
        }
        let mut failed = false;
        for v in items {
            self.step(span)?;
            self.env.push();
            self.env.define(var.name.clone(), Binding::Let(v), var.span);
            self.begin_unrolled();
            failed |= self.block(body).is_err();
            self.end_unrolled();
            self.env.pop();
            if failed {
                return Err(ErrorReported);
            }
        }
        Ok(())
    }

    #[allow(clippy::too_many_arguments, reason = "a loop and its parts")]
    fn counted(
        &mut self,
        var: &Ident,
        lo: Value,
        hi: Value,
        body: &Block,
        stages: u32,
        span: Span,
        bind: impl FnOnce(&mut Self, Value) -> Val,
    ) -> ElabResult<()> {
        self.outside_prologue(span)?;
        let label = self.b.label(span);
        let index = self.b.new_value(Ty::Index, Some(var.name.clone()), var.span);
        let outer = self.stages;
        if stages > 1 {
            self.stages = stages;
        }
        let (body, r) = self.loop_body(
            label,
            |s| {
                s.b.define_here(index);
                // Inside the body only: the loop may not run at all.
                if let Some(c) = s.facts.min_of(lo) {
                    s.facts.ge_const(index, c);
                }
                s.facts.le(lo, index, 0);
                s.facts.counts(index, hi);
                let v = bind(s, index);
                s.env.push();
                s.env.define(var.name.clone(), Binding::Let(v), var.span);
                let r = s.block(body);
                s.env.pop();
                r
            },
            span,
        );
        self.stages = outer;
        self.emit(Op::For(Box::new(For { label, index, lo, hi, stages, body })), span);
        r
    }

    /// The body of a loop: valid shapes at its end must be those that its reads assumed at its beginning.
    fn loop_body(
        &mut self,
        label: Label,
        f: impl FnOnce(&mut Self) -> ElabResult<()>,
        span: Span,
    ) -> (ptoc_ir::tile::Region, ElabResult<()>) {
        let before = self.valid.clone();
        let outer_reads = std::mem::take(&mut self.valid_reads);
        self.loops.push(label);
        let (region, mut r) = self.region(f);
        self.loops.pop();
        self.merge_exits(label, &before, span);
        let reads = std::mem::replace(&mut self.valid_reads, outer_reads);
        for (t, was) in &before {
            let now = self.valid.get(t).copied();
            if now == Some(*was) || now == Some(Valid::Poison) {
                continue;
            }
            if let Some((_, _, at)) = reads.iter().find(|(x, v, _)| x == t && v == was) {
                let name = self.b.kernel().tiles[*t].name.clone();
                let d = Diagnostic::error(
                    codes::VALID_SHAPE_UNKNOWN,
                    *at,
                    format!("the valid shape of `{name}` changes from one iteration to the next"),
                )
                .with_label("read here with the shape from before the loop")
                .with_secondary(span, "the loop leaves it with another")
                .with_help("load it at the beginning of each iteration, or declare it inside the loop");
                r = self.report(d);
            }
            self.valid.insert(*t, Valid::Unknown(span));
        }
        self.valid.retain(|t, _| before.contains_key(t));
        self.valid_reads.extend(reads.into_iter().filter(|(t, ..)| before.contains_key(t)));
        (region, r)
    }

    /// `while`
    pub(crate) fn while_stmt(&mut self, cond: &Expr, body: &Block, span: Span) -> ElabResult<()> {
        self.outside_prologue(span)?;
        let label = self.b.label(span);
        let mut made = None;
        let (region, r) = self.loop_body(
            label,
            |s| {
                let c = s.expr(cond)?;
                let c = s.bool_of(&c, cond.span)?;
                made = Some((s.b.take_region(), c));
                s.block(body)
            },
            span,
        );
        let Some((head, cond)) = made else { return Err(ErrorReported) };
        self.emit(Op::While(Box::new(While { label, head, cond, body: region })), span);
        r
    }

    /// `break`, `continue`, `return`: the shapes here are among those with which the loop or function is left.
    pub(crate) fn exits_to(&mut self, label: Label) {
        let here = self.valid.clone();
        self.exits.push((label, here));
    }

    /// Merges the shapes of all early exits to `label` into the current ones.
    pub(crate) fn merge_exits(&mut self, label: Label, before: &Shapes, span: Span) {
        let (mine, others) = std::mem::take(&mut self.exits).into_iter().partition(|(l, _)| *l == label);
        self.exits = others;
        let mine: Vec<(Label, Shapes)> = mine;
        for (_, shapes) in mine {
            self.merge_valid(shapes, before, span);
        }
    }

    /// `pipeline(stages = n)`
    pub(crate) fn pipeline_stages(&mut self, args: &[Arg], span: Span) -> ElabResult<u32> {
        let mut stages = 1;
        for a in args {
            match &a.name {
                Some(n) if n.name == "stages" => {
                    let v = self.expr(&a.value)?;
                    let wanted = self.static_int(&v, a.value.span, "the number of stages")?;
                    stages = u32::try_from(wanted).unwrap_or(0);
                    if !(1..=MOST_STAGES).contains(&stages) {
                        let message = format!("the number of stages is {wanted}, and must be 1 to {MOST_STAGES}");
                        let d = Diagnostic::error(codes::BAD_EXTENT, a.value.span, message)
                            .with_label("copies of each tile of the loop");
                        return self
                            .report(d.with_help("2 or 3 are usual: one iteration loads while another one computes"));
                    }
                }
                _ => {
                    let d = Diagnostic::error(
                        codes::WRONG_ARGUMENTS,
                        a.name.as_ref().map_or(a.value.span, |n| n.span),
                        "`pipeline` takes `stages = n`",
                    )
                    .with_label("not understood")
                    .with_help("for example `pipeline(stages = 2) for k in tiles(K, BK) { .. }`");
                    return self.report(d);
                }
            }
        }
        if args.is_empty() {
            return self.error(codes::WRONG_ARGUMENTS, span, "`pipeline` needs `stages = n`");
        }
        Ok(stages)
    }
}

fn contains_jump(b: &Block) -> bool {
    fn in_if(i: &IfStmt) -> bool {
        contains_jump(&i.then)
            || match i.els.as_deref() {
                Some(Else::Block(b)) => contains_jump(b),
                Some(Else::If(i, _)) => in_if(i),
                None => false,
            }
    }
    b.stmts.iter().any(|s| match &s.kind {
        StmtKind::Break | StmtKind::Continue => true,
        StmtKind::If(i) => in_if(i),
        _ => false,
    })
}

//! The body of a kernel and its `grid`.

use super::{ElabResult, Elaborator, ErrorReported};
use ptoc_diagnostics::{Diagnostic, Span, codes};
use ptoc_isa::BinOp;
use ptoc_syntax::ast::*;
use ptoc_values::{Binding, Val};

impl Elaborator<'_> {
    /// Statements of a kernel: those before `grid` belong to the launch, the rest to a block.
    pub fn kernel_body(&mut self, body: &Block) -> ElabResult<()> {
        let grid = body.stmts.iter().position(|s| matches!(s.kind, StmtKind::Grid { .. }));
        self.env.push();
        let rings = self.rings_begin();
        let mut failed = false;
        if grid.is_none() {
            self.b.begin_body();
            self.in_prologue = false;
        }
        for (k, s) in body.stmts.iter().enumerate() {
            failed |= match &s.kind {
                StmtKind::Grid { vars, clauses } if Some(k) == grid => {
                    let r = self.grid(vars, clauses, s.span);
                    self.b.begin_body();
                    self.in_prologue = false;
                    if r.is_err() {
                        for (v, _) in vars {
                            self.env.define(v.name.clone(), Binding::Let(Val::Poison), v.span);
                        }
                    }
                    r.is_err()
                }
                StmtKind::Return(None) => {
                    let d = Diagnostic::error(codes::BAD_RETURN, s.span, "`return` in a kernel's body")
                        .with_help("use `if` around the rest");
                    self.report::<()>(d).is_err()
                }
                _ => self.stmt(s).is_err(),
            };
        }
        if let Some(e) = &body.tail {
            failed |= match self.expr(e) {
                Ok(Val::Unit) => false,
                Ok(v) => self
                    .error::<()>(
                        codes::BAD_RETURN,
                        e.span,
                        format!("a kernel gives no value, this is {}", v.describe()),
                    )
                    .is_err(),
                Err(_) => true,
            };
        }
        self.rings_end(rings, !failed);
        self.env.pop();
        if failed { Err(ErrorReported) } else { Ok(()) }
    }

    fn grid(&mut self, vars: &[(Ident, Expr)], clauses: &[GridClause], span: Span) -> ElabResult<()> {
        self.grid_done = Some(span);
        let mut ranges = Vec::new();
        let mut failed = false;
        for (name, e) in vars {
            let v = match self.expr(e) {
                Ok(v) => v,
                Err(_) => {
                    failed = true;
                    continue;
                }
            };
            let (extent, v) = match v {
                Val::Tiles(t) => (t.count, Val::Tiles(t)),
                Val::Range(lo, hi) => {
                    let n = self.bin(BinOp::Sub, hi, lo, e.span);
                    self.exact(n, e.span)?;
                    (n, Val::Range(lo, hi))
                }
                Val::Poison => return Err(ErrorReported),
                Val::Int(_) | Val::Scalar(_) => {
                    // Which of the two is meant says how the body uses it.
                    let d =
                        Diagnostic::error(codes::GRID_MISUSE, e.span, format!("`{}` runs over a number", name.name))
                            .with_label("no range")
                            .with_help("write `tiles(n, size)` for blocks, which windows take: `a.tile(i)`")
                            .with_help("or `0..n` for single indices");
                    return self.report(d);
                }
                other => {
                    let d = Diagnostic::error(
                        codes::GRID_MISUSE,
                        e.span,
                        format!("`{}` runs over {}", name.name, other.describe()),
                    )
                    .with_help("a grid runs over `tiles(n, size)` or `0..n`");
                    return self.report(d);
                }
            };
            ranges.push((name, extent, v, e.span));
        }
        if failed {
            return Err(ErrorReported);
        }
        self.b.begin_body();
        for (name, extent, v, range) in ranges {
            let i = self.b.grid_dim(name.name.clone(), extent, name.span);
            self.facts.ge_const(i, 0);
            self.facts.counts(i, extent);
            let v = match v {
                Val::Tiles(t) => self.block_at(&t, i, name.span),
                Val::Range(lo, hi) => {
                    let at = self.bin(BinOp::Add, lo, i, name.span);
                    if at != i {
                        self.facts.assume_exact(at);
                        self.facts.le(lo, at, 0);
                    }
                    if self.const_index(at).is_none() {
                        self.facts.counts(at, hi);
                    }
                    self.note_loop(at, lo, hi, range);
                    Val::Scalar(at)
                }
                _ => return Err(ErrorReported),
            };
            self.name_block(&name.name, &v);
            self.env.define(name.name.clone(), Binding::Let(v), name.span);
        }
        self.clauses(clauses, vars)
    }
}

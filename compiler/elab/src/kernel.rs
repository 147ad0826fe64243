//! The body of a kernel and its `grid`.

use super::{ElabResult, Elaborator, ErrorReported};
use ptoc_abi::Raster;
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

    /// What stands behind the variables of a grid.
    fn clauses(&mut self, clauses: &[GridClause], vars: &[(Ident, Expr)]) -> ElabResult<()> {
        for c in clauses {
            match c {
                GridClause::On(e) => {
                    self.grid_place(e)?;
                }
                GridClause::Option(n, args) if n.name == "raster" => self.raster(n.span, args, vars)?,
                GridClause::Option(n, _) => {
                    let d =
                        Diagnostic::error(codes::BAD_ATTRIBUTE, n.span, format!("`grid` has no clause `{}`", n.name))
                            .with_note("it has `raster(along = .., swizzle = ..)` and `on ..`");
                    return self.report(d);
                }
            }
        }
        Ok(())
    }

    /// `raster(along = N, swizzle = 4)`
    fn raster(&mut self, span: Span, args: &[Arg], vars: &[(Ident, Expr)]) -> ElabResult<()> {
        if self.b.kernel().raster.is_some() {
            return self.error(codes::BAD_ATTRIBUTE, span, "`raster` is given twice");
        }
        if self.target.has_units() {
            let message =
                format!("units in the memory of {} run all at once: there is no order of blocks", self.target.name);
            let d = Diagnostic::error(codes::BAD_ATTRIBUTE, span, message)
                .with_label("an order in time")
                .with_help("`on ..` says which unit runs which block");
            return self.report(d);
        }
        let mut raster = Raster { along: vars.len().saturating_sub(1) as u32, swizzle: 1 };
        for a in args {
            match a.name.as_ref().map(|n| n.name.as_str()) {
                Some("along") => raster.along = self.along(&a.value, vars)?,
                Some("swizzle") => {
                    let v = self.expr(&a.value)?;
                    raster.swizzle = self.static_extent(&v, a.value.span, "the swizzle")?;
                    if !raster.swizzle.is_power_of_two() {
                        let below = 1 << raster.swizzle.ilog2();
                        let message = format!("{} blocks abreast are no power of two", raster.swizzle);
                        let d = Diagnostic::error(codes::BAD_EXTENT, a.value.span, message)
                            .with_help(format!("take {below} or {}: the last band is narrower by itself", 2 * below));
                        return self.report(d);
                    }
                }
                _ => {
                    let d = Diagnostic::error(
                        codes::BAD_ATTRIBUTE,
                        a.name.as_ref().map_or(a.value.span, |n| n.span),
                        "`raster` takes `along = ..` and `swizzle = n`",
                    )
                    .with_help(format!(
                        "for example `raster(along = {}, swizzle = 4)`",
                        vars.first().map_or("N", |v| v.0.name.as_str())
                    ));
                    return self.report(d);
                }
            }
        }
        self.b.kernel_mut().raster = Some(raster);
        Ok(())
    }

    /// The dimension of the grid that `along` names: by its variable, or by what it runs over.
    fn along(&mut self, e: &Expr, vars: &[(Ident, Expr)]) -> ElabResult<u32> {
        self.expr(e)?;
        let name = |e: &Expr| if let ExprKind::Name(n) = &*e.kind { Some(n.clone()) } else { None };
        let over = |e: &Expr| match &*e.kind {
            ExprKind::Call(_, args) => args.first().and_then(|a| name(&a.value)),
            ExprKind::Range(_, hi) => name(hi),
            _ => None,
        };
        let wanted = name(e);
        let by_name = vars.iter().position(|v| wanted.as_ref() == Some(&v.0.name));
        let mut by_extent = vars.iter().enumerate().filter(|(_, v)| wanted.is_some() && over(&v.1) == wanted);
        let by_extent = by_extent.next().filter(|_| by_extent.next().is_none()).map(|(d, _)| d);
        if let Some(dim) = by_name.or(by_extent) {
            return Ok(dim as u32);
        }
        let names: Vec<String> = vars.iter().map(|v| format!("`{}`", v.0.name)).collect();
        let d = Diagnostic::error(codes::BAD_ATTRIBUTE, e.span, "`along` names no single dimension of the grid")
            .with_label("along which?")
            .with_help(format!("name a variable of the grid: {}", names.join(" or ")));
        self.report(d)
    }
}

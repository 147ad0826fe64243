//! What stands behind the variables of a `grid`: in which order blocks start, and which of them run together.

use super::{ElabResult, Elaborator};
use ptoc_abi::Raster;
use ptoc_diagnostics::{Diagnostic, Span, codes};
use ptoc_syntax::ast::*;

impl Elaborator<'_> {
    /// What stands behind the variables of a grid.
    pub(crate) fn clauses(&mut self, clauses: &[GridClause], vars: &[(Ident, Expr)]) -> ElabResult<()> {
        for c in clauses {
            match c {
                GridClause::On(e) => {
                    self.grid_place(e)?;
                }
                GridClause::Option(n, args) if n.name == "raster" => self.raster(n.span, args, vars)?,
                GridClause::Option(n, args) if n.name == "cluster" => self.cluster(n.span, args, vars)?,
                GridClause::Option(n, _) => {
                    let d =
                        Diagnostic::error(codes::BAD_ATTRIBUTE, n.span, format!("`grid` has no clause `{}`", n.name))
                            .with_note("it has `raster(along = .., swizzle = ..)`, `cluster(.. = 2)` and `on ..`");
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
                    let why = ": the last band is narrower by itself";
                    self.power_of_two(raster.swizzle, a.value.span, "blocks abreast", why)?;
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

    /// `cluster(m = 2, n = 1)`: so many neighbours along each dimension share what they load alike.
    fn cluster(&mut self, span: Span, args: &[Arg], vars: &[(Ident, Expr)]) -> ElabResult<()> {
        if !self.b.kernel().cluster.is_empty() {
            return self.error(codes::BAD_ATTRIBUTE, span, "`cluster` is given twice");
        }
        let mut blocks = vec![None; vars.len()];
        for a in args {
            let Some(name) = &a.name else {
                let message = "`cluster` takes numbers of blocks along dimensions of the grid";
                let d = Diagnostic::error(codes::BAD_ATTRIBUTE, a.value.span, message);
                let first = vars.first().map_or("m", |v| v.0.name.as_str());
                return self.report(d.with_help(format!("for example `cluster({first} = 2)`")));
            };
            self.name(&name.name, name.span)?;
            let dim = self.dimension(Some(&name.name), name.span, "cluster", vars)? as usize;
            if blocks[dim].is_some() {
                let message = format!("`cluster` counts blocks along `{}` twice", vars[dim].0.name);
                return self.error(codes::BAD_ATTRIBUTE, name.span, message);
            }
            let v = self.expr(&a.value)?;
            let n = self.static_extent(&v, a.value.span, "a cluster's number of blocks")?;
            self.power_of_two(n, a.value.span, "blocks of a cluster", "")?;
            blocks[dim] = Some(n);
        }
        let blocks: Vec<u32> = blocks.into_iter().map(|n| n.unwrap_or(1)).collect();
        let all = blocks.iter().fold(1u64, |all, n| all.saturating_mul(u64::from(*n)));
        if all > 1 {
            self.cluster_fits(span, &blocks, all)?;
            self.b.kernel_mut().cluster = blocks;
        }
        Ok(())
    }

    /// Refuses a number of blocks that is no power of two.
    fn power_of_two(&mut self, n: u32, span: Span, what: &str, why: &str) -> ElabResult<()> {
        if n.is_power_of_two() {
            return Ok(());
        }
        let below = 1u64 << n.ilog2();
        let d = Diagnostic::error(codes::BAD_EXTENT, span, format!("{n} {what} are no power of two"));
        self.report(d.with_help(format!("take {below} or {}{why}", 2 * below)))
    }

    /// Refuses clusters that the target does not have.
    fn cluster_fits(&mut self, span: Span, blocks: &[u32], all: u64) -> ElabResult<()> {
        let most = self.target.gpu.map_or(1, |gpu| gpu.cluster);
        if most == 1 {
            let message = format!("blocks on {} share no loads: there are no clusters", self.target.name);
            let d = Diagnostic::error(codes::BAD_ATTRIBUTE, span, message)
                .with_label("clusters are of GPUs, such as sm90")
                .with_help("a cluster of one block is none: take a constant that is 1 here, and set it by `-D` there");
            return self.report(d);
        }
        if all > u64::from(most) {
            let shape: Vec<String> = blocks.iter().map(u32::to_string).collect();
            let message =
                format!("a cluster of {} = {all} blocks; {} has {most} at most", shape.join(" x "), self.target.name);
            return self.error(codes::BAD_EXTENT, span, message);
        }
        Ok(())
    }

    /// The dimension of the grid that `along` names.
    fn along(&mut self, e: &Expr, vars: &[(Ident, Expr)]) -> ElabResult<u32> {
        self.expr(e)?;
        let name = if let ExprKind::Name(n) = &*e.kind { Some(n) } else { None };
        self.dimension(name, e.span, "along", vars)
    }

    /// The dimension of the grid that a name means: by its variable, or by what that runs over.
    fn dimension(&mut self, wanted: Option<&Name>, span: Span, of: &str, vars: &[(Ident, Expr)]) -> ElabResult<u32> {
        let name = |e: &Expr| if let ExprKind::Name(n) = &*e.kind { Some(n.clone()) } else { None };
        let over = |e: &Expr| match &*e.kind {
            ExprKind::Call(_, args) => args.first().and_then(|a| name(&a.value)),
            ExprKind::Range(_, hi) => name(hi),
            _ => None,
        };
        let by_name = vars.iter().position(|v| wanted == Some(&v.0.name));
        let mut by_extent = vars.iter().enumerate().filter(|(_, v)| wanted.is_some() && over(&v.1).as_ref() == wanted);
        let by_extent = by_extent.next().filter(|_| by_extent.next().is_none()).map(|(d, _)| d);
        if let Some(dim) = by_name.or(by_extent) {
            return Ok(dim as u32);
        }
        let names: Vec<String> = vars.iter().map(|v| format!("`{}`", v.0.name)).collect();
        let d = Diagnostic::error(codes::BAD_ATTRIBUTE, span, format!("`{of}` names no single dimension of the grid"))
            .with_label("along which?")
            .with_help(format!("name a variable of the grid: {}", names.join(" or ")));
        self.report(d)
    }
}

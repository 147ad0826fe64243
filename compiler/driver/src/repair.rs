//! The source behind a kernel, for repairs of what does not fit: other values of static parameters are tried by
//! elaborating the kernel with them.

use crate::defs;
use ptoc_analysis::Bindings;
use ptoc_checks::capacity::{FixContext, Parameter, Statement};
use ptoc_diagnostics::{Edit, SourceMap, Span};
use ptoc_ir::tile::{Kernel, Op, Operand, Stmt};
use ptoc_isa::Target;
use ptoc_names::{ItemId, Modules};
use ptoc_syntax::ast::{ItemKind, StaticKind};
use ptoc_syntax::places::StatementPlace;

/// Whether the target's units can sample as many channels as the kernel does. Their pixels are whole bursts of f16.
fn sampled(kernel: &Kernel, target: &Target) -> bool {
    let burst = target.device.as_ref().map_or(1, |d| d.burst_bytes / 2).max(1);
    fn all(kernel: &Kernel, region: &[Stmt], burst: u32) -> bool {
        region.iter().all(|s| {
            let here = match &s.op {
                Op::Inst(i) if i.instr.get().sem == ptoc_isa::Sem::Sample => match i.operands.first() {
                    Some(Operand::Tile(t)) => kernel.tiles[t.tile].ty.cols.is_multiple_of(burst),
                    _ => true,
                },
                _ => true,
            };
            here && s.op.regions().all(|r| all(kernel, r, burst))
        })
    }
    target.unit.is_none() || all(kernel, &kernel.body, burst)
}

/// Halvings of a parameter that are tried.
const HALVINGS: usize = 6;

/// Where a kernel comes from.
#[derive(Debug)]
pub struct KernelSource<'s> {
    /// All texts.
    pub sources: &'s SourceMap,
    /// The file and what it imports.
    pub modules: &'s Modules,
    /// The kernel.
    pub kernel: ItemId,
    /// What it was elaborated with.
    pub bindings: &'s Bindings,
}

impl FixContext for KernelSource<'_> {
    fn line(&self, span: Span) -> Option<String> {
        let line = self.sources.range(span).0.line;
        let home = self.modules.root().file;
        Some(match span.file == home {
            true => line.to_string(),
            false => format!("{line} of {}", self.sources.name(span.file)),
        })
    }

    fn parameters(&self) -> Vec<Parameter> {
        let ItemKind::Kernel(item) = &self.modules.item(self.kernel).kind else { return Vec::new() };
        let parameter = |p: &ptoc_syntax::ast::StaticParam| {
            let StaticKind::Const { default, tune, .. } = &p.kind else { return None };
            let given = self.bindings.defs.get(&p.name.name);
            let launched = self.bindings.launched(&p.name.name);
            let value = match launched {
                Some((value, _)) => value,
                None => defs::integer(given.or(default.as_ref())?)?,
            };
            let mut candidates: Vec<i64> =
                tune.iter().filter_map(defs::integer).filter(|&n| 0 < n && n < value).collect();
            let halves = std::iter::successors(Some(value / 2), |n| Some(n / 2)).take_while(|&n| n > 0);
            candidates.extend(halves.take(HALVINGS));
            candidates.sort_unstable_by_key(|&n| std::cmp::Reverse(n));
            candidates.dedup();
            // An argument of a launch that is computed is not ours to write anew.
            let place = match launched {
                Some((value, span)) => Some(span).filter(|&s| self.sources.slice(s).parse() == Ok(value)),
                None => default.as_ref().map(|e| e.span).filter(|_| given.is_none()),
            };
            let launched = launched.is_some();
            Some(Parameter { name: p.name.name.to_string(), value, candidates, place, launched })
        };
        item.statics.iter().filter_map(parameter).filter(|p| !p.candidates.is_empty()).collect()
    }

    fn elaborate(&self, change: Option<(&Parameter, i64)>, target: &Target) -> Option<Kernel> {
        // What is tried has steps of its own.
        let mut bindings = self.bindings.clone();
        bindings.steps = None;
        if let Some((parameter, value)) = change {
            bindings.change(&parameter.name, value, parameter.place.unwrap_or_default());
        }
        let outcome = ptoc_analysis::instantiate(self.modules, self.kernel, target, &bindings);
        let wrong = outcome.diagnostics.iter().any(ptoc_diagnostics::Diagnostic::is_error);
        outcome.result.filter(|_| !wrong).map(|instance| instance.kernel).filter(|k| sampled(k, target))
    }

    fn stages(&self, pipeline: Span, stages: u32) -> Option<Edit> {
        let text = self.sources.slice(pipeline);
        let rest = text.strip_prefix("pipeline")?.trim_start().strip_prefix('(')?.trim_start();
        let rest = rest.strip_prefix("stages")?.trim_start().strip_prefix('=')?.trim_start();
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        if digits == 0 || !rest[digits..].trim_start().starts_with([')', ',']) {
            return None;
        }
        let start = pipeline.start + u32::try_from(text.len() - rest.len()).ok()?;
        Some(Edit { span: Span::new(pipeline.file, start, start + digits as u32), text: stages.to_string() })
    }

    fn removal(&self, statement: Span) -> Option<Edit> {
        if statement.file != self.modules.root().file {
            return None;
        }
        let text = self.sources.text(statement.file);
        let (before, rest) = (text.get(..statement.start as usize)?, text.get(statement.end as usize..)?);
        let own = self.sources.slice(statement);
        let own = own.strip_suffix(';').unwrap_or(own);
        // A statement begins after another one, a brace, or a comment's line.
        let line = before.rsplit('\n').next()?;
        let begins = match line.trim_start() {
            "" => !before.trim_end().ends_with([',', '(', '=', '+', '-', '*', '/']),
            words => words.ends_with([';', '{', '}']) || words.trim_end().ends_with([';', '{', '}']),
        };
        let ends = own.len() < statement.range().len() || rest.starts_with(';');
        if !begins || !ends || own.starts_with("let ") || own.contains(';') {
            return None;
        }
        let end = statement.end + u32::from(own.len() == statement.range().len());
        // With the whole line, if nothing else stands in it.
        let tail = text.get(end as usize..)?;
        let to_end = tail.find('\n').map_or(tail.len(), |n| n + 1);
        let alone = line.trim().is_empty() && tail[..to_end].trim().is_empty();
        let span = match alone {
            true => Span::new(statement.file, statement.start - line.len() as u32, end + to_end as u32),
            false => Span::new(statement.file, statement.start, end),
        };
        Some(Edit { span, text: String::new() })
    }

    fn text(&self, span: Span) -> Option<String> {
        Some(self.sources.slice(span).to_owned())
    }

    fn statement(&self, span: Span) -> Option<Statement> {
        let (ItemKind::Kernel(item) | ItemKind::Program(item)) = &self.modules.item(self.kernel).kind else {
            return None;
        };
        // What stands in a library is not for its users to change.
        if span.file != self.modules.root().file {
            return None;
        }
        let StatementPlace { span, block, tail } = ptoc_syntax::places::statement(&item.body, span)?;
        Some(Statement { span, block, tail })
    }

    fn introduces(&self, name: Span, value: Span) -> bool {
        name.file == value.file
            && name.end <= value.start
            && self.sources.slice(Span::new(name.file, name.end, value.start)).trim() == "="
    }
}

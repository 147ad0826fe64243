//! Instructions with arguments in `<` and `>`, as PTO has them: they are operands and modes.

use super::usage;
use ptoc_diagnostics::{Diagnostic, Edit, Span, codes};
use ptoc_isa::InstrId;
use ptoc_syntax::ast::{Arg, Expr, ExprKind};
use ptoc_values::written::text;

/// The report of `callee<statics>(args)`; `call` is all of it, `base` the name.
pub(crate) fn of_instruction(id: InstrId, callee: &Expr, base: &Expr, statics: &[Arg], call: Span) -> Diagnostic {
    let name = id.get().written_name();
    let list = Span::new(callee.span.file, base.span.end, callee.span.end);
    let d = Diagnostic::error(codes::UNKNOWN_STATIC, list, format!("{name} takes no static arguments"))
        .with_label("no such parameter");
    let part = ptoc_isa::left_out(name).find(|p| p.words.contains(&"<"));
    let help = match &part {
        Some(part) => part.why.to_owned(),
        None => format!("all operands and modes stand in one list: `{}`", usage(id)),
    };
    // Operands go behind the others, and so do words.
    let of_mode = |word: &str| {
        let left_out = || ptoc_isa::left_out(name).any(|p| p.words.contains(&word) && p.why.contains("leave it out"));
        ptoc_names::resolve::respelled(word).or_else(|| left_out().then_some(""))
    };
    let written: Option<Vec<String>> = statics
        .iter()
        .map(|a| {
            let word = match &*a.value.kind {
                ExprKind::Int(n) if name == "TASSIGN" => format!("{n:#x}"),
                _ => text(&a.value)?,
            };
            let known = name == "TASSIGN" || ptoc_isa::instructions_with(&word).contains(&name);
            of_mode(&word).map(str::to_owned).or_else(|| known.then_some(word))
        })
        .collect();
    match written {
        Some(words) => {
            let nothing = words.iter().all(String::is_empty);
            let help = if nothing { "leave it out".to_owned() } else { help };
            let text = words.iter().filter(|w| !w.is_empty()).map(|w| format!(", {w}")).collect();
            let end = Span::new(call.file, call.end - 1, call.end - 1);
            d.with_edits(help, vec![Edit { span: list, text: String::new() }, Edit { span: end, text }])
        }
        None => d.with_help(help),
    }
}

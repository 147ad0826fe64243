//! Expressions of the layout algebra, as people type them: what they may name, and what is wrong with them.

use ptoc_diagnostics::{Code, Diagnostic, SourceMap, Span, codes, list, suggest};
use ptoc_layout::{Cx, Env, ExprError, ExprErrorKind, MmaAtom, TextSpan, Value, eval_expr, ops};

/// What expressions are evaluated in.
pub struct Expressions {
    /// The library's families of atoms.
    pub cx: Cx,
    /// Names: the library's atoms and their dtypes, and the operands of a matrix instruction.
    pub env: Env,
}

impl Default for Expressions {
    fn default() -> Expressions {
        let mut env = Env::new();
        for value in ptoc_names::standard_atoms() {
            let types = match value {
                Value::Atom(atom) => &atom.types,
                Value::Family(family) => family.types(),
                _ => continue,
            };
            for name in types {
                env.insert(name.clone(), Value::DType(name.as_str().into()));
            }
            env.insert(value.to_string(), value.clone());
        }
        for (name, value) in MmaAtom::operands() {
            env.insert(name, value);
        }
        Expressions { cx: Cx::default().with_families(ptoc_names::standard_families()), env }
    }
}

impl Expressions {
    /// The value of an expression.
    ///
    /// # Errors
    /// What is wrong with it, and where.
    pub fn evaluate(&self, text: &str) -> Result<Value, ExprError> {
        eval_expr(&self.cx, &self.env, text)
    }

    /// What would mend it: what the error says itself, or the nearest name.
    fn help(&self, e: &ExprError) -> Option<String> {
        let names = || ops::all().map(|op| op.name).chain(self.env.names());
        match &e.kind {
            ExprErrorKind::UnknownOperation(name) => Some(match suggest(name, names()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => "`ptoc layout --list` lists the operations".into(),
            }),
            ExprErrorKind::UnknownName(name) => Some(match suggest(name, names()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("there are {}; `ptoc layout --list` lists the operations", list(self.env.names())),
            }),
            _ => e.help.clone(),
        }
    }

    /// One line with the column.
    pub fn located(&self, e: &ExprError, text: &str) -> String {
        ExprError { help: self.help(e), ..e.clone() }.located(text)
    }

    /// The error with the expression as its source.
    pub fn diagnostic(&self, e: &ExprError, text: &str) -> (Diagnostic, SourceMap) {
        let mut sources = SourceMap::new();
        let file = sources.add("expression", text);
        let span = |at: &TextSpan| Span::new(file, at.start as u32, at.end as u32);
        let mut d = Diagnostic::error(code(e), span(&e.span), &e.message).with_label(&e.label);
        for (at, label) in &e.labels {
            d = d.with_secondary(span(at), label);
        }
        if let Some(help) = self.help(e) {
            d = d.with_help(help);
        }
        (d, sources)
    }
}

fn code(e: &ExprError) -> Code {
    match &e.kind {
        ExprErrorKind::Syntax => codes::LAYOUT_SYNTAX,
        ExprErrorKind::UnknownName(_) | ExprErrorKind::UnknownOperation(_) => codes::UNKNOWN_LAYOUT_NAME,
        ExprErrorKind::Arity => codes::LAYOUT_ARITY,
        ExprErrorKind::Layout(e) => ptoc_names::layout_code(e.kind),
    }
}

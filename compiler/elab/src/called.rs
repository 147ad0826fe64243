//! The calls that lead to a place in a function: what is refused there is refused for the arguments of one of them.

use super::Elaborator;
use ptoc_diagnostics::{Diagnostic, Edit, Span};
use ptoc_names::builtins::Word;
use ptoc_names::scopes::{self, StatementPart};
use ptoc_syntax::ast::*;
use ptoc_values::{Binding, Val};

/// Calls that a report shows; of more the outermost is shown, and how many lie between.
const SHOWN: usize = 4;

impl Elaborator<'_> {
    /// Adds the calls, the innermost first, with what is known of their arguments.
    pub(crate) fn called_from(&self, mut d: Diagnostic) -> Diagnostic {
        let calls = self.env.calls();
        if calls.is_empty() {
            return d;
        }
        self.aim(&mut d);
        let between = calls.len().saturating_sub(SHOWN);
        for (k, call) in calls.iter().enumerate() {
            // What is wrong with the call itself says where it is.
            let itself = d.span.is_some_and(|s| call.span.contains(s));
            if itself || (k + 1 >= SHOWN && k + 1 < calls.len()) {
                continue;
            }
            let item = self.calls.len().checked_sub(k + 1).and_then(|at| self.calls.get(at));
            let values = match item.and_then(|id| *id).map(|id| &self.modules.item(id).kind) {
                Some(ItemKind::Fn(f)) => self.given(f, call.names),
                _ => Vec::new(),
            };
            let with = match &values[..] {
                [] => String::new(),
                list => format!(", with {}", ptoc_isa::text::list(list)),
            };
            d = d.with_secondary(call.span, format!("`{}` is called here{with}", call.function));
        }
        match between {
            0 => d,
            1 => d.with_note("between the calls that are shown there is another one"),
            n => d.with_note(format!("between the calls that are shown there are {n} others")),
        }
    }

    /// `T = bf16`: parameters of a function that have a value when the kernel is compiled.
    fn given(&self, f: &FnItem, names: &[(Name, Binding, Span)]) -> Vec<String> {
        let parameters = f.statics.iter().map(|s| &s.name).chain(f.params.iter().map(|p| &p.name));
        // A dtype that a parameter's type binds by its name alone.
        let bound = names.iter().filter_map(|(name, b, _)| {
            let Binding::Let(Val::Word(Word::DType(d))) = b else { return None };
            (!f.statics.iter().any(|s| s.name.name == *name)).then(|| format!("{name} = {d}"))
        });
        let shown = parameters.filter_map(|p| {
            let value = names.iter().find(|(n, _, at)| *n == p.name && *at == p.span).map(|(_, b, _)| b)?;
            let Binding::Let(v) = value else { return None };
            Some(format!("{} = {}", p.name, self.known_text(v)?))
        });
        shown.chain(bound).collect()
    }

    /// What has a value when the kernel is compiled, as reports show it.
    pub fn known_text(&self, v: &Val) -> Option<String> {
        Some(match v {
            Val::Word(Word::DType(d)) => d.to_string(),
            Val::Fn(id) => ptoc_names::item_name(self.modules.item(*id))?.name.to_string(),
            Val::Float(_) | Val::Bool(_) | Val::Algebra(_) => self.show(v),
            v if self.int_const(v).is_some() => self.show(v),
            _ => return None,
        })
    }

    /// Edits of a function's text would change it for all who call it: where a scalar parameter is meant, which stands
    /// for what the call gives, the argument is edited. The standard library's text is not the author's to change.
    fn aim(&self, d: &mut Diagnostic) {
        for fix in &mut d.fixes {
            // From the innermost call outwards.
            for (depth, arguments) in self.arguments.iter().enumerate().rev() {
                let Some(Some(id)) = self.calls.get(depth) else { break };
                let ItemKind::Fn(f) = &self.modules.item(*id).kind else { break };
                let Some(place) = around(&fix.edits) else { break };
                let Some(name) = name_at(f, place) else { break };
                let scalar = |p: &Param| p.name.name == name && matches!(&*p.ty.kind, ExprKind::Name(n) if n != "view");
                let Some(argument) = arguments.iter().find(|a| a.name == name).filter(|_| f.params.iter().any(scalar))
                else {
                    break;
                };
                let to = argument.at;
                for e in &mut fix.edits {
                    e.span = match (e.span.start == place.start, e.span.end == place.end) {
                        (true, true) => to,
                        (true, false) => Span::new(to.file, to.start, to.start),
                        _ => Span::new(to.file, to.end, to.end),
                    };
                }
            }
            let library =
                |file| self.modules.all().any(|(_, m)| m.file == file && m.path.first().is_some_and(|p| p == "std"));
            if fix.edits.iter().any(|e| library(e.span.file)) {
                fix.edits.clear();
            }
        }
    }
}

/// What the edits replace, or put something around.
fn around(edits: &[Edit]) -> Option<Span> {
    match edits {
        [one] if one.span.start < one.span.end => Some(one.span),
        [before, after] if before.span.start == before.span.end && after.span.start == after.span.end => {
            (before.span.start < after.span.start).then(|| before.span.to(after.span))
        }
        _ => None,
    }
}

/// The name that stands at a place of a function's body.
fn name_at(f: &FnItem, place: Span) -> Option<Name> {
    let mut found = None;
    in_block(&f.body, place, &mut found);
    found
}

fn in_block(b: &Block, place: Span, found: &mut Option<Name>) {
    for s in b.stmts.iter().filter(|s| s.span.contains(place)) {
        scopes::parts(s, &mut |part| in_part(part, place, found));
    }
    if let Some(e) = &b.tail {
        in_expr(e, place, found);
    }
}

fn in_part(part: StatementPart<'_>, place: Span, found: &mut Option<Name>) {
    match part {
        StatementPart::Value(e) | StatementPart::Type(e) | StatementPart::Target(e) => in_expr(e, place, found),
        StatementPart::Arguments(args) => args.iter().for_each(|a| in_expr(&a.value, place, found)),
        StatementPart::Block(_, body) => in_block(body, place, found),
        StatementPart::Local { .. }
        | StatementPart::Named(_)
        | StatementPart::On(_)
        | StatementPart::Attributes(_)
        | StatementPart::Role(_) => {}
    }
}

fn in_expr(e: &Expr, place: Span, found: &mut Option<Name>) {
    if !e.span.contains(place) {
        return;
    }
    let mut of = |e: &Expr| in_expr(e, place, found);
    match &*e.kind {
        ExprKind::Name(n) if e.span == place => *found = Some(n.clone()),
        ExprKind::Paren(a)
        | ExprKind::Unary(_, a)
        | ExprKind::Basis(a, _)
        | ExprKind::Field(a, _)
        | ExprKind::TupleField(a, ..) => of(a),
        ExprKind::Tuple(l) | ExprKind::List(l) | ExprKind::Tiler(l) => l.iter().for_each(of),
        ExprKind::Binary(_, a, b) | ExprKind::Layout(a, b) | ExprKind::Range(a, b) => {
            of(a);
            of(b);
        }
        ExprKind::Index(a, l) | ExprKind::Call(a, l) | ExprKind::Static(a, l) => {
            of(a);
            l.iter().for_each(|a| of(&a.value));
        }
        ExprKind::Record(l) => l.iter().for_each(|(_, a)| of(a)),
        ExprKind::If(i) => scopes::branches(i, &mut |part| in_part(part, place, found)),
        _ => {}
    }
}

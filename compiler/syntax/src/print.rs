//! Token lists and trees as text, for `ptoc emit --stage tokens` and `--stage ast`.

use std::fmt::Write as _;

use ptoc_diagnostics::Span;

use crate::ast::*;
use crate::token::Tok;

/// One line a token: byte range, category, text.
pub fn tokens(text: &str, tokens: &[(Tok, Span)]) -> String {
    let mut out = String::new();
    for (tok, span) in tokens {
        let content = text.get(span.range()).unwrap_or_default().escape_debug();
        let place = format!("{}..{}", span.start, span.end);
        // Writing to a String cannot fail.
        let _ = writeln!(out, "{place:<14}{:<16}{content}", tok.to_string());
    }
    out
}

/// The tree, one node a line, children indented; with byte ranges if `spans`.
pub fn ast(file: &File, spans: bool) -> String {
    let mut p = Printer { out: String::new(), indent: 0, spans };
    p.docs(&file.docs);
    for item in &file.items {
        p.item(item);
    }
    p.out
}

/// One expression, as [`ast`] shows it.
pub fn expr(expr: &Expr, spans: bool) -> String {
    let mut p = Printer { out: String::new(), indent: 0, spans };
    p.expr("", expr);
    p.out
}

struct Printer {
    out: String,
    indent: usize,
    spans: bool,
}

impl Printer {
    fn line(&mut self, text: &str, span: Option<Span>) {
        let _ = write!(self.out, "{:width$}{text}", "", width = 2 * self.indent);
        if let Some(span) = span.filter(|_| self.spans) {
            let _ = write!(self.out, "  @{}..{}", span.start, span.end);
        }
        self.out.push('\n');
    }

    fn nested(&mut self, body: impl FnOnce(&mut Printer)) {
        self.indent += 1;
        body(self);
        self.indent -= 1;
    }

    fn docs(&mut self, docs: &str) {
        if !docs.is_empty() {
            for line in docs.lines() {
                self.line(&format!("doc {line:?}"), None);
            }
        }
    }

    fn item(&mut self, item: &Item) {
        let span = Some(item.span);
        match &item.kind {
            ItemKind::Use(path) => {
                let path: Vec<_> = path.iter().map(|p| p.name.as_str()).collect();
                self.line(&format!("use {}", path.join("::")), span);
            }
            ItemKind::Const(c) => self.line(&format!("const {}", c.name.name), span),
            ItemKind::Fn(f) => self.line(&format!("fn {}", f.name.name), span),
            ItemKind::Kernel(k) => self.line(&format!("kernel {}", k.name.name), span),
            ItemKind::Program(k) => self.line(&format!("program {}", k.name.name), span),
            ItemKind::Atom(a) => self.line(&format!("atom {}", a.name.name), span),
            ItemKind::Error => self.line("error", span),
        }
        self.nested(|p| {
            p.docs(&item.docs);
            item.attrs.iter().for_each(|a| p.attr(a));
            match &item.kind {
                ItemKind::Const(c) => p.constant(c),
                ItemKind::Fn(f) => {
                    f.statics.iter().for_each(|s| p.static_param(s));
                    f.params.iter().for_each(|s| p.param(s));
                    p.maybe("returns", &f.ret);
                    p.block("body", &f.body);
                }
                ItemKind::Kernel(k) | ItemKind::Program(k) => {
                    k.statics.iter().for_each(|s| p.static_param(s));
                    k.params.iter().for_each(|s| p.param(s));
                    k.wheres.iter().for_each(|e| p.expr("where ", e));
                    k.ensures.iter().for_each(|e| p.expr("ensures ", e));
                    p.block("body", &k.body);
                }
                ItemKind::Atom(a) => a.fields.iter().for_each(|(n, e)| p.expr(&format!("{} = ", n.name), e)),
                ItemKind::Use(_) | ItemKind::Error => {}
            }
        });
    }

    fn constant(&mut self, c: &ConstItem) {
        self.maybe("type", &c.ty);
        self.expr("= ", &c.value);
    }

    fn attr(&mut self, attr: &Attr) {
        let word = |a: &AttrArg| match a {
            AttrArg::Name(n) => Some(n.name.to_string()),
            AttrArg::Str(s, _) => Some(format!("{s:?}")),
            AttrArg::Value(..) => None,
        };
        let args: Vec<String> = attr.args.iter().filter_map(word).collect();
        self.line(&format!("attribute {} {}", attr.name.name, args.join(" ")), Some(attr.span));
        self.nested(|p| {
            for arg in &attr.args {
                if let AttrArg::Value(name, value) = arg {
                    p.expr(&format!("{} = ", name.name), value);
                }
            }
        });
    }

    fn static_param(&mut self, s: &StaticParam) {
        let name = &s.name.name;
        match &s.kind {
            StaticKind::Const { ty, default, tune } => {
                self.line(&format!("static const {name}"), Some(s.span));
                self.nested(|p| {
                    p.maybe("type", ty);
                    p.maybe("default", default);
                    tune.iter().for_each(|e| p.expr("tune ", e));
                });
            }
            StaticKind::Type { default } => {
                self.line(&format!("static type {name}"), Some(s.span));
                self.nested(|p| p.maybe("default", default));
            }
            StaticKind::Fn { default } => {
                let default = default.as_ref().map(|d| format!(" = {}", d.name)).unwrap_or_default();
                self.line(&format!("static fn {name}{default}"), Some(s.span));
            }
        }
    }

    fn param(&mut self, param: &Param) {
        let dir = match param.dir {
            Some((Dir::In, _)) => "in ",
            Some((Dir::Out, _)) => "out ",
            Some((Dir::InOut, _)) => "inout ",
            None => "",
        };
        self.line(&format!("param {dir}{}", param.name.name), Some(param.span));
        self.nested(|p| {
            p.expr("type ", &param.ty);
            p.maybe("at", &param.at);
            p.over(&param.over);
            p.maybe("default", &param.default);
        });
    }

    fn over(&mut self, over: &Option<Ident>) {
        if let Some(unit) = over {
            self.line(&format!("over {}", unit.name), Some(unit.span));
        }
    }

    fn maybe(&mut self, label: &str, expr: &Option<Expr>) {
        if let Some(e) = expr {
            self.expr(&format!("{label} "), e);
        }
    }

    fn block(&mut self, label: &str, block: &Block) {
        self.line(label, Some(block.span));
        self.nested(|p| {
            block.stmts.iter().for_each(|s| p.stmt(s));
            if let Some(tail) = &block.tail {
                p.expr("value ", tail);
            }
        });
    }

    fn stmt(&mut self, stmt: &Stmt) {
        let span = Some(stmt.span);
        let names = |list: &[Ident]| list.iter().map(|n| n.name.as_str()).collect::<Vec<_>>().join(", ");
        match &stmt.kind {
            StmtKind::Let { names: list, ty, value } => {
                self.line(&format!("let {}", names(list)), span);
                self.nested(|p| {
                    p.maybe("type", ty);
                    p.expr("= ", value);
                });
            }
            StmtKind::LetTuple { names: list, value } => {
                self.line(&format!("let ({})", names(list)), span);
                self.nested(|p| p.expr("= ", value));
            }
            StmtKind::Var { name, ty, value } => {
                self.line(&format!("var {}", name.name), span);
                self.nested(|p| {
                    p.maybe("type", ty);
                    p.expr("= ", value);
                });
            }
            StmtKind::Const(c) => {
                self.line(&format!("const {}", c.name.name), span);
                self.nested(|p| p.constant(c));
            }
            StmtKind::Assign { target, value } => {
                self.line("assign", span);
                self.nested(|p| {
                    p.expr("", target);
                    p.expr("= ", value);
                });
            }
            StmtKind::OpAssign { target, op, value, .. } => {
                self.line("assign", span);
                self.nested(|p| {
                    p.expr("", target);
                    p.expr(&format!("{}= ", op.symbol()), value);
                });
            }
            StmtKind::Expr(e) => {
                self.line("do", span);
                self.nested(|p| p.expr("", e));
            }
            StmtKind::If(i) => {
                self.line("if", span);
                self.if_parts(i);
            }
            StmtKind::For { attrs, var, range, body } => {
                self.line(&format!("for {}", var.name), span);
                self.nested(|p| {
                    attrs.iter().for_each(|a| p.attr(a));
                    p.expr("in ", range);
                    p.block("body", body);
                });
            }
            StmtKind::Pipeline { args, var, range, body } => {
                self.line(&format!("pipeline for {}", var.name), span);
                self.nested(|p| {
                    args.iter().for_each(|a| p.arg(a));
                    p.expr("in ", range);
                    p.block("body", body);
                });
            }
            StmtKind::While { cond, body } => {
                self.line("while", span);
                self.nested(|p| {
                    p.expr("", cond);
                    p.block("body", body);
                });
            }
            StmtKind::Role { name, body } => {
                self.line(&format!("role {}", name.name), span);
                self.nested(|p| p.block("body", body));
            }
            StmtKind::Grid { vars, clauses } => {
                self.line("grid", span);
                self.nested(|p| {
                    vars.iter().for_each(|(n, e)| p.expr(&format!("{} in ", n.name), e));
                    clauses.iter().for_each(|c| p.clause(c));
                });
            }
            StmtKind::Return(value) => {
                self.line("return", span);
                self.nested(|p| value.iter().for_each(|e| p.expr("", e)));
            }
            StmtKind::Break => self.line("break", span),
            StmtKind::Continue => self.line("continue", span),
            StmtKind::Error => self.line("error", span),
        }
    }

    fn clause(&mut self, clause: &GridClause) {
        match clause {
            GridClause::On(e) => self.expr("on ", e),
            GridClause::Option(name, args) => {
                self.line(&format!("option {}", name.name), Some(name.span));
                self.nested(|p| args.iter().for_each(|a| p.arg(a)));
            }
        }
    }

    fn if_parts(&mut self, i: &IfStmt) {
        self.nested(|p| {
            p.expr("", &i.cond);
            p.block("then", &i.then);
            match i.els.as_deref() {
                Some(Else::Block(b)) => p.block("else", b),
                Some(Else::If(next, span)) => {
                    p.line("else if", Some(*span));
                    p.if_parts(next);
                }
                None => {}
            }
        });
    }

    fn arg(&mut self, arg: &Arg) {
        match &arg.name {
            Some(name) => self.expr(&format!("{} = ", name.name), &arg.value),
            None => self.expr("", &arg.value),
        }
    }

    /// The node after `label`, and its children.
    fn expr(&mut self, label: &str, e: &Expr) {
        let span = Some(e.span);
        let mut head = |text: &str| self.line(&format!("{label}{text}"), span);
        match &*e.kind {
            ExprKind::Name(name) => head(name),
            ExprKind::Int(value) => head(&value.to_string()),
            ExprKind::Float(_, text) => head(text),
            ExprKind::Bool(value) => head(&value.to_string()),
            ExprKind::Str(text) => head(&format!("{text:?}")),
            ExprKind::Hole => head("_"),
            ExprKind::Error => head("error"),
            ExprKind::Paren(_) => head("( )"),
            ExprKind::Tuple(_) => head("tuple"),
            ExprKind::List(_) => head("list"),
            ExprKind::Tiler(_) => head("tiler"),
            ExprKind::Record(_) => head("record"),
            ExprKind::Closure(_) => head("closure"),
            ExprKind::FnType => head("fn"),
            ExprKind::Unary(UnaryOp::Neg, _) => head("negate"),
            ExprKind::Unary(UnaryOp::Not, _) => head("not"),
            ExprKind::Binary(op, ..) => head(op.symbol()),
            ExprKind::Layout(..) => head("layout"),
            ExprKind::Basis(_, name) => head(&format!("basis @{}", name.name)),
            ExprKind::Index(..) => head("index"),
            ExprKind::Call(..) => head("call"),
            ExprKind::Field(_, name) => head(&format!("field .{}", name.name)),
            ExprKind::TupleField(_, index, _) => head(&format!("field .{index}")),
            ExprKind::Static(..) => head("static"),
            ExprKind::Range(..) => head("range"),
            ExprKind::If(_) => head("if"),
            ExprKind::Tile { .. } => head("tile"),
            ExprKind::Tensor { .. } => head("tensor"),
        }
        self.nested(|p| match &*e.kind {
            ExprKind::Paren(a)
            | ExprKind::Unary(_, a)
            | ExprKind::Basis(a, _)
            | ExprKind::Field(a, _)
            | ExprKind::TupleField(a, ..) => p.expr("", a),
            ExprKind::Tuple(list) | ExprKind::List(list) | ExprKind::Tiler(list) => {
                list.iter().for_each(|a| p.expr("", a));
            }
            ExprKind::Record(fields) => fields.iter().for_each(|(n, e)| p.expr(&format!("{} = ", n.name), e)),
            ExprKind::Closure(c) => {
                for param in &c.params {
                    p.line(&format!("param {}", param.name.name), Some(param.name.span));
                    p.nested(|p| p.maybe("type", &param.ty));
                }
                p.block("body", &c.body);
            }
            ExprKind::Binary(_, a, b) | ExprKind::Layout(a, b) | ExprKind::Range(a, b) => {
                p.expr("", a);
                p.expr("", b);
            }
            ExprKind::Index(a, args) | ExprKind::Call(a, args) | ExprKind::Static(a, args) => {
                p.expr("", a);
                args.iter().for_each(|a| p.arg(a));
            }
            ExprKind::Tile { ty, at } => {
                p.expr("type ", ty);
                p.maybe("at", at);
            }
            ExprKind::Tensor { ty, at, over, fill } => {
                p.expr("type ", ty);
                p.maybe("at", at);
                p.over(over);
                p.maybe("fill", fill);
            }
            _ => {}
        });
        if let ExprKind::If(i) = &*e.kind {
            self.if_parts(i);
        }
    }
}

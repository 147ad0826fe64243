//! The statements of the source: what a debugger steps through.

use ptoc_diagnostics::{SourceMap, Span};
use ptoc_names::Modules;
use ptoc_syntax::ast::{Block, Else, Expr, ExprKind, IfStmt, ItemKind, Stmt, StmtKind};

/// Number of a statement.
pub type StatementId = usize;

/// A statement, or the last expression of a block.
#[derive(Clone, Debug)]
pub struct Statement {
    /// The whole of it.
    pub span: Span,
    /// Without the blocks of a compound statement: what is marked.
    pub head: Span,
    /// The function or kernel that it belongs to.
    pub item: usize,
    /// The statement around it.
    pub parent: Option<StatementId>,
    /// First line, from 1.
    pub line: u32,
    /// Last line of the head.
    pub last_line: u32,
}

/// A kernel, program or function.
#[derive(Clone, Debug)]
pub struct DebugItem {
    /// Its name.
    pub name: String,
    /// Where the name stands.
    pub span: Span,
}

/// All statements of a file and what it imports; those around others come first.
#[derive(Clone, Debug, Default)]
pub struct Statements {
    /// By number.
    pub list: Vec<Statement>,
    /// Kernels, programs, functions.
    pub items: Vec<DebugItem>,
}

impl Statements {
    /// Collects them.
    pub fn new(modules: &Modules, sources: &SourceMap) -> Statements {
        let mut walk = StatementCollector { out: Statements::default(), parent: None, sources };
        for (_, module) in modules.all() {
            for item in &module.ast.items {
                let (name, body) = match &item.kind {
                    ItemKind::Kernel(k) | ItemKind::Program(k) => (&k.name, &k.body),
                    ItemKind::Fn(f) => (&f.name, &f.body),
                    _ => continue,
                };
                walk.out.items.push(DebugItem { name: name.name.to_string(), span: name.span });
                walk.block(body);
            }
        }
        walk.out
    }

    /// The innermost statement that contains the span.
    pub fn innermost(&self, span: Span) -> Option<StatementId> {
        let within = |s: &Statement| s.span.contains(span);
        let found = self.list.iter().enumerate().filter(|(_, s)| within(s));
        found.min_by_key(|(_, s)| s.span.end - s.span.start).map(|(id, _)| id)
    }

    /// The items of that name.
    pub fn items_named(&self, name: &str) -> Vec<usize> {
        self.items.iter().enumerate().filter(|(_, i)| i.name == name).map(|(n, _)| n).collect()
    }
}

struct StatementCollector<'s> {
    out: Statements,
    parent: Option<StatementId>,
    sources: &'s SourceMap,
}

impl StatementCollector<'_> {
    fn block(&mut self, b: &Block) {
        for s in &b.stmts {
            self.stmt(s);
        }
        if let Some(e) = &b.tail {
            let head = match &*e.kind {
                ExprKind::If(i) => i.cond.span,
                _ => e.span,
            };
            self.enter(e.span, head, |w| w.expr(e));
        }
    }

    fn enter(&mut self, span: Span, head_end: Span, f: impl FnOnce(&mut Self)) {
        let (head, item) = (Span::new(span.file, span.start, head_end.end), self.out.items.len().saturating_sub(1));
        let (first, last) = self.sources.range(head);
        let (line, last_line) = (first.line, last.line);
        self.out.list.push(Statement { span, head, item, parent: self.parent, line, last_line });
        let outer = self.parent.replace(self.out.list.len() - 1);
        f(self);
        self.parent = outer;
    }

    fn stmt(&mut self, s: &Stmt) {
        // `role name {}` does nothing itself: it says who issues the statements in it.
        if let StmtKind::Role { body, .. } = &s.kind {
            return self.block(body);
        }
        // `role name {}` does nothing itself: it says who issues the statements in it.
        if let StmtKind::Role { body, .. } = &s.kind {
            return self.block(body);
        }
        let head = match &s.kind {
            StmtKind::If(i) => i.cond.span,
            StmtKind::For { range, .. } | StmtKind::Pipeline { range, .. } => range.span,
            StmtKind::While { cond, .. } => cond.span,
            _ => s.span,
        };
        self.enter(s.span, head, |w| match &s.kind {
            StmtKind::Let { value, .. } | StmtKind::LetTuple { value, .. } | StmtKind::Var { value, .. } => {
                w.expr(value);
            }
            StmtKind::Assign { target, value } | StmtKind::OpAssign { target, value, .. } => {
                w.expr(target);
                w.expr(value);
            }
            StmtKind::Expr(e) | StmtKind::Return(Some(e)) => w.expr(e),
            StmtKind::If(i) => w.branches(i),
            StmtKind::For { range, body, .. } | StmtKind::Pipeline { range, body, .. } => {
                w.expr(range);
                w.block(body);
            }
            StmtKind::While { cond, body } => {
                w.expr(cond);
                w.block(body);
            }
            StmtKind::Role { .. }
            | StmtKind::Const(_)
            | StmtKind::Grid { .. }
            | StmtKind::Return(None)
            | StmtKind::Break
            | StmtKind::Continue
            | StmtKind::Error => {}
        });
    }

    fn branches(&mut self, i: &IfStmt) {
        self.expr(&i.cond);
        self.block(&i.then);
        match i.els.as_deref() {
            Some(Else::Block(b)) => self.block(b),
            Some(Else::If(i, span)) => self.enter(*span, i.cond.span, |w| w.branches(i)),
            None => {}
        }
    }

    /// Looks for blocks in an expression.
    fn expr(&mut self, e: &Expr) {
        match &*e.kind {
            ExprKind::If(i) => self.branches(i),
            ExprKind::Paren(e) | ExprKind::Unary(_, e) | ExprKind::Field(e, _) | ExprKind::TupleField(e, ..) => {
                self.expr(e);
            }
            ExprKind::Tuple(l) | ExprKind::List(l) => l.iter().for_each(|e| self.expr(e)),
            ExprKind::Record(l) => l.iter().for_each(|(_, e)| self.expr(e)),
            ExprKind::Closure(c) => self.block(&c.body),
            ExprKind::Binary(_, a, b) | ExprKind::Range(a, b) => [a, b].into_iter().for_each(|e| self.expr(e)),
            ExprKind::Index(e, args) | ExprKind::Call(e, args) => {
                self.expr(e);
                args.iter().for_each(|a| self.expr(&a.value));
            }
            _ => {}
        }
    }
}

//! The constructors that the grammar calls: they keep heights below [`MAX_DEPTH`], read literals, attach documentation,
//! and hand out parts that were parsed before.

use ptoc_diagnostics::{Diagnostic, FileId, Span, codes};

use crate::ast::*;
use crate::lexer;

/// What a parse produces.
#[derive(Debug)]
pub(crate) enum Node {
    File(Vec<Item>),
    Item(Box<Item>),
    Param(Box<Param>),
    StaticParam(Box<StaticParam>),
    Stmt(Box<Stmt>),
    GridVar((Ident, Expr)),
    Arg(Arg),
    Expr(Expr),
}

/// What was boxed on the parser's stack, side by side.
pub(crate) fn unboxed<T>(list: Vec<Box<T>>) -> Vec<T> {
    list.into_iter().map(|boxed| *boxed).collect()
}

/// Parts parsed before, each taken at most once.
#[derive(Debug, Default)]
pub(crate) struct Parts {
    pub params: Vec<Option<Param>>,
    pub static_params: Vec<Option<StaticParam>>,
    pub blocks: Vec<Option<Block>>,
    pub grid_vars: Vec<Option<(Ident, Expr)>>,
    pub args: Vec<Option<Arg>>,
    pub exprs: Vec<Option<Expr>>,
}

/// State of the semantic actions.
#[derive(Debug)]
pub(crate) struct Builder<'s> {
    file: FileId,
    text: &'s str,
    /// First byte of an item -> the documentation before it, sorted.
    docs: Vec<(u32, String)>,
    /// What the actions and the recovery report.
    pub diagnostics: Vec<Diagnostic>,
    /// Reports beyond [`lexer::MAX_ERRORS`] that the recovery dropped.
    pub dropped: usize,
    /// See [`Parts`].
    pub parts: Parts,
    /// In a trial parse parts stay where they are, and errors stand for them.
    pub trial: bool,
    /// The last subtree that was cut off; what contains it is not reported again.
    too_deep: Option<Span>,
}

impl<'s> Builder<'s> {
    pub fn new(file: FileId, text: &'s str, docs: Vec<(u32, String)>) -> Builder<'s> {
        let (diagnostics, parts) = (Vec::new(), Parts::default());
        Builder { file, text, docs, diagnostics, dropped: 0, parts, trial: false, too_deep: None }
    }

    pub fn span(&self, l: u32, r: u32) -> Span {
        Span::new(self.file, l, r)
    }

    pub fn text(&self, l: u32, r: u32) -> &'s str {
        self.text.get(l as usize..r as usize).unwrap_or_default()
    }

    pub fn source(&self) -> &'s str {
        self.text
    }

    pub fn ident(&self, l: u32, r: u32) -> Ident {
        Ident { name: Name::new(self.text(l, r)), span: self.span(l, r) }
    }

    pub fn report(&mut self, diagnostic: Diagnostic) {
        self.diagnostics.push(diagnostic);
    }

    /// Reports that `span` nests too deeply, unless something inside it was the reason.
    pub fn report_too_deep(&mut self, span: Span) {
        let again = self.too_deep.is_some_and(|inner| span.contains(inner));
        self.too_deep = Some(span);
        if !again {
            self.report(
                Diagnostic::error(codes::TOO_DEEP, span, format!("this is nested more than {MAX_DEPTH} levels deep"))
                    .with_help("name a part with `let`, or make it a function"),
            );
        }
    }

    /// Forgets what a failed parse reported.
    pub fn rewind(&mut self, mark: (usize, Option<Span>)) {
        self.diagnostics.truncate(mark.0);
        self.too_deep = mark.1;
    }

    /// Where to [`Builder::rewind`] to.
    pub fn mark(&self) -> (usize, Option<Span>) {
        (self.diagnostics.len(), self.too_deep)
    }

    // ---- items and statements --------------------------------------------------------------------------------------

    pub fn item(&mut self, l: u32, attrs: Vec<Attr>, kind: ItemKind, r: u32) -> Item {
        Item { docs: self.docs_at(l), attrs, kind, span: self.span(l, r) }
    }

    /// The documentation before the item that starts at byte `l`.
    pub fn docs_at(&self, l: u32) -> String {
        let found = self.docs.binary_search_by_key(&l, |d| d.0);
        found.map(|i| self.docs[i].1.clone()).unwrap_or_default()
    }

    pub fn stmt(&mut self, l: u32, kind: StmtKind, r: u32) -> Stmt {
        let span = self.span(l, r);
        if stmt_depth(&kind) >= MAX_DEPTH {
            self.report_too_deep(span);
            return Stmt { kind: StmtKind::Error, span };
        }
        Stmt { kind, span }
    }

    pub fn let_tuple(&mut self, names: Vec<Ident>, value: Expr) -> StmtKind {
        match names.len() {
            1 => StmtKind::Let { names, ty: None, value },
            _ => StmtKind::LetTuple { names, value },
        }
    }

    /// A block. Empty statements leave no trace; an `if` at the end that has values is the block's value.
    pub fn block(&mut self, l: u32, mut stmts: Vec<Stmt>, tail: Option<Expr>, r: u32) -> Block {
        let source = self.text;
        stmts.retain(|s| s.kind != StmtKind::Error || source.get(s.span.range()) != Some(";"));
        let mut tail = tail;
        let valued = |s: &Stmt| matches!(&s.kind, StmtKind::If(i) if i.els.is_some() && i.then.tail.is_some());
        if tail.is_none() && stmts.last().is_some_and(valued) {
            let last = stmts.pop();
            if let Some(Stmt { kind: StmtKind::If(i), span }) = last {
                tail = Some(self.expr(span.start, ExprKind::If(i), span.end));
            }
        }
        let deepest = stmts.iter().map(|s| stmt_depth(&s.kind)).max().unwrap_or(0);
        let depth = 1 + deepest.max(tail.as_ref().map_or(0, |e| e.depth));
        let span = self.span(l, r);
        if depth > MAX_DEPTH {
            self.report_too_deep(span);
            return Block { stmts: Vec::new(), tail: None, span, depth: 1 };
        }
        Block { stmts, tail: tail.map(Box::new), span, depth }
    }

    /// Folds a list of conditions and blocks into the tree.
    pub fn if_chain(&mut self, mut chain: Vec<(u32, Expr, Block, u32)>, els: Option<Block>) -> IfStmt {
        if chain.len() as u32 >= MAX_DEPTH
            && let (Some(first), Some(last)) = (chain.first(), chain.last())
        {
            let span = self.span(first.0, last.3);
            self.report_too_deep(span);
            chain.truncate(1);
        }
        let end = els.as_ref().map(|b| b.span.end);
        let mut els = els.map(|b| Box::new(Else::Block(b)));
        while chain.len() > 1 {
            let Some((l, cond, then, r)) = chain.pop() else { break };
            let span = self.span(l, end.unwrap_or(r));
            els = Some(Box::new(Else::If(IfStmt { cond, then, els }, span)));
        }
        match chain.pop() {
            Some((_, cond, then, _)) => IfStmt { cond, then, els },
            None => {
                let span = self.span(0, 0);
                let then = Block { stmts: Vec::new(), tail: None, span, depth: 1 };
                IfStmt { cond: self.error_expr(span), then, els }
            }
        }
    }

    // ---- expressions -----------------------------------------------------------------------------------------------

    /// An expression node; an error node if it would be too high.
    pub fn expr(&mut self, l: u32, kind: ExprKind, r: u32) -> Expr {
        let span = self.span(l, r);
        let depth = 1 + children_depth(&kind);
        if depth > MAX_DEPTH {
            self.report_too_deep(span);
            return self.error_expr(span);
        }
        Expr { kind: Box::new(kind), span, depth }
    }

    pub fn error_expr(&self, span: Span) -> Expr {
        Expr { kind: Box::new(ExprKind::Error), span, depth: 1 }
    }

    pub fn unary(&mut self, ops: Vec<(u32, UnaryOp)>, operand: Expr, r: u32) -> Expr {
        ops.into_iter().rev().fold(operand, |e, (l, op)| self.expr(l, ExprKind::Unary(op, e), r))
    }

    /// `if` where a value is wanted: every branch must have one, so the last `else` cannot be missing.
    pub fn if_expr(&mut self, l: u32, i: IfStmt, r: u32) -> Expr {
        let mut last = &i;
        while let Some(Else::If(next, _)) = last.els.as_deref() {
            last = next;
        }
        if last.els.is_none() {
            let at = self.span(r, r);
            let d = Diagnostic::error(
                codes::IF_WITHOUT_ELSE,
                self.span(l, l + 2),
                "this `if` is a value but has no `else`",
            );
            self.report(d.with_suggestion("say what the value is otherwise", at, " else { 0 }"));
        }
        self.expr(l, ExprKind::If(i), r)
    }

    pub fn paren_or_tuple(&mut self, l: u32, mut list: Vec<Expr>, comma: bool, r: u32) -> Expr {
        match list.pop() {
            Some(only) if list.is_empty() && !comma => self.expr(l, ExprKind::Paren(only), r),
            last => {
                list.extend(last);
                self.expr(l, ExprKind::Tuple(list), r)
            }
        }
    }

    pub fn record(&mut self, l: u32, first: (Ident, Expr), rest: Vec<(Ident, Expr)>, r: u32) -> Expr {
        let fields = std::iter::once(first).chain(rest).collect();
        self.expr(l, ExprKind::Record(fields), r)
    }

    pub fn closure(&mut self, l: u32, params: Vec<ClosureParam>, body: Block, r: u32) -> Expr {
        if params.is_empty() {
            let bars = self.span(l, body.span.start);
            let d = Diagnostic::error(codes::MISSING_NAME, bars, "a closure has at least one parameter");
            self.report(d.with_help("what has none is a value: `let half = 0.5 * scale;`"));
        }
        self.expr(l, ExprKind::Closure(Closure { params, body }), r)
    }

    /// The block of a value alone.
    pub fn value_block(&mut self, value: Expr) -> Block {
        let (span, depth) = (value.span, value.depth + 1);
        Block { stmts: Vec::new(), tail: Some(Box::new(value)), span, depth }
    }

    pub fn int(&mut self, l: u32, r: u32) -> Expr {
        // A value that 128 bits do not hold was reported by the lexer.
        let kind = lexer::int_value(self.text(l, r)).map_or(ExprKind::Error, ExprKind::Int);
        self.expr(l, kind, r)
    }

    pub fn float(&mut self, l: u32, r: u32) -> Expr {
        let text = self.text(l, r);
        let kind = match text.replace('_', "").parse::<f64>() {
            Ok(value) if value.is_finite() => ExprKind::Float(value, Name::new(text)),
            _ => {
                let d =
                    Diagnostic::error(codes::NUMBER_TOO_LARGE, self.span(l, r), "this number is beyond every float");
                self.report(d.with_note("infinity is written `inf`"));
                ExprKind::Error
            }
        };
        self.expr(l, kind, r)
    }

    pub fn string(&self, l: u32, r: u32) -> String {
        lexer::string_value(self.text(l, r))
    }

    pub fn tuple_field(&mut self, l: u32, base: Expr, at: u32, r: u32) -> Expr {
        let span = self.span(at, r);
        match self.text(at, r).parse::<u32>() {
            Ok(index) => self.expr(l, ExprKind::TupleField(base, index, span), r),
            Err(_) => {
                let message = format!("`{}` is no field of a tuple", self.text(at, r));
                self.report(
                    Diagnostic::error(codes::BAD_NUMBER, span, message)
                        .with_note("fields are numbered `.0`, `.1`, and so on, in decimal"),
                );
                self.error_expr(self.span(l, r))
            }
        }
    }

    // ---- parts parsed before ---------------------------------------------------------------------------------------

    pub fn take_expr(&mut self, i: u32) -> Expr {
        let missing = self.error_expr(self.span(0, 0));
        take(&mut self.parts.exprs, i, self.trial).unwrap_or(missing)
    }

    pub fn take_arg(&mut self, i: u32) -> Arg {
        let missing = Arg { name: None, value: self.error_expr(self.span(0, 0)) };
        take(&mut self.parts.args, i, self.trial).unwrap_or(missing)
    }

    /// A named argument that is the field of a record.
    pub fn take_field(&mut self, i: u32) -> (Ident, Expr) {
        let arg = self.take_arg(i);
        (arg.name.unwrap_or_else(|| self.ident(arg.value.span.start, arg.value.span.start)), arg.value)
    }

    pub fn take_grid_var(&mut self, i: u32) -> (Ident, Expr) {
        let missing = (self.ident(0, 0), self.error_expr(self.span(0, 0)));
        take(&mut self.parts.grid_vars, i, self.trial).unwrap_or(missing)
    }

    pub fn take_block(&mut self, i: u32) -> Block {
        let missing = Block { stmts: Vec::new(), tail: None, span: self.span(0, 0), depth: 1 };
        take(&mut self.parts.blocks, i, self.trial).unwrap_or(missing)
    }

    pub fn take_param(&mut self, i: u32) -> Param {
        let (name, span) = (self.ident(0, 0), self.span(0, 0));
        let missing = Param { name, dir: None, ty: self.error_expr(span), at: None, over: None, default: None, span };
        take(&mut self.parts.params, i, self.trial).unwrap_or(missing)
    }

    pub fn take_static_param(&mut self, i: u32) -> StaticParam {
        let missing =
            StaticParam { name: self.ident(0, 0), kind: StaticKind::Type { default: None }, span: self.span(0, 0) };
        take(&mut self.parts.static_params, i, self.trial).unwrap_or(missing)
    }
}

fn take<T>(list: &mut [Option<T>], i: u32, trial: bool) -> Option<T> {
    if trial { None } else { list.get_mut(i as usize).and_then(Option::take) }
}

fn args_depth(args: &[Arg]) -> u32 {
    args.iter().map(|a| a.value.depth).max().unwrap_or(0)
}

fn exprs_depth<'a>(list: impl IntoIterator<Item = &'a Expr>) -> u32 {
    list.into_iter().map(|e| e.depth).max().unwrap_or(0)
}

/// Height of the children of a node.
fn children_depth(kind: &ExprKind) -> u32 {
    match kind {
        ExprKind::Name(_)
        | ExprKind::Int(_)
        | ExprKind::Float(..)
        | ExprKind::Bool(_)
        | ExprKind::Str(_)
        | ExprKind::Hole
        | ExprKind::FnType
        | ExprKind::Error => 0,
        ExprKind::Paren(e)
        | ExprKind::Unary(_, e)
        | ExprKind::Basis(e, _)
        | ExprKind::Field(e, _)
        | ExprKind::TupleField(e, ..) => e.depth,
        ExprKind::Tuple(list) | ExprKind::List(list) | ExprKind::Tiler(list) => exprs_depth(list),
        ExprKind::Binary(_, a, b) | ExprKind::Layout(a, b) | ExprKind::Range(a, b) => a.depth.max(b.depth),
        ExprKind::Index(e, args) | ExprKind::Call(e, args) | ExprKind::Static(e, args) => e.depth.max(args_depth(args)),
        ExprKind::Record(fields) => exprs_depth(fields.iter().map(|f| &f.1)),
        ExprKind::Closure(c) => c.body.depth.max(exprs_depth(c.params.iter().filter_map(|p| p.ty.as_ref()))),
        ExprKind::If(i) => if_depth(i),
        ExprKind::Tile { ty, at } => ty.depth.max(exprs_depth(at)),
        ExprKind::Tensor { ty, at, fill, .. } => ty.depth.max(exprs_depth(at)).max(exprs_depth(fill)),
    }
}

fn if_depth(i: &IfStmt) -> u32 {
    // A loop: only the last `else` is a block, so the chain is walked once.
    let (mut deepest, mut level, mut node) = (0, 0, i);
    loop {
        deepest = deepest.max(level + node.cond.depth.max(node.then.depth));
        match node.els.as_deref() {
            Some(Else::If(next, _)) => (level, node) = (level + 1, next),
            Some(Else::Block(b)) => return deepest.max(level + b.depth),
            None => return deepest,
        }
    }
}

/// Height of a statement.
fn stmt_depth(kind: &StmtKind) -> u32 {
    match kind {
        StmtKind::Let { ty, value, .. } | StmtKind::Var { ty, value, .. } => value.depth.max(exprs_depth(ty)),
        StmtKind::LetTuple { value, .. } => value.depth,
        StmtKind::Const(c) => c.value.depth.max(exprs_depth(&c.ty)),
        StmtKind::Assign { target, value } | StmtKind::OpAssign { target, value, .. } => target.depth.max(value.depth),
        StmtKind::Expr(e) => e.depth,
        StmtKind::If(i) => 1 + if_depth(i),
        StmtKind::For { range, body, .. } => range.depth.max(body.depth),
        StmtKind::Pipeline { args, range, body, .. } => range.depth.max(body.depth).max(args_depth(args)),
        StmtKind::Role { body, .. } => body.depth,
        StmtKind::While { cond, body } => cond.depth.max(body.depth),
        StmtKind::Grid { vars, clauses } => {
            let clause = |c: &GridClause| match c {
                GridClause::On(e) => e.depth,
                GridClause::Option(_, args) => args_depth(args),
            };
            exprs_depth(vars.iter().map(|v| &v.1)).max(clauses.iter().map(clause).max().unwrap_or(0))
        }
        StmtKind::Return(value) => exprs_depth(value),
        StmtKind::Break | StmtKind::Continue | StmtKind::Error => 0,
    }
}

//! Other places for a tree: a file whose text was made from another one points into that one.

use crate::ast::*;
use ptoc_diagnostics::Span;

/// Puts `f` of it in place of every span of the tree.
pub fn respan(file: &mut File, f: &dyn Fn(Span) -> Span) {
    let r = Respan { f };
    file.items.iter_mut().for_each(|item| r.item(item));
}

struct Respan<'f> {
    f: &'f dyn Fn(Span) -> Span,
}

impl Respan<'_> {
    fn span(&self, span: &mut Span) {
        *span = (self.f)(*span);
    }

    fn ident(&self, ident: &mut Ident) {
        self.span(&mut ident.span);
    }

    fn idents(&self, list: &mut [Ident]) {
        list.iter_mut().for_each(|i| self.ident(i));
    }

    fn exprs(&self, list: &mut [Expr]) {
        list.iter_mut().for_each(|e| self.expr(e));
    }

    fn maybe(&self, e: &mut Option<Expr>) {
        e.iter_mut().for_each(|e| self.expr(e));
    }

    fn args(&self, list: &mut [Arg]) {
        for arg in list {
            arg.name.iter_mut().for_each(|n| self.ident(n));
            self.expr(&mut arg.value);
        }
    }

    fn item(&self, item: &mut Item) {
        self.span(&mut item.span);
        item.attrs.iter_mut().for_each(|a| self.attr(a));
        match &mut item.kind {
            ItemKind::Use(path) => self.idents(path),
            ItemKind::Const(c) => self.constant(c),
            ItemKind::Fn(f) => {
                self.ident(&mut f.name);
                f.statics.iter_mut().for_each(|s| self.static_param(s));
                f.params.iter_mut().for_each(|p| self.param(p));
                self.maybe(&mut f.ret);
                self.block(&mut f.body);
            }
            ItemKind::Kernel(k) | ItemKind::Program(k) => {
                self.ident(&mut k.name);
                k.statics.iter_mut().for_each(|s| self.static_param(s));
                k.params.iter_mut().for_each(|p| self.param(p));
                self.exprs(&mut k.wheres);
                self.exprs(&mut k.ensures);
                self.block(&mut k.body);
            }
            ItemKind::Atom(a) => {
                self.ident(&mut a.name);
                for (name, value) in &mut a.fields {
                    self.ident(name);
                    self.expr(value);
                }
            }
            ItemKind::Error => {}
        }
    }

    fn attr(&self, attr: &mut Attr) {
        self.ident(&mut attr.name);
        self.span(&mut attr.span);
        for arg in &mut attr.args {
            match arg {
                AttrArg::Name(name) => self.ident(name),
                AttrArg::Str(_, span) => self.span(span),
                AttrArg::Value(name, value) => {
                    self.ident(name);
                    self.expr(value);
                }
            }
        }
    }

    fn constant(&self, c: &mut ConstItem) {
        self.ident(&mut c.name);
        self.maybe(&mut c.ty);
        self.expr(&mut c.value);
    }

    fn static_param(&self, s: &mut StaticParam) {
        self.ident(&mut s.name);
        self.span(&mut s.span);
        match &mut s.kind {
            StaticKind::Const { ty, default, tune } => {
                self.maybe(ty);
                self.maybe(default);
                self.exprs(tune);
            }
            StaticKind::Type { default } => self.maybe(default),
            StaticKind::Fn { default } => default.iter_mut().for_each(|d| self.ident(d)),
        }
    }

    fn param(&self, p: &mut Param) {
        self.ident(&mut p.name);
        self.span(&mut p.span);
        p.dir.iter_mut().for_each(|(_, span)| self.span(span));
        self.expr(&mut p.ty);
        self.maybe(&mut p.at);
        p.over.iter_mut().for_each(|o| self.ident(o));
        self.maybe(&mut p.default);
    }

    fn block(&self, block: &mut Block) {
        self.span(&mut block.span);
        block.stmts.iter_mut().for_each(|s| self.stmt(s));
        block.tail.iter_mut().for_each(|e| self.expr(e));
    }

    fn stmt(&self, stmt: &mut Stmt) {
        self.span(&mut stmt.span);
        match &mut stmt.kind {
            StmtKind::Let { names, ty, value } => {
                self.idents(names);
                self.maybe(ty);
                self.expr(value);
            }
            StmtKind::LetTuple { names, value } => {
                self.idents(names);
                self.expr(value);
            }
            StmtKind::Var { name, ty, value } => {
                self.ident(name);
                self.maybe(ty);
                self.expr(value);
            }
            StmtKind::Const(c) => self.constant(c),
            StmtKind::Assign { target, value } => {
                self.expr(target);
                self.expr(value);
            }
            StmtKind::OpAssign { target, op_span, value, .. } => {
                self.expr(target);
                self.span(op_span);
                self.expr(value);
            }
            StmtKind::Expr(e) => self.expr(e),
            StmtKind::If(i) => self.branch(i),
            StmtKind::For { attrs, var, range, body } => {
                attrs.iter_mut().for_each(|a| self.attr(a));
                self.ident(var);
                self.expr(range);
                self.block(body);
            }
            StmtKind::Pipeline { args, var, range, body } => {
                self.args(args);
                self.ident(var);
                self.expr(range);
                self.block(body);
            }
            StmtKind::While { cond, body } => {
                self.expr(cond);
                self.block(body);
            }
            StmtKind::Role { name, body } => {
                self.ident(name);
                self.block(body);
            }
            StmtKind::Grid { vars, clauses } => {
                for (name, range) in vars {
                    self.ident(name);
                    self.expr(range);
                }
                for clause in clauses {
                    match clause {
                        GridClause::On(e) => self.expr(e),
                        GridClause::Option(name, args) => {
                            self.ident(name);
                            self.args(args);
                        }
                    }
                }
            }
            StmtKind::Return(e) => self.maybe(e),
            StmtKind::Break | StmtKind::Continue | StmtKind::Error => {}
        }
    }

    fn branch(&self, i: &mut IfStmt) {
        self.expr(&mut i.cond);
        self.block(&mut i.then);
        match i.els.as_deref_mut() {
            Some(Else::Block(block)) => self.block(block),
            Some(Else::If(i, span)) => {
                self.span(span);
                self.branch(i);
            }
            None => {}
        }
    }

    fn expr(&self, e: &mut Expr) {
        self.span(&mut e.span);
        match &mut *e.kind {
            ExprKind::Paren(e) | ExprKind::Unary(_, e) => self.expr(e),
            ExprKind::Tuple(list) | ExprKind::List(list) | ExprKind::Tiler(list) => self.exprs(list),
            ExprKind::Record(fields) => {
                for (name, value) in fields {
                    self.ident(name);
                    self.expr(value);
                }
            }
            ExprKind::Binary(_, a, b) | ExprKind::Layout(a, b) | ExprKind::Range(a, b) => {
                self.expr(a);
                self.expr(b);
            }
            ExprKind::Basis(e, name) | ExprKind::Field(e, name) => {
                self.expr(e);
                self.ident(name);
            }
            ExprKind::Index(e, args) | ExprKind::Call(e, args) | ExprKind::Static(e, args) => {
                self.expr(e);
                self.args(args);
            }
            ExprKind::TupleField(e, _, span) => {
                self.expr(e);
                self.span(span);
            }
            ExprKind::If(i) => self.branch(i),
            ExprKind::Tile { ty, at } => {
                self.expr(ty);
                self.maybe(at);
            }
            ExprKind::Tensor { ty, at, over, fill } => {
                self.expr(ty);
                self.maybe(at);
                over.iter_mut().for_each(|o| self.ident(o));
                self.maybe(fill);
            }
            ExprKind::Closure(c) => {
                for param in &mut c.params {
                    self.ident(&mut param.name);
                    self.maybe(&mut param.ty);
                }
                self.block(&mut c.body);
            }
            ExprKind::Name(_)
            | ExprKind::Int(_)
            | ExprKind::Float(..)
            | ExprKind::Bool(_)
            | ExprKind::Str(_)
            | ExprKind::Hole
            | ExprKind::FnType
            | ExprKind::Error => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use ptoc_diagnostics::{FileId, Span};

    /// Every span of a tree is reached: its printed form has no other place left.
    #[test]
    fn every_place_is_another_one() {
        let text = "//! f\nuse a::b;\nconst N: f32 = 1;\natom A { x = 1; }\nfn f<const N = 1, type T = f16, \
            fn g = h>(x: in f32[N]) -> f32 { if x > 1 { return x; } else if x < 2 { 1 } else { 2 } \
            }\n#[disjoint(y, \"z\")]\nkernel k(x: in f32[M, (2, 3) : (3, 1)], s: f32 = 1.0) where M > 1 \
            ensures y[i] == x[i] {\n grid (i in tiles(M, 16)) raster(along = i);\n let a, b: f32 = x.0; let \
            (c, d) = (x = 1, y = 2); var e = 1; e += 2; e = [1, <2>]; \n for p in 0..3 { break; } \
            pipeline(stages = 2) for p in i { continue; } while e > 1 { print(\"a\"); } role r { } let t = \
            tile Vec<f32, i, 3>[2] at 0x0; let g = tensor f32[M] at 1@r over u fill 0; let w = \
            |v: f32| -v; return;\n}\n";
        let mut file = crate::parse(FileId(0), text).file;
        let one = Span::new(FileId(7), 1234, 1235);
        super::respan(&mut file, &|_| one);
        let shown = format!("{file:?}");
        assert!(shown.contains("7:1234..1235"));
        assert!(!shown.contains("span: 0:"), "{shown}");
        assert!(!shown.contains(" 0:"), "{shown}");
    }
}

//! The syntax tree. Types are expressions (`f32[M, N]`, `Vec<f32, i, j>`), as the grammar has them.
//!
//! Trees are never deeper than [`MAX_DEPTH`]: the constructors of [`Expr`] and [`Block`] track height, and the parser
//! replaces what is deeper by an error node, so that every later pass may recurse.

use ptoc_diagnostics::Span;
pub use smol_str::SmolStr as Name;

/// Greatest height of a tree.
pub const MAX_DEPTH: u32 = 256;

/// A name at a place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ident {
    /// The text.
    pub name: Name,
    /// Where.
    pub span: Span,
}

/// One source file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct File {
    /// The text of the `//!` lines, without the marks.
    pub docs: String,
    /// Items in source order.
    pub items: Vec<Item>,
}

/// An item with its documentation and attributes.
#[derive(Clone, Debug, PartialEq)]
pub struct Item {
    /// The text of the `///` lines, without the marks.
    pub docs: String,
    /// `#[name(args)]`.
    pub attrs: Vec<Attr>,
    /// What it is.
    pub kind: ItemKind,
    /// From the first attribute to the closing brace or `;`.
    pub span: Span,
}

/// The kinds of items.
#[derive(Clone, Debug, PartialEq)]
pub enum ItemKind {
    /// `use a::b;`
    Use(Vec<Ident>),
    /// `const NAME: ty = value;`
    Const(ConstItem),
    /// `fn`
    Fn(FnItem),
    /// `kernel`
    Kernel(KernelItem),
    /// `program`; same shape as a kernel, without `ensures`.
    Program(KernelItem),
    /// `atom NAME { field = value; }`
    Atom(AtomItem),
    /// Reported already.
    Error,
}

/// `#[name(arg, "text")]`
#[derive(Clone, Debug, PartialEq)]
pub struct Attr {
    /// `sync`, `place`, `disjoint`, `on`.
    pub name: Ident,
    /// What stands in the parentheses.
    pub args: Vec<AttrArg>,
    /// All of it.
    pub span: Span,
}

/// An argument of an attribute.
#[derive(Clone, Debug, PartialEq)]
pub enum AttrArg {
    /// A bare word.
    Name(Ident),
    /// A quoted text.
    Str(String, Span),
    /// `name = value`
    Value(Ident, Expr),
}

/// `const NAME: ty = value;`
#[derive(Clone, Debug, PartialEq)]
pub struct ConstItem {
    /// The name.
    pub name: Ident,
    /// The declared type.
    pub ty: Option<Expr>,
    /// The value.
    pub value: Expr,
}

/// `atom NAME { .. }`
#[derive(Clone, Debug, PartialEq)]
pub struct AtomItem {
    /// The name.
    pub name: Ident,
    /// The fields.
    pub fields: Vec<(Ident, Expr)>,
}

/// A function, scalar or over tiles.
#[derive(Clone, Debug, PartialEq)]
pub struct FnItem {
    /// The name.
    pub name: Ident,
    /// `<const .., type .., fn ..>`
    pub statics: Vec<StaticParam>,
    /// `(x: f32, ..)`
    pub params: Vec<Param>,
    /// `-> ty`
    pub ret: Option<Expr>,
    /// The body.
    pub body: Block,
}

/// A kernel or program.
#[derive(Clone, Debug, PartialEq)]
pub struct KernelItem {
    /// The name.
    pub name: Ident,
    /// `<const .., type .., fn ..>`
    pub statics: Vec<StaticParam>,
    /// `(a: in f32[M, N], ..)`
    pub params: Vec<Param>,
    /// `where` conditions.
    pub wheres: Vec<Expr>,
    /// `ensures` equations.
    pub ensures: Vec<Expr>,
    /// The body.
    pub body: Block,
}

/// A parameter in `<..>`.
#[derive(Clone, Debug, PartialEq)]
pub struct StaticParam {
    /// The name.
    pub name: Ident,
    /// Which kind, with its default.
    pub kind: StaticKind,
    /// All of it.
    pub span: Span,
}

/// The kinds of static parameters.
#[derive(Clone, Debug, PartialEq)]
pub enum StaticKind {
    /// `const N: ty = default tune [..]`
    Const {
        /// Declared type (`layout`, `f32`, ...).
        ty: Option<Expr>,
        /// Default value.
        default: Option<Expr>,
        /// Candidates for the tuner.
        tune: Vec<Expr>,
    },
    /// `type T = f16`
    Type {
        /// Default type.
        default: Option<Expr>,
    },
    /// `fn act = gelu`
    Fn {
        /// Default function.
        default: Option<Ident>,
    },
}

/// Direction of a tensor argument of a kernel, or of a tile argument of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dir {
    /// Read only.
    In,
    /// Written before it is read.
    Out,
    /// Both.
    InOut,
}

/// A value parameter.
#[derive(Clone, Debug, PartialEq)]
pub struct Param {
    /// The name.
    pub name: Ident,
    /// `in`, `out`, `inout`.
    pub dir: Option<(Dir, Span)>,
    /// The type.
    pub ty: Expr,
    /// `at layout`
    pub at: Option<Expr>,
    /// `over unit`
    pub over: Option<Ident>,
    /// `= default`
    pub default: Option<Expr>,
    /// All of it.
    pub span: Span,
}

/// `{ stmts tail }`
#[derive(Clone, Debug, PartialEq)]
pub struct Block {
    /// The statements.
    pub stmts: Vec<Stmt>,
    /// A last expression without `;`: the value.
    pub tail: Option<Box<Expr>>,
    /// With the braces.
    pub span: Span,
    /// Height of the tree.
    pub depth: u32,
}

/// A statement.
#[derive(Clone, Debug, PartialEq)]
pub struct Stmt {
    /// What it is.
    pub kind: StmtKind,
    /// With its `;`.
    pub span: Span,
}

/// The kinds of statements.
#[derive(Clone, Debug, PartialEq)]
pub enum StmtKind {
    /// `let a, b: ty = value;` each name gets a value (a tile) of its own.
    Let {
        /// At least one.
        names: Vec<Ident>,
        /// Declared type.
        ty: Option<Expr>,
        /// The value.
        value: Expr,
    },
    /// `let (a, b) = value;` (`let (a) = value;` is a plain [`StmtKind::Let`])
    LetTuple {
        /// At least two.
        names: Vec<Ident>,
        /// A tuple.
        value: Expr,
    },
    /// `var a: ty = value;` a mutable scalar.
    Var {
        /// The name.
        name: Ident,
        /// Declared type.
        ty: Option<Expr>,
        /// Initial value.
        value: Expr,
    },
    /// `const A: ty = value;`
    Const(ConstItem),
    /// `target = value;`
    Assign {
        /// A variable, a tile, or an element of a tensor or tile.
        target: Expr,
        /// The value.
        value: Expr,
    },
    /// `target += value;`
    OpAssign {
        /// As for [`StmtKind::Assign`].
        target: Expr,
        /// The operator before `=`.
        op: BinaryOp,
        /// Where the operator stands.
        op_span: Span,
        /// The value.
        value: Expr,
    },
    /// `expr;`
    Expr(Expr),
    /// `if .. {} else {}`. As the last statement of a block, if it has an `else` and its first branch has a value, it
    /// is the block's tail instead ([`ExprKind::If`]).
    If(IfStmt),
    /// `for p in range {}`
    For {
        /// Attributes.
        attrs: Vec<Attr>,
        /// The loop variable.
        var: Ident,
        /// A range, `tiles(..)`, a block, or a list.
        range: Expr,
        /// The body.
        body: Block,
    },
    /// `pipeline(stages = n) for p in range {}`
    Pipeline {
        /// `stages = n`.
        args: Vec<Arg>,
        /// The loop variable.
        var: Ident,
        /// As for `for`.
        range: Expr,
        /// The body.
        body: Block,
    },
    /// `while cond {}`
    While {
        /// The condition.
        cond: Expr,
        /// The body.
        body: Block,
    },
    /// `role name {}`
    Role {
        /// The issuer.
        name: Ident,
        /// What it issues.
        body: Block,
    },
    /// `grid (i in tiles(M, 16), ..) raster(..) on layout;`
    Grid {
        /// The block variables.
        vars: Vec<(Ident, Expr)>,
        /// `raster(..)`, `on layout`.
        clauses: Vec<GridClause>,
    },
    /// `return value;`
    Return(Option<Expr>),
    /// `break;`
    Break,
    /// `continue;`
    Continue,
    /// Reported already.
    Error,
}

/// A clause after the variables of `grid`.
#[derive(Clone, Debug, PartialEq)]
pub enum GridClause {
    /// `on layout`
    On(Expr),
    /// `raster(along = N, swizzle = 4)`
    Option(Ident, Vec<Arg>),
}

/// `if cond {} else ..`
#[derive(Clone, Debug, PartialEq)]
pub struct IfStmt {
    /// The condition.
    pub cond: Expr,
    /// When true.
    pub then: Block,
    /// When false.
    pub els: Option<Box<Else>>,
}

/// What follows `else`.
#[derive(Clone, Debug, PartialEq)]
pub enum Else {
    /// `else {}`
    Block(Block),
    /// `else if`
    If(IfStmt, Span),
}

/// An expression.
#[derive(Clone, Debug, PartialEq)]
pub struct Expr {
    /// What it is.
    pub kind: Box<ExprKind>,
    /// Where.
    pub span: Span,
    /// Height of the tree.
    pub depth: u32,
}

impl Expr {
    /// The fields of a record's type, `(x: f32, y: Vec<f32, r, c>)`: as an expression, a tuple of layouts.
    pub fn record_type(&self) -> Option<Vec<(Ident, &Expr)>> {
        fn field(e: &Expr) -> Option<(Ident, &Expr)> {
            let ExprKind::Layout(name, ty) = &*e.kind else { return None };
            let ExprKind::Name(n) = &*name.kind else { return None };
            Some((Ident { name: n.clone(), span: name.span }, ty))
        }
        let ExprKind::Tuple(list) = &*self.kind else { return None };
        list.iter().map(field).collect::<Option<Vec<_>>>().filter(|fields| !fields.is_empty())
    }
}

/// An argument of a call, an index, or a static argument list.
#[derive(Clone, Debug, PartialEq)]
pub struct Arg {
    /// `name =`
    pub name: Option<Ident>,
    /// The value.
    pub value: Expr,
}

/// The kinds of expressions.
#[derive(Clone, Debug, PartialEq)]
pub enum ExprKind {
    /// A name.
    Name(Name),
    /// An integer literal; those beyond `i128` were reported and became [`ExprKind::Error`].
    Int(i128),
    /// A float literal, as `f64` and as written.
    Float(f64, Name),
    /// `true`, `false`
    Bool(bool),
    /// A string, escapes resolved.
    Str(String),
    /// `_`
    Hole,
    /// `(e)`
    Paren(Expr),
    /// `(a, b)`, `(a,)`, `()`
    Tuple(Vec<Expr>),
    /// `(x = a, y = b)`, `(x = a,)`
    Record(Vec<(Ident, Expr)>),
    /// `[a, b]`
    List(Vec<Expr>),
    /// `<a, b>` a tiler
    Tiler(Vec<Expr>),
    /// `-a`, `!a`
    Unary(UnaryOp, Expr),
    /// `a + b`
    Binary(BinaryOp, Expr, Expr),
    /// `shape : stride`
    Layout(Expr, Expr),
    /// `e @ name`; in layouts the name may be a mode's number (`1@0`)
    Basis(Expr, Ident),
    /// `base[args]`
    Index(Expr, Vec<Arg>),
    /// `callee(args)`
    Call(Expr, Vec<Arg>),
    /// `base.name`
    Field(Expr, Ident),
    /// `base.0`
    TupleField(Expr, u32, Span),
    /// `base<args>`
    Static(Expr, Vec<Arg>),
    /// `lo .. hi`
    Range(Expr, Expr),
    /// `if cond { a } else { b }`
    If(IfStmt),
    /// `tile ty at addr`
    Tile {
        /// `Vec<f32, i, j>`, perhaps indexed `[n]`.
        ty: Expr,
        /// Address or list of addresses.
        at: Option<Expr>,
    },
    /// `tensor ty at layout over name fill value`
    Tensor {
        /// `f32[M, N]`
        ty: Expr,
        /// Placement.
        at: Option<Expr>,
        /// Replication.
        over: Option<Ident>,
        /// Initial value of every element.
        fill: Option<Expr>,
    },
    /// `|v| v * scale`
    Closure(Closure),
    /// `fn`, the type of a parameter or result that is a function
    FnType,
    /// Reported already.
    Error,
}

/// A function without a name, where it is used.
#[derive(Clone, Debug, PartialEq)]
pub struct Closure {
    /// At least one.
    pub params: Vec<ClosureParam>,
    /// What it computes. An expression without braces is a block of that value alone.
    pub body: Block,
}

/// A parameter of a closure.
#[derive(Clone, Debug, PartialEq)]
pub struct ClosureParam {
    /// The name.
    pub name: Ident,
    /// Its type; anything if there is none.
    pub ty: Option<Expr>,
}

/// Prefix operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnaryOp {
    /// `-`
    Neg,
    /// `!`
    Not,
}

/// Infix operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the names are the operators' own")]
pub enum BinaryOp {
    Add,
    Sub,
    Mul,
    Div,
    Rem,
    BitAnd,
    BitOr,
    BitXor,
    Shl,
    Shr,
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    And,
    Or,
}

impl BinaryOp {
    /// How it is written.
    pub fn symbol(self) -> &'static str {
        match self {
            BinaryOp::Add => "+",
            BinaryOp::Sub => "-",
            BinaryOp::Mul => "*",
            BinaryOp::Div => "/",
            BinaryOp::Rem => "%",
            BinaryOp::BitAnd => "&",
            BinaryOp::BitOr => "|",
            BinaryOp::BitXor => "^",
            BinaryOp::Shl => "<<",
            BinaryOp::Shr => ">>",
            BinaryOp::Eq => "==",
            BinaryOp::Ne => "!=",
            BinaryOp::Lt => "<",
            BinaryOp::Le => "<=",
            BinaryOp::Gt => ">",
            BinaryOp::Ge => ">=",
            BinaryOp::And => "&&",
            BinaryOp::Or => "||",
        }
    }
}

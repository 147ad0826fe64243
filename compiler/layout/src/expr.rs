//! Expressions of layouts: [`parse_value`] reads a value, [`eval_expr`] evaluates operations on values.

use crate::ops::Offset;
use crate::text::{self, Expr, ExprKind, TextSpan};
use crate::{
    Composed, Cx, Int, IntTuple, Layout, LayoutError, LayoutWindow, Stride, Swizzle, Tiler, Tuple, Value, ops,
};
use std::collections::BTreeMap;
use std::fmt;

/// Values that have names: the atoms of the library, say.
#[derive(Clone, Default, Debug)]
pub struct Env {
    values: BTreeMap<String, Value>,
}

impl Env {
    /// No names.
    pub fn new() -> Env {
        Env::default()
    }

    /// From here on `name` means `value`.
    pub fn insert(&mut self, name: impl Into<String>, value: Value) {
        self.values.insert(name.into(), value);
    }

    /// What `name` means.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.values.get(name)
    }

    /// Every name, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.values.keys().map(String::as_str)
    }
}

/// What is wrong with a text or its evaluation.
#[derive(Clone, PartialEq, Debug)]
pub enum ExprErrorKind {
    /// It is no expression, or values of such kinds cannot stand together so.
    Syntax,
    /// Nothing has this name. Names that are near it are for the caller to suggest, who knows how.
    UnknownName(String),
    /// No operation has this name.
    UnknownOperation(String),
    /// An operation has another number of arguments.
    Arity,
    /// An operation refuses its arguments.
    Layout(Box<LayoutError>),
}

/// A refusal and its place in the text.
#[derive(Clone, PartialEq, Debug)]
pub struct ExprError {
    /// What is wrong, by kind.
    pub kind: ExprErrorKind,
    /// The bytes to blame: of a refused operation its argument, if one is to blame.
    pub span: TextSpan,
    /// One sentence, lower case, no full stop.
    pub message: String,
    /// The remark at `span`; may be empty.
    pub label: String,
    /// Further places with their remarks.
    pub labels: Vec<(TextSpan, String)>,
    /// What would mend it.
    pub help: Option<String>,
}

impl ExprError {
    pub(crate) fn new(kind: ExprErrorKind, span: TextSpan, message: impl Into<String>) -> ExprError {
        ExprError { kind, span, message: message.into(), label: String::new(), labels: Vec::new(), help: None }
    }

    pub(crate) fn label(self, label: impl Into<String>) -> ExprError {
        ExprError { label: label.into(), ..self }
    }

    pub(crate) fn also(mut self, span: TextSpan, label: impl Into<String>) -> ExprError {
        self.labels.push((span, label.into()));
        self
    }

    pub(crate) fn help(self, help: impl Into<String>) -> ExprError {
        ExprError { help: Some(help.into()), ..self }
    }

    /// An error of a literal's own.
    fn of_literal(e: LayoutError, span: TextSpan) -> ExprError {
        let mut error = ExprError::new(ExprErrorKind::Syntax, span, e.message.clone());
        error.help = e.help.clone();
        error.kind = ExprErrorKind::Layout(Box::new(e));
        error
    }
}

impl fmt::Display for ExprError {
    /// The message; its place needs the text: [`ExprError::located`].
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ExprError {}

impl ExprError {
    /// A refusal of the value of the whole text.
    pub fn whole(e: LayoutError, text: &str) -> ExprError {
        let start = text.len() - text.trim_start().len();
        ExprError::of_literal(e, start..text.trim_end().len().max(start))
    }

    /// One line: `column 15: message; help`. `text` is what was evaluated.
    pub fn located(&self, text: &str) -> String {
        let column = text[..text.floor_char_boundary(self.span.start)].chars().count() + 1;
        let mut out = format!("column {column}: {}", self.message);
        if let Some(help) = &self.help {
            out.push_str("; ");
            out.push_str(help);
        }
        out
    }
}

/// Reads a value in CuTe's notation: `4`, `(4,(2,2))`, `(4,8):(1,4)`, `<4:1,_>`, `Sw<3,0,3> o 0 o (8,8):(8,1)`, ..
/// Operations are evaluated; names have no meaning here.
pub fn parse_value(text: &str) -> Result<Value, ExprError> {
    eval_expr(&Cx::default(), &Env::new(), text)
}

/// Evaluates an expression of values, names and operations: `zipped_divide((128,64):(1,128), <32:1,16:1>)`.
pub fn eval_expr(cx: &Cx, env: &Env, text: &str) -> Result<Value, ExprError> {
    let tree = text::parse(text)?;
    Evaluator { cx, env, whole: &tree }.value(&tree)
}

struct Evaluator<'c> {
    cx: &'c Cx,
    env: &'c Env,
    /// The tree of the whole text.
    whole: &'c Expr,
}

type Evaluated<T> = Result<T, ExprError>;

fn syntax(span: &TextSpan, message: impl Into<String>) -> ExprError {
    ExprError::new(ExprErrorKind::Syntax, span.clone(), message)
}

impl Evaluator<'_> {
    fn value(&self, e: &Expr) -> Evaluated<Value> {
        Ok(match &e.kind {
            ExprKind::Int(n) => Value::Int(Int::from(*n)),
            ExprKind::Keep => Value::Keep,
            ExprKind::Skip => Value::Skip,
            ExprKind::Bool(b) => Value::Bool(*b),
            ExprKind::Tuple(entries) => Value::Tuple(entries.iter().map(|e| self.value(e)).collect::<Result<_, _>>()?),
            ExprKind::Tiler(entries) => {
                Value::Tiler(Tiler::ByMode(entries.iter().map(|e| self.tiler(e)).collect::<Result<_, _>>()?))
            }
            ExprKind::Pair(shape, stride) => {
                let (shape, stride) = (self.shape(shape)?, self.stride(stride)?);
                Value::Layout(Layout::new(shape, stride).map_err(|x| ExprError::of_literal(x, e.span.clone()))?)
            }
            ExprKind::Basis(..) => {
                let error = syntax(&e.span, "a unit of a coordinate (`@`) stands only in strides");
                return Err(error.help("write a layout of it: `(4,8):(1@0,1@1)`"));
            }
            ExprKind::Sum(_) | ExprKind::Product(_) | ExprKind::Neg(_) => Value::Int(self.int(e)?),
            ExprKind::Swizzle(fields) => Value::Swizzle(self.swizzle(e, *fields)?),
            ExprKind::Compose(parts) => self.compose(e, parts)?,
            ExprKind::Name { name, full } => self.name(e, name, full.as_deref())?,
            ExprKind::Call { name, name_span, args } => self.call(e, name, name_span, args)?,
        })
    }

    fn name(&self, e: &Expr, name: &str, full: Option<&str>) -> Evaluated<Value> {
        let found = full.and_then(|full| self.env.get(full)).or_else(|| self.env.get(name));
        found.cloned().ok_or_else(|| match ops::find(name) {
            Some(op) => {
                let error = ExprError::new(ExprErrorKind::Arity, e.span.clone(), format!("`{name}` needs arguments"));
                error.label("an operation").help(format!("call it: `{}`", op.usage))
            }
            None => {
                let kind = ExprErrorKind::UnknownName(name.to_owned());
                ExprError::new(kind, e.span.clone(), format!("nothing is called `{name}`"))
            }
        })
    }

    fn call(&self, e: &Expr, name: &str, name_span: &TextSpan, args: &[Expr]) -> Evaluated<Value> {
        let Some(op) = ops::find(name) else {
            if let Some(value) = self.env.get(name) {
                let error = syntax(name_span, format!("`{name}` is {}, not an operation", value.describe()));
                return Err(error);
            }
            let kind = ExprErrorKind::UnknownOperation(name.to_owned());
            return Err(ExprError::new(kind, name_span.clone(), format!("there is no operation `{name}`")));
        };
        let (least, most) = op.arity;
        if args.len() < least || args.len() > most {
            let count = |n: usize| format!("{n} argument{}", if n == 1 { "" } else { "s" });
            let takes = match least == most {
                true => count(least),
                false if most == usize::MAX => format!("at least {}", count(least)),
                false if most == least + 1 => format!("{least} or {}", count(most)),
                false => format!("{least} to {}", count(most)),
            };
            let message = format!("`{name}` takes {takes}, not {}", args.len());
            // What is too much, or the end, where something is missing.
            let span = match args.get(most..) {
                Some([first, ..]) => first.span.start..args[args.len() - 1].span.end,
                _ => e.span.end - 1..e.span.end,
            };
            let label = if args.len() > most { "too many" } else { "arguments are missing" };
            let error = ExprError::new(ExprErrorKind::Arity, span, message).label(label);
            return Err(error.help(format!("call it: `{}`", op.usage)));
        }
        let values = args.iter().map(|e| self.value(e)).collect::<Result<Vec<_>, _>>()?;
        op.call(self.cx, &values).map_err(|x| {
            // Which of several operations it is must be said.
            let named = (!std::ptr::eq(e, self.whole)).then_some(name_span);
            refused(x, e, named, args, &values)
        })
    }

    /// `swizzle o offset o layout`, or `start o layout`.
    fn compose(&self, e: &Expr, parts: &[Expr]) -> Evaluated<Value> {
        let help = "a swizzled layout is `Sw<3,0,3> o 0 o (8,8):(8,1)`, a tile of a layout `96 o (4,2):(24,1)`; \
                    layouts are composed by `composition(A, B)`";
        let wrong = |e: &Expr, value: &Value| {
            syntax(&e.span, format!("{} cannot stand here", value.describe())).label("beside this `o`").help(help)
        };
        let layout = |e: &Expr| match self.value(e)? {
            Value::Layout(layout) => Ok(layout),
            other => Err(wrong(e, &other)),
        };
        match parts {
            [swizzle, offset, inner] => {
                let swizzle = match self.value(swizzle)? {
                    Value::Swizzle(s) => s,
                    other => return Err(wrong(swizzle, &other)),
                };
                let offset = match self.value(offset)? {
                    Value::Int(n) => n,
                    other => return Err(wrong(offset, &other)),
                };
                Ok(Value::Composed(Composed { swizzle, offset, layout: layout(inner)? }))
            }
            [start, inner] => {
                let start = match (self.basis(start)?, start) {
                    (Some(unit), _) => Offset::Unit(unit),
                    (None, start) => match self.value(start)? {
                        Value::Int(n) => Offset::Int(n),
                        other => Offset::Coord(other.as_ints().ok_or_else(|| wrong(start, &other))?),
                    },
                };
                Ok(Value::Window(LayoutWindow { start, layout: layout(inner)? }))
            }
            _ => Err(syntax(&e.span, format!("`o` joins two or three parts, here are {}", parts.len())).help(help)),
        }
    }

    fn swizzle(&self, e: &Expr, [bits, base, shift]: [i64; 3]) -> Evaluated<Swizzle> {
        Swizzle::new(bits, base, shift).map_err(|x| ExprError::of_literal(x, e.span.clone()))
    }

    fn shape(&self, e: &Expr) -> Evaluated<IntTuple> {
        if let ExprKind::Tuple(entries) = &e.kind {
            return Ok(Tuple::Node(entries.iter().map(|e| self.shape(e)).collect::<Result<_, _>>()?));
        }
        let value = self.value(e)?;
        value.as_ints().ok_or_else(|| {
            syntax(&e.span, format!("an extent is an integer; {} is not", value.describe()))
                .label("in the shape of a layout")
        })
    }

    fn stride(&self, e: &Expr) -> Evaluated<Tuple<Stride>> {
        if let ExprKind::Tuple(entries) = &e.kind {
            return Ok(Tuple::Node(entries.iter().map(|e| self.stride(e)).collect::<Result<_, _>>()?));
        }
        if let Some(stride) = self.basis(e)? {
            return Ok(Tuple::Leaf(stride));
        }
        let value = self.value(e)?;
        let ints = value.as_ints().ok_or_else(|| {
            syntax(&e.span, format!("a stride is an integer, or a unit such as `1@0`; {} is neither", value.describe()))
                .label("in the stride of a layout")
        })?;
        Ok(ints.map(&mut |n| Stride::int(n.clone())))
    }

    /// A multiple of a coordinate's unit: `4@0`, `-1@0`, `B*C@1`.
    fn basis(&self, e: &Expr) -> Evaluated<Option<Stride>> {
        let overflow = |x| ExprError::of_literal(x, e.span.clone());
        match &e.kind {
            ExprKind::Basis(scale, modes) => {
                let basis = modes.iter().rev().copied().collect();
                Ok(Some(Stride { scale: self.int(scale)?, basis }))
            }
            ExprKind::Neg(of) => {
                let Some(of) = self.basis(of)? else { return Ok(None) };
                of.times(&Int::Const(-1)).map(Some).map_err(overflow)
            }
            // `@` binds closest, so it is at the last factor.
            ExprKind::Product(factors) => {
                let Some((last, rest)) = factors.split_last() else { return Ok(None) };
                let Some(mut stride) = self.basis(last)? else { return Ok(None) };
                for factor in rest {
                    stride = stride.times(&self.int(factor)?).map_err(overflow)?;
                }
                Ok(Some(stride))
            }
            _ => Ok(None),
        }
    }

    /// An operand of arithmetic, where parentheses group.
    fn int(&self, e: &Expr) -> Evaluated<Int> {
        let overflow = |x| ExprError::of_literal(x, e.span.clone());
        match &e.kind {
            ExprKind::Tuple(entries) if entries.len() == 1 => self.int(&entries[0]),
            ExprKind::Sum(terms) => terms.iter().try_fold(Int::ZERO, |sum, (minus, term)| {
                let term = self.int(term)?;
                if *minus { sum.sub(&term) } else { sum.add(&term) }.map_err(overflow)
            }),
            ExprKind::Product(factors) => {
                factors.iter().try_fold(Int::ONE, |p, f| p.mul(&self.int(f)?).map_err(overflow))
            }
            ExprKind::Neg(of) => self.int(of)?.neg().map_err(overflow),
            _ => match self.value(e)? {
                Value::Int(n) => Ok(n),
                other => Err(syntax(&e.span, format!("arithmetic is for integers, not for {}", other.describe()))),
            },
        }
    }

    fn tiler(&self, e: &Expr) -> Evaluated<Tiler> {
        fn convert(value: &Value) -> Option<Tiler> {
            Some(match value {
                Value::Keep => Tiler::Keep,
                Value::Int(n) => Tiler::Extent(n.clone()),
                Value::Layout(l) => Tiler::Layout(l.clone()),
                Value::Tiler(t) => t.clone(),
                Value::Tuple(modes) => Tiler::ByMode(modes.iter().map(convert).collect::<Option<_>>()?),
                _ => return None,
            })
        }
        let value = self.value(e)?;
        convert(&value).ok_or_else(|| {
            let message = format!("an entry of a tiler is a layout, an integer or `_`, not {}", value.describe());
            syntax(&e.span, message).label("in this entry")
        })
    }
}

/// An operation's refusal at the argument that is to blame, and in a literal at the mode.
fn refused(x: LayoutError, call: &Expr, name: Option<&TextSpan>, args: &[Expr], values: &[Value]) -> ExprError {
    let blamed = x.arg.and_then(|k| Some((args.get(k)?, values.get(k)?)));
    let span = blamed.map_or(call.span.clone(), |(e, _)| e.span.clone());
    let mut error = ExprError::new(ExprErrorKind::Syntax, span, x.to_string());
    error.help = x.help.clone();
    if let Some((e, value)) = blamed {
        // What the author sees as a name or an operation is a value here.
        let said = |value: &str| matches!(&e.kind, ExprKind::Name { name, .. } if name == value);
        let value = value.to_string();
        if matches!(e.kind, ExprKind::Call { .. } | ExprKind::Name { .. }) && !said(&value) {
            error.label = format!("this is `{}`", shortened(&value));
        }
        let mut places = modes_of(e, &x.path.0).into_iter();
        if let Some((at, what)) = places.next() {
            error = ExprError { span: at, ..error }.label(format!("{what} of {}", x.path));
        }
        error = places.fold(error, |error, (at, what)| error.also(at, format!("its {what}")));
        if let Some(name) = name {
            error = error.also(name.clone(), "in this operation");
        }
    }
    error.kind = ExprErrorKind::Layout(Box::new(x));
    error
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(60) {
        Some((at, _)) => format!("{}..", &text[..at]),
        None => text.to_owned(),
    }
}

/// Where a mode stands in a literal.
fn modes_of(e: &Expr, path: &[usize]) -> Vec<(TextSpan, &'static str)> {
    fn entry<'e>(e: &'e Expr, path: &[usize]) -> Option<&'e Expr> {
        path.iter().try_fold(e, |e, &k| match &e.kind {
            ExprKind::Tuple(entries) | ExprKind::Tiler(entries) => entries.get(k),
            // Mode 0 of a scalar is the scalar.
            ExprKind::Int(_) if k == 0 => Some(e),
            _ => None,
        })
    }
    if path.is_empty() {
        return Vec::new();
    }
    match &e.kind {
        ExprKind::Pair(shape, stride) => [(shape, "extent"), (stride, "stride")]
            .into_iter()
            .filter_map(|(e, what)| Some((entry(e, path)?.span.clone(), what)))
            .collect(),
        ExprKind::Tiler(entries) => {
            let Some(first) = path.first().and_then(|&k| entries.get(k)) else { return Vec::new() };
            match path.len() {
                1 => vec![(first.span.clone(), "entry")],
                _ => modes_of(first, &path[1..]),
            }
        }
        ExprKind::Tuple(_) => entry(e, path).map(|e| vec![(e.span.clone(), "entry")]).unwrap_or_default(),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests;

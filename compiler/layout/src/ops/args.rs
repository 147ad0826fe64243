//! Reading the arguments of a named operation.

use crate::{
    Composed, Coord, ErrorKind, Int, IntTuple, Layout, LayoutError, Result, Stride, Swizzle, Tiler, Tuple, Value,
};

/// The arguments of one call.
#[derive(Clone, Copy)]
pub(crate) struct Args<'a> {
    op: &'static str,
    values: &'a [Value],
}

/// A layout, behind a swizzle or not.
#[derive(Clone, Copy)]
pub(crate) enum View<'a> {
    Plain(&'a Layout),
    Swizzled(&'a Composed),
}

impl<'a> View<'a> {
    /// Coordinate -> offset before the swizzle.
    pub fn inner(self) -> &'a Layout {
        match self {
            View::Plain(l) => l,
            View::Swizzled(c) => &c.layout,
        }
    }

    /// The operation acts on what is behind the swizzle.
    pub fn map(self, f: impl FnOnce(&Layout) -> Result<Layout>) -> Result<Value> {
        Ok(match self {
            View::Plain(l) => Value::Layout(f(l)?),
            View::Swizzled(c) => Value::Composed(Composed { layout: f(&c.layout)?, ..c.clone() }),
        })
    }
}

impl<'a> Args<'a> {
    pub fn new(op: &'static str, values: &'a [Value]) -> Args<'a> {
        Args { op, values }
    }

    pub fn len(self) -> usize {
        self.values.len()
    }

    /// Argument `k`; the table's arity says that it is there.
    pub fn value(self, k: usize) -> Result<&'a Value> {
        self.values.get(k).ok_or_else(|| {
            let message = format!("argument {} is missing", k + 1);
            LayoutError::new(ErrorKind::Kind, self.op, message).in_arg(k)
        })
    }

    /// Argument `k` is of the wrong kind.
    pub fn wrong(self, k: usize, wanted: &str) -> LayoutError {
        let got = self.values.get(k).map_or("nothing", Value::describe);
        let message = format!("argument {} must be {wanted}, not {got}", k + 1);
        let error = LayoutError::new(ErrorKind::Kind, self.op, message).in_arg(k);
        match self.values.get(k) {
            Some(Value::Int(n)) if wanted.contains("layout") => {
                error.with_help(format!("{n}:1 is the layout of {n} elements in a row"))
            }
            Some(v @ Value::Tuple(_)) if wanted.contains("layout") && v.as_ints().is_some() => {
                error.with_help(format!("make_layout({v}) gives the shape its strides, leftmost fastest"))
            }
            _ => error,
        }
    }

    pub fn view(self, k: usize) -> Result<View<'a>> {
        match self.value(k)? {
            Value::Layout(l) => Ok(View::Plain(l)),
            Value::Composed(c) => Ok(View::Swizzled(c)),
            _ => Err(self.wrong(k, "a layout")),
        }
    }

    pub fn layout(self, k: usize) -> Result<&'a Layout> {
        match self.value(k)? {
            Value::Layout(l) => Ok(l),
            Value::Composed(_) => Err(self.wrong(k, "a layout without a swizzle")),
            _ => Err(self.wrong(k, "a layout")),
        }
    }

    pub fn swizzle(self, k: usize) -> Result<Swizzle> {
        match self.value(k)? {
            Value::Swizzle(s) => Ok(*s),
            _ => Err(self.wrong(k, "a swizzle")),
        }
    }

    pub fn int(self, k: usize) -> Result<&'a Int> {
        match self.value(k)? {
            Value::Int(n) => Ok(n),
            _ => Err(self.wrong(k, "an integer")),
        }
    }

    /// A number that must be known now.
    pub fn constant(self, k: usize) -> Result<i64> {
        let n = self.int(k)?;
        n.as_const().ok_or_else(|| {
            let message = format!("argument {} must be known when the kernel is compiled, {n} is not", k + 1);
            LayoutError::new(ErrorKind::Kind, self.op, message).in_arg(k)
        })
    }

    /// The number of a mode.
    pub fn index(self, k: usize) -> Result<usize> {
        let n = self.constant(k)?;
        usize::try_from(n).map_err(|_| {
            LayoutError::new(ErrorKind::OutOfRange, self.op, format!("there is no mode {n}"))
                .in_arg(k)
                .with_help("modes are counted from 0")
        })
    }

    /// An integer or a tuple of them.
    pub fn ints(self, k: usize) -> Result<IntTuple> {
        self.value(k)?.as_ints().ok_or_else(|| self.wrong(k, "an integer or a tuple of integers"))
    }

    /// A shape, or a layout's.
    pub fn shape(self, k: usize) -> Result<IntTuple> {
        match self.value(k)? {
            Value::Layout(l) => Ok(l.shape().clone()),
            Value::Composed(c) => Ok(c.layout.shape().clone()),
            v => v.as_ints().ok_or_else(|| self.wrong(k, "a shape or a layout")),
        }
    }

    pub fn coord(self, k: usize) -> Result<Coord> {
        self.value(k)?.as_coord().ok_or_else(|| self.wrong(k, "a coordinate: integers and `_`"))
    }

    /// Strides, all plain numbers.
    pub fn strides(self, k: usize) -> Result<Tuple<Stride>> {
        Ok(self.ints(k)?.map(&mut |n| Stride::int(n.clone())))
    }

    pub fn tiler(self, k: usize) -> Result<Tiler> {
        tiler_of(self.value(k)?).ok_or_else(|| self.wrong(k, "a tiler: a layout, an integer, `_`, or a tuple of such"))
    }
}

fn tiler_of(value: &Value) -> Option<Tiler> {
    Some(match value {
        Value::Int(n) => Tiler::Extent(n.clone()),
        Value::Keep => Tiler::Keep,
        Value::Layout(l) => Tiler::Layout(l.clone()),
        Value::Tiler(t) => t.clone(),
        Value::Tuple(modes) => Tiler::ByMode(modes.iter().map(tiler_of).collect::<Option<_>>()?),
        _ => return None,
    })
}

//! Thread-value layouts: who holds which element of a tile.

use super::{Cell, Grid, Shade, unknown};
use crate::{Cx, ErrorKind, Layout, LayoutError, Points, Result, Value};

/// More elements, or more pairs of a thread and a value, are not drawn.
const MOST: i64 = 1 << 18;

/// An element's holders.
#[derive(Clone, Copy, Default)]
struct Held {
    thread: u32,
    value: u32,
    /// The second holder's thread, if there is one.
    second: u32,
    /// Holders besides the first one.
    more: u32,
}

/// A tile whose cells name a thread and one of its values.
pub(crate) struct TvGrid {
    shape: [i64; 2],
    names: [&'static str; 2],
    held: Vec<Option<Held>>,
    /// Rows run along the tile's second side.
    turned: bool,
    /// Repetition of thicker lines.
    pub(super) breaks: (usize, usize),
}

impl TvGrid {
    /// An empty tile.
    pub(crate) fn empty(shape: [i64; 2], names: [&'static str; 2]) -> Result<TvGrid> {
        let [m, n] = shape;
        if m < 0 || n < 0 || m.checked_mul(n).is_none_or(|size| size > MOST) {
            let message = format!("a tile of {m} x {n} elements cannot be drawn");
            return Err(LayoutError::new(ErrorKind::Domain, "tv", message)
                .with_help(format!("at most {MOST} elements are drawn")));
        }
        Ok(TvGrid { shape, names, held: vec![None; (m * n) as usize], turned: false, breaks: (0, 0) })
    }

    /// The tile that `layout` distributes.
    pub(crate) fn new(layout: &Layout, shape: [i64; 2], names: [&'static str; 2]) -> Result<TvGrid> {
        let mut grid = TvGrid::empty(shape, names)?;
        let modes = layout.shape().modes();
        let size = |k: usize| {
            modes.get(k).map_or(1, |m| m.leaves().iter().map(|n| n.as_const().unwrap_or(0)).product::<i64>())
        };
        let points = Points::of_layout(layout).ok_or_else(|| unknown(&Value::Layout(layout.clone())))?;
        if points.size() > MOST {
            let message = format!("{} pairs of a thread and a value are too many to be drawn", points.size());
            return Err(LayoutError::new(ErrorKind::Domain, "tv", message)
                .with_help(format!("at most {MOST} elements are drawn")));
        }
        let (threads, values) = (size(0), size(1));
        for t in 0..threads {
            for v in 0..values {
                let index = points.offset_at(t + v * threads);
                grid.hold(index.unwrap_or(-1), t, v)?;
            }
        }
        Ok(grid)
    }

    /// Element `index`, counted column by column, is value `v` of thread `t`.
    pub(crate) fn hold(&mut self, index: i64, t: i64, v: i64) -> Result<()> {
        let [m, n] = self.shape;
        let held = usize::try_from(index).ok().and_then(|k| self.held.get_mut(k)).ok_or_else(|| {
            let message = format!("value {v} of thread {t} is element {index}, the tile has {m} x {n}");
            LayoutError::new(ErrorKind::OutOfRange, "tv", message)
                .with_help("the layout gives the number of an element, counted column by column: row + column * M")
        })?;
        match held {
            Some(held) if (i64::from(held.thread), i64::from(held.value)) == (t, v) => {}
            Some(held) => {
                if held.more == 0 {
                    held.second = t as u32;
                }
                held.more += 1;
            }
            None => *held = Some(Held { thread: t as u32, value: v as u32, ..Held::default() }),
        }
        Ok(())
    }

    /// Element, thread and value of each element's first holder.
    #[cfg(test)]
    pub(super) fn holders(&self) -> impl Iterator<Item = (i64, i64, i64)> {
        let held = self.held.iter().enumerate();
        held.filter_map(|(k, h)| h.map(|h| (k as i64, i64::from(h.thread), i64::from(h.value))))
    }

    /// Whether an element is held more than once.
    pub(super) fn is_shared(&self) -> bool {
        self.held.iter().flatten().any(|held| held.more > 0)
    }

    /// The same with rows and columns exchanged.
    pub(super) fn turned(self) -> TvGrid {
        TvGrid { turned: !self.turned, breaks: (self.breaks.1, self.breaks.0), ..self }
    }
}

impl Grid for TvGrid {
    fn sides(&self) -> (usize, usize) {
        let [m, n] = self.shape.map(|n| n as usize);
        if self.turned { (n, m) } else { (m, n) }
    }

    fn row_head(&self, row: usize) -> String {
        row.to_string()
    }

    fn col_head(&self, col: usize) -> String {
        col.to_string()
    }

    fn cell(&self, row: usize, col: usize) -> Cell {
        let (m, n) = if self.turned { (col, row) } else { (row, col) };
        match self.held.get(m + n * self.shape[0] as usize).copied().flatten() {
            None => Cell { text: String::new(), second: Some(String::new()), shade: Shade::Empty },
            Some(Held { thread, value, second, more }) => {
                let text = match more {
                    0 => format!("T{thread}"),
                    1 if second != thread => format!("T{thread},{second}"),
                    more => format!("T{thread} +{more}"),
                };
                Cell { text, second: Some(format!("V{value}")), shade: Shade::Thread(thread) }
            }
        }
    }

    fn axes(&self) -> (&str, &str) {
        let [m, n] = self.names;
        if self.turned { (n, m) } else { (m, n) }
    }

    fn breaks(&self) -> (usize, usize) {
        self.breaks
    }
}

/// `tv(layout, (M,N))`: both as a tuple, once it is sure that they fit.
pub(super) fn make(_: &Cx, args: &[Value]) -> Result<Value> {
    let refuse =
        |kind, arg, message: String, help: &str| Err(LayoutError::new(kind, "tv", message).in_arg(arg).with_help(help));
    let help = "a thread-value layout has two modes: `((4,8),(2,2)):((32,1),(16,8))` gives thread and value an element";
    let layout = match &args[0] {
        Value::Layout(l) if l.rank() == 2 => l,
        Value::Layout(l) => {
            return refuse(
                ErrorKind::Profile,
                0,
                format!("the layout has rank {}, a thread-value layout has 2", l.rank()),
                help,
            );
        }
        other => return refuse(ErrorKind::Kind, 0, format!("{} is no thread-value layout", other.describe()), help),
    };
    let both = Value::Tuple(args.to_vec());
    let Some((_, shape)) = parts(&both) else {
        let message = "the tile's shape is two numbers".to_owned();
        return refuse(ErrorKind::Profile, 1, message, "write rows and columns: `(16,8)`");
    };
    TvGrid::new(layout, shape, ["M", "N"]).map_err(|e| e.in_arg(0))?;
    Ok(both)
}

/// What [`make`] has put together.
pub(super) fn parts(value: &Value) -> Option<(&Layout, [i64; 2])> {
    let Value::Tuple(entries) = value else { return None };
    let [Value::Layout(layout), Value::Tuple(shape)] = entries.as_slice() else { return None };
    let [Value::Int(m), Value::Int(n)] = shape.as_slice() else { return None };
    (layout.rank() == 2).then_some((layout, [m.as_const()?, n.as_const()?]))
}

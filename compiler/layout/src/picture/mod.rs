//! Pictures of layouts: which cells there are and what they say. [`svg`] and [`table`] draw them.

mod grid;
mod mma;
mod svg;
mod table;
mod tv;

use crate::{Cx, ErrorKind, LayoutError, Result, Value, ops::Op};

pub use table::TableStyle;

/// Where a layout of this many cells on a side is cut: no eye follows more.
pub(crate) const MAX_SIDE: usize = 128;

/// What a cell of several holders says.
const SHARED: &str = "T0,4: the threads 0 and 4 hold the element; T0 +3: thread 0 and 3 more";

/// Operations that exist for pictures.
pub(crate) const OPS: &[Op] = &[Op {
    name: "tv",
    usage: "tv(layout, (M,N))",
    doc: "A layout from (thread, value) to the elements of an M x N tile, numbered column by column, to be drawn as \
        the tile.",
    arity: (2, 2),
    eval: tv::make,
}];

/// What a cell looks like.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Shade {
    /// No element.
    Empty,
    /// One of 8 steps, which follow each other.
    Step(u8),
    /// A thread: as many as there are, neighbours look different.
    Thread(u32),
}

/// A cell: one or two lines.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Cell {
    pub text: String,
    pub second: Option<String>,
    pub shade: Shade,
}

/// A rectangle of cells with heads.
pub(crate) trait Grid {
    /// Rows and columns.
    fn sides(&self) -> (usize, usize);
    fn row_head(&self, row: usize) -> String;
    fn col_head(&self, col: usize) -> String;
    fn cell(&self, row: usize, col: usize) -> Cell;
    /// What the rows and the columns are: `M`, `K`; may be empty.
    fn axes(&self) -> (&str, &str) {
        ("", "")
    }
    /// After how many rows and columns an inner mode begins again; 0 if there is none.
    fn breaks(&self) -> (usize, usize) {
        (0, 0)
    }
}

/// A picture, not drawn yet.
pub struct Picture {
    title: String,
    /// Further lines under the title.
    facts: Vec<String>,
    panels: Panels,
}

enum Panels {
    One(Box<dyn Grid>),
    /// C, with A at its left and B above.
    Mma(Box<[tv::TvGrid; 3]>),
}

impl Picture {
    /// The picture of a layout, a swizzled layout, a thread-value layout with its tile (`tv(..)`), an MMA atom or a
    /// tiled MMA. Other kinds of values have none, and all numbers must be known.
    pub fn of(cx: &Cx, value: &Value) -> Result<Picture> {
        match value {
            Value::Layout(_) | Value::Composed(_) | Value::Window(_) => {
                let grid = grid::LayoutGrid::new(value)?;
                Ok(Picture { title: value.to_string(), facts: Vec::new(), panels: Panels::One(Box::new(grid)) })
            }
            Value::Atom(atom) => mma::of_atom(atom),
            Value::Mma(mma) => mma::of_tiled(cx, mma),
            Value::Tuple(_) => match tv::parts(value) {
                Some((layout, shape)) => {
                    let grid = tv::TvGrid::new(layout, shape, ["M", "N"])?;
                    let title = format!("{layout} on {} x {}", shape[0], shape[1]);
                    let facts = if grid.is_shared() { vec![SHARED.into()] } else { Vec::new() };
                    Ok(Picture { title, facts, panels: Panels::One(Box::new(grid)) })
                }
                None => Err(without(value)),
            },
            other => Err(without(other)),
        }
    }

    /// One line: what it shows.
    pub fn title(&self) -> &str {
        &self.title
    }

    /// As an SVG file.
    pub fn svg(&self) -> String {
        svg::draw(self)
    }

    /// As text. Of the three parts of an MMA: C.
    pub fn table(&self, style: &TableStyle) -> String {
        match &self.panels {
            Panels::One(grid) => table::draw(grid.as_ref(), style),
            Panels::Mma(parts) => table::draw(&parts[2], style),
        }
    }
}

fn without(value: &Value) -> LayoutError {
    LayoutError::new(ErrorKind::Kind, "picture", format!("there is no picture of {}", value.describe())).with_help(
        "layouts, swizzled layouts, MMA atoms and tiled MMAs have one; a thread-value layout needs its tile: \
        `tv(layout, (M,N))`",
    )
}

fn unknown(what: &Value) -> LayoutError {
    LayoutError::new(
        ErrorKind::Kind,
        "picture",
        format!(
            "{what} cannot be drawn: a number is not known, or does not fit 64 bits, or offsets and coordinates are \
            mixed"
        ),
    )
}

#[cfg(test)]
mod tests;

//! What names hold while a kernel is stopped, as text.

use super::events::Events;
use super::names::{Viewpoint, find};
use super::numbers::{Cell, Limits, array};
use super::slice::{Index, Selection, pick};
use ptoc_analysis::debug::{DebugInfo, NameMeaning, TensorWindow, TileWindow};
use ptoc_driver::preview::number;
use ptoc_interp::{RunningKernel, Storage, Unread};
use ptoc_ir::scalar;
use ptoc_ir::tile::{Elem, TensorId, Tile, Ty, Value};
use ptoc_tensor::DType;
use std::collections::{HashMap, HashSet};

/// What the interpreter does not keep of the tiles of a block.
#[derive(Clone, Debug, Default)]
pub struct Shapes {
    /// Valid shapes with which elements of tile arrays were last written as a whole.
    pub valid: HashMap<(Tile, usize), (i64, i64)>,
    /// Tiles whose life has begun.
    pub begun: HashSet<Tile>,
}

/// A stopped kernel.
#[derive(Clone, Copy)]
pub struct Look<'a> {
    /// Values, tiles, tensors.
    pub state: RunningKernel<'a>,
    /// Names.
    pub debug: &'a DebugInfo,
    /// Addresses of the elements of tiles that have none in the source, copy by copy where a pipeline has several.
    pub addresses: &'a HashMap<Tile, Vec<u64>>,
    /// Shapes of tiles.
    pub shapes: &'a Shapes,
    /// Flags and barriers.
    pub events: &'a Events,
    /// From where names are seen.
    pub from: Viewpoint,
}

/// Something with elements.
#[derive(Clone, Debug)]
pub enum ArraySource {
    /// Elements of a tile from a row and column on.
    Tile(Tile, usize, (usize, usize)),
    /// A window of a tensor.
    Tensor(TensorWindow),
}

/// An array that can be shown: a part of something with elements.
#[derive(Clone, Debug)]
pub struct Array {
    /// Where the elements are.
    pub source: ArraySource,
    /// Element type.
    pub dtype: DType,
    /// First index and length of each axis of the source, and whether it stays an axis.
    pub axes: Vec<(usize, usize, bool)>,
    /// One line: what it is.
    pub title: String,
    /// A slice of it was asked for.
    pub sliced: bool,
}

impl Array {
    /// Lengths of the axes that stay.
    pub fn shape(&self) -> Vec<usize> {
        self.axes.iter().filter(|a| a.2).map(|a| a.1).collect()
    }

    /// The index in the source of an index among the axes that stay.
    pub fn index(&self, at: &[usize]) -> Vec<usize> {
        let mut rest = at.iter();
        self.axes.iter().map(|a| a.0 + if a.2 { rest.next().copied().unwrap_or(0) } else { 0 }).collect()
    }
}

/// Why an element is not shown.
fn cell(read: Result<u64, Unread>) -> Cell {
    match read {
        Ok(bits) => Cell::Bits(bits),
        Err(Unread::Unwritten) => Cell::Unwritten,
        Err(Unread::Foreign(_)) => Cell::Foreign,
        Err(Unread::Outside) => Cell::None,
    }
}

impl<'a> Look<'a> {
    /// The bits of an `index`.
    pub fn index(&self, v: Value) -> i64 {
        self.state.value(v) as i64
    }

    /// A scalar.
    pub fn scalar(&self, v: Value) -> (Ty, u64) {
        (self.state.kernel().values[v].ty, self.state.value(v))
    }

    /// An element of a source.
    pub fn cell(&self, source: &ArraySource, at: &[usize]) -> Cell {
        match source {
            ArraySource::Tile(tile, element, (row, col)) => {
                cell(self.state.element(*tile, *element, row + at[0], col + at[1]))
            }
            ArraySource::Tensor(window) => match self.place(window, at) {
                Some(offset) => cell(self.state.tensor_element(window.tensor(), window.elem(), offset)),
                None => Cell::None,
            },
        }
    }

    /// Number of the element in its tensor.
    pub fn place(&self, window: &TensorWindow, at: &[usize]) -> Option<i64> {
        let at: Vec<i64> = at.iter().map(|&i| i as i64).collect();
        let entry = |tensor: TensorId, n: i64| {
            let dtype = self.state.kernel().tensors[tensor].dtype;
            let bits = self.state.tensor_element(tensor, Elem::Whole(dtype), n).ok()?;
            i64::try_from(scalar::to_int(Ty::D(dtype), bits)).ok()
        };
        window.element(&at, &|v| self.index(v), &entry)
    }

    /// The array that a selection names; `Ok(None)` if it has no elements to speak of (a scalar, a block).
    pub fn array(&self, selection: &Selection) -> Result<Option<Array>, String> {
        let named = find(self.debug, self.from, &selection.name)?;
        let (name, brackets) = (selection.name.as_str(), &selection.brackets[..]);
        let found = match &named.what {
            NameMeaning::Tile(t) => self.tile(name, t, !brackets.is_empty())?,
            NameMeaning::TileArray(t, count) => return self.tile_array(name, t, *count, brackets).map(Some),
            NameMeaning::Ring(_) if brackets.is_empty() => {
                return Err(format!("`{name}` is a ring: choose a slot, `{name}[0]` or `{name}[0][0:4, 0:8]`"));
            }
            NameMeaning::Ring(r) => return self.tile_array(name, &r.slots, r.count, brackets).map(Some),
            NameMeaning::View(w) => self.tensor(name, w),
            _ if !brackets.is_empty() => {
                return Err(format!("`{name}` is {}, it has no elements", self.describe(&named.what)));
            }
            _ => return Ok(None),
        };
        match brackets {
            [] => Ok(Some(found)),
            [indices] => self.cut(found, indices, name).map(Some),
            _ => Err(format!("`{name}` takes one pair of brackets: `{name}[0:4, 0:8]`")),
        }
    }

    fn cut(&self, mut array: Array, indices: &[Index], name: &str) -> Result<Array, String> {
        let lengths: Vec<usize> = array.axes.iter().map(|a| a.1).collect();
        let picked = pick(indices, &lengths, name)?;
        array.axes = picked.into_iter().map(|(range, stays)| (range.start, range.len(), stays)).collect();
        array.sliced = true;
        Ok(array)
    }

    /// `p[b]`, `p[b][0:4, 0:8]`, `p[b, 0:4, 0:8]`
    fn tile_array(&self, name: &str, t: &TileWindow, count: u32, brackets: &[Vec<Index>]) -> Result<Array, String> {
        let choose =
            || format!("`{name}` is an array of {count} tiles: choose one, `{name}[0]` or `{name}[0][0:4, 0:8]`");
        let first = brackets.first().and_then(|b| b.split_first());
        let (first, rest) = match (first, brackets.get(1..).unwrap_or_default()) {
            (Some((first, more)), []) => (first, more),
            (Some((first, [])), [more]) => (first, &more[..]),
            _ => return Err(choose()),
        };
        let (range, stays) = pick(std::slice::from_ref(first), &[count as usize], name)?.remove(0);
        if stays {
            return Err(choose());
        }
        let title = format!("{name}[{}]", range.start);
        let array = self.tile_at(&title, t, range.start, !rest.is_empty());
        if rest.is_empty() { Ok(array) } else { self.cut(array, rest, &title) }
    }

    fn tile(&self, name: &str, t: &TileWindow, sliced: bool) -> Result<Array, String> {
        let element = t.element.map_or(0, |v| self.index(v));
        let element = usize::try_from(element).map_err(|_| format!("`{name}` is element {element} of an array"))?;
        Ok(self.tile_at(name, t, element, sliced))
    }

    /// A slice may reach beyond the valid shape.
    pub fn tile_at(&self, name: &str, t: &TileWindow, element: usize, sliced: bool) -> Array {
        let data = &self.state.kernel().tiles[t.tile];
        let origin = t.origin.map_or((0, 0), |(r, c)| (self.index(r), self.index(c)));
        let valid = self.valid(t, element);
        let mut title = format!("{name}: {} {} {} x {}", data.ty.loc, data.ty.dtype, t.rows, t.cols);
        if let Some((r, c)) = valid {
            title.push_str(&format!(", valid {r} x {c}"));
        }
        let own = if data.count > 1 { format!("{}[{element}]", data.name) } else { data.name.to_string() };
        if own != name && !data.hidden {
            title.push_str(&format!(", of `{own}`"));
        }
        if t.origin.is_some() {
            title.push_str(&format!(" from ({}, {})", origin.0, origin.1));
        }
        title.push_str(&match self.address(t.tile, element) {
            Ok(at) => format!(", at {at}"),
            Err(why) => format!(", {why}"),
        });
        let (rows, cols) = match valid {
            Some((r, c)) if !sliced => (r.clamp(0, i64::from(t.rows)) as usize, c.clamp(0, i64::from(t.cols)) as usize),
            _ => (t.rows as usize, t.cols as usize),
        };
        let origin = (origin.0.max(0) as usize, origin.1.max(0) as usize);
        let source = ArraySource::Tile(t.tile, element, origin);
        Array { source, dtype: data.ty.dtype, axes: vec![(0, rows, true), (0, cols, true)], title, sliced }
    }

    /// The valid shape as the name sees it: what the source says, else that of the last write to the whole tile.
    pub fn valid(&self, t: &TileWindow, element: usize) -> Option<(i64, i64)> {
        match (t.valid, t.origin) {
            (Some((r, c)), _) => Some((self.index(r), self.index(c))),
            (None, None) => self.shapes.valid.get(&(t.tile, element)).copied(),
            (None, Some(_)) => None,
        }
    }

    /// First byte in the tile's memory, or why there is none. The copies of a pipeline take turns.
    pub fn address(&self, tile: Tile, element: usize) -> Result<String, &'static str> {
        match self.state.storage(tile, element) {
            Storage::At(at) => Ok(format!("{at:#x}")),
            Storage::None => Err("no address yet"),
            Storage::Own => {
                let count = self.state.kernel().tiles[tile].count as usize;
                let all = self.addresses.get(&tile).map_or(&[][..], |all| &all[..]);
                let copies: Vec<String> = all.iter().skip(element).step_by(count).map(|a| format!("{a:#x}")).collect();
                match &copies[..] {
                    [] => Err("not placed"),
                    [one] => Ok(one.clone()),
                    [init @ .., last] => Ok(format!("{} and {last} by turns", init.join(", "))),
                }
            }
        }
    }

    fn tensor(&self, name: &str, w: &TensorWindow) -> Array {
        let lengths: Vec<usize> = w.extents().map(|v| self.index(v).max(0) as usize).collect();
        let shape: Vec<String> = lengths.iter().map(usize::to_string).collect();
        let tensor = &self.state.kernel().tensors[w.tensor()];
        let mut title = format!("{name}: {}[{}]", w.dtype(), shape.join(", "));
        if tensor.name != name {
            title.push_str(&format!(", a window of `{}`", tensor.name));
        }
        let axes = lengths.into_iter().map(|n| (0, n, true)).collect();
        Array { source: ArraySource::Tensor(w.clone()), dtype: w.dtype(), axes, title, sliced: false }
    }

    /// The lines of an array: title and elements.
    pub fn show(&self, a: &Array) -> String {
        format!("{}\n{}\n", a.title, self.elements(a))
    }

    /// The elements of an array as text.
    pub fn elements(&self, a: &Array) -> String {
        let limits = if a.sliced { Limits::SLICE } else { Limits::GLANCE };
        array(a.dtype, &a.shape(), limits, &|at| self.cell(&a.source, &a.index(at)))
    }

    /// A name and its value on one line; of what has elements only the title.
    pub fn line(&self, name: &str, what: &NameMeaning) -> String {
        match what {
            NameMeaning::Tile(_) | NameMeaning::View(_) => {
                let selection = Selection { name: name.into(), brackets: Vec::new() };
                match self.array(&selection) {
                    Ok(Some(a)) => a.title,
                    _ => format!("{name}: {}", self.describe(what)),
                }
            }
            NameMeaning::TileArray(t, count) => {
                let ty = self.state.kernel().tiles[t.tile].ty;
                format!("{name}: {count} tiles {} {} {} x {}", ty.loc, ty.dtype, t.rows, t.cols)
            }
            NameMeaning::Ring(r) => {
                let ty = self.state.kernel().tiles[r.slots.tile].ty;
                let s = if r.count == 1 { "" } else { "s" };
                let (rows, cols) = (r.slots.rows, r.slots.cols);
                format!("{name}: ring of {} slot{s} {} {} {rows} x {cols}", r.count, ty.loc, ty.dtype)
            }
            NameMeaning::Event(e) => format!("{name}: {}", self.event_title(e)),
            NameMeaning::Block(_) | NameMeaning::Tiles { .. } | NameMeaning::Other(_) => {
                format!("{name}: {}", self.value(what))
            }
            NameMeaning::Scalar(_) | NameMeaning::Var(_) => {
                format!("{name}: {} = {}", self.describe(what), self.value(what))
            }
            NameMeaning::Text(_) | NameMeaning::Range(..) | NameMeaning::Tuple(_) => {
                format!("{name} = {}", self.value(what))
            }
        }
    }

    /// The type of a scalar.
    pub fn type_of(&self, what: &NameMeaning) -> Option<String> {
        match what {
            NameMeaning::Scalar(v) => Some(self.scalar(*v).0.to_string()),
            NameMeaning::Var(v) => Some(self.state.kernel().vars[*v].ty.to_string()),
            NameMeaning::Block(_) => Some("block".into()),
            _ => None,
        }
    }

    /// A value without its name.
    pub fn value(&self, what: &NameMeaning) -> String {
        match what {
            NameMeaning::Text(text) => text.clone(),
            NameMeaning::Scalar(v) => shown(self.scalar(*v)),
            NameMeaning::Var(v) => shown((self.state.kernel().vars[*v].ty, self.state.var(*v))),
            NameMeaning::Block(b) => {
                let len = self.index(b.len);
                match b.place {
                    Some([index, start, end]) => {
                        let [index, start, end] = [index, start, end].map(|v| self.index(v));
                        format!("block {index} = {start}..{end}, len {len} of {}", b.size)
                    }
                    None => format!("len {len} of {}", b.size),
                }
            }
            NameMeaning::Tiles { n, size, count } => {
                format!("{} blocks of {size} in {}", self.index(*count), self.index(*n))
            }
            NameMeaning::Range(lo, hi) => format!("{}..{}", self.index(*lo), self.index(*hi)),
            NameMeaning::Tuple(list) => {
                format!("({})", list.iter().map(|w| self.value(w)).collect::<Vec<_>>().join(", "))
            }
            other => self.describe(other),
        }
    }

    fn describe(&self, what: &NameMeaning) -> String {
        match what {
            NameMeaning::Scalar(v) => self.scalar(*v).0.to_string(),
            NameMeaning::Var(v) => format!("var {}", self.state.kernel().vars[*v].ty),
            NameMeaning::Text(_) => "a constant".into(),
            NameMeaning::Block(_) => "a block".into(),
            NameMeaning::Tiles { .. } => "a set of blocks".into(),
            NameMeaning::Range(..) => "a range".into(),
            NameMeaning::Tile(_) => "a tile".into(),
            NameMeaning::TileArray(..) => "an array of tiles".into(),
            NameMeaning::View(_) => "a window of a tensor".into(),
            NameMeaning::Tuple(_) => "a tuple".into(),
            NameMeaning::Event(_) => "an event".into(),
            NameMeaning::Ring(_) => "a ring".into(),
            NameMeaning::Other(text) => (*text).into(),
        }
    }

    /// Elements of a tile's valid part that are written, and how many it has.
    pub fn written(&self, tile: Tile, element: usize) -> (usize, usize) {
        let ty = self.state.kernel().tiles[tile].ty;
        let (rows, cols) = match self.shapes.valid.get(&(tile, element)) {
            Some(&(r, c)) => (r.clamp(0, i64::from(ty.rows)) as usize, c.clamp(0, i64::from(ty.cols)) as usize),
            None => (ty.rows as usize, ty.cols as usize),
        };
        let written = |r, c| self.state.element(tile, element, r, c).is_ok();
        let count = (0..rows).map(|r| (0..cols).filter(|&c| written(r, c)).count()).sum();
        (count, rows * cols)
    }

    /// How much of a tile's valid part is written, in words.
    pub fn share(&self, tile: Tile, element: usize) -> String {
        match self.written(tile, element) {
            (0, _) => "unwritten".into(),
            (n, all) if n == all => "written".into(),
            (n, all) => format!("{n} of {all} written"),
        }
    }
}

/// A scalar as text.
pub fn shown((ty, bits): (Ty, u64)) -> String {
    match ty {
        Ty::Index => (bits as i64).to_string(),
        Ty::D(DType::Bool) => (bits & 1 == 1).to_string(),
        Ty::D(d) => number(d, bits),
    }
}

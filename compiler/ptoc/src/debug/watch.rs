//! Watchpoints: elements and variables whose changes stop the run.

use super::command::Slice;
use super::names::find;
use super::numbers::{Cell, element};
use super::values::{Array, Look, Source};
use ptoc_analysis::debug::What;
use ptoc_ir::interp::Unread;
use ptoc_ir::tile::{Elem, Op, Stmt, TensorId, Tile, Ty, Var};
use ptoc_tensor::DType;

/// Elements that one watchpoint may have.
const MOST: usize = 1 << 16;

/// Changes that are shown.
const SHOWN: usize = 4;

/// A place that can change.
#[derive(Clone, Copy, Debug)]
enum Spot {
    Tile(Tile, usize, usize, usize),
    Tensor(TensorId, Elem, i64),
    Var(Var),
}

/// A watchpoint.
#[derive(Clone, Debug)]
pub struct Watch {
    /// Its number.
    pub id: usize,
    /// What was asked for.
    pub text: String,
    /// The launch whose kernel has the name.
    pub launch: usize,
    name: String,
    dtype: Ty,
    /// With the index as the name counts.
    spots: Vec<(Vec<usize>, Spot)>,
    old: Vec<Cell>,
}

impl Watch {
    /// Watches what the text names here.
    pub fn new(id: usize, text: &str, launch: usize, look: &Look<'_>) -> Result<Watch, String> {
        let Some(slice) = Slice::parse(text)? else {
            return Err(format!("`{text}` cannot be watched: name a tile, a tensor, an element `t[0, 1]`, or a `var`"));
        };
        let (dtype, spots) = match look.array(&slice)? {
            Some(array) => (Ty::D(array.dtype), spots(look, &array, &slice.name)?),
            None => match find(look.debug, look.from, &slice.name)?.what {
                What::Var(v) => (look.state.kernel().vars[v].ty, vec![(Vec::new(), Spot::Var(v))]),
                _ => return Err(format!("`{}` does not change: it is no tile, no tensor and no `var`", slice.name)),
            },
        };
        let mut watch = Watch { id, text: text.trim().into(), launch, name: slice.name, dtype, spots, old: Vec::new() };
        watch.sync(look);
        Ok(watch)
    }

    fn read(&self, look: &Look<'_>, spot: Spot) -> Cell {
        let read = match spot {
            Spot::Tile(tile, element, row, col) => look.state.element(tile, element, row, col),
            Spot::Tensor(tensor, elem, offset) => look.state.tensor_element(tensor, elem, offset),
            Spot::Var(var) => Ok(look.state.var(var)),
        };
        match read {
            Ok(bits) => Cell::Bits(bits),
            Err(Unread::Unwritten) => Cell::Unwritten,
            Err(Unread::Foreign(_)) => Cell::Foreign,
            Err(Unread::Outside) => Cell::None,
        }
    }

    /// Takes the values as they are.
    pub fn sync(&mut self, look: &Look<'_>) {
        self.old = self.spots.iter().map(|(_, spot)| self.read(look, *spot)).collect();
    }

    /// What has changed, as lines. That a tile's life begins anew is no change.
    pub fn changes(&mut self, look: &Look<'_>, stmt: &Stmt) -> Option<String> {
        let writes = matches!(
            stmt.op,
            Op::Inst(_)
                | Op::Copy(_)
                | Op::Mma(_)
                | Op::TileSet { .. }
                | Op::Store { .. }
                | Op::Atomic { .. }
                | Op::Set { .. }
                | Op::Alloc { .. }
                | Op::Assign { .. }
        );
        if !writes {
            return None;
        }
        let old = std::mem::take(&mut self.old);
        self.sync(look);
        if matches!(stmt.op, Op::Alloc { .. } | Op::Assign { .. }) {
            return None;
        }
        let changed: Vec<usize> = (0..old.len()).filter(|&k| old[k] != self.old[k]).collect();
        let mut text = String::new();
        for &k in changed.iter().take(SHOWN) {
            let index: Vec<String> = self.spots[k].0.iter().map(usize::to_string).collect();
            let index = if index.is_empty() { String::new() } else { format!("[{}]", index.join(", ")) };
            let (from, to) = (self.shown(&old[k]), self.shown(&self.old[k]));
            text.push_str(&format!("  {}{index}: {from} -> {to}\n", self.name));
        }
        if changed.len() > SHOWN {
            text.push_str(&format!("  and {} more\n", changed.len() - SHOWN));
        }
        (!changed.is_empty()).then_some(text)
    }

    fn shown(&self, cell: &Cell) -> String {
        match (self.dtype, cell) {
            (Ty::D(d), cell) => element(d, cell),
            (Ty::Index, Cell::Bits(bits)) => (*bits as i64).to_string(),
            (Ty::Index, cell) => element(DType::I64, cell),
        }
    }
}

fn spots(look: &Look<'_>, array: &Array, name: &str) -> Result<Vec<(Vec<usize>, Spot)>, String> {
    // Also what is not valid now may be written later.
    let count: usize = array.axes.iter().map(|a| a.1).product();
    if count > MOST {
        return Err(format!("`{name}` has {count} elements; watch a slice of {MOST} at most"));
    }
    let mut out = Vec::with_capacity(count);
    let shape = array.shape();
    for k in 0..count {
        let mut rest = k;
        let mut at: Vec<usize> = shape
            .iter()
            .rev()
            .map(|&n| {
                let i = rest % n;
                rest /= n;
                i
            })
            .collect();
        at.reverse();
        let at = array.index(&at);
        let spot = match &array.source {
            Source::Tile(tile, element, (row, col)) => Spot::Tile(*tile, *element, row + at[0], col + at[1]),
            Source::Tensor(window) => match look.place(window, &at) {
                Some(offset) => Spot::Tensor(window.tensor(), window.elem(), offset),
                None => continue,
            },
        };
        out.push((at, spot));
    }
    Ok(out)
}

//! Watchpoints: elements, variables and events whose changes stop the run.

use super::breakpoints::HitCount;
use super::names::find;
use super::numbers::{Cell, element};
use super::slice::{Index, Selection, Slice};
use super::values::{Array, ArraySource, Look};
use ptoc_analysis::debug::NameMeaning;
use ptoc_interp::Unread;
use ptoc_ir::tile::{Elem, Event, Op, Stmt, TensorId, Tile, Ty, Var};
use ptoc_syntax::ast::Expr;
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

/// What is watched, with how it was when the run last looked.
#[derive(Clone, Debug)]
enum Watched {
    /// Places that hold numbers of one type.
    Spots {
        dtype: Ty,
        /// The arrays that the places are in: `t`, `p[1]`.
        names: Vec<String>,
        /// Number of the array, index in it as its name counts.
        spots: Vec<(usize, Vec<usize>, Spot)>,
        old: Vec<Cell>,
    },
    /// Elements of an event, with their states in words.
    Event { name: String, event: Event, array: bool, old: Vec<(i64, String)> },
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
    /// A change counts only where this holds.
    pub condition: Option<(String, Expr)>,
    /// Of the changes that count those which stop the run; `None` is all of them.
    pub hit_count: Option<HitCount>,
    /// How many changes have counted.
    pub hits: u64,
    watched: Watched,
}

impl Watch {
    /// Watches what the text names here.
    pub fn new(id: usize, text: &str, launch: usize, look: &Look<'_>) -> Result<Watch, String> {
        let Some(slice) = Slice::parse(text)? else {
            return Err(format!("`{text}` cannot be watched: name a tile, a tensor, an element `t[0, 1]`, or a `var`"));
        };
        let selection = slice.select(look)?;
        let mut watched = match &find(look.debug, look.from, &selection.name)?.what {
            NameMeaning::Event(e) => {
                let count = look.state.kernel().events[e.event].count;
                let old = match look.event_element(e, &selection)? {
                    Some(element) => vec![(element, String::new())],
                    None => (0..count.into()).map(|element| (element, String::new())).collect(),
                };
                Watched::Event { name: selection.name, event: e.event, array: count > 1, old }
            }
            NameMeaning::Var(v) if selection.brackets.is_empty() => {
                let (names, spots) = (vec![selection.name], vec![(0, Vec::new(), Spot::Var(*v))]);
                Watched::Spots { dtype: look.state.kernel().vars[*v].ty, names, spots, old: Vec::new() }
            }
            _ => elements(look, selection)?,
        };
        watched.update(look);
        Ok(Watch { id, text: text.trim().into(), launch, condition: None, hit_count: None, hits: 0, watched })
    }

    /// Takes the values as they are.
    pub fn sync(&mut self, look: &Look<'_>) {
        self.watched.update(look);
    }

    /// What has changed, as lines. That a tile's life begins anew is no change.
    pub fn changes(&mut self, look: &Look<'_>, stmt: &Stmt) -> Option<String> {
        let begins = matches!(stmt.op, Op::Alloc { .. } | Op::Assign { .. });
        let writes = matches!(
            stmt.op,
            Op::Inst(_)
                | Op::Copy(_)
                | Op::Mma(_)
                | Op::TileSet { .. }
                | Op::Store { .. }
                | Op::Atomic { .. }
                | Op::Set { .. }
        );
        match &self.watched {
            Watched::Spots { .. } if !begins && !writes => return None,
            Watched::Event { .. } if !matches!(stmt.op, Op::Sync(_)) => return None,
            _ => {}
        }
        let changed = self.watched.update(look);
        if begins {
            return None;
        }
        let mut text: String = changed.iter().take(SHOWN).map(|c| format!("  {c}\n")).collect();
        if changed.len() > SHOWN {
            text.push_str(&format!("  and {} more\n", changed.len() - SHOWN));
        }
        (!changed.is_empty()).then_some(text)
    }
}

impl Watched {
    /// Takes the values as they are, and says what has changed: `t[0, 1]: 2 -> 3`.
    fn update(&mut self, look: &Look<'_>) -> Vec<String> {
        match self {
            Watched::Spots { dtype, names, spots, old } => {
                let now: Vec<Cell> = spots.iter().map(|(.., spot)| read(look, *spot)).collect();
                let before = std::mem::replace(old, now);
                let pairs = spots.iter().zip(before.iter().zip(&*old)).filter(|(_, (from, to))| from != to);
                let line = |((array, at, _), (from, to)): (&(usize, Vec<usize>, Spot), (&Cell, &Cell))| {
                    let at: Vec<String> = at.iter().map(usize::to_string).collect();
                    let at = if at.is_empty() { String::new() } else { format!("[{}]", at.join(", ")) };
                    format!("{}{at}: {} -> {}", names[*array], shown(*dtype, from), shown(*dtype, to))
                };
                pairs.map(line).collect()
            }
            Watched::Event { name, event, array, old } => {
                let mut changed = Vec::new();
                for (element, before) in old {
                    let now = look.events.state(look.state.kernel(), *event, *element);
                    if *before != now {
                        let at = if *array { format!("[{element}]") } else { String::new() };
                        changed.push(format!("{name}{at}: {before} -> {now}"));
                        *before = now;
                    }
                }
                changed
            }
        }
    }
}

fn read(look: &Look<'_>, spot: Spot) -> Cell {
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

fn shown(ty: Ty, cell: &Cell) -> String {
    match (ty, cell) {
        (Ty::D(d), cell) => element(d, cell),
        (Ty::Index, Cell::Bits(bits)) => (*bits as i64).to_string(),
        (Ty::Index, cell) => element(DType::I64, cell),
    }
}

/// Elements of a tile, of a tensor, of all tiles of an array.
fn elements(look: &Look<'_>, selection: Selection) -> Result<Watched, String> {
    let what = &find(look.debug, look.from, &selection.name)?.what;
    let arrays = match what {
        NameMeaning::TileArray(_, count) if selection.brackets.is_empty() => {
            let one = |e: u32| {
                let part = Selection { name: selection.name.clone(), brackets: vec![vec![Index::At(e.into())]] };
                look.array(&part).map(|array| (format!("{}[{e}]", selection.name), array))
            };
            (0..*count).map(one).collect::<Result<Vec<_>, _>>()?
        }
        _ => vec![(look.own_name(&selection)?, look.array(&selection)?)],
    };
    let (mut names, mut all, mut dtype) = (Vec::new(), Vec::new(), DType::F32);
    for (name, array) in arrays {
        let Some(array) = array else {
            return Err(match what {
                // What a loop gives a name to is a value, and another one in the next iteration.
                NameMeaning::Scalar(_) | NameMeaning::Block(_) => format!(
                    "`{name}` is a value, and no place that changes: where it is defined again it is another one. \
                     `break LINE` stops there, `display {name}` shows it at every stop"
                ),
                _ => format!("`{name}` does not change: it is no tile, no tensor, no event and no `var`"),
            });
        };
        dtype = array.dtype;
        spots(look, &array, names.len(), &name, &mut all)?;
        names.push(name);
    }
    Ok(Watched::Spots { dtype: Ty::D(dtype), names, spots: all, old: Vec::new() })
}

fn spots(
    look: &Look<'_>,
    array: &Array,
    number: usize,
    name: &str,
    out: &mut Vec<(usize, Vec<usize>, Spot)>,
) -> Result<(), String> {
    // Also what is not valid now may be written later.
    let count = out.len() + array.axes.iter().map(|a| a.1).product::<usize>();
    if count > MOST {
        return Err(format!("`{name}` has {count} elements; watch a slice of {MOST} at most"));
    }
    let shape = array.shape();
    for k in 0..array.axes.iter().map(|a| a.1).product() {
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
            ArraySource::Tile(tile, element, (row, col)) => Spot::Tile(*tile, *element, row + at[0], col + at[1]),
            ArraySource::Tensor(window) => match look.place(window, &at) {
                Some(offset) => Spot::Tensor(window.tensor(), window.elem(), offset),
                None => continue,
            },
        };
        out.push((number, at, spot));
    }
    Ok(())
}

//! Arrays of tiles. A tile that `pto.tassign` binds to `n * step + first` is element n of an array. The array goes up
//! to the address at which that tile is allocated: that is how an array whose number a loop knows is written.
//! Where it is allocated at `first`, the array has the tiles of its type that the text allocates at `first`,
//! `first + step` and so on.

use crate::attr::AttrValue;
use crate::lexer::Word;
use crate::tree::{Op, Region};
use crate::types::Type;
use rustc_hash::{FxHashMap, FxHashSet};

/// The most elements of an array.
const MOST: i128 = 64;

/// Tiles of one type at addresses that are equally far apart.
#[derive(Clone, Debug)]
pub(super) struct Array {
    pub first: i128,
    pub step: i128,
    pub count: i128,
    pub ty: Type,
}

impl Array {
    /// The addresses of its elements.
    pub fn addresses(&self) -> impl Iterator<Item = i128> {
        let (first, step) = (self.first, self.step);
        (0..self.count).map(move |n| first + n * step)
    }
}

/// The arrays of a function, and which element of which array the tiles are that are bound to addresses of the launch.
#[derive(Debug, Default)]
pub(super) struct Arrays {
    pub arrays: Vec<Array>,
    /// By the name of the bound tile: the array, and the name of the element's number.
    pub bound: FxHashMap<Word, (usize, Word)>,
    /// Tiles that are allocated to be bound, and are nothing else.
    pub handles: FxHashSet<Word>,
}

/// Operations by what they define; `None` for a name that is defined several times.
type Definitions<'o> = FxHashMap<Word, Option<&'o Op>>;

impl Arrays {
    pub fn of(body: &Region, uses: &FxHashMap<Word, u32>) -> Arrays {
        let mut definitions = Definitions::default();
        define(body, &mut definitions);
        let find = |name: &Word| definitions.get(name).copied().flatten();
        let operand = |op: &'_ Op, slot: &str| op.operand(slot).map(|o| o.value.name.clone());
        // Sums of as many numbers of 64 bits do not overflow.
        let number = |name: &Word| match find(name)?.attr("value")?.value.as_ref()? {
            AttrValue::Int(n, _) => Some(*n).filter(|n| i64::try_from(*n).is_ok()),
            _ => None,
        };
        let fixed = |op: &Op| {
            let at = operand(op, "addr").and_then(|a| number(&a))?;
            Some((at, op.result_types.first()?.ty.clone()))
        };
        let mut handles = FxHashSet::default();
        let mut found: Vec<(Word, Array, Word)> = Vec::new();
        for (name, op) in &definitions {
            let Some(op) = op.filter(|op| op.row.name == "pto.tassign") else { continue };
            let tile = operand(op, "tile");
            let is_handle = tile.as_ref().is_some_and(|tile| {
                uses.get(tile) == Some(&1) && find(tile).is_some_and(|op| op.row.name == "pto.alloc_tile")
            });
            let binding = || {
                let sum = find(&operand(op, "addr")?).filter(|op| op.row.name == "arith.addi")?;
                let product = find(&operand(sum, "lhs")?).filter(|op| op.row.name == "arith.muli")?;
                let cast = find(&operand(product, "lhs")?).filter(|op| op.row.name == "arith.index_cast")?;
                let (step, first) = (number(&operand(product, "rhs")?)?, number(&operand(sum, "rhs")?)?);
                let (at, ty) = fixed(find(tile.as_ref()?)?)?;
                let count = if at == first || !is_handle { 1 } else { at.checked_sub(first)?.checked_div(step)? + 1 };
                let same = first + (count - 1) * step == at && op.result_types.first().is_some_and(|t| t.ty == ty);
                let array = Array { first, step, count, ty };
                let fits = same && step != 0 && (1..=MOST).contains(&count);
                fits.then(|| Some((array, cast.operands.first()?.value.name.clone())))?
            };
            if let Some((array, element)) = binding() {
                found.push((name.clone(), array, element));
                handles.extend(tile.filter(|_| is_handle));
            }
        }
        found.sort_by(|a, b| (a.1.first, a.1.step, &a.0).cmp(&(b.1.first, b.1.step, &b.0)));
        let mut arrays: Vec<Array> = Vec::new();
        let mut bound = FxHashMap::default();
        for (name, array, element) in found {
            let same = |a: &Array| (a.first, a.step, &a.ty) == (array.first, array.step, &array.ty);
            let n = arrays.iter().position(same).unwrap_or_else(|| {
                arrays.push(array.clone());
                arrays.len() - 1
            });
            arrays[n].count = arrays[n].count.max(array.count);
            bound.insert(name, (n, element));
        }
        let tiles: Vec<(i128, Type)> = definitions
            .iter()
            .filter(|(name, _)| !handles.contains(*name))
            .filter_map(|(_, op)| op.filter(|op| op.row.name == "pto.alloc_tile"))
            .filter_map(fixed)
            .collect();
        let firsts: Vec<(i128, Type)> = arrays.iter().map(|a| (a.first, a.ty.clone())).collect();
        for array in arrays.iter_mut().filter(|a| a.count == 1) {
            // It ends where the next one begins.
            let is_next = |n: i128| {
                let next = (array.first + n * array.step, array.ty.clone());
                tiles.contains(&next) && !firsts.contains(&next)
            };
            while array.count < MOST && is_next(array.count) {
                array.count += 1;
            }
        }
        Arrays { arrays, bound, handles }
    }
}

fn define<'o>(region: &'o Region, found: &mut Definitions<'o>) {
    for op in &region.ops {
        for result in &op.results {
            found.entry(result.name.clone()).and_modify(|op| *op = None).or_insert(Some(op));
        }
        op.regions.iter().for_each(|r| define(r, found));
    }
}

//! Arrays of tiles. A tile that is bound to `n * step + first` is element n of an array, where the text allocates tiles
//! of its type at `first`, `first + step` and so on: that is how an array whose number a loop knows is written.

use crate::attr::AttrValue;
use crate::lexer::Word;
use crate::tree::{Op, Region};
use crate::types::Type;
use rustc_hash::FxHashMap;

/// The most elements of an array.
const MOST: i128 = 64;

/// Tiles of one type at addresses that are equally far apart.
#[derive(Clone, Debug)]
pub(super) struct Array {
    /// The name of its first element.
    pub name: Word,
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
}

/// Operations by what they define; `None` for a name that is defined several times.
type Definitions<'o> = FxHashMap<Word, Option<&'o Op>>;

impl Arrays {
    pub fn of(body: &Region) -> Arrays {
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
        let mut found: Vec<(Word, Array, Word)> = Vec::new();
        for (name, op) in &definitions {
            let Some(op) = op.filter(|op| op.row.name == "pto.tassign") else { continue };
            let binding = || {
                let sum = find(&operand(op, "addr")?).filter(|op| op.row.name == "arith.addi")?;
                let product = find(&operand(sum, "lhs")?).filter(|op| op.row.name == "arith.muli")?;
                let cast = find(&operand(product, "lhs")?).filter(|op| op.row.name == "arith.index_cast")?;
                let (step, first) = (number(&operand(product, "rhs")?)?, number(&operand(sum, "rhs")?)?);
                let name = operand(op, "tile")?;
                let (at, ty) = fixed(find(&name)?)?;
                let same = at == first && op.result_types.first().is_some_and(|t| t.ty == ty) && step != 0;
                let array = Array { name, first, step, count: 1, ty };
                same.then(|| Some((array, cast.operands.first()?.value.name.clone())))?
            };
            found.extend(binding().map(|(array, element)| (name.clone(), array, element)));
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
            bound.insert(name, (n, element));
        }
        let tiles: Vec<(&Word, i128, Type)> = definitions
            .iter()
            .filter_map(|(name, op)| Some((name, op.filter(|op| op.row.name == "pto.alloc_tile")?)))
            .filter_map(|(name, op)| fixed(op).map(|(at, ty)| (name, at, ty)))
            .collect();
        let firsts: Vec<(i128, Type)> = arrays.iter().map(|a| (a.first, a.ty.clone())).collect();
        for array in &mut arrays {
            // It ends where the next one begins, and where a tile has a name of its own.
            let is_next = |n: i128| {
                let at = array.first + n * array.step;
                tiles.iter().any(|(name, a, ty)| *a == at && *ty == array.ty && is_element(name, &array.name, n))
                    && !firsts.iter().any(|(first, ty)| *first == at && *ty == array.ty)
            };
            while array.count < MOST && is_next(array.count) {
                array.count += 1;
            }
        }
        Arrays { arrays, bound }
    }
}

/// Whether a name is what element `n` is called where the first one has this name: `%7` of `%5`, `%src_2` of `%src`.
fn is_element(name: &str, first: &str, n: i128) -> bool {
    match first.parse::<i128>() {
        Ok(first) => name.parse() == Ok(first.saturating_add(n)),
        Err(_) => name.strip_prefix(first).and_then(|n| n.strip_prefix('_')).is_some_and(|n| n.parse::<u32>().is_ok()),
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

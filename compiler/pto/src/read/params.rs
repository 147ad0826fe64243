//! Arguments: what tensors their pointers are, which numbers are extents, and what is read and written.

use super::meaning::Product;
use crate::attr::AttrValue;
use crate::lexer::Word;
use crate::tree::{Function, Op, Region};
use crate::types::Type;
use ptoc_tensor::DType;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeSet;

/// How the elements behind a pointer are seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// As an array, row by row.
    Rows(Vec<Product>),
    /// As an array with these strides.
    Strided(Vec<Product>, Vec<Product>),
    /// In several ways: as a list.
    Flat,
}

/// What is known of a pointer.
#[derive(Clone, Debug)]
pub(super) struct Tensor {
    /// How it is seen.
    pub shape: Shape,
    /// Whether it is read.
    pub read: bool,
    /// Whether it is written.
    pub written: bool,
}

impl Tensor {
    /// The language's word for what is done with it; `given`: the launch gives its contents.
    pub fn direction(&self, given: bool) -> &'static str {
        match (self.read || given, self.written) {
            (_, false) => "in",
            (false, true) => "out",
            (true, true) => "inout",
        }
    }
}

/// The rows and columns of an array of any number of modes: all but the last one count rows.
pub(super) fn rows_of(extents: &[i64]) -> Option<(i64, i64)> {
    let (cols, rows) = extents.split_last()?;
    let rows = rows.iter().try_fold(1i64, |n, e| n.checked_mul(*e))?;
    rows.checked_mul(*cols)?;
    Some((rows, *cols))
}

/// Extents and element of an argument that is an array in global memory: a `memref`, or a view of a known size, whose
/// elements lie one behind the other.
pub(super) fn array(ty: &Type) -> Option<(Vec<i64>, Word)> {
    match ty {
        Type::PartitionView(extents, element) | Type::TensorView(extents, element) => {
            Some((extents.iter().copied().collect::<Option<Vec<i64>>>()?, element.clone()))
        }
        other => other.memref().filter(|m| m.2 == "gm").map(|m| (m.0, m.1)),
    }
}

/// What is known of a function's arguments and values before it is translated.
#[derive(Debug, Default)]
pub(super) struct Facts {
    /// Pointers, by the arguments' names.
    pub tensors: FxHashMap<Word, Tensor>,
    /// Views of pointers, by their names.
    pub views: FxHashMap<Word, Seen>,
    /// Values that are computed from arguments once: the operation and its operands.
    pub computed: FxHashMap<Word, (&'static str, Product, Product)>,
    /// Arguments that are extents of arrays.
    pub extents: FxHashSet<Word>,
    /// How often each value is used.
    pub uses: FxHashMap<Word, u32>,
    /// Tiles of a bit an element, and how many columns these are of.
    pub masks: FxHashMap<Word, i64>,
    /// The dtype that all uses of a number ask for.
    pub wanted: FxHashMap<Word, Option<DType>>,
    /// How often each is used as storage to work in.
    pub scratch: FxHashMap<Word, u32>,
    /// Other views of a tile's bytes that may be copies.
    pub unseen_copies: FxHashSet<Word>,
    /// Tiles that are moved.
    pub moved: FxHashSet<Word>,
    /// Arrays of tiles.
    pub arrays: super::arrays::Arrays,
    /// Whether the author orders the pipes: with flags, or with barriers where the tiles have addresses, too.
    pub flags: bool,
    /// Whether tiles have addresses, as in text of level 3.
    pub addressed: bool,
    /// Whether there are barriers.
    pub barriers: bool,
    /// Pipes between which there are flags whose number the launch knows.
    pub numbered_flags: FxHashSet<(String, String)>,
    /// The numbers of flags between two pipes, of those that the text numbers.
    pub flag_numbers: FxHashMap<(String, String), BTreeSet<u32>>,
    /// Tiles that nothing has written before a scatter writes to them.
    pub scattered: FxHashSet<Word>,
    /// Whether the function knows in which block it runs.
    pub blocks: bool,
}

impl Facts {
    /// Reads them off the function.
    pub fn of(f: &Function) -> Facts {
        let mut walk = Walk::default();
        for param in &f.params {
            match param.ty.as_ref().map(|t| &t.ty) {
                Some(Type::Ptr(_)) => {
                    walk.pointers.insert(param.name.clone(), param.name.clone());
                    walk.views.insert(param.name.clone(), Vec::new());
                }
                Some(ty) if array(ty).is_some() => {
                    walk.pointers.insert(param.name.clone(), param.name.clone());
                    walk.views.insert(param.name.clone(), vec![None]);
                }
                Some(ty) if ty.is_scalar() => {
                    walk.products.insert(param.name.clone(), Some(Product::argument(&param.name)));
                }
                _ => {}
            }
        }
        if let Some(body) = &f.body {
            body.ops.iter().for_each(|op| walk.outermost(op));
        }
        walk.spread_masks();
        let mut facts = std::mem::take(&mut walk.facts);
        facts.flags |= facts.addressed && facts.barriers;
        facts.unseen_copies = f.body.as_ref().map(super::aliases::unseen_copies).unwrap_or_default();
        facts.arrays = f.body.as_ref().map(|b| super::arrays::Arrays::of(b, &facts.uses)).unwrap_or_default();
        facts.wanted = f.body.as_ref().map(|b| super::signs::wanted(b, &facts.masks)).unwrap_or_default();
        for param in &f.params {
            if let Some(views) = walk.views.get(&param.name) {
                let shape = shape(views, &facts.uses);
                let (read, written) = (walk.read.contains(&param.name), walk.written.contains(&param.name));
                facts.tensors.insert(param.name.clone(), Tensor { shape, read, written });
            }
        }
        let bare = facts.tensors.values().flat_map(|t| match &t.shape {
            Shape::Rows(extents) | Shape::Strided(extents, _) => extents.as_slice(),
            Shape::Flat => &[],
        });
        facts.extents = bare.filter(|p| p.factor == 1 && p.of.len() == 1).map(|p| p.of[0].clone()).collect();
        facts
    }
}

/// A view of a pointer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    name: Word,
    pub extents: Vec<Product>,
    strides: Vec<Product>,
}

/// Operations whose results may be extents.
const COMPUTED: [&str; 5] = ["arith.addi", "arith.subi", "arith.floordivsi", "arith.maxsi", "arith.minsi"];

#[derive(Default)]
struct Walk {
    facts: Facts,
    /// Numbers that are products of arguments; `None` for a name of several values.
    products: FxHashMap<Word, Option<Product>>,
    /// Values that are pointers, views of them or parts of these: the argument.
    pointers: FxHashMap<Word, Word>,
    /// Views of each argument; `None` where its elements are seen in another way.
    views: FxHashMap<Word, Vec<Option<Seen>>>,
    /// Tiles of one bitwise operation each.
    bitwise: Vec<Vec<Word>>,
    read: FxHashSet<Word>,
    written: FxHashSet<Word>,
}

impl Walk {
    /// An operation that the function comes to once: what it computes may be an extent.
    fn outermost(&mut self, op: &Op) {
        self.op(op);
        let (Some(result), Some(a), Some(b)) = (op.results.first(), op.operand("lhs"), op.operand("rhs")) else {
            return;
        };
        let of = |value: &crate::tree::Value| self.products.get(&value.name).cloned().flatten();
        let known = self.products.get(&result.name).is_some_and(Option::is_some);
        if let (Some(a), Some(b), false) = (of(&a.value), of(&b.value), known)
            && COMPUTED.contains(&op.row.name)
        {
            self.facts.computed.insert(result.name.clone(), (op.row.name, a, b));
            self.products.insert(result.name.clone(), Some(Product::argument(&result.name)));
        }
    }

    fn region(&mut self, region: &Region) {
        region.ops.iter().for_each(|op| self.op(op));
    }

    fn op(&mut self, op: &Op) {
        for operand in &op.operands {
            let name = operand.value.name.clone();
            if operand.slot == "tmp" {
                *self.facts.scratch.entry(name.clone()).or_default() += 1;
            }
            *self.facts.uses.entry(name).or_default() += 1;
        }
        match op.row.name {
            "arith.constant" => {
                let value = op.attr("value").and_then(|a| a.value.as_ref()).and_then(AttrValue::int);
                self.product(op, value.map(Product::number));
            }
            "arith.muli" => {
                let of = |slot| op.operand(slot).and_then(|o| self.products.get(&o.value.name).cloned().flatten());
                let product = of("lhs").zip(of("rhs")).and_then(|(a, b)| a.times(&b));
                self.product(op, product);
            }
            "arith.index_cast" | "arith.extsi" => {
                let of = op.operands.first().and_then(|o| self.products.get(&o.value.name).cloned().flatten());
                self.product(op, of);
            }
            "pto.make_tensor_view" => self.view(op),
            "pto.addptr" => {
                self.derive(op);
                self.flat(op);
            }
            "pto.partition_view" => self.derive(op),
            "pto.load_scalar" => {
                self.flat(op);
                self.touches(op, &["ptr"], false);
            }
            "pto.store_scalar" => {
                self.flat(op);
                self.touches(op, &["ptr"], true);
            }
            "pto.tcmp" | "pto.tcmps" => self.mask(op, "dst", if op.row.name == "pto.tcmp" { "src0" } else { "src" }),
            "pto.tand" | "pto.tor" | "pto.txor" | "pto.tnot" => {
                let tiles = op.operands.iter().filter(|o| o.slot != "tmp");
                self.bitwise.push(tiles.map(|o| o.value.name.clone()).collect());
            }
            "pto.tsel" => self.mask(op, "mask", "src0"),
            "pto.tsels" => self.mask(op, "mask", "src"),
            "pto.set_flag" | "pto.wait_flag" | "pto.record_event" | "pto.wait_event" => {
                self.facts.flags = true;
                if let (Some((from, to)), Some(n)) = (super::sync::pipes_of(op), super::sync::number_of(op)) {
                    self.facts.flag_numbers.entry((from.to_string(), to.to_string())).or_default().insert(n);
                }
            }
            "pto.set_flag_dyn" | "pto.wait_flag_dyn" => {
                self.facts.flags = true;
                let id = op.operand("event_id").and_then(|o| self.products.get(&o.value.name).cloned().flatten());
                if id.is_none_or(|n| !n.of.is_empty())
                    && let Some((from, to)) = super::sync::pipes_of(op)
                {
                    self.facts.numbered_flags.insert((from.to_string(), to.to_string()));
                }
            }
            "pto.tscatter" => {
                let fresh = op.operand("dst").map(|o| &o.value.name);
                self.facts.scattered.extend(fresh.filter(|n| self.facts.uses.get(*n) == Some(&1)).cloned());
            }
            "pto.tmov" => self.facts.moved.extend(op.operand("src").map(|o| o.value.name.clone())),
            "pto.get_block_idx" | "pto.get_block_num" => self.facts.blocks = true,
            "pto.alloc_tile" => self.facts.addressed |= op.operand("addr").is_some(),
            "pto.barrier" | "pto.barrier_sync" => self.facts.barriers = true,
            "pto.tstore" => {
                self.touches(op, &["dst"], true);
                // What is added to is read, too.
                if op.attr("atomicType").and_then(|a| a.value.as_ref()).and_then(AttrValue::word) == Some("atomic_add")
                {
                    self.touches(op, &["dst"], false);
                }
            }
            "pto.mscatter" => {
                self.touches(op, &["mem"], true);
                self.touches(op, &["mem"], false);
            }
            "pto.tload" | "pto.mgather" | "pto.tprefetch" => self.touches(op, &["src", "mem"], false),
            "pto.tstore_fp" => self.touches(op, &["dst"], true),
            _ => {}
        }
        op.regions.iter().for_each(|r| self.region(r));
    }

    /// What is made of masks bit by bit is one.
    fn spread_masks(&mut self) {
        loop {
            let before = self.facts.masks.len();
            for tiles in &self.bitwise {
                if let Some(cols) = tiles.iter().find_map(|t| self.facts.masks.get(t)).copied() {
                    self.facts.masks.extend(tiles.iter().map(|t| (t.clone(), cols)));
                }
            }
            if self.facts.masks.len() == before {
                return;
            }
        }
    }

    /// What stands in a slot has a bit for each element of another tile.
    fn mask(&mut self, op: &Op, slot: &str, of: &str) {
        let cols = match op.operand(of).and_then(|o| o.ty.as_ref()).map(|t| &t.ty) {
            Some(Type::TileBuf(tile)) => tile.cols,
            _ => return,
        };
        if let Some(mask) = op.operand(slot) {
            self.facts.masks.insert(mask.value.name.clone(), cols);
        }
    }

    fn product(&mut self, op: &Op, product: Option<Product>) {
        for result in &op.results {
            let known = self.products.contains_key(&result.name);
            self.products.insert(result.name.clone(), product.clone().filter(|_| !known));
        }
    }

    /// The result stems from the first operand's argument.
    fn derive(&mut self, op: &Op) {
        let from = op.operands.first().and_then(|o| self.pointers.get(&o.value.name)).cloned();
        if let (Some(from), Some(result)) = (from, op.results.first()) {
            self.pointers.insert(result.name.clone(), from);
        }
    }

    /// The argument is seen as a list.
    fn flat(&mut self, op: &Op) {
        let pointer = op.operand("ptr").and_then(|o| self.pointers.get(&o.value.name)).cloned();
        if let Some(views) = pointer.and_then(|p| self.views.get_mut(&p)) {
            views.push(None);
        }
    }

    fn view(&mut self, op: &Op) {
        self.derive(op);
        let all = |slot| -> Option<Vec<Product>> {
            op.operands_of(slot).map(|o| self.products.get(&o.value.name).cloned().flatten()).collect()
        };
        let name = op.results.first().map(|r| r.name.clone()).unwrap_or_default();
        let seen = all("shape").zip(all("strides")).map(|(extents, strides)| Seen { name, extents, strides });
        let pointer = op.operand("ptr").map(|o| o.value.name.clone());
        if let Some(views) = pointer.and_then(|p| self.views.get_mut(&p)) {
            if let Some(seen) = &seen {
                self.facts.views.insert(seen.name.clone(), seen.clone());
            }
            views.push(seen);
        }
    }

    fn touches(&mut self, op: &Op, slots: &[&str], written: bool) {
        for operand in op.operands.iter().filter(|o| slots.contains(&o.slot)) {
            if let Some(pointer) = self.pointers.get(&operand.value.name).cloned() {
                let set = if written { &mut self.written } else { &mut self.read };
                set.insert(pointer);
            }
        }
    }
}

/// One way in which all views see the elements, or as a list.
fn shape(views: &[Option<Seen>], uses: &FxHashMap<Word, u32>) -> Shape {
    let positive = |v: &Seen| v.extents.iter().chain(&v.strides).all(|n| n.factor > 0);
    let whole: Vec<&Seen> = views.iter().flatten().collect();
    let says = |v: &Seen| {
        positive(v) && is_row_major(&v.extents, &v.strides) && whole.iter().all(|o| modes_of(&v.extents, o).is_some())
    };
    // A view that nothing uses is there to say what the array is.
    if let Some(array) = whole.iter().find(|v| !uses.contains_key(&v.name) && says(v)) {
        return Shape::Rows(array.extents.clone());
    }
    if let Some(array) = whole.iter().find(|v| !uses.contains_key(&v.name) && positive(v))
        && fastest_first(&array.extents, &array.strides).is_some()
        && whole.iter().all(|o| (&o.extents, &o.strides) == (&array.extents, &array.strides))
    {
        return Shape::Strided(array.extents.clone(), array.strides.clone());
    }
    if whole.is_empty() || whole.len() < views.len() {
        return Shape::Flat;
    }
    let first = whole[0];
    if whole.iter().all(|v| (&v.extents, &v.strides) == (&first.extents, &first.strides)) {
        return match is_row_major(&first.extents, &first.strides) {
            // Extents that are no positive numbers are said where the view is made.
            _ if !positive(first) => Shape::Flat,
            true => Shape::Rows(first.extents.clone()),
            false => Shape::Strided(first.extents.clone(), first.strides.clone()),
        };
    }
    // The others have its modes in another order, or several as one.
    match whole.iter().filter(|v| says(v)).max_by_key(|v| v.extents.len()) {
        Some(array) => Shape::Rows(array.extents.clone()),
        None => Shape::Flat,
    }
}

/// The modes of an array whose elements lie one behind the other, the fastest first.
pub(super) fn fastest_first(extents: &[Product], strides: &[Product]) -> Option<Vec<usize>> {
    let mut order: Vec<usize> = Vec::with_capacity(extents.len());
    let mut stride = Product::number(1);
    while order.len() < extents.len() {
        let next = (0..extents.len()).find(|k| !order.contains(k) && strides[*k] == stride)?;
        stride = stride.times(&extents[next])?;
        order.push(next);
    }
    Some(order)
}

/// Strides of an array that fills its elements row by row.
fn row_major(extents: &[Product]) -> Option<Vec<Product>> {
    let mut strides = vec![Product::number(1)];
    for extent in extents.iter().skip(1).rev() {
        let next = strides.last()?.times(extent)?;
        strides.push(next);
    }
    strides.reverse();
    Some(strides)
}

/// Whether each stride is the product of the extents behind it. That of an extent of 1 is anything.
pub(super) fn is_row_major(extents: &[Product], strides: &[Product]) -> bool {
    let Some(filling) = row_major(extents) else { return false };
    extents.iter().zip(strides).zip(&filling).all(|((n, stride), own)| stride == own || *n == Product::number(1))
}

/// What the modes of a view are of an array with these extents, which is seen row by row: the numbers of the array's
/// modes that lie in a row, none for a mode of one element that the array does not have. All modes of the array are
/// there, but for those of one element.
pub(super) fn modes_of(array: &[Product], view: &Seen) -> Option<Vec<std::ops::Range<usize>>> {
    let one = Product::number(1);
    let strides = row_major(array)?;
    let mut free = vec![true; array.len()];
    let mut modes = Vec::with_capacity(view.extents.len());
    for (extent, stride) in view.extents.iter().zip(&view.strides).rev() {
        let mut fits = (0..array.len()).rev().filter(|k| free[*k]);
        if *extent == one {
            let k = fits.find(|k| array[*k] == one && strides[*k] == *stride);
            k.iter().for_each(|k| free[*k] = false);
            modes.push(k.map_or(array.len()..array.len(), |k| k..k + 1));
            continue;
        }
        let last = fits.find(|k| array[*k] != one && strides[*k] == *stride)?;
        let (mut first, mut all) = (last, array[last].clone());
        while all != *extent {
            first = first.checked_sub(1).filter(|k| free[*k])?;
            all = all.times(&array[first])?;
        }
        free[first..=last].fill(false);
        modes.push(first..last + 1);
    }
    modes.reverse();
    (0..array.len()).all(|k| !free[k] || array[k] == one).then_some(modes)
}

//! Arguments: what tensors their pointers are, which numbers are extents, and what is read and written.

use super::meaning::Product;
use crate::attr::AttrValue;
use crate::lexer::Word;
use crate::tree::{Function, Op, Region};
use crate::types::Type;
use rustc_hash::{FxHashMap, FxHashSet};

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

/// What is known of a function's arguments and values before it is translated.
#[derive(Debug, Default)]
pub(super) struct Facts {
    /// Pointers, by the arguments' names.
    pub tensors: FxHashMap<Word, Tensor>,
    /// Arguments that are extents of arrays.
    pub extents: FxHashSet<Word>,
    /// How often each value is used.
    pub uses: FxHashMap<Word, u32>,
    /// Tiles of a bit an element, and how many columns these are of.
    pub masks: FxHashMap<Word, i64>,
    /// How often each is used as storage to work in.
    pub scratch: FxHashMap<Word, u32>,
    /// Other views of a tile's bytes that may be copies.
    pub unseen_copies: FxHashSet<Word>,
    /// Whether the author orders the pipes.
    pub flags: bool,
    /// Pipes between which there are flags whose number the launch knows.
    pub numbered_flags: FxHashSet<(String, String)>,
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
                Some(ty) if ty.memref().is_some() => {
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
            walk.region(body);
        }
        walk.spread_masks();
        let mut facts = std::mem::take(&mut walk.facts);
        facts.unseen_copies = f.body.as_ref().map(super::aliases::unseen_copies).unwrap_or_default();
        for param in &f.params {
            if let Some(views) = walk.views.get(&param.name) {
                let shape = shape(views);
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

/// A view of a pointer: shape and strides, if both are products of arguments.
type Seen = Option<(Vec<Product>, Vec<Product>)>;

#[derive(Default)]
struct Walk {
    facts: Facts,
    /// Numbers that are products of arguments; `None` for a name of several values.
    products: FxHashMap<Word, Option<Product>>,
    /// Values that are pointers, views of them or parts of these: the argument.
    pointers: FxHashMap<Word, Word>,
    views: FxHashMap<Word, Vec<Seen>>,
    /// Tiles of one bitwise operation each.
    bitwise: Vec<Vec<Word>>,
    read: FxHashSet<Word>,
    written: FxHashSet<Word>,
}

impl Walk {
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
            "pto.set_flag" | "pto.wait_flag" | "pto.record_event" | "pto.wait_event" => self.facts.flags = true,
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
            "pto.get_block_idx" | "pto.get_block_num" => self.facts.blocks = true,
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
        let seen = all("shape").zip(all("strides"));
        let pointer = op.operand("ptr").map(|o| o.value.name.clone());
        if let Some(views) = pointer.and_then(|p| self.views.get_mut(&p)) {
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
fn shape(views: &[Seen]) -> Shape {
    let Some(Some((extents, strides))) = views.first() else { return Shape::Flat };
    let same = views.iter().all(|v| v.as_ref() == Some(&(extents.clone(), strides.clone())));
    // Extents that are no positive numbers are said where the view is made.
    if !same || extents.iter().any(|e| e.factor <= 0) || strides.iter().any(|s| s.factor <= 0) {
        return Shape::Flat;
    }
    match is_row_major(extents, strides) {
        true => Shape::Rows(extents.clone()),
        false => Shape::Strided(extents.clone(), strides.clone()),
    }
}

/// Whether each stride is the product of the extents behind it. That of an extent of 1 is anything.
pub(super) fn is_row_major(extents: &[Product], strides: &[Product]) -> bool {
    let mut behind = Product::number(1);
    for (extent, stride) in extents.iter().zip(strides).rev() {
        if *stride != behind && *extent != Product::number(1) {
            return false;
        }
        let Some(more) = behind.times(extent) else { return false };
        behind = more;
    }
    true
}

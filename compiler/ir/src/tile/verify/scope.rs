//! What is visible where.

use crate::tile::{Kernel, Label, Tile, Value};
use cranelift_entity::{EntitySet, SecondaryMap};

/// What a label names.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Target {
    /// A loop that is being run.
    Loop,
    /// A scope.
    Scope,
}

/// Visible values, tiles and labels, with a trail to undo on leaving a region.
pub(super) struct Scopes {
    defined: EntitySet<Value>,
    visible: EntitySet<Value>,
    allocated: EntitySet<Tile>,
    consts: SecondaryMap<Value, Option<i64>>,
    /// Scalar arguments that wait for their default.
    waiting: Vec<(Value, Value)>,
    trail: Vec<Value>,
    tile_trail: Vec<Tile>,
    labels: Vec<(Label, Target)>,
    used_labels: EntitySet<Label>,
}

/// A place in the trails.
pub(super) struct Mark(usize, usize);

impl Scopes {
    pub fn new(kernel: &Kernel) -> Scopes {
        Scopes {
            defined: EntitySet::with_capacity(kernel.values.len()),
            visible: EntitySet::with_capacity(kernel.values.len()),
            allocated: EntitySet::with_capacity(kernel.tiles.len()),
            consts: SecondaryMap::new(),
            waiting: Vec::new(),
            trail: Vec::new(),
            tile_trail: Vec::new(),
            labels: Vec::new(),
            used_labels: EntitySet::new(),
        }
    }

    /// False if it was defined before.
    pub fn define(&mut self, value: Value) -> bool {
        self.show(value);
        let mut ready = Vec::new();
        self.waiting.retain(|&(param, default)| {
            if default == value {
                ready.push(param);
            }
            default != value
        });
        ready.into_iter().for_each(|param| self.show(param));
        self.defined.insert(value)
    }

    pub fn show(&mut self, value: Value) {
        self.visible.insert(value);
        self.trail.push(value);
    }

    /// `param` becomes visible when `default` is defined.
    pub fn hide_until(&mut self, param: Value, default: Value) {
        self.visible.remove(param);
        self.waiting.push((param, default));
    }

    pub fn is_visible(&self, value: Value) -> bool {
        self.visible.contains(value)
    }

    pub fn is_defined(&self, value: Value) -> bool {
        self.defined.contains(value)
    }

    pub fn set_const(&mut self, value: Value, index: Option<i64>) {
        self.consts[value] = index;
    }

    /// The `index` constant that the value is.
    pub fn index(&self, value: Value) -> Option<i64> {
        self.consts[value]
    }

    pub fn allocate(&mut self, tile: Tile) {
        if self.allocated.insert(tile) {
            self.tile_trail.push(tile);
        }
    }

    pub fn is_allocated(&self, tile: Tile) -> bool {
        self.allocated.contains(tile)
    }

    pub fn mark(&self) -> Mark {
        Mark(self.trail.len(), self.tile_trail.len())
    }

    /// Forgets what became visible since the mark.
    pub fn rewind(&mut self, mark: &Mark) {
        for value in self.trail.drain(mark.0..) {
            self.visible.remove(value);
        }
        for tile in self.tile_trail.drain(mark.1..) {
            self.allocated.remove(tile);
        }
    }

    /// Enters a labelled region; false if the label was used before.
    pub fn push_label(&mut self, label: Label, target: Target) -> bool {
        self.labels.push((label, target));
        self.used_labels.insert(label)
    }

    pub fn pop_label(&mut self) {
        self.labels.pop();
    }

    pub fn target(&self, label: Label) -> Option<Target> {
        self.labels.iter().rev().find(|(l, _)| *l == label).map(|(_, t)| *t)
    }
}

//! What the names of the source stand for in tile IR, scope by scope: for a debugger. Nothing else depends on it.

use crate::env::{Binding, Entered};
use crate::value::{TileVal, Val};
use crate::window::{Quantity, TableLookup, View};
use ptoc_diagnostics::{Diagnostic, Span};
use ptoc_ir::tile::{Elem, Event, Kernel, TensorId, Tile, Trail, Value, Var};
use ptoc_isa::Oob;
use ptoc_names::builtins::Word;
use ptoc_syntax::ast::Name;
use ptoc_tensor::DType;

/// The scopes of an instance.
#[derive(Clone, Debug, Default)]
pub struct DebugInfo {
    /// By number. Number 0 is around all others.
    pub scopes: Vec<Scope>,
    /// The scope of each statement.
    pub trail: Trail,
}

/// A block of the source, once for each time that it was translated.
#[derive(Clone, Debug)]
pub struct Scope {
    /// The block around it; of a function's body, the block that calls it. Number 0 is its own.
    pub parent: u32,
    /// The function and the place of its call, if this is the body of one.
    pub call: Option<(Name, Span)>,
    /// What is defined in it, in order: a later name hides an equal one.
    pub names: Vec<Named>,
}

/// A name.
#[derive(Clone, Debug)]
pub struct Named {
    /// The name.
    pub name: Name,
    /// Its definition.
    pub span: Span,
    /// What it stands for.
    pub what: NameMeaning,
}

/// What a name stands for.
#[derive(Clone, Debug)]
pub enum NameMeaning {
    /// A constant of the program text, as it would be written.
    Text(String),
    /// A scalar.
    Scalar(Value),
    /// A mutable scalar.
    Var(Var),
    /// A block of `tiles(n, size)`, or an extent.
    Block(BlockIndex),
    /// `tiles(n, size)`
    Tiles {
        /// Length of the domain.
        n: Value,
        /// Of a block.
        size: u32,
        /// Number of blocks.
        count: Value,
    },
    /// `lo..hi`
    Range(Value, Value),
    /// A tile, or a window of one.
    Tile(TileWindow),
    /// An array of tiles.
    TileArray(TileWindow, u32),
    /// An event, an array of events, or an element of one.
    Event(EventWindow),
    /// A ring.
    Ring(Box<Ring>),
    /// A window of a tensor.
    View(TensorWindow),
    /// Several things.
    Tuple(Vec<NameMeaning>),
    /// Something without a value at run time ("a function").
    Other(&'static str),
}

/// A block index.
#[derive(Clone, Copy, Debug)]
pub struct BlockIndex {
    /// Capacity.
    pub size: u32,
    /// Valid length.
    pub len: Value,
    /// Number of the block, first index and one past the last; absent for an extent.
    pub place: Option<[Value; 3]>,
}

/// A tile as a name sees it.
#[derive(Clone, Copy, Debug)]
pub struct TileWindow {
    /// The storage.
    pub tile: Tile,
    /// Element of a tile array.
    pub element: Option<Value>,
    /// First row and column.
    pub origin: Option<(Value, Value)>,
    /// Rows as the program sees them.
    pub rows: u32,
    /// Columns as the program sees them.
    pub cols: u32,
    /// Valid shape, where it is not the storage's current one.
    pub valid: Option<(Value, Value)>,
}

/// A flag or barrier as a name sees it.
#[derive(Clone, Copy, Debug)]
pub struct EventWindow {
    /// The event or array.
    pub event: Event,
    /// The element that was chosen; `None` is all of them.
    pub element: Option<Value>,
}

/// A ring.
#[derive(Clone, Debug)]
pub struct Ring {
    /// The slots, an array of `count`.
    pub slots: TileWindow,
    /// Their number.
    pub count: u32,
    /// Flags that say that a slot is filled, and that it is free.
    pub events: (Event, Event),
    /// The slots that are filled and emptied next; absent for a ring of one.
    pub next: Option<(Var, Var)>,
}

/// A tensor, or a window of one.
#[derive(Clone, Debug)]
pub struct TensorWindow(View);

impl TensorWindow {
    /// The tensor.
    pub fn tensor(&self) -> TensorId {
        self.0.tensor
    }

    /// How an element is read.
    pub fn elem(&self) -> Elem {
        self.0.elem
    }

    /// Element type, as the program sees it.
    pub fn dtype(&self) -> DType {
        self.0.dtype
    }

    /// Extent of each mode.
    pub fn extents(&self) -> impl Iterator<Item = Value> + '_ {
        self.0.window.modes.iter().map(|m| m.extent)
    }

    /// Number of the element at `index`, one for each mode, in the tensor's buffer. `get` gives values, `entry`
    /// elements of tables. `None` where there is no element: a guard or a table excludes it.
    pub fn element(
        &self,
        index: &[i64],
        get: &dyn Fn(Value) -> i64,
        entry: &dyn Fn(TensorId, i64) -> Option<i64>,
    ) -> Option<i64> {
        let window = &self.0.window;
        let mut at: Vec<i64> = window.starts.iter().map(|&v| get(v)).collect();
        for (mode, &i) in window.modes.iter().zip(index) {
            let mut rest = i;
            let leaves = mode.tree.leaves();
            for (n, leaf) in leaves.iter().enumerate() {
                // The first leaf is the fastest; the last takes what is left.
                let extent = if n + 1 == leaves.len() { i64::MAX } else { get(leaf.extent).max(1) };
                let step = rest % extent;
                rest /= extent;
                for (q, &by) in at.iter_mut().zip(&leaf.by) {
                    *q = q.wrapping_add(step.wrapping_mul(get(by)));
                }
            }
        }
        let mut offset = *at.first()?;
        for (q, &at) in window.quantities.iter().zip(&at) {
            match q {
                Quantity::Guard(bound) if at >= get(*bound) => return None,
                Quantity::Entry(lookup) => {
                    let found = looked_up(entry(lookup.tensor, at)?, lookup, get)?;
                    offset = offset.wrapping_add(found.wrapping_mul(get(lookup.stride)));
                }
                _ => {}
            }
        }
        Some(self.0.swizzle.map_or(offset, |s| s.apply(offset)))
    }
}

/// The entry that counts.
fn looked_up(entry: i64, lookup: &TableLookup, get: &dyn Fn(Value) -> i64) -> Option<i64> {
    let extent = get(lookup.extent);
    if (0..extent).contains(&entry) {
        return Some(entry);
    }
    match lookup.oob {
        Oob::Clamp if extent > 0 => Some(entry.clamp(0, extent - 1)),
        Oob::Wrap if extent > 0 => Some(entry.rem_euclid(extent)),
        _ => None,
    }
}

impl DebugInfo {
    /// The scope that is the body of the function in which `scope` is; 0 in the kernel itself.
    pub fn frame(&self, mut scope: u32) -> u32 {
        while scope != 0 && self.scopes[scope as usize].call.is_none() {
            scope = self.scopes[scope as usize].parent;
        }
        scope
    }

    /// Whether `scope` is the scope `outer`, or inside of it (calls included).
    pub fn is_inside(&self, mut scope: u32, outer: u32) -> bool {
        // A scope has a larger number than those around it.
        while scope > outer {
            scope = self.scopes[scope as usize].parent;
        }
        scope == outer
    }

    /// A report of a pass about a place in a function, with the calls that lead there.
    pub fn called_from(&self, d: Diagnostic) -> Diagnostic {
        self.called(d, &self.trail.statements)
    }

    /// As [`DebugInfo::called_from`], of a trap of the running kernel: a check, which lies in a statement or in an
    /// expression.
    pub fn trapped_in(&self, kernel: &Kernel, d: Diagnostic) -> Diagnostic {
        let known = kernel.values.iter().filter_map(|(v, data)| Some((data.span, *self.trail.values.get(v)?)));
        let mut places = self.trail.statements.clone();
        places.extend(known);
        self.called(d, &places)
    }

    /// `places` are those of the source with their scopes.
    fn called(&self, mut d: Diagnostic, places: &[(Span, u32)]) -> Diagnostic {
        /// Calls of one function that a report shows.
        const SHOWN: usize = 3;
        let Some(at) = d.span else { return d };
        let length = |s: &Span| s.end - s.start;
        let around = || places.iter().filter(|(s, _)| s.contains(at));
        let least = around().map(|(s, _)| length(s)).min();
        let mut frames: Vec<u32> = Vec::new();
        for (_, scope) in around().filter(|(s, _)| Some(length(s)) == least) {
            let frame = self.frame(*scope);
            if !frames.contains(&frame) {
                frames.push(frame);
            }
        }
        if frames.contains(&0) {
            return d;
        }
        let alone = frames.len() == 1;
        for &frame in frames.iter().take(SHOWN) {
            let mut scope = frame;
            while let Some((function, span)) = self.scopes.get(scope as usize).and_then(|s| s.call.as_ref()) {
                let values = self.scopes[scope as usize].names.iter().filter_map(|n| match &n.what {
                    NameMeaning::Text(text) => Some(format!("{} = {text}", n.name)),
                    _ => None,
                });
                let values: Vec<String> = values.take(6).collect();
                let with = match &values[..] {
                    [] => String::new(),
                    list => format!(", with {}", ptoc_isa::text::list(list)),
                };
                // What is said of the call itself, or of its arguments, has its place.
                if !span.contains(at) && !d.labels.iter().any(|l| l.span == *span) {
                    d = d.with_secondary(*span, format!("`{function}` is called here{with}"));
                }
                if !alone {
                    break;
                }
                scope = self.frame(self.scopes[scope as usize].parent);
            }
        }
        match frames.len().saturating_sub(SHOWN) {
            0 => d,
            1 => d.with_note("another call leads there, too"),
            n => d.with_note(format!("{n} other calls lead there, too")),
        }
    }

    /// The scopes that were entered, and the scope of each statement.
    pub fn new(entered: Vec<Entered>, trail: Trail) -> DebugInfo {
        let scopes = entered
            .into_iter()
            .map(|scope| Scope {
                parent: scope.parent,
                call: scope.call,
                names: scope
                    .names
                    .into_iter()
                    .map(|(name, binding, span)| {
                        let what = match binding {
                            Binding::Let(val) => what(&val),
                            Binding::Var(var, _) => NameMeaning::Var(var),
                        };
                        Named { name, span, what }
                    })
                    .collect(),
            })
            .collect();
        DebugInfo { scopes, trail }
    }
}

fn what(val: &Val) -> NameMeaning {
    match val {
        Val::Int(n) => NameMeaning::Text(n.to_string()),
        Val::Float(x) => NameMeaning::Text(format!("{x:?}")),
        Val::Bool(b) => NameMeaning::Text(b.to_string()),
        Val::Str(s) => NameMeaning::Text(format!("{s:?}")),
        Val::Word(Word::DType(d)) => NameMeaning::Text(d.to_string()),
        Val::Algebra(v) => NameMeaning::Text(v.to_string()),
        Val::Scalar(v) => NameMeaning::Scalar(*v),
        Val::Tuple(list) | Val::List(list) => NameMeaning::Tuple(list.iter().map(what).collect()),
        // Shown as a tuple is.
        Val::Record(r) => NameMeaning::Tuple(r.fields.iter().map(|(_, v)| what(v)).collect()),
        Val::Block(b) => NameMeaning::Block(BlockIndex {
            size: b.cap,
            len: b.len,
            place: b.place.as_ref().map(|p| [p.index, p.start, p.end]),
        }),
        Val::Tiles(t) => NameMeaning::Tiles { n: t.n, size: t.size, count: t.count },
        Val::Range(lo, hi) => NameMeaning::Range(*lo, *hi),
        Val::Tile(t) | Val::Mask(t, _) => NameMeaning::Tile(tile(t)),
        Val::TileArray(a) => {
            let window =
                TileWindow { tile: a.tile, element: None, origin: None, rows: a.rows, cols: a.cols, valid: None };
            NameMeaning::TileArray(window, a.count)
        }
        Val::View(v) => NameMeaning::View(TensorWindow(View::clone(v))),
        Val::Event(e) => NameMeaning::Event(EventWindow { event: e.event, element: e.element }),
        Val::Ring(r) => match what(&r.slots) {
            NameMeaning::Tile(slots) | NameMeaning::TileArray(slots, _) => {
                NameMeaning::Ring(Box::new(Ring { slots, count: r.count, events: r.events, next: r.next }))
            }
            other => other,
        },
        other => NameMeaning::Other(other.describe()),
    }
}

fn tile(t: &TileVal) -> TileWindow {
    TileWindow { tile: t.tile, element: t.element, origin: t.origin, rows: t.rows, cols: t.cols, valid: t.valid }
}

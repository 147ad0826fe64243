//! Tiles that `pto.tassign` binds to another address. In PTOAS it binds the handle itself, and its result is that
//! handle: what is used of the tile from there on is at the new address, under whatever name. Here the result is a tile
//! of its own, so a use of another name is not read.

use super::Res;
use crate::lexer::Word;
use crate::tree::{Function, Op, Region};
use ptoc_diagnostics::{Diagnostic, Span, codes};
use rustc_hash::FxHashMap;

/// Finds a use of a tile by a name that was bound to another address before.
pub(super) fn check(f: &Function) -> Res<()> {
    let Some(body) = &f.body else { return Ok(()) };
    let mut walk = Walk::default();
    walk.handles(body);
    if walk.handles.is_empty() { Ok(()) } else { walk.region(body) }
}

/// The name that has the handle's address, and the last binding; no name where that depends on what runs.
#[derive(Clone)]
struct Bound {
    name: Option<Word>,
    span: Span,
}

#[derive(Default)]
struct Walk {
    /// The tile that was allocated, by the names that it got by `tassign`, and by its own.
    handles: FxHashMap<Word, Word>,
    /// Handles that were bound, up to here.
    bound: FxHashMap<Word, Bound>,
}

fn tile(op: &Op) -> Option<&Word> {
    Some(&op.operand("tile").filter(|_| op.row.name == "pto.tassign")?.value.name)
}

impl Walk {
    fn handles(&mut self, region: &Region) {
        for op in &region.ops {
            if let (Some(tile), Some(result)) = (tile(op), op.results.first()) {
                let handle = self.handles.get(tile).unwrap_or(tile).clone();
                self.handles.insert(handle.clone(), handle.clone());
                self.handles.insert(result.name.clone(), handle);
            }
            op.regions.iter().for_each(|r| self.handles(r));
        }
    }

    fn region(&mut self, region: &Region) -> Res<()> {
        region.ops.iter().try_for_each(|op| self.op(op))
    }

    fn op(&mut self, op: &Op) -> Res<()> {
        for operand in op.operands.iter().filter(|o| o.slot != "tile" || op.row.name != "pto.tassign") {
            let name = &operand.value.name;
            let bound = self.handles.get(name).and_then(|handle| self.bound.get(handle));
            if let Some(bound) = bound.filter(|b| b.name.as_ref() != Some(name)) {
                return stale(name, operand.value.span, bound);
            }
        }
        self.regions(op)?;
        if let Some(handle) = tile(op).and_then(|tile| self.handles.get(tile)) {
            let name = op.results.first().map(|r| &r.name).or(tile(op)).cloned();
            self.bound.insert(handle.clone(), Bound { name, span: op.span });
            return Ok(());
        }
        // In each iteration it is another one.
        op.results.iter().for_each(|r| {
            self.bound.remove(&r.name);
        });
        Ok(())
    }

    /// What blocks bind may be bound behind them, and in front of that in loops.
    fn regions(&mut self, op: &Op) -> Res<()> {
        let mut own = Vec::new();
        op.regions.iter().for_each(|r| self.bindings(r, &mut own));
        if own.is_empty() {
            return op.regions.iter().try_for_each(|r| self.region(r));
        }
        if matches!(op.row.name, "scf.for" | "scf.while") {
            self.bound.extend(own.iter().cloned());
        }
        for region in &op.regions {
            let before: Vec<_> = own.iter().map(|(h, _)| (h.clone(), self.bound.get(h).cloned())).collect();
            self.region(region)?;
            for (handle, bound) in before {
                match bound {
                    Some(bound) => self.bound.insert(handle, bound),
                    None => self.bound.remove(&handle),
                };
            }
        }
        self.bound.extend(own);
        Ok(())
    }

    fn bindings(&self, region: &Region, own: &mut Vec<(Word, Bound)>) {
        for op in &region.ops {
            let handle = tile(op).and_then(|tile| self.handles.get(tile));
            own.extend(handle.map(|h| (h.clone(), Bound { name: None, span: op.span })));
            op.regions.iter().for_each(|r| self.bindings(r, own));
        }
    }
}

fn stale(name: &Word, span: Span, bound: &Bound) -> Res<()> {
    let message = format!("`%{name}` is used, and `pto.tassign` binds it to another address");
    let d = Diagnostic::error(codes::PTO_NOT_READ, span, message);
    let help = match &bound.name {
        Some(other) => format!("its name is `%{other}` from there on"),
        None => "allocate a tile for `pto.tassign` where it stands, and bind that one".to_owned(),
    };
    let note =
        "`pto.tassign` binds the tile itself: the result is another name of it, and all names have the new address";
    Err(Box::new(d.with_secondary(bound.span, "bound here").with_note(note).with_help(help)))
}

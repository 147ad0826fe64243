//! Writes: what they destroy, and what of them is left.

use super::contents::{Def, FIRST_DEF, NOTHING, Owner};
use super::places::shift;
use super::states::ByteState;
use super::walk::{ByteInterpreter, DefInfo, Element, owner};
use super::window::TouchedPart;
use ptoc_ir::tile::{Stmt, Tile, TileRef};
use std::rc::Rc;

impl<'k> ByteInterpreter<'k> {
    pub(super) fn write(&mut self, stmt: &'k Stmt, state: &mut ByteState, r: &TileRef, part: TouchedPart) {
        let places = self.places(state, r, part);
        let def = self.def(stmt, r.tile, places.element);
        if !places.certain {
            self.defs[(def.0 - FIRST_DEF) as usize].somewhere = true;
        }
        let in_turn = self.in_turn(&places);
        let ByteInterpreter { sets, defs, keys, numbers, path, .. } = self;
        let own = Owner { tile: r.tile, element: places.element };
        if places.certain && places.extent.exact {
            let (storage, base) = places.all[0];
            let ranges = shift(&places.extent.most, base);
            let mut gone = Vec::new();
            state.storages[storage].visit(&ranges, &mut |_, set| gone.extend(sets.get(set).iter().map(|e| e.def)));
            for old in gone.into_iter().filter(|d| d.0 >= FIRST_DEF) {
                defs[(old.0 - FIRST_DEF) as usize].overwritten.get_or_insert(stmt.span);
            }
            let owners = |d: Def| owner(defs, d);
            Rc::make_mut(&mut state.storages[storage]).update(&ranges, &mut |set| {
                let victims = sets.victims(set, own, &owners);
                sets.only(def, victims)
            });
            return;
        }
        let key = (!matches!(part, TouchedPart::Some(_) | TouchedPart::Within(..))).then_some(places.key);
        // What is written somewhere in a tile destroys nothing that could be named.
        let placed = places.certain && !places.extent.full.is_empty();
        let somewhere = !placed && !matches!(part, TouchedPart::Some(_) | TouchedPart::Within(..)) && !in_turn;
        let owners = |d: Def| owner(defs, d);
        for (storage, ranges) in places.most() {
            let contents = Rc::make_mut(&mut state.storages[storage]);
            let covers = |outer, inner| keys.covers(outer, inner, numbers, path);
            contents
                .update(&ranges, &mut |set| sets.overlaid(set, def, key, &covers, (placed, somewhere), own, &owners));
        }
        // Wherever it is, these bytes are in it.
        if let Some((storage, ranges)) = places.common().filter(|_| !places.certain && !in_turn) {
            Rc::make_mut(&mut state.storages[storage]).update(&ranges, &mut |set| {
                let victims = sets.victims(set, own, &owners);
                sets.only(def, victims)
            });
        }
        if places.certain {
            // Written anew, if anything is; and if nothing is, nothing is read there either.
            let (storage, base) = places.all[0];
            let ranges = shift(&places.extent.least, base);
            Rc::make_mut(&mut state.storages[storage]).update(&ranges, &mut |set| sets.restored(set, own, &owners));
        }
    }

    fn def(&mut self, stmt: &'k Stmt, tile: Tile, element: Element) -> Def {
        let next = Def(self.defs.len() as u32 + FIRST_DEF);
        let def = *self.def_ids.entry((std::ptr::from_ref(stmt), tile, element)).or_insert(next);
        if def == next {
            let span = stmt.span;
            self.defs.push(DefInfo {
                tile,
                element,
                span,
                used: false,
                overwritten: None,
                at_end: false,
                somewhere: false,
            });
        }
        def
    }

    pub(super) fn note_end(&mut self, end: &ByteState) {
        for storage in &end.storages {
            let mut left = Vec::new();
            storage.visit(&[(0, u64::MAX)], &mut |_, set| {
                if set != NOTHING {
                    left.extend(self.sets.get(set).iter().map(|e| e.def));
                }
            });
            for def in left.into_iter().filter(|d| d.0 >= FIRST_DEF) {
                self.defs[(def.0 - FIRST_DEF) as usize].at_end = true;
            }
        }
    }
}

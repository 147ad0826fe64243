//! Reads: what they find that is unwritten, and what belongs to other tiles.

use super::contents::{Bytes, Def, EMPTY_LOOP, Entry, FIRST_DEF, UNWRITTEN, Vague};
use super::numbers::Literal;
use super::places::{Places, shift};
use super::states::ByteState;
use super::walk::{ByteInterpreter, Overlap, Unwritten, owns};
use super::window::{Key, TouchedPart};
use ptoc_ir::tile::{Stmt, SyncMode, Tile, TileRef};
use std::rc::Rc;

impl<'k> ByteInterpreter<'k> {
    fn visible(&self, e: &Entry, key: Key) -> bool {
        if e.literals.iter().any(|l| self.numbers.contradicts(*l, &self.path)) {
            return false;
        }
        // What is there at all is there where its conditions hold.
        let path: Vec<Literal> = self.path.iter().chain(&e.literals).copied().collect();
        !e.shadows.iter().any(|s| self.keys.has(*s, key, &self.numbers, &path))
    }

    /// An element of an array, nobody knows which, in a kernel whose author orders the pipes: who writes the elements
    /// before whom is what the flags are about.
    pub(super) fn in_turn(&self, places: &Places) -> bool {
        self.kernel.sync == SyncMode::Manual && places.element.is_none()
    }

    pub(super) fn read(&mut self, stmt: &'k Stmt, state: &mut ByteState, r: &TileRef, part: TouchedPart) {
        let places = self.places(state, r, part);
        let (mut written, mut used) = (true, Vec::new());
        for (storage, ranges) in places.most() {
            state.storages[storage].visit(&ranges, &mut |_, set| {
                let found = self.sets.get(set);
                let unwritten = |e: &Entry| matches!(e.def, UNWRITTEN | EMPTY_LOOP) && self.visible(e, places.key);
                written &= !found.iter().any(unwritten);
                used.extend(
                    found.iter().filter(|e| e.def.0 >= FIRST_DEF && self.visible(e, places.key)).map(|e| e.def),
                );
            });
        }
        for def in used {
            self.defs[(def.0 - FIRST_DEF) as usize].used = true;
        }
        if self.quiet == 0 {
            self.looked_at.insert((stmt.span, r.tile));
            if !written && !self.in_turn(&places) {
                self.unproved.insert((stmt.span, r.tile));
            }
        }
        self.foreign(stmt, state, r.tile, &places);
        if !places.certain {
            self.unwritten_anywhere(stmt, state, r, &places);
            return;
        }
        let (storage, base) = places.all[0];
        let ranges = shift(&places.extent.least, base);
        let id = (std::ptr::from_ref(stmt), r.tile, places.element);
        let (mut never, mut perhaps, mut empty): (Vec<Bytes>, Vec<Bytes>, Vec<Bytes>) = Default::default();
        state.storages[storage].visit(&ranges, &mut |(start, end), set| {
            let found = self.sets.get(set);
            let mut seen = found.iter().filter(|e| self.visible(e, places.key)).peekable();
            let (mut all, mut unwritten, mut no_loop) = (seen.peek().is_some(), false, false);
            for e in seen {
                all &= e.def == UNWRITTEN && e.vague == Vague::No;
                unwritten |= e.def == UNWRITTEN && e.vague == Vague::No;
                no_loop |= e.def == EMPTY_LOOP && e.vague == Vague::No;
            }
            match () {
                () if all => never.push((start - base, end - base)),
                () if unwritten => perhaps.push((start - base, end - base)),
                () if no_loop => empty.push((start - base, end - base)),
                () => {}
            }
        });
        // What is read where all is valid that can be, and nobody writes.
        let mut beyond: Vec<Bytes> = Vec::new();
        if never.is_empty() && perhaps.is_empty() {
            state.storages[storage].visit(&shift(&places.extent.full, base), &mut |(start, end), set| {
                let found = self.sets.get(set);
                let mut seen = found.iter().filter(|e| self.visible(e, places.key)).peekable();
                if seen.peek().is_some() && seen.all(|e| e.def == UNWRITTEN && e.vague == Vague::No) {
                    beyond.push((start - base, end - base));
                }
            });
        }
        let checked = self.checked == Some(stmt.span);
        let bad = [&never, &perhaps, &beyond].iter().any(|b| !b.is_empty()) || (!empty.is_empty() && !checked);
        let beyond_only = never.is_empty() && perhaps.is_empty() && !beyond.is_empty();
        if bad {
            if self.quiet == 0 {
                let sure = !never.is_empty() && !self.unsure;
                let always = !never.is_empty();
                let empty_loop = never.is_empty() && perhaps.is_empty() && beyond.is_empty();
                let bytes = [never, perhaps, beyond, empty].into_iter().find(|b| !b.is_empty()).unwrap_or_default();
                let (rows, cols) = match beyond_only {
                    true => places.extent.reach,
                    false => (places.extent.rows, places.extent.cols),
                };
                let new = Unwritten {
                    tile: r.tile,
                    span: stmt.span,
                    always,
                    sure,
                    empty_loop,
                    beyond: beyond_only,
                    bytes,
                    rows,
                    cols,
                };
                match self.unwritten.get_mut(&id) {
                    None => {
                        self.unwritten.insert(id, new);
                    }
                    Some(old) => {
                        let (always, sure, empty_loop) =
                            (old.always && always, old.sure || sure, old.empty_loop && empty_loop);
                        if (new.sure, new.always) > (old.sure, old.always) {
                            *old = new;
                        }
                        (old.always, old.sure, old.empty_loop) = (always, sure, empty_loop);
                    }
                }
            }
            let sets = &mut self.sets;
            let reported = shift(if beyond_only { &places.extent.full } else { &places.extent.least }, base);
            Rc::make_mut(&mut state.storages[storage]).update(&reported, &mut |set| sets.settled(set));
        } else if self.quiet == 0 {
            self.clean.insert(id);
        }
    }

    /// A read of which it is not known where it is: at each of its places it finds something that nothing has written.
    fn unwritten_anywhere(&mut self, stmt: &'k Stmt, state: &ByteState, r: &TileRef, places: &Places) {
        if self.quiet > 0 || places.anywhere || self.in_turn(places) || places.all.is_empty() {
            return;
        }
        let mut first: Option<Vec<Bytes>> = None;
        for &(storage, base) in &places.all {
            let mut never: Vec<Bytes> = Vec::new();
            state.storages[storage].visit(&shift(&places.extent.least, base), &mut |(start, end), set| {
                let found = self.sets.get(set);
                let mut seen = found.iter().filter(|e| self.visible(e, places.key)).peekable();
                if seen.peek().is_some() && seen.all(|e| e.def == UNWRITTEN && e.vague == Vague::No) {
                    never.push((start - base, end - base));
                }
            });
            if never.is_empty() {
                return;
            }
            first.get_or_insert(never);
        }
        let id = (std::ptr::from_ref(stmt), r.tile, places.element);
        let found = Unwritten {
            tile: r.tile,
            span: stmt.span,
            always: true,
            sure: !self.unsure,
            empty_loop: false,
            beyond: false,
            bytes: first.unwrap_or_default(),
            rows: places.extent.rows,
            cols: places.extent.cols,
        };
        self.unwritten.entry(id).or_insert(found);
    }

    /// What a read finds of other tiles.
    fn foreign(&mut self, stmt: &Stmt, state: &ByteState, tile: Tile, places: &Places) {
        let known = places.certain && !places.extent.full.is_empty();
        let all = match known {
            true => places.full().unwrap_or_default(),
            // What may be read of whole windows; where these are not either, nothing is said.
            false => places.sure(),
        };
        let mut found: Vec<(Bytes, Def, Vec<Def>, bool)> = Vec::new();
        for (storage, ranges) in all {
            state.storages[storage].visit(&ranges, &mut |bytes, set| {
                for e in self.sets.get(set).iter().filter(|e| e.def.0 >= FIRST_DEF && self.visible(e, places.key)) {
                    if owns(&self.defs, e.def, tile, places.element) {
                        continue;
                    }
                    let lost = |v: &Def| owns(&self.defs, *v, tile, places.element);
                    let lost: Vec<Def> = e.victims.iter().copied().filter(lost).collect();
                    // What may have been overwritten since says nothing about what the author means.
                    if !lost.is_empty() || (known && e.vague == Vague::No) {
                        found.push((bytes, e.def, lost, !known || e.maybe));
                    }
                }
            });
        }
        for (bytes, by, lost, maybe) in found {
            let other = self.defs[(by.0 - FIRST_DEF) as usize].tile;
            match lost.first() {
                None => {
                    self.aliases.insert((other.min(tile), other.max(tile)));
                }
                Some(&lost) if self.quiet == 0 => {
                    let new = Overlap { tile, read: stmt.span, lost, by, bytes, summary: self.any_summary, maybe };
                    let next = self.overlaps.len();
                    let at = *self.overlap_ids.entry((stmt.span, lost, by)).or_insert(next);
                    match self.overlaps.get_mut(at) {
                        // What is sure hides what is not.
                        Some(old) if old.maybe == maybe => {
                            old.bytes = (old.bytes.0.min(bytes.0), old.bytes.1.max(bytes.1));
                        }
                        Some(old) if old.maybe => (old.bytes, old.maybe) = (bytes, false),
                        Some(_) => {}
                        None => self.overlaps.push(new),
                    }
                }
                Some(_) => {}
            }
        }
    }
}

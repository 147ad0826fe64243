//! Where the map lies: as the author says, if the units' address generators find pixels that lie so, or as is chosen.

use super::{Plan, Refused, refuse, unit_at};
use crate::place::{last_slots, leaf, of_author, rows, slots, within};
use ptoc_abi::Coord;
use ptoc_diagnostics::codes;
use ptoc_isa::Oob;
use ptoc_pim_stream::placement::ArrayPlacement;
use ptoc_pim_stream::stream::{Items, MapLayout};

impl Plan<'_> {
    /// Bursts of a row.
    pub(super) fn row(&self) -> u32 {
        self.target.device.as_ref().map_or(32, |d| d.bursts)
    }

    /// The burst of a pixel's first channels and how many rows an item takes, if pixels lie so.
    fn formula(&self, layout: MapLayout) -> impl Fn(u32, u32) -> u64 {
        let [_, w, c] = self.size.map(u64::from);
        let (pixel, row) = (c / 16, u64::from(self.row()));
        move |y, x| {
            let (y, x) = (u64::from(y), u64::from(x));
            match layout {
                MapLayout::Pixels => (y * w + x) * pixel,
                MapLayout::Patches => (y / 2 * (w / 2) + x / 2) * row + (y % 2 * 2 + x % 2) * pixel,
            }
        }
    }

    fn item_rows(&self, layout: MapLayout) -> u32 {
        let [h, w, c] = self.size;
        match layout {
            MapLayout::Pixels => rows(h * w, c / 16, self.row()),
            MapLayout::Patches => (h / 2) * (w / 2),
        }
    }

    /// Finds out how the author's map lies, or decides.
    pub(super) fn place_map(&mut self) -> Result<(), Refused> {
        let [h, w, c] = self.size;
        let row = self.row();
        if !c.is_multiple_of(16) {
            let message = format!("a pixel is whole bursts of 16 channels, and this map has {c}");
            return refuse(codes::UNIT_MAP, self.first.span, message, "pad the channels to a multiple of 16");
        }
        let patches = h.is_multiple_of(2) && w.is_multiple_of(2) && 4 * (c / 16) <= row;
        let data = &self.kernel.tensors.values().nth(self.first.map.tensor as usize);
        let author = data.and_then(|t| t.place.as_ref());
        let Some(author) = author else {
            self.layout = if patches { MapLayout::Patches } else { MapLayout::Pixels };
            let Some(map) = self.chosen_map() else {
                let message = format!(
                    "a map of {h} x {w} pixels of {} bytes is neither 2 x 2 patches in rows of {} bytes nor whole rows \
                    of pixels",
                    2 * c,
                    32 * row
                );
                let help = match 4 * (c / 16) <= row {
                    true => {
                        let even = [h, w].map(|n| n.next_multiple_of(2));
                        let more = match self.first.border {
                            Oob::Zero => "with zeros, which are what lies beyond the border",
                            _ => {
                                "by its last line and column once more, which are what lies beyond the border: results \
                                 agree but for rounding"
                            }
                        };
                        format!("let the host extend the map to {} x {} pixels, {more}", even[0], even[1])
                    }
                    false => {
                        "a patch of four pixels fits in a row with fewer channels; sample them in parts".to_owned()
                    }
                };
                return refuse(codes::UNIT_MAP, self.first.span, message, &help);
            };
            self.map = map;
            self.map_rows = self.batch * self.item_rows(self.layout);
            return Ok(());
        };
        let Some(form) = &self.forms[0] else { return Ok(()) };
        let coordinates = |b: u32, y: u32, x: u32, n: u32| {
            author.at(&form.index(i64::from(b), &[i64::from(y), i64::from(x), 16 * i64::from(n)]))
        };
        let burst = |at: [i64; 8]| (at[Coord::Row as usize] * i64::from(row) + at[Coord::Col as usize]) as u64;
        // Of an item's own unit, if it has one, or of all.
        let own = !author.replicated && self.units == 1;
        let lies = |layout: MapLayout| {
            let formula = self.formula(layout);
            let item = if own { 0 } else { u64::from(self.item_rows(layout)) * u64::from(row) };
            let pixels = (0..self.batch).flat_map(|b| (0..h).flat_map(move |y| (0..w).map(move |x| (b, y, x))));
            pixels.into_iter().all(|(b, y, x)| {
                (0..c / 16).all(|n| {
                    let at = coordinates(b, y, x, n);
                    let there = !own || unit_at(self.target, at) == Some(i64::from(self.first_unit + b));
                    there && burst(at) == u64::from(b) * item + formula(y, x) + u64::from(n)
                })
            })
        };
        let known = [MapLayout::Patches, MapLayout::Pixels].into_iter().filter(|l| *l == MapLayout::Pixels || patches);
        let span = data.map_or(self.first.span, |t| t.span);
        let Some(layout) = known.into_iter().find(|l| lies(*l)).filter(|_| author.replicated || own) else {
            let message = "the units' address generators do not find pixels that lie so".to_owned();
            let help = "lay the map in pixels one after the other or in 2 x 2 patches, one a row, from the row's \
                        start, `over unit`, or each item in \
                        the bank of the one unit that samples it; or leave `at` out";
            return refuse(codes::UNIT_MAP, span, message, help);
        };
        self.layout = layout;
        self.items = if own { Items::Own } else { Items::All };
        self.map_rows = if own { 1 } else { self.batch } * self.item_rows(layout);
        self.map = of_author(author).unwrap_or_default();
        Ok(())
    }

    /// The map in patches or pixels, as a placement; `None` if lines of pixels end inside of rows.
    fn chosen_map(&self) -> Option<ArrayPlacement> {
        let [h, w, c] = self.size;
        let (pixel, row) = (c / 16, self.row());
        let channels = within(c, 16, 2, row);
        let item = leaf(self.batch, Coord::Row, self.item_rows(self.layout));
        let pixels = match self.layout {
            MapLayout::Patches => vec![
                vec![leaf(2, Coord::Col, 2 * pixel), leaf(h / 2, Coord::Row, w / 2)],
                vec![leaf(2, Coord::Col, pixel), leaf(w / 2, Coord::Row, 1)],
                channels,
            ],
            MapLayout::Pixels => {
                let x = slots(w, pixel, row)?;
                let line = w.checked_mul(pixel)?;
                vec![last_slots(h, line, row)?, x, channels]
            }
        };
        let items = [(i64::from(self.batch), vec![item]), (1, Vec::new())];
        let dims = self.forms[0].as_ref()?.dims(items, &pixels)?;
        Some(ArrayPlacement { dims, row: 0, replicated: true, ..ArrayPlacement::default() })
    }
}

//! Accesses in the walk: which bytes they touch, and what they are not ordered after.

use super::bytes::{Area, Meet, joined, window};
use super::find::{Finding, HazardFault, Why};
use super::global::TensorPart;
use super::interpreter::{HazardInterpreter, Then};
use super::order::{Record, What};
use super::poly::PolyInterval;
use super::state::HazardState;
use super::touch::{TouchKind, TouchedObject as Place};
use ptoc_ir::tile::{AddrKind, Kernel, TileRef};

impl HazardInterpreter<'_> {
    pub(super) fn access(&mut self, state: &mut HazardState, site: usize, step: usize) -> Then {
        let code = self.code;
        let mut areas = Vec::with_capacity(code.sites[site].touches.len());
        for (n, touch) in code.sites[site].touches.iter().enumerate() {
            let area = match touch.what {
                Place::Tile(r) => {
                    let count = code.kernel.tiles[r.tile].count;
                    match self.element(state, r.element, count, step) {
                        Ok(element) => Some(self.bytes(state, (site, n), r, Some(element))),
                        Err(Then::On) => Some(self.bytes(state, (site, n), r, None)),
                        Err(Then::Stop) => return Then::Stop,
                    }
                }
                Place::View(t, ..) | Place::Element(t, _) | Place::Tensor(t) if !self.shared_tensor(t) => None,
                Place::View(t, view, cap) => {
                    Some(self.areas.id(Area::Part(TensorPart::window(code, state, t, view, cap))))
                }
                Place::Element(t, offset) => {
                    Some(self.areas.id(Area::Part(TensorPart::element(code, state, t, offset))))
                }
                Place::Tensor(t) => Some(self.areas.id(Area::Part(TensorPart::anywhere(t)))),
            };
            areas.extend(area.map(|a| (touch.kind, a, n)));
        }
        let stream = self.stream(site);
        self.races(state, site, &areas);
        let areas_of = &mut self.areas;
        for (kind, area, _) in areas {
            let record = Record {
                what: What::Access { area, kind },
                site: site as u32,
                stream: stream as u8,
                known: 0,
                at: state.at.clone(),
            };
            state.order.access(&self.carried, record, &mut |a, b| areas_of.inside(a, b));
        }
        Then::On
    }

    /// The accesses before that this one is not ordered after.
    fn races(&mut self, state: &mut HazardState, site: usize, areas: &[(TouchKind, u32, usize)]) {
        let stream = self.stream(site);
        let start = self.carried.streams[stream].start;
        // The latest first: whoever waits for that one waits for what is ordered before it.
        let mut left = state.order.records.len();
        while let Some(n) = left.checked_sub(1) {
            left = n;
            let r = &state.order.records[n];
            let What::Access { area: other, kind: was } = r.what else { continue };
            if r.known & start != 0 {
                continue;
            }
            let r = r.clone();
            for &(kind, area, touch) in areas.iter().filter(|a| a.0.conflicts(was)) {
                let meet = self.areas.meet(other, area);
                if meet == Meet::No {
                    continue;
                }
                // A flag that is up and would order the two, if it were waited for.
                let own = self.loose(state, &r).find(|e| self.may_wait(*e, stream));
                let up = own.or_else(|| {
                    let pipe = self.carried.streams[stream].pipe;
                    self.loose(state, &r).find(|e| self.holds(*e, pipe) && self.is_author(*e))
                });
                let from = self.carried.streams[r.stream as usize].pipe;
                let loose = self.only(self.loose(state, &r).filter(|e| self.ends(*e).0 == from));
                let finding = Finding {
                    fault: HazardFault::Race { first: was, second: kind, touch },
                    sure: meet == Meet::Yes && !state.unsure,
                    grounds: Vec::new(),
                    decided: meet == Meet::Yes,
                    site: site as u32,
                    at: state.at.clone(),
                    other: Some((r.site, r.at.clone())),
                    element: up,
                    loose,
                    bytes: self.areas.common(other, area),
                    why: Why::Plain,
                };
                if !self.tell(finding, state) {
                    self.order_after(state, &r, stream, up, site);
                    left = state.order.records.len();
                    break;
                }
            }
        }
    }

    fn shared_tensor(&self, t: ptoc_ir::tile::TensorId) -> bool {
        self.shared[cranelift_entity::EntityRef::index(t)]
    }

    /// The bytes of a window; of an element that is not known those of all.
    fn bytes(&mut self, state: &HazardState, key: (usize, usize), r: &TileRef, element: Option<i64>) -> u32 {
        let kernel: &Kernel = self.code.kernel;
        let data = &kernel.tiles[r.tile];
        let origin = r.origin.map(|(row, col)| (state.value(self.code, row), state.value(self.code, col)));
        let (row, col) = match origin {
            None => (Some(0), Some(0)),
            Some((row, col)) => (row.constant(), col.constant()),
        };
        let addr = |n: i64| match &data.addr {
            // One that is not placed has bytes of its own, as it has in the interpreter.
            AddrKind::Auto => Some((1 << 48) + (i64::from(r.tile.as_u32()) << 32) + n * data.ty.bytes() as i64),
            AddrKind::Fixed(at) => at.get(n as usize).and_then(|&a| i64::try_from(a).ok()),
            AddrKind::Dynamic => {
                state.bound[self.first_bound[cranelift_entity::EntityRef::index(r.tile)] + n as usize].constant()
            }
        };
        let at: Vec<Option<i64>> = match element {
            Some(n) => vec![addr(n)],
            None => (0..i64::from(data.count)).map(addr).collect(),
        };
        let first = at[0].unwrap_or(-1);
        let number = |n: Option<i64>| n.unwrap_or(-1);
        let key = (key.0, key.1, number(element), number(row), number(col), first);
        let cacheable = element.is_some();
        if let Some(&id) = self.known_areas.get(&key).filter(|_| cacheable) {
            return id;
        }
        let (parts, whole) = match (row, col) {
            (Some(row), Some(col)) if row >= 0 && col >= 0 => {
                window(data.ty, row as u64, col as u64, u64::from(r.rows), u64::from(r.cols))
            }
            // Rows that are known leave columns open, and the other way round.
            (Some(row), None) if row >= 0 => {
                (window(data.ty, row as u64, 0, u64::from(r.rows), u64::from(data.ty.cols)).0, false)
            }
            (None, Some(col)) if col >= 0 => {
                (window(data.ty, 0, col as u64, u64::from(data.ty.rows), u64::from(r.cols)).0, false)
            }
            _ => (vec![(0, data.ty.bytes())], false),
        };
        let mut ranges = Vec::new();
        let mut exact = whole && element.is_some();
        for at in at {
            match at.and_then(|a| u64::try_from(a).ok()) {
                Some(at) => ranges.extend(parts.iter().map(|(a, b)| (at + a, at + b))),
                None => {
                    ranges = vec![(0, u64::MAX)];
                    exact = false;
                    break;
                }
            }
        }
        let id = self.areas.id(Area::Bytes { loc: self.home(r.tile), ranges: joined(ranges), exact });
        if cacheable {
            self.known_areas.insert(key, id);
        }
        id
    }

    /// Parts of tensors as they are seen from the next iteration of loop `l`, or after it.
    pub(super) fn age(&mut self, state: &mut HazardState, l: usize, over: bool) {
        let (areas, aged, code) = (&mut self.areas, &mut self.aged, self.code);
        let mut changed = false;
        for r in &mut state.order.records {
            let What::Access { area, kind } = r.what else { continue };
            let next = match aged.get(&(area, l, over)) {
                Some(&next) => next,
                None => {
                    let Area::Part(part) = &areas.all[area as usize] else { continue };
                    let part = if over { part.after(code, l) } else { part.aged(code, l) };
                    let next = areas.id(Area::Part(part));
                    aged.insert((area, l, over), next);
                    next
                }
            };
            changed |= next != area;
            r.what = What::Access { area: next, kind };
        }
        if changed {
            state.order.unite();
        }
        let gone = |p: &PolyInterval| p.symbols().any(|v| code.inside(v, l));
        state.order.barriers.iter_mut().flatten().for_each(|b| b.lose(&gone));
    }
}

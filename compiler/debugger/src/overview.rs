//! What is more than one array: arrays of tiles, events, rings.

use super::condition::Scalar;
use super::names::find;
use super::slice::{Index, Selection, Slice, pick};
use super::values::Look;
use ptoc_analysis::debug::{EventWindow, NameMeaning};
use ptoc_diagnostics::Span;
use ptoc_ir::tile::EventKind;

/// Rows with their columns aligned; columns in which nothing stands are left out.
pub fn table(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |k: usize| rows.iter().filter_map(|r| r.get(k)).map(|c| c.chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let line = |r: &Vec<String>| {
        let cells = r.iter().zip(&widths).filter(|(_, w)| **w > 0);
        let cells: Vec<String> = cells.map(|(c, w)| format!("{c}{}", " ".repeat(w - c.chars().count()))).collect();
        cells.join("  ").trim_end().to_owned() + "\n"
    };
    rows.iter().map(line).collect()
}

impl Look<'_> {
    /// Whatever a slice names, as `print` shows it. `place` writes places of the source.
    pub fn print(&self, slice: &Slice, place: &dyn Fn(Span) -> String) -> Result<String, String> {
        let selection = slice.select(self)?;
        let named = find(self.debug, self.from, &selection.name)?;
        let name = selection.name.as_str();
        match &named.what {
            NameMeaning::TileArray(t, count) if selection.brackets.is_empty() => {
                let line = |e: usize| {
                    let address = self.address(t.tile, e).unwrap_or_else(str::to_owned);
                    let valid = match self.valid(t, e) {
                        Some((r, c)) => format!("valid {r} x {c}"),
                        None => String::new(),
                    };
                    vec![format!("{name}[{e}]"), address, valid, self.share(t.tile, e)]
                };
                let rows: Vec<Vec<String>> = (0..*count as usize).map(line).collect();
                Ok(format!("{}\n{}", self.line(name, &named.what), table(&rows)))
            }
            NameMeaning::Ring(r) if selection.brackets.is_empty() => {
                let mut text = self.line(name, &named.what);
                if let Some((fill, empty)) = r.next {
                    let [fill, empty] = [fill, empty].map(|v| self.state.var(v) as i64);
                    text.push_str(&format!("; `acquire` gives slot {fill} next, `wait` slot {empty}"));
                }
                Ok(format!("{text}\n{}", self.events.text(self, place, Some((r.events.0, None)))))
            }
            NameMeaning::Event(e) => {
                let element = self.event_element(e, &selection)?;
                let count = self.state.kernel().events[e.event].count;
                let title = match element {
                    None if count > 1 => format!("{}\n", self.line(name, &named.what)),
                    _ => String::new(),
                };
                Ok(title + &self.events.text(self, place, Some((e.event, element))))
            }
            NameMeaning::TileArray(_, count) if selection.picks_several() => self.several(&selection, *count),
            NameMeaning::Ring(r) if selection.picks_several() => self.several(&selection, r.count),
            _ => match self.array(&selection)? {
                Some(array) => Ok(self.show(&array)),
                None => Ok(format!("{}\n", self.line(name, &named.what))),
            },
        }
    }

    /// Some tiles of an array of so many, one after another: `p[0:2]`, `p[:, 0, 0:8]`.
    fn several(&self, selection: &Selection, count: u32) -> Result<String, String> {
        let first = selection.brackets.first().and_then(|b| b.first()).copied();
        let picked = pick(&first.into_iter().collect::<Vec<_>>(), &[count as usize], &selection.name)?;
        let mut text = String::new();
        for element in picked.into_iter().flat_map(|(range, _)| range) {
            let mut one = selection.clone();
            if let Some(index) = one.brackets.first_mut().and_then(|b| b.first_mut()) {
                *index = Index::At(element as i64);
            }
            let array = self.array(&one)?;
            text.extend(array.map(|array| self.show(&array)));
        }
        Ok(text)
    }

    /// The name of the array that a selection is a part of: `t`, and `p[1]` of an array of tiles.
    pub fn own_name(&self, selection: &Selection) -> Result<String, String> {
        let name = &selection.name;
        let first = selection.brackets.first().and_then(|b| b.first());
        Ok(match (&find(self.debug, self.from, name)?.what, first) {
            (NameMeaning::TileArray(_, count), Some(Index::At(e))) => {
                format!("{name}[{}]", e.rem_euclid((*count).into()))
            }
            (NameMeaning::Ring(r), Some(Index::At(e))) => format!("{name}[{}]", e.rem_euclid(r.count.into())),
            _ => name.clone(),
        })
    }

    /// What an event is, on one line.
    pub fn event_title(&self, e: &EventWindow) -> String {
        let data = &self.state.kernel().events[e.event];
        let kind = match data.kind {
            EventKind::Flag => "event",
            EventKind::Barrier { .. } => "mbarrier",
        };
        match (data.count, e.element) {
            (count, None) if count > 1 => format!("{count} {kind}s {} -> {}", data.from, data.to),
            (_, element) => {
                let state = self.events.state(self.state.kernel(), e.event, element.map_or(0, |v| self.index(v)));
                format!("{kind} {} -> {}, {state}", data.from, data.to)
            }
        }
    }

    /// The element that is meant; `None` is all of an array.
    pub fn event_element(&self, e: &EventWindow, selection: &Selection) -> Result<Option<i64>, String> {
        let (name, count) = (&selection.name, self.state.kernel().events[e.event].count as usize);
        match (&selection.brackets[..], e.element) {
            ([], element) => Ok(element.map(|v| self.index(v))),
            ([indices], None) if count > 1 && matches!(indices[..], [Index::At(_)]) => {
                Ok(Some(pick(indices, &[count], name)?[0].0.start as i64))
            }
            (_, None) if count > 1 => Err(format!("`{name}` is an array of {count} events: choose one, `{name}[0]`")),
            _ => Err(format!("`{name}` is one event, without elements")),
        }
    }

    /// An event as a scalar: whether the flag is up, or how many phases the barrier has completed.
    pub fn event_value(&self, e: &EventWindow, selection: &Selection) -> Result<Scalar, String> {
        let kernel = self.state.kernel();
        let element = match self.event_element(e, selection)? {
            Some(element) => element,
            None if kernel.events[e.event].count == 1 => 0,
            None => return Err(format!("`{0}` is an array of events: choose one, `{0}[0]`", selection.name)),
        };
        Ok(self.events.value(kernel, e.event, element))
    }
}

//! Names with their values: scopes, tables of tiles and tensors, rows by pages.

use super::adapter::in_frame;
use super::connection::Request;
use super::requests::{Variables, read};
use ptoc_analysis::debug::NameMeaning;
use ptoc_debugger::inspect::Inspected;
use ptoc_debugger::names::visible;
use ptoc_debugger::numbers::{Limits, array, element};
use ptoc_debugger::stop::StopPlace;
use ptoc_debugger::values::Array;
use serde_json::{Value, json};

/// The scopes of a frame, in their order.
const SCOPES: [(Kind, &str); 5] = [
    (Kind::Tiles, "Tiles"),
    (Kind::Tensors, "Tensors"),
    (Kind::Scalars, "Scalars"),
    (Kind::Constants, "Constants"),
    (Kind::Events, "Events"),
];

/// What a scope has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Tiles,
    Tensors,
    Scalars,
    Constants,
    Events,
}

impl Kind {
    fn of(what: &NameMeaning) -> Option<Kind> {
        match what {
            NameMeaning::Tile(_) | NameMeaning::TileArray(..) | NameMeaning::Ring(_) => Some(Kind::Tiles),
            NameMeaning::View(_) => Some(Kind::Tensors),
            NameMeaning::Scalar(_)
            | NameMeaning::Var(_)
            | NameMeaning::Block(_)
            | NameMeaning::Tiles { .. }
            | NameMeaning::Range(..)
            | NameMeaning::Tuple(_) => Some(Kind::Scalars),
            NameMeaning::Text(_) => Some(Kind::Constants),
            NameMeaning::Event(_) => Some(Kind::Events),
            NameMeaning::Other(_) => None,
        }
    }
}

/// Something that has children.
#[derive(Clone, Debug)]
enum Container {
    /// The names of one kind in a frame.
    Scope(i64, Kind),
    /// An array as a name or slice has given it, and the indices that are chosen already.
    Array { name: String, array: Array, chosen: Vec<usize> },
    /// Tiles of one name.
    Several { frame: i64, name: String, count: u32 },
}

/// The numbers under which a client may ask for children. They are good until the run goes on.
#[derive(Default)]
pub(crate) struct Handles {
    list: Vec<Container>,
}

/// Columns of a row that its line shows.
const ROW: Limits = Limits { cols: 16, rows: 1 };

impl Handles {
    /// The run goes on: what was known is no more.
    pub fn clear(&mut self) {
        self.list.clear();
    }

    fn add(&mut self, container: Container) -> usize {
        self.list.push(container);
        self.list.len()
    }

    fn get(&self, reference: i64) -> Result<&Container, String> {
        let at = usize::try_from(reference).ok().and_then(|r| r.checked_sub(1));
        let found = at.and_then(|at| self.list.get(at));
        found.ok_or_else(|| format!("nothing has the reference {reference}: the run has gone on since"))
    }

    /// The scopes of a frame, those that have names.
    pub fn scopes(&mut self, seen: &StopPlace<'_>, level: usize) -> Value {
        let frame = level as i64 + 1;
        let names = visible(seen.look.debug, seen.look.from);
        let mut scopes = Vec::new();
        for (kind, title) in SCOPES {
            let count = names.iter().filter(|n| Kind::of(&n.what) == Some(kind)).count();
            if count > 0 {
                let reference = self.add(Container::Scope(frame, kind));
                let hint = if kind == Kind::Scalars { "locals" } else { "" };
                let mut scope = json!({"name": title, "variablesReference": reference, "namedVariables": count,
                                       "expensive": false});
                if !hint.is_empty() {
                    scope["presentationHint"] = json!(hint);
                }
                scopes.push(scope);
            }
        }
        json!({"scopes": scopes})
    }

    /// The answer about a text that was evaluated.
    pub fn describe(&mut self, seen: &StopPlace<'_>, frame: i64, text: &str, found: &Inspected) -> Value {
        let mut answer = self.value(seen, frame, text, found);
        answer["result"] = answer["value"].take();
        if let Some(object) = answer.as_object_mut() {
            object.remove("value");
            object.remove("name");
        }
        answer
    }

    /// A variable.
    fn value(&mut self, seen: &StopPlace<'_>, frame: i64, name: &str, found: &Inspected) -> Value {
        match found {
            Inspected::Text(text) => json!({"name": name, "value": text, "variablesReference": 0}),
            Inspected::Several(count) => {
                let container = Container::Several { frame, name: name.to_owned(), count: *count };
                let reference = self.add(container);
                json!({"name": name, "value": format!("{count} tiles"), "variablesReference": reference,
                       "indexedVariables": count, "evaluateName": name})
            }
            Inspected::Array(a) => {
                let shape = a.shape();
                if shape.is_empty() {
                    let text = element(a.dtype, &seen.look.cell(&a.source, &a.index(&[])));
                    return json!({"name": name, "value": text, "type": a.dtype.to_string(), "variablesReference": 0,
                                  "evaluateName": name});
                }
                // The title begins with the name, which stands before it already.
                let title = a.title.split_once(": ").map_or(a.title.as_str(), |(_, rest)| rest);
                let value = match shape[..] {
                    [n] if n <= ROW.cols => seen.look.elements(a),
                    _ if a.sliced => {
                        format!("{} of {title}", shape.iter().map(usize::to_string).collect::<Vec<_>>().join(" x "))
                    }
                    _ => title.to_owned(),
                };
                let array = Container::Array { name: name.to_owned(), array: a.clone(), chosen: Vec::new() };
                let reference = self.add(array);
                json!({"name": name, "value": value, "type": a.dtype.to_string(), "variablesReference": reference,
                       "indexedVariables": shape[0], "evaluateName": name, "presentationHint": {"kind": "data"}})
            }
        }
    }

    /// `variables`: children, or a page of them.
    pub fn variables(&mut self, stop: &StopPlace<'_>, request: &Request) -> Result<Value, String> {
        let asked: Variables = read(request)?;
        let container = self.get(asked.variables_reference)?.clone();
        let page = |length: usize| {
            let start = asked.start.unwrap_or(0).min(length);
            let count = asked.count.filter(|&n| n > 0).unwrap_or(length);
            start..start.saturating_add(count).min(length)
        };
        let indexed = !matches!(container, Container::Scope(..));
        // Arrays have indices alone, scopes have names alone.
        if asked.filter.as_deref().is_some_and(|f| (f == "indexed") != indexed) {
            return Ok(json!({"variables": []}));
        }
        let variables = match &container {
            Container::Scope(frame, kind) => in_frame(stop, Some(*frame), |seen| {
                let names = visible(seen.look.debug, seen.look.from);
                let all: Vec<_> = names.into_iter().filter(|n| Kind::of(&n.what) == Some(*kind)).collect();
                let all = all.into_iter().rev().map(|n| (n.name.to_string(), &n.what)).collect::<Vec<_>>();
                let shown = all[page(all.len())].iter();
                Ok(shown.map(|(name, what)| self.named(seen, *frame, name, what)).collect::<Vec<Value>>())
            })?,
            Container::Several { frame, name, count } => in_frame(stop, Some(*frame), |seen| {
                let one = |e: usize| {
                    let text = format!("{name}[{e}]");
                    let found = seen.look.inspect(&text).unwrap_or_else(Inspected::Text);
                    self.value(seen, *frame, &text, &found)
                };
                Ok(page(*count as usize).map(one).collect())
            })?,
            Container::Array { name, array, chosen } => {
                let length = array.shape()[chosen.len()];
                page(length).map(|at| self.part(stop, name, array, chosen, at)).collect()
            }
        };
        Ok(json!({"variables": variables}))
    }

    /// A name of a scope.
    fn named(&mut self, seen: &StopPlace<'_>, frame: i64, name: &str, what: &NameMeaning) -> Value {
        match what {
            NameMeaning::Tile(_) | NameMeaning::View(_) | NameMeaning::TileArray(..) | NameMeaning::Ring(_) => {
                let found = seen.look.inspect(name).unwrap_or_else(Inspected::Text);
                self.value(seen, frame, name, &found)
            }
            NameMeaning::Event(event) => {
                let title = seen.look.event_title(event);
                json!({"name": name, "value": title, "variablesReference": 0, "evaluateName": name})
            }
            what => {
                let mut one = json!({"name": name, "value": seen.look.value(what), "variablesReference": 0,
                                     "evaluateName": name});
                if let Some(ty) = seen.look.type_of(what) {
                    one["type"] = json!(ty);
                }
                if matches!(what, NameMeaning::Text(_)) {
                    one["presentationHint"] = json!({"attributes": ["constant", "readOnly"]});
                }
                one
            }
        }
    }

    /// An element, or a row with its elements on one line.
    fn part(&mut self, stop: &StopPlace<'_>, name: &str, whole: &Array, chosen: &[usize], at: usize) -> Value {
        let shape = whole.shape();
        let chosen: Vec<usize> = chosen.iter().copied().chain([at]).collect();
        let cell = |rest: &[usize]| {
            let index: Vec<usize> = chosen.iter().chain(rest).copied().collect();
            stop.look.cell(&whole.source, &whole.index(&index))
        };
        let label = format!("[{at}]");
        let evaluated = indexed(name, whole, &chosen);
        match &shape[chosen.len()..] {
            [] => {
                let text = element(whole.dtype, &cell(&[]));
                json!({"name": label, "value": text, "type": whole.dtype.to_string(), "variablesReference": 0,
                       "evaluateName": evaluated})
            }
            rest => {
                let text = match rest {
                    [_] => array(whole.dtype, rest, ROW, &cell),
                    _ => rest.iter().map(usize::to_string).collect::<Vec<_>>().join(" x "),
                };
                let (length, name, array) = (rest[0], name.to_owned(), whole.clone());
                let reference = self.add(Container::Array { name, array, chosen });
                json!({"name": label, "value": text, "variablesReference": reference, "indexedVariables": length,
                       "evaluateName": evaluated})
            }
        }
    }

    /// The expression for a child of a container, and the frame where it has a value.
    pub fn name_in(&self, reference: i64, child: &str) -> Result<(String, Option<i64>), String> {
        Ok(match self.get(reference)? {
            Container::Scope(frame, _) => (child.to_owned(), Some(*frame)),
            Container::Several { frame, .. } => (child.to_owned(), Some(*frame)),
            Container::Array { name, array, chosen } => {
                let at = child.trim_matches(['[', ']']).parse();
                let at: usize = at.map_err(|_| format!("`{name}` has no `{child}`"))?;
                (indexed(name, array, &chosen.iter().copied().chain([at]).collect::<Vec<_>>()), None)
            }
        })
    }
}

/// A name with indices: those of the array itself, if it is a slice.
fn indexed(name: &str, whole: &Array, chosen: &[usize]) -> String {
    if !whole.sliced {
        let list: Vec<String> = chosen.iter().map(usize::to_string).collect();
        return format!("{name}[{}]", list.join(", "));
    }
    let mut rest = chosen.iter();
    let part = |(start, length, stays): &(usize, usize, bool)| match if *stays { rest.next() } else { Some(&0) } {
        Some(at) => (start + at).to_string(),
        None => format!("{start}..{}", start + length),
    };
    let list: Vec<String> = whole.axes.iter().map(part).collect();
    // The last brackets are those of the slice; brackets before them choose a tile of several.
    let base = name.rfind('[').map_or(name, |at| &name[..at]);
    format!("{}[{}]", base.trim_end(), list.join(", "))
}

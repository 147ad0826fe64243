//! Properties of what has a name (`x.valid`), and texts with expressions in them.

use super::condition;
use super::names::find;
use super::slice::{Selection, Slice};
use super::stop::StopPlace;
use super::values::{Array, ArraySource, Look};
use ptoc_analysis::debug::{NameMeaning, TileWindow};
use ptoc_diagnostics::suggest;

/// What can be asked of a tile or tensor behind a dot.
pub const PROPERTIES: [&str; 7] = ["valid", "shape", "rows", "cols", "dtype", "memory", "address"];

/// Something that is shown.
#[derive(Clone, Debug)]
pub enum Inspected {
    /// It has elements.
    Array(Array),
    /// Several arrays of one name: so many tiles.
    Several(u32),
    /// A text says all of it.
    Text(String),
}

impl Look<'_> {
    /// What a text stands for here: a name, a slice, a property, an expression.
    pub fn inspect(&self, text: &str) -> Result<Inspected, String> {
        if let Some(value) = self.property(text)? {
            return Ok(Inspected::Text(value));
        }
        let Some(slice) = Slice::parse(text)? else {
            let value = condition::evaluate(self, &condition::parse(text.trim())?)?;
            return Ok(Inspected::Text(value.to_string()));
        };
        let selection = slice.select(self)?;
        let what = &find(self.debug, self.from, &selection.name)?.what;
        if selection.brackets.is_empty() {
            match what {
                NameMeaning::TileArray(_, count) => return Ok(Inspected::Several(*count)),
                NameMeaning::Ring(ring) => return Ok(Inspected::Several(ring.count)),
                NameMeaning::Event(event) => return Ok(Inspected::Text(self.event_title(event))),
                _ => {}
            }
        }
        if let NameMeaning::Event(event) = what {
            return Ok(Inspected::Text(self.event_value(event, &selection)?.to_string()));
        }
        Ok(match self.array(&selection)? {
            Some(array) => Inspected::Array(array),
            None => Inspected::Text(self.value(what)),
        })
    }

    /// The value of `x.valid`, `p[1].address`; `None` for a text of another form, as a block's `k.len` is.
    pub fn property(&self, text: &str) -> Result<Option<String>, String> {
        let Some((of, property)) = text.trim().rsplit_once('.') else { return Ok(None) };
        let property = property.trim();
        let of = match Slice::parse(of) {
            Ok(Some(of)) if property.chars().all(|c| c.is_alphanumeric() || c == '_') => of,
            _ => return Ok(None),
        };
        let Ok(named) = find(self.debug, self.from, &of.name) else { return Ok(None) };
        if !matches!(
            named.what,
            NameMeaning::Tile(_) | NameMeaning::TileArray(..) | NameMeaning::View(_) | NameMeaning::Ring(_)
        ) {
            return Ok(None);
        }
        if !PROPERTIES.contains(&property) {
            let near = suggest(property, PROPERTIES).map_or(String::new(), |near| format!("; did you mean `.{near}`?"));
            let list = PROPERTIES.map(|p| format!("`.{p}`")).join(", ");
            return Err(format!("`{}` has no `.{property}`: there are {list}{near}", of.name));
        }
        let selection = of.select(self)?;
        let array = self.array(&selection)?.ok_or_else(|| format!("`{}` has no elements", of.name))?;
        self.property_of(&array, self.window(&selection), property).map(Some)
    }

    /// The tile that a selection is of.
    fn window(&self, selection: &Selection) -> Option<&TileWindow> {
        match &find(self.debug, self.from, &selection.name).ok()?.what {
            NameMeaning::Tile(t) | NameMeaning::TileArray(t, _) => Some(t),
            NameMeaning::Ring(ring) => Some(&ring.slots),
            _ => None,
        }
    }

    fn property_of(&self, array: &Array, window: Option<&TileWindow>, property: &str) -> Result<String, String> {
        let list = |all: Vec<usize>| format!("({})", all.iter().map(usize::to_string).collect::<Vec<_>>().join(", "));
        let tile = match (&array.source, window) {
            (ArraySource::Tile(tile, element, _), Some(window)) => Some((*tile, *element, window)),
            _ => None,
        };
        Ok(match (property, tile) {
            ("dtype", _) => array.dtype.to_string(),
            ("valid", Some((_, element, window))) => match self.valid(window, element) {
                Some((rows, cols)) => format!("({rows}, {cols})"),
                None => return Err("nothing has written this tile, and so it has no valid shape yet".into()),
            },
            ("shape", Some((.., w))) if !array.sliced => list(vec![w.rows as usize, w.cols as usize]),
            ("rows", Some((.., w))) if !array.sliced => w.rows.to_string(),
            ("cols", Some((.., w))) if !array.sliced => w.cols.to_string(),
            ("memory", Some((tile, ..))) => self.state.kernel().tiles[tile].ty.loc.to_string(),
            ("address", Some((tile, element, _))) => self.address(tile, element)?,
            ("shape" | "valid", _) => list(array.shape()),
            ("rows", _) => array.shape().first().map_or("1".into(), usize::to_string),
            ("cols", _) => array.shape().last().map_or("1".into(), usize::to_string),
            _ => return Err(format!("a tensor is in global memory, and has no `.{property}`")),
        })
    }
}

impl StopPlace<'_> {
    /// A text with the values of what stands in braces.
    pub fn interpolated(&self, text: &str) -> String {
        let (mut out, mut rest) = (String::new(), text);
        while let Some((before, inside)) = rest.split_once('{') {
            let Some((expr, after)) = inside.split_once('}') else { break };
            out.push_str(before);
            out.push_str(&match self.look.inspect(expr) {
                Ok(Inspected::Array(array)) => self.look.elements(&array),
                Ok(Inspected::Several(count)) => format!("{count} tiles"),
                Ok(Inspected::Text(text)) => text,
                Err(why) => format!("{{{expr}: {why}}}"),
            });
            rest = after;
        }
        out + rest
    }
}

//! TOML with places, from the `toml` crate's spanned values.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::{InputError, Key, Node, Value};

pub(super) fn parse(text: &str) -> Result<Node, InputError> {
    match DeTable::parse(text) {
        Ok(table) => convert_table(text, table.get_ref(), 0..text.len()),
        Err(error) => Err(InputError::at(
            text,
            error.span().unwrap_or(0..0),
            format!("this is not TOML: {}", error.message().trim()),
        )),
    }
}

fn convert_table(text: &str, table: &DeTable<'_>, bytes: std::ops::Range<usize>) -> Result<Node, InputError> {
    let mut entries = Vec::with_capacity(table.len());
    for (key, value) in table {
        let key = Key { name: key.get_ref().to_string(), bytes: key.span() };
        entries.push((key, convert(text, value)?));
    }
    // The crate's table is sorted by name; ours follows the text, so that errors come in the order of the lines.
    entries.sort_by_key(|(key, _)| key.bytes.start);
    Ok(Node { value: Value::Table(entries), bytes })
}

fn convert(text: &str, value: &Spanned<DeValue<'_>>) -> Result<Node, InputError> {
    let bytes = value.span();
    let out_of_range = || InputError::at(text, value.span(), "this number is out of range");
    let value = match value.get_ref() {
        DeValue::String(s) => Value::Text(s.to_string()),
        DeValue::Integer(i) => Value::Int(i64::from_str_radix(i.as_str(), i.radix()).map_err(|_| out_of_range())?),
        DeValue::Float(f) => match f.as_str().parse::<f64>() {
            Ok(f) if f.is_finite() => Value::Float(f),
            _ => return Err(out_of_range()),
        },
        DeValue::Boolean(b) => Value::Bool(*b),
        DeValue::Datetime(_) => return Err(InputError::at(text, bytes, "a date has no meaning here")),
        DeValue::Array(items) => Value::List(items.iter().map(|item| convert(text, item)).collect::<Result<_, _>>()?),
        DeValue::Table(table) => return convert_table(text, table, bytes),
    };
    Ok(Node { value, bytes })
}

//! Operands and results of queries: whether their elements lie as units read and write them, and how an array's
//! dimensions are divided into batch items, queries and what one query takes.

use super::queries::Query;
use super::{Refused, refuse};
use crate::eval::EvaluatedWindow;
use crate::place::leaf;
use ptoc_abi::Coord;
use ptoc_diagnostics::{Diagnostic, codes};
use ptoc_ir::tile::Kernel;
use ptoc_pim_stream::placement::Leaf;

/// What an array is to its queries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Map,
    Geo,
    Attn,
    Offs,
    Out,
}

impl Role {
    pub(super) const ALL: [Role; 5] = [Role::Map, Role::Geo, Role::Attn, Role::Offs, Role::Out];

    /// The window of a query.
    pub(super) fn of(self, q: &Query) -> Option<&EvaluatedWindow> {
        match self {
            Role::Map => Some(&q.map),
            Role::Geo => Some(&q.geo),
            Role::Attn => Some(&q.attn),
            Role::Offs => q.offs.as_ref(),
            Role::Out => q.out.as_ref(),
        }
    }

    /// The extents of what a query takes of an array.
    fn part(self, q: &Query) -> Vec<i64> {
        match self {
            Role::Map => q.map.shape.clone(),
            Role::Geo => vec![4],
            Role::Attn => vec![q.samples()],
            Role::Offs => vec![q.samples(), 2],
            Role::Out => vec![q.channels],
        }
    }

    /// The extents of an array, behind those of batch items and queries.
    fn form(self) -> &'static str {
        match self {
            Role::Map => "H, W, C",
            Role::Geo => "4",
            Role::Attn => "S",
            Role::Offs => "S, 2",
            Role::Out => "C",
        }
    }

    fn code(self) -> ptoc_diagnostics::Code {
        if self == Role::Map { codes::UNIT_MAP } else { codes::UNIT_QUERIES }
    }

    /// What an author should have.
    fn wanted(self, name: &str) -> String {
        let form = self.form();
        match self {
            Role::Map => {
                format!("`{name}` should be `[{form}]`, or `[B, {form}]` and the map a whole item `{name}[b, _, _, _]`")
            }
            _ => format!("`{name}` should be `[Q, {form}]` or `[B, Q, {form}]`, and each query's part a whole row"),
        }
    }
}

/// Extents that are not 1, with their places.
fn real(shape: impl IntoIterator<Item = i64>) -> Vec<(usize, i64)> {
    shape.into_iter().enumerate().filter(|(_, e)| *e != 1).collect()
}

fn by(list: impl IntoIterator<Item = i64>) -> String {
    list.into_iter().map(|n| n.to_string()).collect::<Vec<_>>().join(" x ")
}

/// Distances from index to index in elements, for each extent that is not 1: those of the window, and those of one
/// without gaps.
fn distances(w: &EvaluatedWindow) -> (Vec<i64>, Vec<i64>) {
    let (mut own, mut wanted, mut step) = (Vec::new(), Vec::new(), 1i64);
    for (d, extent) in real(w.shape.iter().copied()).into_iter().rev() {
        own.insert(0, w.strides[d]);
        wanted.insert(0, step);
        step = step.saturating_mul(extent);
    }
    (own, wanted)
}

/// An error unless all that a query reads and writes is without gaps, in the order of its indices, and what it is to be
/// of the same array as the first query's.
pub(super) fn dense(kernel: &Kernel, n: usize, q: &Query, first: &Query) -> Result<(), Refused> {
    for role in Role::ALL {
        let (Some(w), Some(of_first)) = (role.of(q), role.of(first)) else { continue };
        let name = name(kernel, w.tensor);
        if w.tensor != of_first.tensor {
            let message = format!(
                "query {n} has `{name}` where query 0 has `{}`: the units have one array for all queries",
                self::name(kernel, of_first.tensor)
            );
            let help = "let the host put both into one array, or give each a kernel of its own";
            return Err(Box::new(
                Diagnostic::error(codes::UNIT_QUERIES, q.span, message)
                    .with_label("not like the first query")
                    .with_secondary(first.span, "the first query")
                    .with_help(help),
            ));
        }
        let (own, wanted) = distances(w);
        if own == wanted {
            continue;
        }
        let does = if role == Role::Out { "writes" } else { "reads" };
        let list = |list: &[i64]| list.iter().map(i64::to_string).collect::<Vec<_>>().join(" and ");
        let whole =
            if role == Role::Map { "the map of a query is a whole item of its tensor, channels last: " } else { "" };
        let along = if own.len() > 1 { " along its dimensions" } else { "" };
        let message = format!(
            "{whole}the {} elements of `{name}` for query {n} are {} apart{along}, and a unit {does} them {} apart",
            by(real(w.shape.iter().copied()).into_iter().map(|(_, e)| e)),
            list(&own),
            list(&wanted)
        );
        let order = match role {
            Role::Out => {
                "store to rows without gaps, and let a kernel of the host, `#[on(host)]`, move them where they belong"
            }
            _ => "let a kernel of the host, `#[on(host)]`, bring them into this order before",
        };
        return Err(Box::new(
            Diagnostic::error(role.code(), q.span, message)
                .with_label("not without gaps, in the order of the array")
                .with_help(format!("{}; {order}", role.wanted(&name))),
        ));
    }
    Ok(())
}

/// A tensor's name.
fn name(kernel: &Kernel, tensor: u32) -> String {
    kernel.tensors.values().nth(tensor as usize).map_or_else(|| "?".into(), |t| t.name.to_string())
}

/// A tensor's dimensions: first those of batch items and queries, then those of what a query takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Form {
    /// Extents of the first ones.
    pub(super) lead: Vec<u32>,
    /// Of each of the others, the dimension of the query's part; `None` for an extent of 1.
    inner: Vec<Option<usize>>,
}

impl Form {
    /// `None`: the last dimensions are not what a query takes.
    fn new(shape: &[u32], part: &[i64]) -> Option<Form> {
        let at = shape.len().checked_sub(part.len());
        let same = |at: &usize| shape[*at..].iter().zip(part).all(|(a, b)| i64::from(*a) == *b);
        if let Some(at) = at.filter(same) {
            return Some(Form { lead: shape[..at].to_vec(), inner: (0..part.len()).map(Some).collect() });
        }
        // Extents of 1 are anywhere.
        let mut rest = real(part.iter().copied());
        let (mut inner, mut at) = (Vec::new(), shape.len());
        while let Some((d, extent)) = rest.last().copied() {
            at = at.checked_sub(1)?;
            match i64::from(shape[at]) {
                e if e == extent => {
                    inner.insert(0, Some(d));
                    rest.pop();
                }
                1 => inner.insert(0, None),
                _ => return None,
            }
        }
        Some(Form { lead: shape[..at].to_vec(), inner })
    }

    /// Rows, lines or items.
    pub(super) fn count(&self) -> i64 {
        self.lead.iter().fold(1, |n: i64, e| n.saturating_mul(i64::from(*e)))
    }

    /// The index of an element: of this one of the rows, at this place of the query's part.
    pub(super) fn index(&self, mut row: i64, part: &[i64]) -> Vec<i64> {
        let mut lead: Vec<i64> = Vec::new();
        for &extent in self.lead.iter().rev() {
            lead.push(row % i64::from(extent).max(1));
            row /= i64::from(extent).max(1);
        }
        lead.reverse();
        lead.extend(self.inner.iter().map(|d| d.map_or(0, |d| part[d])));
        lead
    }

    /// The dimensions' parts: `groups` are those of batch items and of the queries of an item, as many as these numbers
    /// say, `part` those of what a query takes. `None`: a dimension ends within one of the parts.
    pub(super) fn dims(&self, groups: [(i64, Vec<Leaf>); 2], part: &[Vec<Leaf>]) -> Option<Vec<Vec<Leaf>>> {
        let [(items, of_items), (each, of_each)] = groups;
        let product = |dims: &[u32]| dims.iter().fold(1, |n: i64, e| n.saturating_mul(i64::from(*e)));
        let exact = of_each.iter().fold(1, |n: i64, l| n.saturating_mul(i64::from(l.extent))) == each;
        let split = (0..=self.lead.len())
            .rev()
            .find(|&at| product(&self.lead[..at]) == items && product(&self.lead[at..]) == each);
        let (mut dims, rest) = match split {
            Some(at) => {
                let (mut dims, mut rest) = divide(&self.lead[..at], of_items)?;
                let (more, left) = divide(&self.lead[at..], of_each)?;
                dims.extend(more);
                rest.extend(left);
                (dims, rest)
            }
            None if exact => divide(&self.lead, of_each.into_iter().chain(of_items).collect())?,
            None => return None,
        };
        let inner = self.inner.iter().map(|d| d.map_or_else(|| vec![leaf(1, Coord::Byte, 0)], |d| part[d].clone()));
        dims.extend(inner);
        // A placement without units would count from the memory's start, also where there is one unit.
        let units = |l: &Leaf| l.coord == Coord::Unit;
        if !dims.iter().flatten().any(units) {
            dims.last_mut()?.extend(rest.into_iter().find(units));
        }
        Some(dims)
    }
}

/// Parts of all dimensions together, the lowest first, by dimension; and those that are left, along which nothing
/// moves. The last parts may have more room than the dimensions need.
fn divide(dims: &[u32], parts: Vec<Leaf>) -> Option<(Vec<Vec<Leaf>>, Vec<Leaf>)> {
    if let [_] = dims {
        return Some((vec![parts], Vec::new()));
    }
    let mut parts = std::collections::VecDeque::from(parts);
    let mut out = Vec::new();
    for (d, &extent) in dims.iter().enumerate().rev() {
        let first = dims[..d].iter().all(|e| *e == 1);
        let (mut rest, mut own) = (extent, Vec::new());
        while rest > 1 {
            let part = parts.front_mut()?;
            if part.extent > rest && part.extent.is_multiple_of(rest) {
                own.push(Leaf { extent: rest, ..*part });
                *part = Leaf { extent: part.extent / rest, stride: part.stride.checked_mul(rest)?, ..*part };
                break;
            }
            if !rest.is_multiple_of(part.extent) && !first {
                return None;
            }
            rest = rest.div_ceil(part.extent);
            own.extend(parts.pop_front());
        }
        if own.is_empty() {
            own.push(leaf(1, Coord::Byte, 0));
        }
        out.insert(0, own);
    }
    let rest = parts.into_iter().map(|l| Leaf { extent: 1, ..l }).collect();
    Some((out, rest))
}

/// The dimensions of each operand's array, by [`Role::ALL`]. The first query's windows are without gaps.
pub(super) fn forms(kernel: &Kernel, shapes: &[Vec<u32>], first: &Query) -> Result<[Option<Form>; 5], Refused> {
    let mut forms = [None, None, None, None, None];
    for (role, out) in Role::ALL.into_iter().zip(&mut forms) {
        let Some(w) = role.of(first) else { continue };
        let shape = &shapes[w.tensor as usize];
        // The units take entries made of lines of four.
        let lines = role != Role::Geo || shape.last() == Some(&4);
        let part = role.part(first);
        *out = Form::new(shape, &part).filter(|_| lines);
        if out.is_none() {
            let name = name(kernel, w.tensor);
            let takes = match role {
                Role::Map => "samples",
                Role::Out => "writes",
                _ => "takes",
            };
            let message = format!(
                "`{name}` is [{}], and a query {takes} {} elements of it: no whole {}",
                shape.iter().map(u32::to_string).collect::<Vec<_>>().join(", "),
                by(part),
                if role == Role::Map { "item" } else { "row" }
            );
            let help = format!(
                "{}; a kernel of the host, `#[on(host)]`, can make such an array of another",
                role.wanted(&name)
            );
            return refuse(role.code(), first.span, message, &help);
        }
    }
    Ok(forms)
}

/// An error unless every array has a row for each of so many queries, equally many of every batch item.
pub(super) fn counts(
    kernel: &Kernel,
    forms: &[Option<Form>; 5],
    first: &Query,
    total: i64,
    batch: i64,
) -> Result<(), Refused> {
    let computed = if total == 1 { "one query is".to_owned() } else { format!("{total} queries are") };
    let map = name(kernel, first.map.tensor);
    for (role, form) in Role::ALL.into_iter().zip(forms).skip(1) {
        let (Some(form), Some(w)) = (form, role.of(first)) else { continue };
        let (name, has) = (name(kernel, w.tensor), form.count());
        if has == total {
            continue;
        }
        let of_items = match has % batch {
            0 => format!(": {} of each of {batch} batch items", has / batch),
            _ => String::new(),
        };
        let line = if role == Role::Geo { "line" } else { "row" };
        let message = format!("{computed} computed; `{name}` has {has} {line}s{of_items}");
        let help = match has.checked_mul(batch) == Some(total) {
            true => format!(
                "a unit takes one {line} after the other: give each of the {batch} maps of `{map}` {line}s of its own, \
                 `{name}: [{batch}, {has}, {}]`, the same ones if they agree",
                role.form()
            ),
            false => {
                format!(
                    "let the blocks of the grid go over all {has}, each once; or give arrays of {total} quer{}",
                    if total == 1 { "y" } else { "ies" }
                )
            }
        };
        let d = Diagnostic::error(codes::UNIT_QUERIES, first.span, message).with_help(help);
        return Err(Box::new(d.with_note(format!("every query has a {line} of its own, batch item after batch item"))));
    }
    if total % batch != 0 {
        let message = format!("{computed} computed, and `{map}` has {batch} maps: not equally many queries of each");
        let help = format!(
            "give every map the same number of queries, those of the first map first: `[{batch}, Q, 4]`, \
            `[{batch}, Q, S]` and so on"
        );
        return refuse(codes::UNIT_QUERIES, first.span, message, &help);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dimensions_of_arrays() {
        let of = |shape: &[u32], part: &[i64]| Form::new(shape, part).map(|f| (f.lead, f.inner));
        assert_eq!(of(&[2, 3, 4], &[4]), Some((vec![2, 3], vec![Some(0)])));
        assert_eq!(of(&[5], &[5]), Some((vec![], vec![Some(0)])));
        assert_eq!(of(&[3, 1], &[1]), Some((vec![3], vec![Some(0)])));
        assert_eq!(of(&[3, 4, 1], &[4]), Some((vec![3], vec![Some(0), None])));
        assert_eq!(of(&[3, 1, 4, 1, 2], &[4, 2]), Some((vec![3, 1], vec![Some(0), None, Some(1)])));
        assert_eq!(of(&[3, 8], &[4]), None);
        assert_eq!(of(&[4], &[4, 2]), None);
        let form = Form::new(&[2, 3, 4, 1, 2], &[4, 2]).expect("whole rows");
        assert_eq!(form.index(5, &[3, 1]), [1, 2, 3, 0, 1]);
    }

    #[test]
    fn parts_of_dimensions() {
        let queries = || vec![leaf(4, Coord::Col, 8), leaf(3, Coord::Unit, 1)];
        assert_eq!(divide(&[12], queries()), Some((vec![queries()], vec![])));
        let split = vec![vec![leaf(2, Coord::Col, 16), leaf(3, Coord::Unit, 1)], vec![leaf(2, Coord::Col, 8)]];
        assert_eq!(divide(&[6, 2], queries()), Some((split, vec![])));
        assert_eq!(divide(&[2, 6], queries()), None);
        // The last unit is filled in part.
        assert_eq!(divide(&[1, 9], queries()).map(|d| d.0[1].clone()), Some(queries()));
        assert_eq!(divide(&[], vec![leaf(1, Coord::Unit, 1)]), Some((vec![], vec![leaf(1, Coord::Unit, 1)])));
    }
}

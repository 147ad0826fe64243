//! Families of matrix instructions, and the choice of one by dtypes and extent.
//!
//! The rule is that of CUTLASS's selector of warp-group instructions (`include/cute/arch/mma_sm90.hpp`,
//! `ss_op_selector`): the largest extent in N that divides the tile's.

use crate::{ErrorKind, LayoutError, MmaAtom, Result};
use std::fmt;
use std::sync::Arc;

const OP: &str = "select_mma";

/// A matrix instruction that exists for several extents in N.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct AtomFamily {
    name: String,
    /// By ascending extent in N; not empty.
    atoms: Vec<Arc<MmaAtom>>,
}

impl AtomFamily {
    /// The atoms of one instruction, which differ in N; `None` unless they ascend in it and have the same dtypes.
    pub fn new(name: impl Into<String>, atoms: Vec<Arc<MmaAtom>>) -> Option<AtomFamily> {
        let ascending = atoms.windows(2).all(|w| w[0].shape[1] < w[1].shape[1] && w[0].types == w[1].types);
        let positive = atoms.first().is_some_and(|a| a.shape[1] > 0);
        (ascending && positive).then(|| AtomFamily { name: name.into(), atoms })
    }

    /// What it is called.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// By ascending extent in N.
    pub fn atoms(&self) -> &[Arc<MmaAtom>] {
        &self.atoms
    }

    /// Dtypes of D, A, B, C.
    pub fn types(&self) -> &[String; 4] {
        &self.atoms[0].types
    }

    /// The extents in N as text: `8, 16, .., 256`.
    pub fn extents(&self) -> String {
        let all: Vec<i64> = self.atoms.iter().map(|a| a.shape[1]).collect();
        let mut out: Vec<String> = Vec::new();
        let mut k = 0;
        while k < all.len() {
            // As many as are evenly spaced.
            let step = all.get(k + 1).map_or(0, |n| n - all[k]);
            let end = (k + 1..all.len()).take_while(|&j| all[j] - all[j - 1] == step).last().unwrap_or(k);
            match end - k {
                0 | 1 => {
                    out.push(all[k].to_string());
                    k += 1;
                }
                2 | 3 => {
                    out.extend(all[k..=end].iter().map(i64::to_string));
                    k = end + 1;
                }
                _ => {
                    out.extend([all[k].to_string(), all[k + 1].to_string(), "..".into(), all[end].to_string()]);
                    k = end + 1;
                }
            }
        }
        out.join(", ")
    }

    /// The atom with the largest extent in N that divides `n`.
    pub fn select(&self, n: i64) -> Result<Arc<MmaAtom>> {
        if let Some(atom) = self.atoms.iter().rev().find(|a| n > 0 && n % a.shape[1] == 0) {
            return Ok(atom.clone());
        }
        let least = self.atoms[0].shape[1];
        let message = match n < least {
            true => format!("N = {n} is below {least}, the least N of {}", self.name),
            false => format!("N = {n} is no multiple of any N that {} has: {}", self.name, self.extents()),
        };
        let multiples = |up: i64| self.atoms.iter().filter_map(move |a| (n / a.shape[1] + up).checked_mul(a.shape[1]));
        let below = multiples(0).filter(|m| n > 0 && *m > 0).max();
        let above = if n < least { Some(least) } else { multiples(1).min() };
        let near: Vec<String> = below.into_iter().chain(above).map(|m| m.to_string()).collect();
        Err(LayoutError::new(ErrorKind::NoExtent, OP, message)
            .with_help(format!("an N of {} would do", near.join(" or "))))
    }
}

impl fmt::Display for AtomFamily {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

/// The instruction for operands of these dtypes, and of it the atom for a tile of `n` columns. Arguments 0 to 2 are the
/// dtypes, 3 is `n`.
pub(crate) fn select(families: &[Arc<AtomFamily>], [a, b, acc]: [&str; 3], n: i64) -> Result<Arc<MmaAtom>> {
    let of = |f: &&Arc<AtomFamily>| matches!(f.types(), [_, x, y, c] if x == a && y == b && c == acc);
    let Some(family) = families.iter().find(of) else { return Err(no_instruction(families, [a, b, acc])) };
    family.select(n).map_err(|e| e.in_arg(3))
}

fn no_instruction(families: &[Arc<AtomFamily>], [a, b, acc]: [&str; 3]) -> LayoutError {
    let accumulators = |a: &str, b: &str| -> Vec<&str> {
        let with = families.iter().map(|f| f.types()).filter(|t| t[1] == a && t[2] == b);
        with.map(|t| t[3].as_str()).collect()
    };
    let all = |list: &[&str]| list.join(" or ");
    let e = |message: String, arg: usize| LayoutError::new(ErrorKind::NoInstruction, OP, message).in_arg(arg);
    let found = accumulators(a, b);
    if !found.is_empty() {
        let message = format!("products of {a} and {b} are added up in {}, not in {acc}", all(&found));
        return e(message, 2).with_help(format!("take {} as the accumulator's dtype", all(&found)));
    }
    let mut pairs: Vec<[&str; 2]> = families.iter().map(|f| [f.types()[1].as_str(), f.types()[2].as_str()]).collect();
    pairs.dedup();
    let there: Vec<String> =
        pairs.iter().map(|[x, y]| format!("{x} x {y} into {}", all(&accumulators(x, y)))).collect();
    // Which of the two is to blame: A, unless B is what A cannot stand with.
    let arg = usize::from(pairs.iter().any(|p| p[0] == a));
    let e = e(format!("no instruction multiplies {a} by {b}"), arg);
    match there.is_empty() {
        true => e,
        false => e.with_help(format!("there are {}", there.join(", "))),
    }
}

#[cfg(test)]
mod tests;

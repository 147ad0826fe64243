//! Affine terms: what is known of numbers that only the launch knows: which are products of which, and what divides
//! them. So axes of a nest are joined though their extents are dimensions, and aligned parts of an address are
//! recognised.

use cranelift_entity::SecondaryMap;
use ptoc_ir::loops::{BinOp, Reg};

/// `coef` times the product of `factors` (sorted), modulo 2^64 as all index arithmetic.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Product {
    coef: i64,
    factors: Vec<Reg>,
}

/// Facts about i64 registers.
#[derive(Default)]
pub(super) struct Terms {
    products: SecondaryMap<Reg, Option<Product>>,
    /// A power of two that divides the register; 0 for nothing known. Powers of two survive wrapping.
    powers: SecondaryMap<Reg, u64>,
}

/// Products of more factors are numbers of their own.
const MAX_FACTORS: usize = 6;

/// The largest power of two that divides `n`; 0 divides by all of them.
fn power_of(n: i64) -> u64 {
    if n == 0 { 1 << 62 } else { 1 << n.trailing_zeros().min(62) }
}

impl Terms {
    /// Notes `dst = a op b`; `known` are the operands that are constants.
    pub(super) fn note(&mut self, dst: Reg, op: BinOp, (a, b): (Reg, Reg), known: (Option<i64>, Option<i64>)) {
        let (p, q) = (self.power(a, known.0), self.power(b, known.1));
        match op {
            BinOp::Mul => {
                self.powers[dst] = p.saturating_mul(q).min(1 << 62);
                let product = times(&self.product(a, known.0), &self.product(b, known.1));
                if product.factors.len() <= MAX_FACTORS {
                    self.products[dst] = Some(product);
                }
            }
            BinOp::Add | BinOp::Sub | BinOp::Max | BinOp::Min => self.powers[dst] = p.min(q),
            _ => {}
        }
    }

    /// A power of two that divides `reg`.
    pub(super) fn power(&self, reg: Reg, known: Option<i64>) -> u64 {
        known.map_or_else(|| self.powers[reg].max(1), power_of)
    }

    /// `reg` as a product.
    pub(super) fn product(&self, reg: Reg, known: Option<i64>) -> Product {
        match (known, &self.products[reg]) {
            (Some(n), _) => Product { coef: n, factors: Vec::new() },
            (None, Some(p)) => p.clone(),
            (None, None) => Product { coef: 1, factors: vec![reg] },
        }
    }
}

/// The product of two.
pub(super) fn times(a: &Product, b: &Product) -> Product {
    let coef = a.coef.wrapping_mul(b.coef);
    if coef == 0 {
        return Product { coef, factors: Vec::new() };
    }
    let mut factors = [&a.factors[..], &b.factors[..]].concat();
    factors.sort_unstable();
    Product { coef, factors }
}

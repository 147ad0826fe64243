//! Products of a warp-group, `wgmma`: each warp has its rows. They read shared memory and registers at any time until
//! they are waited for.

use super::bulk::operation;
use super::maps::Swizzle;
use super::mbarrier::Wrong;
use super::races::{RaceAccess, View};
use super::warp::Values;
use super::{Cta, SimFault, World};
use crate::sm90::{MmaType, Sm90, Wgmma};
use ptoc_tensor::matrix_unit::Factor;
use std::collections::VecDeque;

/// The sums of a product under way are here: nobody reads or writes it.
const SUMS: u8 = 1;
/// The left operand of a product under way is here: nobody writes it.
const LEFT: u8 = 2;
/// Something other than a product has accessed it, and there was no fence since.
const TOUCHED: u8 = 4;
/// It has a value.
const WRITTEN: u8 = 8;

/// A product that is issued.
#[derive(Debug)]
struct Product {
    op: Wgmma,
    pc: u32,
    /// A descriptor, if the left operand is no registers.
    left: Option<u64>,
    right: u64,
    adds: bool,
    group: u32,
    view: View,
}

/// Products of a warp, and marks of its registers.
#[derive(Debug, Default)]
pub(super) struct Products {
    queue: VecDeque<Product>,
    committed: u32,
    slot: Option<usize>,
    /// Products that nobody has waited for: their group and their instruction.
    under_way: VecDeque<(u32, u32)>,
    marks: Vec<u8>,
    fenced: bool,
}

impl Products {
    /// Of a kernel that has products.
    pub(super) fn new(registers: usize) -> Products {
        Products { marks: vec![0; registers], ..Products::default() }
    }

    pub(super) fn is_pending(&self) -> bool {
        !self.queue.is_empty()
    }

    /// An instruction reads and writes registers: why it may not.
    pub(super) fn touch(
        &mut self,
        reads: impl Iterator<Item = usize>,
        writes: impl Iterator<Item = usize>,
    ) -> Result<(), &'static str> {
        for reg in reads {
            if self.marks[reg] & SUMS != 0 {
                return Err("it reads sums of a product that is not waited for");
            }
            self.marks[reg] |= TOUCHED;
        }
        for reg in writes {
            match self.marks[reg] {
                m if m & SUMS != 0 => return Err("it writes sums of a product that is not waited for"),
                m if m & LEFT != 0 => return Err("it writes an operand of a product that is not waited for"),
                _ => self.marks[reg] |= TOUCHED | WRITTEN,
            }
        }
        Ok(())
    }

    fn fence(&mut self) {
        self.fenced = true;
        self.marks.iter_mut().for_each(|m| *m &= !TOUCHED);
    }

    /// A product takes its registers: why it may not.
    fn take(&mut self, sums: &[usize], left: &[usize], adds: bool, same: bool) -> Result<(), &'static str> {
        if !self.fenced || sums.iter().chain(left).any(|r| self.marks[*r] & TOUCHED != 0) {
            return Err("no wgmma.fence since its registers were accessed");
        }
        if adds && sums.iter().any(|r| self.marks[*r] & WRITTEN == 0) {
            return Err("it adds to registers without a value");
        }
        if sums.iter().any(|r| self.marks[*r] & LEFT != 0 || (self.marks[*r] & SUMS != 0 && !same)) {
            return Err("its sums are registers of another product that is not waited for");
        }
        if left.iter().any(|r| self.marks[*r] & SUMS != 0) {
            return Err("its operand has sums of a product that is not waited for");
        }
        sums.iter().for_each(|r| self.marks[*r] |= SUMS | WRITTEN);
        left.iter().for_each(|r| self.marks[*r] |= LEFT);
        Ok(())
    }
}

/// A matrix in shared memory, as a descriptor says.
struct Matrix {
    start: u64,
    leading: u64,
    stride: u64,
    swizzle: Swizzle,
    transposed: bool,
}

impl Matrix {
    fn new(descriptor: u64, transposed: bool) -> Result<Matrix, Wrong> {
        let field = |at: u32| (descriptor >> at & 0x3fff) << 4;
        if descriptor >> 49 & 7 != 0 {
            return Err(Wrong::Undefined("a descriptor with a base offset".into()));
        }
        let swizzle = match descriptor >> 62 {
            0 => Swizzle::None,
            1 => Swizzle::B128,
            2 => Swizzle::B64,
            _ => Swizzle::B32,
        };
        Ok(Matrix { start: field(0), leading: field(16), stride: field(32), swizzle, transposed })
    }

    /// Where 16 bytes lie. K-major: of a row, the first or the second half of its 32 bytes. Transposed: of a number of
    /// k, eight rows.
    fn chunk(&self, line: u64, chunk: u64) -> u64 {
        let span = self.swizzle.span();
        let within = (line % 8) * span;
        let at = match (self.swizzle, self.transposed) {
            (Swizzle::None, false) => (line / 8) * self.stride + chunk * self.leading + within,
            (Swizzle::None, true) => chunk * self.stride + (line / 8) * self.leading + within,
            (_, false) => (line / 8) * self.stride + within + chunk * 16,
            (_, true) => {
                let per = span / 16;
                (chunk / per) * self.leading + (line / 8) * self.stride + within + (chunk % per) * 16
            }
        };
        self.swizzle.place(self.start + at)
    }
}

fn bits(bytes: &[u8]) -> u32 {
    bytes.iter().rev().fold(0, |x, b| x << 8 | u32::from(*b))
}

impl Cta {
    /// Rows of a matrix in shared memory: their factors, row by row.
    fn factors(
        &mut self,
        matrix: &Matrix,
        ty: MmaType,
        first: usize,
        rows: usize,
        view: &View,
    ) -> Result<Vec<Factor>, Wrong> {
        let size = ty.size() as usize;
        let (k, per) = (32 / size, 16 / size);
        let mut out = vec![Factor::Nan; rows * k];
        let lines = if matrix.transposed { k } else { rows };
        let chunks = if matrix.transposed { rows / per } else { 2 };
        for line in 0..lines {
            for chunk in 0..chunks {
                let (at_line, at_chunk) =
                    if matrix.transposed { (line, chunk + first / per) } else { (line + first, chunk) };
                let at = matrix.chunk(at_line as u64, at_chunk as u64);
                let bytes = self.shared.touch_run(at, 16, RaceAccess::Read, view).map_err(|r| Wrong::Access(r, at))?;
                for (n, raw) in bytes.chunks(size).enumerate() {
                    let (row, column) =
                        if matrix.transposed { (chunk * per + n, line) } else { (line, chunk * per + n) };
                    out[row * k + column] = ty.factor(bits(raw));
                }
            }
        }
        Ok(out)
    }

    /// The oldest product of a warp takes place.
    pub(super) fn multiply(&mut self, world: &World<'_>, w: usize) -> Result<(), SimFault> {
        let Some(product) = self.warps[w].products.queue.pop_front() else { return Ok(()) };
        self.product(world, w, &product).map_err(|wrong| operation(product.view.who, wrong))
    }

    fn product(&mut self, world: &World<'_>, w: usize, product: &Product) -> Result<(), Wrong> {
        let (op, view) = (product.op, &product.view);
        let k = op.k() as usize;
        let step = &world.code.steps[product.pc as usize];
        let mut left = match product.left {
            Some(descriptor) => {
                let matrix = Matrix::new(descriptor, op.trans_a)?;
                self.factors(&matrix, op.a, 16 * (w % 4), 16, view)?
            }
            None => {
                let words: Vec<Values> = step.left().iter().map(|reg| *self.warps[w].reg(*reg)).collect();
                fragment(op.a, &words)
            }
        };
        let mut right = self.factors(&Matrix::new(product.right, op.trans_b)?, op.b, 0, usize::from(op.n), view)?;
        for (negate, factors) in [(op.neg_a, &mut left), (op.neg_b, &mut right)] {
            if negate {
                factors.iter_mut().for_each(|f| *f = f.negated());
            }
        }
        let rounded = op.a.profile().zip(op.a.factors().zip(op.b.factors()));
        let warp = &mut self.warps[w];
        for (n, reg) in step.all_dsts.iter().enumerate() {
            // Four registers for eight columns: two neighbours, and those eight rows below.
            let (column, below) = (n / 4 * 8 + n % 2, n / 2 % 2 * 8);
            let before = *warp.reg(*reg);
            for (lane, before) in before.into_iter().enumerate() {
                let (row, column) = (lane / 4 + below, column + lane % 4 * 2);
                let (a, b) = (&left[row * k..][..k], &right[column * k..][..k]);
                let before = if product.adds { before as u32 } else { 0 };
                let sum = match rounded {
                    Some((profile, types)) => profile.add(types, a, b, before),
                    None => integers(a, b, before),
                };
                warp.set_one(*reg, lane, sum.into());
            }
        }
        Ok(())
    }

    /// A warp waits for its products up to a group.
    fn wait_for_products(&mut self, world: &World<'_>, w: usize, last: u32) -> Result<(), SimFault> {
        while self.warps[w].products.queue.front().is_some_and(|p| p.group <= last) {
            self.multiply(world, w)?;
        }
        let products = &mut self.warps[w].products;
        products.under_way.retain(|(group, _)| *group > last);
        products.marks.iter_mut().for_each(|m| *m &= !(SUMS | LEFT));
        for (_, pc) in &products.under_way {
            let step = &world.code.steps[*pc as usize];
            step.all_dsts.iter().for_each(|r| products.marks[*r] |= SUMS);
            step.left().iter().for_each(|r| products.marks[*r] |= LEFT);
        }
        if let (Some(slot), Some(clocks)) = (products.slot, &self.clocks) {
            (32 * w..32 * w + 32).for_each(|thread| clocks.ended(thread, slot, last));
        }
        Ok(())
    }
}

/// Products of integers and the sum before, which wraps.
fn integers(a: &[Factor], b: &[Factor], before: u32) -> u32 {
    a.iter().zip(b).fold(before, |sum, factors| match factors {
        (Factor::Finite { sig: a, .. }, Factor::Finite { sig: b, .. }) => sum.wrapping_add_signed(a * b),
        _ => sum,
    })
}

/// The left operand in registers: rows of the warp, row by row.
pub(super) fn fragment(ty: MmaType, words: &[Values]) -> Vec<Factor> {
    let size = ty.size() as usize;
    let (k, per) = (32 / size, 4 / size);
    let mut out = vec![Factor::Nan; 16 * k];
    for (n, words) in words.iter().enumerate() {
        for (lane, word) in words.iter().enumerate() {
            let (row, column) = (lane / 4 + n % 2 * 8, lane % 4 * per + n / 2 * (k / 2));
            for (e, raw) in (*word as u32).to_le_bytes().chunks(size).enumerate() {
                out[row * k + column + e] = ty.factor(bits(raw));
            }
        }
    }
    out
}

impl World<'_> {
    /// An instruction of products, of a whole warp.
    pub(super) fn wgmma(&mut self, cta: &mut Cta, w: usize, pc: u32, op: Sm90) -> Result<(), SimFault> {
        let products = &mut cta.warps[w].products;
        match op {
            Sm90::WgmmaFence => products.fence(),
            Sm90::WgmmaCommit => products.committed += 1,
            Sm90::WgmmaWait(pending) => {
                let last = products.committed.saturating_sub(pending);
                cta.wait_for_products(self, w, last)?;
            }
            Sm90::Wgmma(product) => {
                let issued = self.issue_product(cta, w, pc, product);
                issued.map_err(|wrong| self.wrong(cta, w, pc, 0, wrong))?;
            }
            _ => {}
        }
        Ok(())
    }

    fn issue_product(&self, cta: &mut Cta, w: usize, pc: u32, op: Wgmma) -> Result<(), Wrong> {
        let undefined = |message: &str| Wrong::Undefined(message.into());
        let step = &self.code.steps[pc as usize];
        let registers = step.left();
        let first = if op.a_in_regs { 4 } else { 1 };
        // What all lanes say alike.
        let uniform = |n: usize| {
            let values = self.values(cta, w, step.all_srcs[n]);
            let same = values.iter().all(|v| *v == values[0]);
            if same { Ok(values[0]) } else { Err(undefined("lanes of a warp have different descriptors")) }
        };
        let left = if op.a_in_regs { None } else { Some(uniform(0)?) };
        let (right, adds) = (uniform(first)?, uniform(first + 1)? != 0);
        let products = &mut cta.warps[w].products;
        let last = products.under_way.back().map(|(_, pc)| &self.code.steps[*pc as usize]);
        let same = last.is_some_and(|last| last.all_dsts == step.all_dsts);
        products.take(&step.all_dsts, &registers, adds, same).map_err(undefined)?;
        let group = products.committed + 1;
        let mut view = cta.view(w, 0, pc);
        if let Some(clocks) = &cta.clocks {
            let slot = *cta.warps[w].products.slot.get_or_insert_with(|| clocks.slot());
            let common = clocks.common(32 * w..32 * w + 32);
            view = View { who: view.who.operation(slot, group), clocks: Some(common), sees: false };
            clocks.issue(view.who);
        }
        let products = &mut cta.warps[w].products;
        products.under_way.push_back((group, pc));
        products.queue.push_back(Product { op, pc, left, right, adds, group, view });
        Ok(())
    }
}

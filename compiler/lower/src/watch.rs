//! Instrumentation for monitors: what a monitor is told: before each statement that touches memory its number, the
//! values that say where, and where the memory is that says more.

use super::Lower;
use super::reduce::fixed;
use cranelift_entity::EntitySet;
use ptoc_interp::sanitize::{self, Data};
use ptoc_ir::loops::{Addr, Op, Reg, Stride, Watch};
use ptoc_ir::tile::{Kernel, Region, Stmt, Tile, Value};
use ptoc_opt::contraction::{self, Products};
use ptoc_opt::grid_coarsen::{self, Coarsening};
use rustc_hash::FxHashMap;

/// The statements of which a monitor is told.
pub(super) struct Watched<'k> {
    /// Their numbers, by where they are in the kernel.
    sites: FxHashMap<*const Stmt, u32>,
    /// What a monitor knows without being told.
    known: EntitySet<Value>,
    /// What would be one product if nobody watched. Its parts are rounded as if it were.
    pub(super) products: Products<'k>,
    pub(super) coarsening: Coarsening,
    /// The sizes of those that products of these operands are part of.
    pub(super) sizes: FxHashMap<(Tile, Tile), [Reg; 3]>,
}

impl<'k> Watched<'k> {
    pub(super) fn new(kernel: &'k Kernel) -> Watched<'k> {
        let sites = sanitize::sites(kernel).into_iter().map(std::ptr::from_ref);
        let products = contraction::find(kernel);
        Watched {
            sites: sites.zip(0..).collect(),
            known: sanitize::known(kernel),
            coarsening: grid_coarsen::find(kernel, &products),
            products,
            sizes: FxHashMap::default(),
        }
    }
}

impl Lower<'_> {
    /// A region, statement by statement.
    pub(super) fn watched_region(&mut self, region: &Region) {
        for stmt in region {
            self.watch(stmt);
            self.stmt(stmt);
        }
    }

    fn watch(&mut self, stmt: &Stmt) {
        let Some(watched) = &self.watched else { return };
        let Some(&site) = watched.sites.get(&std::ptr::from_ref(stmt)) else { return };
        self.code.span = stmt.span;
        let arguments = sanitize::arguments(stmt, &watched.known);
        let args = arguments.into_iter().map(|value| self.check_arg(value)).collect();
        let data = sanitize::data(self.kernel, stmt).into_iter().map(|data| match data {
            Data::Tile(tile) => {
                let matrix = self.tile(&tile);
                (matrix.first(), (fixed(matrix.rows), fixed(matrix.cols)))
            }
            Data::Scratch(tensor) => {
                let addr = Addr {
                    base: self.tensor_base(tensor),
                    offset: self.code.int(0),
                    stride: Stride::Const(0),
                    gather: None,
                };
                (addr, (0, 0))
            }
        });
        let data = data.collect();
        self.code.emit(Op::Watch(Box::new(Watch { site, args, data })));
    }
}

//! The verifier of tile IR. [`verify`] collects what is wrong; the interpreter and every pass may assume what follows.
//!
//! **Declarations** (E0804, E0815)
//! * every entity that is referred to is declared; a tile has at least one element, copy, row and column, and at most
//!   2^40 bytes; as many fixed addresses as elements; `bool` tiles are in Vec; a layout has the tile's shape, stands
//!   in for the order (which is row-major then), and is for tiles in Vec and Mat that are not `bool`;
//! * values of dimensions are `index`; extents and layouts of tensors and extents of the grid are `index` values of the
//!   prologue; a layout has a stride for each leaf;
//! * a placement has the shape of its tensor or of the grid, and no negative numbers; what is in every unit's bank
//!   names no bank, blocks name nothing inside of one.
//!
//! **Values** (E0805, E0806, E0807)
//! * a value is defined once: by a statement, as a dimension, a scalar argument, a grid index or a loop index;
//! * definitions precede uses in the same region or one around it. The prologue's values are visible in the body, a
//!   `while` head's in its body, a region's nowhere else;
//! * a scalar argument with a default is visible from the definition of the default on;
//! * operations exist on their operands' types, and types agree as [`Op`] says. Indexes, offsets, extents, strides and
//!   addresses are `index`, conditions `bool`.
//!
//! **Structure** (E0803, E0806, E0808, E0813)
//! * regions nest at most [`MAX_DEPTH`] deep; a label names one loop or scope; `break` and `continue` stand inside the
//!   loop, `leave` inside the scope that they name; in a `while`'s head neither is allowed for that `while`;
//! * the prologue has pure scalar operations and checks only.
//!
//! **Tiles and tensors** (E0812, E0814, E0816, E0818)
//! * `alloc` precedes every use of a tile in the same region or one around it; `assign` is for dynamic tiles;
//! * a window is inside its tile, and a valid shape inside its window, as far as constants tell;
//! * nothing writes an `in` tensor; views have a stride an extent; check texts refer to arguments that exist.
//!
//! **Order** (E0804, E0809, E0812): flags are set and waited for, barriers take the rest; an event has at least one
//! element and connects two pipes, a barrier has 1 to 2^20 - 1 arrivals; a role's region stands in no other role's.
//!
//! **Instructions** (E0809, E0810, E0811, E0817): operands, locations, dtypes, shape relations and modes are those of
//! the table. Shapes are equal if they are the same values or equal constants. Which dtypes a *target* admits is the
//! analysis' business. Beyond the table, `TEXPANDS` may fill an `Acc` tile (`acc = 0.0`). No instruction has an operand
//! with a layout of its own.
//!
//! **Copies and matrix products** (E0809, E0810, E0812, E0817): an affine function has one stride an axis; an extent is
//! not negative as far as constants tell. Both sides of a copy have one dtype (U4 counts as u8, I4 as i8), a product's
//! are those of TMATMUL. Half bytes are not written, tables hold integers, and `Zero` is for what is read. A side of a
//! product has the constant 0 as stride along axes that it does not see. Nothing reads the very tile that it writes;
//! only a copy to a tile covers it.

mod access;
mod inst;
mod op;
mod place;
mod scope;
mod sync;

use super::{AddrKind, Kernel, Op, RoleId, TensorDir, Ty, Value};
use ptoc_diagnostics::{Code, Diagnostic, Span, codes};
use ptoc_isa::{Loc, Order};
use ptoc_tensor::DType;
use scope::Scopes;

/// How deep regions may nest, the body included.
pub const MAX_DEPTH: usize = 200;

/// Errors after which the verifier stops.
const MAX_ERRORS: usize = 100;

/// Largest tile, in bytes of its dtype.
const MAX_TILE_BYTES: u128 = 1 << 40;

/// Something that is wrong with a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifyError {
    /// An E08xx code.
    pub code: Code,
    /// One sentence, with the entities' numbers.
    pub message: String,
    /// The statement or declaration.
    pub span: Span,
}

impl VerifyError {
    /// The same as a diagnostic.
    pub fn to_diagnostic(&self) -> Diagnostic {
        Diagnostic::error(self.code, self.span, self.message.clone())
    }
}

/// Checks every invariant of the module documentation.
pub fn verify(kernel: &Kernel) -> Result<(), Vec<VerifyError>> {
    verify_with(kernel, Locations::OfTheTable)
}

/// As [`verify`], for a kernel after rewrites that a machine with one memory allows: operands may be in any location
/// (an element-wise instruction reads the accumulator), all else holds.
pub fn verify_rewritten(kernel: &Kernel) -> Result<(), Vec<VerifyError>> {
    verify_with(kernel, Locations::Any)
}

/// Where operands may be.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Locations {
    /// Where the instruction's row says.
    OfTheTable,
    /// Anywhere.
    Any,
}

fn verify_with(kernel: &Kernel, locations: Locations) -> Result<(), Vec<VerifyError>> {
    let mut v = Verifier {
        k: kernel,
        locations,
        errors: Vec::new(),
        scopes: Scopes::new(kernel),
        span: kernel.span,
        in_prologue: true,
        role: None,
    };
    v.kernel();
    if v.errors.is_empty() { Ok(()) } else { Err(v.errors) }
}

struct Verifier<'k> {
    k: &'k Kernel,
    locations: Locations,
    errors: Vec<VerifyError>,
    scopes: Scopes,
    /// Of the statement that is being checked.
    span: Span,
    in_prologue: bool,
    /// The role around.
    role: Option<RoleId>,
}

impl Verifier<'_> {
    fn error(&mut self, code: Code, message: impl Into<String>) {
        if self.errors.len() < MAX_ERRORS {
            self.errors.push(VerifyError { code, message: message.into(), span: self.span });
        }
    }

    fn kernel(&mut self) {
        let k = self.k;
        self.tiles();
        self.events();
        for (id, dim) in &k.dims {
            self.span = dim.span;
            self.define(dim.value);
            if self.k.values.get(dim.value).is_some_and(|d| d.ty != Ty::Index) {
                self.error(codes::IR_TYPE_MISMATCH, format!("the value of dimension {id} is not of type index"));
            }
        }
        self.scalars();
        self.region(&k.prologue, 1);
        for param in &k.scalars {
            if !self.scopes.is_visible(param.value) && param.default.is_some() {
                self.span = param.span;
                self.error(
                    codes::IR_UNDEFINED_VALUE,
                    format!("the prologue does not define the default of scalar `{}`", param.name),
                );
                // One report is enough: the body may use it.
                self.scopes.show(param.value);
            }
        }
        for tensor in k.tensors.values() {
            self.span = tensor.span;
            for &extent in &tensor.shape {
                self.expect(extent, Ty::Index, "an extent");
            }
            let Some(stored) = &tensor.stored else { continue };
            if stored.extents.len() != stored.at.strides.len() {
                let (n, m) = (stored.extents.len(), stored.at.strides.len());
                self.error(codes::IR_DECLARATION, format!("{n} leaves of a layout with {m} strides"));
            }
            for &v in stored.extents.iter().chain(&stored.at.strides).chain([&stored.at.start]) {
                self.expect(v, Ty::Index, "a number of a layout");
            }
        }
        let mut seen_scratch = false;
        for (id, tensor) in &k.tensors {
            self.span = tensor.span;
            seen_scratch |= tensor.dir == TensorDir::Scratch;
            if seen_scratch && tensor.dir != TensorDir::Scratch {
                self.error(codes::IR_DECLARATION, format!("argument {id} stands after a scratch tensor"));
            }
        }
        self.span = k.span;
        for dim in &k.grid {
            self.expect(dim.extent, Ty::Index, "an extent of the grid");
        }
        for dim in &k.grid {
            self.define(dim.index);
            self.expect(dim.index, Ty::Index, "an index of the grid");
        }
        if let Some(raster) = k.raster.filter(|r| r.along as usize >= k.grid.len() || r.swizzle == 0) {
            let message = format!(
                "a raster along dimension {} of a grid of {}, {} abreast",
                raster.along,
                k.grid.len(),
                raster.swizzle
            );
            self.error(codes::IR_DECLARATION, message);
        }
        if !k.cluster.is_empty() && (k.cluster.len() != k.grid.len() || k.cluster.contains(&0)) {
            self.error(codes::IR_DECLARATION, format!("clusters of {:?} in a grid of {}", k.cluster, k.grid.len()));
        }
        self.placements();
        self.in_prologue = false;
        self.region(&k.body, 1);
    }

    fn tiles(&mut self) {
        for (id, tile) in &self.k.tiles {
            self.span = tile.span;
            let mut wrong = |what: String| {
                let message = format!("tile {id} `{}` {what}", tile.name);
                self.errors.push(VerifyError { code: codes::IR_DECLARATION, message, span: tile.span });
            };
            if tile.count == 0 || tile.stages == 0 || tile.ty.rows == 0 || tile.ty.cols == 0 {
                wrong("has no elements".into());
            }
            let elements = match tile.ty.layout {
                None => u128::from(tile.ty.rows) * u128::from(tile.ty.cols),
                Some(layout) => {
                    let shape = (i64::from(tile.ty.rows), i64::from(tile.ty.cols));
                    if (layout.rows(), layout.cols()) != shape {
                        wrong(format!("is {} x {}, its layout {layout} is not", shape.0, shape.1));
                    }
                    if tile.ty.order != Order::Nd {
                        wrong("has a layout of its own, and is column-major besides".into());
                    }
                    if tile.ty.dtype == DType::Bool || !tile.ty.loc.bytes_observable() {
                        wrong(format!("is a {} in {} and has a layout of its own", tile.ty.dtype, tile.ty.loc));
                    }
                    u128::from(layout.cosize().unsigned_abs())
                }
            };
            let bytes = elements * tile.ty.dtype.size() as u128;
            if bytes * u128::from(tile.count.max(1)) > MAX_TILE_BYTES {
                wrong(format!("has {bytes} bytes an element, which is beyond every limit"));
            }
            if let AddrKind::Fixed(at) = &tile.addr
                && at.len() != tile.count as usize
            {
                wrong(format!("has {} elements and {} addresses", tile.count, at.len()));
            }
            if tile.ty.dtype == DType::Bool && tile.ty.loc != Loc::Vec {
                wrong(format!("is a mask in {}", tile.ty.loc));
            }
        }
    }

    fn scalars(&mut self) {
        for param in &self.k.scalars {
            self.span = param.span;
            self.define(param.value);
            if let Some(default) = param.default {
                let types = (self.k.values.get(param.value), self.k.values.get(default));
                match types {
                    (Some(a), Some(b)) if a.ty != b.ty => self.error(
                        codes::IR_TYPE_MISMATCH,
                        format!("scalar `{}` is {}, its default {default} is {}", param.name, a.ty, b.ty),
                    ),
                    (Some(_), None) => {
                        self.error(codes::IR_NO_SUCH_ENTITY, format!("there is no value {default}"));
                    }
                    _ => {}
                }
                if !self.scopes.is_visible(default) {
                    self.scopes.hide_until(param.value, default);
                }
            }
        }
    }

    /// Takes note of a definition.
    fn define(&mut self, value: Value) {
        if self.k.values.get(value).is_none() {
            self.error(codes::IR_NO_SUCH_ENTITY, format!("there is no value {value}"));
        } else if !self.scopes.define(value) {
            self.error(codes::IR_REDEFINED_VALUE, format!("{value} is defined twice"));
        }
    }

    /// The type of a value that is used; reports one that is not visible.
    fn used(&mut self, value: Value) -> Option<Ty> {
        let Some(data) = self.k.values.get(value) else {
            self.error(codes::IR_NO_SUCH_ENTITY, format!("there is no value {value}"));
            return None;
        };
        if !self.scopes.is_visible(value) {
            let why = if self.scopes.is_defined(value) {
                "its definition does not reach here"
            } else {
                "nothing defined it before"
            };
            self.error(codes::IR_UNDEFINED_VALUE, format!("{value} is used, but {why}"));
        }
        Some(data.ty)
    }

    /// A use that must have type `ty`.
    fn expect(&mut self, value: Value, ty: Ty, what: &str) {
        if let Some(found) = self.used(value)
            && found != ty
        {
            self.error(codes::IR_TYPE_MISMATCH, format!("{what} is {ty}, {value} is {found}"));
        }
    }

    /// Whether two lengths are known to be equal.
    fn same(&self, a: Value, b: Value) -> bool {
        a == b || self.scopes.index(a).is_some_and(|x| self.scopes.index(b) == Some(x))
    }

    fn depth_ok(&mut self, depth: usize) -> bool {
        if depth == MAX_DEPTH + 1 {
            self.error(codes::IR_TOO_DEEP, format!("regions are nested more than {MAX_DEPTH} deep"));
        }
        depth <= MAX_DEPTH
    }

    fn prologue_op(&mut self, op: &Op) -> bool {
        if self.in_prologue && !op.is_pure() && !matches!(op, Op::Check { .. }) {
            self.error(codes::IR_IMPURE_PROLOGUE, "the prologue has a statement that is not scalar arithmetic");
            return false;
        }
        true
    }
}

#[cfg(test)]
mod tests;

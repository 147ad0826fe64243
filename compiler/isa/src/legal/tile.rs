//! Which tile types exist on a target (`spec/targets.md`).
//!
//! Decisions where PTO leaves a choice:
//! * Bias and Scaling rows must be multiples of 64 and 128 bytes already as types: TMOV, the only way to fill them,
//!   demands it. They have one row.
//! * Accumulator boxes are 16 x 16 for every element size.
//! * A layout of the author's (`layout = ..`) replaces the order of a tile in Vec or Mat, and with it the rules on rows
//!   and boxes: no instruction but loads and stores looks at such a tile. Masks are packed by rows and have none.
//! * A mask (`bool`) has its rows padded to 32 bytes by us, so any width is legal; it exists in Vec, row-major.

use super::convert::keeps_all;
use super::nearest::distance;
use crate::{Loc, Order, Target, TileType, UnitKind, text};
use ptoc_diagnostics::{Code, Diagnostic, Span, codes};
use ptoc_tensor::DType;

/// Rows and columns of a legal tile are multiples of these.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Granule {
    /// Rows.
    pub rows: u32,
    /// Columns.
    pub cols: u32,
    /// One row is legal too, whatever `rows` says (PTO's relaxation for boxed tiles).
    pub one_row: bool,
}

/// The granule of tiles of this location, dtype and order.
pub fn granule(target: &Target, loc: Loc, dtype: DType, order: Order) -> Granule {
    let memory = target.memory(loc);
    if let Some((rows, cols)) = memory.fractal_of(dtype.size()) {
        return Granule { rows, cols, one_row: true };
    }
    if dtype == DType::Bool {
        return Granule { rows: 1, cols: 1, one_row: false };
    }
    let line = u32::try_from(memory.row_align / dtype.size() as u64).unwrap_or(1).max(1);
    match order {
        Order::Nd => Granule { rows: 1, cols: line, one_row: false },
        Order::Dn => Granule { rows: line, cols: 1, one_row: false },
    }
}

/// The order of a tile whose author names none: a column `[R, 1]` in Vec is column-major, because its rows would be
/// narrower than the 32 bytes that a row-major tile needs; all else is row-major.
pub fn default_order(loc: Loc, dtype: DType, _rows: u32, cols: u32) -> Order {
    if matches!(loc, Loc::Vec | Loc::Lanes) && cols == 1 && dtype != DType::Bool { Order::Dn } else { Order::Nd }
}

/// The smallest legal tile in the default order that holds `rows x cols`, for tiles that the compiler makes. Boxed
/// tiles are rounded to whole boxes even for one row, so that the operands of a matrix product agree.
pub fn round_up_to_legal(target: &Target, loc: Loc, dtype: DType, rows: u32, cols: u32) -> (u32, u32) {
    let g = granule(target, loc, dtype, default_order(loc, dtype, rows, cols));
    let lines = if rows == 1 { g.rows } else { box_rows(target, loc, dtype, g) };
    (round_up(rows, lines), round_up(cols, g.cols))
}

/// Rows of storage. The matrix unit's operands lie in Mat as the boxes of Left, whose columns are lines of 32 bytes: a
/// tile of fewer rows is legal there, and takes up whole boxes.
fn box_rows(target: &Target, loc: Loc, dtype: DType, g: Granule) -> u32 {
    if loc != Loc::Mat || target.is_pim() || target.gpu.is_some() {
        return g.rows;
    }
    target.memory(Loc::Left).fractal_of(dtype.size()).map_or(g.rows, |(rows, _)| rows)
}

/// The storage of a tile that its author declares as `ty`, without an order or layout of its own: whole lines or boxes,
/// in the same order. Units in memory have registers and bursts of their sizes, which nothing pads.
pub fn storage_of(target: &Target, ty: TileType) -> TileType {
    if !target.pads_tiles() || ty.layout.is_some() || ty.rows == 0 || ty.cols == 0 {
        return ty;
    }
    let g = granule(target, ty.loc, ty.dtype, ty.order);
    let lines = if ty.order == Order::Nd { box_rows(target, ty.loc, ty.dtype, g) } else { g.rows };
    let one = ty.rows == 1 && (g.one_row || ty.loc == Loc::Mat && ty.order == Order::Nd);
    let rows = if one { 1 } else { round_up(ty.rows, lines) };
    TileType { rows, cols: round_up(ty.cols, g.cols), ..ty }
}

fn round_up(n: u32, step: u32) -> u32 {
    n.max(1).checked_next_multiple_of(step).unwrap_or(u32::MAX / step * step)
}

/// Which rule a tile type breaks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TypeRule {
    /// Rows or columns are 0.
    Empty,
    /// The target has no such dtype at all.
    DTypeAbsent {
        /// The dtypes that it has.
        available: Vec<DType>,
        /// The nearest of those that this location takes.
        nearest: Option<DType>,
    },
    /// `bool` outside Vec, or column-major.
    MaskPlace,
    /// A layout of the author's outside Vec and Mat, where the hardware orders the elements.
    LayoutPlace,
    /// A mask with a layout of the author's.
    MaskLayout,
    /// The layout is for another number of rows or columns.
    LayoutShape {
        /// Its rows.
        rows: i64,
        /// Its columns.
        cols: i64,
    },
    /// The matrix unit does not take this dtype here.
    CubeDType {
        /// The dtypes that it takes, the nearest first.
        available: Vec<DType>,
        /// The smallest tiles of these dtypes that hold this one.
        types: Vec<TileType>,
    },
    /// It is in a table of one row (Bias, Scaling), and has more.
    TableRows {
        /// One row of it, as long as it is legal.
        one: TileType,
    },
    /// A row (or column, if column-major) of an unboxed tile is not a multiple of `multiple` bytes.
    LineAlignment {
        /// Bytes of the line.
        bytes: u64,
        /// What they must be a multiple of.
        multiple: u64,
        /// The next legal length, in elements.
        up: u32,
        /// The legal length before, in elements; 0 if there is none.
        down: u32,
        /// Elements of which `up` and `down` are multiples because a unit moves whole bursts of them; 0 if that asks
        /// for no more.
        burst: u32,
    },
    /// Rows or columns are not multiples of the fractal box.
    Fractal {
        /// Rows and columns of a box.
        inner: (u32, u32),
        /// The smallest legal tile that holds this one.
        up: (u32, u32),
    },
}

/// A tile type that a target does not have.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TypeViolation {
    /// The type.
    pub ty: TileType,
    /// The target's name.
    pub target: String,
    /// The rule with its numbers.
    pub rule: TypeRule,
    /// Other built-in targets on which this rule is kept.
    pub legal_on: Vec<&'static str>,
}

/// Every rule that `ty` breaks on `target`. Capacity is not looked at: that is [`super::check_size`].
pub fn check_tile_type(target: &Target, ty: TileType) -> Vec<TypeViolation> {
    let rules = broken_rules(target, ty);
    rules
        .into_iter()
        .map(|rule| TypeViolation {
            legal_on: target
                .others()
                .filter(|t| {
                    let kind = std::mem::discriminant(&rule);
                    !broken_rules(t, ty)
                        .iter()
                        .any(|r| std::mem::discriminant(r) == kind || matches!(r, TypeRule::DTypeAbsent { .. }))
                })
                .map(|t| t.name.as_str())
                .collect(),
            ty,
            target: target.name.clone(),
            rule,
        })
        .collect()
}

fn broken_rules(target: &Target, ty: TileType) -> Vec<TypeRule> {
    let mut out = Vec::new();
    let TileType { loc, dtype, rows, cols, order, layout } = ty;
    if rows == 0 || cols == 0 {
        out.push(TypeRule::Empty);
    }
    if let Some(layout) = layout {
        if dtype == DType::Bool {
            out.push(TypeRule::MaskLayout);
            return out;
        }
        if !loc.bytes_observable() {
            out.push(TypeRule::LayoutPlace);
        }
        if (layout.rows(), layout.cols()) != (i64::from(rows), i64::from(cols)) {
            out.push(TypeRule::LayoutShape { rows: layout.rows(), cols: layout.cols() });
        }
        if !target.has_dtype(dtype) {
            out.push(absent(target, loc, dtype));
        }
        return out;
    }
    if dtype == DType::Bool {
        if loc != Loc::Vec || order == Order::Dn {
            out.push(TypeRule::MaskPlace);
        }
        return out;
    }
    if !target.has_dtype(dtype) {
        // Which sizes would be legal for a type that does not exist is of no use to anyone.
        out.push(absent(target, loc, dtype));
        return out;
    }
    if let Some(available) = target.cube_dtypes(loc)
        && !available.contains(&dtype)
    {
        let available = by_distance(dtype, available);
        let (rows, cols) = (rows.max(1), cols.max(1));
        let of = |d: &DType| {
            let g = granule(target, loc, *d, order);
            let rows = if g.one_row && rows == 1 { 1 } else { round_up(rows, g.rows) };
            TileType { dtype: *d, rows, cols: round_up(cols, g.cols), ..ty }
        };
        out.push(TypeRule::CubeDType { types: available.iter().map(of).collect(), available });
        return out;
    }
    if rows == 0 || cols == 0 {
        return out;
    }
    let g = granule(target, loc, dtype, order);
    if target.memory(loc).one_row && rows != 1 {
        let cols = round_up(cols, granule(target, loc, dtype, Order::Nd).cols);
        out.push(TypeRule::TableRows { one: TileType { rows: 1, cols, order: Order::Nd, ..ty } });
        return out;
    }
    if let Some(inner) = target.memory(loc).fractal_of(dtype.size()) {
        let rows_ok = rows % g.rows == 0 || (g.one_row && rows == 1);
        if !rows_ok || cols % g.cols != 0 {
            let up_rows = if rows_ok { rows } else { round_up(rows, g.rows) };
            out.push(TypeRule::Fractal { inner, up: (up_rows, round_up(cols, g.cols)) });
        }
        return out;
    }
    let (length, step) = match order {
        Order::Nd => (cols, g.cols),
        Order::Dn => (rows, g.rows),
    };
    if length % step != 0 {
        // A length that the next check refuses is no help.
        let burst = channels_of_burst(target, loc).filter(|n| n % step == 0 && *n > step);
        let step = burst.unwrap_or(step);
        out.push(TypeRule::LineAlignment {
            bytes: u64::from(length) * dtype.size() as u64,
            multiple: target.memory(loc).row_align,
            up: round_up(length, step),
            down: length / step * step,
            burst: burst.unwrap_or(0),
        });
    }
    out
}

fn absent(target: &Target, loc: Loc, dtype: DType) -> TypeRule {
    let usable = target.cube_dtypes(loc).unwrap_or_else(|| target.dtypes.clone());
    TypeRule::DTypeAbsent { available: target.dtypes.clone(), nearest: nearest_of(dtype, &usable) }
}

/// The nearest first.
fn by_distance(dtype: DType, mut list: Vec<DType>) -> Vec<DType> {
    list.sort_by_key(|d| distance(dtype, *d));
    list
}

/// The smallest that holds every value, else the one that differs the least.
fn nearest_of(dtype: DType, list: &[DType]) -> Option<DType> {
    let keeps = list.iter().copied().filter(|d| keeps_all(dtype, *d)).min_by_key(|d| distance(dtype, *d));
    keeps.or_else(|| list.iter().copied().min_by_key(|d| distance(dtype, *d)))
}

/// Which accumulator the factors need, where it is not one for all.
fn factors_of(target: &str, ty: TileType) -> Option<String> {
    let target = Target::builtin(target).ok().filter(|_| ty.loc == Loc::Acc)?;
    let mut factors: Vec<DType> = target.triples.iter().filter(|t| t.acc == ty.dtype).map(|t| t.left).collect();
    factors.dedup();
    (!factors.is_empty()).then(|| format!(" for factors of {}", text::list(&factors)))
}

/// What there is to say about a dtype that the target has not.
fn about_absent(d: Diagnostic, dtype: DType, available: &[DType], nearest: Option<DType>) -> Diagnostic {
    let d = d.with_note(format!("its dtypes are {}", text::list(available)));
    nearest.into_iter().fold(d, |d, n| d.with_help(instead_of(None, dtype, n)))
}

/// A tensor of a dtype that the target has not, as a report.
pub fn check_tensor_dtype(target: &Target, dtype: DType, span: Span) -> Option<Diagnostic> {
    if target.has_dtype(dtype) {
        return None;
    }
    let message = format!("{} has no {dtype}", target.name);
    let d = Diagnostic::error(codes::DTYPE_NOT_ON_TARGET, span, message).with_label(format!("not on {}", target.name));
    let nearest = nearest_of(dtype, &target.dtypes);
    let d = about_absent(d, dtype, &target.dtypes, nearest);
    // What the matrix unit reads is less.
    let factors = target.cube_dtypes(Loc::Left).unwrap_or_default();
    let d = match (nearest, nearest_of(dtype, &factors)) {
        (Some(n), Some(factor)) if !factors.contains(&n) && factor.is_float() == dtype.is_float() => {
            d.with_help(format!("or make it {factor} if it is a factor of a product: Left does not take {n} there"))
        }
        _ => d,
    };
    Some(with_targets_of(d, target, dtype))
}

/// A kernel's static parameter `name` of such a dtype, which the kernel uses `at`, as a report.
pub fn absent_parameter(target: &Target, name: &str, dtype: DType, (span, at): (Span, Span)) -> Diagnostic {
    let message = format!("{} has no {dtype}", target.name);
    let d = Diagnostic::error(codes::DTYPE_NOT_ON_TARGET, span, message)
        .with_label(format!("`{name}` is {dtype}"))
        .with_secondary(at, "used here for the first time")
        .with_note(format!("its dtypes are {}", text::list(&target.dtypes)));
    let nearest = nearest_of(dtype, &target.dtypes);
    let d = nearest.into_iter().fold(d, |d, n| d.with_help(instead_of(Some(name), dtype, n)));
    with_targets_of(d, target, dtype)
}

/// What comes into question for a dtype that the target has not, the best first: it has every value, or differs the
/// least. A float stays a float, an integer an integer.
pub fn dtypes_instead(target: &Target, dtype: DType) -> Vec<DType> {
    let mut left: Vec<DType> = target.dtypes.iter().copied().filter(|d| d.is_float() == dtype.is_float()).collect();
    let mut out = Vec::new();
    while let Some(next) = nearest_of(dtype, &left) {
        left.retain(|d| *d != next);
        out.push(next);
    }
    out
}

/// The proposal of `to` for an absent dtype, which is a static parameter's or stands in the text.
pub fn instead_of(parameter: Option<&str>, from: DType, to: DType) -> String {
    match (parameter, keeps_all(from, to)) {
        (Some(name), true) => format!("`-D {name}={to}` makes it {to}, which has every value of {from}"),
        (Some(name), false) => format!("`-D {name}={to}` makes it {to}, the nearest"),
        (None, true) => format!("make it {to}, which has every value of {from}"),
        (None, false) => format!("the nearest is to make it {to}"),
    }
}

/// Which other targets have the dtype.
fn with_targets_of(d: Diagnostic, target: &Target, dtype: DType) -> Diagnostic {
    let there: Vec<&str> = target.others().filter(|t| t.has_dtype(dtype)).map(|t| t.name.as_str()).collect();
    match there.as_slice() {
        [] => d,
        on => d.with_note(format!("it is legal on {}", text::list(on))),
    }
}

/// Channels of a burst of a map, where tiles here are sums of pixels: GeoPIM's units read and write whole bursts of
/// f16.
fn channels_of_burst(target: &Target, loc: Loc) -> Option<u32> {
    let samples = target.unit.is_some_and(|u| matches!(u.kind, UnitKind::GeoPim(_)));
    let bytes = target.device.as_ref()?.burst_bytes;
    (samples && loc == Loc::Vec).then_some(bytes / DType::F16.size() as u32)
}

impl TypeViolation {
    /// The same of a tile whose valid shape the author has said: no shorter line than that is proposed.
    #[must_use]
    pub fn holding(mut self, rows: Option<i64>, cols: Option<i64>) -> TypeViolation {
        let along = if self.ty.order == Order::Nd { cols } else { rows };
        if let TypeRule::LineAlignment { down, .. } = &mut self.rule
            && along.is_some_and(|n| n > i64::from(*down))
        {
            *down = 0;
        }
        self
    }

    /// The code of the rule.
    pub fn code(&self) -> Code {
        match self.rule {
            TypeRule::Empty => codes::EMPTY_TILE,
            TypeRule::DTypeAbsent { .. } => codes::DTYPE_NOT_ON_TARGET,
            TypeRule::MaskPlace => codes::MASK_PLACE,
            TypeRule::LayoutPlace => codes::LAYOUT_PLACE,
            TypeRule::MaskLayout => codes::MASK_LAYOUT,
            TypeRule::LayoutShape { .. } => codes::LAYOUT_SHAPE,
            TypeRule::CubeDType { .. } => codes::CUBE_DTYPE,
            TypeRule::TableRows { .. } => codes::TABLE_ONE_ROW,
            TypeRule::LineAlignment { .. } => codes::ROW_ALIGNMENT,
            TypeRule::Fractal { .. } => codes::FRACTAL_SIZE,
        }
    }

    /// The report; `subject` is how the author calls the tile ("tile `x`").
    pub fn diagnostic(&self, subject: &str, span: Span) -> Diagnostic {
        let TileType { loc, dtype, rows, cols, order, .. } = self.ty;
        let error = |message: String| Diagnostic::error(self.code(), span, message).with_label(self.ty.to_string());
        let elsewhere = |d: Diagnostic| match self.legal_on.as_slice() {
            [] => d,
            on => d.with_note(format!("it is legal on {}", text::list(on))),
        };
        match &self.rule {
            TypeRule::Empty => error(format!("{subject} has no elements: {rows} x {cols}"))
                .with_help("a tile has at least one row and one column"),
            TypeRule::DTypeAbsent { available, nearest } => elsewhere(about_absent(
                error(format!("{subject}: {} has no {dtype}", self.target)),
                dtype,
                available,
                *nearest,
            )),
            TypeRule::MaskPlace => {
                let what = if loc == Loc::Vec { "column-major".to_string() } else { format!("in {loc}") };
                error(format!("{subject}: a tile of bool cannot be {what}"))
                    .with_note("masks are packed bits that only the vector unit reads, row by row")
                    .with_help(format!("make it `Vec<bool, {rows}, {cols}>`"))
            }
            TypeRule::LayoutPlace => error(format!("{subject}: a tile in {loc} cannot have a layout of its own"))
                .with_note(format!("the hardware decides where the elements of a tile in {loc} lie"))
                .with_help("declare it in Vec or Mat, or leave the layout out"),
            TypeRule::MaskLayout => error(format!("{subject}: a tile of bool cannot have a layout of its own"))
                .with_note("masks are packed bits that only the vector unit reads, row by row")
                .with_help(format!("make it `Vec<bool, {rows}, {cols}>`, or a tile of u8")),
            TypeRule::LayoutShape { rows: r, cols: c } => {
                error(format!("{subject} has {rows} x {cols} elements, and its layout places {r} x {c}")).with_help(
                    format!("mode 0 of the layout is the row, of size {rows}, and mode 1 the column, of size {cols}"),
                )
            }
            TypeRule::CubeDType { available, types } => {
                let one = |t: &TileType| format!("`{t}`{}", factors_of(&self.target, *t).unwrap_or_default());
                elsewhere(
                    error(format!("{subject}: on {} a tile in {loc} cannot be {dtype}", self.target))
                        .with_note(format!("{loc} tiles are {} there", text::either(available)))
                        .with_help(format!("make it {}", text::either(types.iter().map(one)))),
                )
            }
            TypeRule::TableRows { one } => {
                error(format!("{subject}: a tile in {loc} has one row, and this has {rows}"))
                    .with_note(format!("{loc} is a table that is read along its only row, on every target"))
                    .with_help(format!("make it `{one}`, and move one row there"))
            }
            TypeRule::LineAlignment { bytes, multiple, up, down, burst } => {
                let (line, unit) = match order {
                    Order::Nd => ("row", "columns"),
                    Order::Dn => ("column", "rows"),
                };
                let sizes = match down {
                    0 => format!("{up} {unit}"),
                    _ => format!("{up} or {down} {unit}"),
                };
                let column = TileType { order: Order::Dn, ..self.ty };
                let as_column = order == Order::Nd
                    && cols == 1
                    && loc == Loc::Vec
                    && (u64::from(rows) * dtype.size() as u64).is_multiple_of(*multiple);
                let d =
                    error(format!("{subject}: a {line} of {} is not a multiple of {multiple}", text::bytes(*bytes)))
                        .with_note(format!(
                            "in {loc}, {line}s of a tile are multiples of {multiple} bytes: {} elements of {dtype}",
                            multiple / dtype.size() as u64
                        ))
                        .with_help(format!("give it {sizes}; the valid shape may be smaller than the capacity"));
                let d = match burst {
                    0 => d,
                    n => d.with_note(format!("a unit samples and stores whole bursts: {n} channels")),
                };
                if as_column { d.with_help(format!("or make it column-major: `{column}`")) } else { d }
            }
            TypeRule::Fractal { inner, up } => {
                error(format!("{subject}: {rows} x {cols} is not whole boxes of {} x {}", inner.0, inner.1))
                    .with_note(format!("tiles of {dtype} in {loc} are stored as boxes of {} x {}", inner.0, inner.1))
                    .with_help(format!(
                        "make it `{loc}<{dtype}, {}, {}>`; the valid shape may be smaller than the capacity",
                        up.0, up.1
                    ))
            }
        }
    }
}

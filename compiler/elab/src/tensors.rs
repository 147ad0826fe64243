//! Layouts of tensor arguments: `x: in f32[(A, B) : (1, A)]`, `x: in f32[LAYOUT]`. The kernel sees a window with those
//! strides over a buffer; arrays stay logical, and whoever launches the kernel lays them out in the buffer.

use super::{ElabResult, Elaborator, ErrorReported};
use ptoc_diagnostics::{Diagnostic, Span, codes};
use ptoc_ir::tile::{Elem, TensorDir, TensorId, Value};
use ptoc_isa::BinOp;
use ptoc_layout::{Int, Layout, Storage, StorageError, Stride, Swizzle, TooManySteps, Tuple, Value as Algebra};
use ptoc_syntax::ast::{Expr, ExprKind};
use ptoc_tensor::DType;
use ptoc_values::{Leaf, Quantity, Val, View, WindowMap, WindowMode};

/// Steps that the compiler spends on finding two elements in one place; what takes longer is for the launch.
const STEPS: u64 = 1 << 22;

/// Bytes that a buffer may have.
const MOST_BYTES: u64 = 1 << 36;

/// How a tensor argument is stored, where its author says so.
#[derive(Clone, Debug)]
pub struct ArgLayout {
    /// Coordinate to place. Symbols are values of the kernel's prologue.
    pub layout: Layout,
    /// Applied to the place.
    pub swizzle: Option<Swizzle>,
    /// Added before that.
    pub offset: Int,
}

impl ArgLayout {
    /// The layout with numbers for its symbols. A tensor that is written needs a place for each element.
    pub fn storage(
        &self,
        tensor: (&str, DType, TensorDir, Span),
        value: &mut dyn FnMut(Value) -> Option<i64>,
    ) -> Result<Storage, Box<Diagnostic>> {
        self.storage_within(tensor, u64::MAX, value)
    }

    fn storage_within(
        &self,
        (name, dtype, dir, span): (&str, DType, TensorDir, Span),
        steps: u64,
        value: &mut dyn FnMut(Value) -> Option<i64>,
    ) -> Result<Storage, Box<Diagnostic>> {
        let mut number = |id| value(Value::from_u32(u32::try_from(id).unwrap_or(u32::MAX)));
        let storage = match Storage::new(&self.layout, self.swizzle, &self.offset, &mut number) {
            Ok(s) if s.len().saturating_mul(dtype.size() as u64) <= MOST_BYTES => s,
            Ok(s) => return Err(Box::new(too_large(name, span, &format!("{} places are needed", s.len())))),
            Err(e) => return Err(Box::new(self.refusal(name, span, &e))),
        };
        if dir == TensorDir::In {
            return Ok(storage);
        }
        match storage.overlap(steps) {
            Ok(None) | Err(TooManySteps) => Ok(storage),
            Ok(Some(o)) => {
                let message = format!(
                    "`{name}` is written, and its layout puts the elements {:?} and {:?} in one place",
                    o.first, o.second
                );
                let mut d = Diagnostic::error(codes::OVERLAPPING_ELEMENTS, span, message)
                    .with_label(format!("both lie at {}", o.place))
                    .with_note(format!("the layout is {self}, here of {:?}", storage.shape()));
                d = match self.layout.stride().leaves().iter().any(|s| s.scale.is(0)) {
                    true => d.with_help("a stride of 0 repeats elements: only an `in` tensor may have it"),
                    false => d.with_help("give each mode a stride of at least extent times stride of the one below it"),
                };
                Err(Box::new(d))
            }
        }
    }

    fn refusal(&self, name: &str, span: Span, e: &StorageError) -> Diagnostic {
        let note = format!("the layout is {self}");
        match e {
            StorageError::Unknown(_) => {
                Diagnostic::error(codes::TENSOR_LAYOUT, span, format!("`{name}`: {e}")).with_note(note)
            }
            StorageError::NegativeExtent { .. } => {
                Diagnostic::error(codes::BAD_EXTENT, span, format!("`{name}`: {e}")).with_note(note)
            }
            StorageError::NegativeStride { .. } | StorageError::NegativeOffset(_) => {
                negative(name, span, &e.to_string()).with_note(note)
            }
            StorageError::TooLarge { .. } => too_large(name, span, &e.to_string()).with_note(note),
        }
    }
}

impl std::fmt::Display for ArgLayout {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.swizzle {
            Some(s) => write!(f, "{s} o {} o {}", self.offset, self.layout),
            None => self.layout.fmt(f),
        }
    }
}

fn negative(name: &str, span: Span, what: &str) -> Diagnostic {
    Diagnostic::error(codes::NEGATIVE_STRIDE, span, format!("`{name}`: {what}, which is negative"))
        .with_help("a tensor begins at its first element; to walk a mode backwards, index it so: `x[N - 1 - i]`")
}

fn too_large(name: &str, span: Span, what: &str) -> Diagnostic {
    Diagnostic::error(codes::LAYOUT_TOO_LARGE, span, format!("`{name}`: {what}, more than a tensor can have"))
        .with_help("check the strides: they count elements, not bytes")
}

impl Elaborator<'_> {
    /// The layout that a tensor's type has in its brackets; `None` if extents stand there.
    pub(crate) fn layout_in_type(&mut self, dims: &[(Val, Span)]) -> ElabResult<Option<ArgLayout>> {
        let is_extent = |v: &Val| !matches!(v, Val::Algebra(_) | Val::Tuple(_) | Val::List(_));
        let Some((v, at)) = dims.iter().find(|(v, _)| !is_extent(v)) else { return Ok(None) };
        let at = *at;
        if dims.len() != 1 {
            let message = "a layout in a tensor's type stands alone: it has all the extents";
            let d = Diagnostic::error(codes::TENSOR_LAYOUT, at, message)
                .with_label(format!("one of {} entries", dims.len()))
                .with_help("write `T[(A, B) : (1, A)]`, or extents alone: `T[A, B]`");
            return self.report(d);
        }
        let (layout, swizzle, offset) = match v {
            Val::Algebra(a) => match &**a {
                Algebra::Layout(l) => (l.clone(), None, Int::ZERO),
                Algebra::Composed(c) => (c.layout.clone(), Some(c.swizzle), c.offset.clone()),
                other => {
                    let message = format!("a tensor's type takes extents or a layout, this is {}", other.describe());
                    return self.error(codes::TENSOR_LAYOUT, at, message);
                }
            },
            _ => {
                let d = Diagnostic::error(codes::TENSOR_LAYOUT, at, "a shape in a tensor's type needs strides")
                    .with_label("a tuple of extents")
                    .with_help(
                        "write the strides, `T[(A, B) : (B, 1)]`; without parentheses a tensor is row-major: `T[A, B]`",
                    );
                return self.report(d);
            }
        };
        if layout.has_basis() {
            let d = Diagnostic::error(codes::TENSOR_LAYOUT, at, "the strides of a tensor are numbers of elements")
                .with_label(format!("{layout} gives coordinates"));
            return self.report(d);
        }
        Ok(Some(ArgLayout { layout, swizzle, offset }))
    }

    /// What is wrong with a layout whatever the launch brings.
    pub(crate) fn check_layout(
        &mut self,
        l: &ArgLayout,
        tensor: (&str, DType, TensorDir, Span),
    ) -> ElabResult<Option<Storage>> {
        let below = |n: &Int| n.bounds().1.is_some_and(|hi| hi < 0);
        for (k, mode) in l.layout.modes().iter().enumerate() {
            if let Some((_, d)) = mode.leaves().iter().find(|(_, d)| below(&d.scale)) {
                let d = negative(tensor.0, tensor.3, &format!("mode {k} has the stride {d}"));
                return self.report(d.with_note(format!("the layout is {l}")));
            }
        }
        if !l.layout.is_static() || l.offset.as_const().is_none() {
            return Ok(None);
        }
        match l.storage_within(tensor, STEPS, &mut |_| None) {
            Ok(s) => Ok(Some(s)),
            Err(d) => self.report(*d),
        }
    }

    /// The window of all of a tensor that is stored so, and the number of elements of its buffer.
    pub(crate) fn stored_window(
        &mut self,
        l: &ArgLayout,
        known: Option<&Storage>,
        span: Span,
    ) -> ElabResult<(WindowMap, Value)> {
        let mut modes = Vec::new();
        for m in l.layout.modes() {
            let tree = self.stored_tree(&m, span);
            let extent = self.span_of(&tree, span);
            let cap = self.const_index(extent).and_then(|n| u32::try_from(n).ok());
            modes.push(WindowMode { extent, cap, tree, skip: None });
        }
        let offset = self.value_of(&l.offset, span);
        let window = WindowMap::new(vec![Quantity::Offset], vec![offset], modes);
        let length = match known {
            Some(s) => {
                let n = i64::try_from(s.len()).map_err(|_| ErrorReported)?;
                self.idx(n)
            }
            None => self.buffer_length(&window, l.swizzle, span),
        };
        Ok((window, length))
    }

    fn stored_tree(&mut self, l: &Layout, span: Span) -> Tuple<Leaf> {
        if let (Tuple::Leaf(n), Tuple::Leaf(Stride { scale, .. })) = (l.shape(), l.stride()) {
            let extent = self.value_of(n, span);
            self.facts.ge_const(extent, 0);
            return Tuple::Leaf(Leaf { extent, by: vec![self.value_of(scale, span)] });
        }
        Tuple::Node(l.modes().iter().map(|m| self.stored_tree(m, span)).collect())
    }

    /// `1 + start + sum (extent - 1) * stride`, whole blocks of a swizzle; nothing for a tensor without elements.
    fn buffer_length(&mut self, w: &WindowMap, swizzle: Option<Swizzle>, span: Span) -> Value {
        let one = self.idx(1);
        let mut end = self.bin(BinOp::Add, w.starts[0], one, span);
        let mut some = one;
        for l in w.leaves().into_iter().cloned().collect::<Vec<_>>() {
            let last = self.bin(BinOp::Sub, l.extent, one, span);
            let far = self.bin(BinOp::Mul, last, l.by[0], span);
            end = self.bin(BinOp::Add, end, far, span);
            let any = self.bin(BinOp::Min, l.extent, one, span);
            some = self.bin(BinOp::Mul, some, any, span);
        }
        if let Some(block) = swizzle.map(Swizzle::block).filter(|b| *b > 1) {
            let (block, below) = (self.idx(block), self.idx(block - 1));
            let up = self.bin(BinOp::Add, end, below, span);
            let blocks = self.bin(BinOp::Div, up, block, span);
            end = self.bin(BinOp::Mul, blocks, block, span);
        }
        self.bin(BinOp::Mul, end, some, span)
    }

    /// An operand of what is done to windows: a tensor without modes is one too, and not yet its element.
    pub(crate) fn operand_value(&mut self, e: &Expr) -> ElabResult<Val> {
        let v = self.place(e, None)?;
        match (&v, &*e.kind) {
            (Val::View(_), ExprKind::Name(_) | ExprKind::Call(..)) => Ok(v),
            _ => self.element(v, e.span),
        }
    }

    /// The view of all of a row-major tensor.
    pub fn whole(&mut self, tensor: TensorId, dtype: DType, shape: &[Value], span: Span) -> View {
        let zero = self.idx(0);
        let mut stride = self.idx(1);
        let mut modes = Vec::new();
        for v in shape.iter().rev() {
            let tree = Tuple::Leaf(Leaf { extent: *v, by: vec![stride] });
            modes.push(WindowMode { extent: *v, cap: None, tree, skip: None });
            stride = self.bin(BinOp::Mul, stride, *v, span);
        }
        modes.reverse();
        let window = WindowMap::new(vec![Quantity::Offset], vec![zero], modes);
        let view = View { tensor, dtype, elem: Elem::Whole(dtype), swizzle: None, window };
        self.declared.insert(tensor, view.clone());
        view
    }

    /// Whether it is a tensor as it was declared, index for index.
    pub fn is_whole(&self, view: &View) -> bool {
        self.declared.get(&view.tensor) == Some(view)
    }

    /// Modes of a tensor as it was declared.
    pub fn declared_rank(&self, tensor: TensorId) -> usize {
        self.declared.get(&tensor).map_or(0, |v| v.modes.len())
    }

    /// Whether the buffer holds the array in C order.
    pub fn is_row_major(&self, tensor: TensorId) -> bool {
        let shape = &self.b.kernel().tensors[tensor].shape;
        self.declared
            .get(&tensor)
            .is_some_and(|v| v.modes.len() == shape.len() && v.modes.iter().zip(shape).all(|(m, n)| m.extent == *n))
    }
}

//! Windows of tensors.

use super::{Res, Writer, unsaid};
use crate::lexer::Word;
use crate::types::{Extent, Type, element_word};
use ptoc_ir::analysis::poly::Poly;
use ptoc_ir::tile::{TensorId, Value, ViewRef};

/// A part of a view: a value and its type.
pub(super) type Part = (Word, Type);

impl Writer<'_> {
    fn element(&self, tensor: TensorId) -> Word {
        Word::new_static(element_word(self.kernel.tensors[tensor].dtype).unwrap_or("i8"))
    }

    /// A window as an operand.
    pub(super) fn view(&mut self, view: &ViewRef) -> Res<Part> {
        match self.within(view) {
            Some((offsets, sizes)) => {
                let whole = self.whole(view.tensor)?;
                let rank = offsets.len();
                let mut names = Vec::with_capacity(rank);
                for offset in &offsets {
                    names.push(self.sum(offset)?);
                }
                self.part(view.tensor, whole, rank, names, &sizes)
            }
            None => self.own_view(view),
        }
    }

    /// First index and extent of each of the tensor's modes, if the window's strides are those of the tensor.
    #[allow(clippy::type_complexity, reason = "a pair of lists")]
    fn within(&mut self, view: &ViewRef) -> Option<(Vec<Poly>, Vec<Option<Value>>)> {
        let kernel = self.kernel;
        let tensor = &kernel.tensors[view.tensor];
        if tensor.stored.is_some() || tensor.shape.len() > 5 || tensor.shape.is_empty() {
            return None;
        }
        let strides = self.strides(&tensor.shape)?;
        let rank = strides.len();
        let mut sizes: Vec<Option<Value>> = vec![None; rank];
        let mut free = rank;
        for (n, (extent, stride)) in view.shape.iter().zip(&view.strides).enumerate().rev() {
            let stride = self.poly(*stride)?;
            let one = self.defs.number(*extent) == Some(1);
            if one && n >= free {
                // A row or a column of what has fewer modes.
                continue;
            }
            match (0..free).rev().find(|k| strides[*k] == stride) {
                Some(k) => {
                    sizes[k] = Some(*extent);
                    free = k;
                }
                // One index, whatever its stride.
                None if one => {}
                None => return None,
            }
        }
        let mut rest = self.poly(view.offset)?;
        let mut offsets = Vec::with_capacity(rank);
        for stride in &strides {
            let divided = |term: &(Vec<Value>, i64)| Poly::sum_of(vec![term.clone()])?.divided(stride);
            let mut own = Poly::constant(0);
            let mut left = Vec::new();
            for term in rest.terms() {
                match divided(term) {
                    Some(quotient) => own = own.plus(&quotient, 1)?,
                    None => left.push(term.clone()),
                }
            }
            offsets.push(own);
            rest = Poly::sum_of(left)?;
        }
        // A mode at 0 in front of a window may be part of one that runs over both.
        let first = sizes.iter().position(Option::is_some).unwrap_or(rank);
        let grouped = (first..rank).any(|k| {
            sizes[k].is_none() && offsets[k].number() == Some(0) && self.defs.number(tensor.shape[k]) != Some(1)
        });
        (rest.number() == Some(0) && !grouped).then_some((offsets, sizes))
    }

    /// Strides of an array that fills its elements row by row; each has to be one product.
    fn strides(&mut self, shape: &[Value]) -> Option<Vec<Poly>> {
        let mut strides = vec![Poly::constant(1)];
        for extent in shape[1..].iter().rev() {
            let next = self.poly(*extent)?.times(strides.last()?)?;
            if next.terms().len() != 1 {
                return None;
            }
            strides.push(next);
        }
        strides.reverse();
        Some(strides)
    }

    /// The view of a whole tensor, at the beginning of the function.
    fn whole(&mut self, tensor: TensorId) -> Res<Word> {
        if let Some(view) = self.views.get(&tensor) {
            return Ok(view.clone());
        }
        let kernel = self.kernel;
        let shape = &kernel.tensors[tensor].shape;
        let Some(strides) = self.strides(shape) else {
            return unsaid(self.span, format!("the strides of `{}`", kernel.tensors[tensor].name));
        };
        // Only the outermost block is open for it.
        let (regions, visible) = (self.regions.split_off(1), self.visible.split_off(1));
        let made = self.at(kernel.tensors[tensor].span, |w| {
            let extents = shape.iter().map(|v| w.value(*v)).collect::<Res<Vec<Word>>>()?;
            let strides = strides.iter().map(|s| w.sum(s)).collect::<Res<Vec<Word>>>()?;
            w.make_view(tensor, w.tensors[&tensor].clone(), extents, strides)
        });
        self.regions.extend(regions);
        self.visible.extend(visible);
        let view = made?;
        self.views.insert(tensor, view.clone());
        Ok(view)
    }

    fn make_view(&mut self, tensor: TensorId, ptr: Word, shape: Vec<Word>, strides: Vec<Word>) -> Res<Word> {
        let rank = shape.len();
        let mut given = vec![("ptr", ptr, None)];
        given.extend(shape.into_iter().map(|v| ("shape", v, None)));
        given.extend(strides.into_iter().map(|v| ("strides", v, None)));
        let op = self.op("pto.make_tensor_view", given);
        let name = format!("{}_view", self.kernel.tensors[tensor].name);
        let name = self.names.give(&name);
        let ty = Type::TensorView(vec![None; rank], self.element(tensor));
        Ok(self.define(op, name, Some(ty)))
    }

    /// `sizes` has `None` for one index.
    fn part(&mut self, tensor: TensorId, of: Word, rank: usize, at: Vec<Word>, sizes: &[Option<Value>]) -> Res<Part> {
        let element = self.element(tensor);
        let mut given = vec![("source", of, Some(Type::TensorView(vec![None; rank], element.clone())))];
        given.extend(at.into_iter().map(|v| ("offsets", v, None)));
        let mut extents: Vec<Extent> = Vec::with_capacity(rank);
        for size in sizes {
            let (name, extent) = match size {
                Some(v) => (self.value(*v)?, self.defs.number(*v)),
                None => (self.index(1), Some(1)),
            };
            given.push(("sizes", name, None));
            extents.push(extent);
        }
        let ty = Type::PartitionView(extents, element);
        let op = self.op("pto.partition_view", given);
        let name = self.names.number();
        Ok((self.define(op, name, Some(ty.clone())), ty))
    }

    /// A view that begins where the window does.
    fn own_view(&mut self, view: &ViewRef) -> Res<Part> {
        let element = self.element(view.tensor);
        let ptr = Type::Ptr(element);
        let mut from = self.tensors[&view.tensor].clone();
        if self.defs.number(view.offset) != Some(0) {
            let offset = self.value(view.offset)?;
            let op = self.op("pto.addptr", vec![("ptr", from, Some(ptr.clone())), ("offset", offset, None)]);
            let name = self.names.number();
            from = self.define(op, name, Some(ptr));
        }
        let shape = view.shape.iter().map(|v| self.value(*v)).collect::<Res<Vec<Word>>>()?;
        let strides = view.strides.iter().map(|v| self.value(*v)).collect::<Res<Vec<Word>>>()?;
        let rank = shape.len();
        if rank == 0 || rank > 5 {
            return unsaid(self.span, format!("a view of {rank} modes"));
        }
        let whole = self.make_view(view.tensor, from, shape, strides)?;
        let zero = self.index(0);
        let sizes: Vec<Option<Value>> = view.shape.iter().map(|v| Some(*v)).collect();
        self.part(view.tensor, whole, rank, vec![zero; rank], &sizes)
    }

    /// One element: `load_scalar`, or `store_scalar` of a value.
    pub(super) fn element_access(
        &mut self,
        tensor: TensorId,
        offset: Value,
        dst: Option<Value>,
        value: Option<Value>,
    ) -> Res<()> {
        let dtype = self.kernel.tensors[tensor].dtype;
        if dtype.is_int() && !dtype.is_signed_int() {
            return unsaid(self.span, format!("an element of {dtype}: numbers of the text have no sign"));
        }
        let ptr = ("ptr", self.tensors[&tensor].clone(), Some(Type::Ptr(self.element(tensor))));
        let at = ("offset", self.value(offset)?, None);
        if let Some(dst) = dst {
            let op = self.op("pto.load_scalar", vec![ptr, at]);
            let (name, ty) = (self.name_of(dst), self.ty(dst, self.span)?);
            let name = self.define(op, name, Some(ty));
            self.known(dst, name);
            return Ok(());
        }
        let Some(value) = value else { return Ok(()) };
        let ty = Some(self.ty(value, self.span)?);
        let op = self.op("pto.store_scalar", vec![("value", self.value(value)?, ty), ptr, at]);
        self.push(op);
        Ok(())
    }
}

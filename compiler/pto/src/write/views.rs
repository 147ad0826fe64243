//! Windows of tensors.

use super::{Res, Writer, unsaid};
use crate::attr::{AttrValue, Spelling};
use crate::lexer::Word;
use crate::types::{Extent, Type, element_word};
use ptoc_ir::analysis::poly::Poly;
use ptoc_ir::tile::{TensorId, Value, ViewRef};
use std::ops::Range;

/// A part of a view: a value and its type.
pub(super) type Part = (Word, Type);

/// The modes of a view of a whole tensor: each is one mode of the tensor, several that lie in a row, or none.
pub(super) type Way = Vec<Range<usize>>;

/// Most modes of a view.
const MODES: usize = 5;

/// A part of a view of a whole tensor.
struct Window {
    way: Way,
    offsets: Vec<Poly>,
    /// `None` is one index.
    sizes: Vec<Option<Value>>,
}

/// The modes, those first whose strides are multiples of others: of columns the last ones.
fn outermost_first(strides: &[Poly]) -> Vec<usize> {
    let mut left: Vec<usize> = (0..strides.len()).collect();
    let mut order = Vec::with_capacity(left.len());
    while !left.is_empty() {
        let inner =
            |k: &usize| left.iter().any(|o| strides[*o] != strides[*k] && strides[*o].divided(&strides[*k]).is_some());
        let at = left.iter().position(|k| !inner(k)).unwrap_or_default();
        order.push(left.remove(at));
    }
    order
}

/// An offset as an index of each mode; `None` if something is left over.
fn taken_apart(offset: &Poly, strides: &[Poly]) -> Option<Vec<Poly>> {
    let mut rest = offset.clone();
    let mut offsets = vec![Poly::constant(0); strides.len()];
    for mode in outermost_first(strides) {
        let stride = &strides[mode];
        let divided = |term: &(Vec<Value>, i64)| Poly::sum_of(vec![term.clone()])?.divided(stride);
        let mut own = Poly::constant(0);
        let mut left = Vec::new();
        for term in rest.terms() {
            match divided(term) {
                Some(quotient) => own = own.plus(&quotient, 1)?,
                None => left.push(term.clone()),
            }
        }
        offsets[mode] = own;
        rest = Poly::sum_of(left)?;
    }
    (rest.number() == Some(0)).then_some(offsets)
}

impl<'k> Writer<'k> {
    fn element(&self, tensor: TensorId) -> Word {
        Word::new_static(element_word(self.kernel.tensors[tensor].dtype).unwrap_or("i8"))
    }

    /// A window as an operand.
    pub(super) fn view(&mut self, view: &ViewRef) -> Res<Part> {
        match self.within(view)? {
            Some(window) => {
                let (whole, rank) = (self.whole(view.tensor, window.way)?, window.offsets.len());
                let mut names = Vec::with_capacity(rank);
                for offset in &window.offsets {
                    names.push(self.sum(offset)?);
                }
                self.part(view.tensor, whole, rank, names, &window.sizes)
            }
            None => self.own_view(view),
        }
    }

    /// A window that is moved to or from a tile, whose rows are the window's columns if `turned`.
    pub(super) fn window(&mut self, view: &ViewRef, turned: bool) -> Res<Part> {
        let mut view = view.clone();
        if turned {
            view.shape.reverse();
            view.strides.reverse();
        }
        let one = |v: &Value| self.defs.number(*v) == Some(1);
        if let ([rows, cols], [row, col]) = (&view.shape[..], &view.strides[..])
            && !one(cols)
            && !one(col)
            && (one(rows) || !one(row))
        {
            return unsaid(
                self.span,
                "a window whose elements are one behind the other neither in rows nor in columns",
            );
        }
        self.view(&view)
    }

    /// First index and extent of each mode of a view of the whole tensor, if the window's strides are those of the
    /// tensor.
    fn within(&mut self, view: &ViewRef) -> Res<Option<Window>> {
        let kernel = self.kernel;
        let stored = kernel.tensors[view.tensor].stored.is_some();
        let modes = self.modes(view.tensor).filter(|(_, strides)| strides.iter().all(|s| s.terms().len() == 1));
        let Some((shape, strides)) = modes else { return Ok(None) };
        // Which of the tensor's modes a mode of the window goes along.
        let mut along = Vec::with_capacity(view.shape.len());
        let mut free: Vec<bool> = vec![true; strides.len()];
        for (extent, stride) in view.shape.iter().zip(&view.strides).rev() {
            if self.defs.number(*extent) == Some(1) {
                continue;
            }
            let Some(stride) = self.poly(*stride) else { return Ok(None) };
            // Of modes with one stride those that have one index are none to go along.
            let fits = |k: &usize| free[*k] && strides[*k] == stride;
            let several = |k: &usize| self.defs.number(shape[*k]) != Some(1);
            let mut last = (0..strides.len()).rev();
            let Some(k) = last.clone().find(|k| fits(k) && several(k)).or_else(|| last.find(fits)) else {
                return Ok(None);
            };
            free[k] = false;
            along.push((k, *extent));
        }
        along.reverse();
        let Some(mut offsets) = self.poly(view.offset).and_then(|offset| taken_apart(&offset, &strides)) else {
            return Ok(None);
        };
        // Modes at 0 in front of a window may be part of one that runs over both.
        let mut groups = Vec::with_capacity(along.len());
        for (k, extent) in &along {
            let whole = offsets[*k].number() == Some(0) && self.poly(*extent) == self.poly(shape[*k]);
            let mut first = *k;
            while !whole
                && !stored
                && first > 0
                && free[first - 1]
                && offsets[first - 1].number() == Some(0)
                && self.defs.number(shape[first - 1]) != Some(1)
            {
                first -= 1;
                free[first] = false;
            }
            groups.push((first..k + 1, Some(*extent)));
        }
        let column = view.shape.len() > 1 && view.shape.last().is_some_and(|n| self.defs.number(*n) == Some(1));
        let rows_and_columns = groups.clone();
        groups.extend((0..strides.len()).filter(|k| free[*k]).map(|k| (k..k + 1, None)));
        groups.sort_by_key(|(modes, _)| modes.start);
        // A tile's columns are the last mode, its rows those in front of it.
        let last = groups.last().and_then(|(_, extent)| *extent);
        let in_order = groups.iter().filter(|(_, extent)| extent.is_some()).eq(&rows_and_columns);
        let fits = match along.last() {
            Some((_, extent)) if !column => last == Some(*extent),
            Some(_) => last.is_none(),
            None => true,
        };
        if !in_order || !fits {
            groups.retain(|(_, extent)| extent.is_none());
            groups.extend(rows_and_columns);
        }
        let mut way: Vec<Range<usize>> = groups.iter().map(|(modes, _)| modes.clone()).collect();
        let mut sizes: Vec<Option<Value>> = groups.iter().map(|(_, extent)| *extent).collect();
        offsets = way.iter().map(|modes| offsets[modes.end - 1].clone()).collect();
        if column && (!in_order || !fits) {
            // The one column of a tile.
            way.push(strides.len()..strides.len());
            sizes.push(None);
            offsets.push(Poly::constant(0));
        }
        Ok((way.len() <= MODES).then_some(Window { way, offsets, sizes }))
    }

    /// Strides of an array that fills its elements row by row.
    fn strides(&mut self, shape: &[Value]) -> Option<Vec<Poly>> {
        let mut strides = vec![Poly::constant(1)];
        for extent in shape[1..].iter().rev() {
            let next = self.poly(*extent)?.times(strides.last()?)?;
            strides.push(next);
        }
        strides.reverse();
        Some(strides)
    }

    /// The view of a whole tensor whose modes are these of the tensor, at the beginning of the function.
    fn whole(&mut self, tensor: TensorId, way: Way) -> Res<Word> {
        let key = (tensor, way);
        if let Some(view) = self.views.get(&key) {
            return Ok(view.clone());
        }
        let view = self.make_whole(tensor, &key.1)?;
        self.views.insert(key, view.clone());
        Ok(view)
    }

    fn make_whole(&mut self, tensor: TensorId, way: &[Range<usize>]) -> Res<Word> {
        let kernel = self.kernel;
        let modes = self.modes(tensor);
        let polys = modes.and_then(|(shape, strides)| {
            let extents: Option<Vec<Poly>> = shape.iter().map(|n| self.poly(*n)).collect();
            Some((shape, extents?, strides))
        });
        let Some((shape, extents, strides)) = polys else {
            return unsaid(self.span, format!("the strides of `{}`", kernel.tensors[tensor].name));
        };
        // Only the outermost block is open for it.
        let (regions, visible) = (self.regions.split_off(1), self.visible.split_off(1));
        let made = self.at(kernel.tensors[tensor].span, |w| {
            let mut given = (Vec::new(), Vec::new());
            for modes in way {
                let mut all = extents[modes.clone()].iter();
                let extent = all.try_fold(Poly::constant(1), |n, extent| n.times(extent));
                let stride = modes.end.checked_sub(1).filter(|_| !modes.is_empty()).map(|k| strides[k].clone());
                match extent {
                    // An extent as the kernel has it, rather than what it is the sum of.
                    _ if modes.len() == 1 => given.0.push(w.value(shape[modes.start])?),
                    Some(extent) => given.0.push(w.sum(&extent)?),
                    None => return unsaid(w.span, format!("the strides of `{}`", kernel.tensors[tensor].name)),
                }
                given.1.push(w.sum(&stride.unwrap_or(Poly::constant(1)))?);
            }
            w.make_view(tensor, w.tensors[&tensor].clone(), given.0, given.1)
        });
        self.regions.extend(regions);
        self.visible.extend(visible);
        made
    }

    /// Where the views that are used do not say what an array is, one that nothing uses says it.
    pub(super) fn declare(&mut self) -> Res<()> {
        let kernel = self.kernel;
        let end = self.regions[0].len();
        for (tensor, _) in &kernel.tensors {
            let Some((extents, _)) = self.modes(tensor) else { continue };
            let own: Way = (0..extents.len()).map(|k| k..k + 1).collect();
            if !self.views.contains_key(&(tensor, own.clone())) || self.in_pieces.contains(&tensor) {
                let view = self.make_whole(tensor, &own)?;
                self.declared.insert(view);
            }
        }
        // The loop over all blocks is the last statement.
        let ops = &mut self.regions[0];
        if !kernel.grid.is_empty() && end > 0 {
            let looped = ops.remove(end - 1);
            ops.push(looped);
        }
        Ok(())
    }

    /// Extents of an array, and how far its elements are apart; `None` if a view does not say that.
    fn modes(&mut self, tensor: TensorId) -> Option<(&'k [Value], Vec<Poly>)> {
        let kernel = self.kernel;
        let data = &kernel.tensors[tensor];
        let (extents, strides) = match &data.stored {
            None => (&data.shape[..], self.strides(&data.shape)?),
            Some(stored) => {
                if stored.swizzle.is_some() || self.defs.number(stored.at.start) != Some(0) {
                    return None;
                }
                let strides = stored.at.strides.iter().map(|v| self.poly(*v)).collect::<Option<Vec<Poly>>>()?;
                (&stored.extents[..], strides)
            }
        };
        let fits = (1..=MODES).contains(&extents.len()) && extents.iter().all(|n| self.values.contains_key(n));
        fits.then_some((extents, strides))
    }

    fn make_view(&mut self, tensor: TensorId, ptr: Word, shape: Vec<Word>, strides: Vec<Word>) -> Res<Word> {
        let rank = shape.len();
        let is_one = |w: &Self, name: &Word| w.constant_value(name) == Some(1);
        let columns = rank > 1 && is_one(self, &strides[rank - 2]) && !is_one(self, &strides[rank - 1]);
        let mut given = vec![("ptr", ptr, None)];
        given.extend(shape.into_iter().map(|v| ("shape", v, None)));
        given.extend(strides.into_iter().map(|v| ("strides", v, None)));
        let mut op = self.op("pto.make_tensor_view", given);
        if columns {
            // PTOAS finds this by itself where all strides are constants.
            let layout = AttrValue::Enum(Spelling::Dotted, Word::new_static("layout"), Word::new_static("dn"));
            op.attrs.push(self.attr("layout", layout));
        }
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
        self.in_pieces.insert(view.tensor);
        let ptr = Type::Ptr(self.element(view.tensor));
        let offset = self.value(view.offset)?;
        let given = vec![("ptr", self.tensors[&view.tensor].clone(), Some(ptr.clone())), ("offset", offset, None)];
        let (op, name) = (self.op("pto.addptr", given), self.names.number());
        let from = self.define(op, name, Some(ptr));
        let shape = view.shape.iter().map(|v| self.value(*v)).collect::<Res<Vec<Word>>>()?;
        let strides = view.strides.iter().map(|v| self.value(*v)).collect::<Res<Vec<Word>>>()?;
        let rank = shape.len();
        if rank == 0 || rank > MODES {
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
        self.in_pieces.insert(tensor);
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

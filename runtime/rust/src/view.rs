//! Views: slices with a shape.

use crate::element::{Element, start};
use ptoc_driver::library::ArrayView;
use ptoc_tensor::DType;
use std::marker::PhantomData;

/// A slice that a kernel reads, as an array.
#[derive(Clone, Debug)]
pub struct View<'a> {
    shaped: Shaped,
    slice: PhantomData<&'a [u8]>,
}

/// A slice that a kernel writes, as an array.
#[derive(Debug)]
pub struct ViewMut<'a> {
    shaped: Shaped,
    slice: PhantomData<&'a mut [u8]>,
}

/// A slice's memory, and how an array lies in it. Whether it does is found out when the array is bound to an argument,
/// whose name is then known.
#[derive(Clone, Debug)]
struct Shaped {
    dtype: DType,
    data: *mut u8,
    /// Elements of the slice.
    len: usize,
    shape: Vec<usize>,
    strides: Option<Vec<isize>>,
    read_only: bool,
}

// SAFETY: it is borrowed memory, of elements that any thread may use; the views' lifetimes say how.
unsafe impl Send for Shaped {}
// SAFETY: as above.
unsafe impl Sync for Shaped {}

impl<'a> View<'a> {
    /// All of a slice, in C order: the last dimension fastest.
    pub fn new<T: Element>(slice: &'a [T], shape: &[usize]) -> View<'a> {
        View::made(slice, shape, None)
    }

    /// Elements of a slice with distances of neighbours in each dimension, counted in elements from its first one.
    pub fn strided<T: Element>(slice: &'a [T], shape: &[usize], strides: &[isize]) -> View<'a> {
        View::made(slice, shape, Some(strides))
    }

    fn made<T: Element>(slice: &'a [T], shape: &[usize], strides: Option<&[isize]>) -> View<'a> {
        let data = start(slice).cast_mut();
        View { shaped: Shaped::new(T::DTYPE, (data, slice.len()), shape, strides, true), slice: PhantomData }
    }

    /// The array, if it lies inside of the slice.
    pub(crate) fn array(self) -> Result<ArrayView, String> {
        self.shaped.array()
    }
}

impl<'a> ViewMut<'a> {
    /// All of a slice, in C order: the last dimension fastest.
    pub fn new<T: Element>(slice: &'a mut [T], shape: &[usize]) -> ViewMut<'a> {
        ViewMut::made(slice, shape, None)
    }

    /// Elements of a slice with distances of neighbours in each dimension, counted in elements from its first one. What
    /// is between them is not touched.
    pub fn strided<T: Element>(slice: &'a mut [T], shape: &[usize], strides: &[isize]) -> ViewMut<'a> {
        ViewMut::made(slice, shape, Some(strides))
    }

    fn made<T: Element>(slice: &'a mut [T], shape: &[usize], strides: Option<&[isize]>) -> ViewMut<'a> {
        let data = slice.as_mut_ptr().cast();
        ViewMut { shaped: Shaped::new(T::DTYPE, (data, slice.len()), shape, strides, false), slice: PhantomData }
    }

    /// The array, if it lies inside of the slice.
    pub(crate) fn array(self) -> Result<ArrayView, String> {
        self.shaped.array()
    }
}

impl Shaped {
    fn new(
        dtype: DType,
        (data, len): (*mut u8, usize),
        shape: &[usize],
        strides: Option<&[isize]>,
        read_only: bool,
    ) -> Shaped {
        Shaped { dtype, data, len, shape: shape.to_vec(), strides: strides.map(<[isize]>::to_vec), read_only }
    }

    fn array(self) -> Result<ArrayView, String> {
        match &self.strides {
            None => self.check_count()?,
            Some(strides) => self.check_reach(strides)?,
        }
        // Of an array without elements distances mean nothing.
        let strides = self.strides.filter(|_| !self.shape.contains(&0));
        Ok(ArrayView::new(self.dtype, self.shape, strides.as_deref(), self.data, self.read_only))
    }

    /// The array is the whole slice.
    fn check_count(&self) -> Result<(), String> {
        let empty = self.shape.contains(&0);
        let count = if empty { Some(0) } else { self.shape.iter().try_fold(1usize, |n, &e| n.checked_mul(e)) };
        match count {
            Some(count) if count == self.len => Ok(()),
            count => {
                let count = count.map_or_else(|| "too many".to_owned(), |n| n.to_string());
                Err(format!("has {} elements, and {:?} are {count}", self.len, self.shape))
            }
        }
    }

    /// Every element is inside of the slice.
    fn check_reach(&self, strides: &[isize]) -> Result<(), String> {
        if strides.len() != self.shape.len() {
            return Err(format!("has {} strides for {} dimensions", strides.len(), self.shape.len()));
        }
        if self.shape.contains(&0) {
            return Ok(());
        }
        let (mut low, mut high) = (0i128, 0i128);
        for (&extent, &stride) in self.shape.iter().zip(strides) {
            // At most 2^127 for one dimension: what does not fit is outside of any slice.
            let reach = (extent as i128 - 1).saturating_mul(stride as i128);
            if reach < 0 { low = low.saturating_add(reach) } else { high = high.saturating_add(reach) }
        }
        match low < 0 || high >= self.len as i128 {
            true => Err(format!(
                "has {} elements, and {:?} with the strides {strides:?} reaches from {low} to {high}",
                self.len, self.shape
            )),
            false => Ok(()),
        }
    }
}

impl<'a, T: Element> From<&'a [T]> for View<'a> {
    fn from(slice: &'a [T]) -> View<'a> {
        View::new(slice, &[slice.len()])
    }
}

impl<'a, T: Element> From<&'a Vec<T>> for View<'a> {
    fn from(slice: &'a Vec<T>) -> View<'a> {
        slice.as_slice().into()
    }
}

impl<'a, T: Element, const N: usize> From<&'a [T; N]> for View<'a> {
    fn from(slice: &'a [T; N]) -> View<'a> {
        slice.as_slice().into()
    }
}

impl<'a, T: Element> From<&'a mut [T]> for ViewMut<'a> {
    fn from(slice: &'a mut [T]) -> ViewMut<'a> {
        let len = slice.len();
        ViewMut::new(slice, &[len])
    }
}

impl<'a, T: Element> From<&'a mut Vec<T>> for ViewMut<'a> {
    fn from(slice: &'a mut Vec<T>) -> ViewMut<'a> {
        slice.as_mut_slice().into()
    }
}

impl<'a, T: Element, const N: usize> From<&'a mut [T; N]> for ViewMut<'a> {
    fn from(slice: &'a mut [T; N]) -> ViewMut<'a> {
        slice.as_mut_slice().into()
    }
}

//! Arrays and scalars of a call, and what has to hold of memory before a kernel may use it.

use super::signature::{Parameter, ParameterKind, Signature};
use ptoc_diagnostics::{Diagnostic, codes};
use ptoc_ir::tile::Ty;
use ptoc_layout::Storage;
use ptoc_syntax::ast::Dir;
use ptoc_tensor::{DType, scalar};
use std::fmt;

/// Whose memory an array is in.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Device {
    /// The host's.
    #[default]
    Host,
    /// That of the CUDA device of this number.
    Cuda(i32),
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Device::Host => f.write_str("the host"),
            Device::Cuda(n) => write!(f, "cuda:{n}"),
        }
    }
}

/// An array in the caller's memory.
#[derive(Clone, PartialEq, Debug)]
pub struct ArrayView {
    /// Element type.
    pub dtype: DType,
    /// Extents, slowest first.
    pub shape: Vec<usize>,
    /// Distances of neighbours in elements, where the elements do not lie side by side in C order.
    pub strides: Option<Vec<isize>>,
    /// The first element; an address of the device's.
    pub data: *mut u8,
    /// Where it is.
    pub device: Device,
    /// It must not be written.
    pub read_only: bool,
}

// SAFETY: the address is only used by `Specialization::run`, whose caller promises that the memory may be.
unsafe impl Send for ArrayView {}
// SAFETY: as above.
unsafe impl Sync for ArrayView {}

impl ArrayView {
    /// An array whose strides are given in elements; those of C order are dropped.
    pub fn new(dtype: DType, shape: Vec<usize>, strides: Option<&[isize]>, data: *mut u8, read_only: bool) -> Self {
        let strides = strides.filter(|s| !in_c_order(&shape, s)).map(<[isize]>::to_vec);
        ArrayView { dtype, shape, strides, data, device: Device::Host, read_only }
    }

    /// The same in the memory of a device.
    pub fn on(self, device: Device) -> Self {
        ArrayView { device, ..self }
    }

    /// Whether it has no elements.
    pub fn is_empty(&self) -> bool {
        self.shape.contains(&0)
    }

    /// First and last-but-one byte of its memory.
    fn bytes(&self) -> (usize, usize) {
        let (start, size) = (self.data.addr(), self.dtype.size());
        if self.is_empty() {
            return (start, start);
        }
        let Some(strides) = &self.strides else {
            return (start, start + self.shape.iter().product::<usize>() * size);
        };
        let (mut low, mut high) = (0isize, 0isize);
        for (&n, &stride) in self.shape.iter().zip(strides) {
            let reach = (n as isize - 1) * stride;
            if reach < 0 { low += reach } else { high += reach }
        }
        let at = |elements: isize| start.wrapping_add_signed(elements * size as isize);
        (at(low), at(high) + size)
    }

    /// `f32[3, 4]`, with strides where they are not those of C order.
    fn describe(&self) -> String {
        let strides = self.strides.as_ref().map(|s| format!(" with the strides {s:?}")).unwrap_or_default();
        format!("{}{:?}{strides}", self.dtype, self.shape)
    }
}

/// Whether strides are those of C order, as far as they matter.
fn in_c_order(shape: &[usize], strides: &[isize]) -> bool {
    let mut expected = 1isize;
    for (&n, &stride) in shape.iter().zip(strides).rev() {
        if n != 1 && stride != expected {
            return shape.contains(&0);
        }
        expected = expected.wrapping_mul(n as isize);
    }
    true
}

/// The value of a scalar argument.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Scalar {
    /// A truth value.
    Bool(bool),
    /// A whole number, of 64 bits with a sign or without.
    Int(i128),
    /// Any other number.
    Float(f64),
}

macro_rules! scalars {
    ($($kind:ident: $($rust:ty),*;)*) => {
        $($(impl From<$rust> for Scalar {
            fn from(value: $rust) -> Scalar {
                Scalar::$kind(value.into())
            }
        })*)*
    };
}

scalars! {
    Bool: bool;
    Int: i8, u8, i16, u16, i32, u32, i64;
    Float: f32, f64;
}

impl Scalar {
    /// As an expression of the language.
    pub(crate) fn text(self) -> String {
        match self {
            Scalar::Bool(x) => x.to_string(),
            Scalar::Int(n) => n.to_string(),
            Scalar::Float(x) if x.is_nan() => "nan".into(),
            Scalar::Float(x) if x.is_infinite() => if x > 0.0 { "inf" } else { "-inf" }.into(),
            Scalar::Float(x) => format!("{x:?}"),
        }
    }

    /// The bits of a value of this type, rounded once; `None` if the type has no such value, also where a finite number
    /// would become infinite.
    pub(crate) fn bits(self, ty: Ty) -> Option<u64> {
        let finite = |bits: u64, dtype: DType| scalar::bits_to_f64(dtype, bits).is_finite();
        match (self, ty) {
            (Scalar::Int(n), Ty::Index) => i64::try_from(n).ok().map(|n| n as u64),
            (Scalar::Bool(x), Ty::D(DType::Bool)) => Some(u64::from(x)),
            (Scalar::Int(n), Ty::D(dtype)) if dtype.is_int() || dtype.is_float() => {
                scalar::fits(dtype, n).then(|| scalar::bits_from_i128(dtype, n))
            }
            (Scalar::Float(x), Ty::D(dtype)) if dtype.is_float() => {
                let bits = scalar::bits_from_f64(dtype, x);
                (finite(bits, dtype) || !x.is_finite()).then_some(bits)
            }
            _ => None,
        }
    }

    /// Numbers that no other value has. Whole numbers of 64 bits without a sign are a kind of their own.
    pub(super) fn key(self) -> [u64; 2] {
        match self {
            Scalar::Bool(x) => [1, u64::from(x)],
            Scalar::Int(n) if n > i128::from(i64::MAX) => [8, n as u64],
            Scalar::Int(n) => [2, n as u64],
            Scalar::Float(x) => [3, x.to_bits()],
        }
    }
}

/// An argument of a call.
#[derive(Clone, PartialEq, Debug)]
pub enum Argument {
    /// Of a tensor.
    Array(ArrayView),
    /// Of a scalar.
    Scalar(Scalar),
}

/// What a kernel is called with: for each parameter, in the order of its declaration, an argument, if one is given.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Call {
    /// The arguments.
    pub arguments: Vec<Option<Argument>>,
    /// The stream on which arrays of a device are worked on, as the driver's handle; 0 is the legacy default stream.
    pub stream: u64,
}

impl Call {
    /// A call without arguments yet.
    pub fn of(signature: &Signature) -> Call {
        Call { arguments: vec![None; signature.parameters.len()], stream: 0 }
    }

    /// Where the arrays are.
    ///
    /// # Errors
    /// They are on several devices.
    pub fn device(&self, signature: &Signature) -> Result<Device, Box<Diagnostic>> {
        let mut first: Option<(&Parameter, Device)> = None;
        for (parameter, argument) in signature.parameters.iter().zip(&self.arguments) {
            let Some(Argument::Array(array)) = argument else { continue };
            match first {
                None => first = Some((parameter, array.device)),
                Some((other, device)) if device != array.device => {
                    return Err(apart((other, device), (parameter, array.device)).into());
                }
                Some(_) => {}
            }
        }
        Ok(first.map_or(Device::Host, |(_, device)| device))
    }

    /// The array of parameter `n`.
    pub fn array(&self, n: usize) -> Option<&ArrayView> {
        match self.arguments.get(n)? {
            Some(Argument::Array(array)) => Some(array),
            _ => None,
        }
    }

    /// What code for this call depends on: equal calls may share it. Without `values` those of scalars that code as a
    /// rule does not depend on are left out.
    pub(super) fn key(&self, signature: &Signature, values: bool, key: &mut Vec<u64>) {
        key.clear();
        for (argument, parameter) in self.arguments.iter().zip(&signature.parameters) {
            match argument {
                None => key.push(0),
                Some(Argument::Scalar(_)) if !values && !parameter.in_where => key.push(16),
                Some(Argument::Scalar(scalar)) => key.extend(scalar.key()),
                Some(Argument::Array(array)) => {
                    let strided = u64::from(array.strides.is_some());
                    let on_device = u64::from(array.device != Device::Host);
                    key.push(
                        4 | strided << 8
                            | on_device << 9
                            | (array.dtype as u64) << 16
                            | (array.shape.len() as u64) << 32,
                    );
                    key.extend(array.shape.iter().map(|&n| n as u64));
                    key.extend(array.strides.iter().flatten().map(|&n| n as u64));
                }
            }
        }
    }

    /// Refuses memory that a kernel cannot be given: outputs that must not be written, elements that are not at a
    /// multiple of their size, and arrays that share bytes with an output.
    pub(super) fn check_memory(&self, signature: &Signature) -> Result<(), Box<Diagnostic>> {
        for (n, (parameter, argument)) in signature.parameters.iter().zip(&self.arguments).enumerate() {
            let Some(Argument::Array(array)) = argument else { continue };
            let unit = if array.device == Device::Host { array.dtype.size() } else { DEVICE_ALIGN };
            if array.data.addr() % unit != 0 && !array.is_empty() {
                return Err(misaligned(parameter, array, unit).into());
            }
            let ParameterKind::Tensor { dir, .. } = parameter.kind else { continue };
            if dir == Dir::In {
                continue;
            }
            if array.read_only {
                return Err(read_only(parameter).into());
            }
            let own = array.bytes();
            for (other, argument) in self.arguments.iter().enumerate() {
                let Some(Argument::Array(with)) = argument.as_ref().filter(|_| other != n) else { continue };
                let their = with.bytes();
                if own.0 < their.1 && their.0 < own.1 {
                    return Err(overlap(parameter, &signature.parameters[other], own, their).into());
                }
            }
        }
        Ok(())
    }
}

/// Bytes of the largest access of a device: code for it takes arrays to begin at a multiple of them.
const DEVICE_ALIGN: usize = 16;

fn misaligned(parameter: &Parameter, array: &ArrayView, unit: usize) -> Diagnostic {
    let name = &parameter.name;
    let message = format!("the array of `{name}` does not begin at a multiple of {unit} bytes");
    let label = match array.device {
        Device::Host => format!("elements of {} have {unit} bytes", array.dtype),
        Device::Cuda(_) => format!("kernels on a GPU move {unit} bytes at once"),
    };
    let help = match array.device {
        Device::Host => "pass a copy of it, which is aligned: `x.copy()`, `x.clone()`",
        Device::Cuda(_) => "pass a copy of it, which is aligned: `x.clone()`",
    };
    Diagnostic::error(codes::MISALIGNED_ARRAY, parameter.span, message).with_label(label).with_help(help)
}

fn apart(a: (&Parameter, Device), b: (&Parameter, Device)) -> Diagnostic {
    let message = format!("`{}` is on {}, and `{}` on {}", a.0.name, a.1, b.0.name, b.1);
    Diagnostic::error(codes::ARRAY_NOT_TAKEN, b.0.span, message)
        .with_label(format!("on {}", b.1))
        .with_secondary(a.0.span, format!("on {}", a.1))
        .with_help("bring all arrays of a call to one device: `x.to(y.device)`")
}

fn read_only(parameter: &Parameter) -> Diagnostic {
    let name = &parameter.name;
    Diagnostic::error(
        codes::READ_ONLY_ARRAY,
        parameter.span,
        format!("`{name}` is written, and its array is read-only"),
    )
    .with_label("an output")
    .with_help("pass an array that may be written, or leave it out: then a new one is returned")
}

fn overlap(parameter: &Parameter, with: &Parameter, own: (usize, usize), their: (usize, usize)) -> Diagnostic {
    let shared = own.1.min(their.1) - own.0.max(their.0);
    let (name, other) = (&parameter.name, &with.name);
    let message = format!("the arrays of `{name}` and `{other}` share {shared} bytes, and `{name}` is written");
    Diagnostic::error(codes::OVERLAPPING_ARRAYS, parameter.span, message)
        .with_label("this output")
        .with_secondary(with.span, "has bytes of it")
        .with_help("pass arrays that do not overlap; to work in place, declare one `inout` tensor")
}

/// Refuses an array whose elements do not lie as the kernel's code expects them: side by side in C order, or as the
/// layout of the parameter says.
pub(super) fn check_strides(
    parameter: &Parameter,
    array: &ArrayView,
    storage: Option<&Storage>,
) -> Result<(), Box<Diagnostic>> {
    let refuse = |wanted: &str, help: &str| -> Result<(), Box<Diagnostic>> {
        let message = format!("the elements of `{}` do not lie in memory as the kernel reads them", parameter.name);
        Err(Diagnostic::error(codes::ARRAY_STRIDES, parameter.declared_at, message)
            .with_label(format!("declared `{}`: {wanted}", parameter.declared))
            .with_note(format!("the array is {}", array.describe()))
            .with_note("it is not copied, since that would take longer than you may expect")
            .with_help(help)
            .into())
    };
    let Some(storage) = storage else {
        return match array.strides {
            None => Ok(()),
            Some(_) => refuse(
                "side by side, the last dimension fastest",
                "pass a copy that is contiguous; in Python `np.ascontiguousarray(x)`, `x.contiguous()`",
            ),
        };
    };
    if storage.size() == 0 {
        return Ok(());
    }
    let Some(wanted) = storage.strides() else {
        let help =
            "pass the array to a kernel that takes it in C order and lays it out, such as one of `std::relayout`";
        return refuse("no array in memory lies like that", help);
    };
    let c_order = || {
        let mut strides = vec![1isize; array.shape.len()];
        for n in (1..array.shape.len()).rev() {
            strides[n - 1] = strides[n] * array.shape[n] as isize;
        }
        strides
    };
    let have = array.strides.clone().unwrap_or_else(c_order);
    let same = |((&n, &have), &want): ((&usize, &isize), &u64)| n == 1 || have == want as isize;
    if array.shape.iter().zip(&have).zip(&wanted).all(same) {
        return Ok(());
    }
    let shown: Vec<String> = wanted.iter().map(u64::to_string).collect();
    refuse(
        &format!("the strides are [{}]", shown.join(", ")),
        "pass an array with these strides, in elements; in Python `x.T.copy().T` has contiguous columns",
    )
}

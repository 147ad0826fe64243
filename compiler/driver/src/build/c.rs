//! A kernel as a function of C: names, types and order of its parameters.

use super::entry_codes::{entry_codes, number};
use super::{BuildUnit, Request};
use ptoc_analysis::ArgDim;
use ptoc_cpu::object::{CheckText, Extent, Interface, Parameter, ParameterKind, ScalarClass};
use ptoc_diagnostics::{Diagnostic, codes};
use ptoc_ir::loops::Module;
use ptoc_ir::tile::{CheckId, TensorDir, Ty};
use ptoc_tensor::DType;

/// A function that C calls, and what its header says of each parameter.
#[derive(Debug)]
pub struct CFunction {
    /// What the object has.
    pub interface: Interface,
    /// Declarations of the parameters, in the interface's order.
    pub declared: Vec<String>,
    /// What is said of them: the name, and text.
    pub about: Vec<(String, String)>,
    /// Names that something else has.
    reserved: &'static [&'static str],
}

/// A name that is no name of a C function.
#[derive(Debug)]
pub struct Misnamed(pub String);

impl Misnamed {
    /// The error of a kernel, or of `--symbol`.
    pub fn told(self, unit: &BuildUnit, request: &Request) -> Box<Diagnostic> {
        let Misnamed(name) = self;
        let message = format!("`{name}` is no name for a C function: C, or a library that is linked, has it");
        let d = match &request.symbol {
            Some(_) => Diagnostic::global(codes::NOT_AHEAD_OF_TIME, format!("--symbol {name}: {message}")),
            None => Diagnostic::error(codes::NOT_AHEAD_OF_TIME, unit.prepared.placed.kernel.span, message),
        };
        Box::new(d.with_help("give it another one: `--symbol NAME`, of letters, digits and `_`"))
    }
}

/// Words that C or C++ keep for themselves, and names of the function's own parameters.
const TAKEN: &str = "alignas alignof and asm auto bool break case catch char class const constexpr continue default \
    delete do double else enum explicit export extern false float for friend goto if inline int int8_t int16_t int32_t \
    int64_t long main mutable namespace new not nullptr operator or private protected ptoc_status public register \
    restrict return short signed size_t sizeof static struct switch template this throw true try typedef typeid \
    typename uint8_t uint16_t uint32_t uint64_t union unsigned using virtual void volatile wchar_t while xor \
    workspace workspace_bytes threads status NULL EOF errno and_eq bitand bitor compl not_eq or_eq xor_eq char8_t \
    char16_t char32_t co_await co_return co_yield concept consteval constinit const_cast decltype dynamic_cast \
    noexcept reinterpret_cast requires static_assert static_cast thread_local typeof typeof_unqual unix linux \
    _Alignas _Alignof _Atomic _BitInt _Bool _Complex _Decimal32 _Decimal64 _Decimal128 _Float16 _Float32 _Float64 \
    _Generic _Imaginary _Noreturn _Static_assert _Thread_local __int128 asm intptr_t uintptr_t ptrdiff_t intmax_t \
    uintmax_t max_align_t offsetof INT8_MAX INT16_MAX INT32_MAX INT64_MAX UINT8_MAX UINT16_MAX UINT32_MAX UINT64_MAX \
    SIZE_MAX INT64_C UINT64_C PTOC_STATUS";

/// Functions of C's libraries, which a function of that name would take the place of in the whole program.
const LIBRARY: &str = "abort abs acos acosf asin asinf atan atan2 atanf atexit atof atoi bcmp bcopy bzero calloc ceil \
    ceilf clock close cos cosf cosh coshf div erf erfc erff exit exp exp2 exp2f expf expm1 expm1f fabs fabsf fclose \
    floor floorf fma fmaf fmax fmaxf fmin fminf fmod fmodf fopen fork fprintf fputs fread free fwrite getenv getpid \
    hypot hypotf index labs ldexp log log10 log1p log1pf log2 log2f logf longjmp malloc memchr memcmp memcpy memmove \
    memset mmap modf munmap nearbyint nearbyintf open pow powf printf putchar puts qsort raise rand read realloc \
    remainder rename rint rintf round roundf select send setjmp signal sin sinf sinh sinhf sleep sort sprintf sqrt \
    sqrtf srand stat strcat strchr strcmp strcpy strlen strncmp strtol system tan tanf tanh tanhf time trunc truncf \
    vfork wait write";

/// Whether the libraries that it is linked with have a function of that name.
fn in_library(symbol: &str) -> bool {
    let prefixed = ["ptoc_", "pthread_", "__"].iter().any(|prefix| symbol.starts_with(prefix));
    prefixed || LIBRARY.split_whitespace().any(|word| word == symbol)
}

fn taken(name: &str) -> bool {
    TAKEN.split_whitespace().any(|word| word == name)
}

/// The C type of a dtype's values.
fn c_type(dtype: DType) -> &'static str {
    match dtype {
        DType::F32 => "float",
        DType::F16 | DType::BF16 | DType::U16 => "uint16_t",
        DType::F8E4M3 | DType::F8E5M2 | DType::U8 | DType::Bool => "uint8_t",
        DType::I8 => "int8_t",
        DType::I16 => "int16_t",
        DType::I32 => "int32_t",
        DType::U32 => "uint32_t",
        DType::I64 => "int64_t",
        DType::U64 => "uint64_t",
    }
}

/// What has to be said of a dtype whose C type is only its bits.
fn bits_of(dtype: DType) -> &'static str {
    match dtype {
        DType::F16 => "; bits of IEEE half precision",
        DType::BF16 => "; bits of bfloat16",
        DType::F8E4M3 | DType::F8E5M2 => "; bits of an 8-bit float",
        DType::Bool => "; 0 or 1",
        _ => "",
    }
}

impl CFunction {
    /// The function of a kernel whose code is `module`; parameters get other names than those reserved.
    ///
    /// # Errors
    /// Its name is none of C.
    pub fn new(
        unit: &BuildUnit,
        module: &Module,
        symbol: Option<&str>,
        reserved: &'static [&'static str],
    ) -> Result<CFunction, Misnamed> {
        let symbol = symbol.unwrap_or(&unit.name).to_owned();
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if symbol.is_empty()
            || !symbol.chars().all(plain)
            || symbol.starts_with(|c: char| c.is_ascii_digit())
            || taken(&symbol)
            || in_library(&symbol)
        {
            return Err(Misnamed(symbol));
        }
        let mut function = CFunction {
            interface: Interface {
                symbol,
                parameters: Vec::new(),
                constants: Vec::new(),
                checks: checks(unit, module),
                codes: entry_codes(),
            },
            declared: Vec::new(),
            about: Vec::new(),
            reserved,
        };
        function.arguments(unit);
        function.dimensions(unit);
        Ok(function)
    }

    /// Tensors and scalars, in the order of their declaration.
    fn arguments(&mut self, unit: &BuildUnit) {
        let kernel = &unit.prepared.placed.kernel;
        for p in &unit.parameters {
            if let Some((tensor, t)) = unit.tensors.iter().enumerate().find(|(_, t)| t.name == *p.name) {
                let slots = |dim: &ArgDim| match dim {
                    ArgDim::Const(n) => u64::try_from(*n).ok().map(Extent::Const),
                    ArgDim::Dim(name) => {
                        let slot = kernel.dims.values().position(|d| d.name == *name)?;
                        Some(Extent::Dimension(slot))
                    }
                    ArgDim::Computed(_) => None,
                };
                let extents = match t.layout {
                    None => t.dims.iter().map(slots).collect(),
                    Some(_) => None,
                };
                let size = t.dtype.size() as u32;
                let written = t.dir != TensorDir::In;
                let place = match t.layout {
                    None => "elements side by side, the last dimension fastest",
                    Some(_) => "elements as the layout says",
                };
                let about = format!("{}: {}, {place}; aligned to {size}{}", p.ty, t.dtype, bits_of(t.dtype));
                let word = if written { "" } else { "const " };
                let kind = ParameterKind::Tensor { tensor, size, extents, written };
                self.add(&p.name, &format!("{word}{} *", c_type(t.dtype)), kind, about);
                continue;
            }
            let Some((n, s)) = unit.scalars.iter().enumerate().find(|(_, s)| s.name == *p.name) else { continue };
            let slot = kernel.dims.len() + n;
            if let Some(bits) = s.given {
                self.interface.constants.push((slot, bits as i64));
                continue;
            }
            let (c, class, bits) = match s.ty {
                Ty::Index => ("int64_t", ScalarClass::Int(64), ""),
                Ty::D(DType::F32) => ("float", ScalarClass::F32, ""),
                Ty::D(dtype) => (c_type(dtype), ScalarClass::Int(8 * dtype.size() as u32), bits_of(dtype)),
            };
            let default = p.default.as_ref().map(|d| format!("; `{d}` where the source gives none"));
            let about = format!("{}{bits}{}", p.ty, default.unwrap_or_default());
            self.add(&p.name, &format!("{c} "), ParameterKind::Scalar { slot, class }, about);
        }
    }

    /// Sizes that are known when the function is called.
    fn dimensions(&mut self, unit: &BuildUnit) {
        for (slot, d) in unit.prepared.placed.kernel.dims.values().enumerate() {
            let kind = ParameterKind::Dimension { slot };
            self.add(&d.name, "int64_t ", kind, "a dimension, 0 or more".into());
        }
    }

    fn add(&mut self, name: &str, c: &str, kind: ParameterKind, about: String) {
        let mut own = name.to_owned();
        while taken(&own)
            || self.reserved.contains(&&*own)
            || self.interface.parameters.iter().any(|p| p.name == own)
            || own == self.interface.symbol
        {
            own.push('_');
        }
        self.declared.push(format!("{c}{own}"));
        self.about.push((own.clone(), about));
        self.interface.parameters.push(Parameter { name: own, kind });
    }
}

/// The checks of a module, by row.
fn checks(unit: &BuildUnit, module: &Module) -> Vec<CheckText> {
    let kernel = &unit.prepared.placed.kernel;
    let text = |id: u32| {
        let check = &kernel.checks[CheckId::from_u32(id)];
        CheckText { number: number(check.code), message: check.message.clone() }
    };
    module.checks.iter().map(|row| text(row.id)).collect()
}

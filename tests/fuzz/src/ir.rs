//! Tile IR text: what parses and verifies prints back to itself and runs on the interpreter without a panic.

use super::hash;
use ptoc_diagnostics::{FileId, SourceMap, render};
use ptoc_interp::{InterpreterLaunch, Options, TensorArg};
use ptoc_ir::tile::text::{Spans, parse, print};
use ptoc_ir::tile::verify::verify;
use ptoc_ir::tile::{Kernel, TensorDir, Ty};
use ptoc_isa::Loc;

/// Steps and bytes of a run.
const FUEL: u64 = 50_000;
const MEMORY: u64 = 8 << 20;

/// The text of a kernel parses back to it.
pub(crate) fn round_trip(kernel: &Kernel) {
    for spans in [Spans::Keep, Spans::Omit] {
        let text = print(kernel, spans);
        let back = match parse(&text, FileId(0)) {
            Ok(back) => back,
            Err(d) => panic!("a printed kernel does not parse: {d:?}\n{text}"),
        };
        assert_eq!(print(&back, spans), text);
        if matches!(spans, Spans::Keep) {
            assert_eq!(&back, kernel, "{text}");
        }
    }
}

/// Values for a kernel's dimensions and scalar arguments, and from them its tensors' shapes.
pub(crate) struct Values {
    /// In the kernel's order.
    pub dims: Vec<i64>,
    /// In the kernel's order; `None` where the default is taken.
    pub scalars: Vec<Option<u64>>,
    /// The scalars with their defaults.
    pub all_scalars: Vec<u64>,
    /// Arguments, scratch tensors left out.
    pub shapes: Vec<Vec<u64>>,
}

impl Values {
    /// Small numbers; `None` if the prologue refuses them or the tensors are larger than `bytes`.
    pub fn choose(kernel: &Kernel, seed: u64, bytes: u64) -> Option<Values> {
        let dims: Vec<i64> =
            (0..kernel.dims.len()).map(|n| [5, 17, 1, 32, 3, 16, 0, 33][(seed as usize).wrapping_add(n) % 8]).collect();
        let scalars: Vec<Option<u64>> = kernel
            .scalars
            .iter()
            .map(|p| {
                let ty = kernel.values[p.value].ty;
                p.default.is_none().then(|| match ty {
                    Ty::D(d) if d.is_float() => ptoc_ir::scalar::from_f32(d, 1.5),
                    _ => 1,
                })
            })
            .collect();
        let values = ptoc_interp::prologue(kernel, &dims, &scalars).ok()?;
        let value = |v: ptoc_ir::tile::Value| values[v.as_u32() as usize];
        let mut left = bytes;
        let mut shapes = Vec::new();
        for t in kernel.tensors.values() {
            let shape: Vec<u64> = t.shape.iter().map(|&v| value(v)).collect();
            let size = shape.iter().try_fold(t.dtype.size() as u64, |n, &e| n.checked_mul(e))?;
            left = left.checked_sub(size)?;
            if t.dir != TensorDir::Scratch {
                shapes.push(shape);
            }
        }
        let all_scalars = kernel.scalars.iter().map(|p| value(p.value)).collect();
        Some(Values { dims, scalars, all_scalars, shapes })
    }
}

/// Bytes as the text of tile IR.
pub fn ir_text(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let mut sources = SourceMap::default();
    let file = sources.add("fuzz.ir", &*text);
    let kernel = match parse(&text, file) {
        Ok(kernel) => kernel,
        Err(d) => {
            assert!(!render::terminal(&d, &sources, false, 80).is_empty());
            return;
        }
    };
    if let Err(errors) = verify(&kernel) {
        assert!(!errors.is_empty());
        for e in errors {
            assert!(!render::terminal(&e.to_diagnostic(), &sources, false, 80).is_empty());
        }
        return;
    }
    round_trip(&kernel);
    let Some(values) = Values::choose(&kernel, hash(data), 1 << 20) else { return };
    let arguments = kernel.tensors.values().filter(|t| t.dir != TensorDir::Scratch);
    let tensors = arguments
        .zip(&values.shapes)
        .map(|(t, shape)| {
            let bytes = shape.iter().product::<u64>() as usize * t.dtype.size();
            TensorArg { dtype: t.dtype, shape: shape.clone(), data: vec![0; bytes] }
        })
        .collect();
    let mut printed = 0;
    let mut launch = InterpreterLaunch {
        tensors,
        dims: values.dims,
        scalars: values.scalars,
        options: Options {
            fuel: Some(FUEL),
            memory: MEMORY,
            capacity: Loc::ALL.into_iter().map(|loc| (loc, 1 << 18)).collect(),
            ..Options::default()
        },
        print: &mut |line| printed += line.len(),
    };
    match ptoc_interp::run(&kernel, &mut launch) {
        Ok(outcome) => assert!(outcome.stats.steps <= FUEL),
        Err(trap) => {
            assert_ne!(trap.code, ptoc_diagnostics::codes::TRAP_INVALID_IR, "{}", trap.message);
            assert!(!render::terminal(&trap.to_diagnostic(), &sources, false, 80).is_empty());
        }
    }
}

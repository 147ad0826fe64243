//! Kernels on HBM-PIM's units: streams are executed by the simulator and compared with the interpreter, bit for bit but
//! for which NaN it is.

use ptoc_diagnostics::{Diagnostic, FileId};
use ptoc_interp::TensorArg;
use ptoc_ir::scalar;
use ptoc_ir::tile::text::parse;
use ptoc_ir::tile::{Kernel, TensorDir};
use ptoc_isa::Target;
use ptoc_pim::compile;
use ptoc_pim_sim::machine::{self, device};
use ptoc_pim_stream::Stream;
use ptoc_pim_stream::stream::{Action, ColumnOp, SourceLine};
use ptoc_tensor::{DType, Tensor};

fn kernel(text: &str) -> Kernel {
    parse(text, FileId(0)).unwrap_or_else(|d| panic!("{}", d.message))
}

fn stream(kernel: &Kernel) -> Result<Stream, Box<Diagnostic>> {
    let target = Target::find("hbm-pim").unwrap_or_else(|d| panic!("{}", d.message));
    let values = ptoc_interp::prologue(kernel, &[], &[]).unwrap_or_else(|t| panic!("{}", t.message));
    compile(kernel, &values, target, &|_| SourceLine::default())
}

/// Numbers of which some are NaN, infinite, subnormal or a zero with a sign.
fn numbers(count: usize, seed: u64, wild: bool) -> Vec<u16> {
    const EDGES: [u16; 8] = [0x7c00, 0xfc00, 0x7e00, 0x0001, 0x8000, 0x7bff, 0x0000, 0x8001];
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let one = |n: u64| match n % 16 {
        0 if wild => EDGES[(n >> 8) as usize % EDGES.len()],
        _ => half::f16::from_f32((n >> 16 & 0xfff) as f32 / 1024.0 - 2.0).to_bits(),
    };
    (0..count).map(|_| one(next())).collect()
}

/// Runs both; returns the stream.
fn same(text: &str, seed: u64) -> (Stream, machine::MachineOutcome) {
    let kernel = kernel(text);
    let compiled = stream(&kernel).unwrap_or_else(|d| panic!("{} {:?}", d.message, d.notes));
    let stream = Stream::decode(&compiled.encode().expect("it encodes")).expect("it decodes");
    assert_eq!(stream, compiled);
    let config = device::config(&stream.device).unwrap_or_else(|e| panic!("{}", e.message));
    assert_eq!(stream.check(&device::geometry(&config)), []);
    assert_eq!(stream.unordered(&device::geometry(&config)), [], "a fence is missing");
    let (mut arrays, mut args) = (Vec::new(), Vec::new());
    for (n, (t, decl)) in kernel.tensors.values().zip(&stream.tensors).enumerate() {
        assert_eq!(decl.dtype, DType::F16);
        let shape: Vec<usize> = decl.shape.iter().map(|e| *e as usize).collect();
        let mut tensor = Tensor::zeros(DType::F16, &shape).expect("small");
        let given = t.dir != TensorDir::Out;
        if given {
            let values = numbers(tensor.len(), seed + n as u64, seed % 2 == 1);
            values.iter().enumerate().for_each(|(i, v)| tensor.set_bits(i, u64::from(*v)));
        }
        let data = if given { tensor.bytes().to_vec() } else { Vec::new() };
        args.push(TensorArg { dtype: DType::F16, shape: decl.shape.iter().map(|e| u64::from(*e)).collect(), data });
        arrays.push(given.then_some(tensor));
    }
    let mut launch = ptoc_interp::InterpreterLaunch {
        tensors: args,
        dims: Vec::new(),
        scalars: Vec::new(),
        options: ptoc_interp::Options::default(),
        print: &mut |_| {},
    };
    ptoc_interp::run(&kernel, &mut launch).unwrap_or_else(|t| panic!("{}", t.message));
    let outcome = machine::run(&stream, &config, arrays, machine::Options::default()).unwrap_or_else(|e| panic!("{e}"));
    let nan = |bits: u64| scalar::to_f32(DType::F16, bits).is_nan();
    let mut results = 0;
    for (n, (t, want)) in kernel.tensors.values().zip(&launch.tensors).enumerate() {
        if t.dir == TensorDir::In {
            continue;
        }
        let got = outcome.outputs[n].as_ref().expect("a result");
        for (i, two) in want.data.chunks_exact(2).enumerate() {
            let (w, g) = (u64::from(u16::from_le_bytes([two[0], two[1]])), got.get_bits(i));
            assert!(w == g || nan(w) && nan(g), "element {i} of {} is {g:#06x}, not {w:#06x}", t.name);
            results += 1;
        }
    }
    assert!(results > 0);
    (stream, outcome)
}

fn ops(stream: &Stream) -> &[ColumnOp] {
    let exec = stream.steps.iter().find_map(|s| match &s.action {
        Action::Exec(e) => Some(&e.ops[..]),
        _ => None,
    });
    exec.expect("units work")
}

/// Column commands for the units, and how many of them come in eights: those of a row are one operation.
fn commands(stream: &Stream) -> (u32, u32) {
    let of_data = ops(stream).iter().filter_map(|op| match op {
        ColumnOp::Rd { at, count } | ColumnOp::Wr { at, count, .. } if at.row < 4096 => Some(*count),
        _ => None,
    });
    of_data.fold((0, 0), |(n, eights), count| (n + count, eights + count / 8 * 8))
}

macro_rules! bit_for_bit {
    ($($name:ident)*) => {$(
        #[test]
        fn $name() {
            let text = include_str!(concat!("kernels/", stringify!($name), ".ir"));
            (0..4).for_each(|seed| {
                same(text, seed);
            });
        }
    )*};
}

bit_for_bit!(add axpy chain relu bias rounds shared rows placed twice gemv_lanes);

/// The same kernel, with the coordinates of its blocks behind an operation of which no slope is known: every block is
/// gone through.
fn one_by_one(text: &str) -> String {
    let number = |word: &str| word.strip_prefix('v').and_then(|n| n.parse::<u32>().ok());
    let words = |line: &str| -> Vec<String> {
        let mut out: Vec<String> = Vec::new();
        for c in line.chars() {
            match out.last_mut() {
                Some(word) if c.is_alphanumeric() && word.chars().all(char::is_alphanumeric) => word.push(c),
                _ => out.push(c.to_string()),
            }
        }
        out
    };
    let most = text.lines().flat_map(words).filter_map(|w| number(&w)).max().expect("values");
    let (mut own, mut body, mut out) = (Vec::new(), false, Vec::new());
    for line in text.lines() {
        let mut line = line.to_owned();
        if let Some(dims) = line.strip_prefix("grid [") {
            own = dims.split(", ").filter_map(|d| number(d.split(' ').next()?)).collect();
        }
        if body {
            let renamed = |w: String| match number(&w).and_then(|n| own.iter().position(|o| *o == n)) {
                Some(k) => format!("v{}", most as usize + 2 + k),
                None => w,
            };
            line = words(&line).into_iter().map(renamed).collect();
        }
        out.push(line.clone());
        match line.as_str() {
            "prologue {" => out.push(format!("  v{}: index = const 0", most + 1)),
            "body {" => {
                body = true;
                let xor =
                    |(k, v): (usize, &u32)| format!("  v{}: index = xor v{v}, v{}", most as usize + 2 + k, most + 1);
                out.extend(own.iter().enumerate().map(xor));
            }
            _ => {}
        }
    }
    out.join("\n") + "\n"
}

/// Blocks that are congruent to one that was gone through do what they would do if they were gone through themselves.
#[test]
fn congruent_blocks_do_the_same() {
    let kernels = [
        include_str!("kernels/add.ir"),
        include_str!("kernels/axpy.ir"),
        include_str!("kernels/bias.ir"),
        include_str!("kernels/gemv_lanes.ir"),
        include_str!("kernels/placed.ir"),
        include_str!("kernels/rounds.ir"),
        include_str!("kernels/rows.ir"),
        include_str!("kernels/shared.ir"),
        include_str!("kernels/twice.ir"),
        include_str!("kernels/uneven.ir"),
    ];
    for text in kernels {
        let apart = one_by_one(text);
        let of = |text: &str| stream(&kernel(text)).map_err(|d| (d.code, d.message.clone(), d.notes.clone()));
        assert_eq!(of(text), of(&apart), "{apart}");
    }
}

/// Every command of the product reads a burst of the matrix, eight at a time, and the program is a loop.
#[test]
fn a_product_reads_each_burst_once() {
    let (stream, outcome) = same(include_str!("kernels/gemv_lanes.ir"), 2);
    // 8 rows of a block x 32 bursts, and 8 bursts of sums, in 2 rounds.
    assert_eq!(commands(&stream), (2 * (8 * 32 + 8), 2 * (8 * 32 + 8)));
    let text = stream.to_text();
    let program = "crf MAC GRF_B[0], EVEN_BANK, GRF_A[0] auto; JUMP -1, 7; MAC GRF_B[0], ODD_BANK, GRF_A[0] auto; \
                   JUMP -1, 7; JUMP -4, 1; MOV ODD_BANK, GRF_B[0] auto; JUMP -6, 1; EXIT";
    assert!(text.contains(program), "{text}");
    assert!(outcome.report.ticks > 0);
}

/// Chains of operations come in eights.
#[test]
fn element_wise_work_comes_in_eights() {
    for text in [include_str!("kernels/chain.ir"), include_str!("kernels/axpy.ir"), include_str!("kernels/relu.ir")] {
        let (all, eights) = commands(&same(text, 0).0);
        assert_eq!(all, eights);
    }
}

/// The vendor's own program for a sum of 2048 elements takes 731 cycles from its first mode switch to its last. Ours
/// changes rows twice, and computes in both register files.
#[test]
fn a_sum_is_faster_than_the_vendors() {
    let (stream, outcome) = same(include_str!("kernels/sum2048.ir"), 0);
    let exec = stream.steps.iter().position(|s| matches!(s.action, Action::Exec(_))).expect("units work");
    let (begin, end) = outcome.report.steps[exec];
    assert!((400..550).contains(&(end - begin)), "{} cycles", end - begin);
    assert_eq!(commands(&stream), (48, 48));
}

fn refused(text: &str) -> String {
    let d = stream(&kernel(text)).expect_err("no unit does this");
    format!(
        "{} {}\n  {:?}\n  {:?}",
        d.code.as_str(),
        d.message,
        d.notes,
        d.fixes.iter().map(|f| &f.message).collect::<Vec<_>>()
    )
}

#[test]
fn what_units_cannot_do() {
    let said: Vec<String> = [
        include_str!("kernels/branch.ir"),
        include_str!("kernels/quotient.ir"),
        include_str!("kernels/uneven.ir"),
        include_str!("kernels/crowded.ir"),
    ]
    .map(refused)
    .into();
    insta::assert_snapshot!(said.join("\n"));
}

#[test]
fn streams() {
    let text = |t: &str| stream(&kernel(t)).unwrap_or_else(|d| panic!("{}", d.message)).to_text();
    insta::assert_snapshot!("relu", text(include_str!("kernels/relu.ir")));
    insta::assert_snapshot!("chain", text(include_str!("kernels/chain.ir")));
}

//! C programs leave the bits of a launch, at every width of vectors and for any number of threads.

use super::harness::{Folder, example, installed, succeeded};
use ptoc_driver::defs::Definition;
use ptoc_driver::library::{Argument, ArrayView, Call, Callable, Library, Options, Scalar};
use ptoc_tensor::DType;
use std::fmt::Write as _;
use std::sync::Arc;

/// A kernel and what it is called with.
struct Case<'c> {
    file: &'c str,
    kernel: &'c str,
    defined: &'c [(&'c str, &'c str)],
    /// In the order of the declaration.
    arguments: &'c [Arg<'c>],
    /// Dimensions that the function takes.
    dims: &'c [i64],
    /// It calls no routine of the runtime.
    alone: bool,
}

enum Arg<'c> {
    In(DType, &'c [usize]),
    Out(DType, &'c [usize]),
    Float(f64),
    Int(i64),
    /// A scalar that is a constant of the function.
    Fixed(&'c str, f64),
}

fn bytes(dtype: DType, shape: &[usize]) -> usize {
    shape.iter().product::<usize>() * dtype.size()
}

/// Numbers that differ, and that kernels compute with: floats between -2 and 2.
fn contents(dtype: DType, shape: &[usize], seed: usize) -> Vec<u8> {
    let count: usize = shape.iter().product();
    let number = |n: usize| ((n * 7919 + seed * 104_729) % 4001) as f64 / 1000.0 - 2.0;
    let mut out = Vec::new();
    for n in 0..count {
        let bits = match dtype.is_float() {
            true => ptoc_tensor::scalar::bits_from_f64(dtype, number(n)),
            false => ((n * 31 + seed * 17) % 251) as u64,
        };
        out.extend(&bits.to_le_bytes()[..dtype.size()]);
    }
    out
}

/// What a launch leaves in the outputs.
fn launched(case: &Case<'_>) -> Vec<Vec<u8>> {
    let library = Arc::new(Library::open(&example(case.file)).expect("it is right"));
    let definition = |(name, value): &(&str, &str)| Definition { name: (*name).into(), value: (*value).into() };
    let definitions = case.defined.iter().map(definition).collect();
    // Built code has the products of `--exact`.
    let options = Options { exact: true, ..Options::default() };
    let callable = Callable::new(&library, case.kernel, definitions, options).expect("there is such a kernel");
    // Words, for the alignment.
    let mut memory: Vec<Vec<u64>> = Vec::new();
    let mut arguments = Vec::new();
    for (n, arg) in case.arguments.iter().enumerate() {
        arguments.push(Some(match arg {
            Arg::In(dtype, shape) | Arg::Out(dtype, shape) => {
                let mut words = vec![0u64; bytes(*dtype, shape).div_ceil(8)];
                if let Arg::In(..) = arg {
                    let source = contents(*dtype, shape, n);
                    for (word, bytes) in words.iter_mut().zip(source.chunks(8)) {
                        let mut whole = [0; 8];
                        whole[..bytes.len()].copy_from_slice(bytes);
                        *word = u64::from_le_bytes(whole);
                    }
                }
                let data = words.as_mut_ptr().cast();
                memory.push(words);
                Argument::Array(ArrayView::new(*dtype, shape.to_vec(), None, data, false))
            }
            Arg::Float(x) | Arg::Fixed(_, x) => Argument::Scalar(Scalar::Float(*x)),
            Arg::Int(x) => Argument::Scalar(Scalar::Int((*x).into())),
        }));
    }
    let call = Call { arguments, stream: 0 };
    let code = callable.specialize(&call).expect("it compiles");
    // SAFETY: the arrays are those of `memory`, which nothing else uses.
    unsafe { code.run(&callable, &call, 2, &mut |_| {}) }.expect("it runs");
    let tensors = case.arguments.iter().filter_map(|a| match a {
        Arg::In(dtype, shape) => Some((false, bytes(*dtype, shape))),
        Arg::Out(dtype, shape) => Some((true, bytes(*dtype, shape))),
        _ => None,
    });
    let outputs = memory.iter().zip(tensors).filter(|(_, (out, _))| *out);
    outputs.map(|(words, (_, size))| words.iter().flat_map(|w| w.to_le_bytes()).take(size).collect()).collect()
}

/// A program that reads inputs from files, calls the kernel with so many threads as it is told, and writes outputs.
fn program(case: &Case<'_>) -> String {
    let mut text = String::from(
        "#include \"kernel.h\"\n#include \"kernel.h\"\n#include <stdio.h>\n#include <stdlib.h>\n\
         static void *room(size_t n) { void *p = NULL; if (posix_memalign(&p, 8, n ? n : 1)) exit(3); return p; }\n\
         static void move(const char *name, const char *mode, void *p, size_t n) {\n\
         \x20   FILE *f = fopen(name, mode);\n\
         \x20   size_t done = f ? (*mode == 'r' ? fread(p, 1, n, f) : fwrite(p, 1, n, f)) : 0;\n\
         \x20   if (done != n || fclose(f)) exit(4);\n}\n\
         int main(int argc, char **argv) {\n    int32_t threads = argc > 1 ? atoi(argv[1]) : 1;\n",
    );
    let (mut call, mut after) = (Vec::new(), String::new());
    for (n, arg) in case.arguments.iter().enumerate() {
        match arg {
            Arg::In(dtype, shape) | Arg::Out(dtype, shape) => {
                let size = bytes(*dtype, shape);
                let _ = writeln!(text, "    void *p{n} = room({size});");
                match arg {
                    Arg::In(..) => {
                        let _ = writeln!(text, "    move(\"p{n}.in\", \"rb\", p{n}, {size});");
                    }
                    _ => {
                        let _ = writeln!(after, "    move(\"p{n}.out\", \"wb\", p{n}, {size});");
                    }
                }
                let _ = writeln!(after, "    free(p{n});");
                call.push(format!("p{n}"));
            }
            Arg::Float(x) => call.push(format!("{x:?}f")),
            Arg::Int(x) => call.push(x.to_string()),
            Arg::Fixed(..) => {}
        }
    }
    call.extend(case.dims.iter().map(i64::to_string));
    let (name, call) = (case.kernel, call.join(", "));
    let _ = write!(
        text,
        "    size_t bytes = {name}_workspace(threads);\n    void *workspace = room(bytes);\n    ptoc_status status;\n"
    );
    let _ = write!(text, "    int32_t code = {name}({call}, workspace, bytes, threads, &status);\n    if (code) {{\n");
    let _ =
        writeln!(text, "        fprintf(stderr, \"%d %s %d\\n\", (int)code, status.message, (int)status.numbers[0]);");
    let _ = write!(text, "        return 1;\n    }}\n{after}    free(workspace);\n    return 0;\n}}\n");
    text
}

/// Builds, links and runs at every width.
fn agrees(case: &Case<'_>) {
    let want = launched(case);
    let mut defined: Vec<(String, String)> = Vec::new();
    defined.extend(case.defined.iter().map(|(name, value)| ((*name).into(), (*value).into())));
    defined.extend(case.arguments.iter().filter_map(|a| match a {
        Arg::Fixed(name, x) => Some(((*name).into(), format!("{x:?}"))),
        _ => None,
    }));
    let defined: Vec<(&str, &str)> = defined.iter().map(|(name, value)| (&**name, &**value)).collect();
    let forms: &[&str] = if case.alone { &["o", "a", "so"] } else { &["a", "so"] };
    for form in forms {
        let folder = Folder::of(&example(case.file), case.kernel, &defined, form);
        for (n, arg) in case.arguments.iter().enumerate() {
            if let Arg::In(dtype, shape) = arg {
                folder.write(&format!("p{n}.in"), &contents(*dtype, shape, n));
            }
        }
        folder.link(&program(case), form);
        for vectors in ["128", "256", "512"] {
            for threads in ["0", "1", "2", "5"] {
                let what = format!("{} as .{form}, {vectors} bits, {threads} threads", case.kernel);
                succeeded(&what, &folder.run("./main", &[threads], Some(vectors)));
                let outputs = case.arguments.iter().enumerate().filter(|(_, a)| matches!(a, Arg::Out(..)));
                for ((n, _), want) in outputs.zip(&want) {
                    assert!(folder.read(&format!("p{n}.out")) == *want, "{what}: argument {n} differs");
                }
            }
        }
        // It knows no instructions of 512 bits; the processor that it plays has none.
        if *form == forms[0] && installed("valgrind") {
            let args = ["--error-exitcode=9", "--leak-check=full", "--errors-for-leak-kinds=definite", "./main", "2"];
            succeeded("valgrind", &folder.run("valgrind", &args, None));
        }
    }
}

use DType::{F16, F32, I8, I32};

#[test]
fn softmax() {
    let defined = [("N", "300")];
    let arguments = [Arg::In(F32, &[37, 300]), Arg::Out(F32, &[37, 300])];
    agrees(&Case {
        file: "softmax.tile",
        kernel: "softmax",
        defined: &defined,
        arguments: &arguments,
        dims: &[37],
        alone: false,
    });
}

#[test]
fn products() {
    let (a, b, c) = ([70, 90], [90, 130], [70, 130]);
    let of = |kernel, arguments: &[Arg<'_>]| {
        let dims = [70, 90, 130];
        agrees(&Case { file: "gemm.tile", kernel, defined: &[], arguments, dims: &dims, alone: false });
    };
    of("gemm", &[Arg::In(F32, &a), Arg::In(F32, &b), Arg::Out(F32, &c)]);
    of("gemm_f16", &[Arg::In(F16, &a), Arg::In(F16, &b), Arg::Out(F32, &c)]);
    of("gemm_i8", &[Arg::In(I8, &a), Arg::In(I8, &b), Arg::Out(I32, &c)]);
}

#[test]
fn attention() {
    let shape = [2, 40, 64];
    agrees(&Case {
        file: "attention.tile",
        kernel: "attention",
        defined: &[],
        arguments: &[
            Arg::In(F16, &shape),
            Arg::In(F16, &shape),
            Arg::In(F16, &shape),
            Arg::Out(F16, &shape),
            Arg::Float(0.125),
        ],
        dims: &[2, 40, 40],
        alone: false,
    });
}

#[test]
fn layernorm() {
    let (x, row) = ([21, 700], [700]);
    agrees(&Case {
        file: "layernorm.tile",
        kernel: "layernorm",
        defined: &[],
        arguments: &[
            Arg::In(F32, &x),
            Arg::In(F32, &row),
            Arg::In(F32, &row),
            Arg::Out(F32, &x),
            Arg::Float(1.0 / 1024.0),
        ],
        dims: &[21, 700],
        alone: false,
    });
}

/// Kernels whose objects link by themselves.
#[test]
fn without_the_runtime() {
    let shape = [45, 150];
    agrees(&Case {
        file: "bits.tile",
        kernel: "distance",
        defined: &[],
        arguments: &[Arg::In(I32, &shape), Arg::In(I32, &shape), Arg::Out(I32, &shape)],
        dims: &[45, 150],
        alone: true,
    });
    agrees(&Case {
        file: "bits.tile",
        kernel: "rotate",
        defined: &[],
        arguments: &[Arg::In(DType::U32, &shape), Arg::Int(5), Arg::Out(DType::U32, &shape)],
        dims: &[45, 150],
        alone: true,
    });
}

/// A value that `-D` gives is no parameter any more.
#[test]
fn definitions_are_constants() {
    let shape = [9, 40];
    agrees(&Case {
        file: "elementwise.tile",
        kernel: "axpy",
        defined: &[("N", "40")],
        arguments: &[Arg::In(F32, &shape), Arg::In(F32, &shape), Arg::Out(F32, &shape), Arg::Fixed("a", 2.5)],
        dims: &[9],
        alone: true,
    });
}

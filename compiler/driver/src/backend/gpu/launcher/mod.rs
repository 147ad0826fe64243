//! A launcher in C of a kernel on a GPU, over NVIDIA's driver: it has the code in it, knows the grid and the
//! parameters, and looks at its arguments as functions of machine code do.

mod maps;
mod scalars;

use crate::build::comment::{comment, heading};
use crate::build::entry_codes::RunsOn;
use crate::build::header::{self, About};
use crate::build::{BuildUnit, CFunction, ENTRY_CODES, Request, number};
use ptoc_abi::MOST_BLOCKS;
use ptoc_cpu::object::{Extent, ParameterKind, ScalarClass};
use ptoc_diagnostics::{Diagnostic, codes};
use ptoc_gpu::{Abi, Compiled};
use ptoc_ir::loops::Module;
use std::fmt::Write as _;

/// What every launcher begins with.
const HEAD: &str = include_str!("head.c");

/// What is the same in all of them but for names and numbers.
const BODY: &str = include_str!("body.c");

/// Names of parameters beside those of the kernel.
pub(super) const RESERVED: [&str; 7] = ["kernel", "image", "stream", "tensors", "params", "arrays", "code"];

/// A multiple that arrays begin at.
const ALIGNMENT: u32 = 16;

/// A launcher and its header.
pub(super) struct Launcher {
    pub(super) source: String,
    pub(super) header: String,
}

/// Writes the launcher of a kernel, whose code is `image`.
///
/// # Errors
/// What a launch evaluates on the host cannot be said in C.
pub(super) fn of(
    unit: &BuildUnit,
    module: &Module,
    compiled: &Compiled,
    function: &CFunction,
    request: &Request,
    image: &[u8],
) -> Result<Launcher, Box<Diagnostic>> {
    let symbol = &*function.interface.symbol;
    let grid = scalars::of(module, &format!("{symbol}_")).map_err(|scalars::Unexpected(what)| {
        let message = format!("the launch of `{}` needs {what} on the host, and a launcher in C has none", unit.name);
        let d = Diagnostic::error(codes::NOT_AHEAD_OF_TIME, unit.prepared.placed.kernel.span, message);
        Box::new(d.with_help("leave `--launcher` out: the PTX says how it is launched"))
    })?;
    let mut out = comment(&heading(unit, request));
    let name = request.header.clone().unwrap_or_else(|| format!("{symbol}.h"));
    let _ = writeln!(out, "#include \"{name}\"\n");
    if grid.math {
        out.push_str("#include <math.h>\n");
    }
    out.push_str(HEAD);
    out.push('\n');
    code(&mut out, symbol, image);
    tables(&mut out, function);
    let _ = write!(
        out,
        "{}\n/* The launch function: extents of the grid and -1, or the row of the check that fails, and its numbers. \
         */\nstatic int32_t {symbol}_grid(const int64_t *params, int64_t *extents, int64_t *numbers, uint32_t *count) \
         {{\n{}}}\n\n",
        named(&grid.helpers, symbol),
        grid.body
    );
    out.push_str(&named(&maps::of(&compiled.abi), symbol));
    out.push_str(&filled(function, module, compiled));
    entries(&mut out, function, module);
    out.push_str("#ifdef __cplusplus\n}\n#endif\n");
    Ok(Launcher { source: out, header: header_of(unit, function, module, compiled, request, grid.math) })
}

/// A text of ours with the function's name in its places.
fn named(text: &str, symbol: &str) -> String {
    text.replace("NAME", symbol)
}

/// The image as words, which gives it the alignment of one, with a zero behind it.
fn code(out: &mut String, symbol: &str, image: &[u8]) {
    out.push_str("/* The code: what a module is loaded of. Words of 64 bits, the first byte the lowest. */\n");
    let _ = writeln!(out, "static const uint64_t {symbol}_image[] = {{");
    let mut bytes = image.to_vec();
    bytes.push(0);
    bytes.resize(bytes.len().next_multiple_of(8), 0);
    let words: Vec<u64> =
        bytes.chunks_exact(8).map(|b| b.iter().rev().fold(0u64, |word, byte| word << 8 | u64::from(*byte))).collect();
    for line in words.chunks(6) {
        let line: Vec<String> = line.iter().map(|word| format!("{word:#x}")).collect();
        let _ = writeln!(out, "    {},", line.join(", "));
    }
    out.push_str("};\n\n");
}

/// A text as a string of C.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' | '?' => {
                out.push('\\');
                out.push(c);
            }
            c if c.is_control() => {
                let _ = write!(out, "\\{:03o}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// Messages: of checks by their row, and of arrays.
fn tables(out: &mut String, function: &CFunction) {
    let symbol = &function.interface.symbol;
    let _ = writeln!(
        out,
        "/* Checks of the kernel. */\nstatic const struct {symbol}_check {{\n    int32_t code;\n    const char \
         *message;\n}} {symbol}_checks[] = {{"
    );
    for check in &function.interface.checks {
        let _ = writeln!(out, "    {{{}, {}}},", check.number, quoted(&check.message));
    }
    if function.interface.checks.is_empty() {
        out.push_str("    {0, \"\"},\n");
    }
    let _ = writeln!(out, "}};\n\n/* What is wrong with arrays. */\nstatic const char *const {symbol}_texts[][5] = {{");
    let mut any = false;
    for p in function.interface.parameters.iter().filter(|p| matches!(p.kind, ParameterKind::Tensor { .. })) {
        let name = &p.name;
        let _ = writeln!(
            out,
            "    {{\"the array of `{name}` has more bytes than can be addressed\",\n     \"the pointer of `{name}` is \
             null\",\n     \"the array of `{name}` does not begin at a multiple of {ALIGNMENT}\",\n     \"the array of \
             `{name}` is written, and shares bytes with another\",\n     \"the array of `{name}` shares bytes with the \
             workspace\"}},"
        );
        any = true;
    }
    if !any {
        out.push_str("    {\"\", \"\", \"\", \"\", \"\"},\n");
    }
    out.push_str("};\n\n");
}

/// The common part, with the numbers of this kernel.
fn filled(function: &CFunction, module: &Module, compiled: &Compiled) -> String {
    let abi: &Abi = &compiled.abi;
    let arrays =
        function.interface.parameters.iter().filter(|p| matches!(p.kind, ParameterKind::Tensor { .. })).count();
    let spans: Vec<String> = (0..abi.rank.max(1)).map(|d| abi.spans.get(d).copied().unwrap_or(1).to_string()).collect();
    let needs = compiled.checks || abi.scratch > 0;
    let numbers = [
        ("RANK1", abi.rank.max(1).to_string()),
        ("RANK", abi.rank.to_string()),
        ("ARRAYS", arrays.to_string()),
        ("SPANS", spans.join(", ")),
        ("CLUSTER", abi.cluster.to_string()),
        ("MOST_CTAS", abi.most_ctas().to_string()),
        ("MOST_BLOCKS", MOST_BLOCKS.to_string()),
        ("RESIDENT", u32::from(abi.gemm.is_some()).to_string()),
        ("NEEDS", u32::from(needs).to_string()),
        ("SCRATCH", abi.scratch.to_string()),
        ("CHECKS", u32::from(compiled.checks).to_string()),
        ("ROWS", module.checks.len().max(1).to_string()),
        ("TENSORS", abi.tensors.to_string()),
        ("PARAMS", abi.params.to_string()),
        ("BEHIND", (abi.tensors + abi.params + abi.rank).to_string()),
        ("WORDS", abi.arguments_len().to_string()),
        ("MAPS", maps::count(abi).to_string()),
        ("THREADS", abi.threads.to_string()),
        ("SHARED", abi.shared.to_string()),
        ("ENTRY", compiled.kernel.name.to_string()),
    ];
    let body = named(BODY, &function.interface.symbol);
    let codes = ENTRY_CODES.iter().map(|e| (e.name, number(e.code).to_string()));
    numbers.into_iter().chain(codes).fold(body, |text, (name, value)| text.replace(&format!("@{name}@"), &value))
}

/// The two functions that have the kernel's parameters.
fn entries(out: &mut String, function: &CFunction, module: &Module) {
    let interface = &function.interface;
    let symbol = &interface.symbol;
    let [run, workspace] = prototypes(function);
    let params = module.launch.params.len();
    let mut set = format!("    int64_t params[{}];\n", params.max(1));
    set.push_str("    memset(params, 0, sizeof params);\n");
    for p in &interface.parameters {
        let (slot, value) = match p.kind {
            ParameterKind::Dimension { slot } => (slot, p.name.clone()),
            ParameterKind::Scalar { slot, class: ScalarClass::F32 } => {
                let _ = writeln!(set, "    memcpy(&params[{slot}], &{0}, sizeof {0});", p.name);
                continue;
            }
            // As its bits, without a sign: the code has the rest.
            ParameterKind::Scalar { slot, class: ScalarClass::Int(bits) } => {
                (slot, format!("(int64_t)(uint{}_t){}", bits.clamp(8, 64).next_power_of_two(), p.name))
            }
            ParameterKind::Tensor { .. } => continue,
        };
        let _ = writeln!(set, "    params[{slot}] = {value};");
    }
    for (slot, bits) in &interface.constants {
        let _ = writeln!(set, "    params[{slot}] = (int64_t)UINT64_C({});", *bits as u64);
    }
    let dimensions: Vec<(&str, usize)> = interface
        .parameters
        .iter()
        .filter_map(|p| match p.kind {
            ParameterKind::Dimension { slot } => Some((&*p.name, slot)),
            _ => None,
        })
        .collect();
    let negative: Vec<String> = dimensions.iter().map(|(name, _)| format!("{name} < 0")).collect();
    let negative = if negative.is_empty() { "0".into() } else { negative.join(" || ") };
    let _ = write!(
        out,
        "{workspace} {{\n    {symbol}_plan plan;\n{set}    if (!kernel || {negative} || {symbol}_planned(kernel, \
         params, &plan, NULL)) return 0;\n    return {symbol}_needed(&plan) ? (size_t){symbol}_needed(&plan) + 255 : \
         0;\n}}\n\n"
    );
    let _ = writeln!(out, "{run} {{");
    let tensors: Vec<(usize, usize)> = interface
        .parameters
        .iter()
        .enumerate()
        .filter_map(|(n, p)| match p.kind {
            ParameterKind::Tensor { tensor, .. } => Some((n, tensor)),
            _ => None,
        })
        .collect();
    let count = tensors.len().max(1);
    let _ = write!(
        out,
        "    uint64_t tensors[{0}];\n    {symbol}_array arrays[{0}];\n    int32_t code = 0;\n{set}    memset(tensors, \
         0, sizeof tensors);\n    memset(arrays, 0, sizeof arrays);\n",
        count.max(module.tensors.len())
    );
    let number = number(codes::TRAP_LAUNCH_MISMATCH);
    for (name, slot) in dimensions {
        let _ = writeln!(
            out,
            "    if ({name} < 0) return {symbol}_say(status, {number}, \"dimension `{name}` is {{0}}\", \
             &params[{slot}], 1);"
        );
    }
    for (k, (n, tensor)) in tensors.iter().enumerate() {
        let p = &interface.parameters[*n];
        let ParameterKind::Tensor { size, extents, written, .. } = &p.kind else { continue };
        let extents = extents.as_deref().unwrap_or_default();
        let values: Vec<String> = extents
            .iter()
            .map(|e| match e {
                Extent::Const(number) => format!("INT64_C({number})"),
                Extent::Dimension(slot) => format!("params[{slot}]"),
            })
            .collect();
        let _ = writeln!(out, "    tensors[{tensor}] = (uint64_t)(uintptr_t){};", p.name);
        let call = |extents: &str| {
            format!(
                "code = {symbol}_memory(&arrays[{k}], tensors[{tensor}], {size}, {extents}, {}, {},\n\
                 \u{20}           {symbol}_texts[{k}], status);",
                values.len(),
                u32::from(*written)
            )
        };
        match values.is_empty() {
            true => {
                let _ = writeln!(out, "    {}", call("NULL"));
            }
            false => {
                let _ = write!(out, "    {{\n        int64_t extents[{}];\n", values.len());
                for (d, value) in values.iter().enumerate() {
                    let _ = writeln!(out, "        extents[{d}] = {value};");
                }
                let _ = write!(out, "        {}\n    }}\n", call("extents"));
            }
        }
        out.push_str("    if (code) return code;\n");
    }
    let _ = write!(
        out,
        "    return {symbol}_launch(kernel, tensors, params, arrays, workspace, workspace_bytes, stream, \
         status);\n}}\n\n"
    );
}

/// The function that launches, and the one that says how large the workspace is, as they are declared.
fn prototypes(function: &CFunction) -> [String; 2] {
    let interface = &function.interface;
    let mut run = vec!["const ptoc_cuda *kernel".to_owned()];
    run.extend(function.declared.iter().cloned());
    run.extend(
        ["void *workspace", "size_t workspace_bytes", "struct CUstream_st *stream", "ptoc_status *status"]
            .map(Into::into),
    );
    let sizes = interface.parameters.iter().zip(&function.declared);
    let sizes = sizes.filter(|(p, _)| !matches!(p.kind, ParameterKind::Tensor { .. })).map(|(_, d)| d.clone());
    let workspace: Vec<String> = run[..1].iter().cloned().chain(sizes).collect();
    let text = |head: &str, parameters: &[String]| {
        let indent = " ".repeat(head.len() + 1);
        let mut out = format!("{head}(");
        let mut column = out.len();
        for (n, p) in parameters.iter().enumerate() {
            let last = n + 1 == parameters.len();
            if n > 0 && column + p.len() + 2 > 110 {
                let _ = write!(out, "\n{indent}");
                column = indent.len();
            } else if n > 0 {
                out.push(' ');
            }
            let _ = write!(out, "{p}{}", if last { ")" } else { "," });
            column += p.len() + 2;
        }
        out
    };
    let symbol = &interface.symbol;
    [text(&format!("int32_t {symbol}"), &run), text(&format!("size_t {symbol}_workspace"), &workspace)]
}

/// The header: how the functions are called.
fn header_of(
    unit: &BuildUnit,
    function: &CFunction,
    module: &Module,
    compiled: &Compiled,
    request: &Request,
    math: bool,
) -> String {
    let symbol = &*function.interface.symbol;
    let own = [
        ("kernel", "what NAME_load has filled; any number of threads may use it at once"),
        ("workspace", "memory of the device for this launch until it has run: NAME_workspace bytes"),
        ("stream", "CUstream or cudaStream_t; null: the default stream"),
        ("status", "what to fill when the call fails, or null"),
    ];
    let about = function.about.iter().map(|(name, text)| {
        let array = function.interface.parameters.iter().any(|p| p.name == *name && is_array(&p.kind));
        let text = match text.find("; aligned to ") {
            Some(at) if array => {
                let rest = text[at + 1..].find(';').map_or("", |n| &text[at + 1 + n..]);
                format!("{}; in the device's memory, aligned to {ALIGNMENT}{rest}", &text[..at])
            }
            _ => text.clone(),
        };
        (name.clone(), text)
    });
    let own = own.map(|(name, text)| (name.to_owned(), named(text, symbol)));
    let mut parameters = own.to_vec();
    parameters.splice(1..1, about);
    let of_checks = match compiled.checks {
        true => "the stream, and says whether a check of the kernel has failed; then its workspace may be used again.",
        false => "the stream. This kernel has no checks that could fail while it runs, so nobody has to call it.",
    };
    let text = [
        "NAME_load takes the code into the context that is current on this thread: that of the launcher, or `image`,",
        "which is what a file FILE has in it (behind PTX comes a zero). NAME starts a launch in the stream and",
        "returns. It allocates nothing, and CUDA graphs may record it. NAME_wait waits for",
        of_checks,
    ];
    let link = format!("Link: cc main.c {}{} -lcuda", launcher_name(request), if math { " -lm" } else { "" });
    let mut out = header::about(
        unit,
        module,
        request,
        About {
            parameters: "On a GPU (NVIDIA Hopper). Parameters:",
            named: parameters,
            text: text.map(|line| named(line, symbol).replace("FILE", &request.file)).to_vec(),
            returns: "Functions return",
            runs: RunsOn::Device,
            notes: vec![link],
        },
    );
    let guard = format!("PTOC_{symbol}_H");
    let _ = write!(out, "#ifndef {guard}\n#define {guard}\n\n#include <stddef.h>\n#include <stdint.h>\n\n");
    out.push_str("#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n");
    out.push_str(header::STATUS);
    out.push_str(CUDA);
    let [run, workspace] = prototypes(function);
    let _ = write!(
        out,
        "/* Takes the code into the current context: `image`, or what the launcher has if that is null. */\nint32_t \
         {symbol}_load(ptoc_cuda *kernel, const void *image, ptoc_status *status);\n\n/* Gives it back, when nothing \
         of \
         it runs any more. */\nvoid {symbol}_unload(ptoc_cuda *kernel);\n\n/* Bytes of workspace that a launch of \
         these \
         sizes needs; it may be 0, and is where the launch would be refused. */\n{workspace};\n\n{run};\n\n/* Waits \
         for the launch that this workspace was given to, and says what has become of it. */\nint32_t \
         {symbol}_wait(const void *workspace, struct CUstream_st *stream, ptoc_status *status);\n\n"
    );
    out.push_str("#ifdef __cplusplus\n}\n#endif\n\n#endif\n");
    out
}

/// What all headers of launchers declare.
const CUDA: &str = "\
#ifndef PTOC_CUDA
#define PTOC_CUDA
/* A kernel in a context. */
typedef struct ptoc_cuda {
    void *module;     /* CUmodule */
    void *function;   /* CUfunction */
    int32_t resident; /* how many CTAs the device runs at once */
} ptoc_cuda;
#endif
struct CUstream_st;

";

fn is_array(kind: &ParameterKind) -> bool {
    matches!(kind, ParameterKind::Tensor { .. })
}

fn launcher_name(request: &Request) -> &str {
    request.launcher.as_deref().unwrap_or("launcher.c")
}

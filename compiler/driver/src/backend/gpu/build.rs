//! Kernels as files for who launches them by NVIDIA's driver: PTX, and what `ptxas` assembles of it.

#[cfg(feature = "cpu")]
use super::launcher;
use super::{sass, text, told};
use crate::backend::wrong_backend;
use crate::build::{BuildUnit, Built, Form, Request, comment};
use crate::session::Session;
use ptoc_diagnostics::{Diagnostic, codes};
use ptoc_gpu::{Abi, Options};
use ptoc_ir::loops::Module;

/// What is made.
pub(super) const FORMS: [Form; 2] = [
    Form { extension: "ptx", about: "PTX for NVIDIA Hopper, as text that its driver loads" },
    Form { extension: "cubin", about: "the card's own code, assembled of it (needs ptxas)" },
];

/// Builds a kernel.
pub(super) fn build(session: &Session, unit: &BuildUnit, request: &Request) -> Result<Built, Box<Diagnostic>> {
    let Some(module) = &unit.prepared.module else {
        return Err(Box::new(wrong_backend(&session.target, &super::Gpu)));
    };
    if request.launcher.is_some() {
        return with_launcher(session, unit, module, request);
    }
    if let Some(symbol) = &request.symbol {
        let message = format!("--symbol {symbol}: the entry of PTX has the kernel's name");
        let d = Diagnostic::global(codes::NOT_AHEAD_OF_TIME, message);
        return Err(Box::new(d.with_help("leave it out; modules have entries of one name apart")));
    }
    let refused = |refused| Box::new(told(refused, &unit.prepared.placed.kernel));
    let compiled = ptoc_gpu::compile(module, &Options::default()).map_err(refused)?;
    let name = compiled.kernel.name.to_string();
    let about = launch(unit, &name, &compiled.abi, request);
    let ptx = text(&session.sources, &compiled, &unit.prepared.placed.kernel);
    let bytes = image(ptx, &about, request)?;
    let header = defines(&name, &compiled.abi, &about);
    Ok(Built { bytes, header, launcher: None, about: unit.about(), remarks: Vec::new(), links: String::new() })
}

/// The file: the text behind a comment, or what `ptxas` makes of it.
fn image(ptx: String, about: &[String], request: &Request) -> Result<Vec<u8>, Box<Diagnostic>> {
    if request.extension == "cubin" {
        return sass::assembled(&ptx).map_err(Box::new);
    }
    let comment: String = about.iter().map(|l| format!("// {l}").trim_end().to_owned() + "\n").collect();
    Ok((comment + &ptx).into_bytes())
}

/// Builds a kernel for its launcher: on the tensor cores, if it is a product that they take.
#[cfg(feature = "cpu")]
fn with_launcher(
    session: &Session,
    unit: &BuildUnit,
    module: &Module,
    request: &Request,
) -> Result<Built, Box<Diagnostic>> {
    use crate::build::CFunction;
    let kernel = &unit.prepared.placed.kernel;
    let function = CFunction::new(unit, module, request.symbol.as_deref(), &launcher::RESERVED)
        .map_err(|e| e.told(unit, request))?;
    let compiled = super::compiled(session, kernel, module).map_err(|refused| Box::new(told(refused, kernel)))?;
    let mut about = comment::heading(unit, request);
    about.push(format!("It is launched by {}.", request.launcher.as_deref().unwrap_or_default()));
    let bytes = image(text(&session.sources, &compiled, kernel), &about, request)?;
    let made = launcher::of(unit, module, &compiled, &function, request, &bytes)?;
    Ok(Built {
        bytes,
        header: made.header,
        launcher: Some(made.source),
        about: unit.about(),
        remarks: Vec::new(),
        links: " -lcuda".into(),
    })
}

/// Functions of C are described where machine code is made.
#[cfg(not(feature = "cpu"))]
fn with_launcher(_: &Session, _: &BuildUnit, _: &Module, _: &Request) -> Result<Built, Box<Diagnostic>> {
    Err(Box::new(crate::backend::Part::CPU.refused()))
}

/// How the kernel is launched, line by line.
fn launch(unit: &BuildUnit, name: &str, abi: &Abi, request: &Request) -> Vec<String> {
    let kernel = &unit.prepared.placed.kernel;
    let mut lines = comment::heading(unit, request);
    lines.push(format!(
        "Launch `{name}` with CTAs of ({}, 1, 1) threads in a grid of (CTAS, 1, 1), of any",
        abi.threads
    ));
    lines.push("number CTAS of 1 or more; they share the blocks, and one for each turn is best.".into());
    lines.push(format!(
        "Dynamic shared memory: {} bytes. Scratch memory: {} bytes for each CTA.",
        abi.shared, abi.scratch
    ));
    lines.push(String::new());
    lines.push("Parameters, of 64 bits each:".into());
    let tensors = unit.tensors.iter().map(|t| {
        let declared = unit.parameters.iter().find(|p| t.name == *p.name).map_or("", |p| &*p.ty);
        (format!("address of {}", t.name), declared.to_owned())
    });
    let dims = kernel.dims.values().map(|d| (d.name.to_string(), "a dimension".to_owned()));
    let scalars = unit.scalars.iter().map(|s| match s.given {
        Some(bits) => (s.name.to_string(), format!("its bits: {bits:#x}, as it was built")),
        None => (s.name.to_string(), format!("{}: its bits, in the low part", s.ty)),
    });
    let turns = (0..abi.rank).map(|d| {
        let span = abi.spans.get(d).copied().unwrap_or(1);
        let whole = if span == 1 { String::new() } else { format!(", divided by {span} and rounded up") };
        (format!("turns {d}"), format!("the extent of dimension {d} of the kernel's grid{whole}"))
    });
    let last = [
        ("blocks".to_owned(), "the product of the turns".to_owned()),
        ("status".to_owned(), "an address: a word of all ones, then 5 words of 64 bits for each CTA".to_owned()),
        ("scratch".to_owned(), "the address of scratch memory, at a multiple of 256; 0 if there is none".to_owned()),
    ];
    let all: Vec<(String, String)> = tensors.chain(dims).chain(scalars).chain(turns).chain(last).collect();
    let width = all.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    lines.extend(all.iter().enumerate().map(|(n, (name, text))| format!("    {n:>2}  {name:<width$}  {text}")));
    lines.push(String::new());
    lines.push(
        "If a check of block b fails, the status's first word is b << 32 | check, of the first such block.".into(),
    );
    lines.push("Conditions (`where`) are not looked at: they are the caller's promise.".into());
    lines
}

/// What a launch in C has to know, as constants.
fn defines(name: &str, abi: &Abi, about: &[String]) -> String {
    let upper = name.to_uppercase();
    let mut out = comment::comment(about);
    out += &format!("#ifndef PTOC_{upper}_LAUNCH_H\n#define PTOC_{upper}_LAUNCH_H\n\n");
    out += &format!("#define {upper}_NAME \"{name}\"\n#define {upper}_THREADS {}\n", abi.threads);
    out += &format!("#define {upper}_SHARED_BYTES {}\n#define {upper}_SCRATCH_BYTES {}\n", abi.shared, abi.scratch);
    let (count, rank) = (abi.tensors + abi.params + abi.rank + 3, abi.rank);
    out += &format!("#define {upper}_PARAMETERS {count}\n#define {upper}_GRID_RANK {rank}\n");
    for (d, span) in abi.spans.iter().take(abi.rank).enumerate() {
        out += &format!("#define {upper}_SPAN_{d} {span}\n");
    }
    out + "\n#endif\n"
}

//! The card's own instructions (SASS): what `ptxas` makes of PTX, taken apart by `nvdisasm`. A driver's linker would
//! assemble PTX for a function that others call, with other registers than those of the kernel that is launched.

use ptoc_diagnostics::{Diagnostic, codes};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The instructions of a kernel, with labels and the bytes' offsets.
///
/// # Errors
/// A tool is missing, or says that it cannot.
pub(super) fn of(ptx: &str) -> Result<String, Diagnostic> {
    let Some(nvdisasm) = tool("nvdisasm") else { return Err(missing("nvdisasm")) };
    let Some(ptxas) = tool("ptxas") else { return Err(missing("ptxas")) };
    // Both names are those of files without one: nothing is left behind.
    let cubin = piped(&ptxas, &["-arch=sm_90a", "/dev/stdin", "-o", "/dev/stdout"], ptx.as_bytes())?;
    let text = piped(&nvdisasm, &["-c", "/dev/stdin"], &cubin)?;
    Ok(instructions(&String::from_utf8_lossy(&text)))
}

/// What `ptxas` makes of PTX, with its line table.
///
/// # Errors
/// There is no `ptxas`, or it says that it cannot.
pub(super) fn assembled(ptx: &str) -> Result<Vec<u8>, Diagnostic> {
    let Some(ptxas) = tool("ptxas") else {
        let message = "a `.cubin` needs `ptxas`, which is neither on PATH nor in a CUDA toolkit";
        return Err(Diagnostic::global(codes::BUILD_TOOLS, message)
            .with_help("it is part of the CUDA toolkit, and of the PyPI package nvidia-cuda-nvcc")
            .with_help("`.ptx` needs no tool"));
    };
    piped(&ptxas, &["-arch=sm_90a", "-lineinfo", "/dev/stdin", "-o", "/dev/stdout"], ptx.as_bytes())
}

/// A program on `PATH`, or of a toolkit where toolkits are.
fn tool(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let of_toolkit = ["CUDA_HOME", "CUDA_PATH"].into_iter().filter_map(std::env::var_os).map(PathBuf::from);
    let toolkits = of_toolkit.chain([PathBuf::from("/usr/local/cuda")]).map(|p| p.join("bin"));
    std::env::split_paths(&path).chain(toolkits).map(|folder| folder.join(name)).find(|file| file.is_file())
}

fn missing(name: &str) -> Diagnostic {
    let message = format!("`--stage sass` needs `{name}`, which is neither on PATH nor in a CUDA toolkit");
    Diagnostic::global(codes::SASS_TOOLS, message)
        .with_help("it is part of the CUDA toolkit, and of the PyPI packages nvidia-cuda-nvcc and nvidia-cuda-nvdisasm")
        .with_help("`--stage ptx` needs no tool")
}

/// What a program makes of its standard input. Both are files without a name, since these programs seek.
fn piped(program: &Path, args: &[&str], input: &[u8]) -> Result<Vec<u8>, Diagnostic> {
    let name = program.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    let failed = |why: String| Diagnostic::global(codes::SASS_TOOLS, format!("`{name}` failed: {why}"));
    let run = || -> io::Result<(Vec<u8>, Option<String>)> {
        let (mut from, mut to) = (tempfile::tempfile()?, tempfile::tempfile()?);
        from.write_all(input)?;
        from.seek(SeekFrom::Start(0))?;
        let child =
            Command::new(program).args(args).stdin(from).stdout(to.try_clone()?).stderr(Stdio::piped()).spawn()?;
        let ended = child.wait_with_output()?;
        let words = String::from_utf8_lossy(&ended.stderr).trim().to_owned();
        let why = (!ended.status.success()).then(|| if words.is_empty() { ended.status.to_string() } else { words });
        let mut output = Vec::new();
        to.seek(SeekFrom::Start(0))?;
        to.read_to_end(&mut output)?;
        Ok((output, why))
    };
    match run() {
        Ok((output, None)) => Ok(output),
        Ok((_, Some(why))) => Err(failed(why)),
        Err(e) => Err(failed(e.to_string())),
    }
}

/// Labels and instructions, without directives.
fn instructions(text: &str) -> String {
    let kept = text.lines().map(str::trim).filter(|l| {
        let directive = l.starts_with('.') && !l.ends_with(':') || l.starts_with(".text");
        !l.is_empty() && !directive && !l.starts_with("//")
    });
    let mut out = String::new();
    for line in kept {
        let (indent, line) = if line.ends_with(':') { ("", line.to_owned()) } else { ("    ", spaced(line)) };
        out.push_str(indent);
        out.push_str(&line);
        out.push('\n');
    }
    out
}

/// One space between words, and a predicate's place kept free before an instruction.
fn spaced(line: &str) -> String {
    let mut words = line.split_whitespace();
    let offset = words.next().unwrap_or_default();
    let rest: Vec<&str> = words.collect();
    let (predicate, rest) = match rest.split_first() {
        Some((first, rest)) if first.starts_with('@') => (*first, rest),
        _ => ("", &rest[..]),
    };
    format!("{offset} {predicate:>5} {}", rest.join(" "))
}

#[cfg(test)]
mod tests {
    use super::instructions;

    #[test]
    fn labels_and_instructions_are_left() {
        let text = "\t.target\tsm_90a\n\n//---- .text.k\n\t.section\t.text.k\nk:\n.text.k:\n\
                    \t/*0000*/                   LDC R1, c[0x0][0x28] ;\n.L_x_0:\n\
                    \t/*0010*/               @!P0 EXIT ;\n";
        let want = "k:\n    /*0000*/       LDC R1, c[0x0][0x28] ;\n.L_x_0:\n    /*0010*/  @!P0 EXIT ;\n";
        assert_eq!(instructions(text), want);
    }
}

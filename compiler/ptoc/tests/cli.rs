//! The binary as a script sees it: exit status, standard output, standard error.

mod addresses;
mod asm;
mod bench;
mod build;
mod check;
#[cfg(feature = "debugger")]
mod dap;
mod debug;
mod dram;
mod emit;
mod exact;
mod explain;
#[cfg(unix)]
mod files;
mod format;
#[cfg(target_os = "linux")]
mod gpu;
mod layout;
mod lsp;
mod manners;
mod overflow;
mod perf;
mod pipes;
mod playground;
mod profile;
mod project;
mod readme;
mod run;
mod sanitize;
mod sim;
mod sources;
mod tensors;
mod terminal;
mod test_lines;
mod tune;
mod tutorial;
mod units;
mod words;

use ptoc_tensor::{DType, Tensor, npy};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

/// Kernels for most of the tests.
const ADD: &str = "\
/// c = a + b
kernel add<const ROWS = 16>(a: in f32[M, N], b: in f32[M, N], c: out f32[M, N])
    ensures c[i, j] == a[i, j] + b[i, j]
{
    grid (i in tiles(M, ROWS), j in tiles(N, 64));
    TSTORE(c.tile(i, j), Vec(a.tile(i, j)) + Vec(b.tile(i, j)));
}

kernel scale(x: in f32[M, N], s: f32, y: out f32[M, N]) {
    grid (i in tiles(M, 16), j in tiles(N, 64));
    TSTORE(y.tile(i, j), Vec(x.tile(i, j)) * s);
}
";

/// A directory of its own; everything is named relative to it.
struct Sandbox {
    dir: TempDir,
}

impl Sandbox {
    fn new() -> Sandbox {
        let sandbox = Sandbox { dir: TempDir::new().unwrap() };
        sandbox.file("add.tile", ADD);
        sandbox.array("a.npy", DType::F32, &[3, 4]);
        sandbox.array("b.npy", DType::F32, &[3, 4]);
        sandbox
    }

    fn path(&self) -> &Path {
        self.dir.path()
    }

    fn file(&self, name: &str, contents: impl AsRef<[u8]>) {
        let path = self.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, contents).unwrap();
    }

    /// 0, 1, 2, ..
    fn array(&self, name: &str, dtype: DType, shape: &[usize]) {
        let tensor = Tensor::from_fn(dtype, shape, |i| ptoc_tensor::scalar::bits_from_i128(dtype, i as i128)).unwrap();
        self.file(name, npy::write(&tensor));
    }

    fn read(&self, name: &str) -> Tensor {
        npy::read(&fs::read(self.path().join(name)).unwrap(), None).unwrap()
    }

    fn command(&self, args: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ptoc"));
        command.current_dir(self.path()).args(args.split_whitespace());
        command.env_remove("COLUMNS").env_remove("NO_COLOR").env("PTOC_TUNING", "off");
        command
    }

    /// Status, standard output and standard error of a call, in this order.
    fn run(&self, args: &str) -> String {
        let output = self.command(args).output().unwrap();
        let mut text = format!("$ ptoc {args}\nexit {}\n", output.status.code().unwrap());
        for (name, bytes) in [("stdout", output.stdout), ("stderr", output.stderr)] {
            let bytes = String::from_utf8(bytes).unwrap();
            if !bytes.is_empty() {
                let _ = write!(text, "-- {name}\n{bytes}");
            }
        }
        text
    }

    /// Several calls, one after another.
    fn runs(&self, calls: &[&str]) -> String {
        calls.iter().map(|args| self.run(args)).collect::<Vec<_>>().join("\n")
    }

    /// Names of all files, sorted.
    fn listing(&self) -> Vec<String> {
        let mut names: Vec<String> =
            fs::read_dir(self.path()).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

/// A snapshot in which times and sizes of machine code do not show.
macro_rules! snapshot {
    ($text:expr) => {
        let mut settings = insta::Settings::clone_current();
        settings.add_filter(r"\d+\.\d+ ms", "[time] ms");
        settings.add_filter(r#""(compile_ms|run_ms|code_bytes|threads)":[0-9.e-]+"#, r#""$1":"[n]""#);
        settings.add_filter(r"(?m)^(compile_ms|run_ms|code_bytes|threads) +[0-9.]+$", "$1 [n]");
        settings.set_omit_expression(true);
        settings.bind(|| insta::assert_snapshot!($text));
    };
}
use snapshot;

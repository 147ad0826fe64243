//! Kernels built to files, and C programs that call them.

use ptoc_driver::build::{Built, Request, build};
use ptoc_driver::defs::Definition;
use ptoc_driver::session::{Failed, Session};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

/// A file of `examples`.
pub fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name)
}

/// Builds a kernel; the codes of what is wrong with it.
pub fn built(file: &Path, kernel: &str, defined: &[(&str, &str)], extension: &str) -> Result<Built, Vec<String>> {
    let definition = |(name, value): &(&str, &str)| Definition { name: (*name).into(), value: (*value).into() };
    let definitions: Vec<Definition> = defined.iter().map(definition).collect();
    let mut session = Session::new("a2a3", &definitions).expect("there is such a target");
    let request = Request {
        extension: extension.into(),
        symbol: None,
        header: Some("kernel.h".into()),
        launcher: None,
        file: format!("kernel.{extension}"),
        command: "ptoc build".into(),
    };
    let mut run = || -> Result<Built, Failed> {
        let unit = session.load_code(file)?;
        let entry = unit.entry(Some(kernel), "build").or_else(|d| session.fail(*d))?;
        build(&mut session, &unit, &entry, Vec::new(), &request)
    };
    run().map_err(|Failed| session.diagnostics.iter().map(|d| d.code.to_string()).collect())
}

/// A folder with a kernel's files in it.
pub struct Folder(TempDir);

impl Folder {
    /// Builds a kernel to `kernel.EXTENSION` and `kernel.h`.
    pub fn of(file: &Path, kernel: &str, defined: &[(&str, &str)], extension: &str) -> Folder {
        let folder = Folder(tempfile::tempdir().expect("there is room"));
        let built = built(file, kernel, defined, extension).expect("it is built");
        folder.write(&format!("kernel.{extension}"), &built.bytes);
        folder.write("kernel.h", built.header.as_bytes());
        folder
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn write(&self, name: &str, bytes: &[u8]) {
        fs::write(self.path(name), bytes).expect("there is room");
    }

    pub fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).expect("it was written")
    }

    /// Runs a program in the folder.
    pub fn run(&self, program: &str, args: &[&str], vectors: Option<&str>) -> Output {
        let mut command = Command::new(program);
        command.current_dir(self.0.path()).args(args).env_remove("PTOC_VECTORS");
        command.envs(vectors.map(|bits| ("PTOC_VECTORS", bits)));
        command.output().unwrap_or_else(|e| panic!("{program}: {e}"))
    }

    /// Compiles `main.c` and links it with the kernel.
    pub fn link(&self, source: &str, extension: &str) {
        self.write("main.c", source.as_bytes());
        let library = format!("./kernel.{extension}");
        let args =
            ["-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror", "-D_POSIX_C_SOURCE=200809L", "-O1", "main.c"];
        let rest = ["-o", "main", "-lm", "-lpthread", "-Wl,--fatal-warnings", "-Wl,-rpath,$ORIGIN"];
        let args: Vec<&str> = args.into_iter().chain([&*library]).chain(rest).collect();
        succeeded("cc", &self.run("cc", &args, None));
    }
}

/// The program has said nothing and done everything.
pub fn succeeded(what: &str, output: &Output) {
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{what}: {}\n{out}\n{err}", output.status);
}

/// Whether a program is installed.
pub fn installed(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok_and(|o| o.status.success())
}

//! `--backend gpu` with a driver that is none: a library of the driver's name that a test has built, whose memory is
//! the host's and whose kernels do nothing. What goes wrong with cards is told with a code and a remedy; what is
//! assembled is kept; arrays stay on the device.

mod launcher;

use super::Sandbox;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

/// A chain of two launches through a tensor of the program's own.
const CHAIN: &str = "\
kernel twice(x: in f32[M, 64], y: out f32[M, 64]) {
    grid (i in tiles(M, 16));
    TSTORE(y.tile(i, _), 2.0 * Vec(x.tile(i, _)));
}

program four(x: in f32[M, 64], y: out f32[M, 64]) {
    let z = tensor f32[M, 64];
    twice(x, z);
    twice(z, y);
}
";

/// A sandbox with a driver.
struct Machine {
    sandbox: Sandbox,
}

impl Machine {
    fn new() -> Machine {
        let sandbox = Sandbox::new();
        sandbox.file("chain.tile", CHAIN);
        sandbox.file("driver/README", "");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/gpu/fake_cuda.c");
        let built = Command::new("cc")
            .args(["-shared", "-fPIC", "-w", "-Wl,-soname,libcuda.so.1", "-o"])
            .args([&sandbox.path().join("driver/libcuda.so.1"), &source])
            .status()
            .expect("a C compiler");
        assert!(built.success());
        Machine { sandbox }
    }

    fn output(&self, args: &str, mode: &str) -> Output {
        let path = |name: &str| self.sandbox.path().join(name);
        let mut command = self.sandbox.command(args);
        command.env("LD_LIBRARY_PATH", path("driver"));
        command.env("FAKE_CUDA", mode).env("FAKE_CUDA_LOG", path("log"));
        command.output().expect("it runs")
    }

    /// Runs a kernel of the sandbox on the card, in the mode that the driver has; standard error.
    fn run(&self, kernel: &str, mode: &str) -> String {
        let output = self.output(&format!("run {kernel} --target sm90 --backend gpu -D M=40 --random 1"), mode);
        String::from_utf8(output.stderr).expect("UTF-8")
    }

    /// What the driver was asked since the last time.
    fn asked(&self) -> Vec<String> {
        let log = self.sandbox.path().join("log");
        let text = fs::read_to_string(&log).unwrap_or_default();
        let _ = fs::remove_file(log);
        text.lines().map(str::to_owned).collect()
    }
}

fn count(asked: &[String], what: &str) -> usize {
    asked.iter().filter(|line| line.split(' ').next() == Some(what)).count()
}

#[test]
fn what_is_wrong_is_told_with_a_code() {
    let machine = Machine::new();
    for (mode, code, words, remedy) in [
        ("old", "E0731", "the driver is one of CUDA 11.8", "install a driver of CUDA 12.3 or later"),
        ("none", "E0731", "no CUDA-capable device is detected", "nvidia-smi"),
        ("ampere", "E0731", "Fake H100 has compute capability 8.0", "`--backend interp`"),
        ("memory", "E0732", "out of memory", "use smaller arrays"),
        ("fault", "E0732", "an illegal memory access", "on the PTX interpreter"),
        ("resources", "E0732", "cuLaunchKernel", "fewer threads or less shared memory"),
        ("refused", "E0732", "ptxas fatal : unsupported", "install a driver of CUDA 12.3 or later"),
    ] {
        let said = machine.run("chain.tile twice", mode);
        assert!(said.contains(&format!("error[{code}]")), "{mode}: {said}");
        assert!(said.contains(words) && said.contains(remedy), "{mode}: {said}");
    }
    // A library without the functions is a driver that is too old.
    let empty = machine.sandbox.path().join("empty.c");
    fs::write(&empty, "int nothing;").expect("written");
    let library = machine.sandbox.path().join("driver/libcuda.so.1");
    assert!(Command::new("cc").args(["-shared", "-o"]).args([&library, &empty]).status().expect("cc").success());
    let said = machine.run("chain.tile twice", "");
    assert!(said.contains("error[E0731]") && said.contains("the driver has no cuInit"), "{said}");
}

/// What has no PTX is shown where it stands, a whole kernel at its name, with what would do.
#[test]
fn what_has_no_ptx_is_told_with_its_place() {
    let machine = Machine::new();
    let parameters = (0..500).map(|n| format!("x{n}: inout f32[8]")).collect::<Vec<_>>().join(", ");
    let many = format!("kernel many({parameters}) {{\n    TSTORE(x0, 2.0 * Vec(x1));\n}}\n");
    machine.sandbox.file("many.tile", many);
    let print = "kernel said(x: inout f32[8]) {\n    let t = Vec(x);\n    print(\"t\", t);\n    TSTORE(x, t);\n}\n";
    machine.sandbox.file("said.tile", print);
    for (kernel, place, words, remedy) in [
        ("many", "many.tile:1:8", "503 parameters; a launch passes 500", "one tensor with a dimension more"),
        ("said", "said.tile:3:5", "`print` has no translation yet", "leave the `print` out for the GPU"),
    ] {
        let output = machine.output(&format!("emit {kernel}.tile {kernel} --target sm90 --stage ptx"), "");
        let said = String::from_utf8(output.stderr).expect("UTF-8");
        assert_eq!(output.status.code(), Some(1), "{said}");
        for part in ["error[E0730]", place, words, remedy] {
            assert!(said.contains(part), "{part}: {said}");
        }
    }
}

/// What is refused on a card, since no access is watched there, is told by `check`, with a remedy that helps.
#[test]
fn what_is_not_proved_is_told_before() {
    let machine = Machine::new();
    let kernel = |tiles: &str, fill: &str, part: &str| {
        format!(
            "kernel pick(x: in f32[M, N], y: out f32[M, N], b: index) where 0 <= b, b < 2 {{\n    \
             grid (i in tiles(M, 8), j in tiles(N, 32));\n    let t = {tiles};\n    {fill}\
             TLOAD(t[0]{part}, x.tile(i, j));\n    \
             TMULS(t[1]{part}, t[0]{part}, 2.0);\n    TSTORE(y.tile(i, j), t[b]{part});\n}}\n"
        )
    };
    machine.sandbox.file("open.tile", kernel("tile Vec<f32, i, j>[2]", "", ""));
    let fill = "for n in 0..2 { t[n] = 0.0; }\n    ";
    machine.sandbox.file("whole.tile", kernel("tile Vec<f32, 8, 32>[2]", fill, ".valid(i, j)"));
    let said = |args: &str| {
        let output = machine.output(args, "none");
        String::from_utf8([output.stdout, output.stderr].concat()).expect("UTF-8")
    };
    let sizes = "--target sm90 -D M=19 -D N=70 -D b=1";
    let open = said("check open.tile --target sm90");
    assert!(open.contains("warning[E1307]") && open.contains("tile Vec<f32, 8, 32>[2]"), "{open}");
    assert!(said(&format!("run open.tile {sizes} --random 1")).contains("error[E1307]"));
    assert!(said(&format!("run whole.tile {sizes} --random 1")).contains("error[E0731]"), "only the card is missing");
}

/// A test line takes the interpreter of PTX where the card cannot run it, and says why.
#[test]
fn the_stand_in_says_why() {
    let machine = Machine::new();
    machine.sandbox.file("line.tile", format!("// run: twice interp,gpu M=5 seed=1\n{CHAIN}"));
    for (mode, why) in [("old", "cuda-old-driver"), ("none", "cuda-no-device"), ("ampere", "compute capability 8.0")] {
        let output = machine.output("test line.tile", mode);
        let said = String::from_utf8(output.stdout).expect("UTF-8");
        assert!(output.status.success() && said.contains("gpu: PTX interpreter, no card ("), "{mode}: {said}");
        assert!(said.contains(why), "{mode}: {said}");
    }
    // There it runs on what looks like a card, which has other results.
    let output = machine.output("test line.tile", "");
    let said = String::from_utf8(output.stdout).expect("UTF-8");
    assert!(!output.status.success() && said.contains("gpu: Fake H100, CUDA 13.0"), "{said}");
}

/// Between the launches of a program its arrays stay on the device: one goes there, one comes back, and of what is made
/// there nothing is copied; beside them the words for failed checks.
#[test]
fn arrays_stay_on_the_device() {
    let machine = Machine::new();
    let said = machine.run("chain.tile four", "");
    assert!(!said.contains("error["), "{said}");
    let asked = machine.asked();
    let array = 40 * 64 * 4;
    let of = |what: &str| asked.iter().filter(|line| **line == format!("{what} {array}")).count();
    assert_eq!(count(&asked, "launch"), 2, "{asked:?}");
    assert_eq!((of("alloc"), of("to-device"), of("to-host")), (3, 1, 1), "{asked:?}");
}

/// What the card can do is measured on it, beside the kernel.
#[test]
fn a_kernel_is_held_against_the_card() {
    let machine = Machine::new();
    let output = machine.output("bench chain.tile twice --target sm90 -D M=40 --seconds 0.01", "");
    let said = String::from_utf8(output.stdout).expect("UTF-8");
    assert!(output.status.success(), "{said}");
    for words in ["machine  Fake H100", "copying as many bytes", "fused multiply-adds of f32"] {
        assert!(said.contains(words), "{words}: {said}");
    }
}

/// The card's instructions come of two programs of NVIDIA's, which may be missing, or fail.
#[cfg(unix)]
#[test]
fn instructions_of_the_card() {
    use std::os::unix::fs::PermissionsExt;
    let machine = Machine::new();
    let tools = machine.sandbox.path().join("tools");
    fs::create_dir(&tools).expect("a folder");
    let tool = |name: &str, script: &str| {
        let file = tools.join(name);
        fs::write(&file, format!("#!/bin/sh\n{script}\n")).expect("written");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).expect("may be run");
    };
    let emit = |mode: &str| {
        let mut command = machine.sandbox.command("emit chain.tile twice --target sm90 --stage sass -D M=40");
        command.env("LD_LIBRARY_PATH", machine.sandbox.path().join("driver")).env("FAKE_CUDA", mode);
        command.env("PATH", format!("{}:/usr/bin:/bin", tools.display())).env("CUDA_HOME", "/nowhere");
        let output = command.output().expect("it runs");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.success(), text(&output.stdout), text(&output.stderr))
    };
    tool("ptxas", "cat $2 > $4");
    tool("nvdisasm", "echo 'nvdisasm fatal : no ELF' >&2; exit 1");
    let (done, _, said) = emit("");
    assert!(!done && said.contains("error[E0733]") && said.contains("no ELF"), "{said}");
    tool("nvdisasm", "printf 'k:\\n\\t/*0000*/  NOP ; // '; cat $2; echo");
    fs::remove_file(tools.join("ptxas")).expect("removed");
    let (_, _, said) = emit("none");
    assert!(said.contains("error[E0733]") && said.contains("needs `ptxas`") || said.is_empty(), "{said}");
    tool("ptxas", "grep -c entry $2 > $4");
    let (done, said, _) = emit("none");
    assert!(done && said.contains("NOP ; // 1"), "{said}");
}

/// A launch that writes a part of a tensor where it is, and has another part of it in a buffer: what is on the device
/// comes to the host before the buffer does, which makes the host's the newer one.
#[test]
fn a_tensor_that_is_in_two_places() {
    let machine = Machine::new();
    let halves = "kernel add(a: in f32[M, 33], b: in f32[M, 33], c: out f32[M, 33]) {
    grid (i in tiles(M, 8));
    TSTORE(c.tile(i, _), Vec(a.tile(i, _)) + Vec(b.tile(i, _)));
}

program halves(y: inout f32[2, M, 33]) {
    add(y[1, _, _], y[1, _, _], y[0, _, _]);
}
";
    machine.sandbox.file("halves.tile", halves);
    let said = machine.run("halves.tile halves", "");
    assert!(!said.contains("error["), "{said}");
    let asked = machine.asked();
    let launch = asked.iter().position(|line| line.starts_with("launch"));
    let home = asked.iter().position(|line| line == "to-host 10560");
    assert!(launch.is_some() && launch < home, "{asked:?}");
}

const PRODUCT: &str = "\
kernel product(a: in f16[M, K], b: in f16[K, N], c: out f32[M, N]) {
    grid (m in tiles(M, 64), n in tiles(N, 64));
    let acc = tile Acc<f32, m, n>;
    acc = 0.0;
    for k in tiles(K, 64) {
        TMATMUL_ACC(acc, acc, Left(a.tile(m, k)), Right(b.tile(k, n)));
    }
    TSTORE(c.tile(m, n), acc);
}
";

/// A product on tensor cores has a tensor map of each operand; one that bulk copies do not take is told with the
/// dimension. With `--exact` there is none.
#[test]
fn tensor_maps_are_made() {
    let machine = Machine::new();
    machine.sandbox.file("product.tile", PRODUCT);
    let run = |sizes: &str| {
        let args = format!("run product.tile --target sm90 --backend gpu -D M=40 {sizes} --random 1");
        let output = machine.output(&args, "");
        let said = String::from_utf8(output.stderr).expect("UTF-8");
        (said, machine.asked().into_iter().filter(|line| line.starts_with("map ")).collect::<Vec<_>>())
    };
    let (said, maps) = run("-D N=72 -D K=104");
    assert!(!said.contains("W0762"), "{said}");
    assert_eq!(maps, ["map 4160", "map 7488"]);
    let (said, maps) = run("-D N=72 -D K=97");
    assert!(said.contains("`a` is loaded element by element: its rows are 194 bytes apart"), "{said}");
    assert!(said.contains("make `K` a multiple of 8") && !said.contains("`b` is loaded"), "{said}");
    assert_eq!(maps.len(), 2);
    let (said, maps) = run("-D N=72 -D K=97 --exact");
    assert!(!said.contains("W0762") && maps.is_empty(), "{said}");
}

/// Blocks of a cluster are launched together, as many clusters as run at once; where nothing is shared, that is said.
#[test]
fn clusters_are_launched_whole() {
    let machine = Machine::new();
    let clustered = PRODUCT.replace("n in tiles(N, 64))", "n in tiles(N, 64)) cluster(m = 2)");
    machine.sandbox.file("product.tile", &clustered);
    let run = |sizes: &str| {
        let args = format!("run product.tile --target sm90 --backend gpu {sizes} --random 1");
        let output = machine.output(&args, "");
        (String::from_utf8(output.stderr).expect("UTF-8"), machine.asked())
    };
    // The fake card runs two clusters at once; there are 3 x 2 of them here, and 1 x 1.
    // Each CTA has 40 bytes of status.
    for (sizes, ctas) in [("-D M=320 -D N=128 -D K=64", "alloc 168"), ("-D M=40 -D N=64 -D K=64", "alloc 88")] {
        let (said, asked) = run(sizes);
        assert!(!said.contains("warning"), "{said}");
        assert!(asked.iter().any(|line| line == "clusters 2"), "{asked:?}");
        assert!(asked.iter().any(|line| line == ctas), "{asked:?}");
    }
    let (said, _) = run("-D M=320 -D N=128 -D K=97");
    assert!(said.contains("W0762") && said.contains("the blocks of a cluster share nothing in this launch"), "{said}");
    let (said, asked) = run("-D M=320 -D N=128 -D K=64 --exact");
    assert!(said.contains("W0763") && said.contains("the blocks of a cluster of `product` share nothing"), "{said}");
    assert!(asked.iter().all(|line| !line.starts_with("clusters")), "{asked:?}");
}

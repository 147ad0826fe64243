//! `ptoc build` as a script sees it.

use super::Sandbox;
use std::fs;
use std::path::Path;
use std::process::Command;

#[test]
fn an_object_and_its_header_appear() {
    let s = Sandbox::new();
    let said = s.run("build add.tile add -o add.o --header add.h");
    assert_eq!(said, "$ ptoc build add.tile add -o add.o --header add.h\nexit 0\n");
    let object = fs::read(s.path().join("add.o")).unwrap();
    let header = fs::read_to_string(s.path().join("add.h")).unwrap();
    assert!(object.windows(4).any(|w| w == b"add\0"), "it has the symbol");
    assert!(header.contains("c = a + b") && header.contains("ptoc build add.tile add -o add.o"), "{header}");
    assert!(header.contains("int32_t add(const float *a,\n"), "{header}");
    let said = s.run("build add.tile scale -o scale.o -D s=2.0 -D N=64 --symbol twice --header twice.h");
    assert!(said.contains("exit 0"), "{said}");
    let header = fs::read_to_string(s.path().join("twice.h")).unwrap();
    assert!(header.contains("int32_t twice(const float *x,") && !header.contains("float s"), "{header}");
    assert!(header.contains("Compiled for s = 2.0, N = 64.") && !header.contains("int64_t N"), "{header}");
}

/// Whatever is wrong, nothing is written, and what was there stays.
#[test]
fn errors_leave_files_alone() {
    let s = Sandbox::new();
    s.file("old.o", "old");
    s.file("old.h", "old");
    s.file("row.tile", "kernel row(x: in f32[N], y: out f32[N]) { TSTORE(y, Vec(x)); }");
    let before = s.listing();
    for (args, code) in [
        ("add.tile add -o old.o --header nowhere/old.h", "E0742"),
        ("add.tile add -o old.o --header old.o", "E0742"),
        ("add.tile add -o old.o --header add.tile", "E0742"),
        ("add.tile add -o add.tile --header old.h", "E0734"),
        ("add.tile sub -o old.o --header old.h", "E0743"),
        ("add.tile -o old.o --header old.h", "E0744"),
        ("add.tile add -D X=1 -o old.o --header old.h", "E0745"),
        ("add.tile add -o old.exe --header old.h", "E0734"),
        ("add.tile add --symbol int -o old.o --header old.h", "E0734"),
        ("row.tile -o old.o --header old.h", "nothing to build yet"),
        ("missing.tile add -o old.o --header old.h", "E0740"),
    ] {
        let said = s.run(&format!("build {args}"));
        assert!(said.contains("exit 1") && said.contains(code), "{said}");
        assert_eq!(s.listing(), before, "{said}");
        for name in ["old.o", "old.h"] {
            assert_eq!(fs::read(s.path().join(name)).unwrap(), b"old", "{said}");
        }
    }
    assert!(s.run("build add.tile add").contains("exit 2"));
}

/// An archive needs the library of routines where its kernel calls some, and says where it is looked for.
#[test]
fn archives_say_what_they_lack() {
    let s = Sandbox::new();
    let source = "kernel sums(x: in f32[M, 64], y: out f32[M, 1]) { \
                  grid (i in tiles(M, 8)); TSTORE(y.tile(i, _), rowsum(Vec(x.tile(i, _)))); }";
    s.file("sums.tile", source);
    let said = s.run("build sums.tile -o sums.o");
    assert!(said.contains("exit 0") && said.contains("link `libptoc_native.a` behind it"), "{said}");
    for (runtime, why) in [("nowhere.a", "no file"), ("sums.o", "cannot be used")] {
        let mut command = s.command("build sums.tile -o sums.a");
        let output = command.env("PTOC_RUNTIME", runtime).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains("E0735") && (said.contains(why) || said.contains("cannot be used")), "{said}");
    }
    assert!(!s.listing().contains(&"sums.a".to_owned()));
    let output = s.command("build sums.tile -o sums.so").env("CC", "no-such-compiler").output().unwrap();
    assert!(String::from_utf8(output.stderr).unwrap().contains("E0735"));
    assert!(!s.listing().contains(&"sums.so".to_owned()));
}

/// PTX says how it is launched, and so does its header.
#[test]
fn ptx_says_how_it_is_launched() {
    let s = Sandbox::new();
    let said = s.run("build add.tile add --target sm90 -o add.ptx --header add_launch.h");
    assert!(said.contains("exit 0"), "{said}");
    let ptx = fs::read_to_string(s.path().join("add.ptx")).unwrap();
    let header = fs::read_to_string(s.path().join("add_launch.h")).unwrap();
    let emitted = s.command("emit add.tile add --target sm90 --stage ptx").output().unwrap();
    assert!(ptx.ends_with(std::str::from_utf8(&emitted.stdout).unwrap()), "{ptx}");
    assert!(ptx.starts_with("// Kernel `add` of add.tile") && ptx.contains("address of a"), "{ptx}");
    let parameters =
        ptx.lines().filter(|l| l.trim_start().starts_with(".param .u64") || l.contains(".param .b64")).count();
    assert!(header.contains(&format!("_PARAMETERS {parameters}\n")), "{parameters}\n{header}");
}

/// The programs of `examples` do what they say.
#[cfg(all(unix, target_arch = "x86_64"))]
#[test]
fn example_programs_run() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let s = Sandbox::new();
    for name in ["softmax.tile", "gemm.tile", "c/main.c", "c/CMakeLists.txt", "cpp/main.cpp", "cpp/CMakeLists.txt"] {
        s.file(name, fs::read(root.join("examples").join(name)).unwrap());
    }
    let run = |program: &str, args: &str| {
        let output = Command::new(program).current_dir(s.path()).args(args.split_whitespace()).output();
        let output = output.unwrap_or_else(|e| panic!("{program}: {e}"));
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{program} {args}: {text}{}", String::from_utf8_lossy(&output.stderr));
        text
    };
    assert!(s.run("build softmax.tile softmax -D N=8 -o libsoftmax.a --header softmax.h").contains("exit 0"));
    run("cc", "-std=c99 -Wall -Wextra -Werror -I. c/main.c libsoftmax.a -lm -lpthread -o softmax");
    let rows = run("./softmax", "");
    assert!(rows.lines().count() == 3 && rows.lines().all(|l| l.ends_with("sum 1.000")), "{rows}");
    assert!(s.run("build gemm.tile gemm -o libgemm.a --header gemm.h").contains("exit 0"));
    run("c++", "-std=c++11 -Wall -Wextra -Werror -I. cpp/main.cpp libgemm.a -lpthread -o gemm");
    run("./gemm", "");
    if Command::new("cmake").arg("--version").output().is_ok() {
        for name in ["c", "cpp"] {
            run("cmake", &format!("-S {name} -B made/{name} -DPTOC={}", env!("CARGO_BIN_EXE_ptoc")));
            run("cmake", &format!("--build made/{name}"));
            run(&format!("made/{name}/main"), "");
        }
    }
}

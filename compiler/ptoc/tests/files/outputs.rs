//! Outputs: what they may not replace, what they leave of the file before, and what is left when the process is ended.

use super::{Sandbox, assert_refused};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::process::Stdio;
use std::time::{Duration, Instant};

impl Sandbox {
    /// All files with what is in them.
    fn contents(&self) -> BTreeMap<String, Vec<u8>> {
        let read = |name: String| fs::read(self.path().join(&name)).ok().map(|bytes| (name, bytes));
        self.listing().into_iter().filter_map(read).collect()
    }

    /// A call that is refused as it would overwrite something, and leaves all as it was.
    fn overwrites(&self, args: &str, what: &str) {
        let before = (self.listing(), self.contents());
        let run = self.run(args);
        assert_refused(&run, "E0742");
        assert!(run.contains(what), "{args}: {run}");
        assert_eq!((self.listing(), self.contents()), before, "{args}");
    }
}

#[test]
fn sources_stay() {
    let s = Sandbox::with_parts();
    symlink("k.tile", s.path().join("soft")).unwrap();
    symlink("soft", s.path().join("softer")).unwrap();
    fs::hard_link(s.path().join("parts.tile"), s.path().join("hard")).unwrap();
    fs::create_dir(s.path().join("folder")).unwrap();
    symlink(s.path(), s.path().join("folder/up")).unwrap();
    for path in
        ["k.tile", "parts.tile", "./k.tile", "folder/../k.tile", "folder/up/parts.tile", "soft", "softer", "hard"]
    {
        for args in [
            format!("emit k.tile add --stage ir -o {path}"),
            format!("emit k.tile add --stage pim --target hbm-pim -o {path}"),
            format!("emit k.tile add --html {path}"),
            format!("mem k.tile add --html {path}"),
            format!("mem k.tile add --svg {path}"),
            format!("mem k.tile add --source -o {path}"),
            format!("run k.tile add --in a=a.npy --in b=b.npy --out c={path}"),
            format!("run k.tile add --in a=a.npy --in b=b.npy --trace {path}"),
        ] {
            // A stream needs a kernel that units in memory can run; this one may be refused for another reason.
            if !args.contains("--stage pim") {
                s.overwrites(&args, "a source of this call");
            }
        }
    }
    // Stages of the text alone read the one file.
    s.overwrites("emit k.tile --stage ast -o k.tile", "a source of this call");
    s.overwrites("emit k.tile --stage tokens -o soft", "`soft`: it is the file `k.tile`");
}

#[test]
fn arrays_of_the_call_stay() {
    let s = Sandbox::with_parts();
    fs::copy(s.path().join("a.npy"), s.path().join("want.npy")).unwrap();
    symlink("a.npy", s.path().join("link.npy")).unwrap();
    s.overwrites("run k.tile add --in a=a.npy --in b=b.npy --out c=a.npy", "it is the array of `a`");
    s.overwrites(
        "run k.tile add --in a=a.npy --in b=b.npy --out c=link.npy",
        "it is the file `a.npy`, the array of `a`",
    );
    s.overwrites("run k.tile add --in a=a.npy --in b=b.npy --trace b.npy", "the array of `b`");
    let args = "run k.tile fixed --in a=a.npy --expect c=want.npy --out c=want.npy";
    s.overwrites(args, "it is the array that `c` is compared with");
    // An argument that is updated is updated in place, if that is asked for, also by a link to it.
    for path in ["a.npy", "link.npy"] {
        let before = s.read("a.npy").to_f64s();
        let run = s.run(&format!("run k.tile next --in x=a.npy --out x={path}"));
        assert!(run.contains("exit 0"), "{run}");
        let after: Vec<f64> = before.iter().map(|x| x + 1.0).collect();
        assert_eq!(s.read("a.npy").to_f64s(), after);
    }
    assert!(fs::symlink_metadata(s.path().join("link.npy")).unwrap().is_symlink());
}

#[test]
fn outputs_keep_apart() {
    let s = Sandbox::with_parts();
    symlink("nowhere.npy", s.path().join("dangling")).unwrap();
    symlink("loop", s.path().join("loop")).unwrap();
    symlink(".", s.path().join("here")).unwrap();
    s.file("old.npy", "old");
    fs::hard_link(s.path().join("old.npy"), s.path().join("twin.npy")).unwrap();
    let run = |c: &str, t: &str| format!("run k.tile add --in a=a.npy --in b=b.npy --out c={c} --trace {t}");
    for (c, t) in [
        ("x", "./x"),
        ("here/x", "x"),
        ("here/here/x", "./here/x"),
        ("nowhere.npy", "dangling"),
        ("dangling", "nowhere.npy"),
        ("dangling", "here/dangling"),
        ("old.npy", "twin.npy"),
    ] {
        s.overwrites(&run(c, t), "it is written twice");
    }
    s.overwrites(&run("loop", "t.json"), "links lead in a circle");
    // A link that leads nowhere stays a link, and leads to the new file.
    assert!(s.run(&run("dangling", "t.json")).contains("exit 0"));
    assert_eq!(s.read("nowhere.npy").shape(), [3, 4]);
    assert!(fs::symlink_metadata(s.path().join("dangling")).unwrap().is_symlink());
}

#[test]
fn what_is_simulated_stays() {
    let s = Sandbox::new();
    s.file("d.toml", s.preset());
    s.file("r.txt", "R 0\n");
    s.overwrites("dram r.txt --config d.toml --commands r.txt", "it is the trace of this call");
    s.overwrites("dram r.txt --config d.toml --commands d.toml", "it is the configuration of this call");
    s.overwrites("dram r.txt --config d.toml --trace ./r.txt", "it is the file `r.txt`, the trace of this call");
    assert!(s.run("dram r.txt --config d.toml --commands c.json").contains("exit 0"));
    s.overwrites("dram --check-trace c.json --config d.toml --trace c.json", "the command trace of this call");
    s.file(
        "k.tile",
        "kernel scale(x: in f16[256, 64], y: out f16[256, 64]) { grid (i in tiles(256, 1)); TSTORE(y.tile(i, _), \
        Vec(x.tile(i, _)) * 2.0); }\n",
    );
    let emitted = s.run("emit k.tile scale --stage pim --target hbm-pim -o k.pim");
    assert!(emitted.contains("exit 0"), "{emitted}");
    s.array("x.npy", ptoc_tensor::DType::F16, &[256, 64]);
    s.overwrites("sim k.pim --in x=x.npy --out y=k.pim", "it is the stream of this call");
    s.overwrites("sim k.pim --in x=x.npy --out y=x.npy", "it is the array of `x`");
    s.overwrites("sim k.pim --in x=x.npy --out y=y.npy --trace ./y.npy", "it is written twice");
    s.overwrites("emit k.tile scale --stage pim --target hbm-pim -o k.tile", "a source of this call");
}

impl Sandbox {
    /// The text of a preset.
    fn preset(&self) -> Vec<u8> {
        self.command("dram --presets hbm2_2000").output().unwrap().stdout
    }
}

#[test]
fn a_new_file_is_like_the_one_before() {
    let s = Sandbox::with_parts();
    s.file("c.npy", "old");
    let path = s.path().join("c.npy");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    let before = fs::metadata(&path).unwrap();
    let mut open = fs::File::open(&path).unwrap();
    assert!(s.run("run k.tile add --in a=a.npy --in b=b.npy --out c=c.npy").contains("exit 0"));
    let after = fs::metadata(&path).unwrap();
    assert_eq!((after.mode(), after.uid(), after.gid()), (before.mode(), before.uid(), before.gid()));
    // Who has the old file open still has it: it was replaced, not changed.
    let mut old = String::new();
    std::io::Read::read_to_string(&mut open, &mut old).unwrap();
    assert_eq!(old, "old");
    s.file("k.tile", "kernel  k(x: in f32[M]){}\n");
    fs::set_permissions(s.path().join("k.tile"), fs::Permissions::from_mode(0o600)).unwrap();
    assert!(s.run("fmt k.tile").contains("exit 0"));
    assert_eq!(fs::metadata(s.path().join("k.tile")).unwrap().mode() & 0o777, 0o600);
    assert_eq!(s.listing(), ["a.npy", "add.tile", "b.npy", "c.npy", "k.tile", "parts.tile"]);
}

#[test]
fn what_fits_nowhere_leaves_nothing() {
    let s = Sandbox::with_parts();
    s.array("big.npy", ptoc_tensor::DType::F32, &[64, 64]);
    s.file("c.npy", "old");
    let before = (s.listing(), s.contents());
    let run = s.shell("ulimit -f 1; $P run k.tile next --in x=big.npy --out x=c.npy");
    assert_refused(&run, "E0742");
    assert!(run.contains("file too large"), "{run}");
    assert_eq!((s.listing(), s.contents()), before);
}

/// The process waits for a pipe that nobody writes to, its output planned; then a signal ends it.
#[test]
fn signals_leave_nothing() {
    let s = Sandbox::with_parts();
    s.file("c.npy", "old");
    let before = s.contents();
    for (signal, number) in [("TERM", 15), ("INT", 2), ("HUP", 1), ("KILL", 9)] {
        // Its input is a pipe that stays empty.
        let args = "run k.tile next --expect x=/dev/stdin --in x=a.npy --out x=c.npy";
        let mut command = s.command(args);
        // Whoever runs the tests in the background may ignore some of them.
        // SAFETY: `signal` may be called between fork and exec.
        unsafe {
            std::os::unix::process::CommandExt::pre_exec(&mut command, || {
                for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGHUP] {
                    libc::signal(signal, libc::SIG_DFL);
                }
                Ok(())
            })
        };
        let mut child = command.stdin(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let at_work = format!("/proc/{}/fd", child.id());
        let holds = |name: &str| {
            let open = fs::read_dir(&at_work).into_iter().flatten().flatten();
            open.filter_map(|fd| fs::read_link(fd.path()).ok()).any(|to| to.to_string_lossy().contains(name))
        };
        let begin = Instant::now();
        while cfg!(target_os = "linux") && !holds(&s.path().display().to_string()) {
            assert!(begin.elapsed() < Duration::from_secs(20), "it does not begin");
            std::thread::sleep(Duration::from_millis(1));
        }
        let killed = std::process::Command::new("kill").arg(format!("-{signal}")).arg(child.id().to_string()).status();
        assert!(killed.unwrap().success());
        let status = child.wait().unwrap();
        assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(number), "{signal}");
        assert_eq!(s.contents(), before, "{signal}");
        assert_eq!(s.listing(), ["a.npy", "add.tile", "b.npy", "c.npy", "k.tile", "parts.tile"], "{signal}");
    }
}

//! Every test line of `examples`.

use crate::harness::{How, Outcome, lines, run};
use std::path::PathBuf;

fn examples() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples")
}

/// Runs on a stack that the front end may recurse on.
fn with_stack<T: Send>(f: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let worker = std::thread::Builder::new().stack_size(128 << 20).spawn_scoped(scope, f).expect("a thread");
        worker.join().expect("no panic")
    })
}

#[test]
fn all() {
    let only = std::env::var("ONLY").unwrap_or_default();
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(examples()).expect("examples").map(|e| e.expect("an entry").path()).collect();
    files.retain(|p| p.extension().is_some_and(|e| e == "tile") && p.display().to_string().contains(&only));
    files.sort();
    with_stack(|| {
        let (mut same, mut elsewhere, mut rest) = (0, 0, Vec::new());
        for file in &files {
            for (line, directive) in lines(file) {
                let begin = std::time::Instant::now();
                let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
                match run(file, &directive, How::default()) {
                    Outcome::Same(stats) => {
                        same += 1;
                        println!("ok {name} {line} {stats:?} {:?}", begin.elapsed());
                    }
                    Outcome::Elsewhere => elsewhere += 1,
                    Outcome::Refused(why) => rest.push(format!("refused {name} {line}: {why}")),
                    Outcome::Wrong(why) => {
                        println!("WRONG {name} {line}: {why}");
                        rest.push(format!("WRONG {name} {line}: {why}"));
                    }
                }
            }
        }
        println!("{same} the same, {elsewhere} for other machines, {} not:", rest.len());
        rest.iter().for_each(|line| println!("{line}"));
        assert!(!rest.iter().any(|r| r.starts_with("WRONG")));
    });
}

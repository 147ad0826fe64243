//! The programs do what they say.

use std::process::Command;

fn output(program: &str) -> String {
    let output = Command::new(program).output().expect("Cargo has built it");
    let text = String::from_utf8(output.stdout).expect("it prints text");
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    text
}

#[test]
fn softmax_sums_to_one() {
    let text = output(env!("CARGO_BIN_EXE_softmax"));
    assert_eq!(text.matches("sum 1.000").count(), 5, "{text}");
    assert!(text.contains("error[") && text.contains("softmax.tile"), "{text}");
}

#[test]
fn gemm_is_what_it_ensures() {
    let text = output(env!("CARGO_BIN_EXE_gemm"));
    let line = text.lines().find(|l| l.starts_with("C[64, 80]")).unwrap_or_else(|| panic!("{text}"));
    let numbers = line.rsplit_once("= ").and_then(|(_, rest)| rest.split_once(", expected "));
    let (have, want) = numbers.expect("two numbers");
    assert_eq!(have, want, "{text}");
    assert!(text.contains("C: 5120 elements as expected"), "{text}");
}

//! Generates the parser from `src/grammar.lalrpop`. A grammar error is printed and ends the build.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let done = lalrpop::Configuration::new().emit_rerun_directives(true).use_cargo_dir_conventions().process();
    if let Err(error) = done {
        eprintln!("grammar.lalrpop: {error}");
        std::process::exit(1);
    }
}

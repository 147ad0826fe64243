//! Compiles the generated parser.

fn main() {
    cc::Build::new().include("src").file("src/parser.c").flag_if_supported("-Wno-unused").compile("tree-sitter-tile");
    println!("cargo:rerun-if-changed=src/parser.c");
}

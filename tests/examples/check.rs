//! Shows what a check says: `cargo run -p ptoc-tests --example check -- FILE [--target T] [-D NAME=VALUE]...`

use ptoc_tests::front::{Flags, check};

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let Some((path, flags)) = words.split_first() else { return eprintln!("which file?") };
    let text = std::fs::read_to_string(path).expect("readable");
    let flags = match flags.is_empty() {
        true => Flags::of_comments(&text),
        false => Flags::parse(flags.iter().map(String::as_str)),
    };
    let checked = check(path, &text, &flags, std::path::Path::new(path).parent().map(Into::into));
    println!("{}\n{} kernels compiled", checked.text(), checked.compiled);
}

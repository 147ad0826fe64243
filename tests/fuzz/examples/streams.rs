//! Writes the binary forms of the committed text streams to `tests/corpus/stream`.

use ptoc_pim_stream::Stream;
use std::fs;
use std::path::Path;

fn main() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../corpus");
    for entry in fs::read_dir(corpus.join("machine")).expect("a directory") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        if !name.starts_with("seed-") {
            continue;
        }
        let text = fs::read_to_string(&path).expect("text");
        let stream = Stream::parse(&text).unwrap_or_else(|e| panic!("{name}: {e}")).stream;
        fs::write(corpus.join("stream").join(name), stream.encode().expect("a form")).expect("written");
    }
}

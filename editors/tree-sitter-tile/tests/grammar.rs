//! The grammar for editors against the compiler's: what the compiler parses has a tree without errors, and the names of
//! dtypes, locations and instructions are coloured as what they are.

use std::fs;
use std::path::{Path, PathBuf};

use ptoc_diagnostics::{Diagnostic, SourceMap};
use ptoc_isa::{InstrId, Loc};
use ptoc_tensor::DType;
use tree_sitter::{Language, Parser, Query, QueryCursor, StreamingIterator, Tree};

fn language() -> Language {
    tree_sitter_tile::LANGUAGE.into()
}

fn tree(text: &str) -> Tree {
    let mut parser = Parser::new();
    parser.set_language(&language()).expect("the library reads this version");
    parser.parse(text, None).expect("no time limit is set")
}

/// Every `.tile` file below `folder`.
fn programs(folder: &Path, out: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder of the repository").map(|e| e.expect("an entry").path()) {
        if entry.is_dir() {
            programs(&entry, out);
        } else if entry.extension().is_some_and(|e| e == "tile") {
            out.push(entry);
        }
    }
}

/// Without the errors of test lines, which are comments to an editor.
fn compiler_accepts(text: &str) -> bool {
    let mut sources = SourceMap::new();
    let file = sources.add("f.tile", text);
    !ptoc_syntax::parse(file, text).diagnostics.iter().any(Diagnostic::is_error)
}

#[test]
fn what_the_compiler_parses_has_a_tree_without_errors() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files = Vec::new();
    for folder in ["examples", "stdlib", "tests", "compiler"] {
        programs(&root.join(folder), &mut files);
    }
    let (mut good, mut found) = (0, 0);
    for path in files {
        let Ok(text) = fs::read_to_string(&path) else { continue };
        let tree = tree(&text);
        if compiler_accepts(&text) {
            good += 1;
            assert!(!tree.root_node().has_error(), "{}: {}", path.display(), tree.root_node());
        } else {
            found += usize::from(tree.root_node().has_error());
        }
    }
    assert!(good > 400, "{good} programs");
    assert!(found >= 9, "of the broken ones, {found} have an error in the tree");
}

/// What the highlighting says of the first place where `word` stands: the last capture counts.
fn colour(text: &str, word: &str) -> String {
    let query = Query::new(&language(), tree_sitter_tile::HIGHLIGHTS_QUERY).expect("a query");
    let tree = tree(text);
    let mut cursor = QueryCursor::new();
    let mut captures = cursor.captures(&query, tree.root_node(), text.as_bytes());
    let at = text.find(word).expect("the word is there");
    let mut best = (0, "");
    while let Some((found, k)) = captures.next() {
        let capture = found.captures[*k];
        if capture.node.byte_range() == (at..at + word.len()) && found.pattern_index >= best.0 {
            best = (found.pattern_index, query.capture_names()[capture.index as usize]);
        }
    }
    best.1.to_owned()
}

#[test]
fn names_of_the_language_have_their_colours() {
    for dtype in DType::ALL {
        let text = format!("fn k(a: {}) -> f32 {{ a }}", dtype.name());
        assert_eq!(colour(&text, dtype.name()), "type.builtin", "{text}");
    }
    for loc in Loc::ALL {
        let text = format!("kernel k() {{ let t = tile {}<f32, 1, 8>; }}", loc.name());
        assert_eq!(colour(&text, loc.name()), "type", "{text}");
    }
    for id in InstrId::all() {
        let name = id.get().name;
        let text = format!("kernel k() {{ {name}(a, b); }}");
        assert_eq!(colour(&text, name), "function.builtin", "{text}");
    }
    let text = "/// Says.\n// run: k interp N=3\nkernel ab<const CD = 4>(xy: in f32[M]) { exp(xy); role mover { } }";
    for (word, name) in [
        ("/// Says.", "comment.documentation"),
        ("// run: k interp N=3", "comment.test"),
        ("ab", "function"),
        ("CD", "constant"),
        ("xy", "variable.parameter"),
        ("exp", "function.call"),
        ("mover", "label"),
    ] {
        assert_eq!(colour(text, word), name, "{word}");
    }
}

/// The queries of a folder, by their paths; every pattern of each finds something in some program of the repository.
fn queries_that_find(folder: &Path) -> Vec<(PathBuf, Query)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files = Vec::new();
    for part in ["examples", "stdlib", "tests"] {
        programs(&root.join(part), &mut files);
    }
    let mut texts: Vec<String> = files.iter().filter_map(|path| fs::read_to_string(path).ok()).collect();
    // What is rare.
    texts.push("fn f(x: f32) -> f32 { print(\"x\\n\"); x }".into());
    let trees: Vec<Tree> = texts.iter().map(|text| tree(text)).collect();
    let entries = fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let mut all: Vec<PathBuf> = entries.map(|e| e.expect("an entry").path()).collect();
    all.sort();
    let queries = all.into_iter().map(|path| {
        let source = fs::read_to_string(&path).expect("text");
        let query = Query::new(&language(), &source).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let mut found = vec![false; query.pattern_count()];
        for (tree, text) in trees.iter().zip(&texts) {
            let mut cursor = QueryCursor::new();
            let mut matches = cursor.matches(&query, tree.root_node(), text.as_bytes());
            while let Some(m) = matches.next() {
                found[m.pattern_index] = true;
            }
        }
        if let Some(idle) = found.iter().position(|found| !found) {
            let at = query.start_byte_for_pattern(idle);
            panic!("{}: nothing is like `{}`", path.display(), source[at..].lines().next().unwrap_or_default());
        }
        (path, query)
    });
    queries.collect()
}

#[test]
fn every_pattern_of_the_queries_finds_something() {
    assert_eq!(queries_that_find(&Path::new(env!("CARGO_MANIFEST_DIR")).join("queries")).len(), 5);
}

/// What its installation makes: queries with the names that Helix knows, and a configuration that leads here, once.
#[test]
#[cfg(unix)]
fn helix_gets_what_it_knows() {
    let home = Path::new(env!("CARGO_TARGET_TMPDIR")).join("helix");
    let _ = fs::remove_dir_all(&home);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../helix/install.sh");
    for _ in 0..2 {
        let status = std::process::Command::new("sh").arg(&script).env("XDG_CONFIG_HOME", &home).status();
        assert!(status.expect("there is a shell").success());
    }
    let folder = home.join("helix");
    let known = [
        (
            "highlights",
            "attribute comment constant function keyword label namespace operator punctuation string type variable",
        ),
        ("folds", "fold"),
        ("indents", "indent outdent"),
        ("locals", "local"),
        ("tags", "definition name reference"),
        ("textobjects", "comment function parameter"),
    ];
    let queries = queries_that_find(&folder.join("runtime/queries/tile"));
    assert_eq!(queries.len(), known.len());
    for (path, query) in queries {
        let (_, words) = known.iter().find(|(name, _)| path.file_stem() == Some(name.as_ref())).expect("it is read");
        for capture in query.capture_names() {
            let first = capture.split('.').next().unwrap_or_default();
            assert!(words.split(' ').any(|w| w == first), "{}: @{capture}", path.display());
            assert_ne!(*capture, "local.definition", "it says how references are coloured");
        }
    }
    let text = fs::read_to_string(folder.join("languages.toml")).expect("the configuration");
    assert_eq!(text.matches("[[language]]").count(), 1, "{text}");
    let (_, rest) = text.split_once("source = { path = \"").expect("a grammar");
    let (path, rest) = rest.split_once('"').expect("a path");
    assert!(Path::new(path).join("src/parser.c").is_file() && rest.trim() == "}", "{text}");
}

/// The tree of `text`: node kinds in brackets, as tree-sitter prints them.
fn shape(text: &str) -> String {
    tree(text).root_node().to_sexp()
}

#[test]
fn the_angle_has_three_meanings() {
    let statics = shape("fn f() -> f32 { sum<k>(k) }");
    assert!(statics.contains("static_arguments") && !statics.contains("binary"), "{statics}");
    let tiler = shape("fn f() -> view { composition(t, <_, 8:1>) }");
    assert!(tiler.contains("(tiler (hole) (layout"), "{tiler}");
    for text in ["fn f() -> bool { a < b }", "fn f() -> bool { a[0]<b }", "fn f() -> bool { a <b }"] {
        let compare = shape(text);
        assert!(compare.contains("(binary_expression left:") && !compare.contains("static"), "{compare}");
    }
}

#[test]
fn a_broken_line_leaves_the_rest() {
    let text = "kernel a() { let x = ; }\nkernel b() { TADD(x, y, z); }\n";
    let tree = shape(text);
    assert_eq!(tree.matches("kernel_item").count(), 2, "{tree}");
    assert!(tree.contains("ERROR") || tree.contains("MISSING"), "{tree}");
}

#[test]
fn records_and_closures_have_nodes_of_their_own() {
    let record = shape("fn f() -> (x: f32, y: f32) { (x = 1.0, y = 2.0) }");
    assert!(record.contains("(record (record_field name:") && !record.contains("ERROR"), "{record}");
    let one = shape("fn f() -> (x: f32,) { (x = 1.0,) }");
    assert!(one.contains("(record (record_field"), "{one}");
    let closure = shape("fn f(g: fn) -> fn { |v: f32, w| g(v) | w }");
    assert!(closure.contains("(function_type)") && closure.contains("body: (binary_expression"), "{closure}");
    let block = shape("kernel k() { let f = |v| { let w = v; w }; f(1 | 2); }");
    assert!(block.contains("(closure (closure_parameter") && block.contains("body: (block"), "{block}");
    let statics = shape("kernel k() { apply<|v| v * 2, g = |v| -v>(t); }");
    assert_eq!(statics.matches("(closure (closure_parameter").count(), 2, "{statics}");
}

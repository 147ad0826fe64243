use super::*;
use crate::modules::NoImports;
use ptoc_diagnostics::Diagnostic;

/// The index of a text that imports nothing, and what is wrong with the text.
fn index(text: &str) -> (NameIndex, FileId, Vec<Diagnostic>) {
    let mut sources = SourceMap::new();
    let file = sources.add("test", text);
    let mut found = Vec::new();
    let modules = Modules::load(file, text, &mut NoImports, &mut found);
    crate::check_names(&modules, &mut found);
    (NameIndex::new(&modules, &sources), file, found)
}

/// `name@line` for each occurrence of what is called so at `at`, with its access.
fn uses(text: &str, at: &str) -> String {
    let (index, file, _) = index(text);
    let offset = text.find(at).expect("it is there") as u32;
    let occurrence = index.at(file, offset).unwrap_or_else(|| panic!("nothing at {at}"));
    let Meaning::Source(name) = occurrence.meaning else { return format!("{:?}", occurrence.meaning) };
    let line = |s: Span| text[..s.start as usize].matches('\n').count() + 1;
    let kind = index.definition(name).expect("it is defined").kind;
    let all = index.occurrences(name).map(|o| format!(" {}:{:?}", line(o.span), o.access));
    format!("{kind:?}{}", all.collect::<String>())
}

const TEXT: &str = r#"// run: scale interp,cpu M=64 BM=32 act=twice
fn twice(x: f32) -> f32 { x + x }
kernel scale<const BM = 64, type T = f32, fn act = twice>(a: in T[M, N], c: out T[M, N])
    where N <= 64
    ensures c[i, j] == act(a[i, j])
{
    static_assert(BM % 16 == 0, "got {BM} of \u{4D}");
    grid (i in tiles(M, BM));
    let t = tile Vec<T, i, N>;
    TLOAD(t, a.tile(i, _));
    for k in 0..2 { let t = k; print("{t}"); }
    t += T(1.0);
    TSTORE(c.tile(i, _), act(t));
}
program p(x: in f32[M, N], y: out f32[M, N]) { scale<BM = 32>(a = x, c = y); }
"#;

#[test]
fn occurrences_are_those_of_their_definitions() {
    assert_eq!(index(TEXT).2, []);
    assert_eq!(uses(TEXT, "BM = 64"), "ConstParam 1:Mention 3:Define 7:Read 7:Mention 8:Read 15:Mention");
    assert_eq!(uses(TEXT, "M=64"), "Dimension 1:Mention 3:Define 3:Read 8:Read");
    assert_eq!(uses(TEXT, "twice(x"), "Function 1:Mention 2:Define 3:Read");
    assert_eq!(uses(TEXT, "t = tile"), "Let 9:Define 10:Write 12:Write 13:Read");
    assert_eq!(uses(TEXT, "t = k"), "Let 11:Define 11:Mention");
    assert_eq!(uses(TEXT, "c: out"), "Tensor 3:Define 5:Read 13:Write 15:Mention");
    assert_eq!(uses(TEXT, "i, j] =="), "BoundIndex 5:Define 5:Read");
    assert_eq!(uses(TEXT, "scale<BM"), "Kernel 1:Mention 3:Define 15:Read");
    assert_eq!(uses(TEXT, "x, c = y"), "Tensor 15:Define 15:Read");
    assert!(uses(TEXT, "TLOAD").starts_with("Known(Instruction"));
    assert_eq!(uses(TEXT, "Vec<T"), "Known(Loc)");
}

#[test]
fn what_can_be_named() {
    let (index, file, _) = index(TEXT);
    let names = |at: &str| {
        let offset = TEXT.find(at).expect("it is there") as u32;
        let all = index.visible(file, offset).into_iter().map(|d| format!("{} {:?}", d.name, d.kind));
        all.collect::<Vec<_>>().join(", ")
    };
    assert_eq!(
        names("print("),
        "t Let, k LoopVariable, i LoopVariable, c Tensor, N Dimension, M Dimension, a Tensor, act FnParam, T \
        TypeParam, BM ConstParam, p Program, scale Kernel, twice Function"
    );
    assert_eq!(names("x + x"), "x Parameter, p Program, scale Kernel, twice Function");
}

/// Whatever is cut off a text: every occurrence is a name of the text, and stands for a name that is spelled so.
#[test]
fn broken_texts_have_an_index() {
    for end in (0..TEXT.len()).filter(|e| TEXT.is_char_boundary(*e)) {
        for text in [TEXT[..end].to_owned(), format!("{}{}", &TEXT[..end], &TEXT[(end + 3).min(TEXT.len())..])] {
            let (index, file, _) = index(&text);
            let of = |s: Span| &text[s.range()];
            for o in &index.file(file).unwrap().occurrences {
                let word = of(o.span);
                assert!(!word.is_empty() && word.chars().all(|c| c.is_alphanumeric() || c == '_'), "{word:?}\n{text}");
                if let Meaning::Source(at) = o.meaning {
                    assert_eq!(of(at), word, "{text}");
                    assert!(index.definition(at).is_some(), "{word} has no definition\n{text}");
                }
            }
        }
    }
}

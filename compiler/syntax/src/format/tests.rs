use super::{Refused, format};
use ptoc_diagnostics::SourceMap;

fn formatted(text: &str) -> String {
    let mut sources = SourceMap::new();
    let file = sources.add("t.tile", text);
    let once = format(file, text).unwrap_or_else(|why| panic!("{why:?}\n{text}"));
    let file = sources.add("t.tile", once.as_str());
    assert_eq!(format(file, &once).unwrap(), once, "it is canonical");
    once
}

#[test]
fn blanks_between_tokens() {
    let text = "\
fn f<const N=2,type T=f32>( x:T,y :[f32;] )->f32{-x*( - y )+a [ 1 ] . b<N>(!c,d=1)}
";
    // Not all of it is a program: the grammar decides what is broken.
    let mut sources = SourceMap::new();
    assert!(matches!(format(sources.add("t.tile", text), text), Err(Refused::Broken(_))));
    let text = "\
#[ sync( manual ) ]
kernel k<const N=2  tune[1,2],type T=f32,fn act=relu>( x:in f32[M,N],y :out f32[ (A,B):(1,A) ],s:f32=-1.0 )where \
M>=1,N%2==0 ensures y==x{grid( i in tiles(M,16),j in 0 .. N )raster( along=N ) ;
let a,b :index=N*( - 2 )+1;let (c,d)=g( a,b ) ; let t=tile Vec<f32,i,j>[ 2 ] at[0,0x10];
  for k in 0..N{t+=a;  }
  if a <b&&!c{x[i,j]=1@0;}
  else{y=<4:1,(2,2) : (1,2)>;}
pipeline (stages=2)for k in tiles(N,4){}
role r{f( x.at(1) );}
let at=at ;return; }
";
    insta::assert_snapshot!(formatted(text));
}

#[test]
fn lines_and_their_indentation() {
    insta::assert_snapshot!(formatted(
        "\
//! A file.


  // about f
fn f(a: f32,
   b: f32,
        c: f32) -> f32
{

  // first
let x = a
+ b

  + g(
c,
h(a,
b),
)
;


let y = if x > 0.0 {
x } else
{ -x };
  // last

}
kernel long_name<const A = 1,
const B = 2>
   (x: in f32[M],
y: out f32[M])
where A >= 1,
B >= 1
ensures y[i] == sum<k>(
x[k]
* x[k])
{ grid (i in
tiles(M, 16)); } // after
kernel short<const A = 1>
              (x: in f32[M]) {}
"
    ));
}

#[test]
fn columns_that_the_author_aligned() {
    insta::assert_snapshot!(formatted(
        "\
kernel k(x: in f32[M],
         longer:  in f32[M],
         yy:      in f32[M]) {
  let a   = 1;       // one
  let bcd = 2;       // two
  let ef  = a+bcd;   // three
                     // goes on
  let g  = 4;   // four
  let hi   = 5; // five
  wait(a);       TLOAD(a, b);  set(c);
  wait(longer);  TADD(a);      set(d);

  f(a);   // alone
}
"
    ));
}

#[test]
fn line_ends_and_comments() {
    assert_eq!(formatted("// a  \r\n\r\n\r\n\r\n// b\t\r\n"), "// a\r\n\r\n// b\r\n");
    // Lines end as most of them do; as they do elsewhere, if as many end otherwise.
    assert_eq!(formatted("// a\r\n// b\r\n// c\n// d"), "// a\r\n// b\r\n// c\r\n// d\r\n");
    assert_eq!(formatted("// a\r\n// b\n// c"), "// a\n// b\n// c\n");
    assert_eq!(formatted(""), "");
    assert_eq!(formatted("\n\n\n"), "");
    assert_eq!(formatted("fn f() {}"), "fn f() {}\n");
    assert_eq!(formatted("fn f() { // why\n}"), "fn f() { // why\n}\n");
    assert_eq!(formatted("fn f() {\n\n    // why\n\n}"), "fn f() {\n    // why\n}\n");
    assert_eq!(formatted("/// d\nfn f() {} fn g() {}"), "/// d\nfn f() {}\nfn g() {}\n");
    let hanging = "kernel g(x: in f32[M])\n    where // z\n        M >= 1,\n        // y\n        M < 9\n{\n}\n";
    assert_eq!(
        formatted("kernel g(x: in f32[M])\nwhere\n // z\nM >= 1, \n // y\n  M < 9 {\n}\n").matches("        M").count(),
        2
    );
    assert_eq!(formatted(hanging), hanging.replace("{\n}", "{}"));
}

/// Lines stand where the author has those of the same bracket or clause: not of a block in between, which were none, or
/// of what padding moves.
#[test]
fn lines_that_go_on_are_where_they_were() {
    let head = "fn f(x: f32) -> f32 {\n    let long_name = ";
    let block = "g(if x > 0.0 {\n        x\n    } else { 1.0 },\n";
    for (rest, column) in [
        ("g(if x > 0.0 { x\n} else { 1.0 },\n                           2.0);\n}\n", 22),
        ("g(if x > 0.0 { x\n} else { 1.0 },\n  2.0);\n}\n", 8),
    ] {
        let blanks = " ".repeat(column);
        assert_eq!(formatted(&format!("{head}{rest}")), format!("{head}{block}{blanks}2.0);\n}}\n"));
    }
    // The first condition is aligned with the line above.
    let clause =
        "kernel k(x: in f32[M], y: out f32[M])\n    where              M >= 1,\n                       M < 9 {}\n";
    assert_eq!(formatted(clause), clause);
    // What had a line to itself is aligned with nothing.
    let joined = "fn f(x: f32) -> f32 {\n    let a = if x > 0.0 { x } else\n{ x };\n    \
        let bc = if x > 0.0 { x } else\n{ x };\n    x\n}\n";
    assert_eq!(formatted(&joined.replace('\n', "\r\n")), formatted(joined).replace('\n', "\r\n"));
}

/// Of two lines that become one, two tokens have one column: only what was on neighbouring lines is aligned.
#[test]
fn lines_that_are_joined_are_aligned_once() {
    let text = "\
fn
inside(w: f32,  i: f32) -> f32 {
    if i >= 0 { if w {}
else { 0.0 }  } else {}
}
";
    let aligned = "fn\n    inside(w: f32, i: f32) -> f32 {\n    if i >= 0 {    if w {} else { 0.0 } } else {}\n}\n";
    assert_eq!(formatted(text), aligned);
}

/// A number and a dot apart are no number.
#[test]
fn numbers_and_dots() {
    let text = "fn f(x: f32) -> f32 {\n    let up = 0 .0;\n    x\n}\n";
    assert_eq!(formatted(text), text);
    assert_eq!(formatted(&text.replace("0 .0", "0   .0")), text);
}

/// What ends the lines of a text has no say in anything else.
#[test]
fn line_ends_stay() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let mut seen = 0;
    for entry in std::fs::read_dir(root).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|e| e != "tile") {
            continue;
        }
        let text = std::fs::read_to_string(path).unwrap();
        for text in [text.replace("    ", "  "), text] {
            assert_eq!(formatted(&text.replace('\n', "\r\n")), formatted(&text).replace('\n', "\r\n"));
            seen += 1;
        }
    }
    assert!(seen > 10, "{seen}");
}

/// Texts of which one thing is very long: time goes with their length.
#[test]
fn long_texts_take_no_time() {
    let begin = std::time::Instant::now();
    let n = 20_000;
    let comments = "// c\n".repeat(n);
    let wide = format!("const A = ({});\n", "a  , ".repeat(n));
    for text in [
        format!("fn f(x: f32) -> f32 {{\n{comments}x }}\n"),
        // Two neighbouring lines with columns all along.
        format!("{wide}{wide}"),
        format!("fn f(x: f32) -> f32 {{ {} x }}\n", "let a  = x;".repeat(n)),
    ] {
        assert!(!formatted(&text).is_empty());
    }
    assert!(begin.elapsed().as_secs() < 100, "{:?}", begin.elapsed());
}

#[test]
fn closures_and_records() {
    insta::assert_snapshot!(formatted(
        "\
fn compose( f:fn,g :fn )->fn{| v |g( f(v) )}
fn moments(t:in Vec<f32,r,c>,to:( lo:f32,hi:f32 ))->(mean:Vec<f32,r,1>,n : index,){( mean=rowsum( t ),n=3 )}
kernel k(){
let act=|v:f32,w|-v|w ;let one=( x=1 , ) ;
let r=(x=a| b,act=|v|{let t=v;
t*2});
apply<| v |v*2,g=|w|- w>( t,|a,b|a+b ) ;
  let long = |v|
      v * 2;
}
"
    ));
}

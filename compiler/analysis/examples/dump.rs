//! Prints the tile IR of every kernel of a file: `cargo run -p ptoc-analysis --example dump -- FILE [NAME=VALUE]...`
use ptoc_analysis::{Bindings, Modules, NoImports, check_names, instantiate, instantiate_program};
use ptoc_diagnostics::{SourceMap, render};
fn main() {
    let mut args = std::env::args().skip(1);
    let path = args.next().expect("a file");
    let text = std::fs::read_to_string(&path).expect("readable");
    let mut map = SourceMap::default();
    let file = map.add(path.as_str(), text.as_str());
    let mut diags = Vec::new();
    let modules = Modules::load(file, &text, &mut NoImports, &mut diags);
    check_names(&modules, &mut diags);
    let mut bindings = Bindings::default();
    let mut target = "a2a3".to_string();
    for a in args {
        let (n, v) = a.split_once('=').expect("NAME=VALUE");
        if n == "target" {
            target = v.into();
            continue;
        }
        if let Ok(i) = v.parse() {
            bindings.dims.insert(n.into(), i);
        }
        let f = map.add(format!("<-D {n}>"), v);
        let (e, _) = ptoc_syntax::parse_expr(f, v);
        bindings.defs.insert(n.into(), e);
    }
    let target = ptoc_isa::Target::builtin(&target).unwrap();
    for (id, k) in modules.entries() {
        if matches!(modules.item(id).kind, ptoc_syntax::ast::ItemKind::Program(_)) {
            let o = instantiate_program(&modules, id, target, &bindings);
            diags.extend(o.diagnostics);
            println!("program {}: {}", k.name.name, o.result.is_some());
            continue;
        }
        let o = instantiate(&modules, id, target, &bindings);
        diags.extend(o.diagnostics);
        println!("// {} {:?}", k.name.name, o.waits);
        if let Some(i) = o.result {
            println!("{}", ptoc_ir::tile::text::print(&i.kernel, ptoc_ir::tile::text::Spans::Omit));
            if let Err(e) = ptoc_ir::tile::verify::verify(&i.kernel) {
                for e in e {
                    println!("VERIFY: {e:?}");
                }
            }
        }
    }
    for d in &diags {
        eprint!("{}", render::terminal(d, &map, false, 100));
    }
}

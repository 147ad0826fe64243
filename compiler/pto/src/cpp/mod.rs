//! PTO tree to C++ against the headers of pto-isa: a translation unit with the kernel and its launcher.
//!
//! * A buffer is a `Tile`; at [`Level::Explicit`] it has its address by `TASSIGN<addr>`, whose checks are the headers'
//!   own, and flags and barriers stand where the text has them. At [`Level::Automatic`] it has neither.
//! * A part of a view is a `GlobalTensor` in front of the instruction that uses it: how its modes become rows and
//!   columns depends on the tile.
//! * What loops and branches carry is a variable that their ends assign to.
//! * Integers wrap and floats of 16 bits are rounded from `float`, as in the language: C++ leaves the former open.

mod control;
mod instructions;
mod memory;
mod names;
mod scalars;
mod types;

use crate::attr::Source;
use crate::lexer::Word;
use crate::tree::{Function, Item, Module, Op, Value};
use crate::types::Type;
use crate::write::Level;
use names::Identifiers;
use ptoc_diagnostics::{Diagnostic, Span, codes};
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;

/// What a translation unit is called, and for whom it is.
#[derive(Clone, Debug)]
pub struct Unit<'u> {
    /// Lines of the comment at its head.
    pub about: &'u [String],
    /// The name of the launcher.
    pub launcher: &'u str,
    /// The target's name.
    pub target: &'u str,
    /// Who places tiles and orders the pipes.
    pub level: Level,
}

type Res<T> = Result<T, Box<Diagnostic>>;

/// What the headers have no form for.
fn unsaid<T>(span: Span, what: impl Into<String>) -> Res<T> {
    let message = format!("the headers of pto-isa have no form for {}", what.into());
    Err(Box::new(Diagnostic::error(codes::PTO_CPP_UNSAID, span, message)))
}

/// The translation unit of a module with one function, as [`crate::write::write`] makes it.
pub fn print(module: &Module, unit: &Unit<'_>) -> Result<String, Box<Diagnostic>> {
    let [Item::Function(function)] = &module.items[..] else {
        return unsaid(module.span, "more than one kernel");
    };
    let mut printer = Printer::new(unit);
    printer.function(function)?;
    Ok(printer.file(function))
}

/// The declaration of the launcher.
pub fn declaration(module: &Module, unit: &Unit<'_>) -> Result<String, Box<Diagnostic>> {
    let [Item::Function(function)] = &module.items[..] else {
        return unsaid(module.span, "more than one kernel");
    };
    let mut printer = Printer::new(unit);
    printer.params(function)?;
    Ok(printer.launcher_head())
}

/// A part of a view, as `partition_view` makes it.
#[derive(Clone)]
struct Part {
    view: Word,
    offsets: Vec<Word>,
    sizes: Vec<Word>,
}

/// A view, as `make_tensor_view` makes it.
#[derive(Clone)]
struct View {
    ptr: Word,
    element: Word,
    strides: Vec<Word>,
}

struct Printer<'u> {
    unit: &'u Unit<'u>,
    out: String,
    depth: usize,
    identifiers: Identifiers,
    types: FxHashMap<Word, Type>,
    /// Whole numbers that are constants: they stand where they are used.
    numbers: FxHashMap<Word, i64>,
    views: FxHashMap<Word, View>,
    parts: FxHashMap<Word, Part>,
    /// Windows of tiles with boxes: the tile, and the first row and column.
    windows: FxHashMap<Word, (Word, Vec<String>)>,
    /// Arguments: type and name.
    params: Vec<(Type, String)>,
    /// Functions that the text calls and the headers do not have.
    helpers: BTreeSet<&'static str>,
    /// The place that the last comment names.
    place: Option<(Word, u32)>,
    /// Views that have a name.
    global_tensors: u32,
}

impl<'u> Printer<'u> {
    fn new(unit: &'u Unit<'u>) -> Printer<'u> {
        Printer {
            unit,
            out: String::new(),
            depth: 1,
            identifiers: Identifiers::new(&[unit.launcher]),
            types: FxHashMap::default(),
            numbers: FxHashMap::default(),
            views: FxHashMap::default(),
            parts: FxHashMap::default(),
            windows: FxHashMap::default(),
            params: Vec::new(),
            helpers: BTreeSet::new(),
            place: None,
            global_tensors: 0,
        }
    }

    fn function(&mut self, function: &Function) -> Res<()> {
        self.identifiers.give(&Word::new(format!("@{}", function.name)), &function.name);
        self.params(function)?;
        match &function.body {
            Some(body) => self.ops(&body.ops),
            None => unsaid(function.span, "a declaration"),
        }
    }

    fn params(&mut self, function: &Function) -> Res<()> {
        for param in &function.params {
            let Some(ty) = &param.ty else { continue };
            self.types.insert(param.name.clone(), ty.ty.clone());
            let name = self.identifiers.give(&param.name, &param.name);
            self.params.push((ty.ty.clone(), name));
            types::scalar_or_ptr(&ty.ty, param.span)?;
        }
        Ok(())
    }

    // ---- lines -----------------------------------------------------------------------------------------------------

    fn line(&mut self, text: impl AsRef<str>) {
        let text = text.as_ref();
        self.out.push_str(&"    ".repeat(self.depth));
        self.out.push_str(text);
        self.out.push('\n');
    }

    /// A comment with the place in the source, where it is another line's.
    fn comment(&mut self, op: &Op) {
        let Some(Source::Place { file, line, .. }) = &op.source else { return };
        let place = Some((file.clone(), *line));
        if self.place != place {
            self.line(format!("// {file}:{line}"));
            self.place = place;
        }
    }

    // ---- values ----------------------------------------------------------------------------------------------------

    /// The expression of a value.
    fn value(&self, name: &Word) -> String {
        match self.numbers.get(name) {
            Some(n) => n.to_string(),
            None => self.identifiers.of(name),
        }
    }

    fn operand(&self, op: &Op, slot: &str) -> Res<String> {
        Ok(self.value(&self.used(op, slot)?.name))
    }

    fn used<'o>(&self, op: &'o Op, slot: &str) -> Res<&'o Value> {
        match op.operand(slot) {
            Some(operand) => Ok(&operand.value),
            None => unsaid(op.span, format!("`{}` without `{slot}`", op.row.name)),
        }
    }

    fn ty(&self, name: &Word, span: Span) -> Res<&Type> {
        match self.types.get(name) {
            Some(ty) => Ok(ty),
            None => unsaid(span, format!("`%{name}` here")),
        }
    }

    /// Notes the types of what an operation defines.
    fn note_types(&mut self, op: &Op) {
        let operands: Vec<Option<Type>> = op.operands.iter().map(|o| self.types.get(&o.value.name).cloned()).collect();
        for (result, ty) in op.results.iter().zip(crate::verify::result_types(op, &operands)) {
            if let Some(ty) = ty {
                self.types.insert(result.name.clone(), ty);
            }
        }
    }

    /// A new name for the only result, and its type in C++.
    fn result(&mut self, op: &Op) -> Res<(String, Type)> {
        let Some(result) = op.results.first() else { return unsaid(op.span, "a result without a name") };
        let ty = self.ty(&result.name, op.span)?.clone();
        Ok((self.identifiers.give(&result.name, &result.name), ty))
    }

    // ---- the file --------------------------------------------------------------------------------------------------

    fn file(self, function: &Function) -> String {
        let name = self.identifiers.of(&Word::new(format!("@{}", function.name)));
        let mut file = String::new();
        for line in self.unit.about {
            // A name of a file may have any characters.
            file.push_str(&format!("// {}\n", line.replace(char::is_control, " ")));
        }
        file.push_str("#include <cstdint>\n#include <pto/pto-inst.hpp>\n\nusing namespace pto;\n");
        if self.unit.level == Level::Automatic {
            file.push_str(
                "\n#ifndef __PTO_AUTO__\n#error \"this form leaves places and order to the compiler: its automatic \
                 mode defines __PTO_AUTO__\"\n#endif\n",
            );
        }
        for helper in &self.helpers {
            file.push('\n');
            file.push_str(helper);
        }
        let params: Vec<String> = self.params.iter().map(|(ty, name)| types::param(ty, name, "__gm__ ")).collect();
        file.push_str(&format!("\n__global__ AICORE void {name}({})\n{{\n", params.join(", ")));
        file.push_str(&self.out);
        file.push_str("}\n\n");
        file.push_str(&self.launcher(&name));
        file
    }

    fn launcher_head(&self) -> String {
        let given = self.params.iter().map(|(ty, name)| match ty {
            Type::Ptr(_) => format!(", void* {name}"),
            ty => format!(", {}", types::param(ty, name, "")),
        });
        format!("extern \"C\" void {}(uint32_t blocks, void* stream{})", self.unit.launcher, given.collect::<String>())
    }

    fn launcher(&self, name: &str) -> String {
        let args: Vec<String> = self
            .params
            .iter()
            .map(|(ty, name)| match ty {
                Type::Ptr(element) => format!("(__gm__ {}*){name}", types::element(element).unwrap_or("uint8_t")),
                _ => name.clone(),
            })
            .collect();
        let args = args.join(", ");
        let arch = if self.unit.target == "a5" { "    NPU_MEMORY_INIT(NPUArch::A5);\n" } else { "" };
        format!(
            "/// Runs `{name}` on that many cores: each takes every `blocks`-th block, so any number will do.\n\
             {}\n{{\n#ifdef __CPU_SIM\n{arch}    cpu_sim::EnsureRuntimeInitialized();\n    \
             cpu_sim::runtime_config().num_cores = blocks;\n    cpu_sim::KernelLaunchOptions options;\n    \
             options.kernel_name = \"{name}\";\n    options.explicit_block_count = blocks;\n    \
             options.write_trace_files = false;\n    cpu_sim::LaunchKernelMultiCore(options, stream, [&] {{ \
             {name}({args}); }});\n#else\n    {name}<<<blocks, nullptr, stream>>>({args});\n#endif\n}}\n",
            self.launcher_head()
        )
    }
}

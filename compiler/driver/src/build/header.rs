//! The header of a built kernel: C99 and C++, with what callers have to know.

use super::c::CFunction;
use super::comment::{comment, heading};
use super::entry_codes::{RunsOn, listed};
use super::{BuildUnit, Request};
use ptoc_ir::loops::Module;
use std::fmt::Write as _;

/// The status that functions fill.
pub(crate) const STATUS: &str = "\
#ifndef PTOC_STATUS
#define PTOC_STATUS
/* Why a call was refused or has failed. It is written only then. */
typedef struct ptoc_status {
    int32_t code;        /* the number that the function returns */
    uint32_t count;      /* how many of `numbers` are meant */
    int64_t numbers[4];  /* the numbers of the message */
    int64_t block;       /* the block that failed, in the order of the launch; -1: the call as a whole */
    const char *message; /* English, static, with {0} to {3} where the numbers go */
} ptoc_status;
#endif
";

/// The header of a function whose code is `module`. `notes` are said at its end.
pub fn of(unit: &BuildUnit, function: &CFunction, module: &Module, request: &Request, notes: &[String]) -> String {
    let symbol = &function.interface.symbol;
    let guard = format!("PTOC_{symbol}_H");
    let own = [
        ("workspace", "room for tiles: the bytes that the function below gives, at any address; not kept"),
        ("threads", "how many threads share the blocks; 1, or less: the caller's alone"),
        ("status", "what to fill when the call fails, or null"),
    ];
    let own = own.map(|(name, text)| (name.to_owned(), text.to_owned()));
    let mut out = about(
        unit,
        module,
        request,
        About {
            parameters: "Parameters:",
            named: function.about.iter().cloned().chain(own).collect(),
            text: vec!["Nothing is allocated, and nothing is kept: any number of threads may call at once.".into()],
            returns: "Returns",
            runs: RunsOn::Host,
            notes: notes.to_vec(),
        },
    );
    let _ = write!(out, "#ifndef {guard}\n#define {guard}\n\n#include <stddef.h>\n#include <stdint.h>\n\n");
    out.push_str("#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n");
    out.push_str(STATUS);
    out.push('\n');
    let mut parameters = function.declared.clone();
    parameters.extend(
        ["void *workspace", "size_t workspace_bytes", "int32_t threads", "ptoc_status *status"].map(Into::into),
    );
    let indent = " ".repeat("int32_t (".len() + symbol.len());
    let _ = writeln!(out, "int32_t {symbol}({});\n", parameters.join(&format!(",\n{indent}")));
    let _ = writeln!(out, "/* Bytes of workspace that a call with so many threads needs; it may be 0. */");
    let _ = writeln!(out, "size_t {symbol}_workspace(int32_t threads);\n");
    out.push_str("#ifdef __cplusplus\n}\n#endif\n\n#endif\n");
    out
}

/// What the comment of a header says of one kernel.
pub(crate) struct About<'a> {
    /// What stands in front of the parameters.
    pub parameters: &'a str,
    /// The parameters: names, and text.
    pub named: Vec<(String, String)>,
    /// How the functions are used.
    pub text: Vec<String>,
    /// What returns a number.
    pub returns: &'a str,
    /// Where the code runs.
    pub runs: RunsOn,
    /// What is said at the end.
    pub notes: Vec<String>,
}

/// The comment of a header: where the code is from, parameters, promises of callers, and codes.
pub(crate) fn about(unit: &BuildUnit, module: &Module, request: &Request, about: About<'_>) -> String {
    let mut lines = heading(unit, request);
    lines.push(about.parameters.into());
    let width = about.named.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    lines.extend(about.named.iter().map(|(name, text)| format!("    {name:<width$}  {text}")));
    lines.push(String::new());
    lines.extend(about.text);
    lines.push("Arrays that are written share no bytes with others.".into());
    if unit.wheres.iter().any(|(_, contents)| *contents) {
        lines.push("Conditions on contents of arrays are the caller's promise: they are not looked at.".into());
    }
    lines.push(String::new());
    lines.push(format!("{} 0, or the number of an error of ptoc (`ptoc explain CODE`):", about.returns));
    lines.extend(listed(unit, module, about.runs));
    lines.push("After an error in a block, what outputs hold is not specified.".into());
    if !about.notes.is_empty() {
        lines.push(String::new());
        lines.extend(about.notes);
    }
    comment(&lines)
}

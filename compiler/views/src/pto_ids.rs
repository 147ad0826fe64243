//! PTO's identifiers of its checks, SA of those at compile time and PA of those at run time, and which codes they are
//! here (PTO's own list of its checks). Four are codes of ours under the same name: SA-0351 to SA-0354.

use ptoc_diagnostics::Code;
use std::fmt::Write as _;

struct Group {
    /// `SA` or `PA`.
    prefix: &'static str,
    /// Numbers and ranges.
    ids: &'static str,
    /// What PTO checks.
    what: &'static str,
    /// The codes that say so here.
    codes: &'static [&'static str],
    /// Why a program cannot make the mistake, where there are none; else empty.
    why: &'static str,
}

const fn sa(ids: &'static str, what: &'static str, codes: &'static [&'static str]) -> Group {
    Group { prefix: "SA", ids, what, codes, why: "" }
}

/// A check of a mistake that a program here cannot make.
const fn never(prefix: &'static str, ids: &'static str, what: &'static str, why: &'static str) -> Group {
    Group { prefix, ids, what, codes: &[], why }
}

const fn pa(ids: &'static str, what: &'static str, codes: &'static [&'static str]) -> Group {
    Group { prefix: "PA", ids, what, codes, why: "" }
}

const GROUPS: &[Group] = &[
    sa(
        "5 59-60 68 74-80 185 219 225-227 242-247",
        "operands of a matrix product: dtypes, locations, extents, bias",
        &["E0614", "E0203", "E0204", "E0612"],
    ),
    sa("6 64-67 94-95", "the layout of a tile: rows of 32 bytes, whole boxes", &["E0603", "E0604"]),
    sa("8-11 97-99", "the dtype of what is loaded, stored or filled", &["E0607", "E0610"]),
    sa("12-14 32-33 52 100-102 111-112 211-212 228-232", "the location of an operand", &["E0612"]),
    sa(
        "21 41 55-57 82 104-105 108-109 184 202 220-224 233-237 338",
        "TLOAD and TSTORE: layouts, shapes, numbers of rows and columns",
        &["E0609", "E0610", "E0613", "E0203"],
    ),
    sa(
        "24-26 29-31 92 106-107 122 191-200 254-273 337",
        "TMOV, and TSTORE from the accumulator: pairs of dtypes, tables of one row, their sizes",
        &["E0609", "E0610", "E0603"],
    ),
    sa("22-23 27-28 49 58 186 203 205 274-282 330-331", "sorting and merging: dtypes, one row", &["E0607", "PA-1103"]),
    sa("34-36 38-40 113-115 119-121 159-167", "windows of TEXTRACT: whole boxes, one dtype", &["PA-1103", "E0607"]),
    sa("37 96 116-118", "events: the pipes of their two sides", &["E0551", "E0552"]),
    sa("43", "what merging needs of the vector memory", &["SA-0352", "E0401"]),
    sa("44-48 50-51 139-140 178-183", "TCI and TGATHER: widths, one row, sizes", &["E0607", "PA-1103"]),
    sa("53-54 89 218", "what TASSIGN binds", &["E0221"]),
    sa("69-73", "indices of MGATHER and MSCATTER", &["E0607", "E0203"]),
    sa("83-84 131-132 155-156 239-240 298-299 334-335", "a valid shape larger than the tile", &["E0204"]),
    sa("87 91 187-190 206-210 213-217", "reductions: dtypes, one column or row", &["E0607", "E0203"]),
    sa(
        "130 133-138 141-154 157-158 238 241 248-253 283-297 300 332-333 336 339-347",
        "dtypes, layout and location of one instruction's operands",
        &["E0607", "E0612"],
    ),
    sa("168-177", "TFILLPAD: a pad, one dtype, a destination as large", &["E0221", "E0607", "PA-1103"]),
    sa("63 90 301-306", "TRESHAPE: as many elements, one dtype", &["PA-1103", "E0607"]),
    sa(
        "307-329",
        "broadcasts, roots, scattering and selection: dtypes, locations, shapes",
        &["E0607", "E0612", "E0203"],
    ),
    sa("348-349", "a comparison that is not there", &["E0608", "E0105"]),
    never(
        "SA",
        "1-4",
        "a shape or stride made from more or fewer numbers than it has sizes that are known late",
        "a tensor's type names each of its sizes (`x: in f32[M, N]`), and a launch takes them from the arrays; nothing \
         is counted out by hand. An array of another rank than its tensor is E0751",
    ),
    sa(
        "7 93 110 350",
        "a tensor stored as boxes: rows of 16, columns of 32 bytes, last sizes of one box",
        &["E1002", "E1011", "PA-1110"],
    ),
    never(
        "SA",
        "15-19",
        "a size that is known late, asked for as a constant",
        "a size has one name, `M`; where it stands for a constant, as in a tile's type, the kernel is compiled for the \
         number that a launch has",
    ),
    sa("86", "a dimension that a tensor has not", &["E0207"]),
    sa("20 129", "the width of elements that a vector register's stores take", &["E0607"]),
    never(
        "SA",
        "42",
        "a move of half a tile to each of two vector cores, turned on the way",
        "no operand splits a tile between two cores: a block has one vector unit, and a window of the tile is moved \
        for each half",
    ),
    sa("61", "the extents of what a row sum reads and writes", &["E0203"]),
    sa("62 204", "the dtypes of a move from the accumulator", &["E0610"]),
    sa("81", "the dtypes of a matrix product", &["E0614", "E0607"]),
    sa("85", "the layout of a tensor that is loaded or stored", &["E0223", "E1070"]),
    never(
        "SA",
        "88",
        "the layouts between which a tile moves out of the accumulator",
        "a tile's location decides how it is stored, so a move names no layout, and each that there is has its \
        reordering",
    ),
    sa("103", "the layout of operands of TROWEXPAND", &["E1042"]),
    sa("123", "the shapes of a transposition", &["E0203", "PA-1103", "PA-1104"]),
    sa("124", "the width of what is stored: rows or columns of 32 bytes", &["E0603"]),
    sa("125", "the dtype of what is stored", &["E0610", "E0601"]),
    sa("126 201", "rows and columns of a tile that is stored from the accumulator", &["E0613"]),
    sa("127-128", "the dtypes of what TGATHER reads and of its indices", &["E0607"]),
    pa("1 3-4", "the length of the lists of a merge: whole records, four lists, 255 at most", &["PA-1103", "E0607"]),
    pa("2", "the dtype of what is stored", &["E0610", "E0601"]),
    pa("9", "a result of TGATHER by a pattern that is not one stretch", &["PA-1103"]),
    never(
        "PA",
        "10",
        "a division by zero, or a root of it",
        "IEEE 754 says what comes out of floats (an infinity or NaN), `spec/numerics.md` what of integers; no run \
         stops there. A constant divided by a constant zero is E0304",
    ),
    pa("11-16", "where a window of TEXTRACT starts: whole boxes", &["PA-1103"]),
    pa("5-7", "m, k and n of a product", &["E0613"]),
    pa("8", "what merging needs of the vector memory", &["SA-0352", "E0401"]),
    pa("17-27 49-50 55-56 60-63", "valid rows and columns that must be equal", &["E0203", "PA-1103"]),
    pa("28-48", "the shape of a window and of its tile", &["E0203", "PA-1103", "E0613"]),
    pa("51-54", "the two shapes of a partial operation", &["PA-1131"]),
    pa("57-59", "the narrow operand of a broadcast", &["E0203", "PA-1103"]),
    pa("64", "rows of a store", &["E0613"]),
];

/// First and last number of each part of a group.
fn ranges(group: &Group) -> impl Iterator<Item = (u32, u32)> + '_ {
    group.ids.split(' ').filter_map(|part| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some((first.parse().ok()?, last.parse().ok()?))
    })
}

/// Identifiers of PTO that are of no check of a compiler: how they begin, how many digits follow, the last number, what
/// they are and what ptoc has.
const OTHERS: [(&str, usize, u32, &str); 2] = [
    (
        "FIX-A",
        2,
        12,
        "One of PTO's recipes (FIX-A01 to FIX-A12), which say beside an identifier how to mend the mistake; FIX-A12 \
         goes with TASSIGN's, SA-0351 to SA-0354.\n\
         ptoc has no numbers for them: what mends a mistake stands below its message, with the program's own names and \
         numbers.",
    ),
    (
        "CA-",
        4,
        7,
        "One of the asserts of PTO's simulator on the CPU.\n\
         ptoc does not use it: what only a run can tell is checked under PA-1001 and the numbers behind it, on every \
         backend alike (`ptoc explain --list`).",
    ),
];

/// The page of one of PTO's identifiers that is no code of ours, as `SA-0068`.
pub fn page(id: &str) -> Option<String> {
    for (start, width, last, what) in OTHERS {
        let number: Option<u32> = id.strip_prefix(start).and_then(|n| n.parse().ok());
        if let Some(n) = number.filter(|n| (1..=last).contains(n)) {
            return Some(format!("# {start}{n:0width$}\n\n{what}\n"));
        }
    }
    let (prefix, number) = id.split_once('-')?;
    let number: u32 = number.parse().ok()?;
    let group = GROUPS.iter().find(|g| g.prefix == prefix && ranges(g).any(|(a, b)| (a..=b).contains(&number)))?;
    let when = if prefix == "SA" { "compiles" } else { "runs" };
    let mut out = format!("# {prefix}-{number:04}\n\nOne of PTO's checks when it {when}: {}.\n", group.what);
    if !group.why.is_empty() {
        writeln!(out, "A program of ptoc cannot make this mistake: {}.", group.why).expect("a string takes it");
        return Some(out);
    }
    out.push_str("In ptoc it is\n\n");
    for code in group.codes.iter().filter_map(|c| Code::find(c)) {
        writeln!(out, "* {}: {}", code.code.as_str(), code.title).expect("a string takes it");
    }
    Some(out)
}

/// Whether it is written as one of PTO's identifiers, and not one that PTO has. What to say of it.
pub fn beyond(id: &str) -> Option<String> {
    if let Some(&(start, width, last, _)) = OTHERS.iter().find(|o| id.starts_with(o.0)) {
        return Some(format!("PTO's identifiers are {start}{:0width$} to {start}{last:0width$}", 1));
    }
    let (prefix, number) = id.split_once('-')?;
    let number: u32 = number.parse().ok()?;
    let last = LAST.iter().find(|(p, _)| *p == prefix)?.1;
    // Ours of the run time begin at PA-1001.
    let theirs = number > last && !(prefix == "PA" && number > 1000) || number == 0;
    theirs.then(|| format!("PTO's identifiers are {prefix}-0001 to {prefix}-{last:04}"))
}

/// How many identifiers PTO has.
const LAST: [(&str, u32); 2] = [("SA", 354), ("PA", 64)];

/// The identifiers of PTO that are this code, as a last paragraph of its page; nothing where there is none.
pub fn identifiers(code: &str) -> String {
    let mut names = Vec::new();
    for group in GROUPS.iter().filter(|g| g.codes.contains(&code)) {
        names.extend(ranges(group).map(|(a, b)| match b - a {
            0 => format!("{}-{a:04}", group.prefix),
            _ => format!("{0}-{a:04} to {0}-{b:04}", group.prefix),
        }));
    }
    if names.is_empty() { String::new() } else { format!("\nPTO's identifiers: {}.\n", names.join(", ")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_identifier_is_in_one_group_and_every_code_is_ours() {
        let mut seen = BTreeSet::new();
        for group in GROUPS {
            assert_eq!(ranges(group).count(), group.ids.split(' ').count(), "{}", group.ids);
            for n in ranges(group).flat_map(|(a, b)| a..=b) {
                assert!(seen.insert((group.prefix, n)), "{}-{n:04} twice", group.prefix);
                assert!(Code::find(&format!("{}-{n:04}", group.prefix)).is_none(), "{n} is a code of ours");
            }
            for code in group.codes {
                assert!(Code::find(code).is_some(), "{code}");
            }
            assert_ne!(group.codes.is_empty(), group.why.is_empty(), "{}", group.ids);
        }
    }

    #[test]
    fn every_identifier_of_pto_has_a_page() {
        for (prefix, last) in LAST {
            for n in 1..=last {
                let id = format!("{prefix}-{n:04}");
                let page = page(&id).or_else(|| Code::find(&id).map(|c| c.page.to_owned()));
                let page = page.unwrap_or_else(|| panic!("{id}: nothing"));
                assert!(page.starts_with(&format!("# {id}")), "{page}");
                assert!(page.lines().count() > 2, "{page}");
            }
            assert_eq!(super::page(&format!("{prefix}-{:04}", last + 1)), None);
        }
        for (start, width, last, _) in OTHERS {
            for n in 1..=last {
                let id = format!("{start}{n:0width$}");
                assert!(page(&id).is_some_and(|p| p.starts_with(&format!("# {id}\n"))), "{id}");
            }
            assert_eq!(super::page(&format!("{start}{:0width$}", last + 1)), None);
        }
    }

    #[test]
    fn numbers_that_pto_has_not() {
        assert_eq!(beyond("SA-0999").as_deref(), Some("PTO's identifiers are SA-0001 to SA-0354"));
        assert_eq!(beyond("PA-0065").as_deref(), Some("PTO's identifiers are PA-0001 to PA-0064"));
        assert_eq!(beyond("FIX-A13").as_deref(), Some("PTO's identifiers are FIX-A01 to FIX-A12"));
        assert_eq!(beyond("CA-0900").as_deref(), Some("PTO's identifiers are CA-0001 to CA-0007"));
        assert_eq!(beyond("PA-1999"), None);
        assert_eq!(beyond("E0999"), None);
        assert!(page("SA-0001").expect("listed").contains("cannot make this mistake"));
    }

    #[test]
    fn pages_say_which_code_it_is_and_the_other_way_round() {
        let page = page("SA-0068").expect("listed");
        assert!(page.contains("* E0614: ") && page.contains("matrix product"), "{page}");
        assert_eq!(super::page("SA-9999"), None);
        assert_eq!(super::page("E0607"), None);
        assert!(identifiers("E0551").contains("SA-0116 to SA-0118"));
        assert_eq!(identifiers("E0001"), "");
    }
}

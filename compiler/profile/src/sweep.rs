//! Values of a definition that is tried with several, and whole configurations from a file.

/// A name with the values that it takes in turn.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Values {
    /// The dimension, constant, or scalar.
    pub name: String,
    /// Expressions.
    pub values: Vec<String>,
}

/// Values at most that one name takes.
///
/// A value is one line: the rows of tables are.
const MOST: usize = 4096;

/// The values of `256:4096:256` (both ends and a step), `64:4096:*2` (a factor), or a list of these and of expressions.
///
/// # Errors
/// What is wrong with it, in words.
pub fn sizes(text: &str) -> Result<Vec<String>, String> {
    let mut all: Vec<String> = Vec::new();
    for part in parts(text) {
        if part.is_empty() {
            return Err("there is nothing between two commas".into());
        }
        let some = match range(part) {
            Some(range) => range?,
            None => vec![part.replace(char::is_control, " ")],
        };
        for value in some {
            if !all.iter().any(|known| same(known, &value)) {
                all.push(value);
            }
        }
        if all.len() > MOST {
            return Err(format!("more than {MOST} values"));
        }
    }
    Ok(all)
}

/// What is between commas that stand in no parentheses.
fn parts(text: &str) -> Vec<&str> {
    let (mut depth, mut start, mut out) = (0usize, 0, Vec::new());
    for (at, c) in text.char_indices() {
        match c {
            '(' | '[' | '{' | '<' => depth += 1,
            ')' | ']' | '}' | '>' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                out.push(text[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    out.push(text[start..].trim());
    out
}

/// A whole number, as the language writes it.
fn number(field: &str) -> Option<u64> {
    let digits = field.replace('_', "");
    match digits.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => digits.parse().ok(),
    }
}

/// Whether it is written as a number of any kind: `0x40`, `-5`, `1.5`.
fn is_number(field: &str) -> bool {
    number(field).is_some() || field.replace('_', "").parse::<f64>().is_ok_and(f64::is_finite)
}

/// Whether two values are the same, however whole numbers are spelled: `64` is `0x40`.
pub(crate) fn same(one: &str, other: &str) -> bool {
    one == other || number(one).is_some_and(|n| number(other) == Some(n))
}

/// Whether two lists of definitions give the same names the same values.
pub(crate) fn alike(one: &[(String, String)], other: &[(String, String)]) -> bool {
    one.len() == other.len() && one.iter().zip(other).all(|(a, b)| a.0 == b.0 && same(&a.1, &b.1))
}

/// Whole numbers from one to another; `None`: it is no range. What begins with a number and a colon is meant to be one,
/// also with a number that no range has.
fn range(text: &str) -> Option<Result<Vec<String>, String>> {
    let fields: Vec<&str> = text.split(':').map(str::trim).collect();
    let (first, rest) =
        fields.split_first().filter(|(first, rest)| (first.is_empty() || is_number(first)) && !rest.is_empty())?;
    let (last, step) = match *rest {
        [last] => (last, "1"),
        [last, step] => (last, step),
        _ => ("", ""),
    };
    let (factor, step) = match step.strip_prefix('*') {
        Some(factor) => (true, number(factor)),
        None => (false, number(step)),
    };
    let (Some(first), Some(last), Some(step)) = (number(first), number(last), step) else {
        return Some(Err(format!(
            "`{text}` is no range: `FIRST:LAST`, `FIRST:LAST:STEP` or `FIRST:LAST:*FACTOR`, whole numbers"
        )));
    };
    Some(match (factor, step) {
        _ if first > last => Err(format!("`{text}` ends before it begins")),
        (false, 0) => Err(format!("the step of `{text}` is 0")),
        (true, 0 | 1) => Err(format!("the factor of `{text}` is less than 2")),
        (true, _) if first == 0 => Err(format!("`{text}` begins with 0, and no factor makes more of it")),
        _ => {
            let next = |n: &u64| if factor { n.checked_mul(step) } else { n.checked_add(step) };
            let all = std::iter::successors(Some(first), next).take_while(|n| *n <= last).take(MOST + 1);
            Ok(all.map(|n| n.to_string()).collect())
        }
    })
}

/// Whole configurations: a line of names, and a line of values for each, with commas between them.
///
/// # Errors
/// What is wrong with the text, in words.
pub fn configurations(text: &str) -> Result<Vec<Vec<(String, String)>>, String> {
    let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).comment(Some(b'#')).from_reader(text.as_bytes());
    let names: Vec<String> = reader.headers().map_err(|e| e.to_string())?.iter().map(str::to_owned).collect();
    if names.iter().all(String::is_empty) {
        return Err("there is no line of names".into());
    }
    if let Some(twice) = names.iter().enumerate().find(|(n, name)| names[..*n].contains(name)) {
        return Err(format!("`{}` stands twice in the line of names", twice.1));
    }
    if names.iter().any(String::is_empty) {
        return Err("a name in the line of names is empty".into());
    }
    let mut all: Vec<Vec<(String, String)>> = Vec::new();
    for record in reader.records() {
        let record = record.map_err(|e| match e.kind() {
            csv::ErrorKind::UnequalLengths { pos, expected_len, len } => {
                let line = pos.as_ref().map_or(0, csv::Position::line);
                format!("line {line} has {len} values, and there are {expected_len} names")
            }
            _ => e.to_string(),
        })?;
        let values = record.iter().map(|value| value.replace(char::is_control, " "));
        let one: Vec<(String, String)> = names.iter().cloned().zip(values).collect();
        if let Some((name, _)) = one.iter().find(|(_, value)| value.is_empty()) {
            let line = record.position().map_or(0, csv::Position::line);
            return Err(format!("line {line} has no value for `{name}`"));
        }
        if !all.contains(&one) {
            all.push(one);
        }
    }
    if all.is_empty() { Err("there are names, and no line of values".into()) } else { Ok(all) }
}

/// All combinations of values, those of the last name fastest.
pub(crate) fn combinations(axes: &[Values]) -> Vec<Vec<(String, String)>> {
    axes.iter().fold(vec![Vec::new()], |all, axis| {
        let longer = |one: &Vec<(String, String)>, value: &String| {
            one.iter().cloned().chain([(axis.name.clone(), value.clone())]).collect()
        };
        all.iter().flat_map(|one| axis.values.iter().map(move |value| longer(one, value))).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_and_lists() {
        let list = |text: &str| sizes(text).unwrap().join(" ");
        assert_eq!(list("256:1024:256"), "256 512 768 1024");
        assert_eq!(list("64:1000:*2"), "64 128 256 512");
        assert_eq!(list("3:5"), "3 4 5");
        assert_eq!(list("0x40:0x80:0x40"), "64 128");
        assert_eq!(list("100, 64:256:*4, 64"), "100 64 256");
        assert_eq!(list("f16,bf16"), "f16 bf16");
        assert_eq!(list("max(3, 4)"), "max(3, 4)");
        assert_eq!(list("4_096"), "4_096");
        // Numbers alone are values, such as those of scalars.
        assert_eq!(list("-5,1.5,1e3"), "-5 1.5 1e3");
        // A layout is an expression.
        assert_eq!(list("(4,8):(8,1)"), "(4,8):(8,1)");
    }

    #[test]
    fn what_is_no_range_says_why() {
        for (text, why) in [
            ("5:3", "ends before"),
            ("1:9:0", "step"),
            ("1:9:*1", "less than 2"),
            ("0:9:*2", "begins with 0"),
            ("1,,2", "nothing between"),
            ("0:100000", "more than 4096"),
            ("256:64:-64", "no range"),
            ("1:2:3:4", "no range"),
            (":", "no range"),
            ("-5:5", "no range"),
            ("1.5:3", "no range"),
            ("1:2.5", "no range"),
            ("64, -1:8:*2", "no range"),
        ] {
            assert!(sizes(text).unwrap_err().contains(why), "{text}: {:?}", sizes(text));
        }
    }

    #[test]
    fn configurations_of_a_file() {
        let all = configurations("BM, BN\n# the usual\n64, 128\n\n128,64\n").unwrap();
        let text: Vec<String> = all.iter().map(|c| c.iter().map(|(n, v)| format!("{n}={v} ")).collect()).collect();
        assert_eq!(text, ["BM=64 BN=128 ", "BM=128 BN=64 "]);
        for (text, why) in [
            ("", "no line of names"),
            ("A,A\n1,2", "twice"),
            ("A,B\n1", "line 2 has 1 values"),
            ("A,B\n1,", "no value for `B`"),
            ("A", "no line of v"),
        ] {
            assert!(configurations(text).unwrap_err().contains(why), "{text}: {:?}", configurations(text));
        }
    }

    #[test]
    fn combinations_vary_the_last_fastest() {
        let axis = |name: &str, values: &[&str]| Values {
            name: name.into(),
            values: values.iter().map(|v| (*v).to_owned()).collect(),
        };
        let all = combinations(&[axis("M", &["1", "2"]), axis("B", &["8", "9"])]);
        let text: Vec<String> = all.iter().map(|one| one.iter().map(|(_, v)| v.as_str()).collect()).collect();
        assert_eq!(text, ["18", "19", "28", "29"]);
        assert_eq!(combinations(&[]), [Vec::new()]);
    }
}

//! What commands do.

use super::Console;
use super::command::{COMMANDS, resolve};
use super::condition;
use super::debugger::{Debugger, ResumeMode};
use super::names::{find, visible};
use super::overview::table;
use super::replay::Wanted;
use super::slice::Slice;
use super::stop::StopPlace;
use super::touches::{Stored, stored};
use super::watch::Watch;
use ptoc_diagnostics::{FileId, suggest};
use ptoc_interp::Storage;

/// Lines before and after the middle of a listing.
const AROUND: u32 = 5;

/// Lines around the arrow in `where`.
const CONTEXT: u32 = 2;

impl Debugger {
    /// Does what a line says, where names are as `stop` sees them; a mode if the run goes on. `innermost` is where the
    /// run stands.
    pub fn act(
        &mut self,
        innermost: &StopPlace<'_>,
        stop: &StopPlace<'_>,
        line: &str,
        console: &mut dyn Console,
    ) -> Result<Option<ResumeMode>, String> {
        let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let rest = rest.trim();
        let count = |what: &str| match rest {
            "" => Ok(1),
            n => {
                n.parse::<u64>().ok().filter(|&n| n > 0).ok_or(format!("`{what} {n}`: how often is a number from 1 on"))
            }
        };
        let frame = stop.look.debug.frame(stop.scope());
        match resolve(word)? {
            "step" => return Ok(Some(ResumeMode::Step(count("step")?))),
            "next" => return Ok(Some(ResumeMode::Next(count("next")?, innermost.look.debug.frame(innermost.scope())))),
            "continue" | "run" => return Ok(Some(ResumeMode::Continue(count("continue")?))),
            "finish" => return Ok(Some(ResumeMode::Finish(frame))),
            "back" => {
                self.go_back(match rest {
                    "" => Wanted::Statement(stop.launch, frame),
                    name => Wanted::Write(written(stop, name)?),
                });
                return Ok(Some(self.mode.clone()));
            }
            "until" if rest.is_empty() => return Ok(Some(ResumeMode::Until(frame, stop.span()))),
            "until" => {
                let (target, said) = stop.program.target(rest, stop.span().file)?;
                console.write(&said.map_or(String::new(), |s| format!("{s}\n")));
                return match target {
                    super::breakpoints::Target::Statement(id) => Ok(Some(ResumeMode::To(id, frame))),
                    _ => Err("`until` takes a line; `break` stops at names".into()),
                };
            }
            "block" if !rest.is_empty() => return block(stop, rest).map(Some),
            "block" => console.write(&said_block(stop)),
            "break" => self.add_breakpoint(stop, rest, console)?,
            "watch" => {
                if rest.is_empty() {
                    return Err("`watch` what? A tile, an element `t[0, 1]`, a tensor, a `var`".into());
                }
                let watch = Watch::new(self.next_id, rest, stop.launch, stop.look)?;
                console.write(&format!("Watchpoint {}: {}\n", watch.id, watch.text));
                self.next_id += 1;
                self.watches.push(watch);
            }
            "delete" => self.delete(rest, console)?,
            "info" => self.info(stop, rest, console)?,
            "where" | "backtrace" => console.write(&said_where(innermost, self.level)),
            "up" => self.look_from(innermost, self.level.saturating_add(count("up")? as usize), console)?,
            "down" => match self.level.checked_sub(count("down")? as usize) {
                Some(level) => self.look_from(innermost, level, console)?,
                None => return Err("this is the innermost function".into()),
            },
            "list" => self.list(stop, rest, console)?,
            "print" => console.write(&print(stop, rest)?),
            "display" if rest.is_empty() => console.write(&self.displayed(stop)),
            "display" => {
                console.write(&print(stop, rest)?);
                self.displays.push((self.next_id, rest.to_owned()));
                self.next_id += 1;
            }
            "tiles" => console.write(&tiles(stop)),
            "events" => console.write(&stop.look.events.text(stop.look, &|span| stop.program.place(span), None)),
            "quit" => self.end(),
            _ => console.write(&help(rest)?),
        }
        Ok(None)
    }

    fn add_breakpoint(&mut self, stop: &StopPlace<'_>, text: &str, console: &mut dyn Console) -> Result<(), String> {
        let line = stop.program.sources.range(stop.span()).0.line.to_string();
        let text = match text.strip_prefix("if ") {
            _ if text.is_empty() => line,
            Some(_) => format!("{line} {text}"),
            None => text.to_owned(),
        };
        let (b, said) = stop.program.breakpoint(self.next_id, &text, stop.span().file)?;
        let said = said.map_or(String::new(), |s| format!("{s}\n"));
        console.write(&format!("{said}{}\n", describe(stop, &b)));
        self.next_id += 1;
        self.breakpoints.push(b);
        Ok(())
    }

    fn delete(&mut self, which: &str, console: &mut dyn Console) -> Result<(), String> {
        if which.is_empty() {
            self.breakpoints.clear();
            self.watches.clear();
            self.displays.clear();
            console.write("all breakpoints, watchpoints and displays are deleted\n");
            return Ok(());
        }
        for which in which.split([' ', ',']).filter(|w| !w.is_empty()) {
            let wrong = || format!("there is no breakpoint, watchpoint or display `{which}`; `info` lists them");
            let id: usize = which.parse().map_err(|_| wrong())?;
            let count = |d: &Debugger| d.breakpoints.len() + d.watches.len() + d.displays.len();
            let before = count(self);
            self.breakpoints.retain(|b| b.id != id);
            self.watches.retain(|w| w.id != id);
            self.displays.retain(|d| d.0 != id);
            if count(self) == before {
                return Err(wrong());
            }
        }
        Ok(())
    }

    /// Names are those of the function `level` calls outwards.
    fn look_from(&mut self, stop: &StopPlace<'_>, level: usize, console: &mut dyn Console) -> Result<(), String> {
        let stack = stop.stack();
        let (name, at) = stack.get(level).ok_or("this is the kernel itself: nothing has called it")?;
        (self.level, self.listed) = (level, None);
        let views = stop.views();
        let seen = StopPlace { caller: views.get(level).and_then(|v| v.1), ..*stop };
        console.write(&format!("#{level} {name} at {}\n{}", stop.program.place(*at), seen.excerpt(0)));
        Ok(())
    }

    /// What is to be shown at every stop, as far as its names are visible at this one.
    pub(super) fn displayed(&self, stop: &StopPlace<'_>) -> String {
        let seen = |text: &str| {
            let slice = Slice::parse(text).ok().flatten();
            slice.is_none_or(|s| visible(stop.look.debug, stop.look.from).iter().any(|n| n.name == s.name))
        };
        let one = |(id, text): &(usize, String)| match print(stop, text) {
            Ok(shown) => format!("{id}: {shown}"),
            Err(why) if seen(text) => format!("{id}: {text}: {why}\n"),
            Err(_) => String::new(),
        };
        self.displays.iter().map(one).collect()
    }

    fn info(&self, stop: &StopPlace<'_>, what: &str, console: &mut dyn Console) -> Result<(), String> {
        if what.is_empty() || ["breaks", "breakpoints", "watchpoints"].iter().any(|w| w.starts_with(what)) {
            let mut lines: Vec<(usize, String)> = Vec::new();
            for b in &self.breakpoints {
                let times = if b.hits == 1 { "time" } else { "times" };
                lines.push((b.id, format!("{}, hit {} {times}", describe(stop, b), b.hits)));
            }
            for w in &self.watches {
                let kernel = &stop.program.launches[w.launch].step.kernel.name;
                lines.push((w.id, format!("Watchpoint {}: {} of {kernel}", w.id, w.text)));
            }
            lines.extend(self.displays.iter().map(|(id, text)| (*id, format!("Display {id}: {text}"))));
            lines.sort();
            let text: String = lines.into_iter().map(|(_, line)| line + "\n").collect();
            console.write(if text.is_empty() { "no breakpoints, watchpoints or displays\n" } else { &text });
            return Ok(());
        }
        if "locals".starts_with(what) || "names".starts_with(what) {
            let names = visible(stop.look.debug, stop.look.from);
            for named in names.iter().rev() {
                console.write(&format!("{}\n", stop.look.line(&named.name, &named.what)));
            }
            return Ok(());
        }
        Err(format!("`info {what}`: there is `info breaks` and `info locals`"))
    }

    fn list(&mut self, stop: &StopPlace<'_>, what: &str, console: &mut dyn Console) -> Result<(), String> {
        let program = stop.program;
        let here = program.sources.range(stop.span()).0.line;
        let (file, first) = match what {
            "" => self.listed.unwrap_or((stop.span().file, here.saturating_sub(AROUND).max(1))),
            what => {
                let (file, line) = match what.rsplit_once(':') {
                    Some((name, line)) => (program.file_named(name.trim())?, line.trim()),
                    None => (stop.span().file, what),
                };
                match line.parse::<u32>() {
                    Ok(line) => (file, line.saturating_sub(AROUND).max(1)),
                    Err(_) => {
                        let names = program.statements.items.iter();
                        let span = names.clone().find(|i| i.name == line).map(|i| i.span).ok_or_else(|| {
                            let near = suggest(line, names.map(|i| i.name.as_str()));
                            let near = near.map_or(String::new(), |n| format!("; did you mean `{n}`?"));
                            format!("no line, kernel or function is called `{line}`{near}")
                        })?;
                        (span.file, program.sources.range(span).0.line.saturating_sub(AROUND).max(1))
                    }
                }
            }
        };
        let last = lines(stop, file);
        if first > last {
            return Err(format!("{} has {last} lines", program.sources.name(file)));
        }
        let end = (first + 2 * AROUND).min(last);
        let width = end.to_string().len();
        let mut text = String::new();
        for line in first..=end {
            let arrow = if file == stop.span().file && line == here { "->" } else { "  " };
            text.push_str(format!("{arrow} {line:>width$} | {}", program.sources.line(file, line - 1)).trim_end());
            text.push('\n');
        }
        console.write(&text);
        self.listed = Some((file, end + 1));
        Ok(())
    }
}

/// Number of lines of a file.
fn lines(stop: &StopPlace<'_>, file: FileId) -> u32 {
    stop.program.sources.text(file).lines().count() as u32
}

fn describe(stop: &StopPlace<'_>, b: &super::breakpoints::Breakpoint) -> String {
    let place = match &b.target {
        super::breakpoints::Target::Statement(id) => {
            let s = &stop.program.statements.list[*id];
            format!("{} in {}", stop.program.place(s.span), stop.program.statements.items[s.item].name)
        }
        super::breakpoints::Target::Operation(name) => (*name).into(),
        super::breakpoints::Target::Role(name) => format!("role {name}"),
        super::breakpoints::Target::Name(name, list) => match list.iter().any(|(_, s)| matches!(s, Stored::Event(_))) {
            true => format!("operations on {name}"),
            false => format!("writes to {name}"),
        },
    };
    let condition = b.condition.as_ref().map_or(String::new(), |(text, _)| format!(" if {text}"));
    format!("Breakpoint {}: {place}{condition}", b.id)
}

fn said_block(stop: &StopPlace<'_>) -> String {
    let (state, kernel) = (stop.look.state, stop.look.state.kernel());
    if kernel.grid.is_empty() {
        return "the kernel has no grid: one block\n".into();
    }
    let extents: Vec<i64> = kernel.grid.iter().map(|d| stop.look.index(d.extent)).collect();
    let count: i64 = extents.iter().product();
    let grid =
        kernel.grid.iter().zip(&extents).map(|(d, n)| format!("{} < {n}", d.name)).collect::<Vec<_>>().join(", ");
    format!("block {}, number {} of {count} ({grid})\n", stop.program.block(&state), state.block_number() + 1)
}

/// The mode that runs on to a block of the grid: `i=2 j=0`, or `2 0`.
pub fn block(stop: &StopPlace<'_>, text: &str) -> Result<ResumeMode, String> {
    let (state, kernel) = (stop.look.state, stop.look.state.kernel());
    let names: Vec<&str> = kernel.grid.iter().map(|d| d.name.as_str()).collect();
    let mut want: Vec<(usize, i64)> = Vec::new();
    for (n, part) in text.split([' ', ',']).filter(|p| !p.is_empty()).enumerate() {
        let (d, number) = match part.split_once('=') {
            Some((name, number)) => {
                let d = names.iter().position(|n| *n == name.trim());
                let grid =
                    if names.is_empty() { "no grid".into() } else { format!("the dimensions {}", names.join(", ")) };
                (d.ok_or(format!("`{name}` is no dimension of the grid: the kernel has {grid}"))?, number)
            }
            None => (n, part),
        };
        let Some(dim) = kernel.grid.get(d) else {
            return Err(format!("the grid has {} dimension{}", names.len(), if names.len() == 1 { "" } else { "s" }));
        };
        let extent = stop.look.index(dim.extent);
        match number.trim().parse::<i64>() {
            Ok(at) if (0..extent).contains(&at) => want.push((d, at)),
            _ => return Err(format!("`{part}`: {} runs from 0 to {}", dim.name, extent - 1)),
        }
    }
    // Blocks run with the last dimension fastest; the last block that fits must be still to come.
    let last: Vec<i64> = (kernel.grid.iter().enumerate())
        .map(|(n, dim)| want.iter().find(|(d, _)| *d == n).map_or(stop.look.index(dim.extent) - 1, |w| w.1))
        .collect();
    match last.as_slice().cmp(state.block()) {
        std::cmp::Ordering::Greater => Ok(ResumeMode::Block(want)),
        std::cmp::Ordering::Equal => Err("that is the block that runs now".into()),
        std::cmp::Ordering::Less => {
            Err("that block has run already: blocks run in order, the last dimension fastest".into())
        }
    }
}

fn said_where(stop: &StopPlace<'_>, level: usize) -> String {
    let mut text = String::new();
    for (n, (name, at)) in stop.stack().iter().enumerate() {
        let here = if level > 0 && n == level { " (names are looked up here)" } else { "" };
        text.push_str(&format!("#{n} {name} at {}{here}\n", stop.program.place(*at)));
    }
    let position = stop.position();
    if !position.is_empty() {
        text.push_str(&position);
        text.push('\n');
    }
    let runs = if stop.after { String::new() } else { stop.on_pipes() };
    if !runs.is_empty() {
        text.push_str(&format!("next: {runs}\n"));
    }
    text + &stop.excerpt(CONTEXT)
}

/// What a name stands for, as what statements write.
pub fn written(stop: &StopPlace<'_>, name: &str) -> Result<Vec<(usize, Stored)>, String> {
    let name = name.split(['[', '.']).next().unwrap_or(name).trim();
    let what = &find(stop.look.debug, stop.look.from, name)?.what;
    let list: Vec<(usize, Stored)> = stored(what).into_iter().map(|s| (stop.launch, s)).collect();
    match list.is_empty() {
        true => Err(format!("`{name}` is no tile, tensor or `var`: nothing writes it")),
        false => Ok(list),
    }
}

/// `print`: something with elements, another name, a property, or an expression.
fn print(stop: &StopPlace<'_>, text: &str) -> Result<String, String> {
    if text.is_empty() {
        return Err(
            "`print` what? A tile, a slice `t[0:4, 0:8]`, a scalar, an expression; `info locals` lists names".into()
        );
    }
    if let Some(slice) = Slice::parse(text)? {
        return stop.look.print(&slice, &|span| stop.program.place(span));
    }
    if let Some(value) = stop.look.property(text)? {
        return Ok(format!("{text} = {value}\n"));
    }
    let value = condition::evaluate(stop.look, &condition::parse(text)?)?;
    Ok(format!("{text} = {value}\n"))
}

/// The tiles that hold something of use, or will.
fn tiles(stop: &StopPlace<'_>) -> String {
    let (look, launch) = (stop.look, &stop.program.launches[stop.launch]);
    let kernel = look.state.kernel();
    let mut rows: Vec<Vec<String>> = Vec::new();
    for (tile, data) in &kernel.tiles {
        let declared = look.debug.is_inside(stop.scope(), launch.points.home(tile));
        if !declared || !launch.points.is_of_use(tile, stop.point) {
            continue;
        }
        for element in 0..data.count as usize {
            if look.state.storage(tile, element) == Storage::None || !look.shapes.begun.contains(&tile) {
                continue;
            }
            let name = if data.count > 1 { format!("{}[{element}]", data.name) } else { data.name.to_string() };
            let address = look.address(tile, element).unwrap_or_else(str::to_owned);
            let valid = match look.shapes.valid.get(&(tile, element)) {
                Some((r, c)) => format!("valid {r} x {c}"),
                None => String::new(),
            };
            let share = look.share(tile, element);
            let ty = format!("{} {} {} x {}", data.ty.loc, data.ty.dtype, data.ty.rows, data.ty.cols);
            rows.push(vec![name, ty, address, valid, share]);
        }
    }
    if rows.is_empty() {
        return "no tile is live\n".into();
    }
    table(&rows)
}

fn help(what: &str) -> Result<String, String> {
    if !what.is_empty() {
        let name = resolve(what)?;
        return Ok(described(|command| command == name));
    }
    let all = described(|_| true);
    Ok(format!(
        "{all}A prefix is enough: `b 12`, `s`, `p x[0:4, 0:4]`. In arrays `·` is unwritten, `?` was written as \
         another type,\n\
         `-` does not exist. At the end of input the run goes on to its end.\n"
    ))
}

/// What `help` says of these commands.
pub fn described(wanted: impl Fn(&str) -> bool) -> String {
    let one = |(name, args, does): &(&str, &str, &str)| {
        let call = format!("{name} {args}");
        if call.len() <= 24 {
            format!("  {:<24}  {does}\n", call.trim_end())
        } else {
            format!("  {call}\n  {:<24}  {does}\n", "")
        }
    };
    COMMANDS.iter().filter(|c| wanted(c.0)).map(one).collect()
}

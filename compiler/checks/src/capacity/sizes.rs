//! Tiles that no placement can help: their memory does not exist (SA-0351) or is smaller than they are (SA-0352).

use super::{FixContext, LABELS, NAMES, Thrifty, repairs};
use ptoc_diagnostics::{Budget, Diagnostic, Fix, Span};
use ptoc_ir::tile::{AddrKind, Kernel, TileData};
use ptoc_isa::{Loc, SaKind, SaViolation, Target, TileType, check_size};
use ptoc_placement::liveness::liveness;
use ptoc_placement::value_liveness::holding;
use rustc_hash::{FxHashMap, FxHashSet};

/// Parameters whose influence on the tiles is looked at.
const PARAMETERS: usize = 8;
/// Values of a parameter that are tried for that, until one gives a kernel.
const VALUES: usize = 2;

type TooLarge<'k> = (&'k TileData, SaViolation);

/// Reports each mistake in sizes once: of a memory's tiles that are too large for one reason, the first is told of and
/// the others are listed. Tiles with constant addresses are judged where the address is written. Hidden tiles are as
/// large as what the author has written makes them, so they are silent if a tile of the author's is too large for their
/// memory.
pub fn check_sizes(kernel: &Kernel, target: &Target, author: &dyn FixContext, budget: &Budget) -> Vec<Diagnostic> {
    let author = &Thrifty::new(author, kernel, budget);
    let mut reasons = Reasons { kernel, target, author, parameters: None };
    let mut out = Vec::new();
    for loc in Loc::ALL {
        let (hidden, named): (Vec<_>, Vec<_>) = too_large(kernel, target, loc).partition(|(d, _)| d.hidden);
        let only_hidden = named.is_empty();
        for group in reasons.groups(named) {
            let (first, violation) = &group[0];
            let d = violation.diagnostic(&format!("tile `{}`", first.name), first.span);
            out.push(with_others(d, first.span, &group[1..], ""));
        }
        if let Some((first, violation)) = hidden.first().filter(|_| only_hidden) {
            let d = violation
                .diagnostic(&format!("a hidden tile for `{}`", first.name), first.span)
                .with_note("the compiler needs this tile to carry out what is written here");
            out.push(with_others(d, first.span, &hidden[1..], "the hidden "));
        }
    }
    // In the order of the source.
    out.sort_by_key(|d| d.span.map(|s| s.start));
    out
}

/// Whether there is a tile that [`check_sizes`] would report.
pub(super) fn any_too_large(kernel: &Kernel, target: &Target) -> bool {
    Loc::ALL.into_iter().any(|loc| too_large(kernel, target, loc).next().is_some())
}

/// What would make tiles smaller that no placement can help, tried.
pub fn smaller(kernel: &Kernel, target: &Target, author: &dyn FixContext, budget: &Budget) -> Vec<Fix> {
    let Some(loc) = Loc::ALL.into_iter().find(|&loc| too_large(kernel, target, loc).next().is_some()) else {
        return Vec::new();
    };
    let (live, values) = (liveness(kernel), holding(kernel));
    repairs::Repairs::new(kernel, &live, &values, target, &Thrifty::new(author, kernel, budget))
        .parameters(target.home(loc))
}

fn too_large<'k>(kernel: &'k Kernel, target: &'k Target, loc: Loc) -> impl Iterator<Item = TooLarge<'k>> {
    let of_loc = kernel.tiles.values().filter(move |d| d.ty.loc == loc && !matches!(d.addr, AddrKind::Fixed(_)));
    of_loc.filter_map(|d| Some((d, check_size(target, d.ty)?)))
}

/// Points at the tiles that are too large for the same reason, and names those that there are too many of for that.
fn with_others(mut d: Diagnostic, first: Span, others: &[TooLarge], called: &str) -> Diagnostic {
    let mut told = FxHashSet::from_iter([first]);
    let others: Vec<&TooLarge> = others.iter().filter(|o| told.insert(o.0.span)).collect();
    for (other, violation) in others.iter().take(LABELS) {
        let text = match violation.kind {
            SaKind::Absent => format!("{called}`{}` lives there too", other.name),
            _ => format!("{called}`{}` is too large too: {} bytes", other.name, violation.size),
        };
        d = d.with_secondary(other.span, text);
    }
    if let Some(rest) = others.get(LABELS..).filter(|rest| !rest.is_empty()) {
        let names: Vec<String> = rest.iter().take(NAMES).map(|o| format!("`{}`", o.0.name)).collect();
        let more = if rest.len() > NAMES { format!(" and {} more", rest.len() - NAMES) } else { String::new() };
        d = d.with_note(format!("so are {}{more}", names.join(", ")));
    }
    d
}

/// Types of the tiles that one place declares.
type Declared = FxHashMap<Span, Vec<TileType>>;

/// Which tiles of a memory are wrong for one reason: there is no such memory, they have the same larger extent, or a
/// parameter decides the sizes of both.
struct Reasons<'k> {
    kernel: &'k Kernel,
    target: &'k Target,
    author: &'k dyn FixContext,
    /// For each parameter the declarations whose tiles it decides; found out when it is first asked for.
    parameters: Option<Vec<FxHashSet<Span>>>,
}

impl Reasons<'_> {
    fn groups<'a>(&mut self, tiles: Vec<TooLarge<'a>>) -> Vec<Vec<TooLarge<'a>>> {
        let mut out: Vec<Vec<TooLarge>> = Vec::new();
        for tile in tiles {
            let place = out.iter().position(|group| group.iter().any(|other| self.one_reason(other, &tile)));
            match place {
                Some(n) => out[n].push(tile),
                None => out.push(vec![tile]),
            }
        }
        out
    }

    fn one_reason(&mut self, a: &TooLarge, b: &TooLarge) -> bool {
        if a.1.kind == SaKind::Absent || extent(a.0.ty) == extent(b.0.ty) {
            return true;
        }
        let Reasons { kernel, target, author, parameters } = self;
        let parameters = parameters.get_or_insert_with(|| decided(kernel, target, *author));
        parameters.iter().any(|decided| decided.contains(&a.0.span) && decided.contains(&b.0.span))
    }
}

fn extent(ty: TileType) -> u32 {
    ty.rows.max(ty.cols)
}

/// The declarations whose tiles have another size with another value, for each parameter.
fn decided(kernel: &Kernel, target: &Target, author: &dyn FixContext) -> Vec<FxHashSet<Span>> {
    let now = declared(kernel);
    let parameters = author.parameters();
    let of = parameters.iter().take(PARAMETERS).map(|parameter| {
        let values = parameter.candidates.iter().take(VALUES);
        let other = values.filter_map(|&value| author.elaborate(Some((parameter, value)), target)).next();
        let Some(other) = other.map(|kernel| declared(&kernel)) else { return FxHashSet::default() };
        now.iter().filter(|(span, types)| other.get(*span) != Some(*types)).map(|(span, _)| *span).collect()
    });
    of.collect()
}

fn declared(kernel: &Kernel) -> Declared {
    let mut out = Declared::default();
    for tile in kernel.tiles.values() {
        out.entry(tile.span).or_default().push(tile.ty);
    }
    out
}

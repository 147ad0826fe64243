//! Where a program's tensors are in the memory of a PIM target: one place for all launches.

use super::windows::Passed;
use super::{DefaultConst, Parts, Placed, ProgramElaborator, TensorSource};
use crate::Instance;
use ptoc_diagnostics::{Diagnostic, codes};
use ptoc_elab::{Bindings, ElabResult};
use ptoc_names::resolve::mentions;
use ptoc_syntax::ast::*;

/// The const parameters by which the placement of a parameter has its default values.
fn defaults_of(k: &KernelItem, parameter: &Name, bindings: &Bindings) -> Vec<DefaultConst> {
    let Some(at) = k.params.iter().find(|p| p.name.name == *parameter).and_then(|p| p.at.as_ref()) else {
        return Vec::new();
    };
    let used = k.statics.iter().filter(|s| {
        let default = matches!(s.kind, StaticKind::Const { default: Some(_), .. });
        default && !bindings.statics.contains_key(&s.name.name) && mentions(at, &s.name.name)
    });
    used.map(|s| DefaultConst { name: s.name.name.clone(), span: s.span, kernel: k.name.name.clone() }).collect()
}

impl ProgramElaborator<'_> {
    /// A tensor is in one place in the whole program: what a parameter says must be that, what it leaves open becomes
    /// it.
    pub(super) fn launch_places(
        &mut self,
        instance: &mut Instance,
        passed: &[Passed],
        k: &KernelItem,
        bindings: &Bindings,
        parts: &mut Parts,
    ) -> ElabResult<()> {
        // A window is an array of its own in the memory, wherever its tensor is.
        let whole = instance.tensors.iter().zip(passed).filter(|(_, p)| p.window.is_none());
        for (t, Passed { source, at, .. }) in whole {
            let wanted = instance.kernel.tensors[t.id].place.clone();
            let known = parts.places.iter().find(|p| p.source == *source);
            match (wanted, known) {
                (Some(place), None) => {
                    let defaults = defaults_of(k, &t.name, bindings);
                    parts.places.push(Placed { source: *source, place, said: *at, defaults });
                }
                (Some(wanted), Some(known)) if wanted.normal() != known.place.normal() => {
                    let mut d = Diagnostic::error(
                        codes::PLACE_DIFFERS,
                        *at,
                        format!("`{}` of `{}` is placed otherwise than this tensor", t.name, instance.kernel.name),
                    )
                    .with_label("another placement")
                    .with_secondary(known.said, "placed here")
                    .with_note(format!("the parameter is at {wanted}, the tensor at {}", known.place));
                    let own = defaults_of(k, &t.name, bindings);
                    let said: Vec<&DefaultConst> = own.iter().chain(&known.defaults).collect();
                    for (n, c) in said.iter().enumerate().filter(|(n, c)| said[..*n].iter().all(|o| o.span != c.span)) {
                        let which = if n < own.len() { "this launch" } else { "an earlier launch" };
                        d = d.with_secondary(c.span, format!("{which} gives no `{}`, so this is its value", c.name));
                    }
                    let d = match said.first() {
                        Some(c) => d.with_help(format!(
                            "give `{}` the value that is meant: `{}<{} = ..>(..)`",
                            c.name, c.kernel, c.name
                        )),
                        None => d,
                    };
                    let d = d.with_help(
                        "declare a tensor with the parameter's placement, and launch a kernel that copies into it",
                    );
                    return self.elab.report(d);
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Every launch knows where its tensors are, also if a later one says so.
    pub(super) fn spread_places(parts: &mut Parts) {
        let Parts { places, steps, locals, .. } = parts;
        let place_of = |source| places.iter().find(|p| p.source == source).map(|p| p.place.clone());
        for step in steps {
            let whole = step.instance.tensors.iter().zip(&step.tensors).zip(&step.windows);
            for ((t, source), _) in whole.filter(|(_, window)| window.is_none()) {
                let place = &mut step.instance.kernel.tensors[t.id].place;
                if place.is_none() {
                    *place = place_of(*source);
                    step.elsewhere.extend(place.is_some().then_some(t.id));
                }
            }
        }
        for (k, local) in locals.iter_mut().enumerate() {
            local.place = place_of(TensorSource::Local(k));
        }
    }
}

//! Roles: statements with an issuer of their own.

use super::{ElabResult, Elaborator, ErrorReported, Jump};
use crate::Valid;
use ptoc_diagnostics::{Diagnostic, Span, codes};
use ptoc_ir::tile::{Op, RoleData, RoleId, Scope, Var};
use ptoc_syntax::ast::*;

/// The role around.
#[derive(Clone)]
pub(super) struct Inside {
    role: RoleId,
    name: Name,
    span: Span,
    /// Functions around it.
    calls: usize,
}

/// Who writes a variable, and who reads it.
#[derive(Default)]
pub(crate) struct Owner {
    /// The first role that writes it.
    written: Option<(RoleId, Span)>,
    /// Its first reads, one for each reader (`None`: outside of roles).
    read: Vec<(Option<RoleId>, Span)>,
    /// Reported already.
    refused: bool,
}

impl Elaborator<'_> {
    /// `role name { .. }`
    pub(crate) fn role_stmt(&mut self, name: &Ident, body: &Block, span: Span) -> ElabResult<()> {
        self.manual("a role", name.span)?;
        if let Some(outer) = &self.sync.role {
            let d = Diagnostic::error(
                codes::ROLE_MISUSE,
                name.span,
                format!("the role `{}` inside the role `{}`", name.name, outer.name),
            )
            .with_label("another issuer's statements")
            .with_secondary(outer.span, "issues everything in its block")
            .with_help("roles stand side by side: end one before the other begins");
            return self.report(d);
        }
        self.outside_prologue(span)?;
        let roles = &mut self.b.kernel_mut().roles;
        let new = || roles.push(RoleData { name: name.name.clone(), span: name.span });
        let role = *self.sync.roles.entry(name.name.clone()).or_insert_with(new);
        self.sync.role = Some(Inside { role, name: name.name.clone(), span: name.span, calls: self.calls.len() });
        let loops = std::mem::take(&mut self.loops);
        let before = self.valid.clone();
        let label = self.b.label(span);
        let (body, r) = self.region(|s| s.block(body));
        self.loops = loops;
        self.sync.role = None;
        self.valid.retain(|t, _| before.contains_key(t));
        // A shape that was read from memory in the role is its own affair.
        for v in self.valid.values_mut() {
            if let Valid::Known(r, c) = *v
                && !(self.b.is_available(r) && self.b.is_available(c))
            {
                *v = Valid::InRole(name.span);
            }
        }
        self.emit(Op::Scope(Box::new(Scope { label, role: Some(role), body })), span);
        r
    }

    /// A jump must stay inside of the role.
    pub(crate) fn jump_in_role(&mut self, jump: Jump, span: Span) -> ElabResult<()> {
        let Some(role) = &self.sync.role else { return Ok(()) };
        let leaves = role.calls == self.calls.len() && (matches!(jump, Jump::Return) || self.loops.is_empty());
        if !leaves {
            return Ok(());
        }
        let word = jump.word();
        let d = Diagnostic::error(codes::ROLE_MISUSE, span, format!("`{word}` would leave the role `{}`", role.name))
            .with_label("the other issuers would not hear of it")
            .with_secondary(role.span, "one of several issuers")
            .with_help(match jump {
                Jump::Loop(_) => "put the loop into the role: each role has loops of its own",
                Jump::Return => "use `if` around the rest of the role's block",
            });
        self.report(d)
    }

    /// A variable is read; `name` is how messages call it.
    pub(crate) fn read_var(&mut self, var: Var, name: &str, span: Span) -> ElabResult<()> {
        let here = self.sync.role.as_ref().map(|r| r.role);
        if self.b.kernel().sync != ptoc_ir::tile::SyncMode::Manual {
            return Ok(());
        }
        let owner = self.sync.owners.entry(var).or_default();
        if !owner.read.iter().any(|(r, _)| *r == here) {
            owner.read.push((here, span));
        }
        self.owned(var, name)
    }

    /// A variable is assigned, its declaration aside.
    pub(crate) fn write_var(&mut self, var: Var, name: &str, span: Span) -> ElabResult<()> {
        let Some(here) = self.sync.role.as_ref().map(|r| r.role) else { return Ok(()) };
        let owner = self.sync.owners.entry(var).or_default();
        let (first, _) = *owner.written.get_or_insert((here, span));
        if first != here {
            owner.read.push((Some(here), span));
        }
        self.owned(var, name)
    }

    /// What a role writes, only it may use: each issuer has registers of its own.
    fn owned(&mut self, var: Var, name: &str) -> ElabResult<()> {
        let Some(owner) = self.sync.owners.get_mut(&var) else { return Ok(()) };
        let Some((writer, at)) = owner.written else { return Ok(()) };
        let Some((reader, used)) = owner.read.iter().find(|(r, _)| *r != Some(writer)).copied() else { return Ok(()) };
        if std::mem::replace(&mut owner.refused, true) {
            return Err(ErrorReported);
        }
        let roles = &self.b.kernel().roles;
        let writer = roles[writer].name.clone();
        let (reader, label) = match reader {
            Some(r) => (format!("the role `{}` uses it too", roles[r].name), "used by another role"),
            None => ("the kernel uses it outside of roles too".to_string(), "not known outside of the role"),
        };
        let d = Diagnostic::error(
            codes::ROLE_VARIABLE,
            used,
            format!("{name} belongs to the role `{writer}`, which changes it, and {reader}"),
        )
        .with_label(label)
        .with_secondary(at, format!("changed by the role `{writer}`"))
        .with_note("roles run at the same time, each with scalars of its own; they share tiles and tensors")
        .with_help("count in each role with a `var` of its own, or compute it before the roles");
        self.report(d)
    }
}

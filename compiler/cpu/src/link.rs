//! The functions of a module: what the launch and the block function call.
//!
//! They are declared while their callers are emitted, and made afterwards.

use crate::contract::{self, Product};
use crate::func::Emit;
use crate::listing::Sources;
use crate::nest::Nest;
use crate::output::Output;
use crate::routines::Routine;
use cranelift_codegen::ir::types::I64;
use cranelift_codegen::ir::{AbiParam, FuncRef, InstBuilder, Signature, Type, Value};
use cranelift_codegen::isa::CallConv;
use cranelift_module::{FuncId, Linkage};
use rustc_hash::{FxHashMap, FxHashSet};

/// What a function is made of.
pub(crate) enum FunctionPart {
    /// A matrix product.
    Product(Product),
    /// A loop nest.
    Nest(Box<Nest>),
}

/// A function to be made.
pub(crate) struct CodeUnit {
    pub(crate) id: FuncId,
    pub(crate) name: String,
    pub(crate) signature: Signature,
    pub(crate) part: FunctionPart,
    /// Where it is called, and what it is made of there.
    pub(crate) sources: Sources,
}

/// The functions so far.
pub(crate) struct Link {
    pub(crate) output: Output,
    /// What the names of functions begin with.
    prefix: String,
    call_conv: CallConv,
    pub(crate) pieces: Vec<CodeUnit>,
    /// The routines that are called.
    pub(crate) routines: FxHashMap<Routine, FuncId>,
    /// A product needs room for packed panels, behind the module's arena.
    pub(crate) panels: bool,
    /// See [`crate::Options::exact`].
    pub(crate) exact: bool,
    /// Numbers of the tensors that blocks write.
    pub(crate) written: FxHashSet<u32>,
    /// The first refusal of a declaration.
    pub(crate) error: Option<String>,
}

impl Link {
    pub(crate) fn new(
        output: Output,
        prefix: String,
        call_conv: CallConv,
        exact: bool,
        written: FxHashSet<u32>,
    ) -> Link {
        let (pieces, routines) = (Vec::new(), FxHashMap::default());
        Link { output, prefix, call_conv, pieces, routines, panels: false, exact, written, error: None }
    }

    pub(crate) fn declare(&mut self, name: &str, linkage: Linkage, signature: &Signature) -> FuncId {
        let prefix = if linkage == Linkage::Import { "" } else { &self.prefix };
        let name = format!("{prefix}{name}");
        self.output.module().declare_function(&name, linkage, signature).unwrap_or_else(|why| {
            self.error.get_or_insert(why.to_string());
            FuncId::from_u32(0)
        })
    }

    fn signature(&self, params: impl IntoIterator<Item = Type>) -> Signature {
        let mut signature = Signature::new(self.call_conv);
        signature.params.extend(params.into_iter().map(AbiParam::new));
        signature
    }

    fn piece(
        &mut self,
        name: &str,
        params: impl IntoIterator<Item = Type>,
        part: FunctionPart,
        sources: Sources,
    ) -> FuncId {
        let signature = self.signature(params);
        let name = format!("{name}{}", self.pieces.len());
        let id = self.declare(&name, Linkage::Local, &signature);
        self.pieces.push(CodeUnit { id, name, signature, part, sources });
        id
    }

    /// The function that satisfies a test, called from one more place.
    fn known(&mut self, is: impl Fn(&FunctionPart) -> bool, sources: &Sources) -> Option<FuncId> {
        let piece = self.pieces.iter_mut().find(|p| is(&p.part))?;
        piece.sources.merge(sources);
        Some(piece.id)
    }

    /// The function of a product.
    pub(crate) fn product(&mut self, product: Product, sources: Sources) -> FuncId {
        match self.known(|part| matches!(part, FunctionPart::Product(p) if *p == product), &sources) {
            Some(id) => id,
            None => self.piece("contract", [I64; contract::PARAMS], FunctionPart::Product(product), sources),
        }
    }

    /// The function of a nest: equal nests share one.
    pub(crate) fn nest(&mut self, nest: Nest, sources: Sources) -> FuncId {
        match self.known(|part| matches!(part, FunctionPart::Nest(n) if **n == nest), &sources) {
            Some(id) => id,
            None => self.piece("nest", nest.params(), FunctionPart::Nest(Box::new(nest)), sources),
        }
    }

    fn routine(&mut self, routine: Routine) -> FuncId {
        if let Some(&id) = self.routines.get(&routine) {
            return id;
        }
        let mut signature = self.signature(routine.params().iter().copied());
        signature.returns.extend(routine.results().iter().map(|ty| AbiParam::new(*ty)));
        let id = self.declare(&routine.name(), Linkage::Import, &signature);
        self.routines.insert(routine, id);
        id
    }
}

impl Emit<'_, '_> {
    /// Calls a function of the module; what it gives, if anything.
    pub(crate) fn call(&mut self, id: FuncId, args: &[Value]) -> Option<Value> {
        let link = self.link.as_mut()?;
        let callee: FuncRef =
            *self.callees.entry(id).or_insert_with(|| link.output.module().declare_func_in_func(id, self.b.func));
        let call = self.b.ins().call(callee, args);
        self.b.inst_results(call).first().copied()
    }

    /// Calls a routine.
    pub(crate) fn call_routine(&mut self, routine: Routine, args: &[Value]) -> Option<Value> {
        let id = self.link.as_mut()?.routine(routine);
        self.call(id, args)
    }
}

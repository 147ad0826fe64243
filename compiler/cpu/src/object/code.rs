//! Functions in Cranelift's IR, written with structured control flow.

use crate::host::Host;
use crate::output::Output;
use cranelift_codegen::Context;
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{I32, I64};
use cranelift_codegen::ir::{
    AbiParam, Function, InstBuilder, MemFlagsData, Signature, StackSlotData, StackSlotKind, Type, UserFuncName, Value,
};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext, Variable};
use cranelift_module::{DataDescription, DataId, FuncId, Linkage, ModuleReloc};

/// Puts functions and data into an object.
pub(super) struct Maker {
    pub(super) output: Output,
    host: &'static Host,
    frontend: FunctionBuilderContext,
}

impl Maker {
    pub(super) fn new(output: Output, host: &'static Host) -> Maker {
        Maker { output, host, frontend: FunctionBuilderContext::new() }
    }

    /// Whether the code is for x86-64.
    pub(super) fn is_x86(&self) -> bool {
        self.host.optimised.name() == "x64"
    }

    fn signature(&self, params: &[Type], result: Option<Type>) -> Signature {
        let mut signature = Signature::new(self.host.optimised.default_call_conv());
        signature.params.extend(params.iter().map(|ty| AbiParam::new(*ty)));
        signature.returns.extend(result.map(AbiParam::new));
        signature
    }

    /// Declares a function.
    pub(super) fn declare(
        &mut self,
        name: &str,
        linkage: Linkage,
        params: &[Type],
        result: Option<Type>,
    ) -> Result<FuncId, String> {
        let signature = self.signature(params, result);
        self.output.module().declare_function(name, linkage, &signature).map_err(|e| e.to_string())
    }

    /// Defines a function; its body gets the parameters.
    pub(super) fn function(
        &mut self,
        id: FuncId,
        params: &[Type],
        result: Option<Type>,
        body: impl FnOnce(&mut Code<'_>, &[Value]),
    ) -> Result<(), String> {
        let name = UserFuncName::user(0, id.as_u32());
        let mut context = Context::for_function(Function::with_name_signature(name, self.signature(params, result)));
        let mut b = FunctionBuilder::new(&mut context.func, &mut self.frontend);
        let entry = b.create_block();
        b.append_block_params_for_function_params(entry);
        b.switch_to_block(entry);
        let values = b.block_params(entry).to_vec();
        let mut code = Code { b, output: &mut self.output };
        body(&mut code, &values);
        code.b.seal_all_blocks();
        let isa = &*self.host.optimised;
        code.b.finalize(isa.frontend_config());
        context.compile(isa, &mut ControlPlane::default()).map_err(|e| e.inner.to_string())?;
        let Some(compiled) = context.compiled_code() else { return Err("no code was made".into()) };
        let least = compiled.buffer.alignment.max(isa.function_alignment().minimum);
        let alignment = u64::from(least).max(isa.symbol_alignment());
        let relocs = compiled.buffer.relocs().iter();
        let relocs: Vec<_> = relocs.map(|r| ModuleReloc::from_mach_reloc(r, &context.func, id)).collect();
        let bytes = compiled.code_buffer().to_vec();
        self.bytes(id, alignment, &bytes, &relocs)
    }

    /// Defines a function by its machine code.
    pub(super) fn bytes(
        &mut self,
        id: FuncId,
        alignment: u64,
        bytes: &[u8],
        relocs: &[ModuleReloc],
    ) -> Result<(), String> {
        self.output.module().define_function_bytes(id, alignment, bytes, relocs).map_err(|e| e.to_string())
    }

    /// Data with addresses of other data in it: where in the data, of what, and where in that.
    pub(super) fn data(
        &mut self,
        name: &str,
        writable: bool,
        contents: Vec<u8>,
        addresses: &[(u32, DataId, i64)],
    ) -> Result<DataId, String> {
        let module = self.output.module();
        let id = module.declare_data(name, Linkage::Local, writable, false).map_err(|e| e.to_string())?;
        let mut data = DataDescription::new();
        data.define(contents.into_boxed_slice());
        data.set_align(8);
        for &(at, of, offset) in addresses {
            let value = module.declare_data_in_data(of, &mut data);
            data.write_data_addr(at, value, offset);
        }
        module.define_data(id, &data).map_err(|e| e.to_string())?;
        Ok(id)
    }
}

/// A function that is being written.
pub(super) struct Code<'f> {
    pub(super) b: FunctionBuilder<'f>,
    output: &'f mut Output,
}

impl Code<'_> {
    pub(super) fn int(&mut self, n: i64) -> Value {
        self.b.ins().iconst(I64, n)
    }

    pub(super) fn load(&mut self, at: Value, offset: i32) -> Value {
        self.b.ins().load(I64, MemFlagsData::trusted(), at, offset)
    }

    pub(super) fn store(&mut self, value: Value, at: Value, offset: i32) {
        self.b.ins().store(MemFlagsData::trusted(), value, at, offset);
    }

    pub(super) fn store_int(&mut self, n: i64, at: Value, offset: i32) {
        let value = self.int(n);
        self.store(value, at, offset);
    }

    /// The address of room on the stack.
    pub(super) fn room(&mut self, bytes: u32) -> Value {
        let data = StackSlotData::new(StackSlotKind::ExplicitSlot, bytes.max(8), 4);
        let slot = self.b.create_sized_stack_slot(data);
        self.b.ins().stack_addr(I64, slot, 0)
    }

    pub(super) fn variable(&mut self, value: Value) -> Variable {
        let variable = self.b.declare_var(I64);
        self.b.def_var(variable, value);
        variable
    }

    pub(super) fn get(&mut self, variable: Variable) -> Value {
        self.b.use_var(variable)
    }

    pub(super) fn set(&mut self, variable: Variable, value: Value) {
        self.b.def_var(variable, value);
    }

    pub(super) fn is(&mut self, cc: IntCC, a: Value, b: Value) -> Value {
        self.b.ins().icmp(cc, a, b)
    }

    pub(super) fn is_int(&mut self, cc: IntCC, a: Value, n: i64) -> Value {
        self.b.ins().icmp_imm_s(cc, a, n)
    }

    pub(super) fn plus(&mut self, a: Value, n: i64) -> Value {
        self.b.ins().iadd_imm_s(a, n)
    }

    /// `(a - 1) / b + 1`, for positive numbers: rounded up.
    pub(super) fn over(&mut self, a: Value, b: Value) -> Value {
        let less = self.plus(a, -1);
        let whole = self.b.ins().udiv(less, b);
        self.plus(whole, 1)
    }

    /// The address of a function.
    pub(super) fn address(&mut self, id: FuncId) -> Value {
        let function = self.output.module().declare_func_in_func(id, self.b.func);
        self.b.ins().func_addr(I64, function)
    }

    /// The address of data.
    pub(super) fn data(&mut self, id: DataId) -> Value {
        let data = self.output.module().declare_data_in_func(id, self.b.func);
        self.b.ins().symbol_value(I64, data)
    }

    /// Calls a function; what it gives, if anything.
    pub(super) fn call(&mut self, id: FuncId, args: &[Value]) -> Option<Value> {
        let function = self.output.module().declare_func_in_func(id, self.b.func);
        let call = self.b.ins().call(function, args);
        self.b.inst_results(call).first().copied()
    }

    /// Calls what is at an address: a function that takes an address and gives an i32.
    pub(super) fn call_at(&mut self, address: Value, arg: Value) -> Value {
        let mut signature = Signature::new(self.b.func.signature.call_conv);
        signature.params.push(AbiParam::new(I64));
        signature.returns.push(AbiParam::new(I32));
        let signature = self.b.import_signature(signature);
        let call = self.b.ins().call_indirect(signature, address, &[arg]);
        self.b.inst_results(call)[0]
    }

    /// Does `body` if `cond`, then goes on.
    pub(super) fn when(&mut self, cond: Value, body: impl FnOnce(&mut Self)) {
        let (then, on) = (self.b.create_block(), self.b.create_block());
        self.b.ins().brif(cond, then, &[], on, &[]);
        self.b.switch_to_block(then);
        body(self);
        self.b.ins().jump(on, &[]);
        self.b.switch_to_block(on);
    }

    /// Returns what `body` gives, if `cond`.
    pub(super) fn leave(&mut self, cond: Value, body: impl FnOnce(&mut Self) -> Value) {
        let (then, on) = (self.b.create_block(), self.b.create_block());
        self.b.ins().brif(cond, then, &[], on, &[]);
        self.b.set_cold_block(then);
        self.b.switch_to_block(then);
        let result = body(self);
        self.b.ins().return_(&[result]);
        self.b.switch_to_block(on);
    }

    /// Does `body` again and again: it begins with its conditions, and goes to the end by [`Code::until`].
    pub(super) fn repeat(&mut self, body: impl FnOnce(&mut Self, End)) {
        let (head, end) = (self.b.create_block(), self.b.create_block());
        self.b.ins().jump(head, &[]);
        self.b.switch_to_block(head);
        body(self, End(end));
        self.b.ins().jump(head, &[]);
        self.b.switch_to_block(end);
    }

    /// Ends a repetition if `cond`.
    pub(super) fn until(&mut self, cond: Value, end: End) {
        let on = self.b.create_block();
        self.b.ins().brif(cond, end.0, &[], on, &[]);
        self.b.switch_to_block(on);
    }
}

/// Where a repetition ends.
#[derive(Clone, Copy)]
pub(super) struct End(cranelift_codegen::ir::Block);

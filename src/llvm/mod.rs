//! LLVM: from LLVM IR to a code object, through inkwell and `ld.lld`.

pub mod codegen;
pub mod device_libs;
pub mod link;
pub mod sites;

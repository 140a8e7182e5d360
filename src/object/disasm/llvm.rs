//! LLVM's C disassembler, as one table of functions with two sources: linked, or found in a
//! libLLVM at run time.
#![allow(unsafe_code)]

use std::ffi::{CString, c_char, c_int, c_uint, c_void};
use std::path::Path;

use super::{Decoder, Disassembler};
use crate::object::chip::Target;
use crate::object::place::Vaddr;

/// The oldest LLVM whose functions are as declared here.
pub(super) const OLDEST: u32 = 19;

type Create = unsafe extern "C" fn(
    triple: *const c_char,
    cpu: *const c_char,
    features: *const c_char,
    info: *mut c_void,
    tag: c_int,
    operand: *const c_void,
    symbol: *const c_void,
) -> *mut c_void;
type Decode = unsafe extern "C" fn(
    context: *mut c_void,
    bytes: *mut u8,
    size: u64,
    address: u64,
    text: *mut c_char,
    text_size: usize,
) -> usize;
type Dispose = unsafe extern "C" fn(context: *mut c_void);
type GetVersion = unsafe extern "C" fn(*mut c_uint, *mut c_uint, *mut c_uint);
type Initialise = unsafe extern "C" fn();

/// A libLLVM.
pub(super) struct Llvm {
    create: Create,
    decode: Decode,
    dispose: Dispose,
    version: [c_uint; 3],
    source: &'static str,
    /// Keeps the functions mapped.
    _library: Option<libloading::Library>,
}

#[cfg(feature = "llvm")]
mod linked {
    use std::ffi::{c_char, c_int, c_uint, c_void};

    /// The libraries that these functions are in are linked through inkwell.
    use inkwell as _;

    // The declarations are LLVM 22's llvm-c/Disassembler.h, llvm-c/Core.h and llvm-c/Target.h.
    unsafe extern "C" {
        pub(super) fn LLVMCreateDisasmCPUFeatures(
            triple: *const c_char,
            cpu: *const c_char,
            features: *const c_char,
            info: *mut c_void,
            tag: c_int,
            operand: *const c_void,
            symbol: *const c_void,
        ) -> *mut c_void;
        pub(super) fn LLVMDisasmInstruction(
            context: *mut c_void,
            bytes: *mut u8,
            size: u64,
            address: u64,
            text: *mut c_char,
            text_size: usize,
        ) -> usize;
        pub(super) fn LLVMDisasmDispose(context: *mut c_void);
        pub(super) fn LLVMGetVersion(a: *mut c_uint, b: *mut c_uint, c: *mut c_uint);
        pub(super) fn LLVMInitializeAMDGPUTargetInfo();
        pub(super) fn LLVMInitializeAMDGPUTargetMC();
        pub(super) fn LLVMInitializeAMDGPUDisassembler();
    }
}

impl Llvm {
    /// The linked LLVM.
    #[cfg(feature = "llvm")]
    pub(super) fn linked() -> Self {
        let initialise: [Initialise; 3] = [
            linked::LLVMInitializeAMDGPUTargetInfo,
            linked::LLVMInitializeAMDGPUTargetMC,
            linked::LLVMInitializeAMDGPUDisassembler,
        ];
        let mut version = [0; 3];
        let [a, b, c] = &mut version;
        // SAFETY: these functions take no arguments but pointers to write a number through, and
        // may be called in any order; the caller runs once in a process.
        unsafe {
            initialise.iter().for_each(|function| function());
            linked::LLVMGetVersion(a, b, c);
        }
        Llvm {
            create: linked::LLVMCreateDisasmCPUFeatures,
            decode: linked::LLVMDisasmInstruction,
            dispose: linked::LLVMDisasmDispose,
            version,
            source: "linked",
            _library: None,
        }
    }

    /// Loads a libLLVM; `None` when it is older than 19, has no AMDGPU, or is something else.
    pub(super) fn open(path: &Path) -> Option<Self> {
        let mut version = [0; 3];
        let [a, b, c] = &mut version;
        // SAFETY: loading a library runs its constructors, which libLLVM's are made for. The
        // functions have the types that LLVM's C headers give these names in all versions from
        // 19 on, which is checked before any of the others is used; they stay mapped because the
        // library is kept.
        unsafe {
            let library = libloading::Library::new(path).ok()?;
            let get_version = *library.get::<GetVersion>(b"LLVMGetVersion\0").ok()?;
            get_version(a, b, c);
            if version[0] < OLDEST {
                return None;
            }
            for name in ["TargetInfo", "TargetMC", "Disassembler"] {
                let symbol = format!("LLVMInitializeAMDGPU{name}\0");
                let initialise = *library.get::<Initialise>(symbol.as_bytes()).ok()?;
                initialise();
            }
            let create = *library.get::<Create>(b"LLVMCreateDisasmCPUFeatures\0").ok()?;
            let decode = *library.get::<Decode>(b"LLVMDisasmInstruction\0").ok()?;
            let dispose = *library.get::<Dispose>(b"LLVMDisasmDispose\0").ok()?;
            let library = Some(library);
            Some(Llvm { create, decode, dispose, version, source: "loaded", _library: library })
        }
    }
}

/// The first LLVM that knows a chip, where that is a newer one than [`OLDEST`]. An LLVM takes an
/// unknown chip for a generic one and decodes wrongly.
fn first_version(chip: &str) -> u32 {
    match chip {
        "gfx950" | "gfx1153" | "gfx9-4-generic" => 20,
        "gfx1250" => 21,
        "gfx1251" => 22,
        _ => OLDEST,
    }
}

/// The name that every LLVM has for a chip: gfx940 and gfx941 were early gfx942s.
fn cpu(chip: &str) -> &str {
    match chip {
        "gfx940" | "gfx941" => "gfx942",
        chip => chip,
    }
}

/// Whether a chip's waves may have 32 lanes.
fn has_wave32(chip: &str) -> bool {
    chip.starts_with("gfx1")
}

impl Disassembler for Llvm {
    fn name(&self) -> String {
        let [major, minor, patch] = self.version;
        format!("LLVM {major}.{minor}.{patch} ({})", self.source)
    }

    fn decoder(&self, target: &Target, wave32: bool) -> Option<Box<dyn Decoder + '_>> {
        if self.version[0] < first_version(&target.chip) {
            return None;
        }
        let mut features = target.llvm_features();
        let only_wave32 = target.chip.starts_with("gfx125");
        if has_wave32(&target.chip) && !wave32 && !only_wave32 {
            let comma = if features.is_empty() { "" } else { "," };
            features = format!("{features}{comma}-wavefrontsize32,+wavefrontsize64");
        }
        let cpu = CString::new(cpu(&target.chip)).ok()?;
        let features = CString::new(features).ok()?;
        let null = std::ptr::null();
        // SAFETY: the strings end in a zero byte and live through the call, which copies them.
        // The callbacks may be null.
        let context = unsafe {
            (self.create)(
                c"amdgcn-amd-amdhsa".as_ptr(),
                cpu.as_ptr(),
                features.as_ptr(),
                std::ptr::null_mut(),
                0,
                null,
                null,
            )
        };
        (!context.is_null()).then(|| Box::new(Context { llvm: self, context }) as Box<dyn Decoder>)
    }
}

struct Context<'a> {
    llvm: &'a Llvm,
    context: *mut c_void,
}

/// The longest instruction is 20 bytes; what LLVM is shown at once.
const WINDOW: usize = 32;

impl Decoder for Context<'_> {
    fn decode(&mut self, code: &[u8], address: Vaddr, text: &mut String) -> Option<usize> {
        let mut window = [0; WINDOW];
        let size = code.len().min(WINDOW);
        window[..size].copy_from_slice(&code[..size]);
        let mut buffer = [0 as c_char; 512];
        // SAFETY: the context is alive until `self` is dropped; LLVM reads at most `size` bytes
        // of the window and writes at most the buffer's size, a zero byte included.
        let decoded = unsafe {
            (self.llvm.decode)(
                self.context,
                window.as_mut_ptr(),
                size as u64,
                address.0,
                buffer.as_mut_ptr(),
                buffer.len(),
            )
        };
        let bytes = buffer.iter().take_while(|&&byte| byte != 0).map(|&byte| byte as u8);
        text.push_str(&String::from_utf8_lossy(&bytes.collect::<Vec<_>>()));
        (decoded > 0).then_some(decoded)
    }
}

impl Drop for Context<'_> {
    fn drop(&mut self) {
        // SAFETY: the context came from `create` of the same library and is used no more.
        unsafe { (self.llvm.dispose)(self.context) }
    }
}

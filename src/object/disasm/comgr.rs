//! The disassembler of ROCm's code object manager, amd_comgr, found at run time.
#![allow(unsafe_code)]

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::Path;

use super::{Decoder, Disassembler};
use crate::object::chip::Target;
use crate::object::place::Vaddr;

/// `amd_comgr_disassembly_info_t`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Info {
    handle: u64,
}

type ReadMemory = unsafe extern "C" fn(u64, *mut c_char, u64, *mut c_void) -> u64;
type PrintInstruction = unsafe extern "C" fn(*const c_char, *mut c_void);
type PrintAddress = unsafe extern "C" fn(u64, *mut c_void);
type Create = unsafe extern "C" fn(
    isa: *const c_char,
    read: ReadMemory,
    print: PrintInstruction,
    annotate: PrintAddress,
    info: *mut Info,
) -> c_int;
type Decode = unsafe extern "C" fn(Info, address: u64, user: *mut c_void, size: *mut u64) -> c_int;
type Destroy = unsafe extern "C" fn(Info) -> c_int;
type GetVersion = unsafe extern "C" fn(major: *mut usize, minor: *mut usize);

/// An amd_comgr library.
pub(super) struct Comgr {
    create: Create,
    decode: Decode,
    destroy: Destroy,
    version: [usize; 2],
    /// Keeps the functions mapped.
    _library: libloading::Library,
}

impl Comgr {
    /// Loads an amd_comgr; `None` when the file is something else.
    pub(super) fn open(path: &Path) -> Option<Self> {
        let mut version = [0; 2];
        let [major, minor] = &mut version;
        // SAFETY: loading a library runs its constructors, which amd_comgr's are made for. The
        // functions have the types that amd_comgr.h gives these names in all its versions, and
        // stay mapped because the library is kept.
        unsafe {
            let library = libloading::Library::new(path).ok()?;
            let get_version = *library.get::<GetVersion>(b"amd_comgr_get_version\0").ok()?;
            get_version(major, minor);
            let create = *library.get::<Create>(b"amd_comgr_create_disassembly_info\0").ok()?;
            let decode = *library.get::<Decode>(b"amd_comgr_disassemble_instruction\0").ok()?;
            let destroy = *library.get::<Destroy>(b"amd_comgr_destroy_disassembly_info\0").ok()?;
            Some(Comgr { create, decode, destroy, version, _library: library })
        }
    }
}

impl Disassembler for Comgr {
    fn name(&self) -> String {
        format!("amd_comgr {}.{}", self.version[0], self.version[1])
    }

    fn decoder(&self, target: &Target, _wave32: bool) -> Option<Box<dyn Decoder + '_>> {
        let isa = CString::new(format!("amdgcn-amd-amdhsa--{target}")).ok()?;
        let mut info = Info { handle: 0 };
        // SAFETY: the name ends in a zero byte and lives through the call; the callbacks live as
        // long as the program, and `info` is written when the status is 0.
        let status = unsafe {
            (self.create)(isa.as_ptr(), read_memory, print_instruction, print_address, &mut info)
        };
        (status == 0).then(|| Box::new(Context { comgr: self, info }) as Box<dyn Decoder>)
    }
}

struct Context<'a> {
    comgr: &'a Comgr,
    info: Info,
}

/// What one call decodes, behind the callbacks' user pointer.
struct Request<'a> {
    code: &'a [u8],
    start: u64,
    text: &'a mut String,
}

/// Copies code to the library: how many of the `size` bytes at `from` there are.
unsafe extern "C" fn read_memory(from: u64, to: *mut c_char, size: u64, user: *mut c_void) -> u64 {
    // SAFETY: `user` is the request of the call to `decode` that is running.
    let request = unsafe { &*user.cast::<Request<'_>>() };
    let at = usize::try_from(from.wrapping_sub(request.start)).unwrap_or(usize::MAX);
    let Some(rest) = request.code.get(at..) else { return 0 };
    let size = rest.len().min(usize::try_from(size).unwrap_or(usize::MAX));
    // SAFETY: the library gives room for the number of bytes that it asks for.
    unsafe { std::ptr::copy_nonoverlapping(rest.as_ptr(), to.cast(), size) };
    size as u64
}

unsafe extern "C" fn print_instruction(text: *const c_char, user: *mut c_void) {
    // SAFETY: `user` is the request of the call to `decode` that is running, which alone uses
    // it; the text ends in a zero byte.
    let (request, text) = unsafe { (&mut *user.cast::<Request<'_>>(), CStr::from_ptr(text)) };
    request.text.push_str(&text.to_string_lossy());
}

unsafe extern "C" fn print_address(_address: u64, _user: *mut c_void) {}

impl Decoder for Context<'_> {
    fn decode(&mut self, code: &[u8], address: Vaddr, text: &mut String) -> Option<usize> {
        let mut request = Request { code, start: address.0, text };
        let mut size = 0;
        // SAFETY: `info` is alive until `self` is dropped; the callbacks get the request back
        // and use it during the call only.
        let status = unsafe {
            let user = (&raw mut request).cast();
            (self.comgr.decode)(self.info, address.0, user, &mut size)
        };
        (status == 0 && size > 0).then_some(size as usize)
    }
}

impl Drop for Context<'_> {
    fn drop(&mut self) {
        // SAFETY: the handle came from `create` of the same library and is used no more.
        unsafe { (self.comgr.destroy)(self.info) };
    }
}

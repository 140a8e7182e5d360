//! MLIR's C API, found in the running process.
//!
//! A Python package that binds MLIR brings its own copy of it. [`provider`] finds the copy that
//! belongs to a package by the package's folder: of the libraries that the process has loaded
//! from there, the one through which every function of the table is reached, all of them
//! defined in one library (which may lie elsewhere, such as a `libMLIR-C.so` of the system).
//! Libraries that define only some, as Debian's libMLIR does, are no providers.
#![allow(unsafe_code)]

use std::collections::HashMap;
use std::ffi::{CStr, CString, OsStr, OsString, c_char, c_int, c_void};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use super::api::Api;

/// A library of this process that defines MLIR's C API.
#[derive(Debug)]
pub struct Provider {
    /// Its functions.
    pub api: Api,
    /// Its file.
    pub library: PathBuf,
}

/// Why a package has no MLIR that siteline can use.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum RuntimeError {
    /// No library of the folder is loaded.
    #[error("no library is loaded from '{}'", .0.display())]
    NotLoaded(PathBuf),
    /// The package's libraries hide MLIR's C API, or have no MLIR.
    #[error(
        "no library loaded from '{}' exports MLIR's C API ({} looked at): siteline needs a package that does", .folder.display(), .libraries
    )]
    NoApi {
        /// The package's folder.
        folder: PathBuf,
        /// How many libraries of it are loaded.
        libraries: usize,
    },
    /// The C API lacks functions: it is too old, too new, or only a part of it.
    #[error("'{}' lacks {} of MLIR's C API", .library.display(), .missing.join(", "))]
    Incomplete {
        /// The library.
        library: PathBuf,
        /// The functions that it lacks.
        missing: Vec<&'static str>,
    },
}

/// The provider that belongs to the package in a folder; looked for once for each folder.
///
/// # Errors
/// See [`RuntimeError`]; a failure is not remembered, since libraries may be loaded later.
pub fn provider(folder: &Path) -> Result<&'static Provider, RuntimeError> {
    static FOUND: Mutex<Option<HashMap<PathBuf, &'static Provider>>> = Mutex::new(None);
    let mut found = FOUND.lock().unwrap_or_else(PoisonError::into_inner);
    let found = found.get_or_insert_default();
    if let Some(provider) = found.get(folder) {
        return Ok(provider);
    }
    // A loaded library stays loaded: the handle in `Library` is never closed. So a provider is
    // good for ever, and there is one for each package.
    let provider: &'static Provider = Box::leak(Box::new(find(folder)?));
    found.insert(folder.into(), provider);
    Ok(provider)
}

fn find(folder: &Path) -> Result<Provider, RuntimeError> {
    let folder = folder.canonicalize().unwrap_or_else(|_| folder.into());
    let libraries = loaded_from(&folder);
    if libraries.is_empty() {
        return Err(RuntimeError::NotLoaded(folder));
    }
    let mut best: Option<(PathBuf, Vec<&'static str>)> = None;
    for library in libraries.iter().filter_map(|path| Library::open(path)) {
        let Some(definer) = library.definer() else { continue };
        // SAFETY: `symbol` gives the addresses of the functions of those names in the library
        // that defines them; the C API's names are MLIR's own.
        match unsafe { Api::from_symbols(|name| library.symbol_of(name, &definer)) } {
            Ok(api) => return Ok(Provider { api, library: definer }),
            Err(missing) if best.as_ref().is_none_or(|(_, least)| missing.len() < least.len()) => {
                best = Some((definer, missing));
            }
            Err(_) => {}
        }
    }
    Err(match best {
        Some((library, missing)) => RuntimeError::Incomplete { library, missing },
        None => RuntimeError::NoApi { folder, libraries: libraries.len() },
    })
}

/// A library that the process has loaded already.
struct Library {
    handle: *mut c_void,
}

impl Library {
    /// The loaded library of that path, which stays loaded from now on.
    fn open(path: &Path) -> Option<Library> {
        let path = CString::new(path.as_os_str().as_bytes()).ok()?;
        let flags = libc::RTLD_NOLOAD | libc::RTLD_LAZY | libc::RTLD_NODELETE;
        // SAFETY: the path is a C string; RTLD_NOLOAD runs no code of a library that is not
        // loaded already.
        let handle = unsafe { libc::dlopen(path.as_ptr(), flags) };
        (!handle.is_null()).then_some(Library { handle })
    }

    /// The address of a symbol in the library or what it depends on, and the defining file.
    fn symbol(&self, name: &str) -> Option<(*const c_void, PathBuf)> {
        let name = CString::new(name).ok()?;
        // SAFETY: the handle is never closed, and the name is a C string.
        let address = unsafe { libc::dlsym(self.handle, name.as_ptr()) };
        if address.is_null() {
            return None;
        }
        Some((address.cast_const(), file_of(address)?))
    }

    /// The library that defines the first function of the table that is reached from here.
    fn definer(&self) -> Option<PathBuf> {
        Api::NAMES.iter().find_map(|name| Some(self.symbol(name)?.1))
    }

    /// The address of a symbol, if that library defines it.
    fn symbol_of(&self, name: &str, definer: &Path) -> Option<*const c_void> {
        self.symbol(name).filter(|(_, file)| file == definer).map(|(address, _)| address)
    }
}

/// The file of the library that an address lies in.
fn file_of(address: *mut c_void) -> Option<PathBuf> {
    let mut info = std::mem::MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: dladdr takes any address, and fills the structure where it returns non-zero.
    let info = unsafe {
        if libc::dladdr(address, info.as_mut_ptr()) == 0 {
            return None;
        }
        info.assume_init()
    };
    // SAFETY: the name is a C string of the loader, which lives as long as the library.
    unsafe { path_of(info.dli_fname) }
}

/// # Safety
/// The pointer must be null or a C string.
unsafe fn path_of(name: *const c_char) -> Option<PathBuf> {
    if name.is_null() {
        return None;
    }
    // SAFETY: it is not null, so the caller promises a C string.
    let bytes = unsafe { CStr::from_ptr(name) }.to_bytes();
    (!bytes.is_empty()).then(|| PathBuf::from(OsString::from_vec(bytes.to_vec())))
}

/// The libraries that are loaded from below a folder, in the order of loading.
fn loaded_from(folder: &Path) -> Vec<PathBuf> {
    let below = |path: &PathBuf| match path.canonicalize() {
        Ok(real) => real.starts_with(folder),
        Err(_) => path.starts_with(folder),
    };
    loaded().into_iter().filter(below).collect()
}

/// The libraries of this process, in the order of loading.
fn loaded() -> Vec<PathBuf> {
    unsafe extern "C" fn add(
        info: *mut libc::dl_phdr_info,
        _size: libc::size_t,
        paths: *mut c_void,
    ) -> c_int {
        // SAFETY: `loaded` passes its own vector, and the loader a valid entry.
        let (paths, name) = unsafe { (&mut *paths.cast::<Vec<PathBuf>>(), (*info).dlpi_name) };
        // SAFETY: the loader gives null or a C string.
        paths.extend(unsafe { path_of(name) });
        0
    }
    let mut paths: Vec<PathBuf> = Vec::new();
    // SAFETY: the callback has the signature that dl_iterate_phdr asks for and does not unwind,
    // and the vector outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(add), (&raw mut paths).cast()) };
    paths.retain(|path| path.as_os_str() != OsStr::new("linux-vdso.so.1"));
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_c_library_is_found_and_is_no_provider() {
        let file = file_of(libc::getpid as *mut c_void).unwrap();
        let folder = file.canonicalize().unwrap().parent().unwrap().to_path_buf();
        let error = provider(&folder).unwrap_err();
        #[cfg(not(feature = "llvm"))]
        assert!(matches!(error, RuntimeError::NoApi { .. }), "{error}");
        #[cfg(feature = "llvm")]
        assert!(!matches!(error, RuntimeError::NotLoaded(_)), "{error}");
        let library = Library::open(&file).unwrap();
        assert_eq!(library.symbol("getpid").unwrap().1, file);
        assert!(library.symbol_of("getpid", Path::new("/other")).is_none());
    }

    #[test]
    fn a_folder_without_loaded_libraries_is_named() {
        let error = provider(Path::new("/nonexistent")).unwrap_err();
        assert_eq!(error.to_string(), "no library is loaded from '/nonexistent'");
    }
}

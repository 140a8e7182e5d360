//! MLIR's C API as one table of function pointers.
//!
//! The table has two sources. Linked in (`Api::linked`, feature `llvm`) it is what the plugin
//! and the command line use; looked up in a running process it is what the Python package uses.
//! The types are declared here, not taken from generated bindings, so that the table needs no
//! LLVM to compile. Signatures are those of the headers `mlir-c/IR.h`, `mlir-c/Support.h` and
//! `mlir-c/BuiltinAttributes.h`, which are the same from MLIR 19 on.
#![allow(unsafe_code, non_snake_case)]

use std::ffi::c_void;

macro_rules! handles {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[repr(C)]
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub struct $name(pub *const c_void);
    )*};
}

handles! {
    /// `MlirContext`
    RawContext;
    /// `MlirOperation`
    RawOperation;
    /// `MlirRegion`
    RawRegion;
    /// `MlirBlock`
    RawBlock;
    /// `MlirValue`
    RawValue;
    /// `MlirType`
    RawType;
    /// `MlirAttribute`
    RawAttribute;
    /// `MlirLocation`
    RawLocation;
    /// `MlirIdentifier`
    RawIdentifier;
}

/// `MlirStringRef`: bytes that somebody else owns.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct RawStringRef {
    /// The first byte; may be null when the length is 0.
    pub data: *const u8,
    /// The length in bytes.
    pub length: usize,
}

impl From<&str> for RawStringRef {
    fn from(text: &str) -> Self {
        RawStringRef { data: text.as_ptr(), length: text.len() }
    }
}

/// `MlirStringCallback`: receives a printed text in pieces.
pub type StringCallback = unsafe extern "C" fn(RawStringRef, *mut c_void);

/// See [`Bulk::walk`].
pub type BulkWalk = unsafe fn(RawOperation, &mut dyn FnMut(&[usize]), &mut dyn FnMut(RawValue));

/// Functions for many operations at once, which cost no call an operation.
#[derive(Clone, Copy, Debug)]
pub struct Bulk {
    /// Gives the addresses of all operations below one, in batches, each with the addresses of
    /// its location and its name behind it; after them the block arguments.
    pub walk: BulkWalk,
    /// Sets the location of each operation below one, in the order of `walk`, to the target of
    /// its slot, as an address; a target of 0 leaves the operation as it is. Returns how many
    /// were set; `None` where an operation has no slot or a slot no target.
    pub set_locations: unsafe fn(RawOperation, slots: &[u32], targets: &[usize]) -> Option<usize>,
}

#[cfg(feature = "llvm")]
impl Bulk {
    fn linked() -> Self {
        use crate::plugin::bulk;
        Bulk { walk: bulk::walk, set_locations: bulk::set_locations }
    }
}

macro_rules! api {
    ($($name:ident: fn($($argument:ty),*) $(-> $result:ty)?;)*) => {
        /// The functions of MLIR's C API that siteline calls, under their own names.
        #[allow(non_snake_case, missing_docs)]
        #[derive(Clone, Debug)]
        pub struct Api {
            $(pub $name: unsafe extern "C" fn($($argument),*) $(-> $result)?,)*
            /// Quicker ways to what the functions above do too; only where they are linked.
            pub bulk: Option<Bulk>,
        }

        impl Api {
            /// The names of all functions of the table, in the order of its fields.
            pub const NAMES: &'static [&'static str] = &[$(stringify!($name)),*];

            /// A table from the addresses that `find` gives for the names.
            ///
            /// # Errors
            /// The names that `find` has no address for.
            ///
            /// # Safety
            /// Each address must be that of the C API function of that name.
            pub unsafe fn from_symbols(
                mut find: impl FnMut(&'static str) -> Option<*const c_void>,
            ) -> Result<Api, Vec<&'static str>> {
                let mut missing = Vec::new();
                $(let $name = find(stringify!($name));
                if $name.is_none() { missing.push(stringify!($name)); })*
                if !missing.is_empty() {
                    return Err(missing);
                }
                let address = |found: Option<*const c_void>| found.expect("nothing is missing");
                Ok(Api {
                    $($name: {
                        let address = address($name);
                        // SAFETY: the caller promises that this is the function of that name,
                        // and the field has the signature that the C header gives it.
                        unsafe {
                            std::mem::transmute::<
                                *const c_void,
                                unsafe extern "C" fn($($argument),*) $(-> $result)?,
                            >(address)
                        }
                    },)*
                    bulk: None,
                })
            }

            /// The functions that this library is linked with.
            #[cfg(feature = "llvm")]
            pub fn linked() -> &'static Api {
                static LINKED: std::sync::LazyLock<Api> = std::sync::LazyLock::new(|| {
                    // SAFETY: mlir-sys binds each name to the function of the same name in the
                    // headers of the library that is linked.
                    let api = unsafe {
                        Api::from_symbols(|name| match name {
                            $(stringify!($name) => Some(mlir_sys::$name as *const c_void),)*
                            _ => None,
                        })
                    }
                    .expect("every name has an arm");
                    Api { bulk: Some(Bulk::linked()), ..api }
                });
                &LINKED
            }
        }
    };
}

api! {
    mlirArrayAttrGetElement: fn(RawAttribute, isize) -> RawAttribute;
    mlirArrayAttrGetNumElements: fn(RawAttribute) -> isize;
    mlirAttributeIsAArray: fn(RawAttribute) -> bool;
    mlirAttributeIsALocation: fn(RawAttribute) -> bool;
    mlirAttributeIsAString: fn(RawAttribute) -> bool;
    mlirAttributeParseGet: fn(RawContext, RawStringRef) -> RawAttribute;
    mlirAttributePrint: fn(RawAttribute, StringCallback, *mut c_void);
    mlirBlockArgumentSetLocation: fn(RawValue, RawLocation);
    mlirBlockGetArgument: fn(RawBlock, isize) -> RawValue;
    mlirBlockGetFirstOperation: fn(RawBlock) -> RawOperation;
    mlirBlockGetNextInRegion: fn(RawBlock) -> RawBlock;
    mlirBlockGetNumArguments: fn(RawBlock) -> isize;
    mlirIdentifierStr: fn(RawIdentifier) -> RawStringRef;
    mlirLocationCallSiteGet: fn(RawLocation, RawLocation) -> RawLocation;
    mlirLocationCallSiteGetCallee: fn(RawLocation) -> RawLocation;
    mlirLocationCallSiteGetCaller: fn(RawLocation) -> RawLocation;
    mlirLocationFileLineColGet: fn(RawContext, RawStringRef, u32, u32) -> RawLocation;
    mlirLocationFileLineColRangeGetFilename: fn(RawLocation) -> RawIdentifier;
    mlirLocationFileLineColRangeGetStartColumn: fn(RawLocation) -> i32;
    mlirLocationFileLineColRangeGetStartLine: fn(RawLocation) -> i32;
    mlirLocationFromAttribute: fn(RawAttribute) -> RawLocation;
    mlirLocationFusedGet: fn(RawContext, isize, *const RawLocation, RawAttribute) -> RawLocation;
    mlirLocationFusedGetLocations: fn(RawLocation, *mut RawLocation);
    mlirLocationFusedGetMetadata: fn(RawLocation) -> RawAttribute;
    mlirLocationFusedGetNumLocations: fn(RawLocation) -> u32;
    mlirLocationGetAttribute: fn(RawLocation) -> RawAttribute;
    mlirLocationIsACallSite: fn(RawLocation) -> bool;
    mlirLocationIsAFileLineColRange: fn(RawLocation) -> bool;
    mlirLocationIsAFused: fn(RawLocation) -> bool;
    mlirLocationIsAName: fn(RawLocation) -> bool;
    mlirLocationNameGet: fn(RawContext, RawStringRef, RawLocation) -> RawLocation;
    mlirLocationNameGetChildLoc: fn(RawLocation) -> RawLocation;
    mlirLocationNameGetName: fn(RawLocation) -> RawIdentifier;
    mlirLocationPrint: fn(RawLocation, StringCallback, *mut c_void);
    mlirLocationUnknownGet: fn(RawContext) -> RawLocation;
    mlirOperationGetAttributeByName: fn(RawOperation, RawStringRef) -> RawAttribute;
    mlirOperationGetContext: fn(RawOperation) -> RawContext;
    mlirOperationGetFirstRegion: fn(RawOperation) -> RawRegion;
    mlirOperationGetLocation: fn(RawOperation) -> RawLocation;
    mlirOperationGetName: fn(RawOperation) -> RawIdentifier;
    mlirOperationGetNextInBlock: fn(RawOperation) -> RawOperation;
    mlirOperationGetNumOperands: fn(RawOperation) -> isize;
    mlirOperationGetNumResults: fn(RawOperation) -> isize;
    mlirOperationGetOperand: fn(RawOperation, isize) -> RawValue;
    mlirOperationGetParentOperation: fn(RawOperation) -> RawOperation;
    mlirOperationGetResult: fn(RawOperation, isize) -> RawValue;
    mlirOperationSetLocation: fn(RawOperation, RawLocation);
    mlirRegionGetFirstBlock: fn(RawRegion) -> RawBlock;
    mlirRegionGetNextInOperation: fn(RawRegion) -> RawRegion;
    mlirStringAttrGet: fn(RawContext, RawStringRef) -> RawAttribute;
    mlirStringAttrGetValue: fn(RawAttribute) -> RawStringRef;
    mlirTypePrint: fn(RawType, StringCallback, *mut c_void);
    mlirValueGetLocation: fn(RawValue) -> RawLocation;
    mlirValueGetType: fn(RawValue) -> RawType;
}

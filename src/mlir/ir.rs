//! MLIR's IR, seen through an [`Api`]: handles that are as cheap as the pointers they hold.
//!
//! Everything hangs on the lifetime `'m` of an [`Ir`], which is made once, unsafely, from a raw
//! operation: whoever makes it promises that the operation and all that is in it is alive for
//! `'m`, that nobody else changes it meanwhile, and that the table belongs to the library that
//! made it. With that, reading and setting locations cannot go wrong, so the handles' methods
//! are safe.
#![allow(unsafe_code)]

use std::ffi::c_void;
use std::marker::PhantomData;

use super::api::{
    Api, RawAttribute, RawBlock, RawContext, RawIdentifier, RawLocation, RawOperation, RawRegion,
    RawStringRef, RawType, RawValue,
};

/// An operation and all that is in it, with the table to work on it.
#[derive(Clone, Copy)]
pub struct Ir<'m> {
    api: &'m Api,
    context: RawContext,
    root: RawOperation,
}

macro_rules! handle {
    ($(#[$doc:meta])* $name:ident($raw:ident)) => {
        $(#[$doc])*
        #[repr(transparent)]
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub struct $name<'m>($raw, PhantomData<&'m Api>);
    };
}

handle! {
    /// An operation.
    Op(RawOperation)
}
handle! {
    /// A region of an operation.
    Region(RawRegion)
}
handle! {
    /// A block of a region.
    Block(RawBlock)
}
handle! {
    /// An operand, result or block argument.
    Value(RawValue)
}
handle! {
    /// A type. Types are uniqued: equal types are the same pointer.
    Type(RawType)
}
handle! {
    /// An attribute. Attributes are uniqued: equal attributes are the same pointer.
    Attribute(RawAttribute)
}
handle! {
    /// A location. Locations are uniqued: equal locations are the same pointer.
    Loc(RawLocation)
}
handle! {
    /// An interned string: equal identifiers are the same pointer.
    Identifier(RawIdentifier)
}

impl Loc<'_> {
    /// The location as an address, unique among the locations of its context.
    pub fn address(self) -> usize {
        self.0.0 as usize
    }
}

impl Identifier<'_> {
    /// The identifier as an address, unique among those of its context.
    pub fn address(self) -> usize {
        self.0.0 as usize
    }
}

impl Op<'_> {
    /// The operation as the C API has it.
    pub fn raw(self) -> RawOperation {
        self.0
    }
}

impl Loc<'_> {
    /// The location as the C API has it.
    pub fn raw(self) -> RawLocation {
        self.0
    }
}

/// An operation with its location and its name.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Located<'m> {
    /// The operation.
    pub op: Op<'m>,
    /// Its location.
    pub location: Loc<'m>,
    /// Its name.
    pub name: Identifier<'m>,
}

/// A location, taken apart by one level.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LocKind<'m> {
    /// No position at all.
    Unknown,
    /// A position in a file; of a range, its start.
    File {
        /// The file's path.
        file: Identifier<'m>,
        /// The line, 0 for none.
        line: u32,
        /// The column, 0 for none.
        column: u32,
    },
    /// `"name"(child)`.
    Name {
        /// The name: of a function, variable or pass, whatever the front end meant.
        name: Identifier<'m>,
        /// What is named.
        child: Loc<'m>,
    },
    /// `callsite(callee at caller)`.
    CallSite {
        /// The inner place.
        callee: Loc<'m>,
        /// The place it is called from.
        caller: Loc<'m>,
    },
    /// `fused<metadata>[children]`; the children come from [`Ir::fused_children`].
    Fused {
        /// The metadata, if any.
        metadata: Option<Attribute<'m>>,
    },
    /// A location that stands for another one, such as an `OpaqueLoc`.
    Alias(Loc<'m>),
}

/// What the C API says with a null pointer.
fn non_null<'m, R: Copy, H>(
    pointer: *const c_void,
    raw: R,
    wrap: impl FnOnce(R, PhantomData<&'m Api>) -> H,
) -> Option<H> {
    (!pointer.is_null()).then(|| wrap(raw, PhantomData))
}

unsafe extern "C" fn append(piece: RawStringRef, text: *mut c_void) {
    // SAFETY: `print` passes its own vector, and the C API passes a valid piece of text.
    let (text, piece) = unsafe { (&mut *text.cast::<Vec<u8>>(), bytes(piece)) };
    text.extend_from_slice(piece);
}

/// # Safety
/// The bytes must be valid for `'a`.
unsafe fn bytes<'a>(text: RawStringRef) -> &'a [u8] {
    if text.length == 0 {
        return &[];
    }
    // SAFETY: the caller promises that the bytes are valid, and they are not null.
    unsafe { std::slice::from_raw_parts(text.data, text.length) }
}

fn print(write: impl FnOnce(super::api::StringCallback, *mut c_void)) -> String {
    let mut text: Vec<u8> = Vec::new();
    write(append, (&raw mut text).cast());
    String::from_utf8_lossy(&text).into_owned()
}

/// Calls functions of the table; sound by the promise that [`Ir::new`] asks for.
macro_rules! call {
    ($ir:expr, $name:ident($($argument:expr),*)) => {{
        let function = $ir.api.$name;
        // SAFETY: the table belongs to the library that made these handles, and `Ir::new` was
        // promised that they are alive and not used elsewhere.
        unsafe { function($($argument),*) }
    }};
}

impl<'m> Ir<'m> {
    /// The IR below an operation.
    ///
    /// # Safety
    /// For `'m`, the operation and all that is in it must be alive and must not be used by
    /// anything else, its context must stay alive and may be used by other threads only in the
    /// ways that MLIR allows, and the table must belong to the library that made it.
    pub unsafe fn new(api: &'m Api, root: RawOperation) -> Self {
        // SAFETY: the caller promises a live operation of the table's library.
        let context = unsafe { (api.mlirOperationGetContext)(root) };
        Ir { api, context, root }
    }

    /// The operation that the IR was made from.
    pub fn root(&self) -> Op<'m> {
        Op(self.root, PhantomData)
    }

    /// The operation's name, such as `gpu.func`.
    pub fn name(&self, op: Op<'m>) -> Identifier<'m> {
        Identifier(call!(self, mlirOperationGetName(op.0)), PhantomData)
    }

    /// The text of an identifier. What is not UTF-8 in it is replaced.
    pub fn text(&self, identifier: Identifier<'m>) -> std::borrow::Cow<'m, str> {
        let text = call!(self, mlirIdentifierStr(identifier.0));
        // SAFETY: identifiers live as long as their context, which outlives `'m`.
        String::from_utf8_lossy(unsafe { bytes(text) })
    }

    /// The operation's location.
    pub fn location(&self, op: Op<'m>) -> Loc<'m> {
        Loc(call!(self, mlirOperationGetLocation(op.0)), PhantomData)
    }

    /// Sets the operation's location.
    pub fn set_location(&self, op: Op<'m>, location: Loc<'m>) {
        call!(self, mlirOperationSetLocation(op.0, location.0));
    }

    /// The location of a block argument, or of what defines a result.
    pub fn value_location(&self, value: Value<'m>) -> Loc<'m> {
        Loc(call!(self, mlirValueGetLocation(value.0)), PhantomData)
    }

    /// Sets the location of a block argument that came from [`Ir::arguments`].
    pub fn set_argument_location(&self, argument: Value<'m>, location: Loc<'m>) {
        call!(self, mlirBlockArgumentSetLocation(argument.0, location.0));
    }

    /// The operation around this one.
    pub fn parent(&self, op: Op<'m>) -> Option<Op<'m>> {
        let parent = call!(self, mlirOperationGetParentOperation(op.0));
        non_null(parent.0, parent, Op)
    }

    /// The first region of an operation.
    pub fn first_region(&self, op: Op<'m>) -> Option<Region<'m>> {
        let region = call!(self, mlirOperationGetFirstRegion(op.0));
        non_null(region.0, region, Region)
    }

    /// The region behind this one in their operation.
    pub fn next_region(&self, region: Region<'m>) -> Option<Region<'m>> {
        let region = call!(self, mlirRegionGetNextInOperation(region.0));
        non_null(region.0, region, Region)
    }

    /// The first block of a region.
    pub fn first_block(&self, region: Region<'m>) -> Option<Block<'m>> {
        let block = call!(self, mlirRegionGetFirstBlock(region.0));
        non_null(block.0, block, Block)
    }

    /// The block behind this one in their region.
    pub fn next_block(&self, block: Block<'m>) -> Option<Block<'m>> {
        let block = call!(self, mlirBlockGetNextInRegion(block.0));
        non_null(block.0, block, Block)
    }

    /// The first operation of a block.
    pub fn first_op(&self, block: Block<'m>) -> Option<Op<'m>> {
        let op = call!(self, mlirBlockGetFirstOperation(block.0));
        non_null(op.0, op, Op)
    }

    /// The operation behind this one in their block.
    pub fn next_op(&self, op: Op<'m>) -> Option<Op<'m>> {
        let op = call!(self, mlirOperationGetNextInBlock(op.0));
        non_null(op.0, op, Op)
    }

    /// The arguments of a block.
    pub fn arguments(&self, block: Block<'m>) -> impl Iterator<Item = Value<'m>> + use<'m> {
        let ir = *self;
        let count = call!(ir, mlirBlockGetNumArguments(block.0));
        (0..count).map(move |at| Value(call!(ir, mlirBlockGetArgument(block.0, at)), PhantomData))
    }

    /// The operands of an operation.
    pub fn operands(&self, op: Op<'m>) -> impl Iterator<Item = Value<'m>> + use<'m> {
        let ir = *self;
        let count = call!(ir, mlirOperationGetNumOperands(op.0));
        (0..count).map(move |at| Value(call!(ir, mlirOperationGetOperand(op.0, at)), PhantomData))
    }

    /// The results of an operation.
    pub fn results(&self, op: Op<'m>) -> impl Iterator<Item = Value<'m>> + use<'m> {
        let ir = *self;
        let count = call!(ir, mlirOperationGetNumResults(op.0));
        (0..count).map(move |at| Value(call!(ir, mlirOperationGetResult(op.0, at)), PhantomData))
    }

    /// The operands of an operation and then its results.
    pub fn operands_and_results(&self, op: Op<'m>) -> impl Iterator<Item = Value<'m>> + use<'m> {
        self.operands(op).chain(self.results(op))
    }

    /// The type of a value.
    pub fn value_type(&self, value: Value<'m>) -> Type<'m> {
        Type(call!(self, mlirValueGetType(value.0)), PhantomData)
    }

    /// The attribute of that name, inherent or discardable.
    pub fn attribute(&self, op: Op<'m>, name: &str) -> Option<Attribute<'m>> {
        let attribute = call!(self, mlirOperationGetAttributeByName(op.0, name.into()));
        non_null(attribute.0, attribute, Attribute)
    }

    /// The value of a string attribute; `None` for others.
    pub fn string(&self, attribute: Attribute<'m>) -> Option<std::borrow::Cow<'m, str>> {
        if !call!(self, mlirAttributeIsAString(attribute.0)) {
            return None;
        }
        let text = call!(self, mlirStringAttrGetValue(attribute.0));
        // SAFETY: attributes live as long as their context, which outlives `'m`.
        Some(String::from_utf8_lossy(unsafe { bytes(text) }))
    }

    /// The text of a type, as MLIR prints it.
    pub fn type_text(&self, ty: Type<'m>) -> String {
        print(|callback, data| call!(self, mlirTypePrint(ty.0, callback, data)))
    }

    /// The text of an attribute, as MLIR prints it.
    pub fn attribute_text(&self, attribute: Attribute<'m>) -> String {
        print(|callback, data| call!(self, mlirAttributePrint(attribute.0, callback, data)))
    }

    /// The text of a location, as MLIR prints it: `loc(...)`.
    pub fn location_text(&self, location: Loc<'m>) -> String {
        print(|callback, data| call!(self, mlirLocationPrint(location.0, callback, data)))
    }

    /// The location that an attribute is, if it is one.
    pub fn as_location(&self, attribute: Attribute<'m>) -> Option<Loc<'m>> {
        call!(self, mlirAttributeIsALocation(attribute.0))
            .then(|| Loc(call!(self, mlirLocationFromAttribute(attribute.0)), PhantomData))
    }

    /// Visits every operation below the root in batches and then every block argument, if the
    /// table has a quick way to; says whether it has.
    pub fn walk_in_bulk(
        &self,
        root: Op<'m>,
        mut visit_ops: impl FnMut(&[Located<'m>]),
        mut visit_argument: impl FnMut(Value<'m>),
    ) -> bool {
        let Some(bulk) = self.api.bulk else { return false };
        let mut visit_ops = |batch: &[usize]| {
            let count = batch.len() / 3;
            // SAFETY: a `Located` is three pointers and nothing else, in the order in which the
            // shim writes them; they are live handles of this IR.
            visit_ops(unsafe { std::slice::from_raw_parts(batch.as_ptr().cast(), count) });
        };
        let mut visit_argument = |argument| visit_argument(Value(argument, PhantomData));
        // SAFETY: `Ir::new` was promised that the operation is alive, of the table's library,
        // and used by nobody else.
        unsafe { (bulk.walk)(root.0, &mut visit_ops, &mut visit_argument) };
        true
    }

    /// [`super::functions::set_locations`], if the table has a quick way to do it.
    pub fn set_locations_in_bulk(
        &self,
        root: Op<'m>,
        slots: &[u32],
        targets: &[Option<Loc<'m>>],
    ) -> Option<usize> {
        let bulk = self.api.bulk?;
        let address = |target: &Option<Loc<'m>>| target.map_or(0, Loc::address);
        let targets: Vec<usize> = targets.iter().map(address).collect();
        // SAFETY: as in `walk_in_bulk`; the targets are locations of the same context.
        let set = unsafe { (bulk.set_locations)(root.0, slots, &targets) };
        Some(set.expect("each operation has a slot, and each slot a target"))
    }

    /// Takes a location apart by one level.
    pub fn kind(&self, location: Loc<'m>) -> LocKind<'m> {
        let raw = location.0;
        let loc = |raw| Loc(raw, PhantomData);
        if call!(self, mlirLocationIsAFileLineColRange(raw)) {
            let number = |signed: i32| u32::try_from(signed).unwrap_or(0);
            return LocKind::File {
                file: Identifier(
                    call!(self, mlirLocationFileLineColRangeGetFilename(raw)),
                    PhantomData,
                ),
                line: number(call!(self, mlirLocationFileLineColRangeGetStartLine(raw))),
                column: number(call!(self, mlirLocationFileLineColRangeGetStartColumn(raw))),
            };
        }
        if call!(self, mlirLocationIsACallSite(raw)) {
            return LocKind::CallSite {
                callee: loc(call!(self, mlirLocationCallSiteGetCallee(raw))),
                caller: loc(call!(self, mlirLocationCallSiteGetCaller(raw))),
            };
        }
        if call!(self, mlirLocationIsAName(raw)) {
            return LocKind::Name {
                name: Identifier(call!(self, mlirLocationNameGetName(raw)), PhantomData),
                child: loc(call!(self, mlirLocationNameGetChildLoc(raw))),
            };
        }
        if call!(self, mlirLocationIsAFused(raw)) {
            let metadata = call!(self, mlirLocationFusedGetMetadata(raw));
            return LocKind::Fused { metadata: non_null(metadata.0, metadata, Attribute) };
        }
        self.alias(location)
    }

    /// The C API has no accessors for an `OpaqueLoc`, but MLIR prints it as its fallback.
    fn alias(&self, location: Loc<'m>) -> LocKind<'m> {
        if location == self.unknown() {
            return LocKind::Unknown;
        }
        let text = self.location_text(location);
        let parsed = call!(self, mlirAttributeParseGet(self.context, text.as_str().into()));
        non_null(parsed.0, parsed, Attribute)
            .and_then(|parsed| self.as_location(parsed))
            .filter(|fallback| *fallback != location)
            .map_or(LocKind::Unknown, LocKind::Alias)
    }

    /// The children of a fused location.
    pub fn fused_children(&self, location: Loc<'m>) -> Vec<Loc<'m>> {
        let count = call!(self, mlirLocationFusedGetNumLocations(location.0)) as usize;
        let mut children = vec![RawLocation(std::ptr::null()); count];
        call!(self, mlirLocationFusedGetLocations(location.0, children.as_mut_ptr()));
        children.into_iter().map(|child| Loc(child, PhantomData)).collect()
    }

    /// The unknown location.
    pub fn unknown(&self) -> Loc<'m> {
        Loc(call!(self, mlirLocationUnknownGet(self.context)), PhantomData)
    }

    /// A position in a file.
    pub fn file_loc(&self, file: &str, line: u32, column: u32) -> Loc<'m> {
        Loc(
            call!(self, mlirLocationFileLineColGet(self.context, file.into(), line, column)),
            PhantomData,
        )
    }

    /// `"name"(child)`.
    pub fn named(&self, name: &str, child: Loc<'m>) -> Loc<'m> {
        Loc(call!(self, mlirLocationNameGet(self.context, name.into(), child.0)), PhantomData)
    }

    /// `callsite(callee at caller)`.
    pub fn call_site(&self, callee: Loc<'m>, caller: Loc<'m>) -> Loc<'m> {
        Loc(call!(self, mlirLocationCallSiteGet(callee.0, caller.0)), PhantomData)
    }

    /// `fused<metadata>[children]`; without metadata, MLIR may simplify it.
    pub fn fused(&self, children: &[Loc<'m>], metadata: Option<Attribute<'m>>) -> Loc<'m> {
        let raw: Vec<RawLocation> = children.iter().map(|child| child.0).collect();
        let metadata = metadata.map_or(RawAttribute(std::ptr::null()), |metadata| metadata.0);
        Loc(
            call!(
                self,
                mlirLocationFusedGet(self.context, raw.len() as isize, raw.as_ptr(), metadata)
            ),
            PhantomData,
        )
    }

    /// A location as an attribute.
    pub fn location_attribute(&self, location: Loc<'m>) -> Attribute<'m> {
        Attribute(call!(self, mlirLocationGetAttribute(location.0)), PhantomData)
    }

    /// The elements of an array attribute, from its text. `None` where MLIR refuses the text.
    pub fn parse_array(&self, text: &str) -> Option<Vec<Attribute<'m>>> {
        let array = call!(self, mlirAttributeParseGet(self.context, text.into()));
        if array.0.is_null() || !call!(self, mlirAttributeIsAArray(array)) {
            return None;
        }
        let count = call!(self, mlirArrayAttrGetNumElements(array));
        let element = |at| Attribute(call!(self, mlirArrayAttrGetElement(array, at)), PhantomData);
        Some((0..count).map(element).collect())
    }

    /// A string attribute.
    pub fn string_attribute(&self, text: &str) -> Attribute<'m> {
        Attribute(call!(self, mlirStringAttrGet(self.context, text.into())), PhantomData)
    }
}

//! Sites in LLVM IR, after the optimiser: `DILocation`s with `inlinedAt` are chains.
//!
//! Helpers that are functions of their own are in no chain of the front end. LLVM inlines them,
//! and only then is the call site of the schedule a frame that can be chosen. Setting it before
//! code is generated also keeps the code generator from merging two lines of a helper to line 0
//! where the site is one. Calls that stay calls keep their lines.
//!
//! The optimiser drops and merges locations as well: what is left without one gets the line of
//! the instruction that it belongs to, marked with the reserved discriminator.
#![allow(unsafe_code)]

use inkwell::llvm_sys::LLVMOpcode;
use inkwell::llvm_sys::core::*;
use inkwell::llvm_sys::debuginfo::*;
use inkwell::llvm_sys::prelude::*;
use inkwell::module::Module;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::chain::{ChainId, Chains, Frame, Line, Sym};
use crate::leaf::{self, Class};
use crate::neighbours;
use crate::object::dwarf::INFERRED_DISCRIMINATOR;
use crate::site::{Kernel, Settings, SiteModel};

/// What one run did.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Summary {
    /// Instructions that were moved to the site of their chain.
    pub moved: usize,
    /// Instructions without a usable line that got one.
    pub inferred: usize,
}

/// Which chains get a site.
pub enum Which {
    /// All of them.
    All,
    /// Those that lead through a call that LLVM inlined, given the functions that there were.
    Inlined(Subprograms),
}

/// The subprograms of the functions of a module.
pub struct Subprograms(FxHashSet<LLVMMetadataRef>);

/// Calls LLVM's C API; sound because a [`Module`] keeps all that is in it alive, and these are
/// the handles that it gave.
macro_rules! llvm {
    ($name:ident($($argument:expr),* $(,)?)) => {
        // SAFETY: the arguments are live handles of the module at work, of the kind that the
        // function takes, and the module is not used elsewhere meanwhile.
        unsafe { $name($($argument),*) }
    };
}

/// The functions of a module that have a body and a subprogram.
fn functions(module: &Module<'_>) -> Vec<(LLVMValueRef, LLVMMetadataRef)> {
    let first = llvm!(LLVMGetFirstFunction(module.as_mut_ptr()));
    let all =
        std::iter::successors(non_null(first), |at| non_null(llvm!(LLVMGetNextFunction(*at))));
    all.filter(|function| llvm!(LLVMCountBasicBlocks(*function)) > 0)
        .map(|function| (function, llvm!(LLVMGetSubprogram(function))))
        .filter(|(_, subprogram)| !subprogram.is_null())
        .collect()
}

fn non_null<T>(pointer: *mut T) -> Option<*mut T> {
    (!pointer.is_null()).then_some(pointer)
}

impl Subprograms {
    /// The subprograms of a module's functions. They keep their identity when LLVM inlines.
    pub fn of(module: &Module<'_>) -> Self {
        Subprograms(functions(module).into_iter().map(|(_, subprogram)| subprogram).collect())
    }
}

/// Moves instructions to the sites of their chains, and infers lines for those without one.
pub fn place(module: &Module<'_>, settings: &Settings, which: &Which, infer: bool) -> Summary {
    let mut placer = Placer::new(module, settings);
    let mut summary = Summary::default();
    for (function, subprogram) in functions(module) {
        let body = Body::collect(function);
        summary.moved += placer.move_to_sites(&body, subprogram, which);
        if infer {
            summary.inferred += placer.infer(&body, subprogram);
        }
    }
    summary
}

/// The instructions of a function in their order.
struct Body {
    instructions: Vec<LLVMValueRef>,
    blocks: Vec<Vec<usize>>,
    index: FxHashMap<LLVMValueRef, usize>,
}

impl Body {
    fn collect(function: LLVMValueRef) -> Self {
        let mut body =
            Body { instructions: Vec::new(), blocks: Vec::new(), index: FxHashMap::default() };
        let first = llvm!(LLVMGetFirstBasicBlock(function));
        let blocks = std::iter::successors(non_null(first), |at| {
            non_null(llvm!(LLVMGetNextBasicBlock(*at)))
        });
        for block in blocks {
            let first = llvm!(LLVMGetFirstInstruction(block));
            let instructions = std::iter::successors(non_null(first), |at| {
                non_null(llvm!(LLVMGetNextInstruction(*at)))
            });
            let from = body.instructions.len();
            for instruction in instructions {
                body.index.insert(instruction, body.instructions.len());
                body.instructions.push(instruction);
            }
            body.blocks.push((from..body.instructions.len()).collect());
        }
        body
    }

    fn operands(&self, at: usize) -> impl Iterator<Item = usize> + '_ {
        let instruction = self.instructions[at];
        let count = llvm!(LLVMGetNumOperands(instruction)).max(0) as u32;
        (0..count)
            .map(move |operand| llvm!(LLVMGetOperand(instruction, operand)))
            .filter_map(|value| self.index.get(&value).copied())
    }

    fn is_phi(&self, at: usize) -> bool {
        llvm!(LLVMGetInstructionOpcode(self.instructions[at])) == LLVMOpcode::LLVMPHI
    }

    /// The order of `siteline-infer`: the only user, the operands' makers in the block, the
    /// nearest in the block, the nearest in the function. A phi is no code, and joins what comes
    /// from elsewhere, so nothing is learnt through it.
    fn infer(&self, sites: &mut [Option<LLVMMetadataRef>]) {
        let mut users: Vec<Vec<usize>> = vec![Vec::new(); sites.len()];
        for at in 0..sites.len() {
            self.operands(at).for_each(|operand| users[operand].push(at));
        }
        for at in (0..sites.len()).rev() {
            users[at].dedup();
            if let (None, [user]) = (sites[at], &users[at][..])
                && !self.is_phi(*user)
            {
                sites[at] = sites[*user];
            }
        }
        for block in &self.blocks {
            for &at in block {
                if sites[at].is_none() && !self.is_phi(at) {
                    let makers = self.operands(at).filter(|maker| block.contains(maker));
                    let made = makers.filter(|maker| sites[*maker].is_some()).max();
                    sites[at] = made.and_then(|maker| sites[maker]);
                }
            }
        }
        for block in &self.blocks {
            neighbours::fill(block, sites);
        }
        neighbours::fill(&(0..sites.len()).collect::<Vec<_>>(), sites);
    }
}

/// One level of a chain as LLVM has it.
#[derive(Clone, Copy)]
struct Level {
    location: LLVMMetadataRef,
    subprogram: LLVMMetadataRef,
}

struct Placer<'a> {
    context: LLVMContextRef,
    module: LLVMModuleRef,
    settings: &'a Settings,
    chains: Chains,
    known: FxHashMap<LLVMMetadataRef, Option<ChainId>>,
    files: FxHashMap<LLVMMetadataRef, Sym>,
}

impl<'a> Placer<'a> {
    fn new(module: &Module<'_>, settings: &'a Settings) -> Self {
        let module = module.as_mut_ptr();
        Placer {
            context: llvm!(LLVMGetModuleContext(module)),
            module,
            settings,
            chains: Chains::new(),
            known: FxHashMap::default(),
            files: FxHashMap::default(),
        }
    }

    fn move_to_sites(&mut self, body: &Body, subprogram: LLVMMetadataRef, which: &Which) -> usize {
        let settings = self.settings;
        let definition = self.definition(subprogram);
        let mut model = SiteModel::new(settings, Kernel { symbol: None, definition });
        let mut uses = Vec::new();
        for &instruction in &body.instructions {
            let location = llvm!(LLVMInstructionGetDebugLoc(instruction));
            if let Some(chain) = self.chain(location) {
                let class = class_of(instruction);
                model.add(&mut self.chains, chain, class);
                uses.push((instruction, location, chain, class));
            }
        }
        let sites = model.choose(&self.chains);
        let mut moved = 0;
        for (instruction, location, chain, class) in uses {
            let Some(site) = sites.site(chain, class) else { continue };
            let depth = self.chains.suffixes(chain).position(|at| at == site).unwrap_or(0);
            if depth > 0 && self.is_wanted(location, which) {
                let level = self.levels(location)[depth].location;
                llvm!(LLVMInstructionSetDebugLoc(instruction, self.copy(level, None)));
                moved += 1;
            }
        }
        moved
    }

    fn is_wanted(&self, location: LLVMMetadataRef, which: &Which) -> bool {
        match which {
            Which::All => true,
            Which::Inlined(functions) => {
                let levels = self.levels(location);
                let inlined = &levels[..levels.len() - 1];
                inlined.iter().any(|level| functions.0.contains(&level.subprogram))
            }
        }
    }

    fn infer(&mut self, body: &Body, subprogram: LLVMMetadataRef) -> usize {
        let definition = self.definition(subprogram);
        let mut sites: Vec<Option<LLVMMetadataRef>> = Vec::new();
        for at in 0..body.instructions.len() {
            let location = llvm!(LLVMInstructionGetDebugLoc(body.instructions[at]));
            let chain = self.chain(location).filter(|_| !body.is_phi(at));
            sites.push(chain.filter(|chain| self.is_usable(*chain, definition)).map(|_| location));
        }
        let without: Vec<usize> = (0..sites.len()).filter(|at| sites[*at].is_none()).collect();
        body.infer(&mut sites);
        let mut inferred = 0;
        for at in without {
            if let (Some(site), false) = (sites[at], body.is_phi(at)) {
                let location = self.copy(site, Some(INFERRED_DISCRIMINATOR));
                llvm!(LLVMInstructionSetDebugLoc(body.instructions[at], location));
                inferred += 1;
            }
        }
        inferred
    }

    fn is_usable(&self, chain: ChainId, definition: Option<Line>) -> bool {
        let line = self.chains.innermost(chain).line();
        let is_author = |line: Line| {
            definition.is_some_and(|definition| definition.file == line.file)
                || !self.settings.library.contains(self.chains.str(line.file))
        };
        line.number != 0 && Some(line) != definition && self.chains.lines(chain).any(is_author)
    }

    /// A location of the same place that is not distinct, in a scope with a discriminator if
    /// one is given.
    fn copy(&self, location: LLVMMetadataRef, discriminator: Option<u32>) -> LLVMMetadataRef {
        let mut scope = llvm!(LLVMDILocationGetScope(location));
        if let Some(discriminator) = discriminator {
            let builder = llvm!(LLVMCreateDIBuilderDisallowUnresolved(self.module));
            let file = llvm!(LLVMDIScopeGetFile(scope));
            scope = llvm!(LLVMDIBuilderCreateLexicalBlockFile(builder, scope, file, discriminator));
            llvm!(LLVMDisposeDIBuilder(builder));
        }
        llvm!(LLVMDIBuilderCreateDebugLocation(
            self.context,
            LLVMDILocationGetLine(location),
            LLVMDILocationGetColumn(location),
            scope,
            LLVMDILocationGetInlinedAt(location),
        ))
    }

    fn definition(&mut self, subprogram: LLVMMetadataRef) -> Option<Line> {
        let file = self.file(subprogram)?;
        Some(Line { file, number: llvm!(LLVMDISubprogramGetLine(subprogram)) })
    }

    /// The chain of a location; `None` without one.
    fn chain(&mut self, location: LLVMMetadataRef) -> Option<ChainId> {
        if location.is_null() {
            return None;
        }
        if let Some(&known) = self.known.get(&location) {
            return known;
        }
        let frames: Vec<Frame> =
            self.levels(location).iter().map(|level| self.frame(level.location)).collect();
        let chain = self.chains.intern(frames);
        self.known.insert(location, chain);
        chain
    }

    fn frame(&mut self, location: LLVMMetadataRef) -> Frame {
        let file = self.file(llvm!(LLVMDILocationGetScope(location)));
        Frame {
            file: file.unwrap_or_else(|| self.chains.sym("<unknown>")),
            line: llvm!(LLVMDILocationGetLine(location)),
            column: llvm!(LLVMDILocationGetColumn(location)),
            function: None,
        }
    }

    /// A location and those that it was inlined at, innermost first.
    fn levels(&self, location: LLVMMetadataRef) -> Vec<Level> {
        std::iter::successors(non_null(location), |at| {
            non_null(llvm!(LLVMDILocationGetInlinedAt(*at)))
        })
        .map(|location| Level { location, subprogram: self.subprogram(location) })
        .collect()
    }

    /// The subprogram around a location's scope.
    fn subprogram(&self, location: LLVMMetadataRef) -> LLVMMetadataRef {
        let mut scope = llvm!(LLVMDILocationGetScope(location));
        // The second operand of a block is the scope around it.
        while matches!(
            llvm!(LLVMGetMetadataKind(scope)),
            LLVMMetadataKind::LLVMDILexicalBlockMetadataKind
                | LLVMMetadataKind::LLVMDILexicalBlockFileMetadataKind
        ) {
            let node = llvm!(LLVMMetadataAsValue(self.context, scope));
            let count = llvm!(LLVMGetMDNodeNumOperands(node)) as usize;
            let mut operands = vec![std::ptr::null_mut(); count];
            llvm!(LLVMGetMDNodeOperands(node, operands.as_mut_ptr()));
            match operands.get(1).copied().and_then(non_null) {
                Some(outer) => scope = llvm!(LLVMValueAsMetadata(outer)),
                None => break,
            }
        }
        scope
    }

    fn file(&mut self, scope: LLVMMetadataRef) -> Option<Sym> {
        let file = non_null(llvm!(LLVMDIScopeGetFile(scope)))?;
        if let Some(&known) = self.files.get(&file) {
            return Some(known);
        }
        let mut length = 0;
        let name = llvm!(LLVMDIFileGetFilename(file, &raw mut length));
        let name = text(name, length as usize);
        let folder = llvm!(LLVMDIFileGetDirectory(file, &raw mut length));
        let folder = text(folder, length as usize);
        let is_whole = folder.is_empty() || name.starts_with('/');
        let path = if is_whole { name } else { format!("{folder}/{name}") };
        let sym = self.chains.sym(&path);
        self.files.insert(file, sym);
        Some(sym)
    }
}

/// The leaf class of an instruction, by the intrinsic, assembly or address space it is about.
fn class_of(instruction: LLVMValueRef) -> Class {
    match llvm!(LLVMGetInstructionOpcode(instruction)) {
        LLVMOpcode::LLVMCall => class_of_call(llvm!(LLVMGetCalledValue(instruction))),
        LLVMOpcode::LLVMLoad => {
            let pointer = llvm!(LLVMTypeOf(LLVMGetOperand(instruction, 0)));
            /// The number of LDS among AMDGPU's address spaces.
            const LDS: u32 = 3;
            if llvm!(LLVMGetPointerAddressSpace(pointer)) == LDS {
                Class::Lds
            } else {
                Class::Other
            }
        }
        _ => Class::Other,
    }
}

fn class_of_call(callee: LLVMValueRef) -> Class {
    let mut length = 0;
    if !llvm!(LLVMIsAInlineAsm(callee)).is_null() {
        let assembly = llvm!(LLVMGetInlineAsmAsmString(callee, &raw mut length));
        return leaf::class_of_asm(&text(assembly, length));
    }
    let name = llvm!(LLVMGetValueName2(callee, &raw mut length));
    leaf::class_of_intrinsic(&text(name, length))
}

/// A text that LLVM keeps.
fn text(data: *const std::ffi::c_char, length: usize) -> String {
    if data.is_null() {
        return String::new();
    }
    // SAFETY: LLVM gave the text with its length, and keeps it while the module is alive.
    let bytes = unsafe { std::slice::from_raw_parts(data.cast::<u8>(), length) };
    String::from_utf8_lossy(bytes).into_owned()
}

//! The functions of an IR that run on the device, and the classes of what is in them.

use rustc_hash::FxHashMap;

use super::ir::{Attribute, Identifier, Ir, Loc, Located, Op, Type, Value};
use crate::leaf::{self, Class, LeafTable, OpClass, Space};

/// A device function: a function-like operation, or the body of a `gpu.launch`.
#[derive(Clone, Debug)]
pub struct Function<'m> {
    /// The operation.
    pub op: Op<'m>,
    /// Its symbol.
    pub symbol: Option<String>,
    /// Whether it is marked as a kernel.
    pub is_kernel: bool,
}

/// Attributes that mark a kernel, by the dialect that has them.
const KERNEL_MARKS: &[&str] = &["gpu.kernel", "rocdl.kernel", "amdgpu.kernel", "nvvm.kernel"];

/// Finds the device functions at and below the root, in their order.
///
/// Where the module has GPU code apart (a `gpu.module`, or `gpu.container_module` said of it),
/// the functions outside it are the host's, unless marked as kernels. What is inside a device
/// function belongs to it.
pub fn device_functions<'m>(ir: &Ir<'m>) -> Vec<Function<'m>> {
    let apart = has_gpu_code_apart(ir);
    let in_gpu_module = ancestors(ir, ir.root()).any(|op| is_gpu_module(ir, op));
    let mut functions = Vec::new();
    let mut open = vec![(ir.root(), in_gpu_module)];
    while let Some((op, on_device)) = open.pop() {
        let on_device = on_device || is_gpu_module(ir, op);
        if let Some(function) = as_function(ir, op)
            && (on_device || function.is_kernel || !apart)
        {
            functions.push(function);
            continue;
        }
        let inner = open.len();
        let with_regions = operations_in(ir, op).filter(|op| ir.first_region(*op).is_some());
        open.extend(with_regions.map(|op| (op, on_device)));
        open[inner..].reverse();
    }
    functions
}

fn ancestors<'m>(ir: &Ir<'m>, op: Op<'m>) -> impl Iterator<Item = Op<'m>> + use<'m> {
    let ir = *ir;
    std::iter::successors(ir.parent(op), move |op| ir.parent(*op))
}

fn is_gpu_module<'m>(ir: &Ir<'m>, op: Op<'m>) -> bool {
    ir.text(ir.name(op)) == "gpu.module"
}

fn has_gpu_code_apart<'m>(ir: &Ir<'m>) -> bool {
    let root = ir.root();
    std::iter::once(root)
        .chain(ancestors(ir, root))
        .any(|op| ir.attribute(op, "gpu.container_module").is_some())
        || operations_in(ir, root).any(|op| is_gpu_module(ir, op))
}

/// The operations directly in the regions of an operation.
pub fn operations_in<'m>(ir: &Ir<'m>, op: Op<'m>) -> impl Iterator<Item = Op<'m>> + use<'m> {
    let ir = *ir;
    std::iter::successors(ir.first_region(op), move |region| ir.next_region(*region))
        .flat_map(move |region| {
            std::iter::successors(ir.first_block(region), move |block| ir.next_block(*block))
        })
        .flat_map(move |block| std::iter::successors(ir.first_op(block), move |op| ir.next_op(*op)))
}

fn as_function<'m>(ir: &Ir<'m>, op: Op<'m>) -> Option<Function<'m>> {
    ir.first_region(op)?;
    let name = ir.text(ir.name(op));
    if name == "gpu.launch" {
        return Some(Function { op, symbol: None, is_kernel: true });
    }
    let symbol = ir.string(ir.attribute(op, "sym_name")?)?.into_owned();
    ir.attribute(op, "function_type")?;
    let is_kernel = KERNEL_MARKS.iter().any(|mark| ir.attribute(op, mark).is_some())
        || (name == "gpu.func" && ir.attribute(op, "kernel").is_some())
        || ir
            .attribute(op, "CConv")
            .is_some_and(|convention| ir.attribute_text(convention).contains("amdgpu_kernel"));
    Some(Function { op, symbol: Some(symbol), is_kernel })
}

/// Visits every operation and block argument below an operation, but not the operation itself.
pub fn walk<'m>(
    ir: &Ir<'m>,
    root: Op<'m>,
    mut visit_op: impl FnMut(Op<'m>),
    mut visit_argument: impl FnMut(Value<'m>),
) {
    // The first operation not visited yet of each block that is open.
    let mut open: Vec<Op<'m>> = Vec::new();
    let mut open_blocks = |op: Op<'m>, open: &mut Vec<Op<'m>>| {
        let mut region = ir.first_region(op);
        while let Some(this) = region {
            let mut block = ir.first_block(this);
            while let Some(this) = block {
                ir.arguments(this).for_each(&mut visit_argument);
                open.extend(ir.first_op(this));
                block = ir.next_block(this);
            }
            region = ir.next_region(this);
        }
    };
    open_blocks(root, &mut open);
    while let Some(op) = open.pop() {
        open.extend(ir.next_op(op));
        open_blocks(op, &mut open);
        visit_op(op);
    }
}

/// Visits what [`walk`] does, in its order but arguments last: operations in batches, with
/// their locations and names.
pub fn walk_located<'m>(
    ir: &Ir<'m>,
    root: Op<'m>,
    mut visit_ops: impl FnMut(&[Located<'m>]),
    mut visit_argument: impl FnMut(Value<'m>),
) {
    if ir.walk_in_bulk(root, &mut visit_ops, &mut visit_argument) {
        return;
    }
    let mut arguments = Vec::new();
    walk(
        ir,
        root,
        |op| visit_ops(&[Located { op, location: ir.location(op), name: ir.name(op) }]),
        |argument| arguments.push(argument),
    );
    arguments.into_iter().for_each(visit_argument);
}

/// Sets the location of each operation that [`walk`] visits to the target of its slot, where it
/// has one; returns how many were set.
///
/// # Panics
/// When there are not as many slots as operations, or a slot has no entry in `targets`.
pub fn set_locations<'m>(
    ir: &Ir<'m>,
    root: Op<'m>,
    slots: &[u32],
    targets: &[Option<Loc<'m>>],
) -> usize {
    if let Some(changed) = ir.set_locations_in_bulk(root, slots, targets) {
        return changed;
    }
    let mut slots = slots.iter();
    let mut changed = 0;
    walk(
        ir,
        root,
        |op| {
            let slot = *slots.next().expect("each operation has a slot");
            if let Some(target) = targets[slot as usize] {
                ir.set_location(op, target);
                changed += 1;
            }
        },
        |_| (),
    );
    changed
}

/// How many names a [`Classifier`] finds again without a look into its table.
const RECENT: usize = 64;

/// Classifies operations, each name, type and assembly text once.
pub struct Classifier<'m, 's> {
    ir: Ir<'m>,
    table: &'s LeafTable,
    /// Names met lately, by some bits of their addresses.
    recent: [Option<(Identifier<'m>, OpClass)>; RECENT],
    names: FxHashMap<Identifier<'m>, OpClass>,
    types: FxHashMap<Type<'m>, Option<Space>>,
    texts: FxHashMap<Attribute<'m>, Class>,
}

impl<'m, 's> Classifier<'m, 's> {
    /// A classifier for an IR.
    pub fn new(ir: Ir<'m>, table: &'s LeafTable) -> Self {
        Classifier {
            ir,
            table,
            recent: [None; RECENT],
            names: FxHashMap::default(),
            types: FxHashMap::default(),
            texts: FxHashMap::default(),
        }
    }

    /// The leaf class of an operation of that name.
    #[inline]
    pub fn class(&mut self, op: Op<'m>, name: Identifier<'m>) -> Class {
        match self.op_class(name) {
            OpClass::Fixed(class) => class,
            OpClass::BySpace => self.class_by_space(op),
            OpClass::ByAsm => {
                self.class_by_text(op, &["asm_string"], leaf::class_of_asm, Class::Asm)
            }
            OpClass::ByIntrinsic => self.class_by_text(
                op,
                &["intrin", "callee"],
                leaf::class_of_intrinsic,
                Class::Other,
            ),
        }
    }

    #[inline]
    fn op_class(&mut self, name: Identifier<'m>) -> OpClass {
        // Identifiers are aligned to 16 bytes.
        let recent = name.address() / 16 % RECENT;
        if let Some((known, class)) = self.recent[recent]
            && known == name
        {
            return class;
        }
        let Classifier { ir, table, names, .. } = self;
        let class = *names.entry(name).or_insert_with(|| table.op_class(&ir.text(name)));
        self.recent[recent] = Some((name, class));
        class
    }

    fn class_by_space(&mut self, op: Op<'m>) -> Class {
        let Classifier { ir, types, .. } = self;
        leaf::class_of_copy(ir.operands_and_results(op).filter_map(|value| {
            let ty = ir.value_type(value);
            *types.entry(ty).or_insert_with(|| leaf::space_of_type(&ir.type_text(ty)))
        }))
    }

    fn class_by_text(
        &mut self,
        op: Op<'m>,
        attributes: &[&str],
        class_of: fn(&str) -> Class,
        otherwise: Class,
    ) -> Class {
        let Classifier { ir, texts, .. } = self;
        let Some(attribute) = attributes.iter().find_map(|name| ir.attribute(op, name)) else {
            return otherwise;
        };
        *texts.entry(attribute).or_insert_with(|| match ir.string(attribute) {
            Some(text) => class_of(&text),
            None => class_of(ir.attribute_text(attribute).trim_matches(['@', '"'])),
        })
    }
}

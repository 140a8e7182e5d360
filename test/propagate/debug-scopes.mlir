// Locations that carry a debug-info scope are the compiler's, and stay.

// RUN: %siteline-opt %s --mlir-print-debuginfo > %t.plain
// RUN: %siteline-opt %s --pass-pipeline='builtin.module(siteline)' --mlir-print-debuginfo | diff %t.plain -

#file = #llvm.di_file<"k.py" in "">
#type = #llvm.di_subroutine_type<>
#unit = #llvm.di_compile_unit<id = distinct[0]<>, sourceLanguage = DW_LANG_C, file = #file, isOptimized = true, emissionKind = LineTablesOnly>
#kernel = #llvm.di_subprogram<id = distinct[1]<>, compileUnit = #unit, scope = #file, name = "k", file = #file, line = 1, subprogramFlags = Definition, type = #type>
#block = #llvm.di_lexical_block_file<scope = #kernel, file = #file, discriminator = 0>

gpu.module @m {
  llvm.func @k() attributes {rocdl.kernel} {
    rocdl.s.barrier loc(fused<#block>[callsite("k.py":7:1 at "k.py":20:1)])
    rocdl.s.barrier loc(fused<#block>[callsite("k.py":7:1 at "k.py":21:1)])
    llvm.return loc("k.py":1:1)
  } loc(fused<#kernel>["k.py":1:1])
}

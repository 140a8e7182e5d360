// Values that cannot be read: one clear error each.

// RUN: not %siteline-opt %s --pass-pipeline='builtin.module(siteline{policy=best})' 2>&1 | FileCheck %s --check-prefix=POLICY
// POLICY: error: siteline-propagate: unknown policy 'best': use distinct, unique, innermost, outermost, file:GLOB, skip:GLOB or depth:N
// RUN: not %siteline-opt %s --pass-pipeline='builtin.module(siteline{policy=depth:x})' 2>&1 | FileCheck %s --check-prefix=DEPTH
// DEPTH: error: siteline-propagate: policy 'depth:x': depth takes a whole number of frames
// RUN: not %siteline-opt %s --pass-pipeline='builtin.module(siteline{leaves=gemm})' 2>&1 | FileCheck %s --check-prefix=LEAVES
// LEAVES: error: siteline-propagate: unknown leaf class 'gemm': use mfma, wait, barrier, dma, lds, sched, asm or other
// RUN: not %siteline-opt %s --pass-pipeline='builtin.module(siteline{leaf=mfma})' 2>&1 | FileCheck %s --check-prefix=LEAF
// LEAF: error: siteline-propagate: leaf rule 'mfma' is not of the form CLASS=GLOB
// RUN: not %siteline-opt %s --pass-pipeline='builtin.module(siteline{library=[})' 2>&1 | FileCheck %s --check-prefix=LIBRARY
// LIBRARY: error: siteline-propagate: glob '[':
// RUN: not %siteline-opt %s --pass-pipeline='builtin.module(siteline{origin=lose})' 2>&1 | FileCheck %s --check-prefix=ORIGIN
// ORIGIN: error: siteline-propagate: unknown origin 'lose': use keep or drop
// RUN: not %siteline-opt %s --pass-pipeline='builtin.module(siteline-report{output=/no/such/folder/x})' 2>&1 | FileCheck %s --check-prefix=OUTPUT
// OUTPUT: error: siteline-report: cannot write '/no/such/folder/x': No such file

gpu.module @m {}

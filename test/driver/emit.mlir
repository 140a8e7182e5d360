// Every stage can be printed or written.

// RUN: %siteline compile %s --chip gfx942 --emit mlir | FileCheck %s --check-prefix=MLIR
// RUN: %siteline compile %s --chip gfx942 --emit mlir --no-sites | FileCheck %s --check-prefix=NOSITES
// RUN: %siteline compile %s --chip gfx942 --emit llvm -g | FileCheck %s --check-prefix=LLVM
// RUN: %siteline compile %s --chip gfx942 --emit llvm | FileCheck %s --check-prefix=NODEBUG
// RUN: %siteline compile %s --chip gfx942 --emit asm -g | FileCheck %s --check-prefix=ASM
// RUN: %siteline compile %s --chip gfx942 --emit obj -o %t.o && llvm-readobj -h %t.o | FileCheck %s --check-prefix=OBJ
// RUN: %siteline compile %s --chip gfx942 -o %t.hsaco && llvm-readobj -h %t.hsaco | FileCheck %s --check-prefix=HSACO
// RUN: %siteline compile %s --chip gfx942 -o - | cmp - %t.hsaco
// RUN: mlir-opt %s --emit-bytecode --mlir-print-debuginfo -o %t.bc && %siteline compile %t.bc --chip gfx942 -o - | cmp - %t.hsaco
// LLVM IR enters after translation:
// RUN: %siteline compile %s --chip gfx942 --emit llvm -g -O 0 -o %t.ll && %siteline compile %t.ll --chip gfx942 -o %t.from-ir && llvm-objdump -d --mcpu=gfx942 %t.from-ir | FileCheck %s --check-prefix=CODE
// RUN: llvm-as %t.ll -o %t.llvm.bc && %siteline compile %t.llvm.bc --chip gfx942 -o - | cmp - %t.from-ir
// RUN: %siteline compile %t.ll --chip gfx942 --emit asm -g | FileCheck %s --check-prefix=ASM
// RUN: %siteline compile %s --chip gfx942 --verify -g -o %t.verified | FileCheck %s --check-prefix=VERIFIED

// MLIR: rocdl.s.barrier loc(#[[LOC:.+]])
// MLIR: #[[LOC]] = loc(fused<#{{.+}}>[
// NOSITES-NOT: fused
// LLVM: define amdgpu_kernel void @k
// LLVM: !DILocation(line: 21
// NODEBUG-NOT: !DILocation
// ASM: .loc	{{[01]}} 21 1
// ASM-NEXT: s_barrier
// OBJ: Type: Relocatable
// HSACO: OS/ABI: AMDGPU_HSA
// HSACO: Type: SharedObject
// HSACO: EF_AMDGPU_MACH_AMDGCN_GFX942
// CODE: s_barrier
// VERIFIED: identical

gpu.module @m {
  gpu.func @k() kernel {
    rocdl.s.barrier loc(callsite("k.py":7:1 at "k.py":21:1))
    rocdl.s.barrier loc(callsite("k.py":7:1 at "k.py":22:1))
    gpu.return loc("k.py":1:1)
  } loc("k.py":1:1)
}

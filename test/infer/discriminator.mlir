// An inferred line is marked by the reserved discriminator, all the way to the line table.

// RUN: %siteline compile %s --chip gfx942 -g -o %t.hsaco
// RUN: llvm-dwarfdump --debug-line %t.hsaco | FileCheck %s
// RUN: %siteline lines %t.hsaco | FileCheck %s --check-prefix=LINES
// RUN: %siteline compile %s --chip gfx942 -g --no-infer -o %t.off
// RUN: llvm-dwarfdump --debug-line %t.off | FileCheck %s --check-prefix=OFF
// RUN: %siteline verify %s --chip gfx942 | FileCheck %s --check-prefix=VERIFY

// CHECK: Address Line Column File ISA Discriminator
// CHECK: {{0x[0-9a-f]+}} 20 1 {{[01]}} 0 0
// CHECK: {{0x[0-9a-f]+}} 21 3 {{[01]}} 0 85451038
// LINES: k.py:21 (inferred)
// OFF-NOT: 85451038
// VERIFY: identical

gpu.module @m {
  gpu.func @k() kernel {
    rocdl.s.barrier loc("k.py":20:1)
    rocdl.s.barrier loc(unknown)
    rocdl.s.barrier loc("k.py":21:3)
    gpu.return loc("k.py":22:1)
  } loc("k.py":10:1)
}

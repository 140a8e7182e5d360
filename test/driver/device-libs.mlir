// A device-library call needs the libraries; without them the error says which and how.

// RUN: split-file %s %t && rm -f %t.out
// RUN: not %siteline compile %t/k.mlir --chip gfx942 -o %t.out 2>&1 | FileCheck %s
// CHECK: siteline: error: the code calls __ocml_sin_f32, which the module does not define: pass --device-libs
// RUN: not ls %t.out
// RUN: not %siteline compile %t/k.mlir --chip gfx942 --device-libs /no/such/folder -o %t.out 2>&1 | FileCheck %s --check-prefix=FOLDER
// FOLDER: siteline: error: cannot read '/no/such/folder/ocml.bc': No such file

// A library that has it, of two functions, one of which asks how to compute:
// RUN: mkdir -p %t/libs && llvm-as %t/ocml.ll -o %t/libs/ocml.bc
// RUN: %siteline compile %t/k.mlir --chip gfx942 --device-libs %t/libs --emit llvm | FileCheck %s --check-prefix=LINKED
// LINKED-NOT: __ocml_
// LINKED: store float 9.402000e+03
// LINKED-NOT: __ocml_
// RUN: not %siteline compile %t/cos.mlir --chip gfx942 --device-libs %t/libs 2>&1 -o %t.out | FileCheck %s --check-prefix=UNDEFINED
// UNDEFINED: siteline: error: the code calls __ocml_cos_f32, which neither the module nor the device libraries define

//--- k.mlir
gpu.module @m {
  gpu.func @k(%out: !llvm.ptr<1>, %x: f32) kernel {
    %sin = math.sin %x : f32
    llvm.store %sin, %out : f32, !llvm.ptr<1>
    gpu.return
  }
}
//--- cos.mlir
gpu.module @m {
  gpu.func @k(%out: !llvm.ptr<1>, %x: f32) kernel {
    %cos = math.cos %x : f32
    llvm.store %cos, %out : f32, !llvm.ptr<1>
    gpu.return
  }
}
//--- ocml.ll
target triple = "amdgcn-amd-amdhsa"
@__oclc_ISA_version = external addrspace(4) constant i32
define float @__ocml_sin_f32(float %x) {
  %isa = load i32, ptr addrspace(4) @__oclc_ISA_version
  %float = uitofp i32 %isa to float
  ret float %float
}
define float @__ocml_tan_f32(float %x) {
  ret float %x
}

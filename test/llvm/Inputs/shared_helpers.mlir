// Helpers that are functions of their own: `dot` is called from two lines of the schedule and
// inlined by LLVM; `dot_call` has the same body, but must stay a call.
module attributes {gpu.container_module} {
  gpu.module @shared {
    llvm.func internal @dot(%a: vector<4xf16>, %b: vector<4xf16>, %c: vector<16xf32>) -> vector<16xf32> {
      %z = llvm.mlir.constant(0 : i32) : i32 loc(#dot_body)
      %d = "llvm.call_intrinsic"(%a, %b, %c, %z, %z, %z) <{intrin = "llvm.amdgcn.mfma.f32.32x32x8f16", op_bundle_sizes = array<i32>, operandSegmentSizes = array<i32: 6, 0>}> : (vector<4xf16>, vector<4xf16>, vector<16xf32>, i32, i32, i32) -> vector<16xf32> loc(#dot_body)
      llvm.return %d : vector<16xf32> loc(#dot_return)
    } loc(#dot)
    llvm.func internal @dot_call(%a: vector<4xf16>, %b: vector<4xf16>, %c: vector<16xf32>) -> vector<16xf32> attributes {no_inline} {
      %z = llvm.mlir.constant(0 : i32) : i32 loc(#call_body)
      %d = "llvm.call_intrinsic"(%a, %b, %c, %z, %z, %z) <{intrin = "llvm.amdgcn.mfma.f32.32x32x8f16", op_bundle_sizes = array<i32>, operandSegmentSizes = array<i32: 6, 0>}> : (vector<4xf16>, vector<4xf16>, vector<16xf32>, i32, i32, i32) -> vector<16xf32> loc(#call_body)
      llvm.return %d : vector<16xf32> loc(#call_return)
    } loc(#call)
    llvm.func @shared_helpers(%p: !llvm.ptr<1>) attributes {gpu.kernel, rocdl.kernel} {
      %a = llvm.load %p : !llvm.ptr<1> -> vector<4xf16> loc(#load_a)
      %b = llvm.load %p : !llvm.ptr<1> -> vector<4xf16> loc(#load_b)
      %c = llvm.load %p : !llvm.ptr<1> -> vector<16xf32> loc(#load_c)
      %0 = llvm.call @dot(%a, %b, %c) : (vector<4xf16>, vector<4xf16>, vector<16xf32>) -> vector<16xf32> loc(#first)
      %1 = llvm.call @dot(%b, %a, %0) : (vector<4xf16>, vector<4xf16>, vector<16xf32>) -> vector<16xf32> loc(#second)
      %2 = llvm.call @dot_call(%a, %b, %1) : (vector<4xf16>, vector<4xf16>, vector<16xf32>) -> vector<16xf32> loc(#third)
      %3 = llvm.call @dot_call(%b, %a, %2) : (vector<4xf16>, vector<4xf16>, vector<16xf32>) -> vector<16xf32> loc(#fourth)
      llvm.store %3, %p : vector<16xf32>, !llvm.ptr<1> loc(#store)
      llvm.return loc(#return)
    } loc(#kernel)
  }
}
#dot = loc("shared_helpers.py":8:1)
#dot_body = loc("shared_helpers.py":9:12)
#dot_return = loc("shared_helpers.py":9:5)
#call = loc("shared_helpers.py":13:1)
#call_body = loc("shared_helpers.py":14:12)
#call_return = loc("shared_helpers.py":14:5)
#kernel = loc("shared_helpers.py":18:1)
#load_a = loc("shared_helpers.py":19:9)
#load_b = loc("shared_helpers.py":20:9)
#load_c = loc("shared_helpers.py":21:9)
#first = loc("shared_helpers.py":22:9)
#second = loc("shared_helpers.py":23:9)
#third = loc("shared_helpers.py":24:9)
#fourth = loc("shared_helpers.py":25:9)
#store = loc("shared_helpers.py":26:5)
#return = loc("shared_helpers.py":26:5)

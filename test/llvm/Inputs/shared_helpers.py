"""Helpers that are functions of their own in the compiled code.

`shared_helpers.mlir` is what a compiler makes of this that keeps device functions: `dot` is
called from two lines of the schedule and inlined by LLVM, `dot_call` stays a call.
"""


def dot(a, b, c):
    return mfma_f32_32x32x8f16(a, b, c)


@noinline
def dot_call(a, b, c):
    return mfma_f32_32x32x8f16(a, b, c)


@kernel
def shared_helpers(p):
    a = load(p, half4)
    b = load(p, half4)
    c = load(p, float16)
    c = dot(a, b, c)
    c = dot(b, a, c)
    c = dot_call(a, b, c)
    c = dot_call(b, a, c)
    store(p, c)

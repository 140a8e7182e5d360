// The pass knows operations by name: those of dialects that are not there are worked on too.

// RUN: %siteline-opt %s --allow-unregistered-dialect --pass-pipeline='builtin.module(siteline)' --mlir-print-debuginfo --mlir-print-local-scope | FileCheck %s
// RUN: %siteline-opt %s --allow-unregistered-dialect --pass-pipeline='builtin.module(siteline{leaf=mfma=mydsl.dot,wait=mydsl.w*})' --mlir-print-debuginfo --mlir-print-local-scope | FileCheck %s --check-prefix=LEAF

"mydsl.func"() <{}> ({
  // CHECK: "mydsl.dot"() : () -> () loc(fused<{{.+}}>["k.py":20:1])
  "mydsl.dot"() : () -> () loc(callsite("k.py":7:1 at "k.py":20:1))
  // CHECK: "mydsl.dot"() : () -> () loc(fused<{{.+}}>["k.py":21:1])
  "mydsl.dot"() : () -> () loc(callsite("k.py":7:1 at "k.py":21:1))
  // As an `other`, its line is shared with mydsl.dot; as a leaf of its own class it is not, and
  // neither is it in all leaf classes.
  // CHECK: "mydsl.wait"() : () -> () loc(fused<{{.+}}>["k.py":22:1])
  // LEAF: "mydsl.wait"() : () -> () loc(fused<{{.+}}>["k.py":22:1])
  "mydsl.wait"() : () -> () loc(callsite("k.py":7:1 at "k.py":22:1))
  // LEAF: "mydsl.wait"() : () -> () loc(callsite("k.py":8:1 at "k.py":23:1))
  "mydsl.wait"() : () -> () loc(callsite("k.py":8:1 at "k.py":23:1))
  // LEAF: "mydsl.wait"() : () -> () loc(callsite("k.py":9:1 at "k.py":23:1))
  "mydsl.wait"() : () -> () loc(callsite("k.py":9:1 at "k.py":23:1))
}) {sym_name = "k", function_type = () -> ()} : () -> () loc("k.py":1:1)

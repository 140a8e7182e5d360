// IR of dialects that nobody here has heard of: generic form in, generic form out.

// RUN: %siteline opt %s | FileCheck %s
// RUN: %siteline opt %s -o %t.once && %siteline opt %t.once | diff %t.once -
// RUN: %siteline opt %t.once --passes restore -o %t.restored && %siteline opt %t.restored --passes restore | diff %t.restored -
// RUN: %siteline opt %s --passes propagate,restore | diff - %t.restored
// RUN: %siteline opt %s --emit-bytecode -o %t.bc && %siteline opt %t.bc --passes restore | diff - %t.restored
// RUN: %siteline opt - < %s | FileCheck %s

// CHECK: "newdsl.dot"() {mask = #newdsl<mask all>} : () -> () loc(#[[A:.+]])
"newdsl.func"() ({
  "newdsl.dot"() {mask = #newdsl<mask all>} : () -> () loc(callsite("k.py":7:1 at "k.py":20:1))
  "newdsl.dot"() {mask = #newdsl<mask all>} : () -> () loc(callsite("k.py":7:1 at "k.py":21:1))
}) {sym_name = "k", function_type = () -> ()} : () -> () loc("k.py":1:1)
// CHECK: #[[A]] = loc(fused<#{{.+}}>[#{{.+}}])

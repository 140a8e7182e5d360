// Restore after propagate gives the input back; on its own it changes nothing, nor twice.

// RUN: %siteline-opt %examples/flash_attention.mlir --mlir-print-debuginfo > %t.plain
// RUN: %siteline-opt %t.plain --pass-pipeline='builtin.module(siteline)' --mlir-print-debuginfo > %t.sites
// RUN: not diff -q %t.plain %t.sites
// RUN: %siteline-opt %t.sites --pass-pipeline='builtin.module(siteline-restore)' --mlir-print-debuginfo | diff %t.plain -
// RUN: %siteline-opt %t.sites --pass-pipeline='builtin.module(siteline-restore,siteline-restore)' --mlir-print-debuginfo | diff %t.plain -
// RUN: %siteline-opt %t.plain --pass-pipeline='builtin.module(siteline-restore)' --mlir-print-debuginfo | diff %t.plain -
// RUN: %siteline-opt %t.plain > %t.code
// RUN: %siteline-opt %t.sites | diff %t.code -

//===- driver.h - What the driver needs and no C API has --------*- C++ -*-===//
//
// See README.md beside this file for who owns what.
//
//===----------------------------------------------------------------------===//

#pragma once

#include "rust/cxx.h"

#include <cstddef>

namespace siteline {

/// Parses MLIR text or bytecode into a `builtin.module` of the given
/// `MlirContext`; an input whose top is another operation gets a module around
/// it. Returns the `MlirOperation`, owned by the caller, or 0; what went wrong
/// is in the context's diagnostics. `source` ends in a NUL that does not count.
size_t parse_module(size_t context, rust::Slice<const uint8_t> source,
                    rust::Str name);

/// Whether LLVM's AMDGPU backend knows the chip.
bool is_amdgpu_chip(rust::Str chip);

} // namespace siteline

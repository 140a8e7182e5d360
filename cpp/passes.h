//===- passes.h - The C++ side of siteline's passes -------------*- C++ -*-===//
//
// See README.md beside this file for who owns what.
//
//===----------------------------------------------------------------------===//

#pragma once

namespace siteline {

/// Registers the passes and the `siteline` pipelines with MLIR's global
/// registry. Calling it again does nothing.
void register_passes();

} // namespace siteline

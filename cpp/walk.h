//===- walk.h - Operations and their locations in bulk ----------*- C++ -*-===//
//
// What the C API offers too, one call for many operations. See README.md beside
// this file for who owns what.
//
//===----------------------------------------------------------------------===//

#pragma once

#include "rust/cxx.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace mlir {
class Operation;
} // namespace mlir

namespace siteline {

/// A walk over all operations below one, in the order of `functions::walk`.
class Walk {
public:
  explicit Walk(mlir::Operation *root);

  /// Fills the batch with (operation, location, name) as addresses and returns
  /// how many triples it wrote: fewer than there is room for at the end only.
  size_t next(rust::Slice<size_t> batch);

  /// The block arguments met so far, as the C API's `MlirValue` has them.
  rust::Slice<const size_t> arguments() const;

  /// Sets the location of each operation not walked yet to the target that its
  /// slot has; a target of 0 leaves it. Returns how many were set, or -1 where
  /// an operation has no slot or a slot has no target.
  int64_t set_locations(rust::Slice<const uint32_t> slots,
                        rust::Slice<const size_t> targets);

private:
  template <typename Visit>
  void forEach(Visit visit);
  void openBlocks(mlir::Operation &op);

  std::vector<mlir::Operation *> open;
  std::vector<size_t> blockArguments;
};

std::unique_ptr<Walk> walk_below(size_t op);

} // namespace siteline

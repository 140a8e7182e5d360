//===- walk.cpp - Operations and their locations in bulk ------------------===//

#include "walk.h"

#include "mlir/CAPI/IR.h"
#include "mlir/IR/Block.h"
#include "mlir/IR/Operation.h"
#include "mlir/IR/Region.h"

using namespace mlir;

static size_t address(const void *pointer) {
  return reinterpret_cast<size_t>(pointer);
}

siteline::Walk::Walk(Operation *root) { openBlocks(*root); }

void siteline::Walk::openBlocks(Operation &op) {
  for (Region &region : op.getRegions()) {
    for (Block &block : region) {
      for (BlockArgument argument : block.getArguments())
        blockArguments.push_back(address(wrap(argument).ptr));
      if (!block.empty())
        open.push_back(&block.front());
    }
  }
}

/// Visits operations until one visit returns false; that operation is walked.
template <typename Visit>
void siteline::Walk::forEach(Visit visit) {
  bool more = true;
  while (more && !open.empty()) {
    Operation *op = open.back();
    open.pop_back();
    // The rest of a block without regions is visited in a row.
    while (op) {
      more = visit(*op);
      Operation *following = op->getNextNode();
      if (op->getNumRegions() == 0) {
        op = following;
        if (more)
          continue;
      } else {
        if (following)
          open.push_back(following);
        openBlocks(*op);
        op = nullptr;
      }
      break;
    }
    if (op)
      open.push_back(op);
  }
}

size_t siteline::Walk::next(rust::Slice<size_t> batch) {
  size_t *out = batch.data();
  size_t *end = out + batch.size() / 3 * 3;
  forEach([&](Operation &op) {
    *out++ = address(&op);
    *out++ = address(wrap(op.getLoc()).ptr);
    *out++ = address(wrap(op.getName().getIdentifier()).ptr);
    return out != end;
  });
  return (out - batch.data()) / 3;
}

rust::Slice<const size_t> siteline::Walk::arguments() const {
  return {blockArguments.data(), blockArguments.size()};
}

int64_t siteline::Walk::set_locations(rust::Slice<const uint32_t> slots,
                                      rust::Slice<const size_t> targets) {
  const uint32_t *slot = slots.data(), *lastSlot = slot + slots.size();
  const size_t *target = targets.data();
  const size_t targetCount = targets.size();
  int64_t changed = 0;
  forEach([&](Operation &op) {
    if (slot == lastSlot || *slot >= targetCount) {
      changed = -1;
      return false;
    }
    if (size_t location = target[*slot]) {
      op.setLoc(Location::getFromOpaquePointer(reinterpret_cast<void *>(location)));
      ++changed;
    }
    ++slot;
    return true;
  });
  return changed;
}

std::unique_ptr<siteline::Walk> siteline::walk_below(size_t op) {
  return std::make_unique<Walk>(reinterpret_cast<Operation *>(op));
}

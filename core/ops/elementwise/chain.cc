// SPDX-License-Identifier: Apache-2.0
// Chains of element-wise operators as one pass: each tile of the inputs is read
// once, goes through all operators while it is in the first-level cache, and
// only the results that somebody else reads are written.
#include <array>
#include <memory>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/inlined_vector.h"
#include "core/base/parallel.h"
#include "core/base/status.h"
#include "core/device/plan/broadcast.h"
#include "core/ops/elementwise/elementwise.h"

namespace onward {
namespace {

constexpr int64_t kTile = 512;  // elements
constexpr int64_t kTileBytes = kTile * 8;
constexpr int kMaxChainTiles = 12;
constexpr int64_t kShortRun = 32;  // below it, calls cost more than memory

struct Chain {
  std::vector<ChainStep> steps;
  std::vector<int> tile_of;  // step -> its tile; -1: written straight to its output
  int tiles = 0;
  BroadcastPlan plan;  // of the inputs
  std::vector<int64_t> input_bytes;
  int64_t grain = kLightGrain;

  void Run(const KernelCall& call) const;
  void RunTile(absl::Span<const Operand> inputs, absl::Span<char* const> outputs, char* tiles,
               int64_t n) const;
};

void Chain::RunTile(absl::Span<const Operand> inputs, absl::Span<char* const> outputs,
                    char* tiles_at, int64_t n) const {
  absl::InlinedVector<char*, 32> results(steps.size());
  absl::InlinedVector<Operand, 4> operands;
  for (size_t s = 0; s < steps.size(); ++s) {
    const ChainStep& step = steps[s];
    operands.clear();
    for (int from : step.operands) {
      operands.push_back(from >= 0 ? inputs[from] : Operand{results[~from], false});
    }
    results[s] = step.output >= 0 ? outputs[step.output] : tiles_at + tile_of[s] * kTileBytes;
    step.op->body(operands, results[s], n);
  }
}

void Chain::Run(const KernelCall& call) const {
  const int count = static_cast<int>(input_bytes.size());
  const int output_count = static_cast<int>(call.outputs.size());
  ParallelFor(plan.elements, grain, [&](int64_t begin, int64_t end) {
    alignas(64) std::array<char, kMaxChainTiles * kTileBytes> tiles_at;
    absl::InlinedVector<Operand, 16> operands(count);
    absl::InlinedVector<char*, 8> outputs(output_count);
    std::vector<int64_t> output_bytes(output_count);
    for (const ChainStep& step : steps) {
      if (step.output >= 0) output_bytes[step.output] = ElementBytes(step.dtype);
    }
    plan.Walk(begin, end, [&](const int64_t* offsets, int64_t position, int64_t run) {
      for (int64_t at = 0; at < run; at += kTile) {
        for (int k = 0; k < count; ++k) {
          const bool repeats = plan.repeats[k] != 0;
          operands[k] = {static_cast<const char*>(call.inputs[k]->raw()) +
                             (offsets[k] + (repeats ? 0 : at)) * input_bytes[k],
                         repeats};
        }
        for (int k = 0; k < output_count; ++k) {
          outputs[k] =
              static_cast<char*>(call.outputs[k]->raw()) + (position + at) * output_bytes[k];
        }
        RunTile(operands, outputs, tiles_at.data(), std::min(kTile, run - at));
      }
    });
  });
}

// Tiles for the results that stay inside; one is free again after its last use.
void AssignTiles(Chain* chain) {
  const int count = static_cast<int>(chain->steps.size());
  std::vector<int> last_use(count, -1);
  for (int s = 0; s < count; ++s) {
    for (int from : chain->steps[s].operands) {
      if (from < 0) last_use[~from] = s;
    }
  }
  std::vector<int> free;
  chain->tile_of.assign(count, -1);
  for (int s = 0; s < count; ++s) {
    if (chain->steps[s].output < 0) {
      if (free.empty()) free.push_back(chain->tiles++);
      chain->tile_of[s] = free.back();
      free.pop_back();
    }
    for (int earlier = 0; earlier < s; ++earlier) {
      if (last_use[earlier] == s && chain->tile_of[earlier] >= 0)
        free.push_back(chain->tile_of[earlier]);
    }
  }
}

// A result may take the place of an input that no later step reads.
void AddInPlace(const Chain& chain, absl::Span<const ValueSpec> inputs, const Shape& shape,
                Kernel* kernel) {
  for (size_t k = 0; k < inputs.size(); ++k) {
    size_t last = 0;
    for (size_t s = 0; s < chain.steps.size(); ++s) {
      if (absl::c_linear_search(chain.steps[s].operands, static_cast<int>(k))) last = s;
    }
    for (size_t s = last; s < chain.steps.size(); ++s) {
      const ChainStep& step = chain.steps[s];
      if (step.output >= 0 && step.dtype == inputs[k].dtype && *inputs[k].shape == shape) {
        kernel->in_place.emplace_back(step.output, static_cast<int>(k));
      }
    }
  }
}

}  // namespace

absl::StatusOr<Kernel> ChainKernel(absl::Span<const ChainStep> steps,
                                   absl::Span<const ValueSpec> inputs, const Shape& shape,
                                   const Layout& layout) {
  auto chain = std::make_shared<Chain>();
  chain->steps.assign(steps.begin(), steps.end());
  // An opaque layout is walked as a flat array.
  const Shape whole = layout == nullptr ? shape : Shape{shape.elements()};
  std::vector<Shape> shapes = {whole};
  Kernel kernel;
  for (const ValueSpec& in : inputs) {
    const bool flat = layout != nullptr;
    if (flat && *in.shape != shape && in.shape->elements() != 1) {
      return absl::UnimplementedError("an operand to broadcast in an opaque layout");
    }
    shapes.push_back(!flat ? *in.shape : *in.shape == shape ? whole : Shape{});
    chain->input_bytes.push_back(ElementBytes(in.dtype));
    kernel.input_layouts.push_back(flat && *in.shape == shape ? layout : nullptr);
  }
  ONWARD_ASSIGN_OR_RETURN(chain->plan, PlanBroadcast(shapes));
  chain->plan.strides.erase(chain->plan.strides.begin());
  chain->plan.repeats.erase(chain->plan.repeats.begin());
  if (chain->plan.shape != whole ||
      (chain->plan.run < kShortRun && chain->plan.elements > kShortRun)) {
    return absl::UnimplementedError("short runs");
  }
  AssignTiles(chain.get());
  if (chain->tiles > kMaxChainTiles) return absl::UnimplementedError("a long chain");
  for (const ChainStep& step : steps) {
    chain->grain = std::min(chain->grain, step.op->grain);
    if (step.output < 0) continue;
    kernel.output_layouts.resize(std::max<size_t>(kernel.output_layouts.size(), step.output + 1));
    kernel.output_layouts[step.output] = layout;
  }
  AddInPlace(*chain, inputs, shape, &kernel);
  kernel.infallible = true;
  kernel.run = [chain](const KernelCall& call) {
    chain->Run(call);
    return absl::OkStatus();
  };
  return kernel;
}

}  // namespace onward

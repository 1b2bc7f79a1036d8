// SPDX-License-Identifier: Apache-2.0
#include "tests/support/kernel_trial.h"

#include <cstring>
#include <map>
#include <memory>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "core/ops/cpu/onednn.h"
#include "environment/environment.h"

namespace onward {
namespace {

constexpr int kPoison = 0xff;  // NaN in every floating type

Tensor Poisoned(DType dtype, const Shape& shape, size_t bytes) {
  if (dtype == DType::kString) return Tensor(dtype, shape);
  auto storage = std::make_shared<Tensor>(DType::kUint8, Shape{static_cast<int64_t>(bytes)});
  std::memset(storage->raw(), kPoison, bytes);
  return Tensor(dtype, shape, storage->raw(), storage);
}

size_t BytesIn(DType dtype, const Shape& shape, const Layout& layout) {
  return layout == nullptr ? TensorBytes(dtype, shape) : layout->bytes();
}

absl::StatusOr<Tensor> Reordered(const Tensor& t, const Layout& from, const Layout& to) {
  if (SameLayout(from, to)) return t;
  ONWARD_ASSIGN_OR_RETURN(const Kernel kernel,
                          DefaultEnvironment().cpu().MakeReorder(t.dtype(), t.shape(), from, to));
  Tensor result = Poisoned(t.dtype(), t.shape(), BytesIn(t.dtype(), t.shape(), to));
  Tensor workspace(DType::kUint8, Shape{static_cast<int64_t>(kernel.workspace_bytes)});
  const Tensor* in = &t;
  Tensor* out = &result;
  ONWARD_RETURN_IF_ERROR(kernel.run({{&in, 1}, {&out, 1}, workspace.raw(), {}}));
  return result;
}

// Where a layout has room for more than the elements, the rest is zero: there and back again
// gives the same bytes.
absl::Status CheckPadding(const Tensor& t, const Layout& layout) {
  ONWARD_ASSIGN_OR_RETURN(const Tensor plain, Reordered(t, layout, nullptr));
  ONWARD_ASSIGN_OR_RETURN(const Tensor again, Reordered(plain, nullptr, layout));
  if (std::memcmp(t.raw(), again.raw(), layout->bytes()) == 0) return absl::OkStatus();
  // NaN has many spellings, and a zero two: only what is no element has to be the same.
  const auto* a = static_cast<const float*>(t.raw());
  const auto* b = static_cast<const float*>(again.raw());
  for (size_t i = 0; i < layout->bytes() / sizeof(float); ++i) {
    if (!(a[i] == b[i]) && !(a[i] != a[i] && b[i] != b[i])) {
      return absl::InternalError("the padding of its result's layout is not zero");
    }
  }
  return absl::OkStatus();
}

bool CanBlock(DType dtype, const Shape& shape) {
  return dtype == DType::kFloat && shape.rank() >= 3 && shape.rank() <= 5 && FitsDnnl(shape);
}

Layout Blocked(DType dtype, const Shape& shape, int block) {
  return CanBlock(dtype, shape) ? LayoutOf(BlockedDesc(shape, block)) : nullptr;
}

// Stored as if the second axis were the last one.
Layout ChannelsLast(DType dtype, const Shape& shape) {
  if (shape.rank() < 2) return nullptr;
  std::vector<int64_t> perm(shape.rank());
  std::iota(perm.begin(), perm.end(), 0);
  perm.erase(perm.begin() + (shape.rank() == 2 ? 0 : 1));
  perm.push_back(shape.rank() == 2 ? 0 : 1);
  return DefaultEnvironment().cpu().LayoutForTranspose(dtype, shape, perm);
}

Layout Plain(int, DType, const Shape&) { return nullptr; }
Layout NoWish(DType, const Shape&) { return nullptr; }

}  // namespace

const std::vector<Placing>& Placings() {
  const auto blocked = [](int block, bool first, bool others) {
    return [=](int i, DType dtype, const Shape& shape) {
      return (i == 0 ? first : others) ? Blocked(dtype, shape, block) : nullptr;
    };
  };
  const auto last = [](int, DType dtype, const Shape& shape) { return ChannelsLast(dtype, shape); };
  static const auto* const placings = new std::vector<Placing>{
      {"plain", Plain, NoWish},
      {"blocks of 8", blocked(8, true, true), NoWish},
      {"blocks of 16", blocked(16, true, true), NoWish},
      {"first input in blocks of 8", blocked(8, true, false), NoWish},
      {"other inputs in blocks of 8", blocked(8, false, true), NoWish},
      {"channels last", last, NoWish},
      {"channels last and wished for", last, ChannelsLast},
      {"channels last wished for", Plain, ChannelsLast},
  };
  return *placings;
}

const std::map<std::string, int>& TrialOpsets() {
  static const auto* const opsets =
      new std::map<std::string, int>{{"", kCanonicalOpset},
                                     {std::string(kOnwardDomain), kOnwardVersion},
                                     {std::string(kTrainingDomain), 1},
                                     {"ai.onnx.ml", 5}};
  return *opsets;
}

KernelTrial::KernelTrial(const KernelTable::Entry& entry, const KernelInputs& inputs,
                         const Placing& placing)
    : inputs_(inputs), given_(inputs.values.size()) {
  std::vector<ValueSpec> in(inputs.values.size()), out = inputs.outputs;
  for (size_t i = 0; i < in.size(); ++i) {
    const Tensor& t = inputs.values[i];
    if (!t.defined()) continue;
    given_[i] = placing.inputs(static_cast<int>(i), t.dtype(), t.shape());
    moved_ |= given_[i] != nullptr;
    const bool constant = inputs.constant[i] && given_[i] == nullptr;
    in[i] = {t.dtype(), t.shape(), given_[i], constant ? &t : nullptr};
  }
  for (ValueSpec& spec : out) {
    if (!spec.present() || !spec.shape.has_value()) continue;
    spec.layout = placing.wish(spec.dtype, *spec.shape);
    moved_ |= spec.layout != nullptr;
  }
  kernel_ = entry.factory({inputs.node, in, out, TrialOpsets()});
  if (!kernel_.ok()) return;
  const auto layout_of = [](const std::vector<Layout>& layouts, int i) {
    return i < static_cast<int>(layouts.size()) ? layouts[i] : nullptr;
  };
  for (const auto& [output, input] : kernel_->in_place) {
    if (output >= static_cast<int>(out.size()) || input >= static_cast<int>(in.size())) continue;
    const Tensor& t = inputs.values[input];
    if (!t.defined() || !out[output].present() || !out[output].shape.has_value()) continue;
    if (BytesIn(t.dtype(), t.shape(), layout_of(kernel_->input_layouts, input)) ==
        BytesIn(out[output].dtype, *out[output].shape,
                layout_of(kernel_->output_layouts, output))) {
      overwrites_.emplace_back(output, input);
    }
  }
}

absl::StatusOr<std::vector<Tensor>> KernelTrial::Run(int output, int over_input) {
  const auto& kernel = *kernel_;
  std::vector<Tensor> in(inputs_.values.size()), out(inputs_.outputs.size());
  std::vector<const Tensor*> in_pointers(in.size());
  std::vector<Tensor*> out_pointers(out.size());
  for (size_t i = 0; i < in.size(); ++i) {
    const Tensor& t = inputs_.values[i];
    if (!t.defined()) continue;
    const Layout wanted = i < kernel.input_layouts.size() ? kernel.input_layouts[i] : nullptr;
    if (DefaultEnvironment().operators().ShapeOnly(inputs_.node, static_cast<int>(i))) {
      in[i] = Poisoned(t.dtype(), t.shape(), BytesIn(t.dtype(), t.shape(), given_[i]));
    } else {
      ONWARD_ASSIGN_OR_RETURN(in[i], Reordered(t, nullptr, given_[i]));
      ONWARD_ASSIGN_OR_RETURN(in[i], Reordered(in[i], given_[i], wanted));
      if (static_cast<int>(i) == over_input && wanted == nullptr) in[i] = in[i].Clone();
    }
    in_pointers[i] = &in[i];
  }
  for (size_t i = 0; i < out.size(); ++i) {
    const ValueSpec& spec = inputs_.outputs[i];
    if (!spec.present()) continue;
    out_pointers[i] = &out[i];
    if (!spec.shape.has_value()) continue;
    const Layout layout = i < kernel.output_layouts.size() ? kernel.output_layouts[i] : nullptr;
    out[i] = Poisoned(spec.dtype, *spec.shape, BytesIn(spec.dtype, *spec.shape, layout));
    if (static_cast<int>(i) == output) {
      out[i] = Tensor(spec.dtype, *spec.shape, in[over_input].raw(),
                      std::make_shared<Tensor>(in[over_input]));
    }
  }
  Tensor workspace = Poisoned(DType::kUint8, Shape{static_cast<int64_t>(kernel.workspace_bytes)},
                              kernel.workspace_bytes);
  ONWARD_RETURN_IF_ERROR(kernel.run({in_pointers, out_pointers, workspace.raw(), {}}));
  for (size_t i = 0; i < out.size() && i < kernel.output_layouts.size(); ++i) {
    if (kernel.output_layouts[i] == nullptr || !out[i].defined()) continue;
    ONWARD_RETURN_IF_ERROR(CheckPadding(out[i], kernel.output_layouts[i]));
    ONWARD_ASSIGN_OR_RETURN(out[i], Reordered(out[i], kernel.output_layouts[i], nullptr));
  }
  return out;
}

}  // namespace onward

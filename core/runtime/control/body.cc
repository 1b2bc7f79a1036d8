// SPDX-License-Identifier: Apache-2.0
#include "core/runtime/control/body.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/size_text.h"
#include "core/base/status.h"
#include "core/graph/infer.h"
#include "core/tensor/elements.h"
#include "core/tensor/held.h"

namespace onward {

Body::Body(const Control& control, int which)
    : control_(control),
      body_(control.bodies[which]),
      own_inputs_(static_cast<int>(body_.graph->inputs.size() - body_.captured.size())),
      program_(body_.graph, control.options) {}

absl::StatusOr<absl::Span<const Value>> Body::Run(absl::Span<const Value* const> own,
                                                  const ValueCall& call,
                                                  const RunOptions& options) {
  given_.assign(own.begin(), own.end());
  for (int at : body_.captured) given_.push_back(call.inputs[at]);
  if (!options.meanwhile) return program_.Run(given_, nullptr, options);
  RunOptions own_options = options;
  own_options.meanwhile = nullptr;  // the graph around it minds that
  return program_.Run(given_, nullptr, own_options);
}

ValueType Body::OutputType(int i, absl::Span<const Value* const> own, const ValueCall& call) const {
  Graph graph = *body_.graph;
  for (size_t k = 0; k < graph.inputs.size(); ++k) {
    const Value* value = k < own.size() ? own[k] : call.inputs[body_.captured[k - own.size()]];
    if (value != nullptr) graph.inputs[k].type = value->type();
  }
  const NamedType declared = graph.outputs[i];
  // Where inference fails, the declaration is what is known.
  if (!InferKnownTypes(&graph, *control_.options.operators).ok()) return declared.type;
  return graph.outputs[i].type;
}

absl::Status BeginIteration(const Control& control, const RunOptions& options, int64_t iteration,
                            const CarriedValues& carried, RunOptions* run) {
  if (options.cancel != nullptr && options.cancel->load(std::memory_order_relaxed)) {
    return absl::CancelledError("stopped");
  }
  run->random.seed =
      options.random.seed ^ (0x9e3779b97f4a7c15u * static_cast<uint64_t>(iteration + 1));
  run->writer = nullptr;
  size_t besides = 0;
  for (size_t k = 0; k < carried.size(); ++k) besides += UncountedBytes(carried[k]);
  return CheckHeld(control.node, *control.options.device, options, besides);
}

CarriedValues::CarriedValues(absl::Span<const Value* const> initial, Queues* queues)
    : queues_(queues), now_(initial.size()), next_(initial.size()) {
  for (size_t i = 0; i < initial.size(); ++i) {
    if (initial[i] != nullptr) now_[i].value = *initial[i];
  }
}

absl::Status CarriedValues::Leave(size_t i, const Value& value) {
  Slot& slot = next_[i];
  const Tensor* from = value.tensor();
  Tensor* to = slot.value.tensor();
  if (from != nullptr && to != nullptr && slot.own && from->dtype() != DType::kString &&
      to->dtype() == from->dtype() && to->place() == from->place() &&
      to->shape() == from->shape()) {
    if (from->place() != kHost) return queues_->Copy(*from, to);
    std::memcpy(to->raw(), from->raw(), from->bytes());
    return absl::OkStatus();
  }
  if (from != nullptr && from->place() != kHost) {
    ONWARD_ASSIGN_OR_RETURN(slot.value, queues_->CopyTo(*from, from->place()));
    slot.own = true;
    return absl::OkStatus();
  }
  slot.value = value.Owned();
  slot.own = from != nullptr && slot.value.tensor()->raw() != from->raw();
  return absl::OkStatus();
}

bool StackedOutput::Fits(int64_t capacity) const {
  Shape shape = stacked_.shape();
  shape[0] = capacity;
  return CheckedElements(shape.dims()).ok() && TensorBytes(stacked_.dtype(), shape) <= limit_;
}

// The first `elements` of a tensor to element `at` of another.
absl::Status StackedOutput::CopyTo(const Tensor& from, int64_t elements, Tensor* to,
                                   int64_t at) const {
  if (elements == 0) return absl::OkStatus();
  if (from.place() == kHost && to->place() == kHost) {
    CopyElements(from, 0, elements, to, at);
    return absl::OkStatus();
  }
  const int64_t size = DTypeBits(from.dtype()) / 8;
  const Tensor part(from.dtype(), Shape{elements}, const_cast<void*>(from.raw()), nullptr,
                    from.place());
  Tensor target(to->dtype(), Shape{elements}, to->data<char>() + at * size, nullptr, to->place());
  return queues_->Copy(part, &target);
}

absl::Status StackedOutput::Grow(int64_t capacity) {
  // Near the limit, more often by less.
  if (!Fits(capacity) && count_ > 0) capacity = count_ + count_ / 8 + 1;
  if (!Fits(capacity)) {
    return absl::ResourceExhaustedError(
        absl::StrCat(count_ + 1, " stacked results do not fit into the ", SizeText(limit_),
                     " of memory allowed; if the loop does end, allow more"));
  }
  Shape shape = stacked_.shape();
  shape[0] = capacity;
  Tensor grown;
  if (stacked_.place() == kHost) {
    grown = Tensor(stacked_.dtype(), shape);
  } else {
    ONWARD_ASSIGN_OR_RETURN(grown, queues_->New(stacked_.dtype(), shape, stacked_.place()));
  }
  const int64_t each = capacity == 0 ? 0 : grown.elements() / capacity;
  ONWARD_RETURN_IF_ERROR(CopyTo(stacked_, count_ * each, &grown, 0));
  stacked_ = std::move(grown);
  capacity_ = capacity;
  return absl::OkStatus();
}

absl::Status StackedOutput::Add(const Value& value) {
  const Tensor* t = value.tensor();
  if (t == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat("it is ", value.ToString(), ", not a tensor"));
  }
  ONWARD_RETURN_IF_ERROR(CheckWholeBytes(t->dtype(), "it"));
  if (count_ == 0) {
    Shape shape = {0};
    for (int64_t d : t->shape()) shape.push_back(d);
    stacked_ = Tensor(t->dtype(), shape, nullptr, nullptr, t->place());
  }
  const Shape one(stacked_.shape().dims().subspan(1));
  if (t->dtype() != stacked_.dtype() || t->shape() != one) {
    return absl::InvalidArgumentError(
        absl::StrCat("it is ", value.ToString(), " in iteration ", count_, ", but was ",
                     ValueType::Of(stacked_.dtype(), one).ToString(), " before"));
  }
  constexpr int64_t kFirst = 16, kMostAtOnce = 1 << 20;
  if (count_ == capacity_) {
    const bool known = expected_ > count_ && expected_ <= kMostAtOnce;
    ONWARD_RETURN_IF_ERROR(Grow(known && count_ == 0 ? expected_ : std::max(kFirst, 2 * count_)));
  }
  ONWARD_RETURN_IF_ERROR(CopyTo(*t, t->elements(), &stacked_, count_ * t->elements()));
  ++count_;
  return absl::OkStatus();
}

absl::StatusOr<Tensor> StackedOutput::Take(absl::FunctionRef<ValueType()> otherwise) {
  if (count_ == 0) {
    const ValueType type = otherwise();
    if (!type.is_tensor() || !type.known()) {
      return absl::InvalidArgumentError("its type is not known, and no iteration has run");
    }
    Shape shape = {0};
    for (const Dim& d : type.dims) shape.push_back(std::max<int64_t>(d.value, 0));
    return Tensor(type.dtype, shape);
  }
  Shape shape = stacked_.shape();
  shape[0] = count_;
  Tensor whole = stacked_;
  return Tensor(whole.dtype(), shape, whole.raw(), std::make_shared<Tensor>(whole), whole.place());
}

absl::Status Iterations::Take(absl::Span<const Value> results) {
  const size_t states = carried_.size();
  for (size_t k = 0; k < states; ++k) {
    ONWARD_RETURN_IF_ERROR(carried_.Leave(k, results[k]));
  }
  for (size_t k = 0; k < stacks_.size(); ++k) {
    if (absl::Status s = stacks_[k].Add(results[states + k]); !s.ok()) {
      return Failed(static_cast<int>(k), s);
    }
  }
  carried_.Advance();
  return absl::OkStatus();
}

absl::Status Iterations::Give(absl::Span<Value* const> outputs, SliceType type, Place place) {
  const int states = static_cast<int>(carried_.size());
  for (int i = 0; i < static_cast<int>(outputs.size()); ++i) {
    if (outputs[i] == nullptr) continue;
    if (i < states) {
      ONWARD_ASSIGN_OR_RETURN(*outputs[i], OwnedValue(carried_[i], queues_));
      continue;
    }
    const int k = i - states;
    absl::StatusOr<Tensor> stacked = stacks_[k].Take([&] { return type(k); });
    if (stacked.ok()) stacked = place(k, *std::move(stacked));
    if (!stacked.ok()) return Failed(k, stacked.status());
    *outputs[i] = *std::move(stacked);
  }
  return absl::OkStatus();
}

absl::Status Iterations::Failed(int stacked, const absl::Status& status) const {
  return Annotate(status, absl::StrCat(node_.Describe(), ": scan output ", stacked));
}

absl::StatusOr<Tensor> MoveAxis(const Tensor& tensor, int from, int to) {
  if (from == to) return tensor;
  ONWARD_RETURN_IF_ERROR(CheckWholeBytes(tensor.dtype(), "what is scanned"));
  // Seen as [outer, a, b, inner], axes a and b (one of them the moved one) change places.
  const Shape& shape = tensor.shape();
  const bool forward = from < to;
  const int64_t outer = shape.elements(0, std::min(from, to)),
                a = forward ? shape[from] : shape.elements(to, from),
                b = forward ? shape.elements(from + 1, to + 1) : shape[from],
                inner = shape.elements(std::max(from, to) + 1, shape.rank());
  std::vector<int64_t> dims(shape.begin(), shape.end());
  const int64_t moved = dims[from];
  dims.erase(dims.begin() + from);
  dims.insert(dims.begin() + to, moved);
  Tensor out(tensor.dtype(), Shape(absl::MakeConstSpan(dims)));
  for (int64_t o = 0; o < outer; ++o) {
    for (int64_t i = 0; i < a; ++i) {
      for (int64_t j = 0; j < b; ++j) {
        CopyElements(tensor, ((o * a + i) * b + j) * inner, inner, &out,
                     ((o * b + j) * a + i) * inner);
      }
    }
  }
  return out;
}

absl::StatusOr<Value> OwnedValue(const Value& value, Queues* queues) {
  const Tensor* t = value.tensor();
  if (t == nullptr || t->place() == kHost) return value.Owned();
  if (t->owned()) return value;
  return queues->CopyTo(*t, t->place());
}

absl::StatusOr<bool> AsBool(const Node& node, const Value& value, const char* what) {
  const Tensor* t = value.tensor();
  if (t == nullptr || t->dtype() != DType::kBool || t->elements() != 1) {
    return NodeError(node, absl::StrCat(what, " must be one bool, got ", value.ToString()));
  }
  return *t->data<bool>();
}

absl::StatusOr<int64_t> AsInt(const Node& node, const Value& value, const char* what) {
  const Tensor* t = value.tensor();
  if (t == nullptr || t->dtype() != DType::kInt64 || t->elements() != 1) {
    return NodeError(node, absl::StrCat(what, " must be one int64, got ", value.ToString()));
  }
  return *t->data<int64_t>();
}

}  // namespace onward

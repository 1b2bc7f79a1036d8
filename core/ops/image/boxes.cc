// SPDX-License-Identifier: Apache-2.0
// NonMaxSuppression.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/parallel.h"
#include "core/ops/image/image.h"
#include "core/ops/movement/movement.h"

namespace onward {
namespace {

// Boxes by their edges, kept apart so that one box is compared with many at once.
struct Edges {
  std::vector<float> left, right, top, bottom, area;

  void Reserve(size_t n) {
    for (std::vector<float>* v : {&left, &right, &top, &bottom, &area}) v->reserve(n);
  }
  void Add(const std::array<float, 4>& box) {
    left.push_back(box[0]);
    right.push_back(box[1]);
    top.push_back(box[2]);
    bottom.push_back(box[3]);
    area.push_back((box[1] - box[0]) * (box[3] - box[2]));
  }
  std::array<float, 4> At(size_t i) const { return {left[i], right[i], top[i], bottom[i]}; }
};

// Left, right, top, bottom.
std::array<float, 4> EdgesOf(const float* box, bool center_point) {
  if (center_point) {
    const float w = box[2] / 2, h = box[3] / 2;
    return {box[0] - w, box[0] + w, box[1] - h, box[1] + h};
  }
  const auto [top, bottom] = std::minmax(box[0], box[2]);
  const auto [left, right] = std::minmax(box[1], box[3]);
  return {left, right, top, bottom};
}

// Whether box i of `all` covers one of `kept` by more than the threshold.
bool Covers(const Edges& all, size_t i, const Edges& kept, float threshold) {
  const auto [left, right, top, bottom] = all.At(i);
  const float area = all.area[i];
  int covers = 0;
  for (size_t k = 0; k < kept.left.size(); ++k) {
    const float width = std::min(right, kept.right[k]) - std::max(left, kept.left[k]);
    const float height = std::min(bottom, kept.bottom[k]) - std::max(top, kept.top[k]);
    const float shared = width * height, together = area + kept.area[k] - shared;
    covers |= static_cast<int>(width > 0) & static_cast<int>(height > 0) &
              static_cast<int>(shared > 0) & static_cast<int>(area > 0) &
              static_cast<int>(kept.area[k] > 0) & static_cast<int>(together > 0) &
              static_cast<int>(shared / together > threshold);
  }
  return covers != 0;
}

struct Limits {
  int64_t most = 0;  // boxes of a class
  float overlap = 0;
  float score = -std::numeric_limits<float>::infinity();
  bool by_score = false;
};

// The boxes of one class that stay, best first; equal scores in the order of the boxes.
std::vector<int64_t> Select(const Edges& boxes, const float* scores, const Limits& limits) {
  std::vector<int64_t> candidates;
  for (size_t i = 0; i < boxes.left.size(); ++i) {
    if (!limits.by_score || scores[i] > limits.score) {
      candidates.push_back(static_cast<int64_t>(i));
    }
  }
  const auto key = [&](int64_t i) {  // no number is the least of all
    return std::isnan(scores[i]) ? -std::numeric_limits<float>::infinity() : scores[i];
  };
  std::stable_sort(candidates.begin(), candidates.end(),
                   [&](int64_t a, int64_t b) { return key(a) > key(b); });
  std::vector<int64_t> selected;
  Edges kept;
  for (int64_t i : candidates) {
    if (static_cast<int64_t>(selected.size()) >= limits.most) break;
    if (Covers(boxes, i, kept, limits.overlap)) continue;
    selected.push_back(i);
    kept.Add(boxes.At(i));
  }
  return selected;
}

absl::StatusOr<std::optional<double>> NumberAt(const Node& node,
                                               absl::Span<const Tensor* const> inputs, int i) {
  const Tensor* t = InputAt(inputs, i);
  if (t == nullptr || t->elements() == 0) return std::nullopt;
  ONWARD_ASSIGN_OR_RETURN(const std::vector<double> values, ToDoubles(*t));
  if (values.size() != 1) {
    return NodeError(node, absl::StrCat("input ", i, " has ", values.size(), " values, not one"));
  }
  return values[0];
}

absl::StatusOr<Limits> LimitsOf(const Node& node, absl::Span<const Tensor* const> inputs) {
  Limits limits;
  ONWARD_ASSIGN_OR_RETURN(const auto most, NumberAt(node, inputs, 2));
  ONWARD_ASSIGN_OR_RETURN(const auto overlap, NumberAt(node, inputs, 3));
  ONWARD_ASSIGN_OR_RETURN(const auto score, NumberAt(node, inputs, 4));
  if (most.has_value()) limits.most = static_cast<int64_t>(std::clamp(*most, 0.0, 0x1p40));
  if (overlap.has_value()) limits.overlap = static_cast<float>(*overlap);
  if (!(limits.overlap >= 0 && limits.overlap <= 1)) {
    return NodeError(
        node, absl::StrCat("iou_threshold is ", limits.overlap, ", expected a number from 0 to 1"));
  }
  limits.by_score = score.has_value();
  if (score.has_value()) limits.score = static_cast<float>(*score);
  return limits;
}

absl::Status CheckBoxes(const KernelRequest& request) {
  const Shape &boxes = request.in(0), &scores = request.in(1);
  if (boxes.rank() != 3 || scores.rank() != 3 || boxes[2] != 4 || boxes[0] != scores[0] ||
      boxes[1] != scores[2]) {
    return NodeError(request.node,
                     absl::StrCat("boxes of shape ", boxes.ToString(), " and scores of shape ",
                                  scores.ToString(), ": expected [B, N, 4] and [B, C, N]"));
  }
  if (request.inputs[0].dtype == DType::kFloat && request.inputs[1].dtype == DType::kFloat) {
    return absl::OkStatus();
  }
  return NodeUnimplemented(request.node, "boxes and scores must be float");
}

absl::StatusOr<Kernel> MakeNonMaxSuppression(const KernelRequest& request) {
  ONWARD_RETURN_IF_ERROR(CheckArity(request, 2));
  ONWARD_RETURN_IF_ERROR(CheckBoxes(request));
  const int64_t batch = request.in(0)[0], boxes = request.in(0)[1], classes = request.in(1)[1];
  const bool center_point = request.node.Int("center_point_box", 0) != 0;
  Kernel kernel;
  kernel.run = [=, node = KeepNode(request.node),
                slot = OutputSlot(request, 0)](const KernelCall& call) -> absl::Status {
    ONWARD_ASSIGN_OR_RETURN(const Limits limits, LimitsOf(*node, call.inputs));
    const float *box = call.inputs[0]->data<float>(), *scores = call.inputs[1]->data<float>();
    std::vector<Edges> edges(batch);
    for (int64_t b = 0; b < batch; ++b) {
      edges[b].Reserve(boxes);
      for (int64_t i = 0; i < boxes; ++i) {
        edges[b].Add(EdgesOf(box + (b * boxes + i) * 4, center_point));
      }
    }
    std::vector<std::vector<int64_t>> selected(batch * classes);
    ParallelFor(batch * classes, 4096 / std::max<int64_t>(boxes, 1) + 1,
                [&](int64_t begin, int64_t end) {
                  for (int64_t i = begin; i < end; ++i) {
                    selected[i] = Select(edges[i / classes], scores + i * boxes, limits);
                  }
                });
    int64_t rows = 0;
    for (const auto& of_class : selected) rows += static_cast<int64_t>(of_class.size());
    ONWARD_ASSIGN_OR_RETURN(Tensor * output, slot.Get(call, Shape{rows, 3}));
    int64_t* out = output->data<int64_t>();
    for (int64_t i = 0; i < batch * classes; ++i) {
      for (int64_t chosen : selected[i]) {
        *out++ = i / classes;
        *out++ = i % classes;
        *out++ = chosen;
      }
    }
    return absl::OkStatus();
  };
  return kernel;
}

}  // namespace

void RegisterBoxKernels(KernelTable& table) {
  table.Add("NonMaxSuppression", {"reference", 10, MakeNonMaxSuppression, "float"});
}

}  // namespace onward

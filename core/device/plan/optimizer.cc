// SPDX-License-Identifier: Apache-2.0
#include "core/device/plan/optimizer.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"

namespace onward {

absl::StatusOr<OptimizerPlaces> PlacesOfOptimizer(const KernelRequest& r, int states, bool has_t) {
  const int first = has_t ? 2 : 1, kinds = 2 + states;
  const int given = static_cast<int>(r.inputs.size()) - first;
  if (given <= 0 || given % kinds != 0) {
    return NodeError(r.node, absl::StrCat("takes ", kinds, " inputs per tensor after the first ",
                                          first, ", got ", std::max(given, 0)));
  }
  const OptimizerPlaces places{first, given / kinds};
  if (static_cast<int>(r.outputs.size()) > places.tensors * (1 + states)) {
    return NodeError(r.node, absl::StrCat("has ", r.outputs.size(), " outputs, gives ",
                                          places.tensors * (1 + states)));
  }
  for (int i = 0; i < static_cast<int>(r.inputs.size()); ++i) {
    if (!r.HasInput(i)) return NodeError(r.node, absl::StrCat("input ", i, " is missing"));
  }
  return places;
}

absl::StatusOr<OptimizerPlaces> PlanOptimizer(const KernelRequest& r, int states, bool has_t) {
  ONWARD_ASSIGN_OR_RETURN(const OptimizerPlaces places, PlacesOfOptimizer(r, states, has_t));
  if (!IsFloating(r.inputs[0].dtype) || (has_t && r.inputs[1].dtype != DType::kInt64)) {
    return NodeUnimplemented(r.node, "takes a floating-point R and an int64 T");
  }
  for (int i = 0; i < places.first; ++i) {
    if (r.in(i).elements() != 1) {
      return NodeUnimplemented(
          r.node, absl::StrCat("takes a scalar R and T, got shape ", r.in(i).ToString()));
    }
  }
  for (int i = 0; i < places.tensors; ++i) {
    const int x = places.X(i);
    if (!IsFloating(r.inputs[x].dtype)) {
      return NodeUnimplemented(r.node, "takes floating-point tensors");
    }
    for (int k = -1; k < states; ++k) {
      const int other = k < 0 ? places.G(i) : places.State(k, i);
      if (r.in(other) == r.in(x) && r.inputs[other].dtype == r.inputs[x].dtype) continue;
      const auto type = [&](int input) {
        return absl::StrCat(input, " (", std::string(DTypeName(r.inputs[input].dtype)),
                            r.in(input).ToString(), ")");
      };
      return NodeError(r.node, absl::StrCat("input ", type(other), " differs from ", type(x)));
    }
  }
  return places;
}

absl::StatusOr<SgdAttributes> SgdAttributes::Make(const Node& node) {
  return SgdAttributes{node.Float("weight_decay", 0.0f)};
}

absl::StatusOr<AdagradAttributes> AdagradAttributes::Make(const Node& node) {
  return AdagradAttributes{node.Float("decay_factor", 0.0f), node.Float("epsilon", 1e-6f),
                           node.Float("norm_coefficient", 0.0f)};
}

absl::StatusOr<MomentumAttributes> MomentumAttributes::Make(const Node& node) {
  for (const char* name : {"alpha", "beta", "norm_coefficient", "mode"}) {
    if (!node.Has(name)) return NodeError(node, absl::StrCat("attribute ", name, " is required"));
  }
  const std::string mode = node.String("mode", "");
  if (mode != "standard" && mode != "nesterov") {
    return NodeError(node, absl::StrCat("mode '", mode, "' is not standard or nesterov"));
  }
  return MomentumAttributes{node.Float("alpha", 0), node.Float("beta", 0),
                            node.Float("norm_coefficient", 0), mode == "nesterov"};
}

absl::StatusOr<AdamAttributes> AdamAttributes::Make(const Node& node) {
  return AdamAttributes{node.Float("alpha", 0.9f), node.Float("beta", 0.999f),
                        node.Float("epsilon", 1e-6f), node.Float("norm_coefficient", 0.0f),
                        node.Float("norm_coefficient_post", 0.0f)};
}

absl::StatusOr<AdamWAttributes> AdamWAttributes::Make(const Node& node) {
  return AdamWAttributes{node.Float("alpha", 0.9f), node.Float("beta", 0.999f),
                         node.Float("epsilon", 0.0f), node.Float("eps", 1e-8f),
                         node.Float("weight_decay", 0.01f)};
}

}  // namespace onward

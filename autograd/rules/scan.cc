// SPDX-License-Identifier: Apache-2.0
// The gradient of Scan. With states v, captured values c, scanned x and s:
//
//   for t:  v, s[t] = f(v, x[t], c)
//
// the forward node also gives v of every step; backward is a Scan in the other direction:
//
//   for t, from the last:  dv, dc += f'(v[t], x[t], c; dv, ds[t]), dx[t]
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "autograd/rules/kept.h"
#include "autograd/shape_expr.h"
#include "autograd/values.h"
#include "core/base/status.h"

namespace onward {
namespace {

constexpr int kBackwards = 1;

class ScanGradient {
 public:
  ScanGradient(const Vjp& v, Repeated loop) : v_(v), b_(v.b()), loop_(std::move(loop)) {}

  absl::StatusOr<Grads> Run() {
    states_ = ActiveStates(v_, loop_);
    captured_ = WantedCaptured(v_, loop_);
    for (int i = loop_.states; i < loop_.own; ++i) {
      if (v_.needs(i)) slices_.push_back(i);
    }
    ONWARD_RETURN_IF_ERROR(CheckCarried());
    Grads grads(v_.inputs());
    if (states_.empty() && captured_.empty() && slices_.empty()) return grads;
    ONWARD_ASSIGN_OR_RETURN(derived_, v_.Derive(Request()));
    std::vector<Expr> inputs;
    for (int k : states_) inputs.push_back(v_.dy(k));
    for (int i : captured_) inputs.push_back(ZerosOf(v_.x(i)));
    ONWARD_RETURN_IF_ERROR(b_.status());
    KeepStates();
    ONWARD_RETURN_IF_ERROR(b_.status());
    ONWARD_ASSIGN_OR_RETURN(Attribute::Body body, BackwardBody());
    inputs.insert(inputs.end(), scanned_.begin(), scanned_.end());
    std::vector<int> gives = states_;
    gives.insert(gives.end(), captured_.begin(), captured_.end());
    gives.insert(gives.end(), slices_.begin(), slices_.end());
    Attributes attributes = {{"body", std::move(body)},
                             {"num_scan_inputs", static_cast<int64_t>(scanned_.size())},
                             {"scan_input_axes", axes_},
                             {"scan_input_directions", directions_}};
    if (!slices_.empty()) {
      std::vector<int64_t> axes, directions;
      for (int i : slices_) {
        axes.push_back(Way("scan_input_axes", i - loop_.states));
        directions.push_back(kBackwards - Way("scan_input_directions", i - loop_.states));
      }
      attributes["scan_output_axes"] = axes;
      attributes["scan_output_directions"] = directions;
    }
    const std::vector<Expr> results =
        b_.Ops("Scan", std::move(inputs), static_cast<int>(gives.size()), std::move(attributes));
    for (size_t k = 0; k < results.size(); ++k) {
      grads[gives[k]] = WithShapeOf(results[k], v_.x(gives[k]));
    }
    return grads;
  }

 private:
  int64_t Way(const char* attribute, int i) const {
    const std::vector<int64_t> ways = loop_.node.Ints(attribute);
    return i < static_cast<int>(ways.size()) ? ways[i] : 0;
  }

  // A Scan carries tensors, and stacks those of one shape. Others have become Loops before
  // (prepare.h), where the ranks of their outputs are known.
  absl::Status CheckCarried() const {
    std::string what;
    for (int i : captured_) {
      const ValueType type = GradientType(v_.x(i).type());
      if (!type.is_tensor()) {
        what = absl::StrCat("captures '", v_.node().inputs[i], "', which is ", type.ToString());
      }
    }
    for (size_t k = 0; k < loop_.draws.size(); ++k) {
      if (!HasOneShape(loop_.replayed_types[loop_.own + k])) {
        what = absl::StrCat("draws '", loop_.draws[k], "', whose shape may change");
      }
    }
    if (what.empty()) return absl::OkStatus();
    return absl::UnimplementedError(
        absl::StrCat("its body ", what, "; its gradient is a Loop then, and the rank of an output ",
                     "is not known: declare the shapes of its outputs, or write it as Loop"));
  }

  BodyRequest Request() {
    BodyRequest request{&loop_.replayed, loop_.replayed_types};
    const auto seed = [&](int k) {
      seeds_.push_back(b_.UniqueName("d_out"));
      request.seeds.emplace_back(k, seeds_.back());
    };
    for (int k : states_) seed(k);
    for (int k = loop_.states; k < static_cast<int>(v_.node().outputs.size()); ++k) {
      if (!v_.has_dy(k)) continue;
      arriving_.push_back(k);
      seed(k);
    }
    request.by_inputs = states_;
    request.by_inputs.insert(request.by_inputs.end(), slices_.begin(), slices_.end());
    for (int i : captured_) request.by_captured.push_back(v_.node().inputs[i]);
    return request;
  }

  // Makes the forward node give the states and draws that the backward body reads.
  void KeepStates() {
    for (int i = 0; i < loop_.states; ++i) {
      if (!derived_.inputs[i].empty() && !IsConstant(loop_, i)) kept_.push_back(i);
    }
    for (int i = loop_.own; i < loop_.own + static_cast<int>(loop_.draws.size()); ++i) {
      if (!derived_.inputs[i].empty()) kept_.push_back(i);
    }
    if (kept_.empty()) return;
    const size_t before = loop_.body.outputs.size() - loop_.states;
    for (int i : kept_) {
      kept_names_.push_back(
          KeepOf("Identity", loop_.replayed.inputs[i].name, loop_.replayed_types[i], b_, &loop_));
    }
    for (const char* attribute : {"scan_output_axes", "scan_output_directions"}) {
      if (!loop_.node.Has(attribute)) continue;
      std::vector<int64_t> ways = loop_.node.Ints(attribute);
      ways.resize(before + kept_.size(), 0);
      loop_.node.attributes[attribute] = ways;
    }
    loop_.node.attributes["body"] = std::make_shared<const Graph>(loop_.body);
    v_.Replaced(loop_.node);
  }

  // An input of the backward body that takes the slices of `all`.
  void ScanOver(const Expr& all, int64_t axis, int64_t direction, const std::string& name,
                const ValueType& type, BodyBuilder* body) {
    scanned_.push_back(all);
    axes_.push_back(axis);
    directions_.push_back(direction);
    body->b().Input(name, type);
  }

  absl::StatusOr<Attribute::Body> BackwardBody() {
    derived_.graph.name = "scan_gradient";
    BodyBuilder body(b_, std::move(derived_.graph));
    GraphBuilder& in = body.b();
    for (size_t k = 0; k < states_.size(); ++k) in.Input(seeds_[k], loop_.types[states_[k]]);
    std::vector<Expr> sums;
    for (int i : captured_) {
      sums.push_back(in.Input(in.UniqueName("sum"), GradientType(v_.x(i).type())));
    }
    BindInputs(&body);
    for (size_t k = 0; k < states_.size(); ++k) in.Output(in.Value(derived_.gradients[k]));
    const size_t behind_slices = states_.size() + slices_.size();
    for (size_t k = 0; k < captured_.size(); ++k) {
      const Expr part = in.Value(derived_.gradients[behind_slices + k]);
      in.Output(AddGradients(sums[k], part, body.Captured(v_.x(captured_[k]))));
    }
    for (size_t k = states_.size(); k < behind_slices; ++k) {
      in.Output(in.Value(derived_.gradients[k]));
    }
    return body.Finish();
  }

  // Gives the body's inputs and the seeds the values they had in each step.
  void BindInputs(BodyBuilder* body) {
    const std::vector<std::string>& names = derived_.inputs;
    for (int i = 0; i < loop_.states; ++i) {
      if (names[i].empty()) continue;
      const auto kept = std::find(kept_.begin(), kept_.end(), i);
      if (kept == kept_.end()) {
        body->Give(names[i], Operation("Identity", {body->Captured(v_.x(i)).name()}));
      } else {
        ScanOver(b_.Value(kept_names_[kept - kept_.begin()]), 0, kBackwards, names[i],
                 loop_.types[i], body);
      }
    }
    for (size_t k = 0; k < kept_.size(); ++k) {
      if (kept_[k] < loop_.own) continue;
      ScanOver(b_.Value(kept_names_[k]), 0, kBackwards, names[kept_[k]],
               loop_.replayed_types[kept_[k]], body);
    }
    for (size_t k = 0; k < arriving_.size(); ++k) {
      const int scanned = arriving_[k] - loop_.states;
      const std::string& seed = seeds_[states_.size() + k];
      const ValueType* type = body->b().graph().TypeOf(seed);
      ScanOver(v_.dy(arriving_[k]), Way("scan_output_axes", scanned),
               kBackwards - Way("scan_output_directions", scanned), seed,
               type == nullptr ? ValueType{} : *type, body);
    }
    for (int i = loop_.states; i < loop_.own; ++i) {
      // At least one input tells how many steps there are.
      const bool last = i + 1 == loop_.own && scanned_.empty();
      if (names[i].empty() && !last) continue;
      const int scanned = i - loop_.states;
      ScanOver(v_.x(i), Way("scan_input_axes", scanned),
               kBackwards - Way("scan_input_directions", scanned),
               names[i].empty() ? b_.UniqueName("unread") : names[i], loop_.types[i], body);
    }
  }

  const Vjp& v_;
  GraphBuilder& b_;
  Repeated loop_;
  std::vector<int> states_, captured_, slices_, arriving_;
  std::vector<std::string> seeds_;  // of states, then of scanned outputs
  BodyGradients derived_;
  std::vector<int> kept_;  // states, then draws
  std::vector<std::string> kept_names_;
  std::vector<Expr> scanned_;  // what the backward node scans, and how
  std::vector<int64_t> axes_, directions_;
};

}  // namespace

Grads ScanVjp(const Vjp& v) {
  absl::StatusOr<Repeated> loop = Repetition(v);
  absl::StatusOr<Grads> grads = loop.ok() ? ScanGradient(v, *std::move(loop)).Run() : loop.status();
  if (grads.ok()) return *std::move(grads);
  v.b().Fail(grads.status());
  return {};
}

}  // namespace onward

// SPDX-License-Identifier: Apache-2.0
// The gradient of Loop. With states v, captured values c and scanned outputs s:
//
//   for i < n:  v, s[i] = f(i, v, c)
//
// the forward node also gives each iteration's v. Backward, from the last to the first:
//
//   for i = n-1 .. 0:  dv, dc += f'(i, v[i], c; dv, ds[i])
#include "autograd/rules/loop.h"

#include <algorithm>
#include <utility>

#include "autograd/rules/kept.h"
#include "autograd/shape_expr.h"
#include "autograd/values.h"
#include "core/base/status.h"

namespace onward {
namespace {

class LoopGradient {
 public:
  LoopGradient(const Vjp& v, Repeated loop) : v_(v), b_(v.b()), loop_(std::move(loop)) {}

  absl::StatusOr<Grads> Run() {
    states_ = ActiveStates(v_, loop_);
    captured_ = WantedCaptured(v_, loop_);
    Grads grads(v_.inputs());
    if (states_.empty() && captured_.empty()) return grads;
    ONWARD_ASSIGN_OR_RETURN(derived_, v_.Derive(Request()));
    std::vector<Expr> carried = {Expr(), Expr()};  // the number of iterations, no condition
    for (int k : states_) carried.push_back(v_.dy(k));
    for (int i : captured_) carried.push_back(ZerosOf(v_.x(i)));
    ONWARD_RETURN_IF_ERROR(b_.status());
    ONWARD_RETURN_IF_ERROR(KeepInputs());
    carried[0] = count_;
    ONWARD_ASSIGN_OR_RETURN(Attribute::Body body, BackwardBody());
    const int results = static_cast<int>(carried.size()) - 2;
    const std::vector<Expr> gradients =
        b_.Ops("Loop", std::move(carried), results, {{"body", std::move(body)}});
    for (size_t k = 0; k < gradients.size(); ++k) {
      const int input = k < states_.size() ? 2 + states_[k] : captured_[k - states_.size()];
      grads[input] = WithShapeOf(gradients[k], v_.x(input));
    }
    return grads;
  }

 private:
  BodyRequest Request() {
    BodyRequest request{&loop_.replayed, loop_.replayed_types};
    for (int k : states_) {
      seeds_.push_back(b_.UniqueName("d_state"));
      request.seeds.emplace_back(1 + k, seeds_.back());
      request.by_inputs.push_back(2 + k);
    }
    for (int k = loop_.states; k < static_cast<int>(v_.node().outputs.size()); ++k) {
      if (!v_.has_dy(k)) continue;
      scanned_.push_back(k);
      seeds_.push_back(b_.UniqueName("d_scanned"));
      request.seeds.emplace_back(1 + k, seeds_.back());
    }
    for (int i : captured_) request.by_captured.push_back(v_.node().inputs[i]);
    return request;
  }

  // Makes the forward node give what the backward body reads of each iteration, and how
  // many there were.
  absl::Status KeepInputs() {
    std::vector<Node> before;
    const auto keep = [&](int i) -> absl::Status {
      ONWARD_ASSIGN_OR_RETURN(Kept kept, Keep(loop_.replayed.inputs[i].name,
                                              loop_.replayed_types[i], b_, &loop_, &before));
      kept_.emplace_back(i, std::move(kept));
      return absl::OkStatus();
    };
    for (int i = 2; i < static_cast<int>(loop_.replayed_types.size()); ++i) {
      const bool state = i < 2 + loop_.states;
      if (derived_.inputs[i].empty() || (state && IsConstant(loop_, i - 2))) continue;
      if (loop_.replayed_types[i].is_tensor() || !KeepLength(i)) ONWARD_RETURN_IF_ERROR(keep(i));
    }
    if (kept_.empty()) KeepAs("Identity", 0, loop_.types[0]);
    loop_.node.attributes["body"] = std::make_shared<const Graph>(loop_.body);
    v_.Replaced(loop_.node, std::move(before));
    const Expr counted = b_.Value(kept_[0].second.Counted());
    count_ = counted.type().is_tensor() ? Squeeze(DimVector(counted, 0), {0})
                                        : b_.Op("SequenceLength", {counted});
    return b_.status();
  }

  // Whether the gradient reads nothing of a sequence but its length, which is less to keep.
  bool KeepLength(int i) {
    if (loop_.replayed_types[i].kind != ValueType::Kind::kSequence) return false;
    std::vector<Node>& nodes = derived_.graph.nodes;
    const std::string& name = derived_.inputs[i];
    const auto is_length = [&](const Node& node) {
      return node.Is("SequenceLength") && node.inputs[0] == name;
    };
    std::vector<std::pair<std::string, int>> lengths;
    for (const Node& node : nodes) {
      const std::vector<std::string> reads = AllInputs(node);
      if (std::find(reads.begin(), reads.end(), name) == reads.end()) continue;
      if (!is_length(node)) return false;
      lengths.emplace_back(node.outputs[0], i);
    }
    lengths_.insert(lengths_.end(), lengths.begin(), lengths.end());
    std::erase_if(nodes, is_length);
    KeepAs("SequenceLength", i, ValueType::Of(DType::kInt64, {}));
    return true;
  }

  // op(input i), which has one shape.
  void KeepAs(const char* op, int i, const ValueType& type) {
    Kept kept;
    kept.type = type;
    kept.all = KeepOf(op, loop_.replayed.inputs[i].name, type, b_, &loop_);
    kept_.emplace_back(i, std::move(kept));
  }

  const Kept* KeptOf(int i) const {
    const auto kept = std::find_if(kept_.begin(), kept_.end(),
                                   [&](const auto& entry) { return entry.first == i; });
    return kept == kept_.end() ? nullptr : &kept->second;
  }

  absl::StatusOr<Attribute::Body> BackwardBody() {
    const Expr last = count_ - b_.Int(1);
    derived_.graph.name = "loop_gradient";
    BodyBuilder body(b_, std::move(derived_.graph));
    GraphBuilder& in = body.b();
    const Expr number = in.Input(in.UniqueName("iteration"), ValueType::Of(DType::kInt64, {}));
    const Expr condition = in.Input(in.UniqueName("going_on"), ValueType::Of(DType::kBool, {}));
    for (size_t k = 0; k < states_.size(); ++k) {
      in.Input(seeds_[k], GradientType(loop_.types[2 + states_[k]]));
    }
    std::vector<Expr> sums;
    for (int i : captured_) {
      sums.push_back(in.Input(in.UniqueName("sum"), GradientType(v_.x(i).type())));
    }
    const Expr i = body.Captured(last) - number;
    BindInputs(i, &body);
    for (size_t k = 0; k < scanned_.size(); ++k) {
      const Expr ds = body.Captured(v_.dy(scanned_[k]));
      body.Give(seeds_[states_.size() + k], Operation("Gather", {ds.name(), i.name()}));
    }
    in.Output(in.Op("Identity", {condition}));
    for (size_t k = 0; k < states_.size(); ++k) in.Output(in.Value(derived_.gradients[k]));
    for (size_t k = 0; k < captured_.size(); ++k) {
      const Expr part = in.Value(derived_.gradients[states_.size() + k]);
      in.Output(AddGradients(sums[k], part, body.Captured(v_.x(captured_[k]))));
    }
    return body.Finish();
  }

  // Gives the body's inputs the values they had in iteration i.
  void BindInputs(const Expr& i, BodyBuilder* body) {
    const std::vector<std::string>& names = derived_.inputs;
    const auto vector = [&](int input) { return loop_.types[input].rank() == 1; };
    if (!names[0].empty()) {
      const Expr shape = body->b().Ints(std::vector<int64_t>(vector(0) ? 1 : 0, 1));
      body->Give(names[0], Operation("Reshape", {i.name(), shape.name()}));
    }
    if (!names[1].empty()) {
      const Tensor going_on =
          vector(1) ? Tensor::FromValues<bool>({1}, {true}) : Tensor::Scalar<bool>(true);
      body->Give(names[1], Operation("Constant", {}, {{"value", going_on}}));
    }
    const auto recall = [&](const Kept& kept, const std::string& name) {
      for (const NamedType& given : kept.Outputs()) body->Captured(b_.Value(given.name));
      for (Node& node : Recall(kept, i.name(), name, body->b())) {
        std::string last = node.outputs[0];
        body->Give(std::move(last), std::move(node));
      }
    };
    for (int k = 2; k < static_cast<int>(names.size()); ++k) {
      const bool of_lengths = std::any_of(lengths_.begin(), lengths_.end(),
                                          [&](const auto& entry) { return entry.second == k; });
      if (names[k].empty() || of_lengths) continue;
      if (const Kept* kept = KeptOf(k)) {
        recall(*kept, names[k]);
      } else {
        body->Give(names[k], Operation("Identity", {body->Captured(v_.x(k)).name()}));
      }
    }
    for (const auto& [length, input] : lengths_) recall(*KeptOf(input), length);
  }

  const Vjp& v_;
  GraphBuilder& b_;
  Repeated loop_;
  std::vector<int> states_, captured_, scanned_;
  std::vector<std::string> seeds_;  // of states, then of scanned outputs
  BodyGradients derived_;
  std::vector<std::pair<int, Kept>> kept_;            // body input, what the node gives for it
  std::vector<std::pair<std::string, int>> lengths_;  // value inside, the sequence it is of
  Expr count_;
};

}  // namespace

Grads LoopVjp(const Vjp& v) {
  absl::StatusOr<Repeated> loop = Repetition(v);
  absl::StatusOr<Grads> grads = loop.ok() ? LoopGradient(v, *std::move(loop)).Run() : loop.status();
  if (grads.ok()) return *std::move(grads);
  v.b().Fail(grads.status());
  return {};
}

}  // namespace onward

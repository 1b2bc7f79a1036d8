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

#include "absl/strings/str_cat.h"
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
    ONWARD_RETURN_IF_ERROR(KeepStates());
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
  absl::Status KeepStates() {
    std::vector<int> listed;  // where shapes change: in a sequence
    const auto keep = [&](int i) {
      const std::string name = loop_.replayed.inputs[i].name;
      kept_.emplace_back(i, KeepOf("Identity", name, loop_.replayed_types[i], b_, &loop_));
    };
    for (int i = 2; i < 2 + loop_.states; ++i) {
      if (derived_.inputs[i].empty() || IsConstant(loop_, i - 2)) continue;
      if (!loop_.types[i].is_tensor()) {
        ONWARD_RETURN_IF_ERROR(KeepLength(i));
      } else if (HasOneShape(loop_.types[i])) {
        keep(i);
      } else {
        listed.push_back(i);
      }
    }
    for (int i = FirstDraw(); i < EndOfDraws(); ++i) {
      if (!derived_.inputs[i].empty()) keep(i);
    }
    if (kept_.empty() && listed.empty()) keep(0);
    std::vector<Node> before;
    for (size_t k = 0; k < listed.size(); ++k) {
      kept_.emplace_back(listed[k], ListInput(listed[k], static_cast<int>(k), &before));
    }
    loop_.node.attributes["body"] = std::make_shared<const Graph>(loop_.body);
    v_.Replaced(loop_.node, std::move(before));
    const Expr first = b_.Value(kept_[0].second);
    count_ = first.type().is_tensor() ? Squeeze(DimVector(first, 0), {0})
                                      : b_.Op("SequenceLength", {first});
    return b_.status();
  }

  // A sequence of every iteration cannot be kept; its length can, and often is enough.
  absl::Status KeepLength(int i) {
    std::vector<Node>& nodes = derived_.graph.nodes;
    const std::string& name = derived_.inputs[i];
    for (const Node& node : nodes) {
      const std::vector<std::string> reads = AllInputs(node);
      if (std::find(reads.begin(), reads.end(), name) == reads.end()) continue;
      if (node.Is("SequenceLength")) {
        lengths_.emplace_back(node.outputs[0], i);
        continue;
      }
      return absl::UnimplementedError(
          absl::StrCat("its gradient needs state ", i - 2, " of every iteration, which is ",
                       loop_.types[i].ToString(), "; carry tensors, or read it outside the loop"));
    }
    std::erase_if(nodes, [&](const Node& node) {
      return node.Is("SequenceLength") && node.inputs[0] == name;
    });
    kept_.emplace_back(i, KeepOf("SequenceLength", loop_.body.inputs[i].name,
                                 ValueType::Of(DType::kInt64, {}), b_, &loop_));
    return absl::OkStatus();
  }

  // Among the inputs of the replayed body.
  int FirstDraw() const { return 2 + loop_.states; }
  int EndOfDraws() const { return FirstDraw() + static_cast<int>(loop_.draws.size()); }

  std::string KeptOf(int i) const {
    const auto kept = std::find_if(kept_.begin(), kept_.end(),
                                   [&](const auto& entry) { return entry.first == i; });
    return kept == kept_.end() ? "" : kept->second;
  }

  // One more state: the sequence of what body input `i` was in each iteration.
  std::string ListInput(int i, int number, std::vector<Node>* before) {
    ValueType element = loop_.types[i];
    element.has_rank = false;
    element.dims.clear();
    const ValueType sequence = ValueType::Holding(ValueType::Kind::kSequence, element);
    const std::string empty = b_.UniqueName("empty"), in = b_.UniqueName("list"),
                      out = b_.UniqueName("list"), all = b_.UniqueName("list_all");
    NameOutputs(b_, &loop_);
    before->push_back(
        Operation("SequenceEmpty", {}, {{"dtype", static_cast<int64_t>(element.dtype)}}));
    before->back().outputs = {empty};
    loop_.body.nodes.push_back(Operation("SequenceInsert", {in, loop_.body.inputs[i].name}));
    loop_.body.nodes.back().outputs = {out};
    loop_.body.inputs.push_back({in, sequence});
    loop_.body.outputs.insert(loop_.body.outputs.begin() + 1 + loop_.states + number,
                              {out, sequence});
    loop_.node.inputs.resize(std::max<size_t>(loop_.node.inputs.size(), 2));
    loop_.node.inputs.push_back(empty);
    loop_.node.outputs.insert(loop_.node.outputs.begin() + loop_.states + number, all);
    return all;
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
    for (int k = 2; k < 2 + loop_.states; ++k) {
      if (names[k].empty()) continue;
      const std::string kept = KeptOf(k);
      if (kept.empty()) {
        body->Give(names[k], Operation("Identity", {body->Captured(v_.x(k)).name()}));
        continue;
      }
      if (!loop_.types[k].is_tensor()) continue;
      const Expr all = body->Captured(b_.Value(kept));
      body->Give(names[k], Operation(all.type().is_tensor() ? "Gather" : "SequenceAt",
                                     {all.name(), i.name()}));
    }
    for (int k = FirstDraw(); k < EndOfDraws(); ++k) {
      if (names[k].empty()) continue;
      const Expr all = body->Captured(b_.Value(KeptOf(k)));
      body->Give(names[k], Operation("Gather", {all.name(), i.name()}));
    }
    for (const auto& [length, input] : lengths_) {
      const Expr all = body->Captured(b_.Value(KeptOf(input)));
      body->Give(length, Operation("Gather", {all.name(), i.name()}));
    }
  }

  const Vjp& v_;
  GraphBuilder& b_;
  Repeated loop_;
  std::vector<int> states_, captured_, scanned_;
  std::vector<std::string> seeds_;  // of states, then of scanned outputs
  BodyGradients derived_;
  std::vector<std::pair<int, std::string>> kept_;     // body input, what the node gives for it
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

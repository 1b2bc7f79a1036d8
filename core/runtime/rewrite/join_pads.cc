// SPDX-License-Identifier: Apache-2.0
// Gradients of slices that cut a tensor into pieces, put together again.
#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "core/graph/patterns/pattern.h"
#include "core/runtime/rewrite/fuse.h"

namespace onward {
namespace {

// More pieces than this are left alone, so that long sums cost no more than others.
constexpr size_t kMostPieces = 64;

// A Pad with zeros along one axis: the piece [begin, end) of the whole.
struct Piece {
  int64_t axis, begin, end, whole;
  std::string value;
};

class PadJoiner {
 public:
  PadJoiner(const absl::flat_hash_set<std::string>& keep, Graph* graph) : pattern_(graph, keep) {}

  void Run() {
    const std::vector<Node>& nodes = pattern_.nodes();
    // From the last: a sum of three is one Add that reads another.
    for (size_t i = nodes.size(); i-- > 0;) {
      if (pattern_.gone(nodes[i]) || !nodes[i].Is("Add")) continue;
      pieces_.clear();
      taken_.clear();
      if (Collect(nodes[i]) && TileTheWhole()) Join(nodes[i]);
    }
    pattern_.Finish();
  }

 private:
  // The pieces that an Add sums up; false where a summand is none.
  bool Collect(const Node& add) {
    taken_.push_back(&add);
    if (taken_.size() > 2 * kMostPieces) return false;
    for (const std::string& summand : add.inputs) {
      if (pattern_.OnlyConsumer(summand) == nullptr) return false;
      if (const Node* inner = pattern_.Producer(summand, "Add")) {
        if (!Collect(*inner)) return false;
        continue;
      }
      const Node* pad = pattern_.Producer(summand, "Pad");
      std::optional<Piece> piece = pad == nullptr ? std::nullopt : PieceOf(*pad);
      if (!piece.has_value()) return false;
      taken_.push_back(pad);
      pieces_.push_back(*std::move(piece));
    }
    return true;
  }

  std::optional<Piece> PieceOf(const Node& pad) const {
    if (pad.String("mode", "constant") != "constant" || pad.HasInput(2)) return std::nullopt;
    const ValueType *from = pattern_.TypeOf(pad.inputs[0]), *to = pattern_.TypeOf(pad.outputs[0]);
    if (from == nullptr || to == nullptr) return std::nullopt;
    const std::optional<Shape> part = from->StaticShape(), whole = to->StaticShape();
    const std::optional<Tensor> pads = pattern_.Constant(pad.inputs[1]);
    if (!part.has_value() || !whole.has_value()) return std::nullopt;
    if (!pads.has_value() || pads->dtype() != DType::kInt64) return std::nullopt;
    // The only axis whose size changes; one that pads shift without that is no piece.
    std::optional<Piece> piece;
    for (int axis = 0; axis < whole->rank(); ++axis) {
      if ((*part)[axis] == (*whole)[axis]) continue;
      if (piece.has_value()) return std::nullopt;
      piece = Piece{axis, 0, 0, (*whole)[axis], pad.inputs[0]};
    }
    if (!piece.has_value()) return std::nullopt;
    const absl::Span<const int64_t> amounts = pads->values<int64_t>();
    const size_t axes = amounts.size() / 2;
    for (size_t i = 0; i < axes; ++i) {
      if (amounts[i] < 0 || amounts[axes + i] < 0 || amounts[i] > piece->whole) return std::nullopt;
      // Only one axis grows, so the pads that are not zero are its own.
      piece->begin += amounts[i];
    }
    piece->end = piece->begin + (*part)[static_cast<int>(piece->axis)];
    return piece;
  }

  bool TileTheWhole() {
    std::sort(pieces_.begin(), pieces_.end(),
              [](const Piece& a, const Piece& b) { return a.begin < b.begin; });
    int64_t covered = 0;
    for (const Piece& piece : pieces_) {
      if (piece.axis != pieces_[0].axis || piece.begin != covered) return false;
      covered = piece.end;
    }
    return covered == pieces_[0].whole;
  }

  void Join(const Node& root) {
    Node concat;
    concat.op_type = "Concat";
    concat.attributes["axis"] = pieces_[0].axis;
    for (Piece& piece : pieces_) concat.inputs.push_back(std::move(piece.value));
    pattern_.Replace(taken_, root, std::move(concat));
  }

  PatternGraph pattern_;
  std::vector<Piece> pieces_;
  std::vector<const Node*> taken_;
};

}  // namespace

void JoinPads(const absl::flat_hash_set<std::string>& keep, Graph* graph) {
  if (Has(*graph, {"Pad"})) PadJoiner(keep, graph).Run();
}

}  // namespace onward

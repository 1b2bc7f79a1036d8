// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <map>
#include <tuple>

#include "training_info/surgery/surgery.h"
#include "training_info/weights/weights.h"

namespace onward {
namespace {

// Whether b[j, i] == a[i, j], bit for bit.
bool IsTransposed(const Tensor& a, const Tensor& b) {
  const int64_t rows = a.shape()[0], columns = a.shape()[1];
  if (b.dtype() != a.dtype() || b.shape() != Shape{columns, rows}) return false;
  const size_t width = DTypeBits(a.dtype()) / 8;
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) {
      if (std::memcmp(a.data<char>() + (i * columns + j) * width,
                      b.data<char>() + (j * rows + i) * width, width) != 0) {
        return false;
      }
    }
  }
  return true;
}

// Which of two is the original: a table, else what the exporter knows of.
int Rank(const Graph& graph, const std::string& name) {
  for (const Node& node : graph.nodes) {
    if (node.Is("Gather") && node.inputs[0] == name) return 2;
  }
  return IsParameter(graph, name) ? 1 : 0;
}

}  // namespace

std::vector<Tie> TieTransposedCopies(Graph* graph, const std::vector<std::string>& names) {
  // Transposing keeps the first element, and swaps the two sizes.
  std::map<std::tuple<DType, int64_t, int64_t, std::string>, std::vector<std::string>> alike;
  for (const std::string& name : names) {
    const Tensor& t = graph->initializers.at(name);
    const size_t width = DTypeBits(t.dtype()) / 8;
    if (t.shape().rank() != 2 || width == 0 || IsUniform(t) || IsTransposed(t, t)) continue;
    const int64_t rows = t.shape()[0], columns = t.shape()[1];
    alike[{t.dtype(), std::min(rows, columns), std::max(rows, columns),
           std::string(t.data<char>(), width)}]
        .push_back(name);
  }
  std::vector<Tie> ties;
  for (const auto& [key, group] : alike) {
    for (size_t i = 0; i < group.size(); ++i) {
      for (size_t j = i + 1; j < group.size(); ++j) {
        if (!graph->initializers.contains(group[i]) || !graph->initializers.contains(group[j]) ||
            !IsTransposed(graph->initializers.at(group[i]), graph->initializers.at(group[j]))) {
          continue;
        }
        // Two parameters are two, whatever they hold.
        if (IsParameter(*graph, group[i]) && IsParameter(*graph, group[j])) continue;
        const bool second_kept = Rank(*graph, group[i]) < Rank(*graph, group[j]);
        ties.push_back(second_kept ? Tie{group[i], group[j]} : Tie{group[j], group[i]});
        graph->initializers.erase(ties.back().copy);
      }
    }
  }
  for (const Tie& tie : ties) {
    std::erase_if(graph->inputs, [&](const NamedType& in) { return in.name == tie.copy; });
    Node node;
    node.op_type = "Transpose";
    node.inputs = {tie.kept};
    node.outputs = {tie.copy};
    node.attributes["perm"] = std::vector<int64_t>{1, 0};
    graph->nodes.insert(graph->nodes.begin(), std::move(node));
  }
  return ties;
}

}  // namespace onward

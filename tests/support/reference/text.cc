// SPDX-License-Identifier: Apache-2.0
// Strings are numbers that they spell (array.h): what is done to text is done to digits.
#include <algorithm>
#include <set>
#include <string>

#include "core/graph/attribute_lists.h"
#include "tests/support/reference/evaluate.h"

namespace onward::reference {
namespace {

std::string Spelled(Number value) { return std::to_string(static_cast<int64_t>(value)); }
Number Meant(const std::string& text) {
  if (text.find('-') != std::string::npos) throw NotDefined("a sign inside a number");
  return text.empty() ? 0 : std::stold(text);
}

Arrays StringConcat(const Call& call) {
  const Array &a = call.in[0], &b = call.in[1];
  return {Make(a.dtype, Broadcast(a.shape, b.shape), [&](const Index& at) {
    return Meant(Spelled(a.Broadcast(at)) + Spelled(b.Broadcast(at)));
  })};
}

Arrays StringSplit(const Call& call) {
  const Array& x = call.in[0];
  const std::string delimiter = call.node.String("delimiter", "");
  const int64_t most = call.node.Int("maxsplit", 1000);
  std::vector<std::vector<std::string>> parts;
  size_t widest = 0;
  for (const Number value : x.values) {
    parts.push_back({""});
    for (const char c : Spelled(value)) {
      if (std::string(1, c) == delimiter && static_cast<int64_t>(parts.back().size()) <= most) {
        parts.back().push_back("");
      } else {
        parts.back().back() += c;
      }
    }
    widest = std::max(widest, parts.back().size());
  }
  Shape shape = x.shape;
  shape.push_back(static_cast<int64_t>(widest));
  Array pieces(x.dtype, shape), counts(DType::kInt64, x.shape);
  for (size_t i = 0; i < parts.size(); ++i) {
    counts.values[i] = static_cast<Number>(parts[i].size());
    for (size_t j = 0; j < parts[i].size(); ++j) pieces.values[i * widest + j] = Meant(parts[i][j]);
  }
  return {pieces, counts};
}

Arrays StringNormalizer(const Call& call) {
  const Array& x = call.in[0];
  const std::vector<std::string> list = call.node.Strings("stopwords");
  const std::set<std::string> stops(list.begin(), list.end());
  std::vector<Number> kept;
  for (const Number value : x.values) {
    if (!stops.contains(Spelled(value))) kept.push_back(value);
  }
  if (kept.empty()) kept.push_back(0);
  Array y(x.dtype, Shape{static_cast<int64_t>(kept.size())});
  y.values = kept;
  return {y};
}

// Rows ask for numbers of one digit.
Arrays RegexFullMatch(const Call& call) {
  const Array& x = call.in[0];
  if (call.node.String("pattern", "") != "[0-9]") throw NotDefined("pattern");
  return {Make(DType::kBool, x.shape, [&](const Index& at) { return x[at] < 10 ? 1 : 0; })};
}

// Every gram of the pool against every place and every distance.
Arrays TfIdfVectorizer(const Call& call) {
  const Array& x = call.in[0];
  const Node& node = call.node;
  const std::vector<int64_t> pool = node.Ints("pool_int64s"), begins = node.Ints("ngram_counts"),
                             columns = node.Ints("ngram_indexes");
  const std::vector<float> weights = FloatsOf(node, "weights");
  const std::string mode = node.String("mode", "");
  const int64_t width = *std::max_element(columns.begin(), columns.end()) + 1;
  const int64_t n = x.shape[x.rank() - 1], rows = n == 0 ? 1 : x.size() / n;
  Array y(DType::kFloat, x.rank() == 1 ? Shape{width} : Shape{rows, width});
  for (int64_t row = 0; row < rows; ++row) {
    size_t gram = 0;
    for (size_t k = 0; k < begins.size(); ++k) {
      const int64_t length = static_cast<int64_t>(k) + 1;
      const int64_t end = k + 1 < begins.size() ? begins[k + 1] : static_cast<int64_t>(pool.size());
      for (int64_t at = begins[k]; at < end; at += length, ++gram) {
        if (length < node.Int("min_gram_length", 1) || length > node.Int("max_gram_length", 1)) {
          continue;
        }
        Number found = 0;
        const int64_t distances = length == 1 ? 1 : node.Int("max_skip_count", 0) + 1;
        for (int64_t apart = 1; apart <= distances; ++apart) {
          for (int64_t begin = 0; begin + (length - 1) * apart < n; ++begin) {
            bool same = true;
            for (int64_t i = 0; i < length; ++i) {
              same &= x.values[row * n + begin + i * apart] == static_cast<Number>(pool[at + i]);
            }
            found += same ? 1 : 0;
          }
        }
        const int64_t column = columns[gram];
        const Number weight = mode == "TF" || weights.empty() ? 1 : weights[column];
        Number& result = y.values[row * width + column];
        if (mode != "IDF") {
          result += found * weight;
        } else if (found > 0) {
          result = weight;
        }
      }
    }
  }
  return {y};
}

}  // namespace

const Table& TextTable() {
  static const auto* const table = new Table{{"StringConcat", StringConcat},
                                             {"StringSplit", StringSplit},
                                             {"StringNormalizer", StringNormalizer},
                                             {"RegexFullMatch", RegexFullMatch},
                                             {"TfIdfVectorizer", TfIdfVectorizer}};
  return *table;
}

}  // namespace onward::reference

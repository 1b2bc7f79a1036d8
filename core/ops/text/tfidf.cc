// SPDX-License-Identifier: Apache-2.0
// TfIdfVectorizer: counts the n-grams of a pool in rows of numbers or words. The pool is a trie
// over numbered tokens, so that a row is looked up once, token by token, and then walked.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "core/graph/attribute_lists.h"
#include "core/ops/movement/movement.h"
#include "core/ops/text/text.h"

namespace onward {
namespace {

constexpr int32_t kNone = -1;
constexpr int64_t kGramGrain = 4096;  // tokens worth a thread

struct Pool {
  absl::flat_hash_map<int64_t, int32_t> numbers;
  absl::flat_hash_map<std::string, int32_t> words;
  absl::flat_hash_map<uint64_t, int32_t> children;  // (node, token) -> node; node 0 is the root
  std::vector<int32_t> columns = {kNone};           // of the gram that ends at a node
  int64_t width = 0;                                // of a row of results

  static uint64_t Edge(int32_t node, int32_t token) {
    return static_cast<uint64_t>(static_cast<uint32_t>(node)) << 32 | static_cast<uint32_t>(token);
  }
  int32_t Token(int64_t item) const { return Find(numbers, item); }
  int32_t Token(int32_t item) const { return Find(numbers, int64_t{item}); }
  int32_t Token(const std::string& item) const { return Find(words, item); }
  int32_t Child(int32_t node, int32_t token) const { return Find(children, Edge(node, token)); }

 private:
  template <typename Map, typename Key>
  static int32_t Find(const Map& map, const Key& key) {
    auto it = map.find(key);
    return it == map.end() ? kNone : it->second;
  }
};

// Puts one gram of the pool into the trie; false if it is there already.
bool Insert(absl::Span<const int32_t> tokens, int32_t column, Pool* pool) {
  int32_t node = 0;
  for (const int32_t token : tokens) {
    const auto [it, is_new] = pool->children.try_emplace(
        Pool::Edge(node, token), static_cast<int32_t>(pool->columns.size()));
    if (is_new) pool->columns.push_back(kNone);
    node = it->second;
  }
  return std::exchange(pool->columns[node], column) == kNone;
}

template <typename Item>
std::vector<int32_t> Number(const std::vector<Item>& items,
                            absl::flat_hash_map<Item, int32_t>* tokens) {
  std::vector<int32_t> numbered;
  for (const Item& item : items) {
    numbered.push_back(
        tokens->try_emplace(item, static_cast<int32_t>(tokens->size())).first->second);
  }
  return numbered;
}

// ngram_counts[n - 1] is where the grams of n items begin.
absl::Status FillTrie(const Node& node, const std::vector<int32_t>& tokens, Pool* pool) {
  const std::vector<int64_t> begins = node.Ints("ngram_counts"),
                             columns = node.Ints("ngram_indexes");
  const int64_t least = node.Int("min_gram_length", 1), most = node.Int("max_gram_length", 1);
  const int64_t size = static_cast<int64_t>(tokens.size());
  size_t gram = 0;
  for (size_t i = 0; i < begins.size(); ++i) {
    const int64_t length = static_cast<int64_t>(i) + 1;
    const int64_t begin = begins[i], end = i + 1 < begins.size() ? begins[i + 1] : size;
    if (begin < 0 || begin > end || end > size || (end - begin) % length != 0) {
      return NodeError(node, absl::StrCat("ngram_counts has grams of ", length, " items from ",
                                          begin, " to ", end, " in a pool of ", size));
    }
    for (int64_t at = begin; at < end; at += length, ++gram) {
      if (gram >= columns.size()) {
        return NodeError(node, absl::StrCat("the pool has more grams than the ", columns.size(),
                                            " entries of ngram_indexes"));
      }
      if (length < least || length > most) continue;
      if (!Insert(absl::MakeConstSpan(tokens).subspan(at, length),
                  static_cast<int32_t>(columns[gram]), pool)) {
        return NodeError(node, absl::StrCat("the pool has a gram of ", length, " items twice"));
      }
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<const Pool>> PoolOf(const Node& node, DType items) {
  auto pool = std::make_shared<Pool>();
  const bool text = items == DType::kString;
  if (node.Has(text ? "pool_int64s" : "pool_strings") ||
      !node.Has(text ? "pool_strings" : "pool_int64s")) {
    return NodeError(node,
                     absl::StrCat("an input of ", DTypeName(items), " needs ",
                                  text ? "pool_strings" : "pool_int64s", " and no other pool"));
  }
  const std::vector<int32_t> tokens = text ? Number(node.Strings("pool_strings"), &pool->words)
                                           : Number(node.Ints("pool_int64s"), &pool->numbers);
  const std::vector<int64_t> columns = node.Ints("ngram_indexes");
  if (columns.empty()) return NodeError(node, "ngram_indexes is empty");
  pool->width = *std::max_element(columns.begin(), columns.end()) + 1;
  ONWARD_RETURN_IF_ERROR(FillTrie(node, tokens, pool.get()));
  return pool;
}

// What a gram adds to its column, or puts there.
struct Weighting {
  bool counts = true;          // IDF: it is there or not
  std::vector<float> weights;  // by column, as onnx's reference reads them; empty: 1

  void Add(int32_t column, float* row) const {
    const float weight = weights.empty() ? 1.0f : weights[column];
    row[column] = counts ? row[column] + weight : weight;
  }
};

struct Grams {
  int64_t least, most, skips;

  // Grams whose items lie 1, 2, ... apart; those of one item do not depend on it.
  void Count(const Pool& pool, absl::Span<const int32_t> tokens, const Weighting& weighting,
             float* row) const {
    const int64_t n = static_cast<int64_t>(tokens.size());
    for (int64_t apart = 1; apart <= skips + 1; ++apart) {
      const int64_t shortest = apart == 1 ? least : std::max<int64_t>(least, 2);
      if (shortest > most || (shortest - 1) > (n - 1) / apart) break;
      for (int64_t begin = 0; begin + (shortest - 1) * apart < n; ++begin) {
        int32_t node = 0;
        for (int64_t length = 1, at = begin; length <= most && at < n; ++length, at += apart) {
          node = tokens[at] == kNone ? kNone : pool.Child(node, tokens[at]);
          if (node == kNone) break;
          if (length >= shortest && pool.columns[node] != kNone) {
            weighting.Add(pool.columns[node], row);
          }
        }
      }
    }
  }
};

template <typename Item>
void CountRows(const Pool& pool, const Grams& grams, const Weighting& weighting,
               const Tensor& input, int64_t rows, int64_t length, float* output) {
  const Item* items = input.data<Item>();
  std::vector<int32_t> tokens(static_cast<size_t>(rows * length));
  const int64_t grain = std::max<int64_t>(1, kGramGrain / std::max<int64_t>(1, length));
  ParallelFor(rows, grain, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      float* row = output + r * pool.width;
      std::fill(row, row + pool.width, 0.0f);
      int32_t* own = tokens.data() + r * length;
      for (int64_t i = 0; i < length; ++i) own[i] = pool.Token(items[r * length + i]);
      grams.Count(pool, absl::MakeConstSpan(own, length), weighting, row);
    }
  });
}

absl::StatusOr<Weighting> WeightingOf(const Node& node, const Pool& pool) {
  const std::string mode = node.String("mode", "");
  Weighting weighting;
  weighting.counts = mode != "IDF";
  if (mode == "TF") return weighting;
  weighting.weights = FloatsOf(node, "weights");
  if (!weighting.weights.empty() && static_cast<int64_t>(weighting.weights.size()) < pool.width) {
    return NodeError(node, absl::StrCat("weights has ", weighting.weights.size(), " values for ",
                                        pool.width, " columns"));
  }
  return weighting;
}

absl::StatusOr<Kernel> MakeTfIdfVectorizer(const KernelRequest& request) {
  ONWARD_RETURN_IF_ERROR(CheckArity(request, 1));
  const Node& node = request.node;
  const DType items = request.inputs[0].dtype;
  if (items != DType::kInt32 && items != DType::kInt64 && items != DType::kString) {
    return NodeUnimplemented(node, absl::StrCat("no kernel for ", std::string(DTypeName(items))));
  }
  ONWARD_ASSIGN_OR_RETURN(std::shared_ptr<const Pool> pool, PoolOf(node, items));
  ONWARD_ASSIGN_OR_RETURN(Weighting weighting, WeightingOf(node, *pool));
  const Grams grams{node.Int("min_gram_length", 1), node.Int("max_gram_length", 1),
                    node.Int("max_skip_count", 0)};
  Kernel kernel;
  kernel.run = [slot = OutputSlot(request, 0), kept = KeepNode(node), pool, grams,
                weighting = std::move(weighting)](const KernelCall& call) -> absl::Status {
    const Tensor& input = *call.inputs[0];
    const Shape& shape = input.shape();
    if (shape.rank() < 1 || shape.rank() > 2) {
      return NodeError(*kept, absl::StrCat("takes [C] or [N, C], got shape ", shape.ToString()));
    }
    const int64_t rows = shape.rank() == 1 ? 1 : shape[0], length = shape[shape.rank() - 1];
    ONWARD_ASSIGN_OR_RETURN(
        Tensor * output,
        slot.Get(call, shape.rank() == 1 ? Shape{pool->width} : Shape{rows, pool->width}));
    float* out = output->data<float>();
    switch (input.dtype()) {
      case DType::kInt32:
        CountRows<int32_t>(*pool, grams, weighting, input, rows, length, out);
        break;
      case DType::kInt64:
        CountRows<int64_t>(*pool, grams, weighting, input, rows, length, out);
        break;
      default: CountRows<std::string>(*pool, grams, weighting, input, rows, length, out);
    }
    return absl::OkStatus();
  };
  return kernel;
}

}  // namespace

void RegisterTfIdfKernels(KernelTable& table) {
  table.Add("TfIdfVectorizer", {"reference", 1, MakeTfIdfVectorizer, "int32, int64, string"});
}

}  // namespace onward

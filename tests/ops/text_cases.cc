// SPDX-License-Identifier: Apache-2.0
#include "tests/ops/cases.h"

namespace onward {

std::vector<OpCase> TextCases() { return {}; }

std::vector<OpCase> TextForwardCases() {
  using List = std::vector<int64_t>;
  const Attributes grams = {{"max_gram_length", 2},
                            {"min_gram_length", 1},
                            {"max_skip_count", 1},
                            {"mode", "TF"},
                            {"ngram_counts", List{0, 3}},
                            {"ngram_indexes", List{0, 2, 1, 4, 3}},
                            {"pool_int64s", List{5, 6, 7, 5, 6, 7, 7}}};
  const auto with = [&](Attributes more) {
    for (const auto& [name, value] : grams) more.try_emplace(name, value);
    return more;
  };
  const std::vector<float> weights = {1.5f, 0.5f, 2.0f, 3.0f, 0.25f};
  const Arg rows = Fed({2, 6}, {5, 6, 5, 7, 7, 6, 1, 7, 5, 7, 6, 5});
  return {
      Case("StringConcat", {Real({2, 3}, 0, 20), Real({2, 3}, 0, 20)}),
      Case("StringConcat_broadcast", {Real({2, 1}, 0, 20), Real({3}, 0, 20)}),
      Case("StringSplit", {Real({2, 3}, 0, 100)}, {{"delimiter", "1"}})
          .Outputs(2, {0})
          .DataDependent(),
      Case("StringSplit_most", {Real({7}, 0, 4000)}, {{"delimiter", "1"}, {"maxsplit", 1}})
          .Outputs(2, {0})
          .DataDependent(),
      Case("StringNormalizer", {Real({9}, 0, 1)},
           {{"stopwords", std::vector<std::string>{"1", "2"}}, {"is_case_sensitive", 1}})
          .DataDependent(),
      Case("RegexFullMatch", {Real({9}, 0, 6)}, {{"pattern", "[0-9]"}}),
      Case("TfIdfVectorizer", {rows}, grams),
      Case("TfIdfVectorizer_vector", {Fed({5}, {5, 6, 7, 7, 5})}, grams),
      Case("TfIdfVectorizer_pairs", {rows}, with({{"min_gram_length", 2}})),
      Case("TfIdfVectorizer_idf", {rows}, with({{"mode", "IDF"}, {"weights", weights}})),
      Case("TfIdfVectorizer_tfidf", {rows}, with({{"mode", "TFIDF"}, {"weights", weights}})),
      Case("TfIdfVectorizer_narrow", {Fed({3}, {5, 6, 7}, DType::kInt32)}, grams),
  };
}

}  // namespace onward

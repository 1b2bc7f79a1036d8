// SPDX-License-Identifier: Apache-2.0
// Small data and models for tests of training runs.
#ifndef ONWARD_TESTS_SUPPORT_CLASSIFIED_H_
#define ONWARD_TESTS_SUPPORT_CLASSIFIED_H_

#include <string>
#include <vector>

namespace onward {

// A model of `features` inputs and `classes` scores, weights zero.
std::string LinearClassifier(int features, int classes);

// A table "x0,x1,...,label": example i is of class i % names.size(), and its feature of
// that number stands out. Classes in `left_out` have no rows.
std::string ClassifiedCsv(const std::vector<std::string>& names, int rows,
                          const std::vector<std::string>& left_out = {});

}  // namespace onward

#endif  // ONWARD_TESTS_SUPPORT_CLASSIFIED_H_

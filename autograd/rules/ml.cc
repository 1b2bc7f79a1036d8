// SPDX-License-Identifier: Apache-2.0
// Gradient rules: operators of ai.onnx.ml and on text. Linear models, support vector machines and
// what prepares features are differentiated through their bodies (autograd/functions/ml.cc).
#include "autograd/rule.h"
#include "core/graph/attribute_lists.h"

namespace onward {

void RegisterMlRules(RuleTable& table) {
  // Steps: constant wherever they are smooth.
  for (const char* op : {"TreeEnsemble", "TreeEnsembleRegressor", "TreeEnsembleClassifier",
                         "Binarizer", "OneHotEncoder", "LabelEncoder", "CategoryMapper"}) {
    table.AddZero(op, kMlDomain);
  }
  // They take no real numbers.
  for (const char* op :
       {"StringNormalizer", "StringConcat", "StringSplit", "RegexFullMatch", "TfIdfVectorizer"}) {
    table.AddZero(op);
  }
}

}  // namespace onward

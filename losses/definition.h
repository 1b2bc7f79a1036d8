// SPDX-License-Identifier: Apache-2.0
// The table behind loss.h: what each loss takes and how it is built. A new loss is a
// function that returns its LossDef, and a line in loss.cc.
#ifndef ONWARD_LOSSES_DEFINITION_H_
#define ONWARD_LOSSES_DEFINITION_H_

#include <string>
#include <vector>

#include "core/base/spec.h"
#include "losses/loss.h"

namespace onward {

struct WordOption {
  std::string name;
  std::vector<std::string> words;  // the first is the default
};

struct LossDef {
  std::string name;
  bool classes = false;  // int64 labels without the class axis
  std::vector<NumberOption> numbers = {};
  std::vector<WordOption> words = {};
  // Options are valid and the label fits when this is called.
  Expr (*build)(GraphBuilder& b, const LossSpec& spec, const Expr& output, const Expr& label);
};

LossDef CrossEntropyLoss();
LossDef NllLoss();
LossDef BceLoss();
LossDef MseLoss();
LossDef L1Loss();
LossDef HuberLoss();

// An option of a checked spec, or its default.
double NumberOf(const LossSpec& spec, const std::string& option, double otherwise);
std::string WordOf(const LossSpec& spec, const std::string& option, const std::string& otherwise);

// The mean over all elements, a scalar.
Expr MeanOfAll(const Expr& x);
// log(max(p, t)), where t is so small that 1/t is still finite: a probability that
// rounded to zero costs a lot, but not infinitely much.
Expr ClampedLog(const Expr& p);

}  // namespace onward

#endif  // ONWARD_LOSSES_DEFINITION_H_

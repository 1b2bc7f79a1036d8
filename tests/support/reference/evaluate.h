// SPDX-License-Identifier: Apache-2.0
// Operators by definition: plain loops at logical indices, written from the standard's text
// and sharing nothing with the kernels. Onward's functions are their bodies, evaluated node
// by node.
#ifndef ONWARD_TESTS_SUPPORT_REFERENCE_EVALUATE_H_
#define ONWARD_TESTS_SUPPORT_REFERENCE_EVALUATE_H_

#include <map>
#include <string>

#include "core/graph/graph.h"
#include "tests/support/reference/array.h"

namespace onward::reference {

struct Call {
  const Node& node;
  const Arrays& in;
  int outputs;

  bool Has(size_t i) const { return i < in.size() && in[i].present(); }
};

using Function = Arrays (*)(const Call& call);
using Table = std::map<std::string, Function>;

const Table& ElementwiseTable();
const Table& ReduceTable();
const Table& MovementTable();
const Table& IndexTable();
const Table& MatMulTable();
const Table& WindowTable();  // convolutions and pools
const Table& NormTable();
const Table& LossTable();
const Table& RnnTable();
const Table& AttentionTable();
const Table& QuantizeTable();
const Table& ImageTable();
const Table& SamplingTable();  // pictures read between their pixels
const Table& SignalTable();
const Table& TextTable();
const Table& MlTable();

// One array per output of the node. Throws NotDefined, and std::runtime_error where there is
// no reference.
Arrays Evaluate(const Node& node, const Arrays& inputs);

}  // namespace onward::reference

#endif  // ONWARD_TESTS_SUPPORT_REFERENCE_EVALUATE_H_

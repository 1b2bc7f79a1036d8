// SPDX-License-Identifier: Apache-2.0
// The equation of an Einsum, read, and what it says of the result.
#ifndef ONWARD_CORE_GRAPH_EINSUM_EQUATION_H_
#define ONWARD_CORE_GRAPH_EINSUM_EQUATION_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/tensor/value_type.h"

namespace onward {

// In a term every letter is an axis, and kEllipsis stands for the axes of "...".
inline constexpr char kEllipsis = '.';

struct EinsumEquation {
  std::vector<std::string> inputs;
  std::string output;  // that of an implicit equation too

  std::string ToString() const;
};

absl::StatusOr<EinsumEquation> ParseEinsum(std::string_view text);

// The type of the result, as far as those of the operands tell it. The axes of ellipses are
// broadcast against each other from the right, however many each operand has.
absl::StatusOr<ValueType> EinsumType(const EinsumEquation& equation,
                                     absl::Span<const ValueType> operands);

// The axis that position `at` of a term is, negative from the end behind an ellipsis.
int64_t AxisOfTerm(std::string_view term, size_t at);

}  // namespace onward

#endif  // ONWARD_CORE_GRAPH_EINSUM_EQUATION_H_

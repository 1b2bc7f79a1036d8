// SPDX-License-Identifier: Apache-2.0
// Files of weights that onward wrote beside a model (AtomicFile::CreateCompanion).
#ifndef ONWARD_CORE_ONNX_IO_COMPANIONS_H_
#define ONWARD_CORE_ONNX_IO_COMPANIONS_H_

#include <string>

namespace onward {

// Removes those of the model at `target` that neither it nor another model in the folder
// names: of saves before the last, and of saves that a killed process did not commit. Where
// one of the models cannot be read, nothing is removed.
void RemoveUnusedCompanions(const std::string& target);

}  // namespace onward

#endif  // ONWARD_CORE_ONNX_IO_COMPANIONS_H_

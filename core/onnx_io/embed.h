// SPDX-License-Identifier: Apache-2.0
// Tensors that lie in files beside a model, taken into it. The entries of such a tensor
// speak of the folder the model was read from, so they may not be written elsewhere.
#ifndef ONWARD_CORE_ONNX_IO_EMBED_H_
#define ONWARD_CORE_ONNX_IO_EMBED_H_

#include <set>
#include <string>

#include "absl/status/status.h"
#include "core/onnx_io/model.h"

namespace onward {

// Whether a tensor anywhere in the model (initializers, attributes, bodies, functions,
// training graphs) has its data outside.
bool HasExternalData(const Model& model);

// The files beside the model that such tensors name, each once.
std::set<std::string> ExternalFiles(const Model& model);

// Afterwards none has.
absl::Status EmbedExternalData(Model* model);

}  // namespace onward

#endif  // ONWARD_CORE_ONNX_IO_EMBED_H_

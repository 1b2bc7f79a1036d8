// SPDX-License-Identifier: Apache-2.0
// The releases of ONNX: which IR version came with which operator sets, and with what a file
// may hold.
#ifndef ONWARD_CORE_ONNX_IO_RELEASES_H_
#define ONWARD_CORE_ONNX_IO_RELEASES_H_

#include <string>
#include <vector>

#include "core/graph/verify.h"
#include "core/onnx_io/model.h"

namespace onward {

// The IR version of the first release that has this version of a standard domain ("",
// ai.onnx.ml, ai.onnx.preview.training); 0 for domains and versions that no release has.
int FirstIrVersion(const std::string& domain, int version);

// What the file holds that its IR version does not know ("ir-version"), and operator sets that
// no release has or that are used and not imported ("opset-version").
std::vector<Finding> CheckReleases(const Model& model);

// The lowest IR version that knows all of it.
int NeededIrVersion(const Model& model);

// A domain that is used where it is not imported: one of functions by graphs of the model (what
// operators they lack is CheckGraph's to tell), or any by a function.
struct MissingImport {
  int function = -1;  // of the file; -1: the model
  std::string domain;
};
std::vector<MissingImport> MissingImports(const Model& model);

}  // namespace onward

#endif  // ONWARD_CORE_ONNX_IO_RELEASES_H_

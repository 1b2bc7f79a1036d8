// SPDX-License-Identifier: Apache-2.0
#include "core/onnx_io/releases.h"

#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "core/onnx_io/hold.h"
#include "core/onnx_io/proto.h"
#include "onnx/onnx_pb.h"

namespace onward {
namespace {

struct Release {
  int ir, standard, learning;  // versions of ai.onnx and ai.onnx.ml
};

// onnx 1.0 to 1.23, where anything changed.
constexpr Release kReleases[] = {
    {3, 8, 1},  {4, 9, 1},  {5, 10, 1},  {6, 11, 2},  {7, 14, 2},  {8, 15, 2},  {8, 18, 3},
    {9, 19, 3}, {9, 20, 4}, {10, 22, 5}, {11, 23, 5}, {12, 24, 5}, {13, 27, 5}, {14, 28, 5},
};
constexpr int kTrainingIr = 7;
constexpr int kFunctionIr = 8;
constexpr int kSparseIr = 6;

// Element types that came after IR version 3.
int FirstIrOfType(int type) {
  using onnx::TensorProto;
  if (type == TensorProto::BFLOAT16) return 4;
  if (type >= TensorProto::FLOAT8E4M3FN && type <= TensorProto::FLOAT8E5M2FNUZ) return 9;
  if (type == TensorProto::UINT4 || type == TensorProto::INT4) return 10;
  if (type == TensorProto::FLOAT4E2M1) return 11;
  if (type == TensorProto::FLOAT8E8M0) return 12;
  if (type == TensorProto::UINT2 || type == TensorProto::INT2) return 13;
  return type == TensorProto::FLOAT6E2M3 || type == TensorProto::FLOAT6E3M2 ? 14 : 3;
}

// What needs which IR version, each thing once.
using Needs = std::map<std::string, int>;

Needs NeedsOf(const Model& model) {
  const onnx::ModelProto& proto = model.proto();
  Needs needs;
  for (const auto& [domain, version] : model.opsets()) {
    const int ir = FirstIrVersion(domain, version);
    if (ir > 0)
      needs[absl::StrCat("opset ", version, " of ", domain.empty() ? "ai.onnx" : domain)] = ir;
  }
  if (proto.training_info_size() > 0) needs["training_info"] = kTrainingIr;
  for (const onnx::FunctionProto& function : proto.functions()) {
    needs["functions"] = kFunctionIr;
    if (function.attribute_proto_size() > 0) needs["functions' attributes with defaults"] = 9;
    if (!function.overload().empty()) needs["overloaded functions"] = 10;
  }
  bool sparse = proto.graph().sparse_initializer_size() > 0;
  for (const onnx::TrainingInfoProto& info : proto.training_info())
    sparse = sparse || info.algorithm().sparse_initializer_size() > 0;
  if (sparse) needs["sparse_initializer"] = kSparseIr;
  ForEachTensor(proto, [&](const onnx::TensorProto& tensor) {
    const int ir = FirstIrOfType(tensor.data_type());
    if (ir > 3) needs[absl::StrCat("tensors of element type ", tensor.data_type())] = ir;
    return true;
  });
  return needs;
}

using Nodes = google::protobuf::RepeatedPtrField<onnx::NodeProto>;

// Those of nodes, in bodies too.
void AddDomains(const Nodes& nodes, std::set<std::string>* domains) {
  for (const onnx::NodeProto& node : nodes) {
    domains->insert(CanonicalDomain(node.domain()));
    for (const onnx::AttributeProto& attribute : node.attribute()) {
      AddDomains(attribute.g().node(), domains);
      for (const onnx::GraphProto& body : attribute.graphs()) AddDomains(body.node(), domains);
    }
  }
}

std::string PlaceOf(const Model& model, int function) {
  if (function < 0) return "model";
  const onnx::FunctionProto& f = model.proto().functions(function);
  return absl::StrCat("function ", f.domain(), ".", f.name());
}

}  // namespace

std::vector<MissingImport> MissingImports(const Model& model) {
  const onnx::ModelProto& proto = model.proto();
  std::vector<MissingImport> missing;
  std::set<std::string> used, own;
  AddDomains(proto.graph().node(), &used);
  for (const onnx::TrainingInfoProto& info : proto.training_info()) {
    AddDomains(info.algorithm().node(), &used);
    AddDomains(info.initialization().node(), &used);
  }
  for (const onnx::FunctionProto& f : proto.functions()) own.insert(CanonicalDomain(f.domain()));
  const std::map<std::string, int> imported = model.opsets();
  for (const std::string& domain : used) {
    if (own.contains(domain) && !imported.contains(domain)) missing.push_back({-1, domain});
  }
  for (int i = 0; i < proto.functions_size(); ++i) {
    const onnx::FunctionProto& function = proto.functions(i);
    std::set<std::string> domains;
    AddDomains(function.node(), &domains);
    for (const auto& import : function.opset_import())
      domains.erase(CanonicalDomain(import.domain()));
    for (const std::string& domain : domains) missing.push_back({i, domain});
  }
  return missing;
}

int FirstIrVersion(const std::string& domain, int version) {
  if (domain == kTrainingDomain) return version == 1 ? kTrainingIr : 0;
  if (version < 1 || (!domain.empty() && domain != "ai.onnx.ml")) return 0;
  for (const Release& release : kReleases) {
    if (version <= (domain.empty() ? release.standard : release.learning)) return release.ir;
  }
  return 0;
}

std::vector<Finding> CheckReleases(const Model& model) {
  std::vector<Finding> findings;
  const auto place = [] { return std::string("model"); };
  for (const auto& [what, ir] : NeedsOf(model)) {
    if (model.ir_version() >= ir) continue;
    AddFinding(
        "ir-version", place,
        absl::StrCat(what, " came with IR version ", ir, ", the file says ", model.ir_version()),
        "raise ir_version (onward check --fix -o OUT does)", &findings);
  }
  for (const auto& [domain, version] : model.opsets()) {
    const bool standard = domain.empty() || domain == "ai.onnx.ml" || domain == kTrainingDomain;
    if (!standard || FirstIrVersion(domain, version) > 0) continue;
    AddFinding(
        "opset-version", place,
        absl::StrCat("imports version ", version, " of ", domain, ", which no release of ONNX has"),
        "import a version that exists", &findings);
  }
  for (const MissingImport& missing : MissingImports(model)) {
    AddFinding(
        "opset-version", [&] { return PlaceOf(model, missing.function); },
        absl::StrCat("uses '", missing.domain.empty() ? "ai.onnx" : missing.domain,
                     "', which its opset_import does not name"),
        "add it to opset_import (onward check --fix -o OUT does)", &findings);
  }
  return findings;
}

int NeededIrVersion(const Model& model) {
  int needed = kOldestIrVersion;
  for (const auto& [what, ir] : NeedsOf(model)) needed = std::max(needed, ir);
  return needed;
}

}  // namespace onward

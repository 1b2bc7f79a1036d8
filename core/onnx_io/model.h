// SPDX-License-Identifier: Apache-2.0
// A model file in memory. The protobuf message stays as it was read, because
// export edits it and nothing else; Graphs are made from it on demand. Large tensors
// are not in the message but beside it (weights.h).
#ifndef ONWARD_CORE_ONNX_IO_MODEL_H_
#define ONWARD_CORE_ONNX_IO_MODEL_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/graph/graph.h"
#include "core/graph/verify.h"
#include "core/onnx_io/weights.h"

namespace onnx {
class ModelProto;
class GraphProto;
}  // namespace onnx

namespace onward {

inline constexpr int kOldestIrVersion = 3;
inline constexpr int kNewestIrVersion = 14;

// Copies share their contents until one of them is changed. Weights they share even then, and
// so do graphs that are read from it: a large model is in memory once.
class Model {
 public:
  Model();
  Model(const Model&);
  Model(Model&&) noexcept;
  Model& operator=(const Model&);
  Model& operator=(Model&&) noexcept;
  ~Model();

  // Tensors from kHeldBytes on may be weights: proto.h reads and writes them.
  const onnx::ModelProto& proto() const;
  const Weights& weights() const;
  // To change them: afterwards this model shares its message with nobody.
  onnx::ModelProto& proto();
  Weights& weights();
  // Where the file is ("" if it never was one); external data lies beside it.
  const std::string& path() const { return path_; }
  void set_path(std::string path) { path_ = std::move(path); }
  std::string folder() const;

  int ir_version() const;
  void set_ir_version(int version);
  std::map<std::string, int> opsets() const;
  bool has_training() const;
  // Whether training_info is damaged so that it cannot be parsed. The model is without it then:
  // inference does not need it.
  bool training_damaged() const { return training_damaged_; }
  void set_training_damaged(bool damaged) { training_damaged_ = damaged; }
  // Free-form metadata (ModelProto.metadata_props).
  std::string Metadata(const std::string& key) const;                  // "" if absent
  void SetMetadata(const std::string& key, const std::string& value);  // "" removes it

 private:
  struct Contents;
  Contents& Own();

  std::shared_ptr<Contents> contents_;
  std::string path_;
  bool training_damaged_ = false;
};

// Parses a file: regular file, at most 2 GiB, sane counts, supported versions. Data in files
// beside it is mapped, not read (WeightFile says what that asks of them); where it cannot be
// had, whoever makes a graph of the model is told.
absl::StatusOr<Model> ReadModel(const std::string& path);
absl::StatusOr<Model> ParseModel(const std::string& bytes, const std::string& path);

// The inference graph at the model's own opset, functions kept in
// Graph.functions, external data loaded, nodes sorted. Not yet checked.
absl::StatusOr<Graph> InferenceGraph(const Model& model);
// One of the model's other graphs (training_info), read the same way.
absl::StatusOr<Graph> OtherGraph(const Model& model, const onnx::GraphProto& proto);

// Every broken rule: names, unknown operators, wrong attributes or counts.
// `graph` has its functions inlined.
std::vector<Finding> CheckGraph(const Graph& graph);

// The same graph in the operator forms of opset `target`. Names stay.
absl::StatusOr<Graph> RaiseOpset(const Graph& graph, int target);

// InferenceGraph -> functions inlined -> checked -> raised to kCanonicalOpset.
absl::StatusOr<Graph> CanonicalGraph(const Model& model);
// The last three steps of it.
absl::StatusOr<Graph> Canonicalize(const Graph& graph);

// A new model holding `graph` (its functions included).
Model ModelFromGraph(const Graph& graph, int ir_version, const std::string& producer);

struct WriteOptions {
  bool external_data = false;  // weights go to a file beside the model although one would do
};

// Writes whole or not at all (see atomic_file.h): one file or, past 2 GiB and where asked for,
// two. Then the weights are in NAME.data-XXXXXXXX, a new name each time, written first, and
// replacing the model commits both. Such files that no model beside them names any more are
// removed.
absl::Status WriteModel(const Model& model, const std::string& path,
                        const WriteOptions& options = {});
// What one file of it holds.
absl::StatusOr<std::string> SerializeModel(const Model& model);

}  // namespace onward

#endif  // ONWARD_CORE_ONNX_IO_MODEL_H_

// SPDX-License-Identifier: Apache-2.0
// Models to files.
#include <sys/stat.h>

#include <cstring>
#include <functional>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/atomic_file.h"
#include "core/base/status.h"
#include "core/onnx_io/companions.h"
#include "core/onnx_io/hold.h"
#include "core/onnx_io/model.h"
#include "core/onnx_io/model_bytes.h"
#include "core/onnx_io/proto.h"
#include "core/onnx_io/wire_scan.h"

namespace onward {
namespace {

// Where tensors begin in a file of weights: large ones at a page, so that readers can map them.
constexpr size_t kPage = 4096;
constexpr int64_t kLine = 64;
constexpr size_t kWriteChunk = size_t{1} << 20;

absl::StatusOr<std::string> Message(const onnx::ModelProto& proto) {
  if (const size_t size = proto.ByteSizeLong(); size > static_cast<size_t>(kMostModelBytes)) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "the model needs ", size, " bytes beside its weights; one .onnx file holds at most 2 GiB"));
  }
  std::string bytes;
  if (!proto.SerializeToString(&bytes))
    return absl::InternalError("the model cannot be serialized");
  return bytes;
}

// What a file holds, in pieces that stay where they are.
class Serialized {
 public:
  // The message, with its weights as raw_data where they belong.
  static absl::StatusOr<Serialized> OneFile(const Model& model) {
    Serialized out;
    ONWARD_ASSIGN_OR_RETURN(out.message_, Message(model.proto()));
    ModelBytes bytes{absl::string_view(out.message_)};
    absl::Status status;
    ONWARD_ASSIGN_OR_RETURN(
        out.splices_, ScanModel(&bytes, [&](const WireField& field, std::vector<Splice>* edits) {
          if (field.number != kExternalData || !status.ok()) return;
          onnx::TensorProto tensor;
          tensor.ParseFromArray(out.message_.data() + field.begin,
                                static_cast<int>(field.end - field.begin));
          const std::optional<int64_t> number = HeldNumber(tensor);
          if (!number.has_value()) return;
          const Weights::Bytes* held = model.weights().Find(*number);
          if (held == nullptr) {
            status = absl::InternalError("a weight is not where the model says");
            return;
          }
          const std::string head = Varint(kRawData << 3 | 2) + Varint(held->size);
          edits->push_back({field.behind_raw, field.behind_raw, head, {held->data, held->size}});
          edits->push_back({field.begin, field.end});
        }));
    ONWARD_RETURN_IF_ERROR(status);
    return out;
  }

  int64_t size() const {
    int64_t size = static_cast<int64_t>(message_.size());
    for (const Splice& s : splices_) size += s.growth();
    return size;
  }

  template <typename Sink>
  absl::Status WriteTo(const Sink& write) const {
    size_t at = 0;
    const absl::string_view message = message_;
    for (const Splice& s : splices_) {
      ONWARD_RETURN_IF_ERROR(write(message.substr(at, s.begin - at)));
      ONWARD_RETURN_IF_ERROR(write(s.with));
      ONWARD_RETURN_IF_ERROR(write(s.payload));
      at = s.end;
    }
    return write(message.substr(at));
  }

 private:
  std::string message_;
  std::vector<Splice> splices_;
};

bool AllZero(absl::string_view bytes) {
  return bytes.empty() ||
         (bytes[0] == 0 && std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0);
}

// Writes without keeping mapped weights in memory for it.
class Output {
 public:
  Output(const Model& model, AtomicFile* file)
      : file_(file), release_(model.weights().PageReleaser()) {}

  // `sparse`: chunks of zeros, as new optimizer state has them, become holes.
  absl::Status Write(absl::string_view bytes, bool sparse) {
    while (!bytes.empty()) {
      const absl::string_view chunk = bytes.substr(0, kWriteChunk);
      ONWARD_RETURN_IF_ERROR(sparse && AllZero(chunk)
                                 ? file_->WriteZeros(static_cast<int64_t>(chunk.size()))
                                 : file_->Write(chunk));
      if (release_) release_(chunk.data(), chunk.size());
      bytes.remove_prefix(chunk.size());
    }
    return absl::OkStatus();
  }

 private:
  AtomicFile* file_;
  std::function<void(const void*, size_t)> release_;
};

// The message for a model whose weights lie in `data`, which gets them.
absl::StatusOr<onnx::ModelProto> MoveOut(const Model& model, AtomicFile* data) {
  onnx::ModelProto message = model.proto();
  Output output(model, data);
  std::map<const char*, int64_t> written;  // several tensors may have the same bytes
  absl::Status status;
  ForEachTensor(&message, [&](onnx::TensorProto* tensor) {
    const std::optional<int64_t> number = HeldNumber(*tensor);
    if (!number.has_value()) return true;
    const Weights::Bytes* held = model.weights().Find(*number);
    if (held == nullptr) {
      status = absl::InternalError("a weight is not where the model says");
      return false;
    }
    auto [at, is_new] = written.emplace(held->data, 0);
    if (is_new) {
      const int64_t align = held->size < kPage ? kLine : int64_t{kPage};
      status.Update(data->WriteZeros((align - data->size() % align) % align));
      at->second = data->size();
      status.Update(output.Write({held->data, held->size}, /*sparse=*/true));
    }
    tensor->clear_external_data();
    tensor->set_data_location(onnx::TensorProto::EXTERNAL);
    for (const auto& [key, value] :
         {std::pair("location", data->name()), std::pair("offset", absl::StrCat(at->second)),
          std::pair("length", absl::StrCat(held->size))}) {
      auto* entry = tensor->add_external_data();
      entry->set_key(key);
      entry->set_value(value);
    }
    return status.ok();
  });
  ONWARD_RETURN_IF_ERROR(status);
  return message;
}

absl::Status WriteTwoFiles(Model model, const std::string& path) {
  ONWARD_RETURN_IF_ERROR(HoldLargeTensors(&model));
  ONWARD_ASSIGN_OR_RETURN(AtomicFile data, AtomicFile::CreateCompanion(path));
  ONWARD_ASSIGN_OR_RETURN(const onnx::ModelProto message, MoveOut(model, &data));
  ONWARD_ASSIGN_OR_RETURN(const std::string bytes, Message(message));
  ONWARD_RETURN_IF_ERROR(data.Flush());
  ONWARD_RETURN_IF_ERROR(WriteFileAtomically(path, bytes));
  if (data.size() > 0) data.Keep();
  return absl::OkStatus();
}

// What the model is read from must be there, whole, and not be what is written.
absl::Status CheckSources(const Model& model, const std::string& target) {
  struct stat info;
  const bool exists = stat(target.c_str(), &info) == 0;
  for (const auto& [file, mapped] : model.weights().Files()) {
    if (exists && file->Is(info.st_dev, info.st_ino)) {
      return absl::InvalidArgumentError(absl::StrCat("will not write '", target,
                                                     "': it holds weights of '", model.path(),
                                                     "'; choose another name"));
    }
    if (!mapped) continue;
    ONWARD_RETURN_IF_ERROR(
        Annotate(file->StillWhole(), absl::StrCat("'", model.path(), "' cannot be written anew")));
  }
  return absl::OkStatus();
}

absl::Status WriteOneFile(const Model& model, const Serialized& serialized,
                          const std::string& path) {
  ONWARD_ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::Create(path));
  Output output(model, &file);
  ONWARD_RETURN_IF_ERROR(serialized.WriteTo(
      [&](absl::string_view bytes) { return output.Write(bytes, /*sparse=*/false); }));
  return file.Commit();
}

}  // namespace

absl::Status WriteModel(const Model& model, const std::string& path, const WriteOptions& options) {
  Model whole = model;
  ONWARD_RETURN_IF_ERROR(Annotate(HoldExternalData(&whole), absl::StrCat("'", model.path(), "'")));
  ONWARD_ASSIGN_OR_RETURN(const std::string target, WriteTarget(path));
  ONWARD_RETURN_IF_ERROR(CheckSources(whole, target));
  RemoveUnusedCompanions(target);
  ONWARD_ASSIGN_OR_RETURN(const Serialized serialized, Serialized::OneFile(whole));
  ONWARD_RETURN_IF_ERROR(options.external_data || serialized.size() > kMostModelBytes
                             ? WriteTwoFiles(std::move(whole), path)
                             : WriteOneFile(whole, serialized, path));
  RemoveUnusedCompanions(target);
  return absl::OkStatus();
}

absl::StatusOr<std::string> SerializeModel(const Model& model) {
  ONWARD_ASSIGN_OR_RETURN(const Serialized serialized, Serialized::OneFile(model));
  std::string bytes;
  ONWARD_RETURN_IF_ERROR(serialized.WriteTo([&](absl::string_view part) {
    bytes.append(part.data(), part.size());
    return absl::OkStatus();
  }));
  return bytes;
}

}  // namespace onward

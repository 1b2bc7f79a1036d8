// SPDX-License-Identifier: Apache-2.0
#include "core/cuda/staging.h"

#include <algorithm>
#include <cstring>

#include "core/base/status.h"
#include "core/cuda/call.h"

namespace onward::cuda {
namespace {

constexpr size_t kPieceBytes = size_t{1} << 20;
constexpr size_t kMaxPieces = 4;
constexpr size_t kAlignment = 256;

size_t Aligned(size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

}  // namespace

Staging::~Staging() {
  for (Piece& piece : pieces_) Free(piece);
}

void Staging::Free(Piece& piece) {
  cudaEventDestroy(piece.done);
  cudaFreeHost(piece.memory);
}

absl::Status Staging::AddPiece() {
  Piece piece;
  void* memory = nullptr;
  ONWARD_RETURN_IF_ERROR(
      StatusOf(cudaMallocHost(&memory, kPieceBytes), "cannot get pinned memory for copies"));
  piece.memory = static_cast<char*>(memory);
  const cudaError_t made = cudaEventCreateWithFlags(&piece.done, cudaEventDisableTiming);
  if (made != cudaSuccess) {
    cudaFreeHost(memory);
    return StatusOf(made, "cannot make an event");
  }
  pieces_.push_back(std::move(piece));
  return absl::OkStatus();
}

void Staging::HandOut(Piece& piece) {
  for (const Arrival& a : piece.arrivals) std::memcpy(a.host, a.memory, a.bytes);
  piece.arrivals.clear();
  piece.used = 0;
}

absl::Status Staging::BeginNextPiece() {
  ONWARD_RETURN_IF_ERROR(
      StatusOf(cudaEventRecord(pieces_[current_].done, stream_), "cannot record an event"));
  if (current_ + 1 == pieces_.size() && pieces_.size() < kMaxPieces) {
    ONWARD_RETURN_IF_ERROR(AddPiece());
    current_ = pieces_.size() - 1;
    return absl::OkStatus();
  }
  current_ = (current_ + 1) % pieces_.size();
  Piece& piece = pieces_[current_];
  ONWARD_RETURN_IF_ERROR(StatusOf(cudaEventSynchronize(piece.done), "cannot wait for copies"));
  HandOut(piece);
  return absl::OkStatus();
}

absl::StatusOr<char*> Staging::Reserve(size_t bytes) {
  if (pieces_.empty()) ONWARD_RETURN_IF_ERROR(AddPiece());
  if (pieces_[current_].used + bytes > kPieceBytes) ONWARD_RETURN_IF_ERROR(BeginNextPiece());
  Piece& piece = pieces_[current_];
  char* const memory = piece.memory + piece.used;
  piece.used += Aligned(bytes);
  return memory;
}

absl::Status Staging::CopyIn(void* to, const void* host, size_t bytes) {
  for (size_t at = 0; at < bytes;) {
    const size_t n = std::min(bytes - at, kPieceBytes);
    ONWARD_ASSIGN_OR_RETURN(char* const memory, Reserve(n));
    std::memcpy(memory, static_cast<const char*>(host) + at, n);
    ONWARD_RETURN_IF_ERROR(StatusOf(
        cudaMemcpyAsync(static_cast<char*>(to) + at, memory, n, cudaMemcpyHostToDevice, stream_),
        "cannot copy to the GPU"));
    at += n;
  }
  return absl::OkStatus();
}

absl::Status Staging::CopyOut(void* host, const void* from, size_t bytes) {
  for (size_t at = 0; at < bytes;) {
    const size_t n = std::min(bytes - at, kPieceBytes);
    ONWARD_ASSIGN_OR_RETURN(char* const memory, Reserve(n));
    ONWARD_RETURN_IF_ERROR(StatusOf(cudaMemcpyAsync(memory, static_cast<const char*>(from) + at, n,
                                                    cudaMemcpyDeviceToHost, stream_),
                                    "cannot copy from the GPU"));
    pieces_[current_].arrivals.push_back({static_cast<char*>(host) + at, memory, n});
    at += n;
  }
  return absl::OkStatus();
}

void Staging::Finish() {
  for (Piece& piece : pieces_) HandOut(piece);
  current_ = 0;
}

void Staging::Drop() {
  for (Piece& piece : pieces_) piece.arrivals.clear();
}

}  // namespace onward::cuda

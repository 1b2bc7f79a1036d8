// SPDX-License-Identifier: Apache-2.0
// Pinned host memory, handed out in turn: copies through it do not make the host wait, and leave
// the host's own bytes free at once.
#ifndef ONWARD_CORE_CUDA_STAGING_H_
#define ONWARD_CORE_CUDA_STAGING_H_

#include <cuda_runtime_api.h>

#include <cstddef>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace onward::cuda {

class Staging {
 public:
  explicit Staging(cudaStream_t stream) : stream_(stream) {}
  ~Staging();
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  absl::Status CopyIn(void* to, const void* host, size_t bytes);
  // The bytes are at `host` after Finish(), perhaps before.
  absl::Status CopyOut(void* host, const void* from, size_t bytes);
  // The stream has done all its work: hands out what has arrived, all is free again.
  void Finish();
  // The stream has failed: nothing will arrive.
  void Drop();

 private:
  struct Arrival {
    void* host;
    const void* memory;
    size_t bytes;
  };
  struct Piece {
    char* memory = nullptr;
    cudaEvent_t done = nullptr;  // recorded when the next piece is begun
    size_t used = 0;
    std::vector<Arrival> arrivals;
  };

  // Memory that no copy uses, at most kPieceBytes. Waits where all pieces are in use.
  absl::StatusOr<char*> Reserve(size_t bytes);
  absl::Status BeginNextPiece();
  absl::Status AddPiece();
  static void HandOut(Piece& piece);
  static void Free(Piece& piece);

  cudaStream_t stream_;
  std::vector<Piece> pieces_;
  size_t current_ = 0;
};

}  // namespace onward::cuda

#endif  // ONWARD_CORE_CUDA_STAGING_H_

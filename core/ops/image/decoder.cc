// SPDX-License-Identifier: Apache-2.0
// ImageDecoder.
#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "core/ops/image/image.h"
#include "core/ops/movement/movement.h"
#include "core/picture/picture.h"

namespace onward {
namespace {

absl::StatusOr<Kernel> MakeImageDecoder(const KernelRequest& request) {
  ONWARD_RETURN_IF_ERROR(CheckArity(request, 1));
  if (request.inputs[0].dtype != DType::kUint8) {
    return NodeError(request.node, "the encoded picture must be bytes (uint8)");
  }
  const std::string format = request.node.String("pixel_format", "RGB");
  if (format != "RGB" && format != "BGR" && format != "Grayscale") {
    return NodeError(request.node, absl::StrCat("unknown pixel_format ", format));
  }
  Kernel kernel;
  kernel.run = [format, what = request.node.Describe(),
                slot = OutputSlot(request, 0)](const KernelCall& call) -> absl::Status {
    const Tensor& encoded = *call.inputs[0];
    const absl::string_view bytes(encoded.data<char>(), static_cast<size_t>(encoded.elements()));
    ONWARD_ASSIGN_OR_RETURN(Picture picture, DecodeAnyPicture(bytes, what));
    picture = ToChannels(picture, format == "Grayscale" ? 1 : 3);
    if (format == "BGR") {
      for (size_t i = 0; i < picture.pixels.size(); i += 3) {
        std::swap(picture.pixels[i], picture.pixels[i + 2]);
      }
    }
    const auto [height, width, channels] = picture.info;
    ONWARD_ASSIGN_OR_RETURN(Tensor * output, slot.Get(call, Shape{height, width, channels}));
    std::copy(picture.pixels.begin(), picture.pixels.end(), output->data<uint8_t>());
    return absl::OkStatus();
  };
  return kernel;
}

}  // namespace

void RegisterDecoderKernels(KernelTable& table) {
  table.Add("ImageDecoder", {"reference", 20, MakeImageDecoder, "uint8"});
}

}  // namespace onward

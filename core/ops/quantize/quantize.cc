// SPDX-License-Identifier: Apache-2.0
// Kernels for quantization: from and to small integers, and products in integer arithmetic.
#include "core/ops/quantize/quantize.h"

#include "core/ops/cpu/register.h"

namespace onward {

void RegisterQuantizeKernels(KernelTable& table) {
  table.Add("QuantizeLinear", {"reference", 10, MakeQuantizeLinear,
                               "float, float16, bfloat16, int32 to integers of 2 to 16 bits, "
                               "float8, float6, float4"});
  table.Add("DequantizeLinear", {"reference", 10, MakeDequantizeLinear,
                                 "integers of 2 to 16 bits, int32, float8, float6, float4 to "
                                 "float, float16, bfloat16"});
  table.Add("DynamicQuantizeLinear", {"reference", 11, MakeDynamicQuantizeLinear, "float"});
  table.Add("MatMulInteger", {"reference", 10, MakeMatMulInteger, "int8, uint8"});
  table.Add("QLinearMatMul", {"reference", 10, MakeQLinearMatMul, "int8, uint8, float8"});
  table.Add("ConvInteger", {"reference", 10, MakeConvInteger, "int8, uint8"});
  table.Add("QLinearConv", {"reference", 10, MakeQLinearConv, "int8, uint8"});
}

}  // namespace onward

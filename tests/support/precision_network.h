// SPDX-License-Identifier: Apache-2.0
// A small network for tests of mixed precision.
#ifndef ONWARD_TESTS_SUPPORT_PRECISION_NETWORK_H_
#define ONWARD_TESTS_SUPPORT_PRECISION_NETWORK_H_

#include <string>

#include "core/onnx_io/model.h"
#include "training_info/author.h"
#include "training_info/step.h"

namespace onward {

// Convolution, normalisation, pooling and products, with this element type.
Model Convolutional(DType dtype);
// Batch number i, as x and label; `factor` makes its numbers large.
TensorMap ConvolutionalFeeds(int i, DType dtype = DType::kFloat, float factor = 1);

// AdamW in this precision.
AuthorOptions InPrecision(DType precision);
// Made trainable; the result is a file that `check` finds nothing in.
AuthorResult MadeSound(const Model& model, const AuthorOptions& options);

// The loss of a step that is expected to be done.
double LossOfStep(TrainingModel* model, const TensorMap& feeds);

}  // namespace onward

#endif  // ONWARD_TESTS_SUPPORT_PRECISION_NETWORK_H_

// SPDX-License-Identifier: Apache-2.0
// consumer MODEL OUT: a program of somebody who has nothing but the installed
// package. Trains three steps, writes the result, serves it.
#include <onward/onward.h>

#include <iostream>

namespace {

onward::Status Run(const std::string& in, const std::string& out) {
  const auto model = onward::Model::Read(in);
  if (!model.ok()) return model.status();
  auto training = onward::TrainingSession::Create(*model);
  if (!training.ok()) return training.status();
  const auto image = onward::Tensor::Zeros(onward::ElementType::kFloat, {2, 1, 28, 28});
  const auto label = onward::Tensor::From<int64_t>({2}, {3, 7});
  for (int i = 0; i < 3; ++i) {
    const auto outputs = training->Step({{"image", *image}, {"label", *label}}, {"loss"});
    if (!outputs.ok()) return outputs.status();
    std::cout << "loss " << *outputs->at("loss").data<float>() << "\n";
  }
  const auto trained = training->Inference();
  if (!trained.ok()) return trained.status();
  if (const onward::Status written = trained->Write(out); !written.ok()) return written;
  const auto again = onward::Model::Read(out);
  if (!again.ok()) return again.status();
  auto session = onward::InferenceSession::Create(*again);
  if (!session.ok()) return session.status();
  const auto logits = session->Run({{"image", *image}});
  if (!logits.ok()) return logits.status();
  std::cout << "logits " << logits->at("logits").elements() << "\n";
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const onward::Status status = Run(argv[1], argv[2]);
  if (status.ok()) return 0;
  std::cerr << "consumer: " << status << "\n";
  return 2;
}

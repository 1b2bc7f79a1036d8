// SPDX-License-Identifier: Apache-2.0
// `check --fix` on the files of the kit: afterwards nothing is found, and the file does what it
// did.
#include <gtest/gtest.h>

#include <filesystem>

#include "environment/environment.h"
#include "tests/support/scratch.h"
#include "tests/support/text_model.h"
#include "tests/support/training_kit.h"
#include "training_info/export_repaired.h"
#include "training_info/validate.h"

namespace onward::repair_test {

struct Repair {
  const char* kit_case;
  const char* says;  // part of what was changed
};

void PrintTo(const Repair& repair, std::ostream* out) { *out << repair.kit_case; }

// Every kind of repair.
constexpr Repair kRepairs[] = {
    {"bindings/ir_version_6", "raised the IR version to 7"},
    {"bindings/value_inside_the_algorithm", "listed 't' among the outputs of training_info[0]"},
    {"bindings/value_is_an_input", "listed 'x' among the outputs of training_info[0].algorithm"},
    {"bindings/value_inside_the_inference_graph", "listed 'h' among the outputs of training"},
    {"bindings/updated_twice_in_one_entry", "dropped the second binding of 'W' to 'n'"},
    {"checking/domain_of_functions_not_imported", "imports own, which its nodes use"},
    {"checking/function_that_imports_nothing", "function local.twice imports ai.onnx, which"},
    {"checking/function_defined_twice", "dropped the second function local.twice"},
    {"checking/functions_below_ir_8", "raised the IR version to 8"},
    {"checking/overloaded_functions_below_ir_10", "raised the IR version to 10"},
    {"checking/opset_beyond_the_ir", "raised the IR version to 10"},
    {"checking/training_domain_not_imported_for_a_branch", "imports ai.onnx.preview.training"},
    {"checking/training_domain_not_imported", "imports ai.onnx.preview.training"},
    {"checking/variable_bound_to_itself", "dropped the binding of 'W' to itself"},
    {"checking/version_of_the_training_domain", "imports version 1"},
    {"initialization/key_twice", "dropped the second binding of 'W' to 'w'"},
    {"initialization/value_is_no_output", "listed 'h' among the outputs of training_info[0]."},
    {"joining/input_repeated", "dropped input 'x' from training_info[0].algorithm: the model has"},
    {"joining/unsorted_body", "sorted the nodes of training_info[0].algorithm"},
    {"joining/unsorted_function", "sorted the nodes of function local.plus_twice"},
    {"joining/initializer_repeated", "dropped initializer 'W' from training_info[0].algorithm"},
    {"joining/unsorted_algorithm", "sorted the nodes of training_info[0].algorithm"},
    {"joining/unsorted_inference_graph", "sorted the nodes of the graph"},
};

KitCase CaseCalled(const std::string& name) {
  for (KitCase& c : ReadKit()) {
    if (c.name == name) return std::move(c);
  }
  ADD_FAILURE() << "there is no case " << name;
  return {};
}

class Repairs : public testing::TestWithParam<Repair> {};

TEST_P(Repairs, LeaveNothingToFind) {
  KitCase kit_case = CaseCalled(GetParam().kit_case);
  auto broken = ReadModel(kit_case.folder + "/model.onnx");
  ASSERT_TRUE(broken.ok()) << broken.status();
  EXPECT_FALSE(CheckModel(*broken, DefaultEnvironment())->empty());
  const RepairedModel repaired = Repaired(*broken);
  ASSERT_EQ(repaired.changes.size(), 1u);
  EXPECT_NE(repaired.changes[0].find(GetParam().says), std::string::npos) << repaired.changes[0];
  const auto findings = CheckModel(repaired.model, DefaultEnvironment());
  EXPECT_TRUE(findings->empty()) << FindingsToStatus(*findings);
  EXPECT_TRUE(Repaired(repaired.model).changes.empty());
  // The variable is none any more where its only binding went.
  if (kit_case.refused || kit_case.name == "checking/variable_bound_to_itself") return;
  const Scratch scratch;
  std::filesystem::copy(kit_case.folder, scratch.Path("case"),
                        std::filesystem::copy_options::recursive);
  ASSERT_TRUE(WriteModel(repaired.model, scratch.Path("case/model.onnx")).ok());
  kit_case.folder = scratch.Path("case");
  kit_case.findings.clear();
  const absl::Status status = RunKitCase(kit_case);
  EXPECT_TRUE(status.ok()) << status;
}

INSTANTIATE_TEST_SUITE_P(Kit, Repairs, testing::ValuesIn(kRepairs), [](const auto& info) {
  std::string name = info.param.kit_case;
  for (char& c : name) c = isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return name;
});

// What is sound is written as it was read.
TEST(Repairs, ChangeNothingElse) {
  int sound = 0;
  for (const KitCase& c : ReadKit()) {
    if (!c.findings.empty()) continue;
    auto model = ReadModel(c.folder + "/model.onnx");
    ASSERT_TRUE(model.ok()) << c.name;
    const RepairedModel repaired = Repaired(*model);
    EXPECT_TRUE(repaired.changes.empty()) << c.name << ": " << repaired.changes[0];
    EXPECT_EQ(Bytes(repaired.model), Bytes(*model)) << c.name;
    ++sound;
  }
  EXPECT_GE(sound, 150);
}

}  // namespace onward::repair_test

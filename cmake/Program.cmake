# The program `onward`, and the three rooms that only it uses.
onward_room(data      DIR data           DEPENDS onward_tensor onward_picture absl::flat_hash_map absl::flat_hash_set PRIVATE ZLIB::ZLIB PNG::PNG)
onward_room(trainer   DIR trainer        DEPENDS onward_training_info onward_data)
onward_room(cli       DIR cli            DEPENDS onward_trainer)

add_executable(onward cli/main.cc)
target_link_libraries(onward PRIVATE onward_cli)
target_compile_definitions(onward PRIVATE ONWARD_VERSION="${PROJECT_VERSION}")
target_compile_options(onward PRIVATE ${ONWARD_WARNINGS})
set_target_properties(onward PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})

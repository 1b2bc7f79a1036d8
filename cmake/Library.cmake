# libonward.so: the interface of include/onward over all the rooms, in one file that needs no header or CMake package of
# what it is made of. Only onward::api is visible; until 1.0 a minor version may change it, so it is in the SONAME.
file(GLOB api_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/api/*.cc)
set(exports ${PROJECT_SOURCE_DIR}/api/exports.map)
add_library(onward_library SHARED ${api_sources})
add_library(onward::onward ALIAS onward_library)
target_include_directories(onward_library PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>)
target_compile_features(onward_library INTERFACE cxx_std_17)
target_compile_definitions(onward_library PRIVATE ONWARD_LIBRARY ONWARD_VERSION="${PROJECT_VERSION}")
target_compile_options(onward_library PRIVATE ${ONWARD_WARNINGS} ${ONWARD_SANITIZERS})
target_link_libraries(onward_library PRIVATE $<BUILD_LOCAL_INTERFACE:onward_training_info>)
target_link_options(onward_library PRIVATE LINKER:--version-script=${exports} LINKER:--no-undefined)
set_target_properties(onward_library PROPERTIES
  OUTPUT_NAME onward EXPORT_NAME onward LINK_DEPENDS ${exports}
  VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})

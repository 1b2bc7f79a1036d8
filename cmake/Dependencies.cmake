# Third-party packages: Debian's, and those that tools/setup.sh put into ONWARD_CACHE.
find_package(absl REQUIRED)
find_package(Eigen3 REQUIRED)
find_package(OpenMP REQUIRED)
find_package(Protobuf REQUIRED)
find_path(ONWARD_RE2_INCLUDE re2/re2.h REQUIRED)
find_library(ONWARD_RE2_LIBRARY re2 REQUIRED)
add_library(onward_re2 INTERFACE)
target_include_directories(onward_re2 SYSTEM INTERFACE ${ONWARD_RE2_INCLUDE})
target_link_libraries(onward_re2 INTERFACE ${ONWARD_RE2_LIBRARY})
if(ONWARD_PROGRAM)
  find_package(ZLIB REQUIRED)
  find_package(PNG REQUIRED)
  find_package(JPEG REQUIRED)
endif()

# Never Debian's onnx or oneDNN, which are too old.
set(ONWARD_ONNX ${ONWARD_CACHE}/onnx-1.23.2)
find_package(ONNX 1.23 CONFIG QUIET PATHS ${ONWARD_ONNX} NO_DEFAULT_PATH)
find_path(ONWARD_DNNL_INCLUDE dnnl.hpp PATHS ${ONWARD_CACHE}/venv/include NO_DEFAULT_PATH)
find_library(ONWARD_DNNL_LIBRARY dnnl PATHS ${ONWARD_CACHE}/venv/lib NO_DEFAULT_PATH)
if(NOT ONNX_FOUND OR NOT ONWARD_DNNL_INCLUDE OR NOT ONWARD_DNNL_LIBRARY)
  message(FATAL_ERROR "onnx 1.23.2 and oneDNN 3.2 are not in ONWARD_CACHE (${ONWARD_CACHE}). Put them there with\n"
    "  ONWARD_CACHE=${ONWARD_CACHE} ${PROJECT_SOURCE_DIR}/tools/setup.sh\n"
    "or name the folder that has them: -DONWARD_CACHE=FOLDER")
endif()
add_library(onward_dnnl INTERFACE)
target_include_directories(onward_dnnl SYSTEM INTERFACE ${ONWARD_DNNL_INCLUDE})
target_link_libraries(onward_dnnl INTERFACE ${ONWARD_DNNL_LIBRARY})

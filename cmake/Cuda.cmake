# ONWARD_CUDA: AUTO builds what CUDA needs where its toolkit is found, ON insists, OFF leaves it out. Sets
# ONWARD_CUDA_FOUND, and onward_cuda_headers: NVIDIA's headers (runtime, cuBLAS, cuDNN), of which the emulator of
# tests/cuda_emu takes all types. The library for GPUs is in CudaLibrary.cmake.
set(ONWARD_CUDA AUTO CACHE STRING "Build for CUDA: AUTO (where nvcc is found), ON or OFF")
set_property(CACHE ONWARD_CUDA PROPERTY STRINGS AUTO ON OFF)

set(ONWARD_CUDA_FOUND OFF)
set(missing "")
if(ONWARD_CUDA)
  find_program(ONWARD_NVCC nvcc HINTS ENV CUDACXX ENV CUDA_PATH PATHS /usr/local/cuda PATH_SUFFIXES bin)
  if(ONWARD_NVCC)
    get_filename_component(ONWARD_CUDA_ROOT ${ONWARD_NVCC} DIRECTORY)
    get_filename_component(ONWARD_CUDA_ROOT ${ONWARD_CUDA_ROOT} DIRECTORY)
    find_path(ONWARD_CUDA_INCLUDE cuda_runtime.h HINTS ${ONWARD_CUDA_ROOT}/include ${ONWARD_CUDA_ROOT}/targets/x86_64-linux/include)
    find_path(ONWARD_CUBLAS_INCLUDE cublas_v2.h HINTS ${ONWARD_CUDA_INCLUDE})
    find_path(ONWARD_CUDNN_INCLUDE cudnn.h HINTS ${ONWARD_CUDA_INCLUDE})
  endif()
  foreach(wanted NVCC CUDA_INCLUDE CUBLAS_INCLUDE CUDNN_INCLUDE)
    if(NOT ONWARD_${wanted})
      list(APPEND missing ONWARD_${wanted})
    endif()
  endforeach()
  if(NOT missing)
    set(ONWARD_CUDA_FOUND ON)
    add_library(onward_cuda_headers INTERFACE)
    target_include_directories(onward_cuda_headers SYSTEM INTERFACE
      ${ONWARD_CUDA_INCLUDE} ${ONWARD_CUBLAS_INCLUDE} ${ONWARD_CUDNN_INCLUDE})
  elseif(NOT ONWARD_CUDA STREQUAL AUTO)
    message(FATAL_ERROR "ONWARD_CUDA=ON, but these were not found: ${missing}. Name them (-DONWARD_NVCC=FILE, "
      "-DONWARD_CUDNN_INCLUDE=FOLDER, ...) or set ONWARD_CUDA=OFF.")
  endif()
endif()
if(NOT ONWARD_CUDA_FOUND AND PROJECT_IS_TOP_LEVEL)
  if(NOT missing)
    set(missing "nothing looked for")
  endif()
  list(JOIN missing " and " missing)
  message(STATUS "CUDA and its emulator are skipped (ONWARD_CUDA=${ONWARD_CUDA}, not found: ${missing})")
endif()

# For ./build.sh sanitize-cuda: the emulator and the device on it under a sanitizer, all else as it is (and from the cache).
set(ONWARD_CUDA_SANITIZE OFF CACHE STRING "Sanitize the emulated CUDA device: address (and undefined behaviour), thread or OFF")
set_property(CACHE ONWARD_CUDA_SANITIZE PROPERTY STRINGS OFF address thread)
if(ONWARD_CUDA_SANITIZE STREQUAL address)
  add_link_options(-fsanitize=address,undefined)
elseif(ONWARD_CUDA_SANITIZE STREQUAL thread)
  add_link_options(-fsanitize=thread)
endif()

# Has a target that the emulator is part of follow ONWARD_CUDA_SANITIZE. The thread sanitizer looks at kernels alone.
function(onward_sanitize_cuda target)
  if(ONWARD_CUDA_SANITIZE STREQUAL address)
    target_compile_options(${target} PRIVATE -fsanitize=address,undefined -fno-omit-frame-pointer -Wno-error)
    set_target_properties(${target} PROPERTIES DISABLE_PRECOMPILE_HEADERS ON)
  endif()
endfunction()

# Has g++ compile these .cu files of the current folder, for the emulator. They report their accesses to it as they would
# to the thread sanitizer, whose library is linked only to be asked the same (ONWARD_CUDA_SANITIZE=thread); the address
# sanitizer does not go with that.
function(onward_emulated_sources)
  set(options -Wno-unknown-pragmas)
  if(NOT ONWARD_SANITIZE AND NOT ONWARD_CUDA_SANITIZE STREQUAL address)
    list(APPEND options -fsanitize=thread)
  endif()
  set_source_files_properties(${ARGN} PROPERTIES LANGUAGE CXX SKIP_PRECOMPILE_HEADERS ON COMPILE_OPTIONS "${options}")
endfunction()

# What the plugins of the CUDA device have in common: the rooms below the runtime inside, one visible function.
function(onward_cuda_plugin target)
  set(exports ${PROJECT_SOURCE_DIR}/core/cuda/exports.map)
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR})
  set_source_files_properties(${PROJECT_SOURCE_DIR}/core/cuda/plugin.cc PROPERTIES
    COMPILE_DEFINITIONS ONWARD_VERSION="${PROJECT_VERSION}" SKIP_PRECOMPILE_HEADERS ON)
  target_precompile_headers(${target} REUSE_FROM onward_base)
  target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:${ONWARD_WARNINGS}>)
  target_link_libraries(${target} PRIVATE onward_device onward_cuda_headers)
  target_link_options(${target} PRIVATE LINKER:--version-script=${exports} LINKER:--no-undefined)
  set_target_properties(${target} PROPERTIES LINK_DEPENDS ${exports} LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})
endfunction()

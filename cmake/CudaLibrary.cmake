# libonward_cuda.so, the CUDA device for GPUs: a plugin that the runtime opens when it is asked for a GPU, so that others do
# not pay for loading NVIDIA's libraries.
set(CMAKE_CUDA_COMPILER ${ONWARD_NVCC} CACHE FILEPATH "nvcc")
set(CMAKE_CUDA_ARCHITECTURES 75-virtual 80-real 90-real)
set(CMAKE_CUDA_STANDARD 20)
enable_language(CUDA)
if(CMAKE_CUDA_COMPILER_VERSION VERSION_GREATER_EQUAL 12.8)
  list(APPEND CMAKE_CUDA_ARCHITECTURES 100-real)
endif()
find_package(CUDAToolkit REQUIRED)
find_library(ONWARD_CUDNN_LIBRARY cudnn HINTS ${CUDAToolkit_LIBRARY_DIR} REQUIRED)

file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/core/cuda/*.cc ${PROJECT_SOURCE_DIR}/core/cuda/*.cu)
add_library(onward_cuda SHARED ${sources})
onward_cuda_plugin(onward_cuda)
# A kernel whose registers do not fit is an error: it would be slow, and nobody here could tell.
target_compile_options(onward_cuda PRIVATE
  "$<$<COMPILE_LANGUAGE:CUDA>:SHELL:-Werror all-warnings -Xptxas=--warn-on-spills,--warning-as-error>")
target_link_libraries(onward_cuda PRIVATE CUDA::cudart CUDA::cublas CUDA::cublasLt ${ONWARD_CUDNN_LIBRARY})
set_target_properties(onward_cuda PROPERTIES CUDA_RUNTIME_LIBRARY Shared)

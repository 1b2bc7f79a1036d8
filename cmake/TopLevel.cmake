# What this project chooses where it is built on its own: kind of build, compiler cache, warnings as errors.
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "" FORCE)
endif()
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
# Line tables are enough for a profile or a stack trace, and halve the build.
string(REPLACE "-g" "-g1" CMAKE_CXX_FLAGS_RELWITHDEBINFO "${CMAKE_CXX_FLAGS_RELWITHDEBINFO}")
find_program(CCACHE ccache)
if(CCACHE)
  # Precompiled headers go through ccache only with some checks relaxed; clones in other folders share compiled objects.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros
    CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${CCACHE})
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${CMAKE_CXX_COMPILER_LAUNCHER})
endif()
add_compile_options($<$<COMPILE_LANGUAGE:C,CXX>:-fpch-preprocess>)
# GCC 12 sees uninitialised memory and overlaps in absl::InlinedVector and std::string that are not there.
set(ONWARD_WARNINGS -Wall -Wextra -Werror -Wno-uninitialized -Wno-maybe-uninitialized -Wno-restrict -Wno-array-bounds)

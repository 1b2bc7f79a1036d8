# onward_room(NAME DIR folder DEPENDS ... PRIVATE ...): a static library of all sources below the folder.
# GCC 12 sees uninitialised memory and overlaps in absl::InlinedVector and std::string that are not there.
set(ONWARD_WARNINGS -Wall -Wextra -Werror -Wno-uninitialized -Wno-maybe-uninitialized -Wno-restrict -Wno-array-bounds)

function(onward_room name)
  cmake_parse_arguments(ROOM "" "DIR" "DEPENDS;PRIVATE" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${ROOM_DIR}/*.cc)
  list(FILTER sources EXCLUDE REGEX "/main\\.cc$")
  add_library(onward_${name} STATIC ${sources})
  target_include_directories(onward_${name} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}> $<INSTALL_INTERFACE:include/onward>)
  target_compile_options(onward_${name} PRIVATE ${ONWARD_WARNINGS})
  target_link_libraries(onward_${name} PUBLIC ${ROOM_DEPENDS} PRIVATE ${ROOM_PRIVATE})
  target_precompile_headers(onward_${name} PRIVATE ${PROJECT_SOURCE_DIR}/cmake/precompiled.h)
  set_property(GLOBAL APPEND PROPERTY ONWARD_ROOMS onward_${name})
endfunction()

# onward_room(NAME DIR folder DEPENDS ... PRIVATE ...): a static library of all sources below the folder.
function(onward_room name)
  cmake_parse_arguments(ROOM "" "DIR" "DEPENDS;PRIVATE" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${ROOM_DIR}/*.cc)
  list(FILTER sources EXCLUDE REGEX "/main\\.cc$")
  add_library(onward_${name} STATIC ${sources})
  onward_furnish(onward_${name} DEPENDS ${ROOM_DEPENDS} PRIVATE ${ROOM_PRIVATE})
  onward_batch(onward_${name})
endfunction()

# Sources are compiled some at a time: what they include is most of the work. So names are unique in a room, in unnamed
# namespaces too.
function(onward_batch target)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 8)
endfunction()

# What every room has: the include root, warnings, precompiled headers, what it may use. Headers are compiled once, for the first
# room, and once more for each that has FLAGS of its own.
function(onward_furnish target)
  cmake_parse_arguments(ROOM "" "" "DEPENDS;PRIVATE;FLAGS" ${ARGN})
  target_include_directories(${target} PUBLIC ${PROJECT_SOURCE_DIR})
  target_compile_options(${target} PRIVATE ${ONWARD_WARNINGS} ${ROOM_FLAGS} ${ONWARD_SANITIZERS})
  target_link_libraries(${target} PUBLIC ${ROOM_DEPENDS} PRIVATE ${ROOM_PRIVATE})
  if(ROOM_FLAGS OR target STREQUAL onward_base)
    target_precompile_headers(${target} PRIVATE <cmake/precompiled.h>)  # not by its folder: clones share it in the compiler cache
  else()
    target_precompile_headers(${target} REUSE_FROM onward_base)
  endif()
endfunction()

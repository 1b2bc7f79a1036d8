# onward_kernels(NAME DIR folder DOOR file FLAGS ... DEPENDS ... PRIVATE ...): a room whose sources are compiled with FLAGS
# for instructions that not every CPU has; only DOOR, which checks for them, is not.
#
# Inline functions (of std, absl, our headers) are compiled in every source that uses them, and the linker keeps any one copy
# for the whole program: one with AVX2 in it would run where nobody checked. So the kernels' objects are joined into
# one, and their copies of inline functions made local to it.
function(onward_kernels name)
  cmake_parse_arguments(ROOM "" "DIR;DOOR" "DEPENDS;PRIVATE;FLAGS" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${ROOM_DIR}/*.cc)
  list(REMOVE_ITEM sources ${PROJECT_SOURCE_DIR}/${ROOM_DOOR})
  set(kernels onward_${name}_kernels)
  add_library(${kernels} STATIC ${sources})
  onward_furnish(${kernels} DEPENDS ${ROOM_DEPENDS} PRIVATE ${ROOM_PRIVATE} FLAGS ${ROOM_FLAGS})
  add_custom_command(TARGET ${kernels} POST_BUILD VERBATIM
    COMMAND ${PROJECT_SOURCE_DIR}/cmake/isolate_archive.sh $<TARGET_FILE:${kernels}>
            ${CMAKE_LINKER} ${CMAKE_NM} ${CMAKE_OBJCOPY} ${CMAKE_AR})

  add_library(onward_${name} STATIC ${PROJECT_SOURCE_DIR}/${ROOM_DOOR})
  onward_furnish(onward_${name} DEPENDS ${ROOM_DEPENDS} ${kernels})
endfunction()

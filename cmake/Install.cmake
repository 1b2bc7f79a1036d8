# `cmake --install build --prefix P`: P/bin/onward, P/lib/libonward.so, P/include/onward, a CMake package (find_package(onward),
# link onward::onward) and a pkg-config file. The tree can be moved: everything in it finds the rest by relative paths.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(package ${CMAKE_INSTALL_LIBDIR}/cmake/onward)

# oneDNN comes along in a folder of its own, so that it does not replace another one.
execute_process(COMMAND ${CMAKE_COMMAND} -E env LC_ALL=C ${CMAKE_READELF} -d ${ONWARD_DNNL_LIBRARY} OUTPUT_VARIABLE dynamic COMMAND_ERROR_IS_FATAL ANY)
string(REGEX REPLACE ".*soname: \\[([^]]+)\\].*" "\\1" dnnl_soname "${dynamic}")
get_filename_component(dnnl_file ${ONWARD_DNNL_LIBRARY} REALPATH)
install(FILES ${dnnl_file} DESTINATION ${CMAKE_INSTALL_LIBDIR}/onward RENAME ${dnnl_soname} COMPONENT Runtime)
set_target_properties(onward_library PROPERTIES INSTALL_RPATH "$ORIGIN/onward")
install(TARGETS onward_library EXPORT onwardTargets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT Runtime NAMELINK_COMPONENT Development
  INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
if(ONWARD_PROGRAM)
  file(RELATIVE_PATH to_libraries ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_LIBDIR}/onward)
  set_target_properties(onward PROPERTIES INSTALL_RPATH "$ORIGIN/${to_libraries}")
  install(TARGETS onward RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT Runtime)
  # Manual pages and completion, which the program itself writes.
  install(CODE "execute_process(COMMAND $<TARGET_FILE:onward> man --into \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_DATADIR}\"
    COMMAND_ERROR_IS_FATAL ANY)" COMPONENT Runtime)
endif()

# The device for GPUs, where it was built: beside libonward.so, opened by name.
if(TARGET onward_cuda)
  install(TARGETS onward_cuda LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT Runtime OPTIONAL)
endif()

install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/onward DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT Development)
install(EXPORT onwardTargets NAMESPACE onward:: FILE onwardConfig.cmake DESTINATION ${package} COMPONENT Development)
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/onwardConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/onwardConfigVersion.cmake DESTINATION ${package} COMPONENT Development)

file(RELATIVE_PATH to_prefix ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
configure_file(cmake/onward.pc.in ${CMAKE_CURRENT_BINARY_DIR}/onward.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/onward.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT Development)

# Whose work is inside.
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT Runtime)
get_filename_component(dnnl_prefix ${ONWARD_DNNL_INCLUDE} DIRECTORY)
install(DIRECTORY ${dnnl_prefix}/share/doc/onednn DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT Runtime OPTIONAL)

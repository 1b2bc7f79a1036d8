# `cmake --install build --prefix P`, then find_package(onward) and link onward::training_info or onward::trainer.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
get_property(rooms GLOBAL PROPERTY ONWARD_ROOMS)
foreach(room ${rooms})
  string(REPLACE "onward_" "" short ${room})
  set_target_properties(${room} PROPERTIES EXPORT_NAME ${short})
endforeach()
install(TARGETS ${rooms} onward_dnnl EXPORT onwardTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS onward RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(EXPORT onwardTargets NAMESPACE onward:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/onward)
foreach(folder core autograd losses optimizers training_info trainer)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/${folder} DESTINATION include/onward FILES_MATCHING PATTERN "*.h")
endforeach()
configure_package_config_file(cmake/onwardConfig.cmake.in ${CMAKE_CURRENT_BINARY_DIR}/onwardConfig.cmake
  INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/onward)
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/onwardConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/onwardConfig.cmake ${CMAKE_CURRENT_BINARY_DIR}/onwardConfigVersion.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/onward)

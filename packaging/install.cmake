# What `cmake --install` and CPack put where. All places are relative to the prefix, and the programs find each other and their libraries by
# their own place, so that an installed tree can be moved. Components:
#   planner      the programs without libtorch, manual pages, shell completion, the Python package
#   development  headers, static libraries and find_package(frazil) of the folders without torch
#   torch        the programs with libtorch, the libraries of libtorch for CPUs, data and runs of the demo
#   cuda         the plug-in for GPUs and the libraries of libtorch for GPUs, where the plug-in is built
set(programs_of_planner frazil frazil-plan frazil-cluster frazil-simulate frazil-check frazil-verify
  frazil-import frazil-export frazil-report frazil-ablate frazil-reproduce)
set(programs_of_torch)
set(plugin)
if(TARGET exec)
  set(programs_of_torch frazil-member frazil-profile frazil-train frazil-verify-plan)
endif()
if(TARGET frazil_cuda)
  set(plugin frazil_cuda)
endif()

add_custom_target(programs COMMENT "All programs of Frazil")
add_dependencies(programs ${programs_of_planner} ${programs_of_torch} ${plugin})

# Manual pages and completion of the shells, made from what the programs say of their flags.
find_program(PYTHON3 python3)
set(pages ${CMAKE_BINARY_DIR}/pages)
if(PYTHON3 AND NOT FRAZIL_SANITIZE)
  add_custom_command(OUTPUT ${pages}/made
    COMMAND ${PYTHON3} ${CMAKE_SOURCE_DIR}/packaging/make_pages.py --programs ${CMAKE_RUNTIME_OUTPUT_DIRECTORY} --out ${pages}
    COMMAND ${CMAKE_COMMAND} -E touch ${pages}/made
    DEPENDS ${CMAKE_SOURCE_DIR}/packaging/make_pages.py ${programs_of_planner} ${programs_of_torch}
    COMMENT "Making manual pages and shell completion" VERBATIM)
  add_custom_target(pages ALL DEPENDS ${pages}/made)
  add_dependencies(programs pages)
  install(DIRECTORY ${pages}/man/ DESTINATION share/man/man1 COMPONENT planner)
  install(FILES ${pages}/bash/frazil DESTINATION share/bash-completion/completions COMPONENT planner)
  install(FILES ${pages}/zsh/_frazil DESTINATION share/zsh/vendor-completions COMPONENT planner)
  install(FILES ${pages}/fish/frazil.fish DESTINATION share/fish/vendor_completions.d COMPONENT planner)
else()
  message(STATUS "packaging: no manual pages and no shell completion (they take python3, and a build without sanitizers)")
endif()

# CMake's own words for a program that is not built name a file of a script.
foreach(component planner torch)
  foreach(program ${programs_of_${component}})
    install(CODE "
      if(NOT EXISTS \"${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/${program}\")
        message(FATAL_ERROR \"found no ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/${program}, expected all programs; build them first: cmake --build ${CMAKE_BINARY_DIR} --target programs\")
      endif()" COMPONENT ${component})
  endforeach()
endforeach()

install(TARGETS ${programs_of_planner} RUNTIME DESTINATION bin COMPONENT planner)
# The pages lie to each other as in the checkout, so that their links hold.
install(FILES LICENSE README.md CHANGELOG.md CONTRIBUTING.md DESTINATION share/doc/frazil COMPONENT planner)
install(DIRECTORY docs DESTINATION share/doc/frazil COMPONENT planner)
# For `pip install`, which finds no programs itself: FRAZIL_BIN or PATH tells it.
install(DIRECTORY python/ DESTINATION share/frazil/python COMPONENT planner
  PATTERN __pycache__ EXCLUDE PATTERN build EXCLUDE PATTERN *.egg-info EXCLUDE)

# The folders without torch, as frazil::profiles to frazil::analysis.
foreach(folder profiles traces sim planner analysis)
  target_include_directories(${folder} PUBLIC $<INSTALL_INTERFACE:include/frazil>)
  target_compile_features(${folder} PUBLIC cxx_std_20)
  install(TARGETS ${folder} EXPORT frazil ARCHIVE DESTINATION lib/frazil COMPONENT development)
  install(DIRECTORY ${folder} DESTINATION include/frazil COMPONENT development FILES_MATCHING PATTERN "*.h"
    PATTERN reproduce EXCLUDE)
endforeach()
install(EXPORT frazil NAMESPACE frazil:: FILE frazil-targets.cmake DESTINATION lib/cmake/frazil COMPONENT development)
include(CMakePackageConfigHelpers)
configure_package_config_file(packaging/frazil-config.cmake.in ${CMAKE_BINARY_DIR}/packaging/frazil-config.cmake
  INSTALL_DESTINATION lib/cmake/frazil NO_SET_AND_CHECK_MACRO)
# Before 1.0 any version may change what another relies on.
write_basic_package_version_file(${CMAKE_BINARY_DIR}/packaging/frazil-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/packaging/frazil-config.cmake ${CMAKE_BINARY_DIR}/packaging/frazil-config-version.cmake
  DESTINATION lib/cmake/frazil COMPONENT development)

if(TARGET exec)
  get_directory_property(torch DIRECTORY exec DEFINITION torch_folder)
  set_target_properties(${programs_of_torch} PROPERTIES INSTALL_RPATH "$ORIGIN/../lib/frazil")
  install(TARGETS ${programs_of_torch} RUNTIME DESTINATION bin COMPONENT torch)
  # What the programs load of libtorch: it looks for these beside itself.
  set(libraries ${torch}/lib/libtorch_cpu.so ${torch}/lib/libc10.so)
  foreach(library ${torch}/lib/libgomp.so.1 ${torch}/../nvidia/cu13/lib/libcudart.so.13 ${torch}/../nvidia/cu13/lib/libcupti.so.13)
    if(EXISTS ${library})
      list(APPEND libraries ${library})
    endif()
  endforeach()
  install(PROGRAMS ${libraries} DESTINATION lib/frazil COMPONENT torch)
  install(FILES exec/data/digits.csv.gz DESTINATION share/frazil/data COMPONENT torch)
  install(FILES exec/data/README.md DESTINATION share/frazil/data COMPONENT torch)
  install(DIRECTORY exec/runs DESTINATION share/frazil COMPONENT torch)
  file(GLOB notices ${torch}/../*.dist-info)
  foreach(notice ${notices})
    install(DIRECTORY ${notice} DESTINATION share/doc/frazil/licences COMPONENT torch)
  endforeach()
endif()

if(TARGET frazil_cuda)
  # The plug-in is looked for in ../lib as seen from the programs; what else it needs comes from the toolkit that it was built with.
  get_directory_property(toolkit DIRECTORY exec/devices/cuda DEFINITION CUDAToolkit_LIBRARY_DIR)
  set_target_properties(frazil_cuda PROPERTIES INSTALL_RPATH "$ORIGIN/frazil;${toolkit}")
  install(TARGETS frazil_cuda LIBRARY DESTINATION lib COMPONENT cuda)
  if(TARGET frazil_nccl)
    set_target_properties(frazil_nccl PROPERTIES INSTALL_RPATH "$ORIGIN/frazil;${toolkit}")
    install(TARGETS frazil_nccl LIBRARY DESTINATION lib COMPONENT cuda)
  endif()
  foreach(library torch/lib/libtorch_cuda.so torch/lib/libc10_cuda.so torch/lib/libtorch_nvshmem.so nvidia/cu13/lib/libcufile.so.0
                  nvidia/cusparselt/lib/libcusparseLt.so.0 nvidia/nvshmem/lib/libnvshmem_host.so.3)
    if(EXISTS ${torch}/../${library})
      install(PROGRAMS ${torch}/../${library} DESTINATION lib/frazil COMPONENT cuda)
    endif()
  endforeach()
endif()

include(packaging/packages.cmake)

# kernels/launchers.h: the declarations of what CUDA kernels define, for programs, the runtime and each other. Builds
# without folder kernels/, such as those for fuzzing, have it, too: it is part of the interface (files/interface.cmake).
# HECATE_CUDA_SOURCES: the files of kernels, below kernels/.
file(GLOB HECATE_CUDA_SOURCES RELATIVE ${PROJECT_SOURCE_DIR}/kernels CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/kernels/*/*.cu)
list(TRANSFORM HECATE_CUDA_SOURCES PREPEND ${PROJECT_SOURCE_DIR}/kernels/ OUTPUT_VARIABLE launcher_sources)
set(launcher_list ${PROJECT_BINARY_DIR}/generated/kernels/cuda_sources.list)
list(JOIN HECATE_CUDA_SOURCES "\n" launcher_text)
file(CONFIGURE OUTPUT ${launcher_list} CONTENT "${launcher_text}\n")
add_custom_command(OUTPUT ${HECATE_LAUNCHERS}
  COMMAND ${CMAKE_COMMAND} -DROOT=${PROJECT_SOURCE_DIR} -DSOURCES=${launcher_list} -DOUTPUT=${HECATE_LAUNCHERS}
    -P ${PROJECT_SOURCE_DIR}/kernels/cuda/write_launchers.cmake
  DEPENDS ${launcher_sources} ${launcher_list} ${PROJECT_SOURCE_DIR}/kernels/cuda/write_launchers.cmake VERBATIM)
add_custom_target(hecate_launchers DEPENDS ${HECATE_LAUNCHERS})
add_dependencies(hecate_interface hecate_launchers)

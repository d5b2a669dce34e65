# hecatec and the libraries that it links with programs share headers. A hash of all of them is compiled into hecatec, and
# is part of a symbol's name in each library; hecatec links only those that have its own (codegen/driver/libraries.h). So
# libraries of an older build make no programs that crash.
file(GLOB_RECURSE interface_headers CONFIGURE_DEPENDS
  ${PROJECT_SOURCE_DIR}/files/*.h ${PROJECT_SOURCE_DIR}/kernels/*.h ${PROJECT_SOURCE_DIR}/kernels/*.def
  ${PROJECT_SOURCE_DIR}/runtime/*.h ${PROJECT_SOURCE_DIR}/runtime/*.def)
set(HECATE_GENERATED ${PROJECT_BINARY_DIR}/include/hecate)
set(HECATE_LAUNCHERS ${HECATE_GENERATED}/kernels/launchers.h) # By kernels/cuda/launchers.cmake.
list(APPEND interface_headers ${HECATE_LAUNCHERS})
set(interface ${PROJECT_BINARY_DIR}/generated/files/interface.h)
set(interface_list ${PROJECT_BINARY_DIR}/generated/files/interface.list)
list(JOIN interface_headers "\n" interface_text)
file(CONFIGURE OUTPUT ${interface_list} CONTENT "${interface_text}\n")
add_custom_command(OUTPUT ${interface}
  COMMAND ${CMAKE_COMMAND} -DROOT=${PROJECT_SOURCE_DIR} -DLIST=${interface_list} -DOUTPUT=${interface}
    -P ${PROJECT_SOURCE_DIR}/files/write_interface.cmake
  DEPENDS ${interface_headers} ${interface_list} ${PROJECT_SOURCE_DIR}/files/write_interface.cmake VERBATIM)
add_custom_target(hecate_interface DEPENDS ${interface})

# The library gets the symbol.
function(hecate_add_interface library)
  add_library(${library}_interface OBJECT ${PROJECT_SOURCE_DIR}/files/interface.c)
  target_compile_definitions(${library}_interface PRIVATE HECATE_LIBRARY=${library})
  target_include_directories(${library}_interface PRIVATE ${PROJECT_BINARY_DIR}/generated)
  set_target_properties(${library}_interface PROPERTIES POSITION_INDEPENDENT_CODE ON)
  add_dependencies(${library}_interface hecate_interface)
  target_sources(${library} PRIVATE $<TARGET_OBJECTS:${library}_interface>)
endfunction()

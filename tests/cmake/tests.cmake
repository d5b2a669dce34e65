# The kinds of test. Each registers one CTest test per file, named after its path below tests/, so
# that `ctest -R passes/` runs one stage and a failure names the file to open.

# Before the command of a test that starts processes: they end with it.
add_executable(hecate-leash ${PROJECT_SOURCE_DIR}/tests/cmake/leash.c)
set_target_properties(hecate-leash PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
set(HECATE_LEASH $<TARGET_FILE:hecate-leash>)
add_test(NAME leash COMMAND ${PROJECT_SOURCE_DIR}/tests/cmake/leash_test.sh ${HECATE_LEASH})

# Older packages have it in the folder of sources that they keep.
find_program(LIT NAMES lit lit.py NO_DEFAULT_PATH REQUIRED
  PATHS ${HECATE_LLVM_BIN} ${HECATE_LLVM_BIN}/../build/utils/lit)

# hecate_test_name(file OUT): tests/lang/scan_test.c -> lang/scan_test.c, from any folder.
function(hecate_test_name file out)
  cmake_path(ABSOLUTE_PATH file BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR} OUTPUT_VARIABLE path)
  cmake_path(RELATIVE_PATH path BASE_DIRECTORY ${PROJECT_SOURCE_DIR}/tests OUTPUT_VARIABLE name)
  set(${out} ${name} PARENT_SCOPE)
endfunction()

# Text in, text out: the .moe, .mlir or .test file holds its own `RUN:` and `CHECK:` lines.
function(hecate_add_text_test file)
  hecate_test_name(${file} name)
  add_test(NAME ${name} COMMAND ${HECATE_LEASH} ${LIT} -v --skip-test-time-recording
    ${CMAKE_CURRENT_SOURCE_DIR}/${file})
  set_tests_properties(${name} PROPERTIES LABELS text TIMEOUT 900 ENVIRONMENT
    "HECATE_BIN=${PROJECT_BINARY_DIR}/bin;LLVM_BIN=${HECATE_LLVM_BIN};HECATE_TEST_TMP=${PROJECT_BINARY_DIR}/tests/lit")
endfunction()

# One C program of cmocka tests. Further arguments are the libraries under test.
function(hecate_add_unit_test file)
  hecate_test_name(${file} name)
  string(MAKE_C_IDENTIFIER ${name} target)
  add_executable(${target} ${file})
  target_link_libraries(${target} PRIVATE ${ARGN} cmocka)
  set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  add_test(NAME ${name} COMMAND ${target})
  set_tests_properties(${name} PROPERTIES LABELS unit TIMEOUT 300)
endfunction()

# One C program of cmocka tests for each back end, once for each number of ranks: runtime/ranks_test.c, 4 ranks, tcp.
# RANKS 1 2 4, under mpirun; TCP 1 2, started by hand; then the libraries under test.
function(hecate_add_ranks_test file)
  cmake_parse_arguments(arg "" "" "RANKS;TCP;LIBRARIES" ${ARGN})
  hecate_test_name(${file} name)
  string(MAKE_C_IDENTIFIER ${name} target)
  foreach(backend mpi tcp)
    set(numbers ${arg_RANKS})
    set(launcher ranks.sh)
    set(suffix "")
    if(backend STREQUAL tcp)
      set(numbers ${arg_TCP})
      set(launcher by_hand.sh)
      set(suffix ", tcp")
      string(APPEND target _tcp)
    endif()
    if(NOT TARGET hecate_comm_${backend} OR NOT numbers)
      continue()
    endif()
    add_executable(${target} ${file})
    target_compile_definitions(${target} PRIVATE RANKS_BACKEND=hrt_net_comm_${backend})
    target_link_libraries(${target} PRIVATE ${arg_LIBRARIES} hecate_comm_${backend} cmocka)
    set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
    foreach(ranks ${numbers})
      add_test(NAME "${name}, ${ranks} ranks${suffix}" COMMAND ${HECATE_LEASH}
        ${PROJECT_SOURCE_DIR}/tests/runtime/${launcher} ${ranks} $<TARGET_FILE:${target}>)
      set_tests_properties("${name}, ${ranks} ranks${suffix}" PROPERTIES LABELS ranks TIMEOUT 900
        PROCESSORS 2)
    endforeach()
  endforeach()
endfunction()

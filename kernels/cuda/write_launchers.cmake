# Writes the declarations of all launchers, for C, to OUTPUT: each `extern "C" void hkc_NAME(...) {` of SOURCES below
# ROOT. Below them stands, for contracts.cu, which launcher has which contract: its folder's header declares it.
file(STRINGS ${SOURCES} sources)
set(includes "")
set(launchers "")
set(contracts "")
foreach(source ${sources})
  cmake_path(GET source PARENT_PATH op)
  set(header "")
  if(EXISTS ${ROOT}/kernels/${op}/${op}.h)
    file(READ ${ROOT}/kernels/${op}/${op}.h header)
    list(APPEND includes "#include \"kernels/${op}/${op}.h\"\n")
  endif()
  file(READ ${ROOT}/kernels/${source} text)
  string(REGEX MATCHALL "\nextern \"C\" void hkc_[^{;]*\\) {" found "${text}")
  foreach(launcher ${found})
    string(REGEX REPLACE "\nextern \"C\" (.*) {" "\\1;\n" launcher "${launcher}")
    string(REGEX REPLACE "\n +" "\n    " launcher "${launcher}")
    string(APPEND launchers "${launcher}")
    string(REGEX REPLACE "^void hkc_([a-z0-9_]+).*" "\\1" name "${launcher}")
    string(REGEX REPLACE "_bf16$" "_f32" contract "hk_${name}")
    set(value float)
    if(name MATCHES "_bf16$")
      set(value hk_bf16)
    endif()
    if(header MATCHES "\nvoid ${contract}\\(")
      string(APPEND contracts "HKC_CONTRACT(${value}, ${contract}, hkc_${name})\n")
    endif()
  endforeach()
endforeach()
list(REMOVE_DUPLICATES includes)
list(JOIN includes "" includes)
set(text "// All launchers of CUDA kernels (kernels/cuda/lane.h), as their sources define them.
#ifndef HECATE_KERNELS_LAUNCHERS_H
#define HECATE_KERNELS_LAUNCHERS_H

#include \"kernels/cuda/lane.h\"
${includes}
#ifdef __cplusplus
extern \"C\" {
#endif

${launchers}
#ifdef __cplusplus
}
#endif

#ifdef HKC_CONTRACT
${contracts}#endif

#endif
")
set(before "")
if(EXISTS ${OUTPUT})
  file(READ ${OUTPUT} before)
endif()
if(NOT text STREQUAL before) # Else nothing is compiled again.
  file(WRITE ${OUTPUT} "${text}")
endif()

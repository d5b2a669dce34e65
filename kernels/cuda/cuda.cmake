# Finds CUDA: CUDAToolkit's usual places, HECATE_CUDA (a folder with bin/nvcc and include/), or the folder cuda/ that
# `./setup.sh cuda` makes below the project; tools that toolkits may lack also from cuda-tools/, where
# `./setup.sh cuda-tools` puts them. Sets, for kernels/ and tests/simt:
#   HECATE_NVCC           nvcc
#   HECATE_CUDA_INCLUDE   the folder with cuda_runtime.h; without it no kernel can be emulated, either
#   HECATE_CUOBJDUMP, HECATE_NVDISASM, HECATE_CUDART, HECATE_NCCL_INCLUDE, HECATE_NCCL, HECATE_CUBLAS, HECATE_CUBLASLT, HECATE_CUDNN
# each false where it was not found. Everything else builds without any of them.
set(HECATE_CUDA "" CACHE PATH "A folder with bin/nvcc and include/cuda_runtime.h, before all others")
set(HECATE_CUDA_ARCHITECTURES "80;90a;100" CACHE STRING "Devices that CUDA kernels have machine code for")
set(HECATE_CUDA_PTX "80;90" CACHE STRING "What drivers compile CUDA kernels from for other devices, as old or newer")

file(GLOB wheels LIST_DIRECTORIES TRUE ${PROJECT_SOURCE_DIR}/cuda/nvidia/cu* ${PROJECT_SOURCE_DIR}/cuda/nvidia/nccl)
set(places ${HECATE_CUDA} $ENV{CUDA_HOME} ${wheels} /usr/local/cuda)
if(HECATE_CUDA)
  set(places ${HECATE_CUDA})
endif()
find_program(HECATE_NVCC nvcc HINTS ${places} PATH_SUFFIXES bin)
find_path(HECATE_CUDA_INCLUDE cuda_runtime.h HINTS ${places} PATH_SUFFIXES include)
find_library(HECATE_CUDART NAMES cudart libcudart.so.13 HINTS ${places} PATH_SUFFIXES lib64 lib)
file(GLOB tools LIST_DIRECTORIES TRUE ${PROJECT_SOURCE_DIR}/cuda-tools/nvidia/cu*)
find_program(HECATE_CUOBJDUMP cuobjdump HINTS ${tools} ${places} PATH_SUFFIXES bin)
find_program(HECATE_NVDISASM nvdisasm HINTS ${tools} ${places} PATH_SUFFIXES bin)
if(HECATE_NVCC AND NOT (HECATE_CUOBJDUMP AND HECATE_NVDISASM))
  message(STATUS "CUDA: without cuobjdump and nvdisasm no test reads machine code (./setup.sh cuda-tools)")
endif()
find_path(HECATE_NCCL_INCLUDE nccl.h HINTS ${places} PATH_SUFFIXES include)
find_library(HECATE_NCCL NAMES nccl libnccl.so.2 HINTS ${places} PATH_SUFFIXES lib64 lib)
find_library(HECATE_CUBLAS NAMES cublas libcublas.so.13 HINTS ${places} PATH_SUFFIXES lib64 lib)
find_library(HECATE_CUBLASLT NAMES cublasLt libcublasLt.so.13 HINTS ${places} PATH_SUFFIXES lib64 lib)
find_library(HECATE_CUDNN NAMES cudnn libcudnn.so.9 HINTS ${places} PATH_SUFFIXES lib64 lib)

set(missing "")
foreach(part NVCC CUDA_INCLUDE CUDART NCCL CUBLAS CUBLASLT CUDNN)
  if(NOT HECATE_${part})
    string(TOLOWER ${part} name)
    string(REPLACE cuda_include "CUDA's headers" name ${name})
    list(APPEND missing ${name})
  endif()
endforeach()
list(JOIN missing ", " missing)
if(missing)
  message(STATUS "CUDA: without ${missing} (./setup.sh cuda)")
endif()

# Tests emulate kernels with g++, which NVIDIA's headers and the hooks of the emulator need.
if(HECATE_CUDA_INCLUDE)
  include(CheckLanguage)
  check_language(CXX)
  if(CMAKE_CXX_COMPILER)
    enable_language(CXX)
    set(CMAKE_CXX_STANDARD 17)
    set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_C_COMPILER_LAUNCHER})
  endif()
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    message(STATUS "CUDA: kernels are not tested, as that takes g++")
  endif()
endif()

// RUN: split-file %s %t
// RUN: hec-ir-tool %t/known.mlir | FileCheck %t/known.mlir
// RUN: not hec-ir-tool %t/unknown.mlir 2>&1 | FileCheck %t/unknown.mlir
// RUN: not hec-ir-tool %t/none.mlir 2>&1 | FileCheck %t/none.mlir
// RUN: not hec-ir-tool %t/lacks.mlir 2>&1 | FileCheck %t/lacks.mlir
// RUN: not hec-ir-tool %t/epilogue.mlir 2>&1 | FileCheck %t/epilogue.mlir
// RUN: sed 's/"cuda"/"cpu"/' %t/epilogue.mlir | hec-ir-tool /dev/stdin > /dev/null
// RUN: hec-ir-tool %t/gpu.mlir | FileCheck %t/gpu.mlir
// RUN: not hec-ir-tool %t/architecture.mlir 2>&1 | FileCheck %t/architecture.mlir

//--- known.mlir
// CHECK: hecate.target = "cpu"
module attributes {hecate.target = "cpu", hecate.settings = {train.precision = "bf16"}} {}

//--- gpu.mlir
// CHECK: hecate.target = "cuda:sm_100"
module attributes {hecate.target = "cuda:sm_100", hecate.settings = {train.precision = "fp32"}} {}

//--- lacks.mlir
// CHECK: lacks.mlir:[[@LINE+1]]:1: error: not yet: `train.precision = fp64` (target cuda)
module attributes {hecate.target = "cuda:sm_80", hecate.settings = {train.precision = "fp64"}} {}

//--- epilogue.mlir
!x = tensor<4x6xf32, ["T", "D"]>
!w = tensor<6x5xf32, ["D", "F"]>
!h = tensor<4x5xf32, ["T", "F"]>
module attributes {hecate.target = "cuda"} {
  func.func @forward(%x: !x, %w: !w) -> !h {
    %u = "moe.contract"(%x, %w) : (!x, !w) -> !h
    // CHECK: epilogue.mlir:[[@LINE+1]]:10: error: 'moe.fused': target cuda has no epilogues
    %r = "moe.fused"(%u) ({
    ^bb0(%b: !h):
      %s = "moe.silu"(%b) : (!h) -> !h
      vector.yield %s : !h
    }) {epilogue = true, operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : (!h) -> !h
    return %r : !h
  }
  func.func @called(%x: !x, %w: !w) -> !h {
    // CHECK: epilogue.mlir:[[@LINE+1]]:12: error: 'hk.call': target cuda has no epilogues
    %u:2 = "hk.call"(%x, %w) ({
    ^bb0(%b: !h):
      %s = "moe.silu"(%b) : (!h) -> !h
      vector.yield %s : !h
    }) {kernel = "matmul_nn", m = ["T"], n = ["F"], k = ["D"], operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 1>} : (!x, !w) -> (!h, !h)
    return %u#1 : !h
  }
}

//--- unknown.mlir
// CHECK: unknown.mlir:[[@LINE+1]]:1: error: there is no target 'cp'
module attributes {hecate.target = "cp"} {}

//--- none.mlir
// CHECK: none.mlir:[[@LINE+1]]:1: error: there is no target ''
module attributes {hecate.target = ""} {}

//--- architecture.mlir
// CHECK: architecture.mlir:[[@LINE+1]]:1: error: there is no target 'cpu:sm_80'
module attributes {hecate.target = "cpu:sm_80"} {}

// RUN: split-file %s %t
// RUN: hec-ir-tool %t/known.mlir | FileCheck %t/known.mlir
// RUN: not hec-ir-tool %t/unknown.mlir 2>&1 | FileCheck %t/unknown.mlir
// RUN: not hec-ir-tool %t/none.mlir 2>&1 | FileCheck %t/none.mlir
// RUN: not hec-ir-tool %t/architecture.mlir 2>&1 | FileCheck %t/architecture.mlir

//--- known.mlir
// CHECK: hecate.target = "cpu"
module attributes {hecate.target = "cpu", hecate.settings = {train.precision = "bf16"}} {}

//--- unknown.mlir
// CHECK: unknown.mlir:[[@LINE+1]]:1: error: there is no target 'cp'
module attributes {hecate.target = "cp"} {}

//--- none.mlir
// CHECK: none.mlir:[[@LINE+1]]:1: error: there is no target ''
module attributes {hecate.target = ""} {}

//--- architecture.mlir
// CHECK: architecture.mlir:[[@LINE+1]]:1: error: there is no target 'cpu:sm_80'
module attributes {hecate.target = "cpu:sm_80"} {}

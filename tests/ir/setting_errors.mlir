// RUN: split-file %s %t
// RUN: hec-ir-tool %t/known.mlir | FileCheck %t/known.mlir
// RUN: not hec-ir-tool %t/key.mlir 2>&1 | FileCheck %t/key.mlir
// RUN: not hec-ir-tool %t/text.mlir 2>&1 | FileCheck %t/text.mlir
// RUN: not hec-ir-tool %t/flag.mlir 2>&1 | FileCheck %t/flag.mlir
// RUN: not hec-ir-tool %t/range.mlir 2>&1 | FileCheck %t/range.mlir
// RUN: not hec-ir-tool %t/word.mlir 2>&1 | FileCheck %t/word.mlir
// RUN: not hec-ir-tool %t/pair.mlir 2>&1 | FileCheck %t/pair.mlir
//
// Settings are typed: a pass that reads one gets a value that the language could have given.

//--- known.mlir
// CHECK: train.optimizer.betas = array<f64: 9.000000e-01, 0.9
module attributes {hecate.settings = {parallel.rows_max = 64 : i64, parallel.bucket = 4096 : i64, parallel.logits = "whole",
  parallel.placement.memory = "1024B", parallel.placement.overlap = "auto(1, 2)", parallel.placement.calibrate = true,
  parallel.recompute = "elementwise(sparse = all)", train.optimizer.lr = 1.0e-3 : f64,
  train.optimizer.betas = array<f64: 0.9, 0.95>, train.parameters.embed = "frozen = true"}} {}

//--- key.mlir
// CHECK: key.mlir:[[@LINE+1]]:1: error: unknown setting 'parallel.rows_most'
module attributes {hecate.settings = {parallel.rows_most = 64 : i64}} {}

//--- text.mlir
// CHECK: text.mlir:[[@LINE+1]]:1: error: setting 'parallel.rows_max' has a value of another type, or out of its range
module attributes {hecate.settings = {parallel.rows_max = "1e+15"}} {}

//--- flag.mlir
// CHECK: flag.mlir:[[@LINE+1]]:1: error: setting 'cluster.nodes' has a value of another type, or out of its range
module attributes {hecate.settings = {cluster.nodes = true}} {}

//--- range.mlir
// CHECK: range.mlir:[[@LINE+1]]:1: error: setting 'parallel.bucket' has a value of another type, or out of its range
module attributes {hecate.settings = {parallel.bucket = 0 : i64}} {}

//--- word.mlir
// CHECK: word.mlir:[[@LINE+1]]:1: error: setting 'parallel.dense' has a value of another type, or out of its range
module attributes {hecate.settings = {parallel.dense = "auto"}} {}

//--- pair.mlir
// CHECK: pair.mlir:[[@LINE+1]]:1: error: setting 'train.optimizer.betas' has a value of another type, or out of its range
module attributes {hecate.settings = {train.optimizer.betas = array<f64: 0.9>}} {}

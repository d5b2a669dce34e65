// RUN: not hecate-opt %s 2>&1 | FileCheck %s
//
// Files call parameters by their paths: no two may have one.

!w = tensor<4x4xf32, ["D", "F"]>
module {
  "moe.param"() {sym_name = "w", type = !w, layers = 2, path = "layers.{}.w", init = "ones", decay = true, trainable = true, index_first = 0, index_stride = 2} : () -> ()
  // Iterations 1 and 3: beside those of the first one.
  "moe.param"() {sym_name = "v", type = !w, layers = 2, path = "layers.{}.w", init = "ones", decay = true, trainable = true, index_first = 1, index_stride = 2} : () -> ()
  // CHECK-NOT: error
  // CHECK: same_path_errors.mlir:[[@LINE+1]]:3: error: 'moe.param': has the path of another parameter
  "moe.param"() {sym_name = "u", type = !w, layers = 1, path = "layers.{}.w", init = "ones", decay = true, trainable = true, index_first = 3, index_stride = 1} : () -> ()
  "moe.param"() {sym_name = "a", type = !w, layers = 0, path = "z", init = "ones", decay = true, trainable = true} : () -> ()
  // CHECK: same_path_errors.mlir:[[@LINE+1]]:3: error: 'moe.param': has the path of another parameter
  "moe.param"() {sym_name = "b", type = !w, layers = 0, path = "z", init = "ones", decay = true, trainable = true} : () -> ()
  // CHECK-NOT: error
}

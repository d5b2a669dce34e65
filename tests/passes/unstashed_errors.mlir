// RUN: not hecate-opt %s 2>&1 | FileCheck %s
//
// What is fetched was stashed somewhere, in whatever order.

!x = tensor<4xf32, ["D"]>
module {
  "moe.slot"() {sym_name = "x", type = !x, layers = 0} : () -> ()
  "moe.slot"() {sym_name = "y", type = !x, layers = 0} : () -> ()
  func.func @f() {
    // CHECK-NOT: error
    // CHECK: _errors.mlir:[[@LINE+1]]:10: error: 'moe.fetch': nothing is stashed in its slot
    %x = "moe.fetch"() {slot = @x} : () -> !x
    %y = "moe.fetch"() {slot = @y} : () -> !x
    "moe.stash"(%x) {slot = @y} : (!x) -> ()
    // CHECK-NOT: error
    return
  }
}

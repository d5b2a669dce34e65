// RUN: not hec-ir-tool %s 2>&1 | FileCheck %s
//
// Attributes that are unknown or of another kind are all reported; rules, which rely on them, are not looked at.

!x = tensor<2x4x3xf32, ["batch", "T", "D"]>
!w = tensor<6x4xf32, ["D", "F"]>
!b = tensor<3xf32, ["D"]>

// CHECK: attribute_errors.mlir:[[@LINE+4]]:1: error: attribute 'hecate.batch' must be a 64-bit integer
// CHECK: :[[@LINE+3]]:1: error: unknown attribute 'hecate.color'
// CHECK: :[[@LINE+2]]:1: error: attribute 'hecate.settings' must be a dictionary
// CHECK: :[[@LINE+1]]:1: error: attribute 'hecate.target' must be a string
module attributes {hecate.batch = "8", hecate.color = 3, hecate.settings = ["a"], hecate.target = 3, hecate.world = 2, other.color = 3} {
  // CHECK: :[[@LINE+1]]:3: error: 'moe.param': attribute 'deviation' must be a floating-point number
  "moe.param"() {sym_name = "p1f", type = !w, layers = 0, path = "p", init = "normal", deviation = 1, decay = true, trainable = true} : () -> ()
  // CHECK: :[[@LINE+1]]:3: error: 'func.func': attribute 'argument_home' must be a list of strings
  func.func @faults(%x: !x) attributes {argument_home = [1]} {
    // CHECK: :[[@LINE+1]]:10: error: 'moe.neg': unknown attribute 'eps'
    %8 = "moe.neg"(%x) {eps = 1.0} : (!x) -> !x
    // What another operation may have is unknown here.
    // CHECK: :[[@LINE+1]]:11: error: 'moe.neg': unknown attribute 'capacity'
    %20 = "moe.neg"(%x) {capacity = 3.0} : (!x) -> !x
    // CHECK: :[[@LINE+1]]:11: error: 'moe.neg': unknown attribute 'adds'
    %21 = "moe.neg"(%x) {adds = [true]} : (!x) -> !x
    // CHECK: :[[@LINE+1]]:11: error: 'moe.neg': 'unit' must be a list of 1 to 64 symbols
    %22 = "moe.neg"(%x) {unit = ["block"]} : (!x) -> !x
    // CHECK: :[[@LINE+1]]:11: error: 'moe.sum': attribute 'adds' must be a list of true and false
    %23 = "moe.sum"(%x) {adds = [1]} : (!x) -> !b
    // CHECK: :[[@LINE+1]]:11: error: 'moe.fill': attribute 'home' must be a list of strings
    %24 = "moe.fill"() {value = 0.0, home = "arena+0"} : () -> !x
    %c0 = arith.constant 0 : index
    // CHECK: :[[@LINE+1]]:11: error: 'arith.constant': unknown attribute 'layers'
    %c1 = arith.constant {layers = 3} 1 : index
    // CHECK: :[[@LINE+1]]:5: error: 'scf.for': unknown attribute 'adds'
    scf.for %i = %c0 to %c1 step %c1 {
    } {adds = [true]}
    // CHECK-NOT: error: 'moe.exp'
    %25 = "moe.exp"(%x) : (!x) -> !b
    return
  }
}

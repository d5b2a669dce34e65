// RUN: not hec-ir-tool %s 2>&1 | FileCheck %s
//
// What homes may say, and of what.

!x = tensor<16xf32, ["D"]>
!y = tensor<4x16xf32, ["T", "D"]>
!s = tensor<f32>

module {
  "moe.slot"() {sym_name = "x", type = !x, layers = 0, offset = 0, stride = 64, rows = 1} : () -> ()
  "moe.slot"() {sym_name = "deep", type = !x, layers = 2, offset = 0, stride = 64, rows = 3} : () -> ()
  "moe.param"() {sym_name = "w", type = !x, layers = 2, path = "{}.w", init = "ones", decay = false, trainable = true, index_first = 0, index_stride = 1} : () -> ()
  // CHECK: home_errors.mlir:[[@LINE+1]]:3: error: 'func.func': has a home that is another argument's: "targets"
  func.func @swapped(%a: !s, %b: !s) attributes {argument_home = ["targets", "ids"]} { return }
  // CHECK: :[[@LINE+1]]:3: error: 'func.func': has a home that is no argument's: "arena+0"
  func.func @arena(%a: !s) attributes {argument_home = ["arena+0"]} { return }
  // CHECK: :[[@LINE+1]]:3: error: 'func.func': attribute 'argument_home' must have 2 elements
  func.func @few(%a: !s, %b: !s) attributes {argument_home = ["ids"]} { return }
  func.func @f() {
    // CHECK: :[[@LINE+1]]:10: error: 'moe.fill': has a home that cannot be read: "arena+1x"
    %0 = "moe.fill"() {value = 0.5, home = ["arena+1x"]} : () -> !x
    // CHECK: :[[@LINE+1]]:10: error: 'moe.fill': has a home that cannot be read: "arena+99999999999999999999"
    %1 = "moe.fill"() {value = 0.5, home = ["arena+99999999999999999999"]} : () -> !x
    // CHECK: :[[@LINE+1]]:10: error: 'moe.fill': has a home that cannot be read: "arena+064"
    %2 = "moe.fill"() {value = 0.5, home = ["arena+064"]} : () -> !x
    // CHECK: :[[@LINE+1]]:10: error: 'moe.fill': has a home that cannot be read: "arena+"
    %3 = "moe.fill"() {value = 0.5, home = ["arena+"]} : () -> !x
    // CHECK: :[[@LINE+1]]:10: error: 'moe.fill': has a home that cannot be read: "somewhere"
    %4 = "moe.fill"() {value = 0.5, home = ["somewhere"]} : () -> !x
    // CHECK: :[[@LINE+1]]:10: error: 'moe.fill': has a home that cannot be read: "slot @deep[i+3]"
    %5 = "moe.fill"() {value = 0.5, home = ["slot @deep[i+3]"]} : () -> !x
    // CHECK: :[[@LINE+1]]:10: error: 'moe.fill': has a home that cannot be read: "slot @deep["
    %6 = "moe.fill"() {value = 0.5, home = ["slot @deep["]} : () -> !x
    // CHECK: :[[@LINE+1]]:10: error: 'moe.fill': has a home that cannot be read: "slot @deep[]"
    %7 = "moe.fill"() {value = 0.5, home = ["slot @deep[]"]} : () -> !x
    // CHECK: :[[@LINE+1]]:10: error: 'moe.fill': has a home that cannot be read: "slot @deep[1"
    %8 = "moe.fill"() {value = 0.5, home = ["slot @deep[1"]} : () -> !x
    // CHECK: :[[@LINE+1]]:10: error: 'moe.fill': has a home that cannot be read: "slot @deep[-1]"
    %9 = "moe.fill"() {value = 0.5, home = ["slot @deep[-1]"]} : () -> !x
    // CHECK: :[[@LINE+1]]:11: error: 'moe.fill': has a home in a slot that does not exist: "slot @w[i]"
    %10 = "moe.fill"() {value = 0.5, home = ["slot @w[i]"]} : () -> !x
    // CHECK: :[[@LINE+1]]:11: error: 'moe.fill': has a home in a parameter that does not exist: "grad @x"
    %11 = "moe.fill"() {value = 0.5, home = ["grad @x"]} : () -> !x
    // CHECK: :[[@LINE+1]]:11: error: 'moe.fill': has a home without its layer: "slot @deep"
    %12 = "moe.fill"() {value = 0.5, home = ["slot @deep"]} : () -> !x
    // CHECK: :[[@LINE+1]]:11: error: 'moe.fill': has a home in a layer of what has none: "slot @x[0]"
    %13 = "moe.fill"() {value = 0.5, home = ["slot @x[0]"]} : () -> !x
    // CHECK: :[[@LINE+1]]:11: error: 'moe.fill': has a home in the next layer's parameter: "grad @w[i+1]"
    %14 = "moe.fill"() {value = 0.5, home = ["grad @w[i+1]"]} : () -> !x
    // CHECK: :[[@LINE+1]]:11: error: 'moe.fill': has a home that is another argument's: "ids"
    %15 = "moe.fill"() {value = 0.5, home = ["ids"]} : () -> !x
    // CHECK: :[[@LINE+1]]:11: error: 'moe.fill': has a home that holds no tensor: "none"
    %16 = "moe.fill"() {value = 0.5, home = ["none"]} : () -> !x
    // CHECK: :[[@LINE+1]]:11: error: 'moe.fill': attribute 'home' must have 1 elements
    %17 = "moe.fill"() {value = 0.5, home = ["arena+0", "arena+64"]} : () -> !x
    %18 = "moe.fill"() {value = 0.5} : () -> !y
    // CHECK: :[[@LINE+1]]:11: error: 'moe.sum': attribute 'adds' must have 1 elements
    %19 = "moe.sum"(%18) {adds = [], home = ["arena+0"]} : (!y) -> !x
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    // CHECK: :[[@LINE+1]]:11: error: 'scf.for': has a home that cannot be read: "arena"
    %20 = scf.for %i = %c0 to %c1 step %c1 iter_args(%x = %4) -> (!x) {
      scf.yield %x : !x
    } {argument_home = ["arena"], home = ["arena+0"]}
    return
  }
}

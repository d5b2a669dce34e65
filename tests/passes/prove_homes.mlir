// RUN: hecate-opt --passes=prove-homes %s | FileCheck %s
//
// Hand-placed, and right: a carried value with its history, a gradient in place, a buffer used twice.

// CHECK: hecate.stage = "prove-homes"
!x = tensor<16xf32, ["D"]>
module {
  "moe.slot"() {sym_name = "x", type = !x, layers = 2 : i64, offset = 0 : i64, stride = 64 : i64, rows = 3 : i64} : () -> ()
  func.func @forward() -> !x {
    %a = "moe.fill"() {value = 2.0 : f64, home = ["slot @x[0]"]} : () -> !x
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %r = scf.for %i = %c0 to %c2 step %c1 iter_args(%x = %a) -> (!x) {
      "moe.stash"(%x, %i) {slot = @x} : (!x, index) -> ()
      %s = "moe.silu"(%x) {home = ["arena+192"]} : (!x) -> !x
      %t = "moe.exp"(%s) {home = ["arena+192"]} : (!x) -> !x
      %y = "moe.add"(%x, %t) {home = ["slot @x[i+1]"]} : (!x, !x) -> !x
      scf.yield %y : !x
    } {argument_home = ["slot @x[i]"], home = ["slot @x[2]"]}
    return %r : !x
  }
  func.func @backward() {
    %c2 = arith.constant 2 : index
    %d0 = "moe.fetch"(%c2) {slot = @x, home = ["slot @x[2]"]} : (index) -> !x
    %d1 = "moe.neg"(%d0) {home = ["arena+192"]} : (!x) -> !x
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %r = scf.for %step = %c0 to %c2 step %c1 iter_args(%d = %d1) -> (!x) {
      %one = arith.constant 1 : index
      %i = arith.subi %one, %step : index
      %x = "moe.fetch"(%i) {slot = @x, home = ["slot @x[i]"]} : (index) -> !x
      %e = "moe.silu_grad"(%d, %x) {home = ["arena+192"]} : (!x, !x) -> !x
      scf.yield %e : !x
    } {argument_home = ["arena+192"], home = ["arena+192"]}
    return
  }
}

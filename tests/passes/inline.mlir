// RUN: hecate-opt --passes=inline %s | FileCheck %s --implicit-check-not=call
// RUN: hecate-opt --passes=inline --locations %s | FileCheck %s --check-prefix=AT
//
// Calls of calls, inside a loop; the functions go, the locations keep the calls.

!x = tensor<2x4xf32, ["batch", "D"]>

// CHECK-LABEL: func.func @forward(
// CHECK-SAME:    %[[X:.*]]: tensor
// CHECK:         scf.for {{.*}} iter_args(%[[A:.*]] = %[[X]])
// CHECK-NEXT:      %[[S:.*]] = "moe.silu"(%[[A]]) {unit = [@outer, @inner]}
// CHECK-NEXT:      %[[T:.*]] = "moe.tanh"(%[[S]]) {unit = [@outer]}
// CHECK-NEXT:      %[[Y:.*]] = "moe.add"(%[[T]], %[[A]])
// CHECK-NEXT:      scf.yield %[[Y]]
// CHECK:         return

// AT: "moe.silu"{{.*}} loc(#[[S:loc[0-9]*]])
// AT: "moe.tanh"{{.*}} loc(#[[T:loc[0-9]*]])
// AT-DAG: #[[FILE:loc[0-9]*]] = loc("m.moe":2:5)
// AT-DAG: #[[INNER:loc[0-9]*]] = loc("m.moe":3:5)
// AT-DAG: #[[OUTER:loc[0-9]*]] = loc("m.moe":9:5)
// AT-DAG: #[[CALL:loc[0-9]*]] = loc("outer"(#[[OUTER]]))
// AT-DAG: #[[SITE:loc[0-9]*]] = loc(callsite(#[[INNER]] at #[[CALL]]))
// AT-DAG: #[[NEST:loc[0-9]*]] = loc("inner"(#[[SITE]]))
// AT-DAG: #[[DEEP:loc[0-9]*]] = loc(callsite(#[[FILE]] at #[[NEST]]))
// AT-DAG: #[[S]] = loc("s"(#[[DEEP]]))
module {
  func.func private @inner(%a: !x) -> !x {
    %s = "moe.silu"(%a) : (!x) -> !x loc("s"("m.moe":2:5))
    return %s : !x
  }
  func.func private @outer(%a: !x, %i: index) -> (!x, !x) {
    %s = func.call @inner(%a) : (!x) -> !x loc("m.moe":3:5)
    %t = "moe.tanh"(%s) : (!x) -> !x loc("t"("m.moe":4:5))
    return %t, %a : !x, !x
  }
  func.func @forward(%x: !x) -> !x {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c3 = arith.constant 3 : index
    %r = scf.for %i = %c0 to %c3 step %c1 iter_args(%a = %x) -> (!x) {
      %t, %b = func.call @outer(%a, %i) : (!x, index) -> (!x, !x) loc("m.moe":9:5)
      %y = "moe.add"(%t, %b) : (!x, !x) -> !x
      scf.yield %y : !x
    }
    return %r : !x
  }
}

// RUN: hecate-opt --passes=distribute-dense %s | FileCheck %s
// RUN: sed 's/"replicate"/"states"/' %s | hecate-opt --passes=distribute-dense | FileCheck %s --check-prefix=STATES
// RUN: sed 's/hecate.world = 2 : i64, //' %s | hecate-opt --passes=distribute-dense | FileCheck %s --check-prefix=ONE
//
// Gradients are complete behind their last accumulate: before the loop, in its body, behind it. `both` is
// added to before and behind the loop, `shared` in it; owned experts are in none, sets that all have
// in one as a whole.
// STATES-COUNT-3: "fssdp.reduce_scatter"
// STATES-NOT: fssdp.all_reduce
// ONE-NOT: fssdp

!d = tensor<6xf32, ["D"]>
!e = tensor<3x6xf32, ["E", "D"]>
module attributes {hecate.world = 2 : i64, hecate.settings = {parallel.dense = "replicate"}} {
  "moe.set"() {sym_name = "owned", experts = 3 : i64, topk = 2 : i64, layers = 4 : i64, owned = true, wave_rows = 64 : i64} : () -> ()
  "moe.set"() {sym_name = "everywhere", experts = 3 : i64, topk = 2 : i64, layers = 4 : i64} : () -> ()
  "moe.param"() {sym_name = "head", type = !d, layers = 0 : i64, path = "head", init = "ones", decay = true, trainable = true} : () -> ()
  "moe.param"() {sym_name = "both", type = !d, layers = 0 : i64, path = "both", init = "ones", decay = true, trainable = true} : () -> ()
  "moe.param"() {sym_name = "shared", type = !d, layers = 0 : i64, path = "shared", init = "ones", decay = true, trainable = true} : () -> ()
  "moe.param"() {sym_name = "w", type = !d, layers = 4 : i64, path = "layers.{}.w", init = "ones", decay = true, trainable = true, index_first = 0 : i64, index_stride = 1 : i64} : () -> ()
  "moe.param"() {sym_name = "v", type = !d, layers = 4 : i64, path = "layers.{}.v", init = "ones", decay = true, trainable = true, index_first = 0 : i64, index_stride = 1 : i64} : () -> ()
  "moe.param"() {sym_name = "owned.w", type = !e, layers = 4 : i64, path = "layers.{}.a.{e}.w", init = "ones", decay = true, trainable = true, index_first = 0 : i64, index_stride = 1 : i64, set = @owned} : () -> ()
  "moe.param"() {sym_name = "everywhere.w", type = !e, layers = 4 : i64, path = "layers.{}.b.{e}.w", init = "ones", decay = true, trainable = true, index_first = 0 : i64, index_stride = 1 : i64, set = @everywhere} : () -> ()
  // CHECK-LABEL: func.func @backward
  func.func @backward(%d: !d, %e: !e) {
    "moe.accumulate"(%d) {param = @both} : (!d) -> ()
    // CHECK: "moe.accumulate"(%{{.*}}) {param = @head}
    // CHECK-NEXT: "fssdp.all_reduce"() {bytes = 24 : i64, params = ["head"]}
    "moe.accumulate"(%d) {param = @head} : (!d) -> ()
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c3 = arith.constant 3 : index
    %c4 = arith.constant 4 : index
    // CHECK: scf.for
    scf.for %k = %c0 to %c4 step %c1 {
      // CHECK-NEXT: %[[I:[a-z0-9_]+]] = arith.subi
      %i = arith.subi %c3, %k : index
      "moe.accumulate"(%d, %i) {param = @w} : (!d, index) -> ()
      "moe.accumulate"(%e, %i) {param = @owned.w} : (!e, index) -> ()
      "moe.accumulate"(%e, %i) {param = @everywhere.w} : (!e, index) -> ()
      "moe.accumulate"(%d) {param = @shared} : (!d) -> ()
      // CHECK: "moe.accumulate"(%{{.*}}, %[[I]]) {param = @v}
      // CHECK-NEXT: "fssdp.all_reduce"(%[[I]]) {bytes = 120 : i64, params = ["w", "everywhere", "v"]}
      // CHECK-NEXT: "moe.accumulate"(%{{.*}}, %[[I]]) {param = @owned.w}
      "moe.accumulate"(%d, %i) {param = @v} : (!d, index) -> ()
      "moe.accumulate"(%e, %i) {param = @owned.w} : (!e, index) -> ()
    }
    // CHECK: "moe.accumulate"(%{{.*}}) {param = @both}
    // CHECK-NEXT: "fssdp.all_reduce"() {bytes = 48 : i64, params = ["both", "shared"]}
    "moe.accumulate"(%d) {param = @both} : (!d) -> ()
    return
  }
}

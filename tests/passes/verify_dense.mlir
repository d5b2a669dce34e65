// RUN: hecate-opt --passes=gather-dense %s > %t.mlir && FileCheck %s < %t.mlir
// RUN: hecate-opt --passes=verify-dense %t.mlir | FileCheck %s
// RUN: not hecate-opt --passes=verify-dense %s 2>&1 | FileCheck %s --check-prefix=MISSING
// RUN: sed '0,/fssdp.await_gather/{/fssdp.await_gather/d}' %t.mlir > %t.1.mlir && not hecate-opt --passes=verify-dense %t.1.mlir 2>&1 | FileCheck %s --check-prefix=AWAIT
// RUN: sed '/ahead = -1/d' %t.mlir > %t.2.mlir && not hecate-opt --passes=verify-dense %t.2.mlir 2>&1 | FileCheck %s --check-prefix=AHEAD
// RUN: sed '0,/fssdp.forget/{/fssdp.forget/d}' %t.mlir > %t.3.mlir && not hecate-opt --passes=verify-dense %t.3.mlir 2>&1 | FileCheck %s --check-prefix=FORGET
// RUN: sed '/"fssdp.forget"(%arg/d; s/^\( *\)\("fssdp.await_gather"(\(%arg[0-9]*\)) \(.*\)\)$/\1\2\n\1"fssdp.forget"(\3) \4/' %t.mlir > %t.4.mlir && not hecate-opt --passes=verify-dense %t.4.mlir 2>&1 | FileCheck %s --check-prefix=EARLY
// RUN: sed '/fssdp.reduce_scatter/d' %t.mlir > %t.5.mlir && not hecate-opt --passes=verify-dense %t.5.mlir 2>&1 | FileCheck %s --check-prefix=ADDED
// RUN: sed 's/layers = 3/layers = 2/; s/constant 2/constant 1/; s/constant 3/constant 2/' %t.5.mlir > %t.9.mlir && not hecate-opt --passes=verify-dense %t.9.mlir 2>&1 | FileCheck %s --check-prefix=UNSUMMED
// RUN: sed '/"fssdp.forget"(%arg/d' %t.mlir > %t.10.mlir && not hecate-opt --passes=verify-dense %t.10.mlir 2>&1 | FileCheck %s --check-prefix=KEPT
// RUN: sed '/^ *.. PLANT$/s/^.*$/"fssdp.reduce_scatter"(%i) {params = ["w"]} : (index) -> ()/' %s > %t.6.mlir && hecate-opt --passes=gather-dense %t.6.mlir > %t.7.mlir && not hecate-opt --passes=verify-dense %t.7.mlir 2>&1 | FileCheck %s --check-prefix=SOON
// RUN: sed 's/parallel.dense = "shard"/parallel.dense = "states"/' %s | hecate-opt --passes=gather-dense | FileCheck %s --check-prefix=STATES
//
// A layer's parameters come while the layer before computes, and those of the head while the layers do. What is
// planted: no gather at all, no await, no gather of the next layer, nothing forgotten, forgotten before the read, a gradient that
// is not summed, of two layers and of three, which share two slots, and one that is summed before its last addition.
// MISSING: error: {{.*}}reads a parameter before its await, or when forgotten (@embed, layer 0)
// AWAIT: error: {{.*}}reads a parameter before its await, or when forgotten (@embed, layer 0)
// AHEAD: error: {{.*}}awaits what was not started (@w, layer 1)
// FORGET: error: {{.*}}ends with parameters that were not forgotten (@embed, layer 0)
// EARLY: error: {{.*}}reads a parameter before its await, or when forgotten (@w, layer 0)
// ADDED: error: {{.*}}adds to a slot in use (@w, layer 0)
// KEPT: error: {{.*}}gathers into a slot in use (@w, layer 2)
// UNSUMMED: error: {{.*}}ends with a gradient that was not summed (@w, layer 0)
// SOON: error: {{.*}}adds to a gradient behind its sum (@w, layer 2)
// STATES-NOT: fssdp.all_gather

!d = tensor<6xf32, ["D"]>
module attributes {hecate.world = 2 : i64, hecate.settings = {parallel.dense = "shard"}} {
  "moe.param"() {sym_name = "embed", type = !d, layers = 0 : i64, path = "embed", init = "ones", decay = true, trainable = false, frozen = true} : () -> ()
  "moe.param"() {sym_name = "head", type = !d, layers = 0 : i64, path = "head", init = "ones", decay = true, trainable = false, frozen = true} : () -> ()
  "moe.param"() {sym_name = "table", type = !d, layers = 0 : i64, path = "table", init = "ones", decay = true, trainable = false} : () -> ()
  "moe.param"() {sym_name = "w", type = !d, layers = 3 : i64, path = "layers.{}.w", init = "ones", decay = true, trainable = true, index_first = 0 : i64, index_stride = 1 : i64} : () -> ()
  // CHECK-LABEL: func.func @forward
  func.func @forward(%d: !d) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c3 = arith.constant 3 : index
    // CHECK: "fssdp.all_gather"() {params = ["embed"]}
    // CHECK: "fssdp.await_gather"() {params = ["embed"]}
    // CHECK-NEXT: moe.add
    // CHECK-NEXT: "fssdp.forget"() {params = ["embed"]}
    %embed = "moe.get"() {param = @embed} : () -> !d
    %table = "moe.get"() {param = @table} : () -> !d
    %x = "moe.add"(%embed, %table) : (!d, !d) -> !d
    // CHECK: scf.for
    scf.for %i = %c0 to %c3 step %c1 {
      // CHECK-NEXT: "fssdp.all_gather"(%[[I:arg[0-9]+]]) {ahead = -1 : i64, params = ["w"]}
      // CHECK-NEXT: "fssdp.all_gather"(%[[I]]) {ahead = 1 : i64, params = ["head"]}
      // CHECK: "fssdp.await_gather"(%[[I]]) {params = ["w"]}
      // CHECK-NEXT: moe.add
      // CHECK-NEXT: "fssdp.forget"(%[[I]]) {params = ["w"]}
      %w = "moe.get"(%i) {param = @w} : (index) -> !d
      %y = "moe.add"(%x, %w) : (!d, !d) -> !d
    }
    // CHECK: "fssdp.await_gather"() {params = ["head"]}
    // CHECK-NEXT: moe.add
    // CHECK-NEXT: "fssdp.forget"() {params = ["head"]}
    %head = "moe.get"() {param = @head} : () -> !d
    %z = "moe.add"(%x, %head) : (!d, !d) -> !d
    return
  }
  // CHECK-LABEL: func.func @backward
  func.func @backward(%d: !d) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c3 = arith.constant 3 : index
    // CHECK: scf.for
    // CHECK: "fssdp.all_gather"(%{{.*}}) {ahead = 1 : i64, params = ["w"]}
    scf.for %k = %c0 to %c3 step %c1 {
      %i = arith.subi %c2, %k : index
      %w = "moe.get"(%i) {param = @w} : (index) -> !d
      %y = "moe.mul"(%d, %w) : (!d, !d) -> !d
      "moe.accumulate"(%y, %i) {param = @w} : (!d, index) -> ()
      // PLANT
      "moe.accumulate"(%d, %i) {param = @w} : (!d, index) -> ()
      "fssdp.reduce_scatter"(%i) {params = ["w"]} : (index) -> ()
    }
    return
  }
}

// RUN: hecate-opt --passes=gather-dense %s > %t.mlir && FileCheck %s < %t.mlir
// RUN: hecate-opt --passes=verify-dense %t.mlir | FileCheck %s
// RUN: sed 's/copy_alone = true, //; s/\(sym_name = "both",\)/copy_alone = true, \1/' %t.mlir > %t.1.mlir && not hecate-opt --passes=verify-dense %t.1.mlir 2>&1 | FileCheck %s --check-prefix=PLAIN
//
// A parameter that all operations read as rounded comes as its copy in bf16 alone; `both` is also read as it is, `gain`
// only so, and nothing reads `unread`. What is planted: `both` comes as its copy.
// CHECK: "moe.param"()
// CHECK-NOT: copy_alone
// CHECK-SAME: sym_name = "both"
// CHECK: "moe.param"()
// CHECK-SAME: copy_alone = true
// CHECK-SAME: sym_name = "w"
// CHECK-NOT: copy_alone
// CHECK: "fssdp.all_gather"() {params = ["w", "both", "gain"]}
// PLAIN: error: {{.*}}reads a parameter of which the copy comes alone (@both, layer 0)

!x = tensor<4x6xf32, ["T", "D"]>
!y = tensor<4x8xf32, ["T", "F"]>
!w = tensor<6x8xf32, ["D", "F"]>
!r = tensor<6x8xbf16, ["D", "F"]>
!g = tensor<6xf32, ["D"]>
module attributes {hecate.world = 2 : i64, hecate.settings = {parallel.dense = "shard"}} {
  "moe.param"() {sym_name = "both", type = !w, layers = 0 : i64, path = "both", init = "ones", decay = true, trainable = false, frozen = true} : () -> ()
  "moe.param"() {sym_name = "w", type = !w, layers = 0 : i64, path = "w", init = "ones", decay = true, trainable = false, frozen = true} : () -> ()
  "moe.param"() {sym_name = "gain", type = !g, layers = 0 : i64, path = "gain", init = "ones", decay = true, trainable = false, frozen = true} : () -> ()
  "moe.param"() {sym_name = "unread", type = !w, layers = 0 : i64, path = "unread", init = "ones", decay = true, trainable = false, frozen = true} : () -> ()
  func.func @forward(%x: !x) {
    %w = "moe.get"() {param = @w} : () -> !r
    %copy = "moe.get"() {param = @both} : () -> !r
    %both = "moe.get"() {param = @both} : () -> !w
    %gain = "moe.get"() {param = @gain} : () -> !g
    %a = "moe.contract"(%x, %w) {rounds = true} : (!x, !r) -> !y
    %b = "moe.contract"(%x, %copy) {rounds = true} : (!x, !r) -> !y
    %c = "moe.add"(%both, %gain) : (!w, !g) -> !w
    return
  }
}

// Faults of a placed module are reported at their operation, all in one run.
//
// RUN: rm -f %t.c && sh %S/inputs/exits.sh 1 hecatec --compile-from=place-buffers -S -o %t.c %s 2>&1 \
// RUN:   | FileCheck %s
// RUN: not test -e %t.c
// RUN: sed '/MORE/d' %s > %t.mlir
// RUN: sed 's/hecate.arena_bytes = 4096 : i64, //' %t.mlir > %t.lacks.mlir
// RUN: sh %S/inputs/exits.sh 1 hecatec --compile-from=place-buffers -S -o - %t.lacks.mlir 2>&1 \
// RUN:   | FileCheck %s --check-prefix=LACKS
// LACKS: error: lacks hecate.arena_bytes: run place-buffers first
// RUN: sed 's/stride = 256 : i64, //' %t.mlir > %t.stride.mlir
// RUN: sh %S/inputs/exits.sh 1 hecatec --compile-from=place-buffers -S -o - %t.stride.mlir 2>&1 \
// RUN:   | FileCheck %s --check-prefix=STRIDE
// STRIDE: error: 'moe.slot': lacks stride: run place-buffers first

!bd = tensor<2x8x4xf32, ["batch", "T", "D"]>
!d = tensor<4xf32, ["D"]>
!ids = tensor<2x8xi32, ["batch", "T"]>
!s = tensor<f32>

module @faults attributes {hecate.arena_bytes = 4096 : i64, hecate.batch = 2 : i64, hecate.positions = 8 : i64, hecate.vocabulary = 4 : i64, hecate.param_elements = 16 : i64} {
  "moe.param"() {sym_name = "w", type = !d, layers = 0 : i64, path = "w", init = "ones", decay = false, trainable = true, offset = 0 : i64, elements = 4 : i64, layout = "rows", matrix = [1, 4]} : () -> ()
  "moe.slot"() {sym_name = "logits", type = !bd, layers = 0 : i64, offset = 0 : i64, stride = 256 : i64, rows = 1 : i64} : () -> ()
  "moe.slot"() {sym_name = "deep", type = !bd, layers = 2 : i64, offset = 0 : i64, stride = 256 : i64, rows = 2 : i64} : () -> ()
  func.func @forward(%ids: !ids, %targets: !ids, %scale: !s, %share: !s) -> (!s, !s, !s) {
    // CHECK: errors.mlir:[[#@LINE+1]]:{{.*}}error: 'moe.fill': has no home for value 0: run place-buffers first
    %a = "moe.fill"() {value = 0.5 : f64} : () -> !bd // MORE
    // CHECK: [[#@LINE+1]]:{{.*}}error: 'moe.fill': has a home that cannot be read: "arena+1x"
    %b = "moe.fill"() {value = 0.5 : f64, home = ["arena+1x"]} : () -> !bd // MORE
    // CHECK: [[#@LINE+1]]:{{.*}}error: 'moe.fill': has a home that cannot be read: "arena+99999999999999999999"
    %c = "moe.fill"() {value = 0.5 : f64, home = ["arena+99999999999999999999"]} : () -> !bd // MORE
    // CHECK: [[#@LINE+1]]:{{.*}}error: 'moe.fill': has a home that cannot be read: "slot @w"
    %d = "moe.fill"() {value = 0.5 : f64, home = ["slot @w"]} : () -> !bd // MORE
    // CHECK: [[#@LINE+1]]:{{.*}}error: 'moe.fill': has a home that cannot be read: "slot @none[i]"
    %e = "moe.fill"() {value = 0.5 : f64, home = ["slot @none[i]"]} : () -> !bd // MORE
    // CHECK: [[#@LINE+1]]:{{.*}}error: 'moe.fill': has a home that cannot be read: "somewhere"
    %f = "moe.fill"() {value = 0.5 : f64, home = ["somewhere"]} : () -> !bd // MORE
    %g = "moe.fill"() {value = 0.5 : f64, home = ["slot @deep[i]"]} : () -> !bd // MORE
    return %scale, %scale, %share : !s, !s, !s
  }
  func.func @backward(%ids: !ids, %targets: !ids, %scale: !s, %share: !s) {
    return
  }
}

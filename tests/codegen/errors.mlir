// Faults of a placed module are reported at their operation, and nothing is written.
//
// RUN: split-file --no-leading-lines %s %t && cd %t
// RUN: sh %S/inputs/exits.sh 1 hecatec --compile-from=place-buffers -S -o no.c faults.mlir 2>&1 \
// RUN:   | FileCheck faults.mlir
// RUN: not test -e no.c
// RUN: hecatec --compile-from=place-buffers -S -o - sound.mlir | FileCheck sound.mlir
// RUN: sed 's/hecate.arena_bytes = 4096 : i64, //' sound.mlir > lacks.mlir
// RUN: sh %S/inputs/exits.sh 1 hecatec --compile-from=place-buffers -S -o - lacks.mlir 2>&1 \
// RUN:   | FileCheck %s --check-prefix=LACKS
// LACKS: error: lacks hecate.arena_bytes: run place-buffers first
// RUN: sed 's/stride = 256 : i64, //' sound.mlir > stride.mlir
// RUN: sh %S/inputs/exits.sh 1 hecatec --compile-from=place-buffers -S -o - stride.mlir 2>&1 \
// RUN:   | FileCheck %s --check-prefix=STRIDE
// STRIDE: error: 'moe.slot': homes: a slot has no place: run place-buffers first
//
// Ranks with parts of dense parameters gather them: without that pass there is no program.
// RUN: sh %S/inputs/exits.sh 1 hecatec -S -o no.c --set cluster.devices=2 --set parallel.dense=shard \
// RUN:   --passes=check-shapes,group-experts,inline,differentiate,distribute-experts,distribute-dense,select-kernels,place-buffers \
// RUN:   %S/../../examples/tiny.moe 2>&1 | FileCheck %s --check-prefix=UNITS
// RUN: not test -e no.c
// UNITS: error: has parts of dense parameters: run gather-dense first
//
// Each reads well; what is read is not what was written. No pass runs: the proof does.
// RUN: sed 's/home = \["arena+512"\]//' sound.mlir > home.mlir
// RUN: sh %S/inputs/exits.sh 1 hecatec --compile-from=place-buffers -S -o - home.mlir 2>&1 \
// RUN:   | FileCheck %s --check-prefix=HOME
// HOME: error: home.mlir: no program has this IR
// HOME: home.mlir:14:10: error: 'moe.neg': homes: a value has no home: run place-buffers first
// RUN: sed 's/arena+768/arena+512/' sound.mlir > over.mlir
// RUN: sh %S/inputs/exits.sh 1 hecatec --compile-from=place-buffers -S -o no.c over.mlir 2>&1 \
// RUN:   | FileCheck %s --check-prefix=OVER
// OVER: over.mlir:16:10: error: 'moe.add': homes: an operand's bytes were overwritten
// RUN: sed 's/arena+768/arena+4032/' sound.mlir > outside.mlir
// RUN: sh %S/inputs/exits.sh 1 hecatec --compile-from=place-buffers -S -o no.c outside.mlir 2>&1 \
// RUN:   | FileCheck %s --check-prefix=OUTSIDE
// OUTSIDE: outside.mlir:15:10: error: 'moe.exp': homes: a value lies outside the arena
// RUN: sed 's/return \(.scale, \)/return \1\1/; s/-> (!s, /-> (!s, !s, /; s/: !s, !s, !s/: !s, !s, !s, !s/' sound.mlir > losses.mlir
// RUN: sh %S/inputs/exits.sh 1 hecatec --compile-from=place-buffers -S -o no.c losses.mlir 2>&1 \
// RUN:   | FileCheck %s --check-prefix=LOSSES
// LOSSES: error: 'func.func': must return the loss, the cross entropy and the auxiliary loss, and one for each slot that holds a loss
// RUN: not test -e no.c
// RUN: sh %S/inputs/exits.sh 1 hecatec --compile-from=place-buffers --explain=memory outside.mlir 2>&1 \
// RUN:   | FileCheck %s --check-prefix=OUTSIDE

//--- sound.mlir
!bd = tensor<2x8x4xf32, ["batch", "T", "D"]>
!d = tensor<4xf32, ["D"]>
!ids = tensor<2x8xi32, ["batch", "T"]>
!s = tensor<f32>

module @sound attributes {hecate.arena_bytes = 4096 : i64, hecate.batch = 2 : i64, hecate.positions = 8 : i64, hecate.vocabulary = 4 : i64, hecate.param_elements = 16 : i64} {
  "moe.param"() {sym_name = "w", type = !d, layers = 0 : i64, path = "w", init = "ones", decay = false, trainable = true, offset = 0 : i64, elements = 16 : i64, layout = "rows", matrix = [1, 4]} : () -> ()
  "moe.slot"() {sym_name = "logits", type = !bd, layers = 0 : i64, holds = "logits", observed = true, offset = 0 : i64, stride = 256 : i64, rows = 1 : i64} : () -> ()
  // CHECK: forward(
  func.func @forward(%ids: !ids, %targets: !ids, %scale: !s, %auxiliary_scale: !s) -> (!s, !s, !s) attributes {argument_home = ["ids", "targets", "scale", "auxiliary_scale"]} {
    %x = "moe.fill"() {value = 0.5 : f64, home = ["slot @logits"]} : () -> !bd
    "moe.stash"(%x) {slot = @logits} : (!bd) -> ()
    // CHECK: m->forward
    %a = "moe.neg"(%x) {home = ["arena+512"]} : (!bd) -> !bd
    %b = "moe.exp"(%x) {home = ["arena+768"]} : (!bd) -> !bd
    %c = "moe.add"(%a, %b) {home = ["arena+1024"]} : (!bd, !bd) -> !bd
    return %scale, %scale, %auxiliary_scale : !s, !s, !s
  }
  func.func @backward(%ids: !ids, %targets: !ids, %scale: !s, %auxiliary_scale: !s) attributes {argument_home = ["ids", "targets", "scale", "auxiliary_scale"]} {
    return
  }
}

//--- faults.mlir
!bd = tensor<2x8x4xf32, ["batch", "T", "D"]>
!ids = tensor<2x8xi32, ["batch", "T"]>
!s = tensor<f32>
module @faults attributes {hecate.arena_bytes = 4096 : i64, hecate.batch = 2 : i64, hecate.positions = 8 : i64, hecate.vocabulary = 4 : i64, hecate.param_elements = 16 : i64} {
  "moe.slot"() {sym_name = "deep", type = !bd, layers = 2, offset = 0, stride = 256, rows = 3} : () -> ()
  func.func @forward(%ids: !ids, %targets: !ids, %scale: !s, %auxiliary_scale: !s) -> (!s, !s, !s) {
    // CHECK: faults.mlir:[[#@LINE+1]]:{{.*}}error: 'moe.fill': has a home that cannot be read: "slot @deep[i+3]"
    %a = "moe.fill"() {value = 0.5, home = ["slot @deep[i+3]"]} : () -> !bd
    // CHECK: faults.mlir:[[#@LINE+1]]:{{.*}}error: 'moe.fill': has a home in a slot that does not exist: "slot @none[i]"
    %b = "moe.fill"() {value = 0.5, home = ["slot @none[i]"]} : () -> !bd
    return %scale, %scale, %auxiliary_scale : !s, !s, !s
  }
}

// RUN: hecate-opt --passes=select-kernels,place-buffers %s > %t.mlir
// RUN: FileCheck %s --input-file=%t.mlir --check-prefix=PLACED
// RUN: hecate-opt --passes=prove-homes %t.mlir > /dev/null
//
// What a call says of its weights and what the parameter says are compared, so text cannot claim panels that are not
// there. All matrices have 64 columns: they take the same room in either layout.
//
// RUN: sed '/sym_name = "w"/s/"panels"/"rows"/' %t.mlir > %t.rows.mlir
// RUN: not hecate-opt --passes=prove-homes %t.rows.mlir 2>&1 | FileCheck %s --check-prefix=OTHER
// RUN: sed '/kernel = "matmul_nn"/s/"panels"/"rows"/' %t.mlir > %t.call.mlir
// RUN: not hecate-opt --passes=prove-homes %t.call.mlir 2>&1 | FileCheck %s --check-prefix=OTHER
// RUN: sed '/kernel = "matmul_nn"/s/layout = "panels", //' %t.mlir > %t.none.mlir
// RUN: not hecate-opt --passes=prove-homes %t.none.mlir 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: sed '/sym_name = "w"/s/matrix = .64, 64./matrix = [32, 128]/' %t.mlir > %t.matrix.mlir
// RUN: not hecate-opt --passes=prove-homes %t.matrix.mlir 2>&1 | FileCheck %s --check-prefix=MATRIX
//
// A table in panels, as its product says, too: but it is gathered from.
// RUN: sed -e '/sym_name = "t"/s/"rows"/"panels"/' -e '/kernel = "matmul_nt"/s/"rows"/"panels"/' %t.mlir > %t.gather.mlir
// RUN: not hecate-opt --passes=prove-homes %t.gather.mlir 2>&1 | FileCheck %s --check-prefix=GATHER
//
// A gradient in panels, to which a tensor is added element by element.
// RUN: sed -e '/sym_name = "late"/s/"rows"/"panels"/' -e '/n = ."H"/s/layout = "rows"/layout = "panels"/' %t.mlir > %t.late.mlir
// RUN: not hecate-opt --passes=prove-homes %t.late.mlir 2>&1 | FileCheck %s --check-prefix=LATE
//
// hecatec refuses it, too, before it emits anything.
// RUN: sed 's/module attributes {/&hecate.batch = 4 : i64, hecate.positions = 1 : i64, hecate.vocabulary = 16 : i64, /' %t.call.mlir > %t.text.mlir
// RUN: not hecatec --compile-from=place-buffers -S -o %t.c %t.text.mlir 2>&1 | FileCheck %s --check-prefix=OTHER
// RUN: not test -e %t.c

// PLACED: layout = "rows"{{.*}}sym_name = "t"
// PLACED: layout = "panels"{{.*}}sym_name = "w"
// PLACED: kernel = "matmul_nn", layout = "panels"
// PLACED: kernel = "matmul_nt", layout = "rows"
// OTHER:  error: 'hk.call': homes: its weights lie in another layout than it says
// NONE:   error: 'hk.call': homes: does not say how its weights lie: run place-buffers first
// MATRIX: error: 'hk.call': homes: its weights lie in panels of another matrix
// GATHER: error: 'hk.call': homes: takes what lies in panels for rows
// LATE:   error: 'moe.accumulate': homes: takes what lies in panels for rows
!x = tensor<4x64xf32, ["T", "D"]>
!h = tensor<4x64xf32, ["T", "H"]>
!i = tensor<4xi32, ["T"]>
!t = tensor<16x64xf32, ["V", "D"]>
!w = tensor<64x64xf32, ["D", "F"]>
!late = tensor<64x64xf32, ["D", "H"]>
module {
  "moe.param"() {sym_name = "t", type = !t, layers = 0 : i64, path = "t", init = "ones", decay = true, trainable = true} : () -> ()
  "moe.param"() {sym_name = "w", type = !w, layers = 0 : i64, path = "w", init = "ones", decay = true, trainable = true} : () -> ()
  "moe.param"() {sym_name = "late", type = !late, layers = 0 : i64, path = "late", init = "ones", decay = true, trainable = true} : () -> ()
  func.func @forward(%i: !i) -> (tensor<4x64xf32, ["T", "F"]>, tensor<4x16xf32, ["T", "V"]>) {
    %w = "moe.get"() {param = @w} : () -> !w
    %t = "moe.get"() {param = @t} : () -> !t
    %x = "moe.gather"(%t, %i) : (!t, !i) -> !x
    %y = "moe.contract"(%x, %w) : (!x, !w) -> tensor<4x64xf32, ["T", "F"]>
    %z = "moe.contract"(%x, %t) : (!x, !t) -> tensor<4x16xf32, ["T", "V"]>
    return %y, %z : tensor<4x64xf32, ["T", "F"]>, tensor<4x16xf32, ["T", "V"]>
  }
  func.func @backward() {
    %x = "moe.fill"() {value = 1.0 : f64} : () -> !x
    %late = "moe.get"() {param = @late} : () -> !late
    %h = "moe.contract"(%x, %late) : (!x, !late) -> !h
    %d = "moe.contract"(%x, %h) : (!x, !h) -> !late
    "moe.accumulate"(%d) {param = @late} : (!late) -> ()
    "moe.accumulate"(%d) {param = @late} : (!late) -> ()
    return
  }
}

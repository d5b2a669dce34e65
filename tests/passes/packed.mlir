// RUN: hecate-opt --passes=use-bf16,simplify,select-kernels,place-buffers %s > %t.mlir
// RUN: FileCheck %s --input-file=%t.mlir --check-prefix=PLACED
// RUN: hecate-opt --passes=prove-homes %t.mlir > /dev/null
//
// Frozen weights that GEMMs alone read stay packed, but heads; parameters and calls say so, and both are compared.
// RUN: sed '/sym_name = "w"/s/"fp8"/"mxfp4"/' %t.mlir > %t.other.mlir
// RUN: not hecate-opt --passes=prove-homes %t.other.mlir 2>&1 | FileCheck %s --check-prefix=OTHER
// RUN: sed '/kernel = "matmul_nn"/s/, packing = "fp8"//' %t.mlir > %t.call.mlir
// RUN: not hecate-opt --passes=prove-homes %t.call.mlir 2>&1 | FileCheck %s --check-prefix=OTHER
// RUN: sed 's/packing = "fp8"/packing = "int4"/' %t.mlir > %t.unknown.mlir
// RUN: not hecate-opt --passes=prove-homes %t.unknown.mlir 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// RUN: sed '/sym_name = "w"/s/rounded_only = true, //' %t.mlir > %t.masters.mlir
// RUN: not hecate-opt --passes=prove-homes %t.masters.mlir 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// RUN: sed '/sym_name = "w"/s/elements = [0-9]*/elements = 3136/' %t.mlir > %t.little.mlir
// RUN: not hecate-opt --passes=prove-homes %t.little.mlir 2>&1 | FileCheck %s --check-prefix=LITTLE
// RUN: sed '/kernel = "matmul_nn"/s/layout = "panels"/layout = "rows"/' %t.mlir > %t.rows.mlir
// RUN: not hecate-opt --passes=prove-homes %t.rows.mlir 2>&1 | FileCheck %s --check-prefix=ROWS
//
// Other precisions and bases keep bf16; mxfp4 is for experts.
// RUN: sed 's/"bf16"/"fp32"/' %s | hecate-opt --passes=use-bf16,simplify,select-kernels,place-buffers | FileCheck %s --check-prefix=NOT
// RUN: sed 's/adapt.base = "fp8"/adapt.base = "mxfp4"/' %s | hecate-opt --passes=use-bf16,simplify,select-kernels,place-buffers | FileCheck %s --check-prefix=NOT
// RUN: sed 's/frozen = true/frozen = false/' %s | hecate-opt --passes=use-bf16,simplify,select-kernels,place-buffers | FileCheck %s --check-prefix=NOT

// Three blocks of 32 rows in each of two panels: 6 times 2,112 bytes, 6,336 places of bf16. The head has 100 x 64.
// PLACED: elements = 6336{{.*}}packing = "fp8"{{.*}}sym_name = "w"
// PLACED: elements = 6400
// PLACED-NOT: packing
// PLACED: sym_name = "head"
// PLACED: kernel = "matmul_nn"{{.*}}packing = "fp8"
// OTHER:   error: 'hk.call': homes: its weights are packed in another way than it says
// UNKNOWN: error: 'moe.param': homes: is packed as its target cannot, or is not the copy alone in panels
// LITTLE:  error: 'moe.param': homes: its elements do not hold its packed matrix
// ROWS:    error: 'hk.call': has packed weights in rows
// NOT-NOT: packing =
// NOT: sym_name = "w"
// NOT-NOT: packing =
!x = tensor<4x70xf32, ["T", "D"]>
!w = tensor<70x100xf32, ["D", "F"]>
!h = tensor<100x64xf32, ["F", "V"]>
module attributes {hecate.settings = {adapt.base = "fp8", train.precision = "bf16", train.precision.router = "fp32"}} {
  "moe.param"() {sym_name = "w", type = !w, layers = 0 : i64, path = "w", init = "ones", decay = true, trainable = false, frozen = true} : () -> ()
  "moe.param"() {sym_name = "head", type = !h, layers = 0 : i64, path = "head", init = "ones", decay = true, trainable = false, frozen = true, role = "head"} : () -> ()
  func.func @forward(%x: !x) -> tensor<4x64xf32, ["T", "V"]> {
    %w = "moe.get"() {param = @w} : () -> !w
    %head = "moe.get"() {param = @head} : () -> !h
    %y = "moe.contract"(%x, %w) : (!x, !w) -> tensor<4x100xf32, ["T", "F"]>
    %z = "moe.contract"(%y, %head) : (tensor<4x100xf32, ["T", "F"]>, !h) -> tensor<4x64xf32, ["T", "V"]>
    return %z : tensor<4x64xf32, ["T", "V"]>
  }
}

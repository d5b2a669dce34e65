// RUN: split-file %s %t
// RUN: hecate-opt --passes=select-kernels,place-buffers %t/sharing.mlir | FileCheck %t/sharing.mlir
// RUN: hecate-opt '--passes=select-kernels(sums=apart),place-buffers' %t/sharing.mlir | FileCheck %t/sharing.mlir --check-prefix=APART
// RUN: hecate-opt '--passes=select-kernels,place-buffers(results=apart)' %t/sharing.mlir | FileCheck %t/sharing.mlir --check-prefix=NEW
// RUN: hecate-opt --passes=select-kernels,place-buffers %t/history.mlir | FileCheck %t/history.mlir
// RUN: sed 's/"moe.stash"(%r) {slot = @last} : (!x) -> ()/&\n&/' %t/history.mlir | hecate-opt --passes=select-kernels,place-buffers | FileCheck %t/history.mlir --check-prefix=TWICE
// RUN: hecate-opt --passes=select-kernels,place-buffers %t/swap.mlir | FileCheck %t/swap.mlir
// RUN: hecate-opt --passes=select-kernels,place-buffers %t/outside.mlir | FileCheck %t/outside.mlir
// RUN: hecate-opt --passes=select-kernels,place-buffers %t/slot.mlir | FileCheck %t/slot.mlir
// RUN: hecate-opt --passes=select-kernels,place-buffers %t/layout.mlir | FileCheck %t/layout.mlir
// RUN: hecate-opt --passes=select-kernels,place-buffers %t/epilogue.mlir | FileCheck %t/epilogue.mlir
// RUN: sed 's/epilogue = true, //' %t/epilogue.mlir | hecate-opt --passes=select-kernels,place-buffers | FileCheck %t/epilogue.mlir --check-prefix=BEHIND

// Temporaries: %a dies in %b, which takes its bytes; the product %c may not take those of %b, but %g
// may. The product %d adds to %c, in whose place %e then lies. Not so %h, after which %f is read, nor %k,
// which is read itself, nor %n, which another unit makes.
//--- sharing.mlir
!x = tensor<4x16xf32, ["T", "D"]>
!w = tensor<16x16xf32, ["D", "F"]>
!y = tensor<4x16xf32, ["T", "F"]>
// CHECK: hecate.arena_bytes = {{[0-9]+}} : i64, hecate.param_elements = 1024 : i64
module {
  "moe.param"() {sym_name = "w", type = !w, layers = 0 : i64, path = "w", init = "ones", decay = true, trainable = true} : () -> ()
  // CHECK-LABEL: func.func @forward(
  // CHECK-SAME:    argument_home = []
  // CHECK:         %[[A:.*]] = "moe.fill"() {home = ["arena+[[ONE:[0-9]+]]"]
  // CHECK:         "moe.silu"(%[[A]]) {home = ["arena+[[ONE]]"]}
  // CHECK:         "moe.get"() {home = ["param @w"]
  // CHECK:         %[[C:.*]] = "hk.call"({{%[0-9]+, %[0-9]+}}) ({
  // CHECK-NEXT:    }) {home = ["arena+[[TWO:[0-9]+]]"], k = ["D"], kernel = "matmul_nn", layout = "panels", m = ["T"], n = ["F"]
  // CHECK:         "moe.fill"() {home = ["arena+[[ONE]]"]
  // CHECK:         %[[E:.*]] = "hk.call"({{%[0-9]+, %[0-9]+}}, %[[C]]) ({
  // CHECK-NEXT:    }) {home = ["arena+[[TWO]]"]
  // CHECK:         %[[F:.*]] = "moe.exp"(%[[E]])
  // CHECK:         %[[H:.*]] = "hk.call"({{%[0-9]+, %[0-9]+}}) ({
  // CHECK:         "moe.add"(%[[F]], %[[H]])
  // CHECK:         "hk.call"({{%[0-9]+, %[0-9]+}}) ({
  // CHECK:         "hk.call"({{%[0-9]+, %[0-9]+}}) ({
  // APART-LABEL:   func.func @forward(
  // APART-COUNT-4: "moe.add"
  // APART:         return
  // NEW:           "moe.fill"() {home = ["arena+[[ONE:[0-9]+]]"]
  // NEW-NOT:       "moe.silu"{{.*}}arena+[[ONE]]"
  // NEW:           "hk.call"({{%[0-9]+, %[0-9]+, %[0-9]+}})
  func.func @forward() -> (!y, !y, !y, !y) {
    %a = "moe.fill"() {value = 2.0 : f64} : () -> !x
    %b = "moe.silu"(%a) : (!x) -> !x
    %w = "moe.get"() {param = @w} : () -> !w
    %c = "moe.contract"(%b, %w) : (!x, !w) -> !y
    %g = "moe.fill"() {value = 3.0 : f64} : () -> !x
    %d = "moe.contract"(%g, %w) : (!x, !w) -> !y
    %e = "moe.add"(%d, %c) : (!y, !y) -> !y
    %f = "moe.exp"(%e) : (!y) -> !y
    %h = "moe.contract"(%g, %w) : (!x, !w) -> !y
    %j = "moe.exp"(%f) : (!y) -> !y
    %i = "moe.add"(%f, %h) : (!y, !y) -> !y
    %k = "moe.contract"(%g, %w) : (!x, !w) -> !y
    %l = "moe.add"(%j, %k) : (!y, !y) -> !y
    %m = "moe.exp"(%k) : (!y) -> !y
    %n = "moe.contract"(%g, %w) {unit = [@other]} : (!x, !w) -> !y
    %o = "moe.add"(%l, %n) : (!y, !y) -> !y
    return %i, %m, %o, %o : !y, !y, !y, !y
  }
}

// What is carried and stashed has a row more than layers, and its last row is fetched where it was
// stashed anew. %fix is stashed from an argument, %y in a second place: copied. The gradient of %w is added in place, that
// of %v, which another operation reads, is not.
//--- history.mlir
!x = tensor<4x16xf32, ["T", "D"]>
!g = tensor<16xf32, ["D"]>
!s = tensor<f32>
!i = tensor<4x2xi32, ["batch", "T"]>
module {
  "moe.param"() {sym_name = "w", type = !g, layers = 3 : i64, path = "{}.w", init = "ones", decay = true, trainable = true, index_first = 0 : i64, index_stride = 1 : i64} : () -> ()
  "moe.param"() {sym_name = "v", type = !g, layers = 0 : i64, path = "v", init = "ones", decay = true, trainable = true} : () -> ()
  // CHECK-DAG: moe.slot{{.*}}layers = 3 : i64, offset = {{[0-9]+}} : i64, rows = 4 : i64, stride = 256 : i64, sym_name = "x"
  // CHECK-NOT: sym_name = "last"
  // A slot that is stashed in twice stays one of its own.
  // TWICE:     sym_name = "last"
  // What is stashed twice at one place lies there already.
  // SAME-NOT:  "moe.copy"{{.*}}"slot @x[
  // CHECK-DAG: moe.slot{{.*}}rows = 1 : i64, stride = 64 : i64, sym_name = "fix"
  "moe.slot"() {sym_name = "x", type = !x, layers = 3 : i64} : () -> ()
  "moe.slot"() {sym_name = "last", type = !x, layers = 0 : i64} : () -> ()
  "moe.slot"() {sym_name = "fix", type = !s, layers = 0 : i64} : () -> ()
  "moe.slot"() {sym_name = "again", type = !x, layers = 3 : i64} : () -> ()
  // CHECK-LABEL: func.func @forward(
  // CHECK-SAME:    argument_home = ["ids", "targets", "scale", "auxiliary_scale"]
  // CHECK:         %[[FIX:.*]] = "moe.copy"(%{{.*}}) {home = ["slot @fix"]}
  // CHECK-NEXT:    "moe.stash"(%[[FIX]]) {slot = @fix}
  // CHECK:         "moe.fill"() {home = ["slot @x[0]"]
  // CHECK:         scf.for
  // CHECK:           "moe.silu"{{.*}} {home = ["slot @x[i+1]"]}
  // CHECK-NEXT:      "moe.copy"{{.*}} {home = ["slot @again[i]"]}
  // CHECK:         } {argument_home = ["slot @x[i]"], home = ["slot @x[3]"]}
  // CHECK-NOT:     slot = @last
  // CHECK:         return
  func.func @forward(%ids: !i, %targets: !i, %scale: !s, %auxiliary_scale: !s) -> !x {
    "moe.stash"(%scale) {slot = @fix} : (!s) -> ()
    %x0 = "moe.fill"() {value = 2.0 : f64} : () -> !x
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c3 = arith.constant 3 : index
    %r = scf.for %i = %c0 to %c3 step %c1 iter_args(%x = %x0) -> (!x) {
      "moe.stash"(%x, %i) {slot = @x} : (!x, index) -> ()
      %y = "moe.silu"(%x) : (!x) -> !x
      "moe.stash"(%y, %i) {slot = @again} : (!x, index) -> ()
      scf.yield %y : !x
    }
    "moe.stash"(%r) {slot = @last} : (!x) -> ()
    return %r : !x
  }
  // CHECK-LABEL: func.func @backward(
  // CHECK:         %[[C3:.*]] = arith.constant 3
  // CHECK:         "moe.fetch"(%[[C3]]) {home = ["slot @x[3]"], slot = @x}
  // CHECK:         scf.for
  // CHECK:           "moe.fetch"{{.*}}{home = ["slot @x[i]"], slot = @x}
  // CHECK:           }) {adds = [true], columns = ["D"], home = ["grad @w[i]"], kernel = "sum_rows"
  // CHECK:         }) {columns = ["D"], home = ["arena+{{[0-9]+}}"], kernel = "sum_rows"
  func.func @backward(%ids: !i, %targets: !i, %scale: !s, %auxiliary_scale: !s) -> !g {
    %s = "moe.fetch"() {slot = @fix} : () -> !s
    %d0 = "moe.fetch"() {slot = @last} : () -> !x
    %m = "moe.mul"(%d0, %s) : (!x, !s) -> !x
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c3 = arith.constant 3 : index
    %r = scf.for %step = %c0 to %c3 step %c1 iter_args(%d = %m) -> (!x) {
      %c2 = arith.constant 2 : index
      %i = arith.subi %c2, %step : index
      %x = "moe.fetch"(%i) {slot = @x} : (index) -> !x
      %e = "moe.silu_grad"(%d, %x) : (!x, !x) -> !x
      %dw = "moe.sum"(%e) : (!x) -> !g
      "moe.accumulate"(%dw, %i) {param = @w} : (!g, index) -> ()
      scf.yield %e : !x
    }
    %dv = "moe.sum"(%r) : (!x) -> !g
    "moe.accumulate"(%dv) {param = @v} : (!g) -> ()
    return %dv : !g
  }
}

// Two carried values change places in every layer; one starts from a value that is still read after
// the loop. Copies make that possible, and the proof inside the pass holds.
//--- swap.mlir
!x = tensor<4x16xf32, ["T", "D"]>
module {
  // CHECK-LABEL: func.func @forward(
  // CHECK:         %[[A:.*]] = "moe.fill"
  // CHECK:         "moe.copy"(%[[A]])
  // CHECK:         scf.for
  // CHECK-COUNT-2:   "moe.copy"
  // CHECK:           scf.yield
  // CHECK:         } {argument_home = ["arena+[[P:[0-9]+]]", "arena+[[Q:[0-9]+]]"], home = ["arena+[[P]]", "arena+[[Q]]"]}
  func.func @forward() -> (!x, !x, !x) {
    %a = "moe.fill"() {value = 2.0 : f64} : () -> !x
    %b = "moe.fill"() {value = 3.0 : f64} : () -> !x
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c3 = arith.constant 3 : index
    %r:2 = scf.for %i = %c0 to %c3 step %c1 iter_args(%x = %a, %y = %b) -> (!x, !x) {
      scf.yield %y, %x : !x, !x
    }
    return %r#0, %r#1, %a : !x, !x, !x
  }
}

// %s is read in every layer: its bytes stay its own while the loop runs, beside %x with %m and %u, and %t. A
// norm is not computed in place.
//--- outside.mlir
!x = tensor<4x16xf32, ["T", "D"]>
!r = tensor<4xf32, ["T"]>
// CHECK: hecate.arena_bytes = 832 : i64
module {
  // CHECK:         "moe.fill"() {home = ["arena+[[X:[0-9]+]]"], value = 2.0
  // CHECK:         "moe.fill"() {home = ["arena+[[S:[0-9]+]]"], value = 3.0
  // CHECK:         "moe.mul"{{.*}}home = ["arena+[[M:[0-9]+]]"]
  // CHECK-NOT:     home = ["arena+[[S]]"
  // CHECK:         }) {columns = ["D"], eps = {{.*}}home = ["arena+[[T:[0-9]+]]",
  // CHECK-NOT:     home = ["arena+[[S]]"
  // CHECK:         }) {columns = ["D"], eps = {{.*}}home = ["arena+[[X]]",
  func.func @forward() -> !x {
    %a = "moe.fill"() {value = 2.0 : f64} : () -> !x
    %s = "moe.fill"() {value = 3.0 : f64} : () -> !x
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c3 = arith.constant 3 : index
    %r = scf.for %i = %c0 to %c3 step %c1 iter_args(%x = %a) -> (!x) {
      %m = "moe.mul"(%x, %s) : (!x, !x) -> !x
      %t, %p = "moe.rmsnorm"(%m) {eps = 1.0e-5 : f64, over = 1 : i64} : (!x) -> (!x, !r)
      %u, %q = "moe.rmsnorm"(%t) {eps = 1.0e-5 : f64, over = 1 : i64} : (!x) -> (!x, !r)
      scf.yield %u : !x
    }
    return %r : !x
  }
}

// An observed slot is nobody else's in @forward. In @backward the last reader of a slot may have it:
// %e, and not %d, after which the slot is read again, nor %g, which goes into a loop.
//--- slot.mlir
!x = tensor<4x16xf32, ["T", "D"]>
module {
  // CHECK: offset = [[O:[0-9]+]] : i64{{.*}}sym_name = "seen"
  "moe.slot"() {sym_name = "seen", type = !x, layers = 0 : i64, observed = true} : () -> ()
  "moe.slot"() {sym_name = "x", type = !x, layers = 0 : i64} : () -> ()
  // CHECK-LABEL: func.func @forward(
  // CHECK:         "moe.fill"() {home = ["slot @seen"]
  // CHECK-NOT:     "arena+[[O]]"
  // CHECK:         return
  func.func @forward() -> !x {
    %a = "moe.fill"() {value = 2.0 : f64} : () -> !x
    "moe.stash"(%a) {slot = @seen} : (!x) -> ()
    %b = "moe.fill"() {value = 3.0 : f64} : () -> !x
    %c = "moe.exp"(%b) : (!x) -> !x
    "moe.stash"(%c) {slot = @x} : (!x) -> ()
    %d = "moe.fill"() {value = 4.0 : f64} : () -> !x
    return %d : !x
  }
  // CHECK-LABEL: func.func @backward(
  // CHECK:         "moe.exp"{{.*}} {home = ["arena+
  // CHECK:         "moe.neg"{{.*}} {home = ["slot @x"]}
  // CHECK:         "moe.exp"{{.*}} {home = ["arena+
  func.func @backward() -> (!x, !x, !x) {
    %x = "moe.fetch"() {slot = @x} : () -> !x
    %d = "moe.exp"(%x) : (!x) -> !x
    %y = "moe.fetch"() {slot = @x} : () -> !x
    %e = "moe.neg"(%y) : (!x) -> !x
    %f = "moe.fetch"() {slot = @seen} : () -> !x
    %g = "moe.exp"(%f) : (!x) -> !x
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c3 = arith.constant 3 : index
    %r = scf.for %i = %c0 to %c3 step %c1 iter_args(%h = %g) -> (!x) {
      %k = "moe.silu"(%h) : (!x) -> !x
      scf.yield %k : !x
    }
    return %d, %e, %r : !x, !x, !x
  }
}

// %w is only a right operand: panels, padded to 64 columns. %t is gathered from, too; %v is read by
// nothing; %two is divided as 16 x 8 and as 64 x 2; the gradient of %late is not made in place. The
// experts' come last, all in the chunk of each expert; the other form of the product of %e2 sees the
// same matrix.
//--- layout.mlir
!x = tensor<4x16xf32, ["T", "D"]>
!i = tensor<4xi32, ["T"]>
module {
  // CHECK: "moe.set"() {chunk_elements = 2064 : i64, experts = 2 : i64, layers = 3 : i64, offset = [[SET:[0-9]+]] : i64
  "moe.set"() {sym_name = "s", experts = 2 : i64, topk = 1 : i64, layers = 3 : i64} : () -> ()
  // CHECK: elements = 2048 : i64{{.*}}layout = "panels", matrix = [16, 100], offset = 0
  "moe.param"() {sym_name = "w", type = tensor<16x100xf32, ["D", "F"]>, layers = 0 : i64, path = "w", init = "ones", decay = true, trainable = true} : () -> ()
  // CHECK: elements = 16 : i64{{.*}}layout = "rows", matrix = [1, 5], offset = 2048 : i64{{.*}}sym_name = "v"
  "moe.param"() {sym_name = "v", type = tensor<5xf32, ["G"]>, layers = 3 : i64, path = "{}.v", init = "ones", decay = true, trainable = true, index_first = 0 : i64, index_stride = 1 : i64} : () -> ()
  // CHECK: elements = 1120 : i64{{.*}}layout = "rows", matrix = [70, 16], offset = 2096
  "moe.param"() {sym_name = "t", type = tensor<70x16xf32, ["V", "D"]>, layers = 0 : i64, path = "t", init = "ones", decay = true, trainable = true} : () -> ()
  // CHECK: elements = 1024 : i64{{.*}}layout = "panels", matrix = [16, 10], offset = 0 : i64{{.*}}set = @s, sym_name = "e1"
  "moe.param"() {sym_name = "e1", type = tensor<2x16x10xf32, ["E", "D", "F"]>, layers = 3 : i64, path = "{}.{e}.e1", init = "ones", decay = true, trainable = true, set = @s, index_first = 0 : i64, index_stride = 1 : i64} : () -> ()
  // CHECK: elements = 1024 : i64{{.*}}layout = "panels", matrix = [16, 10], offset = 1024 : i64{{.*}}set = @s, sym_name = "e2"
  "moe.param"() {sym_name = "e2", type = tensor<2x16x10xf32, ["E", "D", "F"]>, layers = 3 : i64, path = "{}.{e}.e2", init = "ones", decay = true, trainable = true, set = @s, index_first = 0 : i64, index_stride = 1 : i64} : () -> ()
  // CHECK: elements = 16 : i64{{.*}}layout = "rows", matrix = [1, 10], offset = 2048 : i64{{.*}}set = @s, sym_name = "bias"
  "moe.param"() {sym_name = "bias", type = tensor<2x10xf32, ["E", "F"]>, layers = 3 : i64, path = "{}.{e}.bias", init = "ones", decay = true, trainable = true, set = @s, index_first = 0 : i64, index_stride = 1 : i64} : () -> ()
  // CHECK: layout = "rows"{{.*}}sym_name = "two"
  "moe.param"() {sym_name = "two", type = tensor<16x4x2xf32, ["D", "H", "A"]>, layers = 0 : i64, path = "two", init = "ones", decay = true, trainable = true} : () -> ()
  // CHECK: layout = "rows"{{.*}}sym_name = "late"
  "moe.param"() {sym_name = "late", type = tensor<16x4xf32, ["D", "H"]>, layers = 0 : i64, path = "late", init = "ones", decay = true, trainable = true} : () -> ()
  func.func @backward() {
    %x = "moe.fill"() {value = 1.0 : f64} : () -> !x
    %late = "moe.get"() {param = @late} : () -> tensor<16x4xf32, ["D", "H"]>
    %h = "moe.contract"(%x, %late) : (!x, tensor<16x4xf32, ["D", "H"]>) -> tensor<4x4xf32, ["T", "H"]>
    %d = "moe.contract"(%x, %h) : (!x, tensor<4x4xf32, ["T", "H"]>) -> tensor<16x4xf32, ["D", "H"]>
    "moe.accumulate"(%d) {param = @late} : (tensor<16x4xf32, ["D", "H"]>) -> ()
    "moe.accumulate"(%d) {param = @late} : (tensor<16x4xf32, ["D", "H"]>) -> ()
    %two = "moe.get"() {param = @two} : () -> tensor<16x4x2xf32, ["D", "H", "A"]>
    %a = "moe.contract"(%x, %two) : (!x, tensor<16x4x2xf32, ["D", "H", "A"]>) -> tensor<4x4x2xf32, ["T", "H", "A"]>
    %g = "moe.fill"() {value = 1.0 : f64} : () -> tensor<4x16x4xf32, ["T", "D", "H"]>
    %b = "moe.contract"(%g, %two) : (tensor<4x16x4xf32, ["T", "D", "H"]>, tensor<16x4x2xf32, ["D", "H", "A"]>) -> tensor<4x2xf32, ["T", "A"]>
    return
  }
  func.func @forward(%i: !i, %picks: tensor<4x1xi32, ["T", "picks"]>) -> (tensor<4x100xf32, ["T", "F"]>, tensor<4x70xf32, ["T", "V"]>) {
    %w = "moe.get"() {param = @w} : () -> tensor<16x100xf32, ["D", "F"]>
    %t = "moe.get"() {param = @t} : () -> tensor<70x16xf32, ["V", "D"]>
    %x = "moe.gather"(%t, %i) : (tensor<70x16xf32, ["V", "D"]>, !i) -> !x
    %y = "moe.contract"(%x, %w) : (!x, tensor<16x100xf32, ["D", "F"]>) -> tensor<4x100xf32, ["T", "F"]>
    %z = "moe.contract"(%x, %t) : (!x, tensor<70x16xf32, ["V", "D"]>) -> tensor<4x70xf32, ["T", "V"]>
    %c0 = arith.constant 0 : index
    %first, %pair, %slot = "moe.route"(%picks) {experts = 2 : i64} : (tensor<4x1xi32, ["T", "picks"]>) -> (tensor<3xi32, ["first"]>, tensor<4xi32, ["rows"]>, tensor<4x1xi32, ["T", "picks"]>)
    %rows = "moe.permute"(%x, %pair, %slot) : (!x, tensor<4xi32, ["rows"]>, tensor<4x1xi32, ["T", "picks"]>) -> tensor<4x16xf32, ["rows", "D"]>
    %e1 = "moe.get"(%c0) {param = @e1} : (index) -> tensor<2x16x10xf32, ["E", "D", "F"]>
    %e2 = "moe.get"(%c0) {param = @e2} : (index) -> tensor<2x16x10xf32, ["E", "D", "F"]>
    %p = "moe.grouped_contract"(%rows, %e1, %first) : (tensor<4x16xf32, ["rows", "D"]>, tensor<2x16x10xf32, ["E", "D", "F"]>, tensor<3xi32, ["first"]>) -> tensor<4x10xf32, ["rows", "F"]>
    %bias = "moe.get"(%c0) {param = @bias} : (index) -> tensor<2x10xf32, ["E", "F"]>
    %o = "moe.spread"(%bias, %first) : (tensor<2x10xf32, ["E", "F"]>, tensor<3xi32, ["first"]>) -> tensor<4x10xf32, ["rows", "F"]>
    %q = "moe.grouped_contract"(%p, %e2, %first) : (tensor<4x10xf32, ["rows", "F"]>, tensor<2x16x10xf32, ["E", "D", "F"]>, tensor<3xi32, ["first"]>) -> tensor<4x16xf32, ["rows", "D"]>
    return %y, %z : tensor<4x100xf32, ["T", "F"]>, tensor<4x70xf32, ["T", "V"]>
  }
}

// While an epilogue writes %h, its product still reads %x, whose bytes %h could have if it ran behind
// it. %v, which only an epilogue reads, is computed where %z will be, in the slot.
//--- epilogue.mlir
!x = tensor<4x16xf32, ["T", "D"]>
!w = tensor<16x16xf32, ["D", "F"]>
!y = tensor<4x16xf32, ["T", "F"]>
module {
  "moe.param"() {sym_name = "w", type = !w, layers = 0 : i64, path = "w", init = "ones", decay = true, trainable = true} : () -> ()
  "moe.slot"() {sym_name = "z", type = !y, layers = 0 : i64} : () -> ()
  // CHECK-LABEL:  func.func @forward(
  // CHECK:          "moe.fill"() {home = ["arena+[[X:[0-9]+]]"], value = 2.0
  // CHECK:          "hk.call"
  // CHECK-NOT:      arena+[[X]]"
  // CHECK:          }) {home = ["arena+[[U:[0-9]+]]", "arena+{{[0-9]+}}"], k = ["D"]
  // CHECK-NEXT:     "moe.fill"() {{.*}}value = 3.0
  // CHECK-NEXT:     "hk.call"
  // CHECK:          home = ["slot @z", "slot @z"]
  // BEHIND-LABEL: func.func @forward(
  // BEHIND:         "moe.fill"() {home = ["arena+[[X:[0-9]+]]"], value = 2.0
  // BEHIND:         "hk.call"
  // BEHIND:         "moe.fused"
  // BEHIND:         }) {home = ["arena+[[X]]"]
  // BEHIND:         "hk.call"
  // BEHIND-NEXT:    }) {home = ["arena+
  func.func @forward() -> (!y, !y, !y) {
    %w = "moe.get"() {param = @w} : () -> !w
    %g = "moe.fill"() {value = 1.0 : f64} : () -> !y
    %x = "moe.fill"() {value = 2.0 : f64} : () -> !x
    %u = "moe.contract"(%x, %w) : (!x, !w) -> !y
    %h = "moe.fused"(%u, %g) ({
    ^bb0(%p: !y, %q: !y):
      %s = "moe.mul"(%p, %q) : (!y, !y) -> !y
      vector.yield %s : !y
    }) {epilogue = true, operandSegmentSizes = array<i32: 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : (!y, !y) -> !y
    %o = "moe.fill"() {value = 3.0 : f64} : () -> !x
    %v = "moe.contract"(%o, %w) : (!x, !w) -> !y
    %z = "moe.fused"(%v) ({
    ^bb0(%p: !y):
      %s = "moe.silu"(%p) : (!y) -> !y
      vector.yield %s : !y
    }) {epilogue = true, operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : (!y) -> !y
    "moe.stash"(%z) {slot = @z} : (!y) -> ()
    return %u, %g, %h : !y, !y, !y
  }
}

// RUN: split-file %s %t
// RUN: not hecate-opt --passes=inline %t/recursion.mlir 2>&1 | FileCheck %t/recursion.mlir
// RUN: not hecate-opt --passes=inline %t/declaration.mlir 2>&1 | FileCheck %t/declaration.mlir
// RUN: not hecate-opt --passes=inline %t/experts.mlir 2>&1 | FileCheck %t/experts.mlir

//--- recursion.mlir
!x = tensor<4xf32, ["D"]>
module {
  func.func private @a(%x: !x) -> !x {
    %y = func.call @b(%x) : (!x) -> !x
    return %y : !x
  }
  func.func private @b(%x: !x) -> !x {
    %y = func.call @a(%x) : (!x) -> !x
    return %y : !x
  }
  // CHECK: error: 'func.call': calls more than 64 deep: a function calls itself
  func.func @forward(%x: !x) -> !x {
    %y = func.call @a(%x) : (!x) -> !x
    return %y : !x
  }
}

//--- declaration.mlir
!x = tensor<4xf32, ["D"]>
module {
  // CHECK: declaration.mlir:[[@LINE+1]]:3: error: 'func.func': needs a body of one block
  func.func private @a(!x) -> !x
  func.func @forward(%x: !x) -> !x {
    %y = func.call @a(%x) : (!x) -> !x
    return %y : !x
  }
}

//--- experts.mlir
!x = tensor<2x8x4xf32, ["batch", "T", "D"]>
!w = tensor<2x8x2xf32, ["batch", "T", "picks"]>
!i = tensor<2x8x2xi32, ["batch", "T", "picks"]>
!r = tensor<32x4xf32, ["rows", "D"]>
module {
  "moe.set"() {sym_name = "s", experts = 4 : i64, topk = 2 : i64, layers = 0 : i64} : () -> ()
  func.func private @e(%r: !r, %first: tensor<5xi32, ["first"]>) -> !r {
    return %r : !r
  }
  func.func @forward(%x: !x, %w: !w, %i: !i) -> !x {
    // CHECK: experts.mlir:[[@LINE+1]]:10: error: 'moe.experts': group-experts has to run before inline
    %y = "moe.experts"(%x, %w, %i) {set = @s, expert = @e} : (!x, !w, !i) -> !x
    return %y : !x
  }
}

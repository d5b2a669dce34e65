// RUN: split-file %s %t
// RUN: not hecate-opt --passes=differentiate %t/none.mlir 2>&1 | FileCheck %t/none.mlir
// RUN: not hecate-opt --passes=differentiate %t/twice.mlir 2>&1 | FileCheck %t/twice.mlir
// RUN: not hecate-opt --passes=differentiate %t/loss.mlir 2>&1 | FileCheck %t/loss.mlir
// RUN: not hecate-opt --passes=differentiate %t/call.mlir 2>&1 | FileCheck %t/call.mlir

//--- none.mlir
// CHECK: error: no function @forward to differentiate
module {
}

//--- twice.mlir
module {
  // CHECK: twice.mlir:[[@LINE+1]]:3: error: 'func.func': is differentiated already: there is a @backward
  func.func @forward(%x: tensor<f32>) -> tensor<f32> {
    return %x : tensor<f32>
  }
  func.func @backward() {
    return
  }
}

//--- loss.mlir
module {
  func.func @forward(%x: tensor<4xf32, ["D"]>) -> tensor<4xf32, ["D"]> {
    // CHECK: loss.mlir:[[@LINE+1]]:5: error: 'func.return': the first result has to be the loss, a tensor without dimensions
    return %x : tensor<4xf32, ["D"]>
  }
}

//--- call.mlir
module {
  func.func private @f(%x: tensor<f32>) -> tensor<f32> {
    return %x : tensor<f32>
  }
  func.func @forward(%x: tensor<f32>) -> tensor<f32> {
    // CHECK: call.mlir:[[@LINE+1]]:10: error: 'func.call': cannot be differentiated
    %y = func.call @f(%x) : (tensor<f32>) -> tensor<f32>
    return %y : tensor<f32>
  }
}

// Two layers through one helper, as a front end of IREE hands them over: dense.py has the lines.
#map = affine_map<(m, n) -> (m, n)>
#row = affine_map<(m, n) -> (n)>

func.func @network(%x: tensor<256x256xf16>, %w1: tensor<256x512xf16>, %b1: tensor<512xf32>,
                   %w2: tensor<512x128xf16>, %b2: tensor<128xf32>) -> tensor<256x128xf16> {
  %zero = arith.constant 0.0 : f32 loc(#network)
  %e1 = tensor.empty() : tensor<256x512xf32> loc(#product1)
  %i1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<256x512xf32>) -> tensor<256x512xf32> loc(#product1)
  %p1 = linalg.matmul ins(%x, %w1 : tensor<256x256xf16>, tensor<256x512xf16>)
                      outs(%i1 : tensor<256x512xf32>) -> tensor<256x512xf32> loc(#product1)
  %f1 = tensor.empty() : tensor<256x512xf16> loc(#relu1)
  %h = linalg.generic {indexing_maps = [#map, #row, #map], iterator_types = ["parallel", "parallel"]}
      ins(%p1, %b1 : tensor<256x512xf32>, tensor<512xf32>) outs(%f1 : tensor<256x512xf16>) {
  ^bb0(%p: f32, %b: f32, %o: f16):
    %sum = arith.addf %p, %b : f32 loc(#relu1)
    %positive = arith.maximumf %sum, %zero : f32 loc(#relu1)
    %half = arith.truncf %positive : f32 to f16 loc(#relu1)
    linalg.yield %half : f16 loc(#relu1)
  } -> tensor<256x512xf16> loc(#relu1)

  %e2 = tensor.empty() : tensor<256x128xf32> loc(#product2)
  %i2 = linalg.fill ins(%zero : f32) outs(%e2 : tensor<256x128xf32>) -> tensor<256x128xf32> loc(#product2)
  %p2 = linalg.matmul ins(%h, %w2 : tensor<256x512xf16>, tensor<512x128xf16>)
                      outs(%i2 : tensor<256x128xf32>) -> tensor<256x128xf32> loc(#product2)
  %f2 = tensor.empty() : tensor<256x128xf16> loc(#relu2)
  %y = linalg.generic {indexing_maps = [#map, #row, #map], iterator_types = ["parallel", "parallel"]}
      ins(%p2, %b2 : tensor<256x128xf32>, tensor<128xf32>) outs(%f2 : tensor<256x128xf16>) {
  ^bb0(%p: f32, %b: f32, %o: f16):
    %sum = arith.addf %p, %b : f32 loc(#relu2)
    %positive = arith.maximumf %sum, %zero : f32 loc(#relu2)
    %half = arith.truncf %positive : f32 to f16 loc(#relu2)
    linalg.yield %half : f16 loc(#relu2)
  } -> tensor<256x128xf16> loc(#relu2)
  return %y : tensor<256x128xf16> loc(#network)
} loc(#network)

#network = loc("dense.py":12:1)
#product1 = loc(callsite("dense"("dense.py":8:15) at "network"("dense.py":13:14)))
#relu1 = loc(callsite("dense"("dense.py":9:12) at "network"("dense.py":13:14)))
#product2 = loc(callsite("dense"("dense.py":8:15) at "network"("dense.py":14:12)))
#relu2 = loc(callsite("dense"("dense.py":9:12) at "network"("dense.py":14:12)))

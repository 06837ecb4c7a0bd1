from tensorrt_lite.tensor import Tensor

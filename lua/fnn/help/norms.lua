-- norms.lua - help on normalization, pools, resizing and gates, as functions
-- and as layers.
return [[
# Normalization

Shifts and scales numbers to mean 0 and variance 1: (x - mean) / sqrt(var +
eps), then times weight plus bias, if given. Over channels x is (n, channels,
...), and what is in channels-last order stays so. Numbers that are all equal
become 0.

Tensor:layer_norm(n?: integer, weight?: Tensor, bias?: Tensor, eps?: number)
    -> Tensor
  Over each part of the last n dimensions (1), whose shape weight and bias have.
  eps is 1e-5.

Tensor:rms_norm(n?: integer, weight?: Tensor, eps?: number) -> Tensor
  The same without the mean: x / sqrt(mean of x^2 + eps) times weight. eps is
  1e-6.

Tensor:batch_norm(mean?: Tensor, var?: Tensor, weight?: Tensor, bias?: Tensor,
    options?: table) -> Tensor
  Each channel over the whole batch, by the mean and variance given; without
  them, or in training, by those of the batch, towards which the given ones
  then move (var towards that of a sample).
  training: boolean         true without mean and var
  momentum: number = 0.1    how far they move
  eps: number = 1e-5        keeps the division finite

Tensor:group_norm(groups: integer, weight?: Tensor, bias?: Tensor, eps?: number)
    -> Tensor
  Each group of channels of each image. eps is 1e-5.

Tensor:instance_norm(weight?: Tensor, bias?: Tensor, eps?: number) -> Tensor
  Each channel of each image. eps is 1e-5.

nn.LayerNorm(size: integer|integer[], options?: table) -> Module
  layer_norm over dimensions of these sizes.
  eps: number = 1e-5        keeps the division finite
  affine: boolean = true    whether it has weight and bias

nn.RMSNorm(size: integer|integer[], options?: table) -> Module
  rms_norm over dimensions of these sizes.
  eps: number = 1e-6        keeps the division finite
  affine: boolean = true    whether it has a weight

nn.BatchNorm1d(channels: integer, options?: table) -> Module
  batch_norm of (n, channels) or (n, channels, l): in training by the batch, in
  evaluation by running statistics, which are buffers: running_mean,
  running_var, num_batches_tracked.
  eps: number = 1e-5                    keeps the division finite
  momentum: number|boolean = 0.1        false: the mean of all batches
  affine: boolean = true                whether it has weight and bias
  track_running_stats: boolean = true   without, always by the batch

nn.BatchNorm2d(channels: integer, options?: table) -> Module
  The same for (n, channels, h, w).

nn.BatchNorm3d(channels: integer, options?: table) -> Module
  The same for (n, channels, d, h, w).

nn.GroupNorm(groups: integer, channels: integer, options?: table) -> Module
  group_norm.
  eps: number = 1e-5        keeps the division finite
  affine: boolean = true    whether it has weight and bias

nn.InstanceNorm1d(channels: integer, options?: table) -> Module
  instance_norm of (n, channels, l) or (channels, l).
  eps: number = 1e-5         keeps the division finite
  affine: boolean = false    whether it has weight and bias

nn.InstanceNorm2d(channels: integer, options?: table) -> Module
  The same for (n, channels, h, w) or (channels, h, w).

nn.InstanceNorm3d(channels: integer, options?: table) -> Module
  The same for (n, channels, d, h, w) or (channels, d, h, w).

# Pools

One number for each window of an image (n, channels, h, w) or a signal (n,
channels, l), which may come without n. Sizes are one number, or a table of two:
{ h, w }. What is in channels-last order stays so. The largest of all is
adaptive_max_pool2d(1), the mean of all adaptive_avg_pool2d(1).

Tensor:max_pool2d(kernel: integer|integer[], options?: table) -> Tensor, Tensor
  The largest of each window; of equal ones the first, and NaN over all.
  stride: integer|integer[]           from window to window; default: kernel
  padding: integer|integer[] = 0      on each side, at most half of the kernel
  dilation: integer|integer[] = 1     from place to place in a window
  ceil_mode: boolean = false          a window that sticks out counts too
  return_indices: boolean = false     also where they are: h * width + w, from 0

Tensor:max_pool1d(kernel: integer, options?: table) -> Tensor, Tensor
  The same of signals.

Tensor:avg_pool2d(kernel: integer|integer[], options?: table) -> Tensor
  The mean of each window. Options as of max_pool2d but for dilation.
  count_include_pad: boolean = true   padding counts as zeros

Tensor:avg_pool1d(kernel: integer, options?: table) -> Tensor
  The same of signals.

Tensor:adaptive_max_pool2d(size: integer|table, options?: table)
    -> Tensor, Tensor
  The largest of windows that divide the image into as many as size says; false
  in a table keeps a dimension.
  return_indices: boolean = false     also where they are

Tensor:adaptive_max_pool1d(size: integer, options?: table) -> Tensor, Tensor
  The same of signals.

Tensor:adaptive_avg_pool2d(size: integer|table) -> Tensor
  The mean of such windows.

Tensor:adaptive_avg_pool1d(size: integer) -> Tensor
  The same of signals.

nn.MaxPool2d(kernel: integer|integer[], options?: table) -> Module
  max_pool2d with these options.

nn.MaxPool1d(kernel: integer, options?: table) -> Module
  max_pool1d with these options.

nn.AvgPool2d(kernel: integer|integer[], options?: table) -> Module
  avg_pool2d with these options.

nn.AvgPool1d(kernel: integer, options?: table) -> Module
  avg_pool1d with these options.

nn.AdaptiveMaxPool2d(size: integer|table, options?: table) -> Module
  adaptive_max_pool2d; size 1 is global pooling.

nn.AdaptiveMaxPool1d(size: integer, options?: table) -> Module
  adaptive_max_pool1d; size 1 is global pooling.

nn.AdaptiveAvgPool2d(size: integer|table) -> Module
  adaptive_avg_pool2d; size 1 is global pooling: the mean of each channel.

nn.AdaptiveAvgPool1d(size: integer) -> Module
  adaptive_avg_pool1d; size 1 is global pooling.

# Resizing

Tensor:interpolate(options: table) -> Tensor
  An image (n, channels, h, w) or a signal (n, channels, l) in another size.
  size: integer|integer[]             the new one, or
  scale_factor: number|number[]       how many times the old one
  mode: string = "nearest"            or "linear" (signals), "bilinear",
                                      "bicubic" (images)
  align_corners: boolean = false      the outermost centres meet, not the edges
  antialias: boolean = false          a smaller image is made of all pixels, as
                                      Pillow makes it; bilinear and bicubic

Tensor:pixel_shuffle(factor: integer) -> Tensor
  Channels as pixels: (..., c * factor^2, h, w) to (..., c, h * factor,
  w * factor).

Tensor:pixel_unshuffle(factor: integer) -> Tensor
  The way back.

nn.Upsample(options: table) -> Module
  interpolate with these options.

nn.PixelShuffle(factor: integer) -> Module
  pixel_shuffle.

nn.PixelUnshuffle(factor: integer) -> Module
  pixel_unshuffle.

# Gates

One half of x times a function of the other, along dim (-1); and products that
have a weight.

Tensor:glu(dim?: integer) -> Tensor
  a sigmoid(b) of the halves a and b.

Tensor:swiglu(dim?: integer) -> Tensor
  silu(a) b of the halves a and b.

Tensor:geglu(dim?: integer) -> Tensor
  a gelu(b) of the halves a and b.

Tensor:mul_sigmoid(y: Tensor|number) -> Tensor
  x * sigmoid(y), in one pass.

Tensor:mul_silu(y: Tensor|number) -> Tensor
  x * silu(y), in one pass.

Tensor:mul_gelu(y: Tensor|number) -> Tensor
  x * gelu(y), in one pass.

Tensor:leaky(slope: Tensor|number) -> Tensor
  x where it is positive, else slope * x.

Tensor:prelu(weight: Tensor) -> Tensor
  leaky with one slope, or one a channel (dimension 2 of x).

Tensor:bilinear(y: Tensor, weight: Tensor, bias?: Tensor) -> Tensor
  x A y for each matrix A in weight (outputs, n, m): x (..., n) and y (..., m)
  give (..., outputs).

nn.GLU(dim?: integer) -> Module
  glu along dim (-1).

nn.SwiGLU(dim?: integer) -> Module
  swiglu along dim (-1).

nn.GEGLU(dim?: integer) -> Module
  geglu along dim (-1).

nn.PReLU(count?: integer, options?: table) -> Module
  prelu with one slope (1), or one a channel.
  init: number = 0.25    where the slopes start

nn.Bilinear(first: integer, second: integer, outputs: integer, options?: table)
    -> Module
  bilinear of two inputs: layer(x, y).
  bias: boolean = true    whether it has one
]]

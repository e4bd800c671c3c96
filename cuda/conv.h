/* conv.h - the parts of convolution.
**
** conv.cu            patches times weights, and what ends a result
** conv_back.cu       the gradients of input and weights
** conv_depthwise.cu  channels that do not mix
**
** Images are channels-last: (n, in[0], in[1], in[2], channels).  A patch is
** what the taps of a kernel meet at one place, a row of a matrix: (groups,
** taps, channels of the group).  Rows are gathered a chunk at a time, as many
** as fit ROOM, and multiplied by weights in the same order. */

#ifndef cuda_conv_h
#define cuda_conv_h

#include "cublas.h"
#include "pack.h"

/* Bytes of rows that are in memory at a time, and what a thread block has. */
enum { CONV_ROOM = 64 << 20, CONV_THREADS = 256 };

/* A ConvShape for kernels: 32 bits, as cards divide these fast. */
typedef struct Places {
  unsigned in[3], out[3], size[3], stride[3], dilation[3];
  int before[3];
  unsigned taps, cin, cout, groups;
} Places;

/* Throws where a coordinate would not fit. */
Places conv_places (const ConvShape *s);

static inline int64_t conv_count (const int64_t size[3]) {
  return size[0] * size[1] * size[2];
}

/* Each channel has outputs of its own: one, or a few. */
static inline bool conv_is_depthwise (const ConvShape *s) {
  return s->groups > 1 && s->groups == s->cin;
}

/* One tap that meets all places where they are: nothing to gather. */
static inline bool conv_is_product (const ConvShape *s) {
  bool plain = conv_count(s->size) == 1;
  for (int d = 0; d < 3; d++)
    plain = plain && s->stride[d] == 1 && s->before[d] == 0 &&
            s->in[d] == s->out[d];
  return plain;
}

/* A block whose first axis goes over so many channels or packs of them. */
static inline dim3 conv_block (int64_t width) {
  unsigned across = pack_power(width, 32);
  return dim3(across, CONV_THREADS / across);
}

/* x (outer, rows, cols) with rows and columns exchanged, in dtype t. */
void conv_turn (void *y, fnn_Dtype t, const Tensor *x, int64_t outer,
                int64_t rows, int64_t cols);
/* w (cout, cin / groups, taps) as (cout, taps, cin / groups), or, depthwise,
** as (taps, cout): w's own elements where that is the same. */
const void *conv_weights (const Tensor *w, const ConvShape *s);

/* y (..., channels) = act(y + bias), in place. */
void conv_finish (Tensor *y, const Epilogue *e, int64_t channels);

/* Patches of the rows first .. first + rows - 1 of all n * out ones. */
void conv_lower (void *to, const Tensor *x, const Places *s, int64_t first,
                 int64_t rows);
/* How many rows of so many bytes make a chunk, of m in all. */
int64_t conv_chunk (int64_t m, int64_t bytes);
/* Device memory that the frame releases. */
void *conv_room (const Tensor *like, int64_t bytes);

/* conv_depthwise.cu */
void conv_depthwise (Tensor *y, const Tensor *x, const Tensor *w,
                     const Epilogue *e, const ConvShape *s);
void conv_depthwise_input (Tensor *gx, const Tensor *gy, const Tensor *w,
                           const Epilogue *e, const ConvShape *s);
void conv_depthwise_weight (Tensor *gw, const Tensor *gy, const Tensor *x,
                            const ConvShape *s);

#endif

/* sequences.h - what the kernels of attention and of recurrent layers are told;
** a part of core.h. */

#ifndef core_sequences_h
#define core_sequences_h

/* What attention does besides softmax(scale q k') v.  Score (i, j) may be
** attended where the mask is true; a mask of floats is added to the scores,
** and so is -slope |i + n - m - j| of the head, m queries being the last of n
** places.  causal: only where j <= i + n - m.  Then weights are dropped out as
** the elements of a (b, h, m, n) tensor would be. */
typedef struct Attention {
  const Tensor *mask;   /* (b, h, m, n), strides any, bool or of the dtype of
                           statistics; or NULL */
  const Tensor *slopes; /* (h), dense, of that dtype; or NULL */
  bool causal;
  double scale, dropout;
  Draw draw;
} Attention;

/* Gates of a cell: hidden columns each, in PyTorch's order. */
static inline int cell_gates (fnn_Cell c) {
  return c == FNN_LSTM ? 4 : c == FNN_GRU ? 3 : 1;
}

/* One layer of a recurrent network, in one direction.  All states are (steps,
** batch, ...), whatever the direction.  A sequence is done with after its
** length: then it gives zeros and its state stays; backwards in time it waits
** for its last step. */
typedef struct Recurrence {
  fnn_Cell cell;
  bool reverse;
  int64_t steps, batch, hidden;
  const Tensor *w;       /* (gates * hidden, hidden) */
  const Tensor *bias;    /* (hidden) added to u of a GRU's n, or NULL */
  const Tensor *h, *c;   /* (batch, hidden): where it starts; NULL: zeros */
  const Tensor *lengths; /* i64 (batch), 0 .. steps; or NULL */
  /* gates (steps, batch, gates * hidden): what the input gives to each gate,
  ** and then the gates.  inner (steps, batch, hidden): an LSTM's c in f32 or
  ** f64, a GRU's u of n; else NULL.  z (steps + 1, batch, hidden): h of each
  ** step and at last the final one; with c behind it for an LSTM. */
  Tensor *gates, *inner, *z;
} Recurrence;

#endif

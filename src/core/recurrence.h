/* recurrence.h - what the kernels of recurrent layers are told; a part of
** core.h. */

#ifndef core_recurrence_h
#define core_recurrence_h

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

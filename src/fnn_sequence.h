/* fnn_sequence.h - attention, rotary positions and recurrent layers: a part of
** fnn.h, which includes it. */

#ifndef fnn_sequence_h
#define fnn_sequence_h

#include "fnn.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Attention (Vaswani et al. 2017): softmax(scale q k' + mask) v for queries q
** (batch, heads, m, d), keys k (batch, groups, n, d) and values v (batch,
** groups, n, e), groups dividing heads; leading dims may be missing or more.
** A zeroed struct is plain attention.  The scores are never stored: memory is
** linear in m and n, but where the mask itself wants a gradient. */
typedef struct fnn_Attention {
  fnn_Tensor *mask;  /* broadcasts to (batch, heads, m, n): bool, true where
                        something may be attended, or floats that are added;
                        or NULL.  A row masked whole gives zeros and no
                        gradient */
  fnn_Tensor *alibi; /* (heads): a head's score falls by this times the
                        distance (Press et al. 2022), no gradient; or NULL */
  bool causal;       /* queries are the last m of n places, and see no later
                        ones */
  double scale;      /* 0: 1 / sqrt(d) */
  double dropout;    /* of the weights */
  fnn_Generator *generator;
} fnn_Attention;

FNN_API fnn_Tensor *fnn_scaled_dot_product_attention (fnn_Tensor *q,
                                                      fnn_Tensor *k,
                                                      fnn_Tensor *v,
                                                      const fnn_Attention *o);

/* Rotary positions (Su et al. 2021) of x (batch, heads, length, size), whose
** leading dims may be missing: of the first r of its numbers pair i turns by
** the angle whose cosine and sine stand in the tables cos and sin (n, r / 2).
** Pairs are (i, i + r / 2), or (2i, 2i + 1) interleaved.  The row of the table
** is that of positions, integers (length) or (batch, length) from 0, or counts
** from first where that is NULL.  The result is laid out by (batch, length,
** heads, size) in memory. */
FNN_API fnn_Tensor *fnn_rotary (fnn_Tensor *x, fnn_Tensor *cos,
                                fnn_Tensor *sin, fnn_Tensor *positions,
                                int64_t first, bool interleaved);

/* A recurrent layer's cell, its gates in PyTorch's order:
**   FNN_RNN_TANH, _RELU   h = tanh(a)
**   FNN_LSTM              i, f, g, o: c = s(f) c + s(i) tanh(g),
**                         h = s(o) tanh(c)
**   FNN_GRU               r, z, n: h = (1 - z) n + z h
** with a = w_ih x + b_ih + w_hh h + b_hh for each gate, s its logistic function
** and, in a GRU, n = tanh(w_ih x + b_ih + r (w_hh h + b_hh)). */
typedef enum fnn_Cell {
  FNN_RNN_TANH,
  FNN_RNN_RELU,
  FNN_LSTM,
  FNN_GRU
} fnn_Cell;

/* One layer in one direction, of g gates. */
typedef struct fnn_Recurrent {
  fnn_Cell cell;
  bool reverse;            /* from the last step to the first */
  fnn_Tensor *w_ih, *w_hh; /* (g hidden, in), (g hidden, hidden) */
  fnn_Tensor *b_ih, *b_hh; /* (g hidden), or both NULL */
  fnn_Tensor *h, *c;       /* (batch, hidden): where it starts; NULL: zeros */
  fnn_Tensor *lengths;     /* integers (batch): steps of each; NULL: all */
} fnn_Recurrent;

/* x (batch, steps, in) through all steps; returns h of each, (batch, steps,
** hidden).  *h and *c, if not NULL, get the final states, (batch, hidden); an
** LSTM alone has c.  After its length a sequence gives zeros, and its final
** state is that of its last step; in reverse it starts there. */
FNN_API fnn_Tensor *fnn_recurrent (fnn_Tensor *x, const fnn_Recurrent *r,
                                   fnn_Tensor **h, fnn_Tensor **c);

#ifdef __cplusplus
}
#endif

#endif

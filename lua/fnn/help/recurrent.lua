-- recurrent.lua - help on recurrent layers, as functions and as layers.
return [[
# Recurrent

Layers that go through a sequence step by step and carry a state. x is (batch,
steps, inputs), the result (batch, steps, hidden): the state h of each step. In
front of each gate, a = w_ih x + b_ih + w_hh h + b_hh. Gates and weights are in
PyTorch's order, which loads unchanged.

The option lengths (a table or tensor of integers, one a sequence) is for
sequences padded to the longest: after its length a sequence gives zeros, and
its final state is that of its last step, where the way back starts. A length of
0 leaves the state as it was.

Tensor:rnn(w_ih: Tensor, w_hh: Tensor, b_ih?: Tensor, b_hh?: Tensor,
    options?: table) -> Tensor, Tensor
  h = tanh(a). One layer in one direction: w_ih (hidden, inputs), w_hh (hidden,
  hidden), biases (hidden); gives h of all steps and the final h.
  h: Tensor                       where it starts, (batch, hidden): zeros
  lengths: integer[]|Tensor       steps of each sequence: all
  reverse: boolean = false        from the last step to the first
  nonlinearity: string = "tanh"   or "relu"

Tensor:lstm(w_ih: Tensor, w_hh: Tensor, b_ih?: Tensor, b_hh?: Tensor,
    options?: table) -> Tensor, Tensor, Tensor
  Gates i, f, g, o, whose weights are one below the other (4 hidden, ...): c =
  sigmoid(f) c + sigmoid(i) tanh(g), h = sigmoid(o) tanh(c). Gives h of all
  steps, and the final h and c.
  h: Tensor                       where it starts, (batch, hidden): zeros
  c: Tensor                       the same, of c
  lengths: integer[]|Tensor       steps of each sequence: all
  reverse: boolean = false        from the last step to the first

Tensor:gru(w_ih: Tensor, w_hh: Tensor, b_ih?: Tensor, b_hh?: Tensor,
    options?: table) -> Tensor, Tensor
  Gates r, z, n, (3 hidden, ...): h = (1 - sigmoid(z)) n + sigmoid(z) h with n =
  tanh(w_ih x + b_ih + sigmoid(r) (w_hh h + b_hh)). Gives h of all steps and
  the final h.
  h: Tensor                       where it starts, (batch, hidden): zeros
  lengths: integer[]|Tensor       steps of each sequence: all
  reverse: boolean = false        from the last step to the first

nn.RNN(inputs: integer, hidden: integer, options?: table) -> Module
  y, h = rnn(x, h?, { lengths = }?): several rnn over each other. A state is
  (layers times directions, batch, hidden); x and the states may come without
  the batch. Weights are uniform within 1 / sqrt(hidden).
  layers: integer = 1             over each other
  bidirectional: boolean = false  a second one from the end, beside each: the
                                  results are 2 hidden wide
  dropout: number = 0             of what goes from layer to layer
  bias: boolean = true            whether there are biases
  nonlinearity: string = "tanh"   or "relu"

nn.LSTM(inputs: integer, hidden: integer, options?: table) -> Module
  y, h, c = lstm(x, h?, c?, { lengths = }?). Options as nn.RNN's, without
  nonlinearity.

nn.GRU(inputs: integer, hidden: integer, options?: table) -> Module
  y, h = gru(x, h?, { lengths = }?). Options as nn.RNN's, without nonlinearity.

nn.RNNCell(inputs: integer, hidden: integer, options?: table) -> Module
  h = cell(x, h?): one step, x (batch, inputs) or (inputs). Options bias and
  nonlinearity as nn.RNN's.

nn.LSTMCell(inputs: integer, hidden: integer, options?: table) -> Module
  h, c = cell(x, h?, c?): one step. The option bias as nn.RNN's.

nn.GRUCell(inputs: integer, hidden: integer, options?: table) -> Module
  h = cell(x, h?): one step. The option bias as nn.RNN's.
]]

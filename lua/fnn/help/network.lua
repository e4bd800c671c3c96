-- network.lua - help on dense networks.
return [[
# Dense networks

A network of dense layers in a few words, over fnn.fit. Inputs are a tensor or a
table: rows, or one item. net.model is the Sequential that it consists of.

fnn.Network(options?: table) -> Network
  A network without layers.
  seed: integer    of its first weights and of the order of the data

Network:input_size(n: integer) -> Network
  How many numbers an item has. Comes first.

Network:dense(n: integer, activation?: string) -> Network
  Adds a layer of n units with "relu", "sigmoid", "tanh", "softmax" or "linear".

Network:loss(name: string) -> Network
  "mse", "bce" (behind "sigmoid") or "cross_entropy" (behind "softmax", or
  "linear" for outputs that are logits). Targets of cross_entropy are ids or
  rows of probabilities.

Network:optimizer(name: string, options?: table) -> Network
  "sgd", "adam" or "adamw", with the options of optim.SGD and so on.

Network:fit(x: Tensor|table, y: Tensor|table, options?: table) -> table
  Trains on rows x with targets y; options and result are those of fnn.fit.
  Where its option device puts the network, it stays; the methods below copy
  their rows there.

Network:fit_with(x: Tensor|table, y: Tensor|table, options: table,
                 f: function) -> table
  The same; f(epoch, loss) is called after each epoch, and ends the training by
  returning false.

Network:forward(x: Tensor|table) -> Tensor
  The outputs for rows or for one item. Raises when the size is wrong.

Network:predict(x: Tensor|table) -> Tensor|nil, string
  The same, but nil and a message when the size is wrong.

Network:accuracy(x: Tensor|table, y: Tensor|table) -> number
  The share of rows that it gets right: the largest output, or 0.5 for one.

Network:confusion_matrix(x: Tensor|table, y: Tensor|table) -> Tensor
  How often each actual class was taken for each: counts (actual, predicted).

Network:save_json(path: string) -> Network
  Writes layers, weights and loss; not what the optimizer remembers.

Network:load_json(path: string) -> Network
  Reads what save_json wrote into a network without layers.
]]

-- gpt.lua - a GPT of any size, as rows.lua measures it: learned places, blocks
-- with the norm first, and an output tied to the table of tokens.

local nn = require("fnn").nn

local Gpt = nn.module "Gpt"

function Gpt:init(o)
  self.tokens = nn.Embedding(o.vocabulary, o.dim)
  self.places = nn.LearnedPositions(o.length, o.dim)
  self.blocks = nn.TransformerEncoder(o.dim, o.heads, o.layers, {
    causal = true, dropout = 0, activation = "gelu_tanh",
  })
end

-- Logits of all places, or of the last alone.
function Gpt:forward(ids, opts, last)
  local x = self.blocks(self.places(self.tokens(ids), opts), opts)
  if last then x = x:narrow(2, -1, 1) end
  return x:linear(self.tokens.weight)
end

return Gpt

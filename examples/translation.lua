-- translation.lua: a Transformer learns to spell out numbers: it reads "342"
-- and writes "three hundred forty two" (Vaswani et al. 2017).
--
--   fnn examples/translation.lua [--quick] [--device cuda]
--
-- It prints numbers that it has never seen as it spells them, by the likeliest
-- word each time (greedy) and by beam search, and how many of 500 are right.

local fnn = require "fnn"
local nn, optim, text = fnn.nn, fnn.optim, fnn.text

local options = fnn.cli {
  "A Transformer learns to spell out numbers.",
  { "quick", false, "a few seconds, for tests" },
  { "seed", 1, "the same start, and so the same end, each time" },
}
-- Numbers of so many figures at most.
local figures, steps = options.quick and 3 or 6, options.quick and 400 or 2000
math.randomseed(options.seed)

-- Figures and words, and between which words a sentence is.
local words, id_of = {}, {}
for word in ([[pad start stop 0 1 2 3 4 5 6 7 8 9 zero one two three four five
    six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen
    seventeen eighteen nineteen twenty thirty forty fifty sixty seventy eighty
    ninety hundred thousand]]):gmatch "%w+" do
  words[#words + 1], id_of[word] = word, #words
end
local pad, start, stop = id_of.pad, id_of.start, id_of.stop

-- How it should be: what the network is to find out by examples.
local function spell(n)
  local function split(size, name)
    local rest = n % size > 0 and " " .. spell(n % size) or ""
    return (name and spell(n // size) .. " " .. name or
            words[id_of.twenty + n // 10 - 1]) .. rest
  end
  if n >= 1000 then return split(1000, "thousand") end
  if n >= 100 then return split(100, "hundred") end
  return n >= 20 and split(10) or words[id_of.zero + 1 + n]
end

local function text_of(ids)
  local list = {}
  for i, id in ipairs(ids) do list[i] = words[id + 1] end
  return table.concat(list, " ")
end

-- The ids of what a pattern finds in a text, with as many pads as it takes.
local function ids_in(s, pattern, length)
  local ids = {}
  for piece in s:gmatch(pattern) do ids[#ids + 1] = id_of[piece] end
  for k = #ids + 1, length do ids[k] = pad end
  return ids
end

-- Numbers of all lengths, and batches of ids: of their figures, and of what
-- they are spelled.  Of those from 100 on one in ten is for the test alone.
local function draw(count, for_test)
  local numbers, x, y = {}, {}, {}
  while #x < count do
    local n = math.random(0, 10 ^ math.random(figures) // 1 - 1)
    if (n >= 100 and n * 7919 % 1009 < 101) == for_test then
      local i, sentence = #x + 1, "start " .. spell(n) .. " stop"
      numbers[i], x[i] = n, ids_in(tostring(n), "%d", figures)
      y[i] = ids_in(sentence, "%a+", 2 * figures)
    end
  end
  local ids = { dtype = "i64" }
  return numbers, fnn.tensor(x, ids), fnn.tensor(y, ids)
end

local Speller = nn.module "Speller"

function Speller:init(dim, heads, layers)
  self.words = nn.Embedding(#words, dim)
  self.transformer = nn.Transformer(dim, heads, {
    encoder_layers = layers, decoder_layers = layers, rotary = true,
    activation = "gelu", dropout = 0 })
  self.head = nn.Linear(dim, #words)
end

-- What the decoder is to know of figures (n, length); it sees no padding.
function Speller:encode(x)
  return self.transformer:encode(self.words(x), { source_mask = x:ne(pad) })
end

-- Logits of the word after each of ids (n, words).
function Speller:decode(ids, memory, x)
  return self.head(self.transformer:decode(self.words(ids), memory,
                                           { source_mask = x:ne(pad) }))
end

local model = Speller(64, 4, 2)
local opt = optim.AdamW(model:parameters())
local law = optim.WarmupCosine(3e-3, steps // 10, steps)
local schedule = optim.scheduler(opt, law)

for step = 1, steps do
  local _, x, y = draw(64, false)
  schedule(step - 1)
  opt:zero_grad()
  -- The decoder is shown all words but the last, and says the one after each.
  local logits = model:decode(y:slice(2, 1, -2), model:encode(x), x)
  local loss = nn.cross_entropy(logits:flatten(1, 2), y:slice(2, 2):flatten(),
                                { ignore_index = pad })
  loss:backward()
  opt:step { max_norm = 1 }
  if step % (steps // 8) == 0 then
    print(("step %4d: loss %.4f"):format(step, loss:item()))
  end
end

-- Numbers that it has never seen ----------------------------------------------

model:eval()
local numbers, x = draw(500, true)
local memory = fnn.no_grad(function () return model:encode(x) end)

-- The likeliest word each time, for all of them at once.
local right = 0
local said = text.generate(function (ids)
  return model:decode(ids, memory, x)
end, fnn.full({ #numbers, 1 }, start, { dtype = "i64" }),
  { stop_ids = { stop }, max_tokens = 2 * figures })
for i, n in ipairs(numbers) do
  if text_of(said[i]) == spell(n) then right = right + 1 end
end

-- The likeliest sentence, of those that four beams find.
local beam = text.BeamSearch { width = 4, eos = stop, max_tokens = 2 * figures,
                               batched = true }
for i = 1, 8 do
  local found = beam(function (ids)
    return model:decode(ids, memory:narrow(1, i, 1):expand(#ids, -1, -1),
                        x:narrow(1, i, 1):expand(#ids, -1)):select(2, -1)
  end, { start })
  print(("%6d  greedy: %s\n        beam:   %s"):format(
    numbers[i], text_of(said[i]), text_of(found)))
end
print(("%d of %d numbers are right"):format(right, #numbers))
assert(right > (options.quick and 0.5 or 0.95) * #numbers, "it cannot spell")

-- char_lm.lua: a small GPT learns to write, a character at a time.
--
--   fnn examples/char_lm.lua [--text FILE] [--run FILE] [--steps N]
--                            [--model lstm] [--quick] [--device cuda]
--   fnn examples/char_lm.lua --generate N [--prompt TEXT] [--run FILE]
--
-- It learns from a file, or from fnn's own manual.  Ctrl-C stops it: the run is
-- in a file, and the same command goes on where it stopped.  --generate only
-- writes N characters, by the model in that file.

local fnn = require "fnn"
local nn, optim, data, text = fnn.nn, fnn.optim, fnn.data, fnn.text

local options = fnn.arguments(arg, {
  text = "", run = "char_lm.safetensors", model = "gpt", steps = 0,
  generate = 0, prompt = "\n", quick = false,
})

-- Models -------------------------------------------------------------------

-- Both give logits (batch, length, vocabulary) of what comes after each place.
local Gpt = nn.module "Gpt"

function Gpt:init(o)
  self.tokens = nn.Embedding(o.vocabulary, o.dim)
  self.blocks = nn.TransformerEncoder(o.dim, o.heads, o.depth, {
    causal = true, rotary = true, dropout = o.dropout, activation = "gelu",
  })
  self.output = nn.Linear(o.dim, o.vocabulary)
end

function Gpt:forward(ids, opts)
  return self.output(self.blocks(self.tokens(ids), opts))
end

local Lstm = nn.module "Lstm"

function Lstm:init(o)
  self.tokens = nn.Embedding(o.vocabulary, o.dim)
  self.cells = nn.LSTM(o.dim, o.dim, { layers = o.depth, dropout = o.dropout })
  self.output = nn.Linear(o.dim, o.vocabulary)
end

function Lstm:forward(ids)
  local states = self.cells(self.tokens(ids))
  return self.output(states)
end

local models = {
  gpt = function (o) return Gpt(o) end,
  lstm = function (o) return Lstm(o) end,
}

local sizes = {
  gpt = { dim = 192, depth = 4, heads = 6, length = 128, dropout = 0.1,
          batch = 32, steps = 2500, lr = 2e-3 },
  lstm = { dim = 256, depth = 2, length = 128, dropout = 0.1,
           batch = 32, steps = 2500, lr = 4e-3 },
  quick = { dim = 32, depth = 1, heads = 2, length = 32, dropout = 0,
            batch = 8, steps = 40, lr = 1e-2 },
}

-- Characters ---------------------------------------------------------------

local function read_text()
  if options.text == "" then return require("fnn.manual").source() end
  local file = assert(io.open(options.text, "rb"))
  local s = file:read "a"
  file:close()
  return s
end

-- The bytes that occur, in order: the ids of the model are places in it.
local function alphabet_of(s)
  local list, seen = {}, {}
  for c in s:gmatch "." do seen[c] = true end
  seen["\n"] = true
  for c in pairs(seen) do list[#list + 1] = c end
  table.sort(list)
  return table.concat(list)
end

local function encode(s, alphabet)
  local by_byte = fnn.zeros(256, { dtype = "i64" })  -- the rest: the first
  for id = 0, #alphabet - 1 do by_byte[alphabet:byte(id + 1) + 1] = id end
  return by_byte:index_select(1, data.bytes(s):to "i64")
end

-- Writing ------------------------------------------------------------------

local function write(model, o, prompt, count)
  local sampler = text.Sampler { temperature = 0.8, top_k = 40, seed = 1 }
  local ids = encode(prompt, o.alphabet):totable()
  local function last(list)  -- the model sees so many of them
    return list:narrow(2, math.max(1, list:size(2) - o.length + 1),
                       math.min(list:size(2), o.length))
  end
  local function next_logits(list) return model(last(list)) end
  for id in text.stream(next_logits, ids, { max_tokens = count,
                                            sampler = sampler }) do
    io.write(o.alphabet:sub(id + 1, id + 1))
    io.flush()
  end
  io.write "\n"
end

local function load_model(path, parts)
  local o = fnn.load_training(path, {}, { partial = true }).options
  local model = models[o.kind](o)
  if parts then parts.model = model end
  return model, o
end

if options.generate > 0 then
  local model, o = load_model(options.run)
  fnn.load_training(options.run, { model = model }, { partial = true })
  io.write(options.prompt)
  return write(model, o, options.prompt, options.generate)
end

-- Training -----------------------------------------------------------------

local content = read_text()
local parts = {}  -- what a run consists of, as it is saved
local o

local function begin()
  local file = not options.quick and io.open(options.run, "rb")
  if file then
    file:close()
    parts.model, o = load_model(options.run)
  else
    o = sizes[options.quick and "quick" or options.model]
    o.kind, o.alphabet = options.model, alphabet_of(content)
    o.vocabulary = #o.alphabet
    if options.steps > 0 then o.steps = options.steps end
    fnn.manual_seed(1)
    parts.model = models[o.kind](o)
  end
  parts.opt = optim.AdamW(parts.model:parameters(),
                          { weight_decay = 0.1, betas = { 0.9, 0.99 } })
  local step = file and fnn.load_training(options.run, parts).step or 0
  parts.options, parts.step = o, step
end

begin()
local model, opt = parts.model, parts.opt
local schedule = optim.WarmupCosine(o.lr, o.steps // 20, o.steps)
local ids = encode(content, o.alphabet)
local cut = #ids * 9 // 10
local train = data.Windows(ids:narrow(1, 1, cut), o.length)
local test = data.Windows(ids:narrow(1, cut + 1, #ids - cut), o.length,
                          { step = o.length })
print(("%d characters of %d kinds; %d parameters, from step %d of %d"):format(
  #ids, o.vocabulary, (model:parameter_count()), parts.step, o.steps))

local function loss_of(x, y)
  return nn.cross_entropy(model(x):flatten(1, 2), y:flatten())
end

-- The mean loss of a character over the last tenth of the text.
local function evaluate()
  model:eval()
  local sum, count = 0, 0
  fnn.no_grad(function ()
    for x, y in test:batches(o.batch) do
      sum = sum + loss_of(x, y):item() * #x
      count = count + #x
    end
  end)
  model:train()
  return sum / count
end

-- The batch of a step follows from its number, so a run goes on with the same.
local function batch_of(step)
  local g = fnn.Generator(step)
  return train:items(fnn.randint(0, #train, { o.batch }, { generator = g }))
end

local between = true  -- two steps, so that what is there can be saved

local function run()
  local started, from = fnn.clock(), parts.step
  while parts.step < o.steps do
    opt:set_options { lr = schedule(parts.step) }
    opt:zero_grad()
    local loss = loss_of(batch_of(parts.step))
    loss:backward()
    optim.clip_grad_norm(opt, 1)
    between = false
    opt:step()
    parts.step = parts.step + 1
    between = true
    if parts.step % 50 == 0 then
      print(("step %5d: loss %.3f, %.2f s a step"):format(
        parts.step, loss:item(), (fnn.clock() - started) /
                                 (parts.step - from)))
    end
    if parts.step % 250 == 0 then fnn.save_training(options.run, parts) end
  end
end

local ok, why = pcall(run)
if not options.quick and (ok or between) then
  fnn.save_training(options.run, parts)
end
if not ok then
  if not tostring(why):find "interrupted" then error(why, 0) end
  print(("stopped after step %d: the same command goes on"):format(parts.step))
  os.exit(130, true)
end

local loss = evaluate()
print(("loss on the last tenth: %.4f\n"):format(loss))
model:eval()
write(model, o, options.prompt, options.quick and 100 or 500)
if options.quick then assert(loss < 3.2, "the model has learned too little") end

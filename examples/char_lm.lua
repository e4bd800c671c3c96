-- char_lm.lua: a small GPT learns to write, a character at a time.
--
--   fnn examples/char_lm.lua [--text FILE] [--run FOLDER] [--steps N]
--                            [--model lstm] [--quick] [--device cuda]
--   fnn examples/char_lm.lua --generate N [--prompt TEXT] [--run FOLDER]
--
-- It learns from a file, or from fnn's own manual.  Ctrl-C stops it: the run is
-- in a folder, and the same command goes on where it stopped.  --generate only
-- writes N characters, by the model in that folder.

local fnn = require "fnn"
local nn, optim, data, text = fnn.nn, fnn.optim, fnn.data, fnn.text

local options = fnn.cli {
  "A small GPT learns to write, a character at a time.",
  { "text", nil, "what it learns from, if not fnn's manual", value = "FILE" },
  { "run", nil, "where the run is kept, if not in char_lm", value = "FOLDER" },
  { "model", { "gpt", "lstm" }, "what learns" },
  { "steps", nil, "how many steps in all", type = "integer", min = 1 },
  { "generate", 0, "only write so many characters", min = 0 },
  { "prompt", "\n", "what it goes on from" },
  { "quick", false, "a few seconds, for tests" },
  { "seed", 1, "seed of the first weights" },
}

-- Models: of ids (batch, length), the logits of what comes after each ------

local models = { gpt = nn.module "Gpt", lstm = nn.module "Lstm" }

function models.gpt:init(o)
  self.tokens = nn.Embedding(o.vocabulary, o.dim)
  self.blocks = nn.TransformerEncoder(o.dim, o.heads, o.depth, {
    causal = true, rotary = true, dropout = o.dropout, activation = "gelu",
  })
  self.output = nn.Linear(o.dim, o.vocabulary)
end

function models.gpt:forward(ids, opts)  -- opts may have a cache
  return self.output(self.blocks(self.tokens(ids), opts))
end

function models.lstm:init(o)
  self.tokens = nn.Embedding(o.vocabulary, o.dim)
  self.cells = nn.LSTM(o.dim, o.dim, { layers = o.depth, dropout = o.dropout })
  self.output = nn.Linear(o.dim, o.vocabulary)
end

function models.lstm:forward(ids)
  local states = self.cells(self.tokens(ids))
  return self.output(states)
end

local sizes = {
  gpt = { dim = 192, depth = 4, heads = 6, length = 128, dropout = 0.1,
          batch = 16, steps = 550, lr = 2e-3 },
  lstm = { dim = 256, depth = 2, length = 128, dropout = 0.1,
           batch = 32, steps = 600, lr = 4e-3 },
  quick = { dim = 32, depth = 1, heads = 2, length = 32, dropout = 0,
            batch = 8, steps = 40, lr = 1e-2 },
}

-- Characters: ids are places in the list of the bytes that occur -----------

local function alphabet_of(s)
  local seen, list = { [10] = true }, {}
  for c in s:gmatch "." do seen[c:byte()] = true end
  for byte = 0, 255 do
    if seen[byte] then list[#list + 1] = byte end
  end
  return list
end

local function encode(s, alphabet)
  local ids = fnn.zeros(256, { dtype = "i64" })  -- of other bytes: 0
  for i, byte in ipairs(alphabet) do ids[byte + 1] = i - 1 end
  return ids:index_select(1, data.bytes(s):to(ids:device(), "i64"))
end

-- Writes on from a prompt, in pieces: the model knows o.length places, half of
-- which are what it reads again before the next piece.
local function write(model, o, prompt, count)
  local ids, half = encode(prompt, o.alphabet):totable(), o.length // 2
  local sampler = text.Sampler { temperature = 0.8, top_k = 40, seed = 1 }
  local cache = o.kind == "gpt" and nn.KvCache { length = o.length } or nil
  for first = 1, count, half do
    local known = table.move(ids, math.max(1, #ids - half + 1), #ids, 1, {})
    for id in text.stream(model, known, {
      max_tokens = math.min(half, count - first + 1), sampler = sampler,
      cache = cache,
    }) do
      ids[#ids + 1] = id
      io.write(string.char(o.alphabet[id + 1]))
      io.flush()
    end
  end
  io.write "\n"
end

-- A run: what it consists of, as it is saved -------------------------------

local folder = options.run or not options.quick and "char_lm"
local checkpoints = folder and fnn.checkpoints(folder, { keep = 2 })
local path, saved
if checkpoints then path, saved = checkpoints:latest() end

if options.generate > 0 then
  assert(path, "there is no run to generate from: --run FOLDER")
  local o = saved.options
  local model = models[o.kind](o)
  fnn.load_training(path, { model = model }, { partial = true })
  io.write(options.prompt)
  return write(model, o, options.prompt, options.generate)
end

local content = options.text and fnn.io.read_text(options.text) or
                require("fnn.manual").source()
local o = saved and saved.options
if o then
  assert(o.kind == options.model, folder .. " has a run of another model")
else
  o = sizes[options.quick and "quick" or options.model]
  o.kind, o.alphabet = options.model, alphabet_of(content)
  o.vocabulary = #o.alphabet
end
o.steps = options.steps or o.steps

-- Nine tenths are learned from, the last is to test.
local ids = encode(content, o.alphabet)
local cut = #ids * 9 // 10
local train = data.Windows(ids:narrow(1, 1, cut), o.length)
local test = data.Windows(ids:narrow(1, cut + 1, #ids - cut), o.length,
                          { step = o.length })

local model = models[o.kind](o)
local opt = optim.AdamW(model:parameters(),
                        { weight_decay = 0.1, betas = { 0.9, 0.99 } })
local loader = data.DataLoader(train, { batch = o.batch, shuffle = true,
                                        seed = options.seed, prefetch = 2 })
local run = { model = model, opt = opt, loader = loader, options = o }
run.step = saved and checkpoints:resume(run).step or 0

-- Training -----------------------------------------------------------------

print(("%d characters of %d kinds; %d parameters, from step %d of %d"):format(
  #ids, o.vocabulary, (model:parameter_count()), run.step, o.steps))

local function loss_of(logits, y)
  return nn.cross_entropy(logits:flatten(1, 2), y:flatten())
end

local schedule = optim.WarmupCosine(o.lr, o.steps // 20, o.steps)
local started, from = fnn.clock(), run.step
local stop = false
fnn.on_interrupt(function() stop = true end)

local function learn(x, y)
  opt:set_options { lr = schedule(run.step) }
  opt:zero_grad()
  local loss = loss_of(model(x), y)
  loss:backward()
  opt:clip_grad_norm(1)
  opt:step()
  run.step = run.step + 1
  if run.step % 50 == 0 then
    print(("step %5d: loss %.3f, %.2f s a step"):format(
      run.step, loss:item(), (fnn.clock() - started) / (run.step - from)))
  end
end

while run.step < o.steps and not stop do
  for x, y in loader do
    learn(x, y)
    if checkpoints and run.step % 250 == 0 then checkpoints:save(run) end
    if stop or run.step == o.steps then break end
  end
end
if checkpoints then checkpoints:save(run) end
fnn.on_interrupt(nil)
if run.step < o.steps then
  print(("stopped after step %d%s"):format(
    run.step, checkpoints and ": the same command goes on" or ""))
  os.exit(130, true)
end

local loss = fnn.evaluate(model, test, { loss = loss_of }).loss
print(("loss on the last tenth: %.4f\n"):format(loss))
write(model, o, options.prompt, options.quick and 100 or 500)
-- Of the manual, and in so many steps.
if not (options.text or options.steps) then
  assert(loss < (options.quick and 3.2 or 1.8),
         "the model has learned too little")
end

-- generate.lua - ids from a model, one after another: fnn.text.generate, the
-- same as an iterator, fnn.text.stream, and in turns, fnn.text.Decoder.

local fnn, load, internals = ...
local text = fnn.text
local module = load "nn/module"
local check = load "text/ids"
local Reader = load "text/reader"

local ipairs, setmetatable, type = ipairs, setmetatable, type
local concat, move = table.concat, table.move
local max, min = math.max, math.min
local raise, described = module.raise, module.described

-- {======================================================
-- Options
-- =======================================================

local defaults = {
  max_tokens = 100, sampler = false, cache = false, callback = false,
  stop_ids = false, stop = false,
}

local function greedy () return text.Sampler { temperature = 0 } end

-- A list of ids as a set.
local function set_of (what, list)
  local set = {}
  for _, id in ipairs(list and check.list(what, list) or {}) do
    set[id] = true
  end
  return set
end

-- A list of sequences, none of them empty, as their own lists.
local function sequences_of (what, list)
  local sequences = {}
  if list and type(list) ~= "table" then
    raise("%s: expected a list of sequences, got %s", what, described(list))
  end
  for i, v in ipairs(list or {}) do
    sequences[i] = check.list(what, v)
    if #sequences[i] == 0 then
      raise("%s: sequence %d is empty", what, i)
    end
  end
  return sequences
end

local function options_of (what, options)
  local o = module.options(what, options, defaults)
  check.check_count(what, o, "max_tokens", 0)
  check.check_callable(what, o, "sampler")
  check.check_callable(what, o, "callback")
  o.sampler = o.sampler or greedy()
  o.stop_ids = set_of(what .. ": option 'stop_ids'", o.stop_ids)
  o.stop = sequences_of(what .. ": option 'stop'", o.stop)
  return o
end

-- The prompt, or the prompts of a batch, as lists of ids; and whether it is a
-- batch.
local function prompts_of (what, v)
  local first = type(v) == "table" and v[1]
  local batch = fnn.is_tensor(v) and #v:shape() == 2 or
                type(first) == "table" or fnn.is_tensor(first)
  local lists = {}
  if batch then
    for r = 1, #v do
      lists[r] = check.list(what, v[r])
      if #lists[r] ~= #lists[1] then
        raise("%s: expected prompts of one length, got %d ids in prompt 1 " ..
              "and %d in prompt %d", what, #lists[1], #lists[r], r)
      end
    end
  else
    lists[1] = check.list(what, v)
  end
  if not lists[1] or #lists[1] == 0 then
    raise("%s: the prompt is empty (expected one id or more)", what)
  end
  return lists, batch
end

-- }======================================================

-- {======================================================
-- A run: rows that grow by an id a step
-- =======================================================

-- A row is its ids, of which the first start are the prompt.  count new ones
-- are its result; of these ready ones are sure to stay, and given have been
-- handed on: those between may be the beginning of a stop sequence.

-- How many of the last of n new ids are how sequence begins.
local function beginning (row, n, sequence)
  local ids, base = row.ids, row.start + n
  for length = min(n, #sequence), 1, -1 do
    local k = 1
    while k <= length and ids[base - length + k] == sequence[k] do k = k + 1 end
    if k > length then return length end
  end
  return 0
end

local function finish (row, count)
  row.count, row.ready, row.done = count, count, true
end

-- Takes id as the next of a row.
local function take (row, id, o)
  local n, held = row.count + 1, 0
  row.ids[row.start + n] = id
  if o.stop_ids[id] then return finish(row, n - 1) end
  for _, sequence in ipairs(o.stop) do
    local length = beginning(row, n, sequence)
    if length == #sequence then return finish(row, n - length) end
    held = max(held, length)
  end
  row.count, row.ready = n, n - held
  if n == o.max_tokens then finish(row, n) end
end

-- The next id that a row can hand on, or nil.
local function handed (row)
  if row.given == row.ready then return nil end
  row.given = row.given + 1
  return row.ids[row.start + row.given]
end

local Run = {}
Run.__index = Run

local function new_run (what, model, prompt, options)
  local o = options_of(what, options)
  local lists, batch = prompts_of(what, prompt)
  local rows = {}
  for r, ids in ipairs(lists) do
    rows[r] = { ids = ids, start = #ids, count = 0, ready = 0, given = 0,
                done = o.max_tokens == 0 }
  end
  return setmetatable({
    o = o, lists = lists, rows = rows, batch = batch,
    reader = Reader.new(what, model, o.cache),
  }, Run)
end

function Run:done ()
  for _, row in ipairs(self.rows) do
    if not row.done then return false end
  end
  return true
end

-- An id more for each row that is not done; the others keep their length with
-- any id.
function Run:step ()
  local logits = self.reader:logits(self.lists)
  for r, row in ipairs(self.rows) do
    local ids = row.ids
    if row.done then
      ids[#ids + 1] = ids[#ids]
    else
      take(row, self.reader:choose(self.o.sampler, logits[r], ids), self.o)
    end
  end
end

-- Calls the callback with what can be handed on.
local function hand_on (row, r, callback)
  local id = handed(row)
  while id do
    if callback and callback(id, r) == false then
      return finish(row, row.given)
    end
    id = handed(row)
  end
end

-- }======================================================

-- fnn.text.generate(model, prompt, options): the new ids
local function generate (model, prompt, options)
  local run, results = new_run("generate", model, prompt, options), {}
  while not run:done() do
    run:step()
    for r, row in ipairs(run.rows) do hand_on(row, r, run.o.callback) end
  end
  for r, row in ipairs(run.rows) do
    results[r] = move(row.ids, row.start + 1, row.start + row.count, 1, {})
  end
  return run.batch and results or results[1]
end

-- fnn.text.stream(model, prompt, options): an iterator over the same ids
local function stream (model, prompt, options)
  local run = new_run("stream", model, prompt, options)
  local row = run.rows[1]
  if run.batch then
    raise "stream: expected one prompt, got a batch (generate takes them)"
  end
  return function ()
    local id = handed(row)
    while not id and not row.done do
      run:step()
      id = handed(row)
    end
    local callback = run.o.callback
    if id and callback and callback(id, 1) == false then
      finish(row, row.given)
    end
    return id
  end
end

-- {======================================================
-- Turns
-- =======================================================

local Decoder = internals.namespace({}, "fnn.text.Decoder")
local meta = { __name = "fnn.text.Decoder", __index = Decoder }

local decoder_defaults = { cache = false, sampler = false }

-- fnn.text.Decoder(model, options)
local function new_decoder (model, options)
  local o = module.options("Decoder", options, decoder_defaults)
  check.check_callable("Decoder", o, "sampler")
  return setmetatable({
    reader = Reader.new("Decoder", model, o.cache), list = {}, logits = false,
    sampler = o.sampler or greedy(),
  }, meta)
end

-- Ids that the model reads before it says the next.
function Decoder:feed (ids)
  if type(ids) == "number" then ids = { ids } end
  local more = check.list("feed", ids)
  move(more, 1, #more, #self.list + 1, self.list)
  return self
end

-- Reads what has not been read, and chooses an id.
function Decoder:next (sampler)
  local list = self.list
  if #list == 0 then
    raise "next: nothing has been fed (expected one id or more)"
  end
  if sampler ~= nil and not check.callable(sampler) then
    raise("next: expected a sampler, got %s", described(sampler))
  end
  if not self.logits or self.reader.read < #list then
    self.logits = self.reader:logits { list }
  end
  local id = self.reader:choose(sampler or self.sampler, self.logits[1], list)
  list[#list + 1] = id
  return id
end

-- All ids so far, fed and chosen.
function Decoder:ids () return move(self.list, 1, #self.list, 1, {}) end

function Decoder:reset ()
  self.list, self.logits = {}, nil
  self.reader:reset()
  return self
end

function meta:__len () return #self.list end

function meta:__tostring ()
  return "Decoder(" .. concat({ #self.list, " ids" }) .. ")"
end

-- }======================================================

return { generate = generate, stream = stream, Decoder = new_decoder }

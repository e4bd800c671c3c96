-- beam.lua - fnn.text.BeamSearch: the most probable sequence, nearly.
--
-- A beam is a sequence with the logarithm of its probability.  A step makes of
-- each live beam one for every next id; of these and of the finished beams the
-- best by logp / max(1, length)^penalty stay.  The id that ends a sequence
-- counts in its probability, and not in its length.

local fnn, load = ...
local module = load "nn/module"
local check = load "text/ids"

local ipairs, setmetatable, type = ipairs, setmetatable, type
local concat, move, sort = table.concat, table.move, table.sort
local huge, math_type = math.huge, math.type
local max, min = math.max, math.min
local raise, described = module.raise, module.described

local defaults = {
  width = 4, length_penalty = 1.0, eos = false, max_tokens = 100,
  batched = false,
}

local Search = { __name = "fnn.text.BeamSearch" }
Search.__index = Search

-- fnn.text.BeamSearch(options)
local function new_search (options)
  local o = module.options("BeamSearch", options, defaults)
  check.check_count("BeamSearch", o, "width", 1)
  check.check_count("BeamSearch", o, "max_tokens", 0)
  if o.eos then check.check_count("BeamSearch", o, "eos", 0) end
  local p = o.length_penalty
  if math_type(p) == nil or p ~= p or p == huge or p == -huge then
    raise("BeamSearch: option 'length_penalty': expected a finite number, " ..
          "got %s", check.shown(p))
  end
  return setmetatable(o, Search)
end

local function score_of (self, logp, length)
  return logp / max(1, length) ^ self.length_penalty
end

-- {======================================================
-- Logits
-- =======================================================

-- Logits of n rows as log-probabilities on the host; a row of nothing but -inf
-- stays so.
local function log_probabilities (y, n)
  if type(y) == "table" then y = fnn.tensor(y, { dtype = "f64" }) end
  if not fnn.is_tensor(y) then
    raise("BeamSearch: the function returned %s (expected logits)",
          described(y))
  end
  local shape = y:shape()
  if #shape == 1 and n == 1 then
    y = y:unsqueeze(1)
  elseif #shape ~= 2 or shape[1] ~= n then
    raise("BeamSearch: the function returned logits of shape (%s) (expected " ..
          "%s)", concat(shape, ", "),
          n == 1 and "(vocabulary)" or "(" .. n .. ", vocabulary)")
  end
  y = y:to("cpu", "f64")
  local most = y:max(-1, { keepdim = true })
  return y:log_softmax(-1):masked_fill(most:eq(-huge), -huge)
end

-- The rows of logits behind live beams, one call for each or one for all.
local function rows_behind (self, step, live)
  local lists = {}
  for i, beam in ipairs(live) do
    lists[i] = move(beam.ids, 1, #beam.ids, 1, {})
  end
  if self.batched then
    local y = fnn.no_grad(step, fnn.tensor(lists, { dtype = "i64" }))
    return log_probabilities(y, #live)
  end
  local rows = {}
  for i, list in ipairs(lists) do
    rows[i] = log_probabilities(fnn.no_grad(step, list), 1)[1]
  end
  return rows
end

-- }======================================================

-- {======================================================
-- Beams
-- =======================================================

-- beam with id behind it; order: its place among equals.
local function grown (self, beam, id, logp, order)
  local finished = id == self.eos
  local length = finished and beam.length or beam.length + 1
  logp = beam.logp + logp
  return { from = beam, id = id, length = length, logp = logp, order = order,
           finished = finished, score = score_of(self, logp, length) }
end

-- Adds to list what of beam's successors may be among the best: of those that
-- go on no more than width, and the one that ends.
local function grow (self, beam, row, list)
  local values, ids = row:topk(min(self.width + 1, #row))
  values, ids = values:totable(), ids:totable()
  for i, logp in ipairs(values) do
    if logp ~= logp then
      raise("BeamSearch: the logits behind %s are not numbers",
            "{" .. concat(beam.ids, ", ") .. "}")
    end
    if ids[i] ~= self.eos and logp > -huge then
      list[#list + 1] = grown(self, beam, ids[i], logp, #list)
    end
  end
  if self.eos and self.eos < #row then
    local logp = row:at(self.eos)
    if logp > -huge then
      list[#list + 1] = grown(self, beam, self.eos, logp, #list)
    end
  end
end

local function better (a, b)
  if a.score ~= b.score then return a.score > b.score end
  return a.order < b.order
end

-- The best of the list, with their ids.
local function best_of (self, list)
  sort(list, better)
  local beams = {}
  for i = 1, min(self.width, #list) do
    local beam = list[i]
    if beam.from then
      local ids = beam.from.ids
      beam.ids = move(ids, 1, #ids, 1, {})
      if not beam.finished then beam.ids[#ids + 1] = beam.id end
      beam.from = nil
    end
    beams[i] = beam
  end
  return beams
end

-- }======================================================

-- search(step, prompt): the ids behind the prompt, and their score
function Search:__call (step, prompt)
  if not check.callable(step) then
    raise("BeamSearch: expected a function of ids, got %s", described(step))
  end
  local ids = check.list("BeamSearch", prompt)
  local first, beams = #ids, { { ids = ids, length = 0, logp = 0, score = 0 } }
  for _ = 1, self.max_tokens do
    local live, list = {}, {}
    for _, beam in ipairs(beams) do
      if beam.finished then
        beam.order = #list
        list[#list + 1] = beam
      else
        live[#live + 1] = beam
      end
    end
    if #live == 0 then break end
    local rows = rows_behind(self, step, live)
    for i, beam in ipairs(live) do grow(self, beam, rows[i], list) end
    if #list == 0 then
      raise "BeamSearch: all logits are -inf: no id may follow any sequence"
    end
    beams = best_of(self, list)
  end
  local best = beams[1]
  return move(best.ids, first + 1, #best.ids, 1, {}), best.score
end

function Search:__tostring ()
  return "BeamSearch(width=" .. self.width .. ")"
end

return { BeamSearch = new_search }

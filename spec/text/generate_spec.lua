-- generate_spec.lua - fnn.text.generate, stream and Decoder, over models that
-- count what they read and a cache that is a stand-in for nn.KvCache.

local fnn = require "fnn"
local nn, text = fnn.nn, fnn.text
local unpack = table.unpack

local V = 13

-- The sum of what was read by place, as a cache: (rows, V) for each place.
local Cache = {}
Cache.__index = Cache
function Cache.new(most) return setmetatable({ most = most or 1000 }, Cache) end
function Cache:clear() for i = #self, 1, -1 do self[i] = nil end end
function Cache:truncate(n) for i = #self, n + 1, -1 do self[i] = nil end end
function Cache:is_empty() return #self == 0 end

-- A model whose logits at a place depend on all ids up to it: the sum of
-- embeddings, each turned by its place.  model.reads lists how many ids each
-- call read.
local function new_model(seed)
  local g = fnn.Generator(seed)
  local table_of = fnn.randn(V, V, { dtype = "f64", generator = g })
  local model = { reads = {} }
  return setmetatable(model, { __call = function(self, ids, options)
    local rows, length = unpack(ids:shape())
    local cache = options and options.cache or {}
    local out = {}
    self.reads[#self.reads + 1] = length
    for t = 1, length do
      local x = table_of:index_select(1, ids:select(2, t))
      x = (x * (1 + #cache % 3)):roll(#cache, 2)
      cache[#cache + 1] = #cache > 0 and cache[#cache] + x or x
      out[t] = cache[#cache]
      if cache.most and #cache > cache.most then error "cache: full" end
    end
    assert(out[1]:shape()[1] == rows)
    return fnn.stack(out, 2)
  end })
end

-- Each id is the argmax of a forward over all ids before it.
local function stepwise(model, prompt, n)
  local ids, found = { unpack(prompt) }, {}
  for i = 1, n do
    local logits = model(fnn.tensor({ ids }, { dtype = "i64" }))
    found[i] = logits[1][-1]:argmax():item()
    ids[#ids + 1] = found[i]
  end
  return found
end

local prompt = { 3, 1, 4 }

describe("generate", function()
  it("gives the argmax of full forwards, with a cache and without", function()
    for seed = 1, 5 do
      local model = new_model(seed)
      local expected = stepwise(model, prompt, 12)
      assert.same(expected, text.generate(model, prompt, { max_tokens = 12 }))
      model.reads = {}
      assert.same(expected, text.generate(model, prompt, {
        max_tokens = 12, cache = Cache.new(),
      }))
      assert.same({ 3, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1 }, model.reads)
    end
  end)

  it("reads all anew without a cache, and clears one that it gets", function()
    local model, cache = new_model(1), Cache.new()
    local ids = text.generate(model, prompt, { max_tokens = 4 })
    assert.same({ 3, 4, 5, 6 }, model.reads)
    for _ = 1, 2 do
      assert.same(ids, text.generate(model, prompt, { max_tokens = 4,
                                                      cache = cache }))
      assert.equal(3 + 4 - 1, #cache)
    end
  end)

  it("takes a tensor for a prompt, and leaves a list as it was", function()
    local model = new_model(1)
    local ids = text.generate(model, prompt, { max_tokens = 4 })
    assert.same({ 3, 1, 4 }, prompt)
    local x = fnn.tensor(prompt, { dtype = "i64" })
    assert.same(ids, text.generate(model, x, { max_tokens = 4 }))
  end)

  it("asks the sampler with logits (vocabulary) and all ids", function()
    local lengths = {}
    local ids = text.generate(new_model(1), prompt, {
      max_tokens = 3, sampler = function(logits, list)
        assert.same({ V }, logits:shape())
        lengths[#lengths + 1] = #list
        return list[#list] + 1
      end,
    })
    assert.same({ 5, 6, 7 }, ids)
    assert.same({ 3, 4, 5 }, lengths)
  end)

  it("is the same for the same seed", function()
    local function ids(seed)
      return text.generate(new_model(1), prompt, {
        max_tokens = 10, sampler = text.Sampler { temperature = 9, seed = seed }
      })
    end
    assert.same(ids(1), ids(1))
    assert.not_same(ids(1), ids(2))
  end)

  it("gives no ids for max_tokens 0, and reads nothing", function()
    local model = new_model(1)
    assert.same({}, text.generate(model, prompt, { max_tokens = 0 }))
    assert.same({}, model.reads)
  end)

  it("hands each id to the callback, and stops on false with that id",
     function()
    local model, seen = new_model(2), {}
    local all = text.generate(model, prompt, { max_tokens = 9 })
    model.reads = {}
    local ids = text.generate(model, prompt, {
      max_tokens = 9, callback = function(id)
        seen[#seen + 1] = id
        if #seen == 4 then return false end
        if #seen == 2 then return nil end
        return 0
      end,
    })
    assert.same({ unpack(all, 1, 4) }, ids)
    assert.same(ids, seen)
    assert.equal(4, #model.reads)
  end)
end)

-- A model that says what it is told to: ids by their place behind the prompt.
local function saying(list)
  return function(ids)
    local rows, length = unpack(ids:shape())
    local y = fnn.zeros(rows, length, V)
    for r = 1, rows do
      local says = type(list[1]) == "table" and list[r] or list
      y[r][length][(says[length - #prompt + 1] or 0) + 1] = 1
    end
    return y
  end
end

describe("generate stops", function()
  local function said(list, o)
    local seen = {}
    o.max_tokens = o.max_tokens or #list
    o.callback = function(id) seen[#seen + 1] = id end
    local ids = text.generate(saying(list), prompt, o)
    assert.same(ids, seen)
    return ids
  end

  it("at an id, which is left out", function()
    assert.same({ 5, 6 }, said({ 5, 6, 2, 7 }, { stop_ids = { 2, 11 } }))
    assert.same({}, said({ 2, 5 }, { stop_ids = { 2 } }))
    assert.same({ 5, 5 }, said({ 5, 5 }, { stop_ids = { 4 } }))
  end)

  it("at a sequence, which is left out", function()
    assert.same({ 5 }, said({ 5, 6, 7, 8 }, { stop = { { 6, 7 } } }))
    assert.same({ 6, 6 }, said({ 6, 6, 6, 7, 8 }, { stop = { { 6, 7 } } }))
    assert.same({ 1, 2, 1, 1 }, said({ 1, 2, 1, 1, 2, 1, 3, 9 },
                                     { stop = { { 2, 1, 3 } } }))
    assert.same({ 5 }, said({ 5, 8, 9 }, { stop = { { 6, 7 }, { 8 } } }))
    assert.same({}, said({ 6, 7 }, { stop = { { 6, 7 } } }))
    -- the longer one was not ended
    assert.same({ 6, 7, 5 }, said({ 6, 7, 5 }, { stop = { { 6, 7, 8 } } }))
  end)

  it("and gives what was held back when it ends otherwise", function()
    assert.same({ 5, 6 }, said({ 5, 6 }, { stop = { { 6, 7 } } }))
    assert.same({ 5, 6 }, said({ 5, 6, 2 }, { stop = { { 6, 7 } },
                                              stop_ids = { 2 } }))
  end)

  it("where the callback says so among ids that were held back", function()
    local ids = text.generate(saying { 6, 7, 6, 7, 5, 9 }, prompt, {
      max_tokens = 6, stop = { { 6, 7, 6, 7, 8 } },
      callback = function(id) return id ~= 7 end,
    })
    assert.same({ 6, 7 }, ids)
  end)

  it("not at ids of the prompt", function()
    assert.same({ 4, 5 }, said({ 4, 5 }, { stop = { { 1, 4, 4 } },
                                           stop_ids = { 3 } }))
  end)
end)

describe("A batch", function()
  it("gives for each prompt what it gives alone", function()
    local prompts = { { 3, 1, 4 }, { 1, 5, 9 }, { 2, 6, 5 } }
    local alone = {}
    for r, p in ipairs(prompts) do
      alone[r] = text.generate(new_model(4), p, { max_tokens = 6 })
    end
    local model = new_model(4)
    assert.same(alone, text.generate(model, prompts, { max_tokens = 6 }))
    local x = fnn.tensor(prompts, { dtype = "i64" })
    assert.same(alone, text.generate(model, x, { max_tokens = 6,
                                                 cache = Cache.new() }))
  end)

  it("goes on while one row is not done", function()
    local seen = {}
    local ids = text.generate(saying { { 5, 2, 7, 8 }, { 6, 7, 8, 9 },
                                       { 1, 3, 8, 8 } }, {
      prompt, prompt, prompt,
    }, {
      max_tokens = 4, stop_ids = { 2 }, stop = { { 8, 8 } },
      callback = function(id, row)
        seen[#seen + 1] = row .. ":" .. id
        return not (row == 2 and id == 8)
      end,
    })
    assert.same({ { 5 }, { 6, 7, 8 }, { 1, 3 } }, ids)
    assert.equal("1:5 2:6 3:1 2:7 3:3 2:8", table.concat(seen, " "))
  end)

  it("has prompts of one length", function()
    assert.error_matches(function()
      text.generate(new_model(1), { { 1, 2 }, { 3 } })
    end, "prompts of one length, got 2 ids in prompt 1 and 1 in prompt 2")
  end)
end)

describe("A model", function()
  local Model = nn.module "Model"
  function Model:init()
    self.embedding, self.drop = nn.Embedding(V, 8), nn.Dropout(0.5)
    self.out = nn.Linear(8, V)
  end
  function Model:forward(ids)
    self.graph = fnn.is_grad_enabled()
    self.seen = self.drop.training or self.training
    return self.out(self.drop(self.embedding(ids)))
  end

  it("runs without a graph and in eval mode, and is then as before", function()
    local model = Model()
    for _, training in ipairs { true, false } do
      model:train(training)
      model.drop:train(true)
      text.generate(model, prompt, { max_tokens = 2, callback = function()
        assert.equal(training, model.training)
        assert.is_true(model.drop.training)
      end })
      assert.is_false(model.graph)
      assert.is_false(model.seen)
      assert.equal(training, model.training)
      assert.is_true(model.drop.training)
      assert.is_true(fnn.is_grad_enabled())
    end
  end)

  it("may be made of layers that take ids alone", function()
    fnn.manual_seed(4)
    local model = nn.Sequential(nn.Embedding(V, 8), nn.Tanh(), nn.Linear(8, V))
    local expected = stepwise(model, prompt, 5)
    assert.same(expected, text.generate(model, prompt, { max_tokens = 5 }))
    model:eval()
    assert.same(expected, text.generate(model, prompt, { max_tokens = 5 }))
  end)

  it("is as before after an error", function()
    local model = Model()
    assert.error_matches(function() text.generate(model, { V }) end,
                         "Embedding")
    assert.is_true(model.training and model.drop.training)
    assert.is_true(fnn.is_grad_enabled())
    local co = coroutine.create(function() text.generate(model, { V }) end)
    assert.is_false(coroutine.resume(co))
    assert.is_true(model.training and model.drop.training)
  end)

  it("that is abandoned between two ids is as before", function()
    local model = Model()
    local step = text.stream(model, prompt)
    step()
    assert.is_true(model.training and model.drop.training)
  end)
end)

describe("In a coroutine", function()
  it("generate is stepped by a callback that yields", function()
    local model = new_model(3)
    local expected = text.generate(model, prompt, { max_tokens = 5 })
    local seen = {}
    local step = coroutine.wrap(function()
      return text.generate(model, prompt, {
        max_tokens = 5, callback = coroutine.yield, cache = Cache.new(),
      })
    end)
    for i = 1, 5 do seen[i] = step() end
    assert.same(expected, seen)
    assert.same(expected, step())
  end)

  it("a sampler may yield", function()
    local step = coroutine.wrap(function()
      return text.generate(new_model(3), prompt, {
        max_tokens = 1, sampler = function()
          coroutine.yield "thinking"
          return 7
        end,
      })
    end)
    assert.equal("thinking", step())
    assert.same({ 7 }, step())
  end)
end)

describe("stream", function()
  it("gives what generate gives, when it is asked for it", function()
    local model, seen = new_model(3), {}
    local expected = text.generate(model, prompt, { max_tokens = 5 })
    model.reads = {}
    for id in text.stream(model, prompt, { max_tokens = 5 }) do
      seen[#seen + 1] = id
      assert.equal(#seen, #model.reads)
    end
    assert.same(expected, seen)
    seen = {}
    for id in text.stream(saying { 6, 6, 7, 8, 9 }, prompt,
                          { stop = { { 7, 8 } }, max_tokens = 5 }) do
      seen[#seen + 1] = id
    end
    assert.same({ 6, 6 }, seen)
  end)

  it("stops on false of the callback, with that id", function()
    local seen = {}
    for id in text.stream(saying { 5, 6, 7 }, prompt, {
      max_tokens = 3, callback = function(id) return id ~= 6 end,
    }) do seen[#seen + 1] = id end
    assert.same({ 5, 6 }, seen)
  end)

  it("takes one prompt", function()
    assert.error_matches(function()
      text.stream(new_model(1), { { 1 }, { 2 } })
    end, "stream: expected one prompt, got a batch")
  end)
end)

describe("Decoder", function()
  it("says what generate says", function()
    local model, found = new_model(5), {}
    local expected = text.generate(model, prompt, { max_tokens = 6 })
    for _, cache in ipairs { false, Cache.new() } do
      local d = text.Decoder(model, { cache = cache })
      d:feed(prompt)
      for i = 1, 6 do found[i] = d:next() end
      assert.same(expected, found)
    end
  end)

  it("reads only new ids in a second turn", function()
    local model = new_model(5)
    local d = text.Decoder(model, { cache = Cache.new() })
    d:feed(prompt)
    local first = { d:next(), d:next() }
    assert.same({ 3, 1 }, model.reads)
    d:feed({ 7, 8 }):feed(9)
    local second = { d:next(), d:next() }
    assert.same({ 3, 1, 4, 1 }, model.reads)  -- 1 that was said, and 3 fed
    -- as if all had been one prompt
    local ids = { 3, 1, 4, first[1], first[2], 7, 8, 9 }
    assert.same(second, text.generate(model, ids, { max_tokens = 2 }))
    assert.same({ 3, 1, 4, first[1], first[2], 7, 8, 9, second[1], second[2] },
                d:ids())
    assert.equal(10, #d)
    assert.equal("Decoder(10 ids)", tostring(d))
  end)

  it("takes another sampler for an id", function()
    local d = text.Decoder(new_model(5), { sampler = function() return 1 end })
    d:feed(prompt)
    assert.equal(1, d:next())
    assert.equal(2, d:next(function() return 2 end))
    assert.equal(1, d:next())
    assert.same({ 3, 1, 4, 1, 2, 1 }, d:ids())
  end)

  it("begins anew after reset", function()
    local model, cache = new_model(5), Cache.new()
    local d = text.Decoder(model, { cache = cache })
    local first = d:feed(prompt):next()
    d:next()
    assert.equal(d, d:reset())
    assert.equal(0, #cache)
    assert.equal(0, #d)
    assert.error_matches(function() d:next() end, "nothing has been fed")
    assert.equal(first, d:feed(prompt):next())
  end)

  it("reads all anew when the cache was used for something else", function()
    local model, cache = new_model(5), Cache.new()
    local d = text.Decoder(model, { cache = cache })
    local expected = text.generate(model, prompt, { max_tokens = 3 })
    local found = { d:feed(prompt):next() }
    text.generate(model, { 7, 7 }, { max_tokens = 6, cache = cache })
    found[2], found[3] = d:next(), d:next()
    assert.same(expected, found)
  end)

  it("shares a cache with another", function()
    local model, cache = new_model(7), Cache.new()
    local a = text.Decoder(model, { cache = cache }):feed(prompt)
    local ids = { a:next(), a:next() }
    local b = text.Decoder(model, { cache = cache }):feed { 9, 8, 7 }
    b:next()
    b:next()
    for i = 3, 6 do ids[i] = a:next() end
    assert.same(stepwise(model, prompt, 6), ids)
  end)

  it("has an error leave the cache as it was", function()
    local model, cache = new_model(5), Cache.new(6)
    local d = text.Decoder(model, { cache = cache })
    local first = d:feed(prompt):next()
    d:feed { 1, 2, 3, 4 }
    assert.error_matches(function() d:next() end, "cache: full")
    assert.equal(3, #cache)
    cache.most = 50
    local id = d:next()
    assert.equal(id, text.generate(model, { 3, 1, 4, first, 1, 2, 3, 4 },
                                   { max_tokens = 1 })[1])
  end)
end)

describe("A mistake", function()
  local model = new_model(1)
  local function fails(message, f, ...)
    local args = { ... }
    assert.error_matches(function() f(unpack(args, 1, 4)) end, message)
  end

  it("in an argument is named", function()
    local g = text.generate
    fails("generate: the prompt is empty", g, model, {})
    fails("generate: the prompt is empty", g, model,
          fnn.zeros(0, { dtype = "i64" }))
    fails("generate: expected a list or a tensor of ids, got nil", g, model)
    fails("element 2 of the ids: expected an integer from 0 on, got 2.5", g,
          model, { 1, 2.5 })
    fails("element 1 of the ids: .* got %-1", g, model, { -1 })
    fails("expected ids of dtype i64 and shape %(length%), got f32", g, model,
          fnn.zeros(2))
    fails("expected a model or a function as the first argument, got a number",
          g, 5, prompt)
    fails("unknown option 'max_token' %(did you mean 'max_tokens'%?%)", g,
          model, prompt, { max_token = 1 })
    fails("option 'max_tokens': expected an integer of 0 or more, got %-1", g,
          model, prompt, { max_tokens = -1 })
    fails("option 'max_tokens': .* got nan", g, model, prompt,
          { max_tokens = 0 / 0 })
    fails("option 'sampler': expected a function, got a number", g, model,
          prompt, { sampler = 1 })
    fails("option 'callback': expected a function, got a table", g, model,
          prompt, { callback = {} })
    fails("option 'cache': expected a cache", g, model, prompt, { cache = {} })
    fails("option 'cache': expected a cache", g, model, prompt, { cache = 1 })
    fails("option 'stop_ids': element 1 of the ids", g, model, prompt,
          { stop_ids = { "x" } })
    fails("option 'stop_ids': expected a list", g, model, prompt,
          { stop_ids = 5 })
    fails("option 'stop': sequence 1 is empty", g, model, prompt,
          { stop = { {} } })
    fails("option 'stop': expected a list", g, model, prompt,
          { stop = { 1 } })
    fails("Decoder: unknown option 'max_tokens'", text.Decoder, model,
          { max_tokens = 5 })
    fails("next: expected a sampler, got a number", function()
      text.Decoder(model):feed(prompt):next(5)
    end)
  end)

  it("of the model or the sampler is named", function()
    fails("the model returned a number %(expected logits%)", text.generate,
          function() return 5 end, prompt)
    fails("a tensor of shape %(1, 13%) for ids of shape %(1, 3%)",
          text.generate, function() return fnn.zeros(1, V) end, prompt)
    fails("the sampler returned 13 %(expected an id from 0 to 12%)",
          text.generate, model, prompt, { sampler = function() return 13 end })
    fails("the sampler returned nil", text.generate, model, prompt,
          { sampler = function() end })
    fails("the logit of id 0 is nan", text.generate, function()
      return fnn.full({ 1, 1, 2 }, 0 / 0)
    end, prompt)
  end)
end)

-- A run that is saved and goes on ends with the bits of one that never stopped.

local fnn = require "fnn"
local nn, optim = fnn.nn, fnn.optim

local path = os.tmpname()

local function new_run()
  local run = {}
  run.model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(),
                            nn.Dropout(0.3), nn.Linear(8, 2))
  run.opt = optim.AdamW(run.model:parameters(), { lr = 1e-2 })
  run.ema = optim.Ema(run.model:parameters(), { decay = 0.9 })
  run.plateau = optim.ReduceOnPlateau(0.1)
  run.noise = fnn.Generator(7)
  return run
end

local function step(run)
  local x = fnn.randn(6, 4, { generator = run.noise })
  run.opt:zero_grad()
  local loss = run.model(x):square():mean()
  loss:backward()
  run.opt:step()
  run.ema:update()
  return loss:item()
end

local function parts(run, more)
  local t = { model = run.model, opt = run.opt, ema = run.ema,
              plateau = run.plateau, noise = run.noise }
  for k, v in pairs(more or {}) do t[k] = v end
  return t
end

local function bits(run)
  local list = {}
  for _, p in ipairs(run.model:parameters()) do
    list[#list + 1] = p:value():totable()
  end
  for _, b in ipairs(run.model:buffers()) do list[#list + 1] = b:totable() end
  list[#list + 1] = run.ema:state_dict()["0.average"]:totable()
  return list
end

local function message(f, ...)
  local ok, why = pcall(f, ...)
  assert.is_false(ok)
  return tostring(why)
end

describe("a run in a file", function()
  teardown(function() os.remove(path) end)

  it("goes on bit for bit", function()
    fnn.manual_seed(3)
    local whole = new_run()
    for _ = 1, 4 do step(whole) end
    fnn.save_training(path, parts(whole, {
      step = 4, big = math.maxinteger, sizes = { dim = 8, name = "a" },
      extra = fnn.tensor { 1, 2 } }))
    local losses = {}
    for k = 1, 5 do losses[k] = step(whole) end
    local _ = fnn.rand(3)

    fnn.manual_seed(99)
    local again = new_run()
    for _ = 1, 2 do step(again) end
    local t = fnn.load_training(path, parts(again))
    assert.equal(4, t.step)
    assert.equal(math.maxinteger, t.big)
    assert.same({ dim = 8, name = "a" }, t.sizes)
    assert.same({ 1, 2 }, t.extra:totable())
    for k = 1, 5 do assert.equal(losses[k], step(again)) end
    assert.same(bits(whole), bits(again))
  end)

  it("refuses weights alone", function()
    local run = new_run()
    run.model:save(path)
    assert.matches("no optimizer state",
                   message(fnn.load_training, path, parts(run)))
  end)

  it("tells what does not fit", function()
    local run = new_run()
    fnn.save_training(path, { model = run.model, opt = run.opt, step = 1 })
    assert.matches("no 'net' in it %(there are: model, opt, step%)",
                   message(fnn.load_training, path, { net = run.model }))
    assert.matches("'opt' is in it, but nothing is given to take it",
                   message(fnn.load_training, path, { model = run.model }))
    assert.equal(1, fnn.load_training(path, { model = run.model },
                                      { partial = true }).step)
    assert.matches("'opt' is a state there; what is to take it is",
                   message(fnn.load_training, path,
                           { model = run.model, opt = fnn.zeros(1) }))
    assert.matches("'step' is to be filled, but is a number: load_training " ..
                   "returns the plain values",
                   message(fnn.load_training, path,
                           { model = run.model, opt = run.opt, step = 0 }))
    assert.matches("'model': .*mismatched",
                   message(fnn.load_training, path,
                           { model = nn.Sequential(
                               nn.Linear(4, 9), nn.BatchNorm1d(8), nn.ReLU(),
                               nn.Dropout(), nn.Linear(8, 2)),
                             opt = run.opt }))
    assert.matches("'a.b' is no name for an entry",
                   message(fnn.save_training, path, { ["a.b"] = 1 }))
    assert.matches("'f': expected what has a state_dict",
                   message(fnn.save_training, path, { f = print }))
    assert.matches("did you mean 'partial'",
                   message(fnn.load_training, path, {}, { partal = true }))
    assert.matches("^%S*_spec.lua:%d+: save_training: expected the path of " ..
                   "a file, got nil", message(fnn.save_training, nil, {}))
    assert.matches("load_training: expected the path of a file, got a table",
                   message(fnn.load_training, {}))
  end)

  it("takes of a state_dict a table of names or of plain values", function()
    local object = { load_state_dict = print }
    function object.state_dict(self) return self.dict end
    object = setmetatable({}, { __index = object })
    for dict, why in pairs {
      text = "'o': its state_dict returned a string, expected a table",
      [7] = "'o': its state_dict returned a number, expected a table",
      [{ 3, 4 }] = "'o': a state_dict is a list of names .* got a number",
      [{ "w" }] = "'o': a state_dict is a list of names .* got 'w' for nil",
      [{ w = fnn.ones(1) }] = "'o': json: a value that is a userdata",
    } do
      object.dict = dict
      assert.matches(why, message(fnn.save_training, path, { o = object }))
    end
  end)

  it("is refused when it is damaged", function()
    local function loaded(entries, state)
      fnn.io.save_safetensors(path, { { "a", fnn.ones(1) } }, {
        ["fnn.training"] = '{"version":1,"entries":' .. entries .. "}" })
      return message(fnn.load_training, path, state)
    end
    for _, entry in ipairs { "3", '{"kind":"x"}', '{"kind":[]}', "{}",
                             '{"kind":"state","values":4}',
                             '{"kind":"state","plain":"a"}' } do
      assert.matches("'m' is no entry", loaded('{"m":' .. entry .. "}"))
    end
    assert.matches("'1' is no entry", loaded "[1]")
    local model = nn.Linear(2, 2)
    local before = model.weight:value():totable()
    assert.matches("no tensor 'fnn'", loaded('{"m":{"kind":"state"}}',
                                             { m = model }))
    assert.same(before, model.weight:value():totable())
  end)

  it("has no strings that are not UTF-8", function()
    assert.matches("not UTF%-8 at its byte 1: '\\xff'",
                   message(fnn.save_training, path, { bytes = "\xff" }))
  end)

  it("leaves the file that was there when it fails", function()
    local run = new_run()
    fnn.save_training(path, { model = run.model, step = 5 })
    message(fnn.save_training, path, { model = run.model, bad = { print } })
    assert.equal(5, fnn.load_training(path, { model = run.model }).step)
  end)
end)

-- {======================================================
-- All or nothing
-- =======================================================

-- A run with everything in it that has a state.
local function whole_run(seed)
  fnn.manual_seed(seed)
  local run = new_run()
  run.opt = optim.Lookahead(run.opt, { k = 2 })
  run.scaler = optim.GradScaler { init_scale = 1024, interval = 3 }
  run.schedule = optim.scheduler(run.opt, optim.WarmupCosine(1e-2, 2, 9))
  run.mean = optim.SWA(run.model:parameters())
  run.x = fnn.rand(5)
  run.loader = fnn.data.DataLoader(
    fnn.data.TensorDataset(fnn.rand(40, 4)),
    { batch = 3, shuffle = true, seed = 2, prefetch = 2 })
  for k = 1, 5 do
    run.schedule(k)
    local x = run.loader:next()
    run.scaler:scale(run.model(x):square():mean()):backward()
    run.scaler:step(run.opt)
    run.scaler:update()
    run.opt:zero_grad()
    run.ema:update()
    run.mean:update()
    run.plateau:update(k)
  end
  return run
end

-- What a run is, as text.
local function text_of(v)
  if fnn.is_tensor(v) then
    return table.concat(v:flatten():totable(), " ")
  elseif type(v) == "table" then
    local keys, out = {}, {}
    for key in pairs(v) do keys[#keys + 1] = key end
    table.sort(keys, function(a, b) return tostring(a) < tostring(b) end)
    for i, key in ipairs(keys) do
      out[i] = tostring(key) .. "=" .. text_of(v[key])
    end
    return "{" .. table.concat(out, ",") .. "}"
  end
  return tostring(v)
end

local function state_text(run)
  local all = { random = fnn.default_generator():state() }
  for name, v in pairs(run) do
    if fnn.is_tensor(v) then
      all[name] = v
    elseif name == "noise" then
      all[name] = v:state()
    else
      all[name] = v:state_dict()
    end
  end
  return text_of(all)
end

describe("loading a run", function()
  local fresh, other

  setup(function()
    fnn.save_training(path, whole_run(1))
  end)

  before_each(function()
    fresh = whole_run(2)
    other = state_text(fresh)
  end)

  teardown(function() os.remove(path) end)

  it("brings back everything", function()
    fnn.load_training(path, fresh)
    local there = state_text(fresh)
    assert.not_equal(other, there)
    assert.equal(state_text(whole_run(1)), there)
  end)

  it("goes on with LBFGS, and its memory of steps", function()
    local function new_valley()
      local p = fnn.Param(fnn.tensor { -1.2, 1 })
      local opt = optim.LBFGS({ p }, { lr = 0.1, max_iter = 2 })
      local function descend()
        return opt:step(function()
          opt:zero_grad()
          local x, y = p:narrow(1, 1, 1), p:narrow(1, 2, 1)
          local loss = ((1 - x):square() + (y - x:square()):square() * 9):sum()
          loss:backward()
          return loss
        end):item()
      end
      return { p = p, opt = opt }, descend
    end
    local file = os.tmpname()
    local run, descend = new_valley()
    for _ = 1, 3 do descend() end
    fnn.save_training(file, { p = run.p:value(), opt = run.opt })
    local again, descend_again = new_valley()
    fnn.load_training(file, { p = again.p:value(), opt = again.opt })
    for _ = 1, 4 do assert.equal(descend(), descend_again()) end
    os.remove(file)
  end)

  -- What is wrong, and the message; each puts something else into the run.
  local wrong = {
    ["another kind of optimizer"] = { "the state of Lookahead%(AdamW%) does " ..
                                      "not fit SGD", function(run)
      run.opt = optim.SGD(run.model:parameters(), { lr = 0.1 })
    end },
    ["fewer parameters"] = { "the state of 6 parameters does not fit 1",
                             function(run)
      run.opt = optim.Lookahead(optim.AdamW { run.model:parameters()[1] },
                                { k = 2 })
    end },
    ["another shape"] = { "'model': .*mismatched", function(run)
      run.model = nn.Sequential(nn.Linear(4, 9), nn.BatchNorm1d(9), nn.ReLU(),
                                nn.Dropout(0.3), nn.Linear(9, 2))
    end },
    ["another average"] = { "'ema': .*the state of Ema does not fit SWA",
                            function(run)
      run.ema = optim.SWA(run.model:parameters())
    end },
    ["other groups"] = { "'schedule': .*of 1 groups do not fit 2",
                         function(run)
      local p = run.model:parameters()
      run.schedule = optim.scheduler(
        optim.SGD({ { params = { p[1] } }, { params = { p[2] } } },
                  { lr = 1 }), optim.Constant(1))
    end },
    ["a tensor of another shape"] = { "'x': expected shape %(6%), got %(5%)",
                                      function(run) run.x = fnn.rand(6) end },
    ["a name that is not there"] = { "no 'more' in it", function(run)
      run.more = fnn.Generator(1)
    end },
    ["a name that nothing takes"] = { "'noise' is in it, but nothing is given",
                                      function(run) run.noise = nil end },
    ["a loader of other batches"] = { "'loader': .*batch_size was 3, and is 4",
                                      function(run)
      run.loader = fnn.data.DataLoader(
        fnn.data.TensorDataset(fnn.rand(40, 4)),
        { batch = 4, shuffle = true, seed = 2 })
    end },
    ["another seed"] = { "seed was 2, and is 3", function(run)
      run.loader = fnn.data.DataLoader(
        fnn.data.TensorDataset(fnn.rand(40, 4)),
        { batch = 3, shuffle = true, seed = 3 })
    end },
    ["fewer items"] = { "items was 40, and is 39", function(run)
      run.loader = fnn.data.DataLoader(
        fnn.data.TensorDataset(fnn.rand(39, 4)),
        { batch = 3, shuffle = true, seed = 2 })
    end },
  }
  for what, case in pairs(wrong) do
    it("changes nothing for " .. what, function()
      local given = {}
      for name, v in pairs(fresh) do given[name] = v end
      case[2](given)
      local before = state_text(fresh)
      assert.matches(case[1], message(fnn.load_training, path, given))
      assert.equal(before, state_text(fresh))
    end)
  end

  it("changes nothing for weights alone", function()
    local weights = os.tmpname()
    fresh.model:save(weights)
    assert.matches("no optimizer state", message(fnn.load_training, weights,
                                                 fresh))
    os.remove(weights)
    assert.equal(other, state_text(fresh))
  end)

  it("puts back objects of the script's own", function()
    local function counter(n, limit)
      return setmetatable({ n = n }, { __index = {
        state_dict = function(self) return { n = self.n } end,
        load_state_dict = function(self, state)
          self.n = state.n
          if state.n > limit then error("more than " .. limit, 0) end
        end,
      } })
    end
    local file = os.tmpname()
    fnn.save_training(file, { a = counter(7, 9), b = counter(7, 9),
                              model = fresh.model })
    local a, b = counter(1, 9), counter(2, 5)
    local model = new_run().model
    local before = text_of(model:state_dict())
    assert.matches(": 'b': more than 5$",
                   message(fnn.load_training, file,
                           { a = a, b = b, model = model }))
    assert.same({ 1, 2 }, { a.n, b.n })
    assert.equal(before, text_of(model:state_dict()))
    b = counter(2, 9)
    fnn.load_training(file, { a = a, b = b, model = model })
    assert.same({ 7, 7 }, { a.n, b.n })
    os.remove(file)
  end)

  it("puts back a model whose class refuses its state", function()
    local Counting = nn.module "Counting"
    function Counting:init(n, limit)
      self.n, self.limit, self.weight = n, limit, fnn.Param(fnn.full({ 2 }, n))
    end
    function Counting:state() return self.n end
    function Counting:load_state(n)
      if n > self.limit then error("more than " .. self.limit, 0) end
      self.n = n
    end
    local file = os.tmpname()
    fnn.save_training(file, { m = nn.Sequential(Counting(8, 9),
                                                Counting(8, 9)) })
    local m = nn.Sequential(Counting(1, 9), Counting(2, 5))
    assert.matches("'m': more than 5", message(fnn.load_training, file,
                                               { m = m }))
    assert.same({ 1, 2 }, { m[1].n, m[2].n })
    assert.same({ 1, 1 }, m[1].weight:totable())
    os.remove(file)
  end)
end)

-- }======================================================

describe("loading a run with too little memory", function()
  teardown(function() os.remove(path) end)

  -- A model is filled a tensor at a time, an optimizer takes copies of all.
  local function run(value)
    local model = nn.ModuleList()
    for k = 1, 8 do model[k] = nn.Linear(256, 256) end
    local opt = optim.AdamW(model:parameters())
    for _, p in ipairs(model:parameters()) do
      p:set(fnn.full(p:shape(), value))
      p:set_grad(p:detach())
    end
    opt:step()
    return { model = model, opt = opt }
  end

  it("changes nothing", function()
    fnn.save_training(path, run(1))
    local state = run(2)
    local before = state.model[1].weight[1][1]
    local steps = 0
    for size = 3, 6 do  -- MB; the optimizer's state has 4
      collectgarbage()
      collectgarbage()
      fnn.trim()
      fnn.set_memory_limit(fnn.memory().live + (size << 20))
      local ok, why = pcall(fnn.load_training, path, state)
      fnn.set_memory_limit(0)
      assert.is_false(ok)
      assert.matches("'opt': .*out of memory", why)
      assert.equal(before, state.model[1].weight[1][1])
      steps = steps + 1
    end
    assert.equal(4, steps)
    fnn.load_training(path, state)
    assert.not_equal(before, state.model[1].weight[1][1])
  end)
end)

describe("a run's numbers", function()
  teardown(function() os.remove(path) end)

  it("are whole 64 bits of steps, also the optimizer's", function()
    local count = (1 << 33) + 1
    local p = fnn.Param(fnn.ones(2))
    local opt = optim.AdamW({ p }, { lr = 0.1 })
    opt:load_state_dict((function()
      p:set_grad(fnn.ones(2))
      opt:step()
      local dict = opt:state_dict()
      dict[".state"].params[1].values.step = count
      return dict
    end)())
    fnn.save_training(path, { opt = opt, step = count })
    local again = optim.AdamW({ fnn.Param(fnn.ones(2)) }, { lr = 0.5 })
    local values = fnn.load_training(path, { opt = again })
    assert.equal(count, values.step)
    assert.equal("integer", math.type(values.step))
    assert.equal(count, again:state_dict()[".state"].params[1].values.step)
    assert.equal(0.1, again:lr())
  end)

  it("may be infinite, or none", function()
    fnn.save_training(path, { a = 1 / 0, b = -1 / 0, c = 0 / 0, d = 0.1 })
    local t = fnn.load_training(path)
    assert.equal(1 / 0, t.a)
    assert.equal(-1 / 0, t.b)
    assert.not_equal(t.c, t.c)
    assert.equal(0.1, t.d)
  end)

  it("may be such in tables, and in states", function()
    local function new() return optim.ReduceOnPlateau(0.1) end
    local plateau, again = new(), new()
    plateau:update(1 / 0)  -- a first loss that was too large for its dtype
    fnn.save_training(path, { plateau = plateau,
                              list = { 1.5, 0 / 0, { low = -1 / 0 } } })
    local list = fnn.load_training(path, { plateau = again }).list
    assert.same(plateau:state_dict(), again:state_dict())
    assert.equal(1 / 0, again:state_dict().best)
    assert.equal(1.5, list[1])
    assert.not_equal(list[2], list[2])
    assert.equal(-1 / 0, list[3].low)
  end)

  it("keep the sign of a zero", function()
    fnn.save_training(path, { a = -0.0, b = 0.0 })
    local t = fnn.load_training(path)
    assert.equal(-1 / 0, 1 / t.a)
    assert.equal(1 / 0, 1 / t.b)
  end)

  it("give the same bytes twice", function()
    local again = os.tmpname()
    local run = whole_run(3)
    fnn.save_training(path, run)
    fnn.save_training(again, run)
    assert.equal(fnn.io.read_text(path), fnn.io.read_text(again))
    os.remove(again)
  end)
end)

describe("saving a run", function()
  teardown(function() os.remove(path) end)

  it("takes no memory but for one tensor at a time", function()
    local n, size = 8, 1 << 20
    local model = nn.ModuleList()
    for k = 1, n do model[k] = nn.Linear(1024, size // 1024) end
    local opt = optim.AdamW(model:parameters())
    for _, p in ipairs(model:parameters()) do p:set_grad(p:detach()) end
    opt:step()
    local turned = fnn.rand(512, 1024):transpose(1, 2)  -- is to be copied
    collectgarbage()
    collectgarbage()
    fnn.trim()
    fnn.reset_peak_memory()
    local before = fnn.memory().live
    fnn.save_training(path, { model = model, opt = opt, turned = turned })
    local most = fnn.memory().peak - before
    assert.is_true(most >= turned:numel() * 4)  -- the measure can see it
    assert.is_true(most < turned:numel() * 4 + (1 << 19), most)
  end)
end)

-- A source of batches that only has a cursor.
describe("a source of batches", function()
  teardown(function() os.remove(path) end)

  local function source()
    local s = { at = 0, done = 0 }
    function s:next() self.done = self.done + 1 return self.done end
    function s:start(epoch, batch) self.at, self.done = epoch, batch or 0 end
    function s:cursor() return self.at, self.done end
    return setmetatable(s, {})
  end

  it("is kept by its cursor", function()
    local s = source()
    s:start(3, 4)
    fnn.save_training(path, { s = s })
    local again = source()
    fnn.load_training(path, { s = again })
    assert.same({ 3, 4 }, { again:cursor() })
    assert.equal(5, again:next())
  end)

  it("is kept so when its state_dict cannot be loaded", function()
    local s = source()
    function s:state_dict() return { at = self.at } end
    s:start(2, 1)
    fnn.save_training(path, { s = s })
    s:start(0, 0)
    fnn.load_training(path, { s = s })
    assert.same({ 2, 1 }, { s:cursor() })
  end)
end)

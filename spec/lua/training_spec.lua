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
